"""Rules about the five job functions in a step daemon: their order, process, user and number."""

from collections.abc import Iterator, Sequence
from typing import Final

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_seq, out_of_order
from simctl.kernel.procs import exit_code_of
from simctl.orderings.observed import (
    Observed,
    StepDaemon,
    arg,
    failed,
    killed,
    pid_of,
)
from simctl.orderings.rules import BOTH, GUIDE, KEPT, MODERN, Finding, broken, rule

PREINIT: Final = "switch_p_job_preinit"
INIT: Final = "switch_p_job_init"
ATTACH: Final = "switch_p_job_attach"
FINI: Final = "switch_p_job_fini"
POSTFINI: Final = "switch_p_job_postfini"
PREFORK: Final = "slurm_ckpt_stepd_prefork"
JOB_FUNCTIONS: Final = (PREINIT, INIT, ATTACH, FINI, POSTFINI)

DAEMON: Final = "a slurmstepd process with its children"
CUT_SHORT: Final = "its slurmstepd was killed, or the run ended before it did"


def steps(run: Observed) -> Iterator[StepDaemon]:
    """Return the step daemons of srun's steps."""
    return (daemon for daemon in run.daemons.values() if not daemon.batch)


def owner(daemon: StepDaemon) -> int | None:
    """Return the user that the processes of a step daemon become; None if none has."""
    for event in daemon.events:
        if event.name == "become_user":
            return int(arg(event, "uid"))
    return None


@rule(
    3,
    "job-functions-in-order",
    says="preinit, init, every attach, fini, postfini; each but attach at most once",
    key=DAEMON,
    exceptions="a later one may be missing, never out of order",
    source="switch guide; held in 164 step daemons of recordings of real Slurm",
    functions=JOB_FUNCTIONS,
)
def job_functions_in_order(run: Observed) -> Iterator[Finding]:
    """Look at each step daemon: the calls of one function end before those of the next begin."""
    for daemon in run.daemons.values():
        calls = [daemon.called(name) for name in JOB_FUNCTIONS]
        if any(calls):
            yield _in_order(daemon, calls)


def _in_order(daemon: StepDaemon, calls: list[Sequence[Event]]) -> Finding:
    for name, found in zip(JOB_FUNCTIONS, calls, strict=True):
        if len(found) > 1 and name != ATTACH:
            return broken(daemon, f"{name} was called twice", found[0], found[1])
    wrong = out_of_order(calls)
    if wrong is None:
        return KEPT
    earlier, call = wrong
    return broken(daemon, f"{call.name} began before {earlier.name} ended", call, earlier)


@rule(
    4,
    "attach-before-exec",
    says="each forked task attaches once, as the job's owner, before it executes or restarts "
    "its program; one whose attach fails executes nothing and exits with 1",
    key="a task process of a srun step",
    exceptions="a task that is killed before it attaches, or whose slurmstepd is; what is still to "
    "come in a run that was broken off",
    source="switch guide; held in 223 step daemons of recordings of real Slurm",
    functions=(ATTACH, "slurm_ckpt_restart_task"),
)
def attach_before_exec(run: Observed) -> Iterator[Finding]:
    """Look at each task: one attach, then exec or restart."""
    for daemon in steps(run):
        user = owner(daemon)
        by_task: dict[int, list[Event]] = {pid: [] for pid in daemon.tasks}
        for event in daemon.events:
            if event.pid in by_task:
                by_task[pid_of(event)].append(event)
        for pid, events in by_task.items():
            yield _attached(run, daemon, daemon.tasks[pid], events, user)


def _attached(
    run: Observed, daemon: StepDaemon, fork: Event, events: list[Event], user: int | None
) -> Finding:
    pid = arg(fork, "child")
    group = f"task {pid} of {daemon}"
    calls = [each for each in events if each.name == ATTACH and each.phase != "enter"]
    if len(calls) > 1:
        return broken(group, "it attached twice", *calls[:2])
    programs = [each for each in events if each.name in ("exec", "slurm_ckpt_restart_task")]
    if not calls:
        end = run.exits.get(pid)
        if programs:
            return broken(group, f"{programs[0].name} without an attach", fork, programs[0])
        if end is not None and not killed(end) and not run.was_killed(daemon.manager):
            return broken(group, "it never attached", fork, end)
        return KEPT
    call = calls[0]
    if (call.uid, call.euid) != (user, user):
        return broken(group, f"it attached as {call.uid}/{call.euid}, not as {user}", fork, call)
    if programs and begin_seq(programs[0]) < call.seq:
        return broken(group, f"{programs[0].name} came before its attach", programs[0], call)
    if failed(call):
        if programs:
            return broken(group, f"{programs[0].name} after a failed attach", call, programs[0])
        end = run.exits.get(pid)
        if end is not None and not killed(end) and exit_code_of(end.rc) != 1:
            return broken(group, "its attach failed and it did not exit with 1", call, end)
    return KEPT


@rule(
    5,
    "attach-count",
    says="as many attaches as forked tasks; none, and no task, if preinit, init or prefork failed",
    key=DAEMON,
    exceptions="tasks that are killed before they attach. A failed attach is counted: the others "
    "attach all the same",
    source="switch guide; held in 164 step daemons of recordings of real Slurm",
    functions=(ATTACH,),
)
def attach_count(run: Observed) -> Iterator[Finding]:
    """Count the attaches of each step daemon whose tasks have all got that far."""
    for daemon in steps(run):
        attached = daemon.called(ATTACH)
        setup = [call for name in (PREINIT, INIT, PREFORK) for call in daemon.called(name)]
        bad = next((call for call in setup if failed(call)), None)
        others = [*attached, *daemon.tasks.values()]
        if bad is not None and others:
            yield broken(
                daemon, f"{bad.name} failed, and tasks were forked all the same", bad, others[0]
            )
            continue
        missed = {pid for pid in daemon.tasks if not _could_attach(run, pid)}
        pids = {pid_of(call) for call in attached}
        if daemon.end is None:
            continue
        if len(attached) != len(daemon.tasks) - len(missed - pids):
            what = f"{len(attached)} attaches, {len(daemon.tasks)} tasks forked"
            yield broken(daemon, what, *(others or daemon.events)[:1], daemon.end)
        else:
            yield KEPT


def _could_attach(run: Observed, pid: int) -> bool:
    """Return whether a task was not killed."""
    end = run.exits.get(pid)
    return end is not None and not killed(end)


@rule(
    6,
    "job-functions-in-their-processes",
    says="guide: preinit and postfini in P1 as root, init in P2 as root, fini in the same P2 as "
    "the job's owner. modern: these four in the one root process. attach in a forked task, as the "
    "owner",
    key=DAEMON,
    source="switch guide; held in 164 step daemons of recordings of real Slurm",
    functions=JOB_FUNCTIONS,
)
def job_functions_in_their_processes(run: Observed) -> Iterator[Finding]:
    """Look at who makes each call."""
    for daemon in steps(run):
        if any(name in daemon.calls for name in JOB_FUNCTIONS):
            yield _placed(run, daemon)


def _placed(run: Observed, daemon: StepDaemon) -> Finding:
    guide = run.terms.model == "guide"
    user = owner(daemon)
    session = next((pid_of(call) for call in daemon.called(INIT)), daemon.manager)
    if guide and session == daemon.manager and daemon.called(INIT):
        return broken(daemon, f"{INIT} was called in P1", daemon.called(INIT)[0])
    wanted = {
        PREINIT: (daemon.manager, 0),
        INIT: (session, 0),
        FINI: (session, user) if guide else (daemon.manager, 0),
        POSTFINI: (daemon.manager, 0),
    }
    if not guide:
        wanted[INIT] = (daemon.manager, 0)
    for name, (pid, uid) in wanted.items():
        for call in daemon.called(name):
            if call.pid != pid:
                return broken(daemon, f"{name} was called in process {call.pid}, not {pid}", call)
            if (call.uid, call.euid) != (uid, uid):
                what = f"{name} was called as {call.uid}/{call.euid}, not as {uid}"
                return broken(daemon, what, call)
    for call in daemon.called(ATTACH):
        if call.pid not in daemon.tasks or (call.uid, call.euid) != (user, user):
            return broken(daemon, f"{ATTACH} in process {call.pid} as {call.uid}", call)
    return KEPT


@rule(
    7,
    "postfini-iff-preinit",
    says="postfini is called if, and only if, preinit succeeded, whatever happened in between",
    key=DAEMON,
    exceptions=f"{CUT_SHORT}. modern: the container could not be created, so that init was never "
    "reached",
    source="switch guide; held in 164 step daemons of recordings of real Slurm",
    functions=(PREINIT, POSTFINI),
)
def postfini_iff_preinit(run: Observed) -> Iterator[Finding]:
    """Look at the step daemons that have come to their end."""
    for daemon in steps(run):
        finished = daemon.called(POSTFINI)
        if finished and not daemon.worked(PREINIT):
            failures = daemon.called(PREINIT)
            yield broken(daemon, f"{POSTFINI} without a good {PREINIT}", *failures, finished[0])
        elif finished:
            yield KEPT
        elif daemon.end is not None and daemon.worked(PREINIT):
            if run.terms.model == "modern" and not daemon.called(INIT):
                # Nothing else lies between the two: the container could not be created.
                yield KEPT
                continue
            what = f"{PREINIT} succeeded, and {POSTFINI} was never called"
            yield broken(daemon, what, daemon.called(PREINIT)[0], daemon.end)
        elif daemon.end is not None:
            yield KEPT


@rule(
    8,
    "fini-iff-session-done",
    says="fini is called if init, the change of identity, all forks and the whole wait worked: P2 "
    "exits with 0 after a good fini, with 1 after a failed one, and with 1 to 6 without any",
    key=DAEMON,
    exceptions=CUT_SHORT,
    source="switch guide, and the exit codes of Slurm 0.4's session manager",
    functions=(INIT, FINI),
    models=GUIDE,
)
def fini_iff_session_done(run: Observed) -> Iterator[Finding]:
    """Hold the exit code of P2 against whether it called fini."""
    for daemon in steps(run):
        session = next((e for e in daemon.events if e.role == "session"), None)
        end = None if session is None else run.exits.get(pid_of(session))
        finished = daemon.called(FINI)
        if finished and not daemon.worked(INIT):
            what = f"{FINI} without a good {INIT}"
            yield broken(daemon, what, *daemon.called(INIT), finished[0])
        elif end is None or killed(end):
            continue
        elif finished and exit_code_of(end.rc) != int(failed(finished[0])):
            what = f"{FINI} returned {finished[0].rc} and P2 exited with {exit_code_of(end.rc)}"
            yield broken(daemon, what, finished[0], end)
        elif not finished and not exit_code_of(end.rc):
            yield broken(daemon, f"P2 exited with 0 and never called {FINI}", session or end, end)
        else:
            yield KEPT


@rule(
    8,
    "fini-iff-init",
    says="fini is called if, and only if, init succeeded, also after a failed prefork",
    key=DAEMON,
    exceptions=CUT_SHORT,
    source="held in 156 step daemons of recordings of real Slurm 18.08",
    functions=(INIT, FINI),
    models=MODERN,
)
def fini_iff_init(run: Observed) -> Iterator[Finding]:
    """Look at the step daemons that have come to their end."""
    for daemon in steps(run):
        finished = daemon.called(FINI)
        if finished and not daemon.worked(INIT):
            yield broken(daemon, f"{FINI} without a good {INIT}", *daemon.called(INIT), finished[0])
        elif daemon.end is not None and daemon.worked(INIT) and not finished:
            what = f"{INIT} succeeded, and {FINI} was never called"
            yield broken(daemon, what, daemon.called(INIT)[0], daemon.end)
        elif finished or daemon.end is not None:
            yield KEPT


@rule(
    9,
    "all-dead-before-postfini",
    says="all tasks have ended before fini begins; P2 and whatever tasks there are before postfini "
    "begins",
    key=DAEMON,
    exceptions="the SIGKILL to the container between the two is seen only in processes that still "
    "live",
    source="switch guide; held in 152 step daemons of recordings of real Slurm",
    functions=(FINI, POSTFINI),
)
def all_dead_before_postfini(run: Observed) -> Iterator[Finding]:
    """Look for processes of a step that outlive the call before which they must be gone."""
    for daemon in steps(run):
        calls = [*daemon.called(FINI), *daemon.called(POSTFINI)]
        if calls:
            yield _dead_before(run, daemon, calls)


def _dead_before(run: Observed, daemon: StepDaemon, calls: list[Event]) -> Finding:
    # Of each its first event: a session that ends too late was there before.
    sessions = {pid_of(e): e for e in reversed(daemon.events) if e.role == "session"}
    for call in calls:
        others = sessions if call.name == POSTFINI else {}
        for pid, first in (daemon.tasks | others).items():
            end = run.exits.get(pid)
            if first.seq < call.seq and (end is None or end.seq > begin_seq(call)):
                what = f"process {pid} was still there when {call.name} began"
                return broken(daemon, what, call, end or first)
    return KEPT


@rule(
    10,
    "task-exits-told-before-postfini",
    says="srun has been told of every ended task before postfini begins; the step's end is "
    "reported after it",
    key=DAEMON,
    exceptions="what a cut link holds back. That the wait for output comes after postfini leaves "
    "no line in a trace",
    source="switch guide and Slurm 0.4's job manager",
    functions=(POSTFINI,),
    models=GUIDE,
)
def task_exits_told_before_postfini(run: Observed) -> Iterator[Finding]:
    """Look at the messages of step daemons that call postfini."""
    for daemon in steps(run):
        for call in daemon.called(POSTFINI)[:1]:
            late = [
                each
                for each in daemon.sent("MESSAGE_TASK_EXIT")
                if each.seq > begin_seq(call) and not _held_back(run, daemon, each)
            ]
            if late:
                yield broken(daemon, "srun was told of a task after postfini", call, late[0])
            else:
                yield _reported_after(daemon, call)


@rule(
    10,
    "postfini-before-last-task-exit",
    says="postfini ends before srun is told of the last tasks, and before the step's end is "
    "reported",
    key=DAEMON,
    exceptions="tasks that ended 0.1 s or more before the last are told of before. That the wait "
    "for output comes after postfini leaves no line in a trace",
    source="held in 143 step daemons of recordings of real Slurm 18.08",
    functions=(POSTFINI,),
    models=MODERN,
)
def postfini_before_last_task_exit(run: Observed) -> Iterator[Finding]:
    """Look at the messages of step daemons that call postfini."""
    for daemon in steps(run):
        for call in daemon.called(POSTFINI)[:1]:
            told = daemon.sent("MESSAGE_TASK_EXIT")
            if told and told[-1].seq < call.seq:
                yield broken(
                    daemon, "srun was told of its last task before postfini", told[-1], call
                )
            else:
                yield _reported_after(daemon, call)


def _held_back(run: Observed, daemon: StepDaemon, message: Event) -> bool:
    """Return whether a message waited behind one, or was one, that a cut link held back."""
    return any(
        each.seq in run.unreachable and each.peer == message.peer and each.seq <= message.seq
        for each in daemon.events
        if each.phase == "send"
    )


def _reported_after(daemon: StepDaemon, call: Event) -> Finding:
    early = [e for e in daemon.sent("REQUEST_STEP_COMPLETE") if e.seq < call.seq]
    if early:
        return broken(daemon, "the step's end was reported before postfini", early[0], call)
    return KEPT


_CREDENTIALS: Final = tuple(
    f"switch_p_{verb}_jobinfo" for verb in ("alloc", "unpack", "pack", "free", "build", "copy")
)


@rule(
    11,
    "batch-knows-no-switch",
    says="the step daemon of a batch script calls none of the five job functions, and none that "
    "handles a credential",
    key="the slurmstepd of a batch script",
    exceptions="steps of kind extern do not exist here",
    source="switch guide; held in 59 step daemons of recordings of real Slurm",
    functions=JOB_FUNCTIONS,
    models=BOTH,
)
def batch_knows_no_switch(run: Observed) -> Iterator[Finding]:
    """Look at the calls of the step daemons of batch scripts."""
    for daemon in run.daemons.values():
        if daemon.batch:
            wrong = [
                call for name in (*JOB_FUNCTIONS, *_CREDENTIALS) for call in daemon.called(name)
            ]
            yield broken(daemon, f"{wrong[0].name} was called", wrong[0]) if wrong else KEPT
