"""PrologSlurmctld and EpilogSlurmctld: a job is CONFIGURING until the one has ended well.

With PrologFlags=Alloc it is so until its nodes have reported on their prologs as well, and until no
burst buffer plugin holds its launch back.

Both run as SlurmUser in processes of their own, and the controller serves requests meanwhile.
"""

from typing import Final

from simctl.ctld.controller import Controller
from simctl.ctld.jobs import completion, launch
from simctl.ctld.jobs.completion import end_unlaunched
from simctl.ctld.jobs.controller_scripts import configure, launch_prologs, run_prolog
from simctl.ctld.state.notices import EndUnlaunched, EpilogEnded, PrologEnded
from simctl.ctld.state.records import JobRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.errno import ESLURM_INVALID_JOB_ID, SLURM_SUCCESS
from simctl.wire.messages import RequestCompleteProlog, SrunUserMsg
from simctl.wire.states import CONFIGURING, RUNNING, JobBase, Reason

MAX_BATCH_REQUEUE: Final = 5
"""How often a job is sent back into the queue because its launch failed, before it is held."""


# PrologSlurmctld.


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
        run_prolog(ctld, job)
    elif job.prologs_out:
        launch_prologs(ctld, job)
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
    job.end_prolog()
    if not message.status and ctld.site.conf.prolog_flags:
        launch_prologs(ctld, job)
    elif not message.status:
        launch_if_ready(ctld, job)
    elif job.batch and job.requeue:
        if job.fail_launch() > MAX_BATCH_REQUEUE:
            completion.hold_requeued(job, Reason.HOLD_MAX_REQUEUE)
        await completion.requeue(ctld, job)
    else:
        text = "PrologSlurmctld failed, job killed"
        for srun in completion.clients(job):
            ctld.send(srun, SrunUserMsg(job_id=job.job_id, text=text))
        await completion.end_job(ctld, job, JobBase.CANCELLED, Reason.NONE)


async def complete_prolog(
    ctld: Controller, envelope: Envelope, message: RequestCompleteProlog
) -> None:
    """Note that a prolog is over; the last that went well lets the job be launched.

    A node whose prolog failed asks for the job to be requeued besides.

    Answers ESLURM_INVALID_JOB_ID for an unknown job. In Slurm: `prolog_complete()` of
    job_mgr.c.
    """
    job = ctld.jobs.get(message.job_id)
    if job is not None and job.restart_cnt == message.restart_cnt and not message.prolog_rc:
        prolog_over(ctld, job, message.node_name)
    ctld.answer(envelope, SLURM_SUCCESS if job is not None else ESLURM_INVALID_JOB_ID)


def prolog_over(ctld: Controller, job: JobRecord, node_name: str) -> None:
    """Wait no more for a node's prolog; the last lets the job be launched."""
    if node_name not in job.prologs_out:
        return
    job.end_prolog_on(node_name)
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


def _launch(ctld: Controller, job: JobRecord) -> None:
    """End CONFIGURING: the job's time begins now."""
    job.end_prologs(ctld.now_us)
    ctld.set_job(job, RUNNING)
    ctld.start_limit(job)
    launch.tell(ctld, job)


# EpilogSlurmctld.


async def epilog_ended(ctld: Controller, _: Envelope, message: EpilogEnded) -> None:
    """Let the job be over if its nodes have let it go; what the script came to is only logged."""
    job = message.job
    ctld.process.cause = message.cause
    ctld.wait_for(job, message.cause)
    job.end_epilog()
    if not job.completing_nodes:
        await completion.gone(ctld, job)
