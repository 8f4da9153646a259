"""What squeue can show of a job: the letters of -o."""

from typing import Final

import attrs

from simctl.commands.columns.formats import STANDARD, Clock, Column, checked_time, with_unit
from simctl.commands.columns.job_states import state_letters, state_text
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


LETTERS: Final[dict[str, Column[JobRow]]] = {
    "a": Column("ACCOUNT", lambda row: or_null(row.info.account)),
    "A": Column("JOBID", lambda row: str(row.info.job_id)),
    "b": Column("TRES_PER_NODE", _tres_per_node),
    "B": Column("EXEC_HOST", _exec_host),
    "c": Column("MIN_CPUS", lambda row: with_unit(row.info.min_cpus_per_node, convert=row.convert)),
    "C": Column("CPUS", lambda row: str(row.info.num_cpus)),
    "d": Column("MIN_TMP_DISK", lambda _: "0"),
    "D": Column("NODES", lambda row: str(row.info.num_nodes)),
    "e": Column("END_TIME", _end_time),
    "E": Column("DEPENDENCY", lambda row: or_null(row.info.dependency)),
    "f": Column("FEATURES", lambda row: or_null(row.info.features)),
    "F": Column("ARRAY_JOB_ID", lambda row: str(row.array_id)),
    "g": Column("GROUP", lambda row: row.group),
    "G": Column("GROUP", lambda row: str(row.info.group_id)),
    "h": Column("OVER_SUBSCRIBE", lambda row: row.info.sharing),
    "H": Column("SOCKETS_PER_NODE", lambda _: "*"),
    "i": Column("JOBID", shown_id),
    "I": Column("CORES_PER_SOCKET", lambda _: "*"),
    "j": Column("NAME", lambda row: row.info.name),
    "J": Column("THREADS_PER_CORE", lambda _: "*"),
    "k": Column("COMMENT", lambda row: or_null(row.info.comment)),
    "K": Column("ARRAY_TASK_ID", _task_id),
    "l": Column("TIME_LIMIT", _time_limit, cut=False),
    "L": Column("TIME_LEFT", lambda row: _limit(time_left_s(row)), cut=False),
    "m": Column("MIN_MEMORY", lambda row: with_unit(memory_mb(row.info), "M", convert=row.convert)),
    "M": Column("TIME", lambda row: checked_time(row.info.run_s), cut=False),
    "n": Column("REQ_NODES", lambda row: row.info.required_nodes, cut=False),
    "N": Column("NODELIST", lambda row: row.info.node_list, cut=False, cut_heading=False),
    "o": Column("COMMAND", lambda row: or_null(row.info.command)),
    "O": Column("CONTIGUOUS", lambda _: "0"),
    "p": Column("PRIORITY", lambda row: f"{row.info.priority / _PRIORITIES:.14f}"),
    "P": Column("PARTITION", lambda row: row.partition),
    "q": Column("QOS", lambda row: or_null(row.info.qos)),
    "Q": Column("PRIORITY", lambda row: str(row.info.priority)),
    "r": Column("REASON", lambda row: row.reason),
    "R": Column("NODELIST(REASON)", _reason_list, cut=False, cut_heading=False),
    "s": Column("", lambda _: ""),
    "S": Column("START_TIME", lambda row: row.clock.moment(row.info.start_s)),
    "t": Column("ST", lambda row: state_letters(row.info.state)),
    "T": Column("STATE", lambda row: state_text(row.info.state)),
    "u": Column("USER", lambda row: row.info.user),
    "U": Column("UID", lambda row: str(row.info.user_id)),
    "v": Column("RESERVATION", lambda row: or_null(row.info.reservation)),
    "V": Column("SUBMIT_TIME", lambda row: row.clock.moment(row.info.submit_s)),
    "w": Column("WCKEY", lambda row: or_null(row.info.wckey)),
    "W": Column("LICENSES", lambda row: or_null(row.info.licenses)),
    "x": Column("EXC_NODES", lambda row: row.info.excluded_nodes, cut=False),
    "X": Column("CORE_SPEC", lambda _: "N/A"),
    "y": Column("NICE", lambda row: str(row.info.nice)),
    "Y": Column(
        "SCHEDNODES",
        lambda row: or_null(row.info.planned_nodes),
        cut=False,
        cut_heading=False,
    ),
    "z": Column("S:C:T", lambda _: "*:*:*"),
    "Z": Column("WORK_DIR", lambda row: row.info.work_dir),
}
"""The fields of -o."""
