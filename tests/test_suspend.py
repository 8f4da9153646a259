"""Suspended jobs: who may, what is told to whom, whose clock stands still, and how they end."""

from pathlib import Path

import pytest

from simctl.kernel.events import Event
from simctl.wire.ids import SECOND
from tests.cluster import Ran, run, with_plugin
from tests.entries import args, queued, reasons, states, typed, wrong

TWO = "sbatch -N2 --wrap 'srun sleep 20'"
ONE = "sbatch -N1 -w n1 --wrap 'sleep 20'"


def ends(ran: Ran) -> dict[int, int]:
    """Return when each job ended, in whole seconds."""
    return {row.job_id: row.end_us // 1_000_000 for row in ran.result.rows}


def signals(ran: Ran, **fields: object) -> list[int]:
    """Return the numbers of the signals that processes got."""
    return [args(event)["signal"] for event in ran.all("signal", **fields)]


def at(event: Event) -> float:
    """Return when an event was, in seconds."""
    return event.time_us / 1_000_000


# The way of the messages.


@pytest.fixture(name="once", scope="module")
def _once() -> Ran:
    """Return a run of a job on two nodes with a step, suspended at 5 s and resumed at 30 s."""
    return queued(f"0s alice {TWO}", "5s root scontrol suspend 1", "30s root scontrol resume 1")


def test_a_suspended_job_gives_its_nodes_back_before_its_processes_stop(once: Ran) -> None:
    """Nodes idle, SUSPENDED, a message a node."""
    suspended = once.first("job_state", args_to="SUSPENDED")
    freed = [e.seq for e in once.all("node_state", args_to="IDLE", args_from="ALLOCATED")]
    assert any(seq < suspended for seq in freed)
    sent = once.all("REQUEST_SUSPEND_INT", phase="send")
    assert suspended < sent[0].seq
    assert [(e.peer, args(e)["op"]) for e in sent] == [
        ("slurmd@n1", 0), ("slurmd@n2", 0), ("slurmd@n1", 1), ("slurmd@n2", 1),
    ]  # fmt: skip
    assert states(once)[1:4] == ["RUNNING", "SUSPENDED", "RUNNING"]


def test_every_step_gets_sigtstp_two_seconds_and_sigstop(once: Ran) -> None:
    """The script and its srun, and a task on each node; and SIGCONT when the job is resumed."""
    asked = once.all("REQUEST_STEP_SUSPEND", phase="receive")
    assert sorted(str(e.step) for e in asked) == ["1.0", "1.0", "1.batch"]
    for number, moment in ((20, 5.0002), (19, 7.0002), (18, 30.0002)):
        got = once.all("signal", args_signal=number)
        assert {at(each) for each in got} == {moment}
        assert sorted(f"{e.role} of {e.step} on {e.node}" for e in got) == [
            *("srun of 1.0 on n1", "task of 1.0 on n1", "task of 1.0 on n2"),
            "task of 1.batch on n1",
        ]


def test_a_step_daemon_answers_once_its_processes_have_stopped(once: Ran) -> None:
    """With 0, after the two seconds; a resume is answered at once."""
    answers = [
        (at(event), args(event)["return_code"])
        for event in once.all("RESPONSE_SLURM_RC", phase="send", daemon="slurmstepd")
        if args(event)["answers"] in ("REQUEST_STEP_SUSPEND", "REQUEST_STEP_RESUME")
    ]
    assert answers == [(7.0002, 0)] * 3 + [(30.0002, 0)] * 3


def test_a_resumed_job_has_its_nodes_again_before_it_runs() -> None:
    """ALLOCATED, RUNNING, and a message a node."""
    ran = queued(f"0s alice {TWO}", "5s root scontrol suspend 1", "30s root scontrol resume 1")
    allocated = [e.seq for e in ran.all("node_state") if args(e)["to"] == "ALLOCATED"]
    running = [e.seq for e in ran.all("job_state", job=1) if args(e)["to"] == "RUNNING"]
    assert len(allocated) == 4
    assert allocated[-1] < running[-1] < ran.last("REQUEST_SUSPEND_INT", phase="send")


def test_a_stopped_programs_clock_stands_still() -> None:
    """It runs on for as long as it had yet to run."""
    ran = queued(f"0s alice {TWO}", "5s root scontrol suspend 1", "100s root scontrol resume 1")
    assert ends(ran) == {1: 115}
    assert reasons(ran) == {1: ("COMPLETED", "None")}


def test_what_ends_in_the_two_seconds_before_it_is_stopped_by_force_has_ended() -> None:
    """A program that ignores SIGTSTP goes on until SIGSTOP."""
    ran = typed(
        "0s alice sbatch --wrap ./app",
        "5s root scontrol suspend 1",
        "50s root scontrol resume 1",
        head="programs: {./app: {runs: 6s, on_signal: {TSTP: ignore}}}\n",
    )
    exited = next(e for e in ran.all("exit", daemon="task"))
    assert at(exited) == pytest.approx(6.0002, abs=0.001)
    assert ran.job() == ("COMPLETED", "0:0", "None")


# Who may, and what is refused.


@pytest.mark.parametrize(
    ("user", "status"), [("alice", 1), ("bob", 1), ("op", 0), ("root", 0), ("slurm", 0)]
)
def test_only_operators_suspend(user: str, status: int) -> None:
    """Not even the owner."""
    ran = queued(
        f"0s alice {ONE}", f"5s {user} scontrol suspend 1 | exit: {status}",
        "9s root scontrol resume 1",
    )  # fmt: skip
    assert wrong(ran) == []
    assert ran.stderr(1) == ("Access/permission denied for job 1\n" if status else "")
    assert ("SUSPENDED" in states(ran)) is (not status)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("suspend 77", "Unexpected message received for job 77"),
        ("resume 77", "Unexpected message received for job 77"),
        ("suspend 2", "Job is pending execution for job 2"),
        ("resume 1", "Requested operation is presently disabled for job 1"),
        ("suspend 3", "Job/step already completing or completed for job 3"),
        ("suspend", "too few arguments for keyword:suspend"),
        ("suspend x", "Invalid job id specified for job x"),
    ],
)
def test_what_cannot_be_is_refused(command: str, text: str) -> None:
    """With the words of the error and the job's name."""
    ran = queued(
        f"0s alice {ONE}", "0s alice sbatch -H --wrap true", "0s alice sbatch -w n2 --wrap true",
        f"9s root scontrol {command} | exit: 1",
    )  # fmt: skip
    assert wrong(ran) == []
    assert ran.stderr(3) == text + "\n"


def test_a_second_suspend_is_answered_well_and_does_nothing() -> None:
    """No message goes to any node."""
    ran = queued(
        f"0s alice {ONE}", "5s root scontrol suspend 1", "9s root scontrol suspend 1 | exit: 0",
        "30s root scontrol resume 1",
    )  # fmt: skip
    assert wrong(ran) == []
    assert len(ran.all("REQUEST_SUSPEND_INT", phase="send")) == 2


def test_nodes_that_others_took_meanwhile_are_not_shared() -> None:
    """The resume is refused until they are free again; nothing is ever oversubscribed."""
    ran = queued(
        f"0s alice {ONE}",
        "5s root scontrol suspend 1",
        "6s bob sbatch -w n1 --wrap 'sleep 30'",
        "10s root scontrol resume 1 | exit: 1",
        "60s root scontrol resume 1 | exit: 0",
    )
    assert wrong(ran) == []
    assert ran.stderr(3) == "Requested nodes are busy for job 1\n"
    assert reasons(ran) == {1: ("COMPLETED", "None"), 2: ("COMPLETED", "None")}


def test_a_job_that_is_never_resumed_is_no_stall() -> None:
    """As one that is held: it waits for somebody."""
    ran = queued(
        f"0s alice {ONE}", "1s bob sbatch -d afterany:1 --wrap true", "5s root scontrol suspend 1"
    )
    assert ran.result.stalled == ()
    assert reasons(ran) == {1: ("SUSPENDED", "None"), 2: ("PENDING", "Dependency")}


# Time.


def test_suspended_time_does_not_count_against_the_limit() -> None:
    """A job of a minute that was suspended for ten is ended by its limit ten minutes later."""
    ran = queued(
        "0s alice sbatch -t1 --wrap 'sleep 1000'", "30s root scontrol suspend 1",
        "630s root scontrol resume 1",
    )  # fmt: skip
    assert reasons(ran) == {1: ("TIMEOUT", "TimeLimit")}
    assert ends(ran) == {1: 690}


def test_a_limit_that_is_changed_later_counts_from_the_start_without_that_time() -> None:
    """Two minutes after the start, and the ten it was suspended."""
    ran = queued(
        "0s alice sbatch -t1 --wrap 'sleep 1000'", "30s root scontrol suspend 1",
        "630s root scontrol resume 1", "640s root scontrol update jobid=1 timelimit=2",
    )  # fmt: skip
    assert ends(ran) == {1: 750}


def test_the_priority_is_0_while_suspended_and_set_anew_on_resume() -> None:
    """It is below that of every job before."""
    ran = queued(
        f"0s alice {ONE}", "1s bob sbatch -H --wrap true", "5s root scontrol suspend 1",
    )  # fmt: skip
    assert ran.world.ctld.jobs[1].priority == 0
    ran = queued(
        f"0s alice {ONE}", "1s bob sbatch -w n2 --wrap 'sleep 50'", "5s root scontrol suspend 1",
        "9s root scontrol resume 1",
    )  # fmt: skip
    tops = [e for e in ran.all("job_state") if args(e)["to"] == "RUNNING"]
    assert len(tops) == 3
    assert ran.world.ctld.last_priority == 4294901760 - 3


# Ends.


def test_a_suspended_job_that_is_cancelled_is_killed_at_once() -> None:
    """What is stopped gets no SIGTERM: ExitCode 0:9. The answer to the next resume tells it."""
    ran = queued(
        f"0s alice {TWO}", "5s root scontrol suspend 1", "30s alice scancel 1",
        "31s root scontrol resume 1 | exit: 1",
    )  # fmt: skip
    assert wrong(ran) == []
    assert ran.job() == ("CANCELLED", "0:9", "None")
    assert states(ran)[-3:] == ["SUSPENDED", "CANCELLED|COMPLETING", "CANCELLED"]
    assert 15 not in signals(ran)
    fini = [e.node for e in ran.all("switch_p_job_fini")]
    assert sorted(map(str, fini)) == ["n1", "n2"]


def test_a_cancelled_one_waits_for_no_job_that_has_its_node() -> None:
    """The other job stays ALLOCATED beside the COMPLETING, and runs to its end."""
    ran = queued(
        f"0s alice {ONE}", "5s root scontrol suspend 1", "6s bob sbatch -w n1 --wrap 'sleep 30'",
        "9s alice scancel 1",
    )  # fmt: skip
    assert reasons(ran) == {1: ("CANCELLED", "None"), 2: ("COMPLETED", "None")}
    changes = [args(e)["to"] for e in ran.all("node_state") if args(e)["node"] == "n1"]
    assert "ALLOCATED|COMPLETING" in changes
    assert changes[-1] == "IDLE"


def test_only_sigkill_reaches_a_suspended_job() -> None:
    """Others are tried ten times, to jobs and to steps, in 95 s; a step's kill too."""
    ran = queued(
        f"0s alice {TWO}",
        "5s root scontrol suspend 1",
        "6s alice scancel -s USR1 1 | exit: 228, expect: ESLURM_TRANSITION_STATE_NO_UPDATE",
        "7s alice scancel 1.0 | expect: ESLURM_TRANSITION_STATE_NO_UPDATE",
        "200s root scontrol resume 1",
    )
    assert wrong(ran) == []
    assert reasons(ran) == {1: ("COMPLETED", "None")}


def test_a_suspended_job_that_is_requeued_is_killed_and_runs_again() -> None:
    """It has a priority again, and its next run its whole time."""
    ran = queued(
        "0s alice sbatch -t2 --wrap 'sleep 100'", "50s root scontrol suspend 1",
        "60s root scontrol requeue 1",
    )  # fmt: skip
    assert reasons(ran) == {1: ("COMPLETED", "None")}
    assert set(signals(ran)) == {20, 19, 9}
    (row,) = ran.result.rows
    assert row.restarts == 1
    assert row.end_us - row.start_us == pytest.approx(100e6, abs=1e4)


@pytest.mark.parametrize(("more", "state"), [("", "COMPLETED"), ("--no-requeue ", "NODE_FAIL")])
def test_a_suspended_job_fails_with_its_node(more: str, state: str) -> None:
    """Though another job has the node meanwhile, and fails with it."""
    ran = queued(
        f"0s alice sbatch {more}-w n1 --wrap 'sleep 20'", "5s root scontrol suspend 1",
        "6s bob sbatch --no-requeue -w n1 --wrap 'sleep 300'",
        "20s root scontrol update nodename=n1 state=down reason=x",
        "30s root scontrol update nodename=n1 state=resume",
    )  # fmt: skip
    assert ran.job(1)[0] == state
    assert ran.job(2)[0] == "NODE_FAIL"
    assert ran.result.stalled == ()


def test_a_node_that_restarts_has_lost_its_suspended_job() -> None:
    """Its registration does not list it."""
    ran = typed(
        "0s alice sbatch --no-requeue -w n1 --wrap 'sleep 20'",
        "5s root scontrol suspend 1",
        "{at: 9s, fault: {crash: n1}}",
        "{at: 20s, fault: {start: n1}}",
    )
    assert ran.job() == ("NODE_FAIL", "0:0", "NodeDown")


def test_a_script_that_ends_before_it_is_stopped_ends_the_job() -> None:
    """SUSPENDED, and then COMPLETED: SIGTSTP was ignored, and the end came first."""
    ran = run(
        "files: {j.sh: \"#!/bin/sh\\ntrap '' TSTP\\nsleep 6\\n\"}\n"
        "timeline:\n"
        "  - {at: 0s, as: alice, run: sbatch j.sh}\n"
        "  - {at: 5s, as: root, run: scontrol suspend 1}\n"
    )
    assert states(ran)[2:] == ["SUSPENDED", "COMPLETED|COMPLETING", "COMPLETED"]


# Steps and arrays.


def test_a_step_of_a_suspended_job_is_asked_for_again_until_it_may_be() -> None:
    """Srun says so once, and waits twice as long each time."""
    ran = queued(
        "0s alice sbatch -N2 --wrap 'sleep 60'", "5s root scontrol suspend 1",
        "6s alice srun --jobid=1 -N1 -n1 true", "20s root scontrol resume 1",
    )  # fmt: skip
    text = (
        "srun: Job 1 step creation temporarily disabled, retrying (Requested "
        "operation is presently disabled)\nsrun: Step created for StepId=1.0\n"
    )
    assert ran.result.commands[2].stderr == text
    assert ran.result.commands[2].exit == 0
    asked = [at(e) for e in ran.all("REQUEST_JOB_STEP_CREATE", phase="send")]
    assert asked == pytest.approx([6, 6.1, 6.3, 6.7, 7.5, 9.1, 12.3, 18.7, 31.5], abs=0.01)
    assert args(ran.all("RESPONSE_JOB_STEP_CREATE", phase="send")[0])["error_code"] == 2037


def test_an_srun_that_waits_for_a_step_ends_with_its_job() -> None:
    """Cancelled while it was suspended."""
    ran = queued(
        "0s alice srun -N2 sleep 60", "5s root scontrol suspend 1",
        "6s alice srun --jobid=1 -N1 -n1 true", "9s alice scancel 1",
    )  # fmt: skip
    assert ran.result.commands[2].exit == 1
    assert ran.result.stalled == ()


def test_a_suspended_job_that_is_requeued_and_held_stays_held() -> None:
    """Its suspension had taken its priority as well."""
    ran = queued(
        "0s alice sbatch --wrap 'sleep 20'",
        "5s root scontrol suspend 1",
        "8s root scontrol requeuehold 1",
        "300s root scancel 1",
    )
    assert states(ran).count("RUNNING") == 1
    assert reasons(ran)[1] == ("CANCELLED", "job requeued in held state")


def test_a_job_is_not_resumed_while_another_has_its_gpu() -> None:
    """Though there are cpus left for it."""
    ran = typed(
        "0 alice sbatch -n1 --gres=gpu:1 --wrap 'sleep 20'",
        "5 root scontrol suspend 1",
        "6 alice sbatch -n1 --gres=gpu:1 --wrap 'sleep 20'",
        "10 root scontrol resume 1 | exit: 1",
        "40 root scontrol resume 1 | exit: 0",
        head="slurm_conf: {SelectType: select/cons_tres, GresTypes: gpu}\n",
        cluster='nodes: [{name: n1, cpus: 4, gres: "gpu:1"}]\n'
        "users: {alice: 1001}\npartitions: [{name: debug, nodes: n1, default: true}]\n",
    )
    assert wrong(ran) == []
    assert ends(ran)[2] < 40 < ends(ran)[1]


def test_of_an_array_all_tasks_that_run_are_suspended_or_single_ones() -> None:
    """By the array's id, or by number; the others go on."""
    ran = queued(
        "0s alice sbatch -a 0-2%2 --wrap 'sleep 20'",
        "5s root scontrol suspend 1_0",
        "8s root scontrol suspend 1 | exit: 0",
        "12s root scontrol resume 1_1",
        "15s root scontrol suspend 1_2 | exit: 1",
        "60s root scontrol resume 1",
    )
    assert wrong(ran) == []
    seconds = {row.array_task_id: row.end_us // 1_000_000 for row in ran.result.rows}
    # The limit on tasks counts suspended ones: the third starts when the second has ended.
    assert seconds == {0: 75, 1: 24, 2: 44}
    assert ran.stderr(4) == "Job is pending execution for job 1_2\n"


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("seed", range(4))
def test_holds_in_every_schedule_and_model(seed: int, model: str) -> None:
    """Stopped again and again, the job still runs for as long as it has to."""
    lines = [
        f"  - {{at: {5 * n}s, as: root, run: scontrol {'suspend' if n % 2 else 'resume'} 1}}\n"
        for n in range(1, 9)
    ]
    ran = run(
        "timeline:\n  - {at: 0s, as: alice, run: \"sbatch -N2 --wrap 'srun sleep 20; srun true'\"}"
        "\n" + "".join(lines),
        model=model,
        schedule="random",
        seed=seed,
    )
    assert ran.job() == ("COMPLETED", "0:0", "None")
    # It is resumed for the last time at 40 s; what it had left by then depends on when it started.
    row = ran.result.rows[0]
    assert (row.end_us - row.start_us) // 1_000_000 == 40


def test_what_is_suspended_and_resumed_at_once_goes_on_when_it_was_stopped() -> None:
    """The step daemon does one thing after the other: SIGTSTP, two seconds, SIGSTOP, SIGCONT."""
    ran = queued(f"0s alice {ONE}", "5s root scontrol suspend 1", "6s root scontrol resume 1")
    script = [args(e)["signal"] for e in ran.all("signal", daemon="task")]
    assert script[::2] == [20, 19, 18]
    assert ends(ran) == {1: 22}


def test_what_is_asked_for_quickly_is_done_in_turn() -> None:
    """Suspended, resumed and suspended again within the two seconds: it stays suspended."""
    ran = queued(
        f"0s alice {ONE}",
        "5s root scontrol suspend 1",
        "6s root scontrol resume 1",
        "6s root scontrol suspend 1",
        "60s root scontrol resume 1",
    )
    script = [args(e)["signal"] for e in ran.all("signal", daemon="task")]
    assert script[::2] == [20, 19, 18, 20, 19, 18]
    assert ends(ran) == {1: 75}


def test_a_step_that_was_on_its_way_when_its_job_was_suspended_is_stopped_as_well(
    tmp_path: Path,
) -> None:
    """Its srun, which nobody stops, was slow: the launch comes to nodes that are suspended."""

    async def switch_p_unpack_jobinfo(self, switch_job, buffer):  # type: ignore[no-untyped-def]
        if process().role == "srun":  # type: ignore[name-defined]  # noqa: F821
            await sleep(3)  # type: ignore[name-defined]  # noqa: F821

    ran = typed(
        "0s alice sbatch -N2 --wrap 'sleep 40'",
        "5s alice srun --jobid=1 -N2 sleep 20",
        "6s root scontrol suspend 1",
        "60s root scontrol resume 1",
        head=with_plugin(tmp_path, switch_p_unpack_jobinfo),
        folder=tmp_path,
    )
    stops = [e for e in ran.all("signal", step="1.0", daemon="task") if args(e)["signal"] == 19]
    assert sorted(str(e.node) for e in stops) == ["n1", "n2"]
    assert {round(at(e)) for e in stops} == {10}
    assert [round(at(e)) for e in ran.all("exit", step="1.0", daemon="task")] == [80, 80]
    assert ran.job() == ("COMPLETED", "0:0", "None")


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_script_that_was_on_its_way_is_suspended_as_well(model: str) -> None:
    """Its job is suspended while the node's prolog runs: it starts, stops, and waits for resume."""
    ran = typed(
        "0s alice sbatch --wrap 'sleep 20'",
        "5s root scontrol suspend 1",
        "100s root scontrol resume 1",
        head=("slurm_conf: {Prolog: /p}\nprograms: {/p: {runs: 10s}}\n"),
        model=model,
    )
    asked = ran.one("REQUEST_STEP_SUSPEND", phase="receive", step="1.batch")
    assert asked.time_us // SECOND == 10
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.result.rows[0].end_us > 110 * SECOND


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_the_next_run_of_a_suspended_job_is_not_suspended(model: str) -> None:
    """The second node has none of the first run's steps, and lets that of the second run go on."""
    ran = typed(
        "0s alice sbatch -N2 --wrap 'sleep 20; srun -N2 sleep 5'",
        "5s root scontrol suspend 1",
        "10s root scontrol requeue 1",
        model=model,
    )
    assert ran.all("REQUEST_STEP_SUSPEND", step="1.0") == []
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.result.rows[0].end_us < 170 * SECOND


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("script", ["sleep 100 & exit 0", "sleep 100 & sleep 50"])
def test_what_a_script_leaves_behind_dies_with_the_step(script: str, model: str) -> None:
    """Whether the script ends by itself or of a signal of its own; before the job leaves a node."""
    ran = typed(f"0s alice sbatch --wrap '{script}'", "5s alice scancel -b -s USR1 1", model=model)
    epilog = ran.one("MESSAGE_EPILOG_COMPLETE", phase="send")
    assert ran.last("exit", daemon="task") < epilog.seq
    assert ran.all("signal", daemon="task", args_signal=9)


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_the_clock_of_a_step_stands_still_while_its_job_is_suspended(model: str) -> None:
    """A step of one minute that was suspended for 90 seconds is ended 90 seconds later."""
    ran = typed(
        "0s alice sbatch --wrap 'srun -t1 sleep 300'",
        "30s root scontrol suspend 1",
        "120s root scontrol resume 1",
        model=model,
    )
    kill = ran.one("REQUEST_KILL_TIMELIMIT", phase="send", step="1.0")
    # The first check after 150 seconds and a little.
    assert kill.time_us // SECOND == 180
    assert ran.job()[0] == "FAILED"


def test_a_step_daemon_without_a_switch_plugin_is_suspended_with_its_job() -> None:
    """Its init has failed; it is told so while it reports that, and there is no plugin to tell."""
    made = "when: RESPONSE_JOB_STEP_CREATE phase=send"
    ran = typed(
        "1s bob salloc -N2 srun sleep 9",
        f'{{{made}, fault: {{fail: "init role=manager", errno: EIO, times: 2}}}}',
        f"{{{made}, as: root, run: scontrol suspend 1}}",
        "1m root scontrol resume 1",
        model="modern",
    )
    assert [each.rc for each in ran.all("init", role="manager")] == [-1, -1]
    heard = ran.all("REQUEST_STEP_SUSPEND", phase="receive", daemon="slurmstepd")
    assert {each.step for each in heard} == {"1.0"}
    assert not ran.all("switch_p_job_step_pre_suspend")
    assert ran.job()[0] == "COMPLETED"


def test_a_step_that_begins_after_a_suspension_has_none_of_it() -> None:
    """Its job was suspended for five seconds: those are the job's and the script's."""
    ran = typed(
        "0 alice sbatch -N1 --wrap 'sleep 10; srun sleep 20; sleep 9'",
        "3 root scontrol suspend 1",
        "8 root scontrol resume 1",
        "90 alice sacct -nP -j1 -o JobID,Elapsed,Suspended",
    )
    assert ran.result.commands[-1].stdout.split() == [
        "1|00:00:39|00:00:05",
        "1.batch|00:00:39|00:00:05",
        "1.0|00:00:20|00:00:00",
    ]


def test_scontrol_tells_how_long_a_job_had_run_when_it_was_suspended_last() -> None:
    """Less what it was suspended for before; a run that is over leaves nothing of that."""
    show = "alice scontrol show job 1"
    times = ((5, 10), (15, 20), (170, 180))
    ran = typed(
        "0 alice sbatch -N1 --wrap 'sleep 60'",
        *(f"{since} root scontrol suspend 1" for since, _ in times),
        *(f"{until} root scontrol resume 1" for _, until in times),
        "25 alice scontrol requeue 1",
        *(f"{at} {show}" for at in (7, 12, 17, 160, 175)),
    )
    told = [field for each in ran.result.commands for field in each.stdout.split()]
    assert [field for field in told if field.startswith("SecsPreSuspend=")] == [
        f"SecsPreSuspend={seconds}" for seconds in (5, 5, 10, 0, 23)
    ]


def test_a_signal_that_came_to_a_stopped_script_reaches_it_once() -> None:
    """As it goes on; when it is stopped and goes on again there is none."""
    sent = ((5, "STOP"), (6, "USR1"), (17, "CONT"), (28, "STOP"), (39, "CONT"))
    ran = typed(
        "0 alice sbatch -N1 job.sh",
        *(f"{at} alice scancel -b -s {name} 1" for at, name in sent),
        head="files:\n  job.sh: |\n    #!/bin/bash\n    trap 'echo told' USR1\n"
        "    for i in 1 2 3 4 5 6; do sleep 10; done\n",
    )
    assert ran.world.disk.read("/home/alice/slurm-1.out") == "told\n"
