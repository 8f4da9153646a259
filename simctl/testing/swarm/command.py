"""`simctl swarm`: many random runs, what they came to, and what was found made small."""

import functools
import json
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import attrs

from simctl.kernel.schedules import ScheduleError
from simctl.outputs import FIND, write_output
from simctl.plugins.registry import PluginError
from simctl.runners.bundle import plugin_files
from simctl.runners.running import run
from simctl.runners.work import LostError, Work, chunks_of
from simctl.scenario.positions import ScenarioErrors
from simctl.status import INTERRUPTED, NOT_HELD, OK, WRONG_INPUT, InputError
from simctl.testing.explore.find_page import leave_find
from simctl.testing.explore.progress import Progress
from simctl.testing.explore.report import broken_lines
from simctl.testing.explore.scenario_file import edited
from simctl.testing.explore.trial import Broken, load_text
from simctl.testing.swarm.features import FAULTS
from simctl.testing.swarm.make import draft
from simctl.testing.swarm.options import Options
from simctl.testing.swarm.report import Written, groups, summary
from simctl.testing.swarm.runner import Find, Plan, Sums, SwarmRunner, what_is_wrong
from simctl.testing.swarm.shrink import Shrinker, Small
from simctl.testing.swarm.trial import run_swarm, run_text, tell


def swarm(options: Options) -> int:
    """Do as the options say; print what came of it; return the exit status."""
    if options.path is not None:
        return _one(options, options.path)
    if options.show:
        print(draft(options.first_seed or 0, options.faults, options.own).text(), end="")
        return OK
    _check_own(options)
    many = Many(options)
    many.run()
    many.show()
    if many.interrupted:
        return INTERRUPTED
    if many.lost is not None:
        print(f"simctl: {many.lost}", file=sys.stderr)
        return NOT_HELD if many.finds or many.differ else WRONG_INPUT
    return NOT_HELD if many.finds or many.differ else OK


_CHECKED = 40
"""In how many clusters keys of the author's are tried before a run is made."""


def _check_own(options: Options) -> None:
    """Check that clusters can be read with the author's keys of slurm.conf in them.

    One that cannot be is left out and counted, as its other keys may contradict the author's.

    Raises:
        InputError: None can.
    """
    first = options.first_seed or 0
    refused = ""
    for seed in range(first, first + min(options.runs, _CHECKED if options.own.conf else 0)):
        try:
            load_text(draft(seed, options.faults, options.own).text(), Path("swarm.yaml"))
        except ScenarioErrors as error:
            refused = refused or f"--conf: with seed {seed}: {what_is_wrong(error)}"
        else:
            return
    if refused:
        raise InputError(refused)


@attrs.define
class Many:
    """A swarm under way, and what it has come to."""

    options: Options
    sums: Sums = attrs.field(factory=Sums)
    finds: list[Find] = attrs.field(factory=list)
    digests: dict[int, str] = attrs.field(factory=dict)
    """What stands for the traces of runs that are to be made again, by seed."""
    differ: list[int] = attrs.field(factory=list)
    """Seeds of runs that were not the same the second time."""
    twice: int = 0
    written: Written | None = None
    wall_s: float = 0.0
    interrupted: bool = False
    lost: LostError | None = None
    """Why runs were not made."""

    @property
    def plan(self) -> Plan:
        """Return what is to be run."""
        options = self.options
        return Plan(
            first_seed=options.first_seed or 0,
            runs=options.runs,
            faults=options.faults,
            own=options.own,
        )

    def again(self, seed: int) -> str:
        """Return the command that makes one run again."""
        words = ["simctl", "swarm", *self.options.own.words, "--seed", str(seed), "--runs", "1"]
        if self.options.faults != tuple(FAULTS):
            words += ["--faults", ",".join(self.options.faults) or "none"]
        return shlex.join(words)

    def run(self) -> None:
        """Make all runs, or as many as there is time for; then make the first find small."""
        options = self.options
        total = options.runs if options.seconds is None else 0
        progress = Progress(what="runs", total=total, quiet=options.quiet)
        try:
            try:
                self._run_all(progress)
            except LostError as error:
                self.lost = error
            finally:
                self.wall_s = progress.wall_s
                progress.runs = self.sums.runs
                progress.finish()
            if self.finds:
                self.written = self._pursue(self.finds[0], progress)
        except KeyboardInterrupt:
            progress.clear()
            self.interrupted = True

    def _run_all(self, progress: Progress) -> None:
        options, plan = self.options, self.plan
        until = None if options.seconds is None else time.perf_counter() + options.seconds
        references = [reference for _, reference in options.own.plugins.values()]
        work = Work(
            make=functools.partial(SwarmRunner, plan),
            chunks=chunks_of(0, plan.trials),
            name="swarm",
            bundle=functools.partial(plugin_files, Path(), references),
        )
        for result in run(work, options.where, progress.count):
            self.sums.merge(result.sums)
            self.finds += result.finds
            progress.broken = len(self.finds)
            for seed, digest in result.digests:
                self._compare(seed, digest)
            if until is not None and time.perf_counter() > until:
                break

    def _compare(self, seed: int, digest: str) -> None:
        before = self.digests.pop(seed, None)
        if before is None:
            self.digests[seed] = digest
            return
        self.twice += 1
        if before != digest:
            self.differ.append(seed)

    def _pursue(self, find: Find, progress: Progress) -> Written | None:
        drawn = draft(find.seed, self.options.faults, self.options.own)
        broken = find.broken[0]
        shrinker = Shrinker(
            broken,
            told=lambda runs, entries: progress.show(
                f"shrinking: {entries} entries of the timeline, {runs} runs"
            ),
        )
        small = shrinker.shrink(drawn)
        progress.clear()
        if small is None:
            return None
        name = self.options.output or f"swarm-{find.seed}.found.yaml"
        repeat = f"simctl swarm {shlex.quote(name)}"
        if small.draft.schedule != "fifo":
            repeat += f" --schedule {small.draft.schedule}"
        comment = [
            f"Found by `{self.again(find.seed)}`: this breaks",
            *(f"  {line}" for line in broken.told().splitlines()),
            "as it is repeated by",
            f"  {repeat}",
        ]
        text = "".join(f"# {line}\n" for line in comment) + self._moved(
            small.draft.text(), Path(name)
        )
        try:
            write_output(name, FIND, text.encode(), force=self.options.force)
        except OSError as error:
            raise InputError(
                f"cannot write {name}: {error.strerror}; name a file with -o"
            ) from error
        return Written(
            seed=find.seed,
            file=name,
            repeat=repeat,
            runs=small.runs,
            entries=(len(drawn.happenings), len(small.draft.happenings)),
            keys=(len(drawn.conf), len(small.draft.conf)),
            broken=small.tried.broken,
            page=self._page(name, small),
        )

    def _page(self, file: str, small: Small) -> str:
        """Write the page of what was found, beside a run of it that held, if one does."""
        held = None
        if small.draft.schedule != "fifo":
            again = run_text(small.draft.text(), "fifo")
            held = None if again.broken else again.ran
        tried = small.tried
        also = [each for each in tried.broken if each not in tried.ran.broken]
        return leave_find(file, tried.ran, held, also=also)

    def _moved(self, text: str, file: Path) -> str:
        """Return a scenario of the folder at hand as it stands in a file of another folder."""
        if not self.options.own.plugins:
            return text
        return edited(text, folders=(Path(), file.parent))

    def show(self) -> None:
        """Print what came of it."""
        if self.options.as_json:
            print(json.dumps(self.as_json(), indent=1))
            return
        if self.interrupted:
            print("interrupted: this is what was reached")
        for seed in self.differ:
            print(f"NOT DETERMINISTIC: two runs of seed {seed} differ")
        for line in groups(self.finds):
            print(line)
        if self.written is not None:
            for line in self.written.lines():
                print(line)
        elif self.finds:
            for line in broken_lines(self.finds[0].broken[:1]):
                print(line)
            print(f"to repeat: {self.again(self.finds[0].seed)}")
        if not self.options.quiet:
            for line in summary(self.sums, self.plan, len(self.finds), self.twice):
                print(line)

    def _found_as_json(self) -> dict[str, Any] | None:
        """Return the first find: as it was written, or with the command that makes it again."""
        if self.written is not None:
            return self.written.as_json()
        if not self.finds:
            return None
        find = self.finds[0]
        return {
            "seed": find.seed,
            "file": None,
            "repeat": self.again(find.seed),
            "broken": [attrs.asdict(each) for each in find.broken],
        }

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "first_seed": self.plan.first_seed,
            "runs": self.sums.runs,
            "left_out": {"runs": self.sums.left_out, "why": self.sums.why_left_out},
            "interrupted": self.interrupted,
            **self.sums.as_json(),
            "twice": self.twice,
            "differ": self.differ,
            "broken": [
                {
                    "seed": find.seed,
                    "schedule": find.schedule,
                    "broken": [attrs.asdict(each) for each in find.broken],
                }
                for find in self.finds
            ],
            "found": self._found_as_json(),
            "wall_s": round(self.wall_s, 3),
            "runner": self.options.where.told,
        }


def _one(options: Options, path: Path) -> int:
    """Run one scenario, and hold it against all that has to hold."""
    try:
        scenario = load_text(path.read_text(encoding="utf-8-sig"), path)
        seed = scenario.seed if options.first_seed is None else options.first_seed
        tried = run_swarm(scenario, options.schedule, seed)
    except ScenarioErrors as error:
        lines = "\n".join(str(mistake) for mistake in error.mistakes)
        raise InputError(lines, placed=True) from error
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(f"cannot read {path}: {why}") from error
    except (PluginError, ScheduleError) as error:
        raise InputError(str(error)) from error
    told = tell(tried, digest=False)
    if options.as_json:
        found: dict[str, Any] = {
            "scenario": path.name,
            "seed": seed,
            "schedule": options.schedule,
            "jobs": told.jobs,
            "events": told.events,
            "broken": [attrs.asdict(each) for each in told.broken],
        }
        print(json.dumps(found, indent=1))
    else:
        _show_one(options, path, told.broken, told.jobs, told.events)
    return NOT_HELD if told.broken else OK


def _show_one(
    options: Options, path: Path, broken: tuple[Broken, ...], jobs: int, events: int
) -> None:
    if not options.quiet:
        what = f"{len(broken)} broken" if broken else "all that has to hold at rest does"
        print(f"{path.name}: {jobs:,} jobs, {events:,} events: {what}")
    for line in broken_lines(broken):
        print(line)
    sys.stdout.flush()
