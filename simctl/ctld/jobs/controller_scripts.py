"""PrologSlurmctld, EpilogSlurmctld and the prologs of nodes: how they are started."""

from collections.abc import Callable
from typing import Any

from simctl.ctld.controller import Controller
from simctl.ctld.state.job_rows import exit_code_text
from simctl.ctld.state.notices import EpilogEnded, PrologEnded
from simctl.ctld.state.records import JobRecord, NodeRecord
from simctl.site import User
from simctl.stepd.script_process import ScriptProcess
from simctl.wire.messages import RequestLaunchProlog
from simctl.wire.states import CONFIGURING


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


def configure(ctld: Controller, job: JobRecord) -> None:
    """Start the prologs of a job that has just been given its nodes: slurmctld's, then theirs."""
    conf = ctld.site.conf
    job.await_prologs(of_nodes=bool(conf.prolog_flags))
    ctld.set_job(job, CONFIGURING)
    if not conf.prolog_slurmctld:
        if conf.prolog_flags:
            launch_prologs(ctld, job)
        return
    run_prolog(ctld, job)


def run_prolog(ctld: Controller, job: JobRecord) -> None:
    """Start PrologSlurmctld for a run of a job."""
    run = job.restart_cnt
    job.start_prolog()

    def ended(status: int) -> PrologEnded:
        return PrologEnded(job, run, status, ctld.process.cause)

    _start(ctld, job, "prolog_slurmctld", ctld.site.conf.prolog_slurmctld, ended)


def launch_prologs(ctld: Controller, job: JobRecord) -> None:
    """Have every node of a job run its prolog now, whether anything is launched there or not."""
    job.ask_prologs(node.name for node in job.nodes)
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
    job.prolog_told(ctld.now_us)
    ctld.send(ctld.address(node), request)


def start_epilog(ctld: Controller, job: JobRecord) -> None:
    """Start EpilogSlurmctld for a run that is over; the job is COMPLETING until it has ended."""
    job.start_epilog()
    _start(
        ctld,
        job,
        "epilog_slurmctld",
        ctld.site.conf.epilog_slurmctld,
        lambda _status: EpilogEnded(job, ctld.process.cause),
    )
