"""``scontrol update`` of nodes: their states, and why they have them."""

from typing import Final

from simctl.commands.options import UsageError
from simctl.commands.scontrol_order import Order
from simctl.commands.scontrol_pairs import begins, refuse_key, split_pairs
from simctl.wire.errno import slurm_strerror
from simctl.wire.messages import RequestUpdateNode

_STATES: Final = {
    "DRAIN": 3,
    "DOWN": 1,
    "FAIL": 3,
    "FUTURE": 3,
    "IDLE": 1,
    "NORESP": 3,
    "POWER_DOWN": 6,
    "POWER_UP": 6,
    "RESUME": 3,
    "UNDRAIN": 3,
}
"""The states that may be asked for, and how much of each name is enough."""

BUILT: Final = ("DRAIN", "DOWN", "IDLE", "RESUME", "UNDRAIN")
_NEED_REASON: Final = ("DRAIN", "DOWN", "FAIL")
_UNBUILT: Final = frozenset(
    """
    activefeatures availablefeatures comment cpubind extra features gres nodeaddr nodehostname
    resumeafter weight
    """.split()
)


async def update_nodes(order: Order) -> int:
    """Change the states of nodes, or the reason for them."""
    names, state, reason = "", "", ""
    for pair in split_pairs(order.words):
        if begins(pair.key, "nodename", 3):
            names = pair.value
        elif begins(pair.key, "state", 1):
            state = _state(pair.value, pair.word)
        elif begins(pair.key, "reason", 2):
            reason = pair.value
        else:
            raise refuse_key("nodename", pair, _UNBUILT)
    if state in _NEED_REASON and not reason:
        raise UsageError(
            1, "You must specify a reason when DOWNING or DRAINING a node. Request denied"
        )
    if state and state not in BUILT:
        raise UsageError(
            1, f"scontrol: error: state={state} is known to Slurm but not simulated yet"
        )
    if not state and not reason:
        raise UsageError(1, "No changes specified")
    rc = await order.ask(RequestUpdateNode(node_names=names, state=state, reason=reason))
    if rc:
        order.complain(f"slurm_update error: {slurm_strerror(rc)}")
    return 1 if rc else 0


def _state(value: str, word: str) -> str:
    """Return the state that is meant."""
    for name, least in _STATES.items():
        if begins(value.upper(), name, least):
            return name
    raise UsageError(
        1,
        f"Invalid input: {word}",
        "Request aborted",
        "Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN",
        "Not all states are valid given a node's prior state",
    )
