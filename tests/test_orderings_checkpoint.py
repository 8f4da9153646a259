"""Each rule about checkpoints holds in a run, and is broken once its events are damaged."""

from functools import cache

import pytest
from msgspec import UNSET

from simctl.kernel.orders import begin_seq, begin_us
from simctl.orderings.checking import declared
from simctl.orderings.observed import arg
from tests.checkpoints import checkpoint, checkpointed
from tests.cluster import TWO_NODES, Ran, run
from tests.damaged import Damage, changed, copied, doubled, dropped, moved, told
from tests.moments import timeline
from tests.test_ompi import SLOW, ran_with

_LINES = (
    checkpoint("3m", "vacate 1"),
    checkpoint("4m", "restart 1"),
    checkpoint("4m30s", "create 1.0 MaxWait=60"),
    checkpoint("5m", "create 1 MaxWait=60"),
    "{at: 7m, run: scontrol suspend 1}",
    "{at: 8m, run: scontrol resume 1}",
)


@cache
def vacated(model: str) -> Ran:
    """Return a run of a job that was vacated, restarted, saved once more and suspended."""
    ran = checkpointed(*_LINES, model=model)
    assert any(each.name == "slurm_ckpt_restart_task" for each in ran.events)
    assert ran.job(1)[0] == "COMPLETED"
    return ran


@cache
def reported(model: str) -> Ran:
    """Return a run of a step that saves itself, and reports that it has."""
    ran = ran_with(checkpoint("2m", "create 1.0"), job=SLOW, model=model)
    assert ran.all("slurm_ckpt_comp")
    return ran


OP = "slurm_ckpt_op job=1"
SAVED = "slurm_ckpt_signal_tasks step=1.batch"
TASKS = "REQUEST_CHECKPOINT_TASKS daemon=slurmstepd step=1.batch"
RESTARTED = "slurm_ckpt_restart_task phase=enter"
PREFORK = "slurm_ckpt_stepd_prefork step=1.0"
COMP = "slurm_ckpt_comp"
STOP = "REQUEST_STEP_SUSPEND daemon=slurmstepd step=1.batch"
OVER = "job_state job=1 args.from=COMPLETED|COMPLETING"
ANSWER = "RESPONSE_SLURM_RC phase=send args.answers=REQUEST_CHECKPOINT"
REPORT_ANSWER = "RESPONSE_SLURM_RC phase=send args.answers=REQUEST_CHECKPOINT_COMP"
STEP_OVER = "step_state step=1.0 state=COMPLETED"
OURS = {
    each.name for each in declared() if each.number in (*range(18, 35), 57, 62, 63, 64, 66, 70, 71)
}

DAMAGES: dict[str, tuple[Damage | tuple[Damage, ...], dict[str, str]]] = {
    "a record before build": (
        moved("slurm_ckpt_alloc_job step=1.0", before="switch_p_build_jobinfo step=1.0"),
        {"checkpoint-record-made-in-place": "alloc_job follows switch_p_alloc_jobinfo"},
    ),
    "a record outside a submission": (
        moved("slurm_ckpt_alloc_job job=1", after="REQUEST_COMPLETE_BATCH_SCRIPT phase=receive"),
        {
            "checkpoint-record-made-in-place": (
                "alloc_job was called in the course of REQUEST_COMPLETE_BATCH_SCRIPT"
            ),
        },
    ),
    "a record after another step was built": (
        changed("switch_p_build_jobinfo step=1.0", step="1.7"),
        {"checkpoint-record-made-in-place": "alloc_job follows switch_p_build_jobinfo"},
    ),
    "a record after a build that failed": (
        changed("switch_p_build_jobinfo step=1.0", rc=-1),
        {"checkpoint-record-made-in-place": "alloc_job follows a build_jobinfo that failed"},
    ),
    "a record of a saved step": (
        changed("switch_p_build_jobinfo step=1.0", name="switch_p_unpack_jobinfo"),
        {"checkpoint-record-made-in-place": "alloc_job follows switch_p_unpack_jobinfo"},
    ),
    "a record of a saved step that cannot be made": (
        (
            changed("switch_p_build_jobinfo step=1.0", name="switch_p_unpack_jobinfo"),
            changed("slurm_ckpt_alloc_job step=1.0", rc=-1),
        ),
        {"checkpoint-record-freed-once": "free_job of a record that was never made"},
    ),
    "a record handed out twice": (
        changed("slurm_ckpt_alloc_job step=1.0", rc="#1"),
        {"checkpoint-record-freed-once": "record #1 was handed out twice"},
    ),
    "a step's record freed before its credential": (
        moved("slurm_ckpt_free_job step=1.0", after="switch_p_job_step_complete step=1.0"),
        {"checkpoint-record-freed-once": "free_job follows switch_p_job_step_complete, not"},
    ),
    "prefork in a task": (
        changed(PREFORK, role="task"),
        {"prefork-before-tasks": "stepd_prefork was called by the task"},
    ),
    "prefork after an init that failed": (
        changed("switch_p_job_init step=1.0", rc=-1),
        {"prefork-before-tasks": "stepd_prefork follows a job_init that failed"},
    ),
    "a restart after an attach that failed": (
        changed("switch_p_job_attach step=1.0", 2, rc=-1),
        {"restart-replaces-exec": "restart_task follows a failed attach"},
    ),
    "a restart of another task": (
        changed(RESTARTED, args_gtid=7),
        {"restart-replaces-exec": "restart_task was told of task 7"},
    ),
    "a restart after the program": (
        moved("exec role=task step=1.batch", nth=1, before=RESTARTED),
        {"restart-replaces-exec": "it executed something before restart_task"},
    ),
    "a restart from other images": (
        changed(RESTARTED, args_image_dir="/x"),
        {
            "restarted-once-if-asked": "it was launched with /shared/ckpt/1, restarted from /x",
        },
    ),
    "images before there are tasks": (
        (
            moved(TASKS, before="slurm_ckpt_stepd_prefork step=1.batch"),
            moved(SAVED, before="slurm_ckpt_stepd_prefork step=1.batch"),
        ),
        {"signal-tasks-once-a-request": "signal_tasks before its tasks were forked"},
    ),
    "images of the next second": (
        (
            copied(TASKS, args_timestamp=1_767_225_781),
            doubled(SAVED),
        ),
        {},
    ),
    "images of another directory": (
        changed(SAVED, args_image_dir="/x"),
        {"signal-tasks-once-a-request": "signal_tasks without a request for its directory"},
    ),
    "images once it is resumed": (
        (
            moved(TASKS, nth=-1, after="REQUEST_STEP_RESUME daemon=slurmstepd step=1.batch"),
            moved(SAVED, nth=-1, after="REQUEST_CHECKPOINT_TASKS step=1.batch", to=-1),
        ),
        {},
    ),
    "an op of the only step in place of the whole": (changed(OP, step="1.0"), {}),
    "an op of another step in place of the whole": (
        changed(OP, step="1.7"),
        {
            "op-answered-as-it-went": "op was called of 1.7; its steps are 1.0",
            "op-of-running-jobs": "op was called of a step that is not there",
        },
    ),
    "no op of the whole": (dropped(OP), {}),
    "a restart that calls op": (
        changed("REQUEST_CHECKPOINT phase=receive", args_op=5),
        {"op-answered-as-it-went": "a RESTART called op"},
    ),
    "an op that failed with no number": (
        (changed(f"{OP} step=1.0", rc=-1), changed(ANSWER, 2, args_return_code=5)),
        {},
    ),
    "a record freed twice": (
        doubled("slurm_ckpt_free_job step=1.0"),
        {"checkpoint-record-freed-once": "free_job of a record that was never made"},
    ),
    "a step's record kept": (
        dropped("slurm_ckpt_free_job step=1.0"),
        {"checkpoint-record-freed-once": "the step is over, and its record was not freed"},
    ),
    "a job's record kept": (
        dropped("slurm_ckpt_free_job", -1),
        {"checkpoint-record-freed-once": "the job is over and forgotten"},
    ),
    "a step's record freed too late": (
        moved("slurm_ckpt_free_job step=1.0", after="step_state step=1.0 state=COMPLETED"),
        {"checkpoint-record-freed-once": "the step is over, and its record was not freed"},
    ),
    "a job's record freed too early": (
        moved("slurm_ckpt_free_job", before="job_state job=1 args.from=RUNNING", nth=-1, to=-1),
        {"checkpoint-record-freed-once": "free_job of a job that is RUNNING"},
    ),
    "no prefork": (
        dropped(PREFORK),
        {"prefork-before-tasks": "a task was forked, and stepd_prefork was not called"},
    ),
    "prefork twice": (
        doubled(PREFORK),
        {"prefork-before-tasks": "stepd_prefork was called twice"},
    ),
    "prefork before init": (
        moved(PREFORK, before="switch_p_job_init step=1.0"),
        {"prefork-before-tasks": "stepd_prefork began before job_init ended"},
    ),
    "prefork after a fork": (
        moved(PREFORK, before="switch_p_job_attach step=1.0"),
        {"prefork-before-tasks": " comes before stepd_prefork"},
    ),
    "prefork failed": (
        changed(PREFORK, rc=-1),
        {
            "prefork-before-tasks": "a task was forked although stepd_prefork failed",
            "attach-count": "slurm_ckpt_stepd_prefork failed",
        },
    ),
    "prefork as the user": (
        changed(PREFORK, uid=1001, euid=1001),
        {"prefork-before-tasks": "stepd_prefork was called as 1001"},
    ),
    "a restart twice": (
        doubled("slurm_ckpt_restart_task step=1.batch phase=enter"),
        {"restarted-once-if-asked": "restart_task was called 2 times"},
    ),
    "a restart before attach": (
        moved(
            "slurm_ckpt_restart_task step=1.0 phase=enter",
            before="switch_p_job_attach step=1.0",
            to=2,
        ),
        {
            "restart-replaces-exec": "restart_task was called before job_attach",
            "attach-before-exec": "slurm_ckpt_restart_task came before its attach",
        },
    ),
    "a restart as root": (
        changed(RESTARTED, uid=0, euid=0),
        {"restart-replaces-exec": "restart_task was called as 0"},
    ),
    "a restart that comes back and goes on": (
        changed(RESTARTED, phase=UNSET, rc=-1),
        {"restart-replaces-exec": "restart_task came back, and it went on"},
    ),
    "a restart from nowhere": (
        changed("slurm_ckpt_restart_task step=1.batch phase=enter", args_image_dir=""),
        {
            "restart-replaces-exec": "restart_task has no directory of images",
            "restarted-once-if-asked": "restarted from ",
        },
    ),
    "a restart that nobody asked for": (
        changed("REQUEST_BATCH_JOB_LAUNCH phase=receive", 1, args_restart_dir=""),
        {"restarted-once-if-asked": "it was launched without images, and restarted"},
    ),
    "no restart": (
        dropped("slurm_ckpt_restart_task step=1.batch phase=enter"),
        {"restarted-once-if-asked": "it was launched with images, and executed afresh"},
    ),
    "images that nobody asked for": (
        dropped("REQUEST_CHECKPOINT_TASKS daemon=slurmstepd step=1.batch"),
        {"signal-tasks-once-a-request": "signal_tasks without a request"},
    ),
    "images twice": (
        doubled(SAVED),
        {"signal-tasks-once-a-request": "signal_tasks without a request"},
    ),
    "images of the second before": (
        (
            doubled("REQUEST_CHECKPOINT_TASKS daemon=slurmstepd step=1.batch"),
            doubled(SAVED),
        ),
        {"signal-tasks-once-a-request": "signal_tasks twice for requests of one second"},
    ),
    "images while suspended": (
        (
            moved("REQUEST_CHECKPOINT_TASKS daemon=slurmstepd step=1.batch", nth=-1, after=STOP),
            moved(SAVED, nth=-1, after="REQUEST_CHECKPOINT_TASKS step=1.batch", to=-1),
        ),
        {"signal-tasks-once-a-request": "signal_tasks while it is suspended"},
    ),
    "an op of a job that is over": (
        (
            moved("REQUEST_CHECKPOINT phase=receive args.op=4", after=OVER),
            moved(f"{OP} args.op=4", after="REQUEST_CHECKPOINT phase=receive args.op=4"),
            moved(ANSWER, after=f"{OP} args.op=4"),
        ),
        {"op-of-running-jobs": "op was called while the job was COMPLETED"},
    ),
    "an op for a restart": (
        changed(OP, args_op=5),
        {"op-of-running-jobs": "op was called for a RESTART"},
    ),
    "an op that nobody asked for": (
        moved(OP, before="REQUEST_CHECKPOINT phase=receive"),
        {
            "op-of-running-jobs": "was called, and nobody asked for it",
        },
    ),
    "an op of a step that is gone": (
        changed(f"{OP} step=1.0", step="1.7"),
        {"op-of-running-jobs": "op was called of a step that is not there"},
    ),
    "an answer without op": (
        dropped(f"{OP} step=1.0"),
        {"op-answered-as-it-went": "it was answered 0, and op was not called"},
    ),
    "a good answer of a bad op": (
        changed(f"{OP} step=1.0", rc=2037),
        {"op-answered-as-it-went": "it was answered 0, and op returned 2037"},
    ),
    "a bad answer of a good op": (
        changed("RESPONSE_SLURM_RC phase=send args.answers=REQUEST_CHECKPOINT", args_return_code=3),
        {"op-answered-as-it-went": "it was answered 3, and every op went well"},
    ),
    "the lower of two errors": (
        (
            copied(f"{OP} step=1.0", step="1.batch", rc=3000),
            changed(f"{OP} step=1.0", rc=2037),
            changed(ANSWER, 2, args_return_code=2037),
        ),
        {"op-answered-as-it-went": "it was answered 2037, and the highest error is 3000"},
    ),
    "the higher of two errors": (
        (
            copied(f"{OP} step=1.0", step="1.batch", rc=3000),
            changed(f"{OP} step=1.0", rc=2037),
            changed(ANSWER, 2, args_return_code=3000),
        ),
        {},
    ),
    "a good answer of a bad op, of the other form": (
        (
            changed(ANSWER, 2, name="RESPONSE_CHECKPOINT"),
            changed(f"{OP} step=1.0", rc=2037),
        ),
        {"op-answered-as-it-went": "it was answered 0, and op returned 2037"},
    ),
    "an error, and no op": (
        (dropped(f"{OP} step=1.0"), changed(ANSWER, 2, args_return_code=2037)),
        {},
    ),
    "an op of a step whose record is freed": (
        moved("slurm_ckpt_free_job step=1.0 role=slurmctld", before=f"{OP} step=1.0"),
        {
            "op-of-running-jobs": "op was called of a step that is not there",
            "checkpoint-record-freed-once": "the step is over, and its record was not freed",
        },
    ),
    "an answer before its op": (
        (doubled(ANSWER, 2), moved(ANSWER, nth=3, before=f"{OP} step=1.0")),
        {
            "op-answered-as-it-went": "it was answered 0, and op was not called",
            "op-of-running-jobs": "a periodic CREATE came within a minute of the start",
        },
    ),
    **{
        f"what is no answer before an op: {other}": (
            (
                doubled(ANSWER, 2),
                moved(ANSWER, nth=3, before=f"{OP} step=1.0"),
                changed(ANSWER, 2, **other),
            ),
            {},
        )
        for other in (
            {"kind": "process"},
            {"phase": "receive"},
            {"peer": "squeue@login"},
            {"name": "RESPONSE_PING"},
            {"args_answers": "REQUEST_PING"},
        )
    },
    "two ops of a step": (
        doubled(f"{OP} step=1.0"),
        {"op-answered-as-it-went": "op was called twice of one step"},
    ),
}

REPORTS: dict[str, tuple[Damage | tuple[Damage, ...], dict[str, str]]] = {
    "a report that is late": (
        (
            moved("REQUEST_CHECKPOINT_COMP phase=receive", after=STEP_OVER),
            moved(COMP, after="REQUEST_CHECKPOINT_COMP phase=receive"),
        ),
        {"reports-of-what-runs": "a report was handed on"},
    ),
    "a report of a job that waits": (
        changed("job_state state=RUNNING", args_to="PENDING"),
        {
            "reports-of-what-runs": "a report was handed on while the job was PENDING",
            "op-of-running-jobs": "op was called while the job was PENDING",
        },
    ),
    "a report of a job that is suspended": (
        changed("job_state state=RUNNING", args_to="SUSPENDED"),
        {"op-of-running-jobs": "op was called while the job was SUSPENDED"},
    ),
    "a report of a step that is not there": (
        changed(COMP, step="1.7"),
        {"reports-of-what-runs": "a report was handed on about a step that is not there"},
    ),
    "a report kept back": (
        dropped(COMP),
        {"reports-handed-on-once": "it was answered 0, and slurm_ckpt_comp was not called"},
    ),
    "a report twice": (
        doubled(COMP),
        {"reports-handed-on-once": "slurm_ckpt_comp was called 2 times"},
    ),
    "a report that is refused": (
        (dropped(COMP), changed(REPORT_ANSWER, args_return_code=22)),
        {},
    ),
    "a report of a task that is refused": (
        (
            changed(COMP, name="slurm_ckpt_task_comp"),
            changed(REPORT_ANSWER, args_return_code=22),
        ),
        {"reports-handed-on-once": "slurm_ckpt_task_comp was called, not slurm_ckpt_comp"},
    ),
    "a report of a step that is over": (
        changed("step_state step=1.0 state=RUNNING", args_to="COMPLETED"),
        {
            "reports-of-what-runs": "a report was handed on about a step that is not there",
            "op-of-running-jobs": "op was called of a step that is not there",
            "checkpoint-record-freed-once": "the step is over, and its record was not freed",
        },
    ),
    "a report of a task": (
        changed(COMP, name="slurm_ckpt_task_comp"),
        {"reports-handed-on-once": "it was answered 0, and slurm_ckpt_comp was not called"},
    ),
}


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_they_hold(model: str) -> None:
    """In runs where jobs and steps are saved and restarted."""
    assert told(vacated(model)) == {}
    assert told(reported(model)) == {}


def test_each_rule_about_checkpoints_can_be_broken() -> None:
    """None is forgotten here."""
    shown = {rule for _, wanted in (DAMAGES | REPORTS).values() for rule in wanted}
    about = "simctl.orderings.checkpoint"
    ours = {
        each.name for each in declared() if getattr(each.check, "__module__", "").startswith(about)
    }
    assert ours <= shown
    assert len(ours) >= 10


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("name", [*DAMAGES, *REPORTS])
def test_damage_breaks_the_rules_that_forbid_it_and_no_other(name: str, model: str) -> None:
    """Each says what is wrong; rules about other things may see something in it too."""
    ran = reported(model) if name in REPORTS else vacated(model)
    damage, wanted = (DAMAGES | REPORTS)[name]
    found = told(ran, *(damage if isinstance(damage, tuple) else (damage,)))
    assert {*found} & OURS == {*wanted} & OURS
    for rule, what in wanted.items():
        assert what in found[rule]


def test_images_are_made_while_the_step_daemon_goes_on() -> None:
    """signal_tasks is a thread's: a step may end meanwhile, but no second one may begin."""
    inside = "exit role=script step=1.batch"
    ended = moved("fini step=1.batch plugin=checkpoint/blcr", before=inside)
    assert "one-call-at-a-time" not in told(vacated("guide"), ended)
    again = doubled(SAVED), moved(SAVED, nth=1, before=inside)
    assert told(vacated("guide"), *again)["one-call-at-a-time"] == (
        "slurm_ckpt_signal_tasks was called inside slurm_ckpt_signal_tasks"
    )


@pytest.mark.parametrize(("at_us", "early"), [(60_000_099, True), (60_000_100, False)])
def test_a_checkpoint_comes_by_itself_a_minute_after_the_start_at_the_earliest(
    at_us: int, early: bool
) -> None:
    """What preemption has the plugin do meanwhile, in vain, is no checkpoint that counts."""
    ran = run(
        "slurm_conf: {CheckpointType: checkpoint/ompi, PreemptType: preempt/partition_prio, "
        "PreemptMode: CHECKPOINT}\n"
        + timeline(
            "at: 0s, as: alice, run: \"sbatch -N2 --checkpoint=1 --wrap 'sleep 500'\"",
            "at: 40s, as: bob, run: sbatch -N2 -p urgent --wrap true",
        ),
        cluster=TWO_NODES.replace(
            "true}]", "true, grace_time: 90}, {name: urgent, nodes: ALL, priority_tier: 2}]"
        ),
    )
    assert [arg(each, "op") for each in ran.all("slurm_ckpt_op", rc=-1)] == [7, 4, 3]
    found = told(ran, changed("slurm_ckpt_op args.op=3", time_us=at_us))
    assert bool(found) is early
    assert not early or "came within a minute" in found["op-of-running-jobs"]


@pytest.mark.parametrize("of", ["job", "one before"])
@pytest.mark.parametrize(("past_us", "early"), [(0, False), (1, True)])
def test_a_checkpoint_by_itself_waits_for_the_later_of_start_and_last(
    of: str, past_us: int, early: bool
) -> None:
    """A minute after the one before, and after a start that came later than that one did."""
    ran = run(
        "slurm_conf: {CheckpointType: checkpoint/ompi}\n"
        + timeline("at: 0s, as: alice, run: \"sbatch --checkpoint=1 --wrap 'sleep 500'\""),
        cluster=TWO_NODES,
    )
    second = ran.all("slurm_ckpt_op")[1]
    latest_us = begin_us(second) - 60_000_000 + past_us
    start = "job_state job=1 state=RUNNING"
    early_op = changed("slurm_ckpt_op", time_us=latest_us - 5_000_000, t0_us=UNSET)
    damages = {
        "job": (
            early_op,
            doubled(start),
            changed(start, 1, time_us=latest_us),
            moved(start, nth=1, before="slurm_ckpt_op", to=1),
        ),
        "one before": (
            changed(start, time_us=0),
            changed("slurm_ckpt_op", time_us=latest_us, t0_us=UNSET),
        ),
    }[of]
    assert ("op-of-running-jobs" in told(ran, *damages)) is early


def test_a_checkpoint_that_was_asked_for_puts_off_none_that_comes_by_itself() -> None:
    """Only one that came by itself is the one before."""
    ran = run(
        "slurm_conf: {CheckpointType: checkpoint/ompi}\n"
        + timeline(
            "at: 0s, as: alice, run: \"sbatch --checkpoint=1 --wrap 'sleep 500'\"",
            "at: 90s, as: alice, run: scontrol checkpoint create 1",
        ),
        cluster=TWO_NODES,
    )
    first, asked, second = ran.all("slurm_ckpt_op")[:3]
    assert begin_us(first) < begin_us(asked) < begin_us(second) < begin_us(asked) + 60_000_000
    assert told(ran) == {}


def test_a_request_that_waits_its_turn_is_served_before_a_suspension_that_came_later() -> None:
    """Saving takes longer than a minute: the second request waits when the suspension comes."""
    text = """
slurm_conf: {CheckpointType: checkpoint/blcr}
checkpoint: {bandwidth: 1MiB}
timeline:
  - {at: 0s, as: alice, run: "sbatch --checkpoint=1 --wrap 'sleep 200'"}
  - {at: 153s, run: "scontrol suspend 1"}
  - {at: 300s, run: "scancel 1"}
"""
    cluster = TWO_NODES.replace("cpus: 4", "cpus: 1, memory_mb: 200")
    ran = run(text, cluster=cluster)
    saves = [begin_seq(each) for each in ran.all("slurm_ckpt_signal_tasks")]
    suspension = ran.one("REQUEST_STEP_SUSPEND", daemon="slurmstepd", phase="receive")
    assert [save > suspension.seq for save in saves] == [False, True]
