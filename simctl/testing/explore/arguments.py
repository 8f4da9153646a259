"""The command line of `simctl explore`, as `--help` shows it; it brings nothing large along."""

from typing import Any, Final

from simctl import numbers
from simctl.runners.arguments import add_where

SEEDS: Final = 200
"""How many schedules are tried by default."""

LIMIT: Final = 10_000
"""How many schedules are tried at most, where all are to be."""


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
        type=numbers.SCHEDULES,
        metavar="N",
        help=f"schedules to try, one a seed: random ones and such with priorities, with messages "
        f"that are late (default {SEEDS})",
    )
    explore.add_argument(
        "--faults",
        action="store_true",
        help="place each fault of the scenario at every plugin call of its run; if it has none, "
        "have each call fail, and each node crash at each call; with --seeds N, under N schedules",
    )
    explore.add_argument(
        "--only",
        metavar="PLACE",
        help="with --faults: place the fault of this row alone, or those of rows that have this "
        "text, as an earlier search has printed them",
    )
    _add_exhaustive(explore)
    explore.add_argument("--seed", type=numbers.SEED, metavar="S", help="the first seed")
    explore.add_argument(
        "--keep-going", action="store_true", help="try all, and count those that break something"
    )
    explore.add_argument(
        "--jitter", metavar="TIME", help="how late a message may be (default 40 latencies)"
    )
    add_where(explore)
    explore.add_argument("--model", choices=("guide", "modern"), help="instead of the scenario's")
    explore.add_argument("-o", "--output", metavar="FILE", help="write what is found there")
    explore.add_argument(
        "--force", action="store_true", help="overwrite a file that simctl did not write"
    )
    explore.add_argument("--json", action="store_true", help="print the result as one JSON object")
    explore.add_argument("--quiet", action="store_true", help="print only what is found")
    explore.add_argument(
        "--watchdog",
        type=numbers.WATCHDOG,
        default=10.0,
        metavar="SECONDS",
        help="stop a plugin's code that runs this long on the wall clock (default 10, 0 never)",
    )


def _add_exhaustive(explore: Any) -> None:
    """Declare the search of all schedules."""
    explore.add_argument(
        "--exhaustive",
        action="store_true",
        help="try every order of turns due at one moment, of a small scenario; of orders that only "
        "swap turns with nothing in common, one",
    )
    explore.add_argument(
        "--calls",
        action="store_true",
        help="with --exhaustive: others may go first before each plugin call as well",
    )
    explore.add_argument(
        "--limit",
        type=numbers.ORDERS,
        metavar="N",
        help=f"with --exhaustive: schedules at most (default {LIMIT})",
    )
    explore.add_argument(
        "--seconds",
        type=numbers.SECONDS,
        metavar="S",
        help="with --exhaustive: seconds of wall time at most",
    )
