"""The fixture `simctl_cluster`: a served cluster that a test's own client talks to."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from simctl.serve.asking import Answer, ask
from simctl.serve.files import TRACE
from simctl.status import OK

_START_S: Final = 30.0
_END_S: Final = 20.0
CLUSTER: Final = """\
nodes: [{name: "n[1-2]", cpus: 4, memory_mb: 16000}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
slurm_conf: {SchedulerParameters: batch_sched_delay=0, SelectType: select/cons_tres,
  DefMemPerCPU: 100}
"""
"""The cluster that a test gets which names none; it starts a job without Slurm's usual delay."""


class ServedError(AssertionError):
    """A served cluster did not do what it was asked for."""


class Served:
    """A cluster that `simctl serve` serves while a test runs.

    Attributes:
        path: Its folder.
        bin: The folder with Slurm's commands.
        env: The environment for clients: the test's own, with these commands first on PATH.
    """

    def __init__(self, cluster: str | Path = CLUSTER, *options: str) -> None:
        """Start it: *cluster* is a file, or the text of one.

        Raises:
            ServedError: It did not start.
        """
        parser = argparse.ArgumentParser(add_help=False)
        parser.add_argument("--scale", type=float, default=1.0)
        self._scale: float = parser.parse_known_args(options)[0].scale
        self._folder = tempfile.TemporaryDirectory(prefix="simctl-")
        self.path = Path(self._folder.name) / "c"
        file = Path(cluster) if isinstance(cluster, Path) else self.path.with_name("cluster.yaml")
        if not isinstance(cluster, Path):
            file.write_text(cluster)
        self.bin = self.path / "bin"
        self.env: dict[str, str] = {
            **os.environ,
            "PATH": f"{self.bin}:{os.environ.get('PATH', os.defpath)}",
        }
        self._said = self.path.with_name("said")
        command = [sys.executable, "-m", "simctl", "serve", str(file), "--dir", str(self.path)]
        # A cluster is not to outlive a test that is killed.
        command.append("--until-eof")
        with self._said.open("wb") as messages:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [*command, *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            self.stop()
            said = self.said
            self.close()
            raise ServedError(f"simctl serve did not start: {said}")

    @property
    def said(self) -> str:
        """What the server wrote to its standard error."""
        return self._said.read_text(errors="replace")

    def run(self, *argv: str, **options: Any) -> "subprocess.CompletedProcess[Any]":
        """Run a command with the cluster's commands on PATH; by default its output is kept."""
        given: dict[str, Any] = {
            "env": self.env,
            "stdin": subprocess.DEVNULL,
            "capture_output": True,
            "text": True,
            "timeout": 60,
            "cwd": self.path.parent,
            **options,
        }
        if "input" in given:
            del given["stdin"]
        return subprocess.run(argv, check=False, **given)

    def ask(self, line: str, timeout_s: float = 30.0) -> Answer:
        """Ask for what `simctl serve ctl DIR LINE` does, and return what came of it."""
        return ask(self.path, line, timeout_s)

    def ctl(self, line: str) -> str:
        """Let something happen to the cluster, such as ``crash n2``; return what is told of it.

        Raises:
            ServedError: It cannot be.
        """
        answer = self.ask(line)
        if answer.status != OK:
            raise ServedError(f"{line!r}: {answer.err.strip() or f'status {answer.status}'}")
        return answer.out

    def wait_for(self, what: str, timeout_s: float = 30.0) -> None:
        """Wait for ``job 1 RUNNING``, ``job 1`` (its end), ``node n1 DOWN``, or an event.

        Raises:
            ServedError: It did not come in time, or cannot come any more.
        """
        answer = self.ask(f"wait {what}", timeout_s)
        if answer.status != OK:
            why = answer.err.strip() or f"it did not come within {timeout_s} s, or no more can"
            raise ServedError(f"{what!r}: {why}")

    @property
    def trace(self) -> list[dict[str, Any]]:
        """What has happened so far: the events of the trace, without its header."""
        self.ctl("flush")
        with (self.path / TRACE).open() as file:
            return [json.loads(line) for line in file][1:]

    def asked(self, *words: str) -> list[str]:
        """Return the command lines that clients have run which begin with a command, or hold words.

        The first word is the command's name: ``asked("sacct")``, ``asked("squeue", "-j", "1")``.
        """
        return [event["args"]["line"] for event in self._commands(words)]

    def asked_per_minute(self, *words: str) -> int:
        """Return how many such commands clients have run within any one minute, at most."""
        minute_us = 60_000_000 * self._scale
        times = [event["time_us"] for event in self._commands(words)]
        return max(
            (bisect_left(times, time + minute_us) - at for at, time in enumerate(times)), default=0
        )

    def _commands(self, words: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        for event in self.trace:
            if event["kind"] == "command" and event.get("phase") == "enter":
                line = event["args"]["line"].split()
                if line[:1] == list(words[:1] or line[:1]) and set(words[1:]) <= set(line):
                    yield event

    def stop(self) -> None:
        """End the cluster, with all that its jobs have started."""
        process = self.process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for each in (process.stdin, process.stdout):
            if each is not None:
                each.close()

    def close(self) -> None:
        """End the cluster, and remove its folder."""
        self.stop()
        self._folder.cleanup()
