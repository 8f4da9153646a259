"""What tasks are told of how they were dealt to nodes: SLURM_DISTRIBUTION."""

import pytest

from tests.scontrol_situations import type_in


@pytest.mark.parametrize("around", ["", "salloc -Q -N2 -n4 "])
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("-m cyclic", "cyclic"),
        ("-m block:cyclic", "block"),
        ("-m plane=2", "plane 2"),
        ("-m arbitrary -w n1,n2,n1,n1", "arbitrary"),
        ("-m nopack", ""),
        ("", ""),
    ],
)
def test_tasks_are_told_of_what_was_asked(around: str, asked: str, told: str) -> None:
    """By srun's -m, in a job of its own or another."""
    show = "sh -c 'echo $SLURM_DISTRIBUTION $SLURM_DIST_PLANESIZE'"
    size = "-n4" if "arbitrary" in asked else "-N2 -n4"
    (result,) = type_in([("1s", "alice", f"{around}srun {size} {asked} {show}")]).result.commands
    assert (result.stdout, result.stderr) == (f"{told}\n" * 4, "")


def test_srun_counts_for_more_than_its_job() -> None:
    """What the job was asked for is told where its srun says nothing."""
    show = 'sh -c "echo \\$SLURM_DISTRIBUTION"'
    line = f"salloc -Q -N2 -n4 -m plane=2 sh -c 'srun -N2 -n4 {show}; srun -N2 -n4 -m block {show}'"
    (result,) = type_in([("1s", "alice", line)]).result.commands
    assert result.stdout.split() == ["plane"] * 4 + ["block"] * 4
