"""Going back in a long session: how long it takes, wherever it leads."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

SCENARIO: Final = """
nodes: [{name: "n[1-8]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-8]", default: true}]
users: {alice: 1001}
files:
  job.sh: |
    #!/bin/bash
    #SBATCH -N8 -n32
    srun ./app
programs: {./app: {runs: 30s}}
timeline: [{at: 0s, as: alice, run: "sbatch --array=1-190 job.sh"}]
"""
DISTANCES: Final = (1, 10, 1_000, 4_999, 9_000, 25_000, 49_999, 75_000, 90_000, 99_990)
_END: Final = "no user 'nobody'"


class Talk:
    """A session over pipes."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "simctl", "repl", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def type(self, line: str) -> tuple[float, str]:
        """Type a line; return how many seconds it took, and what was printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        started = time.perf_counter()
        self._process.stdin.write(f"{line}\nas nobody\n")
        self._process.stdin.flush()
        printed = ""
        while _END not in printed:
            printed += self._process.stdout.readline()
        return time.perf_counter() - started, printed

    def end(self) -> None:
        """Leave."""
        self._process.communicate()


def back_s() -> tuple[int, list[tuple[int, float]]]:
    """Return the events of a session, and how many seconds each way back from its end takes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.yaml"
        path.write_text(SCENARIO, encoding="utf-8")
        talk = Talk(path)
        found = []
        events = 0
        for distance in DISTANCES:
            talk.type("continue")
            _, printed = talk.type("trace")
            words = [line.split() for line in printed.splitlines()]
            events = max(int(each[0]) for each in words if each and each[0].isdecimal())
            found.append((distance, talk.type(f"back {distance}")[0]))
        talk.end()
    return events, found


def main() -> None:
    """Print the figures."""
    events, found = back_s()
    for distance, seconds in found:
        print(f"back {distance:,} of {events:,} events".ljust(32), f" {seconds * 1000:.0f} ms")


if __name__ == "__main__":
    main()
