"""Schedules and the tokens that repeat them."""

import io
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.kernel.schedules import Fifo, InTurn, Priorities, ScheduleError, make_schedule
from simctl.kernel.token import Token, TokenError
from simctl.kernel.trace import FileSink
from simctl.scenario.load import load_scenario
from simctl.world import RunResult, World
from tests.test_turns import order

SCENARIOS = Path(__file__).parent.parent / "scenarios"
KINDS = (
    "random",
    "pct",
    "random,jitter=400us",
    "pct,depth=5,length=90,jitter=4ms,calls",
    "random,calls",
)


def run(name: str, schedule: str, seed: int = 0) -> tuple[World, RunResult, bytes]:
    """Run a shipped scenario; return also its trace, without the header."""
    world = World(load_scenario(SCENARIOS / f"{name}.yaml"), schedule=schedule, seed=seed)
    world.trace.add_sink(world.events.append)
    stream = io.BytesIO()
    sink = FileSink(stream, {})
    world.trace.add_sink(sink)
    result = world.run()
    sink.flush()
    return world, result, stream.getvalue()


def command(*words: str, hash_seed: int = 0) -> subprocess.CompletedProcess[str]:
    """Run simctl in an interpreter of its own."""
    return subprocess.run(
        (sys.executable, "-m", "simctl", *words),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
    )


@pytest.mark.parametrize("name", ["two_nodes", "background_steps", "own_plugin", "cancel"])
@pytest.mark.parametrize("schedule", KINDS)
def test_a_token_repeats_a_run_byte_for_byte(name: str, schedule: str) -> None:
    """Whatever chance chose: who went first, how late messages were, who was interrupted."""
    for seed in range(4):
        world, result, trace = run(name, schedule, seed)
        again, repeated, same = run(name, world.token, seed)
        assert same == trace
        assert again.token == world.token
        assert repeated.schedule == world.token
        assert repeated.schedule_note == ""
        assert repeated.expectations == result.expectations


def test_schedules_of_one_seed_are_one_and_of_several_differ() -> None:
    """The seed decides, and it decides something, in each kind."""
    for schedule in KINDS:
        tokens = {run("two_nodes", schedule, seed)[0].token for seed in (1, 1, 2, 3)}
        assert len(tokens) == 3, schedule


def test_priorities_keep_a_process_going_until_it_falls_behind() -> None:
    """One that has several turns takes them one after another: that is no random order."""
    orders = {tuple(order(Priorities(seed, depth=1))) for seed in range(20)}
    assert len(orders) > 10
    assert order(InTurn()) == order(Fifo())


def test_messages_are_late_only_as_jitter_says() -> None:
    """By quarters of it, between hosts, and some not at all."""
    world, _, _ = run("two_nodes", "random,jitter=400us")
    late = [extra for _, extra in Token.parse(world.token).late]
    assert set(late) == {100, 200, 300, 400}
    assert world.kernel.line is not None
    assert len(late) < world.kernel.line.messages
    assert Token.parse(run("two_nodes", "random")[0].token).late == ()


def test_a_switch_at_calls_changes_nothing_until_somebody_else_goes_first() -> None:
    """Before each plugin call there is a choice point; the process that calls is first in line."""
    text = Token(calls=True, choices=(), late=(), run=0).text()
    plain = Token(calls=False, choices=(), late=(), run=0).text()
    switched, _, one = run("two_nodes", text)
    without, _, other = run("two_nodes", plain)
    assert one == other
    assert switched.kernel.turns > without.kernel.turns


def test_calls_of_one_process_can_be_parted() -> None:
    """Another process's call comes between two that a process otherwise makes in a row."""
    found = {}
    for schedule in ("random", "random,calls"):
        world, _, _ = run("faulty/window_race", schedule, 26)
        calls = [e for e in world.events if e.name in ("switch_p_job_preinit", "switch_p_job_init")]
        pairs = pairwise(calls)
        found[schedule] = [
            one.name == "switch_p_job_preinit" and one.step == other.step for one, other in pairs
        ]
    assert all(found["random"][::2])
    assert not all(found["random,calls"][::2])


@settings(max_examples=60)
@given(
    calls=st.booleans(),
    choices=st.dictionaries(st.integers(1, 10**8), st.integers(1, 99), max_size=9),
    late=st.dictionaries(st.integers(1, 10**8), st.integers(1, 10**9), max_size=9),
    number=st.integers(0, Token.MASK),
    place=st.integers(0, 10**6),
)
def test_a_token_survives_being_written_and_no_slip_of_a_hand(
    calls: bool, choices: dict[int, int], late: dict[int, int], number: int, place: int
) -> None:
    """It is read as it was; with one sign changed it is refused."""
    token = Token(
        calls=calls,
        choices=tuple(choices.items()),
        late=tuple(late.items()),
        run=number,
    )
    text = token.text()
    assert Token.parse(text) == token
    assert text.isascii()
    assert text.isprintable()
    place %= len(text)
    slip = text[:place] + ("1" if text[place] != "1" else "2") + text[place + 1 :]
    with pytest.raises(TokenError):
        Token.parse(slip)


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        ("lifo", "there is no schedule 'lifo'"),
        ("t1-c3.1-r000000-k0000", "damaged"),
        ("t1-r000000", "damaged"),
        ("t2-r000000-k0000", "version 2"),
        ("fifo,calls", "takes no settings"),
        ("random,depth=3", "no setting 'depth'"),
        ("pct,depth=0", "above 0"),
        ("random,jitter=often", "expected a time"),
        ("random,calls=1", "takes no value"),
        ("random,calls,calls", "given twice"),
    ],
)
def test_what_is_no_schedule_is_refused(schedule: str, says: str) -> None:
    """With what would do."""
    with pytest.raises(ScheduleError, match=says):
        make_schedule(schedule, 0)


def test_a_token_of_another_run_is_told() -> None:
    """What cannot be followed ends the run; what can be, but was taken elsewhere, is noted."""
    for name, schedule in (("job_array", "random"), ("job_array", "random,jitter=4ms")):
        token = run(name, schedule)[0].token
        with pytest.raises(ScheduleError, match="does not fit this run"):
            run("hold_and_release", token)
    plain = Token(calls=False, choices=(), late=(), run=1).text()
    assert "not the run that it was taken from" in run("two_nodes", plain)[1].schedule_note


def test_the_command_line_takes_every_schedule(tmp_path: Path) -> None:
    """A token gives the trace it was taken from, whatever the hash seed; one that is foreign: 2."""
    schedule = "random,jitter=400us,calls"
    files = [str(tmp_path / name) for name in ("one", "two")]
    world, _, _ = run("two_nodes", schedule, 5)
    for file, word, hash_seed in zip(files, (schedule, world.token), (1, 2), strict=True):
        words = ("two_nodes", "--seed", "5", "--schedule", word, "--trace", file, "--quiet")
        done = command("run", *words, hash_seed=hash_seed)
        assert (done.returncode, done.stderr) == (0, "")
    traces = [Path(file).read_text().partition("\n") for file in files]
    assert traces[0][2] == traces[1][2]
    assert f'"schedule":"{world.token}"' in traces[1][0]
    done = command("run", "hold_and_release", "--schedule", world.token)
    assert done.returncode == 2
    assert "does not fit this run" in done.stderr


def test_a_run_that_stops_early_is_held_to_no_more_than_it_did() -> None:
    """With --until the rest of a token is not missed."""
    token = run("two_nodes", "random", 3)[0].token
    scenario = load_scenario(SCENARIOS / "two_nodes.yaml")
    world = World(scenario, schedule=token, seed=3, until_us=200)
    assert world.run().stopped_at_limit
