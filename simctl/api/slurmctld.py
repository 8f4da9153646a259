"""What slurmctld offers to the plugins that run in it: its jobs, its locks, its scripts."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import attrs

from simctl.api.surroundings import OutsideCallError, caller
from simctl.kernel.procs import exit_code_of, signal_of


@attrs.frozen(kw_only=True)
class ScriptResult:
    """How a script ended: its wait status, and what it wrote.

    `timed_out` tells that it was killed because its time was up.
    """

    status: int = 0
    output: str = ""
    error: str = ""
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Return whether it exited with 0."""
        return self.status == 0

    @property
    def exit_code(self) -> int:
        """Return its exit code, 0 where a signal ended it."""
        return exit_code_of(self.status)

    @property
    def signal(self) -> int:
        """Return the number of the signal that ended it, or 0."""
        return signal_of(self.status)


class Services(Protocol):
    """What `slurmctld` of `simctl.plugin` stands for in a run."""

    @property
    def model(self) -> str:
        """Return the model that runs."""

    def time(self) -> int:
        """Return what clocks on the cluster show."""

    def jobs(self) -> list[Any]:
        """Return the records of all jobs."""

    def find_job(self, job_id: int) -> Any | None:
        """Return the record of a job."""

    def job_fields(self, job_id: int) -> dict[str, Any]:
        """Return the fields of a job by Slurm's names."""

    def partitions(self, uid: int) -> dict[str, dict[str, Any]]:
        """Return the partitions that a user may use."""

    def reservations(self) -> dict[str, dict[str, Any]]:
        """Return the reservations."""

    def default_account(self, uid: int) -> str:
        """Return the usual account of a user."""

    def candidates(self) -> list[Any]:
        """Return the jobs that may stage in, soonest first."""

    def schedule(self) -> None:
        """Have the scheduler look at the queue."""

    def locked(self) -> AbstractAsyncContextManager[None]:
        """Return the job write lock."""

    def hold_launch(self, job: Any) -> None:
        """Keep a job from being launched."""

    def release_launch(self, job: Any) -> None:
        """Let a job be launched."""

    async def requeue(self, job: Any, text: str, exit_status: int) -> None:
        """Send a job back into the queue."""

    def find_step(self, job_id: int, step_id: int) -> Any | None:
        """Return the record of a step."""

    async def signal_step(self, job_id: int, step_id: int, signal: int) -> int:
        """Signal a step."""

    def srun_exec(self, job_id: int, step_id: int, argv: tuple[str, ...]) -> int:
        """Have the srun of a step run a program."""

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

    def has_script(self, path: str) -> bool:
        """Return whether there is such a script."""

    def start_script(
        self, path: str, argv: tuple[str, ...], *, name: str, job_id: int, env: Mapping[str, str]
    ) -> None:
        """Start a script and wait for nothing."""

    def burst_buffer_conf(self, plugin_name: str) -> Mapping[str, Any]:
        """Return the values of burst_buffer.conf."""

    def note_buffer(self, name: str, before: str | None, after: str) -> None:
        """Record a change of a buffer's state."""

    def uid_of(self, user: str) -> int | None:
        """Return the uid of a user."""

    def user_name(self, uid: int) -> str:
        """Return the name of a user."""

    def is_operator(self, uid: int) -> bool:
        """Return whether a user may do what operators may."""

    def tres_id(self, name: str) -> int:
        """Return the number of a TRES."""


def _services(what: str) -> Services:
    process = caller(f"slurmctld.{what}")
    services: Services | None = getattr(process.table, "slurmctld", None)
    if services is None or process.role != "slurmctld":
        raise OutsideCallError(
            f"slurmctld.{what} (asked for by {process.daemon}, which is not slurmctld)"
        )
    return services


class Slurmctld:
    """slurmctld as a plugin finds it that runs in it.

    Records of jobs are slurmctld's own, live: what a plugin sets in one holds at once. Inside a
    plugin's function slurmctld holds its locks; a thread of the plugin's takes them with
    ``async with slurmctld.locked()`` before it changes a job.
    """

    @property
    def model(self) -> str:
        """Return ``guide`` or ``modern``: what real Slurm does otherwise is one line apart."""
        return _services("model").model

    def time(self) -> int:
        """Return what clocks on the cluster show, in seconds since the epoch."""
        return _services("time()").time()

    def jobs(self) -> list[Any]:
        """Return the record of every job that slurmctld has, by job id."""
        return _services("jobs()").jobs()

    def find_job(self, job_id: int) -> Any | None:
        """Return the record of a job; None if there is none, or not any more."""
        return _services("find_job()").find_job(job_id)

    def job_fields(self, job_id: int) -> dict[str, Any]:
        """Return all that is known of a job, by the names that Slurm's own records have.

        Numbers that are not set are NO_VAL; texts that are not set are left out. It is a copy.
        """
        return _services("job_fields()").job_fields(job_id)

    def partitions(self, uid: int) -> dict[str, dict[str, Any]]:
        """Return the partitions that a user may use, by name, each by Slurm's names of its fields.

        All but those that are for root alone, unless root asks.
        """
        return _services("partitions()").partitions(uid)

    def reservations(self) -> dict[str, dict[str, Any]]:
        """Return the reservations, by name, each by Slurm's names of its fields."""
        return _services("reservations()").reservations()

    def default_account(self, uid: int) -> str:
        """Return the usual account of a user; nothing where there is none."""
        return _services("default_account()").default_account(uid)

    def candidates(self) -> list[Any]:
        """Return the pending jobs with a burst buffer that are expected to start within 10 hours.

        The one that is expected to start soonest comes first; arrays that have yet to be split are
        left out. This is the list that real Slurm hands to `bb_p_job_try_stage_in`.
        """
        return _services("candidates()").candidates()

    def schedule(self) -> None:
        """Have the scheduler look at the queue soon, because a job may start now."""
        _services("schedule()").schedule()

    def locked(self) -> AbstractAsyncContextManager[None]:
        """Return slurmctld's job write lock, for a thread of the plugin's: `async with` it.

        Raises:
            OutsideCallError: When entered inside a plugin's function, which has the lock already.
        """
        return _services("locked()").locked()

    def hold_launch(self, job: Any) -> None:
        """Keep a job CONFIGURING that is about to start or has nodes, as often as this is called.

        Real Slurm counts this in the job's ``prolog_running``.
        """
        _services("hold_launch()").hold_launch(job)

    def release_launch(self, job: Any) -> None:
        """Take back one `hold_launch`; the last lets the job be launched."""
        _services("release_launch()").release_launch(job)

    async def requeue(self, job: Any, text: str = "", *, exit_status: int = 0) -> None:
        """Send a job that has nodes back into the queue; what of it runs is ended.

        It is no restart that counts, unless the job has run. *text* is shown as its reason,
        *exit_status* (a wait status) as its exit code. A job whose checkpoint and requeue was asked
        for (`CheckOp.REQUEUE`) goes on from the images of that the next time it is launched.
        """
        await _services("requeue()").requeue(job, text, exit_status)

    def find_step(self, job_id: int, step_id: int) -> Any | None:
        """Return the record of a step; None if there is none, or not any more."""
        return _services("find_step()").find_step(job_id, step_id)

    async def signal_step(self, job_id: int, step_id: int, signal: int) -> int:
        """Signal the tasks of a step on all its nodes (REQUEST_SIGNAL_TASKS); wait for nothing.

        SLURM_BATCH_SCRIPT as *step_id* stands for a batch script and what it has started, and for
        all steps of a job without one.

        Returns:
            0, or an error's number where there is no such step.
        """
        return await _services("signal_step()").signal_step(job_id, step_id, signal)

    def srun_exec(self, job_id: int, step_id: int, *argv: str) -> int:
        """Have the srun that runs a step run a program beside it (SRUN_EXEC); wait for nothing.

        Returns:
            0, or an error's number where there is no such step or no srun any more.
        """
        return _services("srun_exec()").srun_exec(job_id, step_id, argv)

    async def run_script(
        self,
        path: str,
        *argv: str,
        name: str = "",
        job_id: int = 0,
        timeout: float | None = None,  # noqa: ASYNC109 - virtual time
        env: Mapping[str, str] | None = None,
        uid: int | None = None,
    ) -> ScriptResult:
        """Run a script, as SlurmUser, in a process of its own, and wait for its end.

        The caller is blocked: inside a plugin's function that is slurmctld. If the thread that
        waits is cancelled, the script is killed.

        Args:
            path: The executable: described under `programs:` of the scenario, or in `files:`, or
                the simulated appliance's, or with ``options: {real_scripts: true}`` a real one.
            argv: Its arguments.
            name: The name of the script's event in the trace; the file's name if left out.
            job_id: The job it is about, for the trace.
            timeout: After how many seconds it is killed.
            env: Its environment.
            uid: As whom it runs; as SlurmUser if left out.
        """
        return await _services("run_script()").run_script(
            path,
            argv,
            name=name or path.rpartition("/")[2],
            job_id=job_id,
            timeout=timeout,
            env=env or {},
            uid=uid,
        )

    def has_script(self, path: str) -> bool:
        """Return whether there is something to run at a path on slurmctld's host."""
        return _services("has_script()").has_script(path)

    def start_script(
        self,
        path: str,
        *argv: str,
        name: str = "",
        job_id: int = 0,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start a script as SlurmUser and wait for nothing: it outlives its caller."""
        _services("start_script()").start_script(
            path, argv, name=name or path.rpartition("/")[2], job_id=job_id, env=env or {}
        )

    def burst_buffer_conf(self, plugin_name: str) -> Mapping[str, Any]:
        """Read burst_buffer.conf, or burst_buffer_NAME.conf where there is none.

        Args:
            plugin_name: The plugin's own name, such as ``generic``.

        Returns:
            The values that stand there, by Slurm's key names: numbers, lists of words, and for
            Granularity a pair of a number and its unit (``bytes`` or ``nodes``).
        """
        return _services("burst_buffer_conf()").burst_buffer_conf(plugin_name)

    def note_buffer(self, name: str, before: str | None, after: str) -> None:
        """Record a change of the state of a buffer that is no job's, as a `bb_state` event."""
        _services("note_buffer()").note_buffer(name, before, after)

    def uid_of(self, user: str) -> int | None:
        """Return the uid of a user of that name; None if there is none."""
        return _services("uid_of()").uid_of(user)

    def user_name(self, uid: int) -> str:
        """Return the name of a user, or the number where no user has it."""
        return _services("user_name()").user_name(uid)

    def is_operator(self, uid: int) -> bool:
        """Return whether a user is root, SlurmUser, or an operator or administrator."""
        return _services("is_operator()").is_operator(uid)

    def tres_id(self, name: str) -> int:
        """Return the number of a trackable resource such as ``bb/generic``; 0 if it is none."""
        return _services("tres_id()").tres_id(name)


__all__ = ["ScriptResult", "Services", "Slurmctld"]
