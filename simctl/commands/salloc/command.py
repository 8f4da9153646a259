"""salloc: an allocation for a command on the login host, given back when the command ends."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import attrs

from simctl.commands.arguments.options import UsageError
from simctl.commands.arguments.queue_options import queue_wishes
from simctl.commands.asking.ask import no_answer
from simctl.commands.asking.talk import Talk
from simctl.commands.salloc.options import GRAMMAR, read
from simctl.commands.srun.allocation import SILENT_WAITS, WAITS
from simctl.commands.submission import burst_buffer
from simctl.commands.submission.describe import (
    describe,
    qos_environment,
    refuse,
    tell_lines,
    test_only,
)
from simctl.commands.submission.filters import Filters
from simctl.commands.submission.sbatch import exit_of_error
from simctl.kernel.fabric import Envelope
from simctl.kernel.procs import (
    SIGHUP,
    SIGINT,
    SIGKILL,
    exit_code_of,
    signal_of,
    wait_status,
)
from simctl.site import CommandCall
from simctl.stepd.environment import CONF_FILE, job_environment, shape_environment
from simctl.stepd.hosts.child import Signalled
from simctl.stepd.hosts.script_host import ScriptHost
from simctl.stepd.outcome import NEVER_US
from simctl.stepd.programs import Input
from simctl.stepd.scripts.host import Inherited, Redirects, Stream
from simctl.stepd.signals import SIGQUIT
from simctl.wire.errno import (
    ESLURM_NODES_BUSY,
    SLURM_SUCCESS,
    SlurmError,
    slurm_strerror,
)
from simctl.wire.hostlist import expand
from simctl.wire.ids import NO_VAL, SECOND
from simctl.wire.messages import (
    RequestCompleteJobAllocation,
    RequestJobReady,
    RequestKillJob,
    RequestResourceAllocation,
    ResponseResourceAllocation,
    ResponseSlurmRc,
    SrunJobComplete,
    SrunNodeFail,
    SrunUserMsg,
)
from simctl.wire.records import JobDesc

JOB_NAME: Final = "interactive"
"""Name of a job that was given none."""

_NO_FAULT_OF_THE_COMMAND: Final = (SIGHUP, SIGINT, SIGQUIT, SIGKILL)
"""Signals that its user may have sent: dying of one leaves salloc's exit status at 0."""

_RESTARTS: Final = "SLURM_RESTART_COUNT"
_HIDDEN: Final = ("SLURM_JOB_USER", "SLURM_JOB_UID", "SLURM_JOB_GID")
"""Variables of batch jobs and steps that salloc does not set."""


@attrs.frozen(kw_only=True)
class CommandEnded:
    """Tell salloc that its command has ended."""


class Salloc:
    """One run of salloc, from its arguments to its exit status."""

    def __init__(
        self, call: CommandCall, filters: Filters, options: dict[str, Any], words: list[str]
    ) -> None:
        self.call = call
        self.filters = filters
        self.options = options
        self.words = words
        self.job_id = NO_VAL
        self._revoked = False
        seconds = options.get("immediate", 0)
        self._patient_to_us = call.site.kernel.now_us + seconds * SECOND if seconds else NEVER_US
        self._talk = Talk(call, self._handle)
        self._signal: Callable[[int], None] = lambda _: None
        """Signals its command, where that runs."""

    async def run(self) -> int:
        """Return the exit status."""
        job = describe(
            self.call,
            self.options,
            name=JOB_NAME,
            immediate=self.options.get("immediate") == 1,
            burst_buffer=burst_buffer.text_of(self.call, self.options),
            **queue_wishes(self.call, self.options),
        )
        if "test-only" in self.options:
            return await self._test(job)
        granted = await self._allocate(job)
        if granted is None:
            return 1
        await self.filters.after(self.job_id)
        if self._revoked:
            self.call.err(
                f"salloc: error: Allocation was revoked for job {self.job_id} before command "
                "could be run"
            )
            return 1
        if "no-shell" in self.options:
            return 0
        if self._lacks_command():
            await self._give_back(wait_status(1))
            return 1
        env = self._environment(job, granted)
        status = await (self._run_here(env) if self.call.run_here else self._run_command(env))
        if not self._revoked:
            await self._give_back(status)
        return _exit_status(status)

    async def _test(self, job: JobDesc) -> int:
        try:
            return await test_only(self.call, job, "allocation failure", self.options)
        except SlurmError as error:
            no_answer(self.call, error, f"salloc: error: {_FAILED}")
            return 1

    def close(self) -> None:
        """Let go of what refers back to this run."""
        self._talk.close()

    # The allocation.

    async def _allocate(self, job: JobDesc) -> ResponseResourceAllocation | None:
        """Return the allocation; None, and why is said, where there is none."""
        try:
            first = await self._talk.ask(
                RequestResourceAllocation(job_desc=job), ResponseResourceAllocation
            )
        except SlurmError as error:
            no_answer(self.call, error, f"salloc: error: {_FAILED}")
            return None
        if isinstance(first, SrunJobComplete):
            return None
        reply = first
        if not reply.error_code or (reply.error_code in WAITS and reply.job_id):
            tell_lines(self.call, reply.text, self.options)
        if reply.error_code in WAITS and reply.job_id and not job.immediate:
            self.job_id = reply.job_id
            if reply.error_code not in SILENT_WAITS:
                self._tell(f"salloc: {slurm_strerror(reply.error_code)}")
            self._tell(f"salloc: Pending job allocation {self.job_id}")
            self._tell(f"salloc: job {self.job_id} queued and waiting for resources")
            later = await self._allocation()
            if later is None:
                return None
            reply = later
            self._tell(f"salloc: job {self.job_id} has been allocated resources")
        if reply.error_code != SLURM_SUCCESS:
            self._refused(job, reply)
            return None
        self.job_id = self.call.process.job = reply.job_id
        # What it starts is of its own job, and of no run of a job around it.
        self.call.process.run_of_job = -1
        self._tell(f"salloc: Granted job allocation {self.job_id}")
        with suppress(SlurmError):
            await self._talk.ask(
                RequestJobReady(job_id=self.job_id), ResponseSlurmRc, heeds_end=False
            )
        return reply

    async def _allocation(self) -> ResponseResourceAllocation | None:
        """Wait for the controller's word on the job; None when the job is over before."""
        while True:
            envelope = await self._talk.next(self._patient_to_us)
            if envelope is None:
                await self._give_up()
                return None
            message = envelope.message
            if isinstance(message, ResponseResourceAllocation):
                if message.error_code in WAITS or message.job_id != self.job_id:
                    # The answer that it waits has come a second time.
                    continue
                return message
            if isinstance(message, SrunJobComplete):
                self._tell(f"salloc: Job allocation {message.job_id} has been revoked.")
                return None
            if isinstance(message, Signalled):
                self._talk.send(RequestKillJob(job_id=self.job_id, signal=SIGKILL))

    async def _give_up(self) -> None:
        """Wait no longer for nodes: the job leaves the queue."""
        self._revoked = True
        with suppress(SlurmError):
            request = RequestKillJob(job_id=self.job_id, signal=SIGKILL)
            await self._talk.ask(request, ResponseSlurmRc, heeds_end=False)
        refuse(self.call, _FAILED, ESLURM_NODES_BUSY)

    def _refused(self, job: JobDesc, reply: ResponseResourceAllocation) -> None:
        refuse(self.call, _FAILED, reply.error_code, reply.text)
        if reply.job_id and not job.immediate:
            self._tell(f"salloc: Job allocation {reply.job_id} has been revoked.")

    def _environment(self, job: JobDesc, granted: ResponseResourceAllocation) -> dict[str, str]:
        """Return what the command finds in its environment."""
        call = self.call
        nodes = expand(granted.node_list)
        env = job_environment(
            job_id=self.job_id,
            job_name=job.name,
            user=job.user,
            uid=job.uid,
            gid=job.gid,
            account=job.account,
            partition=granted.partition,
            node_list=granted.node_list,
            num_nodes=len(nodes),
            num_tasks=0 if job.num_tasks == NO_VAL else job.num_tasks,
            cpus_per_node=granted.cpus_per_node,
            work_dir=call.work_dir,
            cluster=call.site.conf.cluster_name,
            restart_cnt=0,
        )
        shape = shape_environment(job, nodes, granted.cpus_per_node)
        # A job around salloc may be in a later run; this one is in its first.
        around = {name: value for name, value in call.env.items() if name != _RESTARTS}
        return {
            **around,
            **qos_environment(self.call.site.conf, self.options),
            "SLURM_CONF": CONF_FILE,
            "SLURM_NODE_ALIASES": "(null)",
            **granted.environment,
            **{name: value for name, value in env.items() if name not in _HIDDEN},
            **shape,
        }

    async def _give_back(self, status: int) -> None:
        """Give the allocation back; the job ends as the command has ended."""
        self._tell(f"salloc: Relinquishing job allocation {self.job_id}")
        await self._talk.give_back(
            RequestCompleteJobAllocation(job_id=self.job_id, job_rc=status),
            f"salloc: error: Unable to end job {self.job_id}",
        )

    # The command.

    def _lacks_command(self) -> bool:
        """Tell, and say, that the command is nowhere to be found."""
        call = self.call
        words = tuple(self.words)
        files = call.site.disk.view(call.process.host.name, call.process.uid, self._work_dir())
        if (
            call.run_here
            or words[0] in call.site.commands
            or not call.site.programs.lacks(words, files)
        ):
            return False
        call.err(f'salloc: error: _fork_command: Unable to find command "{words[0]}"')
        return True

    def _work_dir(self) -> str:
        call = self.call
        return call.site.disk.resolve(self.options.get("chdir", call.work_dir), call.work_dir)

    async def _run_here(self, env: dict[str, str]) -> int:
        """Run the command where salloc was called; return its wait status."""
        call = self.call
        assert call.run_here is not None
        ended: list[int] = []

        def end(status: int) -> None:
            ended.append(status)
            call.mailbox.post(CommandEnded())

        here = call.run_here(tuple(self.words), env, self._work_dir(), end)
        self._signal = here.signal
        while not ended:
            envelope = await self._talk.next()
            assert envelope is not None
            self._handle(envelope)
        return ended[0]

    async def _run_command(self, env: dict[str, str]) -> int:
        """Run the command in a process of its own; return its wait status."""
        call = self.call
        host = ScriptHost(
            call.site,
            call.process,
            user=call.user,
            work_dir=self._work_dir(),
            output=lambda descriptor, text: call.write(_STREAMS[descriptor], text),
            ended=lambda _: None,
            stdin=Input(call.stdin),
        )
        pid = host.start(tuple(self.words), env, Redirects(stdout=_OUT, stderr=_ERR))
        child = next(each for each in host.live_children())
        self._signal = lambda number: None if child.ended else host.signal_child(child, number)

        async def watch() -> None:
            await host.wait((pid,))
            call.mailbox.post(CommandEnded())

        call.process.start(watch, "salloc's command")
        while not child.ended:
            envelope = await self._talk.next()
            assert envelope is not None
            self._handle(envelope)
        # What follows, follows from the command's end.
        call.process.cause = child.process.cause
        return child.status

    def _handle(self, envelope: Envelope) -> None:
        """Handle what the controller says while the command runs."""
        message = envelope.message
        if isinstance(message, SrunJobComplete) and not self._revoked:
            self._revoked = True
            self._tell(f"salloc: Job allocation {message.job_id} has been revoked.")
            self._signal_command(self.options.get("kill-command", 0))
        elif isinstance(message, SrunUserMsg):
            self.call.err(f"salloc: {message.text}")
        elif isinstance(message, SrunNodeFail):
            self.call.err(f"salloc: error: Node failure on {message.node_list}")
        elif isinstance(message, Signalled):
            self._signal_command(message.signal)

    def _signal_command(self, number: int) -> None:
        if number:
            self._signal(number)

    # Messages.

    def _tell(self, line: str) -> None:
        if "quiet" not in self.options:
            self.call.err(line)


_FAILED: Final = "Job submit/allocate failed"
_OUT: Final[Stream] = Inherited(descriptor=1)
_ERR: Final[Stream] = Inherited(descriptor=2)
_STREAMS: Final = {1: "stdout", 2: "stderr"}


def _exit_status(status: int) -> int:
    """Return salloc's exit status from the wait status of its command."""
    number = signal_of(status)
    if number:
        return 0 if number in _NO_FAULT_OF_THE_COMMAND else 1
    return exit_code_of(status)


async def salloc(call: CommandCall) -> int:
    """Run a command with an allocation; return its exit status."""
    filters = Filters(call, GRAMMAR)
    status = await _salloc(call, filters)
    await filters.unload()
    return status


async def _salloc(call: CommandCall, filters: Filters) -> int:
    try:
        await filters.load()
        asked = await read(call, filters)
        if isinstance(asked, int):
            return asked
        program = Salloc(call, filters, *asked)
        try:
            return await program.run()
        finally:
            program.close()
    except UsageError as error:
        for line in error.lines:
            call.err(line)
        return exit_of_error(call, error.status)


__all__ = ["GRAMMAR", "salloc"]
