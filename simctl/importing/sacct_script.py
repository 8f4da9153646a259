"""What a replayed job runs, so that it lasts as long and ends as it did."""

from collections.abc import Sequence
from typing import Final

from simctl.importing.sacct_file import CUT_SHORT, GIVEN_UP, UNFINISHED, Job
from simctl.importing.sacct_rows import Row
from simctl.wire.ids import INFINITE, NO_VAL

_DAY_S: Final = 86_400
_LAST_SIGNAL: Final = 31
_OWN: Final = '"$SLURM_JOB_ID"'
_TASK: Final = '"${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"'
"""What a task calls itself: the id of one of them is that of the whole array too."""


def cancelled_from_outside(job: Job) -> bool:
    """Return whether another than its user has to cancel a job, or before the job could itself."""
    row = job.last
    if row.state != "CANCELLED":
        return False
    return not row.ran or row.cancel_uid not in (-1, row.uid)


def commands(job: Job, own: str = _OWN) -> list[str]:
    """Return the commands of a job's script; a run that was given up puts it back by itself."""
    if len(job.runs) == 1:
        return _run(job, job.last, own, last=True)
    lines: list[str] = []
    for number, row in enumerate(job.runs[:-1]):
        lines += [
            f'if [ "${{SLURM_RESTART_COUNT:-0}}" = {number} ]; then',
            *(f"  {line}" for line in _run(job, row, own, last=False)),
            "  exit",
            "fi",
        ]
    return [*lines, *_run(job, job.last, own, last=True)]


def _run(job: Job, row: Row, own: str, *, last: bool) -> list[str]:
    """Return the commands of one run."""
    program = "srun sleep" if job.has_steps else "sleep"
    if not last:
        return _until(program, row, f"scontrol requeue {own}")
    if row.state == "TIMEOUT" or cancelled_from_outside(job):
        return [f"{program} {_for_ever(row)}"]
    if row.state == "CANCELLED" or row.state in CUT_SHORT:
        return _until(program, row, f"scancel {own}")
    if row.state == "OUT_OF_MEMORY":
        return [f"./out_of_memory_{row.elapsed_s}"]
    work = f"{program} {row.elapsed_s}"
    if row.state != "FAILED" or row.state in UNFINISHED:
        return [work]
    if 0 < row.exit_signal <= _LAST_SIGNAL:
        return [work, f"kill -{row.exit_signal} $$"]
    return [work, f"exit {row.exit_code or 1}"]


def _until(program: str, row: Row, end: str) -> list[str]:
    """Return the commands of a run that ends itself while its program runs."""
    return [f"{program} {_for_ever(row)} &", f"sleep {row.elapsed_s}", end, "wait"]


def _for_ever(row: Row) -> int:
    """Return seconds within which a command or a limit will have ended the run."""
    limit_min = 0 if row.limit_min in (NO_VAL, INFINITE) else row.limit_min
    return max(row.elapsed_s, limit_min * 60) + 30 * _DAY_S


def array_script(tasks: Sequence[Job]) -> list[str]:
    """Return the commands of the tasks of an array: the commonest ones last, for all others."""
    bodies: dict[tuple[str, ...], list[int]] = {}
    for job in tasks:
        bodies.setdefault(tuple(commands(job, _TASK)), []).extend(job.last.tasks)
    *others, (most, _) = sorted(bodies.items(), key=lambda each: (len(each[1]), each[1]))
    lines: list[str] = []
    for body, numbers in others:
        tests = " || ".join(f'[ "$SLURM_ARRAY_TASK_ID" = {number} ]' for number in sorted(numbers))
        lines += [f"if {tests}; then", *(f"  {line}" for line in body)]
        lines += ["fi"] if body[-1].startswith("exit ") else ["  exit", "fi"]
    return [*lines, *most]


def limit_of(row: Row) -> int:
    """Return the time limit to ask for, in minutes: one that does not end the run too early."""
    if row.state == "TIMEOUT":
        return max(1, row.elapsed_s // 60) if row.limit_min in (NO_VAL, INFINITE) else row.limit_min
    if row.limit_min in (NO_VAL, INFINITE):
        return row.limit_min
    return max(row.limit_min, -(-row.elapsed_s // 60))


def note_of(job: Job) -> str:
    """Return in what a job's replay is not what it was, if anything."""
    row = job.last
    if row.state in CUT_SHORT:
        return f"{row.state}; cancelled after as long a run"
    if row.state in GIVEN_UP:
        return f"{row.state} without another run; ends after as long a run"
    if row.state in UNFINISHED:
        return f"{row.state}; ends after as long a run as it had by then"
    if row.limit_min not in (NO_VAL, INFINITE) and limit_of(row) > row.limit_min:
        return "ran longer than the time limit, which is raised"
    return ""
