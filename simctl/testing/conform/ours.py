"""Traces of simctl, as acts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.recording import RecordingError
from simctl.plugins.points import ALL
from simctl.plugins.points.declare import Returns
from simctl.testing.conform.acts import (
    CALL_ARGUMENTS,
    MARK,
    REGISTRATION,
    SHARED_MESSAGES,
    TASKS_OF,
    Act,
    Story,
    call_place,
    message_key,
    number,
    place_of,
    steps_told,
    type_now,
)
from simctl.testing.conform.answers import (
    ANSWERING,
    Answers,
    answers_strand,
    asked,
    looks_at,
)
from simctl.testing.conform.real import token_of
from simctl.testing.conform.users import Users
from simctl.wire.errno import errno_number
from simctl.wire.ids import SECOND

_ROLES: Final = {"manager": "stepd", "slurmd": "slurmd", "srun": "srun", "slurmctld": "slurmctld"}
_ON_A_HOST: Final = ({"slurmd", "stepd"}, {"manager", "slurmd"})
_SCRIPTS: Final = ("prolog", "epilog")


def our_story(events: Sequence[Event], jobs: dict[int, int]) -> Story:
    """Return what a trace tells, with the numbers of its jobs as the recording has them.

    Raises:
        RecordingError: An event does not say what one of its name says.
    """
    reader = _Reader(events, jobs)
    try:
        return reader.story()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(
            f"event {reader.at + 1} of the trace ({events[reader.at].name}) cannot be understood: "
            f"{type(error).__name__}: {error}"
        ) from error


def jobs_of(events: Sequence[Event]) -> list[int]:
    """Return the ids of the jobs in a trace: not of those that a client only asks about."""
    return [
        event.job
        for event in events
        if event.kind in ("plugin", "state") and isinstance(event.job, int) and event.job
    ]


@attrs.define
class _Reader:
    events: Sequence[Event]
    jobs: dict[int, int]
    users: Users = attrs.field(init=False)
    exits: dict[int, Event] = attrs.field(init=False)
    """The line that ends what a line began, by the `seq` of that."""

    connected: set[int] = attrs.field(init=False)
    """The sendings of messages that had a receiver."""

    tasks: dict[int, int] = attrs.field(factory=dict)
    """Ranks of the tasks that step daemons have forked, by pid."""

    at: int = 0
    runs: dict[str, dict[int, int]] = attrs.field(factory=dict)
    """By strand, the number of each step daemon's process."""

    answers: Answers = attrs.field(factory=Answers)
    parents: dict[int, int] = attrs.field(factory=dict)
    executed: set[int] = attrs.field(factory=set)

    def __attrs_post_init__(self) -> None:
        slurm_user = next(
            (_int(event.uid) for event in self.events if event.daemon == "slurmctld"), 64030
        )
        uids = [uid for event in self.events for uid in (event.uid, event.euid)]
        self.users = Users.of((uid for uid in uids if isinstance(uid, int)), slurm_user)
        self.exits = {event.enter: event for event in self.events if isinstance(event.enter, int)}
        ranks = {
            event.pid: event.task
            for event in self.events
            if isinstance(event.pid, int) and isinstance(event.task, int) and event.role == "task"
        }
        self.connected = {
            event.cause
            for event in self.events
            if isinstance(event.cause, int)
            and (event.phase == "receive" or event.name == "undeliverable")
        }
        for event in self.events:
            if event.name == "fork" and event.role == "manager":
                child = _args(event).get("child")
                if child in ranks:
                    self.tasks[child] = ranks[child]
                    self.parents[child] = _int(event.pid)

    def story(self) -> Story:
        acts: list[Act] = []
        for place, event in enumerate(self.events):
            self.at = place
            acts += self._acts(event, place)
        acts += self.answers.acts()
        starts = {
            (event.daemon, event.node, event.pid)
            for event in self.events
            if event.name == "init" and event.daemon in ("slurmctld", "slurmd")
        }
        daemons = sorted(f"{name}@{node}" if node else str(name) for name, node, _ in starts)
        return Story(acts=tuple(acts), starts=Counter(daemons))

    def _acts(self, event: Event, place: int) -> Iterator[Act]:
        if isinstance(event.enter, int):
            return
        if event.kind == "plugin":
            yield self._call(event, place)
        elif event.kind == "message":
            # Between a slurmd and its step daemons there is a socket, which recordings do not show.
            peer, _, host = str(event.peer).partition("@")
            pair = {str(event.role), peer.split(" ")[0]}
            if host != event.node or pair not in _ON_A_HOST:
                act = self._message(event, place)
                # A recording has what was sent on a connection that opened.
                if event.phase != "send" or event.seq in self.connected:
                    yield act
                if event.role in ANSWERING:
                    self._note_answers(event, attrs.evolve(act, name=event.name))
        elif event.kind == "state":
            yield from self._state(event, place)
        elif event.kind == "script":
            yield from self._script(event, place)
        elif event.kind == "process":
            yield from self._process(event, place)

    # What is known of an event.

    def _who(self, event: Event) -> str:
        return self.users.text(_int(event.uid), _int(event.euid))

    def _job(self, event: Event) -> int | None:
        return self.jobs.get(event.job, event.job) if isinstance(event.job, int) else None

    def _step(self, event: Event) -> str:
        return self._step_named(event.step) if isinstance(event.step, str) else ""

    def _step_named(self, step: str) -> str:
        job, _, rest = step.partition(".")
        return f"{self.jobs.get(int(job), job)}.{rest}"

    def _run(self, stepd: str, pid: int) -> str:
        """Return a number for a step daemon that is not the first of its name."""
        known = self.runs.setdefault(stepd, {})
        count = known.setdefault(pid, len(known) + 1)
        return f" run {count}" if count > 1 else ""

    def _stepd(self, event: Event) -> str:
        return f"stepd[{self._step(event)}]@{event.node}"

    def _task(self, event: Event) -> str:
        pid = _int(event.pid)
        run = self._run(self._stepd(event), self.parents[pid])
        return f"task{self.tasks[pid]}[{self._step(event)}]@{event.node}{run}"

    # Its acts.

    def _call(self, event: Event, place: int) -> Act:
        role = _ROLES.get(str(event.role), str(event.role))
        end = self.exits.get(event.seq, event)
        args = {**_args(event), **_args(end)}
        if event.role == "task":
            strand = self._task(event) if _int(event.pid) in self.tasks else MARK
        else:
            strand = call_place(
                event.name,
                job=self._job(event),
                step=self._step(event),
                node=str(event.node or ""),
                role=role,
            )
            if role == "stepd":
                strand += self._run(self._stepd(event), _int(event.pid))
        return Act(
            strand=strand,
            kind="call",
            name=event.name,
            key=_plugin(event) if event.name in ("init", "fini") else "",
            user=self._who(event),
            args={key: _plain(value) for key, value in args.items() if key in CALL_ARGUMENTS},
            result=_result(event.name, end),
            place=place,
            when_s=_when_s(event),
            job=self._job(event),
            step=self._step(event),
            node=_host(event),
        )

    def _message(self, event: Event, place: int) -> Act:
        name, args = event.name, _args(event)
        if name == REGISTRATION:
            # Only a node that has steps tells of them.
            args = {"jobs": (), **args}
        shared = SHARED_MESSAGES.get(name)
        sent = event.phase == "send"
        role = _ROLES.get(str(event.role), str(event.role))
        node, step, job = _host(event), self._step(event), self._job(event)
        strand = MARK
        if sent and shared is not None:
            strand = place_of(name, job=job, step=step, node=node, sender=role)
            if role == "stepd":
                strand += self._run(self._stepd(event), _int(event.pid))
        return Act(
            strand=strand,
            kind="message",
            name=name if sent else f"{name} received",
            key=message_key(name, args),
            user=self._who(event),
            args={each: self._told(each, args) for each in shared or () if each in args},
            place=place,
            when_s=_when_s(event),
            job=job,
            step=step,
            node=str(args.get("node_name") or node),
        )

    def _told(self, name: str, args: dict[str, Any]) -> Any:
        if name != "jobs":
            return number(args[name])
        return steps_told(map(self._step_named, args[name]))

    def _note_answers(self, event: Event, act: Act) -> None:
        """Note a request that a daemon or srun gets, or an answer that it gives."""
        node = f"@{event.node}" if event.role == "slurmd" else ""
        who, args = f"{event.role}{node}", _args(event)
        process = f"{who} {event.pid}"
        if event.phase == "send" and act.name.startswith("RESPONSE_"):
            code = number(args.get("return_code", args.get("error_code", 0)))
            to = str(args.get("answers", ""))
            self.answers.sent(process, act.name, code, peer=str(event.peer), to=to)
        elif event.phase == "receive" and looks_at(who, act.name):
            strand = answers_strand(who, act.name, job=act.job, step=act.step, node=act.node)
            request = attrs.evolve(act, strand=strand, key="", args=asked(act, args))
            self.answers.received(request, process, peer=str(event.peer))

    def _state(self, event: Event, place: int) -> Iterator[Act]:
        args = _args(event)
        if args.get("from") is None or event.name not in ("job_state", "node_state"):
            return
        says = {key: str(args[key]) for key in ("reason", "exit_code") if key in args}
        common: dict[str, Any] = {
            "kind": "state",
            "name": event.name,
            "says": says,
            "place": place,
            "when_s": _when_s(event),
        }
        if event.name == "node_state":
            before, after = _node_text(args["from"]), _node_text(args["to"])
            if before != after:
                node = str(args["node"])
                yield Act(strand=f"node {node}", key=f"{before} > {after}", node=node, **common)
            return
        job = self._job(event)
        key = f"{args['from']} > {args['to']}"
        yield Act(strand=f"slurmctld job {job}", key=key, job=job, **common)

    def _script(self, event: Event, place: int) -> Iterator[Act]:
        end = self.exits.get(event.seq, event)
        job = self._job(event)
        if event.name.startswith("dw_"):
            argv = [str(word) for word in _args(event).get("argv", ())]
            job = self._token(" ".join(argv))
            yield Act(
                strand="appliance" if job is None else f"appliance job {job}",
                kind="script",
                name=event.name,
                key="hurry" if "--hurry" in argv else "",
                user=self._who(event),
                result=_status(end.rc),
                place=place,
                when_s=_when_s(event),
                job=job,
            )
        elif event.name in _SCRIPTS:
            common: dict[str, Any] = {"kind": "script", "job": job, "node": str(event.node)}
            yield Act(
                strand=MARK,
                name=f"{event.name} begins",
                place=place,
                when_s=_when_s(event),
                **common,
            )
            yield Act(
                strand=f"slurmd@{event.node} job {job}",
                name=event.name,
                result=_status(end.rc),
                place=end.seq - 1,
                when_s=_when_s(end),
                **common,
            )

    def _token(self, argv: str) -> int | None:
        """Return the job that a call of the appliance is about, by its words."""
        token = token_of(argv)
        return self.jobs.get(int(token), int(token)) if token.isdecimal() else None

    def _process(self, event: Event, place: int) -> Iterator[Act]:
        pid = _int(event.pid)
        common: dict[str, Any] = {
            "kind": "process",
            "user": self._who(event),
            "place": place,
            "when_s": _when_s(event),
            "job": self._job(event),
            "step": self._step(event),
            "node": str(event.node or ""),
        }
        if event.name == "fork" and event.role == "manager":
            child = _args(event).get("child")
            if child in self.tasks:
                strand = self._stepd(event) + self._run(self._stepd(event), pid)
                yield Act(strand=strand, name="fork", key=f"task={self.tasks[child]}", **common)
        elif pid in self.tasks and event.name == "become_user":
            yield Act(strand=self._task(event), name="become_user", **common)
        elif pid in self.tasks and event.name == "exec" and pid not in self.executed:
            self.executed.add(pid)
            yield Act(strand=self._task(event), name="exec", **common)
        elif pid in self.tasks and event.name == "exit":
            strand = f"{TASKS_OF}{self._step(event)}@{event.node}"
            common["user"] = ""
            yield Act(strand=strand, name="task ended", key=f"status={event.rc}", **common)


def _args(event: Event) -> dict[str, Any]:
    return event.args if isinstance(event.args, dict) else {}


def _host(event: Event) -> str:
    """Return the node whose daemon it is; commands are on none, wherever they run."""
    return "" if event.role == "srun" or event.node in (None, UNSET) else str(event.node)


def _when_s(event: Event) -> float:
    return event.time_us / SECOND


def _int(value: Any) -> int:
    return value if isinstance(value, int) else -1


def _plugin(event: Event) -> str:
    told = event.plugin if isinstance(event.plugin, str) else _args(event).get("plugin", "")
    return type_now(str(told))


def _plain(value: Any) -> Any:
    return number(list(value) if isinstance(value, tuple) else value)


def _result(name: str, end: Event) -> Any:
    """Return what a call gave back, as C has it: an object is 0, a raised error its number.

    A function that returns a status returns the number of its error in C.
    """
    if end.phase == "enter":
        # It never came back: the task has become another program.
        return None
    point = ALL.get(name)
    if isinstance(end.errno, str) and point is not None and point.returns is Returns.STATUS:
        return errno_number(end.errno)
    return number(end.rc) if isinstance(end.rc, int) else 0


def _status(rc: Any) -> Any:
    """Return the exit status in a wait status, or the number it is already."""
    return rc >> 8 if isinstance(rc, int) and rc > _BYTE else rc


_BYTE: Final = 255


def _node_text(state: Any) -> str:
    """Return a node's state as real Slurm stores it: what is MIXED when shown is ALLOCATED."""
    return str(state).replace("MIXED", "ALLOCATED")
