"""The builtins about children and signals: wait, kill, jobs, disown, trap."""

from __future__ import annotations

import re

from simctl.stepd.scripts.arithmetic import whole_number
from simctl.stepd.scripts.builtin import Builtin, Shell, plain
from simctl.stepd.scripts.host import Disposition, Interrupted, Redirects
from simctl.stepd.scripts.parser import parse_commands
from simctl.stepd.scripts.printing import quoted_for_reuse
from simctl.stepd.scripts.state import Job, ShellState
from simctl.stepd.scripts.tree import ScriptMistake
from simctl.stepd.signals import (
    ERR_TRAP,
    SIGTERM,
    UNCATCHABLE,
    SignalError,
    signal_name,
    signal_number,
    trap_number,
)

_MISUSED = 2
_NOT_A_CHILD = 127
_SIGNALLED = 128
_DISPOSITIONS: dict[str, Disposition] = {"-": "default", "": "ignore"}


def running(state: ShellState) -> list[Job]:
    """Return the jobs that have not ended, oldest first; the others are noted as ended."""
    left: list[Job] = []
    for job in state.jobs:
        for pid in job.pids:
            if pid not in state.ended and (status := state.host.status(pid)) >= 0:
                state.ended[pid] = status
        if any(pid not in state.ended for pid in job.pids):
            left.append(job)
    return left


def job_of(state: ShellState, text: str) -> Job | None:
    """Return the job that ``%1`` and its kin name."""
    if text in ("%%", "%+", "%"):
        return state.jobs[-1] if state.jobs else None
    if text == "%-":
        return state.jobs[-2] if len(state.jobs) > 1 else None
    if text[1:].isdecimal():
        return next((job for job in state.jobs if job.number == int(text[1:])), None)
    return next((job for job in reversed(state.jobs) if job.text.startswith(text[1:])), None)


async def _reap(state: ShellState, pid: int) -> int:
    """Wait for a child, and remember its status."""
    if pid not in state.ended:
        await state.host.wait((pid,))
        state.ended[pid] = state.host.status(pid)
    return state.ended[pid]


@plain
async def _wait(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Wait for the named children, or for all; a trapped signal ends it with 128 + signal."""
    state = shell.state
    arguments = [each for each in arguments if each not in ("--", "-f")]
    try:
        if arguments[:1] == ["-n"]:
            return await _wait_next(state, arguments[1:], streams)
        if not arguments:
            await _wait_for_all(state)
        status = 0
        for text in arguments:
            status = await _wait_for(state, text, streams)
    except Interrupted as interruption:
        return _SIGNALLED + interruption.signal
    return status


async def _wait_for_all(state: ShellState) -> None:
    """Wait for all that runs in the background, and forget it."""
    for job in [each for each in state.jobs if not each.inherited]:
        for pid in job.pids:
            await _reap(state, pid)
    state.jobs.clear()
    state.ended.clear()


async def _wait_next(state: ShellState, named: list[str], streams: Redirects) -> int:
    """Wait for the next of the children, or of those that are named, to end."""
    jobs = [job for job in state.jobs if not (job.told or job.inherited)]
    if named:
        pids = [each for text in named for each in _pids_of(state, text)]
        jobs = [job for job in jobs if job.pids[-1] in pids]
    lasts = {job.pids[-1]: job for job in jobs}
    if not lasts:
        return _NOT_A_CHILD
    # One that has ended while nobody waited is the next that is told of.
    known = next((pid for pid in lasts if pid in state.ended), 0)
    pid = known or await state.host.wait(tuple(lasts))
    status = await _reap(state, pid)
    lasts[pid].told = True
    state.jobs.remove(lasts[pid])
    return status


def _pids_of(state: ShellState, text: str) -> list[int]:
    if text.startswith("%"):
        job = job_of(state, text)
        return [job.pids[-1]] if job else []
    return [int(text[:9])] if text.isdecimal() else []


async def _wait_for(state: ShellState, text: str, streams: Redirects) -> int:
    """Wait for the child whose pid is *text*, or remember its status."""
    if text.startswith("%"):
        job = job_of(state, text)
        if job is None or job.inherited:
            await state.complain(f"wait: {text}: no such job", streams.stderr)
            return _NOT_A_CHILD
        for pid in job.pids:
            await _reap(state, pid)
        state.jobs.remove(job)
        return state.ended[job.pids[-1]]
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        await state.complain(f"wait: `{text}': not a pid or valid job spec", streams.stderr)
        return 1
    pid = int(text)
    job = next((each for each in state.jobs if pid in each.pids), None)
    if job is not None and job.inherited:
        state.ended.pop(pid, None)
    elif job is not None:
        await _reap(state, pid)
        if pid == job.pids[-1]:
            for other in job.pids:
                await _reap(state, other)
            state.jobs.remove(job)
    if pid not in state.ended:
        await state.complain(f"wait: pid {pid} is not a child of this shell", streams.stderr)
    return state.ended.get(pid, _NOT_A_CHILD)


@plain
async def _jobs(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Tell of what is in the background."""
    state = shell.state
    letters = "".join(each[1:] for each in arguments if each.startswith("-"))
    going = running(state)
    shown = state.jobs if not set(letters) & set("rs") else [] if "s" in letters else going
    named = [each for each in arguments if not each.startswith("-")]
    missing = await _missing(state, "jobs", named, streams)
    if named:
        pids = [pid for text in named for pid in _pids_of(state, text)]
        shown = [job for job in shown if {*job.pids} & {*pids}]
    lines: list[str] = []
    for job in shown:
        if "p" in letters:
            lines.append(str(job.pids[0]))
            continue
        mark = "+" if job is state.jobs[-1] else "-" if job is state.jobs[-2] else " "
        alive = job in going
        status = state.ended.get(job.pids[-1], 0)
        word = "Running" if alive else "Done" if not status else f"Exit {status}"
        pid = f"{job.pids[0]} " if "l" in letters else " "
        lines.append(f"[{job.number}]{mark} {pid}{word:<24}{job.text}{' &' * alive}")
    if lines:
        await state.host.write(streams.stdout, "".join(f"{line}\n" for line in lines))
    state.jobs = going if not letters else state.jobs
    return 1 if missing else 0


async def _missing(state: ShellState, name: str, named: list[str], streams: Redirects) -> bool:
    """Return whether some that are named are no jobs, and tell of each."""
    known = [pid for job in state.jobs for pid in job.pids]
    missing = [each for each in named if not {*_pids_of(state, each or "%+")} & {*known}]
    for each in missing:
        await state.complain(f"{name}: {each or 'current'}: no such job", streams.stderr)
    return bool(missing)


@plain
async def _disown(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Forget jobs, or the last one."""
    state = shell.state
    named = [each for each in arguments if not each.startswith("-")]
    missing = await _missing(state, "disown", named or [""] * (not arguments), streams)
    if "-a" in arguments:
        state.jobs.clear()
    pids = [pid for text in named for pid in _pids_of(state, text)]
    pids = pids if named else [job.pids[-1] for job in state.jobs[-1:]]
    state.jobs = [job for job in state.jobs if job.pids[-1] not in pids]
    return 1 if missing else 0


@plain
async def _kill(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Send a signal, TERM unless another is named, to processes."""
    state = shell.state
    rest = list(arguments)
    name = ""
    if rest[:1] in (["-l"], ["-L"]):
        return await _list_signals(state, rest[1:], streams)
    if rest[:1] in (["-s"], ["-n"]):
        name, rest = "".join(rest[1:2]), rest[2:]
    elif rest and rest[0].startswith("-") and rest[0] != "--":
        name = rest.pop(0)[1:]
    rest = rest[1:] if rest[:1] == ["--"] else rest
    try:
        number = SIGTERM if not name else 0 if name == "0" else signal_number(name)
    except SignalError as mistake:
        await state.complain(f"kill: {mistake}", streams.stderr)
        return 1
    if not rest:
        await state.complain("kill: a pid is needed", streams.stderr)
        return _MISUSED
    state.status = 0
    # As bash has it, one that was reached is enough.
    return min([await _send(state, text, number, streams) for text in rest])


async def _list_signals(state: ShellState, words: list[str], streams: Redirects) -> int:
    for word in words:
        try:
            number = int(word) & 127 if word.isdecimal() else 0
            told = signal_name(number) if number else str(signal_number(word))
        except SignalError as mistake:
            await state.complain(f"kill: {mistake}", streams.stderr)
            return 1
        await state.host.write(streams.stdout, told + "\n")
    return 0


def _kill_job(state: ShellState, job: Job, number: int) -> bool:
    """Send a signal to the processes of a job, or to their whole process group."""
    sign = -1 if job.leads else 1
    reached = [state.host.kill(sign * pid, number) for pid in job.pids]
    return any(reached)


async def _send(state: ShellState, text: str, number: int, streams: Redirects) -> int:
    """Send signal *number* to the pid or the job *text*."""
    if text.startswith("%"):
        job = job_of(state, text)
        if job is None:
            await state.complain(f"kill: {text}: no such job", streams.stderr)
            return 1
        return 0 if _kill_job(state, job, number) else 1
    try:
        pid = whole_number(text)
    except ValueError:
        await state.complain(f"kill: {text}: arguments must be process or job IDs", streams.stderr)
        return 1
    job = next((job for job in state.jobs if job.pids[0] == -pid), None)
    if state.host.kill(pid, number) if job is None else job.leads and _kill_job(state, job, number):
        return 0
    await state.complain(f"kill: ({pid}) - No such process", streams.stderr)
    return 1


@plain
async def _trap(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Say what is done on signals, on failures, or at the end of the script."""
    state = shell.state
    arguments = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not arguments or arguments[0] == "-p":
        return await _list_traps(state, arguments[1:], streams)
    resets = len(arguments) == 1 or arguments[0].isdecimal()
    action, names = ("-", arguments) if resets else (arguments[0], arguments[1:])
    mistakes: list[ScriptMistake] = []
    extended = bool(state.options.get("extglob"))
    commands = (
        parse_commands(action, mistakes, state.line, extended=extended) if action != "-" else ()
    )
    if mistakes:
        await state.complain(f"trap: {mistakes[0].message}", streams.stderr)
        return _MISUSED
    status = 0
    for name in names:
        try:
            number = trap_number(name)
        except SignalError as mistake:
            await state.complain(f"trap: {mistake}", streams.stderr)
            status = 1
            continue
        if number in UNCATCHABLE:
            continue
        state.traps.pop(number, None)
        if action != "-":
            state.traps[number] = (action, commands)
        if number != ERR_TRAP:
            state.host.set_trap(number, _DISPOSITIONS.get(action, "trap"))
    return status


async def _list_traps(state: ShellState, names: list[str], streams: Redirects) -> int:
    numbers = [trap_number(name) for name in names] or sorted(
        state.traps, key=lambda number: (number < 0, number)
    )
    for number in numbers:
        if number not in state.traps:
            continue
        name = signal_name(number)
        shown = name if number <= 0 else f"SIG{name}"
        line = f"trap -- {quoted_for_reuse(state.traps[number][0])} {shown}\n"
        await state.host.write(streams.stdout, line)
    return 0


JOB_BUILTINS: dict[str, Builtin] = {
    "wait": _wait,
    "jobs": _jobs,
    "disown": _disown,
    "kill": _kill,
    "trap": _trap,
}
