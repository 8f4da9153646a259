"""What ``squeue --steps`` can show of a step: the letters of -o and the names of -O."""

from typing import Final

import attrs

from simctl.commands.columns.formats import STANDARD, Clock, Column, checked_time
from simctl.wire.ids import INFINITE, NO_VAL, SLURM_BATCH_SCRIPT
from simctl.wire.info import StepInfo


@attrs.frozen(kw_only=True)
class StepRow:
    """A line about a step."""

    info: StepInfo
    cluster: str
    clock: Clock = STANDARD


def step_name(info: StepInfo) -> str:
    """Return the step's part of its id: a number, or ``batch``."""
    return "batch" if info.step_id == SLURM_BATCH_SCRIPT else str(info.step_id)


def _id(row: StepRow) -> str:
    info = row.info
    in_array = info.array_task_id != NO_VAL
    job = f"{info.array_job_id}_{info.array_task_id}" if in_array else str(info.job_id)
    return f"{job}.{step_name(info)}"


def _limit(row: StepRow) -> str:
    minutes = row.info.time_limit_min
    return "UNLIMITED" if minutes == INFINITE else checked_time(minutes * 60)


def _gres(row: StepRow) -> str:
    return ",".join(f"gres:{name}:{count}" for name, count in row.info.gres.items()) or "N/A"


def _task(row: StepRow) -> str:
    task = row.info.array_task_id
    return str(task) if task != NO_VAL else "N/A"


LETTERS: Final[dict[str, Column[StepRow]]] = {
    "A": Column("TASKS", lambda row: str(row.info.num_tasks)),
    "b": Column("TRES_PER_NODE", _gres),
    "i": Column("STEPID", _id),
    "j": Column("NAME", lambda row: row.info.name),
    "l": Column("TIME_LIMIT", _limit, cut=False),
    "M": Column("TIME", lambda row: checked_time(row.info.run_s), cut=False),
    "N": Column("NODELIST", lambda row: row.info.node_list, cut=False, cut_heading=False),
    "P": Column("PARTITION", lambda row: row.info.partition),
    "S": Column("START_TIME", lambda row: row.clock.moment(row.info.start_s)),
    "u": Column("USER", lambda row: row.info.user),
    "U": Column("USER", lambda row: str(row.info.user_id)),
}
"""The fields of -o."""

_BY_LETTER: Final = {
    "numtasks": "A",
    "numtask": "A",
    "gres": "b",
    "tres-per-node": "b",
    "stepid": "i",
    "stepname": "j",
    "timelimit": "l",
    "timeused": "M",
    "nodes": "N",
    "partition": "P",
    "starttime": "S",
    "username": "u",
    "userid": "U",
}


def _fixed(heading: str, text: str) -> Column[StepRow]:
    return Column(heading, lambda _: text)


NAMES: Final[dict[str, Column[StepRow]]] = {
    **{name: LETTERS[letter] for name, letter in _BY_LETTER.items()},
    "arrayjobid": Column("ARRAY_JOB_ID", lambda row: str(row.info.array_job_id or row.info.job_id)),
    "arraytaskid": Column("ARRAY_TASK_ID", _task),
    "cluster": Column("CLUSTER", lambda row: row.cluster),
    "container": _fixed("CONTAINER", "(null)"),
    "cpufreq": _fixed("CPU_FREQ", "Dflt-Dflt:Dflt"),
    "cpus-per-tres": _fixed("CPUS_PER_TRES", "N/A"),
    "jobid": Column("JOB_ID", lambda row: str(row.info.job_id)),
    "mem-per-tres": _fixed("MEM_PER_TRES", "N/A"),
    "network": _fixed("NETWORK", "(null)"),
    "numcpus": Column("NUM_CPUS", lambda row: str(row.info.num_cpus)),
    "resvports": _fixed("RESERVED_PORTS", "(null)"),
    "stepstate": _fixed("STATE", "RUNNING"),
    "tres-bind": _fixed("TRES_BIND", "N/A"),
    "tres-freq": _fixed("TRES_FREQ", "N/A"),
    "tres-per-job": _fixed("TRES_PER_STEP", "N/A"),
    "tres-per-socket": _fixed("TRES_PER_SOCKET", "N/A"),
    "tres-per-step": _fixed("TRES_PER_STEP", "N/A"),
    "tres-per-task": _fixed("TRES_PER_TASK", "N/A"),
}
"""The fields of -O, in small letters."""
