"""What a swarm has come to, in lines of at most eighty columns."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from simctl.plugins.points import ALL
from simctl.testing.explore.report import broken_lines
from simctl.testing.explore.trial import Broken
from simctl.testing.swarm.runner import Find, Plan, Sums

_COLUMNS: Final = 79
_MOST_SEEDS: Final = 8


@attrs.frozen(kw_only=True)
class Written:
    """A find that was made small and written."""

    seed: int
    file: str
    repeat: str
    runs: int
    entries: tuple[int, int]
    """How many entries of the timeline there were and are, beside those that bring to rest."""
    keys: tuple[int, int]
    """How many keys of slurm.conf there were and are."""
    broken: tuple[Broken, ...]
    page: str = ""
    """The page that shows it, beside the file; empty if there is none."""

    def lines(self) -> Iterator[str]:
        """Tell it."""
        yield f"seed {self.seed}:"
        yield from broken_lines(self.broken)
        yield from _wrapped(
            f"shrunk in {self.runs} runs: timeline {self.entries[0]} -> {self.entries[1]}, "
            f"slurm_conf {self.keys[0]} -> {self.keys[1]}"
        )
        yield f"written: {self.file}"
        if self.page:
            yield f"page: {self.page}"
        yield f"to repeat: {self.repeat}"

    def as_json(self) -> dict[str, Any]:
        """Return it for `--json`."""
        return attrs.asdict(self)


def summary(sums: Sums, plan: Plan, broken: int, twice: int) -> Iterator[str]:
    """Tell what the runs came to."""
    last = plan.first_seed + max(0, sums.runs + sums.left_out - 1)
    yield (
        f"{_many(sums.runs, 'run')}, seeds {plan.first_seed} to {last}, "
        f"{_many(sums.jobs, 'job')}: {broken} broken"
    )
    yield from _wrapped(f"jobs ended {_counts(sums.states)}")
    yield from _wrapped(f"faults survived: {_counts(sums.faults)}")
    yield f"{_many(sums.events, 'event')}, {_many(sums.calls.total(), 'plugin call')}"
    never = [name for name in ALL if name not in sums.calls]
    reached = len(ALL) - len(never)
    told = f"never called: {', '.join(never)}" if never else "none was left out"
    yield from _wrapped(f"{reached} of {len(ALL)} plugin functions were called; {told}")
    if sums.left_out:
        what = f"{_many(sums.left_out, 'cluster')} left out, which --conf does not go with: "
        yield from _wrapped(what + sums.why_left_out)
    if twice:
        yield f"{_many(twice, 'run')} made twice"


def groups(finds: Sequence[Find]) -> Iterator[str]:
    """Tell what was broken, and in which runs; each run counts by the first thing that was."""
    seeds: dict[str, list[int]] = {}
    for find in finds:
        seeds.setdefault(find.broken[0].told().partition("\n")[0], []).append(find.seed)
    for what, where in seeds.items():
        more = len(where) - _MOST_SEEDS
        told = ", ".join(map(str, where[:_MOST_SEEDS])) + (f" and {more} more" if more > 0 else "")
        yield from _wrapped(f"BROKEN in {_many(len(where), 'run')}, seeds {told}: {what}")


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.most_common()) or "none"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _COLUMNS, subsequent_indent="  ", break_on_hyphens=False)
