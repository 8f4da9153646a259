"""Sessions in a test: lines in, what is printed out."""

import argparse
import io
import sys
from pathlib import Path
from typing import Any

import msgspec

from simctl.repl.fronts import ScriptFront, ScriptLine
from simctl.repl.session import Session
from simctl.repl.start import FIRST_CLUSTER, make_session
from simctl.running import load, make_world

OPTIONS = {
    "seed": None,
    "schedule": "fifo",
    "model": None,
    "until": None,
    "watchdog": 10.0,
    "no_orderings": True,
}


class Held:
    """A session that was held in this process, without forks: going back repeats the run."""

    def __init__(
        self, *lines: str | ScriptLine, scenario: Path | str = FIRST_CLUSTER, **options: Any
    ) -> None:
        self.out = io.StringIO()
        front = ScriptFront(
            self.out, [ScriptLine(line) if isinstance(line, str) else line for line in lines]
        )
        named = argparse.Namespace(**{**OPTIONS, **options})
        self.session = make_session(named, load(str(scenario)), make_world, front, forks=False)
        self.status = self.session.run()

    @property
    def said(self) -> list[str]:
        """Return what was printed, without the commands."""
        return [line for line in self.out.getvalue().splitlines() if not line.startswith("> ")]

    @property
    def world(self) -> Any:
        """Return the world as it was left."""
        return self.session.world

    def trace_lines(self) -> list[bytes]:
        """Return the trace so far, a line an event."""
        return trace_lines(self.session)


def trace_lines(session: Session) -> list[bytes]:
    """Return the trace of a session so far, a line an event."""
    return [msgspec.json.encode(event) for event in session.world.events]


def repl_command(*words: str) -> list[str]:
    """Return the command line of a session in a process of its own."""
    return [sys.executable, "-m", "simctl", "repl", *words]
