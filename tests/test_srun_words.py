"""srun and salloc: what they say when things go otherwise, and options beyond the recordings."""

import pytest

from simctl.world import CommandResult
from tests import printed
from tests.cluster import Ran, run

FILES = """\
programs: {hostname: {output: "vm\\n"}, ./stubborn: {runs: 500s, on_signal: {TERM: ignore}}}
files:
  print.sh: "#!/bin/sh\\necho $A-$B-$HOSTNAME-$SLURM_PROCID\\n"
"""


def play(*timeline: str) -> Ran:
    """Run lines ``SECONDS COMMAND`` as alice."""
    entries = ""
    for entry in timeline:
        at, _, line = entry.partition(" ")
        quoted = line.replace("'", "''")
        entries += f"  - {{at: {at}s, as: alice, run: '{quoted}'}}\n"
    return run(f"{FILES}timeline:\n{entries}", cluster=printed.CLUSTER, model="modern")


def first(*timeline: str) -> CommandResult:
    """Return what the first command did."""
    return play(*timeline).result.commands[0]


ASKS = "srun: interrupt (one more within 1 sec to abort)"
RUNS = "srun: StepId=1.0 task 0: running"
SENT = "srun: sending Ctrl-C to StepId=1.0"
FORCED = [
    "srun: forcing job termination",
    "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.",
    "srun: error: n1: task 0: Interrupt",
]
ABORTED = "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"


def told(when: str, why: str = "") -> str:
    """Return the line of a step daemon whose tasks are ended."""
    return f"slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-20T{when}{why} ***\n"


def test_the_job_of_srun_is_cancelled() -> None:
    """Of its own job srun says that it was ended, and that it waits for the step."""
    result = first("0 srun sleep 100", "3 scancel 1")
    assert result.stderr == (
        f"srun: Force Terminated job 1\n{ABORTED}{told('23:14:10')}"
        "srun: error: n1: task 0: Terminated\n"
    )
    assert result.exit == 143


def test_the_job_of_srun_reaches_its_time_limit() -> None:
    """The same, and the step daemon says why."""
    result = first("0 srun -t 0:05 sleep 100")
    assert result.stderr == (
        f"srun: Force Terminated job 1\n{ABORTED}{told('23:15:37', ' DUE TO TIME LIMIT')}"
        "srun: error: n1: task 0: Terminated\n"
    )


def test_the_step_alone_is_cancelled() -> None:
    """Nothing is said of the job."""
    result = first("0 srun sleep 100", "3 scancel 1.0")
    assert result.stderr == (f"{ABORTED}{told('23:14:10')}srun: error: n1: task 0: Killed\n")
    assert result.exit == 137


def test_quiet_leaves_errors() -> None:
    """What is no error is not said."""
    result = first("0 srun -Q sleep 100", "3 scancel 1")
    assert result.stderr == f"{told('23:14:10')}srun: error: n1: task 0: Terminated\n"


def test_a_step_that_is_over_cannot_be_cancelled() -> None:
    """The exit status is the error's low byte, and says nothing."""
    ran = play("0 salloc -N1 bash -c 'srun true; sleep 50'", "9 scancel 1.0", "10 scancel 1.7")
    over, never = ran.result.commands[1:]
    assert (over.stderr, over.exit) == ("", 229)
    assert never.exit == 225


def test_verbose_words_of_several_nodes() -> None:
    """Each node has a line of its own, and so has each message of tasks that ended."""
    result = first("0 srun -v -N2 -n4 -c1 hostname")
    # Nodes start and end their tasks when they will.
    assert sorted(result.stderr.splitlines(keepends=True)) == sorted(
        (
            "srun: defined options\n"
            "srun: -------------------- --------------------\n"
            "srun: cpus-per-task       : 1\n"
            "srun: nodes               : 2\n"
            "srun: ntasks              : 4\n"
            "srun: verbose             : 1\n"
            "srun: -------------------- --------------------\n"
            "srun: end of defined options\n"
            "srun: jobid 1: nodes(2):`n[1-2]', cpu counts: 3(x1),1(x1)\n"
            "srun: launch/slurm: launch_p_step_launch: CpuBindType=(null type)\n"
            "srun: launching StepId=1.0 on host n1, 3 tasks: [0-2]\n"
            "srun: launching StepId=1.0 on host n2, 1 tasks: 3\n"
            "srun: route/default: init: route default plugin loaded\n"
            "srun: launch/slurm: _task_start: Node n1, 3 tasks started\n"
            "srun: launch/slurm: _task_start: Node n2, 1 tasks started\n"
            "srun: launch/slurm: _task_finish: Received task exit notification for 3 tasks of "
            "StepId=1.0 (status=0x0000).\n"
            "srun: launch/slurm: _task_finish: n1: tasks 0-2: Completed\n"
            "srun: launch/slurm: _task_finish: Received task exit notification for 1 task of "
            "StepId=1.0 (status=0x0000).\n"
            "srun: launch/slurm: _task_finish: n2: task 3: Completed\n"
        ).splitlines(keepends=True)
    )


@pytest.mark.parametrize(
    ("options", "printed_line"),
    [
        ("", "--login-0"),
        ("--export=ALL,A=1", "1--login-0"),
        ("--export=A=1,B=2", "1-2-n1-0"),
        ("--export=HOSTNAME", "--login-0"),
        ("--export=NONE", "--n1-0"),
    ],
)
def test_export_chooses_what_tasks_see(options: str, printed_line: str) -> None:
    """Slurm's own variables are always there, and a shell knows its HOSTNAME without being told."""
    assert first(f"0 srun {options} ./print.sh").stdout == f"{printed_line}\n"


def test_variables_of_srun() -> None:
    """They stand for options of which the command line says nothing."""
    result = first(
        "0 salloc -N1 -n2 bash -c 'export SLURM_LABELIO=1 SLURM_EXPORT_ENV=HOSTNAME,B=5; "
        "srun ./print.sh; export SLURM_GPU_BIND=x; srun true; echo $?'"
    )
    assert result.stdout == "0: -5-login-0\n1: -5-login-1\n255\n"
    assert "SLURM_GPU_BIND stands for an option of Slurm's" in result.stderr


def test_output_is_added_to_files() -> None:
    """With --open-mode=append; else each step empties them."""
    ran = play(
        "0 srun -o out echo one",
        "1 srun -o out --open-mode=append echo two",
        "2 srun -o new echo one",
        "3 srun -o new echo two",
    )
    disk = ran.world.disk
    assert disk.read("/home/alice/out") == "one\ntwo\n"
    assert disk.read("/home/alice/new") == "two\n"


@pytest.mark.parametrize(
    ("options", "stdout"),
    [
        ("-o none", ""),
        ("-o all", "0: x\n1: x\n"),
        ("-o 1", "1: x\n"),
        ("-o none -e all", ""),
    ],
)
def test_names_that_are_no_files(options: str, stdout: str) -> None:
    """Of --output: none, all, or the rank of one task."""
    assert first(f"0 srun -l -n2 {options} echo x").stdout == stdout


@pytest.mark.parametrize("command", ["srun", "salloc"])
def test_a_job_may_be_held_or_begin_later(command: str) -> None:
    """Whoever waits for it waits as long."""
    ran = play(
        f"0 {command} -b now+60 true",
        f"1 {command} -H true",
        "100 scontrol release 2",
        f"101 {command} -d afterok:1 --nice=5 true",
    )
    starts = [row.start_us // 1_000_000 for row in ran.result.rows]
    assert starts[0] >= 60
    assert starts[1] >= 100
    assert [each.exit for each in ran.result.commands] == [0, 0, 0, 0]


@pytest.mark.parametrize("command", ["srun", "salloc"])
def test_words_of_a_wrong_begin(command: str) -> None:
    """As sbatch has them."""
    result = first(f"0 {command} -b never true")
    assert result.exit == 255
    assert result.stderr.endswith(f"{command}: error: Invalid --begin specification\n")


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        (
            "srun --mpi=foo true",
            1,
            "srun: fatal: Invalid MPI type 'foo', --mpi=list for acceptable",
        ),
        ("srun --cpu-bind=foo true", 255, 'unrecognized --cpu-bind argument "foo"'),
        ("srun -M nope true", 1, "srun: error: No cluster 'nope' known by database."),
        ("srun --uid=bob true", 255, "srun: error: --uid only permitted by root user"),
        ("salloc -M nope true", 1, "salloc: error: No cluster 'nope' known by database."),
        ("salloc -p nope true", 1, "salloc: error: invalid partition specified: nope"),
        ("salloc -p nope true", 1, "salloc: error: Job submit/allocate failed: Invalid partition"),
        ("salloc -c 5 true", 1, "Job submit/allocate failed: Requested node configuration is not"),
        ("salloc --foo true", 255, "salloc: unrecognized option '--foo'"),
        ("salloc -t foo true", 255, "salloc: error: Invalid --time specification"),
    ],
)
def test_what_is_refused(line: str, status: int, said: str) -> None:
    """By the words of Slurm's, or as not simulated."""
    result = first(f"0 {line}")
    assert said in result.stderr
    assert result.exit == status


def test_what_a_simulated_machine_cannot_show_is_accepted() -> None:
    """Kinds of MPI, and threads of cores that have one: scripts of sites say them."""
    line = "sbatch -W --hint=nomultithread --threads-per-core=1 --ntasks-per-core=1 -o told --wrap"
    ran = play(
        f"0 {line} 'srun --mpi=pmix sh -c \"echo $SLURM_HINT $SLURM_THREADS_PER_CORE\"'",
        "9 srun --mpi=pmi2 --hint=compute_bound true",
        "9 srun --hint=memory_bound true",
        "9 srun --threads-per-core=2 true",
        "9 srun --hint=x true",
    )
    assert [each.exit for each in ran.result.commands] == [0, 0, 255, 255, 255]
    assert ran.world.site.disk.read("/home/alice/told") == "nomultithread 1\n"


def test_salloc_waits_in_the_queue() -> None:
    """It says so twice, as Slurm's does, and first of all why it can have no nodes at all."""
    result = play("0 srun -N4 --exclusive sleep 9", "1 salloc -N1 hostname").result.commands[1]
    assert result.stderr == (
        "salloc: Pending job allocation 2\n"
        "salloc: job 2 queued and waiting for resources\n"
        "salloc: job 2 has been allocated resources\n"
        "salloc: Granted job allocation 2\n"
        "salloc: Relinquishing job allocation 2\n"
    )
    assert first("0 salloc -N5 true").stderr == (
        "salloc: Requested partition configuration not available now\n"
        "salloc: Pending job allocation 1\n"
        "salloc: job 1 queued and waiting for resources\n"
    )


def test_salloc_answers_and_tests() -> None:
    """Without an allocation."""
    ran = play("0 salloc -V", "0 salloc --usage", "0 salloc --test-only -N2")
    version, usage, test = ran.result.commands
    assert version.stdout == "slurm-wlm 22.05.8\n"
    assert usage.stdout.startswith("Usage: salloc ")
    assert "using 2 processors on nodes n[1-2] in partition debug" in test.stderr
    assert test.exit == 0


def test_variables_of_salloc() -> None:
    """Of an allocation inside another: the first one's variables reach the second."""
    result = first(
        "0 salloc -N1 bash -c 'export SALLOC_PARTITION=long SALLOC_TIMELIMIT=3; "
        'salloc -Q -N1 bash -c "echo $SLURM_JOB_ID; echo \\$SLURM_JOB_PARTITION"\''
    )
    assert result.stdout.splitlines()[-1] == "long"


@pytest.mark.parametrize(
    ("options", "pauses", "status", "said"),
    [
        ("", (2, 5), 0, [ASKS, RUNS, ASKS, RUNS]),
        ("", (2, 0.9), 130, [ASKS, RUNS, SENT, *FORCED]),
        ("", (2, 1), 0, [ASKS, RUNS, ASKS, RUNS]),
        ("-X", (2,), 130, [SENT, FORCED[-1]]),
        ("--quit-on-interrupt", (2,), 130, [SENT, *FORCED]),
        ("-Q", (2, 0.5), 130, [FORCED[0], FORCED[-1]]),
    ],
)
def test_a_second_interrupt_within_a_second_ends_the_step(
    options: str, pauses: tuple[float, ...], status: int, said: list[str]
) -> None:
    """After the first srun tells how its tasks stand, unless options want something else."""
    kills = " ".join(f"sleep {each}; kill -INT $!;" for each in pauses)
    script = f"srun {options} sleep 30 & {kills} wait $!; echo ended $?"
    ran = play(f"0 sbatch -o out --wrap '{script}'")
    lines = (ran.world.disk.read("out", "/home/alice", host="n1") or "").splitlines()
    assert lines[-1] == f"ended {status}"
    assert [line for line in lines[:-1] if "slurmstepd" not in line] == said


@pytest.mark.parametrize(
    "line", ["srun -n1 true : -n1 true", "salloc -n1 : -n1 true", "sbatch -n1 : -n1 --wrap true"]
)
def test_jobs_of_several_parts_are_refused(line: str) -> None:
    """The second part would else be words of the first one's program."""
    result = first(f"0 {line}")
    assert result.exit == 255
    assert "jobs of several parts" in result.stderr


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        *(("", 2), ("-N2", 4), ("-N2-3", 4), ("-w n[1-2]", 4)),
        *(("-N3 -w n1", 6), ("-N1-3 -w n[1-2]", 4), ("-N2 -n3", 3)),
    ],
)
def test_tasks_for_each_node_are_counted_for_all_that_are_asked_for(
    options: str, tasks: int
) -> None:
    """Those that are named, or as many as -N asks for at least; -n goes before that."""
    cluster = (
        'nodes: [{name: "n[1-3]", cpus: 4}]\nusers: {alice: 1001}\n'
        'partitions: [{name: debug, nodes: "n[1-3]", default: true}]\n'
    )
    line = f"salloc {options} --ntasks-per-node=2 sh -c 'echo $SLURM_NTASKS'"
    ran = run(f"timeline: [{{at: 0s, as: alice, run: {line!r}}}]\n", cluster=cluster)
    assert ran.result.commands[0].stdout == f"{tasks}\n"


@pytest.mark.parametrize(("word", "status"), [("3", 3), ("0", 0), ("x", 0), ("²", 0)])
def test_exit_as_a_program_takes_numbers_alone(word: str, status: int) -> None:
    """Another word is none, also one whose characters Python calls digits."""
    assert first(f"0 srun exit {word}").exit == status
