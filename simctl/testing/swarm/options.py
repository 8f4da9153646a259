"""What the command line of `simctl swarm` asks for, checked."""

import argparse
import os
from pathlib import Path

import attrs

from simctl.numbers import LARGEST, check_last_seed
from simctl.numbers import RUNS as MOST
from simctl.outputs import FIND, place_of
from simctl.runners.work import Where, read_where
from simctl.scenario.durations import DurationError, parse_duration_us
from simctl.status import InputError
from simctl.testing.swarm.arguments import RUNS
from simctl.testing.swarm.features import FAULTS
from simctl.testing.swarm.own import Own, read_own
from simctl.wire.ids import SECOND


@attrs.frozen(kw_only=True)
class Options:
    """What the command line asks for, checked."""

    path: Path | None = None
    """A scenario that alone is run, and held against the rules."""
    schedule: str = "fifo"
    first_seed: int | None = None
    runs: int = RUNS
    seconds: float | None = None
    faults: tuple[str, ...] = tuple(FAULTS)
    own: Own = attrs.field(factory=Own)
    where: Where = attrs.field(factory=Where)
    """Where runs are made."""
    output: str = ""
    force: bool = False
    show: bool = False
    as_json: bool = False
    quiet: bool = False


def read(options: argparse.Namespace, path: Path | None) -> Options:
    """Return what the options ask for.

    Raises:
        InputError: They cannot be meant.
    """
    if path is not None:
        _check_alone(options)
    elif options.schedule is not None:
        raise InputError("--schedule goes with a SCENARIO: each seed has a schedule of its own")
    if options.output == "":
        raise InputError("-o: name a file")
    try:
        place_of(options.output or os.devnull, FIND, force=options.force)
    except OSError as error:
        raise InputError(f"-o: cannot write {options.output}: {error.strerror}") from error
    seconds = _seconds(options.time)
    first = options.seed or 0
    runs = options.runs or (RUNS if seconds is None else min(int(MOST.most), LARGEST - first + 1))
    if path is None:
        check_last_seed(first, runs)
    return Options(
        path=path,
        schedule=options.schedule or "fifo",
        first_seed=options.seed,
        runs=runs,
        seconds=seconds,
        faults=_faults(options.faults),
        own=read_own(options.plugin, options.conf, options.directive),
        where=read_where(options.workers, options.dask),
        output=options.output or "",
        force=options.force,
        show=options.show,
        as_json=options.json,
        quiet=options.quiet,
    )


def _check_alone(options: argparse.Namespace) -> None:
    for name in (
        "runs",
        "time",
        "faults",
        "plugin",
        "conf",
        "directive",
        "workers",
        "dask",
        "output",
        "show",
    ):
        if getattr(options, name):
            raise InputError(f"--{name} goes without a SCENARIO, which is run as it is")


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_duration_us(text) / SECOND
    except DurationError as error:
        raise InputError(f"--time: {error}") from error


def _faults(text: str | None) -> tuple[str, ...]:
    if text is None or text == "all":
        return tuple(FAULTS)
    if text == "none":
        return ()
    wanted = [word.strip() for word in text.split(",")]
    for word in wanted:
        if word not in FAULTS:
            raise InputError(
                f"--faults: expected kinds of {', '.join(FAULTS)}, or none or all, got {word!r}"
            )
    return tuple(name for name in FAULTS if name in wanted)
