"""The table of a sweep: an SQLite file that keeps what is done, so that a sweep can go on."""

import fcntl
import json
import os
import sqlite3
import time  # noqa: TID251 - how often is written, on the wall clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from simctl.reports.intervals import Interval
from simctl.status import InputError
from simctl.sweep.plan import Plan
from simctl.sweep.runs import MEASURES, RunChunk

APPLICATION_ID: Final = 0x53494D53
"""What marks a file as a sweep's: SIMS."""
FORMAT: Final = 1
"""The version of the tables, SQLite's `user_version`."""
NAME: Final = "results.db"

_EVERY_S: Final = 0.25
"""How often what has come is written for good: what is lost by kill -9 is made again."""

_READERS_S: Final = 0.1
_LAST_S: Final = 60.0
"""How long a reader of the table is waited for, amid the runs and at their end."""

_SCHEMA: Final = f"""
CREATE TABLE sweep (key TEXT PRIMARY KEY, value);
CREATE TABLE runs (
    cell INTEGER, seed INTEGER, status TEXT, problem TEXT, jobs INTEGER, states TEXT,
    end_time_us INTEGER, turns INTEGER, {", ".join(f"{name} REAL" for name in MEASURES)},
    PRIMARY KEY (cell, seed)) WITHOUT ROWID;
CREATE TABLE jobs (
    cell INTEGER, seed INTEGER, number INTEGER, job TEXT, name TEXT, user TEXT, partition TEXT,
    state TEXT, restarts INTEGER, submit_us INTEGER, start_us INTEGER, end_us INTEGER,
    cpus INTEGER, num_nodes INTEGER, PRIMARY KEY (cell, seed, number)) WITHOUT ROWID;
CREATE TABLE summary (
    cell INTEGER, measure TEXT, runs INTEGER, mean REAL, deviation REAL, low REAL, high REAL,
    least REAL, most REAL, PRIMARY KEY (cell, measure)) WITHOUT ROWID;
CREATE TABLE work (
    cell INTEGER, seed INTEGER, wall_s REAL, memory_mb REAL, PRIMARY KEY (cell, seed))
    WITHOUT ROWID;
"""


class Table:
    """The table of a sweep under way; everything that is written stays, whatever comes later."""

    def __init__(self, folder: Path, plan: Plan, identity: Mapping[str, str]) -> None:
        """Open that of a folder, or make it.

        Raises:
            InputError: It cannot be written, is of another sweep, or in use.
        """
        self.path = folder / NAME
        self._plan = plan
        self._rows: list[RunChunk] = []
        self._written = 0.0
        self._places = {seed: place for place, seed in enumerate(plan.seeds)}
        with self._telling():
            _make_folder(folder)
            self._lock = _lock(folder)
            try:
                _refuse_other(self.path)
                self._file = sqlite3.connect(self.path, isolation_level=None)
                # One that was killed while it made the tables has made none.
                if not list(self._file.execute("SELECT 1 FROM sqlite_master LIMIT 1")):
                    self._make(identity)
                else:
                    self._check(identity)
            except BaseException:
                self._lock_off()
                raise

    def _make(self, identity: Mapping[str, str]) -> None:
        quoted = [_quoted(name) for name in self._plan.parameters]
        columns = "".join(f", {name}" for name in quoted)
        self._file.executescript(
            f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT};"
            f"{_SCHEMA}"
            f"CREATE TABLE cells (cell INTEGER PRIMARY KEY{columns});"
            "CREATE VIEW results AS SELECT * FROM cells JOIN runs USING (cell);"
        )
        marks = ", ".join("?" * (1 + len(quoted)))
        cells = ((number, *cell.labels) for number, cell in enumerate(self._plan.cells))
        self._file.executemany(f"INSERT INTO cells VALUES ({marks})", cells)
        self._file.executemany("INSERT INTO sweep VALUES (?, ?)", identity.items())
        self._file.execute("COMMIT")

    def _check(self, identity: Mapping[str, str]) -> None:
        check_head(self.path)
        there = dict(self._file.execute("SELECT key, value FROM sweep"))
        differ = [key for key in identity if there.get(key) != identity[key]]
        seeds = {seed for (seed,) in self._file.execute("SELECT DISTINCT seed FROM runs")}
        more = sorted(seeds.difference(self._plan.seeds))
        if more:
            differ.append(f"seeds, among them {more[0]}")
        if differ:
            told = ", ".join(_WORDS.get(key, key) for key in differ)
            raise InputError(
                f"{self.path} is of another sweep: it has other {told}; what is there is left as "
                "it is: name another folder with -o"
            )

    # What is done.

    def done(self, status: str = "%") -> set[int]:
        """Return the trials that are in the table, or those of a status."""
        seeds = len(self._plan.seeds)
        rows = self._file.execute("SELECT cell, seed FROM runs WHERE status LIKE ?", (status,))
        return {cell * seeds + self._places[seed] for cell, seed in rows}

    def add(self, chunk: RunChunk) -> None:
        """Note what came of a run, and write now and then.

        Raises:
            InputError: It cannot be written.
        """
        self._rows.append(chunk)
        if time.monotonic() - self._written > _EVERY_S:
            self.flush(wait_s=_READERS_S)

    def flush(self, *, wait_s: float = _LAST_S) -> None:
        """Write what has come for good; who reads the table just then is waited for so long.

        While more comes it may be written later; at the end it cannot.

        Raises:
            InputError: It cannot be written; what was written before stays.
        """
        rows, self._rows = self._rows, []
        self._written = time.monotonic()
        with self._telling():
            self._file.execute(f"PRAGMA busy_timeout = {wait_s * 1000:.0f}")
            try:
                self._file.execute("BEGIN IMMEDIATE")
                for chunk in rows:
                    self._write(chunk)
                self._file.execute("COMMIT")
            except BaseException as error:
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
                if wait_s < _LAST_S and _is_busy(error):
                    self._rows = rows
                    return
                raise

    def _write(self, chunk: RunChunk) -> None:
        where = self._plan.of(chunk.first)
        row = chunk.row
        facts = (row.status, row.problem, row.jobs, row.states, row.end_time_us, row.turns)
        _insert(self._file, "runs", [(*where, *facts, *row.measures)])
        _insert(self._file, "work", [(*where, chunk.wall_s, chunk.memory_mb)])
        jobs = [(*where, number, *each) for number, each in enumerate(chunk.jobs)]
        _insert(self._file, "jobs", jobs)

    def summarize(self, found: Sequence[tuple[int, str, Interval]]) -> None:
        """Write the summary anew.

        Raises:
            InputError: It cannot be written.
        """
        rows = [(cell, name, *_figures(each)) for cell, name, each in found]
        with self._telling():
            self._file.execute("BEGIN")
            self._file.execute("DELETE FROM summary")
            _insert(self._file, "summary", rows)
            self._file.execute("COMMIT")

    def measures(self) -> Iterator[tuple[Any, ...]]:
        """Give of each run its cell, its status and its measures, by cell and seed."""
        names = ", ".join(MEASURES)
        yield from self._file.execute(f"SELECT cell, status, {names} FROM runs ORDER BY cell, seed")

    def problems(self) -> Iterator[tuple[int, int, str, str]]:
        """Give cell, seed, status and problem of each run that did not hold."""
        yield from self._file.execute(
            "SELECT cell, seed, status, problem FROM runs WHERE status NOT IN ('held', 'until') "
            "ORDER BY cell, seed"
        )

    def close(self) -> None:
        """Let it go."""
        self._file.close()
        self._lock_off()

    def _lock_off(self) -> None:
        os.close(self._lock)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise InputError(
                f"cannot write {self.path}: {why}; the runs that are in it stay, and the same "
                "command goes on from there"
            ) from error


def _is_busy(error: BaseException) -> bool:
    """Return whether a process reads the file just then."""
    found = isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode
    return found == sqlite3.SQLITE_BUSY


def _figures(found: Interval) -> tuple[float | None, ...]:
    return (
        *(found.runs, found.mean, found.deviation),
        *(found.low, found.high, found.least, found.most),
    )


_WORDS: Final = {
    "version": "versions of simctl",
    "sources": "sources of simctl",
    "files": "contents of scenarios, logs or plugins",
    "settings": "settings",
    "parameters": "parameters",
    "jobs": "wishes for rows of jobs",
}


def identity_of(
    plan: Plan, about: Mapping[str, str], settings: Mapping[str, str], files: str
) -> dict[str, str]:
    """Return what makes a sweep the one that it is: seeds may be added, nothing else changes."""
    cells = {json.dumps(cell.labels): dict(cell.settings) for cell in plan.cells}
    return {
        "version": about["simctl"],
        "sources": about["simctl's sources"],
        "files": files,
        "settings": json.dumps(dict(settings), sort_keys=True),
        "parameters": json.dumps([plan.parameters, cells]),
        "jobs": json.dumps(plan.jobs),
    }


def check_head(path: str | Path) -> None:
    """Check that a file is the table of a sweep that can be read.

    Raises:
        InputError: It is none.
    """
    if not is_sweep(path):
        raise _no_table(path)
    version = int.from_bytes(_head(path)[60:64], "big")
    if version > FORMAT:
        raise InputError(
            f"{path}: a table of version {version}; this simctl reads up to {FORMAT}: use the "
            "simctl that wrote it"
        )


def is_sweep(path: str | Path) -> bool:
    """Return whether a file is the table of a sweep.

    Raises:
        InputError: It cannot be read.
    """
    return _is_sqlite(path) and _head(path)[68:72] == APPLICATION_ID.to_bytes(4, "big")


def _is_sqlite(path: str | Path) -> bool:
    return _head(path)[:16] == b"SQLite format 3\0"


def _head(path: str | Path) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(100)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot read it: {why}") from error


def _refuse_other(path: Path) -> None:
    """Check that no file is there, or an SQLite file, or an empty one.

    Raises:
        InputError: Something else is.
    """
    if path.exists() and path.stat().st_size and not _is_sqlite(path):
        raise _no_table(path)


def _no_table(path: str | Path) -> InputError:
    return InputError(f"{path} is there and is no table of a sweep; it is left alone")


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"-o {folder}: it is there and is no folder; name another")
    folder.mkdir(parents=True, exist_ok=True)
    others = [each.name for each in folder.iterdir() if each.name not in (_LOCK, NAME)]
    if others and not (folder / NAME).exists():
        raise InputError(
            f"-o {folder}: it is there and holds {others[0]}, but no {NAME} of a sweep; name a new "
            "folder or an empty one"
        )


_LOCK: Final = ".lock"


def _lock(folder: Path) -> int:
    number = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        raise InputError(f"another `simctl sweep` is at work in {folder}; wait for it") from None
    except BaseException:
        os.close(number)
        raise
    return number


def _insert(file: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        file.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
