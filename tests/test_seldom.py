"""What is seldom seen: what comes between two other things, comes again, or comes too late."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from simctl.ctld.nodes.leftovers import belongs
from simctl.ctld.state.records import JobRecord
from simctl.ctld.steps import step_queue
from simctl.nodes.prologs import Prologs
from simctl.wire import states
from tests.cluster import run
from tests.entries import entries, exits
from tests.test_edges import conf, seconds


def test_a_job_that_has_run_again_is_kept_for_minjobage_from_its_last_end() -> None:
    """When it would have been forgotten after its first run it is over, and young."""
    ran = run(
        entries(
            "0 alice sbatch --wrap 'sleep 20'",
            "180 root scontrol requeue 1",
            "400 alice scontrol show job 1",
            head=conf(MinJobAge=300),
        )
    )
    first, again = seconds(ran, "job_state", args_to="COMPLETED")
    assert first < 30
    assert 300 < again < 360
    assert ran.result.commands[2].exit == 0
    assert seconds(ran, "slurm_ckpt_free_job") == [-(-(again + 300) // 60) * 60]


def test_a_job_accrues_age_from_when_it_was_first_eligible() -> None:
    """A hold in between changes when it was eligible last."""
    ran = run(
        entries(
            "0 alice sbatch -N2 --exclusive --wrap 'sleep 100'",
            "1 alice sbatch --wrap true",
            "10 alice scontrol hold 2",
            "20 alice scontrol release 2",
            "30 alice scontrol show job 2",
        )
    )
    shown = ran.result.commands[-1].stdout
    assert "EligibleTime=2026-01-01T00:00:20" in shown
    assert "AccrueTime=2026-01-01T00:00:01" in shown


def test_the_tasks_of_an_array_that_wait_stand_behind_those_that_were_split_off() -> None:
    """Where jobs are listed; and before whoever was submitted later."""
    ran = run(
        entries(
            "0 alice sbatch --array=0-3%2 --wrap 'sleep 100'",
            "5 alice sbatch --wrap 'sleep 100'",
            "10 alice scontrol show job",
        )
    )
    words = ran.result.commands[-1].stdout.split()
    assert [each for each in words if each.startswith("JobId=")] == [
        f"JobId={job}" for job in (2, 3, 1, 4)
    ]


def test_no_srun_is_woken_while_its_job_is_suspended() -> None:
    """It could only be told to wait on: a step ends before its tasks are stopped."""
    ran = run(
        "programs: {./heedless: {runs: 11s, on_signal: {TSTP: ignore}}}\n"
        + entries(
            "0 alice sbatch -N1 -n4 --wrap 'srun -n4 --exclusive ./heedless & sleep 1; "
            "srun -n4 --exclusive sleep 5 & wait'",
            "10 root scontrol suspend 1",
            "40 root scontrol resume 1",
        )
    )
    assert seconds(ran, "step_state", step="1.0", args_to="COMPLETED") == [11]
    assert not [at for at in seconds(ran, "SRUN_STEP_SIGNAL", phase="send") if at < 40]
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize(
    ("state", "run_of_node", "nodes", "completing", "right"),
    [
        (states.RUNNING, 1, ["n1", "n2"], (), True),
        (states.RUNNING, 0, ["n1", "n2"], (), False),
        (states.RUNNING, 2, ["n1", "n2"], (), False),
        (states.RUNNING, 1, ["n2"], (), False),
        (states.PENDING, 1, ["n1"], (), False),
        (states.PENDING, 1, [], ("n1",), True),
        (states.PENDING, 0, [], ("n1",), False),
        (states.DONE[states.JobBase.COMPLETED], 1, ["n1"], (), False),
        (states.DONE[states.JobBase.COMPLETED], 1, ["n1"], ("n1",), True),
    ],
)
def test_a_node_has_a_right_to_the_run_that_is_there_now_and_to_no_other(
    state: Any, run_of_node: int, nodes: list[str], completing: tuple[str, ...], right: bool
) -> None:
    """Of a job whose second run is the one that counts; while it ends, where it has yet to."""
    there = {name: SimpleNamespace(name=name) for name in ("n1", "n2")}
    job = SimpleNamespace(
        restart_cnt=1,
        state=state,
        nodes=[there[name] for name in nodes],
        completing_nodes=dict.fromkeys(completing),
    )
    assert belongs(cast("Any", job), cast("Any", there["n1"]), run_of_node) is right


def test_a_prolog_is_under_way_until_the_launches_that_wait_for_it_are_made() -> None:
    """Its end may be known before they are: the job is starting all the same."""
    site: Any = SimpleNamespace(
        conf=SimpleNamespace(prolog="/p"), trace=SimpleNamespace(join=lambda *_: None)
    )
    slurmd: Any = SimpleNamespace(cause=0)
    waiting = Prologs(site, slurmd, cast("Any", None), {(1, 0): 0})
    assert not waiting.under_way((1, 0))
    made = []

    async def launch() -> None:
        made.append(1)

    waiting._prologs[1, 0].waiting.append((launch, 0))
    assert waiting.under_way((1, 0))
    with pytest.raises(StopIteration):
        waiting.go_on((1, 0)).send(None)
    assert made
    assert not waiting.under_way((1, 0))


def test_a_srun_that_asks_again_for_its_step_keeps_its_place() -> None:
    """Who waits longest is woken first, however often it has asked in vain."""
    job: Any = _Job({})
    sruns: list[Any] = ["first", "second", "third"]
    for now_us, srun in enumerate([*sruns, sruns[0], sruns[1]]):
        step_queue.wait(cast("Any", SimpleNamespace(now_us=now_us)), job, srun)
    assert list(job.step_waiters) == sruns


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_what_ran_before_a_suspension_leaves_out_those_before_it(model: str) -> None:
    """SecsPreSuspend and RunTime count what the job ran; its next run counts anew."""
    ran = run(
        entries(
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
        entries(
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
        "slurm_conf: {SwitchType: switch/elan}\n" + entries("0 alice srun -N2 /home/alice/left.sh"),
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
        entries(
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
        + entries(
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
        + entries(
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


def test_of_two_that_started_at_once_the_later_gives_way() -> None:
    """Where the youngest gives way, and the two are as old."""
    ran = run(
        "slurm_conf: {PreemptType: preempt/partition_prio, PreemptMode: REQUEUE, "
        "SchedulerParameters: preempt_youngest_first}\n"
        + entries(
            "0 alice sbatch -N1 --begin=now+5 --wrap 'sleep 50'",
            "0 alice sbatch -N1 --begin=now+5 --wrap 'sleep 50'",
            "20 bob sbatch -p urgent -N1 --wrap 'sleep 5'",
        ),
        cluster='nodes: [{name: "n[1-2]", cpus: 4}]\nusers: {alice: 1001, bob: 1002}\n'
        'partitions: [{name: debug, nodes: "n[1-2]", default: true}, '
        '{name: urgent, nodes: "n[1-2]", priority_tier: 10}]\n',
    )
    assert {row.job_id: row.restarts for row in ran.result.rows} == {1: 0, 2: 1, 3: 0}


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_script_that_was_lost_while_its_job_was_suspended_is_missed(model: str) -> None:
    """Its node lists what it runs when another slurmd registers."""
    ran = run(
        entries("0 alice sbatch --no-requeue --wrap 'sleep 100'", "5 root scontrol suspend 1")
        + "  - {at: 20s, fault: {crash: slurmd@n1}}\n"
        "  - {at: 21s, fault: {crash: stepd 1.batch@n1}}\n"
        "  - {at: 60s, fault: {start: slurmd@n1}}\n",
        model=model,
    )
    assert len(ran.all("batch_missing", args_node="n1")) == 1
    assert ran.job()[0] == "NODE_FAIL"


@pytest.mark.parametrize(("restart_s", "missed_s"), [(5, 2000), (14, 2000), (15, 20)])
def test_a_script_that_is_missed_too_early_is_looked_for_again(
    restart_s: int, missed_s: int
) -> None:
    """Within 20 s of its launch it might be on its way: the node is asked in the next round."""
    ran = run(
        entries("0 alice sbatch --no-requeue -w n1 --wrap 'sleep 100'")
        + "  - {at: 2s, fault: {crash: stepd 1.batch@n1}}\n"
        f"  - {{at: {restart_s}s, fault: {{restart: slurmctld, for: 1s}}}}\n"
    )
    registered = seconds(ran, "MESSAGE_NODE_REGISTRATION_STATUS", phase="receive")
    assert restart_s + 5 in registered
    assert seconds(ran, "batch_missing", args_node="n1") == [missed_s]
    assert ran.job()[0] == "NODE_FAIL"


@pytest.mark.parametrize(("waited_s", "woken"), [(59, 8), (60, 10), (61, 10)])
def test_a_srun_that_has_waited_a_minute_is_woken_in_any_case(waited_s: int, woken: int) -> None:
    """Beside the eight that are woken when a step ends."""
    sent: list[object] = []
    sruns = {_Open(f"srun {number}"): 0 for number in range(10)}
    job: Any = _Job(sruns)
    ctld: Any = SimpleNamespace(now_us=waited_s * 1_000_000, send=lambda srun, _: sent.append(srun))
    step_queue.wake(ctld, job)
    assert len(sent) == woken


class _Job:
    """A job that runs, with the sruns that wait for steps of it."""

    job_id = 1
    state = states.RUNNING
    step_waits = JobRecord.step_waits
    step_waits_no_more = JobRecord.step_waits_no_more

    def __init__(self, step_waiters: dict[Any, int]) -> None:
        self.step_waiters = step_waiters


class _Open(str):
    """The address of a srun that is there."""

    __slots__ = ()
    open = True
