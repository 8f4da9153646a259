"""What a script knows of each program, command, tool or script that it has started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from simctl.kernel.procs import Process
from simctl.kernel.turns import Timer
from simctl.site import CommandCall
from simctl.stepd.image_file import (
    ProgramState,
    ScriptState,
)
from simctl.stepd.outcome import (
    NEVER_US,
    ProgramRun,
)
from simctl.stepd.programs import ScriptRun
from simctl.stepd.scripts.host import (
    Body,
    Disposition,
    Redirects,
)
from simctl.stepd.stopping import Pausable, left_us


@attrs.frozen(kw_only=True)
class Signalled:
    """Tell a command's own thread that a signal reached its process."""

    signal: int


class Running(Protocol):
    """What a script asks of a child of its own that is a script, a tool or a subshell as well."""

    held: Redirects
    """What its descriptors are now."""

    def start_script(self, run: ScriptRun, env: dict[str, str]) -> None:
        """Run a script, or a tool."""

    def start_body(self, body: Body) -> None:
        """Go on as a subshell."""

    def live_children(self) -> list[Child]:
        """Return what it has started and what has not ended, oldest first."""

    def signal_child(self, child: Child, signal: int) -> None:
        """Deliver a signal to one of these, and to what that has started."""

    def deliver(self, signal: int) -> None:
        """Take a signal."""

    def shut_out(self, signals: tuple[int, ...], how: Disposition) -> None:
        """Ignore signals until it says otherwise."""

    def pause(self) -> None:
        """Stop it and all it has started, while their image is written."""

    def unpause(self) -> None:
        """Let them go on."""

    def commands(self) -> list[CommandCall]:
        """Return the commands of Slurm's that run below it."""

    def state(self, memories: Mapping[int, Any]) -> ScriptState:
        """Return its state, and that of all it has started."""

    def restore(self, state: ScriptState, path: str) -> None:
        """Become the script of an image."""


@attrs.define(eq=False, kw_only=True)
class Child:
    """A program that a script has started."""

    process: Process
    pid: int
    """The pid that the script knows; one that was restarted from an image has another besides."""

    argv: tuple[str, ...] = ()
    program: ProgramRun | None = None
    due_us: int = NEVER_US
    planned: int = 0
    left_us: int = -1
    kept: tuple[int, ...] = ()
    paused_us: int = -1
    held: tuple[int, ...] = ()
    stopped: bool = False
    """A command is stopped; of programs `left_us` tells."""

    redirects: Redirects = attrs.field(factory=Redirects)
    forked: int = 0
    """The cause of its fork."""

    awaited: bool = False
    """The script knows how it ended."""

    status: int = 0
    ended: bool = False
    timer: Timer | None = None
    host: Running | None = None
    call: CommandCall | None = None


def command_name(argv: tuple[str, ...]) -> str:
    """Return the name under which a command of Slurm's would be known."""
    return argv[0].rsplit("/", 1)[-1]


def program_state(
    run: Pausable, program: ProgramRun, argv: tuple[str, ...], now_us: int
) -> ProgramState:
    """Return the state of a program."""
    return ProgramState(
        argv=argv,
        left_us=left_us(run, now_us),
        status=program.status,
        output=program.output,
        ignores=program.ignores,
        exits_on=dict(program.exits_on),
        stopped=run.left_us >= 0,
        kept=run.kept,
        size=program.image,
    )


class _Runs(Pausable, Protocol):
    planned: int


def become(run: _Runs, state: ProgramState, now_us: int) -> ProgramRun:
    """Have *run* go on as the program of an image, and return what that does."""
    run.planned = state.status
    run.kept = state.kept
    if state.stopped:
        run.left_us = state.left_us
    else:
        run.due_us = min(NEVER_US, now_us + state.left_us)
    return ProgramRun(
        runs_us=state.left_us,
        status=state.status,
        output=state.output,
        ignores=state.ignores,
        exits_on=state.exits_on,
        image=state.size,
    )
