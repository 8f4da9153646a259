"""Model modern does what was told of recordings of real Slurm 18.08 that lie here no more.

Nineteen recordings are known by their description alone. Each test says which of its statements
it holds; the plugins are those of tests/conformance.
"""

from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from simctl.kernel.events import Event
from simctl.wire.ids import SECOND
from tests.cluster import Ran, run
from tests.entries import states

FOLDER: Final = Path(__file__).parent / "conformance" / "s02_srun_1x1"
CLUSTER: Final = """\
nodes: [{name: "n[1-4]", cpus: 4, memory_mb: 1000}]
partitions: [{name: debug, nodes: "n[1-4]", default: true}]
users: {alice: 2001, bob: 2002}
plugins: ["../recorded_plugins.py:SwitchTrace", "../recorded_plugins.py:CheckpointTrace"]
"""
CONF: Final = """\
slurm_conf:
  SwitchType: switch/trace
  SelectType: select/cons_tres
  SelectTypeParameters: CR_CPU
  KillWait: 5
  SlurmdTimeout: 15
  ReturnToService: 1
  Epilog: /etc/epilog.sh
"""
CHECKPOINT: Final = "  CheckpointType: checkpoint/trace\n"
BUFFER: Final = """\
  BurstBufferType: burst_buffer/datawarp
  MinJobAge: 10
burst_buffer:
  pools: {pool1: {capacity: 100GiB, granularity: 1GiB}}
  functions:
    setup: [{runs: 1s}]
    data_in: [{runs: 5s}]
    pre_run: [{runs: 2s}]
    post_run: [{runs: 2s}]
    data_out: [{runs: 4s}]
    teardown: [{runs: 500ms}]
"""
PROGRAMS: Final = "programs:\n  /etc/epilog.sh: {runs: 3ms}\n"
DIRECTIVES: Final = (
    "#DW jobdw type=scratch capacity=10GiB access_mode=striped",
    "#DW stage_in type=file source=/home/a destination=$DW_JOB_STRIPED/a",
    "#DW stage_out type=file destination=/home/a source=$DW_JOB_STRIPED/b",
)
SCRIPTS: Final = {
    "two_steps": ("srun -N2 -n4 --ntasks-per-node=2 sleep 1", "srun -n1 sleep 0.5", "true"),
    "step": ("srun -N2 -n2 sleep $1",),
    "step_and_more": ("srun -N2 -n2 sleep $1", "sleep 3"),
    "apart": ("srun -N1 -n1 -r0 sleep $1 &", "srun -N1 -n1 -r1 sleep $1 &", "wait"),
    "deaf": ("trap '' TERM", "sleep 60"),
    "kills_itself": ("kill -TERM $$", "sleep 5"),
    "exits": ("exit 7",),
    "one": ("srun -n1 sleep 1",),
    "buffer": (*DIRECTIVES, "srun -n1 sleep $1"),
}


def scenario(*timeline: str, more: str = CHECKPOINT, programs: str = "") -> str:
    """Return a scenario of these entries, with the scripts that they name."""
    text = CONF + more + PROGRAMS + programs
    names = [name for name in SCRIPTS if any(f"{name}.sh" in entry for entry in timeline)]
    if names:
        text += "files:\n"
    for name in names:
        text += f"  {name}.sh: |\n    #!/bin/sh\n"
        text += "".join(f"    {line}\n" for line in SCRIPTS[name])
    return text + "timeline:\n" + "".join(f"  - {{{entry}}}\n" for entry in timeline)


@cache
def ran(text: str) -> Ran:
    """Run a scenario once under model modern."""
    one = run(text, cluster=CLUSTER, model="modern", folder=FOLDER)
    assert [check.detail for check in one.result.expectations if not check.held] == []
    assert not one.result.complaints
    return one


def outcome(one: Ran, job: int = 1) -> tuple[str, str, str]:
    """Return a job's state, reason and exit code at the end."""
    state, exit_code, reason = one.job(job)
    return state, reason, exit_code


def on_node(one: Ran, node: str, step: str) -> list[str]:
    """Return what the step daemon of a node calls, by short names."""
    calls = one.all(kind="plugin", node=node, step=step, daemon="slurmstepd")
    names = [event.name for event in calls if event.name != "init"]
    skipped = ("pack", "errno", "step_init", "attach")
    return [
        name.removeprefix("switch_p_job_").removeprefix("slurm_ckpt_stepd_")
        for name in names
        if not any(part in name for part in skipped)
    ]


def of_buffers(one: Ran, job: int = 1) -> list[str]:
    """Return what is asked of a plugin and of the appliance about a job, and its states."""
    asked = ("begin", "cancel", "start_stage_out", "set_tres_cnt", "revoke_alloc", "test_stage_out")
    found: list[str] = []
    for event in one.events:
        if event.job != job or isinstance(event.enter, int):
            continue
        name = event.name.removeprefix("bb_p_job_")
        if event.kind == "plugin" and name in asked:
            found.append(name)
        elif event.kind == "script" and event.phase == "enter" and name.startswith("dw_"):
            hurry = "--hurry" in event.args["argv"]  # type: ignore[index]
            found.append(name + (" --hurry" if hurry else ""))
        elif event.kind == "state" and event.name == "job_state":
            found.append(event.args["to"])  # type: ignore[index]
    return found


def arg(event: Event, key: str) -> Any:
    """Return an argument of an event."""
    return event.args[key]  # type: ignore[index]


GOOD: Final = ["preinit", "init", "prefork", "fini", "postfini"]


# 6: exit codes and signals


def test_a_task_that_dies_of_a_signal_changes_no_call() -> None:
    """All calls as in a good run, job_fini after the last task; FAILED JobLaunchFailure 0:11."""
    one = ran(
        scenario(
            "at: 1s, as: alice, run: srun -n2 ./app, exit: 139",
            "at: 9s, as: alice, run: sbatch kills_itself.sh",
            "at: 19s, as: alice, run: sbatch exits.sh",
            programs="  ./app: [{tasks: [1], runs: 500ms, signal: SEGV}, {runs: 2s}]\n",
        )
    )
    assert on_node(one, "n1", "1.0") == GOOD
    assert all(event.rc == 0 for event in one.all(kind="plugin", daemon="slurmstepd"))
    early, last = one.all("MESSAGE_TASK_EXIT", phase="send")
    assert (arg(early, "task_ids"), arg(early, "return_code")) == ((1,), 11)
    assert 0.59 * SECOND < early.time_us - one.all("exec", task=1)[0].time_us < 0.61 * SECOND
    assert early.seq < one.first("switch_p_job_fini") < last.seq
    assert outcome(one, 1) == ("FAILED", "JobLaunchFailure", "0:11")
    assert outcome(one, 2) == ("FAILED", "JobLaunchFailure", "0:15")
    assert outcome(one, 3) == ("FAILED", "NonZeroExitCode", "7:0")


def test_ends_of_tasks_are_told_in_the_order_of_ranks() -> None:
    """A message holds the tasks of a node with equal status as the node counts them."""
    apart = ", ".join(
        f"{{tasks: [{rank}], runs: {runs}ms, exit: 1}}" for rank, runs in ((0, 40), (1, 20), (2, 5))
    )
    one = ran(scenario("at: 1s, as: alice, run: srun -n3 ./app", programs=f"  ./app: [{apart}]\n"))
    (told,) = one.all("MESSAGE_TASK_EXIT", phase="send")
    assert arg(told, "task_ids") == (0, 1, 2)


# 7: scancel


def test_a_script_that_is_deaf_to_sigterm_is_killed_before_kill_wait_is_over() -> None:
    """SIGKILL 4.7 s after, COMPLETING until then; CANCELLED with ExitCode 0:9."""
    one = ran(
        scenario(
            "at: 1s, as: alice, run: sbatch deaf.sh",
            "at: 3.3s, as: alice, run: scancel 1",
            "at: 7.5s, run: squeue, stdout: CG",
        )
    )
    told = one.one("REQUEST_TERMINATE_JOB", phase="receive")
    over = one.one("REQUEST_COMPLETE_BATCH_SCRIPT", phase="send")
    assert arg(over, "job_rc") == 9
    assert 4.6 * SECOND < over.time_us - told.time_us < 4.8 * SECOND
    assert outcome(one) == ("CANCELLED", "None", "0:9")
    assert states(one)[2:] == ["CANCELLED|COMPLETING", "CANCELLED"]


def test_a_step_that_is_cancelled_is_killed_twice_and_never_asked_to_end() -> None:
    """REQUEST_SIGNAL_TASKS 9 for scancel and again for srun; the batch job goes on."""
    one = ran(
        scenario(
            "at: 1s, as: alice, run: sbatch -N2 -n2 step_and_more.sh 60",
            "at: 4s, as: alice, run: scancel 1.0",
        )
    )
    who = [event.daemon for event in one.all("REQUEST_CANCEL_JOB_STEP", phase="send")]
    assert who == ["scancel", "srun"]
    sent = one.all("REQUEST_SIGNAL_TASKS", phase="send", daemon="slurmctld")
    assert [arg(event, "signal") for event in sent] == [9] * 4
    for node in ("n1", "n2"):
        assert on_node(one, node, "1.0") == GOOD
        (told,) = one.all("MESSAGE_TASK_EXIT", phase="send", node=node)
        assert arg(told, "return_code") == 9
    assert outcome(one) == ("COMPLETED", "None", "0:0")


# 9: job arrays


def test_an_array_is_one_record_that_is_split_as_tasks_start() -> None:
    """One alloc_job; task 0 and 1 get ids of their own, the last keeps the array's; two copies."""
    one = ran(scenario('at: 1s, as: alice, run: "sbatch --array=0-2 one.sh"'))
    jobs = [event for event in one.all("slurm_ckpt_alloc_job") if not isinstance(event.step, str)]
    assert len(jobs) == 1
    assert len(one.all("slurm_ckpt_copy_job")) == 2
    started = [event.job for event in one.all("job_state") if arg(event, "to") == "RUNNING"]
    assert started == [2, 3, 1]
    tasks = {row.job_id: row.array_task_id for row in one.result.rows}
    assert [tasks[job] for job in (2, 3, 1)] == [0, 1, 2]


# 15: switch errors

_WAYS: Final = {
    # what fails: the calls that follow on that node; what srun sees; its exit status
    "preinit": (["preinit"], "launch failed: Error configuring interconnect", 0),
    "init": (["preinit", "init", "postfini"], "launch failed: Error configuring interconnect", 0),
    "attach": (GOOD, "Exited with exit code 1", 1),
    "fini": (GOOD, "error: switch_g_job_fini: Unspecified error", 0),
    "postfini": (GOOD, "", 0),
}


@pytest.mark.parametrize("where", ["n2", "*"])
@pytest.mark.parametrize("name", list(_WAYS))
def test_what_a_failing_switch_function_leaves_out(name: str, where: str) -> None:
    """On that node alone; the step is completed as always, and no node is drained."""
    calls, words, status = _WAYS[name]
    one = ran(
        scenario(
            f'at: 0s, fault: {{fail: "switch_p_job_{name} node={where}", times: 99}}',
            'at: 1s, as: alice, run: "srun -N2 -n4 --ntasks-per-node=2 sleep 1"',
            "at: 4s, as: alice, run: sbatch -N2 -n4 two_steps.sh",
        )
    )
    srun = one.result.commands[0]
    assert srun.exit == status
    assert (words in srun.stderr) if words else not srun.stderr
    broken = {"n2"} if where == "n2" else {"n1", "n2"}
    for node in ("n1", "n2"):
        assert on_node(one, node, "1.0") == (calls if node in broken else GOOD)
        (reply,) = one.all("RESPONSE_LAUNCH_TASKS", phase="send", node=node, step="1.0")
        refused = node in broken and name in ("preinit", "init")
        assert arg(reply, "return_code") == (2022 if refused else 0)
        assert arg(reply, "count_of_pids") == 2
        if refused:
            assert reply.seq > one.last("switch_p_job_preinit", node=node, step="1.0")
            assert not one.all("fork", node=node, role="manager", step="1.0")
    if name == "init":
        (after,) = one.all("switch_p_job_postfini", node="n2", step="1.0")
        assert arg(after, "pgid") == 0
    step = [event.name for event in one.all(kind="plugin", step="1.0", daemon="slurmctld")]
    assert step[-3:] == [
        *("switch_p_job_step_complete", "switch_p_free_jobinfo", "slurm_ckpt_free_job")
    ]
    failed = ("FAILED", "NonZeroExitCode", "1:0")
    assert outcome(one, 1) == (failed if status else ("COMPLETED", "None", "0:0"))
    assert outcome(one, 2) == ("COMPLETED", "None", "0:0")
    assert one.drained() == []


def test_a_credential_that_cannot_be_built_is_completed_and_freed_at_once() -> None:
    """step_complete, free, slurm_ckpt_free_job(NULL): the step's record was not made yet."""
    one = ran(
        scenario(
            "at: 0s, fault: {fail: switch_p_build_jobinfo}",
            'at: 1s, as: alice, run: "srun -N2 -n2 sleep 1", exit: 1',
        )
    )
    calls = [event.name for event in one.all(kind="plugin", step="1.0", daemon="slurmctld")]
    assert [name for name in calls if "errno" not in name] == [
        *("switch_p_alloc_jobinfo", "switch_p_build_jobinfo", "switch_p_job_step_complete"),
        *("switch_p_free_jobinfo", "slurm_ckpt_free_job"),
    ]
    assert one.stderr().splitlines() == [
        "srun: error: Unable to create step for job 1: Error configuring interconnect",
        "srun: Force Terminated job 1",
    ]
    assert outcome(one)[0] == "FAILED"


@pytest.mark.parametrize(
    ("name", "rc"),
    [
        ("switch_p_job_step_complete", -1),
        ("switch_p_slurmd_step_init", -1),
        ("switch_p_job_preinit", 5),
        ("switch_p_part_comp", 1),
    ],
)
def test_what_real_slurm_takes_for_success(name: str, rc: int) -> None:
    """Only results below 0 count, and of these functions no result at all."""
    one = ran(
        scenario(
            f"at: 0s, fault: {{fail: {name}, rc: {rc}, times: 99}}",
            'at: 1s, as: alice, run: "srun -N2 -n2 sleep 1", exit: 0',
        )
    )
    assert {event.rc for event in one.all(name)} == {rc}
    assert on_node(one, "n1", "1.0") == on_node(one, "n2", "1.0") == GOOD
    assert len(one.all("slurm_ckpt_free_job", step="1.0")) == 1
    assert not one.all("switch_p_job_step_part_comp")
    assert outcome(one) == ("COMPLETED", "None", "0:0")


# 16: checkpoints


def test_a_job_without_a_script_is_checkpointed_step_by_step() -> None:
    """One slurm_ckpt_op for every running step; the answer is the largest; 0 without a step."""
    one = ran(
        scenario(
            'at: 1s, as: alice, run: "salloc -N2 -n2 sleep 20"',
            "at: 2s, as: alice, run: scontrol checkpoint able 1, exit: 0",
            'at: 3s, as: alice, run: "srun --jobid=1 -N1 -n1 -r0 sleep 9"',
            'at: 4s, as: alice, run: "srun --jobid=1 -N1 -n1 -r1 sleep 9"',
            "at: 5s, as: alice, run: scontrol checkpoint disable 1.1, exit: 0",
            "at: 6s, as: alice, run: scontrol checkpoint create 1, expect: ESLURM_DISABLED",
            "at: 7s, as: alice, run: scontrol checkpoint requeue 1, exit: 1",
            "at: 8s, as: alice, run: scontrol checkpoint complete 1, exit: 0",
        )
    )
    ops = [(event.step, arg(event, "op")) for event in one.all("slurm_ckpt_op")]
    assert ops == [("1.1", 1), ("1.0", 3), ("1.1", 3), ("1.0", 7), ("1.1", 7)]
    answers = [event.errno for event in one.all("slurm_ckpt_op")]
    assert answers[2:4] == ["ESLURM_DISABLED", "ESLURM_NOT_SUPPORTED"]
    for event, (step, _) in zip(one.all("slurm_ckpt_op"), ops, strict=True):
        assert str(arg(event, "image_dir")).endswith(f"/{step}")
    assert [event.step for event in one.all("slurm_ckpt_comp")] == ["1.0"]
    assert [event.node for event in one.all("slurm_ckpt_signal_tasks")] == ["n1"]
    assert outcome(one)[0] == "COMPLETED"


_OPS: Final = ("able", "disable", "enable", "create", "vacate", "error")


def test_a_suspended_job_is_refused_before_the_plugin_is_asked() -> None:
    """2077 for the script, 2037 for a step, 2088 to restart it; complete is allowed."""
    asked = [
        (f"{op} {what}", expected)
        for op in _OPS
        for what, expected in (("1", "ESLURM_JOB_SUSPENDED"), ("1.0", "ESLURM_DISABLED"))
    ]
    asked += [("restart 1", "ESLURM_JOB_NOT_FINISHED"), ("restart 1.0", "ESLURM_NOT_SUPPORTED")]
    one = ran(
        scenario(
            "at: 1s, as: alice, run: sbatch -N2 -n2 step.sh 60",
            "at: 3s, run: scontrol suspend 1",
            *(
                f"at: {6 + at / 10}s, as: alice, run: scontrol checkpoint {words}"
                for at, (words, _) in enumerate(asked)
            ),
            "at: 9s, as: alice, run: scontrol checkpoint complete 1.0, exit: 0",
            "at: 10s, run: scontrol resume 1",
            "at: 11s, as: alice, run: scontrol checkpoint able 1, exit: 0",
            "at: 12s, as: alice, run: scancel 1",
        )
    )
    answers = [command.errno or "able says no" for command in one.result.commands[2:-4]]
    expected = [error for _, error in asked]
    # `able` prints what disables it, and that is no error of scontrol's.
    expected[1] = "able says no"
    assert answers == expected
    assert len(one.all("slurm_ckpt_op")) == 1
    assert len(one.all("slurm_ckpt_comp")) == 1


def test_tasks_of_a_step_are_restarted_in_place_of_being_executed() -> None:
    """restart_task after attach, as the user, the directory as given; ENOENT is exit code 2."""
    one = ran(
        scenario(
            'at: 1s, as: alice, run: "srun -N2 -n4 --restart-dir=/img/x sleep 9", exit: 2',
            'at: 5s, as: alice, run: "srun -n2 --restart-dir=/cluster/run/x sleep 9", exit: 0',
        )
    )
    restarts = one.all("slurm_ckpt_restart_task", job=1)
    assert sorted(arg(event, "gtid") for event in restarts) == [0, 1, 2, 3]
    for event in restarts:
        assert (event.uid, event.euid, arg(event, "image_dir")) == (2001, 2001, "/img/x")
        assert one.first("switch_p_job_attach", pid=event.pid, node=event.node) < event.seq
        assert not one.all("exec", pid=event.pid, node=event.node)
    assert "Restart task failed: No such file or directory" in one.stderr()
    assert outcome(one) == ("FAILED", "NonZeroExitCode", "2:0")
    entered = [event for event in one.events if event.name == "slurm_ckpt_restart_task"]
    # One that has become its image never comes back.
    assert [event.phase for event in entered if event.job == 2] == ["enter", "enter"]
    assert [event.rc for event in one.all("exit", step="2.0", role="task")] == [0, 0]


# 17: burst buffers

_CLAIMED: Final = ["begin", "dw_paths", "PENDING|CONFIGURING", "RUNNING", "set_tres_cnt"]
_RUN: Final = [*_CLAIMED, "RUNNING|CONFIGURING", "dw_pre_run", "RUNNING"]
_STAGED: Final = ["dw_setup", "dw_data_in", "dw_real_size"]
_OUT: Final = ["dw_post_run", "dw_data_out"]


def test_a_restart_while_data_come_in_begins_anew_a_minute_later() -> None:
    """data_in is killed, teardown --hurry at once, no cancel, no validation; then it all runs."""
    one = ran(
        scenario(
            "at: 1s, as: alice, run: sbatch buffer.sh 3",
            "at: 4.5s, fault: {restart: slurmctld, for: 3s}",
            'at: 30s, run: "squeue -o %r", stdout: BeginTime',
            more=BUFFER,
        )
    )
    found = of_buffers(one)
    at = found.index("dw_teardown --hurry")
    assert found[:at] == ["PENDING", "dw_job_process", "dw_setup", "dw_data_in"]
    assert found[at + 1 :][: len(_STAGED + _RUN)] == _STAGED + _RUN
    assert one.all("dw_data_in")[0].rc == 9
    again = one.all("dw_setup")[1].time_us - one.all("dw_teardown")[0].time_us
    assert 59 * SECOND < again < 62 * SECOND
    assert "cancel" not in found
    assert len(one.all("bb_p_job_validate")) == 1
    assert outcome(one) == ("COMPLETED", "None", "0:0")


def test_a_restart_while_data_go_out_loses_the_buffer() -> None:
    """Nothing is resumed nor counted; the first purge pass says 1, and the buffer stays."""
    one = ran(
        scenario(
            "at: 1s, as: alice, run: sbatch buffer.sh 3",
            "at: 15.5s, fault: {restart: slurmctld, for: 3s}",
            'at: 19s, run: "squeue -o %T", stdout: STAGE_OUT',
            "at: 60s, run: scontrol show burst, stdout: State=allocated",
            more=BUFFER,
        )
    )
    found = of_buffers(one)
    assert found[found.index("COMPLETED|STAGE_OUT") :] == [
        *("COMPLETED|STAGE_OUT", "dw_data_out", "test_stage_out")
    ]
    assert found.count("set_tres_cnt") == 1
    assert one.all("dw_data_out")[0].rc == 9
    assert one.one("bb_p_job_test_stage_out").rc == 1
    assert len(one.all("slurm_ckpt_free_job", job=1)) == 2


def test_a_job_that_is_over_is_counted_again_after_a_restart() -> None:
    """bb_p_job_set_tres_cnt comes before load_state(true), for one that is not staging out."""
    one = ran(
        scenario(
            "at: 1s, as: alice, run: sbatch buffer.sh 1",
            "at: 19s, fault: {restart: slurmctld, for: 1s}",
            more=BUFFER.replace("MinJobAge: 10", "MinJobAge: 300"),
        )
    )
    counted = one.all("bb_p_job_set_tres_cnt")
    assert len(counted) == 2
    assert one.all("dw_teardown")[0].time_us < 19 * SECOND
    loads = [event for event in one.all("bb_p_load_state") if arg(event, "init_config")]
    assert counted[1].seq < loads[1].seq


def test_a_requeued_job_stages_out_and_loses_the_flag_in_the_same_call() -> None:
    """REQUEUED while start_stage_out is asked; stage-out runs; staging in starts over."""
    one = ran(
        scenario(
            "at: 1s, as: alice, run: sbatch buffer.sh 100",
            "at: 12s, as: alice, run: scontrol requeue 1",
            "at: 140s, as: alice, run: scancel 1",
            more=BUFFER,
        )
    )
    found = of_buffers(one)
    at = found.index("PENDING|REQUEUE")
    assert [each for each in found[at : at + 12] if not each.startswith("dw_")][:7] == [
        *("PENDING|REQUEUE", "start_stage_out", "PENDING|REQUEUE|STAGE_OUT"),
        *("PENDING|REQUEUE|COMPLETING|STAGE_OUT", "PENDING|REQUEUE|STAGE_OUT", "PENDING"),
        "PENDING|COMPLETING",
    ]
    scripts = [each for each in found[at:] if each.startswith("dw_")]
    assert scripts[:5] == [*_OUT, "dw_teardown", "dw_setup", "dw_data_in"]
    assert one.first("bb_p_job_start_stage_out") < one.first("REQUEST_TERMINATE_JOB")
    setup = one.all("dw_setup")[1]
    assert 120 * SECOND < setup.time_us - 12 * SECOND < 123 * SECOND


def test_data_that_cannot_go_out_wait_for_a_hurried_scancel() -> None:
    """STAGE_OUT with the plugin's words; scancel alone is no call; --hurry is job_cancel."""
    failing = BUFFER.replace("{runs: 4s}", "{runs: 4s, exit: 1, output: full}")
    failing = failing.replace("MinJobAge: 10", "MinJobAge: 300")
    one = ran(
        scenario(
            "at: 1s, as: alice, run: sbatch buffer.sh 1",
            'at: 40s, run: "squeue -o %T-%r", stdout: STAGE_OUT-burst_buffer/datawarp',
            "at: 41s, as: alice, run: scancel 1, expect: ESLURM_ALREADY_DONE",
            "at: 42s, as: alice, run: scancel --hurry 1, exit: 0",
            more=failing,
        )
    )
    found = of_buffers(one)
    assert found[found.index("COMPLETED|STAGE_OUT") :] == [
        *("COMPLETED|STAGE_OUT", "dw_data_out", "cancel", "dw_teardown --hurry", "COMPLETED"),
        "test_stage_out",
    ]
    assert 42 * SECOND <= one.all("bb_p_job_cancel")[0].time_us < 43 * SECOND


def test_a_buffer_that_cannot_be_made_is_torn_down_at_once() -> None:
    """No data_in, the size is asked all the same; the job is held with the plugin's words."""
    failing = BUFFER.replace("setup: [{runs: 1s}]", "setup: [{runs: 1s, exit: 1, output: full}]")
    one = ran(
        scenario(
            "at: 1s, as: alice, run: sbatch buffer.sh 1",
            'at: 4s, run: "squeue -o %T-%r", stdout: "PENDING-burst_buffer/datawarp: setup: full"',
            "at: 20s, as: alice, run: scancel 1",
            more=failing,
        )
    )
    scripts = [each for each in of_buffers(one) if each.startswith("dw_")]
    assert scripts[:2] == ["dw_job_process", "dw_setup"]
    assert sorted(scripts[2:4]) == ["dw_real_size", "dw_teardown --hurry"]
    assert "dw_data_in" not in scripts
    assert one.all("dw_teardown")[0].time_us < 3 * SECOND
    assert outcome(one)[0] == "CANCELLED"


# 11c: a slurmd and a slurmstepd die


def test_a_step_whose_daemon_died_is_completed_with_the_last_epilog() -> None:
    """DOWN*: NODE_FAIL|COMPLETING; rank 0 waits a minute, and reports itself alone.

    part_comp is asked and the step kept; step_complete, free, ckpt_free come before NODE_FAIL.
    """
    one = ran(
        scenario(
            "at: 1s, as: alice, run: sbatch --no-requeue -N2 -n2 step.sh 200",
            "at: 3s, fault: {crash: slurmd@n2}",
            "at: 3s, fault: {crash: stepd 1.0@n2}",
        )
    )
    assert states(one)[2:] == ["NODE_FAIL|COMPLETING", "NODE_FAIL"]
    assert outcome(one) == ("NODE_FAIL", "NodeDown", "0:15")
    down = next(
        event for event in one.all("job_state") if arg(event, "to") == "NODE_FAIL|COMPLETING"
    )
    report = one.one("REQUEST_STEP_COMPLETE", phase="send", daemon="slurmstepd", node="n1")
    assert (arg(report, "range_first"), arg(report, "range_last")) == (0, 0)
    assert 58 * SECOND < report.time_us - down.time_us < 66 * SECOND
    assert on_node(one, "n1", "1.0") == GOOD
    assert on_node(one, "n2", "1.0") == ["preinit", "init", "prefork"]
    received = one.one("REQUEST_STEP_COMPLETE", phase="receive", daemon="slurmctld")
    first, *rest = one.all("switch_p_part_comp")
    epilog = one.last("MESSAGE_EPILOG_COMPLETE", phase="receive")
    complete = one.one("switch_p_job_step_complete")
    assert received.seq < first.seq < epilog < complete.seq < one.last("job_state")
    assert arg(complete, "nodelist") == "n[1-2]"
    assert len(rest) == 1
    nodes = [event for event in one.all("REQUEST_TERMINATE_JOB", phase="send") if event.seq]
    assert {event.peer for event in nodes} == {"slurmd@n1"}


# 12b: slurmctld is killed


def test_a_start_that_was_not_saved_is_made_again_and_refused() -> None:
    """Reports are kept and dropped; the second launch is refused, the job held, n1 drained.

    For that job: no step_complete, no free, no slurm_ckpt_free_job of the step at all.
    """
    one = ran(
        scenario(
            "at: 11s, as: alice, run: sbatch -N2 -n2 step.sh 6",
            "at: 13.4s, fault: {crash: slurmctld}",
            "at: 23.4s, fault: {start: slurmctld}",
            'at: 35s, run: "squeue -o %r", stdout: launch failed requeued held',
            "at: 36s, run: sinfo -R, stdout: Duplicate jobid",
            "at: 37s, run: scontrol show job 1, stdout: Priority=0",
        )
    )
    back_us = one.all("switch_p_slurmctld_init")[1].time_us
    answers = {
        arg(event, "answers"): (arg(event, "return_code"), event.time_us - back_us)
        for event in one.all("RESPONSE_SLURM_RC", phase="receive", role="manager")
        if event.time_us > back_us
    }
    assert answers["REQUEST_STEP_COMPLETE"][0] == 2024
    assert answers["REQUEST_COMPLETE_BATCH_SCRIPT"][0] == 0
    assert all(0 < late_us < 2 * SECOND for _, late_us in answers.values())
    first, second = one.all("REQUEST_BATCH_JOB_LAUNCH", phase="send")
    assert second.time_us - back_us > 4 * SECOND
    (asked,) = one.all("REQUEST_JOB_REQUEUE", phase="send", daemon="slurmd")
    assert (asked.node, first.peer) == ("n1", second.peer)
    assert second.seq < asked.seq
    assert one.drained()[-1] == "n1"
    assert len(one.all("switch_p_slurmd_step_init", node="n1")) == 2
    assert not one.all("switch_p_job_step_complete")
    assert not one.all("switch_p_free_jobinfo", daemon="slurmctld")
    assert not one.all("slurm_ckpt_free_job", step="1.0")
    assert states(one)[-1] == "PENDING"


# Variants


def test_two_steps_of_a_suspended_job_stop_one_by_one() -> None:
    """suspend_test and info_get per step, one pack per message, hooks in each step daemon."""
    one = ran(
        scenario(
            "at: 1s, as: alice, run: sbatch -N2 -n2 apart.sh 9",
            "at: 4s, run: scontrol suspend 1",
            "at: 8s, run: scontrol resume 1",
        )
    )
    for name, count in (
        *(("suspend_test", 2), ("suspend_info_get", 4), ("suspend_info_pack", 4)),
        *(("suspend", 2), ("resume", 2), ("step_pre_suspend", 2), ("step_post_suspend", 2)),
        *(("step_pre_resume", 2), ("step_post_resume", 2)),
    ):
        assert len(one.all(f"switch_p_job_{name}")) == count, name
    for node, step in (("n1", "1.0"), ("n2", "1.1")):
        before = one.first("switch_p_job_step_pre_suspend", node=node, step=step)
        assert one.first("switch_p_job_suspend", node=node) < before
        after = one.last("switch_p_job_step_post_resume", node=node, step=step)
        assert after < one.first("switch_p_job_resume", node=node)
    assert outcome(one) == ("COMPLETED", "None", "0:0")


@pytest.mark.parametrize(("slow_s", "direct"), [(2, False), (9, True)])
def test_a_report_that_comes_before_its_step_daemon_is_brought_again(
    slow_s: int, direct: bool
) -> None:
    """Five times, a second apart; then it goes straight to slurmctld, and rank 0 waits in vain."""
    one = ran(
        scenario(
            f'at: 0s, fault: {{hang: "prolog node=n1", for: {slow_s}s}}',
            'at: 1s, as: alice, run: "srun -N2 -n2 true", exit: 0',
        ).replace("  Epilog:", "  Prolog: /etc/epilog.sh\n  Epilog:")
    )
    reports = one.all("REQUEST_STEP_COMPLETE", phase="receive", daemon="slurmctld")
    ranges = [(arg(event, "range_first"), arg(event, "range_last")) for event in reports]
    assert ranges == ([(1, 1), (0, 0)] if direct else [(0, 1)])
    assert len(one.all("switch_p_job_step_complete")) == 1
    over_us = one.all("job_state")[-1].time_us - one.all("REQUEST_LAUNCH_TASKS")[0].time_us
    assert over_us > 60 * SECOND if direct else over_us < 5 * SECOND


def test_a_job_that_is_requeued_and_held_waits_to_be_released() -> None:
    """Priority 0 and its words; once released it waits for its begin time, and steps go on."""
    one = ran(
        scenario(
            "at: 1s, as: alice, run: sbatch -N2 -n2 step.sh 60",
            "at: 3s, as: alice, run: scontrol requeuehold 1",
            'at: 4s, run: "squeue -o %r", stdout: job requeued in held state',
            "at: 5s, run: scontrol release 1",
            "at: 140s, as: alice, run: scancel 1",
        )
    )
    starts = [event.time_us for event in one.all("job_state") if arg(event, "to") == "RUNNING"]
    assert len(starts) == 2
    assert starts[1] - 3 * SECOND >= 121 * SECOND
    steps = [event.step for event in one.all("switch_p_build_jobinfo")]
    assert steps == ["1.0", "1.1"]
    assert len([e for e in one.all("slurm_ckpt_alloc_job") if not isinstance(e.step, str)]) == 1


@pytest.mark.parametrize(
    ("words", "dist", "plane", "tids"),
    [
        ("-N3 -n6 --ntasks-per-node=2 -m plane=2", 4, 2, [[0, 1], [2, 3], [4, 5]]),
        ("-N3 -n6 --ntasks-per-node=2 -m plane=1", 4, 1, [[0, 3], [1, 4], [2, 5]]),
        ("-N3 -n6 --ntasks-per-node=2 -m cyclic", 1, 2, [[0, 3], [1, 4], [2, 5]]),
        ("-N3 -n6 --ntasks-per-node=2", 2, 2, [[0, 1], [2, 3], [4, 5]]),
        ("-N3 -n5", 2, 65534, [[0, 1, 2], [3], [4]]),
        ("-n1", 2, 65534, [[0]]),
    ],
)
def test_the_layout_that_build_jobinfo_gets(
    words: str, dist: int, plane: int, tids: list[list[int]]
) -> None:
    """task_dist, plane and the ranks of each node; every task attaches in its place (A4)."""
    one = ran(scenario(f'at: 1s, as: alice, run: "srun {words} sleep 1"'))
    built = one.one("switch_p_build_jobinfo")
    assert (arg(built, "task_dist"), arg(built, "plane")) == (dist, plane)
    assert arg(built, "tids") == tids
    for event in one.all("switch_p_job_attach"):
        place = arg(event, "nodeid"), arg(event, "procid")
        assert tids[place[0]][place[1]] == arg(event, "rank")
        assert (arg(event, "nnodes"), arg(event, "nprocs")) == (len(tids), sum(map(len, tids)))
        assert event.node == f"n{place[0] + 1}"
