"""Faults that come together: a store that is down at a restart, a name made and destroyed."""

import pytest
from msgspec import UNSET

from simctl.wire.ids import SECOND
from tests.cluster import Ran, run

_CLUSTER = """\
nodes: [{{name: "n[1-3]", cpus: 2}}]
partitions: [{{name: debug, nodes: "n[1-3]", default: true}}]
users: {{alice: 1001, bob: 1002}}
slurm_conf: {{BurstBufferType: burst_buffer/{plugin}, MinJobAge: 60}}
burst_buffer_conf: {{GetSysState: /bb/state, StartStageIn: /bb/in, StartStageOut: /bb/out,
  StopStageIn: /bb/stop_in, StopStageOut: /bb/stop_out, Flags: EnablePersistent, {conf}}}
files:
  job: |
    #!/bin/sh
    #{job}
    sleep 60
  make: |
    #!/bin/sh
    #BB create_persistent name=p capacity=4GiB
    sleep 1
  destroy: |
    #!/bin/sh
    #BB destroy_persistent name=p
    sleep 1
burst_buffer: {{pools: {{wlm_pool: {{capacity: 20GiB}}}}, functions: {{{functions}}}}}
timeline:
"""
_JOBS = {"datawarp": "DW jobdw capacity=12GiB", "generic": "BB size=12G"}
_DOWN = (
    "at: 40s, burst_buffer: {up: false}",
    "at: 50s, fault: {restart: slurmctld, for: 5s}",
    "at: 400s, burst_buffer: {up: true}",
)
"""The store is down as slurmctld starts again, and while the job ends."""


def _ran(
    plugin: str, *entries: str, model: str = "guide", functions: str = "", conf: str = ""
) -> Ran:
    cluster = _CLUSTER.format(plugin=plugin, job=_JOBS[plugin], functions=functions, conf=conf)
    return run("".join(f"  - {{{entry}}}\n" for entry in entries), cluster=cluster, model=model)


def _space(ran: Ran) -> dict[str, int]:
    appliance = ran.world.site.appliance
    assert appliance is not None
    stores = (appliance.store, appliance.generic_store)
    return {
        each.token: each.size for store in stores for each in store.buffers.values() if each.size
    }


@pytest.mark.parametrize("plugin", ["datawarp", "generic"])
def test_a_job_that_ended_while_its_store_was_down_is_staged_out_later(plugin: str) -> None:
    """The plugin could not hear of the end: it does what that called for once it knows the buffer.

    The record stays as long, and the job is shown as STAGE_OUT meanwhile.
    """
    ran = _ran(plugin, "at: 0s, as: alice, run: sbatch job", *_DOWN)
    out = ran.one("dw_data_out" if plugin == "datawarp" else "start_stage_out", job=1, rc=0)
    assert out.time_us > 400 * SECOND
    flagged = [
        event.time_us
        for event in ran.all("job_state", job=1)
        if event.args is not UNSET and event.args["to"] == "COMPLETED|STAGE_OUT"
    ]
    assert flagged
    assert min(flagged) > 400 * SECOND
    assert ran.first("slurm_ckpt_free_job", job=1) > out.seq
    assert not _space(ran)


def test_an_srun_that_ended_while_the_store_was_down_gives_its_space_back() -> None:
    """There is no script, and nothing to stage: the store never heard of it."""
    ran = _ran("generic", "at: 0s, as: alice, run: srun --bb=size=4G sleep 60", *_DOWN)
    assert ran.all("bb_state", job=1)[-1].args == {
        "from": "RUNNING",
        "to": "STAGED_OUT",
        "reason": "None",
    }
    assert ran.all("slurm_ckpt_free_job", job=1)


def test_a_late_stage_out_that_fails_can_be_given_up() -> None:
    """As any other: the flag says that there is something to give up."""
    ran = _ran(
        "datawarp",
        "at: 0s, as: alice, run: sbatch job",
        *_DOWN,
        "at: 600s, run: scancel --hurry 1",
        functions="data_out: {exit: 1, output: no such file}",
    )
    assert ran.result.commands[-1].exit == 0
    assert ran.all("slurm_ckpt_free_job", job=1)
    assert not _space(ran)


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_persistent_buffer_is_not_destroyed_while_it_is_made(model: str) -> None:
    """Who destroys it waits until it is there; after both jobs nobody believes in it."""
    ran = _ran(
        "datawarp",
        "at: 0s, as: alice, run: sbatch make",
        "at: 5s, as: alice, run: sbatch destroy",
        "at: 300s, run: scontrol show burst",
        model=model,
        functions="create_persistent: {runs: 20s}",
    )
    made, gone = ran.one("dw_create_persistent"), ran.one("dw_teardown")
    assert made.rc == gone.rc == 0
    assert gone.enter is UNSET or int(gone.enter) > made.seq
    assert "Name=p " not in ran.result.commands[-1].stdout
    assert not _space(ran)


def test_a_persistent_buffer_whose_making_timed_out_is_known_all_the_same() -> None:
    """The appliance has made it, and only did not say so in time: the job is held, and told why."""
    ran = _ran(
        "datawarp",
        "at: 0s, as: alice, run: sbatch make",
        "at: 60s, run: scontrol show burst",
        "at: 61s, run: scontrol release 1",
        functions="create_persistent: {runs: forever}",
        conf="StageInTimeout: 10",
    )
    assert "Name=p " in ran.result.commands[1].stdout
    assert ran.job()[0] == "COMPLETED"
    assert _space(ran) == {"p": 4 << 30}


def test_what_was_told_to_go_is_not_taken_for_the_jobs_again() -> None:
    """A job gives way, and StopStageIn takes its time: meanwhile the store still has the buffer."""
    ran = _ran(
        "generic",
        "at: 0s, as: bob, run: sbatch -N3 -t30 --wrap 'sleep 600'",
        "at: 1s, as: bob, run: sbatch --nice=100 job",
        "at: 40s, as: alice, run: sbatch job",
        functions="start_stage_in: [{runs: 30m, job: 2}, {}], stop_stage_in: {runs: 60s}",
        conf="StageInTimeout: 600",
    )
    stop = ran.one("stop_stage_in", job=2)
    changes = [
        str(event.args["to"])
        for event in ran.all("bb_state", job=2)
        if event.args is not UNSET and event.time_us <= stop.time_us
    ]
    assert stop.time_us == 100_000_100
    assert changes == ["STAGING_IN", "PENDING"]
    assert [ran.job(job)[0] for job in (1, 2)] == ["COMPLETED"] * 2
    assert not _space(ran)


@pytest.mark.parametrize("plugin", ["datawarp", "generic"])
def test_a_job_whose_stage_out_cannot_begin_ends_all_the_same(plugin: str) -> None:
    """Nothing of its run is under way; its buffer and its record are kept."""
    ran = _ran(
        plugin,
        "at: 0s, as: alice, run: sbatch job",
        "at: 0s, fault: {raise: bb_p_job_start_stage_out}",
    )
    assert ran.job()[0] == "COMPLETED"
    assert [each.rc for each in ran.all("bb_p_job_test_post_run")] == [-1]
    assert _space(ran) == {"1": 12 << 30}
    assert not ran.result.stalled
