"""What would reverse two events that nothing forces into their order."""

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.pattern import value_text
from simctl.scenario.durations import format_moment
from simctl.scenario.holding.happens_before import HappensBefore


def free_because(relation: HappensBefore, first: Event, second: Event) -> str:
    """Say what would let *second* come before *first*: another order of turns, or other times."""
    race = _race(relation, first, second)
    if race is not None:
        one, other = race
        return (
            f"what would reverse it: {_told(one)} and {_told(other)} reach {_place(one)} "
            f"independently of each other; {_how(one, other)}"
        )
    one, other = _turn(relation, first), _turn(relation, second)
    return (
        f"what would reverse it: nothing that leads to {second.name} (seq {second.seq}) waits for "
        f"{first.name} (seq {first.seq}); {_told(one)} begins the turn of the one and "
        f"{_told(other)} that of the other, and {_how(one, other)}"
    )


def _race(relation: HappensBefore, first: Event, second: Event) -> tuple[Event, Event] | None:
    """Return two messages to one process that race, each needed by one of the two events alone.

    Of the pairs there are, the last of each: what lies behind them is decided by then.
    """
    ours, theirs = relation.behind(first), relation.behind(second)
    mine = _receipts(relation, ours - theirs)
    others = _receipts(relation, theirs - ours)
    for pid, receipt in mine.items():
        if pid in others:
            return receipt, others[pid]
    return None


def _receipts(relation: HappensBefore, seqs: set[int]) -> dict[object, Event]:
    """Return the first message that each process took in, the latest process first."""
    found: dict[object, Event] = {}
    for seq in sorted(seqs, reverse=True):
        event = relation.by_seq[seq]
        if event.phase == "receive":
            found[event.pid] = event
    return found


def _turn(relation: HappensBefore, event: Event) -> Event:
    """Return what the turn of an event began with: a message, or the first of its process."""
    at = relation.beginning(event)
    while at.phase != "receive":
        before = [
            each
            for each in relation.needs(at)
            if (each.pid == at.pid or each.name == "fork")
            and each.time_us == at.time_us
            and each.seq < at.seq
        ]
        if not before:
            break
        at = max(before, key=lambda each: each.seq)
    return at


def _how(one: Event, other: Event) -> str:
    if one.time_us == other.time_us:
        return (
            f"both are due at {format_moment(one.time_us)}: a schedule may take "
            f"the second first (--schedule random)"
        )
    return (
        f"only time orders them ({format_moment(one.time_us)} and "
        f"{format_moment(other.time_us)}): other latencies or durations may reverse them"
    )


def _told(event: Event) -> str:
    phase = "" if event.phase is UNSET else f" {event.phase}"
    where = f" on {event.node}" if isinstance(event.node, str) else ""
    peer = f" from {event.peer}" if event.phase == "receive" and event.peer is not UNSET else ""
    return f"{event.name}{phase}{where}{peer} (seq {event.seq})"


def _place(event: Event) -> str:
    node = f" on {event.node}" if isinstance(event.node, str) else ""
    return f"{value_text(event.daemon)}{node}"
