"""What a plugin author imports; the bundled plugins use nothing else.

A plugin is a class with the functions of its guide as methods, named as in the guide, with the
guide's parameters in the guide's order. Parameters through which C gives something back are left
out and returned instead. To fail, raise `SlurmError` or return `SLURM_ERROR`; an int function that
returns nothing has succeeded. A method is a `def`, or an `async def` where it takes simulated time.

Around a call there are `process()`, who calls; `now()` and `await sleep(seconds)`, virtual time;
`start(coroutine_function)`, a thread of the plugin's own; `disk()`, the host's files; `conf`, the
cluster's slurm.conf; `log`, which writes into the trace; `rpc`, libslurm's functions;
`slurmctld`, what slurmctld offers to a plugin that runs in it, and `stepd`, what slurmstepd does.
`hostlist(text)` gives the names that a text such as ``n[1-4]`` stands for.
"""

import enum
from collections.abc import Awaitable
from typing import Any, ClassVar, Final, TypeAlias

import attrs

from simctl.api.reach import LuaSettings
from simctl.api.requests import Rpc
from simctl.api.scripts import Traced, complain, lua_settings, run_child, run_shell, say
from simctl.api.slurmctld import ScriptResult, Slurmctld
from simctl.api.stepd import Stepd, StepdTask
from simctl.api.surroundings import (
    Conf,
    Event,
    Log,
    OutsideCallError,
    PluginProcess,
    PluginThread,
    Recurring,
    disk,
    every,
    now,
    process,
    sleep,
    start,
)
from simctl.kernel.disk import DiskView, Stat
from simctl.kernel.procs import CALLING
from simctl.wire import errno
from simctl.wire.buf import Buf
from simctl.wire.burst_buffers import (
    BurstBufferAlloc,
    BurstBufferInfo,
    BurstBufferPool,
    BurstBufferUse,
)
from simctl.wire.cli_options import CliOptions
from simctl.wire.errno import SLURM_ERROR, SLURM_SUCCESS, SlurmError
from simctl.wire.hostlist import compress
from simctl.wire.hostlist import expand as hostlist
from simctl.wire.ids import INFINITE, NO_VAL, SLURM_BATCH_SCRIPT
from simctl.wire.records import DraftJob, JobDesc

__all__ = [
    "INFINITE",
    "NO_VAL",
    "SLURM_BATCH_SCRIPT",
    "SLURM_ERROR",
    "SLURM_SUCCESS",
    "Buf",
    "BurstBufferAlloc",
    "BurstBufferInfo",
    "BurstBufferPlugin",
    "BurstBufferPool",
    "BurstBufferUse",
    "CheckOp",
    "CheckpointPlugin",
    "CheckpointStatus",
    "CliFilterPlugin",
    "CliOptions",
    "DiskView",
    "DraftJob",
    "Event",
    "JobDesc",
    "JobInfo",
    "JobRecord",
    "JobSubmitPlugin",
    "LuaSettings",
    "NodeInfo",
    "OutsideCallError",
    "PluginProcess",
    "PluginThread",
    "Recurring",
    "ScriptResult",
    "SlurmError",
    "Stat",
    "StepRecord",
    "StepdJob",
    "StepdTask",
    "SwitchPlugin",
    "Traced",
    "complain",
    "compress",
    "conf",
    "disk",
    "errno",
    "every",
    "hostlist",
    "log",
    "lua_settings",
    "now",
    "process",
    "rpc",
    "run_child",
    "run_shell",
    "say",
    "sleep",
    "slurmctld",
    "start",
    "stepd",
]

conf: Final = Conf()
log: Final = Log()
rpc: Final = Rpc()
slurmctld: Final = Slurmctld()
stepd: Final = Stepd()

JobInfo = Any
"""An opaque record of the plugin's own: a step's credential, or a checkpoint record."""

NodeInfo = Any
"""An opaque record of the plugin's own: the switch state of a node."""

IntResult = int | None | Awaitable[int | None]
"""What an int function returns: SLURM_SUCCESS or nothing, SLURM_ERROR, or those in an async def."""

CountResult = int | Awaitable[int]
"""What a pack function returns: how many bytes it packed."""

NumberResult = int | Awaitable[int]
"""What a function returns whose result is a number: 1, 0 or -1, a size, or a time."""

TextResult = str | None | Awaitable[str | None]
"""What a function returns that makes a text; None where there is none."""

NoResult = None | Awaitable[None]
"""What a function returns that gives nothing back."""

StatusResult: TypeAlias = "CheckpointStatus | int | None | Awaitable[CheckpointStatus | int | None]"
"""What slurm_ckpt_op returns: a status, or nothing for plain success."""


class CheckOp(enum.IntEnum):
    """What `slurm_ckpt_op` may be asked for, numbered as in Slurm."""

    ABLE = 0
    DISABLE = 1
    ENABLE = 2
    CREATE = 3
    VACATE = 4
    RESTART = 5
    ERROR = 6
    REQUEUE = 7


@attrs.frozen(kw_only=True)
class CheckpointStatus:
    """What `slurm_ckpt_op` gives back besides success: C's three output arguments.

    `event_time` is in seconds since the epoch, 0 where there was no checkpoint.
    """

    event_time: int = 0
    error_code: int = 0
    error_msg: str = ""


@attrs.define(kw_only=True, eq=False)
class StepRecord:
    """A step as slurmctld keeps it: the guide's ``step_ptr``.

    `check_job` is the plugin's own record; `start_time` is in seconds since the epoch.
    """

    job_id: int
    step_id: int
    name: str = ""
    user_id: int = 0
    nodes: str = ""
    num_tasks: int = 1
    start_time: int = 0
    ckpt_dir: str = ""
    ckpt_interval: int = 0
    check_job: JobInfo = None

    def __str__(self) -> str:
        """Name the step as traces do."""
        return f"step {self.job_id}.{self.step_id}"


@attrs.define(kw_only=True, eq=False)
class JobRecord:
    """A job as slurmctld keeps it: the guide's ``job_ptr``.

    Times are in seconds since the epoch, 0 where they are not known yet; `start_time` of a pending
    job is when it is expected to start, `end_time` of one that runs when its time limit ends it.
    `burst_buffer` is what the job asked for; `state_desc` is shown as its reason in place of
    `state_reason`.

    In slurmctld a plugin may set `priority` (0 holds the job), `state_reason`, `state_desc`,
    `system_comment`, `admin_comment`, `begin_time`, `burst_buffer`, `burst_buffer_state` (a name
    such as ``STAGING_IN``; a change of it is a `bb_state` event), `stage_out` (the flag STAGE_OUT),
    in `env_sup` variables for the job's environment, and `restart_dir`, where the images are that
    its script is launched from the next time.
    """

    job_id: int
    user_id: int = 0
    group_id: int = 0
    name: str = ""
    account: str = ""
    partition: str = ""
    job_state: str = "PENDING"
    state_reason: str = "None"
    state_desc: str = ""
    priority: int = 1
    nodes: str = ""
    min_nodes: int = 1
    num_tasks: int = 1
    time_limit_min: int = INFINITE
    submit_time: int = 0
    start_time: int = 0
    end_time: int = 0
    restart_cnt: int = 0
    work_dir: str = "/"
    script: str = ""
    burst_buffer: str = ""
    burst_buffer_state: str = ""
    stage_out: bool = False
    system_comment: str = ""
    admin_comment: str = ""
    begin_time: int = 0
    env_sup: dict[str, str] = attrs.field(factory=dict)
    max_nodes: int = NO_VAL
    batch: bool = True
    array_job_id: int = 0
    """Of a task of an array, the id of the array."""

    array_task_id: int = NO_VAL
    array_master: bool = False
    """Whether it stands for the tasks of an array that have yet to be split off."""

    exit_code: int = 0
    check_job: JobInfo = None
    ckpt_dir: str = ""
    ckpt_interval: int = 0
    """In minutes, 0 for a job that is not checkpointed by itself."""

    restart_dir: str = ""

    def __str__(self) -> str:
        """Name the job as traces do."""
        return f"job {self.job_id}"


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

    def switch_p_sprintf_node_info(self, switch_node: NodeInfo, size: int) -> TextResult:
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

    def switch_p_sprint_jobinfo(self, switch_job: JobInfo, size: int) -> TextResult:
        """Return the credential as a text of at most *size* bytes."""
        return ""

    def switch_p_get_data_jobinfo(self, switch_job: JobInfo, key: int) -> Any:
        """Return data from the credential: the same as get_jobinfo does."""
        return self.switch_p_get_jobinfo(switch_job, key)

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

    def switch_p_get_errno(self) -> NumberResult:
        """Return the number of this process's last failure; SLURM_SUCCESS before any."""
        return CALLING.get().errno

    def switch_p_strerror(self, errnum: int) -> TextResult:
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
        self,
        job_id: int,
        step_id: int,
        step_ptr: StepRecord | None,
        op: int,
        data: int,
        image_dir: str,
    ) -> StatusResult:
        """Perform the operation *op*, a `CheckOp`; *step_ptr* is None for a batch script."""
        raise SlurmError(errno.ESLURM_NOT_SUPPORTED)

    def slurm_ckpt_comp(
        self, step_ptr: StepRecord | None, event_time: int, error_code: int, error_msg: str
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


class BurstBufferPlugin(_Plugin):
    """Stubs of every function of the burst buffer plugin guide.

    Their int functions return a Slurm errno: 0 or nothing for success, else an error's number, or
    raise SlurmError. No run calls them yet; `simctl plugins check` does.
    """

    __slots__ = ()

    def bb_p_load_state(self, init_config: bool) -> IntResult:
        """Load the state of the burst buffer; *init_config* while slurmctld starts."""

    def bb_p_state_pack(self, uid: int, buffer: Buf, protocol_version: int) -> IntResult:
        """Append what user *uid* may see of the state to *buffer*."""

    def bb_p_reconfig(self) -> IntResult:
        """Read the configuration file again."""

    def bb_p_get_system_size(self, name: str | None) -> NumberResult:
        """Return the size of the burst buffer in MB."""
        return 0

    def bb_p_job_validate(self, job_desc: JobDesc, submit_uid: int) -> IntResult:
        """Check what a submission asks for, before it has a job id."""

    def bb_p_job_validate2(self, job_ptr: JobRecord) -> IntResult:
        """Check a new job's request; the text of a SlurmError reaches the person who submits."""

    def bb_p_job_set_tres_cnt(
        self,
        job_ptr: JobRecord,
        tres_cnt: dict[str, int],
        locked: bool,
    ) -> NoResult:
        """Enter into *tres_cnt*, by TRES name, how many MB of burst buffer the job takes."""

    def bb_p_job_get_est_start(self, job_ptr: JobRecord) -> NumberResult:
        """Return when the job could start at the earliest, in seconds since the epoch."""
        return 0

    def bb_p_job_try_stage_in(self) -> IntResult:
        """Give burst buffers to the jobs that are expected to start soonest."""

    def bb_p_job_test_stage_in(
        self,
        job_ptr: JobRecord,
        test_only: bool,
    ) -> NumberResult:
        """Return 1 if stage-in is complete, 0 while it is under way, else -1."""
        return 1

    def bb_p_job_begin(self, job_ptr: JobRecord) -> IntResult:
        """Claim the burst buffer for a job that is about to run."""

    def bb_p_job_revoke_alloc(self, job_ptr: JobRecord) -> IntResult:
        """Take back what begin did, where the job could not be given its nodes after all."""

    def bb_p_job_start_stage_out(self, job_ptr: JobRecord) -> IntResult:
        """Start the stage-out of a job that has ended."""

    def bb_p_job_test_post_run(self, job_ptr: JobRecord) -> NumberResult:
        """Return 1 if the post-run operation is complete, 0 while it is under way, else -1."""
        return 1

    def bb_p_job_test_stage_out(self, job_ptr: JobRecord) -> NumberResult:
        """Return 1 if stage-out is complete, 0 while it is under way, else -1."""
        return 1

    def bb_p_job_cancel(self, job_ptr: JobRecord) -> IntResult:
        """End any staging of the job and give its space back."""

    def bb_p_xlate_bb_2_tres_str(self, burst_buffer: str) -> TextResult:
        """Return the TRES text of a burst buffer text; None if it has none."""
        return None


class CliFilterPlugin(_Plugin):
    """Stubs of the functions of cli_filter plugins, which look at options of sbatch, salloc, srun.

    They run in the command, as its user. What they set in *options* counts: ``options["account"] =
    "physics"``. An error's number, or a SlurmError, ends the command; `say` prints a line.
    """

    __slots__ = ()

    def setup_defaults(self, options: CliOptions, early: bool) -> IntResult:
        """Set options before those of the script, the environment and the command line."""

    def pre_submit(self, options: CliOptions, offset: int) -> IntResult:
        """Look at all options, and change them or end the command."""

    def post_submit(self, offset: int, job_id: int, step_id: int) -> NoResult:
        """Learn the number of the job, or of srun the step; *step_id* of a job is NO_VAL."""


class JobSubmitPlugin(_Plugin):
    """Stubs of both functions of job_submit plugins, by which a site rules over submissions.

    What they set in *job_desc* counts: its fields are those of `JobDesc`, to be written. To refuse,
    they return an error's number or raise SlurmError, whose text reaches the person who submits;
    `job_desc.tell(text)` does as well, also where the job is taken in.
    """

    __slots__ = ()

    def job_submit(self, job_desc: DraftJob, submit_uid: int) -> IntResult:
        """Change or refuse a submission."""

    def job_modify(self, job_desc: DraftJob, job: JobRecord, submit_uid: int) -> IntResult:
        """Change or refuse a change of a job; fields that stay are NO_VAL or empty."""
