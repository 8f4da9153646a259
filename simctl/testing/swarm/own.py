"""An author's own plugin in a swarm: it takes the place of the bundled one in every cluster."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from simctl.plugins.registry import PluginError, check_class, find_plugins
from simctl.status import InputError

_KEYS: Final = {
    "switch": "SwitchType",
    "checkpoint": "CheckpointType",
    "burst_buffer": "BurstBufferType",
}


@attrs.frozen(kw_only=True)
class Own:
    """Plugins that every cluster of a swarm has, by class, with their keys and directives."""

    plugins: Mapping[str, tuple[str, str]] = attrs.field(factory=dict)
    """By class: the type, and the reference, which starts from the folder at hand."""
    conf: Mapping[str, str] = attrs.field(factory=dict)
    directives: tuple[str, ...] = ()
    """Lines of scripts, of which each job with a burst buffer has one."""

    def type_of(self, plugin_class: str) -> str:
        """Return the type of the plugin of a class; empty if it has none of its own."""
        return self.plugins.get(plugin_class, ("", ""))[0]

    def head(self) -> list[str]:
        """Return the lines of a scenario that name the plugins."""
        if not self.plugins:
            return []
        return [f"plugins: {json.dumps([reference for _, reference in self.plugins.values()])}"]

    def over(self, conf: dict[str, str]) -> dict[str, str]:
        """Return slurm.conf with the plugins and their keys in it."""
        found = dict(conf)
        for plugin_class, (plugin_type, _) in self.plugins.items():
            found[_KEYS[plugin_class]] = plugin_type
        if self.type_of("switch"):
            # Its values are those of the bundled plugin that was drawn.
            found.pop("SwitchParameters", None)
        if self.type_of("checkpoint"):
            found.setdefault("JobCheckpointDir", "/shared/ck")
        return found | {key: json.dumps(value) for key, value in self.conf.items()}

    @property
    def words(self) -> list[str]:
        """Return the words of the command line that ask for it."""
        words = [each for _, reference in self.plugins.values() for each in ("--plugin", reference)]
        for key, value in self.conf.items():
            words += ["--conf", f"{key}={value}"]
        for line in self.directives:
            words += ["--directive", line]
        return words


def read_own(references: list[str], conf: list[str], directives: list[str]) -> Own:
    """Return what --plugin, --conf and --directive ask for.

    Raises:
        InputError: A plugin cannot be loaded, or something does not go with something else.
    """
    plugins: dict[str, tuple[str, str]] = {}
    for reference in references:
        plugin_type = _type_of(reference)
        plugin_class = plugin_type.partition("/")[0]
        if plugin_class in plugins:
            raise InputError(
                f"--plugin {reference}: {plugins[plugin_class][1]} is a {plugin_class} plugin "
                "already; each class may be named once"
            )
        plugins[plugin_class] = (plugin_type, reference)
    if not plugins and (conf or directives):
        raise InputError(f"--{'conf' if conf else 'directive'} goes with --plugin")
    if directives and "burst_buffer" not in plugins:
        raise InputError("--directive goes with a burst buffer plugin, which reads it in scripts")
    if "burst_buffer" in plugins and not directives:
        raise InputError(
            "--plugin: a burst buffer plugin is asked for nothing without a directive of its own; "
            "give one: --directive '#BB size=1'"
        )
    for line in directives:
        if not line.startswith("#") or "\n" in line:
            raise InputError(f"--directive: expected a line that begins with #, got {line!r}")
    return Own(plugins=plugins, conf=_pairs(conf), directives=tuple(directives))


def _type_of(reference: str) -> str:
    try:
        found = find_plugins(reference, Path())
        if len(found) != 1:
            names = ", ".join(each.kind.__name__ for each in found)
            raise InputError(f"--plugin {reference}: it has {names}; name one: {reference}:CLASS")
        return check_class(found[0].kind, reference)
    except PluginError as error:
        raise InputError(f"--plugin: {error}") from error


def _pairs(conf: list[str]) -> dict[str, str]:
    pairs = {}
    for text in conf:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise InputError(f"--conf: expected KEY=VALUE of slurm.conf, got {text!r}")
        if key in _KEYS.values():
            raise InputError(f"--conf {key}: --plugin chooses it")
        pairs[key] = value
    return pairs
