"""`simctl plugins check`: load a plugin, run it through the trials, judge what was seen."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from simctl.plugins.fitting import PluginError, check_class
from simctl.plugins.points import BY_CLASS, OPTIONAL
from simctl.plugins.registry import Registry, find_plugins
from simctl.scenario.load import read_scenario
from simctl.status import NOT_HELD, OK, InputError
from simctl.testing.plugin_check.bb_trials import BURST_BUFFERS
from simctl.testing.plugin_check.drive import Driver
from simctl.testing.plugin_check.observe import Observer, Tally
from simctl.testing.plugin_check.report import Checked, Finding
from simctl.testing.plugin_check.trials import IDLE, STEPS, Trial, scenario_text
from simctl.wire.ids import SECOND
from simctl.world import World

MODELS: Final = ("guide", "modern")
_CONF_KEYS: Final = {
    "switch": "SwitchType",
    "checkpoint": "CheckpointType",
    "burst_buffer": "BurstBufferType",
}
_SLOW_US: Final = 10 * SECOND
"""MessageTimeout: what a daemon does not answer in that time its clients give up on."""


def check_plugins(
    references: Sequence[str], *, models: Iterable[str] = MODELS, watchdog_s: float, as_json: bool
) -> int:
    """Check every plugin that *references* name; print the reports; return the exit status.

    Raises:
        InputError: There is none, or one cannot be loaded.
    """
    found = []
    mistakes: list[str] = []
    for reference in references:
        try:
            found += find_plugins(reference, Path.cwd())
        except PluginError as error:
            mistakes.append(str(error))
    for each in found:
        try:
            check_class(each.kind, each.origin)
        except PluginError as error:
            mistakes.append(str(error))
    if mistakes:
        raise InputError("\n".join(mistakes))
    results = [
        check_plugin(each.kind, each.origin, models=tuple(models), watchdog_s=watchdog_s)
        for each in found
    ]
    if as_json:
        print(json.dumps([result.as_json() for result in results], indent=1))
    else:
        for number, result in enumerate(results):
            print("\n".join((*([""] if number else []), *result.lines())))
    return NOT_HELD if any(result.problems for result in results) else OK


def check_plugin(
    kind: type[Any], origin: str, *, models: tuple[str, ...] = MODELS, watchdog_s: float = 2.0
) -> Checked:
    """Run one plugin class through every trial in each model."""
    plugin_type: str = kind.plugin_type
    tallies: dict[str, dict[str, Tally]] = {}
    trials = 0
    for model in models:
        observer = Observer(kind, _functions(kind, plugin_type))
        for trial in _trials(plugin_type):
            trials += 1
            if _is_vain(trial, plugin_type, observer, model):
                trials -= 1
                continue
            if not _run_trial(trial, kind, origin, model, observer, watchdog_s):
                break
        observer.conclude()
        tallies[model] = observer.tallies
    own = frozenset(
        name for base in kind.__mro__ if base.__module__ != "simctl.plugin" for name in vars(base)
    )
    return Checked(
        plugin_type=plugin_type,
        origin=origin,
        tallies=tallies,
        findings=tuple(_findings(tallies, own)),
        trials=trials,
        own=own,
    )


def _functions(kind: type[Any], plugin_type: str) -> list[str]:
    own = [name for name in ("init", "fini") if hasattr(kind, name)]
    plugin_class = plugin_type.partition("/")[0]
    besides = [
        point.name
        for point in OPTIONAL.values()
        if point.plugin_class == plugin_class and hasattr(kind, point.name)
    ]
    return [*own[:1], *(point.name for point in BY_CLASS[plugin_class]), *besides, *own[1:]]


def _trials(plugin_type: str) -> tuple[Trial, ...]:
    runs = BURST_BUFFERS if plugin_type.startswith("burst_buffer/") else STEPS
    return (*runs, IDLE)


def _is_vain(trial: Trial, plugin_type: str, observer: Observer, model: str) -> bool:
    """Tell whether a trial would show nothing new."""
    if trial is IDLE:
        return _nothing_left(plugin_type, observer, model)
    return observer.hopeless


def _nothing_left(plugin_type: str, observer: Observer, model: str) -> bool:
    """Tell whether runs have called every function of a burst buffer plugin.

    What such a plugin is told of jobs makes sense only where these jobs are.
    """
    return plugin_type.startswith("burst_buffer/") and all(
        observer.tallies[point.name].calls
        for point in BY_CLASS["burst_buffer"]
        if point.places(model)
    )


def _run_trial(
    trial: Trial, kind: type[Any], origin: str, model: str, observer: Observer, watchdog_s: float
) -> bool:
    """Run one trial; false if there is no sense in another."""
    plugin_class = kind.plugin_type.partition("/")[0]
    conf = {_CONF_KEYS[plugin_class]: kind.plugin_type}
    if plugin_class == "burst_buffer":
        conf |= {"AccountingStorageTRES": f"bb/{kind.plugin_type.partition('/')[2]}"}
        conf |= {"MinJobAge": "10"}
    if trial is IDLE:
        # The cluster itself runs without the plugin: only the driver calls it.
        conf = {}
    scenario = read_scenario(scenario_text(trial, conf, model), file=f"trial: {trial.name}")
    # The plugin at hand is what is checked, whatever else of its type may be there.
    registry = Registry(installed=False)
    registry.put(kind, origin, instead=True)
    try:
        world = World(scenario, registry=registry, watchdog_s=watchdog_s)
    except PluginError as error:
        observer.elsewhere("plugin").blame(str(error))
        return False
    world.trace.add_sink(lambda _: None)
    hooks = world.site.hooks
    hooks.observer = observer
    observer.new_trial()
    if trial is IDLE:
        hooks.types = {**hooks.types, plugin_class: kind.plugin_type}
        Driver(world, plugin_class, observer).start()
    try:
        result = world.run()
    except PluginError as error:
        _blame_open(observer, world, str(error))
        return False
    _blame_stall(trial, observer, world, result.stalled)
    for complaint in result.complaints:
        if complaint.function not in observer.tallies:
            observer.elsewhere(complaint.function).blame(complaint.problem, complaint.times)
    return not any("of wall time" in each.problem for each in result.complaints)


def _blame_stall(trial: Trial, observer: Observer, world: World, stalled: tuple[str, ...]) -> None:
    """Blame whoever keeps a cluster waiting; where that is an answer, one such job says it all."""
    answered = [line for line in stalled if "bb_p_" in line]
    for line in answered[:1] or stalled:
        text = f"in the trial '{trial.name}' the cluster stalled: {line}"
        if answered:
            function = next(name for name in observer.tallies if name in line)
            observer.tallies[function].blame(text)
        else:
            _blame_open(observer, world, text)
    if answered:
        observer.hopeless = True


def _blame_open(observer: Observer, world: World, text: str) -> None:
    """Blame the function that was under way, if one was."""
    open_calls = [call.name for call in world.site.hooks.under_way]
    name = open_calls[0] if open_calls else ""
    (observer.tallies.get(name) or observer.elsewhere(name or "plugin")).blame(text)


def _findings(tallies: dict[str, dict[str, Tally]], own: frozenset[str]) -> Iterable[Finding]:
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    for model, by_name in tallies.items():
        for tally in by_name.values():
            for text, times in (*tally.problems.items(), *_slowness(tally)):
                found.setdefault((tally.name, "problem", text), {})[model] = times
            for text, times in (*tally.notes.items(), *_state_notes(tally)):
                if tally.name not in own:
                    continue
                found.setdefault((tally.name, "note", text), {})[model] = times
    for (name, kind, text), times_by_model in found.items():
        yield Finding(
            function=name,
            kind=kind,
            text=text,
            times=sum(times_by_model.values()),
            models=tuple(times_by_model) if len(times_by_model) < len(tallies) else (),
        )


def _state_notes(tally: Tally) -> Iterable[tuple[str, int]]:
    for name, roles in tally.writes.items():
        if "task" in roles:
            yield f"leaves self.{name} in the task's memory, which is gone at its exec", 1


def _slowness(tally: Tally) -> Iterable[tuple[str, int]]:
    slow = any(place.startswith("slurmctld") for place in tally.places)
    if slow and tally.longest_us >= _SLOW_US:
        held_s = tally.longest_us // SECOND
        text = (
            f"held slurmctld for {held_s} s: nobody else is answered meanwhile, and clients give "
            "up after 10 s (MessageTimeout)"
        )
        yield text, 1
