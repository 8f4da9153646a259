"""At which moment the switch and the checkpoint plugin are called, and with what.

Where one thing is done just before another, a test here shows which is first, by what can be seen
inside the call, by what a failure prevents, or by what the causes of the trace prove.
"""

from pathlib import Path

import pytest

from tests.cluster import BATCH, STEP, fault, run
from tests.moments import (
    BOTH,
    SEES_JOBS,
    SLOW_EPILOG,
    THREE_NODES,
    ran_with,
    said,
    text_of,
    timeline,
    to_state,
)

# What records are there.


@BOTH
def test_a_checkpoint_record_is_released_while_its_job_is_there(tmp_path: Path, model: str) -> None:
    """At its purge, and where a burst buffer plugin refuses it after it had its id."""
    ran = ran_with(
        tmp_path,
        "",
        timeline('at: 0s, as: alice, run: "sbatch --wrap true"'),
        checkpoint=SEES_JOBS,
        model=model,
    )
    assert said(ran) == ["['a record'] 1 COMPLETED"]
    ran = ran_with(
        tmp_path,
        "",
        timeline(
            "at: 0s, fault: {fail: bb_p_job_validate2}",
            'at: 1s, as: alice, run: "sbatch --wrap true"',
        ),
        checkpoint=SEES_JOBS,
        also='./mine.py:OfCheckpoint", "tests.staging_plugin:Staging',
        conf="BurstBufferType: burst_buffer/staging",
        model=model,
    )
    assert said(ran) == ["['a record'] 1 FAILED"]


@BOTH
def test_a_step_is_no_more_when_its_switch_hears_that_it_is_complete(
    tmp_path: Path, model: str
) -> None:
    """It is out of its job by then, and was in it when its job had already a state of its own."""
    methods = """
    def switch_p_job_step_complete(self, switch_job, nodelist):
        log.info(str(slurmctld.find_step(1, 0)))
    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        log.info(f"{slurmctld.find_job(1).job_state} {slurmctld.find_step(1, 0)}")
    """
    ran = ran_with(tmp_path, methods, STEP, model=model)
    assert said(ran) == ["RUNNING None", "None"]


# Time that passes in a call.


def test_a_call_of_no_frag_is_over_before_the_time_of_ended_jobs_is_looked_at(
    tmp_path: Path,
) -> None:
    """One that counts no more when the answer is there holds nobody."""
    methods = """
    async def switch_p_no_frag(self):
        if now() > 12:
            await sleep(40)
        return 1
    """
    ran = ran_with(
        tmp_path,
        methods,
        SLOW_EPILOG
        + timeline(
            "at: 0s, as: alice, run: \"sbatch --wrap 'sleep 10'\"",
            "at: 15s, as: alice, run: \"sbatch --wrap 'sleep 10'\"",
        ),
        conf="Epilog: /etc/epilog",
    )
    (asked,) = [each for each in ran.all("switch_p_no_frag") if 15e6 <= each.time_us < 100e6]
    started = ran.one("job_state", job=2, args_to="RUNNING")
    assert asked.time_us == started.time_us


def test_a_switch_that_minds_no_fragments_has_no_pass_made_for_them(tmp_path: Path) -> None:
    """No pass is due when the job that is ending would count no more."""
    ran = ran_with(
        tmp_path,
        "",
        SLOW_EPILOG
        + timeline(
            "at: 0s, as: alice, run: \"sbatch -N1 -w n1 --wrap 'sleep 10'\"",
            "at: 15s, as: alice, run: \"sbatch -N2 --wrap 'sleep 10'\"",
        ),
        conf="Epilog: /etc/epilog, SchedulerType: sched/builtin",
    )
    found = [each.time_us // 1_000_000 for each in ran.all("switch_p_no_frag")]
    assert found == [0, 15, 110]


def test_a_pass_that_is_held_is_over_and_another_may_be_asked_for(tmp_path: Path) -> None:
    """Who comes meanwhile has it run again; of an array nothing is split off before it goes on."""
    ran = ran_with(
        tmp_path,
        "def switch_p_no_frag(self):\n    return 1\n",
        SLOW_EPILOG
        + timeline(
            "at: 0s, as: alice, run: \"sbatch -N1 -w n1 --wrap 'sleep 10'\"",
            "at: 15s, as: alice, run: \"sbatch -N2 --wrap 'sleep 10'\"",
            "at: 25s, as: alice, run: \"sbatch -a 1-3 --bb=in=1 --wrap 'sleep 10'\"",
        ),
        conf="Epilog: /etc/epilog, BurstBufferType: burst_buffer/staging",
        also='./mine.py:OfCheckpoint", "tests.staging_plugin:Staging',
    )
    found = [each.time_us // 1_000_000 for each in ran.all("switch_p_no_frag")]
    assert found[:4] == [0, 15, 25, 42]
    assert ran.all("job_state", job=4)[0].time_us // 1_000_000 == 42


def test_a_step_ended_when_it_was_reported_however_long_its_switch_takes(tmp_path: Path) -> None:
    """Accounting has heard of it before the switch."""
    methods = """
    async def switch_p_job_step_complete(self, switch_job, nodelist):
        await sleep(7)
    """
    ran = ran_with(
        tmp_path,
        methods,
        timeline(
            "at: 0s, as: alice, run: \"sbatch --wrap 'srun sleep 10; sleep 20'\"",
            "at: 60s, as: alice, run: 'sacct -n -P -o JobID,Elapsed'",
        ),
    )
    assert "1.0|00:00:10\n" in ran.result.commands[1].stdout


def test_a_pass_for_nodes_that_are_free_early_is_called_off_by_what_is_known_after_the_next() -> (
    None
):
    """The pass that follows the last epilog has preempted another job, which is leaving nodes."""
    cluster = THREE_NODES.replace(
        "partitions:",
        'partitions:\n  - {name: low, nodes: "n[1-3]", priority_tier: 1}\n'
        '  - {name: high, nodes: "n[1-3]", priority_tier: 2}\n#',
    )
    ran = run(
        "slurm_conf: {Epilog: /etc/epilog, PreemptType: preempt/partition_prio,"
        " PreemptMode: CANCEL}\nprograms:\n  /etc/epilog: {runs: 1s}\n"
        + timeline(
            "at: 0s, as: alice, run: \"sbatch -p high -N2 -w n[1-2] --wrap 'sleep 20'\"",
            "at: 0s, as: alice, run: \"sbatch -p low -N1 --wrap 'sleep 1000'\"",
            "at: 5s, as: alice, run: \"sbatch -p high -N3 --wrap 'sleep 10'\"",
            'at: 5s, fault: {hang: "epilog node=n2", for: 3s}',
            'at: 5s, fault: {hang: "epilog node=n3", for: 100s}',
        ),
        cluster=cluster,
    )
    assert ran.job(2)[0] == "PREEMPTED"
    found = [each.time_us // 1_000_000 for each in ran.all("switch_p_no_frag")]
    assert found == [0, 5, 24, 30, 81, 90, 125]


@BOTH
def test_slurmctld_can_be_reached_until_it_has_saved_its_state(tmp_path: Path, model: str) -> None:
    """Who comes while it saves is not told that nobody is there, and waits for nothing."""
    methods = """
    async def switch_p_libstate_save(self, dir_name):
        await sleep(3)
    """
    text = timeline("at: 5s, run: scontrol shutdown", "at: 6s, as: alice, run: squeue")
    ran = ran_with(tmp_path, methods, text, model=model)
    assert "Socket timed out" in ran.stderr(1)


def test_plugins_are_loaded_and_let_go_in_the_order_of_slurm() -> None:
    """Model guide: slurmctld the checkpoint plugin first, a step daemon the switch."""
    ran = run(STEP)
    for role, node, loaded, let_go in (
        ("slurmctld", None, ["checkpoint", "switch"], ["switch", "checkpoint"]),
        ("manager", "n1", ["switch", "checkpoint"], ["checkpoint", "switch"]),
        ("manager", "n2", ["switch", "checkpoint"], ["checkpoint", "switch"]),
    ):
        for name, wanted in (("init", loaded), ("fini", let_go)):
            found = ran.all(name, kind="plugin", role=role, node=node)
            assert [str(each.plugin).partition("/")[0] for each in found] == wanted


# A launch that fails.


def test_a_credential_that_no_record_is_made_for_is_not_built() -> None:
    """What has made none ends there: slurmctld."""
    ran = run(fault("switch_p_alloc_jobinfo role=slurmctld"))
    assert ran.one("switch_p_alloc_jobinfo", role="slurmctld").rc == -1
    assert not ran.all("switch_p_build_jobinfo")


def test_a_credential_that_could_not_be_built_is_completed_on_all_its_nodes() -> None:
    """As a whole one would be."""
    ran = run(fault("switch_p_build_jobinfo"))
    over = ran.one("switch_p_job_step_complete", args_nodelist="n[1-2]")
    assert over.seq > ran.one("switch_p_build_jobinfo", rc=-1).seq


def test_what_could_not_be_unpacked_of_a_node_is_released_and_not_printed() -> None:
    """DebugFlags=Switch: of the other node it is printed, once it is read."""
    ran = run(
        "slurm_conf: {DebugFlags: Switch}\n"
        + timeline(
            "at: 0s, fault: {fail: switch_p_unpack_node_info}",
            'at: 0s, as: alice, run: "sbatch -w n1 --wrap true"',
        )
    )
    names = [each.name for each in ran.all(kind="plugin", role="slurmctld")]
    found = [name.removeprefix("switch_p_") for name in names if "node_info" in name]
    assert found[:7] == [
        *("alloc_node_info", "unpack_node_info", "free_node_info"),
        *("alloc_node_info", "unpack_node_info", "sprintf_node_info", "free_node_info"),
    ]


def test_a_node_says_that_its_prolog_failed_before_the_credential_is_released() -> None:
    """A step that waited for the prolog: the answer, the registration, then the release."""
    ran = run(
        "slurm_conf: {Prolog: /etc/bad}\nprograms:\n  /etc/bad: {runs: 3s, exit: 1}\n"
        + timeline('at: 0s, as: alice, run: "srun -N1 sleep 10"')
    )
    released = ran.one("switch_p_free_jobinfo", role="slurmd")
    answer = ran.one(
        "RESPONSE_SLURM_RC", phase="send", role="slurmd", args_answers="REQUEST_LAUNCH_TASKS"
    )
    told = ran.all("MESSAGE_NODE_REGISTRATION_STATUS", phase="send", node="n1")[-1]
    assert answer.seq < told.seq < released.seq


@BOTH
def test_srun_releases_its_credential_as_it_gives_its_job_back(model: str) -> None:
    """Before in model guide; in model modern once slurmctld has answered."""
    ran = run(STEP.replace("sleep 10", "--epilog=/bin/true sleep 10"), model=model)
    released = ran.one("switch_p_free_jobinfo", role="srun")
    given = ran.one("REQUEST_COMPLETE_JOB_ALLOCATION", phase="send")
    assert ran.last("MESSAGE_TASK_EXIT", phase="receive") < released.seq
    answered = ran.one(
        "RESPONSE_SLURM_RC",
        phase="receive",
        role="srun",
        args_answers="REQUEST_COMPLETE_JOB_ALLOCATION",
    )
    assert (released.seq < given.seq) == (model == "guide")
    assert (answered.seq < released.seq) == (model == "modern")


def test_registrations_that_cannot_be_read_are_asked_for_three_times() -> None:
    """And it is not forgotten meanwhile that the node's slurmd has started anew."""
    lines = timeline(
        "at: 0s, as: alice, run: \"sbatch -w n2 --wrap 'sleep 1000'\"",
        "at: 10s, fault: {crash: n2}",
        "at: 15s, fault: {fail: switch_p_unpack_node_info, times: 2}",
        "at: 20s, fault: {start: n2}",
    )
    ran = run(lines)
    lost = next(each for each in ran.all("job_state") if to_state(each) == "NODE_FAIL")
    assert lost.time_us // 1_000_000 == 200
    assert len(ran.all("invalid_message")) == 2
    for_ever = timeline(
        "at: 0s, as: alice, run: \"sbatch -w n1 --wrap 'sleep 3000'\"",
        "at: 10s, fault: {crash: n2}",
        "at: 15s, fault: {fail: switch_p_unpack_node_info, times: 9}",
        "at: 20s, fault: {start: n2}",
    )
    ran = run(for_ever)
    asked = ran.all("REQUEST_NODE_REGISTRATION_STATUS", phase="send", peer="slurmd@n2")
    assert [each.time_us // 1_000_000 for each in asked][:4] == [100, 200, 300, 2000]


def test_a_node_that_was_asked_to_register_does_not_try_again_by_itself() -> None:
    """Its first tries did not get through, and slurmctld was quicker than the next."""
    ran = run(
        timeline(
            "at: 0s, as: alice, run: \"sbatch -w n1 --wrap 'sleep 300'\"",
            "at: 0.1s, fault: {crash: n2}",
            "at: 0.2s, fault: {cut: [slurmctld, n2], for: 99.6s}",
            "at: 0.5s, fault: {start: n2}",
            "at: 94s, fault: {restart: slurmctld, for: 2s}",
        )
    )
    sent = ran.all("MESSAGE_NODE_REGISTRATION_STATUS", phase="send", node="n2")
    assert [each.time_us for each in sent] == [0, 500_000, 100_000_100]


@BOTH
@pytest.mark.parametrize("text", [STEP, BATCH], ids=["step", "script"])
def test_nonsense_that_is_put_into_an_environment_before_the_fork_prevents_it(
    tmp_path: Path, model: str, text: str
) -> None:
    """The environment is looked at after the call: no task begins."""
    methods = """
    def slurm_ckpt_stepd_prefork(self, slurmd_job):
        stepd.environment["X"] = 7
    """
    ran = ran_with(
        tmp_path, "", text, checkpoint=methods, model=model, conf="JobCheckpointDir: /shared/ckpt"
    )
    assert len(ran.all("plugin_error")) == len(ran.all("slurm_ckpt_stepd_prefork"))
    assert not ran.all("exec")


@BOTH
def test_an_allocation_that_is_refused_is_not_tried(model: str) -> None:
    """Its record is released, and srun says why."""
    ran = run(fault("slurm_ckpt_alloc_job"), model=model)
    assert ran.result.commands[0].exit == 1
    assert not ran.all("switch_p_alloc_jobinfo")
    answer = ran.one("RESPONSE_RESOURCE_ALLOCATION", phase="send")
    assert ran.one("slurm_ckpt_free_job").seq < answer.seq


@BOTH
def test_a_srun_that_waits_is_woken_when_a_lost_step_is_released(
    tmp_path: Path, model: str
) -> None:
    """Its switch and its checkpoint plugin are done with it by then."""
    text = (
        "files:\n  two.sh: |\n    #!/bin/sh\n"
        + "    srun -N1 -n4 --exclusive sleep 60 &\n" * 2
        + "    wait\n"
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N1 -n4 two.sh"',
            'at: 5s, fault: {fail: "switch_p_unpack_jobinfo daemon=slurmctld"}',
            "at: 10s, fault: {restart: slurmctld, for: 5s}",
        )
    )
    ran = run(text, model=model)
    freed = ran.one("slurm_ckpt_free_job", step="1.0")
    woken = ran.one("SRUN_STEP_SIGNAL", phase="send")
    assert freed.seq < woken.seq
    assert freed.time_us == woken.time_us


def test_a_script_of_roots_becomes_nobody() -> None:
    """It is root's already; and so is one that srun starts its user's."""
    ran = run(
        "slurm_conf: {Prolog: /etc/prolog}\nprograms:\n  /etc/prolog: {runs: 1s}\n"
        + timeline('at: 0s, as: alice, run: "srun -N1 --prolog=/bin/true true"')
    )
    assert len(ran.all("exec")) == 3
    assert ran.one("become_user").role == "session"


@BOTH
def test_slurmd_leaves_its_interconnect_when_what_it_had_begun_is_through(model: str) -> None:
    """It is stopped while a prolog runs: the launch that waits for it is made before node_fini."""
    ran = run(
        "slurm_conf: {Prolog: /etc/prolog}\nprograms:\n  /etc/prolog: {runs: 3s}\n"
        + timeline(
            'at: 0s, as: alice, run: "srun -N1 sleep 5"',
            'at: 1s, fault: {stop: "slurmd@n1"}',
            'at: 20s, fault: {start: "slurmd@n1"}',
        ),
        model=model,
    )
    left, answer = (
        ran.all("switch_p_node_fini", node="n1")[0],
        ran.one("RESPONSE_SLURM_RC", role="slurmd", args_answers="REQUEST_LAUNCH_TASKS"),
    )
    assert answer.seq < left.seq
    assert answer.time_us // 1_000_000 == 3


def test_whoever_asked_slurmd_for_something_hears_of_its_end_when_its_plugin_is_unloaded(
    tmp_path: Path,
) -> None:
    """A launch whose prolog does not end: slurmd waits two minutes, then runs fini, then leaves."""
    methods = """
    async def fini(self):
        if process().role == "slurmd":
            await sleep(10)
    """
    ran = ran_with(
        tmp_path,
        methods,
        "programs:\n  /etc/prolog: {runs: 1000s}\n"
        + timeline(
            'at: 0s, as: alice, run: "srun -N1 sleep 5"',
            'at: 1s, fault: {stop: "slurmd@n1"}',
            'at: 200s, fault: {start: "slurmd@n1"}',
        ),
        conf="Prolog: /etc/prolog",
    )
    assert ran.one("stops_waiting", daemon="slurmd", node="n1").time_us == 121_000_000
    over = ran.all("REQUEST_STEP_COMPLETE", phase="send")[0]
    unloaded = ran.all("fini", daemon="slurmd", node="n1")[0]
    assert ran.all("switch_p_node_fini", node="n1")[0].time_us == 121_000_000
    assert unloaded.time_us == over.time_us == 131_000_000
    assert unloaded.seq < over.seq


@BOTH
def test_srun_that_cannot_open_its_output_ends_with_1(model: str) -> None:
    """The step it has made is reported over, and so is its job."""
    ran = run(STEP.replace("sleep 10", "-o /nope/x sleep 10"), model=model)
    assert ran.result.commands[0].exit == 1
    assert ran.job()[:2] == ("FAILED", "1:0")


def test_a_plugin_without_a_function_is_not_called_for_it(tmp_path: Path) -> None:
    """task_comp may be missing: whoever reports that a task is saved hears that it is so."""
    (tmp_path / "without.py").write_text(
        "from simctl.plugin import *\n\n\nclass Without:\n"
        "    plugin_type = 'checkpoint/without'\n    plugin_name = 'has no task_comp'\n\n\n"
        "for name, stub in vars(CheckpointPlugin).items():\n"
        "    if name.startswith('slurm_ckpt_') and name != 'slurm_ckpt_task_comp':\n"
        "        setattr(Without, name, stub)\n"
    )
    methods = """
    async def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        from simctl.plugin import rpc
        await rpc.slurm_checkpoint_task_complete(1, 0, 0, 0, 0, "")
        log.info(str(rpc.slurm_get_errno()))
    """
    ran = ran_with(
        tmp_path,
        methods,
        timeline('at: 0s, as: alice, run: "srun -N1 true"'),
        also="./without.py:Without",
        conf="CheckpointType: checkpoint/without",
    )
    assert said(ran) == ["2036"]
    assert not ran.all("slurm_ckpt_task_comp")


# Reports of checkpoints.


@BOTH
def test_a_report_is_about_the_task_and_the_step_that_it_names(tmp_path: Path, model: str) -> None:
    """One that names no step is about the first."""
    methods = """
    async def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        from simctl.plugin import rpc
        if rank == 1:
            await rpc.slurm_checkpoint_complete(1, 1, 7, 5, "text")
            await rpc.slurm_checkpoint_complete(1, 4294967294, 7, 5, "of no step")
            await rpc.slurm_checkpoint_task_complete(1, 1, 1, 7, 6, "more")
    """
    ran = ran_with(
        tmp_path,
        methods,
        "files:\n  two.sh: |\n    #!/bin/sh\n    srun -n1 sleep 60 &\n    srun -n2 sleep 5\n"
        + timeline('at: 0s, as: alice, run: "sbatch -N1 -n4 two.sh"'),
        checkpoint="""
        def slurm_ckpt_task_comp(self, step_ptr, task_id, event_time, error_code, error_msg):
            return 0
        """,
        model=model,
    )
    step, first = ran.all("slurm_ckpt_comp")
    task = ran.one("slurm_ckpt_task_comp")
    assert step.args == {
        "step_ptr": "step 1.1",
        "event_time": 7,
        "error_code": 5,
        "error_msg": "text",
    }
    assert (first.step, text_of(first)) == ("1.0", "of no step")
    assert task.args == {
        "step_ptr": "step 1.1",
        "task_id": 1,
        "event_time": 7,
        "error_code": 6,
        "error_msg": "more",
    }
