"""Messages that go wrong: rules that lose, double, delay, overtake or damage them on their way.

A connection that was made once tells its sender nothing more. So the sender of a message that is
lost waits for an answer in vain, and is told so when the time for one is over. An answer that comes
later than that finds no receiver.
"""

import random
import re
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal

import attrs

from simctl.kernel.fabric import NEVER_US, STREAMED, Envelope, Fabric, Mailbox, Unanswered
from simctl.kernel.footprint import EVERYTHING
from simctl.kernel.procs import Process
from simctl.kernel.trace import Traceable
from simctl.wire.errno import SLURM_PROTOCOL_AUTHENTICATION_ERROR, errno_name

MessageFaultKind = Literal["drop", "duplicate", "delay", "reorder", "corrupt"]

_VALID_US: Final = 300_000_000
"""How long what authenticates a message is good: munge's usual time."""

_HELD_US: Final = 1_000_000
"""How long a message waits to be overtaken, unless its rule says so."""

_LOCAL: Final = ({"slurmd", "slurmstepd"}, {"srun", "srun_cr"})
"""Roles that talk through a local socket on their host, which loses nothing."""

_DAEMONS: Final = ("slurmctld", "slurmd", "slurmstepd")


def luck(seed: int, number: int) -> random.Random:
    """Return what the rule of a number takes its chances from."""
    return random.Random(f"messages:{number}:{seed}")


@attrs.define(kw_only=True, eq=False)
class LinkFault:
    """One rule; `times` is how many messages it strikes, 0 for no end of them."""

    kind: MessageFaultKind
    rpc: str
    """The name of a message, in which `*` stands for anything."""

    text: str = ""
    """What people call it."""

    sender: str = ""
    receiver: str = ""
    """A host, or an address such as `slurmd@n1`; empty for any."""

    by_us: int = 0
    """How much later it comes, or its copy does; how long it waits at most to be overtaken."""

    times: int = 1
    skip: int = 0
    chance: float = 1.0
    luck: random.Random = attrs.field(factory=lambda: luck(0, 0))
    until_us: int = NEVER_US
    damage: Callable[[Any], Any] | None = None
    """What makes of a message the damaged one."""

    endless: bool = attrs.field(init=False)
    """Whether it strikes whatever comes."""

    _name: re.Pattern[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Be ready to match names."""
        self.endless = not self.times and self.chance >= 1 and self.until_us >= NEVER_US
        self._name = re.compile(".*".join(re.escape(part) for part in self.rpc.split("*")))

    def concerns(self, rpc: str, sender: Process, reply_to: Mailbox, to: Mailbox) -> bool:
        """Return whether a message is meant; a stream is only by its whole name."""
        return (
            (rpc == self.rpc or (rpc != STREAMED and self._name.fullmatch(rpc) is not None))
            and (not self.sender or self.sender in _names(sender, reply_to))
            and (not self.receiver or self.receiver in _names(to.process, to))
        )

    def is_over(self, now_us: int) -> bool:
        """Return whether its time is over."""
        return self.until_us <= now_us


def _names(process: Process, box: Mailbox) -> tuple[str, str, str]:
    host = process.host.name
    return host, f"{process.daemon}@{host}", box.name


def _is_local(sender: Process, to: Mailbox) -> bool:
    """Return whether a message never leaves its host."""
    ends = {sender.daemon, to.process.daemon}
    return sender.host is to.host and any(ends <= each for each in _LOCAL)


def _is_replay(sender: Process, to: Mailbox) -> bool:
    """Return whether a copy is refused unread: what a client asks of slurmctld is taken once."""
    return sender.daemon not in _DAEMONS and to.process.daemon == "slurmctld"


def _answers(message: Traceable) -> str:
    """Return the name of the request that a message answers; nothing if it is no answer."""
    found: str = getattr(message, "answers", "")
    return found


@attrs.define(kw_only=True, eq=False)
class _Sent:
    """A message on its way: where from and to, when it arrives, until when it is waited for."""

    sender: Process
    to: Mailbox
    message: Any
    reply_to: Mailbox
    seq: int
    due_us: int
    deadline_us: int
    delayed: bool = False
    given_up: bool = False
    """The sender that waits for this answer has been told that there is none."""

    for_ever: bool = False
    """It would be struck again."""

    held_us: int = -1
    """How long it waits to be overtaken; below 0 if it does not."""

    copies: list[tuple[int, int]] = attrs.field(factory=list)
    """The seq and the delay of each copy."""

    @property
    def latest_us(self) -> int:
        """Return when it arrives if nothing passes it."""
        return self.due_us + max(self.held_us, 0)

    @property
    def link(self) -> tuple[str, str]:
        """The hosts it goes from and to."""
        return self.sender.host.name, self.to.host.name

    def envelope(self) -> Envelope:
        """Return what the receiver gets."""
        return Envelope(self.message, self.reply_to, self.seq)


class Links:
    """The rules in force, and what they hold back; those used up are dropped."""

    def __init__(self, fabric: Fabric) -> None:
        self.rules: list[LinkFault] = []
        self._fabric = fabric
        self._kernel = fabric.kernel
        self._asked: dict[tuple[Mailbox, str, str], tuple[int, bool, bool]] = {}
        """Until when requests that were struck are waited for, whether the requester is told at
        that moment, and whether it would be struck again: by requester, name, host asked."""

        self._broken: set[tuple[int, Mailbox]] = set()
        """Streams that carry nothing more, by the pid that writes and who reads."""

        self._streams: dict[tuple[int, Mailbox], int] = {}
        """When the latest part of a stream that was delayed arrives."""

        self._held: dict[tuple[str, str], deque[_Sent]] = {}
        """What waits to be overtaken, by its link."""

    def add(self, rule: LinkFault) -> None:
        """Put a rule in force."""
        self._kernel.touch(EVERYTHING)
        self.rules.append(rule)
        self._fabric.disturbance = self
        self._fabric.disturbed = True

    def endless(self) -> list[str]:
        """Return what people call the rules that strike whatever comes."""
        return [rule.text for rule in self.rules if rule.endless]

    def may_strike(self, rpc: str, sender: Mailbox, to: Mailbox) -> bool:
        """Return whether a rule in force might strike a message of a name."""
        now_us = self._kernel.now_us
        return any(
            not rule.is_over(now_us) and rule.concerns(rpc, sender.process, sender, to)
            for rule in self.rules
        )

    def loses_all(self, rpc: str, sender: Mailbox, to: Mailbox) -> bool:
        """Return whether no message of a name will ever get through."""
        return any(
            rule.kind == "drop"
            and rule.endless
            and not rule.skip
            and rule.concerns(rpc, sender.process, sender, to)
            for rule in self.rules
        )

    # Sending.

    def send(
        self, sender: Process, to: Mailbox, message: Traceable, reply_to: Mailbox, sent: int
    ) -> None:
        """Let a message go that was sent, past the rules that may strike it."""
        self._kernel.touch("message faults")
        rules = [] if _is_local(sender, to) else self._striking(sender, to, message, reply_to)
        if message.rpc == STREAMED:
            self._stream(sender, to, Envelope(message, reply_to, sent), rules)
        elif rules or self._asked or self._held:
            self._strike(sender, to, message, reply_to, sent, rules)
        else:
            self._fabric.carry(sender, to, Envelope(message, reply_to, sent))

    def _striking(
        self, sender: Process, to: Mailbox, message: Traceable, reply_to: Mailbox
    ) -> list[LinkFault]:
        """Return the rules that strike a message, counted down."""
        found: list[LinkFault] = []
        for rule in list(self.rules):
            if rule.is_over(self._kernel.now_us):
                self.rules.remove(rule)
                continue
            if not rule.concerns(message.rpc, sender, reply_to, to):
                continue
            if rule.skip:
                rule.skip -= 1
                continue
            if rule.chance < 1 and rule.luck.random() >= rule.chance:
                continue
            found.append(rule)
            if rule.times == 1:
                self.rules.remove(rule)
            rule.times = max(rule.times - 1, 0)
            if rule.kind == "drop":
                break
        return found

    def _strike(
        self,
        sender: Process,
        to: Mailbox,
        message: Traceable,
        reply_to: Mailbox,
        seq: int,
        rules: list[LinkFault],
    ) -> None:
        """Let rules strike a message in their order; then let it go, if it is still there."""
        sent = _Sent(
            sender=sender,
            to=to,
            message=message,
            reply_to=reply_to,
            seq=seq,
            due_us=self._fabric.arrives_us(sender, to, message),
            deadline_us=self._kernel.now_us + self._fabric.timeout_us if rules else NEVER_US,
            for_ever=any(rule.endless for rule in rules),
        )
        if answers := _answers(message):
            known = self._asked.pop((to, answers, sender.host.name), None)
            if known is not None:
                sent.deadline_us, sent.given_up, sent.for_ever = known
        else:
            self._asked.pop((reply_to, message.rpc, to.host.name), None)
        for rule in rules:
            if not self._apply(rule, sent):
                self._lose(sent)
                return
        if answers and sent.latest_us > sent.deadline_us:
            # The sender has closed the connection by then.
            self._note("too_late", sent, sent.seq)
            self._lose(sent)
        elif rules:
            self._go_struck(sent)
        else:
            self._let_go(sent)

    def _apply(self, rule: LinkFault, sent: _Sent) -> bool:
        """Let a rule strike a message; false if it is lost."""
        seq = self._tell(rule, sent.message, sent.reply_to, sent.to, sent.seq)
        if rule.kind == "delay":
            sent.due_us += rule.by_us
            sent.delayed = True
        elif rule.kind == "duplicate":
            sent.copies.append((seq, rule.by_us))
        elif rule.kind == "reorder":
            sent.held_us = rule.by_us or _HELD_US
        elif rule.damage is not None:
            sent.message = rule.damage(sent.message)
        return rule.kind != "drop"

    def _go_struck(self, sent: _Sent) -> None:
        """Let a message go that was struck and not lost, and its copies."""
        if sent.latest_us - self._kernel.now_us > _VALID_US:
            self._kernel.call_at(sent.latest_us, lambda _: self._refuse(sent, sent.seq), None)
            self._lose(sent)
            return
        if not _answers(sent.message):
            late = sent.latest_us >= sent.deadline_us
            key = sent.reply_to, sent.message.rpc, sent.to.host.name
            self._asked[key] = sent.deadline_us, late, sent.for_ever
            if late:
                notice = Unanswered(
                    request=sent.message, by=sent.to, struck=True, for_ever=sent.for_ever
                )
                sent.reply_to.post(notice, due_us=sent.deadline_us)
        if sent.held_us >= 0:
            self._hold(sent)
        else:
            self._let_go(sent)
        for seq, by_us in sent.copies:
            self._copy(sent, seq, sent.due_us + by_us)

    def _let_go(self, sent: _Sent) -> None:
        """Let a message arrive, and behind it what has waited for one to pass it."""
        self._deliver(sent, sent.due_us)
        for held in self._held.pop(sent.link, ()):
            held.delayed = True
            self._deliver(held, sent.due_us + 1)

    def _deliver(self, sent: _Sent, due_us: int) -> None:
        if not sent.delayed:
            stream = sent.sender.pid if sent.to.host is sent.sender.host else 0
            sent.to.deliver(sent.envelope(), due_us, stream)
            return

        def arrive(_: None) -> None:
            if (sent.to.open or sent.to.hears(sent.message)) and sent.to.host.up:
                sent.to.deliver(sent.envelope(), self._kernel.now_us)
            else:
                # Its sender learns as much by then: the receiver is not there any more.
                self._note("undeliverable", sent, sent.seq)
                self._lose(sent)

        self._kernel.call_at(due_us, arrive, None)

    def _lose(self, sent: _Sent) -> None:
        """Let the sender of a request wait in vain: to this message, or for it."""
        now_us = self._kernel.now_us
        if not _answers(sent.message):
            self._fabric.swallowed = True
            self._fabric.for_ever = sent.for_ever
            notice = Unanswered(
                request=sent.message,
                by=sent.to,
                struck=True,
                lost=True,
                for_ever=sent.for_ever,
            )
            sent.reply_to.post(notice, due_us=max(sent.deadline_us, now_us))
        elif not sent.given_up and (request := getattr(sent.message, "request", None)) is not None:
            notice = Unanswered(
                request=request, by=sent.reply_to, struck=True, for_ever=sent.for_ever
            )
            sent.to.post(notice, due_us=max(sent.deadline_us, now_us))

    # Being overtaken, and copies.

    def _hold(self, sent: _Sent) -> None:
        """Keep a message until another has passed it on its link, but not for ever."""
        held = self._held.setdefault(sent.link, deque())
        held.append(sent)

        def give_up(_: None) -> None:
            waiting = self._held.get(sent.link, deque())
            if sent not in waiting:
                return
            waiting.remove(sent)
            if not waiting:
                del self._held[sent.link]
            sent.delayed = True
            self._deliver(sent, self._kernel.now_us)

        self._kernel.call_at(sent.due_us + sent.held_us, give_up, None)

    def _copy(self, sent: _Sent, seq: int, due_us: int) -> None:
        """Let a copy arrive on a connection of its own, on which no sender waits for an answer."""
        if _answers(sent.message):
            self._kernel.call_at(due_us, lambda _: self._note("undeliverable", sent, seq), None)
        elif _is_replay(sent.sender, sent.to) or due_us - self._kernel.now_us > _VALID_US:
            self._kernel.call_at(due_us, lambda _: self._refuse(sent, seq), None)
        else:
            # One that is not found under the sender's name: its own goes on being that.
            nobody = Mailbox(self._fabric, sent.sender, sent.reply_to.name)
            envelope = Envelope(sent.message, nobody, seq)
            self._kernel.call_at(due_us, lambda _: self._connect(sent.to, envelope), None)

    def _connect(self, to: Mailbox, envelope: Envelope) -> None:
        """Bring a copy to the receiver at an address by now."""
        found = self._fabric.find(to.name)
        box = found if found is not None and found.host is to.host else to
        box.deliver(envelope, self._kernel.now_us)

    def _refuse(self, sent: _Sent, cause: int) -> None:
        """Say that a receiver has refused what bears an old credential, or one that it knows."""
        who = sent.sender
        self._fabric.trace.note(
            "log",
            "refused",
            sent.to.process,
            args={"rpc": sent.message.rpc, "who": sent.reply_to.name, "by": who.uid},
            rc=SLURM_PROTOCOL_AUTHENTICATION_ERROR,
            errno=errno_name(SLURM_PROTOCOL_AUTHENTICATION_ERROR),
            cause=cause,
        )

    # Streams.

    def _stream(
        self, sender: Process, to: Mailbox, envelope: Envelope, rules: list[LinkFault]
    ) -> None:
        """Carry what a task writes: a stream keeps its order, or breaks off for good."""
        key = sender.pid, to
        reply_to = envelope.sender
        assert reply_to is not None
        due_us = self._fabric.arrives_us(sender, to, envelope.message)
        for rule in rules:
            self._tell(rule, envelope.message, reply_to, to, envelope.sent)
            due_us += rule.by_us
            if rule.kind == "drop":
                self._broken.add(key)
        if key in self._broken:
            return
        if rules or key in self._streams:
            due_us = self._streams[key] = max(due_us, self._streams.get(key, 0))
        to.deliver(envelope, due_us, sender.pid if to.host is sender.host else 0)

    # The trace.

    def _tell(
        self, rule: LinkFault, message: Traceable, reply_to: Mailbox, to: Mailbox, sent: int
    ) -> int:
        args = {"rpc": message.rpc, "from": reply_to.name, "to": to.name}
        return self._fabric.trace.note("fault", rule.kind, args=args, cause=sent)

    def _note(self, name: str, sent: _Sent, cause: int) -> None:
        args = {"rpc": sent.message.rpc, "to": sent.to.name}
        self._fabric.trace.note("log", name, args=args, cause=cause)
