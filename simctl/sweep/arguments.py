"""The options of `simctl sweep`, which import nothing that is slow."""

from typing import Any

from simctl.runners.arguments import add_where


def add_arguments(commands: Any) -> None:
    """Add the subcommand and what it takes."""
    parser = commands.add_parser(
        "sweep",
        help="make a table of runs: parameters times seeds",
        description="Run every combination of parameters under every seed, and write what came of "
        "each run to DIR/results.db. The same command goes on where an earlier one was "
        "interrupted. Exit status: 0 all runs held, 1 some did not, 2 wrong input, or runs could "
        "not be made. docs/sweeps.md has the form of SWEEP.yaml.",
    )
    parser.add_argument("file", metavar="SWEEP.yaml", help="what is to be run")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="a new folder, or that of this sweep (default: SWEEP here)",
    )
    add_where(parser)
    parser.add_argument("--json", action="store_true", help="print the summary as one object")
    parser.add_argument("--quiet", action="store_true", help="print only what went wrong")
