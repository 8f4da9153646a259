"""`simctl trace conform TRACE RECORDING`: say what differs, first one first, side by side."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from simctl.kernel.events import Event
from simctl.kernel.recording import Recording, RecordingError
from simctl.status import NOT_HELD, OK, InputError
from simctl.testing.conform.accepted import Accepted, Sorted, read_accepted, sort_out
from simctl.testing.conform.alignment import Pair
from simctl.testing.conform.compare import Comparison, Difference, compare
from simctl.testing.conform.ours import jobs_of, our_story
from simctl.testing.conform.real import read_real, real_story
from simctl.testing.conform.users import job_numbers
from simctl.testing.reading import read_whole

_CONTEXT: Final = 3
_WIDTH: Final = 74
_SHOWN: Final = 20


def conform(trace: Path, recording: Path, *, accept: Path | None, as_json: bool) -> int:
    """Compare a trace with a recording; print what differs; return the exit status.

    Raises:
        InputError: One of the files is not what it should be.
    """
    entries = [] if accept is None else read_accepted(accept, name_of(recording))
    try:
        ours = read_whole(trace)
        _check_model(trace, ours)
        comparison = compare_events(ours.events, read_real(recording))
    except RecordingError as error:
        raise InputError(str(error)) from error
    found = sort_out(comparison.differences, entries)
    if as_json:
        json.dump(as_object(comparison, found), sys.stdout, indent=1)
        print()
    else:
        print("\n".join(report(comparison, found)))
    return NOT_HELD if found.left or found.stale else OK


def name_of(recording: Path) -> str:
    """Return the name of a recording from its file's."""
    name = recording.name.removesuffix(".gz").removesuffix(".json")
    return recording.resolve().parent.name if name == "recording" else name


def compare_events(ours: Sequence[Event], theirs: list[dict[str, Any]]) -> Comparison:
    """Compare the events of a run with those of a recording."""
    real = real_story(theirs)
    mine, others = set(jobs_of(ours)), {act.job for act in real.acts if act.job is not None}
    # Of jobs from before a recording there may be no more in it than that they are forgotten.
    new = others - real.old_jobs
    return compare(
        our_story(ours, job_numbers(mine, new if len(new) == len(mine) else others)), real
    )


def _check_model(path: Path, recording: Recording) -> None:
    model = recording.header.get("model")
    if model != "modern":
        raise InputError(
            f"{path}: it is of model {model}; recordings are of Slurm 18.08, which model modern "
            "follows: run with --model modern"
        )


# What is printed.


def report(comparison: Comparison, found: Sorted) -> Iterator[str]:
    """Return what to tell people, line by line: first what differs first, if anything does."""
    if found.left:
        first, more = found.left[0], len(found.left) - 1
        others = f" (and {more} more differences)" if more else ""
        yield f"differs: {first.line()}{others}"
    yield (
        f"{comparison.calls} plugin calls and {comparison.acts - comparison.calls} other acts in "
        f"{len(comparison.pairs)} strands, and {comparison.facts} orders between processes: "
        f"{len(found.left)} differences, {len(found.explained)} accepted"
    )
    for difference in found.left[:_SHOWN]:
        yield ""
        yield f"{difference.kind}: {difference.text}"
        yield f"  in {difference.strand}"
        yield from _side_by_side(difference, comparison.pairs.get(difference.strand, ()))
    if len(found.left) > _SHOWN:
        yield ""
        yield f"and {len(found.left) - _SHOWN} more differences"
    for entry in found.stale:
        yield f"not needed: accepted {entry.kind} {entry.what!r} where {entry.where!r}"


def _side_by_side(difference: Difference, pairs: Sequence[Pair]) -> Iterator[str]:
    """Return a difference with what stands around it on either side."""
    yield f"    {'the run':<{_WIDTH}}   the recording"
    if not pairs:
        yield f"  > {_cell(difference.ours):<{_WIDTH}} | {_cell(difference.theirs)}"
        return
    for at in range(difference.at - _CONTEXT, difference.at + _CONTEXT + 1):
        if not 0 <= at < len(pairs):
            continue
        mine, other = pairs[at]
        mark = ">" if at == difference.at else " "
        yield f"  {mark} {_cell(mine):<{_WIDTH}} | {_cell(other)}".rstrip()


def _cell(act: Any) -> str:
    text = "" if act is None else str(act)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def as_object(comparison: Comparison, found: Sorted) -> dict[str, Any]:
    """Return what `--json` prints."""
    return {
        "calls": comparison.calls,
        "acts": comparison.acts,
        "strands": len(comparison.pairs),
        "facts": comparison.facts,
        "differences": [_difference(each) for each in found.left],
        "accepted": [
            {**_difference(each), "case": entry.case, "reason": entry.reason}
            for each, entry in found.explained
        ],
        "stale": [_stale(entry) for entry in found.stale],
    }


def _difference(each: Difference) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "where": each.strand,
        "what": each.text,
        "run": None if each.ours is None else {"line": each.ours.place, "act": str(each.ours)},
        "recording": None
        if each.theirs is None
        else {"line": each.theirs.place, "act": str(each.theirs)},
    }


def _stale(entry: Accepted) -> dict[str, Any]:
    return {"kind": entry.kind, "where": entry.where, "what": entry.what}
