"""A node fails under a job that is not to be killed."""

import pytest
from msgspec import UNSET

from tests.cluster import Ran, run
from tests.entries import entries

CLUSTER = """\
nodes: [{name: "n[1-3]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-3]", default: true}]
users: {alice: 1001}
slurm_conf: {SlurmdTimeout: 60, ReturnToService: 1}
programs: {./long: {runs: 400s}, ./short: {runs: 5s}}
"""


def lose(
    node: str,
    run_line: str,
    *script: str,
    fault: str = "",
    schedule: str = "fifo",
    model: str = "guide",
) -> Ran:
    """Run a command line, or a script with it, and crash a node after 30 s."""
    body = "".join(f"    {line}\n" for line in script) or "    true\n"
    text = (
        f"files:\n  job.sh: |\n    #!/bin/sh\n{body}"
        f'timeline:\n  - {{at: 0s, as: alice, run: "{run_line}"}}\n'
        f"  - {{at: 30s, {fault or f'fault: {{crash: {node}}}'}}}\n"
    )
    return run(text, cluster=CLUSTER, schedule=schedule, model=model)


def output(ran: Ran) -> str:
    """Return what the script and its steps wrote."""
    return str(ran.world.disk.read("/home/alice/out"))


@pytest.mark.parametrize("schedule", ["fifo", "random"])
@pytest.mark.parametrize("model", ["guide", "modern"])
def test_job_and_step_go_on_without_the_node(schedule: str, model: str) -> None:
    """The job shrinks, srun takes the lost tasks as done, the script never notices."""
    ran = lose(
        "n3",
        "sbatch -o out -N3 -k job.sh",
        "srun -k ./long",
        "echo $?",
        "srun -N2 ./short",
        schedule=schedule,
        model=model,
    )
    assert output(ran) == "srun: error: Node failure on n3\n0\n"
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.result.rows[0].nodes == "n[1-2]"
    assert ran.result.rows[0].restarts == 0
    assert ran.one("node_removed", job=1).args == {"node": "n3"}
    assert len(ran.all("switch_p_job_step_complete", step="1.0")) == 1


def test_without_no_kill_of_its_own_the_step_is_killed() -> None:
    """The job goes on: -k of a job is about the job alone."""
    ran = lose("n3", "sbatch -o out -N3 -k job.sh", "srun ./long", "echo $?", "srun -N2 ./short")
    told = output(ran).splitlines()
    assert told[0] == "srun: error: Node failure on n3"
    assert (
        "slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-01-01T00:01:40 "
        "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
    ) in told
    assert "srun: error: n2: task 1: Killed" in told
    assert told[-1] == "137"
    assert ran.job()[0] == "COMPLETED"
    assert len(ran.all("switch_p_job_fini", step="1.0")) == 2


def test_a_variable_asks_for_steps_that_go_on() -> None:
    """SLURM_NO_KILL stands for srun's option."""
    ran = lose("n3", "sbatch -o out -N3 -k job.sh", "export SLURM_NO_KILL=1", "srun ./long")
    assert output(ran) == "srun: error: Node failure on n3\n"


def test_the_host_of_the_script_takes_its_job_with_it() -> None:
    """Without its script a batch job is nothing; it may wait again like any other."""
    ran = lose("n1", "sbatch -N3 -k --no-requeue job.sh", "srun -k ./long")
    assert ran.job()[0] == "NODE_FAIL"
    assert ran.all("node_removed") == []


def test_a_job_of_one_node_is_lost_with_it() -> None:
    """There is nothing to go on with."""
    ran = lose("n1", "salloc -k -N1 srun -k ./long")
    assert ran.job()[0] == "NODE_FAIL"


@pytest.mark.parametrize(("node", "left"), [("n1", "n[2-3]"), ("n2", "n[1,3]"), ("n3", "n[1-2]")])
def test_an_allocation_may_lose_any_node_but_its_last(node: str, left: str) -> None:
    """A step whose first node is lost is reported by its other nodes themselves."""
    ran = lose(node, "salloc -k -N3 bash -c 'srun -k ./long; srun -N2 -n2 ./short'")
    assert ran.stderr().count(f"Node failure on {node}") == 2
    assert ran.job()[0] == "COMPLETED"
    built = ran.all("switch_p_build_jobinfo", step="1.1")[0]
    assert built.args is not UNSET
    assert built.args["nodelist"] == left
    assert len(ran.all("switch_p_job_step_complete", step="1.0")) == 1
    assert ran.result.stalled == ()


def test_only_steps_on_the_node_are_told() -> None:
    """Another step of the job goes on as if nothing had happened, with -k or without."""
    ran = lose(
        "n3",
        "sbatch -o out -N3 -k job.sh",
        "srun -w n3 -N1 ./long &",
        "srun -w n2 -N1 ./long",
        "wait",
    )
    assert output(ran) == "srun: error: Node failure on n3\n"
    assert len(ran.all("SRUN_NODE_FAIL", phase="send")) == 1
    assert len(ran.all("switch_p_job_fini", step="1.1", node="n2")) == 1
    assert ran.job()[0] == "COMPLETED"


def test_an_srun_of_its_own_goes_on_too() -> None:
    """Its job ends as the tasks did that were left."""
    ran = lose("n2", "srun -k -N3 ./long")
    assert ran.stderr() == "srun: error: Node failure on n2\n"
    assert ran.result.commands[0].exit == 0
    assert ran.job()[0] == "COMPLETED"
    assert ran.result.rows[0].nodes == "n[1,3]"


def test_a_step_can_be_looked_at_when_a_node_of_it_is_gone() -> None:
    """It is listed with the nodes it was made for, and the memory it has on those that are left."""
    text = entries(
        "0s alice sbatch -N3 -k --wrap 'srun -k ./long'",
        "{at: 30s, fault: {crash: n3}}",
        "200s alice squeue -hs -o '%i %N'",
        "200s alice scontrol show step 1.0",
    )
    ran = run(text, cluster=CLUSTER)
    assert "1.0 n[1-3]\n" in ran.result.commands[1].stdout
    assert "NodeList=n[1-3]" in ran.result.commands[2].stdout
    assert ran.job()[0] == "COMPLETED"


def test_a_node_set_down_by_hand_is_told_to_end_the_job() -> None:
    """What runs there ends, the job goes on elsewhere, and nobody waits for the node."""
    ran = lose(
        "n3",
        "sbatch -o out -N3 -k job.sh",
        "srun -k ./long",
        "echo $?",
        fault="as: root, run: scontrol update nodename=n3 state=down reason=x",
    )
    assert output(ran) == "srun: error: Node failure on n3\n0\n"
    told = ran.all("REQUEST_TERMINATE_JOB", phase="send", peer="slurmd@n3")
    assert len(told) == 1
    assert ran.all("switch_p_job_postfini", step="1.0", node="n3")[0].time_us < 31_000_000
    assert ran.job()[0] == "COMPLETED"


def test_a_node_that_has_restarted_is_free_for_others() -> None:
    """It registers without the job, which goes on without it."""
    text = entries(
        "0s alice sbatch -N3 -k job.sh",
        "{at: 30s, fault: {crash: n3}}",
        "{at: 35s, fault: {start: n3}}",
        "40s alice srun -w n3 ./short",
        head="files:\n  job.sh: |\n    #!/bin/sh\n    srun -k ./long\n",
    )
    ran = run(text, cluster=CLUSTER)
    assert ran.result.commands[1].exit == 0
    assert ran.one("switch_p_job_fini", step="2.0").time_us < 50_000_000
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize(
    ("command", "state"),
    [("srun -N2 -k ./short", "FAILED"), ("sbatch -N2 -k --wrap 'srun ./short'", "COMPLETED")],
)
def test_nobody_waits_for_the_prolog_of_a_node_that_is_lost(
    command: str, state: str, model: str
) -> None:
    """With PrologFlags=Alloc the job is CONFIGURING when the node goes: the others are enough.

    A srun of its own asks for a step as wide as it was told to, which is refused; nothing hangs.
    """
    ran = run(
        entries(f"0s alice {command}", "{when: prolog phase=enter node=n2, fault: {crash: n2}}"),
        cluster=CLUSTER.replace(
            "{SlurmdTimeout", "{PrologFlags: Alloc, Prolog: /p, SlurmdTimeout"
        ).replace("{./long", "{/p: {runs: 9s}, ./long"),
        model=model,
    )
    assert ran.result.stalled == ()
    launched = ran.one("job_state", args_from="RUNNING|CONFIGURING", args_to="RUNNING")
    lost = ran.one("node_state", args_node="n2", args_to="DOWN|NO_RESPOND")
    assert launched.time_us == lost.time_us
    assert ran.job()[0] == state
    assert ran.result.rows[0].nodes == "n1"


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_step_that_had_no_other_node_is_complete_as_the_node_is_taken_out(model: str) -> None:
    """Once, and its records are released; the script goes on on the others."""
    script = ("srun -w n3 -N1 -n1 ./long &", "sleep 200")
    ran = lose("n3", "sbatch -o out -N3 -k job.sh", *script, model=model)
    removed = ran.one("node_removed", job=1)
    complete = ran.one("switch_p_job_step_complete")
    assert (str(complete.step), complete.rc) == ("1.0", 0)
    names = [
        event.name
        for event in ran.all(kind="plugin", daemon="slurmctld")
        if removed.seq < event.seq and event.time_us == removed.time_us
    ]
    assert names == [
        *("switch_p_job_step_complete", "switch_p_free_jobinfo", "slurm_ckpt_free_job")
    ]
    assert ran.job()[0] == "COMPLETED"
