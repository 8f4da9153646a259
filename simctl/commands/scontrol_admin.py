"""scontrol for administrators: partitions changed, reservations created and deleted."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from simctl.commands.describe import UNREACHABLE
from simctl.commands.options import UsageError
from simctl.plugins.site import CommandCall
from simctl.wire.conf import parse_time_limit_min, read_preempt_mode
from simctl.wire.errno import SLURM_SUCCESS, errno_name, slurm_strerror
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.messages import (
    Message,
    RequestCreateReservation,
    RequestDeleteReservation,
    RequestUpdatePartition,
    ResponseCreateReservation,
    ResponseSlurmRc,
)
from simctl.wire.states import PartState
from simctl.wire.times import parse_moment

Ask = Callable[[CommandCall, Message], Awaitable[int]]
"""Sends a request and returns the error it is answered with."""


def _count(text: str) -> int:
    return INFINITE if text.upper() in ("UNLIMITED", "INFINITE") else int(text)


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.upper() not in words:
            raise ValueError
        return text.upper()

    return read


_YES_NO: Final = _one_of("YES", "NO")
_PARTITION_KEYS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "state": ("state", _one_of(*PartState.__members__)),
    "default": ("default", lambda text: _YES_NO(text) == "YES"),
    "maxtime": ("max_time_min", parse_time_limit_min),
    "defaulttime": ("default_time_min", parse_time_limit_min),
    "maxnodes": ("max_nodes", _count),
    "minnodes": ("min_nodes", _count),
    "prioritytier": ("priority_tier", int),
    "oversubscribe": ("exclusive", lambda text: _one_of("NO", "EXCLUSIVE")(text) == "EXCLUSIVE"),
    "rootonly": ("root_only", lambda text: _YES_NO(text) == "YES"),
    "preemptmode": ("preempt_mode", read_preempt_mode),
    "gracetime": ("grace_time_s", int),
}
"""Keys of an update of a partition: the field each sets, and what reads its value."""


async def update_partition(call: CommandCall, ask: Ask, pairs: dict[str, str]) -> int:
    """Change a partition as ``KEY=VALUE`` pairs say; return the exit status."""
    fields: dict[str, Any] = {}
    for key, value in pairs.items():
        if key == "partitionname":
            continue
        if key not in _PARTITION_KEYS:
            raise UsageError(
                1, f"scontrol: error: update partitionname {key}= is not simulated, or no key"
            )
        field, read = _PARTITION_KEYS[key]
        try:
            fields[field] = read(value)
        except ValueError as error:
            told = [f"scontrol: error: {error}"] if "not simulated" in str(error) else []
            raise UsageError(1, *told, f"Invalid input: {key}={value}", "Request aborted") from None
    rc = await ask(call, RequestUpdatePartition(name=pairs["partitionname"], **fields))
    if rc:
        call.err(f"slurm_update error: {slurm_strerror(rc)}")
    return 1 if rc else 0


async def create(call: CommandCall, _: str, words: tuple[str, ...]) -> int:
    """Create a reservation; return the exit status."""
    what, pairs = _entity("create", words)
    if what != "reservation":
        raise UsageError(1, f"scontrol: error: create {what} is not simulated yet")
    reply = await _exchange(call, _reservation(call, pairs))
    assert isinstance(reply, ResponseCreateReservation)
    if reply.error_code:
        call.errno = errno_name(reply.error_code)
        call.err(f"Error creating the reservation: {slurm_strerror(reply.error_code)}")
        return 1
    call.out(f"Reservation created: {reply.name}")
    return 0


async def delete(call: CommandCall, _: str, words: tuple[str, ...]) -> int:
    """Delete a reservation; return the exit status."""
    what, pairs = _entity("delete", words)
    if what != "reservation":
        raise UsageError(1, f"scontrol: error: delete {what} is not simulated yet")
    reply = await _exchange(call, RequestDeleteReservation(name=pairs.get("reservationname", "")))
    assert isinstance(reply, ResponseSlurmRc)
    if reply.return_code != SLURM_SUCCESS:
        call.errno = errno_name(reply.return_code)
        call.err(f"slurm_delete_reservation: {slurm_strerror(reply.return_code)}")
        return 1
    return 0


def _entity(keyword: str, words: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Return what is to be created or deleted, and the pairs that say how."""
    if not words:
        raise UsageError(1, f"too few arguments for keyword:{keyword}")
    pairs: dict[str, str] = {}
    what = ""
    for word in words:
        key, equals, value = word.partition("=")
        key = key.lower()
        if equals:
            pairs["reservationname" if key == "reservation" else key] = value
        elif not what:
            what = "reservation" if key == "res" else key
        else:
            pairs["reservationname"] = word
    if not what and pairs:
        what = "reservation" if "reservationname" in pairs else next(iter(pairs))
    return what, pairs


_RESERVATION_KEYS: Final = frozenset(
    "reservationname starttime endtime duration nodes users accounts flags".split()
)
_FLAGS: Final = frozenset({"MAINT", "IGNORE_JOBS", "OVERLAP", "SPEC_NODES"})
_NONE_CREATED: Final = "No reservation created."


def _reservation(call: CommandCall, pairs: dict[str, str]) -> RequestCreateReservation:
    """Return the request that pairs spell.

    Raises:
        UsageError: Something is missing, wrong, or not simulated.
    """
    unknown = [key for key in pairs if key not in _RESERVATION_KEYS]
    if unknown:
        raise UsageError(
            1, f"scontrol: error: reservation {unknown[0]}= is not simulated, or no key"
        )
    missing = _missing(pairs)
    if missing:
        raise UsageError(1, f"{missing}.  {_NONE_CREATED}")
    now_s = call.site.start_time_s + call.site.kernel.now_us // SECOND
    start_s = _moment("start time", pairs["starttime"], now_s)
    flags = tuple(filter(None, re.split(r"[,+]", pairs.get("flags", "").upper())))
    for flag in flags:
        if flag not in _FLAGS:
            raise UsageError(1, f"scontrol: error: the flag {flag} is not simulated, or none")
    return RequestCreateReservation(
        name=pairs.get("reservationname", ""),
        start_s=start_s,
        end_s=_end(pairs, start_s, now_s),
        nodes=pairs["nodes"],
        users=_users(call, pairs.get("users", "")),
        accounts=tuple(filter(None, pairs.get("accounts", "").split(","))),
        flags=flags,
    )


def _missing(pairs: dict[str, str]) -> str:
    """Return what a reservation still needs, or nothing."""
    if "starttime" not in pairs:
        return "A start time must be given"
    if "endtime" not in pairs and "duration" not in pairs:
        return "An end time or duration must be given"
    if not pairs.get("users") and not pairs.get("accounts"):
        return "Either Users and/or Accounts must be specified"
    return "" if pairs.get("nodes") else "Nodes must be specified"


def _moment(what: str, text: str, now_s: int) -> int:
    try:
        return parse_moment(text, now_s)
    except (ValueError, OverflowError):
        raise UsageError(1, f"Invalid {what} {text}.  {_NONE_CREATED}") from None


def _end(pairs: dict[str, str], start_s: int, now_s: int) -> int:
    if "endtime" in pairs:
        return _moment("end time", pairs["endtime"], now_s)
    try:
        minutes = parse_time_limit_min(pairs["duration"])
    except ValueError:
        raise UsageError(1, f"Invalid duration {pairs['duration']}.  {_NONE_CREATED}") from None
    return start_s + minutes * 60


def _users(call: CommandCall, text: str) -> tuple[int, ...]:
    found = []
    for name in filter(None, text.split(",")):
        user = call.site.users.get(name)
        if user is None:
            raise UsageError(1, f"Error creating the reservation: Invalid user id ({name})")
        found.append(user.uid)
    return tuple(found)


async def _exchange(call: CommandCall, request: Message) -> Message:
    """Send a request and return its answer."""
    controller = call.site.fabric.addresses.get("slurmctld")
    if not call.site.fabric.send(call.process, controller, request, call.mailbox):
        raise UsageError(1, f"scontrol: error: {UNREACHABLE}")
    message: Message = (await call.mailbox.receive()).message
    return message
