"""`simctl new plugin`: what it makes works at once, and it writes over nothing."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from simctl.cli import main
from simctl.plugins.registry import find_plugins
from simctl.testing import run_scenario
from simctl.testing.plugin_check.check import check_plugin
from simctl.testing.plugin_check.lua.check import check_script
from tests.compiled_plugins import needs_compiler

TYPES = ("switch", "checkpoint", "burst_buffer")


def made(folder: Path, plugin_class: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a plugin called as its type in *folder*, and go there."""
    monkeypatch.chdir(folder)
    assert main(["new", "plugin", f"own_{plugin_class}", "--type", plugin_class]) == 0
    monkeypatch.chdir(folder / f"own_{plugin_class}")
    return folder / f"own_{plugin_class}"


@pytest.mark.parametrize("plugin_class", TYPES)
def test_a_new_plugin_is_green(
    plugin_class: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scenario holds in both models, `plugins check` is silent, its test and its code pass."""
    folder = made(tmp_path, plugin_class, monkeypatch)
    name = folder.name
    for model in ("guide", "modern"):
        run = run_scenario(f"{name}.scenario.yaml", model=model)
        run.assert_held()
        assert run.plugin_errors == []
    (found,) = find_plugins(f"./{name}.py", folder)
    assert check_plugin(found.kind, found.origin).mistakes == ()
    for words in (
        ["pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
        *(
            [["ruff", "check", "."], ["ruff", "format", "--check", "."]]
            if find_spec("ruff")
            else []
        ),
    ):
        ended = subprocess.run(
            [sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert main(["test", "."]) == 0


@pytest.mark.parametrize("plugin_class", ["burst_buffer", "job_submit", "cli_filter"])
def test_a_new_script_in_lua_is_green(
    plugin_class: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scenario holds in both models, and `plugins check` is silent."""
    pytest.importorskip("lupa")
    monkeypatch.chdir(tmp_path)
    words = ["new", "plugin", "mine", "--type", plugin_class, "--lang", "lua"]
    assert main(words) == 0
    folder = tmp_path / "mine"
    assert "@" not in (folder / "README.md").read_text()
    for model in ("guide", "modern"):
        run_scenario(folder / "mine.scenario.yaml", model=model).assert_held()
    report = check_script(str(folder / f"{plugin_class}.lua"), slurms=("22.05",))
    assert [(each.rule, each.where, each.what) for each in report.mistakes] == []


@pytest.mark.parametrize("fault", ["crash", "restart"])
def test_a_key_of_the_switch_plugin_is_not_given_twice_over_a_restart(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether slurmctld is stopped or dies, who starts later gets another key."""
    folder = made(tmp_path, "switch", monkeypatch)
    scenario = folder / "own_switch.scenario.yaml"
    text = scenario.read_text()
    if fault == "crash":
        text = text.replace(
            "{restart: slurmctld}}", "{crash: slurmctld}}\n  - {at: 12s, fault: {start: slurmctld}}"
        )
    scenario.write_text(text)
    run_scenario(scenario).assert_held()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["Big", "--type", "switch"], "will not do as a name"),
        (["../up", "--type", "switch"], "will not do as a name"),
        (["9th", "--type", "switch"], "will not do as a name"),
        (["x" * 41, "--type", "switch"], "will not do as a name"),
        (["json", "--type", "switch"], "try my_json"),
        (["class", "--type", "switch"], "try my_class"),
        (["simctl", "--type", "switch"], "try my_simctl"),
        (["elan", "--type", "switch"], "try my_elan"),
        (["mine", "--type", "job_submit"], "job_submit in lua"),
        (["mine", "--type", "cli_filter"], "cli_filter in lua"),
        (["mine", "--type", "swich"], "no type of plugin"),
        (["mine", "--type", "burst_buffer", "--lang", "c"], "--lang c has no burst_buffer plugins"),
        (["mine", "--type", "switch", "--lang", "lua"], "switch in python, c"),
        (["mine", "--type", "switch", "--lang", "perl"], "not known"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_made(
    words: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The error says what would do."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "plugin", *words]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder", "empty", "link"])
def test_nothing_is_written_over(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever bears the name already is left as it is, an empty folder as well."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "mine"
    if kind == "file":
        place.write_text("mine\n")
    elif kind == "link":
        place.symlink_to("nowhere")
    else:
        place.mkdir()
        if kind == "folder":
            (place / "mine.py").write_text("mine\n")
    before = sorted(tmp_path.rglob("*"))
    assert main(["new", "plugin", "mine", "--type", "switch"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@needs_compiler
@pytest.mark.parametrize("kind", ["switch", "checkpoint"])
def test_a_new_plugin_in_c_is_green(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It builds without a warning, its scenario holds in both models, and no mistake is found."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "plugin", "own_c", "--type", kind, "--lang", "c"]) == 0
    monkeypatch.chdir(tmp_path / "own_c")
    built = subprocess.run(
        ["make", "CFLAGS=-Wall -Wextra -Werror"], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    for model in ("guide", "modern"):
        run = run_scenario("own_c.scenario.yaml", model=model)
        run.assert_held()
        assert run.plugin_errors == []
    if kind == "checkpoint":
        return  # what plugins check finds in one is tested where its slips are
    (found,) = find_plugins("./own_c.so", tmp_path / "own_c")
    assert check_plugin(found.kind, found.origin, models=("guide",)).mistakes == ()
