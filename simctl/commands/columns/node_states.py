"""Names of node states as sinfo prints and reads them."""

from typing import Final

from simctl.wire.info import NodeInfo
from simctl.wire.states import NodeBase, NodeFlag

_SHORT: Final = {
    "ALLOCATED": "ALLOC",
    "COMPLETING": "COMP",
    "DRAINED": "DRAIN",
    "DRAINING": "DRNG",
    "MIXED": "MIX",
    "PLANNED": "PLND",
    "RESERVED": "RESV",
    "UNKNOWN": "UNK",
}
"""The short names of -o %t; the others are short as they are."""

NUMBERS: Final = {
    NodeBase.UNKNOWN: 0,
    NodeBase.DOWN: 1,
    NodeBase.IDLE: 2,
    NodeBase.ALLOCATED: 3,
    NodeBase.MIXED: 5,
}
_RESERVED: Final = 0x20
_MAINTENANCE: Final = 0x8000
_PLANNED: Final = 0x200000
"""Slurm's bits for what NodeInfo tells beside the flags; states sort by their numbers."""

VALID: Final = (
    "unknown,down,idle,allocated,?,mixed,future,drain,drained,draining,no_respond,reserved,"
    "perfctrs,cloud,completing,powering_down,powered_down,power_down,powering_up,fail,maint,"
    "reboot,reboot^,unknown"
)
"""The names that -t takes, as an error lists them."""

_BASES: Final = {
    "UNKNOWN": NodeBase.UNKNOWN,
    "DOWN": NodeBase.DOWN,
    "IDLE": NodeBase.IDLE,
    "ALLOCATED": NodeBase.ALLOCATED,
    "MIXED": NodeBase.MIXED,
}
_OTHERS: Final = (
    *("DRAIN", "DRAINED", "DRAINING", "DRNG", "NO_RESPOND", "RESERVED", "RESV", "COMPLETING"),
    *("MAINT", "PLANNED", "PLND"),
)
_NEVER: Final = (
    *("ERROR", "FUTURE", "PERFCTRS", "NPC", "CLOUD", "POWER_DOWN", "POWERED_DOWN"),
    *("POWERING_DOWN", "POWERING_UP", "POWER_UP", "POW_DN", "POW_UP", "FAIL", "FAILING"),
    *("REBOOT", "REBOOT_ISSUED", "BLOCKED", "INVAL", "?"),
)
"""States of Slurm's that no node of a simulation is ever in."""


def base_of(info: NodeInfo) -> NodeBase:
    """Return the base state; a node of which only some cpus are allocated is MIXED."""
    if info.base is NodeBase.ALLOCATED and 0 < info.cpus_allocated < info.cpus:
        return NodeBase.MIXED
    return info.base


def state_number(info: NodeInfo) -> int:
    """Return Slurm's number for the state, which sinfo sorts by."""
    number = NUMBERS[base_of(info)] | int(info.flags)
    number |= _RESERVED if info.reserved else 0
    number |= _MAINTENANCE if info.maintenance else 0
    return number | (_PLANNED if _is_planned(info) else 0)


def _is_planned(info: NodeInfo) -> bool:
    return info.planned and info.base is NodeBase.IDLE


def state_text(info: NodeInfo) -> str:
    """Return the state as one word in capitals, ``DRAINING*``."""
    name, mark = _name(info)
    if info.maintenance and name != "MAINT":
        return f"{name}$"
    if info.flags & NodeFlag.NO_RESPOND:
        return f"{name}*"
    return name + mark


def _name(info: NodeInfo) -> tuple[str, str]:
    """Return the word for a state, and the mark behind it where no other is."""
    base, flags = base_of(info), info.flags
    busy = base in (NodeBase.ALLOCATED, NodeBase.MIXED)
    completing = bool(flags & NodeFlag.COMPLETING)
    if flags & NodeFlag.DRAIN:
        return "DRAINING" if busy or completing else "DRAINED", ""
    if info.maintenance and not busy and base is not NodeBase.DOWN:
        return "MAINT", ""
    if base is NodeBase.ALLOCATED:
        return "ALLOCATED", "+" if completing else ""
    if base is NodeBase.DOWN:
        return "DOWN", ""
    if completing:
        return "COMPLETING", ""
    if base is NodeBase.IDLE and not flags & NodeFlag.NO_RESPOND:
        return "RESERVED" if info.reserved else "PLANNED" if _is_planned(info) else "IDLE", ""
    return base.name, ""


def short_state_text(info: NodeInfo) -> str:
    """Return the state as a short word in capitals, ``DRNG*``."""
    text = state_text(info)
    name = text.rstrip("*$+")
    return _SHORT.get(name, name) + text[len(name) :]


def complete_state_text(info: NodeInfo) -> str:
    """Return the base state with all that stands beside it, ``IDLE+DRAIN``."""
    parts = [base_of(info).name]
    marks = {
        NodeFlag.DRAIN: "DRAIN",
        NodeFlag.COMPLETING: "COMPLETING",
        NodeFlag.NO_RESPOND: "NOT_RESPONDING",
    }
    parts += [name for flag, name in marks.items() if info.flags & flag]
    told = {"MAINTENANCE": info.maintenance, "RESERVED": info.reserved}
    parts += [name for name, holds in told.items() if holds]
    return "+".join([*parts, "PLANNED"] if _is_planned(info) else parts)


def parse_state(word: str) -> str:
    """Return the state that a word, or the beginning of one, names.

    Raises:
        ValueError: It names no state.
    """
    start = word.upper()
    for name in (*_BASES, *_OTHERS, *_NEVER):
        if start and name.startswith(start):
            return name
    raise ValueError(word)


def is_in(info: NodeInfo, name: str) -> bool:
    """Return whether a node is in a state of `parse_state`."""
    if name in _BASES:
        return base_of(info) is _BASES[name]
    draining = bool(info.flags & NodeFlag.DRAIN)
    busy = base_of(info) in (NodeBase.ALLOCATED, NodeBase.MIXED)
    completing = bool(info.flags & NodeFlag.COMPLETING)
    answers = {
        "DRAIN": draining,
        "DRAINED": draining and not busy and not completing,
        "DRAINING": draining and (busy or completing),
        "NO_RESPOND": bool(info.flags & NodeFlag.NO_RESPOND),
        "RESERVED": info.reserved,
        "COMPLETING": completing,
        "MAINT": info.maintenance,
        "PLANNED": _is_planned(info),
    }
    synonyms = {"DRNG": "DRAINING", "RESV": "RESERVED", "PLND": "PLANNED"}
    return answers.get(synonyms.get(name, name), False)
