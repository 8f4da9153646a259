"""The pages about sessions: what they print is what a session prints.

A comment `<!-- session: SCENARIO MODEL -->` begins a session; the blocks after it are its lines.
`--rewrite-golden` writes what is printed anew.
"""

import re
from pathlib import Path

import pytest

from simctl.repl.fronts import read_script
from simctl.repl.registry import COMMANDS
from simctl.repl.start import compare
from tests.repl import Held

ROOT = Path(__file__).parent.parent
PAGES = ("tutorial", "repl")
_SESSION = re.compile(r"<!-- session: (\S+) (\S+) -->")
_BLOCK = re.compile(r"(?<=```text\n)> .*?(?=```\n)", re.DOTALL)
_BETWEEN = "# -- the next block --"


def _come_true(page: str) -> str:
    """Return a page with what a session prints in place of what it has."""
    match = _SESSION.search(page)
    assert match is not None
    lines = []
    for block in _BLOCK.findall(page):
        lines += [*read_script(block), *read_script(_BETWEEN)]
    held = Held(*lines, scenario=ROOT / match[1], model=match[2])
    # What comes after `quit` is not read, the last mark included.
    printed = iter(held.out.getvalue().replace(f"{_BETWEEN}\n", _BETWEEN).split(_BETWEEN))
    return _BLOCK.sub(lambda _: next(printed), page)


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_prints_comes_true(name: str, request: pytest.FixtureRequest) -> None:
    """A session that is typed as the page has it prints what the page has."""
    path = ROOT / "docs" / f"{name}.md"
    page = path.read_text(encoding="utf-8")
    found = _come_true(page)
    if request.config.getoption("--rewrite-golden"):
        path.write_text(found, encoding="utf-8")
        return
    assert compare(page, found, path.name) == []
    assert "internal error" not in found


def test_every_command_is_on_the_page() -> None:
    """docs/repl.md has every command, typed or named."""
    page = (ROOT / "docs" / "repl.md").read_text(encoding="utf-8")
    missing = [
        name for name in COMMANDS if not re.search(rf"^> {name}\b|`{name}\b", page, re.MULTILINE)
    ]
    assert missing == []
