"""What did not hold in a run, each with the events that show it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from simctl.kernel.events import Event
from simctl.orderings.checking import Report, check_orderings, not_checked, tell
from simctl.orderings.told_terms import TERMS, read_terms
from simctl.view.reading import Seen
from simctl.world import RunResult

_UNDER_DEFAULTS: Final = (
    "The trace does not tell how its cluster was configured: this is so under the defaults."
)

Finding = dict[str, Any]
"""`what` kind of thing did not hold, its `title`, what a rule `says`, the `text` that `simctl run`
prints, and the `seqs` of the events that show it, if there are any."""


def findings_of(result: RunResult, events: Sequence[Event]) -> list[Finding]:
    """Return what did not hold in a run, in the order in which its end tells it."""
    found = []
    for each in result.expectations:
        if not each.held:
            shown = each.events or _of_command(each.text, result, events)
            seqs = [event.seq for event in shown]
            found.append(finding("expectation", each.text, each.detail, seqs))
    found += _breaches(result.orderings)
    if not result.held or not result.expectations:
        # Else it was part of what was expected that a daemon gave up.
        found += [finding("fatal", each, "", []) for each in result.fatalities]
    if result.stalled:
        found.append(finding("stalled", "; ".join(result.stalled), "\n".join(result.stalled), []))
    found += [finding("ended", each, "", []) for each in result.ran_out]
    return found


def _breaches(report: Report) -> Iterator[Finding]:
    for breach in report.broken:
        rule, first = breach.rule, breach.first
        one = finding(
            "ordering",
            f"{rule.label} {rule.name}, in {first.group}: {first.what}",
            "\n".join(tell(breach)),
            [event.seq for event in first.events],
        )
        yield {**one, "says": f"The rule: {rule.says}."}


def recheck(seen: Seen) -> Report:
    """Hold a trace against the built-in orderings, as its run was."""
    if seen.selection.is_part:
        return not_checked("only a part of the trace is here")
    if kinds := seen.header.get("kinds"):
        return not_checked(f"the trace has events of some kinds alone: {kinds}")
    finished = seen.reason == "done" and not seen.cut
    try:
        return check_orderings(seen.events, read_terms(seen.header, finished=finished))
    except Exception as error:  # noqa: BLE001 - the writer of a trace may have written anything
        return not_checked(f"the trace has what no run writes: {type(error).__name__}: {error}")


def findings_of_trace(seen: Seen, report: Report) -> list[Finding]:
    """Return what did not hold in the run of a trace: as its end tells, and as is found anew."""
    told = [_whole(each) for each in seen.broken]
    known = {(each["what"], each["title"]) for each in told}
    anew = [each for each in _breaches(report) if (each["what"], each["title"]) not in known]
    if TERMS not in seen.header:
        anew = [{**each, "says": f"{each['says']} {_UNDER_DEFAULTS}"} for each in anew]
    return told + anew


def _whole(told: Mapping[str, Any]) -> Finding:
    """Return a finding of a trace with all that a page wants; traces may be written by others."""
    seqs = told.get("seqs")
    return {
        **{key: str(told.get(key, "")) for key in ("what", "title", "says", "text")},
        "seqs": [seq for seq in seqs if type(seq) is int] if isinstance(seqs, list) else [],
    }


def _of_command(text: str, result: RunResult, events: Sequence[Event]) -> list[Event]:
    """Return the end of the command that an expectation beside it is about, if it is about one."""
    for command in result.commands:
        if text.startswith(f"{command.label}: `{command.command}` "):
            ends = (event for event in events if (event.kind, event.phase) == ("command", "exit"))
            later = (event for event in ends if event.time_us >= command.at_us)
            return [event for event in later if _line(event) == command.command][:1]
    return []


def _line(event: Event) -> object:
    return event.args.get("line") if isinstance(event.args, dict) else None


def finding(what: str, title: str, text: str, seqs: list[int]) -> Finding:
    """Return one finding."""
    return {"what": what, "title": title, "text": text, "seqs": sorted(set(seqs))}


def verdict_of(result: RunResult) -> str:
    """Return a sentence about what held and what did not."""
    wanted = len(result.expectations)
    kept = sum(each.held for each in result.expectations)
    expected = f"{kept} of {wanted} expectations held" if wanted else "nothing was expected"
    return f"{expected}; orderings: {result.orderings.summary}"
