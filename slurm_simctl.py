"""The start of the `simctl` command, outside the package `simctl` that another project may bring.

An unrelated distribution on PyPI is called `simctl` as well. Where Python finds its package instead
of this one, or where the files of both lie in one folder, the user is told so and what to do.
"""

import os
import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Until the command runs there is nothing to tell or to put away: Ctrl-C ends at once.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))

from collections.abc import Iterator
from pathlib import Path

_REMEDY = (
    "`python -m pip uninstall simctl`, then install slurm-simctl again with `--force-reinstall`"
)


def main() -> int:
    """Run the command line; return the exit status."""
    try:
        from simctl import DISTRIBUTION
        from simctl.cli import main as run
    except ImportError as error:
        problem = foreign(error)
        if not problem:
            raise
        print(f"simctl: {problem}", file=sys.stderr)
        return 2
    problem = collision(DISTRIBUTION)
    if problem:
        print(f"simctl: warning: {problem}", file=sys.stderr)
    if callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, signal.default_int_handler)
    status = run()
    guard = sys.modules.get("simctl.plugins.guard")
    if guard is not None:
        guard.run_exit_functions()
    return status


def foreign(error: ImportError) -> str:
    """Return what to tell of a package `simctl` that is not this one; "" where it is."""
    if error.name not in ("simctl", "simctl.cli"):
        return ""
    found = getattr(sys.modules.get("simctl"), "__file__", None)
    if found is None:
        return f"the package `simctl` of slurm-simctl is not there; {_REMEDY}"
    return f"{found} is not the package of slurm-simctl, but another of that name; {_REMEDY}"


def collision(distribution: str) -> str:
    """Return what to tell of another distribution that is called `simctl`; "" where none is there.

    The folders of installed packages are listed. `importlib.metadata` would tell the same and take
    as long to import as the rest of `simctl --version`.
    """
    for folder, name in _metadata_folders():
        try:
            record = (folder / name / "RECORD").read_text(encoding="utf-8", errors="replace")
        except OSError:
            record = ""
        theirs = [line for line in record.splitlines() if line.startswith(("simctl/", "simctl.py"))]
        if theirs and (folder / f"{distribution.replace('-', '_')}.py").exists():
            return (
                f"{folder / name} is another project's, and its files lie in one folder with those "
                f"of {distribution}: each may have written over the other's; {_REMEDY}"
            )
        return (
            f"{folder / name} is another project's, whose package is called `simctl` as well: "
            f"Python may find it instead of {distribution}'s; `python -m pip uninstall simctl`"
        )
    return ""


def _metadata_folders() -> Iterator[tuple[Path, str]]:
    """Yield where a distribution called `simctl` is installed: the folder, and its metadata."""
    for entry in dict.fromkeys(sys.path):
        if not entry.endswith(("site-packages", "dist-packages")):
            continue
        try:
            names = sorted(os.listdir(entry))  # noqa: PTH208 - a listing costs a tenth of iterdir's
        except OSError:
            continue
        for name in names:
            if name.startswith("simctl-") and name.endswith((".dist-info", ".egg-info")):
                yield Path(entry), name
