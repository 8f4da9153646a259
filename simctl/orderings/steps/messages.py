"""Rules about what a step daemon tells others, and what it records of its processes."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_seq
from simctl.kernel.procs import OUT_OF_MEMORY_STATUS, SIGKILL
from simctl.orderings.observed import Observed, StepDaemon, arg, pid_of
from simctl.orderings.rules import GUIDE, KEPT, MODERN, Finding, broken, rule
from simctl.orderings.steps.daemons import ATTACH, CUT_SHORT, DAEMON, FINI, INIT, POSTFINI, steps

_TASK_EXIT: Final = "MESSAGE_TASK_EXIT"
_LAUNCHED: Final = "RESPONSE_LAUNCH_TASKS"
_STEP_END: Final = "REQUEST_STEP_COMPLETE"
_BATCH_END: Final = "REQUEST_COMPLETE_BATCH_SCRIPT"


@rule(
    41,
    "task-exits-told-once",
    says="srun is told of each forked task once, after its end and with its wait status, and of no "
    "other; of a batch script nobody is told so",
    key=DAEMON,
    exceptions=f"{CUT_SHORT}; what a cut link holds back is sent again. A task killed for its use "
    "of memory is told of as that, not as SIGKILL",
    source="held in 164 step daemons of recordings of real Slurm",
)
def task_exits_told_once(run: Observed) -> Iterator[Finding]:
    """Compare the messages of each step daemon with the ends of its tasks."""
    for daemon in run.daemons.values():
        told = [m for m in daemon.sent(_TASK_EXIT) if m.seq not in run.unreachable]
        if daemon.batch:
            yield broken(daemon, "srun was told of a batch script", told[0]) if told else KEPT
        else:
            yield _told_once(run, daemon, told)


def _told_once(run: Observed, daemon: StepDaemon, told: list[Event]) -> Finding:
    ends: dict[object, Event] = {}
    for event in daemon.events:
        if event.pid in daemon.tasks and event.pid in run.exits:
            ends[event.task] = run.exits[pid_of(event)]
    seen: dict[object, Event] = {}
    for message in told:
        for rank in arg(message, "task_ids"):
            end = ends.get(rank)
            if end is None or end.seq > message.seq:
                return broken(daemon, f"srun was told of task {rank}, which has not ended", message)
            status = arg(message, "return_code")
            if status not in (end.rc, OUT_OF_MEMORY_STATUS if end.rc == SIGKILL else end.rc):
                what = f"srun was told {status} of task {rank}, which ended with {end.rc}"
                return broken(daemon, what, end, message)
            if rank in seen:
                return broken(daemon, f"srun was told twice of task {rank}", seen[rank], message)
            seen[rank] = message
    missing = [rank for rank in ends if rank not in seen]
    if missing and daemon.end is not None and not _held_back(run, daemon):
        return broken(daemon, f"srun was never told of task {missing[0]}", daemon.end)
    return KEPT


def _held_back(run: Observed, daemon: StepDaemon) -> bool:
    """Return whether a cut link has held back anything of a step daemon's."""
    return any(each.seq in run.unreachable for each in daemon.events)


@rule(
    42,
    "launch-reply",
    says="srun is told once how the launch on a node went: 0 after the last fork, with the tasks "
    "that were forked; an error after postfini, if there is any. Of a batch script nobody is told",
    key=DAEMON,
    exceptions=f"{CUT_SHORT}; what a cut link holds back is sent again. guide: a failed fini is "
    "told besides",
    source="switch guide; held in 223 step daemons of recordings of real Slurm",
    functions=(FINI, POSTFINI),
)
def launch_reply(run: Observed) -> Iterator[Finding]:
    """Look at the replies of each step daemon."""
    for daemon in run.daemons.values():
        replies = [m for m in daemon.sent(_LAUNCHED) if m.seq not in run.unreachable]
        if daemon.batch:
            wrong = [broken(daemon, "srun was told of a batch script", each) for each in replies]
            yield wrong[0] if wrong else KEPT
        elif replies or daemon.end is not None:
            yield _replied(run, daemon, replies)


def _replied(run: Observed, daemon: StepDaemon, replies: list[Event]) -> Finding:
    good = [m for m in replies if not arg(m, "return_code")]
    bad = [m for m in replies if arg(m, "return_code")]
    if not replies:
        if _held_back(run, daemon) or daemon.end is None:
            return KEPT
        return broken(daemon, "srun was never told how the launch went", daemon.end)
    if len(good) > 1 or len(bad) > 1:
        return broken(daemon, "srun was told twice how the launch went", *replies[:2])
    if good and bad and not (run.terms.model == "guide" and not daemon.worked(FINI)):
        return broken(daemon, "srun was told both that it went well and that it failed", *replies)
    if good:
        ranks = set(arg(good[0], "task_ids"))
        forks = list(daemon.tasks.values())
        if len(ranks) != len(forks):
            what = f"srun was told of {len(ranks)} tasks, and {len(forks)} were forked"
            return broken(daemon, what, *forks[:1], good[0])
        late = [fork for fork in forks if fork.seq > good[0].seq]
        if late:
            return broken(daemon, "a task was forked after the reply", good[0], late[0])
    finished = daemon.called(POSTFINI)
    if bad and finished and bad[0].seq < finished[0].seq:
        return broken(daemon, "an error was told before postfini", bad[0], finished[0])
    return KEPT


@rule(
    43,
    "end-message",
    says="the end of a srun step is reported to slurmctld or up the tree, after postfini and the "
    "last word on its tasks, and that of a batch script to slurmctld, after the script's end; "
    "never the other kind, and never twice at once",
    key=DAEMON,
    exceptions=f"{CUT_SHORT}; one that gets no answer is repeated after a while, and a parent "
    "reports again for children that come late",
    source="held in 223 step daemons of recordings of real Slurm",
    functions=(POSTFINI,),
)
def end_message(run: Observed) -> Iterator[Finding]:
    """Look at the reports of each step daemon."""
    for daemon in run.daemons.values():
        names = (_BATCH_END, _STEP_END) if daemon.batch else (_STEP_END, _BATCH_END)
        right, wrong = (daemon.sent(name) for name in names)
        if wrong:
            yield broken(daemon, f"it sent {names[1]}", wrong[0])
        elif right:
            yield _reported(run, daemon, right)
        elif daemon.end is not None:
            yield broken(daemon, f"it ended without {names[0]}", daemon.end)


def _reported(run: Observed, daemon: StepDaemon, reports: list[Event]) -> Finding:
    first = reports[0]
    for earlier in (*daemon.called(POSTFINI), *daemon.sent(_TASK_EXIT)):
        if earlier.seq > first.seq and not _held_back(run, daemon):
            return broken(daemon, f"{earlier.name} came after {first.name}", first, earlier)
    if daemon.batch:
        for pid in daemon.tasks:
            end = run.exits.get(pid)
            if end is None or end.seq > first.seq:
                return broken(daemon, "its script had not ended", first, *([end] if end else []))
    for one, other in pairwise(reports):
        same = (one.args, one.time_us, one.peer) == (other.args, other.time_us, other.peer)
        if same and one.seq not in run.unreachable:
            return broken(daemon, "its end was reported twice at once", one, other)
    return KEPT


@rule(
    51,
    "step-record",
    says="init is told the job's owner; postfini the job, the step, and a process group: in guide "
    "P2's, in modern that of the first forked task, 0 if there was none, and the daemon's own pid",
    key=DAEMON,
    exceptions="the pids that real Slurm 18.08 passes to init besides do not exist here",
    source="switch guide; held in 310 calls of recordings of real Slurm 18.08",
    functions=(INIT, POSTFINI),
)
def step_record(run: Observed) -> Iterator[Finding]:
    """Look at the arguments of both calls."""
    for daemon in steps(run):
        for call in daemon.called(POSTFINI):
            yield _recorded(run, daemon, call)
        for call in daemon.called(INIT):
            user = next((arg(e, "uid") for e in daemon.events if e.name == "become_user"), None)
            told = arg(call, "uid")
            if user is not None and told != user:
                yield broken(daemon, f"{INIT} was told uid {told}, and its tasks are {user}", call)
            else:
                yield KEPT


def _recorded(run: Observed, daemon: StepDaemon, call: Event) -> Finding:
    job, _, step = daemon.step.partition(".")
    if (str(arg(call, "job_id")), str(arg(call, "step_id"))) != (job, step):
        return broken(daemon, f"{POSTFINI} was told another step", call)
    if run.terms.model == "guide":
        wanted = next((pid_of(e) for e in daemon.events if e.role == "session"), 0)
    else:
        wanted = next(iter(daemon.tasks), 0)
        if arg(call, "jmgr_pid") != daemon.manager:
            what = f"jmgr_pid is {arg(call, 'jmgr_pid')}, and the daemon is {daemon.manager}"
            return broken(daemon, what, call)
    if arg(call, "pgid") != wanted:
        return broken(daemon, f"{POSTFINI} was told pgid {arg(call, 'pgid')}, not {wanted}", call)
    return KEPT


@rule(
    52,
    "forked-in-order",
    says="P2 forks the tasks in the order of their ranks, and no release holds them together",
    key=DAEMON,
    source="switch guide",
    functions=(ATTACH,),
    models=GUIDE,
)
def forked_in_order(run: Observed) -> Iterator[Finding]:
    """Look at the ranks of the forked tasks."""
    for daemon in run.daemons.values():
        if daemon.tasks:
            yield _ascending(run, daemon)


def _ascending(run: Observed, daemon: StepDaemon) -> Finding:
    ranks = {pid_of(event): event.task for event in daemon.events if event.pid in daemon.tasks}
    forks = [fork for pid, fork in daemon.tasks.items() if pid in ranks]
    for one, other in pairwise(forks):
        if ranks[arg(one, "child")] >= ranks[arg(other, "child")]:  # type: ignore[operator]
            return broken(daemon, "tasks were not forked in the order of their ranks", one, other)
    for fork in forks:
        if fork.role != "session":
            return broken(daemon, f"a task was forked by {fork.role}, not P2", fork)
    return KEPT


@rule(
    52,
    "forked-then-released",
    says="the tasks are forked in the order of their ranks, with the owner's effective uid; after "
    "the last fork each becomes the user, and then attaches",
    key=DAEMON,
    source="held in 205 step daemons of recordings of real Slurm 18.08",
    functions=(ATTACH,),
    models=MODERN,
)
def forked_then_released(run: Observed) -> Iterator[Finding]:
    """Look at the forks and at what each task does first."""
    for daemon in run.daemons.values():
        if daemon.tasks:
            yield _released(run, daemon)


def _released(run: Observed, daemon: StepDaemon) -> Finding:
    forks = list(daemon.tasks.values())
    became = {pid_of(e): e for e in daemon.events if e.name == "become_user"}
    ranks = {pid_of(event): event.task for event in daemon.events if event.pid in daemon.tasks}
    for one, other in pairwise([fork for pid, fork in daemon.tasks.items() if pid in ranks]):
        if ranks[arg(one, "child")] >= ranks[arg(other, "child")]:  # type: ignore[operator]
            return broken(daemon, "tasks were not forked in the order of their ranks", one, other)
    for pid, fork in daemon.tasks.items():
        user = became.get(pid)
        if user is not None and user.seq < forks[-1].seq:
            return broken(
                daemon, f"task {pid} became the user before the last fork", user, forks[-1]
            )
        if user is not None and (fork.uid, fork.euid) != (0, arg(user, "uid")):
            return broken(daemon, f"a task was forked as {fork.uid}/{fork.euid}", fork, user)
    for call in daemon.called(ATTACH):
        user = became.get(pid_of(call))
        if user is None or user.seq > begin_seq(call):
            what = f"task {call.pid} attached before it was the user"
            return broken(daemon, what, call, *([user] if user else []))
    return KEPT
