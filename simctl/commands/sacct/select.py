"""Which records sacct shows: the jobs asked for, and what states mean within a span of time."""

import re
from collections.abc import Collection, Iterable
from typing import Final, TypeVar

import attrs
import msgspec

from simctl.commands.arguments.options import UsageError
from simctl.commands.sacct.lines import Line, View
from simctl.wire.accounts import JobAccount, StepAccount, step_label
from simctl.wire.arrays import parse_array, parse_tasks
from simctl.wire.hostlist import expand
from simctl.wire.ids import SECOND
from simctl.wire.states import JobBase

_ID: Final = re.compile(r"(\d+)(?:_(\d+|\[[\d,:-]+\]))?(?:\.(\d+|batch|extern|interactive))?")

_JOBS: Final = re.compile(r"(?:\[[^\]]*\]|[^,])+")
"""Words with commas between them; those within brackets do not divide."""

_SHORT_STATES: Final = {
    "bf": "BOOT_FAIL",
    "ca": "CANCELLED",
    "cd": "COMPLETED",
    "cf": "CONFIGURING",
    "cg": "COMPLETING",
    "dl": "DEADLINE",
    "f": "FAILED",
    "nf": "NODE_FAIL",
    "oom": "OUT_OF_MEMORY",
    "pd": "PENDING",
    "pr": "PREEMPTED",
    "r": "RUNNING",
    "rd": "RESV_DEL_HOLD",
    "rf": "REQUEUE_FED",
    "rh": "REQUEUE_HOLD",
    "rq": "REQUEUED",
    "rs": "RESIZING",
    "rv": "REVOKED",
    "s": "SUSPENDED",
    "se": "SPECIAL_EXIT",
    "si": "SIGNALING",
    "so": "STAGE_OUT",
    "st": "STOPPED",
    "to": "TIMEOUT",
}
_LONG_STATES: Final = frozenset(_SHORT_STATES.values())


@attrs.frozen
class Wanted:
    """One word of ``-j``: a job, an array, some of its tasks, or one step of any of these."""

    job_id: int
    tasks: tuple[int, ...] = ()
    step: str = ""

    def means(self, job: JobAccount) -> bool:
        """Return whether it means a job; an array's id means all of its tasks."""
        if self.tasks:
            in_array = self.job_id in (job.array_job_id, job.job_id)
            return in_array and job.array_task_id in self.tasks
        return self.job_id in (job.job_id, job.array_job_id)


@attrs.frozen(kw_only=True)
class Query:
    """What is asked for; whatever is empty is not asked about. Moments are 0 for none."""

    wanted: tuple[Wanted, ...] = ()
    uids: Collection[int] = ()
    gids: Collection[int] = ()
    accounts: Collection[str] = ()
    partitions: frozenset[str] = frozenset()
    names: Collection[str] = ()
    nodes: frozenset[str] = frozenset()
    states: tuple[str, ...] = ()
    start_s: int = 0
    end_s: int = 0
    node_counts: range = range(0)
    cpu_counts: range = range(0)
    associations: Collection[str] = ()
    reasons: Collection[str] = ()
    wckeys: Collection[str] = ()
    limits_min: range = range(0)
    expands: bool = False
    """Whether each task of an array that waits is shown by itself."""

    truncated: bool = False
    """Whether times outside of the span are shown as its ends."""

    duplicates: bool = False
    jobs_only: bool = False


def read_wanted(text: str) -> tuple[Wanted, ...]:
    """Read the value of ``-j``.

    Raises:
        UsageError: A word of it names no job or step.
    """
    return tuple(_wanted(word) for word in _JOBS.findall(text))


def _wanted(word: str) -> Wanted:
    match = _ID.fullmatch(word)
    if match is None:
        raise UsageError(1, f"sacct: fatal: Bad job/step specified: {word}")
    try:
        tasks = parse_tasks(match[2]) if match[2] else ()
    except ValueError:
        raise UsageError(1, f"sacct: fatal: Bad job/step specified: {word}") from None
    return Wanted(int(match[1]), tasks, match[3] or "")


def read_states(text: str) -> tuple[str, ...]:
    """Read the value of ``-s``.

    Raises:
        UsageError: A word of it is no state.
    """
    return tuple(_state(word) for word in filter(None, text.split(",")))


def _state(word: str) -> str:
    if word.upper() in _LONG_STATES:
        return word.upper()
    if word.lower() not in _SHORT_STATES:
        raise UsageError(1, f"sacct: fatal: unrecognized job state value '{word}'")
    return _SHORT_STATES[word.lower()]


def window(query: Query, start_s: int | None, end_s: int | None, now_s: int) -> tuple[int, int]:
    """Return the span of time that is asked about; (0, 0) for any.

    Without jobs or states it is today; a state is asked about as of now; jobs at any time.
    """
    if query.states:
        if start_s is None:
            start_s = 0 if query.wanted else now_s if end_s is None else end_s
        if end_s is None:
            end_s = start_s if start_s and start_s != now_s else now_s
        return start_s, end_s
    if query.wanted and start_s is None and end_s is None:
        return 0, 0
    if start_s is None:
        start_s = 0 if query.wanted else now_s - now_s % _DAY_S
    return start_s, now_s if end_s is None else end_s


_DAY_S: Final = 86_400


def choose(
    query: Query, view: View, jobs: Iterable[JobAccount], steps: Iterable[StepAccount]
) -> list[Line]:
    """Return the lines to show: jobs in the order in which they came, each before its steps."""
    found = [job for job in jobs if _is_meant(query, job) and _is_then(query, view, job)]
    found.sort(key=lambda job: (job.db_index == 0, job.db_index))
    if not query.duplicates:
        latest = {job.job_id: job for job in found}
        found = [job for job in found if latest[job.job_id] is job]
    found = [job for job in found if _is_on(query, job)]
    by_run: dict[int, list[StepAccount]] = {}
    for step in steps:
        by_run.setdefault(step.db_index, []).append(step)
    lines: list[Line] = []
    for job in found:
        own = sorted(by_run.get(job.db_index, ()), key=lambda step: step.step_id)
        lines += _lines(query, view, job, own if job.db_index else [])
    return lines


def _lines(query: Query, view: View, job: JobAccount, steps: list[StepAccount]) -> list[Line]:
    words = [word for word in query.wanted if word.means(job)]
    whole = not query.wanted or any(not word.step for word in words)
    picked = {word.step for word in words}
    shown = _within(query, view, job)
    lines = [Line(view, each) for each in _expanded(query, shown)] if whole else []
    if query.jobs_only:
        return lines
    return lines + [
        Line(view, shown, _within(query, view, step))
        for step in steps
        if whole or step_label(step.step_id) in picked
    ]


def _expanded(query: Query, job: JobAccount) -> list[JobAccount]:
    """Return a job, or if that is asked for each of the tasks that it stands for."""
    if not query.expands or not job.array_tasks:
        return [job]
    replace = msgspec.structs.replace
    tasks, _ = parse_array(job.array_tasks.strip("[]"))
    return [replace(job, array_task_id=task, array_tasks="") for task in tasks]


Record = TypeVar("Record", JobAccount, StepAccount)


def _within(query: Query, view: View, record: Record) -> Record:
    """Return a record with its times cut off at the ends of the span, if that is asked for."""
    if not query.truncated or not query.start_s:
        return record
    first_us = (query.start_s - view.epoch_s) * SECOND
    last_us = (query.end_s - view.epoch_s) * SECOND
    start_us, end_us = record.start_us, record.end_us
    if 0 <= start_us < first_us:
        start_us = first_us
    if end_us < 0 or end_us > last_us:
        end_us = last_us
    start_us = end_us if start_us < 0 else start_us
    return msgspec.structs.replace(record, start_us=start_us, end_us=end_us)


def _is_meant(query: Query, job: JobAccount) -> bool:
    """Return whether a job is one of those asked for, at whatever time."""
    if query.wanted and not any(word.means(job) for word in query.wanted):
        return False
    if query.uids and job.user_id not in query.uids:
        return False
    if query.gids and job.group_id not in query.gids:
        return False
    if query.accounts and job.account not in query.accounts:
        return False
    if query.partitions and not query.partitions & set(job.partition.split(",")):
        return False
    if query.names and job.name not in query.names:
        return False
    if query.wckeys and job.wckey not in query.wckeys:
        return False
    if query.associations and "0" not in query.associations:
        # No job has an association, which sacct shows as 0.
        return False
    if query.reasons and job.reason.lower() not in query.reasons:
        return False
    if query.limits_min and job.time_limit_min not in query.limits_min:
        return False
    if query.node_counts and job.alloc_nodes not in query.node_counts:
        return False
    return not query.cpu_counts or job.alloc_cpus in query.cpu_counts


def _is_on(query: Query, job: JobAccount) -> bool:
    """Return whether a job had one of the nodes; earlier runs of it are not looked at."""
    return not query.nodes or not query.nodes.isdisjoint(expand(job.node_list))


def _is_then(query: Query, view: View, job: JobAccount) -> bool:
    """Return whether a job was there, or in a state asked for, within the span of time."""
    span = _Span(view, query.start_s, query.end_s, job)
    if query.states:
        return any(span.was(state) for state in query.states)
    if not query.start_s and not query.end_s:
        return True
    return span.was_there()


class _Span:
    """A span of time, and the moments of a job within it; all in seconds, 0 for none."""

    def __init__(self, view: View, start_s: int, end_s: int, job: JobAccount) -> None:
        self.start_s, self.end_s = start_s, end_s
        self._job = job

        def clock_s(moment_us: int) -> int:
            return view.clock_s(moment_us) if moment_us >= 0 else 0

        self._eligible_s = clock_s(job.eligible_us)
        self._started_s = clock_s(job.start_us)
        self._ended_s = clock_s(job.end_us)

    def _holds(self, moment_s: int) -> bool:
        return self.start_s <= moment_s <= self.end_s

    def was_there(self) -> bool:
        """Return whether the job could start before the span's end, and was not over before it."""
        if not self._eligible_s or self._eligible_s >= self.end_s > 0:
            return False
        return not self._ended_s or self._ended_s >= self.start_s

    def was(self, state: str) -> bool:
        """Return whether the job was in a state: ended so in the span, waited or ran in it."""
        if state == JobBase.PENDING.name:
            until_s = self._started_s or self._ended_s
            return bool(self._eligible_s) and self._overlaps(self._eligible_s, until_s)
        if state == JobBase.RUNNING.name:
            return bool(self._started_s) and self._overlaps(self._started_s, self._ended_s)
        if state == JobBase.SUSPENDED.name:
            return self._job.state == state or (
                self._job.suspended_us > 0 and self._overlaps(self._started_s, self._ended_s)
            )
        return self._job.state == state and bool(self._ended_s) and self._holds(self._ended_s)

    def _overlaps(self, first_s: int, last_s: int) -> bool:
        """Return whether something that began and may have ended was going on during the span."""
        if first_s > self.end_s:
            return False
        return not last_s or last_s >= self.start_s
