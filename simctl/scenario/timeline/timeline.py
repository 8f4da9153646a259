"""Read what happens to the cluster: command lines that are typed, and faults."""

import shlex
from collections.abc import Mapping
from typing import Any, Final

import attrs

from simctl.kernel.pattern import near
from simctl.kernel.places import Place
from simctl.plugins.job_submit.desc_fields import FIELDS
from simctl.scenario.appliance import APPLIANCE, change_text
from simctl.scenario.model import (
    Answer,
    AnswerEntry,
    ApplianceEntry,
    At,
    Checks,
    ConfEntry,
    Entry,
    FaultEntry,
    FilesEntry,
    Moment,
    OutsideEntry,
    PickEntry,
    Placed,
    ProgramsEntry,
    RunEntry,
    StayEntry,
    When,
)
from simctl.scenario.patterns import PATTERN
from simctl.scenario.positions import Reading, Value
from simctl.scenario.programs import FILES, PROGRAMS
from simctl.scenario.scalars import BOOLEAN, DURATION, text, whole
from simctl.scenario.shapes import Field, Items, Record, Scalar, Table, Values
from simctl.scenario.site.burst_buffer_conf import BURST_BUFFER_CONF
from simctl.scenario.timeline.faults import ERRNO, FAULT
from simctl.scenario.timeline.outside import OUTSIDE
from simctl.wire.burst_buffer_conf import file_name
from simctl.wire.ids import SECOND
from simctl.wire.records import JobDesc

COMMANDS: Final = (
    *("sbatch", "salloc", "srun", "srun_cr", "scancel", "scontrol", "squeue", "sinfo", "sacct"),
    *("sacctmgr", "sshare"),
)
OTHER_COMMANDS: Final = (
    *("sattach", "sbcast", "scrontab", "scrun", "sdiag", "sgather"),
    *("smap", "sprio", "sreport", "sstat", "strigger", "sview"),
    *("slurmctld", "slurmd", "slurmdbd"),
)
"""Slurm's other commands, which are not simulated."""

_SHELL_WORDS: Final = ("|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1")
_RUN_KEYS: Final = ("as", "expect", "exit", "stdout", "stderr", "becomes")


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
    bare = value.scalar.split()
    shell = [word for word in argv if word in bare and (word in _SHELL_WORDS or word.endswith(";"))]
    if shell:
        raise ValueError(f"no shell reads this line: {shell[0]!r} would be an argument like others")
    return value.scalar.strip(), argv


_MOMENT_KEYS: Final = ("at", "when")
_DEED_KEYS: Final = (
    *("run", "fault", "burst_buffer_conf", "burst_buffer"),
    *("files", "programs", "answer", "pick", "stay", "outside"),
)


_PLACED_DEEDS: Final = {"answer": "call", "pick": "turn"}
"""What can be done at a place of one kind alone."""


def _check_entry(values: Values, reading: Reading) -> None:
    """Check which keys stand together, whatever they say."""
    deed = _one_of(_DEED_KEYS, values, reading)
    if values["run"] is not None:
        fails = bool(values["expect"] or values["exit"] or "stderr" in values.places)
        reading.runs.append((values.place("run"), values["run"][1], fails))
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
    if "outside" in values.places:
        deed = values["outside"]
        return OutsideEntry(label=value.path, line=value.line, moment=moment, deed=deed)
    return None


def _checks(values: Values) -> Checks:
    return Checks(
        errno=values["expect"],
        exit=(values["exit"],) if "exit" in values.places else (),
        stdout=values["stdout"],
        stderr=values["stderr"],
        becomes=_becomes(values) if "becomes" in values.places else None,
    )


def _becomes(values: Values) -> dict[str, str]:
    return {FIELDS.get(name, name): each for name, each in values["becomes"].items()}


def conf_text(files: Mapping[str, Mapping[str, str | None]]) -> str:
    """Describe in a few words what is written into burst_buffer.conf."""
    words = [
        f"{key}={text}" if text is not None else f"without {key}"
        for keys in files.values()
        for key, text in keys.items()
    ]
    return f"{', '.join(file_name(name) for name in files)}: {', '.join(words)}"


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
        Field(name="errno", shape=ERRNO, default="", doc="The errno it sets."),
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
_DRAFT_FIELDS: Final = frozenset(attrs.fields_dict(JobDesc))


def _check_field(name: str) -> None:
    if name not in FIELDS and name not in _DRAFT_FIELDS:
        raise ValueError(f"no field {name!r} of a job{near(name, {*FIELDS, *_DRAFT_FIELDS})}")


_BECOMES: Final = Table(
    item=text("a value, such as 60 or unset", empty=True),
    expected="a mapping from fields of a job to values",
    check_key=_check_field,
)
_BECOMES_DOC: Final = "All that job_submit plugins change of it, by field, and what that becomes."
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
            shape=ERRNO,
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
        Field(name="becomes", shape=_BECOMES, doc=_BECOMES_DOC),
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
        Field(
            name="outside",
            shape=OUTSIDE,
            doc="What came from outside of a served cluster, as `simctl serve --record` writes it.",
        ),
    ),
    build=_build_entry,
    check=_check_entry,
)
_APART_US: Final = 60 * SECOND


def _build_row(values: Values, value: Value, reading: Reading) -> RunEntry:
    command, argv = values["run"] or ("", ())
    number = int(value.path.rpartition("[")[2].rstrip("]"))
    users = [name for name in reading.users if name != "root"]
    return RunEntry(
        label=value.path,
        line=value.line,
        moment=At(time_us=SECOND + number * _APART_US),
        user=values["as"] or next(iter(users), "root"),
        command=command,
        argv=argv,
        checks=_checks(values),
    )


def _check_row(values: Values, reading: Reading) -> None:
    if values["run"] is not None:
        fails = bool(values["expect"] or values["exit"] or "stderr" in values.places)
        reading.runs.append((values.place("run"), values["run"][1], fails))


_IN_ROWS: Final = {"run", *_RUN_KEYS}
JOBS: Final[Items[RunEntry]] = Items(
    item=Record(
        what="a row of `jobs`",
        fields=tuple(
            attrs.evolve(each, required=each.name == "run", default=None, shown="")
            if each.name in ("run", "as")
            else each
            for each in ENTRY.fields
            if each.name in _IN_ROWS
        ),
        build=_build_row,
        check=_check_row,
    ),
    expected="a list of command lines",
)
TIMELINE: Final[Items[Any]] = Items(item=ENTRY, expected="a list of entries")
