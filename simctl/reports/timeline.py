"""The burst buffers of a run as a picture in text: a row for each job, time from left to right.

`BufferHistory` collects what the picture needs while a run goes on; `timeline` makes the lines.
"""

import enum
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.scenario.durations import format_us
from simctl.wire.states import JobBase

WIDTH: Final = 80
_MOST_ROWS: Final = 40
_LABEL_MAX: Final = 20
_TICK_MIN: Final = 12
"""Columns at the least from one tick to the next."""


class Phase(enum.Enum):
    """What a job or its burst buffer is at: the mark, and the words of the legend."""

    WAIT = (".", "waits")
    STAGE_IN = (">", "stages in")
    PRE_RUN = ("-", "pre-run")
    RUN = ("#", "runs")
    STAGE_OUT = ("<", "stages out")
    TEARDOWN = ("x", "teardown")

    @property
    def mark(self) -> str:
        """Return the character that stands for it."""
        return self.value[0]


@attrs.frozen
class Interval:
    """A phase of a job, from one moment to another, in virtual microseconds."""

    phase: Phase
    start_us: int
    end_us: int


@attrs.frozen
class Row:
    """A job, and its phases in their order; between two of them nothing may be going on."""

    label: str
    intervals: tuple[Interval, ...]


_OF_BUFFER: Final = {
    "STAGING_IN": Phase.STAGE_IN,
    "PRE_RUN": Phase.PRE_RUN,
    "POST_RUN": Phase.STAGE_OUT,
    "STAGING_OUT": Phase.STAGE_OUT,
    "TEARDOWN": Phase.TEARDOWN,
    "TEARDOWN_FAIL": Phase.TEARDOWN,
}
"""States of a burst buffer that say what is going on, whatever the job's state is."""

_WORK: Final = (Phase.STAGE_IN, Phase.STAGE_OUT, Phase.TEARDOWN)
"""Phases that are shown even if they took no time at all."""


def phase_of(job_state: str, buffer_state: str) -> Phase | None:
    """Return what is going on while a job and its burst buffer are in two states; None if nothing.

    Pure. The burst buffer counts for more: its stage-out goes on when the job is over, and while
    the job waits for its next run.
    """
    if buffer_state in _OF_BUFFER:
        return _OF_BUFFER[buffer_state]
    base, _, flags = job_state.partition("|")
    if "CONFIGURING" in flags:
        return Phase.PRE_RUN
    if base == JobBase.RUNNING.name:
        return Phase.RUN
    return Phase.WAIT if base in (JobBase.PENDING.name, JobBase.SUSPENDED.name) else None


@attrs.define
class _Course:
    """What one job has been through so far."""

    job_state: str = ""
    buffer_state: str = ""
    has_buffer: bool = False
    phase: Phase | None = None
    since_us: int = 0
    intervals: list[Interval] = attrs.field(factory=list)

    def move(self, now_us: int) -> None:
        """Note what is going on from now on."""
        phase = phase_of(self.job_state, self.buffer_state)
        if phase is self.phase:
            return
        self.intervals += _lasted(self.phase, self.since_us, now_us)
        self.phase, self.since_us = phase, now_us

    def until(self, end_us: int) -> tuple[Interval, ...]:
        """Return the phases as they stand at a moment."""
        return (*self.intervals, *_lasted(self.phase, self.since_us, end_us))

    @property
    def over(self) -> bool:
        """Return whether the job has ended."""
        base = self.job_state.partition("|")[0]
        return base in JobBase.__members__ and JobBase[base] > JobBase.SUSPENDED


def _lasted(phase: Phase | None, start_us: int, end_us: int) -> list[Interval]:
    if phase is None or (start_us == end_us and phase not in _WORK):
        return []
    return [Interval(phase, start_us, end_us)]


class BufferHistory:
    """A sink of the trace that keeps the phases of jobs with burst buffers, and nothing else."""

    def __init__(self) -> None:
        self._courses: dict[int, _Course] = {}

    def __call__(self, event: Event) -> None:
        """Take an event in; most are passed over."""
        if event.kind != "state" or event.job is UNSET or event.args is UNSET:
            return
        if event.name not in ("job_state", "bb_state"):
            return
        course = self._courses.setdefault(event.job, _Course())
        if event.name == "bb_state":
            course.buffer_state = event.args["to"]
            course.has_buffer = True
        else:
            course.job_state = event.args["to"]
        course.move(event.time_us)
        if course.over and not course.has_buffer:
            del self._courses[event.job]

    def rows(self, end_us: int, labels: Mapping[int, str]) -> list[Row]:
        """Return the rows of jobs with burst buffers, in the order of *labels*, then by job id.

        What goes on still ends at *end_us*.
        """
        places = {job_id: place for place, job_id in enumerate(labels)}
        order = sorted(self._courses, key=lambda job_id: (places.get(job_id, len(places)), job_id))
        return [
            Row(labels.get(job_id, str(job_id)), self._courses[job_id].until(end_us))
            for job_id in order
            if self._courses[job_id].has_buffer
        ]


# From rows to lines. Pure.


@attrs.frozen(kw_only=True)
class _Scale:
    """Which columns stand for which time."""

    start_us: int
    span_us: int
    columns: int

    def column(self, time_us: int) -> int:
        """Return the column at which a moment lies, from 0 to the number of columns."""
        return (time_us - self.start_us) * self.columns // self.span_us


def _scale(start_us: int, end_us: int, columns: int) -> _Scale:
    """Return the columns of a span of time, from a round moment on if one is near."""
    scale = _Scale(start_us=start_us, span_us=max(1, end_us - start_us), columns=columns)
    past_us = start_us % _step_us(scale)
    if past_us * _NEAR > scale.span_us:
        return scale
    return attrs.evolve(scale, start_us=start_us - past_us, span_us=scale.span_us + past_us)


_NEAR: Final = 20
"""A round moment is near if it is no farther than one part in so many of the whole."""


def timeline(rows: Sequence[Row]) -> list[str]:
    """Return the picture: a legend, an axis, a row for each job; nothing without jobs.

    No line is wider than 80 columns. A phase too short for its column has one all the same, at the
    cost of its neighbours, as long as there are as many columns as phases.
    """
    shown = [row for row in rows if row.intervals][:_MOST_ROWS]
    if not shown:
        return []
    width = min(_LABEL_MAX, max(len(row.label) for row in shown))
    start_us = min(row.intervals[0].start_us for row in shown)
    end_us = max(each.end_us for row in shown for each in row.intervals)
    scale = _scale(start_us, end_us, WIDTH - width - 1)
    used = {each.phase for row in shown for each in row.intervals}
    lines = [
        "burst buffers: " + "  ".join(f"{p.mark} {p.value[1]}" for p in Phase if p in used),
        f"{'':{width}} {_axis(scale)}".rstrip(),
        *(f"{_cut(row.label, width):{width}} {_bar(row, scale)}".rstrip() for row in shown),
    ]
    more = sum(1 for row in rows if row.intervals) - len(shown)
    return [*lines, f"... and {more} more"] if more else lines


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _bar(row: Row, scale: _Scale) -> str:
    """Return the marks of a row."""
    bounds = _bounds(row.intervals, scale)
    cells = [" "] * scale.columns
    for each, (first, end) in zip(row.intervals, bounds, strict=True):
        cells[first:end] = each.phase.mark * (end - first)
    return "".join(cells)


def _bounds(intervals: Sequence[Interval], scale: _Scale) -> list[tuple[int, int]]:
    """Return the first column of each interval and the one behind its last, in order.

    Each has one at the least if there is room: those that need it push the later ones to the
    right, and what is pushed over the edge pushes back.
    """
    least = 1 if len(intervals) <= scale.columns else 0
    bounds = []
    free = 0
    for each in intervals:
        first = max(free, scale.column(each.start_us))
        free = max(first + least, scale.column(each.end_us))
        bounds.append((first, free))
    edge = scale.columns
    for place in reversed(range(len(bounds))):
        first, end = bounds[place]
        end = min(end, edge)
        edge = min(first, end - least)
        bounds[place] = (edge, end)
    return bounds


def _axis(scale: _Scale) -> str:
    """Return a mark and the time at round moments, as many as have room."""
    step_us = _step_us(scale)
    line = ""
    tick_us = -(-scale.start_us // step_us) * step_us
    while tick_us <= scale.start_us + scale.span_us:
        column, label = scale.column(tick_us), f"|{_short(tick_us)}"
        if column >= len(line) and column + len(label) <= scale.columns:
            line = line.ljust(column) + label
        tick_us += step_us
    return line


_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_STEPS_US: Final[tuple[int, ...]] = (
    *(digit * int(10**power) for power in range(6) for digit in (1, 2, 5)),
    *(_SECOND * seconds for seconds in (1, 2, 5, 10, 15, 30)),
    *(_SECOND * 60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(_SECOND * 3600 * hours for hours in (1, 2, 3, 6, 12)),
)


def _step_us(scale: _Scale) -> int:
    """Return the shortest round time from tick to tick that leaves room for what stands there."""
    least_us = scale.span_us * _TICK_MIN / scale.columns
    step_us = next((step_us for step_us in _STEPS_US if step_us >= least_us), 0)
    if step_us:
        return step_us
    days = 1
    while days * _DAY < least_us:
        days *= 2
    return days * _DAY


def _short(time_us: int) -> str:
    """Return a moment; fractions of a second are left out of one that has minutes."""
    text = format_us(time_us)
    return text.partition(".")[0] if ":" in text else text


__all__ = ["BufferHistory", "Interval", "Phase", "Row", "phase_of", "timeline"]
