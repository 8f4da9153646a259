"""A run laid beside a recording: strand by strand, then the facts between strands."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from simctl.testing.conform.acts import Act, Story
from simctl.testing.conform.alignment import Pair, align
from simctl.testing.conform.answers import ANY
from simctl.testing.conform.facts import broken_facts, kept_facts
from simctl.testing.conform.orders import table, turned_round
from simctl.testing.conform.reasons import nonsense
from simctl.testing.conform.rules import RULES
from simctl.testing.conform.threads import in_file_order, swapped
from simctl.testing.conform.times import other_times


@attrs.frozen(kw_only=True)
class Difference:
    """One difference, by its name, with both sides and where they stand in their strands."""

    kind: str
    strand: str
    ours: Act | None
    theirs: Act | None
    text: str
    at: int
    """The place in the strand's pairs."""

    recorded_at: float
    """Where in the recording it is, so that differences can be put in order."""

    def line(self) -> str:
        """Return it in one line, as patterns of accepted differences see it."""
        return f"{self.strand}: {self.kind}: {self.text}"


@attrs.frozen(kw_only=True)
class Comparison:
    """A run beside a recording."""

    pairs: dict[str, tuple[Pair, ...]]
    differences: tuple[Difference, ...]
    calls: int
    """Plugin calls of the recording that were compared."""

    acts: int
    facts: int


def compare(ours: Story, theirs: Story) -> Comparison:
    """Compare a run with a recording, after the declared rules."""
    found = [*_from_reasons(ours, theirs), *_from_orders(ours, theirs)]
    for rule in RULES:
        ours, theirs = rule.settle(ours, theirs)
    mine, others = ours.strands(), theirs.strands()
    pairs: dict[str, tuple[Pair, ...]] = {}
    for strand in dict.fromkeys((*others, *mine)):
        pairs[strand] = tuple(align(mine.get(strand, ()), others.get(strand, ())))
        found += _differences(strand, pairs[strand])
    found += _from_facts(ours, theirs)
    together = [pair for each in pairs.values() for pair in each]
    found += _from_threads(ours, theirs, together)
    found += _from_times(ours, theirs, together)
    found.sort(key=lambda each: (each.recorded_at, each.strand, each.at))
    compared = [act for acts in others.values() for act in acts]
    return Comparison(
        pairs=pairs,
        differences=tuple(found),
        calls=sum(act.kind == "call" for act in compared),
        acts=len(compared),
        facts=kept_facts(ours, theirs),
    )


def _differences(strand: str, pairs: Sequence[Pair]) -> Iterator[Difference]:
    lost = Counter(other.what for mine, other in pairs if mine is None and other is not None)
    new = Counter(mine.what for mine, other in pairs if other is None and mine is not None)
    moved = {what: min(count, new[what]) for what, count in lost.items() if new[what]}
    told = dict(moved)
    recorded_at: float = -1
    for at, (mine, other) in enumerate(pairs):
        recorded_at = other.place if other is not None else recorded_at + 0.001
        common: dict[str, Any] = {
            "strand": strand,
            "ours": mine,
            "theirs": other,
            "at": at,
            "recorded_at": recorded_at,
        }
        if mine is not None and other is not None:
            for kind, text in _unlike(mine, other):
                yield Difference(kind=kind, text=text, **common)
        elif other is not None:
            if moved.get(other.what, 0):
                moved[other.what] -= 1
                yield Difference(kind="order", text=f"{other} comes elsewhere", **common)
            else:
                yield Difference(kind=f"missing {other.kind}", text=str(other), **common)
        elif mine is not None:
            if told.get(mine.what, 0):
                told[mine.what] -= 1
            else:
                yield Difference(kind=f"extra {mine.kind}", text=str(mine), **common)


def _unlike(mine: Act, other: Act) -> Iterator[tuple[str, str]]:
    if mine.user != other.user:
        yield "user", f"{mine.name}: {mine.user}, recorded {other.user}"
    for name, value in other.args.items():
        if name not in mine.args:
            yield "argument", f"{mine.name}: {name} is not told, recorded {value}"
        elif not _same_value(name, mine.args[name], value):
            yield "argument", f"{mine.name}: {name}={mine.args[name]}, recorded {value}"
    if not _same_result(mine.result, other.result):
        yield "result", f"{mine.name}: {mine.result}, recorded {other.result}"


def _same_result(mine: Any, other: Any) -> bool:
    """Return whether results agree; of an answer that may be one of several, any will do."""
    if other == ANY:
        return mine is not None
    return mine == other or (isinstance(other, tuple) and mine in other)


def _same_value(name: str, mine: Any, other: Any) -> bool:
    if name == "pgid":
        # Process ids differ; whether there is one at all is told.
        return bool(mine) == bool(other)
    if name == "image_dir":
        # Where images lie is the cluster's business; whether it is said, and the end, are Slurm's.
        return _end_of(mine) == _end_of(other)
    return bool(mine == other)


def _end_of(path: Any) -> tuple[bool, str]:
    folder, _, name = str(path).rpartition("/")
    return bool(folder), name


def _from_facts(ours: Story, theirs: Story) -> Iterator[Difference]:
    for each in broken_facts(ours, theirs):
        before, after = each.theirs
        group = each.group if isinstance(each.group, tuple) else (each.group,)
        yield Difference(
            kind="order",
            strand=f"between processes, {' on '.join(map(str, group))}",
            ours=each.ours[1],
            theirs=after,
            text=f"{after.name} comes before {before.name}: {each.fact.text}",
            at=0,
            recorded_at=after.place,
        )


def _from_threads(ours: Story, theirs: Story, pairs: list[Pair]) -> Iterator[Difference]:
    for each in swapped(in_file_order(ours), in_file_order(theirs), pairs):
        yield Difference(
            kind="order",
            strand=f"one turn of slurmctld, {each.before.strand} and {each.after.strand}",
            ours=each.ours,
            theirs=each.after,
            text=f"{_short(each.after)} comes before {_short(each.before)}",
            at=0,
            recorded_at=each.after.place,
        )


def _short(act: Act) -> str:
    return f"{act.name} {act.key}".strip()


def _from_times(ours: Story, theirs: Story, pairs: list[Pair]) -> Iterator[Difference]:
    for each in other_times(ours, theirs, pairs):
        yield Difference(
            kind="time",
            strand=f"times, {each.group}",
            ours=each.ours,
            theirs=each.theirs,
            text=each.text,
            at=0,
            recorded_at=each.theirs.place,
        )


def _from_reasons(ours: Story, theirs: Story) -> Iterator[Difference]:
    for each in nonsense(ours, theirs):
        yield Difference(
            kind="argument",
            strand=each.act.strand,
            ours=each.act,
            theirs=None,
            text=each.text,
            at=-1,
            recorded_at=0,
        )


def _from_orders(ours: Story, theirs: Story) -> Iterator[Difference]:
    for each in turned_round(ours, theirs, table()):
        yield Difference(
            kind="order",
            strand=f"between processes, {each.group.step} on {each.group.node}",
            ours=each.after,
            theirs=None,
            text=f"{each.order.after} comes before {each.order.before}: all recordings have "
            f"the {each.order.before_end} {each.order.before} before the "
            f"{each.order.after_end} {each.order.after}",
            at=-1,
            recorded_at=each.after.place,
        )
