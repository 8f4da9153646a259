"""What squeue can show of a job: the letters of -o, and the names of -O."""

from collections.abc import Callable
from typing import Any, Final

import attrs

from simctl.commands.columns.formats import (
    STANDARD,
    Clock,
    Column,
    alike,
    by_letter,
    by_name,
    checked_time,
    first_node_key,
    fixed,
    run_time,
    with_unit,
)
from simctl.commands.columns.job_states import state_letters, state_text
from simctl.wire.arrays import format_tasks
from simctl.wire.hostlist import expand
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.info import JobInfo
from simctl.wire.resources import ALL_MEMORY
from simctl.wire.states import JobBase

_ID_LENGTH: Final = 31
"""Longest id of the tasks of an array that wait, where SLURM_BITSTR_LEN is not set."""

_TASKS_LENGTH: Final = 63
_PRIORITIES: Final = 0xFFFFFFFF
_TOLD_WITH_REASON: Final = frozenset(
    {JobBase.PENDING, JobBase.TIMEOUT, JobBase.OUT_OF_MEMORY, JobBase.DEADLINE, JobBase.FAILED}
)


@attrs.frozen(kw_only=True)
class JobRow:
    """A line about a job."""

    info: JobInfo
    now_s: int
    partition: str
    """The partition it is shown in."""

    tier: int = 0
    """The tier of that partition, where it counts."""

    reason: str
    tasks: tuple[int, ...] = ()
    """The tasks of an array that wait."""

    limit: int = 0
    """How many of them may run at a time, 0 for any number."""

    task: int = NO_VAL
    """The task of an array that it is, alone."""

    group: str
    cluster: str
    clock: Clock = STANDARD
    convert: bool = True
    bits: int = -1
    """How long a list of tasks may be; -1 for the usual, 0 for any length."""

    @property
    def array_id(self) -> int:
        """Return the id of its array, or its own."""
        in_array = self.tasks or self.task != NO_VAL
        return self.info.array_job_id if in_array else self.info.job_id


def _tasks(row: JobRow) -> str:
    text = format_tasks(row.tasks)
    most = row.bits - 1 if row.bits > 0 else _TASKS_LENGTH
    if row.bits and len(text) > most - 2:
        text = text[:most][:-3] + "..."
    return f"{text}%{row.limit}" if row.limit else text


def shown_id(row: JobRow) -> str:
    """Return the id as ``7``, ``7_2`` or ``7_[3-5%2]``."""
    if row.tasks:
        text = f"{row.array_id}_[{_tasks(row)}]"
        return text if row.bits >= 0 else text[:_ID_LENGTH]
    return f"{row.array_id}_{row.task}" if row.task != NO_VAL else str(row.info.job_id)


def _task_id(row: JobRow) -> str:
    if row.tasks:
        return _tasks(row)
    return str(row.task) if row.task != NO_VAL else "N/A"


def or_null(text: str) -> str:
    """Return a text, or what Slurm prints where there is none."""
    return text or "(null)"


def _exec_host(row: JobRow) -> str:
    info = row.info
    if not info.batch:
        return info.submit_host or "n/a"
    return expand(info.node_list)[0] if info.node_list else "n/a"


def time_left_s(row: JobRow) -> int:
    """Return how much is left of the time limit; INFINITE without one."""
    info = row.info
    if info.time_limit_min == INFINITE:
        return INFINITE
    return info.time_limit_min * 60 - info.run_s


def _limit(seconds: int) -> str:
    return "UNLIMITED" if seconds == INFINITE else checked_time(seconds)


def _time_limit(row: JobRow) -> str:
    minutes = row.info.time_limit_min
    return _limit(INFINITE if minutes == INFINITE else minutes * 60)


def _end_time(row: JobRow) -> str:
    info = row.info
    if info.time_limit_min == INFINITE and (info.end_s > row.now_s or _runs_on(info)):
        return "NONE"
    return row.clock.moment(info.end_s)


def _runs_on(info: JobInfo) -> bool:
    return info.state.base is JobBase.RUNNING and not info.end_s


def memory_mb(info: JobInfo) -> int:
    """Return the memory that is asked for, on a node or for a cpu; 0 for none, or for all."""
    asked = info.memory_per_cpu_mb or info.memory_per_node_mb
    return 0 if asked == ALL_MEMORY else asked


def _reason_list(row: JobRow) -> str:
    state = row.info.state
    told = state.base in _TOLD_WITH_REASON or state.staging_out
    if told and not state.completing:
        return f"({row.reason})"
    return row.info.node_list


def _tres_per_node(row: JobRow) -> str:
    return ",".join(f"gres:{name}:{count}" for name, count in row.info.gres.items()) or "N/A"


def _time_left(row: JobRow) -> str:
    return _limit(time_left_s(row))


def _time_used(row: JobRow) -> str:
    return checked_time(row.info.run_s)


def _min_cpus(row: JobRow) -> str:
    return with_unit(row.info.min_cpus_per_node, convert=row.convert)


def _min_memory(row: JobRow) -> str:
    return with_unit(memory_mb(row.info), "M", convert=row.convert)


def _submit_host(row: JobRow) -> str:
    return row.info.node_list if row.info.batch else row.info.submit_host


def _id(row: JobRow) -> tuple[int, int]:
    if row.task == NO_VAL:
        return row.info.job_id, NO_VAL
    return row.array_id, row.task


def _normalized(row: JobRow) -> str:
    return f"{row.info.priority / _PRIORITIES:.14f}"


def _tier_and_priority(row: JobRow) -> tuple[int, int]:
    return row.tier, row.info.priority


def _tres(row: JobRow) -> str:
    """Return what it has or asks for, of the resources that are counted."""
    info = row.info
    nodes = info.num_nodes if info.node_list else info.min_nodes
    memory = with_unit(info.total_memory_mb, "M", convert=row.convert)
    parts = [f"cpu={info.num_cpus}", f"node={nodes}", f"billing={info.billing}"]
    if info.total_memory_mb:
        parts.insert(1, f"mem={memory}")
    for name, size_mb in info.tres.items():
        parts.append(f"{name}={with_unit(size_mb, 'M', convert=row.convert)}")
    return ",".join(parts)


def _pending_s(row: JobRow) -> int:
    info = row.info
    started = info.start_s if info.state.base is not JobBase.PENDING else 0
    return max(0, (started or row.now_s) - info.submit_s)


def _sorted(title: str, read: Callable[[JobRow], Any], **more: bool) -> Column[JobRow]:
    """Return a field that shows what it is sorted by."""
    return Column(title, lambda row: str(read(row)), sort=read, **more)


def _or_null(title: str, read: Callable[[JobInfo], str], **more: Any) -> Column[JobRow]:
    """Return a field of a text that a job need not have."""
    return Column(title, lambda row: or_null(read(row.info)), **more)


def _moment(title: str, read_s: Callable[[JobInfo], int], **more: Any) -> Column[JobRow]:
    """Return a field of a moment, which is 0 if there is none."""
    return Column(title, lambda row: row.clock.moment(read_s(row.info)), **more)


def _count(title: str, read: Callable[[JobInfo], int]) -> Column[JobRow]:
    """Return a field of a number, without a letter."""
    return Column(title, lambda row: str(read(row.info)))


def _std(name: str) -> Column[JobRow]:
    field = f"std_{name}"

    def read(row: JobRow) -> str:
        if name == "err" and not row.info.batch:
            return "N/A"
        return getattr(row.info, field) or "(null)"

    return Column(f"- std{name} STD{name.upper()}", read)


COLUMNS: Final[tuple[Column[JobRow], ...]] = (
    _or_null("a account ACCOUNT", lambda info: info.account),
    Column("A jobid JOBID", lambda row: str(row.info.job_id)),
    Column("b gres,tres-per-node TRES_PER_NODE", _tres_per_node, sort=alike),
    Column("B batchhost EXEC_HOST", _exec_host, sort=_submit_host),
    Column("c mincpus MIN_CPUS", _min_cpus, sort=alike),
    _sorted("C numcpus CPUS", lambda row: row.info.num_cpus),
    Column("d mintmpdisk MIN_TMP_DISK", lambda _: "0", sort=alike),
    _sorted("D numnodes NODES", lambda row: row.info.num_nodes),
    Column("e endtime END_TIME", _end_time, sort=lambda row: row.info.end_s),
    _or_null("E dependency DEPENDENCY", lambda info: info.dependency),
    _or_null("f feature FEATURES", lambda info: info.features, sort=alike),
    Column("F arrayjobid ARRAY_JOB_ID", lambda row: str(row.array_id)),
    _sorted("g groupname GROUP", lambda row: row.group),
    _sorted("G groupid GROUP", lambda row: row.info.group_id),
    Column("h oversubscribe,shared OVER_SUBSCRIBE", lambda row: row.info.sharing, sort=alike),
    Column("H sockets SOCKETS_PER_NODE", lambda _: "*", sort=alike),
    Column("i jobarrayid JOBID", shown_id, sort=_id),
    Column("I cores CORES_PER_SOCKET", lambda _: "*", sort=alike),
    _sorted("j name NAME", lambda row: row.info.name),
    Column("J threads THREADS_PER_CORE", lambda _: "*", sort=alike),
    _or_null("k comment COMMENT", lambda info: info.comment),
    Column("K arraytaskid ARRAY_TASK_ID", _task_id),
    Column(
        "l timelimit TIME_LIMIT", _time_limit, cut=False, sort=lambda row: row.info.time_limit_min
    ),
    Column("L timeleft TIME_LEFT", _time_left, cut=False, sort=time_left_s),
    Column("m minmemory MIN_MEMORY", _min_memory, sort=lambda row: memory_mb(row.info)),
    Column("M timeused TIME", _time_used, cut=False, sort=lambda row: row.info.run_s),
    Column("n reqnodes REQ_NODES", lambda row: row.info.required_nodes, cut=False, sort=alike),
    Column(
        "N nodelist,nodes NODELIST",
        lambda row: row.info.node_list,
        cut=False,
        cut_heading=False,
        sort=lambda row: first_node_key(row.info.node_list),
    ),
    _or_null("o command COMMAND", lambda info: info.command),
    Column("O contiguous CONTIGUOUS", lambda _: "0", sort=alike),
    Column("p priority PRIORITY", _normalized, sort=_tier_and_priority),
    _sorted("P partition PARTITION", lambda row: row.partition),
    _or_null("q qos QOS", lambda info: info.qos),
    Column("Q prioritylong PRIORITY", lambda row: str(row.info.priority), sort=_tier_and_priority),
    Column("r reason REASON", lambda row: row.reason),
    Column("R reasonlist NODELIST(REASON)", _reason_list, cut=False, cut_heading=False),
    Column("s selectjobinfo -", lambda _: ""),
    _moment("S starttime START_TIME", lambda info: info.start_s),
    _sorted("t statecompact ST", lambda row: state_letters(row.info.state)),
    _sorted("T state STATE", lambda row: state_text(row.info.state)),
    _sorted("u username USER", lambda row: row.info.user),
    _sorted("U userid UID", lambda row: row.info.user_id),
    _or_null(
        "v reservation RESERVATION",
        lambda info: info.reservation,
        sort=lambda row: row.info.reservation,
    ),
    _moment(
        "V submittime SUBMIT_TIME", lambda info: info.submit_s, sort=lambda row: row.info.submit_s
    ),
    _or_null("w wckey WCKEY", lambda info: info.wckey),
    _or_null("W licenses LICENSES", lambda info: info.licenses),
    Column("x - EXC_NODES", lambda row: row.info.excluded_nodes, cut=False),
    fixed("X corespec CORE_SPEC", "N/A"),
    Column("y nice NICE", lambda row: str(row.info.nice)),
    _or_null(
        "Y schednodes SCHEDNODES", lambda info: info.planned_nodes, cut=False, cut_heading=False
    ),
    Column("z sct S:C:T", lambda _: "*:*:*", sort=alike),
    Column("Z workdir WORK_DIR", lambda row: row.info.work_dir),
    _moment("- accruetime ACCRUE_TIME", lambda info: info.accrue_s),
    _or_null("- admin_comment ADMIN_COMMENT", lambda info: info.admin_comment),
    _or_null("- allocnodes ALLOC_NODES", lambda info: info.submit_host),
    fixed("- allocsid ALLOC_SID", "0"),
    fixed("- associd ASSOC_ID", "0"),
    _count("- batchflag BATCH_FLAG", lambda info: int(info.batch)),
    fixed("- boardspernode BOARDS_PER_NODE", "N/A"),
    _or_null("- burstbuffer BURST_BUFFER", lambda info: info.burst_buffer),
    _or_null("- burstbufferstate BURST_BUFFER_STATE", lambda info: info.burst_buffer_state),
    Column("- cluster CLUSTER", lambda row: row.cluster),
    fixed("- clusterfeature CLUSTER_FEATURES", "(null)"),
    _or_null("- container CONTAINER", lambda info: info.container),
    _count("- cpus-per-task,cpuspertask CPUS_PER_TASK", lambda info: info.cpus_per_task),
    fixed("- cpus-per-tres CPUS_PER_TRES", "N/A"),
    _moment("- deadline DEADLINE", lambda info: info.deadline_s),
    fixed("- delayboot DELAY_BOOT", "0:00"),
    Column("- derivedec DERIVED_EC", lambda row: str(row.info.derived_exit_code)),
    _moment("- eligibletime ELIGIBLE_TIME", lambda info: info.eligible_s),
    Column("- exit_code EXIT_CODE", lambda row: str(row.info.exit_code)),
    fixed("- hetjobid,packjobid HET_JOB_ID", "N/A"),
    fixed("- hetjobidset,packjobidset HET_JOB_ID_SET", "N/A"),
    fixed("- hetjoboffset,packjoboffset HET_JOB_OFFSET", "N/A"),
    _moment("- lastschedeval LAST_SCHED_EVAL", lambda info: info.evaluated_s),
    _count("- maxcpus MAX_CPUS", lambda info: info.num_cpus),
    _count("- maxnodes MAX_NODES", lambda info: info.max_nodes or info.num_nodes),
    fixed("- mcslabel MCSLABEL", "N/A"),
    fixed("- mem-per-tres MEM_PER_TRES", "N/A"),
    Column("- mintime TIME_MIN", lambda row: run_time(row.info.time_min_min * 60)),
    fixed("- network NETWORK", "(null)"),
    fixed("- ntperboard NTASKS_PER_BOARD", "0"),
    fixed("- ntpercore NTASKS_PER_CORE", "N/A"),
    _count("- ntpernode NTASKS_PER_NODE", lambda info: info.ntasks_per_node),
    fixed("- ntpersocket NTASKS_PER_SOCKET", "N/A"),
    _count("- numtasks,numtask TASKS", lambda info: info.num_tasks),
    fixed("- origin ORIGIN", "NA"),
    fixed("- originraw ORIGIN_RAW", "NA"),
    Column("- pendingtime PENDING_TIME", lambda row: str(_pending_s(row))),
    _moment("- preempttime PREEMPT_TIME", lambda info: info.preempt_s),
    fixed("- prefer PREFER", "(null)"),
    fixed("- profile PROFILE", "NotSet"),
    fixed("- reboot REBOOT", "0"),
    fixed("- reqswitch REQ_SWITCH", "0"),
    _count("- requeue REQUEUE", lambda info: int(info.requeue)),
    fixed("- resizetime RESIZE_TIME", "N/A"),
    _count("- restartcnt RESTART_COUNT", lambda info: info.restart_cnt),
    fixed("- siblingsactive ACTIVE_SIBLINGS", "NA"),
    fixed("- siblingsactiveraw ACTIVE_SIBLINGS_RAW", "NA"),
    fixed("- siblingsviable VIABLE_SIBLINGS", "NA"),
    fixed("- siblingsviableraw VIABLE_SIBLINGS_RAW", "NA"),
    fixed("- sperboard SOCKETS_PER_BOARD", "0"),
    _std("err"),
    _std("in"),
    _std("out"),
    _or_null("- system_comment SYSTEM_COMMENT", lambda info: info.system_comment),
    Column("- tres-alloc,tres TRES_ALLOC", _tres),
    fixed("- tres-bind TRES_BIND", "N/A"),
    fixed("- tres-freq TRES_FREQ", "N/A"),
    fixed("- tres-per-job TRES_PER_JOB", "N/A"),
    fixed("- tres-per-socket TRES_PER_SOCKET", "N/A"),
    fixed("- tres-per-task TRES_PER_TASK", "N/A"),
    fixed("- wait4switch WAIT4SWITCH", "0:00"),
)
"""What squeue can show of a job."""

LETTERS: Final = by_letter(COLUMNS)
NAMES: Final = by_name(COLUMNS)
