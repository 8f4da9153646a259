"""simctl repl: stepping, going back, saving; and that nothing a person types does harm."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.cli import main
from simctl.repl.registry import COMMANDS
from simctl.scenario.load import load_scenario
from simctl.status import WRONG_INPUT
from simctl.world import World
from tests.cluster import TWO_NODES, with_plugin
from tests.repl import Held, repl_command


def test_step_shows_the_next_event_and_stops_after_it() -> None:
    """`step 3` shows three events of the trace, and time stands behind the third."""
    held = Held("step 3")
    assert [line.split()[0] for line in held.said] == ["1", "2", "3"]
    assert held.world.trace.seq == 3


def test_back_and_forward_gives_the_same_bytes() -> None:
    """What happens after going back is what happened before, over acts that are kept as well."""
    lines = ("sbatch hello.sh", "run 10s", "crash n1", "run 1m", "step 30")
    straight = Held(*lines)
    there = Held(*lines, "back 10", "step 3", "back 15", "turn", "back", "step 40")
    seq = straight.world.trace.seq
    assert there.world.trace.seq >= seq
    assert there.trace_lines()[:seq] == straight.trace_lines()


def test_going_back_forgets_what_was_typed_after() -> None:
    """An act typed at an event is undone by going back to that event, and no breaks are."""
    held = Held("break job_state", "sbatch hello.sh", "c", "crash n1", "back", "info breaks")
    assert held.session.desk.acts[-1].deed["run"] == "sbatch hello.sh"
    assert "crash" not in str(held.session.desk.acts)
    assert held.said[-1].startswith("1: break job_state")


ACTS = (
    *("sbatch hello.sh", "sbatch short.sh", "srun -N1 ./app &", "scancel 1", "squeue", "sinfo"),
    *("crash n1", "start n1", "cut n2 slurmctld for 20s", "restart slurmctld for 3s"),
    *("as bob sbatch short.sh", "program ./quick runs 4s exit 2", "scontrol show job 1"),
    *("fail switch_p_job_init", "hang switch_p_job_postfini for 7s", "salloc -N2 srun ./quick"),
    *("return -1", "return 0", "delay 3s", "fail ESLURM_INTERCONNECT_FAILURE"),
    *("pick 1", "pick 2", "pick 3"),
)
MOVES = (
    *("step", "step 7", "step 40", "turn", "turn 9", "run 1s", "run 40s", "run 20m", "continue"),
    *("tbreak switch_p_job_init", "tbreak job_state", "tbreak switch_p_* if node=n2", "finish"),
    *("back", "back 5", "back 60", "back to job_state", "until switch_p_job_attach", "next job 1"),
)


@settings(max_examples=12)
@given(
    lines=st.lists(st.sampled_from((*ACTS, *MOVES)), min_size=4, max_size=18),
    schedule=st.sampled_from(("fifo", "random", "pct,calls", "random,jitter=300us")),
    model=st.sampled_from(("guide", "modern")),
)
def test_a_saved_session_gives_the_same_trace(
    lines: list[str], schedule: str, model: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The trace of a session is how the trace of the scenario begins that it was saved as."""
    path = tmp_path_factory.mktemp("saved") / "session.yaml"
    held = Held(*lines, f"save {path}", schedule=schedule, model=model, seed=3)
    assert "internal error" not in held.out.getvalue()
    world = World(load_scenario(path), schedule=schedule)
    world.trace.add_sink(world.events.append)
    result = world.run()
    repeated = [msgspec.json.encode(event) for event in world.events]
    expected = held.trace_lines()
    assert repeated[: len(expected)] == expected
    assert not [each for each in result.expectations if "comes to" in each.text]


_WORDS = st.sampled_from((*COMMANDS, "job", "1", "n1", "0", "-1", "'", '"', "{", "to", "*", "a=b"))


@settings(max_examples=60)
@given(line=st.one_of(st.text(max_size=60), st.lists(_WORDS, max_size=5).map(" ".join)))
def test_no_line_ends_a_session_or_breaks_it(
    line: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever is typed is done or told; what comes after it is typed as well."""
    if "save" in line:
        return
    text = " ".join(line.splitlines())
    held = Held("tbreak switch_p_job_init", "sbatch hello.sh", text, "as nobody here")
    assert "internal error" not in held.out.getvalue()
    assert "no user 'nobody'" in held.out.getvalue() or text.split()[0] in ("q", "quit", "exit")


_SMALL_STEPS = (
    "import sys, simctl.repl.snapshots as s; s.INTERVAL_EVENTS = 20; s._SHARE = 10**9; "
    "from simctl.cli import main; sys.exit(main(['repl']))"
)


def test_going_back_through_snapshots_is_going_back_by_repeating_all() -> None:
    """A session that forks every twenty events prints what one prints that never forks."""
    lines = (
        *("break job_state", "sbatch hello.sh", "c", "c", "srun -N1 ./app &", "step 50"),
        *("back 90", "delete", "step 30", "crash n1", "continue", "back 70", "back 3", "squeue"),
        *("back to switch_p_job_init", "salloc -N1 srun ./quick", "step 60", "back 59", "trace"),
    )
    text = "".join(f"{line}\n" for line in lines)
    command = [sys.executable, "-c", _SMALL_STEPS]
    ran = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == Held(*lines).out.getvalue()


def test_a_plugin_that_raises_ends_no_session(tmp_path: Path) -> None:
    """What a plugin raises is an event like others."""

    def switch_p_job_preinit(self, switch_job):  # type: ignore[no-untyped-def]
        self.calls.append(1 // 0)

    keys = with_plugin(tmp_path, switch_p_job_preinit)
    path = tmp_path / "s.yaml"
    path.write_text(TWO_NODES + keys)
    held = Held("srun -n1 sleep 3 &", "until plugin_error", "c", "sacct", scenario=path)
    assert "ZeroDivisionError" in held.out.getvalue()
    assert "COMPLETED" in held.said[-2]


def test_from_a_run_that_cannot_go_on_there_is_a_way_back(tmp_path: Path) -> None:
    """A plugin whose state no fork could copy ends a run, but neither the session nor the past."""
    keys = with_plugin(tmp_path, setup="self.lock = threading.Lock()")
    path = tmp_path / "s.yaml"
    path.write_text(TWO_NODES + keys)
    held = Held(
        *("srun -n1 sleep 3", "step", "squeue", "back 5", "step 4", "sinfo", "as bob"),
        scenario=path,
    )
    said = held.out.getvalue()
    assert "the run cannot go on: plugin Mine: attribute 'lock'" in said
    assert said.count("error: the run cannot go on") == 2 + said.count("> sinfo\nerror: the")
    assert held.session.desk.user == "bob"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--check"], "--check goes with --script FILE"),
        (["--script", "no/such/file"], "cannot read no/such/file"),
        (["no_such_scenario"], "cannot read the scenario"),
        (["--schedule", "lifo"], "lifo"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_told(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With status 2, and before a session begins."""
    assert main(["repl", *words]) == WRONG_INPUT
    assert message in capsys.readouterr().err


def test_a_copy_whose_run_fails_leaves_the_frozen_ones_alone(tmp_path: Path) -> None:
    """A session that forks goes back from a run that failed, fails again, and leaves."""
    keys = with_plugin(tmp_path, setup="self.lock = threading.Lock()")
    path = tmp_path / "s.yaml"
    path.write_text(TWO_NODES + keys)
    lines = ("srun -n1 sleep 3", "back 5", "c", "back 2", "c", "as bob", "quit")
    text = "".join(f"{line}\n" for line in lines)
    command = repl_command(str(path))
    ran = subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, timeout=100
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count("the run cannot go on: plugin Mine: attribute 'lock'") == 3
