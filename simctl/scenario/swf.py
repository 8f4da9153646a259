"""Read workload logs in the Standard Workload Format, version 2.2.

A log is text, or text packed with gzip: lines that begin with `;` are its header and comments,
every other line is a job of eighteen numbers, -1 where a number is not known.
"""

import difflib
import io
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from simctl.files import TooLargeError, read_bytes, unpack
from simctl.limits import LOG_BYTES, LOG_MISTAKES
from simctl.wire.ids import SECOND, Micros

FIELDS: Final = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average cpu time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user id",
    "group id",
    "executable number",
    "queue number",
    "partition number",
    "preceding job number",
    "think time",
)
"""What the fields of a job line are called in messages, in their order."""

_NUMBER: Final = 0
_SUBMIT: Final = 1
_WAIT: Final = 2
_RUN: Final = 3
_ALLOCATED: Final = 4
_REQUESTED: Final = 7
_REQUESTED_TIME: Final = 8
_STATUS: Final = 10
_USER: Final = 11
_GROUP: Final = 12
_QUEUE: Final = 14
_PARTITION: Final = 15

_WHOLE: Final = (
    _NUMBER,
    _ALLOCATED,
    _REQUESTED,
    _STATUS,
    _USER,
    _GROUP,
    13,
    _QUEUE,
    _PARTITION,
    16,
)
"""Fields that count or name something; the others measure, and may have decimals."""

_LARGEST: Final = 1e11
"""No field goes beyond it: three thousand years in seconds still fit 64 bits of microseconds."""

_PARTIAL: Final = (2.0, 3.0, 4.0)
"""Status of a line that tells one stretch of a job that was swapped out or checkpointed."""

_PLAIN_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_HEADER: Final = re.compile(r";+[ \t]*([A-Za-z]\w*)[ \t]*:(?:\s+(.*))?", re.DOTALL)
_GZIP_MAGIC: Final = b"\x1f\x8b"
_CUT: Final = "replay a part of the log, its first jobs by `head`"


class SwfError(ValueError):
    """Say why a log as a whole cannot be used.

    Attributes:
        path: The file that was asked for.
        problem: What stood in the way.
        remedy: What would do.
    """

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        """Join the parts into one line."""
        super().__init__(f"{path}: {problem}; {remedy}")
        self.path = path
        self.problem = problem
        self.remedy = remedy


class _LineError(ValueError):
    """Say why one line is no job; becomes a `SwfMistake`."""


class _UnknownError(ValueError):
    """Say what a well-formed line does not know without which no job can run; `SwfLog.unknown`."""


@attrs.frozen(kw_only=True)
class SwfJob:
    """One job of a log.

    Attributes:
        number: The job's number in the log.
        submit_s: Seconds from the log's own zero, which need not be its first job.
        run_s: Seconds the job ran; 0 is a job shorter than the log's clock tells.
        processors: The requested ones where known, else the allocated ones; at least 1.
        requested_s: The time limit asked for, rounded up to a second; None if the log has none.
        user_id: As in the log, as are `group_id`, `queue`, `partition` and `status`: -1 is unknown.
        line: Where the job stands in the file, from 1.
        wait_s: Seconds it waited there, which no replay depends on; None if the log has none.
    """

    number: int
    submit_s: float
    run_s: float
    processors: int
    requested_s: int | None
    user_id: int
    group_id: int
    queue: int
    partition: int
    status: int
    line: int
    wait_s: float | None = None

    @property
    def submit_us(self) -> Micros:
        """Return the submit time in microseconds."""
        return Micros(round(self.submit_s * SECOND))

    @property
    def run_us(self) -> Micros:
        """Return the run time in microseconds."""
        return Micros(round(self.run_s * SECOND))


@attrs.frozen(kw_only=True)
class SwfMistake:
    """A line that should be a job and is not one that can be replayed."""

    line: int
    message: str


@attrs.frozen(kw_only=True)
class SwfLog:
    """A log as read.

    Attributes:
        path: The file, as it was asked for.
        header: The `; Key: value` lines; a key that comes again adds a line to its value.
        jobs: In the order of the file, which need not be that of submission.
        malformed: Lines that are no jobs; it is the caller who refuses the log for them.
        partial_lines: Lines left out because they repeat part of a job that has a line of its own.
        unknown: Lines left out because the log does not know (-1) what a job needs to run.
    """

    path: str
    header: dict[str, str]
    jobs: tuple[SwfJob, ...]
    malformed: tuple[SwfMistake, ...]
    partial_lines: tuple[int, ...]
    unknown: tuple[SwfMistake, ...] = ()

    def replay_order(self) -> tuple[SwfJob, ...]:
        """Return the jobs as they are to be submitted: by submit time, then by line."""
        return tuple(sorted(self.jobs, key=lambda job: (job.submit_s, job.line)))


def read_swf(path: str | os.PathLike[str]) -> SwfLog:
    """Read the log at *path*, packed with gzip or not, whatever its name says.

    A log whose every line is malformed is returned, so that its mistakes can be told.

    Raises:
        SwfError: The file cannot be read, is damaged, is no text, or has no job line at all.
    """
    name = os.fspath(path)
    packed = _read_bytes(name)
    log = _read_lines(name, partial(_lines, name, _unpack(name, packed)))
    if name.endswith(".gz") and not packed.startswith(_GZIP_MAGIC) and not log.jobs:
        raise SwfError(name, "is named .gz but is not gzip data", "give a .gz or a plain text log")
    if not (log.jobs or log.malformed or log.unknown):
        raise SwfError(
            name, "the log holds no jobs", f"each job needs a line of {len(FIELDS)} fields"
        )
    return log


def counts_of(unknown: Sequence[SwfMistake]) -> str:
    """Return what is not known of how many jobs, and the first line of such a job.

    Args:
        unknown: One job at the least.
    """
    counts: dict[str, int] = {}
    for each in unknown:
        counts[each.message] = counts.get(each.message, 0) + 1
    told = ", ".join(f"{count} have no {what}" for what, count in counts.items())
    return f"{told}; the first is line {unknown[0].line}"


def too_wide(log: SwfLog, processors: int) -> tuple[SwfJob, ...]:
    """Return the jobs that ask for more than *processors*, in the order of the file."""
    return tuple(job for job in log.jobs if job.processors > processors)


def _read_bytes(name: str) -> bytes:
    """Return what the file holds."""
    try:
        return read_bytes(name, LOG_BYTES)
    except FileNotFoundError:
        raise SwfError(name, "no such file", _suggestion(Path(name))) from None
    except IsADirectoryError:
        raise SwfError(name, "is a directory", "name the log file itself") from None
    except TooLargeError as error:
        raise SwfError(name, str(error.strerror), _CUT) from None
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise SwfError(name, problem, "name a log file you may read") from None


def _suggestion(missing: Path) -> str:
    """Return what the user may have meant by a path that leads nowhere."""
    try:
        neighbours = sorted(path.name for path in missing.parent.iterdir())
    except OSError:
        return f"there is no readable directory {missing.parent} either"
    near = difflib.get_close_matches(missing.name, neighbours, n=1)
    return f"did you mean {missing.parent / near[0]}?" if near else "check the path"


def _unpack(name: str, data: bytes) -> bytes:
    """Return *data* without its gzip packing, if it has one."""
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        return unpack(data, LOG_BYTES)
    except TooLargeError as error:
        raise SwfError(name, str(error.strerror), _CUT) from None
    except OSError as error:
        remedy = "fetch the log again, or give it unpacked"
        raise SwfError(name, str(error.strerror), remedy) from None


def _lines(name: str, data: bytes) -> Iterator[str]:
    """Yield the lines as text, one at a time: a log may hold more of them than fit the memory."""
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for number, line in enumerate(io.BytesIO(data), start=1):
        yield _decode_line(name, number, line.removesuffix(b"\n"))


def _decode_line(name: str, number: int, line: bytes) -> str:
    """Return one line as text; bytes that are no UTF-8 are borne in comments alone."""
    comment = line.lstrip().startswith(b";")
    try:
        return line.decode("utf-8-sig", errors="replace" if comment else "strict")
    except UnicodeDecodeError as error:
        problem = f"byte 0x{line[error.start]:02x} in line {number} is not text"
        remedy = "give a Standard Workload Format log, as text or packed with gzip"
        raise SwfError(name, problem, remedy) from None


def _read_lines(name: str, lines: Callable[[], Iterator[str]]) -> SwfLog:
    """Sort the lines into header, jobs, mistakes and parts of jobs."""
    jobs: list[SwfJob] = []
    malformed: list[SwfMistake] = []
    partial_lines: list[int] = []
    unknown: list[SwfMistake] = []
    told: set[float] = set()  # numbers of the jobs that have a line for the whole of them
    for line, text in enumerate(lines(), start=1):
        if not text or text.isspace() or text.lstrip().startswith(";"):
            continue
        try:
            values = _numbers(text)
            if values[_STATUS] not in _PARTIAL:
                told.add(values[_NUMBER])
            elif values[_NUMBER] in told:
                partial_lines.append(line)
                continue
            jobs.append(_job(values, line))
        except _UnknownError as error:
            unknown.append(SwfMistake(line=line, message=str(error)))
        except _LineError as error:
            malformed.append(SwfMistake(line=line, message=str(error)))
            if len(malformed) > LOG_MISTAKES:
                problem = f"more than {LOG_MISTAKES} of its lines are no jobs"
                raise SwfError(name, problem, f"line {line}: {error}") from None
    return SwfLog(
        path=name,
        header=_read_header(lines()),
        jobs=tuple(jobs),
        malformed=tuple(malformed),
        partial_lines=tuple(partial_lines),
        unknown=tuple(unknown),
    )


def _read_header(lines: Iterable[str]) -> dict[str, str]:
    """Return the keys of the comments; a comment without a key goes on with the one above it."""
    values: dict[str, list[str]] = {}
    key = ""
    for text in map(str.strip, lines):
        match = _HEADER.fullmatch(text)
        if match:
            key = match[1]
            values.setdefault(key, []).append(match[2] or "")
            continue
        comment = text.lstrip("; \t") if text.startswith(";") else ""
        if comment and key:
            values[key].append(comment)
        else:
            key = ""
    return {name: "\n".join(parts).strip() for name, parts in values.items()}


def _numbers(text: str) -> list[float]:
    """Return the eighteen numbers of a line.

    Well-formed lines must be quick, there are many: which field is at fault is found afterwards.
    """
    fields = text.split()
    if len(fields) != len(FIELDS):
        raise _LineError(f"expected {len(FIELDS)} fields, got {len(fields)}")
    try:
        values = [float(field) for field in fields]
    except ValueError:
        raise _LineError(_field_problem(fields)) from None
    if "_" in text or not text.isascii() or not _plausible(values):
        problem = _field_problem(fields)
        if problem:
            raise _LineError(problem)
    return values


def _plausible(values: Sequence[float]) -> bool:
    """Return whether all values are within bounds and whole where they have to be."""
    if math.isnan(sum(values)) or min(values) < -_LARGEST or max(values) > _LARGEST:
        return False
    return all([values[index].is_integer() for index in _WHOLE])  # noqa: C419 - twice as fast


def _field_problem(fields: Sequence[str]) -> str:
    """Return what is wrong with the first wrong field; empty if none is."""
    for index, text in enumerate(fields):
        where = f"field {index + 1} ({FIELDS[index]})"
        if not _PLAIN_NUMBER.fullmatch(text):
            return f"{where}: expected a number, got {_quoted(text)}"
        if abs(float(text)) > _LARGEST:
            return f"{where}: {_quoted(text)} is out of range"
        if index in _WHOLE and not float(text).is_integer():
            return f"{where}: expected a whole number, got {_quoted(text)}"
    return ""


def _quoted(text: str, most: int = 24) -> str:
    """Return *text* fit to be shown in a message."""
    shown = text if len(text) <= most else text[:most] + "..."
    return f'"{ascii(shown)[1:-1]}"'


def _job(values: Sequence[float], line: int) -> SwfJob:
    """Make the job of a line whose fields are numbers."""
    requested, allocated = values[_REQUESTED], values[_ALLOCATED]
    if requested <= 0 and allocated <= 0:
        if _UNKNOWN in (requested, allocated):
            raise _UnknownError("processors (fields 5 and 8)")
        raise _LineError("neither requested (field 8) nor allocated (field 5) processors are known")
    requested_time = values[_REQUESTED_TIME]
    return SwfJob(
        number=int(values[_NUMBER]),
        submit_s=_known_time(values, _SUBMIT),
        run_s=_known_time(values, _RUN),
        processors=int(requested if requested > 0 else allocated),
        requested_s=math.ceil(requested_time) if requested_time > 0 else None,
        user_id=int(values[_USER]),
        group_id=int(values[_GROUP]),
        queue=int(values[_QUEUE]),
        partition=int(values[_PARTITION]),
        status=int(values[_STATUS]),
        line=line,
        wait_s=values[_WAIT] if values[_WAIT] >= 0 else None,
    )


def _known_time(values: Sequence[float], index: int) -> float:
    """Return a time without which a job cannot be replayed."""
    seconds = values[index]
    if seconds == _UNKNOWN:
        raise _UnknownError(f"{FIELDS[index]} (field {index + 1})")
    if seconds < 0:
        raise _LineError(f"field {index + 1} ({FIELDS[index]}) is negative ({seconds:g})")
    return seconds


_UNKNOWN: Final = -1
"""How the format writes what a log does not know."""
