"""Rules about the credential of a step in slurmctld: made, answered with, completed, released."""

import bisect
import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.orderings.observed import Observed, arg, by, failed, pid_of
from simctl.orderings.rules import KEPT, Finding, Kept, broken, rule
from simctl.wire.hostlist import expand

ALLOC: Final = "switch_p_alloc_jobinfo"
BUILD: Final = "switch_p_build_jobinfo"
COPY: Final = "switch_p_copy_jobinfo"
PACK: Final = "switch_p_pack_jobinfo"
UNPACK: Final = "switch_p_unpack_jobinfo"
FREE: Final = "switch_p_free_jobinfo"
COMPLETE: Final = "switch_p_job_step_complete"
PART: Final = "switch_p_job_step_part_comp"
ATTACH: Final = "switch_p_job_attach"
CKPT_ALLOC: Final = "slurm_ckpt_alloc_job"
CKPT_FREE: Final = "slurm_ckpt_free_job"
REPLY: Final = "RESPONSE_JOB_STEP_CREATE"
REPORT: Final = "REQUEST_STEP_COMPLETE"
EPILOG: Final = "MESSAGE_EPILOG_COMPLETE"

_SEQ: Final = operator.attrgetter("seq")
_OF_A_STEP: Final = (ALLOC, BUILD, COPY, PACK, UNPACK, FREE, COMPLETE, CKPT_ALLOC, CKPT_FREE)
STEP: Final = "a step that was created: each call of build"
OPEN: Final = "a step that is open when the run ends, or when slurmctld stops"


@attrs.define(eq=False)
class StepLife:
    """A step from the making of its credential on, as slurmctld sees it."""

    step: str
    build: Event
    alloc: Event | None
    events: list[Event] = attrs.field(factory=list)
    """What slurmctld does about it after build, and the reports about it that come in."""

    until: float = float("inf")
    """The number of the event with which another step of the same name begins."""

    def __str__(self) -> str:
        return f"step {self.step}"

    def all(self, name: str) -> list[Event]:
        """Return its events of a name."""
        return [event for event in self.events if event.name == name]


@lru_cache(maxsize=2)
def lives(run: Observed) -> Sequence[StepLife]:
    """Return the steps that were created."""
    calls = (call for name in _OF_A_STEP for call in run.calls(name))
    acts = [each for each in (*calls, *run.sent(REPLY), *run.received(REPORT)) if _is_of_step(each)]
    return [life for step, events in by(acts, "step").items() for life in _lives_of(step, events)]


def _is_of_step(event: Event) -> bool:
    return event.role == "slurmctld" and event.step is not UNSET


def _lives_of(step: str, events: list[Event]) -> Iterator[StepLife]:
    life: StepLife | None = None
    alloc: Event | None = None
    for event in events:
        if event.name == ALLOC:
            alloc = event
        elif event.name == BUILD:
            if life is not None:
                life.until = (alloc or event).seq
                yield life
            life, alloc = StepLife(step, event, alloc), None
        elif life is not None:
            if alloc is not None:
                # Made anew for what was saved, when slurmctld has started again.
                life.events.append(alloc)
                alloc = None
            life.events.append(event)
    if life is not None:
        yield life


@rule(
    12,
    "step-creation",
    says="in the request for a step: alloc, build, checkpoint alloc, then the reply with the "
    "packed credential; in guide a copy is packed, and released after the reply",
    key=STEP,
    exceptions="build failed: completed and released at once, and the reply holds no credential; "
    "slurmctld dies where a record cannot be made",
    source="switch guide; held in 91 steps of recordings of real Slurm",
    functions=(ALLOC, BUILD, COPY, PACK, FREE, CKPT_ALLOC),
)
def step_creation(run: Observed) -> Iterator[Finding]:
    """Look at what slurmctld does about each new step until it has answered."""
    for life in lives(run):
        names = [event.name for event in life.events if event.name != REPORT]
        request = run.request_of(life.build)
        if life.alloc is None or life.alloc.pid != life.build.pid:
            yield broken(life, "its credential was built and never allocated", life.build)
        elif request is None or request.name != "REQUEST_JOB_STEP_CREATE":
            yield broken(life, "nobody asked for it", life.build)
        elif failed(life.build):
            yield _like(run, life, names, [COMPLETE, FREE, CKPT_FREE])
        elif run.terms.model == "guide":
            yield _like(run, life, names, [CKPT_ALLOC, COPY, PACK, REPLY, FREE])
        else:
            yield _like(run, life, names, [CKPT_ALLOC, PACK, REPLY])


def _like(run: Observed, life: StepLife, names: list[str], wanted: list[str]) -> Finding:
    """Hold what followed build against what should; less of it where slurmctld got no further."""
    if names[: len(wanted)] == wanted:
        return _copy_handled(life) if COPY in wanted else KEPT
    if names == wanted[: len(names)] and not _went_on(run, life.build):
        return KEPT
    place = next(
        (i for i, name in enumerate(wanted) if i >= len(names) or names[i] != name), len(wanted)
    )
    came = names[place] if place < len(names) else "nothing"
    after = [event for event in life.events if event.name != REPORT][: place + 1]
    before = wanted[place - 1] if place else BUILD
    what = f"after {before} came {came}, not {wanted[place]}"
    return broken(life, what, life.build, *after[-2:])


def _copy_handled(life: StepLife) -> Finding:
    """Look whether it is the copy that is packed for the reply, and released after it."""
    acts = [event for event in life.events if event.name != REPORT]
    copied, packed, freed = acts[1], acts[2], acts[4]
    if failed(copied):
        return KEPT
    for call in (packed, freed):
        if _object(call) != copied.rc:
            what = f"{call.name} was called with {_object(call)}, and the copy is {copied.rc}"
            return broken(life, what, copied, call)
    return KEPT


def _went_on(run: Observed, event: Event) -> bool:
    """Return whether the process of an event lived on, and had the time to do what it began."""
    pid = pid_of(event)
    return run.terms.finished and not run.died(pid)


@rule(
    13,
    "step-complete-once",
    says="job_step_complete is called once for each credential that was built, also if that "
    "failed; the switch call after it releases the same credential, and none is released without "
    "it",
    key="a credential: that of a step, which a restart of slurmctld saves and reads back",
    exceptions=f"{OPEN}; a step whose saved state cannot be read back. A copy is only released",
    source="switch guide; held in 93 credentials of recordings of real Slurm",
    functions=(COMPLETE, FREE),
)
def step_complete_once(run: Observed) -> Iterator[Finding]:
    """Count the completions of each credential, and look at what follows them."""
    for life in lives(run):
        completed = life.all(COMPLETE)
        freed = life.all(FREE)
        lost = any(event.step == life.step for event in run.by_name.get("incomplete_state", ()))
        if len(completed) > 1:
            yield broken(life, "it was completed twice", *completed[:2])
        elif completed:
            after = _next_calls(run, completed[0], 1)
            if not after and not _went_on(run, completed[0]):
                continue
            if not after or after[0].name != FREE or _object(after[0]) != _object(completed[0]):
                what = "after its completion its credential was not released"
                yield broken(life, what, completed[0], *after)
            elif len(freed) > 1 + len(life.all(COPY)):
                yield broken(life, "its credential was released without completion", *freed[:2])
            else:
                yield KEPT
        elif len(freed) > len(life.all(COPY)) and not lost:
            yield broken(life, "its credential was released, not completed", life.build, freed[-1])
        elif _is_over(run, life) and not lost:
            yield broken(life, "it is over, and job_step_complete was never called", life.build)
        else:
            yield KEPT


def _is_over(run: Observed, life: StepLife) -> bool:
    """Return whether a step has to be over at the end of the run: its job is."""
    if not _went_on(run, life.build):
        return False
    if life.until < float("inf"):
        return True
    changes = run.job_states.get(int(str(life.build.job)), ())
    last = str(arg(changes[-1], "to")) if changes else ""
    base = last.partition("|")[0]
    return base not in ("RUNNING", "SUSPENDED") and "COMPLETING" not in last


def _object(event: Event) -> Any:
    return arg(event, "switch_job")


def _next_calls(run: Observed, event: Event, count: int) -> list[Event]:
    """Return the plugin calls that a process makes next."""
    calls = run.calls_of(pid_of(event))
    place = bisect.bisect_right(calls, event.seq, key=_SEQ)
    return list(calls[place : place + count])


@rule(
    14,
    "step-complete-has-a-cause",
    says="job_step_complete is called upon a report of the step, at the end of its job, or when "
    "its credential could not be built",
    key=STEP,
    exceptions="a step all of whose nodes were lost, in a job that goes on without them",
    source="held in 88 credentials of recordings of real Slurm",
    functions=(COMPLETE,),
)
def step_complete_has_a_cause(run: Observed) -> Iterator[Finding]:
    """Look at what came before each completion."""
    for life in lives(run):
        for call in life.all(COMPLETE)[:1]:
            reports = [each for each in life.all(REPORT) if each.seq < call.seq]
            state = run.job_state(call.job, call.seq)
            request = run.request_of(call)
            upon_report = request is not None and request.name == REPORT
            if upon_report and request is not None and request.step != life.step:
                what = f"it was completed upon a report of step {request.step}"
                yield broken(life, what, request, call)
            elif reports or failed(life.build) or _over_with(run, life, call, state):
                yield KEPT
            else:
                yield broken(life, f"nobody had reported it, and its job was {state}", call)


def _over_with(run: Observed, life: StepLife, call: Event, state: str) -> bool:
    """Return whether the job is over at a completion, or goes on without the nodes of the step."""
    if "COMPLETING" in state or state == "PENDING":
        return True
    return all(_lost(run, node, life.build, call) for node in nodes_of(life.build))


@rule(
    40,
    "step-complete-arguments",
    says="job_step_complete is called with the credential that was built and the nodes it was "
    "built for",
    key=STEP,
    exceptions="after a restart of slurmctld it is another object, with what was saved of the "
    "first",
    source="held in 87 steps of recordings of real Slurm",
    functions=(BUILD, COMPLETE),
)
def step_complete_arguments(run: Observed) -> Iterator[Finding]:
    """Compare the arguments of the two calls."""
    for life in lives(run):
        for call in life.all(COMPLETE)[:1]:
            same = call.pid != life.build.pid or _object(call) == _object(life.build)
            if not same or arg(call, "nodelist") != arg(life.build, "nodelist"):
                what = (
                    f"built: {_object(life.build)} for {arg(life.build, 'nodelist')}, completed: "
                    f"{_object(call)} for {arg(call, 'nodelist')}"
                )
                yield broken(life, what, life.build, call)
            else:
                yield KEPT


@rule(
    44,
    "step-complete-on-the-last-report",
    says="the report that completes the set of a step's nodes completes the step, in the request "
    "that brings it; none before does",
    key=STEP,
    exceptions="the end of the job completes a step whose reports are missing; nodes that went "
    "DOWN, whose slurmd started anew, or that the job has left as the switch was told, do not "
    "count; a step whose saved state cannot be read",
    source="held in 90 steps of recordings of real Slurm",
    functions=(COMPLETE,),
)
def step_complete_on_the_last_report(run: Observed) -> Iterator[Finding]:
    """Follow which nodes have reported."""
    for life in lives(run):
        if not failed(life.build):
            yield _on_last_report(run, life)


def _on_last_report(run: Observed, life: StepLife) -> Finding:
    missing = set(range(len(nodes_of(life.build))))
    completed = next(iter(life.all(COMPLETE)), None)
    for report in life.all(REPORT):
        if completed is not None and completed.seq < report.seq:
            break
        missing -= set(range(arg(report, "range_first"), arg(report, "range_last") + 1))
        if not missing:
            upon = None if completed is None else run.request_of(completed)
            lost = any(e.step == life.step for e in run.by_name.get("incomplete_state", ()))
            if completed is None and (lost or not _went_on(run, report)):
                return KEPT
            if upon is not report:
                what = "its last node has reported, and that did not complete it"
                return broken(life, what, report, *([completed] if completed else ()))
            return KEPT
    if completed is not None and missing:
        nodes = nodes_of(life.build)
        left = _left(run, life, completed)
        missing -= {
            rank
            for rank in missing
            if nodes[rank] in left or _lost(run, nodes[rank], life.build, completed)
        }
        request = run.request_of(completed)
        if missing and request is not None and request.name == REPORT:
            what = f"{len(missing)} of its nodes had not reported when a report completed it"
            return broken(life, what, request, completed)
    return KEPT


def _left(run: Observed, life: StepLife, completed: Event) -> set[str]:
    """Return the nodes of which a switch that wants to know was told before a step's end."""
    return {
        name
        for event in run.calls(PART)
        if event.step == life.step and life.build.seq < event.seq < completed.seq
        for name in expand(str(arg(event, "nodelist")))
    }


@rule(
    56,
    "step-record-released",
    says="job_step_complete, free of the credential, free of the checkpoint record: three calls "
    "in a row",
    key=STEP,
    exceptions="build failed: there is no checkpoint record, and NULL is released",
    source="held in 88 steps of recordings of real Slurm",
    functions=(COMPLETE, FREE, CKPT_FREE),
)
def step_record_released(run: Observed) -> Iterator[Finding]:
    """Look at the two calls after each completion."""
    for life in lives(run):
        for call in life.all(COMPLETE)[:1]:
            wanted = [FREE, CKPT_FREE]
            after = _next_calls(run, call, len(wanted))
            if [each.name for each in after] == wanted:
                yield KEPT
            elif len(after) == len(wanted) or _went_on(run, call):
                came = ", ".join(each.name for each in after) or "nothing"
                yield broken(life, f"after {COMPLETE} came {came}", call, *after)


def _lost(run: Observed, node: str, first: Event, last: Event) -> bool:
    """Return whether a node went DOWN, or its slurmd started anew, between two events."""
    if run.node_was_down(node, first.seq, last.seq):
        return True
    return any(
        first.seq < event.seq < last.seq and arg(event, "node_name") == node
        for event in run.received("MESSAGE_NODE_REGISTRATION_STATUS")
    )


@lru_cache(maxsize=4096)
def _expanded(text: str) -> tuple[str, ...]:
    return tuple(expand(text))


def nodes_of(build: Event) -> tuple[str, ...]:
    """Return the nodes for which a credential was built."""
    return _expanded(str(arg(build, "nodelist")))


@rule(
    39,
    "attach-matches-layout",
    says="attach has the nodes and tasks of the step as build had them, its node's place among "
    "them, its place on the node, and a rank that nobody else has; both ascend on a node",
    key="a call of attach, and the build of its step",
    source="switch guide; held in 622 calls of recordings of real Slurm",
    functions=(BUILD, ATTACH),
)
def attach_matches_layout(run: Observed) -> Iterator[Finding]:
    """Compare the arguments of attach with those of build."""
    by_step = by(run.calls(ATTACH), "step")
    for life in lives(run):
        calls = [
            call for call in by_step.get(life.step, ()) if life.build.seq < call.seq < life.until
        ]
        if calls:
            yield from _laid_out(life, calls)


def _laid_out(life: StepLife, calls: list[Event]) -> Iterator[Finding]:
    nodes = nodes_of(life.build)
    nprocs = arg(life.build, "nprocs")
    ranks: dict[int, Event] = {}
    places: dict[tuple[int, int], Event] = {}
    for call in calls:
        nodeid, rank = arg(call, "nodeid"), arg(call, "rank")
        place = (nodeid, arg(call, "procid"))
        if (arg(call, "nnodes"), arg(call, "nprocs")) != (len(nodes), nprocs):
            what = f"it was built for {len(nodes)} nodes and {nprocs} tasks, attach was told others"
            yield broken(life, what, life.build, call)
        elif not 0 <= nodeid < len(nodes) or nodes[nodeid] != call.node:
            yield broken(life, f"node {nodeid} of it is not {call.node}", life.build, call)
        elif not 0 <= rank < nprocs or rank in ranks or rank != call.task:
            yield broken(life, f"rank {rank} attached in task {call.task}", life.build, call)
        elif place in places:
            yield broken(life, f"two tasks are number {place[1]} of node {nodeid}", call)
        else:
            ranks[rank] = places[place] = call
            yield KEPT
    for one, other in pairwise(sorted(places)):
        first, second = places[one], places[other]
        if one[0] == other[0] and arg(first, "rank") > arg(second, "rank"):
            yield broken(life, f"ranks do not ascend on node {one[0]}", first, second)


_OBJECT_KEYS: Final[Mapping[str, str]] = {
    **{
        f"switch_p_{verb}_jobinfo": "switch_job"
        for verb in ("build", "copy", "pack", "unpack", "free", "get", "print", "sprint", "sprintf")
    },
    COMPLETE: "switch_job",
    "switch_p_get_data_jobinfo": "switch_job",
    "switch_p_print_jobinfo": "switch_job",
    "switch_p_sprint_jobinfo": "switch_job",
    **{
        f"switch_p_{verb}_node_info": "switch_node"
        for verb in ("build", "pack", "unpack", "free", "print", "sprintf")
    },
    **{f"switch_p_job_{verb}": "switch_job" for verb in ("preinit", "init", "attach", "fini")},
    "switch_p_job_postfini": "switch_job",
}
_RELEASES: Final = (FREE, "switch_p_free_node_info")


@rule(
    16,
    "no-use-after-free",
    says="no call is made with a credential or node record that was released, and none is released "
    "twice",
    key="an object of the switch plugin in a process; a copy is another object",
    exceptions="plugins that make no objects: then there is none to look at",
    source="switch guide; held in 512 objects of recordings of real Slurm",
    functions=tuple(_OBJECT_KEYS),
)
def no_use_after_free(run: Observed) -> Iterator[Finding]:
    """Look for calls with an object that come after its release in the same process."""
    freed: dict[tuple[Any, Any], Event] = {}
    for name in _RELEASES:
        key = _OBJECT_KEYS[name]
        for call in run.calls(name):
            held = arg(call, key)
            if held is None:
                continue
            first = freed.setdefault((call.pid, held), call)
            if first is not call:
                yield broken(
                    f"object {held} of process {call.pid}", "it was released twice", first, call
                )
    if not freed:
        return
    late = 0
    for name, key in _OBJECT_KEYS.items():
        if name in _RELEASES:
            continue
        for call in run.calls(name):
            end = freed.get((call.pid, arg(call, key)))
            if end is not None and end.seq < call.seq:
                late += 1
                group = f"object {arg(call, key)} of process {call.pid}"
                yield broken(group, f"{name} was called with it after its release", end, call)
    if len(freed) > late:
        yield Kept(len(freed) - late)


@rule(
    38,
    "credentials-balance",
    says="each credential that slurmctld, slurmd or srun makes or is sent is released once in that "
    "process; a slurmstepd releases none",
    key="a step in a process",
    exceptions=f"a process that was killed or died; {OPEN}",
    source="held in 512 objects of recordings of real Slurm",
    functions=(ALLOC, COPY, UNPACK, FREE),
)
def credentials_balance(run: Observed) -> Iterator[Finding]:
    """Count, for each step in each process, what was got and what was released."""
    guide = run.terms.model == "guide"
    makers = (ALLOC, COPY) if guide else (ALLOC, UNPACK)
    made = [call for name in makers for call in run.calls(name)]
    got = by((call for call in made if call.name != ALLOC or not failed(call)), "pid", "step")
    freed = by(run.calls(FREE), "pid", "step")
    completed = {(call.pid, call.step) for call in run.calls(COMPLETE)}
    for key in dict.fromkeys((*got, *freed)):
        had, gone = got.get(key, []), freed.get(key, [])
        role = (had or gone)[0].role
        group = f"step {key[1]} in {role} {key[0]}"
        surplus = len(had) - len(gone)
        if role == "manager":
            yield broken(group, "it released its credential", gone[0]) if gone else KEPT
        elif surplus < 0:
            yield broken(group, f"{len(had)} credentials and {len(gone)} releases", *had, *gone)
        elif not surplus:
            yield KEPT
        elif run.left(int(str(key[0]))) and not run.died(int(str(key[0]))):
            if role == "slurmctld" and surplus == 1 and key not in completed:
                yield KEPT
            else:
                what = f"{len(had)} credentials and {len(gone)} releases"
                yield broken(group, what, *had, *gone)
