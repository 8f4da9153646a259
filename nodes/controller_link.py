"""What slurmd tells slurmctld: that the node is there, and what becomes of jobs on it."""

from collections.abc import Callable
from typing import Final

import attrs

from simctl.kernel.fabric import NEVER_US, Mailbox
from simctl.kernel.outbox import Outbox
from simctl.kernel.procs import Process
from simctl.plugins.hooks import failed
from simctl.plugins.points.switch import (
    switch_p_alloc_node_info,
    switch_p_build_node_info,
    switch_p_free_node_info,
    switch_p_pack_node_info,
)
from simctl.site import Site
from simctl.wire.buf import Buf, Packed
from simctl.wire.errno import SLURM_SUCCESS
from simctl.wire.ids import SECOND
from simctl.wire.messages import Message, MessageNodeRegistrationStatus

_REPORT_AGAIN_US: Final = 60 * SECOND
"""How far apart the tries to send a report are, while slurmctld cannot be reached."""

_REGISTER_AGAIN_US: Final = SECOND
"""The same of the first registration."""


@attrs.frozen
class RegistrationDue:
    """Time to try again to register."""


@attrs.frozen
class ReportsDue:
    """Time to send the reports that a cut link held back."""


class ControllerLink:
    """The way of a slurmd to slurmctld; *listed* gives the steps that a registration lists.

    *starting* gives the runs of jobs whose launches wait for a prolog, *left* those of which tasks
    are left whose step daemons were killed.
    """

    def __init__(
        self,
        site: Site,
        process: Process,
        mailbox: Mailbox,
        *,
        listed: Callable[[], tuple[tuple[int, int, int], ...]],
        starting: Callable[[], tuple[tuple[int, int], ...]],
        left: Callable[[], tuple[tuple[int, int], ...]],
    ) -> None:
        self._site = site
        self._process = process
        self._mailbox = mailbox
        self._listed = listed
        self._starting = starting
        self._left = left
        self._outbox = Outbox(site.fabric, process, mailbox, interval_us=_REPORT_AGAIN_US)
        self._started_us = site.kernel.now_us
        self.registered = False

    async def register(self) -> None:
        """Register, with the state of the node's switch."""
        hooks = self._site.hooks
        who = self._process
        packed = Packed()
        info = await hooks.call(switch_p_alloc_node_info, who)
        # A failure on the way is logged by the plugin's own error; the node registers all the same.
        if not failed(info):
            await hooks.call(switch_p_build_node_info, who, info)
            buffer = Buf()
            await hooks.call(switch_p_pack_node_info, who, info, buffer)
            packed = hooks.packed(who, buffer)
        self._send_registration(packed)
        if not failed(info):
            await hooks.call(switch_p_free_node_info, who, info)

    def _send_registration(self, packed: Packed) -> None:
        """Send a registration; the first is tried again until slurmctld can be reached."""
        fabric = self._site.fabric
        controller = fabric.find("slurmctld")
        message = self._registration(SLURM_SUCCESS, packed, startup=not self.registered)
        if fabric.send(self._process, controller, message, self._mailbox):
            self.registered = True
            return
        if self.registered or controller is None:
            return
        if fabric.holds_back(self._process, controller):
            due_us = fabric.next_try_us(self._mailbox, controller, _REGISTER_AGAIN_US)
            if due_us < NEVER_US:
                self._mailbox.post_at(due_us, RegistrationDue())

    async def register_again(self, lost: MessageNodeRegistrationStatus) -> None:
        """Register once more, because a registration was lost; the first is still the first."""
        if lost.startup:
            self.registered = False
        await self.register()

    def _registration(
        self, status: int, packed: Packed, *, startup: bool
    ) -> MessageNodeRegistrationStatus:
        return MessageNodeRegistrationStatus(
            node_name=self._process.host.name,
            status=status,
            steps=self._listed(),
            starting=self._starting(),
            # Real slurmd knows of a job's processes from step daemons alone.
            left=self._left() if self._site.model == "guide" else (),
            startup=startup,
            booted_us=self._process.host.booted_us,
            started_us=self._started_us,
            switch_nodeinfo=packed,
        )

    def register_failure(self, status: int) -> None:
        """Have the node drained, by a registration that bears no switch state."""
        self.report(self._registration(status, Packed(), startup=False))

    def report(self, message: Message) -> bool:
        """Send slurmctld what it has to know, if it is there; what a cut link holds back, later."""
        kept = self._outbox.send(self._site.fabric.find("slurmctld"), message)
        self._watch_outbox()
        return kept

    def _watch_outbox(self) -> None:
        if self._outbox.due_us < NEVER_US:
            self._mailbox.post_at(self._outbox.due_us, ReportsDue())

    async def try_again(self) -> None:
        """Do what could not be done while slurmctld was away."""
        self._outbox.flush()
        self._watch_outbox()
        if not self.registered:
            await self.register()

    def send_reports(self) -> None:
        """Send the reports that were held back, if their time has come."""
        if self._outbox.due_us <= self._site.kernel.now_us:
            self._outbox.flush()
            self._watch_outbox()
