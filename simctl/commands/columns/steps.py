"""What ``squeue --steps`` can show of a step: the letters of -o and the names of -O."""

from typing import Final

import attrs

from simctl.commands.columns.formats import (
    STANDARD,
    Clock,
    Column,
    by_letter,
    by_name,
    checked_time,
    first_node_key,
    fixed,
)
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


def _partition(row: StepRow) -> str:
    return row.info.partition


def _user(row: StepRow) -> str:
    return row.info.user


COLUMNS: Final[tuple[Column[StepRow], ...]] = (
    Column("A numtasks,numtask TASKS", lambda row: str(row.info.num_tasks)),
    Column("b gres,tres-per-node TRES_PER_NODE", _gres),
    Column("i stepid STEPID", _id, sort=lambda row: (row.info.job_id, row.info.step_id)),
    Column("j stepname NAME", lambda row: row.info.name),
    Column("l timelimit TIME_LIMIT", _limit, cut=False, sort=lambda row: row.info.time_limit_min),
    Column(
        "M timeused TIME",
        lambda row: checked_time(row.info.run_s),
        cut=False,
        sort=lambda row: row.info.run_s,
    ),
    Column(
        "N nodes NODELIST",
        lambda row: row.info.node_list,
        cut=False,
        cut_heading=False,
        sort=lambda row: first_node_key(row.info.node_list),
    ),
    Column("P partition PARTITION", _partition, sort=_partition),
    Column(
        "S starttime START_TIME",
        lambda row: row.clock.moment(row.info.start_s),
        sort=lambda row: row.info.start_s,
    ),
    Column("u username USER", _user, sort=_user),
    Column("U userid USER", lambda row: str(row.info.user_id), sort=lambda row: row.info.user_id),
    Column("- arrayjobid ARRAY_JOB_ID", lambda row: str(row.info.array_job_id or row.info.job_id)),
    Column("- arraytaskid ARRAY_TASK_ID", _task),
    Column("- cluster CLUSTER", lambda row: row.cluster),
    fixed("- container CONTAINER", "(null)"),
    fixed("- cpufreq CPU_FREQ", "Dflt-Dflt:Dflt"),
    fixed("- cpus-per-tres CPUS_PER_TRES", "N/A"),
    Column("- jobid JOB_ID", lambda row: str(row.info.job_id)),
    fixed("- mem-per-tres MEM_PER_TRES", "N/A"),
    fixed("- network NETWORK", "(null)"),
    Column("- numcpus NUM_CPUS", lambda row: str(row.info.num_cpus)),
    fixed("- resvports RESERVED_PORTS", "(null)"),
    fixed("- stepstate STATE", "RUNNING"),
    fixed("- tres-bind TRES_BIND", "N/A"),
    fixed("- tres-freq TRES_FREQ", "N/A"),
    fixed("- tres-per-job TRES_PER_STEP", "N/A"),
    fixed("- tres-per-socket TRES_PER_SOCKET", "N/A"),
    fixed("- tres-per-step TRES_PER_STEP", "N/A"),
    fixed("- tres-per-task TRES_PER_TASK", "N/A"),
)
"""What squeue can show of a step."""

LETTERS: Final = by_letter(COLUMNS)
NAMES: Final = by_name(COLUMNS)
