"""Daemons of nodes that die by themselves: what goes on, who finds out, and what is done twice."""

import pytest

from simctl.wire.ids import SECOND
from tests.cluster import Ran, run
from tests.entries import typed

APP = """\
programs:
  ./app: {runs: 60s, output: "done\\n"}
  ./long: {runs: 500s}
  ./ever: {runs: forever}
  ./quick: {runs: 2s}
  /p: {runs: 5s}
  /e: {runs: 5s}
"""
BOTH = pytest.mark.parametrize("model", ["guide", "modern"])


def played(*entries: str, model: str = "guide", **conf: object) -> Ran:
    """Run a timeline on two nodes."""
    keys = ", ".join(f"{key}: {value}" for key, value in conf.items())
    lines = "".join(f"  - {{{entry}}}\n" for entry in entries)
    ran = run(f"slurm_conf: {{{keys}}}\n{APP}timeline:\n{lines}", model=model)
    assert ran.result.stalled == ()
    left = [each.name for host in ran.world.hosts.values() for each in host.processes.values()]
    assert left == [], "nothing is left on the nodes"
    return ran


def batch(script: str, options: str = "", at: str = "0s") -> str:
    """Return an entry that submits a script."""
    return f"at: {at}, as: alice, run: \"sbatch {options} --wrap '{script}'\""


def at(time: str, fault: str) -> str:
    """Return an entry with a fault at a time."""
    return f"at: {time}, fault: {{{fault}}}"


def when(pattern: str, fault: str) -> str:
    """Return an entry with a fault upon an event."""
    return f'when: "{pattern}", fault: {{{fault}}}'


def times(ran: Ran, name: str, **fields: object) -> list[int]:
    """Return when something happened, in seconds."""
    return [event.time_us // SECOND for event in ran.all(name, **fields)]


def sent(ran: Ran, rpc: str, **fields: object) -> list[int]:
    """Return when a message was sent, in seconds."""
    return times(ran, rpc, phase="send", **fields)


def node_states(ran: Ran, node: str) -> list[str]:
    """Return the states that a node went through."""
    return [str(event.args["to"]) for event in ran.all("node_state", args_node=node)]  # type: ignore[index]


TWO_NODES = batch("srun -N2 -n2 ./app", "-N2")


# slurmd.


@BOTH
def test_a_step_goes_on_without_slurmd(model: str) -> None:
    """Its tasks run, end and are reported; the job's end waits for another slurmd."""
    ran = played(
        TWO_NODES, at("10s", "crash: slurmd@n2"), at("80s", "start: slurmd@n2"), model=model
    )
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert times(ran, "switch_p_job_postfini", node="n2") == [60]
    assert times(ran, "switch_p_job_step_complete") == [60]
    assert sent(ran, "MESSAGE_EPILOG_COMPLETE", node="n2") == [80]
    assert ran.one("exit", role="slurmd", rc=9).node == "n2"
    assert not ran.all("switch_p_node_fini", pid=ran.one("exit", role="slurmd", rc=9).pid)


@BOTH
def test_a_slurmd_that_stops_tidies_up_and_disturbs_nobody(model: str) -> None:
    """node_fini and fini; the next begins as any, and the node stays in use."""
    ran = played(TWO_NODES, at("10s", "restart: slurmd@n2, for: 2s"), model=model)
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert times(ran, "switch_p_node_fini", node="n2")[0] == 10
    assert times(ran, "switch_p_node_init", node="n2") == [0, 12]
    assert not any("NO_RESPOND" in state for state in node_states(ran, "n2"))


def test_a_slurmd_that_is_away_too_long_loses_its_jobs() -> None:
    """SlurmdTimeout after its last answer; what survives there is ended when it is back."""
    ran = played(
        batch("srun -N2 -n2 ./ever", "-N2 --no-requeue"),
        at("10s", "crash: slurmd@n2"),
        at("70s", "start: slurmd@n2"),
        SlurmdTimeout=15,
        KillWait=5,
    )
    assert ran.job()[0] == "NODE_FAIL"
    assert times(ran, "node_state", args_to="DOWN|NO_RESPOND") == [37]
    told = ran.all("REQUEST_TERMINATE_JOB", phase="send")
    assert [(e.time_us // SECOND, e.peer) for e in told] == [(37, "slurmd@n1"), (70, "slurmd@n2")]
    assert times(ran, "switch_p_job_postfini", node="n2") == [70]
    assert times(ran, "switch_p_job_step_complete") == [70]


def test_pings_of_a_node_without_slurmd_go_unanswered() -> None:
    """It does not respond; a slurmd that registers in time makes that good."""
    ran = played(
        TWO_NODES,
        at("1s", "crash: slurmd@n2"),
        at("20s", "start: slurmd@n2"),
        SlurmdTimeout=15,
    )
    assert node_states(ran, "n2")[:4] == ["IDLE", "ALLOCATED", "ALLOCATED|NO_RESPOND", "ALLOCATED"]
    assert ran.job()[0] == "COMPLETED"


def test_what_slurmctld_has_to_say_waits_for_a_slurmd() -> None:
    """A launch is sent again RPC_RETRY_INTERVAL after the first try."""
    ran = played(
        at("1s", "crash: slurmd@n1"),
        batch("./quick", at="2s"),
        at("30s", "start: slurmd@n1"),
    )
    assert sent(ran, "REQUEST_BATCH_JOB_LAUNCH") == [2, 62]
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_a_launch_on_a_node_without_slurmd_fails_at_once() -> None:
    """Srun cannot connect; the allocation fails."""
    ran = played(
        at("1s", "crash: slurmd@n2"),
        "at: 2s, as: alice, run: srun -N2 -n2 ./quick",
        at("100s", "start: slurmd@n2"),
    )
    assert "failed on node n2: Communication connection failure" in ran.stderr()
    assert ran.job()[0] == "FAILED"


@pytest.mark.parametrize(
    "moment",
    [
        "REQUEST_LAUNCH_TASKS phase=receive node=n2",
        "switch_p_unpack_jobinfo role=slurmd node=n2",
        "fork role=slurmd node=n2",
        "switch_p_pack_jobinfo role=slurmd node=n2",
    ],
)
def test_a_slurmd_that_dies_as_it_launches_a_step_has_launched_nothing(moment: str) -> None:
    """Whoever was forked is not told what to do, and ends; srun learns of the broken line."""
    ran = played(
        "at: 1s, as: alice, run: srun -N2 -n2 ./app",
        when(moment, "crash: slurmd@n2"),
        at("30s", "start: slurmd@n2"),
    )
    assert "failed on node n2: Zero Bytes were transmitted or received" in ran.stderr()
    assert not ran.all("switch_p_job_preinit", node="n2")
    assert ran.job()[0] == "FAILED"
    assert ran.all("switch_p_job_step_complete")


def test_a_slurmd_that_dies_before_it_answers_leaves_a_step_that_is_killed_later() -> None:
    """The step daemon runs; srun has given the node up, and a new slurmd is told to end it."""
    ran = played(
        batch("srun -N2 -n2 ./ever; sleep 300", "-N2"),
        when(
            "RESPONSE_SLURM_RC role=slurmd node=n2 args.answers=*LAUNCH_TASKS", "crash: slurmd@n2"
        ),
        at("100s", "start: slurmd@n2"),
        KillWait=5,
    )
    assert times(ran, "signal", role="task", node="n2", args_signal=9) == [100]
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize("length", ["3s", "100s"])
def test_a_prolog_outlives_its_slurmd_and_is_run_again(length: str) -> None:
    """How it ended nobody knows. The job's script was never started: it is found missing."""
    ran = played(
        batch("./quick"),
        at("2s", "crash: slurmd@n1"),
        at(length, "start: slurmd@n1"),
        Prolog="/p",
        SlurmdTimeout=300,
    )
    prologs = [event for event in ran.all("prolog") if event.node == "n1"]
    assert [event.rc for event in prologs] == [0, 0]
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.result.rows[0].restarts == 1
    assert ran.one("batch_missing").job == 1


def test_a_prolog_that_has_ended_is_not_run_again() -> None:
    """The spool directory tells the new slurmd."""
    ran = played(
        batch("srun -w n2 -N1 ./quick; sleep 60; srun -w n2 -N1 ./quick", "-N2"),
        at("20s", "crash: slurmd@n2"),
        at("21s", "start: slurmd@n2"),
        Prolog="/p",
    )
    assert len(ran.all("prolog", node="n2")) == 1
    assert ran.job()[0] == "COMPLETED"


def test_a_slurmd_that_stops_sees_a_prolog_out_and_launches() -> None:
    """It takes in nothing new meanwhile."""
    ran = played(
        batch("./app"),
        at("2s", "stop: slurmd@n1"),
        at("30s", "start: slurmd@n1"),
        Prolog="/p",
    )
    assert times(ran, "prolog", phase="exit") == [5]
    assert times(ran, "switch_p_node_fini", node="n1")[0] == 5
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.result.rows[0].restarts == 0


def test_a_slurmd_that_stops_is_gone_as_soon_as_an_epilog_has_ended() -> None:
    """It has reported that before."""
    ran = played(
        batch("./quick"),
        at("4s", "stop: slurmd@n1"),
        at("30s", "start: slurmd@n1"),
        Epilog="/e",
    )
    assert sent(ran, "MESSAGE_EPILOG_COMPLETE") == [7]
    assert times(ran, "switch_p_node_fini", node="n1")[0] == 7


def test_a_slurmd_stops_in_two_minutes_whatever_it_waits_for() -> None:
    """A prolog that hangs is left to itself, and its job is run elsewhere."""
    ran = played(
        "at: 0s, fault: {hang: prolog, for: 1000s}",
        batch("./quick"),
        at("2s", "stop: slurmd@n1"),
        at("200s", "start: slurmd@n1"),
        Prolog="/p",
    )
    assert times(ran, "switch_p_node_fini", node="n1")[0] == 122
    assert ran.job()[0] == "COMPLETED"


def test_the_end_of_a_job_is_taken_up_by_a_new_slurmd() -> None:
    """It is told again, signals what is there, and kills it after KillWait."""
    ran = played(
        batch("trap : TERM; ./ever & wait; ./ever & wait"),
        "at: 10s, as: alice, run: scancel 1",
        at("12s", "crash: slurmd@n1"),
        at("20s", "start: slurmd@n1"),
        KillWait=5,
        Epilog="/e",
    )
    assert sent(ran, "REQUEST_TERMINATE_JOB") == [10, 20]
    assert len(ran.all("epilog")) == 1
    assert ran.job()[0] == "CANCELLED"


@pytest.mark.parametrize(
    "moment", ["epilog phase=enter", "epilog phase=exit", "MESSAGE_EPILOG_COMPLETE phase=send"]
)
def test_an_epilog_that_was_begun_is_not_begun_again(moment: str) -> None:
    """The new slurmd is told to end the job, and reports at once."""
    ran = played(
        batch("./quick"),
        when(moment, "crash: slurmd@n1"),
        at("30s", "start: slurmd@n1"),
        Epilog="/e",
    )
    assert len(ran.all("epilog")) == 1
    assert sent(ran, "MESSAGE_EPILOG_COMPLETE")[-1] in (7, 30)
    assert ran.job()[0] == "COMPLETED"


def test_a_prolog_that_slurmctld_waits_for_is_asked_for_again() -> None:
    """With PrologFlags=Alloc the job would else be CONFIGURING for ever."""
    ran = played(
        batch("./quick"),
        at("2s", "crash: slurmd@n1"),
        at("10s", "start: slurmd@n1"),
        Prolog="/p",
        PrologFlags="Alloc",
    )
    assert sent(ran, "REQUEST_LAUNCH_PROLOG") == [0, 10]
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.result.rows[0].restarts == 0


def test_a_first_registration_that_was_lost_is_the_first_when_it_is_made_again() -> None:
    """Ten seconds later slurmctld learns that there is a new slurmd, and asks for the prolog."""
    ran = played(
        batch("./quick"),
        at("2s", "crash: slurmd@n1"),
        at("10s", "drop: MESSAGE_NODE_REGISTRATION_STATUS, from: n1"),
        at("10s", "start: slurmd@n1"),
        Prolog="/p",
        PrologFlags="Alloc",
    )
    assert sent(ran, "MESSAGE_NODE_REGISTRATION_STATUS", node="n1") == [0, 10, 20]
    assert sent(ran, "REQUEST_LAUNCH_PROLOG") == [0, 20]


@BOTH
def test_a_new_slurmd_hands_on_reports_of_nodes_further_down(model: str) -> None:
    """It finds the step daemon that they are for, which reports for all of them."""
    ran = played(TWO_NODES, at("10s", "restart: slurmd@n1, for: 5s"), model=model)
    told = ran.all("REQUEST_STEP_COMPLETE", phase="receive", role="slurmd")
    assert [event.pid for event in told] == [ran.all("switch_p_node_init", node="n1")[1].pid]
    (report,) = ran.all("REQUEST_STEP_COMPLETE", phase="receive", role="slurmctld")
    assert (report.args["range_first"], report.args["range_last"]) == (0, 1)  # type: ignore[index]


def test_reports_go_straight_up_where_a_slurmd_is_dead() -> None:
    """After five tries; the first node's step daemon waits in vain, and reports for itself."""
    ran = played(TWO_NODES, at("10s", "crash: slurmd@n1"), at("200s", "start: slurmd@n1"))
    reports = ran.all("REQUEST_STEP_COMPLETE", phase="receive", role="slurmctld")
    assert [(e.time_us // SECOND, e.args["range_first"]) for e in reports] == [  # type: ignore[index]
        (64, 1),
        (60 + 63, 0),
    ]
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_a_slurmd_whose_switch_fails_at_its_start_leaves_the_node_without_one() -> None:
    """What ran there goes on all the same, and the next slurmd finds it."""
    ran = played(
        batch("./app"),
        at("10s", "stop: slurmd@n1"),
        at("11s", 'fail: "switch_p_node_init"'),
        at("12s", "start: slurmd@n1"),
        at("20s", "start: slurmd@n1"),
    )
    assert ran.result.fatalities == ("slurmd on n1: Unable to initialize interconnect.",)
    assert ran.job() == ("COMPLETED", "0:0", "None")
    second = ran.all("switch_p_node_init", node="n1")[1].pid
    assert ran.all("switch_p_node_fini", pid=second) == [], "what was not set up is not taken down"


def test_a_clean_start_kills_what_runs() -> None:
    """As `slurmd -c` does."""
    ran = played(
        batch("./ever", "--no-requeue"),
        at("10s", "crash: slurmd@n1"),
        at("20s", "start: slurmd@n1, clean: true"),
    )
    assert set(times(ran, "signal", role="task")) == {20}
    assert ran.job() == ("FAILED", "0:9", "JobLaunchFailure")
    assert times(ran, "switch_p_clear_node_state", node="n1") == [20]
    second = ran.one("switch_p_clear_node_state", node="n1").pid
    assert ran.names(pid=second)[-2:] == ["switch_p_node_fini", "fini"]


def test_a_suspended_job_is_resumed_through_a_new_slurmd() -> None:
    """Its step daemons are stopped still."""
    ran = played(
        batch("srun ./app"),
        "at: 10s, run: scontrol suspend 1",
        at("20s", "restart: slurmd@n1, for: 5s"),
        "at: 110s, run: scontrol resume 1",
    )
    assert ran.job()[0] == "COMPLETED"
    assert times(ran, "switch_p_job_step_complete") == [160]


def test_a_slurmd_that_was_to_suspend_a_job_is_told_again() -> None:
    """On the minute."""
    ran = played(
        batch("srun ./long"),
        at("5s", "crash: slurmd@n1"),
        "at: 10s, run: scontrol suspend 1",
        at("20s", "start: slurmd@n1"),
        "at: 110s, run: scontrol resume 1",
    )
    assert sent(ran, "REQUEST_SUSPEND_INT") == [10, 70, 110]
    assert ran.job()[0] == "COMPLETED"


def test_a_job_under_an_id_that_slurmctld_has_forgotten_ends() -> None:
    """Its node has ended one of that id, and runs no prolog for it for two minutes."""
    ran = run(
        f"slurm_conf: {{PrologFlags: Alloc}}\n{APP}timeline:\n"
        "  - {at: 1s, as: alice, run: srun ./app}\n"
        "  - {at: 2s, fault: {crash: slurmctld}}\n"
        "  - {at: 3s, fault: {start: slurmctld}}\n"
        '  - {at: 10s, as: alice, run: "sbatch --wrap ./quick"}\n',
        model="modern",
    )
    assert ran.result.stalled == ()
    assert ran.one("request_refused").args["return_code"] == 4008  # type: ignore[index]
    assert ran.job() == ("FAILED", "1:0", "NonZeroExitCode")


def test_a_job_that_was_suspended_before_its_launch_got_through_is_launched_on_resume() -> None:
    """What waits for the slurmd is not sent to a suspended job."""
    ran = played(
        at("1s", "crash: slurmd@n1"),
        batch("./quick", at="2s"),
        "at: 5s, run: scontrol suspend 1",
        at("30s", "start: slurmd@n1"),
        "at: 100s, run: scontrol resume 1",
    )
    assert sent(ran, "REQUEST_BATCH_JOB_LAUNCH") == [2, 100]
    assert ran.job() == ("COMPLETED", "0:0", "None")
    goes_on = ran.last("job_state", args_to="RUNNING")
    told = ran.last("REQUEST_SUSPEND_INT", phase="send")
    assert goes_on < told < ran.last("REQUEST_BATCH_JOB_LAUNCH", phase="send")


# Step daemons.


def test_a_slurmd_and_a_step_daemon_that_die_together() -> None:
    """As recorded: nobody notices before the node is DOWN; rank 0 waits a minute for rank 1.

    Its report of rank 0 alone does not complete the step; the last epilog does.
    """
    ran = played(
        batch("srun -N2 -n2 ./long", "-N2 --no-requeue"),
        at("10s", "crash: slurmd@n2"),
        at("10s", "crash: stepd 1.0@n2"),
        at("600s", "start: slurmd@n2"),
        model="modern",
        SlurmdTimeout=15,
        KillWait=5,
        Epilog="/e",
        SwitchType="switch/federation",
    )
    assert ran.job() == ("NODE_FAIL", "0:15", "NodeDown")
    assert times(ran, "job_state", args_to="NODE_FAIL|COMPLETING") == [37]
    (report,) = ran.all("REQUEST_STEP_COMPLETE", phase="send")
    assert report.time_us // SECOND == 37 + 63
    assert (report.args["range_first"], report.args["range_last"]) == (0, 0)  # type: ignore[index]
    last = ran.one("MESSAGE_EPILOG_COMPLETE", phase="receive")
    completed = ran.one("switch_p_job_step_complete")
    assert completed.args["nodelist"] == "n[1-2]"  # type: ignore[index]
    assert last.seq < completed.seq < ran.first("job_state", args_to="NODE_FAIL")
    assert not ran.all("switch_p_job_fini", node="n2")
    # What it left behind ran on, and ended with its program before the node was back.
    assert ran.one("exit", role="task", step="1.0", node="n2").time_us // SECOND == 500


@BOTH
def test_tasks_of_a_dead_step_daemon_go_on_until_their_job_ends(model: str) -> None:
    """Their srun is told at the next registration, and gives them up; slurmd kills them."""
    ran = played(
        "at: 0s, as: alice, run: srun -N2 -n2 ./ever",
        at("10s", "crash: stepd 1.0@n2"),
        model=model,
        SlurmdTimeout=30,
    )
    assert sent(ran, "SRUN_STEP_MISSING") == [200]
    assert "Aborting, step missing and io error on node 1" in ran.stderr()
    killed = ran.one("exit", role="task", node="n2")
    assert killed.rc == 9
    assert killed.seq < ran.first("MESSAGE_EPILOG_COMPLETE", node="n2")
    assert ran.job()[0] == "FAILED"
    assert not ran.all("switch_p_job_postfini", node="n2")
    assert len(ran.all("switch_p_job_step_complete")) == 1


def test_a_batch_job_whose_step_daemon_dies_is_run_again() -> None:
    """It is missing at the next registration, the twentieth ping."""
    ran = played(batch("./long"), at("60s", "crash: stepd 1.batch@n1"), SlurmdTimeout=30)
    assert times(ran, "batch_missing") == [200]
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.result.rows[0].restarts == 1
    assert ran.all("exit", role="task")[0].rc == 9


def test_a_batch_job_that_may_not_be_run_again_fails_with_its_step_daemon() -> None:
    """NODE_FAIL, though the node is fine."""
    ran = played(
        batch("./long", "--no-requeue"), at("60s", "crash: stepd 1.batch@n1"), SlurmdTimeout=30
    )
    assert ran.job() == ("NODE_FAIL", "0:0", "None")
    assert not any("DOWN" in state for state in node_states(ran, "n1"))


def test_a_script_goes_on_writing_without_its_step_daemon() -> None:
    """Its output is a file of its own; what happens on it is seen there."""
    ran = played(
        batch("sleep 20; echo still here", "--no-requeue"),
        at("10s", "crash: stepd 1.batch@n1"),
        "at: 100s, as: alice, run: srun cat slurm-1.out, stdout: still here",
        SlurmdTimeout=30,
    )
    assert ran.result.held


def test_a_scancel_ends_a_job_without_step_daemons() -> None:
    """Slurmd kills what it finds."""
    ran = played(
        batch("srun -N2 -n2 ./ever", "-N2"),
        at("10s", "crash: stepd 1.batch@n1"),
        at("10s", "crash: stepd 1.0@n2"),
        "at: 20s, as: alice, run: scancel 1",
        KillWait=5,
    )
    assert ran.job()[0] == "CANCELLED"
    assert [e.rc for e in ran.all("exit", role="task", node="n2")] == [9]


@pytest.mark.parametrize("node", ["n1", "n2"])
@pytest.mark.parametrize(
    "moment",
    [
        *("switch_p_job_preinit", "switch_p_job_init", "switch_p_job_attach", "switch_p_job_fini"),
        *("switch_p_job_postfini", "exec role=task", "exit role=task", "RESPONSE_LAUNCH_TASKS"),
    ],
)
def test_a_step_daemon_may_die_at_any_moment(moment: str, node: str) -> None:
    """The job ends all the same, and its step is completed once."""
    where = f"{moment} step=1.0 node={node}"
    ran = played(
        batch("srun -N2 -n2 ./quick", "-N2"),
        when(where, f"crash: stepd 1.0@{node}"),
        SlurmdTimeout=30,
    )
    assert ran.job()[0] in ("COMPLETED", "FAILED")
    assert len(ran.all("switch_p_job_step_complete")) == 1
    (dead,) = list(ran.all("exit", role="manager", rc=9))
    assert dead.node == node


# Tasks.


def test_a_task_that_dies_ends_by_sigkill() -> None:
    """The others go on."""
    ran = played(
        "at: 0s, as: alice, run: srun -N2 -n4 --ntasks-per-node=2 ./app",
        at("10s", "crash: task 1.0.3"),
    )
    assert "n2: task 3: Killed" in ran.stderr()
    assert [e.rc for e in ran.all("exit", role="task", task=3)] == [9]
    assert times(ran, "switch_p_job_fini") == [60, 60]


@BOTH
def test_a_task_that_dies_as_it_attaches_executes_nothing(model: str) -> None:
    """It does nothing more after the event."""
    ran = played(
        "at: 0s, as: alice, run: srun -N2 -n4 --ntasks-per-node=2 ./quick",
        when("switch_p_job_attach task=2", "crash: task 1.0.2"),
        model=model,
    )
    assert not ran.all("exec", task=2)
    assert [e.rc for e in ran.all("exit", role="task", task=2)] == [9]
    assert len(ran.all("switch_p_job_postfini")) == 2


def test_a_batch_script_that_dies_ends_its_job() -> None:
    """Task 0 of step batch."""
    ran = played(batch("./app"), at("10s", "crash: task 1.batch.0"))
    assert ran.job() == ("FAILED", "0:9", "JobLaunchFailure")


# Nobody there.


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("crash: stepd 1.0@n1", "no such step daemon runs on n1"),
        ("crash: task 7.0.0", "no such task runs"),
        ("start: slurmd@n1", "a slurmd runs on n1"),
        ("start: n1", "n1 is up"),
    ],
)
def test_a_fault_that_meets_nobody_is_told(fault: str, why: str) -> None:
    """In the trace, and at the end of the run; nothing else comes of it."""
    ran = played(batch("./quick"), at("10s", fault))
    told = ran.one("fault_met_nobody")
    assert told.args["why"] == why  # type: ignore[index]
    assert ran.result.missed == (f"{fault.replace(':', '')}: {why}",)
    assert ran.result.as_json()["faults_missed"] == list(ran.result.missed)


def test_what_is_down_meets_nobody_either() -> None:
    """A slurmd that is dead, a node that is down."""
    ran = played(
        at("1s", "crash: slurmd@n1"),
        at("2s", "crash: slurmd@n1"),
        at("3s", "stop: slurmd@n1"),
        at("4s", "crash: n1"),
        at("5s", "crash: n1"),
        at("6s", "start: slurmd@n1"),
        at("7s", "start: n1"),
    )
    assert [each.partition(": ")[2] for each in ran.result.missed] == [
        "no slurmd runs on n1",
        "no slurmd runs on n1",
        "n1 is down",
        "n1 is down: start the node",
    ]


def test_a_drained_node_keeps_its_reason_as_its_slurmd_comes_back() -> None:
    """Until it is resumed."""
    look = "alice sinfo -hN -n n1 -o '%T %E'"
    ran = typed(
        "1 root scontrol update nodename=n1 state=drain reason=disk",
        "{at: 5s, fault: {crash: slurmd@n1}}",
        "{at: 9s, fault: {start: slurmd@n1}}",
        f"30 {look}",
        "40 root scontrol update nodename=n1 state=resume",
        f"50 {look}",
    )
    assert [each.stdout for each in ran.result.commands if each.stdout] == [
        "drained disk\n",
        "idle none\n",
    ]


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_job_that_runs_again_where_its_node_had_rebooted_is_terminated_there(model: str) -> None:
    """The node has nothing left of the first run, and is told of the end of the second."""
    ran = typed(
        "0 alice sbatch -w n1 --requeue --wrap 'sleep 100'",
        "{at: 10s, fault: {crash: n1}}",
        "{at: 15s, fault: {start: n1}}",
        model=model,
    )
    (told,) = ran.all("REQUEST_TERMINATE_JOB", phase="receive", daemon="slurmd")
    assert told.time_us // 1_000_000 == ran.result.rows[0].end_us // 1_000_000 == 236


@pytest.mark.parametrize("reason", ["", "disk"])
def test_an_epilog_that_fails_drains_a_node_and_leaves_a_reason_that_is_there(reason: str) -> None:
    """An administrator's, who drained it before."""
    ran = typed(
        "0 alice sbatch -w n1 --wrap 'sleep 20'",
        *([f"5 root scontrol update nodename=n1 state=drain reason={reason}"] * bool(reason)),
        "60 alice sinfo -hN -n n1 -o '%T %E'",
        head='slurm_conf: {Epilog: /e.sh}\nfiles: {/e.sh: "#!/bin/sh\\nexit 1\\n"}\n',
    )
    assert ran.result.commands[-1].stdout == f"drained {reason or 'Epilog error'}\n"
