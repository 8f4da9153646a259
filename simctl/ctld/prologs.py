"""PrologSlurmctld and EpilogSlurmctld: a job is CONFIGURING until the one has ended well.

With PrologFlags=Alloc it is so until its nodes have reported on their prologs as well, and until no
burst buffer plugin holds its launch back.

Both run as SlurmUser in processes of their own, and the controller serves requests meanwhile.
"""

from collections.abc import Callable
from typing import Any, Final

from simctl.ctld import completion, launch
from simctl.ctld.controller import Controller
from simctl.ctld.job_rows import exit_code_text
from simctl.ctld.notices import EndUnlaunched, EpilogEnded, PrologEnded
from simctl.ctld.records import JobRecord, NodeRecord
from simctl.kernel.fabric import Envelope
from simctl.plugins.site import User
from simctl.stepd.script_process import ScriptProcess
from simctl.wire.errno import ESLURM_INVALID_JOB_ID, SLURM_SUCCESS
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.messages import RequestCompleteProlog, RequestLaunchProlog, SrunUserMsg
from simctl.wire.states import CONFIGURING, RUNNING, JobBase, Reason

MAX_BATCH_REQUEUE: Final = 5
"""How often a job is sent back into the queue because its launch failed, before it is held."""


def environment(ctld: Controller, job: JobRecord) -> dict[str, str]:
    """Return the environment of a script of slurmctld's; an epilog is told how the job ended."""
    desc = job.desc
    env = {
        "SLURM_CLUSTER_NAME": ctld.site.conf.cluster_name,
        "SLURM_JOB_ID": str(job.job_id),
        "SLURM_JOBID": str(job.job_id),
        "SLURM_JOB_NAME": job.name,
        "SLURM_JOB_USER": desc.user,
        "SLURM_JOB_UID": str(desc.uid),
        "SLURM_JOB_GID": str(desc.gid),
        "SLURM_JOB_PARTITION": job.part.name,
        "SLURM_JOB_NODELIST": job.node_list,
        "SLURM_NODELIST": job.node_list,
    }
    if not job.state.configuring:
        env["SLURM_JOB_EXIT_CODE"] = str(job.exit_code)
        env["SLURM_JOB_EXIT_CODE2"] = exit_code_text(job.exit_code)
    if desc.account:
        env["SLURM_JOB_ACCOUNT"] = desc.account
    if job.restarts:
        env["SLURM_RESTART_COUNT"] = str(job.restarts)
    if job.array is not None and job.array_task >= 0:
        env["SLURM_ARRAY_JOB_ID"] = str(job.array.job_id)
        env["SLURM_ARRAY_TASK_ID"] = str(job.array_task)
    return env


def _start(
    ctld: Controller, job: JobRecord, name: str, path: str, ended: Callable[[int], Any]
) -> None:
    """Run a script in a thread of the controller; what *ended* makes of its status is posted."""
    site = ctld.site
    conf = site.conf
    script = ScriptProcess(
        site=site,
        parent=ctld.process,
        name=name,
        path=path,
        user=site.users.get(conf.slurm_user, User(name="slurm", uid=ctld.process.uid, gid=0)),
        env=environment(ctld, job),
        job_id=job.job_id,
    )

    async def body() -> None:
        ctld.mailbox.post(ended(await script.run()))

    ctld.process.start(body, f"{name} of job {job.job_id}")


# PrologSlurmctld.


def configure(ctld: Controller, job: JobRecord) -> None:
    """Start the prologs of a job that has just been given its nodes: slurmctld's, then theirs."""
    if job.limit_timer is not None:
        job.limit_timer.cancel()
        job.limit_timer = None
    conf = ctld.site.conf
    if conf.prolog_flags:
        job.reason = Reason.PROLOG
    job.prologs_out.clear()
    ctld.set_job(job, CONFIGURING)
    if not conf.prolog_slurmctld:
        if conf.prolog_flags:
            _launch_prologs(ctld, job)
        return
    _run_prolog(ctld, job)


def _run_prolog(ctld: Controller, job: JobRecord) -> None:
    run = job.restart_cnt
    job.prolog_slurmctld_runs = True

    def ended(status: int) -> PrologEnded:
        return PrologEnded(job, run, status, ctld.process.cause)

    _start(ctld, job, "prolog_slurmctld", ctld.site.conf.prolog_slurmctld, ended)


def take_up(ctld: Controller, job: JobRecord) -> None:
    """Run the prologs again that a job waited for when slurmctld ended; else launch it."""
    conf = ctld.site.conf
    if not job.state.configuring and job.batch and job.launched_us < 0 and job.nodes:
        # slurmctld ended as it was about to.
        if job.batch_start_us < 0 and (conf.prolog_slurmctld or conf.prolog_flags):
            configure(ctld, job)
        else:
            launch.tell(ctld, job)
    elif not job.state.configuring or job.without_nodes:
        launch_if_ready(ctld, job)
    elif job.prolog_slurmctld_runs:
        _run_prolog(ctld, job)
    elif job.prologs_out:
        _launch_prologs(ctld, job)
    else:
        launch_if_ready(ctld, job)


async def prolog_ended(ctld: Controller, _: Envelope, message: PrologEnded) -> None:
    """Launch the job that has waited; where its prolog has failed, requeue or cancel it."""
    job = message.job
    if job.restart_cnt != message.run or not job.state.configuring:
        # It was cancelled or requeued meanwhile.
        return
    ctld.process.cause = message.cause
    ctld.wait_for(job)
    job.prolog_slurmctld_runs = False
    if not message.status and ctld.site.conf.prolog_flags:
        _launch_prologs(ctld, job)
    elif not message.status:
        launch_if_ready(ctld, job)
    elif job.batch and job.requeue:
        job.launch_failures += 1
        if job.launch_failures > MAX_BATCH_REQUEUE:
            completion.hold_requeued(job, Reason.HOLD_MAX_REQUEUE)
        await completion.requeue(ctld, job)
    else:
        text = "PrologSlurmctld failed, job killed"
        for srun in completion.clients(job):
            ctld.send(srun, SrunUserMsg(job_id=job.job_id, text=text))
        await completion.end_job(ctld, job, JobBase.CANCELLED, Reason.NONE)


def _launch_prologs(ctld: Controller, job: JobRecord) -> None:
    """Have every node of a job run its prolog now, whether anything is launched there or not."""
    job.prologs_out = {node.name for node in job.nodes}
    for node in job.nodes:
        launch_prolog(ctld, job, node)


def launch_prolog(ctld: Controller, job: JobRecord, node: NodeRecord) -> None:
    """Have a node run the prolog of a job now."""
    request = RequestLaunchProlog(
        job_id=job.job_id,
        restart_cnt=job.restart_cnt,
        uid=job.desc.uid,
        node_list=job.node_list,
        partition=job.part.name,
    )
    job.prologs_us = ctld.now_us
    ctld.send(ctld.address(node), request)


async def complete_prolog(
    ctld: Controller, envelope: Envelope, message: RequestCompleteProlog
) -> None:
    """Take in that a prolog is over; the last that went well lets the job be launched.

    A node whose prolog failed asks for the job to be requeued besides.
    """
    job = ctld.jobs.get(message.job_id)
    if job is not None and job.restart_cnt == message.restart_cnt and not message.prolog_rc:
        prolog_over(ctld, job, message.node_name)
    ctld.answer(envelope, SLURM_SUCCESS if job is not None else ESLURM_INVALID_JOB_ID)


def prolog_over(ctld: Controller, job: JobRecord, node_name: str) -> None:
    """Wait no more for a node's prolog; the last lets the job be launched."""
    if node_name not in job.prologs_out:
        return
    job.prologs_out.remove(node_name)
    ctld.wait_for(job)
    launch_if_ready(ctld, job)


def launch_if_ready(ctld: Controller, job: JobRecord) -> None:
    """Launch a job that has its nodes, unless a prolog or a burst buffer still holds it back."""
    waits = job.prolog_slurmctld_runs or job.prologs_out or job.prolog_running
    if job.state != CONFIGURING or waits:
        return
    if job.without_nodes:
        ctld.mailbox.post(EndUnlaunched(job))
    else:
        _launch(ctld, job)


async def unlaunched_over(ctld: Controller, _: Envelope, message: EndUnlaunched) -> None:
    """End a job without nodes that nothing holds back any more."""
    if message.job.state.base is JobBase.RUNNING:
        await end_unlaunched(ctld, message.job, JobBase.COMPLETED)


async def end_unlaunched(ctld: Controller, job: JobRecord, base: JobBase) -> None:
    """End a job that has no nodes."""
    await completion.end_job(ctld, job, base, Reason.NONE)


def _launch(ctld: Controller, job: JobRecord) -> None:
    """End CONFIGURING: the job's time begins now."""
    job.reason = Reason.NONE
    ctld.set_job(job, RUNNING)
    job.launch_failures = 0
    job.start_us = ctld.now_us
    if job.limit_timer is not None:
        job.limit_timer.cancel()
        job.limit_timer = None
    if job.time_limit_min != INFINITE:
        job.limit_us = job.start_us + job.time_limit_min * 60 * SECOND
        ctld.watch_limit(job)
    launch.tell(ctld, job)


# EpilogSlurmctld.


def start_epilog(ctld: Controller, job: JobRecord) -> None:
    """Start EpilogSlurmctld for a run that is over; the job is COMPLETING until it has ended."""
    job.epilog_running = True
    _start(
        ctld,
        job,
        "epilog_slurmctld",
        ctld.site.conf.epilog_slurmctld,
        lambda _status: EpilogEnded(job, ctld.process.cause),
    )


async def epilog_ended(ctld: Controller, _: Envelope, message: EpilogEnded) -> None:
    """Let the job be over if its nodes have let it go; what the script came to is only logged."""
    job = message.job
    ctld.process.cause = message.cause
    ctld.wait_for(job, message.cause)
    job.epilog_running = False
    if not job.completing_nodes:
        await completion.gone(ctld, job)
