"""`simctl view --gantt` and `simctl compare`: nodes over time, and two runs in words."""

import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from simctl import cli
from simctl.view import comparing
from simctl.view.comparing import compare, measure, told
from simctl.view.gantt import gantt_page
from simctl.view.runs import JobRun, StoredRun, percentile, read_run
from tests.browser import Browser, browser
from tests.viewed import data_of

SECOND = 1_000_000

SCENARIO = """\
nodes: [{name: "n[1-4]", cpus: 1}]
partitions: [{name: debug, nodes: "n[1-4]", default: true}]
users: {alice: 1001, bob: 1002}
slurm_conf: {SchedulerType: sched/KIND}
files:
  wide.sh: "#!/bin/sh\\n#SBATCH -N4 --time=60\\nsrun sleep 600"
  half.sh: "#!/bin/sh\\n#SBATCH -N2 --time=60\\nsrun sleep 1200"
  thin.sh: "#!/bin/sh\\n#SBATCH -N1 --time=5\\nsrun sleep 120"
timeline:
- {at: 0s, as: alice, run: sbatch half.sh}
- {at: 1s, as: alice, run: sbatch wide.sh}
- {at: 2s, as: bob, run: sbatch thin.sh}
- {at: 3s, as: bob, run: sbatch --hold thin.sh}
- {at: 100m, run: "scontrol update nodename=n4 state=down reason=disk"}
- {at: 101m, run: "scontrol update nodename=n4 state=resume"}
- {at: 110m, run: "scontrol update nodename=n3 state=down reason=fan"}
- {at: 2h, run: scancel 4}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the databases of one workload under two schedulers."""
    folder = tmp_path_factory.mktemp("runs")
    found = {}
    for kind in ("builtin", "backfill"):
        scenario = folder / f"{kind}.yaml"
        scenario.write_text(SCENARIO.replace("KIND", kind))
        found[kind] = folder / f"{kind}.db"
        words = ["run", str(scenario), "--quiet", "--db", str(found[kind])]
        assert cli.main(words) == cli.OK
    return found


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Give one browser to all tests of this file."""
    with browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


def test_compare_tells_who_waits_less(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Job by job and as distributions; a job that never started is in neither."""
    one, other = (str(runs[kind]) for kind in ("builtin", "backfill"))
    assert cli.main(["compare", one, other]) == cli.OK
    out = capsys.readouterr().out
    assert "A: builtin.db (builtin.yaml, seed 0" in out
    assert (
        "Of 3 jobs that started in both, 1 wait less in B, 0 wait more, and 2 wait as long" in out
    )
    assert "  less: job 3 thin.sh of bob waits " in out
    assert "The first that does not is job 3" in out
    assert cli.main(["compare", one, other, "--json"]) == cli.OK
    found = json.loads(capsys.readouterr().out)
    assert found["jobs"]["wait_less_in_b"] == 1
    a, b = found["runs"]
    assert (a["jobs"], a["started"]) == (4, 3)
    assert a["wait_us"]["max"] > b["wait_us"]["median"]
    assert b["slowdown"]["mean"] < a["slowdown"]["mean"]


def test_a_run_against_itself_differs_in_nothing(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """No gain is told where there is none."""
    path = str(runs["builtin"])
    assert cli.main(["compare", path, path]) == cli.OK
    out = capsys.readouterr().out
    assert "0 wait less in B, 0 wait more, and 3 wait as long" in out
    assert "All of them start at the same moments on the same nodes." in out
    assert "less:" not in out
    assert cli.main(["compare", path, path, "--json"]) == cli.OK
    assert json.loads(capsys.readouterr().out)["jobs"]["start_the_same"] == 3


LOG = """\
; MaxProcs: 8
1 100 0 600 8 -1 -1 8 700 -1 1 1 1 1 1 -1 -1 -1
2 110 590 300 4 -1 -1 4 400 -1 1 2 1 1 1 -1 -1 -1
3 120 4000 60 1 -1 -1 1 100 -1 1 3 1 1 1 -1 -1 -1
4 130 -1 60 1 -1 -1 1 100 -1 1 3 1 1 1 -1 -1 -1
"""

SACCT = """\
JobID|User|Submit|Start|End|State|AllocCPUS|NodeList
7|ann|2026-01-05T10:00:20|2026-01-05T10:00:21|2026-01-05T10:10:21|COMPLETED|4|n[1-2]
8|bob|2026-01-05T10:01:20|2026-01-05T10:10:21|2026-01-05T10:12:21|COMPLETED|2|n1
9|bob|2026-01-05T10:01:30|2026-01-05T11:10:21|2026-01-05T11:12:21|COMPLETED|2|n1
"""


def test_a_run_is_held_against_what_a_site_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a log and of accounting; on one clock, on one cluster's cpus, within a minute."""
    log, books, db = tmp_path / "l.swf", tmp_path / "a.sacct", str(tmp_path / "r.db")
    log.write_text(LOG)
    books.write_text(SACCT)
    replay = ("run", "--swf", str(log), "--nodes", "4", "--cpus-per-node", "2")
    assert cli.main([*replay, "--db", db, "--quiet"]) == cli.OK
    page = tmp_path / "c.html"
    capsys.readouterr()
    assert cli.main(["compare", db, str(log), "--html", str(page)]) == cli.OK
    said = capsys.readouterr().out
    assert "B: l.swf (recorded: a workload log)" in said
    assert "Of 3 jobs that started in both, 0 wait less in B, 1 wait more, and 2 wait as" in said
    assert "  more: job swf3 of user3 waits 1:06:40 instead of " in said
    assert "Never started in B: job swf4." in said
    (ours, theirs) = data_of(page)["runs"]
    assert {job[0] for job in ours["jobs"]} == {job[0] for job in theirs["jobs"]}
    assert theirs["facts"]["recorded"] == "a workload log"
    scenario = tmp_path / "a.yaml"
    assert cli.main(["import", "sacct", str(books), "-o", str(scenario)]) == cli.OK
    assert cli.main(["run", str(scenario), "--db", db, "--quiet"]) == cli.OK
    capsys.readouterr()
    assert cli.main(["compare", str(books), db, "--json"]) == cli.OK
    found = json.loads(capsys.readouterr().out)
    assert found["jobs"]["both"] == 3
    assert (
        found["jobs"]["wait_less_in_b"] == found["jobs"]["both"] - found["jobs"]["start_the_same"]
    )
    assert found["runs"][0]["use"] == pytest.approx((4 * 600 + 2 * 240) / 4 / (4321), rel=1e-3)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no such thing", "neither a database of `simctl run --db`"),
        ("", "neither a database"),
        (
            LOG.replace(" 0 600", " -1 600").replace("590", "-1").replace("4000", "-1"),
            "no job when",
        ),
        ("JobID|Foo\n1|2\n", "no column Submit"),
    ],
)
def test_what_is_no_record_is_told(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit status 2."""
    path = tmp_path / "x"
    path.write_text(text)
    assert cli.main(["compare", str(path), str(path)]) == cli.WRONG_INPUT
    assert told in capsys.readouterr().err


def _job(label: int, *, submit: int, start: int | None, end: int | None, cpus: int = 1) -> JobRun:
    return JobRun(
        job_id=label,
        label=str(label),
        name="",
        user="u",
        state="COMPLETED",
        submit_us=submit * SECOND,
        eligible_us=submit * SECOND,
        start_us=None if start is None else start * SECOND,
        end_us=None if end is None else end * SECOND,
        suspended_us=0,
        cpus=cpus,
        nodes="n1",
    )


def _run(*jobs: JobRun, cpus: int = 2, name: str = "r.db") -> StoredRun:
    facts = {"complete": 1, "end_time_us": 100 * SECOND}
    return StoredRun(name=name, facts=facts, nodes=("n1",), cpus=cpus, jobs=jobs, node_states=())


def test_measures_are_those_of_the_books() -> None:
    """Use is of all cpus from the first submit to the last end; short jobs count ten seconds."""
    found = measure(
        _run(
            _job(1, submit=0, start=0, end=50),
            _job(2, submit=0, start=50, end=100),
            _job(3, submit=10, start=20, end=25),
            _job(4, submit=10, start=None, end=None),
        )
    )
    assert (found.jobs, found.started, found.makespan_us) == (4, 3, 100 * SECOND)
    assert found.use == pytest.approx(105 / 200)
    assert found.waits == (0, 10 * SECOND, 50 * SECOND)
    assert found.slowdowns == (1.0, 1.5, 2.0)
    assert [percentile((1, 2, 3, 4), part) for part in (0.0, 0.25, 0.5, 0.51, 1.0)] == [
        1,
        1,
        2,
        3,
        4,
    ]


def test_jobs_of_one_run_alone_and_jobs_that_never_started_are_named() -> None:
    """What cannot be compared is told, and is in no figure of the pairs."""
    one = _run(_job(1, submit=0, start=0, end=9), _job(2, submit=0, start=None, end=None))
    other = _run(_job(2, submit=0, start=5, end=9), _job(3, submit=0, start=5, end=9))
    lines = told(compare(one, other))
    assert "No job started in both runs, so there is nothing to compare job by job." in lines
    assert lines[-3:] == [
        "Only A has job 1.",
        "Only B has job 3.",
        "Never started in A: job 2.",
    ]


def test_the_page_has_nodes_jobs_and_when_nodes_were_not_to_be_had(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one run and of two; with --gantt and with compare --html."""
    page = tmp_path / "g.html"
    assert cli.main(["view", "--gantt", str(runs["builtin"]), "-o", str(page)]) == cli.OK
    (run,) = data_of(page)["runs"]
    assert run["nodes"] == ["n1", "n2", "n3", "n4"]
    assert [job[0] for job in run["jobs"]].count("2") == 1
    wide = next(job for job in run["jobs"] if job[0] == "2")
    assert wide[-1] == [0, 3]
    # One node comes back, the other one is down to the end.
    down = [row for row, _, _, state in run["bad"] if state == "DOWN"]
    assert down == [3, 2]
    both = [str(each) for each in runs.values()]
    assert cli.main(["compare", *both, "--html", str(page)]) == cli.OK
    assert len(data_of(page)["runs"]) == 2
    assert cli.main(["view", "--gantt", *both, "-o", str(page)]) == cli.OK
    assert data_of(page)["words"]


@pytest.mark.parametrize("what", ["none", "foreign", "newer", "text", "three", "part"])
def test_other_files_are_refused(
    what: str, runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what they are, and nothing is written."""
    path = tmp_path / "x.db"
    words: list[str] = []
    if what in ("foreign", "newer"):
        file = sqlite3.connect(path)
        file.execute("CREATE TABLE t (x)")
        if what == "newer":
            file.execute(f"PRAGMA application_id = {0x53494D43}")
            file.execute("PRAGMA user_version = 99")
        file.close()
    elif what == "text":
        path.write_text("hello")
    elif what in ("three", "part"):
        path.write_bytes(runs["builtin"].read_bytes())
        words = ["--job", "1"] if what == "part" else []
    why = {
        "none": "cannot read it: No such file",
        "foreign": "no database of a run",
        "newer": "a database of version 99",
        "text": "neither a database of",
        "three": "one database or two, got 3",
        "part": "--gantt shows all",
    }[what]
    page = tmp_path / "p.html"
    paths = [str(path)] * (3 if what == "three" else 1)
    status = cli.main(["view", "--gantt", *paths, "-o", str(page), *words])
    assert (status, why in capsys.readouterr().err) == (cli.WRONG_INPUT, True)
    assert not page.exists()


def test_a_click_on_a_job_finds_it_in_the_other_run(
    runs: dict[str, Path], tmp_path: Path, chromium: Browser
) -> None:
    """A find leaves its jobs lit; zoom and its keys change the stretch of time."""
    page = tmp_path / "g.html"
    page.write_bytes(gantt_page([read_run(str(each)) for each in runs.values()]))
    tab = chromium.tab()
    tab.open(page.as_uri())
    place = tab.run(
        """(() => { const g = simctl, job = g.runs[0].byLabel.get("2"), box = g.boxes[0];
        const r = box.getBoundingClientRect();
        const y = r.y + 18 + g.rowHeight(g.runs[0]) * 1.5;
        return [r.x + (g.x(job[6]) + g.x(job[7])) / 2, y] })()"""
    )
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        tab.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=place[0],
            y=place[1],
            button="left",
            clickCount=1,
        )
    assert tab.run("simctl.chosen") == "2"
    assert tab.text("#told").startswith("A: waited 0:19:59")
    tab.key("Escape")
    tab.click("#find")
    tab.type("bob")
    assert tab.run("[...simctl.found].sort().join()") == "3,4"
    tab.run("document.getElementById('find').blur()")
    span = tab.run("simctl.to - simctl.from")
    tab.key("+")
    assert tab.run("simctl.to - simctl.from") < span
    assert tab.errors == []
    tab.call("Page.close")


def test_twenty_thousand_jobs_on_a_thousand_nodes_open_quickly(
    tmp_path: Path, chromium: Browser
) -> None:
    """From the file to the last rectangle; in a browser without a graphics card."""
    chance = random.Random(1)
    nodes = tuple(f"n{number:04}" for number in range(1024))
    jobs = []
    for number in range(20_000):
        first, start = chance.randrange(1000), number * 20 + chance.randrange(500)
        wide = chance.randrange(1, 24)
        last = min(1023, first + wide)
        jobs.append(
            JobRun(
                job_id=number,
                label=str(number),
                name=f"job{number}",
                user=f"user{number % 40}",
                state="COMPLETED",
                submit_us=number * 20 * SECOND,
                eligible_us=number * 20 * SECOND,
                start_us=start * SECOND,
                end_us=(start + chance.randrange(60, 9000)) * SECOND,
                suspended_us=0,
                cpus=last - first + 1,
                nodes=f"n[{first:04}-{last:04}]",
            )
        )
    run = StoredRun(
        name="big.db",
        facts={"complete": 1},
        nodes=nodes,
        cpus=1024,
        jobs=tuple(jobs),
        node_states=(),
    )
    page = tmp_path / "big.html"
    page.write_bytes(gantt_page([run]))
    tab = chromium.tab()
    tab.open(page.as_uri())
    took_ms = tab.run("performance.timing.loadEventEnd - performance.timing.navigationStart")
    assert tab.run("simctl.runs[0].boxes") >= 20_000
    assert took_ms < 4000, took_ms
    draw_ms = tab.run(
        "(() => { const t = performance.now(); simctl.draw(); return performance.now() - t })()"
    )
    assert draw_ms < 1000, draw_ms
    tab.call("Page.close")


@pytest.mark.parametrize(
    ("wait_s", "line"),
    [
        *((0, 0), (0.999999, 0), (1, 1), (60, 1), (60.000001, 2), (600, 2), (600.000001, 3)),
        *((3600, 3), (21_600, 4), (86_400, 5), (86_400.000001, 6)),
    ],
)
def test_a_wait_counts_in_the_line_up_to_whose_bound_it_is(wait_s: float, line: int) -> None:
    """Below a second it is none."""
    assert comparing._counted([round(wait_s * 1_000_000)]) == [int(at == line) for at in range(7)]
