"""What takes time: stage-in, pre_run, stage-out and teardown, each in a thread of its own.

A stage-out does not ask whether the job was cancelled meanwhile: so does real Slurm, and two
teardowns of a buffer may run.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Final

from simctl.plugin import (
    Event,
    JobRecord,
    PluginThread,
    log,
    lua_settings,
    now,
    sleep,
    slurmctld,
    start,
)
from simctl.plugins.burst_buffer.lua import files
from simctl.plugins.burst_buffer.lua.books import BbJob, Books
from simctl.plugins.burst_buffer.lua.calls import BUSY, Calls, Reply
from simctl.plugins.burst_buffer.lua.settings import Settings
from simctl.plugins.burst_buffer.records import BbState

OPERATION: Final = "BurstBufferOperation"
MOST_AT_ONCE: Final = 128
"""How many calls of one kind run at a time, up to Slurm 23.11."""

_TRIES: Final = 3
_RETRY_S: Final = 10
_MAX_RETRY_CNT: Final = 3
_PRE_RUN_ERROR: Final = "Burst buffer pre_run error"
_SIZE: Final = re.compile(r"\s*\+?([0-9]+)", re.ASCII)


class Stages:
    """Runs the stages of jobs' buffers, and enters how each ended."""

    def __init__(self, books: Books, calls: Calls, plugin_type: str) -> None:
        self._books = books
        self._calls = calls
        self._type = plugin_type
        self.settings = Settings()
        self._threads: dict[int, list[tuple[str, PluginThread]]] = {}
        self._running: dict[str, int] = {}
        self._freed = Event()

    def stop(self) -> None:
        """End every thread where it is, and the child of each with it."""
        threads, self._threads = self._threads, {}
        for _, thread in (each for of_job in threads.values() for each in of_job):
            thread.cancel()

    def full(self, stage: str) -> bool:
        """Return whether as many calls of a stage run as may."""
        limited = lua_settings().slurm < "24.05"
        return limited and self._running.get(stage, 0) >= MOST_AT_ONCE

    def _start(self, stage: str, body: Callable[[], Awaitable[None]], bb: BbJob) -> None:
        async def run() -> None:
            while self.full(stage):
                self._freed.clear()
                await self._freed.wait()
            self._running[stage] = self._running.get(stage, 0) + 1
            over = False
            try:
                await body()
                over = True
            finally:
                # Real Slurm's count of stage-ins is not lowered by one that is killed.
                kept = stage == "stage_in" and "stage_in_count" in lua_settings().defects
                if over or not kept:
                    self._running[stage] -= 1
                    self._freed.set()

        threads = self._threads.setdefault(bb.job_id, [])
        threads[:] = [each for each in threads if each[1].alive]
        threads.append((stage, start(run, f"{stage} of job {bb.job_id}")))

    def kill(self, bb: BbJob) -> None:
        """Kill the calls under way of a cancelled job; a stage-out goes on, as recorded."""
        goes_on = ["teardown"]
        if "two_teardowns" in lua_settings().defects:
            goes_on.append("stage_out")
        for stage, thread in self._threads.get(bb.job_id, []):
            if stage not in goes_on:
                thread.cancel()

    def set_state(self, bb: BbJob, state: BbState) -> None:
        """Enter how far a job's buffer is, where slurmctld tells of it too."""
        bb.state = state
        job = slurmctld.find_job(bb.job_id)
        if job is not None:
            job.burst_buffer_state = state.name

    async def _child(self, function: str, bb: BbJob, *arguments: object, limit_s: float) -> Reply:
        job = slurmctld.find_job(bb.job_id)
        return await self._calls.in_child(
            function, bb.job_id, *arguments, job=job, limit_s=limit_s, job_id=bb.job_id
        )

    def _failure(self, function: str, reply: Reply, *, held: bool) -> str:
        """Return what a job's reason says of a call that failed."""
        if lua_settings().slurm < "25.05":
            return f"{self._type}: slurm_bb_{function}: {reply.text}"
        text = f"{self._type}: slurm_bb_{function} failed: {reply.text}"
        return f"JobHeldAdmin: {text}" if held else text

    # Stage-in.

    def stage_in(self, bb: BbJob) -> None:
        """Take a job's space of its pool, and start to fill it."""
        self._books.charge(bb, slurmctld.time())
        bb.failed = False
        self.set_state(bb, BbState.STAGING_IN)
        self._start("stage_in", lambda: self._stage_in(bb), bb)

    async def _stage_in(self, bb: BbJob) -> None:
        settings, script = self.settings, files.path_of(bb.job_id, "script")
        pool = bb.request.pool or "(null)"
        function = "setup"
        reply = await self._child(
            function,
            bb,
            bb.user_id,
            bb.group_id,
            pool,
            bb.size,
            script,
            limit_s=settings.other_timeout,
        )
        if reply.ok:
            function = "data_in"
            limit_s = settings.stage_in_timeout
            reply = await self._child(function, bb, script, limit_s=limit_s)
        if reply.ok and lua_settings().slurm >= "24.05":
            function = "test_data_in"
            reply = await self._polled(function, bb, settings.stage_in_timeout)
        if reply.ok and bb.request.size:
            function = "real_size"
            reply = await self._child(function, bb, limit_s=settings.stage_in_timeout)
            if reply.ok:
                self._enlarge(bb, reply.message)
        async with slurmctld.locked():
            self._stage_in_over(bb, function, reply)

    async def _polled(self, function: str, bb: BbJob, limit_s: float) -> Reply:
        """Ask whether a transfer is over, until it is."""
        until = now() + limit_s
        while True:
            left = until - now()
            if left <= 0:
                return Reply(ok=False, message="Poll exceeded time limit")
            script = files.path_of(bb.job_id, "script")
            reply = await self._child(function, bb, script, limit_s=left)
            if not reply.ok or (reply.message or "").upper() != BUSY:
                return reply
            await sleep(min(self.settings.poll_interval, max(0.0, until - now())))

    def _enlarge(self, bb: BbJob, message: str | None) -> None:
        """Take a size that is larger than what was asked for; what is no number is logged."""
        match = _SIZE.match(message or "")
        if match is None:
            log.error("slurm_bb_real_size returned no number", job=bb.job_id, returned=message)
        else:
            bb.size = max(bb.size, int(match[1]))

    def _stage_in_over(self, bb: BbJob, function: str, reply: Reply) -> None:
        if bb.state is not BbState.STAGING_IN:
            return
        if not reply.ok:
            self._hold(bb, function, reply)
            if self.settings.teardown_failure:
                self.tear_down(bb, hurry=True)
            return
        self.set_state(bb, BbState.STAGED_IN)
        if bb.request.size:
            slurmctld.schedule()

    def _hold(self, bb: BbJob, function: str, reply: Reply) -> None:
        """Say in a job's record what failed, and hold it."""
        bb.failed = True
        job = slurmctld.find_job(bb.job_id)
        if job is not None:
            job.state_reason = OPERATION
            job.state_desc = self._failure(function, reply, held=True)
            job.priority = 0

    # Before the job runs.

    def pre_run(self, bb: BbJob, job: JobRecord) -> None:
        """Have pre_run called; the job is launched once it is over."""
        slurmctld.hold_launch(job)
        self._start("pre_run", lambda: self._pre_run(bb), bb)

    async def _pre_run(self, bb: BbJob) -> None:
        script = files.path_of(bb.job_id, "script")
        reply = await self._child("pre_run", bb, script, limit_s=self.settings.other_timeout)
        async with slurmctld.locked():
            job = slurmctld.find_job(bb.job_id)
            if reply.ok:
                if bb.state is BbState.PRE_RUN:
                    self.set_state(bb, BbState.RUNNING)
            elif job is not None:
                await self._pre_run_failed(bb, job, reply)
            if job is not None:
                slurmctld.release_launch(job)

    async def _pre_run_failed(self, bb: BbJob, job: JobRecord, reply: Reply) -> None:
        bb.retry_cnt += 1
        log.error("pre_run failed", job=bb.job_id, message=reply.text)
        self.tear_down(bb, hurry=True)
        if base(job) != "RUNNING":
            return
        text = _PRE_RUN_ERROR
        if lua_settings().slurm >= "25.05":
            text = self._failure("pre_run", reply, held=False)
        await slurmctld.requeue(job, text, exit_status=1)
        if base(job) == "PENDING":
            job.state_reason = OPERATION
            job.state_desc = text
            if "pre_run_stuck" in lua_settings().defects:
                bb.stuck = slurmctld.time()
            if bb.retry_cnt > _MAX_RETRY_CNT:
                job.priority = 0

    # Stage-out.

    def stage_out(self, bb: BbJob) -> None:
        """Start to empty the buffer of a job that is over, and say so in its record."""
        self.set_state(bb, BbState.POST_RUN)
        bb.failed = False
        job = slurmctld.find_job(bb.job_id)
        if job is not None:
            job.stage_out = True
            if base(job) != "PENDING":
                job.state_desc = self._in_progress
        self._start("stage_out", lambda: self._stage_out(bb), bb)

    async def _stage_out(self, bb: BbJob) -> None:
        settings, script = self.settings, files.path_of(bb.job_id, "script")
        function = "post_run"
        reply = await self._child(function, bb, script, limit_s=settings.other_timeout)
        async with slurmctld.locked():
            if bb.state is BbState.POST_RUN:
                self.set_state(bb, BbState.STAGING_OUT)
        if reply.ok:
            function = "data_out"
            reply = await self._child(function, bb, script, limit_s=settings.stage_out_timeout)
        if reply.ok and lua_settings().slurm >= "24.05":
            function = "test_data_out"
            reply = await self._polled(function, bb, settings.stage_out_timeout)
        async with slurmctld.locked():
            self._stage_out_over(bb, function, reply)

    def _stage_out_over(self, bb: BbJob, function: str, reply: Reply) -> None:
        job = slurmctld.find_job(bb.job_id)
        if reply.ok:
            if job is not None:
                if job.state_desc == self._in_progress:
                    job.state_desc = ""
                job.stage_out = False
            self.tear_down(bb, hurry=False)
            return
        bb.failed = True
        if job is not None:
            late = lua_settings().slurm >= "24.05"
            job.state_reason = OPERATION
            job.state_desc = self._failure(function, reply, held=late)
            if late:
                job.priority = 0
        if self.settings.teardown_failure:
            self.tear_down(bb, hurry=False)

    @property
    def _in_progress(self) -> str:
        return f"{self._type}: Stage-out in progress"

    # The end of a buffer.

    def tear_down(self, bb: BbJob, *, hurry: bool) -> None:
        """Have a job's buffer taken down, with *hurry* without moving data."""
        self.set_state(bb, BbState.TEARDOWN)
        bb.teardowns += 1
        self._start("teardown", lambda: self._tear_down(bb, hurry=hurry), bb)

    async def _tear_down(self, bb: BbJob, *, hurry: bool) -> None:
        limit_s = self.settings.other_timeout
        reply = Reply(ok=False)
        for number in range(_TRIES):
            if number:
                await sleep(_RETRY_S)
            reply = await self._teardown_call(bb, hurry=hurry, limit_s=limit_s)
            if reply.ok:
                break
            async with slurmctld.locked():
                self._teardown_failed(bb, reply)
        async with slurmctld.locked():
            self._gone(bb)

    async def _teardown_call(self, bb: BbJob, *, hurry: bool, limit_s: float) -> Reply:
        script = files.path_of(bb.job_id, "script")
        arguments: list[object] = [bb.job_id, script, hurry]
        if lua_settings().slurm >= "23.02":
            arguments += [bb.user_id, bb.group_id]
        return await self._calls.in_child(
            "job_teardown",
            *arguments,
            job=slurmctld.find_job(bb.job_id),
            limit_s=limit_s,
            job_id=bb.job_id,
        )

    def _teardown_failed(self, bb: BbJob, reply: Reply) -> None:
        job = slurmctld.find_job(bb.job_id)
        log.error("teardown failed", job=bb.job_id, message=reply.text)
        if job is not None:
            job.state_reason = OPERATION
            job.state_desc = f"{self._type}: teardown: {reply.text}"

    def _gone(self, bb: BbJob) -> None:
        """Enter that a job's buffer is no more, whatever came of its teardown."""
        bb.teardowns -= 1
        bb.failed = False
        self._books.release(bb)
        job = slurmctld.find_job(bb.job_id)
        if job is None:
            self._books.jobs.pop(bb.job_id, None)
            files.remove(bb.job_id)
        else:
            job.stage_out = False
            if base(job) not in ("PENDING", "RUNNING", "SUSPENDED"):
                files.remove(bb.job_id)
        self.set_state(bb, BbState.COMPLETE)
        slurmctld.schedule()


def base(job: JobRecord) -> str:
    """Return a job's state without its flags."""
    return job.job_state.partition("|")[0]
