"""When slurmctld calls the functions of burst buffer plugins, from a submission to a start.

Every run here is also held against the built-in orderings.
"""

from typing import Any

import pytest
from msgspec import UNSET

from tests.cluster import Ran
from tests.staged import arg, calls, staged, story

BOTH = pytest.mark.parametrize("model", ["guide", "modern"])
BACKFILL = "SchedulerType: sched/backfill"


def inside(ran: Ran, request: str, answer: str) -> list[str]:
    """Return the plugin calls between a request's receipt by slurmctld and its answer."""
    begin = ran.one(request, phase="receive", daemon="slurmctld").seq
    end = ran.first(answer, phase="send", daemon="slurmctld")
    return [
        event.name.removeprefix("bb_p_job_")
        for event in ran.all(kind="plugin", daemon="slurmctld")
        if begin < event.seq < end and not event.name.startswith("switch")
    ]


def passes(ran: Ran) -> list[list[str]]:
    """Return the calls from each load_state(false) to the next."""
    found: list[list[str]] = []
    for call in calls(ran):
        if call == "load_state":
            found.append([])
        elif found:
            found[-1].append(call)
    return found


# slurmctld starts, is configured, stops.


@BOTH
def test_a_plugin_is_loaded_behind_the_others_and_goes_last(model: str) -> None:
    """It begins with init and load_state(true), once each; fini follows the switch's last save."""
    ran = staged("1: sbatch job.sh", model=model)
    own = [event.name for event in ran.all(kind="plugin", plugin="burst_buffer/staging")]
    assert own[:2] == ["init", "bb_p_load_state"]
    assert own[-1] == "fini"
    assert (own.count("init"), own.count("fini")) == (1, 1)
    assert len(ran.all("bb_p_load_state", args_init_config=True)) == 1
    names = [event.name for event in ran.all(kind="plugin", daemon="slurmctld")]
    assert names[:5] == ["init", "init", "switch_p_libstate_restore", "init", "bb_p_load_state"]
    assert ran.last("fini", plugin="burst_buffer/staging") > ran.first("switch_p_libstate_save")


@BOTH
def test_every_call_is_made_by_slurmctld_as_its_user(model: str) -> None:
    """Nobody else loads a burst buffer plugin."""
    ran = staged("1: sbatch job.sh", "2: srun --bb=in=3 sleep 1", model=model)
    found = ran.all(kind="plugin", plugin="burst_buffer/staging")
    who = {(event.daemon, event.role, event.uid, event.euid, event.node) for event in found}
    assert who == {("slurmctld", "slurmctld", 64030, 64030, None)}
    assert len(found) > 20


def test_the_size_is_asked_for_at_the_start_by_name_and_in_all() -> None:
    """Model guide: for the table of trackable resources, behind load_state, and reconfigured."""
    ran = staged("1 root: scontrol reconfigure", model="guide")
    assert calls(ran) == [
        *("load_state(true)", "get_system_size=300", "get_system_size=300"),
        *("reconfig", "get_system_size=300", "get_system_size=300"),
    ]
    names = [arg(event, "name") for event in ran.all("bb_p_get_system_size")]
    assert names == ["staging", None] * 2


def test_the_size_is_asked_for_where_accounting_counts_it() -> None:
    """Model modern: only if AccountingStorageTRES names it; before load_state, as real Slurm."""
    ran = staged("1 root: scontrol reconfigure", model="modern")
    assert calls(ran) == ["load_state(true)", "reconfig"]
    ran = staged(
        "1 root: scontrol reconfigure", model="modern", conf="AccountingStorageTRES: bb/staging"
    )
    assert calls(ran) == ["get_system_size=300", "load_state(true)", "reconfig"]


@BOTH
def test_reconfigure_is_one_call_and_loads_no_state(model: str) -> None:
    """Nor does it run init again; who asked is answered behind it."""
    ran = staged("1 root: scontrol reconfigure", model=model)
    call = ran.one("bb_p_reconfig")
    received = ran.one("REQUEST_RECONFIGURE", phase="receive", daemon="slurmctld").seq
    assert received < call.seq < ran.first("RESPONSE_SLURM_RC", peer="scontrol@login")
    assert len(ran.all("bb_p_load_state", args_init_config=True)) == 1


@BOTH
def test_whoever_asks_for_the_state_has_it_packed_for_his_uid(model: str) -> None:
    """`scontrol show burst`: once a request and plugin, with the uid of whoever asks."""
    ran = staged("1: scontrol show burst", "2 bob: scontrol show burst", model=model)
    found = ran.all("bb_p_state_pack")
    assert [arg(event, "uid") for event in found] == [1001, 1002]
    assert all(arg(event, "buffer")["bytes"] > 0 for event in found)
    assert ran.result.commands[0].stdout.startswith("Name=staging")


@BOTH
def test_a_reservation_has_its_burst_buffer_translated(model: str) -> None:
    """As it is made and as it is changed; one without burst buffer is not asked about."""
    make = "scontrol create reservation={} starttime=now duration=10 users=alice nodes={}"
    ran = staged(
        f"1 root: {make.format('r', 'n1')} burstbuffer=5G",
        f"2 root: {make.format('q', 'n2')}",
        "3 root: scontrol update reservation=r duration=5",
        "4 root: scontrol show reservation r",
        model=model,
    )
    found = ran.all("bb_p_xlate_bb_2_tres_str")
    assert [arg(event, "burst_buffer") for event in found] == ["5G", "5G"]
    assert found[0].seq < ran.first("RESPONSE_CREATE_RESERVATION", phase="send")
    assert "TRES=cpu=4,bb/staging=7M" in ran.result.commands[3].stdout
    assert "BurstBuffer=5G" in ran.result.commands[3].stdout


# A job comes in.


def test_a_submission_is_checked_twice_and_asked_about_once() -> None:
    """Model modern: validate, the id, validate2, and test_stage_in that only tests."""
    ran = staged("1: sbatch job.sh", model="modern")
    assert inside(ran, "REQUEST_SUBMIT_BATCH_JOB", "RESPONSE_SUBMIT_BATCH_JOB") == [
        *("validate", "slurm_ckpt_alloc_job", "validate2", "test_stage_in")
    ]
    assert arg(ran.all("bb_p_job_test_stage_in")[0], "test_only") is True
    assert ran.all("bb_p_job_test_stage_in")[0].rc == -1


def test_a_submission_counts_what_it_asks_for() -> None:
    """Model guide: set_tres_cnt follows validate2 at once, and again the start."""
    ran = staged("1: sbatch job.sh", model="guide")
    assert inside(ran, "REQUEST_SUBMIT_BATCH_JOB", "RESPONSE_SUBMIT_BATCH_JOB") == [
        *("validate", "slurm_ckpt_alloc_job", "validate2", "set_tres_cnt", "test_stage_in")
    ]
    asked, given = ran.all("bb_p_job_set_tres_cnt")
    assert arg(asked, "tres_cnt") == arg(given, "tres_cnt") == {"bb/staging": 100}
    assert (arg(asked, "locked"), arg(given, "locked")) == (False, True)


@BOTH
def test_a_submission_has_no_id_and_its_script_and_user_while_it_is_validated(model: str) -> None:
    """What the plugin reads in the script is the job's request from then on."""
    ran = staged("1 bob: sbatch job.sh", "2: scontrol show job 1", model=model)
    validate = ran.one("bb_p_job_validate")
    assert validate.job is UNSET
    assert arg(validate, "submit_uid") == 1002
    assert "BurstBuffer=in=5 pre=2 post=1 out=3" in ran.result.commands[1].stdout
    assert ran.one("bb_p_job_validate2").job == 1
    assert ran.first("job_state", job=1) < ran.first("bb_p_job_validate2")


@BOTH
def test_a_job_without_burst_buffer_is_told_of_all_the_same(model: str) -> None:
    """Its stage-out alone is nobody's business: it is forgotten unasked."""
    ran = staged("1: sbatch plain.sh", model=model)
    extra = ["set_tres_cnt"] if model == "guide" else []
    assert calls(ran, 1) == [
        *("validate2", *extra, "test_stage_in?=1", "test_stage_in=1", "begin"),
        *("set_tres_cnt", "start_stage_out"),
    ]
    assert ran.all("slurm_ckpt_free_job", job=1)


@BOTH
def test_a_held_submission_is_not_asked_about_until_it_is_released(model: str) -> None:
    """`sbatch -H`: the checks are made, the question is not."""
    ran = staged("1: sbatch -H job.sh", "70 root: scontrol release 1", model=model)
    released = ran.first("REQUEST_UPDATE_JOB", phase="receive", daemon="slurmctld")
    assert ran.first("bb_p_job_validate2") < released < ran.first("bb_p_job_test_stage_in")
    assert ran.job()[0] == "COMPLETED"


@BOTH
@pytest.mark.parametrize("wish", ["-d afterany:1", "--begin=now+200"])
def test_a_job_that_waits_for_something_else_is_asked_about_once_as_it_comes(
    model: str, wish: str
) -> None:
    """Nothing of it is staged before its time, and its reason stays its own."""
    ran = staged("1: sbatch plain.sh", f"2: sbatch {wish} job.sh", "3: squeue", model=model)
    first, *others = ran.all("bb_p_job_test_stage_in", job=2)
    assert arg(first, "test_only") is True
    assert first.seq < ran.last("RESPONSE_SUBMIT_BATCH_JOB", phase="send", daemon="slurmctld")
    free_us = 200_000_000 if "begin" in wish else ran.one("bb_p_job_start_stage_out", job=1).time_us
    assert all(each.time_us >= free_us for each in others)
    assert ("Dependency" if "-d" in wish else "BeginTime") in ran.result.commands[2].stdout


@BOTH
def test_a_job_that_comes_back_from_a_checkpoint_is_asked_about_as_a_new_one(model: str) -> None:
    """Root submits it: both checks, and one question inside the request, which only tests."""
    ran = staged(
        "1: sbatch job.sh",
        "15: scontrol checkpoint vacate 1",
        "60: scontrol checkpoint restart 1",
        model=model,
        job="in=5 out=3",
        does="srun_cr sleep 100",
        conf="CheckpointType: checkpoint/blcr, JobCheckpointDir: /shared/ckpt",
    )
    asked = ran.all("REQUEST_CHECKPOINT", phase="receive", daemon="slurmctld")[-1]
    extra = ["set_tres_cnt"] if model == "guide" else []
    assert calls(ran, after=asked.seq)[: 6 + len(extra)] == [
        *("validate", "validate2", *extra, "test_stage_in?=-1"),
        *("load_state", "test_stage_in=0", "try_stage_in"),
    ]
    assert arg(ran.all("bb_p_job_validate")[-1], "submit_uid") == 0
    assert ran.job()[0] == "COMPLETED"


@BOTH
def test_those_ahead_in_the_queue_are_asked_about_as_well(model: str) -> None:
    """At each submission, by test_only, before the new one; those behind are not."""
    ran = staged(
        "1: sbatch job.sh",
        "2: sbatch plain.sh",
        "3: sbatch job.sh",
        "3.5 root: sbatch --priority=1 job.sh",
        "4 root: sbatch --priority=4294967000 job.sh",
        job="in=50",
        does="sleep 20",
        model=model,
    )
    asked: list[list[tuple[object, bool]]] = []
    for event in ran.events:
        if event.name == "REQUEST_SUBMIT_BATCH_JOB" and event.phase == "receive":
            asked.append([])
        elif event.name == "bb_p_job_test_stage_in" and event.time_us < 4_500_000:
            asked[-1].append((event.job, arg(event, "test_only")))
        elif event.name == "RESPONSE_SUBMIT_BATCH_JOB" and event.phase == "send":
            asked.append([])
    assert asked[0::2] == [
        [(1, True)],
        [(1, True), (2, True)],
        [(1, True), (3, True)],
        [(1, True), (3, True), (4, True)],
        [(5, True)],
    ]


@BOTH
@pytest.mark.parametrize("command", ["srun --bb=in=5 sleep 3", "salloc --bb=in=5 sleep 3"])
def test_an_allocation_may_stage_in_at_once(model: str, command: str) -> None:
    """Inside its request it is asked to stage in, then asked whether it may start."""
    ran = staged(f"1: {command}", model=model)
    extra = ["set_tres_cnt"] if model == "guide" else []
    assert inside(ran, "REQUEST_RESOURCE_ALLOCATION", "RESPONSE_RESOURCE_ALLOCATION") == [
        *("validate", "slurm_ckpt_alloc_job", "validate2", *extra),
        *("test_stage_in", "test_stage_in"),
    ]
    assert calls(ran, 1)[1 + len(extra) :][:2] == ["test_stage_in=0", "test_stage_in?=0"]
    assert "queued and waiting for resources" in ran.stderr()
    assert ran.job()[0] == "COMPLETED"


@BOTH
def test_an_allocation_without_burst_buffer_starts_inside_its_request(model: str) -> None:
    """The answer is 1 both times, and the second time nothing is held back."""
    ran = staged("1: srun sleep 3", model=model)
    extra = ["set_tres_cnt"] if model == "guide" else []
    assert calls(ran, 1)[1 + len(extra) :][:4] == [
        *("test_stage_in=1", "test_stage_in=1", "begin", "set_tres_cnt")
    ]
    assert [arg(event, "test_only") for event in ran.all("bb_p_job_test_stage_in")] == [False] * 2


@BOTH
@pytest.mark.parametrize(
    ("conf", "wish"), [("SchedulerParameters: defer", ""), ("", "--begin=now+20")]
)
def test_an_allocation_that_cannot_start_stages_nothing_in(
    model: str, conf: str, wish: str
) -> None:
    """As a batch job: it is asked about once, and only tested."""
    ran = staged(f"1: srun {wish} --bb=in=5 sleep 3", model=model, conf=conf)
    answered = ran.first("RESPONSE_RESOURCE_ALLOCATION", phase="send")
    asked = [each for each in ran.all("bb_p_job_test_stage_in") if each.seq < answered]
    assert [arg(event, "test_only") for event in asked] == [True]
    assert ran.job()[0] == "COMPLETED"


@BOTH
def test_an_allocation_behind_others_stages_nothing_in(model: str) -> None:
    """Who waits for nodes with his data there comes first; who waits for data does not."""
    ran = staged(
        "1: sbatch -N2 plain.sh",
        "2: sbatch -N2 plain.sh",
        "3: srun --bb=in=5 true",
        model=model,
    )
    assert arg(ran.all("bb_p_job_test_stage_in", job=3)[0], "test_only") is True
    ran = staged("1: sbatch job.sh", "2: srun --bb=in=5 true", job="in=30", model=model)
    assert arg(ran.all("bb_p_job_test_stage_in", job=2)[0], "test_only") is False


@BOTH
def test_an_allocation_that_will_not_wait_is_cancelled(model: str) -> None:
    """--immediate: it FAILED with the error of whoever waits for data, and its space is freed."""
    ran = staged("1: srun --immediate --bb=in=5 true", model=model)
    assert "Waiting for burst buffer" in ran.stderr()
    assert story(ran)[-3:] == ["FAILED", "cancel", "test_stage_out"]
    answered = ran.one("RESPONSE_RESOURCE_ALLOCATION", phase="send")
    assert ran.one("bb_p_job_cancel").seq < answered.seq


@BOTH
def test_nobody_asks_about_an_allocation_that_cannot_start_and_will_not_wait(model: str) -> None:
    """Its burst buffer has no time to be anything; the end cancels it all the same."""
    conf = "SchedulerParameters: defer"
    ran = staged("1: srun --immediate --bb=in=5 true", model=model, conf=conf)
    assert "test_stage_in" not in story(ran)
    assert story(ran)[-3:] == ["FAILED", "cancel", "test_stage_out"]


@BOTH
def test_a_job_that_is_not_submitted_is_only_validated(model: str) -> None:
    """--test-only: no record, so no second check and no question."""
    ran = staged("1: sbatch --test-only job.sh", "2: srun --test-only --bb=in=5 true", model=model)
    assert [call for call in calls(ran) if not call.startswith(("load", "get"))] == ["validate"] * 2


@BOTH
def test_no_nodes_without_a_burst_buffer(model: str) -> None:
    """What is neither is refused behind validate, which could have found one in the script."""
    ran = staged("1: sbatch -N0 plain.sh", model=model)
    assert ran.stderr().endswith("Node count specification invalid\n")
    assert calls(ran)[-1] == "validate"


# Passes.


@BOTH
def test_a_main_pass_loads_looks_and_stages(model: str) -> None:
    """load_state(false) first, then each job in turn; try_stage_in last, as one has to wait."""
    ran = staged("1: sbatch job.sh", "1: sbatch job.sh", model=model, job="in=10")
    assert passes(ran)[0] == ["test_stage_in=0", "test_stage_in=0", "try_stage_in"]
    loads = ran.all("bb_p_load_state", args_init_config=False)
    assert loads[0].seq < ran.first("bb_p_job_test_stage_in", args_test_only=False)
    if model == "guide":
        assert loads[0].seq < ran.first("switch_p_no_frag")


@BOTH
def test_nobody_stages_in_for_jobs_that_wait_for_nodes(model: str) -> None:
    """try_stage_in follows a main pass only if somebody waits for his burst buffer."""
    ran = staged("1: sbatch -N2 plain.sh", "2: sbatch -N2 plain.sh", "30: squeue", model=model)
    assert "try_stage_in" not in calls(ran)
    assert calls(ran, 2).count("test_stage_in=1") > 1


def test_a_pass_stages_in_for_those_without_an_expected_start() -> None:
    """Model modern: who waited before has been given a start to expect; guide: each pass."""
    for model, times in (("guide", 2), ("modern", 1)):
        ran = staged("1: sbatch job.sh", "10: sbatch plain.sh", model=model, job="in=20")
        found = [each for each in passes(ran) if each[0] == "test_stage_in=0"]
        assert len(found) == 2
        assert sum("try_stage_in" in each for each in found) == times, model


@BOTH
def test_a_pass_that_an_epilog_sets_off_loads_no_state(model: str) -> None:
    """The next job starts inside the request that frees the nodes."""
    ran = staged("1: sbatch -N2 plain.sh", "2: sbatch -N2 plain.sh", model=model)
    freed = ran.all("MESSAGE_EPILOG_COMPLETE", phase="receive", job=1)[-1]
    begin = ran.one("bb_p_job_begin", job=2)
    assert begin.time_us == freed.time_us
    assert not [event for event in ran.all("bb_p_load_state") if freed.seq < event.seq < begin.seq]


@BOTH
def test_backfill_only_tests_and_stages_in_each_time(model: str) -> None:
    """load_state(false), test_only for each that waits, try_stage_in: every 30 seconds."""
    ran = staged("1: sbatch job.sh", model=model, job="in=100", conf=BACKFILL)
    of_backfill = [each for each in passes(ran) if "test_stage_in?=0" in each]
    assert len(of_backfill) >= 3
    assert all(each == ["test_stage_in?=0", "try_stage_in"] for each in of_backfill)
    assert [] not in passes(ran)
    tests = ran.all("bb_p_job_test_stage_in", args_test_only=True)[1:]
    assert {event.time_us % 30_000_000 for event in tests} == {0}
    assert "get_est_start" not in calls(ran)


@BOTH
def test_backfill_asks_for_a_start_where_there_is_no_space(model: str) -> None:
    """get_est_start follows a test_only of -1, and nothing else."""
    ran = staged(
        '0.5 {fault: {fail: "bb_p_job_test_stage_in", times: 9}}',
        "1: sbatch job.sh",
        model=model,
        job="in=5",
        conf=BACKFILL,
    )
    found = [each for each in passes(ran) if any("est_start" in call for call in each)]
    assert found
    for each in found:
        assert each[0] == "test_stage_in?=-1"
        assert each[1].startswith("get_est_start=")
        assert each[2] == "try_stage_in"


@BOTH
def test_a_job_is_expected_to_start_when_its_burst_buffer_may_be_there(model: str) -> None:
    """Where several plugins tell, the latest of it counts."""
    fault = '0.5 {fault: {fail: "bb_p_job_test_stage_in plugin=burst_buffer/staging", times: 9}}'
    both = "burst_buffer/staging,burst_buffer/second"
    for types, at in (
        ("burst_buffer/staging", "00:01:30"),
        (both, "00:10:30"),
        ("burst_buffer/second,burst_buffer/staging", "00:10:30"),
    ):
        ran = staged(
            *(fault, "1: sbatch job.sh", "32: scontrol show job 1"),
            model=model,
            conf=BACKFILL,
            types=types,
            plugins="Second Staging",
        )
        assert f"StartTime=2026-01-01T{at}" in ran.result.commands[1].stdout, types


@BOTH
def test_backfill_starts_what_the_plugin_confirms(model: str) -> None:
    """A job that may pass the head is asked about once more, as by whoever chooses nodes."""
    ran = staged(
        "1: sbatch -N1 -t 10 plain.sh",
        "2: sbatch -N2 -t 10 plain.sh",
        "3: sbatch -N1 -t 1 job.sh",
        model=model,
        job="in=1",
        does="sleep 100",
        conf=BACKFILL,
    )
    at = calls(ran, 3).index("begin")
    assert calls(ran, 3)[at - 2 : at] == ["test_stage_in?=1", "test_stage_in=1"]
    assert ran.one("bb_p_job_begin", job=3).time_us == 60_000_000
    assert ran.one("bb_p_job_begin", job=2).time_us > 100_000_000


@BOTH
def test_backfill_starts_nothing_that_the_plugin_does_not_confirm(model: str) -> None:
    """The job waits, and is asked about anew in the next pass."""
    ran = staged(
        '59 {fault: {fail: "bb_p_job_test_stage_in args.test_only=false job=3"}}',
        "1: sbatch -N1 -t 10 plain.sh",
        "2: sbatch -N2 -t 10 plain.sh",
        "3: sbatch -N1 -t 1 job.sh",
        "61: squeue -j 3",
        model=model,
        job="in=1",
        does="sleep 100",
        conf=BACKFILL,
    )
    at = calls(ran, 3).index("begin")
    assert calls(ran, 3)[at - 4 : at] == [
        *("test_stage_in?=1", "test_stage_in=-1"),
        *("test_stage_in?=1", "test_stage_in=1"),
    ]
    assert ran.one("bb_p_job_begin", job=3).time_us == 90_000_000
    assert "(BurstBufferResources)" in ran.result.commands[3].stdout


# A job starts.


@BOTH
def test_a_job_begins_when_its_data_is_there_and_before_it_runs(model: str) -> None:
    """test_stage_in 1, begin, RUNNING, set_tres_cnt, CONFIGURING for the pre-run, the launch."""
    ran = staged("1: sbatch job.sh", model=model)
    found = story(ran, 1, "REQUEST_BATCH_JOB_LAUNCH")
    at = found.index("begin")
    assert found[at - 1 : at + 7] == [
        *("test_stage_in", "begin", "PENDING|CONFIGURING", "RUNNING", "set_tres_cnt"),
        *("RUNNING|CONFIGURING", "RUNNING", "REQUEST_BATCH_JOB_LAUNCH"),
    ]
    allocated = ran.one("node_state", args_node="n1", args_to="ALLOCATED")
    assert allocated.seq < ran.all("bb_p_job_set_tres_cnt")[-1].seq
    assert ran.one("bb_p_job_begin").time_us == 6_000_100
    assert ran.one("REQUEST_BATCH_JOB_LAUNCH", phase="send").time_us == 8_000_100


@BOTH
def test_an_allocation_is_told_when_the_pre_run_is_over(model: str) -> None:
    """Its srun has the nodes, and its steps, only then."""
    ran = staged("1: srun --bb='in=5 pre=7' true", model=model)
    begun = ran.one("bb_p_job_begin").time_us
    told = ran.all("RESPONSE_RESOURCE_ALLOCATION", phase="send")[-1]
    assert told.time_us == begun + 7_000_000
    assert ran.first("REQUEST_JOB_STEP_CREATE", phase="receive") > told.seq


@BOTH
def test_nothing_is_held_back_without_a_pre_run(model: str) -> None:
    """Then the job is never CONFIGURING."""
    ran = staged("1: sbatch job.sh", model=model, job="in=2 pre=0")
    assert not [each for each in story(ran) if "CONFIGURING" in each]


@BOTH
def test_a_job_without_nodes_begins_and_is_over(model: str) -> None:
    """It is RUNNING before begin, over as its pre-run is, and its end is a cancel: it had no nodes.

    None of its script runs.
    """
    ran = staged("1: sbatch -N0 job.sh", model=model, job="in=2 pre=3")
    found = story(ran, 1, "REQUEST_BATCH_JOB_LAUNCH", "REQUEST_TERMINATE_JOB")
    at = found.index("RUNNING")
    gate = ["test_post_run"] if model == "guide" else []
    assert found[at - 1 :] == [
        *("test_stage_in", "RUNNING", "begin", "RUNNING|CONFIGURING"),
        *("COMPLETED|COMPLETING", "cancel", *gate, "COMPLETED", "test_stage_out"),
    ]
    assert ran.one("bb_p_job_cancel").time_us == ran.one("bb_p_job_begin").time_us + 3_000_000


@BOTH
def test_a_job_without_nodes_that_cannot_begin_has_failed(model: str) -> None:
    """It never waits for its pre-run, and what it has is cancelled."""
    ran = staged(
        "0.5 {fault: {fail: bb_p_job_begin}}",
        "1: sbatch -N0 job.sh",
        model=model,
        job="in=2 pre=3",
    )
    found = story(ran)
    at = found.index("begin")
    gate = ["test_post_run"] if model == "guide" else []
    assert found[at : at + 4 + len(gate)] == [
        *("begin", "FAILED|COMPLETING", "cancel", *gate, "FAILED")
    ]


@BOTH
def test_tasks_of_an_array_are_split_off_before_they_are_looked_at(model: str) -> None:
    """Each that is split off has its own validate2; the head is asked about when it is the last."""
    ran = staged("1: sbatch -a 0-1 job.sh", model=model, job="in=5")
    extra = ["set_tres_cnt"] if model == "guide" else []
    first = [
        (event.name.removeprefix("bb_p_job_"), event.job)
        for event in ran.all(kind="plugin", plugin="burst_buffer/staging")
        if event.job is not UNSET
    ][: 5 + len(extra)]
    assert first == [
        *(("validate2", 1), *((each, 1) for each in extra), ("test_stage_in", 1)),
        *(("validate2", 2), ("test_stage_in", 2)),
        ("test_stage_in", 2),
    ]
    assert [event.job for event in ran.all("bb_p_job_begin")] == [2, 1]
    assert ran.first("bb_p_job_test_stage_in", job=1, args_test_only=False) > ran.first(
        "bb_p_job_begin", job=2
    )
    assert [event.job for event in ran.all("bb_p_job_validate2")] == [1, 2]


@BOTH
def test_each_task_of_an_array_is_a_job_of_its_own_to_the_plugin(model: str) -> None:
    """Its data, its states and its stage-out are not those of the tasks that still wait."""
    ran = staged("1: sbatch -a 0-3 job.sh", model=model, job="in=5 out=20")
    assert sorted(str(event.job) for event in ran.all("bb_p_job_start_stage_out")) == [
        "1",
        "2",
        "3",
        "4",
    ]
    for job in range(1, 5):
        assert "COMPLETED|COMPLETING|STAGE_OUT" in story(ran, job)
    assert {row.state for row in ran.result.rows} == {"COMPLETED"}


@BOTH
def test_a_task_that_is_changed_by_itself_is_checked_by_itself(model: str) -> None:
    """An update splits it off, and its validate2 follows at once; others are left as they are."""
    ran = staged(
        "1: sbatch -H -a 0-3 job.sh",
        "2: scontrol update jobid=1_2 name=x",
        "3: scontrol update jobid=1_2 name=y",
        "4: scontrol update jobid=1 name=z",
        model=model,
    )
    assert [(event.job, event.time_us) for event in ran.all("bb_p_job_validate2")] == [
        *((1, 1_000_100), (2, 2_000_100))
    ]


@BOTH
def test_no_more_than_ten_tasks_of_an_array_have_records_while_they_wait(model: str) -> None:
    """The others share one until there is room."""
    ran = staged("1: sbatch -a 0-29 job.sh", "3: scancel 1", model=model, job="in=50")
    assert len(ran.all("bb_p_job_validate2")) == 11


@BOTH
def test_the_last_task_of_an_array_is_itself_before_it_is_looked_at(model: str) -> None:
    """It keeps the record that all have shared, and stands for nobody else any more."""
    ran = staged("1: sbatch -a 0-1 job.sh", model=model, job="in=5")
    asked = ran.all("bb_p_job_test_stage_in", args_test_only=False)
    assert [(event.job, event.array_task) for event in asked] == [(2, 0), (2, 0), (1, 1), (1, 1)]


@BOTH
def test_nobody_splits_more_off_than_data_comes_in_for(model: str) -> None:
    """Ten tasks with a burst buffer; none without, but those that start."""
    ran = staged(
        "1: sbatch -a 0-3 plain.sh",
        "1: sbatch -a 0-14 job.sh",
        "3: scancel 1 2",
        model=model,
        does="sleep 50",
    )
    came = [event for event in ran.all("job_state") if arg(event, "from") is None]
    assert [(event.array_job, event.array_task) for event in came] == [
        *((1, UNSET), (2, UNSET)),
        *((2, task) for task in range(10)),
        *((1, 0), (1, 1)),
    ]


@BOTH
def test_an_array_that_has_yet_to_be_split_is_no_candidate(model: str) -> None:
    """Data is staged in for tasks alone, though backfill plans for those that share a record."""
    ran = staged("1: sbatch -a 0-29 job.sh", model=model, job="in=150", conf=BACKFILL)
    asked = [
        each for each in ran.all("bb_p_job_test_stage_in", job=1) if each.time_us < 150 * 10**6
    ]
    assert ran.all("bb_p_job_get_est_start", job=1)
    assert {each.rc for each in asked} == {-1}


# Several plugins.

TWO: dict[str, Any] = {
    "types": "burst_buffer/staging,burst_buffer/second",
    "plugins": "Second Staging",
}


@BOTH
def test_several_plugins_are_called_in_the_order_of_their_configuration(model: str) -> None:
    """Each function of all of them before the next function; every one of them has its fini."""
    ran = staged("1: sbatch job.sh", model=model, **TWO)
    found = ran.all(kind="plugin", daemon="slurmctld")
    ours = [event for event in found if str(event.plugin).startswith("burst_buffer/")]
    pairs = [(event.name, event.plugin) for event in ours if event.name != "bb_p_get_system_size"]
    for (name, plugin), (other, later) in zip(pairs[::2], pairs[1::2], strict=True):
        assert name == other
        assert (plugin, later) == ("burst_buffer/staging", "burst_buffer/second")
    assert ran.job()[0] == "COMPLETED"


@BOTH
def test_a_job_starts_when_the_slowest_plugin_says_so(model: str) -> None:
    """test_stage_in: the least answer counts."""
    fault = 'fault: {fail: "bb_p_job_test_stage_in plugin=burst_buffer/PLUGIN", times: 4, rc: RC}}'
    for plugin in ("staging", "second"):
        for rc, reason in ((0, "BurstBufferStageIn"), (-1, "BurstBufferResources")):
            text = fault.replace("PLUGIN", plugin).replace("RC", str(rc))
            ran = staged(
                f"0.5 {{{text}", "1: sbatch job.sh", "15: squeue", model=model, job="in=2", **TWO
            )
            assert reason in ran.result.commands[1].stdout, (plugin, rc)
            assert ran.job()[0] == "COMPLETED"


@BOTH
def test_the_last_pre_run_to_end_lets_the_job_be_launched(model: str) -> None:
    """Each plugin holds the launch back for itself."""
    for job in ("in=2 pre=3 second_pre=8", "in=2 pre=8 second_pre=3"):
        ran = staged("1: sbatch job.sh", model=model, job=job, **TWO)
        begun = ran.all("bb_p_job_begin")[-1].time_us
        assert ran.one("REQUEST_BATCH_JOB_LAUNCH", phase="send").time_us == begun + 8_000_000


def test_sizes_of_several_plugins_are_told_apart_and_added_up() -> None:
    """By name only one is asked; nobody's name asks all of them."""
    ran = staged(model="guide", **TWO)
    found = [(arg(event, "name"), event.rc) for event in ran.all("bb_p_get_system_size")]
    assert found == [("staging", 300), ("second", 70), (None, 300), (None, 70)]
    assert ran.world.ctld.bb is not None
    assert ran.world.ctld.bb.total_mb == 370


@BOTH
def test_texts_of_several_plugins_are_put_together(model: str) -> None:
    """A reservation keeps what each of them makes of it."""
    ran = staged(
        "1 root: scontrol create reservation=r starttime=now duration=9 users=alice nodes=n1 "
        "burstbuffer=5G",
        "2 root: scontrol show reservation r",
        model=model,
        **TWO,
    )
    assert "bb/staging=7M,bb/second=7M" in ran.result.commands[1].stdout


# slurmctld is started again.


@pytest.mark.parametrize(
    ("model", "first"), [("guide", True), ("modern", False), ("guide", False), ("modern", True)]
)
def test_a_job_about_to_start_begins_again_when_slurmctld_does(model: str, first: bool) -> None:
    """bb_load_first (the default of model guide) has the plugin load its state before that."""
    default = first == (model == "guide")
    ran = staged(
        "1: sbatch job.sh",
        "10 {fault: {restart: slurmctld, for: 1s}}",
        model=model,
        job="in=2 pre=20",
        keys="" if default else f"options: {{bb_load_first: {str(first).lower()}}}",
    )
    again = [
        event.name.removeprefix("bb_p_").removeprefix("job_")
        for event in ran.all(kind="plugin", plugin="burst_buffer/staging")
        if event.time_us >= 10_000_000
    ]
    again = again[again.index("init") :]
    begin, load = again.index("begin"), again.index("load_state")
    assert (load < begin) is first
    loaded = ran.all("bb_p_load_state", args_init_config=True)[-1]
    assert ran.last("slurm_ckpt_unpack_job") < loaded.seq
    if model == "guide":
        assert again.index("get_system_size") > begin
    assert ran.job()[0] == "COMPLETED"


@BOTH
def test_a_job_that_cannot_begin_again_waits_anew_or_is_launched_all_the_same(model: str) -> None:
    """Model guide: it is requeued, and begins a third time; model modern asks no more."""
    ran = staged(
        "1: sbatch job.sh",
        "9 {fault: {fail: bb_p_job_begin}}",
        "10 {fault: {restart: slurmctld, for: 1s}}",
        model=model,
        job="in=2 pre=20",
    )
    found = story(ran, 1, "REQUEST_BATCH_JOB_LAUNCH")
    if model == "modern":
        again = found.index("begin", found.index("begin") + 1)
        assert found[again : again + 3] == ["begin", "RUNNING", "REQUEST_BATCH_JOB_LAUNCH"]
    else:
        assert [each for each in found if each in ("begin", "PENDING|REQUEUE")] == [
            *("begin", "begin", "PENDING|REQUEUE", "begin")
        ]
    assert found.count("REQUEST_BATCH_JOB_LAUNCH") == 1
    assert ran.job()[0] == "COMPLETED"


@BOTH
def test_a_restarted_slurmctld_has_reservations_translated_anew(model: str) -> None:
    """Each that keeps something of a burst buffer, while slurmctld starts."""
    ran = staged(
        "1 root: scontrol create reservation=r starttime=now duration=10 users=alice nodes=n1 "
        "burstbuffer=5G",
        "2 root: scontrol create reservation=q starttime=now duration=10 users=alice nodes=n2",
        "10 {fault: {restart: slurmctld, for: 1s}}",
        model=model,
    )
    assert [event.time_us for event in ran.all("bb_p_xlate_bb_2_tres_str")][1:] == [11_000_000]


@pytest.mark.parametrize(("rc", "minutes"), [(-1, 60), (0, 3000)])
def test_a_plugin_that_answers_always_the_same_is_asked_so_many_minutes(
    rc: int, minutes: int
) -> None:
    """Where nobody does anything: sixty, and fifty times as long while something is under way."""
    fault = f"0 {{fault: {{fail: bb_p_job_test_stage_in, rc: {rc}, times: 99999}}}}"
    ran = staged(fault, "1: sbatch job.sh")
    last = ran.all("bb_p_job_test_stage_in")[-1]
    assert last.time_us // 1_000_000 == minutes * 60 + 1
