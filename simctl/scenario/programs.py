"""Read what users have: plugins in files of their own, files, and what simulated programs do."""

import re
from pathlib import Path
from typing import Any, Final

import attrs

from simctl.kernel.pattern import near
from simctl.scenario.durations import format_us
from simctl.scenario.model import PluginSpec, Program, ProgramSpec
from simctl.scenario.positions import Reading, Value
from simctl.scenario.scalars import BOOLEAN, DURATION, size, text, whole
from simctl.scenario.shapes import (
    Built,
    Either,
    Field,
    Items,
    Nothing,
    Record,
    Scalar,
    Table,
    Values,
)
from simctl.stepd.outcome import DEFAULT_IMAGE
from simctl.stepd.signals import UNCATCHABLE, SignalError, signal_name, signal_number

_NAME: Final = r"[^\W\d]\w*"
_REFERENCE: Final = re.compile(
    rf"(?P<file>.+\.(py(?=(:{_NAME})?$)|so$|c$))(:{_NAME})?|(.*/)?{_NAME}(\.{_NAME})*:{_NAME}|{_NAME}(\.{_NAME})+"
)


def _read_plugin(value: Value, reading: Reading) -> PluginSpec:
    reference = value.scalar
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise ValueError
    file = match["file"]
    if file is not None and not Path(reading.folder, file).is_file():
        beside = sorted(Path(reading.folder, file).parent.glob(f"*{Path(file).suffix}"))
        there = [str(Path(file).with_name(one.name)) for one in beside]
        raise ValueError(f"no file {file!r} beside the scenario{near(str(Path(file)), there)}")
    return PluginSpec(reference=reference, line=value.line, column=value.column)


PLUGINS: Final = Items(
    expected="a list of plugins",
    item=Scalar(
        expected='a file or module and the class in it, such as "./my_switch.py:MySwitch", '
        'or a compiled plugin, "./my_switch.so" or "./my_switch.c"',
        convert=_read_plugin,
        json={"type": "string", "pattern": r"\.py(:\w+)?$|\.(so|c)$|^(.*/)?\w+(\.\w+)*[:.]\w+$"},
    ),
)


def _read_library(value: Value, reading: Reading) -> str:
    path = Path(reading.folder, value.scalar).absolute()
    if not path.is_file():
        beside = [str(each) for each in sorted(path.parent.glob(f"*{path.suffix}"))]
        raise ValueError(f"no file {value.scalar!r}{near(str(path), beside)}")
    return str(path)


LIBRARY: Final = Scalar(
    expected='the path of a file, such as "/usr/lib/slurm/libslurmfull.so"',
    convert=_read_library,
    json={"type": "string", "minLength": 1},
)
"""A file that compiled plugins need beside themselves, from the folder of the scenario on."""


def file_key(name: str) -> str:
    """Return the name under which a file of the scenario is known: `./hello.sh` is `hello.sh`."""
    while name.startswith("./"):
        name = name[2:].lstrip("/")
    return name


def _check_file_name(name: str) -> None:
    parts = file_key(name).split("/")
    if "\0" in name or not file_key(name) or name.endswith("/") or ".." in parts:
        raise ValueError(f"{name!r} cannot be a file: give a name below the users' folder")


def _build_files(files: dict[str, str], value: Value, reading: Reading) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, content in files.items():
        if file_key(name) in found:
            reading.mistake(value, f"{name!r} is the same file as another: ./ changes nothing")
        found[file_key(name)] = content
    return found


FILES: Final = Built(
    shape=Table(
        expected="names of files with their text",
        check_key=_check_file_name,
        item=Either(
            expected="the text of a file",
            scalar=text("the text of a file", empty=True),
            empty=Nothing(value=""),
        ),
    ),
    build=_build_files,
)


def _read_signal(value: Value, _: Reading) -> int:
    number = _signal(value.scalar)
    if number < 1:
        raise ValueError
    return number


def _signal(name: str) -> int:
    try:
        return signal_number(name)
    except SignalError as error:
        raise ValueError(str(error)) from error


def _check_catchable(name: str) -> None:
    if _signal(name) in UNCATCHABLE:
        raise ValueError(f"no program can catch or ignore {signal_name(_signal(name))}")


def _read_reaction(value: Value, _: Reading) -> int:
    """Read `ignore` as -1, or the status with which the program exits."""
    if value.scalar == "ignore":
        return _IGNORE
    word = value.scalar.removeprefix("exit").strip()
    if not re.fullmatch("[0-9]{1,3}", word) or int(word) > _MAX_STATUS:
        raise ValueError
    return int(word)


_IGNORE: Final = -1
_MAX_STATUS: Final = 255


@attrs.frozen(kw_only=True)
class _Runs:
    least_us: int
    most_us: int
    forever: bool = False


def _read_runs(value: Value, reading: Reading) -> _Runs:
    if value.scalar == "forever":
        return _Runs(least_us=0, most_us=0, forever=True)
    us = DURATION.convert(value, reading)
    return _Runs(least_us=us, most_us=us)


def _runs_between(bounds: tuple[int, ...], value: Value, reading: Reading) -> _Runs:
    if len(bounds) != len(value.items()):
        # One of them could not be read, and that has been noted.
        return _Runs(least_us=0, most_us=0)
    if len(bounds) != _BOUNDS:
        raise reading.refuse(value, f"expected two bounds, [shortest, longest], got {len(bounds)}")
    if bounds[0] > bounds[1]:
        low, high = format_us(bounds[1]), format_us(bounds[0])
        raise reading.refuse(value, f"the first bound is the shorter one: [{low}, {high}]")
    return _Runs(least_us=bounds[0], most_us=bounds[1])


_BOUNDS: Final = 2


def _check_program(values: Values, reading: Reading) -> None:
    if "exit" in values.places and "signal" in values.places:
        message = "`exit` and `signal` together: a program ends in one way"
        reading.mistake(values.place("signal"), message)
    if values["oom"] and ("exit" in values.places or "signal" in values.places):
        message = "`oom` stands in place of `exit` and `signal`: a program ends in one way"
        reading.mistake(values.place("oom"), message)
    ends = [key for key in ("exit", "signal", "oom") if key in values.places]
    if values["runs"].forever and ends:
        reading.mistake(values.place(ends[0]), f"a program that runs forever has no `{ends[0]}`")


def _build_program(values: Values, _: Value, __: Reading) -> ProgramSpec:
    runs: _Runs = values["runs"]
    reactions = {_signal(name): status for name, status in values["on_signal"].items()}
    return ProgramSpec(
        runs_min_us=runs.least_us,
        runs_max_us=runs.most_us,
        forever=runs.forever,
        exit=values["exit"],
        signal=values["signal"],
        tasks=tuple(sorted(dict.fromkeys(values["tasks"]))),
        output=values["output"],
        oom=values["oom"],
        image=values["image"],
        ignores=tuple(number for number, status in reactions.items() if status == _IGNORE),
        exits_on={number: status for number, status in reactions.items() if status != _IGNORE},
    )


_RUNS: Final = Scalar(
    expected="a length of time such as 30s, or forever",
    convert=_read_runs,
    json={"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]},
)
PROGRAM: Final = Record(
    what="a program",
    fields=(
        Field(
            name="runs",
            shape=Either(
                expected="a length of time, forever, or [shortest, longest]",
                scalar=_RUNS,
                sequence=Built(shape=Items(item=DURATION), build=_runs_between),
            ),
            default=_Runs(least_us=0, most_us=0),
            shown="0s",
            doc="How long it runs: a time, `forever`, or `[shortest, longest]` for chance.",
        ),
        Field(
            name="exit",
            shape=whole("an exit status from 0 to 255", least=0, most=_MAX_STATUS),
            default=0,
            shown=0,
            doc="Exit status.",
        ),
        Field(
            name="signal",
            shape=Scalar(
                expected="a signal such as TERM or 9",
                convert=_read_signal,
                json={"type": ["string", "integer"]},
            ),
            default=0,
            doc="Signal it dies of, in place of exiting.",
        ),
        Field(
            name="oom",
            shape=BOOLEAN,
            default=False,
            doc="Whether it is killed at its end for using too much memory, in place of exiting.",
        ),
        Field(
            name="tasks",
            shape=Items(
                item=whole("the rank of a task", least=0),
                single=True,
                least=1,
                expected="a list of ranks",
            ),
            default=(),
            doc="Ranks of the tasks whose end `exit` or `signal` describes; all if left out.",
        ),
        Field(
            name="output",
            shape=text("a text", empty=True),
            default="",
            doc="What each task writes to its standard output.",
        ),
        Field(
            name="image",
            shape=size("a size such as 2GiB", least=0),
            default=DEFAULT_IMAGE,
            shown="64MiB",
            doc="How much memory it has: that is what a checkpoint image of it takes.",
        ),
        Field(
            name="on_signal",
            shape=Table(
                expected="names of signals with `ignore` or an exit status",
                check_key=_check_catchable,
                item=Scalar(
                    expected="`ignore`, or the exit status from 0 to 255 to end with",
                    convert=_read_reaction,
                    json={"anyOf": [{"const": "ignore"}, {"type": "integer"}]},
                ),
            ),
            default={},
            doc="What it does on a signal: `ignore`, or the status it exits with at once.",
        ),
    ),
    build=_build_program,
    check=_check_program,
)


def _one_behaviour(spec: ProgramSpec, _: Value, __: Reading) -> Program:
    """Let the tasks that `tasks` leaves out run as long, and end well."""
    if not spec.tasks:
        return (spec,)
    return (spec, attrs.evolve(spec, tasks=(), exit=0, signal=0, oom=False))


def _several_behaviours(specs: tuple[ProgramSpec, ...], value: Value, reading: Reading) -> Program:
    """Check that each item can be reached: the first that concerns a task counts."""
    if not value.items():
        raise reading.refuse(value, "expected what the program does, got an empty list")
    everyone = [index for index, spec in enumerate(specs) if not spec.tasks]
    if everyone and everyone[0] < len(specs) - 1 and len(specs) == len(value.items()):
        behind = value.items()[everyone[0] + 1]
        reading.mistake(behind, "never used: the item before it concerns all tasks")
    return specs


def _check_program_name(name: str) -> None:
    if not name or any(character.isspace() for character in name):
        raise ValueError(f"{name!r} cannot be a program: a script calls it by one word")


PROGRAMS: Final[Table[Any]] = Table(
    expected="names of programs with what they do",
    check_key=_check_program_name,
    item=Either(
        expected="what the program does, such as {runs: 30s}",
        mapping=Built(shape=PROGRAM, build=_one_behaviour),
        sequence=Built(
            shape=Items(item=PROGRAM, expected="a list of behaviours"), build=_several_behaviours
        ),
        empty=Nothing(value=(ProgramSpec(),)),
    ),
)
