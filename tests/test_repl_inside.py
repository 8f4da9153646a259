"""A session's way into a plugin, its defaults, its words; and breakpoint() everywhere."""

import subprocess
import sys
from pathlib import Path

import pytest

from simctl.repl import words
from simctl.repl.greeting import greeting
from simctl.story.page import page
from simctl.story.vocabulary import explained
from simctl.wire.states import JobBase, JobFlag, NodeBase, NodeFlag, Reason
from tests.repl import Held

PLUGIN = """
from simctl.plugin import SwitchPlugin


class Mine(SwitchPlugin):
    plugin_type = "switch/mine"
    plugin_name = "mine"

    def __init__(self):
        self.kept = [1]

    def switch_p_alloc_jobinfo(self):
        return {"key": 7}

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        STOP
        env["MINE"] = str(rank)
"""
SCENARIO = """
slurm_conf: {SwitchType: switch/mine}
plugins: ["./mine.py:Mine"]
nodes: [{name: n1, cpus: 4}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
timeline: [{at: 0s, as: alice, run: srun -n1 sleep 5}]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Return a scenario with a plugin of its own."""
    return written(tmp_path, "pass")


def written(folder: Path, stop: str) -> Path:
    """Write a scenario with a plugin that does *stop* in its call."""
    (folder / "mine.py").write_text(PLUGIN.replace("STOP", stop))
    path = folder / "s.yaml"
    path.write_text(SCENARIO)
    return path


def said(scenario: Path | None, *lines: str) -> list[str]:
    """Return what a session says to these lines."""
    held = Held(*lines, scenario=scenario) if scenario is not None else Held(*lines)
    return held.said


STOPPED = ("break switch_p_job_attach", "continue")


def test_p_evaluates_in_the_plugin_and_changes_nothing(scenario: Path) -> None:
    """Arguments bear their names; what an expression does to them, it does to copies."""
    told = said(
        scenario,
        *STOPPED,
        "p self.kept, switch_job, rank",
        "p self.kept.append(2) or env.update(X='1') or self.kept",
        "p self.kept, 'X' in env",
    )
    assert told[-3:] == ["([1], {'key': 7}, 0)", "[1, 2]", "([1], False)"]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("p", "expected an expression"),
        ("p nothing", "NameError: name 'nothing' is not defined; names here: self, switch_job"),
        ("p 1 +", "SyntaxError"),
        ("p 1/0", "ZeroDivisionError"),
        ("list 3", "`list` takes nothing"),
        ("down", "this is the process at hand"),
        ("explain nothing_known", "nothing is known of 'nothing_known'"),
        ("ls /nowhere", "alice sees no folder '/nowhere'"),
    ],
)
def test_what_cannot_be_is_told(scenario: Path, line: str, error: str) -> None:
    """And the session goes on."""
    assert error in " ".join(said(scenario, *STOPPED, line))


def test_source_way_and_parents(scenario: Path) -> None:
    """`l` shows the function, `bt` ends with the call, `up` leads to who forked the process."""
    told = said(scenario, *STOPPED, "l", "bt", "up", "p self.kept", "up", "down")
    assert "mine.py, line 15" in told
    assert any("def switch_p_job_attach" in line for line in told)
    assert any(line.startswith("here: ") and "switch_p_job_attach" in line for line in told)
    assert "slurmstepd 1.0@n1 (session)" in told[-4]
    assert told[-3] == "[1]"
    assert "(manager)" in told[-2]
    assert "(session)" in told[-1]


@pytest.mark.parametrize("line", ["p self", "l", "bt", "up"])
def test_nothing_at_hand_is_told(line: str) -> None:
    """Before anything has happened."""
    told = said(None, line)
    assert told[-1].startswith(("error: ", "`break"))


def test_the_job_at_hand_may_be_left_out(scenario: Path) -> None:
    """It is that of the call, or the only one there is or was; of several one has to be named."""
    told = said(scenario, *STOPPED, "why", "delete", "finish", "n", "where")
    assert "job 1 is RUNNING, since 0:00:00.0001" in told
    assert "job 1 (sleep), model guide: RUNNING on n1" in told
    two = said(None, "sbatch hello.sh", "sbatch short.sh", "why", "next")
    assert "which of 1, 2?" in " ".join(two)


def test_explain_takes_what_the_stop_is_about(scenario: Path) -> None:
    """The function of a call, the RPC of a message, the new state."""
    told = "\n".join(said(scenario, *STOPPED, "explain"))
    assert "switch_p_job_attach (switch)" in told
    told = "\n".join(said(scenario, "until REQUEST_LAUNCH_TASKS", "explain"))
    assert "REQUEST_LAUNCH_TASKS, an RPC: tell slurmd to run its tasks of a step." in told
    told = "\n".join(said(scenario, "until job_state state=RUNNING", "explain"))
    assert "RUNNING, a state of a job: The job has nodes." in told


def test_ls_lists_files_and_programs() -> None:
    """Of whoever types."""
    told = said(None, "ls", "ls /home/alice")
    assert told == ["hello.sh  short.sh", "programs: ./app  ./quick  ./fails", "hello.sh  short.sh"]


def test_words_complete_what_may_stand_there() -> None:
    """Files behind sbatch and cat, jobs behind scancel, states behind a job."""
    session = Held("sbatch hello.sh").session
    assert list(words.files(session, [])) == ["hello.sh", "short.sh"]
    assert "./app" in words.programs(session, ["-N2"])
    assert not list(words.programs(session, ["./app"]))
    assert list(words.job_ids(session, [])) == ["1"]
    assert list(words.until(session, ["job"])) == ["1"]
    assert "RUNNING" in words.until(session, ["job", "1"])
    assert "job" in words.until(session, [])


def test_a_greeting_names_the_cluster_the_files_and_what_to_type() -> None:
    """In lines of eighty columns."""
    lines = list(greeting(Held().session.scenario, "alice"))
    text = " ".join(lines)
    for word in ("2 nodes (n[1-2])", "debug", "hello.sh, short.sh", "`sbatch hello.sh`", "`help`"):
        assert word in text
    assert max(map(len, lines)) <= 80


def test_every_state_and_reason_is_explained() -> None:
    """But for sentences, which explain themselves."""
    states = (*JobBase, *(flag for flag in JobFlag if flag), *NodeBase)
    names = [state.name or "" for state in states]
    names += [flag.name or "" for flag in NodeFlag if flag]
    names += [reason.value for reason in Reason if " " not in reason.value]
    assert [name for name in names if not explained(name)] == []


def test_the_glossary_is_what_the_code_says() -> None:
    """`make docs` writes it."""
    path = Path(__file__).parent.parent / "docs" / "glossary.md"
    assert path.read_text(encoding="utf-8") == page()


DEBUGGED = ("run {}", "test -s {}")


@pytest.mark.parametrize("command", DEBUGGED)
def test_breakpoint_stops_without_a_watchdog(tmp_path: Path, command: str) -> None:
    """The debugger reads standard input, in time that the watchdog would not have given."""
    path = written(tmp_path, "breakpoint()")
    words = command.format(path).split()
    slow = "import time; time.sleep(1.2)"
    lines = [slow, "p 'rank', rank", "c"]
    more = ["--watchdog", "0.5"] if words[0] == "run" else []
    done = subprocess.run(
        [sys.executable, "-m", "simctl", *words, *more],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    told = done.stdout + done.stderr
    assert "('rank', 0)" in told
    assert "wall time" not in told
    assert "Exception ignored" not in told
    assert done.returncode == 0


def test_leaving_the_debugger_interrupts_the_run(tmp_path: Path) -> None:
    """As Ctrl-C does; nothing is blamed on the plugin."""
    path = written(tmp_path, "breakpoint()")
    done = subprocess.run(
        [sys.executable, "-m", "simctl", "run", str(path)],
        input="q\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 130
    assert "interrupted: this is what was reached" in done.stdout
    assert "BdbQuit" not in done.stdout + done.stderr
