"""--time-min: backfill lowers a time limit, but not below that, to start a job before a head."""

import re

import pytest

from tests.cluster import run
from tests.entries import starts
from tests.scontrol_situations import type_in
from tests.test_backfill import cluster, jobs

# Job 1 has half of the nodes until 600 s, job 2 will have all of them then.
BEFORE = ("-N2 -n8 -t10 runs 10", "-N4 -n16 -t10 runs 10")


@pytest.mark.parametrize("select", ["linear", "cons_tres"])
@pytest.mark.parametrize(
    ("asked", "start", "limit"),
    [
        ("-t15", 1200, "00:15:00"),
        ("-t15 --time-min=10", 1200, "00:15:00"),
        ("-t15 --time-min=9", 30, "00:09:00"),
        ("-t15 --time-min=1", 30, "00:09:00"),
        ("-t9 --time-min=1", 30, "00:09:00"),
        ("-t8 --time-min=1", 30, "00:08:00"),
        ("--time-min=1", 30, "00:09:00"),
        ("-t15 --time-min=0", 1200, "00:15:00"),
    ],
)
def test_a_job_starts_before_a_head_with_less_time(
    select: str, asked: str, start: int, limit: str
) -> None:
    """From 30 s to 600 s are nine whole minutes, and ten are too long."""
    text = jobs(*BEFORE, f"-N2 -n8 {asked} runs 2")
    text += f"  - {{at: {start + 5}s, as: alice, run: scontrol show job 3}}\n"
    ran = run(text, cluster=cluster("backfill", select))
    assert starts(ran) == {1: 0, 2: 600, 3: start}
    shown = ran.result.commands[-1].stdout
    assert f"TimeLimit={limit} " in shown


def test_without_a_head_the_limit_stays() -> None:
    """Nobody needs the nodes."""
    lines = [("1s", "alice", "sbatch -t15 --time-min=2:30 --wrap 'sleep 9'"),
             ("5s", "alice", "scontrol show job 1"),
             ("5s", "alice", "squeue -h -O MinTime:.9")]  # fmt: skip
    _, shown, column = type_in(lines).result.commands
    assert re.search(r"TimeLimit=00:15:00 TimeMin=00:03:00\n", shown.stdout)
    assert column.stdout == "     3:00\n"


def test_the_lowered_limit_ends_the_job() -> None:
    """What still runs then is told TIMEOUT, and the head starts in time."""
    ran = run(jobs(*BEFORE, "-N2 -t15 --time-min=5 runs 14"), cluster=cluster("backfill"))
    assert starts(ran)[2] == 600
    assert next(row for row in ran.result.rows if row.job_id == 3).state == "TIMEOUT"


def test_main_passes_lower_nothing() -> None:
    """Without sched/backfill the order of submission holds."""
    ran = run(jobs(*BEFORE, "-N2 -t15 --time-min=5 runs 2"), cluster=cluster("builtin"))
    assert starts(ran) == {1: 0, 2: 600, 3: 1200}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("-t5 --time-min=6", "Requested time limit is invalid (missing or exceeds some limit)"),
        ("-t5 --time-min=5", "Submitted batch job 1"),
        ("--time-min=x", "sbatch: error: Invalid --time-min specification"),
        ("--time-min=-1", "sbatch: error: Invalid --time-min specification"),
    ],
)
def test_no_time_exceeds_the_limit(asked: str, told: str) -> None:
    """And it is one."""
    (said,) = type_in([("1s", "alice", f"sbatch {asked} --wrap true")]).result.commands
    assert told in said.stdout + said.stderr
