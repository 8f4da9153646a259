"""checkpoint/blcr: its records, its operations, and what it has done on the nodes."""

import pytest

from simctl.plugin import Buf, SlurmError, errno
from simctl.plugins.checkpoint.blcr import CheckpointBlcr
from simctl.plugins.checkpoint.ompi import CheckpointOmpi
from simctl.plugins.checkpoint.records import CheckRecord
from simctl.story.telling import tell
from tests.checkpoints import CLUSTER, JOB, answers, checkpoint, checkpointed, images, output, unmet

PLAIN = JOB.replace("srun_cr", "srun")
"""The job under a plain srun: its step can be saved alone."""

MODELS = pytest.mark.parametrize("model", ["guide", "modern"])


def packed(plugin: CheckpointBlcr | CheckpointOmpi, record: CheckRecord) -> Buf:
    """Return what a plugin stores of a record, to be read."""
    buffer = Buf()
    plugin.slurm_ckpt_pack_job(record, buffer, 0)  # type: ignore[arg-type]
    return Buf(buffer.data())


class TestRecords:
    """What is stored: the plugin's number, a size, and so many bytes."""

    def test_a_record_comes_back_as_it_was(self) -> None:
        """How often it was disabled and the last error are kept."""
        plugin = CheckpointBlcr()
        stored = packed(plugin, CheckRecord(disabled=2, error_code=4027, error_msg="not running"))
        assert stored.unpack16() == 2
        stored.offset = 0
        record = plugin.slurm_ckpt_alloc_job()
        plugin.slurm_ckpt_unpack_job(record, stored, 0)
        assert (record.disabled, record.error_code, record.error_msg) == (2, 4027, "not running")
        assert stored.remaining == 0

    def test_a_checkpoint_under_way_is_over_when_it_is_read(self) -> None:
        """Whoever would have ended it is gone."""
        plugin = CheckpointBlcr()
        record = plugin.slurm_ckpt_alloc_job()
        plugin.slurm_ckpt_unpack_job(record, packed(plugin, CheckRecord(time_stamp=1_000)), 0)
        assert record.time_stamp == 0
        assert record.error_code

    def test_another_plugins_record_is_skipped(self) -> None:
        """The fresh record stays as it is, and what follows can be read."""
        ompi = CheckpointOmpi()
        stored = Buf()
        filled = ompi.slurm_ckpt_alloc_job()
        filled.disabled = 1
        ompi.slurm_ckpt_pack_job(filled, stored, 0)
        stored.pack32(7)
        stored = Buf(stored.data())
        plugin = CheckpointBlcr()
        record = plugin.slurm_ckpt_alloc_job()
        plugin.slurm_ckpt_unpack_job(record, stored, 0)
        assert record.disabled == 0
        assert stored.unpack32() == 7

    def test_a_copy_is_a_record_of_its_own(self) -> None:
        """A task that is split off an array is disabled by itself."""
        plugin = CheckpointBlcr()
        record = plugin.slurm_ckpt_alloc_job()
        copy = plugin.slurm_ckpt_copy_job(record)
        assert copy is not None
        copy.disable()
        assert (record.disabled, copy.disabled) == (0, 1)
        assert plugin.slurm_ckpt_copy_job(None) is None

    def test_only_the_highest_error_is_kept(self) -> None:
        """The first text of it goes with it; a new operation forgets both."""
        record = CheckRecord()
        for code, text in ((5, "five"), (9, "nine"), (7, "seven"), (9, "nine again"), (0, "")):
            record.note(code, text)
        assert (record.error_code, record.error_msg) == (9, "nine")
        record.begin(1_000)
        assert (record.error_code, record.error_msg) == (0, "")


@MODELS
def test_enabling_what_is_enabled(model: str) -> None:
    """Real Slurm's counter has 16 bits and goes below 0, which disables; here it stays at 0."""
    ran = checkpointed(
        checkpoint("2m", "enable 1"),
        checkpoint("2m1s", "able 1", stdout='"No"' if model == "modern" else '"Yes"'),
        model=model,
    )
    assert unmet(ran) == []


def test_reports_are_not_supported() -> None:
    """Nobody but the agent knows when its checkpoint is complete."""
    with pytest.raises(SlurmError) as refused:
        CheckpointBlcr().slurm_ckpt_comp(None, 0, 0, "")
    assert refused.value.errno == errno.ESLURM_NOT_SUPPORTED


@MODELS
def test_tasks_find_the_library_that_saves_them(model: str) -> None:
    """In LD_PRELOAD, before what the user has there, and once; also in steps of a script."""
    ran = checkpointed(
        model=model,
        job="files:\n  job.sh: |\n    #!/bin/bash\n    echo one $LD_PRELOAD\n"
        "    export LD_PRELOAD=mine.so:$LD_PRELOAD\n    srun sh -c 'echo two $LD_PRELOAD'\n",
    )
    assert output(ran) == ["one libcr_run.so", "two libcr_run.so:mine.so"]


@MODELS
def test_helpers_run_as_the_user_side_by_side(model: str) -> None:
    """A child of the step daemon for each task; the call itself is root's."""
    ran = checkpointed(
        checkpoint("2m", "create 1.0"),
        job=PLAIN.replace("-n2 --ntasks-per-node=1", "-n4"),
        model=model,
    )
    calls = ran.all("slurm_ckpt_signal_tasks")
    assert {(each.role, each.uid, each.rc) for each in calls} == {("manager", 0, 0)}
    helpers = [event for event in ran.events if event.name == "cr_checkpoint.sh"]
    assert {each.uid for each in helpers} == {1001}
    on_n1 = [each.phase for each in helpers if each.node == "n1"]
    assert on_n1[: len(on_n1) // 2] == ["enter"] * (len(on_n1) // 2)
    assert images(ran) == [f"/shared/ckpt/1.0/task.{rank}.ckpt" for rank in range(4)]


def test_a_checkpoint_that_one_task_of_a_node_fails_has_failed() -> None:
    """Though the others of its node, and those of the other node, are saved."""
    ran = checkpointed(
        checkpoint("2m", "create 1.0"),
        job=PLAIN.replace("-n2 --ntasks-per-node=1", "-n4").replace("GiB}", "GiB, space: 1600MiB}"),
    )
    calls = ran.all("slurm_ckpt_signal_tasks")
    assert {(each.node, each.rc) for each in calls} == {("n1", 0), ("n2", -1)}
    assert len(images(ran)) == 3
    assert unmet(ran) == []


def test_one_job_at_a_time_is_checkpointed() -> None:
    """Another's waits until all steps of the first are saved, not only one of them."""
    steps = (
        "srun -N1 -n1 --exact ./large &\n    sleep 5\n    srun -N1 -n1 --exact ./app &\n    wait"
    )
    ran = checkpointed(
        "{at: 5s, as: bob, run: sbatch /home/alice/job.sh}",
        checkpoint("2m", "create 1.0 MaxWait=100"),
        checkpoint("2m1s", "create 1.1 MaxWait=100"),
        checkpoint("2m2s", "create 2.0", user="bob"),
        job=PLAIN.replace("srun ./app", steps).replace(
            "programs: {", "programs: {./large: {runs: 10m, image: 20GiB}, "
        ),
    )
    name = "cr_checkpoint.sh"
    assert [each.step for each in ran.all(name)] == ["1.1", "1.0", "2.0"]
    began = ran.one(name, job=2).enter
    assert isinstance(began, int)
    assert began > ran.last(name, job=1)


@MODELS
def test_a_vacated_step_ends_by_sigterm_when_its_images_are_there(model: str) -> None:
    """It is not cancelled: its tasks have died of a signal, and its script goes on."""
    ran = checkpointed(
        checkpoint("2m", "vacate 1.0"),
        job=PLAIN,
        model=model,
    )
    saved = ran.last("slurm_ckpt_signal_tasks")
    signalled = ran.all("signal", daemon="task", step="1.0")
    assert {each.args["signal"] for each in signalled} == {15}  # type: ignore[index]
    assert min(each.seq for each in signalled) > saved
    assert output(ran)[-1] == "left with 143"
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_a_vacate_ends_what_it_could_not_save() -> None:
    """As real Slurm does: what it did is lost."""
    ran = checkpointed(
        checkpoint("2m", "vacate 1 ImageDir=/nowhere/at/all"),
        checkpoint("2m1s", "error 1", expect="ESLURM_ALREADY_DONE"),
    )
    assert unmet(ran) == []
    assert images(ran) == []
    assert ran.job()[1] == "0:15"


@MODELS
def test_a_requeue_brings_the_job_back_from_its_images(model: str) -> None:
    """It goes on in another run of its own, on whatever nodes there are."""
    ran = checkpointed(checkpoint("5m", "requeue 1"), model=model)
    assert ran.job() == ("COMPLETED", "0:0", "None")
    row = ran.result.rows[0]
    assert row.restarts == 1
    # Of ten minutes five are left.
    assert 300 <= (row.end_us - row.start_us) // 1_000_000 <= 304
    assert output(ran) == ["begun", "done", "done", "left with 0"]


def test_a_requeue_without_images_starts_anew() -> None:
    """The job has to give way all the same."""
    ran = checkpointed(checkpoint("5m", "requeue 1 ImageDir=/nowhere/at/all"))
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert output(ran) == ["begun", "begun", "done", "done", "left with 0"]


@MODELS
def test_scch_hears_of_each_checkpoint(model: str) -> None:
    """Where a site has one: as the user, with the job, the error and the directory."""
    ran = checkpointed(
        checkpoint("2m", "create 1"),
        checkpoint("3m", "create 1 ImageDir=/nowhere"),
        job=JOB.replace("programs: {", "programs: {/usr/sbin/scch: {runs: 1s}, "),
        model=model,
    )
    good, bad = ran.all("scch")
    assert good.uid == bad.uid == 1001
    assert good.args["argv"] == ["1", "0", "/shared/ckpt/1"]  # type: ignore[index]
    assert bad.args["argv"] == ["1", "4027", "/nowhere/1"]  # type: ignore[index]


def test_without_scch_nothing_is_run() -> None:
    """A site need not have one."""
    assert not checkpointed(checkpoint("2m", "create 1")).all("scch")


@MODELS
def test_all_running_steps_of_a_job_without_script(model: str) -> None:
    """Its number stands for each of them; they share the agent's turn."""
    ran = checkpointed(
        "{at: 5s, as: alice, run: srun -N1 ./app}",
        checkpoint("2m", "create 2"),
        checkpoint("2m10s", "error 2"),
        model=model,
    )
    assert "/shared/ckpt/2.0/task.0.ckpt" in images(ran)
    assert answers(ran, to="scontrol checkpoint error") == ["error(0):"]


def test_images_of_another_user_are_refused() -> None:
    """Whose image it is stands in it."""
    ran = checkpointed(
        checkpoint("2m", "create 1.0"),
        "{at: 3m, as: bob, run: srun -N2 -n2 --restart-dir=/shared/ckpt/1.0 ./app, exit: 1}",
        job=PLAIN,
    )
    assert unmet(ran) == []
    assert "uid 1001" in ran.stderr(2)


def test_a_step_goes_on_from_images_that_the_user_names() -> None:
    """`srun --restart-dir` does for a step what a restart does for a job, within one job."""
    job = JOB.replace("srun_cr ./app", "srun ./app; srun --restart-dir=/shared/ckpt/1.0 ./app")
    ran = checkpointed(checkpoint("5m", "vacate 1.0"), job=job, cluster=CLUSTER)
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert output(ran) == ["begun", "done", "done", "left with 0"]
    row = ran.result.rows[0]
    assert 600 <= (row.end_us - row.start_us) // 1_000_000 <= 605


def test_explain_tells_of_restarts() -> None:
    """The call does not come back, since the task has become another program."""
    ran = checkpointed(checkpoint("3m", "vacate 1"), checkpoint("4m", "restart 1"))
    story = " ".join(" ".join(tell(ran.events, {"alice": 1001}, "guide")).split())
    call = "calls slurm_ckpt_restart_task for step 1.batch, and it does not come back"
    assert f"the script on n1, as alice, {call}" in story


def test_images_that_are_replaced_at_the_same_time_take_their_space_once() -> None:
    """The space for one checkpoint of all tasks is enough for the next one."""
    job = JOB.replace("{bandwidth: 1GiB}", "{bandwidth: 1GiB, space: 1100MiB}")
    ran = checkpointed(
        checkpoint("2m", "create 1"),
        checkpoint("3m", "create 1"),
        checkpoint("4m", "error 1"),
        job=job,
    )
    assert unmet(ran) == []
    assert not ran.all("plugin_log")
    assert output(ran)[-1] == "left with 0"
