"""Values of the keys on slurm.conf's NodeName and PartitionName lines: text to value.

Every reader raises ValueError, with what would do, for a text it cannot take.
"""

import re
from collections.abc import Callable
from typing import Final

from simctl.wire.conf.readers import NOT_SIMULATED, read_preempt_mode
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.resources import parse_gres
from simctl.wire.states import PartState
from simctl.wire.time_limits import parse_time_limit_min

_UNBUILT: Final = f"is known to Slurm but {NOT_SIMULATED}"
_SOCKETS: Final = re.compile(r"\([SI][^()]*\)")
_WHOLE: Final = re.compile(r"[0-9]{1,18}")


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a reader of whole numbers in a range."""

    def read(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
            raise ValueError(f'expected a whole number from {least} to {most}, got "{text}"')
        return int(text)

    return read


def memory(text: str) -> int:
    """Read megabytes; of UNLIMITED, as of 0, a job gets what its nodes have."""
    if text.upper() in {"UNLIMITED", "INFINITE"}:
        return 0
    return whole(0, NO_VAL - 1)(text)


def boolean(text: str) -> bool:
    """Read YES or NO, as Slurm spells them."""
    folded = text.casefold()
    if folded in ("yes", "up", "true", "1"):
        return True
    if folded in ("no", "down", "false", "0"):
        return False
    raise ValueError(f'expected YES or NO, got "{text}"')


def words(text: str) -> tuple[str, ...]:
    """Read words that stand apart by commas."""
    return tuple(filter(None, map(str.strip, text.split(","))))


def time_limit(text: str) -> int:
    """Read a time limit in minutes, above 0."""
    minutes = parse_time_limit_min(text)
    if not minutes:
        raise ValueError(f'expected a time limit above 0, or UNLIMITED, got "{text}"')
    return minutes


def default_time(text: str) -> int | None:
    """Read a time limit, or NONE."""
    return None if text.casefold() == "none" else time_limit(text)


def node_count(text: str) -> int:
    """Read a number of nodes; UNLIMITED is one."""
    if text.upper() in {"UNLIMITED", "INFINITE"}:
        return INFINITE
    try:
        return whole(0, INFINITE - 2)(text)
    except ValueError:
        raise ValueError(f'expected a number of nodes or UNLIMITED, got "{text}"') from None


def preempt_mode(text: str) -> str:
    """Read what becomes of a partition's preempted jobs."""
    return read_preempt_mode(text)


def accounts(text: str) -> tuple[str, ...]:
    """Read accounts; ALL stands for no restriction."""
    return () if text.casefold() == "all" else words(text)


def gres(text: str) -> dict[str, int]:
    """Read generic resources; "(null)" is how Slurm prints that there are none.

    What scontrol prints behind a count, such as ``(S:0-1)`` for the sockets, says nothing here.
    """
    if text.casefold() in ("", "(null)", "none"):
        return {}
    if "no_consume" in text.casefold().split(":"):
        raise ValueError(f"no_consume {_UNBUILT}; write NAME[:TYPE][:COUNT]")
    return parse_gres(_SOCKETS.sub("", text))


def part_state(text: str) -> str:
    """Read the state of a partition."""
    if text.upper() not in PartState.__members__:
        raise ValueError(f'expected {", ".join(PartState.__members__)}, got "{text}"')
    return text.upper()


def over_subscribe(text: str) -> bool:
    """Read OverSubscribe: whether each job has its nodes for itself."""
    word = text.upper()
    if word in ("NO", "EXCLUSIVE", "FORCE:1", "YES:1"):
        return word == "EXCLUSIVE"
    if word.partition(":")[0] in ("YES", "FORCE"):
        raise ValueError(f"{word} {_UNBUILT}; NO and EXCLUSIVE are")
    raise ValueError(f'expected NO or EXCLUSIVE, got "{text}"')


_NODE_STATES: Final = {
    **dict.fromkeys(("UNKNOWN", "IDLE"), "UNKNOWN"),
    **dict.fromkeys(("DRAIN", "DRAINED", "DRAINING"), "DRAIN"),
    "DOWN": "DOWN",
    "FUTURE": "FUTURE",
}
_OTHER_NODE_STATES: Final = ("CLOUD", "FAIL", "FAILING", "ERROR", "ALLOCATED", "MIXED", "EXTERNAL")


def node_state(text: str) -> str:
    """Read the state a node begins in: UNKNOWN, DOWN, DRAIN or FUTURE."""
    word = text.upper()
    if word in _NODE_STATES:
        return _NODE_STATES[word]
    if word in _OTHER_NODE_STATES:
        raise ValueError(f"{word} {_UNBUILT}; UNKNOWN, DOWN, DRAIN and FUTURE are")
    raise ValueError(f'expected UNKNOWN, DOWN, DRAIN or FUTURE, got "{text}"')


def down_state(text: str) -> str:
    """Read the state that a DownNodes line gives."""
    state = node_state(text)
    if state not in ("DOWN", "DRAIN"):
        raise ValueError(f'expected DOWN or DRAIN, got "{text}"')
    return state
