"""`simctl explore` is held against statements of its own: each damage to it breaks one.

A tool that says that all is well is believed. So it is damaged here in the ways in which it could
say so wrongly: schedules that are not tried, orders that are taken for equal, finds that show
nothing, faults that are not placed. The statements know nothing of how it does its work: orders are
enumerated one by one, places are found by going through the events of a run.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.footprint import Footprint
from simctl.kernel.line import Line
from simctl.kernel.schedules import InTurn, Priorities, Replay, ScheduleError, SeededRandom
from simctl.kernel.token import Token
from simctl.runners.work import Where
from simctl.scenario.faults import FailFault
from simctl.scenario.model import FaultEntry, When
from simctl.testing.explore import exhaustive, faults, found, plan, reduction, shrink, workers
from simctl.testing.explore.exhaustive import Exhaustive, outcome
from simctl.testing.explore.found import Target, pursue
from simctl.testing.explore.plan import Plan, mixed
from simctl.testing.explore.progress import Progress
from simctl.testing.explore.scenario_file import Change
from simctl.testing.explore.trial import Ran, Terms, load_text, run_trial
from tests.cluster import run
from tests.test_explore_exhaustive import BY_FILE, CLUSTER, DRAIN, TWO_RUNS, WHO_IS_FIRST

TERMS = Terms(model="guide")
Check = Callable[[Path], None]
Damage = Callable[[pytest.MonkeyPatch], None]


# Every order, and nothing said of more than was run.


class Counted(InTurn):
    """Takes the places of a path, and the first from its end on; `widths` are those it met."""

    def __init__(self, path: Sequence[int]) -> None:
        self.name = "counted"
        self.widths: list[int] = []
        self._path = path

    def choose(self, line: Line) -> int:
        """Take the next of the path."""
        self.widths.append(len(line.due))
        return dict(enumerate(self._path)).get(len(self.widths) - 1, 0)


def every_order(text: str, folder: Path) -> tuple[int, set[str]]:
    """Return how many orders of turns there are, and what they come to: like an odometer."""
    scenario = load_text(text, folder / "s.yaml")
    path: list[int] = []
    found: set[str] = set()
    for count in range(1, 200):
        order = Counted(path)
        found.add(outcome(run_trial(scenario, order, 0, TERMS)))
        path += [0] * (len(order.widths) - len(path))
        while path and path[-1] + 1 == order.widths[len(path) - 1]:
            path.pop()
        if not path:
            return count, found
        path[-1] += 1
    raise AssertionError("too many orders to be counted")


ONE = CLUSTER.replace("NODES", "n1")
THREE_RUNS = TWO_RUNS + "  - {at: 1s, as: root, run: srun -N5 true}\n"
"""Whoever is first in a file goes on: one of three."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the plugins of the scenarios."""
    made = tmp_path_factory.mktemp("plugins")
    (made / "racing.py").write_text(BY_FILE)
    return made


ORDERS: dict[str, tuple[int, set[str]]] = {}
"""What `every_order` has found of undamaged runs."""


@pytest.fixture(autouse=True)
def _orders(folder: Path) -> None:
    for text in (WHO_IS_FIRST, TWO_RUNS):
        if text not in ORDERS:
            ORDERS[text] = every_order(ONE + text, folder)


def searched(text: str, folder: Path, *, reduces: bool = True, limit: int = 500) -> Exhaustive:
    """Search a scenario exhaustively."""
    scenario = load_text(ONE + text, folder / "s.yaml")
    search = Exhaustive(scenario, 0, TERMS, calls=False, reduces=reduces)
    for _ in search.runs(limit=limit, seconds=None):
        pass
    return search


def exhaustive_search_comes_to_all_there_is(folder: Path) -> None:
    """Every outcome; without reduction every order; and it says so only then."""
    for text in (WHO_IS_FIRST, TWO_RUNS):
        assert set(searched(text, folder).tally.outcomes) == ORDERS[text][1]
    assert len(searched(THREE_RUNS, folder).tally.outcomes) == 3
    count, found = ORDERS[TWO_RUNS]
    for limit, complete in ((count - 1, False), (count, True), (count + 1, True)):
        tally = searched(TWO_RUNS, folder, reduces=False, limit=limit).tally
        assert (tally.schedules, tally.complete) == (min(limit, count), complete)
    assert set(tally.outcomes) == found


# Every kind of schedule, at every choice point, and every trial.


class Drawn:
    """What drawn schedules look at: the same three are due at each choice point."""

    def __init__(self) -> None:
        self.due = ["a", "b", "c"]
        self.points = 0

    def lane(self, turn: str) -> str:
        """Return the process of a turn."""
        return turn


def choices(schedule: Any, points: int) -> list[int]:
    """Return what a schedule chooses at so many choice points."""
    line = Drawn()
    found = []
    for line.points in range(1, points + 1):
        found.append(schedule.choose(line))
    return found


def drawn_schedules_choose_at_every_point(_: Path) -> None:
    """Any of those that are due; and with priorities the mind is changed at any point."""
    random = [choices(SeededRandom(seed), 20) for seed in range(60)]
    assert [set(each) for each in zip(*random, strict=True)] == [{0, 1, 2}] * 20
    drawn = [choices(Priorities(seed, depth=2, length=20), 20) for seed in range(200)]
    assert {each[0] for each in drawn} == {0, 1, 2}
    changed = [
        [place for place in range(1, 20) if each[place] != each[place - 1]] for each in drawn
    ]
    assert {place for each in changed for place in each} == set(range(1, 20))
    assert max(map(len, changed)) == 1


def small_plan(texts: Sequence[str], seeds: int) -> Plan:
    """Return the plan of a search."""
    return Plan(
        path="s.yaml",
        texts=tuple(texts),
        first_seed=7,
        seeds=seeds,
        jitter_us=4000,
        length=80,
        terms=TERMS,
    )


def every_kind_of_schedule_has_its_turn(_: Path) -> None:
    """Random or with priorities, messages on time, late or very late, with and without calls."""
    drawn = small_plan(["a", "b"], 73)
    assert drawn.trials == 146
    for text in (0, 1):
        numbers = [each for each in range(drawn.trials) if drawn.text_of(each) == text]
        assert [drawn.seed_of(each) for each in numbers] == list(range(7, 80))
        first, *others = (drawn.schedule_of(each) for each in numbers)
        assert type(first) is InTurn
        kinds = Counter(
            (type(each).__name__, getattr(each, "jitter_us", None), each.switches_at_calls)
            for each in others
        )
        assert kinds.keys() == {
            (kind, late, calls)
            for kind in ("SeededRandom", "Priorities")
            for late in (0, 400, 4000)
            for calls in (False, True)
        }
        depths = {len(each._changes) for each in others if isinstance(each, Priorities)}
        assert depths == {1, 2, 3}


def every_trial_is_run(_: Path) -> None:
    """Each seed with each text, once, also where the last chunk is not full."""
    texts = [f"seed: {place}\n{ONE}{DRAIN}" for place in (1, 2)]
    ran: list[tuple[int, int]] = []

    def noted(scenario: Any, schedule: Any, seed: int, terms: Terms) -> Ran:
        ran.append((scenario.seed, seed))
        return run_trial(scenario, schedule, seed, terms)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_trial", noted)
        results = [
            *workers.run_all(
                small_plan(texts, 9), where=Where(workers=1), stop=False, done=lambda: None
            )
        ]
    assert ran == [(text, seed) for text in (1, 2) for seed in range(7, 16)]
    assert [number for each in results for number in range(each.first, each.last + 1)] == [
        *range(18)
    ]


# A find is small, and shows what was found.

WHO = (
    ONE
    + WHO_IS_FIRST.replace("timeline:\n", "timeline:\n  - {at: 0s, as: root, run: squeue}\n")
    + "expect: [{job: 1, user: alice}]\n"
)
"""One of two submissions has to be first; what is asked before does not matter."""

FOUND: list[tuple[int, Ran]] = []
"""The seed of a run in which it is not, and the run."""


@pytest.fixture(autouse=True)
def _found(folder: Path) -> None:
    drawn = small_plan([WHO], 200)
    scenario = load_text(WHO, folder / "who.yaml")
    for number in range(1, 0 if FOUND else drawn.trials):
        seed = drawn.seed_of(number)
        ran = run_trial(scenario, mixed(seed, 4000, 80), seed, TERMS)
        if ran.broken and len(ran.line.passed) > 2:
            FOUND.append((seed, ran))
            return


def finds_are_small_and_show_what_was_found(folder: Path) -> None:
    """Who goes first at one point is enough; what is written breaks by that, and not without."""
    path = folder / "who.yaml"
    seed, ran = FOUND[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(found, "leave_find", lambda *_: "")  # a page, which costs more than the rest
        report = pursue(
            WHO,
            path,
            ran,
            seed=seed,
            schedule="drawn",
            calls=mixed(seed, 4000, 80).switches_at_calls,
            terms=TERMS,
            target=Target(given="", folder=folder, stem="who", search="explore who", origin=WHO),
            progress=Progress(what="runs", total=0, quiet=True),
        )
    assert report is not None
    assert report.file
    scenario = load_text(Path(report.file).read_text(), Path(report.file))
    token = Token.parse(report.token)
    assert token.deviations == report.after == 1
    assert run_trial(scenario, Replay(token), seed, TERMS).broken == ran.broken
    assert not run_trial(scenario, InTurn(), seed, TERMS).broken
    assert report.entries == (3, 2)
    assert len(scenario.timeline) == 2


# Every fault, everywhere.

HOME = """\
nodes: [{name: n1, cpus: 2}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
timeline: [{at: 1s, as: alice, run: srun -n1 true}]
"""
WITH_FAULTS = HOME.replace(
    "timeline: [",
    "timeline: [{at: 5s, fault: {crash: n1}}, {at: 6s, fault: {fail: switch_p_job_fini}}, ",
)


def begins(events: Sequence[Event]) -> list[Event]:
    """Return the plugin calls of a run in the order in which they begin."""
    calls = [each for each in events if each.kind == "plugin" and each.phase != "enter"]
    return sorted(calls, key=lambda each: each.seq if each.enter is UNSET else each.enter)


def struck(text: str, events: Sequence[Event]) -> tuple[str, int]:
    """Return which fault a text places, and the number of the event that it strikes at."""
    entry = load_text(text, Path("s.yaml")).timeline[0]
    assert isinstance(entry, FaultEntry)
    if isinstance(entry.moment, When):
        pattern, skip, among = entry.moment.pattern, entry.moment.skip, events
    else:
        assert isinstance(entry.fault, FailFault)
        pattern, skip, among = entry.fault.pattern, entry.fault.skip, begins(events)
    return entry.text, [each.seq for each in among if pattern.matches(each)][skip]


def faults_are_placed_everywhere(_: Path) -> None:
    """Calls fail, nodes and daemons crash at each call; slurmctld dies after each event."""
    events = _events_of(HOME)
    alive = _events_of(HOME.replace("[{at", "[{when: nothing, fault: {crash: slurmctld}}, {at"))
    placed = [*faults.placements(HOME, load_text(HOME, Path("s.yaml")), _events_of)]
    calls = [each for each in events if each.kind == "plugin" and each.phase != "enter"]
    expected = Counter(
        [("fail", each.seq) for each in calls]
        + [("crash n1", each.seq) for each in calls]
        + [(f"crash {who}", each.seq) for each in calls for who in _who(each)]
        + [("crash slurmctld", each.seq) for each in alive]
    )
    placed_at = Counter(
        (each.fault, struck(each.text, alive if "slurmctld" in each.fault else events)[1])
        for each in placed
    )
    assert placed_at == expected
    own = [*faults.placements(WITH_FAULTS, load_text(WITH_FAULTS, Path("s.yaml")), _events_of)]
    for which, other in (("crash n1", "fail"), ("fail switch_p_job_fini", "crash")):
        texts = [each.text for each in own if each.fault == which]
        assert len({struck(text, _events_of(text))[1] for text in texts[:3]}) == 3
        assert len(texts) > len(calls) // 2
        assert all(other in text for text in texts)


@cache
def _events_of(text: str) -> Sequence[Event]:
    return run(text, cluster="").events


def _who(call: Event) -> Iterator[str]:
    """Give who dies where a call is made: slurmd for its own, and a step's daemon and tasks."""
    if call.role in ("slurmd", "manager", "session", "task"):
        yield "slurmd@n1"
    if call.role in ("manager", "session", "task"):
        yield f"stepd {call.step}@n1"
    if call.role == "task":
        yield f"task {call.step}.{call.task}"


CHECKS: tuple[Check, ...] = (
    exhaustive_search_comes_to_all_there_is,
    drawn_schedules_choose_at_every_point,
    every_kind_of_schedule_has_its_turn,
    every_trial_is_run,
    finds_are_small_and_show_what_was_found,
    faults_are_placed_everywhere,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_what_is_said_of_explore_is_so(check: Check, folder: Path) -> None:
    """None of the statements blames it for nothing."""
    check(folder)


# The damages.


def replaced(owner: Any, name: str, new: Callable[..., Any]) -> Damage:
    """Return the damage that a function is another, which is given the whole one first."""

    def damage(patch: pytest.MonkeyPatch) -> None:
        whole = getattr(owner, name)
        patch.setattr(owner, name, lambda *args, **kwargs: new(whole, *args, **kwargs))

    return damage


def _ends_early(whole: Any, tree: Any, steps: Any) -> bool:
    tree.runs = getattr(tree, "runs", 0) + 1
    return bool(whole(tree, steps)) and tree.runs < 3


def _claims_all(whole: Any, search: Exhaustive, **limits: Any) -> Iterator[Ran]:
    yield from whole(search, **limits)
    search.tally.complete = True


def _overlooks_a_point(whole: Any, guided: Any, line: Line) -> int:
    return 0 if line.points == 2 else int(whole(guided, line))


def _overlooks_reads(_: Any, one: Footprint, other: Footprint) -> bool:
    return not one.writes.isdisjoint(other.writes)


def _forgets_the_second(whole: Any, node: Any) -> Any:
    return None if len(node.done) == 2 else whole(node)


def _thinks_files_are_free(_: Any, watcher: Any, path: str, changed: bool) -> None:
    watcher._steps.look(f"file {path}")


def _never_at_the_last(whole: Any, schedule: Any, bound: int) -> int:
    return min(int(whole(schedule, bound)), bound - 2) if bound > 1 else 0


def _first_at_even_points(whole: Any, schedule: Any, line: Any) -> int:
    return int(whole(schedule, line)) if line.points % 2 else 0


def _never_changes_late(whole: Any, schedule: Any, seed: int, **more: Any) -> None:
    whole(schedule, seed, **more)
    schedule._changes = [place for place in schedule._changes if place < 15]


def _leaves_a_gap(whole: Any, first: int, end: int) -> list[tuple[int, int]]:
    return [
        (start, last) if last < end - 1 else (start, last - 1) for start, last in whole(first, end)
    ]


def _leaves_out_an_entry(whole: Any, text: str, change: Change, **more: Any) -> str:
    return str(whole(text, Change(kept=change.kept[1:]), **more))


def _third_is_left_out(whole: Any, events: Any, keys: Any) -> list[faults.Call]:
    return [each for at, each in enumerate(whole(events, keys)) if at != 2]


def _skips_nobody(whole: Any, events: Any, keys: Any) -> list[faults.Call]:
    return [attrs.evolve(each, skip=0) for each in whole(events, keys)]


def _of_kind(kind: str) -> Callable[..., Iterator[faults.Placement]]:
    def invented(whole: Any, *args: Any) -> Iterator[faults.Placement]:
        return (each for each in whole(*args) if not each.fault.startswith(kind))

    return invented


def _one_fault_only(whole: Any, text: str, scenario: Any, run: Any) -> Iterator[faults.Placement]:
    first = next((each for each in scenario.timeline if isinstance(each, FaultEntry)), None)
    return (each for each in whole(text, scenario, run) if not first or each.fault == first.text)


DAMAGES: dict[str, tuple[Check, Damage]] = {
    "the search ends after three schedules": (
        exhaustive_search_comes_to_all_there_is,
        replaced(reduction.Tree, "advance", _ends_early),
    ),
    "a search that was cut short is told to be whole": (
        exhaustive_search_comes_to_all_there_is,
        replaced(Exhaustive, "runs", _claims_all),
    ),
    "a choice point is passed over": (
        exhaustive_search_comes_to_all_there_is,
        replaced(reduction.Guided, "choose", _overlooks_a_point),
    ),
    "a third turn at a choice point is never tried": (
        exhaustive_search_comes_to_all_there_is,
        replaced(reduction.Node, "next", _forgets_the_second),
    ),
    "a write after a read is no race": (
        exhaustive_search_comes_to_all_there_is,
        replaced(Footprint, "meets", _overlooks_reads),
    ),
    "the last race of a run is dropped": (
        exhaustive_search_comes_to_all_there_is,
        replaced(reduction, "races", lambda whole, steps: whole(steps)[:-1]),
    ),
    "two that write one file are not ordered": (
        exhaustive_search_comes_to_all_there_is,
        replaced(exhaustive.Watcher, "_file", _thinks_files_are_free),
    ),
    "whoever sleeps is never woken": (
        exhaustive_search_comes_to_all_there_is,
        replaced(Footprint, "meets", lambda whole, one, other: whole(one, other) and not one.reads),
    ),
    "outcomes that differ have one digest": (
        exhaustive_search_comes_to_all_there_is,
        replaced(exhaustive, "outcome", lambda *_: "same"),
    ),
    "the last of those that are due is never drawn": (
        drawn_schedules_choose_at_every_point,
        replaced(SeededRandom, "below", _never_at_the_last),
    ),
    "nothing is drawn at even choice points": (
        drawn_schedules_choose_at_every_point,
        replaced(SeededRandom, "choose", _first_at_even_points),
    ),
    "priorities never change late": (
        drawn_schedules_choose_at_every_point,
        replaced(Priorities, "__init__", _never_changes_late),
    ),
    "no schedule has others go between plugin calls": (
        every_kind_of_schedule_has_its_turn,
        replaced(plan, "mixed", lambda whole, seed, *more: whole(seed & ~2, *more)),
    ),
    "no schedule has priorities": (
        every_kind_of_schedule_has_its_turn,
        replaced(plan, "mixed", lambda whole, seed, *more: whole(seed & ~1, *more)),
    ),
    "messages are never very late": (
        every_kind_of_schedule_has_its_turn,
        replaced(plan, "mixed", lambda whole, seed, *more: whole(seed % 8, *more)),
    ),
    "each text has the first seed twice": (
        every_kind_of_schedule_has_its_turn,
        replaced(Plan, "seed_of", lambda whole, self, n: max(8, whole(self, n))),
    ),
    "the last trial of all is not run": (
        every_trial_is_run,
        replaced(workers, "chunks_of", _leaves_a_gap),
    ),
    "the last text is not run": (
        every_trial_is_run,
        replaced(Plan, "text_of", lambda *_: 0),
    ),
    "whatever breaks is taken for the find": (
        finds_are_small_and_show_what_was_found,
        replaced(shrink.Shrinker, "_same", lambda *_: True),
    ),
    "an entry that matters is not written": (
        finds_are_small_and_show_what_was_found,
        replaced(found, "edited", _leaves_out_an_entry),
    ),
    "entries that do not matter stay": (
        finds_are_small_and_show_what_was_found,
        replaced(shrink.Shrinker, "_fewer_entries", lambda *_: False),
    ),
    "deviations that do not matter stay": (
        finds_are_small_and_show_what_was_found,
        replaced(shrink.Shrinker, "_fewer_deviations", lambda *_: None),
    ),
    "the token is that of the large find": (
        finds_are_small_and_show_what_was_found,
        replaced(
            shrink.Shrinker,
            "_keep",
            lambda _, self, ran, *, calls: setattr(self, "_ran", self._ran or ran),
        ),
    ),
    "the third place of faults is left out": (
        faults_are_placed_everywhere,
        replaced(faults, "_placed", _third_is_left_out),
    ),
    "of events that are alike only the first is struck": (
        faults_are_placed_everywhere,
        replaced(faults, "_placed", _skips_nobody),
    ),
    "no call fails": (
        faults_are_placed_everywhere,
        replaced(faults, "_invented", _of_kind("fail")),
    ),
    "no node crashes": (
        faults_are_placed_everywhere,
        replaced(faults, "_invented", _of_kind("crash n1")),
    ),
    "no slurmd crashes": (
        faults_are_placed_everywhere,
        replaced(faults, "_invented", _of_kind("crash slurmd@")),
    ),
    "no task crashes": (
        faults_are_placed_everywhere,
        replaced(faults, "_invented", _of_kind("crash task")),
    ),
    "slurmctld never dies": (
        faults_are_placed_everywhere,
        replaced(faults, "deaths", lambda *_: ()),
    ),
    "slurmctld does not die after the last event": (
        faults_are_placed_everywhere,
        replaced(faults, "deaths", lambda whole, *args: whole(*args)[:-1]),
    ),
    "only the first fault of a scenario is moved": (
        faults_are_placed_everywhere,
        replaced(faults, "placements", _one_fault_only),
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_to_explore_is_found(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that it breaks is broken."""
    check, damage = DAMAGES[name]
    damage(monkeypatch)
    with pytest.raises((AssertionError, IndexError, ScheduleError)):
        check(folder)
