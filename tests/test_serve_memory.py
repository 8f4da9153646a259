"""What a served cluster keeps of jobs that are gone: what accounting knows of them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="serve needs Linux")
JOBS = 24
ROUNDS = 4
"""How often at most: a leak grows each time, what is kept for tasks at work with the load."""

CLUSTER = """\
nodes: [{name: "n[1-2]", cpus: 8, memory_mb: 16000}]
partitions: [{name: debug, nodes: ALL, default: true}]
slurm_conf: {MinJobAge: 2, SchedulerParameters: batch_sched_delay=0,
  SelectType: select/cons_tres, DefMemPerCPU: 100}
"""


def grown(before: dict[str, int], after: dict[str, int]) -> set[str]:
    """Return the kinds of which there are more, by more than half a one for each job."""
    kept = {kind: after[kind] - before.get(kind, 0) for kind in after}
    rows = kept.pop("list of JobAccount") + kept.pop("list of StepAccount")
    assert rows >= 2 * JOBS
    kept["entries of list"] -= rows
    return {kind for kind, more in kept.items() if more > JOBS / 2}


def test_nothing_is_left_of_jobs_that_are_purged_but_in_accounting(tmp_path: Path) -> None:
    """After N more jobs there are as many objects as before, and as many entries in containers."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    counts, bin_path = tmp_path / "counts", tmp_path / "c" / "bin"
    env = {**os.environ, "PATH": f"{bin_path}:{os.environ['PATH']}", "COUNTS": str(counts)}
    script = Path(__file__).with_name("counted_serve.py")
    with subprocess.Popen(
        [
            sys.executable,
            str(script),
            "serve",
            "cluster.yaml",
            "--dir",
            "c",
            "--scale",
            "30",
            "--until-eof",
        ],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as served:
        assert served.stdout is not None
        assert served.stdin is not None
        assert served.stdout.readline()
        children = Path(f"/proc/{served.pid}/task/{served.pid}/children").read_text()
        server = int(children.split()[0])

        def run(line: str) -> str:
            return subprocess.run(
                line, shell=True, check=False, cwd=tmp_path, env=env, capture_output=True, text=True
            ).stdout

        def counted() -> dict[str, int]:
            """Let jobs of all kinds come and go, and count what is there then."""
            run(f"sbatch -o /dev/null --array=1-{JOBS - 4} --wrap 'srun -Q true'")
            run("srun -Q cat < cluster.yaml; salloc -Q srun -Q true")
            batch = "sbatch --parsable -o /dev/null --requeue --wrap"
            requeued = run(f"{batch} '[ $SLURM_RESTART_COUNT ] || sleep 9'")
            cancelled = run(f"{batch} 'setsid sleep 9 & sleep 9'")
            run(f"scontrol requeue {requeued.strip()}; scancel {cancelled}")
            until(lambda: "No jobs" in run("scontrol show job"), "jobs are not purged")
            counts.unlink(missing_ok=True)
            os.kill(server, signal.SIGUSR2)
            until(counts.exists, "nothing is counted")
            found: dict[str, int] = json.loads(counts.read_text())
            return found

        counted()
        before = counted()
        leaked = set(before)
        for _ in range(ROUNDS):
            after = counted()
            leaked &= grown(before, after)
            if not leaked:
                break
            before = after
        served.stdin.close()
    assert not leaked
