"""Names that nodes and partitions may have."""

import re
from typing import Final

from simctl.wire.hosts import LOGIN

_NODE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_PARTITION: Final = re.compile(r"[A-Za-z0-9_.-]+")
_RESERVED_NODES: Final = (LOGIN, "slurmctld", "null", "DEFAULT", "ALL")


def check_node_name(name: str) -> None:
    """Raise ValueError for a name that no node can have."""
    if _NODE.fullmatch(name) is None:
        raise ValueError(f"{name!r} cannot be a host: use letters, digits, '.', '_' and '-'")
    if name in _RESERVED_NODES:
        raise ValueError(f"no node can be called {name!r}: the name stands for something else")


def check_partition_name(name: str) -> None:
    """Raise ValueError for a name that no partition can have."""
    if _PARTITION.fullmatch(name) is None or name.upper() == "DEFAULT":
        raise ValueError(f'"{name}" cannot be the name of a partition')
