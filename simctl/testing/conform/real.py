"""Recordings of real Slurm 18.08, as acts.

A recording is a JSON array of {seq, daemon, node, pid_role, uid, euid, ev, fn, args, rc, dt}. `ev`
is ``call`` for a plugin call, placed where it was entered, and ``mark`` for everything else. Packs,
unpacks and queries are left out of it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from simctl.files import read_bytes
from simctl.kernel.recording import RecordingError
from simctl.limits import RECORDING_BYTES
from simctl.plugins.points import ALL
from simctl.plugins.points.declare import Returns
from simctl.testing.conform.acts import (
    CALL_ARGUMENTS,
    MARK,
    SHARED_MESSAGES,
    TASKS_OF,
    Act,
    Story,
    call_place,
    message_key,
    number,
    place_of,
    step_text,
    steps_told,
    type_now,
)
from simctl.testing.conform.answers import (
    ANSWERING,
    Answers,
    answers_strand,
    asked,
    looks_at,
    told_code,
)
from simctl.testing.conform.check_records import UNKNOWN, Owners, find_owners
from simctl.testing.conform.users import Users

_FIELDS: Final = ("seq", "daemon", "node", "pid_role", "uid", "euid", "ev", "fn", "args", "rc")
_TYPES_OF_FIELDS: Final = {
    **dict.fromkeys(("daemon", "node", "pid_role", "ev", "fn"), str),
    **dict.fromkeys(("seq", "uid", "euid"), int),
    "args": dict,
}
_NAMES: Final = {"node_list": "nodelist", "uid_arg": "uid", "opnum": "op"}
"""Arguments that a recording calls otherwise."""

_FINAL: Final = re.compile(
    r"(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|PREEMPTED|DEADLINE|OUT_OF_MEMORY|BOOT_FAIL)"
)
_ROLE: Final = re.compile(r"(?P<kind>stepd|task)(?P<rank>\d*)\[(?P<step>[^\]]+)\]")
_NODE_FLAGS: Final = ((0x200, "DRAIN"), (0x400, "COMPLETING"), (0x800, "NO_RESPOND"))
_NODE_BASES: Final = ("UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "ALLOCATED", "FUTURE")
_TOKEN: Final = re.compile(r"--token (\S+)|/job\.(\d+)/")


def read_real(path: Path) -> list[dict[str, Any]]:
    """Return the events of a recording, gzipped or not.

    Raises:
        RecordingError: It is none.
    """
    try:
        events = json.loads(read_bytes(path, RECORDING_BYTES, packed=True))
    except RecursionError as error:
        raise RecordingError(f"{path}: its values are nested too deeply") from error
    except (OSError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise RecordingError(f"{path}: cannot read it as a recording: {why}") from error
    if not isinstance(events, list) or not events:
        raise RecordingError(
            f"{path}: not a recording: one is a JSON array of events, "
            f"each with {', '.join(_FIELDS)}"
        )
    check_events(events, str(path))
    return events


def check_events(events: list[Any], where: str) -> None:
    """Check the form of every event.

    Raises:
        RecordingError: One is none of a recording.
    """
    for place, event in enumerate(events):
        problem = _problem(event)
        if problem:
            raise RecordingError(f"{where}: event {place + 1} is none of a recording: {problem}")


def _problem(event: Any) -> str:
    """Return what is wrong with the form of an event; nothing if it is as it should be."""
    if not isinstance(event, dict):
        return "it is no object"
    lacks = [name for name in _FIELDS if name not in event]
    if lacks:
        return f"it lacks {', '.join(lacks)}"
    for name, kind in _TYPES_OF_FIELDS.items():
        if type(event[name]) is not kind:
            return f"{name} is {event[name]!r}, not of type {kind.__name__}"
    job = event["args"].get("job")
    return "" if job is None or type(job) is int else f"args.job is {job!r}, not a number"


def real_story(events: list[dict[str, Any]]) -> Story:
    """Return what a recording tells.

    Raises:
        RecordingError: It does not have the form of a recording.
    """
    reader = _Reader(events)
    try:
        return reader.story()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(
            f"event {reader.at + 1} of the recording ({events[reader.at].get('fn')}) cannot be "
            f"understood: {type(error).__name__}: {error}"
        ) from error


@attrs.define
class _Reader:
    events: list[dict[str, Any]]
    users: Users = attrs.field(init=False)
    at: int = 0
    answers: Answers = attrs.field(factory=Answers)
    states: dict[int, str] = attrs.field(factory=dict)
    """The states of jobs as slurmctld has them."""

    instances: dict[str, int] = attrs.field(factory=dict)
    """How often a process of a role has been seen to start."""

    def __attrs_post_init__(self) -> None:
        slurm_user = next(
            (event["uid"] for event in self.events if event["daemon"] == "slurmctld"), 64030
        )
        uids = [uid for event in self.events for uid in (event["uid"], event["euid"])]
        self.users = Users.of((uid for uid in uids if isinstance(uid, int)), slurm_user)

    def story(self) -> Story:
        owners = find_owners(self.events)
        acts: list[Act] = []
        starts: list[str] = []
        for place, event in enumerate(self.events):
            self.at = place
            if event["fn"] == "proc_start" and event["daemon"] in ("slurmctld", "slurmd"):
                starts.append(_daemon(event))
            acts += self._acts(event, place, owners)
        acts += self.answers.acts()
        over: dict[int, bool] = {}
        old: list[int] = []
        seen: set[int] = set()
        for place, event in enumerate(self.events):
            job = event["args"].get("job")
            if not isinstance(job, int):
                continue
            if event["fn"] == "job_state":
                over[job] = bool(_FINAL.fullmatch(str(event["args"]["to"])))
            if job not in seen and not owners.begins(place, event):
                old.append(job)
            seen.add(job)
        return Story(
            acts=tuple(acts),
            starts=Counter(starts),
            open_jobs=frozenset(job for job in seen if not over.get(job, False)),
            old_jobs=frozenset(old),
            cut=True,
        )

    def _acts(self, event: dict[str, Any], place: int, owners: Owners) -> Iterator[Act]:
        args = event["args"]
        if event["ev"] == "call":
            yield from self._call(event, place, owners)
        elif event["fn"] in ("send", "recv"):
            yield from self._message(event, place)
        elif event["fn"] == "job_state" and not str(args.get("in", "")).startswith("_load_job"):
            yield from self._state(event, place)
        elif event["fn"] == "node_state":
            yield self._node_state(event, place)
        else:
            yield from self._mark(event, place)

    def _who(self, event: dict[str, Any]) -> str:
        return self.users.text(event["uid"], event["euid"])

    def _call(self, event: dict[str, Any], place: int, owners: Owners) -> Iterator[Act]:
        name, args = event["fn"], event["args"]
        if event["daemon"] == "dw_wlm_cli":
            yield self._script(event, place)
            return
        role, step, rank = _role(event)
        job, about = owners.of(place, args)
        if about:
            step = about
        elif "step" in args and job is not None:
            step = step_text(job, args["step"])
        if job is None and step and step != UNKNOWN:
            job = int(step.split(".")[0])
        yield Act(
            strand=self._strand(
                event, call_place(name, job=job, step=step, node=event["node"], role=role), rank
            ),
            kind="call",
            name=name,
            key=_plugin_class(args) if name in ("init", "fini") else "",
            user=self._who(event),
            args={
                _NAMES.get(key, key): value
                for key, value in args.items()
                if _NAMES.get(key, key) in CALL_ARGUMENTS
            },
            result=_result(name, event["rc"]),
            place=place,
            when_s=_when_s(event),
            job=job,
            step=step,
            node=event["node"],
        )

    def _strand(self, event: dict[str, Any], strand: str, rank: str) -> str:
        """Return the strand with the number of the process, if there was one of its role before."""
        if rank:
            _, step, _ = _role(event)
            strand = f"task{rank}[{step}]@{event['node']}"
        role = f"{event['pid_role']}@{event['node']}"
        if not strand.startswith(("stepd[", "task")):
            return strand
        stepd = f"stepd[{_role(event)[1]}]@{event['node']}"
        count = self.instances.get(stepd, 0) if rank else self.instances.get(role, 0)
        return f"{strand} run {count}" if count > 1 else strand

    def _script(self, event: dict[str, Any], place: int) -> Act:
        argv = str(event["args"].get("argv", ""))
        token = token_of(argv)
        job = int(token) if token.isdecimal() else None
        return Act(
            strand=f"appliance job {token}" if token else "appliance",
            kind="script",
            name=event["fn"],
            key="hurry" if "--hurry" in argv else "",
            user=self._who(event),
            result=_status(event["rc"]),
            place=place,
            when_s=_when_s(event),
            job=job,
        )

    def _message(self, event: dict[str, Any], place: int) -> Iterator[Act]:
        args = event["args"]
        name = str(args.get("msg", ""))
        role, step, _ = _role(event)
        job = args.get("job")
        if "step" in args and job is not None:
            step = step_text(job, args["step"])
        if job is None and step:
            job = int(step.split(".")[0])
        shared = SHARED_MESSAGES.get(name)
        sent = event["fn"] == "send"
        strand = MARK
        key = message_key(name, args)
        if sent and shared is not None:
            strand = self._strand(
                event, place_of(name, job=job, step=step, node=event["node"], sender=role), ""
            )
        act = Act(
            strand=strand,
            kind="message",
            name=name if sent else f"{name} received",
            key=key,
            user=self._who(event),
            args={each: self._told(job, each, args) for each in shared or () if each in args},
            place=place,
            when_s=_when_s(event),
            job=job,
            step=step,
            node=str(args.get("node_name") or event["node"]),
        )
        yield act
        if role in ANSWERING:
            self._note_answers(event, attrs.evolve(act, name=name))

    def _told(self, job: Any, name: str, args: dict[str, Any]) -> Any:
        """Return an argument of a message; of a state that the job is COMPLETING also how it ended.

        Recordings have the first flag of a state alone.
        """
        if name == "jobs":
            return steps_told(args[name])
        value, state = number(args[name]), self.states.get(job, "")
        ended = name == "job_state" and str(value) in state and not state.startswith("PENDING")
        return state if ended else value

    def _note_answers(self, event: dict[str, Any], act: Act) -> None:
        """Note a request that a daemon or srun gets, or an answer that it gives."""
        who = _daemon(event) if event["daemon"] == "slurmd" else str(event["daemon"])
        args = event["args"]
        if event["fn"] == "send" and act.name.startswith("RESPONSE_"):
            self.answers.sent(who, act.name, told_code(act.name, args))
        elif event["fn"] == "recv" and looks_at(who, act.name):
            strand = answers_strand(who, act.name, job=act.job, step=act.step, node=act.node)
            self.answers.received(
                attrs.evolve(act, strand=strand, key="", args=asked(act, args)), who
            )

    def _state(self, event: dict[str, Any], place: int) -> Iterator[Act]:
        args = event["args"]
        # Accounting's mark that a record is to be written anew says nothing about the job.
        before, after = (str(args[key]).replace("|UPDATE_DB", "") for key in ("from", "to"))
        self.states[args["job"]] = after
        if before != after:
            yield Act(
                strand=f"slurmctld job {args['job']}",
                kind="state",
                name="job_state",
                key=f"{before} > {after}",
                place=place,
                when_s=_when_s(event),
                job=args["job"],
            )

    def _node_state(self, event: dict[str, Any], place: int) -> Act:
        args = event["args"]
        return Act(
            strand=f"node {args['node']}",
            kind="state",
            name="node_state",
            key=f"{node_text(str(args['from']))} > {node_text(str(args['to']))}",
            place=place,
            when_s=_when_s(event),
            node=str(args["node"]),
        )

    def _mark(self, event: dict[str, Any], place: int) -> Iterator[Act]:
        name, args, node = event["fn"], event["args"], event["node"]
        _, step, rank = _role(event)
        job = int(step.split(".")[0]) if step else args.get("job")
        strand, key, result = MARK, "", None
        kind: Any = "process"
        if name == "proc_start":
            role = f"{event['pid_role']}@{node}"
            self.instances[role] = self.instances.get(role, 0) + 1
            if event["daemon"] in ("slurmctld", "slurmd"):
                self.answers.restarted(_daemon(event))
            return
        if name == "forked_task":
            strand, key = self._strand(event, f"stepd[{step}]@{node}", ""), f"task={args['gtid']}"
            name = "fork"
        elif name == "become_user":
            strand = self._strand(event, "task", rank)
        elif name == "exec_task":
            strand, name = self._strand(event, "task", rank), "exec"
        elif name == "run_script_done":
            kind, name = "script", str(args["name"])
            strand, result = f"slurmd@{node} job {args['job']}", _status(args["status"])
        elif name == "run_script":
            kind, name = "script", f"{args['name']} begins"
        elif name == "task_reaped":
            strand, name = f"{TASKS_OF}{step}@{node}", "task ended"
            key = f"status={number(args.get('status'))}"
        else:
            return
        yield Act(
            strand=strand,
            kind=kind,
            name=name,
            key=key,
            user=self._who(event) if kind == "process" and name != "task ended" else "",
            result=result,
            place=place,
            when_s=_when_s(event),
            job=job,
            step=step,
            node=node,
        )


def token_of(argv: str) -> str:
    """Return what tells the appliance which buffer is meant, a job's id as a rule."""
    found = _TOKEN.search(argv)
    return next((each for each in found.groups() if each), "") if found else ""


def node_text(state: str) -> str:
    """Return a node's state from the number in it: ``ALLOCATED+(0x403)``."""
    found = re.search(r"\(0x([0-9a-f]+)\)", state)
    if found is None:
        return state
    value = int(found.group(1), 16)
    base = value & 0xF
    names = [_NODE_BASES[base] if base < len(_NODE_BASES) else str(base)]
    return "|".join(names + [name for flag, name in _NODE_FLAGS if value & flag])


def _when_s(event: dict[str, Any]) -> float:
    return float(event.get("dt") or 0)


def _daemon(event: dict[str, Any]) -> str:
    return f"{event['daemon']}@{event['node']}" if event["node"] else str(event["daemon"])


def _role(event: dict[str, Any]) -> tuple[str, str, str]:
    """Return the kind of a process, its step, and its rank if it is a task."""
    found = _ROLE.match(str(event["pid_role"]))
    if found is None:
        return str(event["pid_role"]), "", ""
    return found["kind"], found["step"], found["rank"]


def _plugin_class(args: dict[str, Any]) -> str:
    """Return a plugin's type from its file or type: ``switch_trace.so``, ``switch/trace``."""
    name = str(args.get("plugin", "")).removesuffix(".so")
    for plugin_class in ("checkpoint", "switch", "burst_buffer"):
        if name.startswith(plugin_class):
            rest = name[len(plugin_class) + 1 :]
            return type_now(f"{plugin_class}/{rest}")
    return name


def _result(name: str, rc: Any) -> Any:
    """Return what a call gave back; an object is 0 wherever it lies."""
    point, result = ALL.get(name), number(rc)
    gives_object = point is not None and point.returns is Returns.OBJECT
    return 0 if gives_object and isinstance(result, int) and result > 0 else result


def _status(rc: Any) -> Any:
    """Return the exit status in a wait status, or the number it is already."""
    if isinstance(rc, int) and rc > _BYTE:
        return rc >> 8
    return rc


_BYTE: Final = 255
