"""Runs in databases that `simctl run --db` wrote: jobs, nodes, and how they were used."""

import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import attrs

from simctl.reports.database_tables import APPLICATION_ID, FORMAT
from simctl.status import InputError

LOG: Final = "a workload log"
"""What a recorded run says it was recorded in, where its jobs are known by a log's numbers."""

_HEAD: Final = b"SQLite format 3\0"


@attrs.frozen(kw_only=True)
class JobRun:
    """A run of a job: several of one that was requeued; moments in microseconds, None if never."""

    job_id: int
    label: str
    """Its number; of a task, that of the array and its own."""
    name: str
    user: str
    state: str
    submit_us: int
    eligible_us: int
    start_us: int | None
    end_us: int | None
    suspended_us: int
    cpus: int
    nodes: str

    def moved(self, by_us: int) -> "JobRun":
        """Return the run of the job at other moments."""
        return attrs.evolve(
            self,
            submit_us=self.submit_us + by_us,
            eligible_us=self.eligible_us + by_us,
            start_us=None if self.start_us is None else self.start_us + by_us,
            end_us=None if self.end_us is None else self.end_us + by_us,
        )

    @property
    def wait_us(self) -> int | None:
        """How long it could have started and did not; None if it never did."""
        return None if self.start_us is None else max(0, self.start_us - self.eligible_us)

    @property
    def ran_us(self) -> int | None:
        """How long it ran; None if it has not ended, or never started."""
        if self.start_us is None or self.end_us is None:
            return None
        return max(0, self.end_us - self.start_us - self.suspended_us)


@attrs.frozen(kw_only=True)
class StoredRun:
    """What a database tells of a run."""

    name: str
    """The file's name."""
    facts: dict[str, Any]
    nodes: tuple[str, ...]
    cpus: int
    """Of all nodes together."""
    jobs: tuple[JobRun, ...]
    node_states: tuple[tuple[int, str, str], ...]
    """When a node's state changed, which node's, and into what."""

    @property
    def end_us(self) -> int:
        """When it was over."""
        moments = [each.end_us or each.start_us or each.submit_us for each in self.jobs]
        return max((*moments, 0)) or int(self.facts.get("end_time_us") or 0)

    @property
    def recorded(self) -> str:
        """What a site has recorded it in; empty of a run that was simulated."""
        return str(self.facts.get("recorded", ""))

    @property
    def whole(self) -> bool:
        """Whether the run came to its end."""
        return bool(self.facts.get("complete"))


def read_run(path: str) -> StoredRun:
    """Return the run in a database.

    Raises:
        InputError: It cannot be read, or is none of ours.
    """
    _check_head(path)
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as file:
            return _read(file, path)
    except sqlite3.Error as error:
        raise InputError(f"{path}: cannot read it: {error}") from error


def _check_head(path: str) -> None:
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(100)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot read it: {why}") from error
    ours = head[:16] == _HEAD and int.from_bytes(head[68:72], "big") == APPLICATION_ID
    if not ours:
        raise InputError(
            f"{path}: no database of a run: `simctl run SCENARIO --db FILE` writes one"
        )
    version = int.from_bytes(head[60:64], "big")
    if version > FORMAT:
        raise InputError(
            f"{path}: a database of version {version}; this simctl reads up to {FORMAT}: read it "
            "with the simctl that wrote it"
        )


def _read(file: sqlite3.Connection, path: str) -> StoredRun:
    facts = dict(file.execute("SELECT key, value FROM run"))
    nodes = list(file.execute("SELECT name, cpus FROM nodes ORDER BY rowid"))
    states = file.execute("SELECT time_us, node, after FROM node_states ORDER BY seq")
    return StoredRun(
        name=Path(path).name,
        facts=facts,
        nodes=tuple(str(name) for name, _ in nodes),
        cpus=sum(cpus or 0 for _, cpus in nodes),
        jobs=tuple(_jobs(file)),
        node_states=tuple((when, str(node), str(after)) for when, node, after in states),
    )


def _jobs(file: sqlite3.Connection) -> Iterator[JobRun]:
    rows = file.execute(
        "SELECT job_id, array_job_id, array_task_id, name, user, state, submit_us, eligible_us, "
        "start_us, end_us, suspended_us, cpus, nodes FROM jobs ORDER BY rowid"
    )
    for (
        job,
        array,
        task,
        name,
        user,
        state,
        submit,
        eligible,
        start,
        end,
        halt,
        cpus,
        nodes,
    ) in rows:
        yield JobRun(
            job_id=job,
            label=str(job) if task is None else f"{array}_{task}",
            name=name or "",
            user=user or "",
            state=state or "",
            submit_us=submit or 0,
            eligible_us=submit if eligible is None else eligible,
            start_us=start,
            end_us=end,
            suspended_us=halt or 0,
            cpus=cpus or 0,
            nodes=nodes or "",
        )


def first_runs(run: StoredRun) -> dict[str, JobRun]:
    """Return the first run of each job, by its label: how long it waited is told by that."""
    found: dict[str, JobRun] = {}
    for job in run.jobs:
        found.setdefault(job.label, job)
    return found


def use_of(run: StoredRun) -> float | None:
    """Return the part of all cpu time that jobs had, up to the end of the last; None if unknown."""
    begin = min((job.submit_us for job in run.jobs), default=0)
    end_us = run.end_us
    had_us = sum(job.cpus * ran for job in run.jobs if (ran := _until(job, end_us)) is not None)
    span_us = (end_us - begin) * run.cpus
    return had_us / span_us if span_us > 0 else None


def _until(job: JobRun, end_us: int) -> int | None:
    if job.start_us is None:
        return None
    return (end_us if job.end_us is None else job.end_us) - job.start_us - job.suspended_us


def percentile(values: Sequence[float], part: float) -> float:
    """Return the least of all sorted values that so large a part of them does not exceed."""
    return values[max(0, math.ceil(len(values) * part) - 1)]
