"""`simctl explore`: from options to a search, and from a search to what is printed."""

import json
import os
import sys
from pathlib import Path
from typing import Final

import attrs

from simctl.files import read_text
from simctl.kernel.schedules import InTurn
from simctl.numbers import check_last_seed
from simctl.plugins.registry import PluginError
from simctl.runners.work import LostError
from simctl.scenario.positions import ScenarioErrors
from simctl.status import INTERRUPTED, NOT_HELD, OK, WRONG_INPUT, InputError
from simctl.testing.explore.faults import chosen, placements
from simctl.testing.explore.found import Report, Target
from simctl.testing.explore.options import Options
from simctl.testing.explore.plan import Plan
from simctl.testing.explore.progress import Progress
from simctl.testing.explore.report import (
    broken_lines,
    by_placement,
    covered,
    exhausted,
    placement_rows,
    told,
)
from simctl.testing.explore.search import Search
from simctl.testing.explore.trial import Ran, Terms, load_text, run_trial
from simctl.testing.explore.workers import Find

_TURNS_AT_LEAST: Final = 100_000
_TURNS_TIMES: Final = 50
_JITTER_TIMES: Final = 40
_JITTER_WITHOUT_LATENCY_US: Final = 4_000


def explore(options: Options) -> int:
    """Search as the options say; print what was found; return the exit status."""
    search = _begin(options)
    search.target.check()
    first = _first_run(search)
    # Where nothing holds to begin with, no fault has to be placed to break it.
    if options.faults and not first.broken:
        placed = tuple(placements(search.text, search.scenario, search.events_of))
        search.placements = chosen(placed, options.only) if options.only else placed
    plan = _plan(search, first)
    total = 0 if options.exhaustive else plan.trials
    progress = Progress(what=search.what, total=total, quiet=options.quiet)
    try:
        try:
            if options.exhaustive:
                search.exhaust(progress)
            else:
                search.try_all(plan, progress)
        except LostError as error:
            search.lost = error
        finally:
            search.wall_s = progress.wall_s
            progress.finish()
        if search.finds:
            search.pursue(plan, progress)
    except KeyboardInterrupt:
        progress.clear()
        search.interrupted = True
    _show(search, plan)
    if search.interrupted:
        return INTERRUPTED
    if search.lost is not None:
        print(f"simctl: {search.lost}", file=sys.stderr)
        return NOT_HELD if search.finds else WRONG_INPUT
    return NOT_HELD if search.finds else OK


def _begin(options: Options) -> Search:
    try:
        text = read_text(options.path)
        scenario = load_text(text, options.path)
    except ScenarioErrors as error:
        lines = "\n".join(str(mistake) for mistake in error.mistakes)
        raise InputError(lines, placed=True) from error
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(f"cannot read {options.path}: {why}") from error
    first = scenario.seed if options.first_seed is None else options.first_seed
    check_last_seed(first, 1 if options.exhaustive else options.seeds)
    for warning in scenario.warnings:
        print(f"{warning} (warning)", file=sys.stderr)
    target = Target(
        given=options.output,
        force=options.force,
        folder=_folder(options),
        stem=options.path.name.removesuffix(".yaml"),
        search=options.words,
        origin=text,
    )
    terms = Terms(model=options.model or scenario.model, watchdog_s=options.watchdog_s)
    return Search(options=options, text=text, scenario=scenario, terms=terms, target=target)


def _folder(options: Options) -> Path:
    """Return where a find goes: beside the scenario, if it may be written there."""
    beside = options.path.parent
    return Path() if options.shipped or not os.access(beside, os.W_OK) else beside


def _first_run(search: Search) -> Ran:
    """Run once, first come, first served: what a run is like, and whether it can be run at all."""
    try:
        ran = run_trial(search.scenario, InTurn(), search.first_seed, search.terms)
    except PluginError as error:
        raise InputError(str(error), placed=True) from error
    for each in ran.broken:
        if each.kind == "plugin":
            raise InputError(each.text)
    most = max(_TURNS_AT_LEAST, _TURNS_TIMES * ran.turns)
    search.terms = attrs.evolve(search.terms, most_turns=most)
    return ran


def _plan(search: Search, first: Ran) -> Plan:
    options = search.options
    jitter_us = options.jitter_us
    if jitter_us is None:
        jitter_us = search.scenario.latency_us * _JITTER_TIMES or _JITTER_WITHOUT_LATENCY_US
    return Plan(
        path=str(options.path),
        texts=tuple(each.text for each in search.placements) or (search.text,),
        first_seed=search.first_seed,
        seeds=options.seeds,
        jitter_us=jitter_us,
        length=max(1, first.line.points),
        terms=search.terms,
    )


def _show(search: Search, plan: Plan) -> None:
    """Print what the search came to."""
    if search.options.as_json:
        found = search.report or (_raw(search, plan) if search.finds else None)
        print(json.dumps(search.as_json(found), indent=1))
        return
    if search.interrupted:
        print("interrupted: this is what was reached")
    if search.report is not None:
        print(f"found at seed {search.report.seed} under {search.report.schedule}{_where(search)}:")
        for line in told(search.report):
            print(line)
    elif search.finds:
        _show_raw(search, plan, search.finds[0])
    if search.placements:
        _show_placements(search)
    elif search.tally is not None:
        # That something was left out is said in any case.
        if not search.options.quiet or not (search.tally.complete or search.finds):
            for line in exhausted(search.tally, search.scenario.path_name, len(search.finds)):
                print(line)
    elif not search.options.quiet:
        last = plan.first_seed + max(0, search.runs - 1)
        print(
            f"{search.runs:,} schedules of {search.scenario.path_name}, model "
            f"{search.terms.model}, seeds {plan.first_seed} to {last}: {len(search.finds)} broken"
        )
    if not search.options.quiet:
        for line in covered(search.coverage):
            print(line)


def _where(search: Search) -> str:
    if not search.placements:
        return ""
    return f", {search.placement_of(search.finds[0]).row}"


def _show_placements(search: Search) -> None:
    """Print a row for each place at which a fault broke something, and their sum."""
    broken = by_placement(search.finds, search.options.seeds)
    for line in placement_rows(search.placements, broken, search.options.seeds):
        print(line)
    if len(broken) > 1:
        row = search.placements[list(broken)[1]].row
        print(f"to repeat one of these rows, such as the second: {search.again(row)}")
    if not search.options.quiet:
        print(
            f"{search.runs:,} runs of {search.scenario.path_name}, model {search.terms.model}: "
            f"{len(search.placements):,} placements of faults, {len(broken):,} of them broken"
        )


def _show_raw(search: Search, plan: Plan, find: Find) -> None:
    """Tell a find that there was no time to make small."""
    for line in broken_lines(find.broken):
        print(line)
    if search.placements:
        print(f"{_where(search).removeprefix(', ')}; seed {_seed(search, plan)}")
    print(f"to repeat: {_raw(search, plan).command}")


def _raw(search: Search, plan: Plan) -> Report:
    """Return the first find as it was met: in the scenario as given, unless a fault was placed."""
    find = search.finds[0]
    return Report(
        broken=find.broken,
        seed=_seed(search, plan),
        schedule=find.schedule,
        token=find.token,
        given="" if search.placements else str(search.options.path),
        model=search.terms.model,
        again=search.again(search.placement_of(find).row) if search.placements else "",
    )


def _seed(search: Search, plan: Plan) -> int:
    return search.first_seed if search.tally else plan.seed_of(search.finds[0].number)
