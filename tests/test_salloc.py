"""salloc: an allocation for a command on the login host."""

import pytest
from msgspec import UNSET

from simctl.scenario.load import read_scenario
from simctl.scenario.positions import ScenarioErrors
from tests.cluster import Ran, run
from tests.entries import entries, states

CLUSTER = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001, bob: {uid: 1002, account: physics}}
programs: {./long: {runs: forever}, ./stubborn: {runs: 100s, on_signal: {TERM: ignore}}}
"""


def typed(*lines: str, schedule: str = "fifo") -> Ran:
    """Run a timeline on this cluster."""
    return run(entries(*lines), cluster=CLUSTER, schedule=schedule)


def variables(ran: Ran) -> dict[str, str]:
    """Return the variables of a job that its command has shown."""
    lines = ran.result.commands[0].stdout.split()
    return dict(line.split("=", 1) for line in lines)


def shown(*names: str) -> str:
    """Return a command that shows variables."""
    return "bash -c 'echo " + " ".join(f"{name}=$SLURM_{name}" for name in names) + "'"


def test_says_what_it_was_granted_and_gives_it_back() -> None:
    """The job is over when the command is, and as it is; so is salloc."""
    ran = typed("0s alice salloc -N2 sleep 10")
    result = ran.result.commands[0]
    assert result.stderr == (
        "salloc: Granted job allocation 1\nsalloc: Relinquishing job allocation 1\n"
    )
    assert (result.exit, ran.job()) == (0, ("COMPLETED", "0:0", "None"))
    sent = [event.name for event in ran.all(kind="message", daemon="salloc", phase="send")]
    assert sent == [
        "REQUEST_RESOURCE_ALLOCATION",
        "REQUEST_JOB_READY",
        "REQUEST_COMPLETE_JOB_ALLOCATION",
    ]


def test_waits_in_line_and_says_so() -> None:
    """Pending comes first, then what srun says as well."""
    ran = typed("0s alice salloc -N2 sleep 10", "1s bob salloc -N1 true")
    assert ran.stderr(1) == (
        "salloc: Pending job allocation 2\n"
        "salloc: job 2 queued and waiting for resources\n"
        "salloc: job 2 has been allocated resources\n"
        "salloc: Granted job allocation 2\n"
        "salloc: Relinquishing job allocation 2\n"
    )


def test_quiet_says_nothing() -> None:
    """-Q leaves the errors alone."""
    ran = typed("0s alice salloc -Q true", "5s alice salloc -Q -p nope true")
    assert ran.stderr(0) == ""
    assert ran.stderr(1) == (
        "salloc: error: invalid partition specified: nope\n"
        "salloc: error: Job submit/allocate failed: Invalid partition name specified\n"
    )
    assert ran.result.commands[1].exit == 1


@pytest.mark.parametrize(
    ("command", "status", "state", "code"),
    [
        ("true", 0, "COMPLETED", "0:0"),
        ("bash -c 'exit 4'", 4, "FAILED", "4:0"),
        ("bash -c 'kill -TERM $$'", 1, "FAILED", "0:15"),
        ("bash -c 'kill -HUP $$'", 0, "FAILED", "0:1"),
        ("srun bash -c 'exit 7'", 7, "FAILED", "7:0"),
        ("nope", 1, "FAILED", "1:0"),
    ],
)
def test_exit_status_and_job_follow_the_command(
    command: str, status: int, state: str, code: str
) -> None:
    """A signal that its user may have sent is no failure of salloc's, but one of the job."""
    ran = typed(f"0s alice salloc {command}")
    assert ran.result.commands[0].exit == status
    assert ran.job()[:2] == (state, code)


def test_the_command_runs_on_the_login_host_as_the_user() -> None:
    """Its process is a child of salloc's, and knows its job."""
    ran = typed("0s bob salloc sleep 5")
    (command,) = [event for event in ran.all("exec") if event.node == "login"]
    assert (command.uid, command.job, command.step) == (1002, 1, UNSET)


def test_the_command_has_the_variables_of_the_job() -> None:
    """The job's name is interactive unless one is given; the rest is what srun reads."""
    names = ("JOB_ID", "JOBID", "JOB_NAME", "JOB_NODELIST", "NODELIST", "JOB_NUM_NODES", "NNODES",
             "NTASKS", "TASKS_PER_NODE", "JOB_CPUS_PER_NODE", "JOB_PARTITION", "JOB_ACCOUNT",
             "SUBMIT_DIR", "SUBMIT_HOST", "CLUSTER_NAME", "JOB_QOS", "NODE_ALIASES")  # fmt: skip
    ran = typed("0s bob salloc -N2 -n3 " + shown(*names))
    assert variables(ran) == {
        "JOB_ID": "1",
        "JOBID": "1",
        "JOB_NAME": "interactive",
        "JOB_NODELIST": "n[1-2]",
        "NODELIST": "n[1-2]",
        "JOB_NUM_NODES": "2",
        "NNODES": "2",
        "NTASKS": "3",
        "TASKS_PER_NODE": "2,1",
        "JOB_CPUS_PER_NODE": "4(x2)",
        "JOB_PARTITION": "debug",
        "JOB_ACCOUNT": "physics",
        "SUBMIT_DIR": "/home/bob",
        "SUBMIT_HOST": "login",
        "CLUSTER_NAME": "cluster",
        "JOB_QOS": "normal",
        "NODE_ALIASES": "(null)",
    }
    assert ran.result.rows[0].name == "interactive"


def test_options_reach_the_command_as_variables() -> None:
    """What shapes steps is handed on; what was not asked is not set."""
    names = ("NTASKS_PER_NODE", "CPUS_PER_TASK", "DISTRIBUTION", "DIST_PLANESIZE", "JOB_NAME")
    ran = typed(
        "0s bob salloc -N2 --ntasks-per-node=2 -c2 -m plane=2 -J mine " + shown(*names),
        "9s bob salloc " + shown("NTASKS", *names[:4]),
    )
    assert variables(ran) == {
        "NTASKS_PER_NODE": "2",
        "CPUS_PER_TASK": "2",
        "DISTRIBUTION": "plane",
        "DIST_PLANESIZE": "2",
        "JOB_NAME": "mine",
    }
    assert ran.result.commands[1].stdout == (
        "NTASKS= NTASKS_PER_NODE= CPUS_PER_TASK= DISTRIBUTION= DIST_PLANESIZE=\n"
    )


def test_scancel_revokes_the_allocation_and_leaves_the_command_alone() -> None:
    """Without --kill-command the command runs on; nothing is given back a second time."""
    ran = typed("0s alice salloc sleep 100", "10s alice scancel 1")
    assert ran.stderr() == (
        "salloc: Granted job allocation 1\nsalloc: Job allocation 1 has been revoked.\n"
    )
    assert states(ran)[-1] == "CANCELLED"
    assert ran.result.commands[0].exit == 0
    assert ran.one("salloc", phase="exit").time_us // 1_000_000 == 100
    assert ran.all("REQUEST_COMPLETE_JOB_ALLOCATION") == []


@pytest.mark.parametrize(
    ("option", "command", "signal", "end"),
    [
        ("-K", "sleep 100", 15, 10),
        ("--kill-command", "sleep 100", 15, 10),
        ("-KHUP", "sleep 100", 1, 10),
        ("--kill-command=KILL", "./stubborn", 9, 10),
        ("-K", "./stubborn", 15, 100),
    ],
)
def test_kill_command_has_the_command_signalled(
    option: str, command: str, signal: int, end: int
) -> None:
    """SIGTERM unless another signal is named."""
    ran = typed(f"0s alice salloc {option} {command}", "10s alice scancel 1")
    found = ran.one("signal", node="login")
    assert found.args is not UNSET
    assert found.args["signal"] == signal
    assert ran.one("salloc", phase="exit").time_us // 1_000_000 == end


def test_scancel_ends_the_steps_of_the_command() -> None:
    """The inner srun is told by itself; the command goes on with what srun exited with."""
    ran = typed("0s alice salloc bash -c 'srun ./long; echo $?'", "10s alice scancel 1")
    assert ran.result.commands[0].stdout == "143\n"
    assert len(ran.all("switch_p_job_fini", step="1.0")) == 1


def test_the_time_limit_revokes_the_allocation() -> None:
    """It is looked at every 30 seconds, like any job's."""
    ran = typed("0s alice salloc -t1 srun ./long")
    assert ran.job() == ("TIMEOUT", "0:0", "TimeLimit")
    assert "salloc: Job allocation 1 has been revoked.\n" in ran.stderr()
    assert ran.result.commands[0].exit == 143


def test_an_allocation_may_be_revoked_before_the_command_runs() -> None:
    """Then no command runs."""
    ran = run(
        "timeline:\n"
        "  - {at: 0s, as: alice, run: salloc echo no}\n"
        '  - {when: "job_state job=1 state=RUNNING", as: alice, run: scancel 1}\n',
        cluster=CLUSTER,
    )
    result = ran.result.commands[0]
    assert (result.exit, result.stdout) == (1, "")
    assert result.stderr == (
        "salloc: Granted job allocation 1\n"
        "salloc: Job allocation 1 has been revoked.\n"
        "salloc: error: Allocation was revoked for job 1 before command could be run\n"
    )


def test_scancel_of_a_waiting_salloc_ends_it() -> None:
    """There is nothing to give back, and no command runs."""
    ran = typed("0s alice salloc -N2 sleep 50", "1s alice salloc echo no", "5s alice scancel 2")
    result = ran.result.commands[1]
    assert (result.exit, result.stdout) == (1, "")
    assert result.stderr.endswith("salloc: Job allocation 2 has been revoked.\n")
    assert states(ran, 2) == ["PENDING", "CANCELLED"]


def test_immediate_takes_nodes_now_or_none() -> None:
    """A job that would wait is not left in the queue."""
    ran = typed("0s alice salloc -N2 sleep 50", "1s alice salloc -I -N1 true")
    result = ran.result.commands[1]
    assert result.exit == 1
    assert result.stderr == (
        "salloc: error: Job submit/allocate failed: Requested nodes are busy\n"
    )
    assert result.errno == "ESLURM_NODES_BUSY"
    assert states(ran, 2) == ["PENDING", "FAILED"]


@pytest.mark.parametrize("command", ["salloc", "srun"])
def test_immediate_with_a_number_waits_so_many_seconds(command: str) -> None:
    """Then the job leaves the queue, and the command says what it would have said at once."""
    ran = typed(
        "0s alice salloc -N2 sleep 50",
        f"1s alice {command} --immediate=20 -N1 true",
        f"40s alice {command} -I20 -N1 true",
    )
    refused, served = ran.result.commands[1:]
    assert (refused.exit, served.exit) == (1, 0)
    assert refused.stderr.endswith(": Requested nodes are busy\n")
    assert f"{command}: job 2 queued and waiting for resources\n" in refused.stderr
    assert states(ran, 2) == ["PENDING", "CANCELLED"]
    assert ran.all("job_state", job=2)[-1].time_us // 1_000_000 == 21


def test_no_shell_leaves_the_allocation_to_others() -> None:
    """`srun --jobid` makes steps of it, and scancel ends it."""
    ran = typed(
        "0s alice salloc --no-shell -N2",
        "10s alice srun --jobid=1 -N1 -n2 -l echo hello",
        "20s alice scancel 1",
    )
    assert ran.stderr() == "salloc: Granted job allocation 1\n"
    assert ran.result.commands[1].stdout == "0: hello\n1: hello\n"
    assert states(ran) == ["PENDING", "RUNNING", "CANCELLED|COMPLETING", "CANCELLED"]
    assert ran.result.stalled == ()


def test_a_command_is_needed() -> None:
    """There is nobody at a terminal to talk to a shell."""
    ran = typed("0s alice salloc -N2")
    assert ran.result.commands[0].exit == 1
    assert "--no-shell" in ran.stderr()
    assert ran.all("job_state") == []


def test_a_lost_node_is_told() -> None:
    """The job fails like any other, and salloc says which node it was."""
    ran = run(
        "slurm_conf: {SlurmdTimeout: 30}\ntimeline:\n"
        "  - {at: 0s, as: alice, run: salloc -N2 srun ./long}\n"
        "  - {at: 10s, fault: {crash: n2}}\n",
        cluster=CLUSTER,
    )
    assert ran.job()[0] == "NODE_FAIL"
    assert "salloc: error: Node failure on n2\n" in ran.stderr()
    assert "salloc: Job allocation 1 has been revoked.\n" in ran.stderr()


def test_the_allocation_is_given_back_because_the_command_has_ended() -> None:
    """The trace says so by its causes."""
    ran = typed("0s alice salloc sleep 5")
    given = ran.all("REQUEST_COMPLETE_JOB_ALLOCATION", phase="send")[0]
    ended = ran.all("exit", daemon="task", node="login")[0]
    assert given.cause == ended.seq


def test_check_looks_into_the_command() -> None:
    """A program nobody described is warned of wherever it hides; a mistake in a script is one."""

    def warnings(line: str) -> str:
        text = CLUSTER + f"timeline: [{{at: 0s, as: alice, run: {line!r}}}]\n"
        return " ".join(map(str, read_scenario(text, file="s.yaml").warnings))

    assert "nobody described './gone'" in warnings("salloc -N2 srun -n2 ./gone")
    assert "nobody described './gone'" in warnings("salloc -t 5 bash -c 'srun ./gone'")
    assert "nobody described './gone'" in warnings("salloc ./gone")
    assert warnings("salloc -K srun ./long") == ""
    with pytest.raises(ScenarioErrors):
        warnings("salloc bash -c 'fg %1'")
