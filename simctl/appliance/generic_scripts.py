"""The scripts of burst_buffer/generic, as the simulated appliance answers them.

A buffer is staging-in from StartStageIn on, staged-in at its end, staging-out from StartStageOut
on. At the end of that it is staged-out, and its space is free again; it is listed with size 0 for
another ten minutes, so that a poll learns of it. StopStageIn and StopStageOut end the stage
that is under way and drop the buffer at once.
"""

from functools import partial
from typing import Final

from simctl.appliance.directives import directives, staged_paths
from simctl.appliance.spec import Function, FunctionSpec
from simctl.appliance.storage import Storage
from simctl.appliance.store import Buffer, RefusedError, Store
from simctl.site import ScriptCall
from simctl.wire.ids import SECOND

LISTED_US: Final = 600 * SECOND
"""How long a buffer that is staged out is told of."""

_ASKING: Final = ("get_sys", "get_job")
_STOPPING: Final = ("stop_stage_in", "stop_stage_out")
WORDS: Final = (*_ASKING, "start_stage_in", "start_stage_out", *_STOPPING)
"""The first arguments by which a script is told what to do."""


def function(storage: Storage, call: ScriptCall) -> Function:
    """Take a command line apart; what begins with none of the words asks for the status."""
    word = call.argv[1] if len(call.argv) > 1 else ""
    arguments = call.argv[2:]
    if word in _ASKING:
        word = "get_sys"
    doer = _DOERS.get(word)
    if doer is None:
        return Function("get_status", "", partial(_get_status, storage, arguments))
    return Function(word, arguments[0] if arguments else "", partial(doer, storage, arguments))


async def _get_sys(storage: Storage, _: tuple[str, ...], described: FunctionSpec | None) -> str:
    await storage.pass_us(storage.fixed_us("get_sys", described))
    total = sum(pool.capacity for pool in storage.store.pools.values())
    return f"TotalSize={total}\n{buffer_lines(storage)}"


def buffer_lines(storage: Storage) -> str:
    """Return a line for each buffer, and forget those that were staged out long ago."""
    store, now_us = storage.generic_store, storage.kernel.now_us
    for token in [
        each.token for each in store.buffers.values() if 0 <= each.ended_us < now_us - LISTED_US
    ]:
        store.drop(token)
    return "".join(_buffer_line(each) for each in store.buffers.values())


def _buffer_line(buffer: Buffer) -> str:
    key = "JobID" if buffer.token.isdigit() else "Name"
    return f"UserID={buffer.owner} {key}={buffer.token} State={buffer.state} Size={buffer.size}\n"


async def _start_in(
    storage: Storage, arguments: tuple[str, ...], described: FunctionSpec | None
) -> str:
    """Grant a job its space and move its data in; ``JOB UID BYTES`` and lines of its script."""
    buffer = _begin_in(storage.generic_store, arguments, storage.clock_s, force=False)
    sizes = _sizes(storage, arguments, "stage_in")
    await storage.stage("start_stage_in", buffer, sizes, described)
    buffer.state = "staged-in"
    return ""


def _begin_in(store: Store, arguments: tuple[str, ...], now_s: int, *, force: bool) -> Buffer:
    token = arguments[0] if arguments else ""
    if token in store.buffers and store.buffers[token].ended_us >= 0:
        store.drop(token)
    buffer = store.grant(
        token, _number(arguments, 2), owner=_number(arguments, 1), now_s=now_s, force=force
    )
    buffer.state = "staging-in"
    return buffer


async def _start_out(
    storage: Storage, arguments: tuple[str, ...], described: FunctionSpec | None
) -> str:
    """Move a job's data out, and give its space back."""
    buffer = storage.generic_store.get(arguments[0] if arguments else "")
    buffer.state = "staging-out"
    sizes = _sizes(storage, arguments, "stage_out")
    await storage.stage("start_stage_out", buffer, sizes, described)
    _staged_out(storage, buffer)
    return ""


def _staged_out(storage: Storage, buffer: Buffer) -> None:
    buffer.state = "staged-out"
    storage.generic_store.empty(buffer, storage.kernel.now_us)


async def _stop_in(
    storage: Storage, arguments: tuple[str, ...], described: FunctionSpec | None
) -> str:
    return await _stop(storage, "stop_stage_in", arguments, described)


async def _stop_out(
    storage: Storage, arguments: tuple[str, ...], described: FunctionSpec | None
) -> str:
    return await _stop(storage, "stop_stage_out", arguments, described)


async def _stop(
    storage: Storage,
    word: str,
    arguments: tuple[str, ...],
    described: FunctionSpec | None,
) -> str:
    token = arguments[0] if arguments else ""
    await storage.pass_us(storage.fixed_us(word, described))
    storage.stop(storage.generic_store.get(token))
    storage.generic_store.drop(token)
    return ""


async def _get_status(storage: Storage, _: tuple[str, ...], described: FunctionSpec | None) -> str:
    """Tell people of the pools and the buffers."""
    await storage.pass_us(storage.fixed_us("get_status", described))
    store = storage.store
    buffers = (*store.buffers.values(), *storage.generic_store.buffers.values())
    lines = ["pool units quantity free gran"]
    lines += [
        f"{pool.name} bytes {pool.capacity} {pool.free} {pool.granularity}"
        for pool in store.pools.values()
    ]
    lines += ["", "token owner pool bytes state"]
    lines += [f"{each.token} {each.owner} {each.pool} {each.size} {each.state}" for each in buffers]
    return "\n".join(lines) + "\n"


def _sizes(storage: Storage, arguments: tuple[str, ...], word: str) -> list[int]:
    """Return what is to be moved: what the lines of the script name, or the whole buffer."""
    text = "\n".join(arguments[3:])
    paths = staged_paths(directives(text), word)
    return [storage.size_of(path) for path in paths] or [_number(arguments, 2)]


def _number(arguments: tuple[str, ...], place: int) -> int:
    word = arguments[place] if len(arguments) > place else ""
    if not word.isdecimal():
        raise RefusedError("expected JOB UID BYTES")
    return int(word)


_DOERS: Final = {
    "get_sys": _get_sys,
    "start_stage_in": _start_in,
    "start_stage_out": _start_out,
    "stop_stage_in": _stop_in,
    "stop_stage_out": _stop_out,
}


class Beside:
    """What the storage does while a script runs that the scenario describes itself.

    Such a script says how long things take and how they end; the storage only keeps the buffers
    that it is about, so that GetSysState can tell of them. It adds no time, and asks no space.
    """

    def __init__(self, storage: Storage, argv: tuple[str, ...]) -> None:
        self._storage = storage
        self._word = argv[0]
        self._arguments = argv[1:]
        self._token = argv[1] if len(argv) > 1 else ""

    def begin(self) -> None:
        """Note that the script begins."""
        store = self._storage.generic_store
        try:
            if self._word == "start_stage_in":
                _begin_in(store, self._arguments, self._storage.clock_s, force=True)
            elif self._word == "start_stage_out":
                store.get(self._token).state = "staging-out"
        except RefusedError:
            # The script may know better: it answers for itself.
            return

    def end(self, status: int, written: str) -> str:
        """Note how the script ended; return what it has to say besides what was *written*."""
        if status:
            return ""
        if self._word in _ASKING:
            return "" if "UserID=" in written else _after(written, buffer_lines(self._storage))
        buffer = self._storage.generic_store.buffers.get(self._token)
        if buffer is None:
            return ""
        if self._word == "start_stage_in":
            buffer.state = "staged-in"
        elif self._word == "start_stage_out":
            _staged_out(self._storage, buffer)
        else:
            self._storage.stop(buffer)
            self._storage.generic_store.drop(self._token)
        return ""


def _after(written: str, text: str) -> str:
    """Return a text that begins on a line of its own."""
    return f"\n{text}" if text and written and not written.endswith("\n") else text
