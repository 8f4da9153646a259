"""The name under which simctl is installed, and an unrelated project of simctl's name beside it."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest
import yaml
from packaging.requirements import InvalidRequirement, Requirement

import slurm_simctl
from simctl import DISTRIBUTION, __version__
from simctl.cli import main

ROOT: Final = Path(__file__).parent.parent
_TEXTS: Final = (".md", ".py", ".toml", ".yml", ".yaml", ".cfg", ".txt", ".sh", "")
_WARNS: Final = re.compile(r"unrelated|another project|not this project|somebody else")
"""A sentence that warns of the other package may name it."""

_INSTALLS: Final = re.compile(r"\b(?:pip|pipx|uv|uvx)\b.*?\b(?:install|add|tool install|run)\b(.*)")
_LISTS: Final = re.compile(
    r"""(?m)^\s*[\w-]+\s*=\s*\[((?:[^\]"'#]|\#.*$|"[^"\n]*"|'[^'\n]*')*)\]""",
)
"""A list of texts, over several lines too; a bracket within a text does not end it."""


def files() -> list[Path]:
    """Return the texts of the repository that git knows."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("this is no clone")
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    here = Path(__file__).name
    return [
        path
        for path in paths
        if path.suffix in _TEXTS and path.is_file() and not path.is_symlink() and path.name != here
    ]


def asked(text: str) -> list[str]:
    """Return the requirements that a text tells somebody to install, of the name simctl."""
    joined = text.replace("\\\n", " ")
    words = [
        word.strip("\"'`,;.()")
        for line in joined.splitlines()
        for match in _INSTALLS.finditer(line)
        if not _WARNS.search(line) and "uninstall" not in line
        for word in match[1].split("`")[0].split()
    ]
    for match in _LISTS.finditer(text):
        words += re.findall(r"[\"']([^\"'\n]+)[\"']", match[1])
    return [word for word in words if _is_simctl(word)]


def _is_simctl(word: str) -> bool:
    try:
        return Requirement(word).name.lower() == "simctl"
    except InvalidRequirement:
        return False


def test_nobody_is_told_to_install_simctl_by_that_name() -> None:
    """On PyPI that is somebody else's code."""
    found = {
        str(path.relative_to(ROOT)): hits
        for path in files()
        if path.suffix != ".py" or "pip" in path.read_text(encoding="utf-8", errors="replace")
        if (hits := asked(_without_layout(path.read_text(encoding="utf-8", errors="replace"))))
    }
    assert found == {}


def _without_layout(text: str) -> str:
    """Return pyproject.toml without its lists of packages, which are no requirements."""
    keys = "ancestors|packages|only-include|known-first-party|files|containers"
    keys += "|modules|src|source_modules"
    return re.sub(rf"(?s)\b(?:{keys})\s*=\s*\[.*?\]", "", text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install simctl",
        "python -m pip install 'simctl[pytest]>=0.2'",
        "    uv add simctl==1",
        "pipx install simctl",
        "pip install \\\n    simctl",
        'dependencies = ["simctl"]',
        'dependencies = [\n    "trio",\n    "simctl>=0.2",\n]',
        '[project.optional-dependencies]\ntest = [\n  "pytest",\n  "simctl[pytest]",\n]',
    ],
)
def test_the_search_finds_the_wrong_name(text: str) -> None:
    """With extras, a version, and over several lines."""
    assert asked(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install slurm-simctl",
        'dependencies = ["slurm-simctl[pytest]>=0.2"]',
        "`pip install simctl` would install an unrelated project",
        "pip uninstall simctl",
        "simctl run two_nodes",
    ],
)
def test_the_search_finds_nothing_where_the_name_is_right(text: str) -> None:
    """Nor in a sentence that warns."""
    assert asked(text) == []


def test_the_version_stands_once_and_is_in_the_changelog() -> None:
    """Metadata are read under the name of the distribution."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION == "slurm-simctl"
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# Another distribution of that name.


def other(folder: Path, record: str = "simctl/__init__.py,,\n") -> Path:
    """Install another project called simctl into a folder as pip would; return the folder."""
    found = folder / "lib" / "site-packages"
    metadata = found / "simctl-3.1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Name: simctl\nVersion: 3.1\n")
    (metadata / "RECORD").write_text(record)
    return found


def start(site: Path, *words: str, first: bool = False) -> subprocess.CompletedProcess[str]:
    """Start simctl with a folder of packages behind or before its own."""
    code = (
        "import sys; "
        f"sys.path.{'insert(0, ' if first else 'append('}{os.fspath(site)!r}); "
        f"sys.argv[1:] = {list(words)!r}; "
        "import slurm_simctl; sys.exit(slurm_simctl.main())"
    )
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )


def test_another_package_that_python_finds_first_is_told_of(tmp_path: Path) -> None:
    """No traceback of an import: which file it is, and what to do; exit status 2."""
    site = other(tmp_path)
    (site / "simctl").mkdir()
    (site / "simctl" / "__init__.py").write_text("name = 'theirs'\n")
    (site / "slurm_simctl.py").symlink_to(ROOT / "slurm_simctl.py")
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import slurm_simctl; slurm_simctl.main()"
    )
    code = code.replace("slurm_simctl.main()", "sys.exit(slurm_simctl.main())")
    done = subprocess.run(
        [sys.executable, "-c", code, os.fspath(site), "--version"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"{site / 'simctl' / '__init__.py'} is not the package of slurm-simctl" in done.stderr
    assert "pip uninstall simctl" in done.stderr


def test_another_distribution_beside_this_one_is_told_of_once(tmp_path: Path) -> None:
    """On standard error, before the command does what it does; nothing of it in --json."""
    done = start(other(tmp_path), "run", "two_nodes", "--json", "--quiet")
    assert done.returncode == 0
    assert done.stderr.count("warning: ") == 1
    assert "whose package is called `simctl` as well" in done.stderr
    assert yaml.safe_load(done.stdout)["stalled"] is False


def test_files_of_both_in_one_folder_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pip writes one's over the other's and says nothing."""
    site = other(tmp_path)
    (site / "slurm_simctl.py").touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    assert "each may have written over the other's" in slurm_simctl.collision(DISTRIBUTION)


def test_nothing_is_told_where_this_distribution_is_alone(tmp_path: Path) -> None:
    """Names that only begin like it are others."""
    site = tmp_path / "site-packages"
    for name in ("slurm_simctl-0.2.0.dist-info", "simctl_tools-1.dist-info", "simctl"):
        (site / name).mkdir(parents=True)
    assert start(site, "--version").stderr == ""


# What a shell and a terminal get.


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_subcommand_and_option(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script is one that the shell reads, where it is there."""
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("explore", "swarm", "plugins", "conform", "no-color", "trace-kinds"):
        assert word in script
    found = shutil.which(shell)
    if found is not None:
        checked = subprocess.run([found, "-n"], input=script, text=True, check=False)
        assert checked.returncode == 0


def complete(*words: str) -> list[str]:
    """Return what bash offers after some words."""
    script = (
        'eval "$(cat)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        "_shtab_simctl simctl \"${!#}\" ''; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    made = subprocess.run(
        [sys.executable, "-m", "simctl", "completion", "bash"],
        capture_output=True,
        text=True,
        check=True,
    )
    told = subprocess.run(
        ["bash", "-c", script, "bash", *words],
        input=made.stdout,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.split()


def test_bash_completes_subcommands_options_and_choices() -> None:
    """As a person types them."""
    assert complete("simctl", "exp") == ["explore"]
    assert "--trace-kinds" in complete("simctl", "run", "--tr")
    assert complete("simctl", "run", "--model", "mo") == ["modern"]
    assert complete("simctl", "trace", "con") == ["conform"]


@pytest.mark.parametrize("words", [["--no-color", "run"], ["run", "--no-color"]])
def test_no_color_stands_before_and_after_the_subcommand(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is NO_COLOR for all that writes colours."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("NO_COLOR", "")
    assert main([*words, "two_nodes", "--quiet"]) == 0
    assert os.environ["NO_COLOR"] == "1"
