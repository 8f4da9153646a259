"""Make the runs of a sweep, one for each trial, in whichever process."""

import json
import resource
import time  # noqa: TID251 - how long a run takes on the wall clock
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs

from simctl.ctld.state.job_rows import JobRow
from simctl.plugins.importing import forget_files
from simctl.plugins.registry import PluginError
from simctl.reports.measures import replayed
from simctl.reports.text import job_label, what_broke
from simctl.runners.work import Chunk
from simctl.running import make_world, run_world
from simctl.scenario.load import read_scenario
from simctl.scenario.model import Scenario
from simctl.scenario.positions import ScenarioErrors
from simctl.scenario.replay_report import ReplayMeasures, Spread, measure
from simctl.status import InputError
from simctl.sweep.checking import composed
from simctl.sweep.options import options_of, scenario_file
from simctl.sweep.plan import Cell, Plan
from simctl.sweep.settings import PathError, parsed
from simctl.world import RunResult, World

MEASURES: Final = (
    "makespan_s",
    "utilisation",
    *(f"wait_{each}_s" for each in ("mean", "p50", "p90", "p95", "p99", "max")),
    *(f"slowdown_{each}" for each in ("mean", "p50", "p90", "p95", "p99", "max")),
)
"""What is measured of a run, as `run --swf` does: columns of the table, null where no job ran."""

KEPT_BYTES: Final = 256 << 20
"""How large a packed database may be that is kept."""


@attrs.frozen(kw_only=True)
class RunRow:
    """What came of a run; the same whenever and wherever it is made."""

    status: str
    """`held`, `broken`, `stalled`, `endless`, `until`, or `failed` where it could not be made."""
    problem: str = ""
    """What did not hold, the first of it."""
    jobs: int = 0
    """How many jobs ran and ended: those that are measured."""
    states: str = "{}"
    """How many jobs ended in each state, as JSON."""
    end_time_us: int = 0
    turns: int = 0
    measures: tuple[float | None, ...] = (None,) * len(MEASURES)


@attrs.frozen(kw_only=True)
class RunChunk(Chunk):
    """What came of a trial, and what it cost."""

    row: RunRow
    jobs: tuple[tuple[Any, ...], ...] = ()
    """A row for each job, if these are wanted."""
    database: bytes | None = None
    """The packed database, of a run that is kept."""
    wall_s: float
    memory_mb: float
    """The most that the process has had."""


class SweepRunner:
    """Makes the trials of a plan, one after another; the last scenario and log are kept."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._scenario: tuple[int, Scenario | None] = (-1, None)
        self._root: tuple[str, Any] = ("", None)
        self._log: tuple[str, Any, Any] = ("", None, None)

    def run_chunk(self, first: int, last: int, *, stop: bool, done: Callable[[], None]) -> RunChunk:
        """Make the one run of a chunk."""
        started = time.perf_counter()
        cell, seed = self._plan.of(first)
        database: bytes | None = None
        rows: Sequence[JobRow] = ()
        try:
            if first in self._plan.kept:
                with TemporaryDirectory(prefix="simctl-sweep-") as folder:
                    place = Path(folder) / "run.db"
                    row, rows = self._run(cell, seed, str(place))
                    database = _packed(place)
            else:
                row, rows = self._run(cell, seed, None)
        except (InputError, PluginError, PathError) as error:
            row = RunRow(status="failed", problem=str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the other runs are made
            name = type(error).__name__
            row = RunRow(status="failed", problem=f"simctl itself: {name}: {error}")
        done()
        return RunChunk(
            first=first,
            last=last,
            ended=False,
            row=row,
            jobs=tuple(map(_job, rows)) if self._plan.jobs else (),
            database=database,
            wall_s=time.perf_counter() - started,
            memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        )

    def _run(self, number: int, seed: int, db: str | None) -> tuple[RunRow, Sequence[JobRow]]:
        cell = self._plan.cells[number]
        options = options_of(cell, self._folder, seed=seed, db=db)
        rows: list[JobRow] = []
        if options.swf:
            world = self._replay(cell, options)
            world.ctld.take_row = rows.append
            capacity = options.nodes * options.cpus_per_node
        else:
            scenario = self._load(number, cell)
            if any(".py" in each for each in scenario.files_of_code):
                # What a plugin keeps in its module must not outlast the run.
                forget_files()
            world = make_world(scenario, options)
            if scenario.expect or not options.no_orderings:
                world.trace.add_sink(world.events.append)
            capacity = sum(node.cpus for node in scenario.nodes)
        result = run_world(world, options)
        if result.interrupted:
            raise KeyboardInterrupt
        rows += result.rows
        return _row(result, rows, capacity, world), rows

    def _load(self, number: int, cell: Cell) -> Scenario:
        if self._scenario[0] != number:
            name = cell.scalar("scenario")
            path, text = scenario_file(name, self._folder), self._plan.texts[name]
            if self._root[0] != name:
                self._root = (name, parsed(text))
            try:
                changed = composed(self._root[1], cell)
                scenario = read_scenario(text, file=str(path), root=changed)
            except ScenarioErrors as error:
                told = "; ".join(f"{each.path}: {each.message}" for each in error.mistakes)
                raise InputError(told) from error
            self._scenario = (number, scenario)
        found = self._scenario[1]
        assert found is not None
        return found

    def _replay(self, cell: Cell, options: Any) -> World:
        from simctl.replay import make_replay, read_log  # noqa: PLC0415 - only logs need it

        wanted = repr([getattr(options, name) for name in _OF_READING])
        if self._log[0] != wanted:
            log, jobs, _ = read_log(options)
            self._log = (wanted, log, jobs)
        return make_replay(self._log[1], self._log[2], options)


_OF_READING: Final = ("swf", "nodes", "cpus_per_node", "limit", "skip_bad")


def _packed(place: Path) -> bytes | None:
    """Return a database, packed; nothing of one that is too large."""
    data = zlib.compress(place.read_bytes(), 1)
    return data if len(data) <= KEPT_BYTES else None


def _row(result: RunResult, rows: Sequence[JobRow], capacity: int, world: World) -> RunRow:
    ran = replayed(rows)
    return RunRow(
        status=_status(result),
        problem="\n".join(what_broke(result)[:1]) if not result.held else "",
        jobs=len(ran),
        states=json.dumps(dict(sorted(Counter(row.state for row in rows).items()))),
        end_time_us=result.end_time_us,
        turns=world.kernel.turns,
        measures=_measures(measure(ran, capacity)) if ran else (None,) * len(MEASURES),
    )


def _status(result: RunResult) -> str:
    if result.ran_out:
        return "endless"
    if result.stalled:
        return "stalled"
    if not result.held:
        return "broken"
    return "until" if result.stopped_at_limit else "held"


def _measures(found: ReplayMeasures) -> tuple[float, ...]:
    def spread(each: Spread) -> tuple[float, ...]:
        return (each.mean, each.p50, each.p90, each.p95, each.p99, each.max)

    return (
        found.makespan_s,
        found.utilisation,
        *spread(found.wait_s),
        *spread(found.bounded_slowdown),
    )


def _job(row: JobRow) -> tuple[Any, ...]:
    """Return a row of the table of jobs, without the run that it is of."""
    moments = (when if when >= 0 else None for when in (row.start_us, row.end_us))
    label = job_label(row).partition(" ")[0]
    who = (label, row.name, row.user, row.partition, row.state, row.restarts)
    return (*who, row.submit_us, *moments, row.cpus, row.num_nodes)
