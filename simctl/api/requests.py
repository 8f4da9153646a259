"""libslurm's functions: requests that a process sends to the cluster, and their answers."""

from typing import NoReturn

from simctl.api import checkpoint
from simctl.api.asking import ask, ask_slurmctld
from simctl.api.reach import reach_of
from simctl.api.surroundings import caller
from simctl.kernel.procs import SIGKILL
from simctl.wire.errno import SLURM_COMMUNICATIONS_CONNECTION_ERROR, SlurmError
from simctl.wire.ids import SLURM_BATCH_SCRIPT
from simctl.wire.messages import (
    Message,
    RequestCancelJobStep,
    RequestKillJob,
    RequestPing,
    RequestSubmitBatchJob,
    ResponseSubmitBatchJob,
)
from simctl.wire.records import JobDesc


def _check(answer: Message) -> None:
    """Raise what an answer's return code says, as `errno` after a call of libslurm's does."""
    code = getattr(answer, "return_code", 0)
    if code:
        raise SlurmError(code)


class Rpc:
    """libslurm's functions for a plugin, each an `async def`.

    Those about checkpoints return 0 or an error as libslurm does, and `slurm_get_errno` tells which
    (see `simctl.api.checkpoint`); the others raise SlurmError.

    Requests are made as the calling process's user, and answered in virtual time. A plugin that
    asks slurmctld from inside slurmctld's own call waits for itself, until MessageTimeout (10 s)
    ends it: the daemon answers no client while its plugin has not returned. From a thread of the
    plugin (`start`) the same request is answered.
    """

    async def slurm_ping(self, node: str = "") -> None:
        """Ask slurmctld, or slurmd on *node*, whether it is there.

        Slurmd answers root and SlurmUser alone; another user gets ESLURM_USER_ID_MISSING.
        """
        if not node:
            _check(await ask_slurmctld(caller("rpc"), RequestPing()))
            return
        process = caller("rpc")
        slurmd = reach_of(process).fabric.find(f"slurmd@{node}")
        _check(await ask(process, slurmd, RequestPing(), SLURM_COMMUNICATIONS_CONNECTION_ERROR))

    async def slurm_submit_batch_job(self, job_desc: JobDesc) -> int:
        """Submit a batch job; return its id."""
        answer = await ask_slurmctld(caller("rpc"), RequestSubmitBatchJob(job_desc=job_desc))
        assert isinstance(answer, ResponseSubmitBatchJob)
        if answer.error_code and not answer.job_id:
            raise SlurmError(answer.error_code)
        return answer.job_id

    async def slurm_kill_job(
        self, job_id: int, signal: int = SIGKILL, *, batch_only: bool = False, full: bool = False
    ) -> None:
        """Signal a job's steps; SIGKILL cancels the job.

        With *batch_only* the batch script alone gets it; with *full* the script's children too.
        """
        request = RequestKillJob(job_id=job_id, signal=signal, batch_only=batch_only, full=full)
        _check(await ask_slurmctld(caller("rpc"), request))

    async def slurm_kill_job_step(self, job_id: int, step_id: int, signal: int = SIGKILL) -> None:
        """Signal a step."""
        request = RequestCancelJobStep(job_id=job_id, step_id=step_id, signal=signal)
        _check(await ask_slurmctld(caller("rpc"), request))

    # Checkpoints.

    def slurm_get_errno(self) -> int:
        """Return the number of the calling process's last error."""
        return caller("rpc").errno

    async def slurm_checkpoint_able(
        self, job_id: int, step_id: int = SLURM_BATCH_SCRIPT
    ) -> tuple[int, int]:
        """Return whether checkpoints can be made now: a result, and when an active one began."""
        return await checkpoint.able(caller("rpc"), job_id, step_id)

    async def slurm_checkpoint_disable(self, job_id: int, step_id: int = SLURM_BATCH_SCRIPT) -> int:
        """Let no checkpoints be made until they are enabled again."""
        return await checkpoint.disable(caller("rpc"), job_id, step_id)

    async def slurm_checkpoint_enable(self, job_id: int, step_id: int = SLURM_BATCH_SCRIPT) -> int:
        """Let checkpoints be made again."""
        return await checkpoint.enable(caller("rpc"), job_id, step_id)

    async def slurm_checkpoint_create(
        self,
        job_id: int,
        step_id: int = SLURM_BATCH_SCRIPT,
        max_wait: int = 0,
        image_dir: str = "",
    ) -> int:
        """Have a checkpoint made; it has only begun when this returns."""
        return await checkpoint.create(caller("rpc"), job_id, step_id, max_wait, image_dir)

    async def slurm_checkpoint_vacate(
        self,
        job_id: int,
        step_id: int = SLURM_BATCH_SCRIPT,
        max_wait: int = 0,
        image_dir: str = "",
    ) -> int:
        """Have a checkpoint made, and what it is of ended after it."""
        return await checkpoint.vacate(caller("rpc"), job_id, step_id, max_wait, image_dir)

    async def slurm_checkpoint_requeue(
        self, job_id: int, max_wait: int = 0, image_dir: str = ""
    ) -> int:
        """Have a checkpoint of a batch job made, and the job go back into the queue after it."""
        return await checkpoint.requeue(caller("rpc"), job_id, max_wait, image_dir)

    async def slurm_checkpoint_restart(
        self,
        job_id: int,
        step_id: int = SLURM_BATCH_SCRIPT,
        stick: int = 0,
        image_dir: str = "",
    ) -> int:
        """Have a batch job that is over submitted again, to go on from its images."""
        return await checkpoint.restart(caller("rpc"), job_id, step_id, stick, image_dir)

    async def slurm_checkpoint_error(
        self, job_id: int, step_id: int = SLURM_BATCH_SCRIPT
    ) -> tuple[int, int, str]:
        """Tell how the last checkpoint went: a result, the error's number, and what it says."""
        return await checkpoint.error(caller("rpc"), job_id, step_id)

    async def slurm_checkpoint_complete(
        self, job_id: int, step_id: int, begin_time: int, error_code: int = 0, error_msg: str = ""
    ) -> int:
        """Report that a checkpoint is complete."""
        report = begin_time, error_code, error_msg
        return await checkpoint.complete(caller("rpc"), job_id, step_id, *report)

    async def slurm_checkpoint_task_complete(
        self,
        job_id: int,
        step_id: int,
        task_id: int,
        begin_time: int,
        error_code: int = 0,
        error_msg: str = "",
    ) -> int:
        """Report that the checkpoint of one task is complete."""
        report = begin_time, error_code, error_msg
        return await checkpoint.task_complete(caller("rpc"), job_id, step_id, task_id, *report)

    async def slurm_checkpoint_tasks(
        self,
        job_id: int,
        step_id: int,
        begin_time: int,
        image_dir: str,
        max_wait: int = 0,
        nodelist: str = "",
    ) -> int:
        """Have the slurmds of nodes save a step's tasks, and wait until they have.

        *nodelist* names them, as `JobRecord.nodes` does; without any it is -1, with EINVAL.
        """
        return await checkpoint.tasks(
            caller("rpc"), job_id, step_id, begin_time, image_dir, max_wait, nodelist
        )

    def __getattr__(self, name: str) -> NoReturn:
        """Say which functions there are."""
        built = ", ".join(sorted(key for key in vars(Rpc) if key.startswith("slurm_")))
        raise AttributeError(f"rpc.{name} is not simulated; these are: {built}")
