"""`simctl check`: what is wrong with scenarios, before any runs."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

from simctl.commands.slips import of_directive, of_line
from simctl.plugins.registry import PluginError, Registry
from simctl.running import find, meant
from simctl.scenario.load import check_scenario
from simctl.scenario.model import Scenario
from simctl.scenario.positions import Usage
from simctl.status import OK, WRONG_INPUT
from simctl.world import World
from simctl.world.build import plugin_mistakes


def check_scenarios(paths: list[str]) -> int:
    """Validate scenarios; print every mistake and warning of each."""
    status = OK
    for path in paths:
        checked = check_scenario(find(path)[0], USAGE)
        mistakes = [f"{each}{meant(Path(path))}" for each in checked.mistakes]
        if checked.scenario is not None:
            mistakes += _wrong_with_plugins(checked.scenario, built=not mistakes)
        for warning in checked.warnings:
            print(f"{warning} (warning)", file=sys.stderr)
        for mistake in mistakes:
            print(mistake, file=sys.stderr)
        if mistakes:
            status = WRONG_INPUT
        else:
            print(f"{path}: fine")
    return status


USAGE: Final = Usage(of_line=of_line, of_directive=of_directive)


def _wrong_with_plugins(scenario: Scenario, *, built: bool) -> Sequence[str]:
    """Return what is wrong with a scenario's plugins; *built* has its cluster built as well."""
    with redirect_stdout(sys.stderr):
        if not built:
            return plugin_mistakes(Registry(), scenario, scenario.model)
        try:
            # This runs nothing.
            World(scenario)
        except PluginError as error:
            return error.mistakes
    return ()
