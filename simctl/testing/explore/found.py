"""What becomes of a find: it is made small, written as a scenario, and held against its token."""

import re
import shlex
from pathlib import Path
from typing import Any, Final

import attrs

from simctl.kernel.schedules import InTurn
from simctl.kernel.token import Token
from simctl.outputs import FIND, place_of, write_output
from simctl.status import InputError
from simctl.testing.explore.find_page import leave_find
from simctl.testing.explore.followed import Deviations, Told
from simctl.testing.explore.progress import Progress
from simctl.testing.explore.scenario_file import MARK, Change, edited
from simctl.testing.explore.shrink import Shrinker, Small
from simctl.testing.explore.trial import Broken, Ran, Terms, load_text, run_trial

_MOST_NAMES: Final = 1000


@attrs.frozen(kw_only=True)
class Report:
    """A find as it is told; without a file where it could not be repeated."""

    broken: tuple[Broken, ...]
    seed: int
    schedule: str
    token: str
    file: str = ""
    page: str = ""
    """The page that shows it, beside the file."""
    given: str = ""
    """The scenario as it was given, where the find was not made small and written."""
    model: str = ""
    again: str = ""
    """The search that comes to it again, where its fault was placed and no file has it."""
    before: int = 0
    """Deviations and late messages before it was made small."""
    after: int = 0
    entries: tuple[int, int] = (0, 0)
    """How many entries the timeline had, and has."""
    runs: int = 0
    sentences: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """Return the command that repeats it; empty where no file does."""
        if not self.file:
            if not self.given:
                return self.again
            file = shlex.quote(self.given)
            how = f"--seed {self.seed} --model {self.model} --schedule {self.token}"
            return f"simctl run {file} {how}"
        return f"simctl run {shlex.quote(self.file)} --schedule {self.token}"

    def as_json(self) -> dict[str, Any]:
        """Return what `explore --json` says of it."""
        return {
            "seed": self.seed,
            "schedule": self.schedule,
            "broken": [attrs.asdict(each) for each in self.broken],
            "file": self.file or None,
            "page": self.page or None,
            "token": self.token,
            "command": self.command or None,
            "deviations": {"found": self.before, "left": self.after},
            "timeline": {"found": self.entries[0], "left": self.entries[1]},
            "shrinking_runs": self.runs,
            "sentences": list(self.sentences),
        }


@attrs.frozen(kw_only=True)
class Target:
    """Where a find is written, and what its file says of itself."""

    given: str
    """What -o names; empty for a name of our own."""
    folder: Path
    """Where a file of our own goes."""
    stem: str
    search: str
    """The command line of the search."""
    force: bool = False
    """Whether -o may name a file that is no find."""
    origin: str = ""
    """The text of the scenario as it was given."""

    def check(self) -> None:
        """Check beforehand that a find could be written.

        Raises:
            InputError: It could not.
        """
        if not self.given:
            return
        path = Path(self.given)
        if path.is_dir() or not path.parent.is_dir():
            what = "is a folder" if path.is_dir() else "is in no folder that there is"
            raise InputError(f"-o: {self.given} {what}; name a file")
        try:
            place_of(path, FIND, force=self.force)
        except OSError as error:
            raise InputError(f"-o: cannot write {self.given}: {error.strerror}") from error

    def path(self) -> Path:
        """Return the file to write."""
        if self.given:
            return Path(self.given)
        for number in range(1, _MOST_NAMES):
            last = f"-{number}" if number > 1 else ""
            path = self.folder / f"{self.stem}.found{last}.yaml"
            if not path.exists() or _ours(path):
                return path
        raise InputError(f"there are {_MOST_NAMES} finds in {self.folder}; name a file with -o")


def _ours(path: Path) -> bool:
    try:
        return FIND.has(path)
    except OSError:
        return False


def pursue(
    text: str,
    path: Path,
    ran: Ran,
    *,
    seed: int,
    schedule: str,
    calls: bool,
    terms: Terms,
    target: Target,
    progress: Progress,
    placed: int = 0,
) -> Report | None:
    """Make a find small, write it, and repeat it from what was written; None: it stays large."""
    scenario = load_text(text, path)
    deviations = Deviations.of(ran.line, calls=calls)
    shrinker = Shrinker(
        scenario,
        seed,
        ran.broken,
        terms,
        placed=placed,
        told=lambda runs, size: progress.show(
            f"shrinking: {size[0]} deviations, {size[1]} late messages, {runs} runs"
        ),
    )
    small = shrinker.shrink(deviations)
    progress.clear()
    if small is None:
        # Names do not lead to it. Its token does: two runs were equal, so no plugin is to blame.
        return None
    report = Report(
        broken=small.ran.broken,
        seed=seed,
        schedule=schedule,
        token=small.ran.token,
        before=len(deviations.passed) + len(deviations.late),
        after=len(small.deviations.passed) + len(small.deviations.late),
        entries=(len(scenario.timeline), len(small.entries)),
        runs=small.runs,
    )
    return _write(report, small, text, path, terms, target)


def _write(
    report: Report, small: Small, text: str, path: Path, terms: Terms, target: Target
) -> Report | None:
    file = target.path()
    token = Token.parse(report.token)
    body = edited(
        text,
        Change(kept=small.entries),
        seed=report.seed,
        model=terms.model,
        folders=(path.parent, file.parent),
    )
    report = attrs.evolve(report, file=str(file))
    told = Told(token)
    again = run_trial(load_text(body, file), told, report.seed, terms)
    if (again.broken, again.token) != (small.ran.broken, report.token):
        twin = run_trial(load_text(body, file), Told(token), report.seed, terms)
        if (again.broken, again.token) == (twin.broken, twin.token):
            # Two equal runs are equal: no plugin is to blame for that the file does not repeat it.
            return None
        return attrs.evolve(report, file="")
    report = attrs.evolve(report, sentences=tuple(told.sentences))
    comment = _comment(report, target)
    try:
        write_output(file, FIND, (comment + body).encode(), force=target.force)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}; name a file with -o") from error
    held = run_trial(load_text(body, file), InTurn(), report.seed, terms)
    return attrs.evolve(report, page=leave_find(str(file), again, held, report.sentences))


def _comment(report: Report, target: Target) -> str:
    lines = [
        f"{MARK[2:]} {target.search}`: this breaks",
        *(f"  {line}" for each in report.broken[:1] for line in each.told().splitlines()),
        "as it is repeated by",
        f"  {report.command}",
    ]
    if report.sentences:
        lines += [
            "Unlike first come, first served, at",
            *(f"  {each}" for each in report.sentences),
        ]
    lines.append("The scenario it comes from says of itself:")
    said = re.findall(r"\A(?:#.*\n)*", target.origin)[0].splitlines()
    comment = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    if not said:
        return comment.rpartition("# The scenario it comes")[0]
    return comment + "".join(f"#  {line.removeprefix('#')}".rstrip() + "\n" for line in said)
