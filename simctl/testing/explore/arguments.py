"""The command line of `simctl explore`: its options, and what they must not be."""

import argparse
import os
import shlex
from pathlib import Path
from typing import Any

from simctl.scenario.durations import DurationError, parse_duration_us
from simctl.status import InputError
from simctl.testing.explore.options import SEEDS, Options


def add_arguments(commands: Any) -> None:
    """Declare the command."""
    explore = commands.add_parser(
        "explore",
        help="search the schedules of a scenario for what breaks it",
        description="Run a scenario under many schedules, and look for a broken expectation or "
        "ordering, a stall or a crash. What is found is made small and written as a scenario, with "
        "the command that repeats it.",
        epilog="Exit status: 0 nothing found, 1 something was, 2 wrong input, 130 interrupted.",
    )
    explore.add_argument("scenario", metavar="SCENARIO", help="a YAML file")
    explore.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help=f"schedules to try, one a seed: random ones and such with priorities, with messages "
        f"that are late (default {SEEDS})",
    )
    explore.add_argument("--seed", type=int, metavar="S", help="the first seed")
    explore.add_argument(
        "--keep-going", action="store_true", help="try all, and count those that break something"
    )
    explore.add_argument(
        "--jitter", metavar="TIME", help="how late a message may be (default 40 latencies)"
    )
    explore.add_argument("--workers", type=int, metavar="N", help="processes (default: the cores)")
    explore.add_argument("--model", choices=("guide", "modern"), help="instead of the scenario's")
    explore.add_argument("-o", "--output", metavar="FILE", help="write what is found there")
    explore.add_argument("--json", action="store_true", help="print the result as one JSON object")
    explore.add_argument("--quiet", action="store_true", help="print only what is found")
    explore.add_argument(
        "--watchdog",
        default="10",
        metavar="SECONDS",
        help="stop a plugin's code that runs this long on the wall clock (default 10, 0 never)",
    )


def read(options: argparse.Namespace, path: Path, *, shipped: bool, watchdog_s: float) -> Options:
    """Return what the options ask for.

    Raises:
        InputError: They cannot be meant.
    """
    for name in ("seeds", "workers"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise InputError(f"--{name}: expected a whole number above 0, got {value}")
    if options.seed is not None and options.seed < 0:
        raise InputError(f"--seed: expected a whole number of 0 or more, got {options.seed}")
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
        seeds=options.seeds or SEEDS,
        first_seed=options.seed,
        keep_going=options.keep_going,
        workers=options.workers or len(os.sched_getaffinity(0)),
        model=options.model or "",
        jitter_us=jitter_us,
        watchdog_s=watchdog_s,
        output=options.output or "",
        as_json=options.json,
        quiet=options.quiet,
    )


def _words(options: argparse.Namespace) -> str:
    """Return the options that decide what is found."""
    words = [shlex.quote(options.scenario)]
    for name in ("seeds", "seed", "jitter", "model"):
        value = getattr(options, name)
        if value is not None:
            words.append(f"--{name} {value}")
    return " ".join(words)
