"""salloc and its commands while links are cut and nodes are lost: everybody ends, and says why."""

import pytest

from simctl.wire.ids import SECOND
from tests.cluster import TWO_NODES, Ran, run

APP = "programs: {./app: {runs: 60s}, ./quick: {runs: 2s}}\n"


def played(*entries: str, model: str = "guide", **conf: object) -> Ran:
    """Run a timeline on two nodes."""
    keys = ", ".join(f"{key}: {value}" for key, value in conf.items())
    lines = "".join(f"  - {{{entry}}}\n" for entry in entries)
    ran = run(f"slurm_conf: {{{keys}}}\n{APP}timeline:\n{lines}", cluster=TWO_NODES, model=model)
    assert ran.result.stalled == ()
    assert not ran.world.login.processes
    return ran


def typed(line: str, at: str = "0s", user: str = "alice") -> str:
    """Return an entry that runs a command."""
    return f'at: {at}, as: {user}, run: "{line}"'


def cut(one: str, other: str, at: str, length: str) -> str:
    """Return an entry that cuts a link."""
    return f"at: {at}, fault: {{cut: [{one}, {other}], for: {length}}}"


def cut_when(one: str, other: str, pattern: str, length: str) -> str:
    """Return an entry that cuts a link when something happens."""
    return f'when: "{pattern}", fault: {{cut: [{one}, {other}], for: {length}}}'


def ended_s(ran: Ran, command: str = "salloc") -> int:
    """Return when the first command of a name ended, in seconds."""
    return ran.all(command, kind="command", phase="exit")[0].time_us // SECOND


def test_without_a_controller_there_is_no_allocation() -> None:
    """It says so at once."""
    ran = played(cut("login", "slurmctld", "0s", "100s"), typed("salloc true", at="5s"))
    (result,) = ran.result.commands
    assert "salloc: error: Job submit/allocate failed: Unable to contact slurm" in result.stderr
    assert (result.exit, ran.result.rows) == (1, ())


def test_an_allocation_whose_answer_is_lost_ends_without_its_client() -> None:
    """Salloc gives up after MessageTimeout, and the controller finds nobody there."""
    ran = played(
        typed("salloc true", at="5s"),
        cut_when("login", "slurmctld", "RESPONSE_RESOURCE_ALLOCATION phase=send", "30s"),
    )
    assert "Socket timed out on send/recv operation" in ran.stderr()
    assert (ended_s(ran), ran.result.commands[0].exit) == (15, 1)
    assert ran.job()[0] == "FAILED"


def test_a_queued_salloc_hears_of_its_allocation_once_the_link_is_whole() -> None:
    """The controller's agent tries again each minute; the command runs then, and once."""
    ran = played(
        typed("sbatch -N2 --wrap 'srun ./app'"),
        typed("salloc -N2 srun ./quick", at="5s"),
        cut("login", "slurmctld", "10s", "70s"),
    )
    granted = ran.one("RESPONSE_RESOURCE_ALLOCATION", phase="receive", args_error_code=0)
    assert 80 <= granted.time_us // SECOND <= 125
    assert len(ran.all("switch_p_job_attach", job=2)) == 2
    assert ran.job(2) == ("COMPLETED", "0:0", "None")


def test_a_command_runs_on_and_the_allocation_is_given_back_when_that_is_possible() -> None:
    """What runs on the login host needs no controller; the job lasts until it can be told."""
    ran = played(typed("salloc sleep 10"), cut("login", "slurmctld", "5s", "60s"))
    assert ended_s(ran) == 79
    assert ran.result.commands[0].exit == 0
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_an_end_that_could_not_be_told_reaches_salloc_later() -> None:
    """The job is cancelled while nobody can tell salloc; its command is killed with -K then."""
    ran = played(
        typed("salloc -K sleep 500"),
        cut("login", "slurmctld", "5s", "100s"),
        "when: node_state args.to=IDLE|NO_RESPOND, as: root, run: scancel 1",
        "at: 105s, as: root, run: scancel 1",
    )
    assert "salloc: Job allocation 1 has been revoked." in ran.stderr()
    assert ended_s(ran) == 105
    assert ran.job()[0] == "CANCELLED"


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_srun_inside_learns_that_a_line_died_with_the_job(model: str) -> None:
    """The step is over for slurmctld, which then ends the job: nobody else would tell srun.

    n2 has the ends of its tasks to tell when the job is ended there, and its step daemon leaves;
    in model modern it waits for MessageTimeout before.
    """
    ran = played(
        typed("salloc -N2 srun ./app"),
        cut("n2", "login", "50s", "100s"),
        typed("scontrol update nodename=n1 state=down reason=x", at="100s", user="root"),
        model=model,
    )
    step = ran.one("step_state", step="1.0", args_to="COMPLETED")
    assert step.time_us < (61 if model == "guide" else 71) * SECOND
    assert ran.stderr().splitlines()[-1] == (
        "srun: error: Aborting, io error with slurmstepd on node 1"
    )
    assert ended_s(ran) in range(150, 160)
    assert ran.job()[0] == "NODE_FAIL"


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize(
    "moment", ["at: 100s", "when: REQUEST_STEP_COMPLETE phase=receive daemon=slurmctld"]
)
def test_a_srun_inside_learns_that_a_line_died_with_its_node(moment: str, model: str) -> None:
    """The same when the node crashes, if only the controller has heard that the step is over."""
    ran = played(
        typed("salloc -w n1 srun ./app"),
        cut("n1", "login", "50s", "100s"),
        f"{moment}, fault: {{crash: n1}}",
        model=model,
        SlurmdTimeout=300,
    )
    assert "Aborting, io error with slurmstepd on node 0" in ran.stderr()
    assert ended_s(ran) in range(150, 160)


def test_a_node_that_is_lost_under_an_allocation_ends_it() -> None:
    """Salloc is told of the node and that its job is over; its command goes on to its own end."""
    ran = played(typed("salloc -N2 sleep 400"), "at: 5s, fault: {crash: n2}", SlurmdTimeout=15)
    assert ran.stderr() == (
        "salloc: Granted job allocation 1\n"
        "salloc: error: Node failure on n2\n"
        "salloc: Job allocation 1 has been revoked.\n"
    )
    assert ran.job() == ("NODE_FAIL", "0:0", "NodeDown")
    assert ended_s(ran) == 400


def test_a_suspended_allocation_outlives_a_cut_and_is_resumed() -> None:
    """The node is told to go on as soon as it can be."""
    ran = played(
        typed("salloc -N1 srun ./app"),
        typed("scontrol suspend 1", at="10s", user="root"),
        cut("slurmctld", "n1", "20s", "60s"),
        typed("scontrol resume 1", at="30s", user="root"),
        SlurmdTimeout=300,
    )
    assert ran.job() == ("COMPLETED", "0:0", "None")
    resumed = ran.one("REQUEST_SUSPEND_INT", phase="receive", args_op=1)
    assert resumed.time_us // SECOND in range(80, 100)
