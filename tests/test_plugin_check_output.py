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
