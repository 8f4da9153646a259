"""Serve a cluster of two nodes to a swarm of clients while things go wrong in it, for minutes.

As a script: `python -m benchmarks.soak_serve --minutes 60`. It prints a line a minute, and fails if
a job is lost, a process is left at the end, the server tells of a mistake, or memory grows by more
than what accounting keeps of each job.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from simctl.testing.served import Served, ServedError

CLUSTER: Final = """\
nodes: [{name: "n[1-2]", cpus: 8, memory_mb: 16000}]
partitions: [{name: debug, nodes: ALL, default: true}]
slurm_conf:
  SelectType: select/cons_tres
  DefMemPerCPU: 100
  MinJobAge: 60
  KillWait: 100
  SlurmdTimeout: 60
  JobRequeue: 1
"""
BYTES_A_JOB: Final = 6_000
"""Growth at most: what slurmdbd keeps of a job with its steps and runs, and some room."""

_WAITS: Final = 0.5
_STEADY: Final = 180
"""From how many samples on what is kept of the last thousands of jobs is full: half an hour."""

_OVER: Final = frozenset(
    ("CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT")
)
_FAULTS: Final = (
    ("crash {node}", "start {node}"),
    ("crash slurmd@{node}", "start slurmd@{node}"),
    ("restart slurmctld for 5s",),
    ("restart slurmd@{node} for 5s",),
    ("cut {node} slurmctld for 20s",),
    ("delay REQUEST_* by=1s times=5",),
    ("drop RESPONSE_* times=1",),
    ("drop MESSAGE_* times=2",),
    ("duplicate REQUEST_* times=3",),
    ("crash slurmctld", "start slurmctld"),
)


class Soak:
    """A swarm of clients, what they were told, and what came of it."""

    def __init__(self, cluster: Served, seed: int) -> None:
        self.cluster = cluster
        self.seed = seed
        self.ends = threading.Event()
        self.lock = threading.Lock()
        self.jobs: set[int] = set()
        """Those that sbatch has told to be in."""

        self.writes: set[int] = set()
        """Those whose script writes its number into the ledger at its end."""

        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.ledger = cluster.path.with_name("ledger")
        self.ledger.touch()
        self.samples: list[tuple[int, int]] = []
        """How many jobs there have been, and how many bytes the server had, each ten seconds."""

    # The clients.

    def client(self, number: int) -> None:
        """Do one thing after the other until the end."""
        dice = Random(self.seed * 1000 + number)
        ways: tuple[Callable[[Random], None], ...] = (
            *(self._batch,) * 4,
            *(self._array, self._step, self._allocation, self._cancelled, self._requeued),
            *(self._killed, self._garbage, self._asking, self._runaway),
        )
        while not self.ends.is_set():
            way = dice.choice(ways)
            try:
                way(dice)
            except subprocess.TimeoutExpired as error:
                self._note(f"hangs: {error.cmd}")
            with self.lock:
                self.counts[way.__name__.strip("_")] += 1

    def _note(self, what: str) -> None:
        with self.lock:
            self.wrong.append(what)
        print(f"WRONG: {what}", flush=True)

    def _submit(self, script: str, *options: str) -> int:
        """Submit a script; 0 if there was no controller to take it in."""
        done = self.cluster.run(
            "sbatch", "--parsable", "-o", "/dev/null", *options, input=f"#!/bin/sh\n{script}\n"
        )
        if done.returncode:
            return 0
        job = int(done.stdout)
        with self.lock:
            self.jobs.add(job)
        return job

    def _batch(self, dice: Random) -> None:
        tasks = dice.randint(1, 4)
        job = self._submit(
            f"sleep {dice.random() / 2:.2f}\nsrun -Q true\necho $SLURM_JOB_ID >> {self.ledger}",
            f"-n{tasks}",
            f"-N{dice.randint(1, min(2, tasks))}",
        )
        if not job:
            return
        with self.lock:
            self.writes.add(job)
        if dice.random() < _WAITS:
            self.cluster.ask(f"wait job {job}", 5)

    def _array(self, dice: Random) -> None:
        self._submit(f"sleep {dice.random() / 4:.2f}", f"--array=1-{dice.randint(2, 6)}")

    def _step(self, dice: Random) -> None:
        data = dice.randbytes(dice.randrange(100_000))
        done = self.cluster.run("srun", "-Q", "cat", input=data, text=False)
        if not done.returncode and done.stdout != data:
            self._note(f"srun: {len(data)} bytes became {len(done.stdout)}")

    def _allocation(self, _: Random) -> None:
        self.cluster.run("salloc", "-n2", "sh", "-c", "srun -Q true; exit 5")

    def _cancelled(self, dice: Random) -> None:
        if job := self._submit("sleep 30 & setsid sleep 30 & sleep 30"):
            time.sleep(dice.random())
            self.cluster.run("scancel", str(job))

    def _requeued(self, dice: Random) -> None:
        if job := self._submit('[ -n "$SLURM_RESTART_COUNT" ] || sleep 20', "--requeue"):
            time.sleep(dice.random())
            self.cluster.run("scontrol", "requeue", str(job))

    def _killed(self, dice: Random) -> None:
        command = dice.choice([["srun", "sleep", "20"], ["sbatch"], ["salloc", "sleep", "20"]])
        with subprocess.Popen(
            command,
            env=self.cluster.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as client:
            time.sleep(dice.random() / 2)
            client.send_signal(dice.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM]))
            time.sleep(0.1)
            client.kill()

    def _garbage(self, dice: Random) -> None:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.cluster.path / "socket"))
            client.sendall(dice.choice([b"R", b"I", b"G"]) + dice.randbytes(dice.randrange(3000)))

    def _asking(self, dice: Random) -> None:
        lines = ("squeue", "sinfo", "sacct -n", "scontrol show job", "scontrol show node")
        self.cluster.run(*dice.choice(lines).split())

    def _runaway(self, _: Random) -> None:
        self._submit("setsid sh -c '(setsid sleep 500 &) ; sleep 500' &\nsleep 0.1")

    # What goes wrong.

    def trouble(self) -> None:
        """Let something go wrong every other second."""
        dice = Random(self.seed)
        while not self.ends.wait(2):
            node = dice.choice(["n1", "n2"])
            for deed in dice.choice(_FAULTS):
                try:
                    self.cluster.ctl(deed.format(node=node))
                except ServedError as error:
                    self._note(str(error))
                self.ends.wait(1)
            with self.lock:
                self.counts["faults"] += 1

    def watch(self, server: int) -> None:
        """Look how much memory the server has."""
        began = time.monotonic()
        number = 0
        while not self.ends.wait(10):
            number += 1
            fields = Path(f"/proc/{server}/statm").read_text().split()
            with self.lock:
                self.samples.append((max(self.jobs, default=0), int(fields[1]) * 4096))
            if number % 6 == 0:
                self.tell(time.monotonic() - began, server)

    def tell(self, elapsed_s: float, server: int) -> None:
        """Print how it stands."""
        jobs, memory = self.samples[-1]
        cpu = sum(map(int, Path(f"/proc/{server}/stat").read_text().rsplit(")")[-1].split()[11:13]))
        cpu_s = cpu / os.sysconf("SC_CLK_TCK")
        files = len(list(Path(f"/proc/{server}/fd").iterdir()))
        print(
            f"{elapsed_s / 60:5.1f} min  {jobs:6} jobs  {sum(self.counts.values()):6} deeds  "
            f"{memory >> 20:4} MiB  {files:4} files  {cpu_s:6.0f} s of CPU",
            flush=True,
        )

    # The end.

    def settle(self) -> None:
        """Let the nodes come back, and all jobs end."""
        cluster = self.cluster
        for node in ("n1", "n2"):
            for what in (f"start {node}", f"start slurmd@{node}"):
                cluster.ask(what)
            cluster.run("scontrol", "update", f"node={node}", "state=resume")
        limit = time.monotonic() + 120
        while (left := cluster.run("squeue", "-h", timeout=120).stdout) or not self._answers():
            if time.monotonic() > limit:
                self._note(f"these do not end:\n{left}")
                return
            if time.monotonic() > limit - 90:
                for user in {line.split()[3] for line in left.splitlines()}:
                    cluster.run("scancel", "-u", user)
            time.sleep(1)

    def _answers(self) -> bool:
        return " UP" in str(self.cluster.run("scontrol", "ping").stdout)

    def check(self) -> None:
        """Hold what clients were told against what accounting says."""
        # Without a start sacct shows what has been since midnight, which comes early here.
        words = ("sacct", "-nXPa", "-S", "1970-01-01", "-o", "JobIDRaw,State")
        rows = self.cluster.run(*words, timeout=300).stdout
        states = {
            int(job): state.split()[0]
            for job, _, state in (row.partition("|") for row in rows.splitlines())
        }
        for job in sorted(self.jobs):
            if states.get(job, "lost") not in _OVER:
                self._note(f"job {job} is {states.get(job, 'lost')}")
        ran = Counter(map(int, self.ledger.read_text().split()))
        for job in sorted(self.writes - ran.keys()):
            if states.get(job) == "COMPLETED":
                self._note(f"job {job} is COMPLETED, and its script has not ended")
        for job, times in ran.items():
            if states.get(job) not in _OVER:
                self._note(f"job {job} ran {times} times and is {states.get(job, 'lost')}")
        self.counts.update(f"state {state}" for state in states.values())
        if said := [line for line in self.cluster.said.splitlines() if " has sent " not in line]:
            self._note("the server says: " + "\n".join(said[:40]))

    def growth(self) -> float:
        """Return by how many bytes a job memory has grown in the second half."""
        half = self.samples[len(self.samples) // 2 :]
        middle, last = half[0], half[-1]
        return max(0, last[1] - middle[1]) / max(1, last[0] - middle[0])


def left_of(cluster: Served) -> list[str]:
    """Return the processes that bear the name of a cluster's folder."""
    name = str(cluster.path.parent).encode()
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes() + (each / "environ").read_bytes()
        except OSError:
            continue
        if name in words and int(each.name) != os.getpid():
            found.append(words[:200].replace(b"\0", b" ").decode(errors="replace"))
    return found


def main(words: list[str] | None = None) -> int:
    """Soak a cluster; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", default="10")
    options = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    cluster = Served(CLUSTER, "--scale", options.scale)
    try:
        soak = Soak(cluster, options.seed)
        server = int(
            Path(f"/proc/{cluster.process.pid}/task/{cluster.process.pid}/children")
            .read_text()
            .split()[0]
        )
        threads = [
            threading.Thread(target=soak.client, args=(each,)) for each in range(options.clients)
        ]
        threads += [
            threading.Thread(target=soak.trouble),
            threading.Thread(target=soak.watch, args=(server,)),
        ]
        for thread in threads:
            thread.start()
        try:
            time.sleep(options.minutes * 60)
        finally:
            soak.ends.set()
            for thread in threads:
                thread.join(180)
        soak.settle()
        soak.check()
        cluster.stop()
        if left := left_of(cluster):
            soak.wrong.append(f"left: {left}")
        if (cluster.path / "socket").exists():
            soak.wrong.append("the socket is left")
        # What comes before is what caches and the interpreter take once.
        growth = soak.growth() if len(soak.samples) >= _STEADY else 0.0
        if growth > BYTES_A_JOB:
            soak.wrong.append(f"memory grows by {growth:.0f} bytes a job")
        print(json.dumps({"growth_bytes_a_job": round(growth), **soak.counts}, sort_keys=True))
        for each in soak.wrong:
            print(f"wrong: {each}")
        print("failed" if soak.wrong else "passed")
        return 1 if soak.wrong else 0
    finally:
        cluster.close()


if __name__ == "__main__":
    sys.exit(main())
