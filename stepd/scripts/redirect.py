"""Redirections: where the input of a command comes from and its output goes."""

from __future__ import annotations

import re

from simctl.stepd.scripts.expand import expand_one, expand_text
from simctl.stepd.scripts.host import CLOSED, Redirects, Stream
from simctl.stepd.scripts.state import AmbiguousTargetError, ShellState
from simctl.stepd.scripts.tree import Here, Part, Redirection, ToDescriptor, ToFile

_OWN = re.compile(r"/dev/(?:fd/(\d+)|std(in|out|err))", re.ASCII)
_NAMED = {"in": 0, "out": 1, "err": 2}
_ALL_BITS = 0o666


class RedirectionError(Exception):
    """Say why a file could not be opened; its command is not run, and has *status*."""

    def __init__(self, message: str, status: int = 1) -> None:
        """Say why; an empty *message* has been said."""
        super().__init__(message)
        self.status = status


def parts_of(redirection: Redirection) -> tuple[Part, ...]:
    """Return what is expanded for a redirection."""
    match redirection:
        case ToFile():
            return redirection.target.parts
        case ToDescriptor():
            return redirection.source.parts
    return redirection.parts


async def open_files(redirections: tuple[Redirection, ...], state: ShellState) -> Redirects:
    """Open the files of a command from left to right, and return its streams.

    Raises:
        RedirectionError: a file could not be opened; those before it were.
    """
    streams = state.streams
    for redirection in redirections:
        if isinstance(redirection, ToFile):
            stream = await _open(redirection, state, streams)
            for descriptor in redirection.descriptors:
                streams = streams.put(descriptor, stream)
        elif isinstance(redirection, Here):
            text = await expand_text(redirection.parts, state)
            here = state.host.text(text + "\n" * redirection.ends_line)
            streams = streams.put(redirection.descriptor, here)
        else:
            streams = await _copied(redirection, state, streams)
    return streams


async def _copied(redirection: ToDescriptor, state: ShellState, streams: Redirects) -> Redirects:
    """Connect a descriptor with what another is connected with, or close it."""
    source = await expand_text(redirection.source.parts, state)
    match = re.fullmatch(r"(\d{1,3})(-?)|-", source, re.ASCII)
    if not match:
        raise RedirectionError(f"{source}: ambiguous redirect")
    if match[1] is None:
        return streams.put(redirection.descriptor, CLOSED)
    stream = streams.get(int(match[1]))
    if stream == CLOSED:
        raise RedirectionError(f"{match[1]}: Bad file descriptor")
    streams = streams.put(redirection.descriptor, stream)
    moves = match[2] and int(match[1]) != redirection.descriptor
    return streams.put(int(match[1]), CLOSED) if moves else streams


async def _open(redirection: ToFile, state: ShellState, streams: Redirects) -> Stream:
    """Open one file."""
    try:
        path = await expand_one(redirection.target, state)
    except AmbiguousTargetError as error:
        raise RedirectionError(str(error)) from None
    if own := _OWN.fullmatch(path):
        stream = streams.get(int(own[1]) if own[1] else _NAMED[own[2]])
        stream = _of_opened(path, state) if stream == CLOSED else stream
        if stream == CLOSED:
            raise RedirectionError(f"{path}: No such file or directory")
        return stream
    opened = state.host.open(path, redirection.mode, _ALL_BITS & ~state.umask)
    if isinstance(opened, str):
        raise RedirectionError(f"{path}: {opened}")
    return opened


def _of_opened(path: str, state: ShellState) -> Stream:
    """Return the pipe of a process substitution that has this path."""
    for number, end in state.opened:
        if path == f"/dev/fd/{number}":
            return end
    return CLOSED
