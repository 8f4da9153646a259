"""What slurmd does to suspend and resume the jobs of its node: a thread a job."""

from collections.abc import Callable
from typing import Final

import attrs

from simctl.kernel.fabric import Mailbox
from simctl.kernel.procs import Process
from simctl.plugins.hooks import About, Handle, Hooks
from simctl.plugins.points.declare import Point
from simctl.plugins.points.switch_besides import (
    switch_p_job_resume,
    switch_p_job_suspend,
    switch_p_job_suspend_info_free,
    switch_p_job_suspend_info_unpack,
)
from simctl.site import Site
from simctl.stepd.one_by_one import OneByOne
from simctl.wire.ids import SECOND
from simctl.wire.messages import (
    SUSPEND_JOB,
    RequestStepResume,
    RequestStepSuspend,
    RequestSuspendInt,
)

_ANSWER_WITHIN_US: Final = 10 * SECOND
"""How long a step daemon is waited for."""

_SWITCH_WAIT_S: Final = 5
"""How long the switch plugin may take to suspend or resume a job: its `max_wait`."""

Steps = Callable[[int], list[tuple[tuple[int, int], Mailbox]]]
"""Gives the steps of a job on the node, with where their daemons receive."""


@attrs.frozen
class _Asked:
    """A request, with what the switch plugin has unpacked of it.

    That is None for a step that was still to be launched: the switch knows of the job already.
    """

    message: RequestSuspendInt
    info: Handle | None


async def unpack_info(hooks: Hooks, who: Process, message: RequestSuspendInt) -> Handle | None:
    """Return what the switch plugin of slurmctld has to tell; None if it cannot be unpacked."""
    about = About(job=message.job_id)
    buffer = message.switch_info.opened()
    info: Handle | int = await hooks.call_besides(
        switch_p_job_suspend_info_unpack, who, buffer, about=about
    )
    return info if isinstance(info, Handle) else None


class Suspensions:
    """The jobs that are suspended on a node, and the threads that have it done."""

    def __init__(self, site: Site, process: Process, steps_of: Steps) -> None:
        self._site = site
        self._process = process
        self._steps_of = steps_of
        self._queues: dict[int, OneByOne[_Asked]] = {}
        self._suspended: dict[int, bool] = {}
        self._heeded: dict[int, tuple[int, int]] = {}
        """The latest request about each job: the run it was for, and its number."""

    def is_news(self, message: RequestSuspendInt) -> bool:
        """Return whether a request has not been heeded yet, nor a later one."""
        known = self._heeded.get(message.job_id, (-1, 0))
        mine = (message.restart_cnt, message.number)
        if mine <= known:
            return False
        self._heeded[message.job_id] = mine
        return True

    def take(self, message: RequestSuspendInt, info: Handle | None = None) -> None:
        """Have a job suspended or resumed, behind what is under way for it."""
        queue = self._queues.get(message.job_id)
        if queue is None:
            queue = OneByOne(self._process, "suspend", self._serve)
            self._queues[message.job_id] = queue
        self._suspended[message.job_id] = message.op == SUSPEND_JOB
        queue.add(_Asked(message, info))

    def launched(self, job_id: int) -> None:
        """Suspend a step as well that was on its way when its job was suspended."""
        if self._suspended.get(job_id):
            self.take(RequestSuspendInt(job_id=job_id, op=SUSPEND_JOB))

    def forget(self, job_id: int) -> bool:
        """Forget a job that is over; return whether it was suspended."""
        self._queues.pop(job_id, None)
        return self._suspended.pop(job_id, False)

    async def _serve(self, asked: _Asked) -> None:
        """Have the switch suspend the job before its steps, or resume it after them."""
        message, info = asked.message, asked.info
        if info is not None and message.op == SUSPEND_JOB:
            await self._switch(switch_p_job_suspend, message, info, _SWITCH_WAIT_S)
        await self._ask_steps(message)
        if info is None:
            return
        if message.op != SUSPEND_JOB:
            await self._switch(switch_p_job_resume, message, info, _SWITCH_WAIT_S)
        await self._switch(switch_p_job_suspend_info_free, message, info)

    async def _switch(
        self, point: Point, message: RequestSuspendInt, info: Handle, *more: int
    ) -> None:
        about = About(job=message.job_id)
        await self._site.hooks.call_besides(point, self._process, info, *more, about=about)

    async def _ask_steps(self, message: RequestSuspendInt) -> None:
        """Ask every step daemon of a job, and wait for their answers."""
        site = self._site
        box = site.fabric.mailbox(self._process, f"slurmd@{self._process.host.name}")
        request = RequestStepSuspend if message.op == SUSPEND_JOB else RequestStepResume
        asked = 0
        for (job_id, step_id), stepd in self._steps_of(message.job_id):
            asked += site.fabric.send(
                self._process, stepd, request(job_id=job_id, step_id=step_id), box
            )
        until_us = site.kernel.now_us + _ANSWER_WITHIN_US
        while asked and await box.receive_until(until_us) is not None:
            asked -= 1
        box.close()
