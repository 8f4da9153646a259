"""Files that work needs on other machines: a scenario's plugins, packed, and unpacked there."""

import hashlib
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import attrs

from simctl.status import InputError

FILES: Final = 2_000
BYTES: Final = 50 << 20
"""How many files may travel, and how large they may be together."""

_SUFFIXES: Final = (".py", ".lua", ".c", ".h", ".so")


@attrs.define(slots=False, kw_only=True)
class Bundle:
    """Files by their paths from a common folder, and the folder that references start from."""

    files: Mapping[str, bytes] = attrs.field(factory=dict)
    start: str = "."

    @cached_property
    def digest(self) -> str:
        """Return what stands for all of it; equal bundles have one."""
        found = hashlib.sha256(self.start.encode())
        for path in sorted(self.files):
            found.update(f"\0{path}\0{len(self.files[path])}\0".encode())
            found.update(self.files[path])
        return found.hexdigest()

    def unpack(self) -> Path:
        """Write the files into a folder for temporary ones, once; return where references start."""
        folder = Path(tempfile.gettempdir()) / f"simctl-{os.getuid()}" / self.digest[:32]
        if not folder.exists():
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            if folder.parent.stat().st_uid != os.getuid():
                raise InputError(
                    f"{folder.parent} is somebody else's: no plugin is read from there"
                )
            fresh = Path(tempfile.mkdtemp(dir=folder.parent))
            for path, data in self.files.items():
                target = fresh / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            (fresh / self.start).mkdir(parents=True, exist_ok=True)
            try:
                fresh.rename(folder)
            except OSError:
                # Another process of this machine was faster.
                if not folder.exists():
                    raise
        return folder / self.start


def plugin_files(folder: Path, references: Sequence[str], read: Collection[Path] = ()) -> Bundle:
    """Return the files that a scenario needs: those of its plugins, and those it read itself.

    Args:
        folder: The scenario's.
        references: Its plugins, as it names them.
        read: Other files, as they were read: `slurm_conf_file` and the like.

    Raises:
        InputError: A file is named by its whole path, or there is too much to take along.
    """
    check_travels(folder, references, read)
    return pack(folder, [*paths_of_plugins(folder, references), *read])


def check_travels(folder: Path, references: Iterable[str], read: Iterable[Path]) -> None:
    """Check that files were named from a scenario's folder on, which may lie elsewhere.

    Args:
        folder: The scenario's.
        references: Plugins and files, as it names them.
        read: Files as they were read, those among them that other files name.

    Raises:
        InputError: One was named by its whole path.
    """
    whole = [each for each in references if each.startswith("/")]
    whole += [str(each) for each in read if each.is_absolute() and not each.is_relative_to(folder)]
    for each in whole:
        raise InputError(
            f"{each} cannot travel to other machines, where it would lie elsewhere; name it by a "
            "path from the scenario's folder"
        )


def paths_of_plugins(folder: Path, references: Iterable[str]) -> list[Path]:
    """Return the files of the plugins that references name, with what lies beside them.

    A plugin may import what is in its own folder, or in its package. One that is installed is no
    file of any user's: it has to be installed on each machine.
    """
    found: dict[Path, None] = {}
    for reference in references:
        found.update(dict.fromkeys(_of_plugin(reference, folder)))
    return list(found)


def pack(folder: Path, paths: Iterable[Path]) -> Bundle:
    """Return files as they lie around a folder.

    Raises:
        InputError: There are too many, or they are too large.
    """
    found = sorted({path.resolve() for path in paths})
    if not found:
        return Bundle()
    if len(found) > FILES or sum(path.stat().st_size for path in found) > BYTES:
        raise InputError(
            f"--dask: more than {FILES} files or {BYTES >> 20} MiB have to travel: logs, and the "
            f"{', '.join(_SUFFIXES)} of the plugins' folders; give plugins a folder of their own"
        )
    start = folder.resolve()
    root = Path(os.path.commonpath([start, *(path.parent for path in found)]))
    files = {str(path.relative_to(root)): path.read_bytes() for path in found}
    return Bundle(files=files, start=str(start.relative_to(root)))


def _of_plugin(reference: str, folder: Path) -> Iterator[Path]:
    where = reference if reference.endswith(_SUFFIXES) else reference.rpartition(":")[0]
    where = where or reference
    if where.endswith(_SUFFIXES):
        yield from _beside((folder / where).resolve().parent)
        return
    parent, _, dotted = where.rpartition("/")
    top = (folder / parent / dotted.partition(".")[0]).resolve()
    if top.is_dir():
        for path in sorted(top.rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                yield path
    elif top.with_suffix(".py").is_file():
        yield from _beside(top.parent)


def _beside(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.suffix in _SUFFIXES and path.is_file():
            yield path
