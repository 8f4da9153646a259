"""The options of `simctl view`, which import nothing."""

from typing import Any

from simctl import numbers


def add_arguments(commands: Any) -> None:
    """Add the subcommand and what it takes."""
    parser = commands.add_parser(
        "view",
        help="show a run: a page for a browser",
        description="Write a page that shows a run: one file for a browser, with no need of a "
        "network. Of a scenario, run it first; the exit status then is that of `run`.",
    )
    parser.add_argument(
        "inputs",
        nargs="*",
        metavar="TRACE|SCENARIO|DB",
        help="a trace, a scenario to be run, or with --gantt databases",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="", help="the page (default: NAME.html here)"
    )
    parser.add_argument(
        "--job", type=numbers.JOB, metavar="N", help="only this job, and its causes"
    )
    parser.add_argument(
        "--from", dest="from_", metavar="TIME", help="only from a moment of virtual time on"
    )
    parser.add_argument("--to", metavar="TIME", help="only up to a moment of virtual time")
    parser.add_argument(
        "--perfetto", metavar="FILE", help="write a trace for Perfetto and chrome://tracing instead"
    )
    parser.add_argument(
        "--mermaid",
        action="store_true",
        help="with --job: print its messages and calls as a Mermaid sequence diagram instead",
    )
    parser.add_argument(
        "--gantt",
        action="store_true",
        help="show nodes over time instead, with queue, use and waits: of a database that "
        "`run --db` wrote, or of two on one axis",
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="hold a session over a scenario in the browser, as `simctl repl` does on a terminal",
    )
    parser.add_argument(
        "--port", type=numbers.PORT, metavar="P", help="with --live: of 127.0.0.1 (default any)"
    )
    parser.add_argument("--svg", metavar="FILE", help="write a still picture of a part instead")
    parser.add_argument(
        "--only", metavar="PATTERN", help="with --svg: only such events, as 'step=1.0 node=n1'"
    )
    parser.add_argument("--seed", type=numbers.SEED, help="of a scenario: as for run")
    parser.add_argument("--schedule", default="fifo", metavar="S", help="as for run")
    parser.add_argument("--model", choices=("guide", "modern"), help="instead of the scenario's")
    parser.add_argument(
        "--watchdog", type=numbers.WATCHDOG, default=10.0, metavar="SECONDS", help="as for run"
    )
    parser.add_argument(
        "--force", action="store_true", help="overwrite a file that simctl did not write"
    )
    parser.set_defaults(until=None, no_orderings=False)


def add_compare(commands: Any) -> None:
    """Add `simctl compare`."""
    parser = commands.add_parser(
        "compare",
        help="say how two runs or sweeps differ: waits, slowdown, use, starts",
        description="Put two runs beside each other, as distributions and job by job. Each is a "
        "database that `simctl run --db` wrote, or what a site has recorded: a workload log, or "
        "what `sacct -P` printed. Of two tables of `simctl sweep`, or two parts of one, runs of "
        "one seed are put beside each other. Exit status: 0, also where they differ; 2 if one "
        "cannot be read.",
    )
    parser.add_argument("one", metavar="A", help="a database, a table of a sweep, or a record")
    parser.add_argument("other", metavar="B", nargs="?", help="another")
    for option, side in (("--one", "A"), ("--other", "B")):
        parser.add_argument(
            option,
            dest=f"{option[2:]}_of",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help=f"of a table of a sweep only the cells with this value are {side}",
        )
    parser.add_argument("--html", metavar="FILE", help="write a page of both as well")
    parser.add_argument("--json", action="store_true", help="print an object")
    parser.add_argument(
        "--force", action="store_true", help="overwrite a file that simctl did not write"
    )
