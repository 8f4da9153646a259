"""Read what can go wrong: daemons that die and start, links, plugin calls that fail."""

from typing import Any, Final

import attrs

from simctl.kernel.disk import SHARED
from simctl.kernel.pattern import near
from simctl.scenario.faults import (
    ControllerTarget,
    CorruptFault,
    Crash,
    CutFault,
    DiskFault,
    FailFault,
    Fault,
    HangFault,
    NodeTarget,
    RaiseFault,
    Restart,
    SlurmdTarget,
    Start,
    StepdTarget,
    Stop,
    TaskTarget,
)
from simctl.scenario.patterns import CALL_PATTERN
from simctl.scenario.positions import Reading, Unreadable, Value
from simctl.scenario.scalars import BOOLEAN, DURATION, choice, text, whole
from simctl.scenario.shapes import Field, Forms, Items, Record, Scalar, Values
from simctl.scenario.timeline.message_faults import CORRUPT_MESSAGE, MESSAGE_FAULTS, is_message
from simctl.scenario.timeline.service_faults import ACCOUNTING, PREEMPT
from simctl.scenario.timeline.targets import targets
from simctl.wire.errno import errno_name, errno_number
from simctl.wire.hosts import CONTROLLER, LOGIN
from simctl.wire.ids import SECOND


def _read_errno(value: Value, _: Reading) -> str:
    return errno_name(errno_number(value.scalar))


ERRNO: Final = Scalar(
    expected="an error of Slurm such as ESLURM_DISABLED",
    convert=_read_errno,
    json={"type": ["string", "integer"]},
)


def _read_end(value: Value, reading: Reading) -> str:
    """Read one end of a link: a node, the controller's host, or the login host."""
    host = value.scalar.strip()
    hosts = [*reading.nodes, CONTROLLER, LOGIN, *([reading.backup] if reading.backup else [])]
    if host in hosts or ("nodes" in reading.unsure and host):
        return host
    if "[" in host or "," in host:
        raise ValueError(f"{host!r} is several nodes; write a fault for each")
    raise ValueError(f"no node {host!r}, nor is it {CONTROLLER} or {LOGIN}{near(host, hosts)}")


_END: Final = Scalar(
    expected="the name of a node, slurmctld or login",
    convert=_read_end,
    json={"type": "string", "minLength": 1},
)
_TIMES: Final = Field(
    name="times",
    shape=whole("a whole number above 0", least=1),
    default=1,
    shown=1,
    doc="How many calls it concerns.",
)


_SKIP: Final = Field(
    name="skip",
    shape=whole("a whole number of 0 or more", least=0),
    default=0,
    shown=0,
    doc="How many matching calls are let through first.",
)


def _build_fail(values: Values, _: Value, __: Reading) -> Fault:
    return FailFault(
        pattern=values["fail"],
        errno=values["errno"],
        rc=values["rc"],
        times=values["times"],
        skip=values["skip"],
    )


def _build_raise(values: Values, _: Value, __: Reading) -> Fault:
    return RaiseFault(pattern=values["raise"], times=values["times"])


_FAIL: Final[Record[Fault]] = Record(
    what="a `fail` fault",
    fields=(
        Field(name="fail", shape=CALL_PATTERN, required=True, doc="Plugin calls that fail."),
        Field(name="errno", shape=ERRNO, default="", doc="The errno they set; none if left out."),
        Field(
            name="rc",
            shape=whole("a whole number", least=-(2**31), most=2**31 - 1),
            default=-1,
            shown=-1,
            doc="What they return.",
        ),
        _TIMES,
        _SKIP,
    ),
    build=_build_fail,
)
_RAISE: Final[Record[Fault]] = Record(
    what="a `raise` fault",
    fields=(
        Field(name="raise", shape=CALL_PATTERN, required=True, doc="Plugin calls that raise."),
        _TIMES,
    ),
    build=_build_raise,
)
_HANG: Final[Record[Fault]] = Record(
    what="a `hang` fault",
    fields=(
        Field(name="hang", shape=CALL_PATTERN, required=True, doc="Plugin calls that hang."),
        Field(name="for", shape=DURATION, doc="For how long; for ever if left out."),
        _TIMES,
        _SKIP,
    ),
    build=lambda values, _value, _reading: HangFault(
        pattern=values["hang"],
        for_us=values["for"],
        times=values["times"],
        skip=values["skip"],
    ),
)


_RESTART: Final[Record[Fault]] = Record(
    what="a `restart` fault",
    fields=(
        Field(
            name="restart",
            shape=targets(ControllerTarget, SlurmdTarget),
            required=True,
            doc="The daemon that stops in good order and starts again: slurmctld or slurmd@n1.",
        ),
        Field(
            name="for", shape=DURATION, default=SECOND, shown="1s", doc="For how long it is away."
        ),
    ),
    build=lambda values, _value, _reading: Restart(target=values["restart"], for_us=values["for"]),
)


def _check_crash(values: Values, reading: Reading) -> None:
    who = values["crash"]
    if who is None:
        return
    if "saved" in values.places and not isinstance(who, ControllerTarget):
        reading.mistake(values.place("saved"), f"only {CONTROLLER} saves its state")
    if "noticed" in values.places and not isinstance(who, NodeTarget):
        reading.mistake(values.place("noticed"), f"only of a node {CONTROLLER} takes notice")


_CRASH: Final[Record[Fault]] = Record(
    what="a `crash` fault",
    fields=(
        Field(
            name="crash",
            shape=targets(NodeTarget, ControllerTarget, SlurmdTarget, StepdTarget, TaskTarget),
            required=True,
            doc="Who dies: a node with all that runs there, slurmctld, slurmd@n1, stepd 1.0@n1 or "
            "task 1.0.3.",
        ),
        Field(
            name="saved",
            shape=BOOLEAN,
            default=False,
            shown=False,
            doc="slurmctld dies as if it had just saved its state.",
        ),
        Field(
            name="noticed",
            shape=BOOLEAN,
            default=False,
            shown=False,
            doc="slurmctld gives the node up at once, not after SlurmdTimeout.",
        ),
    ),
    build=lambda values, _value, _reading: Crash(
        target=values["crash"], saved=values["saved"], noticed=values["noticed"]
    ),
    check=_check_crash,
)


_STOP: Final[Record[Fault]] = Record(
    what="a `stop` fault",
    fields=(
        Field(
            name="stop",
            shape=targets(ControllerTarget, SlurmdTarget),
            required=True,
            doc="The daemon that stops in good order, as after SIGTERM: slurmctld or slurmd@n1.",
        ),
    ),
    build=lambda values, _value, _reading: Stop(target=values["stop"]),
)


_START: Final[Record[Fault]] = Record(
    what="a `start` fault",
    fields=(
        Field(
            name="start",
            shape=targets(NodeTarget, ControllerTarget, SlurmdTarget),
            required=True,
            doc="Who starts: a node that is down, slurmctld, or slurmd@n1.",
        ),
        Field(
            name="clean",
            shape=BOOLEAN,
            default=False,
            shown=False,
            doc="It starts with -c: a slurmd clears the state of its switch, slurmctld takes "
            "nothing from its state files.",
        ),
    ),
    build=lambda values, _value, _reading: Start(target=values["start"], clean=values["clean"]),
)


def _check_cut(values: Values, reading: Reading) -> None:
    """Check that a link has two ends, and that they are not the same."""
    ends = values["cut"]
    if "cut" not in values.places or ends is None:
        return
    if len(values.places["cut"].items()) != _ENDS:
        reading.mistake(values.place("cut"), "a link has two ends: [slurmctld, n1]")
    elif len(ends) == _ENDS and ends[0] == ends[1]:
        reading.mistake(values.place("cut"), f"a link joins two hosts, not {ends[0]} with itself")


def _build_cut(values: Values, _: Value, __: Reading) -> Fault:
    if len(values["cut"]) != _ENDS:
        # One of the ends could not be read, and that is told already.
        raise Unreadable(_CUT.what)
    one, other = values["cut"]
    return CutFault(one=one, other=other, for_us=values["for"])


_ENDS: Final = 2
_CUT: Final[Record[Fault]] = Record(
    what="a `cut` fault",
    fields=(
        Field(
            name="cut",
            shape=Items(item=_END, expected="a list of two hosts"),
            required=True,
            doc="The two hosts whose link carries nothing: nodes, slurmctld, login.",
        ),
        Field(name="for", shape=DURATION, doc="For how long; for ever if left out."),
    ),
    build=_build_cut,
    check=_check_cut,
)
_CORRUPT: Final[Record[Fault]] = Record(
    what="a `corrupt` fault",
    fields=(
        Field(
            name="corrupt",
            shape=text("the path of a file, or the name of one in StateSaveLocation"),
            required=True,
            doc="The file that is damaged: a path, or a name in StateSaveLocation.",
        ),
        Field(
            name="how",
            shape=choice("truncate", "flip", "version", "foreign"),
            required=True,
            doc="Cut off in the middle, one bit turned, of another version, of another cluster.",
        ),
        Field(name="host", shape=_END, default=CONTROLLER, shown=CONTROLLER, doc="Whose disk."),
    ),
    build=lambda values, _value, _reading: CorruptFault(
        file=values["corrupt"], how=values["how"], host=values["host"]
    ),
)


@attrs.frozen
class _Corrupt:
    """The shape of a `corrupt` fault: a message is damaged, which its name tells, or a file."""

    def read(self, value: Value, reading: Reading) -> Fault:
        """Return what the form for that says."""
        names = [node.value for key, node in value.node.value if key.value == "corrupt"]
        named = any(isinstance(name, str) and is_message(name) for name in names)
        return (CORRUPT_MESSAGE if named else _CORRUPT).read(value, reading)

    def schema(self) -> dict[str, Any]:
        """Return a choice of both."""
        return {"oneOf": [CORRUPT_MESSAGE.schema(), _CORRUPT.schema()]}


def _read_disk(value: Value, reading: Reading) -> str:
    return SHARED if value.scalar.strip() == SHARED else _read_end(value, reading)


_DISK: Final[Record[Fault]] = Record(
    what="a `disk` fault",
    fields=(
        Field(
            name="disk",
            shape=Scalar(
                expected="the name of a node, slurmctld, login or shared",
                convert=_read_disk,
                json={"type": "string", "minLength": 1},
            ),
            required=True,
            doc="Whose disk: a node, slurmctld, login, or shared for what all hosts share.",
        ),
        Field(
            name="how",
            shape=choice("full", "read_only"),
            required=True,
            doc="Nothing more fits, or nothing can be changed.",
        ),
        Field(name="for", shape=DURATION, doc="For how long; for ever if left out."),
    ),
    build=lambda values, _value, _reading: DiskFault(
        host=values["disk"], how=values["how"], for_us=values["for"]
    ),
)


FAULT: Final[Forms[Fault]] = Forms(
    what="a fault",
    forms={
        "fail": _FAIL,
        "raise": _RAISE,
        "hang": _HANG,
        "crash": _CRASH,
        "start": _START,
        "stop": _STOP,
        "cut": _CUT,
        "corrupt": _Corrupt(),
        "disk": _DISK,
        "restart": _RESTART,
        "accounting": ACCOUNTING,
        "preempt": PREEMPT,
        **MESSAGE_FAULTS,
    },
)
