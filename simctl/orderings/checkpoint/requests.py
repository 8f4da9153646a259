"""Rules about requests for checkpoint operations, and about reports that one is complete."""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_us
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

    steps: frozenset[str]
    """The job's steps that were there when it was answered."""

    def wrong(self, what: str) -> Broken:
        """Return that something about it is wrong."""
        group = f"{self.request.name} {self.request.seq}"
        return Broken(group=group, what=what, events=(self.request, *self.calls, self.answer))


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


@attrs.define
class Book:
    """What the checkpoint rules need of slurmctld: requests, and calls with what they found."""

    requests: list[Asked] = attrs.field(factory=list)
    calls: list[Call] = attrs.field(factory=list)
    _jobs: dict[Any, Event] = attrs.field(factory=dict)
    _steps: dict[Any, Event] = attrs.field(factory=dict)
    _started: dict[Any, int] = attrs.field(factory=dict)
    _request: Event | None = None
    """The request that slurmctld is at."""

    _made: list[Event] = attrs.field(factory=list)
    """The calls that it has led to."""

    def read(self, event: Event) -> None:
        """Note what slurmctld does next."""
        if event.kind == "state":
            self._changed(event)
        elif event.kind == "plugin":
            self._called(event)
        elif event.name in ("REQUEST_CHECKPOINT", *_REPORTS) and event.phase == "receive":
            self._request, self._made = event, []
        elif self._request is not None and _answers(event, self._request):
            there = _there(self._steps, self._request)
            self.requests.append(Asked(self._request, self._made, event, there))
            self._request, self._made = None, []

    def _changed(self, change: Event) -> None:
        runs = str(arg(change, "to")).startswith("RUNNING")
        if change.name == "job_state":
            self._jobs[change.job] = change
            if runs and _from(change).startswith("PENDING"):
                self._started[change.job] = change.time_us
        elif change.name == "step_state":
            self._steps[change.step] = change
            if runs:
                self._started[change.step] = change.time_us

    def _called(self, call: Event) -> None:
        if call.name == "slurm_ckpt_free_job":
            if isinstance(call.step, str):
                self._steps[call.step] = call
        elif call.name == _OP or call.name in _REPORTS.values():
            if call.phase != "exit":
                since = self._started.get(call.step, self._started.get(call.job, 0))
                job, step = self._jobs.get(call.job), self._steps.get(call.step)
                self.calls.append(Call(call, job, step, self._request, since))
            if call.phase != "enter":
                self._made.append(call)


def book(run: Observed) -> Book:
    """Read what slurmctld did about checkpoints."""
    found = Book()
    if any(name in run.by_name for name in (_OP, "REQUEST_CHECKPOINT", *_REPORTS)):
        for each in run.events:
            if each.daemon == "slurmctld":
                found.read(each)
    return found


def _there(steps: dict[Any, Event], request: Event) -> frozenset[str]:
    """Return the steps of the job that a request is about."""
    found = (each for each in steps.values() if each.job == request.job)
    return frozenset(str(each.step) for each in found if arg(each, "to") == "RUNNING")


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
        "op is called of RUNNING jobs alone, and of steps that are there, never for RESTART; "
        "without a request only for a periodic CREATE, not within a minute of the start or of the "
        "one before"
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
        if call.request is None and arg(call.event, "op") == _CREATE:
            latest[call.event.step] = call.event


def _operation(call: Call, before: Event | None, *, preempts: bool) -> Iterator[Broken]:
    op = arg(call.event, "op")
    if call.state.partition("|")[0] != "RUNNING":
        yield call.wrong(f"op was called while the job was {call.state}")
    whole = str(call.event.step).endswith(".batch")
    if not whole and (call.step is None or arg(call.step, "to") != "RUNNING"):
        yield call.wrong("op was called of a step that is not there")
    if op == _RESTART:
        yield call.wrong("op was called for a RESTART, which slurmctld does by itself")
    if call.request is None and not (preempts and op in _GIVE_WAY):
        if op != _CREATE:
            yield call.wrong(f"op {op} was called, and nobody asked for it")
        since = call.started_us if before is None else max(call.started_us, begin_us(before))
        if begin_us(call.event) < since + _MINUTE_US:
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
    if asked.calls and whole and asked.request.step not in steps and {*steps} != asked.steps:
        there = ", ".join(sorted(asked.steps)) or "none"
        yield asked.wrong(f"op was called of {', '.join(map(str, steps))}; its steps are {there}")
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
