"""What a pending job waits for: holds, dependencies, begin times, priorities; and going back."""

import pytest

from tests.cluster import run
from tests.entries import QUEUES, args, queued, reasons, started, states, typed, wrong

LONG = "sbatch -N2 --wrap 'sleep 100'"
BATCH = "sbatch -N2 --wrap 'sleep 10'"


# Holds.


def test_a_held_job_waits_until_it_is_released() -> None:
    """Submitted with -H it has an id, the reason JobHeldUser, and error 2042 in the answer."""
    ran = queued("0s alice sbatch -H --wrap true", "50s alice scontrol release 1")
    answer = ran.all("RESPONSE_SUBMIT_BATCH_JOB", phase="receive")[0]
    assert answer.args == {"error_code": 2042}
    assert ran.all("job_state", job=1)[0].args == {
        "from": None,
        "to": "PENDING",
        "reason": "JobHeldUser",
    }
    assert started(ran, 1) == 50
    assert "Submitted batch job 1" in ran.result.commands[0].stdout


def test_a_held_job_is_no_stall() -> None:
    """The run ends, and the row says why the job waits; so it is for one that waits for it."""
    ran = queued("0s alice sbatch -H --wrap true", "1s alice sbatch -d afterok:1 --wrap true")
    assert ran.result.stalled == ()
    assert reasons(ran) == {1: ("PENDING", "JobHeldUser"), 2: ("PENDING", "Dependency")}


@pytest.mark.parametrize(
    ("hold", "who", "reason", "status"),
    [
        ("hold", "alice", "JobHeldUser", 0),
        ("hold", "root", "JobHeldAdmin", 1),
        ("uhold", "op", "JobHeldUser", 0),
    ],
)
def test_who_may_release_depends_on_who_held(hold: str, who: str, reason: str, status: int) -> None:
    """An operator's hold is not the owner's to undo, unless it was made in the owner's name."""
    ran = queued(
        f"0s alice {LONG}",
        f"1s alice {BATCH}",
        f"2s {who} scontrol {hold} 2",
        f"3s alice scontrol release 2 | exit: {status}",
    )
    assert wrong(ran) == []
    assert (started(ran, 2) < 0) is (status == 1)
    if status:
        assert ran.stderr(3) == (
            "Access/permission denied for job 2\nslurm_suspend error: Access/permission denied\n"
        )
        assert reasons(ran)[2] == ("PENDING", reason)


def test_a_hold_takes_a_job_out_of_the_queue_and_others_pass() -> None:
    """The next in line starts instead."""
    ran = queued(
        f"0s alice {LONG}", f"1s alice {BATCH}", f"2s bob {BATCH}", "3s alice scontrol hold 2"
    )
    assert started(ran, 3) == 100
    assert started(ran, 2) == -1


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ("-N4", "PartitionNodeLimit"),
        ("-n1 -p short -t 10-0", "PartitionTimeLimit"),
        ("-n1 --array=1-4%1", "JobArrayTaskLimit"),
    ],
)
def test_a_hold_comes_before_all_else_that_a_job_waits_for(job: str, reason: str) -> None:
    """As Slurm looks at a job's priority first: a person who releases it learns of the rest."""
    shown = "squeue -h -t PD -o '%j %r' | stdout:"
    ran = queued(
        f"0s alice sbatch -J a {job} --wrap 'sleep 100'",
        f"1s alice sbatch -J b -H {job} --wrap 'sleep 100'",
        f"8s alice {shown} a {reason}",
        f"8s alice {shown} b JobHeldUser",
        "9s alice scontrol hold 1",
        f"10s alice {shown} a JobHeldUser",
        "11s alice scontrol release 1",
        "11s alice scontrol release 2 3",
        f"20s alice {shown} a {reason}",
        f"20s alice {shown} b {reason}",
    )
    assert wrong(ran) == []


# Dependencies.


@pytest.mark.parametrize(
    ("kind", "first", "start"),
    [
        ("after:1", "sleep 20", 0),
        ("after:1+2", "sleep 20", 120),
        ("afterany:1", "sleep 20", 20),
        ("afterany:1", "sleep 20; exit 3", 20),
        ("afterok:1", "sleep 20", 20),
        ("afterok:1", "sleep 20; exit 3", -1),
        ("afternotok:1", "sleep 20", -1),
        ("afternotok:1", "sleep 20; exit 3", 20),
        ("afterok:1,afternotok:1", "sleep 20", -1),
        ("afterok:1?afternotok:1", "sleep 20", 20),
        ("afterok:77", "sleep 20", 0),
    ],
)
def test_a_dependency_is_met_by_what_becomes_of_the_other_job(
    kind: str, first: str, start: int
) -> None:
    """One that can never be met stays, and says so; a job nobody knows is left out."""
    ran = queued(
        f"0s alice sbatch -w n1 --wrap '{first}'", f"0s bob sbatch -w n2 -d {kind} --wrap true"
    )
    found = started(ran, 2)
    assert found == start if start != 0 else 0 <= found <= 3
    if start < 0:
        assert reasons(ran)[2] == ("PENDING", "DependencyNeverSatisfied")
        assert ran.result.stalled == ()


def test_a_dependency_waits_for_the_end_of_completing() -> None:
    """Not for the first moment of COMPLETED: the last node must have reported."""
    ran = queued(f"0s alice {BATCH}", "1s bob sbatch -d afterany:1 --wrap true")
    done = next(
        event.seq for event in ran.all("job_state", job=1) if args(event)["to"] == "COMPLETED"
    )
    running = next(
        event.seq for event in ran.all("job_state", job=2) if args(event)["to"] == "RUNNING"
    )
    assert done < running


def test_a_cancelled_job_fails_those_that_wanted_it_well() -> None:
    """Also one that never ran."""
    ran = queued(
        "0s alice sbatch -H --wrap true",
        "1s alice sbatch -d afterok:1 --wrap true",
        "1s alice sbatch -d afterany:1 --wrap true",
        "9s alice scancel 1",
    )
    assert reasons(ran)[2] == ("PENDING", "DependencyNeverSatisfied")
    assert started(ran, 3) == 9


def test_who_waits_for_a_start_or_for_one_of_two_ends() -> None:
    """One that is cancelled before it started counts as begun; of two ends one may be bad."""
    ran = queued(
        "0s alice sbatch -H --wrap true",
        "1s alice sbatch -d after:1 --wrap true",
        "2s alice sbatch -w n1 -n1 --wrap 'exit 1'",
        "2s alice sbatch -w n2 -n1 --wrap 'sleep 20'",
        "3s alice sbatch -d afterok:3?afterok:4 --wrap true",
        "9s alice scancel 1",
        "15s alice squeue -h -j 5 -o %r",
    )
    assert started(ran, 2) == 9
    assert ran.result.commands[6].stdout == "Dependency\n"
    assert started(ran, 5) == pytest.approx(23, abs=1)


def test_a_singleton_waits_until_its_namesake_has_left_its_nodes() -> None:
    """COMPLETING is not over."""
    ran = typed(
        "0 alice sbatch -J x -w n1 -n1 --wrap 'sleep 5'",
        "7 alice sbatch -J x -w n2 -n1 -d singleton --wrap true",
        head="slurm_conf: {Epilog: /etc/epilog}\nprograms: {/etc/epilog: {runs: 9s}}\n",
    )
    assert started(ran, 2) == 14


def test_a_hold_does_not_make_a_job_s_wait_anew() -> None:
    """AccrueTime is when it could start first."""
    ran = queued(
        "0s alice sbatch -N2 --wrap 'sleep 50'",
        "1s alice sbatch -N2 --wrap true",
        "5s alice scontrol hold 2",
        "9s alice scontrol release 2",
        "12s alice scontrol show job 2",
    )
    shown = ran.result.commands[4].stdout
    times = dict(word.split("=", 1) for word in shown.split() if "Time=" in word)
    assert times["AccrueTime"] == times["SubmitTime"]
    assert times["EligibleTime"] > times["SubmitTime"]


def test_a_singleton_waits_for_its_namesakes() -> None:
    """Earlier jobs of the same name and user; another user's do not count."""
    ran = queued(
        "0s alice sbatch -J x -w n1 --wrap 'sleep 20'",
        "1s bob sbatch -J x -w n2 --wrap 'sleep 200'",
        "2s alice sbatch -J x -d singleton -w n1 --wrap 'sleep 30'",
        "3s alice sbatch -J x -d singleton -w n1 --wrap true",
        "4s alice sbatch -J y -d singleton -w n1 --wrap true",
    )
    assert started(ran, 3) == 20
    assert started(ran, 4) == 50
    assert 20 <= started(ran, 5) <= 51


@pytest.mark.parametrize(
    ("text", "start", "told"),
    [
        ("afterany:1_1", 10, "afterany:1_1"),
        ("AfterOK:1_[1,2]", 20, "afterok:1_1(unfulfilled),afterok:1_2"),
        ("afternotok:1_2?afternotok:1_3", 30, "afternotok:1_2(unfulfilled)?afternotok:1_3"),
        ("aftercorr:1_2", 20, "aftercorr:1_2"),
        ("afterany:1_*", 30, "afterany:1_*"),
        ("1", 30, "afterany:1_*"),
        ("afterok:1_9:1_1", 10, "afterok:1_1"),
        ("0", 5, ""),
    ],
)
@pytest.mark.parametrize("fault", ["", "{at: 6s, fault: {restart: slurmctld, for: 1s}}"])
def test_a_dependency_may_be_on_single_tasks_of_an_array(
    text: str, start: int, told: str, fault: str
) -> None:
    """Whether or not they have a record yet, and also when slurmctld is another by then."""
    ran = queued(
        "0s alice sbatch -w n1 --array=1-3%1 --wrap 'sleep 10; test $SLURM_ARRAY_TASK_ID != 3'",
        f"4s bob sbatch -w n2 -b now+1 -d {text} --wrap true",
        "4s bob squeue -h -j 3 -o %E",
        fault=fault,
    )
    assert ran.result.commands[2].stdout == (f"{told}(unfulfilled)\n" if told else "(null)\n")
    assert started(ran, 3) == pytest.approx(start, abs=1)


def test_an_array_that_is_cancelled_before_it_ran_has_not_ended_well() -> None:
    """None of its tasks has a record of its own then."""
    ran = queued(
        "0s alice sbatch -H --array=1-3 --wrap true",
        "1s alice sbatch -d afterok:1 --wrap true",
        "1s alice sbatch -d afterok:1_2 --wrap true",
        "1s alice sbatch -d afternotok:1 --wrap true",
        "9s alice scancel 1",
    )
    never = ("PENDING", "DependencyNeverSatisfied")
    assert reasons(ran)[2] == reasons(ran)[3] == never
    assert started(ran, 4) == 9


@pytest.mark.parametrize(
    "text",
    [
        "foo:1",
        "afterok",
        "afterok:x",
        "afterok:1,after:1?after:1",
        "aftercorr:1",
        "1,afterok:2",
        "afterok:2_",
        "afterok:2_[5-3]",
        "afterok:2_3_4",
        "afterok:x --array=0-1",
    ],
)
def test_a_dependency_that_cannot_be_read_refuses_the_job(text: str) -> None:
    """With Slurm's error; its id is used up by then, and its checkpoint record is released."""
    ran = queued(f"0s alice sbatch -d {text} --wrap true", "1s alice sbatch --wrap true")
    assert ran.result.commands[0].errno == "ESLURM_DEPENDENCY"
    assert ran.result.commands[1].stdout == "Submitted batch job 2\n"
    assert ran.names(job=1) == ["slurm_ckpt_alloc_job", "slurm_ckpt_free_job"]


# Begin times.


@pytest.mark.parametrize(
    ("begin", "start"),
    [
        ("now+60", 60),
        ("now+2minutes", 120),
        ("now+1hour", 3600),
        ("00:10", 600),
        ("2026-01-01T00:05:00", 300),
        ("01/01/26-00:05", 300),
        ("tomorrow", 86400),
        ("2001-01-01", 0),
        ("now", 0),
    ],
)
def test_a_job_begins_when_it_may(begin: str, start: int) -> None:
    """Clocks show 2026-01-01T00:00:00 UTC at the start; what is past is at once."""
    ran = queued(f"0s alice sbatch --begin={begin} --wrap true")
    assert started(ran, 1) == start
    if start:
        assert args(ran.all("job_state", job=1)[0])["reason"] == "BeginTime"


def test_a_cancelled_job_is_not_waited_for() -> None:
    """The run ends with the job, five minutes and a check after it, not at its begin time."""
    ran = queued("0s alice sbatch --begin=now+1day --wrap true", "5s alice scancel 1")
    assert ran.result.end_time_us < 7 * 60 * 1_000_000


def test_a_begin_time_that_is_put_off_holds() -> None:
    """The first one passes and starts nothing, also of an array's tasks."""
    ran = queued(
        "0s alice sbatch --begin=now+60 --array=0-1 --wrap true",
        "5s root scontrol update jobid=1 starttime=now+600",
        "6s alice scancel 1_1",
    )
    assert [row.state for row in ran.result.rows] == ["COMPLETED", "CANCELLED"]
    assert [row.start_us // 1_000_000 for row in ran.result.rows] == [605, 6]


@pytest.mark.parametrize("begin", ["foo", "25:00", "2026-13-01", "now+3fortnights"])
def test_a_begin_time_that_is_none_is_refused(begin: str) -> None:
    """As sbatch says it, with status 255."""
    ran = queued(f"0s alice sbatch -b {begin} --wrap true | exit: 255")
    assert wrong(ran) == []
    assert ran.stderr() == (
        f"Invalid time specification (pos=0): {begin}\n"
        "sbatch: error: Invalid --begin specification\n"
    )


# Priorities.


def test_the_highest_priority_goes_first() -> None:
    """Nice lowers it, an operator sets it, and a change takes the job to its new place."""
    ran = queued(
        f"0s alice {LONG}",
        f"1s alice {BATCH}",
        f"2s bob {BATCH.replace('sbatch', 'sbatch --nice=5000')}",
        f"3s bob {BATCH}",
        f"4s bob {BATCH}",
        "5s op scontrol update jobid=5 priority=4294901770",
        "6s alice scontrol update jobid=2 nice=100",
    )
    order = sorted((2, 3, 4, 5), key=lambda job: started(ran, job))
    assert order == [5, 4, 2, 3]


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("sbatch --nice=-5 --wrap true", "ESLURM_INVALID_NICE"),
        ("scontrol update jobid=1 priority=4294901770", "ESLURM_ACCESS_DENIED"),
        ("scontrol update jobid=1 nice=-5", "ESLURM_ACCESS_DENIED"),
    ],
)
def test_only_operators_raise_priorities(command: str, error: str) -> None:
    """A user may only lower them."""
    for user, errno in (("alice", error), ("op", "")):
        owner = "alice" if "update" in command else user
        ran = queued(f"0s {owner} sbatch --begin=now+60 --wrap true", f"1s {user} {command}")
        assert ran.result.commands[1].errno == errno


# Going back.


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_requeued_job_passes_through_slurms_states_and_runs_again(model: str) -> None:
    """Its step ends as a cancelled one's, step ids go on, and 121 s pass before it may begin."""
    text = (
        "files:\n  two.sh: |\n    #!/bin/sh\n    srun -N2 sleep 30\n"
        "timeline:\n"
        "  - {at: 0s, as: alice, run: sbatch -N2 two.sh}\n"
        "  - {at: 10s, as: alice, run: scontrol requeue 1}\n"
    )
    ran = run(text, cluster=QUEUES, model=model)
    assert states(ran)[1:8] == [
        "RUNNING",
        "PENDING|REQUEUE",
        "PENDING|REQUEUE|COMPLETING",
        "PENDING|REQUEUE",
        "PENDING",
        "PENDING|COMPLETING",
        "PENDING",
    ]
    assert states(ran)[8:] == ["RUNNING", "COMPLETED|COMPLETING", "COMPLETED"]
    assert {event.step for event in ran.all("switch_p_job_init")} == {"1.0", "1.1"}
    for step in ("1.0", "1.1"):
        assert len(ran.all("switch_p_job_fini", step=step)) == 2
        assert len(ran.all("switch_p_job_postfini", step=step)) == 2
        assert len(ran.all("switch_p_job_step_complete", step=step)) == 1
    assert len(ran.all("slurm_ckpt_alloc_job", job=1)) == 3  # the job's, and one a step
    assert started(ran, 1) == 131
    assert ran.result.rows[0].restarts == 1
    terminate = ran.all("REQUEST_TERMINATE_JOB", phase="send")[0]
    assert terminate.args == {"job_state": "COMPLETING"}


def test_requeuehold_holds_the_job() -> None:
    """With a reason of its own, and the owner may release it."""
    ran = queued(
        f"0s alice {BATCH}",
        "5s alice scontrol requeuehold 1",
        "300s alice scontrol release 1",
    )
    held = [args(event)["reason"] for event in ran.all("job_state", job=1)][5]
    assert held == "job requeued in held state"
    assert started(ran, 1) == 300


@pytest.mark.parametrize(
    ("submit", "at", "user", "error"),
    [
        ("sbatch --wrap 'sleep 60'", "5s", "bob", "ESLURM_ACCESS_DENIED"),
        ("sbatch --no-requeue --wrap 'sleep 60'", "5s", "alice", "ESLURM_DISABLED"),
        ("srun sleep 60", "5s", "alice", "ESLURM_BATCH_ONLY"),
        ("sbatch -H --wrap true", "5s", "alice", "ESLURM_JOB_PENDING"),
        ("sbatch --wrap true", "800s", "alice", "ESLURM_INVALID_JOB_ID"),
    ],
)
def test_what_cannot_be_requeued_is_refused(submit: str, at: str, user: str, error: str) -> None:
    """Each for its reason; scontrol's exit status is 1."""
    ran = queued(f"0s alice {submit}", f"{at} {user} scontrol requeue 1 | exit: 1")
    assert wrong(ran) == []
    assert ran.result.commands[1].errno == error


# Other changes.


def test_a_time_limit_may_be_lowered_by_the_owner_and_raised_by_an_operator() -> None:
    """Of a running job as well: its end follows."""
    ran = queued(
        "0s alice sbatch -t 5 --wrap 'sleep 1000'",
        "10s alice scontrol update jobid=1 timelimit=10 | expect: ESLURM_ACCESS_DENIED",
        "20s op scontrol update jobid=1 timelimit=10",
        "30s alice scontrol update jobid=1 timelimit=2",
    )
    assert wrong(ran) == []
    assert ran.job()[0] == "TIMEOUT"
    assert ran.result.rows[0].end_us // 1_000_000 in range(120, 151)


def test_a_pending_job_moves_to_another_partition() -> None:
    """It waits there as if it had come in now; a partition nobody knows is refused."""
    ran = queued(
        f"0s alice {LONG}",
        "1s alice sbatch -t 5 --wrap 'sleep 5'",
        "2s alice scontrol update jobid=2 partition=nope | expect: ESLURM_INVALID_PARTITION_NAME",
        "3s alice scontrol update jobid=2 partition=short name=other",
        "4s alice scontrol update jobid=1 partition=short | expect: ESLURM_DISABLED",
    )
    assert wrong(ran) == []
    row = ran.result.rows[1]
    assert (row.partition, row.name, row.state) == ("short", "other", "COMPLETED")


def test_a_job_that_asks_for_less_may_fit() -> None:
    """More nodes than there are wait for ever, until an update asks for fewer."""
    ran = queued(
        "0s alice sbatch -N9 --wrap true",
        "10s alice scontrol update jobid=1 numnodes=2",
        "60s alice scontrol update jobid=1 numnodes=1 | exit: 1",
    )
    assert wrong(ran) == []
    assert started(ran, 1) == 10


# Nodes.


def test_a_drained_node_takes_no_more_jobs_until_it_is_resumed() -> None:
    """The job on it runs to its end."""
    ran = queued(
        "0s alice sbatch -w n1 --wrap 'sleep 20'",
        "5s root scontrol update nodename=n1 state=drain reason=disk",
        "6s alice sbatch -w n1 --wrap true",
        "100s root scontrol update nodename=n1 state=resume",
    )
    assert ran.job(1)[0] == "COMPLETED"
    assert started(ran, 2) == 100
    drained = [args(event) for event in ran.all("node_state") if "DRAIN" in args(event)["to"]]
    assert drained[0]["reason"] == "disk"


def test_a_node_set_down_fails_its_job() -> None:
    """Or sends it back into the queue, if it may run again; the other node goes on."""
    ran = queued(
        "0s alice sbatch --no-requeue -w n1 --wrap 'sleep 60'",
        "5s root scontrol update nodename=n1 state=down reason=smoke",
        "50s root scontrol update nodename=n1 state=resume",
        "60s alice sbatch -w n1 --wrap true",
    )
    assert ran.job(1)[0] == "NODE_FAIL"
    assert started(ran, 2) in range(60, 64)


@pytest.mark.parametrize(
    ("user", "words", "errno", "text"),
    [
        ("alice", "nodename=n1 state=drain reason=x", "ESLURM_USER_ID_MISSING", "user id"),
        ("root", "nodename=n9 state=drain reason=x", "ESLURM_INVALID_NODE_NAME", "node name"),
        ("root", "nodename=n1 state=drain", "", "You must specify a reason when DOWNING"),
        ("root", "nodename=n1 state=resume", "ESLURM_INVALID_NODE_STATE", "node state"),
        ("root", "nodename=n1 state=fail reason=x", "", "state=FAIL is known to Slurm"),
        (
            "root",
            "reservationname=r1 nodes=n1",
            "ESLURM_RESERVATION_INVALID",
            "Requested reservation is invalid",
        ),
        ("root", "jobid=1 licenses=x", "", "update jobid licenses= is known to Slurm"),
        ("root", "nonsense", "", "No valid entity in update command"),
    ],
)
def test_what_scontrol_cannot_do_is_told(user: str, words: str, errno: str, text: str) -> None:
    """By name, with status 1; nothing is parsed and then ignored."""
    ran = queued(f"1s {user} scontrol update {words} | exit: 1")
    assert wrong(ran) == []
    assert ran.result.commands[0].errno == errno
    assert text in ran.stderr()


def test_a_singleton_starts_once_its_namesake_is_called_something_else() -> None:
    """And is looked at again by then."""
    ran = queued(
        "0s alice sbatch -n1 -J x --wrap 'sleep 50'",
        "1s alice sbatch -n1 -J x -d singleton --wrap true",
        "5s alice scontrol update jobid=1 jobname=y",
    )
    assert started(ran, 2) == pytest.approx(5, abs=1)


def test_nice_is_what_was_asked_last() -> None:
    """A second value takes the place of the first, and a priority that root gives that of both."""
    ran = queued(
        "0s alice sbatch -N2 --exclusive --wrap 'sleep 50'",
        "1s alice sbatch -N2 --wrap true",
        "2s alice squeue -h -j 2 -o %Q",
        "3s alice scontrol update jobid=2 nice=100",
        "4s alice scontrol update jobid=2 nice=200",
        "5s alice squeue -h -j 2 -o '%Q %y'",
        "6s root scontrol update jobid=2 priority=500",
        "7s alice squeue -h -j 2 -o '%Q %y'",
    )
    first, both, given = (ran.result.commands[place].stdout.split() for place in (2, 5, 7))
    assert both == [str(int(first[0]) - 200), "200"]
    assert given == ["500", "0"]
