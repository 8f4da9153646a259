"""Pages of runs in which something did not hold, left in a folder for a person to look into."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simctl.status import InputError

if TYPE_CHECKING:
    from simctl.testing.runs import Run

_LONGEST: Final = 150
_MOST: Final = 1_000


def check_folder(folder: str, option: str) -> None:
    """Make the folder for pages, if it is not there.

    Raises:
        InputError: It cannot be made.
    """
    if not folder:
        raise InputError(f"{option}: name a folder")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{option}: cannot make the folder {folder}: {why}") from error


def page_file(folder: str, name: str) -> Path:
    """Return the file of a page, named after what was run."""
    plain = re.sub(r"[^\w.-]+", "-", name.replace(".yaml", "").replace(".yml", ""))
    return Path(folder) / f"{plain.strip('-.')[-_LONGEST:] or 'run'}.html"


def leave_page(folder: str, name: str, run: "Run") -> str:
    """Write the page of a run; return a line that says where it is, or why there is none."""
    from simctl.view.command import write_run  # noqa: PLC0415 - only what fails has a page

    path = page_file(folder, name)
    try:
        write_run(str(path), run.header, run.events, run.result, "page", force=False)
    except InputError as error:
        return f"no page: {error}"
    return f"page: {path}"


def leave_pages(folder: str, name: str, runs: Sequence["Run"]) -> list[str]:
    """Write a page for each of several runs of one test; return a line about each."""
    return [
        leave_page(folder, name if not number else f"{name}-{number + 1}", run)
        for number, run in enumerate(runs[:_MOST])
    ]
