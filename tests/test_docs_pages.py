"""The pages of docs as a whole: each has its place in the index, and commands on them are there."""

import argparse
import re
import shlex
from pathlib import Path

import pytest

from simctl.cli import make_parser
from simctl.reports.api_page import page

ROOT = Path(__file__).parent.parent
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def test_the_reference_is_what_the_docstrings_say() -> None:
    """`make docs` writes it."""
    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == page()


def test_pictures_are_small_and_each_is_shown() -> None:
    """`make pictures` takes them; whoever clones has them all."""
    pictures = sorted((ROOT / "docs" / "pictures").iterdir())
    viewing = (ROOT / "docs" / "viewing.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^]]+\]\(pictures/([^)]+)\)", viewing)
    assert sorted(shown) == [each.name for each in pictures]
    assert sum(each.stat().st_size for each in pictures) < 300_000
    assert all(each.read_bytes().startswith(b"\x89PNG") for each in pictures)


def test_every_page_has_a_row_in_the_index() -> None:
    """Below one of its headings, once: the site takes its order from there."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| \[[^\]]+\]\(([^)]+)\) \|", index)
    pages = [path.name for path in PAGES if path.parent.name == "docs"]
    assert sorted(row for row in rows if not row.startswith("..")) == sorted(
        name for name in pages if name != "README.md"
    )


def subcommands() -> set[str]:
    """Return the subcommands there are."""
    actions = make_parser()._actions
    found = next(each for each in actions if isinstance(each, argparse._SubParsersAction))
    return set(found.choices)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_on_a_page_are_there(path: Path) -> None:
    """Each `simctl WORD` names a subcommand, and each `make WORD` a target."""
    text = path.read_text(encoding="utf-8")
    typed = re.findall(r"(?m)(?:^    |^\$ |`)(simctl|make) ([a-z][a-z-]*)", text)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)^([a-z-]+):", makefile))
    known = {"simctl": subcommands(), "make": targets}
    assert [shlex.join(words) for words in typed if words[1] not in known[words[0]]] == []
