"""Which plugins there are: the bundled ones, the installed ones, and those a scenario names."""

import difflib
import importlib
import sys
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from simctl.api.surroundings import told_failure
from simctl.plugins.compiled import ALONE, Against
from simctl.plugins.fitting import check_class
from simctl.plugins.guard import PluginError, loading
from simctl.plugins.importing import GROUP, Found, find

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Entry", "Known", "PluginError", "Registry", "check_class", "find_plugins"]


_BUNDLED: Final = {
    "switch/none": "simctl.plugins.switch.none:SwitchNone",
    "switch/elan": "simctl.plugins.switch.elan:SwitchElan",
    "switch/federation": "simctl.plugins.switch.federation:SwitchFederation",
    "checkpoint/none": "simctl.plugins.checkpoint.none:CheckpointNone",
    "checkpoint/blcr": "simctl.plugins.checkpoint.blcr:CheckpointBlcr",
    "checkpoint/ompi": "simctl.plugins.checkpoint.ompi:CheckpointOmpi",
    "burst_buffer/datawarp": "simctl.plugins.burst_buffer.datawarp.plugin:BurstBufferDatawarp",
    "burst_buffer/generic": "simctl.plugins.burst_buffer.generic.plugin:BurstBufferGeneric",
    "burst_buffer/lua": "simctl.plugins.burst_buffer.lua.plugin:BurstBufferLua",
    "job_submit/lua": "simctl.plugins.job_submit.lua:JobSubmitLua",
    "cli_filter/lua": "simctl.plugins.cli_filter.lua:CliFilterLua",
}
"""The plugins that come with simctl, by type; a module is imported when its plugin is asked for."""


@attrs.frozen(kw_only=True)
class Entry:
    """A plugin that may be named in slurm.conf: its class, and where that came from."""

    given: type[Any] | str
    """The class, or the module and class of a bundled plugin."""

    origin: str

    @property
    def kind(self) -> type[Any]:
        """Return the class."""
        return _imported(self.given) if isinstance(self.given, str) else self.given


@cache
def _imported(reference: str) -> type[Any]:
    module, _, name = reference.partition(":")
    kind: type[Any] = getattr(importlib.import_module(module), name)
    return kind


@attrs.frozen(kw_only=True)
class Known:
    """A plugin in a listing; `problem` says why it could not be used, and is empty if it could."""

    plugin_type: str
    name: str
    version: str
    origin: str
    problem: str
    kind: type[Any] | None


_SOUND: Final[set[tuple[str, str]]] = set()
"""The bundled plugins that were looked at, and for which model: a search asks for each run."""


def _bundled() -> dict[str, Entry]:
    return {
        plugin_type: Entry(given=given, origin=f"bundled with simctl as {given.split(':')[1]}")
        for plugin_type, given in _BUNDLED.items()
    }


class UnknownPluginError(PluginError):
    """slurm.conf names a plugin that there is not; `meant` says which may be meant."""

    def __init__(self, mistake: str, *, meant: str) -> None:
        super().__init__(mistake)
        self.meant = meant


class Registry:
    """The plugins a run may load, by type (``switch/none``); those *installed* only if asked."""

    def __init__(self, *, installed: bool = True) -> None:
        self._entries = _bundled()
        self._installed = installed
        self._on_hosts: dict[tuple[str, str], type[Any]] = {}
        self.against = ALONE
        """What compiled plugins that are taken in find beside themselves."""

    def types(self, plugin_class: str) -> list[str]:
        """Return the types of *plugin_class* that can be loaded, sorted."""
        named = {name for point in _entry_points() if "/" in (name := point.name)}
        return sorted(
            name for name in {*self._entries, *named} if name.split("/")[0] == plugin_class
        )

    def has_others(self) -> bool:
        """Return whether there are plugins beside the bundled ones."""
        return bool(self._on_hosts) or any(
            entry.given not in _BUNDLED.values() for entry in self._entries.values()
        )

    def at_hand(self, plugin_class: str) -> list[str]:
        """Return the types of *plugin_class* that are bundled, named or taken in, sorted."""
        return sorted(name for name in self._entries if name.split("/")[0] == plugin_class)

    def kind(self, plugin_type: str) -> type[Any]:
        """Return the class of a plugin."""
        return self._entries[plugin_type].kind

    def kinds(self, plugin_type: str) -> tuple[type[Any], ...]:
        """Return the class of a plugin, and those that stand for it on some hosts."""
        others = [kind for (_, name), kind in self._on_hosts.items() if name == plugin_type]
        return (self._entries[plugin_type].kind, *others)

    def make(self, plugin_type: str, host: str = "") -> Any:
        """Return a new instance, as a process of *host* gets that loads the plugin.

        Raises:
            PluginError: The constructor failed.
        """
        kind = self._on_hosts.get((host, plugin_type), self._entries[plugin_type].kind)
        try:
            return kind()
        except BaseException as error:
            raise PluginError(
                f"plugin {plugin_type}: {kind.__name__}() failed: {told_failure(error)}"
            ) from error

    def require(self, plugin_type: str, key: str, model: str = "guide") -> None:
        """Check that slurm.conf's *key* names a plugin there is, and one that can be loaded.

        Raises:
            PluginError: There is none of this type, or more than one, or it does not fit.
        """
        if self._installed and plugin_type not in _BUNDLED:
            self._take_installed(plugin_type)
        entry = self._entries.get(plugin_type)
        if entry is None:
            plugin_class, _, name = plugin_type.partition("/")
            types = {each.partition("/")[2]: each for each in self.types(plugin_class)}
            known = ", ".join(types.values()) or "none at all"
            close = difflib.get_close_matches(name, types, n=1)
            hint = f"; did you mean {types[close[0]]}" if close else ""
            raise UnknownPluginError(
                f"slurm_conf.{key}: there is no plugin {plugin_type!r}{hint}; known: {known}. "
                'Name a file of your own under plugins: ["./my_plugin.py:MyPlugin"]',
                meant=hint,
            )
        bundled = entry.given == _BUNDLED.get(plugin_type)
        if bundled and (plugin_type, model) in _SOUND:
            return
        check_class(entry.kind, entry.origin, model)
        if bundled:
            _SOUND.add((plugin_type, model))

    def add(self, reference: str, folder: Path) -> None:
        """Register the class that ``file.py:Class`` or ``package.module:Class`` names.

        Raises:
            PluginError: It is not there, does not fit its guide, or is there already.
        """
        kind = _only(reference, folder, self.against)
        self.put(kind, reference)

    def add_on(self, host: str, reference: str, folder: Path, model: str) -> None:
        """Register a class that stands for the plugin of its type on one host: another version.

        Raises:
            PluginError: It is not there, does not fit its guide, or there is none of its type.
        """
        kind = _only(reference, folder, self.against)
        plugin_type = check_class(kind, reference, model)
        if plugin_type not in self._entries:
            raise PluginError(
                f"plugin {reference!r}: it is another version of {plugin_type}, which no other "
                "host has; name one of this type under `plugins` of the scenario"
            )
        self._on_hosts[host, plugin_type] = kind

    def put(self, kind: type[Any], origin: str, *, instead: bool = False) -> None:
        """Register a class; with *instead* it stands for whatever there is of its type.

        Raises:
            PluginError: It does not fit its guide, or there is one of its type already.
        """
        plugin_type = check_class(kind, origin)
        other = self._entries.get(plugin_type)
        if other is not None and other.kind is kind:
            # One class by two ways, such as its module and its entry point.
            return
        if other is not None and not instead:
            raise PluginError(
                f"plugin {origin!r}: {plugin_type} is there already, {other.origin}; "
                "give this one a plugin_type of its own"
            )
        self._entries[plugin_type] = Entry(given=kind, origin=origin)

    def _take_installed(self, plugin_type: str) -> None:
        """Register the installed plugin of a type, if there is one."""
        points = [point for point in _entry_points() if point.name == plugin_type]
        # An entry whose name is no type may be of any: only loading it tells.
        unnamed = [point for point in _entry_points() if "/" not in point.name]
        found = [_load(point) for point in points]
        for point in unnamed:
            try:
                loaded = _load(point)
            except PluginError:
                continue
            if getattr(loaded.kind, "plugin_type", None) == plugin_type:
                found.append(loaded)
        for each in found:
            own = check_class(each.kind, each.origin)
            if own != plugin_type:
                raise PluginError(
                    f"plugin {each.origin!r}: it is offered as {plugin_type}, and its plugin_type "
                    f"is {own}; give both one name"
                )
            self.put(each.kind, each.origin)

    @staticmethod
    def look_at(kind: type[Any], origin: str) -> Known:
        """Return what a listing says of a class."""
        return _known(kind, origin)

    def listing(self) -> list[Known]:
        """Return every plugin there is, by type; those that cannot be used say why."""
        listed = [_known(entry.kind, entry.origin) for entry in self._entries.values()]
        for point in _entry_points():
            try:
                found = _load(point)
            except PluginError as error:
                listed.append(
                    Known(
                        plugin_type=point.name,
                        name="",
                        version="",
                        origin=_origin_of(point),
                        problem=str(error),
                        kind=None,
                    )
                )
            else:
                listed.append(_known(found.kind, found.origin))
        types = [each.plugin_type for each in listed]
        return [
            attrs.evolve(each, problem=each.problem or _doubled(each, listed, types))
            for each in sorted(listed, key=lambda known: known.plugin_type)
        ]


def _only(reference: str, folder: Path, against: Against) -> type[Any]:
    """Return the one class that a reference names.

    Raises:
        PluginError: There is none, or there are several.
    """
    found = find(reference, folder, against)
    if len(found) > 1:
        names = ", ".join(each.kind.__name__ for each in found)
        raise PluginError(
            f"plugin {reference!r}: there are several plugin classes in it; name one: {names}"
        )
    return found[0].kind


def _known(kind: type[Any], origin: str) -> Known:
    problem = ""
    try:
        check_class(kind, origin)
    except PluginError as error:
        problem = str(error)
    return Known(
        plugin_type=str(getattr(kind, "plugin_type", "?")),
        name=str(getattr(kind, "plugin_name", "")),
        version=str(getattr(kind, "plugin_version", "")),
        origin=origin,
        problem=problem,
        kind=kind,
    )


def _doubled(one: Known, listed: list[Known], types: list[str]) -> str:
    if types.count(one.plugin_type) < 2:  # noqa: PLR2004 - one is itself
        return ""
    others = [each.origin for each in listed if each.plugin_type == one.plugin_type]
    return f"there are several of this type: {'; '.join(others)}"


# What is installed.


def _entry_points() -> tuple["EntryPoint", ...]:
    return _entry_points_of(tuple((folder, _changed_ns(folder)) for folder in sys.path))


def _changed_ns(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _entry_points_of(_: tuple[tuple[str, int], ...]) -> tuple["EntryPoint", ...]:
    """Return what is installed in folders as they are; looking takes longer than a small run."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - few runs look there

    return tuple(entry_points(group=GROUP))


def _origin_of(point: "EntryPoint") -> str:
    package = point.dist.name if point.dist is not None else "an installed package"
    return f"{point.value} of {package}"


def _load(point: "EntryPoint") -> Found:
    """Import what an entry point names.

    Raises:
        PluginError: That fails, or it is no class.
    """
    origin = _origin_of(point)
    with loading(f"plugin {point.name!r} ({origin})"):
        kind = point.load()
    if not isinstance(kind, type):
        raise PluginError(f"plugin {point.name!r} ({origin}): {point.value} is no class")
    return Found(kind=kind, origin=origin)


def find_plugins(reference: str, folder: Path, against: Against = ALONE) -> list[Found]:
    """Return the plugin classes that a reference names, not checked yet.

    Args:
        reference: A file or module, with or without a class, or the type of a plugin there is.
        folder: What a file's path starts from.
        against: What a compiled plugin finds beside itself.

    Raises:
        PluginError: There is none.
    """
    known = [each for each in _bundled().items() if each[0] == reference]
    if known:
        return [Found(kind=entry.kind, origin=entry.origin) for _, entry in known]
    installed = [point for point in _entry_points() if point.name == reference]
    if installed:
        return [_load(point) for point in installed]
    return find(reference, folder, against)
