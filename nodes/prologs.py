"""The prologs and epilogs of a node: who waits for one, and what it finds in its environment."""

from collections.abc import Awaitable, Callable

import attrs

from simctl.kernel.fabric import Mailbox
from simctl.kernel.procs import Process
from simctl.site import Site, User
from simctl.stepd.script_process import ScriptProcess
from simctl.wire.messages import (
    RequestBatchJobLaunch,
    RequestLaunchProlog,
    RequestLaunchTasks,
    RequestTerminateJob,
)

Launch = Callable[[], Awaitable[None]]
"""What is left to do of a launch once the prolog has ended."""

JobRun = tuple[int, int]
"""A job and which of its runs: the job id and its restart count."""


@attrs.frozen(kw_only=True)
class NodeJob:
    """What slurmd knows of a job when it runs a script for it."""

    job_id: int
    restart_cnt: int
    uid: int
    node_list: str
    partition: str = ""

    @property
    def key(self) -> JobRun:
        """The run of the job."""
        return self.job_id, self.restart_cnt


def of_launch(message: RequestLaunchTasks) -> NodeJob:
    """Return the job that a step belongs to."""
    launch = message.launch
    return NodeJob(
        job_id=message.job_id,
        restart_cnt=launch.restart_cnt,
        uid=launch.uid,
        node_list=launch.node_list,
        partition=launch.env.get("SLURM_JOB_PARTITION", ""),
    )


def of_batch_launch(message: RequestBatchJobLaunch) -> NodeJob:
    """Return the job of a batch script."""
    return NodeJob(
        job_id=message.job_id,
        restart_cnt=message.restart_cnt,
        uid=message.job_desc.uid,
        node_list=message.node_list,
        partition=message.job_desc.partition,
    )


def of_allocation(message: RequestLaunchProlog) -> NodeJob:
    """Return the job that has been given the node."""
    return NodeJob(
        job_id=message.job_id,
        restart_cnt=message.restart_cnt,
        uid=message.uid,
        node_list=message.node_list,
        partition=message.partition,
    )


def of_termination(message: RequestTerminateJob) -> NodeJob:
    """Return the job that is to end; its partition is not told."""
    return NodeJob(
        job_id=message.job_id,
        restart_cnt=message.restart_cnt,
        uid=message.uid,
        node_list=message.node_list,
    )


def script_environment(site: Site, node: str, job: NodeJob) -> dict[str, str]:
    """Return what a prolog or an epilog of a node finds in its environment."""
    env = {
        "SLURM_CLUSTER_NAME": site.conf.cluster_name,
        "SLURM_JOB_ID": str(job.job_id),
        "SLURM_JOBID": str(job.job_id),
        "SLURM_JOB_UID": str(job.uid),
        "SLURM_UID": str(job.uid),
        "SLURM_JOB_USER": site.user_name(job.uid),
        "SLURM_JOB_NODELIST": job.node_list,
        "SLURM_NODELIST": job.node_list,
        "SLURMD_NODENAME": node,
        "HOSTNAME": node,
    }
    if job.partition:
        env["SLURM_JOB_PARTITION"] = job.partition
    return env


def node_script(site: Site, slurmd: Process, name: str, path: str, job: NodeJob) -> ScriptProcess:
    """Return a script that slurmd is to run for a job, as root."""
    return ScriptProcess(
        site=site,
        parent=slurmd,
        name=name,
        path=path,
        user=site.users.get("root", User(name="root", uid=0, gid=0)),
        env=script_environment(site, slurmd.host.name, job),
        job_id=job.job_id,
    )


@attrs.frozen
class PrologEnded:
    """Tell slurmd that the prolog of a job's run has ended."""

    key: JobRun


@attrs.define(eq=False)
class _Prolog:
    """The prolog of one run of a job: what waits for it, and how it ended."""

    waiting: list[tuple[Launch, int]] = attrs.field(factory=list)
    """What waits for it, each with what that follows from."""

    status: int = -1
    cause: int = 0
    reported: bool = False


class Prologs:
    """The prologs of one node: each runs once a run of a job, and every launch waits for it."""

    def __init__(
        self, site: Site, slurmd: Process, mailbox: Mailbox, ended: dict[JobRun, int]
    ) -> None:
        """Make a record of those that have *ended*, with their wait statuses; it is kept up."""
        self.path = site.conf.prolog
        self._ended = ended
        self._site = site
        self._slurmd = slurmd
        self._mailbox = mailbox
        self._prologs = {key: _Prolog(status=status) for key, status in ended.items()}

    async def before(self, job: NodeJob, launch: Launch, *, first: bool = True) -> None:
        """Launch at once where the prolog is over; else once it is, and start it if need be.

        It runs in a thread of slurmd's, which serves other requests meanwhile. A launch is *first*
        if no other of the job can come to the node before it.
        """
        prolog = self._prologs.get(job.key)
        slurmd = self._slurmd
        if prolog is not None and prolog.status >= 0:
            self._site.trace.join(slurmd, prolog.cause)
            await launch()
            return
        if prolog is None:
            prolog = self._prologs[job.key] = _Prolog()
            self._start(job, prolog, first=first)
        prolog.waiting.append((launch, slurmd.cause))

    def _start(self, job: NodeJob, prolog: _Prolog, *, first: bool) -> None:
        script = node_script(self._site, self._slurmd, "prolog", self.path, job)

        async def body() -> None:
            if not first:
                # Another launch might have started it.
                self._site.trace.choose(self._slurmd)
            prolog.status = self._ended[job.key] = await script.run()
            prolog.cause = self._slurmd.cause
            self._mailbox.post(PrologEnded(job.key))

        self._slurmd.start(body, f"prolog of job {job.job_id}")

    async def go_on(self, key: JobRun) -> None:
        """Make the launches that have waited."""
        prolog = self._prologs[key]
        waiting, prolog.waiting = prolog.waiting, []
        for launch, cause in waiting:
            self._slurmd.cause = prolog.cause
            self._site.trace.join(self._slurmd, cause)
            await launch()

    def failed(self, key: JobRun) -> bool:
        """Return whether the prolog of a run has failed; it is not run again."""
        prolog = self._prologs.get(key)
        return prolog is not None and prolog.status > 0

    def report_once(self, key: JobRun) -> bool:
        """Return whether the end of a run's prolog has yet to be reported; from now on it has."""
        prolog = self._prologs[key]
        reported, prolog.reported = prolog.reported, True
        return not reported

    def under_way(self, key: JobRun) -> bool:
        """Return whether a prolog runs, or launches have yet to be told that it has ended."""
        prolog = self._prologs.get(key)
        return prolog is not None and (prolog.status < 0 or bool(prolog.waiting))

    def forget(self, key: JobRun) -> None:
        """Forget a run that is over."""
        self._prologs.pop(key, None)
        self._ended.pop(key, None)

    def running(self) -> tuple[JobRun, ...]:
        """Return the runs of jobs whose prolog has yet to end, or whose launches wait for it."""
        return tuple(key for key in self._prologs if self.under_way(key))
