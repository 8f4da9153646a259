"""Read a site's slurm.conf by itself: the cluster it describes, and what has to be left out."""

import json
from pathlib import Path
from typing import Final

import attrs

from simctl.plugins.registry import Registry
from simctl.scenario.load import read_values, start
from simctl.scenario.model import NodeSpec, PartitionSpec
from simctl.scenario.positions import Mistake, Reading, ScenarioErrors, sort_mistakes
from simctl.scenario.site.site import leave_out_unbuilt, mistake_at, read_text, site_settings
from simctl.scenario.users import SLURM_UID, check_user_name
from simctl.wire.conf.site import Site, read_site
from simctl.wire.conf.site_file import slurm_name
from simctl.wire.conf.slurm_conf import SCRIPT_KEYS, SlurmConf


@attrs.frozen(kw_only=True)
class ImportedCluster:
    """What a slurm.conf says, as a scenario has it."""

    file: str
    settings: dict[str, str]
    """The keys that act, by Slurm's names, as they were written."""
    conf: SlurmConf
    nodes: tuple[NodeSpec, ...]
    partitions: tuple[PartitionSpec, ...]
    users: dict[str, int]
    """The user that slurmctld runs as, where simctl has none of this name."""
    scripts: tuple[str, ...]
    """Prologs and epilogs."""
    ignored: tuple[str, ...]
    left_out: tuple[Mistake, ...]
    warnings: tuple[Mistake, ...]


def read_imported(file: str) -> ImportedCluster:
    """Read a slurm.conf, and what it includes.

    Raises:
        ScenarioErrors: It cannot be read, or holds mistakes: all of them.
    """
    site = read_site(_text_of(file), file, read_text)
    users = _slurm_user(site)
    # What is read is a scenario that has this file and nothing else, so that both ways agree.
    given = {"slurm_conf_file": Path(file).name, "users": users}
    text = json.dumps(given)
    reading = start(text, file)
    reading.lenient = True
    registry = Registry()
    reading.plugin_types = (*registry.types("switch"), *registry.types("checkpoint"))
    values = read_values(text, reading)
    conf = values["slurm_conf"]
    scripts = (str(conf.value(key)) for key in SCRIPT_KEYS)
    return ImportedCluster(
        file=file,
        settings=_settings(reading),
        conf=conf,
        nodes=values["nodes"],
        partitions=values["partitions"],
        users=users,
        scripts=tuple(dict.fromkeys(filter(None, scripts))),
        ignored=reading.site.ignored.texts() if reading.site is not None else (),
        left_out=sort_mistakes(reading.left_out),
        warnings=tuple(each for each in sort_mistakes(reading.warnings) if _worth(each)),
    )


def _worth(warning: Mistake) -> bool:
    """Tell what a comment of the scenario says already, or the scenario has put right."""
    return not any(word in warning.message for word in _SAID)


_SAID: Final = ("ignored here", "nobody described")


def _text_of(file: str) -> str:
    try:
        return read_text(file)
    except OSError as error:
        message = f"cannot read the file: {error.strerror or error}"
    except ValueError as error:
        message = f"cannot read the file: {error}"
    raise ScenarioErrors((Mistake(file=file, line=0, column=0, path="", message=message),))


def _slurm_user(site: Site) -> dict[str, int]:
    """Return the uid of a SlurmUser that simctl does not have by itself.

    Raises:
        ScenarioErrors: No user can be called so.
    """
    setting = site.settings.get("slurmuser")
    if setting is None or setting.value in ("", "root", "slurm"):
        return {}
    try:
        check_user_name(setting.value)
    except ValueError as error:
        site_mistake = mistake_at(setting.place, setting.key, str(error))
        raise ScenarioErrors((site_mistake,)) from None
    return {setting.value: SLURM_UID + 1}


def _settings(reading: Reading) -> dict[str, str]:
    """Return the keys that act as they were written, without those that are left out."""
    _, values = site_settings((), reading)
    silent = attrs.evolve(reading, left_out=[])
    leave_out_unbuilt(values, silent)
    return {slurm_name(key): value for key, value in values.items()}
