"""What a sweep leaves beside its table: databases and pages of chosen runs, and Parquet files."""

import sqlite3
import zlib
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from simctl.status import InputError
from simctl.sweep.plan import Plan
from simctl.sweep.runs import KEPT_BYTES, RunChunk
from simctl.view.gantt import gantt_page
from simctl.view.runs import read_run

RUNS: Final = "runs"
_TABLES: Final = {
    "runs": "SELECT * FROM results ORDER BY cell, seed",
    "jobs": "SELECT * FROM cells JOIN jobs USING (cell) ORDER BY cell, seed, number",
    "summary": "SELECT * FROM cells JOIN summary USING (cell) ORDER BY cell, measure",
}
_BLOCK: Final = 100_000


def missing(folder: Path, plan: Plan) -> set[int]:
    """Return the trials of which something is to be kept and is not there."""
    return {
        trial
        for trial in plan.kept
        if not all(
            (folder / RUNS / f"{plan.slug(trial)}{end}").exists() for end in (".db", ".html")
        )
    }


def keep(folder: Path, plan: Plan, chunk: RunChunk) -> None:
    """Write the database of a run and its page, if it is one of those that are kept.

    Raises:
        InputError: They cannot be written, or it was too large to be kept.
    """
    if chunk.first not in plan.kept or chunk.row.status == "failed":
        return
    name = plan.slug(chunk.first)
    if chunk.database is None:
        raise InputError(
            f"keep: the database of run {name} is larger than {KEPT_BYTES >> 20} MiB, the most "
            "that is kept; take the run out of `keep`, and the same command goes on"
        )
    place = folder / RUNS / f"{name}.db"
    try:
        place.parent.mkdir(exist_ok=True)
        _write(place, zlib.decompress(chunk.database))
        _write(place.with_suffix(".html"), gantt_page([read_run(str(place))]))
    except OSError as error:
        raise InputError(f"cannot write {place}: {error.strerror or error}") from error


def _write(place: Path, data: bytes) -> None:
    """Write a whole file: it has its name once it is whole."""
    part = place.with_name(f"{place.name}.part")
    try:
        part.write_bytes(data)
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_parquet(folder: Path, table: Path) -> list[Path]:
    """Write the table as Parquet files, if the extra is installed; return them.

    Raises:
        InputError: They cannot be written.
    """
    try:
        arrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        return []
    found = []
    with closing(sqlite3.connect(table)) as file:
        for name, query in _TABLES.items():
            place = folder / f"{name}.parquet"
            part = folder / f"{name}.parquet.part"
            try:
                if _export(file, query, part, arrow, parquet):
                    part.replace(place)
                    found.append(place)
            except (OSError, sqlite3.Error) as error:
                raise InputError(f"cannot write {place}: {error}") from error
            finally:
                part.unlink(missing_ok=True)
    return found


def _export(file: sqlite3.Connection, query: str, part: Path, arrow: Any, parquet: Any) -> bool:
    """Write what a query gives; return whether it gave anything."""
    cursor = file.execute(query)
    names = [each[0] for each in cursor.description]
    kinds = _kinds(file, names, arrow)
    schema = arrow.schema(list(zip(names, kinds, strict=True)))
    writer: Any = None
    try:
        while rows := cursor.fetchmany(_BLOCK):
            writer = writer or parquet.ParquetWriter(part, schema)
            columns = zip(*rows, strict=True)
            arrays = [
                arrow.array(column, type=kind) for column, kind in zip(columns, kinds, strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
    finally:
        if writer is not None:
            writer.close()
    return writer is not None


def _kinds(file: sqlite3.Connection, names: list[str], arrow: Any) -> list[Any]:
    """Return the types of columns, by how the tables declare them; parameters are texts."""
    declared: dict[str, str] = {}
    for table in ("runs", "jobs", "summary"):
        for _, name, kind, *_ in file.execute(f"PRAGMA table_info({table})"):
            declared.setdefault(name, kind)
    known = {"INTEGER": arrow.int64(), "REAL": arrow.float64()}
    return [known.get(declared.get(name, ""), arrow.string()) for name in names]
