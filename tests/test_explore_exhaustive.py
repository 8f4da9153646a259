"""`simctl explore --exhaustive`: every schedule that may differ, and no others."""

import json
import shlex
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from simctl.cli import main
from simctl.kernel.footprint import EVERYTHING, Footprint, Step
from simctl.testing.explore.exhaustive import Exhaustive, Tally, outcome
from simctl.testing.explore.reduction import RedundantError, Tree, races
from simctl.testing.explore.trial import Terms, load_text

CLUSTER = """\
nodes: [{name: NODES, cpus: 4}]
partitions: [{name: debug, nodes: NODES, default: true}]
users: {alice: 1001, bob: 1002}
"""
WHO_IS_FIRST = """\
timeline:
  - {at: 1s, as: alice, run: sbatch -H --wrap true}
  - {at: 1s, as: bob, run: sbatch -H --wrap true}
"""
"""Two submissions at one moment: either may become job 1."""

DRAIN = """\
timeline:
  - {at: 1s, as: alice, run: sinfo}
  - {at: 1s, as: root, run: scontrol update NodeName=n1 State=DRAIN Reason=x}
"""
CANCEL = """\
timeline:
  - {at: 1s, as: alice, run: salloc -n1 sleep 5}
  - {at: 1000400us, as: alice, run: scancel 1}
"""
NUMBERS = """\
timeline:
  - {at: 1s, as: alice, run: scontrol listpids}
  - {at: 1s, as: bob, run: squeue}
"""
TWO_RUNS = """\
plugins: ["./racing.py:Racing"]
slurm_conf: {SwitchType: switch/racing}
timeline:
  - {at: 1s, as: alice, run: srun -N5 true}
  - {at: 1s, as: bob, run: srun -N5 true}
"""
RACING = """\
from simctl.plugin import SlurmError, SwitchPlugin, disk, errno, process
class Racing(SwitchPlugin):
    plugin_type = "switch/racing"
    plugin_name = "whoever is first in a process gets it"
    def init(self):
        if LOSES:
            raise SlurmError(errno.EBUSY)
        disk().write("/tmp/taken", "")
"""
BY_FILE = RACING.replace("LOSES", 'disk().exists("/tmp/taken")')
BY_NUMBER = RACING.replace("LOSES", 'process().role == "srun" and process().pid % 2')

ALONE = 'timeline: [{at: 1s, as: alice, run: "squeue"}]\n'


def tally(
    text: str,
    *,
    nodes: str = "n1",
    reduces: bool = True,
    limit: int = 500,
    path: Path = Path("s.yaml"),
) -> Tally:
    """Search a scenario."""
    scenario = load_text(CLUSTER.replace("NODES", f'"{nodes}"') + text, path)
    search = Exhaustive(scenario, 0, Terms(model="guide"), calls=False, reduces=reduces)
    for _ in search.runs(limit=limit, seconds=None):
        pass
    return search.tally


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        (ALONE, "n1"),
        (ALONE, "n[1-2]"),
        (WHO_IS_FIRST, "n1"),
        (DRAIN, "n1"),
        (CANCEL, "n1"),
        (NUMBERS, "n1"),
    ],
)
def test_the_reduction_loses_no_outcome(text: str, nodes: str) -> None:
    """What every order of turns can come to, fewer schedules come to as well."""
    every = tally(text, nodes=nodes, reduces=False)
    fewer = tally(text, nodes=nodes)
    assert every.complete
    assert fewer.complete
    assert set(fewer.outcomes) == set(every.outcomes)
    assert fewer.schedules < every.schedules


@pytest.mark.parametrize("plugin", [BY_FILE, BY_NUMBER])
def test_the_reduction_loses_no_outcome_of_a_race_of_plugins(plugin: str, tmp_path: Path) -> None:
    """Two processes that meet in a file, or whose numbers decide, have both outcomes."""
    (tmp_path / "racing.py").write_text(plugin)
    every = tally(TWO_RUNS, reduces=False, path=tmp_path / "s.yaml")
    fewer = tally(TWO_RUNS, path=tmp_path / "s.yaml")
    assert every.complete
    assert fewer.complete
    assert set(fewer.outcomes) == set(every.outcomes)
    assert len(fewer.outcomes) > 1
    assert fewer.schedules < every.schedules


def test_commands_on_one_host_that_share_nothing_are_not_ordered() -> None:
    """What is left of 48 orders is whom slurmctld hears first."""
    assert tally(DRAIN).schedules == 2


def test_a_race_has_several_outcomes_and_what_is_none_one_schedule() -> None:
    """Either submission may be first; one command alone has one way to go."""
    assert len(tally(WHO_IS_FIRST).outcomes) > 1
    alone = tally(ALONE)
    assert (alone.schedules, len(alone.outcomes), alone.complete) == (1, 1, True)
    assert alone.orders == 2


def test_it_finds_what_only_one_order_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the command that repeats it; without anything to find it says that this is all."""
    monkeypatch.chdir(tmp_path)
    text = CLUSTER.replace("NODES", "n1") + WHO_IS_FIRST
    expect = "expect: [{job: 1, user: alice}]\n"
    (tmp_path / "mine.yaml").write_text(text + expect)
    assert main(["explore", "mine.yaml", "--exhaustive", "--json", "--quiet"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["exhaustive"]["cut_short_by"] == "a find"
    assert found["found"]["deviations"]["left"] == 1
    assert main(shlex.split(found["found"]["command"])[1:]) == 1
    capsys.readouterr()
    (tmp_path / "mine.yaml").write_text(text)
    assert main(["explore", "mine.yaml", "--exhaustive"]) == 0
    printed = capsys.readouterr().out
    assert "all that may differ: 0 broken" in printed
    assert main(["explore", "mine.yaml", "--exhaustive", "--limit", "3"]) == 0
    printed = capsys.readouterr().out
    assert "not all that may differ" in printed
    assert "cut short by --limit 3" in printed


def step(
    name: int, *, writes: str = "", reads: str = "", creator: int = -1, point: int = 1
) -> Step:
    """Return a step of moment 0."""
    footprint = Footprint(writes=set(writes.split()), reads=set(reads.split()))
    return Step(name, creator, 0, footprint, frozenset(), 1)


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ((step(1, writes="a"), step(2, writes="b")), []),
        ((step(1, reads="a"), step(2, reads="a")), []),
        ((step(1, writes="a"), step(2, reads="a")), [(2,)]),
        ((step(1, writes=EVERYTHING), step(2)), [(2,)]),
        ((step(1, writes="a"), step(2, writes="a", creator=0)), []),
        ((step(1, writes="a"), step(2, writes="a"), step(3, writes="a")), [(2,), (3,)]),
        ((step(1, writes="a"), step(2, writes="b"), step(3, writes="a b")), [(3,), (2,)]),
        ((step(1, writes="a"), step(2, writes="b"), step(3, writes="a", creator=1)), [(2,)]),
    ],
)
def test_races_are_told_from_order_that_is_forced(
    steps: tuple[Step, ...], found: list[tuple[int, ...]]
) -> None:
    """Two that meet race unless one led to the other; what has to come before goes first."""
    assert [race.first for race in races(steps)] == found


Threads = Sequence[str]
"""What each thread does, turn by turn: ``wx rx,ry`` writes x, then reads x and y."""


def footprint(turn: str) -> Footprint:
    """Return what a turn touches."""
    touched = turn.split(",")
    return Footprint(
        writes={each[1:] for each in touched if each[0] == "w"},
        reads={each[1:] for each in touched if each[0] == "r"},
    )


def differing(threads: Threads) -> set[frozenset[tuple[int, int]]]:
    """Return the orders of turns that meet, each as what comes before what: all there are."""
    turns = [(thread, at) for thread, text in enumerate(threads) for at in range(len(text.split()))]
    names = {turn: number for number, turn in enumerate(turns)}
    touched = {
        names[thread, at]: footprint(turn)
        for thread, text in enumerate(threads)
        for at, turn in enumerate(text.split())
    }
    found = set()
    for order in permutations(turns):
        if all(order.index((t, at - 1)) < order.index((t, at)) for t, at in turns if at):
            found.add(before_each_other([names[turn] for turn in order], touched))
    return found


def before_each_other(
    order: Sequence[int], touched: Mapping[int, Footprint]
) -> frozenset[tuple[int, int]]:
    """Return which turns come before which, of those that meet."""
    return frozenset(
        (one, other)
        for at, one in enumerate(order)
        for other in order[at + 1 :]
        if touched[one].meets(touched[other])
    )


def searched(threads: Threads) -> list[frozenset[tuple[int, int]]]:
    """Return the orders that the search comes to, each as often as it runs it to its end."""
    programs = [text.split() for text in threads]
    starts = [sum(map(len, programs[:thread])) for thread in range(len(programs))]
    touched = {
        start + at: footprint(turn)
        for start, program in zip(starts, programs, strict=True)
        for at, turn in enumerate(program)
    }
    tree, found = Tree(), []
    while True:
        schedule, taken = tree.schedule(calls=False), list[Step]()
        due = [(start, -1) for start in starts]
        line = cast(Any, SimpleNamespace(name=lambda turn: turn[0], steps=None, due=due))
        line.steps, point = SimpleNamespace(taken=taken), 0
        try:
            while due:
                at = schedule.choose(line) if len(due) > 1 else 0
                point += len(due) > 1
                name, creator = due.pop(at)
                taken.append(
                    Step(name, creator, 0, touched[name], frozenset(), point if due else 0)
                )
                if name + 1 in touched and name + 1 not in starts:
                    due.append((name + 1, len(taken) - 1))
                    due.sort()
            schedule.settle(line)
            found.append(before_each_other([step.name for step in taken], touched))
        except RedundantError:
            pass
        if not tree.advance(taken):
            return found


@pytest.mark.parametrize(
    "threads",
    [
        *(["wx", "wy", "wz"], ["wx", "wx"], ["wx", "wx", "wx"], ["wx", "rx", "rx"]),
        *(["wx", "rx", "wy", "ry"], ["wx", "rx,wy", "ry"], ["wx wy", "ry rx"], ["rx wx", "rx wx"]),
        *(["wx wx", "wx"], ["wx ry", "wy rx", "rz"], ["wx,wy", "rx wz", "ry rz"]),
    ],
)
def test_every_order_that_differs_is_run_once(threads: Threads) -> None:
    """Of all orders of the turns of some threads: none is missed, and none is run again."""
    found = searched(threads)
    assert set(found) == differing(threads)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"fatal": ["no disk (pid 7)"]}, {"fatal": ["no disk (pid 9)"]}, True),
        ({"fatal": ["no disk (pid 7)"]}, {"fatal": ["no file (pid 7)"]}, False),
        ({"commands": ["a", "b"]}, {"commands": ["b", "a"]}, True),
        ({"commands": ["a", "a"]}, {"commands": ["a"]}, False),
        ({"jobs": ["a", "b"]}, {"jobs": ["b", "a"]}, False),
        ({"stalled": ["a"]}, {}, False),
    ],
)
def test_outcomes_are_told_apart_by_what_came_and_not_by_pids(
    one: dict[str, list[str]], other: dict[str, list[str]], same: bool
) -> None:
    """Nor by which of the commands, errors and ends was the first."""

    def outcome_of(said: dict[str, list[str]]) -> str:
        keys = ("commands", "plugin_errors", "fatal", "stalled", "jobs")
        result = SimpleNamespace(
            as_json=lambda: {key: said.get(key, []) for key in keys},
            expectations=(),
            orderings=SimpleNamespace(broken=()),
        )
        return outcome(cast(Any, SimpleNamespace(result=result)))

    assert (outcome_of(one) == outcome_of(other)) is same
