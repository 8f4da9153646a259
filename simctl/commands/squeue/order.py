"""The order of squeue's rows: the keys of --sort, the least important sorted by first."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, TypeVar

from simctl.commands.columns.job_states import state_letters, state_text
from simctl.commands.columns.jobs import JobRow, memory_mb, time_left_s
from simctl.commands.columns.steps import StepRow
from simctl.wire.hostlist import expand, sort_key_of
from simctl.wire.ids import NO_VAL

Row = TypeVar("Row")
Key = Callable[[Any], Any]

USUAL: Final = "P,t,-p"
USUAL_OF_STEPS: Final = "P,i"

_CLUSTER: Final = "cluster"


class SortError(ValueError):
    """A letter is no key to sort by; `letter` is that."""

    def __init__(self, letter: str) -> None:
        super().__init__(letter)
        self.letter = letter


def _id(row: JobRow) -> tuple[int, int]:
    if row.task == NO_VAL:
        return row.info.job_id, NO_VAL
    return row.array_id, row.task


def _first_node(node_list: str) -> Any:
    names = expand(node_list)
    return (1, min(map(sort_key_of, names))) if names else (0,)


_JOB_KEYS: Final[dict[str, Key | None]] = {
    "B": lambda row: row.info.node_list if row.info.batch else row.info.submit_host,
    "b": None,
    "c": None,
    "C": lambda row: row.info.num_cpus,
    "d": None,
    "D": lambda row: row.info.num_nodes,
    "e": lambda row: row.info.end_s,
    "f": None,
    "g": lambda row: row.group,
    "G": lambda row: row.info.group_id,
    "h": None,
    "H": None,
    "i": _id,
    "I": None,
    "j": lambda row: row.info.name,
    "J": None,
    "l": lambda row: row.info.time_limit_min,
    "L": time_left_s,
    "m": lambda row: memory_mb(row.info),
    "M": lambda row: row.info.run_s,
    "n": None,
    "N": lambda row: _first_node(row.info.node_list),
    "O": None,
    "p": lambda row: (row.tier, row.info.priority),
    "P": lambda row: row.partition,
    "Q": lambda row: (row.tier, row.info.priority),
    "t": lambda row: state_letters(row.info.state),
    "T": lambda row: state_text(row.info.state),
    "u": lambda row: row.info.user,
    "U": lambda row: row.info.user_id,
    "v": lambda row: row.info.reservation,
    "V": lambda row: row.info.submit_s,
    "z": None,
}
"""What each letter sorts jobs by; None where all jobs are alike, or Slurm does not sort either."""

_STEP_KEYS: Final[dict[str, Key | None]] = {
    "i": lambda row: (row.info.job_id, row.info.step_id),
    "N": lambda row: _first_node(row.info.node_list),
    "P": lambda row: row.info.partition,
    "l": lambda row: row.info.time_limit_min,
    "S": lambda row: row.info.start_s,
    "M": lambda row: row.info.run_s,
    "u": lambda row: row.info.user,
    "U": lambda row: row.info.user_id,
}


def _letters(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the keys from the last to the first, each with whether it sorts downwards."""
    place = len(text) - 1
    while place >= 0:
        if text[place] in ",+-":
            place -= 1
            continue
        word = text[max(0, place - len(_CLUSTER) + 1) : place + 1]
        length = len(_CLUSTER) if word.lower() == _CLUSTER else 1
        place -= length
        yield text[place + length], place >= 0 and text[place] == "-"


def _by_start(rows: Sequence[JobRow], *, down: bool) -> list[JobRow]:
    """Sort jobs by their start; those without one come last, and each time in reverse.

    The tasks of an array that wait are one job, and keep their order.
    """
    known = [row for row in rows if row.info.start_s]
    unknown = [row for row in rows if not row.info.start_s]
    known.sort(key=lambda row: row.info.start_s, reverse=down)
    jobs = [list(lines) for _, lines in groupby(unknown, key=lambda row: row.info.job_id)]
    return known + [row for lines in reversed(jobs) for row in lines]


def sorted_jobs(rows: Sequence[JobRow], text: str) -> list[JobRow]:
    """Return jobs in the order of --sort.

    Raises:
        SortError: A letter is no key.
    """
    rows = _by_start(rows, down=True)
    for letter, down in _letters(text):
        if letter == "S":
            rows = _by_start(rows, down=down)
        elif letter.lower() == "r" and text.lower().endswith(_CLUSTER):
            continue
        elif letter not in _JOB_KEYS:
            raise SortError(letter)
        else:
            rows = _sorted(rows, _JOB_KEYS[letter], down=down)
    return rows


def sorted_steps(rows: Sequence[StepRow], text: str) -> list[StepRow]:
    """Return steps in the order of --sort; what is no key is passed over."""
    found = list(rows)
    for letter, down in _letters(text):
        found = _sorted(found, _STEP_KEYS.get(letter), down=down)
    return found


def _sorted(rows: list[Row], key: Key | None, *, down: bool) -> list[Row]:
    # Rows that are alike keep their order in both directions.
    return sorted(rows, key=key, reverse=down) if key is not None else rows
