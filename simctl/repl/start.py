"""`simctl repl`: from options to a session."""

import argparse
import difflib
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import simctl.repl.commands  # noqa: F401 - to import them is to register them
from simctl.files import read_text
from simctl.repl.fronts import Front, PipeFront, ScriptFront, is_comment, read_script
from simctl.repl.registry import find
from simctl.repl.session import Session
from simctl.scenario.model import Scenario
from simctl.status import NOT_HELD, OK, InputError
from simctl.world import World

MakeWorld = Callable[[Scenario, argparse.Namespace], World]
"""Makes the world of a scenario under the options of the command line."""

FIRST_CLUSTER: Final = Path(__file__).with_name("first_cluster.yaml")


def run_repl(
    options: argparse.Namespace,
    load: Callable[[str], Scenario],
    make_world: MakeWorld,
) -> int:
    """Hold the session that the options ask for; return the exit status."""
    scenario = load(options.scenario or str(FIRST_CLUSTER))
    if options.check and not options.script:
        raise InputError("repl: --check goes with --script FILE")
    if options.script:
        return _run_script(options, scenario, make_world)
    return hold(options, scenario, make_world, _front())


def hold(
    options: argparse.Namespace, scenario: Scenario, make_world: MakeWorld, front: Front
) -> int:
    """Hold a session over a front end; Ctrl-C stops what goes on."""
    session = make_session(options, scenario, make_world, front)

    def interrupt(_: int, __: Any) -> None:
        session.interrupt()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        return session.run()
    finally:
        signal.signal(signal.SIGINT, before)


def make_session(
    options: argparse.Namespace,
    scenario: Scenario,
    make_world: MakeWorld,
    front: Front,
    *,
    forks: bool = True,
) -> Session:
    """Return a session that has not begun; without *forks*, going back repeats the whole run."""
    source = read_text(Path(scenario.folder) / scenario.path_name)
    return Session(
        lambda: make_world(scenario, options), scenario, source, front, find, forks=forks
    )


def _front() -> Front:
    if os.isatty(0) and os.isatty(1):
        # Only a person pays for what draws the prompt.
        from simctl.repl.terminal import TerminalFront  # noqa: PLC0415

        return TerminalFront(sys.stdout)
    return PipeFront(sys.stdout, 0)


def _run_script(
    options: argparse.Namespace,
    scenario: Scenario,
    make_world: MakeWorld,
) -> int:
    try:
        text = read_text(options.script)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"--script: cannot read {options.script}: {why}") from error
    lines = read_script(text)
    if not options.check:
        return hold(options, scenario, make_world, ScriptFront(sys.stdout, lines))
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        status = hold(options, scenario, make_world, ScriptFront(out, lines))
        out.seek(0)
        difference = compare(text, out.read(), options.script)
    for line in difference:
        sys.stdout.write(f"{line}\n")
    return status or (NOT_HELD if difference else OK)


def compare(expected: str, found: str, name: str) -> list[str]:
    """Return how a transcript differs from what a session printed; comments do not count."""
    return list(
        difflib.unified_diff(
            _telling(expected), _telling(found), name, "this session", lineterm="", n=3
        )
    )


def _telling(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip() and not is_comment(line)]
