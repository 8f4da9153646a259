"""`run` and `run --explain`: a story of what happened, in which nothing is told wrongly."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from simctl import cli
from simctl.kernel.events import Event
from simctl.scenario.durations import format_moment, parse_duration_us
from simctl.story.happenings import fault_text, mishaps

CLUSTER = """
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001, bob: 1002}
files:
  job.sh: |
    #!/bin/bash
    #SBATCH -N2 -n4 --ntasks-per-node=2
    srun ./app
    srun ./again
programs: {./app: {runs: 30s}, ./again: {runs: 1s}}
"""


def story(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, *words: str) -> str:
    """Return what `run` says of a scenario, in one line."""
    path = tmp_path / "here.yaml"
    path.write_text(CLUSTER + text)
    cli.main(["run", str(path), *words])
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0:00:00"),
        (1, "0:00:00.000001"),
        (999_999, "0:00:00.999999"),
        (30_000_400, "0:00:30.0004"),
        (86_399_000_000, "23:59:59"),
        (86_400_000_000, "1-00:00:00"),
    ],
)
def test_moments_have_one_form(us: int, text: str) -> None:
    """A clock, however near the beginning of the run; it is read back as it was."""
    assert format_moment(us) == text
    assert parse_duration_us(text) == us


JOB = "timeline:\n  - {at: 0s, as: alice, run: sbatch job.sh}\n"


def test_messages_and_forks_stand_between_the_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the command to the tasks, in the order of causes; what nodes do alike is one line."""
    told = story(tmp_path, capsys, JOB, "--explain")
    chain: Sequence[str] = (
        "alice$ sbatch job.sh Submitted batch job 1",
        "sbatch sends slurmctld REQUEST_SUBMIT_BATCH_JOB",
        "job 1 is RUNNING",
        "slurmctld sends slurmd on n1 REQUEST_BATCH_JOB_LAUNCH for step 1.batch",
        "slurmd on n1 forks P1, the job manager, for step 1.batch",
        "the script on n1 forks srun ./app",
        "srun ./app sends slurmctld REQUEST_JOB_STEP_CREATE",
        "slurmctld, as slurm, calls switch_p_build_jobinfo for step 1.0",
        "srun ./app sends slurmd on n[1-2] REQUEST_LAUNCH_TASKS for step 1.0",
        "P1 on n[1-2], as root, calls switch_p_job_preinit for step 1.0",
        "P1 on n[1-2] forks P2, the session manager, for step 1.0",
        "P2 on n[1-2], as root, calls switch_p_job_init for step 1.0",
        "P2 on n[1-2] forks P3, tasks 0-3",
        "tasks 0-3 (P3) on n[1-2], as alice, call switch_p_job_attach for step 1.0",
        "tasks 0-3 (P3) on n[1-2] execute ./app",
        "P2 on n[1-2], as alice, calls switch_p_job_fini for step 1.0",
        "P1 on n[1-2], as root, calls switch_p_job_postfini for step 1.0",
        "the script on n1 forks srun ./again",
        "slurmd on n[1-2], as root, calls switch_p_node_fini, as slurmd shuts down",
    )
    places = [told.find(each) for each in chain]
    assert -1 not in places
    assert places == sorted(places)


def test_bookkeeping_is_left_out_unless_it_fails_or_all_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every call is there with --explain=all, each by itself."""
    assert "switch_p_unpack_jobinfo" not in story(tmp_path, capsys, JOB, "--explain")
    everything = story(tmp_path, capsys, JOB, "--explain=all")
    assert everything.count("switch_p_unpack_jobinfo") > 4
    assert everything.count("calls switch_p_job_attach") == 8
    fail = JOB + "  - {at: 0s, fault: {fail: switch_p_unpack_jobinfo role=slurmd, times: 1}}\n"
    assert "calls switch_p_unpack_jobinfo for step 1.0, and it FAILS" in story(
        tmp_path, capsys, fail, "--explain"
    )


def test_what_a_later_step_does_alike_is_left_out_and_what_differs_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure in the second step is told, though the first made the same call."""
    told = story(tmp_path, capsys, JOB, "--explain")
    assert "switch_p_job_attach for step 1.1" not in told
    assert "--explain=all has it" in told
    fail = JOB + "  - {at: 0s, fault: {fail: switch_p_job_attach step=1.1 task=2}}\n"
    told = story(tmp_path, capsys, fail, "--explain")
    call = "task 2 (P3) on n2, as alice, calls switch_p_job_attach for step 1.1"
    assert f"{call}, and it FAILS (-1)" in told


def test_faults_and_restarts_are_part_of_the_story(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also without --explain; only daemons start again, not what they fork."""
    mishap = JOB + (
        "  - {at: 5s, fault: {crash: slurmctld}}\n"
        "  - {at: 9s, fault: {start: slurmctld}}\n"
        "  - {at: 10s, fault: {drop: REQUEST_PING, times: 9}}\n"
    )
    told = story(tmp_path, capsys, mishap)
    assert "0:00:05 fault: crash slurmctld 0:00:09 fault: start slurmctld" in told
    assert told.count("slurmctld starts again (pid ") == 1
    assert "starts again" not in story(tmp_path, capsys, JOB)


@pytest.mark.parametrize(
    ("model", "heads"),
    [
        ("guide", "P1, job manager P2, session manager P3, each of 4 tasks"),
        ("modern", "slurmstepd each of 4 tasks"),
    ],
)
def test_the_picture_has_the_processes_of_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, heads: str
) -> None:
    """It is drawn from the calls of the run; a run without a step has none."""
    told = story(tmp_path, capsys, JOB, "--explain", "--model", model)
    assert heads in told
    assert told.index("job_preinit (root)") < told.index("job_attach (alice)")
    assert told.index("job_attach (alice)") < told.index("job_postfini (root)")
    assert heads not in story(tmp_path, capsys, "timeline: []\n", "--explain", "--model", model)


def test_the_demo_fits_two_screens(capsys: pytest.CaptureFixture[str]) -> None:
    """With the four lines that the Makefile adds; wide lines are those of commands."""
    assert cli.main(["run", "two_nodes", "--explain"]) == cli.OK
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) + 5 <= 100
    assert [line for line in lines if len(line) > 80 and "scancel: error" not in line] == []


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ("", "(exit 1)"),
        (", exit: 1", "(exit 1, as the scenario expects)"),
        (", exit: 2", "(exit 1)"),
        (", expect: ESLURM_INVALID_JOB_ID", "(exit 1, as the scenario expects)"),
        (", expect: EALREADY", "(exit 1)"),
        (", expect: ESLURM_INVALID_JOB_ID, exit: 2", "(exit 1, as the scenario expects)"),
        (", expect: EALREADY, exit: 1", "(exit 1, as the scenario expects)"),
    ],
)
def test_a_failure_is_expected_by_its_status_or_its_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], expected: str, said: str
) -> None:
    """Either is enough: what else was expected is told where the expectations are."""
    told = story(
        tmp_path,
        capsys,
        f"timeline:\n  - {{at: 0s, as: alice, run: scontrol suspend 9{expected}}}\n",
    )
    assert said in told


@pytest.mark.parametrize(("until", "said"), [("5s", "(it has not ended)"), ("20s", "")])
def test_a_command_that_goes_on_at_the_end_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], until: str, said: str
) -> None:
    """Its exit status is not known; one that has ended well needs no word."""
    line = "timeline:\n  - {at: 0s, as: alice, run: srun sleep 10}\n"
    told = story(tmp_path, capsys, line, "--until", until)
    before, _, after = told.partition("alice$ srun sleep 10 ")
    assert before == "0:00:00 "
    assert after.startswith(f"{said} JOBID".lstrip())


def _hit(seq: int, name: str, **args: object) -> Event:
    return Event(seq=seq, time_us=seq, kind="fault", name=name, args=args)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"fault": "crash n1", "rpc": "X"}, "crash n1"),
        ({}, "drop"),
        ({"rpc": "X"}, "drop X"),
        ({"to": "n1", "from": "n2", "rpc": "X"}, "drop X from n2 to n1"),
        ({"from": "n2"}, "drop from n2"),
        ({"to": "n1"}, "drop to n1"),
        ({"conf": "b", "change": "a", "rpc": "X"}, "drop X a b"),
    ],
)
def test_a_fault_is_told_as_it_is_written(args: dict[str, object], text: str) -> None:
    """In words of the scenario: what it hits, whence and whereto."""
    assert fault_text(_hit(1, "drop", **args)) == text


@pytest.mark.parametrize(("times", "told"), [(4, 4), (5, 5), (6, 5), (20, 5)])
def test_of_messages_that_are_hit_the_first_are_told(times: int, told: int) -> None:
    """The fifth says that there may be more; each kind counts by itself, and faults never."""
    events = [_hit(n, "drop", rpc="X") for n in range(times)]
    lines = [line for each in mishaps(events) for line in each.lines]
    assert len(lines) == told
    assert lines[:4] == ["fault: drop X"] * 4
    assert lines[4:] == ["fault: drop X; the trace has any others"] * (told - 4)
    both = [*events, *(_hit(n, "delay", rpc="X") for n in range(100, 104))]
    assert len([*mishaps(both)]) == told + 4
    struck = [_hit(n, "fault", fault="crash n1") for n in range(times)]
    assert len([*mishaps(struck)]) == times


def test_a_daemon_starts_again_by_its_role_and_node() -> None:
    """Once for each new process; the first of another node, or of another role, is none."""

    def seen(pid: int, role: str, node: str | None = None) -> Event:
        return Event(seq=pid, time_us=0, kind="process", name="x", pid=pid, role=role, node=node)

    events = [
        *(seen(1, "slurmctld"), seen(2, "slurmd", "n1"), seen(3, "slurmd", "n2")),
        *(seen(2, "slurmd", "n1"), seen(5, "srun", "login"), seen(6, "srun", "login")),
        *(seen(7, "slurmd", "n1"), seen(7, "slurmd", "n1"), seen(2, "slurmd", "n1")),
        *(seen(8, "slurmctld"), seen(9, "slurmd", "n1"), seen(8, "slurmctld")),
    ]
    assert [line for each in mishaps(events) for line in each.lines] == [
        "slurmd on n1 starts again (pid 7, before 2)",
        "slurmctld starts again (pid 8, before 1)",
        "slurmd on n1 starts again (pid 9, before 7)",
    ]
