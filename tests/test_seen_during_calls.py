"""What a burst buffer plugin sees of records while it is called, and what comes of its changes.

Each call is made at one line of slurmctld's work: what was entered before it can be seen in it, and
what a plugin changes in it holds for all that comes after.
"""

import textwrap
from pathlib import Path
from typing import Any

import pytest

from simctl.testing.before import assert_before
from tests.cluster import Ran
from tests.staged import HERE, arg, calls, staged

BOTH = pytest.mark.parametrize("model", ["guide", "modern"])
BACKFILL = "SchedulerType: sched/backfill"


def ran_with(folder: Path, methods: str, *timeline: str, **more: Any) -> Ran:
    """Run a timeline with the staging plugin, of which some *methods* are others."""
    (folder / "staging_plugin.py").write_text(
        (HERE / "staging_plugin.py").read_text()
        + "\nfrom simctl.plugin import SlurmError, log\n\n\nclass Mine(Staging):\n"
        + '    plugin_type = "burst_buffer/mine"\n'
        + textwrap.indent(textwrap.dedent(methods), "    ")
    )
    return staged(*timeline, folder=folder, plugins="Mine", types="burst_buffer/mine", **more)


def said(ran: Ran) -> list[str]:
    """Return what the plugin has logged, in order."""
    return [arg(event, "text") for event in ran.all("plugin_log")]


# The queue.

OVERTAKES = """
def bb_p_{}(self{}):
    if now() >= 60 and not getattr(self, "moved", False):
        self.moved = True
        slurmctld.find_job(3).priority = 4294967000
    return super().bb_p_{}({})
"""
THREE = ("1: sbatch -N2 plain.sh", "2: sbatch -N2 plain.sh", "3: sbatch job.sh")


TELLS_WHY = """
def bb_p_job_try_stage_in(self):
    log.info(" ".join(f"{each.job_id} {each.state_reason}" for each in slurmctld.jobs()))
    return super().bb_p_job_try_stage_in()
"""


def why_at(ran: Ran) -> dict[int, str]:
    """Return why jobs wait as try_stage_in sees it, by the second of the call."""
    return {event.time_us // 1_000_000: arg(event, "text") for event in ran.all("plugin_log")}


def asked_about(ran: Ran, time_s: float) -> list[object]:
    """Return the jobs that are asked about at a moment, in order."""
    found = ran.all("bb_p_job_test_stage_in")
    return [event.job for event in found if event.time_us == time_s * 1e6]


def test_a_job_that_overtakes_while_the_state_is_loaded_is_looked_at_first(tmp_path: Path) -> None:
    """In the very pass of backfill that has had the state loaded."""
    methods = """
    def bb_p_load_state(self, init_config):
        if now() >= 60 and not getattr(self, "moved", False):
            self.moved = True
            slurmctld.find_job(3).priority = 4294967000
        return super().bb_p_load_state(init_config)
    """
    more: Any = {"does": "sleep 100", "conf": BACKFILL}
    ran = ran_with(tmp_path, methods, *THREE, **more)
    assert asked_about(ran, 60)[:2] == [3, 2]
    assert asked_about(staged(*THREE, **more), 60) == [2, 3]


@BOTH
def test_who_is_to_stage_in_may_see_why_each_job_waits(model: str, tmp_path: Path) -> None:
    """The pass is over by then, the main one and backfill's: it has looked at all of them."""
    ran = ran_with(
        tmp_path,
        TELLS_WHY,
        *THREE[:2],
        "3: sbatch -N2 plain.sh",
        "3.5: sbatch job.sh",
        "58: sbatch -N2 plain.sh",
        "59: sbatch -N2 plain.sh",
        does="sleep 100",
        job="in=200",
        conf=BACKFILL,
        model=model,
    )
    seen = why_at(ran)
    assert seen[30] == "1 None 2 Resources 3 Priority 4 BurstBufferResources"
    assert seen[60] == seen[30] + " 5 Priority 6 Priority"


STAGES_FIRST = (
    "1: sbatch -N2 plain.sh",
    "1.1: sbatch job.sh",
    "3: sbatch -N2 plain.sh",
    "3.1: sbatch -N2 plain.sh",
)


@BOTH
def test_a_main_pass_is_over_when_space_is_given(model: str, tmp_path: Path) -> None:
    """It has told why everybody waits, also of those that it met for the first time."""
    more: Any = {"does": "sleep 100", "job": "in=200", "model": model}
    ran = ran_with(tmp_path, TELLS_WHY, *STAGES_FIRST, **more)
    assert why_at(ran)[4] == "1 None 2 BurstBufferStageIn 3 Resources 4 Priority"


def test_a_job_that_overtakes_at_the_end_of_a_main_pass_has_its_new_place_at_once(
    tmp_path: Path,
) -> None:
    """Before anything else goes on: the next pass, two seconds later, is not needed for it."""
    methods = """
    def bb_p_job_try_stage_in(self):
        if int(now()) == 4:
            slurmctld.find_job(4).priority = 4294967000
    """
    ran = ran_with(
        tmp_path,
        methods,
        *STAGES_FIRST,
        "6: squeue -h -o '%i %r'",
        does="sleep 100",
        job="in=200",
    )
    assert "4 None" in ran.result.commands[4].stdout.splitlines()


def test_a_job_that_overtakes_at_the_end_of_backfill_has_its_new_place_at_once(
    tmp_path: Path,
) -> None:
    """Nobody has looked at it there, so that it does not wait for those before it any more."""
    methods = """
    def bb_p_job_try_stage_in(self):
        if now() == 60:
            slurmctld.find_job(3).priority = 4294967000
    """
    ran = ran_with(
        tmp_path,
        methods,
        *THREE[:2],
        "3: sbatch -N2 plain.sh",
        "3.5: sbatch job.sh",
        "58: sbatch -N2 plain.sh",
        "59: sbatch -N2 plain.sh",
        "60.1: squeue -h -o '%i %r'",
        does="sleep 100",
        job="in=200",
        conf=BACKFILL,
    )
    assert "3 None" in ran.result.commands[6].stdout.splitlines()


def test_those_who_may_stage_in_come_in_the_order_of_their_starts(tmp_path: Path) -> None:
    """The soonest first, and who starts in more than ten hours not at all."""
    methods = """
    def bb_p_job_try_stage_in(self):
        log.info(" ".join(str(job.job_id) for job in slurmctld.candidates()))

    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        return -1

    def bb_p_job_get_est_start(self, job_ptr):
        return slurmctld.time() + {1: 39600, 2: 600}.get(job_ptr.job_id, 60)
    """
    ran = ran_with(
        tmp_path,
        methods,
        *("1: sbatch -t1 job.sh",) * 4,
        *(f"50: scancel {job}" for job in (1, 2, 3, 4)),
        conf=BACKFILL,
    )
    assert why_at(ran) == {1: "1 2 3 4", 30: "3 4 2"}


def test_whoever_is_held_at_the_end_of_backfill_is_waited_for_no_more(tmp_path: Path) -> None:
    """No pass is due for its burst buffer: space is given before it is looked who waits for any."""
    methods = """
    def bb_p_job_try_stage_in(self):
        if now() == 60:
            slurmctld.find_job(4).priority = 0
        return super().bb_p_job_try_stage_in()
    """
    ran = ran_with(
        tmp_path,
        methods,
        *THREE[:2],
        "58: sbatch -N2 plain.sh",
        "59: sbatch job.sh",
        "280: scancel 4",
        does="sleep 300",
        conf=BACKFILL,
    )
    loads = ran.all("bb_p_load_state", args_init_config=False)
    assert [each.time_us // 1_000_000 for each in loads] == [1, 4, 30, 58, 60, 61, 90, 330]


@BOTH
def test_a_job_that_its_plugin_holds_does_not_start_whatever_the_answer(
    model: str, tmp_path: Path
) -> None:
    """The answer that it may is as good as none: the main pass asks before it looks at the hold."""
    methods = """
    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        if not test_only and job_ptr.burst_buffer:
            job_ptr.priority = 0
            return 1
        return super().bb_p_job_test_stage_in(job_ptr, test_only)
    """
    ran = ran_with(tmp_path, methods, "1: sbatch job.sh", "2: sbatch plain.sh", model=model)
    assert ran.job(1)[0] == "PENDING"
    assert ran.job(2)[0] == "COMPLETED"
    assert not ran.all("bb_p_job_begin", job=1)
    assert len(ran.all("bb_p_job_test_stage_in", job=1, args_test_only=False)) == 1


@BOTH
def test_backfill_tells_what_the_last_answer_was(model: str, tmp_path: Path) -> None:
    """One that might start, and then may not after all, waits for its burst buffer."""
    methods = """
    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        if not job_ptr.burst_buffer or now() > 100:
            return 1
        return 1 if test_only else 0
    """
    ran = ran_with(
        tmp_path,
        methods,
        "1: sbatch plain.sh",
        "2: sbatch -N2 plain.sh",
        "3: sbatch job.sh",
        "30.1: squeue -h -j3 -o %r",
        does="sleep 70",
        conf=f"{BACKFILL}, SchedulerParameters: default_queue_depth=1",
        model=model,
    )
    assert ran.result.commands[3].stdout == "BurstBufferStageIn\n"
    assert ran.job(3)[0] == "COMPLETED"


@BOTH
def test_a_job_that_is_held_as_backfill_is_about_to_start_it_waits(
    model: str, tmp_path: Path
) -> None:
    """Whatever the plugin answers beside."""
    methods = """
    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        if not job_ptr.burst_buffer or test_only:
            return 1
        if now() == 30:
            job_ptr.priority = 0
            return 1
        return 0
    """
    ran = ran_with(
        tmp_path,
        methods,
        "1: sbatch plain.sh",
        "2: sbatch -N2 plain.sh",
        "3: sbatch -t1 job.sh",
        "200: scancel 3",
        does="sleep 100",
        conf=BACKFILL,
        model=model,
    )
    assert ran.all("bb_p_job_test_stage_in", job=3, time_us=30_000_000)[-1].rc == 1
    assert not ran.all("bb_p_job_begin", job=3)


@BOTH
def test_a_new_job_has_as_many_ahead_asked_about_as_a_pass_would(model: str) -> None:
    """default_queue_depth of them; and of an array bb_array_stage_cnt tasks wait at a time."""
    ran = staged(
        *("1: sbatch job.sh",) * 3,
        "2: sbatch job.sh",
        job="in=50",
        conf="SchedulerParameters: default_queue_depth=2",
        model=model,
    )
    asked = [each for each in ran.all("bb_p_job_test_stage_in") if 2e6 <= each.time_us < 2.9e6]
    assert [each.job for each in asked] == [1, 2, 4]
    ran = staged(
        "1: sbatch -a 1-6 job.sh",
        job="in=50",
        does="sleep 100",
        conf="SchedulerParameters: bb_array_stage_cnt=2",
        model=model,
    )
    made = [each for each in ran.all("job_state") if arg(each, "from") is None]
    assert [(each.job, each.time_us // 1_000_000) for each in made][:5] == [
        *((1, 1), (2, 1), (3, 1), (4, 61), (5, 121))
    ]


def test_a_task_that_is_held_as_it_is_split_off_waits_until_it_is_released(tmp_path: Path) -> None:
    """As any job that its plugin holds, and not only until its data are there."""
    methods = """
    def bb_p_job_validate2(self, job_ptr):
        if job_ptr.job_id == 3:
            job_ptr.state_desc = "not this one"
            job_ptr.priority = 0
    """
    ran = ran_with(
        tmp_path,
        methods,
        "1: sbatch -a 1-4 job.sh",
        "30: squeue -h -t PD -o '%i %r'",
        "200 root: scontrol release 1_2",
    )
    assert ran.result.commands[1].stdout == "1_2 not this one\n"
    assert ran.all("bb_p_job_begin", job=3)[0].time_us > 200_000_000


@BOTH
def test_why_a_new_job_waits_is_told_by_its_own_answer(model: str) -> None:
    """Not by one that was given before, nor by none: squeue knows before any pass."""
    ran = staged(
        *THREE[:2],
        "3: sbatch -N2 plain.sh",
        "3.1: sbatch job.sh",
        "3.2: squeue -h -o '%i %r'",
        does="sleep 100",
        model=model,
    )
    assert not [each for each in ran.all("bb_p_load_state") if 3e6 < each.time_us < 3.3e6]
    found = set(ran.result.commands[4].stdout.splitlines())
    assert found == {"1 None", "2 None", "3 None", "4 BurstBufferResources"}


@BOTH
def test_before_a_job_that_has_to_wait_for_its_time_nobody_is_asked_about(model: str) -> None:
    """It is in no queue, so that nobody is ahead of it."""
    ran = staged("1: sbatch job.sh", "2: sbatch --begin=now+100 job.sh", job="in=50", model=model)
    found = [
        (each.job, arg(each, "test_only"))
        for each in ran.all("bb_p_job_test_stage_in")
        if 2e6 <= each.time_us < 2.9e6
    ]
    assert found == [(2, True)]


@BOTH
def test_whoever_submits_a_job_that_is_held_at_once_is_told_so(model: str, tmp_path: Path) -> None:
    """The answer is made after the plugin was asked about the job."""
    methods = """
    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        job_ptr.priority = 0
        return -1
    """
    ran = ran_with(tmp_path, methods, "1: sbatch job.sh", "30: scancel 1", model=model)
    answer = ran.one("RESPONSE_SUBMIT_BATCH_JOB", phase="send")
    assert arg(answer, "error_code") == 2042


@BOTH
def test_an_allocation_that_will_not_wait_is_in_the_books_before_its_staging_ends(
    model: str, tmp_path: Path
) -> None:
    """What its plugin changes then is in no account, and in the record that is left."""
    methods = """
    def bb_p_job_cancel(self, job_ptr):
        job_ptr.priority = 7
        job_ptr.state_reason = "Prolog"
        return super().bb_p_job_cancel(job_ptr)
    """
    ran = ran_with(
        tmp_path,
        methods,
        "1: srun --immediate --bb=in=5 true",
        "9: sacct -n -P -X -o JobID,Priority,State",
        model=model,
    )
    assert ran.job() == ("FAILED", "0:0", "Prolog")
    assert ran.result.commands[1].stdout == "1|4294901759|FAILED\n"


@BOTH
def test_a_client_that_waits_is_told_of_the_end_when_its_staging_has_ended(model: str) -> None:
    """scancel: the plugin is told before srun, and sees a job that is over."""
    ran = staged("1: srun --bb='in=50' true", "9: scancel 1", model=model)
    told = ran.one("SRUN_JOB_COMPLETE", phase="send")
    assert ran.one("bb_p_job_cancel").seq < told.seq


@BOTH
def test_an_allocation_is_told_why_it_waits_by_the_second_answer(
    model: str, tmp_path: Path
) -> None:
    """The plugin sees that nothing has been said when it is asked the second time."""
    methods = """
    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        log.info(job_ptr.state_reason)
        return super().bb_p_job_test_stage_in(job_ptr, test_only)
    """
    ran = ran_with(tmp_path, methods, "1: srun --bb='in=3' true", model=model)
    assert said(ran)[:2] == ["None", "None"]
    assert ran.job()[0] == "COMPLETED"


# A job is about to start, and does not.


def test_whoever_takes_a_claim_back_sees_the_nodes_it_was_for(tmp_path: Path) -> None:
    """revoke_alloc comes before the job has lost them."""
    methods = """
    def bb_p_job_revoke_alloc(self, job_ptr):
        log.info(f"{job_ptr.nodes} {job_ptr.job_state} {job_ptr.start_time > 0}")
        return super().bb_p_job_revoke_alloc(job_ptr)
    """
    ran = ran_with(
        tmp_path,
        methods,
        '0 {fault: {fail: "select_g_job_begin", times: 1}}',
        "1: sbatch job.sh",
        job="in=5 out=3",
    )
    assert said(ran) == ["n1 PENDING True"]
    assert ran.job()[0] == "COMPLETED"


def test_what_a_plugin_says_as_it_claims_stays(tmp_path: Path) -> None:
    """What the job waited for is forgotten before: inside the call there is nothing of it left."""
    methods = """
    def bb_p_job_begin(self, job_ptr):
        log.info(f"{job_ptr.state_desc!r}")
        job_ptr.state_desc = "claimed"
        return super().bb_p_job_begin(job_ptr)

    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        job_ptr.state_desc = "asked"
        return super().bb_p_job_test_stage_in(job_ptr, test_only)

    def bb_p_job_start_stage_out(self, job_ptr):
        log.info(f"{job_ptr.state_desc!r}")
        return super().bb_p_job_start_stage_out(job_ptr)
    """
    ran = ran_with(
        tmp_path, methods, "1: sbatch job.sh", "8: scontrol show job 1", job="in=2 out=3"
    )
    assert said(ran)[0] == "''"
    assert "Reason=claimed" in ran.result.commands[1].stdout


def test_a_revoked_claim_is_being_cleaned_up_before_the_state_is_loaded(tmp_path: Path) -> None:
    """The plugin sees so while it loads its state, in the pass that asks about the job again."""
    methods = """
    def bb_p_load_state(self, init_config):
        job = slurmctld.find_job(1)
        if job is not None:
            log.info(f"{job.job_state} {job.state_reason}")
        return super().bb_p_load_state(init_config)
    """
    ran = ran_with(
        tmp_path,
        methods,
        '0 {fault: {fail: "select_g_job_begin", times: 1}}',
        "1: sbatch job.sh",
        "10: sbatch plain.sh",
        "60: scancel 1",
        job="in=2 pre=50 out=3",
        model="modern",
    )
    assert [line for line in said(ran) if "CONF" in line] == ["PENDING|CONFIGURING Cleaning"]


@BOTH
def test_a_job_starts_when_its_claim_is_made_however_long_that_takes(
    model: str, tmp_path: Path
) -> None:
    """What scontrol shows as its start, and what its time limit is counted from."""
    methods = """
    async def bb_p_job_begin(self, job_ptr):
        await sleep(10)
        return super().bb_p_job_begin(job_ptr)
    """
    ran = ran_with(
        tmp_path,
        methods,
        "1: sbatch -t1 plain.sh",
        "30: scontrol show job 1",
        does="sleep 100",
        model=model,
    )
    shown = ran.result.commands[1].stdout
    assert "StartTime=2026-01-01T00:00:11 EndTime=2026-01-01T00:01:11" in shown


@BOTH
def test_a_job_without_nodes_is_out_of_its_queue_when_it_claims(model: str, tmp_path: Path) -> None:
    """It waits for nothing any more, not for its turn either."""
    methods = """
    def bb_p_job_begin(self, job_ptr):
        log.info(job_ptr.state_reason)
        return super().bb_p_job_begin(job_ptr)
    """
    ran = ran_with(tmp_path, methods, "1: sbatch -N0 job.sh", model=model)
    assert said(ran) == ["None"]


@BOTH
def test_a_job_claims_because_its_buffer_has_come_so_far(model: str, tmp_path: Path) -> None:
    """Under no schedule could it before: the last change of its burst buffer led to it."""
    methods = """
    def _stage_in(self, job):
        super()._stage_in(job)

        async def watch():
            await sleep(6)
            async with slurmctld.locked():
                job.burst_buffer_state = "staged-in"

        start(watch)

    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        answer = super().bb_p_job_test_stage_in(job_ptr, test_only)
        return answer if answer < 1 or job_ptr.burst_buffer_state else 0
    """
    ran = ran_with(tmp_path, methods, "1: sbatch job.sh", "2: sbatch plain.sh", model=model)
    assert ran.all("bb_p_job_begin", job=1)
    assert_before(ran.events, "bb_state job=1", "bb_p_job_begin job=1", proved=True)


def test_a_job_claims_because_the_job_it_waited_for_is_over() -> None:
    """Under no schedule could it before; and its counts are entered once it has its nodes."""
    ran = staged("1: sbatch plain.sh", "2: sbatch -d afterok:1 plain.sh")
    assert_before(
        ran.events, "job_state job=1 args.to=COMPLETED", "bb_p_job_begin job=2", proved=True
    )
    counted = ran.one("bb_p_job_set_tres_cnt", job=1, args_locked=True)
    taken = [each for each in ran.all("node_state") if arg(each, "to") == "ALLOCATED"]
    assert ran.one("job_state", job=1, args_to="RUNNING").seq < taken[0].seq < counted.seq


# A run ends.


@BOTH
def test_what_a_plugin_says_as_a_node_failure_ends_a_run_goes_with_the_run(
    model: str, tmp_path: Path
) -> None:
    """The job waits again, and for nothing that the plugin has said at its end."""
    methods = """
    def bb_p_job_start_stage_out(self, job_ptr):
        job_ptr.state_desc = "what is left of it"
        return super().bb_p_job_start_stage_out(job_ptr)
    """
    ran = ran_with(
        tmp_path,
        methods,
        "1: sbatch job.sh",
        "10 {fault: {crash: n1}}",
        "60: squeue -h -j1 -o '%T %r'",
        does="sleep 100",
        conf="SlurmdTimeout: 30",
        model=model,
    )
    assert ran.all("bb_p_job_start_stage_out", job=1)[0].time_us < 60_000_000
    assert ran.result.commands[1].stdout.startswith("PENDING BeginTime")


def test_a_job_that_comes_back_has_those_ahead_of_it_asked_about() -> None:
    """It is in its queue by then, as any new one."""
    ran = staged(
        "1: sbatch job.sh",
        "15: scontrol checkpoint vacate 1",
        "58: sbatch -N2 plain.sh",
        "59: sbatch -N2 --bb=in=5 plain.sh",
        "60: scontrol checkpoint restart 1",
        job="in=5 out=3",
        does="srun_cr sleep 100",
        conf="CheckpointType: checkpoint/blcr, JobCheckpointDir: /shared/ckpt",
    )
    asked = ran.all("REQUEST_CHECKPOINT", phase="receive", daemon="slurmctld")[-1]
    tests = [each for each in ran.all("bb_p_job_test_stage_in") if each.seq > asked.seq]
    assert [(each.job, arg(each, "test_only")) for each in tests[:2]] == [(3, True), (1, True)]


@BOTH
def test_a_stage_out_that_waits_for_the_epilogs_is_started_before_it_is_asked_about(
    model: str,
) -> None:
    """bb_stageout_after_epilog: or the plugin would say that nothing is left to do."""
    keys = "options: {bb_stageout_after_epilog: true, bb_post_run_gate: true}"
    ran = staged("1: sbatch job.sh", model=model, keys=keys)
    found = [each for each in calls(ran, 1) if "post_run" in each or "start_stage_out" in each]
    assert found == ["start_stage_out", "test_post_run=0", "test_post_run=1"]


@BOTH
def test_whoever_waits_for_a_stage_out_waits_though_the_job_is_old_enough_to_go(model: str) -> None:
    """It is kept, and its data are not out before the plugin says so."""
    ran = staged(
        "1: sbatch job.sh",
        "2: sbatch -d afterburstbuffer:1 plain.sh",
        model=model,
        job="in=5 out=200",
    )
    over = ran.one("bb_p_job_start_stage_out", job=1).time_us + 200_000_000
    assert ran.one("bb_p_job_begin", job=2).time_us >= over


def test_a_question_that_has_a_pass_run_is_not_asked_again_at_once(tmp_path: Path) -> None:
    """The job counts as kept only once the plugin has said that it keeps it."""
    methods = """
    def bb_p_job_test_post_run(self, job_ptr):
        if not getattr(self, "asked", False):
            self.asked = True
            slurmctld.schedule()
        return super().bb_p_job_test_post_run(job_ptr)
    """
    ran = ran_with(tmp_path, methods, "1: sbatch job.sh")
    assert [call for call in calls(ran, 1) if "post_run" in call] == [
        *("test_post_run=0", "test_post_run=1")
    ]


@BOTH
def test_after_a_restart_the_plugin_is_asked_about_all_that_is_there(model: str) -> None:
    """The space of each running job, which nobody has locked then, and of each reservation."""
    make = "scontrol create reservation={} starttime=now+1hour duration=10 users=alice nodes={}"
    ran = staged(
        "1: sbatch -t5 job.sh",
        "1: srun -t5 --bb=in=2 sleep 100",
        f"15 root: {make.format('r', 'n1')} burstbuffer=5G",
        f"15 root: {make.format('q', 'n2')} burstbuffer=6G",
        "20 {fault: {restart: slurmctld, for: 2s}}",
        does="sleep 100",
        model=model,
    )
    back_us = 22_000_000
    counted = [each for each in ran.all("bb_p_job_set_tres_cnt") if each.time_us == back_us]
    assert [(each.job, arg(each, "locked")) for each in counted] == [(1, False), (2, False)]
    asked = [each for each in ran.all("bb_p_xlate_bb_2_tres_str") if each.time_us == back_us]
    assert [arg(each, "burst_buffer") for each in asked] == ["5G", "6G"]


@BOTH
def test_jobs_that_end_with_the_one_they_wait_for_are_cancelled_in_their_order(model: str) -> None:
    """Once slurmctld has done its present work; each once."""
    waits = "sbatch -d afterok:1 --kill-on-invalid-dep=yes job.sh"
    ran = staged("1: sbatch plain.sh", *(f"2: {waits}",) * 3, does="exit 1", model=model)
    assert [(each.job, each.time_us) for each in ran.all("bb_p_job_cancel")] == [
        (job, ran.all("bb_p_job_cancel")[0].time_us) for job in (2, 3, 4)
    ]


TWO: Any = {"types": "burst_buffer/second,burst_buffer/staging", "plugins": "Staging Second"}


@BOTH
def test_of_several_plugins_each_is_loaded_asked_and_let_go(model: str) -> None:
    """In the order of BurstBufferType, whatever the one before has answered."""
    ran = staged("1: sbatch job.sh", "30 root: scontrol reconfigure", model=model, **TWO)
    kinds = ["burst_buffer/second", "burst_buffer/staging"]
    for name in ("init", "fini", "bb_p_reconfig", "bb_p_job_validate2", "bb_p_job_begin"):
        found = [str(each.plugin) for each in ran.all(name, kind="plugin")]
        assert [each for each in found if each in kinds] == kinds, name
    failing = staged(
        "0 {fault: {fail: bb_p_job_start_stage_out plugin=burst_buffer/second}}",
        "1: sbatch job.sh",
        model=model,
        **TWO,
    )
    found = [str(each.plugin) for each in failing.all("bb_p_job_start_stage_out")]
    assert found == kinds


@BOTH
@pytest.mark.parametrize("type_", ["second", "staging"])
def test_of_several_plugins_the_least_answer_counts(model: str, type_: str) -> None:
    """A job starts once each says that it may, whichever is slower."""
    ran = staged(
        f'0 {{fault: {{fail: "bb_p_job_test_stage_in plugin=burst_buffer/{type_}", times: 9}}}}',
        "1: sbatch job.sh",
        model=model,
        **TWO,
    )
    last = {
        kind: ran.all("bb_p_job_test_stage_in", plugin=f"burst_buffer/{kind}")[-1].rc
        for kind in ("second", "staging")
    }
    assert last == {"second": 1, "staging": 1}
    begun = ran.first("bb_p_job_begin")
    failed = ran.all("bb_p_job_test_stage_in", plugin=f"burst_buffer/{type_}", rc=-1)
    assert len(failed) == 9
    assert failed[-1].seq < begun


def test_every_job_that_is_kept_is_asked_about_each_time() -> None:
    """Those that wait for their post-run every thirty seconds, those old enough in each scan."""
    ran = staged("1: sbatch job.sh", "1: sbatch job.sh", job="in=1 post=50 out=60")
    for name, moments in (("post_run", [14, 44, 74]), ("stage_out", [74, 80, 100, 120, 140])):
        for job in (1, 2):
            asked = ran.all(f"bb_p_job_test_{name}", job=job)
            assert [each.time_us // 1_000_000 for each in asked] == moments
