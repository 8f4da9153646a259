"""Event patterns: which events they match, and what is said of those that cannot be read."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.kernel.events import Event
from simctl.kernel.pattern import (
    EVERYTHING,
    FIELDS,
    Pattern,
    PatternError,
    field_reader,
    value_text,
)

USERS = {"root": 0, "alice": 1001, "albert": 1002}


def attach(**fields: Any) -> Event:
    """Return a call of switch_p_job_attach in task 3 of step 1.0 on n2, with *fields* changed."""
    values: dict[str, Any] = {
        "seq": 7,
        "time_us": 10,
        "kind": "plugin",
        "name": "switch_p_job_attach",
        "daemon": "slurmstepd",
        "node": "n2",
        "role": "task",
        "pid": 105,
        "uid": 1001,
        "euid": 1001,
        "job": 1,
        "step": "1.0",
        "task": 3,
        "plugin": "switch/none",
        "args": {"rank": 3, "network": None, "cyclic": True, "msg": "two words"},
        "rc": 0,
    }
    return Event(**{**values, **fields})


def changed(to: str, **fields: Any) -> Event:
    """Return a change of state."""
    args = {"from": "RUNNING", "to": to, "reason": "None"}
    return Event(seq=1, time_us=0, kind="state", name="job_state", node=None, args=args, **fields)


@pytest.mark.parametrize(
    "text",
    [
        "switch_p_job_attach",
        "*",
        "switch_p_*",
        "*attach",
        "s*_p_*h",
        "switch_p_job_attach job=1 task=3",
        "switch_p_job_attach job=01",
        "* step=1.0 node=n2",
        "* step=1.*",
        "* node=n*",
        "* user=alice",
        "* user=al*",
        "* user=1001",
        "* uid=1001 euid=1001 pid=105",
        "* task=*",
        "* kind=plugin plugin=switch/none daemon=slurmstepd role=task",
        "* args.rank=3",
        "* args.network=null args.cyclic=true",
        "* args.msg='two words'",
        '* args.msg="two words"',
        "* args.msg=two*",
        "* rc=0",
        "  *   job=1\trc=0 ",
    ],
)
def test_a_pattern_matches_the_event_it_describes(text: str) -> None:
    """All conditions hold, as texts; `*` stands for anything, quotes hold blanks together."""
    assert Pattern.parse(text, USERS).matches(attach())


@pytest.mark.parametrize(
    "text",
    [
        "switch_p_job_init",
        "switch_p_job_attac",
        "switch_p_job_attach?",
        "switch_p_job_attach*attach",
        "*tt*tt*",
        "* job=11",
        "* step=1.1",
        "* step=1x0",
        "* node=n",
        "* node=null",
        "* user=root",
        "* errno=*",
        "* args.rank=30",
        "* args.nothing=*",
        "* args.network=None",
        "* state=*",
        "* reason=*",
        "* array_job=null",
        "* phase=exit",
        "* job=1 task=2",
    ],
)
def test_a_pattern_matches_no_other_event(text: str) -> None:
    """One condition that fails is enough, and a field that is not there matches nothing."""
    assert not Pattern.parse(text, USERS).matches(attach())


def test_the_controller_is_node_null() -> None:
    """The node of an event in the controller is written null, and so asked for."""
    assert Pattern.parse("* node=null").matches(attach(node=None))
    assert not Pattern.parse("* node=null").matches(attach(node=msgspec.UNSET))


def test_a_call_of_two_lines_is_matched_once_by_its_end() -> None:
    """The enter line counts only for a pattern that names a phase."""
    enter, leave = attach(phase="enter"), attach(phase="exit", enter=7)
    plain, entering = Pattern.parse("switch_p_job_attach"), Pattern.parse("* phase=enter")
    assert [plain.matches(event) for event in (enter, leave)] == [False, True]
    assert [entering.matches(event) for event in (enter, leave)] == [True, False]


def test_a_filter_lets_enter_lines_pass() -> None:
    """`within` chooses a part of the run; which lines count is for the entries to say."""
    assert Pattern.parse_filter("step=1.0").matches(attach(phase="enter"))
    assert EVERYTHING.matches(attach(phase="enter"))


def test_a_message_matches_when_sent_and_when_received() -> None:
    """Without a phase both lines of a message are meant."""
    lines = [
        Event(seq=n, time_us=0, kind="message", name="REQUEST_PING", phase=phase, peer="n1")
        for n, phase in ((1, "send"), (2, "receive"))
    ]
    assert [Pattern.parse("REQUEST_PING").matches(line) for line in lines] == [True, True]
    received = Pattern.parse("REQUEST_* phase=receive")
    assert [received.matches(line) for line in lines] == [False, True]


@pytest.mark.parametrize(
    ("value", "to", "matches"),
    [
        ("COMPLETED", "COMPLETED", True),
        ("COMPLETED", "COMPLETED|COMPLETING", True),
        ("COMPLETING", "COMPLETED|COMPLETING", True),
        ("COMPLETED|COMPLETING", "COMPLETED|COMPLETING", True),
        ("COMPLETED|COMPLETING", "COMPLETED", False),
        ("COMPLET*", "FAILED|COMPLETING", True),
        ("COMPLET", "COMPLETED", False),
        ("RUNNING", "COMPLETED", False),
    ],
)
def test_state_is_the_new_state_or_any_part_of_it(value: str, to: str, matches: bool) -> None:
    """A value without flags of its own is met by any of the joined parts."""
    assert Pattern.parse(f"job_state state={value}").matches(changed(to)) is matches


def test_reason_is_that_of_a_change_of_state() -> None:
    """The bare key is for state events; an argument of that name elsewhere is args.reason."""
    assert Pattern.parse("job_state reason=None").matches(changed("FAILED"))
    assert not Pattern.parse("* reason=x").matches(attach(args={"reason": "x"}))


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("", 0, "NAME"),
        ("job=1", 0, "NAME"),
        ("x jb=1", 2, "did you mean job"),
        ("x rank=3", 2, "args.rank"),
        ("x job", 2, "key=value"),
        ("x job=", 6, "no value"),
        ("x job=one", 6, "number"),
        ("x uid=alice", 6, "user=alice"),
        ("x user=alicia", 7, "did you mean alice"),
        ("x kind=plugn", 7, "did you mean plugin"),
        ("x phase=entered", 8, "did you mean enter"),
        ("x job=1 job=2", 8, "twice"),
        ("x args.=2", 2, "no field"),
        ("x args.m='a b", 9, "quote"),
        ("x args.m=a\\", 10, "quote"),
    ],
)
def test_a_bad_pattern_says_what_and_where(text: str, position: int, says: str) -> None:
    """The reason names what would do; the position is that of the character."""
    with pytest.raises(PatternError) as caught:
        Pattern.parse(text, USERS)
    assert says in caught.value.reason
    assert caught.value.position == position


def test_a_filter_has_no_name() -> None:
    """`within` is conditions alone."""
    with pytest.raises(PatternError, match="key=value"):
        Pattern.parse_filter("switch_p_job_init step=1.0")
    with pytest.raises(PatternError, match="nothing"):
        Pattern.parse_filter(" ")


def test_names_gives_what_a_name_can_match() -> None:
    """In the order of the candidates; nothing is special but the star."""
    names = ("switch_p_job_init", "switch_p_job_fini", "fini")
    assert Pattern.parse("*fini job=1").names(names) == names[1:]
    assert Pattern.parse("fini").names(names) == ("fini",)
    assert Pattern.parse("fin.").names(names) == ()


def test_two_patterns_of_one_text_are_equal() -> None:
    """Patterns are values: how they were compiled does not count."""
    assert Pattern.parse("x job=1") == Pattern.parse("x job=1")
    assert Pattern.parse("x job=1") != Pattern.parse("x job=2")


def test_every_field_can_be_read_and_grouped_by() -> None:
    """`each` takes the bare keys of a pattern and arguments, and names the nearest otherwise."""
    event = attach()
    values = {name: field_reader(name)(event) for name in (*FIELDS, "args.rank")}
    assert (values["node"], values["user"], values["args.rank"]) == ("n2", 1001, 3)
    assert values["state"] is msgspec.UNSET
    with pytest.raises(ValueError, match="did you mean node"):
        field_reader("nodes")


WORDS = st.text(alphabet="abcxyz01.*_-/ '\"\\=", max_size=8)


@settings(derandomize=True, deadline=None)
@given(st.lists(WORDS, max_size=4).map(" ".join))
def test_any_text_is_a_pattern_or_a_pattern_error(text: str) -> None:
    """Nothing but PatternError comes out of a bad text, at a place in it."""
    position = 0
    try:
        Pattern.parse(text).matches(attach())
    except PatternError as error:
        position = error.position
    assert 0 <= position <= len(text)


VALUES = st.one_of(
    st.text(max_size=10),
    st.integers(),
    st.booleans(),
    st.none(),
    st.lists(st.integers(), max_size=3),
)


@settings(derandomize=True, deadline=None)
@given(VALUES)
def test_an_argument_is_matched_by_its_own_text(value: object) -> None:
    """Whatever an argument holds, the text it prints as, quoted, finds it again."""
    quoted = "'" + value_text(value).replace("'", "'\"'\"'") + "'"
    if "*" not in quoted:
        assert Pattern.parse(f"* args.x={quoted}").matches(attach(args={"x": value}))
