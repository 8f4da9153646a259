"""`simctl view --live`: starts the session and its server, and sees to it that both end."""

import argparse
import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from simctl.repl.start import FIRST_CLUSTER, MakeWorld, hold
from simctl.repl.web.front import WebFront
from simctl.repl.web.server import HOST, Conversation, Server
from simctl.scenario.model import Scenario
from simctl.status import BROKEN, INTERRUPTED, OK, InputError
from simctl.view.page import LIVE_SCRIPTS, asset, write_page

_PATIENCE_S: Final = 3.0
"""How long a session has to end by itself."""
_LOOK_S: Final = 0.2
_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""


def view_live(
    options: argparse.Namespace, load: Callable[[str], Scenario], make_world: MakeWorld
) -> int:
    """Hold a session in a browser until its page is closed, or Ctrl-C; return the exit status.

    Raises:
        InputError: The scenario is wrong, or the port cannot be had.
    """
    scenario = load(options.inputs[0] if options.inputs else str(FIRST_CLUSTER))
    # What is wrong with plugins is told here, and not to a page.
    world = make_world(scenario, options)
    ours, theirs = socket.socketpair()
    conversation = Conversation(ours)
    page = page_of(world.header(), f"session: {scenario.path_name}", _about(scenario))
    children: list[int] = []
    try:
        server = Server(options.port or 0, page, conversation, lambda: _interrupt(children))
    except OSError as error:
        ours.close()
        theirs.close()
        raise InputError(
            f"--port: cannot listen at {HOST}:{options.port}: {error.strerror}; leave --port out "
            "for one that is free"
        ) from error
    sys.stdout.flush()
    child = os.fork()
    if not child:
        server.socket.close()
        ours.close()
        os._exit(_session(options, scenario, make_world, theirs))
    children.append(child)
    theirs.close()
    try:
        return _serve(server, conversation, child)
    finally:
        server.server_close()
        with contextlib.suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)
        _end(child)
        ours.close()


def _about(scenario: Scenario) -> str:
    return (
        f"A session over {scenario.path_name}. What it has come to so far is in the "
        "picture; the buttons on the left and the line below let it go on."
    )


def page_of(header: dict[str, Any], title: str, about: str, kind: str = "session") -> bytes:
    """Return the page of a cluster that goes on: a `session`, or one that is `served`."""
    page: dict[str, Any] = {
        "kind": kind,
        "header": header,
        "about": about,
        "notes": [],
        "verdict": "",
        "tone": "",
        "broken": [],
        "jobs": [],
        "told": {},
        "docs": {},
        "apart": None,
    }
    live = asset("live.html")
    return write_page(title, {"page": page}, scripts=LIVE_SCRIPTS, live=live, connects=True)


def _session(
    options: argparse.Namespace,
    scenario: Scenario,
    make_world: MakeWorld,
    link: socket.socket,
) -> int:
    """Hold the session, in a process group of its own; return its status."""
    os.setpgid(0, 0)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(signal.SIGTERM))
    try:
        return hold(options, scenario, make_world, WebFront(sys.stdout, link))
    except (OSError, KeyboardInterrupt):
        return OK
    except Exception as error:  # noqa: BLE001 - a child has no caller who would tell
        print(f"simctl: the session broke: {type(error).__name__}: {error}", file=sys.stderr)
        return BROKEN


def _serve(server: Server, conversation: Conversation, child: int) -> int:
    """Serve until there is no browser to serve, or nothing."""
    interrupted = threading.Event()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        interrupted.set()

    before = {each: signal.signal(each, interrupt) for each in (signal.SIGINT, signal.SIGTERM)}
    for work in (conversation.listen, server.serve_forever):
        threading.Thread(target=work, daemon=True).start()
    try:
        print(server.address, flush=True)
        print("open it in a browser of this machine; Ctrl-C, or closing it, ends the session")
        sys.stdout.flush()
        while not interrupted.wait(_LOOK_S):
            if conversation.ended:
                return OK
            if conversation.is_deserted:
                print("the page was closed")
                return OK
        return INTERRUPTED
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        server.shutdown()


def _interrupt(children: list[int]) -> None:
    """Stop a run that goes on: the whole group, since it is one of its forks that goes on."""
    for child in children:
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGINT)


def _end(child: int) -> None:
    """End the session with all its forks, by themselves if they can."""
    for number, patience_s in ((0, _PATIENCE_S), (signal.SIGTERM, _LOOK_S), (signal.SIGKILL, 1.0)):
        ends = time.monotonic() + patience_s
        asked = number
        while _goes_on(child, asked):
            asked = 0
            if time.monotonic() > ends:
                break
            time.sleep(0.02)
        else:
            return


def _goes_on(child: int, number: int) -> bool:
    """Return whether any process of the session is left, and send a signal to those."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, os.WNOHANG)
    try:
        os.killpg(child, number)
    except OSError:
        return False
    return True
