"""Runs of an author's own: `plugins check --scenario FILE`."""

from pathlib import Path

import attrs

from simctl.plugins.compiled import Against
from simctl.plugins.guard import PluginError
from simctl.plugins.registry import find_plugins
from simctl.scenario.model import PluginSpec, Scenario
from simctl.status import InputError
from simctl.testing.plugin_check.bench import Bench
from simctl.testing.plugin_check.code import starts_threads


def run_given(bench: Bench) -> None:
    """Run each scenario that was given in both models, and note which expectations broke.

    Raises:
        InputError: One uses another plugin of this class.
    """
    followed = bench.files if starts_threads(bench.kind) else frozenset()
    for scenario in bench.given:
        name = scenario.path_name
        used = _types_of(scenario, bench.plugin_class)
        if bench.kind.plugin_type not in used:
            raise InputError(
                f"--scenario {name}: its {bench.conf_key} is {', '.join(used) or 'not set'}, "
                f"not {bench.kind.plugin_type}, which is to be checked"
            )
        others = tuple(each for each in scenario.plugins if not _is_same(bench, each, scenario))
        own = attrs.evolve(scenario, plugins=others)
        for model in bench.models:
            ran = bench.run(name, own, model=model, events=True, files=followed)
            if ran is None:
                continue
            bench.own_broken += [
                f"{name} (model {model}): {result.text}"
                for result in ran.result.expectations
                if not result.held
            ]


def _types_of(scenario: Scenario, plugin_class: str) -> tuple[str, ...]:
    conf = scenario.slurm_conf
    if plugin_class == "burst_buffer":
        return conf.burst_buffer_types
    return (conf.switch_type if plugin_class == "switch" else conf.checkpoint_type,)


def _is_same(bench: Bench, spec: PluginSpec, scenario: Scenario) -> bool:
    """Return whether a scenario's own plugin is of the type that is checked, and so replaced."""
    try:
        found = find_plugins(spec.reference, Path(scenario.folder), Against.of(scenario))
    except PluginError:
        return False
    return any(getattr(each.kind, "plugin_type", "") == bench.kind.plugin_type for each in found)
