"""What squeue, sinfo and scontrol printed as real Slurm was recorded, and what they print here.

printed.txt beside a scenario has blocks of a line ``$ 13.5s squeue -s``, the moment and the command
of the timeline, and what real Slurm printed then.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from simctl.world import CommandResult
from tests.conformance_runs import FOLDER

_HEAD: Final = re.compile(r"\$ ([\d.]+)s (.*)")

NOT_COMPARED: Final = {
    "Priority": "counts down from what was submitted before the recording",
    "GroupId": "users have a group of their own there",
    "AllocNode:Sid": "a session of the machine",
    "Command": "a path of the machine",
    "WorkDir": "a path of the machine",
    "StdErr": "a path of the machine",
    "StdIn": "a path of the machine",
    "StdOut": "a path of the machine",
    "RunTime": "time",
    "SubmitTime": "time",
    "EligibleTime": "time",
    "AccrueTime": "time",
    "StartTime": "time",
    "EndTime": "time",
    "SuspendTime": "time",
    "SecsPreSuspend": "time",
    "LastSchedEval": "time",
    "TIME": "time",
    "TIMESTAMP": "time",
    "SystemComment": "begins with the date",
    "QOS": "the recordings have no accounting, which names one",
    "S:C:T": "sockets are not described",
}
"""Fields and columns that are not compared, and why."""

LATER: Final = (
    ("NodeList", "", "(null)"),
    ("NumNodes", "2-2", "2"),
    ("NumTasks", None, "0"),
)
"""What Slurm 22.05, whose layout is printed here, shows otherwise: field, ours (any), recorded."""


@attrs.frozen
class Printed:
    """What a command printed in the recording."""

    at_us: int
    command: str
    text: str


def printed_of(name: str) -> list[Printed]:
    """Return what was printed during a recording."""
    path = FOLDER / name / "printed.txt"
    if not path.exists():
        return []
    found: list[Printed] = []
    for line in path.read_text().splitlines():
        head = _HEAD.fullmatch(line)
        if head is not None:
            found.append(Printed(round(float(head[1]) * 1_000_000), head[2], ""))
        else:
            found[-1] = attrs.evolve(found[-1], text=f"{found[-1].text}{line}\n")
    return found


def differences(printed: Printed, results: Sequence[CommandResult]) -> Iterator[str]:
    """Return in which fields a command printed something else here, where both print them."""
    ours, theirs = sides(printed, results)
    place = f"{printed.at_us / 1_000_000:g}s {printed.command}"
    shown = [subject for subject in theirs if subject in ours or not _is_of_before(subject, theirs)]
    for subject in shown:
        if subject not in ours:
            yield f"{place}: {subject} is not told of"
            continue
        for field, value in theirs[subject].items():
            mine = ours[subject].get(field)
            if field not in NOT_COMPARED and not _alike(field, mine, value):
                yield f"{place}: {subject}: {field}={mine}, recorded {value}"
    for subject in ours:
        if subject not in theirs and not subject.endswith(".batch"):
            # Slurm 22.05 lists batch scripts among the steps.
            yield f"{place}: {subject} is told of"


Fields = dict[str, dict[str, str]]
"""What was printed, by what it is about and by field."""


def sides(printed: Printed, results: Sequence[CommandResult]) -> tuple[Fields, Fields]:
    """Return what a command printed here and in the recording."""
    result = next(
        each for each in results if each.at_us == printed.at_us and each.command == printed.command
    )
    return fields(printed.command, result.stdout), fields(printed.command, printed.text)


def compared(printed: Printed, results: Sequence[CommandResult]) -> int:
    """Return how many fields are compared."""
    ours, theirs = sides(printed, results)
    return sum(
        field in ours.get(subject, {}) and field not in NOT_COMPARED
        for subject, row in theirs.items()
        for field in row
    )


def _alike(field: str, mine: str | None, value: str) -> bool:
    if mine is None or mine == value:
        return True
    value = value.replace("burst_buffer/cray:", "burst_buffer/datawarp:")
    if field.lower() == "dependency":
        # Slurm 22.05 also shows what has become of each: (unfulfilled), (failed).
        mine = re.sub(r"\(\w+\)", "", mine)
    later = (
        (field, value) == (name, recorded) and ours in (None, mine)
        for name, ours, recorded in LATER
    )
    return mine.rstrip("_") == value.rstrip("_") or any(later)


def _is_of_before(subject: str, theirs: dict[str, dict[str, str]]) -> bool:
    """Return whether a job was there before the recording: a whole table ends with its own."""
    return subject.startswith("JobId=") and subject != list(theirs)[-1]


def fields(command: str, text: str) -> Fields:
    """Return what was printed, by what it is about and by field."""
    if command.startswith("scontrol"):
        return _records(text)
    return _table(text)


def _records(text: str) -> Fields:
    found: Fields = {}
    for line in text.splitlines():
        pairs = dict(re.findall(r"(?:^|\s)([A-Z][\w:/]*)=(\S*)", line))
        if "JobId" in pairs:
            found[f"JobId={pairs['JobId']}"] = pairs
    return found


def _table(text: str) -> Fields:
    """Return the rows of a table by their first column; a date before the head does not count."""
    lines = [line for line in text.splitlines() if line.strip()]
    heads = [at for at, line in enumerate(lines) if re.match(r"\s*[A-Z][A-Z:_()]+( |$)", line)]
    if not heads:
        return {}
    names = lines[heads[0]].split()
    found: Fields = {}
    for line in lines[heads[0] + 1 :]:
        words = line.split(maxsplit=len(names) - 1)
        if names[0] == "REASON":
            # A reason may have blanks, and the other columns have none.
            words = line.rsplit(maxsplit=len(names) - 1)
        row = dict(zip(names, (word.strip() for word in words), strict=False))
        key = "NODELIST" if names[0] == "REASON" else names[0]
        found[f"{key}={row.get(key, '')}"] = row
    return found
