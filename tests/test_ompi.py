"""checkpoint/ompi: a step's srun runs Open MPI's program, and reports to slurmctld."""

import pytest

from simctl.plugin import Buf
from simctl.plugins.checkpoint.ompi import CheckpointOmpi, OmpiRecord
from tests.checkpoints import CLUSTER, JOB, answers, checkpoint, checkpointed, output, unmet
from tests.cluster import Ran

MODELS = pytest.mark.parametrize("model", ["guide", "modern"])

MPI = CLUSTER.replace("checkpoint/blcr", "checkpoint/ompi")
STEP = JOB.replace("srun_cr", "srun")
SLOW = STEP.replace("programs: {", "programs: {ompi-checkpoint: {runs: 20s, output: saved}, ")
BAD = STEP.replace("programs: {", "programs: {ompi-checkpoint: {exit: 3, output: no room}, ")


def ran_with(*entries: str, job: str = STEP, model: str = "guide") -> Ran:
    """Run the job with checkpoint/ompi."""
    return checkpointed(*entries, job=job, cluster=MPI, model=model)


@MODELS
def test_srun_runs_the_program_with_its_own_pid(model: str) -> None:
    """As the user, beside the step, which goes on; then srun tells how it went."""
    ran = ran_with(
        checkpoint("2m", "create 1.0"),
        checkpoint("2m10s", "error 1.0"),
        job=SLOW,
        model=model,
    )
    asked = ran.one("SRUN_EXEC", phase="receive")
    script = ran.one("ompi-checkpoint")
    assert script.uid == 1001
    assert script.args["argv"] == [str(asked.pid)]  # type: ignore[index]
    report = ran.one("REQUEST_CHECKPOINT_COMP", phase="receive")
    assert report.args["error_code"] == 0  # type: ignore[index]
    call = ran.one("slurm_ckpt_comp")
    assert (call.rc, call.step) == (0, "1.0")
    assert call.args["error_msg"] == "saved"  # type: ignore[index]
    assert output(ran) == ["begun", "done", "done", "left with 0"]


@MODELS
def test_able_tells_of_a_checkpoint_until_srun_has_reported(model: str) -> None:
    """The report ends it."""
    ran = ran_with(
        checkpoint("2m", "create 1.0"),
        checkpoint("2m10s", "able 1.0", stdout="Began at"),
        checkpoint("2m30s", "able 1.0", stdout='"Yes"'),
        job=SLOW,
        model=model,
    )
    assert unmet(ran) == []


@MODELS
def test_an_exit_code_is_the_error_and_the_output_its_text(model: str) -> None:
    """Until the next one begins."""
    ran = ran_with(
        checkpoint("2m", "create 1.0"), checkpoint("3m", "error 1.0"), job=BAD, model=model
    )
    assert answers(ran, to="scontrol checkpoint error") == ["error(3): no room"]


@MODELS
def test_each_checkpoint_of_a_step_has_a_report(model: str) -> None:
    """One that was reported does not count for the next one."""
    ran = ran_with(
        checkpoint("2m", "create 1.0"),
        checkpoint("3m", "create 1.0"),
        checkpoint("190s", "able 1.0", stdout="Began at"),
        checkpoint("210s", "able 1.0", stdout='"Yes"'),
        job=SLOW,
        model=model,
    )
    assert unmet(ran) == []
    assert [call.rc for call in ran.all("slurm_ckpt_comp")] == [0, 0]


def test_a_program_that_nobody_described_leaves_a_snapshot() -> None:
    """A directory at the user's home, as Open MPI's does; Slurm has no use for it."""
    ran = ran_with(checkpoint("2m", "create 1.0"), checkpoint("3m", "error 1.0"))
    pid = ran.one("SRUN_EXEC", phase="receive").pid
    text = ran.world.disk.read(
        f"/home/alice/ompi_global_snapshot_{pid}.ckpt/global_snapshot_meta.data"
    )
    assert text == "# Seq: 1.0\n"
    assert answers(ran, to="scontrol checkpoint error") == ["error(0):"]


@MODELS
def test_vacate_has_the_step_end(model: str) -> None:
    """By SIGTERM, once it is saved."""
    ran = ran_with(checkpoint("2m", "vacate 1.0"), model=model)
    assert ran.one("ompi-checkpoint").args["argv"][0] == "--term"  # type: ignore[index]
    signals = ran.all("signal", daemon="task", step="1.0")
    assert {event.args["signal"] for event in signals} == {15}  # type: ignore[index]
    assert output(ran)[-1] == "left with 143"


@MODELS
def test_a_batch_script_has_no_mpi(model: str) -> None:
    """So nothing of it can be saved."""
    ran = ran_with(
        *(
            checkpoint("2m", f"{what} 1", expect="ESLURM_NOT_SUPPORTED")
            for what in ("create", "vacate", "disable", "requeue")
        ),
        model=model,
    )
    assert unmet(ran) == []


@MODELS
def test_disabled_steps_refuse(model: str) -> None:
    """As with every plugin."""
    ran = ran_with(
        checkpoint("2m", "disable 1.0"),
        checkpoint("2m1s", "create 1.0", expect="ESLURM_DISABLED"),
        checkpoint("2m2s", "enable 1.0"),
        checkpoint("2m3s", "create 1.0", exit="0"),
        model=model,
    )
    assert unmet(ran) == []


def test_its_tasks_are_not_saved_by_the_step_daemon() -> None:
    """That is blcr's way: asked for images, the step daemons refuse."""
    ran = ran_with(checkpoint("2m", "create 1.0"))
    assert not ran.all("slurm_ckpt_signal_tasks")
    assert ran.all("slurm_ckpt_stepd_prefork")


def test_a_second_report_is_late() -> None:
    """The first one counts."""
    plugin = CheckpointOmpi()
    record = OmpiRecord(reply_cnt=1, error_code=3, error_msg="three")
    buffer = Buf()
    plugin.slurm_ckpt_pack_job(record, buffer, 0)
    stored = Buf(buffer.data())
    back = plugin.slurm_ckpt_alloc_job()
    plugin.slurm_ckpt_unpack_job(back, stored, 0)
    assert (back.reply_cnt, back.error_code, back.error_msg) == (1, 3, "three")


@MODELS
def test_a_report_finds_a_controller_that_has_restarted(model: str) -> None:
    """Srun is still there, and so is what slurmctld knows of the checkpoint."""
    ran = ran_with(
        checkpoint("2m", "create 1.0"),
        "{at: 125s, fault: {restart: slurmctld, for: 2s}}",
        checkpoint("130s", "able 1.0", stdout="Began at"),
        checkpoint("150s", "able 1.0", stdout='"Yes"'),
        job=SLOW,
        model=model,
    )
    assert unmet(ran) == []
    assert ran.one("slurm_ckpt_comp").rc == 0


def test_a_srun_that_is_gone_leaves_nothing_under_way() -> None:
    """Nobody could be asked: the operation is refused, and did not begin."""
    killed = JOB.replace(
        "    srun_cr ./app\n", "    srun ./app &\n    sleep 20\n    kill -KILL $!\n    sleep 100\n"
    )
    ran = checkpointed(
        checkpoint("30s", "create 1.0", expect="ESLURM_NOT_SUPPORTED"),
        checkpoint("31s", "able 1.0", stdout='"Yes"'),
        job=killed,
        cluster=MPI,
    )
    assert unmet(ran) == []
