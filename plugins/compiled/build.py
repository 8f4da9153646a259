"""Build what C there is: the host, the stand-in for Slurm's library, and plugins given as `.c`.

What is built is kept under the user's cache folder by a hash of all that went into it.
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Final

from simctl.plugins.guard import PluginError

HERE: Final = Path(__file__).parent
HEADER: Final = HERE / "include" / "simctl_plugin.h"
STRICT: Final = ("-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden")
_SECONDS_AT_MOST: Final = 60.0
_MACHINES: Final = ("x86_64", "aarch64")
_TOLD_LINES: Final = 12


def compiler() -> str:
    """Return the C compiler: `CC` of the environment, cc, gcc or clang.

    Raises:
        PluginError: There is none, or this machine is none that hosts run on.
    """
    if platform.system() != "Linux" or platform.machine() not in _MACHINES:
        raise PluginError(
            f"compiled plugins need Linux on {' or '.join(_MACHINES)}, and this is "
            f"{platform.system()} on {platform.machine()}; plugins in Python run everywhere"
        )
    asked = os.environ.get("CC")
    for name in (asked,) if asked else ("cc", "gcc", "clang"):
        found = shutil.which(shlex.split(name)[0]) if name.strip() else None
        if found:
            return name
    raise PluginError(
        f"compiled plugins need a C compiler, and there is no {asked or 'cc, gcc or clang'}; "
        "install one, or name one in the environment variable CC. Plugins in Python need none"
    )


def cache_folder() -> Path:
    """Return the folder where what is built is kept, made for this user alone."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "simctl" / "compiled"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_uid != os.getuid():
        raise PluginError(
            f"{folder} belongs to another user; set XDG_CACHE_HOME to a folder of yours"
        )
    return folder


def host() -> Path:
    """Return the plugin host, built if it is not there yet."""
    sources = [*sorted((HERE / "host").glob("*.c")), *sorted((HERE / "host").glob("*.h"))]
    arguments = (*STRICT, "-fPIE", "-pie", "-rdynamic", "-pthread")
    return _built("host", sources, arguments, ("-ldl",))


def library() -> Path:
    """Return the stand-in for Slurm's library, built if it is not there yet."""
    folder = HERE / "library"
    sources = [*sorted(folder.glob("*.c")), *sorted(folder.glob("*.h"))]
    return _built("libslurm.so", sources, (*STRICT, "-fPIC", "-shared"), ())


def plugin(source: Path) -> Path:
    """Return the shared library of a plugin given in C, built with the user's CFLAGS.

    Raises:
        PluginError: It does not compile; with what the compiler said.
    """
    include = f"-I{HEADER.parent}"
    flags = ("-g", "-O1", "-Wall", include, *shlex.split(os.environ.get("CFLAGS", "")))
    whole = _run([*shlex.split(compiler()), "-E", *flags, str(source)], source.name)
    digest = _digest([whole.stdout, " ".join(flags).encode(), version().encode()])
    target = cache_folder() / f"{source.stem}-{digest}.so"
    if not target.exists():
        _compile(target, [str(source)], (*flags, "-fPIC", "-shared", "-pthread"), ())
    return target


def _built(
    name: str, files: list[Path], arguments: tuple[str, ...], after: tuple[str, ...]
) -> Path:
    parts = [each.name.encode() + each.read_bytes() for each in files]
    digest = _digest([*parts, " ".join(arguments).encode(), version().encode()])
    stem, dot, suffix = name.partition(".")
    target = cache_folder() / f"{stem}-{digest}{dot}{suffix}"
    if not target.exists():
        sources = [str(each) for each in files if each.suffix == ".c"]
        _compile(target, sources, arguments, after)
    return target


def _compile(
    target: Path, sources: list[str], arguments: tuple[str, ...], after: tuple[str, ...]
) -> None:
    """Compile beside the target and rename: two that build at once do not meet."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        command = [*shlex.split(compiler()), *arguments, "-o", str(made), *sources, *after]
        _run(command, Path(sources[0]).name)
        made.rename(target)


def _run(command: list[str], what: str) -> subprocess.CompletedProcess[bytes]:
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS_AT_MOST)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PluginError(f"compiling {what} failed: {error}") from error
    if done.returncode:
        told = done.stderr.decode(errors="replace").strip().splitlines()
        raise PluginError(f"compiling {what} failed:\n" + "\n".join(told[:_TOLD_LINES]))
    return done


@lru_cache(maxsize=4)
def _version_of(command: str) -> str:
    said = _run([*shlex.split(command), "--version"], command).stdout.decode(errors="replace")
    return f"{platform.machine()} {said.partition(chr(10))[0]}"


def version() -> str:
    """Return what the C compiler says of itself, with the machine."""
    return _version_of(compiler())


def _digest(parts: list[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:16]
