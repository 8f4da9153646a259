"""What a scenario takes from a site's slurm.conf, and what is said of that file."""

from typing import Final

from simctl.scenario.positions import Reading
from simctl.scenario.shapes import Values
from simctl.scenario.site.burst_buffer_conf import take_file
from simctl.scenario.site.merge import merge_nodes, merge_partitions
from simctl.scenario.site.site import conf_of, mistake_at, note, read_text, tell_file
from simctl.wire.conf.lines import Place, SiteMistake
from simctl.wire.conf.site import Site
from simctl.wire.gres_conf import too_few
from simctl.wire.site_files import BURST_BUFFER, read_site_files

_SCENARIO_KEYS: Final = {
    "state": "state",
    "preemptmode": "preempt_mode",
    "oversubscribe": "over_subscribe",
    "shared": "over_subscribe",
}


def complete(values: Values, reading: Reading) -> None:
    """Take from the file what the scenario does not say at all, and note what is wrong with it."""
    if reading.site is None:
        return
    if "slurm_conf" not in values.places:
        values["slurm_conf"] = conf_of({}, {}, reading)
    for key, merge in (("nodes", merge_nodes), ("partitions", merge_partitions)):
        if key not in values.places:
            values[key] = merge((), reading)
        if not values[key] and not reading.mistakes and not reading.site.mistakes:
            note(reading, Place(reading.site.file), "", f"the file names no {key}")
    _read_others(reading.site, values, reading)
    _tell_site(reading)


def _read_others(site: Site, values: Values, reading: Reading) -> None:
    """Look at the files beside slurm.conf; of them burst_buffer.conf acts, if a plugin reads it."""
    types = values["slurm_conf"].burst_buffer_types
    names = [each.partition("/")[2] for each in types]
    named = "burst_buffer_conf_file" in values.places
    for found in read_site_files(site.file, names, read_text, named=named):
        tell_file(found, reading)
        if found.name == BURST_BUFFER and names:
            take_file(found, reading)
        else:
            site.ignored.add(found.name, found.why)
        if found.name == "gres.conf":
            site.warnings += too_few(found, site.nodes)


def _tell_site(reading: Reading) -> None:
    """Note what is wrong with the file, and once what in it is not acted on."""
    site = reading.site
    if site is None:
        return
    for mistake in site.mistakes:
        if reading.lenient and mistake.unbuilt:
            reading.left_out.append(mistake_at(mistake.place, mistake.key, mistake.message))
        elif not _mended(mistake, reading):
            hint = "; the scenario may say otherwise" if mistake.unbuilt else ""
            note(reading, mistake.place, mistake.key, f"{mistake.message}{hint}")
    for warning in site.warnings:
        reading.warnings.append(mistake_at(warning.place, warning.key, warning.message))
    if site.ignored.words:
        message = f"known to Slurm, and ignored here: {site.ignored}"
        reading.warnings.append(mistake_at(Place(site.file), "", message))


def _mended(mistake: SiteMistake, reading: Reading) -> bool:
    """Return whether a value is not simulated, and the scenario gives another for all it is of."""
    key = _SCENARIO_KEYS.get(mistake.key.casefold(), "")
    said = reading.overridden.get("nodes", set()) | reading.overridden.get("partitions", set())
    return mistake.unbuilt and all((owner, key) in said for owner in mistake.owners)
