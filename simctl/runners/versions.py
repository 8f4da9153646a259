"""What has to be the same wherever the runs of one piece of work are made."""

import functools
import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import simctl

_PACKAGES: Final = ("attrs", "msgspec", "pyyaml", "structlog", "trio")


@functools.cache
def about(more: tuple[str, ...] = ()) -> dict[str, str]:
    """Return what has to be the same everywhere: versions, and simctl's own sources.

    *more* are packages that work needs besides; one that is missing here is missing in the answer.
    """
    root = Path(simctl.__file__).parent
    sources = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        sources.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return {
        "simctl": simctl.__version__,
        "simctl's sources": sources.hexdigest()[:16],
        "Python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
        **{name: found for name in more if (found := _version(name))},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def differences(wanted: dict[str, str], found: dict[str, str]) -> str:
    """Return, as words, what another has that is not as wanted."""
    told = [
        f"{name} {found.get(name, 'missing')} and not {here}"
        for name, here in wanted.items()
        if found.get(name) != here
    ]
    return f"it has {', '.join(told)}; results would not be the same"
