"""What a reader of a timeline asks for first: who typed what, what it printed, what was broken."""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.scenario.durations import format_moment
from simctl.world import CommandResult, RunResult

MOST_LINES: Final = 500
COLUMN: Final = 14
"""Where the text begins, right of the time."""

_MOST_ALIKE: Final = 5
_DAEMONS: Final = ("slurmctld", "slurmd")


@attrs.frozen
class Happening:
    """Something worth a place in the story: when, after which event, and the lines about it."""

    time_us: int
    seq: int
    lines: tuple[str, ...]


def happenings(result: RunResult, events: Sequence[Event]) -> list[str]:
    """Return the story of a run: each command with what it printed, faults, restarts.

    The story of a long run is cut: `run --json` has all commands, the trace has the rest.
    """
    told = sorted([*commands(result, events), *mishaps(events)], key=lambda each: each.seq)
    lines = [line for each in told for line in stamped(each.time_us, each.lines)]
    more = len(lines) - MOST_LINES
    if more > 0:
        lines[MOST_LINES:] = [f"... {more} more lines; run --json has all commands"]
    return [*lines, *([""] if lines else ())]


def stamped(time_us: int, lines: Sequence[str]) -> list[str]:
    """Return lines with the time before the first."""
    first, *rest = lines
    return [
        f"{format_moment(time_us):<{COLUMN - 1}} {first}",
        *(f"{'':{COLUMN}}{line}".rstrip() for line in rest),
    ]


def commands(result: RunResult, events: Sequence[Event]) -> Iterator[Happening]:
    """Yield each command of the timeline with what it printed, and its exit status if not 0."""
    begun: dict[tuple[int, str], list[Event]] = {}
    for event in events:
        if event.kind == "command" and event.phase == "enter" and event.args is not UNSET:
            begun.setdefault((event.time_us, event.args.get("line", "")), []).append(event)
    for command in sorted(result.commands, key=lambda each: (each.at_us, each.line)):
        same = begun.get((command.at_us, command.command), [])
        seq = same.pop(0).seq if same else _seq_at(events, command.at_us)
        printed = (command.stdout + command.stderr).splitlines()
        lines = [f"{command.user}$ {command.command}", *printed, *_ending(command)]
        yield Happening(command.at_us, seq, tuple(lines))


def _seq_at(events: Sequence[Event], time_us: int) -> int:
    """Return the number of the last event before a moment is over."""
    return next((event.seq for event in reversed(events) if event.time_us <= time_us), 0)


def _ending(command: CommandResult) -> list[str]:
    if command.exit < 0:
        return ["(it has not ended)"]
    if not command.exit:
        return []
    return [f"(exit {command.exit}{_expected(command)})"]


def _expected(command: CommandResult) -> str:
    checks = command.checks
    if command.exit in checks.exit or (checks.errno and checks.errno == command.errno):
        return ", as the scenario expects"
    return ""


def mishaps(events: Sequence[Event]) -> Iterator[Happening]:
    """Yield faults, and daemons that start again; of messages that are hit, the first few."""
    pids: dict[tuple[str, str], int] = {}
    hit: dict[str, int] = {}
    for event in events:
        if event.kind == "fault":
            hit[event.name] = hit.get(event.name, 0) + 1
            if event.name == "fault" or hit[event.name] < _MOST_ALIKE:
                yield Happening(event.time_us, event.seq, (f"fault: {fault_text(event)}",))
            elif hit[event.name] == _MOST_ALIKE:
                text = f"fault: {fault_text(event)}; the trace has any others"
                yield Happening(event.time_us, event.seq, (text,))
        elif event.role in _DAEMONS and event.pid is not UNSET:
            who = (str(event.role), str(event.node))
            before = pids.setdefault(who, event.pid)
            if event.pid > before:
                pids[who] = event.pid
                where = f" on {event.node}" if event.node else ""
                again = f"{event.role}{where} starts again (pid {event.pid}, before {before})"
                yield Happening(event.time_us, event.seq, (again,))


def fault_text(event: Event) -> str:
    """Return what a fault does, in the words of the scenario."""
    args = event.args if event.args is not UNSET else {}
    if "fault" in args:
        return str(args["fault"])
    what = [str(args["rpc"])] if "rpc" in args else []
    what += [f"{key} {args[key]}" for key in ("from", "to") if key in args]
    what += [str(args[key]) for key in ("change", "conf") if key in args]
    return " ".join([event.name, *what])
