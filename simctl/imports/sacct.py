"""`simctl import sacct FILE -o SCENARIO`: a scenario that replays what accounting tells."""

import sys
from pathlib import Path
from typing import Final

from simctl.imports.sacct_file import Found, read_lines
from simctl.imports.sacct_rows import HeaderError
from simctl.imports.sacct_scenario import Writer
from simctl.status import OK, InputError

_MANY: Final = 20


def import_sacct(source: str, target: str) -> int:
    """Read what sacct printed, write the scenario, tell what was left out; return the status.

    Raises:
        InputError: The file cannot be read, or holds no job that can be replayed.
    """
    found = _read(source)
    if not found.jobs:
        _tell_left_out(source, found)
        raise InputError(
            f"import sacct: {source}: no line of {found.lines} tells of a job that ran; "
            "`sacct -a -P -S DATE -o JobID,Submit,...` prints those since a day"
        )
    writer = Writer(found, Path(source).name)
    _write(target, writer.text())
    _tell_left_out(source, found)
    for line in writer.told():
        print(f"simctl: {line}", file=sys.stderr)
    steps = f", {found.steps} of steps" if found.steps else ""
    repeated = f", {found.repeated} that stand there twice" if found.repeated else ""
    out = sys.stderr if target == "-" else sys.stdout
    print(
        f"{len(found.jobs)} jobs from {found.lines} lines{steps}{repeated}, "
        f"{len(found.left_out)} left out",
        file=out,
    )
    return OK


def _read(source: str) -> Found:
    try:
        with Path(source).open(encoding="utf-8-sig", errors="replace", newline="\n") as file:
            return read_lines(file)
    except OSError as error:
        raise InputError(f"import sacct: cannot read {source}: {error.strerror}") from error
    except HeaderError as error:
        raise InputError(f"{source}:{error}", placed=True) from error


def _write(target: str, text: str) -> None:
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"import sacct: cannot write {target}: {error.strerror}") from error


def _tell_left_out(source: str, found: Found) -> None:
    """Print which lines were no use; all of them are in the head of the scenario."""
    for line, why in sorted(found.left_out)[:_MANY]:
        print(f"{source}:{line}: {why}; left out", file=sys.stderr)
    more = len(found.left_out) - _MANY
    if more > 0:
        print(
            f"simctl: {more} more lines are left out; the scenario's head lists them",
            file=sys.stderr,
        )
