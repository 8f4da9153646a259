"""Partitions and reservations by Slurm's own names: what Lua scripts read of them."""

from typing import Any, Final

from simctl.ctld.controller import Controller
from simctl.ctld.state.records import PartRecord, ReservationRecord
from simctl.wire.hostlist import compress
from simctl.wire.ids import NO_VAL, SECOND
from simctl.wire.states import PartState

_STATES: Final = {
    PartState.UP: 3,
    PartState.DOWN: 1,
    PartState.DRAIN: 2,
    PartState.INACTIVE: 0,
}


def part_fields(ctld: Controller, part: PartRecord) -> dict[str, Any]:
    """Return the fields of a partition; numbers are floats, texts that are empty are left out."""
    time = NO_VAL if part.default_time_min == part.max_time_min else part.default_time_min
    texts = {
        "name": part.name,
        "nodes": compress(node.name for node in part.nodes),
        "allow_accounts": ",".join(part.allow_accounts),
        "deny_accounts": ",".join(part.deny_accounts),
    }
    numbers = {
        "default_time": time,
        **_memory(part),
        "flag_default": int(part.default),
        "flags": int(part.default),
        "max_cpus_per_node": 0xFFFFFFFF,
        "max_cpus_per_socket": 0xFFFFFFFF,
        "max_mem_per_node": 0,
        "max_nodes": part.max_nodes,
        "max_nodes_orig": part.max_nodes,
        "max_oversubscribe": 0 if part.exclusive else 1,
        "max_share": 0 if part.exclusive else 1,
        "max_time": part.max_time_min,
        "min_nodes": part.min_nodes,
        "min_nodes_orig": part.min_nodes,
        "priority_job_factor": part.tier,
        "priority_tier": part.tier,
        "state_up": _STATES[part.state],
        "total_cpus": sum(node.cpus for node in part.nodes),
        "total_nodes": len(part.nodes),
    }
    found: dict[str, Any] = {name: text for name, text in texts.items() if text}
    found |= {name: float(number) for name, number in numbers.items()}
    return found


def _memory(part: PartRecord) -> dict[str, int]:
    """Return the usual memory: of a cpu or of a node, never both."""
    if part.def_mem_per_cpu_mb:
        return {"def_mem_per_cpu": part.def_mem_per_cpu_mb}
    return {"def_mem_per_node": part.def_mem_per_node_mb}


def reservation_fields(ctld: Controller, found: ReservationRecord) -> dict[str, Any]:
    """Return the fields of a reservation."""
    start_s = ctld.site.start_time_s + found.start_us // SECOND
    end_s = ctld.site.start_time_s + found.end_us // SECOND
    nodes = [node.name for node in ctld.nodes if found.nodes >> node.index & 1]
    return {
        "name": found.name,
        "accounts": ",".join(found.accounts),
        "users": ",".join(ctld.site.user_name(uid) for uid in found.users),
        "flags": ",".join(found.flags),
        "node_list": compress(nodes),
        "node_cnt": float(len(nodes)),
        "start_time": float(start_s),
        "end_time": float(end_s),
        "duration": float((end_s - start_s) // 60),
        "full_nodes": True,
        "flags_set_node": bool(found.flags),
    }
