"""Rules about processes: how daemons start and stop, who calls what as whom, one call at a time."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_seq, out_of_order
from simctl.orderings.controller_deaths import controllers_started_clean
from simctl.orderings.observed import (
    ASIDE,
    Observed,
    StepDaemon,
    arg,
    between,
    by,
    failed,
    pid_of,
)
from simctl.orderings.rules import KEPT, Finding, Kept, broken, rule
from simctl.orderings.steps.daemons import FINI, PREINIT
from simctl.orderings.steps.steps import ALLOC, BUILD, COMPLETE, UNPACK
from simctl.plugins.points import ALL, OPTIONAL

NODE_INIT: Final = "switch_p_node_init"
NODE_FINI: Final = "switch_p_node_fini"
CLEAR: Final = "switch_p_clear_node_state"
RESTORE: Final = "switch_p_libstate_restore"
SAVE: Final = "switch_p_libstate_save"
NODE_INFO: Final = "switch_p_alloc_node_info"
_REGISTRATION: Final = "MESSAGE_NODE_REGISTRATION_STATUS"
_SLURMD: Final = "a slurmd process"
_SLURMCTLD: Final = "a slurmctld process"
_OWN: Final = frozenset(("init", "fini"))
_LOADERS: Final = frozenset(("slurmctld", "slurmd", "manager", "srun"))
_BEGINNING: Final = 24
"""More functions than a process calls before all those that its beginning is about."""

_PACKS: Final = ("switch_p_pack_jobinfo", "slurm_ckpt_pack_job")


def _first(events: Sequence[Event], name: str, phase: str = "") -> Event | None:
    for event in events:
        if event.name == name and (not phase or event.phase == phase) and event.phase != "enter":
            return event
    return None


@rule(
    1,
    "node-start",
    says="slurmd initialises its switch and its node before it registers, and registers before a "
    "step daemon of its calls preinit; if that fails it does neither",
    key=_SLURMD,
    source="switch guide; held in 15 slurmds of recordings of real Slurm",
    functions=("init", NODE_INIT, PREINIT),
)
def node_start(run: Observed) -> Iterator[Finding]:
    """Look at the beginning of each slurmd."""
    first_preinit: dict[int, Event] = {}
    for call in run.calls(PREINIT):
        fork = run.forks.get(run.step_daemon(call))
        if fork is not None:
            first_preinit.setdefault(pid_of(fork), call)
    for pid in run.pids("slurmd"):
        events = run.by_pid[pid]
        ready = _first(events, NODE_INIT)
        registered = _first(events, _REGISTRATION, "send")
        preinit = first_preinit.get(pid)
        group = f"slurmd {pid} on {events[0].node}"
        chain = [each for each in (_first(events, "init"), ready, registered, preinit) if each]
        wrong = [one for one in chain[:2] if failed(one)]
        if wrong and len(chain) > chain.index(wrong[0]) + 1:
            yield broken(group, f"{wrong[0].name} failed, and it went on", wrong[0], chain[-1])
        elif registered is not None and ready is None:
            yield broken(group, f"it registered without {NODE_INIT}", registered)
        elif preinit is not None and registered is None:
            yield broken(group, "a step ran on it before it registered", preinit)
        elif out_of_order([each] for each in chain):
            names = " < ".join(each.name for each in sorted(chain, key=lambda each: each.seq))
            yield broken(group, f"it went {names}", *chain)
        else:
            yield KEPT


@rule(
    2,
    "clear-node-state",
    says="a slurmd that starts clean clears its node's state once, after node_init and before it "
    "registers; no other does",
    key=_SLURMD,
    source="switch guide; no recording has it",
    functions=(CLEAR,),
)
def clear_node_state(run: Observed) -> Iterator[Finding]:
    """Look at the slurmds that are started clean, and at the others."""
    clean = _started_clean(run)
    calls = by(run.calls(CLEAR), "pid")
    for pid in dict.fromkeys((*clean, *calls)):
        events = run.by_pid[pid]
        group = f"slurmd {pid} on {events[0].node}"
        ready, registered = _first(events, NODE_INIT), _first(events, _REGISTRATION, "send")
        found = calls[pid]
        if pid not in clean:
            yield broken(group, "it was not started clean", *found)
        elif len(found) > 1:
            yield broken(group, "it was cleared twice", *found)
        elif found and (ready is None or begin_seq(found[0]) < ready.seq):
            yield broken(group, f"it was cleared before {NODE_INIT}", found[0])
        elif found and registered is not None and found[0].seq > registered.seq:
            yield broken(group, "it was cleared after it registered", registered, found[0])
        elif not found and registered is not None:
            yield broken(group, "it was started clean and not cleared", clean[pid], registered)
        else:
            yield KEPT


def _started_clean(run: Observed) -> dict[int, Event]:
    """Return the slurmds that a fault started clean; of a node that is up it starts none."""
    before: dict[object, int] = {}
    clean: dict[int, Event] = {}
    for pid in sorted(run.pids("slurmd"), key=lambda pid: run.by_pid[pid][0].seq):
        first = run.by_pid[pid][0]
        started = _start_of(run, first, before.get(first.node, 0))
        before[first.node] = first.seq
        if started is not None and str(arg(started, "fault")).endswith(" clean"):
            clean[pid] = started
    return clean


def _start_of(run: Observed, first: Event, before: int) -> Event | None:
    """Return the fault that started a slurmd, given its first event and its predecessor's."""
    start: Event | None = None
    for fault in run.by_name.get("fault", ()):
        words = str(arg(fault, "fault")).split()
        here = words[0] == "start" and words[1] in (first.node, f"slurmd@{first.node}")
        if here and before < fault.seq < first.seq and not run.met_nobody(fault):
            start = fault
    return start


_CTLD_INIT: Final = "switch_p_slurmctld_init"
"""Comes before anything is restored, in model modern, of a plugin that has it."""


@rule(
    15,
    "state-save-and-restore",
    says="slurmctld restores the switch's state once, before any credential or checkpoint record, "
    "and saves it once when it stops, after the last build and step_complete; after that it only "
    "packs, and unloads",
    key=_SLURMCTLD,
    exceptions="one that dies; restore failed: it dies; guide: one that is started clean restores "
    "nothing",
    source="switch guide; held in 11 slurmctlds of recordings of real Slurm",
    functions=(RESTORE, SAVE, BUILD, COMPLETE),
)
def state_save_and_restore(run: Observed) -> Iterator[Finding]:
    """Look at the first and the last calls of each slurmctld."""
    clean = run.once(controllers_started_clean)
    for pid in run.pids("slurmctld"):
        calls = run.calls_of(pid)
        names = [call.name for call in calls]
        group = f"slurmctld {pid}"
        if pid in clean and run.terms.model == "guide":
            yield broken(group, "it was started clean", *calls) if RESTORE in names else KEPT
            continue
        body = [call for call in calls if call.name not in ("init", "fini", _CTLD_INIT)]
        restored, saved = names.count(RESTORE), names.count(SAVE)
        if body and body[0].name != RESTORE:
            yield broken(group, f"{body[0].name} came before {RESTORE}", body[0])
        elif restored > 1 or saved > 1:
            twice = [call for call in calls if call.name in (RESTORE, SAVE)]
            yield broken(group, "its state was restored or saved twice", *twice)
        elif (
            body
            and failed(body[0])
            and (len(body) > 1 or not (run.died(pid) or run.was_killed(pid)))
        ):
            yield broken(group, "its state could not be restored, and it went on", *body[:2])
        elif saved:
            late = [
                call
                for call in body[[call.name for call in body].index(SAVE) + 1 :]
                if call.name not in _PACKS
            ]
            if late:
                save = next(call for call in body if call.name == SAVE)
                yield broken(group, f"{late[0].name} came after {SAVE}", save, late[0])
            else:
                yield KEPT
        elif run.left(pid) and not run.died(pid):
            yield broken(group, f"it stopped without {SAVE}", run.exits[pid])
        else:
            yield KEPT


@rule(
    36,
    "init-first-fini-last",
    says="a process runs a plugin's init once, before it calls anything else of it, and nothing "
    "after its fini; processes that P1 or P2 forks run neither. guide: who ran init runs fini "
    "before it exits. modern: slurmctld runs those of burst_buffer and job_submit, slurmd that of "
    "switch, commands those of cli_filter",
    key="a plugin in a process",
    exceptions="a process that was killed or died; init failed: nothing after it. A plugin without "
    "init is not looked at",
    source="plugin guides; held in 832 plugins in processes in recordings of real Slurm",
    functions=("init", "fini"),
)
def init_first_fini_last(run: Observed) -> Iterator[Finding]:
    """Look at the first and the last call of each plugin in each process."""
    started = by(run.calls("init"), "pid", "plugin")
    ended = by(run.calls("fini"), "pid", "plugin")
    with_init = {plugin for _, plugin in started}
    with_fini = {plugin for _, plugin in ended}
    spans: dict[tuple[Any, Any], list[Event]] = {}
    for pid, events in run.by_pid.items():
        if events[0].role in _LOADERS:
            of_plugins: dict[Any, list[Event]] = {}
            for event in events:
                if event.kind == "plugin" and event.name not in _OWN and event.phase != "enter":
                    span = of_plugins.get(event.plugin)
                    if span is None:
                        of_plugins[event.plugin] = [event, event]
                    else:
                        span[1] = event
            spans.update({(pid, plugin): span for plugin, span in of_plugins.items()})
    for key in dict.fromkeys((*started, *spans, *ended)):
        if key[1] in with_init:
            yield _loaded(run, key, started[key], ended[key], spans.get(key), key[1] in with_fini)


def _loaded(
    run: Observed,
    key: tuple[Any, Any],
    started: list[Event],
    ended: list[Event],
    span: list[Event] | None,
    has_fini: bool,
) -> Finding:
    pid, plugin = key
    some = (*started, *ended, *(span or ()))[0]
    group = f"{plugin} in {some.role} {pid}"
    if some.role in ("session", "task"):
        return broken(group, f"{some.name} was called in a fork", some)
    if len(started) > 1 or len(ended) > 1:
        return broken(group, "it was set up or unloaded twice", *started, *ended)
    if span is not None and (not started or begin_seq(span[0]) < started[0].seq):
        return broken(group, f"{span[0].name} was called before its init", span[0], *started)
    if started and failed(started[0]) and (span is not None or ended):
        return broken(group, "its init failed, and it was called", started[0], *(span or ended))
    if ended and span is not None and begin_seq(span[1]) > begin_seq(ended[0]):
        return broken(group, f"{span[1].name} was called after its fini", ended[0], span[1])
    unloads = _has_to_unload(run, some, plugin)
    stopped = run.left(pid) and not run.died(pid)
    if has_fini and unloads and stopped and started and not ended and not failed(started[0]):
        return broken(group, "it was not unloaded", started[0], run.exits[pid])
    if ended and not unloads:
        return broken(group, "it was unloaded", ended[0])
    return KEPT


def _has_to_unload(run: Observed, some: Event, plugin: str) -> bool:
    if run.terms.model == "guide":
        return True
    kind = plugin.partition("/")[0]
    return kind == "cli_filter" or (some.role, kind) in (
        *(("slurmctld", "burst_buffer"), ("slurmctld", "job_submit")),
        ("slurmd", "switch"),
    )


@rule(
    37,
    "uid-and-place",
    says="slurmctld calls as SlurmUser; slurmd and the job manager as root; P2 as root, and fini "
    "as the user; tasks and srun as the user; real and effective user are one, at a call's begin "
    "and end; and every function is called only in the processes that its guide names",
    key="a call",
    source="the guides' tables; held in 8,936 calls of recordings of real Slurm",
    functions=tuple(ALL),
)
def uid_and_place(run: Observed) -> Iterator[Finding]:
    """Hold each call against who may make it; like calls are looked at once."""
    slurm_user = run.terms.users.get(str(run.terms.conf.get("slurm_user", "slurm")))
    for name, events in run.by_name.items():
        if events[0].kind != "plugin":
            continue
        point = ALL.get(name) or OPTIONAL.get(name)
        places = None if point is None else {*point.places(run.terms.model), *point.places("guide")}
        seen: dict[tuple[Any, Any, Any], Event] = {}
        for call in events:
            key = (call.role, call.uid, call.euid)
            if key not in seen:
                seen[key] = call
        wrong = 0
        for (role, uid, euid), call in seen.items():
            group = f"{name} in {role} {call.pid}"
            if places is not None and role not in places:
                wrong += 1
                yield broken(group, f"no {role} calls it", call)
            elif uid != euid or not _may_be(role, name, uid, slurm_user):
                wrong += 1
                yield broken(group, f"it was called as {uid}/{euid}", call)
        for call in events:
            if call.enter is not UNSET:
                first = run.at(call.enter)
                if first is not None and (first.uid, first.euid) != (call.uid, call.euid):
                    wrong += 1
                    yield broken(
                        f"{name} in {call.role} {call.pid}", "its user changed", first, call
                    )
        if not wrong:
            yield Kept(len(events))


def _may_be(role: Any, name: str, uid: Any, slurm_user: int | None) -> bool:
    if role == "slurmctld":
        return slurm_user is None or uid == slurm_user
    if role in ("slurmd", "manager"):
        return bool(uid == 0)
    return role != "session" or name == FINI or name in ASIDE or uid == 0


_IN_A_THREAD: Final = "slurm_ckpt_signal_tasks"
"""What the step daemon's thread for requests calls; all else is its main thread's."""


@rule(
    50,
    "one-call-at-a-time",
    says="a process makes no plugin call inside another",
    key="a process",
    exceptions="restart_task, which does not return where the task becomes its image; and what "
    "a step daemon does while a thread of its calls signal_tasks",
    source="held in 8,936 calls of recordings of real Slurm; for burst buffers their guide's mutex",
    functions=tuple(ALL),
)
def one_call_at_a_time(run: Observed) -> Iterator[Finding]:
    """Look for calls that begin between the two lines of another, in the same process."""
    inside: list[tuple[Event, Event]] = []
    pids: dict[Any, None] = {}
    for events in run.by_name.values():
        if events[0].kind != "plugin":
            continue
        for call in events:
            pids[call.pid] = None
            if call.enter is not UNSET:
                first = run.at(call.enter)
                if first is not None:
                    inside.append((first, call))
    wrong = 0
    for first, last in inside:
        others = [
            event
            for event in between(run.by_pid[pid_of(first)], first.seq, last.seq)
            if event.kind == "plugin"
            and (event.name == _IN_A_THREAD) is (first.name == _IN_A_THREAD)
        ]
        if others:
            wrong += 1
            group = f"{first.role} {first.pid}"
            yield broken(group, f"{others[0].name} was called inside {first.name}", first, last)
    if not wrong and pids:
        yield Kept(len(pids))


@rule(
    65,
    "start-order",
    says="slurmctld: checkpoint init, switch init, restore, then saved records. slurmd: init, "
    "node_init, node record. srun: init before its first message. slurmstepd: switch init, "
    "checkpoint init, credential (guide), or switch init, credential, checkpoint init (modern), "
    "then preinit",
    key="a daemon, or a srun",
    exceptions="the later functions slurmctld_init, slurmd_init and slurmd_step_init are not "
    "looked at",
    source="held in 339 processes of recordings of real Slurm; the guide's step daemon is read off "
    "its sources",
    functions=("init", RESTORE, NODE_INIT),
)
def start_order(run: Observed) -> Iterator[Finding]:
    """Hold the first calls of each process against the order of its kind."""
    for pid in run.pids("slurmctld"):
        chain = ["init checkpoint", "init switch", RESTORE, "slurm_ckpt_alloc_job", UNPACK]
        yield _begins(run, f"slurmctld {pid}", run.by_pid[pid], chain)
    for pid in run.pids("slurmd"):
        yield _begins(run, f"slurmd {pid}", run.by_pid[pid], ["init switch", NODE_INIT, NODE_INFO])
    for pid in run.pids("srun"):
        events = run.by_pid[pid]
        inits = [event for event in events if event.name == "init"]
        first = next((e for e in events if e.phase == "send"), None)
        if first is not None and inits:
            if inits[-1].seq > first.seq:
                yield broken(f"srun {pid}", "it sent before its init", first, inits[-1])
            else:
                yield KEPT
    for daemon in run.daemons.values():
        yield _step_daemon_begins(run, daemon)


def _begins(run: Observed, group: object, events: Sequence[Event], chain: list[str]) -> Finding:
    """Look at the first event of each name, `init CLASS` for that of a class of plugins."""
    first: dict[str, Event] = {}
    for event in events:
        if event.kind != "plugin" or event.phase == "enter":
            continue
        name = event.name
        if name == "init":
            name = f"init {str(event.plugin).partition('/')[0]}"
        if name not in first:
            first[name] = event
            if len(first) > _BEGINNING:
                break
    names = {first[name].seq: name for name in chain if name in first}
    wrong = out_of_order([first[name]] for name in chain if name in first)
    if wrong is None:
        return KEPT
    last, found = wrong
    return broken(group, f"{names[found.seq]} came before {names[last.seq]}", found, last)


def _step_daemon_begins(run: Observed, daemon: StepDaemon) -> Finding:
    if run.terms.model == "guide":
        chain = ["init switch", "init checkpoint", ALLOC, UNPACK, PREINIT]
    else:
        chain = ["init switch", UNPACK, "init checkpoint", PREINIT]
    events = [event for event in daemon.events if event.pid == daemon.manager]
    found = _begins(run, daemon, events, chain)
    called = {str(e.plugin).partition("/")[0] for e in events if e.name == "init"}
    if found is KEPT and daemon.end is not None and daemon.called(PREINIT):
        missing = [kind for kind in ("switch", "checkpoint") if kind not in called]
        if missing and run.calls("init"):
            return _missing_init(run, daemon, missing[0])
    return found


def _missing_init(run: Observed, daemon: StepDaemon, kind: str) -> Finding:
    """Tell of a plugin that a step daemon has not set up, if it has an init anywhere."""
    if any(str(call.plugin).startswith(f"{kind}/") for call in run.calls("init")):
        return broken(daemon, f"it never set its {kind} plugin up", daemon.events[0])
    return KEPT


@rule(
    69,
    "daemon-stop",
    says="node_fini and the switch's fini are a slurmd's last two calls; slurmctld saves the "
    "switch's state before it unloads plugins: burst buffers first, then (guide) switch and "
    "checkpoint",
    key="a slurmd or slurmctld that stops",
    exceptions="one that was killed or died",
    source="held in 34 daemons of recordings of real Slurm",
    functions=(NODE_FINI, SAVE, "fini"),
)
def daemon_stop(run: Observed) -> Iterator[Finding]:
    """Look at the last calls of each daemon that stopped in good order."""
    for pid in run.pids("slurmd"):
        if run.left(pid) and not run.died(pid):
            calls = run.calls_of(pid)
            names = [call.name for call in calls]
            has_fini = any(str(c.plugin).startswith("switch/") for c in run.calls("fini"))
            wanted = [NODE_FINI, "fini"] if has_fini else [NODE_FINI]
            if names[-len(wanted) :] != wanted:
                told = ", ".join(names[-2:])
                yield broken(f"slurmd {pid}", f"its last calls were {told}", *calls[-2:])
            else:
                yield KEPT
    for pid in run.pids("slurmctld"):
        if run.left(pid) and not run.died(pid):
            yield _stopped(run, pid)


def _stopped(run: Observed, pid: int) -> Finding:
    calls = run.calls_of(pid)
    ends = [call for call in calls if call.name == "fini"]
    kinds = [str(call.plugin).partition("/")[0] for call in ends]
    wanted = sorted(kinds, key=["burst_buffer", "job_submit", "switch", "checkpoint"].index)
    save = next((call for call in calls if call.name == SAVE), None)
    if kinds != wanted:
        return broken(f"slurmctld {pid}", f"it unloaded {', '.join(kinds)}", *ends)
    if ends and save is not None and begin_seq(ends[0]) < save.seq:
        return broken(f"slurmctld {pid}", "it unloaded a plugin before it saved", ends[0], save)
    if ends and any(call.seq > ends[0].seq and call.name != "fini" for call in calls):
        late = next(call for call in calls if call.seq > ends[0].seq and call.name != "fini")
        return broken(f"slurmctld {pid}", f"{late.name} came after a fini", ends[0], late)
    return KEPT
