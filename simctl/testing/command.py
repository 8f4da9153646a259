"""`simctl test`: scenarios run as tests, as the pytest plugin does, without pytest."""

import argparse
import sys
import time  # noqa: TID251 - tests take as long as they take on the wall
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from simctl.runners.work import Where, read_where
from simctl.status import BROKEN, INTERRUPTED, NOT_HELD, OK, WRONG_INPUT, InputError
from simctl.testing.cases import (
    Case,
    Outcome,
    Settings,
    Verdict,
    variants,
)
from simctl.testing.finding import find_scenarios
from simctl.testing.keywords import selects
from simctl.testing.pages import check_folder
from simctl.testing.workers import run_cases

_WORDS: Final = {
    Verdict.HELD: "held",
    Verdict.BROKEN: "BROKEN",
    Verdict.WRONG: "WRONG",
    Verdict.CRASHED: "CRASHED",
}
_STATUS: Final = {
    Verdict.CRASHED: BROKEN,
    Verdict.WRONG: WRONG_INPUT,
    Verdict.BROKEN: NOT_HELD,
    Verdict.HELD: OK,
}
"""The exit status, by the worst verdict there was; worse ones come first."""


def run_tests(options: argparse.Namespace) -> int:
    """Run what the options name; return the exit status.

    Raises:
        InputError: An option is wrong, or there is nothing to run.
    """
    settings = Settings(
        golden=options.golden,
        rewrite=options.rewrite,
        ignore=tuple(options.ignore),
        check_determinism=options.check_determinism,
        orderings=not options.no_orderings,
        html=options.html or "",
    )
    if options.html is not None:
        check_folder(options.html, "--html")
    if options.rewrite and options.golden == "off":
        raise InputError("test: --rewrite and --golden off contradict each other")
    if options.junit is not None and (not options.junit or Path(options.junit).is_dir()):
        raise InputError(f"--junit: expected the name of a file, got {options.junit!r}")
    if options.junit:
        _check_junit(options)
    where = _where(options)
    cases = _cases(options)
    named = {Path(name).resolve() for name in options.paths}
    outcomes: list[Outcome] = []
    interrupted = False
    started = time.perf_counter()
    try:
        told = [(case, case.path.resolve() in named) for case in cases]
        for outcome in run_cases(told, settings, where):
            outcomes.append(outcome)
            _tell(outcome)
    except KeyboardInterrupt:
        interrupted = True
    if options.junit:
        _write_junit(Path(options.junit), outcomes, force=options.force)
    took_s = time.perf_counter() - started
    _summarize(outcomes, len(cases), options, took_s, interrupted=interrupted)
    if interrupted:
        return INTERRUPTED
    verdicts = {outcome.verdict for outcome in outcomes}
    return next(status for verdict, status in _STATUS.items() if verdict in verdicts)


def _where(options: argparse.Namespace) -> Where:
    """Return where cases are run.

    Raises:
        InputError: What is asked for cannot be had there.
    """
    if options.dask is None:
        return Where(workers=1 if options.see else options.workers or 1)
    for name, asked in (
        ("-s", options.see),
        ("--rewrite", options.rewrite),
        ("--html", options.html is not None),
    ):
        if asked:
            raise InputError(
                f"test: {name} goes without --dask: it is for files and terminals here"
            )
    return read_where(options.workers, options.dask)


def _cases(options: argparse.Namespace) -> list[Case]:
    models = [word for words in options.model for word in words.split(",") if word]
    how = variants(seeds=options.seeds, schedule=options.schedule, models=models)
    paths = find_scenarios(options.paths)
    if not paths:
        raise InputError(
            f"test: no scenarios in {', '.join(options.paths)}: looked for *.scenario.yaml, for "
            "scenarios/*.yaml, and for YAML files with keys of a scenario in the folder itself"
        )
    cases = [Case(path=path, variant=each) for path in paths for each in how]
    chosen = [case for case in cases if not options.k or selects(options.k, _full_name(case))]
    if not chosen:
        raise InputError(f"test: -k {options.k!r} leaves none of {_counted(len(cases), 'run')}")
    return chosen


def _full_name(case: Case) -> str:
    return f"{case.path.as_posix()}::{case.name}"


def _tell(outcome: Outcome) -> None:
    """Print the line of a case, and below it what is wrong."""
    case = outcome.case
    label = case.variant.label
    where = f"{case.path}{f' [{label}]' if label else ''}"
    note = f"  ({outcome.note})" if outcome.note else ""
    print(f"{_WORDS[outcome.verdict]:<7} {where}{note}")
    for line in outcome.lines:
        print(f"    {line}")
    sys.stdout.flush()


def _summarize(
    outcomes: Sequence[Outcome],
    asked: int,
    options: argparse.Namespace,
    took_s: float,
    *,
    interrupted: bool,
) -> None:
    counts = Counter(outcome.verdict for outcome in outcomes)
    parts = [
        f"{counts[verdict]} {verdict.value}"
        for verdict in Verdict
        if counts[verdict] or verdict is Verdict.HELD
    ]
    twice = ", each run twice" if options.check_determinism else ""
    print(f"{_counted(len(outcomes), 'run')}: {', '.join(parts)}{twice}, in {took_s:.2f} s")
    if interrupted:
        print(f"interrupted: {asked - len(outcomes)} of {_counted(asked, 'run')} not finished")
    if options.rewrite and not any(outcome.golden for outcome in outcomes):
        print("no golden traces: name a scenario's file, or say --golden all, to make the first")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _check_junit(options: argparse.Namespace) -> None:
    """Check before the first test that the report may be written where it is wanted."""
    from simctl.outputs import REPORT, TakenError, place_of

    try:
        # What else stands in the way is told after the results, which are not lost for it.
        with suppress(NotADirectoryError, PermissionError):
            place_of(options.junit, REPORT, force=options.force)
    except TakenError as error:
        raise InputError(f"--junit: cannot write {options.junit}: {error.strerror}") from error


def _write_junit(path: Path, outcomes: Sequence[Outcome], *, force: bool) -> None:
    from simctl.testing.junit import write

    try:
        write(path, outcomes, force=force)
    except OSError as error:
        raise InputError(f"--junit: cannot write {path}: {error.strerror}") from error
