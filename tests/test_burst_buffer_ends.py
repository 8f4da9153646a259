"""When slurmctld calls the functions of burst buffer plugins as jobs end, and after that.

Every run here is also held against the built-in orderings.
"""

from typing import Any

import pytest

from simctl.kernel.events import Event
from tests.cluster import Ran
from tests.staged import arg, calls, staged, story

BOTH = pytest.mark.parametrize("model", ["guide", "modern"])
SLEEPS: dict[str, Any] = {"does": "sleep 1000"}
CANCEL = "12 root: scancel 1"
TOLD = ("REQUEST_TERMINATE_JOB", "REQUEST_KILL_TIMELIMIT", "REQUEST_KILL_PREEMPTED")


def preempts(mode: str) -> dict[str, Any]:
    """Return a cluster in which jobs of one partition make way for those of another."""
    return {
        "cluster": 'nodes: [{name: "n[1-2]", cpus: 4}]\n'
        'partitions: [{name: low, nodes: "n[1-2]", default: true, priority_tier: 1}, '
        '{name: high, nodes: "n[1-2]", priority_tier: 5}]\n'
        "users: {alice: 1001, bob: 1002}\n",
        "conf": f'PreemptType: preempt/partition_prio, PreemptMode: "{mode}"',
    }


TAKEN = ("1: sbatch -N2 job.sh", "12: sbatch -N2 -p high plain.sh")
RUN_ENDS: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "by itself": (("1: sbatch job.sh",), {}, "COMPLETED"),
    "with an error": (("1: sbatch job.sh",), {"does": "exit 3"}, "FAILED"),
    "cancelled": (("1: sbatch job.sh", CANCEL), SLEEPS, "CANCELLED"),
    "cancelled before its launch": (("1: sbatch job.sh", "7 root: scancel 1"), {}, "CANCELLED"),
    "by its limit": (("1: sbatch -t 1 job.sh",), SLEEPS, "TIMEOUT"),
    "by its deadline": (
        (
            "1: sbatch -t 1 --deadline=now+70 job.sh",
            "12 root: scontrol suspend 1",
            "22 root: scontrol resume 1",
        ),
        SLEEPS,
        "DEADLINE",
    ),
    "with its node": (
        ("1: sbatch --no-requeue job.sh", "12 {fault: {crash: n1}}"),
        SLEEPS,
        "NODE_FAIL",
    ),
    "with one of its nodes": (
        ("1: sbatch -N2 --no-requeue job.sh", "12 {fault: {crash: n2}}"),
        SLEEPS,
        "NODE_FAIL",
    ),
    "requeued": (
        ("1: sbatch job.sh", "12 root: scontrol requeue 1"),
        {"does": "sleep 30"},
        "COMPLETED",
    ),
    "requeued with its node": (
        ("1: sbatch job.sh", "12 {fault: {crash: n1}}"),
        {"does": "sleep 30"},
        "COMPLETED",
    ),
    "preempted and requeued": (TAKEN, preempts("requeue"), "COMPLETED"),
    "preempted and cancelled": (TAKEN, preempts("cancel"), "PREEMPTED"),
    "suspended and cancelled": (
        ("1: sbatch job.sh", "12 root: scontrol suspend 1", "14 root: scancel 1"),
        SLEEPS,
        "CANCELLED",
    ),
    "of an srun": (("1: srun --bb='in=5 pre=2 post=1' sleep 5",), {}, "COMPLETED"),
    "without burst buffer": (("1: sbatch plain.sh",), {}, "COMPLETED"),
}


@BOTH
@pytest.mark.parametrize("end", RUN_ENDS)
def test_the_end_of_a_run_starts_the_stage_out_before_the_nodes_are_told(
    model: str, end: str
) -> None:
    """Once a run, however it ends, right after the change of state; nothing is cancelled."""
    timeline, terms, state = RUN_ENDS[end]
    ran = staged(*timeline, model=model, **terms)
    assert ran.job()[0] == state
    found = story(ran, 1, *TOLD)
    runs = found.count("begin")
    assert runs == (2 if "requeued" in end else 1)
    assert found.count("start_stage_out") == runs
    assert "cancel" not in found
    for at, each in enumerate(found):
        if each == "start_stage_out":
            assert found[at - 1].split("|")[0] not in ("RUNNING", "SUSPENDED", "begin")
            assert not set(found[found.index("begin") : found.index("start_stage_out")]) & {*TOLD}
    if "node" not in end:
        assert set(found) & {*TOLD}


CANCELS: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "with its data on the way": (("1: sbatch job.sh", "4: scancel 1"), {}, "CANCELLED"),
    "before anything": (("1: sbatch -H job.sh", "4: scancel 1"), {}, "CANCELLED"),
    "that waits for others": (
        ("1: sbatch plain.sh", "2: sbatch -d afterany:1 job.sh", "4: scancel 2"),
        {"job_id": 2},
        "CANCELLED",
    ),
    "that waits in vain": (
        ("1: sbatch plain.sh", "2: sbatch -d afternotok:1 --kill-on-invalid-dep=yes job.sh"),
        {"job_id": 2},
        "CANCELLED",
    ),
    "by its deadline": (("1: sbatch -t 1 --deadline=now+62 job.sh",), {}, "DEADLINE"),
    "held by its deadline": (("1: sbatch -H -t 1 --deadline=now+90 job.sh",), {}, "DEADLINE"),
    "as an allocation": (("1: srun --bb=in=9 true", "4: scancel 1"), {}, "CANCELLED"),
    "as one that will not wait": (("1: srun --immediate --bb=in=9 true",), {}, "FAILED"),
    "without burst buffer": (
        ("1: sbatch -H plain.sh", "4: scancel 1"),
        {},
        "CANCELLED",
    ),
    "with its whole array": (("1: sbatch -H -a 0-3 job.sh", "4: scancel 1"), {}, "CANCELLED"),
}


@BOTH
@pytest.mark.parametrize("end", CANCELS)
def test_the_end_of_a_job_that_never_ran_cancels_its_staging(model: str, end: str) -> None:
    """Once, after the change of state and within the same request; nothing is staged out."""
    timeline, terms, state = CANCELS[end]
    terms = dict(terms)
    job = terms.pop("job_id", 1)
    ran = staged(*timeline, model=model, job="in=9", **terms)
    found = story(ran, job)
    assert found[found.index(state) + 1] == "cancel"
    assert found.count("cancel") == 1
    assert "start_stage_out" not in found
    change = ran.one("job_state", job=job, args_to=state)
    cancel = ran.one("bb_p_job_cancel", job=job)
    assert cancel.time_us == change.time_us
    assert next(row.state for row in ran.result.rows if row.job_id == job) == state


@BOTH
def test_each_task_that_was_split_off_is_cancelled_by_itself(model: str) -> None:
    """The record of those that still wait is one job, those with records are others."""
    ran = staged("1: sbatch -a 0-29 job.sh", "4: scancel 1", model=model, job="in=50")
    split = [event.job for event in ran.all("bb_p_job_validate2")]
    assert sorted(map(str, split)) == sorted(str(e.job) for e in ran.all("bb_p_job_cancel"))


@BOTH
def test_suspending_is_nobodys_business(model: str) -> None:
    """No function is called as a job is suspended and resumed."""
    ran = staged(
        "1: sbatch job.sh",
        "12 root: scontrol suspend 1",
        "20 root: scontrol resume 1",
        model=model,
    )
    found = story(ran)
    at = found.index("SUSPENDED")
    assert found[at : at + 4] == ["SUSPENDED", "RUNNING", "COMPLETED|COMPLETING", "start_stage_out"]


@BOTH
def test_states_between_a_requeue_and_the_queue_come_in_their_order(model: str) -> None:
    """start_stage_out sees the job requeued; STAGE_OUT is lost again in the same request."""
    ran = staged(
        "1: sbatch job.sh", "12 root: scontrol requeue 1", model=model, does="sleep 30", job="in=1"
    )
    found = story(ran, 1, "REQUEST_TERMINATE_JOB")
    at = found.index("PENDING|REQUEUE")
    assert found[at : at + 8] == [
        *("PENDING|REQUEUE", "start_stage_out", "PENDING|REQUEUE|STAGE_OUT"),
        *("PENDING|REQUEUE|COMPLETING|STAGE_OUT", "PENDING|REQUEUE|STAGE_OUT", "PENDING"),
        *("PENDING|COMPLETING", "REQUEST_TERMINATE_JOB"),
    ]
    again = story(ran)[story(ran).index("PENDING|REQUEUE") :]
    assert "validate2" not in again
    assert again.count("begin") == 1


@BOTH
def test_whoever_is_in_a_hurry_has_a_running_job_cancelled(model: str) -> None:
    """`scancel --hurry`: cancel in place of start_stage_out, and before the nodes are told."""
    ran = staged("1: sbatch job.sh", "12 root: scancel --hurry 1", model=model, **SLEEPS)
    found = story(ran, 1, "REQUEST_TERMINATE_JOB")
    at = found.index("CANCELLED|COMPLETING")
    assert found[at : at + 3] == ["CANCELLED|COMPLETING", "cancel", "REQUEST_TERMINATE_JOB"]
    assert "start_stage_out" not in found
    assert not [each for each in found if "STAGE_OUT" in each]


@BOTH
def test_plain_scancel_leaves_a_stage_out_alone(model: str) -> None:
    """The job is over: no function is called, and scancel says nothing."""
    ran = staged("1: sbatch job.sh", "20: scancel 1", model=model, job="in=1 out=30")
    assert "cancel" not in calls(ran)
    answer = ran.all("RESPONSE_SLURM_RC", phase="send", peer="scancel@login")[-1]
    assert arg(answer, "return_code") == 2021
    assert (ran.result.commands[1].stderr, ran.result.commands[1].exit) == ("", 0)


@BOTH
def test_whoever_is_in_a_hurry_has_a_stage_out_given_up(model: str) -> None:
    """`scancel --hurry` while STAGE_OUT: one cancel, and the state stays what it was."""
    ran = staged(
        "1: sbatch job.sh",
        "20: scancel --hurry 1",
        "21: scancel --hurry 1",
        model=model,
        job="in=1 out=30",
    )
    cancel = ran.one("bb_p_job_cancel")
    assert cancel.time_us == 20_000_100
    states = [each for each in story(ran) if each.startswith("COMPLETED")]
    assert states[-2:] == ["COMPLETED|STAGE_OUT", "COMPLETED"]
    assert ran.job()[0] == "COMPLETED"


# Between the run and the purge.


def polled(ran: Ran, name: str) -> list[Event]:
    """Return the calls of a function that is asked again and again."""
    return ran.all(f"bb_p_job_{name}", job=1)


@pytest.mark.parametrize(
    ("model", "option"), [("guide", ""), ("guide", "on"), ("modern", "on"), ("modern", "")]
)
def test_the_post_run_keeps_a_job_completing_where_the_gate_is_on(model: str, option: str) -> None:
    """bb_post_run_gate: on in model guide, off in modern; its nodes are free all the while."""
    keys: dict[str, Any] = {"keys": "options: {bb_post_run_gate: true}"} if option else {}
    ran = staged(
        "1: sbatch job.sh",
        "18: sbatch plain.sh",
        model=model,
        job="in=1 post=50",
        **keys,
    )
    gone = ran.one("job_state", job=1, args_to="COMPLETED|STAGE_OUT")
    asked = polled(ran, "test_post_run")
    if model == "modern" and not option:
        assert not asked
        assert gone.time_us < 15_000_000
        return
    assert [event.rc for event in asked] == [0] * (len(asked) - 1) + [1]
    assert len(asked) > 1
    assert asked[0].seq > ran.all("MESSAGE_EPILOG_COMPLETE", phase="receive", job=1)[-1].seq
    assert 62_000_000 < gone.time_us < 95_000_000
    assert ran.one("bb_p_job_begin", job=2).time_us < 20_000_000


@pytest.mark.parametrize(
    ("post_s", "asked_s"),
    [(0, [0]), (29, [0, 30]), (30, [0, 30]), (31, [0, 30, 34]), (59, [0, 30, 60])],
)
def test_the_gate_asks_every_half_minute(post_s: int, asked_s: list[int]) -> None:
    """And at once where something becomes of the burst buffer: its stage-out, 4 s later."""
    ran = staged("1: sbatch job.sh", model="guide", job=f"in=1 post={post_s}")
    free_us = ran.one("MESSAGE_EPILOG_COMPLETE", phase="receive").time_us
    asked = [(event.time_us - free_us) // 1_000_000 for event in polled(ran, "test_post_run")]
    assert asked == asked_s


def test_the_gate_can_be_switched_off() -> None:
    """Then test_post_run is never called, in model guide either."""
    ran = staged("1: sbatch job.sh", model="guide", keys="options: {bb_post_run_gate: false}")
    assert not polled(ran, "test_post_run")


@BOTH
def test_a_job_is_kept_until_its_stage_out_is_over(model: str) -> None:
    """Asked about at every scan for old jobs, once it is old enough; 1 lets it go."""
    ran = staged("1: sbatch job.sh", model=model, job="in=1 out=100")
    asked = polled(ran, "test_stage_out")
    assert [event.rc for event in asked] == [0] * (len(asked) - 1) + [1]
    assert len(asked) >= 4
    ends = ran.one("job_state", job=1, args_to="COMPLETED|COMPLETING").time_us
    assert asked[0].time_us >= ends + 20_000_000
    assert {event.time_us % 20_000_000 for event in asked} == {0}
    assert ran.one("slurm_ckpt_free_job", job=1).seq == asked[-1].seq + 1


@BOTH
def test_jobs_wait_for_the_stage_out_of_others_where_they_say_so(model: str) -> None:
    """An afterburstbuffer is met by a test_stage_out of 1, afterany by the end."""
    ran = staged(
        "1: sbatch job.sh",
        "3: sbatch -d afterburstbuffer:1 plain.sh",
        "4: sbatch -d afterany:1 plain.sh",
        model=model,
        job="in=1 out=60",
    )
    over = ran.one("job_state", job=1, args_to="COMPLETED").time_us
    assert ran.one("bb_p_job_begin", job=2).time_us > over
    assert ran.one("bb_p_job_begin", job=3).time_us < over
    met = next(event for event in polled(ran, "test_stage_out") if event.rc == 1)
    assert met.seq < ran.one("bb_p_job_begin", job=2).seq


@BOTH
def test_a_stage_out_that_others_wait_for_is_asked_about_once_at_each_look(model: str) -> None:
    """As its nodes are free, after the load_state of a pass, in each scan, as another job goes."""
    ran = staged(
        "1: sbatch job.sh",
        "3: sbatch -d afterburstbuffer:1 plain.sh",
        "4: sbatch -d afterany:1 plain.sh",
        model=model,
        job="in=1 out=15",
    )
    free = ran.one("job_state", job=1, args_to="COMPLETED|STAGE_OUT")
    looks = ("load_state", "test_stage_out=0", "test_stage_out=1", "start_stage_out")
    assert [call for call in calls(ran, after=free.seq) if call in looks] == [
        "test_stage_out=0",
        *("load_state", "test_stage_out=0"),
        "test_stage_out=0",
        *("start_stage_out", "test_stage_out=0"),
        "test_stage_out=1",
        *("load_state", "start_stage_out"),
    ]
    times = [event.time_us for event in polled(ran, "test_stage_out")]
    assert times[0] == times[1] == free.time_us
    assert (times[2], times[4]) == (20_000_000, 40_000_000)


@BOTH
def test_a_scan_looks_at_awaited_stage_outs_before_it_forgets_jobs(model: str) -> None:
    """What is met can start; then every job that is old enough is asked about in its order."""
    ran = staged(
        "1: sbatch -N1 job.sh",
        "1: sbatch -N1 job.sh",
        "3: sbatch -d afterburstbuffer:2 plain.sh",
        model=model,
        job="in=1 out=60",
    )
    asked = [
        event.job for event in ran.all("bb_p_job_test_stage_out") if event.time_us == 60_000_000
    ]
    assert asked == [2, 1, 2]


@BOTH
def test_a_stage_out_can_be_put_off_until_the_epilogs_are_over(model: str) -> None:
    """bb_stageout_after_epilog: start_stage_out follows the last MESSAGE_EPILOG_COMPLETE."""
    ran = staged(
        "1: sbatch -N2 job.sh",
        model=model,
        keys="options: {bb_stageout_after_epilog: true}",
    )
    out = ran.one("bb_p_job_start_stage_out")
    assert out.seq > ran.all("MESSAGE_EPILOG_COMPLETE", phase="receive")[-1].seq
    assert ran.job()[0] == "COMPLETED"


@BOTH
def test_a_stage_out_that_is_quicker_than_the_epilog_keeps_its_flag(model: str) -> None:
    """STAGE_OUT is never taken off a job that is COMPLETING."""
    ran = staged(
        "1: sbatch job.sh",
        model=model,
        job="in=1 post=0 out=2",
        conf="Epilog: /opt/epilog",
        keys="programs: {/opt/epilog: {runs: 9s}}",
    )
    found = [each for each in story(ran) if each.startswith("COMPLETED")]
    assert found == [
        *("COMPLETED|COMPLETING", "COMPLETED|COMPLETING|STAGE_OUT"),
        *("COMPLETED|STAGE_OUT", "COMPLETED"),
    ]


@BOTH
def test_a_stage_out_outlives_a_restart_only_in_its_flag(model: str) -> None:
    """Nothing resumes it; the plugin, which knows nothing any more, lets the job go."""
    ran = staged(
        "1: sbatch job.sh",
        "30 {fault: {restart: slurmctld, for: 2s}}",
        model=model,
        job="in=1 out=500",
    )
    assert polled(ran, "test_stage_out")[-1].rc == 1
    assert len(ran.all("bb_p_job_start_stage_out")) == 1
    # Of a job that is staging out nothing is counted when it is loaded, as recorded.
    assert ran.all("bb_p_job_set_tres_cnt")[-1].time_us < 30_000_000
    fini, init = ran.all("fini", plugin="burst_buffer/staging")[0], ran.all("init")[-1]
    assert fini.seq < init.seq


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_tasks_that_wait_are_cancelled_in_their_order(model: str) -> None:
    """What waits without a record of its own, then the others, the latest first."""
    ran = staged("1: sbatch -a 0-3 job.sh", "3: scancel 1", model=model, job="in=50")
    assert [each.job for each in ran.all("bb_p_job_cancel")] == [1, 4, 3, 2]


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_job_that_has_yet_to_leave_its_nodes_is_not_asked_for_those_that_wait(model: str) -> None:
    """Another waits for its stage-out, which is over long before the epilog."""
    ran = staged(
        "1: sbatch job.sh",
        "2: sbatch --dependency=afterburstbuffer:1 job.sh",
        "60: sbatch plain.sh",
        model=model,
        conf="Epilog: /e",
        keys="programs: {/e: {runs: 200s}}",
    )
    over = next(each for each in ran.all("job_state", job=1) if "COMPLETED" in arg(each, "to"))
    left = next(
        each
        for each in ran.all("job_state", job=1)
        if each.seq > over.seq and "COMPLETING" not in arg(each, "to")
    )
    assert left.time_us - over.time_us > 100_000_000
    asked = ran.all("bb_p_job_test_stage_out", job=1)
    assert asked
    assert asked[0].seq > left.seq


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_jobs_that_end_with_the_one_they_waited_for_are_cancelled_in_their_order(
    model: str,
) -> None:
    """They can never start; slurmctld tells of them when it is done with the request."""
    ran = staged(
        "0: sbatch --wrap 'sleep 5; false'",
        "2: sbatch -d afterok:1 job.sh",
        "2: sbatch -d afterok:1 job.sh",
        model=model,
        conf="SchedulerParameters: kill_invalid_depend",
    )
    assert [each.job for each in ran.all("bb_p_job_cancel")] == [2, 3]


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize(
    "lines",
    [
        ("1: srun --bb='in=1 out=2' sleep 5",),
        ("1: sbatch job.sh", "10: scontrol requeue 1"),
    ],
    ids=["an allocation", "a job that was requeued"],
)
def test_every_run_of_any_job_is_staged_out_after_its_epilog_where_that_is_wanted(
    model: str, lines: tuple[str, ...]
) -> None:
    """Each at the moment in which slurmctld hears of its epilog."""
    ran = staged(
        *lines,
        model=model,
        conf="Epilog: /e",
        keys="programs: {/e: {runs: 20s}}\noptions: {bb_stageout_after_epilog: true}",
    )
    gone = [each.time_us for each in ran.all("MESSAGE_EPILOG_COMPLETE", phase="receive")]
    assert len(gone) == len(lines)
    assert [each.time_us for each in ran.all("bb_p_job_start_stage_out")] == gone
    assert bool(ran.all("bb_p_job_test_post_run")) == (model == "guide")


def test_plugins_hear_who_submits_a_job_and_not_whose_it_is() -> None:
    """Root may submit for others."""
    ran = staged("1 root: sbatch --uid=alice job.sh")
    assert arg(ran.one("bb_p_job_validate"), "submit_uid") == 0
    assert ran.one("fork", daemon="slurmd").node == "n1"
