"""Numbers of the command line have bounds, all in one table; what is beyond them is refused."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from simctl import numbers
from simctl.cli import main, make_parser
from simctl.numbers import Bounds
from simctl.status import NOT_HELD, OK, WRONG_INPUT, InputError

SMALL = """\
nodes: [{name: n1}]
users: {alice: 1001}
partitions: [{name: p, nodes: n1, default: true}]
"""


def options_of(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.Action]]:
    """Yield every option that takes a value, with the command it belongs to."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from options_of(below, (*words, name))
        elif action.option_strings and action.nargs != 0:
            yield words, action


OPTIONS = list(options_of(make_parser()))
NUMERIC = [(words, action) for words, action in OPTIONS if isinstance(action.type, Bounds)]


def test_every_numeric_option_stands_in_the_table() -> None:
    """An option is a text, or has bounds under its own name; lengths of time have theirs."""
    for words, action in OPTIONS:
        name = action.option_strings[-1]
        if isinstance(action.type, Bounds):
            assert action.type.option == name
        else:
            assert action.type is None, (words, name)
    assert len(NUMERIC) > 15


@pytest.mark.parametrize(
    ("words", "action"), NUMERIC, ids=[" ".join((*w, a.option_strings[-1])) for w, a in NUMERIC]
)
def test_numbers_beyond_the_bounds_are_refused(
    words: tuple[str, ...], action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    """One below the least, the least, the most, one above it, and what is no number."""
    bounds, name = action.type, action.option_strings[-1]
    assert isinstance(bounds, Bounds)
    given = ["x.py"] if words == ("plugins", "check") else ["x.yaml"]
    if isinstance(bounds.least, int):
        step: float = 1
    else:
        step = 0.0005
    for number in (bounds.least, bounds.most):
        options = make_parser().parse_args([*words, f"{name}={number}", *given])
        assert getattr(options, action.dest) == number
    wrong = [str(bounds.least - step), str(bounds.most + step)]
    for text in (*wrong, "9" * 5000, "99999999999999999999999999", "nan", "inf", "x", "", "1_0"):
        assert main([*words, f"{name}={text}", *given]) == WRONG_INPUT
        error = capsys.readouterr().err
        assert f"simctl: {name}: expected {bounds.what} from {bounds.least:,} to" in error
        assert len(error) < 300


@pytest.mark.parametrize("command", ["run", "explore", "swarm"])
def test_the_largest_seed_is_one(command: str, tmp_path: Path) -> None:
    """A scenario may have it, and so may a run; with it a search has no second one."""
    more = {"run": [], "explore": ["--seeds", "1"], "swarm": ["--runs", "1"]}[command]
    scenario = [] if command == "swarm" else ["two_nodes"]
    words = [command, *scenario, *more, "--seed", str(numbers.LARGEST), "--quiet"]
    output = ["-o", str(tmp_path / "found.yaml"), "--workers", "1"]
    assert main([*words, *([] if command == "run" else output)]) in (OK, NOT_HELD)


def test_seeds_that_follow_have_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    """A find would name a seed that no scenario may have."""
    numbers.check_last_seed(numbers.LARGEST - 9, 10)
    with pytest.raises(InputError, match=f"begin with {numbers.LARGEST - 9} at most"):
        numbers.check_last_seed(numbers.LARGEST - 8, 10)
    for words in (["swarm", "--runs", "2"], ["explore", "two_nodes", "--seeds", "2"]):
        assert main([*words, "--seed", str(numbers.LARGEST)]) == WRONG_INPUT
        assert "--seed: 2 seeds from" in capsys.readouterr().err


@pytest.mark.parametrize("seed", [-1, 0, numbers.LARGEST, numbers.LARGEST + 1])
def test_a_seed_has_one_rule(seed: int, tmp_path: Path) -> None:
    """The same numbers are seeds on the command line and in a scenario."""
    path = tmp_path / "s.yaml"
    path.write_text(SMALL)
    given = main(["run", str(path), "--quiet", f"--seed={seed}"])
    path.write_text(f"seed: {seed}\n{SMALL}")
    assert main(["run", str(path), "--quiet"]) == given
    assert (given == OK) == (0 <= seed <= numbers.LARGEST)


def test_the_most_cpus_of_a_node_can_be_run(tmp_path: Path) -> None:
    """The bounds of a replay are those of what simctl can run."""
    log = tmp_path / "log.swf"
    log.write_text("1 0 0 60 65535 -1 -1 65535 60 -1 1 1 1 1 1 1 -1 -1\n")
    words = ["run", "--swf", str(log), "--nodes", "1", "--cpus-per-node", "65535", "--quiet"]
    assert main(words) == OK
