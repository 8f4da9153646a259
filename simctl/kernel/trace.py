"""What happened, in order, with its causes: the one place where events are made.

A trace numbers events also when they are not recorded, so that a run counts the same with the trace
off. Recorded events go to any number of sinks: a list in memory, a file, triggers.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import IO, Any, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from simctl.kernel.causes import Cause, Subjects
from simctl.kernel.events import END, Event, Kind
from simctl.kernel.threads import Killed
from simctl.kernel.turns import Kernel

Sink = Callable[[Event], None]

_PROCESS_ARG = {
    "fork": "child",
    "become_user": "uid",
    "exec": "path",
    "signal": "signal",
}


class Place(Protocol):
    """Where a process acts: a host."""

    name: str
    node: str | None


class Actor(Protocol):
    """Who acts: a simulated process."""

    cause: int
    begun: int
    daemon: str
    role: str
    pid: int
    uid: int
    euid: int
    job: int | UnsetType
    step: str | UnsetType
    task: int | UnsetType
    ended_by: str
    """Who has ended it, where that was neither itself nor a signal from outside."""
    said: str
    """The first error that it has told its user, where it is a command."""

    @property
    def host(self) -> Place:
        """Return the host that the process runs on."""


class Traceable(Protocol):
    """What the trace must know of a message."""

    @property
    def rpc(self) -> str:
        """Return the message's name."""

    def shown(self) -> dict[str, Any]:
        """Return the arguments worth a place in the trace, `job_id` and `step` among them."""


class OpenCall(msgspec.Struct, eq=False):
    """A plugin call under way; its enter line is written only if something happens inside."""

    who: Any
    """The process, of which a trace needs no more than an `Actor` has."""
    name: str
    shown: dict[str, Any]
    started_us: int
    cause: int
    enter: int = 0
    values: dict[str, Any] = {}
    """The arguments themselves, by name, for a session."""
    plugin: str = ""
    """Which of several plugins of a class is called."""


class Trace:
    """Numbers and records events; `seq` is the number of the last one."""

    def __init__(self, kernel: Kernel) -> None:
        self.seq = 0
        self.messages = 0
        self.recording = False
        self._kernel = kernel
        self._sinks: list[Sink] = []
        self.open_calls: list[OpenCall] = []
        self.arrays: dict[int, tuple[int, int | None]] = {}
        """The array and task of jobs that belong to one, by job id."""
        self.subjects: Subjects | None = None
        """What the one process that serves many jobs has done for each."""
        self.complaints: dict[tuple[str, str], int] = {}
        """What plugins did wrong: function and problem, and how often."""
        self.damages: list[str] = []
        """State files that could not be read whole, and what was made of them."""
        self.lost_jobs: list[int] = []
        """Jobs that a slurmctld knew nothing of any more which the one before it had known."""
        self.fatalities: list[str] = []
        """Daemons that could not go on, each with its reason."""

    def add_sink(self, sink: Sink) -> None:
        """Hand every event from now on to *sink*."""
        self._sinks.append(sink)
        self.recording = True

    def _record(self, event: Event) -> int:
        """Give an event its number, and hand it to all sinks; return the number."""
        if self.open_calls:
            self._enter_open_calls()
        self.seq = event.seq = self.seq + 1
        thread = self._kernel.current
        alive = thread is not None and not thread.killed
        cause = event.cause
        subjects = self.subjects
        if subjects is not None and (event.pid == subjects.pid or event.pid in subjects.forked):
            event.cause = cause = subjects.place(thread, event, cause or 0) or UNSET
        if type(cause) is Cause:
            event.cause = int(cause) or UNSET
            event.needs = cause.needs
        if self.arrays and event.job in self.arrays:
            event.array_job, task = self.arrays[event.job]
            event.array_task = UNSET if task is None else task
        for sink in self._sinks:
            sink(event)
        if alive and thread is not None and thread.killed:
            # A trigger on this event killed the process that acts: it does nothing more.
            raise Killed
        return event.seq

    def _number(self) -> int:
        if self.open_calls:
            self._enter_open_calls()
        self.seq = seq = self.seq + 1
        return seq

    def _enter_open_calls(self) -> None:
        calls, self.open_calls = self.open_calls, []
        for call in calls:
            call.enter = self.seq + 1
            if self.recording:
                event = _plugin_event(call, dict(call.shown))
                event.time_us = call.started_us
                event.phase = "enter"
                event.cause = call.cause or UNSET
                self._record(event)
            else:
                self.seq = call.enter

    def skip(self) -> int:
        """Count an event that is not recorded."""
        if self.open_calls:
            return self._number()
        self.seq = seq = self.seq + 1
        return seq

    # What the next event of a process needs.

    def join(self, who: Actor, *others: int) -> None:
        """Let the next event of a process need *others* as well: it has waited for all of them."""
        if self.recording and any(each != who.cause for each in others):
            who.cause = Cause.of(who.cause, (who.cause, *others))

    def choose(self, who: Actor, *needed: int) -> None:
        """Let the next event of a process need nothing but these.

        What led to it is still its cause, and might not have: a choice was made.
        """
        if self.recording:
            who.cause = Cause.of(who.cause, needed)

    def process(self, who: Actor, name: str, value: Any) -> int:
        """Record what a process did: fork, become_user, exec, signal, exit."""
        if not self.recording:
            if self.open_calls:
                return self._number()
            self.seq = seq = self.seq + 1
            return seq
        arg = _PROCESS_ARG.get(name)
        args: Any = {arg: value} if arg else {"by": who.ended_by} if who.ended_by else UNSET
        if name == "exit" and value and who.said:
            args = ({} if args is UNSET else args) | {"said": who.said}
        if name == "signal" and who.begun != who.cause:
            # A signal comes whatever the process is about.
            self.choose(who, who.begun)
        return self._record(
            Event(
                seq=0,
                time_us=self._kernel.now_us,
                kind="process",
                name=name,
                daemon=who.daemon,
                node=who.host.node,
                role=who.role,
                pid=who.pid,
                uid=who.uid,
                euid=who.euid,
                job=who.job,
                step=who.step,
                task=who.task,
                args=args,
                rc=UNSET if arg else value,
                cause=who.cause or UNSET,
            )
        )

    def message(self, who: Actor, phase: str, message: Traceable, peer: str, cause: int) -> int:
        """Record that *who* sends or receives *message*; the answer is the event's seq."""
        if phase == "send":
            self.messages += 1
        if not self.recording:
            return self._number()
        shown = message.shown()
        return self._record(
            Event(
                seq=0,
                time_us=self._kernel.now_us,
                kind="message",
                name=message.rpc,
                phase=phase,
                daemon=who.daemon,
                node=who.host.node,
                role=who.role,
                pid=who.pid,
                uid=who.uid,
                euid=who.euid,
                job=shown.pop("job_id", who.job),
                step=shown.pop("step", who.step),
                task=who.task,
                peer=peer,
                args=shown or UNSET,
                cause=cause or UNSET,
            )
        )

    def state(
        self,
        who: Actor,
        name: str,
        *,
        before: str | None,
        after: str,
        reason: str,
        job: int | UnsetType = UNSET,
        step: str | UnsetType = UNSET,
        node: str = "",
        **more: Any,
    ) -> None:
        """Record a change of a job's, step's or node's state; it becomes the cause of what follows.

        *node* is the node whose state it is; the event's own `node` is where the change is made.
        *more* is what else its arguments tell.
        """
        if not self.recording:
            who.cause = self._number()
            return
        args: dict[str, Any] = {"from": before, "to": after, "reason": reason, **more}
        if node:
            args["node"] = node
        who.cause = self._record(
            Event(
                seq=0,
                time_us=self._kernel.now_us,
                kind="state",
                name=name,
                daemon=who.daemon,
                node=who.host.node,
                role=who.role,
                pid=who.pid,
                uid=who.uid,
                euid=who.euid,
                job=job,
                step=step,
                args=args,
                cause=who.cause or UNSET,
            )
        )

    def note(
        self,
        kind: Kind,
        name: str,
        who: Actor | None = None,
        *,
        args: dict[str, Any] | UnsetType = UNSET,
        rc: Any = UNSET,
        errno: str | UnsetType = UNSET,
        phase: str | UnsetType = UNSET,
        job: int | UnsetType = UNSET,
        step: str | UnsetType = UNSET,
        cause: int = 0,
        enter: int | UnsetType = UNSET,
        t0_us: int | UnsetType = UNSET,
    ) -> int:
        """Record a command, fault, script or log event; *who* is absent for simctl's own acts.

        An exit line names its `enter` line, and when that was if time has passed since.
        """
        if not self.recording:
            return self._number()
        event = Event(
            seq=0,
            time_us=self._kernel.now_us,
            t0_us=t0_us,
            kind=kind,
            name=name,
            phase=phase,
            job=job,
            step=step,
            args=args,
            rc=rc,
            errno=errno,
            enter=enter,
        )
        if who is not None:
            _identify(event, who)
        event.cause = cause or (who.cause if who is not None else 0) or UNSET
        return self._record(event)

    def complain(self, who: Actor, function: str, problem: str, *, counted: bool = True) -> None:
        """Record what a plugin did wrong; the end of the run tells it too, if it is *counted*."""
        if not problem.isascii():
            # Half of a surrogate pair has no place in a file.
            problem = problem.encode(errors="backslashreplace").decode()
        if counted:
            key = (function, problem)
            self.complaints[key] = self.complaints.get(key, 0) + 1
        self.note("log", "plugin_error", who, args={"function": function, "problem": problem})

    def fatal(self, who: Actor, text: str, why: str = "") -> None:
        """Record that a daemon cannot go on; the end of the run tells it too, with *why*."""
        self.note("log", "fatal", who, args={"text": text})
        where = "" if who.host.node is None else f" on {who.host.name}"
        self.fatalities.append(f"{who.daemon}{where}: {text}{f' ({why})' if why else ''}")

    def end(self, reason: str, broken: Sequence[Mapping[str, Any]] = ()) -> Event:
        """Return the last event of a trace, which is written where the trace is, and nowhere else.

        Who reads a trace without one knows that it is not whole. *broken* is what did not hold in
        the run, if anything: it stands in the event's result.
        """
        return Event(
            seq=self.seq + 1,
            time_us=self._kernel.now_us,
            kind="log",
            name=END,
            args={"events": self.seq, "reason": reason},
            rc=list(broken) if broken else UNSET,
        )

    # Plugin calls.

    def open_call(self, who: Actor, name: str, shown: dict[str, Any]) -> OpenCall:
        """Note that a plugin call begins; nothing is written unless something happens inside."""
        call = OpenCall(who, name, shown, self._kernel.now_us, who.cause)
        self.open_calls.append(call)
        return call

    def close_call(self, call: OpenCall, rc: Any, errno: str | UnsetType, plugin: str) -> int:
        """Record the end of a call: its only line, or its exit line."""
        if not call.enter:
            self.open_calls.remove(call)
        if not self.recording:
            return self._number()
        event = _plugin_event(call, call.shown)
        event.time_us = self._kernel.now_us
        if call.started_us != event.time_us:
            event.t0_us = call.started_us
        event.plugin = plugin
        event.rc = rc
        event.errno = errno
        if call.enter:
            event.phase = "exit"
            event.enter = call.enter
        event.cause = call.cause or UNSET
        if call.who.cause is not call.cause and call.who.cause != call.cause:
            # It has waited for what happened inside.
            event.cause = Cause.of(call.cause, (call.cause, call.who.cause))
        return self._record(event)

    def drop_call(self, call: OpenCall) -> None:
        """Forget a call that will not return, because its process was killed inside."""
        if not call.enter:
            self.open_calls.remove(call)

    def leave_call(self, call: OpenCall) -> None:
        """Record a call that will not return, because its process has become another program.

        Its line is that of its beginning, whether or not anything happened inside.
        """
        if not call.enter:
            self._enter_open_calls()

    def prospect(self, call: OpenCall) -> Event:
        """Return the event that *call* would begin with, for rules that look at it beforehand."""
        event = _plugin_event(call, dict(call.shown))
        event.time_us = self._kernel.now_us
        if call.plugin:
            event.plugin = call.plugin
        return event


def _plugin_event(call: OpenCall, shown: dict[str, Any]) -> Event:
    """Return the event of a call; *shown* is what its arguments are made of."""
    who = call.who
    return Event(
        seq=0,
        time_us=0,
        kind="plugin",
        name=call.name,
        daemon=who.daemon,
        node=who.host.node,
        role=who.role,
        pid=who.pid,
        uid=who.uid,
        euid=who.euid,
        job=shown.pop("job") if "job" in shown else who.job,
        step=shown.pop("step") if "step" in shown else who.step,
        task=who.task,
        args=shown or UNSET,
    )


def _identify(event: Event, who: Actor) -> None:
    event.daemon = who.daemon
    event.node = who.host.node
    event.role = who.role
    event.pid = who.pid
    event.uid = who.uid
    event.euid = who.euid
    if event.job is UNSET:
        event.job = who.job
    if event.step is UNSET:
        event.step = who.step
    event.task = who.task


class FileSink:
    """Writes a header and then an event a line, in blocks."""

    _BLOCK = 1 << 18

    def __init__(
        self, stream: IO[bytes], header: dict[str, Any], kinds: Collection[str] = ()
    ) -> None:
        self._stream = stream
        self._kinds = frozenset(kinds)
        self._encoder = msgspec.json.Encoder()
        self._events = 0
        self._buffer = bytearray(self._encoder.encode(header) + b"\n")

    def __call__(self, event: Event) -> None:
        """Append one event."""
        if self._kinds and event.kind not in self._kinds:
            return
        buffer = self._buffer
        self._encoder.encode_into(event, buffer, -1)
        self._events += 1
        buffer += b"\n"
        if not self._events % 64 and len(buffer) > self._BLOCK:
            self.flush()

    def end(self, event: Event) -> None:
        """Append the last event, of whatever kinds the others are, with how many came before."""
        assert isinstance(event.args, dict)
        end = msgspec.structs.replace(event, args={**event.args, "events": self._events})
        self._buffer += self._encoder.encode(end) + b"\n"
        self.flush()

    def flush(self) -> None:
        """Write what has gathered."""
        self._stream.write(self._buffer)
        self._buffer.clear()
