"""docs/plugins.md and docs/burst_buffers.md: files written, commands run, output as shown."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from simctl.cli import main

ROOT: Final = Path(__file__).parent.parent
GUIDE: Final = (ROOT / "docs" / "plugins.md").read_text()
BLOCK: Final = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUFFERS: Final = (ROOT / "docs" / "burst_buffers.md").read_text()
BLOCKS: Final = [match.groups() for text in (GUIDE, BUFFERS) for match in BLOCK.finditer(text)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every file of the page, and the shipped scenarios."""
    for _, name, text in BLOCKS:
        if name:
            (tmp_path / name).write_text(text)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands() -> list[tuple[str, list[str]]]:
    """Return each command of the page with the lines it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for kind, _, text in BLOCKS:
        if kind != "console":
            continue
        for line in text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def agrees(shown: list[str], printed: list[str]) -> bool:
    """Return whether *printed* is what is shown, where ``...`` stands for anything."""
    parts = [".*" if line == "..." else _line(line) for line in shown]
    return re.fullmatch(r"\n".join(parts), "\n".join(printed), re.DOTALL) is not None


def _line(line: str) -> str:
    return r"[^\n]*".join(map(re.escape, line.split("...")))


@pytest.mark.parametrize(("line", "shown"), commands(), ids=[line for line, _ in commands()])
def test_a_command_prints_what_the_page_shows(
    folder: Path, line: str, shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing on standard error."""
    words = shlex.split(line)
    if words[0] == "pytest":
        done = subprocess.run(
            [sys.executable, "-m", *words, "-p", "no:cacheprovider"],
            cwd=folder,
            # Only an editable install has this module.
            env=os.environ | {"PYTEST_ADDOPTS": "-W 'ignore:Module already imported'"},
            capture_output=True,
            text=True,
            check=False,
        )
        out, err, status = done.stdout, done.stderr, done.returncode
    else:
        status = main(words[1:])
        out, err = capsys.readouterr()
    assert err == ""
    assert agrees(shown, out.splitlines()), out
    assert status == (1 if any(each == "mistakes:" for each in shown) else 0)


def test_every_file_of_the_page_is_used(folder: Path) -> None:
    """A block that nothing runs could rot."""
    used = " ".join(line for line, _ in commands()) + "".join(text for _, _, text in BLOCKS)
    for _, name, _ in BLOCKS:
        if name and name != "pyproject.toml":
            assert name in used, name


def test_it_has_all_of_simctl_plugin() -> None:
    """Whatever an author may import stands on the page."""
    from simctl import plugin  # noqa: PLC0415 - the page is what is tested

    told = {"JobInfo", "NodeInfo", "PluginProcess", "PluginThread", "DiskView", "Stat"}
    told |= {"OutsideCallError", "NO_VAL", "INFINITE", "SLURM_BATCH_SCRIPT"}
    missing = [name for name in plugin.__all__ if name not in told and name not in GUIDE]
    assert [name for name in missing if not name.endswith("Plugin")] == []


def test_the_entry_point_of_the_page_loads(folder: Path) -> None:
    """The project's name for its plugin is the plugin's type."""
    import tomllib  # noqa: PLC0415

    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    ((name, value),) = project["entry-points"]["simctl.plugins"].items()
    assert f'plugin_type = "{name}"' in (folder / "hello_switch.py").read_text()
    assert value.endswith(":HelloSwitch")
