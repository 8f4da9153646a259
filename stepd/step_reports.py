"""What a step daemon tells slurmctld, through the tree of the step's daemons, when it is over."""

from collections.abc import Callable
from typing import Final

from simctl.kernel.fabric import Envelope, Mailbox, Reachable, Unanswered
from simctl.kernel.procs import Process
from simctl.site import Site
from simctl.stepd.batch_files import NO_OUTPUT_STATUS
from simctl.stepd.outcome import NEVER_US, last_step_rc, own_last, runs_of, step_rc
from simctl.stepd.tasks import TaskSet
from simctl.stepd.work import StepWork
from simctl.wire.ids import SECOND
from simctl.wire.messages import (
    Message,
    RequestCompleteBatchScript,
    RequestStepComplete,
    ResponseSlurmRc,
)

_TREE_TRIES: Final = 5
"""How often a report is sent to the parent, a second apart, before slurmctld gets it."""

_STEP_AGAIN_US: Final = 60 * SECOND
_BATCH_AGAIN_US: Final = 15 * SECOND
"""How far apart the tries are while slurmctld cannot be reached."""

_TREE_WAIT_S: Final = 60
_TREE_WAIT_PER_LEVEL_S: Final = 3


class StepReports:
    """The end of a step on a node and on those below it; requests are *served* meanwhile."""

    def __init__(
        self,
        site: Site,
        process: Process,
        mailbox: Mailbox,
        work: StepWork,
        tasks: TaskSet,
        *,
        serve: Callable[[Envelope], None],
    ) -> None:
        self._site = site
        self._process = process
        self._mailbox = mailbox
        self._work = work
        self._tasks = tasks
        self._serve = serve
        self._children_rc = 0
        self._heard: list[int] = []
        """What the reports from below are the causes of."""
        self._reports = [True] + [False] * (work.branch.last - work.job.nodeid)

    def close(self) -> None:
        """Let go of the server of requests, so that neither waits for the collector."""
        self._serve = _ignore

    async def complete_batch(self, rc: int, *, has_output: bool = True) -> None:
        """Report how a batch script ended, or why it could not be started.

        One whose output files could not be opened was never run. That is no fault of the node.
        """
        status = self._tasks.tasks[0].status if self._tasks.tasks and not rc else 0
        if not has_output:
            status = NO_OUTPUT_STATUS
        await self._report_to_controller(
            RequestCompleteBatchScript(
                job_id=self._work.job.job_id,
                job_rc=status,
                slurm_rc=rc,
                node_name=self._process.host.name,
                restart_cnt=self._work.restart_cnt,
            ),
            again_us=_BATCH_AGAIN_US,
        )

    async def complete_step(self) -> None:
        """Report the end of the step for this node and the nodes below it in the tree."""
        if len(self._reports) == 1:
            await self._report_step(self._step_report(0, 0))
            return
        own = self._process.cause
        await self._wait_for_children()
        self._site.trace.choose(self._process, own, *self._heard)
        told = [False] * len(self._reports)
        while True:
            # A report from below may come in while slurmctld cannot be reached.
            new = own_last(
                runs_of([have and not was for have, was in zip(self._reports, told, strict=True)])
            )
            for first, last in new:
                told[first : last + 1] = [True] * (last + 1 - first)
                await self._report_step(self._step_report(first, last))
            if not new:
                return

    def _step_report(self, first: int, last: int) -> RequestStepComplete:
        job = self._work.job
        fold = last_step_rc if self._site.model == "modern" else step_rc
        return RequestStepComplete(
            job_id=job.job_id,
            step_id=job.step_id,
            range_first=job.nodeid + first,
            range_last=job.nodeid + last,
            step_rc=max(fold(task.status for task in self._tasks.tasks), self._children_rc),
        )

    async def _report_step(self, report: RequestStepComplete) -> None:
        """Send a report to the parent in the tree, or to slurmctld if that does not answer."""
        parent = self._work.parent
        for attempt in range(_TREE_TRIES if parent else 0):
            if attempt:
                await self._serve_until(self._site.kernel.now_us + SECOND)
            if self._send(self._site.fabric.find(parent), report):
                if not self._site.fabric.swallowed:
                    return
                await self._serve_until(self._site.kernel.now_us + self._site.fabric.timeout_us)
        await self._report_to_controller(report, again_us=_STEP_AGAIN_US)

    async def _wait_for_children(self) -> None:
        """Wait for the reports of the daemons below, but not for ever for one that is lost."""
        wait_s = _TREE_WAIT_S + _TREE_WAIT_PER_LEVEL_S * self._work.branch.height
        limit_us = self._site.kernel.now_us + wait_s * SECOND
        while not all(self._reports):
            envelope = await self._mailbox.receive_until(limit_us)
            if envelope is None:
                return
            self._serve(envelope)

    def fold(self, report: RequestStepComplete) -> None:
        """Handle the report of a daemon further down the tree."""
        own = self._work.job.nodeid
        self._heard.append(self._process.cause)
        for rank in range(report.range_first, report.range_last + 1):
            self._reports[rank - own] = True
        self._children_rc = max(self._children_rc, report.step_rc)

    def _send(self, to: Mailbox | None, message: Message) -> bool:
        return self._site.fabric.send(self._process, to, message, self._mailbox)

    async def _report_to_controller(self, report: Message, *, again_us: int) -> None:
        """Send slurmctld a report until it is answered; a slurmctld that is gone is not told."""
        fabric = self._site.fabric
        while True:
            controller = fabric.find("slurmctld")
            if self._send(controller, report):
                unanswered = await self._answered(report)
                if unanswered is None:
                    return
                if unanswered.for_ever:
                    await self._serve_until(NEVER_US)
                controller = fabric.find("slurmctld")
            elif not fabric.holds_back(self._process, controller):
                return
            assert controller is not None
            await self._serve_until(fabric.next_try_us(self._mailbox, controller, again_us))

    async def _answered(self, report: Message) -> Unanswered | None:
        """Wait for the answer of slurmctld to a report; return it if there is none in time."""
        while True:
            envelope = await self._mailbox.receive()
            message = envelope.message
            if isinstance(message, ResponseSlurmRc) and message.answers == report.rpc:
                return None
            if isinstance(message, Unanswered) and message.by.name == "slurmctld":
                return message
            self._serve(envelope)

    async def _serve_until(self, due_us: int) -> None:
        """Serve requests until a moment."""
        while True:
            if due_us == NEVER_US:
                envelope: Envelope | None = await self._mailbox.receive()
            else:
                envelope = await self._mailbox.receive_until(due_us)
            if envelope is None or isinstance(envelope.message, Reachable):
                return
            self._serve(envelope)


def _ignore(_: Envelope) -> None:
    """Stand in for the server of requests."""
