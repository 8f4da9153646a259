"""A scenario of the jobs of an import, as YAML that people can go on from."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import attrs

from simctl.importing.sacct_cluster import Nodes, find_nodes, partitions
from simctl.importing.sacct_file import Found, Job, counted
from simctl.importing.sacct_rows import GRES, LOST, USED, Row
from simctl.importing.sacct_script import (
    array_script,
    cancelled_from_outside,
    commands,
    limit_of,
    note_of,
)
from simctl.wire.arrays import MAX_ARRAY_SIZE, format_tasks
from simctl.wire.hostlist import compress
from simctl.wire.ids import INFINITE, NO_VAL

_USER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_FIRST_UID: Final = 20_001
_SLURM_UID: Final = 64_030
_MANY_JOBS: Final = 9_000
_NAMED: Final = 5
_MINUTE_S: Final = 60
_NUL: Final = "\0"


class Writer:
    """Turns jobs into the lines of a scenario, and keeps count of what is not as it was."""

    def __init__(self, found: Found, source: str) -> None:
        self._found = found
        self._source = source
        self._jobs = found.jobs
        self._rows = [row for job in found.jobs for row in job.runs]
        first_s = min(row.submit_s for row in self._rows)
        self._start_s = first_s - first_s % _MINUTE_S
        self._nodes = find_nodes(self._rows)
        self._memory = all(row.memory_mb for row in self._rows)
        self._files: dict[str, list[str]] = {}
        self._taken: set[int] = set()
        self.notes: Counter[str] = Counter(filter(None, map(note_of, self._jobs)))
        self.notes.update(_lost(self._jobs))
        self._users = self._find_users()

    def text(self) -> str:
        """Return the scenario."""
        timeline = self._timeline()
        parts = [
            self._head(),
            [f"start_time: {_clock(self._start_s)}Z"],
            self._conf(),
            ["nodes:", *map(self._node, self._nodes)],
            ["partitions:", *self._partitions()],
            ["users:", *self._user_lines()],
            self._programs(),
            self._file_lines(),
            self._recorded(),
            ["timeline:", *timeline],
        ]
        return "\n".join(line for part in parts for line in part) + "\n"

    def told(self) -> list[str]:
        """Return in what the replay of how many jobs is not what they were."""
        return [
            f"{count} {'job' if count == 1 else 'jobs'}: {text}"
            for text, count in sorted(self.notes.items())
        ]

    # The cluster.

    def _head(self) -> list[str]:
        found = self._found
        lines = [
            f"{counted(len(self._jobs), 'job')} of accounting, from {self._source}, as they ran."
        ]
        lines.append(
            "Nodes, their cpus and memory are the least that held these jobs: put the site's own."
        )
        unused = [name for name in found.columns if name not in {*USED, *LOST, *GRES}]
        if unused:
            lines.append(f"Columns without a use here: {', '.join(unused)}.")
        lines += [f"{line}." for line in self.told()]
        if found.left_out:
            lines.append(f"Left out of {counted(found.lines, 'line')}: {len(found.left_out)}")
            lines += [f"  line {line}: {why}" for line, why in sorted(found.left_out)]
        return [f"# {_printable(line)}" for line in lines]

    def _conf(self) -> list[str]:
        kind = "CR_CPU_Memory" if self._memory else "CR_CPU"
        lines = ["slurm_conf:", "  SelectType: select/cons_tres", f"  SelectTypeParameters: {kind}"]
        # Ids that Slurm gives by itself come after those that are asked for.
        lines.append(f"  FirstJobId: {max(row.job_id for row in self._rows) + 1}")
        if len(self._rows) > _MANY_JOBS:
            lines.append(f"  MaxJobCount: {2 * len(self._rows)}")
        return lines

    def _node(self, nodes: Nodes) -> str:
        memory = f", memory_mb: {nodes.memory_mb}" if self._memory else ""
        return f"  - {{name: {_quoted(compress(nodes.names))}, cpus: {nodes.cpus}{memory}}}"

    def _partitions(self) -> list[str]:
        found = partitions(self._rows) or {"all": "ALL"}
        default = ", default: true"
        if any(not row.partitions for row in self._rows) and len(found) > 1:
            self.notes["without a partition; in the first one"] += 1
        lines = []
        for name, nodes in found.items():
            lines.append(f"  - {{name: {_quoted(name)}, nodes: {_quoted(nodes)}{default}}}")
            default = ""
        return lines

    # Users.

    def _find_users(self) -> dict[str, tuple[str, int, str]]:
        """Return the name, uid and account in the scenario of each user of the file."""
        uids: dict[str, int] = {}
        accounts: dict[str, Counter[str]] = {}
        for row in self._rows:
            if row.uid >= 0:
                uids[row.user] = row.uid
            else:
                uids.setdefault(row.user, -1)
            accounts.setdefault(row.user, Counter())[row.account] += 1
        taken = {0, _SLURM_UID}
        free = iter(
            sorted(set(range(_FIRST_UID, _FIRST_UID + 2 * len(uids) + 2)) - {*uids.values()})
        )
        names: set[str] = set()
        users = {}
        for user, told in uids.items():
            uid, name = told, _name_of(user)
            if user == "root":
                uid = 0
            elif uid < 0 or uid in taken:
                uid = next(each for each in free if each not in taken)
            while name in names:
                name += "_"
            taken.add(uid)
            names.add(name)
            users[user] = (name, uid, accounts[user].most_common(1)[0][0])
        return users

    def _user_lines(self) -> list[str]:
        lines = [
            f"  {_quoted(name)}: {{uid: {uid}, account: {_quoted(account)}}}"
            for name, uid, account in sorted(self._users.values())
            if uid
        ]
        return lines or ["  {}"]

    def _canceller(self, row: Row) -> str:
        """Return who cancels a job from outside: its user, or else root."""
        name, uid, _ = self._users[row.user]
        return name if row.cancel_uid in (-1, uid, row.uid) else "root"

    # Jobs.

    def _timeline(self) -> list[str]:
        entries: list[tuple[int, int, str, str]] = []
        for tasks in self._submissions():
            row = tasks[0].runs[0]
            at_s = row.submit_s - self._start_s
            entries.append((at_s, 0, self._users[row.user][0], self._submission(tasks)))
            entries += self._cancellations(tasks)
        lines = []
        for at_s, _, user, command in sorted(entries, key=lambda each: each[:2]):
            lines.append(f"  - {{at: {at_s}s, as: {_quoted(user)}, run: {_quoted(command)}}}")
        return lines

    def _submissions(self) -> list[list[Job]]:
        """Return the jobs that one sbatch each submits: the tasks of an array together."""
        groups: dict[tuple[int, ...], list[Job]] = {}
        for number, job in enumerate(self._jobs):
            row = job.runs[0]
            in_array = row.tasks and max(row.tasks) < MAX_ARRAY_SIZE
            if row.tasks and not in_array:
                self.notes[f"a task above {MAX_ARRAY_SIZE - 1} of an array; a job by itself"] += 1
            key = (row.submit_s, row.job_id) if in_array else (row.submit_s, row.job_id, number)
            groups.setdefault(key, []).append(job)
        return [_without_doubles(tasks) for tasks in groups.values()]

    def _submission(self, tasks: Sequence[Job]) -> str:
        row, last = tasks[0].runs[0], tasks[0].last
        argv = ["sbatch"]
        if row.job_id not in self._taken:
            argv.append(f"--jobid={row.job_id}")
            self._taken.add(row.job_id)
        if row.name:
            argv.append(f"--job-name={row.name.replace(_NUL, '')}")
        numbers = _numbers(tasks)
        if numbers and max(numbers) < MAX_ARRAY_SIZE:
            throttle = max(job.last.throttle for job in tasks)
            argv.append(f"--array={format_tasks(numbers)}" + (f"%{throttle}" if throttle else ""))
        argv += self._size(last)
        argv += _limit_option(max(tasks, key=lambda job: limit_of(job.last)).last)
        if row.partitions:
            argv.append(f"--partition={','.join(row.partitions)}")
        if row.account and row.account != self._users[row.user][2]:
            argv.append(f"--account={row.account}")
        argv += _when(row)
        script = array_script(tasks) if len(tasks) > 1 else commands(tasks[0])
        return shlex.join([*argv, *self._script(row.job_id, script)])

    def _size(self, row: Row) -> list[str]:
        found = [] if row.nodes == 1 and not row.ran else [f"-N{row.nodes}"]
        each, odd = divmod(row.cpus, row.nodes)
        # As many tasks as nodes with all their cpus, unless that does not come out even.
        found += [f"-n{row.cpus}"] if odd or not found else [f"-n{row.nodes}", f"-c{each}"]
        if self._memory:
            found.append(f"--mem={-(-row.memory_mb // row.nodes)}")
        return found

    def _script(self, job_id: int, lines: Sequence[str]) -> list[str]:
        """Return how sbatch is told the script: on its command line if it is short."""
        if len(lines) == 1 or (len(lines) == 2 and lines[1].startswith(("exit", "kill"))):  # noqa: PLR2004 - work and an end
            return [f"--wrap={'; '.join(lines)}"]
        name = f"job_{job_id}.sh"
        while name in self._files:
            name = f"again_{name}"
        self._files[name] = ["#!/bin/sh", *lines]
        return [name]

    def _cancellations(self, tasks: Sequence[Job]) -> Iterable[tuple[int, int, str, str]]:
        """Return what cancels jobs from outside, those of an array at one moment together."""
        groups: dict[tuple[int, str], list[Row]] = {}
        for job in filter(cancelled_from_outside, tasks):
            row = job.last
            end_s = row.end_s if row.end_s >= 0 else row.submit_s + row.elapsed_s
            key = (end_s - self._start_s, self._canceller(row))
            groups.setdefault(key, []).append(row)
        for (at_s, user), rows in groups.items():
            word = str(rows[0].job_id)
            # Where tasks that waited were cancelled nothing was left of their array.
            if rows[0].tasks and not any(row.waiting for row in rows):
                word += f"_[{format_tasks(sorted(n for row in rows for n in row.tasks))}]"
            yield at_s, 1, user, f"scancel {word}"

    def _programs(self) -> list[str]:
        lengths = sorted({row.elapsed_s for row in self._rows if row.state == "OUT_OF_MEMORY"})
        lines = [
            f"  ./out_of_memory_{length_s}: {{runs: {length_s}s, oom: true}}"
            for length_s in lengths
        ]
        return ["programs:", *lines] if lines else []

    def _recorded(self) -> list[str]:
        """Return how long jobs waited that ran once, for a replay.

        Of an id that was used again, the first job keeps it; the others have other ids there.
        """
        first: dict[int, int] = {}
        for job in self._jobs:
            row = job.runs[0]
            first[row.job_id] = min(row.submit_s, first.get(row.job_id, row.submit_s))
        waits: dict[str, int] = {}
        for job in self._jobs:
            row = job.last
            if len(job.runs) > 1 or not first[row.job_id] == row.submit_s <= row.start_s:
                continue
            for name in [f"{row.job_id}_{task}" for task in row.tasks] or [str(row.job_id)]:
                waits.setdefault(name, row.start_s - row.submit_s)
        lines = [f"  {_quoted(name)}: {wait_s}s" for name, wait_s in waits.items()]
        return ["recorded:", *lines] if lines else ["recorded: {}"]

    def _file_lines(self) -> list[str]:
        lines = ["files:"]
        for name, script in self._files.items():
            lines += [f"  {name}: |", *(f"    {line}" for line in script)]
        return lines if self._files else []


def _lost(jobs: Iterable[Job]) -> Counter[str]:
    """Return what jobs had that is not taken over, and how many had any of it."""
    had: Counter[str] = Counter()
    names: dict[str, Counter[str]] = {}
    for job in jobs:
        found = sorted({each for row in job.runs for each in row.lost})
        had.update(list(dict.fromkeys(kind for kind, _ in found)))
        for kind, name in found:
            names.setdefault(kind, Counter())[name] += 1
    told: Counter[str] = Counter()
    for kind, count in had.items():
        most = [name for name, _ in sorted(names[kind].items(), key=lambda one: (-one[1], one[0]))]
        more = f" and {len(most) - _NAMED} more" if len(most) > _NAMED else ""
        told[LOST[kind].format(_printable(", ".join(most[:_NAMED]) + more))] = count
    return told


def _printable(text: str) -> str:
    """Return a text as a comment may hold it."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _quoted(text: str) -> str:
    """Return a text as YAML has it in double quotes."""
    quoted = json.dumps(text, ensure_ascii=False)
    # Above that YAML takes everything, and has other escapes than JSON.
    return "".join(
        one if one.isprintable() or one > "\uffff" else f"\\u{ord(one):04x}" for one in quoted
    )


def _clock(moment_s: int) -> str:
    return datetime.fromtimestamp(moment_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _name_of(user: str) -> str:
    """Return a name that a scenario's user can have."""
    if not user:
        return "user"
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", user)
    return name if _USER.fullmatch(name) else f"_{name}"


def _numbers(tasks: Iterable[Job]) -> list[int]:
    return sorted({number for job in tasks for number in job.last.tasks})


def _without_doubles(tasks: list[Job]) -> list[Job]:
    """Leave tasks out of the record of those that wait where they have one of their own."""
    if len(tasks) == 1:
        return tasks
    own = {number for job in tasks if not job.last.waiting for number in job.last.tasks}
    kept = []
    for job in tasks:
        if job.last.waiting:
            left = tuple(number for number in job.last.tasks if number not in own)
            if not left:
                continue
            job = _with_tasks(job, left)  # noqa: PLW2901 - what is left of it
        kept.append(job)
    return kept


def _with_tasks(job: Job, tasks: tuple[int, ...]) -> Job:
    return attrs.evolve(job, runs=tuple(attrs.evolve(row, tasks=tasks) for row in job.runs))


def _limit_option(row: Row) -> list[str]:
    limit_min = limit_of(row)
    if limit_min == NO_VAL:
        return []
    return ["--time=UNLIMITED"] if limit_min == INFINITE else [f"--time={limit_min}"]


def _when(row: Row) -> list[str]:
    """Return what keeps a job from starting before it could."""
    if row.held:
        return ["--hold"]
    delay_s = row.eligible_s - row.submit_s
    alone = not row.tasks
    return (
        [f"--begin=now+{delay_s}seconds"] if row.eligible_s >= 0 and delay_s > 1 and alone else []
    )
