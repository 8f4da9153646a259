"""What did not hold in a run, each with the events that show it."""

from collections.abc import Sequence
from typing import Any

from simctl.kernel.events import Event
from simctl.orderings.checking import tell
from simctl.world import RunResult

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
    for breach in result.orderings.broken:
        rule, first = breach.rule, breach.first
        one = finding(
            "ordering",
            f"{rule.label} {rule.name}, in {first.group}: {first.what}",
            "\n".join(tell(breach)),
            [event.seq for event in first.events],
        )
        found.append({**one, "says": f"The rule: {rule.says}."})
    if not result.held or not result.expectations:
        # Else it was part of what was expected that a daemon gave up.
        found += [finding("fatal", each, "", []) for each in result.fatalities]
    if result.stalled:
        found.append(finding("stalled", "; ".join(result.stalled), "\n".join(result.stalled), []))
    found += [finding("ended", each, "", []) for each in result.ran_out]
    return found


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
