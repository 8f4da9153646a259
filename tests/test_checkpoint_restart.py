"""How a batch job comes back: what is kept of it, its id, its nodes, its images, its runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from simctl.kernel.events import Event
from tests.checkpointing import answers, ask, checkpointed, said
from tests.cluster import Ran

JOB = "0s alice sbatch -N2 --wrap 'srun sleep 300'"
VACATE = "10s alice scontrol checkpoint vacate 1"
"""The job is over at 13 s, and its record gone at 20 s."""


def launches(ran: Ran, job: int = 1) -> list[Event]:
    """Return the launches of a job's script."""
    return ran.all("REQUEST_BATCH_JOB_LAUNCH", phase="send", job=job)


def restart_dirs(ran: Ran, job: int = 1) -> list[str]:
    """Return where each launch of a job goes on from."""
    found: list[Any] = [each.args for each in launches(ran, job)]
    return [each.get("restart_dir", "") for each in found]


def saved(ran: Ran, name: str = "1.ckpt") -> dict[str, Any]:
    """Return what the description of a job says."""
    text = ran.world.disk.read(f"/shared/ckpt/{name}")
    assert text is not None
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_description_is_kept_with_the_one_before_it(tmp_path: Path) -> None:
    """Also where the plugin then refuses; always in JobCheckpointDir, readable by SlurmUser."""
    ran = checkpointed(
        tmp_path,
        JOB,
        "5s alice scontrol checkpoint create 1 ImageDir=/shared/x",
        "6s root scontrol update jobid=1 timelimit=33",
        "7s alice scontrol checkpoint create 1",
        "8s alice scancel 1",
    )
    assert said(ran, 3)[2] == 1
    old, new = saved(ran, "1.ckpt.old"), saved(ran)
    assert (old["image_dir"], new["image_dir"]) == ("/shared/x", "/shared/ckpt")
    assert old["nodes"] == "n[1-2]"
    assert (old["job"]["time_limit_min"], new["job"]["time_limit_min"]) == (0xFFFFFFFF, 33)
    stat = ran.world.disk.view("slurmctld", 0).stat("/shared/ckpt/1.ckpt")
    assert (stat.mode, stat.uid) == (0o600, ran.world.ctld.process.owner)
    assert not ran.world.disk.view("slurmctld", 0).exists("/shared/ckpt/1.ckpt.new")


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_restarted_job_has_its_id_and_begins_anew(tmp_path: Path, model: str) -> None:
    """Restarts 0, steps from 0, output kept, nodes that are free, images where they went."""
    ran = checkpointed(
        tmp_path,
        JOB,
        VACATE,
        "30s bob sbatch -N1 -w n1 --wrap 'sleep 100'",
        "40s alice scontrol checkpoint restart 1",
        "45s alice scontrol -o show job 1",
        "46s alice squeue -s -h",
        "50s alice scontrol checkpoint vacate 1",
        model=model,
    )
    assert said(ran, 3) == ("", "", 0)
    shown = said(ran, 4)[0]
    for text in ("JobId=1 ", "Restarts=0 ", "NodeList=n[2-3] ", "SubmitTime=2026-01-01T00:00:40"):
        assert text in shown
    assert " AllocNode:Sid=login:0 " in shown
    assert said(ran, 5)[0].split()[0] == "1.0"
    assert restart_dirs(ran) == ["", "/shared/ckpt/1"]
    launches: list[Any] = [each.args for each in ran.all("REQUEST_BATCH_JOB_LAUNCH", job=1)]
    assert {each["restart_cnt"] for each in launches} == {0}
    assert len(ran.all("slurm_ckpt_alloc_job", daemon="slurmctld", job=1, step="1.0")) == 2
    desc = ran.world.ctld.jobs.get(1)
    assert desc is None or desc.desc.appends


def test_the_plugin_is_not_asked_about_a_restart(tmp_path: Path) -> None:
    """A new checkpoint record is made, and slurm_ckpt_op never sees the operation."""
    ran = checkpointed(
        tmp_path, JOB, VACATE, "40s alice scontrol checkpoint restart 1", "50s alice scancel 1"
    )
    ops: list[Any] = [each.args for each in ran.all("slurm_ckpt_op")]
    assert [each["op"] for each in ops] == [4]
    assert len(ran.all("slurm_ckpt_alloc_job", job=1, step=UNSET)) == 2


def test_a_restart_tells_the_directory_it_is_given(tmp_path: Path) -> None:
    """In place of the one the images went to."""
    ran = checkpointed(
        tmp_path,
        JOB,
        "10s alice scontrol checkpoint vacate 1 ImageDir=/shared/x",
        "40s alice scontrol checkpoint restart 1",
        "50s alice scontrol checkpoint vacate 1",
        "80s alice scontrol checkpoint restart 1 ImageDir=/shared/z",
        "90s alice scancel 1",
    )
    assert restart_dirs(ran) == ["", "/shared/x/1", "/shared/z/1"]


def test_a_sticky_job_waits_for_its_nodes(tmp_path: Path) -> None:
    """Others are free, and it wants those of its last checkpoint."""
    ran = checkpointed(
        tmp_path,
        JOB,
        VACATE,
        "30s bob sbatch -N1 -w n2 --wrap 'sleep 60'",
        "40s alice scontrol checkpoint restart 1 StickToNodes",
        "45s alice scontrol -o show job 1",
        "100s alice scancel 1",
    )
    shown = said(ran, 4)[0]
    assert "ReqNodeList=n[1-2] " in shown
    assert "JobState=PENDING" in shown
    assert launches(ran)[1].time_us > 90_000_000


def test_a_sticky_job_waits_while_its_nodes_are_down(tmp_path: Path) -> None:
    """Until they are resumed."""
    ran = checkpointed(
        tmp_path,
        JOB,
        VACATE,
        "25s root scontrol update nodename=n2 state=down reason=x",
        "40s alice scontrol checkpoint restart 1 StickToNodes",
        "50s root scontrol update nodename=n2 state=resume",
        "80s alice scancel 1",
    )
    assert launches(ran)[1].time_us >= 50_000_000


def test_a_restart_waits_for_resources(tmp_path: Path) -> None:
    """With no node free it is an ordinary pending job."""
    ran = checkpointed(
        tmp_path,
        JOB,
        VACATE,
        "30s bob sbatch -N4 --wrap 'sleep 60'",
        "40s alice scontrol checkpoint restart 1",
        "41s alice squeue -h -o %T,%r",
        "120s alice scancel 1",
    )
    assert "PENDING,Resources" in said(ran, 4)[0]
    assert launches(ran)[1].time_us > 90_000_000


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 22), ("nonsense", 22), ('{"version": "JOB_CKPT_001"}', 22)],
)
def test_a_description_that_is_none_is_refused(tmp_path: Path, text: str, code: int) -> None:
    """Damaged, or of another shape: EINVAL."""
    file = f"files: {{/shared/ckpt/7.ckpt: {text!r}}}\n"
    ran = checkpointed(tmp_path, f"5s alice {ask('restart/7')}", more=file, model="modern")
    assert answers(ran) == [("restart/7", str(code), code)]


def test_another_version_and_another_job_are_refused(tmp_path: Path) -> None:
    """A whole description under another job's name, or of another version."""
    ran = checkpointed(tmp_path, JOB, VACATE, "20s alice scancel 1")
    good = saved(ran)
    old = {**good, "version": "JOB_CKPT_000", "job": {**good["job"], "job_id": 8}}
    files = {"/shared/ckpt/7.ckpt": json.dumps(good), "/shared/ckpt/8.ckpt": json.dumps(old)}
    other = tmp_path / "other"
    other.mkdir()
    ran = checkpointed(
        other, f"5s alice {ask('restart/7', 'restart/8')}", more=f"files: {json.dumps(files)}\n"
    )
    assert [code for _, _, code in answers(ran)] == [22, 22]


def test_what_a_restarted_job_asked_for_is_checked_again(tmp_path: Path) -> None:
    """Its nodes may be gone from the partition it names: the answer is that of a submission."""
    ran = checkpointed(
        tmp_path,
        JOB,
        VACATE,
        "25s root scontrol update partitionname=debug state=down",
        "26s root scontrol update partitionname=debug nodes=n[3-4]",
        "40s alice scontrol checkpoint restart 1 StickToNodes",
    )
    assert said(ran)[2] == 1
    assert "Requested node configuration is not available" in said(ran)[1]


def test_a_requeued_job_goes_on_from_its_images(tmp_path: Path) -> None:
    """The same record, one restart, and the launch tells where."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N2 --wrap 'srun sleep 20'",
        "10s alice scontrol checkpoint requeue 1",
        "100s alice scontrol requeue 1",
        "140s alice scontrol -o show job 1",
    )
    assert restart_dirs(ran) == ["", "/shared/ckpt/1"]
    assert "Restarts=1 " in said(ran)[0]
    assert [row.state for row in ran.result.rows] == ["COMPLETED"]


def test_a_requeue_that_the_plugin_refuses_does_not_move_the_images_of_one_under_way(
    tmp_path: Path,
) -> None:
    """The second was to go elsewhere, but is never made: the job goes on from the first."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N2 --wrap 'srun sleep 20'",
        "10s alice scontrol checkpoint requeue 1 ImageDir=/shared/one",
        "11s alice scontrol checkpoint requeue 1 ImageDir=/shared/two",
    )
    assert "Operation already in progress" in said(ran)[1]
    assert restart_dirs(ran) == ["", "/shared/one/1"]


def test_a_plain_requeue_before_any_checkpoint_starts_anew(tmp_path: Path) -> None:
    """And one after a restart starts from the images again."""
    ran = checkpointed(
        tmp_path,
        JOB,
        "5s alice scontrol requeue 1",
        "140s alice scontrol checkpoint requeue 1",
        "300s alice scontrol requeue 1",
        "450s alice scancel 1",
    )
    assert restart_dirs(ran) == ["", "", "/shared/ckpt/1", "/shared/ckpt/1"]


def test_what_a_job_waited_for_it_does_not_wait_for_again(tmp_path: Path) -> None:
    """An older job has taken the name of the only one of its name when that is restarted."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 -J other --wrap 'sleep 300'",
        "0s alice sbatch -N1 -J only --dependency=singleton --wrap 'sleep 60'",
        "5s alice scontrol checkpoint create 2",
        "10s alice scancel 2",
        "12s alice scontrol update jobid=1 jobname=only",
        "60s alice scontrol checkpoint restart 2",
        "70s alice scontrol -o show job 2",
    )
    assert "JobState=RUNNING " in said(ran)[0]


def test_a_job_that_was_held_and_released_is_not_held_by_its_restart(tmp_path: Path) -> None:
    """Whoever submitted it with --hold has let it go since."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -H -N1 --wrap 'sleep 300'",
        "1s alice scontrol release 1",
        "5s alice scontrol checkpoint create 1",
        "10s alice scancel 1",
        "60s alice scontrol checkpoint restart 1",
        "70s alice scontrol -o show job 1",
    )
    assert "JobState=RUNNING " in said(ran)[0]


def test_a_node_failure_after_a_periodic_checkpoint_restarts_from_it(tmp_path: Path) -> None:
    """Without an interval, or before its first checkpoint, the job starts anew."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 -w n1 --checkpoint=1 --wrap 'sleep 200'",
        "0s alice sbatch -N1 -w n2 --checkpoint=3 --wrap 'sleep 200'",
        "0s alice sbatch -N1 -w n3 --wrap 'sleep 200'",
        "100s root scontrol update nodename=n[1-3] state=down reason=x",
        "110s root scontrol update nodename=n[1-3] state=resume",
        young=False,
    )
    assert restart_dirs(ran, 1) == ["", "/shared/ckpt/1"]
    assert restart_dirs(ran, 2) == ["", ""]
    assert restart_dirs(ran, 3) == ["", ""]


PREEMPT = ", PreemptMode: CHECKPOINT, PreemptType: preempt/partition_prio"
LOW = "0s alice sbatch -N4 -p low --wrap 'sleep 60'"
HIGH = "10s bob sbatch -N4 -p high --wrap 'sleep 20'"


def test_a_preempted_job_is_checkpointed_and_comes_back(tmp_path: Path) -> None:
    """REQUEUE without a time to wait; the other starts once it is gone; sacct tells both runs."""
    rows = "200s alice sacct -DnXP -j1 -o State"
    ran = checkpointed(tmp_path, LOW, HIGH, rows, conf=PREEMPT)
    assert ran.result.commands[-1].stdout == "PREEMPTED\nCOMPLETED\n"
    ops: list[Any] = [each.args for each in ran.all("slurm_ckpt_op")]
    assert [(each["op"], each["data"]) for each in ops] == [(7, 0)]
    assert restart_dirs(ran) == ["", "/shared/ckpt/1"]
    assert 13_000_000 < launches(ran, 2)[0].time_us < 14_000_000
    assert {row.job_id: row.state for row in ran.result.rows} == {1: "COMPLETED", 2: "COMPLETED"}


@pytest.mark.parametrize(
    ("pattern", "ops", "state"),
    [
        ("slurm_ckpt_op args.op=7 errno=ESLURM_NOT_SUPPORTED", [7, 4], "FAILED"),
        ("slurm_ckpt_op args.op=7 errno=EBUSY", [7], "PREEMPTED"),
    ],
)
def test_a_job_that_cannot_be_requeued_is_vacated_or_ended(
    tmp_path: Path, pattern: str, ops: list[int], state: str
) -> None:
    """VACATE only where REQUEUE is not supported; any other error ends the job at once."""
    where, _, code = pattern.rpartition(" errno=")
    ran = checkpointed(
        tmp_path,
        f'0s fault {{fail: "{where}", errno: {code}}}',
        LOW,
        HIGH,
        conf=PREEMPT,
    )
    asked: list[Any] = [each.args for each in ran.all("slurm_ckpt_op")]
    assert [each["op"] for each in asked] == ops
    assert {row.job_id: row.state for row in ran.result.rows} == {1: state, 2: "COMPLETED"}


def test_the_plugin_is_asked_about_each_step_of_an_allocation_that_gives_way(
    tmp_path: Path,
) -> None:
    """It has no script to be checkpointed as a whole."""
    ran = checkpointed(tmp_path, "0s alice srun -N4 -p low sleep 60", HIGH, conf=PREEMPT)
    asked = ran.one("slurm_ckpt_op")
    assert (asked.step, asked.args["op"]) == ("1.0", 7)  # type: ignore[index]


def test_a_plugin_that_raises_ends_the_job(tmp_path: Path) -> None:
    """Its error is no number of Slurm's: the job is preempted as by CANCEL."""
    ran = checkpointed(
        tmp_path, '0s fault {raise: "slurm_ckpt_op args.op=7"}', LOW, HIGH, conf=PREEMPT
    )
    assert {row.job_id: row.state for row in ran.result.rows} == {1: "PREEMPTED", 2: "COMPLETED"}


def test_a_job_that_ignores_the_end_of_its_checkpoint_is_ended(tmp_path: Path) -> None:
    """SIGTERM after VACATE does nothing to it: PREEMPTED after two looks that found nothing."""
    ran = checkpointed(
        tmp_path,
        '0s fault {fail: "slurm_ckpt_op args.op=7", errno: ESLURM_NOT_SUPPORTED}',
        "0s alice sbatch -N4 -p low --wrap 'trap true TERM; sleep 200; sleep 200'",
        HIGH,
        conf=PREEMPT,
    )
    first = next(row for row in ran.result.rows if row.job_id == 1)
    assert first.state == "PREEMPTED"
    assert first.end_us == 60_000_000


def test_a_task_of_an_array_comes_back_as_a_job_of_its_own(tmp_path: Path) -> None:
    """Under its own id, with the task's variables; the array's number is its own from then on."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 -a 3-4 --wrap 'sleep 300'",
        "10s alice scontrol checkpoint vacate 1",
        "10s alice scontrol checkpoint vacate 2",
        "40s alice scontrol checkpoint restart 1",
        "45s alice squeue -h -o %i,%F,%K",
        "46s alice scancel 1",
    )
    assert said(ran, 4)[0].split() == ["1,1,N/A"]
    desc: Any = saved(ran)["job"]
    assert desc["environment"]["SLURM_ARRAY_TASK_ID"] == "4"
    assert {row.job_id: row.state for row in ran.result.rows}[1] == "CANCELLED"


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_job_of_roots_goes_on_from_its_images_as_root(tmp_path: Path, model: str) -> None:
    """The task is the job's owner, whoever that is."""
    ran = checkpointed(
        tmp_path,
        "0s root sbatch -N1 --wrap 'sleep 20'",
        "10s root scontrol checkpoint requeue 1",
        model=model,
    )
    restarts = [each for each in ran.events if each.name == "slurm_ckpt_restart_task"]
    assert {each.euid for each in restarts} == {0}
    assert ran.result.orderings.broken == ()
