"""What a run prints: tables that fit 80 columns, sentences about plugin calls, a summary."""

import re
import shlex
from collections.abc import Iterable, Sequence

from msgspec import UNSET

from simctl.ctld.state.job_rows import JobRow
from simctl.kernel.events import Event
from simctl.orderings.checking import Breach, tell
from simctl.plugins.points import ALL
from simctl.plugins.points.declare import Returns
from simctl.scenario.durations import format_us
from simctl.scenario.model import Checks
from simctl.world import CommandResult, RunResult

WIDTH = 80
_TRANSCRIPT_LINES = 500
_NAMED = 20
_SUBMITTED = re.compile(r"Submitted batch job \d+\n")


def job_table(rows: Sequence[JobRow]) -> list[str]:
    """Return the table of jobs, one line each; long names and node lists are cut."""
    if not rows:
        return ["no jobs"]
    head = ("JOBID", "NAME", "USER", "STATE", "EXIT", "START", "ELAPSED", "NODES(REASON)")
    lines = [head, *(_job_cells(row) for row in rows)]
    limits = (9, 12, 9, 12, 6, 11, 11, WIDTH)
    widths = [
        min(limit, max(len(cells[column]) for cells in lines))
        for column, limit in enumerate(limits)
    ]
    widths[-1] = WIDTH - sum(widths[:-1]) - len(widths) + 1
    return [
        " ".join(
            _cut(cell, width).ljust(width) for cell, width in zip(cells, widths, strict=True)
        ).rstrip()
        for cells in lines
    ]


def _job_cells(row: JobRow) -> tuple[str, ...]:
    started = row.start_us >= 0
    elapsed = format_us(row.end_us - row.start_us) if row.end_us >= 0 and started else "-"
    where = row.nodes or f"({row.reason})"
    if row.nodes and row.reason != "None":
        where += f" ({row.reason})"
    return (
        _job_text(row),
        row.name,
        row.user,
        row.state.split("|", maxsplit=1)[0],
        row.exit_code,
        _clock(row.start_us) if started else "-",
        _short(elapsed),
        where,
    )


def job_label(row: JobRow) -> str:
    """Return a job's id and name."""
    return f"{_job_text(row)} {row.name}"


def _job_text(row: JobRow) -> str:
    """Return a job's id; a task of an array has that of the array before its number."""
    if row.array_waiting:
        return f"{row.array_job_id}_[{row.array_waiting}]"
    if row.array_task_id < 0:
        return str(row.job_id)
    return f"{row.array_job_id}_{row.array_task_id}"


def _clock(time_us: int) -> str:
    return _short(format_us(time_us))


def _short(text: str) -> str:
    """Leave fractions of a second out of a duration that runs into minutes."""
    return text.partition(".")[0] if ":" in text else text


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def transcript(result: RunResult) -> list[str]:
    """Return what commands of the timeline printed, each below its line.

    Left out are sbatch's ids, and failures of which `summary` tells the one line there is. A long
    run's is cut: `run --json` has all of it.
    """
    lines: list[str] = []
    for command in sorted(result.commands, key=lambda each: (each.at_us, each.line)):
        if not _says_something(command):
            continue
        lines.append(f"{_clock(command.at_us)} {command.user}$ {command.command}")
        lines += (command.stdout + command.stderr).splitlines()
        lines.append("")
    more = len(lines) - 1 - _TRANSCRIPT_LINES
    if more > 0:
        lines[_TRANSCRIPT_LINES:] = [f"... {more} more lines; run --json has them", ""]
    return lines


def _says_something(command: CommandResult) -> bool:
    printed = command.stdout + command.stderr
    if not printed.strip() or _SUBMITTED.fullmatch(printed):
        return False
    return not (_is_noted(command) and printed.strip() == command.stderr.strip().partition("\n")[0])


def _is_noted(command: CommandResult) -> bool:
    """Tell whether the end of a command is worth a note: it failed, and nobody expected it to."""
    return command.exit > 0 and command.checks == Checks()


def summary(result: RunResult) -> list[str]:
    """Return the lines that end a run: what was expected, what broke, what it took."""
    lines: list[str] = []
    for each in result.expectations:
        lines.append(f"{'held  ' if each.held else 'BROKEN'} {each.text}")
        if not each.held:
            lines += [f"       {line}" for line in each.detail.splitlines()]
    for breach in result.orderings.broken:
        lines += _tell_breach(breach)
    for command in result.commands:
        if _is_noted(command):
            first = command.stderr.strip().splitlines()
            told = f": {first[0]}" if first else ""
            what = f"`{command.command}` of {command.user}"
            lines.append(f"note   {what} exited {command.exit}{told}")
    lines += [f"note   a fault met nobody: {each}" for each in result.missed]
    if result.lost_jobs:
        lost = ", ".join(str(job_id) for job_id in result.lost_jobs[:_NAMED])
        beyond = len(result.lost_jobs) - _NAMED
        more = f" and {beyond} more" if beyond > 0 else ""
        what = "job" if len(result.lost_jobs) == 1 else "jobs"
        lines.append(f"note   lost when slurmctld started again: {what} {lost}{more}")
    lines += [f"FATAL  {each}" for each in result.fatalities]
    lines += [f"STATE  {each}" for each in result.damages]
    for complaint in result.complaints:
        often = "" if complaint.times == 1 else f" ({complaint.times} times)"
        lines.append(f"plugin {complaint.function}{often}: {complaint.problem}")
    if result.stalled:
        lines.append("STALLED: nothing is left to happen, and these wait:")
        lines += [f"  {line}" for line in result.stalled]
    if result.ran_out:
        lines.append("ENDED: the run took too many turns:")
        lines += [f"  {line}" for line in result.ran_out]
    if result.stopped_at_limit:
        lines.append(f"stopped at --until {format_us(result.end_time_us)}")
    if result.interrupted:
        lines.append("interrupted: this is what was reached")
    lines.append(f"orderings: {result.orderings.summary}")
    counts = result.counts
    rate = counts["turns"] / result.wall_s if result.wall_s else 0
    lines.append(
        f"{format_us(result.end_time_us)} of virtual time in {result.wall_s:.2f} s: "
        f"{counts['turns']} turns ({rate:,.0f}/s),"
    )
    lines.append(
        f"{counts['plugin_calls']} plugin calls, {counts['messages']} messages, "
        f"{counts['events']} events"
    )
    return lines


def _tell_breach(breach: Breach) -> list[str]:
    first_line, *rest = tell(breach)
    return [f"BROKEN {first_line}", *(f"       {line}" for line in rest)]


def what_broke(result: RunResult) -> list[str]:
    """Return the lines about all that did not hold in a run, and what may have led to that."""
    lines: list[str] = []
    for each in result.expectations:
        if not each.held:
            lines.append(f"BROKEN {each.text}")
            lines += [f"       {line}" for line in each.detail.splitlines()]
    for breach in result.orderings.broken:
        lines += _tell_breach(breach)
    lines += [f"FATAL  {each}" for each in result.fatalities]
    lines += [f"STATE  {each}" for each in result.damages]
    lines += [f"plugin {each.function}: {each.problem}" for each in result.complaints]
    lines += [f"ENDED  {each}" for each in result.ran_out]
    if result.stalled:
        lines.append("STALLED: nothing is left to happen, and these wait:")
        lines += [f"  {line}" for line in result.stalled]
    return lines


def repeat_command(result: RunResult, *words: str) -> str:
    """Return the command that repeats a run of what *words* name."""
    return (
        f"simctl run {shlex.join(words)} --seed {result.seed} --schedule {result.schedule} "
        f"--model {result.model}"
    )


_ROLES = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "manager": "the job manager (P1)",
    "session": "the session manager (P2)",
    "task": "the task (P3)",
    "srun": "srun",
}


def explain(events: Iterable[Event], users: dict[str, int], model: str) -> list[str]:
    """Return a sentence for each plugin call: when, who, where, as whom, and why now."""
    names = {uid: name for name, uid in reversed(users.items())}
    by_seq: dict[int, Event] = {}
    lines: list[str] = []
    said: dict[str, None] = {}
    events = list(events)
    left = {event.enter for event in events if event.phase == "exit"}
    for event in events:
        by_seq[event.seq] = event
        if event.kind != "plugin" or (event.phase == "enter" and event.seq in left):
            continue
        line = _sentence(event, by_seq, names, model)
        if event.name not in said:
            said[event.name] = None
            line += f" {_what_for(event.name)}"
        lines.append(line)
    return lines


def _sentence(event: Event, by_seq: dict[int, Event], names: dict[int, str], model: str) -> str:
    role = str(event.role)
    who = _ROLES.get(role, role)
    if model == "modern" and role == "manager":
        who = "slurmstepd"
    if role == "task" and event.task is not UNSET:
        who = f"task {event.task}" if model == "modern" else f"task {event.task} (P3)"
    where = f" on {event.node}" if event.node else ""
    subject = f" for step {event.step}" if event.step is not UNSET else ""
    if not subject and event.job is not UNSET:
        subject = f" for job {event.job}"
    user = names.get(event.uid, str(event.uid)) if event.uid is not UNSET else "?"
    of = f" of {event.plugin}" if event.name in _GENERIC else ""
    return (
        f"{_clock(event.time_us):>9}  {who}{where}, as {user}, calls {event.name}{of}{subject}"
        f"{_outcome(event)}{_why(event, by_seq)}."
    )


def _outcome(event: Event) -> str:
    """Return what a call came to where that is worth a word: its answer, or how it failed."""
    point = ALL.get(event.name)
    returns = point.returns if point is not None else Returns.INT
    if event.phase == "enter":
        return ", and it does not come back"
    if not isinstance(event.rc, int):
        return ""
    if returns is Returns.THREE:
        return f", and the answer is {event.rc}"
    if event.rc < 0 or (event.rc and returns is Returns.ERRNO):
        how = event.errno if event.errno is not UNSET else event.rc
        return f", and it failed ({how})"
    return ""


def _what_for(name: str) -> str:
    """Return what a function is for: said once, where it is first called."""
    point = ALL.get(name)
    return f"({point.doc.splitlines()[0] if point is not None else _GENERIC.get(name, '')})"


_GENERIC = {
    "init": "Set up, now that this process has loaded the plugin.",
    "fini": "Clean up, now that this process is done with the plugin.",
}


def _why(event: Event, by_seq: dict[int, Event]) -> str:
    """Return what outside the call's own process led to it, if it is near."""
    cause = event.cause
    for _ in range(64):
        if cause is UNSET or cause not in by_seq:
            return ""
        before = by_seq[cause]
        if before.kind == "message":
            verb = "on receiving" if before.phase == "receive" else "after sending"
            return f", {verb} {before.name}"
        if before.kind == "process":
            return (
                f", after its {before.name}"
                if before.pid == event.pid
                else (f", after {before.name} in pid {before.pid}")
            )
        if before.kind == "script":
            return f", after {before.name} of job {before.job}" if before.job is not UNSET else ""
        if before.kind == "state":
            return (
                f", now that {before.name} is {before.args['to']}"
                if before.args is not UNSET
                else ""
            )
        cause = before.cause
    return ""
