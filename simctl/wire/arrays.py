"""Job arrays as people write them: ``0-9:2%3`` is tasks 0, 2, 4, 6 and 8, three at a time."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

_PART: Final = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")
MAX_ARRAY_SIZE: Final = 1001
"""Slurm's MaxArraySize: task numbers stay below it."""


def parse_tasks(text: str) -> tuple[int, ...]:
    """Return the task numbers of ``1,3,5-9:2``, in order, each once.

    Raises:
        ValueError: It is no list of task numbers, or one of them is too large.
    """
    found: dict[int, None] = {}
    for part in text.strip("[]").split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"no job array: {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        step = int(match[3] or 1)
        if last < first or not step or last >= MAX_ARRAY_SIZE:
            raise ValueError(f"no job array: {text!r}")
        found |= dict.fromkeys(range(first, last + 1, step))
    return tuple(sorted(found))


_LONG_SPAN: Final = 10
"""Over more than these numbers, tasks at even distances are written as such."""


def format_tasks(tasks: Sequence[int]) -> str:
    """Return task numbers as squeue prints those that wait: ``0-3,7``, or ``1-28:3``."""
    step = _step(tasks)
    if step > 1 and tasks[-1] - tasks[0] > _LONG_SPAN:
        return f"{tasks[0]}-{tasks[-1]}:{step}"
    parts: list[list[int]] = []
    for task in tasks:
        if parts and task == parts[-1][-1] + 1:
            parts[-1].append(task)
        else:
            parts.append([task])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in parts)


def _step(tasks: Sequence[int]) -> int:
    """Return the distance of tasks from one another; 0 if it is not the same of all."""
    steps = {later - earlier for earlier, later in pairwise(tasks)}
    return steps.pop() if len(steps) == 1 else 0


def parse_array(text: str) -> tuple[tuple[int, ...], int]:
    """Return the tasks of an array and how many may run at a time, 0 for any number.

    Raises:
        ValueError: It is no array.
    """
    tasks, percent, limit = text.partition("%")
    if percent and (not limit.isdecimal() or not int(limit)):
        raise ValueError(f"no job array: {text!r}")
    return parse_tasks(tasks), int(limit or 0)
