"""The picture of burst buffers that ends a run: phases from states, rows from phases."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simctl.kernel.events import Event
from simctl.reports.timeline import BufferHistory, Interval, Phase, Row, phase_of, timeline

S = 1_000_000


def row(label: str, *phases: tuple[Phase, float]) -> Row:
    """Return a job whose phases follow each other, each of so many seconds, from 0 on."""
    intervals = []
    now_us = 0
    for phase, seconds in phases:
        end_us = now_us + round(seconds * S)
        intervals.append(Interval(phase, now_us, end_us))
        now_us = end_us
    return Row(label, tuple(intervals))


FULL = row(
    "1 bb.sh",
    (Phase.WAIT, 2),
    (Phase.STAGE_IN, 10),
    (Phase.PRE_RUN, 2),
    (Phase.RUN, 60),
    (Phase.STAGE_OUT, 6),
    (Phase.TEARDOWN, 0.5),
)


def test_a_job_has_a_row_with_a_mark_for_each_phase() -> None:
    """The axis stands above, the legend first: only what is in the picture is explained."""
    assert timeline([FULL, row("12 other.sh", (Phase.STAGE_IN, 30), (Phase.RUN, 40))]) == [
        "burst buffers: . waits  > stages in  - pre-run  # runs  < stages out  x teardown",
        "            |0s         |15s         |30s         |45s        |0:01:00",
        "1 bb.sh     .>>>>>>>>>-###################################################<<<<<x",
        "12 other.sh >>>>>>>>>>>>>>>>>>>>>>>>>##################################",
    ]


def test_nothing_is_drawn_without_burst_buffers() -> None:
    """Neither legend nor axis."""
    assert timeline([]) == []
    assert timeline([Row("1 a", ())]) == []


def test_more_than_forty_jobs_are_counted() -> None:
    """The first forty have rows."""
    lines = timeline([row(f"{number} j", (Phase.RUN, number + 1)) for number in range(45)])
    assert len(lines) == 2 + 40 + 1
    assert lines[-1] == "... and 5 more"


def marks_of(line: str) -> str:
    """Return each mark of a row once, in the order of the first of each run of it."""
    return re.sub(r"(.)\1*", r"\1", line.replace(" ", ""))


intervals = st.lists(
    st.tuples(st.sampled_from(Phase), st.integers(0, 10**13), st.integers(0, 10**12)),
    min_size=1,
    max_size=30,
)


@given(st.lists(intervals, min_size=1, max_size=45), st.integers(0, 10**12))
def test_no_line_is_too_wide_and_phases_keep_their_order(
    jobs: list[list[tuple[Phase, int, int]]], origin_us: int
) -> None:
    """However short a phase is, and however long the run, each leaves a mark."""
    rows = []
    for number, phases in enumerate(jobs):
        now_us = origin_us
        found = []
        for phase, length_us, gap_us in phases:
            found.append(Interval(phase, now_us, now_us + length_us))
            now_us += length_us + gap_us
        rows.append(Row(f"{number} name-of-a-job-that-is-long", tuple(found)))
    lines = timeline(rows)
    assert max(map(len, lines)) <= 80
    for line, each in zip(lines[2:42], rows, strict=False):
        wanted = "".join(interval.phase.mark for interval in each.intervals)
        assert marks_of(line[21:]) == marks_of(wanted)


@given(st.lists(st.integers(0, 3), min_size=90, max_size=200))
def test_more_phases_than_columns_still_fit(lengths: list[int]) -> None:
    """Then short ones go."""
    phases = [(phase, float(n)) for n, phase in zip(lengths, list(Phase) * 40, strict=False)]
    assert max(map(len, timeline([row("1 a", *phases)]))) <= 80


@pytest.mark.parametrize(
    ("job_state", "buffer_state", "phase"),
    [
        ("PENDING", "", Phase.WAIT),
        ("PENDING", "STAGING_IN", Phase.STAGE_IN),
        ("PENDING", "STAGED_IN", Phase.WAIT),
        ("PENDING|CONFIGURING", "PRE_RUN", Phase.PRE_RUN),
        ("RUNNING|CONFIGURING", "RUNNING", Phase.PRE_RUN),
        ("RUNNING", "RUNNING", Phase.RUN),
        ("COMPLETED|COMPLETING", "RUNNING", None),
        ("COMPLETED|COMPLETING|STAGE_OUT", "POST_RUN", Phase.STAGE_OUT),
        ("PENDING", "STAGING_OUT", Phase.STAGE_OUT),
        ("CANCELLED", "TEARDOWN", Phase.TEARDOWN),
        ("COMPLETED", "COMPLETE", None),
    ],
)
def test_the_buffer_counts_for_more_than_the_job(
    job_state: str, buffer_state: str, phase: Phase | None
) -> None:
    """What it does goes on whatever the job does."""
    assert phase_of(job_state, buffer_state) is phase


def state(seq: int, at_s: float, name: str, job: int, to: str) -> Event:
    """Return an event of the trace."""
    return Event(
        seq=seq, time_us=round(at_s * S), kind="state", name=name, job=job, args={"to": to}
    )


def test_jobs_without_burst_buffers_have_no_row() -> None:
    """Nor is what they did kept once they are over."""
    history = BufferHistory()
    for seq, (at_s, name, job, to) in enumerate(
        [
            (0, "job_state", 1, "PENDING"),
            (0, "job_state", 2, "PENDING"),
            (0, "bb_state", 2, "PENDING"),
            (1, "job_state", 1, "RUNNING"),
            (1, "bb_state", 2, "STAGING_IN"),
            (2, "job_state", 1, "COMPLETED|COMPLETING"),
            (3, "bb_state", 2, "STAGED_IN"),
            (3, "job_state", 2, "RUNNING"),
        ]
    ):
        history(state(seq, at_s, name, job, to))
    assert history.rows(4 * S, {2: "2 mine"}) == [
        row("2 mine", (Phase.WAIT, 1), (Phase.STAGE_IN, 2), (Phase.RUN, 1))
    ]


def test_staging_that_takes_no_time_is_seen_and_waiting_that_takes_none_is_not() -> None:
    """A state that a request passes through is no phase; work is, however fast."""
    history = BufferHistory()
    history(state(0, 0, "job_state", 1, "PENDING"))
    history(state(1, 0, "bb_state", 1, "STAGING_IN"))
    history(state(2, 0, "bb_state", 1, "STAGED_IN"))
    history(state(3, 0, "job_state", 1, "RUNNING"))
    (only,) = history.rows(2 * S, {})
    assert only == row("1", (Phase.STAGE_IN, 0), (Phase.RUN, 2))
    assert timeline([only])[2].startswith("1 >####")
