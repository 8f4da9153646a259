"""Redirections: where the input of a command comes from and its output goes."""

from __future__ import annotations

import attrs

from simctl.stepd.scripts.expand import expand_one
from simctl.stepd.scripts.host import OpenFile, Redirects, Stream
from simctl.stepd.scripts.state import AmbiguousTargetError, ShellState
from simctl.stepd.scripts.tree import Redirection, ToFile

_STREAMS = ("stdin", "stdout", "stderr")


class RedirectionError(Exception):
    """Say why a file could not be opened; its command is not run."""


def open_files(redirections: tuple[Redirection, ...], state: ShellState) -> Redirects:
    """Open the files of a command from left to right, and return its streams.

    Raises:
        RedirectionError: a file could not be opened; those before it were.
    """
    streams = state.streams
    for redirection in redirections:
        stream: Stream
        if isinstance(redirection, ToFile):
            stream, descriptors = _open(redirection, state), redirection.descriptors
        else:
            stream = streams.stdout if redirection.source == 1 else streams.stderr
            descriptors = (redirection.descriptor,)
        for descriptor in descriptors:
            streams = attrs.evolve(streams, **{_STREAMS[descriptor]: stream})
    return streams


def _open(redirection: ToFile, state: ShellState) -> OpenFile:
    """Open one file."""
    try:
        path = expand_one(redirection.target, state)
    except AmbiguousTargetError as error:
        raise RedirectionError(str(error)) from None
    # The file stays the same wherever the script goes afterwards.
    file = OpenFile(path=state.host.absolute(path), mode=redirection.mode)
    if wrong := state.host.open(file):
        raise RedirectionError(f"{path}: {wrong}")
    return file
