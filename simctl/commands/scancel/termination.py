"""How scancel has jobs and steps ended or signalled: its questions, tries and complaints."""

from collections.abc import Mapping
from typing import Any, Final

from simctl.commands.asking.ask import ask, no_answer
from simctl.kernel.procs import SIGKILL
from simctl.site import CommandCall
from simctl.wire.errno import (
    ESLURM_ALREADY_DONE,
    ESLURM_INVALID_JOB_ID,
    ESLURM_JOB_PENDING,
    ESLURM_TRANSITION_STATE_NO_UPDATE,
    SLURM_SUCCESS,
    SlurmError,
    errno_name,
    slurm_strerror,
)
from simctl.wire.ids import SECOND
from simctl.wire.info import JobInfo
from simctl.wire.messages import RequestCancelJobStep, RequestKillJob, ResponseSlurmRc

_TRIES: Final = 10
_FIRST_PAUSE_S: Final = 5
"""A job between two states is tried again after 5, 6, 7 seconds and so on."""

_GONE: Final = (ESLURM_ALREADY_DONE, ESLURM_INVALID_JOB_ID)


class Termination:
    """What scancel does to jobs and steps, one after the other; the worst error is its status."""

    def __init__(self, call: CommandCall, options: Mapping[str, Any]) -> None:
        self._call = call
        self._options = options
        self._loud = bool(options.get("verbose"))
        self._questions = call.stdin.splitlines()
        self.signal: int = options.get("signal", SIGKILL)
        self._code = SLURM_SUCCESS

    @property
    def status(self) -> int:
        """Return the exit status: the greatest error number, of which a shell sees one byte."""
        return self._code & 0xFF

    async def job(self, request: RequestKillJob, name: str) -> None:
        """End or signal a job, all of an array, or tasks of one."""
        kind = "full " if "full" in self._options else "batch " if request.batch_only else ""
        if "signal" in self._options:
            self._tell(f"Signal {self.signal} to {kind}job {name}")
        else:
            self._tell(f"Terminating {kind}job {name}")
        code = await self._ask(
            request, f"job id {name}", (ESLURM_TRANSITION_STATE_NO_UPDATE,), quiet=_GONE
        )
        # A job that is gone already is no failure: that is what was asked for. Of a step it is.
        if code not in _GONE or self.signal != SIGKILL:
            self._code = max(self._code, code)

    async def step(self, request: RequestCancelJobStep, name: str) -> None:
        """End or signal a step; complaints name its job alone."""
        step = f"step {name}.{request.step_id}"
        if self.signal == SIGKILL:
            self._tell(f"Terminating {step}")
        else:
            self._tell(f"Signal {self.signal} to {step}")
        code = await self._ask(
            request,
            f"job step id {name}",
            (ESLURM_TRANSITION_STATE_NO_UPDATE, ESLURM_JOB_PENDING),
            quiet=(ESLURM_ALREADY_DONE,),
        )
        self._code = max(self._code, code)

    def confirmed(self, job: JobInfo, name: str, step_id: int | None) -> bool:
        """Ask the user whether to go on; what is no answer is asked again, an end of input a no."""
        what = f"job_id={name}" if step_id is None else f"step_id={name}.{step_id}"
        while True:
            question = f"Cancel {what} name={job.name} partition={job.partition} [y/n]? "
            self._call.write("stdout", question)
            answer = self._questions.pop(0) if self._questions else "n"
            if answer[:1].lower() in ("y", "n"):
                return answer[:1].lower() == "y"

    async def _ask(
        self,
        request: RequestKillJob | RequestCancelJobStep,
        what: str,
        passing: tuple[int, ...],
        *,
        quiet: tuple[int, ...],
    ) -> int:
        """Send a request until it is taken or refused for good; return the error number."""
        call = self._call
        code = SLURM_SUCCESS
        for number in range(_TRIES):
            try:
                reply = await ask(call, request)
            except SlurmError as error:
                no_answer(call, error, f"scancel: error: Kill job error on {what}")
                return error.errno
            assert isinstance(reply, ResponseSlurmRc)
            code = reply.return_code
            if code not in passing:
                break
            # The spelling is Slurm's.
            self._tell("Job is in transistional state, retrying")
            await call.site.kernel.sleep_us((_FIRST_PAUSE_S + number) * SECOND)
        if code:
            call.errno = errno_name(code)
        if code and (self._loud or code not in quiet):
            call.err(f"scancel: error: Kill job error on {what}: {slurm_strerror(code)}")
        return code

    def _tell(self, line: str) -> None:
        if self._loud:
            self._call.err(f"scancel: {line}")
