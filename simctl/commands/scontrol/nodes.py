"""``scontrol update`` of nodes: their states, and why they have them."""

from typing import Final

from simctl.commands.arguments.options import UsageError
from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.pairs import begins, refuse_key, split_pairs
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
    activefeatures comment cpubind extra gres nodeaddr nodehostname
    resumeafter weight
    """.split()
)


async def update_nodes(order: Order) -> int:
    """Change the states of nodes, the reason for them, or their features."""
    request = _read_request(order.words)
    if request.state in _NEED_REASON and not request.reason:
        raise UsageError(
            1, "You must specify a reason when DOWNING or DRAINING a node. Request denied"
        )
    if request.state and request.state not in BUILT:
        known = f"state={request.state} is known to Slurm but not simulated yet"
        raise UsageError(1, f"scontrol: error: {known}")
    if not request.state and not request.reason and request.features is None:
        raise UsageError(1, "No changes specified")
    rc = await order.ask(request)
    if rc:
        order.complain(f"slurm_update error: {slurm_strerror(rc)}")
    return 1 if rc else 0


def _read_request(words: tuple[str, ...]) -> RequestUpdateNode:
    """Return the request that words spell.

    Raises:
        UsageError: A key or a state is none, or a key is not built.
    """
    names, state, reason = "", "", ""
    features: tuple[str, ...] | None = None
    for pair in split_pairs(words):
        if begins(pair.key, "nodename", 3):
            names = pair.value
        elif begins(pair.key, "state", 1):
            state = _state(pair.value, pair.word)
        elif begins(pair.key, "reason", 2):
            reason = pair.value
        elif begins(pair.key, "features", 1) or begins(pair.key, "availablefeatures", 3):
            features = tuple(filter(None, pair.value.split(",")))
        else:
            raise refuse_key("nodename", pair, _UNBUILT)
    return RequestUpdateNode(node_names=names, state=state, reason=reason, features=features)


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
