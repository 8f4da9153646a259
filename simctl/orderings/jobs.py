"""Rules about jobs and nodes in slurmctld: their states, starts and ends; and about messages."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.orders import grouped
from simctl.orderings.controller_deaths import may_be_older
from simctl.orderings.observed import TERMINATIONS, Observed, arg, between, by, failed, pid_of
from simctl.orderings.rules import GUIDE, KEPT, Finding, broken, rule
from simctl.orderings.steps.steps import BUILD
from simctl.wire.states import JOB_CHANGES

_NO_FRAG: Final = "switch_p_no_frag"
_EPILOG: Final = "MESSAGE_EPILOG_COMPLETE"
_REGISTRATION: Final = "MESSAGE_NODE_REGISTRATION_STATUS"
_LAUNCH: Final = "REQUEST_BATCH_JOB_LAUNCH"
_SECOND_US: Final = 1_000_000
_RUNS: Final = ("RUNNING", "RUNNING|STOPPED")

_CHANGES: Final = {
    str(state): {str(each) for each in after} for state, after in JOB_CHANGES.items()
}


@rule(
    17,
    "no-frag",
    says="while the switch answers no_frag with true, no job starts as long as another is "
    "completing and ended less than KillWait + 2 seconds ago",
    key="a start of a job after an answer of true",
    exceptions="no call that failed: it counts as true; a job that the pass which asked preempts",
    source="switch guide; Slurm 18.08 has no such function",
    functions=(_NO_FRAG,),
    models=GUIDE,
    unchecked="model modern has no such function",
)
def no_frag(run: Observed) -> Iterator[Finding]:
    """Follow the switch's last answer, and the jobs that are completing."""
    events = [*run.calls(_NO_FRAG), *run.by_name.get("job_state", ())]
    if not run.calls(_NO_FRAG):
        return
    events.sort(key=lambda event: event.seq)
    span_us = (int(run.terms.conf.get("kill_wait_s", 30)) + 2) * _SECOND_US
    answer: Event | None = None
    completing: dict[Any, Event] = {}
    for event in events:
        if event.name == _NO_FRAG:
            answer = event
            continue
        before, after = str(arg(event, "from")), str(arg(event, "to"))
        if "COMPLETING" in after and "COMPLETING" not in before:
            completing[event.job] = event
        elif "COMPLETING" not in after:
            completing.pop(event.job, None)
        started = before.startswith("PENDING") and after.startswith("RUNNING")
        if started and answer is not None and (answer.rc is True or failed(answer)):
            young = [
                each
                for each in completing.values()
                if each.time_us + span_us >= answer.time_us
                and not _is_ended_by_pass(run, each, answer)
            ]
            if young:
                what = f"job {event.job} started while job {young[0].job} was completing"
                yield broken(f"start of job {event.job}", what, answer, event)
            else:
                yield KEPT


def _is_ended_by_pass(run: Observed, change: Event, answer: Event) -> bool:
    """Return whether the pass that had an answer has itself let a job complete, by preemption."""
    cause: Event | None = change
    while cause is not None and cause.seq > answer.seq:
        if cause.pid != answer.pid or cause.phase == "receive":
            return False
        cause = run.at(cause.cause) if cause.cause is not UNSET else None
    return cause is answer


@rule(
    46,
    "completing-ends-with-the-last-node",
    says="a job is COMPLETING until every node that was told to end it has reported it gone",
    key="the end of a run of a job",
    exceptions="nodes that went DOWN do not count, nor those whose slurmd started anew and has "
    "nothing of the job, nor those that were COMPLETING as the run began, which still end another "
    "run; the flag that a requeue sets and clears before any node is told. "
    "EpilogSlurmctld, or a burst buffer plugin, may keep it longer",
    source="held in 95 ends of jobs in recordings of real Slurm",
)
def completing_ends_with_the_last_node(run: Observed) -> Iterator[Finding]:
    """Look at who was told and who has reported when each job stops being COMPLETING."""
    told = by((event for name in TERMINATIONS for event in run.sent(name)), "job")
    gone = by(run.received(_EPILOG), "job")
    for job, changes in run.job_states.items():
        since = began = 0
        for change in changes:
            before, after = str(arg(change, "from")), str(arg(change, "to"))
            if "COMPLETING" in after:
                since = since or change.seq
            elif "COMPLETING" in before:
                theirs = [
                    each
                    for each in told[job]
                    if since < each.seq < change.seq and not _ends_another_run(run, each, began)
                ]
                yield _all_gone(run, job, since, change, theirs, gone[job])
                since = 0
            elif after == "RUNNING":
                began = change.seq


def _ends_another_run(run: Observed, told: Event, began: int) -> bool:
    """Return whether a node that was told to end a job was COMPLETING as the job's run began."""
    return "COMPLETING" in run.node_state_at(str(told.peer).partition("@")[2], began)


def _all_gone(
    run: Observed, job: int, since: int, change: Event, told: list[Event], gone: list[Event]
) -> Finding:
    reported = {arg(each, "node_name") for each in gone if since < each.seq < change.seq}
    for each in told:
        node = str(each.peer).partition("@")[2]
        if node in reported:
            continue
        anew = any(
            event.seq > each.seq and event.seq < change.seq
            for event in run.received(_REGISTRATION)
            if arg(event, "node_name") == node
        )
        if not anew and not run.node_was_down(node, since, change.seq):
            what = f"it was over before {node} had reported it gone"
            return broken(f"end of job {job}", what, each, change)
    return KEPT


@rule(
    48,
    "job-states",
    says="each change of a job's state begins where the last one ended, and is one of the graph: "
    "no run ends without COMPLETING, a pending job is cancelled at once, STAGE_OUT comes only at "
    "the end of a run",
    key="a job",
    exceptions="a job that is submitted again under its id begins anew",
    source="the state word of Slurm 19.05; held in 411 jobs of recordings of real Slurm 18.08, of "
    "which the graph was drawn",
)
def job_states(run: Observed) -> Iterator[Finding]:
    """Follow each job through its states, from what a slurmctld has read of it on."""
    read = by(run.by_name.get("restored", ()), "job")
    for job, changes in run.job_states.items():
        wrong: Finding = KEPT
        last: Event | None = None
        state = "nothing"
        for change in sorted((*changes, *read[job]), key=lambda each: each.seq):
            before, after = arg(change, "from"), arg(change, "to")
            if change.name == "restored":
                after = arg(change, "state")
            elif before is not None:
                if state != before:
                    what = f"it was {state}, and went from {before} to {after}"
                    wrong = broken(f"job {job}", what, *([last] if last else []), change)
                elif after not in _CHANGES.get(before, ()):
                    wrong = broken(f"job {job}", f"no job goes from {before} to {after}", change)
            elif not str(after).startswith("PENDING"):
                wrong = broken(f"job {job}", f"it began as {after}", change)
            last, state = change, str(after)
        yield wrong


_AVAILABLE: Final = ("IDLE", "MIXED", "ALLOCATED")


@rule(
    49,
    "node-completing",
    says="a node is COMPLETING from the end of a job on it, which it is told, until it reports the "
    "job gone; jobs are put only on nodes that are IDLE, MIXED or ALLOCATED",
    key="a node",
    exceptions="a node that goes DOWN, or that registers without what it was to end. One that "
    "registers with jobs takes them up again, as all do upon a reconfiguration",
    source="held in 774 changes of nodes in recordings of real Slurm",
)
def node_completing(run: Observed) -> Iterator[Finding]:
    """Look at the flag in the changes of each node's state."""
    told = _by_node(event for name in TERMINATIONS for event in run.sent(name))
    gone = _by_node((*run.received(_EPILOG), *run.received(_REGISTRATION)))
    for node, changes in run.node_states.items():
        wrong: Finding = KEPT
        since: Event | None = None
        for change in changes:
            before, after = str(arg(change, "from")), str(arg(change, "to"))
            if "COMPLETING" in after and "COMPLETING" not in before:
                since = change
            elif "COMPLETING" in before and "COMPLETING" not in after and since is not None:
                if not between(told[node], since.seq, change.seq):
                    wrong = broken(f"node {node}", "it was told to end no job", since, change)
                down = run.node_was_down(node, since.seq, change.seq + 1)
                if not between(gone[node], since.seq, change.seq) and not down:
                    wrong = broken(f"node {node}", "it had reported nothing gone", since, change)
                since = None
            if _gets_job_in_vain(run, change, before, after):
                wrong = broken(f"node {node}", f"it was {before} and got a job", change)
        if since is not None and not between(told[node], since.seq, run.events[-1].seq + 1):
            wrong = broken(f"node {node}", "it was told to end no job", since)
        yield wrong


def _by_node(events: Iterable[Event]) -> Mapping[str, list[Event]]:
    """Return messages by the node that they go to or come from, each node's in order."""
    in_order = sorted(events, key=lambda event: event.seq)
    return grouped(in_order, lambda event: str(event.peer).partition("@")[2])


def _gets_job_in_vain(run: Observed, change: Event, before: str, after: str) -> bool:
    """Return whether a node gets a job that cannot take one."""
    if after.partition("|")[0] not in ("ALLOCATED", "MIXED"):
        return False
    if before.partition("|")[0] in _AVAILABLE:
        return False
    request = run.request_of(change)
    return request is None or request.name not in (_REGISTRATION, "REQUEST_RECONFIGURE")


@rule(
    58,
    "running-for-steps",
    says="a credential is built, and a batch script launched, only for a job that is RUNNING and "
    "nothing else; a script is launched no more often than its job starts",
    key="a job",
    exceptions="a job that somebody stopped with a signal shows STOPPED besides; a launch whose "
    "answer a cut link has swallowed, or a slurmd that died, is made again; a slurmctld that has "
    "read an older state than a job was in goes by that, until it changes it",
    source="held in 152 jobs of recordings of real Slurm",
    functions=(BUILD,),
)
def running_for_steps(run: Observed) -> Iterator[Finding]:
    """Look at the state of the job at each build and each launch."""
    launched = by((e for e in run.sent(_LAUNCH) if e.seq not in run.unreachable), "job")
    built = by(run.calls(BUILD), "job")
    answered = Counter(
        answer.job
        for answer in run.sent("RESPONSE_SLURM_RC")
        if answer.role == "slurmd" and arg(answer, "answers") == _LAUNCH
    )
    answer_lost = any(
        (arg(each, "rpc"), arg(each, "to")) == ("RESPONSE_SLURM_RC", "slurmctld")
        for each in run.by_name.get("unreachable", ())
    )
    for job, changes in run.job_states.items():
        acts = [*launched[job], *built[job]]
        if not acts:
            continue
        wrong: Finding = KEPT
        for act in acts:
            state = run.job_state(job, act.seq)
            if state not in _RUNS and not _runs_as_read(run, act, changes):
                wrong = broken(f"job {job}", f"{act.name} while it was {state}", act)
        starts = [
            change
            for change in changes
            if str(arg(change, "from")).startswith("PENDING")
            and str(arg(change, "to")).startswith("RUNNING")
        ]
        heard = min(len(launched[job]), answered[job])
        if heard > len(starts) and not answer_lost:
            what = f"{len(starts)} starts, and its script was launched {len(launched[job])} times"
            wrong = broken(f"job {job}", what, *launched[job])
        yield wrong


def _runs_as_read(run: Observed, act: Event, changes: Sequence[Event]) -> bool:
    """Return whether a job is RUNNING for a slurmctld that has read an older state than it had."""
    before = [change for change in changes if change.seq < act.seq]
    after = [change for change in changes if change.seq > act.seq]
    if not before or before[-1].pid == act.pid or (after and arg(after[0], "from") not in _RUNS):
        return False
    return may_be_older(run, pid_of(act), act.job)


@rule(
    53,
    "no-receipt-before-its-sending",
    says="each receipt of a message is that of a sending before it, and none is received twice",
    key="a kind of message",
    exceptions="a message that is sent again is another one, and so is a copy that a fault has "
    "made of it; none need arrive",
    source="held in 1,360 messages of recordings of real Slurm",
)
def no_receipt_before_its_sending(run: Observed) -> Iterator[Finding]:
    """Hold each receipt against the sending that caused it."""
    for name, events in run.by_name.items():
        if events[0].kind != "message":
            continue
        taken: dict[int, Event] = {}
        wrong = False
        for event in events:
            if event.phase != "receive" or event.cause is UNSET:
                continue
            cause = event.cause
            sending = run.at(cause)
            if sending is not None and sending.name == "duplicate" and arg(sending, "rpc") == name:
                sending = run.at(sending.cause) if sending.cause is not UNSET else None
            if sending is None or sending.name != name or cause > event.seq:
                wrong = True
                yield broken(name, f"it was received before it was sent (seq {cause})", event)
            elif cause in taken:
                wrong = True
                yield broken(name, "one sending was received twice", taken[cause], event)
            taken[cause] = event
        if taken and not wrong:
            yield KEPT


_SUBMIT: Final = "REQUEST_SUBMIT_BATCH_JOB"
_ANSWER: Final = "RESPONSE_SUBMIT_BATCH_JOB"
_VALIDATE: Final = "bb_p_job_validate"
_VALIDATE2: Final = "bb_p_job_validate2"
_CKPT_ALLOC: Final = "slurm_ckpt_alloc_job"
_CKPT_FREE: Final = "slurm_ckpt_free_job"


@rule(
    68,
    "submission",
    says="in the request that submits a batch job: bb validate, checkpoint alloc, bb validate2, "
    "questions about its stage-in, then the answer; none of the first three after it",
    key="a submission",
    exceptions="one that is refused releases its checkpoint record at the end, if it has one",
    source="burst buffer and checkpoint guides; held in 105 submissions of recordings of real "
    "Slurm",
    functions=(_VALIDATE, _CKPT_ALLOC, _VALIDATE2),
)
def submission(run: Observed) -> Iterator[Finding]:
    """Look at the calls between each request and its answer."""
    calls = sorted(
        (
            call
            for name in (_VALIDATE, _CKPT_ALLOC, _VALIDATE2, _CKPT_FREE, "bb_p_job_test_stage_in")
            for call in run.calls(name)
            if call.step is UNSET
        ),
        key=lambda call: call.seq,
    )
    ends = [
        event
        for event in run.by_name.get(_ANSWER, ())
        if event.phase == "send" and event.role == "slurmctld"
    ]
    starts = run.received(_SUBMIT)
    for pid in run.pids("slurmctld"):
        # One that dies leaves its last unanswered.
        of_it = ([each for each in events if each.pid == pid] for events in (starts, ends))
        for start, end in zip(*of_it, strict=False):
            found = between(calls, start.seq, end.seq)
            yield _submitted(run, start, end, list(found))
    for one, other in pairwise(ends):
        if one.seq == other.seq:
            yield broken("answers", "two answers in one", one, other)


def _submitted(run: Observed, start: Event, end: Event, calls: list[Event]) -> Finding:
    group = f"submission of job {end.job}" if end.job is not UNSET else f"request {start.seq}"
    rank = {_VALIDATE: 0, _CKPT_ALLOC: 1, _VALIDATE2: 2, "bb_p_job_test_stage_in": 3, _CKPT_FREE: 4}
    places = [rank[call.name] for call in calls]
    if places != sorted(places):
        return broken(group, f"it went: {', '.join(c.name for c in calls)}", start, *calls, end)
    taken = end.job is not UNSET and end.job != 0
    made = [call for call in calls if call.name == _CKPT_ALLOC and call.job == end.job]
    if taken and len(made) != 1:
        what = f"{len(made)} checkpoint records were made for it"
        return broken(group, what, start, end)
    if not taken:
        allocated = [c for c in calls if c.name == _CKPT_ALLOC]
        if len(allocated) != sum(c.name == _CKPT_FREE for c in calls):
            return broken(group, "it was refused, and kept its record", start, end)
    return KEPT
