"""What a served cluster has recorded: what came from outside, as entries of a timeline."""

from collections.abc import Callable
from typing import Any, Final

from simctl.scenario.model import (
    CommandCame,
    CommandLeft,
    CommandSignalled,
    FileSeen,
    OutsideDeed,
    Stopped,
    TaskEnded,
    TaskWrote,
)
from simctl.scenario.positions import Reading, Value
from simctl.scenario.scalars import BOOLEAN, text, whole
from simctl.scenario.shapes import Field, Items, Record, Scalar, Table, Values

_NUMBER: Final = whole("a number from 1", least=1, most=10**9)
_ID: Final = whole("a user's or a group's number", least=0, most=2**32 - 1)
_STATUS: Final = whole("a wait status", least=0, most=0xFFFF)
_SIGNAL: Final = whole("the number of a signal", least=1, most=64)
_BYTES: Final = {0xF700 + byte: 0xDC00 + byte for byte in range(0x80, 0x100)}
"""What stands for bytes that are no characters, for YAML has none that does."""

_TEXT: Final = Scalar(
    expected="a text",
    convert=lambda value, _: value.scalar.translate(_BYTES),
    json={"type": ["string", "number", "boolean"]},
)
_WORDS: Final = Items(item=_TEXT, expected="a list of words")


def _came(values: Values) -> OutsideDeed:
    return CommandCame(
        command=values["command"],
        user=values["user"],
        uid=values["uid"],
        gid=values["gid"],
        cwd=values["cwd"],
        argv=values["argv"],
        env=values["env"],
        unset=values["unset"],
        env_of=values["env_of"],
        is_base=values["base"],
        stdin=values["stdin"],
        task=values["task"] or 0,
    )


_DEEDS: Final[dict[str, tuple[tuple[str, ...], Callable[[Values], OutsideDeed]]]] = {
    "argv": (("command", "user", "uid", "gid", "cwd"), _came),
    "signal": (
        ("command",),
        lambda values: CommandSignalled(command=values["command"], number=values["signal"]),
    ),
    "left": (
        ("command",),
        lambda values: CommandLeft(command=values["command"], status=values["left"]),
    ),
    "wrote": (
        ("task", "stream"),
        lambda values: TaskWrote(
            task=values["task"], stream=values["stream"], text=values["wrote"]
        ),
    ),
    "ended": (("task",), lambda values: TaskEnded(task=values["task"], status=values["ended"])),
    "path": (
        (),
        lambda values: FileSeen(
            path=values["path"],
            uid=values["uid"] or 0,
            mode=values["mode"],
            text=values["text"],
            is_dir=values["directory"],
        ),
    ),
    "stop": ((), lambda _: Stopped()),
}
"""By the key that tells them apart: the keys they need, and what is made of them."""


def _check(values: Values, reading: Reading) -> None:
    told = [key for key in _DEEDS if key in values.places]
    if len(told) != 1:
        names = ", ".join(f"`{key}`" for key in _DEEDS)
        reading.mistake(values.whole, f"expected exactly one of {names}")
        return
    for key in _DEEDS[told[0]][0]:
        if key not in values.places:
            reading.mistake(values.whole, f"`{told[0]}` goes with `{key}`")
    if told[0] == "argv" and "argv" in values.places and not values["argv"]:
        reading.mistake(values.place("argv"), "a command has at least its name")
    if told[0] == "path" and values["path"] and not values["path"].startswith("/"):
        reading.mistake(values.place("path"), "expected a whole path")


def _build(values: Values, _value: Value, _reading: Reading) -> OutsideDeed:
    key = next(key for key in _DEEDS if key in values.places)
    return _DEEDS[key][1](values)


OUTSIDE: Final[Record[Any]] = Record(
    what="what came from outside",
    fields=(
        Field(name="command", shape=_NUMBER, doc="Which command it is about, counted from 1."),
        Field(name="task", shape=_NUMBER, doc="Which task, in the order of their starts."),
        Field(name="argv", shape=_WORDS, doc="The command that a client has run: its words."),
        Field(name="user", shape=text("a user's name"), default="", doc="Its user."),
        Field(name="uid", shape=_ID, doc="Its user's number, or of a path the owner's."),
        Field(name="gid", shape=_ID, doc="Its user's group."),
        Field(name="cwd", shape=_TEXT, default="/", doc="Where it was run."),
        Field(
            name="env",
            shape=Table(item=_TEXT, expected="variables"),
            default={},
            doc="Its environment, or what is other there than in that of `env_of`.",
        ),
        Field(name="unset", shape=_WORDS, default=(), doc="What it lacks of that."),
        Field(name="env_of", shape=_NUMBER, default=0, doc="The command with that environment."),
        Field(name="base", shape=BOOLEAN, default=False, doc="Its environment is that of others."),
        Field(name="stdin", shape=_TEXT, default="", doc="Its standard input."),
        Field(name="signal", shape=_SIGNAL, doc="Signal that has reached the command."),
        Field(name="left", shape=_STATUS, doc="How what it ran in the foreground has ended."),
        Field(
            name="stream", shape=whole("1 or 2", least=1, most=2), doc="File descriptor written to."
        ),
        Field(name="wrote", shape=_TEXT, doc="What the task has written."),
        Field(name="ended", shape=_STATUS, doc="Wait status with which the task has ended."),
        Field(name="path", shape=_TEXT, doc="Path of the machine that was seen."),
        Field(
            name="mode", shape=whole("rights", least=0, most=0o7777), default=0o644, doc="Its mode."
        ),
        Field(name="text", shape=_TEXT, doc="What the file holds; without it there is none."),
        Field(name="directory", shape=BOOLEAN, default=False, doc="It is a directory."),
        Field(name="stop", shape=BOOLEAN, doc="The cluster was ended here, and so does the run."),
    ),
    build=_build,
    check=_check,
)
