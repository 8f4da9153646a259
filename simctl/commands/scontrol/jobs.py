"""scontrol's keywords for jobs: hold, release, requeue, suspend, notify, wait_job, write."""

import re
from typing import Any, Final

from simctl.commands.arguments.options import UsageError
from simctl.commands.scontrol.order import Order
from simctl.kernel.procs import Process
from simctl.wire.arrays import parse_tasks
from simctl.wire.errno import (
    ESLURM_ACCESS_DENIED,
    ESLURM_INVALID_JOB_ID,
    ESLURM_JOB_PENDING,
    ESLURM_PROLOG_RUNNING,
    errno_name,
    slurm_strerror,
)
from simctl.wire.hostlist import compress, expand
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.info import JobInfo, NodeInfo
from simctl.wire.messages import (
    RESUME_JOB,
    SUSPEND_JOB,
    RequestBatchScript,
    RequestJobInfo,
    RequestJobNotify,
    RequestJobReady,
    RequestJobRequeue,
    RequestNodeInfo,
    RequestSuspend,
    RequestUpdateJob,
    ResponseBatchScript,
    ResponseJobInfo,
    ResponseNodeInfo,
)
from simctl.wire.states import NodeBase, NodeFlag

_JOB: Final = re.compile(r"(?:job(?:id)?=)?(\d+)(?:_(\d+|\[[\d,:-]+\]))?", re.IGNORECASE)
_POLL_S: Final = 3
"""How long wait_job sleeps before it asks again."""


def read_jobs(words: tuple[str, ...]) -> list[tuple[str, dict[str, Any]]]:
    """Return the jobs and array tasks that words name: how they are written, and who is meant."""
    found = []
    for word in re.split(r",(?![^\[]*\])", ",".join(words)):
        match = _JOB.fullmatch(word)
        if word.lower().startswith(("name=", "jobname=")):
            raise UsageError(1, f"scontrol: error: jobs by name, {word}, are not simulated yet")
        if match is None:
            raise UsageError(1, f"Invalid job id specified for job {word}")
        try:
            tasks = parse_tasks(match[2]) if match[2] else ()
        except ValueError:
            raise UsageError(1, f"Invalid job id specified for job {word}") from None
        shown = word.partition("=")[2] or word
        found.append((shown, {"job_id": int(match[1]), "array_tasks": tasks}))
    return found


async def hold(order: Order) -> int:
    """Hold jobs, or release them."""
    order.count(1)
    status = 0
    for shown, who in read_jobs(order.words):
        request = RequestUpdateJob(
            **who,
            priority=INFINITE if order.name == "release" else 0,
            hold_by_user=order.name in ("uhold", "holdu"),
        )
        rc = await order.ask(request)
        if rc:
            order.complain(f"{slurm_strerror(rc)} for job {shown}")
            order.complain(f"slurm_suspend error: {slurm_strerror(rc)}")
            status = 1
    return status


async def requeue(order: Order) -> int:
    """Send running batch jobs back into the queue, to be held there or not."""
    order.count(1)
    status = 0
    held = order.name == "requeuehold"
    flags, words = _requeue_flags(order.words, held=held)
    if not words:
        raise UsageError(1, f"too few arguments for keyword:{order.keyword}")
    for shown, who in read_jobs(words):
        rc = await order.ask(RequestJobRequeue(**who, **flags, hold=held))
        if rc:
            order.complain(f"{slurm_strerror(rc)} for job {shown}")
            status = 1
    return status


def _requeue_flags(words: tuple[str, ...], *, held: bool) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what words before the jobs say of their requeue, and the words after them."""
    flags: dict[str, Any] = {}
    while words:
        word = words[0].lower()
        if word == "incomplete":
            flags["incomplete"] = True
        elif held and word.startswith("state="):
            state = word.partition("=")[2]
            if not "specialexit".startswith(state) or not state:
                told = f"{words[0]}: only SpecialExit may be asked for"
                raise UsageError(1, f"scontrol: error: {told}")
            flags["special_exit"] = True
        else:
            break
        words = words[1:]
    return flags, words


async def suspend(order: Order) -> int:
    """Stop running jobs, or let them go on."""
    order.count(1)
    status = 0
    op = SUSPEND_JOB if order.name == "suspend" else RESUME_JOB
    for shown, who in read_jobs(order.words):
        rc = await order.ask(RequestSuspend(**who, op=op))
        if rc:
            text = slurm_strerror(rc)
            if rc == ESLURM_INVALID_JOB_ID:
                # scontrol does not expect to be told so.
                text = "Unexpected message received"
            order.complain(f"{text} for job {shown}")
            status = 1
    return status


async def top(order: Order) -> int:
    """Refuse to move jobs ahead of others: SchedulerParameters does not let users do so."""
    order.count(1, 1)
    user = order.call.user
    if not user.uid or user.admin in ("operator", "administrator"):
        raise UsageError(
            1, "scontrol: error: top is not simulated yet for operators, who may use it"
        )
    order.call.errno = errno_name(ESLURM_ACCESS_DENIED)
    order.complain(f"{slurm_strerror(ESLURM_ACCESS_DENIED)} for job {order.words[0]}")
    return 1


async def notify(order: Order) -> int:
    """Send a line of text to the commands that run a job's steps, and to its script."""
    order.count(2)
    job_id = _number(order.words[0])
    rc = ESLURM_INVALID_JOB_ID
    if job_id:
        text = " ".join(order.words[1:])
        rc = await order.ask(RequestJobNotify(job_id=job_id, text=text))
    if rc:
        order.call.errno = errno_name(rc)
        order.call.err(f"job notify failure: {slurm_strerror(rc)}")
    return 1 if rc else 0


def _number(text: str) -> int:
    match = re.match(r"\d+", text)
    return int(match[0]) if match else 0


async def wait_job(order: Order) -> int:
    """Wait until the nodes of a job are ready for its steps."""
    order.count(1, 1)
    call = order.call
    job_id = _number(order.words[0])
    if not job_id:
        call.errno = errno_name(ESLURM_INVALID_JOB_ID)
        call.err(f"Invalid job_id {order.words[0]}")
        return 1
    while rc := await order.ask(RequestJobReady(job_id=job_id)):
        if rc not in (ESLURM_JOB_PENDING, ESLURM_PROLOG_RUNNING):
            call.err(f"scontrol: Problem running job {job_id}")
            return 1
        await call.site.kernel.sleep_us(_POLL_S * SECOND)
    answer = await order.load(RequestJobInfo(job_id=job_id), "slurm_load_jobs")
    if not isinstance(answer, ResponseJobInfo) or answer.jobs[0].state.finished:
        call.err(f"scontrol: Problem running job {job_id}")
        return 1
    call.err(f"scontrol: Nodes {answer.jobs[0].node_list} are ready for job {job_id}")
    return 0


async def write(order: Order) -> int:
    """Write a job's script to a file, or show it."""
    order.count(1, 3)
    what = order.words[0]
    if what == "config":
        order.call.err("scontrol: error: write config is known to Slurm but not simulated yet")
        return 1
    if what != "batch_script":
        order.call.err(f"invalid write argument:{what}")
        return 1
    if len(order.words) == 1:
        raise UsageError(1, f"too few arguments for keyword:{order.keyword}")
    job_id = _number(order.words[1])
    answer = await order.exchange(RequestBatchScript(job_id=job_id))
    if isinstance(answer, ResponseBatchScript):
        _keep(order, job_id, answer.script)
    elif isinstance(answer, int):
        order.complain(f"job script retrieval failed: {slurm_strerror(answer)}")
    # scontrol does not tell by its exit status.
    return 0


def _keep(order: Order, job_id: int, script: str) -> None:
    call = order.call
    name = order.words[2] if len(order.words) > 2 else f"slurm-{job_id}.sh"  # noqa: PLR2004
    if name == "-":
        call.write("stdout", script)
        return
    host = call.process.host.name
    try:
        call.site.disk.write(name, script, call.work_dir, host=host, uid=call.user.uid)
    except OSError as error:
        call.err(f"failed to open script file `{name}`: {error.strerror}")
        return
    call.out(f"batch script for job {job_id} written to {name}")


async def listpids(order: Order) -> int:
    """List the processes of the steps on this host, or of those of a job, or of one."""
    order.count(0, 2)
    call = order.call
    wanted = order.words[0] if order.words else ""
    call.out("PID      JOBID    STEPID   LOCALID GLOBALID")
    steps: dict[tuple[int, str], list[tuple[int, str, str]]] = {}
    call.site.kernel.touch(f"processes {call.process.host.name}")
    call.site.kernel.look_at_number()
    for process in call.process.host.processes.values():
        owner = _step_daemon(process)
        name = str(owner.step) if owner is not None else ""
        job, _, step = name.rpartition(".")
        if owner in (None, process) or wanted not in ("", job, name):
            continue
        rows = steps.setdefault((int(job), step), [])
        rows.append((process.pid, *_ranks(process, name, rows)))
    if not steps:
        where = f"Job {wanted} does not exist" if wanted else "No job steps exist"
        call.err(f"{where} on this node.")
        return 1
    for (job_id, step), rows in sorted(steps.items(), key=lambda item: _step_order(item[0])):
        for pid, local, rank in sorted(rows, key=lambda row: row[1] == "-"):
            call.out(f"{pid:<8} {job_id:<8} {step:<8} {local:<7} {rank:<8}")
    return 0


def _step_order(key: tuple[int, str]) -> tuple[int, bool, int]:
    """Sort steps by job, the batch script first."""
    job_id, step = key
    return job_id, step != "batch", int(step) if step.isdecimal() else 0


def _step_daemon(process: Process) -> Process | None:
    """Return the step daemon that a process descends from, itself or nothing it may be."""
    found: Process | None = process
    while found is not None and found.role != "manager":
        found = process.host.processes.get(found.ppid)
    return found


def _ranks(process: Process, step: str, before: list[tuple[int, str, str]]) -> tuple[str, str]:
    """Return the number of a task on its host and in its step; dashes for another process."""
    if process.role != "task" or process.step != step or _is_child(process):
        return "-", "-"
    number = sum(1 for _, local, _ in before if local != "-")
    return str(number), str(process.task if isinstance(process.task, int) else 0)


def _is_child(process: Process) -> bool:
    """Return whether a process was started by another task."""
    parent = process.host.processes.get(process.ppid)
    return parent is not None and parent.role == "task"


async def completing(order: Order) -> int:
    """List the jobs that are completing, with the nodes that have yet to report, or are down."""
    order.count(0, 0)
    jobs = await order.load(RequestJobInfo(), "slurm_load_jobs")
    nodes = await order.load(RequestNodeInfo(), "slurm_load_nodes")
    if not isinstance(jobs, ResponseJobInfo) or not isinstance(nodes, ResponseNodeInfo):
        return 1
    known = {node.name: node for node in nodes.nodes}
    for job in jobs.jobs:
        if job.state.completing:
            order.call.out(_completing_line(job, known))
    return 0


def _completing_line(job: JobInfo, known: dict[str, NodeInfo]) -> str:
    mine = [known[name] for name in expand(job.node_list)]
    still = [node.name for node in mine if NodeFlag.COMPLETING in node.flags]
    down = [node.name for node in mine if node.base is NodeBase.DOWN and node.name not in still]
    line = f"JobId={job.job_id} "
    if still:
        line += f"Nodes(COMPLETING)={compress(still)} "
    if down:
        line += f"Nodes(DOWN)={compress(down)} "
    return line
