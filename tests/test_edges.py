"""Limits at their edges: one below, at the limit, and one above; and what nearly is something."""

import pytest

from tests.cluster import Ran, run


def timeline(*lines: str, head: str = "") -> str:
    """Return a scenario of lines ``SECONDS WHO COMMAND``."""
    entries = []
    for line in lines:
        at, who, command = line.split(" ", 2)
        entries.append(f'  - {{at: {at}s, as: {who}, run: "{command}"}}\n')
    return f"{head}timeline:\n{''.join(entries)}"


def exits(ran: Ran) -> list[int]:
    """Return the exit codes of the commands."""
    return [each.exit for each in ran.result.commands]


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_slurmctld_keeps_no_more_jobs_than_maxjobcount(most: int) -> None:
    """Three jobs are submitted, each while those before it are still known."""
    three = [f"{at} alice sbatch --wrap 'sleep 5'" for at in range(3)]
    ran = run(timeline(*three, head=f"slurm_conf: {{MaxJobCount: {most}}}\n"))
    taken = min(most, 3)
    assert exits(ran) == [0] * taken + [1] * (3 - taken)
    assert {each.errno for each in ran.result.commands[taken:]} <= {"EAGAIN"}
    assert len(ran.result.rows) == taken


RESERVED_2_TO_4_MINUTES = (
    "0 root scontrol create reservation reservationname=a starttime=now+2minutes duration=2 "
    "users=bob nodes=n1"
)


@pytest.mark.parametrize(
    ("from_s", "minutes", "free"),
    [(59, 1, True), (60, 1, True), (61, 1, False), (239, 1, False), (240, 1, True), (241, 1, True)],
)
def test_a_reservation_may_begin_when_another_ends(from_s: int, minutes: int, free: bool) -> None:
    """And end when another begins: only what lies over it for a second or more is refused."""
    ran = run(
        timeline(
            RESERVED_2_TO_4_MINUTES,
            f"0 root scontrol create reservation reservationname=b starttime=now+{from_s} "
            f"duration={minutes} users=bob nodes=n1",
        )
    )
    assert exits(ran) == [0, 0 if free else 1]


@pytest.mark.parametrize(
    ("at_s", "minutes", "starts_at_s"),
    [(59, 1, 59), (60, 1, 60), (61, 1, 240), (59, 2, 240), (239, 1, 240), (240, 1, 240)],
)
def test_a_job_may_end_when_a_reservation_begins(at_s: int, minutes: int, starts_at_s: int) -> None:
    """Its time limit must not reach into it; and it may start in the moment in which one ends."""
    ran = run(
        timeline(
            RESERVED_2_TO_4_MINUTES,
            f"0 alice sbatch -w n1 --begin=now+{at_s} -t{minutes} --wrap 'sleep 3'",
        )
    )
    (started,) = ran.all("job_state", args_to="RUNNING")
    assert starts_at_s <= started.time_us / 1e6 < starts_at_s + 1


def test_a_job_is_said_to_start_in_the_moment_in_which_a_reservation_ends() -> None:
    """While that still lies ahead."""
    ran = run(
        timeline(RESERVED_2_TO_4_MINUTES, "70 alice sbatch --test-only -w n1 -t5 --wrap 'sleep 3'")
    )
    assert "to start at 2026-01-01T00:04:00 " in ran.stderr(1)


@pytest.mark.parametrize(("minutes", "runs"), [(1, True), (2, True), (3, False)])
def test_a_job_in_a_reservation_may_last_as_long_as_that(minutes: int, runs: bool) -> None:
    """And no longer."""
    ran = run(
        timeline(
            RESERVED_2_TO_4_MINUTES,
            f"1 bob sbatch --reservation=a -t{minutes} --wrap 'sleep 3'",
            "300 root scancel 1",
        )
    )
    assert bool(ran.all("job_state", args_to="RUNNING")) is runs


@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
def test_a_partition_gives_as_many_nodes_as_its_limits_say(nodes: int) -> None:
    """Two or three: who asks for fewer or more waits."""
    ran = run(
        timeline(f"0 alice sbatch -N{nodes} --wrap 'sleep 3'", "9 root scancel 1"),
        cluster='nodes: [{name: "n[1-4]", cpus: 4}]\nusers: {alice: 1001}\npartitions: '
        '[{name: debug, nodes: "n[1-4]", default: true, min_nodes: 2, max_nodes: 3}]\n',
    )
    waited = "CANCELLED", "0:0", "PartitionNodeLimit"
    assert ran.job() == (("COMPLETED", "0:0", "None") if nodes in (2, 3) else waited)


@pytest.mark.parametrize(("least", "given"), [(1, 1), (2, 2), (3, 3)])
def test_who_takes_some_nodes_gets_at_least_what_the_partition_gives(
    least: int, given: int
) -> None:
    """One to three nodes are asked for."""
    ran = run(
        timeline("0 alice sbatch -N1-3 --wrap 'sleep 3'"),
        cluster='nodes: [{name: "n[1-4]", cpus: 4}]\nusers: {alice: 1001}\npartitions: '
        f'[{{name: debug, nodes: "n[1-4]", default: true, min_nodes: {least}}}]\n',
    )
    assert [each.num_nodes for each in ran.result.rows] == [given]


@pytest.mark.parametrize("nodes", [3, 4, 5])
def test_a_job_may_have_all_nodes_of_a_partition(nodes: int) -> None:
    """And waits for ever if it wants one more."""
    ran = run(
        timeline(f"0 alice sbatch -N{nodes} --wrap 'sleep 3'", "9 root scancel 1"),
        cluster='nodes: [{name: "n[1-4]", cpus: 4}]\nusers: {alice: 1001}\n'
        'partitions: [{name: debug, nodes: "n[1-4]", default: true}]\n',
    )
    assert ran.job()[2] == ("None" if nodes <= 4 else "PartitionNodeLimit")
    assert bool(ran.all("job_state", args_to="RUNNING")) is (nodes <= 4)


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_what_ran_before_a_suspension_leaves_out_those_before_it(model: str) -> None:
    """SecsPreSuspend and RunTime count what the job ran; its next run counts anew."""
    ran = run(
        timeline(
            "0 alice sbatch --wrap 'sleep 100'",
            "10 root scontrol suspend 1",
            "20 root scontrol resume 1",
            "35 root scontrol suspend 1",
            "36 root scontrol show job 1",
            "40 root scontrol requeue 1",
            "190 root scontrol show job 1",
            "200 root scontrol suspend 1",
            "201 root scontrol show job 1",
            "202 root scontrol resume 1",
        ),
        model=model,
    )
    first, before, second = (each.stdout for each in ran.result.commands if "show" in each.command)
    assert "SecsPreSuspend=25 " in first
    assert "RunTime=00:00:25 " in first
    assert "SecsPreSuspend=0 " in before
    began_us = [each.time_us for each in ran.all("job_state", args_to="RUNNING")][2]
    assert f"SecsPreSuspend={(200_000_000 - began_us) // 1_000_000} " in second
    assert f"RunTime=00:00:{201 - began_us // 1_000_000 - 1} " in second


def test_a_step_that_was_never_made_is_not_over() -> None:
    """A step that is over is told apart from one that has never been."""
    steps = ("1.0", "1.1", "1.2", "2.0")
    ran = run(
        timeline(
            "0 alice sbatch --wrap 'srun sleep 5; sleep 60'",
            "0 alice sbatch --wrap 'sleep 60'",
            *(f"20 alice scancel {step}" for step in steps),
        )
    )
    over, *others = ran.result.commands[2:]
    assert over.exit != others[0].exit
    assert "Invalid job id specified" not in over.stderr
    assert all("Invalid job id specified" in each.stderr for each in others)


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_what_is_left_in_a_step_is_killed_before_the_switch_hears_of_its_end(model: str) -> None:
    """A task ends and leaves a program behind: postfini comes once nothing of the step runs."""
    ran = run(
        'files: {/home/alice/left.sh: "#!/bin/sh\\nsleep 100 &\\nexit 0\\n"}\n'
        "slurm_conf: {SwitchType: switch/elan}\n"
        + timeline("0 alice srun -N2 /home/alice/left.sh"),
        model=model,
    )
    for node in ("n1", "n2"):
        ends = ran.all("exit", daemon="task", node=node)
        assert len(ends) == 2
        assert max(each.seq for each in ends) < ran.first("switch_p_job_postfini", node=node)


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_message_for_an_earlier_run_of_a_job_is_not_sent_in_a_later_one(model: str) -> None:
    """The signal could not get to the first run; by the time it could the second is elsewhere."""
    ran = run(
        timeline(
            "0 alice sbatch --wrap 'sleep 500'",
            "11 alice scancel -b -s USR1 1",
            "20 root scontrol update nodename=n1 state=down reason=x",
        )
        + "  - {at: 10s, fault: {cut: [slurmctld, n1], for: 249s}}\n",
        model=model,
    )
    assert ran.job()[0] == "COMPLETED"
    assert [each.nodes for each in ran.result.rows] == ["n2"]
    sent = ran.all("REQUEST_SIGNAL_TASKS", phase="send", daemon="slurmctld")
    assert [each.time_us // 1_000_000 for each in sent] == [11]


@pytest.mark.parametrize("reboots", [True, False])
@pytest.mark.parametrize("model", ["guide", "modern"])
def test_what_could_not_be_sent_is_void_once_the_node_has_rebooted(
    model: str, reboots: bool
) -> None:
    """A job that outlives a node of its own: the signal was for what ran there before."""
    ran = run(
        "programs: {./long: {runs: 3m, on_signal: {USR2: ignore}}}\n"
        + timeline(
            "0 alice sbatch -N2 --no-kill --wrap 'srun --no-kill ./long'",
            "11 alice scancel -s USR2 1.0",
        )
        + "  - {at: 10s, fault: {crash: slurmd@n2}}\n"
        + ("  - {at: 40s, fault: {crash: n2}}\n" if reboots else "")
        + f"  - {{at: 50s, fault: {{start: {'n2' if reboots else 'slurmd@n2'}}}}}\n",
        model=model,
    )
    assert ran.job()[0] == "COMPLETED"
    heard = ran.all("REQUEST_SIGNAL_TASKS", phase="receive", node="n2", daemon="slurmd")
    assert bool(heard) is not reboots


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_job_is_not_resumed_onto_a_node_that_another_has_yet_to_leave(model: str) -> None:
    """Its node counts as taken until the epilog of the other is reported."""
    ran = run(
        "slurm_conf: {Epilog: /etc/epilog}\nprograms: {/etc/epilog: {runs: 20s}}\n"
        + timeline(
            "0 alice sbatch -w n1 --wrap 'sleep 100'",
            "5 root scontrol suspend 1",
            "6 bob sbatch -w n1 --wrap 'sleep 4'",
            "20 root scontrol resume 1",
            "40 root scontrol resume 1",
        ),
        model=model,
    )
    assert exits(ran)[-2:] == [1, 0]
    assert "busy" in ran.stderr(3)
    assert ran.job(1)[0] == "COMPLETED"


@pytest.mark.parametrize("waiting", [7, 8, 9])
def test_no_more_than_eight_sruns_are_woken_when_a_step_ends(waiting: int) -> None:
    """Those that wait longest; nobody knows yet whom the cpus suit."""
    more = " ".join(["srun -n4 --exclusive sleep 1 &"] * waiting)
    ran = run(
        timeline(f"0 alice sbatch -N1 -n4 --wrap 'srun -n4 --exclusive sleep 20 & {more} wait'")
    )
    sent = [each.time_us for each in ran.all("SRUN_STEP_SIGNAL", phase="send")]
    assert sent.count(sent[0]) == min(waiting, 8)


def test_of_two_that_started_at_once_the_later_gives_way() -> None:
    """Where the youngest gives way, and the two are as old."""
    ran = run(
        "slurm_conf: {PreemptType: preempt/partition_prio, PreemptMode: REQUEUE, "
        "SchedulerParameters: preempt_youngest_first}\n"
        + timeline(
            "0 alice sbatch -N1 --begin=now+5 --wrap 'sleep 50'",
            "0 alice sbatch -N1 --begin=now+5 --wrap 'sleep 50'",
            "20 bob sbatch -p urgent -N1 --wrap 'sleep 5'",
        ),
        cluster='nodes: [{name: "n[1-2]", cpus: 4}]\nusers: {alice: 1001, bob: 1002}\n'
        'partitions: [{name: debug, nodes: "n[1-2]", default: true}, '
        '{name: urgent, nodes: "n[1-2]", priority_tier: 10}]\n',
    )
    assert {row.job_id: row.restarts for row in ran.result.rows} == {1: 0, 2: 1, 3: 0}


@pytest.mark.parametrize("other_mb", [499, 500, 501])
def test_a_suspended_job_takes_the_last_memory_of_its_node_again(other_mb: int) -> None:
    """And not more than there is: another job has the rest meanwhile."""
    ran = run(
        "slurm_conf: {SelectType: select/cons_tres, SelectTypeParameters: CR_CPU_Memory}\n"
        + timeline(
            "0 alice sbatch -n1 --mem=500 --wrap 'sleep 20'",
            "5 root scontrol suspend 1",
            f"6 bob sbatch -n1 --mem={other_mb} --wrap 'sleep 100'",
            "10 root scontrol resume 1",
            "150 root scontrol resume 1",
        ),
        cluster="nodes: [{name: n1, cpus: 4, memory_mb: 1000}]\nusers: {alice: 1001, bob: 1002}\n"
        "partitions: [{name: debug, nodes: n1, default: true}]\n",
    )
    assert exits(ran)[3:] == ([0, 1] if other_mb <= 500 else [1, 0])


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_script_that_was_lost_while_its_job_was_suspended_is_missed(model: str) -> None:
    """Its node lists what it runs when another slurmd registers."""
    ran = run(
        timeline("0 alice sbatch --no-requeue --wrap 'sleep 100'", "5 root scontrol suspend 1")
        + "  - {at: 20s, fault: {crash: slurmd@n1}}\n"
        "  - {at: 21s, fault: {crash: stepd 1.batch@n1}}\n"
        "  - {at: 60s, fault: {start: slurmd@n1}}\n",
        model=model,
    )
    assert len(ran.all("batch_missing", args_node="n1")) == 1
    assert ran.job()[0] == "NODE_FAIL"


@pytest.mark.parametrize(("kill_wait", "waits_s"), [(1, 5), (4, 5), (5, 5), (6, 6)])
def test_slurmd_waits_five_seconds_at_least_before_it_kills(kill_wait: int, waits_s: int) -> None:
    """KillWait counts from there on."""
    ran = run(
        f"slurm_conf: {{KillWait: {kill_wait}}}\n"
        "programs: {./stubborn: {runs: 3m, on_signal: {TERM: ignore}}}\n"
        + timeline("0 alice srun -w n1 ./stubborn", "10 alice scancel 1")
    )
    (told,) = ran.all("REQUEST_TERMINATE_JOB", phase="receive")
    (gone,) = ran.all("MESSAGE_EPILOG_COMPLETE", phase="send")
    assert (gone.time_us - told.time_us) // 1_000_000 == waits_s
