"""The ordering rules of checkpoints, as checks of any trace; `broken` runs all of them.

Numbers in docstrings are those of the rules as they were checked against recordings of real Slurm.
A rule looks at the events of a run and yields a sentence for each place where it is broken.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from msgspec import UNSET

from simctl.kernel.events import Event

Rule = Callable[[Sequence[Event]], Iterator[str]]

_SLURM_USER: Final = 64030
_RESTART_OP: Final = 5
_CALLERS: Final = {
    "slurm_ckpt_alloc_job": ("slurmctld", _SLURM_USER),
    "slurm_ckpt_free_job": ("slurmctld", _SLURM_USER),
    "slurm_ckpt_pack_job": ("slurmctld", _SLURM_USER),
    "slurm_ckpt_unpack_job": ("slurmctld", _SLURM_USER),
    "slurm_ckpt_copy_job": ("slurmctld", _SLURM_USER),
    "slurm_ckpt_op": ("slurmctld", _SLURM_USER),
    "slurm_ckpt_comp": ("slurmctld", _SLURM_USER),
    "slurm_ckpt_stepd_prefork": ("slurmstepd", 0),
    "slurm_ckpt_signal_tasks": ("slurmstepd", 0),
    "slurm_ckpt_restart_task": ("task", None),
}


def _arg(event: Event, name: str) -> Any:
    return event.args.get(name) if event.args is not UNSET else None


def _begins(events: Sequence[Event], name: str) -> Iterator[Event]:
    """Yield one event a call: its beginning, or the one line of a call that took no time."""
    for event in events:
        if event.name == name and event.phase != "exit":
            yield event


def callers(events: Sequence[Event]) -> Iterator[str]:
    """Each function runs in the daemon, and as the user, that the guide's table has for it."""
    for event in events:
        wanted = _CALLERS.get(event.name)
        if wanted is None:
            continue
        daemon, uid = wanted
        if event.daemon != daemon or (uid is not None and event.euid != uid):
            yield f"{event.name} ({event.seq}) in {event.daemon} as {event.euid}"
        if uid is None and event.euid in (0, _SLURM_USER):
            yield f"{event.name} ({event.seq}) is not the user's"


def preforks(events: Sequence[Event]) -> Iterator[str]:
    """19: at most once a step daemon, and before its first task executes anything."""
    seen: dict[Any, int] = {}
    for event in _begins(events, "slurm_ckpt_stepd_prefork"):
        if event.pid in seen:
            yield f"prefork of process {event.pid} again ({event.seq})"
        seen[event.pid] = event.seq


def restarts(events: Sequence[Event]) -> Iterator[str]:
    """20, 70: once a task, after its attach if it has one, and then an exec or the end."""
    attached: set[Any] = set()
    restarted: dict[Any, Event] = {}
    for event in events:
        if event.daemon != "task":
            continue
        if event.name == "switch_p_job_attach":
            attached.add(event.pid)
        elif event.name == "slurm_ckpt_restart_task" and event.phase != "exit":
            if event.pid in restarted:
                yield f"task {event.pid} is restarted twice ({event.seq})"
            if not str(event.step).endswith(".batch") and event.pid not in attached:
                yield f"task {event.pid} is restarted before its attach ({event.seq})"
            if _arg(event, "gtid") != event.task or not _arg(event, "image_dir"):
                yield f"task {event.task} is restarted with {event.args} ({event.seq})"
            restarted[event.pid] = event
        elif event.name == "exec" and event.pid in restarted and "cr_" not in _arg(event, "path"):
            # The helper itself, and then what its image holds; a plain start is neither.
            restarted.pop(event.pid)


def signals(events: Sequence[Event]) -> Iterator[str]:
    """21: once a request that the daemon got, none twice a second, and while the job runs."""
    received: Counter[Any] = Counter()
    stamps: dict[Any, set[Any]] = defaultdict(set)
    latest: dict[Any, Any] = {}
    forked: set[Any] = set()
    for event in events:
        if event.name == "fork" and event.role in ("manager", "session"):
            forked.add((event.node, event.job, event.step))
        if event.daemon != "slurmstepd":
            continue
        if event.name == "REQUEST_CHECKPOINT_TASKS" and event.phase == "receive":
            received[event.pid] += 1
            latest[event.pid] = _arg(event, "timestamp")
        elif event.name == "slurm_ckpt_signal_tasks" and event.phase != "exit":
            received[event.pid] -= 1
            if received[event.pid] < 0:
                yield f"signal_tasks ({event.seq}) without a request"
            if latest[event.pid] in stamps[event.pid]:
                yield f"signal_tasks ({event.seq}) a second time within one second"
            stamps[event.pid].add(latest[event.pid])
            if (event.node, event.job, event.step) not in forked:
                yield f"signal_tasks ({event.seq}) before any task was forked"


def operations(events: Sequence[Event]) -> Iterator[str]:
    """22: the plugin is asked about running jobs alone, and never for a restart."""
    state: dict[Any, str] = {}
    for event in events:
        if event.name == "job_state":
            state[event.job] = _arg(event, "to")
        elif event.name == "slurm_ckpt_op" and event.phase != "exit":
            if state.get(event.job, "").split("|")[0] != "RUNNING":
                yield f"op ({event.seq}) on a job that is {state.get(event.job)}"
            if _arg(event, "op") == _RESTART_OP:
                yield f"op ({event.seq}) is RESTART"


def reports(events: Sequence[Event]) -> Iterator[str]:
    """23: on steps of jobs that run or are suspended, before the step's record is freed."""
    state: dict[Any, str] = {}
    steps: set[Any] = set()
    for event in events:
        if event.name == "job_state":
            state[event.job] = _arg(event, "to")
        elif event.name == "step_state":
            (steps.add if _arg(event, "to") == "RUNNING" else steps.discard)(event.step)
        elif event.name == "slurm_ckpt_comp":
            if state.get(event.job, "").split("|")[0] not in ("RUNNING", "SUSPENDED"):
                yield f"comp ({event.seq}) on a job that is {state.get(event.job)}"
            if event.step not in steps:
                yield f"comp ({event.seq}) on a step that is over"


def answers(events: Sequence[Event]) -> Iterator[str]:
    """62: a request is answered 0 only where the plugin was asked, or where it is a restart."""
    asked: dict[Any, tuple[Any, int]] = {}
    calls = 0
    for event in events:
        if event.daemon != "slurmctld":
            continue
        if event.name == "slurm_ckpt_op" and event.phase != "exit":
            calls += 1
        elif event.name == "REQUEST_CHECKPOINT" and event.phase == "receive":
            asked[event.peer] = (_arg(event, "op"), calls)
        elif event.name in ("RESPONSE_SLURM_RC", "RESPONSE_CHECKPOINT") and event.phase == "send":
            if event.name == "RESPONSE_SLURM_RC" and (
                _arg(event, "answers") != "REQUEST_CHECKPOINT"
            ):
                continue
            op, before = asked.pop(event.peer)
            good = event.name == "RESPONSE_CHECKPOINT" or not _arg(event, "return_code")
            # A job without a script and without steps has nothing to ask about.
            if good and op != _RESTART_OP and calls == before:
                yield f"the answer ({event.seq}) to operation {op} is 0, and nobody was asked"
            if op == _RESTART_OP and calls != before:
                yield f"a restart ({event.seq}) asked the plugin"


def balance(events: Sequence[Event]) -> Iterator[str]:
    """64: each record is made once and freed once, unless slurmctld was restarted meanwhile."""
    if any(event.name == "slurm_ckpt_pack_job" for event in events):
        return
    made: Counter[Any] = Counter()
    for event in events:
        if event.name in ("slurm_ckpt_alloc_job", "slurm_ckpt_copy_job"):
            if event.phase != "enter" and isinstance(event.rc, str):
                made[event.rc] += 1
        elif event.name == "slurm_ckpt_free_job" and event.phase != "exit":
            record = _arg(event, "jobinfo")
            if record is not None:
                made[record] -= 1
    yield from (f"record {record}: {count} too many" for record, count in made.items() if count)


RULES: Final[tuple[Rule, ...]] = (
    callers,
    preforks,
    restarts,
    signals,
    operations,
    reports,
    answers,
    balance,
)


def broken(events: Sequence[Event]) -> list[str]:
    """Return what is broken of all rules."""
    return [f"{rule.__name__}: {each}" for rule in RULES for each in rule(events)]


__all__ = ["RULES", "broken"]
