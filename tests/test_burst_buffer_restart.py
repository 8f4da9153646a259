"""slurmctld restarts while a job's buffer is in each of its states: what it finds and does."""

import pytest
from msgspec import UNSET

from simctl.wire.ids import SECOND
from tests.bb_situations import AT, SUBJECT, Row, outcome, rows, situation
from tests.cluster import TWO_NODES, Ran, run
from tests.staged import arg, staged

_AWAY_S = 5
_RESTART = f"fault: {{restart: slurmctld, for: {_AWAY_S}s}}"

_DATAWARP = """\
PENDING     | restart | both   | COMPLETED | 1 | IN OUT
STAGING_IN  | restart | both   | COMPLETED | 1 | PENDING TEARDOWN COMPLETE PENDING IN OUT
STAGED_IN   | restart | both   | COMPLETED | 1 | PENDING TEARDOWN COMPLETE PENDING IN OUT
PRE_RUN     | restart | guide  | COMPLETED | 1 | STAGED_IN PRE_RUN RUNNING OUT
PRE_RUN     | restart | modern | COMPLETED | 1 | RUNNING OUT
RUNNING     | restart | both   | COMPLETED | 0 | OUT
POST_RUN    | restart | guide  | COMPLETED | 0 | STAGING_OUT TEARDOWN COMPLETE
POST_RUN    | restart | modern | COMPLETED | 0 | | 4
STAGING_OUT | restart | guide  | COMPLETED | 0 | OUT
STAGING_OUT | restart | modern | COMPLETED | 0 | | 4
TEARDOWN    | restart | guide  | COMPLETED | 0 | COMPLETE
TEARDOWN    | restart | modern | COMPLETED | 0 | | 4
"""
"""State, deed, model, the job in the end, launches and states of the buffer from the deed on, and
the GiB that are never given back.

IN stands for the way to RUNNING, OUT for that from POST_RUN to COMPLETE. What is in the store of a
job that has not started is torn down, and it begins anew. In model guide a job that was about to be
launched is claimed again, and a stage-out goes on; real Slurm launches the one as it is, and leaves
the other.
"""

_GENERIC = """\
PENDING     | restart | both   | COMPLETED | 1 | IN OUT
STAGING_IN  | restart | both   | COMPLETED | 1 | STAGED_IN RUNNING OUT
STAGED_IN   | restart | both   | COMPLETED | 1 | RUNNING OUT
RUNNING     | restart | both   | COMPLETED | 0 | OUT
STAGING_OUT | restart | both   | COMPLETED | 0 | STAGED_OUT
STAGED_OUT  | restart | both   | COMPLETED | 0 |
"""
"""The same; its scripts outlive slurmctld, which learns from the store how far they are."""


def _restarted(plugin: str, model: str, state: str) -> Ran:
    return situation(plugin, model, state, _RESTART)


def _check(plugin: str, row: Row) -> None:
    for model in row.models:
        ran = _restarted(plugin, model, row.state)
        assert outcome(ran, plugin, row.state) == row.outcome, model
        assert not ran.result.stalled
        assert not ran.result.complaints
        assert ran.all("slurm_ckpt_free_job", job=SUBJECT), "its record is kept"


@pytest.mark.parametrize("row", rows(_DATAWARP), ids=str)
def test_what_a_restart_makes_of_a_job_with_datawarp(row: Row) -> None:
    """Jobs and buffers end well after it in model guide; modern loses what it was staging out."""
    _check("datawarp", row)


@pytest.mark.parametrize("row", rows(_GENERIC), ids=str)
def test_what_a_restart_makes_of_a_job_with_generic(row: Row) -> None:
    """Nothing is lost: what is staged goes on meanwhile."""
    _check("generic", row)


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("state", ["STAGING_IN", "STAGED_IN"])
def test_a_half_filled_buffer_goes_at_once_and_comes_back_in_a_minute(
    state: str, model: str
) -> None:
    """As recorded: teardown --hurry at once, BeginTime a minute later, then everything anew."""
    ran = _restarted("datawarp", model, state)
    back_us = round((AT["datawarp"][state] + _AWAY_S) * SECOND)
    teardown = ran.all("dw_teardown", job=SUBJECT)[0]
    setup = ran.all("dw_setup", job=SUBJECT)
    assert teardown.args is not UNSET
    assert "--hurry" in teardown.args["argv"]
    assert back_us <= teardown.time_us < back_us + SECOND
    assert len(setup) == 2
    asked = [each.time_us - back_us for each in ran.all("bb_p_job_test_stage_in", rc=0)]
    assert min(each for each in asked if each > 0) == 60 * SECOND
    assert not ran.all("bb_p_job_cancel", job=SUBJECT)


@pytest.mark.parametrize("state", ["STAGING_IN", "PRE_RUN", "POST_RUN", "STAGING_OUT"])
def test_the_script_under_way_ends_with_slurmctld(state: str) -> None:
    """A stop ends the threads of the plugin, and with them what they wait for."""
    ran = _restarted("datawarp", "modern", state)
    at_us = round(AT["datawarp"][state] * SECOND)
    name = {
        "STAGING_IN": "dw_data_in",
        "PRE_RUN": "dw_pre_run",
        "POST_RUN": "dw_post_run",
        "STAGING_OUT": "dw_data_out",
    }[state]
    script = ran.all(name, job=SUBJECT)[0]
    assert script.time_us == at_us
    assert script.rc == 9


def test_a_job_about_to_be_launched_is_mounted_once_more() -> None:
    """Model guide loads the state first, and then claims again: pre_run runs before the launch."""
    ran = _restarted("datawarp", "guide", "PRE_RUN")
    load = ran.all("bb_p_load_state", daemon="slurmctld")
    again = next(event for event in load if event.time_us >= 17 * SECOND)
    begin = ran.all("bb_p_job_begin", job=SUBJECT)
    pre_run = ran.all("dw_pre_run", job=SUBJECT)
    assert [event.rc for event in pre_run] == [9, 0]
    launch = ran.first("REQUEST_BATCH_JOB_LAUNCH", phase="send", job=SUBJECT)
    assert again.seq < begin[-1].seq < pre_run[-1].seq < launch


def test_real_slurm_claims_too_early_and_launches_all_the_same() -> None:
    """Model modern: begin comes before the state is loaded, fails, and nobody minds."""
    ran = _restarted("datawarp", "modern", "PRE_RUN")
    begin = ran.all("bb_p_job_begin", job=SUBJECT)
    assert [event.rc for event in begin] == [0, -1]
    assert len(ran.all("dw_pre_run", job=SUBJECT)) == 1
    assert begin[-1].seq < ran.first("REQUEST_BATCH_JOB_LAUNCH", phase="send", job=SUBJECT)


def test_what_is_left_of_a_stage_out_is_shown_as_allocated() -> None:
    """As recorded: the record goes at the first purge scan, the buffer stays."""
    show = "  - {at: 1000s, run: scontrol show burst}\n"
    ran = situation("datawarp", "modern", "STAGING_OUT", _RESTART, more=show)
    asked = ran.all("bb_p_job_test_stage_out", job=SUBJECT)
    assert [event.rc for event in asked] == [1]
    assert f"JobID={SUBJECT} " in ran.result.commands[-1].stdout
    assert "State=allocated" in ran.result.commands[-1].stdout


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_record_that_cannot_be_made_anew_takes_nothing_from_the_buffer(model: str) -> None:
    """The job goes on without a checkpoint record; its end is staged out, and no rule minds."""
    failing = "  - {at: 0s, fault: {fail: slurm_ckpt_alloc_job, skip: 2, times: 9}}\n"
    ran = situation("generic", model, "RUNNING", _RESTART, more=failing)
    assert {event.rc for event in ran.all("slurm_ckpt_alloc_job")[2:]} == {-1}
    assert len(ran.all("bb_p_job_start_stage_out", job=SUBJECT)) == 1
    assert ran.result.orderings.broken == ()


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_what_a_job_took_that_is_over_is_counted_anew(model: str) -> None:
    """As long as it is remembered, and once."""
    ran = staged("1: sbatch job.sh", f"30 {{{_RESTART}}}", model=model)
    over = next(each for each in ran.all("job_state") if arg(each, "to") == "COMPLETED")
    assert over.time_us < 30 * SECOND
    counted = ran.all("bb_p_job_set_tres_cnt", job=1)
    assert [each.time_us >= 30 * SECOND for each in counted][-2:] == [False, True]


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_what_tasks_of_an_array_take_is_counted_anew(model: str) -> None:
    """Each task is a job of its own."""
    ran = staged("1: sbatch -a 0-1 job.sh", f"12 {{{_RESTART}}}", model=model)
    again = [each for each in ran.all("bb_p_job_set_tres_cnt") if each.time_us == 17 * SECOND]
    assert [each.job for each in again] == [1, 2]


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_job_without_nodes_claims_its_buffer_once_more(model: str) -> None:
    """It was about to be over: it is so when what it waits for has been done anew."""
    ran = staged("1: sbatch -N0 job.sh", f"15 {{{_RESTART}}}", model=model, job="in=2 pre=30")
    assert [each.time_us // SECOND for each in ran.all("bb_p_job_begin")] == [4, 20]
    assert ran.one("bb_p_job_cancel").time_us == 50 * SECOND


def test_a_run_that_cannot_be_claimed_again_leaves_its_nodes_and_keeps_its_buffer() -> None:
    """The prolog is run anew, the claim too, before generic has heard of its buffers."""
    ran = run(
        "options: {bb_load_first: false}\n"
        "slurm_conf: {BurstBufferType: burst_buffer/generic, Prolog: /etc/p, PrologFlags: Alloc}\n"
        "burst_buffer_conf: {GetSysState: /bb/state, StartStageIn: /bb/in, StartStageOut: /bb/out,"
        " StopStageIn: /bb/stop_in, StopStageOut: /bb/stop_out}\n"
        "programs: {/etc/p: {runs: 20s}}\n"
        "files:\n  job: |\n    #!/bin/sh\n    #BB size=4G\n    sleep 20\n"
        "timeline:\n  - {at: 0s, as: alice, run: sbatch job}\n"
        '  - {when: "prolog phase=enter", fault: {restart: slurmctld, for: 1s}}\n',
        cluster=TWO_NODES + "burst_buffer: {pools: {wlm_pool: {capacity: 20GiB}}}\n",
    )
    assert [each.rc for each in ran.all("bb_p_job_begin")] == [0, 2094, 0]
    assert [each.rc for each in ran.all("bb_p_job_test_post_run")] == [-1, 1]
    assert len(ran.all("start_stage_in")) == 1
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("then", ["", "  - {at: 20s, as: alice, run: scancel 1}\n"])
def test_a_job_that_was_about_to_start_waits_again(model: str, then: str) -> None:
    """Its claim is gone with the slurmctld that made it, and nobody was told of a start."""
    ran = run(
        "slurm_conf: {BurstBufferType: burst_buffer/datawarp}\n"
        "files:\n  job: |\n    #!/bin/sh\n    #DW jobdw capacity=4GiB\n    sleep 20\n"
        "timeline:\n  - {at: 0s, as: alice, run: sbatch job}\n"
        '  - {when: "job_state args.to=PENDING|CONFIGURING", '
        "fault: {crash: slurmctld, saved: true}}\n"
        "  - {at: 15s, fault: {start: slurmctld}}\n" + then,
        cluster=TWO_NODES + "burst_buffer: {pools: {wlm_pool: {capacity: 20GiB}}}\n",
        model=model,
    )
    assert ran.job()[0] == ("CANCELLED" if then else "COMPLETED")
    assert len(ran.all("bb_p_job_cancel")) == bool(then)
    assert len(ran.all("bb_p_job_start_stage_out")) == (not then)
