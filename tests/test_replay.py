"""The replay of workload logs: a plain FCFS simulator when nothing takes time but the jobs."""

import gc
import gzip
import json
import operator
import shlex
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.make_log import make_log
from benchmarks.replaying import options
from simctl import cli
from simctl.replay import scenario, submit_all
from simctl.scenario.swf import SwfJob, SwfLog, read_swf
from simctl.world import RunResult, World
from tests.fcfs import FcfsJob, run_fcfs

NO_DELAY = ["SchedulerParameters=batch_sched_delay=0"]


def swf_job(number: int, submit: int, run: int, processors: int) -> SwfJob:
    """Return a job of a log."""
    return SwfJob(
        number=number,
        submit_s=float(submit),
        run_s=float(run),
        processors=processors,
        requested_s=None,
        user_id=number % 3,
        group_id=1,
        queue=1,
        partition=1,
        status=1,
        line=number,
    )


def replay(jobs: list[SwfJob], nodes: int, cpus: int, **more: object) -> RunResult:
    """Replay jobs without latency and scheduler delays."""
    log = SwfLog(path="log.swf", header={}, jobs=tuple(jobs), malformed=(), partial_lines=())
    given_options = options(nodes, cpus, **{"latency": "0", "conf": NO_DELAY} | more)
    world = World(scenario(log, jobs, given_options))
    submit_all(world, jobs, cpus)
    return world.run()


LOGS = st.lists(
    st.tuples(st.integers(0, 120), st.integers(0, 90), st.integers(1, 8)), min_size=1, max_size=25
)


@settings(max_examples=60)
@given(LOGS, st.sampled_from([(8, 1), (4, 2), (3, 3)]))
def test_without_delays_it_agrees_with_a_small_fcfs_simulator(
    rows: list[tuple[int, int, int]], cluster: tuple[int, int]
) -> None:
    """Latency 0 and no scheduler delay: every start and end is that of strict FCFS."""
    nodes, cpus = cluster
    rows = sorted(rows, key=operator.itemgetter(0))
    first = rows[0][0]
    jobs = [
        swf_job(place, submit, run, width)
        for place, (submit, run, width) in enumerate(rows, start=1)
    ]
    result = replay(jobs, nodes, cpus)
    wanted = run_fcfs(
        [FcfsJob(submit=submit - first, run=run, processors=width) for submit, run, width in rows],
        nodes=nodes,
        cpus_per_node=cpus,
    )
    assert [(row.start_us, row.end_us) for row in result.rows] == [
        (each.start * 1_000_000, each.end * 1_000_000) for each in wanted
    ]


def test_a_generated_log_agrees_with_the_fcfs_simulator(tmp_path: Path) -> None:
    """A longer log under load: queues build up, and the two still agree on every job."""
    path = tmp_path / "log.swf"
    path.write_text("\n".join(make_log(400, nodes=32, load=0.9, seed=3)) + "\n")
    jobs = list(read_swf(path).replay_order())
    result = replay(jobs, 32, 1)
    first_us = jobs[0].submit_us
    wanted = run_fcfs(
        [
            FcfsJob(submit=job.submit_us - first_us, run=job.run_us, processors=job.processors)
            for job in jobs
        ],
        nodes=32,
    )
    assert [row.start_us for row in result.rows] == [each.start for each in wanted]
    assert any(row.start_us > row.submit_us for row in result.rows)


def test_each_job_runs_a_step_daemon_on_each_of_its_nodes() -> None:
    """A job of k nodes has one srun step on all of them, with every plugin call of each daemon."""
    log = SwfLog(path="l", header={}, jobs=(), malformed=(), partial_lines=())
    jobs = [swf_job(1, 0, 10, 5)]
    world = World(scenario(log, jobs, options(8)))
    world.trace.add_sink(world.events.append)
    submit_all(world, jobs, 1)
    world.run()
    for name in ("switch_p_job_preinit", "switch_p_job_attach", "switch_p_job_postfini"):
        nodes = [event.node for event in world.events if event.name == name]
        assert sorted(map(str, nodes)) == ["n1", "n2", "n3", "n4", "n5"]


def test_counts_are_equal_with_the_trace_on_and_off() -> None:
    """Recording changes nothing: the same turns, calls, messages and events."""
    jobs = [swf_job(number, number * 5, 7, 1 + number % 4) for number in range(1, 30)]
    log = SwfLog(path="l", header={}, jobs=(), malformed=(), partial_lines=())
    worlds = [World(scenario(log, jobs, options(4))) for _ in range(2)]
    worlds[1].trace.add_sink(worlds[1].events.append)
    results = []
    for world in worlds:
        submit_all(world, jobs, 1)
        results.append(world.run())
    assert results[0].counts == results[1].counts
    assert len(worlds[1].events) == results[1].counts["events"]
    assert results[0].rows == results[1].rows


def _log(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "log.swf"
    path.write_text("; a comment\n" + "\n".join(lines) + "\n")
    return str(path)


GOOD = "1 0 -1 60 2 -1 -1 2 -1 -1 1 1 1 -1 1 -1 -1 -1"
USED = "2 5 -1 0 3 -1 -1 -1 -1 -1 1 1 1 -1 1 -1 -1 -1"


def test_prints_the_measures_and_the_states(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Requested processors, else used ones; zero seconds too; in lines of at most 80 columns."""
    assert cli.main(["run", "--swf", _log(tmp_path, GOOD, USED), "--nodes", "4"]) == cli.OK
    out = capsys.readouterr().out
    assert "makespan" in out
    assert "bounded slowdown" in out
    assert "jobs by state: COMPLETED 2" in out
    report = out.split("jobs by state", maxsplit=1)[0]
    assert max(map(len, report.splitlines())) <= 80


def test_json_of_two_replays_differs_in_wall_time_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twice the same command, the same object but for `wall_s`."""
    objects = []
    for _ in range(2):
        assert cli.main(["run", "--swf", _log(tmp_path, GOOD, USED), "--nodes", "4", "--json"]) == 0
        objects.append(json.loads(capsys.readouterr().out))
        del objects[-1]["wall_s"]
    assert objects[0] == objects[1]
    assert [job["num_nodes"] for job in objects[0]["jobs"]] == [2, 3]


def test_a_replay_that_breaks_off_says_how_to_repeat_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the words that say what was replayed on which cluster, each by itself."""
    words = ["--swf", _log(tmp_path, GOOD, USED), "--nodes", "2", "--cpus-per-node", "4"]
    words += ["--conf", "MinJobAge=2", "--max-turns", "9", "--limit", "1"]
    assert cli.main(["run", *words, "--quiet"]) == cli.NOT_HELD
    told = capsys.readouterr().err
    assert "simctl: ended: more than 9 turns were caused" in told
    repeat = shlex.split(told.rpartition("to repeat: simctl ")[2])
    assert repeat[repeat.index("--limit") + 1] == "1"
    assert cli.main([*repeat, "--quiet"]) == cli.NOT_HELD
    assert capsys.readouterr().err == told


def test_gz_logs_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A gzip file is read as the text in it."""
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress((GOOD + "\n").encode()))
    assert cli.main(["run", "--swf", str(path), "--nodes", "2", "--quiet"]) == cli.OK
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("lines", "words", "told"),
    [
        ((GOOD, "2 5 oops"), ["--nodes", "4"], "log.swf:3"),
        ((GOOD,), ["--nodes", "1"], "asks for 2 processors"),
        ((GOOD,), [], "--nodes N"),
        ((GOOD,), ["--nodes", "0"], "--nodes: expected a whole number from 1 to 65,536"),
        ((GOOD,), ["--nodes", "4", "--conf", "KillWait"], "KEY=VALUE"),
        ((GOOD,), ["--nodes", "4", "--conf", "KilWait=3"], "KillWait"),
        ((GOOD,), ["--nodes", "4", "--latency", "soon"], "--latency"),
        ((GOOD,), ["--nodes", "4", "--limit", "0"], "--limit"),
        ((GOOD,), ["--nodes", "4", "--explain"], "--explain"),
    ],
)
def test_what_is_wrong_is_told_with_exit_status_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    lines: tuple[str, ...],
    words: list[str],
    told: str,
) -> None:
    """A malformed line by its number, a wrong option by its name; nothing runs."""
    assert cli.main(["run", "--swf", _log(tmp_path, *lines), *words]) == cli.WRONG_INPUT
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.out == ""


def test_a_log_with_unknown_fields_runs_and_says_how_many_jobs_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, without --skip-bad; a log that knows nothing of any job is refused."""
    unknown = GOOD.replace("1 0 -1 60", "3 0 -1 -1")
    words = ["run", "--nodes", "4", "--json", "--swf"]
    assert cli.main([*words, _log(tmp_path, GOOD, unknown, unknown, USED)]) == cli.OK
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["jobs"]) == 2
    told = "2 of 4 jobs cannot be run: 2 have no run time (field 4); the first is line 3"
    assert captured.err == f"simctl: {told}\n"
    assert cli.main([*words, _log(tmp_path, unknown)]) == cli.WRONG_INPUT
    assert "no job of the log can be run" in capsys.readouterr().err


def test_skip_bad_leaves_out_what_cannot_be_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Malformed lines and jobs too wide are named and left out; the rest is replayed."""
    path = _log(tmp_path, GOOD, "2 5 oops", USED)
    words = ["run", "--swf", path, "--nodes", "2", "--skip-bad", "--json"]
    assert cli.main(words) == cli.OK
    captured = capsys.readouterr()
    assert [job["name"] for job in json.loads(captured.out)["jobs"]] == ["swf1"]
    assert "log.swf:3" in captured.err
    assert "asks for 3 processors" in captured.err


def test_a_run_leaves_nothing_to_the_collector() -> None:
    """What has ended is let go at once: objects that refer to each other would pile up."""
    jobs = [swf_job(number, number * 30, 10, 4) for number in range(1, 6)]
    replay(jobs, nodes=4, cpus=2)
    gc.collect()
    gc.disable()
    found = []
    original = trio.run

    def run(*args: Any, **more: Any) -> Any:
        gc.collect()
        result = original(*args, **more)
        found.append(gc.collect())
        return result

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trio, "run", run)
            replay(jobs, nodes=4, cpus=2)
    finally:
        gc.enable()
    assert found == [0]


def test_a_log_has_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused, and not passed over in silence."""
    log = tmp_path / "one.swf"
    log.write_text("1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert cli.main(["run", "--swf", str(log), "--nodes", "2", "--html", "page.html"]) == 2
    assert "--html goes with a scenario" in capsys.readouterr().err
