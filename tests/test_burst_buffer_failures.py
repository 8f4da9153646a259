"""What comes of it when a function of a burst buffer plugin fails, raises, hangs or talks nonsense.

Every run here is also held against the built-in orderings.
"""

import inspect
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests import staging_plugin
from tests.cluster import Ran
from tests.staged import arg, calls, staged, story
from tests.staging_plugin import Staging

BOTH = pytest.mark.parametrize("model", ["guide", "modern"])
BACKFILL = "SchedulerType: sched/backfill"
INVALID = 2094
RESERVE = (
    "scontrol create reservation=r starttime=now duration=9 users=alice nodes=n1 burstbuffer=5G"
)


@attrs.frozen(kw_only=True)
class Case:
    """A run in which a function is called, and what becomes of job 1 if the first call fails."""

    timeline: tuple[str, ...] = ("1: sbatch job.sh",)
    terms: dict[str, Any] = attrs.field(factory=dict)
    fails: str = "COMPLETED None"
    models: tuple[str, ...] = ("guide", "modern")
    fails_modern: str = ""
    after_hang: str = "COMPLETED None"
    after_hang_modern: str = ""


CASES = {
    "bb_p_load_state": Case(),
    "bb_p_state_pack": Case(timeline=("1: scontrol show burst", "2: sbatch job.sh")),
    "bb_p_reconfig": Case(timeline=("1 root: scontrol reconfigure", "2: sbatch job.sh")),
    "bb_p_get_system_size": Case(terms={"conf": "AccountingStorageTRES: bb/staging"}),
    "bb_p_job_validate": Case(timeline=("1: sbatch job.sh", "9: sbatch job.sh")),
    "bb_p_job_validate2": Case(timeline=("1: sbatch job.sh", "9: sbatch job.sh"), fails=""),
    "bb_p_job_set_tres_cnt": Case(),
    "bb_p_job_get_est_start": Case(
        timeline=("0.5 {fault: {fail: bb_p_job_test_stage_in, times: 8}}", "1: sbatch job.sh"),
        terms={"conf": BACKFILL},
    ),
    "bb_p_job_try_stage_in": Case(),
    "bb_p_job_test_stage_in": Case(),
    "bb_p_job_begin": Case(fails="PENDING JobHeldAdmin"),
    "bb_p_job_revoke_alloc": Case(
        timeline=("0.5 {fault: {fail: select_g_job_begin}}", "1: sbatch job.sh"),
        # The plugin has not heard of it: to it the job runs.
        fails="PENDING BurstBufferResources",
        fails_modern="PENDING|CONFIGURING Cleaning",
        after_hang_modern="PENDING|CONFIGURING Cleaning",
    ),
    "bb_p_job_start_stage_out": Case(),
    "bb_p_job_test_post_run": Case(models=("guide",)),
    "bb_p_job_test_stage_out": Case(),
    "bb_p_job_cancel": Case(
        timeline=("1: sbatch job.sh", "3: scancel 1"),
        fails="CANCELLED BurstBufferStageIn",
        after_hang="CANCELLED BurstBufferStageIn",
    ),
    "bb_p_xlate_bb_2_tres_str": Case(timeline=(f"1 root: {RESERVE}", "2: sbatch job.sh")),
}
FAILURES = {
    "fails": "fail: NAME",
    "fails with an errno": f"fail: NAME, errno: {INVALID}",
    "raises": "raise: NAME",
}
MATRIX = [
    pytest.param(name, model, id=f"{name}-{model}")
    for name, case in CASES.items()
    for model in case.models
]


def struck(name: str, model: str, fault: str, *, at: str = "0", **more: Any) -> Ran:
    """Run the case of a function with a fault in force."""
    case = CASES[name]
    rule = fault.replace("NAME", name)
    return staged(
        f"{at} {{fault: {{{rule}}}}}", *case.timeline, model=model, **{**case.terms, **more}
    )


def first_job(ran: Ran) -> str:
    """Return the state and the reason of job 1 at the end; nothing if it was never there."""
    return next((f"{row.state} {row.reason}" for row in ran.result.rows if row.job_id == 1), "")


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(("name", "model"), MATRIX)
def test_a_call_that_fails_comes_to_what_its_place_says(
    name: str, model: str, failure: str
) -> None:
    """Most failures are nothing but a line in slurmctld's log; none takes slurmctld down."""
    ran = struck(name, model, FAILURES[failure])
    case = CASES[name]
    wanted = case.fails_modern if model == "modern" and case.fails_modern else case.fails
    assert first_job(ran) == wanted
    assert not ran.result.stalled
    assert not ran.result.fatalities
    assert not ran.result.complaints
    event = ran.all(name)[0]
    if failure == "fails with an errno":
        assert event.errno == "ESLURM_INVALID_BURST_BUFFER_REQUEST"


@pytest.mark.parametrize(("name", "model"), MATRIX)
def test_a_call_that_takes_its_time_comes_to_what_it_would_have(name: str, model: str) -> None:
    """Seven seconds inside the call are seven seconds in which slurmctld does nothing else."""
    ran = struck(name, model, "hang: NAME, for: 7s")
    case = CASES[name]
    modern = model == "modern" and case.after_hang_modern
    assert first_job(ran) == (modern or case.after_hang)
    event = ran.all(name)[0]
    assert event.time_us == int(str(event.t0_us)) + 7_000_000
    idle = [
        each
        for each in ran.events
        if int(str(event.t0_us)) < each.time_us < event.time_us
        and each.daemon == "slurmctld"
        and each.kind != "message"
        and each.phase != "enter"
    ]
    assert not [each for each in idle if each.name != "exit"]


@pytest.mark.parametrize(("name", "model"), MATRIX)
def test_a_call_that_never_returns_stops_slurmctld_for_good(name: str, model: str) -> None:
    """The run stalls, and what it says names the function."""
    ran = struck(name, model, "hang: NAME")
    assert any(f"waits for {name} of its plugin to return" in each for each in ran.result.stalled)


def plugin_of(folder: Path, methods: str) -> dict[str, Any]:
    """Write a staging plugin with other methods; return how to run it."""
    source = inspect.getsource(staging_plugin)
    (folder / "staging_plugin.py").write_text(f"{source}\n\nclass Odd(Staging):\n{methods}")
    return {"folder": folder, "plugins": "Odd"}


def odd(folder: Path, name: str, value: str) -> dict[str, Any]:
    """Write a staging plugin of which one function returns *value*; return how to run it."""
    parameters = ", ".join(inspect.signature(getattr(Staging, name)).parameters)
    return plugin_of(folder, f"    def {name}({parameters}):\n        return {value}\n")


@pytest.mark.parametrize("value", ["object()", "1 << 70", "'1001=7\\udcff'"])
@pytest.mark.parametrize(("name", "model"), MATRIX)
def test_nonsense_counts_as_a_failure_and_is_told(
    tmp_path: Path, name: str, model: str, value: str
) -> None:
    """Whatever a function returns each time, slurmctld goes on; the end of the run tells of it."""
    case = CASES[name]
    ran = staged(*case.timeline, model=model, **{**case.terms, **odd(tmp_path, name, value)})
    told = [each for each in ran.result.complaints if each.function == name]
    makes_sense = name == "bb_p_job_set_tres_cnt" or (
        name == "bb_p_xlate_bb_2_tres_str" and value.startswith("'")
    )
    assert bool(told) is not makes_sense
    assert all(each.problem.startswith("returned ") for each in told)
    assert not ran.result.fatalities
    assert not ran.result.stalled


WRITES = {
    "priority": ("None", "-1", "2.5", "1 << 32"),
    "begin_time": ("'soon'", "1 << 70", "-1"),
    "state_reason": ("None", "5"),
    "state_desc": ("object()", "b'x'", "'\\udcff'"),
    "system_comment": ("[1]", "None"),
    "burst_buffer": ("3", "{}"),
    "burst_buffer_state": ("5", "'\\udcff'"),
    "env_sup": ("{'X': 5}", "{'A=B': 'x'}", "{'': 'x'}", "{'X': 'a\\0'}", "[1]"),
    "job_id": ("5",),
    "no_such_field": ("5",),
}


@pytest.mark.parametrize("function", ["bb_p_job_validate2", "bb_p_job_start_stage_out"])
@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in WRITES.items() for value in values]
)
def test_a_job_takes_from_a_plugin_only_what_its_fields_can_hold(
    tmp_path: Path, field: str, value: str, function: str
) -> None:
    """Anything else is an error of the plugin's, where it sets it; the job's field stays."""
    plugin = plugin_of(
        tmp_path, f"    def {function}(self, job_ptr):\n        job_ptr.{field} = {value}\n"
    )
    ran = staged("1: sbatch job.sh", "9: scontrol show job 1", "9: squeue", model="guide", **plugin)
    (told,) = ran.result.complaints
    assert told.function == function
    assert ran.one(function).rc == -1
    if function == "bb_p_job_validate2":
        assert "Unspecified error" in ran.stderr()
    else:
        assert ran.job() == ("COMPLETED", "0:0", "None")


@BOTH
@pytest.mark.parametrize("value", ["3", "None", "'\\udcff'", "['a']"])
def test_a_submission_takes_only_a_text_for_its_request(
    tmp_path: Path, model: str, value: str
) -> None:
    """Where the plugin sets another thing the submission is refused."""
    method = (
        "    def bb_p_job_validate(self, job_desc, submit_uid):\n"
        f"        job_desc.burst_buffer = {value}\n"
    )
    ran = staged("1: sbatch job.sh", model=model, **plugin_of(tmp_path, method))
    assert "Unspecified error" in ran.stderr()
    assert ran.result.complaints[0].function == "bb_p_job_validate"


@BOTH
@pytest.mark.parametrize("change", ["['bb/staging'] = 'much'", "['bb/x'] = -1", "[5] = 5"])
def test_counts_that_are_none_are_left_out(tmp_path: Path, model: str, change: str) -> None:
    """What remains of tres_cnt is what the plugin entered as it should."""
    method = (
        "    def bb_p_job_set_tres_cnt(self, job_ptr, tres_cnt, locked):\n"
        f"        tres_cnt['bb/good'] = 7\n        tres_cnt{change}\n"
    )
    ran = staged(
        *("1: sbatch job.sh", "9: scontrol show job 1"),
        model=model,
        conf="AccountingStorageTRES: bb/staging",
        **plugin_of(tmp_path, method),
    )
    assert ran.job()[0] == "COMPLETED"
    assert ran.result.complaints[0].function == "bb_p_job_set_tres_cnt"
    assert ran.world.ctld.ended_rows


@BOTH
def test_variables_that_no_environment_can_hold_are_not_handed_out(
    tmp_path: Path, model: str
) -> None:
    """Also where the plugin puts them into env_sup one by one."""
    method = (
        "    def bb_p_job_begin(self, job_ptr):\n        job_ptr.env_sup['DW'] = job_ptr.job_id\n"
    )
    for command in ("sbatch job.sh", "srun --bb=in=1 true"):
        ran = staged(f"1: {command}", model=model, **plugin_of(tmp_path, method))
        assert ran.job()[0] == "COMPLETED"
        assert ran.result.complaints[0].function == "env_sup"


@BOTH
def test_a_variable_of_the_plugin_replaces_the_users(tmp_path: Path, model: str) -> None:
    """For the script and the tasks of a job that came with a variable of that name."""
    method = "    def bb_p_job_begin(self, job_ptr):\n        job_ptr.env_sup['DW'] = 'its own'\n"
    ran = staged(
        "1: srun --export=ALL,DW=mine --bb=in=1 printenv DW",
        "90: sbatch --export=ALL,DW=mine --bb=in=1 -w n1 --wrap 'echo $DW'",
        model=model,
        **plugin_of(tmp_path, method),
    )
    assert ran.result.commands[0].stdout == "its own\n"
    assert ran.world.disk.read("/home/alice/slurm-2.out", host="n1") == "its own\n"


# What is particular about each.


@BOTH
def test_a_refused_validation_uses_no_id_up(model: str) -> None:
    """The command has the error number and the text; the next job has the id."""
    ran = struck("bb_p_job_validate", model, f"fail: NAME, errno: {INVALID}")
    assert ran.stderr() == (
        "sbatch: error: injected by fail bb_p_job_validate\n"
        "sbatch: error: Batch job submission failed: Burst Buffer request invalid\n"
    )
    assert [row.job_id for row in ran.result.rows] == [1]
    assert not ran.all("slurm_ckpt_alloc_job", time_us=1_000_100)


@BOTH
def test_a_refused_second_validation_uses_the_id_up(model: str) -> None:
    """The record is PENDING and FAILED inside the request, freed, and never seen by anybody."""
    ran = struck("bb_p_job_validate2", model, f"fail: NAME, errno: {INVALID}")
    assert "injected by fail bb_p_job_validate2" in ran.stderr()
    assert "Burst Buffer request invalid" in ran.stderr()
    assert [row.job_id for row in ran.result.rows] == [2]
    assert story(ran, 1) == ["PENDING", "validate2", "FAILED"]
    free = ran.one("slurm_ckpt_free_job", job=1)
    assert free.seq < ran.first("RESPONSE_SUBMIT_BATCH_JOB", phase="send")


@BOTH
@pytest.mark.parametrize("command", ["srun --bb=in=5 true", "salloc --bb=in=5 true"])
@pytest.mark.parametrize("name", ["bb_p_job_validate", "bb_p_job_validate2"])
def test_an_allocation_that_is_refused_is_over_at_once(model: str, command: str, name: str) -> None:
    """Its command says why, and exits with 1."""
    ran = staged(f"0 {{fault: {{fail: {name}, errno: {INVALID}}}}}", f"1: {command}", model=model)
    assert "Burst Buffer request invalid" in ran.stderr()
    assert ran.result.commands[0].exit == 1
    assert not ran.result.rows


@BOTH
def test_a_second_validation_of_a_split_task_changes_nothing(model: str) -> None:
    """What it returns is for nobody: the task goes on."""
    ran = staged(
        "0 {fault: {fail: bb_p_job_validate2, skip: 1, times: 5}}",
        "1: sbatch -a 0-2 job.sh",
        model=model,
    )
    assert [event.rc for event in ran.all("bb_p_job_validate2")] == [0, -1, -1]
    assert [row.state for row in ran.result.rows] == ["COMPLETED"] * 3


@BOTH
def test_a_claim_that_fails_holds_the_job_and_revokes_nothing(model: str) -> None:
    """PENDING, priority 0, JobHeldAdmin; released, it is asked about anew."""
    ran = struck("bb_p_job_begin", model, "fail: NAME", at="0")
    assert calls(ran, 1)[-1] == "begin=-1"
    assert story(ran)[-1] in ("begin", "PENDING|CONFIGURING")
    ran = staged(
        "0 {fault: {fail: bb_p_job_begin}}",
        "1: sbatch job.sh",
        "10: scontrol show job 1",
        "20: scontrol release 1",
        "21 root: scontrol release 1",
        model=model,
    )
    shown = ran.result.commands[1].stdout
    assert "Priority=0" in shown
    assert "JobState=PENDING Reason=JobHeldAdmin" in shown
    assert "StartTime=Unknown" in shown
    assert ran.result.commands[2].exit == 1
    assert "revoke_alloc" not in calls(ran)
    begun = ran.all("bb_p_job_begin")
    assert [event.rc for event in begun] == [-1, 0]
    assert begun[1].time_us > 21_000_000
    assert ran.job()[0] == "COMPLETED"


@BOTH
def test_an_allocation_whose_claim_fails_goes_on_waiting(model: str) -> None:
    """The job is held as any other; its srun waits until somebody cancels it."""
    ran = staged(
        "0 {fault: {fail: bb_p_job_begin}}",
        "1: srun --bb=in=5 true",
        "20 root: scancel 1",
        model=model,
    )
    assert calls(ran, 1)[-3:] == ["begin=-1", "cancel", "test_stage_out=1"]
    assert ran.job()[0] == "CANCELLED"


def test_a_revoked_claim_is_made_again() -> None:
    """Model guide: back to PENDING, and the next pass begins it anew."""
    ran = staged("0 {fault: {fail: select_g_job_begin}}", "1: sbatch job.sh", model="guide")
    found = story(ran)
    at = found.index("begin")
    assert found[at : at + 6] == [
        *("begin", "PENDING|CONFIGURING", "revoke_alloc", "PENDING", "test_stage_in", "begin")
    ]
    assert ran.job()[0] == "COMPLETED"


def test_a_revoked_claim_leaves_the_job_configuring() -> None:
    """Model modern: the plugin's flag stays; Resources, and Cleaning 20 s later, for ever."""
    ran = staged(
        "0 {fault: {fail: select_g_job_begin}}",
        "1: sbatch job.sh",
        "26: squeue",
        "27: squeue",
        "121: sbatch plain.sh",
        model="modern",
    )
    assert "revoke_alloc" in story(ran)
    assert story(ran).count("begin") == 1
    assert ran.one("bb_p_job_revoke_alloc").time_us // 1_000_000 == 6
    assert "(Resources)" in ran.result.commands[1].stdout
    assert "(Cleaning)" in ran.result.commands[2].stdout
    assert [row.state for row in ran.result.rows] == ["PENDING|CONFIGURING", "COMPLETED"]
    assert not ran.result.stalled


@BOTH
def test_a_claim_without_pre_run_that_is_revoked_waits_again(model: str) -> None:
    """Without CONFIGURING nothing keeps the job from its next try, in either model."""
    ran = staged(
        "0 {fault: {fail: select_g_job_begin}}", "1: sbatch job.sh", model=model, job="in=2"
    )
    assert [each for each in calls(ran, 1) if each in ("begin", "revoke_alloc")] == [
        *("begin", "revoke_alloc", "begin")
    ]
    assert ran.job()[0] == "COMPLETED"


@BOTH
def test_no_space_for_ever_is_no_stall_and_data_for_ever_is_one(model: str) -> None:
    """-1 may be a job too large ever to start; 0 promises an end that does not come."""
    ran = staged(
        "0 {fault: {fail: bb_p_job_test_stage_in, times: 99999}}", "1: sbatch job.sh", model=model
    )
    assert first_job(ran) == "PENDING BurstBufferResources"
    assert not ran.result.stalled
    assert calls(ran).count("test_stage_in=-1") > 50
    ran = staged(
        "0 {fault: {fail: bb_p_job_test_stage_in, rc: 0, times: 99999}}",
        "1: sbatch job.sh",
        model=model,
    )
    assert first_job(ran) == "PENDING BurstBufferStageIn"
    assert (
        "job 1 is PENDING (BurstBufferStageIn): bb_p_job_test_stage_in returned 0"
        in (ran.result.stalled[0])
    )


@BOTH
def test_a_stage_out_for_ever_keeps_the_record_and_ends_the_run(model: str) -> None:
    """The job itself is over: nobody waits for it."""
    ran = staged(
        "0 {fault: {fail: bb_p_job_test_stage_out, rc: 0, times: 99999}}",
        "1: sbatch job.sh",
        "900: scontrol show job 1",
        model=model,
    )
    assert not ran.result.stalled
    assert "JobState=COMPLETED" in ran.result.commands[1].stdout
    assert not ran.all("slurm_ckpt_free_job", job=1)


def test_a_post_run_for_ever_is_a_stall_where_it_gates() -> None:
    """Model guide: the job stays COMPLETING, and the stall says for what; -1 lets it go."""
    ran = staged(
        "0 {fault: {fail: bb_p_job_test_post_run, rc: 0, times: 99999}}",
        "1: sbatch job.sh",
        "2: sbatch -N2 plain.sh",
        model="guide",
    )
    assert "waits for its burst buffer's post-run" in ran.result.stalled[0]
    assert ran.job(2)[0] == "COMPLETED"
    ran = struck("bb_p_job_test_post_run", "guide", "fail: NAME")
    assert len(ran.all("bb_p_job_test_post_run")) == 1


@BOTH
@pytest.mark.parametrize(("rc", "exit_status"), [(INVALID, 1), (0, 0)])
def test_what_a_cancel_in_stage_out_says_reaches_whoever_is_in_a_hurry(
    model: str, rc: int, exit_status: int
) -> None:
    """`scancel --hurry` has the plugin's error number for its answer, there and nowhere else."""
    ran = staged(
        f"0 {{fault: {{fail: bb_p_job_cancel, rc: {rc}}}}}",
        "1: sbatch job.sh",
        "20: scancel --hurry 1",
        model=model,
        job="in=1 out=30",
    )
    answer = ran.all("RESPONSE_SLURM_RC", phase="send", peer="scancel@login")[-1]
    assert arg(answer, "return_code") == rc
    assert bool(ran.result.commands[1].exit) is bool(exit_status)
    if rc:
        assert "Burst Buffer request invalid" in ran.result.commands[1].stderr


@BOTH
@pytest.mark.parametrize("options", ["", "--hurry"])
def test_what_any_other_cancel_says_is_for_nobody(model: str, options: str) -> None:
    """A pending job is CANCELLED whatever its plugin says."""
    ran = staged(
        f"0 {{fault: {{fail: bb_p_job_cancel, errno: {INVALID}}}}}",
        "1: sbatch job.sh",
        f"3: scancel {options} 1",
        model=model,
    )
    assert (ran.result.commands[1].stderr, ran.result.commands[1].exit) == ("", 0)
    assert ran.job()[0] == "CANCELLED"


@BOTH
def test_a_state_that_cannot_be_packed_is_an_error_for_whoever_asked(model: str) -> None:
    """`scontrol show burst` says the plugin's error number in words, and exits with 1."""
    ran = struck("bb_p_state_pack", model, f"fail: NAME, errno: {INVALID}")
    assert ran.stderr() == "slurm_load_burst_buffer_info error: Burst Buffer request invalid\n"
    assert ran.result.commands[0].exit == 1


@BOTH
def test_a_size_that_is_not_told_counts_as_none(model: str) -> None:
    """And the sum of several plugins is that of the others."""
    ran = staged(
        "0 {fault: {fail: bb_p_get_system_size, times: 9}}",
        "1 root: scontrol show reservation",
        model=model,
        conf="AccountingStorageTRES: bb/staging",
    )
    assert ran.world.ctld.bb is not None
    assert ran.world.ctld.bb.sizes == {"bb/staging": 0}


@BOTH
def test_an_init_that_fails_is_the_end_of_slurmctld(model: str) -> None:
    """It cannot go on without its plugin, and whoever calls finds nobody."""
    ran = staged(
        '0 {fault: {fail: "init plugin=burst_buffer/staging"}}', "1: sbatch job.sh", model=model
    )
    assert "failed to initialize burst_buffer plugin burst_buffer/staging" in str(
        ran.result.fatalities
    )
    assert "Unable to contact slurm controller" in ran.stderr()
    assert not calls(ran)


@BOTH
def test_a_slow_call_makes_others_wait_and_a_slow_thread_does_not(model: str) -> None:
    """Whoever asks slurmctld meanwhile has his answer after the call; a pre-run hinders nobody."""
    ran = staged(
        "0 {fault: {hang: bb_p_job_begin, for: 4s}}",
        "1: sbatch job.sh",
        "7: squeue",
        "12: squeue",
        model=model,
        job="in=5 pre=30",
    )
    begin = ran.one("bb_p_job_begin")
    assert (begin.t0_us, begin.time_us) == (6_000_100, 10_000_100)
    answers = ran.all("RESPONSE_JOB_INFO", phase="send")
    assert answers[0].time_us >= begin.time_us
    assert 12_000_000 < answers[1].time_us < 12_100_000
    assert ran.one("job_state", args_to="RUNNING|CONFIGURING").time_us == 10_000_100


@BOTH
def test_the_failures_of_one_plugin_are_those_of_all(model: str) -> None:
    """The greater error of validate counts, the last of begin; all of them are asked."""
    two: dict[str, Any] = {
        "types": "burst_buffer/staging,burst_buffer/second",
        "plugins": "Second Staging",
        "model": model,
    }
    faults = [
        '0 {fault: {fail: "NAME plugin=burst_buffer/staging", rc: ONE}}',
        '0 {fault: {fail: "NAME plugin=burst_buffer/second", rc: OTHER}}',
    ]

    def both(name: str, one: int, other: int, **more: Any) -> Ran:
        rules = [
            each.replace("NAME", name).replace("ONE", str(one)).replace("OTHER", str(other))
            for each in faults
        ]
        return staged(*rules, "1: sbatch job.sh", **{**two, **more})

    for one, other, text in (
        (2094, 2002, "Burst Buffer request invalid"),
        (2002, 2094, "Burst Buffer request invalid"),
        (2002, -1, "Access/permission denied"),
        (-1, 0, "Unspecified error"),
        (0, -1, "Unspecified error"),
    ):
        for name in ("bb_p_job_validate", "bb_p_job_validate2"):
            ran = both(name, one, other)
            assert text in ran.stderr(), (name, one, other)
            assert len(ran.all(name)) == 2
    for one, other, state in (
        (-1, 0, "PENDING"),
        (0, -1, "PENDING"),
        (0, 0, "COMPLETED"),
    ):
        assert both("bb_p_job_begin", one, other).job()[0] == state
    for one, other in ((0, 1), (1, 0), (-1, 1), (1, -1)):
        ran = both("bb_p_job_test_stage_out", one, other)
        asked = ran.all("bb_p_job_test_stage_out")
        assert len(asked) == 4, (one, other)
        assert ran.all("slurm_ckpt_free_job", job=1)[0].seq > asked[-1].seq
