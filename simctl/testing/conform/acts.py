"""What a run did, in the words that traces of simctl and recordings of real Slurm share.

An *act* is a plugin call, a message, a change of a state, a script or a fork. Acts lie in
*strands*: what one thread or one subject does in a row, whose order is a rule. Between strands
there is no order but the facts of facts.py: threads and processes race.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import attrs

Kind = Literal["call", "message", "state", "script", "process"]

MARK: Final = "(marks)"
"""The strand of acts that only facts look at, such as the receipt of a message."""


TASKS_OF: Final = "tasks of "
"""Begins strands in which there is no order: a node's tasks end as the machine has it."""


@attrs.frozen(kw_only=True)
class Act:
    """One thing that a process did."""

    strand: str
    kind: Kind
    name: str
    key: str = ""
    """What tells it from others of its name in the strand: a task, a state, a range of nodes."""

    user: str = ""
    args: dict[str, Any] = attrs.field(factory=dict)
    says: dict[str, Any] = attrs.field(factory=dict)
    """What a record says besides, which recordings do not tell: a reason, an exit code."""

    result: Any = None
    place: int
    """Where it stands in its file: `seq`."""

    when_s: float = 0.0
    """Seconds since the file's first moment."""

    job: int | None = None
    step: str = ""
    node: str = ""

    @property
    def what(self) -> tuple[str, str]:
        """Return what makes it the same act on either side."""
        return self.name, self.key

    def __str__(self) -> str:
        args = {name: value for name, value in self.args.items() if name not in self.key_names}
        shown = " ".join(f"{name}={_short(value)}" for name, value in args.items())
        key = f" {self.key}" if self.key else ""
        user = f" as {self.user}" if self.user else ""
        result = "" if self.result is None else f" = {self.result}"
        return f"{self.name}{key}{f' ({shown})' if shown else ''}{user}{result}"

    @property
    def key_names(self) -> frozenset[str]:
        """Return the arguments that the key tells of already."""
        return frozenset(part.split("=")[0] for part in self.key.split() if "=" in part)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"


_WIDE: Final = 60


@attrs.frozen(kw_only=True)
class Story:
    """What a whole run did."""

    acts: tuple[Act, ...]
    starts: Mapping[str, int] = {}
    """How often daemons start in it: ``slurmctld``, ``slurmd@n1``."""

    open_jobs: frozenset[int] = frozenset()
    """Jobs that are not over at its end."""

    old_jobs: frozenset[int] = frozenset()
    """Jobs that were there before its beginning."""

    cut: bool = False
    """Whether it is a piece of a longer life: a recording is, a run of simctl's is not."""

    @property
    def runs_old_jobs(self) -> bool:
        """Return whether jobs that were there before its beginning do something on nodes."""
        return any(act.job in self.old_jobs and act.node for act in self.acts)

    def strands(self) -> dict[str, list[Act]]:
        """Return the acts by strand, in the order in which strands begin."""
        found: dict[str, list[Act]] = {}
        for act in self.acts:
            if act.strand != MARK:
                found.setdefault(act.strand, []).append(act)
        for strand, acts in found.items():
            if strand.startswith(TASKS_OF):
                acts.sort(key=lambda act: act.key)
        return found

    def having(self, acts: Iterable[Act]) -> "Story":
        """Return the same run with other acts."""
        return attrs.evolve(self, acts=tuple(acts))

    def by_strand(self, change: "Change") -> "Story":
        """Return it with acts taken out of each strand; the others keep their order in the file."""
        kept = {id(act) for acts in self.strands().values() for act in change(acts)}
        return self.having(act for act in self.acts if act.strand == MARK or id(act) in kept)


def starts_run(act: Act) -> bool:
    """Return whether a run of a job starts with an act."""
    before, _, after = act.key.partition(" > ")
    return act.name == "job_state" and before.startswith("PENDING") and after.startswith("RUNNING")


Change = Callable[[Sequence[Act]], Iterable[Act]]
"""Takes acts out of a strand."""


BATCH_STEP: Final = "batch"


def step_text(job: int, step: Any) -> str:
    """Return a step as traces have it: ``7.0``, ``7.batch``."""
    return f"{job}.{BATCH_STEP if step in (-2, 0xFFFFFFFE, BATCH_STEP) else step}"


def number(result: Any) -> Any:
    """Return a result as a signed number: false is 0, and 0xffffffff is -1."""
    if isinstance(result, bool):
        return int(result)
    if isinstance(result, int) and _SIGN <= result < 2 * _SIGN:
        return result - 2 * _SIGN
    return result


_SIGN: Final = 1 << 31


def type_now(plugin: str) -> str:
    """Return a plugin's type as it is called here: datawarp's until 18.08 was cray."""
    return "burst_buffer/datawarp" if plugin == "burst_buffer/cray" else plugin


REGISTRATION: Final = "MESSAGE_NODE_REGISTRATION_STATUS"
SHARED_MESSAGES: Final = {
    "RESPONSE_LAUNCH_TASKS": ("return_code", "count_of_pids", "node_name"),
    "MESSAGE_TASK_EXIT": ("return_code",),
    "REQUEST_STEP_COMPLETE": ("step_rc",),
    "REQUEST_COMPLETE_BATCH_SCRIPT": ("job_rc", "slurm_rc", "node_name"),
    "REQUEST_COMPLETE_JOB_ALLOCATION": ("job_rc",),
    "MESSAGE_EPILOG_COMPLETE": ("return_code", "node_name"),
    "REQUEST_BATCH_JOB_LAUNCH": ("restart_cnt",),
    "REQUEST_TERMINATE_JOB": ("job_state",),
    "REQUEST_KILL_TIMELIMIT": ("job_state",),
    "REQUEST_JOB_REQUEUE": (),
    "REQUEST_LAUNCH_TASKS": (),
    "REQUEST_JOB_STEP_CREATE": ("num_tasks",),
    REGISTRATION: ("status", "jobs", "node_name"),
    "SRUN_TIMEOUT": (),
    "SRUN_NODE_FAIL": (),
}
"""Messages that are compared where they are sent, with the arguments that both sides have."""

CALL_ARGUMENTS: Final = frozenset(
    """
    node_cnt task_cnt task_dist plane tasks tids nodelist nodeid procid nnodes nprocs rank ntasks
    node_tasks uid pgid batch test_only init_config op data gtid max_wait recover task_id image_dir
    locked submit_uid
    """.split()
)
"""Arguments of calls that are compared wherever both sides tell them."""


def steps_told(steps: Iterable[Any]) -> list[str]:
    """Return the steps in a registration, which come in any order: ``7.-2`` is ``7.batch``."""
    return sorted(str(step).replace(".-2", f".{BATCH_STEP}") for step in steps)


def message_key(name: str, args: dict[str, Any]) -> str:
    """Return what tells a message from others of its name in the strand."""
    if name == "REQUEST_STEP_COMPLETE":
        return f"range={args.get('range_first')}..{args.get('range_last')}"
    if name == "MESSAGE_TASK_EXIT":
        return f"tasks={','.join(map(str, args.get('task_ids', ())))}"
    return ""


def place_of(name: str, *, job: int | None, step: str, node: str, sender: str) -> str:
    """Return the strand of a message that is sent."""
    if sender == "stepd":
        return f"stepd[{step}]@{node}"
    if name.startswith("SRUN_"):
        # Of these recordings do not tell the job.
        return f"{sender} tells srun"
    if sender == "slurmd":
        # A recording does not tell for which job slurmd asks.
        if name == REGISTRATION:
            return f"slurmd@{node} registers"
        asks = name == "REQUEST_JOB_REQUEUE"
        return f"slurmd@{node} requeues" if asks else f"slurmd@{node} job {job}"
    if sender == "srun":
        return f"srun {step}" if name == "REQUEST_LAUNCH_TASKS" else f"srun of job {job}"
    return f"slurmctld job {job}" if sender == "slurmctld" else MARK


def call_place(name: str, *, job: int | None, step: str, node: str, role: str) -> str:
    """Return the strand of a plugin call."""
    if role == "stepd":
        about = " requests" if name in REQUESTED else ""
        return f"stepd[{step}]@{node}{about}"
    if role == "slurmd":
        if name in SUSPENSION:
            return f"slurmd@{node} suspension"
        return f"slurmd@{node} launch {step}" if step else f"slurmd@{node}"
    if role == "srun":
        return f"srun {step}" if step else "srun"
    if name in OF_NO_JOB:
        return f"slurmctld {name.rpartition('_p_')[2].removeprefix('slurm_ckpt_')}"
    if name in SUSPENSION:
        return "slurmctld suspension"
    if step and not step.endswith(BATCH_STEP):
        return f"slurmctld step {step}"
    return f"slurmctld job {job}" if job is not None else "slurmctld"


OF_NO_JOB: Final = frozenset({"switch_p_part_comp", "slurm_ckpt_copy_job"})
"""Functions of slurmctld of which recordings do not tell which job they are about."""

REQUESTED: Final = frozenset(
    {
        "slurm_ckpt_signal_tasks",
        "switch_p_job_step_pre_suspend",
        "switch_p_job_step_post_suspend",
        "switch_p_job_step_pre_resume",
        "switch_p_job_step_post_resume",
    }
)
"""Functions that a thread of slurmstepd for requests calls, beside the main thread."""

SUSPENSION: Final = frozenset(
    {
        "switch_p_job_suspend_info_pack",
        "switch_p_job_suspend_info_unpack",
        "switch_p_job_suspend_info_free",
        "switch_p_job_suspend",
        "switch_p_job_resume",
    }
)
"""Functions around a suspension that no job is told of."""
