"""What the command line of `simctl explore` asks for, checked."""

import argparse
import shlex
from pathlib import Path

import attrs

from simctl.runners.work import Where, read_where
from simctl.scenario.durations import DurationError, parse_duration_us
from simctl.status import InputError
from simctl.testing.explore.arguments import LIMIT, SEEDS


@attrs.frozen(kw_only=True)
class Options:
    """What the command line asks for, checked."""

    path: Path
    shipped: bool = False
    """Whether the scenario is one of simctl's own, beside which nothing is written."""
    words: str = ""
    """The command line behind `explore`."""
    seeds: int = SEEDS
    faults: bool = False
    only: str = ""
    """The row, or a part of rows, of the placements of faults that are tried; empty for all."""
    exhaustive: bool = False
    calls: bool = False
    limit: int = LIMIT
    seconds: float | None = None
    first_seed: int | None = None
    keep_going: bool = False
    where: Where = attrs.field(factory=Where)
    """Where trials are run."""
    model: str = ""
    jitter_us: int | None = None
    watchdog_s: float = 10.0
    output: str = ""
    force: bool = False
    as_json: bool = False
    quiet: bool = False


def read(options: argparse.Namespace, path: Path, *, shipped: bool) -> Options:
    """Return what the options ask for.

    Raises:
        InputError: They cannot be meant.
    """
    _check_together(options)
    if options.output == "":
        raise InputError("-o: name a file")
    try:
        jitter_us = None if options.jitter is None else parse_duration_us(options.jitter)
    except DurationError as error:
        raise InputError(f"--jitter: {error}") from error
    return Options(
        path=path,
        shipped=shipped,
        words=_words(options),
        seeds=options.seeds or (1 if options.faults else SEEDS),
        faults=options.faults,
        only=options.only or "",
        exhaustive=options.exhaustive,
        calls=options.calls,
        limit=options.limit or LIMIT,
        seconds=options.seconds,
        first_seed=options.seed,
        keep_going=options.keep_going,
        where=read_where(options.workers, options.dask),
        model=options.model or "",
        jitter_us=jitter_us,
        watchdog_s=options.watchdog,
        output=options.output or "",
        force=options.force,
        as_json=options.json,
        quiet=options.quiet,
    )


def _check_together(options: argparse.Namespace) -> None:
    """Check that options stand together which mean something together.

    Raises:
        InputError: Some do not.
    """
    if options.only is not None and not options.faults:
        raise InputError("--only goes with --faults, whose rows it names")
    if options.only == "":
        raise InputError("--only: expected a row that --faults prints, or a part of one")
    if options.faults and options.keep_going:
        raise InputError("--keep-going goes without --faults, which tries every place in any case")
    if options.exhaustive:
        for name in ("seeds", "faults", "workers", "dask", "jitter"):
            if getattr(options, name):
                raise InputError(
                    f"--{name} goes without --exhaustive, which tries all orders one after another"
                )
        return
    for name in ("calls", "limit", "seconds"):
        if getattr(options, name):
            raise InputError(f"--{name} goes with --exhaustive")


def _words(options: argparse.Namespace) -> str:
    """Return the options that decide what is found."""
    words = [shlex.quote(options.scenario)]
    words += [f"--{name}" for name in ("faults", "exhaustive", "calls") if getattr(options, name)]
    for name in ("seeds", "seed", "jitter", "model", "limit"):
        value = getattr(options, name)
        if value is not None:
            words.append(f"--{name} {value}")
    if options.only is not None:
        words += ["--only", shlex.quote(options.only)]
    return " ".join(words)
