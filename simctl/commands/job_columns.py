"""What squeue can show of a job: the letters of -o and the names of -O."""

from typing import Final

import attrs

from simctl.commands.columns import Column, checked_time, moment, with_unit
from simctl.commands.job_states import state_letters, state_text
from simctl.wire.arrays import format_tasks
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


def _or_null(text: str) -> str:
    return text or "(null)"


def _exec_host(row: JobRow) -> str:
    info = row.info
    if not info.batch:
        return info.submit_host or "n/a"
    return (info.node_list and _first_node(info.node_list)) or "n/a"


def _first_node(node_list: str) -> str:
    from simctl.wire.hostlist import expand  # noqa: PLC0415 - few ask for it

    return expand(node_list)[0]


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
    return moment(info.end_s)


def _runs_on(info: JobInfo) -> bool:
    return info.state.base is JobBase.RUNNING and not info.end_s


def memory_mb(info: JobInfo) -> int:
    """Return the memory that is asked for, on a node or for a cpu; 0 for none, or for all."""
    asked = info.memory_per_cpu_mb or info.memory_per_node_mb
    return 0 if asked == ALL_MEMORY else asked


def _reason_list(row: JobRow) -> str:
    state = row.info.state
    if not state.completing and state.base in _TOLD_WITH_REASON:
        return f"({row.reason})"
    return row.info.node_list


def _tres(row: JobRow) -> str:
    """Return what it has or asks for, of the resources that are counted."""
    info = row.info
    nodes = info.num_nodes if info.node_list else info.min_nodes
    memory = with_unit(info.total_memory_mb, "M", convert=row.convert)
    parts = [f"cpu={info.num_cpus}", f"node={nodes}", f"billing={info.num_cpus}"]
    if info.total_memory_mb:
        parts.insert(1, f"mem={memory}")
    return ",".join(parts)


def _tres_per_node(row: JobRow) -> str:
    return ",".join(f"gres:{name}:{count}" for name, count in row.info.gres.items()) or "N/A"


def _pending_s(row: JobRow) -> int:
    info = row.info
    started = info.start_s if info.state.base is not JobBase.PENDING else 0
    return max(0, (started or row.now_s) - info.submit_s)


LETTERS: Final[dict[str, Column[JobRow]]] = {
    "a": Column("ACCOUNT", lambda row: _or_null(row.info.account)),
    "A": Column("JOBID", lambda row: str(row.info.job_id)),
    "b": Column("TRES_PER_NODE", _tres_per_node),
    "B": Column("EXEC_HOST", _exec_host),
    "c": Column("MIN_CPUS", lambda row: with_unit(row.info.min_cpus_per_node, convert=row.convert)),
    "C": Column("CPUS", lambda row: str(row.info.num_cpus)),
    "d": Column("MIN_TMP_DISK", lambda _: "0"),
    "D": Column("NODES", lambda row: str(row.info.num_nodes)),
    "e": Column("END_TIME", _end_time),
    "E": Column("DEPENDENCY", lambda row: _or_null(row.info.dependency)),
    "f": Column("FEATURES", lambda row: _or_null(row.info.features)),
    "F": Column("ARRAY_JOB_ID", lambda row: str(row.array_id)),
    "g": Column("GROUP", lambda row: row.group),
    "G": Column("GROUP", lambda row: str(row.info.group_id)),
    "h": Column("OVER_SUBSCRIBE", lambda row: "OK" if row.info.shares else "NO"),
    "H": Column("SOCKETS_PER_NODE", lambda _: "*"),
    "i": Column("JOBID", shown_id),
    "I": Column("CORES_PER_SOCKET", lambda _: "*"),
    "j": Column("NAME", lambda row: row.info.name),
    "J": Column("THREADS_PER_CORE", lambda _: "*"),
    "k": Column("COMMENT", lambda row: _or_null(row.info.comment)),
    "K": Column("ARRAY_TASK_ID", _task_id),
    "l": Column("TIME_LIMIT", _time_limit, cut=False),
    "L": Column("TIME_LEFT", lambda row: _limit(time_left_s(row)), cut=False),
    "m": Column("MIN_MEMORY", lambda row: with_unit(memory_mb(row.info), "M", convert=row.convert)),
    "M": Column("TIME", lambda row: checked_time(row.info.run_s), cut=False),
    "n": Column("REQ_NODES", lambda row: row.info.required_nodes, cut=False),
    "N": Column("NODELIST", lambda row: row.info.node_list, cut=False, cut_heading=False),
    "o": Column("COMMAND", lambda row: _or_null(row.info.command)),
    "O": Column("CONTIGUOUS", lambda _: "0"),
    "p": Column("PRIORITY", lambda row: f"{row.info.priority / _PRIORITIES:.14f}"),
    "P": Column("PARTITION", lambda row: row.partition),
    "q": Column("QOS", lambda _: "normal"),
    "Q": Column("PRIORITY", lambda row: str(row.info.priority)),
    "r": Column("REASON", lambda row: row.reason),
    "R": Column("NODELIST(REASON)", _reason_list, cut=False, cut_heading=False),
    "s": Column("", lambda _: ""),
    "S": Column("START_TIME", lambda row: moment(row.info.start_s)),
    "t": Column("ST", lambda row: state_letters(row.info.state)),
    "T": Column("STATE", lambda row: state_text(row.info.state)),
    "u": Column("USER", lambda row: row.info.user),
    "U": Column("UID", lambda row: str(row.info.user_id)),
    "v": Column("RESERVATION", lambda row: _or_null(row.info.reservation)),
    "V": Column("SUBMIT_TIME", lambda row: moment(row.info.submit_s)),
    "w": Column("WCKEY", lambda _: "(null)"),
    "W": Column("LICENSES", lambda row: _or_null(row.info.licenses)),
    "x": Column("EXC_NODES", lambda row: row.info.excluded_nodes, cut=False),
    "X": Column("CORE_SPEC", lambda _: "N/A"),
    "y": Column("NICE", lambda row: str(row.info.nice)),
    "Y": Column(
        "SCHEDNODES",
        lambda row: _or_null(row.info.planned_nodes),
        cut=False,
        cut_heading=False,
    ),
    "z": Column("S:C:T", lambda _: "*:*:*"),
    "Z": Column("WORK_DIR", lambda row: row.info.work_dir),
}
"""The fields of -o."""

_BY_LETTER: Final = {
    "account": "a",
    "arrayjobid": "F",
    "arraytaskid": "K",
    "batchhost": "B",
    "command": "o",
    "comment": "k",
    "contiguous": "O",
    "cores": "I",
    "corespec": "X",
    "dependency": "E",
    "endtime": "e",
    "feature": "f",
    "gres": "b",
    "groupid": "G",
    "groupname": "g",
    "jobarrayid": "i",
    "jobid": "A",
    "licenses": "W",
    "mincpus": "c",
    "minmemory": "m",
    "mintmpdisk": "d",
    "name": "j",
    "nice": "y",
    "nodelist": "N",
    "nodes": "N",
    "numcpus": "C",
    "numnodes": "D",
    "oversubscribe": "h",
    "partition": "P",
    "priority": "p",
    "prioritylong": "Q",
    "qos": "q",
    "reason": "r",
    "reasonlist": "R",
    "reqnodes": "n",
    "reservation": "v",
    "schednodes": "Y",
    "sct": "z",
    "selectjobinfo": "s",
    "shared": "h",
    "sockets": "H",
    "starttime": "S",
    "state": "T",
    "statecompact": "t",
    "submittime": "V",
    "threads": "J",
    "timeleft": "L",
    "timelimit": "l",
    "timeused": "M",
    "tres-per-node": "b",
    "userid": "U",
    "username": "u",
    "wckey": "w",
    "workdir": "Z",
}


def _fixed(heading: str, text: str) -> Column[JobRow]:
    """Return a column for what is not simulated: every job has nothing, or the usual, of it."""
    return Column(heading, lambda _: text)


def _std(name: str) -> Column[JobRow]:
    field = f"std_{name}"

    def read(row: JobRow) -> str:
        if name == "err" and not row.info.batch:
            return "N/A"
        return getattr(row.info, field) or "(null)"

    return Column(f"STD{name.upper()}", read)


_NAMED: Final[dict[str, Column[JobRow]]] = {
    "accruetime": Column("ACCRUE_TIME", lambda row: moment(row.info.accrue_s)),
    "admin_comment": _fixed("ADMIN_COMMENT", "(null)"),
    "allocnodes": Column("ALLOC_NODES", lambda row: _or_null(row.info.submit_host)),
    "allocsid": _fixed("ALLOC_SID", "0"),
    "associd": _fixed("ASSOC_ID", "0"),
    "batchflag": Column("BATCH_FLAG", lambda row: str(int(row.info.batch))),
    "boardspernode": _fixed("BOARDS_PER_NODE", "N/A"),
    "burstbuffer": Column("BURST_BUFFER", lambda row: _or_null(row.info.burst_buffer)),
    "burstbufferstate": _fixed("BURST_BUFFER_STATE", "(null)"),
    "cluster": Column("CLUSTER", lambda row: row.cluster),
    "clusterfeature": _fixed("CLUSTER_FEATURES", "(null)"),
    "container": Column("CONTAINER", lambda row: _or_null(row.info.container)),
    "cpus-per-task": Column("CPUS_PER_TASK", lambda row: str(row.info.cpus_per_task)),
    "cpus-per-tres": _fixed("CPUS_PER_TRES", "N/A"),
    "deadline": Column("DEADLINE", lambda row: moment(row.info.deadline_s)),
    "delayboot": _fixed("DELAY_BOOT", "0:00"),
    "derivedec": Column("DERIVED_EC", lambda row: str(row.info.derived_exit_code)),
    "eligibletime": Column("ELIGIBLE_TIME", lambda row: moment(row.info.eligible_s)),
    "exit_code": Column("EXIT_CODE", lambda row: str(row.info.exit_code)),
    "hetjobid": _fixed("HET_JOB_ID", "N/A"),
    "hetjobidset": _fixed("HET_JOB_ID_SET", "N/A"),
    "hetjoboffset": _fixed("HET_JOB_OFFSET", "N/A"),
    "lastschedeval": Column("LAST_SCHED_EVAL", lambda row: moment(row.info.evaluated_s)),
    "maxcpus": Column("MAX_CPUS", lambda row: str(row.info.num_cpus)),
    "maxnodes": Column("MAX_NODES", lambda row: str(row.info.max_nodes or row.info.num_nodes)),
    "mcslabel": _fixed("MCSLABEL", "N/A"),
    "mem-per-tres": _fixed("MEM_PER_TRES", "N/A"),
    "mintime": _fixed("TIME_MIN", "0:00"),
    "network": _fixed("NETWORK", "(null)"),
    "ntperboard": _fixed("NTASKS_PER_BOARD", "0"),
    "ntpercore": _fixed("NTASKS_PER_CORE", "N/A"),
    "ntpernode": Column("NTASKS_PER_NODE", lambda row: str(row.info.ntasks_per_node)),
    "ntpersocket": _fixed("NTASKS_PER_SOCKET", "N/A"),
    "numtasks": Column("TASKS", lambda row: str(row.info.num_tasks)),
    "origin": _fixed("ORIGIN", "NA"),
    "originraw": _fixed("ORIGIN_RAW", "NA"),
    "pendingtime": Column("PENDING_TIME", lambda row: str(_pending_s(row))),
    "preempttime": Column("PREEMPT_TIME", lambda row: moment(row.info.preempt_s)),
    "prefer": _fixed("PREFER", "(null)"),
    "profile": _fixed("PROFILE", "NotSet"),
    "reboot": _fixed("REBOOT", "0"),
    "reqswitch": _fixed("REQ_SWITCH", "0"),
    "requeue": Column("REQUEUE", lambda row: str(int(row.info.requeue))),
    "resizetime": _fixed("RESIZE_TIME", "N/A"),
    "restartcnt": Column("RESTART_COUNT", lambda row: str(row.info.restart_cnt)),
    "siblingsactive": _fixed("ACTIVE_SIBLINGS", "NA"),
    "siblingsactiveraw": _fixed("ACTIVE_SIBLINGS_RAW", "NA"),
    "siblingsviable": _fixed("VIABLE_SIBLINGS", "NA"),
    "siblingsviableraw": _fixed("VIABLE_SIBLINGS_RAW", "NA"),
    "sperboard": _fixed("SOCKETS_PER_BOARD", "0"),
    "stderr": _std("err"),
    "stdin": _std("in"),
    "stdout": _std("out"),
    "system_comment": _fixed("SYSTEM_COMMENT", "(null)"),
    "tres-alloc": Column("TRES_ALLOC", _tres),
    "tres-bind": _fixed("TRES_BIND", "N/A"),
    "tres-freq": _fixed("TRES_FREQ", "N/A"),
    "tres-per-job": _fixed("TRES_PER_JOB", "N/A"),
    "tres-per-socket": _fixed("TRES_PER_SOCKET", "N/A"),
    "tres-per-task": _fixed("TRES_PER_TASK", "N/A"),
    "wait4switch": _fixed("WAIT4SWITCH", "0:00"),
}
_ALSO: Final = {
    "cpuspertask": "cpus-per-task",
    "numtask": "numtasks",
    "packjobid": "hetjobid",
    "packjobidset": "hetjobidset",
    "packjoboffset": "hetjoboffset",
    "tres": "tres-alloc",
}

NAMES: Final[dict[str, Column[JobRow]]] = {
    **{name: LETTERS[letter] for name, letter in _BY_LETTER.items()},
    **_NAMED,
    **{name: _NAMED[other] for name, other in _ALSO.items()},
}
"""The fields of -O, in small letters."""
