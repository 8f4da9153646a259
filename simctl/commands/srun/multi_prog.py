"""srun --multi-prog: a file says which program each task of a step runs."""

import re
import shlex
from typing import Final

_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")


class MultiProgError(Exception):
    """The file does not say what every task runs; the text says why."""


def programs(text: str, name: str, num_tasks: int) -> tuple[tuple[str, ...], ...]:
    """Return the command line of every task, by rank.

    A line holds ranks (``0``, ``1-3``, ``0,2``, ``*`` for all others), a program and its arguments.
    There ``%t`` is the rank and ``%o`` its place among the ranks of the line.

    Raises:
        MultiProgError: A line cannot be read, or a task has none.
    """
    found: dict[int, tuple[str, ...]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = _words(line, number, name)
        if words:
            ranks = _ranks(words[0], number, name, num_tasks)
            for offset, rank in enumerate(ranks):
                found.setdefault(rank, _filled(words[1:], rank, offset))
    missing = [rank for rank in range(num_tasks) if rank not in found]
    if missing:
        raise MultiProgError(
            f"Configuration file {name} invalid, no record for task id {missing[0]}"
        )
    return tuple(found[rank] for rank in range(num_tasks))


def _words(line: str, number: int, name: str) -> list[str]:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = ["unreadable"]
    if len(words) == 1:
        raise MultiProgError(f"Line {number} of configuration file {name} is invalid")
    return words


def _ranks(word: str, number: int, name: str, num_tasks: int) -> list[int]:
    """Return the ranks that a line is about, as far as there are such tasks."""
    if word == "*":
        return list(range(num_tasks))
    ranks: list[int] = []
    for part in word.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise MultiProgError(f"Line {number} of configuration file {name} is invalid")
        first = int(match[1])
        last = min(int(match[2] or first), num_tasks - 1)
        ranks += range(first, last + 1)
    return ranks


def _filled(words: list[str], rank: int, offset: int) -> tuple[str, ...]:
    return tuple(word.replace("%t", str(rank)).replace("%o", str(offset)) for word in words)
