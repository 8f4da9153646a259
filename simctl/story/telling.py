"""`run --explain`: who sends what to whom, who forks, which plugin calls come of it, and why.

Each line of the story is about one event, or about the same event on several nodes. What a reader
of a job's way can do without is left out: calls that only keep records, answers, what a step does
as a step before it did. Unless all of it is asked for.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs
from msgspec import UNSET, UnsetType

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_us
from simctl.kernel.procs import wait_status_text
from simctl.plugins.points import ALL, OPTIONAL
from simctl.plugins.points.declare import Returns
from simctl.scenario.why_failed import failed_call
from simctl.story.happenings import COLUMN, Happening, stamped
from simctl.story.words import rpc, thought
from simctl.wire.hostlist import compress, sort_unique

WIDTH: Final = 80
_TOGETHER_US: Final = 1_000_000
"""How far apart in time the same may happen on several nodes and be told in one line."""

_BOOKKEEPING: Final = re.compile(
    r"init|fini|.*_(alloc|free|copy|pack|unpack|build|sprintf)_(jobinfo|node_info|job)"
    r"|switch_p_(no_frag|get_errno|strerror|get_jobinfo)"
    r"|bb_p_(state_pack|get_system_size|job_set_tres_cnt|job_get_est_start|xlate_bb_2_tres_str)"
)
"""Plugin calls that only keep records, all but the one that builds a credential."""

_BUILDS: Final = "switch_p_build_jobinfo"

_CHATTER: Final = re.compile(
    r"RESPONSE_(?!JOB_STEP_CREATE|CHECKPOINT).*|TASK_OUTPUT|REQUEST_PING|REQUEST_.*_INFO|DBD_.*"
    r"|REQUEST_JOB_READY"
)
"""Messages that only answer or ask."""

_PARTS: Final = {"manager": "P1", "session": "P2", "task": "P3"}
_PART_NAMES: Final = {
    "manager": "P1, the job manager",
    "session": "P2, the session manager",
}
_MODERN_NAMES: Final = {"manager": "slurmstepd"}
_AT_SHUTDOWN: Final = ("switch_p_libstate_save", "switch_p_node_fini", "fini")
_GENERIC: Final = {
    "init": "set up, now that this process has loaded the plugin",
    "fini": "clean up, now that this process is done with the plugin",
}
_ROUTINE_NODES: Final = ("None", "UNKNOWN", "IDLE", "ALLOCATED", "MIXED", "COMPLETING")
_MOST_CAUSES: Final = 64


@attrs.define
class _Line:
    """A line of the story, and all whom it is about."""

    time_us: int
    text: str
    gloss: str
    nodes: list[str] = attrs.field(factory=list)
    tasks: list[int] = attrs.field(factory=list)
    seen: list[tuple[object, ...]] = attrs.field(factory=list)


@attrs.frozen
class _Said:
    """What is to be said of an event, and what explains it the first time."""

    text: str
    name: str = ""
    gloss: str = ""
    always: bool = False
    """Whether it is told again when it comes again: it failed."""


def tell(
    events: Sequence[Event],
    users: Mapping[str, int],
    model: str,
    *,
    other: Iterable[Happening] = (),
    everything: bool = False,
) -> list[str]:
    """Return the story of a run, with *other* happenings at their places.

    Args:
        events: All of a run, in order.
        users: The uid of each name.
        model: Of the lifecycle: its words for the processes of a step.
        other: What is told besides: commands, faults.
        everything: Tell each event by itself, and leave none out that is about plugins.
    """
    teller = _Teller(events, users, model, everything=everything)
    return list(teller.lines(sorted(other, key=lambda each: each.seq)))


def sentences(events: Sequence[Event], users: Mapping[str, int], model: str) -> dict[int, str]:
    """Return a sentence about each plugin call, by the number of its event.

    It says who calls in which process, where, as whom, what came of it, and why now.
    """
    teller = _Teller(events, users, model, everything=True)
    calls = (event for event in events if event.kind == "plugin")
    found = ((event, teller.alone(event)) for event in calls)
    return {event.seq: text for event, text in found if text}


class _Teller:
    """Makes lines of events, and remembers what it has explained already."""

    def __init__(
        self, events: Sequence[Event], users: Mapping[str, int], model: str, *, everything: bool
    ) -> None:
        self._events = events
        self._by_seq = {event.seq: event for event in events}
        self._names = {uid: name for name, uid in reversed([*users.items()])}
        self._model = model
        self._all = everything
        self._parts: dict[int, Event] = {}
        """The first event of each process, by pid: it tells its part."""
        self._programs: dict[object, str] = {}
        """What the tasks of each step execute."""
        self._steps: dict[object, str] = {}
        """The step of each srun, by pid."""
        for event in events:
            if event.pid is not UNSET:
                self._parts.setdefault(event.pid, event)
            if event.step is UNSET:
                continue
            if event.name == "exec" and event.args is not UNSET and not _is_script(event):
                self._programs.setdefault(event.step, str(event.args.get("path", "")))
            if event.role == "srun":
                self._steps[event.pid] = event.step
        self._entered = {event.enter for event in events if event.phase == "exit"}
        self._explained: set[str] = set()
        self._open: dict[str, _Line] = {}
        """Lines that may still be joined, by their text."""
        self._told: dict[str, tuple[int, str]] = {}
        """The job and step of which a text was told first."""
        self._polls: set[str] = set()
        """What was told of calls that are made again until the answer is another."""
        self._as_before = False
        self._last_us = -1

    def lines(self, other: Sequence[Happening]) -> Iterator[str]:
        """Yield the lines of the story, those of *other* in their places."""
        apart = list(reversed(other))
        for event in self._events:
            while apart and apart[-1].seq <= event.seq:
                yield from self._flush()
                happening = apart.pop()
                yield from self._stamped(happening.time_us, happening.lines)
            said = self._say(event)
            if said is not None:
                yield from self._add(event, said)
        yield from self._flush()
        for happening in reversed(apart):
            yield from self._stamped(happening.time_us, happening.lines)
        if self._as_before:
            yield "(What a job, step or poll does as one before is left out: --explain=all has it.)"
        yield ""

    def alone(self, event: Event) -> str:
        """Return what is to be said of an event by itself; nothing of some."""
        said = self._say(event)
        if said is None:
            return ""
        node = event.node if isinstance(event.node, str) else ""
        words = {"{nodes}": node, "{peers}": _host(event.peer), "{s}": "s"}
        words["{tasks}"] = _tasks([] if event.task is UNSET else [event.task])
        text = said.text
        for place, word in words.items():
            text = text.replace(place, word)
        return f"{text}."

    def _add(self, event: Event, said: _Said) -> Iterator[str]:
        """Join what happens on several nodes; yield the lines to which nothing joins any more."""
        about = str(event.node) if "{nodes}" in said.text else _host(event.peer)
        task = self._forked_task(event) if event.name == "fork" else event.task
        one = (about, task)
        line = self._open.get(said.text)
        if line is None or one in line.seen or self._all:
            if said.text in self._polls:
                return
            if line is not None or self._late(event):
                yield from self._flush()
            if _is_poll(event) and not self._all:
                self._polls.add(said.text)
            if self._known(event, said):
                return
            gloss = "" if said.name in self._explained else said.gloss
            self._explained.add(said.name)
            line = self._open[said.text] = _Line(event.time_us, said.text, gloss)
        line.seen.append(one)
        if about and about not in line.nodes:
            line.nodes.append(about)
        if task is not UNSET:
            line.tasks.append(task)

    def _known(self, event: Event, said: _Said) -> bool:
        """Return whether the same was told of another job or step; remember who told it."""
        if event.name == "fork" and event.args is not UNSET:
            event = self._parts.get(event.args.get("child", -1), event)
        if said.always or event.job is UNSET or self._all:
            return False
        step = event.step if event.step is not UNSET else ""
        text = said.text
        place = "BATCH" if _is_script(event) else "STEP"
        for word, instead in ((self._programs.get(step, ""), "PROGRAM"), (step, place)):
            text = text.replace(word, instead) if word else text
        text = re.sub(rf"job {event.job}\b", "JOB", text)
        if event.role in _PARTS and event.uid is not UNSET:
            text = text.replace(self._names.get(event.uid, "nobody"), "USER")
        first = self._told.setdefault(text, (event.job, step))
        if first == (event.job, step):
            return False
        self._as_before = True
        return True

    def _late(self, event: Event) -> bool:
        return any(event.time_us - line.time_us > _TOGETHER_US for line in self._open.values())

    def _flush(self) -> Iterator[str]:
        for line in self._open.values():
            nodes = compress(sort_unique(line.nodes))
            text = line.text.replace("{nodes}", nodes).replace("{peers}", nodes)
            text = text.replace("{tasks}", _tasks(line.tasks))
            text = text.replace("{s}", "" if len(line.tasks) > 1 else "s")
            text += f" ({line.gloss})" if line.gloss else ""
            width = WIDTH - COLUMN
            folded = textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False)
            yield from self._stamped(line.time_us, folded)
        self._open.clear()

    def _stamped(self, time_us: int, lines: Sequence[str]) -> Iterator[str]:
        """Yield lines with their time, unless it is that of the line before."""
        first, *rest = stamped(time_us, lines)
        if time_us == self._last_us and not self._all:
            first = f"{'':{COLUMN}}{lines[0]}"
        self._last_us = time_us
        yield from (first, *rest)

    # One event.

    def _say(self, event: Event) -> _Said | None:
        """Return what to say of an event, with places for nodes and tasks; None for nothing."""
        if event.kind == "plugin":
            return self._call(event)
        if event.kind == "message":
            return self._message(event)
        text = ""
        if event.kind == "process":
            text = self._process(event)
        elif event.kind == "state":
            text = _state(event)
        elif event.kind == "script" and event.phase != "exit":
            text = f"{self._who(event)} runs the script {event.name}{_subject(event)}"
        return _Said(text) if text else None

    def _who(self, event: Event) -> str:
        """Return the words for the process that acts."""
        role = str(event.role)
        if role == "srun":
            return self._srun_of(self._steps.get(event.pid, ""))
        if role == "script":
            role = str(event.daemon)
        if role == "task":
            task = "{tasks}" if self._model == "modern" else "{tasks} (P3)"
            return f"{'the script' if _is_script(event) else task} on {{nodes}}"
        if role == "manager" and self._model == "modern":
            return "slurmstepd on {nodes}"
        if not isinstance(event.node, str) or event.node == "login":
            return role
        return f"{_PARTS.get(role, role)} on {{nodes}}"

    def _srun_of(self, step: object) -> str:
        """Return which srun it is: by the program of its step."""
        program = self._programs.get(step)
        return f"srun {program}" if program else "srun"

    def _call(self, event: Event) -> _Said | None:
        if event.phase == "enter" and event.seq in self._entered:
            return None
        failed = failed_call(event)
        if not self._all and not failed and _only_keeps(event):
            return None
        of = f" of {event.plugin}" if event.name in _GENERIC else ""
        user = self._names.get(event.euid, event.euid) if event.euid is not UNSET else "?"
        text = f"{self._who(event)}, as {user}, call{{s}} {event.name}{of}{_subject(event)}"
        text += _handed_out(event) + _outcome(event, failed)
        if event.name in _AT_SHUTDOWN and event.role in ("slurmctld", "slurmd"):
            text += f", as {event.role} shuts down"
        elif self._all:
            text += self._why(event)
        return _Said(text, event.name, _gloss(event.name), failed)

    def _message(self, event: Event) -> _Said | None:
        if event.phase != "send" or event.peer is UNSET:
            return None
        role, _, host = str(event.peer).partition("@")
        if not self._all and (_CHATTER.fullmatch(event.name) or _hands_on(event, role, host)):
            return None
        who = self._who(event)
        if role.startswith("stepd"):
            role = "P1" if self._model == "guide" else "slurmstepd"
        if role == "srun":
            role = self._srun_of(event.step)
        elif host not in ("", "login"):
            role += f" on {host}" if "{nodes}" in who else " on {peers}"
        answers = event.args.get("answers", "") if event.args is not UNSET else ""
        name = event.name + (f" to {answers}" if answers else "")
        return _Said(f"{who} sends {role} {name}{_subject(event)}", event.name, rpc(event.name))

    def _process(self, event: Event) -> str:
        args = event.args if event.args is not UNSET else {}
        who = self._who(event)
        if event.name == "fork":
            child = self._parts.get(args.get("child", -1))
            if child is None or child.role == "script":
                return ""
            return f"{who} forks {self._part(child)}"
        if event.name == "become_user":
            uid = args.get("uid", -1)
            return f"{who} becomes {self._names.get(uid, uid)}{_subject(event)}"
        if event.name == "exec" and event.role == "task" and (self._all or not _is_script(event)):
            return f"{who} execute{{s}} {args.get('path', '')}{_subject(event)}"
        if event.name == "signal":
            return f"{who} get{{s}} signal {args.get('signal', '')}{_subject(event)}"
        if event.name == "exit" and (event.role == "task" or (self._all and event.role in _PARTS)):
            ending = wait_status_text(event.rc) if isinstance(event.rc, int) else "?"
            return f"{who} end{{s}} with {ending}{_subject(event)}"
        return ""

    def _part(self, child: Event) -> str:
        """Return the words for a process that is forked."""
        role = str(child.role)
        if role == "srun":
            return self._srun_of(self._steps.get(child.pid, ""))
        if role == "task" and _is_script(child):
            return f"{'P3, ' * (self._model == 'guide')}the script of job {child.job}"
        if role == "task":
            return "P3, {tasks}" if self._model == "guide" else "{tasks}"
        names = _PART_NAMES if self._model == "guide" else _MODERN_NAMES
        return f"{names.get(role, role)},{_subject(child)}"

    def _forked_task(self, event: Event) -> int | UnsetType:
        """Return which task of a step a process forks, if it is one."""
        child = self._parts.get(event.args.get("child", -1)) if event.args is not UNSET else None
        return child.task if child is not None and not _is_script(child) else UNSET

    def _why(self, event: Event) -> str:
        """Return what outside the call's own process led to it, if it is of the same moment."""
        cause = event.cause
        for _ in range(_MOST_CAUSES):
            before = self._by_seq.get(cause) if cause is not UNSET else None
            if before is None or before.time_us < begin_us(event):
                break
            if before.kind == "message":
                verb = "on receiving" if before.phase == "receive" else "after sending"
                return f", {verb} {before.name}"
            if before.kind == "process" and before.pid != event.pid:
                return f", after {before.name} in pid {before.pid}"
            if before.kind == "script" and before.job is not UNSET:
                return f", after {before.name} of job {before.job}"
            if before.kind == "state" and before.args is not UNSET:
                return f", now that {before.name} is {before.args['to']}"
            cause = before.cause
        if event.name == "slurm_ckpt_free_job" and event.step is UNSET:
            return ", as the job's record is purged"
        return ""


def _only_keeps(event: Event) -> bool:
    """Return whether a call only keeps records, or is one of the plugin that does nothing."""
    if event.name == _BUILDS:
        return False
    keeps_nothing = event.plugin == "checkpoint/none" or (
        event.plugin == "switch/none" and event.name.startswith("switch_p_libstate")
    )
    return keeps_nothing or bool(_BOOKKEEPING.fullmatch(event.name))


def _is_poll(event: Event) -> bool:
    point = ALL.get(event.name)
    return point is not None and point.returns is Returns.THREE


def _is_script(event: Event) -> bool:
    return event.step is not UNSET and event.step.endswith(".batch")


def _hands_on(event: Event, role: str, host: str) -> bool:
    """Return whether a message goes on to another daemon for which it is meant."""
    if event.name == "REQUEST_STEP_COMPLETE":
        return role != "slurmctld"
    return event.role == "slurmd" and role.startswith("stepd") and host == event.node


def _handed_out(event: Event) -> str:
    """Return what a call put into an environment and into files, in a trace with values."""
    values = event.args.get("values", {}) if event.args is not UNSET else {}
    env = [f"{name}={value}" for name, value in values.get("env", {}).items()]
    files = [f"write{{s}} {path}" for path in values.get("files", ())]
    said = [*([f"set{{s}} {' '.join(env)}"] if env else ()), *files]
    return f" and {', '.join(said)}" if said else ""


def _outcome(event: Event, failed: bool) -> str:
    if event.phase == "enter":
        return ", and it does not come back"
    if failed:
        return f", and it FAILS ({event.errno if event.errno is not UNSET else event.rc})"
    point = (ALL | OPTIONAL).get(event.name)
    if point is not None and point.returns is Returns.THREE and isinstance(event.rc, int):
        return f", and the answer is {event.rc}"
    return ""


def _state(event: Event) -> str:
    args = event.args if event.args is not UNSET else {}
    was, now, reason = args.get("from"), str(args.get("to")), str(args.get("reason", "None"))
    because = f" ({reason})" if reason != "None" else ""
    if event.name in ("job_state", "bb_state"):
        what = "job" if event.name == "job_state" else "the burst buffer of job"
        return f"{what} {event.job} is {now}{f', was {was}' if was else ''}{because}"
    if event.name == "node_state":
        plain = all(each in _ROUTINE_NODES for each in f"{was}|{now}".split("|"))
        return "" if plain else f"node {args.get('node')} is {now}, was {was}{because}"
    return ""


def _subject(event: Event) -> str:
    if event.step is not UNSET:
        return f" for step {event.step}"
    return f" for job {event.job}" if event.job is not UNSET else ""


def _gloss(name: str) -> str:
    point = (ALL | OPTIONAL).get(name)
    if point is None:
        return _GENERIC.get(name, "")
    return thought(point.doc.splitlines()[0])


def _host(peer: object) -> str:
    host = str(peer).partition("@")[2] if isinstance(peer, str) else ""
    return "" if host == "login" else host


def _tasks(tasks: Sequence[int]) -> str:
    if len(tasks) < 2:  # noqa: PLR2004 - one of them has a name of its own
        return f"task {tasks[0]}" if tasks else "task"
    return f"tasks {compress(f't{each}' for each in tasks).removeprefix('t').strip('[]')}"
