"""Checkpoint plugins in C are given Slurm's records, as their debug information has them."""

from pathlib import Path

import pytest

from simctl.cli import main
from tests.compiled_plugins import SOURCES, needs_compiler

SCENARIOS = Path(__file__).parent.parent / "scenarios"

pytestmark = needs_compiler

OMPI = SOURCES / "checkpoint_ompi.c"
TWIN = """
from simctl.plugins.checkpoint.ompi import CheckpointOmpi


class Twin(CheckpointOmpi):
    __slots__ = ()
    plugin_type = "checkpoint/twin"
"""


def run(folder: Path, name: str, plugin: str) -> Path:
    """Run a shipped scenario with a checkpoint plugin of ours; return its trace."""
    text = (SCENARIOS / f"{name}.yaml").read_text(encoding="utf-8")
    for bundled in ("checkpoint/blcr", "checkpoint/ompi"):
        text = text.replace(bundled, "checkpoint/twin")
    scenario = folder / f"{name}.yaml"
    scenario.write_text(f'{text}\nplugins: ["{plugin}"]\n', encoding="utf-8")
    trace = folder / "trace.jsonl"
    main(["run", "--quiet", "--force", "--trace", str(trace), str(scenario)])
    return trace


@pytest.mark.parametrize("name", ["checkpoint", "checkpoint_complete", "life_of_a_job", "srun_cr"])
def test_a_checkpoint_plugin_gives_the_trace_of_its_twin(tmp_path: Path, name: str) -> None:
    """Byte by byte, in every shipped scenario with checkpoints."""
    (tmp_path / "twin.py").write_text(TWIN, encoding="utf-8")
    compiled = run(tmp_path, name, str(OMPI)).read_bytes()
    assert compiled == run(tmp_path, name, "./twin.py:Twin").read_bytes()
    assert b"slurm_ckpt_op" in compiled
