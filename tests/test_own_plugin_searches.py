"""explore and swarm with an author's own plugin: what they find runs from any folder."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from simctl.cli import main
from simctl.testing.explore.scenario_file import edited
from simctl.testing.explore.shrink import Shrinker

_KEYS = '''
from simctl.plugin import SlurmError, SwitchPlugin, errno
from .values import KEYS

class Keys(SwitchPlugin):
    """Has three keys, and gives each task of a step one."""
    plugin_type = "switch/keys"
    plugin_name = "a plugin of a test"

    def init(self):
        self.free = list(KEYS)

    def switch_p_alloc_jobinfo(self):
        return []

    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        if nprocs > len(self.free):
            raise SlurmError(errno.ESLURM_INTERCONNECT_FAILURE)
        for _ in range(nprocs):
            switch_job.append(self.free.pop())

    def switch_p_copy_jobinfo(self, switch_job):
        return list(switch_job)

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        buffer.pack32(len(switch_job))
        for key in switch_job:
            buffer.pack32(key)
        return 4 + 4 * len(switch_job)

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        switch_job[:] = [buffer.unpack32() for _ in range(buffer.unpack32())]

    def switch_p_job_step_complete(self, switch_job, nodelist):
        self.free += switch_job

class Raises(Keys):
    """Breaks in every task."""
    plugin_type = "switch/raises"

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        return 1 / 0
'''

_SCENARIO = """\
# A step that begins while the keys of the one before are on their way back finds none.
slurm_conf: {SwitchType: switch/keys}
plugins: ["keys:Keys"]
nodes: [{name: "n[1-2]", cpus: 2}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001}
files:
  a.sh: |
    #!/bin/sh
    srun -N2 -n3 sleep 5
    srun -N2 -n3 sleep 5
timeline:
  - {at: 0s, as: alice, run: sbatch -N2 -n3 a.sh}
expect:
  - {job: 1, state: COMPLETED}
"""

_STAGES = '''
from simctl.plugin import BurstBufferPlugin

class Stages(BurstBufferPlugin):
    """Takes a directive, and has every job wait for nothing."""
    plugin_type = "burst_buffer/stages"
    plugin_name = "a plugin of a test"

    def bb_p_job_validate(self, job_desc, submit_uid):
        if "#MB " in job_desc.script:
            job_desc.burst_buffer = "mine"
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package, a file, and a scenario beside them, in the folder at hand."""
    here = tmp_path / "here"
    (here / "keys").mkdir(parents=True)
    (tmp_path / "there").mkdir()
    (here / "keys" / "__init__.py").write_text(_KEYS)
    (here / "keys" / "values.py").write_text("KEYS = (1, 2, 3)\n")
    (here / "stages.py").write_text(_STAGES)
    (here / "race.yaml").write_text(_SCENARIO)
    monkeypatch.chdir(here)
    for name in ("keys", "keys.values"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return here


def _said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    status = main(list(words))
    return status, capsys.readouterr().out


def _object(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    found = json.loads(_said(capsys, *words)[1])
    found.pop("wall_s")
    found.pop("runner")
    return found


def test_explore_finds_a_race_of_a_package_and_the_file_runs_from_elsewhere(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One late message is left of many, in under 200 runs; the find stands before statistics."""
    file = folder.parent / "there" / "found.yaml"
    words = ("explore", "race.yaml", "--seeds", "12", "--workers", "1", "-o", str(file))
    found = _object(capsys, *words, "--json")["found"]
    assert found["deviations"]["left"] == 1
    assert found["shrinking_runs"] < 200
    status, out = _said(capsys, *words)
    assert status == 1
    assert out.index("found at seed") < out.index("schedules of")
    monkeypatch.chdir("/")
    assert _said(capsys, *shlex.split(found["command"])[1:])[0] == 1


def test_a_find_that_is_not_made_small_has_its_token_and_command(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is blamed on the plugin, whose two runs were equal; the command repeats it."""
    monkeypatch.setattr(Shrinker, "shrink", lambda *_: None)
    words = ("explore", "race.yaml", "--seeds", "12", "--workers", "1")
    found = _object(capsys, *words, "--json")["found"]
    assert found["file"] is None
    assert found["token"] in found["command"]
    assert _said(capsys, *shlex.split(found["command"])[1:])[0] == 1
    out = _said(capsys, *words)[1]
    assert found["command"] in out
    assert "real clock" not in out


def test_what_explore_prints_does_not_depend_on_workers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does what `swarm` prints, but for the time it took."""
    explore = ("explore", "race.yaml", "--seeds", "12", "--json", "-o", "x.found.yaml", "--workers")
    assert _object(capsys, *explore, "1") == _object(capsys, *explore, "2")
    swarm = ("swarm", "--plugin", "keys:Raises", "--runs", "3", "--json", "-o", "y.yaml")
    calm = ("--faults", "none", "--workers")
    assert _object(capsys, *swarm, *calm, "1") == _object(capsys, *swarm, *calm, "2")


def test_a_swarm_breaks_an_own_plugin_and_the_file_runs_from_elsewhere(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search is told with the plugin, its keys, and its kinds of faults."""
    file = folder.parent / "there" / "found.yaml"
    words = ("--plugin", "keys:Raises", "--conf", "KillWait=7", "--faults", "none")
    status, out = _said(capsys, "swarm", *words, "--runs", "2", "-o", str(file))
    assert status == 1
    assert out.index("BROKEN") < out.index("2 runs, seeds")
    text = file.read_text()
    assert "simctl swarm --plugin keys:Raises --conf KillWait=7 --seed" in text
    assert "--faults none" in text
    monkeypatch.chdir("/")
    assert _said(capsys, "swarm", str(file))[0] == 1


def test_every_cluster_of_a_swarm_has_the_plugin_and_its_keys(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Jobs with a burst buffer ask for it in the author's own words."""
    asked = ("--plugin", "stages.py:Stages", "--directive", "#MB size=1", "--conf", "KillWait=7")
    shown = [_said(capsys, "swarm", *asked, "--show", "--seed", str(n))[1] for n in range(6)]
    for text in shown:
        assert "BurstBufferType: burst_buffer/stages" in text
        assert 'KillWait: "7"' in text
        assert "#DW" not in text
        assert "#BB" not in text
    assert any("#MB size=1" in text for text in shown)
    assert _said(capsys, "swarm", *asked, "--runs", "2", "--faults", "none")[0] == 0


def test_clusters_that_contradict_the_authors_keys_are_left_out_and_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some have no preemption at all; where none goes with a key that is an error."""
    words = ("--plugin", "keys:Keys", "--conf", "PreemptMode=REQUEUE", "--faults", "none")
    status, out = _said(capsys, "swarm", *words, "--runs", "3", "--workers", "1", "--json")
    found = json.loads(out)
    assert (status, found["runs"] + found["left_out"]["runs"], found["runs"] > 0) == (0, 3, True)
    assert "needs PreemptType" in found["left_out"]["why"]
    assert main(["swarm", *words, "--runs", "1", "--seed", "1"]) == 2
    assert "--conf: with seed 1: slurm_conf.PreemptMode" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--plugin", "nowhere.py:X"], "there is no file"),
        (["--plugin", "keys"], "name one: keys:CLASS"),
        (["--plugin", "keys:Keys", "--plugin", "keys:Raises"], "may be named once"),
        (["--plugin", "stages.py"], "without a directive"),
        (["--plugin", "stages.py", "--directive", "MB"], "begins with #"),
        (["--plugin", "keys:Keys", "--directive", "#MB"], "burst buffer plugin"),
        (["--directive", "#MB"], "goes with --plugin"),
        (["--conf", "KillWait=1"], "goes with --plugin"),
        (["--plugin", "keys:Keys", "--conf", "KillWait"], "expected KEY=VALUE"),
        (["--plugin", "keys:Keys", "--conf", "SwitchType=switch/none"], "--plugin chooses it"),
        (["--plugin", "keys:Keys", "--conf", "KilWait=1"], "did you mean KillWait"),
        (["--plugin", "keys:Keys", "race.yaml"], "without a SCENARIO"),
    ],
)
def test_what_cannot_be_is_refused(
    words: list[str], told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error says what would do."""
    assert main(["swarm", *words]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reference", "moved"),
    [
        ("keys:Keys", "../here/keys:Keys"),
        ("./keys:Keys", "../here/keys:Keys"),
        ("stages:Stages", "../here/stages:Stages"),
        ("stages.py:Stages", "../here/stages.py:Stages"),
        ("installed.module:Other", "installed.module:Other"),
    ],
)
def test_plugins_follow_a_scenario_that_moves(reference: str, moved: str, folder: Path) -> None:
    """Files, modules and packages beside it; what is installed stays as it is named."""
    text = edited(f"plugins: [{reference!r}]\n", folders=(folder, folder.parent / "there"))
    assert moved in text
