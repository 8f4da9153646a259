"""A served cluster writes down what came from outside, and a run of that is the same, always."""

import sys
from pathlib import Path

import pytest

from simctl.kernel.trace import FileSink
from simctl.scenario.load import load_scenario, read_scenario
from simctl.scenario.positions import ScenarioErrors
from simctl.testing.served import CLUSTER, Served
from simctl.world import World

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="serve needs Linux")


def events_of(path: Path, tmp_path: Path) -> bytes:
    """Run a recording; return the lines of its trace without the header."""
    world = World(load_scenario(path))
    trace = tmp_path / "again.jsonl"
    with trace.open("wb") as stream:
        sink = FileSink(stream, world.header())
        world.trace.add_sink(sink)
        result = world.run()
        sink.flush()
    assert not result.stalled
    return trace.read_bytes().partition(b"\n")[2]


def afternoon(cluster: Served) -> bytes:
    """Use a cluster in many ways; return the events that it has had, save the last."""
    run, where = cluster.run, cluster.path.parent
    (where / "script.py").write_text(f"#!{sys.executable}\nimport time\ntime.sleep(1000)\n")
    first = run(
        "sbatch", "--parsable", "-N2", "-n2", input="#!/bin/bash\nsrun echo '\u00e9 \U0001f600'\n"
    )
    cluster.wait_for(f"job {first.stdout.strip()} COMPLETED")
    run("srun", "cat", input=bytes(range(256)), text=False)
    run("sbatch", "-o", "missing/out", "script.py")
    run("sbatch", "no-such-file")
    run("salloc", "sh", "-c", "srun -Q true; exit 3")
    (where / "missing").mkdir()
    run("sbatch", "-o", "missing/out", "-w", "n1", "script.py")
    cluster.wait_for("job 5 RUNNING")
    run("scancel", "5")
    cluster.wait_for("job 5")
    run("sbatch", "--no-requeue", "-w", "n2", "script.py")
    cluster.wait_for("job 6 RUNNING")
    cluster.ctl("crash n2")
    run("scontrol", "update", "node=n2", "state=down", "reason=gone")
    cluster.wait_for("job 6 NODE_FAIL")
    cluster.stop()
    assert not cluster.said
    lines = (cluster.path / "trace.jsonl").read_bytes().splitlines(keepends=True)
    return b"".join(lines[1:-1])


def test_a_recording_repeats_what_happened_byte_for_byte(tmp_path: Path) -> None:
    """Clients, signals, files, the ends of processes and faults come again at their moments."""
    recording = tmp_path / "afternoon.yaml"
    cluster = Served(CLUSTER, "--scale", "10", "--record", str(recording))
    try:
        lived = afternoon(cluster)
    finally:
        cluster.stop()
        cluster.close()
    assert lived.count(b'"NODE_FAIL') > 0
    assert [events_of(recording, tmp_path) for _ in range(20)] == [lived] * 20


def test_a_recording_that_is_somebody_elses_file_is_left_alone(tmp_path: Path) -> None:
    """As any output."""
    recording = tmp_path / "notes.yaml"
    recording.write_text("mine\n")
    with pytest.raises(AssertionError, match=r"notes\.yaml.*left alone"):
        Served(CLUSTER, "--record", str(recording))
    assert recording.read_text() == "mine\n"


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("{command: 1}", "expected exactly one of"),
        ("{signal: 9, ended: 0}", "expected exactly one of"),
        ("{signal: 9}", "`signal` goes with `command`"),
        ("{command: 1, argv: [], user: a, uid: 1, gid: 1, cwd: /}", "at least its name"),
        ("{path: here, text: x}", "expected a whole path"),
        ("{task: 1, ended: 70000}", "a wait status"),
    ],
)
def test_a_recording_that_was_changed_by_hand_is_checked(what: str, told: str) -> None:
    """Each mistake has its place."""
    with pytest.raises(ScenarioErrors) as raised:
        read_scenario(f"{CLUSTER}timeline: [{{at: 1s, outside: {what}}}]\n", file="x.yaml")
    assert told in "; ".join(str(mistake) for mistake in raised.value.mistakes)
