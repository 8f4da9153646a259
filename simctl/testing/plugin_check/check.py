"""`simctl plugins check`: load plugins, drive each in the ways of its class, report."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Final

import attrs

from simctl.plugins.compiled import ALONE, Against
from simctl.plugins.compiled.classes import CompiledPlugin
from simctl.plugins.fitting import check_class
from simctl.plugins.guard import PluginError
from simctl.plugins.importing import Found
from simctl.plugins.registry import find_plugins
from simctl.scenario.model import Scenario
from simctl.status import NOT_HELD, OK, WRONG_INPUT, InputError
from simctl.testing.plugin_check.bench import MODELS, Bench
from simctl.testing.plugin_check.burst_buffer.drive import drive_burst_buffer
from simctl.testing.plugin_check.checkpoint.drive import drive_checkpoint
from simctl.testing.plugin_check.given import run_given
from simctl.testing.plugin_check.lua.check import check_script
from simctl.testing.plugin_check.lua.report import ScriptReport
from simctl.testing.plugin_check.memory import LEAKS, leaked
from simctl.testing.plugin_check.mistakes import Outcome, roots
from simctl.testing.plugin_check.report import Checked, Note
from simctl.testing.plugin_check.switch.drive import drive_switch

__all__ = ["MODELS", "check_plugin", "check_plugins"]

_STOPS: Final = "PYTHONBREAKPOINT"

DRIVES: Final[dict[str, Callable[[Bench], Outcome]]] = {
    "switch": drive_switch,
    "checkpoint": drive_checkpoint,
    "burst_buffer": drive_burst_buffer,
}


def check_plugins(
    references: Sequence[str],
    *,
    models: Iterable[str] = MODELS,
    watchdog_s: float,
    as_json: bool,
    given: Sequence[Scenario] = (),
    luas: Sequence[str] = (),
    slurms: Sequence[str] = (),
) -> int:
    """Check every plugin that *references* name; print the reports; return the exit status.

    A `.lua` file is a script of a site, tried under each Lua of *luas* and each Slurm of *slurms*.

    Raises:
        InputError: There is none, or one cannot be loaded.
    """
    # What a plugin prints is no part of the report, and no person is there where it would stop.
    with redirect_stdout(sys.stderr), _without_stops():
        scripts = [each for each in references if each.endswith(".lua")]
        if (luas or slurms) and not scripts:
            raise InputError("--lua and --slurm are for Lua scripts, and none is to be checked")
        found = _found([each for each in references if each not in scripts], given)
        results: list[Checked | ScriptReport] = [
            check_script(each, luas=luas, slurms=slurms, given=given) for each in scripts
        ]
        results += [
            check_plugin(
                each.kind,
                each.origin,
                models=tuple(models),
                watchdog_s=watchdog_s,
                given=tuple(given),
            )
            for each in found
        ]
    if as_json:
        print(json.dumps([result.as_json() for result in results], indent=1))
    else:
        for number, result in enumerate(results):
            print("\n".join((*([""] if number else []), *result.lines())))
    if any(result.mistakes for result in results):
        return NOT_HELD
    return WRONG_INPUT if any(result.not_driven for result in results) else OK


def _found(references: Sequence[str], given: Sequence[Scenario]) -> list[Found]:
    """Return the plugins that are named.

    Raises:
        InputError: One cannot be loaded, does not fit its guide, or is of a class without drives.
    """
    against = next((Against.of(each) for each in given if each.slurm_lib), ALONE)
    found: list[Found] = []
    mistakes: list[str] = []
    for reference in references:
        try:
            found += find_plugins(reference, Path.cwd(), against)
        except PluginError as error:
            mistakes.append(str(error))
    for each in found:
        try:
            plugin_class = check_class(each.kind, each.origin).partition("/")[0]
        except PluginError as error:
            mistakes.append(str(error))
            continue
        if plugin_class not in DRIVES:
            mistakes.append(
                f"{each.origin}: {plugin_class} plugins in Python are not driven by plugins check; "
                f"a scenario shows what they do (there are {', '.join(DRIVES)}, and scripts in Lua)"
            )
    if mistakes:
        raise InputError("\n".join(mistakes))
    return found


@contextmanager
def _without_stops() -> Iterator[None]:
    """Let `breakpoint()` in a plugin do nothing."""
    before = os.environ.get(_STOPS)
    os.environ[_STOPS] = "0"
    try:
        yield
    finally:
        del os.environ[_STOPS]
        if before is not None:
            os.environ[_STOPS] = before


def check_plugin(
    kind: type[Any],
    origin: str,
    *,
    models: tuple[str, ...] = MODELS,
    watchdog_s: float = 2.0,
    given: tuple[Scenario, ...] = (),
) -> Checked:
    """Run one plugin class through every trial in each model.

    Raises:
        InputError: No model can load it, or a scenario of *given* uses another plugin.
    """
    models = _that_fit(kind, models)
    bench = Bench(kind, origin, models=models, watchdog_s=watchdog_s, given=given)
    run_given(bench)
    outcome = DRIVES[bench.plugin_class](bench)
    if issubclass(kind, CompiledPlugin):
        for function, what in leaked(kind.looked_at()):
            bench.blame(LEAKS, function, what)
    for observer in bench.observers.values():
        observer.conclude()
    mistakes, may_follow = roots(bench.found())
    if issubclass(kind, CompiledPlugin):
        # What a plugin keeps are variables in C.
        mistakes, may_follow = (
            tuple(
                attrs.evolve(each, what=_in_c(each.what), remedy=_in_c(each.remedy))
                for each in some
            )
            for some in (mistakes, may_follow)
        )
    own = frozenset(
        name for base in kind.__mro__ if base.__module__ != "simctl.plugin" for name in vars(base)
    )
    tallies = {model: observer.tallies for model, observer in bench.observers.items()}
    return Checked(
        plugin_type=kind.plugin_type,
        origin=origin,
        tallies=tallies,
        mistakes=mistakes,
        may_follow=may_follow,
        notes=tuple(
            attrs.evolve(each, text=_in_c(each.text)) if issubclass(kind, CompiledPlugin) else each
            for each in _notes(tallies, own)
        ),
        own_broken=tuple(bench.own_broken),
        not_driven=outcome.not_driven or bench.cut,
        trials=bench.trials,
        own=own,
        compiled=issubclass(kind, CompiledPlugin),
    )


def _that_fit(kind: type[Any], models: tuple[str, ...]) -> tuple[str, ...]:
    """Return the models that a plugin can be loaded in."""
    if not issubclass(kind, CompiledPlugin):
        return models
    why = {model: " ".join(kind.simctl_misfit(model)) for model in models}
    fitting = tuple(model for model in models if not why[model])
    if not fitting:
        raise InputError(f"{kind.__name__}: {why[models[0]]}")
    return fitting


def _in_c(text: str) -> str:
    return text.replace("self.", "")


def _notes(tallies: dict[str, dict[str, Any]], own: frozenset[str]) -> Iterable[Note]:
    found: dict[tuple[str, str], dict[str, int]] = {}
    for model, by_name in tallies.items():
        for tally in by_name.values():
            if tally.name not in own:
                continue
            texts = dict(tally.notes)
            for name, roles in tally.writes.items():
                if "task" in roles:
                    texts[f"leaves self.{name} in the task's memory, which is gone at its exec"] = 1
            for text, times in texts.items():
                found.setdefault((tally.name, text), {})[model] = times
    for (name, text), times_by_model in found.items():
        yield Note(
            function=name,
            text=text,
            times=sum(times_by_model.values()),
            models=tuple(times_by_model) if len(times_by_model) < len(tallies) else (),
        )
