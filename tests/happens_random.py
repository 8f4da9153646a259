"""Random clusters that run under many schedules, to hold what one run calls forced against others.

`python -m tests.happens_random 100` takes a hundred scenarios: each is run once, and then again
with other schedules, latencies and durations. Whatever the first run says must come before
something else has to do so in every other.
"""

import random
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.fabric import Fabric
from simctl.kernel.orders import begin_us
from simctl.scenario.holding.happens_before import HappensBefore
from simctl.scenario.holding.recorded import describe
from simctl.scenario.load import read_scenario
from simctl.world import World

Identity = tuple[object, ...]


REPEATED = (
    *("bb_p_job_test_stage_in", "bb_p_job_test_stage_out", "bb_p_job_test_post_run"),
    *("bb_p_job_try_stage_in", "bb_p_load_state", "bb_p_job_get_est_start", "slurm_ckpt_copy_job"),
)
"""Calls that are made again and again, which one is which being a matter of chance."""


class Jittery(Fabric):
    """A network in which every message takes a time of its own."""

    chance: random.Random

    @property
    def latency_us(self) -> int:
        """Return how long the next message takes."""
        return self.chance.choice([1, 50, 100, 400, 1500])

    @latency_us.setter
    def latency_us(self, _: int) -> None:
        """Take what the scenario says for nothing."""


class Situation:
    """A random scenario, whose durations may be drawn anew; each step has a program of its own."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"happens:{seed}")
        self._programs = 0
        self.nodes = self._chance.randint(1, 4)
        self.lines = self._write()

    def text(self, durations: int) -> str:
        """Return the scenario with durations of a seed."""
        chance = random.Random(f"durations:{durations}")
        programs = "\n".join(
            f"  ./p{number}: {{runs: {chance.choice(['0s', '1s', '2s', '5s', '1700ms'])}}}"
            for number in range(1, self._programs + 1)
        )
        scripts = chance.choice(["0s", "300ms", "2s"])
        return f"{self.lines}programs:\n  /etc/script: {{runs: {scripts}}}\n{programs}\n"

    def _write(self) -> str:
        chance, nodes = self._chance, self.nodes
        keys = [
            f"KillWait: {chance.choice([5, 30])}",
            f"TreeWidth: {chance.choice([2, 50])}",
            f"SchedulerType: sched/{chance.choice(['backfill', 'builtin'])}",
            *(
                f"{name}: /etc/script"
                for name in ("Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld")
                if chance.random() < 0.15
            ),
            *(
                f"{name}: /etc/script"
                for name in ("TaskProlog", "TaskEpilog", "SrunProlog", "SrunEpilog")
                if chance.random() < 0.1
            ),
        ]
        if chance.random() < 0.2:
            keys.append("SelectType: select/cons_tres")
        lines = [
            f'nodes: [{{name: "n[1-{nodes}]", cpus: 4}}]',
            f'partitions: [{{name: debug, nodes: "n[1-{nodes}]", default: true}}]',
            "users: {alice: 1001, bob: 1002}",
            f"slurm_conf: {{{', '.join(keys)}}}",
            "timeline:",
        ]
        at = 0
        for number in range(1, chance.randint(1, 5) + 1):
            lines.append(f'  - {{at: {at}s, as: alice, run: "{self._command(number)}"}}')
            at += chance.choice([1, 1, 3])
        for _ in range(chance.choice([0, 0, 0, 1, 2])):
            what = chance.choice(["scancel {n}", "scontrol requeue {n}", "scancel -s TERM {n}"])
            number = chance.randint(1, 5)
            lines.append(f"  - {{at: {chance.randint(2, 15)}500ms, run: {what.format(n=number)}}}")
        return "\n".join(lines) + "\n"

    def _command(self, number: int) -> str:
        chance = self._chance
        width = chance.randint(1, self.nodes)
        tasks = chance.choice(["", f" -n{width * 2} --ntasks-per-node=2"])
        if chance.random() < 0.25:
            return f"srun -N{width}{tasks} {self._program()}"
        wants = ""
        if number > 1 and chance.random() < 0.25:
            kind = chance.choice(["afterany", "afterok", "after", "afternotok"])
            wants = f" -d {kind}:{chance.randint(1, number - 1)}"
        return f"sbatch -N{width}{tasks}{wants} --wrap '{self._script(width)}'"

    def _program(self) -> str:
        self._programs += 1
        return f"./p{self._programs}"

    def _srun(self, width: int) -> str:
        chance = self._chance
        some = chance.choice(["", "", f"-N{chance.randint(1, width)} ", "-n1 -N1 --exclusive "])
        return f"srun {some}{self._program()}"

    def _script(self, width: int) -> str:
        chance = self._chance
        parts = []
        for _ in range(chance.randint(1, 3)):
            kind = chance.random()
            if kind < 0.5:
                parts.append(self._srun(width))
            elif kind < 0.7:
                parts.append(f"{self._program()} && {self._srun(width)}")
            elif kind < 0.9:
                parts.append(f"{self._srun(width)} & {self._srun(width)} & wait")
            else:
                parts.append(f"{self._srun(width)} & sleep 1; {self._srun(width)}; wait")
        return "; ".join(parts)


@attrs.frozen(eq=False)
class Told:
    """A run, and its plugin calls by who they are in every run of the scenario."""

    events: list[Event]
    calls: dict[Identity, Event]
    histories: dict[int, tuple[str, ...]]


def tell(
    situation: Situation,
    *,
    durations: int = 0,
    schedule: str = "fifo",
    seed: int = 0,
    jitter: bool = False,
    model: str = "guide",
) -> Told:
    """Run a situation."""
    scenario = read_scenario(situation.text(durations), file="random.yaml")
    world = World(scenario, seed=seed, schedule=schedule, model=model)
    if jitter:
        world.fabric.__class__ = Jittery
        world.fabric.chance = random.Random(seed)  # type: ignore[attr-defined]
    world.trace.add_sink(world.events.append)
    world.run()
    return Told(world.events, dict(_named(world.events)), _histories(world.events))


def _histories(events: list[Event]) -> dict[int, tuple[str, ...]]:
    """Give the way that each job went: its states, and where its steps ran."""
    found: dict[int, list[str]] = {}
    for event in events:
        if event.name == "switch_p_build_jobinfo" and event.job is not UNSET:
            assert event.args is not UNSET
            found.setdefault(event.job, []).append(event.args["nodelist"])
        if event.name == "job_state" and event.job is not UNSET and event.args is not UNSET:
            found.setdefault(event.job, []).append(str(event.args["to"]))
    return {job: tuple(sorted(states)) for job, states in found.items()}


def _named(events: list[Event]) -> Iterator[tuple[Identity, Event]]:
    """Give each plugin call a name that it has in other runs as well.

    A step is known by its program, and which of the job's steps of this program it is: its number
    is a matter of who asked first. What is about no job and on no node is told apart by nothing but
    its place, and left out.
    """
    programs = _programs(events)
    counts: Counter[Identity] = Counter()
    runs: Counter[object] = Counter()
    daemons: dict[object, int] = {}
    for event in events:
        if event.name == "job_state" and "PENDING" in str(event.args):
            runs[event.job] += 1
        if event.kind != "plugin" or event.phase == "enter" or event.name in REPEATED:
            continue
        if event.job is UNSET and event.role != "slurmd":
            continue
        step = programs.get(event.step) if _is_numbered(event) else event.step
        if step is None:
            continue
        if event.role == "slurmctld":
            daemons.setdefault(event.pid, len(daemons))
        job = (event.array_job, event.array_task) if event.array_job is not UNSET else event.job
        about = (job, runs[event.job], step, event.task, daemons.get(event.pid))
        who = (event.name, event.plugin, event.node, event.role, *about)
        counts[who] += 1
        yield (*who, counts[who]), event


def _is_numbered(event: Event) -> bool:
    return event.step is not UNSET and not event.step.endswith("batch")


def _programs(events: list[Event]) -> dict[object, Identity]:
    """Give each step that ran its program, and how many of its job's steps before ran the same."""
    found: dict[object, object] = {}
    for event in events:
        if event.name == "exec" and event.role == "task" and _is_numbered(event):
            assert event.args is not UNSET
            found.setdefault(event.step, event.args["path"])
    counts: Counter[Identity] = Counter()
    named: dict[object, Identity] = {}
    for step in sorted(found, key=lambda each: [int(part) for part in str(each).split(".")]):
        same = (str(step).partition(".")[0], found[step])
        named[step] = (found[step], counts[same])
        counts[same] += 1
    return named


def forced_pairs(told: Told) -> Iterator[tuple[Identity, Identity]]:
    """Give every pair of calls of which the first is forced to come before the second."""
    relation = HappensBefore(told.events)
    names = {event.seq: name for name, event in told.calls.items()}
    before: dict[int, frozenset[int]] = {}
    nothing: frozenset[int] = frozenset()
    for event in told.events:
        found = nothing
        for each in relation.needs(event):
            more = before[each.seq]
            if each.seq in names:
                more = more | {each.seq}
            found = more if not found else found | more if more - found else found
        before[event.seq] = found
        if event.seq in names:
            for seq in before[relation.beginning(event).seq]:
                yield names[seq], names[event.seq]


Pairs = list[tuple[Identity, Identity]]


def broken(told: Told, pairs: Pairs, other: Told) -> Iterator[tuple[Event, Event, Event, Event]]:
    """Give what one run calls forced and another has otherwise, where both went the same way."""
    same = {job for job, states in told.histories.items() if other.histories.get(job) == states}
    for first, second in pairs:
        one, two = other.calls.get(first), other.calls.get(second)
        if one is None or two is None:
            continue
        if any(event.job is not UNSET and event.job not in same for event in (one, two)):
            continue
        beginning = two.seq if two.enter is UNSET else two.enter
        if one.seq > beginning or one.time_us > begin_us(two):
            yield told.calls[first], told.calls[second], one, two


def others(situation: Situation, model: str, seeds: range) -> Iterator[Told]:
    """Run a situation under other schedules, with other latencies and durations."""
    for seed in seeds:
        yield tell(situation, schedule="random", seed=seed, model=model)
        yield tell(
            situation, schedule="random", seed=seed, jitter=True, durations=seed, model=model
        )


def main() -> None:
    """Look for pairs that are called forced and are not."""
    first, last = (int(word) for word in [*sys.argv[1:], "0", "20"][:2])
    pairs = runs = 0
    for seed in range(first, last):
        model = "modern" if seed % 3 == 2 else "guide"
        situation = Situation(seed)
        told = tell(situation, model=model)
        forced = list(forced_pairs(told))
        pairs += len(forced)
        for number, other in enumerate(others(situation, model, range(1, 6))):
            runs += 1
            for one, two, a, b in islice(broken(told, forced, other), 1):
                lines = [f"seed {seed} {model} run {number}:", *map(describe, (one, two, a, b))]
                sys.stdout.write("\n    ".join(lines) + "\n")
                sys.stdout.flush()
    sys.stdout.write(f"{last - first} scenarios, {runs} other runs, {pairs} pairs\n")


if __name__ == "__main__":
    main()
