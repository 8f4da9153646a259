"""`simctl why` and `simctl trace why`: what went wrong first, and what led to an event."""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.orders import ends_before
from simctl.kernel.pattern import PatternError
from simctl.kernel.recording import Recording, RecordingError, read_recording
from simctl.scenario.holding.happens_before import HalfATraceError, HappensBefore, Link
from simctl.scenario.holding.races import free_because
from simctl.scenario.holding.recorded import Recorded, describe
from simctl.scenario.why_failed import NoSuchJobError, WhyFailed, held_up
from simctl.status import OK, WRONG_INPUT
from simctl.testing.reading import read_pattern, tell_cut

_SHOWN = 8
_MARK = "   <- went wrong first"
_LINK = max(len(link.value) for link in Link)


def why(path: Path, first: str, second: str = "") -> int:
    """Print the chain of causes behind an event, or whether it has to come before *second*.

    Each is named by its seq, or by a pattern that it alone matches.
    """
    try:
        recording = read_recording(path)
        tell_cut(path, recording)
        _check_causes(path, recording)
        event = _event(path, recording, first)
        lines = _chain(recording, event, _began(recording, event))
        if second:
            lines = _order(HappensBefore(recording.events), event, _event(path, recording, second))
    except (RecordingError, PatternError, HalfATraceError) as error:
        print(f"simctl: {error}", file=sys.stderr)
        return WRONG_INPUT
    for line in lines:
        print(line)
    return OK


def _check_causes(path: Path, recording: Recording) -> None:
    """Check that causes come before what they led to: else a chain of them has no root.

    Raises:
        RecordingError: One does not.
    """
    for event in recording.events:
        if event.cause is not UNSET and event.cause >= event.seq:
            raise RecordingError(
                f"{path}: event {event.seq} has event {event.cause} as its cause, which does not "
                "come before it: the trace was damaged or edited"
            )


def _event(path: Path, recording: Recording, text: str) -> Event:
    """Return the event of a seq, or the only one that matches a pattern."""
    if text.isdecimal():
        found = [event for event in recording.events if event.seq == int(text)]
        if not found:
            if not recording.events:
                raise RecordingError(f"{path}: there is no event {text}: the trace holds none")
            last = recording.events[-1].seq
            raise RecordingError(f"{path}: there is no event {text}; they go from 1 to {last}")
        return found[0]
    pattern = read_pattern(recording, text)
    recorded = Recorded(recording.events)
    found = recorded.matches(pattern)
    if not found:
        raise RecordingError(f"{path}: nothing matches `{text}`: {recorded.absent(pattern)}")
    if found[1:]:
        shown = "\n".join(describe(event) for event in found[:_SHOWN])
        more = f"\n        ... {len(found) - _SHOWN} more ..." if found[_SHOWN:] else ""
        raise RecordingError(
            f"{path}: {len(found)} events match `{text}`; narrow it, or name one by its number:\n"
            f"{shown}{more}"
        )
    return found[0]


def why_failed(path: Path, words: Sequence[str]) -> int:
    """Print what went wrong first with jobs that did not complete: with all, or with one.

    *words* are nothing, or ``job N``.
    """
    number = words[-1] if words and list(words[:-1]) in ([], ["job"]) else ""
    if words and not (number.isascii() and number.isdecimal()):
        said = " ".join(words)
        print(
            f"simctl: why: expected `job N` with the number of a job, got {said!r}", file=sys.stderr
        )
        return WRONG_INPUT
    try:
        recording = read_recording(path)
        tell_cut(path, recording)
        _check_causes(path, recording)
        _check_kinds(path, recording)
        finder = WhyFailed(recording.happened, recording.header.get("users", {}))
        if number:
            found = finder.of(int(number))
            lines = list(found.lines) if found else [finder.fine(int(number))]
        else:
            lines = [line for each in finder.all() for line in each.lines]
            lines += held_up(recording.happened)
    except NoSuchJobError as error:
        print(f"simctl: {path}: {error}", file=sys.stderr)
        return WRONG_INPUT
    except RecordingError as error:
        print(f"simctl: {error}", file=sys.stderr)
        return WRONG_INPUT
    for line in lines or ["no job failed, was cancelled, or waits"]:
        print(line)
    return OK


def _check_kinds(path: Path, recording: Recording) -> None:
    """Check that no events were left out as the trace was written.

    Raises:
        RecordingError: It holds some kinds alone.
    """
    if kinds := recording.header.get("kinds"):
        raise RecordingError(
            f"{path}: holds events of the kinds {', '.join(map(str, kinds))} alone: what led to a "
            "failure may be among the others; write it without --trace-kinds"
        )


def _began(recording: Recording, event: Event) -> Event | None:
    """Return the event with which the failure of an event's job began, if there was one."""
    if event.job is UNSET or recording.header.get("kinds"):
        return None
    try:
        found = WhyFailed(recording.happened, recording.header.get("users", {})).of(event.job)
    except NoSuchJobError:
        return None
    return found.first if found is not None and found.first.seq <= event.seq else None


def _chain(recording: Recording, event: Event, began: Event | None) -> list[str]:
    """Return the chain of causes, the root first, with a mark at what went wrong first.

    That may be beside the chain, as the crash of a node is, of which no message tells: then it is
    told after it.
    """
    by_seq = {each.seq: each for each in recording.events}
    chain: list[Event] = []
    at: int | msgspec.UnsetType = event.seq
    while at is not UNSET and at in by_seq:
        chain.append(by_seq[at])
        at = by_seq[at].cause
    lines = [describe(each) + _MARK * (each is began) for each in reversed(chain)]
    if began is not None and began not in chain:
        lines.append(f"what went wrong first with job {event.job} is beside this chain:")
        lines.append(describe(began) + _MARK)
    return lines


def _order(relation: HappensBefore, first: Event, second: Event) -> list[str]:
    """Return whether one is forced to come before the other, and why or what reverses them."""
    if first is second:
        return [f"{_name(first)} is one event, and cannot precede itself"]
    if steps := relation.chain(first, second):
        head = f"forced: {_name(first)} ends before {_name(second)} begins, under every schedule"
    elif steps := relation.chain(second, first):
        head = (
            f"forced, and the other way round: {_name(second)} ends before {_name(first)} begins, "
            "under every schedule"
        )
    else:
        return _free(relation, first, second)
    return [head, *(f"{step.link.value:>{_LINK}} {describe(step.event)}" for step in steps)]


def _free(relation: HappensBefore, first: Event, second: Event) -> list[str]:
    if ends_before(first, second):
        came = f"{_name(first)} came before {_name(second)}"
    elif ends_before(second, first):
        came = f"{_name(second)} came before {_name(first)}"
    else:
        came = f"{_name(first)} and {_name(second)} overlapped"
    one, two = (second, first) if ends_before(second, first) else (first, second)
    return [
        f"free: {came} in this run, and nothing forces it",
        describe(one),
        describe(two),
        free_because(relation, one, two),
    ]


def _name(event: Event) -> str:
    return f"{event.name} (seq {event.seq})"
