"""`simctl sweep`: a table of runs that goes on after any interruption, and loses nothing."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from simctl.cli import INTERRUPTED, NOT_HELD, OK, WRONG_INPUT, main
from simctl.reports.intervals import interval, student_t
from simctl.status import InputError
from simctl.sweep import checking, comparing
from simctl.sweep import table as tables
from simctl.sweep.file import read_sweep
from simctl.sweep.settings import PathError, parsed, parts, put
from simctl.sweep.settings import written as written_in_a_line
from simctl.view.runs import read_run

SCENARIO = """\
# Long jobs that wait for each other.
nodes: [{name: "n[1-4]", cpus: 2}]
partitions: [{name: debug, nodes: "n[1-4]", default: true}]
users: {alice: 1001, bob: 1002}
slurm_conf: {schedulertype: sched/builtin}
programs:
  work: {runs: [60s, 1200s]}
files:
  wide.sh: "#!/bin/sh\\n#SBATCH -N4 --time=60\\nsrun work"
  half.sh: "#!/bin/sh\\n#SBATCH -N2 --time=60\\nsrun work"
  thin.sh: "#!/bin/sh\\n#SBATCH -N1 --time=5\\nsrun sleep 120"
timeline:
- {at: 0s, as: alice, run: sbatch half.sh}
- {at: 1s, as: alice, run: sbatch wide.sh}
- {at: 2s, as: bob, run: sbatch thin.sh}
"""

SWEEP = """\
scenario: base.yaml
settings: {"nodes[0].cpus": 4}
parameters:
  slurm_conf.SchedulerType: [sched/builtin, sched/backfill]
  links:
    near: {latency: 100us}
    far: {latency: 20ms, slurm_conf.MessageTimeout: 20}
seeds: 3
jobs: true
keep: [{links: near, seed: 1}]
"""

SLOW = """\
import os
import time

from simctl.plugin import SwitchPlugin

time.sleep(float(os.environ.get("SIMCTL_TEST_SLOW", "0")))


class Slow(SwitchPlugin):
    plugin_type = "switch/slow"
    plugin_name = "one that takes its time to be loaded"
"""

LOG = """\
; MaxProcs: 8
1 0 -1 600 8 -1 -1 8 700 -1 1 1 1 1 1 -1 -1 -1
2 10 -1 300 4 -1 -1 4 400 -1 1 2 1 1 1 -1 -1 -1
3 20 -1 60 1 -1 -1 1 100 -1 1 3 1 1 1 -1 -1 -1
"""


def written(folder: Path, sweep: str = SWEEP) -> Path:
    """Write a sweep and its scenario into a folder; return the sweep's file."""
    (folder / "base.yaml").write_text(SCENARIO)
    (folder / "log.swf").write_text(LOG)
    file = folder / "sweep.yaml"
    file.write_text(sweep)
    return file


def rows_of(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """Return what a query of a sweep's table gives."""
    with closing(sqlite3.connect(folder / "results.db")) as file:
        return list(file.execute(query))


def content_of(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all that is the same whenever a sweep is made."""
    names = ("sweep", "cells", "runs", "jobs", "summary")
    return {name: rows_of(folder, f"SELECT * FROM {name}") for name in names}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a sweep that nobody interrupted."""
    folder = tmp_path_factory.mktemp("sweep")
    assert main(["sweep", str(written(folder)), "-o", f"{folder}/out", "--workers", "1"]) == OK
    return folder / "out"


def test_every_combination_is_run_under_every_seed(made: Path) -> None:
    """Each row has its parameters, its measures and what it cost; backfill shortens waits."""
    rows = rows_of(
        made, 'SELECT "slurm_conf.SchedulerType", links, seed, status, jobs FROM results'
    )
    kinds = ("sched/builtin", "sched/backfill")
    assert rows == [
        (kind, links, seed, "held", 3)
        for kind in kinds
        for links in ("near", "far")
        for seed in range(3)
    ]
    assert len(rows_of(made, "SELECT * FROM jobs")) == 12 * 3
    assert rows_of(made, "SELECT DISTINCT cpus FROM jobs ORDER BY cpus") == [(4,), (8,), (16,)]
    waits = rows_of(
        made,
        'SELECT AVG(wait_mean_s) FROM results GROUP BY "slurm_conf.SchedulerType" ORDER BY 1',
    )
    assert waits[0][0] < waits[1][0] / 2
    assert all(
        wall > 0 and memory > 10 for _, _, wall, memory in rows_of(made, "SELECT * FROM work")
    )


def test_the_summary_has_means_with_their_intervals(made: Path) -> None:
    """It is what the runs of the cell come to."""
    values = [value for (value,) in rows_of(made, "SELECT utilisation FROM runs WHERE cell = 2")]
    found = interval(values)
    shown = "SELECT runs, mean, low, high FROM summary WHERE cell = 2 AND measure = 'utilisation'"
    assert rows_of(made, shown) == [(3, found.mean, found.low, found.high)]


def test_chosen_runs_leave_their_database_and_page(made: Path) -> None:
    """One for each cell that fits; the database is that of `run --db`."""
    names = [each.stem for each in sorted((made / "runs").glob("*.db"))]
    assert names == ["000-sched_builtin-near-seed1", "002-sched_backfill-near-seed1"]
    run = read_run(str(made / "runs" / f"{names[0]}.db"))
    assert run.whole
    assert run.facts["seed"] == 1
    assert len(run.jobs) == 3
    assert b"new Gantt(data.runs)" in (made / "runs" / f"{names[1]}.html").read_bytes()


def test_what_is_done_is_not_done_again(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second call makes nothing, says the same, and more seeds are made beside."""
    before = rows_of(made, "SELECT * FROM work")
    file = made.parent / "sweep.yaml"
    assert main(["sweep", str(file), "-o", str(made), "--workers", "1"]) == OK
    assert "12 of 12 runs, 12 of them there before" in capsys.readouterr().out
    assert rows_of(made, "SELECT * FROM work") == before
    more = made.parent / "more.yaml"
    more.write_text(SWEEP.replace("seeds: 3", "seeds: {from: 0, count: 4}"))
    assert main(["sweep", str(more), "-o", str(made), "--workers", "1", "--json"]) == OK
    said = json.loads(capsys.readouterr().out)
    assert (said["asked"], said["runs"], said["runner"]) == (16, 16, "local:1")
    assert set(before) < set(rows_of(made, "SELECT * FROM work"))


def test_interrupted_twice_it_ends_with_the_table_of_one_never_interrupted(tmp_path: Path) -> None:
    """By Ctrl-C, then by kill -9, each in the middle of many runs."""
    sweep = SWEEP.replace("seeds: 3", "seeds: 5")
    file = written(tmp_path, sweep.replace("settings: {", "settings: {plugins: [./slow.py], "))
    (tmp_path / "slow.py").write_text(SLOW)
    slowly = {**os.environ, "SIMCTL_TEST_SLOW": "0.2"}
    words = [sys.executable, "-m", "simctl", "sweep", str(file)]
    seen = 0
    for number, status in ((signal.SIGINT, INTERRUPTED), (signal.SIGKILL, -signal.SIGKILL)):
        with subprocess.Popen(
            [*words, "-o", f"{tmp_path}/cut", "--workers", "2"], env=slowly, stdout=subprocess.PIPE
        ) as process:
            while _runs(tmp_path / "cut") <= seen:
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(number)
            said = process.communicate(timeout=60)[0].decode()
        assert process.returncode == status
        seen = _runs(tmp_path / "cut")
        assert 0 < seen < 20
        if number == signal.SIGINT:
            assert f"interrupted: {20 - seen} runs are left; the same command goes on" in said
    done = rows_of(tmp_path / "cut", "SELECT * FROM work")
    assert _sweep(file, tmp_path / "cut") == OK
    assert set(done) <= set(rows_of(tmp_path / "cut", "SELECT * FROM work"))
    assert _sweep(file, tmp_path / "whole") == OK
    assert content_of(tmp_path / "cut") == content_of(tmp_path / "whole")
    kept = [
        [each.name for each in sorted((tmp_path / name / "runs").iterdir())]
        for name in ("cut", "whole")
    ]
    assert kept[0] == kept[1]


def _runs(folder: Path) -> int:
    if not (folder / "results.db").exists():
        return 0
    try:
        return int(rows_of(folder, "SELECT COUNT(*) FROM runs")[0][0])
    except sqlite3.OperationalError:  # its tables are not there yet, or it is being written
        return 0


def test_a_log_is_replayed_with_other_settings(tmp_path: Path) -> None:
    """Nodes, limits, keys of slurm.conf and the log itself may differ."""
    sweep = """\
swf: log.swf
settings: {cpus_per_node: 2}
parameters:
  nodes: [4, 8]
  slurm_conf.SchedulerType: [sched/builtin, sched/backfill]
"""
    out = tmp_path / "out"
    assert main(["sweep", str(written(tmp_path, sweep)), "-o", str(out), "--workers", "1"]) == OK
    found = rows_of(out, "SELECT nodes, jobs, wait_max_s, utilisation FROM results ORDER BY cell")
    assert [each[:2] for each in found] == [("4", 3), ("4", 3), ("8", 3), ("8", 3)]
    assert found[0][2] > found[2][2]
    assert found[0][3] > found[2][3]


def test_a_run_that_does_not_hold_is_told_and_keeps_no_other_from_being_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Expectations count; the exit status is that of `run`."""
    text = SCENARIO + 'expect:\n- {event: "slurmd_crash"}\n'.replace("event", "never")
    sweep = (
        "scenario: base.yaml\nparameters: {'timeline[2].run': [sbatch thin.sh, sbatch none.sh]}\n"
    )
    file = written(tmp_path, sweep)
    (tmp_path / "base.yaml").write_text(
        text.replace("- {never", "- {job: 3, state: COMPLETED}\n- {never")
    )
    assert main(["sweep", str(file), "-o", f"{tmp_path}/out", "--workers", "1"]) == NOT_HELD
    assert "broken: timeline[2].run sbatch none.sh, seed 0: " in capsys.readouterr().out
    assert rows_of(tmp_path / "out", "SELECT status FROM runs") == [("held",), ("broken",)]


WRONG = [
    ("scenario: [", "sweep.yaml:1:12: not YAML"),
    ("", "a sweep has at least `scenario:` or `swf:`"),
    ("scenari: base.yaml", "a sweep has no key `scenari`; did you mean scenario?"),
    ("scenario: none.yaml", "cannot read the scenario: No such file or directory"),
    ("seeds: 3", "a run has either `scenario` or `swf`; it has neither"),
    ("scenario: base.yaml\nswf: log.swf", "it has scenario: base.yaml and swf: log.swf"),
    (
        "scenario: base.yaml\nsettings: {slurm_conf.Foo: 1}",
        'sweep.yaml:2:28: settings["slurm_conf.Foo"]: slurm_conf.Foo: ',
    ),
    (
        "scenario: base.yaml\nsettings: {latencyy: 1ms}",
        "no setting 'latencyy'; did you mean latency?",
    ),
    ("scenario: base.yaml\nsettings: {seed: 1}", "seeds stand under the key `seeds`"),
    ("scenario: base.yaml\nsettings: {latency: soon}", "sweep.yaml:2:21: "),
    ("scenario: base.yaml\nsettings: {'nodes[7].cpus': 1}", "nodes[7].cpus: the list has 1 items"),
    ("scenario: base.yaml\nsettings: {nodes.cpus: 1}", "no mapping that could have a key cpus"),
    (
        "scenario: base.yaml\nsettings: {plugins: [./none.py:X]}",
        "sweep.yaml:2:21: settings.plugins: plugins[0]: no file './none.py' beside",
    ),
    ("scenario: base.yaml\nsettings: {schedule: x}", "sweep.yaml:2:22: "),
    ("scenario: base.yaml\nsettings: {max_turns: x}", "max_turns: expected a whole number"),
    ("scenario: base.yaml\nparameters: {load: [1, 2]}", "no setting 'load'"),
    ("scenario: base.yaml\nparameters: {latency: []}", "at least 1"),
    ("scenario: base.yaml\nparameters: {latency: [1ms, '1ms']}", "the value 1ms is there twice"),
    ("scenario: base.yaml\nparameters: {load: {a: 3}}", "expected a mapping from paths to values"),
    ("scenario: base.yaml\nseeds: 0", "expected a whole number from 1 to 1,000,000"),
    ("scenario: base.yaml\nseeds: {from: 3}", "missing key `count`"),
    ("scenario: base.yaml\nseeds: 2\nkeep: [{seed: 2}]", "no run has seed: 2"),
    ("scenario: base.yaml\nkeep: [{sed: 0}]", "no run has sed: 0; did you mean seed?"),
    ("swf: log.swf", "a log needs a cluster: set nodes"),
    ("swf: log.swf\nsettings: {nodes: 2}", "job 1 asks for 8 processors; the cluster has 2"),
    ("swf: log.swf\nsettings: {nodes: 8, programs: {}}", "a log has no programs"),
    ("swf: log.swf\nsettings: {nodes: 8, slurm_conf.Foo: 1}", "sweep.yaml:2:38: "),
    ("swf: none.swf\nsettings: {nodes: 8}", "no such file"),
]


@pytest.mark.parametrize(("sweep", "told"), WRONG)
def test_what_cannot_be_run_is_told_before_anything_is_made(
    sweep: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its place in the sweep's file and exit status 2; no folder is made."""
    file = written(tmp_path, sweep)
    assert main(["sweep", str(file), "-o", f"{tmp_path}/out"]) == WRONG_INPUT
    said = capsys.readouterr().err
    assert told in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


def _sweep(file: Path, folder: Path) -> int:
    return main(["sweep", str(file), "-o", str(folder), "--workers", "1", "--quiet"])


SMALL = "scenario: base.yaml\nparameters: {latency: [1ms, 2ms]}\nseeds: 2\n"


def test_nothing_of_others_is_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table of another sweep, a database of a run, a text, a folder in use, a file."""
    file, out = written(tmp_path, SMALL), tmp_path / "out"
    assert _sweep(file, out) == OK
    before = (out / "results.db").read_bytes()
    changes: Sequence[tuple[Path, str, str]] = [
        (file, SMALL.replace("2ms", "3ms"), "other parameters"),
        (file, SMALL.replace("seeds: 2", "seeds: [0]"), "other seeds, among them 1"),
        (file, f"{SMALL}settings: {{model: modern}}", "other settings, parameters"),
        (tmp_path / "base.yaml", SCENARIO.replace("60s", "61s"), "other contents of scenarios"),
    ]
    for path, text, told in changes:
        kept = path.read_text()
        path.write_text(text)
        assert _sweep(file, out) == WRONG_INPUT
        assert told in capsys.readouterr().err
        path.write_text(kept)
    assert (out / "results.db").read_bytes() == before
    assert _sweep(file, out) == OK
    for name, content, told in (
        ("results.db", b"my own notes", "is no table of a sweep; it is left alone"),
        ("notes.txt", b"my own notes", "holds notes.txt, but no results.db"),
    ):
        folder = tmp_path / f"with-{name}"
        folder.mkdir()
        (folder / name).write_bytes(content)
        assert _sweep(file, folder) == WRONG_INPUT
        assert told in capsys.readouterr().err
        assert (folder / name).read_bytes() == content
    assert _sweep(file, file) == WRONG_INPUT
    assert "it is there and is no folder" in capsys.readouterr().err


def test_a_folder_in_which_a_sweep_is_at_work_is_left_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two would make every run twice; the lock goes with whoever has it."""
    file, out = written(tmp_path, SMALL), tmp_path / "out"
    out.mkdir()
    lock = tables._lock(out)
    assert _sweep(file, out) == WRONG_INPUT
    assert "another `simctl sweep` is at work" in capsys.readouterr().err
    os.close(lock)
    assert _sweep(file, out) == OK


def test_a_full_disk_loses_nothing_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, and with room again the same command goes on."""
    few, out = SMALL.replace("seeds: 2", "seeds: 1") + "jobs: true\n", tmp_path / "out"
    assert _sweep(written(tmp_path, few), out) == OK
    file = written(tmp_path, few.replace("seeds: 1", "seeds: 12"))
    opened = tables.Table._check

    def with_little_room(table: tables.Table, identity: Any) -> None:
        opened(table, identity)
        pages = table._file.execute("PRAGMA page_count").fetchone()[0]
        table._file.execute(f"PRAGMA max_page_count = {pages}")

    with monkeypatch.context() as patch:
        patch.setattr(tables, "_EVERY_S", 0.0)
        patch.setattr(tables.Table, "_check", with_little_room)
        assert _sweep(file, out) == WRONG_INPUT
    told = capsys.readouterr().err
    assert "results.db: database or disk is full; the runs that are in it stay" in told
    there = rows_of(out, "SELECT * FROM work")
    assert 2 < len(there) < 24
    assert _sweep(file, out) == OK
    assert set(there) < set(rows_of(out, "SELECT * FROM work"))


CLASH = """\
scenario: base.yaml
parameters:
  slurm_conf.SwitchType: [switch/none, switch/slow]
  plugins: [[./slow.py], []]
"""


def test_values_that_only_together_cannot_be_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are told before anything is made; of very many combinations, in the table."""
    file = written(tmp_path, CLASH)
    (tmp_path / "slow.py").write_text(SLOW)
    assert _sweep(file, tmp_path / "out") == WRONG_INPUT
    assert "with switch/slow, []: " in capsys.readouterr().err
    monkeypatch.setattr(checking, "_EACH", 3)
    assert _sweep(file, tmp_path / "out") == NOT_HELD
    said = capsys.readouterr().out
    assert "failed: slurm_conf.SwitchType switch/slow, plugins [], seed 0: " in said
    found = rows_of(tmp_path / "out", "SELECT status FROM runs")
    assert found == [("held",), ("held",), ("held",), ("failed",)]
    file.write_text(f"{CLASH}keep: [{{slurm_conf.SwitchType: switch/slow}}]\n")
    before = rows_of(tmp_path / "out", "SELECT * FROM work")
    assert _sweep(file, tmp_path / "out") == NOT_HELD
    again = set(rows_of(tmp_path / "out", "SELECT * FROM work")) - set(before)
    assert [each[0] for each in again] == [2]  # one that failed has nothing to be kept


@pytest.mark.parametrize("each", [3, 4, 5])
def test_each_value_is_checked_with_the_first_of_the_others(
    each: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of how many combinations soever, of every parameter."""
    monkeypatch.setattr(checking, "_EACH", each)
    for values in (
        "latency: [1ms, soon]\n  max_turns: [9, 8]",
        "latency: [1ms, 2ms]\n  max_turns: [9, x]",
    ):
        file = written(tmp_path, f"scenario: base.yaml\nparameters:\n  {values}\n")
        assert _sweep(file, tmp_path / "out") == WRONG_INPUT
        assert "sweep.yaml:" in capsys.readouterr().err


def test_a_sweep_is_the_same_from_any_folder(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths of its files are told from its own folder on; a shipped scenario is no file of it."""
    monkeypatch.chdir(made)
    assert main(["sweep", "../more.yaml", "-o", "../out", "--workers", "1"]) == OK
    assert "of them there before" in capsys.readouterr().out
    shipped = made.parent / "shipped.yaml"
    shipped.write_text("scenario: own_plugin\nparameters: {latency: [1ms]}\n")
    assert not checking.check(read_sweep(str(shipped))).files


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("plugins: [HERE/slow.py]", "HERE/slow.py cannot travel"),
        ("slurm_conf_file: HERE/site.conf", "HERE/site.conf cannot travel"),
        ("scenario: HERE/base.yaml", "HERE/base.yaml cannot travel"),
    ],
)
def test_files_named_by_their_whole_path_cannot_travel(
    settings: str, told: str, tmp_path: Path
) -> None:
    """They may lie elsewhere on workers; the sweep is refused there, and runs here."""
    here = str(tmp_path)
    file = written(tmp_path, f"scenario: base.yaml\nparameters: {{x: {{a: {{{settings}}}}}}}\n")
    file.write_text(file.read_text().replace("HERE", here))
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "site.conf").write_text("ClusterName=c\nSlurmctldHost=c\n")
    checked = checking.check(read_sweep(str(file)))
    with pytest.raises(InputError, match=re.escape(told.replace("HERE", here))):
        checked.bundle()


def test_two_parts_of_a_table_are_compared_seed_by_seed(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cells that have all else alike stand beside each other; the page has the same words."""
    table, page = str(made / "results.db"), tmp_path / "c.html"
    parts = ("--one", "SchedulerType=sched/builtin", "--other", "SchedulerType=sched/backfill")
    assert main(["compare", table, *parts, "--html", str(page)]) == OK
    said = capsys.readouterr().out
    for links in ("near", "far"):
        assert f"links {links}: " in said
    assert "The mean wait is lower in B by " in said
    assert said.splitlines()[3] in page.read_text()
    assert (
        page.read_text().count("<circle") == 2 * 14 * len(rows_of(made, "SELECT * FROM runs")) / 4
    )
    assert main(["compare", table, *parts, "--json"]) == OK
    near = json.loads(capsys.readouterr().out)["cells"][0]
    query = """SELECT b.wait_mean_s - a.wait_mean_s FROM runs a JOIN runs b USING (seed)
        WHERE a.cell = 0 AND b.cell = 2"""
    gaps = interval([gap for (gap,) in rows_of(made, query)])
    assert near["measures"]["wait_mean_s"]["difference"]["mean"] == pytest.approx(gaps.mean)
    assert near["measures"]["wait_mean_s"]["difference"]["high"] == pytest.approx(gaps.high)
    assert near["jobs"]["both"] == 3 * near["pairs"]
    assert near["jobs"]["sooner_in_b"] == near["pairs"]  # the thin job goes before the wide one


def test_a_table_beside_itself_differs_in_nothing(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No difference is told where there is none, whatever its folder is called."""
    odd = tmp_path / "what?#%3f"
    odd.mkdir()
    shutil.copy(made / "results.db", odd)
    assert main(["compare", str(made / "results.db"), str(odd / "results.db")]) == OK
    said = capsys.readouterr().out
    assert said.count("The mean wait is the same in every pair.") == 4
    assert " in B by " not in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "name a second file, or two parts of this table"),
        (("--one", "links=near"), "they differ in links; choose with --other NAME=VALUE"),
        (("--one", "link=near"), "no parameter link; did you mean links?"),
        (("--one", "links=wet"), "links has the values near, far"),
        (("--one", "links"), "expected NAME=VALUE"),
        (("sweep.yaml",), "no table of a sweep, as the other is"),
    ],
)
def test_parts_that_cannot_stand_beside_each_other_are_told(
    words: tuple[str, ...], told: str, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what would do."""
    paths = [str(made.parent / each) if each.endswith(".yaml") else each for each in words]
    assert main(["compare", str(made / "results.db"), *paths]) == WRONG_INPUT
    assert told in capsys.readouterr().err


def test_who_reads_the_table_meanwhile_stops_nothing(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results are kept until the reader has gone."""
    add, readers = tables.Table.add, list[sqlite3.Connection]()

    def adding(table: tables.Table, chunk: Any) -> None:
        add(table, chunk)
        if not readers:
            readers.append(sqlite3.connect(table.path, isolation_level=None))
            readers[0].execute("BEGIN")
            assert len(readers[0].execute("SELECT * FROM runs").fetchall()) == 1
        elif chunk.first == 3:
            assert not readers[0].execute("SELECT * FROM runs WHERE cell = 1").fetchall()
            readers[0].close()

    with monkeypatch.context() as patch:
        patch.setattr(tables, "_EVERY_S", 0.0)
        patch.setattr(tables.Table, "add", adding)
        assert _sweep(written(tmp_path, SMALL), tmp_path / "out") == OK
    assert len(rows_of(tmp_path / "out", "SELECT * FROM runs")) == 4


def test_with_pyarrow_the_table_is_written_as_parquet_too(made: Path) -> None:
    """Whole numbers, numbers and texts keep their types; parameters are texts."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra [parquet] is not installed")
    found = parquet.read_table(made / "runs.parquet")
    types = {name: str(found.schema.field(name).type) for name in ("links", "seed", "wait_mean_s")}
    assert types == {"links": "string", "seed": "int64", "wait_mean_s": "double"}
    assert found.num_rows == len(rows_of(made, "SELECT * FROM runs"))
    assert parquet.read_table(made / "jobs.parquet").num_rows == 3 * found.num_rows
    assert parquet.read_table(made / "summary.parquet").num_columns == 2 + 9


def test_intervals_are_those_of_students_t() -> None:
    """Known points; equal values have none to either side; one value has no interval."""
    points = {1: 12.706, 4: 2.776, 30: 2.042, 40: 2.021, 60: 2.000, 120: 1.980, 100_000: 1.960}
    assert {each: round(student_t(each), 3) for each in points} == points
    found = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.mean, round(found.low or 0, 3), round(found.high or 0, 3)) == (3.0, 1.037, 4.963)
    assert interval([0.1] * 3).half == 0
    assert interval([7.0]).half is None


def test_paths_put_values_where_they_say() -> None:
    """Keys, places in lists and quoted keys; keys of slurm.conf whatever their case."""
    tree = parsed("{slurm_conf: {schedulertype: a}, nodes: [{name: n1}], files: {a.sh: x}}")
    for path, value in (
        ("slurm_conf.SchedulerType", "b"),
        ("nodes[0].cpus", "4"),
        ('files["a.sh"]', "y"),
        ("options.step_missing", "go_on"),
    ):
        tree = put(tree, path, parsed(value))
    assert written_in_a_line(tree) == (
        "{slurm_conf: {schedulertype: b}, nodes: [{name: n1, cpus: 4}], files: {a.sh: y}, "
        "options: {step_missing: go_on}}"
    )
    for wrong in ("a..b", "a[", "a b", ".a", "a[x]"):
        with pytest.raises(PathError, match="is no path"):
            parts(wrong)


def test_a_difference_within_its_interval_may_be_chance() -> None:
    """One beyond it is told as it is."""
    said = comparing._sentence("wait_mean_s", interval([-1.0, 1.0, 2.0]))
    assert said.endswith(": that may be chance.")
    said = comparing._sentence("wait_mean_s", interval([-3.0, -3.1, -3.2]))
    assert said.startswith("The mean wait is lower in B by 3.1")
    assert "chance" not in said


def test_jobs_that_started_on_one_side_alone_are_counted_on_either(tmp_path: Path) -> None:
    """By the numbers of their logs, else by their ids; first runs, and those that started."""

    def table(name: str, *jobs: tuple[str, str, int, int | None]) -> tuple[str, int]:
        with closing(sqlite3.connect(tmp_path / name)) as file:
            file.execute("CREATE TABLE jobs (cell, seed, number, job, name, submit_us, start_us)")
            for number, job in enumerate(jobs):
                file.execute("INSERT INTO jobs VALUES (0, 1, ?, ?, ?, ?, ?)", (number, *job))
            file.commit()
        return str(tmp_path / name), 0

    one = table("a.db", ("1", "x", 0, 5), ("2", "x", 0, 5), ("3", "x", 0, 5), ("7", "swf4", 0, 9))
    other = table(
        *("b.db", ("1", "x", 0, 4), ("2", "x", 0, 6), ("3", "x", 0, None), ("8", "swf4", 0, 9)),
        *(("5", "x", 0, 1), ("6", "x", 0, 1), ("1", "x", 0, 99)),
    )
    for sides, sooner, later in (((one, other), 1, 1), ((other, one), 1, 1), ((one, one), 0, 0)):
        found = comparing._jobs(*sides, (1,))
        assert found is not None
        alone = 0 if sides[0] is sides[1] else 3
        assert (found.sooner, found.later, found.alone) == (sooner, later, alone)
        assert found.both == (4 if sides[0] is sides[1] else 3)
    assert comparing._jobs(one, other, (2,)) is None
