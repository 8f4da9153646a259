"""Read SWEEP.yaml: settings of all runs, parameters with their values, seeds, what is kept."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from simctl.files import read_text
from simctl.kernel.pattern import near
from simctl.numbers import LARGEST
from simctl.scenario.load import FIELDS, start
from simctl.scenario.positions import (
    Mistake,
    Reading,
    ScenarioErrors,
    Value,
    compose,
    sort_mistakes,
)
from simctl.scenario.scalars import choice, text, whole
from simctl.scenario.shapes import (
    Built,
    Either,
    Field,
    Items,
    Record,
    Table,
    Values,
    check_tag,
)
from simctl.status import InputError
from simctl.sweep.plan import Cell
from simctl.sweep.settings import OF_LOGS, OF_RUNS, PathError, parts, written

CELLS: Final = 100_000
RUNS: Final = 1_000_000
"""How many combinations, and how many runs of all of them, a sweep may have."""

_SEED: Final = "a seed, a whole number from 0"


@attrs.frozen(kw_only=True)
class Parameter:
    """A parameter, and what each of its values sets."""

    name: str
    values: Mapping[str, Mapping[str, Value]]
    """Settings by path, by what the table calls the value."""


@attrs.frozen(kw_only=True)
class Sweep:
    """What a file asks for."""

    file: str
    settings: Mapping[str, Value]
    parameters: tuple[Parameter, ...]
    seeds: tuple[int, ...]
    keep: tuple[Mapping[str, str], ...]
    jobs: bool

    @property
    def folder(self) -> Path:
        """Return the folder from which paths of scenarios and logs start."""
        return Path(self.file).parent

    def cells(self) -> Iterator[tuple[Cell, Mapping[str, Value]]]:
        """Give every combination, the last parameter changing fastest, and where it is set."""
        choices = [list(each.values.items()) for each in self.parameters]
        for chosen in itertools.product(*choices):
            places = dict(self.settings)
            for _, more in chosen:
                places |= more
            settings = {path: written(value.node) for path, value in places.items()}
            yield Cell(labels=tuple(label for label, _ in chosen), settings=settings), places

    def mistake(self, place: Value, message: str) -> Mistake:
        """Return a mistake at a place of the file."""
        return Mistake(
            file=self.file, line=place.line, column=place.column, path=place.path, message=message
        )


class _Raw:
    """A value as it is written: what it means depends on the path that it stands at."""

    def read(self, value: Value, reading: Reading) -> Value:
        """Return it with its place."""
        check_tag(value, reading)
        return value

    def schema(self) -> dict[str, Any]:
        """Return what takes anything."""
        return {}


def _check_path(path: str) -> None:
    """Check that a path can be meant; what stands there is known with the scenario.

    Raises:
        ValueError: It cannot.
    """
    first = parts(path)[0] if path else ""
    known = [*OF_RUNS, *(field.name for field in FIELDS), *OF_LOGS]
    if first in ("seed", "seeds"):
        raise PathError("seeds stand under the key `seeds` of the sweep")
    if first not in known:
        raise PathError(f"there is no setting {path!r}{near(str(first), known)}")


_SETTINGS: Final = Table(
    item=_Raw(), expected="a mapping from paths to values", check_key=_check_path
)


class _Choices:
    """The values of a parameter: a list for the path of its name, or settings by label."""

    def read(self, value: Value, reading: Reading) -> Mapping[str, Mapping[str, Value]]:
        """Return the settings of each value."""
        if isinstance(value.node, yaml.MappingNode):
            found = Table(item=_SETTINGS, expected="settings by label").read(value, reading)
            if not found:
                raise reading.refuse(value, "a parameter needs a value at least")
            return found
        items = Items(item=_Raw(), expected="a list of values, or settings by label", least=1)
        labels: dict[str, Mapping[str, Value]] = {}
        for each in items.read(value, reading):
            label = each.scalar if isinstance(each.node, yaml.ScalarNode) else written(each.node)
            if label in labels:
                reading.mistake(each, f"the value {label} is there twice")
            labels[label] = {"": each}
        return labels

    def schema(self) -> dict[str, Any]:
        """Return a list or a mapping."""
        return {"type": ["array", "object"]}


def _seeds(count: int, value: Value, reading: Reading) -> tuple[int, ...]:
    return tuple(range(count))


def _stretch(values: Values, value: Value, reading: Reading) -> tuple[int, ...]:
    first, count = values["from"], values["count"]
    if first + count - 1 > LARGEST:
        raise reading.refuse(value, f"the last seed is beyond {LARGEST:,}, the largest")
    return tuple(range(first, first + count))


_COUNT: Final = whole(f"a whole number from 1 to {RUNS:,}", least=1, most=RUNS)
_SEEDS: Final = Either(
    expected="how many, a list, or {from: 100, count: 30}",
    scalar=Built(shape=_COUNT, build=_seeds),
    sequence=Items(item=whole(_SEED, least=0), least=1),
    mapping=Record(
        what="seeds",
        fields=(
            Field(name="from", shape=whole(_SEED, least=0), default=0, doc="The first."),
            Field(name="count", shape=_COUNT, required=True, doc="How many."),
        ),
        build=_stretch,
    ),
)
_FIELDS: Final = (
    Field(name="scenario", shape=_Raw(), doc="The scenario that is run."),
    Field(name="swf", shape=_Raw(), doc="The log that is replayed, instead."),
    Field(name="settings", shape=_SETTINGS, default={}, doc="What is set in every run."),
    Field(
        name="parameters",
        shape=Table(item=_Choices(), expected="a mapping from paths or names to values"),
        default={},
        doc="What differs: every combination is run.",
    ),
    Field(name="seeds", shape=_SEEDS, default=(0,), doc="The seeds of each combination."),
    Field(
        name="keep",
        shape=Items(item=Table(item=text("a value"), expected="values of parameters, and seed")),
        default=(),
        doc="Runs of which the database and a page are kept.",
    ),
    Field(
        name="jobs",
        shape=choice("true", "false"),
        default="false",
        doc="Whether the table has a row for each job.",
    ),
)
_SWEEP: Final[Record[Values]] = Record(
    what="a sweep", fields=_FIELDS, build=lambda values, _value, _reading: values
)


def read_sweep(path: str) -> Sweep:
    """Return what a file asks for.

    Raises:
        InputError: It cannot be read, or holds mistakes: all of them.
    """
    try:
        content = read_text(path)
        reading = start(content, path)
        empty = "the file is empty: a sweep has at least `scenario:` or `swf:`"
        sweep = _read(Value(node=compose(content, path, empty=empty), path=""), reading)
    except ScenarioErrors as error:
        lines = "\n".join(str(each) for each in error.mistakes)
        raise InputError(lines, placed=True) from error
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {path}: it is not UTF-8") from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {why}") from error
    if reading.mistakes or sweep is None:
        lines = "\n".join(str(each) for each in sort_mistakes(reading.mistakes))
        raise InputError(lines, placed=True)
    return sweep


def _read(root: Value, reading: Reading) -> Sweep | None:
    values, complete = _SWEEP.read_values(root, reading)
    if not complete:
        return None
    settings = dict(values["settings"])
    for key in ("scenario", "swf"):
        if key in values.places:
            settings[key] = values.places[key]
    parameters = tuple(
        _parameter(name, found, values.place("parameters"), reading)
        for name, found in values["parameters"].items()
    )
    sweep = Sweep(
        file=reading.file,
        settings=settings,
        parameters=parameters,
        seeds=tuple(dict.fromkeys(values["seeds"])),
        keep=values["keep"],
        jobs=values["jobs"] == "true",
    )
    _check(sweep, values, reading)
    return sweep


def _parameter(
    name: str, found: Mapping[str, Mapping[str, Value]], place: Value, reading: Reading
) -> Parameter:
    """Return a parameter; a list of values is for the path that it has as name."""
    if all(list(settings) == [""] for settings in found.values()):
        try:
            _check_path(name)
        except ValueError as error:
            reading.mistake(place, f"{error}; a name of your own has settings by label")
        found = {label: {name: settings[""]} for label, settings in found.items()}
    return Parameter(name=name, values=found)


def _check(sweep: Sweep, values: Values, reading: Reading) -> None:
    names = [each.name for each in sweep.parameters]
    for name in names:
        if name.casefold() in _TAKEN:
            reading.mistake(values.place("parameters"), f"{name!r} is a column of the table")
    cells = 1
    for each in sweep.parameters:
        cells *= len(each.values)
    if cells > CELLS or cells * len(sweep.seeds) > RUNS:
        reading.mistake(
            values.place("parameters"),
            f"{cells:,} combinations and {cells * len(sweep.seeds):,} runs; the most are {CELLS:,} "
            f"and {RUNS:,}",
        )
    for wanted in sweep.keep:
        for name, label in wanted.items():
            labels = [str(each) for each in sweep.seeds]
            if name != "seed":
                chosen = next((each for each in sweep.parameters if each.name == name), None)
                labels = [] if chosen is None else list(chosen.values)
            if label not in labels:
                hint = near(name, ["seed", *names]) if not labels else near(label, labels)
                reading.mistake(values.place("keep"), f"no run has {name}: {label}{hint}")


_TAKEN: Final = ("cell", "seed", "status", "problem", "jobs")
"""Columns of the table that are there already."""
