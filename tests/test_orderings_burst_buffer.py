"""Each rule about burst buffers holds in a run, and is broken once its events are damaged."""

from functools import cache

import pytest

from simctl.kernel.orders import begin_seq
from simctl.orderings.checking import declared
from tests.cluster import TWO_NODES, Ran, run
from tests.damaged import Damage, changed, doubled, dropped, moved, told
from tests.entries import typed
from tests.staged import calls, staged

_BUSY = """\
slurm_conf: {BurstBufferType: burst_buffer/datawarp, SchedulerType: sched/backfill, MinJobAge: 60}
burst_buffer: {pools: {wlm_pool: {capacity: 10GiB}}}
files:
  first: |
    #!/bin/sh
    #DW jobdw capacity=8GiB
    #DW stage_in type=file source=/lus/in destination=in
    #DW stage_out type=file source=out destination=/lus/out
    srun sleep 20
  second: |
    #!/bin/sh
    #DW jobdw capacity=8GiB
    sleep 5
  plain: |
    #!/bin/sh
    sleep 5
timeline:
  - {at: 0s, fault: {fail: "select_g_job_begin job=3", times: 1}}
  - {at: 1s, as: alice, run: sbatch first}
  - {at: 2s, as: alice, run: sbatch second}
  - {at: 3s, as: alice, run: sbatch plain}
  - {at: 4s, as: alice, run: sbatch --test-only plain}
  - {at: 5s, as: alice, run: sbatch -H plain}
  - {at: 6s, as: alice, run: scancel 5}
"""
"""A job that is staged, one that waits for its space, one without buffer, one never submitted."""


@cache
def busy(model: str) -> Ran:
    """Return the run."""
    ran = run(_BUSY, cluster=TWO_NODES, model=model)
    for job in (1, 2, 3):
        assert ran.job(job)[0] == "COMPLETED"
    return ran


BEGIN = "bb_p_job_begin job=1"
FREE = "slurm_ckpt_free_job job=1 role=slurmctld"
STAGE_OUT = "bb_p_job_start_stage_out job=1"
TERMINATE = "REQUEST_TERMINATE_JOB job=1 phase=send"
RUNNING = "job_state job=1 state=RUNNING"
KEPT_SPACE = "job_state job=1 args.from=COMPLETED|COMPLETING"
OURS = {
    each.name for each in declared() if each.number in (*range(18, 35), 57, 62, 63, 64, 66, 70, 71)
}

DAMAGES: dict[str, tuple[Damage | tuple[Damage, ...], dict[str, str]]] = {
    "validate left out": (
        dropped("bb_p_job_validate"),
        {
            "validated-in-order": "the job has an id, and validate was not called",
            "checkpoint-record-made-in-place": (
                "alloc_job follows REQUEST_SUBMIT_BATCH_JOB, not validate"
            ),
        },
    ),
    "a refusal by validate ignored": (
        changed("bb_p_job_validate", rc=2094),
        {"validated-in-order": "the job has an id although validate refused it"},
    ),
    "validate2 twice": (
        doubled("bb_p_job_validate2 job=3"),
        {"validated-in-order": "validate2 was called 2 times"},
    ),
    "validate2 too late": (
        moved("bb_p_job_validate2 job=3", before="RESPONSE_SUBMIT_BATCH_JOB job=3"),
        {
            "validated-in-order": " comes before validate2",
            "checkpoint-record-made-in-place": "alloc_job is followed by ",
        },
    ),
    "a refusal ignored": (
        changed("bb_p_job_validate2 job=3", rc=2094),
        {
            "validated-in-order": " follows a refusal",
            "stage-out-or-cancel": "the job ended 1 times, and there were 1 calls of the two",
        },
    ),
    "validate2 of --test-only": (
        moved("bb_p_job_validate2 job=5", before="RESPONSE_JOB_WILL_RUN"),
        {
            "no-validate2-of-what-is-not-submitted": "validate2 was called",
            "validated-in-order": "validate2 was called before the job had an id",
            "checkpoint-record-made-in-place": "alloc_job is followed by ",
        },
    ),
    "begin left out": (
        dropped(BEGIN),
        {
            "stage-in-before-begin": "the job is RUNNING, and begin was not called",
            "no-launch-before-begin": "a script was launched before begin",
            "scripts-inside-calls": "dw_paths ran outside begin",
        },
    ),
    "begin without a question": (
        dropped("bb_p_job_test_stage_in job=1 rc=1"),
        {"stage-in-before-begin": "begin follows test_stage_in = 0 and no test_stage_in of 1"},
    ),
    "begin after a no": (
        changed("bb_p_job_test_stage_in job=1 rc=1", rc=0),
        {"stage-in-before-begin": "begin follows test_stage_in = 0 and no test_stage_in of 1"},
    ),
    "begin twice": (
        doubled("bb_p_job_begin job=2"),
        {
            "begin-once-a-run": "begin was called a second time for one run",
            "stage-in-before-begin": "begin was called while the job was PENDING|CONFIGURING",
        },
    ),
    "a run in spite of begin": (
        changed("bb_p_job_begin job=2", rc=-1),
        {
            "begin-once-a-run": "the job runs although begin failed",
            "no-launch-before-begin": "a script was launched although begin failed",
        },
    ),
    "a stage-out of what was revoked": (
        (
            moved("bb_p_job_start_stage_out job=3", after="bb_p_job_revoke_alloc job=3"),
            changed("bb_p_job_start_stage_out job=3", time_us=4_000_100),
        ),
        {
            "begin-once-a-run": "start_stage_out follows a start that was revoked",
            "stage-out-starts-as-a-run-ends": "neither start_stage_out nor cancel",
        },
    ),
    "revoke twice": (
        doubled("bb_p_job_revoke_alloc"),
        {"begin-once-a-run": "revoke_alloc follows no good begin"},
    ),
    "a launch before the pre-run": (
        moved("job_state job=1 args.from=RUNNING|CONFIGURING", after="REQUEST_BATCH_JOB_LAUNCH"),
        {"no-launch-before-begin": "a script was launched while the job was RUNNING|CONFIGURING"},
    ),
    "a launch in spite of pre_run": (
        changed("dw_pre_run job=1", rc=256),
        {"no-launch-before-begin": "a script was launched although pre_run failed"},
    ),
    "data_in before setup": (
        moved("dw_setup job=1", after="dw_data_in job=1"),
        {
            "scripts-inside-calls": "dw_data_in ran without dw_setup",
        },
    ),
    "teardown before data_out": (
        moved("dw_teardown job=1", before="dw_post_run job=1 phase=exit"),
        {"scripts-in-order": "dw_post_run began after dw_teardown"},
    ),
    "pre_run before the end of paths": (
        moved("dw_pre_run job=1", before="exit job=1 role=script", to=4),
        {"scripts-in-order": "dw_pre_run began before dw_paths ended"},
    ),
    "paths outside begin": (
        moved("dw_paths job=1", after=BEGIN),
        {"scripts-inside-calls": "dw_paths ran outside begin"},
    ),
    "pre_run without paths": (
        dropped("dw_paths job=1"),
        {"scripts-inside-calls": "dw_pre_run ran without dw_paths"},
    ),
    "no stage-out": (
        dropped("bb_p_job_start_stage_out job=2"),
        {
            "stage-out-starts-as-a-run-ends": (
                "the run was followed by neither start_stage_out nor cancel before its nodes were "
                "told"
            ),
            "stage-out-or-cancel": "the job ended 1 times, and there were 0 calls of the two",
            "stage-out-flag": "it is given STAGE_OUT outside start_stage_out",
        },
    ),
    "stage-out after the nodes were told": (
        moved(STAGE_OUT, after=TERMINATE),
        {
            "stage-out-starts-as-a-run-ends": (
                "the run was followed by neither start_stage_out nor cancel before its nodes were "
                "told"
            ),
            "stage-out-flag": "it is given STAGE_OUT outside start_stage_out",
        },
    ),
    "cancel in place of stage-out": (
        changed("bb_p_job_start_stage_out job=3", name="bb_p_job_cancel"),
        {
            "stage-out-starts-as-a-run-ends": (
                "the run was followed by cancel before its nodes were told"
            ),
        },
    ),
    "cancel twice": (
        doubled("bb_p_job_cancel job=5"),
        {"stage-out-or-cancel": "the job ended 1 times, and there were 2 calls of the two"},
    ),
    "stage-out of what never ran": (
        changed("bb_p_job_cancel job=5", name="bb_p_job_start_stage_out"),
        {"stage-out-or-cancel": "start_stage_out of a job that never ran"},
    ),
    "purged without a question": (
        dropped("bb_p_job_test_stage_out job=1", -1),
        {"purge-after-stage-out": "its record goes, and test_stage_out was not called"},
    ),
    "purged in spite of the answer": (
        changed("bb_p_job_test_stage_out job=1", -1, rc=0),
        {"purge-after-stage-out": "its record goes after a test_stage_out of 0"},
    ),
    "purged too early": (
        changed("slurm_ckpt_free_job job=3", time_us=40_000_000),
        {"purge-after-stage-out": "its record goes 30.9997 s after its end, sooner than MinJobAge"},
    ),
    "forgotten once its data was out, and its record kept": (
        (
            doubled("bb_p_job_test_stage_out job=1"),
            changed("bb_p_job_test_stage_out job=1", rc=0),
            dropped(FREE, -1),
        ),
        {
            "checkpoint-record-freed-once": (
                "the job is over and forgotten, and its record was not freed"
            ),
        },
    ),
    "a run after its begin was revoked": (
        dropped("bb_p_job_begin job=3", -1),
        {
            "stage-in-before-begin": "the job is RUNNING, and begin was not called",
            "begin-once-a-run": "start_stage_out follows a start that was revoked",
            "no-launch-before-begin": "a script was launched before begin",
        },
    ),
    "STAGE_OUT from nowhere": (
        moved(KEPT_SPACE, before=STAGE_OUT),
        {"stage-out-flag": "it is given STAGE_OUT outside start_stage_out"},
    ),
    "STAGE_OUT once the call is over": (
        moved(KEPT_SPACE, after=STAGE_OUT),
        {"stage-out-flag": "it is given STAGE_OUT outside start_stage_out"},
    ),
    "not loaded at the start": (
        dropped("bb_p_load_state args.init_config=true"),
        {"state-loaded-at-start": "validate was called before load_state(true)"},
    ),
    "loaded twice": (
        doubled("bb_p_load_state args.init_config=true"),
        {"state-loaded-at-start": "load_state(true) was called a second time"},
    ),
    "not loaded before a pass": (
        dropped("bb_p_load_state args.init_config=false"),
        {"state-loaded-before-passes": "it begins with test_stage_in, not load_state"},
    ),
    "try_stage_in where nobody waits": (
        changed("bb_p_job_test_stage_in job=1 args.test_only=false", rc=1),
        {"try-stage-in-after-waiting": "nobody waits for a burst buffer"},
    ),
    "try_stage_in twice": (
        doubled("bb_p_job_try_stage_in"),
        {"try-stage-in-after-waiting": "it has a second try_stage_in"},
    ),
    "a promise that nobody asked for": (
        moved(
            "bb_p_job_get_est_start",
            before="bb_p_job_test_stage_in job=2 args.test_only=true",
            to=2,
        ),
        {"est-start-after-minus-one": "it follows no test_stage_in of the job"},
    ),
    "a promise to another job": (
        changed("bb_p_job_get_est_start", job=1),
        {"est-start-after-minus-one": "it follows no test_stage_in of the job"},
    ),
    "a promise after a question that was no trial": (
        changed("bb_p_job_test_stage_in job=2 args.test_only=true", 2, args_test_only=False),
        {"est-start-after-minus-one": "it follows test_stage_in(test_only=False) = -1"},
    ),
    "try_stage_in while somebody waits": (
        changed("bb_p_job_test_stage_in job=2 args.test_only=true", 2, args_test_only=False, rc=0),
        {"est-start-after-minus-one": "it follows test_stage_in(test_only=False) = 0"},
    ),
    "try_stage_in after a trial, and nobody waits": (
        changed("bb_p_job_test_stage_in job=2 args.test_only=true", 2, rc=1),
        {"est-start-after-minus-one": "it follows test_stage_in(test_only=True) = 1"},
    ),
    "a promise after 0": (
        changed("bb_p_job_test_stage_in job=2 args.test_only=true", 2, rc=0),
        {"est-start-after-minus-one": "it follows test_stage_in(test_only=True) = 0"},
    ),
    "stage-out of nothing awaited": (
        (
            doubled("bb_p_job_test_stage_out job=1"),
            changed("bb_p_job_test_stage_out job=1", job=3),
            moved("bb_p_job_test_stage_out job=3", before="slurm_ckpt_free_job job=3"),
        ),
        {"jobs-without-burst-buffer": "test_stage_out was asked about it"},
    ),
    "not counted": (
        dropped("bb_p_job_set_tres_cnt job=1 args.locked=true"),
        {
            "tres-counted-at-the-start": (
                "the job is RUNNING|CONFIGURING, and set_tres_cnt was not called"
            )
        },
    ),
    "counted too early": (
        moved(
            "bb_p_job_set_tres_cnt job=3 args.locked=true", before="job_state job=3 state=RUNNING"
        ),
        {"tres-counted-at-the-start": "the job is COMPLETED|COMPLETING, and set_tres"},
    ),
}

GUIDE_ONLY: dict[str, tuple[Damage | tuple[Damage, ...], dict[str, str]]] = {
    "post-run of a job that runs": (
        moved("bb_p_job_test_post_run job=1", before="REQUEST_COMPLETE_BATCH_SCRIPT job=1"),
        {"post-run-asked-where-it-gates": "test_post_run was asked while the job was RUNNING"},
    ),
}
"""What model modern never calls."""


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_they_hold(model: str) -> None:
    """In a run where all kinds of jobs pass each other."""
    assert told(busy(model)) == {}


def test_each_rule_about_burst_buffers_can_be_broken() -> None:
    """None is forgotten here."""
    shown = {rule for _, wanted in (DAMAGES | GUIDE_ONLY).values() for rule in wanted}
    about = "simctl.orderings.burst_buffer"
    ours = {
        each.name for each in declared() if getattr(each.check, "__module__", "").startswith(about)
    }
    assert ours <= shown
    assert len(ours) >= 10


@pytest.mark.parametrize(
    ("name", "model"),
    [(name, model) for name in DAMAGES for model in ("guide", "modern")]
    + [(name, "guide") for name in GUIDE_ONLY],
)
def test_damage_breaks_the_rules_that_forbid_it_and_no_other(name: str, model: str) -> None:
    """Each says what is wrong; rules about other things may see something in it too."""
    damage, wanted = (DAMAGES | GUIDE_ONLY)[name]
    found = told(busy(model), *(damage if isinstance(damage, tuple) else (damage,)))
    assert {*found} & OURS == {*wanted} & OURS
    for rule, what in wanted.items():
        assert what in found[rule]


def test_a_run_that_is_not_claimed_anew_may_end_before_plugins_load() -> None:
    """Where jobs begin again first: its stage-out is asked for before load_state(true)."""
    ran = staged(
        "1: sbatch job.sh",
        "2 {fault: {fail: bb_p_job_begin, times: 1, skip: 1}}",
        "10 {fault: {restart: slurmctld, for: 1s}}",
        job="in=5 pre=9",
        keys="options: {bb_load_first: false}",
    )
    again = calls(ran)
    first = again.index("begin=-1")
    assert again[first : first + 2] == ["begin=-1", "start_stage_out"]
    assert "load_state(true)" in again[first + 2 :]


def test_a_job_without_a_checkpoint_record_ends_without_cancel() -> None:
    """It is refused before the plugin has heard of its buffer."""
    ran = run(
        _BUSY.replace(
            "timeline:\n", 'timeline:\n  - {at: 0s, fault: {raise: "slurm_ckpt_alloc_job"}}\n'
        ),
        cluster=TWO_NODES,
    )
    assert ran.all("job_state", job=1)[-1].args == {
        "from": "PENDING",
        "to": "FAILED",
        "reason": "None",
    }
    assert not [each for each in calls(ran, 1) if "cancel" in each]
    assert [each.rule.name for each in ran.result.orderings.broken] == []


def test_a_task_whose_step_has_no_checkpoint_record_is_staged_out_like_any_other() -> None:
    """It was taken in, under another's record; slurmctld gives up, and the next one ends it."""
    ran = typed(
        '{at: 0s, fault: {raise: "slurm_ckpt_alloc_job job=2"}}',
        "1s alice sbatch --array=1-2 a",
        "{at: 1m, fault: {start: slurmctld}}",
        head=(
            "slurm_conf: {BurstBufferType: burst_buffer/datawarp}\n"
            "burst_buffer: {pools: {wlm_pool: {capacity: 10GiB}}}\n"
            'files: {a: "#!/bin/sh\\n#DW jobdw capacity=1GiB\\nsrun sleep 5\\n"}\n'
        ),
    )
    (made,) = ran.all("slurm_ckpt_alloc_job", job=2, rc=-1)
    assert made.step == "2.0"
    ends = calls(ran, 2).count("start_stage_out")
    assert ends
    assert told(ran, dropped("bb_p_job_start_stage_out job=2"))["stage-out-or-cancel"] == (
        f"the job ended {ends} times, and there were {ends - 1} calls of the two"
    )


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_task_that_left_its_array_with_the_record_may_be_kept_for_ever(model: str) -> None:
    """As long as its burst buffer is not staged out; the rest of the array is forgotten."""
    ran = typed(
        '{at: 0s, fault: {fail: "bb_p_job_test_stage_out job=2", times: 999}}',
        "1s alice sbatch a",
        head=(
            "slurm_conf: {BurstBufferType: burst_buffer/datawarp, CheckpointType: "
            "checkpoint/ompi, MinJobAge: 60}\n"
            "burst_buffer: {pools: {wlm_pool: {capacity: 10GiB}}}\n"
            "files:\n"
            "  a: |\n"
            "    #!/bin/sh\n"
            "    #SBATCH --array=1-3\n"
            "    #DW jobdw capacity=1GiB\n"
            "    sleep 5\n"
        ),
        cluster=TWO_NODES,
        model=model,
    )
    assert len(ran.all("slurm_ckpt_free_job")) == 2
    assert [each.rule.name for each in ran.result.orderings.broken] == []


def test_a_slurmctld_that_read_an_older_state_asks_about_what_it_knows() -> None:
    """It ends COMPLETING a second time; rule 57 says nothing of what comes after a crash."""
    ran = staged(
        "1: sbatch job.sh",
        "20 {fault: {crash: slurmctld}}",
        "21 {fault: {corrupt: job_state, how: truncate}}",
        "22 {fault: {start: slurmctld}}",
        job="in=5 pre=2 post=0 out=60",
    )
    again = ran.all("job_state", job=1, args_from="COMPLETED|COMPLETING|STAGE_OUT")
    assert len({each.pid for each in again}) == 2
    asked = ran.all("bb_p_job_test_post_run")[-1]
    assert asked.pid == again[-1].pid
    assert [each.rule.name for each in ran.result.orderings.broken] == []


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_who_is_cancelled_on_the_way_back_into_the_queue_is_as_old_as_the_run(model: str) -> None:
    """As in real Slurm: MinJobAge, of 20 s, is over when the epilog ends 30 s later."""
    ran = staged(
        "1: sbatch plain.sh",
        "5 root: scontrol requeue 1",
        "30: scancel 1",
        model=model,
        conf="Epilog: /opt/epilog",
        keys="programs: {/opt/epilog: {runs: 30s}}",
    )
    assert ran.job()[0] == "CANCELLED"
    assert ran.one("slurm_ckpt_free_job", job=1).time_us == 40_000_000


def test_post_run_is_asked_again_by_a_slurmctld_that_has_not_heard_of_the_answer() -> None:
    """The one before it died before it wrote that the job's nodes were let go."""
    let_go = "job_state job=1 args.from=COMPLETED|COMPLETING|STAGE_OUT"
    crash = f"  - {{when: {let_go}, fault: {{crash: slurmctld}}}}\n"
    ran = run(_BUSY + crash + "  - {at: 2m, fault: {start: slurmctld}}\n")
    (before, after) = ran.all("bb_p_job_test_post_run", job=1, rc=1)
    assert before.pid != after.pid
    changes = [event for event in ran.all("job_state", job=1) if before.seq < event.seq < after.seq]
    assert [event.args["to"] for event in changes] == ["COMPLETED|STAGE_OUT"]  # type: ignore[index]


def test_what_a_checkpoint_plugin_hears_ends_no_pass() -> None:
    """It has asked a node in a thread of its own; slurmctld is in load_state meanwhile."""
    ran = typed(
        "1s alice sbatch -N1 --wrap 'sleep 60'",
        "{at: 9s, fault: {hang: slurm_ckpt_signal_tasks, for: 3s}}",
        "10s alice scontrol checkpoint create 1",
        "{at: 10500ms, fault: {hang: bb_p_load_state, for: 5s}}",
        "11s alice sbatch -N1 --begin=now+1 --wrap 'sleep 5'",
        head=(
            "slurm_conf: {BurstBufferType: burst_buffer/datawarp, CheckpointType: "
            "checkpoint/blcr}\n"
            "burst_buffer: {pools: {wlm_pool: {capacity: 10GiB}}}\n"
        ),
    )
    answer = {"args_answers": "REQUEST_CHECKPOINT_TASKS", "role": "slurmctld"}
    heard = ran.one("RESPONSE_SLURM_RC", phase="receive", **answer)
    calls_of = [(begin_seq(each), each.seq) for each in ran.all("bb_p_load_state")]
    assert [True for first, last in calls_of if first < heard.seq < last]
    late = moved("bb_p_load_state phase=enter", after="bb_p_job_test_stage_in job=2", nth=-1, to=-1)
    assert "state-loaded-before-passes" in told(ran, late)


LAUNCHED = "no-launch-before-begin"


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("of", "what"), [(BEGIN, "begin"), ("dw_pre_run job=1", "pre_run")])
def test_what_fails_is_no_matter_to_a_restarted_slurmctld_of_model_modern_alone(
    model: str, restarted: bool, of: str, what: str
) -> None:
    """To any other it is, for the claim of a job as for its pre_run."""
    restart = "  - {at: 500ms, fault: {restart: slurmctld, for: 100ms}}\n" * restarted
    ran = run(_BUSY + restart, cluster=TWO_NODES, model=model)
    assert told(ran) == {}
    found = told(ran, changed(of, rc=256)).get(LAUNCHED)
    excused = restarted and model == "modern"
    assert found == (None if excused else f"a script was launched although {what} failed")


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_another_call_in_place_of_the_count_is_noticed(model: str) -> None:
    """Right after the start; the rule says which it was."""
    ran = busy(model)
    start = ran.first("job_state", job=1, args_to="RUNNING")
    counts = ran.all("bb_p_job_set_tres_cnt", job=1)
    nth = next(place for place, each in enumerate(counts) if each.seq > start)
    other = changed("bb_p_job_set_tres_cnt job=1", nth, name="bb_p_job_get_system")
    what = "get_system follows the start, not set_tres_cnt"
    assert told(ran, other)["tres-counted-at-the-start"] == what
