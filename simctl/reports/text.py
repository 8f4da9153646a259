"""What a run prints: tables that fit 80 columns, sentences about plugin calls, a summary."""

import shlex
import textwrap
from collections.abc import Sequence

from simctl.ctld.state.job_rows import JobRow
from simctl.orderings.checking import Breach, tell
from simctl.scenario.durations import format_moment
from simctl.scenario.holding.expect import Result
from simctl.scenario.model import Checks
from simctl.world import CommandResult, RunResult

WIDTH = 80
_NAMED = 20


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
    elapsed = _clock(row.end_us - row.start_us) if row.end_us >= 0 and started else "-"
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
        elapsed,
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
    """Return a time without its fraction of a second, as squeue shows it."""
    return format_moment(time_us).partition(".")[0]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _is_noted(command: CommandResult) -> bool:
    """Return whether the end of a command is worth a note: it failed, and was not expected to."""
    return command.exit > 0 and command.checks == Checks()


def summary(result: RunResult) -> list[str]:
    """Return the lines that end a run: what was expected, what broke, what it took."""
    lines: list[str] = []
    for each in result.expectations:
        lines += _tell_result(result, each, WIDTH)
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
        lines.append(f"stopped at --until {format_moment(result.end_time_us)}")
    if result.interrupted:
        lines.append("interrupted: this is what was reached")
    lines.append(f"orderings: {result.orderings.summary}")
    counts = result.counts
    rate = counts["turns"] / result.wall_s if result.wall_s else 0
    lines.append(
        f"{format_moment(result.end_time_us)} of virtual time in {result.wall_s:.2f} s: "
        f"{counts['turns']} turns ({rate:,.0f}/s),"
    )
    lines.append(
        f"{counts['plugin_calls']} plugin calls, {counts['messages']} messages, "
        f"{counts['events']} events"
    )
    return lines


def _tell_result(result: RunResult, each: Result, width: int = 0) -> list[str]:
    """Return the lines about an expectation; of wrong input, where in the scenario it stands."""
    word = "held  " if each.held else "WRONG " if each.slip else "BROKEN"
    where = f"{result.scenario}:{each.line}: " if each.slip and each.line else ""
    lines = [f"{word} {where}{each.text}"]
    if width:
        lines = textwrap.wrap(
            lines[0],
            width,
            subsequent_indent=" " * 9,
            break_on_hyphens=False,
            break_long_words=False,
        )
    return [*lines, *(f"       {line}" for line in each.detail.splitlines())]


def _tell_breach(breach: Breach) -> list[str]:
    first_line, *rest = tell(breach)
    return [f"BROKEN {first_line}", *(f"       {line}" for line in rest)]


def what_broke(result: RunResult) -> list[str]:
    """Return the lines about all that did not hold in a run, and what may have led to that."""
    lines: list[str] = []
    for each in result.expectations:
        lines += [] if each.held else _tell_result(result, each)
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
