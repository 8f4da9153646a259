"""Nobody who could run is left waiting: what frees a job to start has a pass run."""

import pytest

from tests.cluster import Ran, run
from tests.entries import entries, starts

CLUSTER = """\
slurm_conf: {{SchedulerType: sched/{scheduler}, SelectType: select/cons_tres{conf}}}
nodes: [{{name: n1, cpus: 2, gres: "gpu:1"}}, {{name: n2, cpus: 2}}, {{name: n3, cpus: 4}}]
partitions:
  - {{name: all, nodes: "n[1-3]", default: true}}
  - {{name: one, nodes: n1}}
  - {{name: top, nodes: "n[2-3]", priority_tier: 5}}
  - {{name: pair, nodes: "n[1-3]", min_nodes: 2, default_time: "0:02:00"}}
users: {{alice: 1001, bob: 1002, op: {{uid: 1003, admin: operator}}}}
"""


def timeline(*lines: str, scheduler: str = "builtin", conf: str = "", more: str = "") -> Ran:
    """Run a timeline on three nodes."""
    return run(entries(*lines) + more, cluster=CLUSTER.format(scheduler=scheduler, conf=conf))


# Job 1 runs long on n1, job 2 waits for all nodes, job 3 would have room.
BLOCKED = (
    "0 bob sbatch -w n1 --exclusive -t20 --wrap 'sleep 1000'",
    "1 bob sbatch -N3 --exclusive -t20 --wrap 'sleep 10'",
    "2 bob sbatch -N1 -t19 --wrap 'sleep 10'",
)


@pytest.mark.parametrize(
    ("change", "latest"),
    [
        ("op scontrol hold 2", 14),
        ("bob scontrol update jobid=2 starttime=now+2000", 14),
        ("root scontrol update nodename=n1 state=drain reason=x", 14),
    ],
)
def test_a_head_that_stands_aside_lets_others_pass(change: str, latest: int) -> None:
    """Held, put off, or waiting for a node that is gone: the job behind it starts at once."""
    ran = timeline(*BLOCKED, f"10 {change}", "3000 op scontrol release 2")
    assert 10 <= starts(ran)[3] < latest


def test_a_changed_time_limit_is_news_for_backfill() -> None:
    """Job 3 was too long to be over before the head begins, and no longer is."""
    long = "2 bob sbatch -N1 -t60 --wrap 'sleep 10'"
    ran = timeline(
        *BLOCKED[:2], long, "40 bob scontrol update jobid=3 timelimit=5", scheduler="backfill"
    )
    assert starts(ran)[3] == 60
    later = timeline(
        *BLOCKED[:2], long, "40 op scontrol update jobid=1 timelimit=90", scheduler="backfill"
    )
    assert starts(later)[3] == 60


@pytest.mark.parametrize("words", ["bf_max_job_start=1", "bf_max_job_user=2"])
def test_backfill_goes_on_after_a_pass_cut_short(words: str) -> None:
    """Each pass starts one of the jobs that fit in, and has another follow."""
    ran = timeline(
        *BLOCKED[:2],
        *["2 bob sbatch -N1 --exclusive -t5 --wrap 'sleep 200'"] * 2,
        scheduler="backfill",
        conf=f", SchedulerParameters: '{words}'",
    )
    assert [starts(ran)[3], starts(ran)[4]] == [30, 60]


def test_a_node_left_early_is_used_while_others_are_slow() -> None:
    """Job 1 never leaves n2, whose epilog hangs; n1 and n3 are not idle for ever."""
    ran = timeline(
        "0 bob sbatch -N3 --exclusive --wrap 'sleep 10'",
        "1 bob sbatch -w n1 --wrap 'sleep 10'",
        more="  - {when: 'job_state job=1 state=COMPLETED|COMPLETING', fault: {crash: n2}}\n",
    )
    assert starts(ran)[2] <= 71


def test_a_task_that_is_named_waits_by_itself() -> None:
    """A signal for a task that waits splits it off, and is refused; the task still starts."""
    for command in ("scancel -s USR1 1_2", "scontrol requeue 1_2"):
        ran = timeline("0 bob sbatch -a 0-3 -N3 --exclusive --wrap 'sleep 10'", f"5 bob {command}")
        assert [row.state for row in ran.result.rows] == ["COMPLETED"] * 4


def test_a_task_may_be_waited_for_by_its_own_id() -> None:
    """Job 2 is task 0 of array 1: whoever waits for it is told of its end."""
    ran = timeline(
        "0 bob sbatch -a 0-1 -N1 --wrap 'sleep 10'",
        "5 bob sbatch -d afterok:2 --wrap 'sleep 10'",
    )
    assert starts(ran)[3] in (10, 11, 12, 13)


# Reservations.

RESERVE = "scontrol create reservation ReservationName=r1 users=bob nodes=n1 starttime=now"


def test_a_blocked_partition_does_not_keep_a_reservation_closed() -> None:
    """Job 2 waits for all nodes; job 3 has n1 by its reservation."""
    ran = timeline(
        f"0 op {RESERVE} duration=30",
        "1 alice sbatch -w n2 -t5 --exclusive --wrap 'sleep 200'",
        "2 alice sbatch -w n2,n3 -N2 --exclusive -t5 --wrap 'sleep 10'",
        "10 bob sbatch --reservation=r1 -t5 --wrap 'sleep 10'",
    )
    assert starts(ran)[3] < 14
    assert starts(ran)[2] == 201


def test_a_full_reservation_blocks_nobody_else() -> None:
    """Job 2 waits for job 1 inside the reservation; job 3 has n2 and n3, job 4 stands behind."""
    ran = timeline(
        f"0 op {RESERVE} duration=30",
        "1 bob sbatch --reservation=r1 --exclusive -t5 --wrap 'sleep 100'",
        "2 bob sbatch --reservation=r1 --exclusive -t5 --wrap 'sleep 100'",
        "3 bob sbatch --reservation=r1 -t5 --wrap 'sleep 10'",
        "4 alice sbatch -t5 --wrap 'sleep 10'",
    )
    found = starts(ran)
    assert (found[2], found[3], found[4] < 8) == (101, 201, True)


def test_a_job_that_waits_for_its_reservation_is_no_head_for_backfill() -> None:
    """Job 2 waits for tomorrow's reservation; job 3 is the head, and job 4 would delay it."""
    ran = timeline(
        "0 op scontrol create reservation ReservationName=r1 users=bob nodes=n1 "
        "starttime=now+6000 duration=30",
        "1 bob sbatch --reservation=r1 -t5 --wrap 'sleep 10'",
        "2 bob sbatch -w n3 -t10 --exclusive --wrap 'sleep 590'",
        "3 bob sbatch -w n2,n3 -t10 --exclusive --wrap 'sleep 10'",
        "4 bob sbatch -w n2 -t60 --wrap 'sleep 3000'",
        scheduler="backfill",
    )
    found = starts(ran)
    assert found[3] <= 602
    assert found[4] > found[3]


def test_an_srun_is_woken_by_its_reservation() -> None:
    """It was tried when it came, and nothing else happens before its reservation begins."""
    ran = timeline(
        "0 op scontrol create reservation ReservationName=r1 users=bob nodes=n1 "
        "starttime=now+60 duration=30",
        "1 bob srun --reservation=r1 -t5 sleep 10",
    )
    assert not ran.result.stalled
    assert starts(ran) == {1: 60}


def test_maintenance_keeps_the_jobs_of_other_reservations_out() -> None:
    """r2 lies over r1 for maintenance: r1's jobs wait until it is over, r2's do not."""
    ran = timeline(
        f"0 op {RESERVE} duration=60",
        "1 op scontrol create reservation ReservationName=r2 users=alice nodes=n1 starttime=now "
        "duration=10 flags=maint,ignore_jobs,overlap",
        "2 bob sbatch --reservation=r1 -t5 --wrap 'sleep 10'",
        "3 alice sbatch --reservation=r2 -t5 --wrap 'sleep 10'",
    )
    found = starts(ran)
    assert (found[1], found[2] < 7) == (601, True)


def test_nobody_gives_way_for_nodes_that_are_reserved() -> None:
    """Job 2 would run into the reservation even without job 1, which therefore goes on."""
    ran = timeline(
        "0 bob sbatch -w n2 --exclusive -t5 --wrap 'sleep 100'",
        "1 op scontrol create reservation ReservationName=r1 users=bob nodes=n[2-3] "
        "starttime=now+400 duration=10",
        "10 bob sbatch -p top -N1 -t20 --wrap 'sleep 10'",
        conf=", PreemptType: preempt/partition_prio, PreemptMode: CANCEL",
    )
    assert ran.job(1)[0] == "COMPLETED"


# Several partitions.


def test_a_partition_that_could_never_hold_a_job_is_not_blocked_by_it() -> None:
    """Only n1 has a gpu: job 2 is in nobody's way in the top partition."""
    ran = timeline(
        "0 bob sbatch -w n1 --exclusive --wrap 'sleep 100'",
        "1 bob sbatch -p top,all --gres=gpu:1 --wrap 'sleep 10'",
        "2 bob sbatch -p top -N1 --wrap 'sleep 10'",
    )
    found = starts(ran)
    assert (found[2], found[3] < 6) == (100, True)


def test_a_job_that_starts_elsewhere_blocks_its_other_partition_no_more() -> None:
    """Job 2 blocks the top partition, has room in the other, and job 3 follows in the top one."""
    ran = timeline(
        "0 bob sbatch -w n3 --exclusive --wrap 'sleep 100'",
        "10 bob sbatch -p top,one -N1 -x n2 --exclusive --wrap 'sleep 10'",
        "10 bob sbatch -p top -w n2 --wrap 'sleep 10'",
    )
    found = starts(ran)
    assert (found[2] < 14, found[3] < 17) == (True, True)


def test_a_partition_has_its_own_least_nodes_and_default_time() -> None:
    """Whoever asks for neither has two nodes and two minutes, also of several partitions."""
    ran = timeline("0 bob sbatch -p pair --wrap 'sleep 600'")
    assert (ran.job()[0], ran.result.rows[0].nodes) == ("TIMEOUT", "n[1-2]")
    moved = timeline(
        "0 bob sbatch -H --wrap 'sleep 600'",
        "1 op scontrol update jobid=1 partition=pair",
        "2 bob scontrol release 1",
    )
    assert moved.job()[0] == "TIMEOUT"


def test_an_immediate_srun_is_not_behind_jobs_of_a_closed_partition() -> None:
    """What waits in a partition that is down cannot start, and comes before nobody."""
    ran = timeline(
        "0 root scontrol update partitionname=top state=down",
        "1 bob sbatch -p top --wrap true",
        "10 bob srun --immediate sleep 1",
    )
    assert ran.job(2)[0] == "COMPLETED"


# Records.


def test_tasks_of_an_array_do_not_share_who_waits_for_cpus() -> None:
    """The end of one task does not end the sruns that wait inside another."""
    script = "srun --exclusive -n2 sleep 20 & srun --exclusive -n2 sleep 20 & wait"
    ran = timeline(f"0 bob sbatch -a 0-1 -N1 -n2 --wrap '{script}'", "10 bob scancel 1_0")
    rows = {row.array_task_id: row for row in ran.result.rows}
    assert rows[0].state == "CANCELLED"
    assert (rows[1].state, rows[1].end_us // 1_000_000) == ("COMPLETED", 40)


def test_salloc_says_what_generic_resource_there_is_not() -> None:
    """The run goes on."""
    ran = timeline("0 bob salloc --gres=tape:1 true")
    assert ran.result.commands[0].exit == 1
    assert "Invalid generic resource" in ran.stderr()


def test_who_waits_for_a_task_of_a_held_array_is_no_stall() -> None:
    """Nor who waits for a throttled array whose running task is suspended."""
    ran = timeline(
        "0 bob sbatch -a 0-1%1 --wrap 'sleep 10'",
        "1 bob sbatch -d afterok:1 --wrap true",
        "5 op scontrol suspend 1",
    )
    assert not ran.result.stalled
