"""What `simctl run` would be told for a run of a sweep: settings as its options."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

import simctl
from simctl import numbers
from simctl.kernel.schedules import ScheduleError, make_schedule
from simctl.running import find
from simctl.scenario.durations import DurationError, parse_duration_us
from simctl.status import InputError
from simctl.sweep.plan import Cell
from simctl.sweep.settings import parsed


def scenario_file(name: str, folder: Path) -> Path:
    """Return the file of a scenario: from the sweep's folder on, or one shipped with simctl."""
    beside = folder / name
    return beside if beside.exists() else find(name)[0] if find(name)[1] else beside


def is_shipped(path: Path) -> bool:
    """Return whether a file is one of simctl's own, which is there wherever simctl is."""
    return path.is_relative_to(Path(simctl.__file__).parent)


def conf_of(cell: Cell) -> dict[str, str]:
    """Return the keys of slurm.conf that a cell sets for the replay of a log.

    Raises:
        InputError: `slurm_conf` is no mapping from keys to values.
    """
    found: dict[str, str] = {}
    for path, value in cell.settings.items():
        node = parsed(value)
        if path == "slurm_conf":
            if not isinstance(node, yaml.MappingNode):
                raise InputError("expected keys of slurm.conf with their values")
            found |= {str(key.value): str(each.value) for key, each in node.value}
        elif path.startswith("slurm_conf."):
            found[path.removeprefix("slurm_conf.")] = str(node.value)
    return found


def options_of(
    cell: Cell, folder: Path = Path(), *, seed: int = 0, db: str | None = None
) -> argparse.Namespace:
    """Return the options of a run.

    Raises:
        InputError: A setting is wrong.
    """
    return argparse.Namespace(
        seed=seed,
        schedule=_schedule(cell.scalar("schedule", "fifo")),
        model=_of_log(cell, "model", _model, None),
        until=_duration("until", cell.scalar("until")) or None,
        max_turns=_number(cell, "max_turns", numbers.MAX_TURNS),
        no_orderings=not _yes(cell, "orderings", default=True),
        watchdog=10.0,
        trace=None,
        trace_kinds=None,
        db=db,
        html=None,
        force=True,
        debug=False,
        quiet=True,
        json=False,
        swf=str(folder / cell.scalar("swf")) if "swf" in cell.settings else None,
        nodes=_of_log(cell, "nodes", lambda _: _number(cell, "nodes", numbers.NODES), None),
        cpus_per_node=_of_log(
            cell,
            "cpus_per_node",
            lambda _: _number(cell, "cpus_per_node", numbers.CPUS_PER_NODE),
            1,
        ),
        limit=_of_log(cell, "limit", lambda _: _number(cell, "limit", numbers.REPLAYED), None),
        skip_bad=_yes(cell, "skip_bad", default=False),
        latency=_of_log(cell, "latency", lambda text: _duration("latency", text), "100us"),
        scheduler="builtin",
        conf=[f"{key}={value}" for key, value in conf_of(cell).items()] if _is_log(cell) else [],
    )


def _is_log(cell: Cell) -> bool:
    return "swf" in cell.settings


def _of_log(cell: Cell, path: str, read: Callable[[str], Any], default: Any) -> Any:
    """Return a setting that is the cluster's of a log; in a scenario it stands for itself."""
    return read(cell.scalar(path)) if _is_log(cell) and path in cell.settings else default


def _schedule(name: str) -> str:
    try:
        make_schedule(name, 0)
    except ScheduleError as error:
        raise InputError(f"schedule: {error}") from error
    return name


def _model(name: str) -> str:
    if name not in ("guide", "modern"):
        raise InputError(f"model: expected guide or modern, got {name!r}")
    return name


def _duration(what: str, text: str) -> str:
    try:
        if text:
            parse_duration_us(text)
    except DurationError as error:
        raise InputError(f"{what}: {error}") from error
    return text


def _number(cell: Cell, path: str, bounds: numbers.Bounds) -> int | None:
    if path not in cell.settings:
        return None
    return int(bounds._replace(option=path)(cell.scalar(path)))


_YES: Final[Mapping[str, bool]] = {"true": True, "false": False}


def _yes(cell: Cell, path: str, *, default: bool) -> bool:
    text = cell.scalar(path)
    if text not in ("", *_YES):
        raise InputError(f"{path}: expected true or false, got {text!r}")
    return _YES.get(text, default)
