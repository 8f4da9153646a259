"""Whose a checkpoint record is: recordings tell only where it lies in memory.

A step's record is made after build_jobinfo, or after a restart before job_step_allocated, and
released after free_jobinfo. A job's is made before the job is named first. When a task is split off
an array, it takes the record there is, and what is left of the array gets a copy.
"""

from itertools import takewhile, zip_longest
from typing import Any, Final

import attrs

from simctl.testing.conform.acts import step_text

UNKNOWN: Final = "?"
"""Stands for the step of a record that was made before the recording began."""

Owner = tuple[int | None, str]
"""A job, and the step if the record is a step's."""

Placed = tuple[int, dict[str, Any]]
"""An event with its place in the recording."""

_ALLOC: Final = "slurm_ckpt_alloc_job"
_FREE: Final = "slurm_ckpt_free_job"
_COPY: Final = "slurm_ckpt_copy_job"
_STEP_ALLOCATED: Final = "switch_p_job_step_allocated"
_BEFORE_FREE: Final = ("bb_p_job_test_stage_out", "bb_p_job_validate2")


@attrs.frozen
class Owners:
    """Whose records calls are about, by the place of the call."""

    by_place: dict[int, Owner]
    born: dict[int, int]
    """Where a job's own record was made."""

    def begins(self, place: int, event: dict[str, Any]) -> bool:
        """Return whether a job is new with the first event that names it.

        One that only changes its state is new if there is a record for it, or one of no known job.
        """
        if event["fn"] != "job_state" or event["args"]["job"] in self.born:
            return event["args"]["job"] in self.born or names_new(event)
        return names_new(event) and any(
            owner == (None, "") and made < place for made, owner in self.by_place.items()
        )

    def of(self, place: int, args: dict[str, Any]) -> Owner:
        """Return the job and the step that a call is about."""
        if place in self.by_place:
            return self.by_place[place]
        job = args.get("job")
        return (job if isinstance(job, int) else None), ""


def find_owners(events: list[dict[str, Any]]) -> Owners:
    """Find out whose each checkpoint record is, from what slurmctld does around the call."""
    ctld = [
        (place, event)
        for place, event in enumerate(events)
        if event["daemon"] == "slurmctld" and event["fn"] != "recv"
    ]
    return _Search(ctld).run()


@attrs.define
class _Search:
    ctld: list[Placed]
    found: dict[int, Owner] = attrs.field(factory=dict)
    born: dict[int, int] = attrs.field(factory=dict)
    alive: set[int] = attrs.field(factory=set)
    """Jobs that have a record now."""

    records: dict[str, Owner] = attrs.field(factory=dict)
    """Owners by where their records lie."""

    reloaded: list[int | None] = attrs.field(factory=list)
    """Jobs that a restarted slurmctld has yet to read back, None for those of before."""

    def run(self) -> Owners:
        calls = [
            each for each in self.ctld if each[1]["ev"] == "call" or each[1]["fn"] == "proc_start"
        ]
        for at, (place, event) in enumerate(calls):
            before = calls[at - 1][1] if at else None
            after = calls[at + 1][1] if at + 1 < len(calls) else None
            name = event["fn"]
            if name == "proc_start":
                self._restart([each for _, each in calls[at + 1 :]])
            elif name == "switch_p_reconfig":
                self.reloaded = []
            elif name == _FREE:
                self._free(place, event, before)
            elif name == _ALLOC:
                self._alloc(place, event, before, after)
            elif name == _COPY:
                self._copy(place, event)
        return Owners(self.found, self.born)

    def _restart(self, calls: list[dict[str, Any]]) -> None:
        """Note which jobs are read back: all there are, in the order in which they were made."""
        loading = list(takewhile(lambda event: event["fn"] != "switch_p_reconfig", calls))
        count = sum(
            event["fn"] == _ALLOC and (after is None or after["fn"] != _STEP_ALLOCATED)
            for event, after in zip_longest(loading, loading[1:])
        )
        known = sorted(self.alive)
        self.reloaded = [*[None] * (count - len(known)), *known]
        self.records = {}

    def _free(self, place: int, event: dict[str, Any], before: dict[str, Any] | None) -> None:
        owner = self.records.pop(_pointer(event), None) or _step_of(before, "switch_p_free_jobinfo")
        if owner is None and before is not None and before["fn"] in _BEFORE_FREE:
            # Where records are none, which lie nowhere, the call before tells of the job.
            owner = before["args"].get("job"), ""
        self.found[place] = owner or (None, UNKNOWN)
        if owner is not None and owner[0] is not None and not owner[1]:
            self.alive.discard(owner[0])

    def _alloc(
        self,
        place: int,
        event: dict[str, Any],
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
    ) -> None:
        owner = _step_of(before, "switch_p_build_jobinfo") or _step_of(after, _STEP_ALLOCATED)
        if owner is None and self.reloaded:
            job = self.reloaded.pop(0)
            owner = job, "" if job is not None else UNKNOWN
        elif owner is None:
            owner = self._next_new_job(place), ""
            if owner[0] is not None:
                self.born.setdefault(owner[0], place)
                self.alive.add(owner[0])
        self.found[place] = owner
        pointer = _pointer(event)
        if pointer.startswith("#"):
            self.records[pointer] = owner

    def _copy(self, place: int, event: dict[str, Any]) -> None:
        """Give the record to the task that is split off, and the copy to the rest of the array."""
        pointers = [str(value) for value in event["args"].values() if str(value).startswith("#")]
        known = [pointer for pointer in pointers if pointer in self.records]
        new = [pointer for pointer in pointers if pointer not in self.records]
        task = self._next_new_job(place)
        rest = self.records[known[0]] if known else (None, "")
        self.found[place] = rest
        if task is not None:
            self.born.setdefault(task, place)
            self.alive.add(task)
            if known:
                self.records[known[0]] = task, ""
        if new:
            self.records[new[0]] = rest

    def _next_new_job(self, place: int) -> int | None:
        """Return the job that slurmctld names next and that has no record yet."""
        for at, event in self.ctld:
            if at <= place:
                continue
            if event["fn"] in (_ALLOC, _COPY):
                return None
            job = event["args"].get("job")
            if isinstance(job, int) and job not in self.alive and names_new(event):
                return job
        return None


def _pointer(event: dict[str, Any]) -> str:
    return str(event["args"].get("ji", ""))


def _step_of(event: dict[str, Any] | None, name: str) -> Owner | None:
    if event is None or event["fn"] != name or "job" not in event["args"]:
        return None
    return event["args"]["job"], step_text(event["args"]["job"], event["args"]["step"])


def names_new(event: dict[str, Any]) -> bool:
    """Return whether an event may be the first that names a job."""
    args = event["args"]
    if event["fn"] == "send":
        return bool(args.get("msg") == "RESPONSE_SUBMIT_BATCH_JOB")
    if event["fn"] == "job_state":
        return str(args.get("from")).startswith("PENDING")
    return bool(event["fn"] == "bb_p_job_validate2")
