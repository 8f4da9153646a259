"""What a person does to the cluster, as the timeline of a scenario would say it."""

from typing import Any, TypeVar

import attrs
import yaml

from simctl.kernel.pattern import Pattern
from simctl.kernel.places import Place
from simctl.repl.errors import CommandError
from simctl.scenario.durations import format_us
from simctl.scenario.load import start
from simctl.scenario.model import Entry, Placed, Scenario
from simctl.scenario.patterns import PATTERN
from simctl.scenario.positions import Reading, ScenarioErrors, Unreadable, Value, compose
from simctl.scenario.shapes import Shape
from simctl.scenario.timeline.timeline import ENTRY

T = TypeVar("T")
Deed = dict[str, Any]
"""An entry of a timeline without its moment, such as ``{"as": "alice", "run": "squeue"}``."""


class DeedError(CommandError):
    """A deed that the reader of scenarios refuses; the text says why."""


@attrs.frozen(kw_only=True)
class Act:
    """Something that was done, and where in the run.

    `before_seq` and `after_seq` are the numbers of the last event before it and after it; `number`
    counts the acts of a session from 1, or is the index of an entry that is *given*.
    """

    deed: Deed
    place: Place
    time_us: int
    number: int
    before_seq: int = 0
    after_seq: int = 0
    given: bool = False
    """It stands in the scenario, and comes again if the session goes back."""

    @property
    def label(self) -> str:
        """Return what a command of it is known by."""
        return f"typed {self.number}"

    def as_entry(self) -> Deed:
        """Return it as an entry of a timeline."""
        moment: Deed = {"place": str(self.place)}
        if self.place.kind == "turn":
            moment["at"] = format_us(self.time_us)
        return {**moment, **self.deed}


def read_deed(scenario: Scenario, deed: Deed, place: Place, time_us: int, label: str) -> Entry:
    """Return the entry that a deed stands for, read as a scenario's are.

    Raises:
        DeedError: Something in it is wrong.
    """
    act = Act(deed=deed, place=place, time_us=time_us, number=0)
    entry = _read(ENTRY, scenario, act.as_entry())
    return attrs.evolve(entry, label=label, line=_TYPED_LINE)


def read_typed_pattern(scenario: Scenario, text: str) -> Pattern:
    """Read a pattern of events as a scenario's are.

    Raises:
        DeedError: It cannot be read, or could never match.
    """
    return _read(PATTERN, scenario, text)


def _read(shape: Shape[T], scenario: Scenario, what: Deed | str) -> T:
    """Read something that was typed as a part of the scenario."""
    text = yaml.safe_dump(what, sort_keys=False, allow_unicode=True)
    reading = start(text, f"{scenario.folder}/typed")
    reading.users = scenario.uids()
    reading.nodes = {node.name: index for index, node in enumerate(scenario.nodes)}
    reading.loaded = scenario.slurm_conf.plugin_types
    try:
        found = shape.read(Value(node=compose(text, "typed"), path=""), reading)
    except Unreadable as error:
        raise DeedError(_told(reading) or str(error)) from error
    except (ScenarioErrors, RecursionError, yaml.YAMLError) as error:
        raise DeedError(str(error)) from error
    if reading.mistakes:
        raise DeedError(_told(reading))
    return found


def _told(reading: Reading) -> str:
    return "; ".join(dict.fromkeys(mistake.message for mistake in reading.mistakes))


_TYPED_LINE = 1 << 30
"""What stands for the line of a file: after all that a scenario has."""


def given_acts(scenario: Scenario) -> list[Act]:
    """Return the entries of a scenario that stand at exact places; the deed is only its place."""
    return [
        Act(
            deed={"given": index},
            place=entry.moment.place,
            time_us=entry.moment.time_us or 0,
            number=index,
            given=True,
        )
        for index, entry in enumerate(scenario.timeline)
        if isinstance(entry.moment, Placed)
    ]
