"""Holds, requeues and dependencies: what they leave behind, who waits on, and who goes on first."""

import pytest

from tests.cluster import TWO_NODES, Ran, run
from tests.entries import entries
from tests.moments import to_state

ROOM_FOR_TWO = "slurm_conf: {SelectType: select/cons_tres, SelectTypeParameters: CR_CPU}\n"


def started(ran: Ran, job_id: int) -> int:
    """Return the second in which a job became RUNNING first."""
    return ran.all("job_state", job=job_id, args_to="RUNNING")[0].time_us // 1_000_000


@pytest.mark.parametrize(("hold", "reason"), [("hold", "JobHeldAdmin"), ("uhold", "JobHeldUser")])
def test_a_job_that_was_held_as_it_ran_is_told_as_held_once_it_waits_again(
    hold: str, reason: str
) -> None:
    """Whoever held it, and while the epilog of its run goes on as well."""
    ran = run(
        "programs: {/etc/epilog: {runs: 10s}}\nslurm_conf: {Epilog: /etc/epilog}\n"
        + entries(
            "0 alice sbatch --requeue --wrap 'sleep 100'",
            f"5 root scontrol {hold} 1",
            "10 root scontrol requeue 1",
            *("15 root squeue -h -o %r", "25 root squeue -h -o %r", "30 root scancel 1"),
        )
    )
    assert [each.stdout for each in ran.result.commands[3:5]] == [f"{reason}\n"] * 2


def test_the_more_important_of_two_preempted_jobs_goes_on_first() -> None:
    """Of one that was preempted by the other, and both by a third."""
    more = ", ".join(f"{{name: p{tier}, nodes: ALL, priority_tier: {tier}}}" for tier in (2, 3))
    ran = run(
        "slurm_conf: {PreemptType: preempt/partition_prio, PreemptMode: 'SUSPEND,GANG'}\n"
        + entries(
            "0 alice sbatch -N2 --wrap 'sleep 100'",
            "10 alice sbatch -N2 -p p2 --wrap 'sleep 100'",
            "20 alice sbatch -N2 -p p3 --wrap 'sleep 10'",
        ),
        cluster=TWO_NODES.replace("true}]", f"true}}, {more}]"),
    )
    ends = {row.job_id: row.end_us // 1_000_000 for row in ran.result.rows}
    assert ends[3] < ends[2] < ends[1]


@pytest.mark.parametrize("deed", ["hold 2", "update jobid=2 starttime=now+200"])
def test_whoever_waits_behind_a_job_starts_as_soon_as_that_may_not(deed: str) -> None:
    """The head of the queue keeps the others waiting, with sched/builtin, and no longer."""
    ran = run(
        "slurm_conf: {SchedulerType: sched/builtin}\n"
        + entries(
            "0 alice sbatch -N1 --wrap 'sleep 200'",
            "10 alice sbatch -N2 --wrap true",
            "11 alice sbatch -N1 --wrap true",
            f"20 alice scontrol {deed}",
            "300 alice scancel 2",
        )
    )
    assert started(ran, 3) in range(20, 24)


def test_a_hold_does_not_change_since_when_a_job_counts_as_waiting() -> None:
    """Its age begins once, however often it is held and released."""
    ran = run(
        entries(
            "0 alice sbatch -N2 --wrap 'sleep 100'",
            "5 alice sbatch -N2 --wrap true",
            "10 alice scontrol hold 2",
            "20 alice scontrol release 2",
            "30 alice scontrol show job 2",
        )
    )
    told = ran.result.commands[4].stdout.split()
    assert "AccrueTime=2026-01-01T00:00:05" in told
    assert "EligibleTime=2026-01-01T00:00:20" in told


def test_a_suspended_job_waits_for_its_gpus() -> None:
    """They were given to another, though there are cpus left."""
    ran = run(
        ROOM_FOR_TWO
        + entries(
            "0 alice sbatch -n1 --gres=gpu:1 --wrap 'sleep 50'",
            "5 root scontrol suspend 1",
            "6 bob sbatch -n1 --gres=gpu:1 --wrap 'sleep 50'",
            "10 root scontrol resume 1",
            "70 root scontrol resume 1",
        ),
        cluster='nodes: [{name: n1, cpus: 4, gres: "gpu:1"}]\n'
        "partitions: [{name: debug, nodes: ALL, default: true}]\n"
        "users: {alice: 1001, bob: 1002}\n",
    )
    assert [each.exit for each in ran.result.commands][3:] == [1, 0]


def test_an_alternative_that_has_failed_is_no_failed_dependency() -> None:
    """As long as another may still be met."""
    ran = run(
        entries(
            "0 alice sbatch -N1 --wrap 'sleep 5; false'",
            "0 alice sbatch -N1 --wrap 'sleep 50'",
            "1 alice sbatch -d 'afterok:1?afterok:2' --kill-on-invalid-dep=yes --wrap true",
        )
    )
    assert ran.job(3)[0] == "COMPLETED"
    assert started(ran, 3) in range(50, 54)


def test_a_singleton_waits_until_its_namesake_has_left_its_nodes() -> None:
    """Its epilog has to be over as well, also for one that comes meanwhile."""
    ran = run(
        "programs: {/etc/epilog: {runs: 30s}}\nslurm_conf: {Epilog: /etc/epilog}\n"
        + entries(
            "0 alice sbatch -N1 -J one --wrap 'sleep 10'",
            "20 alice sbatch -N1 -J one -d singleton --wrap true",
        )
    )
    assert started(ran, 2) in range(40, 44)


def test_the_exit_code_of_a_step_is_the_highest_of_its_nodes() -> None:
    """Whoever reports last: the second node, long after the first has waited for it."""
    ran = run(
        "programs: {./uneven: [{runs: 2s, exit: 3, tasks: [0]}, {runs: 200s, exit: 1}]}\n"
        + entries(
            "0 alice sbatch -N2 --wrap 'srun -N2 ./uneven'", "300 alice sacct -nPo jobid,exitcode"
        ),
    )
    reports = ran.all("REQUEST_STEP_COMPLETE", phase="receive", daemon="slurmctld")
    assert [each.args["step_rc"] for each in reports] == [3 << 8, 1 << 8]  # type: ignore[index]
    assert ran.result.commands[1].stdout.split()[-1] == "1.0|3:0"


def test_who_starts_a_step_of_a_run_that_is_over_is_told_so() -> None:
    """Though the job waits to run again."""
    ran = run(
        "files:\n  job: |\n    #!/bin/bash\n    trap 'srun true' TERM\n    sleep 100 & wait\n"
        + entries(
            "0 alice sbatch --requeue job", "10 root scontrol requeue 1", "30 root scancel 1"
        ),
    )
    said = str(ran.world.disk.read("/home/alice/slurm-1.out", host="n1"))
    assert "Unable to create step for job 1: Job/step already completing or completed" in said


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_node_that_is_down_keeps_no_job_completing_after_a_restart(model: str) -> None:
    """It is over once the others have reported, as it would have been without the restart."""
    ran = run(
        "programs: {/etc/epilog: {runs: 1h}}\n"
        "slurm_conf: {Epilog: /etc/epilog, SlurmdTimeout: 60}\n"
        + entries("0 alice sbatch -N2 --no-requeue --wrap 'srun sleep 1000'")
        + "  - {at: 10s, fault: {crash: n2}}\n"
        "  - {at: 600s, fault: {crash: slurmctld, saved: true}}\n"
        "  - {at: 610s, fault: {start: slurmctld}}\n",
        model=model,
    )
    told = ran.all("REQUEST_TERMINATE_JOB", phase="send", daemon="slurmctld")
    assert [(str(each.peer), each.time_us // 1_000_000) for each in told][-1] == ("slurmd@n1", 610)
    assert not [e for e in ran.all("node_state", args_node="n2") if "COMPLETING" in to_state(e)]
    assert ran.job()[0] == "NODE_FAIL"
    assert not ran.result.stalled


def test_who_stands_behind_a_job_that_starts_elsewhere_starts_as_well() -> None:
    """Job 2 is the head of two partitions: it starts in one, and blocks the other no more."""
    ran = run(
        "slurm_conf: {SchedulerType: sched/builtin}\n"
        'nodes: [{name: "n[1-4]", cpus: 4}]\n'
        'partitions: [{name: a, nodes: "n[1-2]", default: true}, {name: b, nodes: "n[3-4]"}]\n'
        "users: {alice: 1001}\n"
        + entries(
            "0 alice sbatch -p a -N1 --wrap 'sleep 300'",
            "1 alice sbatch -p a,b -N2 --begin=now+19 --wrap 'sleep 300'",
            "2 alice sbatch -p a -N1 --begin=now+18 --wrap 'sleep 10'",
        ),
        cluster="",
    )
    assert 20 <= started(ran, 2) < 24
    assert 20 <= started(ran, 3) < 28
