"""What slurmd does to have the tasks of its node saved: a thread a request."""

from collections.abc import Callable

from simctl.kernel.fabric import Envelope, Mailbox, Unanswered
from simctl.kernel.procs import Process
from simctl.nodes.authority import Authority
from simctl.site import Site
from simctl.wire.errno import (
    ESLURM_INVALID_JOB_ID,
    ESLURM_USER_ID_MISSING,
    ESLURMD_JOB_NOTRUNNING,
    SLURM_ERROR,
)
from simctl.wire.ids import SECOND
from simctl.wire.messages import RequestCheckpointTasks, ResponseSlurmRc

Find = Callable[[int, int], Mailbox | None]
"""Gives where the daemon of a step receives."""

Answer = Callable[[Envelope, int], None]
"""Answers a request with 0 or an error number."""


def _has_tasks(stepd: Process) -> bool:
    """Return whether a step daemon has forked its tasks."""
    return stepd.stepd is not None and bool(stepd.stepd.tasks())


class Checkpoints:
    """Passes requests for images on to step daemons, and their answers back."""

    def __init__(
        self, site: Site, process: Process, authority: Authority, find: Find, answer: Answer
    ) -> None:
        self._site = site
        self._authority = authority
        self._process = process
        self._find = find
        self._answer = answer

    def take(self, envelope: Envelope, message: RequestCheckpointTasks) -> None:
        """Have the tasks of a step saved, if the sender of the request may ask for it."""
        stepd = self._find(message.job_id, message.step_id)
        if stepd is None:
            self._answer(envelope, ESLURM_INVALID_JOB_ID)
        elif not self._authority.is_for(envelope.sender, stepd.process.owner):
            self._authority.tell(envelope, ESLURM_USER_ID_MISSING, "it is another user's step")
            self._answer(envelope, ESLURM_USER_ID_MISSING)
        elif not _has_tasks(stepd.process):
            # Its main thread, which serves requests, is still setting the step up.
            self._answer(envelope, ESLURMD_JOB_NOTRUNNING)
        else:

            async def body() -> None:
                self._answer(envelope, await self._ask(stepd, message))

            self._process.start(body, "checkpoint")

    async def _ask(self, stepd: Mailbox, message: RequestCheckpointTasks) -> int:
        """Ask a step daemon, and wait for its answer however long that takes."""
        site = self._site
        box = site.fabric.mailbox(self._process, f"slurmd@{self._process.host.name}")
        asked_us, wait_us = site.kernel.now_us, site.conf.message_timeout_s * SECOND
        try:
            if not site.fabric.send(self._process, stepd, message, box):
                return ESLURMD_JOB_NOTRUNNING
            answered = None
            while answered is None:
                if not stepd.open and site.kernel.now_us > asked_us:
                    # It ended in the moment in which it was asked.
                    return ESLURMD_JOB_NOTRUNNING
                answered = await box.receive_until(site.kernel.now_us + wait_us)
            answer = answered.message
        finally:
            box.close()
        if isinstance(answer, Unanswered):
            return ESLURMD_JOB_NOTRUNNING
        assert isinstance(answer, ResponseSlurmRc)
        failed = answer.return_code == SLURM_ERROR
        return ESLURMD_JOB_NOTRUNNING if failed else answer.return_code
