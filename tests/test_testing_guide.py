"""docs/testing.md: its files are written, its commands run, and they print what it shows."""

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from simctl.cli import main
from simctl.testing.asserting import RunTrace
from simctl.testing.cluster import Cluster
from simctl.testing.runs import Run
from tests.projects import CONFIG
from tests.test_plugin_guide import BLOCK, agrees

pytest_plugins = ["pytester"]

GUIDE: Final = (Path(__file__).parent.parent / "docs" / "testing.md").read_text()
BLOCKS: Final = [match.groups() for match in BLOCK.finditer(GUIDE)]


def commands() -> list[tuple[str, list[str]]]:
    """Return each command of the page with the lines it is said to print."""
    found = [text.splitlines() for kind, _, text in BLOCKS if kind == "console"]
    return [(lines[0].removeprefix("$ "), lines[1:]) for lines in found]


@pytest.mark.parametrize(("line", "shown"), commands(), ids=[line for line, _ in commands()])
def test_a_command_prints_what_the_page_shows(
    pytester: pytest.Pytester, line: str, shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder with the page's files."""
    pytester.makeini(CONFIG)
    for _, name, text in BLOCKS:
        if name:
            path = pytester.path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    program, *words = shlex.split(line)
    if program == "pytest":
        printed = pytester.runpytest(*words).outlines
    else:
        capsys.readouterr()
        main(words)
        printed = capsys.readouterr().out.splitlines()
    assert agrees(shown, printed), "\n".join(printed)


def test_every_option_and_key_is_on_the_page(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of pytest, the markers, and those of `simctl test`."""
    told = pytester.runpytest("--help").stdout.str() + pytester.runpytest("--markers").stdout.str()
    names = set(re.findall(r"--simctl-[a-z-]+|--no-scenarios|simctl_[a-z]+", told))
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["test", "--help"])
    names |= set(re.findall(r"--?[a-z][a-z-]*", capsys.readouterr().out.partition("-h, ")[2]))
    assert {"--simctl-rewrite", "simctl_ignore", "simctl_models", "--junit", "-k"} <= names
    assert [name for name in sorted(names - {"--help"}) if name not in GUIDE] == []


def test_every_method_is_on_the_page() -> None:
    """What a run, its trace and a cluster have that a test would call."""
    kinds = (Run, RunTrace, Cluster)
    names = [name for kind in kinds for name in vars(kind) if name[0] != "_"]
    told = {"users", "nodes", "header", "surroundings", "repeat"}
    assert [name for name in names if name not in told and name not in GUIDE] == []
