"""The trial clusters of burst buffer plugins: jobs with directives that every kind may understand.

The appliance behind the scripts is there, and burst_buffer.conf names those that
burst_buffer/generic must have, so that a plugin which runs scripts finds somebody who answers.
"""

from typing import Final

from simctl.testing.plugin_check.trials import Trial

_HEAD: Final = """\
nodes: [{name: "n[1-3]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-3]", default: true, max_time: 1h}]
users: {alice: 1001, bob: 1002, op: {uid: 1003, admin: operator}}
burst_buffer_conf:
  GetSysState: /opt/cray/dw_wlm/default/bin/dw_wlm_cli
  StartStageIn: /usr/bb/start_in
  StopStageIn: /usr/bb/stop_in
  StartStageOut: /usr/bb/start_out
  StopStageOut: /usr/bb/stop_out
burst_buffer:
  pools: {wlm_pool: {capacity: 100GiB, granularity: 1GiB}}
  bandwidth: 2GiB
  data: {/lus/in: 10GiB, /lus/out: 10GiB}
programs:
  ./app: {runs: 5s}
  ./stays: {runs: forever}
files:
  app.sh: |
    #!/bin/sh
    #BB size=60G
    #DW jobdw type=scratch capacity=60GiB access_mode=striped
    #DW stage_in type=file source=/lus/in destination=$DW_JOB_STRIPED/in
    #DW stage_out type=file source=$DW_JOB_STRIPED/out destination=/lus/out
    srun ./app
  stays.sh: |
    #!/bin/sh
    #BB size=20G
    #DW jobdw type=scratch capacity=20GiB access_mode=striped
    #DW stage_in type=file source=/lus/in destination=$DW_JOB_STRIPED/in
    #DW stage_out type=file source=$DW_JOB_STRIPED/out destination=/lus/out
    srun ./stays
  make.sh: |
    #!/bin/sh
    #BB create_persistent name=kept capacity=10GiB access_mode=striped type=scratch
    true
  use.sh: |
    #!/bin/sh
    #DW persistentdw name=kept
    srun ./app
  drop.sh: |
    #!/bin/sh
    #BB destroy_persistent name=kept
    true
"""
_SHOW: Final = "  - {at: %s, as: alice, run: scontrol show burst}\n"
_RESERVATION: Final = (
    "scontrol create reservation starttime=now+10 duration=5 nodes=n3 users=bob burstbuffer=10G"
)


def _trial(
    name: str, timeline: str, conf: str = "SchedulerType: sched/backfill", head: str = _HEAD
) -> Trial:
    return Trial(name, timeline, head=head, conf=conf)


_LIVES: Final = (
    "  - {at: 0s, as: alice, run: sbatch app.sh}\n"
    "  - {at: 1s, as: bob, run: sbatch -N2 app.sh}\n"
    "  - {at: 1s, as: bob, run: sbatch --bb=size=10G --wrap true}\n"
    "  - {at: 2s, as: alice, run: srun --bb=capacity=10GiB ./app}\n"
    "  - {at: 2s, as: alice, run: sbatch --wrap 'srun ./app'}\n"
    + _SHOW % "4s"
    + "  - {at: 4s, as: alice, run: scontrol show job}\n"
    + "  - {at: 5s, as: alice, run: sbatch -d afterburstbuffer:1 app.sh}\n"
    + "  - {at: 200s, as: alice, run: sbatch -a 0-3%2 app.sh}\n"
    + _SHOW % "300s"
)

BURST_BUFFERS: Final = (
    _trial("jobs that share a burst buffer", _LIVES),
    _trial(
        "jobs that share a burst buffer, with sched/builtin", _LIVES, "SchedulerType: sched/builtin"
    ),
    _trial(
        "jobs with burst buffers that are cancelled, held, requeued",
        "  - {at: 0s, as: alice, run: sbatch stays.sh}\n"
        "  - {at: 0s, as: alice, run: sbatch stays.sh}\n"
        "  - {at: 0s, as: alice, run: sbatch -H stays.sh}\n"
        "  - {at: 0s, as: alice, run: sbatch --begin=now+3600 stays.sh}\n"
        "  - {at: 3s, as: alice, run: scancel 1}\n"
        "  - {at: 60s, as: alice, run: scontrol requeue 2}\n"
        "  - {at: 90s, as: alice, run: scontrol release 3}\n"
        "  - {at: 100s, as: alice, run: scancel 4}\n"
        "  - {at: 400s, as: alice, run: scancel 2}\n"
        "  - {at: 401s, as: alice, run: scancel --hurry 2}\n"
        "  - {at: 420s, as: alice, run: scancel --hurry 3}\n",
    ),
    _trial(
        "a slurmctld that restarts around burst buffers, and asks for the post-run",
        "  - {at: 0s, as: alice, run: sbatch app.sh}\n"
        "  - {at: 4s, fault: {restart: slurmctld}}\n"
        "  - {at: 60s, as: alice, run: sbatch stays.sh}\n"
        "  - {at: 61s, as: bob, run: sbatch --bb=size=10G --wrap true}\n"
        "  - {at: 100s, fault: {restart: slurmctld}}\n"
        "  - {at: 120s, run: scontrol reconfigure}\n"
        "  - {at: 150s, as: alice, run: scancel 2}\n"
        "  - {at: 152s, fault: {restart: slurmctld, for: 5s}}\n" + _SHOW % "180s",
        head="options: {bb_post_run_gate: true}\n" + _HEAD,
    ),
    _trial(
        "burst buffers that cannot be had",
        '  - {at: 0s, fault: {fail: "bb_p_job_test_stage_in job=1", rc: -1, times: 6}}\n'
        '  - {at: 0s, fault: {fail: "select_g_job_begin job=2", times: 1}}\n'
        '  - {at: 0s, fault: {fail: "bb_p_job_begin job=3", times: 1}}\n'
        "  - {at: 0s, as: alice, run: sbatch app.sh}\n"
        "  - {at: 200s, as: alice, run: sbatch stays.sh}\n"
        "  - {at: 400s, as: alice, run: scancel 2}\n"
        "  - {at: 500s, as: alice, run: sbatch app.sh}\n"
        "  - {at: 700s, as: alice, run: scancel 3}\n",
    ),
    _trial(
        "nodes and scripts that fail",
        "  - {at: 0s, as: alice, run: sbatch --no-requeue stays.sh}\n"
        "  - {at: 60s, fault: {crash: n1}}\n"
        "  - {at: 20m, fault: {start: n1, clean: true}}\n"
        '  - {at: 30m, fault: {fail: "dw_data_in", times: 1}}\n'
        '  - {at: 30m, fault: {fail: "start_stage_in", times: 1}}\n'
        "  - {at: 30m, as: alice, run: sbatch app.sh}\n"
        "  - {at: 40m, as: alice, run: scancel 2}\n",
    ),
    _trial(
        "reservations, and buffers that outlive jobs",
        f"  - {{at: 0s, run: {_RESERVATION}}}\n"
        "  - {at: 1s, as: op, run: sbatch make.sh}\n"
        "  - {at: 20s, as: op, run: sbatch use.sh}\n"
        + _SHOW % "22s"
        + "  - {at: 100s, as: op, run: sbatch drop.sh}\n",
    ),
)
"""Runs with the plugin as BurstBufferType."""
