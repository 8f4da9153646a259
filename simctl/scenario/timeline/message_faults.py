"""Read what can befall messages: lost, doubled, late, overtaken or damaged ones."""

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import Final

from simctl.kernel.fabric import STREAMED
from simctl.kernel.links import MessageFaultKind
from simctl.kernel.pattern import near
from simctl.scenario.faults import Fault, MessageFault
from simctl.scenario.positions import Reading, Value
from simctl.scenario.scalars import DURATION, choice, whole
from simctl.scenario.shapes import Field, Record, Scalar, Values
from simctl.wire.hosts import CONTROLLER, LOGIN
from simctl.wire.ids import SECOND
from simctl.wire.messages import Message

_DAEMONS: Final = ("slurmctld", "slurmd", "slurmstepd")
_STEPD: Final = re.compile(r"stepd [0-9]+\.(?:[0-9]+|batch)")
_CHANCE: Final = re.compile(r"0?\.[0-9]{1,9}|1(?:\.0{0,9})?")
_IN_STREAMS: Final = ("drop", "delay")
"""What may befall what tasks write: its order is kept."""


def _kinds(kind: type[Message]) -> Iterator[type[Message]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


@cache
def rpc_names() -> tuple[str, ...]:
    """Return the names of all messages there are."""
    return tuple(sorted({each.rpc for each in _kinds(Message)}))


def _read_rpc(value: Value, _: Reading) -> str:
    name = value.scalar.strip()
    known = rpc_names()
    if name in known or ("*" in name and any(fnmatchcase(each, name) for each in known)):
        return name
    if "*" in name:
        raise ValueError(f"no message's name is like {name!r}")
    raise ValueError(f"no message {name!r}{near(name, known)}")


_RPC: Final = Scalar(
    expected="the name of a message such as REQUEST_LAUNCH_TASKS, in which * may stand",
    convert=_read_rpc,
    json={"type": "string", "minLength": 1},
)


def _read_address(value: Value, reading: Reading) -> str:
    """Read a host, or a daemon or command on one."""
    address = value.scalar.strip()
    who, at, host = address.rpartition("@")
    hosts = [*reading.nodes, CONTROLLER, LOGIN]
    if "[" in host or "," in host:
        raise ValueError(f"{host!r} is several hosts; write a fault for each")
    if host not in hosts and not ("nodes" in reading.unsure and host):
        raise ValueError(f"no host {host!r}{near(host, hosts)}")
    if at and who not in (*_DAEMONS, *reading.commands) and not _STEPD.fullmatch(who):
        known = ("slurmd", *reading.commands)
        raise ValueError(f"nobody is called {who!r}{near(who, known)}; there is slurmd@{host}")
    return address


_ADDRESS: Final = Scalar(
    expected="a host, or who is there such as slurmd@n1",
    convert=_read_address,
    json={"type": "string", "minLength": 1},
)


def _read_chance(value: Value, _: Reading) -> float:
    if not _CHANCE.fullmatch(value.scalar):
        raise ValueError
    chance = float(value.scalar)
    if not chance:
        raise ValueError
    return chance


_WHERE: Final = (
    Field(name="from", shape=_ADDRESS, doc="Who sends them: a host, or an address; else anybody."),
    Field(name="to", shape=_ADDRESS, doc="Whom they are for: a host, or an address."),
)
_HOW_MANY: Final = (
    Field(
        name="times",
        shape=whole("a whole number above 0", least=1),
        doc="How many messages it strikes: 1 if left out, but all with `chance`, `for` or a `*`.",
    ),
    Field(
        name="skip",
        shape=whole("a whole number of 0 or more", least=0),
        default=0,
        shown=0,
        doc="How many that are meant get through first.",
    ),
    Field(
        name="chance",
        shape=Scalar(
            expected="a number above 0, up to 1",
            convert=_read_chance,
            json={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        ),
        default=1.0,
        shown=1,
        doc="How likely it strikes each that is meant; drawn from the seed.",
    ),
    Field(
        name="for",
        shape=DURATION,
        doc="For how long it is in force; for ever if left out.",
    ),
)


def _check(kind: str) -> Callable[[Values, Reading], None]:
    def check(values: Values, reading: Reading) -> None:
        if kind in values.places and values[kind] == STREAMED and kind not in _IN_STREAMS:
            message = f"{STREAMED} is a stream: it is dropped or delayed as a whole, in its order"
            reading.mistake(values.place(kind), message)

    return check


def _form(
    kind: MessageFaultKind, what: str, *more: Field, rpc: Scalar[str] = _RPC
) -> Record[Fault]:
    """Return the form of a fault of messages."""
    return Record(
        what=f"a `{kind}` fault",
        fields=(
            Field(name=kind, shape=rpc, required=True, doc=what),
            *more,
            *_WHERE,
            *_HOW_MANY,
        ),
        build=lambda values, _value, _reading: MessageFault(
            kind=kind,
            rpc=values[kind],
            sender=values["from"] or "",
            receiver=values["to"] or "",
            by_us=values.get("by") or 0,
            how=values.get("how") or "",
            times=_times(values, values[kind]),
            skip=values["skip"],
            chance=values["chance"],
            for_us=values["for"],
        ),
        check=_check(kind),
    )


def _times(values: Values, rpc: str) -> int:
    """Return how many messages a rule strikes, 0 for all."""
    times: int | None = values["times"]
    if times is not None:
        return times
    endless = {"chance", "for"} & set(values.places) or "*" in rpc
    return 0 if endless else 1


_BY: Final = "by"
MESSAGE_FAULTS: Final[dict[str, Record[Fault]]] = {
    "drop": _form("drop", "Messages that are lost on their way."),
    "duplicate": _form(
        "duplicate",
        "Messages that arrive twice.",
        Field(
            name=_BY,
            shape=DURATION,
            default=0,
            shown="0s",
            doc="How much later the copy comes.",
        ),
    ),
    "delay": _form(
        "delay",
        "Messages that come late.",
        Field(name=_BY, shape=DURATION, required=True, doc="How much later they come."),
    ),
    "reorder": _form(
        "reorder",
        "Messages that wait until the next one on their link has passed them.",
        Field(
            name=_BY,
            shape=DURATION,
            default=SECOND,
            shown="1s",
            doc="How long they wait at most.",
        ),
    ),
}


_LAUNCHES: Final = (
    *("REQUEST_LAUNCH_TASKS", "REQUEST_BATCH_JOB_LAUNCH", "RESPONSE_JOB_STEP_CREATE"),
)
"""The messages that bear a credential."""


def _read_launch(value: Value, reading: Reading) -> str:
    name = _read_rpc(value, reading)
    if name not in _LAUNCHES:
        raise ValueError(f"{name} bears no credential; {', '.join(_LAUNCHES)} do")
    return name


CORRUPT_MESSAGE: Final = _form(
    "corrupt",
    "Launches whose credential is damaged.",
    Field(
        name="how",
        shape=choice("signature", "node", "user"),
        required=True,
        doc="What is wrong with it: its signature; or it is for another node or user, and signed.",
    ),
    rpc=Scalar(
        expected="the name of a message that bears a credential",
        convert=_read_launch,
        json={"enum": list(_LAUNCHES)},
    ),
)


def is_message(name: str) -> bool:
    """Return whether what is to be damaged is a message, by its name; else it is a file."""
    return name.strip().startswith(("REQUEST_", "RESPONSE_", "MESSAGE_", "SRUN_"))
