"""Links that are cut: what each message does that cannot be sent, or whose answer is lost."""

import pytest
from msgspec import UNSET

from simctl.wire.ids import SECOND
from tests.cluster import Ran, run
from tests.entries import typed

APP = "programs: {./app: {runs: 60s}, ./long: {runs: 500s}, ./quick: {runs: 2s}}\n"


def played(*entries: str, more: str = "", **conf: object) -> Ran:
    """Run a timeline on two nodes."""
    keys = ", ".join(f"{key}: {value}" for key, value in conf.items())
    lines = "".join(f"  - {{{entry}}}\n" for entry in entries)
    return run(f"slurm_conf: {{{keys}}}\n{APP}{more}timeline:\n{lines}")


def batch(script: str, options: str = "", at: str = "0s") -> str:
    """Return an entry that submits a script."""
    return f"at: {at}, as: alice, run: \"sbatch {options} --wrap '{script}'\""


def cut(one: str, other: str, at: str, length: str = "") -> str:
    """Return an entry that cuts a link."""
    end = f", for: {length}" if length else ""
    return f"at: {at}, fault: {{cut: [{one}, {other}]{end}}}"


def cut_when(one: str, other: str, pattern: str, length: str) -> str:
    """Return an entry that cuts a link when something happens."""
    return f'when: "{pattern}", fault: {{cut: [{one}, {other}], for: {length}}}'


def unsent(ran: Ran, rpc: str) -> list[int]:
    """Return when a message could not be sent, in seconds."""
    return [event.time_us // SECOND for event in ran.all("unreachable", args_rpc=rpc)]


def arrived(ran: Ran, rpc: str, **fields: object) -> list[int]:
    """Return when a message was received, in seconds."""
    return [event.time_us // SECOND for event in ran.all(rpc, phase="receive", **fields)]


def node_states(ran: Ran, node: str) -> list[str]:
    """Return the states that a node went through."""
    return [str(event.args["to"]) for event in ran.all("node_state", args_node=node)]  # type: ignore[index]


# The link itself.


def test_what_is_on_its_way_arrives_and_nothing_else() -> None:
    """A submission arrives although the link is cut while it travels; its answer does not."""
    ran = played(batch("./app"), cut("login", "slurmctld", "50us", "1s"))
    assert arrived(ran, "REQUEST_SUBMIT_BATCH_JOB") == [0]
    assert unsent(ran, "RESPONSE_SUBMIT_BATCH_JOB") == [0]
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_a_cut_at_time_0_is_there_before_any_daemon_starts() -> None:
    """A slurmd that cannot register tries again every second until it can."""
    ran = played(cut("slurmctld", "n1", "0s", "200s"), batch("./app", "-w n1", at="1s"))
    assert unsent(ran, "MESSAGE_NODE_REGISTRATION_STATUS") == [0]
    assert 200 in arrived(ran, "MESSAGE_NODE_REGISTRATION_STATUS")
    assert ran.job()[0] == "COMPLETED"


def test_cuts_of_one_link_end_with_the_last() -> None:
    """A shorter cut inside a longer one changes nothing."""
    ran = played(
        cut("slurmctld", "login", "0s", "100s"),
        cut("login", "slurmctld", "1s", "2s"),
        batch("./quick", at="50s"),
        batch("./quick", at="101s"),
    )
    heals = [e for e in ran.all("fault") if "heal" in str(e.args)]
    assert [e.time_us // SECOND for e in heals] == [100]
    assert [each.exit for each in ran.result.commands] == [1, 0]


def test_a_link_that_nobody_uses_costs_nothing() -> None:
    """A cut between nodes that do not talk leaves the run as it is."""
    plain = played(batch("./quick", "-N1"))
    beside = played(batch("./quick", "-N1"), cut("n1", "n2", "0s"))
    assert beside.result.counts["turns"] == plain.result.counts["turns"]
    assert beside.result.rows == plain.result.rows


# Commands.


@pytest.mark.parametrize(
    ("command", "text", "status"),
    [
        ("sbatch --wrap true", "sbatch: error: Batch job submission failed: Unable to contact", 1),
        ("srun true", "srun: error: Unable to allocate resources: Unable to contact slurm", 1),
        ("scancel 7", "scancel: error: Kill job error on job id 7: Unable to contact slurm", 8),
        ("scontrol hold 7", "Unable to contact slurm controller (connect failure) for job 7", 1),
        ("scontrol reconfigure", "slurm_reconfigure error: Unable to contact slurm", 1),
    ],
)
def test_a_command_that_cannot_connect_says_so(command: str, text: str, status: int) -> None:
    """It tries each second for MessageTimeout; then it ends with Slurm's text and exit status."""
    ran = played(
        cut("slurmctld", "login", "0s"), f"at: 5s, as: alice, run: {command}", MessageTimeout=7
    )
    (result,) = ran.result.commands
    (end,) = ran.all(kind="command", phase="exit")
    assert end.time_us == 11 * SECOND
    assert text in result.stderr
    assert (result.exit, result.errno) == (status, "SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR")


@pytest.mark.parametrize("command", ["sbatch --wrap true", "srun true", "scancel 7"])
def test_a_command_whose_answer_is_lost_gives_up_after_message_timeout(command: str) -> None:
    """It has been heard, but never learns of it."""
    ran = played(
        f"at: 5s, as: alice, run: {command}",
        cut("slurmctld", "login", "5000050us", "60s"),
        MessageTimeout=7,
    )
    (result,) = ran.result.commands
    assert "Socket timed out on send/recv operation" in result.stderr
    assert result.exit != 0
    ends = ran.all(kind="command", phase="exit")
    assert [e.time_us // SECOND for e in ends] == [12]
    assert ran.result.stalled == ()


def test_a_job_whose_srun_was_never_told_of_it_is_ended() -> None:
    """Nobody would ever give its allocation back."""
    ran = played("at: 0s, as: alice, run: srun true", cut("slurmctld", "login", "50us"))
    assert ran.job() == ("FAILED", "0:15", "JobLaunchFailure")
    assert ran.result.stalled == ()


def test_scontrol_ping_tells_whether_the_controller_answers() -> None:
    """UP and 0, DOWN and 1."""
    ran = played(
        "at: 0s, as: alice, run: scontrol ping, stdout: is UP, exit: 0",
        cut("login", "slurmctld", "1s"),
        "at: 2s, as: alice, run: scontrol ping, stdout: is DOWN, exit: 1",
    )
    assert ran.result.held


# What slurmctld sends.


def test_a_launch_that_cannot_be_sent_is_sent_again() -> None:
    """After RPC_RETRY_INTERVAL; the tries that are bound to fail are left out."""
    ran = played(
        cut("slurmctld", "n1", "1s", "100s"), batch("./quick", at="1s"), more="latency: 1ms\n"
    )
    assert unsent(ran, "REQUEST_BATCH_JOB_LAUNCH") == [1]
    assert arrived(ran, "REQUEST_BATCH_JOB_LAUNCH") == [121]
    assert ran.job()[0] == "COMPLETED"


def test_a_launch_whose_answer_is_lost_is_sent_again_and_refused() -> None:
    """The script runs once: slurmd knows the step already."""
    ran = played(
        batch("./long"),
        cut_when("slurmctld", "n1", "REQUEST_BATCH_JOB_LAUNCH phase=receive", "5s"),
    )
    launches = arrived(ran, "REQUEST_BATCH_JOB_LAUNCH")
    assert len(launches) == 2
    assert len(ran.all("request_refused", args_rpc="REQUEST_BATCH_JOB_LAUNCH")) == 1
    scripts = [e for e in ran.all("exec", step="1.batch") if "slurm_script" in str(e.args)]
    assert len(scripts) == 1
    assert ran.job()[0] == "COMPLETED"


def test_an_end_that_cannot_be_sent_is_sent_again() -> None:
    """TERMINATE_JOB, and the job is COMPLETING until its node has reported."""
    ran = played(
        batch("./long"),
        cut("slurmctld", "n1", "10s", "30s"),
        "at: 20s, as: alice, run: scancel 1",
    )
    assert unsent(ran, "REQUEST_TERMINATE_JOB") == [20]
    assert arrived(ran, "REQUEST_TERMINATE_JOB") == [80]
    assert ran.job()[0] == "CANCELLED"


def test_a_kill_at_the_time_limit_is_sent_again() -> None:
    """KILL_TIMELIMIT like any other end."""
    ran = played(batch("./long", "-t1"), cut("slurmctld", "n1", "10s", "150s"))
    assert len(unsent(ran, "REQUEST_KILL_TIMELIMIT")) == 1
    assert len(arrived(ran, "REQUEST_KILL_TIMELIMIT")) == 1
    assert ran.job()[0] == "TIMEOUT"


def test_a_signal_that_cannot_be_sent_is_sent_again() -> None:
    """REQUEST_SIGNAL_TASKS reaches the script once the link is whole."""
    ran = played(
        batch("./long"),
        cut("slurmctld", "n1", "10s", "30s"),
        "at: 20s, as: alice, run: scancel -b -s USR1 1",
    )
    assert unsent(ran, "REQUEST_SIGNAL_TASKS") == [20]
    assert [e.time_us // SECOND for e in ran.all("signal", step="1.batch", args_signal=10)] == [80]


def test_a_signal_whose_answer_is_lost_strikes_once() -> None:
    """It has been delivered; sent again it would strike a second time."""
    ran = played(
        batch("./long"),
        "at: 20s, as: alice, run: scancel -b -s USR1 1",
        cut_when("slurmctld", "n1", "REQUEST_SIGNAL_TASKS phase=receive daemon=slurmd", "30s"),
    )
    assert arrived(ran, "REQUEST_SIGNAL_TASKS", daemon="slurmd")[:1] == [20]
    assert len(ran.all("signal", step="1.batch", args_signal=10)) == 1


def test_a_signal_is_not_sent_to_a_later_run() -> None:
    """What was meant for the first run of a job is dropped when it is requeued."""
    ran = played(
        batch("./long"),
        cut("slurmctld", "n1", "10s", "31s"),
        "at: 20s, as: alice, run: scancel -b -s USR1 1",
        "at: 21s, as: root, run: scontrol requeue 1",
    )
    assert [row.restarts for row in ran.result.rows] == [1]
    signals = [e.args["signal"] for e in ran.all("signal", role="task") if e.args is not UNSET]
    assert "USR1" not in str(signals)
    assert ran.job()[0] == "COMPLETED"


def test_a_waiting_srun_is_told_of_its_allocation_once_it_can_be() -> None:
    """RESPONSE_RESOURCE_ALLOCATION is sent again while srun waits."""
    ran = played(
        batch("./app", "-N2"),
        "at: 1s, as: bob, run: srun -N1 ./quick",
        cut("login", "slurmctld", "10s", "100s"),
    )
    assert unsent(ran, "RESPONSE_RESOURCE_ALLOCATION") == [60]
    assert ran.job(2)[0] == "COMPLETED"
    assert [each.exit for each in ran.result.commands] == [0, 0]


def test_a_waiting_srun_is_told_that_its_job_was_cancelled() -> None:
    """SRUN_JOB_COMPLETE is sent again."""
    ran = played(
        batch("scancel 2; ./app", "-N2"),
        "at: 0s, as: alice, run: srun -N1 ./long",
        cut_when("login", "slurmctld", "REQUEST_KILL_JOB phase=receive", "100s"),
    )
    assert len(unsent(ran, "SRUN_JOB_COMPLETE")) == 1
    assert arrived(ran, "SRUN_JOB_COMPLETE") == [120]
    assert ran.result.stalled == ()


# What the nodes send.


def test_the_end_of_a_script_is_reported_until_it_is_answered() -> None:
    """COMPLETE_BATCH_SCRIPT for MessageTimeout, and so on every 15 s; once is enough."""
    ran = played(batch("./app"), cut("slurmctld", "n1", "10s", "100s"))
    assert unsent(ran, "REQUEST_COMPLETE_BATCH_SCRIPT") == [60]
    assert arrived(ran, "REQUEST_COMPLETE_BATCH_SCRIPT") == [110]
    assert ran.job()[0] == "COMPLETED"


def test_a_report_whose_answer_is_lost_is_sent_again_and_has_no_second_effect() -> None:
    """The first arrived while the link broke: the second is answered with ESLURM_ALREADY_DONE."""
    ran = played(
        batch("./app"),
        cut_when("slurmctld", "n1", "REQUEST_COMPLETE_BATCH_SCRIPT phase=receive", "5s"),
    )
    assert len(arrived(ran, "REQUEST_COMPLETE_BATCH_SCRIPT")) == 2
    assert len(ran.all("job_state", args_to="COMPLETED|COMPLETING")) == 1
    answers = ran.all(
        "RESPONSE_SLURM_RC", phase="receive", args_answers="REQUEST_COMPLETE_BATCH_SCRIPT"
    )
    assert [e.args["return_code"] for e in answers] == [2021]  # type: ignore[index]
    assert ran.job()[0] == "COMPLETED"


def test_the_end_of_a_step_is_reported_until_it_is_answered() -> None:
    """STEP_COMPLETE of a srun that was typed on the login host: ten tries, and so on every 60 s."""
    ran = played("at: 0s, as: alice, run: srun -N1 ./app", cut("slurmctld", "n1", "10s", "100s"))
    assert unsent(ran, "REQUEST_STEP_COMPLETE") == [60]
    assert arrived(ran, "REQUEST_STEP_COMPLETE") == [129]
    assert len(ran.all("switch_p_job_step_complete")) == 1


def test_a_parent_that_cannot_be_reached_is_tried_five_times() -> None:
    """Then the report goes straight to slurmctld."""
    ran = played(
        "at: 0s, as: alice, run: srun -N2 ./app",
        cut("n1", "n2", "10s"),
    )
    assert unsent(ran, "REQUEST_STEP_COMPLETE") == [60, 61, 62, 63, 64]
    straight = ran.one("REQUEST_STEP_COMPLETE", phase="send", node="n2", peer="slurmctld")
    assert straight.time_us // SECOND == 64
    assert len(ran.all("switch_p_job_step_complete")) == 1


def test_a_report_for_a_parent_that_has_left_goes_straight_up() -> None:
    """Rank 0 waits 63 s for the others; who ends later is reported by its slurmd."""
    app = "programs: {./uneven: [{runs: 200s, tasks: [1]}, {runs: 2s}]}\n"
    ran = typed("0s alice srun -N2 ./uneven", head=app)
    passed_on = ran.one("REQUEST_STEP_COMPLETE", phase="send", daemon="slurmd")
    assert (passed_on.node, passed_on.peer) == ("n1", "slurmctld")
    assert ran.first("switch_p_job_step_complete") > passed_on.seq


@pytest.mark.parametrize(("prolog_s", "straight"), [(2.5, False), (3.5, False), (4.5, True)])
def test_a_step_daemon_that_is_not_there_yet_is_looked_for_five_times(
    prolog_s: float, straight: bool
) -> None:
    """A report comes while the prolog of the node above still runs: now, and at four seconds."""
    ran = typed(
        "0s alice srun -N2 true",
        head=(
            f'files: {{/p: "#!/bin/sh\\n[ $SLURMD_NODENAME = n2 ] || sleep {prolog_s}\\n"}}\n'
            "slurm_conf: {Prolog: /p}\n"
        ),
    )
    passed_on = ran.all("REQUEST_STEP_COMPLETE", phase="send", daemon="slurmd", peer="slurmctld")
    assert bool(passed_on) is straight
    assert len(ran.all("switch_p_job_step_complete")) == 1
    assert ran.job()[0] == "COMPLETED"


def test_the_end_of_a_job_on_a_node_is_reported_again() -> None:
    """MESSAGE_EPILOG_COMPLETE every 60 s, or when slurmctld asks again for the end of the job."""
    ran = played(
        batch("./app"),
        cut_when("slurmctld", "n1", "REQUEST_TERMINATE_JOB phase=receive", "90s"),
    )
    assert unsent(ran, "MESSAGE_EPILOG_COMPLETE") == [60]
    assert arrived(ran, "MESSAGE_EPILOG_COMPLETE")[0] == 190
    assert ran.job()[0] == "COMPLETED"


def test_srun_is_told_of_its_tasks_once_it_can_be() -> None:
    """The step daemon stays until MESSAGE_TASK_EXIT is delivered; the step itself is over."""
    ran = played("at: 0s, as: alice, run: srun -N1 ./app", cut("login", "n1", "10s", "100s"))
    assert unsent(ran, "MESSAGE_TASK_EXIT") == [60]
    assert arrived(ran, "MESSAGE_TASK_EXIT") == [110]
    assert arrived(ran, "REQUEST_STEP_COMPLETE") == [60]
    assert ran.result.commands[0].exit == 0


def test_what_srun_is_told_comes_in_order_when_it_can() -> None:
    """Output and the ends of tasks are kept while the link is cut, none is lost."""
    ran = typed(
        "0s alice srun -N1 -n2 ./says | stdout: onetwo, exit: 0",
        "{at: 10s, fault: {cut: [login, n1], for: 15s}}",
        head=(
            "programs: {./says: [{runs: 20s, output: one, tasks: [0]}, {runs: 40s, output: two}]}\n"
        ),
    )
    assert unsent(ran, "TASK_OUTPUT") == [20]
    assert arrived(ran, "TASK_OUTPUT") == [25, 40]
    assert arrived(ran, "MESSAGE_TASK_EXIT") == [25, 40]
    assert ran.result.held


def test_srun_learns_late_that_its_launch_failed() -> None:
    """RESPONSE_LAUNCH_TASKS with an error gets there, and srun ends as it would have."""
    ran = played(
        "at: 0s, as: alice, run: srun -N1 ./app",
        'at: 0s, fault: {fail: "switch_p_job_preinit"}',
        cut_when("login", "n1", "switch_p_job_preinit", "30s"),
    )
    assert len(unsent(ran, "RESPONSE_LAUNCH_TASKS")) == 1
    assert "task 0 launch failed: Error configuring interconnect" in ran.stderr()
    assert ran.result.stalled == ()


def test_srun_is_told_late_that_a_node_of_its_step_is_down() -> None:
    """SRUN_NODE_FAIL is sent again."""
    ran = played(
        "at: 0s, as: alice, run: srun -N2 ./long",
        cut("login", "slurmctld", "10s", "400s"),
        "at: 20s, fault: {crash: n2}",
    )
    assert len(unsent(ran, "SRUN_NODE_FAIL")) == 1
    assert "srun: error: Node failure on n2" in ran.stderr()
    assert ran.job()[0] == "NODE_FAIL"
    assert ran.result.stalled == ()


def test_srun_gives_up_waiting_for_tasks_of_a_step_that_was_ended() -> None:
    """KillWait and two seconds after it has asked for the end."""
    ran = played(
        "at: 0s, as: alice, run: srun -N1 ./long",
        cut("login", "n1", "10s"),
        "at: 20s, as: root, run: sbatch -N1 --wrap 'scancel 1'",
        KillWait=10,
    )
    assert "srun: error: Timed out waiting for job step to complete" in ran.stderr()
    end = ran.all("srun", kind="command", phase="exit")[0]
    assert end.time_us // SECOND in (32, 33)
    assert ran.result.commands[0].exit == 137


def test_srun_gives_its_allocation_back_once_it_can() -> None:
    """COMPLETE_JOB_ALLOCATION each second for MessageTimeout, and so on every 60 s."""
    ran = played("at: 0s, as: alice, run: srun -N1 ./app", cut("login", "slurmctld", "10s", "100s"))
    assert unsent(ran, "REQUEST_COMPLETE_JOB_ALLOCATION") == [60]
    assert arrived(ran, "REQUEST_COMPLETE_JOB_ALLOCATION") == [129]
    assert ran.job()[0] == "COMPLETED"


def test_a_launch_to_a_node_that_is_cut_off_fails_as_to_a_dead_one() -> None:
    """Slurm's text and exit status 233; the tasks elsewhere are killed."""
    ran = played("at: 1s, as: alice, run: srun -N2 ./app", cut("login", "n2", "0s", "300s"))
    assert "failed on node n2: Communication connection failure" in ran.stderr()
    assert ran.result.commands[0].exit == 233
    assert ran.result.stalled == ()


def test_a_launch_whose_answer_is_lost_fails_after_message_timeout() -> None:
    """Srun gives the node up and has the step killed; what was started there ends too."""
    ran = played(
        "at: 0s, as: alice, run: srun -N2 ./long",
        cut_when("login", "n2", "REQUEST_LAUNCH_TASKS phase=receive node=n2", "50s"),
    )
    assert "failed on node n2: Socket timed out on send/recv operation" in ran.stderr()
    assert ran.result.end_time_us < 500 * SECOND
    assert ran.result.stalled == ()


def test_a_script_on_a_node_without_controller_cannot_start_steps() -> None:
    """Its srun says so after MessageTimeout and the script goes on."""
    ran = played(
        batch("sleep 20; srun ./quick || echo none; srun ./quick", "-N1"),
        cut("slurmctld", "n1", "10s", "5s"),
        cut("slurmctld", "n1", "19s", "12s"),
    )
    assert unsent(ran, "REQUEST_JOB_STEP_CREATE")[:1] == [20]
    text = "Unable to create step for job 1: Unable to contact slurm controller (connect failure)"
    assert text in str(ran.world.disk.read("slurm-1.out", "/home/alice", host="n1"))


# Nodes that cannot be reached.


def test_a_node_that_is_silent_for_a_while_goes_on() -> None:
    """NO_RESPOND, asked to register when it can answer, and as before."""
    ran = played(batch("./long"), cut("slurmctld", "n1", "10s", "200s"))
    assert node_states(ran, "n1")[2:5] == [
        "ALLOCATED|NO_RESPOND",
        "ALLOCATED",
        "ALLOCATED|COMPLETING",
    ]
    assert ran.one("REQUEST_NODE_REGISTRATION_STATUS", phase="receive").time_us // SECOND == 300
    assert [row.restarts for row in ran.result.rows] == [0]
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize(("returns", "base"), [(0, "DOWN"), (1, "IDLE"), (2, "IDLE")])
def test_return_to_service_decides_about_a_node_that_was_silent_too_long(
    returns: int, base: str
) -> None:
    """0: it stays DOWN; else it comes back. What still runs there is ended in any case."""
    ran = played(
        batch("./long", "--no-requeue"),
        cut("slurmctld", "n1", "10s", "410s"),
        ReturnToService=returns,
    )
    states = node_states(ran, "n1")
    assert states[states.index("DOWN|NO_RESPOND") + 1] == "DOWN"
    assert states[-1] == base
    assert ran.job() == ("NODE_FAIL", "0:0", "NodeDown")
    assert len(ran.all("REQUEST_TERMINATE_JOB", phase="receive", node="n1")) == 1
    assert len(ran.all("MESSAGE_EPILOG_COMPLETE", phase="receive")) == 1


@pytest.mark.parametrize(("returns", "base"), [(1, "DOWN"), (2, "IDLE")])
def test_only_return_to_service_2_brings_a_node_back_that_was_set_down_by_hand(
    returns: int, base: str
) -> None:
    """Its reason is the administrator's."""
    ran = played(
        cut("slurmctld", "n1", "10s", "300s"),
        "at: 150s, as: root, run: scontrol update nodename=n1 state=down reason=broken",
        ReturnToService=returns,
    )
    assert node_states(ran, "n1")[-1] == base


def test_a_node_set_down_and_resumed_while_it_is_cut_off_is_cleaned_first() -> None:
    """The job's second run waits for the node until the first has been ended there."""
    ran = played(
        batch("./long", "-w n1"),
        cut("slurmctld", "n1", "10s", "250s"),
        "at: 20s, as: root, run: scontrol update nodename=n1 state=down reason=x",
        "at: 30s, as: root, run: scontrol update nodename=n1 state=resume",
    )
    assert ran.last("MESSAGE_EPILOG_COMPLETE", phase="receive") > ran.last(
        "job_state", args_to="RUNNING"
    )
    first_gone = ran.all("MESSAGE_EPILOG_COMPLETE", phase="receive")[0]
    assert first_gone.time_us // SECOND == 300
    assert first_gone.seq < ran.last("job_state", args_to="RUNNING")
    assert ran.job()[0] == "COMPLETED"


def test_a_job_does_not_wait_for_a_silent_node_that_was_set_down_by_hand() -> None:
    """After SlurmdTimeout what still completes there is given up; the reason stays."""
    ran = played(
        batch("./app", "-N2 --no-requeue"),
        cut("slurmctld", "n2", "10s"),
        "at: 80s, as: root, run: scontrol update nodename=n2 state=down reason=broken",
    )
    assert ran.job()[0] == "COMPLETED"
    assert ran.world.ctld.nodes_by_name["n2"].reason == "broken"
    assert ran.result.stalled == ()


def test_a_job_that_nobody_knows_any_more_is_aborted() -> None:
    """MinJobAge is over when its node comes back."""
    ran = played(
        batch("sleep 3000", "--no-requeue"),
        cut("slurmctld", "n1", "10s", "1000s"),
        ReturnToService=1,
    )
    abort = ran.one("REQUEST_ABORT_JOB", phase="receive")
    assert abort.node == "n1"
    assert ran.all("exit", step="1.batch", role="task")[0].time_us // SECOND == 1100


def test_tasks_without_a_step_daemon_are_killed_as_their_job_is_aborted() -> None:
    """Those of a step daemon that was killed go on; nobody knows their job any more."""
    ran = played(
        batch("sleep 3000", "--no-requeue"),
        "at: 5s, fault: {crash: stepd 1.batch@n1}",
        cut("slurmctld", "n1", "5s", "1000s"),
        ReturnToService=1,
    )
    assert ran.one("REQUEST_ABORT_JOB", phase="receive").node == "n1"
    ends = ran.all("exit", step="1.batch", role="task")
    assert [event.time_us // SECOND for event in ends] == [1100, 1100]


WILD = (
    'files: {wild.sh: "#!/bin/sh\\ntrap : TERM\\nwhile :; do sleep 60; done\\n"}\n'
    "slurm_conf: {ReturnToService: 1, KillWait: 200}\n"
    "timeline:\n"
    "  - {at: 0s, as: alice, run: sbatch --no-requeue -w n1 wild.sh}\n"
    "  - {at: 10s, fault: {cut: [slurmctld, n1], for: 510s}}\n"
    "  - {at: 700s, fault: {crash: slurmd@n1}}\n"
)
"""A job fails while its node is cut off; the node returns at 600 s, and then its slurmd dies."""


def completing(ran: Ran) -> list[tuple[int, bool]]:
    """Return when n1 became COMPLETING, or no more, from 600 s on."""
    return [
        (event.time_us // SECOND, "COMPLETING" in str(event.args["to"]))  # type: ignore[index]
        for event in ran.all("node_state", args_node="n1")
        if event.time_us > 600 * SECOND and "COMPLETING" in str(event.args)
    ]


def test_an_old_run_is_awaited_once_however_often_its_node_registers() -> None:
    """It is found twice, ends once, and then its node is free."""
    ran = run(
        WILD + "  - {at: 701s, fault: {start: slurmd@n1}}\n"
        "  - {at: 1000s, as: alice, run: srun -w n1 true}\n"
    )
    registered = arrived(ran, "MESSAGE_NODE_REGISTRATION_STATUS", args_node_name="n1")
    assert registered[1:3] == [600, 701]
    assert arrived(ran, "MESSAGE_EPILOG_COMPLETE", job=1) == [901]
    assert completing(ran)[:2] == [(600, True), (901, False)]
    assert [row.end_us // SECOND for row in ran.result.rows][1:] == [1000]


def test_an_old_run_is_awaited_no_more_once_its_node_does_not_list_it() -> None:
    """Its step daemon has died while there was no slurmd: nothing will be reported of it."""
    ran = run(
        WILD + "  - {at: 702s, fault: {crash: stepd 1.batch@n1}}\n"
        "  - {at: 705s, fault: {start: slurmd@n1}}\n"
        "  - {at: 720s, fault: {crash: n1}}\n",  # what is left there would go on for ever
        model="modern",
    )
    assert completing(ran)[:2] == [(600, True), (705, False)]


def test_nothing_new_starts_on_a_node_before_the_old_run_is_gone() -> None:
    """The job waits for this very node: its second run starts after the first was ended."""
    ran = typed(
        "0s alice sbatch -w n1 --wrap './wild'",
        "{at: 10s, fault: {cut: [slurmctld, n1], for: 510s}}",
        head=(
            "slurm_conf: {ReturnToService: 1}\n"
            "programs: {./wild: {runs: 2000s, on_signal: {TERM: ignore}}}\n"
        ),
    )
    gone = ran.first("MESSAGE_EPILOG_COMPLETE", phase="receive", node=None)
    again = ran.last("job_state", args_to="RUNNING")
    assert ran.all("job_state", args_to="RUNNING")[-1].time_us > 600 * SECOND
    assert gone < again
    assert ran.job()[0] == "COMPLETED"


def test_the_report_of_an_old_run_does_not_end_the_new_one() -> None:
    """The script of the first run ends on n1 while the job runs on n2."""
    ran = played(batch("./app; ./long"), cut("slurmctld", "n1", "1s", "550s"), ReturnToService=1)
    assert len(ran.all("wrong_run", args_node="n1")) == 1
    assert [row.restarts for row in ran.result.rows] == [1]
    assert ran.job()[0] == "COMPLETED"


def test_a_node_that_was_resumed_while_it_is_silent_is_watched() -> None:
    """It takes no job before it answers, and goes DOWN again if it does not."""
    ran = played(
        cut("slurmctld", "n1", "10s", "2000s"),
        "at: 500s, as: root, run: scontrol update nodename=n1 state=resume",
        ReturnToService=1,
    )
    assert node_states(ran, "n1")[2:] == [
        *("DOWN|NO_RESPOND", "IDLE|NO_RESPOND", "DOWN|NO_RESPOND", "DOWN", "IDLE")
    ]


def test_a_node_that_falls_silent_while_it_is_down_is_found_out_when_resumed() -> None:
    """The job that starts there goes back into the queue, and runs elsewhere."""
    ran = played(
        "at: 5s, as: root, run: scontrol update nodename=n1 state=down reason=x",
        "at: 10s, fault: {cut: [slurmctld, n1]}",
        "at: 20s, as: root, run: scontrol update nodename=n1 state=resume",
        batch("./quick", at="21s"),
    )
    assert node_states(ran, "n1")[-1] == "DOWN|NO_RESPOND"
    assert [row.restarts for row in ran.result.rows] == [1]
    assert ran.job()[0] == "COMPLETED"


def test_a_node_that_restarts_while_it_is_cut_off_has_lost_its_job() -> None:
    """Its first registration says so, however late it gets through."""
    ran = played(
        batch("./long"),
        cut("slurmctld", "n1", "10s", "100s"),
        "at: 20s, fault: {crash: n1}",
        "at: 30s, fault: {start: n1}",
    )
    assert ran.all("job_state", args_to="NODE_FAIL")[0].time_us // SECOND == 110
    assert [row.restarts for row in ran.result.rows] == [1]
    assert ran.job()[0] == "COMPLETED"


def test_a_cut_for_ever_ends_with_the_node_down() -> None:
    """The job runs again elsewhere, and the run ends."""
    ran = played(batch("./app"), cut("slurmctld", "n1", "10s"))
    assert node_states(ran, "n1")[-1] == "DOWN|NO_RESPOND"
    assert ran.job()[0] == "COMPLETED"
    assert ran.result.stalled == ()


# Reconfiguring.


def test_reconfigure_answers_before_it_tells_the_nodes() -> None:
    """States are found anew inside the request; no node's plugin is set up anew."""
    ran = played(batch("./app", "-N1"), "at: 5s, as: root, run: scontrol reconfigure, exit: 0")
    assert ran.result.held
    answer = ran.first("RESPONSE_SLURM_RC", phase="send", args_answers="REQUEST_RECONFIGURE")
    told = ran.all("REQUEST_RECONFIGURE", phase="receive", daemon="slurmd")
    assert [event.node for event in told] == ["n1", "n2"]
    assert answer < told[0].seq
    assert node_states(ran, "n1")[1:4] == ["ALLOCATED", "UNKNOWN", "ALLOCATED"]
    assert node_states(ran, "n2")[1:3] == ["UNKNOWN", "IDLE"]
    assert len(ran.all("switch_p_node_init")) == 2
    assert ran.job()[0] == "COMPLETED"


def test_only_root_and_slurm_user_reconfigure() -> None:
    """Slurm's text and exit status."""
    text = "slurm_reconfigure error: Invalid user id"
    ran = played(
        f'at: 0s, as: alice, run: scontrol reconfigure, exit: 1, stderr: "{text}"',
        "at: 1s, as: slurm, run: scontrol reconfigure, exit: 0",
    )
    assert ran.result.held
