"""``scontrol update`` of jobs: keys, their abbreviations, and what their values become."""

from collections.abc import Callable
from typing import Any, Final

import attrs

from simctl.commands.options import UsageError
from simctl.commands.scontrol_jobs import read_jobs
from simctl.commands.scontrol_order import Order
from simctl.wire.conf import parse_time_limit_min
from simctl.wire.errno import slurm_strerror
from simctl.wire.hostlist import expand
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.messages import RequestJobInfo, RequestUpdateJob, ResponseJobInfo
from simctl.wire.resources import parse_gres, parse_memory_mb
from simctl.wire.times import parse_moment

Fields = dict[str, Any]
"""Fields of a RequestUpdateJob."""

_LARGEST_NICE: Final = 0x7FFFFFFF


def split_pairs(words: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Return the words of an update: key in lower case, value, and the word itself.

    Raises:
        UsageError: A word is no KEY=VALUE.
    """
    found = []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(1, f"Invalid input: {word}", "Request aborted")
        found.append((key.lower(), value.strip("\"'"), word))
    return found


def refuse_key(entity: str, key: str, word: str, unbuilt: frozenset[str]) -> UsageError:
    """Return how a key is refused: as one that simctl lacks, or as none of Slurm's."""
    if any(len(key) >= _ENOUGH and name.startswith(key) for name in unbuilt):
        return UsageError(
            1, f"scontrol: error: update {entity} {key}= is known to Slurm but not simulated yet"
        )
    return UsageError(1, f"Update of this parameter is not supported: {word}", "Request aborted")


_ENOUGH: Final = 3


@attrs.frozen
class Key:
    """A key of an update of a job: how much of it is enough, its name in errors, its reader."""

    least: int
    name: str
    read: Callable[[str, int], Fields]


def _field(field: str, convert: Callable[[str], Any] = str) -> Callable[[str, int], Fields]:
    return lambda text, _: {field: convert(text)}


def _moment(field: str) -> Callable[[str, int], Fields]:
    return lambda text, now_s: {field: parse_moment(text, now_s)}


def _not_negative(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


def _nice(text: str) -> int:
    number = int(text or "100")
    if abs(number) > _LARGEST_NICE:
        raise ValueError(text)
    return number


def _node_count(text: str, _: int) -> Fields:
    least, dash, most = text.partition("-")
    low = _not_negative(least)
    return {"min_nodes": low, "max_nodes": _not_negative(most) if dash else low}


def _yes_or_no(text: str) -> bool:
    if text.lower() not in ("yes", "no", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("yes", "1")


def _limit(text: str) -> int:
    return parse_time_limit_min(text) or INFINITE


def _memory(field: str) -> Callable[[str, int], Fields]:
    return _field(field, parse_memory_mb)


_TRES_PREFIX: Final = "gres:"

JOB_KEYS: Final[dict[str, Key]] = {
    "account": Key(1, "Account", _field("account")),
    "arraytaskthrottle": Key(10, "ArrayTaskThrottle", _field("array_limit", _not_negative)),
    "comment": Key(3, "Comment", _field("comment")),
    "cpuspertask": Key(9, "CPUsPerTask", _field("cpus_per_task", _not_negative)),
    "deadline": Key(3, "Deadline", _moment("deadline_s")),
    "dependency": Key(3, "Dependency", _field("dependency")),
    "eligibletime": Key(2, "EligibleTime", _moment("begin_s")),
    "excnodelist": Key(3, "ExcNodeList", _field("excluded", expand)),
    "gres": Key(2, "Gres", _field("gres", parse_gres)),
    "jobname": Key(4, "JobName", _field("name")),
    "mincpusnode": Key(4, "MinCPUsNode", _field("min_cpus_per_node", _not_negative)),
    "minmemorycpu": Key(10, "MinMemoryCPU", _memory("memory_per_cpu_mb")),
    "minmemorynode": Key(10, "MinMemoryNode", _memory("memory_per_node_mb")),
    "name": Key(2, "Name", _field("name")),
    "nice": Key(2, "Nice", _field("nice", _nice)),
    "nodelist": Key(5, "NodeList", _field("nodes", expand)),
    "numcpus": Key(4, "NumCPUs", _field("num_cpus", _not_negative)),
    "numnodes": Key(4, "NumNodes", _node_count),
    "numtasks": Key(8, "NumTasks", _field("num_tasks", _not_negative)),
    "oversubscribe": Key(2, "OverSubscribe", _field("exclusive", lambda x: not _yes_or_no(x))),
    "partition": Key(2, "Partition", _field("partition")),
    "priority": Key(2, "Priority", _field("priority", _not_negative)),
    "reqnodelist": Key(8, "ReqNodeList", _field("nodes", expand)),
    "reqnodes": Key(8, "ReqNodes", _node_count),
    "requeue": Key(4, "Requeue", _field("requeue", lambda text: int(_yes_or_no(text)))),
    "reservationname": Key(3, "ReservationName", _field("reservation")),
    "starttime": Key(2, "StartTime", _moment("begin_s")),
    "stdout": Key(6, "StdOut", _field("std_out")),
    "timelimit": Key(5, "TimeLimit", _field("time_limit_min", _limit)),
    "trespernode": Key(8, "TresPerNode", _field("gres", parse_gres)),
    "workdir": Key(2, "WorkDir", _field("work_dir")),
}
"""Keys of an update of a job."""

_UNBUILT: Final = frozenset(
    """
    admincomment batchfeatures burstbuffer clusterfeatures clusters container contiguous corespec
    delayboot endtime extra features licenses mailtype mailuser mcslabel mintmpdisknode network
    ntaskspernode power prefer qos reboot reqcores reqprocs reqsockets reqthreads shared
    sitefactor switches systemcomment thread-spec threadspec timemin userid wait-for-switch wckey
    """.split()
)


def _find(key: str, word: str) -> Key:
    """Return what a key means, or the beginning of one that is long enough."""
    if key in JOB_KEYS:
        return JOB_KEYS[key]
    for name, found in JOB_KEYS.items():
        if len(key) >= found.least and name.startswith(key):
            return found
    raise refuse_key("jobid", key, word, _UNBUILT)


async def update_jobs(order: Order) -> int:
    """Change jobs; each that is refused is told."""
    call = order.call
    fields: Fields = {}
    ids, step = "", ""
    now_s = call.site.start_time_s + call.site.kernel.now_us // SECOND
    for key, value, word in split_pairs(order.words):
        if key in ("jobid", "job", "arrayjobid"):
            ids = value
            continue
        found = _find(key, word)
        if found.name == "TimeLimit" and value[:1] in ("+", "-"):
            step = value
            continue
        try:
            fields |= found.read(value, now_s)
        except (ValueError, OverflowError):
            raise UsageError(1, f"scontrol: error: Invalid {found.name} value: {value}") from None
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
