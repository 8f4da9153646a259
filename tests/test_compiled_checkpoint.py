"""Checkpoint plugins in C are given Slurm's records, as their debug information has them."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from simctl.cli import main
from simctl.plugins.compiled import build
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


def run(folder: Path, name: str, plugin: str, besides: str = "") -> Path:
    """Run a shipped scenario with a checkpoint plugin of ours; return its trace."""
    text = (SCENARIOS / f"{name}.yaml").read_text(encoding="utf-8")
    for bundled in ("checkpoint/blcr", "checkpoint/ompi"):
        text = text.replace(bundled, "checkpoint/twin")
    scenario = folder / f"{name}.yaml"
    scenario.write_text(f'{text}\nplugins: ["{plugin}"]\n{besides}', encoding="utf-8")
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


def test_a_plugin_is_run_against_the_slurm_of_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The library is that of `slurm_lib`; records are as `slurm_records` describes them."""
    monkeypatch.setenv("CFLAGS", "-g0")
    run(tmp_path, "checkpoint_complete", str(OMPI))
    told = "reached into a record of Slurm's whose fields are where nobody knows"
    assert told in capsys.readouterr().err
    (tmp_path / "records.c").write_text(
        '#include "simctl_plugin.h"\nstruct step_record *step;\nstepd_step_rec_t *stepd;\n',
        encoding="utf-8",
    )
    compiled = [*shlex.split(build.compiler()), "-g", "-c", f"-I{build.HEADER.parent}", "records.c"]
    subprocess.run(compiled, cwd=tmp_path, check=True)
    shutil.copy(build.library(), tmp_path / "libslurmfull.so")
    besides = "slurm_lib: ./libslurmfull.so\nslurm_records: ./records.o\n"
    trace = run(tmp_path, "checkpoint_complete", str(OMPI), besides)
    assert "slurm_ckpt_comp" in trace.read_text(encoding="utf-8")
    assert capsys.readouterr().err == ""
    run(tmp_path, "checkpoint_complete", str(OMPI), "slurm_lib: ./records.o\n")
    assert "records.o' cannot be used: " in capsys.readouterr().err
