"""scontrol's changes of reservations: updated, created, deleted."""

import re
from typing import Any, Final

from simctl.commands.arguments.options import UsageError
from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.pairs import Key, Pair, begins, find_key, split_pairs
from simctl.wire.errno import errno_name, slurm_strerror
from simctl.wire.ids import SECOND
from simctl.wire.messages import (
    RequestCreateReservation,
    RequestDeleteReservation,
    RequestUpdateReservation,
    ResponseCreateReservation,
)
from simctl.wire.time_limits import parse_time_limit_min
from simctl.wire.times import parse_moment


def _list(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


RESERVATION_KEYS: Final = {
    "reservationname": Key(3, "name"),
    "starttime": Key(1, "start_s"),
    "endtime": Key(1, "end_s"),
    "duration": Key(1, "duration_min"),
    "flags": Key(2, "flags"),
    "nodes": Key(5, "nodes"),
    "users": Key(1, "users"),
    "accounts": Key(1, "accounts", _list),
    "burstbuffer": Key(2, "burst_buffer"),
}
"""Keys of a reservation."""

_UNBUILT: Final = frozenset(
    """
    corecnt features groups licenses maxstartdelay nodecnt partitionname skip tres watts
    """.split()
)
_FLAGS: Final = ("MAINT", "IGNORE_JOBS", "OVERLAP", "SPEC_NODES")
_ERROR: Final = "scontrol: error: "
_NONE_CREATED: Final = "No reservation created."
_NONE_UPDATED: Final = "No reservation update."
Fields = dict[str, Any]


class _Reader:
    """Reads the words of a reservation; *none* says what has not been done about a wrong one."""

    def __init__(self, order: Order, none: str) -> None:
        site = order.call.site
        self._now_s = site.start_time_s + site.kernel.now_us // SECOND
        self._users = site.users
        self._none = none
        deed = "creating" if none == _NONE_CREATED else "updating"
        self._failed = f"Error {deed} the reservation"

    def read(self, words: tuple[str, ...]) -> Fields:
        """Return the fields that words set.

        Raises:
            UsageError: A word is none, or its key or value is not known or not built.
        """
        fields: Fields = {}
        for pair in split_pairs(words):
            key = find_key(RESERVATION_KEYS, pair.key)
            if key is None:
                raise self._unknown(pair)
            special = {
                "start_s": self._start,
                "end_s": self._end,
                "duration_min": self._duration,
                "flags": self._flags,
                "users": self._user_ids,
            }.get(key.field, key.read)
            fields[key.field] = special(pair.value)
        return fields

    def _unknown(self, pair: Pair) -> UsageError:
        partly = pair.key[-1:] in ("+", "-")
        if partly or any(begins(pair.key, name, 1) for name in _UNBUILT):
            known = f"reservation {pair.key}= is known to Slurm but not simulated yet"
            return UsageError(1, f"scontrol: error: {known}")
        return UsageError(1, f"{_ERROR}Unknown parameter {pair.word}.  {self._none}")

    def _moment(self, what: str, text: str) -> int:
        try:
            return parse_moment(text, self._now_s)
        except (ValueError, OverflowError):
            raise UsageError(1, f"{_ERROR}Invalid {what} {text}.  {self._none}") from None

    def _start(self, text: str) -> int:
        return self._moment("start time", text)

    def _end(self, text: str) -> int:
        return self._moment("end time", text)

    def _duration(self, text: str) -> int:
        try:
            return parse_time_limit_min(text)
        except ValueError:
            raise UsageError(1, f"{_ERROR}Invalid duration {text}.  {self._none}") from None

    def _flags(self, text: str) -> tuple[str, ...]:
        flags = tuple(filter(None, re.split(r"[,+]", text.upper())))
        for flag in flags:
            if flag not in _FLAGS:
                told = f"scontrol: error: the flag {flag} is not simulated, or none"
                raise UsageError(1, told, f"{_ERROR}Invalid flags {text}.  {self._none}")
        return flags

    def _user_ids(self, text: str) -> tuple[int, ...]:
        for name in _list(text):
            if name not in self._users:
                raise UsageError(1, f"{self._failed}: Invalid user id")
        return tuple(self._users[name].uid for name in _list(text))


def _missing(fields: Fields) -> str:
    """Return what a new reservation still needs, or nothing."""
    if "start_s" not in fields:
        return "A start time must be given"
    if "end_s" not in fields and "duration_min" not in fields:
        return "An end time or duration must be given"
    if not fields.get("users") and not fields.get("accounts"):
        return "Either Users/Groups and/or Accounts must be specified"
    if not fields.get("nodes") and not fields.get("burst_buffer"):
        return "CoreCnt, Nodes, NodeCnt, TRES or Watts must be specified"
    return ""


async def create_reservation(order: Order, words: tuple[str, ...]) -> int:
    """Create a reservation, and print its name."""
    fields = _Reader(order, _NONE_CREATED).read(words)
    missing = _missing(fields)
    if missing:
        raise UsageError(1, f"{_ERROR}{missing}.  {_NONE_CREATED}")
    minutes = fields.pop("duration_min", 0)
    fields.setdefault("end_s", fields["start_s"] + minutes * 60)
    reply = await order.exchange(RequestCreateReservation(**{"name": "", "nodes": "", **fields}))
    rc = reply.error_code if isinstance(reply, ResponseCreateReservation) else reply
    if isinstance(reply, ResponseCreateReservation) and not rc:
        order.call.out(f"Reservation created: {reply.name}")
        return 0
    assert isinstance(rc, int)
    order.call.errno = errno_name(rc)
    order.complain(f"Error creating the reservation: {slurm_strerror(rc)}")
    return 1


async def update_reservation(order: Order) -> int:
    """Change a reservation."""
    fields = _Reader(order, _NONE_UPDATED).read(order.words)
    if len(fields) == 1:
        raise UsageError(1, "No changes specified")
    rc = await order.ask(RequestUpdateReservation(**fields))
    if rc:
        order.complain(f"Error updating the reservation: {slurm_strerror(rc)}")
        return 1
    order.call.out("Reservation updated.")
    return 0


async def delete_reservation(order: Order, name: str) -> int:
    """Delete a reservation that no job asks for."""
    rc = await order.ask(RequestDeleteReservation(name=name))
    if rc:
        order.complain(f"delete_reservation {order.words[0]}: {slurm_strerror(rc)}")
    return 1 if rc else 0
