"""Rules about functions that real Slurm calls beside the guide's, of plugins that have them."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from simctl.kernel.events import Event
from simctl.orderings.observed import Observed, arg, by
from simctl.orderings.rules import KEPT, MODERN, Broken, Finding, rule

_ONLY_MODERN: Final = "the switch guide has none of these functions"
_PART_COMP: Final = "switch_p_part_comp"
_RECONFIG: Final = "switch_p_reconfig"
_RESTORE: Final = "switch_p_libstate_restore"
_UNPACK: Final = "switch_p_job_suspend_info_unpack"
_SUSPEND: Final = "switch_p_job_suspend"
_RESUME: Final = "switch_p_job_resume"
_FREE: Final = "switch_p_job_suspend_info_free"
_PRE_POST: Final = (
    ("switch_p_job_step_pre_suspend", "switch_p_job_step_post_suspend"),
    ("switch_p_job_step_pre_resume", "switch_p_job_step_post_resume"),
)


@rule(
    47,
    "part-comp",
    says="part_comp is asked once per MESSAGE_EPILOG_COMPLETE and per partial report of a step, "
    "for each step of a job that loses a node and goes on, and nowhere else",
    key="a message upon which it is asked",
    exceptions="a question after a call that took time is not traced back to its message",
    source="held in 367 messages of recordings of real Slurm 18.08",
    functions=(_PART_COMP,),
    models=MODERN,
    unchecked=_ONLY_MODERN,
)
def part_comp(run: Observed) -> Iterator[Finding]:
    """Look at the message behind each question."""
    asked: Counter[int] = Counter()
    resizing = {
        request.seq
        for event in run.by_name.get("job_state", ())
        if "RESIZING" in str(arg(event, "to")) and (request := run.request_of(event)) is not None
    }
    for call in run.calls(_PART_COMP):
        request = run.request_of(call)
        if request is None or request.seq in resizing:
            continue
        asked[request.seq] += 1
        group = f"{request.name} (seq {request.seq})"
        if request.name not in ("MESSAGE_EPILOG_COMPLETE", "REQUEST_STEP_COMPLETE"):
            yield _broken(group, f"{_PART_COMP} was asked upon it", request, call)
        elif asked[request.seq] > 1:
            yield _broken(group, f"{_PART_COMP} was asked twice", request, call)
        else:
            yield KEPT


@rule(
    61,
    "reconfig",
    says="the switch's reconfig runs once as slurmctld starts, after its state is restored, and in "
    "every daemon once per REQUEST_RECONFIGURE",
    key="a call",
    exceptions="a daemon that dies at its start",
    source="held in 14 processes of recordings of real Slurm 18.08",
    functions=(_RECONFIG,),
    models=MODERN,
    unchecked=_ONLY_MODERN,
)
def reconfig(run: Observed) -> Iterator[Finding]:
    """Look at what each call was made for."""
    started: set[Any] = set()
    heeded: set[int] = set()
    for call in run.calls(_RECONFIG):
        request = run.request_of(call)
        group = f"{call.daemon} {call.pid}"
        if request is not None and request.name == "REQUEST_RECONFIGURE":
            if request.seq in heeded:
                yield _broken(group, f"{_RECONFIG} ran twice upon one request", request, call)
            else:
                heeded.add(request.seq)
                yield KEPT
        elif call.daemon != "slurmctld" or call.pid in started:
            yield _broken(group, f"{_RECONFIG} ran, and nobody had asked for it", call)
        elif not any(
            event.seq < call.seq and event.pid == call.pid for event in run.calls(_RESTORE)
        ):
            yield _broken(group, f"{_RECONFIG} ran before {_RESTORE}", call)
        else:
            started.add(call.pid)
            yield KEPT


@rule(
    55,
    "suspend-hooks",
    says="on a node a suspension is unpacked, the switch suspended before the job's steps are, or "
    "resumed after they are, and what was unpacked released; a step daemon prepares for it before "
    "it notes it",
    key="a job on a node, a step daemon",
    exceptions="a step that was launched after its job was suspended is suspended by itself; a "
    "daemon that dies",
    source="held in 12 requests of recordings of real Slurm 18.08",
    functions=(_UNPACK, _SUSPEND, _RESUME, _FREE, *(name for pair in _PRE_POST for name in pair)),
    models=MODERN,
    unchecked=_ONLY_MODERN,
)
def suspend_hooks(run: Observed) -> Iterator[Finding]:
    """Hold each call against the one that has to come before it."""
    chains: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
        ((_UNPACK,), (_SUSPEND, _RESUME)),
        ((_SUSPEND, _RESUME), (_FREE,)),
        *(((pre,), (post,)) for pre, post in _PRE_POST),
    ]
    for before, after in chains:
        first = _by_place(run, before)
        for place, later in _by_place(run, after).items():
            earlier = first.get(place, [])
            if place[2] != "slurmctld" and first:
                yield _in_order(place, before, earlier, later)


def _by_place(run: Observed, names: tuple[str, ...]) -> dict[tuple[Any, ...], list[Event]]:
    """Return the calls of functions by process, job and role, in their order."""
    return by((call for name in names for call in run.calls(name)), "pid", "job", "role")


def _in_order(
    place: tuple[Any, ...], names: tuple[str, ...], before: list[Event], after: list[Event]
) -> Finding:
    group = f"job {place[1]} in {place[2]} {place[0]}"
    for at, call in enumerate(after):
        if at >= len(before) or before[at].seq > call.seq:
            return _broken(group, f"{call.name} came before {' or '.join(names)}", call)
    return KEPT


def _broken(group: str, what: str, *events: Event) -> Broken:
    return Broken(group=group, what=what, events=events)
