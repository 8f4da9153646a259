"""Stopping signals: what is stopped does nothing until SIGCONT; SIGKILL ends it all the same."""

import pytest

from tests.cluster import Ran, run
from tests.entries import args, states, typed

PROGRAMS = """\
programs:
  ./app: {runs: 20s, output: "done\\n"}
  ./deaf: {runs: 20s, on_signal: {TSTP: ignore, TERM: ignore}}
  ./wakes: {runs: 20s, on_signal: {CONT: 3}}
  ./forever: {runs: forever}
"""


def signalled(job: str, *entries: str, files: str = "") -> Ran:
    """Run a command at 0 s, and others written ``SECONDS COMMAND`` at their time."""
    lines = [f"  - {{at: 0s, as: alice, run: {job!r}}}\n"]
    for entry in entries:
        at, command = entry.split(" ", 1)
        lines.append(f"  - {{at: {at}s, as: alice, run: {command!r}}}\n")
    return run(PROGRAMS + files + "timeline:\n" + "".join(lines))


def end(ran: Ran) -> float:
    """Return when the job ended, in seconds, to a hundredth."""
    return round(ran.result.rows[0].end_us / 1e6, 2)


# Programs of steps.


@pytest.mark.parametrize("stop", ["STOP", "TSTP", "TTIN", "TTOU"])
def test_a_stopped_program_ends_later_by_as_long_as_it_was_stopped(stop: str) -> None:
    """Five seconds, then thirty in which nothing happens, then fifteen."""
    ran = signalled("srun ./app", f"5 scancel -s {stop} 1", "35 scancel -s CONT 1")
    assert ran.result.commands[0].stdout == "done\n"
    assert end(ran) == 50.0


def test_a_program_that_ignores_sigtstp_is_stopped_by_sigstop_alone() -> None:
    """Nothing can catch SIGSTOP."""
    ran = signalled("srun ./deaf", "5 scancel -s TSTP 1", "10 scancel -s STOP 1",
                    "15 scancel -s CONT 1")  # fmt: skip
    assert end(ran) == 25.0


def test_two_stops_are_undone_by_one_cont() -> None:
    """It is stopped, however often."""
    ran = signalled("srun ./app", "5 scancel -s STOP 1", "9 scancel -s TSTP 1",
                    "15 scancel -s CONT 1")  # fmt: skip
    assert end(ran) == 30.0


def test_other_signals_reach_a_stopped_program_once_it_is_continued() -> None:
    """SIGTERM is kept; SIGCONT then lets it be taken."""
    ran = signalled("srun ./app", "5 scancel -s STOP 1", "9 scancel -s TERM 1",
                    "15 scancel -s CONT 1")  # fmt: skip
    assert ran.job() == ("FAILED", "0:15", "JobLaunchFailure")
    assert end(ran) == 15.0


@pytest.mark.parametrize(
    ("signal", "written"), [("TERM", ""), ("USR1", ""), ("HUP", ""), ("USR2", "late\n")]
)
def test_a_program_that_a_signal_ends_writes_nothing_more(signal: str, written: str) -> None:
    """By itself, or because the program exits on it; one that goes on writes at its end."""
    signals = "on_signal: {USR1: 3, HUP: 0, USR2: ignore}"
    ran = typed(
        "0 alice srun ./late",
        f"5 alice scancel -s {signal} 1.0",
        head=f'programs: {{./late: {{runs: 20s, output: "late\\n", {signals}}}}}\n',
    )
    assert ran.result.commands[0].stdout == written


def test_a_stopped_program_is_killed_at_once() -> None:
    """SIGKILL waits for nobody."""
    ran = signalled("srun ./forever", "5 scancel -s STOP 1", "9 scancel -s KILL 1.0")
    assert end(ran) == 9.0
    assert ran.job() == ("FAILED", "0:9", "JobLaunchFailure")


def test_a_program_that_catches_sigcont_does_so_when_it_is_continued() -> None:
    """The signal does both."""
    ran = signalled("srun ./wakes", "5 scancel -s STOP 1", "9 scancel -s CONT 1")
    assert end(ran) == 9.0
    assert ran.result.commands[0].exit == 3


def test_the_end_of_a_job_wakes_what_is_stopped() -> None:
    """scancel: SIGCONT, then SIGTERM."""
    ran = signalled("sbatch --wrap 'srun ./app'", "5 scancel -s STOP 1", "9 scancel 1")
    assert ran.job() == ("CANCELLED", "0:15", "None")


# The flag.


def test_a_job_that_is_stopped_shows_it_and_keeps_its_nodes() -> None:
    """RUNNING|STOPPED, until SIGCONT."""
    ran = signalled("sbatch --wrap 'srun ./app'", "5 scancel -s STOP 1", "9 scancel -s CONT 1")
    assert states(ran)[1:] == [
        *("RUNNING", "RUNNING|STOPPED", "RUNNING", "COMPLETED|COMPLETING", "COMPLETED")
    ]
    idle = [e.time_us for e in ran.all("node_state") if args(e)["to"] == "IDLE"]
    assert idle == [100, 100, pytest.approx(24e6, abs=1e4)]


def test_a_job_that_somebody_has_stopped_is_no_stall() -> None:
    """It waits for whoever stopped it."""
    ran = signalled("sbatch --wrap 'srun ./app'", "5 scancel -s STOP 1")
    assert ran.result.stalled == ()
    assert ran.job()[0] == "RUNNING|STOPPED"


@pytest.mark.parametrize(
    ("command", "after"),
    [
        ("scancel 1", "CANCELLED"),
        ("scontrol requeue 1", "COMPLETED"),
        ("scontrol update jobid=1 timelimit=1", "TIMEOUT"),
    ],
)
def test_a_stopped_job_ends_as_any_other(command: str, after: str) -> None:
    """Cancelled, requeued, or by its time limit, which goes on."""
    ran = signalled("sbatch --wrap 'srun ./app'", "5 scancel -s STOP 1", f"9 {command}")
    assert ran.job()[0] == after


# Scripts.


def test_a_stopped_script_starts_nothing_more_though_its_child_ends() -> None:
    """With --batch the script alone is stopped; the program it waits for ends meanwhile."""
    ran = signalled("sbatch --wrap 'sleep 10; sleep 10'", "5 scancel -b -s STOP 1",
                    "60 scancel -b -s CONT 1")  # fmt: skip
    assert [round(e.time_us / 1e6) for e in ran.all("exit", step="1.batch", daemon="task")] == [
        *(10, 70, 70)
    ]
    assert end(ran) == 70.0


def test_a_stopped_script_takes_its_signals_when_it_goes_on() -> None:
    """A trapped one then runs its trap."""
    ran = signalled(
        "sbatch j.sh",
        "5 scancel -b -s STOP 1",
        "9 scancel -b -s USR1 1",
        "30 scancel -b -s CONT 1",
        files="files: {j.sh: \"#!/bin/sh\\ntrap 'exit 7' USR1\\nsleep 10 &\\nwait\\n\"}\n",
    )
    assert ran.job() == ("FAILED", "7:0", "NonZeroExitCode")
    assert end(ran) == 30.0


def test_a_script_that_ignores_sigtstp_goes_on() -> None:
    """As its children do, which are started with it ignored."""
    ran = signalled(
        "sbatch j.sh",
        "5 scancel -f -s TSTP 1",
        files="files: {j.sh: \"#!/bin/sh\\ntrap '' TSTP\\nsleep 10\\n\"}\n",
    )
    assert end(ran) == 10.0


def test_a_script_that_stops_itself_waits() -> None:
    """What comes after is started when somebody continues it."""
    ran = signalled("sbatch j.sh", "30 scancel -b -s CONT 1",
                    files='files: {j.sh: "#!/bin/sh\\nkill -STOP $$\\nsleep 5\\n"}\n')  # fmt: skip
    assert end(ran) == 35.0


def test_a_background_child_is_stopped_and_continued_by_its_script() -> None:
    """Kill -STOP and kill -CONT; its end moves."""
    script = "sleep 10 &\\nkill -STOP $!\\nsleep 20\\nkill -CONT $!\\nwait\\n"
    ran = signalled("sbatch j.sh", files=f'files: {{j.sh: "#!/bin/sh\\n{script}"}}\n')
    assert end(ran) == 30.0


@pytest.mark.parametrize("schedule", ["fifo", "random"])
def test_an_srun_that_is_stopped_hears_nothing_until_it_goes_on(schedule: str) -> None:
    """Its step ends meanwhile; what it was told of that it takes in afterwards."""
    text = (
        'files: {j.sh: "#!/bin/sh\\nsrun ./app &\\nsleep 5\\nkill -STOP $!\\nsleep 50\\n'
        'kill -CONT $!\\nwait $!\\nexit $?\\n"}\n'
        "timeline: [{at: 0s, as: alice, run: sbatch j.sh}]\n"
    )
    ran = run(PROGRAMS + text, schedule=schedule)
    exited = ran.all("exit", daemon="srun")
    assert [round(e.time_us / 1e6) for e in exited] == [55]
    assert ran.job() == ("COMPLETED", "0:0", "None")
    told = ran.all("MESSAGE_TASK_EXIT", phase="receive")
    assert [round(e.time_us / 1e6) for e in told] == [55]


def test_a_stopped_srun_is_killed_at_once() -> None:
    """Its step goes on to its end without it."""
    script = "srun ./app &\\nsleep 5\\nkill -STOP $!\\nkill -TERM $!\\nkill -KILL $!\\nwait $!\\n"
    ran = signalled("sbatch j.sh", files=f'files: {{j.sh: "#!/bin/sh\\n{script}exit $?\\n"}}\n')
    assert ran.job()[:2] == ("FAILED", "137:0")


def test_a_job_behind_a_stopped_one_is_no_stall() -> None:
    """Somebody stopped that one, and has to let it go on."""
    ran = signalled("sbatch --wrap ./app", "5 scancel -f -s STOP 1", "6 sbatch -N2 --wrap true")
    assert ran.result.stalled == ()
    assert [(row.state, row.reason) for row in ran.result.rows] == [
        ("RUNNING|STOPPED", "None"),
        ("PENDING", "Resources"),
    ]
