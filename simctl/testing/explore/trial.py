"""One run of a scenario under one schedule, and what was broken in it."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from simctl.kernel.events import Event
from simctl.kernel.line import EndlessError, Line
from simctl.kernel.schedules import Schedule, ScheduleError
from simctl.orderings.rules import LEDGER
from simctl.plugins.importing import forget_files
from simctl.plugins.registry import PluginError
from simctl.scenario.model import Scenario
from simctl.testing.explore.reduction import RedundantError, UnstableError
from simctl.world import RunResult, World

MOST_TURNS: Final = 2_000_000
"""After how many turns a run is given up, where nothing better is known."""

_PLACE: Final = re.compile(r"^timeline\[\d+\]: ")
"""Where a command stands, which is another place once entries before it are taken away."""

_VARIES: Final = re.compile(r"(?<=seq )\d+|(?<=pid )\d+|(?<=pid=)\d+|\b[\d:.]+(?:us|ms|s)\b")


@attrs.frozen(kw_only=True)
class Broken:
    """Something that should have held in a run; `kind` and `text` name it, whatever the run."""

    kind: str
    """`expectation`, `ordering`, `ledger`, `stall`, `crash`, `plugin` or `endless`.

    An ordering of the ledger is one that says what slurmctld has lost or doubled.
    """
    text: str
    detail: str = attrs.field(default="", eq=False)

    @property
    def way(self) -> str:
        """Return how it is broken: the first line of its detail, without what differs by run."""
        first = self.detail.partition("\n")[0]
        return _VARIES.sub("N", first)

    def told(self) -> str:
        """Return it in a line, without its detail."""
        if self.kind == "ledger":
            rule = self.text.partition(":")[0]
            return f"lost or doubled: {self.detail.splitlines()[0]} ({rule})"
        return self.text if self.kind == "expectation" else f"{self.kind}: {self.text}"


@attrs.frozen(kw_only=True)
class Terms:
    """What is the same for every run of a search."""

    model: str
    watchdog_s: float = 10.0
    most_turns: int = MOST_TURNS


@attrs.frozen(kw_only=True)
class Ran:
    """A run: what was broken in it, its events, and what its schedule chose."""

    broken: tuple[Broken, ...]
    events: Sequence[Event]
    choices: Line | None
    """What its schedule chose; None under plain `fifo`, which chooses nothing."""
    token: str
    turns: int
    messages: int
    result: RunResult | None
    """None if the run broke off."""
    header: Mapping[str, Any] = attrs.field(factory=dict)
    """The first line of its trace."""

    @property
    def line(self) -> Line:
        """Return what its schedule chose, where it chose at all."""
        assert self.choices is not None
        return self.choices


def run_trial(
    scenario: Scenario,
    schedule: Schedule,
    seed: int,
    terms: Terms,
    *,
    prepare: Callable[[World], None] = lambda _: None,
) -> Ran:
    """Run a scenario once; whatever goes wrong in it is part of the answer.

    Raises:
        PluginError: A plugin cannot be loaded.
        ScheduleError: A token does not fit.
        RedundantError, UnstableError: An exhaustive search wants no more of it.
        KeyboardInterrupt: The user wants no more.
    """
    if any(".py" in each.reference for each in scenario.plugins):
        # What a plugin keeps in its module must not outlast the run.
        forget_files()
    world = World(
        scenario,
        seed=seed,
        schedule=schedule,
        model=terms.model,
        watchdog_s=terms.watchdog_s,
        # Where a schedule chooses its turns are counted below.
        most_turns=0 if schedule.chooses else terms.most_turns,
    )
    line = world.kernel.line
    if line is not None:
        line.most_turns = terms.most_turns
    prepare(world)
    world.trace.add_sink(world.events.append)
    result: RunResult | None = None
    try:
        result = world.run()
        broken = _what_broke(result)
    except (ScheduleError, RedundantError, UnstableError):
        raise
    except EndlessError as error:
        broken = (Broken(kind="endless", text="the run does not end", detail=str(error)),)
    except PluginError as error:
        broken = (Broken(kind="plugin", text=str(error)),)
    except Exception as error:  # noqa: BLE001 - a fault of simctl's is a find as well
        name = type(error).__name__
        broken = (Broken(kind="crash", text=f"simctl itself: {name}: {error}"),)
    if result is not None and result.interrupted:
        raise KeyboardInterrupt
    return Ran(
        broken=broken,
        events=world.events,
        choices=line,
        token=world.token,
        turns=world.kernel.turns,
        messages=world.trace.messages,
        result=result,
        header=world.header(),
    )


def _what_broke(result: RunResult) -> tuple[Broken, ...]:
    """Return what did not hold, in the order in which a run tells it."""
    if result.held:
        return ()
    broken = [
        Broken(kind="expectation", text=_PLACE.sub("", each.text), detail=each.detail)
        for each in result.expectations
        if not each.held and not each.slip
    ]
    broken += [
        Broken(
            kind="ledger" if each.rule.number > LEDGER else "ordering",
            text=f"{each.rule.name}: {each.rule.says}",
            detail=f"{each.first.group}: {each.first.what}\n{each.slice}",
        )
        for each in result.orderings.broken
    ]
    if result.ran_out:
        detail = "\n".join(result.ran_out)
        broken.append(Broken(kind="endless", text="the run does not end", detail=detail))
    if result.stalled:
        broken.append(
            Broken(kind="stall", text="the run stalled", detail="\n".join(result.stalled))
        )
    return tuple(broken)


def load_text(text: str, path: Path) -> Scenario:
    """Return the scenario of a text that stands, or could stand, in a file."""
    from simctl.scenario.load import read_scenario  # noqa: PLC0415 - workers load one at a time

    return read_scenario(text, file=str(path))
