"""What people read: terminals obey none of it, and whoever does not listen breaks nothing."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from simctl.cli import main
from simctl.console import Screen, visible
from simctl.status import INTERRUPTED, OK, WRONG_INPUT
from tests.repl import Held

ODD = "a\x1b[2J\x07\x9b31m\x7f\r\u00e9\u4e2d\U0001f600"
SHOWN = "a\\u001b[2J\\u0007\\u009b31m\\u007f\\u000d\u00e9\u4e2d\U0001f600"
SCENARIO = """\
nodes: [{name: n1}]
users: {alice: 1001}
partitions: [{name: p, nodes: n1, default: true}]
programs: {./app: {runs: 1s, output: "ODD\\n"}}
timeline:
  - {at: 0s, as: alice, run: "sbatch -J 'ODD' --wrap='srun ./app'"}
  - {at: 0s, as: alice, run: srun ./app}
  - {at: 100us, as: alice, run: squeue}
  - {at: 100us, as: alice, run: "squeue --nonsense=ODD"}
"""


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Return a scenario whose user writes sequences that a terminal would obey."""
    path = tmp_path / "odd.yaml"
    written = ODD.encode("unicode_escape").decode()
    path.write_text(SCENARIO.replace("ODD", written))
    return path


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", SHOWN),
        ("latin-1", SHOWN.replace("\u4e2d\U0001f600", "\\u4e2d\\ud83d\\ude00")),
        ("ascii", SHOWN.replace("\u00e9\u4e2d\U0001f600", "\\u00e9\\u4e2d\\ud83d\\ude00")),
    ],
)
def test_what_cannot_be_shown_stands_as_json_writes_it(encoding: str, shown: str) -> None:
    """Line ends and tabs are left; a lone surrogate, as names of files have them, fits nowhere."""
    assert visible(f"{ODD}\n\t", encoding) == f"{shown}\n\t"
    assert json.loads(f'"{visible(ODD, encoding)}"') == ODD
    assert visible("\udcff", encoding) == "\\udcff"


def test_nothing_turns_the_direction_of_a_line() -> None:
    """What a terminal then shows is not what stands there; nor does anything else end a line."""
    turns = [chr(each) for each in (*range(0x2028, 0x202F), *range(0x2066, 0x206A))]
    assert visible("".join(turns)) == "".join(f"\\u{ord(each):04x}" for each in turns)
    assert visible("\u2027\u202f\u2065\u206a") == "\u2027\u202f\u2065\u206a"


def test_colours_of_our_own_are_let_through_until_names_are_told() -> None:
    """The help of argparse has some; movements of the cursor are none."""
    below = io.StringIO()
    screen = Screen(below, must_tell=True)
    screen.write("\x1b[1;31mhelp\x1b[0m\x1b[2J\n")
    screen.colours = False
    screen.write("\x1b[1mname\n")
    assert below.getvalue() == "\x1b[1;31mhelp\x1b[0m\\u001b[2J\n\\u001b[1mname\n"


@pytest.mark.parametrize("more", [(), ("--explain",), ("--quiet",), ("--until", "1us")])
def test_a_terminal_is_told_nothing_it_would_obey(
    odd: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    """Tables, what commands print, sentences and mistakes; the trace has the names as they are."""
    trace = odd.with_suffix(".jsonl")
    assert main(["run", str(odd), "--trace", str(trace), *more]) == OK
    printed = capsys.readouterr()
    assert visible(printed.out + printed.err) == printed.out + printed.err
    if not more:
        assert "a\\u001b[2J" in printed.out
        assert "a\\u001b[2J\\u0007\u009b31m" in trace.read_text(encoding="utf-8")
        assert main(["trace", "show", str(trace)]) == OK
        shown = capsys.readouterr().out
        assert visible(shown) == shown


def test_a_session_tells_a_terminal_nothing_it_would_obey(odd: Path) -> None:
    """Its own colours are about whole lines, and stand outside of what is told."""
    held = Held("run 5s", "squeue", "where job 1", "trace", "jobs", scenario=odd)
    said = held.out.getvalue()
    assert "a\\u001b[2J" in said
    assert visible(said) == said


SIMCTL = f"{sys.executable} -m simctl"


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        ("run two_nodes --trace out.jsonl >&- 2>&-", OK, ""),
        ("run two_nodes --quiet --trace - <&- >&-", OK, ""),
        ("run nowhere 2>&-", WRONG_INPUT, ""),
        ("run nowhere 2>/dev/full", WRONG_INPUT, ""),
        ("run nowhere 2> >(true)", WRONG_INPUT, ""),
        ("run two_nodes 2>&1 | head -1", OK, "0:00:00       alice$ sbatch hello.sh"),
        ("schema > /dev/full", WRONG_INPUT, "simctl: cannot write what there is to tell: No"),
    ],
)
def test_who_does_not_listen_breaks_nothing(
    tmp_path: Path, command: str, status: int, told: str
) -> None:
    """The status is that of the command, no file becomes standard output, and nothing breaks."""
    line = f"{SIMCTL} {command}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60
    )
    assert done.returncode == status
    said = done.stdout + done.stderr
    assert said.startswith(told)
    assert bool(said) == bool(told)
    for trace in tmp_path.iterdir():
        assert trace.read_text().startswith('{"simctl_trace":')


def test_an_encoding_that_lacks_characters_is_no_fault(odd: Path) -> None:
    """They stand as in JSON; what PYTHONIOENCODING says of errors does not matter."""
    environment = os.environ | {"PYTHONIOENCODING": "ascii:strict"}
    words = [sys.executable, "-m", "simctl", "run", str(odd)]
    done = subprocess.run(words, capture_output=True, check=False, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (OK, b"")
    assert b"\\u00e9\\u4e2d\\ud83d\\ude00" in done.stdout


@pytest.mark.parametrize("module", ["simctl.cli", "argparse", "simctl.running"])
def test_ctrl_c_while_modules_are_imported_is_quiet(module: str, tmp_path: Path) -> None:
    """The command takes some milliseconds to begin, and people are fast: 130, no traceback."""
    code = f"""
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["simctl", "run", "two_nodes"]
from slurm_simctl import main
sys.exit(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (INTERRUPTED, "")
