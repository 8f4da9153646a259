"""What a step daemon tells its srun: how the launch went, what tasks write, how they end."""

from typing import Final

import attrs

from simctl.kernel.fabric import Mailbox, Unanswered
from simctl.kernel.outbox import Outbox
from simctl.kernel.procs import Process
from simctl.site import Site
from simctl.stepd.outcome import NEVER_US, group_exits, patience_us
from simctl.stepd.work import StepWork
from simctl.wire.ids import SECOND
from simctl.wire.messages import (
    Message,
    MessageTaskExit,
    ResponseLaunchTasks,
    ResponseSlurmRc,
    TaskOutput,
)

_COLLECT_US: Final = 100_000
"""Model modern: how long ended tasks are gathered before srun is told of them."""

_AGAIN_US: Final = SECOND
"""How far apart the tries are while srun cannot be reached."""


@attrs.frozen(kw_only=True)
class LineLost:
    """Tell srun that the line to a step daemon is dead, which had more to say and is gone."""

    node: str


_ANSWERED: Final = (ResponseLaunchTasks, MessageTaskExit)
"""Messages that srun answers in model modern."""


class SrunLink:
    """The way to the srun of a step; a batch script has none, and no srun is told."""

    def __init__(
        self, site: Site, process: Process, mailbox: Mailbox, srun: Mailbox | None, work: StepWork
    ) -> None:
        self._site = site
        self._process = process
        self._work = work
        self._srun = srun
        self._outbox = Outbox(site.fabric, process, mailbox, interval_us=_AGAIN_US, over_cuts=False)
        self._unreported: list[tuple[int, int]] = []
        self._causes: list[int] = []
        """What the ends of these tasks are the causes of."""

        self._flush_us = NEVER_US
        self._unanswered: list[Message] = []
        """What srun has yet to answer."""

        self._answer_by_us = -1
        """When the answers, or an srun that is dead, are waited for no longer."""

    @property
    def due_us(self) -> int:
        """Return when `tell_early` has something to do; NEVER_US if it has not."""
        return min(self._flush_us, self._outbox.due_us)

    @property
    def held_back_until_us(self) -> int:
        """Return when what a cut link holds back may get through; NEVER_US if there is nothing."""
        return self._outbox.due_us

    def flush(self) -> None:
        """Send what a cut link held back, if its time has come."""
        if self._outbox.due_us <= self._site.kernel.now_us:
            self._outbox.flush()

    def hang_up(self) -> None:
        """Say nothing more; what is still held back srun learns to be lost, once the link heals."""
        if self._srun is not None and self._outbox.due_us < NEVER_US:
            notice = LineLost(node=self._process.host.name)
            self._srun.post(notice, due_us=self._outbox.due_us)

    def launched(self, rc: int, ranks: tuple[int, ...]) -> None:
        """Tell srun how the launch went."""
        job = self._work.job
        if job.batch:
            return
        self._tell(
            ResponseLaunchTasks(
                job_id=job.job_id,
                step_id=job.step_id,
                return_code=rc,
                node_name=self._process.host.name,
                count_of_pids=job.node_tasks,
                task_ids=self._work.tids if rc else ranks,
            ),
        )

    def _tell(self, message: ResponseLaunchTasks | MessageTaskExit) -> None:
        """Send what srun answers in model modern; model guide's daemons only send it."""
        sent = self._outbox.send(self._srun, message)
        if self._site.model == "guide":
            return
        if sent:
            self._unanswered.append(message)
            self._wait_for(max(self._site.fabric.timeout_us, self._patience_us))
        else:
            self._wait_for(self._patience_us)

    @property
    def _patience_us(self) -> int:
        return patience_us(self._work.nnodes)

    def _wait_for(self, time_us: int) -> None:
        self._answer_by_us = max(self._answer_by_us, self._site.kernel.now_us + time_us)

    def answered(self, message: ResponseSlurmRc | Unanswered) -> None:
        """Note that srun has answered, or that it died before it did.

        What was lost on its way is sent again, and is answered then.
        """
        if isinstance(message, Unanswered):
            if not isinstance(message.request, _ANSWERED):
                return
            self._answer_by_us = -1
            self._wait_for(self._patience_us)
        again = isinstance(message, Unanswered) and message.lost and not message.for_ever
        if message.request in self._unanswered and not again:
            self._unanswered.remove(message.request)
        if isinstance(message, ResponseSlurmRc) and not self._unanswered:
            self._answer_by_us = -1

    @property
    def waits_until_us(self) -> int:
        """Return until when the end of the step is not reported, for srun has yet to answer."""
        return self._answer_by_us

    def output(self, rank: int, stream: str, text: str) -> None:
        """Hand on what a task wrote."""
        job = self._work.job
        self._outbox.send(
            self._srun,
            TaskOutput(
                job_id=job.job_id, step_id=job.step_id, task_id=rank, stream=stream, text=text
            ),
        )

    def ended(self, rank: int, status: int, cause: int) -> None:
        """Note how a task ended, to be told, and what that is the cause of."""
        if not self._work.job.batch:
            self._unreported.append((rank, status))
            self._causes.append(cause)

    def tell_early(self, *, more_to_come: bool) -> None:
        """Tell of tasks that ended before the last: at once in guide, gathered in modern."""
        if not self._unreported:
            return
        if self._site.model == "guide":
            self.tell_exits()
            return
        now_us = self._site.kernel.now_us
        if self._flush_us == NEVER_US:
            self._flush_us = now_us + _COLLECT_US
        elif now_us >= self._flush_us and more_to_come:
            self.tell_exits()

    def tell_exits(self) -> None:
        """Send MESSAGE_TASK_EXIT for every ended task that srun has not been told of."""
        ended = self._unreported
        if not ended:
            return
        own = self._process.cause
        self._site.trace.join(self._process, *self._causes)
        self._unreported, self._causes = [], []
        self._flush_us = NEVER_US
        job = self._work.job
        for status, ranks in group_exits(ended):
            self._tell(
                MessageTaskExit(
                    job_id=job.job_id, step_id=job.step_id, return_code=status, task_ids=ranks
                ),
            )
        self._process.cause = own
