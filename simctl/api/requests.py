"""libslurm's functions: requests that a process sends to the cluster, and their answers."""

from typing import NoReturn

from simctl.api.surroundings import caller
from simctl.kernel.fabric import Mailbox, Unanswered
from simctl.kernel.procs import SIGKILL
from simctl.wire.errno import (
    SLURM_COMMUNICATIONS_CONNECTION_ERROR,
    SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT,
    SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR,
    SlurmError,
)
from simctl.wire.ids import SECOND
from simctl.wire.messages import (
    Message,
    RequestCancelJobStep,
    RequestKillJob,
    RequestPing,
    RequestSubmitBatchJob,
    ResponseSubmitBatchJob,
)
from simctl.wire.records import JobDesc


async def _ask(to: Mailbox | None, request: Message, unreachable: int) -> Message:
    """Send a request from the calling process and return the answer.

    Raises:
        SlurmError: Nobody can be reached there, or none answers within MessageTimeout.
    """
    process = caller("rpc")
    table = process.table
    box = table.fabric.mailbox(process, f"{process.daemon}[{process.pid}]")
    try:
        if not table.fabric.send(process, to, request, box):
            raise SlurmError(unreachable)
        envelope = await box.receive_until(
            table.kernel.now_us + table.conf.message_timeout_s * SECOND
        )
        if envelope is None or isinstance(envelope.message, Unanswered):
            raise SlurmError(SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT)
        answer: Message = envelope.message
        return answer
    finally:
        box.close()


async def _ask_slurmctld(request: Message) -> Message:
    controller = caller("rpc").table.fabric.addresses.get("slurmctld")
    return await _ask(controller, request, SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR)


def _check(answer: Message) -> None:
    """Raise what an answer's return code says, as `errno` after a call of libslurm's does."""
    code = getattr(answer, "return_code", 0)
    if code:
        raise SlurmError(code)


class Rpc:
    """libslurm's functions for a plugin, each an `async def` that raises SlurmError.

    Requests are made as the calling process's user, and answered in virtual time. A plugin that
    asks slurmctld from inside slurmctld's own call waits for itself, until MessageTimeout (10 s)
    ends it: the daemon answers nobody while its plugin has not returned. From a thread of the
    plugin (`start`) the same request is answered.
    """

    async def slurm_ping(self, node: str = "") -> None:
        """Ask slurmctld, or slurmd on *node*, whether it is there."""
        if not node:
            _check(await _ask_slurmctld(RequestPing()))
            return
        slurmd = caller("rpc").table.fabric.addresses.get(f"slurmd@{node}")
        _check(await _ask(slurmd, RequestPing(), SLURM_COMMUNICATIONS_CONNECTION_ERROR))

    async def slurm_submit_batch_job(self, job_desc: JobDesc) -> int:
        """Submit a batch job; return its id."""
        answer = await _ask_slurmctld(RequestSubmitBatchJob(job_desc=job_desc))
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
        _check(await _ask_slurmctld(request))

    async def slurm_kill_job_step(self, job_id: int, step_id: int, signal: int = SIGKILL) -> None:
        """Signal a step."""
        request = RequestCancelJobStep(job_id=job_id, step_id=step_id, signal=signal)
        _check(await _ask_slurmctld(request))

    def __getattr__(self, name: str) -> NoReturn:
        """Say which functions there are."""
        built = ", ".join(sorted(key for key in vars(Rpc) if key.startswith("slurm_")))
        raise AttributeError(f"rpc.{name} is not simulated; these are: {built}")
