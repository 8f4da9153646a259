"""Checkpoint plugins in C are given Slurm's records, as their debug information has them."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from simctl.cli import main
from simctl.plugins.compiled import build, classes
from simctl.testing.plugin_check.check import check_plugin
from tests.compiled_plugins import SOURCES, needs_compiler

SCENARIOS = Path(__file__).parent.parent / "scenarios"

pytestmark = needs_compiler

OMPI = SOURCES / "checkpoint_ompi.c"
BLCR = SOURCES / "checkpoint_blcr.c"
TWINS = """
from simctl.plugins.checkpoint.blcr import CheckpointBlcr
from simctl.plugins.checkpoint.ompi import CheckpointOmpi


class Blcr(CheckpointBlcr):
    plugin_type = "checkpoint/twin"


class Ompi(CheckpointOmpi):
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


@pytest.mark.parametrize(
    ("name", "plugin", "twin"),
    [
        ("checkpoint", BLCR, "Blcr"),
        ("checkpoint_complete", BLCR, "Blcr"),
        ("life_of_a_job", BLCR, "Blcr"),
        ("srun_cr", BLCR, "Blcr"),
        ("checkpoint_complete", OMPI, "Ompi"),
    ],
)
def test_a_checkpoint_plugin_gives_the_trace_of_its_twin(
    tmp_path: Path, name: str, plugin: Path, twin: str
) -> None:
    """Byte by byte, in every shipped scenario with checkpoints: threads, locks, helpers, images."""
    (tmp_path / "twins.py").write_text(TWINS, encoding="utf-8")
    compiled = run(tmp_path, name, str(plugin)).read_bytes()
    assert compiled == run(tmp_path, name, f"./twins.py:{twin}").read_bytes()
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


SLIPS = [
    (
        "copy->error_msg = xstrdup(record->error_msg);",
        "copy->error_msg = xstrdup(record->error_msg); copy->wait_time++;",
        ("copy-differs", "slurm_ckpt_copy_job", "wait_time is 0 and becomes 1"),
    ),
    (
        "safe_unpack16(&record->node_cnt, body);",
        "safe_unpack16(&record->node_cnt, body); record->node_cnt++;",
        ("record-lost", "slurm_ckpt_unpack_job", "node_cnt is 0 and becomes 1"),
    ),
    (
        "xfree(record->error_msg);\n\txfree(record);",
        "xfree(record);",
        ("leaks-memory", "slurm_ckpt_free_job", "bytes behind for each time that a record"),
    ),
]


def test_slips_of_a_checkpoint_plugin_are_named(tmp_path: Path) -> None:
    """By the field, as the debug information calls it; and nothing else is."""
    text = OMPI.read_text(encoding="utf-8")
    for before, after, _ in SLIPS:
        assert before in text
        text = text.replace(before, after)
    path = tmp_path / "slipped.c"
    path.write_text(text, encoding="utf-8")
    found = check_plugin(classes.find(path), "slipped.c", models=("guide",))
    told = sorted((each.rule, each.function) for each in found.mistakes)
    assert told == sorted(wanted[:2] for _, _, wanted in SLIPS)
    for _, _, (rule, _, what) in SLIPS:
        assert what in next(each.what for each in found.mistakes if each.rule == rule)
