"""``scontrol update`` of jobs: keys, their abbreviations, and what their values become."""

import re
from collections.abc import Callable
from typing import Any, Final

import attrs

from simctl.commands.arguments.options import UsageError
from simctl.commands.scontrol.jobs import read_jobs
from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.pairs import Pair, begins, not_negative, refuse_key, split_pairs
from simctl.wire.errno import slurm_strerror
from simctl.wire.hostlist import expand
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.messages import RequestJobInfo, RequestUpdateJob, ResponseJobInfo
from simctl.wire.resources import parse_gres
from simctl.wire.time_limits import parse_time_limit_min
from simctl.wire.times import parse_moment

Fields = dict[str, Any]
"""Fields of a RequestUpdateJob."""

_LARGEST_NICE: Final = 0x7FFFFFFF


@attrs.frozen
class JobKey:
    """A key of an update of a job: how much of it is enough, its name in errors, its reader."""

    least: int
    name: str
    read: Callable[[str, int], Fields]


def _field(field: str, convert: Callable[[str], Any] = str) -> Callable[[str, int], Fields]:
    return lambda text, _: {field: convert(text)}


def _moment(field: str) -> Callable[[str, int], Fields]:
    return lambda text, now_s: {field: parse_moment(text, now_s)}


def _nice(text: str) -> int:
    number = int(text or "100")
    if abs(number) > _LARGEST_NICE:
        raise ValueError(text)
    return number


def _node_count(text: str, _: int) -> Fields:
    least, dash, most = text.partition("-")
    low = not_negative(least)
    return {"min_nodes": low, "max_nodes": not_negative(most) if dash else low}


def _yes_or_no(text: str) -> bool:
    if text.lower() not in ("yes", "no", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("yes", "1")


def _limit(text: str) -> int:
    return parse_time_limit_min(text) or INFINITE


def _megabytes(text: str) -> int:
    """Read megabytes, or a number with K, M, G or T."""
    match = re.fullmatch(r"(\d+)([KMGT]?)B?", text.upper())
    if match is None:
        raise ValueError(text)
    units = {"K": 1, "": 1 << 10, "M": 1 << 10, "G": 1 << 20, "T": 1 << 30}
    return -(-int(match[1]) * units[match[2]] // 1024)


def _memory(field: str) -> Callable[[str, int], Fields]:
    return _field(field, _megabytes)


JOB_KEYS: Final[dict[str, JobKey]] = {
    "account": JobKey(1, "Account", _field("account")),
    "arraytaskthrottle": JobKey(10, "ArrayTaskThrottle", _field("array_limit", not_negative)),
    "comment": JobKey(3, "Comment", _field("comment")),
    "cpuspertask": JobKey(9, "CPUsPerTask", _field("cpus_per_task", not_negative)),
    "deadline": JobKey(3, "Deadline", _moment("deadline_s")),
    "dependency": JobKey(3, "Dependency", _field("dependency")),
    "eligibletime": JobKey(2, "EligibleTime", _moment("begin_s")),
    "excnodelist": JobKey(3, "ExcNodeList", _field("excluded", expand)),
    "gres": JobKey(2, "Gres", _field("gres", parse_gres)),
    "jobname": JobKey(4, "JobName", _field("name")),
    "mincpusnode": JobKey(4, "MinCPUsNode", _field("min_cpus_per_node", not_negative)),
    "minmemorycpu": JobKey(10, "MinMemoryCPU", _memory("memory_per_cpu_mb")),
    "minmemorynode": JobKey(10, "MinMemoryNode", _memory("memory_per_node_mb")),
    "name": JobKey(2, "Name", _field("name")),
    "nice": JobKey(2, "Nice", _field("nice", _nice)),
    "nodelist": JobKey(5, "NodeList", _field("nodes", expand)),
    "numnodes": JobKey(4, "NumNodes", _node_count),
    "numtasks": JobKey(8, "NumTasks", _field("num_tasks", not_negative)),
    "oversubscribe": JobKey(2, "OverSubscribe", _field("exclusive", lambda x: not _yes_or_no(x))),
    "partition": JobKey(2, "Partition", _field("partition")),
    "priority": JobKey(2, "Priority", _field("priority", not_negative)),
    "reqnodelist": JobKey(8, "ReqNodeList", _field("nodes", expand)),
    "reqnodes": JobKey(8, "ReqNodes", _node_count),
    "requeue": JobKey(4, "Requeue", _field("requeue", lambda text: int(_yes_or_no(text)))),
    "reservationname": JobKey(3, "ReservationName", _field("reservation")),
    "starttime": JobKey(2, "StartTime", _moment("begin_s")),
    "stdout": JobKey(6, "StdOut", _field("std_out")),
    "timelimit": JobKey(5, "TimeLimit", _field("time_limit_min", _limit)),
    "trespernode": JobKey(8, "TresPerNode", _field("gres", parse_gres)),
    "workdir": JobKey(2, "WorkDir", _field("work_dir")),
}
"""Keys of an update of a job."""

_UNBUILT: Final = frozenset(
    """
    admincomment batchfeatures burstbuffer clusterfeatures clusters container contiguous corespec
    delayboot endtime extra features licenses mailtype mailuser mcslabel mintmpdisknode network
    numcpus ntaskspernode power prefer qos reboot reqcores reqprocs reqsockets reqthreads shared
    sitefactor switches systemcomment thread-spec threadspec timemin userid wait-for-switch wckey
    """.split()
)


def _find(pair: Pair) -> JobKey:
    """Return what a key means, or the beginning of one that is long enough."""
    if pair.key in JOB_KEYS:
        return JOB_KEYS[pair.key]
    for name, found in JOB_KEYS.items():
        if begins(pair.key, name, found.least):
            return found
    raise refuse_key("jobid", pair, _UNBUILT)


async def update_jobs(order: Order) -> int:
    """Change jobs; each that is refused is told."""
    ids, fields, step = _read_changes(order)
    if not fields and not step:
        raise UsageError(1, "No changes specified")
    jobs = read_jobs((ids,))
    if step:
        fields["time_limit_min"] = await _changed_limit(order, jobs, step)
    status = 0
    for shown, who in jobs:
        rc = await order.ask(RequestUpdateJob(**who, **fields))
        if rc:
            order.complain(f"{slurm_strerror(rc)} for job {shown}")
            status = 1
    return status


def _read_changes(order: Order) -> tuple[str, Fields, str]:
    """Return the jobs that are meant, the fields to be set, and by how much the limit changes.

    Raises:
        UsageError: A key or a value is none, or not built.
    """
    site = order.call.site
    now_s = site.start_time_s + site.kernel.now_us // SECOND
    ids, step = "", ""
    fields: Fields = {}
    for pair in split_pairs(order.words, apart=True):
        value = pair.value
        if begins(pair.key, "jobid", 3) or pair.key == "arrayjobid":
            ids = value
            continue
        found = _find(pair)
        if found.name == "TimeLimit" and value[:1] in ("+", "-"):
            step = value
            continue
        try:
            fields |= found.read(value, now_s)
        except (ValueError, OverflowError):
            told = "" if found.name == "TimeLimit" else f": {value}"
            raise UsageError(1, f"scontrol: error: Invalid {found.name} value{told}") from None
    return ids, fields, step


async def _changed_limit(order: Order, jobs: list[tuple[str, Fields]], step: str) -> int:
    """Return a job's time limit, longer or shorter by some time.

    Raises:
        UsageError: There are several jobs, or there is no such limit.
    """
    if len(jobs) > 1:
        raise UsageError(
            1,
            "scontrol: error: TimeLimit increment/decrement not supported for multiple job IDs",
        )
    try:
        change_min = parse_time_limit_min(step[1:])
    except ValueError:
        raise UsageError(1, "scontrol: error: Invalid TimeLimit value") from None
    answer = await order.load(RequestJobInfo(job_id=jobs[0][1]["job_id"]), "slurm_load_jobs")
    if not isinstance(answer, ResponseJobInfo):
        raise UsageError(1)
    limit_min = answer.jobs[0].time_limit_min
    if limit_min == INFINITE:
        raise UsageError(1, "scontrol: error: the job has no time limit that could be changed so")
    if step[0] == "-" and change_min > limit_min:
        raise UsageError(
            1,
            "scontrol: error: TimeLimit decrement larger than current time limit "
            f"({change_min} > {limit_min})",
        )
    return limit_min + change_min if step[0] == "+" else limit_min - change_min
