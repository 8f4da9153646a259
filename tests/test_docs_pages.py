"""The pages of docs as a whole: each has its place in the index, and commands on them are there."""

import argparse
import re
from pathlib import Path

import pytest

from simctl.cli import make_parser
from simctl.reports.api_page import page
from tests.test_docs_commands import GRAMMARS

ROOT = Path(__file__).parent.parent
OF_OTHERS = {
    ("burst_buffers.md", "--function"),  # of dw_wlm_cli
    ("checkpoint_plugins.md", "--term"),  # of ompi-checkpoint
    ("dask.md", "--no-dashboard"),  # of dask worker
}
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


def _children(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def _options(parser: argparse.ArgumentParser) -> set[str]:
    return {name for action in parser._actions for name in action.option_strings}


def _all_options(parser: argparse.ArgumentParser) -> set[str]:
    return _options(parser).union(*map(_all_options, _children(parser).values()))


def wrong_commands(text: str) -> list[str]:
    """Return the commands of simctl on a page that have no such subcommand, or no such option."""
    top = _children(make_parser())
    joined = re.sub(r"\\\n\s*", " ", text)
    typed = re.findall(r"(?m)(?:^    |^\$ |`)simctl ([^`\n#|]*)", joined)
    inline = (line for line in re.findall(r"`([a-z][^`\n]*)`", joined) if line.split()[0] in top)
    wrong = []
    for line in [*typed, *inline]:
        parser, words = make_parser(), line.split()
        first = words[0] if words else "-"
        if re.fullmatch(r"[a-z][a-z-]*", first) and first not in top:
            wrong.append(line)
        while words and words[0] in (children := _children(parser)):
            parser, words = children[words[0]], words[1:]
        given = {name for word in words for name in re.findall(r"^\[?(--[a-z][\w-]*)", word)}
        wrong += [f"{line}: {name}" for name in sorted(given - _options(parser))]
    return wrong


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_on_a_page_are_there(path: Path) -> None:
    """Each `simctl WORD --option` names a subcommand and its option, each `make WORD` a target."""
    text = path.read_text(encoding="utf-8")
    assert wrong_commands(text) == []
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)^([a-z-]+):", makefile))
    assert set(re.findall(r"(?m)(?:^    |^\$ |`)make ([a-z][a-z-]*)", text)) <= targets


def test_options_on_pages_are_somebodys(pytestconfig: pytest.Config) -> None:
    """Of simctl, of a command of Slurm's, of pytest here, or of a program that is named beside."""
    groups = [pytestconfig._parser._anonymous, *pytestconfig._parser._groups]
    known = {name for group in groups for option in group.options for name in option.names()}
    known |= _all_options(make_parser())
    for path in (ROOT / "tests/mutants/__main__.py", *sorted((ROOT / "benchmarks").glob("*.py"))):
        known |= set(re.findall(r'add_argument\(\s*"(--[a-z-]+)"', path.read_text()))
    for grammar in GRAMMARS.values():
        known |= {f"--{name}" for option in grammar.options for name in [option.long]}
        known |= {f"--{name}" for name in grammar.unbuilt}
    unknown = {
        (path.name, name)
        for path in PAGES
        if path.name != "scripts.md"  # of programs of scripts, which a test of theirs holds
        for name in re.findall(r"(?<![\w-])--[a-z][\w-]+", path.read_text(encoding="utf-8"))
        if name not in known
    }
    assert unknown <= OF_OTHERS, unknown - OF_OTHERS


def test_a_wrong_command_on_a_page_is_noticed() -> None:
    """In each form in which pages have commands; and what is right is let be."""
    for right, wrong in (
        ("    simctl run s.yaml --explain=all   # --never", "    simctl run s.yaml --explian"),
        ("`simctl plugins check a.py --json`", "`simctl plugins check a.py --perfetto x`"),
        ("$ simctl trace show t --kinds state", "$ simctl trace shwo t --html x"),
        ("see `view --live [--port P]`", "see `view --life`"),
        (
            "    simctl explore s.yaml \\\n        --seeds 4",
            "    simctl run s \\\n        --seedz 4",
        ),
        ("`simctl swarm`", "`simctl swrm`"),
    ):
        assert wrong_commands(right) == []
        assert wrong_commands(wrong)


def test_decisions_can_be_found_and_are_short() -> None:
    """Each subject is in the index; an entry has three lines and names what is there."""
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    titles = re.findall(r"(?m)^## (.+)$", text)
    assert re.findall(r"(?m)^\| \[([^\]]+)\]\(#", text) == titles
    entries = [each for each in text.partition("\n## ")[2].split("\n\n") if each[:1] == "*"]
    assert [each for each in entries if not 1 <= len(each.strip().splitlines()) <= 3] == []
    named = re.findall(r"`((?:simctl|benchmarks|tests|docs|world)/[\w/.]+)`", text)
    there = [(ROOT / name).exists() or (ROOT / "simctl" / name).exists() for name in named]
    assert all(there), named
