"""Runs with checkpoint/blcr, for tests: a cluster, a job under srun_cr, and what its files hold."""

from tests.cluster import Ran, run

CLUSTER = """\
nodes: [{name: "n[1-4]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-4]", default: true}]
users: {alice: 1001, bob: 1002}
slurm_conf:
  CheckpointType: checkpoint/blcr
  JobCheckpointDir: /shared/ckpt
  MinJobAge: 2
  SlurmdTimeout: 30
  KillWait: 5
  ReturnToService: 1
"""

JOB = """\
checkpoint: {bandwidth: 1GiB}
programs: {./app: {runs: 10m, image: 512MiB, output: "done\\n"}}
files:
  job.sh: |
    #!/bin/bash
    #SBATCH -N2 -n2 --ntasks-per-node=1 --open-mode=append
    echo begun
    srun_cr ./app
    echo "left with $?"
"""

SUBMIT = "{at: 1s, as: alice, run: sbatch job.sh}"


def checkpointed(
    *entries: str, job: str = JOB, cluster: str = CLUSTER, more: str = "", model: str = "guide"
) -> Ran:
    """Run a job that is submitted after a second, and the *entries* of a timeline."""
    timeline = "timeline:\n" + "".join(f"  - {entry}\n" for entry in (SUBMIT, *entries))
    return run(job + more + timeline, cluster=cluster, model=model)


def checkpoint(at: str, what: str, *, user: str = "alice", **checks: str) -> str:
    """Return an entry of a timeline: ``scontrol checkpoint`` and what is expected of it."""
    more = "".join(f", {key}: {value}" for key, value in checks.items())
    return f"{{at: {at}, as: {user}, run: scontrol checkpoint {what}{more}}}"


def output(ran: Ran, job_id: int = 1) -> list[str]:
    """Return the lines of a job's output that its script and its programs wrote."""
    text = ran.world.disk.read(f"/home/alice/slurm-{job_id}.out") or ""
    return [line for line in text.splitlines() if not line.startswith(("srun", "slurmstepd"))]


def images(ran: Ran) -> list[str]:
    """Return the paths of all images."""
    images = ("script.ckpt", "task.")
    paths = (path for _, path in ran.world.disk._files if path.endswith(".ckpt"))
    return sorted(path for path in paths if path.rpartition("/")[2].startswith(images))


def answers(ran: Ran, *, to: str) -> list[str]:
    """Return what the commands of the timeline printed that begin so."""
    found = [each for each in ran.result.commands if each.command.startswith(to)]
    return [(each.stdout + each.stderr).strip() for each in found]


def unmet(ran: Ran) -> list[str]:
    """Return what the entries of the timeline expected in vain."""
    return [f"{each.text}: {each.detail}" for each in ran.result.expectations if not each.held]


def ran_for_us(ran: Ran, program: str) -> int:
    """Return how long tasks of a program ran in all, in virtual microseconds.

    The time in which they stood still, or were restarted, counts as well.
    """
    begun: dict[int, int] = {}
    total = 0
    for event in ran.all(kind="process", daemon="task"):
        assert isinstance(event.pid, int)
        if event.name == "exec" and event.args["path"] == program:  # type: ignore[index]
            begun[event.pid] = event.time_us
        elif event.name == "exit" and event.pid in begun:
            total += event.time_us - begun.pop(event.pid)
    return total


__all__ = [
    "CLUSTER",
    "JOB",
    "SUBMIT",
    "answers",
    "checkpoint",
    "checkpointed",
    "images",
    "output",
    "ran_for_us",
    "unmet",
]
