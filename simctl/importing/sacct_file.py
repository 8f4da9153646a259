"""From the lines of a file to jobs: steps and duplicates sorted out, what is no use set aside."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import attrs

from simctl.importing.sacct_rows import HeaderError, Row, RowError, read_header, read_row, step_of

ENDED: Final = frozenset({"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY"})
"""States that jobs of a replay end in as they did."""

GIVEN_UP: Final = frozenset({"REQUEUED", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL"})
"""States of runs after which a job may have another."""

CUT_SHORT: Final = frozenset({"NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "REVOKED"})
"""States that jobs of a replay do not end in: they are cancelled when they have run as long."""

UNFINISHED: Final = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "STOPPED", "SIGNALING"})


@attrs.frozen(kw_only=True)
class Job:
    """A job with all its runs, the first one first; its steps are those that a run was seen in."""

    runs: tuple[Row, ...]
    has_steps: bool = True

    @property
    def last(self) -> Row:
        """Return its last run."""
        return self.runs[-1]


@attrs.define
class Found:
    """What a file holds: jobs in the order in which they were submitted, and what is of no use."""

    jobs: list[Job] = attrs.field(factory=list)
    lines: int = 0
    steps: int = 0
    repeated: int = 0
    left_out: list[tuple[int, str]] = attrs.field(factory=list)
    columns: tuple[str, ...] = ()


def counted(number: int, noun: str) -> str:
    """Return a number of things."""
    return f"{number} {noun}{'s' * (number != 1)}"


def read_lines(lines: Iterable[str]) -> Found:
    """Read all lines of a file.

    Raises:
        HeaderError: It has no header, or one without what is needed.
    """
    found = Found()
    rows: list[Row] = []
    with_steps: set[str] = set()
    seen: set[str] = set()
    for number, text in enumerate(lines, 1):
        line = text.rstrip("\r\n")
        if not line.strip():
            continue
        if not found.columns or _is_header(line):
            found.columns = _header(line, number)
            continue
        found.lines += 1
        named = _cells(found, line, number)
        if not named:
            continue
        step = step_of(named)
        if step:
            found.steps += 1
            if step.isdecimal():
                with_steps.add(named["jobid"].partition(".")[0])
        elif line in seen:
            found.repeated += 1
        else:
            seen.add(line)
            _take(found, rows, named, number)
    if not found.columns:
        raise HeaderError("the file is empty; `sacct -P -o JobID,Submit,...` prints what is needed")
    found.jobs = _jobs(found, _with_uids(rows), with_steps)
    return found


def _cells(found: Found, line: str, number: int) -> dict[str, str]:
    """Return what a line has in each column; nothing if they do not fit, which is noted."""
    cells = line.split("|")
    if len(cells) == len(found.columns) + 1 and not cells[-1]:
        cells.pop()
    if len(cells) != len(found.columns):
        wrong = f"{len(cells)} fields where the header has {len(found.columns)}"
        found.left_out.append((number, f"{wrong}; a | in a name?"))
        return {}
    return dict(zip(found.columns, map(str.strip, cells), strict=True))


def _is_header(line: str) -> bool:
    words = {word.strip().lower() for word in line.split("|")}
    return {"jobid", "submit"} <= words


def _header(line: str, number: int) -> tuple[str, ...]:
    try:
        return read_header(line)
    except HeaderError as error:
        raise HeaderError(f"{number}: {error}") from None


def _take(found: Found, rows: list[Row], cells: dict[str, str], number: int) -> None:
    """Keep a record if a job can be made of it."""
    try:
        row = read_row(cells, number)
    except RowError as error:
        found.left_out.append((number, str(error)))
        return
    problem = _problem(row)
    if problem:
        found.left_out.append((number, f"job {cells['jobid']} {problem}"))
    else:
        rows.append(row)


def _problem(row: Row) -> str:
    """Return why no job can be made of a record, or nothing."""
    known = ENDED | GIVEN_UP | CUT_SHORT | UNFINISHED
    if row.state not in known and row.state != "PENDING":
        return f"has the state {row.state}, which no replay knows"
    if row.state == "PENDING":
        return "is PENDING: how long it will run nobody knows"
    if not row.ran and row.state != "CANCELLED":
        return f"is {row.state} and never had nodes"
    if not row.ran and row.end_s < 0:
        return "was cancelled before it started, and no End says when"
    return ""


def _with_uids(rows: list[Row]) -> list[Row]:
    """Return the records with the uids of their users, if they tell: mostly of who cancelled."""
    told: dict[str, Counter[int]] = {}
    for row in rows:
        found = told.setdefault(row.user, Counter())
        if row.uid >= 0:
            found[row.uid] += len(rows)
        elif row.cancel_uid > 0:
            found[row.cancel_uid] += 1
    uids = {user: counts.most_common(1)[0][0] for user, counts in told.items() if counts}
    return [attrs.evolve(row, uid=uids.get(row.user, -1)) for row in rows]


def _key(row: Row) -> tuple[int, tuple[int, ...]]:
    return (row.job_id, row.tasks)


def _jobs(found: Found, rows: list[Row], with_steps: set[str]) -> list[Job]:
    """Join the runs of each job; an id that was used again is another job."""
    by_key: dict[tuple[int, tuple[int, ...]], list[list[Row]]] = {}
    for row in sorted(rows, key=lambda row: (row.submit_s, row.line)):
        runs = by_key.setdefault(_key(row), [])
        if runs and runs[-1][-1].state in GIVEN_UP:
            runs[-1].append(row)
        else:
            runs.append([row])
    # Without Slurm's lines of steps it is not known which jobs had any.
    know = found.steps > 0
    jobs = [
        Job(runs=tuple(each), has_steps=not know or _name(each[0]) in with_steps)
        for runs in by_key.values()
        for each in runs
    ]
    return sorted(
        jobs, key=lambda job: (job.runs[0].submit_s, job.runs[0].job_id, job.runs[0].line)
    )


def _name(row: Row) -> str:
    return f"{row.job_id}_{row.tasks[0]}" if row.tasks else str(row.job_id)
