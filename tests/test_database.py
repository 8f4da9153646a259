"""`simctl run --db FILE`: what is in the file, when it is written, and what becomes of another."""

import re
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from simctl.cli import main
from tests.cluster import SIMCTL

ROOT = Path(__file__).parent.parent

_SCENARIO = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001}
files:
  job.sh: |
    #!/bin/sh
    srun -n2 sleep 10
timeline:
  - {at: 0s, as: alice, run: sbatch job.sh}
  - {at: 1s, as: alice, run: "sbatch -N2 --wrap 'exit 3'"}
  - {at: 2s, as: alice, run: sbatch -H job.sh}
  - {at: 3s, as: alice, run: scontrol requeue 1}
expect:
  - {job: 2, state: FAILED}
"""


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Return what a query finds in a database."""
    with closing(sqlite3.connect(path)) as file:
        return file.execute(query).fetchall()


def dump(path: Path) -> str:
    """Return all that a database holds, as SQL."""
    with closing(sqlite3.connect(path)) as file:
        return "\n".join(file.iterdump())


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return the database of a run."""
    scenario, path = tmp_path / "s.yaml", tmp_path / "run.db"
    scenario.write_text(_SCENARIO)
    assert main(["run", str(scenario), "--quiet", "--db", str(path)]) == 0
    return path


def test_every_run_of_a_job_and_every_step_is_in_it(database: Path) -> None:
    """Those that ended, in the order in which they did, and what is left."""
    assert rows(database, "SELECT job_id, state, exit_code, nodes, cpus FROM jobs") == [
        (1, "REQUEUED", 0, "n1", 4),
        (2, "FAILED", 3, "n[1-2]", 8),
        (1, "COMPLETED", 0, "n1", 4),
        (3, "PENDING", 0, None, 0),
    ]
    assert rows(database, "SELECT job_id, step, state, tasks FROM steps WHERE record = 1") == [
        (1, "batch", "CANCELLED", 1),
        (1, "0", "CANCELLED", 2),
    ]
    submitted = "SELECT submit_line, stdout FROM jobs, commands WHERE command = submit_line"
    assert ("sbatch -H job.sh", "Submitted batch job 3\n") in rows(database, submitted)


def test_the_tables_hold_what_the_trace_holds(database: Path) -> None:
    """As many plugin calls and messages as the run counted, with the numbers of its events."""
    facts = dict(rows(database, "SELECT key, value FROM run"))
    assert (facts["complete"], facts["held"], facts["scenario"]) == (1, 1, "s.yaml")
    sent = "SELECT COUNT(*), COUNT(DISTINCT seq) FROM messages WHERE phase = 'send'"
    assert rows(database, sent)[0][0] > 20
    calls = rows(database, "SELECT name, job_id, node FROM plugin_calls WHERE step = '1.0'")
    assert ("switch_p_job_preinit", 1, "n1") in calls
    assert rows(database, "SELECT after FROM node_states WHERE node = 'n2'")[0] == ("IDLE",)
    changes = "SELECT before, after FROM job_states WHERE job_id = 2 AND step IS NULL"
    assert rows(database, changes)[0] == (None, "PENDING")
    assert rows(database, "SELECT name, state, cpus FROM nodes") == [
        ("n1", "IDLE", 4),
        ("n2", "IDLE", 4),
    ]


def test_equal_runs_give_equal_databases(database: Path, tmp_path: Path) -> None:
    """Nothing in them comes from the machine."""
    other = tmp_path / "other.db"
    assert main(["run", str(tmp_path / "s.yaml"), "--quiet", "--db", str(other)]) == 0
    assert dump(database) == dump(other)


def test_an_earlier_database_is_replaced_and_nothing_else(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A text, another program's database, a folder: the run is refused and they stay."""
    scenario = str(tmp_path / "s.yaml")
    assert main(["run", scenario, "--quiet", "--db", str(database)]) == 0
    assert rows(database, "SELECT COUNT(*) FROM jobs") == [(4,)]
    text, foreign = tmp_path / "notes.txt", tmp_path / "foreign.db"
    text.write_text("mine")
    with closing(sqlite3.connect(foreign)) as file:
        file.execute("CREATE TABLE t (x)")
    for path in (text, foreign, tmp_path):
        capsys.readouterr()
        assert main(["run", scenario, "--db", str(path)]) == 2
        assert "is no database that simctl wrote; it is left alone" in capsys.readouterr().err
    assert text.read_text() == "mine"
    assert rows(foreign, "SELECT name FROM sqlite_master") == [("t",)]
    assert main(["run", scenario, "--db", str(tmp_path / "no" / "where.db")]) == 2
    assert "--db: cannot write" in capsys.readouterr().err


def test_a_run_that_fails_has_its_database(tmp_path: Path) -> None:
    """Also one in which simctl's user expected something else."""
    scenario, path = tmp_path / "s.yaml", tmp_path / "run.db"
    scenario.write_text(_SCENARIO.replace("state: FAILED", "state: TIMEOUT"))
    assert main(["run", str(scenario), "--quiet", "--db", str(path)]) == 1
    facts = dict(rows(path, "SELECT key, value FROM run"))
    assert (facts["complete"], facts["held"]) == (1, 0)


def test_what_goes_on_as_a_run_ends_is_in_its_database(tmp_path: Path) -> None:
    """Jobs and steps, RUNNING as they are then."""
    scenario, path = tmp_path / "s.yaml", tmp_path / "run.db"
    cluster, _, _ = _SCENARIO.partition("files:")
    line = "sbatch -n1 --wrap 'srun true; srun sleep 60'"
    scenario.write_text(f'{cluster}timeline: [{{at: 0s, as: alice, run: "{line}"}}]\n')
    main(["run", str(scenario), "--quiet", "--until", "20s", "--db", str(path)])
    assert rows(path, "SELECT job_id, state FROM jobs") == [(1, "RUNNING")]
    assert rows(path, "SELECT step, state FROM steps ORDER BY step") == [
        ("0", "COMPLETED"),
        ("1", "RUNNING"),
        ("batch", "RUNNING"),
    ]


def test_a_run_that_is_interrupted_has_its_database(tmp_path: Path) -> None:
    """Up to where it came."""
    scenario, path = tmp_path / "s.yaml", tmp_path / "run.db"
    cluster, _, _ = _SCENARIO.partition("files:")
    numbers = " ".join(map(str, range(4000)))
    scenario.write_text(
        f"{cluster}files:\n  loop.sh: |\n    #!/bin/sh\n"
        f"    for i in {numbers}; do srun -n8 -N2 true; done\n"
        "timeline: [{at: 0s, as: alice, run: sbatch -N2 loop.sh}]\n"
    )
    process = subprocess.Popen([*SIMCTL, "run", str(scenario), "--quiet", "--db", str(path)])
    part = tmp_path / "run.db.part"
    while not part.exists() or part.stat().st_size < 500_000:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    facts = dict(rows(path, "SELECT key, value FROM run"))
    assert (facts["complete"], facts["interrupted"]) == (1, 1)
    assert rows(path, "SELECT state FROM jobs") == [("RUNNING",)]
    assert len(rows(path, "SELECT * FROM steps")) > 10


def test_a_replayed_log_has_its_database_too(tmp_path: Path) -> None:
    """Though nobody could ask sacct there, so that nothing is kept in memory."""
    log, path = tmp_path / "log.swf", tmp_path / "run.db"
    lines = [f"{n} {n * 10} -1 60 2 -1 -1 2 100 -1 1 1 1 1 1 -1 -1 -1" for n in (1, 2, 3)]
    log.write_text("\n".join(lines) + "\n")
    assert main(["run", "--swf", str(log), "--nodes", "2", "--quiet", "--db", str(path)]) == 0
    assert rows(path, "SELECT name, state FROM jobs") == [
        (f"swf{n}", "COMPLETED") for n in (1, 2, 3)
    ]


_QUERIES = re.findall(r"(?s)```sql\n(.*?)```", (ROOT / "docs" / "database.md").read_text())


@pytest.mark.parametrize("query", _QUERIES)
def test_the_queries_of_the_docs_find_something(query: str, database: Path) -> None:
    """As they stand there."""
    assert rows(database, query)


def test_every_event_of_the_trace_is_in_it_with_its_cause(database: Path, tmp_path: Path) -> None:
    """So that what led to the end of a job goes back to a command: here to the requeue."""
    trace = tmp_path / "run.trace"
    assert main(["run", str(tmp_path / "s.yaml"), "--quiet", "--trace", str(trace)]) == 0
    events = [msgspec.json.decode(line) for line in trace.read_bytes().splitlines()[1:]]
    found = rows(database, "SELECT seq, kind, cause FROM events ORDER BY seq")
    assert found == [(each["seq"], each["kind"], each.get("cause")) for each in events]
    chain = rows(database, _QUERIES[-1])
    assert chain[0][2:5] == ("command", "scontrol", "enter")
    assert chain[-1][2:4] == ("state", "COMPLETED")
    assert ("process", "fork") in {each[2:4] for each in chain}


def test_a_database_without_a_name_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A variable of a shell may have been empty."""
    (tmp_path / "s.yaml").write_text(_SCENARIO)
    for option in ("--db", "--trace"):
        assert main(["run", str(tmp_path / "s.yaml"), option, ""]) == 2
        assert capsys.readouterr().err == f"simctl: {option}: name a file\n"


def test_every_table_and_column_is_in_the_docs(database: Path) -> None:
    """In its row of the table of tables."""
    page = (ROOT / "docs" / "database.md").read_text()
    who = re.search(r"Who acts, .*?\n\n", page, re.DOTALL)
    assert who is not None
    for (table,) in rows(
        database, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
    ):
        row = next(line for line in page.splitlines() if line.startswith(f"| `{table}` |"))
        told = row + (who[0] if "who" in row else "")
        columns = [column for _, column, *_ in rows(database, f"PRAGMA table_info({table})")]
        assert [each for each in columns if f"`{each}`" not in told] == [], table
