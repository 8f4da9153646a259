"""Drive a switch plugin as its users would."""

from simctl.testing.plugin_check.bench import Bench
from simctl.testing.plugin_check.lives import call_directly
from simctl.testing.plugin_check.mistakes import Outcome
from simctl.testing.plugin_check.trials import STEPS, scenario_text


def drive_switch(bench: Bench) -> Outcome:
    """Drive a switch plugin through steps, and call its functions directly."""
    for model in bench.models:
        for trial in STEPS:
            text = scenario_text(trial, {bench.conf_key: bench.kind.plugin_type}, model)
            bench.run(trial.name, text, model=model)
        call_directly(bench, model)
    return Outcome()
