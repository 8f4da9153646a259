"""Why jobs did not complete: the first thing that went wrong, found in the events of a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.console import visible
from simctl.kernel.events import Event
from simctl.kernel.orders import begin_us
from simctl.kernel.pattern import value_text
from simctl.kernel.procs import exit_code_of, signal_of, wait_status_text
from simctl.plugins.points import ALL, OPTIONAL
from simctl.plugins.points.declare import OnError, Returns
from simctl.scenario.durations import format_moment, format_us

_MILD: Final = (OnError.IGNORED, OnError.LOGGED, OnError.ANSWERED)
"""What callers do about failures that end no job."""

_MAY_BE_NEGATIVE: Final = (Returns.THREE, Returns.NUMBER, Returns.OBJECT, Returns.DATA)
_HARMLESS: Final = ("duplicate", "fault")
_LINE: Final = 80


class NoSuchJobError(ValueError):
    """The events tell nothing of a job; the text says which ones they tell of."""


@attrs.frozen
class Failure:
    """Why a job did not complete: the event with which it began, and lines for people."""

    job: int
    first: Event
    lines: tuple[str, ...]
    over: bool
    """Whether the job is over; else it waits."""

    def as_json(self) -> dict[str, Any]:
        """Return the object that `run --json` prints."""
        lines = [line.strip() for line in self.lines]
        return {"job": self.job, "seq": self.first.seq, "over": self.over, "lines": lines}


def failed_call(event: Event) -> bool:
    """Return whether an event is a plugin call that failed, by what its function returns."""
    if event.kind != "plugin" or event.phase == "enter":
        return False
    point = (ALL | OPTIONAL).get(event.name)
    if point is None or type(event.rc) is not int:
        return point is not None and event.errno is not UNSET
    if point.returns is Returns.ERRNO:
        return event.rc != 0
    if point.returns in _MAY_BE_NEGATIVE:
        return event.errno is not UNSET
    if point.returns is Returns.COUNT:
        return event.rc < 0
    return event.rc < 0 or (point.returns in (Returns.INT, Returns.STATUS) and event.rc > 0)


class WhyFailed:
    """Finds the first cause of failures in the events of a run, which may have been cut short.

    *users* has the uid of each name; *reasons* has, by job, why a job waits as the events end,
    where that is known: the events tell it as of the last change of state.
    """

    def __init__(
        self,
        events: Sequence[Event],
        users: Mapping[str, int] | None = None,
        reasons: Mapping[int, str] | None = None,
    ) -> None:
        self._events = events
        self._by_seq = {event.seq: event for event in events}
        self._names = {uid: name for name, uid in (users or {}).items()}
        self._reasons = reasons or {}
        self._jobs: dict[int, list[Event]] = {}
        for event in events:
            if event.job is not UNSET:
                self._jobs.setdefault(event.job, []).append(event)

    def all(self) -> list[Failure]:
        """Return why each job that did not complete did not, by job id."""
        told = (self.of(job) for job in sorted(self._jobs) if self._states(job))
        return [each for each in told if each is not None]

    def of(self, job: int) -> Failure | None:
        """Return why a job did not complete; None for one that did, and for one that runs.

        Raises:
            NoSuchJobError: The events do not tell of it.
        """
        states = self._states(job)
        if not states:
            known = ", ".join(str(each) for each in sorted(self._jobs) if self._states(each))
            there = f"it tells of {known}" if known else "it tells of none"
            raise NoSuchJobError(f"there is no job {job}; {there}")
        base = _base(states[-1])
        if base in ("COMPLETED", "RUNNING", "SUSPENDED"):
            return None
        end = states[-1]
        for event in reversed(states):
            if _base(event) != base:
                break
            end = event
        first, more = self._cause(job, base, end)
        told = base in ("PENDING", "PREEMPTED") and first.name == "job_state" and more
        lines = [f"job {job} {base}: {more.pop(0) if told else self._tell(first)}"]
        lines += [f"    {line}" for line in (*more, self._told_user(job, first)) if line]
        return Failure(job, first, _shown(dict.fromkeys(lines)), base != "PENDING")

    def fine(self, job: int) -> str:
        """Say how a job stands that did not fail."""
        last = self._states(job)[-1]
        how = "as the events end" if _base(last) != "COMPLETED" else "and nothing is to be told"
        return f"job {job} is {_base(last)}, {how}"

    # What decided.

    def _cause(self, job: int, base: str, end: Event) -> tuple[Event, list[str]]:
        """Return the first cause of an end, and what else is worth a line."""
        if base == "PENDING":
            return self._waits(job, end)
        if base == "NODE_FAIL":
            return self._node_failed(end)
        if base in ("TIMEOUT", "DEADLINE"):
            return end, self._ran_from(job, end)
        if base == "PREEMPTED":
            return self._preempted(job, end)
        if base == "CANCELLED":
            return self._cancelled(job, end)
        return self._failed(job, end)

    def _waits(self, job: int, end: Event) -> tuple[Event, list[str]]:
        last = self._states(job)[-1]
        trouble = [event for event in self._jobs[job] if self._is_trouble(event)]
        reason = f"it waits: {self._reasons.get(job) or _args(last).get('reason')}"
        return (trouble[-1] if trouble else last), [reason, self._asked(job)]

    def _ran_from(self, job: int, end: Event) -> list[str]:
        began = [event for event in self._states(job) if _base(event) == "RUNNING"]
        if not began or _base(end, "from") == "PENDING":
            return [self._asked(job)]
        ran_us = end.time_us - began[0].time_us
        return [f"it ran from {format_moment(began[0].time_us)} on, {format_us(ran_us)}"]

    def _preempted(self, job: int, end: Event) -> tuple[Event, list[str]]:
        for event in self._behind(end):
            if event.name == "job_state" and event.job not in (job, UNSET):
                return event, [f"job {event.job} took its place", self._asked(int(event.job))]
        return end, []

    def _cancelled(self, job: int, end: Event) -> tuple[Event, list[str]]:
        reason = str(_args(end).get("reason", ""))
        waited = f"until then it waited: {reason}" if _base(end, "from") == "PENDING" else ""
        told = waited if reason not in ("None", "") else ""
        for event in self._behind(end):
            if self._is_trouble(event):
                return event, [told]
            if event.kind == "command" and event.phase == "enter":
                before = [each for each in self._jobs[job] if self._is_trouble(each)]
                before = [each for each in before if each.seq < end.seq]
                seen = f"before that: {self._tell(before[-1])}" if told and before else ""
                return (event if event.name == "scancel" else end), [told, seen]
            if event.name == "REQUEST_KILL_JOB" and event.phase == "send":
                command = self._command_of(event)
                return command or event, [told]
        return end, [told]

    def _node_failed(self, end: Event) -> tuple[Event, list[str]]:
        """Return the fault of the node that went down, or the command that took it down."""
        for event in self._behind(end):
            if event.kind == "command":
                return event, []
            if event.name == "node_state" and "DOWN" in str(_args(event).get("to")):
                node = str(_args(event).get("node"))
                said = f"node {node}: {_args(event).get('from')} -> {_args(event).get('to')}"
                asked = [each for each in self._behind(event) if each.kind == "command"]
                if asked and asked[0].name == "scontrol":
                    return asked[0], [said]
                fault = self._fault_on(node, event)
                return fault or event, [f"{said} at {format_moment(event.time_us)}"]
        return end, []

    def _fault_on(self, node: str, before: Event) -> Event | None:
        """Return the last fault that a scenario had happen to a node."""
        for event in reversed(self._faults):
            words = str(_args(event).get("fault", "")).replace("@", " ").split()
            if event.seq < before.seq and node in words and words[0] not in ("start", "fail"):
                return event
        return None

    def _failed(self, job: int, end: Event) -> tuple[Event, list[str]]:
        for event in self._behind(end):
            if event.name == "REQUEST_COMPLETE_BATCH_SCRIPT":
                script = self._script_exit(job, end)
                if script is None:
                    break
                return self._down(job, script.pid, script)
            if event.name == "REQUEST_COMPLETE_JOB_ALLOCATION" and event.phase == "send":
                return self._down(job, event.pid, event)
            if self._is_trouble(event):
                return self._behind_fault(event)
        trouble = [each for each in self._jobs[job] if self._is_trouble(each)]
        trouble = [each for each in trouble if each.seq < end.seq]
        return self._behind_fault(trouble[0]) if trouble else (end, [_reason(end)])

    def _script_exit(self, job: int, end: Event) -> Event | None:
        """Return the end of a job's batch script: the last of the processes it began."""
        exits = [
            event
            for event in self._jobs[job]
            if event.step == f"{job}.batch"
            and event.role == "task"
            and event.name == "exit"
            and event.seq < end.seq
        ]
        return exits[-1] if exits else None

    def _down(self, job: int, pid: Any, end: Event) -> tuple[Event, list[str]]:
        """Return what made a process end as it did: a child, its step, or itself."""
        children = self._children.get(pid, ())
        exits = [self._exits[child] for child in children if child in self._exits]
        exits = [each for each in exits if each.seq < end.seq]
        wanted = _args(end).get("job_rc", 0) if end.name != "exit" else end.rc
        failed = [each for each in exits if each.rc]
        same = [each for each in failed if _code(each.rc) == _code(wanted)]
        if same or (failed and failed[-1] is exits[-1]):
            found = same[-1] if same else failed[-1]
            first, more = self._down(job, found.pid, found)
            if end.name == "exit" and first is not end and end.step != first.step:
                more = [*more, f"then the script ended with {wait_status_text(end.rc)}"]
            return first, more
        if end.daemon in ("srun", "srun_cr"):
            return self._step_failed(job, pid, end)
        return end, [self._killed_by(end)]

    def _step_failed(self, job: int, pid: Any, end: Event) -> tuple[Event, list[str]]:
        """Return the first thing that went wrong with the step of a srun."""
        own = [event for event in self._jobs[job] if event.pid == pid]
        steps = {event.step for event in own if event.step is not UNSET}
        began = min((event.seq for event in own), default=0)
        related = {event.seq for event in self._behind(end)}
        severe: list[Event] = []
        mild: list[Event] = []
        for event in self._events:
            if not began <= event.seq <= end.seq:
                continue
            about = event.step in steps or event.seq in related or event.pid == pid
            if event.kind == "log" and event.name == "refused":
                about = about or (event.job == job and "srun" in str(_args(event).get("who")))
            if event.kind == "fault":
                cause = self._by_seq.get(event.cause) if event.cause is not UNSET else None
                if cause is not None and cause.job == job and event.name not in _HARMLESS:
                    mild.append(event)
            elif about and self._is_step_trouble(event):
                severe.append(event)
            elif about and (failed_call(event) or _refusal(event)):
                mild.append(event)
        if severe:
            asked = severe[0].name == "REQUEST_CANCEL_JOB_STEP"
            command = self._command_of(severe[0]) if asked else None
            first, more = self._behind_fault(command or severe[0])
        elif mild:
            first, more = self._behind_fault(mild[0])
        else:
            return end, [self._killed_by(end)]
        return first, [*more, self._srun_ended(pid, end)]

    def _srun_ended(self, pid: Any, end: Event) -> str:
        status = self._exits[pid].rc if pid in self._exits else _args(end).get("job_rc", end.rc)
        return f"then srun on {end.node} ended with {wait_status_text(int(status))}"

    def _behind_fault(self, event: Event) -> tuple[Event, list[str]]:
        """Return the fault that led to an event, if there is one, or the event."""
        behind = {each.seq for each in self._behind(event)}
        for fault in self._faults:
            if fault.cause is not UNSET and fault.cause in behind and fault.name == "corrupt":
                return fault, [f"then {self._tell(event)}"]
            words = str(_args(fault).get("fault", "")).split()
            if failed_call(event) and words[:2] == ["fail", event.name] and fault.seq < event.seq:
                return event, [f"the scenario has the fault `{_args(fault)['fault']}`"]
        if event.name == "exit":
            for fault in self._faults:
                words = str(_args(fault).get("fault", "")).replace("@", " ").split()
                if fault.time_us == event.time_us and fault.seq < event.seq and event.node in words:
                    return fault, [f"then {self._tell(event)}"]
        return event, [self._killed_by(event)]

    def _killed_by(self, event: Event) -> str:
        """Say who asked for the signal that ended a process, where a command did."""
        if event.name != "exit" or not signal_of(int(event.rc or 0)):
            return ""
        for each in self._behind(event):
            if each.kind == "command" and each.name in ("scancel", "scontrol"):
                return f"because of {self._tell(each)}"
        return ""

    # What counts as trouble.

    def _is_trouble(self, event: Event) -> bool:
        """Return whether something went wrong that can end a job: a call, a script, a refusal."""
        if event.kind == "script":
            return event.phase == "exit" and bool(event.rc) and "epilog" not in event.name
        if event.kind == "log":
            return event.name == "refused" and "LAUNCH" in str(_args(event).get("rpc"))
        return failed_call(event) and _on_error(event) not in _MILD

    def _is_step_trouble(self, event: Event) -> bool:
        if event.name == "exit" and event.role == "task":
            return bool(event.rc)
        if event.name == "REQUEST_CANCEL_JOB_STEP" and event.phase == "receive":
            return str(event.peer).startswith("scancel")
        return self._is_trouble(event)

    # The events, found.

    @cached_property
    def _faults(self) -> list[Event]:
        return [event for event in self._events if event.kind == "fault"]

    @cached_property
    def _exits(self) -> dict[int, Event]:
        """The ends of processes, by pid."""
        return {
            int(event.pid): event
            for event in self._events
            if event.kind == "process" and event.name == "exit" and event.pid is not UNSET
        }

    @cached_property
    def _children(self) -> dict[int, list[int]]:
        """The processes that a process began, by pid, in the order of their ends."""
        found: dict[int, list[int]] = {}
        for event in self._events:
            if event.kind == "process" and event.name == "fork" and "child" in _args(event):
                found.setdefault(int(event.pid or 0), []).append(_args(event)["child"])
        ends = self._exits
        for children in found.values():
            children.sort(key=lambda child: ends[child].seq if child in ends else 0)
        return found

    def _states(self, job: int) -> list[Event]:
        return [event for event in self._jobs.get(job, ()) if event.name == "job_state"]

    def _behind(self, event: Event) -> Iterator[Event]:
        """Yield an event and its causes, the nearest first."""
        at: Event | None = event
        while at is not None:
            yield at
            cause = at.cause
            at = self._by_seq.get(cause) if cause is not UNSET and cause < at.seq else None

    def _told_user(self, job: int, first: Event) -> str:
        """Say what the user was told, by the first command of the job that went wrong with it."""
        for event in self._jobs[job]:
            said = _args(event).get("said") if event.name == "exit" else None
            if said and event.seq >= first.seq:
                return f"the user was told: {said}"
        return ""

    def _command_of(self, event: Event) -> Event | None:
        """Return the beginning of the command that an event is of."""
        for each in self._behind(event):
            if each.kind == "command":
                return each
        return None

    def _asked(self, job: int) -> str:
        """Say how a job was submitted, where a command of the timeline did."""
        states = self._states(job)
        command = self._command_of(states[0]) if states else None
        if command is None or _base(states[0], "from") not in ("None", ""):
            return ""
        return f"submitted by {self._user(command)}: {_cut(str(_args(command).get('line')))}"

    # Sentences.

    def _tell(self, event: Event) -> str:
        """Say what happened, in which process, when."""
        teller = _TELLERS.get(event.kind)
        what = teller(event) if teller is not None else event.name
        if event.kind == "command":
            what = f"{self._user(event)} said {what}"
        return f"{what}{_where(event)}, at {format_moment(event.time_us)} (event {event.seq})"

    def _user(self, event: Event) -> str:
        if event.uid is UNSET:
            return "somebody"
        return self._names.get(event.uid, f"uid {event.uid}")


def _args(event: Event) -> dict[str, Any]:
    return {} if event.args is UNSET else event.args


def _base(event: Event, key: str = "to") -> str:
    return str(_args(event).get(key, "")).partition("|")[0]


def _code(status: int) -> int:
    """Return what a shell makes of a wait status."""
    return 128 + signal_of(status) if signal_of(status) else exit_code_of(status)


def _on_error(event: Event) -> OnError:
    return (ALL | OPTIONAL)[event.name].on_error


def _refusal(event: Event) -> bool:
    answer = event.kind == "message" and event.phase == "receive"
    return answer and bool(_args(event).get("return_code"))


def _reason(event: Event) -> str:
    reason = str(_args(event).get("reason", "None"))
    return "" if reason == "None" else f"reason: {reason}"


def _shown(lines: Iterable[str]) -> tuple[str, ...]:
    """Return lines without what a terminal would obey: names and texts are users' and plugins'."""
    return tuple(visible(line).replace("\n", "\\n") for line in lines)


def _cut(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"


def _where(event: Event) -> str:
    if event.kind in ("fault", "command", "state") or event.role is UNSET:
        return ""
    who = f"task {event.task}" if event.role == "task" and event.task is not UNSET else event.role
    step = f" of step {event.step}" if event.step is not UNSET else ""
    node = f" on {event.node}" if event.node not in (UNSET, None) else ""
    return f" in {who}{step}{node}" if event.kind != "process" else f",{step}{node}"


def _call(event: Event) -> str:
    errno = f", errno {event.errno}" if event.errno is not UNSET else ""
    plugin = f" of {event.plugin}" if event.plugin is not UNSET else ""
    return f"{event.name}{plugin} returned {value_text(event.rc)}{errno}"


def _state(event: Event) -> str:
    args = _args(event)
    if event.name == "job_state" and (limit := _LIMITS.get(_base(event))):
        return limit
    before = f"{args.get('from')} -> " if args.get("from") else "submitted, "
    return f"{event.name} {before}{args.get('to')}"


def _process(event: Event) -> str:
    who = f"task {event.task}" if event.task is not UNSET else event.role
    batch = str(event.step).endswith(".batch")
    return f"{'the batch script' if batch else who} ended with {wait_status_text(event.rc)}"


def _script(event: Event) -> str:
    return f"{event.name} ({_args(event).get('path')}) ended with {wait_status_text(event.rc)}"


def _log(event: Event) -> str:
    args = _args(event)
    errno = f", errno {event.errno}" if event.errno is not UNSET else ""
    why = f": {args['why']}" if args.get("why") else ""
    return f"{args.get('rpc')} of {args.get('who')} was refused{why}{errno}"


def _fault(event: Event) -> str:
    args = _args(event)
    if "fault" in args:
        return f"the fault `{args['fault']}`"
    way = f"from {args.get('from')} to {args.get('to')}"
    return f"the fault {event.name} of {args.get('rpc')} {way}"


def _message(event: Event) -> str:
    code = _args(event).get("return_code")
    if code:
        return f"{_args(event).get('answers')} was answered with {code} by {event.peer}"
    return f"{event.name} from {event.peer}"


def _command(event: Event) -> str:
    return f"`{_cut(str(_args(event).get('line', event.name)))}`"


_LIMITS: Final = {"TIMEOUT": "its time limit ran out", "DEADLINE": "its deadline was reached"}
_TELLERS: Final[Mapping[str, Callable[[Event], str]]] = {
    "plugin": _call,
    "state": _state,
    "process": _process,
    "script": _script,
    "log": _log,
    "fault": _fault,
    "message": _message,
    "command": _command,
}


def told_failures(
    events: Sequence[Event],
    users: Mapping[str, int] | None = None,
    reasons: Mapping[int, str] | None = None,
    most: int = 10,
) -> list[str]:
    """Return the lines about jobs that did not complete, of *most* jobs; and about hold-ups."""
    found = WhyFailed(events, users, reasons).all()
    lines = [line for each in found[:most] for line in each.lines]
    more = len(found) - most
    if more > 0:
        lines.append(f"... and {more} more that did not complete: `simctl why TRACE` tells of all")
    return [*lines, *held_up(events)]


def held_up(events: Sequence[Event]) -> list[str]:
    """Say which plugin calls held slurmctld so long that commands gave up, a line each."""
    began: dict[int | None, Event] = {}
    calls = [event for event in events if event.kind == "plugin" and event.t0_us is not UNSET]
    calls = [event for event in calls if event.daemon == "slurmctld"]
    lines: dict[int, list[str]] = {}
    for event in events:
        if event.kind != "command" or event.pid is UNSET:
            continue
        if event.phase == "enter":
            began[event.pid] = event
        elif event.errno == _TIMED_OUT and event.pid in began:
            start_us = began[event.pid].time_us
            place, most_us = -1, (event.time_us - start_us) // 2
            for at, call in enumerate(calls):
                both_us = min(call.time_us, event.time_us) - max(begin_us(call), start_us)
                if both_us > most_us:
                    place, most_us = at, both_us
            if place >= 0:
                lines.setdefault(place, []).append(_command(event))
    return list(_shown(_held(calls[at], commands) for at, commands in sorted(lines.items())))


def _held(call: Event, commands: Sequence[str]) -> str:
    took = format_us(call.time_us - begin_us(call))
    who = f"{call.name} of {call.plugin} held slurmctld for {took} (event {call.seq})"
    return f"{who}: {', '.join(commands)} timed out meanwhile"


_TIMED_OUT: Final = "SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT"
