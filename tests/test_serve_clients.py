"""Real clients of Slurm run unchanged on a served cluster, each in an environment of its own.

They are not part of the suite: `make clients` fetches them, which takes a minute or two, and runs
these tests. What cannot be had is skipped, and said.
"""

import getpass
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simctl.testing.served import Served

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="serve needs Linux"),
    pytest.mark.skipif("SIMCTL_CLIENTS" not in os.environ, reason="`make clients` runs them"),
]
HERE = Path(__file__).parent / "clients"
CLUSTER = f"""
nodes: [{{name: "n[1-2]", cpus: 4, memory_mb: 8000}}]
partitions: [{{name: debug, nodes: ALL, default: true}}]
users: {{{getpass.getuser()}: {{uid: {os.getuid()}, account: physics}}}}
slurm_conf: {{SelectType: select/cons_tres, DefMemPerCPU: 100, KillWait: 100}}
"""
if os.getuid() == 0:
    CLUSTER = "\n".join(line for line in CLUSTER.splitlines() if not line.startswith("users"))
ACCOUNT = "root" if os.getuid() == 0 else "physics"


def environment(name: str, *packages: str) -> Path:
    """Return the folder of programs of an environment with packages, made if it is not there."""
    where = Path(os.environ["SIMCTL_CLIENTS"]).absolute() / name
    programs = where / "bin"
    if (where / "whole").exists():
        return programs
    for command in (
        [sys.executable, "-m", "venv", str(where)],
        [str(programs / "python"), "-m", "pip", "install", "--quiet", *packages],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        if done.returncode:
            pytest.skip(f"{', '.join(packages)} cannot be had: {done.stderr.strip()[-300:]}")
    (where / "whole").touch()
    return programs


def run_client(
    programs: Path,
    command: list[str],
    *options: str,
    where: Path,
    outputs: list[str] | None = None,
    **more: str,
) -> tuple[str, ...]:
    """Run a client on a served cluster; return what it has asked of Slurm.

    Args:
        programs: The folder of its programs.
        command: What it is.
        options: Of `simctl serve`.
        where: The folder in which it runs.
        outputs: A list that its output is added to.
        more: Variables of its environment.
    """
    cluster = Served(CLUSTER, *options)
    try:
        env = {**cluster.env, **more, "PATH": f"{cluster.bin}:{programs}:{os.environ['PATH']}"}
        done = cluster.run(
            str(programs / command[0]), *command[1:], env=env, cwd=where, timeout=100
        )
        assert not done.returncode, done.stdout + done.stderr + cluster.said
        assert not cluster.said
        if outputs is not None:
            outputs.append(done.stdout)
        return tuple(cluster.asked())
    finally:
        cluster.close()


def test_submitit(tmp_path: Path) -> None:
    """Results, failures, arrays, cancellation, and a job that goes back into the queue in time."""
    programs = environment("submitit", "submitit")
    asked = run_client(
        programs,
        ["python", str(HERE / "with_submitit.py"), str(tmp_path)],
        *("--scale", "10"),
        where=tmp_path,
    )
    for command in ("sbatch", "sacct", "scancel", "scontrol requeue", "srun"):
        assert any(line.startswith(command) for line in asked), asked


def test_dask_jobqueue(tmp_path: Path) -> None:
    """Workers are jobs, and are cancelled when they are needed no more."""
    programs = environment("dask-jobqueue", "dask-jobqueue")
    asked = run_client(programs, ["python", str(HERE / "with_dask.py")], where=tmp_path)
    assert [line.split()[0] for line in asked].count("sbatch") == 2
    assert any(line.startswith("scancel") for line in asked)


def test_a_swarm_of_simctls_own_runs_on_workers_that_are_jobs(tmp_path: Path) -> None:
    """With the script of docs/dask.md; what comes of it is what comes of it here."""
    root = HERE.parent.parent
    programs = environment("dask-swarm", "dask-jobqueue", "--editable", f"{root}[dask]")
    page = (root / "docs" / "dask.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "on_slurm.py").write_text(script)
    swarm = ["swarm", "--runs", "8", "--quiet", "--json"]
    command = ["python", "on_slurm.py", *swarm]
    outputs: list[str] = []
    asked = run_client(programs, command, where=tmp_path, outputs=outputs, INTERFACE="lo")
    assert [line.split()[0] for line in asked].count("sbatch") == 2
    local = subprocess.run(
        [str(programs / "simctl"), *swarm], capture_output=True, text=True, timeout=200, check=True
    )
    there, here = json.loads(outputs[0]), json.loads(local.stdout)
    assert there.pop("runner").startswith("dask tcp://")
    assert [each.pop("wall_s") for each in (there, here)]
    assert here.pop("runner").startswith("local:")
    assert there == here


def test_parsl(tmp_path: Path) -> None:
    """A block of workers is a job, in which srun starts them."""
    programs = environment("parsl", "parsl")
    asked = run_client(
        programs, ["python", str(HERE / "with_parsl.py"), str(tmp_path)], where=tmp_path
    )
    assert {"sbatch", "srun", "scancel"} <= {line.split()[0] for line in asked}


def test_snakemake(tmp_path: Path) -> None:
    """Rules are jobs; one that fails is told."""
    programs = environment("snakemake", "snakemake", "snakemake-executor-plugin-slurm")
    command = [
        *("snakemake", "--snakefile", str(HERE / "Snakefile"), "--executor", "slurm"),
        *("--jobs", "4", "--seconds-between-status-checks", "1", "--nocolor"),
        *("--slurm-init-seconds-before-status-checks", "1"),
        *("--default-resources", "slurm_partition=debug", f"slurm_account={ACCOUNT}"),
    ]
    asked = run_client(programs, command, where=tmp_path)
    assert (tmp_path / "out" / "a.txt").read_text().strip().isdigit()
    assert any(line.startswith("sacctmgr") for line in asked)
    with pytest.raises(AssertionError, match="fails"):
        run_client(programs, ["snakemake", "never.txt", *command[1:]], where=tmp_path)
