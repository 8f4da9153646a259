"""Whom srun's standard input is for: all tasks, none, one, or a file in its place."""

import pytest

from tests.scontrol_situations import Lines, type_in

_FILES = "export F=in; echo one > in; echo two > in.0; echo three > in.1; "


def typed(script: str) -> tuple[int, str, str]:
    """Type a script of alice's on four idle nodes; return its exit status and what it wrote."""
    lines: Lines = [("1s", "alice", f"salloc -Q -N2 -n2 sh -c '{_FILES}{script}'")]
    result = type_in(lines).result.commands[0]
    return result.exit, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("srun -l cat < in", "0: one\n1: one\n"),
        ("srun -l -i all cat < in", "0: one\n1: one\n"),
        ("srun -l -i none cat < in", ""),
        ("srun -l -i 1 cat < in", "1: one\n"),
        ("srun -l --input=0 cat < in", "0: one\n"),
        ("srun -l -i in cat", "0: one\n1: one\n"),
        ("srun -l -i in cat < in.0", "0: one\n1: one\n"),
        ("srun -l -i in.%t cat", "0: two\n1: three\n"),
        ("srun -l -i in.%n cat", "0: two\n1: three\n"),
        ("srun -n1 -N1 -i in cat - in.1", "one\nthree\n"),
        ("cp=2; echo four > 2; srun -l -i 2 cat", "0: four\n1: four\n"),
        ("export SLURM_STDINMODE=1; srun -l cat < in", "1: one\n"),
        ("export SLURM_STDINMODE=1; srun -l -i all cat < in", "0: one\n1: one\n"),
        ("srun -l cat", ""),
        ('srun -l sh -c "cat; cat; echo end" < in', "0: one\n0: end\n1: one\n1: end\n"),
        ('srun -l sh -c "cat < in.1; cat" < in', "0: three\n0: one\n1: three\n1: one\n"),
        ("echo hostname > in; srun -l sh < in", "0: n1\n1: n2\n"),
    ],
)
def test_tasks_read(script: str, shown: str) -> None:
    """What the mode gives them, once."""
    status, stdout, stderr = typed(script)
    assert (status, sorted(stdout.splitlines()), stderr) == (0, sorted(shown.splitlines()), "")


@pytest.mark.parametrize("mode", ["absent", "absent.%t", "7"])
def test_a_file_that_is_not_there_is_told(mode: str) -> None:
    """The step is not launched, and over at once."""
    status, stdout, stderr = typed(f"srun -i {mode} cat; squeue -s -h")
    assert stdout == ""
    assert stderr == "srun: error: Could not open stdin file: No such file or directory\n"
    assert status == 0


def test_a_batch_script_reads_nothing() -> None:
    """Its standard input is empty, and so is that of its sruns."""
    lines: Lines = [
        ("1s", "alice", "sbatch -Q -o out --wrap 'cat; srun cat; echo end'"),
        ("9s", "alice", "salloc -Q -n1 cat out"),
    ]
    assert type_in(lines).result.commands[1].stdout == "end\n"


def test_a_batch_script_reads_its_file() -> None:
    """Once, whoever of it reads first; the file is named as that of the output."""
    job = "'read x; echo $x; scontrol show job $SLURM_JOB_ID | grep StdIn; srun cat'"
    lines: Lines = [
        ("1s", "alice", "salloc -Q -n1 sh -c 'echo one > in.1; echo two >> in.1; cp in.1 in.2'"),
        ("2s", "alice", f"sbatch -Q -i in.%j -o out --wrap {job}"),
        ("9s", "alice", "salloc -Q -n1 cat out"),
    ]
    shown = "one\n   StdIn=/home/alice/in.2\ntwo\n"
    assert type_in(lines).result.commands[2].stdout == shown


def test_a_batch_script_without_its_file_is_not_run() -> None:
    """As one whose output cannot be opened."""
    lines: Lines = [
        ("1s", "alice", "sbatch -Q -i absent --wrap 'echo no'"),
        ("9s", "alice", "scontrol show job 1"),
    ]
    ran = type_in(lines)
    assert "JobState=FAILED Reason=JobLaunchFailure" in ran.result.commands[1].stdout
    assert "ExitCode=0:53" in ran.result.commands[1].stdout
