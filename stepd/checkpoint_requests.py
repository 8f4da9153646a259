"""What a step daemon does when it is asked to have its tasks saved."""

from collections.abc import Callable

from simctl.kernel.procs import Process
from simctl.plugins.hooks import About, Hooks, failed
from simctl.plugins.points.checkpoint import slurm_ckpt_signal_tasks
from simctl.stepd.work import StepWork
from simctl.wire.errno import (
    ESLURM_ALREADY_DONE,
    ESLURMD_JOB_NOTRUNNING,
    SLURM_ERROR,
    SLURM_SUCCESS,
)
from simctl.wire.messages import RequestCheckpointTasks


class CheckpointRequests:
    """Judges requests for images, and hands the good ones to the plugin."""

    def __init__(
        self,
        hooks: Hooks,
        process: Process,
        work: StepWork,
        forked: Callable[[], bool],
        record: About,
    ) -> None:
        self._hooks = hooks
        self._process = process
        self._work = work
        self._forked = forked
        self._record = record
        self._timestamp = 0

    def refusal(self, message: RequestCheckpointTasks) -> int:
        """Return why a request is not even looked at, or 0.

        One of the same whole second as the last that was taken on has been served already.
        """
        if message.timestamp and message.timestamp == self._timestamp:
            return ESLURM_ALREADY_DONE
        if not self._forked():
            return ESLURMD_JOB_NOTRUNNING
        return SLURM_SUCCESS

    async def serve(self, message: RequestCheckpointTasks) -> int:
        """Have the plugin save the tasks; they run on unless it stops them."""
        rc = self.refusal(message)
        if rc:
            return rc
        self._timestamp = message.timestamp
        result = await self._hooks.call(
            slurm_ckpt_signal_tasks,
            self._process,
            self._work.job,
            message.image_dir,
            about=self._record,
        )
        return SLURM_ERROR if failed(result) else SLURM_SUCCESS
