"""Run a scenario as a test, and judge it: for pytest and `simctl test`.

Importing this imports no cluster: that is left to the run of a case.
"""

import shlex
import time  # noqa: TID251 - tests take as long as they take on the wall
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from simctl.status import InputError
from simctl.testing.cases import Case, Outcome, Settings, Verdict

if TYPE_CHECKING:
    from simctl.testing.runs import Run
    from simctl.world import World


def run_case(case: Case, settings: Settings, *, named: bool = False) -> Outcome:
    """Run a case; *named* tells that its file was, and so may be given a first golden trace.

    Raises:
        KeyboardInterrupt: Ctrl-C has ended the run.
    """
    started = time.perf_counter()
    try:
        outcome = _run(case, settings, named=named)
    except InputError as error:
        lines = tuple(str(error).splitlines())
        outcome = Outcome(case=case, verdict=Verdict.WRONG, lines=lines)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other cases are run
        path = shlex.quote(str(case.path))
        lines = (
            f"internal error: {type(error).__name__}: {error}",
            f"This is a fault of simctl's; `simctl --debug run {path}` shows where.",
        )
        outcome = Outcome(case=case, verdict=Verdict.CRASHED, lines=lines)
    return attrs.evolve(
        outcome,
        lines=tuple(printable(line) for line in outcome.lines),
        note=printable(outcome.note),
        wall_s=time.perf_counter() - started,
    )


def printable(text: str) -> str:
    """Escape, as Python writes it, what plugins and programs may say and no terminal should get."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def _run(case: Case, settings: Settings, *, named: bool) -> Outcome:
    from simctl.reports.text import what_broke  # noqa: PLC0415 - see the module
    from simctl.story.happenings import happenings  # noqa: PLC0415
    from simctl.testing.runs import make_world  # noqa: PLC0415

    how = case.variant
    world = make_world(
        case.path,
        model=how.model,
        schedule=how.schedule,
        seed=how.seed,
        orderings=settings.orderings,
        values=settings.check_determinism,
    )
    run, apart = _run_once_or_twice(case, world, settings)
    lines = what_broke(run.result) if not run.held else []
    if lines:
        lines += [*run.failures, f"to repeat: {run.repeat}"]
    if apart:
        lines += [*apart, f"to repeat: {_command(case, settings, settings.determinism_option)}"]
    model = "" if run.result.model == world.scenario.model else run.result.model
    golden = _golden(case.golden(model), settings, named=named)
    written, differs = "", tuple[str, ...]()
    if golden is not None and not (lines and settings.rewrite):
        # Of a run that breaks no golden trace is made.
        written, differs = _compare(case, golden, run, settings)
    if settings.html and (lines or differs):
        from simctl.testing.pages import leave_page  # noqa: PLC0415 - only what fails has a page

        label = f"-{how.label}" if how.label else ""
        differs = (*differs, leave_page(settings.html, f"{case.path}{label}", run))
    return Outcome(
        case=case,
        verdict=_verdict(run, broken=bool(lines or differs)),
        lines=(*lines, *differs),
        note=written or _plugins_at_fault(run),
        golden=golden,
        transcript=tuple(happenings(run.result, run.events)),
    )


def _verdict(run: "Run", *, broken: bool) -> Verdict:
    if any(each.slip for each in run.result.expectations):
        return Verdict.WRONG
    return Verdict.BROKEN if broken else Verdict.HELD


def _run_once_or_twice(
    case: Case, world: "World", settings: Settings
) -> tuple["Run", tuple[str, ...]]:
    """Return the run, and how a second one differs where that is asked."""
    from simctl.testing.runs import Surroundings, run_world  # noqa: PLC0415

    around = Surroundings(path=str(case.path))
    if not settings.check_determinism:
        return run_world(world, around), ()
    from simctl.testing.determinism import SecondRun, without_values  # noqa: PLC0415

    with SecondRun(case) as second:
        run = run_world(world, around)
        apart = second.difference(run)
    if not world.scenario.options.trace_values:
        run = attrs.evolve(run, events=without_values(run.events))
    return run, apart


def _plugins_at_fault(run: "Run") -> str:
    """Say that plugins raised or the like, which by itself breaks nothing."""
    first = next(iter(run.plugin_errors), "")
    more = len(run.plugin_errors) - 1
    return f"plugin {first}{f' (and {more} more)' if more > 0 else ''}" if first else ""


def _golden(path: Path | None, settings: Settings, *, named: bool) -> Path | None:
    """Return the golden trace to compare with or to write, if there is to be one."""
    if path is None or settings.golden == "off":
        return None
    wanted = settings.golden == "all" or (settings.rewrite and named)
    return path if wanted or path.exists() else None


def _compare(case: Case, path: Path, run: "Run", settings: Settings) -> tuple[str, tuple[str, ...]]:
    """Compare with the golden trace, or write it; return a note, and what is wrong."""
    from simctl.testing.golden import compare  # noqa: PLC0415 - see the module

    found = compare(path, run.header, run.events, ignore=settings.ignore, rewrite=settings.rewrite)
    if found.written:
        return f"wrote {path}", ()
    if not found.trouble:
        return "", ()
    anew = _command(case, settings, settings.rewrite_option)
    return "", (
        f"NOT AS {path.name}:",
        *(f"       {line}" for line in found.trouble),
        f"if the run is as it should be: {anew}",
    )


def _command(case: Case, settings: Settings, option: str) -> str:
    return f"{settings.command} {shlex.quote(str(case.path))} {option}"
