"""Read what ``sacct -P`` printed: a header names columns, in any order; then a line a record."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, TypeVar

import attrs

from simctl.wire.arrays import parse_array
from simctl.wire.hostlist import expand
from simctl.wire.ids import INFINITE, NO_VAL

Read = TypeVar("Read")

_JOB_ID: Final = re.compile(r"(\d+)(?:_(\d+|\[[^\]]*\]))?(?:\.(\w+))?(?:\+\d+)?")
_TIME: Final = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?")
_MEMORY: Final = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)([nc]?)")
_UNIT_MB: Final = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3, "": 1}
_CANCELLED_BY: Final = re.compile(r"CANCELLED by (\d+)")
_NO_MOMENT: Final = ("", "Unknown", "None", "N/A")
_NO_NODES: Final = ("", "None assigned", "None")

CPUS: Final = ("alloccpus", "ncpus", "reqcpus", "alloctres", "reqtres")
LENGTH: Final = ("elapsedraw", "elapsed", "cputimeraw", "start")
LOST: Final = {
    "resource": "had {}, which is not taken over: they do not wait for it",
    "qos": "had QOS {}, which is not taken over: its priority and limits do not act",
    "reservation": "ran in reservation {}, which is not taken over: nothing is kept free for them",
    "constraints": "asked for features {}, which are not taken over: they may start on other nodes",
}
"""What of a job counts at a site for who starts when, and not in its replay."""

GRES: Final = ("allocgres", "reqgres")
_GRES: Final = re.compile(r"^gres[/:]")
_COUNTED: Final = re.compile(r"(?:^|,)((?:gres|license|bb)/[^:=,]+)")

USED: Final = frozenset(
    """
    jobid submit eligible start end elapsed elapsedraw cputimeraw state exitcode user uid account
    partition jobname timelimit timelimitraw alloccpus ncpus reqcpus alloctres reqtres
    nnodes allocnodes reqnodes nodelist reqmem
    """.split()
)
"""The columns that an import makes something of."""


class RowError(ValueError):
    """Say why a line cannot be used."""


class HeaderError(ValueError):
    """Say why nothing of a file can be used, and what would do."""


@attrs.frozen(kw_only=True)
class Row:
    """A record: a run of a job. Moments are seconds since the epoch, -1 for none."""

    line: int
    job_id: int
    tasks: tuple[int, ...] = ()
    """Of an array: one task, or those that a record of waiting tasks stands for."""

    throttle: int = 0
    waiting: bool = False
    """Whether it is about tasks of an array that have never started."""

    submit_s: int
    eligible_s: int = -1
    held: bool = False
    start_s: int = -1
    end_s: int = -1
    elapsed_s: int = 0
    state: str = "COMPLETED"
    cancel_uid: int = -1
    exit_code: int = 0
    exit_signal: int = 0
    name: str = ""
    user: str = ""
    uid: int = -1
    account: str = ""
    partitions: tuple[str, ...] = ()
    cpus: int = 1
    nodes: int = 1
    node_list: tuple[str, ...] = ()
    memory_mb: int = 0
    """On all nodes together."""

    limit_min: int = NO_VAL
    lost: tuple[tuple[str, str], ...] = ()
    """What it had and a replay has not: a key of `LOST`, and a name."""

    @property
    def ran(self) -> bool:
        """Return whether the job had nodes."""
        if self.node_list:
            return True
        return self.elapsed_s > 0 or (self.start_s >= 0 and self.state != "FAILED")


def read_header(text: str) -> tuple[str, ...]:
    """Return the names of columns, in lower case.

    Raises:
        HeaderError: The line is no such header, or columns are missing.
    """
    names = tuple(name.strip().lower() for name in text.removesuffix("|").split("|"))
    if "jobid" not in names:
        raise HeaderError(
            "expected a header with the columns JobID and Submit and a | between columns; "
            "`sacct -P -o JobID,Submit,...` prints one (without -n)"
        )
    for wanted, what in (
        (("submit",), "Submit"),
        (CPUS, "one of AllocCPUS, NCPUS, ReqCPUS, AllocTRES, ReqTRES"),
        (LENGTH, "one of ElapsedRaw, Elapsed, CPUTimeRAW, or Start and End"),
    ):
        if not set(wanted) & set(names):
            raise HeaderError(f"no column {what}; name it in sacct's -o")
    if not {*LENGTH[:3]} & set(names) and "end" not in names:
        raise HeaderError("no column End beside Start; name it, or ElapsedRaw, in sacct's -o")
    return names


def step_of(cells: Mapping[str, str]) -> str:
    """Return the step that a line is about: ``0``, ``batch``; nothing for a job."""
    match = _JOB_ID.fullmatch(cells["jobid"])
    return (match[3] or "") if match is not None else ""


def read_row(cells: Mapping[str, str], line: int) -> Row:
    """Return the record of a job.

    Raises:
        RowError: It cannot be used.
    """
    match = _JOB_ID.fullmatch(cells["jobid"])
    if match is None:
        raise RowError(f"JobID {cells['jobid']!r} is no job's")
    tasks, throttle = _tasks(match[2] or "")
    submit_s = _moment(cells, "submit")
    if submit_s < 0:
        raise RowError(f"Submit is {cells['submit']!r}: expected a time as 2026-11-20T23:15:23")
    nodes = _nodes(cells)
    code, signal = _exit(cells)
    state, cancel_uid = _state(cells)
    start_s, eligible_s = _moment(cells, "start"), _moment(cells, "eligible")
    return Row(
        line=line,
        job_id=int(match[1]),
        tasks=tasks,
        throttle=throttle,
        waiting=(match[2] or "").startswith("["),
        submit_s=submit_s,
        eligible_s=eligible_s,
        held=cells.get("eligible") == "Unknown" and start_s < 0 and not tasks,
        start_s=start_s,
        end_s=_moment(cells, "end"),
        elapsed_s=_elapsed(cells),
        state=state,
        cancel_uid=cancel_uid,
        exit_code=code,
        exit_signal=signal,
        name=cells.get("jobname", ""),
        user=cells.get("user", ""),
        uid=_whole(cells, "uid", -1),
        account=cells.get("account", ""),
        partitions=tuple(map(_partition, filter(None, cells.get("partition", "").split(",")))),
        cpus=_cpus(cells),
        nodes=len(nodes) or _first(cells, ("nnodes", "allocnodes", "reqnodes")) or 1,
        node_list=nodes,
        memory_mb=_memory(cells),
        limit_min=_limit(cells),
        lost=tuple(dict.fromkeys(_lost(cells))),
    )


def _tasks(text: str) -> tuple[tuple[int, ...], int]:
    if not text:
        return (), 0
    try:
        tasks, limit = parse_array(text.strip("[]"))
    except ValueError:
        if text.isdecimal():
            return (int(text),), 0
        raise RowError(f"the tasks {text} of its array cannot be read") from None
    return tasks, limit


def _moment(cells: Mapping[str, str], name: str) -> int:
    text = cells.get(name, "")
    if text in _NO_MOMENT:
        return -1
    try:
        return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise RowError(
            f"{name.capitalize()} is {text!r}: expected a time as 2026-11-20T23:15:23; "
            "leave SLURM_TIME_FORMAT unset"
        ) from None


def _elapsed(cells: Mapping[str, str]) -> int:
    if cells.get("elapsedraw"):
        return _whole(cells, "elapsedraw", 0)
    if cells.get("elapsed"):
        return seconds(cells["elapsed"], "Elapsed")
    if cells.get("cputimeraw"):
        return _whole(cells, "cputimeraw", 0) // max(1, _cpus(cells))
    start_s, end_s = _moment(cells, "start"), _moment(cells, "end")
    return max(0, end_s - start_s) if start_s >= 0 and end_s >= 0 else 0


def seconds(text: str, what: str) -> int:
    """Return a length of time such as ``1-02:03:04`` in seconds.

    Raises:
        RowError: It is none.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise RowError(f"{what} is {text!r}: expected a time as 1-02:03:04")
    days, hours, minutes, secs = (int(each or 0) for each in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + secs


def _limit(cells: Mapping[str, str]) -> int:
    text = cells.get("timelimitraw") or cells.get("timelimit", "")
    if text in ("", "Partition_Limit"):
        return NO_VAL
    if text.upper() == "UNLIMITED":
        return INFINITE
    return int(text) if text.isdecimal() else -(-seconds(text, "Timelimit") // 60)


def _whole(cells: Mapping[str, str], name: str, missing: int) -> int:
    text = cells.get(name, "")
    if not text:
        return missing
    if not text.isdecimal():
        raise RowError(f"{name} is {text!r}: expected a whole number")
    return int(text)


def _first(cells: Mapping[str, str], names: Iterable[str]) -> int:
    return next((found for name in names if (found := _whole(cells, name, 0))), 0)


def _cpus(cells: Mapping[str, str]) -> int:
    found = _first(cells, CPUS[:3])
    if found:
        return found
    for name in CPUS[3:]:
        match = re.search(r"(?:^|,)cpu=(\d+)", cells.get(name, ""))
        if match is not None and int(match[1]):
            return int(match[1])
    raise RowError("nothing says how many cpus it has")


def _nodes(cells: Mapping[str, str]) -> tuple[str, ...]:
    text = cells.get("nodelist", "")
    if text in _NO_NODES:
        return ()
    try:
        return expand(text)
    except ValueError as error:
        raise RowError(f"NodeList {text!r}: {error}") from None


def _state(cells: Mapping[str, str]) -> tuple[str, int]:
    text = cells.get("state", "") or "COMPLETED"
    match = _CANCELLED_BY.match(text)
    if match is not None:
        return "CANCELLED", int(match[1])
    return text.split()[0].rstrip("+"), -1


def _exit(cells: Mapping[str, str]) -> tuple[int, int]:
    code, _, signal = (cells.get("exitcode") or "0:0").partition(":")
    if not (code.isdecimal() and (signal or "0").isdecimal()):
        raise RowError(f"ExitCode is {cells['exitcode']!r}: expected a code and a signal, as 1:0")
    return int(code), int(signal or 0)


def _memory(cells: Mapping[str, str]) -> int:
    text = cells.get("reqmem", "")
    match = _MEMORY.fullmatch(text)
    if match is None:
        if text and text != "?":
            raise RowError(f"ReqMem is {text!r}: expected a size as 200M")
        return 0
    size_mb = float(match[1]) * _UNIT_MB[match[2]]
    # Before Slurm 21.08 it was said for each node or each cpu.
    each: dict[str, Callable[[], int]] = {
        "n": lambda: _first(cells, ("nnodes", "allocnodes", "reqnodes")) or 1,
        "c": lambda: _cpus(cells),
    }
    return -(-int(size_mb * 1024) // 1024) * (each[match[3]]() if match[3] else 1)


def _lost(cells: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for column in ("alloctres", "reqtres"):
        for name in _COUNTED.findall(cells.get(column, "")):
            yield "resource", name
    for column in GRES:
        for each in filter(None, cells.get(column, "").split(",")):
            if each not in _NO_NODES and not each.startswith("PER_"):
                yield "resource", f"gres/{_GRES.sub('', each).partition(':')[0]}"
    for column, plain in (("qos", "normal"), ("reservation", ""), ("constraints", "")):
        if (told := cells.get(column, "").strip()) not in ("", plain, *_NO_MOMENT):
            yield column, told


def _partition(name: str) -> str:
    """Return a name that a scenario's partition can have."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
    return f"{name}_" if name.upper() == "DEFAULT" else name
