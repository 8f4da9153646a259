"""Job arrays: one record, split as tasks start; ids, copies, limits, single tasks."""

from typing import Any

import attrs
import pytest
from msgspec import UNSET

from simctl.ctld.state.records import JobRecord
from simctl.wire.arrays import format_tasks, parse_array
from tests.cluster import TWO_NODES, Ran, run
from tests.entries import args, entries

FILES = """\
files:
  task.sh: |
    #!/bin/sh
    echo "$SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT \
$SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX:$SLURM_ARRAY_TASK_STEP $SLURM_JOB_ID"
    srun sleep 10
"""


def array(*lines: str, model: str = "guide") -> Ran:
    """Run a timeline with a script that tells what it is of its array."""
    return run(entries(*lines, head=FILES), model=model)


def starts(ran: Ran) -> dict[int, int]:
    """Return when each task last started, in seconds."""
    return {
        int(str(event.array_task)): event.time_us // 1_000_000
        for event in ran.all("job_state", array_job=1)
        if args(event)["to"] == "RUNNING"
    }


def rows(ran: Ran) -> dict[int | None, tuple[int, str]]:
    """Return id and state of each row, by task."""
    return {
        row["array_task_id"]: (row["job_id"], row["state"])
        for row in (each.as_json() for each in ran.result.rows)
        if row["array_job_id"] == 1
    }


@pytest.mark.parametrize(
    ("text", "tasks", "limit"),
    [
        ("0-3", (0, 1, 2, 3), 0),
        ("0-9:2%3", (0, 2, 4, 6, 8), 3),
        ("1,3,5-9:2", (1, 3, 5, 7, 9), 0),
        ("7", (7,), 0),
        ("3,1,3", (1, 3), 0),
        ("1000", (1000,), 0),
    ],
)
def test_an_array_is_read_as_sbatch_reads_it(text: str, tasks: tuple[int, ...], limit: int) -> None:
    """Ranges, steps, lists, and how many may run at a time."""
    assert parse_array(text) == (tasks, limit)


@pytest.mark.parametrize(
    ("text", "told"), [("0-3", "0-3:1"), ("1-7:3", "1-7:3"), ("0,4,6", "0-6:2"), ("5", "5-5:1")]
)
def test_the_step_of_an_array_is_the_least_that_lies_between_two_tasks(
    text: str, told: str
) -> None:
    """As tasks find it in their environment; a single one has a step of 1."""
    ran = array(f"0s alice sbatch --array={text} task.sh")
    found = [ran.world.disk.read(f"/home/alice/slurm-1_{task}.out") for task in range(8)]
    assert {each.split()[2] for each in found if each} == {told}


@pytest.mark.parametrize(
    "text", ["foo", "", "3-1", "0-2000", "1001", "0-3:0", "0-3%0", "0-3%x", "1,,2", "-1"]
)
def test_what_is_no_array_is_refused(text: str) -> None:
    """By sbatch with Slurm's error."""
    with pytest.raises(ValueError, match="no job array"):
        parse_array(text)
    if text:
        ran = array(f"0s alice sbatch -a={text} task.sh".replace("-a=", "--array="))
        assert ran.result.commands[0].errno == "ESLURM_INVALID_ARRAY"
        assert ran.stderr() == (
            "sbatch: error: Batch job submission failed: Invalid job array specification\n"
        )


def test_tasks_that_wait_are_printed_in_ranges() -> None:
    """As squeue prints them."""
    assert format_tasks((0, 1, 2, 5, 7, 8)) == "0-2,5,7-8"


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_tasks_are_split_off_as_they_start(model: str) -> None:
    """The first gets a new id, the last keeps the array's; each split copies the record.

    Slurm 18.08 copies none that is not there, which is what checkpoint/none has of it.
    """
    ran = array("0s alice sbatch -a 0-2 task.sh", model=model)
    assert rows(ran) == {
        0: (2, "COMPLETED"),
        1: (3, "COMPLETED"),
        2: (1, "COMPLETED"),
    }
    copies = ran.all("slurm_ckpt_copy_job")
    assert len(copies) == (2 if model == "guide" else 0)
    assert {event.role for event in copies} <= {"slurmctld"}
    assert {event.uid for event in copies} <= {64030}
    submission = [event for event in ran.all("slurm_ckpt_alloc_job") if event.step is UNSET]
    assert len(submission) == 1
    released = [event for event in ran.all("slurm_ckpt_free_job") if event.step is UNSET]
    assert sorted(int(str(event.job)) for event in released) == [1, 2, 3]
    for copy in copies:
        running = next(
            event
            for event in ran.all("job_state")
            if args(event)["to"] == "RUNNING" and event.seq > copy.seq
        )
        assert running.time_us == copy.time_us


def test_a_plugins_record_is_copied_from_copy_to_copy(tmp_path: Any) -> None:
    """Each split copies what the waiting tasks have, so that every record is one of its own."""
    (tmp_path / "counting.py").write_text(
        "from simctl.plugin import CheckpointPlugin\n"
        "class Counting(CheckpointPlugin):\n"
        "    plugin_type = 'checkpoint/counting'\n"
        "    plugin_name = 'counts generations'\n"
        "    def slurm_ckpt_alloc_job(self): return {'generation': 0}\n"
        "    def slurm_ckpt_copy_job(self, jobinfo):\n"
        "        return {'generation': jobinfo['generation'] + 1}\n"
    )
    text = (
        'plugins: ["./counting.py:Counting"]\n'
        "slurm_conf: {CheckpointType: checkpoint/counting}\n"
        + FILES
        + "timeline: [{at: 0s, as: alice, run: sbatch -a 0-2 task.sh}]\n"
    )
    ran = run(text, folder=tmp_path)
    first, second = ran.all("slurm_ckpt_copy_job")
    assert args(second)["jobinfo"] == first.rc != args(first)["jobinfo"]


def test_every_event_of_a_task_bears_its_array() -> None:
    """Plugin calls, messages, states and processes: array_job and array_task beside the id."""
    ran = array("0s alice sbatch -a 4-5 task.sh")
    for event in ran.events:
        if event.job is not UNSET and event.name != "RESPONSE_SUBMIT_BATCH_JOB":
            assert event.array_job == 1, event
    attach = ran.all("switch_p_job_attach")
    assert {(event.job, event.array_task) for event in attach} == {(2, 4), (1, 5)}


def test_a_task_knows_where_it_stands() -> None:
    """By its environment; its output file bears the array's id and its own number."""
    ran = array("0s alice sbatch -a 1-7:3 task.sh")
    disk = ran.world.disk
    assert disk.read("/home/alice/slurm-1_4.out") == "1 4/3 1-7:3 3\n"
    assert disk.read("/home/alice/slurm-1_7.out") == "1 7/3 1-7:3 1\n"


def test_no_more_tasks_run_than_may() -> None:
    """%1: one after the other, and a job behind the array passes it meanwhile."""
    ran = array("0s alice sbatch -a 0-2%1 task.sh", "0s alice sbatch --wrap 'sleep 5'")
    first, second, third = (starts(ran)[task] for task in range(3))
    assert 10 <= second - first <= 13
    assert 10 <= third - second <= 13
    other = next(
        event.time_us // 1_000_000
        for event in ran.all("job_state")
        if args(event)["to"] == "RUNNING" and event.array_job is UNSET
    )
    assert other <= 3


def test_the_reason_of_a_full_array_is_its_limit() -> None:
    """Told where tasks still wait at the end of a stopped run."""
    ran = array("0s alice sbatch -a 0-3%1 task.sh", "5s alice scontrol hold 1_[2-3]")
    assert rows(ran)[2][1] == "PENDING"
    states = {row.array_task_id: row.reason for row in ran.result.rows}
    assert states[2] == states[3] == "JobHeldUser"
    assert rows(ran)[1][1] == "COMPLETED"


@pytest.mark.parametrize(
    ("what", "cancelled"),
    [("1_2", {2}), ("1_[1-2]", {1, 2}), ("1_[0,3]", {0, 3}), ("1", {0, 1, 2, 3}), ("1_77", set())],
)
def test_single_tasks_can_be_cancelled(what: str, cancelled: set[int]) -> None:
    """Those that run and those that wait; one that there is not is left out."""
    ran = array("0s alice sbatch -a 0-3 task.sh", f"5s alice scancel {what}")
    assert ran.result.commands[1].exit == 0
    states = rows(ran)
    if what == "1":
        assert {state for _, state in states.values()} == {"CANCELLED"}
        assert set(states) == {None, 0, 1}
    else:
        found = {task for task, (_, state) in states.items() if state == "CANCELLED"}
        assert found == cancelled
        assert {state for _, state in states.values()} <= {"CANCELLED", "COMPLETED"}


def test_another_users_array_cannot_be_cancelled() -> None:
    """As with any job."""
    ran = array("0s alice sbatch -a 0-3 task.sh", "5s bob scancel 1_2", "6s bob scancel 1")
    assert [each.exit for each in ran.result.commands[1:]] == [210, 210]
    assert {state for _, state in rows(ran).values()} == {"COMPLETED"}


def test_an_array_is_held_and_released_as_one() -> None:
    """The record that stands for all tasks."""
    ran = array("0s alice sbatch -H -a 0-1 task.sh", "50s alice scontrol release 1")
    assert min(starts(ran).values()) == 50


def test_one_task_can_be_requeued() -> None:
    """The others go on; it runs again, with the same id."""
    ran = array("0s alice sbatch -a 0-1 task.sh", "5s alice scontrol requeue 1_0")
    assert rows(ran) == {0: (2, "COMPLETED"), 1: (1, "COMPLETED")}
    assert {row.array_task_id: row.restarts for row in ran.result.rows} == {0: 1, 1: 0}


@pytest.mark.parametrize(
    ("kind", "first", "state"),
    [
        ("afterok", "", "COMPLETED"),
        ("afternotok", "", "PENDING"),
        ("afterok", "5s alice scancel 1_1", "PENDING"),
        ("afternotok", "5s alice scancel 1_1", "COMPLETED"),
        ("afterany", "5s alice scancel 1_1", "COMPLETED"),
    ],
)
def test_a_dependency_on_an_array_means_all_its_tasks(kind: str, first: str, state: str) -> None:
    """Well if all went well, badly if any did not."""
    entries = ["0s alice sbatch -a 0-2 task.sh", f"1s bob sbatch -d {kind}:1 --wrap true"]
    ran = array(*entries, *([first] if first else []))
    (row,) = [each for each in ran.result.rows if not each.array_job_id]
    assert row.state == state
    if state == "COMPLETED":
        ends = [each.end_us for each in ran.result.rows if each.array_job_id]
        assert row.start_us >= max(ends)


def test_a_task_shares_nothing_that_changes_with_its_array() -> None:
    """Its record is a copy: a list in both would tell of one task what happens to another."""
    world = array("0s alice sbatch -H -a 0-1 task.sh").world
    job = world.ctld.jobs[1]
    task = job.split(2, place=2)
    values = {field.name: getattr(job, field.name) for field in attrs.fields(JobRecord)}
    mutable = {name for name, value in values.items() if isinstance(value, dict | list | set)}
    assert "left" in mutable
    assert [name for name in sorted(mutable) if getattr(task, name) is values[name]] == []


def test_tasks_behind_a_suspended_one_do_not_stall_the_run() -> None:
    """Who waits for a slot of the array waits for whoever suspended the task that has it."""
    ran = run(
        "timeline:\n"
        "  - {at: 0s, as: alice, run: \"sbatch -a 0-1%1 --wrap 'sleep 60'\"}\n"
        "  - {at: 5s, as: root, run: scontrol suspend 1_0}\n"
    )
    assert ran.result.stalled == ()
    assert sorted(row.state for row in ran.result.rows) == ["PENDING", "SUSPENDED"]


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_tasks_that_were_cancelled_before_any_had_a_record_do_not_come_back(model: str) -> None:
    """What is left of such an array says that it is over, and no more; it cannot run again."""
    ran = run(
        FILES
        + "timeline:\n"
        + "  - {at: 0s, as: alice, run: sbatch -H -a 0-1 task.sh}\n"
        + "  - {at: 1s, as: alice, run: scancel 1}\n"
        + "  - {at: 2s, fault: {restart: slurmctld, for: 1s}}\n"
        + "  - {at: 9s, as: alice, run: scontrol requeue 1}\n"
        + "  - {at: 10s, as: alice, run: scancel -u alice}\n",
        cluster=TWO_NODES,
        model=model,
    )
    assert [row.state for row in ran.result.rows] == ["CANCELLED"]


def test_a_task_that_is_requeued_makes_room_for_the_next() -> None:
    """%2: it waits two minutes to start again, and two others run meanwhile."""
    ran = array(
        "0 alice sbatch --array=0-3%2 -n1 --wrap 'sleep 30'", "10 alice scontrol requeue 1_0"
    )
    assert starts(ran) == {0: 131, 1: 0, 2: 10, 3: 30}


@pytest.mark.parametrize("line", ["update jobid=1_3 nice=5", "requeue 1_3", "hold 1_3"])
def test_a_job_that_is_no_array_has_no_tasks(line: str) -> None:
    """Whoever names one is refused, and the job is as it was."""
    ran = array("0 alice sbatch -H --wrap true", f"1 alice scontrol {line}", "9 alice scancel 1")
    assert [each.exit for each in ran.result.commands] == [0, 1, 0]
    assert "Invalid job id specified" in ran.result.commands[1].stderr


def test_a_task_that_runs_again_counts_for_its_throttle() -> None:
    """%1 lets one run at a time, whichever way the first was ended."""
    ran = run(
        "timeline:\n"
        "  - {at: 0s, as: alice, run: \"sbatch -a 1-3%1 --wrap 'sleep 10'\"}\n"
        "  - {at: 15s, as: root, run: scontrol requeue 1_1}\n"
        "  - {at: 18s, as: alice, run: 'squeue -h -t R -o %i'}\n",
        cluster=TWO_NODES,
    )
    assert ran.result.commands[2].stdout == "1_2\n"
