"""One frozen class per RPC, named as in Slurm's protocol.

They are msgspec structs: a step daemon costs some ten messages, and making one of these takes a
fifth of the time of a frozen attrs class.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from simctl.wire.accounts import JobAccount, StepAccount
from simctl.wire.buf import Packed
from simctl.wire.credentials import JobCredential
from simctl.wire.ids import NO_VAL, SLURM_BATCH_SCRIPT, step_name
from simctl.wire.info import JobInfo, NodeInfo, PartInfo, ReservationInfo, StepInfo
from simctl.wire.layout import Distribution, StepLayout
from simctl.wire.records import JobDesc


@functools.cache
def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gets the values of one or more fields."""
    get = operator.attrgetter(*names)
    return get if len(names) > 1 else lambda message: (get(message),)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message between daemons; `rpc` is spelled out in each class, so that a search finds it."""

    rpc: ClassVar[str]
    tells: ClassVar[tuple[str, ...]] = ()

    def shown(self) -> dict[str, Any]:
        """Return the arguments worth a place in the trace, `job_id` and `step` among them."""
        tells = self.tells
        shown = dict(zip(tells, _values(tells)(self), strict=True)) if tells else {}
        if "step_id" in shown:
            step_id = shown.pop("step_id")
            shown["step"] = step_name(shown["job_id"], step_id)
        return shown


class ResponseSlurmRc(Message, frozen=True, kw_only=True):
    """Answer a request with 0 or an error number."""

    rpc: ClassVar[str] = "RESPONSE_SLURM_RC"
    tells: ClassVar[tuple[str, ...]] = ("return_code", "answers")

    return_code: int
    answers: str
    job_id: int = 0
    step_id: int = -1
    request: Message | None = None
    """What it answers, for a sender that waits in vain for it."""

    @classmethod
    def to(cls, request: Message, return_code: int) -> "ResponseSlurmRc":
        """Answer *request*, about the same job and step."""
        return cls(
            return_code=return_code,
            answers=request.rpc,
            job_id=getattr(request, "job_id", 0),
            step_id=getattr(request, "step_id", -1),
            request=request,
        )

    def shown(self) -> dict[str, Any]:
        """Name the job and step that the request named."""
        shown: dict[str, Any] = {"return_code": self.return_code, "answers": self.answers}
        if self.job_id:
            shown["job_id"] = self.job_id
            if self.step_id >= 0:
                shown["step"] = step_name(self.job_id, self.step_id)
        return shown


# Nodes.


class MessageNodeRegistrationStatus(Message, frozen=True, kw_only=True):
    """Tell slurmctld that slurmd is up, what runs there, and the node's switch state."""

    rpc: ClassVar[str] = "MESSAGE_NODE_REGISTRATION_STATUS"
    tells: ClassVar[tuple[str, ...]] = ("node_name", "status")

    node_name: str
    status: int
    steps: tuple[tuple[int, int, int], ...]
    """The steps that run there: job id, step id, and which run of the job."""

    starting: tuple[tuple[int, int], ...] = ()
    """The runs of jobs that have a prolog there which has yet to end."""

    left: tuple[tuple[int, int], ...] = ()
    """The runs of jobs of which tasks are left there whose step daemons were killed."""

    startup: bool
    """Whether it is the first that this slurmd sends."""

    booted_us: int = 0
    """Since when the node has been up."""

    started_us: int = 0
    """When this slurmd started, by which a first registration that comes late is known."""

    switch_nodeinfo: Packed

    def shown(self) -> dict[str, Any]:
        """Tell of the steps where there are any."""
        steps = tuple(step_name(job_id, step_id) for job_id, step_id, _ in self.steps)
        return super().shown() | ({"jobs": steps} if steps else {})


class RequestNodeRegistrationStatus(Message, frozen=True, kw_only=True):
    """Ask slurmd to register again."""

    rpc: ClassVar[str] = "REQUEST_NODE_REGISTRATION_STATUS"


class RequestReconfigure(Message, frozen=True, kw_only=True):
    """Ask a daemon to read its configuration again."""

    rpc: ClassVar[str] = "REQUEST_RECONFIGURE"


class RequestPing(Message, frozen=True, kw_only=True):
    """Ask slurmd whether it is there."""

    rpc: ClassVar[str] = "REQUEST_PING"


class RequestControl(Message, frozen=True, kw_only=True):
    """Ask a backup controller to save its state and give control back."""

    rpc: ClassVar[str] = "REQUEST_CONTROL"


class RequestShutdown(Message, frozen=True, kw_only=True):
    """Ask a daemon to stop; with `controller_only` slurmctld tells no node."""

    rpc: ClassVar[str] = "REQUEST_SHUTDOWN"

    controller_only: bool = False


# Jobs.


class RequestSubmitBatchJob(Message, frozen=True, kw_only=True):
    """Ask slurmctld to take a batch job in."""

    rpc: ClassVar[str] = "REQUEST_SUBMIT_BATCH_JOB"

    job_desc: JobDesc


class RequestJobWillRun(Message, frozen=True, kw_only=True):
    """Ask slurmctld when and where a job would start that is not submitted."""

    rpc: ClassVar[str] = "REQUEST_JOB_WILL_RUN"

    job_desc: JobDesc


class ResponseJobWillRun(Message, frozen=True, kw_only=True):
    """Answer when and where a job would start, or why it never would."""

    rpc: ClassVar[str] = "RESPONSE_JOB_WILL_RUN"
    answers: ClassVar[str] = "REQUEST_JOB_WILL_RUN"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "error_code")

    job_id: int = 0
    error_code: int = 0
    text: str = ""
    start_s: int = 0
    num_cpus: int = 0
    node_list: str = ""
    partition: str = ""


class ResponseSubmitBatchJob(Message, frozen=True, kw_only=True):
    """Answer a submission; `error_code` may say why the job waits, or why it was refused."""

    rpc: ClassVar[str] = "RESPONSE_SUBMIT_BATCH_JOB"
    answers: ClassVar[str] = "REQUEST_SUBMIT_BATCH_JOB"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "error_code")

    job_id: int
    error_code: int
    text: str = ""


class RequestResourceAllocation(Message, frozen=True, kw_only=True):
    """Ask slurmctld for nodes, for the srun or salloc that waits at the sender."""

    rpc: ClassVar[str] = "REQUEST_RESOURCE_ALLOCATION"

    job_desc: JobDesc


class ResponseResourceAllocation(Message, frozen=True, kw_only=True):
    """Answer with an allocation; without nodes the job is queued, and this comes again."""

    rpc: ClassVar[str] = "RESPONSE_RESOURCE_ALLOCATION"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "error_code", "node_list")

    job_id: int
    error_code: int
    node_list: str
    text: str = ""
    cpus_per_node: tuple[int, ...] = ()
    partition: str = ""
    environment: dict[str, str] = {}
    """What burst buffers add to the environment of the job."""


class RequestJobReady(Message, frozen=True, kw_only=True):
    """Ask whether the nodes of a job are ready for its steps."""

    rpc: ClassVar[str] = "REQUEST_JOB_READY"
    tells: ClassVar[tuple[str, ...]] = ("job_id",)

    job_id: int


class RequestJobPackAllocInfo(Message, frozen=True, kw_only=True):
    """Ask whether a job has nodes, before a step is asked for in it."""

    rpc: ClassVar[str] = "REQUEST_JOB_PACK_ALLOC_INFO"
    tells: ClassVar[tuple[str, ...]] = ("job_id",)

    job_id: int


class ResponseJobPackAllocation(Message, frozen=True, kw_only=True):
    """Answer with the nodes of a job, or with why it has none."""

    rpc: ClassVar[str] = "RESPONSE_JOB_PACK_ALLOCATION"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "error_code")
    answers: ClassVar[str] = "REQUEST_JOB_PACK_ALLOC_INFO"

    job_id: int
    node_list: str = ""
    error_code: int = 0


class RequestBatchJobLaunch(Message, frozen=True, kw_only=True):
    """Tell slurmd to run the script of a job, on the first of its nodes."""

    rpc: ClassVar[str] = "REQUEST_BATCH_JOB_LAUNCH"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "restart_cnt")

    job_id: int
    step_id: int = SLURM_BATCH_SCRIPT
    job_desc: JobDesc
    node_list: str
    nodes: tuple[str, ...]
    cpus_per_node: tuple[int, ...]
    restart_cnt: int
    restarts: int = 0
    """What the script is told of that: runs that were never launched do not count."""

    array_job_id: int = 0
    array_task_id: int = NO_VAL
    memory_per_node_mb: int = 0
    memory_per_cpu_mb: int = 0
    gpus: tuple[int, ...] = ()
    """Numbers of the gpus that the job has on its first node."""

    restart_dir: str = ""
    """Where the images are that its script goes on from; empty for a plain start."""

    ckpt_dir: str = ""
    """Where images of it are to go."""

    credential: JobCredential | None = None

    def shown(self) -> dict[str, Any]:
        """Tell of the images that it goes on from, if it does, and of the restarts that count."""
        shown = super().shown() | {"restart_cnt": self.restarts}
        return shown | ({"restart_dir": self.restart_dir} if self.restart_dir else {})


class RequestKillJob(Message, frozen=True, kw_only=True):
    """Ask slurmctld to signal a job, all tasks of an array or some, by SIGKILL to end it."""

    rpc: ClassVar[str] = "REQUEST_KILL_JOB"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "signal")

    job_id: int
    signal: int
    batch_only: bool = False
    full: bool = False
    array_tasks: tuple[int, ...] = ()
    waiting_only: bool = False
    """Of an array, all the tasks that wait together, and no other."""

    hurry: bool = False
    """Nothing is to be staged out of burst buffers any more."""

    def shown(self) -> dict[str, Any]:
        """Tell of hurry where there is any."""
        return super().shown() | ({"hurry": True} if self.hurry else {})


class RequestUpdateJob(Message, frozen=True, kw_only=True):
    """Ask slurmctld to change a job; NO_VAL and None stand for what is to stay.

    A `priority` of 0 holds the job, INFINITE releases it; `hold_by_user` tells a hold that its
    owner may undo from one that only an operator may.
    """

    rpc: ClassVar[str] = "REQUEST_UPDATE_JOB"
    tells: ClassVar[tuple[str, ...]] = ("job_id",)

    job_id: int
    array_tasks: tuple[int, ...] = ()
    priority: int = NO_VAL
    hold_by_user: bool = False
    nice: int | None = None
    time_limit_min: int = NO_VAL
    min_nodes: int = NO_VAL
    name: str | None = None
    partition: str | None = None
    dependency: str | None = None
    begin_s: int | None = None
    requeue: int = NO_VAL
    max_nodes: int = NO_VAL
    num_tasks: int = NO_VAL
    cpus_per_task: int = NO_VAL
    min_cpus_per_node: int = NO_VAL
    memory_per_node_mb: int = NO_VAL
    memory_per_cpu_mb: int = NO_VAL
    gres: dict[str, int] | None = None
    nodes: tuple[str, ...] | None = None
    excluded: tuple[str, ...] | None = None
    exclusive: bool | None = None
    account: str | None = None
    comment: str | None = None
    reservation: str | None = None
    std_out: str | None = None
    work_dir: str | None = None
    deadline_s: int | None = None
    array_limit: int = NO_VAL

    def shown(self) -> dict[str, Any]:
        """Tell what is to change."""
        nothing = RequestUpdateJob(job_id=self.job_id)
        asked = {name: getattr(self, name) for name in self.__struct_fields__}
        return super().shown() | {
            name: value for name, value in asked.items() if value != getattr(nothing, name)
        }


class RequestUpdateJobStep(Message, frozen=True, kw_only=True):
    """Ask slurmctld to change the time limit of a step, or of all steps of a job."""

    rpc: ClassVar[str] = "REQUEST_UPDATE_JOB_STEP"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id")

    job_id: int
    step_id: int = NO_VAL
    time_limit_min: int = NO_VAL


class RequestBatchScript(Message, frozen=True, kw_only=True):
    """Ask slurmctld for the script of a job."""

    rpc: ClassVar[str] = "REQUEST_BATCH_SCRIPT"
    tells: ClassVar[tuple[str, ...]] = ("job_id",)

    job_id: int


class ResponseBatchScript(Message, frozen=True, kw_only=True):
    """Answer with the script of a job."""

    rpc: ClassVar[str] = "RESPONSE_BATCH_SCRIPT"
    answers: ClassVar[str] = "REQUEST_BATCH_SCRIPT"

    script: str


class RequestSwitchInfo(Message, frozen=True, kw_only=True):
    """Ask what the switch plugin says of a step's credential, or slurmd of its node.

    *what* is ``size`` for a text of *number* bytes, ``type`` or ``key`` for data by number, or
    empty for the whole text. No RPC of Slurm's.
    """

    rpc: ClassVar[str] = "REQUEST_SWITCH_INFO"

    job_id: int = 0
    step_id: int = 0
    what: str = ""
    number: int = 0


class ResponseSwitchInfo(Message, frozen=True, kw_only=True):
    """Answer with what the switch plugin said, or with its error in words."""

    rpc: ClassVar[str] = "RESPONSE_SWITCH_INFO"
    answers: ClassVar[str] = "REQUEST_SWITCH_INFO"

    text: str
    failed: bool = False


class RequestBurstBufferInfo(Message, frozen=True, kw_only=True):
    """Ask slurmctld what its burst buffer plugins tell of their buffers."""

    rpc: ClassVar[str] = "REQUEST_BURST_BUFFER_INFO"


class ResponseBurstBufferInfo(Message, frozen=True, kw_only=True):
    """Answer with what each plugin packed, one `BurstBufferInfo` behind the other."""

    rpc: ClassVar[str] = "RESPONSE_BURST_BUFFER_INFO"
    answers: ClassVar[str] = "REQUEST_BURST_BUFFER_INFO"
    tells: ClassVar[tuple[str, ...]] = ("error_code",)

    data: bytes = b""
    error_code: int = 0


class RequestBurstBufferStatus(Message, frozen=True, kw_only=True):
    """Ask slurmctld what its burst buffer plugins have to say to some words."""

    rpc: ClassVar[str] = "REQUEST_BURST_BUFFER_STATUS"
    tells: ClassVar[tuple[str, ...]] = ("argv",)

    argv: tuple[str, ...] = ()


class ResponseBurstBufferStatus(Message, frozen=True, kw_only=True):
    """Answer with the texts of the burst buffer plugins."""

    rpc: ClassVar[str] = "RESPONSE_BURST_BUFFER_STATUS"
    answers: ClassVar[str] = "REQUEST_BURST_BUFFER_STATUS"
    tells: ClassVar[tuple[str, ...]] = ("error_code",)

    text: str = ""
    error_code: int = 0


class RequestJobNotify(Message, frozen=True, kw_only=True):
    """Ask slurmctld to have a line of text shown to a job."""

    rpc: ClassVar[str] = "REQUEST_JOB_NOTIFY"
    tells: ClassVar[tuple[str, ...]] = ("job_id",)

    job_id: int
    text: str


class RequestBuildInfo(Message, frozen=True, kw_only=True):
    """Ask slurmctld for its configuration."""

    rpc: ClassVar[str] = "REQUEST_BUILD_INFO"


class ResponseBuildInfo(Message, frozen=True, kw_only=True):
    """Answer with what of the configuration only the controller knows."""

    rpc: ClassVar[str] = "RESPONSE_BUILD_INFO"
    answers: ClassVar[str] = "REQUEST_BUILD_INFO"

    now_s: int
    boot_s: int
    num_nodes: int
    next_job_id: int


class RequestJobRequeue(Message, frozen=True, kw_only=True):
    """Ask slurmctld to send a running batch job back into the queue, held if `hold`.

    With `special_exit` as well it shows that it was held for how it ended. Where only what is
    `incomplete` is meant, a job that waits or is over stays as it is.
    """

    rpc: ClassVar[str] = "REQUEST_JOB_REQUEUE"
    tells: ClassVar[tuple[str, ...]] = ("job_id",)

    job_id: int
    array_tasks: tuple[int, ...] = ()
    hold: bool = False
    launch_failed: bool = False
    """It is slurmd that asks, because it could not launch the job."""
    restart_cnt: int = NO_VAL
    """The run that is meant, where it is slurmd that asks."""
    special_exit: bool = False
    incomplete: bool = False


SUSPEND_JOB = 0
RESUME_JOB = 1


class RequestSuspend(Message, frozen=True, kw_only=True):
    """Ask slurmctld to suspend a job or to resume it, as `op` says; of an array all tasks or some.

    `op` is SUSPEND_JOB or RESUME_JOB.
    """

    rpc: ClassVar[str] = "REQUEST_SUSPEND"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "op")

    job_id: int
    op: int
    array_tasks: tuple[int, ...] = ()


class RequestSuspendInt(Message, frozen=True, kw_only=True):
    """Tell slurmd to stop all processes of a job, or to let them go on."""

    rpc: ClassVar[str] = "REQUEST_SUSPEND_INT"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "op")

    job_id: int
    op: int
    switch_info: Packed = Packed()
    """What the switch plugin of slurmctld has to tell, where it has anything."""

    number: int = 0
    """Counts what a run of a job is told of this kind, so that none is heeded late or twice."""

    restart_cnt: int = 0


class RequestStepSuspend(Message, frozen=True, kw_only=True):
    """Tell a step daemon to stop its tasks."""

    rpc: ClassVar[str] = "REQUEST_STEP_SUSPEND"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id")

    job_id: int
    step_id: int


class RequestStepResume(RequestStepSuspend, frozen=True, kw_only=True):
    """Tell a step daemon to let its tasks go on."""

    rpc: ClassVar[str] = "REQUEST_STEP_RESUME"


class RequestUpdateNode(Message, frozen=True, kw_only=True):
    """Ask slurmctld to change nodes: their state, the reason for it, their features.

    An empty state or reason and None stand for what is to stay.
    """

    rpc: ClassVar[str] = "REQUEST_UPDATE_NODE"
    tells: ClassVar[tuple[str, ...]] = ("node_names", "state")

    node_names: str
    state: str = ""
    reason: str = ""
    features: tuple[str, ...] | None = None


class RequestJobInfo(Message, frozen=True, kw_only=True):
    """Ask slurmctld about all jobs, or with a `job_id` about one and the tasks of its array."""

    rpc: ClassVar[str] = "REQUEST_JOB_INFO"

    job_id: int = 0
    when_over: bool = False
    """The answer is to come once the job is over."""


class ResponseJobInfo(Message, frozen=True, kw_only=True):
    """Answer with jobs, and with what the controller's clock shows."""

    rpc: ClassVar[str] = "RESPONSE_JOB_INFO"
    answers: ClassVar[str] = "REQUEST_JOB_INFO"

    now_s: int
    jobs: tuple[JobInfo, ...]


class ResponseJobOver(ResponseJobInfo, frozen=True, kw_only=True):
    """Tell a command that waited that a job is over; unlike other answers it is sent again."""

    answers: ClassVar[str] = ""


class RequestJobStepInfo(Message, frozen=True, kw_only=True):
    """Ask slurmctld what steps run, or with a `job_id` which of that job."""

    rpc: ClassVar[str] = "REQUEST_JOB_STEP_INFO"

    job_id: int = 0


class ResponseJobStepInfo(Message, frozen=True, kw_only=True):
    """Answer with steps."""

    rpc: ClassVar[str] = "RESPONSE_JOB_STEP_INFO"
    answers: ClassVar[str] = "REQUEST_JOB_STEP_INFO"

    now_s: int
    steps: tuple[StepInfo, ...]


class DbdGetJobsCond(Message, frozen=True, kw_only=True):
    """Ask for the records of accounting."""

    rpc: ClassVar[str] = "DBD_GET_JOBS_COND"


class DbdGotJobs(Message, frozen=True, kw_only=True):
    """Answer with the records of jobs and of steps: those that are over, then the others."""

    rpc: ClassVar[str] = "DBD_GOT_JOBS"

    jobs: tuple[JobAccount, ...]
    steps: tuple[StepAccount, ...]


class RequestNodeInfo(Message, frozen=True, kw_only=True):
    """Ask slurmctld what nodes there are."""

    rpc: ClassVar[str] = "REQUEST_NODE_INFO"


class ResponseNodeInfo(Message, frozen=True, kw_only=True):
    """Answer with all nodes."""

    rpc: ClassVar[str] = "RESPONSE_NODE_INFO"
    answers: ClassVar[str] = "REQUEST_NODE_INFO"

    now_s: int
    nodes: tuple[NodeInfo, ...]


class RequestPartitionInfo(Message, frozen=True, kw_only=True):
    """Ask slurmctld what partitions there are."""

    rpc: ClassVar[str] = "REQUEST_PARTITION_INFO"


class ResponsePartitionInfo(Message, frozen=True, kw_only=True):
    """Answer with all partitions."""

    rpc: ClassVar[str] = "RESPONSE_PARTITION_INFO"
    answers: ClassVar[str] = "REQUEST_PARTITION_INFO"

    now_s: int
    partitions: tuple[PartInfo, ...]


class RequestReservationInfo(Message, frozen=True, kw_only=True):
    """Ask slurmctld what reservations there are."""

    rpc: ClassVar[str] = "REQUEST_RESERVATION_INFO"


class ResponseReservationInfo(Message, frozen=True, kw_only=True):
    """Answer with all reservations."""

    rpc: ClassVar[str] = "RESPONSE_RESERVATION_INFO"
    answers: ClassVar[str] = "REQUEST_RESERVATION_INFO"

    now_s: int
    reservations: tuple[ReservationInfo, ...]


class RequestUpdatePartition(Message, frozen=True, kw_only=True):
    """Ask slurmctld to change a partition; NO_VAL, None and empty stand for what is to stay."""

    rpc: ClassVar[str] = "REQUEST_UPDATE_PARTITION"
    tells: ClassVar[tuple[str, ...]] = ("name", "state")

    name: str
    state: str = ""
    default: bool | None = None
    max_time_min: int = NO_VAL
    default_time_min: int = NO_VAL
    max_nodes: int = NO_VAL
    min_nodes: int = NO_VAL
    priority_tier: int = NO_VAL
    exclusive: bool | None = None
    root_only: bool | None = None
    preempt_mode: str = ""
    grace_time_s: int = NO_VAL
    nodes: str | None = None
    allow_accounts: tuple[str, ...] | None = None
    deny_accounts: tuple[str, ...] | None = None
    def_mem_per_cpu_mb: int = NO_VAL
    def_mem_per_node_mb: int = NO_VAL


class RequestCreatePartition(RequestUpdatePartition, frozen=True, kw_only=True):
    """Ask slurmctld for a new partition; what is not told is as in slurm.conf."""

    rpc: ClassVar[str] = "REQUEST_CREATE_PARTITION"


class RequestDeletePartition(Message, frozen=True, kw_only=True):
    """Ask slurmctld to forget a partition."""

    rpc: ClassVar[str] = "REQUEST_DELETE_PARTITION"
    tells: ClassVar[tuple[str, ...]] = ("name",)

    name: str


class RequestCreateReservation(Message, frozen=True, kw_only=True):
    """Ask slurmctld to keep nodes for users or accounts; moments in seconds since the epoch."""

    rpc: ClassVar[str] = "REQUEST_CREATE_RESERVATION"
    tells: ClassVar[tuple[str, ...]] = ("name", "nodes", "start_s", "end_s")

    name: str
    start_s: int
    end_s: int
    nodes: str
    users: tuple[int, ...] = ()
    accounts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    burst_buffer: str = ""


class RequestUpdateReservation(Message, frozen=True, kw_only=True):
    """Ask slurmctld to change a reservation; None stands for what is to stay."""

    rpc: ClassVar[str] = "REQUEST_UPDATE_RESERVATION"
    tells: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    start_s: int | None = None
    end_s: int | None = None
    duration_min: int | None = None
    nodes: str | None = None
    users: tuple[int, ...] | None = None
    accounts: tuple[str, ...] | None = None
    flags: tuple[str, ...] | None = None
    burst_buffer: str | None = None


class ResponseCreateReservation(Message, frozen=True, kw_only=True):
    """Answer with the name of a new reservation, or why there is none."""

    rpc: ClassVar[str] = "RESPONSE_CREATE_RESERVATION"
    answers: ClassVar[str] = "REQUEST_CREATE_RESERVATION"
    tells: ClassVar[tuple[str, ...]] = ("name", "error_code")

    name: str
    error_code: int


class RequestDeleteReservation(Message, frozen=True, kw_only=True):
    """Ask slurmctld to forget a reservation."""

    rpc: ClassVar[str] = "REQUEST_DELETE_RESERVATION"
    tells: ClassVar[tuple[str, ...]] = ("name",)

    name: str


class RequestCancelJobStep(Message, frozen=True, kw_only=True):
    """Ask slurmctld to signal one step."""

    rpc: ClassVar[str] = "REQUEST_CANCEL_JOB_STEP"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "signal")

    job_id: int
    step_id: int
    signal: int


class RequestCompleteJobAllocation(Message, frozen=True, kw_only=True):
    """Tell slurmctld that srun is done with its allocation."""

    rpc: ClassVar[str] = "REQUEST_COMPLETE_JOB_ALLOCATION"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "job_rc")

    job_id: int
    job_rc: int  # a wait status, not an exit code


class RequestCompleteBatchScript(Message, frozen=True, kw_only=True):
    """Tell slurmctld how the batch script ended."""

    rpc: ClassVar[str] = "REQUEST_COMPLETE_BATCH_SCRIPT"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "job_rc", "slurm_rc", "node_name")

    job_id: int
    step_id: int = SLURM_BATCH_SCRIPT
    job_rc: int  # wait status of the script, not its exit code
    slurm_rc: int  # 0, or why the script could not be started
    node_name: str
    restart_cnt: int


class RequestLaunchProlog(Message, frozen=True, kw_only=True):
    """Tell slurmd to run the prolog of a job that has just been given the node."""

    rpc: ClassVar[str] = "REQUEST_LAUNCH_PROLOG"
    tells: ClassVar[tuple[str, ...]] = ("job_id",)

    job_id: int
    restart_cnt: int
    uid: int
    node_list: str
    partition: str


class RequestCompleteProlog(Message, frozen=True, kw_only=True):
    """Tell slurmctld how the prolog of a job went on a node."""

    rpc: ClassVar[str] = "REQUEST_COMPLETE_PROLOG"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "prolog_rc", "node_name")

    job_id: int
    restart_cnt: int
    prolog_rc: int
    node_name: str


class RequestTerminateJob(Message, frozen=True, kw_only=True):
    """Tell slurmd that a job is over: end its steps, run the epilog, report."""

    rpc: ClassVar[str] = "REQUEST_TERMINATE_JOB"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "job_state")

    job_id: int
    restart_cnt: int
    job_state: str
    uid: int = 0
    node_list: str = ""


class RequestKillTimelimit(RequestTerminateJob, frozen=True, kw_only=True):
    """Tell slurmd that a job has reached its time limit; else as REQUEST_TERMINATE_JOB."""

    rpc: ClassVar[str] = "REQUEST_KILL_TIMELIMIT"


class RequestAbortJob(RequestTerminateJob, frozen=True, kw_only=True):
    """Tell slurmd to kill what it has of a job that slurmctld does not know; no report follows."""

    rpc: ClassVar[str] = "REQUEST_ABORT_JOB"


class MessageEpilogComplete(Message, frozen=True, kw_only=True):
    """Tell slurmctld that a job is gone from a node."""

    rpc: ClassVar[str] = "MESSAGE_EPILOG_COMPLETE"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "return_code", "node_name")

    job_id: int
    restart_cnt: int
    return_code: int
    node_name: str


class RequestKillPreempted(RequestTerminateJob, frozen=True, kw_only=True):
    """Tell slurmd that a job was preempted; else as REQUEST_TERMINATE_JOB."""

    rpc: ClassVar[str] = "REQUEST_KILL_PREEMPTED"


# Steps.


class RequestJobStepCreate(Message, frozen=True, kw_only=True):
    """Ask slurmctld for a step of a job; 0 nodes or tasks mean as many as the job has.

    An `exclusive` step has cpus that no other step of the job has, and waits for them unless it is
    to be `immediate`. With `no_kill` it goes on without a node that fails. One that may
    `overcommit` cpus has more tasks than the job has cpus for.
    """

    rpc: ClassVar[str] = "REQUEST_JOB_STEP_CREATE"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "num_tasks", "min_nodes")

    job_id: int
    name: str
    num_tasks: int
    min_nodes: int
    max_nodes: int
    cpus_per_task: int
    ntasks_per_node: int
    distribution: Distribution
    plane_size: int
    nodes: tuple[str, ...]
    excluded: tuple[str, ...]
    relative: int = NO_VAL
    time_limit_min: int = NO_VAL
    exclusive: bool = False
    immediate: bool = False
    no_kill: bool = False
    overcommit: bool = False
    submit_line: str = ""  # as it was typed
    restart_cnt: int = NO_VAL  # the run of the job that asks, where a process of the job does
    ckpt_interval_min: int = 0
    ckpt_dir: str = ""
    restart_dir: str = ""


class ResponseJobStepCreate(Message, frozen=True, kw_only=True):
    """Answer with a step and its packed credential, or with an error."""

    rpc: ClassVar[str] = "RESPONSE_JOB_STEP_CREATE"
    answers: ClassVar[str] = "REQUEST_JOB_STEP_CREATE"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "error_code")

    job_id: int
    step_id: int = NO_VAL
    error_code: int = 0
    restart_cnt: int = 0
    """Which run of the job it is a step of."""

    layout: StepLayout | None = None
    switch_job: Packed = Packed()
    credential: JobCredential | None = None

    def shown(self) -> dict[str, Any]:
        """Leave the step out of a refusal."""
        shown = super().shown()
        if self.error_code:
            del shown["step"]
        return shown


class StepLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """What every node of a step is told alike."""

    job_id: int
    step_id: int
    uid: int
    gid: int
    user: str
    restart_cnt: int
    job_name: str
    layout: StepLayout
    node_list: str
    argv: tuple[str, ...]
    env: dict[str, str]
    work_dir: str
    tree_width: int
    credential: JobCredential | None
    task_prolog: str = ""
    task_epilog: str = ""
    cpus_on_nodes: tuple[int, ...] = ()
    """What its own job has on each node of the step; nothing for a step of a job around it."""

    searches: bool = True
    """Tasks have a PATH on which programs are found."""

    programs: tuple[tuple[str, ...], ...] = ()
    """What each task runs, by rank, where that is not `argv` for all."""

    inputs: tuple[str, ...] = ()
    """What tasks find on their standard input: one text for all, one for each rank, or nothing."""

    restart_dir: str = ""
    """Where the images are that its tasks go on from; empty for a plain start."""

    ckpt_dir: str = ""
    """Where images of it are to go."""


class RequestLaunchTasks(Message, frozen=True, kw_only=True):
    """Tell slurmd to run its tasks of a step."""

    rpc: ClassVar[str] = "REQUEST_LAUNCH_TASKS"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "nodeid")

    job_id: int
    step_id: int
    nodeid: int
    launch: StepLaunch
    switch_job: Packed

    def shown(self) -> dict[str, Any]:
        """Tell of the images that its tasks go on from, if they do."""
        restart_dir = self.launch.restart_dir
        return super().shown() | ({"restart_dir": restart_dir} if restart_dir else {})


class ResponseLaunchTasks(Message, frozen=True, kw_only=True):
    """Tell srun that the tasks of a node were started, or why not."""

    rpc: ClassVar[str] = "RESPONSE_LAUNCH_TASKS"
    tells: ClassVar[tuple[str, ...]] = (
        "job_id",
        "step_id",
        "return_code",
        "node_name",
        "count_of_pids",
        "task_ids",
    )

    job_id: int
    step_id: int
    return_code: int
    node_name: str
    count_of_pids: int
    task_ids: tuple[int, ...]


class MessageTaskExit(Message, frozen=True, kw_only=True):
    """Tell srun how tasks ended; tasks of one wait status share a message."""

    rpc: ClassVar[str] = "MESSAGE_TASK_EXIT"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "return_code", "task_ids")

    job_id: int
    step_id: int
    return_code: int  # a wait status
    task_ids: tuple[int, ...]


class TaskOutput(Message, frozen=True, kw_only=True):
    """Carry what a task wrote to the srun that shows it: a stream, not an RPC of Slurm's."""

    rpc: ClassVar[str] = "TASK_OUTPUT"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "task_id", "stream")

    job_id: int
    step_id: int
    task_id: int
    stream: str
    text: str


class RequestSignalTasks(Message, frozen=True, kw_only=True):
    """Tell slurmd to signal the tasks of a step.

    With `container` a batch script's children are signalled with it, else the script alone.
    """

    rpc: ClassVar[str] = "REQUEST_SIGNAL_TASKS"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "signal")

    job_id: int
    step_id: int
    signal: int
    container: bool = False
    reason: str = ""
    """Why a job is ended, as the user of a batch script is told."""


class RequestKillStepTimelimit(Message, frozen=True, kw_only=True):
    """Tell slurmd that a step has reached its time limit, where its job has not."""

    rpc: ClassVar[str] = "REQUEST_KILL_TIMELIMIT"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id")

    job_id: int
    step_id: int


class RequestStepComplete(Message, frozen=True, kw_only=True):
    """Tell that a step is over on a range of its nodes: the parent step daemon, or slurmctld."""

    rpc: ClassVar[str] = "REQUEST_STEP_COMPLETE"
    tells: ClassVar[tuple[str, ...]] = (
        "job_id",
        "step_id",
        "range_first",
        "range_last",
        "step_rc",
    )

    job_id: int
    step_id: int
    range_first: int
    range_last: int
    step_rc: int


# Checkpoints.


class RequestCheckpoint(Message, frozen=True, kw_only=True):
    """Ask slurmctld for an operation on the checkpoints of a job or step.

    `op` is numbered as `CheckOp`; `data` is how many seconds to wait for a checkpoint at most, or
    of a restart whether it is to have the same nodes. A `step_id` of SLURM_BATCH_SCRIPT stands for
    a batch script, or for all steps of a job without one.
    """

    rpc: ClassVar[str] = "REQUEST_CHECKPOINT"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "op", "data", "image_dir")

    op: int
    data: int = 0
    job_id: int
    step_id: int = SLURM_BATCH_SCRIPT
    image_dir: str = ""


class ResponseCheckpoint(Message, frozen=True, kw_only=True):
    """Answer when the checkpoint began that is under way, or how the last one went."""

    rpc: ClassVar[str] = "RESPONSE_CHECKPOINT"
    answers: ClassVar[str] = "REQUEST_CHECKPOINT"
    tells: ClassVar[tuple[str, ...]] = ("event_time", "error_code", "error_msg")

    event_time: int = 0
    error_code: int = 0
    error_msg: str = ""


class RequestCheckpointComp(Message, frozen=True, kw_only=True):
    """Tell slurmctld that a checkpoint is complete, and how it went."""

    rpc: ClassVar[str] = "REQUEST_CHECKPOINT_COMP"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "begin_time", "error_code")

    job_id: int
    step_id: int
    begin_time: int = 0
    error_code: int = 0
    error_msg: str = ""


class RequestCheckpointTaskComp(RequestCheckpointComp, frozen=True, kw_only=True):
    """Tell slurmctld that the checkpoint of one task is complete."""

    rpc: ClassVar[str] = "REQUEST_CHECKPOINT_TASK_COMP"
    tells: ClassVar[tuple[str, ...]] = (
        "job_id",
        "step_id",
        "task_id",
        "begin_time",
        "error_code",
    )

    task_id: int


class RequestCheckpointTasks(Message, frozen=True, kw_only=True):
    """Ask slurmd to have the tasks of a step saved into images.

    `timestamp` is when the checkpoint began, in seconds since the epoch.
    """

    rpc: ClassVar[str] = "REQUEST_CHECKPOINT_TASKS"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "timestamp", "image_dir")

    job_id: int
    step_id: int
    timestamp: int
    image_dir: str


# What slurmctld tells a waiting srun.


class SrunExec(Message, frozen=True, kw_only=True):
    """Have srun run a program beside its step."""

    rpc: ClassVar[str] = "SRUN_EXEC"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "argv")

    job_id: int
    step_id: int
    argv: tuple[str, ...]


class SrunCrConnect(Message, frozen=True, kw_only=True):
    """Tell srun_cr, by its socket, which step the srun under it has launched."""

    rpc: ClassVar[str] = "SRUN_CR_CONNECT"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "node_list")

    job_id: int
    step_id: int
    node_list: str


class SrunTimeout(Message, frozen=True, kw_only=True):
    """Warn srun that its job is at its time limit."""

    rpc: ClassVar[str] = "SRUN_TIMEOUT"
    tells: ClassVar[tuple[str, ...]] = ("job_id",)

    job_id: int


class SrunStepSignal(Message, frozen=True, kw_only=True):
    """Tell srun that a step of its job has ended, so that it may ask for its own again."""

    rpc: ClassVar[str] = "SRUN_STEP_SIGNAL"
    tells: ClassVar[tuple[str, ...]] = ("job_id",)

    job_id: int


class SrunNodeFail(Message, frozen=True, kw_only=True):
    """Tell srun that a node of its step is gone."""

    rpc: ClassVar[str] = "SRUN_NODE_FAIL"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "node_list")

    job_id: int
    node_list: str


class SrunStepMissing(Message, frozen=True, kw_only=True):
    """Tell srun that a node does not know its step any more."""

    rpc: ClassVar[str] = "SRUN_STEP_MISSING"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "step_id", "node_list")

    job_id: int
    step_id: int
    node_list: str


class SrunUserMsg(Message, frozen=True, kw_only=True):
    """Have srun print a line."""

    rpc: ClassVar[str] = "SRUN_USER_MSG"
    tells: ClassVar[tuple[str, ...]] = ("job_id", "text")

    job_id: int
    text: str


class SrunJobComplete(Message, frozen=True, kw_only=True):
    """Tell srun that its job is over, or one step that was cancelled."""

    rpc: ClassVar[str] = "SRUN_JOB_COMPLETE"
    tells: ClassVar[tuple[str, ...]] = ("job_id",)

    job_id: int
    step_id: int = NO_VAL


# Credentials of launches.


def credential_of(message: Message) -> JobCredential | None:
    """Return the credential that a message bears, if it does."""
    bearer = message.launch if isinstance(message, RequestLaunchTasks) else message
    found: JobCredential | None = getattr(bearer, "credential", None)
    return found


def with_credential(message: Message, credential: JobCredential | None) -> Message:
    """Return a message that bears one with another credential."""
    if isinstance(message, RequestLaunchTasks):
        launch = msgspec.structs.replace(message.launch, credential=credential)
        return msgspec.structs.replace(message, launch=launch)
    return msgspec.structs.replace(message, credential=credential)
