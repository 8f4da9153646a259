"""`simctl explore --faults`: faults placed at every plugin call of a run."""

import itertools
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from simctl.cli import main
from simctl.ctld.saved.state_save import StateSave
from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern
from simctl.scenario.load import load_scenario
from simctl.scenario.model import FaultEntry, When
from simctl.testing.explore import faults
from simctl.testing.explore.coverage import Coverage
from simctl.testing.explore.search import Search
from tests.cluster import run

ONE_NODE = """\
nodes: [{name: n1, cpus: 2}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
timeline: [{at: 1s, as: alice, run: srun -n1 true}]
expect: [{never: "switch_p_job_postfini rc=-1"}]
"""


def explore(capsys: pytest.CaptureFixture[str], *words: str, status: int = 1) -> dict[str, Any]:
    """Run the command; return its JSON."""
    assert main(["explore", *words, "--faults", "--workers", "1", "--json", "--quiet"]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_bug_that_needs_a_fault_is_found_with_the_fault_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it stands in the scenario it shows nothing; the find repeats with it where it does."""
    monkeypatch.chdir(tmp_path)
    assert main(["run", "lost_claim", "--quiet"]) == 0
    found = explore(capsys, "lost_claim")
    placements = found["placements"]
    assert placements["tried"] > 50
    assert 10 < len(placements["broken"]) < placements["tried"]
    wheres = [each["where"] for each in placements["broken"]]
    assert len(set(wheres)) == len(wheres)
    assert "after bb_p_job_begin job=1 role=slurmctld" in wheres
    assert {each["fault"] for each in placements["broken"]} == {"restart slurmctld for 1s"}
    report = found["found"]
    small = load_scenario(tmp_path / report["file"])
    placed = [entry for entry in small.timeline if isinstance(entry, FaultEntry)]
    assert [type(entry.moment) for entry in placed] == [When]
    assert report["timeline"] == {"found": 3, "left": 3}
    assert main(shlex.split(report["command"])[1:]) == 1
    assert "scenario it comes from" in (tmp_path / report["file"]).read_text()
    # Each other row has a command of its own, which finds the same and one that repeats it.
    other = placements["broken"][-1]
    words = shlex.split(other["repeat"])
    assert words[:4] == ["simctl", "explore", "lost_claim", "--faults"]
    capsys.readouterr()
    alone = explore(capsys, *words[2:3], *words[4:])
    assert alone["placements"] == {"tried": 1, "broken": [other]}
    assert alone["found"]["broken"] == other["broken"]
    assert main(shlex.split(alone["found"]["command"])[1:]) == 1


def test_a_find_that_stays_large_has_the_search_that_comes_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As when the search is interrupted before the find is small."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Search, "pursue", lambda *_: None)
    words = ("lost_claim", "--faults", "--workers", "1", "--quiet", "--only", "bb_p_job_begin")
    assert main(["explore", *words]) == 1
    said = capsys.readouterr().out
    (line,) = [each for each in said.splitlines() if each.startswith("to repeat: ")]
    again = shlex.split(line.removeprefix("to repeat: simctl "))
    assert again[:3] == ["explore", "lost_claim", "--faults"]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert main([*again, "--workers", "1", "--quiet"]) == 1
    assert "\nto repeat: simctl run lost_claim.found" in capsys.readouterr().out


def test_a_place_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With one that there is."""
    assert main(["explore", "lost_claim", "--faults", "--only", "after nothing"]) == 2
    assert "no place of a fault is 'after nothing'; the first of 78 is" in capsys.readouterr().err


def test_without_faults_calls_fail_and_nodes_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each call once, each node at each call, and whoever makes a call; one breaks the expectation.

    A call of slurmd strikes it, one of the step daemon both, one of a task that besides. slurmctld
    dies after every event.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(ONE_NODE)
    found = explore(capsys, "mine.yaml")
    roles = [e.role for e in run(ONE_NODE, cluster="").events if e.kind == "plugin"]
    never = "{when: nothing, fault: {crash: slurmctld}}"
    events = run(ONE_NODE.replace("timeline: [", f"timeline: [{never}, "), cluster="").events
    strikes = {"slurmd": 1, "manager": 2, "session": 2, "task": 3}
    daemons = sum(strikes.get(str(role), 0) for role in roles)
    assert found["placements"]["tried"] == 2 * len(roles) + daemons + len(events)
    names = {each["fault"] for each in found["placements"]["broken"]}
    assert "crash slurmd@n1" not in names
    broken = [
        each
        for each in found["placements"]["broken"]
        if each["broken"][0]["text"] == "never switch_p_job_postfini rc=-1"
    ]
    assert [each["where"] for each in broken] == [
        "switch_p_job_postfini job=1 step=1.0 node=n1 role=manager"
    ]
    assert [each["fault"] for each in broken] == ["fail"]


def test_what_slurmctld_loses_as_it_dies_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its job is gone where nothing was saved: a row says after which event, and by which rule."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(ONE_NODE)
    monkeypatch.setattr(StateSave, "_write", lambda _self, *, forced: None)
    monkeypatch.setattr(faults, "_invented", lambda *_: ())  # the test above tries these
    assert main(["explore", "mine.yaml", "--faults", "--workers", "1"]) == 1
    printed = capsys.readouterr().out
    assert (
        "crash slurmctld after RESPONSE_RESOURCE_ALLOCATION job=1 node=login role=srun "
        "phase=receive peer=slurmctld\n  BROKEN lost or doubled: job 1: it was RUNNING, and "
        "slurmctld knows nothing of it (told-job-is-kept)"
    ) in printed
    crash = "{at: 3s, fault: {crash: slurmctld}}, {at: 3s, fault: {start: slurmctld}}, "
    (tmp_path / "mine.yaml").write_text(
        ONE_NODE.replace("[{at", f"[{crash}{{at").replace("n1 true", "n1 sleep 5")
    )
    assert main(["run", "mine.yaml", "--quiet"]) == 1
    assert "ordering L1 told-job-is-kept" in capsys.readouterr().err


def test_rows_say_where_and_the_sum_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scenario in which nothing can break ends with 0."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(faults, "deaths", lambda *_: ())  # which are many, and tried above
    text = ONE_NODE.replace("expect:", "options: {}\nexpect:").replace("rc=-1", "rc=7")
    (tmp_path / "mine.yaml").write_text(text)
    status = main(["explore", "mine.yaml", "--faults", "--workers", "1"])
    printed = capsys.readouterr().out
    assert "placements of faults, " in printed
    if status:
        assert "\n  BROKEN " in printed
    assert "postfini rc=7" not in printed


def test_when_can_let_some_events_pass() -> None:
    """The third event of its kind, and no other."""
    ran = run(
        "timeline:\n"
        '  - {at: 0s, as: alice, run: "srun -n4 sleep 5"}\n'
        '  - {when: "switch_p_job_attach job=1", skip: 2, as: alice, run: squeue}\n'
    )
    attached = ran.all("switch_p_job_attach")
    assert ran.first("squeue") > attached[2].seq
    commands = [each.command for each in ran.result.commands]
    assert commands.count("squeue") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--faults", "--keep-going"), "--keep-going goes without --faults"),
        (("--exhaustive", "--seeds", "3"), "--seeds goes without --exhaustive"),
        (("--exhaustive", "--workers", "3"), "--workers goes without --exhaustive"),
        (("--exhaustive", "--faults"), "--faults goes without --exhaustive"),
        (("--exhaustive", "--seconds", "0"), "--seconds: expected seconds from 0.001"),
        (("--exhaustive", "--limit", "0"), "--limit: expected a whole number from 1"),
        (("--only", "fail init"), "--only goes with --faults"),
        (("--faults", "--only", ""), "expected a row that --faults prints"),
        (("--limit", "3"), "--limit goes with --exhaustive"),
        (("--calls",), "--calls goes with --exhaustive"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what they go with."""
    assert main(["explore", "two_nodes", *words]) == 2
    assert says in capsys.readouterr().err


def _call(seq: int, name: str = "init", **fields: Any) -> Event:
    return Event(seq=seq, time_us=0, kind="plugin", name=name, **fields)


def test_a_place_is_the_one_of_its_number_that_its_pattern_matches() -> None:
    """A pattern without a phase matches no line of a call that begins."""
    events = [
        *(_call(1, phase="enter"), _call(2, enter=1), _call(3), _call(4, phase="enter", job=1)),
        *(_call(5, enter=4, job=1), _call(6, job=1), _call(7, "fini"), _call(8, job=2)),
        *(_call(9, phase="enter"), _call(10, enter=9)),
    ]
    found = faults.places(events)
    assert len(found) == len(events)
    for event, place in zip(events, found, strict=True):
        pattern = Pattern.parse(place.pattern)
        assert [each.seq for each in events if pattern.matches(each)][place.skip] == event.seq


def test_calls_that_are_too_many_are_told_by_the_most_of_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not by their sum over runs; also where workers have gathered them."""
    monkeypatch.setattr("simctl.testing.explore.coverage.MOST", 3)
    whole = Coverage()
    for runs, left_out in (([3], 0), ([5], 2), ([4, 5], 2), ([8, 3], 5), ([4], 5)):
        part = Coverage()
        for count in runs:
            calls = [_call(seq, job=seq) for seq in range(count)]
            whole.add(calls)
            part.add(calls)
        assert whole.left_out == left_out
        merged = Coverage()
        merged.merge(part.packed())
        merged.merge(part.packed())
        assert merged.left_out == max(0, max(runs) - 3)


@pytest.mark.parametrize("counts", [*itertools.permutations((3, 4, 9))])
def test_what_workers_left_out_does_not_depend_on_who_is_done_last(
    monkeypatch: pytest.MonkeyPatch, counts: tuple[int, ...]
) -> None:
    """The most of any run, whichever is merged first."""
    monkeypatch.setattr("simctl.testing.explore.coverage.MOST", 3)
    merged = Coverage()
    for count in counts:
        part = Coverage()
        part.add([_call(seq, job=seq) for seq in range(count)])
        merged.merge(part.packed())
    assert merged.left_out == 6
