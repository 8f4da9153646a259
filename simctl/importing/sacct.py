"""`simctl import sacct FILE -o SCENARIO`: a scenario that replays what accounting tells."""

import io
from pathlib import Path
from typing import Final

from simctl.files import read_bytes
from simctl.importing.result import Imported
from simctl.importing.sacct_file import Found, counted, read_lines
from simctl.importing.sacct_rows import HeaderError
from simctl.importing.sacct_scenario import Writer
from simctl.limits import SACCT_BYTES
from simctl.status import InputError

_MANY: Final = 20


def import_file(source: str) -> Imported:
    """Read what sacct printed, and make a scenario of it.

    Raises:
        InputError: The file cannot be read, or holds no job that can be replayed.
    """
    found = read_sacct(source)
    left_out = _left_out(source, found)
    if not found.jobs:
        raise InputError(
            "\n".join(
                [
                    *left_out,
                    (
                        f"import sacct: {source}: no line of {found.lines} tells of a job that "
                        "ran; `sacct -a -P -S DATE -o JobID,Submit,...` prints those since a day"
                    ),
                ]
            ),
            placed=bool(left_out),
        )
    writer = Writer(found, Path(source).name)
    steps = f", {found.steps} of steps" if found.steps else ""
    repeated = f", {found.repeated} that stand there twice" if found.repeated else ""
    return Imported(
        text=writer.text(),
        told=f"{counted(len(found.jobs), 'job')} from {counted(found.lines, 'line')}"
        f"{steps}{repeated}, {len(found.left_out)} left out",
        warnings=(*left_out, *(f"simctl: {line}" for line in writer.told())),
    )


def read_sacct(source: str) -> Found:
    """Return what a file of sacct's holds.

    Raises:
        InputError: It cannot be read, or has no header of sacct's.
    """
    try:
        data = read_bytes(source, SACCT_BYTES)
        return read_lines(io.StringIO(data.decode("utf-8-sig", errors="replace"), newline="\n"))
    except OSError as error:
        raise InputError(f"import sacct: cannot read {source}: {error.strerror}") from error
    except HeaderError as error:
        raise InputError(f"{source}:{error}", placed=True) from error


def _left_out(source: str, found: Found) -> tuple[str, ...]:
    """Tell which lines were no use; all of them are in the head of the scenario."""
    told = [f"{source}:{line}: {why}; left out" for line, why in sorted(found.left_out)[:_MANY]]
    more = len(found.left_out) - _MANY
    if more > 0:
        told.append(f"simctl: {more} more lines are left out; the scenario's head lists them")
    return tuple(told)
