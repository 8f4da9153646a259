"""The thread of a step daemon that suspends and resumes its tasks, and has them saved."""

from typing import Final

from simctl.kernel.fabric import Envelope, Mailbox
from simctl.kernel.procs import SIGCONT, SIGSTOP, SIGTSTP, Process
from simctl.plugin import StepdJob
from simctl.plugins.hooks import About
from simctl.plugins.points.declare import Point
from simctl.plugins.points.switch_besides import (
    switch_p_job_step_post_resume,
    switch_p_job_step_post_suspend,
    switch_p_job_step_pre_resume,
    switch_p_job_step_pre_suspend,
)
from simctl.site import Site
from simctl.stepd.checkpoint_requests import CheckpointRequests
from simctl.stepd.one_by_one import OneByOne
from simctl.stepd.tasks import TaskSet
from simctl.wire.errno import (
    ESLURMD_JOB_NOTRUNNING,
    ESLURMD_STEP_NOTSUSPENDED,
    ESLURMD_STEP_SUSPENDED,
    SLURM_SUCCESS,
)
from simctl.wire.ids import SECOND
from simctl.wire.messages import RequestCheckpointTasks, RequestStepResume, ResponseSlurmRc

_STOP_AFTER_US: Final = 2 * SECOND
"""How long after SIGTSTP, which a program may catch, SIGSTOP follows."""


class TasksSignalled:
    """Tell the main thread of a step daemon that its tasks may end at other times than before."""


class Suspender:
    """Stops the tasks of a step, and lets them go on; one request at a time.

    Tasks are saved in the same thread, so that they are not stopped in the middle of it.
    """

    def __init__(
        self,
        site: Site,
        process: Process,
        tasks: TaskSet,
        mailbox: Mailbox,
        checkpoints: CheckpointRequests,
        job: StepdJob,
        record: About,
    ) -> None:
        self.suspended = False
        """Whether the tasks are stopped: signals are refused then."""

        self._site = site
        self._process = process
        self._tasks = tasks
        self._mailbox = mailbox
        self._checkpoints = checkpoints
        self._job = job
        self._record = record
        self._requests = OneByOne(process, "suspend", self._serve)

    @property
    def waiting(self) -> tuple[Envelope, ...]:
        """Return the requests that have yet to be answered."""
        return tuple(self._requests.waiting)

    def ask(self, envelope: Envelope) -> None:
        """Take a request in; it is answered once the tasks are stopped, go on, or are saved."""
        message = envelope.message
        if isinstance(message, RequestCheckpointTasks):
            rc = self._checkpoints.refusal(message)
            if rc:
                self._answer(envelope, rc)
                return
        self._requests.add(envelope)

    def give_up(self) -> None:
        """Answer what is left to answer: the step is over, and the daemon about to exit."""
        self._requests.end()
        waiting = self._requests.waiting
        while waiting:
            self._answer(waiting.popleft(), ESLURMD_JOB_NOTRUNNING)

    async def _serve(self, envelope: Envelope) -> None:
        message = envelope.message
        if isinstance(message, RequestCheckpointTasks):
            suspended = self.suspended
            rc = ESLURMD_STEP_SUSPENDED if suspended else await self._checkpoints.serve(message)
        elif isinstance(message, RequestStepResume):
            rc = await self._resume()
        else:
            rc = await self._suspend()
        self._answer(envelope, rc)

    async def _suspend(self) -> int:
        """Stop the tasks: SIGTSTP, two seconds, SIGSTOP."""
        if self.suspended:
            return ESLURMD_STEP_SUSPENDED
        await self._switch(switch_p_job_step_pre_suspend)
        self._signal(SIGTSTP)
        await self._site.kernel.sleep_us(_STOP_AFTER_US)
        self._signal(SIGSTOP)
        self.suspended = True
        await self._switch(switch_p_job_step_post_suspend)
        return SLURM_SUCCESS

    async def _resume(self) -> int:
        """Let the tasks go on."""
        if not self.suspended:
            return ESLURMD_STEP_NOTSUSPENDED
        await self._switch(switch_p_job_step_pre_resume)
        self._signal(SIGCONT)
        self.suspended = False
        await self._switch(switch_p_job_step_post_resume)
        return SLURM_SUCCESS

    async def _switch(self, point: Point) -> None:
        """Tell the switch plugin of a srun step what is about to happen, or has."""
        if not self._job.batch:
            about = self._record
            await self._site.hooks.call_besides(point, self._process, self._job, about=about)

    def _signal(self, number: int) -> None:
        self._tasks.signal(number)
        self._mailbox.post(TasksSignalled())

    def _answer(self, envelope: Envelope, rc: int) -> None:
        answer = ResponseSlurmRc.to(envelope.message, rc)
        self._site.fabric.send(self._process, envelope.sender, answer, self._mailbox)
