"""Warnings before the time limit, deadlines, and other ways for a job to end or to wait anew."""

from typing import Any

import pytest

from simctl.ctld.jobs.limits import last_start_us, refusal, warning_due_us
from simctl.kernel.events import Event
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.records import JobDesc
from tests.cluster import Ran, run
from tests.entries import QUEUES, args, queued, reasons, started, states, wrong

TRAP = """\
files:
  warned.sh: |
    #!/bin/sh
    trap "echo got; exit 7" USR1
    while :; do sleep 0.2; done
  srun.sh: |
    #!/bin/sh
    srun ./app
programs:
  ./app: {runs: forever, on_signal: {USR1: 5}}
  ./fat: {runs: 3s, oom: true}
  ./leaks: {runs: 3s, oom: true, tasks: [1]}
"""


def batch(*commands: str, more: str = "") -> Ran:
    """Run commands at 0 s."""
    lines = [f"  - {{at: 0s, as: alice, run: {command!r}}}\n" for command in commands]
    return run(TRAP + more + "timeline:\n" + "".join(lines))


def ends(ran: Ran) -> dict[int, int]:
    """Return when each job ended, in whole seconds."""
    return {row.job_id: row.end_us // SECOND for row in ran.result.rows}


def warnings(ran: Ran) -> list[Event]:
    """Return the signals that the controller sent."""
    return ran.all("REQUEST_SIGNAL_TASKS", phase="send", daemon="slurmctld")


# Warnings.


@pytest.mark.parametrize(
    ("limit_s", "warn_s", "now_s", "due_s"),
    [
        (600, 60, 0, 510),
        (600, 60, 520, 540),
        (605, 60, 0, 540),
        (60, 58, 0, 30),
        (60, 600, 0, 30),
        (60, 0, 0, 30),
        (90, 0, 0, 60),
    ],
)
def test_a_warning_comes_at_the_first_check_that_is_near_enough(
    limit_s: int, warn_s: int, now_s: int, due_s: int
) -> None:
    """Not later than asked for, and at most 30 s earlier; checks are every 30 s."""
    due_us = warning_due_us(limit_s * SECOND, warn_s, now_s * SECOND)
    assert due_us == due_s * SECOND


def test_a_warned_script_runs_its_trap() -> None:
    """--signal=B: signals the script alone; its trap decides how the job ends."""
    ran = batch("sbatch -t1 --signal=B:USR1@58 warned.sh")
    assert ran.job() == ("FAILED", "7:0", "NonZeroExitCode")
    assert ends(ran) == {1: 30}
    (signal,) = warnings(ran)
    assert (signal.step, args(signal)["signal"]) == ("1.batch", 10)


def test_a_warned_step_gets_the_signal_and_the_script_does_not() -> None:
    """Without B: it is the steps that are meant."""
    ran = batch("sbatch -t5 --signal=USR1 srun.sh")
    assert ran.job() == ("FAILED", "5:0", "NonZeroExitCode")
    assert ends(ran) == {1: 240}
    assert {str(e.step) for e in warnings(ran)} == {"1.0"}


def test_an_srun_of_its_own_is_warned_as_well() -> None:
    """On every node of its step, once."""
    ran = batch("srun -N2 -t3 --signal=10@30 sleep 500")
    assert len(warnings(ran)) == 2
    assert ran.job() == ("FAILED", "0:10", "JobLaunchFailure")


def test_a_job_without_a_limit_or_with_one_lifted_is_not_warned() -> None:
    """A warning is one of the time limit."""
    ran = batch("sbatch --signal=B:USR1 --wrap 'sleep 900'")
    assert warnings(ran) == []
    ran = queued(
        "0s alice sbatch -t5 --signal=B:USR1 --wrap 'sleep 400'",
        "60s root scontrol update jobid=1 timelimit=20",
    )
    assert reasons(ran) == {1: ("COMPLETED", "None")}


def test_a_job_is_warned_once_in_each_run() -> None:
    """Not again when its limit moves; again when it was requeued."""
    ran = queued(
        "0s alice sbatch -t2 --signal=B:URG@30 --wrap 'sleep 170'",
        "100s root scontrol update jobid=1 timelimit=3",
        "150s root scontrol requeue 1",
    )
    assert reasons(ran) == {1: ("COMPLETED", "None")}
    assert [e.time_us // SECOND for e in warnings(ran)] == [90, 420]


def test_suspended_time_does_not_bring_a_warning_nearer() -> None:
    """The limit moves, and the warning with it."""
    ran = queued(
        "0s alice sbatch -t2 --signal=B:URG@30 --wrap 'sleep 100'",
        "30s root scontrol suspend 1",
        "630s root scontrol resume 1",
    )
    assert [e.time_us // SECOND for e in warnings(ran)] == [690]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("FOO", "Invalid --signal specification"),
        ("B:", "Invalid --signal specification"),
        ("X:USR1", "Invalid --signal specification"),
        ("USR1@70000", "Invalid --signal specification"),
        ("USR1@soon", "Invalid --signal specification"),
        ("RB:USR1", "--signal=R: concerns reservations, which simctl does not simulate yet"),
    ],
)
def test_a_wrong_signal_is_refused(value: str, text: str) -> None:
    """As sbatch says it."""
    ran = batch(f"sbatch --signal={value} warned.sh")
    assert ran.result.commands[0].exit == 255
    assert ran.stderr() == f"sbatch: error: {text}\n"


@pytest.mark.parametrize("option", ["--signal=USR1", "--deadline=now+1hour"])
def test_a_step_in_an_allocation_has_neither_warning_nor_deadline(option: str) -> None:
    """They belong to the job; nothing is ignored in silence."""
    ran = batch(f"sbatch --wrap 'srun {option} true'")
    assert ran.job()[1] == "255:0"


# Deadlines.


@pytest.mark.parametrize(
    ("limit_min", "begin_s", "deadline_s", "refused"),
    [
        (10, 0, 1600, False),
        (10, 0, 1599, True),
        (10, 1100, 1600, True),
        (INFINITE, 0, 1000, False),
        (INFINITE, 0, 999, True),
        (NO_VAL, 0, 1000, False),
        (NO_VAL, 0, 999, True),
        (10, 0, 0, False),
    ],
)
def test_a_job_that_cannot_end_in_time_is_not_taken(
    limit_min: int, begin_s: int, deadline_s: int, refused: bool
) -> None:
    """Now, or when it may begin, and its whole limit: at second 1000."""
    limits: dict[str, Any] = {
        "time_limit_min": limit_min,
        "begin_s": begin_s,
        "deadline_s": deadline_s,
    }
    desc = JobDesc(name="", uid=0, gid=0, user="", **limits)
    assert bool(refusal(desc, 1000)) is refused


def test_the_last_start_leaves_room_for_the_whole_limit() -> None:
    """Without a limit it is the deadline itself."""
    assert last_start_us(1000 * SECOND, 10) == 400 * SECOND
    assert last_start_us(1000 * SECOND, INFINITE) == 1000 * SECOND


def test_a_deadline_in_the_past_is_refused_with_slurms_words() -> None:
    """The controller refuses it; a moment that there is not, sbatch itself."""
    ran = batch("sbatch --deadline=2001-01-01 warned.sh", "sbatch --deadline=never warned.sh")
    assert ran.stderr(0) == (
        "sbatch: error: Batch job submission failed: "
        "Requested time limit is invalid (missing or exceeds some limit)\n"
    )
    assert ran.result.commands[0].exit == 1
    assert ran.stderr(1) == (
        "Invalid time specification (pos=0): never\n"
        "sbatch: error: Invalid --deadline specification\n"
    )
    assert ran.result.commands[1].exit == 255


def test_a_job_that_can_no_longer_end_in_time_is_ended() -> None:
    """A second after its last chance to start: DEADLINE, and it never ran."""
    ran = queued(
        "0s alice sbatch -N2 --wrap 'sleep 500'",
        "1s bob sbatch -N2 -t2 --deadline=now+5minutes --wrap 'sleep 5'",
        "2s bob sbatch -d afternotok:2 --wrap true",
    )
    assert ran.job(2) == ("DEADLINE", "0:1", "DeadLine")
    assert ends(ran)[2] == 1 + 300 - 120 + 1
    assert started(ran, 2) == -1
    assert ran.job(3)[0] == "COMPLETED"


def test_a_held_job_meets_its_deadline_too() -> None:
    """And its client, if it has one, is told."""
    ran = queued(
        "0s alice sbatch -N2 --wrap 'sleep 500'",
        "0s bob sbatch -H -t1 --deadline=now+2minutes --wrap true",
        "1s bob srun -N2 -t1 --deadline=now+2minutes true | exit: 1",
    )
    assert wrong(ran) == []
    assert {row.state for row in ran.result.rows if row.job_id > 1} == {"DEADLINE"}
    assert "srun: Force Terminated job 3" in ran.stderr(2)


def test_a_job_that_runs_at_its_deadline_is_ended_as_by_a_time_limit() -> None:
    """At the next check of limits."""
    ran = queued("0s alice sbatch --deadline=now+2minutes --wrap 'sleep 500'")
    assert ran.job() == ("DEADLINE", "0:15", "DeadLine")
    assert states(ran)[-2:] == ["DEADLINE|COMPLETING", "DEADLINE"]
    assert ends(ran) == {1: 120}
    assert len(ran.all("REQUEST_KILL_TIMELIMIT", phase="send")) == 1


@pytest.mark.parametrize(("first", "then"), [(2, 6), (6, 2), (0, 3)])
def test_a_deadline_that_is_changed_is_met_as_it_is_now(first: int, then: int) -> None:
    """A job that waits with a limit of a minute gives up one minute before."""
    option = f"--deadline=now+{first}minutes " if first else ""
    ran = queued(
        "0s alice sbatch -N2 --wrap 'sleep 900'",
        f"0s bob sbatch -N2 -t1 {option}--wrap true",
        f"30s root scontrol update jobid=2 deadline=2026-01-01T00:0{then}:00",
    )
    assert reasons(ran)[2] == ("DEADLINE", "DeadLine")
    (over,) = [e for e in ran.all("job_state", job=2) if "DEADLINE" in str(e.args)]
    assert 60 * (then - 1) <= over.time_us / 1_000_000 <= 60 * then


def test_a_shorter_limit_leaves_more_time_to_wait() -> None:
    """Its last chance to start is later then."""
    ran = queued(
        "0s alice sbatch -N2 --wrap 'sleep 200'",
        "0s bob sbatch -N2 -t4 --deadline=now+5minutes --wrap 'sleep 5'",
        "30s bob scontrol update jobid=2 timelimit=1",
    )
    assert reasons(ran)[2] == ("COMPLETED", "None")
    assert started(ran, 2) == 200


def test_a_requeued_job_keeps_its_deadline() -> None:
    """It may not begin before it could no longer end."""
    ran = queued(
        "0s alice sbatch -t1 --deadline=now+2minutes --wrap 'sleep 50'",
        "20s alice scontrol requeue 1",
    )
    assert ran.job() == ("DEADLINE", "0:1", "DeadLine")
    assert ends(ran) == {1: 61}


def test_a_suspended_job_is_ended_once_it_is_resumed() -> None:
    """Nobody looks at it before."""
    ran = queued(
        "0s alice sbatch --deadline=now+2minutes --wrap 'sleep 500'",
        "60s root scontrol suspend 1",
        "300s root scontrol resume 1",
    )
    assert ran.job()[0] == "DEADLINE"
    assert ends(ran) == {1: 300}


def test_tasks_of_an_array_meet_their_deadline_together_and_alone() -> None:
    """What waits is one record; a task that was split off has a deadline of its own."""
    ran = queued(
        "0s alice sbatch -N2 --wrap 'sleep 500'",
        "0s bob sbatch -a 0-3 -t1 --deadline=now+2minutes --wrap true",
        "1s bob scontrol hold 2_1",
    )
    found = [row.state for row in ran.result.rows if row.array_job_id]
    assert found == ["DEADLINE", "DEADLINE"]
    assert ran.result.stalled == ()


# Dependencies that end a job, and tasks that wait for tasks.


@pytest.mark.parametrize(
    ("parameters", "option", "state"),
    [
        ("", "", "PENDING"),
        ("", "--kill-on-invalid-dep=yes ", "CANCELLED"),
        ("", "--kill-on-invalid-dep=no ", "PENDING"),
        ("kill_invalid_depend", "", "CANCELLED"),
        ("kill_invalid_depend", "--kill-on-invalid-dep=no ", "PENDING"),
    ],
)
def test_a_dependency_that_can_never_be_met_may_end_the_job(
    parameters: str, option: str, state: str
) -> None:
    """The job's own word counts before the cluster's; a job that is ended has another reason."""
    ran = run(
        f"slurm_conf: {{SchedulerParameters: '{parameters}'}}\n"
        "timeline:\n"
        "  - {at: 0s, as: alice, run: sbatch --wrap 'exit 1'}\n"
        f"  - {{at: 0s, as: alice, run: 'sbatch {option}-d afterok:1 --wrap true'}}\n"
        "  - {at: 0s, as: alice, run: sbatch -d afterany:2 --wrap true}\n"
    )
    reason = "Dependency" if state == "CANCELLED" else "DependencyNeverSatisfied"
    assert ran.job(2) == (state, "0:0", reason)
    assert ran.job(3)[0] == ("COMPLETED" if state == "CANCELLED" else "PENDING")


def test_kill_on_invalid_dep_wants_yes_or_no() -> None:
    """Nothing else."""
    ran = batch("sbatch --kill-on-invalid-dep=perhaps warned.sh")
    assert ran.stderr() == "sbatch: error: Invalid --kill-on-invalid-dep specification\n"


def test_each_task_of_an_array_follows_the_task_of_its_number() -> None:
    """aftercorr: the second array's task 1 waits for the first one's task 1 alone."""
    ran = queued(
        "0s alice sbatch -a 0-2 --wrap 'sleep $((10 + 20 * SLURM_ARRAY_TASK_ID))'",
        "1s alice sbatch -a 0-2 -d aftercorr:1 --wrap true",
    )
    begins = {
        row.array_task_id: row.start_us // SECOND for row in ran.result.rows if row.array_job_id > 1
    }
    ended = {
        row.array_task_id: row.end_us // SECOND for row in ran.result.rows if row.array_job_id == 1
    }
    assert {row.state for row in ran.result.rows} == {"COMPLETED"}
    assert len(begins) == 3
    assert all(begins[task] >= ended[task] for task in begins)
    assert begins[0] < ended[2]


def test_a_task_whose_counterpart_failed_never_starts() -> None:
    """The others do; a task without a counterpart waits for the whole array."""
    ran = queued(
        "0s alice sbatch -a 0-1 --wrap 'exit $SLURM_ARRAY_TASK_ID'",
        "1s alice sbatch -a 0-1 -d aftercorr:1 --wrap true",
        "2s alice sbatch -a 7 -d aftercorr:1 --wrap true",
        "3s alice sbatch -d aftercorr:1 --wrap true",
    )
    found = {(row.array_job_id, row.array_task_id): row.state for row in ran.result.rows}
    second = min(key[0] for key in found if key[0] > 1)
    assert found[second, 0] == "COMPLETED"
    assert found[second, 1] == "PENDING"
    rest = [row for row in ran.result.rows if (row.array_job_id or 99) > second]
    assert {(row.state, row.reason) for row in rest} == {("PENDING", "DependencyNeverSatisfied")}


def test_a_task_that_is_split_off_still_waits_for_what_its_array_waits_for() -> None:
    """Held and released by its number, it starts after the others' dependency is met."""
    ran = queued(
        "0s alice sbatch -N2 --wrap 'sleep 50'",
        "1s alice sbatch -a 0-1 -d afterok:1 --wrap true",
        "2s alice scontrol hold 2_0",
        "3s alice scontrol release 2_0",
    )
    assert {row.state for row in ran.result.rows} == {"COMPLETED"}


# Out of memory.


def test_a_script_whose_program_took_too_much_memory_ends_out_of_memory() -> None:
    """The program dies of SIGKILL, and however the script goes on, its job is told of it."""
    ran = batch("sbatch --wrap './fat; exit 0'")
    assert ran.job() == ("OUT_OF_MEMORY", "0:125", "OutOfMemory")
    assert [e.rc for e in ran.all("exit", daemon="task")] == [9, 0]


def test_a_task_that_took_too_much_memory_is_told_to_srun() -> None:
    """Of one task of two."""
    ran = batch("srun -n2 ./leaks")
    assert ran.job() == ("OUT_OF_MEMORY", "0:125", "OutOfMemory")
    assert ran.stderr() == "srun: error: n1: task 1: Out Of Memory\n"


# Going back for how it ended.


def exits(keys: str, script: str, *more: str) -> Ran:
    """Run a script of alice's with keys of slurm.conf."""
    lines = "".join(f"  - {line}\n" for line in more)
    return run(
        f"slurm_conf: {{{keys}}}\n"
        f"timeline:\n  - {{at: 0s, as: alice, run: \"sbatch --wrap '{script}'\"}}\n{lines}",
        cluster=QUEUES,
    )


AGAIN = 'if [ -z \\"$SLURM_RESTART_COUNT\\" ]; then exit 5; fi'


def test_a_job_that_exits_with_a_code_of_requeueexit_runs_again() -> None:
    """FAILED for a moment, PENDING, and 121 s later RUNNING; the second run ends well."""
    ran = exits("RequeueExit: '1,4-6'", AGAIN)
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert states(ran)[2:5] == ["FAILED|COMPLETING", "FAILED", "PENDING"]
    assert ran.result.rows[0].restarts == 1


def test_a_code_of_requeueexithold_holds_the_job() -> None:
    """PENDING|SPECIAL_EXIT, until somebody releases it."""
    ran = exits("RequeueExitHold: 5", AGAIN)
    assert ran.job() == ("PENDING|SPECIAL_EXIT", "0:0", "job requeued in special exit state")
    assert ran.result.stalled == ()
    ran = exits("RequeueExitHold: 5", AGAIN, "{at: 200s, as: alice, run: scontrol release 1}")
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert states(ran)[4:8] == ["PENDING", "PENDING|SPECIAL_EXIT", "PENDING", "RUNNING"]


@pytest.mark.parametrize(
    ("command", "errno"),
    [("scontrol update jobid=1 priority=3", "ESLURM_JOB_HELD"), ("scontrol release 1", "")],
)
def test_a_job_that_its_exit_code_holds_is_released_and_given_no_priority(
    command: str, errno: str
) -> None:
    """It starts from a state that is no special one any more."""
    ran = exits("RequeueExitHold: 5", AGAIN, f"{{at: 200s, run: {command}}}")
    assert ran.result.commands[-1].errno == errno
    if errno:
        assert ran.job()[0] == "PENDING|SPECIAL_EXIT"
    else:
        assert ran.job() == ("COMPLETED", "0:0", "None")
        assert states(ran)[4:8] == ["PENDING", "PENDING|SPECIAL_EXIT", "PENDING", "RUNNING"]


@pytest.mark.parametrize(
    ("keys", "script", "state"),
    [
        ("RequeueExit: 5", "exit 4", "FAILED"),
        ("RequeueExit: 5, JobRequeue: 0", AGAIN, "FAILED"),
        ("RequeueExit: 5", f"{AGAIN}' '--no-requeue", "FAILED"),
        ("RequeueExit: 15", "kill -TERM $$", "FAILED"),
    ],
)
def test_other_ends_are_ends(keys: str, script: str, state: str) -> None:
    """Another code, a job that is not to be requeued, a signal."""
    assert exits(keys, script).job()[0] == state


def test_requeuehold_may_ask_for_the_special_exit_state() -> None:
    """It is shown, and scancel ends it."""
    ran = queued(
        "0s alice sbatch --wrap 'sleep 50'",
        "5s alice scontrol requeuehold State=SpecialExit 1",
        "6s alice scontrol requeuehold state=Idle 1 | exit: 1",
    )
    assert wrong(ran) == []
    assert ran.job() == ("PENDING|SPECIAL_EXIT", "0:0", "job requeued in special exit state")
    ran = queued(
        "0s alice sbatch --wrap 'sleep 50'",
        "5s alice scontrol requeuehold state=SpecialExit 1",
        "60s alice scancel 1",
    )
    assert ran.job()[0] == "CANCELLED"
