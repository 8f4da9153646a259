"""One node has another version of the switch plugin: who packs, who reads, who refuses."""

from pathlib import Path

import pytest

from simctl.plugins.registry import PluginError
from simctl.plugins.switch import qsnet
from tests.cluster import Ran, run

PLUGINS = """\
from simctl.plugin import SlurmError, SwitchPlugin, errno


class Wire1(SwitchPlugin):
    plugin_type = "switch/wire"
    plugin_name = "a wire between two nodes"
    plugin_version = 1

    def switch_p_alloc_jobinfo(self):
        return {"key": 0, "from": None}

    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        switch_job["key"] = 7

    def switch_p_copy_jobinfo(self, switch_job):
        return dict(switch_job)

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        buffer.pack32(switch_job["key"])
        return 4

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        switch_job["key"] = buffer.unpack32()
        switch_job["from"] = buffer.version

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        env["WIRE"] = f"{self.plugin_version} key {switch_job['key']} from {switch_job['from']}"


class Converts(Wire1):
    plugin_version = 2

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        buffer.pack64(switch_job["key"])
        return 8

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        switch_job["key"] = buffer.unpack32() if buffer.version == 1 else buffer.unpack64()
        switch_job["from"] = buffer.version


class Refuses(Wire1):
    plugin_version = 3

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        if buffer.version != 3:
            raise SlurmError(3050, "another version")
        super().switch_p_unpack_jobinfo(switch_job, buffer)
"""
STEP = """\
slurm_conf: {{SwitchType: switch/wire}}
nodes:
  - {{name: n1, cpus: 4}}
  - {{name: n2, cpus: 4, plugins: ["./wire.py:{kind}"]}}
partitions: [{{name: debug, nodes: "n[1-2]", default: true}}]
users: {{alice: 1001}}
plugins: ["./wire.py:Wire1"]
files:
  app.sh: |
    #!/bin/sh
    echo "$SLURM_PROCID: $WIRE"
timeline: [{{at: 0s, as: alice, run: "srun -N2 ./app.sh"}}]
"""


def mixed(folder: Path, kind: str, model: str) -> Ran:
    """Run a step on two nodes of which the second has another version."""
    (folder / "wire.py").write_text(PLUGINS)
    return run(STEP.format(kind=kind), cluster="", folder=folder, model=model)


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_version_that_is_converted(tmp_path: Path, model: str) -> None:
    """Slurmd reads what srun's older plugin packed; its step daemon what slurmd's own packed."""
    ran = mixed(tmp_path, "Converts", model)
    assert sorted(ran.result.commands[0].stdout.splitlines()) == [
        "0: 1 key 7 from 1",
        "1: 2 key 7 from 2",
    ]
    unpacked = ran.one("switch_p_unpack_jobinfo", node="n2", daemon="slurmd")
    assert unpacked.args["buffer"] == {"bytes": 4, "version": 1}  # type: ignore[index]
    handed = ran.one("switch_p_unpack_jobinfo", node="n2", role="manager")
    assert handed.args["buffer"] == {"bytes": 8}  # type: ignore[index]
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_version_that_is_refused(tmp_path: Path, model: str) -> None:
    """The launch fails on that node alone, with the error of a credential nobody can read."""
    ran = mixed(tmp_path, "Refuses", model)
    assert ran.one("switch_p_unpack_jobinfo", rc=-1).node == "n2"
    assert ran.all("switch_p_job_preinit", node="n2") == []
    assert len(ran.all("switch_p_job_attach", node="n1")) == 1
    assert "Invalid job credential" in ran.stderr()


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_elan_refuses_what_another_version_packed(tmp_path: Path, model: str) -> None:
    """EVERSION_QSW: the version stands in the record itself, too."""
    (tmp_path / "newer.py").write_text(
        "from simctl.plugins.switch.elan import SwitchElan\n"
        "class Newer(SwitchElan):\n"
        "    plugin_version = 91\n"
    )
    text = STEP.format(kind="Wire1").replace("switch/wire", "switch/elan")
    text = text.replace('plugins: ["./wire.py:Wire1"]\n', "").replace(
        "wire.py:Wire1", "newer.py:Newer"
    )
    ran = run(text, cluster="", folder=tmp_path, model=model)
    failed = ran.one("switch_p_unpack_jobinfo", rc=-1)
    assert (failed.node, failed.errno) == ("n2", str(qsnet.EVERSION_QSW))
    assert ran.one("switch_p_get_errno", node="n2").rc == qsnet.EVERSION_QSW


def test_another_version_of_a_plugin_nobody_has_is_a_mistake(tmp_path: Path) -> None:
    """What stands for nothing would never be loaded."""
    (tmp_path / "wire.py").write_text(PLUGINS)
    text = STEP.format(kind="Converts").replace('plugins: ["./wire.py:Wire1"]\n', "")
    with pytest.raises(PluginError, match="which no other host has"):
        run(text, cluster="", folder=tmp_path)
