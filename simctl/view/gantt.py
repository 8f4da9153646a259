"""Pages of nodes over time: who had which nodes when, queue, use and waits, of one run or two."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from simctl.status import OK, InputError
from simctl.view.comparing import as_json, compare, measure, told
from simctl.view.page import PAGE, check_output, write, write_page
from simctl.view.recorded import is_recorded, read_recorded
from simctl.view.runs import StoredRun, read_run
from simctl.wire.hostlist import HostlistError, expand

_SCRIPTS: Final = ("gantt.js",)
_BAD: Final = ("DOWN", "DRAIN", "FAIL", "UNKNOWN")


def gantt_page(runs: Sequence[StoredRun]) -> bytes:
    """Return the page of one run, or of two on one axis of time."""
    data: dict[str, Any] = {"words": []}
    if len(runs) > 1:
        found = compare(*runs)
        data["words"] = told(found)
        data["comparison"] = as_json(found)
        # A recorded run stands there on the other's clock.
        runs = (found.one, found.other)
    data["runs"] = [_run_data(run) for run in runs]
    title = " and ".join(run.name for run in runs)
    return write_page(title, data, scripts=_SCRIPTS, template="gantt.html")


def _run_data(run: StoredRun) -> dict[str, Any]:
    places = {name: number for number, name in enumerate(run.nodes)}
    ranges: dict[str, list[int]] = {}
    return {
        "name": run.name,
        "facts": {
            key: run.facts.get(key) for key in ("recorded", "scenario", "seed", "schedule", "model")
        },
        "whole": run.whole,
        "end_us": run.end_us,
        "nodes": list(run.nodes),
        "measures": measure(run).as_json(),
        # label, name, user, state, submit, eligible, start, end, nodes as first and last in turn
        "jobs": [
            [
                *(job.label, job.name, job.user, job.state),
                *(job.submit_us, job.eligible_us, job.start_us, job.end_us),
                ranges.setdefault(job.nodes, _ranges(job.nodes, places)),
            ]
            for job in run.jobs
        ],
        "bad": _bad_times(run, places),
    }


def _ranges(nodes: str, places: Mapping[str, int]) -> list[int]:
    """Return nodes as stretches of rows: first and last of each, in turn."""
    try:
        rows = sorted(places[name] for name in expand(nodes) if name in places) if nodes else []
    except HostlistError:
        rows = []
    found: list[int] = []
    for row in rows:
        if found and row == found[-1] + 1:
            found[-1] = row
        elif not found or row != found[-1]:
            found += [row, row]
    return found


def _bad_times(run: StoredRun, places: Mapping[str, int]) -> list[list[Any]]:
    """Return when nodes were not to be had: row, from, to (null: to the end), and their state."""
    found: list[list[Any]] = []
    open_: dict[str, list[Any]] = {}
    for when, node, state in run.node_states:
        if node in open_:
            before = open_.pop(node)
            before[2] = when
            if before[2] > before[1]:
                found.append(before)
        if node in places and any(word in state for word in _BAD):
            open_[node] = [places[node], when, None, state]
    return [*found, *open_.values()]


def view_gantt(paths: Sequence[str], output: str, *, force: bool) -> int:
    """Write the page of one database or two; return the exit status.

    Raises:
        InputError: One cannot be read, or the page cannot be written.
    """
    if len(paths) > 2:  # noqa: PLR2004 - a run, or one against another
        raise InputError(f"view: --gantt takes one database or two, got {len(paths)}")
    name = output or f"{Path(paths[0]).stem}.html"
    check_output(name, PAGE, "-o", force=force)
    runs = [_read(path) for path in paths]
    write(name, PAGE, gantt_page(runs), "-o", force=force)
    if name != "-":
        print(f"wrote {shlex.quote(name)}")
    return OK


def compare_files(one: str, other: str, html: str | None, *, as_object: bool, force: bool) -> int:
    """Print two runs beside each other in words, or as JSON; return the exit status.

    Raises:
        InputError: One cannot be read, or the page cannot be written.
    """
    import json

    if html is not None:
        check_output(html, PAGE, "--html", force=force)
    runs = [_read(path) for path in (one, other)]
    found = compare(*runs)
    if html is not None:
        write(html, PAGE, gantt_page(runs), "--html", force=force)
    if as_object:
        print(json.dumps(as_json(found), indent=1))
    else:
        for line in told(found):
            print(line)
    return OK


def _read(path: str) -> StoredRun:
    if is_recorded(path):
        return read_recorded(path)
    run = read_run(path)
    if not run.whole:
        print(f"simctl: {path}: the run was cut short; this is what was reached", file=sys.stderr)
    return run
