"""The page of a served cluster: its picture as it grows, and the words of `serve ctl`."""

import json
import os
import signal
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any, Final

import msgspec
import trio

from simctl.kernel.events import Event
from simctl.repl.web.command import page_of
from simctl.repl.web.server import HOST, Conversation, Server
from simctl.scenario.durations import format_us
from simctl.serve import linux
from simctl.serve.clock import PacedKernel
from simctl.serve.control import Control
from simctl.status import InputError
from simctl.world import World

_MOST_EVENTS: Final = 5_000
"""How many events the page keeps at least, and half of how many at most."""

_MOST_JOBS: Final = 200
_PAUSE_S: Final = 0.5
"""How often the page is told at most."""

_END_S: Final = 1.5
"""How long pages may take to hear that the cluster has ended."""

_LOOK_S: Final = 0.01
_RECEIVED: Final = 1 << 16
_ABOUT: Final = (
    "A served cluster. The picture grows as clients talk to it; the line on the left takes the "
    "words of `simctl serve ctl`: crash n1, start n1, accounting off for 30s, stop."
)


class WebPage:
    """Tells a page what happens, and does what is typed there.

    The page's server is a process of its own, so that no browser holds up the cluster.
    """

    gone = False

    def __init__(self, world: World, kernel: PacedKernel, control: Control) -> None:
        """Listen at 127.0.0.1, at any port that is free.

        Raises:
            InputError: None can be had.
        """
        self.uid = os.geteuid()
        self._world = world
        self._kernel = kernel
        self._control = control
        self._ours, theirs = socket.socketpair()
        self._last: deque[Event] = deque(maxlen=_MOST_EVENTS)
        self._news: list[Event] = []
        self._told = 0
        """How many events the page has."""

        self._said = ""
        self._due = self._asked = False
        self._wake = trio.Event()
        scenario = world.scenario
        page = page_of(world.header(), f"served: {scenario.path_name}", _ABOUT, "served")
        try:
            server = Server(0, page, Conversation(theirs), lambda: None)
        except OSError as error:
            raise InputError(f"--web: cannot listen at {HOST}: {error.strerror}") from error
        self.address = server.address
        own = os.getpid()
        self._server = os.fork()
        if not self._server:
            self._ours.close()
            _serve(server, own)
        theirs.close()
        server.socket.close()
        world.trace.add_sink(self._hear)

    def _hear(self, event: Event) -> None:
        self._last.append(event)
        self._news.append(event)
        if len(self._news) > _MOST_EVENTS:
            # The page is told of the last of them.
            self._news, self._told = [*self._last], 0
        self._tell_soon()

    def _tell_soon(self) -> None:
        if not self._due:
            self._due = True
            self._kernel.call_later(_PAUSE_S, lambda: self._kernel.poke(self._wake))

    async def run(self) -> None:
        """Tell the page what happens until the cluster ends, or its server does."""
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(self._ours))
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._listen, stream)
                self._tell_soon()
                while True:
                    await self._wake.wait()
                    self._wake, self._due = trio.Event(), False
                    await stream.send_all(self._message())
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            self.gone = True

    def end(self) -> None:
        """Let the pages that look on hear that the cluster has ended; wait for that, bounded."""
        with suppress(OSError):  # its process may be gone
            self._ours.shutdown(socket.SHUT_RDWR)
        until = time.monotonic() + _END_S
        with suppress(ChildProcessError):
            while not os.waitpid(self._server, os.WNOHANG)[0] and time.monotonic() < until:
                time.sleep(_LOOK_S)

    def _message(self) -> bytes:
        world = self._world
        if self._told + len(self._news) > 2 * _MOST_EVENTS:
            self._news, self._told = [*self._last], 0
        start, events = self._told, self._news
        self._told, self._news = start + len(events), []
        said, self._said = self._said, ""
        jobs = [*world.ctld.jobs.values()][-_MOST_JOBS:]
        told: dict[str, Any] = {
            "said": said,
            "prompt": "serve ctl",
            "start": start,
            "events": events,
            "now": format_us(world.kernel.now_us),
            "at": None,
            "nodes": [{"name": node.name, "state": node.base.name} for node in world.ctld.nodes],
            "jobs": [
                {
                    "id": job.job_id,
                    "label": str(job.job_id),
                    "state": str(job.state),
                    "user": world.site.user_name(job.desc.uid),
                    "nodes": job.node_list,
                }
                for job in jobs
            ],
        }
        return msgspec.json.encode(told, enc_hook=str) + b"\n"

    # What is typed.

    async def _listen(self, stream: trio.SocketStream) -> None:
        rest = b""
        while data := await stream.receive_some(_RECEIVED):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                typed = str(json.loads(line))
                self._said += f"> {typed}\n"
                self._kernel.inject(lambda typed: self._control.do(typed, self), typed)

    def write(self, stream: str, text: str) -> None:
        """Say something on the page."""
        self._said += text

    def quit(self, status: int) -> None:
        """Let the page know that this was all."""
        if status:
            self._said += f"(status {status})\n"
        self._tell_soon()


def _serve(server: Server, parent: int) -> None:
    """Answer browsers for as long as the cluster is there; does not return."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        linux.die_with_parent(signal.SIGKILL, parent)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server.conversation.listen()
        until = time.monotonic() + _END_S
        while server.conversation.tabs and time.monotonic() < until:
            time.sleep(_LOOK_S)
    finally:
        os._exit(0)
