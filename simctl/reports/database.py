"""`simctl run --db FILE`: a run as an SQLite file, written as it goes (docs/database.md)."""

import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from msgspec import UNSET

from simctl.ctld.reporting import bookkeeping
from simctl.kernel.events import Event
from simctl.kernel.orders import begin_us
from simctl.outputs import Kind, TakenError, beside, dropped, named, place_of
from simctl.reports.database_tables import (
    APPLICATION_ID,
    FORMAT,
    SCHEMA,
    command_row,
    job_row,
    node_row,
    step_row,
)
from simctl.status import InputError
from simctl.wire.accounts import JobAccount, StepAccount
from simctl.world import RunResult, World

_BLOCK: Final = 5_000
"""How many rows gather before they are written."""

_HEAD: Final = b"SQLite format 3\0"


class _Database(Kind):
    """SQLite files of simctl's."""

    def has(self, path: Path) -> bool:
        """Return whether a file is one, or empty."""
        with path.open("rb") as file:
            head = file.read(72)
        ours = head[:16] == _HEAD and int.from_bytes(head[68:72], "big") == APPLICATION_ID
        return ours or not head


DATABASE: Final = _Database("database", ())


class Database:
    """The file of a run: a sink of its events, and a reader of its books.

    Rows are written in blocks; a run that breaks leaves what was written, with `complete` 0 in
    the table `run`.
    """

    def __init__(self, path: Path, world: World, *, force: bool = False) -> None:
        """Make the file.

        Raises:
            InputError: It cannot be written, or is there and no database of simctl's.
        """
        self._path = path
        self._world = world
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._gathered = 0
        self._trouble = ""
        self._part: Path | None = None
        try:
            self._place = _place(path, force=force)
            self._part = beside(self._place)
            self._file = _made(self._part)
        except (OSError, sqlite3.Error) as error:
            if self._part is not None:
                dropped(self._part)
            raise InputError(f"--db: cannot write {path}: {_why(error)}") from error
        header = {key: each for key, each in world.header().items() if key != "simctl_trace"}
        self._add_run({**header, "complete": 0})
        self._flush()
        world.trace.add_sink(self.event)
        world.ctld.books.readers.append(self.record)

    # While the run goes on.

    def event(self, event: Event) -> None:
        """Add an event of the trace."""
        self._add(*_EVENTS.get(event.kind, _other)(event))

    def record(self, record: JobAccount | StepAccount) -> None:
        """Add a record of accounting."""
        if isinstance(record, JobAccount):
            self._add("jobs", job_row(record))
        else:
            self._add("steps", step_row(record))

    def _add(self, table: str, row: tuple[Any, ...]) -> None:
        self._rows.setdefault(table, []).append(row)
        self._gathered += 1
        if self._gathered >= _BLOCK:
            self._flush()

    def _add_run(self, facts: Mapping[str, Any]) -> None:
        for key, value in facts.items():
            plain = isinstance(value, str | int) and not isinstance(value, bool)
            shown = value if plain else int(value) if isinstance(value, bool) else json.dumps(value)
            self._add("run", (key, shown))

    def _flush(self) -> None:
        """Write what has gathered; what stands in the way is told at the end, not amid the run."""
        try:
            if not self._trouble:
                self._write()
        except (sqlite3.Error, UnicodeError) as error:
            self._trouble = str(error)
        self._rows.clear()
        self._gathered = 0

    def _write(self) -> None:
        self._file.execute("BEGIN")
        for table, rows in self._rows.items():
            places = ",".join("?" * len(rows[0]))
            self._file.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", rows)
        self._file.execute("COMMIT")

    # Its end.

    def finish(self, result: RunResult | None, end: Event) -> None:
        """Write what there is at the end: unfinished jobs, nodes, commands; then keep the file.

        Raises:
            InputError: The file cannot be written to its end.
        """
        self.event(end)
        ctld = self._world.ctld
        jobs, steps = bookkeeping.current(ctld)
        for job in jobs:
            self.record(job)
        for step in steps:
            self.record(step)
        for node in ctld.nodes:
            self._add("nodes", node_row(node))
        if result is not None:
            for command in result.commands:
                self._add("commands", command_row(command))
            self._add_run(_outcome(result))
        self._flush()
        self._file.close()
        if self._trouble:
            raise InputError(f"--db: cannot write {self._path}: {self._trouble}")
        if self._part is not None:
            named(self._part, self._place)
            self._part = None

    def __enter__(self) -> Self:
        """Return itself; it is open already."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Take away what was not kept."""
        self._file.close()
        if self._part is not None:
            dropped(self._part)


def _outcome(result: RunResult) -> dict[str, Any]:
    return {
        "complete": 1,
        "end_time_us": result.end_time_us,
        "held": result.held,
        "stalled": bool(result.stalled),
        "interrupted": result.interrupted,
        "stopped_at_limit": result.stopped_at_limit,
    }


def _place(path: Path, *, force: bool) -> Path:
    """Return where the file lies that *path* names: that of an earlier run, or none yet.

    Raises:
        OSError: Something else is there, or it cannot be read.
    """
    place = place_of(path, DATABASE, force=force)
    if place is None:
        raise TakenError(DATABASE)
    return place


def _made(path: Path) -> sqlite3.Connection:
    """Return the open file with its empty tables."""
    file = sqlite3.connect(path, isolation_level=None)
    try:
        file.executescript(
            f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
            f"PRAGMA application_id = {APPLICATION_ID}; "
            f"PRAGMA user_version = {FORMAT};{SCHEMA}"
        )
    except sqlite3.Error:
        file.close()
        raise
    return file


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


# From events to rows.


def _plain(value: Any) -> Any:
    """Return what a column holds: null for what does not apply, JSON for what is no scalar."""
    if value is UNSET or value is None:
        return None
    if isinstance(value, int):
        return value if abs(value) < _TOO_BIG else str(value)
    if isinstance(value, str | float):
        return value
    return msgspec.json.encode(value, enc_hook=str).decode()


_TOO_BIG: Final = 1 << 63
"""A column holds numbers of 64 bits."""


def _where(event: Event) -> tuple[Any, ...]:
    """Return the columns that tell who acts, and for which job."""
    found = (event.daemon, event.node, event.role, event.pid, event.uid, event.euid)
    return tuple(map(_plain, (*found, event.job, event.step, event.task)))


def _other(event: Event) -> tuple[str, tuple[Any, ...]]:
    """Return the row of what has no table of its own: what others come of may be among it."""
    head = (event.seq, event.time_us, event.kind, _plain(event.phase), event.name)
    return "other_events", (*head, *_where(event), _plain(event.args), _plain(event.cause))


def _plugin(event: Event) -> tuple[str, tuple[Any, ...]]:
    if event.phase == "enter":
        return _other(event)
    rest = (event.plugin, event.args, event.rc, event.errno, event.cause)
    row = (event.seq, begin_us(event), event.time_us, event.name, *_where(event))
    return "plugin_calls", (*row, *map(_plain, rest))


def _message(event: Event) -> tuple[str, tuple[Any, ...]]:
    rest = (event.peer, event.args, event.cause)
    row = (event.seq, event.time_us, event.phase, event.name, *_where(event))
    return "messages", (*row, *map(_plain, rest))


def _script(event: Event) -> tuple[str, tuple[Any, ...]]:
    if event.phase == "enter":
        return _other(event)
    row = (event.seq, begin_us(event), event.time_us, event.name, *_where(event))
    return "scripts", (*row, *map(_plain, (event.args, event.rc, event.cause)))


def _state(event: Event) -> tuple[str, tuple[Any, ...]]:
    args = event.args if event.args is not UNSET else {}
    change = (args.get("from"), args.get("to"), args.get("reason"), _plain(event.cause))
    if event.name == "node_state":
        return "node_states", (event.seq, event.time_us, args.get("node"), *change)
    ids = (event.job, event.array_job, event.array_task, event.step)
    return "job_states", (event.seq, event.time_us, *map(_plain, ids), *change)


_EVENTS: Final[dict[str, Callable[[Event], tuple[str, tuple[Any, ...]]]]] = {
    "plugin": _plugin,
    "message": _message,
    "script": _script,
    "state": _state,
}
