"""The same scenario, seed and schedule give the same bytes, on any hash seed."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

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


def run_all(folder: Path, hash_seed: str, runs: list[Words]) -> dict[Words, bytes]:
    """Run scenarios in one interpreter of this hash seed; return the traces that it wrote."""
    paths = [folder / f"{place}.{hash_seed}.jsonl" for place in range(len(runs))]
    commands = [
        ["run", *given, "--quiet", "--trace", str(path)]
        for given, path in zip(runs, paths, strict=True)
    ]
    subprocess.run(
        [
            sys.executable,
            "-c",
            f"from simctl.cli import main\nfor words in {commands!r}: main(words)",
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
