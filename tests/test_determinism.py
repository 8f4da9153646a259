"""The same scenario, seed and schedule give the same bytes, on any hash seed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIOS = ("node_crash", "cancel", "own_plugin")


def trace(tmp_path: Path, name: str, hash_seed: str, *words: str) -> bytes:
    """Run a scenario in a process of its own; return the trace it wrote."""
    path = tmp_path / f"{name}.{hash_seed}.jsonl"
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
