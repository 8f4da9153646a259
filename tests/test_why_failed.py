"""Why jobs did not complete: what is named as the first thing that went wrong."""

import json
from pathlib import Path

import pytest

from simctl.cli import main
from simctl.kernel.procs import wait_status_text
from simctl.scenario.why_failed import NoSuchJobError, WhyFailed, held_up
from simctl.testing.runs import Run, Surroundings, make_world, run_world

SCENARIOS = Path(__file__).parent.parent / "scenarios"


def ran(scenario: str | Path) -> Run:
    """Run a scenario, a file or a text."""
    return run_world(make_world(scenario), Surroundings())


def why(run: Run, job: int) -> str:
    """Return what is said of a job."""
    reasons = {row["job_id"]: row["reason"] for row in run.jobs}
    found = WhyFailed(run.events, run.users, reasons).of(job)
    return "" if found is None else "\n".join(found.lines)


SHIPPED = [
    ("attach_fails", 1, "FAILED: switch_p_job_attach of switch/none returned -1, errno EINVAL in"),
    ("bad_credentials", 1, "FAILED: the fault corrupt of REQUEST_BATCH_JOB_LAUNCH"),
    ("bad_credentials", 2, "FAILED: the fault corrupt of REQUEST_LAUNCH_TASKS from srun@login"),
    ("bad_credentials", 3, "FAILED: the fault delay of REQUEST_LAUNCH_TASKS from srun@login"),
    ("cancel", 1, "CANCELLED: alice said `scancel 1`"),
    ("clean_start", 1, "NODE_FAIL: the fault `crash n1`"),
    ("deadline", 2, "DEADLINE: its deadline was reached"),
    ("deadline", 3, "DEADLINE: its deadline was reached"),
    ("dependencies", 1, "FAILED: the batch script ended with exit code 3, of step 1.batch on n1"),
    ("dependencies", 2, "PENDING: it waits: DependencyNeverSatisfied"),
    ("drain_and_resume", 2, "NODE_FAIL: root said `scontrol update nodename=n1 state=down"),
    ("first_come", 3, "PENDING: it waits: PartitionNodeLimit"),
    ("job_array", 4, "CANCELLED: alice said `scancel 1_3`"),
    ("node_crash", 1, "NODE_FAIL: the fault `crash n2`"),
    ("preemption", 2, "PREEMPTED: job 3 took its place"),
    ("prolog_fails", 2, "PENDING: prolog (prolog.sh) ended with exit code 1 in script on n3"),
    ("salloc", 1, "FAILED: task 1 ended with exit code 3, of step 1.1 on n2"),
    ("slurmctld_prolog", 3, "CANCELLED: prolog_slurmctld (prolog.sh) ended with exit code 1"),
    ("stage_in_fails", 2, "CANCELLED: bob said `scancel 2`"),
    ("switch_error_text", 1, "FAILED: switch_p_job_attach of switch/elan returned -1, errno 3001"),
    ("time_limit", 1, "TIMEOUT: its time limit ran out"),
    ("warning_signal", 1, "FAILED: the batch script ended with exit code 7"),
]


@pytest.mark.parametrize(("name", "job", "said"), SHIPPED)
def test_the_first_cause_is_named(name: str, job: int, said: str) -> None:
    """Of every job of the shipped scenarios that did not complete."""
    assert why(ran(SCENARIOS / f"{name}.yaml"), job).startswith(f"job {job} {said}")


def test_completed_jobs_say_nothing() -> None:
    """A run in which all went well has no lines."""
    run = ran(SCENARIOS / "two_nodes.yaml")
    assert WhyFailed(run.events, run.users).all() == []
    assert held_up(run.events) == []


def test_an_unknown_job_is_refused_with_those_there_are() -> None:
    """The error tells what to ask for."""
    run = ran(SCENARIOS / "cancel.yaml")
    with pytest.raises(NoSuchJobError, match="there is no job 9; it tells of 1, 2"):
        WhyFailed(run.events).of(9)


@pytest.mark.parametrize(
    ("status", "text"),
    [(0, "exit code 0"), (256, "exit code 1"), (9, "signal 9"), (35072, "exit code 137")],
)
def test_wait_statuses_are_told_as_exit_codes_and_signals(status: int, text: str) -> None:
    """A number such as 256 tells nobody anything."""
    assert wait_status_text(status) == text


GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("words", [[], ["job", "1"], ["1"]])
def test_the_command_reads_a_trace(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """All jobs of it, or one."""
    assert main(["why", str(GOLDEN / "attach_fails.jsonl"), *words]) == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "job 1 FAILED: switch_p_job_attach of switch/none returned -1, errno EINVAL"
    )
    assert "then srun on login ended with exit code 1" in said
    assert "the user was told: srun: error: n2: task 2: Exited with exit code 1" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["job", "9"], "there is no job 9; it tells of 1"),
        (["jb", "1"], "expected `job N` with the number of a job, got 'jb 1'"),
        (["job", "x"], "expected `job N` with the number of a job, got 'job x'"),
        (["job"], "expected `job N` with the number of a job, got 'job'"),
    ],
)
def test_what_cannot_be_told_is_an_error(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit status 2, and nothing on standard output."""
    assert main(["why", str(GOLDEN / "attach_fails.jsonl"), *words]) == 2
    out, error = capsys.readouterr()
    assert (out, said in error) == ("", True)


def test_a_trace_of_some_kinds_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What led to a failure may be among those that were left out."""
    some = tmp_path / "some.jsonl"
    words = ["run", "attach_fails", "--quiet", "--trace", str(some), "--trace-kinds", "state"]
    assert main(words) == 0
    assert main(["why", str(some)]) == 2
    assert "write it without --trace-kinds" in capsys.readouterr().err


def test_trace_why_marks_where_a_failure_began(capsys: pytest.CaptureFixture[str]) -> None:
    """In the chain of causes, or after it where it is beside it."""
    assert main(["trace", "why", str(GOLDEN / "slurmctld_prolog.jsonl"), "332"]) == 0
    marked = [line for line in capsys.readouterr().out.splitlines() if "went wrong first" in line]
    assert len(marked) == 1
    assert "rc=256 (exit code 1)" in marked[0]
    number = marked[0].split()[0]
    for seq, marks in ((number, 1), (str(int(number) - 1), 0)):
        assert main(["trace", "why", str(GOLDEN / "slurmctld_prolog.jsonl"), seq]) == 0
        assert capsys.readouterr().out.count("went wrong first") == marks
    assert main(["trace", "why", str(GOLDEN / "attach_fails.jsonl"), "141"]) == 0
    assert "with job 1 is beside this chain" in capsys.readouterr().out


def test_tests_that_break_say_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`simctl test`, whose lines pytest's report has as well, and a run's own assertions."""
    text = (SCENARIOS / "attach_fails.yaml").read_text(encoding="utf-8")
    broken = text.partition("\nexpect:")[0] + "\nexpect: [{job: 1, state: COMPLETED}]\n"
    path = tmp_path / "broken.scenario.yaml"
    path.write_text(broken, encoding="utf-8")
    assert main(["test", str(path)]) == 1
    assert "job 1 FAILED: switch_p_job_attach of switch/none" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="job 1 FAILED: switch_p_job_attach of switch/none"):
        ran(path).assert_held()


CLUSTER = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001}
timeline:
"""
LATER = [
    (
        'sbatch --wrap "srun sleep 5"',
        "{at: 0s, fault: {fail: switch_p_build_jobinfo}}",
        "FAILED: switch_p_build_jobinfo of switch/none returned -1 in slurmctld of step 1.0",
    ),
    (
        'sbatch --wrap "srun false; sleep 1; sleep 2; exit 4"',
        "",
        "FAILED: the batch script ended with exit code 4",
    ),
    ('sbatch --wrap "srun false"', "", "FAILED: task 0 ended with exit code 1, of step 1.0 on n1"),
    ('sbatch --wrap "srun false || exit 3"', "", "FAILED: task 0 ended with exit code 1"),
    ("sbatch -H --wrap true", "", "PENDING: it waits: JobHeldUser"),
    (
        'sbatch --wrap "srun sleep 60"',
        "{at: 5s, as: alice, run: scancel 1.0}",
        "FAILED: alice said `scancel 1.0`",
    ),
    ("srun -N2 sleep 60", "{at: 5s, fault: {crash: n2}}", "NODE_FAIL: the fault `crash n2`"),
    ("srun -N2 -t1 sleep 600", "", "TIMEOUT: its time limit ran out"),
]


@pytest.mark.parametrize(("command", "later", "said"), LATER)
def test_the_cause_is_not_what_followed(command: str, later: str, said: str) -> None:
    """A step that the script went on after is no cause; one that it ended with is."""
    lines = [f"- {{at: 0s, as: alice, run: {command!r}}}"] + ([f"- {later}"] if later else [])
    run = ran(CLUSTER + "".join(f"  {line}\n" for line in lines))
    assert why(run, 1).startswith(f"job 1 {said}")


def test_what_programs_read_has_the_failures_and_no_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`run --json`; and what a line says of users' texts is as in JSON."""
    path = tmp_path / "odd.yaml"
    path.write_text(CLUSTER + r'  - {at: 0s, as: alice, run: "sbatch -H --wrap \"a\eb\""}' + "\n")
    assert main(["run", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (job,) = found["failures"]
    assert (job["job"], job["over"], found["held_up"]) == (1, False, [])
    assert job["lines"][0].startswith("job 1 PENDING: it waits: JobHeldUser")
    assert r"\u001b" in job["lines"][1]
    assert "\x1b" not in why(ran(path), 1)
