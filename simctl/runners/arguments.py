"""The options that say where runs are made, the same for every command that makes many."""

from typing import Any

from simctl import numbers


def add_where(parser: Any) -> None:
    """Add --workers and --dask."""
    parser.add_argument(
        "--workers", type=numbers.WORKERS, metavar="N", help="processes (default: the cores)"
    )
    add_dask(parser)


def add_dask(parser: Any) -> None:
    """Add --dask."""
    parser.add_argument(
        "--dask",
        metavar="ADDRESS|local[:N]",
        help="run on the workers of a Dask scheduler, tcp://HOST:PORT or its scheduler file, or on "
        "N of this machine (needs simctl's extra [dask])",
    )
