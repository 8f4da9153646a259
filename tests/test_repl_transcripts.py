"""Sessions kept as files: what was typed, and what was printed.

`--rewrite-golden` writes what is printed anew; its diff is read in review.
"""

import subprocess
from pathlib import Path

import pytest

from simctl.repl.fronts import read_script
from simctl.repl.start import compare
from tests.repl import Held, repl_command

FOLDER = Path(__file__).parent / "transcripts"
TRANSCRIPTS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_comes_true(path: Path, request: pytest.FixtureRequest) -> None:
    """Typing the same lines prints the same."""
    text = path.read_text(encoding="utf-8")
    found = Held(*read_script(text)).out.getvalue()
    if request.config.getoption("--rewrite-golden"):
        path.write_text(found, encoding="utf-8")
        return
    assert compare(text, found, path.name) == []


@pytest.mark.parametrize("name", ["back", "session"])
def test_a_pipe_gives_the_same(name: str) -> None:
    """Lines that come through a pipe, all at once, are done by a session that forks."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    lines = "".join(f"{line.text}\n" for line in read_script(text))
    ran = subprocess.run(repl_command(), input=lines, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert compare(text, _marked(ran.stdout, text), name) == []


def _marked(found: str, text: str) -> str:
    """Leave out comments, which a pipe repeats as if they were commands."""
    return "\n".join(line for line in found.splitlines() if not line.startswith("> #"))


def test_check_compares_a_script_with_its_outputs(tmp_path: Path) -> None:
    """`--check` is silent where all came true, and tells a difference with status 1."""
    path = tmp_path / "session.txt"
    command = repl_command("--script", str(path), "--check")
    path.write_text("> step\n    1      0:00:00 slurmctld init checkpoint/none rc=1\n")
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "-    1      0:00:00 slurmctld init checkpoint/none rc=1" in ran.stdout
    path.write_text("# a comment\n> step\n    1      0:00:00 slurmctld init checkpoint/none rc=0\n")
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
