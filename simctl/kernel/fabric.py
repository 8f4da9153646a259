"""The in-process channels between daemons: mailboxes, and links with latency."""

from collections.abc import Callable
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

import attrs
import msgspec

from simctl.kernel.causes import Cause
from simctl.kernel.footprint import EVERYTHING
from simctl.kernel.procs import Host, Process
from simctl.kernel.threads import Receiver, Thread
from simctl.kernel.trace import Trace, Traceable
from simctl.kernel.turns import Kernel, Timer

NEVER_US: Final = 1 << 62
"""A moment that does not come."""

_TRY_US: Final = 1_000_000
"""How far apart the tries to connect are, as long as an answer would be waited for."""

_ANSWER: Final = "RESPONSE_SLURM_RC"
"""What a daemon that takes in no more requests still waits for."""

STREAMED: Final = "TASK_OUTPUT"
"""What a task writes, on a connection that srun reads to its end: nothing else overtakes it."""


@attrs.frozen(kw_only=True)
class Unanswered:
    """Tell a process that no answer to its request will come.

    It was taken in, and the answer could not be sent back; or the connection is `broken`, because
    the receiver is dead, and how far it has come is unknown. If a fault has *struck* it
    the time for an answer is over, and if it is *lost* it is the message itself that has not got
    there.
    """

    request: Any
    by: "Mailbox"
    broken: bool = False
    struck: bool = False
    lost: bool = False
    for_ever: bool = False
    """It will be the same however often it is tried."""


@attrs.frozen
class Reachable:
    """Tell a process that it may try again: who was not there when it tried is back."""

    name: str


@attrs.define(kw_only=True)
class Away:
    """An address without a receiver for now; `until_us` is NEVER_US while the end is unknown."""

    until_us: int
    tried: "list[tuple[Mailbox, int, int]]" = attrs.field(factory=list)
    """Who has tried in vain, since when and how often it tries again."""


@attrs.define(kw_only=True)
class Cut:
    """A link that carries nothing: since when, and until when."""

    since_us: int
    until_us: int


class Envelope(msgspec.Struct, eq=False):
    """A message on its way: what, from where, and the seq of its sending.

    A notice of the process's own has no sender; for one that was set for a time `sent` is below 0,
    and `after` the cause of its being set, which causes what follows.
    """

    message: Any
    sender: "Mailbox | None"
    sent: int
    after: int = 0


class Mailbox(Receiver):
    """Where one thread of a process receives messages, and notices of its own.

    `name` is the address that traces and faults use: ``slurmctld``, ``slurmd@n1``.
    """

    __slots__ = (
        "__weakref__",
        "_batch",
        "_batch_due",
        "_batch_from",
        "_breaks",
        "_hears_answers",
        "_in_hand",
        "_items",
        "_kernel",
        "_later",
        "_reader",
        "_taken",
        "_trace",
        "host",
        "listens",
        "meanwhile",
        "name",
    )

    def __init__(self, fabric: "Fabric", process: Process, name: str) -> None:
        self._kernel = fabric.kernel
        self._trace = fabric.trace
        self._items: list[Envelope] = []
        """What is received next, the last one first: an empty deque would take 700 bytes."""

        self._later: list[Envelope] = []
        """What has come since, in order."""

        self._reader: Thread | None = None
        self._batch: list[Envelope] = []
        self._batch_due = -1
        self._batch_from = 0
        self.process = process
        self.host = process.host
        self.name = name
        self.listens = True
        self._hears_answers = False
        self._breaks = False
        self._taken: Envelope | None = None
        self._in_hand: Envelope | None = None
        """What was received last, until more is asked for."""

        self.meanwhile: Callable[[Envelope], bool] | None = None
        """Takes what another thread sees to, while the one that receives here is held up."""

    @property
    def open(self) -> bool:
        """Return whether there is a receiver; `listens` is for code that notes itself who looks."""
        if self._kernel.line is not None:
            self._kernel.look(f"address {self.name}")
        return self.listens

    async def receive(self) -> Envelope:
        """Return the next message or notice, waiting for it."""
        self._in_hand = None
        while not self._items:
            self._reader = self._kernel.current
            await self._kernel.park("a message")
        self._reader = None
        return self._take()

    async def receive_until(self, due_us: int) -> Envelope | None:
        """Return the next message or notice, or None once virtual time is *due_us*."""
        if not self._items:
            self._reader = self._kernel.current
            self._kernel.arm(due_us)
            await self._kernel.park("a message")
            self._reader = None
            if not self._items:
                return None
        return self._take()

    def _take(self) -> Envelope:
        envelope = self._in_hand = self._items.pop()
        if self._later and not self._items:
            self._items, self._later = self._later[::-1], []
        trace = self._trace
        if envelope.sent <= 0 or trace.recording or trace.open_calls:
            return self.received(envelope)
        trace.seq = self.process.cause = trace.seq + 1
        return envelope

    def received(self, envelope: Envelope) -> Envelope:
        """Note that a message, or a notice, is in the process's hands; return it."""
        trace = self._trace
        if envelope.sent <= 0:
            if trace.subjects is not None and trace.recording:
                trace.subjects.begin(self.process.pid, self._kernel.current)
            if envelope.sent:
                after = envelope.after
                if trace.recording:
                    # Nothing orders it and what the process does meanwhile.
                    after = Cause.of(after, (after,))
                self.process.cause = after
            return envelope
        sender = envelope.sender
        # Should the process be killed upon that event, the sender gets no answer.
        self._taken = envelope
        self.process.cause = trace.message(
            self.process,
            "receive",
            envelope.message,
            sender.name if sender is not None else "",
            envelope.sent,
        )
        self._taken = None
        return envelope

    def post(self, notice: Any, *, due_us: int = -1) -> None:
        """Put a notice of the process's own into the mailbox, in a turn; it is not traced."""
        self.deliver(Envelope(notice, None, 0), max(due_us, self._kernel.now_us))

    def post_at(self, due_us: int, notice: Any) -> Timer:
        """Put a notice into the mailbox at *due_us*, unless called off."""
        envelope = Envelope(notice, None, -1)
        envelope.after = self.process.cause
        return self._kernel.call_at(max(due_us, self._kernel.now_us), self._arrive, envelope)

    def _arrive(self, envelope: Envelope) -> None:
        self.deliver(envelope, self._kernel.now_us)

    def deliver(self, envelope: Envelope, due_us: int, stream: int = 0) -> None:
        """Queue a delivery; it joins one that is due at the same moment, if the schedule joins.

        Deliveries of one *stream* join whatever the schedule: what a process writes to another on
        its host arrives in order.
        """
        kernel = self._kernel
        if kernel.line is not None:
            # What joins what depends on how deliveries of a stream and any others mingle.
            (kernel.touch if stream else kernel.look)(f"deliveries {self.name}")
        if self._batch_due == due_us and (
            kernel.schedule.joins_deliveries or (stream and stream == self._batch_from)
        ):
            self._batch.append(envelope)
            return
        batch = [envelope]
        self._batch_from = stream
        self._batch = batch
        self._batch_due = due_us
        kernel.push(due_us, self._land, batch, None)

    def _land(self, batch: list[Envelope], _: None) -> bool:
        kernel = self._kernel
        kernel.foreground -= 1
        if kernel.line is not None:
            kernel.look(f"deliveries {self.name}")
        if batch is self._batch:
            self._batch_due = -1
            self._batch = []
        if not self.listens or not self.host.up:
            batch = self._sift(batch)
            if not batch:
                return False
        if self.meanwhile is not None:
            batch = [each for each in batch if not self.meanwhile(each)]
        if self._items:
            self._later.extend(batch)
        else:
            self._items = batch[::-1]
        reader = self._reader
        if reader is not None and kernel.line is not None:
            kernel.touch_thread(reader)
        return reader is not None and kernel.resume(reader)

    def _sift(self, batch: list[Envelope]) -> list[Envelope]:
        """Lose what is not received; return the rest, which there is while a daemon stops."""
        if not self._hears_answers or not self.host.up:
            self._lose(batch)
            return []
        heard = [each for each in batch if each.sent <= 0 or self.hears(each.message)]
        self._lose([each for each in batch if each not in heard])
        return heard

    @property
    def breaks(self) -> bool:
        """Return whether who received here is dead, on a host that may be up."""
        return self._breaks and self.host.up

    def hears(self, message: Any) -> bool:
        """Return whether an answer is still received where no sender can connect any more."""
        return self._hears_answers and message.rpc == _ANSWER

    def _lose(self, batch: list[Envelope]) -> None:
        for envelope in batch:
            if envelope.sent > 0:
                self.break_off(envelope)
                self._trace.note(
                    "log",
                    "undeliverable",
                    args={"rpc": envelope.message.rpc, "to": self.name},
                    cause=envelope.sent,
                )

    def abandon(self, held: list[Envelope], *, breaks: bool) -> None:
        """Receive nothing more, since the process has ended: its timers end with it.

        With *breaks* those who wait for answers learn that none comes; *held* are the requests that
        were to be answered later than the one that is being seen to.
        """
        self._kernel.call_off(self._arrive)
        self._breaks = self._breaks or breaks
        if self._in_hand is not None and self._in_hand is not self._taken:
            self.break_off(self._in_hand)
        for envelope in held:
            self.break_off(envelope)
        self.close(breaks=breaks)

    def break_off(self, envelope: Envelope) -> None:
        """Tell senders that wait for an answer that the connection broke, if this end is dead."""
        if self._breaks and envelope.sender is not None:
            notice = Unanswered(request=envelope.message, by=self, broken=True)
            envelope.sender.post(notice)

    def stop_listening(self) -> None:
        """Let no sender connect any more; answers to the process's own requests still come in."""
        self._kernel.touch(f"address {self.name}")
        self.listens = False
        self._hears_answers = self._breaks = True

    def close(self, *, breaks: bool = False) -> None:
        """Receive nothing more: what arrives from now on is traced as undeliverable.

        With *breaks* the sender of a message that is lost here learns so at once.
        """
        if self._kernel.line is not None:
            self._kernel.touch(f"address {self.name}")
            self._kernel.touch(self.process.unit)
        self.listens = self._hears_answers = False
        self._breaks = self._breaks or breaks
        if self._taken is not None:
            self.break_off(self._taken)
        if self._items:
            lost = [*self._items[::-1], *self._later]
            self._items, self._later = [], []
            self._lose(lost)


class Disturbance(Protocol):
    """What makes messages go wrong: the faults of the scenario."""

    def send(
        self,
        sender: Process,
        to: Mailbox,
        message: Traceable,
        reply_to: Mailbox,
        sent: int,
    ) -> None:
        """Let a message go that was sent, as far as it gets."""

    def may_strike(self, rpc: str, sender: Mailbox, to: Mailbox) -> bool:
        """Return whether a message of a name might be struck."""

    def loses_all(self, rpc: str, sender: Mailbox, to: Mailbox) -> bool:
        """Return whether no message of a name will ever get through."""


class Fabric:
    """The network: who can reach whom, and how long it takes.

    Hosts are joined by links of one latency; within a host a message takes no time, but a turn.
    """

    def __init__(self, kernel: Kernel, trace: Trace, *, latency_us: int) -> None:
        self.kernel = kernel
        self.trace = trace
        self.latency_us = latency_us
        self.addresses: dict[str, Mailbox] = {}
        self.down_since_us: dict[str, int] = {}
        self.away: dict[str, Away] = {}
        """The addresses whose process has ended and may be started again."""
        self._boxes: WeakValueDictionary[tuple[int, str], Mailbox] = WeakValueDictionary()
        self.cuts: dict[tuple[str, str], Cut] = {}
        """The links that carry nothing now, by the names of their hosts."""

        self.disturbance: Disturbance | None = None
        self.disturbed = False
        """Whether a message may not get through, or not as it was sent."""

        self.swallowed = False
        """Whether the last message was lost after a connection was made, unknown to its sender."""

        self.for_ever = False
        """Whether that is so for every such message."""

        self.timeout_us = 10_000_000
        """How long a sender waits for an answer."""

    def mailbox(self, process: Process, name: str, *, listed: bool = False) -> Mailbox:
        """Make a mailbox for *process*; a listed one can be found by its name."""
        box = Mailbox(self, process, name)
        self._boxes[process.pid, name] = box
        if listed:
            self.kernel.touch(f"address {name}")
            self.addresses[name] = box
        return box

    def find(self, name: str) -> Mailbox | None:
        """Return the mailbox that is listed under a name, if there is one."""
        if self.kernel.line is not None:
            self.kernel.look(f"address {name}")
        return self.addresses.get(name)

    def box_of(self, pid: int, name: str) -> Mailbox | None:
        """Return the mailbox of a process by its name, if it receives there still."""
        box = self._boxes.get((pid, name))
        return box if box is not None and box.open and not box.process.exited else None

    # Addresses whose process is away.

    def leave(self, name: str, until_us: int = NEVER_US) -> None:
        """Let no process receive at an address until its process is started again."""
        self.kernel.touch(EVERYTHING)
        away = self.away.setdefault(name, Away(until_us=until_us))
        away.until_us = until_us

    def come_back(self, name: str) -> None:
        """Note that an address has a receiver again; senders that tried in vain try again."""
        self.kernel.touch(EVERYTHING)
        away = self.away.pop(name, None)
        for box, since_us, interval_us in away.tried if away is not None else ():
            due_us = self._next_of_tries(since_us, self.kernel.now_us, interval_us)
            box.post(Reachable(name), due_us=due_us)

    def take_down(self, host: Host) -> None:
        """Take a host off the network, with what is on its way to it."""
        self.kernel.touch(EVERYTHING)
        host.up = False
        self.down_since_us[host.name] = self.kernel.now_us

    # Links that are cut.

    def cut(self, one: str, other: str, until_us: int = NEVER_US) -> None:
        """Let the link between two hosts carry nothing until a moment.

        What is on its way arrives; from now on no sender can connect. A link that is cut already
        stays so until the later of the two moments.
        """
        self.kernel.touch(EVERYTHING)
        cut = self.cuts.setdefault(_pair(one, other), Cut(since_us=self.kernel.now_us, until_us=0))
        cut.until_us = max(cut.until_us, until_us)
        self.disturbed = True

    def heal(self, one: str, other: str) -> bool:
        """End the cut of a link whose time has come; tell whether the link is whole now."""
        self.kernel.touch(EVERYTHING)
        pair = _pair(one, other)
        cut = self.cuts.get(pair)
        if cut is None or cut.until_us > self.kernel.now_us:
            return False
        del self.cuts[pair]
        self.disturbed = bool(self.cuts) or self.disturbance is not None
        return True

    def cut_between(self, one: Host, other: Host) -> Cut | None:
        """Return the cut of the link between two hosts, or None if it carries messages."""
        cut = self.cuts.get(_pair(one.name, other.name)) if self.cuts else None
        return cut if cut is not None and cut.until_us > self.kernel.now_us else None

    def holds_back(self, sender: Process, to: Mailbox | None) -> bool:
        """Return whether a receiver is only out of reach: its link is cut, or it may come back."""
        if to is None:
            return False
        if self.away and to.name in self.away:
            return True
        return to.open and self.cut_between(sender.host, to.host) is not None

    def waits_for(self, to: Mailbox | None) -> bool:
        """Return whether a receiver is away: a notice tells its senders that it is back."""
        return to is not None and to.name in self.away

    def next_try_us(
        self,
        box: Mailbox,
        to: Mailbox,
        interval_us: int,
        *,
        rests: bool = False,
        over_cuts: bool = True,
    ) -> int:
        """Return when a message that could not be sent now gets through; NEVER_US if never.

        It is tried every second as long as an answer is waited for, and so on after each interval;
        a sender that did the first of that *rests*. Without *over_cuts* it is tried every second
        only where no receiver is, and over a link that is cut just after each interval. The tries
        that are bound to fail change nothing, so that only the first that can succeed is made. If
        a receiver's return is not known, *box* gets a notice (`Reachable`) at the first such
        moment.
        """
        now_us = self.kernel.now_us
        since_us = now_us + interval_us if rests else now_us
        away = self.away.get(to.name)
        if away is not None and not now_us < away.until_us < NEVER_US:
            away.tried.append((box, since_us, interval_us))
            return NEVER_US
        cut = self.cut_between(box.host, to.host)
        if away is None and cut is None:
            return now_us + interval_us
        back_us = max(away.until_us if away is not None else 0, cut.until_us if cut else 0)
        if back_us >= NEVER_US:
            return NEVER_US
        if cut is not None and not over_cuts:
            return now_us + max(1, -((now_us - back_us) // interval_us)) * interval_us
        return max(self._next_of_tries(since_us, back_us, interval_us), now_us + 1)

    def _next_of_tries(self, since_us: int, back_us: int, interval_us: int) -> int:
        """Return the first try at which a receiver is there again that was not at *since_us*."""
        tried_us = self.timeout_us - _TRY_US
        round_us = max(tried_us + interval_us, 1)
        rounds, late_us = divmod(max(0, back_us - since_us), round_us)
        if late_us > tried_us:
            return since_us + (rounds + 1) * round_us
        return since_us + rounds * round_us + -(-late_us // _TRY_US) * _TRY_US

    def reaches(self, host: Host, to: Mailbox | None) -> bool:
        """Return whether a message from *host* would get to a receiver now."""
        self._look_at(to)
        return to is not None and to.open and to.host.up and self.cut_between(host, to.host) is None

    def can_connect(self, sender: Process, to: Mailbox | None) -> bool:
        """Return whether a process would find a receiver for what it sends."""
        return self.reaches(sender.host, to) and not self.holds_back(sender, to)

    def answer_lost(self, request: Envelope, by: Mailbox, timeout_us: int) -> None:
        """Let a requester wait in vain for an answer that a cut link has swallowed."""
        asked = request.sender
        if asked is not None and self.holds_back(by.process, asked):
            notice = Unanswered(request=request.message, by=by)
            asked.post(notice, due_us=self.kernel.now_us + timeout_us)

    # Messages.

    def send(
        self, sender: Process, to: Mailbox | None, message: Traceable, reply_to: Mailbox
    ) -> bool:
        """Send a message from *sender*; false when the receiver cannot be reached.

        The receiver answers to *reply_to*. A host that is down swallows what was on its way.
        """
        reachable = to is not None and (to.listens or to.hears(message)) and to.host.up
        line = self.kernel.line
        if line is not None:
            self._look_at(to)
        trace = self.trace
        if trace.recording or trace.open_calls:
            peer = to.name if to is not None else "nobody"
            sent = trace.message(sender, "send", message, peer, sender.cause)
        else:
            trace.messages += 1
            trace.seq = sent = trace.seq + 1
        if self.away and to is not None and to.name in self.away:
            self._tell_unreachable(message, to, sent)
            return False
        if not reachable:
            if to is not None and (to.breaks or self.holds_back(sender, to)):
                self._tell_unreachable(message, to, sent)
            return False
        assert to is not None
        if self.disturbed:
            return self._send_disturbed(sender, to, message, reply_to, sent)
        envelope = Envelope(message, reply_to, sent)
        if to.host is sender.host:
            to.deliver(envelope, self.kernel.now_us, sender.pid)
        elif line is None:
            to.deliver(envelope, self.kernel.now_us + self.latency_us)
        else:
            to.deliver(envelope, self.arrives_us(sender, to, message))
        return True

    def _send_disturbed(
        self, sender: Process, to: Mailbox, message: Traceable, reply_to: Mailbox, sent: int
    ) -> bool:
        """Send a message over a link that may be cut, or on which it may be struck."""
        self.swallowed = self.for_ever = False
        if self.cuts and self.holds_back(sender, to):
            self._tell_unreachable(message, to, sent)
            return False
        if self.disturbance is not None:
            self.disturbance.send(sender, to, message, reply_to, sent)
        else:
            self.carry(sender, to, Envelope(message, reply_to, sent))
        return True

    def carry(self, sender: Process, to: Mailbox, envelope: Envelope) -> None:
        """Bring a message to its receiver, whatever befalls others."""
        due_us = self.arrives_us(sender, to, envelope.message)
        to.deliver(envelope, due_us, sender.pid if to.host is sender.host else 0)

    def arrives_us(self, sender: Process, to: Mailbox, message: Traceable) -> int:
        """Return when a message that is sent now arrives."""
        if to.host is sender.host:
            return self.kernel.now_us
        line = self.kernel.line
        if line is None or message.rpc == STREAMED:
            return self.kernel.now_us + self.latency_us
        return self.kernel.now_us + self.latency_us + line.extra_us(message.rpc, to.name)

    def _look_at(self, to: Mailbox | None) -> None:
        """Note that a process sees whether an address can be reached.

        One that is not there yet may be by the time of any other turn.
        """
        if to is None:
            self.kernel.touch(EVERYTHING)
        else:
            self.kernel.look(f"address {to.name}")

    def _tell_unreachable(self, message: Traceable, to: Mailbox | None, sent: int) -> None:
        name = to.name if to is not None else "nobody"
        self.trace.note("log", "unreachable", args={"rpc": message.rpc, "to": name}, cause=sent)


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
