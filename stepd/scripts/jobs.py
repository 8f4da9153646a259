"""The builtin ``wait``: background children and their statuses."""

from __future__ import annotations

import re

from simctl.stepd.scripts.host import Interrupted, Redirects
from simctl.stepd.scripts.state import ShellState

_NOT_A_CHILD = 127
_SIGNALLED = 128


async def wait(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Wait for the named children, or for all; a trapped signal ends it with 128 + signal."""
    arguments = arguments[1:] if arguments[:1] == ("--",) else arguments
    status = 0
    try:
        if not arguments:
            while state.running:
                await _reap(state, state.running[0])
            state.ended.clear()
        for text in arguments:
            status = await _wait_for(state, text, streams)
    except Interrupted as interruption:
        return _SIGNALLED + interruption.signal
    return status


async def _wait_for(state: ShellState, text: str, streams: Redirects) -> int:
    """Wait for the child whose pid is *text*, or remember its status."""
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        state.complain(f"wait: `{text}': not a pid", streams.stderr)
        return 1
    pid = int(text)
    if pid in state.running:
        await _reap(state, pid)
    if pid not in state.ended:
        state.complain(f"wait: pid {pid} is not a child of this shell", streams.stderr)
    return state.ended.get(pid, _NOT_A_CHILD)


async def _reap(state: ShellState, pid: int) -> None:
    """Wait for a child and remember its status."""
    status = await state.host.wait(pid)
    state.running.remove(pid)
    state.ended[pid] = status
