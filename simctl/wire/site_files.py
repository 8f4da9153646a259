"""The files beside a site's slurm.conf: read, and checked for mistakes."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

import attrs

from simctl.wire import burst_buffer_conf
from simctl.wire.conf.lines import LineReader, Place, ReadFile, Setting, SiteMistake, by_key
from simctl.wire.conf.readers import did_you_mean

_CGROUP: Final = """
    AllowedDevicesFile AllowedKmemSpace AllowedRAMSpace AllowedSwapSpace CgroupAutomount
    CgroupMountpoint CgroupPlugin CgroupReleaseAgentDir ConstrainCores ConstrainDevices
    ConstrainKmemSpace ConstrainRAMSpace ConstrainSwapSpace EnableControllers IgnoreSystemd
    IgnoreSystemdOnFailure MaxKmemPercent MaxRAMPercent MaxSwapPercent MemoryLimitEnforcement
    MemoryLimitThreshold MemorySwappiness MinKmemSpace MinRAMSpace SignalChildrenProcesses
    SystemdTimeout TaskAffinity
"""
_GRES: Final = """
    AutoDetect Cores Count CPUs File Files Flags Ignore Links MultipleFiles Name NodeName Type
"""
_TOPOLOGY: Final = "BlockName BlockSizes LinkSpeed Nodes SwitchName Switches"


@attrs.frozen(kw_only=True)
class _Kind:
    """A file: the keys Slurm has for it, how their values are read, and why it is ignored."""

    keys: Mapping[str, Callable[[str], Any]]
    why: str
    lines: bool = False
    """Whether each line describes a thing of its own, so that keys come again."""


def _texts(keys: str) -> dict[str, Callable[[str], Any]]:
    return dict.fromkeys(keys.split(), str)


_WORD: Final = re.compile(r"[a-z]{1,32}")
BURST_BUFFER: Final = "burst_buffer.conf"
_KINDS: Final = {
    BURST_BUFFER: _Kind(keys=burst_buffer_conf.KEYS, why="BurstBufferType names no plugin"),
    "cgroup.conf": _Kind(keys=_texts(_CGROUP), why="nothing is confined"),
    "gres.conf": _Kind(keys=_texts(_GRES), why="nodes have what Gres of NodeName says", lines=True),
    "topology.conf": _Kind(keys=_texts(_TOPOLOGY), why="all nodes are near", lines=True),
}


@attrs.define(kw_only=True)
class SiteFile:
    """What stands in a file beside slurm.conf."""

    name: str
    path: str = ""
    lines: list[dict[str, Setting]] = attrs.field(factory=list)
    """Its settings by their folded keys, a line each."""
    values: dict[str, Any] = attrs.field(factory=dict)
    """Of a file whose lines belong together: what its keys say, by Slurm's names."""
    mistakes: list[SiteMistake] = attrs.field(factory=list)
    warnings: list[SiteMistake] = attrs.field(factory=list)

    @property
    def why(self) -> str:
        """Why it is ignored, if it is."""
        return _KINDS[self.name].why

    def texts(self) -> dict[str, str]:
        """Return what each key of burst_buffer.conf says, as it was written, by Slurm's names."""
        names = burst_buffer_conf.NAMES
        line = self.lines[0] if self.lines else {}
        return {names[key]: each.value for key, each in line.items() if key in names}


def read_site_file(name: str, text: str, path: str, read_file: ReadFile) -> SiteFile:
    """Read a file of the kind *name*, which stands at *path*."""
    kind = _KINDS[name]
    found = SiteFile(name=name, path=path)
    lines = LineReader(read_file, found.mistakes).lines(text, path)
    groups = lines if kind.lines else [tuple(setting for line in lines for setting in line)]
    known = {key.casefold(): key for key in kind.keys}
    for settings in groups:
        line = by_key(settings, found.warnings.append)
        found.lines.append(line)
        for folded, setting in line.items():
            _take(known.get(folded), setting, found)
    if {"AllowUsers", "DenyUsers"} <= found.values.keys():
        setting = found.lines[0]["denyusers"]
        message = "AllowUsers stands there too; one of them says it all"
        found.mistakes.append(SiteMistake(setting.key_place, setting.key, message))
    return found


def _take(key: str | None, setting: Setting, found: SiteFile) -> None:
    """Read the value of a key, or note that there is no such key."""
    keys = _KINDS[found.name].keys
    if key is None:
        hint = did_you_mean(setting.key, set(keys))
        message = f'"{setting.key}" is not a {found.name} key{hint}'
        found.mistakes.append(SiteMistake(setting.key_place, "", message))
        return
    try:
        found.values[key] = keys[key](setting.value)
    except ValueError as error:
        found.mistakes.append(SiteMistake(setting.place, setting.key, str(error)))


def read_site_files(
    slurm_conf: str, burst_buffer: Sequence[str], read_file: ReadFile, *, named: bool = False
) -> tuple[SiteFile, ...]:
    """Read the files that stand beside a slurm.conf.

    Args:
        slurm_conf: The path of slurm.conf.
        burst_buffer: The names of its burst buffer plugins.
        read_file: Reads a file.
        named: Whether the scenario names the burst_buffer.conf; then it is left to that.
    """
    folder = PurePath(slurm_conf).parent
    found = []
    for name in _KINDS:
        burst = name == BURST_BUFFER
        here = (
            _read_if_there(name, str(folder / name), read_file) if not (burst and named) else None
        )
        if here is not None:
            found.append(here)
        elif burst and not named:
            found += _of_plugins(folder, burst_buffer, read_file)
    return tuple(found)


def _of_plugins(folder: PurePath, names: Sequence[str], read_file: ReadFile) -> Iterator[SiteFile]:
    """Go through the burst_buffer_NAME.conf of each plugin, where there is none for all."""
    for plugin_name in filter(_WORD.fullmatch, names):
        path = str(folder / burst_buffer_conf.file_name(plugin_name))
        found = _read_if_there(BURST_BUFFER, path, read_file)
        if found is not None:
            yield found


def _read_if_there(name: str, path: str, read_file: ReadFile) -> SiteFile | None:
    try:
        return read_site_file(name, read_file(path), path, read_file)
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"cannot read the file: {error.strerror or error}"
    except ValueError as error:
        message = f"cannot read the file: {error}"
    return SiteFile(name=name, path=path, mistakes=[SiteMistake(Place(path), "", message)])
