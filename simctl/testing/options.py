"""What can be asked of scenarios as tests: the options of `simctl test`, which import nothing."""

from typing import Any, Final

from simctl import numbers
from simctl.runners.arguments import add_dask

GOLDEN_MODES: Final = ("existing", "all", "off")
"""Which golden traces are compared: those there are, one for each scenario, or none."""


def add_arguments(commands: Any) -> None:
    """Add the subcommand and what it takes."""
    parser = commands.add_parser(
        "test",
        help="run scenarios as tests",
        description="Run scenarios as tests. Of a folder: its own YAML files that are "
        "scenarios, and below it *.scenario.yaml and scenarios/*.yaml. Exit status: 0 all "
        "held, 1 something did not, 2 a scenario or an option is wrong.",
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a scenario, or a folder of some")
    parser.add_argument(
        "--seeds",
        type=numbers.TESTED,
        default=0,
        metavar="N",
        help="run each under N random schedules too",
    )
    parser.add_argument("--schedule", default="", metavar="S", help="the schedule instead of fifo")
    parser.add_argument(
        "--model", action="append", default=[], metavar="M", help="guide, modern, or guide,modern"
    )
    parser.add_argument("-k", default="", metavar="EXPR", help="only names of which this is true")
    parser.add_argument("--rewrite", action="store_true", help="write golden traces anew")
    parser.add_argument(
        "--golden", choices=GOLDEN_MODES, default="existing", help="which ones (default existing)"
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="WHAT", help="leave it out of comparisons"
    )
    parser.add_argument(
        "--check-determinism", action="store_true", help="run everything twice and compare"
    )
    parser.add_argument(
        "--no-orderings", action="store_true", help="do not check the built-in orderings"
    )
    parser.add_argument(
        "--workers",
        type=numbers.WORKERS,
        metavar="N",
        help="run them in N processes (default 1)",
    )
    add_dask(parser)
    parser.add_argument(
        "-s",
        dest="see",
        action="store_true",
        help="as pytest's: one worker, and breakpoint() in a plugin stops",
    )
    parser.add_argument(
        "--html", metavar="DIR", help="leave a page of each run that fails in this folder"
    )
    parser.add_argument("--junit", metavar="FILE", help="write a JUnit report there")
    parser.add_argument(
        "--force", action="store_true", help="overwrite a file that simctl did not write"
    )
