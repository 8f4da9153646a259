"""srun: an allocation of its own if need be, one step, and the exit status of its tasks."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from simctl.commands.arguments.options import UsageError, variable
from simctl.commands.asking.ask import no_answer
from simctl.commands.asking.talk import Talk
from simctl.commands.srun.allocation import SrunJob
from simctl.commands.srun.creation import create_step, say_why_not
from simctl.commands.srun.multi_prog import MultiProgError
from simctl.commands.srun.options import GRAMMAR, read
from simctl.commands.srun.step_input import InputError
from simctl.commands.srun.step_launch import step_launch
from simctl.commands.srun.step_request import step_request
from simctl.commands.srun.watch import StepWatch, report_nodes
from simctl.commands.submission.filters import Filters
from simctl.commands.submission.sbatch import exit_of_error
from simctl.kernel.fabric import Envelope
from simctl.kernel.procs import wait_status
from simctl.plugins.hooks import Handle, failed
from simctl.plugins.points.switch import (
    switch_p_alloc_jobinfo,
    switch_p_free_jobinfo,
    switch_p_unpack_jobinfo,
)
from simctl.site import CommandCall
from simctl.stepd.script_process import ScriptProcess
from simctl.wire.errno import SlurmError
from simctl.wire.ids import NO_VAL, step_name
from simctl.wire.messages import (
    RequestJobPackAllocInfo,
    RequestJobStepCreate,
    ResponseJobPackAllocation,
    ResponseJobStepCreate,
    StepLaunch,
)

_STDERR: Final = 2
_FAILED: Final = 1
_HANGS_UP_US: Final = 3000
"""How long the connections of a step take to close: half of the recorded sruns took no longer."""

_HANGS_UP_LATENCIES: Final = 8
"""At least so many messages in a row are faster than that."""


class Srun:
    """One run of srun, from its arguments to its exit status."""

    def __init__(
        self, call: CommandCall, filters: Filters, options: Mapping[str, Any], words: list[str]
    ) -> None:
        self.call = call
        self.filters = filters
        self.site = call.site
        self.options = options
        self.words = words
        self._name = options.get("job-name", words[0].rsplit("/", 1)[-1])
        self._talk = Talk(call, self._handle)
        self._job = SrunJob(call, options, words[0], self._talk)
        self._watch: StepWatch | None = None

    def _handle(self, envelope: Envelope) -> None:
        """Hand what comes in between to the watch over the step, or else over the job."""
        (self._watch or self._job).handle(envelope)

    async def run(self) -> int:
        """Return the exit status."""
        hooks = self.site.hooks
        who = self.call.process
        if not await hooks.load(who, "switch"):
            self.call.err("srun: fatal: failed to initialize switch plugin")
            return _FAILED
        if self.site.model == "modern":
            await hooks.load_others(who, "switch")
        status = await self._obtain() if self._job.own else await self._look_up()
        if not status and not self._is_test:
            status = await self._run_step()
        if self.site.model == "guide":
            await hooks.unload(who, "switch")
        self._talk.close()
        return status

    async def _obtain(self) -> int:
        """Have a job of its own; what its options cannot mean is found out only now."""
        try:
            return await self._job.obtain()
        except UsageError as error:
            for line in error.lines:
                self.call.err(line)
            return exit_of_error(self.call, error.status)

    async def _look_up(self) -> int:
        """Ask whether the job that srun runs in has nodes; return srun's exit status, 0 to go on.

        Model guide's srun does not ask. Source: existing_allocation() of srun 18.08.
        """
        if self.site.model == "guide":
            return 0
        job_id = self._job.job_id
        request = RequestJobPackAllocInfo(job_id=job_id)
        try:
            reply = await self._job.ask(request, ResponseJobPackAllocation)
        except SlurmError as error:
            what = f"srun: error: Unable to confirm allocation for job {job_id}"
            no_answer(self.call, error, what)
            return _FAILED
        if reply is None:
            return _FAILED
        if reply.error_code:
            say_why_not(self.call, job_id, reply.error_code, confirms=True)
            return _FAILED
        return 0

    @property
    def _is_test(self) -> bool:
        return "test-only" in self.options and self._job.own

    async def _run_step(self) -> int:
        """Make the step and run it; return the exit status."""
        call = self.call
        call.process.job = self._job.job_id
        try:
            request = self._step_request()
            reply = await create_step(call, self._job, request)
        except UsageError as error:
            for line in error.lines:
                call.err(line)
            return await self._give_up(error.status)
        except SlurmError as error:
            what = f"srun: error: Unable to create step for job {self._job.job_id}"
            no_answer(call, error, what)
            return await self._give_up()
        if reply is None:
            return await self._give_up()
        if reply.error_code or reply.layout is None:
            say_why_not(call, self._job.job_id, reply.error_code)
            return await self._give_up(refused=True)
        launch = self._step_launch(reply)
        if launch is None:
            return await self._give_up()
        call.process.step = step_name(launch.job_id, launch.step_id)
        await self.filters.after(launch.job_id, launch.step_id)
        credential = await self._credential(reply)
        if credential is None:
            return await self._give_up()
        watch = StepWatch(
            call, self.options, self._job, self._talk, launch, no_kill=request.no_kill
        )
        problem = watch.open_output()
        if problem:
            return await self._drop_step(launch, credential, problem)
        return await self._run_launched(watch, launch, credential)

    async def _drop_step(self, launch: StepLaunch, credential: Handle, problem: str) -> int:
        """Say why the step is not launched, report it over, and give up."""
        self.call.err(f"srun: error: {problem}")
        nodes = (0, len(launch.layout.nodes) - 1)
        report_nodes(self._talk, launch.job_id, launch.step_id, nodes, wait_status(_FAILED))
        await self.site.hooks.call(switch_p_free_jobinfo, self.call.process, credential)
        return await self._give_up()

    def _step_request(self) -> RequestJobStepCreate:
        job = self._job
        request = step_request(
            self.call, self.options, job_id=job.job_id, own=job.own, name=self._name
        )
        return msgspec.structs.replace(request, restart_cnt=self._run_of_job())

    def _run_of_job(self) -> int:
        """Return which run of its job srun belongs to, NO_VAL where it is no process of the job."""
        env = self.call.env
        if self._job.own or variable(env, "SLURM_JOB_ID") != self._job.job_id:
            return NO_VAL
        run = self.call.process.run_of_job
        return NO_VAL if run < 0 else run

    def _step_launch(self, reply: ResponseJobStepCreate) -> StepLaunch | None:
        """Return what the nodes are told; None, and why is said, where that cannot be known."""
        assert reply.layout is not None
        try:
            return step_launch(
                self.call,
                self.options,
                self.words,
                job_id=self._job.job_id,
                step_id=reply.step_id,
                restart_cnt=reply.restart_cnt,
                layout=reply.layout,
                granted=self._job.granted,
                credential=reply.credential,
            )
        except (MultiProgError, InputError) as error:
            self.call.err(f"srun: error: {error}")
            report_nodes(
                self._talk, self._job.job_id, reply.step_id, (0, len(reply.layout.nodes) - 1), 1
            )
            return None

    async def _credential(self, reply: ResponseJobStepCreate) -> Handle | None:
        """Return the switch's credential of the step; None where srun cannot read it."""
        hooks = self.site.hooks
        who = self.call.process
        credential: Handle
        if self.site.model == "guide":
            credential = await hooks.call(switch_p_alloc_jobinfo, who)
            if failed(credential):
                self.call.err("srun: fatal: switch_g_alloc_jobinfo failed")
                return None
        else:
            credential = await hooks.blank(who, switch_p_alloc_jobinfo)
        received = reply.switch_job.opened()
        if failed(await hooks.call(switch_p_unpack_jobinfo, who, credential, received)):
            job_id = self._job.job_id
            self.call.err(f"srun: error: Unable to create step for job {job_id}: invalid reply")
            await hooks.call(switch_p_free_jobinfo, who, credential)
            return None
        return credential

    async def _run_launched(self, watch: StepWatch, launch: StepLaunch, credential: Handle) -> int:
        """Run srun's scripts and the step between them; return the exit status."""
        self._watch = watch
        if await self._run_script("srun_prolog", "prolog", launch):
            # No node will report a step over that was never launched.
            self.call.err("srun: error: srun prolog failed. Aborting step.")
            nodes = (0, len(launch.layout.nodes) - 1)
            report_nodes(self._talk, launch.job_id, launch.step_id, nodes, wait_status(_FAILED))
            exit_status, job_rc = _FAILED, wait_status(_FAILED)
        else:
            await watch.launch(credential)
            await watch.follow()
            if self.site.model == "modern" and not self._job.own:
                await self._hang_up()
            exit_status, job_rc = watch.book.exit_status(), watch.book.worst_status()
        if self.site.model == "modern":
            # Nothing of the step is let go of before slurmctld has answered.
            await self._job.give_back(job_rc)
        await self.site.hooks.call(switch_p_free_jobinfo, self.call.process, credential)
        if self.site.model == "guide":
            await self._job.give_back(job_rc)
        await self._run_script("srun_epilog", "epilog", launch)
        return exit_status

    async def _hang_up(self) -> None:
        """Close the connections of a step in another user's job, which takes a moment.

        By its end slurmctld knows that the step is over, so that what comes next in a script finds
        it gone.
        """
        kernel = self.site.kernel
        until_us = kernel.now_us + max(
            _HANGS_UP_US, _HANGS_UP_LATENCIES * self.site.fabric.latency_us
        )
        while kernel.now_us < until_us:
            envelope = await self._talk.next(until_us)
            if envelope is not None:
                self._handle(envelope)

    async def _run_script(self, name: str, option: str, launch: StepLaunch) -> int:
        """Run srun's own prolog or epilog, the one asked for or slurm.conf's."""
        call = self.call
        conf = self.site.conf
        usual = conf.srun_prolog if option == "prolog" else conf.srun_epilog
        path = self.options.get(option, usual)
        if not path or path.lower() == "none":
            return 0
        script = ScriptProcess(
            site=self.site,
            parent=call.process,
            name=name,
            path=path,
            user=call.user,
            env=launch.env,
            job_id=launch.job_id,
            step=call.process.step,
            work_dir=call.work_dir,
            output=lambda stream, text: call.write(
                "stderr" if stream == _STDERR else "stdout", text
            ),
        )
        return await script.run()

    async def _give_up(self, status: int = _FAILED, *, refused: bool = False) -> int:
        """End without a step; return the exit status.

        Slurm 18.08 reports a step that was *refused* with a bare 1, which reads as a signal, and
        hears of the job's end like one whose job is ended from outside.
        """
        bare = refused and self.site.model == "modern"
        await self._job.give_back(_FAILED if bare else wait_status(status))
        if bare and self._job.own:
            self._job.tell_forced()
        return status


async def srun(call: CommandCall) -> int:
    """Run a step; return its exit status."""
    filters = Filters(call, GRAMMAR)
    status = await _srun(call, filters)
    await filters.unload()
    return status


async def _srun(call: CommandCall, filters: Filters) -> int:
    try:
        await filters.load()
        asked = await read(call, filters)
        if isinstance(asked, int):
            return asked
        return await Srun(call, filters, *asked).run()
    except UsageError as error:
        for line in error.lines:
            call.err(line)
        return exit_of_error(call, error.status)


__all__ = ["GRAMMAR", "srun"]
