"""The same scenario, seed and schedule give the same bytes, on any hash seed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIOS = ("node_crash", "cancel", "own_plugin", "cut_long")


def trace(tmp_path: Path, name: str, hash_seed: str, *words: str) -> bytes:
    """Run a scenario in a process of its own; return the trace it wrote."""
    path = tmp_path / f"{Path(name).stem}.{hash_seed}.jsonl"
    subprocess.run(
        [sys.executable, "-m", "simctl", "run", name, "--quiet", "--trace", str(path), *words],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        check=False,
        capture_output=True,
    )
    return path.read_bytes()


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("schedule", [("fifo", "0"), ("random", "1")])
@pytest.mark.parametrize("name", SCENARIOS)
def test_hash_seeds_change_nothing(
    tmp_path: Path, name: str, schedule: tuple[str, str], model: str
) -> None:
    """Two interpreters with different hash seeds write the same bytes."""
    words = ("--schedule", schedule[0], "--seed", schedule[1], "--model", model)
    traces = [trace(tmp_path, name, hash_seed, *words) for hash_seed in ("0", "4242")]
    assert traces[0] == traces[1]
    assert traces[0].count(b"\n") > 100


def test_seeds_of_a_random_schedule_differ(tmp_path: Path) -> None:
    """Otherwise the above would say little."""
    traces = {
        trace(tmp_path, "two_nodes", "0", "--schedule", "random", "--seed", seed)
        for seed in ("1", "2", "3")
    }
    assert len(traces) == 3


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
    traces = [trace(tmp_path, str(tmp_path / "sets.yaml"), seed) for seed in ("0", "1", "4242")]
    assert traces[0] == traces[1] == traces[2]
    text = traces[0].decode()
    assert "{'host0', 'host1', 'host10', 'host11', 'host2'" in text
    assert "{'both': [frozenset({'host0', " in text
    assert "ValueError: {'host0', 'host1', 'host10'" in text
