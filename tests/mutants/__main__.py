"""Try mutations of the lifecycle code on the test suite, and report what nothing notices."""

import argparse
import fnmatch
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from simctl.runners.arguments import add_where
from simctl.runners.work import LostError, Where, read_where
from simctl.status import INTERRUPTED, NOT_HELD, OK, WRONG_INPUT, InputError
from tests.mutants import running
from tests.mutants.catalogue import Mutant, mutants
from tests.mutants.running import Crew, Outcome

ROOT: Final = Path(__file__).resolve().parent.parent.parent
EQUIVALENTS: Final = Path(__file__).with_name("equivalents.yaml")


def arguments(words: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the ids and do nothing")
    parser.add_argument("--show", action="store_true", help="print what each changes, do nothing")
    parser.add_argument("--only", metavar="PATTERN", action="append", help="ids with this in them")
    parser.add_argument("--shard", metavar="I/N", default="1/1", help="every Nth, from the Ith on")
    parser.add_argument("--resume", action="store_true", help="leave out what has been tried")
    parser.add_argument(
        "--missed",
        action="store_true",
        help="what no rule and no test caught, equivalents left out",
    )
    add_where(parser)
    parser.add_argument(
        "--budget", type=float, default=60, help="seconds of tests for a mutant, as measured before"
    )
    parser.add_argument("--tests", metavar="FILE", nargs="+", default=[], help="show them to these")
    parser.add_argument("--json", action="store_true", help="print all outcomes as JSON")
    parser.add_argument("--state", type=Path, default=ROOT / ".mutants", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def choose(every: list[Mutant], args: argparse.Namespace) -> list[Mutant]:
    """Return the mutants that the command line asks for."""
    first, _, count = args.shard.partition("/")
    if not (first.isdecimal() and count.isdecimal() and 0 < int(first) <= int(count)):
        raise SystemExit(f"--shard {args.shard}: write I/N, such as 2/4")
    chosen = every[int(first) - 1 :: int(count)]
    if args.only:
        chosen = [mutant for mutant in chosen if _is_asked_for(mutant, args.only)]
    if not chosen:
        raise SystemExit(f"no mutant has {' or '.join(args.only or ())} in its id; see --list")
    return chosen


def _is_asked_for(mutant: Mutant, patterns: list[str]) -> bool:
    return any(
        pattern in mutant.id or fnmatch.fnmatchcase(mutant.id, pattern) for pattern in patterns
    )


def files_of_tests(names: list[str]) -> list[str]:
    """Return files of tests as paths in the tree.

    Raises:
        InputError: One is none of the tree's.
    """
    paths = [Path(name).resolve() for name in names]
    for name, path in zip(names, paths, strict=True):
        if not path.is_file() or not path.is_relative_to(ROOT / "tests"):
            raise InputError(f"--tests {name}: there is no such file below tests/")
    return [path.relative_to(ROOT).as_posix() for path in paths]


def equivalents() -> dict[str, str]:
    """Return the mutants that change nothing anybody could see, each with the reason."""
    found: dict[str, str] = {}
    for entry in yaml.safe_load(EQUIVALENTS.read_text()) or []:
        found |= dict.fromkeys(entry["mutants"], entry["why"])
    return found


def main(words: list[str]) -> int:
    """Do as the command line says; return 0 if nothing was missed."""
    try:
        return _main(words)
    except InputError as error:
        print(f"make mutants: {error}", file=sys.stderr)
        return WRONG_INPUT


def _main(words: list[str]) -> int:
    args = arguments(words)
    where = read_where(args.workers, args.dask)
    args.tests = files_of_tests(args.tests)
    every = mutants(ROOT)
    chosen = choose(every, args)
    if args.list or args.show:
        for mutant in chosen:
            print(mutant.diff() if args.show else mutant.id)
        return OK
    same = equivalents()
    stale = sorted(set(same) - {mutant.id for mutant in every})
    args.state.mkdir(exist_ok=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    began = time.monotonic()
    log = args.state / "outcomes.jsonl"
    known = _known(log, chosen)
    lost: LostError | None = None
    try:
        _try(_todo(chosen, known, args), known, where, args)
    except LostError as error:
        lost = error
    except KeyboardInterrupt:
        print("\nstopped; `--resume` goes on from here", file=sys.stderr)
        return INTERRUPTED
    asked = [known[mutant.id] for mutant in chosen if mutant.id in known]
    wall_s = time.monotonic() - began
    if args.json:
        print(json.dumps(as_json(asked, same, stale, wall_s, where), indent=1))
    else:
        report(asked, same, stale, wall_s)
    if lost is not None:
        raise lost
    return NOT_HELD if stale or _missed(asked, same) else OK


def _todo(
    chosen: list[Mutant], known: dict[str, Outcome], args: argparse.Namespace
) -> list[Mutant]:
    """Return those that are to be tried; what is known of them is forgotten."""
    todo = chosen
    if args.missed:
        same = equivalents()
        weak = {each.id for each in known.values() if each.stage in {"", "goldens"}}
        todo = [mutant for mutant in chosen if mutant.id in weak and mutant.id not in same]
    elif args.resume:
        todo = [mutant for mutant in chosen if mutant.id not in known]
    for mutant in todo:
        known.pop(mutant.id, None)
    # Calls of plugins first: what moves or drops whole functions tells less.
    return sorted(todo, key=lambda mutant: mutant.depth)


def _try(
    todo: list[Mutant], known: dict[str, Outcome], where: Where, args: argparse.Namespace
) -> None:
    """Try mutants, and add what becomes of each to what is known."""
    if not todo:
        return
    say(f"{len(todo)} mutants, {where.told}")
    with tempfile.TemporaryDirectory(prefix="simctl-mutants-") as folder:
        crew = Crew.of(ROOT, Path(folder), where, args.tests)
        reach = running.load(args.state / "reach.json")
        running.probe(crew, ROOT, reach, say)
        running.keep(args.state / "reach.json", reach)
        if reach.failing:
            say(f"left out, for they fail in a copy of the tree: {len(reach.failing)} tests")
        outcomes = running.attempt(crew, todo, reach, args.budget)
        with (args.state / "outcomes.jsonl").open("a") as file:
            for number, outcome in enumerate(outcomes, start=1):
                known[outcome.id] = outcome
                file.write(json.dumps(attrs.asdict(outcome)) + "\n")
                file.flush()
                what = outcome.stage or "MISSED"
                say(f"{number}/{len(todo)} {what} {outcome.took_s:.1f}s {outcome.id}")


def _known(log: Path, chosen: list[Mutant]) -> dict[str, Outcome]:
    """Return what earlier runs found out of mutants that are still the same."""
    keys = {mutant.id: running.key_of(mutant) for mutant in chosen}
    found: dict[str, Outcome] = {}
    for line in log.read_text().splitlines() if log.exists() else ():
        outcome = Outcome(**json.loads(line))
        if keys.get(outcome.id) == outcome.key:
            found[outcome.id] = outcome
    return found


def say(line: str) -> None:
    """Tell how far it is."""
    print(line, file=sys.stderr, flush=True)


def _missed(outcomes: list[Outcome], same: dict[str, str]) -> list[Outcome]:
    return [each for each in outcomes if not each.stage and each.id not in same]


def as_json(
    outcomes: list[Outcome], same: dict[str, str], stale: list[str], wall_s: float, where: Where
) -> dict[str, Any]:
    """Return what `--json` prints: `wall_s` and `runner` alone depend on who tried them."""
    told = [attrs.asdict(each) | {"equivalent": each.id in same} for each in outcomes]
    for each in told:
        del each["took_s"]
    return {
        "mutants": told,
        "missed": [each.id for each in _missed(outcomes, same)],
        "no_mutants": stale,
        "wall_s": round(wall_s, 3),
        "runner": where.told,
    }


def report(outcomes: list[Outcome], same: dict[str, str], stale: list[str], took_s: float) -> None:
    """Print what was caught by what, and what was not."""
    counts = Counter(each.stage for each in outcomes)
    missed = _missed(outcomes, same)
    weak = [each for each in outcomes if each.stage == "goldens" and each.id not in same]
    caught = [each for each in outcomes if each.stage in {"rules", "tests"} and each.id in same]
    for title, group in (("MISSED", missed), ("caught by golden traces alone", weak)):
        if group:
            print(f"\n{title}:")
        for each in group:
            cut = f"; no time for {each.left} of {each.reached} tests" if each.left else ""
            print(f"  {each.id}  ({each.reached} tests reach it{cut})")
    for each in caught:
        print(f"listed as equivalent, but {each.by} catches it: {each.id}")
    for name in stale:
        print(f"listed as equivalent, but there is no such mutant: {name}")
    print(f"\n{len(outcomes)} mutants in {took_s:.0f} s")
    print(
        f"  {counts['rules']:5} caught in a shipped scenario: an ordering, an expectation, a crash"
    )
    print(f"  {counts['tests']:5} caught by a test of behaviour")
    print(f"  {len(weak):5} caught by golden traces alone")
    print(
        f"  {len(outcomes) - counts['rules'] - counts['tests'] - len(weak) - len(missed):5} "
        "equivalent: no trace could show them"
    )
    print(f"  {len(missed):5} missed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
