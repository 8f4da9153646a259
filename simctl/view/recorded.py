"""Runs that a site has recorded: a workload log with its waits, or what `sacct -P` printed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from simctl.files import read_lines
from simctl.importing.sacct import read_sacct
from simctl.importing.sacct_rows import Row
from simctl.limits import SACCT_BYTES
from simctl.scenario.swf import SwfError, SwfJob, read_swf
from simctl.status import InputError
from simctl.view.runs import LOG, JobRun, StoredRun
from simctl.wire.hostlist import compress
from simctl.wire.ids import SECOND

_SQLITE: Final = b"SQLite format 3\0"


def is_recorded(path: str) -> bool:
    """Return whether a file is a text, and so no database.

    Raises:
        InputError: It cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(16) != _SQLITE
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot read it: {why}") from error


def read_recorded(path: str) -> StoredRun:
    """Return what a site has recorded; the first submission is moment 0.

    Raises:
        InputError: The file is neither a workload log nor what `sacct -P` prints, or tells of no
            job that ran.
    """
    first = _first_line(path)
    if "|" in first:
        jobs, nodes = _of_sacct(path)
        kind = "accounting"
    elif first[:1].isdigit() or first[:1] in ("-", ";"):
        jobs, nodes = list(_of_log(path)), ()
        kind = LOG
    else:
        raise InputError(
            f"{path}: neither a database of `simctl run --db` or `simctl sweep`, nor a workload "
            "log (SWF), nor what `sacct -P -o JobID,Submit,Start,End,...` prints"
        )
    if not any(job.start_us is not None for job in jobs):
        raise InputError(f"{path}: it tells of no job when it started")
    begin = min(job.submit_us for job in jobs)
    return StoredRun(
        name=Path(path).name,
        facts={"recorded": kind, "complete": 1},
        nodes=nodes,
        cpus=0,
        jobs=tuple(job.moved(-begin) for job in jobs),
        node_states=(),
    )


def _first_line(path: str) -> str:
    """Return the first line that says something."""
    try:
        for line in read_lines(path, SACCT_BYTES):
            text = line.decode("utf-8-sig", errors="replace").strip()
            if text and text[0] != ";":
                return text
    except OSError as error:
        raise InputError(f"{path}: cannot read it: {error.strerror}") from error
    return ""


def _of_log(path: str) -> Iterator[JobRun]:
    """Give the jobs of a log; they are called as its replay calls them."""
    try:
        log = read_swf(path)
    except SwfError as error:
        raise InputError(str(error)) from error
    for job in log.replay_order():
        start = None if job.wait_s is None else job.submit_us + round(job.wait_s * SECOND)
        yield _log_job(job, start)


def _log_job(job: SwfJob, start_us: int | None) -> JobRun:
    return JobRun(
        job_id=job.number,
        label=f"swf{job.number}",
        name=f"swf{job.number}",
        user=f"user{max(job.user_id, 0)}",
        state="COMPLETED",
        submit_us=job.submit_us,
        eligible_us=job.submit_us,
        start_us=start_us,
        end_us=None if start_us is None else start_us + job.run_us,
        suspended_us=0,
        cpus=job.processors,
        nodes="",
    )


def _of_sacct(path: str) -> tuple[list[JobRun], tuple[str, ...]]:
    nodes: dict[str, None] = {}
    jobs: list[JobRun] = []
    for job in read_sacct(path).jobs:
        for row in job.runs:
            nodes.update(dict.fromkeys(row.node_list))
            jobs += _row_jobs(row)
    return jobs, tuple(nodes)


def _row_jobs(row: Row) -> Iterator[JobRun]:
    for task in row.tasks or (None,):
        start = row.start_s * SECOND if row.start_s >= 0 and row.ran else None
        end = row.end_s if row.end_s >= 0 else row.start_s + row.elapsed_s
        yield JobRun(
            job_id=row.job_id,
            label=str(row.job_id) if task is None else f"{row.job_id}_{task}",
            name=row.name,
            user=row.user,
            state=row.state,
            submit_us=row.submit_s * SECOND,
            eligible_us=max(row.eligible_s, row.submit_s) * SECOND,
            start_us=start,
            end_us=None if start is None else end * SECOND,
            suspended_us=0,
            cpus=row.cpus,
            nodes=compress(row.node_list) if row.node_list else "",
        )
