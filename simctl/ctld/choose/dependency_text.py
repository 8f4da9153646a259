"""Dependencies of jobs as people write them, and as squeue prints what is left of them."""

import re
from collections.abc import Iterator
from typing import Final

from simctl.ctld.state.records import Dependency, JobArray, Need
from simctl.ctld.state.tables import State
from simctl.wire.arrays import parse_tasks
from simctl.wire.errno import ESLURM_DEPENDENCY, SlurmError
from simctl.wire.ids import SECOND

_KINDS: Final = frozenset(
    {"after", "afterany", "afterok", "afternotok", "aftercorr", "afterburstbuffer"}
)
_UNBUILT: Final = frozenset({"expand"})
_TARGET: Final = re.compile(r"(\d+)(?:_(\*|\d+|\[[\d,:-]+\]))?(?:\+(\d+))?")
_BETWEEN: Final = re.compile(r"[,?](?![^\[]*\])")
"""What stands between two parts; a comma in brackets stands between tasks of an array."""


def parse_dependency(text: str, state: State, own_id: int) -> Dependency | None:
    """Read ``afterok:1:2_3,singleton``; jobs that are not there any more are left out.

    Ids alone are of the oldest form, and mean afterany; ``0`` is no dependency.

    Raises:
        SlurmError: It cannot be read, mixes ``,`` with ``?``, or names the job itself.
    """
    if text in ("", "0"):
        return None
    between = set(_BETWEEN.findall(text))
    if len(between) > 1:
        raise SlurmError(ESLURM_DEPENDENCY)
    needs: list[Need] = []
    parts = _BETWEEN.split(text)
    for number, part in enumerate(parts):
        kind, _, targets = part.partition(":")
        kind = kind.lower()
        if kind == "singleton" and not targets:
            needs.append(Need(kind=kind))
            continue
        if kind[:1].isdecimal() and not any(":" in each for each in parts[number:]):
            kind, targets = "afterany", part
        if kind in _UNBUILT:
            raise SlurmError(ESLURM_DEPENDENCY, f"{kind} is not simulated yet")
        if kind not in _KINDS or not targets:
            raise SlurmError(ESLURM_DEPENDENCY)
        for target in targets.split(":"):
            needs += _needs(kind, target, state, own_id)
    return Dependency(text=text, needs=tuple(needs), any_will_do="?" in between)


def _needs(kind: str, target: str, state: State, own_id: int) -> Iterator[Need]:
    match = _TARGET.fullmatch(target)
    if match is None or int(match[1]) == own_id or (match[3] and kind != "after"):
        raise SlurmError(ESLURM_DEPENDENCY)
    number = int(match[1])
    array = state.arrays.get(number)
    delay_us = int(match[3] or 0) * 60 * SECOND
    if match[2] and match[2] != "*":
        for task in _tasks(match[2]):
            if array is not None and _has(array, task):
                yield Need(kind=kind, array=array, task=task, delay_us=delay_us)
        return
    other = state.jobs.get(number)
    if array is not None or (other is not None and not match[2]):
        yield Need(kind=kind, job=other, array=array, delay_us=delay_us)


def _tasks(text: str) -> tuple[int, ...]:
    try:
        return parse_tasks(text)
    except ValueError:
        raise SlurmError(ESLURM_DEPENDENCY) from None


def _has(array: JobArray, task: int) -> bool:
    return task in array.records or task in array.waiting


def words_of(need: Need) -> str:
    """Write a need as it was asked for; all tasks of an array are ``7_*``."""
    if need.array is not None:
        who = f":{need.array.job_id}_{need.task if need.task >= 0 else '*'}"
    elif need.job is not None:
        who = f":{need.job.job_id}"
    else:
        who = ""
    delay_min = need.delay_us // (60 * SECOND)
    return f"{need.kind}{who}{f'+{delay_min}' if delay_min else ''}"
