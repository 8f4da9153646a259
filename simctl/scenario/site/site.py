"""A site's own slurm.conf beside a scenario, which overrides it and completes it."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from simctl.files import read_bytes
from simctl.kernel.disk import is_shared
from simctl.scenario.names import check_node_name, check_partition_name
from simctl.scenario.positions import Mistake, Reading, Value
from simctl.wire.conf.lines import Place, Setting, SiteMistake
from simctl.wire.conf.names import renamed
from simctl.wire.conf.readers import host_name
from simctl.wire.conf.site import Site, read_site
from simctl.wire.conf.site_file import (
    KeyKind,
    acting_words,
    holds_instead,
    key_kind,
    slurm_name,
    stands_in,
    unknown_word,
)
from simctl.wire.conf.slurm_conf import ConfMistake, SlurmConf, read_conf
from simctl.wire.site_files import SiteFile

_TAG: Final = "tag:yaml.org,2002:str"


def read_text(path: str) -> str:
    """Return the text of a file; one that is not UTF-8 is Latin-1, as old comments are.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no text, or its name is none.
    """
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if b"\0" in data:
            raise ValueError("it is no text") from error
        return data.decode("latin-1")


def read_named(
    value: Value, reading: Reading, what: str, read: Callable[[str], str] = read_text
) -> tuple[str, str]:
    """Return the path that a value names, from the folder of the scenario on, and the text."""
    if not isinstance(value.node, yaml.ScalarNode) or not value.scalar:
        raise reading.refuse(value, f"expected the path of a {what}, got {value.shown()}")
    path = str(Path(reading.folder) / value.scalar)
    try:
        return path, read(path)
    except OSError as error:
        raise reading.refuse(value, f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise reading.refuse(value, f"cannot read {path}: {error}") from error


class SiteShape:
    """The path of a slurm.conf, from the folder of the scenario on; reading it reads that file."""

    def read(self, value: Value, reading: Reading) -> str:
        """Read the file into the reading, with all its mistakes."""
        path, text = read_named(value, reading, "slurm.conf")
        site = read_site(text, path, read_text)
        reading.site = site
        reading.loaded = ()
        for name, node in site.nodes.items():
            if node.state != "FUTURE":
                reading.nodes.setdefault(name, len(reading.nodes))
        _check_names(site)
        reading.partitions |= {name: part.default for name, part in site.partitions.items()}
        return value.scalar

    def schema(self) -> dict[str, Any]:
        """Return a text."""
        return {"type": "string", "minLength": 1}


def _check_names(site: Site) -> None:
    """Note names that Slurm takes, it may be, and that cannot be had here."""
    for name, node in site.nodes.items():
        try:
            check_node_name(name)
        except ValueError as error:
            site.mistakes.append(SiteMistake(node.place, "NodeName", str(error)))
    for name, part in site.partitions.items():
        try:
            check_partition_name(name)
        except ValueError as error:
            site.mistakes.append(SiteMistake(part.place, "PartitionName", str(error)))


def placed(setting: Setting) -> Value:
    """Return a setting of the file as a value of the scenario that stands there."""
    mark = _mark(setting.place)
    node = yaml.ScalarNode(_TAG, setting.value, start_mark=mark, end_mark=mark, style='"')
    return Value(node=node, path=setting.key, file=setting.place.file)


def _mark(place: Place) -> Any:
    return yaml.Mark(place.file, 0, place.line - 1, place.column - 1, None, 0)


# slurm.conf


def site_settings(
    given: Iterable[str], reading: Reading
) -> tuple[dict[str, Value], dict[str, str]]:
    """Return the places and the values of what acts in the file and the scenario does not give."""
    site = reading.site
    places: dict[str, Value] = {}
    values: dict[str, str] = {}
    own = {key.casefold() for key in given}
    backup, notes = _backup(site, own) if site is not None else (None, {})
    for folded, setting in site.settings.items() if site is not None else ():
        if folded in _CONTROLLERS and folded in notes:
            _ignore(site, slurm_name(setting.key), notes[folded])
        if folded in own or folded in _CONTROLLERS:
            continue
        name = slurm_name(setting.key)
        kind = key_kind(setting.key, setting.value)
        if kind is KeyKind.NO_EFFECT:
            holds = holds_instead(setting.key)
            note = f"{setting.value}, where {holds} holds" if holds else renamed(name)
            _ignore(site, name, note)
        elif kind is KeyKind.ACTS:
            value, without = acting_words(setting.key, stands_in(setting.key, setting.value))
            if setting.value.casefold().endswith("cons_res"):
                _ignore(site, f"{name}={setting.value}", f"{value} stands in for it")
            for word in without:
                _ignore(site, f"{name}={word}", unknown_word(setting.key, word))
            places[setting.key] = placed(setting)
            values[setting.key] = value
    if backup is not None:
        places[backup.key] = placed(backup)
        values[backup.key] = backup.value
    return places, values


def _ignore(site: Site | None, name: str, note: str) -> None:
    if site is not None:
        site.ignored.add(name, note)


def conf_of(children: dict[str, Value], given: dict[str, object], reading: Reading) -> SlurmConf:
    """Return the configuration; later parts of the scenario may name the backup controller."""
    conf = _conf_of(children, given, reading)
    reading.backup = conf.backup_controller
    reading.loaded = conf.plugin_types
    return conf


def _conf_of(children: dict[str, Value], given: dict[str, object], reading: Reading) -> SlurmConf:
    """Return the configuration of the scenario's keys and the file's; note their mistakes."""
    places, values = site_settings(children, reading)
    if reading.lenient:
        leave_out_unbuilt(values, reading)
    conf, mistakes = read_conf({**values, **given})
    for mistake in mistakes:
        place = children.get(mistake.key) or places.get(mistake.key)
        hint = ""
        if mistake.key in places and mistake.unbuilt:
            hint = f"; slurm_conf of the scenario may give another {slurm_name(mistake.key)}"
        if place is not None:
            reading.mistake(place, f"{mistake.message}{hint}")
    return conf


_CONTROLLERS: Final = ("slurmctldhost", "backupcontroller")


def _backup(site: Site, own: set[str]) -> tuple[Setting | None, dict[str, str]]:
    """Return the backup controller of a site's file, as BackupController, None if there is none.

    The file may name it as the second SlurmctldHost. One that could not see the primary's state
    here is left out, and one that the scenario has an opinion of. The notes say, by folded keys,
    what is not acted on.
    """
    found = site.settings.get("backupcontroller")
    notes: dict[str, str] = {}
    if site.controllers:
        if found is not None:
            notes["backupcontroller"] = "SlurmctldHost names the controllers"
        notes["slurmctldhost"] = ""
        backups = site.controllers[1:]
        found = None
        if backups:
            name = host_name(backups[0].value)
            found = attrs.evolve(backups[0], key="BackupController", value=name)
            del notes["slurmctldhost"]
        if backups[1:]:
            names = " and ".join(host_name(each.value) for each in backups[1:])
            notes["slurmctldhost"] = f"{names}: one backup controller is simulated"
    if found is None or any(key in own for key in _CONTROLLERS):
        return None, notes
    where = site.settings.get("statesavelocation")
    if "statesavelocation" not in own and not is_shared(where.value if where else "/"):
        key = "slurmctldhost" if site.controllers else "backupcontroller"
        notes[key] = "StateSaveLocation is on one host alone here"
        return None, notes
    return found, notes


def leave_out_unbuilt(values: dict[str, str], reading: Reading) -> None:
    """Take out what is not simulated of the file's values, and what makes no sense without it."""
    while True:
        _, mistakes = read_conf(dict(values))
        found = [mistake for mistake in mistakes if mistake.unbuilt]
        if not found and reading.left_out:
            found = [mistake for mistake in mistakes if mistake.key.casefold() in _PREEMPTION]
        if not found:
            found = list(_missing_plugins(values, reading))
        if not found:
            return
        for mistake in found:
            if values.pop(mistake.key, None) is not None and reading.site is not None:
                setting = reading.site.settings[mistake.key.casefold()]
                reading.left_out.append(mistake_at(setting.place, setting.key, mistake.message))


def _missing_plugins(values: dict[str, str], reading: Reading) -> Iterator[ConfMistake]:
    """Go through the keys that name a plugin of the guides which is not written here."""
    for key, value in values.items():
        if key.casefold() == "burstbuffertype":
            yield ConfMistake(key=key, message="what is on record does not tell of burst buffers")
        elif key.casefold() in _OF_PLUGINS and value not in reading.plugin_types:
            kind = value.partition("/")[0]
            known = ", ".join(each for each in reading.plugin_types if each.startswith(f"{kind}/"))
            yield ConfMistake(key=key, message=f"there is no plugin {value} here; known: {known}")


_OF_PLUGINS: Final = ("switchtype", "checkpointtype")
_PREEMPTION: Final = ("preempttype", "preemptmode")


def tell_file(found: SiteFile, reading: Reading) -> None:
    """Note what is wrong with a file beside slurm.conf."""
    reading.mistakes += [mistake_at(one.place, one.key, one.message) for one in found.mistakes]
    reading.warnings += [mistake_at(one.place, one.key, one.message) for one in found.warnings]


def note(reading: Reading, place: Place, key: str, message: str) -> None:
    """Note what is wrong at a place of a site's file."""
    reading.mistakes.append(mistake_at(place, key, message))


def mistake_at(place: Place, key: str, message: str) -> Mistake:
    """Return a mistake at a place of a site's file."""
    return Mistake(file=place.file, line=place.line, column=place.column, path=key, message=message)
