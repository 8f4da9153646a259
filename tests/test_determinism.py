"""The same scenario, seed and schedule give the same bytes, on any hash seed."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from simctl.scenario.durations import parse_duration_us

SCENARIOS = ("node_crash", "cancel", "own_plugin", "cut_long")
SCHEDULES = (("fifo", "0"), ("random", "1"))
MODELS = ("guide", "modern")

Words = tuple[str, ...]
Traces = Callable[[str], dict[Words, bytes]]


def words(name: str, schedule: str, seed: str, *more: str) -> Words:
    """Return what `simctl run` is given."""
    return (name, "--schedule", schedule, "--seed", seed, *more)


RUNS = [
    *(
        words(name, *how, "--model", model)
        for name in SCENARIOS
        for how in SCHEDULES
        for model in MODELS
    ),
    *(words("two_nodes", "random", seed) for seed in ("1", "2", "3")),
]


def run_all(
    folder: Path, hash_seed: str, runs: list[Words], damage: str = ""
) -> dict[Words, bytes]:
    """Run scenarios in one interpreter of this hash seed; return the traces that it wrote.

    A *damage* is Python that is executed before.
    """
    paths = [folder / f"{place}.{hash_seed}.jsonl" for place in range(len(runs))]
    commands = [
        ["run", *given, "--quiet", "--trace", str(path)]
        for given, path in zip(runs, paths, strict=True)
    ]
    subprocess.run(
        [
            sys.executable,
            "-c",
            f"from simctl.cli import main\n{damage}\nfor words in {commands!r}: main(words)",
        ],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        check=True,
        capture_output=True,
    )
    return {given: path.read_bytes() for given, path in zip(runs, paths, strict=True)}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    """Return what gives the traces of all runs by an interpreter of a hash seed, made once."""
    return cache(lambda hash_seed: run_all(tmp_path_factory.mktemp("traces"), hash_seed, RUNS))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", SCENARIOS)
def test_hash_seeds_change_nothing(
    traces: Traces, name: str, schedule: tuple[str, str], model: str
) -> None:
    """Two interpreters with different hash seeds write the same bytes."""
    given = words(name, *schedule, "--model", model)
    one, other = (traces(hash_seed)[given] for hash_seed in ("0", "4242"))
    assert one == other
    assert one.count(b"\n") > 100


def test_seeds_of_a_random_schedule_differ(traces: Traces) -> None:
    """Otherwise the above would say little."""
    assert len({traces("0")[words("two_nodes", "random", seed)] for seed in ("1", "2", "3")}) == 3


PLUGIN_WITH_SETS = """
from simctl.plugin import SwitchPlugin, log

NAMES = {f"host{n}" for n in range(12)}


class Sets(SwitchPlugin):
    plugin_type = "switch/sets"
    plugin_name = "sets"

    def switch_p_job_init(self, switch_job, uid):
        log.info("hosts", names=NAMES, inside={"both": [frozenset(NAMES), set()]})

    def switch_p_job_postfini(self, switch_job, pgid, job_id, step_id):
        raise ValueError(NAMES)

    def switch_p_libstate_save(self, dir_name):
        return NAMES
"""

SCENARIO_WITH_SETS = """
slurm_conf: {SwitchType: switch/sets}
plugins: ["./sets.py:Sets"]
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001}
timeline:
  - {at: 0s, as: alice, run: "srun -N2 sleep 10"}
"""


def test_sets_of_a_plugin_are_told_in_a_steady_order(tmp_path: Path) -> None:
    """What a plugin logs, raises and returns may hold sets of strings."""
    (tmp_path / "sets.py").write_text(PLUGIN_WITH_SETS)
    (tmp_path / "sets.yaml").write_text(SCENARIO_WITH_SETS)
    given = words(str(tmp_path / "sets.yaml"), "fifo", "0")
    found = [run_all(tmp_path, seed, [given])[given] for seed in ("0", "1", "4242")]
    assert found[0] == found[1] == found[2]
    text = found[0].decode()
    assert "{'host0', 'host1', 'host10', 'host11', 'host2'" in text
    assert "{'both': [frozenset({'host0', " in text
    assert "ValueError: {'host0', 'host1', 'host10'" in text


RESTARTS = sorted(
    path.stem
    for path in (Path(__file__).parents[1] / "scenarios").glob("*.yaml")
    if re.search(r"\b(crash|restart|start): ", path.read_text())
)
"""The shipped scenarios in which a daemon or a node goes and comes back."""

SEVEN_NODES = """
nodes: [{name: "c[1-7]", cpus: 4}]
partitions: [{name: debug, nodes: "c[1-7]", default: true}]
users: {alice: 1001, bob: 1002}
slurm_conf: {SwitchType: switch/elan, Prolog: /p.sh, PrologFlags: Alloc, Epilog: /e.sh}
files: {/p.sh: "#!/bin/sh\\nsleep 2\\n", /e.sh: "#!/bin/sh\\nsleep 4\\n"}
timeline:
  - {at: 0s, as: alice, run: "sbatch -N5 --wrap 'srun sleep 20'"}
  - {at: 1s, as: bob, run: "srun -N2 sleep 21"}
  - {at: 2s, as: alice, run: "sbatch --array=0-6 -N1 --dependency=afterany:1 --wrap 'srun sleep 5'"}
  - {at: 3s, as: bob, run: "sbatch -N7 --wrap 'srun sleep 30'"}
"""

MOMENTS = {
    "prologs": ("1500ms", "slurmctld"),
    "launched": ("5s", "slurmctld"),
    "completing": ("24s", "slurmctld"),
    "tasks": ("33s", "slurmctld"),
    "a node goes": ("12s", "c3"),
    "a node goes while a job ends": ("24s", "c2"),
}
"""When who dies, to be started again after nine seconds."""

HASH_SEEDS = ("0", "1", "77", "4242")


def with_deaths(folder: Path) -> list[Words]:
    """Write a scenario for each moment; return what is run of it."""
    runs = []
    for place, (at, who) in enumerate(MOMENTS.values()):
        path = folder / f"death{place}.yaml"
        again = int(parse_duration_us(at)) + 9_000_000
        path.write_text(
            f"{SEVEN_NODES}  - {{at: {at}, fault: {{crash: {who}}}}}\n"
            f"  - {{at: {again}us, fault: {{start: {who}}}}}\n"
        )
        runs += [words(str(path), *SCHEDULES[0], "--model", model) for model in MODELS]
    return runs


@pytest.fixture(scope="module")
def deaths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[Words, bytes]]:
    """Return the traces of all runs in which somebody dies, by hash seed."""
    folder = tmp_path_factory.mktemp("deaths")
    runs = [words(name, "fifo", "0", "--model", model) for name in RESTARTS for model in MODELS]
    runs += with_deaths(folder)
    return {seed: run_all(folder, seed, runs) for seed in HASH_SEEDS}


def test_no_hash_seed_changes_who_is_told_again_first(
    deaths: dict[str, dict[Words, bytes]],
) -> None:
    """Every shipped scenario in which somebody dies, and seven nodes at six moments."""
    first, *others = deaths.values()
    differing = [given for given in first for other in others if other[given] != first[given]]
    assert differing == []
    assert len(RESTARTS) >= 10
    assert all(each.count(b"\n") > 50 for each in first.values())


IN_THE_ORDER_OF_A_SET = """
import simctl.world
from simctl.ctld.jobs import completion
def told(ctld, job):
    for name in job.completing_nodes:
        ctld.send(ctld.address(ctld.nodes_by_name[name]), completion.termination(job))
completion.terminate_again = told
"""


def test_an_order_that_comes_of_a_set_is_noticed(tmp_path: Path) -> None:
    """A slurmctld that tells nodes in the order of a set of names does not get through."""
    (given,) = [each for each in with_deaths(tmp_path) if "death2" in each[0] and "guide" in each]
    found = {run_all(tmp_path, seed, [given], IN_THE_ORDER_OF_A_SET)[given] for seed in HASH_SEEDS}
    assert len(found) > 1
