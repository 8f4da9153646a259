"""A run as the rules see it: its events, found by name, process, step and job; made once a run."""

import bisect
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, Final, TypeVar

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_us, grouped
from simctl.kernel.procs import BY_PLUGIN

Found = TypeVar("Found")

_NO_PID: Final = -1
_STEP_ROLES: Final = frozenset(("manager", "session", "task"))
_SEQ: Final = operator.attrgetter("seq")

ASIDE: Final = frozenset(("switch_p_get_errno", "switch_p_strerror"))
"""What is asked after any call that failed."""

LAUNCHES: Final = ("REQUEST_LAUNCH_TASKS", "REQUEST_BATCH_JOB_LAUNCH")
TERMINATIONS: Final = ("REQUEST_TERMINATE_JOB", "REQUEST_KILL_TIMELIMIT", "REQUEST_KILL_PREEMPTED")


@attrs.frozen(kw_only=True)
class Terms:
    """What the rules must know of a run beside its events."""

    model: str
    finished: bool = True
    """Whether it came to its end: neither stopped at a limit nor interrupted nor stalled."""

    conf: Mapping[str, Any] = attrs.field(factory=dict)
    """The fields of `SlurmConf` and of the scenario's `Options`, by their names here."""

    goes_on: bool = False
    """Whether slurmctld goes on with an earlier run, with jobs that no event here made."""

    users: Mapping[str, int] = attrs.field(factory=dict)
    """Who there is, with their uids, as the header of a trace has them."""

    operators: Set[int] = frozenset()
    """The uids of users who are operators or administrators."""

    administrators: Set[int] = frozenset()
    """The uids of users who are administrators."""


class StepDaemon:
    """One slurmstepd: its processes, and what they did, in order."""

    __slots__ = (
        *("batch", "calls", "end", "events", "job"),
        *("manager", "messages", "node", "step", "tasks"),
    )

    def __init__(self, manager: int, first: Event) -> None:
        self.manager = manager
        """The pid of its first process, which slurmd forked."""

        self.node = first.node
        self.belong(first)

        self.events: list[Event] = []
        """All that its job manager, session and tasks did, not what tasks have started."""

        self.calls: dict[str, list[Event]] = defaultdict(list)
        """The ends of its plugin calls, by name."""

        self.messages: dict[str, list[Event]] = {}
        """What its job manager sent, by name."""

        self.tasks: dict[int, Event] = {}
        """The fork of each of its tasks, by the task's pid."""

        self.end: Event | None = None
        """How its job manager ended, by itself: None if it was killed, or has not ended."""

    def belong(self, event: Event) -> None:
        """Be a daemon of the job and step of an event."""
        self.job = event.job
        self.step = str(event.step)
        self.batch = self.step.endswith(".batch")
        """Whether it runs a batch script."""

    def __str__(self) -> str:
        return f"step {self.step} on {self.node} (slurmstepd {self.manager})"

    def called(self, name: str) -> Sequence[Event]:
        """Return the ends of its calls of a function."""
        return self.calls.get(name, ())

    def worked(self, name: str) -> bool:
        """Return whether it called a function, and no such call failed."""
        found = self.calls.get(name)
        return found is not None and not any(failed(call) for call in found)

    def sent(self, name: str) -> list[Event]:
        """Return what its job manager sent of a message."""
        return self.messages.get(name, [])


_BREAKS_OFF: Final = ("fatal", "stops_waiting")
"""What a daemon logs that leaves something undone as it ends by itself."""


@attrs.define(eq=False, slots=False)
class Observed:
    """The events of a run, in the order of `seq`, and what is found in them."""

    events: Sequence[Event]
    terms: Terms
    _made: dict[Any, Any] = attrs.field(factory=dict, init=False)

    def once(self, make: Callable[["Observed"], Found]) -> Found:
        """Return what *make* finds in the run; it looks once, whichever rules ask."""
        if make not in self._made:
            self._made[make] = make(self)
        found: Found = self._made[make]
        return found

    # Events.

    @cached_property
    def by_name(self) -> Mapping[str, Sequence[Event]]:
        """Events by name, enter lines among them."""
        return self._by_name_and_pid[0]

    @cached_property
    def _by_name_and_pid(self) -> tuple[dict[str, list[Event]], dict[int, list[Event]]]:
        names: dict[str, list[Event]] = defaultdict(list)
        pids: dict[Any, list[Event]] = defaultdict(list)
        for event in self.events:
            names[event.name].append(event)
            pids[event.pid].append(event)
        pids.pop(UNSET, None)
        return dict(names), dict(pids)

    @cached_property
    def _calls(self) -> dict[str, list[Event]]:
        return {}

    def calls(self, name: str) -> Sequence[Event]:
        """Return the ends of the calls of a plugin function: one event a call that came back."""
        found = self._calls.get(name)
        if found is None:
            found = [event for event in self.by_name.get(name, ()) if event.phase != "enter"]
            self._calls[name] = found
        return found

    def sent(self, name: str) -> list[Event]:
        """Return the sendings of a message."""
        return [event for event in self.by_name.get(name, ()) if event.phase == "send"]

    def received(self, name: str) -> list[Event]:
        """Return the receipts of a message."""
        return [event for event in self.by_name.get(name, ()) if event.phase == "receive"]

    def at(self, seq: int) -> Event | None:
        """Return the event of a number."""
        events = self.events
        if 0 < seq <= len(events) and events[seq - 1].seq == seq:
            return events[seq - 1]
        place = bisect.bisect_left(events, seq, key=_SEQ)
        return events[place] if place < len(events) and events[place].seq == seq else None

    @cached_property
    def by_pid(self) -> Mapping[int, list[Event]]:
        """Events by the process that acts."""
        return self._by_name_and_pid[1]

    def request_of(self, event: Event) -> Event | None:
        """Return the message upon which a process did something; None if it acted by itself.

        A timer that was set upon a message is no part of its handling: time has passed since.
        """
        while event.cause is not UNSET:
            before = self.at(event.cause)
            if before is None or before.pid != event.pid:
                return None
            if before.time_us != begin_us(event):
                return None
            if before.phase == "receive":
                return before
            event = before
        return None

    @cached_property
    def unreachable(self) -> Set[int]:
        """The numbers of the sendings that a cut link held back, or that were lost on their way."""
        return {
            event.cause
            for name in ("unreachable", "drop", "too_late", "undeliverable", "refused")
            for event in self.by_name.get(name, ())
            if event.cause is not UNSET
        }

    def met_nobody(self, fault: Event) -> bool:
        """Return whether nothing came of a fault: a line to that effect follows it."""
        after = self.at(fault.seq + 1)
        return after is not None and after.name == "fault_met_nobody"

    # Processes.

    @cached_property
    def forks(self) -> Mapping[int, Event]:
        """The fork of each process that was forked, by its pid."""
        return {arg(event, "child"): event for event in self.by_name.get("fork", ())}

    @cached_property
    def exits(self) -> Mapping[int, Event]:
        """The exit of each process that has ended, by its pid."""
        return {
            pid_of(event): event
            for event in self.by_name.get("exit", ())
            if event.kind == "process"
        }

    def left(self, pid: int) -> bool:
        """Return whether a process has ended by itself, not by a signal, and could do so."""
        end = self.exits.get(pid)
        return end is not None and not killed(end)

    def was_killed(self, pid: int) -> bool:
        """Return whether a process has ended by a signal."""
        end = self.exits.get(pid)
        return end is not None and killed(end)

    def died(self, pid: int) -> bool:
        """Return whether a daemon could not go on, or went before all was done, and said so."""
        return any(event.pid == pid for name in _BREAKS_OFF for event in self.by_name.get(name, ()))

    @cached_property
    def _managers(self) -> Mapping[int, int]:
        """The first process of each step daemon, by the pid of each of its processes."""
        found: dict[int, int] = {}
        for event in self.by_name.get("fork", ()):
            child, parent = arg(event, "child"), pid_of(event)
            found[child] = child if event.role == "slurmd" else found.get(parent, parent)
        return found

    def step_daemon(self, event: Event) -> int:
        """Return the pid of the slurmstepd to which the process of an event belongs."""
        pid = pid_of(event)
        return self._managers.get(pid, pid)

    @cached_property
    def daemons(self) -> Mapping[int, StepDaemon]:
        """The step daemons of the run, by the pids of their job managers."""
        found: dict[int, StepDaemon] = {}
        managers = self._managers
        roles: dict[int, str] = {}
        forks: list[Event] = []
        for event in self.events:
            role = event.role
            if role not in _STEP_ROLES:
                continue
            pid = _NO_PID if event.pid is UNSET else event.pid
            manager = managers.get(pid, pid)
            daemon = found.get(manager)
            if daemon is None:
                found[manager] = daemon = StepDaemon(manager, event)
            daemon.events.append(event)
            if event.kind == "plugin":
                if event.phase != "enter":
                    daemon.calls[event.name].append(event)
            elif event.kind == "message":
                if event.phase == "send":
                    daemon.messages.setdefault(event.name, []).append(event)
            elif event.name == "fork":
                forks.append(event)
            elif pid == manager and _leaves(event, daemon):
                daemon.end = event
            if pid not in roles:
                roles[pid] = str(role)
        for event in forks:
            child = arg(event, "child")
            if roles.get(child) == "task" and event.role != "task":
                found[managers[child]].tasks[child] = event
        self._name_silent(found.values())
        return found

    def _name_silent(self, daemons: Iterable[StepDaemon]) -> None:
        for daemon in daemons:
            if daemon.events[0].step is UNSET:
                self._name(daemon)

    def _name(self, daemon: StepDaemon) -> None:
        """Have a step daemon that was killed before it did anything be of its launch's step."""
        event = self.forks.get(daemon.manager)
        while event is not None and event.step is UNSET:
            event = self._cause(event)
        if event is not None:
            daemon.belong(event)

    def _cause(self, event: Event) -> Event | None:
        if event.cause is UNSET:
            return None
        place = bisect.bisect_left(self.events, event.cause, key=_SEQ)
        found = self.events[place] if place < len(self.events) else event
        return found if found.seq == event.cause and found.seq < event.seq else None

    @cached_property
    def step_daemons_of(self) -> Mapping[tuple[Any, Any], Sequence[StepDaemon]]:
        """The step daemons of each job on each node."""
        return grouped(self.daemons.values(), lambda daemon: (daemon.job, daemon.node))

    @cached_property
    def _pids(self) -> Mapping[Any, list[int]]:
        found: dict[Any, list[int]] = defaultdict(list)
        for pid, events in self.by_pid.items():
            found[events[0].role].append(pid)
        return dict(found)

    def pids(self, role: str) -> Sequence[int]:
        """Return the processes of a role, such as slurmctld, in the order of their beginning."""
        return self._pids.get(role, ())

    @cached_property
    def _calls_of(self) -> dict[int, Sequence[Event]]:
        return {}

    def calls_of(self, pid: int) -> Sequence[Event]:
        """Return the ends of a process's plugin calls, but for what it asks about failures."""
        found = self._calls_of.get(pid)
        if found is None:
            found = [
                event
                for event in self.by_pid.get(pid, ())
                if event.kind == "plugin" and event.phase != "enter" and event.name not in ASIDE
            ]
            self._calls_of[pid] = found
        return found

    # States.

    @cached_property
    def job_states(self) -> Mapping[int, Sequence[Event]]:
        """The changes of each job's state."""
        return grouped(self.by_name.get("job_state", ()), lambda event: int(str(event.job)))

    def job_state(self, job: Any, seq: int) -> str:
        """Return the state that a job had when an event happened."""
        changes = self.job_states.get(job, ())
        place = bisect.bisect_left(changes, seq, key=_SEQ)
        return str(arg(changes[place - 1], "to")) if place else ""

    @cached_property
    def node_states(self) -> Mapping[str, Sequence[Event]]:
        """The changes of each node's state."""
        return grouped(self.by_name.get("node_state", ()), lambda event: str(arg(event, "node")))

    def node_state_at(self, node: str, seq: int) -> str:
        """Return the state of a node before an event; empty if nothing was told of it yet."""
        changes = self.node_states.get(node, ())
        place = bisect.bisect_left(changes, seq, key=_SEQ)
        return str(arg(changes[place - 1], "to")) if place else ""

    def node_was_down(self, node: str, first: int, last: int) -> bool:
        """Return whether a node was DOWN at any time between two events."""
        changes = self.node_states.get(node, ())
        place = max(0, bisect.bisect_left(changes, first, key=_SEQ) - 1)
        end = bisect.bisect_left(changes, last, key=_SEQ)
        return any(str(arg(each, "to")).startswith("DOWN") for each in changes[place:end])


def _leaves(event: Event, daemon: StepDaemon) -> bool:
    """Return whether a step daemon ends with an event, by itself and with its work done.

    One that has done nothing before was never told what to do: its slurmd had died.
    """
    return event.name == "exit" and not killed(event) and len(daemon.events) > 1


_ASKS_FOR_JOBS: Final = ("REQUEST_SUBMIT_BATCH_JOB", "REQUEST_RESOURCE_ALLOCATION")


def sending_of(run: Observed, receipt: Event) -> Event | None:
    """Return the sending of a message that was received, of a copy that of the original."""
    found = None if receipt.cause is UNSET else run.at(receipt.cause)
    if found is not None and found.name == "duplicate" and found.cause is not UNSET:
        found = run.at(found.cause)
    return found if found is not None and found.phase == "send" else None


def for_a_plugin(run: Observed, event: Event) -> bool:
    """Return whether slurmctld received the answer to a plugin's question, which is the plugin's.

    A thread of the plugin's may hear it whatever slurmctld does meanwhile.
    """
    if event.phase != "receive" or not event.name.startswith("RESPONSE_"):
        return False
    sending = sending_of(run, event)
    return sending is not None and str(sending.peer).startswith("slurmctld[")


def owner_uid(run: Observed, event: Event) -> int | None:
    """Return who has submitted the job of an event, as far as the trace shows it.

    root and SlurmUser may submit for others, which it does not show. A slurmctld that has read an
    older state gives ids away again: that of whom a job is goes by who had the id last.
    """
    return _last_before(run.once(_submitters).get(event.job, ()), event.seq)


def _submitters(run: Observed) -> Mapping[Any, Sequence[tuple[int, int | None]]]:
    """Return where each job id was given away, and to whom; tasks are their array's."""
    found: dict[Any, list[tuple[int, int | None]]] = defaultdict(list)
    for event in run.by_name.get("job_state", ()):
        if arg(event, "from") is not None:
            continue
        if event.array_job not in (UNSET, event.job):
            # It was split off upon whatever request came just then.
            found[event.job].append((event.seq, _last_before(found[event.array_job], event.seq)))
            continue
        request = run.request_of(event)
        sending = sending_of(run, request) if request is not None else None
        if sending is not None and sending.name not in _ASKS_FOR_JOBS:
            # It starts again from its images, whichever user has asked for that.
            continue
        uid = sending.uid if sending is not None else UNSET
        shown = request is not None and uid not in (0, request.uid, UNSET)
        found[event.job].append((event.seq, int(str(uid)) if shown else None))
    return found


def _last_before(given: Sequence[tuple[int, int | None]], seq: int) -> int | None:
    return next((uid for since, uid in reversed(given) if since <= seq), None)


def by(events: Iterable[Event], *fields: str) -> defaultdict[Any, list[Event]]:
    """Group events by one or more fields, the events of a group in the order of the run."""
    return grouped(sorted(events, key=_SEQ), operator.attrgetter(*fields))


def arg(event: Event, name: str) -> Any:
    """Return an argument of an event, or None."""
    return None if event.args is UNSET else event.args.get(name)


def pid_of(event: Event) -> int:
    """Return the process of an event that has one."""
    return _NO_PID if event.pid is UNSET else event.pid


def failed(call: Event) -> bool:
    """Return whether a call failed; a function that gives a Slurm errno answers otherwise."""
    return type(call.rc) is int and call.rc < 0


def killed(end: Event) -> bool:
    """Return whether a process was ended by a signal, or by its plugin, wherever that was."""
    return (type(end.rc) is int and bool(end.rc & 0x7F)) or arg(end, "by") == BY_PLUGIN


def between(events: Sequence[Event], first: int, last: int) -> Sequence[Event]:
    """Return those of some events that lie between two numbers, both excluded."""
    start = bisect.bisect_right(events, first, key=_SEQ)
    return events[start : bisect.bisect_left(events, last, key=_SEQ)]
