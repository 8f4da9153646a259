"""The backup controller: it watches slurmctld, and takes its place after SlurmctldTimeout."""

from typing import Final

from simctl.faults.daemons import Daemons
from simctl.kernel.fabric import Envelope, Mailbox
from simctl.kernel.procs import Host, Process, RunsAs
from simctl.kernel.threads import Thread
from simctl.wire.errno import ESLURM_IN_STANDBY_MODE
from simctl.wire.hosts import CONTROLLER
from simctl.wire.ids import SECOND
from simctl.wire.messages import RequestPing, ResponseSlurmRc

_PINGS_PER_TIMEOUT: Final = 3


class Backup:
    """slurmctld in standby on a host of its own; only pings that are not answered are simulated.

    No client asks it anything before slurmctld goes or a link is cut: from then on it listens.
    """

    def __init__(self, daemons: Daemons, host: Host, *, uid: int) -> None:
        self._daemons = daemons
        self._site = daemons.site
        self.host = host
        self._uid = uid
        self._process: Process | None = None
        self._mailbox: Mailbox | None = None
        self._answered_us = 0
        """When the last ping was answered."""
        self._watches = False
        self._listener: Thread | None = None
        self.start()

    @property
    def stands_by(self) -> bool:
        """Return whether it is there and watches."""
        return self._process is not None

    @property
    def in_control(self) -> bool:
        """Return whether it is the controller now."""
        ctld = self._daemons.ctld
        return ctld.process.host is self.host and ctld.mailbox.open

    def start(self) -> None:
        """Start it in standby, unless it is there."""
        if self._process is not None or self.in_control:
            return
        site = self._site
        self._process = site.procs.add(
            self.host,
            ppid=1,
            daemon="slurmctld",
            role="backup",
            uid=self._uid,
            runs_as=RunsAs.SLURM_USER,
        )
        name = f"{CONTROLLER}@{self.host.name}"
        self._mailbox = site.fabric.mailbox(self._process, name, listed=True)
        self._answered_us = site.kernel.now_us
        if CONTROLLER in site.fabric.away:
            self.watch()
        elif site.fabric.cuts:
            self.listen()

    def end(self, status: int) -> None:
        """End it in standby."""
        process, mailbox = self._process, self._mailbox
        self._process = self._mailbox = None
        listener, self._listener = self._listener, None
        if process is not None and mailbox is not None:
            mailbox.close(breaks=True)
            if listener is not None:
                self._site.kernel.kill(listener)
            process.exit(status)

    def listen(self) -> None:
        """Answer commands from now on: that it stands by."""
        process, mailbox = self._process, self._mailbox
        if process is None or mailbox is None or self._listener is not None:
            return

        async def body() -> None:
            while True:
                self._answer(process, mailbox, await mailbox.receive())

        self._listener = process.start(body, mailbox.name)

    def _answer(self, process: Process, mailbox: Mailbox, envelope: Envelope) -> None:
        message = envelope.message
        if envelope.sender is None or isinstance(message, ResponseSlurmRc):
            return
        answer = ResponseSlurmRc(
            return_code=ESLURM_IN_STANDBY_MODE,
            answers=message.rpc,
            job_id=getattr(message, "job_id", 0),
        )
        self._site.fabric.send(process, envelope.sender, answer, mailbox)

    def watch(self) -> None:
        """Begin to ping a slurmctld that has gone: it answered the last ping before."""
        self.listen()
        if self._process is None or self._watches:
            return
        now_us, interval_us = self._site.kernel.now_us, self._interval_us
        self._answered_us = max(self._answered_us, now_us // interval_us * interval_us)
        self._watches = True
        self._plan()

    @property
    def _interval_us(self) -> int:
        return max(1, self._site.conf.slurmctld_timeout_s // _PINGS_PER_TIMEOUT) * SECOND

    def _plan(self) -> None:
        kernel, interval_us = self._site.kernel, self._interval_us
        kernel.call_at((kernel.now_us // interval_us + 1) * interval_us, self._ping, None)

    def _ping(self, _: None) -> None:
        """Ping slurmctld; take its place if it has been silent for SlurmctldTimeout."""
        fabric, process, mailbox = self._site.fabric, self._process, self._mailbox
        if process is None or mailbox is None or CONTROLLER not in fabric.away:
            self._watches = False
            return
        process.cause = 0  # nothing but the time leads to this
        fabric.send(process, fabric.find(CONTROLLER), RequestPing(), mailbox)
        silent_us = self._site.kernel.now_us - self._answered_us
        if silent_us < self._site.conf.slurmctld_timeout_s * SECOND:
            self._plan()
            return
        self._watches = False
        if self._daemons.ctld.process.exited:
            self._take_over(process)

    def _take_over(self, process: Process) -> None:
        args = {"text": "ControlMachine not responding, this backup controller takes control"}
        self._site.trace.note("log", "takeover", process, args=args)
        self.end(0)
        daemons = self._daemons
        daemons.ctld = daemons.make_ctld(daemons.ctld, self.host, False)
        self._site.fabric.come_back(CONTROLLER)
        daemons.ctld.start()
