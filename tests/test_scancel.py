"""scancel, held against recordings of Slurm's: what it prints, its exit status, what it ends."""

import itertools

import pytest

from simctl.wire.command_lines import reads_input
from simctl.world import CommandResult
from tests import printed
from tests.cluster import Ran, run

JOBS = """\
  - {at: 0s, as: alice, run: "sbatch --jobid=77 -J done --wrap true"}
  - {at: 0s, as: alice, run: "sbatch --jobid=134 -J done --wrap true"}
  - {at: 9s, as: alice, run: "sbatch --jobid=130 -N3 --exclusive -J big --wrap 'sleep 500'"}
  - {at: 10s, as: alice, run: "sbatch --jobid=131 -w n4 -J one --wrap 'srun sleep 400'"}
  - {at: 11s, as: alice, run: "sbatch --jobid=119 -N4 --exclusive -J waits --wrap 'sleep 10'"}
  - {at: 12s, as: alice, run: "sbatch --jobid=125 -H -t 5 -J begin --wrap 'sleep 10'"}
  - {at: 13s, as: bob, run: "sbatch --jobid=118 -N4 --exclusive -J bobs --wrap 'sleep 10'"}
  - {at: 14s, as: alice, run: "sbatch --jobid=121 -w n4 -J arr -a '0-5%1' --wrap 'sleep 300'"}
"""
"""130 and 131 run, 131 with a step; 118, 119, 125 and the tasks of 121 wait."""


def play(*lines: str, user: str = "alice") -> Ran:
    """Run commands 10 s apart, from 30 s on, after `JOBS`."""
    entries = "".join(
        f'  - {{at: {30 + 10 * place}s, as: {user}, run: "{line}"}}\n'
        for place, line in enumerate(lines)
    )
    return run(f"timeline:\n{JOBS}{entries}", cluster=printed.CLUSTER, model="modern")


def results(ran: Ran) -> list[CommandResult]:
    """Return what the runs of scancel did."""
    return [each for each in ran.result.commands if each.command.startswith("scancel")]


def ended(line: str, user: str = "alice") -> tuple[list[str], CommandResult]:
    """Return the jobs and tasks that a command ends, and what it did."""
    ran = play(line, user=user)
    gone = []
    for row in ran.result.rows:
        if row.state == "CANCELLED":
            task = row.array_task_id
            gone.append(f"{row.array_job_id}_{task}" if row.array_job_id else str(row.job_id))
    return sorted(gone), results(ran)[0]


LINES = {
    "M_bad": "scancel -M nope 1",
    "abc": "scancel abc",
    "array_bad": "scancel 121_99",
    "array_el": "scancel 121_4",
    "array_range": "scancel 121_[2-3]",
    "b": "scancel -b -s USR1 134",
    "bad_id": "scancel 999999",
    "bad_id_Q": "scancel -Q 999999",
    "bad_id_v": "scancel -v 999999",
    "badopt": "scancel --foo",
    "badsig": "scancel -s FOO 1",
    "done": "scancel 77",
    "hetero": "scancel 999999+1",
    "i_no": "scancel -i 125",
    "me_state": "scancel --me --state=FOO",
    "name_nomatch": "scancel -n nosuchname",
    "noargs": "scancel",
    "other": "scancel 118",
    "other_user": "scancel -u bob",
    "part_bad": "scancel -p nope",
    "step_bad": "scancel 118.5",
    "two": "scancel 999999 131",
    "user_bad": "scancel -u nosuchuser",
    "v": "scancel -v 130",
}


@pytest.mark.parametrize("name", LINES)
def test_scancel_prints_what_slurms_does(name: str) -> None:
    """Standard output, standard error and exit status, each as recorded."""
    recorded = printed.read(f"scancel/{name}")
    assert recorded.line.removeprefix("echo n | ") == LINES[name]
    printed.assert_as_printed(f"scancel/{name}", results(play(LINES[name]))[0])


# Tasks that wait have one row together, without a number.
WAITING = ["119", "121_-1", "125"]


@pytest.mark.parametrize(
    ("line", "gone"),
    [
        ("scancel --me", [*WAITING, "130", "131"]),
        ("scancel -u alice -t PENDING", WAITING),
        ("scancel --user=2001 --state=pd", WAITING),
        ("scancel -t R --me", ["130", "131"]),
        ("scancel -t running -n big -u alice", ["130"]),
        ("scancel -n waits", ["119"]),
        ("scancel --jobname=waits", ["119"]),
        ("scancel -A proj1 -w n4", ["131"]),
        ("scancel -w n[1-2] -p debug --me", ["130"]),
        ("scancel -w n[3-4] --me", ["130", "131"]),
        ("scancel -q normal -t R --me", ["130", "131"]),
        ("scancel -q low --me", []),
        ("scancel -R maint --me", []),
        ("scancel --wckey=x --me", []),
        ("scancel -t PENDING 119 130", ["119"]),
        ("scancel -t PENDING 121", ["121_-1"]),
        ("scancel 121_[2-3] -n arr", ["121_2", "121_3"]),
        ("scancel 121_*", ["121_-1"]),
        ("scancel -H --ctld 119", ["119"]),
        ("scancel -i 119", []),
        ("scancel 131 119", ["119", "131"]),
        ("scancel 119 -v", ["119"]),
    ],
)
def test_filters_choose_what_is_ended(line: str, gone: list[str]) -> None:
    """All filters have to let a job through; words and filters together mean what both mean."""
    found, result = ended(line)
    assert found == gone
    assert result.exit == 0


def test_verbose_words_of_a_selection() -> None:
    """The plugins that jobs are read with come first, then a line a job; their order is chance."""
    ran = play("scancel --me -t PENDING -v")
    mine = printed.read("scancel/pend_state").stderr.splitlines()[:4]
    said = results(ran)[0].stderr.splitlines()
    assert said[:4] == mine
    assert sorted(said[4:]) == [
        f"scancel: Terminating job {name}" for name in ("119", "121_[0-5]", "125")
    ]


def test_the_last_task_that_waits_has_a_name_of_its_own() -> None:
    """As in the recording, once all others are gone."""
    ran = play("scancel 119 125 130 131 121_[0,2-5]", "scancel --me -v")
    printed.assert_as_printed("scancel/me", results(ran)[1])


def test_a_step_that_waits_is_tried_ten_times_twice() -> None:
    """A pending job is between two states for its steps: 5 s, 6 s and so on up to 14 s apart."""
    ran = play("scancel -v 119.0")
    result = results(ran)[0]
    assert result.exit == 2020 & 0xFF
    assert result.stderr.count("scancel: Job is in transistional state, retrying\n") == 20
    assert result.stderr.count("scancel: Terminating step 119.0\n") == 2
    said = "scancel: error: Kill job error on job step id 119: "
    assert result.stderr.count(said) == 2
    sent = [each.time_us for each in ran.all("REQUEST_CANCEL_JOB_STEP", phase="send")]
    pauses = [round((b - a) / 1_000_000) for a, b in itertools.pairwise(sent)]
    assert pauses[:9] == [*range(5, 14)]


def test_a_step_is_ended_and_its_job_goes_on() -> None:
    """Words of both sorts go together."""
    ran = play("scancel -v 131.0 119")
    assert results(ran)[0].stderr.splitlines()[4:] == [
        "scancel: Terminating job 119",
        "scancel: Terminating step 131.0",
    ]


def test_what_is_not_there_is_told_where_jobs_are_looked_up() -> None:
    """Unlike a job that is only named, of which nothing is said."""
    ran = play("scancel 999999.0", "scancel -Q 999999.0", "scancel -n x 77")
    lines = [(each.stderr, each.exit) for each in results(ran)]
    error = "scancel: error: Kill job error on job"
    assert lines == [
        (f"{error} step id 999999.0: Invalid job id specified\n", 1),
        ("", 1),
        (f"{error} id 77: Invalid job id specified\n", 1),
    ]


def test_signals_are_told_by_number() -> None:
    """To jobs, their scripts, and all they are."""
    ran = play("scancel -v -s USR1 130", "scancel -vb -s 9 77", "scancel -vf -s KILL 131")
    said = [each.stderr.splitlines()[0] for each in results(ran)]
    assert said == [
        "scancel: Signal 10 to job 130",
        "scancel: Signal 9 to batch job 77",
        "scancel: Signal 9 to full job 131",
    ]


def test_a_task_that_there_is_not() -> None:
    """It is no failure unless a signal was to reach it."""
    ran = play("scancel 121_99", "scancel -v 118_1", "scancel -s USR1 121_99")
    quiet, verbose, signal = results(ran)
    assert (quiet.stderr, quiet.exit) == ("", 0)
    assert "job id 118_1: Invalid job id specified" in verbose.stderr
    assert (signal.stderr, signal.exit) == ("", 2017 & 0xFF)


def test_questions_are_answered_from_standard_input() -> None:
    """Each job has one; what is neither yes nor no is asked again."""
    ran = run(
        "files:\n  j.sh: |\n    #!/bin/sh\n    scancel -i -t PENDING -u alice < answers\n"
        '  answers: "what\\nyes\\nno\\n"\n'
        'timeline:\n  - {at: 0s, as: alice, run: "sbatch -H -J one --wrap true"}\n'
        '  - {at: 0s, as: alice, run: "sbatch -H -J two --wrap true"}\n'
        '  - {at: 0s, as: alice, run: "sbatch -o out j.sh"}\n',
        cluster=printed.CLUSTER,
        model="modern",
    )
    asked = (
        "Cancel job_id=1 name=one partition=debug [y/n]? " * 2
        + "Cancel job_id=2 name=two partition=debug [y/n]? "
    )
    assert ran.world.disk.read("/home/alice/out") == asked
    assert [row.state for row in ran.result.rows[:2]] == ["CANCELLED", "PENDING"]


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        *[(line, True) for line in ("scancel -i 1", "scancel -vi", "scancel --interactive 5")],
        *[(line, False) for line in ("scancel 5", "scancel -t PENDING -u alice", "squeue")],
        *[("scontrol", True), ("scontrol -o", True), ("scontrol show job", False)],
    ],
)
def test_only_a_command_that_asks_takes_the_input_of_its_script(line: str, reads: bool) -> None:
    """In `while read id; do scancel $id; done` the rest belongs to the loop."""
    assert reads_input(line.split()) is reads


def script(*lines: str) -> str:
    """Return what a script on the first node of a job wrote to its file."""
    text = "".join(f"    {line}\n" for line in ("#!/bin/sh", *lines))
    ran = run(
        f"files:\n  j.sh: |\n{text}"
        f'timeline:\n{JOBS}  - {{at: 30s, as: alice, run: "scancel 131 121"}}\n'
        '  - {at: 40s, as: alice, run: "sbatch -w n4 -t 5 --jobid=200 -o out j.sh"}\n',
        cluster=printed.CLUSTER,
        model="modern",
    )
    return ran.world.disk.read("/home/alice/out", "/") or ""


def test_variables_stand_for_options() -> None:
    """Those of flags say true or false; the command line counts for more."""
    said = script(
        "export SCANCEL_STATE=PENDING SCANCEL_USER=alice SCANCEL_VERBOSE=true",
        "scancel -n waits",
        "export SCANCEL_STATE=FOO SCANCEL_BATCH=maybe SCANCEL_VERBOSE=false",
        "scancel -n begin",
        "scancel -n begin -t R",
    )
    assert said.splitlines() == [
        *printed.read("scancel/pend_state").stderr.splitlines()[:4],
        "scancel: Terminating job 119",
        "scancel: error: Unrecognized SCANCEL_BATCH value: maybe",
        "Unrecognized SCANCEL_STATE value: FOO",
        "Valid job states are PENDING, RUNNING, and SUSPENDED",
        "scancel: error: Unrecognized SCANCEL_BATCH value: maybe",
    ]


def test_version_and_help() -> None:
    """As every command has them."""
    ran = play("scancel -V", "scancel --help", "scancel --usage")
    version, told, usage = results(ran)
    assert version.stdout == "slurm-wlm 22.05.8\n"
    assert told.stdout.startswith("Usage: scancel [OPTIONS...]")
    assert usage.stdout == "Usage: scancel [OPTIONS...] [JOB_ID[_TASK_ID][.STEP_ID]...]\n"


@pytest.mark.parametrize("option", ["--sibling=x", "--cron"])
def test_what_is_not_built_is_refused_by_name(option: str) -> None:
    """Federations and crontabs are not simulated."""
    result = results(play(f"scancel {option} 1"))[0]
    assert "simctl does not simulate yet" in result.stderr
    assert result.exit == 1


def test_a_signal_for_an_array_of_which_a_task_is_over() -> None:
    """It goes to the others, and nothing is wrong; where all are over, that is an error."""
    text = (
        "timeline:\n"
        "  - {at: 0s, as: alice, run: \"sbatch -a 1-2 --wrap 'sleep ${SLURM_ARRAY_TASK_ID}0'\"}\n"
        "  - {at: 15s, as: alice, run: scancel -s USR1 1}\n"
        "  - {at: 45s, as: alice, run: scancel -s USR1 1}\n"
    )
    one, none = run(text, cluster=printed.CLUSTER).result.commands[1:]
    assert (one.exit, one.errno, one.stderr) == (0, "", "")
    assert none.errno == "ESLURM_ALREADY_DONE"
