"""`simctl plugins check --json`: what a plugin prints, and exit statuses."""

import json
from pathlib import Path

import pytest

from simctl.cli import main
from simctl.status import OK

PRINTS = """
from simctl.plugin import SwitchPlugin
print("imported")
class Loud(SwitchPlugin):
    plugin_type = "switch/loud"
    plugin_name = "prints"
    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        print("built", nodelist)
"""


def test_what_a_plugin_prints_goes_to_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The object of --json is all that stands in stdout, whatever a plugin prints at its import."""
    (tmp_path / "loud.py").write_text(PRINTS)
    monkeypatch.chdir(tmp_path)
    assert main(["plugins", "check", "--json", "--model", "guide", "loud.py"]) == OK
    printed = capsys.readouterr()
    (result,) = json.loads(printed.out)
    assert result["plugin"] == "switch/loud"
    assert "imported" in printed.err
    assert "built n" in printed.err


def test_what_a_plugin_prints_in_a_run_is_not_in_its_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The summary of `run --json` can be read whatever is printed in a call."""
    (tmp_path / "loud.py").write_text(PRINTS)
    (tmp_path / "one.yaml").write_text(
        "nodes: [{name: n1}]\npartitions: [{name: debug, nodes: n1, default: true}]\n"
        "users: {alice: 1001}\nslurm_conf: {SwitchType: switch/loud}\n"
        "plugins: [loud.py]\ntimeline:\n  - {at: 0s, as: alice, run: srun sleep 1}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--json", "one.yaml"]) == OK
    printed = capsys.readouterr()
    assert json.loads(printed.out)
    assert "built n" in printed.err
    assert "imported" in printed.err
