"""The order of squeue's rows: the keys of --sort, the least important sorted by first."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from simctl.commands.columns import jobs as job_columns
from simctl.commands.columns import steps as step_columns
from simctl.commands.columns.jobs import JobRow
from simctl.commands.columns.steps import StepRow

USUAL: Final = "P,t,-p"
USUAL_OF_STEPS: Final = "P,i"

_CLUSTER: Final = "cluster"


class SortError(ValueError):
    """A letter is no key to sort by; `letter` is that."""

    def __init__(self, letter: str) -> None:
        super().__init__(letter)
        self.letter = letter


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
        else:
            column = job_columns.LETTERS.get(letter)
            if column is None or column.sort is None:
                raise SortError(letter)
            # Rows that are alike keep their order in both directions.
            rows.sort(key=column.sort, reverse=down)
    return rows


def sorted_steps(rows: Sequence[StepRow], text: str) -> list[StepRow]:
    """Return steps in the order of --sort; what is no key is passed over."""
    found = list(rows)
    for letter, down in _letters(text):
        column = step_columns.LETTERS.get(letter)
        if column is not None and column.sort is not None:
            found.sort(key=column.sort, reverse=down)
    return found
