"""The pages about the house name places that are there: folders, modules, and names in them."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("docs/architecture.md", "CONTRIBUTING.md")
PLUGINS = ("switch/elan",)
"""What has a slash and is no path."""

ROOMS = ("simctl", "simctl/ctld")
"""Where a path that a page gives may begin, besides the root."""


def places(text: str) -> Iterator[str]:
    """Return what a page gives as a path: words with a slash, in backticks."""
    for word in re.findall(r"`([\w./-]+)`", text):
        if "/" in word and not word.startswith("/") and word not in PLUGINS:
            yield word


def is_there(place: str) -> bool:
    """Return whether a path is a folder, a file or a module."""
    found = (ROOT / place, *(ROOT / room / place for room in ROOMS))
    return any(path.exists() or path.with_name(f"{path.name}.py").exists() for path in found)


def names_beside(text: str) -> Iterator[tuple[str, str]]:
    """Return each module with the names in backticks that stand right behind it."""
    for place, names in re.findall(r"`([\w/]+/[\w.]+)`( `_?\w+`(?:, `_?\w+`)*)", text):
        for name in re.findall(r"`(\w+)`", names):
            yield place, name


def is_in(place: str, name: str) -> bool:
    """Return whether a module declares a name."""
    for room in ("", *ROOMS):
        path = ROOT / room / place
        path = path if path.suffix == ".py" else path.with_name(f"{path.name}.py")
        if path.is_file():
            return (
                re.search(rf"\b(def|class) {name}\b|^{name}\b", path.read_text(), re.MULTILINE)
                is not None
            )
    return False


def test_every_place_is_there() -> None:
    """A page that a rename has left behind is told."""
    text = "\n".join((ROOT / page).read_text() for page in PAGES)
    assert len(list(places(text))) > 60
    assert [place for place in places(text) if not is_there(place)] == []
    assert len(list(names_beside(text))) > 3
    assert [each for each in names_beside(text) if not is_in(*each)] == []


def test_a_place_that_is_gone_is_noticed() -> None:
    """The check itself: a folder, a module and a name that are not there."""
    text = "`ctld/jobs/completion` `node_is_lost`, `commands/srun_watch`, `simctl/ctld/`, `jobs/`"
    assert [place for place in places(text) if not is_there(place)] == ["commands/srun_watch"]
    assert [each for each in names_beside(text) if not is_in(*each)] == [
        ("ctld/jobs/completion", "node_is_lost")
    ]
