"""Runs of very many jobs: what they keep, and that forgetting changes nothing."""

import hashlib
from pathlib import Path

import msgspec
import pytest

from benchmarks.soak import growth, made_jobs
from simctl.cli import main, make_parser
from simctl.ctld.state.job_rows import JobRow
from simctl.kernel.events import Event
from simctl.replay import Tally, scenario, submit_all
from simctl.running import make_world
from simctl.scenario.swf import SwfLog
from simctl.world import World


def replayed(jobs: int, nodes: int) -> tuple[World, str]:
    """Run made jobs; return the world, and what its trace comes to."""
    given = make_parser().parse_args(["run", "--swf", "made", "--nodes", str(nodes)])
    log = SwfLog(path="made", header={}, jobs=(), malformed=(), partial_lines=())
    world = make_world(scenario(log, (), given), given)
    found, encoder = hashlib.sha256(), msgspec.json.Encoder()

    def take(event: Event) -> None:
        found.update(encoder.encode(event))

    world.trace.add_sink(take)
    submit_all(world, made_jobs(jobs, nodes), 1)
    world.run()
    return world, found.hexdigest()


def test_what_is_forgotten_of_old_events_changes_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whom events were about is remembered for a while, and for as long as their jobs are there."""
    _, whole = replayed(50, 6)
    monkeypatch.setattr("simctl.kernel.causes._WINDOW", 100)
    monkeypatch.setattr("simctl.kernel.causes._GONE", 5)
    world, forgetful = replayed(50, 6)
    assert forgetful == whole
    assert len(world.ctld.subjects._of) < 1000
    assert len(world.ctld.subjects._known) < 25


def test_nothing_is_left_of_jobs_that_are_purged() -> None:
    """No table of slurmctld and no file of a node grows with the jobs that were."""
    given = make_parser().parse_args(["run", "--swf", "made", "--nodes", "10"])
    log = SwfLog(path="made", header={}, jobs=(), malformed=(), partial_lines=())
    world = make_world(scenario(log, (), given), given)
    tally = Tally()
    world.ctld.take_row = tally.take
    world.ctld.books.keep = False
    submit_all(world, made_jobs(120, 10), 1)
    result = world.run()
    assert len(tally) == world.ctld.runs_ended == 120
    assert not result.rows
    assert not world.ctld.jobs
    tables = {
        name: len(value)
        for owner in (
            world.ctld,
            *world.daemons.slurmds.values(),
            world.disk,
            world.procs,
            world.fabric,
        )
        for name in (getattr(owner, "__dict__", None) or ())
        if hasattr(value := getattr(owner, name), "__len__")
    }
    assert {name: size for name, size in tables.items() if size >= 100} == {}


def test_a_replay_keeps_rows_only_to_print_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--json has every job; the report says as much in both ways."""
    path = tmp_path / "log.swf"
    path.write_text("1 0 -1 30 2 -1 -1 2 60 -1 1 1 1 1 1 1 -1 -1\n" * 3)
    assert main(["run", "--swf", str(path), "--nodes", "4", "--json"]) == 0
    assert len(msgspec.json.decode(capsys.readouterr().out)["jobs"]) == 3
    assert main(["run", "--swf", str(path), "--nodes", "4"]) == 0
    assert "jobs by state: COMPLETED 3" in capsys.readouterr().out


def test_a_tally_gives_back_what_it_took() -> None:
    """Numbers of jobs that ran; the others are only counted."""
    tally = Tally()
    row = JobRow(
        job_id=1,
        name="x",
        user="root",
        partition="all",
        state="COMPLETED",
        reason="None",
        exit_code="0:0",
        num_nodes=2,
        nodes="n[1-2]",
        submit_us=1,
        start_us=2,
        end_us=3,
        restarts=0,
        cpus=4,
    )
    tally.take(row)
    tally.take(row)
    assert len(tally) == 2
    assert (tally[-1].submit_us, tally[1].end_us, tally[0].cpus, tally[0].nodes) == (1, 3, 4, 2)
    assert tally[:1] == [tally[0]]
    with pytest.raises(IndexError):
        tally[2]
    assert tally.states() == "jobs by state: COMPLETED 2"


def test_growth_is_measured_without_the_beginning() -> None:
    """What a cluster fills once is not held against it."""
    assert growth([(1, 100), (2, 900), (3, 1000), (4, 1010), (5, 1020)]) == pytest.approx(10)
    assert growth([(1, 100), (2, 900), (3, 1000), (4, 1000)]) == 0
