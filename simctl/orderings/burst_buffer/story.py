"""A run as the rules of burst buffers see it: what is asked of the plugins, and each job's life."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_seq, grouped
from simctl.orderings.observed import Observed, Terms, arg, for_a_plugin
from simctl.orderings.rules import KEPT, Broken, Finding

FINAL: Final = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"),
    }
)
ENDING: Final = ("REQUEST_TERMINATE_JOB", "REQUEST_KILL_TIMELIMIT", "REQUEST_KILL_PREEMPTED")
_TELLING: Final = ("state", "script")


@attrs.define(eq=False)
class Asked:
    """A function that slurmctld asks all plugins, one after the other; there is one result."""

    name: str
    """Without `bb_p_job_` or `bb_p_`, such as `begin` or `load_state`."""

    first: Event
    """Where it begins."""

    job: Any
    pid: int
    args: dict[str, Any]
    start_us: int
    ends: list[Event]
    """Where each plugin came back; fewer than there are plugins if slurmctld was killed."""

    @property
    def last(self) -> Event:
        """Return where it ends."""
        return self.ends[-1] if self.ends else self.first

    @property
    def over_seq(self) -> float:
        """Return the seq at which it is over; never if slurmctld did not live to see that."""
        return self.ends[-1].seq if self.ends else float("inf")

    @property
    def rc(self) -> int:
        """Return what slurmctld makes of the plugins' results."""
        results = [each.rc if type(each.rc) is int else 0 for each in self.ends]
        if self.name.startswith("test_"):
            return min([1, *results])
        bad = [each for each in results if each]
        return bad[-1] if bad else 0


Item = Asked | Event


@attrs.define(eq=False)
class Life:
    """What happens to a job from when its id is given until its record is freed."""

    job: int
    items: list[Item] = attrs.field(factory=list)

    def __str__(self) -> str:
        """Return its name as a group of events."""
        return f"job {self.job}"

    def asked(self, *names: str) -> list[Asked]:
        """Return the calls of some functions about it, or of all."""
        found = (each for each in self.items if isinstance(each, Asked))
        return [each for each in found if not names or each.name in names]

    @property
    def is_task(self) -> bool:
        """Return whether it is a task of an array: what validate2 says of it does not count."""
        return any(isinstance(each, Event) and each.array_task is not UNSET for each in self.items)

    @property
    def refused(self) -> Asked | None:
        """Return the validate2 that refused it, if one has."""
        bad = None if self.is_task else next(iter(self.asked("validate2")), None)
        return bad if bad is not None and bad.rc else None

    @property
    def failed_at_once(self) -> bool:
        """Return whether its checkpoint record could not be made: it is refused before validate2.

        That is before a client hears of it; a record that is made anew after a restart may fail as
        well, and so may that of one of its steps, and neither refuses anything.
        """
        for each in self.items:
            if change(each) is not None:
                return False
            if isinstance(each, Event) and each.name == "slurm_ckpt_alloc_job":
                return each.step is UNSET and each.rc == -1
        return False

    @property
    def born(self) -> Event | None:
        """Return the change of state that says that it is there; a trace may not go back so far."""
        states = (each for each in self.items if change(each) is not None)
        return next((event(each) for each in states if not arg(event(each), "from")), None)

    @property
    def has_buffer(self) -> bool:
        """Return whether the run shows that it has a burst buffer."""
        born = self.born
        return (born is not None and bool(arg(born, "burst_buffer"))) or any(
            isinstance(each, Event) and each.name == "bb_state" for each in self.items
        )

    @property
    def has_none(self) -> bool:
        """Return whether the run shows that it has no burst buffer."""
        return self.born is not None and not self.has_buffer


@attrs.frozen(eq=False)
class Story:
    """A run, read: calls put together, everything in the order in which it began."""

    items: Sequence[Item]
    calls: Sequence[Asked]
    lives: Sequence[Life]
    starts: Sequence[int]
    """Where each slurmctld first did something."""

    hurries: Sequence[Event]
    """Where it received a request to cancel a job with --hurry."""

    terms: Terms

    def restarted(self, after: int, before: int) -> bool:
        """Return whether slurmctld was started again between two places."""
        return any(after < start < before for start in self.starts[1:])

    def hurried(self, life: Life) -> list[Event]:
        """Return where a client cancels a job, or the array that it is of, with --hurry."""
        if not self.hurries:
            return []
        ids = {life.job, *(each.array_job for each in life.items if isinstance(each, Event))}
        first, last = place(life.items[0]), place(life.items[-1])
        return [each for each in self.hurries if each.job in ids and first < each.seq < last]

    def whole(self, life: Life) -> bool:
        """Return whether what has not come in a job's life will never come: the run is over."""
        return self.terms.finished or (bool(life.items) and forgets(life.items[-1]))


def read(run: Observed) -> Story:
    """Put the calls of several plugins together, and tell the lives of jobs apart."""
    if not any(name.startswith("bb_p_") for name in run.by_name):
        return Story([], [], [], [], [], run.terms)
    items = sorted(_items(run), key=place)
    calls = [each for each in items if isinstance(each, Asked)]
    starts: dict[int, int] = {}
    for each in items:
        if isinstance(each, Asked) or each.role == "slurmctld":
            starts.setdefault(int(str(each.pid)), place(each))
    return Story(
        items,
        calls,
        _lives(items),
        list(starts.values()),
        [
            each
            for each in run.by_name.get("REQUEST_KILL_JOB", ())
            if each.phase == "receive" and arg(each, "hurry")
        ],
        run.terms,
    )


def story(run: Observed) -> Story:
    """Return the story of a run, which is read once."""
    return run.once(read)


def _items(run: Observed) -> Iterator[Item]:
    """Yield what tells something of burst buffers; calls of several plugins as one."""
    entered: dict[int, Event] = {}
    group: Asked | None = None
    plugins: set[Any] = set()
    for each in run.events:
        if each.kind == "plugin" and each.name.startswith("bb_p_"):
            if each.phase == "enter":
                entered[each.seq] = each
                continue
            first = entered.pop(begin_seq(each), each)
            name = each.name.removeprefix("bb_p_").removeprefix("job_")
            if (
                group is not None
                and (group.name, group.job, group.pid) == (name, each.job, each.pid)
                and each.plugin not in plugins
                and name != "get_system_size"
            ):
                group.ends.append(each)
                plugins.add(each.plugin)
                continue
            group = _asked(name, first, each, [each])
            plugins = {each.plugin}
            yield group
        elif each.phase != "enter" and (
            each.kind in _TELLING
            or (each.kind == "plugin" and each.daemon == "slurmctld")
            or (
                each.kind == "message"
                and each.daemon == "slurmctld"
                and not for_a_plugin(run, each)
            )
        ):
            yield each
    for each in entered.values():
        yield _asked(each.name.removeprefix("bb_p_").removeprefix("job_"), each, each, [])


def _asked(name: str, first: Event, told: Event, ends: list[Event]) -> Asked:
    args = first.args if first.args is not UNSET else {}
    start_us = told.t0_us if isinstance(told.t0_us, int) else first.time_us
    pid = told.pid if isinstance(told.pid, int) else 0
    return Asked(name, first, told.job, pid, args, start_us, ends)


def _lives(items: Iterable[Item]) -> list[Life]:
    lives: list[Life] = []
    current: dict[int, Life] = {}
    for each in items:
        if not isinstance(each.job, int):
            continue
        life = current.get(each.job)
        if life is None:
            life = current[each.job] = Life(each.job)
            lives.append(life)
        life.items.append(each)
        if forgets(each):
            del current[each.job]
    return lives


def place(item: Item) -> int:
    """Return where an item begins, as a number of the trace."""
    return begin_seq(item.first) if isinstance(item, Asked) else begin_seq(item)


def event(item: Item) -> Event:
    """Return the event that shows an item."""
    return item.last if isinstance(item, Asked) else item


def change(item: Item) -> tuple[str, str] | None:
    """Return the states that a job goes from and to, if that is what an item is."""
    if isinstance(item, Event) and item.name == "job_state" and item.args is not UNSET:
        return item.args["from"] or "", item.args["to"]
    return None


def base(state: str) -> str:
    """Return a job's base state."""
    return state.partition("|")[0]


def sends(item: Item, *names: str) -> bool:
    """Return whether slurmctld sends one of these messages."""
    return isinstance(item, Event) and item.phase == "send" and item.name in names


def forgets(item: Item) -> bool:
    """Return whether a job's record is given up."""
    return isinstance(item, Event) and item.name == "slurm_ckpt_free_job" and item.step is UNSET


def launches(item: Item) -> bool:
    """Return whether something of a job is launched: its script, or a step."""
    if isinstance(item, Asked):
        return False
    return sends(item, "REQUEST_BATCH_JOB_LAUNCH") or item.name == "switch_p_build_jobinfo"


def runs(item: Item) -> bool:
    """Return whether a job starts."""
    states = change(item)
    return states is not None and (base(states[0]), base(states[1])) == ("PENDING", "RUNNING")


def claims_at_once(later: Sequence[Item]) -> bool:
    """Tell, of what follows a start, whether the job has no nodes: it is claimed only then."""
    told = (each for each in later if isinstance(each, Asked) or change(each) is not None)
    first = next(told, None)
    return isinstance(first, Asked) and first.name == "begin"


def ends_a_run(item: Item) -> bool:
    """Return whether a run of a job ends: by itself, by force, or because it is requeued."""
    states = change(item)
    if states is None or base(states[0]) not in ("RUNNING", "SUSPENDED"):
        return False
    return base(states[1]) in FINAL or base(states[1]) == "PENDING"


def ends_unrun(item: Item) -> bool:
    """Return whether a job ends that has no nodes."""
    states = change(item)
    if states is None or "COMPLETING" in states[0]:
        return False
    return base(states[0]) == "PENDING" and base(states[1]) in FINAL


def broken(group: object, what: str, *items: Item) -> Broken:
    """Return that a rule is broken, and what shows it."""
    found = sorted({event(each).seq: event(each) for each in items}.items())
    return Broken(group=str(group), what=what, events=tuple(each for _, each in found))


def settle(found: Iterator[Broken]) -> Finding:
    """Return the first thing that is wrong with a group, or that nothing is."""
    return next(found, KEPT)


def by_life(
    run: Observed,
    check: Callable[[Story, Life], Iterator[Broken]],
    concerned: Callable[[Life], Any],
) -> Iterator[Finding]:
    """Check each job that a rule is concerned with."""
    found = story(run)
    for life in found.lives:
        if concerned(life):
            yield settle(check(found, life))


def jobs(run: Observed) -> Sequence[Life]:
    """Return all that happens to each job id, whatever its record: scripts may outlive that."""
    merged: dict[int, Life] = {}
    for life in story(run).lives:
        merged.setdefault(life.job, Life(life.job)).items.extend(life.items)
    return list(merged.values())


def by_process(found: Story) -> dict[int, list[Asked]]:
    """Return the calls that each slurmctld made."""
    return grouped(found.calls, lambda call: call.pid)
