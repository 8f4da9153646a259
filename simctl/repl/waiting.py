"""Why a job is where it is: what it waits for, since when, and what would end that."""

from collections.abc import Callable, Iterator
from typing import Final

from simctl.ctld.choose.dependencies import told, verdict
from simctl.ctld.reporting.job_facts import eligible_us
from simctl.ctld.state.queue import reason_to_wait
from simctl.ctld.state.records import JobRecord
from simctl.kernel.due import due_processes
from simctl.kernel.events import Event
from simctl.kernel.procs import Process
from simctl.repl.life import without_controller
from simctl.repl.session import Session
from simctl.scenario.durations import format_moment, format_us
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.states import JobBase, Reason

_MOST: Final = 8
_TURNS_LOOKED_AT: Final = 5_000


def tell_why(session: Session, job: JobRecord) -> Iterator[str]:
    """Say what a job waits for, and since when."""
    yield f"job {job.job_id} is {job.state}, {_since(session, job)}"
    if absent := without_controller(session):
        yield f"  {absent}"
    state = job.state
    if state.completing:
        yield from _completing(session, job)
    elif state.staging_out:
        yield from _staging_out(session, job)
    elif state.finished:
        yield from _over(session, job)
    elif state.base is JobBase.PENDING and not job.nodes:
        yield from _pending(session, job)
    else:
        yield from _running(session, job)
    yield from _calls(session, job)


def _since(session: Session, job: JobRecord) -> str:
    """Say since when a job has been in its state, which its last change of state tells."""
    changes = (
        event for event in reversed(session.seen().of_job(job.job_id)) if event.kind == "state"
    )
    last = next((event for event in changes if event.name == "job_state"), None)
    return _moment("since", last.time_us) if last is not None else "since before the session"


def _moment(word: str, time_us: int) -> str:
    return f"{word} {format_moment(time_us)}"


# Waiting for a start.


def _pending(session: Session, job: JobRecord) -> Iterator[str]:
    reason = str(reason_to_wait(job))
    # Some name nodes after a comma; a plugin may have put its own words in place of one.
    first = reason.partition(",")[0]
    known = first if first in set(Reason) else _known(job)
    text = EXPLAINED.get(Reason(known)) if known else None
    yield f"  {reason}: {text or 'in the words of a plugin'}"
    since_us = eligible_us(job)
    if 0 <= since_us <= session.world.kernel.now_us:
        yield f"  eligible since {format_moment(since_us)}"
    more = _DETAILS.get(Reason(known)) if known else None
    if more is not None:
        yield from more(session, job)
    if job.planned_us >= 0:
        where = f" on {job.planned_nodes}" if job.planned_nodes else ""
        yield f"  backfill expects it to start at {format_moment(job.planned_us)}{where}"


def _known(job: JobRecord) -> str:
    return str(job.reason) if job.reason in set(Reason) else ""


def _room(session: Session, job: JobRecord) -> Iterator[str]:
    """Say what a job asks for, which of its partition's nodes have it, and who has the rest."""
    demand, nodes = job.demand, job.part.nodes
    usable = [node for node in nodes if node.usable]
    yield (
        f"  it asks for {demand.min_nodes} node{'s' * (demand.min_nodes != 1)} of partition "
        f"{job.part.name}; {len(usable)} of its {len(nodes)} can take a job now"
    )
    others = {other.job_id: other for node in nodes for other in node.jobs.values()}
    for other in list(others.values())[:_MOST]:
        end = (
            f"until {format_moment(other.limit_us)} at the latest"
            if other.limit_us < INFINITE
            else "without a time limit"
        )
        yield f"  job {other.job_id} has {other.node_list} {end}"
    for node in [each for each in nodes if not each.usable and not each.jobs][:_MOST]:
        flags = f"|{node.flags.name}" if node.flags else ""
        why = f" ({node.reason})" if node.reason else ""
        yield f"  {node.name} is {node.base.name}{flags}{why}"


def _priority(session: Session, job: JobRecord) -> Iterator[str]:
    """Say which jobs come before a job in its partitions."""
    ahead = [
        other
        for part in job.parts
        for rank, number, other in part.queue
        if other.queued and other is not job and (rank, number) < (-job.priority, job.queue_number)
    ]
    ahead = list({other.job_id: other for other in ahead}.values())[:_MOST]
    if ahead:
        names = ", ".join(f"{other.job_id} (priority {other.priority})" for other in ahead)
        yield f"  its priority is {job.priority}; before it: {names}"
    yield from _room(session, job)


def _dependency(session: Session, job: JobRecord) -> Iterator[str]:
    ctld = session.world.ctld
    yield f"  it depends on {told(ctld, job, ctld.now_us) or 'nothing any more'}"
    needs = job.dependency.needs if job.dependency is not None else ()
    for need in needs[:_MOST]:
        if need.job is not None:
            yield f"  job {need.job.job_id} is {need.job.state}"
    due_us = verdict(ctld, job, ctld.now_us).due_us
    if due_us >= 0:
        yield f"  it is looked at again at {format_moment(due_us)}"


def _begin_time(_: Session, job: JobRecord) -> Iterator[str]:
    yield f"  it may start from {format_moment(job.begin_us)} on"


def _held(session: Session, job: JobRecord) -> Iterator[str]:
    owners = job.held_by_user or job.hold_text == Reason.RESERVATION_DELETED
    who = "its owner or an operator" if owners else "an operator"
    yield f"  its priority is {job.priority}; {who} may type"
    yield f"  `scontrol release {job.job_id}`"


def _burst_buffer(session: Session, job: JobRecord) -> Iterator[str]:
    asked = [
        event
        for event in session.seen().of_job(job.job_id)
        if event.name == "bb_p_job_test_stage_in" and event.phase != "enter"
    ]
    if asked:
        last = asked[-1]
        since = next((each.time_us for each in _same_answer(asked, last.rc)), last.time_us)
        meaning = {0: "staging in", 1: "may start", -1: "not begun, or no room for it"}
        means = meaning.get(last.rc if isinstance(last.rc, int) else -1, "not begun")
        at, began = format_moment(last.time_us), format_moment(since)
        yield (
            f"  bb_p_job_test_stage_in was asked {len(asked)} time{'s' * (len(asked) != 1)}, last "
            f"at {at}: {last.rc} ({means}), as since {began}"
        )
    if job.bb_state:
        yield f"  its burst buffer is {job.bb_state}; it asks for {job.burst_buffer.strip()!r}"
    if job.state_desc:
        yield f"  the plugin says: {job.state_desc}"
    if job.expected_us > session.world.kernel.now_us:
        yield f"  the plugin expects it to start at {format_moment(job.expected_us)}"
    yield from _scripts(session, job)


def _same_answer(asked: list[Event], rc: object) -> Iterator[Event]:
    """Return the last questions in a row that had the same answer, oldest first."""
    row = []
    for event in reversed(asked):
        if event.rc != rc:
            break
        row.append(event)
    yield from reversed(row)


def _limits(_: Session, job: JobRecord) -> Iterator[str]:
    if job.lasting_reason:
        yield "  nothing changes that but `scontrol update`, of the job or of its partition"


def _launch(_: Session, job: JobRecord) -> Iterator[str]:
    yield f"  it was started {job.restart_cnt} time{'s' * (job.restart_cnt != 1)}"


Detail = Callable[[Session, JobRecord], Iterator[str]]

EXPLAINED: Final[dict[Reason, str]] = {
    Reason.NONE: "no scheduler pass has looked at it yet",
    Reason.PRIORITY: "jobs come before it that find no room",
    Reason.RESOURCES: "it is the first in line, and there is no room for it",
    Reason.PARTITION_NODE_LIMIT: "it asks for more or fewer nodes than its partition allows",
    Reason.PARTITION_TIME_LIMIT: "its time limit is longer than its partition allows",
    Reason.PARTITION_CONFIG: "its partition has not what it asks for",
    Reason.PARTITION_DOWN: "its partition is down: jobs may be submitted, and none starts",
    Reason.PARTITION_INACTIVE: "its partition is inactive",
    Reason.RESERVATION: "its reservation has not begun, or has no room",
    Reason.RESERVATION_DELETED: "its reservation is over, and it is held",
    Reason.BEGIN_TIME: "its begin time has not come",
    Reason.JOB_LAUNCH_FAILURE: "it could not be launched",
    Reason.NON_ZERO_EXIT_CODE: "it ended with another exit code than 0",
    Reason.TIME_LIMIT: "it reached its time limit",
    Reason.NODE_DOWN: "a node of it went down",
    Reason.DEADLINE: "it could not have ended before its deadline",
    Reason.OUT_OF_MEMORY: "it used more memory than it had",
    Reason.REQ_NODE_NOT_AVAIL: "nodes that it names are down, drained or reserved",
    Reason.NODES_NOT_AVAIL: "too few nodes are neither down, drained nor reserved",
    Reason.ARRAY_TASK_LIMIT: "as many tasks of its array run as may at a time",
    Reason.DEPENDENCY: "what it depends on has not happened",
    Reason.DEPENDENCY_NEVER: "what it depends on can happen no more",
    Reason.HELD_ADMIN: "an administrator holds it",
    Reason.HELD_USER: "its owner holds it",
    Reason.BAD_CONSTRAINTS: "no nodes have what it asks for",
    Reason.PROLOG: "a prolog runs",
    Reason.HOLD_MAX_REQUEUE: "it has gone back into the queue too often, and is held",
    Reason.BURST_BUFFER_RESOURCES: "there is no room for its burst buffer yet",
    Reason.BURST_BUFFER_STAGE_IN: "its data are on their way into the burst buffer",
    Reason.BURST_BUFFER_OPERATION: "an operation of its burst buffer failed",
    Reason.CLEANING: "its last run has not let go of its nodes",
}
"""What each reason means, as squeue prints it."""

_DETAILS: Final[dict[Reason, Detail]] = {
    Reason.PRIORITY: _priority,
    Reason.RESOURCES: _room,
    Reason.RESERVATION: _room,
    Reason.REQ_NODE_NOT_AVAIL: _room,
    Reason.NODES_NOT_AVAIL: _room,
    Reason.DEPENDENCY: _dependency,
    Reason.DEPENDENCY_NEVER: _dependency,
    Reason.BEGIN_TIME: _begin_time,
    Reason.HELD_ADMIN: _held,
    Reason.RESERVATION_DELETED: _held,
    Reason.HELD_USER: _held,
    Reason.HOLD_MAX_REQUEUE: _held,
    Reason.JOB_LAUNCH_FAILURE: _held,
    Reason.BURST_BUFFER_RESOURCES: _burst_buffer,
    Reason.BURST_BUFFER_STAGE_IN: _burst_buffer,
    Reason.BURST_BUFFER_OPERATION: _burst_buffer,
    Reason.PARTITION_NODE_LIMIT: _limits,
    Reason.PARTITION_TIME_LIMIT: _limits,
    Reason.PARTITION_CONFIG: _limits,
    Reason.BAD_CONSTRAINTS: _limits,
}


# With nodes, and after.


def _running(session: Session, job: JobRecord) -> Iterator[str]:
    now_us = session.world.kernel.now_us
    where = f"on {job.node_list}" if job.nodes else "without nodes"
    limit = (
        f"its time limit is at {format_moment(job.limit_us)}"
        if job.limit_us < INFINITE
        else "it has no time limit"
    )
    yield f"  {where}; {limit}"
    if job.state.configuring:
        yield f"  it waits for {job.prolog_running or 'a'} prolog or burst buffer operation"
    if job.suspend_us >= 0:
        yield f"  it is suspended since {format_moment(job.suspend_us)}, until `scontrol resume`"
    steps = ", ".join(
        f"{job.job_id}.{step.step_id} on {step.node_list}" for step in job.steps.values()
    )
    yield f"  steps: {steps or 'none'}"
    lines = list(_processes(session, job, now_us))
    yield from lines
    yield from _scripts(session, job)
    if not any(" at " in line for line in lines):
        yield from _stalled(session)


def _processes(session: Session, job: JobRecord, now_us: int) -> Iterator[str]:
    """Say what each task of a job does, and when its program ends by itself."""
    due = _due(session)
    shown = 0
    programs = session.seen().programs
    for host in (session.world.login, *(session.world.hosts[node.name] for node in job.nodes)):
        for process in host.processes.values():
            if process.job != job.job_id or process.role not in ("task", "script"):
                continue
            shown += 1
            if shown > _MOST:
                yield "  and more tasks"
                return
            program = programs.get(process.pid, "").rpartition("/")[2] or process.name
            what = "is stopped" if job.suspend_us >= 0 else _doing(process, due, now_us)
            where = f"(pid {process.pid}) on {host.name}"
            if process.role == "task":
                yield f"  task {process.task} of {process.step} {where}: {program} {what}"
            else:
                yield f"  {program} {where} {what}"


def _doing(process: Process, due: dict[int, int], now_us: int) -> str:
    if any(thread.frozen for thread in process.threads):
        return "is stopped"
    moment = due.get(process.pid)
    if moment is not None:
        return f"goes on at {format_moment(moment)}, {format_us(moment - now_us)} from now"
    waits = [thread.waits_for for thread in process.threads if not thread.finished]
    if waits:
        return f"waits for {waits[0]}"
    # Who started a program knows when it ends, and waits so long at most.
    parent = process.host.processes.get(process.ppid)
    while parent is not None and parent.step == process.step and parent.pid not in due:
        parent = process.host.processes.get(parent.ppid)
    if parent is None or parent.step != process.step:
        return "runs"
    return (
        f"runs; pid {parent.pid}, which looks after it, is due at {format_moment(due[parent.pid])}"
    )


def _due(session: Session) -> dict[int, int]:
    """Return when processes go on by themselves, by pid."""
    found: dict[int, int] = {}
    for process, due_us in due_processes(session.world.kernel, _TURNS_LOOKED_AT):
        found.setdefault(process.pid, due_us)
    return found


def _scripts(session: Session, job: JobRecord) -> Iterator[str]:
    """Say which scripts of a job slurmctld waits for."""
    due = _due(session)
    for process in session.world.ctld.process.host.processes.values():
        if process.job == job.job_id and process.role == "script":
            program = session.seen().programs.get(process.pid, process.name)
            what = _doing(process, due, session.world.kernel.now_us)
            yield f"  {program} (pid {process.pid}) of slurmctld {what}"


def _stalled(session: Session) -> Iterator[str]:
    if session.world.kernel.foreground:
        return
    waiting = session.world.at_rest()
    if waiting:
        yield "  nothing is due that would end that; these wait:"
        yield from (f"    {line}" for line in waiting)


def _completing(session: Session, job: JobRecord) -> Iterator[str]:
    if job.completing_nodes:
        names = ", ".join(sorted(job.completing_nodes)[:_MOST])
        yield f"  it waits for {names} to report that nothing of it is left there"
        for name in sorted(job.completing_nodes)[:_MOST]:
            node = session.world.ctld.nodes_by_name[name]
            flags = f"|{node.flags.name}" if node.flags else ""
            heard = format_moment(node.last_response_us)
            yield f"  {name} is {node.base.name}{flags}, heard of at {heard}"
    elif job.epilog_running:
        yield "  it waits for EpilogSlurmctld"
    else:
        yield f"  {_between_run_and_end(session, job)}"
    yield from _processes(session, job, session.world.kernel.now_us)
    yield from _stalled(session)


def _between_run_and_end(session: Session, job: JobRecord) -> str:
    """Say what a job waits for that no node has to report anything of."""
    for event in reversed(session.seen().of_job(job.job_id)):
        if event.name == "bb_p_job_test_post_run":
            return f"it waits for bb_p_job_test_post_run, which said {event.rc} last"
        if event.name == "REQUEST_TERMINATE_JOB":
            return "its nodes are free of it; slurmctld is about to end it"
        if event.name == "job_state":
            break
    return "its run is over; slurmctld has yet to tell its nodes"


def _staging_out(session: Session, job: JobRecord) -> Iterator[str]:
    yield "  its nodes are free; its results go out of the burst buffer"
    if job.bb_state:
        yield f"  its burst buffer is {job.bb_state}"
    yield from _scripts(session, job)


def _over(session: Session, job: JobRecord) -> Iterator[str]:
    if job.reason not in ("", Reason.NONE) and job.reason in set(Reason):
        yield f"  {job.reason}: {EXPLAINED[Reason(job.reason)]}"
    age_us = session.world.site.conf.min_job_age_s * SECOND
    if job.end_us >= 0 and age_us:
        goes = format_moment(job.end_us + age_us)
        yield f"  it waits for nothing; its record may go from {goes} on"
    if job.burst_buffer and not job.staged_out:
        yield "  and once bb_p_job_test_stage_out says that its stage-out is over"


def _calls(session: Session, job: JobRecord) -> Iterator[str]:
    """Say which plugin calls of a job have not come back."""
    for call in session.world.site.hooks.under_way:
        if call.who.job == job.job_id:
            who = f"pid {call.who.pid} on {call.who.host.name}"
            began = format_moment(call.started_us)
            yield f"  {call.name} has been under way in {who} since {began}"
