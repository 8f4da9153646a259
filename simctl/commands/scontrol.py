"""scontrol: hold, release, requeue and change jobs, and change the states of nodes."""

import re
from collections.abc import Callable
from typing import Any, Final

from simctl.commands.ask import ask
from simctl.commands.options import UsageError
from simctl.commands.scontrol_admin import create, delete, update_partition
from simctl.plugins.site import CommandCall
from simctl.wire.arrays import parse_tasks
from simctl.wire.conf import parse_time_limit_min
from simctl.wire.errno import (
    ESLURM_INVALID_JOB_ID,
    SLURM_SUCCESS,
    SlurmError,
    errno_name,
    slurm_strerror,
)
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.messages import (
    RESUME_JOB,
    SUSPEND_JOB,
    Message,
    RequestJobRequeue,
    RequestPing,
    RequestReconfigure,
    RequestSuspend,
    RequestUpdateJob,
    RequestUpdateNode,
    ResponseSlurmRc,
)
from simctl.wire.times import parse_moment

_UNBUILT: Final = frozenset(
    """
    abort cancel_reboot checkpoint cluster completing details errnumstr
    fsdampeningfactor getaddrs help hide listpids local notify oneliner pidinfo quiet
    reboot reboot_nodes schedloglevel scontrol setdebug setdebugflags
    show shutdown takeover token top verbose version wait_job write
    """.split()
)


async def scontrol(call: CommandCall) -> int:
    """Do what the words say; return the exit status."""
    words = call.argv[1:]
    if words and words[0].startswith("-"):
        call.err(
            f"scontrol: error: {words[0]} is an option of Slurm's that simctl does not simulate yet"
        )
        return 1
    keyword = words[0].lower() if words else ""
    act = _KEYWORDS.get(keyword)
    if act is None:
        if keyword in _UNBUILT:
            call.err(f"scontrol: error: {keyword} is known to Slurm but not simulated yet")
        elif keyword:
            call.err(f"invalid keyword: {words[0]}")
        else:
            call.err("scontrol: error: an interactive scontrol is not simulated; give a keyword")
        return 1
    try:
        return await act(call, keyword, words[1:])
    except UsageError as error:
        for line in error.lines:
            call.err(line)
        return error.status


async def _ask(call: CommandCall, request: Message) -> int:
    """Send a request; return the error it is answered with, or why it is not."""
    try:
        reply = await ask(call, request)
    except SlurmError as error:
        call.errno = errno_name(error.errno)
        return error.errno
    assert isinstance(reply, ResponseSlurmRc)
    if reply.return_code != SLURM_SUCCESS:
        call.errno = errno_name(reply.return_code)
    return reply.return_code


# Jobs.


_JOB: Final = re.compile(r"(?:job(?:id)?=)?(\d+)(?:_(\d+|\[[\d,:-]+\]))?", re.IGNORECASE)


def _jobs(keyword: str, words: tuple[str, ...]) -> list[tuple[str, dict[str, Any]]]:
    """Return the jobs and array tasks that words name: how they are written, and who is meant."""
    if not words:
        raise UsageError(1, f"too few arguments for keyword:{keyword}")
    found = []
    for word in re.split(r",(?![^\[]*\])", ",".join(words)):
        match = _JOB.fullmatch(word)
        if match is None:
            raise UsageError(1, f"Invalid job id specified for job {word}")
        try:
            tasks = parse_tasks(match[2]) if match[2] else ()
        except ValueError:
            raise UsageError(1, f"Invalid job id specified for job {word}") from None
        shown = word.partition("=")[2] or word
        found.append((shown, {"job_id": int(match[1]), "array_tasks": tasks}))
    return found


async def _hold(call: CommandCall, keyword: str, words: tuple[str, ...]) -> int:
    status = 0
    for shown, who in _jobs(keyword, words):
        request = RequestUpdateJob(
            **who,
            priority=INFINITE if keyword == "release" else 0,
            hold_by_user=keyword in ("uhold", "holdu"),
        )
        rc = await _ask(call, request)
        if rc:
            text = slurm_strerror(rc)
            call.err(f"{text} for job {shown}")
            call.err(f"slurm_suspend error: {text}")
            status = 1
    return status


async def _requeue(call: CommandCall, keyword: str, words: tuple[str, ...]) -> int:
    status = 0
    hold = keyword == "requeuehold"
    special_exit = hold and words[:1] != () and words[0].lower().startswith("state=")
    if special_exit:
        state = words[0].partition("=")[2]
        if not "specialexit".startswith(state.lower()) or not state:
            raise UsageError(1, f"scontrol: error: {words[0]}: only SpecialExit may be asked for")
        words = words[1:]
    for shown, who in _jobs(keyword, words):
        rc = await _ask(call, RequestJobRequeue(**who, hold=hold, special_exit=special_exit))
        if rc:
            call.err(f"{slurm_strerror(rc)} for job {shown}")
            status = 1
    return status


async def _suspend(call: CommandCall, keyword: str, words: tuple[str, ...]) -> int:
    status = 0
    op = SUSPEND_JOB if keyword == "suspend" else RESUME_JOB
    for shown, who in _jobs(keyword, words):
        rc = await _ask(call, RequestSuspend(**who, op=op))
        if rc:
            text = slurm_strerror(rc)
            if rc == ESLURM_INVALID_JOB_ID:
                # scontrol does not expect to be told so.
                text = "Unexpected message received"
            call.err(f"{text} for job {shown}")
            status = 1
    return status


# Updates.


async def _update(call: CommandCall, _: str, words: tuple[str, ...]) -> int:
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(1, f"Invalid input: {word}", "Request aborted")
        pairs[key.lower()] = value
    if "jobid" in pairs:
        return await _update_jobs(call, pairs)
    if "nodename" in pairs:
        return await _update_nodes(call, pairs)
    if "partitionname" in pairs:
        return await update_partition(call, _ask, pairs)
    for name in ("reservationname", "stepid", "frontendname"):
        if name in pairs:
            raise UsageError(1, f"scontrol: error: update {name} is not simulated yet")
    raise UsageError(1, "No valid entity in update command")


async def _update_jobs(call: CommandCall, pairs: dict[str, str]) -> int:
    fields: dict[str, Any] = {}
    now_s = call.site.start_time_s + call.site.kernel.now_us // SECOND
    for key, value in pairs.items():
        if key == "jobid":
            continue
        reader = _JOB_KEYS.get(key)
        if reader is None:
            raise UsageError(
                1, f"scontrol: error: update jobid {key}= is not simulated, or no key of Slurm's"
            )
        field, read = reader
        try:
            fields[field] = read(value, now_s)
        except ValueError:
            raise UsageError(1, f"Invalid {key} value: {value}", "Request aborted") from None
    if not fields:
        raise UsageError(1, "No changes specified")
    status = 0
    for shown, who in _jobs("update", (pairs["jobid"],)):
        rc = await _ask(call, RequestUpdateJob(**who, **fields))
        if rc:
            call.err(f"{slurm_strerror(rc)} for job {shown}")
            status = 1
    return status


def _limit(text: str, _: int) -> int:
    return parse_time_limit_min(text) or INFINITE


_JOB_KEYS: Final[dict[str, tuple[str, Callable[[str, int], Any]]]] = {
    "priority": ("priority", lambda text, _: int(text)),
    "nice": ("nice", lambda text, _: int(text or "100")),
    "timelimit": ("time_limit_min", _limit),
    "numnodes": ("min_nodes", lambda text, _: int(text)),
    "name": ("name", lambda text, _: text),
    "jobname": ("name", lambda text, _: text),
    "partition": ("partition", lambda text, _: text),
    "dependency": ("dependency", lambda text, _: text),
    "starttime": ("begin_s", parse_moment),
    "eligibletime": ("begin_s", parse_moment),
    "requeue": ("requeue", lambda text, _: int(text)),
}
"""Keys of an update of a job: the field each sets, and what reads its value."""

_STATES: Final = {"DRAIN": "DRAINING", "DOWN": "DOWNING", "RESUME": ""}


async def _update_nodes(call: CommandCall, pairs: dict[str, str]) -> int:
    unknown = [key for key in pairs if key not in ("nodename", "state", "reason")]
    if unknown:
        raise UsageError(
            1, f"scontrol: error: update nodename {unknown[0]}= is not simulated, or no key"
        )
    state = pairs.get("state", "").upper()
    if state not in _STATES:
        raise UsageError(
            1,
            f"scontrol: error: state={pairs.get('state', '')} is not simulated; "
            f"{', '.join(_STATES)} are",
        )
    reason = pairs.get("reason", "").strip("\"'")
    if _STATES[state] and not reason:
        raise UsageError(
            1, f"You must specify a reason when {_STATES[state]} a node", "Request denied"
        )
    request = RequestUpdateNode(node_names=pairs["nodename"], state=state, reason=reason)
    rc = await _ask(call, request)
    if rc:
        call.err(f"slurm_update error: {slurm_strerror(rc)}")
    return 1 if rc else 0


# The controller.


async def _ping(call: CommandCall, keyword: str, words: tuple[str, ...]) -> int:
    _no_more(keyword, words)
    rc = await _ask(call, RequestPing())
    call.out(f"Slurmctld(primary) at slurmctld is {'DOWN' if rc else 'UP'}")
    return 1 if rc else 0


async def _reconfigure(call: CommandCall, keyword: str, words: tuple[str, ...]) -> int:
    _no_more(keyword, words)
    rc = await _ask(call, RequestReconfigure())
    if rc:
        call.err(f"slurm_reconfigure error: {slurm_strerror(rc)}")
    return 1 if rc else 0


def _no_more(keyword: str, words: tuple[str, ...]) -> None:
    if words:
        raise UsageError(1, f"too many arguments for keyword:{keyword}")


_KEYWORDS: Final = {
    "hold": _hold,
    "holdu": _hold,
    "uhold": _hold,
    "ping": _ping,
    "reconfigure": _reconfigure,
    "release": _hold,
    "requeue": _requeue,
    "requeuehold": _requeue,
    "resume": _suspend,
    "suspend": _suspend,
    "update": _update,
    "create": create,
    "delete": delete,
}
