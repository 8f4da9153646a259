"""scontrol requeue incomplete: only jobs and array tasks that run go back into the queue."""

import pytest

from tests.scontrol_situations import Lines, type_in

_JOBS: Lines = [
    ("0s", "alice", "sbatch -n1 --array=1-2 --wrap 'sleep 100'"),
    ("0s", "alice", "sbatch -n1 --wrap true"),
    ("0s", "alice", "sbatch -n1 --hold --wrap true"),
    ("0s", "alice", "sbatch -n1 --no-requeue --wrap 'sleep 100'"),
]
_SHOW = "squeue -h -a -t all -o '%i %t %r'"


def after(command: str) -> tuple[str, list[str]]:
    """Return what a requeue says at 5 s, and the jobs then."""
    lines: Lines = [*_JOBS, ("5s", "alice", command), ("6s", "alice", _SHOW)]
    *_, said, shown = type_in(lines).result.commands
    return said.stdout + said.stderr, sorted(shown.stdout.splitlines())


@pytest.mark.parametrize("command", ["requeue incomplete", "requeue Incomplete"])
def test_what_runs_is_requeued_alone(command: str) -> None:
    """One that is over or waits is left as it is, and nothing is said of it."""
    said, jobs = after(f"scontrol {command} 1 2 3")
    assert said == ""
    assert [job for job in jobs if job.startswith("1_")] == ["1_1 PD BeginTime", "1_2 PD BeginTime"]
    assert "2 CD None" in jobs
    assert "3 PD JobHeldUser" in jobs


@pytest.mark.parametrize("words", ["incomplete state=SpecialExit", "state=specialexit incomplete"])
def test_requeuehold_takes_it_as_well(words: str) -> None:
    """Before or after the state."""
    said, jobs = after(f"scontrol requeuehold {words} 1 2")
    assert said == ""
    assert [job.split()[1] for job in jobs if job.startswith("1_")] == ["SE", "SE"]
    assert "2 CD None" in jobs


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("requeue incomplete", "too few arguments for keyword:requeue\n"),
        ("requeue incomplete x", "Invalid job id specified for job x\n"),
        ("requeue incomplete 4", "Requested operation is presently disabled for job 4\n"),
        ("requeue incomplete 99", "Invalid job id specified for job 99\n"),
        ("requeue 3", "Job is pending execution for job 3\n"),
    ],
)
def test_what_cannot_be_is_told(command: str, told: str) -> None:
    """As without the word."""
    assert after(f"scontrol {command}")[0] == told
