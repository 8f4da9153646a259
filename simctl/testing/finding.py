"""Find scenarios that are tests: named on a command line, or by their place and name.

Imports little: pytest asks about every file it comes across, also in repositories where simctl is
only installed.
"""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from simctl.files import read_bytes
from simctl.status import InputError

SUFFIXES: Final = (".scenario.yaml", ".scenario.yml")
"""Endings of names that say by themselves that a file is a scenario."""

FOLDERS: Final = ("scenarios",)
"""Names of folders whose own YAML files are looked at; folders inside them are not."""

_YAML: Final = (".yaml", ".yml")
_KEYS: Final = (
    *(
        "nodes",
        "partitions",
        "users",
        "timeline",
        "jobs",
        "expect",
        "programs",
        "plugins",
        "slurm_conf",
    ),
    *("slurm_conf_file", "burst_buffer_conf", "burst_buffer", "checkpoint", "latency", "model"),
)
_KEY: Final = re.compile(rf"""^[{{\s,]*["']?({"|".join(_KEYS)})["']?\s*:""", re.MULTILINE)
_NOT_ENTERED: Final = frozenset({"build", "dist", "node_modules", "venv", "__pycache__", "CVS"})


def is_test(path: Path, folders: Collection[str] = FOLDERS) -> bool:
    """Return whether the file *path* is a scenario to be run as a test, without being named."""
    if path.name.endswith(SUFFIXES):
        return True
    return path.suffix in _YAML and path.parent.name in folders and looks_like_scenario(path)


def looks_like_scenario(path: Path) -> bool:
    """Return whether a YAML file has at least two keys of a scenario; it may be a wrong one."""
    try:
        text = read_bytes(path).decode(errors="replace")
    except OSError:
        # The person who runs it is told why it cannot be read.
        return True
    return len({match[1] for match in _KEY.finditer(text)}) > 1


def find_scenarios(paths: Sequence[str]) -> list[Path]:
    """Return the scenarios that *paths* name, each once, those of a folder in order of their path.

    A file is one, whatever its name. A folder counts as one of `FOLDERS`, so that its own files are
    looked at; below it the rules of `is_test` hold.

    Raises:
        InputError: There is no such file or folder.
    """
    found: dict[Path, Path] = {}
    for name in paths:
        path = Path(name)
        if path.is_dir():
            for each in _below(path):
                found.setdefault(each.resolve(), each)
        elif path.exists():
            found.setdefault(path.resolve(), path)
        else:
            raise InputError(f"test: there is no file or folder {name}")
    return list(found.values())


def _below(top: Path) -> Iterator[Path]:
    for folder, inside, names in os.walk(top):
        where = Path(folder)
        inside[:] = sorted(name for name in inside if _is_entered(where / name))
        for name in sorted(names):
            path = where / name
            own = where == top and path.suffix in _YAML and looks_like_scenario(path)
            if own or is_test(path):
                yield path


def _is_entered(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _NOT_ENTERED:
        return False
    return not (folder / "pyvenv.cfg").exists()


def stem_of(path: Path) -> str:
    """Return the name of a scenario: that of its file without what says that it is one."""
    for suffix in (*SUFFIXES, *_YAML):
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    return path.name
