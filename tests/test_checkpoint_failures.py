"""What can go wrong around a checkpoint with checkpoint/blcr, and what comes of it.

The job is srun_cr on two nodes: its tasks are saved first, then its script.
"""

import pytest

from tests.checkpoints import CLUSTER, JOB, answers, checkpoint, checkpointed, images, output, unmet

MODELS = pytest.mark.parametrize("model", ["guide", "modern"])

ERROR = "scontrol checkpoint error"
SAVED = ["/shared/ckpt/1/1.0/task.0.ckpt", "/shared/ckpt/1/1.0/task.1.ckpt"]

STEP_JOB = JOB.replace("srun_cr", "srun")
"""The same job under a plain srun: its step can be saved alone."""


@MODELS
def test_a_prefork_that_fails_keeps_the_script_from_running(model: str) -> None:
    """No task is forked; the job ends as if it had run, and its node is drained."""
    ran = checkpointed("{at: 0s, fault: {fail: slurm_ckpt_stepd_prefork}}", model=model)
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert not ran.all("exec", daemon="task")
    assert set(ran.drained()) == {"n1"}


@MODELS
def test_one_node_that_cannot_save_its_tasks_fails_the_checkpoint_of_a_step(model: str) -> None:
    """The others write their images; `error` tells the number that the failing node gave."""
    ran = checkpointed(
        '{at: 1m, fault: {fail: "slurm_ckpt_signal_tasks node=n2"}}',
        checkpoint("2m", "create 1.0"),
        checkpoint("3m", "error 1.0"),
        checkpoint("3m", "able 1.0", stdout='"Yes"'),
        job=STEP_JOB,
        model=model,
    )
    assert unmet(ran) == []
    assert answers(ran, to=ERROR) == ["error(4027): Job step not running"]
    assert images(ran) == ["/shared/ckpt/1.0/task.0.ckpt"]
    assert output(ran) == ["begun", "done", "done", "left with 0"]


@MODELS
def test_a_step_that_cannot_be_saved_ends_its_srun_cr_and_not_its_tasks(model: str) -> None:
    """There is no image of the script then; the step goes on without a srun_cr to wait for it."""
    ran = checkpointed(
        '{at: 1m, fault: {fail: "slurm_ckpt_signal_tasks node=n2"}}',
        checkpoint("2m", "create 1"),
        checkpoint("2m30s", "error 1"),
        model=model,
    )
    assert images(ran) == ["/shared/ckpt/1/1.0/task.0.ckpt"]
    assert ran.one("exit", daemon="srun_cr").rc == 1 << 8
    assert output(ran)[:2] == ["begun", "left with 1"]


@pytest.mark.parametrize("folder", ["/nowhere/at/all", "/etc"])
def test_a_directory_that_is_missing_or_closed_fails_the_checkpoint(folder: str) -> None:
    """The helper makes the job's own directory as the user, and none above it."""
    ran = checkpointed(
        checkpoint("2m", f"create 1.0 ImageDir={folder}"),
        checkpoint("3m", "error 1.0"),
        job=STEP_JOB,
    )
    assert answers(ran, to=ERROR) == ["error(4027): Job step not running"]
    assert images(ran) == []
    why = {event.args["why"] for event in ran.all("plugin_log")}  # type: ignore[index]
    assert any("No such file" in each or "Permission denied" in each for each in why)
    assert output(ran) == ["begun", "done", "done", "left with 0"]


@MODELS
def test_max_wait_ends_the_wait_and_not_the_writing(model: str) -> None:
    """After it the checkpoint counts as failed; images that are complete later lie there."""
    slow = STEP_JOB.replace("bandwidth: 1GiB", "bandwidth: 64MiB")
    ran = checkpointed(
        checkpoint("2m", "create 1.0 MaxWait=5"),
        checkpoint("2m4s", "able 1.0", stdout="Began at"),
        checkpoint("2m6s", "able 1.0", stdout='"Yes"'),
        checkpoint("2m6s", "error 1.0"),
        job=slow,
        model=model,
    )
    assert unmet(ran) == []
    assert answers(ran, to=ERROR) == ["error(5004): Socket timed out on send/recv operation"]
    assert images(ran) == ["/shared/ckpt/1.0/task.0.ckpt", "/shared/ckpt/1.0/task.1.ckpt"]


@MODELS
def test_one_checkpoint_of_a_job_at_a_time(model: str) -> None:
    """While one is active another is refused; when it is over the next one begins."""
    ran = checkpointed(
        checkpoint("2m", "create 1.0"),
        checkpoint("2m500ms", "create 1.0", expect="EALREADY"),
        checkpoint("2m500ms", "vacate 1.0", expect="EALREADY"),
        checkpoint("2m5s", "create 1.0", exit="0"),
        job=STEP_JOB,
        model=model,
    )
    assert unmet(ran) == []
    assert len(ran.all("slurm_ckpt_signal_tasks", node="n1")) == 2


def test_the_agent_sees_one_job_at_a_time() -> None:
    """In the whole cluster: another job's checkpoint begins when the first one's is over."""
    two = JOB.replace("srun_cr", "srun").replace("-N2 -n2", "-N1 -n1")
    ran = checkpointed(
        "{at: 1s, as: alice, run: sbatch job.sh}",
        checkpoint("2m", "create 1.0"),
        checkpoint("2m", "create 2.0"),
        job=two,
    )
    first, second = ran.all("slurm_ckpt_signal_tasks")
    assert (first.job, second.job) == (1, 2)
    assert isinstance(second.t0_us, int)
    assert second.t0_us > first.time_us


@MODELS
def test_disabled_checkpoints_are_refused_until_enabled_as_often(model: str) -> None:
    """Each disable counts."""
    ran = checkpointed(
        checkpoint("2m", "disable 1"),
        checkpoint("2m1s", "disable 1"),
        *(checkpoint("2m2s", f"{op} 1", expect="ESLURM_DISABLED") for op in ("create", "vacate")),
        checkpoint("2m3s", "able 1", stdout='"No"'),
        checkpoint("2m4s", "enable 1"),
        checkpoint("2m5s", "create 1", expect="ESLURM_DISABLED"),
        checkpoint("2m6s", "enable 1"),
        checkpoint("2m7s", "create 1", exit="0"),
        model=model,
    )
    assert unmet(ran) == []
    assert "/shared/ckpt/1/script.ckpt" in images(ran)


def test_a_step_is_disabled_apart_from_its_script() -> None:
    """Its record is its own."""
    ran = checkpointed(
        checkpoint("2m", "disable 1.0"),
        checkpoint("2m1s", "create 1.0", expect="ESLURM_DISABLED"),
        checkpoint("2m1s", "able 1", stdout='"Yes"'),
    )
    assert unmet(ran) == []


@MODELS
def test_suspended_jobs_are_not_checkpointed(model: str) -> None:
    """Their scripts and their steps refuse with errors of their own."""
    ran = checkpointed(
        "{at: 2m, run: scontrol suspend 1}",
        checkpoint("2m10s", "create 1", expect="ESLURM_JOB_SUSPENDED"),
        checkpoint("2m10s", "create 1.0", expect="ESLURM_DISABLED"),
        "{at: 3m, run: scontrol resume 1}",
        checkpoint("3m10s", "create 1", exit="0"),
        model=model,
    )
    assert unmet(ran) == []
    assert ran.job()[0] == "COMPLETED"


def test_a_job_that_stages_in_is_pending() -> None:
    """So there is nothing to save."""
    cluster = CLUSTER.replace(
        "slurm_conf:\n", "slurm_conf:\n  BurstBufferType: burst_buffer/generic\n"
    )
    staging = JOB.replace("    echo begun\n", "    #BB size=10G\n    echo begun\n")
    conf = (
        "burst_buffer_conf: {GetSysState: /s, StartStageIn: /i, StopStageIn: /j, "
        "StartStageOut: /o, StopStageOut: /p}\n"
        "burst_buffer: {functions: {start_stage_in: {runs: 5m}}}\n"
    )
    ran = checkpointed(
        checkpoint("30s", "create 1", expect="ESLURM_JOB_PENDING"),
        job=staging,
        cluster=cluster,
        more=conf,
    )
    assert unmet(ran) == []
    assert ran.job()[0] == "COMPLETED"


@MODELS
def test_a_job_that_completes_or_is_over_is_done(model: str) -> None:
    """As long as its record is there; then there is no such job."""
    slow_end = CLUSTER.replace("slurm_conf:\n", "slurm_conf:\n  Epilog: /epilog.sh\n")
    ran = checkpointed(
        checkpoint("601500ms", "create 1", expect="ESLURM_ALREADY_DONE"),
        checkpoint("20m", "create 1", expect="ESLURM_INVALID_JOB_ID"),
        job=JOB.replace("programs: {", "programs: {/epilog.sh: {runs: 4s}, "),
        cluster=slow_end,
        model=model,
    )
    assert unmet(ran) == []


@MODELS
def test_a_node_that_crashes_in_the_middle_leaves_the_agent_free(model: str) -> None:
    """The job is requeued without new images; other jobs can be checkpointed."""
    slow = JOB.replace("bandwidth: 1GiB", "bandwidth: 64MiB")
    ran = checkpointed(
        "{at: 1s, as: alice, run: sbatch job.sh}",
        checkpoint("2m", "create 1 MaxWait=20"),
        "{at: 125s, fault: {crash: n1}}",
        checkpoint("150s", "create 2 MaxWait=100", exit="0"),
        checkpoint("4m", "error 2"),
        job=slow,
        model=model,
    )
    assert unmet(ran) == []
    assert answers(ran, to=ERROR) == ["error(0):"]
    assert ran.job(1)[0] == ran.job(2)[0] == "COMPLETED"
    assert not ran.all("slurm_ckpt_restart_task", job=1)


@MODELS
def test_a_controller_that_restarts_in_the_middle_forgets_the_checkpoint(model: str) -> None:
    """Nobody waits for it any more: it counts as failed, and the next one may begin."""
    slow = STEP_JOB.replace("bandwidth: 1GiB", "bandwidth: 64MiB")
    ran = checkpointed(
        checkpoint("2m", "create 1.0 MaxWait=60"),
        "{at: 122s, fault: {restart: slurmctld, for: 2s}}",
        checkpoint("130s", "able 1.0", stdout='"Yes"'),
        checkpoint("130s", "error 1.0"),
        checkpoint("3m", "create 1.0 MaxWait=60", exit="0"),
        checkpoint("4m", "error 1.0"),
        job=slow,
        model=model,
    )
    assert unmet(ran) == []
    first, second = answers(ran, to=ERROR)
    assert first == "error(4): slurmctld was restarted during the checkpoint"
    assert second == "error(0):"


@MODELS
def test_a_disabled_job_stays_so_when_the_controller_restarts(model: str) -> None:
    """What is kept of checkpoints is part of slurmctld's state."""
    ran = checkpointed(
        checkpoint("2m", "disable 1"),
        "{at: 3m, fault: {restart: slurmctld, for: 2s}}",
        checkpoint("4m", "create 1", expect="ESLURM_DISABLED"),
        model=model,
    )
    assert unmet(ran) == []


@MODELS
def test_a_restart_waits_for_the_record_to_go(model: str) -> None:
    """As long as the old record is there its id is taken."""
    cluster = CLUSTER.replace("MinJobAge: 2", "MinJobAge: 300")
    ran = checkpointed(
        checkpoint("2m", "vacate 1"),
        checkpoint("3m", "restart 1", expect="ESLURM_DUPLICATE_JOB_ID"),
        checkpoint("20m", "restart 1", exit="0"),
        cluster=cluster,
        model=model,
    )
    assert unmet(ran) == []
    assert output(ran)[-3:] == ["done", "done", "left with 0"]


BOBS = '{at: 2m2s, as: bob, run: sbatch -N4 -n16 --wrap "sleep 300"}'


def test_a_restart_without_free_nodes_waits() -> None:
    """It is a job like others in the queue."""
    ran = checkpointed(
        BOBS,
        checkpoint("2m", "vacate 1"),
        checkpoint("3m", "restart 1", exit="0"),
        checkpoint("3m10s", "able 1", expect="ESLURM_JOB_PENDING"),
    )
    assert unmet(ran) == []
    mine, bobs = sorted(ran.result.rows, key=lambda row: row.job_id)
    assert mine.start_us >= bobs.end_us
    assert output(ran)[-3:] == ["done", "done", "left with 0"]


@pytest.mark.parametrize("stick", [True, False])
def test_only_a_restart_that_sticks_waits_for_its_old_nodes(stick: bool) -> None:
    """Of a node that is down it waits until it is back; another one goes elsewhere."""
    ran = checkpointed(
        checkpoint("2m", "vacate 1"),
        "{at: 130s, fault: {crash: n1}}",
        checkpoint("4m", f"restart 1{' StickToNodes' if stick else ''}", exit="0"),
        "{at: 30m, fault: {start: n1}}",
    )
    assert unmet(ran) == []
    row = next(row for row in ran.result.rows if row.job_id == 1)
    assert row.state == "COMPLETED"
    assert row.nodes == ("n[1-2]" if stick else "n[2-3]")
    assert (row.start_us > 1_800_000_000) is stick
    assert output(ran)[-3:] == ["done", "done", "left with 0"]


@MODELS
def test_a_vacate_that_comes_too_late_does_not_end_the_next_run(model: str) -> None:
    """Its node crashed, and the job runs again when the wait for the images is over."""
    slow = JOB.replace("bandwidth: 1GiB", "bandwidth: 64MiB")
    ran = checkpointed(
        checkpoint("2m", "vacate 1 MaxWait=300"),
        "{at: 125s, fault: {crash: n1}}",
        checkpoint("600s", "able 1", stdout='"Yes"'),
        job=slow,
        model=model,
    )
    assert unmet(ran) == []
    row = ran.result.rows[0]
    assert (row.state, row.restarts) == ("COMPLETED", 1)
    assert row.start_us < 420_000_000 < row.end_us
