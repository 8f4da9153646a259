"""What a plugin author imports; the bundled plugins use nothing else.

A plugin is a class with the functions of its guide as methods, named as in the guide, with the
guide's parameters in the guide's order. Parameters through which C gives something back are left
out and returned instead. To fail, raise `SlurmError` or return `SLURM_ERROR`; an int function that
returns nothing has succeeded. A method is a `def`, or an `async def` where it takes simulated time.
"""

from collections.abc import Awaitable
from typing import Any, ClassVar

import attrs

from simctl.kernel.procs import CALLING
from simctl.wire import errno
from simctl.wire.buf import Buf
from simctl.wire.errno import SLURM_ERROR, SLURM_SUCCESS, SlurmError

__all__ = [
    "SLURM_ERROR",
    "SLURM_SUCCESS",
    "Buf",
    "CheckpointPlugin",
    "JobInfo",
    "NodeInfo",
    "PluginProcess",
    "SlurmError",
    "StepdJob",
    "SwitchPlugin",
    "errno",
    "now",
    "process",
    "sleep",
]

JobInfo = Any
"""An opaque record of the plugin's own: a step's credential, or a checkpoint record."""

IntResult = int | None | Awaitable[int | None]
"""What an int function returns: SLURM_SUCCESS or nothing, SLURM_ERROR, or those in an async def."""

CountResult = int | Awaitable[int]
"""What a pack function returns: how many bytes it packed."""

NoResult = None | Awaitable[None]
"""What a function returns that gives nothing back."""

NodeInfo = Any
"""An opaque record of the plugin's own: the switch state of a node."""


@attrs.frozen(kw_only=True)
class PluginProcess:
    """The process that calls the plugin."""

    pid: int
    uid: int
    euid: int
    role: str
    hostname: str
    env: dict[str, str]


@attrs.frozen(kw_only=True)
class StepdJob:
    """What slurmstepd knows of the step it runs: the guide's ``slurmd_job``.

    `step_id` is SLURM_BATCH_SCRIPT for a batch script, `nodeid` the place of this node in the
    step's node list, `node_tasks` the tasks of this node and `ntasks` those of the whole step.
    """

    job_id: int
    step_id: int
    uid: int
    nodeid: int
    ntasks: int
    node_tasks: int
    batch: bool

    def __str__(self) -> str:
        """Name the step as traces do."""
        return f"step {self.job_id}.{'batch' if self.batch else self.step_id}"


def process() -> PluginProcess:
    """Return the process on whose behalf the plugin runs.

    Raises:
        LookupError: Outside a call of the plugin.
    """
    calling = CALLING.get()
    return PluginProcess(
        pid=calling.pid,
        uid=calling.uid,
        euid=calling.euid,
        role=calling.role,
        hostname=calling.host.name,
        env=dict(calling.env),
    )


def now() -> float:
    """Return virtual time in seconds since the start of the run."""
    return CALLING.get().table.kernel.now_us / 1_000_000


async def sleep(seconds: float) -> None:
    """Let virtual time pass; the calling process is blocked, as by a slow C plugin."""
    await CALLING.get().table.kernel.sleep_us(round(seconds * 1_000_000))


class _Plugin:
    """What every plugin has: its identity, and what runs when a process loads and leaves it."""

    __slots__ = ()

    plugin_type: ClassVar[str]
    plugin_name: ClassVar[str] = ""
    plugin_version: ClassVar[int] = 0

    def init(self) -> IntResult:
        """Set up, when a process has loaded the plugin, before any other function."""

    def fini(self) -> NoResult:
        """Clean up, when a process ends, after every other function."""


class SwitchPlugin(_Plugin):
    """Stubs of every function of the switch plugin guide, version 0."""

    __slots__ = ()

    def switch_p_libstate_save(self, dir_name: str) -> IntResult:
        """Save global switch state into a file of *dir_name*."""

    def switch_p_libstate_restore(self, dir_name: str) -> IntResult:
        """Restore global switch state from *dir_name*."""

    def switch_p_no_frag(self) -> bool | Awaitable[bool]:
        """Say whether scheduling is to wait while a job is completing."""
        return False

    def switch_p_clear_node_state(self) -> IntResult:
        """Clear whatever state the switch has on this node."""

    def switch_p_alloc_node_info(self) -> NodeInfo:
        """Return a new record of a node's switch state; None is an empty one."""
        return None

    def switch_p_build_node_info(self, switch_node: NodeInfo) -> IntResult:
        """Fill in the record for this node."""

    def switch_p_pack_node_info(self, switch_node: NodeInfo, buffer: Buf) -> CountResult:
        """Append the record to *buffer*; return the number of bytes."""
        return 0

    def switch_p_unpack_node_info(self, switch_node: NodeInfo, buffer: Buf) -> IntResult:
        """Fill the record in from *buffer*."""

    def switch_p_free_node_info(self, switch_node: NodeInfo) -> NoResult:
        """Release the record."""

    def switch_p_sprintf_node_info(self, switch_node: NodeInfo, size: int) -> str:
        """Return the record as a text of at most *size* bytes."""
        return ""

    def switch_p_alloc_jobinfo(self) -> JobInfo:
        """Return a new credential; None is an empty one."""
        return None

    def switch_p_build_jobinfo(
        self, switch_job: JobInfo, nodelist: str, nprocs: int, cyclic_alloc: int
    ) -> IntResult:
        """Build the credential of a step of *nprocs* tasks on *nodelist*."""

    def switch_p_copy_jobinfo(self, switch_job: JobInfo) -> JobInfo:
        """Return a copy of the credential."""
        return None

    def switch_p_free_jobinfo(self, switch_job: JobInfo) -> NoResult:
        """Release the credential."""

    def switch_p_pack_jobinfo(self, switch_job: JobInfo, buffer: Buf) -> CountResult:
        """Append the credential to *buffer*; return the number of bytes."""
        return 0

    def switch_p_unpack_jobinfo(self, switch_job: JobInfo, buffer: Buf) -> IntResult:
        """Fill the credential in from *buffer*."""

    def switch_p_get_jobinfo(self, switch_job: JobInfo, data_type: int) -> Any:
        """Return data from the credential."""
        raise SlurmError(errno.EINVAL)

    def switch_p_job_step_complete(self, switch_job: JobInfo, nodelist: str) -> IntResult:
        """Note that the step is over on *nodelist*."""

    def switch_p_print_jobinfo(self, fp: Any, switch_job: JobInfo) -> NoResult:
        """Write the credential to the open file *fp*."""

    def switch_p_sprint_jobinfo(self, switch_job: JobInfo, size: int) -> str:
        """Return the credential as a text of at most *size* bytes."""
        return ""

    def switch_p_get_data_jobinfo(self, switch_job: JobInfo, key: int) -> Any:
        """Return data from the credential."""
        raise SlurmError(errno.EINVAL)

    def switch_p_node_init(self) -> IntResult:
        """Set up the node's interconnect, once per slurmd run."""

    def switch_p_node_fini(self) -> IntResult:
        """Take the node's interconnect down, as slurmd exits."""

    def switch_p_job_preinit(self, switch_job: JobInfo) -> IntResult:
        """Prepare in the job manager, as root."""

    def switch_p_job_init(self, switch_job: JobInfo, uid: int) -> IntResult:
        """Set the interconnect up for the step of user *uid*, as root."""

    def switch_p_job_attach(
        self,
        switch_job: JobInfo,
        env: dict[str, str],
        nodeid: int,
        procid: int,
        nnodes: int,
        nprocs: int,
        rank: int,
    ) -> IntResult:
        """Attach a task, inside the task, as the user; *env* may be added to."""

    def switch_p_job_fini(self, switch_job: JobInfo) -> IntResult:
        """Clean up after the tasks; in model guide as the user."""

    def switch_p_job_postfini(
        self, switch_job: JobInfo, pgid: int, job_id: int, step_id: int
    ) -> IntResult:
        """Clean up as root in the job manager."""

    def switch_p_get_errno(self) -> int:
        """Return the number of this process's last failure; SLURM_SUCCESS before any."""
        return CALLING.get().errno

    def switch_p_strerror(self, errnum: int) -> str | None:
        """Return what *errnum* means, or None if this plugin does not know it."""
        return None


class CheckpointPlugin(_Plugin):
    """Stubs of every function of the checkpoint plugin guide."""

    __slots__ = ()

    def slurm_ckpt_alloc_job(self) -> JobInfo:
        """Return a new checkpoint record; None is an empty one."""
        return None

    def slurm_ckpt_free_job(self, jobinfo: JobInfo) -> IntResult:
        """Release the record."""

    def slurm_ckpt_pack_job(
        self, jobinfo: JobInfo, buffer: Buf, protocol_version: int
    ) -> IntResult:
        """Append the record to *buffer*."""

    def slurm_ckpt_unpack_job(
        self, jobinfo: JobInfo, buffer: Buf, protocol_version: int
    ) -> IntResult:
        """Fill the record in from *buffer*."""

    def slurm_ckpt_copy_job(self, jobinfo: JobInfo) -> JobInfo:
        """Return a copy of the record."""
        return None

    def slurm_ckpt_op(
        self, job_id: int, step_id: int, step_ptr: Any, op: int, data: int, image_dir: str
    ) -> Any:
        """Perform a checkpoint operation."""
        raise SlurmError(errno.ESLURM_NOT_SUPPORTED)

    def slurm_ckpt_comp(
        self, step_ptr: Any, event_time: int, error_code: int, error_msg: str
    ) -> IntResult:
        """Note that a checkpoint operation is complete."""
        raise SlurmError(errno.ESLURM_NOT_SUPPORTED)

    def slurm_ckpt_stepd_prefork(self, slurmd_job: StepdJob) -> IntResult:
        """Prepare before the tasks are forked."""

    def slurm_ckpt_signal_tasks(self, slurmd_job: StepdJob, image_dir: str) -> IntResult:
        """Forward a checkpoint request to the tasks."""
        raise SlurmError(errno.ESLURM_NOT_SUPPORTED)

    def slurm_ckpt_restart_task(self, slurmd_job: StepdJob, image_dir: str, gtid: int) -> IntResult:
        """Restart task *gtid* from an image."""
        raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
