"""What every handler of slurmctld is given: tables, ways out, burst buffers, saves, moments."""

from collections.abc import Awaitable, Callable
from functools import partial

import attrs

from simctl.ctld.port.burst_buffers import BurstBuffers
from simctl.ctld.port.job_submit import JobSubmit
from simctl.ctld.port.polls import Polls
from simctl.ctld.port.port import Port
from simctl.ctld.saved.state_save import StateSave
from simctl.ctld.state.records import JobRecord, NodeRecord, PartRecord
from simctl.kernel.fabric import Envelope, Mailbox
from simctl.kernel.procs import Host
from simctl.plugin import JobRecord as JobPtr
from simctl.site import Site
from simctl.wire.errno import EPERM
from simctl.wire.ids import SECOND
from simctl.wire.messages import Message, ResponseSlurmRc
from simctl.wire.rights import DENIALS


class Fatal(Exception):
    """Why slurmctld cannot go on; its main loop ends the process."""


class Controller(Port):
    """A slurmctld as its handlers see it; `daemon.Slurmctld` is its main loop."""

    def __init__(
        self,
        site: Site,
        host: Host,
        *,
        uid: int,
        records: list[NodeRecord],
        partitions: list[PartRecord],
        simulates_saves: bool,
        moments: "Moments",
        views: "Callable[[Controller, JobRecord], JobPtr]",
    ) -> None:
        super().__init__(site, host, uid=uid, records=records, partitions=partitions)
        self.moments = moments
        self.polls = Polls(self)
        types = site.conf.burst_buffer_types
        self.bb = (
            BurstBuffers(self, types, views=partial(views, self), heard=self.polls.heard)
            if types
            else None
        )
        """The burst buffer plugins; None where none is configured."""
        self.job_submit = (
            JobSubmit(self, site.conf.job_submit_types, views=partial(views, self))
            if site.conf.job_submit_types
            else None
        )
        """The job_submit plugins; None where none is configured."""
        self.saves = StateSave(self, simulated=simulates_saves)

    def send(self, to: Mailbox | None, message: Message) -> bool:
        """Send a message; false when its receiver is away.

        What a cut link holds back is sent later.
        """
        if self.saves.write_through:
            self.saves.commit()
        if self.site.fabric.send(self.process, to, message, self.mailbox):
            return True
        self.moments.not_sent(self, to, message)
        return False

    def answer(self, envelope: Envelope, return_code: int) -> None:
        """Answer a request with a return code; that the client may not ask is told in the trace."""
        if return_code in DENIALS and return_code != EPERM:
            self.tell_refusal(envelope, return_code)
        if not self.send(envelope.sender, ResponseSlurmRc.to(envelope.message, return_code)):
            timeout_us = self.site.conf.message_timeout_s * SECOND
            self.site.fabric.answer_lost(envelope, self.mailbox, timeout_us)


@attrs.frozen(kw_only=True)
class Moments:
    """What rooms below tell rooms above, and who takes it in: `daemon` declares that once.

    A moment is for an arrow that would lead upwards, and for nothing else. Each is a plain call.
    """

    not_sent: Callable[[Controller, Mailbox | None, Message], None]
    """A message was not sent: its receiver is away, or the link is cut."""
    told_by_plugin: Callable[[Controller, JobRecord], None]
    """A plugin has changed the record of a job that waits."""
    never_eligible: Callable[[Controller, JobRecord], None]
    """A job waits for what can never be, and is to end of it."""
    nodes_left: Callable[[Controller], Awaitable[None]]
    """A job has left the last of its nodes."""
