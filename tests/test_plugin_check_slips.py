"""`plugins check` of burst buffer and checkpoint plugins: good ones pass, each slip is named.

The plugins lie in `authors/` as their authors write them, and so does the list of slips.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from simctl.cli import main
from simctl.plugins.registry import find_plugins
from simctl.testing.plugin_check.bench import Bench
from simctl.testing.plugin_check.check import DRIVES, check_plugin
from simctl.testing.plugin_check.mistakes import Mistake, roots

FOLDER = Path(__file__).parent / "authors"
GOOD = {path.name.partition(".")[0]: path.read_text() for path in FOLDER.glob("*.txt")}
SLIPS = yaml.safe_load((FOLDER / "slips.yaml").read_text())


class Found(Exception):
    """The mistake that was looked for."""


class Stops(Bench):
    """Leaves off as soon as one mistake is found."""

    wanted: tuple[str, str] = ("", "")

    def blame(self, rule: str, function: str, what: str, **more: Any) -> None:
        """Note a mistake, and stop at the one that is wanted."""
        super().blame(rule, function, what, **more)
        if (rule, function) == self.wanted:
            raise Found


def source_of(slip: dict[str, Any]) -> str:
    """Return the plugin's source with the slip in it."""
    source = GOOD[slip["plugin"]]
    for change in slip["changes"]:
        assert change["old"] in source
        source = source.replace(change["old"], change["new"])
    return source


def mistakes_of(slip: dict[str, Any], folder: Path) -> tuple[Mistake, ...]:
    """Return what a check finds, up to the mistake that is expected."""
    path = folder / "slip.py"
    path.write_text(source_of(slip))
    (plugin,) = find_plugins(str(path), folder)
    bench = Stops(plugin.kind, plugin.origin, models=("guide",))
    bench.wanted = slip["rule"], slip["function"]
    with suppress(Found):
        DRIVES[bench.plugin_class](bench)
    for observer in bench.observers.values():
        observer.conclude()
    with suppress(Found):
        bench.found()
    bench.wanted = ("", "")
    return roots(bench.found())[0]


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_good_plugin_is_fine(name: str, tmp_path: Path) -> None:
    """In both models, with a directive that was found in its code; nothing is said against it."""
    path = tmp_path / f"{name}.py"
    path.write_text(GOOD[name])
    (plugin,) = find_plugins(str(path), tmp_path)
    result = check_plugin(plugin.kind, plugin.origin)
    assert result.mistakes == ()
    assert result.not_driven == ""


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip["name"])
def test_a_slip_is_named(slip: dict[str, Any], tmp_path: Path) -> None:
    """By its rule and function, with file and line, and it alone up to then."""
    found = mistakes_of(slip, tmp_path)
    assert [(each.rule, each.function) for each in found] == [(slip["rule"], slip["function"])]
    assert found[0].where.startswith("slip.py:")
    assert found[0].cost
    assert found[0].remedy


STRANGE = """
from simctl.plugin import BurstBufferPlugin, SlurmError, errno


class Strange(BurstBufferPlugin):
    plugin_type = "burst_buffer/strange"
    plugin_name = "speaks in tongues"

    def bb_p_job_validate(self, job_desc, submit_uid):
        if "#" + chr(64) * 3 in (job_desc.script or ""):
            job_desc.burst_buffer = "it"

    def bb_p_job_begin(self, job_ptr):
        if job_ptr.burst_buffer == "it":
            job_ptr.env_sup["STRANGE"] = {end}
"""

OWN = """\
slurm_conf: {BurstBufferType: burst_buffer/strange}
plugins: ["./strange.py:Strange"]
nodes: [{name: n1, cpus: 4}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
files:
  job.sh: |
    #!/bin/sh
    #X #@@@
    true
timeline:
  - {at: 0s, as: alice, run: sbatch job.sh}
"""


def test_what_was_never_driven_is_not_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 2, and what would do, unless a scenario shows the directive."""
    monkeypatch.chdir(tmp_path)
    Path("strange.py").write_text(STRANGE.replace("{end}", '"yes"'))
    assert main(["plugins", "check", "strange.py"]) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert "no directive was found" in said
    assert "fine" not in said
    Path("own.yaml").write_text(OWN)
    assert main(["plugins", "check", "strange.py", "--scenario", "own.yaml"]) == 0


def test_a_scenario_shows_the_directive_that_nobody_would_guess(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong behind it is found."""
    monkeypatch.chdir(tmp_path)
    Path("strange.py").write_text(STRANGE.replace("{end}", "1 // 0"))
    Path("own.yaml").write_text(OWN)
    assert main(["plugins", "check", "strange.py", "--json", "--scenario", "own.yaml"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert [each["function"] for each in told["mistakes"]] == ["bb_p_job_begin"]
