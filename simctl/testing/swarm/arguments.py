"""The command line of `simctl swarm`, as `--help` shows it; it brings nothing large along."""

from typing import Any, Final

from simctl import numbers
from simctl.runners.arguments import add_where

RUNS: Final = 100
"""How many runs are made by default."""


def add_arguments(commands: Any) -> None:
    """Declare the command."""
    swarm = commands.add_parser(
        "swarm",
        help="run random clusters with random work and faults, and check that nothing is lost",
        description="Draw clusters, workloads, configurations and faults from seeds, run them, and "
        "hold each run against the built-in orderings and against what must be true once a cluster "
        "is at rest. What is found is made small and written as a scenario. With a SCENARIO that "
        "one is run and held against the same.",
        epilog="Exit status: 0 all held, 1 something did not, 2 wrong input, 130 interrupted.",
    )
    swarm.add_argument("scenario", nargs="?", metavar="SCENARIO", help="a YAML file")
    swarm.add_argument("--seed", type=numbers.SEED, metavar="N", help="the first seed (default 0)")
    swarm.add_argument(
        "--runs", type=numbers.RUNS, metavar="N", help=f"runs, one for each seed (default {RUNS})"
    )
    swarm.add_argument(
        "--time", metavar="T", help="begin no more runs after so long on the wall clock, as in 10m"
    )
    swarm.add_argument(
        "--faults",
        metavar="KIND,..",
        help="only faults of these kinds; none for no faults at all (default: all)",
    )
    swarm.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="SPEC",
        help="put this plugin of yours into every cluster: ./file.py:Class, module:Class",
    )
    swarm.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="with --plugin: a key of slurm.conf that every cluster has",
    )
    swarm.add_argument(
        "--directive",
        action="append",
        default=[],
        metavar="LINE",
        help="with a burst buffer plugin: a line of scripts that asks it for something; jobs "
        "draw one of those given",
    )
    add_where(swarm)
    swarm.add_argument(
        "--schedule", metavar="NAME|TOKEN", help="with a SCENARIO: as for run (default fifo)"
    )
    swarm.add_argument("-o", "--output", metavar="FILE", help="write what is found there")
    swarm.add_argument(
        "--force", action="store_true", help="overwrite a file that simctl did not write"
    )
    swarm.add_argument(
        "--show", action="store_true", help="print the scenario of the first seed, and run nothing"
    )
    swarm.add_argument("--json", action="store_true", help="print the result as one JSON object")
    swarm.add_argument("--quiet", action="store_true", help="print only what is found")
