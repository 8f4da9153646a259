"""How Slurm loads a script, and what it takes for a number."""

import re
from typing import Final

from simctl.plugins.lua.machine import Machine
from simctl.plugins.lua.state import LuaFailure, LuaState, Value

_NUMBER: Final = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*", re.ASCII)


class LoadError(LuaFailure):
    """A script that does not load."""


async def load(state: LuaState, machine: Machine, path: str, names: tuple[str, ...]) -> None:
    """Load a script from slurmctld's disk, as Slurm does.

    Raises:
        LoadError: It is not there, fails, returns a number that is not 0, or lacks functions.
        LuaExit: It ends its process.
    """
    text = machine.script(path)
    if text is None:
        raise LoadError(f"Unable to stat {path}: No such file or directory")
    try:
        values = await state.load(text, path)
    except LuaFailure as error:
        raise LoadError(error.text, endless=error.endless) from error
    returned = as_number(values[0]) if values else 0
    if returned:
        raise LoadError(f"{path}: returned {returned} on load")
    missing = [name for name in names if not state.has(name)]
    if missing:
        raise LoadError(f"{path}: missing required function {', '.join(missing)}")


def as_number(value: Value) -> int | None:
    """Return what counts as a number, cut to a whole one; None for what is none."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) < 1 << 63 else -1
