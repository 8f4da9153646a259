"""Rules about what the checkpoint plugin does in step daemons and their tasks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_seq
from simctl.orderings.observed import (
    LAUNCHES,
    Observed,
    StepDaemon,
    arg,
    by,
    failed,
    pid_of,
)
from simctl.orderings.rules import KEPT, Broken, Finding, broken, rule
from simctl.orderings.steps.daemons import owner

_GUIDE: Final = "checkpoint guide"
_PREFORK: Final = "slurm_ckpt_stepd_prefork"
_RESTART: Final = "slurm_ckpt_restart_task"
_SIGNAL: Final = "slurm_ckpt_signal_tasks"
_REQUEST: Final = "REQUEST_CHECKPOINT_TASKS"


def _forks(daemon: StepDaemon) -> list[Event]:
    """Return the forks of its tasks."""
    return list(daemon.tasks.values())


@rule(
    19,
    "prefork-before-tasks",
    says=(
        "stepd_prefork once, as root, after job_init, before the first task is forked; of a batch "
        "script too"
    ),
    key="a slurmstepd",
    exceptions=(
        "none if a plugin could not be loaded, or preinit or init failed; if it fails no task is "
        "forked"
    ),
    source=f"{_GUIDE}; held in 223 groups of recordings of real Slurm",
    functions=(_PREFORK,),
)
def prefork_before_tasks(run: Observed) -> Iterator[Finding]:
    """Look at each step daemon that called it, or forked a task."""
    for daemon in run.daemons.values():
        calls, forks = daemon.called(_PREFORK), _forks(daemon)
        if calls or forks:
            yield next(_prefork(run, daemon, calls, forks), KEPT)


def _prefork(
    run: Observed, daemon: StepDaemon, calls: Sequence[Event], forks: Sequence[Event]
) -> Iterator[Broken]:
    if not calls:
        yield broken(daemon, "a task was forked, and stepd_prefork was not called", forks[0])
        return
    call = calls[0]
    if len(calls) > 1:
        yield broken(daemon, "stepd_prefork was called twice", *calls[:2])
    if (call.uid, call.euid) != (0, 0):
        yield broken(daemon, f"stepd_prefork was called as {call.euid}", call)
    role = "session" if run.terms.model == "guide" else "manager"
    if call.role != role:
        yield broken(daemon, f"stepd_prefork was called by the {call.role}", call)
    for init in daemon.called("switch_p_job_init"):
        if begin_seq(call) < init.seq:
            yield broken(daemon, "stepd_prefork began before job_init ended", call, init)
        elif failed(init):
            yield broken(daemon, "stepd_prefork follows a job_init that failed", init, call)
    for each in (*forks, *_becomes_user(daemon, call)):
        if begin_seq(each) < call.seq:
            yield broken(daemon, f"{each.name} comes before stepd_prefork", each, call)
    if failed(call) and forks:
        yield broken(daemon, "a task was forked although stepd_prefork failed", call, forks[0])


def _becomes_user(daemon: StepDaemon, call: Event) -> list[Event]:
    """Return where the process that called it becomes the user."""
    changes = (each for each in daemon.events if each.name == "become_user")
    return [each for each in changes if each.pid == call.pid]


# Restarts.


@attrs.define
class Child:
    """A task, from its fork to its end."""

    pid: int
    user: int | None
    """As whom its step is to run."""

    events: list[Event] = attrs.field(factory=list)

    def __str__(self) -> str:
        """Return its name as a group of events."""
        first = self.events[0]
        return f"task {first.task} of {first.step} on {first.node} (pid {self.pid})"

    def named(self, name: str) -> list[Event]:
        """Return its events of a name."""
        return [each for each in self.events if each.name == name]


def children(run: Observed) -> Sequence[Child]:
    """Return all tasks; what a batch script has started is none."""
    found = {
        pid: Child(pid, owner(daemon)) for daemon in run.daemons.values() for pid in daemon.tasks
    }
    for daemon in run.daemons.values():
        for each in daemon.events:
            child = found.get(pid_of(each))
            if child is not None:
                child.events.append(each)
    return list(found.values())


def _restarts(child: Child) -> list[Event]:
    """Return where its restart_task calls begin; one that becomes its image has no end."""
    return [each for each in child.named(_RESTART) if each.phase != "exit"]


@rule(
    20,
    "restart-replaces-exec",
    says=(
        "restart_task in the task itself, as the user, after its attach, with a directory; if it "
        "comes back the task exits and executes nothing"
    ),
    key="a task that is restarted",
    exceptions="a batch script has no attach",
    source=f"{_GUIDE}; held in 7 groups of recordings of real Slurm",
    functions=(_RESTART,),
)
def restart_replaces_exec(run: Observed) -> Iterator[Finding]:
    """Look at each task that is restarted."""
    for child in run.once(children) if _RESTART in run.by_name else ():
        if _restarts(child):
            yield next(_restarted(child), KEPT)


def _restarted(child: Child) -> Iterator[Broken]:
    call = _restarts(child)[0]
    attaches = [each for each in child.named("switch_p_job_attach") if each.phase != "enter"]
    if not str(call.step).endswith(".batch"):
        if not attaches or attaches[0].seq > call.seq:
            yield broken(child, "restart_task was called before job_attach", call, *attaches[:1])
        elif failed(attaches[0]):
            yield broken(child, "restart_task follows a failed attach", attaches[0], call)
    if not call.uid == call.euid == child.user:
        yield broken(child, f"restart_task was called as {call.euid}", call)
    if not arg(call, "image_dir"):
        yield broken(child, "restart_task has no directory of images", call)
    if arg(call, "gtid") != call.task:
        yield broken(child, f"restart_task was told of task {arg(call, 'gtid')}", call)
    for each in child.named("exec"):
        if each.seq < call.seq:
            yield broken(child, "it executed something before restart_task", each, call)
    back = [each for each in child.named(_RESTART) if each.phase != "enter" and _came_back(each)]
    for end in back:
        for each in child.named("exec"):
            if each.seq > end.seq:
                yield broken(child, "restart_task came back, and it went on", end, each)


def _came_back(call: Event) -> bool:
    """Return whether restart_task returned; one line a call has either no result or an error."""
    return call.rc is not UNSET


@rule(
    70,
    "restarted-once-if-asked",
    says="each task of a launch with restart_dir calls restart_task once; of any other, never",
    key="a task that was launched",
    exceptions="a task that was killed, or whose attach or prolog failed, has none",
    source=f"{_GUIDE}; held in 17 groups of recordings of real Slurm",
    functions=(_RESTART,),
)
def restarted_once_if_asked(run: Observed) -> Iterator[Finding]:
    """Hold each task against the launch that its slurmd received last before it was forked."""
    launches = (each for name in LAUNCHES for each in run.by_name.get(name, ()))
    if _RESTART not in run.by_name and not any(arg(each, "restart_dir") for each in launches):
        return
    launched = run.once(_launched)
    for child in run.once(children):
        launch = launched.get(run.step_daemon(child.events[0]))
        if launch is not None:
            yield next(_as_launched(child, launch), KEPT)


def _launched(run: Observed) -> Mapping[int, Event]:
    """Return the launch that each step daemon serves, by its pid."""
    launches = by((each for name in LAUNCHES for each in run.received(name)), "node", "step")
    found: dict[int, Event] = {}
    for pid, daemon in run.daemons.items():
        first = daemon.events[0].seq
        before = [each for each in launches[daemon.node, daemon.step] if each.seq < first]
        if before:
            found[pid] = before[-1]
    return found


def _as_launched(child: Child, launch: Event) -> Iterator[Broken]:
    calls = _restarts(child)
    wanted = arg(launch, "restart_dir")
    if len(calls) > 1:
        yield broken(child, f"restart_task was called {len(calls)} times", *calls)
    if calls and not wanted:
        yield broken(child, "it was launched without images, and restarted", launch, calls[0])
    if calls and wanted and arg(calls[0], "image_dir") != wanted:
        what = f"it was launched with {wanted}, restarted from {arg(calls[0], 'image_dir')}"
        yield broken(child, what, launch, calls[0])
    executed = child.named("exec")
    if not calls and wanted and executed:
        yield broken(child, "it was launched with images, and executed afresh", launch, executed[0])


# Requests for images.


@rule(
    21,
    "signal-tasks-once-a-request",
    says=(
        "signal_tasks once a request at most, not for two in a row of one second, once all tasks "
        "are forked, and not while the step is suspended"
    ),
    key="a slurmstepd",
    source=f"{_GUIDE}; held in 23 groups of recordings of real Slurm",
    functions=(_SIGNAL,),
)
def signal_tasks_once_a_request(run: Observed) -> Iterator[Finding]:
    """Look at what each step daemon was asked before it has its tasks saved."""
    if _SIGNAL not in run.by_name:
        return
    for daemon in run.daemons.values():
        if any(each.name == _SIGNAL for each in daemon.events):
            yield next(_signals(daemon), KEPT)


def _signals(daemon: StepDaemon) -> Iterator[Broken]:
    forks = _forks(daemon)
    waiting: list[Event] = []
    served: Event | None = None
    suspended: Event | None = None
    for each in daemon.events:
        if each.phase == "receive":
            if each.name == _REQUEST:
                waiting.append(each)
            elif each.name in ("REQUEST_STEP_SUSPEND", "REQUEST_STEP_RESUME"):
                suspended = each if each.name == "REQUEST_STEP_SUSPEND" else None
        elif each.name == _SIGNAL and each.phase != "exit":
            request = _served(waiting, each, served)
            if request is None:
                what = "signal_tasks without a request for its directory"
                yield broken(daemon, what, *waiting, each)
            elif served is not None and _second(request) == _second(served) != 0:
                what = "signal_tasks twice for requests of one second"
                yield broken(daemon, what, served, request, each)
            served = request or served
            if not forks or forks[-1].seq > each.seq:
                yield broken(daemon, "signal_tasks before its tasks were forked", each, *forks[-1:])
            # Requests are served in turn, so one from before the suspension comes before it.
            if suspended is not None and (request is None or request.seq > suspended.seq):
                yield broken(daemon, "signal_tasks while it is suspended", suspended, each)


def _served(waiting: list[Event], call: Event, before: Event | None) -> Event | None:
    """Return the request that a call serves: the next of its directory, of another second."""
    wanted = [each for each in waiting if arg(each, "image_dir") == arg(call, "image_dir")]
    last = None if before is None else _second(before)
    request = next((each for each in wanted if _second(each) != last or not last), None)
    request = request or next(iter(wanted), None)
    if request is not None:
        waiting.remove(request)
    return request


def _second(request: Event) -> object:
    return arg(request, "timestamp")
