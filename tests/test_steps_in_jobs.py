"""Steps inside an allocation: cpus of their own, time limits, bad exits, and where tasks lie."""

from itertools import pairwise

import pytest
from msgspec import UNSET

from simctl.kernel.events import Event
from tests.cluster import Ran, run
from tests.entries import reasons, typed, wrong

CLUSTER = """\
nodes: [{name: "n[1-2]", cpus: 2}, {name: "n[3-4]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-4]", default: true}]
users: {alice: 1001, bob: 1002}
programs:
  ./ten: {runs: 10s}
  ./long: {runs: forever}
  ./stubborn: {runs: forever, on_signal: {TERM: ignore}}
  ./one_fails: [{tasks: [0], runs: 5s, exit: 5}, {runs: 1h}]
  ./all_fail: {runs: 5s, exit: 5}
  ./one_ends: [{tasks: [1], runs: 5s}, {runs: 100s}]
"""


def script(
    *lines: str,
    options: str = "-w n[1-2] -N2 -n4",
    more: str = "",
    schedule: str = "fifo",
    seed: int = 0,
) -> Ran:
    """Run a batch script of alice's, whose output goes to the file ``out``."""
    body = "".join(f"    {line}\n" for line in lines)
    files = f"files:\n  job.sh: |\n    #!/bin/sh\n{body}"
    text = f'timeline:\n  - {{at: 0s, as: alice, run: "sbatch -o out {options} job.sh"}}\n{more}'
    return run(files + text, cluster=CLUSTER, schedule=schedule, seed=seed)


def output(ran: Ran) -> str:
    """Return what the script and its steps wrote."""
    return str(ran.world.disk.read("/home/alice/out"))


def time(events: list[Event]) -> list[int]:
    """Return when events happened, in whole seconds."""
    return [event.time_us // 1_000_000 for event in events]


def starts(ran: Ran) -> list[int]:
    """Return when the steps of the job were made, in whole seconds."""
    return time(ran.all("switch_p_build_jobinfo"))


def ranks(ran: Ran, step: str) -> dict[str, list[int]]:
    """Return the ranks of a step's tasks by node."""
    found: dict[str, list[int]] = {}
    for event in ran.all("switch_p_job_attach", step=step):
        assert event.args is not UNSET
        found.setdefault(str(event.node), []).append(event.args["rank"])
    return found


# Cpus of their own.


def test_steps_share_the_cpus_of_their_job() -> None:
    """Without --exclusive each step may use all of them at once."""
    ran = script("srun -n4 ./ten &", "srun -n4 ./ten &", "srun --overlap -n4 ./ten &", "wait")
    assert starts(ran) == [0, 0, 0]


def test_exclusive_steps_wait_for_cpus() -> None:
    """Four cpus: three steps of two tasks run in two rounds."""
    ran = script(*["srun --exclusive -n2 ./ten &"] * 3, "wait")
    assert starts(ran) == [0, 0, 10]
    assert output(ran) == (
        "srun: Job 1 step creation temporarily disabled, retrying (Requested "
        "nodes are busy)\nsrun: Step created for StepId=1.2\n"
    )
    assert ran.job()[0] == "COMPLETED"


def test_exclusive_steps_wait_for_shared_ones_too() -> None:
    """A step that shares uses cpus as well; one that shares waits for nobody."""
    ran = script(
        "srun -n3 ./ten &", "srun --exclusive -n2 ./ten &", "sleep 1", "srun -n4 ./ten &", "wait"
    )
    assert starts(ran) == [0, 1, 11]


def test_who_came_first_is_served_first() -> None:
    """A srun keeps its place while others come and go."""
    lines = [f"srun --exclusive -n4 -J s{number} ./ten &\nsleep 1" for number in range(4)]
    ran = script(*"\n".join(lines).split("\n"), "wait")
    asked = [event.pid for event in ran.all("REQUEST_JOB_STEP_CREATE", phase="send")]
    made = [
        event.pid
        for event in ran.all("RESPONSE_JOB_STEP_CREATE", phase="receive")
        if event.step is not UNSET
    ]
    assert starts(ran) == [0, 10, 20, 30]
    assert made == list(dict.fromkeys(asked))


def test_a_small_step_may_pass_a_large_one() -> None:
    """Whoever fits starts, as in Slurm."""
    ran = script(
        "srun --exclusive -n3 ./ten &",
        "sleep 1",
        "srun --exclusive -n4 ./ten &",
        "sleep 1",
        "srun --exclusive -n1 ./ten &",
        "wait",
    )
    assert starts(ran) == [0, 2, 12]
    assert len(ranks(ran, "1.1")) == 1


def test_a_srun_that_nobody_wakes_asks_again_in_time() -> None:
    """After SlurmctldTimeout and up to ten seconds more, by its pid; what it says it says once."""
    ran = script("srun --exclusive -n4 sleep 300 &", "sleep 1", "srun --exclusive -n1 ./ten")
    asked = ran.all("REQUEST_JOB_STEP_CREATE", phase="send")
    waits = [later.time_us - sooner.time_us for sooner, later in pairwise(asked[1:])]
    assert 120_000_000 <= waits[0] <= 129_100_000
    assert output(ran).count("temporarily disabled") == 1
    assert starts(ran)[1] == 300


def test_an_immediate_step_does_not_wait() -> None:
    """It is refused with the error that others wait upon."""
    ran = script("srun --exclusive -n4 ./ten &", "sleep 1", "srun -I --exclusive -n1 ./ten", "wait")
    assert starts(ran) == [0]
    assert output(ran) == (
        "srun: error: Unable to create step for job 1: Requested nodes are busy\n"
    )


def test_an_immediate_step_with_a_number_waits_so_long() -> None:
    """It asks once more when its time is up."""
    ran = script(
        "srun --exclusive -n4 sleep 30 &",
        "sleep 1",
        "srun -I5 --exclusive -n1 ./ten",
        "srun -I60 --exclusive -n1 ./ten",
    )
    assert starts(ran) == [0, 30]
    asked = ran.all("REQUEST_JOB_STEP_CREATE", phase="send")
    assert time(asked) == [0, 1, 6, 6, 30]


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("-n5", "Unable to create step for job 1: More processors requested than permitted"),
        ("--exclusive -n5", "Unable to create step for job 1: More processors requested than"),
        ("--exclusive -n2 -c3", "Unable to create step for job 1: More processors requested than"),
        ("-N3", "Only allocated 2 nodes asked for 3"),
        (
            "-r1 -N2",
            "--relative and --nodes option incompatible with count of allocated nodes (1+2>2)",
        ),
        ("-w n3", "Unable to create step for job 1: Invalid node name specified"),
        ("-m arbitrary", "--distribution=arbitrary needs the node of each task"),
        ("-n3 -m arbitrary -w n1,n2", "Task distribution cannot be laid out"),
    ],
)
def test_what_a_job_does_not_have_is_refused(option: str, error: str) -> None:
    """At once: waiting would not help."""
    ran = script(f"srun {option} ./ten")
    assert ran.all("switch_p_build_jobinfo") == []
    assert "srun: error: " in output(ran)
    assert error in output(ran)
    assert ran.job()[0] == "FAILED"


def test_a_step_of_no_job_says_which_variable_to_look_at() -> None:
    """Two lines, as in Slurm."""
    ran = typed("0s alice srun --jobid=99 true")
    assert ran.stderr() == (
        "srun: error: Unable to confirm allocation for job 99: Invalid job id specified\n"
        "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 99\n"
    )
    assert ran.result.commands[0].exit == 1


def test_another_user_has_no_steps_in_the_job() -> None:
    """--jobid is for the job's owner."""
    ran = script("sleep 20", more="  - {at: 5s, as: bob, run: srun --jobid=1 true}\n")
    assert ran.result.commands[1].errno == "ESLURM_ACCESS_DENIED"


def test_the_end_of_the_job_ends_the_wait() -> None:
    """A srun that waits for cpus is told like one that has a step."""
    ran = script(
        "srun --exclusive -n4 ./long &",
        "srun --exclusive -n1 ./ten",
        "echo $?",
        more="  - {at: 30s, as: alice, run: scancel 1}\n",
    )
    assert "srun: Force Terminated job 1\n" in output(ran)
    assert starts(ran) == [0]
    assert ran.result.stalled == ()


def test_a_signal_ends_the_wait() -> None:
    """SIGTERM to a srun that waits leaves nothing behind in the controller's line."""
    ran = script(
        "srun --exclusive -n4 ./ten &",
        "sleep 1",
        "srun --exclusive -n1 ./ten &",
        "sleep 1",
        "kill $!",
        "wait",
    )
    assert "srun: Cancelled pending step for job 1\n" in output(ran)
    assert starts(ran) == [0]


@pytest.mark.parametrize("seed", range(6))
def test_a_task_farm_uses_every_cpu_under_any_schedule(seed: int) -> None:
    """Ten steps of a cpu on four cpus: three rounds, and never more than four at a time."""
    ran = script(*["srun --exclusive -n1 ./ten &"] * 10, "wait", schedule="random", seed=seed)
    first, *_ = made = sorted(starts(ran))
    assert [at - first for at in made] == [0] * 4 + [10] * 4 + [20] * 2
    alive = most = 0
    for event in ran.all("step_state"):
        assert event.args is not UNSET
        alive += 1 if event.args["to"] == "RUNNING" else -1
        most = max(most, alive)
    assert most == 4


# Time limits.


def test_a_step_ends_at_its_own_time_limit_and_the_job_goes_on() -> None:
    """It is looked at every 30 seconds; tasks get SIGTERM, and srun exits with it."""
    ran = script("sleep 10", "srun -t1 -n2 ./long", "echo $?")
    assert output(ran) == (
        "slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-01-01T00:01:30 "
        "DUE TO TIME LIMIT ***\n"
        "srun: error: n1: task 0: Terminated\n"
        "srun: error: n2: task 1: Terminated\n"
        "srun: Force Terminated StepId=1.0\n143\n"
    )
    assert ran.job()[0] == "COMPLETED"
    killed = ran.all("REQUEST_KILL_TIMELIMIT", phase="send")
    assert [(event.peer, event.step) for event in killed] == [
        ("slurmd@n1", "1.0"),
        ("slurmd@n2", "1.0"),
    ]


def test_a_task_that_minds_no_sigterm_is_killed_killwait_later() -> None:
    """KillWait is 30 seconds."""
    ran = script("srun -t1 -N1 -n1 ./stubborn", "echo $?")
    assert "Killed\nsrun: Force Terminated StepId=1.0\n137\n" in output(ran)
    assert time(ran.all("exit", step="1.0", daemon="task")) == [120]


@pytest.mark.parametrize("deed", ["scancel 1", "scontrol requeue 1"])
@pytest.mark.parametrize(("ended_s", "told"), [(89, False), (91, True)])
def test_a_step_of_a_job_that_has_ended_has_no_limit_any_more(
    deed: str, ended_s: int, told: bool
) -> None:
    """Though it ends but KillWait later; its nodes have been told of the end of the job."""
    ends = f"  - {{at: {ended_s}s, as: alice, run: {deed}}}\n  - {{at: 150s, run: scancel 1}}\n"
    ran = script("srun -t1 -N1 -n1 ./stubborn", more=ends)
    assert time(ran.all("exit", step="1.0", daemon="task"))[0] == (120 if told else 119)
    assert bool(ran.all("REQUEST_KILL_TIMELIMIT", phase="send")) is told


def test_a_step_that_ends_in_time_leaves_no_limit_behind() -> None:
    """The run is over with the job."""
    ran = script("srun -t30 ./ten")
    assert ran.all("REQUEST_KILL_TIMELIMIT") == []
    assert ran.result.end_time_us < 11_000_000 + 600_000_000
    assert ran.job()[0] == "COMPLETED"


# Bad exits.


def test_kill_on_bad_exit_ends_the_step() -> None:
    """The texts are 18.08's; the exit status is that of the tasks srun had killed."""
    ran = script("srun -n4 -K ./one_fails", "echo $?")
    assert output(ran) == (
        "srun: error: n1: task 0: Exited with exit code 5\n"
        "srun: launch/slurm: _step_signal: Terminating StepId=1.0\n"
        "slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-01-01T00:00:05 ***\n"
        "srun: error: n1: task 1: Terminated\n"
        "srun: error: n2: tasks 2-3: Terminated\n"
        "srun: Force Terminated StepId=1.0\n"
        "143\n"
    )


def test_a_bad_exit_alone_ends_no_step() -> None:
    """That is 18.08's default."""
    ran = script("srun -n4 -t1 ./one_fails")
    assert "Terminating StepId" not in output(ran)
    assert time(ran.all("switch_p_job_fini", node="n1")) == [90]


@pytest.mark.parametrize(
    ("setting", "option", "variable", "kills"),
    [
        (1, "", "", True),
        (1, "-K0", "", False),
        (1, "--kill-on-bad-exit=0", "", False),
        (1, "", "0", False),
        (0, "--kill-on-bad-exit", "", True),
        (0, "-lK", "", True),
        (0, "", "1", True),
        (0, "-K0", "1", False),
    ],
)
def test_options_go_before_variables_and_those_before_slurm_conf(
    setting: int, option: str, variable: str, kills: bool
) -> None:
    """KillOnBadExit, SLURM_KILL_BAD_EXIT, --kill-on-bad-exit."""
    before = f"export SLURM_KILL_BAD_EXIT={variable}" if variable else ":"
    ran = script(
        before,
        f"srun -n2 -t1 {option} ./one_fails",
        more=f"slurm_conf: {{KillOnBadExit: {setting}}}\n",
    )
    assert ("Terminating StepId" in output(ran)) is kills


def test_nothing_is_left_to_kill_when_all_fail_together() -> None:
    """The last bad exit of a step ends nothing."""
    ran = typed("0s alice srun -n1 -K ./all_fail", cluster=CLUSTER)
    assert ran.stderr() == "srun: error: n1: task 0: Exited with exit code 5\n"
    assert ran.job() == ("FAILED", "5:0", "NonZeroExitCode")


@pytest.mark.parametrize(("option", "conf"), [("-W 20", 0), ("--wait=20", 7), ("", 20)])
def test_wait_ends_a_step_whose_first_task_has_ended(option: str, conf: int) -> None:
    """So long after the first end, however that was; by SIGKILL, as recorded."""
    ran = script(
        f"srun -n2 {option} ./one_ends", "echo $?", more=f"slurm_conf: {{WaitTime: {conf}}}\n"
    )
    assert output(ran) == (
        "srun: First task exited 20s ago\n"
        "srun: StepId=1.0 task 0: running\n"
        "srun: StepId=1.0 task 1: exited\n"
        "srun: launch/slurm: _step_signal: Terminating StepId=1.0\n"
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
        "slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-01-01T00:00:25 ***\n"
        "srun: error: n1: task 0: Killed\n"
        "137\n"
    )


def test_wait_counts_from_the_first_task_that_ends() -> None:
    """Those that end meanwhile give the others no more time."""
    ran = script("srun -n3 -O --wait=5 sh -c 'sleep $((SLURM_PROCID * 4 + 1))'", "echo $? $SECONDS")
    assert "srun: First task exited 5s ago\n" in output(ran)
    assert output(ran).endswith("137 6\n")


def test_wait_0_waits_for_ever() -> None:
    """It goes before slurm.conf."""
    ran = script("srun -n2 -W0 ./one_ends", more="slurm_conf: {WaitTime: 20}\n")
    assert output(ran) == ""
    assert ran.job()[0] == "COMPLETED"


# What steps find in their environment.


def test_a_srun_of_its_own_has_what_the_controller_gave_it() -> None:
    """Partition and cpus are those of the allocation, whatever was asked for."""
    line = "srun -N2 -w n[1-2] bash -c 'echo $SLURM_JOB_PARTITION $SLURM_JOB_CPUS_PER_NODE'"
    ran = run(f"timeline: [{{at: 0s, as: alice, run: {line!r}}}]\n", cluster=CLUSTER)
    assert ran.result.commands[0].stdout == "debug 2(x2)\n" * 2


def test_a_batch_script_has_what_its_sruns_read() -> None:
    """How many tasks each node is to have, and how they lie."""
    names = "TASKS_PER_NODE DISTRIBUTION DIST_PLANESIZE NTASKS_PER_NODE CPUS_PER_TASK NTASKS"
    shown = "echo " + " ".join(f"$SLURM_{name}" for name in names.split())
    shape = "-w n[1-3] -N3 -n6 --ntasks-per-node=2 -c1 -m plane=2"
    assert output(script(shown, options=shape)) == "2(x3) plane 2 2 1 6\n"
    assert output(script(shown, options="-w n[1-3] -N3 -n5")) == "2(x2),1 5\n"
    assert output(script(shown, options="-w n[2-3] -N2")) == "2,4\n"


# Where tasks lie.

A4 = [
    ("block", {"n1": [0, 1], "n2": [2, 3], "n3": [4, 5], "n4": [6, 7]}),
    ("cyclic", {"n1": [0, 4], "n2": [1, 5], "n3": [2, 6], "n4": [3, 7]}),
    ("plane=1", {"n1": [0, 4], "n2": [1, 5], "n3": [2, 6], "n4": [3, 7]}),
    ("plane=2", {"n1": [0, 1], "n2": [2, 3], "n3": [4, 5], "n4": [6, 7]}),
    (
        "arbitrary -w n4,n4,n1,n2,n3,n3,n1,n2",
        {"n1": [2, 6], "n2": [3, 7], "n3": [4, 5], "n4": [0, 1]},
    ),
]


@pytest.mark.parametrize(("how", "expected"), A4)
@pytest.mark.parametrize("where", ["own", "job", "step"])
def test_eight_tasks_on_four_nodes(how: str, expected: dict[str, list[int]], where: str) -> None:
    """As recorded, whether srun allocates, or the job says how tasks lie, or the step."""
    shape = "-N4 -n8 --ntasks-per-node=2"
    if where == "own":
        line = f"srun {shape} -m {how} ./ten"
        ran = typed(f"0s alice {line}", cluster=CLUSTER)
    elif where == "job":
        ran = script("srun ./ten", options=f"{shape} -m {how}")
    else:
        ran = script(f"srun -m {how} ./ten", options=shape)
    assert ranks(ran, "1.0") == expected
    assert ran.job()[0] == "COMPLETED"


def test_relative_places_a_step_further_on() -> None:
    """-r counts the nodes of the job, from 0."""
    ran = script("srun -r1 -N1 -n1 ./ten", "srun -r1 -n1 ./ten", options="-w n[2-4] -N3 -n3")
    assert list(ranks(ran, "1.0")) == ["n3"]
    assert list(ranks(ran, "1.1")) == ["n3"]


def test_a_small_step_takes_nodes_that_no_other_step_uses() -> None:
    """As long as there are enough of them; else it shares the job's first nodes."""
    ran = script(
        *["srun -N1 -n1 ./ten &\n    sleep 1"] * 4,
        "srun -N1 -n1 -w n2 ./ten &",
        "srun -N2 -n2 -x n1 ./ten",
        options="-w n[1-3] -N3 -n3",
    )
    found = [list(ranks(ran, f"1.{number}")) for number in range(6)]
    assert found == [["n1"], ["n2"], ["n3"], ["n1"], ["n2"], ["n2", "n3"]]


def test_arbitrary_takes_its_tasks_from_the_list() -> None:
    """As many as hosts are named; a step has only the nodes that are."""
    ran = script("srun -m arbitrary -w n2,n1,n2 ./ten")
    assert ranks(ran, "1.0") == {"n1": [1], "n2": [0, 2]}


# What was recorded of eight tasks on four nodes of four cpus, whose job has 4, 2, 1 and 1 of them.

_BLOCK = [[0, 1, 2, 3], [4, 5], [6], [7]]
_CYCLIC = [[0, 4, 6, 7], [1, 5], [2], [3]]
_PAIRS = [[0, 1], [2, 3], [4, 5], [6, 7]]
_ROUNDS = [[0, 4], [1, 5], [2, 6], [3, 7]]


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", _BLOCK),
        ("-m block", _BLOCK),
        ("-m cyclic", _CYCLIC),
        ("--ntasks-per-node=2", _PAIRS),
        ("--ntasks-per-node=2 -m cyclic", _ROUNDS),
        ("--ntasks-per-node=2 -m plane=1", _ROUNDS),
        ("--ntasks-per-node=2 -m plane=2", _PAIRS),
    ],
)
def test_tasks_lie_on_the_cpus_of_the_job_as_recorded(
    options: str, expected: list[list[int]], model: str
) -> None:
    """With cons_tres a job has one cpu of each node first, and then fills node after node."""
    ran = typed(
        f"1s alice srun -N4 -n8 {options} sleep 1",
        cluster="slurm_conf: {SelectType: select/cons_tres}\n"
        'nodes: [{name: "n[1-4]", cpus: 4}]\n'
        'partitions: [{name: debug, nodes: "n[1-4]"}]\nusers: {alice: 1001}\n',
        model=model,
    )
    ranks: dict[str, list[int]] = {}
    for event in ran.all("switch_p_job_attach"):
        assert event.args is not UNSET
        ranks.setdefault(str(event.node), []).append(event.args["rank"])
    assert [sorted(ranks[node]) for node in sorted(ranks)] == expected


def test_a_step_from_outside_belongs_to_the_run_the_job_is_in() -> None:
    """Its node finds it among those of that run when it registers again after a cut."""
    ran = typed(
        "0s alice sbatch -w n1 --wrap 'sleep 1000'",
        "5s alice scontrol requeue 1",
        "200s alice srun --jobid=1 sleep 100 | exit: 0",
        "{at: 205s, fault: {cut: [slurmctld, n1], for: 30s}}",
        head="slurm_conf: {SlurmdTimeout: 60, ReturnToService: 1}\n",
    )
    assert wrong(ran) == []
    assert ran.all("MESSAGE_NODE_REGISTRATION_STATUS", phase="receive")[-1].time_us > 205_000_000
    assert {state for state, _ in reasons(ran).values()} == {"COMPLETED"}


@pytest.mark.parametrize("others", [0, 3, 4])
def test_a_srun_that_is_not_woken_asks_again_after_two_minutes_and_its_pids_last_digit(
    others: int,
) -> None:
    """In seconds, so that those of one script do not ask all at once; until it is woken."""
    more = "true & " * others
    steps = "srun -n4 --exclusive sleep 300 & sleep 1; srun -n4 --exclusive true; wait"
    ran = run(f"timeline: [{{at: 0s, as: alice, run: \"sbatch -n4 --wrap '{more}{steps}'\"}}]\n")
    _, *asked = ran.all("REQUEST_JOB_STEP_CREATE", phase="send")
    assert len(asked) == 4
    digit = int(str(asked[0].pid)) % 10
    apart = [after.time_us - before.time_us for before, after in pairwise(asked)]
    assert [each // 1_000_000 for each in apart[:2]] == [120 + digit] * 2
