"""Order and behaviour that recordings of real Slurm 18.08 have shown, each by itself.

What model guide does otherwise is told beside it.
"""

import re

import pytest
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.wire.ids import SECOND
from tests.cluster import Ran, run
from tests.moments import BOTH, THREE_NODES, timeline

EACH_CPU = "slurm_conf: {SelectType: select/cons_tres, SelectTypeParameters: CR_CPU}\n"
SIGNAL_SRUN = """\
files:
  signals.sh: |
    #!/bin/sh
    srun -N2 -n2 sleep 60 &
    sleep 2
    kill -SIGNAL $!
    wait $!
    echo "srun ended with $?"
"""
APPLIANCE = """\
  BurstBufferType: burst_buffer/datawarp
burst_buffer:
  pools: {pool1: {capacity: 100GiB, granularity: 1GiB}}
  functions: {setup: [{runs: 1s, exit: 1, job: 1}, {runs: 1s}], data_in: [{runs: 8s}]}
files:
  bb.sh: |
    #!/bin/sh
    #DW jobdw type=scratch capacity=10GiB access_mode=striped
    #DW stage_in type=file source=/home/a destination=$DW_JOB_STRIPED/a
    sleep 5
"""


def arg(event: Event, key: str) -> object:
    """Return an argument of an event."""
    assert event.args is not UNSET
    return event.args[key]


def moves(ran: Ran, job: int = 1) -> list[str]:
    """Return the states a job has come to, in order."""
    return [str(arg(event, "to")) for event in ran.all("job_state", job=job)]


def printed(ran: Ran, command: str) -> str:
    """Return what the last command of the timeline that begins so has printed."""
    return [each.stdout for each in ran.result.commands if each.command.startswith(command)][-1]


def output(ran: Ran, job: int = 1) -> str:
    """Return what a batch job of alice's has written."""
    for host in ("n1", "n2"):
        try:
            return str(ran.world.disk.read(f"slurm-{job}.out", "/home/alice", host=host))
        except OSError:
            continue
    raise AssertionError("no output")


# What a node runs.


@BOTH
@pytest.mark.parametrize(
    ("tasks", "per_node", "layout", "warns"),
    [(3, 2, [2, 1], True), (4, 2, [2, 2], False), (5, 3, [3, 2], True), (6, 3, [3, 3], False)],
)
def test_tasks_per_node_count_where_they_come_out_even(
    model: str, tasks: int, per_node: int, layout: list[int], warns: bool
) -> None:
    """Else srun says so and lays the tasks out in blocks, as many as fit on each node."""
    ran = run(
        EACH_CPU.replace("}", ", FirstJobId: 1}")
        + timeline(
            f"at: 0s, as: alice, run: srun -N2 -n{tasks} --ntasks-per-node={per_node} sleep 1"
        ),
        cluster=THREE_NODES.replace("cpus: 4", f"cpus: {per_node}"),
        model=model,
    )
    got = [len(ran.all("switch_p_job_attach", node=node)) for node in ("n1", "n2")]
    assert got == layout
    assert ("Warning" in ran.stderr()) is warns


def test_what_comes_out_uneven_is_laid_out_as_if_nothing_had_been_said() -> None:
    """Four tasks and one: the first node takes what it holds; in a job of two a node, too."""
    ran = run(
        EACH_CPU + timeline("at: 0s, as: alice, run: srun -N2 -n5 --ntasks-per-node=3 sleep 1"),
        model="modern",
    )
    assert [len(ran.all("switch_p_job_attach", node=node)) for node in ("n1", "n2")] == [4, 1]
    assert arg(ran.one("switch_p_build_jobinfo"), "plane") == 0xFFFE


# A node less.


def test_a_job_that_goes_on_with_a_node_less_is_resized() -> None:
    """RUNNING, RUNNING|RESIZING, RUNNING; the switch is asked about each step between the two."""
    ran = run(
        "files:\n  less.sh: |\n    #!/bin/sh\n    srun --no-kill -N2 -n2 sleep 50\n"
        + timeline(
            "at: 0s, as: alice, run: sbatch --no-kill -N2 -n2 less.sh",
            "at: 4s, run: scontrol update nodename=n2 state=down reason=x",
        ),
        model="modern",
    )
    assert moves(ran)[:4] == ["PENDING", "RUNNING", "RUNNING|RESIZING", "RUNNING"]
    away, back = ran.all("job_state", job=1)[2:4]
    assert away.time_us == back.time_us


def test_a_job_that_goes_on_with_a_node_less_stays_as_it_is_in_guide() -> None:
    """Its guides know no state of that name."""
    ran = run(
        timeline(
            "at: 0s, as: alice, run: sbatch --no-kill -N2 --wrap 'sleep 50'",
            "at: 4s, run: scontrol update nodename=n2 state=down reason=x",
        )
    )
    assert "RUNNING|RESIZING" not in moves(ran)
    assert ran.job()[0] == "COMPLETED"


# Burst buffers.


@BOTH
def test_a_buffer_that_is_torn_down_is_torn_down_again_at_scancel(model: str) -> None:
    """As its setup has failed it is gone; the cancelled job says so once more, and in a hurry."""
    ran = run(
        "slurm_conf:\n"
        + APPLIANCE
        + timeline("at: 1s, as: alice, run: sbatch bb.sh", "at: 9s, as: alice, run: scancel 1"),
        model=model,
    )
    assert len(ran.all("bb_p_job_cancel")) == 1
    torn = [event for event in ran.all("dw_teardown", phase="exit") if event.job == 1]
    assert len(torn) == 2
    assert "--hurry" in str(torn[1].args)


@pytest.mark.parametrize(("model", "locked"), [("modern", [True]), ("guide", [])])
def test_jobs_that_never_ran_are_counted_as_slurmctld_starts(
    model: str, locked: list[bool]
) -> None:
    """What a job that was cancelled before it began would have used; the guide has no such call."""
    ran = run(
        "slurm_conf:\n"
        + APPLIANCE
        + timeline(
            "at: 1s, as: alice, run: sbatch bb.sh",
            "at: 2s, as: alice, run: sbatch bb.sh",
            "at: 2500ms, as: alice, run: scancel 2",
            "at: 5s, fault: {restart: slurmctld, for: 1s}",
            "at: 20s, as: alice, run: scancel 1",
        ),
        model=model,
    )
    loads = ran.all("bb_p_load_state")
    again = [
        event for event in ran.all("bb_p_job_set_tres_cnt", job=2) if event.time_us >= 6 * SECOND
    ]
    assert [arg(event, "locked") for event in again] == locked
    assert all(event.seq < loads[-1].seq for event in again)
    # It is the first to ask for the plugin, which is set up once.
    inits = [
        event
        for event in ran.all("init", role="slurmctld")
        if event.plugin == "burst_buffer/datawarp" and event.time_us >= 6 * SECOND
    ]
    assert len(inits) == 1
    assert all(inits[0].seq < event.seq for event in again)


# A batch job that never began.


@pytest.mark.parametrize(("model", "told"), [("modern", [(-1, 4008)]), ("guide", [])])
def test_a_batch_job_that_is_cancelled_in_its_prolog_is_reported(
    model: str, told: list[tuple[int, int]]
) -> None:
    """Its credential is revoked when the prolog is over: slurmd says that it was not launched."""
    ran = run(
        "slurm_conf: {Prolog: /slow}\nprograms: {/slow: {runs: 5s}}\n"
        + timeline(
            "at: 0s, as: alice, run: sbatch --wrap true", "at: 2s, as: alice, run: scancel 1"
        ),
        model=model,
    )
    reports = ran.all("REQUEST_COMPLETE_BATCH_SCRIPT", phase="send", role="slurmd")
    assert [(arg(event, "job_rc"), arg(event, "slurm_rc")) for event in reports] == told
    assert not ran.all("exec", step="1.batch")
    assert ran.job()[0] == "CANCELLED"


# srun.


@BOTH
@pytest.mark.parametrize(
    ("nodes", "options", "code"),
    [(2, "", 0), (3, "", 2068), (3, "-H", 2042), (3, "-d afterok:1", 0), (3, "--begin=now+60", 0)],
)
def test_a_batch_job_is_taken_in_with_a_code_where_it_lacks_nodes(
    model: str, nodes: int, options: str, code: int
) -> None:
    """ESLURM_NODE_NOT_AVAIL tells that some are drained or down; sbatch does not mind."""
    ran = run(
        timeline(
            "at: 0s, as: alice, run: sbatch -N1 --wrap 'sleep 30'",
            "at: 1s, run: scontrol update nodename=n3 state=drain reason=x",
            f"at: 2s, as: alice, run: sbatch {options} -N{nodes} --wrap 'sleep 1'",
            "at: 3s, run: scontrol update nodename=n3 state=resume",
        ),
        model=model,
        cluster=THREE_NODES,
    )
    answers = ran.all("RESPONSE_SUBMIT_BATCH_JOB", phase="send")
    assert [arg(event, "error_code") for event in answers] == [0, code]
    submitted = [each for each in ran.result.commands if each.command.startswith("sbatch")][-1]
    assert (submitted.exit, submitted.stdout) == (0, "Submitted batch job 2\n")


@BOTH
@pytest.mark.parametrize("command", ["srun -N3 true", "salloc -N3 true"])
def test_who_asks_for_nodes_that_are_drained_is_told_so_and_waits(model: str, command: str) -> None:
    """A node that is resumed lets the job start."""
    ran = run(
        timeline(
            "at: 0s, run: scontrol update nodename=n3 state=drain reason=x",
            f"at: 2s, as: alice, run: {command}",
            "at: 60s, run: scontrol update nodename=n3 state=resume",
        ),
        model=model,
        cluster=THREE_NODES,
    )
    asked = next(each for each in ran.result.commands if each.command == command)
    who = command.split(maxsplit=1)[0]
    told = f"{who}: Required node not available (down, drained or reserved)\n"
    assert asked.stderr.startswith(told)
    assert f"{who}: job 1 queued and waiting for resources\n" in asked.stderr
    assert asked.exit == 0


@BOTH
def test_a_step_that_is_gone_is_no_longer_reported_over(model: str) -> None:
    """A launch that a prolog outlasts is reported by srun when the epilogs have ended the step."""
    ran = run(
        "slurm_conf: {Prolog: /etc/prolog}\nprograms: {/etc/prolog: {runs: 3s}}\n"
        + timeline(
            "at: 0s, as: alice, run: srun -N2 sleep 60",
            "at: 1s, as: alice, run: scancel 1",
            "at: 2s, fault: {delay: REQUEST_STEP_COMPLETE, by: 1s, times: 2}",
            "at: 60s, run: scontrol -o show job 1",
        ),
        model=model,
    )
    answers = [
        arg(event, "return_code")
        for event in ran.all("RESPONSE_SLURM_RC", phase="send", daemon="slurmctld")
        if arg(event, "answers") == "REQUEST_STEP_COMPLETE"
    ]
    assert answers == [2017, 2017]
    # The code 4008 that srun tells reads as a wait status of signal 40.
    assert "ExitCode=0:40 " in printed(ran, "scontrol")


@BOTH
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_cancelled_srun_still_tells_how_its_job_ended(model: str, nodes: int) -> None:
    """Its message comes too late to end the job, and fills an exit code that is still 0."""
    ran = run(
        timeline(
            f"at: 0s, as: alice, run: srun -N{nodes} sleep 60", "at: 2s, as: alice, run: scancel 1"
        ),
        model=model,
    )
    answer = [
        event
        for event in ran.all("RESPONSE_SLURM_RC", phase="send", daemon="slurmctld")
        if arg(event, "answers") == "REQUEST_COMPLETE_JOB_ALLOCATION"
    ]
    assert [arg(event, "return_code") for event in answer] == [2021]
    assert ran.job()[:2] == ("CANCELLED", "0:15")


@BOTH
@pytest.mark.parametrize(
    ("signal", "status"), [("USR1", 128 + 10), ("USR2", 128 + 12), ("HUP", 128 + 9)]
)
def test_srun_forwards_what_users_signal(model: str, signal: str, status: int) -> None:
    """USR1 and USR2 go to the tasks, which die of them; SIGHUP kills them."""
    ran = run(
        SIGNAL_SRUN.replace("SIGNAL", signal)
        + timeline("at: 0s, as: alice, run: sbatch -N2 -n2 signals.sh"),
        model=model,
    )
    assert f"srun ended with {status}\n" in output(ran)
    forwarded = ran.all("REQUEST_SIGNAL_TASKS", phase="send", role="srun")
    assert len(forwarded) == (2 if signal.startswith("USR") else 0)
    assert (ran.job()[0], ran.one("step_state", step="1.0", args_to="RUNNING").job) == (
        "COMPLETED",
        1,
    )


def test_srun_tells_of_sigcont() -> None:
    """Which it does not hand on."""
    ran = run(
        SIGNAL_SRUN.replace("SIGNAL", "CONT").replace("sleep 60", "sleep 6")
        + timeline("at: 0s, as: alice, run: sbatch -N2 -n2 signals.sh"),
        model="modern",
    )
    assert "srun: got SIGCONT\n" in output(ran)
    assert "srun ended with 0\n" in output(ran)


@pytest.mark.parametrize(("model", "created"), [("modern", 0), ("guide", 1)])
def test_a_srun_in_a_job_that_is_ending_looks_for_its_allocation_first(
    model: str, created: int
) -> None:
    """It finds that the job has expired; the guides' srun asks for a step at once."""
    ran = run(
        "files:\n  late.sh: |\n    #!/bin/sh\n"
        "    trap 'srun -n1 sleep 1; exit 5' TERM\n    sleep 60 &\n    wait\n"
        + timeline("at: 0s, as: alice, run: sbatch late.sh", "at: 3s, as: alice, run: scancel 1"),
        model=model,
    )
    assert len(ran.all("REQUEST_JOB_STEP_CREATE", phase="send")) == created
    if model == "modern":
        assert arg(ran.one("RESPONSE_JOB_PACK_ALLOCATION", phase="send"), "error_code") == 2021
        assert "Slurm job 1 has expired" in output(ran)
        assert "Check SLURM_JOB_ID environment variable" in output(ran)


def test_a_srun_in_a_job_that_runs_looks_for_its_allocation_and_goes_on() -> None:
    """Once for each srun."""
    ran = run(
        timeline("at: 0s, as: alice, run: sbatch --wrap 'srun true; srun true'"), model="modern"
    )
    assert len(ran.all("REQUEST_JOB_PACK_ALLOC_INFO", phase="receive")) == 2
    assert len(ran.all("RESPONSE_JOB_PACK_ALLOCATION", phase="send")) == 2
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize(("model", "ends_s"), [("modern", 2), ("guide", 10)])
def test_the_step_of_a_srun_that_is_killed_is_cancelled_at_once(model: str, ends_s: int) -> None:
    """By the process that watches over it; in guide it goes on until its script ends."""
    ran = run(
        SIGNAL_SRUN.replace("SIGNAL", "KILL").replace("echo", "sleep 8; echo")
        + timeline("at: 0s, as: alice, run: sbatch -N2 -n2 signals.sh"),
        model=model,
    )
    ends = ran.all("exit", role="task", step="1.0")
    assert [event.rc for event in ends] == [9, 9] if model == "modern" else [15, 15]
    assert {event.time_us // SECOND for event in ends} == {ends_s}
    shepherd = ran.all("REQUEST_CANCEL_JOB_STEP", phase="send", role="srun")
    assert [arg(event, "signal") for event in shepherd] == ([9] if model == "modern" else [])
    begun = [event.pid for event in shepherd]
    assert [event.pid for event in ran.all("exit", role="srun") if event.pid in begun] == begun


# What is printed.


@BOTH
def test_what_a_job_waits_for_is_told_after_its_end(model: str) -> None:
    """Of one that was ended because it can never begin the reason is Dependency alone."""
    ran = run(
        timeline(
            "at: 0s, as: alice, run: sbatch --wrap 'exit 9'",
            "at: 0s, as: alice, run: sbatch -d afterok:1 --kill-on-invalid-dep=yes --wrap true",
            "at: 9s, run: scontrol -o show job 2",
        ),
        model=model,
    )
    shown = printed(ran, "scontrol")
    assert " Reason=Dependency " in shown
    assert re.search(r" Dependency=afterok:1\b", shown)


@BOTH
def test_a_job_keeps_what_it_is_billed_for(model: str) -> None:
    """MinCPUsNode counts the tasks of a node; billing that of the start, also a node less."""
    ran = run(
        EACH_CPU
        + timeline(
            "at: 0s, as: alice, run: sbatch --no-kill -N3 -n6 --ntasks-per-node=2 --wrap 'sleep 9'",
            "at: 4s, run: scontrol update nodename=n3 state=down reason=x",
            "at: 5s, run: scontrol -o show job 1",
        ),
        cluster=THREE_NODES,
        model=model,
    )
    shown = printed(ran, "scontrol")
    assert " MinCPUsNode=2 " in shown
    assert re.search(r"\bbilling=6\b", shown)
    assert " NumNodes=2 " in shown


def test_a_step_says_that_a_node_has_failed() -> None:
    """And where to read of it."""
    ran = run(
        timeline(
            "at: 0s, as: alice, run: srun -N2 -n2 sleep 60",
            "at: 3s, run: scontrol update nodename=n2 state=down reason=x",
        ),
        model="modern",
    )
    at = r"AT 2026-01-01T00:00:0\d DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS \*\*\*"
    assert re.search(rf"slurmstepd-n1: error: \*\*\* STEP 1\.0 ON n1 CANCELLED {at}", ran.stderr())


def test_srun_warns_of_more_nodes_than_tasks() -> None:
    """And takes as many nodes as it has tasks."""
    ran = run(timeline("at: 0s, as: alice, run: srun -N2 -n1 true"), model="modern")
    warning = "srun: Warning: can't run 1 processes on 2 nodes, setting nnodes to 1"
    assert warning in ran.stderr()
    assert ran.result.rows[0].nodes == "n1"


# Where simctl decides otherwise, and what real Slurm does is a switch.


@pytest.mark.parametrize(
    ("switch", "state"),
    [("", "FAILED"), ("step_missing: abort", "FAILED"), ("step_missing: go_on", "RUNNING")],
)
def test_a_srun_whose_step_is_missing_on_a_node_gives_it_up_or_goes_on(
    switch: str, state: str
) -> None:
    """It gives up by itself; real Slurm's srun waits for what will never come."""
    ran = run(
        f"options: {{{switch}}}\nslurm_conf: {{SlurmdTimeout: 15}}\n"
        + timeline(
            "at: 0s, as: alice, run: srun -N2 -n2 sleep 30",
            'at: 4s, fault: {crash: "stepd 1.0@n2"}',
            "at: 140s, run: scontrol -o show job 1",
            "at: 150s, as: alice, run: scancel 1",
        ),
        model="modern",
    )
    assert ran.all("SRUN_STEP_MISSING", phase="receive")
    assert f" JobState={state} " in printed(ran, "scontrol")


@BOTH
@pytest.mark.parametrize(
    ("submitted", "starts"),
    [("10s", "10s"), ("10001ms", "11s"), ("10100ms", "11s"), ("10999ms", "11s"), ("11s", "11s")],
)
def test_a_batch_job_may_start_with_the_next_turn_of_slurmctlds_loop(
    model: str, submitted: str, starts: str
) -> None:
    """Each second since slurmctld has started; else in the instant of its submission."""
    entry = timeline(f"at: {submitted}, as: alice, run: sbatch --wrap true")
    at_once = run(entry, model=model)
    begun = at_once.one("job_state", args_to="RUNNING").time_us
    assert begun - at_once.one("job_state", args_to="PENDING").time_us < SECOND // 1000
    real = run("options: {batch_start: as_real}\n" + entry, model=model)
    late_us = real.one("job_state", args_to="RUNNING").time_us - int(starts[:-1]) * SECOND
    assert -1000 < late_us <= SECOND


def test_a_batch_job_that_is_cancelled_as_it_is_submitted_never_begins() -> None:
    """Where batch jobs start as really; interactive ones begin at once all the same."""
    ran = run(
        "options: {batch_start: as_real}\n"
        + timeline(
            "at: 10100ms, as: alice, run: sbatch --wrap true",
            "at: 10112ms, as: alice, run: scancel 1",
            "at: 20500ms, as: alice, run: srun true",
        ),
        model="modern",
    )
    assert not ran.all("REQUEST_BATCH_JOB_LAUNCH")
    assert moves(ran) == ["PENDING", "CANCELLED"]
    assert ran.one("job_state", job=2, args_to="RUNNING").time_us < 20_501_000
