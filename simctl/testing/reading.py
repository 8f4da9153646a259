"""`simctl trace show|diff`: traces filtered and compared."""

import difflib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET

from simctl.kernel.events import KINDS, Event
from simctl.kernel.pattern import EVERYTHING, Pattern, PatternError
from simctl.kernel.recording import Recording, RecordingError, read_recording
from simctl.scenario.holding.recorded import Recorded, describe
from simctl.scenario.pattern_words import Known, checked
from simctl.scenario.patterns import FUNCTIONS
from simctl.scenario.timeline.timeline import COMMANDS
from simctl.status import NOT_HELD, OK, WRONG_INPUT

_CONTEXT = 3
_ALIGNED = 400


def _told(verb: Callable[[], int]) -> int:
    """Run a verb; what is wrong with its input goes to standard error."""
    try:
        return verb()
    except (RecordingError, PatternError) as error:
        print(f"simctl: {error}", file=sys.stderr)
        return WRONG_INPUT


def read_whole(path: Path) -> Recording:
    """Return the trace in a file, which must have come to its end.

    Raises:
        RecordingError: As of `read_recording`, or it is not whole.
    """
    recording = read_recording(path)
    if why := recording.missing():
        raise RecordingError(
            f"{path}: not whole: {why}; write it anew, or look with `simctl trace show` at what "
            "there is"
        )
    if why := recording.edited():
        print(f"simctl: {path}: {why}", file=sys.stderr)
    if recording.old:
        print(
            f"simctl: {path} is of a version that did not mark the ends of traces; it is taken "
            "for whole",
            file=sys.stderr,
        )
    return recording


def tell_cut(path: Path, recording: Recording) -> None:
    """Say on standard error if a trace is not whole, of which what there is will do."""
    if why := recording.missing():
        print(f"simctl: {path}: not whole: {why}", file=sys.stderr)
    if why := recording.edited():
        print(f"simctl: {path}: {why}", file=sys.stderr)


def read_pattern(recording: Recording, text: str) -> Pattern:
    """Read a pattern of events that a trace may have.

    Raises:
        PatternError: It cannot be read, or a word in it is none: a job that there is not.
    """
    pattern = Pattern.parse(text, recording.header.get("users", {}))
    return checked(pattern, known_of(recording))


def known_of(recording: Recording) -> Known:
    """Return what words there are in a trace; one of some kinds alone says not all of it."""
    whole = "kinds" not in recording.header and not recording.missing()
    return Known.of_run(recording.events, functions=FUNCTIONS, commands=COMMANDS, whole=whole)


def show(path: Path, pattern: str, kinds: Sequence[str], *, as_json: bool) -> int:
    """Print the events of a trace that match, a line each; as they are if *as_json*."""

    def verb() -> int:
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise RecordingError(
                f"--kinds: there is no kind {unknown[0]!r}; kinds: {', '.join(KINDS)}"
            )
        recording = read_recording(path)
        tell_cut(path, recording)
        wanted = EVERYTHING
        if pattern:
            wanted = read_pattern(recording, pattern)
        found = 0
        for event in recording.events:
            if (not kinds or event.kind in kinds) and wanted.matches(event):
                found += 1
                print(msgspec.json.encode(event).decode() if as_json else describe(event))
        if not found:
            _tell_nothing(recording, pattern, wanted, kinds)
        return OK

    return _told(verb)


def _tell_nothing(
    recording: Recording, pattern: str, wanted: Pattern, kinds: Sequence[str]
) -> None:
    """Say on standard error why nothing is shown, so that silence is not taken for a result."""
    recorded = Recorded(recording.events)
    if not recording.events:
        why = "the trace holds no events"
    elif pattern and not recorded.matches(wanted):
        why = recorded.absent(wanted)
    else:
        held = ", ".join(dict.fromkeys(event.kind for event in recording.events))
        why = f"none is of kind {' or '.join(kinds)}; the trace has {held}"
    print(f"simctl: nothing to show: {why}", file=sys.stderr)


def diff(path: Path, other: Path) -> int:
    """Compare two traces; print the first difference with what stands around it in each."""

    def verb() -> int:
        ours, theirs = read_whole(path), read_whole(other)
        _tell_headers(ours, theirs)
        lines = difference(ours.happened, theirs.happened, path.name, other.name)
        if not lines and ours.end and theirs.end:
            lines = difference(ours.events, theirs.events, path.name, other.name)
        for line in lines or [f"the two traces are equal: {len(ours.happened)} events"]:
            print(line)
        return NOT_HELD if lines else OK

    return _told(verb)


def _tell_headers(ours: Recording, theirs: Recording) -> None:
    for key in ("scenario", "seed", "schedule", "model", "version"):
        mine, others = ours.header.get(key), theirs.header.get(key)
        if mine != others:
            print(f"{key}: {mine} | {others}")


def difference(ours: Sequence[Event], theirs: Sequence[Event], name: str, other: str) -> list[str]:
    """Return the first difference with what stands around it; nothing if there is none."""
    place = _first_difference(ours, theirs)
    return [] if place < 0 else _neighbourhood(ours, theirs, place, name, other)


def _first_difference(ours: Sequence[Event], theirs: Sequence[Event]) -> int:
    """Return the place of the first event that differs; -1 if none does."""
    for place, (mine, others) in enumerate(zip(ours, theirs, strict=False)):
        if mine != others:
            return place
    return -1 if len(ours) == len(theirs) else min(len(ours), len(theirs))


def _neighbourhood(
    ours: Sequence[Event], theirs: Sequence[Event], place: int, name: str, other: str
) -> list[str]:
    lines = [f"the first {place} events are equal; then {name} (-) and {other} (+) part:"]
    lines += [f"  {describe(event)}" for event in ours[max(0, place - _CONTEXT) : place]]
    mine, others = ours[place : place + _ALIGNED], theirs[place : place + _ALIGNED]
    matcher = difflib.SequenceMatcher(
        None, [_key(event) for event in mine], [_key(event) for event in others], autojunk=False
    )
    shown = 0
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            if shown:
                lines += [f"  {describe(event)}" for event in mine[a : min(b, a + _CONTEXT)]]
                break
            continue
        lines += [f"- {describe(event)}" for event in mine[a:b][:20]]
        lines += [f"+ {describe(event)}" for event in others[c:d][:20]]
        shown += 1
    if not shown:
        # They differ only in numbers that the alignment leaves out.
        lines += [f"- {_raw(ours, place)}", f"+ {_raw(theirs, place)}"]
    lines += _fields_apart(ours[place : place + 1], theirs[place : place + 1])
    lines.append(f"{name} has {len(ours)} events, {other} {len(theirs)}")
    return lines


def _fields_apart(ours: Sequence[Event], theirs: Sequence[Event]) -> list[str]:
    """Say in which fields two events differ that are else the same; a line may not show them."""
    apart = []
    for mine, others in zip(ours, theirs, strict=True) if ours and theirs else ():
        if (mine.kind, mine.name, mine.phase) != (others.kind, others.name, others.phase):
            return []
        pairs = [
            (key, getattr(mine, key), getattr(others, key))
            for key in Event.__struct_fields__
            if key != "args"
        ]
        args = dict.fromkeys((*_args(mine), *_args(others)))
        pairs += [
            (f"args.{key}", _args(mine).get(key, UNSET), _args(others).get(key, UNSET))
            for key in args
        ]
        apart += [f"{key} {_value(a)} | {_value(b)}" for key, a, b in pairs if a != b]
    return [f"  that event differs in {', '.join(apart)}"] if apart else []


def _value(value: object) -> str:
    return "(none)" if value is UNSET else msgspec.json.encode(value).decode()


def _raw(events: Sequence[Event], place: int) -> str:
    return msgspec.json.encode(events[place]).decode() if place < len(events) else "(its end)"


def _key(event: Event) -> str:
    """Return an event without the numbers that shift when one line more or less came before."""
    return repr(
        (
            *(event.time_us, event.kind, event.name, event.phase, event.daemon, event.node),
            *(event.role, event.uid, event.euid, event.job, event.step, event.task, event.peer),
            *(event.plugin, event.rc, event.errno),
            {key: value for key, value in _args(event).items() if key != "child"},
        )
    )


def _args(event: Event) -> dict[str, object]:
    return {} if event.args is UNSET else event.args
