"""Partitions with limits, states and tiers; preemption; reservations."""

from pathlib import Path

import pytest

from simctl.scenario.load import read_scenario
from simctl.scenario.positions import ScenarioErrors
from simctl.wire.states import Reason
from simctl.world import World
from tests.cluster import Ran, run
from tests.entries import args, entries, starts, states, wrong

CONF = "slurm_conf: {SchedulerType: sched/builtin, SelectType: select/cons_tres%s}\n"
REST = """\
nodes: [{name: "n[1-2]", cpus: 2}]
partitions:
  - {name: low, nodes: "n[1-2]", default: true%s}
  - {name: high, nodes: "n[1-2]", priority_tier: 9}
  - {name: closed, nodes: n1, root_only: true}
  - {name: physics, nodes: n1, allow_accounts: [physics]}
  - {name: others, nodes: n2, deny_accounts: physics}
users: {alice: {uid: 1001, account: physics}, bob: 1002, op: {uid: 1003, admin: operator}}
programs:
  ./saver: {runs: 100s, on_signal: {TERM: 3}}
  ./stubborn: {runs: 200s, on_signal: {TERM: ignore}}
"""
CLUSTER = CONF % "" + REST % ""


LONG = "sbatch -N2 --exclusive --wrap 'sleep 100'"


def timeline(*lines: str, conf: str = "", low: str = "", select: str = "") -> Ran:
    """Run a timeline on this cluster, with more in slurm.conf, in its low partition."""
    return run(entries(*lines), cluster=CONF % conf + REST % low)


def test_the_higher_tier_is_first_whatever_the_priorities() -> None:
    """Jobs 2 and 3 wait for job 1; job 3 came later, in a partition of a higher tier."""
    ran = timeline(
        f"0s bob {LONG}", f"1s bob {LONG}", f"2s bob {LONG.replace('-N2', '-N2 -p high')}"
    )
    assert starts(ran) == {1: 0, 2: 200, 3: 100}


def test_a_blocked_partition_keeps_its_nodes_from_lower_ones() -> None:
    """Job 2 of the high partition needs both nodes; job 3 would fit on the idle one, and waits."""
    ran = timeline(
        "0s bob sbatch -N1 --wrap 'sleep 100'",
        "1s bob sbatch -p high -N2 --exclusive --wrap 'sleep 10'",
        "2s bob sbatch -N1 --wrap 'sleep 10'",
    )
    assert starts(ran) == {1: 0, 2: 100, 3: 110}


def test_a_job_of_several_partitions_with_room_is_of_the_first() -> None:
    """Of one tier."""
    ran = timeline("0s bob sbatch -p low,others -w n2 -N1 --wrap true")
    assert ran.result.rows[0].partition == "low"


def test_of_preempted_jobs_the_highest_tier_goes_on_first() -> None:
    """Each has what it had left when it was suspended."""
    parts = "".join(
        f"{{name: {name}, nodes: n1, priority_tier: {tier}}}, "
        for tier, name in enumerate(("low", "mid", "high"), 1)
    )
    ran = run(
        entries(
            *(
                f"{at} bob sbatch -p {part} --exclusive --wrap 'sleep 100'"
                for at, part in ((0, "low"), (5, "mid"), (10, "high"))
            ),
            head="slurm_conf: {PreemptType: preempt/partition_prio, PreemptMode: 'SUSPEND,GANG'}\n",
        ),
        cluster="nodes: [{name: n1, cpus: 2}]\nusers: {bob: 1002}\n"
        f"partitions: [{parts.removesuffix(', ')}]\n",
    )
    ends = [row.end_us // 1_000_000 for row in ran.result.rows]
    assert ends == [300, 205, 110]


def test_a_job_may_name_several_partitions() -> None:
    """It starts where there is room first, and is then of that partition alone."""
    ran = timeline(
        "0s bob sbatch -p closed,others -w n2 -N1 --wrap 'sleep 10'",
        "1s alice sbatch -p physics,low -N2 --wrap 'sleep 10'",
    )
    assert [(row.partition, row.nodes) for row in ran.result.rows] == [
        ("others", "n2"),
        ("low", "n[1-2]"),
    ]


@pytest.mark.parametrize(
    ("user", "part", "status"),
    [
        *(("bob", "closed", 1), ("root", "closed", 0), ("bob", "physics", 1)),
        *(("alice", "physics", 0), ("alice", "others", 1), ("bob", "others", 0)),
        *(("bob", "nowhere", 1), ("bob", "low,nowhere", 1), ("bob", "low,physics", 0)),
    ],
)
def test_who_may_use_a_partition(user: str, part: str, status: int) -> None:
    """Root alone, some accounts, all but some accounts."""
    assert wrong(timeline(f"0s {user} sbatch -p {part} --wrap true | exit: {status}")) == []


@pytest.mark.parametrize(
    ("state", "taken", "started", "reason"),
    [
        ("down", True, False, "PartitionDown"),
        ("inactive", False, False, "PartitionInactive"),
        ("drain", False, True, ""),
    ],
)
def test_the_state_of_a_partition(state: str, taken: bool, started: bool, reason: str) -> None:
    """DOWN takes jobs and starts none, DRAIN the reverse, INACTIVE neither; UP starts them."""
    ran = timeline(
        "0s bob sbatch -N2 --exclusive --wrap 'sleep 50'",
        "1s bob sbatch --wrap 'sleep 1'",
        f"9s root scontrol update partitionname=low state={state}",
        f"10s bob sbatch --wrap 'sleep 1' | exit: {0 if taken else 1}",
        "300s root scontrol update partitionname=low state=up",
    )
    assert wrong(ran) == []
    assert (starts(ran)[2] == 50) == started
    if not taken:
        assert "Required partition not available (inactive or drain)" in ran.stderr(3)
    left = timeline(
        f"0s root scontrol update partitionname=low state={state}",
        "1s bob sbatch --wrap 'sleep 1'",
    )
    assert not left.result.stalled
    waiting = timeline(
        "0s bob sbatch -H --wrap true",
        f"1s root scontrol update partitionname=low state={state}",
        "2s op scontrol release 1",
    )
    row = waiting.result.rows[0]
    assert (row.state, row.reason) == (("COMPLETED", "None") if started else ("PENDING", reason))


def test_limits_of_a_partition_may_change() -> None:
    """A job that was too long waits no more once it is not; the reverse holds as well."""
    ran = timeline(
        "0s root scontrol update partitionname=low maxtime=10 maxnodes=1",
        "1s bob sbatch -t20 --wrap 'sleep 1'",
        "2s bob sbatch -N2 -n2 --wrap 'sleep 1'",
        "60s root scontrol update partitionname=low maxtime=30",
        "120s root scontrol update partitionname=low maxnodes=unlimited",
        "121s bob scontrol update partitionname=low maxtime=1 | exit: 1",
        "122s root scontrol update partitionname=none maxtime=1 | exit: 1",
        "123s root scontrol update partitionname=low what=1 | exit: 1",
        "124s root scontrol update partitionname=low state=odd | exit: 1",
        "125s root scontrol update partitionname=high default=yes",
        "126s bob sbatch --wrap true",
    )
    assert wrong(ran) == []
    assert starts(ran) == {1: 60, 2: 120, 3: 126}
    assert ran.result.rows[2].partition == "high"
    left = timeline("0s bob sbatch -N3 -n3 --wrap true")
    assert left.job() == ("PENDING", "0:0", "PartitionNodeLimit")


def test_lost_nodes_block_nobody() -> None:
    """A job that needs a drained node says so, and the one behind it starts."""
    ran = timeline(
        "0s root scontrol update nodename=n2 state=drain reason=x",
        "1s bob sbatch -N2 -n2 --wrap 'sleep 1'",
        "2s bob sbatch -w n2 --wrap 'sleep 1'",
        "3s bob sbatch --wrap 'sleep 1'",
        "60s root scontrol update nodename=n2 state=resume",
    )
    assert starts(ran) == {1: 60, 2: 60, 3: 4}
    kept = timeline(
        "0s root scontrol update nodename=n2 state=drain reason=x",
        "1s bob sbatch -N2 -n2 --wrap 'sleep 1'",
    )
    assert kept.job() == ("PENDING", "0:0", Reason.NODES_NOT_AVAIL)
    named = timeline(
        "0s root scontrol update nodename=n2 state=drain reason=x",
        "1s bob sbatch -w n2 --wrap 'sleep 1'",
    )
    assert named.job() == ("PENDING", "0:0", "ReqNodeNotAvail, UnavailableNodes:n2")


# Preemption.

PREEMPT = ", PreemptType: preempt/partition_prio, PreemptMode: "
HIGH = "sbatch -p high -N1 --exclusive --wrap 'sleep 10'"
TWO = ("0s bob sbatch -w n1 --wrap 'sleep 100'", "1s bob sbatch -w n2 --wrap 'sleep 100'")


def test_without_preemption_jobs_of_a_higher_tier_wait() -> None:
    """preempt/none is the default."""
    ran = timeline(*TWO, f"10s bob {HIGH}")
    assert starts(ran) == {1: 0, 2: 3, 3: 100}


def test_a_preempted_job_is_cancelled() -> None:
    """One of two gives way, of the lower priority: it ends PREEMPTED, told with its own request."""
    ran = timeline(*TWO, f"10s bob {HIGH}", conf=PREEMPT + "CANCEL")
    assert states(ran, 2) == ["PENDING", "RUNNING", "PREEMPTED|COMPLETING", "PREEMPTED"]
    assert states(ran, 1)[-1] == "COMPLETED"
    assert starts(ran)[3] == 10
    told = ran.all("REQUEST_KILL_PREEMPTED", phase="receive")
    assert [(event.job, event.node) for event in told] == [(2, "n2")]
    assert ran.last("job_state", job=2) < ran.all("job_state", job=3)[1].seq


def test_a_preempted_job_goes_back_into_the_queue() -> None:
    """REQUEUE: as scontrol requeue does; a job that may not run again is cancelled."""
    ran = timeline(*TWO, f"10s bob {HIGH}", conf=PREEMPT + "REQUEUE")
    assert states(ran, 2)[:3] == ["PENDING", "RUNNING", "PENDING|REQUEUE"]
    assert states(ran, 2)[-1] == "COMPLETED"
    assert starts(ran)[3] == 10
    assert starts(ran)[2] >= 131
    again = timeline(
        TWO[0],
        "1s bob sbatch --no-requeue -w n2 --wrap 'sleep 100'",
        f"10s bob {HIGH}",
        conf=PREEMPT + "REQUEUE",
    )
    assert states(again, 2)[-1] == "PREEMPTED"


def test_a_grace_time_is_for_putting_things_away() -> None:
    """The tasks get SIGCONT and SIGTERM at once, the script nothing; the end is a minute later."""
    grace = {"conf": PREEMPT + "CANCEL, KillWait: 5", "low": ", grace_time: 60s"}
    ran = timeline(
        "0s bob sbatch -N2 --exclusive --wrap 'srun -n1 ./saver; sleep 10'",
        f"10s bob {HIGH}",
        **grace,
    )
    assert ran.job()[:2] == ("COMPLETED", "0:0")
    assert starts(ran)[2] == 20
    signals = ran.all("REQUEST_SIGNAL_TASKS", phase="send", daemon="slurmctld")
    assert [(event.step, args(event)["signal"]) for event in signals] == [("1.0", 18), ("1.0", 15)]
    stubborn = timeline(
        "0s bob sbatch -N2 --exclusive --wrap 'srun -n1 ./stubborn'",
        f"10s bob {HIGH}",
        **grace,
    )
    ends = [
        event.time_us // 1_000_000
        for event in stubborn.all("job_state", job=1)
        if args(event)["to"] == "PREEMPTED|COMPLETING"
    ]
    assert ends == [70]
    assert starts(stubborn)[2] in (70, 75)


def test_a_job_that_runs_again_has_its_grace_time_again() -> None:
    """What was left of the one in its last run is nothing to it."""
    ran = timeline(
        "0s bob sbatch -N2 --exclusive --wrap 'srun -n1 ./stubborn'",
        f"10s bob {HIGH}",
        "20s bob scontrol requeue 1",
        f"200s bob {HIGH}",
        conf=PREEMPT + "CANCEL",
        low=", grace_time: 60s",
    )
    told = ran.all("REQUEST_SIGNAL_TASKS", phase="send", daemon="slurmctld")
    assert [event.time_us // 1_000_000 for event in told] == [10, 10, 200, 200]
    (end,) = ran.all("job_state", job=1, args_to="PREEMPTED|COMPLETING")
    assert end.time_us // 1_000_000 == 260


def test_nobody_gives_way_in_vain() -> None:
    """The job needs more than preemption could give it, so all go on; nor to an equal tier."""
    ran = timeline(
        *TWO,
        "10s bob sbatch -p high -N2 -n5 --wrap 'sleep 10'",
        "11s bob sbatch -N1 --exclusive --wrap 'sleep 10'",
        conf=PREEMPT + "CANCEL",
    )
    assert [row.state for row in ran.result.rows] == [
        *("COMPLETED", "COMPLETED", "PENDING", "COMPLETED")
    ]


def test_only_as_many_as_needed_give_way() -> None:
    """Both jobs are of lower priority than the third that is needed; only that one ends."""
    ran = timeline(
        "0s bob sbatch -w n1 -n2 --wrap 'sleep 100'",
        "1s bob sbatch -w n2 -n1 --wrap 'sleep 100'",
        "2s bob sbatch -w n2 -n1 --wrap 'sleep 100'",
        "10s bob sbatch -p high -w n1 --wrap 'sleep 10'",
        conf=PREEMPT + "CANCEL",
    )
    assert [row.state for row in ran.result.rows] == [
        *("PREEMPTED", "COMPLETED", "COMPLETED", "COMPLETED")
    ]


def test_a_partition_may_have_a_mode_of_its_own() -> None:
    """OFF protects its jobs."""
    ran = timeline(*TWO, f"10s bob {HIGH}", conf=PREEMPT + "CANCEL", low=", preempt_mode: OFF")
    assert starts(ran)[3] == 100


def test_an_srun_preempts_as_well() -> None:
    """It waits in line until the job is gone."""
    ran = timeline(*TWO, "10s bob srun -p high --exclusive sleep 1", conf=PREEMPT + "CANCEL")
    assert states(ran, 2)[-1] == "PREEMPTED"
    assert "job 3 has been allocated resources" in ran.stderr(2)


# Reservations.

RESERVE = "root scontrol create reservation ReservationName=r1 starttime=now+60 duration=10"


def test_reserved_nodes_are_for_some_and_for_a_time() -> None:
    """Job 2 would run into it and takes the other node; job 3 waits for it; job 4 until after."""
    ran = timeline(
        f"0s {RESERVE} users=bob nodes=n1 | stdout: 'Reservation created: r1'",
        "1s alice sbatch -t1 --exclusive --wrap 'sleep 50'",
        "2s alice sbatch -t5 -N1 --wrap 'sleep 5'",
        "3s bob sbatch -t5 --reservation=r1 --wrap 'sleep 5'",
        "4s alice sbatch -t5 -w n1 --wrap 'sleep 5'",
        "5s alice sbatch --reservation=r1 --wrap true | exit: 1, stderr: Access denied",
        "6s alice sbatch --reservation=r2 --wrap true | exit: 1, stderr: is invalid",
    )
    assert wrong(ran) == []
    rows = {row.job_id: (row.nodes, row.start_us // 1_000_000) for row in ran.result.rows}
    assert rows == {1: ("n2", 1), 2: ("n2", 51), 3: ("n1", 60), 4: ("n1", 660)}


def test_a_job_whose_reservation_is_over_runs_once_it_is_released() -> None:
    """It asks for none any more."""
    ran = timeline(
        f"0s {RESERVE} users=bob nodes=n1",
        "1s bob sbatch -t20 --reservation=r1 --wrap 'sleep 5'",
        "900s bob scontrol release 1",
        "901s bob scontrol show job 1",
    )
    assert starts(ran) == {1: 900}
    assert "Reservation=" not in ran.result.commands[-1].stdout


def test_a_job_that_waits_for_its_reservation_says_so() -> None:
    """Reason Reservation; one too long for it never starts, and is held when it is over."""
    ran = timeline(
        f"0s {RESERVE} users=bob nodes=n1",
        "1s bob sbatch -t20 --reservation=r1 --wrap 'sleep 5'",
        "700s root scontrol create reservation ReservationName=r1 starttime=now duration=1 "
        "users=bob nodes=n1",
        "701s bob sbatch -t1 --wrap 'sleep 5'",
    )
    assert ran.job() == ("PENDING", "0:0", "ReservationDeleted")
    text = (
        "timeline:\n"
        f"  - {{at: 0s, run: {RESERVE.removeprefix('root ') + ' users=bob nodes=n1'!r}}}\n"
        "  - {at: 1s, as: bob, run: 'sbatch -t5 --reservation=r1 --wrap true'}\n"
    )
    world = World(read_scenario(CLUSTER + text, file="s.yaml"), until_us=30_000_000)
    assert [(row.state, row.reason) for row in world.run().rows] == [("PENDING", "Reservation")]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("duration=10 users=bob nodes=n1", "A start time must be given"),
        ("starttime=now users=bob nodes=n1", "An end time or duration must be given"),
        ("starttime=now duration=10 nodes=n1", "Either Users/Groups and/or Accounts"),
        (
            "starttime=now duration=10 users=bob",
            "scontrol: error: CoreCnt, Nodes, NodeCnt, TRES or Watts must",
        ),
        ("starttime=now duration=10 users=eve nodes=n1", "Invalid user id"),
        ("starttime=now duration=10 users=bob nodes=n9", "Invalid node name specified"),
        ("starttime=odd duration=10 users=bob nodes=n1", "Invalid start time odd"),
        ("starttime=now duration=odd users=bob nodes=n1", "Invalid duration odd"),
        ("starttime=now endtime=now users=bob nodes=n1", "time"),
        ("starttime=now duration=10 users=bob nodes=n1 flags=ODD", "flag ODD is not simulated"),
        ("starttime=now duration=10 users=bob nodes=n1 corecnt=2", "corecnt= is known to Slurm"),
        ("starttime=now duration=10 users=bob nodes=n2", "Requested nodes are busy"),
        ("starttime=now+30 duration=10 users=bob nodes=ALL", "reservation"),
    ],
)
def test_what_is_no_reservation_is_refused(words: str, text: str) -> None:
    """In scontrol or in the controller; nothing is created."""
    ran = timeline(
        f"0s {RESERVE} users=bob nodes=n1",
        "1s alice sbatch -w n2 --wrap 'sleep 9'",
        f"2s root scontrol create reservation {words} | exit: 1",
    )
    assert wrong(ran) == []
    assert text in ran.stderr(2)
    assert list(ran.world.ctld.reservations) in (["r1"], [])


def test_reservations_are_for_operators_and_deleted_when_nobody_needs_them() -> None:
    """A user may do neither; one that a job waits for stays; names are made where there is none."""
    ran = timeline(
        f"0s {RESERVE.replace('root', 'bob', 1)} users=bob nodes=n1 | exit: 1",
        "1s op scontrol create reservation starttime=now+60 duration=10 users=bob nodes=n1 "
        "| stdout: 'Reservation created: bob_1'",
        "2s bob sbatch --reservation=bob_1 -t1 --wrap true",
        "3s op scontrol delete reservation bob_1 | exit: 1",
        "4s bob scancel 1",
        "5s bob scontrol delete reservation bob_1 | exit: 1",
        "6s op scontrol delete ReservationName=bob_1",
        "7s op scontrol delete ReservationName=bob_1 | exit: 1",
        "8s op scontrol create reservation starttime=now duration=10 accounts=physics "
        "nodes=ALL flags=maint,ignore_jobs | stdout: physics_2",
        "9s alice sbatch --reservation=physics_2 -t1 --wrap true",
    )
    assert wrong(ran) == []
    assert starts(ran)[2] == 9


# Preemption by suspension.

SUSPEND = PREEMPT + "'SUSPEND,GANG'"


def test_a_preempted_job_may_be_suspended_and_goes_on() -> None:
    """The other starts at once in its place; the job runs for its 100 s, 10 s later."""
    ran = timeline(*TWO, f"10s bob {HIGH}", conf=SUSPEND)
    assert states(ran, 2) == [
        *("PENDING", "RUNNING", "SUSPENDED", "RUNNING", "COMPLETED|COMPLETING", "COMPLETED")
    ]
    assert starts(ran)[3] == 10
    row = next(row for row in ran.result.rows if row.job_id == 2)
    assert row.end_us // 1_000_000 == 3 + 100 + 10
    assert [event.args for event in ran.all("REQUEST_SUSPEND_INT", phase="receive", job=2)] == [
        {"op": 0},
        {"op": 1},
    ]


@pytest.mark.parametrize("answer", ["may", "may not"])
def test_the_switch_may_keep_a_job_from_being_suspended(tmp_path: Path, answer: str) -> None:
    """It is asked once a step before anything is given back; where it refuses, the other waits."""
    (tmp_path / "asked.py").write_text(
        "from simctl.plugin import *\n"
        "class Asked(SwitchPlugin):\n"
        "    plugin_type = 'switch/asked'\n"
        "    plugin_name = 'is asked before a job is suspended'\n"
        "    def switch_p_job_suspend_test(self, switch_job):\n"
        f"        {'return 0' if answer == 'may' else 'raise SlurmError(22)'}\n"
    )
    ran = run(
        'plugins: ["./asked.py:Asked"]\n'
        "timeline:\n"
        "  - {at: 0s, as: bob, run: srun -N2 --exclusive sleep 50}\n"
        "  - {at: 10s, as: bob, run: sbatch -p high -N1 --exclusive --wrap 'sleep 10'}\n",
        cluster=CONF % f"{SUSPEND}, SwitchType: switch/asked" + REST % "",
        model="modern",
        folder=tmp_path,
    )
    asked = [
        event.seq
        for event in ran.all("switch_p_job_suspend_test", job=1)
        if event.time_us < 20_000_000
    ]
    if answer == "may":
        assert len(asked) == 1
        assert asked[0] < ran.one("job_state", job=1, args_to="SUSPENDED").seq
        assert starts(ran)[2] == 10
    else:
        assert asked
        assert "SUSPENDED" not in states(ran, 1)
        assert starts(ran)[2] >= 50


def test_nodes_of_a_preempted_job_are_kept_for_it() -> None:
    """A job of its own tier may not have the node that is left idle, one of a higher may."""
    ran = timeline(
        "0s bob sbatch -N2 --exclusive --wrap 'sleep 100'",
        "10s bob sbatch -p high -w n1 --wrap 'sleep 50'",
        "11s bob sbatch -w n2 --wrap 'sleep 5'",
        "12s bob sbatch -p high -w n2 --wrap 'sleep 20'",
        conf=SUSPEND,
    )
    assert starts(ran)[2] == 10
    assert starts(ran)[4] == 13
    assert states(ran, 1)[2:4] == ["SUSPENDED", "RUNNING"]
    # It goes on at 60 s and ends at 150 s; only then the last one starts.
    assert starts(ran)[3] == 150


def test_who_suspends_a_preempted_job_keeps_it_suspended() -> None:
    """It does not go on by itself; resumed by hand it does."""
    ran = timeline(
        *TWO,
        f"10s bob {HIGH}",
        "12s root scontrol suspend 2",
        "100s root scontrol resume 2",
        conf=SUSPEND,
    )
    changes = [
        event.time_us // 1_000_000 for event in ran.all("job_state", job=2, args_to="RUNNING")
    ]
    assert changes == [3, 100]


def test_a_preempted_job_can_be_cancelled_and_requeued() -> None:
    """As any suspended job."""
    for command, end in (("scancel 2", "CANCELLED"), ("scontrol requeue 2", "COMPLETED")):
        ran = timeline(*TWO, f"10s bob {HIGH}", f"12s root {command}", conf=SUSPEND)
        assert states(ran, 2)[-1] == end
        assert ran.world.ctld.preempted == {}


def test_suspend_needs_gang() -> None:
    """As Slurm demands of slurm.conf; a partition's own mode stands alone."""
    with pytest.raises(ScenarioErrors, match="needs GANG"):
        timeline("0s bob sbatch --wrap true", conf=PREEMPT + "SUSPEND")
    ran = timeline(*TWO, f"10s bob {HIGH}", conf=PREEMPT + "CANCEL", low=", preempt_mode: SUSPEND")
    assert "SUSPENDED" in states(ran, 2)


def test_who_is_over_is_not_requeued_into_a_partition_that_is_gone() -> None:
    """A partition may be deleted once its jobs are over; of two, one is enough."""
    world = World(
        read_scenario(
            "nodes: [{name: n1}]\n"
            "partitions: [{name: a, nodes: n1, default: true}, {name: b, nodes: n1}]\n"
            "users: {alice: 1001}\n"
            "timeline:\n"
            "  - {at: 0s, as: alice, run: sbatch --wrap true}\n"
            "  - {at: 1s, as: alice, run: 'sbatch -p a,b --wrap true'}\n"
            "  - {at: 20s, as: root, run: scontrol delete partition=a}\n"
            "  - at: 21s\n"
            "    as: root\n"
            "    run: scontrol requeue 1\n"
            "    expect: ESLURM_INVALID_PARTITION_NAME\n"
            "  - {at: 22s, as: root, run: scontrol requeuehold 2}\n",
            file="s.yaml",
        )
    )
    result = world.run()
    assert [each.detail for each in result.expectations if not each.held] == []
    assert [row.state for row in result.rows] == ["COMPLETED", "PENDING"]
