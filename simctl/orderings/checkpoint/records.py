"""Rules about the records that the checkpoint plugin keeps of jobs and steps."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.orderings.burst_buffer.story import FINAL
from simctl.orderings.observed import ASIDE, Observed, arg, for_a_plugin
from simctl.orderings.rules import KEPT, Broken, Finding, rule

_GUIDE: Final = "checkpoint guide"
_ALLOC: Final = "slurm_ckpt_alloc_job"
_FREE: Final = "slurm_ckpt_free_job"
_COPY: Final = "slurm_ckpt_copy_job"
_UNPACK: Final = "slurm_ckpt_unpack_job"
_BUILD: Final = "switch_p_build_jobinfo"
_SUBMISSIONS: Final = (
    *("REQUEST_SUBMIT_BATCH_JOB", "REQUEST_RESOURCE_ALLOCATION", "REQUEST_CHECKPOINT"),
)
_STATES: Final = ("job_state", "step_state")
_FAILED: Final = -1


def _calls(run: Observed) -> Mapping[int, Sequence[Event]]:
    """Return each slurmctld's plugin calls, receipts and changes of jobs and steps, in order."""
    found: dict[int, list[Event]] = defaultdict(list)
    for each in run.events:
        if each.daemon != "slurmctld" or each.phase == "enter":
            continue
        if (
            each.kind == "plugin"
            or (each.kind == "message" and each.phase == "receive" and not for_a_plugin(run, each))
            or (each.kind == "state" and each.name in _STATES)
        ):
            found[int(str(each.pid))].append(each)
    return found


def _subject(call: Event) -> str:
    return f"job {call.job}" if call.step is UNSET else f"step {call.step}"


@rule(
    18,
    "checkpoint-record-made-in-place",
    says=(
        "alloc_job of a step comes right after its build_jobinfo; of a job in its submission, "
        "right after validate where a burst buffer plugin is loaded, and right before validate2"
    ),
    key="an alloc_job",
    exceptions=(
        "a restarted slurmctld makes the records of what it had saved, after a step's credential, "
        "and unpacks each at once, unless it could not be made; a job whose alloc_job fails, or "
        "whose dependency is wrong, is refused instead; that the script is written after it leaves "
        "no event"
    ),
    source=f"{_GUIDE}; held in 216 groups of recordings of real Slurm",
    functions=(_ALLOC,),
)
def checkpoint_record_made_in_place(run: Observed) -> Iterator[Finding]:
    """Look at the calls of the same slurmctld before and after each."""
    staged = "bb_p_job_validate" in run.by_name
    for found in run.once(_calls).values():
        request: Event | None = None
        calls = [each for each in found if each.kind != "state"]
        for place, call in enumerate(calls):
            if call.kind == "message":
                request = call
            elif call.name == _ALLOC:
                before = calls[place - 1] if place else None
                after = calls[place + 1] if place + 1 < len(calls) else None
                if after is not None and after.name == _UNPACK and _same(call, after):
                    continue
                if isinstance(call.step, str):
                    yield _step_record(call, before)
                else:
                    yield _job_record(call, before, after, request, staged=staged)


def _same(call: Event, other: Event | None) -> bool:
    return other is not None and (other.job, other.step) == (call.job, call.step)


def _shown(*events: Event | None) -> tuple[Event, ...]:
    return tuple(sorted((each for each in events if each is not None), key=lambda each: each.seq))


def _told(event: Event | None) -> str:
    return "nothing" if event is None else event.name


def _step_record(call: Event, before: Event | None) -> Finding:
    if call.rc == _FAILED and before is not None and before.name == "switch_p_unpack_jobinfo":
        # Of a saved step; what cannot be made is not unpacked.
        return KEPT
    built = before is not None and before.name == _BUILD and _same(call, before)
    if built and before is not None and before.rc != _FAILED:
        return KEPT
    what = f"alloc_job follows {_told(before)}"
    if built:
        what = "alloc_job follows a build_jobinfo that failed"
    return Broken(group=_subject(call), what=what, events=_shown(before, call))


def _job_record(
    call: Event, before: Event | None, after: Event | None, request: Event | None, *, staged: bool
) -> Finding:
    group = _subject(call)
    if request is None and call.rc == _FAILED:
        # Of a saved job, by a slurmctld that has just started; no record, so nothing to unpack.
        return KEPT
    if request is None or request.name not in _SUBMISSIONS:
        what = f"alloc_job was called in the course of {_told(request)}, which submits no job"
        return Broken(group=group, what=what, events=_shown(request, call))
    if staged and (before is None or before.name != "bb_p_job_validate"):
        what = f"alloc_job follows {_told(before)}, not validate"
        return Broken(group=group, what=what, events=_shown(before, call))
    refused = after is not None and after.name == _FREE
    if staged and after is not None and after.name != "bb_p_job_validate2" and not refused:
        what = f"alloc_job is followed by {_told(after)}, not validate2"
        return Broken(group=group, what=what, events=_shown(call, after))
    return KEPT


@rule(
    64,
    "checkpoint-record-freed-once",
    says=(
        "each record is made once, by alloc_job or copy_job, and freed once: of a step right after "
        "free_jobinfo, of a job when it is forgotten"
    ),
    key="a record; where the plugin keeps none, a job or step",
    exceptions=(
        "what is still there at the end of the run; a slurmctld that stops frees nothing, and what "
        "it had packed is made anew; a refused submission frees at once; without a record "
        "free_job is called of NULL"
    ),
    source=f"{_GUIDE}; held in 380 groups of recordings of real Slurm",
    functions=(_ALLOC, _COPY, _FREE),
)
def checkpoint_record_freed_once(run: Observed) -> Iterator[Finding]:
    """Follow each record through the slurmctld that made it."""
    found = run.once(_calls)
    for pid, calls in found.items():
        # The jobs of a slurmctld that is followed by another are in its saved state.
        is_last = pid == max(found)
        lives = is_last and not _was_ended(run, calls[0])
        books = _Books(purges=lives and run.terms.finished and _purges(run))
        yield from books.follow(calls)


def _was_ended(run: Observed, first: Event) -> bool:
    """Return whether the last slurmctld, with a first call, was ended by a fault."""
    return any(
        fault.seq > first.seq and str(arg(fault, "fault")).startswith(_ENDS)
        for fault in run.by_name.get("fault", ())
    )


_ENDS: Final = ("crash slurmctld", "stop slurmctld", "restart slurmctld")


def _purges(run: Observed) -> bool:
    """Return whether jobs that are over are forgotten before a run ends."""
    return bool(run.terms.conf.get("min_job_age_s", 1))


@attrs.define
class _Books:
    """The records that a slurmctld has, as far as its calls tell."""

    purges: bool
    made: dict[Any, Event] = attrs.field(factory=dict)
    """What made each record; without one of the plugin's own, of each job or step."""

    states: dict[int, str] = attrs.field(factory=dict)
    arrays: dict[int, set[int]] = attrs.field(factory=lambda: defaultdict(set))
    """The jobs of each array; a job that is in none is one by itself."""

    keeps: dict[int, set[Any]] = attrs.field(factory=lambda: defaultdict(set))
    """The plugins whose last test_stage_out said to keep a job, by the job."""

    before: Event | None = None

    def follow(self, calls: Sequence[Event]) -> Iterator[Finding]:
        """Yield what is found of each record."""
        for call in calls:
            if call.kind == "plugin":
                yield from self._see(call)
                if call.name not in ASIDE:
                    self.before = call
            elif call.name == "job_state":
                self.states[_job(call)] = arg(call, "to")
                self.arrays[_array(call)].add(_job(call))
            elif call.name == "step_state" and arg(call, "to") != "RUNNING":
                yield from self._step_over(call)
        if self.purges:
            yield from self._left(calls[-1])

    def _see(self, call: Event) -> Iterator[Finding]:
        if call.name in (_ALLOC, _COPY) and call.rc != _FAILED:
            key = self._key(call, call.rc)
            if key in self.made and isinstance(call.rc, str):
                what = f"record {key} was handed out twice"
                yield Broken(group=f"record {key}", what=what, events=(self.made[key], call))
            elif call.name == _ALLOC or isinstance(call.rc, str):
                self.made[key] = call
        elif call.name == _FREE:
            yield self._freed(call)
        elif call.name == "bb_p_job_test_stage_out" and isinstance(call.job, int):
            self.keeps[call.job].discard(call.plugin)
            if call.rc != 1:
                self.keeps[call.job].add(call.plugin)

    def _key(self, call: Event, record: Any) -> Any:
        return record if isinstance(record, str) else (call.job, call.step)

    def _freed(self, call: Event) -> Finding:
        record = arg(call, "jobinfo")
        key = self._key(call, record)
        group = f"record {record} of {_subject(call)}" if record else _subject(call)
        made = self.made.pop(key, None)
        if made is None and (record is not None or self._had_one(call)):
            what = "free_job of a record that was never made, or is freed already"
            return Broken(group=group, what=what, events=_shown(self.before, call))
        if isinstance(call.step, str):
            if self.before is None or self.before.name != "switch_p_free_jobinfo":
                what = f"free_job follows {_told(self.before)}, not free_jobinfo"
                return Broken(group=group, what=what, events=_shown(self.before, call))
            return KEPT
        state = self.states.get(_job(call), "FAILED")
        if not is_over(state):
            what = f"free_job of a job that is {state}"
            return Broken(group=group, what=what, events=_shown(made, call))
        return KEPT

    def _had_one(self, call: Event) -> bool:
        """Return whether NULL is freed that stands for a record, and was freed before."""
        if self.before is None or isinstance(call.array_job, int):
            return False
        same = self.before.name == _FREE and _same(call, self.before)
        return same and call.rc == 0

    def _step_over(self, over: Event) -> Iterator[Finding]:
        for key, made in list(self.made.items()):
            if made.step == over.step:
                del self.made[key]
                group = f"{key} of {_subject(made)}" if isinstance(key, str) else _subject(made)
                what = "the step is over, and its record was not freed"
                yield Broken(group=group, what=what, events=(made, over))

    def _left(self, last: Event) -> Iterator[Finding]:
        for made in self.made.values():
            # A task that leaves its array takes the record along; the array goes on with a copy.
            # Of what has not changed since slurmctld was started again no state is known here.
            owners = self.arrays.get(_array(made), set()) | {_job(made)}
            over = all(is_over(self.states.get(job, "")) for job in owners)
            kept = any(self.keeps.get(owner) for owner in owners)
            if over and not kept and made.step is UNSET and made.name == _ALLOC:
                what = "the job is over and forgotten, and its record was not freed"
                yield Broken(group=_subject(made), what=what, events=_shown(made, last))


def _job(event: Event) -> int:
    """Return the job that an event is about, 0 if it tells of none."""
    return event.job if isinstance(event.job, int) else 0


def _array(event: Event) -> int:
    """Return the array to which the job of an event belongs, or else the job."""
    return event.array_job if isinstance(event.array_job, int) else _job(event)


def is_over(state: str) -> bool:
    """Return whether a job is over, and has left its nodes."""
    return state.partition("|")[0] in FINAL and "COMPLETING" not in state
