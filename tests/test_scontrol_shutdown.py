"""scontrol shutdown: who may, in which order the daemons stop, and what is left."""

from tests.cluster import run


def test_shutdown_answers_tells_the_nodes_and_stops() -> None:
    """The controller answers before it stops, and each slurmd cleans up its node."""
    ran = run(
        "timeline:\n"
        "  - {at: 0s, run: scontrol shutdown, exit: 0}\n"
        "  - {at: 1s, run: squeue, exit: 1, stderr: Unable to contact slurm controller}\n"
    )
    assert ran.result.held
    answer = ran.first("RESPONSE_SLURM_RC", phase="send", daemon="slurmctld")
    told = [event.seq for event in ran.all("REQUEST_SHUTDOWN", phase="send", daemon="slurmctld")]
    assert len(told) == 2
    assert answer < told[0]
    assert ran.first("switch_p_libstate_save") > told[-1]
    assert len(ran.all("switch_p_node_fini")) == 2


def test_shutdown_of_the_controller_alone_leaves_the_nodes() -> None:
    """With `slurmctld` behind it no slurmd is told; a task that runs goes on to its end."""
    ran = run(
        "timeline:\n"
        "  - {at: 0s, as: alice, run: sbatch --wrap 'sleep 10'}\n"
        "  - {at: 1s, run: scontrol shutdown slurmctld, exit: 0}\n"
    )
    stopped = ran.all("exit", daemon="slurmctld")[0]
    assert stopped.time_us < 2_000_000
    assert not ran.all("REQUEST_SHUTDOWN", phase="send", daemon="slurmctld")
    assert ran.all("exit", role="task")[-1].time_us >= 10_000_000


def test_only_root_and_slurm_user_may_shut_down() -> None:
    """Anybody else is told so, and the cluster goes on."""
    ran = run(
        "timeline:\n"
        "  - {at: 0s, as: alice, run: scontrol shutdown, exit: 1, stderr: Invalid user id}\n"
        "  - {at: 0s, run: scontrol shutdown now, exit: 1, stderr: invalid shutdown argument}\n"
        "  - {at: 1s, as: alice, run: sbatch --wrap 'sleep 1'}\n"
        "expect: [{job: 1, state: COMPLETED}]\n"
    )
    assert ran.result.held
