"""Read burst_buffer.conf: keys in a scenario, a site's own file, and the two put together."""

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs
import yaml

from simctl.kernel.pattern import near
from simctl.scenario.positions import Reading, Value, pairs
from simctl.scenario.shapes import Values, check_mapping
from simctl.scenario.site.site import read_named, read_text, tell_file
from simctl.wire.burst_buffer_conf import KEYS, NAMES, check_writable
from simctl.wire.conf.values import words
from simctl.wire.site_files import BURST_BUFFER, SiteFile, read_site_file

_PLUGIN: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
_FILE: Final = re.compile(r".*?burst_buffer_([a-z][a-z0-9_]{0,31})\.conf")
_KEY: Final = "burst_buffer_conf"

Files = dict[str, dict[str, str | None]]
"""What each file says, by the plugin it is of, or by nothing where it is of all plugins."""


@attrs.frozen
class BurstBufferConfShape:
    """Keys of burst_buffer.conf, or of several files, each below the name of its plugin."""

    def read(self, value: Value, reading: Reading) -> Files:
        """Return the texts of the keys, None for one that is taken away; note their mistakes."""
        if value.nothing:
            return {}
        check_mapping(value, reading, "burst_buffer.conf keys")
        found: Files = {}
        for place, key, child in pairs(value, reading):
            if not isinstance(child.node, yaml.MappingNode):
                _take(found.setdefault("", {}), place, key, child, reading)
            elif key.casefold() in NAMES or not _PLUGIN.fullmatch(key):
                message = f"expected the name of a plugin, such as `generic`, got {place.shown()}"
                reading.mistake(place, message)
            else:
                own = found.setdefault(key, {})
                for inner, name, one in pairs(child, reading):
                    _take(own, inner, name, one, reading)
        if "" in found and len(found) > 1:
            message = "keys for all plugins stand beside those of one; write either form alone"
            reading.mistake(value, message)
        for each in found.values():
            _check_users(each, value, reading)
        return found

    def schema(self) -> dict[str, Any]:
        """Return an object with scalar values, or with objects of them."""
        scalar = {"type": ["string", "number", "null"]}
        keys = {"type": "object", "additionalProperties": scalar}
        return {"type": "object", "additionalProperties": {"anyOf": [scalar, keys]}}


BURST_BUFFER_CONF: Final = BurstBufferConfShape()


class BurstBufferFileShape:
    """The path of a burst_buffer.conf, from the folder of the scenario on."""

    def read(self, value: Value, reading: Reading) -> str:
        """Read what the file says, and note what is wrong with it."""
        path, text = read_named(value, reading, BURST_BUFFER)
        found = read_site_file(BURST_BUFFER, text, path, read_text)
        tell_file(found, reading)
        take_file(found, reading)
        return value.scalar

    def schema(self) -> dict[str, Any]:
        """Return a text."""
        return {"type": "string", "minLength": 1}


def _take(
    found: dict[str, str | None], place: Value, key: str, child: Value, reading: Reading
) -> None:
    """Read the value of a key, or note what is wrong with it."""
    name = NAMES.get(key.casefold())
    if name is None:
        reading.mistake(place, f"no burst_buffer.conf key `{key}`{near(key, tuple(KEYS))}")
    elif name in found:
        reading.mistake(place, f"given twice: {name} is the same key")
    elif child.nothing:
        found[name] = None
    elif not isinstance(child.node, yaml.ScalarNode):
        reading.mistake(child, f"expected one word, number or text, got {child.shown()}")
    else:
        try:
            KEYS[name](check_writable(child.scalar))
            found[name] = child.scalar
        except ValueError as error:
            reading.mistake(child, str(error))


def _check_users(keys: Mapping[str, str | None], value: Value, reading: Reading) -> None:
    if keys.get("AllowUsers") and keys.get("DenyUsers"):
        reading.mistake(value, "AllowUsers and DenyUsers are both set; one of them says it all")


def take_file(found: SiteFile, reading: Reading) -> None:
    """Read what a site's own file says."""
    match = _FILE.fullmatch(found.path)
    reading.burst_buffers[match[1] if match else ""] = found.texts()


def merge(values: Values, reading: Reading) -> None:
    """Put what the scenario says over what the site's own files do, key by key."""
    given: Files = values[_KEY]
    place = values.place(_KEY)
    merged: dict[str, dict[str, str]] = dict(reading.burst_buffers)
    if "" in merged and any(given.keys()):
        message = "the site's burst_buffer.conf is for all plugins: write the keys without a name"
        reading.mistake(place, message)
    for name, keys in given.items():
        for each in (name,) if name or not merged else tuple(merged):
            merged[each] = edited(merged.get(each, {}), keys)
            _check_users(merged[each], place, reading)
    values[_KEY] = merged
    for each_file in merged.values():
        _warn_of_strangers(each_file, place, reading)
    _check_plugins(values, merged, reading)


def _warn_of_strangers(keys: Mapping[str, str], place: Value, reading: Reading) -> None:
    for key in ("AllowUsers", "DenyUsers"):
        for name in words(keys.get(key, "")):
            if name not in reading.users and not name.isdecimal():
                hint = near(name, reading.users)
                reading.warn(place, f"{key} names {name!r}, who is no user here{hint}")


def edited(file: Mapping[str, str], keys: Mapping[str, str | None]) -> dict[str, str]:
    """Return what a file says once some of its keys have been written anew, or taken out."""
    return {key: text for key, text in {**file, **keys}.items() if text is not None}


def _check_plugins(values: Values, files: Mapping[str, object], reading: Reading) -> None:
    """Warn of what no plugin reads."""
    types = values["slurm_conf"].burst_buffer_types
    names = [each.partition("/")[2] for each in types]
    for key in (_KEY, f"{_KEY}_file"):
        if key in values.places and not names:
            reading.warn(values.place(key), "nobody reads it: BurstBufferType names no plugin")
    for name in files if names else ():
        if name and name not in names:
            message = f"nobody reads {name}: BurstBufferType is {','.join(types)}"
            reading.warn(values.place(_KEY), message)
