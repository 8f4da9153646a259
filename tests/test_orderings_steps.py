"""Each rule about steps, launches, daemons and jobs is broken once a run's events are damaged."""

from functools import cache

import pytest
from msgspec import UNSET

from simctl.ctld.controller import Controller
from simctl.ctld.scheduling import schedule
from simctl.kernel.events import Event
from simctl.kernel.procs import OUT_OF_MEMORY_STATUS
from simctl.orderings.checking import declared
from simctl.testing import run_scenario
from tests.cluster import TWO_NODES, Ran, fault, run
from tests.damaged import (
    Damage,
    changed,
    copied,
    doubled,
    dropped,
    everywhere,
    moved,
    together,
    told,
    without,
)

_BUSY = """\
slurm_conf: {Prolog: /etc/p, Epilog: /etc/p, SwitchType: switch/elan, SelectType: select/linear}
files:
  job: |
    #!/bin/sh
    #SBATCH -N2
    srun -n4 sleep 10
    srun -N1 -n1 sleep 2
programs:
  /etc/p: {runs: 1s}
timeline:
  - {at: 1s, as: alice, run: sbatch job}
  - {at: 2s, as: bob, run: sbatch job}
  - {at: 30m, fault: {crash: n2}}
  - {at: 31m, fault: {start: n2, clean: true}}
"""
"""Two jobs, one after the other, of two steps; a node that starts clean; prolog and epilog."""


@cache
def busy(model: str) -> Ran:
    """Run two jobs."""
    return run(_BUSY, cluster=TWO_NODES, model=model)


_STEP0 = "step=1.0 node=n1"
_HELD = "the rule was kept"
_PART = "switch_p_job_step_part_comp"
_BUILT = "switch_p_build_jobinfo step=1.0"
_EARLY = changed("REQUEST_STEP_COMPLETE step=1.0 phase=receive role=slurmctld", args_range_first=1)
"""The report that completes a step has nothing of its first node."""

_NOT_RELEASED = together(
    dropped("switch_p_job_step_complete step=1.0"),
    dropped("switch_p_free_jobinfo step=1.0 role=slurmctld", -1),
)


def _down(node: str) -> Damage:
    """Have a node be DOWN as job 1 starts on it."""
    return copied(f"node_state args.node={node} args.to=ALLOCATED", args_to="DOWN*")


def _copies(rpc: str) -> Damage:
    """Have the network deliver a message twice."""
    return copied("job_state job=1", name="duplicate", args_rpc=rpc)


_ATTACH, _EXEC, _TASK_ENDS = (
    f"{name} {_STEP0} task=1" for name in ("switch_p_job_attach", "exec", "exit")
)
_NO_TASK = together(dropped(_ATTACH), dropped(_EXEC))
"""A task neither attaches nor executes anything."""

_TOLD, _REPLY = (
    f"{name} {_STEP0} phase=send" for name in ("MESSAGE_TASK_EXIT", "RESPONSE_LAUNCH_TASKS")
)
_KILLED = everywhere(f"exit {_STEP0} role=task", rc=9)

_N2_SILENT = dropped("MESSAGE_NODE_REGISTRATION_STATUS node=n2 phase=send", 1)
"""The slurmd of n2 that starts clean does not register."""

_NOT_GONE = dropped("MESSAGE_EPILOG_COMPLETE job=1 phase=receive")
_N1_ENDS, _N2_ENDS = (
    f'node_state args.node={each} args.from="ALLOCATED|COMPLETING"' for each in ("n1", "n2")
)
_N1_STAYS = dropped('node_state args.node=n1 args.from="IDLE|COMPLETING"', -1)
_LAUNCHED_AGAIN = together(
    doubled("REQUEST_BATCH_JOB_LAUNCH job=1 phase=send"),
    doubled("RESPONSE_SLURM_RC job=1 args.answers=REQUEST_BATCH_JOB_LAUNCH phase=send"),
)
_REFUSED = changed("RESPONSE_SUBMIT_BATCH_JOB phase=send", job=UNSET)
_UNASKED = moved(
    "switch_p_job_step_complete step=1.0",
    before="REQUEST_STEP_COMPLETE step=1.0 phase=receive node=null",
)


def _registers(node: str, nth: int) -> Damage:
    """Have a node register after another was told that job 1 is over: n1 is 0, n2 is 1."""
    return copied(
        "REQUEST_TERMINATE_JOB job=1 phase=send",
        nth,
        name="MESSAGE_NODE_REGISTRATION_STATUS",
        phase="receive",
        peer=f"slurmd@{node}",
        args_node_name=node,
    )


def _unreachable(rpc: str, to: str) -> Damage:
    """Have a message not arrive."""
    return copied("job_state job=1", name="unreachable", args_rpc=rpc, args_to=to)


_TASK_EXIT = "MESSAGE_TASK_EXIT step=1.0 node=n2 phase=send"
_UNHEARD = without(
    "RESPONSE_SLURM_RC step=1.0 node=n2 args.answers=MESSAGE_TASK_EXIT phase=receive"
)


def _started_meanwhile(ended: int) -> Damage:
    """Have job 2 start 32 s after job 1 ended, which is completing, and some microseconds less."""
    return together(
        moved("job_state job=2 args.to=RUNNING", before="job_state job=1 args.to=COMPLETED"),
        changed("job_state job=1 args.from=RUNNING", time_us=ended),
        changed("switch_p_no_frag", -1, time_us=50_000_000),
        moved("switch_p_no_frag", nth=-1, before="job_state job=2 args.to=RUNNING"),
    )


def _told_again(first_us: int) -> Damage:
    """Have srun be told twice of tasks' ends, and never acknowledge it, first at some time."""
    return together(
        _UNHEARD,
        doubled(_TASK_EXIT),
        changed(_TASK_EXIT, time_us=first_us),
        changed("REQUEST_STEP_COMPLETE step=1.0 node=n2 phase=send", time_us=20_000_000),
        changed(_TASK_EXIT, 1, time_us=20_000_000),
    )


_CASES: list[tuple[str, str, Damage, str]] = [
    # Step daemons.
    (
        "job-functions-in-order",
        "guide modern",
        moved(f"switch_p_job_init {_STEP0}", before=f"switch_p_job_preinit {_STEP0}"),
        "switch_p_job_init began before switch_p_job_preinit ended",
    ),
    (
        "job-functions-in-order",
        "guide modern",
        doubled(f"switch_p_job_fini {_STEP0}"),
        "switch_p_job_fini was called twice",
    ),
    (
        "attach-before-exec",
        "guide modern",
        dropped(f"switch_p_job_attach {_STEP0} task=1"),
        "exec without an attach",
    ),
    (
        "attach-before-exec",
        "guide modern",
        moved(f"exec {_STEP0} task=1", before=f"switch_p_job_attach {_STEP0} task=1"),
        "exec came before its attach",
    ),
    (
        "attach-before-exec",
        "guide modern",
        changed(f"switch_p_job_attach {_STEP0} task=1", rc=-1),
        "exec after a failed attach",
    ),
    (
        "attach-before-exec",
        "guide modern",
        changed(f"switch_p_job_attach {_STEP0} task=1", uid=0, euid=0),
        "it attached as 0/0, not as 1001",
    ),
    (
        "attach-count",
        "guide modern",
        dropped(f"switch_p_job_attach {_STEP0} task=1"),
        "1 attaches, 2 tasks forked",
    ),
    (
        "attach-count",
        "guide modern",
        changed(f"slurm_ckpt_stepd_prefork {_STEP0}", rc=-1),
        "slurm_ckpt_stepd_prefork failed, and tasks were forked",
    ),
    (
        "job-functions-in-their-processes",
        "guide modern",
        changed(f"switch_p_job_fini {_STEP0}", uid=7, euid=7),
        "switch_p_job_fini was called as 7/7",
    ),
    (
        "postfini-iff-preinit",
        "guide modern",
        dropped(f"switch_p_job_postfini {_STEP0}"),
        "switch_p_job_preinit succeeded, and switch_p_job_postfini was never called",
    ),
    (
        "postfini-iff-preinit",
        "guide modern",
        changed(f"switch_p_job_preinit {_STEP0}", rc=-1),
        "switch_p_job_postfini without a good switch_p_job_preinit",
    ),
    (
        "fini-iff-session-done",
        "guide",
        dropped(f"switch_p_job_fini {_STEP0}"),
        "P2 exited with 0 and never called switch_p_job_fini",
    ),
    (
        "fini-iff-session-done",
        "guide",
        changed(f"switch_p_job_fini {_STEP0}", rc=-1),
        "switch_p_job_fini returned -1 and P2 exited with 0",
    ),
    (
        "fini-iff-init",
        "modern",
        dropped(f"switch_p_job_fini {_STEP0}"),
        "switch_p_job_init succeeded, and switch_p_job_fini was never called",
    ),
    (
        "all-dead-before-postfini",
        "guide modern",
        moved(f"exit {_STEP0} task=1", after=f"switch_p_job_fini {_STEP0}"),
        "was still there when switch_p_job_fini began",
    ),
    (
        "task-exits-told-before-postfini",
        "guide",
        moved(f"MESSAGE_TASK_EXIT {_STEP0} phase=send", after=f"switch_p_job_postfini {_STEP0}"),
        "srun was told of a task after postfini",
    ),
    (
        "postfini-before-last-task-exit",
        "modern",
        moved(f"switch_p_job_postfini {_STEP0}", after=f"MESSAGE_TASK_EXIT {_STEP0} phase=send"),
        "srun was told of its last task before postfini",
    ),
    (
        "batch-knows-no-switch",
        "guide modern",
        changed(f"switch_p_job_init {_STEP0}", step="1.batch", pid=0),
        "switch_p_job_init was called",
    ),
    (
        "task-exits-told-once",
        "guide modern",
        doubled(f"MESSAGE_TASK_EXIT {_STEP0} phase=send"),
        "srun was told twice of task 0",
    ),
    (
        "task-exits-told-once",
        "guide modern",
        changed(f"MESSAGE_TASK_EXIT {_STEP0} phase=send", args_return_code=9),
        "srun was told 9 of task 0, which ended with 0",
    ),
    (
        "task-exits-told-once",
        "guide modern",
        dropped(f"MESSAGE_TASK_EXIT {_STEP0} phase=send"),
        "srun was never told of task 0",
    ),
    (
        "launch-reply",
        "guide modern",
        dropped(f"RESPONSE_LAUNCH_TASKS {_STEP0} phase=send"),
        "srun was never told how the launch went",
    ),
    (
        "launch-reply",
        "guide modern",
        doubled(f"RESPONSE_LAUNCH_TASKS {_STEP0} phase=send"),
        "srun was told twice",
    ),
    (
        "launch-reply",
        "guide modern",
        changed(f"RESPONSE_LAUNCH_TASKS {_STEP0} phase=send", args_task_ids=[0]),
        "srun was told of 1 tasks, and 2 were forked",
    ),
    (
        "end-message",
        "guide modern",
        dropped("REQUEST_STEP_COMPLETE step=1.0 node=n2 phase=send"),
        "it ended without REQUEST_STEP_COMPLETE",
    ),
    (
        "end-message",
        "guide modern",
        doubled("REQUEST_COMPLETE_BATCH_SCRIPT job=1 phase=send"),
        "its end was reported twice at once",
    ),
    (
        "step-record",
        "guide modern",
        changed(f"switch_p_job_postfini {_STEP0}", args_pgid=1),
        "switch_p_job_postfini was told pgid 1",
    ),
    (
        "step-record",
        "guide modern",
        changed(f"switch_p_job_init {_STEP0}", args_uid=0),
        "switch_p_job_init was told uid 0",
    ),
    (
        "forked-in-order",
        "guide",
        moved("fork role=session step=1.0 node=n1", after=f"switch_p_job_attach {_STEP0} task=1"),
        "tasks were not forked in the order of their ranks",
    ),
    (
        "forked-then-released",
        "modern",
        moved("become_user step=1.0 node=n1 task=0", before="fork role=manager step=1.0 node=n1"),
        "became the user before the last fork",
    ),
    # slurmctld and the credential.
    (
        "step-creation",
        "guide modern",
        dropped("switch_p_alloc_jobinfo step=1.0 role=slurmctld"),
        "its credential was built and never allocated",
    ),
    (
        "step-creation",
        "guide modern",
        moved(
            "slurm_ckpt_alloc_job step=1.0", after="RESPONSE_JOB_STEP_CREATE step=1.0 phase=send"
        ),
        "not slurm_ckpt_alloc_job",
    ),
    (
        "step-creation",
        "guide",
        changed("switch_p_pack_jobinfo step=1.0 role=slurmctld", args_switch_job="#1"),
        "switch_p_pack_jobinfo was called with #1, and the copy is #2",
    ),
    (
        "step-complete-once",
        "guide modern",
        dropped("switch_p_job_step_complete step=1.0"),
        "its credential was released, not completed",
    ),
    (
        "step-complete-once",
        "guide modern",
        doubled("switch_p_job_step_complete step=1.0"),
        "it was completed twice",
    ),
    (
        "step-complete-has-a-cause",
        "guide modern",
        moved(
            "switch_p_job_step_complete step=1.0",
            before="REQUEST_STEP_COMPLETE step=1.0 phase=receive node=null",
        ),
        "nobody had reported it, and its job was RUNNING",
    ),
    (
        "step-complete-arguments",
        "guide modern",
        changed("switch_p_job_step_complete step=1.0", args_nodelist="n1"),
        "built: ",
    ),
    (
        "step-complete-on-the-last-report",
        "guide modern",
        dropped("switch_p_job_step_complete step=1.0"),
        "its last node has reported, and that did not complete it",
    ),
    (
        "step-record-released",
        "guide modern",
        dropped("slurm_ckpt_free_job step=1.0"),
        "after switch_p_job_step_complete came",
    ),
    (
        "no-use-after-free",
        "guide modern",
        doubled("switch_p_free_jobinfo step=1.0 role=slurmctld", -1),
        "it was released twice",
    ),
    (
        "no-use-after-free",
        "guide modern",
        moved(
            "switch_p_pack_jobinfo step=1.0 role=slurmd node=n1",
            after="switch_p_free_jobinfo step=1.0 role=slurmd node=n1",
        ),
        "switch_p_pack_jobinfo was called with it after its release",
    ),
    (
        "credentials-balance",
        "guide modern",
        dropped("switch_p_free_jobinfo step=1.0 role=srun"),
        "1 credentials and 0 releases",
    ),
    (
        "credentials-balance",
        "guide modern",
        lambda events: changed("switch_p_free_jobinfo step=1.0", 1, role="manager", pid=0)(
            doubled("switch_p_free_jobinfo step=1.0")(events)
        ),
        "it released its credential",
    ),
    (
        "attach-matches-layout",
        "guide modern",
        changed(f"switch_p_job_attach {_STEP0} task=1", args_rank=0),
        "rank 0 attached in task 1",
    ),
    (
        "attach-matches-layout",
        "guide modern",
        changed(f"switch_p_job_attach {_STEP0} task=1", args_nprocs=3),
        "it was built for 2 nodes and 4 tasks",
    ),
    # Launches, and ends on nodes.
    (
        "steps-gone-before-epilog",
        "guide modern",
        moved(f"switch_p_job_postfini {_STEP0}", after="epilog job=1 node=n1"),
        "switch_p_job_postfini of step 1.0 on n1",
    ),
    (
        "prolog-before-launch",
        "guide modern",
        changed("prolog job=1 node=n1 phase=exit", rc=256),
        "it was forked though its job's prolog had not ended well",
    ),
    (
        "prolog-before-launch",
        "guide modern",
        dropped("REQUEST_LAUNCH_TASKS step=1.0 node=n2 phase=receive"),
        "nobody had asked for it",
    ),
    (
        "slurmd-launch",
        "guide modern",
        dropped("switch_p_unpack_jobinfo step=1.0 role=slurmd node=n1"),
        "it went: ",
    ),
    (
        "slurmd-launch",
        "guide modern",
        moved(
            "RESPONSE_SLURM_RC step=1.0 node=n1 role=slurmd phase=send",
            before="switch_p_unpack_jobinfo step=1.0 role=slurmd node=n1",
        ),
        "it went: ",
    ),
    (
        "silence-after-epilog",
        "guide modern",
        moved(
            f"switch_p_job_postfini {_STEP0}",
            after="MESSAGE_EPILOG_COMPLETE job=1 node=n1 phase=send",
        ),
        "switch_p_job_postfini came after its last word",
    ),
    (
        "silence-after-epilog",
        "guide modern",
        dropped("REQUEST_TERMINATE_JOB job=1 node=n2 phase=receive"),
        "nobody had asked for its end",
    ),
    (
        "node-info",
        "guide modern",
        dropped("switch_p_build_node_info node=n1"),
        "the calls were switch_p_alloc_node_info, switch_p_pack_node_info",
    ),
    (
        "node-info",
        "guide modern",
        doubled("switch_p_unpack_node_info"),
        "switch_p_unpack_node_info, switch_p_unpack_node_info",
    ),
    (
        "launch-once-a-node",
        "guide modern",
        dropped("REQUEST_LAUNCH_TASKS step=1.0 phase=send"),
        "1 of its 2 nodes were told to launch it",
    ),
    (
        "launch-once-a-node",
        "guide modern",
        moved(
            "switch_p_unpack_jobinfo step=1.0 role=srun",
            after="REQUEST_LAUNCH_TASKS step=1.0 phase=send",
        ),
        "it was launched before its credential was unpacked",
    ),
    (
        "launch-once-a-node",
        "guide modern",
        doubled("REQUEST_LAUNCH_TASKS step=1.0 phase=send"),
        "a node was told twice to launch it",
    ),
    # Daemons.
    (
        "node-start",
        "guide modern",
        moved("switch_p_node_init node=n1", after="MESSAGE_NODE_REGISTRATION_STATUS node=n1"),
        "it went ",
    ),
    (
        "node-start",
        "guide modern",
        changed("switch_p_node_init node=n1", rc=-1),
        "switch_p_node_init failed, and it went on",
    ),
    (
        "clear-node-state",
        "guide modern",
        dropped("switch_p_clear_node_state"),
        "it was started clean and not cleared",
    ),
    (
        "clear-node-state",
        "guide modern",
        moved("switch_p_clear_node_state", before="switch_p_node_init node=n2", to=1),
        "it was cleared before switch_p_node_init",
    ),
    (
        "state-save-and-restore",
        "guide modern",
        dropped("switch_p_libstate_save"),
        "it stopped without switch_p_libstate_save",
    ),
    (
        "state-save-and-restore",
        "guide modern",
        moved("switch_p_libstate_restore", after="switch_p_build_jobinfo"),
        "came before switch_p_libstate_restore",
    ),
    (
        "init-first-fini-last",
        "guide modern",
        moved("init node=n1 role=slurmd", after="switch_p_node_init node=n1"),
        "switch_p_node_init was called before its init",
    ),
    (
        "init-first-fini-last",
        "guide modern",
        dropped("fini role=slurmd node=n1"),
        "it was not unloaded",
    ),
    (
        "uid-and-place",
        "guide modern",
        changed("switch_p_build_jobinfo step=1.0", uid=0, euid=0),
        "it was called as 0/0",
    ),
    (
        "uid-and-place",
        "guide modern",
        changed("switch_p_build_jobinfo step=1.0", role="slurmd"),
        "no slurmd calls it",
    ),
    (
        "start-order",
        "guide modern",
        moved("init role=slurmctld", after="switch_p_libstate_restore"),
        "init switch came before init checkpoint",
    ),
    (
        "daemon-stop",
        "guide modern",
        dropped("switch_p_node_fini node=n1"),
        "its last calls were",
    ),
    # Jobs, nodes, messages.
    (
        "no-frag",
        "guide",
        moved("job_state job=2 args.to=RUNNING", before="job_state job=1 args.to=COMPLETED"),
        "job 2 started while job 1 was completing",
    ),
    (
        "completing-ends-with-the-last-node",
        "guide modern",
        dropped("MESSAGE_EPILOG_COMPLETE job=1 phase=receive"),
        "had reported it gone",
    ),
    (
        "job-states",
        "guide modern",
        dropped("job_state job=1 args.to=RUNNING"),
        "it was PENDING, and went from RUNNING",
    ),
    (
        "job-states",
        "guide modern",
        changed("job_state job=1 args.to=RUNNING", args_to="COMPLETED"),
        "it was COMPLETED, and went from RUNNING",
    ),
    (
        "node-completing",
        "guide modern",
        dropped("MESSAGE_EPILOG_COMPLETE job=1 phase=receive"),
        "it had reported nothing gone",
    ),
    (
        "running-for-steps",
        "guide modern",
        moved(
            "REQUEST_BATCH_JOB_LAUNCH job=1 phase=send", before="job_state job=1 args.to=RUNNING"
        ),
        "REQUEST_BATCH_JOB_LAUNCH while it was PENDING",
    ),
    (
        "no-receipt-before-its-sending",
        "guide modern",
        moved("REQUEST_TERMINATE_JOB phase=send", after="REQUEST_TERMINATE_JOB phase=receive"),
        "it was received before it was sent",
    ),
    (
        "no-receipt-before-its-sending",
        "guide modern",
        doubled("REQUEST_TERMINATE_JOB phase=receive"),
        "one sending was received twice",
    ),
    (
        "submission",
        "guide modern",
        moved("slurm_ckpt_alloc_job job=1", after="RESPONSE_SUBMIT_BATCH_JOB phase=send"),
        "0 checkpoint records were made for it",
    ),
    # What a clause finds, and what it excuses.
    (
        "task-exits-told-once",
        "guide modern",
        copied("REQUEST_COMPLETE_BATCH_SCRIPT phase=send", name="MESSAGE_TASK_EXIT"),
        "srun was told of a batch script",
    ),
    (
        "task-exits-told-once",
        "guide modern",
        moved(_TOLD, before=_TASK_ENDS),
        "srun was told of task 1, which has not ended",
    ),
    (
        "task-exits-told-once",
        "guide modern",
        changed(_TOLD, args_task_ids=(0, 1, 7)),
        "srun was told of task 7, which has not ended",
    ),
    (
        "task-exits-told-once",
        "guide modern",
        together(_KILLED, changed(_TOLD, args_return_code=9)),
        _HELD,
    ),
    (
        "task-exits-told-once",
        "guide modern",
        together(_KILLED, changed(_TOLD, args_return_code=OUT_OF_MEMORY_STATUS)),
        _HELD,
    ),
    (
        "task-exits-told-once",
        "guide modern",
        changed(_TOLD, args_return_code=OUT_OF_MEMORY_STATUS),
        " of task 0, which ended with 0",
    ),
    (
        "task-exits-told-once",
        "guide modern",
        together(dropped(_TOLD), dropped(f"exit {_STEP0} role=manager")),
        _HELD,
    ),
    (
        "launch-reply",
        "guide modern",
        copied("REQUEST_COMPLETE_BATCH_SCRIPT phase=send", name="RESPONSE_LAUNCH_TASKS"),
        "srun was told of a batch script",
    ),
    (
        "launch-reply",
        "guide modern",
        copied(_REPLY, args_return_code=5),
        "srun was told both that it went well and that it failed",
    ),
    (
        "launch-reply",
        "guide",
        together(
            copied(_REPLY, args_return_code=5),
            moved(_REPLY, nth=1, after=f"switch_p_job_postfini {_STEP0}"),
            changed(f"switch_p_job_fini {_STEP0}", rc=-1),
        ),
        _HELD,
    ),
    (
        "launch-reply",
        "guide modern",
        changed(_REPLY, args_return_code=5),
        "an error was told before postfini",
    ),
    (
        "launch-reply",
        "guide",
        moved(_REPLY, before=f"exec {_STEP0} task=0"),
        "a task was forked after the reply",
    ),
    (
        "launch-reply",
        "guide modern",
        together(dropped(_REPLY), dropped(f"exit {_STEP0} role=manager")),
        _HELD,
    ),
    (
        "end-message",
        "guide modern",
        changed(
            "REQUEST_STEP_COMPLETE step=1.0 node=n2 role=manager phase=send",
            name="REQUEST_COMPLETE_BATCH_SCRIPT",
        ),
        "it sent REQUEST_COMPLETE_BATCH_SCRIPT",
    ),
    (
        "end-message",
        "guide modern",
        changed("REQUEST_COMPLETE_BATCH_SCRIPT phase=send", name="REQUEST_STEP_COMPLETE"),
        "it sent REQUEST_STEP_COMPLETE",
    ),
    (
        "end-message",
        "guide modern",
        moved(
            "switch_p_job_postfini step=1.0 node=n2",
            after="REQUEST_STEP_COMPLETE step=1.0 node=n2 role=manager phase=send",
        ),
        "switch_p_job_postfini came after REQUEST_STEP_COMPLETE",
    ),
    (
        "end-message",
        "guide modern",
        moved(
            "MESSAGE_TASK_EXIT step=1.0 node=n2 phase=send",
            after="REQUEST_STEP_COMPLETE step=1.0 node=n2 role=manager phase=send",
        ),
        "MESSAGE_TASK_EXIT came after REQUEST_STEP_COMPLETE",
    ),
    (
        "end-message",
        "guide modern",
        moved("exit step=1.batch role=task", after="REQUEST_COMPLETE_BATCH_SCRIPT phase=send"),
        "its script had not ended",
    ),
    (
        "end-message",
        "guide modern",
        dropped("exit step=1.batch role=task"),
        "its script had not ended",
    ),
    (
        "end-message",
        "guide modern",
        together(
            dropped("REQUEST_STEP_COMPLETE step=1.0 node=n2 role=manager phase=send"),
            dropped("exit step=1.0 node=n2 role=manager"),
        ),
        _HELD,
    ),
    (
        "step-record",
        "guide modern",
        changed(f"switch_p_job_postfini {_STEP0}", args_job_id=7),
        "switch_p_job_postfini was told another step",
    ),
    (
        "step-record",
        "guide modern",
        changed(f"switch_p_job_postfini {_STEP0}", args_step_id=7),
        "switch_p_job_postfini was told another step",
    ),
    (
        "step-record",
        "modern",
        changed(f"switch_p_job_postfini {_STEP0}", args_jmgr_pid=3),
        "jmgr_pid is 3, and the daemon is ",
    ),
    (
        "forked-in-order",
        "guide",
        changed(f"fork {_STEP0} role=session", role="manager"),
        "a task was forked by manager, not P2",
    ),
    (
        "forked-then-released",
        "modern",
        changed(f"fork {_STEP0}", uid=0, euid=0),
        "a task was forked as 0/0",
    ),
    (
        "forked-then-released",
        "modern",
        everywhere(f"* {_STEP0} task=0", task=5),
        "tasks were not forked in the order of their ranks",
    ),
    (
        "forked-then-released",
        "modern",
        moved(f"become_user {_STEP0}", after=f"switch_p_job_attach {_STEP0} task=0"),
        " attached before it was the user",
    ),
    (
        "forked-then-released",
        "modern",
        dropped(f"become_user {_STEP0}"),
        " attached before it was the user",
    ),
    (
        "job-functions-in-order",
        "guide modern",
        doubled(f"switch_p_job_preinit {_STEP0}"),
        "switch_p_job_preinit was called twice",
    ),
    (
        "job-functions-in-order",
        "guide modern",
        doubled(f"switch_p_job_init {_STEP0}"),
        "switch_p_job_init was called twice",
    ),
    (
        "job-functions-in-order",
        "guide modern",
        doubled(f"switch_p_job_postfini {_STEP0}"),
        "switch_p_job_postfini was called twice",
    ),
    (
        "job-functions-in-order",
        "guide modern",
        moved(f"switch_p_job_attach {_STEP0}", before=f"switch_p_job_init {_STEP0}"),
        "switch_p_job_attach began before switch_p_job_init ended",
    ),
    (
        "job-functions-in-order",
        "guide modern",
        moved(f"switch_p_job_postfini {_STEP0}", before=f"switch_p_job_fini {_STEP0}"),
        "switch_p_job_postfini began before switch_p_job_fini ended",
    ),
    (
        "job-functions-in-order",
        "guide modern",
        moved(f"switch_p_job_fini {_STEP0}", before=f"switch_p_job_attach {_STEP0}"),
        "switch_p_job_fini began before switch_p_job_attach ended",
    ),
    ("attach-before-exec", "guide modern", doubled(_ATTACH), "it attached twice"),
    (
        "attach-before-exec",
        "guide modern",
        together(dropped(_ATTACH), changed(_EXEC, name="slurm_ckpt_restart_task")),
        "slurm_ckpt_restart_task without an attach",
    ),
    ("attach-before-exec", "guide modern", _NO_TASK, "it never attached"),
    ("attach-before-exec", "guide modern", together(_NO_TASK, changed(_TASK_ENDS, rc=9)), _HELD),
    (
        "attach-before-exec",
        "guide modern",
        together(_NO_TASK, changed(f"exit {_STEP0} role=manager", rc=9)),
        _HELD,
    ),
    ("attach-before-exec", "guide modern", together(_NO_TASK, dropped(_TASK_ENDS)), _HELD),
    (
        "attach-before-exec",
        "guide modern",
        together(changed(_ATTACH, rc=-1), dropped(_EXEC)),
        "its attach failed and it did not exit with 1",
    ),
    (
        "attach-before-exec",
        "guide modern",
        together(changed(_ATTACH, rc=-1), dropped(_EXEC), changed(_TASK_ENDS, rc=256)),
        _HELD,
    ),
    (
        "attach-before-exec",
        "guide modern",
        together(changed(_ATTACH, rc=-1), dropped(_EXEC), changed(_TASK_ENDS, rc=9)),
        _HELD,
    ),
    (
        "attach-before-exec",
        "guide modern",
        together(changed(_ATTACH, rc=-1), dropped(_EXEC), dropped(_TASK_ENDS)),
        _HELD,
    ),
    (
        "attach-count",
        "guide modern",
        changed(f"switch_p_job_preinit {_STEP0}", rc=-1),
        "switch_p_job_preinit failed, and tasks were forked all the same",
    ),
    (
        "attach-count",
        "guide modern",
        changed(f"switch_p_job_init {_STEP0}", rc=-1),
        "switch_p_job_init failed, and tasks were forked all the same",
    ),
    ("attach-count", "guide modern", together(dropped(_ATTACH), changed(_TASK_ENDS, rc=9)), _HELD),
    ("attach-count", "guide modern", changed(_TASK_ENDS, rc=9), _HELD),
    (
        "attach-count",
        "guide modern",
        together(dropped(_ATTACH), dropped(f"exit {_STEP0} role=manager")),
        _HELD,
    ),
    (
        "job-functions-in-their-processes",
        "guide",
        changed(f"switch_p_job_init {_STEP0}", pid=11),
        "switch_p_job_init was called in P1",
    ),
    (
        "job-functions-in-their-processes",
        "guide",
        changed(f"switch_p_job_postfini {_STEP0}", pid=12),
        "switch_p_job_postfini was called in process 12, not 11",
    ),
    (
        "job-functions-in-their-processes",
        "guide",
        changed(_ATTACH, pid=12),
        "switch_p_job_attach in process 12 as 1001",
    ),
    (
        "postfini-iff-preinit",
        "guide modern",
        changed(f"switch_p_job_preinit {_STEP0}", rc=-1),
        "switch_p_job_postfini without a good switch_p_job_preinit",
    ),
    (
        "postfini-iff-preinit",
        "guide modern",
        together(
            changed(f"switch_p_job_preinit {_STEP0}", rc=-1),
            dropped(f"switch_p_job_postfini {_STEP0}"),
        ),
        _HELD,
    ),
    (
        "postfini-iff-preinit",
        "guide modern",
        together(
            dropped(f"switch_p_job_postfini {_STEP0}"), changed(f"exit {_STEP0} role=manager", rc=9)
        ),
        _HELD,
    ),
    (
        "postfini-iff-preinit",
        "modern",
        together(
            dropped(f"switch_p_job_postfini {_STEP0}"), dropped(f"switch_p_job_init {_STEP0}")
        ),
        _HELD,
    ),
    (
        "postfini-iff-preinit",
        "guide",
        together(
            dropped(f"switch_p_job_postfini {_STEP0}"), dropped(f"switch_p_job_init {_STEP0}")
        ),
        "switch_p_job_preinit succeeded, and switch_p_job_postfini was never called",
    ),
    (
        "fini-iff-session-done",
        "guide",
        dropped(f"switch_p_job_init {_STEP0}"),
        "switch_p_job_fini without a good switch_p_job_init",
    ),
    (
        "fini-iff-session-done",
        "guide",
        changed(f"exit {_STEP0} role=session", rc=256),
        "switch_p_job_fini returned 0 and P2 exited with 1",
    ),
    (
        "fini-iff-session-done",
        "guide",
        changed(f"switch_p_job_fini {_STEP0}", rc=-1),
        "switch_p_job_fini returned -1 and P2 exited with 0",
    ),
    (
        "fini-iff-session-done",
        "guide",
        together(
            changed(f"switch_p_job_fini {_STEP0}", rc=-1),
            changed(f"exit {_STEP0} role=session", rc=256),
        ),
        _HELD,
    ),
    (
        "fini-iff-session-done",
        "guide",
        dropped(f"switch_p_job_fini {_STEP0}"),
        "P2 exited with 0 and never called switch_p_job_fini",
    ),
    (
        "fini-iff-session-done",
        "guide",
        together(
            dropped(f"switch_p_job_fini {_STEP0}"), changed(f"exit {_STEP0} role=session", rc=256)
        ),
        _HELD,
    ),
    (
        "fini-iff-session-done",
        "guide",
        together(
            dropped(f"switch_p_job_fini {_STEP0}"), changed(f"exit {_STEP0} role=session", rc=9)
        ),
        _HELD,
    ),
    (
        "fini-iff-init",
        "modern",
        dropped(f"switch_p_job_init {_STEP0}"),
        "switch_p_job_fini without a good switch_p_job_init",
    ),
    (
        "fini-iff-init",
        "modern",
        dropped(f"switch_p_job_fini {_STEP0}"),
        "switch_p_job_init succeeded, and switch_p_job_fini was never called",
    ),
    (
        "fini-iff-init",
        "modern",
        together(
            dropped(f"switch_p_job_fini {_STEP0}"), changed(f"exit {_STEP0} role=manager", rc=9)
        ),
        _HELD,
    ),
    (
        "fini-iff-init",
        "modern",
        together(
            dropped(f"switch_p_job_fini {_STEP0}"), changed(f"switch_p_job_init {_STEP0}", rc=-1)
        ),
        _HELD,
    ),
    (
        "all-dead-before-postfini",
        "guide modern",
        moved(_TASK_ENDS, after=f"switch_p_job_fini {_STEP0}"),
        " was still there when switch_p_job_fini began",
    ),
    (
        "all-dead-before-postfini",
        "guide modern",
        dropped(_TASK_ENDS),
        " was still there when switch_p_job_fini began",
    ),
    (
        "all-dead-before-postfini",
        "guide",
        moved(f"exit {_STEP0} role=session", after=f"switch_p_job_postfini {_STEP0}"),
        " was still there when switch_p_job_postfini began",
    ),
    (
        "task-exits-told-before-postfini",
        "guide",
        moved(
            "MESSAGE_TASK_EXIT step=1.0 node=n1 phase=send", after=f"switch_p_job_postfini {_STEP0}"
        ),
        "srun was told of a task after postfini",
    ),
    (
        "postfini-before-last-task-exit",
        "modern",
        moved(
            "MESSAGE_TASK_EXIT step=1.0 node=n1 phase=send",
            before=f"switch_p_job_postfini {_STEP0}",
        ),
        "srun was told of its last task before postfini",
    ),
    (
        "task-exits-told-before-postfini",
        "guide",
        moved(
            "REQUEST_STEP_COMPLETE step=1.0 node=n1 role=manager phase=send",
            before=f"switch_p_job_postfini {_STEP0}",
        ),
        "the step's end was reported before postfini",
    ),
    (
        "postfini-before-last-task-exit",
        "modern",
        moved(
            "REQUEST_STEP_COMPLETE step=1.0 node=n1 role=manager phase=send",
            before=f"switch_p_job_postfini {_STEP0}",
        ),
        "the step's end was reported before postfini",
    ),
    *(
        (
            "batch-knows-no-switch",
            "guide modern",
            copied("slurm_ckpt_stepd_prefork step=1.batch", name=f"switch_p_{name}"),
            f"switch_p_{name} was called",
        )
        for name in (
            *("job_preinit", "job_init", "job_attach", "job_fini", "job_postfini"),
            *(f"{verb}_jobinfo" for verb in ("alloc", "unpack", "pack", "free", "build", "copy")),
        )
    ),
    (
        "steps-gone-before-epilog",
        "guide modern",
        moved("exit role=manager step=1.0 node=n1", after="epilog job=1 node=n1"),
        " was still there at its epilog",
    ),
    (
        "steps-gone-before-epilog",
        "guide modern",
        dropped("exit role=manager step=1.0 node=n1"),
        " was still there at its epilog",
    ),
    (
        "steps-gone-before-epilog",
        "guide modern",
        moved(
            "MESSAGE_EPILOG_COMPLETE job=1 node=n1 phase=send",
            before="exit role=script job=1 node=n1",
            to=1,
        ),
        "it was reported gone during its epilog",
    ),
    (
        "prolog-before-launch",
        "guide modern",
        dropped("prolog job=1 node=n1"),
        "it was forked without a prolog of its job",
    ),
    (
        "prolog-before-launch",
        "guide modern",
        moved("fork node=n1 role=slurmd", nth=1, before="exit role=script job=1 node=n1"),
        "it was forked though its job's prolog had not ended well",
    ),
    (
        "prolog-before-launch",
        "guide modern",
        doubled("prolog job=1 node=n1"),
        "its prolog ran again before it had ended",
    ),
    (
        "prolog-before-launch",
        "guide modern",
        together(doubled("prolog job=1 node=n1"), _down("n1")),
        _HELD,
    ),
    (
        "prolog-before-launch",
        "guide modern",
        together(doubled("prolog job=1 node=n1"), _down("n2")),
        "its prolog ran again before it had ended",
    ),
    (
        "slurmd-launch",
        "guide modern",
        moved(
            "switch_p_unpack_jobinfo step=1.0 role=slurmd node=n1",
            before="REQUEST_LAUNCH_TASKS step=1.0 phase=receive node=n1",
        ),
        "switch_p_unpack_jobinfo came before it was asked for",
    ),
    (
        "slurmd-launch",
        "guide modern",
        dropped("RESPONSE_SLURM_RC job=1 node=n1 role=slurmd phase=send"),
        "it went: fork",
    ),
    ("slurmd-launch", "guide modern", dropped("fork node=n1 role=slurmd", 1), _HELD),
    (
        "slurmd-launch",
        "guide modern",
        doubled("REQUEST_BATCH_JOB_LAUNCH job=1 phase=receive"),
        "it went: nothing",
    ),
    (
        "slurmd-launch",
        "guide modern",
        together(
            doubled("REQUEST_BATCH_JOB_LAUNCH job=1 phase=receive"),
            _copies("REQUEST_BATCH_JOB_LAUNCH"),
        ),
        _HELD,
    ),
    (
        "slurmd-launch",
        "guide modern",
        together(doubled("REQUEST_BATCH_JOB_LAUNCH job=1 phase=receive"), _copies("REQUEST_PING")),
        "it went: nothing",
    ),
    (
        "silence-after-epilog",
        "guide modern",
        moved(
            "exit role=manager step=1.0 node=n1",
            after="MESSAGE_EPILOG_COMPLETE job=1 node=n1 phase=send",
        ),
        _HELD,
    ),
    (
        "node-info",
        "guide modern",
        changed("MESSAGE_NODE_REGISTRATION_STATUS node=n1 phase=send", args_status=5),
        "switch_p_build_node_info, switch_p_pack_node_info, not none",
    ),
    (
        "node-info",
        "guide modern",
        changed("MESSAGE_NODE_REGISTRATION_STATUS phase=receive", args_status=5),
        "switch_p_unpack_node_info, switch_p_free_node_info, not none",
    ),
    ("node-info", "guide modern", changed("switch_p_alloc_node_info node=n1", rc=-1), _HELD),
    (
        "node-info",
        "guide modern",
        together(
            dropped("switch_p_build_node_info node=n1"),
            dropped("switch_p_pack_node_info node=n1"),
            changed("switch_p_alloc_node_info node=n1", rc=-1),
        ),
        _HELD,
    ),
    (
        "node-info",
        "guide modern",
        dropped("switch_p_free_node_info node=n1"),
        "switch_p_pack_node_info, not switch_p_alloc_node_info, switch_p_build",
    ),
    (
        "node-info",
        "guide modern",
        dropped("switch_p_free_node_info role=slurmctld"),
        "switch_p_unpack_node_info, not ",
    ),
    (
        "node-info",
        "guide",
        together(
            changed("switch_p_alloc_node_info role=slurmctld", rc=-1),
            dropped("switch_p_unpack_node_info"),
            dropped("switch_p_free_node_info role=slurmctld"),
        ),
        _HELD,
    ),
    (
        "node-info",
        "guide",
        together(
            dropped("switch_p_unpack_node_info"), dropped("switch_p_free_node_info role=slurmctld")
        ),
        "the calls were switch_p_alloc_node_info, not",
    ),
    (
        "launch-once-a-node",
        "guide modern",
        doubled("REQUEST_LAUNCH_TASKS step=1.0 phase=send"),
        "a node was told twice to launch it",
    ),
    (
        "launch-once-a-node",
        "guide modern",
        dropped("switch_p_pack_jobinfo step=1.0 role=srun"),
        "2 nodes were told, with 1 packed credentials",
    ),
    (
        "launch-once-a-node",
        "guide modern",
        moved(
            "switch_p_pack_jobinfo step=1.0 role=srun",
            after="REQUEST_LAUNCH_TASKS step=1.0 phase=send",
        ),
        "a launch went out before its credential",
    ),
    (
        "node-start",
        "guide modern",
        dropped("switch_p_node_init node=n1"),
        "it registered without switch_p_node_init",
    ),
    (
        "node-start",
        "guide modern",
        dropped("MESSAGE_NODE_REGISTRATION_STATUS node=n1 phase=send"),
        "a step ran on it before it registered",
    ),
    (
        "node-start",
        "guide modern",
        changed("init node=n1 role=slurmd", rc=-1),
        "init failed, and it went on",
    ),
    (
        "node-start",
        "guide modern",
        together(_N2_SILENT, changed("switch_p_node_init node=n2", 1, rc=-1)),
        _HELD,
    ),
    (
        "node-start",
        "guide modern",
        changed("switch_p_node_init node=n2", 1, rc=-1),
        "switch_p_node_init failed, and it went on",
    ),
    (
        "clear-node-state",
        "guide modern",
        changed('fault args.fault="start n2 clean"', args_fault="start n2"),
        "it was not started clean",
    ),
    (
        "clear-node-state",
        "guide modern",
        changed('fault args.fault="start n2 clean"', args_fault="start n1 clean"),
        "it was not started clean",
    ),
    (
        "clear-node-state",
        "guide modern",
        moved('fault args.fault="start n2 clean"', before="init node=n2 role=slurmd"),
        "it was started clean and not cleared",
    ),
    (
        "clear-node-state",
        "guide modern",
        together(
            changed('fault args.fault="start n2 clean"', args_fault="start slurmd@n2 clean"),
            dropped("switch_p_clear_node_state"),
        ),
        "it was started clean and not cleared",
    ),
    (
        "clear-node-state",
        "guide modern",
        doubled("switch_p_clear_node_state"),
        "it was cleared twice",
    ),
    (
        "clear-node-state",
        "guide modern",
        moved(
            "switch_p_clear_node_state",
            after="MESSAGE_NODE_REGISTRATION_STATUS node=n2 phase=send",
            to=1,
        ),
        "it was cleared after it registered",
    ),
    (
        "clear-node-state",
        "guide modern",
        dropped("switch_p_node_init node=n2", 1),
        "it was cleared before switch_p_node_init",
    ),
    (
        "clear-node-state",
        "guide modern",
        together(_N2_SILENT, dropped("switch_p_clear_node_state")),
        _HELD,
    ),
    (
        "state-save-and-restore",
        "guide modern",
        doubled("switch_p_libstate_save"),
        "its state was restored or saved twice",
    ),
    (
        "state-save-and-restore",
        "guide modern",
        doubled("switch_p_libstate_restore"),
        "its state was restored or saved twice",
    ),
    (
        "state-save-and-restore",
        "guide modern",
        changed("switch_p_libstate_restore", rc=-1),
        "its state could not be restored, and it went on",
    ),
    (
        "state-save-and-restore",
        "guide modern",
        moved("slurm_ckpt_free_job", nth=-1, after="switch_p_libstate_save"),
        "slurm_ckpt_free_job came after switch_p_libstate_save",
    ),
    (
        "state-save-and-restore",
        "guide modern",
        copied("switch_p_libstate_save", name="switch_p_pack_jobinfo"),
        _HELD,
    ),
    (
        "state-save-and-restore",
        "guide modern",
        copied("switch_p_libstate_save", name="slurm_ckpt_pack_job"),
        _HELD,
    ),
    (
        "init-first-fini-last",
        "guide modern",
        copied("init node=n1 role=manager", role="session", pid=99),
        "init was called in a fork",
    ),
    (
        "init-first-fini-last",
        "guide modern",
        doubled("init role=slurmctld"),
        "it was set up or unloaded twice",
    ),
    (
        "init-first-fini-last",
        "guide modern",
        doubled("fini role=slurmd node=n1"),
        "it was set up or unloaded twice",
    ),
    (
        "init-first-fini-last",
        "guide modern",
        changed("init role=slurmctld plugin=switch/elan", rc=-1),
        "its init failed, and it was called",
    ),
    (
        "init-first-fini-last",
        "guide modern",
        moved("switch_p_node_fini node=n1", after="fini node=n1 role=slurmd"),
        "switch_p_node_fini was called after its fini",
    ),
    (
        "init-first-fini-last",
        "guide modern",
        dropped("init role=slurmctld plugin=switch/elan"),
        "switch_p_libstate_restore",
    ),
    (
        "init-first-fini-last",
        "guide modern",
        dropped("init role=manager step=1.0 plugin=switch/elan"),
        " was called before its init",
    ),
    (
        "init-first-fini-last",
        "guide modern",
        dropped("init role=srun plugin=switch/elan"),
        " was called before its init",
    ),
    ("init-first-fini-last", "guide", dropped("fini role=manager"), "it was not unloaded"),
    ("init-first-fini-last", "modern", copied("init role=manager", name="fini"), "it was unloaded"),
    (
        "uid-and-place",
        "guide modern",
        changed("switch_p_build_jobinfo step=1.0", euid=5),
        "it was called as 64030/5",
    ),
    (
        "uid-and-place",
        "guide modern",
        changed("switch_p_job_init step=1.0", uid=1001, euid=1001),
        "it was called as 1001/1001",
    ),
    (
        "start-order",
        "guide modern",
        moved("switch_p_alloc_node_info node=n1", before="switch_p_node_init node=n1"),
        "switch_p_alloc_node_info came before switch_p_node_init",
    ),
    (
        "start-order",
        "guide modern",
        moved("init role=srun", after="REQUEST_JOB_STEP_CREATE phase=send"),
        "it sent before its init",
    ),
    (
        "start-order",
        "guide",
        moved(
            "init role=manager step=1.0 node=n1 plugin=checkpoint/none",
            before="init role=manager step=1.0 node=n1",
        ),
        "init checkpoint came before init switch",
    ),
    (
        "start-order",
        "guide",
        moved(
            "switch_p_alloc_jobinfo role=manager step=1.0 node=n1",
            before="init role=manager step=1.0 node=n1",
        ),
        "switch_p_alloc_jobinfo came before init checkpoint",
    ),
    (
        "start-order",
        "modern",
        moved(
            "switch_p_unpack_jobinfo role=manager step=1.0 node=n1",
            before="init role=manager step=1.0 node=n1",
        ),
        "switch_p_unpack_jobinfo came before init switch",
    ),
    (
        "start-order",
        "modern",
        moved(
            "init role=manager step=1.0 node=n1 plugin=checkpoint/none",
            before="switch_p_unpack_jobinfo role=manager step=1.0 node=n1",
        ),
        "init checkpoint came before switch_p_unpack_jobinfo",
    ),
    (
        "start-order",
        "guide modern",
        moved(
            "switch_p_job_preinit role=manager step=1.0 node=n1",
            before="switch_p_unpack_jobinfo role=manager step=1.0 node=n1",
        ),
        "switch_p_job_preinit came before ",
    ),
    (
        "start-order",
        "guide modern",
        dropped("init role=manager step=1.0 node=n1 plugin=checkpoint/none"),
        "it never set its checkpoint plugin up",
    ),
    (
        "start-order",
        "guide modern",
        dropped("init role=manager step=1.0 node=n1 plugin=switch/elan"),
        "it never set its switch plugin up",
    ),
    (
        "daemon-stop",
        "guide",
        moved("fini role=slurmctld plugin=checkpoint/none", before="fini role=slurmctld"),
        "it unloaded checkpoint, switch",
    ),
    (
        "daemon-stop",
        "guide",
        moved("fini role=slurmctld", before="switch_p_libstate_save"),
        "it unloaded a plugin before it saved",
    ),
    (
        "daemon-stop",
        "guide",
        moved("slurm_ckpt_free_job", nth=-1, after="fini role=slurmctld"),
        "slurm_ckpt_free_job came after a fini",
    ),
    ("daemon-stop", "guide modern", dropped("fini role=slurmd node=n1"), ", switch_p_node_fini"),
    (
        "no-frag",
        "guide",
        together(
            moved("job_state job=2 args.to=RUNNING", before="job_state job=1 args.to=COMPLETED"),
            everywhere("switch_p_no_frag", rc=False),
        ),
        _HELD,
    ),
    (
        "no-frag",
        "guide",
        together(
            moved("job_state job=2 args.to=RUNNING", before="job_state job=1 args.to=COMPLETED"),
            everywhere("switch_p_no_frag", rc=-1),
        ),
        "job 2 started while job 1 was completing",
    ),
    (
        "completing-ends-with-the-last-node",
        "guide modern",
        _NOT_GONE,
        "it was over before n2 had reported it gone",
    ),
    (
        "completing-ends-with-the-last-node",
        "guide modern",
        together(_NOT_GONE, copied(_N2_ENDS, args_to="DOWN|COMPLETING")),
        _HELD,
    ),
    (
        "completing-ends-with-the-last-node",
        "guide modern",
        together(_NOT_GONE, copied(_N1_ENDS, args_to="DOWN|COMPLETING")),
        "it was over before n2 had reported it gone",
    ),
    (
        "completing-ends-with-the-last-node",
        "guide modern",
        together(_NOT_GONE, _registers("n2", 1)),
        _HELD,
    ),
    (
        "completing-ends-with-the-last-node",
        "guide modern",
        together(_NOT_GONE, _registers("n1", 1)),
        "it was over before n2 had reported it gone",
    ),
    (
        "completing-ends-with-the-last-node",
        "guide modern",
        together(_NOT_GONE, _registers("n2", 0)),
        "it was over before n2 had reported it gone",
    ),
    (
        "completing-ends-with-the-last-node",
        "guide modern",
        together(
            _NOT_GONE, changed("node_state args.node=n2 args.to=IDLE", args_to="IDLE|COMPLETING")
        ),
        _HELD,
    ),
    (
        "job-states",
        "guide modern",
        together(
            dropped('job_state job=1 args.from="COMPLETED|COMPLETING"'),
            changed("job_state job=1 args.from=RUNNING", args_to="COMPLETED"),
        ),
        "no job goes from RUNNING to COMPLETED",
    ),
    (
        "job-states",
        "guide modern",
        together(
            dropped("job_state job=1 state=PENDING"),
            changed("job_state job=1 args.to=RUNNING", args_from=None),
        ),
        "it began as RUNNING",
    ),
    (
        "node-completing",
        "guide modern",
        without("REQUEST_TERMINATE_JOB job=1 phase=send"),
        "it was told to end no job",
    ),
    (
        "node-completing",
        "guide modern",
        together(without("REQUEST_TERMINATE_JOB job=2 phase=send"), _N1_STAYS),
        "it was told to end no job",
    ),
    (
        "node-completing",
        "guide modern",
        _N1_STAYS,
        _HELD,
    ),
    (
        "node-completing",
        "guide modern",
        together(_NOT_GONE, copied(_N2_ENDS, args_to="DOWN|COMPLETING")),
        _HELD,
    ),
    (
        "node-completing",
        "guide modern",
        together(_NOT_GONE, _registers("n2", 1)),
        _HELD,
    ),
    (
        "running-for-steps",
        "guide modern",
        moved("switch_p_build_jobinfo step=1.1", after="job_state job=1 args.from=RUNNING"),
        "switch_p_build_jobinfo while it was COMPLETED|COMPLETING",
    ),
    (
        "running-for-steps",
        "guide modern",
        changed("job_state job=1 args.to=RUNNING", args_to="RUNNING|STOPPED"),
        _HELD,
    ),
    (
        "running-for-steps",
        "guide modern",
        changed("job_state job=1 args.to=RUNNING", args_to="SUSPENDED"),
        "0 starts, and its script was launched 1 times",
    ),
    (
        "running-for-steps",
        "guide modern",
        _LAUNCHED_AGAIN,
        "1 starts, and its script was launched 2 times",
    ),
    (
        "running-for-steps",
        "guide modern",
        doubled("REQUEST_BATCH_JOB_LAUNCH job=1 phase=send"),
        _HELD,
    ),
    (
        "running-for-steps",
        "guide modern",
        together(_LAUNCHED_AGAIN, _unreachable("RESPONSE_SLURM_RC", "slurmctld")),
        _HELD,
    ),
    (
        "running-for-steps",
        "guide modern",
        together(_LAUNCHED_AGAIN, _unreachable("REQUEST_PING", "slurmctld")),
        "1 starts, and its script was launched 2 times",
    ),
    (
        "running-for-steps",
        "guide modern",
        together(_LAUNCHED_AGAIN, _unreachable("RESPONSE_SLURM_RC", "srun")),
        "1 starts, and its script was launched 2 times",
    ),
    (
        "submission",
        "guide modern",
        doubled("slurm_ckpt_alloc_job job=1"),
        "2 checkpoint records were made for it",
    ),
    (
        "submission",
        "guide modern",
        _REFUSED,
        "it was refused, and kept its record",
    ),
    (
        "submission",
        "guide modern",
        together(_REFUSED, copied("slurm_ckpt_alloc_job job=1", name="slurm_ckpt_free_job")),
        _HELD,
    ),
    (
        "submission",
        "guide modern",
        copied("slurm_ckpt_alloc_job job=1", name="bb_p_job_validate"),
        "it went: slurm_ckpt_alloc_job, bb_p_job_validate",
    ),
    (
        "submission",
        "guide modern",
        copied("slurm_ckpt_alloc_job job=1", name="bb_p_job_validate2"),
        _HELD,
    ),
    (
        "step-creation",
        "guide modern",
        dropped("switch_p_alloc_jobinfo step=1.0 role=slurmctld"),
        "its credential was built and never allocated",
    ),
    (
        "step-creation",
        "guide modern",
        changed("switch_p_alloc_jobinfo step=1.0 role=slurmctld", pid=99),
        "its credential was built and never allocated",
    ),
    (
        "step-creation",
        "guide modern",
        changed("REQUEST_JOB_STEP_CREATE phase=receive", name="REQUEST_PING"),
        "nobody asked for it",
    ),
    (
        "step-creation",
        "guide",
        changed("switch_p_pack_jobinfo step=1.0 role=slurmctld", args_switch_job="#1"),
        "switch_p_pack_jobinfo was called with #1, and the copy is #2",
    ),
    (
        "step-creation",
        "guide",
        changed("switch_p_free_jobinfo step=1.0 role=slurmctld", args_switch_job="#1"),
        "switch_p_free_jobinfo was called with #1, and the copy is #2",
    ),
    (
        "step-creation",
        "guide",
        together(
            changed("switch_p_pack_jobinfo step=1.0 role=slurmctld", args_switch_job="#1"),
            changed("switch_p_copy_jobinfo step=1.0", rc=-1),
        ),
        _HELD,
    ),
    (
        "step-creation",
        "guide",
        dropped("slurm_ckpt_alloc_job step=1.0"),
        "after switch_p_build_jobinfo came switch_p_copy_jobinfo, not slurm_ckpt_alloc_job",
    ),
    (
        "step-creation",
        "modern",
        dropped("slurm_ckpt_alloc_job step=1.0"),
        "after switch_p_build_jobinfo came switch_p_pack_jobinfo, not slurm_ckpt_alloc_job",
    ),
    (
        "step-complete-once",
        "guide modern",
        _NOT_RELEASED,
        "it is over, and job_step_complete was never called",
    ),
    (
        "step-complete-once",
        "guide modern",
        together(_NOT_RELEASED, copied("step_state step=1.0", name="incomplete_state")),
        _HELD,
    ),
    (
        "step-complete-once",
        "guide modern",
        together(_NOT_RELEASED, copied("step_state step=1.1", name="incomplete_state")),
        "it is over, and job_step_complete was never called",
    ),
    (
        "step-complete-once",
        "guide modern",
        changed("switch_p_job_step_complete step=1.0", args_switch_job="#99"),
        "after its completion its credential was not released",
    ),
    (
        "step-complete-once",
        "guide modern",
        doubled("switch_p_free_jobinfo step=1.0 role=slurmctld", -1),
        "its credential was released without completion",
    ),
    (
        "step-complete-has-a-cause",
        "guide modern",
        changed("REQUEST_STEP_COMPLETE step=1.0 phase=receive role=slurmctld", step="1.1"),
        "it was completed upon a report of step 1.1",
    ),
    (
        "step-complete-has-a-cause",
        "guide modern",
        together(_UNASKED, changed(_BUILT, rc=-1)),
        _HELD,
    ),
    (
        "step-complete-has-a-cause",
        "guide modern",
        together(
            _UNASKED, changed("job_state job=1 args.to=RUNNING", args_to="RUNNING|COMPLETING")
        ),
        _HELD,
    ),
    (
        "step-complete-arguments",
        "guide modern",
        changed("switch_p_job_step_complete step=1.0", args_switch_job="#99"),
        "completed: #99 for n[1-2]",
    ),
    (
        "step-complete-arguments",
        "guide modern",
        changed("switch_p_job_step_complete step=1.0", args_switch_job="#99", pid=99),
        _HELD,
    ),
    (
        "credentials-balance",
        "guide modern",
        together(doubled("switch_p_alloc_jobinfo step=1.0 role=slurmctld"), _NOT_RELEASED),
        " credentials and ",
    ),
    ("credentials-balance", "guide modern", _NOT_RELEASED, _HELD),
    (
        "step-complete-on-the-last-report",
        "guide modern",
        _EARLY,
        "1 of its nodes had not reported when a report completed it",
    ),
    (
        "step-complete-on-the-last-report",
        "guide modern",
        together(_EARLY, copied(_BUILT, name=_PART, args_nodelist="n1")),
        _HELD,
    ),
    (
        "step-complete-on-the-last-report",
        "guide modern",
        together(_EARLY, copied(_BUILT, name=_PART, args_nodelist="n1", step="1.1")),
        "1 of its nodes had not reported",
    ),
    (
        "step-complete-on-the-last-report",
        "guide modern",
        together(
            _EARLY,
            copied("switch_p_job_step_complete step=1.0", name=_PART, args_nodelist="n1"),
        ),
        "1 of its nodes had not reported",
    ),
    (
        "no-frag",
        "guide",
        _started_meanwhile(18_000_000),
        "job 2 started while job 1 was completing",
    ),
    ("no-frag", "guide", _started_meanwhile(17_999_999), _HELD),
    (
        "node-completing",
        "guide modern",
        changed("node_state args.node=n1 args.to=ALLOCATED", args_from="DOWN", args_to="MIXED"),
        "it was DOWN and got a job",
    ),
    (
        "completing-ends-with-the-last-node",
        "guide modern",
        moved(
            "MESSAGE_EPILOG_COMPLETE job=1 phase=receive",
            before="job_state job=1 args.from=RUNNING",
        ),
        "it was over before n2 had reported it gone",
    ),
    (
        "uid-and-place",
        "guide modern",
        changed(f"switch_p_job_preinit {_STEP0}", uid=1001, euid=1001),
        "it was called as 1001/1001",
    ),
    (
        "uid-and-place",
        "guide modern",
        changed("switch_p_unpack_jobinfo step=1.0 role=slurmd", uid=1001, euid=1001),
        "it was called as 1001/1001",
    ),
    (
        "end-message",
        "guide modern",
        doubled("REQUEST_STEP_COMPLETE step=1.0 node=n2 phase=send"),
        "its end was reported twice at once",
    ),
    (
        "end-message",
        "guide modern",
        copied("REQUEST_STEP_COMPLETE step=1.0 node=n2 phase=send", time_us=20_000_000),
        _HELD,
    ),
    (
        "srun-heard-before-step-end",
        "modern",
        _UNHEARD,
        "srun had not acknowledged MESSAGE_TASK_EXIT when it reported its end",
    ),
    (
        "srun-heard-before-step-end",
        "modern",
        _told_again(17_700_001),
        "srun had not acknowledged MESSAGE_TASK_EXIT when it reported its end",
    ),
    ("srun-heard-before-step-end", "modern", _told_again(17_700_000), _HELD),
]


@pytest.mark.parametrize(
    ("rule", "model", "damage", "what"),
    [
        pytest.param(rule, model, damage, what, id=f"{place}-{rule}-{model}")
        for place, (rule, models, damage, what) in enumerate(_CASES)
        for model in models.split()
    ],
)
def test_a_damaged_run_breaks_its_rule(rule: str, model: str, damage: Damage, what: str) -> None:
    """The rule is named, and says what is wrong; the run itself keeps it."""
    assert what in told(busy(model), damage).get(rule, _HELD)


_OF_STEPS = ("daemons", "launches", "messages", "steps")


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_launch_that_was_taken_on_has_forked(model: str) -> None:
    """An answer of 0 is no refusal, though nothing was packed either."""
    fork = dropped("fork node=n1 role=slurmd", nth=2)
    pack = dropped("switch_p_pack_jobinfo step=1.0 role=slurmd node=n1")
    assert told(busy(model), fork, pack) == {
        "slurmd-launch": "it was taken on, and nothing was forked"
    }


def test_every_rule_that_is_checked_can_fail() -> None:
    """Those of this file's modules, each by at least one damage."""
    tested = {case[0] for case in _CASES if case[3] != _HELD} | {"one-call-at-a-time"}
    names = ("daemons", "jobs", *(f"steps.{name}" for name in _OF_STEPS))
    modules = {f"simctl.orderings.{name}" for name in names}
    checked = {
        rule.name
        for rule in declared()
        if rule.check is not None and rule.check.__module__ in modules
    }
    assert checked <= tested


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_call_inside_another_is_noticed(model: str) -> None:
    """A call that takes time has two lines; nothing else may be called between them."""
    ran = run(fault("switch_p_job_init node=n1", kind="hang", **{"for": "1s"}), model=model)

    def inside(events: list[Event]) -> list[Event]:
        end = next(e for e in events if e.name == "switch_p_job_init" and e.phase == "exit")
        call = next(e for e in events if e.name == "slurm_ckpt_stepd_prefork" and e.pid == end.pid)
        rest = [event for event in events if event is not call]
        place = rest.index(end)
        return [*rest[:place], call, *rest[place:]]

    what = "slurm_ckpt_stepd_prefork was called inside switch_p_job_init"
    assert told(ran, inside).get("one-call-at-a-time") == what


@pytest.mark.parametrize("schedule", ["fifo", "random"])
def test_a_start_of_a_node_that_is_up_starts_nothing_clean(schedule: str) -> None:
    """Neither its first slurmd, if the fault comes before that one's first event, nor the next."""
    text = TWO_NODES + (
        "timeline:\n"
        "  - {at: 0s, fault: {start: n1, clean: true}}\n"
        "  - {at: 0s, fault: {start: n2, clean: true}}\n"
        "  - {at: 9s, fault: {crash: n1}}\n"
        "  - {at: 9s, fault: {start: n1}}\n"
        "  - {at: 19s, fault: {crash: n2}}\n"
        "  - {at: 29s, fault: {start: n2, clean: true}}\n"
        "  - {at: 39s, fault: {start: n2}}\n"
    )
    for seed in range(8):
        found = run_scenario(text, schedule=schedule, seed=seed)
        found.assert_held()
        found.trace.assert_count("switch_p_clear_node_state", 1)


@pytest.mark.parametrize("command", ["sbatch --wrap true", "srun true"])
@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_node_that_dies_as_a_step_daemon_is_forked_breaks_nothing(
    model: str, command: str
) -> None:
    """A daemon that never came to say of which step it is was asked for all the same."""
    text = TWO_NODES + (
        "timeline:\n"
        f'  - {{at: 1s, as: alice, run: "{command}"}}\n'
        '  - {when: "fork role=slurmd", fault: {crash: n1}}\n'
        "  - {at: 10m, fault: {start: n1}}\n"
    )
    found = run_scenario(text, model=model)
    assert found.trace.matching("exit daemon=slurmstepd rc=9")
    assert [each.rule.name for each in found.result.orderings.broken] == []


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_launch_that_found_no_slurmd_is_sent_again_once_one_has_started(model: str) -> None:
    """Not before it has started, nor if the first one was received."""
    text = (
        "latency: 400ms\n"
        "timeline:\n"
        "  - {at: 19s, fault: {crash: n2}}\n"
        "  - {at: 90s, as: alice, run: srun -N2 sleep 2}\n"
        "  - {at: 95s, fault: {start: n2}}\n"
    )
    ran = run(text, cluster=TWO_NODES, model=model)
    first, _again = ran.all("REQUEST_LAUNCH_TASKS", phase="send", peer="slurmd@n2")
    assert told(ran) == {}
    starts = moved("init role=slurmd node=n2", nth=1, before="fault args.fault=crash*")
    heard = changed("REQUEST_LAUNCH_TASKS phase=receive node=n2", cause=first.seq)
    for damage in (starts, heard):
        assert told(ran, damage)["launch-once-a-node"] == "a node was told twice to launch it"


FRAGMENTS = """\
slurm_conf: {SwitchType: switch/elan, PreemptType: preempt/partition_prio, PreemptMode: MODE,
  Epilog: /etc/epilog}
nodes: [{name: "n[1-3]", cpus: 4}]
partitions:
  - {name: low, nodes: "n[1-2]", default: true}
  - {name: high, nodes: "n[1-2]", priority_tier: 2}
  - {name: other, nodes: n3}
users: {alice: 1001}
programs: {/etc/epilog: {runs: 20s}}
timeline:
  - {at: 0s, as: alice, run: "sbatch -N2 --wrap 'sleep 300'"}
  - {at: 10s, as: alice, run: "sbatch -p high -N2 --wrap 'sleep 5'"}
  - {at: 10s, as: alice, run: "sbatch -p other -N1 --wrap 'sleep 50'"}
"""
"""A pass has job 1 give way to job 2, and starts job 3 beside it."""

FRAGMENT = "job 3 started while job 1 was completing"


@pytest.mark.parametrize("mode", ["CANCEL", "REQUEUE"])
def test_a_job_that_a_pass_preempts_is_no_fragment_to_that_pass(mode: str) -> None:
    """The switch was asked before it began to complete."""
    ran = run(FRAGMENTS.replace("MODE", mode), cluster="")
    asked = ran.all("switch_p_no_frag")[1]
    completes = next(e for e in ran.all("job_state", job=1) if "COMPLETING" in str(e.args))
    assert asked.seq < completes.seq < ran.first("job_state", job=3, args_to="RUNNING")
    assert told(ran) == {}


@pytest.mark.parametrize("by", ["before", "client", "nobody"])
def test_a_job_that_its_pass_has_not_preempted_is_a_fragment(by: str) -> None:
    """It was completing when the switch was asked, or ended for something else after that."""
    ran = run(FRAGMENTS.replace("MODE", "CANCEL"), cluster="")
    ends = "job_state job=1 args.from=RUNNING"
    request = ran.all("REQUEST_SUBMIT_BATCH_JOB", phase="receive")[1]
    damage = {
        "before": moved(ends, before="switch_p_no_frag", to=1),
        "client": changed(ends, cause=request.seq),
        "nobody": changed(ends, cause=None),
    }[by]
    assert told(ran, damage)["no-frag"] == FRAGMENT


def test_a_switch_that_is_not_heeded_is_found_where_jobs_are_preempted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next pass starts a job while one that the pass before it has preempted completes."""
    asks = schedule.held_by_fragmentation

    async def unheeded(ctld: Controller) -> bool:
        await asks(ctld)
        return False

    monkeypatch.setattr(schedule, "held_by_fragmentation", unheeded)
    with pytest.raises(AssertionError, match=f"no-frag.*\n.*{FRAGMENT}"):
        run(
            FRAGMENTS.replace("MODE", "CANCEL").replace(
                '10s, as: alice, run: "sbatch -p other', '11s, as: alice, run: "sbatch -p other'
            ),
            cluster="",
        )
