"""The tasks of a step on one node: forked, attached, run, signalled, reaped."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from simctl.kernel.procs import OUT_OF_MEMORY_STATUS, SIGKILL, Process
from simctl.site import CommandCall
from simctl.stepd.hosts.child import become, program_state
from simctl.stepd.image_file import ImageError, ProgramState, State
from simctl.stepd.outcome import NEVER_US, ProgramRun, by_default_stops, default_status
from simctl.stepd.programs import Input, TaskHost
from simctl.stepd.script_process import ScriptProcess
from simctl.stepd.stopping import pause, take_signal, unpause


def nobody() -> None:
    """Stand in where no caller wants to know."""


@attrs.define(eq=False, kw_only=True)
class Task:
    """One task: a program whose end is known ahead, or a script that runs.

    `due_us` is when the program will end by itself, and `planned` the wait status it then has.
    """

    rank: int
    procid: int
    process: Process
    program: ProgramRun | None = None
    host: TaskHost | None = None
    prolog: ScriptProcess | None = None
    """Its task prolog, while one runs: a signal to the task's process group reaches both."""

    left_behind: TaskHost | None = None
    """A script that has ended before what it had started."""

    stdin: Input = attrs.field(factory=Input)
    due_us: int = NEVER_US
    planned: int = 0
    signalled: bool = False
    """A signal ends its program now, before its time."""

    left_us: int = -1
    kept: tuple[int, ...] = ()
    paused_us: int = -1
    held: tuple[int, ...] = ()
    argv: tuple[str, ...] = ()
    changed: Callable[[], None] = nobody
    """Told when its program will end at another time than before."""

    to_children: tuple[bool, ...] = ()
    """Whether each of the signals it holds is for what it has started as well."""

    gone: Callable[[], None] = nobody
    """Told when it ends, while its image is written."""

    status: int = 0
    ended: bool = False
    reported: bool = False

    def run(self, program: ProgramRun, now_us: int) -> None:
        """Become a program that starts now."""
        self.program = program
        self.planned = program.status
        self.due_us = min(NEVER_US, now_us + program.runs_us)

    def leave(self, status: int) -> None:
        """End at once, before or instead of any program."""
        if self.ended:
            return
        self.ended = True
        self.status = status
        self.due_us = NEVER_US
        if self.host is not None and self.host.has_children:
            self.left_behind = self.host
        self.host = None
        if self.prolog is not None:
            self.prolog.signal(SIGKILL)
            self.prolog = None
        self.process.exit(SIGKILL if status == OUT_OF_MEMORY_STATUS else status)
        self.gone()

    def signal(self, number: int, *, children: bool) -> None:
        """Take a signal; with *children* those of a script get it as well."""
        if self.ended:
            return
        process = self.process
        process.cause = process.table.trace.process(process, "signal", number)
        if self.ended:
            # A fault has killed it upon that very signal.
            return
        if self.prolog is not None:
            self.prolog.signal(number)
        if self.paused_us >= 0 and number != SIGKILL:
            self.held += (number,)
            self.to_children += (children,)
        else:
            self._take(number, children=children)

    def _take(self, number: int, *, children: bool) -> None:
        process = self.process
        if self.host is not None:
            self.host.signal(number, children=children)
        elif self.program is not None:
            now_us = process.table.kernel.now_us
            if self.due_us <= now_us and by_default_stops(number):
                # It ends this very moment.
                return
            status = take_signal(self, self.program, number, now_us)
            if status is not None:
                self.due_us = now_us
                self.planned = status
                self.signalled = True
        else:
            self._die_before_exec(number)

    # Images.

    def resume(self, program: ProgramState, now_us: int) -> None:
        """Become the program of an image."""
        self.argv = program.argv
        self.program = become(self, program, now_us)

    def commands(self) -> list[CommandCall]:
        """Return the commands of Slurm's that a script has under way."""
        return self.host.commands() if self.host is not None else []

    def pause(self) -> None:
        """Stop it, and all it has started, while their image is written."""
        pause(self, self.process.table.kernel.now_us)
        if self.host is not None:
            self.host.pause()
        self.changed()

    def unpause(self) -> None:
        """Let them go on, and take the signals that came meanwhile."""
        held = unpause(self, self.process.table.kernel.now_us)
        to_children, self.to_children = self.to_children, ()
        if self.ended or self.process.exited:
            return
        if self.host is not None:
            self.host.unpause()
        for number, children in zip(held, to_children, strict=True):
            if not self.ended:
                self._take(number, children=children)
        self.changed()

    def state(self, memories: Mapping[int, Any]) -> State:
        """Return its state; *memories* are what commands want to be remembered, by pid.

        Raises:
            ImageError: It has not begun its program, or is ending.
        """
        if self.host is not None:
            return self.host.state(memories)
        if self.program is None or self.signalled:
            raise ImageError("the process has no program to be saved")
        return program_state(self, self.program, self.argv, self.process.table.kernel.now_us)

    def _die_before_exec(self, number: int) -> None:
        status = default_status(number)
        if status is not None:
            self.process.table.kill(self.process, status)
            self.leave(status)


class TaskSet:
    """The tasks of one step daemon, in local order."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.alive = 0

    def add(self, task: Task) -> None:
        """Add a task that was just forked."""
        self.tasks.append(task)
        self.alive += 1

    def next_due_us(self) -> int:
        """Return when the next program ends by itself; NEVER_US if none does."""
        if len(self.tasks) == 1:
            return self.tasks[0].due_us
        return min((task.due_us for task in self.tasks if not task.ended), default=NEVER_US)

    def end_due(self, now_us: int) -> list[Task]:
        """End the programs whose time has come; return those with something to say at their end.

        A program that a signal ends says nothing.
        """
        speaking: list[Task] = []
        for task in self.tasks:
            if task.due_us <= now_us and not task.ended:
                program = task.program
                if program is not None and program.output and not task.signalled:
                    speaking.append(task)
                task.leave(task.planned)
        return speaking

    def reap(self) -> list[Task]:
        """Return the tasks that have ended and were not returned before."""
        reaped = [task for task in self.tasks if task.ended and not task.reported]
        for task in reaped:
            task.reported = True
        self.alive -= len(reaped)
        return reaped

    def kill_all(self) -> None:
        """Kill every process of the step: tasks, and what scripts have started and not awaited.

        A srun among that ends by itself: it is told when its job is over.
        """
        self.signal(SIGKILL)
        for task in self.tasks:
            host, task.left_behind = task.left_behind, None
            if host is not None:
                host.kill_children()

    def signal(self, number: int, *, children: bool = True) -> None:
        """Signal every task that is alive."""
        for task in self.tasks:
            task.signal(number, children=children)
