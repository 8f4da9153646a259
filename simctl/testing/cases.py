"""A scenario as a test: how it is to be run, and what came of that; pytest's and `simctl test`'s.

Importing this imports no cluster: that is left to whoever runs a case.
"""

import enum
import shlex
import time  # noqa: TID251 - tests take as long as they take on the wall
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from simctl.status import InputError
from simctl.testing.finding import stem_of

if TYPE_CHECKING:
    from simctl.testing.runs import Run
    from simctl.world import World

MODELS: Final = ("guide", "modern")


class Verdict(enum.Enum):
    """What came of a case."""

    HELD = "held"
    BROKEN = "broken"
    """Something that was expected did not come true."""

    WRONG = "wrong"
    """The scenario, a plugin of it or a golden trace cannot be read."""

    CRASHED = "crashed"
    """simctl itself is at fault."""


@attrs.frozen(kw_only=True)
class Variant:
    """How a scenario is run; what is left empty is the scenario's own."""

    model: str = ""
    schedule: str = "fifo"
    seed: int | None = None

    @property
    def label(self) -> str:
        """Return what tells this variant from others of the scenario; nothing for the usual one."""
        own = self.schedule == "fifo" and self.seed is None
        parts = [self.model, "" if own else self.schedule]
        parts.append("" if self.seed is None else str(self.seed))
        return "-".join(part for part in parts if part)


def variants(
    *, seeds: int = 0, schedule: str = "", models: Sequence[str] = ()
) -> tuple[Variant, ...]:
    """Return the runs that are asked of every scenario.

    Each model (none: the scenario's own) is run first come, first served, or under *schedule*; with
    *seeds* under that of each seed from 0 as well, random if no schedule is named.

    Raises:
        InputError: There is no such model.
    """
    for model in models:
        if model not in MODELS:
            raise InputError(f"model: expected {' or '.join(MODELS)}, got {model!r}")
    found: list[Variant] = []
    for model in dict.fromkeys(models) or ("",):
        if not (schedule and seeds):
            found.append(Variant(model=model, schedule=schedule or "fifo"))
        found += [
            Variant(model=model, schedule=schedule or "random", seed=seed) for seed in range(seeds)
        ]
    return tuple(found)


@attrs.frozen(kw_only=True)
class Case:
    """A scenario's file and how it is run."""

    path: Path
    variant: Variant = attrs.field(factory=Variant)

    @property
    def name(self) -> str:
        """Return the name of the case, which is unique among those of its file."""
        label = self.variant.label
        return f"{stem_of(self.path)}[{label}]" if label else stem_of(self.path)

    def golden(self, model: str) -> Path | None:
        """Return the file of the golden trace; None for runs under other schedules than fifo.

        *model* is that of the run where it is not the scenario's own, else nothing.
        """
        if self.variant.schedule != "fifo" or self.variant.seed is not None:
            return None
        suffix = f".{model}" if model else ""
        return self.path.with_name(f"{stem_of(self.path)}{suffix}.golden.jsonl")


@attrs.frozen(kw_only=True)
class Settings:
    """What is asked of every case."""

    golden: str = "existing"
    """One of `GOLDEN_MODES`."""

    rewrite: bool = False
    ignore: tuple[str, ...] = ()
    check_determinism: bool = False
    orderings: bool = True
    """Whether the built-in orderings are checked, and a broken one fails the case."""

    html: str = ""
    """A folder for the pages of cases that fail; empty for none."""

    command: str = "simctl test"
    """What runs tests, for the lines that say how to go on."""

    rewrite_option: str = "--rewrite"
    determinism_option: str = "--check-determinism"


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of a case, in lines for people."""

    case: Case
    verdict: Verdict
    lines: tuple[str, ...] = ()
    """What is wrong; nothing if all held."""

    note: str = ""
    """What else is worth a word."""

    golden: Path | None = None
    """The golden trace that it was compared with, or that was written."""

    transcript: tuple[str, ...] = ()
    """What the commands of the timeline printed."""

    wall_s: float = 0.0


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
