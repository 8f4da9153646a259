"""Which plugins there are: the bundled ones, and those a scenario names."""

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import attrs

from simctl.plugins.checkpoint.none import CheckpointNone
from simctl.plugins.points import BY_CLASS
from simctl.plugins.switch.none import SwitchNone


class PluginError(ValueError):
    """A plugin cannot be used; the text says which, why, and what would do."""


@attrs.frozen(kw_only=True)
class Entry:
    """A plugin that may be named in slurm.conf: its class, and where that came from."""

    kind: type[Any]
    origin: str


def _bundled() -> dict[str, Entry]:
    return {
        kind.plugin_type: Entry(kind=kind, origin=f"bundled with simctl as {kind.__name__}")
        for kind in (SwitchNone, CheckpointNone)
    }


class Registry:
    """The plugins a run may load, by type (``switch/none``)."""

    def __init__(self) -> None:
        self._entries = _bundled()

    def types(self, plugin_class: str) -> list[str]:
        """Return the types of *plugin_class* that can be loaded, sorted."""
        return sorted(name for name in self._entries if name.split("/")[0] == plugin_class)

    def kind(self, plugin_type: str) -> type[Any]:
        """Return the class of a plugin."""
        return self._entries[plugin_type].kind

    def make(self, plugin_type: str) -> Any:
        """Return a new instance, as a process gets that loads the plugin.

        Raises:
            PluginError: The constructor failed.
        """
        kind = self._entries[plugin_type].kind
        try:
            return kind()
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"plugin {plugin_type}: {kind.__name__}() failed: {error!r}; "
                "a plugin is made without arguments"
            ) from error

    def require(self, plugin_type: str, key: str) -> None:
        """Check that slurm.conf's *key* names a plugin there is.

        Raises:
            PluginError: There is none of this type.
        """
        if plugin_type not in self._entries:
            known = ", ".join(self.types(plugin_type.split("/", maxsplit=1)[0])) or "none at all"
            raise PluginError(
                f"slurm_conf.{key}: there is no plugin {plugin_type!r}; known: {known}. "
                'Name a file of your own under plugins: ["./my_plugin.py:MyPlugin"]'
            )

    def add(self, reference: str, folder: Path) -> None:
        """Take in the class that ``file.py:Class`` or ``package.module:Class`` names.

        Raises:
            PluginError: It is not there, or does not fit its guide.
        """
        where, _, name = reference.rpartition(":")
        if not where or not name:
            raise PluginError(
                f"plugin {reference!r}: expected a file and a class, './my_switch.py:MySwitch', "
                "or a module and a class, 'package.module:MySwitch'"
            )
        module = _import(reference, where, folder)
        kind = vars(module).get(name)
        if not isinstance(kind, type):
            classes = [key for key, value in vars(module).items() if isinstance(value, type)]
            raise PluginError(
                f"plugin {reference!r}: {where} has no class {name!r}; "
                f"it has {', '.join(classes) or 'none'}"
            )
        plugin_type = check_class(kind, reference)
        if plugin_type in self._entries:
            other = self._entries[plugin_type].origin
            raise PluginError(
                f"plugin {reference!r}: {plugin_type} is there already, {other}; "
                "give this one a plugin_type of its own"
            )
        self._entries[plugin_type] = Entry(kind=kind, origin=reference)


def _import(reference: str, where: str, folder: Path) -> Any:
    try:
        if not where.endswith(".py"):
            return importlib.import_module(where)
        return _import_file(folder / where)
    except FileNotFoundError as error:
        raise PluginError(
            f"plugin {reference!r}: there is no file {where!r} beside the scenario"
        ) from error
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"plugin {reference!r}: importing {where} failed: {type(error).__name__}: {error}"
        ) from error


def _import_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"simctl_scenario_plugin_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Registered, so that dataclasses and pickling inside the plugin find their module.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def check_class(kind: type[Any], reference: str) -> str:
    """Check a plugin class against its guide and return its type.

    Raises:
        PluginError: Everything that is missing or does not fit, at once.
    """
    plugin_type = getattr(kind, "plugin_type", None)
    if not isinstance(plugin_type, str) or not _TYPE.fullmatch(plugin_type):
        raise PluginError(
            f"plugin {reference!r}: plugin_type is {plugin_type!r}; expected "
            + " or ".join(f"'{name}/...'" for name in BY_CLASS)
        )
    mistakes = [
        problem
        for point in BY_CLASS[plugin_type.split("/", maxsplit=1)[0]]
        for problem in _misfits(kind, point.name, point.parameters)
    ]
    for name in ("init", "fini"):
        if hasattr(kind, name):
            mistakes += _misfits(kind, name, ())
    if mistakes:
        raise PluginError(f"plugin {reference!r}: " + "; ".join(mistakes))
    return plugin_type


_TYPE: Final = re.compile(rf"({'|'.join(BY_CLASS)})/[^\s/]+")
_BY_PLACE: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def _written(parameters: Iterable[inspect.Parameter]) -> str:
    """Return parameters as they are written, without types."""
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return str(inspect.Signature(bare))


def _misfits(kind: type[Any], name: str, parameters: tuple[str, ...]) -> list[str]:
    method = getattr(kind, name, None)
    wanted = f"def {name}({', '.join(('self', *parameters))})"
    if method is None:
        return [f"{name} is missing; the guide wants `{wanted}`"]
    if not callable(method):
        return [f"{name} is a {type(method).__name__}; the guide wants `{wanted}`"]
    try:
        have = tuple(inspect.signature(method).parameters.values())
    except (TypeError, ValueError):
        return [f"{name} does not tell its parameters; the guide wants `{wanted}`"]
    # Daemons pass the arguments by place.
    positional = all(parameter.kind in _BY_PLACE for parameter in have)
    if not positional or tuple(parameter.name for parameter in have)[1:] != parameters:
        got = f"def {name}{_written(have)}"
        return [f"{name} does not fit: it is `{got}`, the guide wants `{wanted}`"]
    return []
