"""Event patterns: `NAME key=value ...`, compiled once and cheap to ask of every event of a run."""

import difflib
import operator
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import attrs
import msgspec

from simctl.kernel.events import KINDS, Event

FIELDS: Final = (
    "kind",
    "name",
    "phase",
    "daemon",
    "node",
    "role",
    "pid",
    "uid",
    "euid",
    "job",
    "array_job",
    "array_task",
    "step",
    "task",
    "plugin",
    "peer",
    "rc",
    "errno",
    "user",
    "state",
    "reason",
)
"""Keys that stand bare in a pattern; all others are arguments, `args.KEY`."""

PHASES: Final = ("enter", "exit", "send", "receive")

_NUMBERS: Final = frozenset(
    {"pid", "uid", "euid", "job", "array_job", "array_task", "task"},
)
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {"kind": KINDS, "phase": PHASES}
_ARGUMENT: Final = "args."
_WORD: Final = re.compile(r"""(?:[^\s'"\\]|'[^']*'|"(?:[^"\\]|\\.)*"|\\.)+""", re.DOTALL)
_STATE_ARGUMENTS: Final = {"state": "to", "reason": "reason"}
_NO_USERS: Final[Mapping[str, int]] = {}

Test = Callable[[Event], bool]
Read = Callable[[Event], Any]
"""Gives a field of an event, UNSET where the event has none."""


class PatternError(ValueError):
    """A pattern that cannot be read.

    Attributes:
        position: where in the text the mistake stands, from 0.
        reason: what is wrong there and what would do, without the position.
    """

    def __init__(self, reason: str, *, text: str, position: int) -> None:
        super().__init__(f"{reason} (character {position + 1} of {text!r})")
        self.reason = reason
        self.position = position


@attrs.frozen(kw_only=True)
class Condition:
    """One `key=value` of a pattern, and where in its text it stands."""

    key: str
    value: str
    position: int = attrs.field(eq=False, default=0)


@attrs.frozen(kw_only=True)
class Pattern:
    """What an event has to look like; `matches` says whether one does.

    A pattern without `phase=` never matches an `enter` line, so that a plugin call is matched once,
    by the line of its end. A key whose field an event lacks does not match, not even with `*`.
    """

    text: str
    name: str
    conditions: tuple[Condition, ...]
    any_name: bool = attrs.field(eq=False, repr=False)
    """Whether NAME holds a wildcard."""
    _tests: tuple[Test, ...] = attrs.field(eq=False, repr=False, alias="tests")

    @classmethod
    def parse(cls, text: str, users: Mapping[str, int] = _NO_USERS) -> "Pattern":
        """Read `NAME key=value ...`; *users* gives the uid behind a name for `user=`.

        Raises:
            PatternError: says what is wrong, and where.
        """
        words = _words(text)
        if not words or _is_condition(words[0][1]):
            raise PatternError(
                "expected the NAME of an event first (* for any), then key=value",
                text=text,
                position=words[0][0] if words else 0,
            )
        name = shlex.split(words[0][1])[0]
        return cls._build(text, name, words[1:], users)

    @classmethod
    def parse_filter(cls, text: str, users: Mapping[str, int] = _NO_USERS) -> "Pattern":
        """Read `key=value ...` without a NAME, as `within` has it; it lets `enter` lines pass.

        Raises:
            PatternError: says what is wrong, and where.
        """
        words = _words(text)
        if not words:
            raise PatternError("expected key=value, got nothing", text=text, position=0)
        return cls._build(text, "*", words, users, with_enter=True)

    @classmethod
    def _build(
        cls,
        text: str,
        name: str,
        words: list[tuple[int, str]],
        users: Mapping[str, int],
        *,
        with_enter: bool = False,
    ) -> "Pattern":
        conditions: list[Condition] = []
        for position, word in words:
            condition = _condition(text, position, word)
            if condition.key in {earlier.key for earlier in conditions}:
                raise PatternError(f"{condition.key} is given twice", text=text, position=position)
            conditions.append(condition)
        tests = [_compile(text, condition, users) for condition in conditions]
        if not with_enter and "phase" not in {condition.key for condition in conditions}:
            tests.insert(0, _is_not_enter)
        if "*" in name:
            tests.insert(0, _name_test(name))
        return cls(
            text=text,
            name=name,
            conditions=tuple(conditions),
            any_name="*" in name,
            tests=tuple(tests),
        )

    def values(self, key: str) -> tuple[str, ...]:
        """Return the value asked of *key*, as a tuple of one, or nothing."""
        return tuple(one.value for one in self.conditions if one.key == key)

    def matches(self, event: Event) -> bool:
        """Return whether *event* is one of those the pattern describes."""
        if event.name != self.name and not self.any_name:
            return False
        for test in self._tests:  # noqa: SIM110  a generator would cost more than the tests
            if not test(event):
                return False
        return True

    def names(self, candidates: Iterable[str]) -> tuple[str, ...]:
        """Return those of *candidates*, in their order, that NAME can match."""
        if not self.any_name:
            return tuple(name for name in candidates if name == self.name)
        fits = glob(self.name)
        return tuple(name for name in candidates if fits(name))


EVERYTHING: Final = Pattern(text="*", name="*", conditions=(), any_name=True, tests=())
"""A filter that every event passes."""


def field_reader(name: str) -> Read:
    """Return a function that gives the field *name* of an event, UNSET where it has none.

    *name* is a bare key of patterns or `args.NAME`. For `user` it gives the uid: the same grouping.

    Raises:
        ValueError: no such field; the message says which was meant.
    """
    if name.startswith(_ARGUMENT) and name != _ARGUMENT:
        return _argument_reader(name.removeprefix(_ARGUMENT))
    if name in _STATE_ARGUMENTS:
        return _state_reader(_STATE_ARGUMENTS[name])
    if name not in FIELDS:
        raise ValueError(_unknown_field(name))
    return operator.attrgetter("uid" if name == "user" else name)


def value_text(value: object) -> str:
    """Write a value as patterns compare it: None as null, booleans as JSON writes them."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return msgspec.json.encode(value, enc_hook=str).decode()


def near(word: str, known: Collection[str], cutoff: float = 0.6) -> str:
    """Return `; did you mean X?` for the known word nearest to *word*, or nothing."""
    match = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {match[0]}?" if match else ""


def _words(text: str) -> list[tuple[int, str]]:
    """Split at blanks outside quotes, keeping the quotes and where each word begins."""
    words, position = [], 0
    while (position := _skip_blanks(text, position)) < len(text):
        word = _WORD.match(text, position)
        end = word.end() if word else position
        if word is None or (end < len(text) and not text[end].isspace()):
            raise PatternError(
                "a quote or backslash has nothing that ends it", text=text, position=end
            )
        words.append((position, word.group()))
        position = end
    return words


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _is_condition(word: str) -> bool:
    return "=" in word


def _condition(text: str, position: int, word: str) -> Condition:
    key, equals, value = word.partition("=")
    if not equals:
        raise PatternError(
            f"expected key=value, got {word!r}{near(word, FIELDS)}", text=text, position=position
        )
    if key not in FIELDS and not (key.startswith(_ARGUMENT) and key != _ARGUMENT):
        raise PatternError(_unknown_field(key), text=text, position=position)
    if not value:
        raise PatternError(f"{key}= has no value", text=text, position=position + len(word))
    return Condition(key=key, value="".join(shlex.split(value)), position=position)


def _unknown_field(key: str) -> str:
    argument = key.removeprefix(_ARGUMENT) or "NAME"
    return f"no field {key!r}{near(key, FIELDS)} (an argument of a call is args.{argument})"


def _compile(text: str, condition: Condition, users: Mapping[str, int]) -> Test:
    key, value = condition.key, condition.value
    position = condition.position + len(key) + 1
    choices = _CHOICES.get(key, ())
    if choices and not any(glob(value)(choice) for choice in choices):
        what = f"{key} is one of {', '.join(choices)}, not {value!r}{near(value, choices)}"
        raise PatternError(what, text=text, position=position)
    if key == "user":
        return _user_test(text, position, value, users)
    if key in _NUMBERS and "*" not in value and value != "null":
        if not re.fullmatch(r"-?[0-9]{1,18}", value):
            hint = f"; a name goes with user={value}" if key == "uid" else ""
            what = f"{key} is a number, not {value!r}{hint}"
            raise PatternError(what, text=text, position=position)
        return _equals(field_reader(key), int(value))
    if key == "state":
        return _state_test(value)
    return _text_test(field_reader(key), value)


def _user_test(text: str, position: int, value: str, users: Mapping[str, int]) -> Test:
    if re.fullmatch(r"[0-9]{1,18}", value) and value not in users:
        return _equals(field_reader("uid"), int(value))
    fits = glob(value)
    uids = frozenset(uid for name, uid in users.items() if fits(name))
    if not uids and "*" not in value:
        what = f"no user {value!r}{near(value, users)}"
        raise PatternError(what, text=text, position=position)

    def test(event: Event) -> bool:
        return event.uid in uids

    return test


def _state_test(value: str) -> Test:
    """Compare with the whole new state or, where *value* names no flags, with any part of it."""
    read, fits = field_reader("state"), glob(value)

    def test(event: Event) -> bool:
        state = read(event)
        if state is msgspec.UNSET:
            return False
        text = value_text(state)
        return fits(text) or ("|" not in value and any(fits(part) for part in text.split("|")))

    return test


def _text_test(read: Read, value: str) -> Test:
    fits = glob(value)

    def test(event: Event) -> bool:
        found = read(event)
        return found is not msgspec.UNSET and fits(value_text(found))

    return test


def _equals(read: Read, value: int) -> Test:
    def test(event: Event) -> bool:
        return bool(read(event) == value)

    return test


def _below(found: Any, path: str) -> Any:
    """Return what stands below an argument: `values.env.PORT`, or a number in a list."""
    for part in path.split("."):
        if isinstance(found, Mapping):
            found = found.get(part, msgspec.UNSET)
        elif isinstance(found, list | tuple) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return msgspec.UNSET
    return found


def _argument_reader(name: str) -> Read:
    dotted = "." in name

    def read(event: Event) -> Any:
        args = event.args
        if args is msgspec.UNSET:
            return msgspec.UNSET
        found = args.get(name, msgspec.UNSET)
        return _below(args, name) if dotted and found is msgspec.UNSET else found

    return read


def _state_reader(argument: str) -> Read:
    read_argument = _argument_reader(argument)

    def read(event: Event) -> Any:
        return read_argument(event) if event.kind == "state" else msgspec.UNSET

    return read


def _name_test(name: str) -> Test:
    fits = glob(name)

    def test(event: Event) -> bool:
        return fits(event.name)

    return test


def _is_not_enter(event: Event) -> bool:
    return event.phase != "enter"


def glob(value: str) -> Callable[[str], bool]:
    """Compile text in which `*` stands for anything; nothing else is special."""
    if "*" not in value:
        return value.__eq__
    if not value.strip("*"):
        return lambda _: True
    first, *middle, last = value.split("*")
    least = len(first) + len(last)

    def fits(text: str) -> bool:
        # Each part at its first place: no choice is ever taken back, however many `*` there are.
        if len(text) < least or not (text.startswith(first) and text.endswith(last)):
            return False
        position, end = len(first), len(text) - len(last)
        for part in middle:
            position = text.find(part, position, end)
            if position < 0:
                return False
            position += len(part)
        return True

    return fits
