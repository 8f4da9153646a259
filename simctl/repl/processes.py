"""The processes of a host as a tree: whose they are, what they are for, what they wait for."""

import textwrap
from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import UNSET

from simctl.kernel.procs import Host, Process
from simctl.repl.session import Session
from simctl.repl.showing import WIDTH

_MOST: Final = 200
_NARROW: Final = 16


def hosts_of(session: Session) -> dict[str, Host]:
    """Return every host by its name."""
    world = session.world
    return {"slurmctld": world.ctld.process.host, **world.hosts, "login": world.login}


def tell_processes(session: Session, host: Host) -> Iterator[str]:
    """Draw the process tree of a host."""
    up = "" if host.up else ", down"
    count = len(host.processes)
    yield f"{host.name}{up}: {count or 'no'} process{'es' * (count != 1)}"
    if not count:
        return
    children: dict[int, list[Process]] = {}
    for process in host.processes.values():
        parent = process.ppid if process.ppid in host.processes else 0
        children.setdefault(0 if parent == process.pid else parent, []).append(process)
    rows = [("PID", "USER", "PROCESS", "STATE")]
    for depth, process in islice(_walk(children, 0, 0), _MOST):
        name = "  " * depth + _what(session, process)
        rows.append((str(process.pid), _user(session, process), name, _state(session, process)))
    yield from _table(rows)
    if count > _MOST:
        yield f"      and {count - _MOST} more"


def _table(rows: list[tuple[str, str, str, str]]) -> Iterator[str]:
    wide = max(len(row[2]) for row in rows)
    user = max(len(row[1]) for row in rows)
    for pid, who, what, state in rows:
        head = f"{pid:>5} {who:<{user}}  {what:<{wide}}  "
        room = max(WIDTH - len(head), _NARROW)
        first, *more = textwrap.wrap(state, room, break_on_hyphens=False) or [""]
        yield (head + first).rstrip()
        yield from (" " * len(head) + line for line in more)


def _walk(
    children: dict[int, list[Process]], parent: int, depth: int
) -> Iterator[tuple[int, Process]]:
    for process in children.get(parent, ()):
        yield depth, process
        yield from _walk(children, process.pid, depth + 1)


def _user(session: Session, process: Process) -> str:
    users = {user.uid: user.name for user in session.world.site.users.values()}
    uid, euid = (users.get(each, str(each)) for each in (process.uid, process.euid))
    return uid if uid == euid else f"{uid}/{euid}"


def _what(session: Session, process: Process) -> str:
    """Say what a process is: its program, its part in the step."""
    program = session.seen().programs.get(process.pid, "").rpartition("/")[2]
    own = process.daemon == "task" or process.name.startswith(process.daemon)
    parts = [program or (process.name if own else process.daemon)]
    if process.task is not UNSET:
        parts.append(f"(task {process.task})")
    elif process.role not in (process.daemon, process.name, "script"):
        parts.append(f"({process.role})")
    about = process.step if process.step is not UNSET else process.job
    if about is not UNSET and str(about) not in parts[0]:
        parts.append(f"of {about}")
    return " ".join(parts)


def _state(session: Session, process: Process) -> str:
    """Say what a process does."""
    call = session.call_of(process)
    if call is not None:
        return f"in {call.name}"
    threads = [thread for thread in process.threads if not thread.finished]
    if any(thread.frozen for thread in threads):
        return "stopped"
    waits = "; ".join(dict.fromkeys(thread.waits_for for thread in threads if thread.parked))
    if any(not thread.parked for thread in threads):
        return f"at work; waits for {waits}" if waits else "at work"
    if waits:
        return f"waits for {waits}"
    return "runs" if process.pid in session.seen().programs else ""
