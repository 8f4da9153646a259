"""Drive checkpoint and burst buffer plugins through the trials that they share with others."""

from simctl.plugins.points import BY_CLASS
from simctl.testing.plugin_check.bb_trials import BURST_BUFFERS
from simctl.testing.plugin_check.bench import Bench
from simctl.testing.plugin_check.drive import Driver
from simctl.testing.plugin_check.mistakes import STALLS, Outcome
from simctl.testing.plugin_check.trials import IDLE, STEPS, scenario_text
from simctl.world import World


def drive_checkpoint(bench: Bench) -> Outcome:
    """Drive a checkpoint plugin through steps, and call its functions directly."""
    for model in bench.models:
        for trial in STEPS:
            text = scenario_text(trial, {bench.conf_key: bench.kind.plugin_type}, model)
            bench.run(trial.name, text, model=model)
        call_directly(bench, model)
    return Outcome()


def drive_burst_buffer(bench: Bench) -> Outcome:
    """Drive a burst buffer plugin through jobs with directives that every kind may understand."""
    conf = {
        bench.conf_key: bench.kind.plugin_type,
        "AccountingStorageTRES": f"bb/{bench.kind.plugin_type.partition('/')[2]}",
        "MinJobAge": "10",
    }
    for model in bench.models:
        for trial in BURST_BUFFERS:
            ran = bench.run(trial.name, scenario_text(trial, conf, model), model=model, quiet=True)
            if ran is not None and _blame_stall(bench, trial.name, model, ran.result.stalled):
                break
        else:
            if not _nothing_left(bench, model):
                call_directly(bench, model)
    return Outcome()


def call_directly(bench: Bench, model: str) -> None:
    """Call functions for their own sake, in a cluster that itself runs without the plugin."""
    observer = bench.observers[model]

    def prepare(world: World) -> None:
        hooks = world.site.hooks
        hooks.types = {**hooks.types, bench.plugin_class: bench.kind.plugin_type}
        Driver(world, bench.plugin_class, observer).start()

    bench.run(IDLE.name, scenario_text(IDLE, {}, model), model=model, prepare=prepare)


def _nothing_left(bench: Bench, model: str) -> bool:
    """Tell whether runs have called every function of a burst buffer plugin.

    What such a plugin is told of jobs makes sense only where these jobs are.
    """
    return all(
        bench.observers[model].tallies[point.name].calls
        for point in BY_CLASS["burst_buffer"]
        if point.places(model)
    )


def _blame_stall(bench: Bench, name: str, model: str, stalled: tuple[str, ...]) -> bool:
    """Blame whoever keeps a cluster waiting; where that is an answer, one such job says it all."""
    answered = [line for line in stalled if "bb_p_" in line]
    for line in answered[:1] or stalled:
        function = next((each for each in bench.observers[model].tallies if each in line), "plugin")
        bench.blame(STALLS, function, f"in '{name}' the cluster stalled: {line}", model=model)
    return bool(answered)
