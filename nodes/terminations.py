"""The end of jobs on a node: signals, SIGKILL after KillWait, the epilog, the report."""

from collections.abc import Callable
from typing import Final

import attrs

from simctl.kernel.fabric import Mailbox
from simctl.kernel.procs import SIGCONT, SIGKILL, SIGTERM, Process
from simctl.kernel.turns import Timer
from simctl.nodes.controller_link import ControllerLink
from simctl.nodes.prologs import JobRun, Prologs, node_script, of_termination
from simctl.nodes.spool import Spool
from simctl.nodes.step_daemons import StepDaemons
from simctl.nodes.suspend import Suspensions
from simctl.site import Site
from simctl.stepd.ending import JOB_FAILED, NODE_FAILURE, PREEMPTION, REQUEUE, TIME_LIMIT
from simctl.wire.errno import ESLURMD_EPILOG_FAILED, SLURM_SUCCESS
from simctl.wire.ids import SECOND
from simctl.wire.messages import (
    MessageEpilogComplete,
    RequestKillPreempted,
    RequestKillTimelimit,
    RequestTerminateJob,
)

_MIN_KILL_WAIT_S: Final = 5
_COUNTED_TOO_LONG_US: Final = 330_000
"""slurmd of Slurm 18.08 looks for what still runs after 20, 50, 100 and 500 ms, which it counts as
one second, and then every second: KillWait=5 is 4.67 s."""


@attrs.frozen
class KillWaitOver:
    """Tell slurmd that the steps of a job have had their time to end."""

    job_id: int


@attrs.define(eq=False)
class Termination:
    """A job that slurmd is ending: the request, its epilog, and the timer of its SIGKILL."""

    request: RequestTerminateJob
    epilog: str
    cause: int = 0
    """What has asked for it."""

    ending: bool = False
    """Its epilog is under way."""

    timer: Timer | None = None


class Terminations:
    """The jobs that are being ended on a node, and the credentials that are void there."""

    def __init__(
        self,
        site: Site,
        process: Process,
        mailbox: Mailbox,
        spool: Spool,
        *,
        told: Callable[[], None],
        steps: StepDaemons,
        prologs: Prologs,
        suspensions: Suspensions,
        link: ControllerLink,
    ) -> None:
        self._site = site
        self._process = process
        self._mailbox = mailbox
        self._spool = spool
        self._told = told
        """Called when an epilog has ended and is reported."""

        self._steps = steps
        self._prologs = prologs
        self._suspensions = suspensions
        self._link = link
        self._ending: dict[int, Termination] = {}
        self._gone: dict[int, list[int]] = {}
        """What the ends of step daemons are the causes of, by their jobs."""

        self.requeues: dict[int, JobRun] = {}
        """The runs of jobs that slurmctld was asked to requeue and has not answered about."""

    def is_revoked(self, key: JobRun) -> bool:
        """Return whether nothing of a run of a job may be launched any more."""
        return self._spool.is_revoked(key, self._site.kernel.now_us)

    @property
    def under_way(self) -> bool:
        """Return whether any job is being ended, or slurmctld is to answer what becomes of one."""
        return bool(self._ending or self.requeues)

    def __contains__(self, job_id: int) -> bool:
        """Return whether a job is being ended."""
        return job_id in self._ending

    def abort(self, key: JobRun) -> None:
        """Kill the steps of a job that slurmctld does not know, which waits for no report."""
        self._spool.revoke(key, self._site.kernel.now_us)
        self._steps.signal_job(key[0], (SIGKILL,))
        self._spool.kill_left(key[0])

    def terminate(self, message: RequestTerminateJob) -> None:
        """Revoke the job's credential and end its steps; once they are gone, run the epilog."""
        job_id = message.job_id
        key = (job_id, message.restart_cnt)
        if job_id in self._ending or self._steps.has_later_run(key):
            # It is under way; or it was over before a later run could come here.
            return
        # A request that comes again is reported on again, and the epilog has run, or was cut short.
        epilog = "" if key in self._spool.over else self._site.conf.epilog
        self._spool.revoke(key, self._site.kernel.now_us)
        termination = Termination(request=message, epilog=epilog, cause=self._process.cause)
        # A node may have none of a suspended job's steps, and some of its next run's.
        suspended = self._suspensions.forget(job_id)
        if not self._steps.has_run(key) and not self._is_starting(key):
            self._epilog(termination)
            return
        self._ending[job_id] = termination
        # What is stopped gets no time to end by itself.
        signals = (SIGKILL,) if suspended else (SIGCONT, SIGTERM)
        self._steps.signal_job(job_id, signals, _reason(message))
        wait_us = max(self._site.conf.kill_wait_s, _MIN_KILL_WAIT_S) * SECOND
        if self._site.model == "modern":
            wait_us -= _COUNTED_TOO_LONG_US
        termination.timer = self._mailbox.post_at(
            self._site.kernel.now_us + wait_us, KillWaitOver(job_id)
        )

    def _is_starting(self, key: JobRun) -> bool:
        """Return whether a run of a job is in its prolog, or its failure is not settled."""
        return self._prologs.under_way(key) or self.requeues.get(key[0]) == key

    def kill(self, job_id: int) -> None:
        """Kill what has not ended by itself."""
        if job_id in self._ending:
            self._steps.signal_job(job_id, (SIGKILL,))

    def go_on(self, job_id: int) -> None:
        """Run the epilog of a job that is to end, once its step daemons and its prolog are gone."""
        termination = self._ending.get(job_id)
        if termination is None or termination.ending:
            return
        key = (job_id, termination.request.restart_cnt)
        if self._steps.has_run(key) or self._is_starting(key):
            return
        del self._ending[job_id]
        if termination.timer is not None:
            termination.timer.cancel()
        self._epilog(termination)

    def note_gone(self, job_id: int, cause: int) -> None:
        """Note what the end of a step daemon is the cause of."""
        self._gone.setdefault(job_id, []).append(cause)

    def _epilog(self, termination: Termination) -> None:
        """Run the job's epilog, if there is one, in a thread of its own; then report."""
        request = termination.request
        gone = self._gone.pop(request.job_id, ())
        self._site.trace.choose(self._process, termination.cause, *gone)
        run = (request.job_id, request.restart_cnt)
        self._prologs.forget(run)
        self._spool.kill_left(request.job_id)
        self._spool.over[run] = None
        if not termination.epilog:
            self._report(request, SLURM_SUCCESS)
            return
        # The job is still being ended: a request that comes again gets its answer and no more.
        self._ending[request.job_id] = termination
        termination.ending = True
        job = of_termination(request)
        script = node_script(self._site, self._process, "epilog", termination.epilog, job)

        async def body() -> None:
            status = await script.run()
            del self._ending[request.job_id]
            self._report(request, ESLURMD_EPILOG_FAILED if status else SLURM_SUCCESS)
            self._told()

        self._process.start(body, f"epilog of job {request.job_id}")

    def _report(self, request: RequestTerminateJob, return_code: int) -> None:
        self._link.report(
            MessageEpilogComplete(
                job_id=request.job_id,
                restart_cnt=request.restart_cnt,
                return_code=return_code,
                node_name=self._process.host.name,
            ),
        )


def _reason(request: RequestTerminateJob) -> str:
    """Return why a job is ended, as its batch script's output tells."""
    if isinstance(request, RequestKillTimelimit):
        return TIME_LIMIT
    if isinstance(request, RequestKillPreempted):
        return PREEMPTION
    base = request.job_state.partition("|")[0]
    return {"NODE_FAIL": NODE_FAILURE, "COMPLETING": REQUEUE, "FAILED": JOB_FAILED}.get(base, "")
