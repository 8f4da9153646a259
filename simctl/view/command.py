"""`simctl view`: from options to a page, and to what other programs show."""

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern, PatternError
from simctl.kernel.recording import RecordingError
from simctl.orderings.checking import Report
from simctl.scenario.durations import DurationError, parse_duration_us
from simctl.status import NOT_HELD, OK, InputError
from simctl.view.facts import facts_of
from simctl.view.findings import Finding, findings_of, findings_of_trace, recheck, verdict_of
from simctl.view.packing import pack
from simctl.view.page import PAGE, write, write_page
from simctl.view.reading import EVERYTHING, Seen, Selection, read_seen, seen_of
from simctl.world import RunResult


def selection_of(options: argparse.Namespace) -> Selection:
    """Return which part of a run the options ask for.

    Raises:
        InputError: A moment cannot be read, or the last comes before the first.
    """

    def moment(name: str, text: str | None) -> int | None:
        try:
            return None if text is None else parse_duration_us(text)
        except DurationError as error:
            raise InputError(f"--{name}: {error}") from error

    from_us = moment("from", options.from_) or 0
    to_us = moment("to", options.to)
    if to_us is not None and to_us < from_us:
        raise InputError(f"view: --to {options.to} comes before --from {options.from_}")
    return Selection(job=options.job, from_us=from_us, to_us=to_us)


def is_scenario(path: str) -> bool:
    """Return whether a name is that of a scenario, a shipped one among them, and of no trace."""
    if path == "-" or path.endswith((".jsonl", ".jsonl.gz")):
        return False
    return path.endswith((".yaml", ".yml")) or not Path(path).exists()


def read_trace(path: str, selection: Selection) -> Seen:
    """Return the part of a trace that is wanted.

    Raises:
        InputError: It cannot be read, or is too much.
    """
    try:
        return read_seen(Path(path), selection)
    except RecordingError as error:
        raise InputError(str(error)) from error


def page_of_trace(seen: Seen) -> bytes:
    """Return the page of a trace, held against the built-in orderings anew."""
    report = recheck(seen)
    broken = findings_of_trace(seen, report)
    return _page(seen, broken, _verdict_of_trace(seen, broken, report), None)


def _verdict_of_trace(seen: Seen, broken: Sequence[Finding], report: Report) -> str:
    anew = f"orderings, checked anew: {report.summary}"
    if broken:
        return f"{len(broken)} of what was expected did not hold; {anew}"
    how = {
        "done": "the run came to its end",
        "until": "the run was stopped at --until",
        "stalled": "the run stalled",
        "interrupted": "the run was interrupted",
        "failed": "the run could not go on",
    }.get(seen.reason, "the trace does not tell how the run ended")
    told = "its end tells of nothing that broke; " if seen.reason else ""
    return f"{how}; {told}{anew}"


def page_of_run(
    seen: Seen,
    result: RunResult,
    apart: Mapping[str, Any] | None = None,
    also: Sequence[Finding] = (),
) -> bytes:
    """Return the page of a run, with what did not hold in it, *also* among that."""
    broken = [*findings_of(result, seen.events), *also]
    return _page(seen, broken, verdict_of(result), apart)


def _page(
    seen: Seen, broken: Sequence[Mapping[str, Any]], verdict: str, apart: Mapping[str, Any] | None
) -> bytes:
    header = seen.header
    title = f"{header.get('scenario', 'a run')}"
    data = {"page": facts_of(seen, broken, verdict, apart), "events": pack(seen.events)}
    return write_page(title, data)


def view_trace(options: argparse.Namespace, path: str) -> int:
    """Write what is wanted of a trace; return the exit status."""
    seen = read_trace(path, selection_of(options))
    for note in seen.notes:
        print(f"simctl: {path}: {note}", file=sys.stderr)
    _deliver(options, seen, path, lambda: page_of_trace(seen))
    return OK


def view_run(
    options: argparse.Namespace,
    path: str,
    header: Mapping[str, Any],
    events: Sequence[Event],
    result: RunResult,
) -> int:
    """Write what is wanted of a run that was just made; return the exit status."""
    seen = seen_of(header, events, selection_of(options), path)
    _deliver(options, seen, path, lambda: page_of_run(seen, result))
    return OK if result.held else NOT_HELD


def _deliver(options: argparse.Namespace, seen: Seen, path: str, page: Callable[[], bytes]) -> None:
    """Write the page of a run, or what the options want instead."""
    force = options.force
    if options.mermaid:
        from simctl.view.mermaid import MERMAID, to_mermaid

        if options.job is None:
            raise InputError("view: --mermaid goes with --job N: a diagram is of one job")
        write(options.output or "-", MERMAID, to_mermaid(seen).encode(), "-o", force=force)
        return
    if options.perfetto is not None:
        from simctl.view.perfetto import PERFETTO, to_perfetto

        write(options.perfetto, PERFETTO, to_perfetto(seen), "--perfetto", force=force)
        name = options.perfetto
    elif options.svg is not None:
        from simctl.view.svg import SVG, to_svg

        title = str(seen.header.get("scenario", "a run"))
        picture = to_svg(seen, _only(seen, options.only), title)
        write(options.svg, SVG, picture, "--svg", force=force)
        name = options.svg
    else:
        name = options.output or default_name(path)
        write(name, PAGE, page(), "-o", force=force)
    if name != "-":
        print(f"wrote {shlex.quote(name)}")


def _only(seen: Seen, text: str | None) -> list[Event]:
    """Return the events that a pattern leaves, all without one; as `within` of an order has it."""
    if text is None:
        return list(seen.events)
    users = seen.header.get("users", {})
    try:
        first = text.split(maxsplit=1)[0] if text.strip() else ""
        named = first and "=" not in first
        pattern = Pattern.parse(text, users) if named else Pattern.parse_filter(text, users)
    except PatternError as error:
        raise InputError(f"--only: {error}") from error
    return [event for event in seen.events if pattern.matches(event)]


def check_view(options: argparse.Namespace) -> None:
    """Check that the options mean something together.

    Raises:
        InputError: They do not.
    """
    kinds = ("mermaid", "perfetto", "svg", "gantt", "live")
    asked = [name for name in kinds if getattr(options, name) not in (None, False)]
    if len(asked) > 1:
        raise InputError(f"view: --{asked[0]} and --{asked[1]}: one at a time")
    if options.output and asked and asked not in (["mermaid"], ["gantt"]):
        raise InputError(f"view: -o is for a page; --{asked[0]} names its file itself")
    if options.only is not None and asked != ["svg"]:
        raise InputError("view: --only goes with --svg; a page has a filter")
    part = [name for name in ("job", "from_", "to") if getattr(options, name) is not None]
    if asked in (["gantt"], ["live"]) and part:
        raise InputError(f"view: --{asked[0]} shows all; --{part[0].strip('_')} is for traces")
    if options.port is not None and asked != ["live"]:
        raise InputError("view: --port goes with --live")
    if not options.inputs and asked != ["live"]:
        raise InputError("view: name a trace or a scenario")
    if len(options.inputs) > 1 and not options.gantt:
        raise InputError(f"view: one trace or scenario, got {len(options.inputs)}")


def default_name(path: str) -> str:
    """Return the name of the page of a trace or a scenario, in the folder where one is."""
    name = Path(path).name
    for suffix in (".gz", ".jsonl", ".json", ".trace", ".yaml", ".yml"):
        name = name.removesuffix(suffix)
    return f"{name if name not in ('', '-') else 'run'}.html"


def write_run(
    path: str,
    header: Mapping[str, Any],
    events: Sequence[Event],
    result: RunResult,
    option: str,
    *,
    force: bool,
    apart: Mapping[str, Any] | None = None,
    also: Sequence[Finding] = (),
) -> None:
    """Write the page of a run.

    *apart* is how it differs from one in which all held, *also* what else did not hold in it.

    Raises:
        InputError: It cannot be written, or the run is too large for one.
    """
    seen = seen_of(header, events, EVERYTHING, option)
    write(path, PAGE, page_of_run(seen, result, apart, also), option, force=force)
