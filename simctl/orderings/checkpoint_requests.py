"""Rules about requests for checkpoint operations, and about reports that one is complete."""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from simctl.kernel.events import Event
from simctl.orderings.observed import Observed, arg
from simctl.orderings.rules import KEPT, Broken, Finding, rule

_GUIDE: Final = "checkpoint guide"
_OP: Final = "slurm_ckpt_op"
_REPORTS: Final = {
    "REQUEST_CHECKPOINT_COMP": "slurm_ckpt_comp",
    "REQUEST_CHECKPOINT_TASK_COMP": "slurm_ckpt_task_comp",
}
_CREATE: Final = 3
_RESTART: Final = 5
_GIVE_WAY: Final = (0, 4, 7)
"""ABLE, VACATE and REQUEUE."""

_MINUTE_US: Final = 60_000_000


@attrs.frozen
class Asked:
    """A request to slurmctld, the plugin calls it led to, and its answer."""

    request: Event
    calls: list[Event]
    answer: Event

    @property
    def error(self) -> int:
        """Return the error number that it was answered."""
        return int(arg(self.answer, "return_code") or 0)

    def wrong(self, what: str) -> Broken:
        """Return that something about it is wrong."""
        group = f"{self.request.name} {self.request.seq}"
        return Broken(group=group, what=what, events=(self.request, *self.calls, self.answer))


@attrs.define
class Book:
    """What the checkpoint rules need of slurmctld: requests, and calls with what they found."""

    requests: list[Asked] = attrs.field(factory=list)
    calls: list["Call"] = attrs.field(factory=list)


@attrs.frozen
class Call:
    """A call of op, comp or task_comp, and how job and step were when it began."""

    event: Event
    job: Event | None
    """The last change of the job's state before it."""

    step: Event | None
    """That of the step, if it is about one."""

    request: Event | None
    """In the course of which request it was made."""

    started_us: int
    """When the job, or the step it is about, was started last."""

    @property
    def state(self) -> str:
        """Return the job's state."""
        return "unknown" if self.job is None else str(arg(self.job, "to"))

    def wrong(self, what: str) -> Broken:
        """Return that something about it is wrong."""
        shown = [each for each in (self.job, self.step, self.event) if each is not None]
        about = self.event.step if isinstance(self.event.step, str) else f"job {self.event.job}"
        return Broken(
            group=f"{self.event.name} {self.event.seq} of {about}",
            what=what,
            events=tuple(sorted(shown, key=lambda each: each.seq)),
        )


def book(run: Observed) -> Book:
    """Read what slurmctld did about checkpoints."""
    found = Book()
    if not any(name in run.by_name for name in (_OP, "REQUEST_CHECKPOINT", *_REPORTS)):
        return found
    jobs: dict[Any, Event] = {}
    steps: dict[Any, Event] = {}
    started: dict[Any, int] = {}
    request: Event | None = None
    made: list[Event] = []
    for each in run.events:
        if each.daemon != "slurmctld":
            continue
        if each.name == "job_state":
            if arg(each, "to").startswith("RUNNING") and _from(each).startswith("PENDING"):
                started[each.job] = each.time_us
            jobs[each.job] = each
        elif each.name == "step_state":
            steps[each.step] = each
            if arg(each, "to") == "RUNNING":
                started[each.step] = each.time_us
        elif each.name in ("REQUEST_CHECKPOINT", *_REPORTS) and each.phase == "receive":
            request, made = each, []
        elif each.name == _OP or each.name in _REPORTS.values():
            if each.phase != "exit":
                since = started.get(each.step, started.get(each.job, 0))
                job, step = jobs.get(each.job), steps.get(each.step)
                found.calls.append(Call(each, job, step, request, since))
            if each.phase != "enter":
                made.append(each)
        elif request is not None and _answers(each, request):
            found.requests.append(Asked(request, made, each))
            request, made = None, []
    return found


def _from(change: Event) -> str:
    return arg(change, "from") or ""


def _answers(event: Event, request: Event) -> bool:
    if event.kind != "message" or event.phase != "send" or event.peer != request.peer:
        return False
    if event.name == "RESPONSE_CHECKPOINT":
        return request.name == "REQUEST_CHECKPOINT"
    return event.name == "RESPONSE_SLURM_RC" and arg(event, "answers") == request.name


@rule(
    22,
    "op-of-running-jobs",
    says=(
        "op is called of RUNNING jobs alone, never for RESTART; without a request only for a "
        "periodic CREATE, not within a minute of the start or of the one before"
    ),
    key="an op",
    exceptions=(
        "ABLE, VACATE and REQUEUE where jobs give way by preemption; an interval is a whole number "
        "of minutes, and the trace does not tell which"
    ),
    source=f"{_GUIDE}; held in 60 groups of recordings of real Slurm",
    functions=(_OP,),
)
def op_of_running_jobs(run: Observed) -> Iterator[Finding]:
    """Look at the job's state when each op begins."""
    preempts = run.terms.conf.get("preempt_type") != "preempt/none"
    latest: dict[Any, Event] = {}
    for call in run.once(book).calls:
        if call.event.name != _OP:
            continue
        yield next(_operation(call, latest.get(call.event.step), preempts=preempts), KEPT)
        if call.request is None:
            latest[call.event.step] = call.event


def _operation(call: Call, before: Event | None, *, preempts: bool) -> Iterator[Broken]:
    op = arg(call.event, "op")
    if call.state.partition("|")[0] != "RUNNING":
        yield call.wrong(f"op was called while the job was {call.state}")
    if op == _RESTART:
        yield call.wrong("op was called for a RESTART, which slurmctld does by itself")
    if call.request is None and not (preempts and op in _GIVE_WAY):
        if op != _CREATE:
            yield call.wrong(f"op {op} was called, and nobody asked for it")
        since = call.started_us if before is None else max(call.started_us, before.time_us)
        if call.event.time_us < since + _MINUTE_US:
            yield call.wrong("a periodic CREATE came within a minute of the start or the last")


@rule(
    23,
    "reports-of-what-runs",
    says="comp and task_comp of jobs that are RUNNING or SUSPENDED, and of steps that are there",
    key="a comp or task_comp",
    source=f"{_GUIDE}; held in 7 groups of recordings of real Slurm",
    functions=("slurm_ckpt_comp", "slurm_ckpt_task_comp"),
)
def reports_of_what_runs(run: Observed) -> Iterator[Finding]:
    """Look at the states of job and step when each is called."""
    for call in run.once(book).calls:
        if call.event.name != _OP:
            yield next(_reported(call), KEPT)


def _reported(call: Call) -> Iterator[Broken]:
    if call.state.partition("|")[0] not in ("RUNNING", "SUSPENDED"):
        yield call.wrong(f"a report was handed on while the job was {call.state}")
    if call.step is None or arg(call.step, "to") != "RUNNING":
        yield call.wrong("a report was handed on about a step that is not there")


@rule(
    62,
    "op-answered-as-it-went",
    says=(
        "a request is answered with the highest error of its ops; 0 only if one was called; one "
        "op a step; RESTART calls none"
    ),
    key="a REQUEST_CHECKPOINT that is answered",
    exceptions="a job without script and steps has nothing to ask about, and is answered 0",
    source=f"{_GUIDE}; held in 101 groups of recordings of real Slurm",
    functions=(_OP,),
)
def op_answered_as_it_went(run: Observed) -> Iterator[Finding]:
    """Hold each answer against the calls between request and answer."""
    for asked in run.once(book).requests:
        if asked.request.name == "REQUEST_CHECKPOINT":
            yield next(_answered(asked), KEPT)


def _answered(asked: Asked) -> Iterator[Broken]:
    op = arg(asked.request, "op")
    if op == _RESTART:
        if asked.calls:
            yield asked.wrong("a RESTART called op")
        return
    steps = [each.step for each in asked.calls]
    if len(set(steps)) < len(steps):
        yield asked.wrong("op was called twice of one step")
    whole = str(asked.request.step).endswith(".batch")
    if not asked.error and not asked.calls and not whole:
        yield asked.wrong("it was answered 0, and op was not called")
    failed = [each for each in asked.calls if type(each.rc) is int and each.rc]
    if failed and not asked.error:
        yield asked.wrong(f"it was answered 0, and op returned {failed[0].rc}")
    if asked.calls and asked.error and not failed:
        yield asked.wrong(f"it was answered {asked.error}, and every op went well")
    positive = [each.rc for each in failed if each.rc > 0]
    if len(positive) == len(failed) and failed and asked.error != max(positive):
        yield asked.wrong(
            f"it was answered {asked.error}, and the highest error is {max(positive)}"
        )


@rule(
    70,
    "reports-handed-on-once",
    says="a report that is answered 0 was handed on once; one that is refused at most once",
    key="a REQUEST_CHECKPOINT_COMP or REQUEST_CHECKPOINT_TASK_COMP",
    source=f"{_GUIDE}; held in 17 groups of recordings of real Slurm",
    functions=("slurm_ckpt_comp", "slurm_ckpt_task_comp"),
)
def reports_handed_on_once(run: Observed) -> Iterator[Finding]:
    """Count the calls between each report and its answer."""
    for asked in run.once(book).requests:
        wanted = _REPORTS.get(asked.request.name)
        if wanted is not None:
            yield next(_handed_on(asked, wanted), KEPT)


def _handed_on(asked: Asked, wanted: str) -> Iterator[Broken]:
    calls = [each for each in asked.calls if each.name == wanted]
    if len(calls) > 1:
        yield asked.wrong(f"{wanted} was called {len(calls)} times")
    if not asked.error and not calls:
        yield asked.wrong(f"it was answered 0, and {wanted} was not called")
    if len(calls) < len(asked.calls):
        other = next(each for each in asked.calls if each.name != wanted)
        yield asked.wrong(f"{other.name} was called, not {wanted}")
