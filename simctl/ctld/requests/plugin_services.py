"""What slurmctld offers to the plugins in it; `simctl.plugin.slurmctld` leads here."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final

import attrs

from simctl.api.slurmctld import ScriptResult
from simctl.api.surroundings import OutsideCallError
from simctl.ctld.controller import Controller
from simctl.ctld.jobs import asking, completion, prologs, staging
from simctl.ctld.jobs.signals import signal_one
from simctl.ctld.port.burst_buffers import FIRST_TRES
from simctl.ctld.reporting import bb_scripts
from simctl.ctld.reporting.job_fields import job_fields
from simctl.ctld.reporting.job_view import LiveJob, live
from simctl.ctld.reporting.part_fields import part_fields, reservation_fields
from simctl.ctld.reporting.step_view import LiveStep, live_step
from simctl.ctld.state.records import JobRecord, StepRecord
from simctl.kernel.fabric import Envelope
from simctl.kernel.threads import Thread
from simctl.wire import burst_buffer_conf
from simctl.wire.errno import (
    ESLURM_INVALID_JOB_ID,
    SLURM_COMMUNICATIONS_CONNECTION_ERROR,
    SLURM_SUCCESS,
)
from simctl.wire.ids import SECOND
from simctl.wire.messages import SrunExec
from simctl.wire.site_files import BURST_BUFFER, read_site_file
from simctl.wire.states import PENDING, PENDING_CONFIGURING, JobBase, JobFlag

_KNOWN_TRES: Final = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")


@attrs.define(eq=False)
class LockClaim:
    """A plugin's thread that waits for the job write lock, or has it."""

    thread: Thread
    holder: Thread | None = None
    """slurmctld's thread, which waits meanwhile."""

    over: bool = False


class _JobWriteLock(AbstractAsyncContextManager[None]):
    """slurmctld does nothing else while a plugin's thread is inside."""

    def __init__(self, ctld: Controller) -> None:
        self._ctld = ctld
        self._claim: LockClaim | None = None

    async def __aenter__(self) -> None:
        kernel = self._ctld.site.kernel
        thread = kernel.current
        if thread is None or not thread.of_plugin:
            raise OutsideCallError(
                "slurmctld.locked() (for a plugin's threads; its functions have the lock)"
            )
        if self._ctld.lock_holder is thread:
            raise RuntimeError(
                "slurmctld.locked(): this thread has the lock already, and would wait for itself"
            )
        claim = self._claim = LockClaim(thread)
        self._ctld.mailbox.post(claim)
        try:
            with kernel.counting():
                await kernel.park("slurmctld's job write lock")
        except BaseException:
            self._give_back(claim)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        claim = self._claim
        assert claim is not None
        self._give_back(claim)
        asking.stirred(self._ctld)
        if claim.holder is not None:
            self._ctld.site.kernel.wake(claim.holder)

    def _give_back(self, claim: LockClaim) -> None:
        claim.over = True
        if self._ctld.lock_holder is claim.thread:
            self._ctld.lock_holder = None


async def lock_claimed(ctld: Controller, _: Envelope, claim: LockClaim) -> None:
    """Hand the lock to a plugin's thread, and wait until it is back."""
    if claim.over:
        return
    kernel = ctld.site.kernel
    claim.holder = kernel.current
    kernel.wake(claim.thread)
    ctld.lock_holder = claim.thread
    while not claim.over:
        await kernel.park("a plugin's thread that has its job write lock")


class PluginServices:
    """The functions of `simctl.plugin.slurmctld`, for one slurmctld."""

    def __init__(self, ctld: Controller) -> None:
        self._ctld = ctld
        self._failures = bb_scripts.Failures()

    @property
    def model(self) -> str:
        """Return ``guide`` or ``modern``."""
        return self._ctld.site.model

    def time(self) -> int:
        """Return what clocks on the cluster show."""
        return self._ctld.site.start_time_s + self._ctld.now_us // SECOND

    def jobs(self) -> list[LiveJob]:
        """Return the records of all jobs, by job id."""
        return [live(self._ctld, job) for _, job in sorted(self._ctld.jobs.items())]

    def find_job(self, job_id: int) -> LiveJob | None:
        """Return the record of a job."""
        job = self._ctld.jobs.get(job_id)
        return live(self._ctld, job) if job is not None else None

    def job_fields(self, job_id: int) -> dict[str, Any]:
        """Return the fields of a job by Slurm's names; none of one that is not there."""
        job = self._ctld.jobs.get(job_id)
        return job_fields(self._ctld, job) if job is not None else {}

    def partitions(self, uid: int) -> dict[str, dict[str, Any]]:
        """Return the partitions that a user may use, by Slurm's names of their fields."""
        return {
            name: part_fields(self._ctld, part)
            for name, part in self._ctld.partitions.items()
            if not part.root_only or uid == 0
        }

    def reservations(self) -> dict[str, dict[str, Any]]:
        """Return the reservations, by Slurm's names of their fields."""
        found = self._ctld.reservations
        return {name: reservation_fields(self._ctld, each) for name, each in found.items()}

    def default_account(self, uid: int) -> str:
        """Return the usual account of a user."""
        users = self._ctld.site.users.values()
        return next((user.account for user in users if user.uid == uid), "")

    def candidates(self) -> list[LiveJob]:
        """Return the jobs that may stage in, soonest first."""
        return [live(self._ctld, job) for job in staging.candidates(self._ctld)]

    def schedule(self) -> None:
        """Have the scheduler look at the queue."""
        asking.stirred(self._ctld)
        self._ctld.request_pass()

    def locked(self) -> AbstractAsyncContextManager[None]:
        """Return the job write lock."""
        return _JobWriteLock(self._ctld)

    def hold_launch(self, view: Any) -> None:
        """Keep a job from being launched; one that is about to start is CONFIGURING from now on."""
        job = self._record(view)
        job.hold_launch()
        if job.state == PENDING:
            self._ctld.set_job(job, PENDING_CONFIGURING)

    def release_launch(self, view: Any) -> None:
        """Let a job be launched that nothing else holds back."""
        job = self._record(view)
        if not job.prolog_running:
            return
        job.release_launch()
        prologs.launch_if_ready(self._ctld, job)

    async def requeue(self, view: Any, text: str, exit_status: int) -> None:
        """Send a job that has nodes, and was never launched, back into the queue."""
        job = self._record(view)
        if job.state.base is not JobBase.RUNNING:
            return
        if job.ckpt_requeue_dir:
            # It was asked for: the script goes on from the images.
            job.restart_from(job.ckpt_requeue_dir)
            await completion.requeue(self._ctld, job, preempted=job.ckpt_preempted)
            return
        unlaunched = job.state.configuring
        if unlaunched and self._ctld.site.model == "modern":
            # Real Slurm takes the flag off before it looks at how pre_run ended.
            self._ctld.set_job(job, job.state.lacking(JobFlag.CONFIGURING))
        job.fail_pre_run(text, exit_status)
        if not job.batch or not job.requeue:
            await completion.end_job(self._ctld, job, JobBase.FAILED, text)
            return
        await completion.requeue(self._ctld, job, unlaunched=unlaunched)
        job.plugin_describes(text)

    # Steps.

    def find_step(self, job_id: int, step_id: int) -> LiveStep | None:
        """Return the record of a step."""
        step = self._step(job_id, step_id)
        return live_step(self._ctld, step) if step is not None else None

    def _step(self, job_id: int, step_id: int) -> StepRecord | None:
        job = self._ctld.jobs.get(job_id)
        return job.steps.get(step_id) if job is not None else None

    async def signal_step(self, job_id: int, step_id: int, signal: int) -> int:
        """Signal the tasks of a step, or a batch script with what it has started."""
        job = self._ctld.jobs.get(job_id)
        if job is None:
            return ESLURM_INVALID_JOB_ID
        return signal_one(self._ctld, job, step_id, signal)

    def srun_exec(self, job_id: int, step_id: int, argv: tuple[str, ...]) -> int:
        """Have the srun of a step run a program."""
        step = self._step(job_id, step_id)
        if step is None:
            return ESLURM_INVALID_JOB_ID
        message = SrunExec(job_id=job_id, step_id=step_id, argv=argv)
        if step.srun is None or not self._ctld.send(step.srun, message):
            return SLURM_COMMUNICATIONS_CONNECTION_ERROR
        return SLURM_SUCCESS

    @staticmethod
    def _record(view: Any) -> JobRecord:
        if not isinstance(view, LiveJob):
            raise TypeError(f"expected a job record of slurmctld's, got {view!r}")
        return view._job

    async def run_script(
        self,
        path: str,
        argv: tuple[str, ...],
        *,
        name: str,
        job_id: int,
        timeout: float | None,  # noqa: ASYNC109 - virtual time
        env: Mapping[str, str],
        uid: int | None,
    ) -> ScriptResult:
        """Run a script to its end."""
        ctld = self._ctld
        return await bb_scripts.run_script(
            ctld.site,
            ctld.process,
            path,
            argv,
            name=name,
            job_id=job_id,
            timeout=timeout,
            env=env,
            failures=self._failures,
            uid=uid,
        )

    def has_script(self, path: str) -> bool:
        """Return whether there is something to run at a path."""
        return bb_scripts.has_script(self._ctld.site, path, self._ctld.process.host.name)

    def start_script(
        self, path: str, argv: tuple[str, ...], *, name: str, job_id: int, env: Mapping[str, str]
    ) -> None:
        """Start a script and wait for nothing."""
        ctld = self._ctld
        bb_scripts.start_script(
            ctld.site, ctld.process, path, argv, name=name, job_id=job_id, env=env
        )

    def burst_buffer_conf(self, plugin_name: str) -> Mapping[str, Any]:
        """Return the values of burst_buffer.conf, or of the plugin's own file."""
        for name in ("", plugin_name):
            path = f"{burst_buffer_conf.FOLDER}/{burst_buffer_conf.file_name(name)}"
            text = self._file(path)
            if text is not None:
                found = read_site_file(BURST_BUFFER, text, path, self._other_file)
                for mistake in found.mistakes:
                    args = {"level": "error", "text": str(mistake)}
                    self._ctld.site.trace.note("log", "conf", self._ctld.process, args=args)
                return found.values
        return {}

    def _file(self, path: str) -> str | None:
        return self._ctld.site.disk.read(path, host=self._ctld.process.host.name)

    def _other_file(self, path: str) -> str:
        text = self._file(path)
        if text is None:
            raise FileNotFoundError(path)
        return text

    def note_buffer(self, name: str, before: str | None, after: str) -> None:
        """Record a change of the state of a buffer that is no job's."""
        ctld = self._ctld
        args = {"from": before, "to": after, "reason": "None", "buffer": name}
        ctld.process.cause = ctld.site.trace.note("state", "bb_state", ctld.process, args=args)

    def uid_of(self, user: str) -> int | None:
        """Return the uid of a user."""
        found = self._ctld.site.users.get(user)
        if found is not None:
            return found.uid
        return int(user) if user.isdecimal() else None

    def user_name(self, uid: int) -> str:
        """Return the name of a user."""
        return self._ctld.site.user_name(uid)

    def is_operator(self, uid: int) -> bool:
        """Return whether a user may do what operators may."""
        return self._ctld.is_operator(uid)

    def tres_id(self, name: str) -> int:
        """Return the number of a TRES: Slurm's own first, then the burst buffers in their order."""
        bb = self._ctld.bb
        if name in _KNOWN_TRES:
            return _KNOWN_TRES.index(name) + 1
        names = bb.tres_names if bb is not None else ()
        return FIRST_TRES + names.index(name) if name in names else 0
