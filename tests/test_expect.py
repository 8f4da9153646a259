"""Expectations held against runs: jobs, orders in groups, events that never or so often occur."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.kernel.events import Event
from simctl.kernel.pattern import EVERYTHING, Pattern
from simctl.scenario.holding.expect import Result, check
from simctl.scenario.model import (
    CountExpect,
    Expectation,
    JobExpect,
    NeverExpect,
    OrderEntry,
    OrderExpect,
)


def call(seq: int, name: str, node: str | None = "n1", **fields: Any) -> Event:
    """Return a plugin call that ends at its line, a millisecond a line."""
    values = {"time_us": seq * 1000, "kind": "plugin", "step": "1.0", "pid": 100, **fields}
    return Event(seq=seq, name=name, node=node, **values)


def verdict(
    expectation: Expectation, events: Sequence[Event] = (), jobs: Sequence[dict[str, Any]] = ()
) -> Result:
    """Hold one expectation against a run."""
    (result,) = check([expectation], events, jobs)
    assert (result.detail == "") is result.held
    return result


def order(
    *entries: str, within: str = "", each: str = "", optional: Sequence[str] = ()
) -> OrderExpect:
    """Return an order of patterns, of which *optional* may be missing."""
    return OrderExpect(
        text="order " + " < ".join(entries),
        line=1,
        entries=tuple(
            OrderEntry(pattern=Pattern.parse(entry), optional=entry in optional)
            for entry in entries
        ),
        within=Pattern.parse_filter(within) if within else EVERYTHING,
        each=each,
    )


def never(pattern: str) -> NeverExpect:
    """Return that no event matches."""
    return NeverExpect(text=f"never {pattern}", line=1, pattern=Pattern.parse(pattern))


def count(pattern: str, least: int, most: int) -> CountExpect:
    """Return how many events match."""
    return CountExpect(
        text=f"count {pattern}", line=1, pattern=Pattern.parse(pattern), least=least, most=most
    )


def job(number: str, **fields: str) -> JobExpect:
    """Return what a job is at the end."""
    return JobExpect(text=f"job {number}", line=1, job=number, fields=tuple(fields.items()))


def test_an_order_holds_if_all_of_one_end_before_any_of_the_next_begin() -> None:
    """Several matches of one entry may come in any order among themselves."""
    events = [call(1, "init"), call(2, "attach"), call(3, "attach"), call(4, "fini")]
    assert verdict(order("init", "attach", "fini"), events).held


def test_an_order_breaks_at_one_match_too_early() -> None:
    """The last attach comes after the first fini: both are named with their lines."""
    events = [call(1, "attach"), call(2, "fini", pid=7), call(3, "log"), call(4, "attach", pid=9)]
    result = verdict(order("attach", "fini"), events)
    assert not result.held
    assert "fini (seq 2) began before attach (seq 4) ended" in result.detail
    lines = result.detail.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [
        [">", "2"],
        ["3", "0:00:00.003"],
        [">", "4"],
    ]
    assert "pid=7" in result.detail
    assert "n1" in result.detail


def test_a_call_begins_at_its_enter_line() -> None:
    """What ends inside a call does not end before it."""
    enter = call(1, "outer", phase="enter")
    inner = call(2, "inner")
    leave = call(3, "outer", phase="exit", enter=1)
    assert not verdict(order("inner", "outer"), [enter, inner, leave]).held
    assert not verdict(order("outer", "inner"), [enter, inner, leave]).held


def test_a_call_that_took_time_begins_when_it_began() -> None:
    """Without an enter line the clock tells that another call ended in the middle of it."""
    slow = call(3, "slow", t0_us=1500)
    assert not verdict(order("quick", "slow"), [call(2, "quick"), slow]).held
    assert verdict(order("quick", "slow"), [call(1, "quick"), slow]).held


def test_each_makes_groups_that_are_in_order_by_themselves() -> None:
    """Node n2 may be done before n1 begins; events without the field are left out."""
    events = [
        call(1, "init", "n2"),
        call(2, "fini", "n2"),
        call(3, "init", "n1"),
        Event(seq=4, time_us=4000, kind="log", name="fini"),
        call(5, "fini", "n1"),
    ]
    assert verdict(order("init", "fini", each="node"), events).held
    assert not verdict(order("init", "fini"), events).held


def test_a_broken_group_is_named() -> None:
    """The detail says in which group, and how many more are broken."""
    events = [call(1, "fini", "n2"), call(2, "init", "n2"), call(3, "fini"), call(4, "init")]
    result = verdict(order("init", "fini", each="node"), events)
    assert result.detail.startswith("in node=n2: ")
    assert "1 more of 2 groups" in result.detail


def test_the_controller_is_a_group_of_its_own() -> None:
    """Its node is null, which is a value, not a missing field."""
    events = [call(1, "fini", None), call(2, "init", None)]
    assert verdict(order("init", "fini", each="node"), events).detail.startswith("in node=null: ")


def test_within_leaves_out_the_rest_of_the_run() -> None:
    """The filter comes first, then the groups."""
    events = [call(1, "fini", step="1.1"), call(2, "init"), call(3, "fini")]
    assert verdict(order("init", "fini", within="step=1.0"), events).held
    assert not verdict(order("init", "fini"), events).held


def test_an_entry_without_a_match_breaks_a_group_that_has_others() -> None:
    """A group is one that holds a match of any entry; there each entry needs one."""
    events = [call(1, "init"), call(2, "fini"), call(3, "init", "n2")]
    result = verdict(order("init", "fini", each="node"), events)
    assert not result.held
    assert "in node=n2: nothing matches `fini`" in result.detail
    assert "optional: true" in result.detail


def test_an_optional_entry_may_be_missing_and_not_be_early() -> None:
    """What stands beside it is compared then; where it is there, its place counts."""
    entries = order("init", "attach", "fini", optional=["attach"])
    assert verdict(entries, [call(1, "init"), call(2, "fini")]).held
    assert not verdict(entries, [call(1, "fini"), call(2, "init")]).held
    assert not verdict(entries, [call(1, "attach"), call(2, "init"), call(3, "fini")]).held


def test_an_order_of_nothing_is_broken() -> None:
    """An order that no event bears on would else hold by a slip of the pen."""
    result = verdict(order("init", "fini"), [call(1, "inti")])
    assert not result.held
    assert "nothing matched" in result.detail
    assert "did you mean inti" in result.detail
    assert verdict(order("init", "fini", optional=["init", "fini"]), []).held


def test_a_filter_that_leaves_nothing_is_told_apart() -> None:
    """There are matches, but not within."""
    events = [call(1, "init"), call(2, "fini")]
    assert "within step=2.0" in verdict(order("init", "fini", within="step=2.0"), events).detail
    assert "a field task" in verdict(order("init", "fini", each="task"), events).detail


def test_an_event_of_two_entries_cannot_precede_itself() -> None:
    """Patterns that overlap are said to, instead of two equal lines."""
    result = verdict(order("init", "in*"), [call(1, "init")])
    assert "matches two entries" in result.detail


def test_a_long_stretch_is_elided_around_the_contradiction() -> None:
    """About ten lines are shown, the two that matter always among them."""
    events = [call(1, "fini"), *(call(n, "log") for n in range(2, 60)), call(60, "init")]
    lines = verdict(order("init", "fini"), events).detail.splitlines()
    assert len(lines) < 16
    assert [line.split()[1] for line in lines if line.startswith(">")] == ["1", "60"]
    assert any("more" in line for line in lines)


def test_other_groups_are_not_among_the_lines_between() -> None:
    """What another node does meanwhile is no part of the contradiction."""
    events = [call(1, "fini"), call(2, "log", "n2"), call(3, "init")]
    assert "log" not in verdict(order("init", "fini", each="node"), events).detail


def test_never_shows_the_first_match() -> None:
    """And says how many there are."""
    events = [call(1, "init"), call(2, "init", job=4)]
    result = verdict(never("init"), events)
    assert "2 events match" in result.detail
    assert "     1 " in result.detail
    assert verdict(never("init job=5"), events).held


@pytest.mark.parametrize(
    ("least", "most", "held"), [(2, 2, True), (0, 1, False), (3, 9, False), (1, 3, True)]
)
def test_count_is_between_its_bounds(least: int, most: int, held: bool) -> None:
    """Both ends included; the number and the first and last match are shown."""
    result = verdict(count("init", least, most), [call(1, "init"), call(2, "init")])
    assert result.held is held
    assert held or result.detail.startswith("2 events match")


def test_a_count_of_a_call_counts_it_once() -> None:
    """An enter line is no second call."""
    events = [call(1, "init", phase="enter"), call(2, "x"), call(3, "init", phase="exit", enter=1)]
    assert verdict(count("init", 1, 1), events).held


def test_a_count_of_nothing_says_what_there_is() -> None:
    """A name that does not occur is told from conditions that do not hold."""
    assert "did you mean init" in verdict(count("inti", 1, 1), [call(1, "init")]).detail
    assert "none matches the rest" in verdict(count("init job=2", 1, 1), [call(1, "init")]).detail


ROWS: list[dict[str, Any]] = [
    {
        "job_id": 1,
        "array_job_id": None,
        "array_task_id": None,
        "state": "COMPLETED|COMPLETING",
        "exit_code": "0:0",
        "num_nodes": 2,
        "nodes": "n[1-2]",
        "restarts": 0,
    },
    {"job_id": 8, "array_job_id": 7, "array_task_id": 2, "state": "FAILED", "exit_code": "3:0"},
]


@pytest.mark.parametrize(
    ("expectation", "held"),
    [
        (job("1", state="COMPLETED", exit_code="0:0"), True),
        (job("1", state="COMPLETED|COMPLETING", num_nodes="2"), True),
        (job("1", state="COMPLETED|STAGE_OUT"), False),
        (job("1", nodes="n1,n2"), True),
        (job("1", nodes="n[1-3]"), False),
        (job("1", nodes="n[1-"), False),
        (job("1", array_job_id="null", restarts="0"), True),
        (job("7_2", state="FAILED"), True),
        (job("8", exit_code="3:0"), True),
        (job("7_1", state="FAILED"), False),
        (job("2", state="FAILED"), False),
    ],
)
def test_a_job_is_held_against_its_row(expectation: JobExpect, held: bool) -> None:
    """Fields compare as they print; a task of an array is found by both its numbers."""
    assert verdict(expectation, jobs=ROWS).held is held


def test_a_job_that_is_not_there_names_those_that_are() -> None:
    """And a field that differs is shown beside what was wanted."""
    assert "1, 8" in verdict(job("2", state="FAILED"), jobs=ROWS).detail
    assert (
        verdict(job("8", state="COMPLETED"), jobs=ROWS).detail == "state is FAILED, not COMPLETED"
    )


NAMES = ("init", "attach", "fini")
RUNS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(("n1", "n2"))), max_size=8)


@settings(derandomize=True, deadline=None)
@given(RUNS)
def test_an_order_agrees_with_its_definition(lines: list[tuple[str, str]]) -> None:
    """In each group with a match: every entry matches, and every pair of neighbours is in order."""
    events = [call(n, name, node) for n, (name, node) in enumerate(lines, start=1)]
    groups: dict[str, dict[str, list[int]]] = {}
    for event in events:
        group = groups.setdefault(str(event.node), {name: [] for name in NAMES})
        group[event.name].append(event.seq)
    wanted = bool(groups) and all(
        all(group.values())
        and max(group["init"]) < min(group["attach"])
        and max(group["attach"]) < min(group["fini"])
        for group in groups.values()
    )
    assert verdict(order(*NAMES, each="node"), events).held is wanted
