"""One run of a swarm: a scenario, run and held against orderings and the rules at rest."""

import hashlib
from collections import Counter
from pathlib import Path
from typing import Final

import attrs
import msgspec
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.schedules import make_schedule
from simctl.scenario.model import Scenario
from simctl.testing.explore.trial import Broken, Ran, Terms, load_text, run_trial
from simctl.testing.swarm import rest_cluster, rest_jobs, rest_plugins
from simctl.testing.swarm.rules import RULES, AtRest
from simctl.world import RunResult, World

MOST_TURNS: Final = 150_000
"""After how many turns a run is given up: a hundred times as many as most take."""

_MODULES: Final = (rest_cluster, rest_jobs, rest_plugins)


@attrs.frozen(kw_only=True)
class Told:
    """What came of a run, small enough to travel between processes."""

    broken: tuple[Broken, ...]
    token: str
    events: int
    turns: int
    jobs: int
    states: dict[str, int]
    """How many jobs ended in which state."""
    faults: dict[str, int]
    """How many faults struck, by kind."""
    calls: dict[str, int]
    """How often each plugin function was called."""
    digest: str = ""
    """What stands for every byte of the trace, if that was asked for."""


@attrs.frozen(kw_only=True)
class Tried:
    """A run that was held against everything."""

    ran: Ran
    broken: tuple[Broken, ...]
    """What did not hold: in the run itself, and once it was at rest."""
    struck: Counter[str]
    """How many calls were struck by rules that have them fail, raise or hang."""
    controlled: bool
    """Whether a slurmctld ran when nothing was left to do."""


class Watch:
    """Looks at a cluster each time that nothing is left to do in it."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.broken: tuple[Broken, ...] = ()
        self.controlled = False

    def listen(self, world: World) -> None:
        """Look at a world from now on."""
        self.world = world
        before = world.kernel.on_idle

        def on_idle() -> bool:
            if world.running:
                self.broken = tuple(_breaches(AtRest(world), ended=False))
                self.controlled = world.ctld.mailbox.open
            return before()

        world.kernel.on_idle = on_idle


def run_swarm(scenario: Scenario, schedule: str, seed: int) -> Tried:
    """Run a scenario under a schedule, and hold the run against all that has to hold."""
    watch = Watch()
    terms = Terms(model=scenario.model, most_turns=MOST_TURNS)
    ran = run_trial(scenario, make_schedule(schedule, seed), seed, terms, prepare=watch.listen)
    assert watch.world is not None
    broken = ran.broken
    if ran.result is not None and _waits_for_lost_jobs(ran.result):
        broken = tuple(each for each in broken if each.kind != "stall")
    # Of a run that stalls or breaks off nothing else that is wrong says more.
    if ran.result is not None and not (ran.result.stalled or ran.result.ran_out):
        broken = (*broken, *watch.broken, *_breaches(AtRest(watch.world, ran.result), ended=True))
    struck = watch.world.faults.struck
    return Tried(ran=ran, broken=broken, struck=struck, controlled=watch.controlled)


def _waits_for_lost_jobs(result: RunResult) -> bool:
    """Return whether a run stalls for nothing but commands that wait for unknown jobs."""
    lost = result.lost_jobs or any("cannot recover" in each for each in result.fatalities)
    return bool(lost) and not any(line.startswith("job ") for line in result.stalled)


def _breaches(run: AtRest, *, ended: bool) -> list[Broken]:
    found = []
    for rule in RULES:
        if rule.ended is ended:
            detail = list(rule.check(run))
            if detail:
                text = f"{rule.name}: {rule.says}"
                found.append(Broken(kind="at rest", text=text, detail="\n".join(detail)))
    return found


def tell(tried: Tried, *, digest: bool) -> Told:
    """Return what is to be told of a run."""
    ran = tried.ran
    calls: Counter[str] = Counter()
    faults: Counter[str] = Counter(tried.struck)
    for event in ran.events:
        if event.kind == "plugin" and event.phase != "enter":
            calls[event.name] += 1
        elif event.kind == "fault":
            mark, _, kind = _kind_of(event).rpartition(" ")
            if mark != "put" and not (mark and kind in (*_RULES, *_MENDS)):
                faults[kind] += 1
    rows = ran.result.rows if ran.result is not None else ()
    return Told(
        broken=tried.broken,
        token=ran.token,
        events=len(ran.events),
        turns=ran.turns,
        jobs=len(rows),
        states=dict(Counter(row.state for row in rows)),
        faults=dict(faults),
        calls=dict(calls),
        digest=digest_of(ran) if digest else "",
    )


_RULES: Final = ("fail", "raise", "hang", "drop", "duplicate", "delay", "reorder")
"""Faults that are rules, which count when they strike."""

_MENDS: Final = ("start", "heal")

_PUT_RIGHT: Final = "up, functions"
"""What is changed about the appliance as the cluster comes to rest."""


def _kind_of(event: Event) -> str:
    args = event.args if event.args is not UNSET else {}
    if event.name == "fault":
        return f"fault {str(args['fault']).split()[0].strip('{:')}"
    return "put right" if args.get("change") == _PUT_RIGHT else event.name


def digest_of(ran: Ran) -> str:
    """Return a number that stands for the bytes of a trace."""
    found = hashlib.sha256()
    for event in ran.events:
        found.update(msgspec.json.encode(event))
    return found.hexdigest()[:16]


def run_text(text: str, schedule: str, folder: Path = Path()) -> Tried:
    """Run the text of a scenario in a folder, which plugins are found from, from its own seed."""
    scenario = load_text(text, folder / "swarm.yaml")
    return run_swarm(scenario, schedule, scenario.seed)
