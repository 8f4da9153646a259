"""What a session tells of a cluster: transcripts, help that comes true, and reasons explained."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from simctl.repl.fronts import read_script
from simctl.repl.goals import UntilTime
from simctl.repl.life import coloured
from simctl.repl.registry import COMMANDS, TOPICS
from simctl.repl.showing import WIDTH
from simctl.repl.start import compare
from simctl.repl.waiting import EXPLAINED
from simctl.wire.states import Reason
from tests.repl import Held, repl_command, trace_lines

ROOT = Path(__file__).parent.parent
TRANSCRIPTS = sorted((ROOT / "tests" / "transcripts" / "looking").glob("*.txt"))
LIFE = ROOT / "scenarios" / "life_of_a_job.yaml"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_comes_true(path: Path, request: pytest.FixtureRequest) -> None:
    """Typing the same lines prints the same; the first line names a scenario and a model."""
    text = path.read_text(encoding="utf-8")
    _, scenario, model = text.partition(":")[0].split()
    found = Held(*read_script(text), scenario=ROOT / scenario, model=model).out.getvalue()
    long = [line for line in found.splitlines() if len(line) > WIDTH]
    assert all(line.startswith(("#", "> ", "srun: ")) for line in long)
    if request.config.getoption("--rewrite-golden"):
        path.write_text(found, encoding="utf-8")
        return
    assert compare(text, found, path.name) == []


def test_a_pipe_gives_the_same() -> None:
    """A session in a process of its own, which forks for going back, looks ahead as well."""
    text = (TRANSCRIPTS[0].parent / "where_modern.txt").read_text(encoding="utf-8")
    lines = [line.text for line in read_script(text)][1:]
    command = repl_command(str(LIFE), "--model", "modern")
    typed = "".join(f"{line}\n" for line in lines)
    ran = subprocess.run(command, input=typed, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert compare(text, ran.stdout, "where_modern") == []


def test_on_a_terminal_what_is_done_is_dim_and_what_goes_on_is_bright() -> None:
    """Colours follow the marks, over lines that belong to one row as well."""
    lines = list(coloured(["head", "+ done   * now", "+ a", "    b", "  * c", "    d", "- e"]))
    assert lines[2:] == [("+ a", "2"), ("    b", "2"), ("  * c", "1"), ("    d", "1"), ("- e", "")]


def test_looking_changes_nothing() -> None:
    """Whatever is looked at, and however far ahead, the trace is the same."""
    looks = ("where job 1", "why job 1", "procs", "timeline", "changed", "explain init", "trace")
    lines = ("until switch_p_job_init", "run 30s", "until job 1 COMPLETING", "run 1m")
    plain = Held(*lines, scenario=LIFE)
    looked = Held(*(each for line in lines for each in (line, *looks)), scenario=LIFE)
    assert trace_lines(looked.session) == trace_lines(plain.session)
    assert len(looked.said) > len(plain.said)


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_what_was_ahead_is_what_comes(model: str) -> None:
    """All that `where` has drawn as ahead is drawn as done once it is over, in the same order."""
    ahead = Held("until job 1 PENDING", "where job 1", scenario=LIFE, model=model)
    over = Held("run 1h", "where job 1", scenario=LIFE, model=model)
    assert _drawn(ahead) == _drawn(over)


def _drawn(held: Held) -> list[str]:
    """Return the items of a drawing, without its marks."""
    text = "\n".join(held.said).partition("types anything")[2].partition("purged")[0]
    lines = [line.split() for line in text.splitlines()[:-1]]
    return [word for words in lines for word in words if word not in ("+", "*", "-", ">>")]


def test_every_reason_is_explained() -> None:
    """There is no reason of squeue's that `why` could not put into words."""
    assert set(EXPLAINED) == set(Reason)


PLACES = {
    "": ("sbatch hello.sh", "run 10s"),
    "call": ("sbatch hello.sh", "tbreak switch_p_job_init", "c"),
    "breaks": ("break job_state", "sbatch hello.sh"),
}
NEEDS = {
    **dict.fromkeys(("call", "finish", "return", "delay", "p", "list", "bt", "up"), "call"),
    **dict.fromkeys(("delete", "info"), "breaks"),
    "down": "call",
}
"""Commands whose example is for a session that stands elsewhere than in the middle of a job."""
BEFORE = {
    "start": ("crash n1", "run 1s"),
    "pick": ("sbatch short.sh &", "sbatch short.sh &"),
    "down": ("up",),
}
AT_A_TERMINAL = ("edit",)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_example_of_every_command_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `help` gives as an example can be typed, and does something."""
    monkeypatch.chdir(tmp_path)
    example = COMMANDS[name].example
    held = Held(*PLACES[NEEDS.get(name, "")], *BEFORE.get(name, ()), example)
    printed = held.out.getvalue().partition(f"> {example}\n")[2]
    assert example.split()[0] in (name, *COMMANDS[name].aliases)
    if name in AT_A_TERMINAL:
        assert "only a terminal has an editor" in printed
    else:
        assert not any(line.startswith("error:") for line in printed.splitlines())


def test_help_lists_every_command_with_its_example() -> None:
    """Under some topic stands every command, with how it is written and an example."""
    said = Held(*(f"help {topic}" for topic in TOPICS)).said
    for each in COMMANDS.values():
        assert each.usage in said
        assert any(line.startswith(f"    example: {each.example}") for line in said)
        assert each.doc


@pytest.mark.parametrize(("due_us", "stops"), [(None, True), (9, False), (10, False), (11, True)])
def test_time_goes_on_through_all_that_is_due_at_a_moment(due_us: int | None, stops: bool) -> None:
    """And stops before what is due later."""
    kernel, trace = SimpleNamespace(next_due_us=due_us), SimpleNamespace(seq=3)
    clock: list[int] = []
    session = cast(
        Any,
        SimpleNamespace(world=SimpleNamespace(kernel=kernel, trace=trace), put_clock=clock.append),
    )
    told = UntilTime(time_us=10, since_seq=2).turn(session)
    assert (told is not None, clock == [10]) == (stops, stops)


def test_of_jobs_with_one_priority_those_that_came_earlier_are_before() -> None:
    """And of two priorities the higher."""
    wait = "sbatch -N1 --begin=now+1 --wrap 'sleep 5'"
    told = Held(
        *("sbatch -N2 --exclusive --wrap 'sleep 500'", *[wait.replace("--begin=now+1 ", "")] * 3),
        *(f"as root scontrol update jobid={job} priority=7{job % 2}" for job in (2, 3, 4)),
        *("run 60s", *(f"why job {job}" for job in (2, 3, 4))),
    ).said
    before = [line.partition("before it: ")[2] for line in told if "its priority is" in line]
    assert before == ["3 (priority 71)", "3 (priority 71), 2 (priority 70)"]
