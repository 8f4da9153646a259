"""Hold the expectations of a scenario against the events and the jobs of its run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern, value_text
from simctl.scenario.faults import FailFault, HangFault, RaiseFault
from simctl.scenario.holding.evidence import Evidence, look_trouble
from simctl.scenario.holding.orders import Trouble, order_trouble
from simctl.scenario.holding.recorded import Recorded, describe
from simctl.scenario.model import (
    CountExpect,
    Entry,
    Expectation,
    FaultEntry,
    JobExpect,
    LookingExpect,
    NeverExpect,
    OrderExpect,
    When,
)
from simctl.scenario.pattern_words import Jobs, of_jobs
from simctl.wire.hostlist import HostlistError, expand


@attrs.frozen(kw_only=True)
class Result:
    """Whether an expectation held; *detail* says why not, in lines, and *events* show it."""

    text: str
    line: int
    held: bool
    detail: str = ""
    slip: bool = False
    """Whether it is wrong input: a pattern about a job that the run never had."""
    events: tuple[Event, ...] = ()
    """Those that show what is wrong."""


@attrs.frozen(kw_only=True)
class _Row:
    """A job of the run, as `run --json` prints it."""

    fields: Mapping[str, Any]

    def is_called(self, job: str) -> bool:
        array, underscore, task = job.partition("_")
        if underscore:
            return self.text("array_job_id") == array and self.text("array_task_id") == task
        return self.text("job_id") == str(int(job))

    def text(self, name: str) -> str:
        return value_text(self.fields.get(name))


def check(
    expectations: Iterable[Expectation],
    events: Sequence[Event],
    jobs: Sequence[Mapping[str, Any]],
    *,
    there: Jobs | None = None,
    evidence: Evidence | None = None,
) -> tuple[Result, ...]:
    """Tell of each expectation whether it held.

    Args:
        expectations: those of the scenario.
        events: all events of the run, in the order of `seq`.
        jobs: the rows of jobs that `run --json` prints.
        there: the jobs that there were, if the run came to its end: what is about another is no
            expectation that holds.
        evidence: what the run has to show besides; without it what asks for that does not hold.
    """
    run = Recorded(events)
    rows = [_Row(fields=job) for job in jobs]
    return tuple(
        (there and _about_nobody(expectation, there))
        or _check_one(expectation, run, rows, evidence)
        for expectation in expectations
    )


def _about_nobody(expectation: Expectation, there: Jobs) -> Result | None:
    """Return what is to be said of a pattern about a job that never was; None of any other."""
    if isinstance(expectation, JobExpect | LookingExpect):
        return None
    trouble = next(filter(None, (of_jobs(each, there) for each in _patterns(expectation))), "")
    if not trouble:
        return None
    return Result(
        text=expectation.text, line=expectation.line, held=False, detail=trouble, slip=True
    )


def _patterns(expectation: OrderExpect | NeverExpect | CountExpect) -> tuple[Pattern, ...]:
    if isinstance(expectation, OrderExpect):
        return (expectation.within, *(entry.pattern for entry in expectation.entries))
    return (expectation.pattern,)


def check_timeline(entries: Iterable[Entry], there: Jobs) -> Iterator[Result]:
    """Tell of entries that wait for something of a job that never was: they never happen."""
    for entry in entries:
        patterns = [entry.moment.pattern] if isinstance(entry.moment, When) else []
        if isinstance(entry, FaultEntry) and isinstance(
            entry.fault, FailFault | RaiseFault | HangFault
        ):
            patterns.append(entry.fault.pattern)
        for pattern in patterns:
            if trouble := of_jobs(pattern, there):
                yield Result(
                    text=f"{entry.label}: `{pattern.text}`",
                    line=entry.line,
                    held=False,
                    detail=trouble,
                    slip=True,
                )


def _check_one(
    expectation: Expectation, run: Recorded, rows: list[_Row], evidence: Evidence | None
) -> Result:
    if isinstance(expectation, JobExpect):
        trouble = _job_trouble(expectation, run, rows)
    elif isinstance(expectation, OrderExpect):
        trouble = order_trouble(expectation, run)
    elif isinstance(expectation, NeverExpect):
        trouble = _never_trouble(expectation, run)
    elif isinstance(expectation, CountExpect):
        trouble = _count_trouble(expectation, run)
    else:
        detail = look_trouble(expectation, evidence)
        trouble = Trouble(detail) if detail else None
    told, line = expectation.text, expectation.line
    if trouble is None:
        return Result(text=told, line=line, held=True)
    return Result(text=told, line=line, held=False, detail=trouble.text, events=trouble.events)


def _job_trouble(expectation: JobExpect, run: Recorded, rows: list[_Row]) -> Trouble | None:
    row = next((row for row in rows if row.is_called(expectation.job)), None)
    if row is None:
        there = ", ".join(row.text("job_id") for row in rows) or "none"
        return Trouble(f"there is no job {expectation.job}; the jobs of the run: {there}")
    wrong = [
        f"{name} is {row.text(name)}, not {wanted}"
        for name, wanted in expectation.fields
        if not _same(name, row.text(name), wanted)
    ]
    if not wrong:
        return None
    states = run.by_name.get("job_state", ())
    last = [event for event in states if row.text("job_id") == str(event.job)][-1:]
    return Trouble("; ".join(wrong), tuple(last))


def _same(name: str, found: str, wanted: str) -> bool:
    if found == wanted:
        return True
    if name == "state" and "|" not in wanted:
        return wanted in found.split("|")
    return name == "nodes" and _hosts(found) == _hosts(wanted)


def _hosts(text: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except HostlistError:
        return (text,)


def _never_trouble(expectation: NeverExpect, run: Recorded) -> Trouble | None:
    found = run.matches(expectation.pattern)
    if not found:
        return None
    more = f"; {len(found)} events match in all" if found[1:] else ""
    return Trouble(f"the first that matches{more}:\n{describe(found[0])}", (found[0],))


def _count_trouble(expectation: CountExpect, run: Recorded) -> Trouble | None:
    found = run.matches(expectation.pattern)
    if expectation.least <= len(found) <= expectation.most:
        return None
    if not found:
        return Trouble(f"0 events match: {run.absent(expectation.pattern)}")
    ends = dict.fromkeys((found[0].seq, found[-1].seq))
    lines = [describe(event) for event in found if event.seq in ends]
    noun = "event matches" if len(found) == 1 else "events match; the first and the last"
    return Trouble("\n".join([f"{len(found)} {noun}:", *lines]), (found[0], found[-1]))
