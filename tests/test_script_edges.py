"""Edges of tools and expansions: tests/script_edges.txt has scripts and what bash 5.2 prints.

A line behind ``$ `` begins a script, those behind ``> `` go on with it, others are its output.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bash_runs import Came, in_ours

EDGES = Path(__file__).with_name("script_edges.txt")


def edges() -> dict[str, str]:
    """Return what each script of the file prints."""
    printed: dict[str, str] = {}
    script = ""
    for line in EDGES.read_text().splitlines(keepends=True):
        if line.startswith("$ "):
            script = line[2:]
        elif line.startswith("> "):
            script += line[2:]
        else:
            printed[script] = printed.get(script, "") + line
    return printed


@pytest.fixture(scope="module")
def came() -> dict[str, Came]:
    """Return what came of each script, all of them run in one cluster."""
    return dict(zip(edges(), in_ours(list(edges())), strict=True))


@pytest.mark.parametrize("script", edges())
def test_each_prints_what_bash_prints(came: dict[str, Came], script: str) -> None:
    """Both sides of each bound: with and without a match, empty and not, at the end and behind."""
    assert came[script].output == edges()[script]
