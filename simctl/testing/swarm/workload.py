"""What users and operators do: jobs of every kind, and commands about them."""

import json
from collections.abc import Callable
from typing import Final

from simctl.testing.swarm import buffers
from simctl.testing.swarm.chance import Chance
from simctl.testing.swarm.cluster import NAMES, Cluster
from simctl.testing.swarm.draft import run

SPAN_S: Final = 400
"""Until when there is work, in seconds."""

PROGRAMS: Final = {
    "./quick": "{runs: 2s}",
    "./slow": "{runs: [20s, 100s], image: 8MiB}",
    "./long": "{runs: 300s, image: 8MiB}",
    "./bad": "{runs: 10s, exit: 2}",
    "./three": "{runs: 3s, exit: 3}",
    "./dies": "{runs: 5s, signal: SEGV, tasks: [0]}",
    "./eats": "{runs: 4s, oom: true}",
    "./wild": "{runs: forever, on_signal: {TERM: ignore}}",
    "/etc/s": "{runs: [1s, 7s]}",
}

_PLAIN: Final = (
    *("srun ./quick", "srun ./slow", "sleep 30", "srun ./long", "./slow", "true", "srun hostname"),
    *("srun ./quick && srun -N1 ./slow; exit 3", "srun ./bad", "srun ./three; exit 3"),
    *("srun ./dies; exit 1", "srun ./eats", "sleep 200", "srun -n1 ./wild"),
)

_STEPS: Final = (
    "srun ./slow & srun ./quick & wait",
    "for i in 1 2 3; do srun ./quick; done",
    "sleep 5; srun false || srun ./quick",
    "trap 'srun ./quick' TERM; srun ./slow",
    "srun -n1 --exclusive ./slow & srun -n1 --exclusive ./slow & srun -n1 --exclusive true & wait",
    "srun -K ./bad; srun -W5 ./dies",
    "srun -t1 ./slow & srun -k ./quick; wait",
    "srun ./quick & sleep 15 & srun -n1 --exclusive ./slow; exit 1",
    "trap 'echo warned' USR1; ./slow & wait",
    "srun --jobid=1 ./quick; srun ./quick",
    "sbatch --wrap 'srun ./quick'; srun ./quick",
    "scancel $SLURM_JOB_ID.0 & srun ./slow; wait",
    "scontrol requeue $SLURM_JOB_ID; sleep 20",
)

_MOST_ROOM_GIB: Final = (1, 3, 4, 5, 8, 10, 12, 16, 30)


def work(
    seed: int, cluster: Cluster, pools: buffers.Pools, last_job: int
) -> tuple[list[str], dict[str, str]]:
    """Draw the jobs: their entries of the timeline, and the scripts that these name."""
    c = Chance.of(seed, "work")
    entries, files = [], {}
    for number in range(1, last_job + 1):
        at = c.choice((c.randint(0, 10), c.randint(0, 60), c.randint(0, SPAN_S)))
        user = c.choice(NAMES if cluster.has("other users") else NAMES[:2])
        line, script = _job(c, cluster, list(pools), number)
        if script:
            files[f"j{number}.sh"] = script
        entries.append(run(f"at: {at}s", line, user))
    return entries, files


def first_job(cluster: Cluster) -> int:
    """Return the id of the first job."""
    return int(cluster.conf.get("FirstJobId", "1"))


def _job(c: Chance, cluster: Cluster, pools: list[str], number: int) -> tuple[str, str]:
    """Return a command that submits a job, and its script, if it has one."""
    kinds = ["sbatch"] * 6
    kinds += ["srun"] * 2 if cluster.has("srun") else []
    kinds += ["salloc"] * 2 if cluster.has("salloc") else []
    kind = c.choice(kinds)
    words = _options(c, cluster, kind, number)
    scripts = (*_PLAIN, *_STEPS) if cluster.has("steps") else _PLAIN
    script = c.choice(scripts)
    if kind == "srun":
        program = c.choice(("./quick", "./slow", "./bad", "./dies", "sleep 30", "./long"))
        return f"srun {words} {program}", ""
    if kind == "salloc":
        return f"salloc {words} bash -c {json.dumps(script)}", ""
    lines = ["#!/bin/sh"]
    if cluster.buffers and c.likely(0.6):
        both = cluster.buffers == "both"
        plugin = c.choice(("datawarp", "generic")) if both else cluster.buffers
        size = c.choice(_MOST_ROOM_GIB)
        if cluster.buffers == "own":
            lines.append(c.choice(cluster.directives))
        else:
            lines += buffers.job_lines(c, plugin, size, pools, alone=not both)
    elif c.likely(0.3):
        return f"sbatch {words} --wrap {json.dumps(script)}", ""
    return f"sbatch {words} j{number}.sh", "\n".join([*lines, script]) + "\n"


def _options(c: Chance, cluster: Cluster, kind: str, number: int) -> str:
    most = len(cluster.nodes)
    base = first_job(cluster) - 1
    words = []

    def maybe(feature: str, odds: float, option: Callable[[], str]) -> None:
        if (not feature or cluster.has(feature)) and c.likely(odds):
            words.append(option())

    maybe("", 0.6, lambda: f"-N{c.randint(1, most)}")
    maybe("shapes", 0.4, lambda: c.choice(("-n2", "-n4", "-n6", "--ntasks-per-node=2", "-c2")))
    maybe("shapes", 0.15, lambda: c.choice(("-m cyclic", "-m plane=2", "-k", f"-w n{most}")))
    maybe("shapes", 0.1, lambda: c.choice((f"-x n{most}", "-C fast", "-N1-2", "--mincpus=2")))
    maybe("shared nodes", 0.4, lambda: f"--mem={c.choice((0, 100, 300, 700))}")
    if cluster.gpus:
        maybe("shared nodes", 0.4, lambda: c.choice(("--gres=gpu:1", "--gres=gpu:2", "-G1")))
    maybe("exclusive", 0.3, lambda: "--exclusive")
    maybe("limits", 0.6, lambda: f"-t{c.randint(1, 8)}")
    maybe("limits", 0.1, lambda: "--deadline=now+5minutes -t2")
    maybe("signals", 0.3, lambda: c.choice(("--signal=USR1@30", "--signal=TERM@90")) + " -t2")
    maybe("two partitions", 0.5, lambda: f"-p {c.choice(('a', 'b', 'a,b', 'b,a'))}")
    maybe("preemption", 0.4, lambda: "-p b")
    maybe("begins", 0.3, lambda: f"--begin=now+{c.randint(1, 100)}")
    maybe("holds", 0.15, lambda: "-H")
    maybe("reservations", 0.2, lambda: "--reservation=r1")
    maybe("", 0.1, lambda: f"--nice={c.randint(0, 500)}")
    maybe("dependencies", 0.35, lambda: _dependency(c, base, number))
    if cluster.checkpoint != "none":
        maybe("", 0.5, lambda: "--checkpoint=1")
        maybe("", 0.2, lambda: "--checkpoint-dir=/shared/mine")
    if kind == "sbatch":
        maybe("arrays", 0.25, lambda: f"-a 0-{c.randint(1, 4)}{c.choice(('', '', '%1'))}")
        maybe("requeues", 0.3, lambda: c.choice(("--requeue", "--no-requeue")))
    elif cluster.buffers:
        size = c.choice(_MOST_ROOM_GIB)
        plain = f"--bb=size={size}G"
        given = plain if cluster.buffers == "generic" else f"--bb=capacity={size}GiB"
        if cluster.buffers != "own":
            maybe("", 0.3, lambda: given)
        maybe("", 0.2, lambda: "-I")
    return " ".join(words)


def _dependency(c: Chance, base: int, number: int) -> str:
    kind = c.choice(("afterany", "afterok", "afternotok", "after", "aftercorr", "afterburstbuffer"))
    other = base + c.randint(1, max(1, number - 1))
    return c.choice((f"-d {kind}:{other}", f"-d {kind}:{other}", "-d singleton"))


# Commands.

_RESERVE: Final = "scontrol create reservation reservationname=r1 starttime=now"

_ORDERS: Final[dict[str, tuple[str, ...]]] = {
    "cancels": (
        *("scancel {j}", "scancel {j}", "scancel {j}.0", "scancel -s KILL {j}", "scancel -f {j}"),
        *("scancel -u alice", "scancel {j}_1", "scancel --hurry {j}", "scancel -t PENDING"),
    ),
    "signals": (
        *("scancel -s STOP {j}", "scancel -s CONT {j}", "scancel -b -s USR1 {j}"),
        *("scancel -s TERM {j}", "scancel -f -s TSTP {j}", "scontrol notify {j} hello"),
    ),
    "holds": (
        *("scontrol hold {j}", "scontrol uhold {j}", "scontrol release {j}", "scontrol hold {j}_1"),
        "scontrol release {j}",
    ),
    "requeues": (
        *("scontrol requeue {j}", "scontrol requeue {j}", "scontrol requeuehold {j}"),
        *("scontrol requeuehold state=SpecialExit {j}", "scontrol requeue {j}_[0-1]"),
    ),
    "suspends": ("scontrol suspend {j}", "scontrol suspend {j}", "scontrol resume {j}"),
    "node updates": (
        *("scontrol update nodename=n{n} state=drain reason=x", "sinfo -N"),
        *("scontrol update nodename=n{n} state=down reason=x", "scontrol show node n{n}"),
        *("scontrol update nodename=n{n} state=resume", "scontrol update nodename=n{n} state=idle"),
    ),
    "partition updates": (
        *("scontrol update partitionname={p} state=down", "scontrol update partitionname={p}"),
        *("scontrol update partitionname={p} state=drain", "scontrol show partition {p}"),
        *("scontrol update partitionname={p} state=up", "scontrol delete partition={p}"),
        *("scontrol update partitionname={p} maxnodes={k}", "sinfo"),
        *("scontrol update partitionname={p} maxtime={k}", "scontrol create partitionname=c"),
        "scontrol update partitionname={p} prioritytier={k}",
    ),
    "job updates": (
        *("scontrol update jobid={j} timelimit={k}", "scontrol update jobid={j} timelimit=+1"),
        *("scontrol update jobid={j} numnodes={k}", "scontrol update jobid={j} priority={k}"),
        *("scontrol update jobid={j} starttime=now+{k}0", "scontrol update jobid={j} nice=9"),
        *("scontrol update jobid={j} partition={p}", "scontrol update jobid={j} numtasks={k}"),
        *("scontrol update jobid={j} dependency=afterany:{k}", "scontrol top {j}"),
        *("scontrol update stepid={j}.0 timelimit={k}", "scontrol update jobid={j} requeue=0"),
        *("scontrol update jobid={j} arraytaskthrottle={k}", "scontrol write batch_script {j} -"),
        "scontrol update jobid={j} minmemorynode={k}00",
    ),
    "reservations": (
        *("scontrol delete reservation=r1", "scontrol show reservation"),
        f"{_RESERVE}+{{k}}0 duration=3 users=alice,bob nodes=n{{n}} flags=ignore_jobs",
        f"{_RESERVE} duration=2 users=alice nodes=ALL",
        "scontrol update reservationname=r1 duration={k}",
        "sbatch --reservation=r1 --wrap 'srun ./quick'",
    ),
    "reconfigures": ("scontrol reconfigure", "scontrol reconfigure", "scontrol ping"),
    "queries": (
        *("squeue", "squeue -s", "squeue --start", "sinfo", "sacct -a", "scontrol show jobs"),
        *(
            "scontrol show steps",
            "scontrol show burstbuffer",
            "scontrol completing",
            "sacct -j {j}",
        ),
        *("scontrol show switch {j}.0", "scontrol show switch n{n}", "scontrol show config"),
    ),
}

_CHECKPOINTS: Final = (
    *("scontrol checkpoint create {j}", "scontrol checkpoint create {j}.0"),
    *("scontrol checkpoint vacate {j}", "scontrol checkpoint requeue {j}"),
    *("scontrol checkpoint able {j}", "scontrol checkpoint error {j}"),
    *("scontrol checkpoint disable {j}", "scontrol checkpoint enable {j}"),
    *("scontrol checkpoint restart {j}", "scontrol checkpoint vacate {j}.0"),
)


def an_order(c: Chance, cluster: Cluster, last_job: int) -> tuple[str, str]:
    """Draw a command line about what there is, and who types it; empty if there is none to draw."""
    lines = [each for name, lines in _ORDERS.items() if cluster.has(name) for each in lines]
    if cluster.checkpoint != "none":
        lines += _CHECKPOINTS
    if not lines:
        return "", ""
    line = c.choice(lines).format(
        j=first_job(cluster) - 1 + c.randint(1, last_job),
        n=c.randint(1, len(cluster.nodes)),
        k=c.randint(1, 4),
        p=c.choice(cluster.partitions),
    )
    owner = cluster.has("other users") and c.likely(0.2)
    return line, c.choice(NAMES) if owner else "root"


def orders(seed: int, cluster: Cluster, last_job: int) -> list[str]:
    """Draw what is typed at some time or other."""
    c = Chance.of(seed, "orders")
    entries = []
    latest = 60 if cluster.has("early orders") else SPAN_S
    for _ in range(c.choice((0, 3, 8, 15, 25))):
        line, user = an_order(c, cluster, last_job)
        if line:
            entries.append(run(f"at: {c.randint(0, latest * 10) / 10:g}s", line, user))
    return entries
