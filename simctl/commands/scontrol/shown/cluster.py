"""``scontrol show partition`` and ``show reservation``."""

from collections.abc import Iterator

from simctl.commands.columns.formats import padded_time
from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.text import NULL, minutes, moment, tres
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.info import PartInfo, ReservationInfo
from simctl.wire.messages import (
    RequestPartitionInfo,
    RequestReservationInfo,
    ResponsePartitionInfo,
    ResponseReservationInfo,
)


async def show_partitions(order: Order, value: str | None) -> int:
    """Print all partitions, or one."""
    answer = await order.load(RequestPartitionInfo(), "slurm_load_partitions")
    if not isinstance(answer, ResponsePartitionInfo):
        return 1
    mode = order.call.site.conf.preempt_mode
    found = [part for part in answer.partitions if value in (None, part.name)]
    order.print_records([list(_partition(part, mode)) for part in found])
    if not found and not order.quiet:
        order.call.out(
            "No partitions in the system" if value is None else f"Partition {value} not found"
        )
    return 0 if found or value is None else 1


def _no_limit(count: int, none: str = "UNLIMITED") -> str:
    return none if count in (INFINITE, NO_VAL) else str(count)


def _yes(holds: bool) -> str:
    return "YES" if holds else "NO"


def _partition(part: PartInfo, mode: str) -> Iterator[str]:
    accounts = f"AllowAccounts={','.join(part.allow_accounts) or 'ALL'}"
    if part.deny_accounts and not part.allow_accounts:
        accounts = f"DenyAccounts={','.join(part.deny_accounts)}"
    yield f"PartitionName={part.name}"
    yield f"AllowGroups=ALL {accounts} AllowQos=ALL"
    yield f"AllocNodes=ALL Default={_yes(part.default)} QoS=N/A"
    # A default time that is no shorter than the longest is none.
    none = part.default_time_min in (part.max_time_min, INFINITE, NO_VAL)
    default_time = "NONE" if none else minutes(part.default_time_min)
    yield (
        f"DefaultTime={default_time} DisableRootJobs=NO ExclusiveUser=NO "
        f"GraceTime={part.grace_time_s} Hidden=NO"
    )
    yield (
        f"MaxNodes={_no_limit(part.max_nodes)} MaxTime={minutes(part.max_time_min)} "
        # A limit of one node is none.
        f"MinNodes={part.min_nodes if part.min_nodes > 1 else 0} LLN=NO MaxCPUsPerNode=UNLIMITED"
    )
    yield f"Nodes={part.node_list}"
    sharing = "EXCLUSIVE" if part.exclusive else "NO"
    yield (
        f"PriorityJobFactor=1 PriorityTier={part.tier} RootOnly={_yes(part.root_only)} "
        f"ReqResv=NO OverSubscribe={sharing}"
    )
    yield f"OverTimeLimit=NONE PreemptMode={part.preempt_mode or mode}"
    yield (
        f"State={part.state.name} TotalCPUs={part.cpus} TotalNodes={len(part.nodes)} "
        "SelectTypeParameters=NONE"
    )
    yield f"JobDefaults={NULL}"
    memory = f"DefMemPerNode={part.def_mem_per_node_mb or 'UNLIMITED'}"
    if part.def_mem_per_cpu_mb:
        memory = f"DefMemPerCPU={part.def_mem_per_cpu_mb}"
    yield f"{memory} MaxMemPerNode=UNLIMITED"
    amount = tres(
        cpus=part.cpus, memory_mb=part.memory_mb, nodes=len(part.nodes), billing=part.cpus
    )
    yield f"TRES={amount}"


async def show_reservations(order: Order, value: str | None) -> int:
    """Print all reservations, or one."""
    answer = await order.load(RequestReservationInfo(), "slurm_load_reservations")
    if not isinstance(answer, ResponseReservationInfo):
        return 1
    found = [each for each in answer.reservations if value in (None, each.name)]
    order.print_records([list(_reservation(each)) for each in found])
    if not found and not order.quiet:
        order.call.out(
            "No reservations in the system" if value is None else f"Reservation {value} not found"
        )
    return 0 if found or value is None else 1


def _reservation(each: ReservationInfo) -> Iterator[str]:
    flags = [flag for flag in each.flags if flag != "SPEC_NODES"]
    yield (
        f"ReservationName={each.name} StartTime={moment(each.start_s)} "
        f"EndTime={moment(each.end_s)} Duration={padded_time(each.end_s - each.start_s)}"
    )
    yield (
        f"Nodes={each.node_list} NodeCnt={each.num_nodes} CoreCnt={each.cpus} Features={NULL} "
        f"PartitionName={NULL} Flags={','.join([*_in_order(flags), 'SPEC_NODES'])}"
    )
    yield f"TRES={tres(cpus=each.cpus, others=each.tres)}"
    state = "ACTIVE" if each.active else "INACTIVE"
    yield (
        f"Users={','.join(each.users) or NULL} Groups={NULL} "
        f"Accounts={','.join(each.accounts) or NULL} Licenses={NULL} State={state} "
        f"BurstBuffer={each.burst_buffer or NULL} Watts=n/a"
    )
    yield f"MaxStartDelay={NULL}"


def _in_order(flags: list[str]) -> list[str]:
    """Return flags in the order in which Slurm lists them."""
    return [name for name in ("MAINT", "OVERLAP", "IGNORE_JOBS") if name in flags]
