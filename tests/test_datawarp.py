"""burst_buffer/datawarp in runs of a cluster: what it asks of the appliance, and what jobs see."""

import itertools
import json
import re
from typing import Any

import pytest
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_us
from simctl.kernel.procs import Process
from simctl.plugins.burst_buffer.datawarp.plugin import BurstBufferDatawarp
from simctl.plugins.hooks import Hooks
from tests.cluster import TWO_NODES, Ran
from tests.cluster import run as run_cluster
from tests.inside import slurmctld

MODELS = ("guide", "modern")

JOB = """\
#DW jobdw type=scratch capacity=10GiB access_mode=striped
#DW stage_in type=file source=/lus/in destination=$DW_JOB_STRIPED/a
#DW stage_out type=file destination=/lus/out source=$DW_JOB_STRIPED/b
"""


def scenario(
    timeline: str,
    *,
    head: str = JOB,
    body: str = "srun sleep 3",
    appliance: str = "",
    bb_conf: str = "",
    conf: str = "",
    options: str = "",
) -> str:
    """Return a scenario in which alice has bb.sh; *timeline* are its entries."""
    lines = "\n".join(f"    {line}" for line in ("#!/bin/bash", *head.splitlines(), body))
    pools = "pools: {wlm_pool: {capacity: 100GiB, granularity: 1GiB}}"
    return (
        f"slurm_conf: {{BurstBufferType: burst_buffer/datawarp, MinJobAge: 10{conf}}}\n"
        f"burst_buffer: {{{pools}{', ' if appliance else ''}{appliance}}}\n"
        + (f"burst_buffer_conf: {{{bb_conf}}}\n" if bb_conf else "")
        + (f"options: {{{options}}}\n" if options else "")
        + f"files:\n  show.sh: 'echo DW=$DW_JOB_STRIPED'\n  bb.sh: |\n{lines}\n"
        + f"timeline:\n{timeline}"
    )


RESTART = "  - {at: %s, fault: {restart: slurmctld, for: %s}}\n"
SUBMIT = "  - {at: 0s, as: alice, run: sbatch bb.sh}\n"


def run(text: str, model: str = "guide", **more: Any) -> Ran:
    """Run a scenario on two nodes; carol is an operator."""
    users = "users: {alice: 1001, bob: 1002, carol: {uid: 1003, admin: operator}}"
    cluster = TWO_NODES.replace("users: {alice: 1001, bob: 1002}", users)
    return run_cluster(text, cluster=cluster, model=model, **more)


def entry(at: str, run: str, who: str = "alice", **more: str) -> str:
    """Return a line of a timeline."""
    extra = "".join(f", {key}: {value}" for key, value in more.items())
    return f'  - {{at: {at}, as: {who}, run: "{run}"{extra}}}\n'


def fault(pattern: str, **more: Any) -> str:
    """Return a line of a timeline: from the start on, scripts of a pattern fail."""
    extra = "".join(f", {key}: {value}" for key, value in more.items())
    return f'  - {{at: 0s, fault: {{fail: "{pattern}"{extra}}}}}\n'


def functions(ran: Ran, job: int = 1) -> list[str]:
    """Return the appliance's functions that ran for a job, in the order of their starts."""
    found = ran.all(kind="script", job=job)
    return [each.name for each in sorted(found, key=_began) if each.name.startswith("dw_")]


def _began(event: Event) -> int:
    return event.enter if isinstance(event.enter, int) else event.seq


def argv(event: Event) -> str:
    """Return the arguments of a script."""
    assert event.args is not UNSET
    return " ".join(event.args["argv"])


def bb_states(ran: Ran, job: int = 1) -> list[str]:
    """Return the states that a job's buffer went through."""
    return [event.args["to"] for event in ran.all("bb_state", job=job) if event.args is not UNSET]


def job_states(ran: Ran, job: int = 1) -> list[str]:
    """Return the states that a job went through."""
    return [event.args["to"] for event in ran.all("job_state", job=job) if event.args is not UNSET]


def answers(ran: Ran, function: str, job: int = 1) -> list[Any]:
    """Return what a function of the plugin answered about a job."""
    return [event.rc for event in ran.all(function, job=job)]


def out(ran: Ran, place: int) -> str:
    """Return what a command of the timeline printed."""
    return ran.result.commands[place].stdout


GOOD = [
    *("dw_job_process", "dw_setup", "dw_data_in", "dw_real_size", "dw_paths", "dw_pre_run"),
    *("dw_post_run", "dw_data_out", "dw_teardown"),
]


# A good run.


@pytest.mark.parametrize("model", MODELS)
def test_a_job_stages_in_runs_stages_out_and_is_torn_down(model: str) -> None:
    """Each function of the appliance runs once, after the one before it has ended."""
    ran = run(scenario(SUBMIT), model)
    assert functions(ran) == GOOD
    ends = [ran.one(name, job=1) for name in GOOD]
    for before, after in itertools.pairwise(ends):
        assert before.seq < _began(after)
    assert bb_states(ran) == [
        *("PENDING", "STAGING_IN", "STAGED_IN", "PRE_RUN", "RUNNING"),
        *("POST_RUN", "STAGING_OUT", "TEARDOWN", "COMPLETE"),
    ]
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert answers(ran, "bb_p_job_test_stage_out")[-1] == 1


def test_the_appliance_is_called_with_its_arguments() -> None:
    """The job's files lie in StateSaveLocation, by the last digit of its id."""
    ran = run(scenario(SUBMIT))
    where = "/var/spool/hash.1/job.1"
    script = f"--job {where}/script"
    told = {name: argv(ran.one(name, job=1)) for name in GOOD}
    assert told == {
        "dw_job_process": f"--function job_process {script}",
        "dw_setup": "--function setup --token 1 --caller SLURM --user 1001 --groupid 1001 "
        f"--capacity wlm_pool:10GiB {script}",
        "dw_data_in": f"--function data_in --token 1 {script}",
        "dw_real_size": "--function real_size --token 1",
        "dw_paths": f"--function paths {script} --token 1 --pathfile {where}/path",
        "dw_pre_run": f"--function pre_run --token 1 {script} "
        f"--nodehostnamefile {where}/client_nids",
        "dw_post_run": f"--function post_run --token 1 {script}",
        "dw_data_out": f"--function data_out --token 1 {script}",
        "dw_teardown": f"--function teardown --token 1 {script}",
    }


@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_launched_before_pre_run_has_ended(model: str) -> None:
    """The job is CONFIGURING from begin on, and RUNNING alone once pre_run is over."""
    ran = run(scenario(SUBMIT), model)
    launched = ran.all("REQUEST_BATCH_JOB_LAUNCH", phase="send")[0]
    assert ran.one("dw_pre_run").seq < launched.seq
    assert job_states(ran)[1:5] == [
        *("PENDING|CONFIGURING", "RUNNING", "RUNNING|CONFIGURING", "RUNNING"),
    ]


def test_the_reason_tells_of_the_stage_out_until_it_is_over() -> None:
    """Nodes are free meanwhile; the buffer is shown as what it is."""
    text = scenario(
        SUBMIT
        + entry("16.5s", "scontrol -o show job 1")
        + entry("16.5s", "scontrol show burst")
        + entry("17.3s", "scontrol show burst")
        + entry("19s", "scontrol -o show job 1")
        + entry("19s", "scontrol show burst")
    )
    ran = run(text, "modern")
    assert "JobState=STAGE_OUT Reason=burst_buffer/datawarp:_Stage-out_in_progress" in out(ran, 1)
    assert "JobID=1 " in out(ran, 2)
    assert "State=staged-in UserID=alice(1001)" in out(ran, 2)
    assert "State=teardown" in out(ran, 3)
    assert "JobState=COMPLETED Reason=None" in out(ran, 4)
    assert "UsedSpace=0" in out(ran, 5)


def test_a_job_finds_its_buffer_in_its_environment() -> None:
    """What `paths` wrote down is set for the batch script and its steps."""
    ran = run(scenario(SUBMIT, body="echo DW=$DW_JOB_STRIPED"))
    text = ran.world.disk.read("/home/alice/slurm-1.out", host="n1") or ""
    assert "DW=/var/opt/cray/dws/mounts/batch/1/ss/" in text


def test_a_jobs_files_are_gone_with_its_buffer() -> None:
    """Nothing of it stays in StateSaveLocation but slurmctld's own."""
    ran = run(scenario(SUBMIT))
    files = ran.world.disk.names("slurmctld", "/var/spool/hash.1")
    assert "job.1" not in files


@pytest.mark.parametrize("model", MODELS)
def test_a_job_without_directives_has_nothing_to_do_with_the_appliance(model: str) -> None:
    """The plugin is asked about it all the same, and stands in nobody's way."""
    ran = run(scenario(SUBMIT, head=""), model)
    assert functions(ran) == []
    assert answers(ran, "bb_p_job_begin") == [0]
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize("model", MODELS)
def test_srun_has_a_buffer_by_bb(model: str) -> None:
    """Its words become directives, and it waits while data is staged in."""
    text = scenario(entry("0s", "srun --bb='capacity=5GiB access=striped' -n1 sh show.sh"))
    ran = run(text, model)
    assert "--capacity wlm_pool:5GiB" in argv(ran.one("dw_setup"))
    assert functions(ran) == GOOD
    assert "DW=/var/opt/cray/dws/mounts/batch/1/ss/" in out(ran, 0)


# Submissions that are refused.


def test_a_wrong_line_refuses_the_submission_and_names_the_line() -> None:
    """No job number is used up."""
    ran = run(scenario(SUBMIT, head="#SBATCH -N1\n#DW jobdw capacity=lots\n"))
    assert "line 3: #DW jobdw capacity=lots: expected a size such as 10GiB" in ran.stderr()
    assert "Burst Buffer request invalid" in ran.stderr()
    assert ran.result.rows == ()


def test_dwstat_tells_anybody_of_pools_and_what_goes_wrong_is_said() -> None:
    """`scontrol show bbstat` hands its words on; dwstat has two seconds."""
    ran = run(
        scenario(
            entry("1s", "scontrol show bbstat most sessions")
            + entry("2s", "scontrol show dwstat")
            + entry("3s", "scontrol show bb a b c")
            + "  - {at: 4s, fault: {fail: bb_p_get_status, errno: 2094}}\n"
            + entry("5s", "scontrol show bbstat"),
            appliance="functions: {get_status: [{output: well}, {exit: 1}, {runs: 3s}]}",
        )
    )
    error = "Error running dwstat\n"
    assert out(ran, 0).endswith("token owner pool bytes state\nwell\n")
    assert [each.stdout for each in ran.result.commands[1:]] == [error, error, ""]
    assert ran.result.commands[3].exit == 1
    said = "slurm_load_burst_buffer_stat error: Burst Buffer request invalid\n"
    assert ran.result.commands[3].stderr == said
    calls = ran.all("bb_p_get_status")
    assert next(each.args for each in calls) == {
        "argv": ["most", "sessions"],
        "uid": 1001,
        "gid": 1001,
    }
    took = [each.time_us for each in ran.all("dwstat") if each.rc is not UNSET]
    assert [each // 1_000_000 for each in took] == [1, 2, 5]


def test_what_the_appliance_says_of_a_script_is_told() -> None:
    """job_process failed: the job is gone, its number used up."""
    appliance = 'functions: {job_process: {exit: 1, output: "no such tier"}}'
    ran = run(scenario(SUBMIT, appliance=appliance))
    assert "burst_buffer/datawarp: no such tier" in ran.stderr()
    assert "Burst Buffer request invalid" in ran.stderr()


@pytest.mark.parametrize(
    ("bb_conf", "who", "head", "refused"),
    [
        ("AllowUsers: bob", "alice", JOB, True),
        ("AllowUsers: bob", "bob", JOB, False),
        ("DenyUsers: bob", "bob", JOB, True),
        ("DenyUsers: bob", "alice", JOB, False),
        ("", "root", JOB, True),
        ("", "alice", "#BB create_persistent name=a capacity=1GiB\n", True),
        ("", "carol", "#BB create_persistent name=a capacity=1GiB\n", False),
        ("Flags: EnablePersistent", "alice", "#BB create_persistent name=a capacity=1GiB\n", False),
    ],
)
def test_who_may_have_burst_buffers(bb_conf: str, who: str, head: str, *, refused: bool) -> None:
    """AllowUsers, DenyUsers, and operators for persistent ones unless everybody may."""
    ran = run(scenario(entry("0s", "sbatch /home/alice/bb.sh", who), head=head, bb_conf=bb_conf))
    assert ("Burst Buffer permission denied" in ran.stderr()) is refused
    assert len(ran.result.rows) == (not refused)


def test_reconfigure_reads_burst_buffer_conf_again() -> None:
    """What it says counts from then on."""
    text = scenario(
        "  - {at: 1s, burst_buffer_conf: {DenyUsers: alice}}\n"
        + entry("2s", "sbatch bb.sh")
        + entry("3s", "scontrol reconfigure", "root")
        + entry("4s", "sbatch bb.sh")
    )
    ran = run(text)
    assert "Submitted batch job 1" in out(ran, 0)
    assert "Burst Buffer permission denied" in ran.stderr(2)


# Stage-in that fails.


@pytest.mark.parametrize("model", MODELS)
def test_a_failed_data_in_holds_the_job_and_keeps_its_buffer(model: str) -> None:
    """It is there to be looked at until the job is cancelled."""
    text = scenario(
        SUBMIT + entry("10s", "scontrol -o show job 1") + entry("20s", "scancel 1"),
        appliance='functions: {data_in: {runs: 5s, exit: 1, output: "no such file"}}',
    )
    ran = run(text, model)
    shown = out(ran, 1)
    assert "Reason=burst_buffer/datawarp:_dws_data_in:_no_such_file " in shown
    assert "Priority=0" in shown
    assert "burst_buffer/datawarp: data_in: no such file" in shown
    assert "01/01/26 00:00:0" in shown
    assert functions(ran) == [
        *("dw_job_process", "dw_setup", "dw_data_in", "dw_real_size", "dw_teardown"),
    ]
    teardown = ran.one("dw_teardown")
    assert argv(teardown).endswith("--hurry")
    assert ran.one("bb_p_job_cancel").seq < _began(teardown)


@pytest.mark.parametrize("model", MODELS)
def test_a_failed_setup_takes_the_buffer_down_at_once(model: str) -> None:
    """data_in is left out, real_size is not; the job is held."""
    text = scenario(
        SUBMIT + entry("10s", "scontrol -o show job 1"),
        appliance='functions: {setup: {exit: 1, output: "no nodes"}}',
    )
    ran = run(text, model)
    assert "Reason=burst_buffer/datawarp:_setup:_no_nodes " in out(ran, 1)
    assert "Priority=0" in out(ran, 1)
    assert functions(ran) == ["dw_job_process", "dw_setup", "dw_real_size", "dw_teardown"]
    assert bb_states(ran)[-1] == "COMPLETE"


def test_teardown_failure_takes_a_buffer_down_whose_data_in_failed() -> None:
    """The flag of burst_buffer.conf leaves nothing to look at."""
    appliance = "functions: {data_in: {exit: 1}}"
    ran = run(scenario(SUBMIT, appliance=appliance, bb_conf="Flags: TeardownFailure"))
    assert functions(ran)[-1] == "dw_teardown"
    assert bb_states(ran)[-1] == "COMPLETE"


FIRST_FAILS = "functions: {data_in: [{exit: 1, output: bad}, {runs: 5s}]}"


def test_in_model_guide_a_released_job_stages_in_anew() -> None:
    """What is left of the first try is taken down before."""
    text = scenario(SUBMIT + entry("20s", "scontrol release 1", "root"), appliance=FIRST_FAILS)
    ran = run(text)
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert functions(ran)[1:6] == [
        *("dw_setup", "dw_data_in", "dw_real_size", "dw_teardown", "dw_setup"),
    ]


def test_in_model_modern_a_released_job_waits_for_ever() -> None:
    """As recorded: test_stage_in gives 0 and nothing is done; cancelling is the way out."""
    text = scenario(
        SUBMIT + entry("20s", "scontrol release 1", "root") + entry("200s", "scancel 1"),
        appliance=FIRST_FAILS,
    )
    ran = run(text, "modern")
    assert functions(ran).count("dw_setup") == 1
    late = [event.rc for event in ran.all("bb_p_job_test_stage_in") if event.time_us > 21_000_000]
    assert set(late) == {0}
    assert ran.job()[0] == "CANCELLED"


def test_a_stage_in_that_takes_too_long_is_killed() -> None:
    """StageInTimeout ends data_in, and the job is held."""
    text = scenario(
        SUBMIT + entry("100s", "scontrol -o show job 1"),
        appliance="functions: {data_in: {runs: 1h}}",
        bb_conf="StageInTimeout: 60",
    )
    ran = run(text)
    assert "dws_data_in:_timed_out" in out(ran, 1)
    assert ran.one("dw_data_in").time_us == 61_000_100


_LIMITS_S = {
    **dict.fromkeys(("job_process", "paths"), 7),
    **dict.fromkeys(("pre_run", "teardown"), 11),
    **dict.fromkeys(("setup", "data_in", "real_size", "create_persistent"), 13),
    **dict.fromkeys(("post_run", "data_out"), 17),
}


@pytest.mark.parametrize("runs_s", [-1, 1])
@pytest.mark.parametrize("function", list(_LIMITS_S))
def test_each_function_has_the_timeout_of_its_kind(function: str, runs_s: int) -> None:
    """ValidateTimeout, OtherTimeout, StageInTimeout and StageOutTimeout, a second beside each."""
    limit_s = _LIMITS_S[function]
    named = function == "create_persistent"
    text = scenario(
        SUBMIT,
        head="#BB create_persistent name=p capacity=1GiB" if named else JOB,
        appliance=f"functions: {{{function}: {{runs: {limit_s + runs_s}s}}}}",
        bb_conf="ValidateTimeout: 7, OtherTimeout: 11, StageInTimeout: 13, StageOutTimeout: 17, "
        "Flags: EnablePersistent",
    )
    ran = run(text)
    call = ran.all(f"dw_{function}")[0]
    assert call.time_us - begin_us(call) == (limit_s + min(runs_s, 0)) * 1_000_000


# Cancelled jobs.


@pytest.mark.parametrize("model", MODELS)
def test_a_job_cancelled_while_it_stages_in_is_torn_down_in_a_hurry(model: str) -> None:
    """In model modern the stage-in thread comes last, and the record is kept for ever."""
    ran = run(scenario(SUBMIT + entry("3s", "scancel 1") + entry("100s", "squeue")), model)
    assert functions(ran)[:3] == ["dw_job_process", "dw_setup", "dw_data_in"]
    assert argv(ran.all("dw_teardown")[0]).endswith("--hurry")
    assert ran.all("bb_p_job_start_stage_out") == []
    last = answers(ran, "bb_p_job_test_stage_out")
    if model == "guide":
        assert bb_states(ran)[-1] == "COMPLETE"
        assert last == [1]
    else:
        assert bb_states(ran)[-1] == "STAGED_IN"
        assert set(last) == {-1}


@pytest.mark.parametrize("model", MODELS)
def test_a_job_cancelled_in_setup_leaves_no_buffer(model: str) -> None:
    """The first teardown finds nothing; another one follows once the buffer is there."""
    text = scenario(SUBMIT + entry("0.5s", "scancel 1") + entry("50s", "scontrol show burst"))
    ran = run(text, model)
    assert "UsedSpace=0" in out(ran, 2)
    assert "JobID=1" not in out(ran, 2)
    assert not ran.world.site.appliance.store.buffers


@pytest.mark.parametrize("model", MODELS)
def test_a_job_cancelled_while_it_runs_is_staged_out(model: str) -> None:
    """What it has written so far is kept."""
    ran = run(scenario(SUBMIT + entry("9s", "scancel 1")), model)
    assert functions(ran) == GOOD
    assert ran.job()[0] == "CANCELLED"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("at", ["9s", "15s"])
def test_scancel_hurry_stages_nothing_out(model: str, at: str) -> None:
    """Neither of a job that runs, nor of one that is being staged out."""
    ran = run(scenario(SUBMIT + entry(at, "scancel --hurry 1")), model)
    assert ran.all("bb_p_job_cancel", job=1)
    assert "dw_data_out" not in functions(ran) or at == "15s"
    assert argv(ran.one("dw_teardown")).endswith("--hurry")
    assert bb_states(ran)[-1] == "COMPLETE"
    assert ran.job()[0] == ("CANCELLED" if at == "9s" else "COMPLETED")


# Starts that fail.


@pytest.mark.parametrize("model", MODELS)
def test_a_job_whose_paths_fail_is_held(model: str) -> None:
    """No revoke_alloc, and nothing runs; its buffer is there until it is cancelled."""
    text = scenario(
        SUBMIT + entry("20s", "scontrol -o show job 1") + entry("30s", "scancel 1"),
        appliance="functions: {paths: {exit: 1}}",
    )
    ran = run(text, model)
    assert answers(ran, "bb_p_job_begin")[0] == 2094
    assert "Reason=JobHeldAdmin" in out(ran, 1)
    assert ran.all("bb_p_job_revoke_alloc") == []
    assert functions(ran)[-1] == "dw_teardown"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("how", ["full", "read_only"])
def test_a_job_whose_paths_no_disk_takes_is_held(how: str, model: str) -> None:
    """dw_wlm_cli exits 1, as for any other of its errors."""
    trouble = f"{{disk: slurmctld, how: {how}, for: 1s}}"
    text = scenario(
        SUBMIT
        + f'  - {{when: "dw_paths phase=enter", fault: {trouble}}}\n'
        + entry("20s", "scontrol -o show job 1")
        + entry("30s", "scancel 1")
    )
    ran = run(text, model)
    assert answers(ran, "bb_p_job_begin")[0] == 2094
    assert "Reason=JobHeldAdmin" in out(ran, 1)
    assert ran.one("dw_paths").rc == 1 << 8
    assert functions(ran)[-1] == "dw_teardown"


@pytest.mark.parametrize("model", MODELS)
def test_a_job_whose_pre_run_fails_goes_back_into_the_queue(model: str) -> None:
    """Nothing of it has run, and that is no restart that counts."""
    text = scenario(
        SUBMIT + entry("20s", "scontrol -o show job 1"),
        appliance='functions: {pre_run: [{exit: 1, output: "no mount"}, {runs: 2s}]}',
    )
    ran = run(text, model)
    shown = out(ran, 1)
    assert "JobState=PENDING Reason=Burst_buffer_pre_run_error" in shown
    assert "Restarts=0" in shown
    assert "ExitCode=0:1" in shown
    assert "dw_post_run" not in functions(ran)[: functions(ran).index("dw_teardown")]
    launched = ran.all("REQUEST_BATCH_JOB_LAUNCH", phase="send")[0]
    assert launched.seq > ran.all("dw_pre_run")[-1].seq
    assert ran.job()[0] == "COMPLETED"
    assert functions(ran)[1:7] == [*GOOD[1:6], "dw_teardown"]
    states = job_states(ran)
    requeued = states.index("PENDING|REQUEUE")
    assert states[requeued - 1] == ("RUNNING" if model == "modern" else "RUNNING|CONFIGURING")
    assert states[requeued + 1 : requeued + 3] == ["PENDING|COMPLETING", "PENDING"]


def test_a_job_whose_pre_run_fails_for_the_third_time_is_held() -> None:
    """Two more tries are granted."""
    ran = run(scenario(SUBMIT, appliance="functions: {pre_run: {exit: 1}}"))
    assert functions(ran).count("dw_pre_run") == 3
    assert ran.job() == ("PENDING", "0:1", "Burst buffer pre_run error")


@pytest.mark.parametrize("model", MODELS)
def test_a_start_that_is_taken_back_leaves_the_buffer_staged_in(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In model modern the job stays CONFIGURING for ever, as recorded."""
    left = ["select_g_job_begin"]
    strikes = Hooks.strikes

    def strikes_once(hooks: Hooks, who: Process, name: str, **fields: Any) -> bool:
        if name in left:
            left.remove(name)
            return True
        return strikes(hooks, who, name, **fields)

    monkeypatch.setattr(Hooks, "strikes", strikes_once)
    ran = run(scenario(SUBMIT), model)
    assert answers(ran, "bb_p_job_revoke_alloc") == [0]
    assert "ALLOC_REVOKE" in bb_states(ran)
    if model == "guide":
        assert ran.job()[0] == "COMPLETED"
        assert functions(ran).count("dw_setup") == 1
    else:
        assert ran.all("dw_pre_run") == []
        assert job_states(ran)[-1] == "PENDING|CONFIGURING"


# Ends that fail.


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("function", ["post_run", "data_out"])
def test_a_failed_stage_out_keeps_buffer_and_record(model: str, function: str) -> None:
    """STAGE_OUT stays, and the reason tells why, until `scancel --hurry`."""
    text = scenario(
        SUBMIT
        + entry("100s", "scontrol -o show job 1")
        + entry("100s", "scontrol show burst")
        + entry("200s", "scancel --hurry 1"),
        appliance=f"functions: {{{function}: {{exit: 1, output: lost}}}}",
    )
    ran = run(text, model)
    shown = out(ran, 1)
    assert f"JobState=STAGE_OUT Reason=burst_buffer/datawarp:_dws_{function}:_lost " in shown
    assert "State=staged-in" in out(ran, 2)
    assert set(answers(ran, "bb_p_job_test_stage_out")[:-1]) == {0}
    assert bb_states(ran)[-1] == "COMPLETE"
    assert ("dw_data_out" in functions(ran)) is (function == "data_out")
    assert ran.job()[0] == "COMPLETED"


def test_a_teardown_that_fails_is_tried_again_every_5_s() -> None:
    """The job says so meanwhile."""
    text = scenario(
        SUBMIT + entry("20s", "scontrol -o show job 1"),
        appliance="functions: {teardown: [{exit: 1, output: busy}, {exit: 1}, {runs: 1s}]}",
    )
    ran = run(text, "modern")
    assert functions(ran).count("dw_teardown") == 3
    assert bb_states(ran)[-3:] == ["TEARDOWN_FAIL", "TEARDOWN_FAIL", "COMPLETE"][1:] or (
        "TEARDOWN_FAIL" in bb_states(ran)
    )
    assert "Reason=burst_buffer/datawarp:_teardown:_busy" in out(ran, 1)
    first, second, _ = ran.all("dw_teardown")
    assert isinstance(second.t0_us, int)
    assert second.t0_us - first.time_us == 5_000_000
    assert bb_states(ran)[-1] == "COMPLETE"


# Space.


@pytest.mark.parametrize("model", MODELS)
def test_a_job_waits_for_the_space_of_another(model: str) -> None:
    """60 of 100 GiB are taken at once, as the first job's stage-in is started."""
    text = scenario(SUBMIT + SUBMIT, head=JOB.replace("10GiB", "60GiB"))
    ran = run(text, model)
    assert ran.job(1)[0] == ran.job(2)[0] == "COMPLETED"
    assert ran.one("dw_teardown", job=1).seq < _began(ran.one("dw_setup", job=2))
    assert "BurstBufferResources" in {
        event.args["reason"] for event in ran.all("bb_state", job=2) if event.args is not UNSET
    }


@pytest.mark.parametrize("model", MODELS)
def test_a_request_for_more_than_there_is_waits_for_ever(model: str) -> None:
    """It is taken in, and never set up; another job passes it by."""
    text = scenario(
        SUBMIT
        + entry("1s", "sbatch --bb='capacity=1GiB' --wrap 'sleep 1'")
        + entry("200s", "squeue -h -o '%i %r'")
        + entry("201s", "scancel 1"),
        head=JOB.replace("10GiB", "200GiB"),
    )
    ran = run(text, model)
    assert out(ran, 2).split() == ["1", "BurstBufferResources"]
    assert functions(ran) == ["dw_job_process"]
    assert ran.job(2)[0] == "COMPLETED"


def test_swap_space_counts_for_each_node() -> None:
    """It is part of what the appliance is asked for."""
    text = scenario(entry("0s", "sbatch -N2 bb.sh"), head="#DW swap 4GiB\n")
    assert "--capacity wlm_pool:8GiB" in argv(run(text).one("dw_setup"))


def test_lines_of_swap_space_add_up() -> None:
    """As lines of other space do."""
    text = scenario(entry("0s", "sbatch -N2 bb.sh"), head="#DW swap 4GiB\n#DW swap 3GiB\n")
    assert "--capacity wlm_pool:14GiB" in argv(run(text).one("dw_setup"))


def test_sizes_are_rounded_up_to_the_pools_granularity() -> None:
    """Slurm asks for whole granules."""
    text = scenario(SUBMIT, head="#DW jobdw capacity=1500MiB\n")
    ran = run(text)
    assert "--capacity wlm_pool:2GiB" in argv(ran.one("dw_setup"))
    counted = ran.all("bb_p_job_set_tres_cnt")[0]
    assert counted.args is not UNSET
    assert counted.args["tres_cnt"] == {"bb/datawarp": 2048}


SITE_CLI = r"""files:
  /site/cli: |
    #!/bin/sh
    case $2 in
    pools) echo '{"pools": [{"id": "wlm_pool", "units": "bytes", "granularity": 1073741824,
      "quantity": 100, "free": 100}]}';;
    show_*) echo '{"instances": [], "sessions": [], "configurations": []}';;
    real_size) echo '{"token": "1", "capacity": %d, "units": "bytes"}';;
    esac
"""
"""An appliance that tells a real size of its own."""


@pytest.mark.parametrize(("real", "counted"), [(8, 10), (12, 12)])
def test_a_buffer_counts_with_its_real_size_where_that_is_larger(real: int, counted: int) -> None:
    """In the pool, in what is shown, and in what the job is told to take as it starts."""
    text = scenario(SUBMIT + entry("2s", "scontrol show burst"), bb_conf="GetSysState: /site/cli")
    ran = run(text.replace("files:\n", SITE_CLI % (real << 30)))
    assert f"FreeSpace={100 - counted}GiB" in out(ran, 1)
    assert f"JobID=1 CreateTime=2026-01-01T00:00:00 Pool=wlm_pool Size={counted}GiB" in out(ran, 1)
    counts = [event.args["tres_cnt"] for event in ran.all("bb_p_job_set_tres_cnt")]  # type: ignore[index]
    assert counts == [{"bb/datawarp": 10 * 1024}, {"bb/datawarp": counted * 1024}]
    assert ran.job()[0] == "COMPLETED"


def test_a_session_that_was_there_is_as_large_as_all_its_instances() -> None:
    """Those of other sessions do not count."""
    shown = [(1, 4), (2, 8), (1, 3)]
    there = {
        "instances": [
            {"id": place, "links": {"session": session}, "capacity": {"bytes": gib << 30}}
            for place, (session, gib) in enumerate(shown)
        ],
        "sessions": [{"id": each, "token": f"kept{each}", "owner": 1001} for each in (1, 2)],
    }
    nothing = '{"instances": [], "sessions": [], "configurations": []}'
    cli = (SITE_CLI % 0).replace(nothing, json.dumps(there))
    text = scenario(entry("2s", "scontrol show burst"), bb_conf="GetSysState: /site/cli")
    told = out(run(text.replace("files:\n", cli)), 0)
    sizes = re.findall(r"Name=(kept\d) .*Size=(\w+)", told)
    assert sorted(sizes) == [("kept1", "7GiB"), ("kept2", "8GiB")]


# Persistent buffers.


SCRIPTS = """\
files:
  make.sh: "#!/bin/sh\\n#BB create_persistent name=data capacity=20GiB access=striped \
type=scratch\\nsleep 1\\n"
  use.sh: "#!/bin/sh\\n#DW persistentdw name=data\\necho DW=$DW_PERSISTENT_STRIPED_data\\n"
  gone.sh: "#!/bin/sh\\n#BB destroy_persistent name=data\\nsleep 1\\n"
"""


def with_scripts(timeline: str, **more: str) -> str:
    """Return a scenario in which alice has make.sh, use.sh and gone.sh."""
    text = scenario(timeline.replace("sbatch ", "sbatch /home/alice/"), **more)
    return text[: text.index("files:")] + SCRIPTS + text[text.index("timeline:") :]


@pytest.mark.parametrize("model", MODELS)
def test_a_persistent_buffer_outlives_its_job(model: str) -> None:
    """Another job uses it, a third one destroys it."""
    text = with_scripts(
        entry("0s", "sbatch make.sh", "carol")
        + entry("30s", "scontrol show burst")
        + entry("40s", "sbatch use.sh")
        + entry("100s", "sbatch gone.sh", "carol")
        + entry("150s", "scontrol show burst")
    )
    ran = run(text, model)
    assert argv(ran.one("dw_create_persistent")) == (
        "--function create_persistent -c CLI -t data -u 1003 -C wlm_pool:20GiB -a striped "
        "-T scratch"
    )
    assert functions(ran, 1) == ["dw_job_process", "dw_create_persistent"]
    assert "Name=data " in out(ran, 1)
    assert functions(ran, 2)[:3] == ["dw_job_process", "dw_setup", "dw_data_in"]
    assert "--capacity" not in argv(ran.one("dw_setup", job=2))
    printed = ran.world.disk.read("/home/alice/slurm-2.out", host="n1") or ""
    assert "DW=/var/opt/cray/dws/mounts/batch/data/ss/" in printed
    assert "--token data" in argv(ran.one("dw_teardown", job=3))
    assert "Name=data " not in out(ran, 4)
    named = [
        event.args["to"]
        for event in ran.all("bb_state")
        if event.args is not UNSET and event.args.get("buffer") == "data"
    ]
    assert named == ["ALLOCATING", "ALLOCATED", "DELETING", "DELETED"]


def test_a_job_waits_for_a_persistent_buffer_that_is_not_there() -> None:
    """Once another job has made it, the job starts."""
    ran = run(with_scripts(entry("0s", "sbatch use.sh") + entry("50s", "sbatch make.sh", "carol")))
    assert ran.one("dw_create_persistent").seq < _began(ran.one("dw_setup", job=1))
    assert ran.job(1)[0] == "COMPLETED"


@pytest.mark.parametrize("model", MODELS)
def test_persistent_buffers_survive_a_restart(model: str) -> None:
    """With their owner and pool; a job that uses one starts after it."""
    text = with_scripts(
        entry("0s", "sbatch make.sh", "carol")
        + RESTART % ("30s", "1s")
        + entry("35s", "scontrol show burst")
        + entry("40s", "sbatch use.sh")
    )
    ran = run(text, model)
    assert "Name=data CreateTime=2026-01-01T00:00:01 Pool=wlm_pool Size=20GiB" in out(ran, 1)
    assert "UserID=carol(1003)" in out(ran, 1)
    assert ran.job(2)[0] == "COMPLETED"


def test_a_buffer_in_use_is_not_destroyed_before_the_use_is_over() -> None:
    """Whoever destroys it waits, until the job that used it is torn down."""
    text = with_scripts(
        entry("0s", "sbatch make.sh", "carol")
        + entry("30s", "sbatch use.sh")
        + entry("33s", "sbatch gone.sh", "carol"),
        appliance="functions: {teardown: {runs: 2m, job: 2}}",
    )
    ran = run(text.replace("echo DW=$DW", "sleep 100 && echo DW=$DW"))
    assert ran.one("dw_teardown", job=2).seq < _began(ran.one("dw_teardown", job=3))


def test_a_buffer_that_is_being_destroyed_is_used_by_nobody_more() -> None:
    """A job that wants it waits until another of its name is made."""
    text = with_scripts(
        entry("0s", "sbatch make.sh", "carol")
        + entry("30s", "sbatch gone.sh", "carol")
        + entry("60s", "sbatch use.sh")
        + entry("400s", "sbatch make.sh", "carol"),
        appliance="functions: {destroy_persistent: {runs: 2m}}",
    )
    ran = run(text)
    destroyed = ran.all("dw_teardown", job=2)[0]
    assert _began(destroyed) < ran.one("dw_job_process", job=3).seq < destroyed.seq
    assert ran.one("dw_create_persistent", job=4).seq < _began(ran.one("dw_setup", job=3))
    assert ran.job(3)[0] == "COMPLETED"


def test_the_space_of_a_persistent_buffer_is_set_aside_while_it_is_made() -> None:
    """Though the job that makes it takes none for itself; another one's does not fit beside it."""
    text = with_scripts(
        entry("0s", "sbatch make.sh", "carol")
        + entry("10s", "sbatch big")
        + entry("100s", "scancel 2"),
        appliance="functions: {create_persistent: {runs: 50s}}",
    ).replace("/home/alice/big", "--bb='capacity=90GiB' --wrap true")
    ran = run(text)
    assert functions(ran, 2) == ["dw_job_process"]
    assert ran.job(2) == ("CANCELLED", "0:0", "BurstBufferResources")


def test_somebody_elses_buffer_is_not_destroyed() -> None:
    """Where everybody may make buffers, each is its owner's, and operators'."""
    text = with_scripts(
        entry("0s", "sbatch make.sh", "bob")
        + entry("30s", "sbatch gone.sh")
        + entry("40s", "scontrol -o show job 2"),
        bb_conf="Flags: EnablePersistent",
    )
    ran = run(text)
    assert "Reason=burst_buffer/datawarp:_destroy_persistent:_it_belongs_to_bob" in out(ran, 2)
    assert ran.all("dw_teardown") == []


def test_a_persistent_buffer_that_cannot_be_made_holds_the_job() -> None:
    """Nothing was set up, and nothing is torn down."""
    text = with_scripts(
        entry("0s", "sbatch make.sh", "carol") + entry("10s", "scontrol -o show job 1"),
        appliance="functions: {create_persistent: {exit: 1, output: full}}",
    )
    ran = run(text)
    assert "Reason=burst_buffer/datawarp:_create_persistent:_full" in out(ran, 1)
    assert functions(ran) == ["dw_job_process", "dw_create_persistent"]


def test_a_persistent_buffer_that_cannot_be_destroyed_may_be_used_on() -> None:
    """It is there as before, and the job that was to destroy it is held."""
    text = with_scripts(
        entry("0s", "sbatch make.sh", "carol")
        + entry("40s", "sbatch gone.sh", "carol")
        + entry("80s", "scontrol show burst")
        + entry("90s", "sbatch use.sh")
        + entry("200s", "scancel 2", "carol"),
        appliance="functions: {destroy_persistent: {exit: 1, output: busy}}",
    )
    ran = run(text)
    assert "State=allocated UserID=carol(1003)" in out(ran, 2)
    assert [row.state for row in ran.result.rows] == ["COMPLETED", "CANCELLED", "COMPLETED"]


# The appliance and slurmctld come and go.


@pytest.mark.parametrize("model", MODELS)
def test_jobs_wait_for_an_appliance_that_does_not_answer_as_slurmctld_starts(model: str) -> None:
    """It is asked every 30 s; once it answers, jobs go on, and it is asked no more."""
    text = scenario(
        entry("0s", "sbatch --begin=now+20 bb.sh")
        + "  - {at: 12s, burst_buffer: {up: false}}\n"
        + RESTART % ("13s", "1s")
        + entry("14.5s", "sbatch bb.sh")
        + "  - {at: 100s, burst_buffer: {up: true}}\n",
    )
    ran = run(text, model)
    assert [each.rc for each in ran.all("bb_p_load_state", args_init_config=True)] == [0, -1]
    assert [each.time_us // 1_000_000 for each in ran.all("dw_pools")] == [0, 14, 44, 74, 104]
    assert "cannot connect" in ran.stderr(1)
    assert set(answers(ran, "bb_p_job_test_stage_in")[:-3]) == {-1}
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize("model", MODELS)
def test_a_job_whose_begin_lies_ahead_begins_no_earlier_after_a_restart(model: str) -> None:
    """Its buffer was staged in before its begin was moved."""
    text = scenario(
        entry("0s", "sbatch -N2 -t10 --exclusive --wrap 'sleep 300'")
        + entry("1s", "sbatch --exclusive bb.sh")
        + entry("20s", "scontrol update jobid=2 starttime=now+900")
        + RESTART % ("30s", "1s")
    )
    ran = run(text, model)
    assert 920 <= ran.result.rows[1].start_us // 1_000_000 < 940


@pytest.mark.parametrize("model", MODELS)
def test_a_restart_while_staging_in_starts_over_in_a_minute(model: str) -> None:
    """What was there is taken down at once."""
    ran = run(
        scenario(SUBMIT + RESTART % ("9s", "1s"), appliance="functions: {data_in: {runs: 20s}}"),
        model,
    )
    assert functions(ran)[:4] == ["dw_job_process", "dw_setup", "dw_data_in", "dw_teardown"]
    assert argv(ran.all("dw_teardown")[0]).endswith("--hurry")
    again = ran.all("dw_setup")[1]
    assert isinstance(again.t0_us, int)
    assert again.t0_us >= 70_000_000
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize("away", ["1s", "10s"])
def test_a_job_about_to_start_begins_again_after_a_restart(away: str) -> None:
    """Its pre_run was cut short; if the appliance does not answer then, the job waits anew."""
    text = scenario(
        SUBMIT
        + RESTART % ("7s", away)
        + "  - {at: 10s, burst_buffer: {up: false}}\n"
        + "  - {at: 100s, burst_buffer: {up: true}}\n",
        appliance="functions: {post_run: {runs: 2m}}" if away == "1s" else "",
    )
    ran = run(text)
    assert functions(ran).count("dw_pre_run") == 2
    assert functions(ran).count("dw_setup") == (1 if away == "1s" else 2)
    launched = ran.all("REQUEST_BATCH_JOB_LAUNCH", phase="send")
    assert len(launched) == 1
    assert isinstance(launched[0].time_us, int)
    assert launched[0].time_us // 1_000_000 == 10 or away == "10s"
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize("model", MODELS)
def test_a_job_that_runs_across_a_restart_keeps_its_buffer(model: str) -> None:
    """It is staged out at its end."""
    text = scenario(SUBMIT + RESTART % ("20s", "1s"), body="srun sleep 60")
    ran = run(text, model)
    assert functions(ran) == GOOD
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize("model", MODELS)
def test_a_restart_while_staging_out(model: str) -> None:
    """Model guide goes on from post_run; real Slurm leaves the buffer for ever."""
    text = scenario(
        SUBMIT + RESTART % ("30s", "1s"), appliance="functions: {data_out: {runs: 40s}}"
    )
    ran = run(text, model)
    if model == "guide":
        assert functions(ran)[-5:] == [
            *("dw_post_run", "dw_data_out", "dw_post_run", "dw_data_out", "dw_teardown"),
        ]
        assert not ran.world.site.appliance.store.buffers
    else:
        assert functions(ran)[-2:] == ["dw_post_run", "dw_data_out"]
        assert list(ran.world.site.appliance.store.buffers) == ["1"]
    assert answers(ran, "bb_p_job_test_stage_out")[-1] == 1


@pytest.mark.parametrize("model", MODELS)
def test_buffers_of_jobs_that_nobody_knows_are_torn_down(model: str) -> None:
    """A job was purged whose teardown failed all the time: the next slurmctld tries once more."""
    text = scenario(
        SUBMIT
        + RESTART % ("100s", "1s")
        + "  - {at: 99s, burst_buffer: {functions: {teardown: {runs: 1s}}}}\n",
        appliance="functions: {teardown: {exit: 1}}",
    )
    ran = run(text.replace("{at: 99s", "{at: 100.5s"), model)
    last = ran.all("dw_teardown")[-1]
    assert last.time_us == 102_000_000
    assert not argv(last).endswith("--hurry")
    assert not ran.world.site.appliance.store.buffers


def test_the_state_file_tells_what_there_is() -> None:
    """It is JSON with a version, beside slurmctld's own files."""
    ran = run(scenario(SUBMIT))
    saved = json.loads(
        ran.world.disk.read("/var/spool/burst_buffer_cray_state", host="slurmctld") or "{}"
    )
    assert saved == {"version": 1, "persistent": [], "jobs": []}


# Going back into the queue.


@pytest.mark.parametrize("model", MODELS)
def test_a_requeued_job_is_staged_out_and_then_begins_anew(model: str) -> None:
    """Its old buffer is gone before the new one is set up."""
    text = scenario(SUBMIT + entry("10s", "scontrol requeue 1"))
    ran = run(text, model)
    assert functions(ran) == [*GOOD, *GOOD[1:]]
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize("model", MODELS)
def test_each_task_of_an_array_has_a_buffer(model: str) -> None:
    """Tasks that are split off are checked one by one."""
    ran = run(scenario(entry("0s", "sbatch --array=0-1 bb.sh")), model)
    assert len(ran.all("dw_setup")) == 2
    assert len(ran.all("dw_teardown")) == 2
    assert all(row.state == "COMPLETED" for row in ran.result.rows)
    script = "--function job_process --job /var/spool/hash.1/job.1/script"
    assert [argv(each) for each in ran.all("dw_job_process")] == [script, script]


@pytest.mark.parametrize("model", MODELS)
def test_tasks_that_wait_for_those_of_another_array_have_buffers_as_well(model: str) -> None:
    """They are split off as they are submitted, and are checked all the same."""
    ran = run(
        scenario(
            entry("0s", "sbatch --array=0-1 --wrap 'sleep 5'")
            + entry("1s", "sbatch -d aftercorr:1 --array=0-1 bb.sh")
        ),
        model,
    )
    assert len(ran.all("dw_setup")) == 2
    assert all(row.state == "COMPLETED" for row in ran.result.rows)


# Beside others.


WHO = ("alice", "bob", "carol")
SCRIPTED = (
    "GetSysState: /b/get, StartStageIn: /b/in, StartStageOut: /b/out, StopStageIn: /b/no_in, "
    "StopStageOut: /b/no_out"
)


@pytest.mark.parametrize("model", MODELS)
def test_a_job_of_another_plugin_is_none_of_its_own(model: str) -> None:
    """Both are asked about each job; each reads its own words of --bb and of scripts."""
    timeline = SUBMIT + entry("1s", "sbatch --bb='size=5G' --wrap 'sleep 1'")
    text = scenario(timeline, bb_conf=SCRIPTED)
    both = '"burst_buffer/datawarp,burst_buffer/generic",'
    ran = run(text.replace("burst_buffer/datawarp,", both), model)
    assert functions(ran, 1) == GOOD
    assert functions(ran, 2) == []
    assert ran.job(1)[0] == ran.job(2)[0] == "COMPLETED"


def test_a_bb_that_no_plugin_understands_is_refused() -> None:
    """Where DataWarp is the only one, what is not for it is for nobody."""
    ran = run(scenario(entry("0s", "sbatch --bb='size=5G' --wrap 'sleep 1'")))
    assert "--bb=size=5G: it asks for nothing of burst_buffer/datawarp" in ran.stderr()
    assert ran.result.rows == ()


def test_with_private_data_people_see_their_own_buffers_alone() -> None:
    """Operators see all."""
    timeline = SUBMIT + "".join(entry("8s", "scontrol show burst", who) for who in WHO)
    ran = run(scenario(timeline, bb_conf="Flags: PrivateData"))
    assert ["JobID=1" in out(ran, place) for place in (1, 2, 3)] == [True, False, True]


@pytest.mark.parametrize("model", MODELS)
def test_a_job_cancelled_in_pre_run_is_torn_down(model: str) -> None:
    """In model modern the end of pre_run comes last, and the buffer counts as in use for ever."""
    text = scenario(SUBMIT + entry("7s", "scancel 1") + entry("60s", "squeue"))
    ran = run(text, model)
    assert "dw_post_run" not in functions(ran)
    assert argv(ran.one("dw_teardown")).endswith("--hurry")
    assert not ran.world.site.appliance.store.buffers
    last = "COMPLETE" if model == "guide" else "RUNNING"
    assert bb_states(ran)[-1] == last
    assert ran.job()[0] == "CANCELLED"


@pytest.mark.parametrize("function", ["setup", "data_in", "paths", "post_run", "data_out"])
def test_a_fault_makes_a_function_fail(function: str) -> None:
    """It is named by the script's event and the job."""
    ran = run(scenario(fault(f"dw_{function} job=1") + SUBMIT))
    assert ran.one(f"dw_{function}", job=1).rc != 0
    assert ran.result.complaints == ()


def test_when_a_job_could_start_is_estimated() -> None:
    """What is too large may come in a year, what waits for a persistent buffer in an hour.

    A task of an array that has yet to be split may start in five minutes.
    """
    text = with_scripts(
        entry("0s", "sbatch use.sh")
        + entry("0s", "sbatch twice")
        + entry("0s", "srun --bb='capacity=1TiB' true")
        + entry("100s", "scancel 1 2 3")
    ).replace("/home/alice/twice", "-a 0-29 /home/alice/use.sh")
    ran = run(text)
    estimates = {
        job: event.rc - 1767225600 - event.time_us // 1_000_000
        for job in (1, 2, 3)
        for event in ran.all("bb_p_job_get_est_start", job=job)[:1]
        if isinstance(event.rc, int)
    }
    assert estimates == {1: 3600, 2: 300, 3: 365 * 86_400}


def test_a_buffer_gives_way_to_a_job_that_starts_sooner() -> None:
    """Staged in for a job that has to wait for nodes, it is taken down in a hurry."""
    text = scenario(
        entry("0s", "sbatch -N2 -t 60 --exclusive --wrap 'sleep 600'")
        + entry("1s", "sbatch -N2 -t 60 --nice=100 bb.sh")
        + entry("100s", "sbatch -N1 -t 60 bb.sh"),
        head=JOB.replace("10GiB", "60GiB"),
    )
    ran = run(text)
    assert argv(ran.all("dw_teardown", job=2)[0]).endswith("--hurry")
    assert ran.all("dw_teardown", job=2)[0].seq < _began(ran.all("dw_setup", job=3)[0])
    assert all(row.state == "COMPLETED" for row in ran.result.rows)


@pytest.mark.parametrize("parts", [("debug", "late"), ("late", "debug")])
def test_of_two_buffers_that_of_the_job_which_starts_last_gives_way(parts: tuple[str, str]) -> None:
    """One is enough: the other one stays."""
    jobs = [f"-p {part} --nice={100 if part == 'debug' else 200}" for part in parts]
    text = scenario(
        entry("0s", "sbatch -N2 -t 60 --exclusive --wrap 'sleep 600'")
        + "".join(entry("1s", f"sbatch -N2 -t 60 --exclusive {job} bb.sh") for job in jobs)
        + entry("100s", "sbatch -N1 -t 60 bb.sh"),
        head=JOB.replace("10GiB", "40GiB"),
    )
    late = 'default: true}, {name: late, nodes: "n[1-2]"}'
    ran = run_cluster(text, cluster=TWO_NODES.replace("default: true}", late))
    setups = [functions(ran, job).count("dw_setup") for job in (2, 3)]
    assert dict(zip(parts, setups, strict=True)) == {"debug": 1, "late": 2}


def test_a_buffer_does_not_give_way_to_a_job_that_starts_no_sooner() -> None:
    """Both wait for the end of the same job: who was staged in first keeps the space."""
    text = scenario(
        entry("0s", "sbatch -N2 -t 60 --bb='capacity=10GiB' --wrap 'sleep 600'")
        + entry("1s", "sbatch -N1 -t 60 bb.sh")
        + entry("100s", "sbatch -N1 -t 60 bb.sh"),
        head=JOB.replace("10GiB", "60GiB"),
    )
    ran = run(text)
    assert functions(ran, 2) == functions(ran, 3) == GOOD
    # The first one's time limit ends then: it runs from second 5 on.
    assert answers(ran, "bb_p_job_get_est_start", 3)[0] == 1767225600 + 5 + 3600


@pytest.mark.parametrize(("size", "begun"), [(39, [3]), (40, [3]), (41, [])])
def test_as_space_comes_back_who_waits_first_is_looked_at_first(
    size: int, begun: list[int]
) -> None:
    """A smaller buffer of a later job is not staged in past it, until a pass asks for that job."""
    job = "sbatch -N1 -t {} --bb='capacity={}GiB' --wrap 'sleep {}'"
    text = scenario(
        entry("0s", job.format(20, 60, 900))
        + entry("0s", job.format(30, 30, 150))
        + entry("100s", job.format(5, size, 9))
        + entry("101s", job.format(5, 20, 9)),
        conf=', SchedulerParameters: "bf_interval=100,default_queue_depth=1"',
    )
    ran = run(text)
    (back,) = [
        each.time_us
        for each in ran.all("bb_state", job=2)
        if each.args is not UNSET and each.args["to"] == "COMPLETE"
    ]
    assert [each for each in (3, 4) if _staged_in_at(ran, each) <= back + 1_000_000] == begun
    assert all(row.state == "COMPLETED" for row in ran.result.rows)


def _staged_in_at(ran: Ran, job: int) -> int:
    return next(
        each.time_us
        for each in ran.all("bb_state", job=job)
        if each.args is not UNSET and each.args["to"] == "STAGING_IN"
    )


def test_a_reservation_keeps_megabytes_of_it() -> None:
    """Of ``datawarp:1500M`` whole MB; what is for another plugin is none of it."""
    with slurmctld("slurm_conf: {BurstBufferType: burst_buffer/datawarp}\n"):
        plugin = BurstBufferDatawarp()
        assert plugin.bb_p_xlate_bb_2_tres_str("datawarp:1500M,datawarp:1G") == "1001=2524"
        assert plugin.bb_p_xlate_bb_2_tres_str("generic:1500M") is None
        assert plugin.bb_p_xlate_bb_2_tres_str("datawarp:much") is None
