"""What a search prints at its end."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from simctl.testing.explore.coverage import Coverage
from simctl.testing.explore.exhaustive import Tally
from simctl.testing.explore.faults import Placement
from simctl.testing.explore.found import Report
from simctl.testing.explore.trial import Broken
from simctl.testing.explore.workers import Find

_WIDTH: Final = 79
_MOST_PAIRS: Final = 8
_MOST_LINES: Final = 16
_MANY: Final = 1_000_000_000


def covered(coverage: Coverage) -> list[str]:
    """Say which pairs of calls were seen in both orders, and which functions' never were."""
    both, seen, functions = coverage.pairs()
    lines = [f"covered: {seen:,} pairs of plugin calls, {both:,} of them seen in both orders"]
    swapped = {pair: counts for pair, counts in functions.items() if counts[0]}
    lines.append(
        f"of {len(functions):,} pairs of functions {len(swapped):,} were seen in both orders"
        + (":" if swapped else "")
    )
    most = sorted(swapped.items(), key=lambda item: (-item[1][0], item[0]))
    for (one, other), counts in most[:_MOST_PAIRS]:
        lines.append(f"  {one}, {other}: {counts[0]} of {counts[1]} pairs of calls")
    if len(most) > _MOST_PAIRS:
        lines.append(f"  and {len(most) - _MOST_PAIRS} more; --json lists all, and the others")
    if coverage.left_out:
        lines.append(f"  ({coverage.left_out} more calls of a run were not compared)")
    return lines


def broken_lines(broken: Iterable[Broken]) -> list[str]:
    """Say what was broken, each thing with its detail."""
    lines = []
    for each in broken:
        lines += [f"BROKEN {each.told()}"]
        detail = each.detail.splitlines()
        lines += [f"       {line}" for line in detail[:_MOST_LINES]]
        if len(detail) > _MOST_LINES:
            lines.append(f"       ... {len(detail) - _MOST_LINES} lines more")
    return lines


def exhausted(tally: Tally, name: str, broken: int) -> list[str]:
    """Say how many schedules an exhaustive search ran, and whether that was all of them."""
    reached = "all that may differ" if tally.complete else "not all that may differ"
    outcomes = f"{len(tally.outcomes):,} different outcomes"
    lines = [f"{tally.schedules:,} schedules of {name}, {reached}: {broken} broken, {outcomes}"]
    if not tally.complete:
        lines.append(f"cut short by {tally.why or 'Ctrl-C'}: what was not tried may break")
    lines.append(
        f"turns of the first run alone have {_counted(tally.orders)} orders; "
        f"{tally.cut:,} runs were broken off as repeats"
    )
    return lines


def _counted(number: int) -> str:
    return f"{number:,}" if number < _MANY else f"about 10^{len(str(number)) - 1}"


def by_placement(finds: Iterable[Find], seeds: int) -> dict[int, list[Find]]:
    """Return the finds of each placement of a fault, by its number."""
    found: dict[int, list[Find]] = {}
    for find in finds:
        found.setdefault(find.number // seeds, []).append(find)
    return found


def placement_rows(
    placements: Sequence[Placement], broken: Mapping[int, Sequence[Find]], seeds: int
) -> list[str]:
    """Return two lines for each placement that breaks something: what and where, and what broke."""
    lines = []
    for place, finds in broken.items():
        placement = placements[place]
        lines.append(placement.row)
        times = f" (in {len(finds)} of {seeds} schedules)" if seeds > 1 else ""
        # What slurmctld has lost or doubled explains the rest.
        all_broken = sorted(finds[0].broken, key=lambda each: each.kind != "ledger")
        more = f" and {len(all_broken) - 1} more" if len(all_broken) > 1 else ""
        lines.append(f"  BROKEN {all_broken[0].told()}{more}{times}")
    return lines


def told(report: Report) -> list[str]:
    """Tell a find: what was broken, how small it has become, and how to repeat it."""
    lines = broken_lines(report.broken)
    if not report.file:
        return [
            *lines,
            "It could not be repeated: something in it differs from run to run. A plugin that",
            "looks at the real clock, at random numbers or at what an earlier run left does that.",
        ]
    lines.append(
        f"shrunk in {report.runs} runs: deviations from first come, first served "
        f"{report.before} -> {report.after}, timeline {report.entries[0]} -> {report.entries[1]}"
    )
    lines += [
        line
        for each in report.sentences
        for line in textwrap.wrap(
            each, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False
        )
    ]
    page = [f"page: {report.page}"] if report.page else []
    return [*lines, f"written: {report.file}", *page, f"to repeat: {report.command}"]
