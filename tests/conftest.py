"""What every test may use: the tree's root, and property tests that repeat."""

import gc
import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has what it runs in the background ignore Ctrl-C, and all that this starts as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def repository_root() -> Path:
    """Return the folder that holds pyproject.toml, for tests of the tree itself."""
    return Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that renews golden files."""
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write the golden traces anew; review their diff",
    )


def pytest_collection_finish() -> None:
    """Have the garbage collector look no more at all the tests: a twentieth of the time."""
    gc.collect()
    gc.freeze()
