"""`simctl sweep`: from a file to a table of runs, and to what is printed of it."""

import argparse
import functools
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs

from simctl.runners.running import run
from simctl.runners.versions import about
from simctl.runners.work import LostError, Where, Work, read_where
from simctl.status import INTERRUPTED, NOT_HELD, OK, WRONG_INPUT, InputError
from simctl.sweep.checking import Checked, check
from simctl.sweep.file import read_sweep
from simctl.sweep.left import keep, missing, write_parquet
from simctl.sweep.plan import Plan
from simctl.sweep.runs import RunChunk, SweepRunner
from simctl.sweep.settings import written
from simctl.sweep.summary import CellSummary, as_json, lines_of, notes, summarize
from simctl.sweep.table import Table, identity_of
from simctl.testing.explore.progress import Progress

_TOLD = 10


def sweep(options: argparse.Namespace) -> int:
    """Do as the options say; return the exit status.

    Raises:
        InputError: The sweep, an option or the folder is wrong.
    """
    where = read_where(options.workers, options.dask)
    asked = read_sweep(options.file)
    checked = check(asked)
    for warning in checked.warnings:
        print(f"simctl: {warning}", file=sys.stderr)
    settings = {path: written(value.node) for path, value in asked.settings.items()}
    identity = identity_of(checked.plan, about(), settings, checked.digest())
    folder = _folder(options)
    with closing(Table(folder, checked.plan, identity)) as table:
        made = Made(checked, folder, table, where, quiet=options.quiet)
        made.make()
        return made.tell(as_object=options.json)


def _folder(options: argparse.Namespace) -> Path:
    if options.output == "":
        raise InputError("-o: name a folder")
    return Path(options.output or Path(options.file).stem)


@attrs.define
class Made:
    """A sweep under way, and what it came to."""

    checked: Checked
    folder: Path
    table: Table
    where: Where
    quiet: bool = attrs.field(kw_only=True)
    before: int = 0
    """How many runs were there already."""
    interrupted: bool = False
    lost: LostError | None = None
    wall_s: float = 0.0
    cells: list[CellSummary] = attrs.field(factory=list)
    files: list[Path] = attrs.field(factory=list)

    @property
    def plan(self) -> Plan:
        """Return what is run."""
        return self.checked.plan

    def make(self) -> None:
        """Make the runs that are not in the table, or as many as there is time for.

        Raises:
            InputError: The table cannot be written; what it has stays.
        """
        done = self.table.done()
        self.before = len(done)
        # The seeds of a cell follow each other: its scenario is read once.
        lacking = missing(self.folder, self.plan) - self.table.done("failed")
        to_do = sorted(set(range(self.plan.trials)).difference(done) | lacking)
        progress = Progress(what="runs", total=len(to_do), quiet=self.quiet or not to_do)
        work: Work[RunChunk] = Work(
            make=functools.partial(SweepRunner, self.plan),
            chunks=[(trial, trial) for trial in to_do],
            in_order=False,
            name="sweep",
            folder=self.checked.sweep.folder,
            bundle=self.checked.bundle,
        )
        try:
            for chunk in run(work, self.where, progress.count) if to_do else ():
                progress.broken += chunk.row.status not in ("held", "until")
                keep(self.folder, self.plan, chunk)
                self.table.add(chunk)
        except LostError as error:
            self.lost = error
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self.table.flush()
            self.wall_s = progress.wall_s
            progress.finish()
        self.cells = summarize(self.plan, self.table)
        self.table.summarize(
            [
                (cell.number, name, each)
                for cell in self.cells
                for name, each in cell.measures.items()
            ]
        )
        if not self.interrupted:
            self.files = write_parquet(self.folder, self.table.path)

    def tell(self, *, as_object: bool) -> int:
        """Print what came of it; return the exit status."""
        bad = sum(cell.bad for cell in self.cells)
        runs = sum(cell.runs for cell in self.cells)
        if as_object:
            print(json.dumps(self._as_json(runs, bad), indent=1))
        else:
            self._show(runs, bad)
        if self.interrupted:
            return INTERRUPTED
        if self.lost is not None:
            print(f"simctl: {self.lost}", file=sys.stderr)
            return WRONG_INPUT
        return NOT_HELD if bad else OK

    def _show(self, runs: int, bad: int) -> None:
        plan = self.plan
        if not self.quiet:
            lines = [*lines_of(plan, self.cells), *notes(plan, self.cells)]
            there = f", {self.before:,} of them there before" if self.before else ""
            lines.append(f"{runs:,} of {plan.trials:,} runs{there}: {self.table.path}")
            lines += [f"wrote {path}" for path in self.files]
            print("\n".join(lines))
        for number, (cell, seed, status, problem) in enumerate(self.table.problems()):
            if number == _TOLD:
                print(f"and {bad - _TOLD:,} more, in the table")
                break
            values = zip(plan.parameters, plan.cells[cell].labels, strict=True)
            which = ", ".join([*(f"{name} {label}" for name, label in values), f"seed {seed}"])
            print(f"{status}: {which}: {problem}")
        if self.interrupted:
            print(f"interrupted: {plan.trials - runs:,} runs are left; the same command goes on")

    def _as_json(self, runs: int, bad: int) -> dict[str, Any]:
        return {
            "sweep": Path(self.plan.name).name,
            "table": str(self.table.path),
            "asked": self.plan.trials,
            "runs": runs,
            "bad": bad,
            "interrupted": self.interrupted,
            "cells": as_json(self.plan, self.cells),
            "wall_s": round(self.wall_s, 3),
            "runner": self.where.told,
        }
