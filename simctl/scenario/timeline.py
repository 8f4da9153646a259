"""Read what happens to the cluster: command lines that are typed, and faults."""

import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from simctl.kernel.pattern import near
from simctl.kernel.places import Place
from simctl.scenario.appliance import APPLIANCE, change_text
from simctl.scenario.burst_buffer_conf import BURST_BUFFER_CONF
from simctl.scenario.model import (
    CONTROLLER,
    LOGIN,
    Answer,
    AnswerEntry,
    ApplianceEntry,
    At,
    Checks,
    ConfEntry,
    CrashFault,
    CutFault,
    Entry,
    FailFault,
    Fault,
    FaultEntry,
    FilesEntry,
    HangFault,
    Moment,
    PickEntry,
    Placed,
    ProgramsEntry,
    RaiseFault,
    RestartFault,
    RunEntry,
    StartFault,
    StayEntry,
    When,
)
from simctl.scenario.patterns import CALL_PATTERN, PATTERN
from simctl.scenario.positions import Reading, Unreadable, Value
from simctl.scenario.programs import FILES, PROGRAMS
from simctl.scenario.scalars import BOOLEAN, DURATION, text, whole
from simctl.scenario.shapes import Field, Forms, Items, Record, Scalar, Values
from simctl.wire.burst_buffer_conf import file_name
from simctl.wire.errno import errno_name, errno_number
from simctl.wire.ids import SECOND

COMMANDS: Final = (
    *("sbatch", "salloc", "srun", "srun_cr", "scancel", "scontrol", "squeue", "sinfo", "sacct"),
)
OTHER_COMMANDS: Final = (
    *("sacctmgr", "sattach", "sbcast", "scrontab", "scrun", "sdiag", "sgather"),
    *("smap", "sprio", "sreport", "sshare", "sstat", "strigger", "sview"),
    *("slurmctld", "slurmd", "slurmdbd"),
)
"""Slurm's other commands, which are not simulated."""

_SHELL_WORDS: Final = ("|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1")
_RUN_KEYS: Final = ("as", "expect", "exit", "stdout", "stderr")
_NOT_BUILT: Final = "known but not simulated yet"
_LATER_TARGETS: Final = re.compile(r"slurmctld|slurmd@\S+|stepd \S+@\S+|task \S+")


def _read_errno(value: Value, _: Reading) -> str:
    return errno_name(errno_number(value.scalar))


_ERRNO: Final = Scalar(
    expected="an error of Slurm such as ESLURM_DISABLED",
    convert=_read_errno,
    json={"type": ["string", "integer"]},
)


def _read_target(value: Value, reading: Reading) -> str:
    target = value.scalar.strip()
    if target in reading.nodes:
        return target
    if _LATER_TARGETS.fullmatch(target):
        raise ValueError(f"to crash or start {target!r} is {_NOT_BUILT}; a node can be")
    if "[" in target or "," in target:
        raise ValueError(f"{target!r} is several nodes; write a fault for each")
    if "nodes" in reading.unsure:
        return target
    raise ValueError(f"no node {target!r}{near(target, list(reading.nodes))}")


_TARGET: Final = Scalar(
    expected="the name of a node", convert=_read_target, json={"type": "string", "minLength": 1}
)


def _read_end(value: Value, reading: Reading) -> str:
    """Read one end of a link: a node, the controller's host, or the login host."""
    host = value.scalar.strip()
    hosts = [*reading.nodes, CONTROLLER, LOGIN]
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
        Field(name="errno", shape=_ERRNO, default="", doc="The errno they set; none if left out."),
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


def _read_daemon(value: Value, _: Reading) -> str:
    if value.scalar != CONTROLLER:
        raise ValueError(f"only {CONTROLLER} restarts in good order; a node can crash and start")
    return value.scalar


_RESTART: Final[Record[Fault]] = Record(
    what="a `restart` fault",
    fields=(
        Field(
            name="restart",
            shape=Scalar(expected=CONTROLLER, convert=_read_daemon, json={"const": CONTROLLER}),
            required=True,
            doc="The daemon that stops in good order and starts again: slurmctld.",
        ),
        Field(
            name="for", shape=DURATION, default=SECOND, shown="1s", doc="For how long it is away."
        ),
    ),
    build=lambda values, _value, _reading: RestartFault(for_us=values["for"]),
)
_CRASH: Final[Record[Fault]] = Record(
    what="a `crash` fault",
    fields=(Field(name="crash", shape=_TARGET, required=True, doc="The node that goes down."),),
    build=lambda values, _value, _reading: CrashFault(node=values["crash"]),
)
_START: Final[Record[Fault]] = Record(
    what="a `start` fault",
    fields=(
        Field(name="start", shape=_TARGET, required=True, doc="The node that starts."),
        Field(
            name="clean",
            shape=BOOLEAN,
            default=False,
            shown=False,
            doc="Its slurmd starts with -c, and clears the state of its switch.",
        ),
    ),
    build=lambda values, _value, _reading: StartFault(node=values["start"], clean=values["clean"]),
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
FAULT: Final[Forms[Fault]] = Forms(
    what="a fault",
    forms={
        "fail": _FAIL,
        "raise": _RAISE,
        "hang": _HANG,
        "crash": _CRASH,
        "start": _START,
        "cut": _CUT,
        "restart": _RESTART,
    },
    not_built=dict.fromkeys(("drop", "duplicate", "delay", "corrupt", "disk"), _NOT_BUILT),
)


def _read_user(value: Value, reading: Reading) -> str:
    if value.scalar not in reading.users:
        raise ValueError(f"no user {value.scalar!r} in `users:`{near(value.scalar, reading.users)}")
    return value.scalar


def _read_command(value: Value, reading: Reading) -> tuple[str, tuple[str, ...]]:
    """Split a command line at blanks, as a shell would, and no more than that."""
    try:
        argv = tuple(shlex.split(value.scalar))
    except ValueError as error:
        raise ValueError(f"cannot split {value.shown()} into words: {error}".lower()) from error
    if not argv:
        raise ValueError
    if argv[0] in OTHER_COMMANDS and argv[0] not in reading.commands:
        raise ValueError(f"{argv[0]} is known to Slurm but not simulated yet")
    if argv[0] not in reading.commands:
        hint = near(argv[0], reading.commands) or f"; there are {', '.join(reading.commands)}"
        raise ValueError(f"no command {argv[0]!r}{hint}")
    shell = [word for word in argv if word in _SHELL_WORDS or word.endswith(";")]
    if shell:
        raise ValueError(f"no shell reads this line: {shell[0]!r} would be an argument like others")
    return value.scalar.strip(), argv


_MOMENT_KEYS: Final = ("at", "when")
_DEED_KEYS: Final = (
    *("run", "fault", "burst_buffer_conf", "burst_buffer"),
    *("files", "programs", "answer", "pick", "stay"),
)


_PLACED_DEEDS: Final = {"answer": "call", "pick": "turn"}
"""What can be done at a place of one kind alone."""


def _check_entry(values: Values, reading: Reading) -> None:
    """Check which keys stand together, whatever they say."""
    deed = _one_of(_DEED_KEYS, values, reading)
    if values["run"] is not None:
        reading.runs.append((values.place("run"), values["run"][1]))
    if deed == "files" and values["as"] != "root":
        for name in values["files"] or ():
            if name.startswith("/"):
                message = f"{name!r} is root's to write: `as: root`, or a name below the folder"
                reading.mistake(values.place("files"), message)
    if "place" in values.places:
        moment = _check_place(values, deed, reading)
    else:
        moment = _one_of(_MOMENT_KEYS, values, reading)
        if deed in _PLACED_DEEDS:
            message = f"`{deed}` is for one {_PLACED_DEEDS[deed]}: give its `place`"
            reading.mistake(values.place(deed), message)
    if deed != "run":
        for key in _RUN_KEYS if deed else ():
            if key in values.places and (key, deed) != ("as", "files"):
                reading.mistake(values.place(key), f"`{key}` goes with `run`, not with `{deed}`")
    for key in ("each", "skip") if moment in ("at", "place") else ():
        if key in values.places:
            reading.mistake(values.place(key), f"`{key}` goes with `when`, not with `{moment}`")


def _check_place(values: Values, deed: str, reading: Reading) -> str:
    """Check what stands beside `place`; return that as the kind of moment."""
    kind = "turn" if values["place"] is None else values["place"].kind
    if "when" in values.places:
        reading.mistake(values.place("when"), "`place` and `when` together: a place is exact")
    if "at" in values.places and kind != "turn":
        message = f"`at` goes with `place: turn N`; time stands where {kind} N is"
        reading.mistake(values.place("at"), message)
    wanted = _PLACED_DEEDS.get(deed, kind)
    if kind != wanted:
        reading.mistake(values.place("place"), f"`{deed}` goes with `place: {wanted} N`")
    return "place"


def _one_of(keys: tuple[str, ...], values: Values, reading: Reading) -> str:
    """Return which of some keys is there; unless exactly one is, note that and return nothing."""
    present = [key for key in keys if key in values.places]
    if len(present) == 1:
        return present[0]
    if present:
        both = " and ".join(f"`{key}`" for key in present)
        reading.mistake(values.place(present[1]), f"{both} together: write an entry for each")
    else:
        names = " or ".join(f"`{key}`" for key in keys)
        reading.mistake(values.whole, f"missing key: {names}")
    return ""


def _build_entry(values: Values, value: Value, reading: Reading) -> Entry:
    moment: Moment = At(time_us=values["at"] or 0)
    if "when" in values.places:
        moment = When(pattern=values["when"], each=values["each"], skip=values["skip"])
    if "place" in values.places:
        moment = Placed(place=values["place"], time_us=values["at"])
    if other := _build_other(values, value, moment):
        return other
    if "fault" in values.places:
        return FaultEntry(
            label=value.path,
            line=value.line,
            moment=moment,
            fault=values["fault"],
            text=fault_text(values["fault"]),
        )
    if "burst_buffer_conf" in values.places:
        return ConfEntry(
            label=value.path,
            line=value.line,
            moment=moment,
            burst_buffer_conf=values["burst_buffer_conf"],
            text=conf_text(values["burst_buffer_conf"]),
        )
    if "burst_buffer" in values.places:
        return ApplianceEntry(
            label=value.path,
            line=value.line,
            moment=moment,
            change=values["burst_buffer"],
            text=change_text(values.place("burst_buffer")),
        )
    command, argv = values["run"]
    return RunEntry(
        label=value.path,
        line=value.line,
        moment=moment,
        user=values["as"],
        command=command,
        argv=argv,
        checks=_checks(values),
    )


def _build_other(values: Values, value: Value, moment: Moment) -> Entry | None:
    """Build what people do beside typing commands; None for any other entry."""
    if "files" in values.places:
        return FilesEntry(
            label=value.path,
            line=value.line,
            moment=moment,
            user=values["as"],
            files=values["files"],
        )
    if "programs" in values.places:
        return ProgramsEntry(
            label=value.path, line=value.line, moment=moment, programs=values["programs"]
        )
    if "answer" in values.places:
        return AnswerEntry(
            label=value.path, line=value.line, moment=moment, answer=values["answer"]
        )
    if "pick" in values.places:
        return PickEntry(label=value.path, line=value.line, moment=moment, rank=values["pick"])
    if "stay" in values.places:
        return StayEntry(label=value.path, line=value.line, moment=moment)
    return None


def _checks(values: Values) -> Checks:
    return Checks(
        errno=values["expect"],
        exit=(values["exit"],) if "exit" in values.places else (),
        stdout=values["stdout"],
        stderr=values["stderr"],
    )


def conf_text(files: Mapping[str, Mapping[str, str | None]]) -> str:
    """Describe in a few words what is written into burst_buffer.conf."""
    words = [
        f"{key}={text}" if text is not None else f"without {key}"
        for keys in files.values()
        for key, text in keys.items()
    ]
    return f"{', '.join(file_name(name) for name in files)}: {', '.join(words)}"


def fault_text(fault: Fault) -> str:
    """Describe a fault in a few words."""
    if isinstance(fault, CrashFault):
        return f"crash {fault.node}"
    if isinstance(fault, StartFault):
        return f"start {fault.node}{' clean' if fault.clean else ''}"
    if isinstance(fault, RestartFault):
        return f"restart {CONTROLLER} for {fault.for_us / SECOND:g}s"
    if isinstance(fault, CutFault):
        length = "" if fault.for_us is None else f" for {fault.for_us / SECOND:g}s"
        return f"cut {fault.one} {fault.other}{length}"
    if isinstance(fault, HangFault):
        length = "" if fault.for_us is None else f" for {fault.for_us / SECOND:g}s"
        return f"hang {fault.pattern.text}{length}"
    word = "fail" if isinstance(fault, FailFault) else "raise"
    return f"{word} {fault.pattern.text}"


def _read_place(value: Value, _: Reading) -> Place:
    return Place.parse(value.scalar)


_PLACE: Final = Scalar(
    expected="a place such as event 12, call 7 or turn 40",
    convert=_read_place,
    json={"type": "string", "pattern": "^(event|call|turn) +[0-9]+$"},
)


def _read_stay(value: Value, reading: Reading) -> bool:
    if not BOOLEAN.convert(value, reading):
        raise ValueError("an entry that does nothing at all: leave it out")
    return True


_STAY: Final = Scalar(expected="true", convert=_read_stay, json={"const": True})


def _check_answer(values: Values, reading: Reading) -> None:
    if "delay" in values.places and len(values.places) > 1:
        message = "a call that is delayed runs then: `delay` stands alone"
        reading.mistake(values.place("delay"), message)
    if not values.places:
        reading.mistake(values.whole, "missing key: `return`, `errno` or `delay`")


_ANSWER: Final[Record[Answer]] = Record(
    what="an answer",
    fields=(
        Field(
            name="return",
            shape=whole("a whole number", least=-(2**31), most=2**31 - 1),
            doc="What the call returns; -1 if only `errno` is given.",
        ),
        Field(name="errno", shape=_ERRNO, default="", doc="The errno it sets."),
        Field(name="delay", shape=DURATION, doc="How long it blocks its caller before it runs."),
    ),
    build=lambda values, _value, _reading: Answer(
        rc=-1 if values["return"] is None else values["return"],
        errno=values["errno"],
        delay_us=values["delay"],
    ),
    check=_check_answer,
)
_TEXTS: Final = Items(item=text("a text it contains"), single=True, expected="a list of texts")
ENTRY: Final[Record[Entry]] = Record(
    what="an entry of the timeline",
    fields=(
        Field(name="at", shape=DURATION, doc="Virtual time at which it happens."),
        Field(
            name="when", shape=PATTERN, doc="Event upon which it happens, the first that matches."
        ),
        Field(
            name="each",
            shape=BOOLEAN,
            default=False,
            shown=False,
            doc="Upon every event that matches `when`, not the first alone.",
        ),
        Field(
            name="skip",
            shape=whole("a whole number of 0 or more", least=0),
            default=0,
            shown=0,
            doc="How many events that match `when` pass first.",
        ),
        Field(
            name="place",
            shape=_PLACE,
            doc="Exact place of the run, as `simctl repl` saves it; with `turn N`, `at` sets time.",
        ),
        Field(
            name="as",
            shape=Scalar(
                expected="the name of a user", convert=_read_user, json={"type": "string"}
            ),
            default="root",
            shown="root",
            doc="User who types the command, or writes the files.",
        ),
        Field(
            name="run",
            shape=Scalar(
                expected="a command line such as sbatch hello.sh",
                convert=_read_command,
                json={"type": "string", "minLength": 1},
            ),
            doc="Command line typed on the host `login`.",
        ),
        Field(
            name="expect",
            shape=_ERRNO,
            default="",
            doc="Error of Slurm that the command must end with.",
        ),
        Field(
            name="exit",
            shape=whole("an exit status from 0 to 255", least=0, most=255),
            doc="Exit status that the command must have.",
        ),
        Field(name="stdout", shape=_TEXTS, default=(), doc="Text its standard output contains."),
        Field(name="stderr", shape=_TEXTS, default=(), doc="Text its standard error contains."),
        Field(name="fault", shape=FAULT, doc="What goes wrong."),
        Field(
            name="burst_buffer_conf",
            shape=BURST_BUFFER_CONF,
            doc="Keys of burst_buffer.conf to be written anew; an empty one is taken out.",
        ),
        Field(
            name="burst_buffer",
            shape=APPLIANCE,
            doc="What changes about the appliance behind burst buffer plugins.",
        ),
        Field(name="files", shape=FILES, doc="Files that the user writes."),
        Field(name="programs", shape=PROGRAMS, doc="What programs do from now on."),
        Field(name="answer", shape=_ANSWER, doc="What stands in for a plugin, at `place: call N`."),
        Field(
            name="pick",
            shape=whole("a whole number above 0", least=1, most=1_000_000),
            doc="Which of the turns due next goes first, counted from 1, at `place: turn N`.",
        ),
        Field(name="stay", shape=_STAY, doc="Nothing, but the run does not end before."),
    ),
    build=_build_entry,
    check=_check_entry,
)
TIMELINE: Final[Items[Any]] = Items(item=ENTRY, expected="a list of entries")
