"""`simctl explore`: what it finds, how small that becomes, and that it is the same every time."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from simctl.cli import main
from simctl.kernel.token import Token
from simctl.runners.work import CHUNK
from simctl.scenario.load import load_scenario
from simctl.scenario.model import At
from simctl.testing import run_scenario
from simctl.testing.explore.followed import Deviations, Followed
from simctl.testing.explore.plan import Plan
from simctl.testing.explore.shrink import Shrinker
from simctl.testing.explore.trial import Broken, Terms, load_text, run_trial
from simctl.testing.explore.workers import Runner
from tests.cluster import SIMCTL

FAULTY = Path(__file__).parent.parent / "scenarios" / "faulty"
PAIR = """\
# Two steps that start at one moment.
slurm_conf: {SwitchType: switch/window_race}
plugins: ["./window_race.py:WindowRace"]
nodes: [{name: n1, cpus: 2}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
timeline:
  - {at: 0s, as: alice, run: squeue}
  - {at: 1s, as: alice, run: "sbatch -n2 --wrap 'srun -n1 sleep 1 & srun -n1 sleep 1 & wait'"}
expect:
  - {count: switch_p_job_attach, is: 2}
"""
"""A smaller one of the shipped race."""


def explore(capsys: pytest.CaptureFixture[str], *words: str, status: int = 1) -> dict[str, Any]:
    """Run the command; return its JSON without the wall time."""
    assert main(["explore", *words, "--json", "--quiet"]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found.pop("wall_s") >= 0
    assert found.pop("runner").startswith("local:")
    return found


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to an empty folder, where finds of shipped scenarios are written."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def pair(in_folder: Path) -> str:
    """Write the small race into a folder."""
    (in_folder / "window_race.py").write_text((FAULTY / "window_race.py").read_text())
    (in_folder / "pair.yaml").write_text(PAIR)
    return "pair.yaml"


@pytest.mark.parametrize("first_seed", [0, 1000])
def test_the_shipped_race_is_found_within_200_schedules(first_seed: int) -> None:
    """First come, first served never shows it, under any seed."""
    path = FAULTY / "window_race.yaml"
    plan = Plan(
        path=str(path),
        texts=(path.read_text(),),
        first_seed=first_seed,
        seeds=200,
        jitter_us=4000,
        length=80,
        terms=Terms(model="guide"),
    )
    runner = Runner(plan)
    assert not runner.run(0).broken
    assert any(runner.run(number).broken for number in range(1, 200))
    for seed in range(5):
        run_scenario(path, seed=seed).assert_held()


def test_a_find_is_made_small_and_the_printed_command_repeats_it(
    in_folder: Path, pair: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One process going first at one point is enough; the token shows the same, byte for byte."""
    assert main(["run", pair, "--quiet"]) == 0
    found = explore(capsys, pair, "--workers", "1")["found"]
    assert found["deviations"]["found"] > 10
    assert found["deviations"]["left"] == 1
    assert found["timeline"] == {"found": 2, "left": 1}
    assert len(found["sentences"]) == 1
    assert Token.parse(found["token"]).deviations == 1
    small = load_scenario(in_folder / found["file"])
    assert [entry.moment for entry in small.timeline] == [At(time_us=1_000_000)]
    simctl, *words = shlex.split(found["command"])
    assert simctl == "simctl"
    assert main([*words, "--json"]) == 1
    broken = [
        each for each in json.loads(capsys.readouterr().out)["expectations"] if not each["held"]
    ]
    assert [each["text"] for each in broken] == [each["text"] for each in found["broken"]]
    assert [each["detail"] for each in broken] == [each["detail"] for each in found["broken"]]
    assert main([words[0], words[1]]) == 0


def test_what_is_found_does_not_depend_on_the_number_of_workers(
    in_folder: Path, pair: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor what is said to be covered, nor the file."""
    words = (pair, "-o", "found.yaml")
    one = explore(capsys, *words, "--workers", "1")
    assert one["schedules"] > CHUNK
    text = (in_folder / "found.yaml").read_text()
    two = explore(capsys, *words, "--workers", "2")
    assert one == two
    assert (in_folder / "found.yaml").read_text() == text


def test_what_is_wrong_always_is_found_at_once(
    in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No deviation is needed, and entries that do not matter go."""
    found = explore(capsys, "stays_able")
    assert found["schedules"] == 1
    assert found["found"]["deviations"] == {"found": 0, "left": 0}
    assert found["found"]["timeline"]["left"] < found["found"]["timeline"]["found"]
    text = Path(found["found"]["file"]).read_text()
    assert text.startswith("# Found by `simctl explore stays_able`")
    assert found["found"]["command"] in text


def test_a_find_can_be_written_into_another_folder(
    in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The paths of plugins follow; what explore wrote may be written over, nothing else may."""
    (in_folder / "finds").mkdir()
    words = ("stays_able", "-o", "finds/one.yaml")
    for _ in range(2):
        assert explore(capsys, *words)["found"]["file"] == "finds/one.yaml"
    assert main(["run", "finds/one.yaml", "--quiet"]) == 1
    (in_folder / "finds" / "one.yaml").write_text("# mine\n")
    assert main(["explore", *words]) == 2
    assert "is no find that simctl wrote" in capsys.readouterr().err


def test_what_holds_is_said_to_hold(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what was covered: some pairs of calls in both orders, most in one."""
    found = explore(capsys, "two_nodes", "--seeds", "20", "--workers", "1", status=0)
    assert found["schedules"] == 20
    assert found["found"] is None
    covered = found["covered"]
    assert 0 < covered["both_orders"] < covered["pairs"]
    by_pair = {tuple(each["pair"]): each["both_orders"] for each in covered["functions"]}
    assert by_pair["switch_p_job_attach", "switch_p_job_init"] == 0
    assert by_pair["switch_p_job_attach", "switch_p_job_attach"] > 0
    assert sum(each["pairs"] for each in covered["functions"]) == covered["pairs"]
    assert list(in_folder.iterdir()) == []


def test_keep_going_counts_all_that_break(
    in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first is made small as ever."""
    found = explore(capsys, "stays_able", "--seeds", "5", "--workers", "1", "--keep-going")
    assert (found["schedules"], found["broken"]) == (5, 5)
    assert found["found"]["seed"] == 0


def test_it_says_what_it_did_in_lines_that_fit_a_pipe(
    in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No control characters; the rate at the end, on standard error."""
    assert main(["explore", "two_nodes", "--seeds", "3", "--workers", "1"]) == 0
    printed = capsys.readouterr()
    assert "3 schedules of two_nodes.yaml, model guide, seeds 0 to 2: 0 broken" in printed.out
    assert "pairs of plugin calls" in printed.out
    assert "3 of 3 schedules" in printed.err
    assert "\r" not in printed.err
    assert "\x1b" not in printed.err


def test_what_cannot_be_repeated_is_said_to_be_so(
    in_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plugin that counts over all runs of a Python process fails once, and never again."""
    monkeypatch.setattr(sys, "calls_of_a_test", 0, raising=False)
    (in_folder / "counts.py").write_text(
        "import sys\n"
        "from simctl.plugin import SwitchPlugin\n"
        "class Counts(SwitchPlugin):\n"
        "    plugin_type = 'switch/window_race'\n"
        "    plugin_name = 'counts where no run should'\n"
        "    def switch_p_job_init(self, switch_job, uid):\n"
        "        sys.calls_of_a_test += 1\n"
        "        return -1 if sys.calls_of_a_test == 6 else 0\n"
    )
    text = PAIR.replace("window_race.py:WindowRace", "counts.py:Counts")
    (in_folder / "mine.yaml").write_text(text)
    assert main(["explore", "mine.yaml", "--seeds", "9", "--workers", "1", "--quiet"]) == 1
    assert "It could not be repeated" in capsys.readouterr().out
    assert not list(in_folder.glob("*.found.yaml"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nowhere.yaml",), "cannot read"),
        (("two_nodes", "--workers", "0"), "--workers: expected a whole number from 1 to 256"),
        (("two_nodes", "--seeds", "0"), "--seeds: expected"),
        (("two_nodes", "--seed", "-1"), "--seed: expected"),
        (("two_nodes", "--jitter", "soon"), "--jitter: "),
        (("two_nodes", "-o", "no/such/folder.yaml"), "is in no folder that there is"),
        (("two_nodes", "-o", ""), "-o: name a file"),
        (("mine.yaml",), "mine.yaml:1:"),
        (("unloadable.yaml",), "switch/nobody"),
    ],
)
def test_wrong_input_is_told(
    words: tuple[str, ...],
    says: str,
    in_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before anything is searched, with status 2."""
    (in_folder / "mine.yaml").write_text("nodes: 3\n")
    (in_folder / "unloadable.yaml").write_text(
        "slurm_conf: {SwitchType: switch/nobody}\nnodes: [{name: n1}]\n"
        "partitions: [{name: p, nodes: n1, default: true}]\n"
    )
    assert main(["explore", *words]) == 2
    printed = capsys.readouterr()
    assert says in printed.err
    assert printed.out == ""


def test_ctrl_c_leaves_no_worker_and_tells_what_was_reached(in_folder: Path) -> None:
    """Status 130, and every process of the search is gone."""
    started = subprocess.Popen(
        (*SIMCTL, "explore", "two_nodes", "--seeds", "100000", "--workers", "2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=in_folder,
    )
    deadline = time.monotonic() + 60
    while len(_session(started.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(started.pid, signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert started.returncode == 130, err
    assert "interrupted" in out
    assert "Traceback" not in err
    while _session(started.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert _session(started.pid) == []


@pytest.mark.parametrize("words", [("explore", "slow.yaml", "--seeds", "9999"), ("test", "slow")])
def test_no_worker_outlives_a_parent_that_is_killed(
    in_folder: Path, words: tuple[str, ...]
) -> None:
    """Nor one that waits for work or has a long run before it."""
    slow = PAIR.replace("./window_race.py", str(FAULTY / "window_race.py")).replace(
        "-n1 sleep 1 & srun", "-n1 sleep 2d & srun"
    )
    (in_folder / "slow").mkdir()
    (in_folder / "slow.yaml").write_text(slow)
    for number in range(400):
        (in_folder / "slow" / f"{number}.scenario.yaml").write_text(slow)
    started = subprocess.Popen(
        (sys.executable, "-m", "simctl", *words, "--workers", "2"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=in_folder,
    )
    deadline = time.monotonic() + 60
    while len(_session(started.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    started.kill()
    started.wait(timeout=60)
    while _session(started.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert _session(started.pid) == []


def _session(session: int) -> list[str]:
    """Return the processes of a session: here the parent and two workers."""
    listed = subprocess.run(
        ("ps", "-o", "pid=", "-s", str(session)), capture_output=True, text=True, check=False
    )
    return listed.stdout.split()


@pytest.mark.parametrize(
    ("second", "left"),
    [
        ("scancel 1", (0, 1)),
        ("squeue", (0,)),
        ("scontrol show job 1", (0,)),
        ("scontrol update jobid=1 comment=other", (0, 1)),
    ],
)
def test_a_find_is_made_small_to_what_breaks_in_the_same_way(
    second: str, left: tuple[int, ...]
) -> None:
    """A job that was cancelled is not made one that reached its limit, and nothing more breaks."""
    text = (
        "nodes: [{name: n1, cpus: 1}]\npartitions: [{name: debug, nodes: n1, default: true}]\n"
        "users: {alice: 1001}\ntimeline:\n"
        "  - {at: 0s, as: alice, run: sbatch -t1 --wrap 'sleep 300'}\n"
        f"  - {{at: 30s, as: root, run: {second}}}\n"
        "expect: [{job: 1, state: COMPLETED}"
        + (", {count: REQUEST_UPDATE_JOB phase=send, is: 1}" if "update" in second else "")
        + "]\n"
    )
    scenario, terms = load_text(text, Path("s.yaml")), Terms(model="guide")
    ran = run_trial(scenario, Followed(Deviations()), 0, terms)
    shrinker = Shrinker(scenario, 0, ran.broken, terms, told=lambda *_: None)
    small = shrinker.shrink(Deviations())
    assert small is not None
    assert small.entries == left
    assert small.ran.broken[0].way == ran.broken[0].way


def test_one_late_message_is_tried_as_late_as_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several that were late; with switches at calls only where there were some."""
    tried: list[Deviations] = []
    monkeypatch.setattr(Shrinker, "_holds", lambda _, given, __: tried.append(given))
    scenario = load_scenario(FAULTY / "window_race.yaml")
    broken = (Broken(kind="endless", text="never"),)
    shrinker = Shrinker(scenario, 0, broken, Terms(model="guide"), told=lambda *_: None)
    for calls in (False, True):
        tried.clear()
        late = ((1, 5), (2, 9), (3, 7))
        shrinker._best = Deviations(late=late, calls=calls)
        names = [1, 3, 1]
        shrinker._single_late(names)
        assert [(each.late, each.calls) for each in tried] == [
            (((name, 9),), switches) for name in (1, 3) for switches in (False, True)[: 1 + calls]
        ]
