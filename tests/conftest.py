"""What every test may use: the tree's root, and property tests that repeat."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def repository_root() -> Path:
    """Return the folder that holds pyproject.toml, for tests of the tree itself."""
    return Path(__file__).resolve().parent.parent
