"""Golden traces: what is ignored is ignored, and everything else is compared."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.recording import read_recording
from simctl.status import InputError
from simctl.testing import run_scenario
from simctl.testing.golden import Compared, compare
from simctl.testing.runs import Run
from tests.projects import STEP

FIELDS = tuple(name for name in Event.__struct_fields__ if name not in ("kind", "name", "seq"))


@pytest.fixture(scope="module")
def run() -> Run:
    """A step of four tasks on two nodes."""
    return run_scenario(STEP)


@pytest.fixture
def golden(run: Run, tmp_path: Path) -> Path:
    """Its trace, whole."""
    path = tmp_path / "step.golden.jsonl"
    assert compare(path, run.header, run.events, rewrite=True).written
    return path


def against(golden: Path, run: Run, events: list[Event], *ignore: str, **more: Any) -> Compared:
    """Compare other events of the same run."""
    return compare(golden, {**run.header, **more}, events, ignore=ignore)


def changed(run: Run, place: int, **fields: Any) -> list[Event]:
    """Return the run's events, of which one is different."""
    events = list(run.events)
    events[place] = msgspec.structs.replace(events[place], **fields)
    return events


def place_of(run: Run, name: str) -> int:
    """Return the place of the first event of a name."""
    return next(place for place, event in enumerate(run.events) if event.name == name)


OTHER = {str: "other", int: 999_999, dict: {"other": 1}}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_is_compared_unless_it_is_ignored(run: Run, golden: Path, field: str) -> None:
    """Each field of an event by itself: the others do not hide it, and it hides no other."""
    place = place_of(run, "switch_p_job_attach")
    value = getattr(run.events[place], field)
    unset = {"phase": "exit", "peer": "other", "errno": "other", "needs": (7,)}.get(field, 7)
    events = changed(run, place, **{field: OTHER.get(type(value), unset)})
    others = [name for name in FIELDS if name != field]
    assert against(golden, run, events).trouble
    assert against(golden, run, events, *others).trouble
    assert against(golden, run, events, field).trouble == ()


def test_an_argument_is_compared_unless_it_is_ignored(run: Run, golden: Path) -> None:
    """By its name, wherever it occurs."""
    place = place_of(run, "switch_p_job_attach")
    args = run.events[place].args
    assert args is not UNSET
    events = changed(run, place, args={**args, "rank": 77})
    found = against(golden, run, events, "args.nprocs").trouble
    assert any("differs in args.rank 0 | 77" in line for line in found)
    assert against(golden, run, events, "args.rank").trouble == ()


def test_the_header_is_compared_unless_it_is_ignored(run: Run, golden: Path) -> None:
    """All of it but the version of simctl."""
    events = list(run.events)
    assert against(golden, run, events, version="99").trouble == ()
    for key, value in (("seed", 5), ("model", "modern"), ("users", {"root": 0})):
        assert any(key in line for line in against(golden, run, events, **{key: value}).trouble)
        assert against(golden, run, events, f"header.{key}", **{key: value}).trouble == ()
        assert against(golden, run, events, "header.schedule", **{key: value}).trouble


@pytest.mark.parametrize(
    ("ignore", "name"),
    [
        ("kind=message", "MESSAGE_TASK_EXIT"),
        ("switch_p_job_attach", "switch_p_job_attach"),
        ("switch_p_job_*", "switch_p_job_init"),
        ("exec user=alice node=n1", "exec"),
    ],
)
@pytest.mark.parametrize("how", ["left out", "doubled"])
def test_events_are_compared_unless_a_pattern_ignores_them(
    run: Run, golden: Path, ignore: str, name: str, how: str
) -> None:
    """However many there are: numbers and causes of the others do not tell."""
    place = place_of(run, name)
    events = list(run.events)
    events[place : place + 1] = [] if how == "left out" else [events[place]] * 2
    events = renumbered(run, events)
    assert against(golden, run, events).trouble
    assert against(golden, run, events, "fork", "header.seed").trouble
    assert against(golden, run, events, ignore).trouble == ()


def renumbered(run: Run, events: list[Event]) -> list[Event]:
    """Number events anew, as the run would that has these; causes go through those left out."""
    numbers: dict[Any, Any] = {}
    found = []
    there = {event.seq for event in events}

    def new(seq: Any) -> Any:
        while seq is not UNSET and seq not in there:
            seq = next(each.cause for each in run.events if each.seq == seq)
        return numbers.get(seq, UNSET)

    for number, event in enumerate(events, start=1):
        cause, enter = new(event.cause), new(event.enter)
        needs = event.needs
        if needs is not UNSET:
            needs = tuple(dict.fromkeys(each for each in map(new, needs) if each is not UNSET))
        numbers[event.seq] = number
        found.append(
            msgspec.structs.replace(event, seq=number, cause=cause, enter=enter, needs=needs)
        )
    return found


def test_a_call_is_ignored_with_its_enter_line(tmp_path: Path) -> None:
    """Both of its lines, also where it never came back."""
    text = STEP.replace("timeline:", 'timeline:\n  - {at: 0s, fault: {hang: "switch_p_job_fini"}}')
    run = run_scenario(text)
    names = [event.phase for event in run.events if event.name == "switch_p_job_fini"]
    assert "enter" in names
    path = tmp_path / "g.jsonl"
    compare(path, run.header, run.events, ignore=["switch_p_job_fini"], rewrite=True)
    written = read_recording(path).events
    assert "switch_p_job_fini" not in {event.name for event in written}
    assert [event.seq for event in written] == list(range(1, len(written) + 1))
    assert all(event.cause is UNSET or event.cause < event.seq for event in written)


def test_what_is_ignored_stands_in_the_file(run: Run, tmp_path: Path) -> None:
    """So that a comparison that asks for nothing ignores the same, and rewriting keeps it."""
    path = tmp_path / "g.jsonl"
    compare(path, run.header, run.events, ignore=["pid", "args.child", "kind=log"], rewrite=True)
    events = [
        msgspec.structs.replace(event, pid=event.pid + 1000)
        if isinstance(event.pid, int)
        else event
        for event in run.events
    ]
    assert compare(path, run.header, events).trouble == ()
    assert not compare(path, run.header, events, rewrite=True).written
    assert compare(path, run.header, events, ignore=["pid"], rewrite=True).written
    assert '"ignore":["pid"]' in path.read_text()


def test_a_golden_trace_is_a_trace(run: Run, tmp_path: Path) -> None:
    """`simctl trace` reads it, whatever is left out of it."""
    path = tmp_path / "g.jsonl"
    everything = [*FIELDS, "seq", "kind=message"]
    compare(path, run.header, run.events, ignore=everything, rewrite=True)
    kept = [event for event in run.events if event.kind != "message"]
    assert [event.name for event in read_recording(path).events] == [event.name for event in kept]


def test_the_difference_is_shown_in_its_place(run: Run, golden: Path) -> None:
    """Both lines, what stands before them, and the fields, which a line may not show."""
    place = place_of(run, "switch_p_job_attach")
    trouble = against(golden, run, changed(run, place, euid=0)).trouble
    text = "\n".join(trouble)
    assert trouble[0].startswith(f"the first {place} events are equal; then {golden.name} (-)")
    assert "\n- " in text
    assert "\n+ " in text
    assert "that event differs in euid 1001 | 0" in text


@pytest.mark.parametrize(
    ("ignore", "told"),
    [
        ("kind", "name events by a pattern"),
        ("pidd", "did you mean pid"),
        ("kind=mesage", "kind is one of"),
        ("exec nod=n1", "no field 'nod'"),
        ("exec user=bob", "no user 'bob'"),
        ("'exec", "nothing that ends it"),
    ],
)
def test_what_can_be_ignored_is_checked(run: Run, golden: Path, ignore: str, told: str) -> None:
    """A slip of the pen would be noticed late, or never."""
    with pytest.raises(InputError, match=told):
        against(golden, run, list(run.events), ignore)


def test_a_file_that_is_no_trace_is_refused(run: Run, golden: Path) -> None:
    """With its line; an empty one waits to be written."""
    golden.write_text("hello\n")
    with pytest.raises(InputError, match=r"step.golden.jsonl:1: not a trace"):
        against(golden, run, list(run.events))
    golden.write_text("")
    assert against(golden, run, list(run.events)).trouble == (
        "there is no golden trace step.golden.jsonl yet",
    )


def test_what_is_no_trace_is_not_written_over(run: Run, golden: Path) -> None:
    """It may have been named by mistake; and a place where nothing can be written is told."""
    golden.write_text("my notes\n")
    with pytest.raises(InputError, match="delete it first if it is to be written anew"):
        compare(golden, run.header, run.events, rewrite=True)
    assert golden.read_text() == "my notes\n"
    with pytest.raises(InputError, match=r"cannot write .*g\.jsonl: "):
        compare(golden / "g.jsonl", run.header, run.events, rewrite=True)
