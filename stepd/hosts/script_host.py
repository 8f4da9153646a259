"""The process that a script runs in: what a step daemon, srun and salloc start scripts with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simctl.kernel.procs import wait_status
from simctl.site import CommandCall
from simctl.stepd.hosts.child import Child, become, command_name, program_state
from simctl.stepd.hosts.starting import Starting
from simctl.stepd.image_file import (
    ChildState,
    CommandState,
    ImageError,
    ProgramState,
    ScriptState,
    State,
    redirects_of,
    redirects_state,
)
from simctl.stepd.journal import JournalingHost
from simctl.stepd.outcome import SHELL_IMAGE
from simctl.stepd.programs import script_of
from simctl.stepd.scripts.host import PipeEnd
from simctl.stepd.stopping import pause, unpause


class ScriptHost(Starting):
    """Runs one script in one simulated process, as sh does, and is the shell's way to the world.

    Here is what checkpoint images take of it, and how it becomes the script of one.
    """

    def _host_of(self, child: Child) -> ScriptHost:
        """Return what a script, a tool or a subshell that this one has started runs in."""
        return ScriptHost(
            self._site,
            child.process,
            user=self._user,
            work_dir=self._work_dir,
            output=self._streams.output,
            ended=lambda status: self._end(child, status),
            parent=self,
            redirects=child.redirects,
        )

    def pause(self) -> None:
        """Stop the script and all it has started, while their image is written."""
        self._paused = True
        now_us = self._kernel.now_us
        for child in self.live_children():
            pause(child, now_us)
            if child.timer is not None:
                child.timer.cancel()
                child.timer = None
            if child.host is not None:
                child.host.pause()
            elif child.call is not None and not child.stopped:
                self._site.procs.stop(child.process)

    def unpause(self) -> None:
        """Let them go on, and take the signals that came meanwhile."""
        self._paused = False
        for child in self.live_children():
            if child.paused_us >= 0:
                self._unpause_child(child)
        if self._waiter is not None and not self.process.exited:
            self._kernel.wake(self._waiter)

    def _unpause_child(self, child: Child) -> None:
        held = unpause(child, self._kernel.now_us)
        if child.host is not None:
            child.host.unpause()
        elif child.call is not None:
            if not child.stopped:
                self._site.procs.go_on(child.process)
        elif child is not self._foreground:
            self._watch(child)
        for signal in held:
            if not child.ended:
                self._deliver_to(child, signal)

    def commands(self) -> list[CommandCall]:
        """Return the commands of Slurm's that run below this script, oldest first."""
        found: list[CommandCall] = []
        for child in self.live_children():
            if child.host is not None:
                found += child.host.commands()
            elif child.call is not None:
                found.append(child.call)
        return found

    def state(self, memories: Mapping[int, Any]) -> ScriptState:
        """Return the state of the script, paused or not, and of all it has started.

        Args:
            memories: What commands want to be remembered, by their pids.

        Raises:
            ImageError: It keeps no journal.
        """
        if self._journal is None:
            raise ImageError("a script whose journal nobody keeps has no image")
        waited = self._foreground
        run = self._run
        return ScriptState(
            text=run.text if run is not None else "",
            argv=run.argv if run is not None else (),
            tool=run.tool if run is not None else "",
            forked=run is None,
            streams=self._streams.state() if self._parent is None else None,
            kept_ends=tuple((end.number, end.reads) for end in self._kept_ends),
            env=self._first_env,
            pid=self._pid,
            begun=self._begun,
            start_dir=self._start_dir,
            work_dir=self._work_dir,
            stdin=self._streams.stdin.text if self._parent is None else "",
            journal=tuple(self._journal.entries),
            foreground=waited.pid if waited is not None else 0,
            children=tuple(
                self._child_state(child, memories)
                for child in self._children.values()
                if not (child.ended and child.awaited)
            ),
            dispositions=dict(self._dispositions),
            pending=tuple(self._pending),
            deadly=self._deadly,
            stopped=self._stopped,
            kept=self._kept,
            out_of_memory=self._out_of_memory,
            size=SHELL_IMAGE,
        )

    def _child_state(self, child: Child, memories: Mapping[int, Any]) -> ChildState:
        return ChildState(
            pid=child.pid,
            state=None if child.ended else self._state_of(child, memories),
            status=child.status,
            streams=redirects_state(child.redirects),
        )

    def _state_of(self, child: Child, memories: Mapping[int, Any]) -> State:
        if child.host is not None:
            return child.host.state(memories)
        if child.call is not None:
            return CommandState(
                argv=child.argv,
                env=child.call.env,
                work_dir=child.call.work_dir,
                stdin=child.call.stdin,
                memory=memories.get(child.process.pid),
                size=SHELL_IMAGE,
            )
        assert child.program is not None
        return program_state(child, child.program, child.argv, self._kernel.now_us)

    def restore(self, state: ScriptState, path: str) -> None:
        """Become the script of an image that lies at *path*, with all that it had started."""
        run = script_of(state)
        self._run = run
        self._pid = state.pid
        self._first_env = dict(state.env)
        self._start_dir, self._work_dir = state.start_dir, state.work_dir
        self._dispositions = dict(state.dispositions)
        self._pending.extend(state.pending)
        self._deadly = state.deadly
        self._stopped, self._kept = state.stopped, state.kept
        self._out_of_memory = state.out_of_memory
        if state.streams is not None:
            self._streams.restore(state.streams)
        self._kept_ends = [PipeEnd(number=number, reads=reads) for number, reads in state.kept_ends]
        for child in state.children:
            self._restore_child(child, path, state.foreground)
        self._resumed = self._children.get(state.foreground)
        self._journal = JournalingHost(self, state.journal, begun=state.begun)
        if run is not None:
            self._start(self._main(run, dict(state.env)))

    def _restore_child(self, image: ChildState, path: str, foreground: int) -> None:
        redirects = redirects_of(image.streams)
        if image.state is None:
            self._children[image.pid] = Child(
                process=self.process, pid=image.pid, status=image.status, ended=True
            )
            return
        state = image.state
        argv = state.argv
        env = state.env if not isinstance(state, ProgramState) else self.process.env
        forked = isinstance(state, ScriptState) and state.forked
        own = self.process
        child = Child(
            process=own.fork(role=own.role, task=own.task)
            if forked
            else self._fork(argv, dict(env)),
            pid=image.pid,
            argv=argv,
            redirects=redirects,
        )
        self._children[image.pid] = child
        if isinstance(state, ScriptState):
            child.host = self._host_of(child)
            child.host.restore(state, path)
        elif isinstance(state, CommandState):
            self._restore_command(child, state, path)
        else:
            child.program = become(child, state, self._kernel.now_us)
            if image.pid != foreground:
                self._watch(child)

    def _restore_command(self, child: Child, state: CommandState, path: str) -> None:
        """Let a command go on from what it remembers; one that remembers nothing is lost."""
        name = command_name(child.argv)
        if state.memory is not None and name in self._site.commands:
            call = self._call(child, name, state.stdin)
            call.work_dir, call.memory, call.image = state.work_dir, state.memory, path
            self._start_command(child, name, call)
            return

        async def body() -> None:
            lost = f"{name}: error: restarted from a checkpoint image, with its connections lost\n"
            self._say(child.redirects.stderr, lost)
            self._end(child, wait_status(1))

        child.process.start(body, name)
