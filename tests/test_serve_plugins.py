"""Plugins under test in a served cluster: Python, Lua and compiled ones, with real processes."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from simctl.testing.served import CLUSTER, Served
from tests.compiled_plugins import KEYS, TWIN, needs_compiler

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="serve needs Linux")
needs_lua = pytest.mark.skipif(find_spec("lupa") is None, reason="the extra [lua] is missing")
KINDS = [
    pytest.param(TWIN, id="python"),
    pytest.param(str(KEYS), id="compiled", marks=needs_compiler),
]
LUA = """\
function slurm_job_submit(job, parts, uid)
  if job.name == "bad" then
    slurm.log_user("jobs have other names here")
    return slurm.ERROR
  end
  job.comment = "seen"
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, parts, uid)
  return slurm.SUCCESS
end
"""


@pytest.fixture(scope="module", params=KINDS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Return a cluster with a switch plugin, and a job_submit.lua where that can be had."""
    conf, more = f"plugins: ['{request.param}']\n", "SwitchType: switch/keys"
    if find_spec("lupa") is not None:
        script: Path = tmp_path_factory.mktemp("lua") / "job_submit.lua"
        script.write_text(LUA)
        conf, more = f"{conf}job_submit_lua: {script}\n", f"{more}, JobSubmitPlugins: lua"
    served = Served(
        CLUSTER.replace("slurm_conf: {", f"{conf}slurm_conf: {{{more}, "), "--scale", "10"
    )
    yield served
    served.close()


def test_real_processes_have_what_a_switch_plugin_gives_them(cluster: Served) -> None:
    """Its calls are made as ever, in slurmctld, slurmd, slurmstepd and the command."""
    ran = cluster.run("srun", "-N2", "-n2", "sh", "-c", "echo rank $SLURM_PROCID has $KEYS_KEY")
    assert sorted(ran.stdout.splitlines()) == ["rank 0 has 1", "rank 1 has 1"]
    called = {(each["name"], each.get("role")) for each in cluster.trace}
    assert {("switch_p_job_attach", "task"), ("switch_p_job_init", "session")} <= called


def test_a_switch_plugin_fails_on_purpose(cluster: Served) -> None:
    """The client sees what Slurm tells of that, and the next step runs."""
    cluster.ctl("fail switch_p_job_init times=1")
    assert "Error configuring interconnect" in cluster.run("srun", "true").stderr
    assert cluster.run("srun", "echo", "on").stdout == "on\n"
    cluster.ctl("restart slurmd@n1 for 1s")
    assert cluster.run("srun", "-wn1", "echo", "$KEYS_KEY").returncode == 0


@needs_lua
def test_a_sites_job_submit_lua_rules_over_clients(cluster: Served) -> None:
    """It refuses, says why, and changes what is asked for."""
    refused = cluster.run("sbatch", "-J", "bad", "--wrap", "true")
    assert "jobs have other names here" in refused.stderr
    assert refused.returncode == 1
    job = cluster.run("sbatch", "--parsable", "--wrap", "true").stdout.strip()
    assert "Comment=seen" in cluster.run("scontrol", "show", "job", job).stdout
    assert not cluster.said
