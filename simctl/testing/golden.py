"""Golden traces: a run compared with one that was looked at, but for what the author ignores."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern, PatternError, near
from simctl.kernel.recording import Recording, RecordingError, read_recording
from simctl.scenario.pattern_words import Known, checked
from simctl.scenario.patterns import FUNCTIONS
from simctl.scenario.timeline.timeline import COMMANDS
from simctl.status import InputError
from simctl.testing.frames import hide
from simctl.testing.reading import difference

__tracebackhide__ = hide


_ARGS: Final = "args."
_HEADER: Final = "header."
_FIELDS: Final = tuple(Event.__struct_fields__)
_WHAT_IT_IS: Final = ("kind", "name")
_NOT_COMPARED: Final = ("simctl_trace", "version", "ignore", "terms")
_NEAR: Final = 0.75


@attrs.frozen
class Ignored:
    """What a comparison leaves out; each text names a field, or a pattern of whole events."""

    texts: tuple[str, ...] = ()
    fields: tuple[str, ...] = attrs.field(default=(), eq=False)
    """Such as ``pid``, ``args.child`` or ``header.seed``."""

    events: tuple[Pattern, ...] = attrs.field(default=(), eq=False)

    @classmethod
    def parse(cls, texts: Iterable[str], users: Mapping[str, int]) -> "Ignored":
        """Read what is to be ignored.

        Raises:
            InputError: A text is neither a field nor a pattern.
        """
        texts = tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))
        fields = tuple(text for text in texts if _is_field(text))
        events: list[Pattern] = []
        for text in texts:
            if text not in fields:
                events += _patterns(text, users)
        return cls(texts, fields, tuple(events))

    def plain(self, header: Mapping[str, Any], events: Sequence[Event]) -> Recording:
        """Return a trace without what is ignored; it can still be read as a trace.

        Where whole events are left out the others are numbered anew, and a cause that is left out
        gives way to its own (and so does what an event needs).
        """
        hidden = {text.removeprefix(_HEADER) for text in self.fields if text.startswith(_HEADER)}
        kept = {key: value for key, value in header.items() if key not in hidden}
        left = self._left(events) if self.events or "seq" in self.fields else list(events)
        return Recording(kept, [self._without_fields(event) for event in left])

    def _left(self, events: Sequence[Event]) -> list[Event]:
        """Return the events that are not ignored, numbered from 1."""
        out = {each.seq for each in events if any(one.matches(each) for one in self.events)}
        out |= {each.enter for each in events if each.seq in out and isinstance(each.enter, int)}
        left: list[Event] = []
        numbers: dict[Any, int | msgspec.UnsetType] = {UNSET: UNSET}
        for event in events:
            cause = numbers.get(event.cause, UNSET)
            if event.seq in out:
                numbers[event.seq] = cause
                continue
            numbers[event.seq] = len(left) + 1
            enter = numbers.get(event.enter, UNSET)
            needs = event.needs
            if needs is not UNSET:
                kept = (numbers.get(seq, UNSET) for seq in needs)
                needs = tuple(dict.fromkeys(seq for seq in kept if seq is not UNSET))
            left.append(
                msgspec.structs.replace(
                    event, seq=len(left) + 1, cause=cause, enter=enter, needs=needs
                )
            )
        return left

    def _without_fields(self, event: Event) -> Event:
        changes: dict[str, Any] = {}
        names = [text.removeprefix(_ARGS) for text in self.fields if text.startswith(_ARGS)]
        if names and event.args is not UNSET:
            args = {key: value for key, value in event.args.items() if key not in names}
            changes["args"] = args or UNSET
        for text in self.fields:
            if text == "time_us":
                changes[text] = 0
            elif text in _FIELDS and text != "seq":
                changes[text] = UNSET
        return msgspec.structs.replace(event, **changes) if changes else event


def _is_field(text: str) -> bool:
    if text in _WHAT_IT_IS:
        raise InputError(
            f"ignore {text!r}: without it an event says nothing; name events by a pattern"
        )
    return text in _FIELDS or any(
        text.startswith(start) and text != start and not set(text) & set(" =*")
        for start in (_ARGS, _HEADER)
    )


def _patterns(text: str, users: Mapping[str, int]) -> list[Pattern]:
    """Return what finds the events of a pattern, also those that never came to their end."""
    if hint := near(text, _FIELDS, cutoff=_NEAR):
        raise InputError(f"ignore {text!r}: no field of events{hint}")
    words = Known(names=FUNCTIONS, commands=COMMANDS)
    try:
        if "=" in text.split(maxsplit=1)[0]:
            return [checked(Pattern.parse_filter(text, users), words)]
        found = checked(Pattern.parse(text, users), words)
        ends = [] if found.values("phase") else [Pattern.parse(f"{text} phase=enter", users)]
    except PatternError as error:
        raise InputError(f"ignore {text!r}: neither a field nor a pattern: {error}") from None
    return [found, *ends]


@attrs.frozen(kw_only=True)
class Compared:
    """What came of comparing a run with its golden trace."""

    trouble: tuple[str, ...] = ()
    """How they differ, in lines; nothing if they do not."""

    written: bool = False
    """Whether the file was written anew, because it was to be and something differed."""


def compare(
    path: Path,
    header: Mapping[str, Any],
    events: Sequence[Event],
    *,
    ignore: Iterable[str] = (),
    rewrite: bool = False,
) -> Compared:
    """Compare a run with the golden trace in a file, or write that anew.

    What is ignored stands in the file's header as well, so that a comparison without saying
    anything ignores the same.

    Raises:
        InputError: The file is no trace, or cannot be written; or what is to be ignored cannot be
            read.
    """
    asked = tuple(ignore)
    golden = _read(path, rewrite=rewrite)
    known = tuple(golden.header.get("ignore", ())) if golden is not None else ()
    wanted = (asked or known) if rewrite else (*known, *asked)
    ignored = Ignored.parse(wanted, dict(header.get("users", {})))
    ours = ignored.plain(header, as_written(events))
    if rewrite:
        try:
            return Compared(written=_write(path, ours, ignored))
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    if golden is None:
        return Compared(trouble=(f"there is no golden trace {path.name} yet",))
    theirs = ignored.plain(golden.header, golden.happened)
    lines = _headers_apart(theirs.header, ours.header)
    lines += difference(theirs.events, ours.events, path.name, "this run")
    return Compared(trouble=tuple(lines))


def _headers_apart(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    keys = [key for key in dict.fromkeys((*theirs, *ours)) if key not in _NOT_COMPARED]
    return [
        f"{key}: {theirs.get(key)} | {ours.get(key)}"
        for key in keys
        if theirs.get(key) != ours.get(key)
    ]


def _read(path: Path, *, rewrite: bool) -> Recording | None:
    """Return the golden trace, or None where the file is not there, or still empty."""
    try:
        if not path.exists() or not path.stat().st_size:
            return None
        return read_recording(path)
    except RecordingError as error:
        # It may be something else that was named by mistake, so that it is not written over.
        hint = "; delete it first if it is to be written anew" if rewrite else ""
        raise InputError(f"{error}{hint}") from None


def as_written(events: Sequence[Event]) -> list[Event]:
    """Return events as they are read back: arguments lose what JSON does not tell apart."""
    decoder = msgspec.json.Decoder(list[Event])
    return decoder.decode(msgspec.json.encode(events))


def _write(path: Path, trace: Recording, ignored: Ignored) -> bool:
    """Write the golden trace where that changes something; return whether it did."""
    header = {**trace.header, "version": "-"}
    if ignored.texts:
        header["ignore"] = list(ignored.texts)
    encoder = msgspec.json.Encoder()
    data = b"".join(encoder.encode(each) + b"\n" for each in (header, *trace.events))
    if path.exists() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all, for any reader.
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(data)
    beside.replace(path)
    return True
