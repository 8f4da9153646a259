"""Real clients of Slurm run unchanged on a served cluster, each in an environment of its own.

They are not part of the suite: `make clients` fetches them, which takes a minute or two, and runs
these tests. What cannot be had is skipped, and said.
"""

import getpass
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simctl.serve.files import TRACE
from simctl.testing.served import Served
from tests.test_serve_recording import events_of

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
_INSTALL_S = 300
_CLIENT_S = 200
ACCOUNT = "root" if os.getuid() == 0 else "physics"


def environment(name: str, *more: str, client: str = "") -> Path:
    """Return the folder of programs of an environment with a client, made if it is not there.

    What is in it stands in tests/clients/NAME.txt, each package with its version, so that what
    fails is simctl's, and not a release of yesterday.
    """
    listed = HERE / f"{client or name}.txt"
    wanted = "\n".join([listed.read_text(), *more])
    where = Path(os.environ["SIMCTL_CLIENTS"]).absolute() / name
    programs, whole = where / "bin", where / "whole"
    if whole.exists() and whole.read_text() == wanted:
        return programs
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(where)],
        [str(programs / "python"), "-m", "pip", "install", "--quiet", "-r", str(listed), *more],
    ):
        try:
            subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S, check=True)
        except subprocess.TimeoutExpired:
            pytest.skip(f"{name} cannot be had within {_INSTALL_S} s")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"{name} cannot be had: {error.stderr.strip()[-300:]}")
    whole.write_text(wanted)
    return programs


def run_client(
    programs: Path,
    command: list[str],
    *options: str,
    where: Path,
    outputs: list[str] | None = None,
    **more: str,
) -> tuple[str, ...]:
    """Run a client on a served cluster; return what it has asked of Slurm, and keep the trace.

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
            str(programs / command[0]), *command[1:], env=env, cwd=where, timeout=_CLIENT_S
        )
        assert not done.returncode, done.stdout + done.stderr + cluster.said
        assert not cluster.said
        if outputs is not None:
            outputs.append(done.stdout)
        asked = tuple(cluster.asked())
        cluster.stop()
        shutil.copy(cluster.path / TRACE, where)
        return asked
    finally:
        cluster.close()


def test_submitit(tmp_path: Path) -> None:
    """Results, failures, arrays, cancellation, and a job that goes back into the queue in time.

    What is recorded of it comes again twenty times, byte for byte.
    """
    programs = environment("submitit")
    recording = tmp_path / "session.yaml"
    asked = run_client(
        programs,
        ["python", str(HERE / "with_submitit.py"), str(tmp_path)],
        *("--scale", "10", "--record", str(recording)),
        where=tmp_path,
    )
    for command in ("sbatch", "sacct", "scancel", "scontrol requeue", "srun"):
        assert any(line.startswith(command) for line in asked), asked
    lived = b"".join((tmp_path / TRACE).read_bytes().splitlines(keepends=True)[1:-1])
    assert lived.count(b'"kind":"command"') >= len(asked)
    assert [events_of(recording, tmp_path) for _ in range(20)] == [lived] * 20


def test_dask_jobqueue(tmp_path: Path) -> None:
    """Workers are jobs, and are cancelled when they are needed no more."""
    programs = environment("dask-jobqueue")
    asked = run_client(programs, ["python", str(HERE / "with_dask.py")], where=tmp_path)
    assert [line.split()[0] for line in asked].count("sbatch") == 2
    assert any(line.startswith("scancel") for line in asked)


def test_a_swarm_of_simctls_own_runs_on_workers_that_are_jobs(tmp_path: Path) -> None:
    """With the script of docs/dask.md; what comes of it is what comes of it here."""
    root = HERE.parent.parent
    programs = environment(
        *("dask-swarm", "-c", str(root / "requirements.lock"), "--editable", f"{root}[dask]"),
        client="dask-jobqueue",
    )
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
    programs = environment("parsl")
    asked = run_client(
        programs, ["python", str(HERE / "with_parsl.py"), str(tmp_path)], where=tmp_path
    )
    assert {"sbatch", "srun", "scancel"} <= {line.split()[0] for line in asked}


def test_snakemake(tmp_path: Path) -> None:
    """Rules are jobs; one that fails is told."""
    programs = environment("snakemake")
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
