"""Looking around in a long session: how long each command takes to answer."""

import tempfile
from pathlib import Path
from typing import Final

from benchmarks.back import SCENARIO, Talk

COMMANDS: Final = (
    "trace last 20",
    "why job 190",
    "why job 190",
    "where job 190",
    "where job 100",
    "procs n1",
    "timeline",
    "changed",
    "explain switch_p_job_attach",
    "trace switch_p_job_attach job=100",
    "trace * job=100 kind=state",
    "help",
)


def looking_ms() -> tuple[int, list[tuple[str, float]]]:
    """Return the events of a session, and how many milliseconds each command takes near its end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.yaml"
        path.write_text(SCENARIO, encoding="utf-8")
        talk = Talk(path)
        talk.type("until switch_p_job_init job=190")
        _, printed = talk.type("trace last 1")
        events = max(int(word) for word in printed.split() if word.isdecimal())
        found = [(line, talk.type(line)[0] * 1000) for line in COMMANDS]
        talk.end()
    return events, found


def main() -> None:
    """Print the figures."""
    events, found = looking_ms()
    print(f"after {events:,} events")
    for line, milliseconds in found:
        print(line.ljust(40), f"{milliseconds:.1f} ms")


if __name__ == "__main__":
    main()
