"""The names of squeue -O: the fields of -o, and those that have no letter."""

from typing import Final

from simctl.commands.columns.formats import Column, run_time, with_unit
from simctl.commands.columns.jobs import LETTERS, JobRow, or_null
from simctl.wire.states import JobBase


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
    "accruetime": Column("ACCRUE_TIME", lambda row: row.clock.moment(row.info.accrue_s)),
    "admin_comment": Column("ADMIN_COMMENT", lambda row: or_null(row.info.admin_comment)),
    "allocnodes": Column("ALLOC_NODES", lambda row: or_null(row.info.submit_host)),
    "allocsid": _fixed("ALLOC_SID", "0"),
    "associd": _fixed("ASSOC_ID", "0"),
    "batchflag": Column("BATCH_FLAG", lambda row: str(int(row.info.batch))),
    "boardspernode": _fixed("BOARDS_PER_NODE", "N/A"),
    "burstbuffer": Column("BURST_BUFFER", lambda row: or_null(row.info.burst_buffer)),
    "burstbufferstate": Column(
        "BURST_BUFFER_STATE", lambda row: or_null(row.info.burst_buffer_state)
    ),
    "cluster": Column("CLUSTER", lambda row: row.cluster),
    "clusterfeature": _fixed("CLUSTER_FEATURES", "(null)"),
    "container": Column("CONTAINER", lambda row: or_null(row.info.container)),
    "cpus-per-task": Column("CPUS_PER_TASK", lambda row: str(row.info.cpus_per_task)),
    "cpus-per-tres": _fixed("CPUS_PER_TRES", "N/A"),
    "deadline": Column("DEADLINE", lambda row: row.clock.moment(row.info.deadline_s)),
    "delayboot": _fixed("DELAY_BOOT", "0:00"),
    "derivedec": Column("DERIVED_EC", lambda row: str(row.info.derived_exit_code)),
    "eligibletime": Column("ELIGIBLE_TIME", lambda row: row.clock.moment(row.info.eligible_s)),
    "exit_code": Column("EXIT_CODE", lambda row: str(row.info.exit_code)),
    "hetjobid": _fixed("HET_JOB_ID", "N/A"),
    "hetjobidset": _fixed("HET_JOB_ID_SET", "N/A"),
    "hetjoboffset": _fixed("HET_JOB_OFFSET", "N/A"),
    "lastschedeval": Column("LAST_SCHED_EVAL", lambda row: row.clock.moment(row.info.evaluated_s)),
    "maxcpus": Column("MAX_CPUS", lambda row: str(row.info.num_cpus)),
    "maxnodes": Column("MAX_NODES", lambda row: str(row.info.max_nodes or row.info.num_nodes)),
    "mcslabel": _fixed("MCSLABEL", "N/A"),
    "mem-per-tres": _fixed("MEM_PER_TRES", "N/A"),
    "mintime": Column("TIME_MIN", lambda row: run_time(row.info.time_min_min * 60)),
    "network": _fixed("NETWORK", "(null)"),
    "ntperboard": _fixed("NTASKS_PER_BOARD", "0"),
    "ntpercore": _fixed("NTASKS_PER_CORE", "N/A"),
    "ntpernode": Column("NTASKS_PER_NODE", lambda row: str(row.info.ntasks_per_node)),
    "ntpersocket": _fixed("NTASKS_PER_SOCKET", "N/A"),
    "numtasks": Column("TASKS", lambda row: str(row.info.num_tasks)),
    "origin": _fixed("ORIGIN", "NA"),
    "originraw": _fixed("ORIGIN_RAW", "NA"),
    "pendingtime": Column("PENDING_TIME", lambda row: str(_pending_s(row))),
    "preempttime": Column("PREEMPT_TIME", lambda row: row.clock.moment(row.info.preempt_s)),
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
    "system_comment": Column("SYSTEM_COMMENT", lambda row: or_null(row.info.system_comment)),
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
