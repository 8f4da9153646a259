"""Rules about jobs and commands: none is lost, none is left, each is accounted for once."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.testing.swarm.rules import AtRest, rule
from simctl.wire.states import JobBase

_SUBMITTED: Final = re.compile(r"^Submitted batch job (\d+)", re.MULTILINE)
_LET_GO: Final = ("bb_p_job_start_stage_out", "bb_p_job_cancel")
_FINAL: Final = frozenset(base.name for base in JobBase if base.value > JobBase.SUSPENDED.value)


@rule(
    "jobs-end",
    says="every job that was submitted is in a final state, without flags",
    exceptions="jobs that a slurmctld has lost, which `jobs_lost` in the trace names: none in "
    "model guide, but for damaged files",
)
def jobs_end(run: AtRest) -> Iterator[str]:
    """Find jobs that are not over, and submitted ones that slurmctld does not know."""
    rows = list(run.world.ctld.rows())
    for row in rows:
        if row.state not in _FINAL:
            yield f"job {row.job_id} is {row.state} ({row.reason})"
    known = {row.job_id for row in rows}
    for command in run.world.shell.results:
        for number in _SUBMITTED.findall(command.stdout):
            if int(number) not in known and int(number) not in run.lost:
                yield f"job {number}, submitted by {command.label}, is in no table"
    ids = Counter(row.job_id for row in rows)
    yield from (f"{times} jobs have the id {each}" for each, times in ids.items() if times > 1)


@rule(
    "records-go",
    says="no record of a job is left, nor anything that was kept for one",
    exceptions="jobs that a burst buffer plugin keeps in model modern, as real Slurm does; all "
    "with burst buffers where its bb_p_load_state has failed as slurmctld last started; jobs of "
    "which a burst buffer plugin has failed to let go, in bb_p_job_start_stage_out or "
    "bb_p_job_cancel",
)
def records_go(run: AtRest) -> Iterator[str]:
    """Find records of jobs, and entries of slurmctld's tables, that nothing needs any more."""
    ctld = run.world.ctld
    kept = set(ctld.bb.kept) if ctld.bb is not None and run.world.model == "modern" else set()
    kept |= _held_on_to(run.events)
    if _has_not_loaded(run.events):
        kept |= {job.job_id for job in ctld.jobs.values() if job.burst_buffer}
    for job in ctld.jobs.values():
        if job.job_id not in kept:
            yield f"job {job.job_id} is left: {job.state} {job.bb_state}".rstrip()
    tables: dict[str, Mapping[Any, object]] = {
        "running": ctld.running,
        "completing": ctld.completing,
        "suspended": ctld.suspended,
        "preempted": ctld.preempted,
        "periodic": ctld.periodic,
        "awaited": ctld.awaited,
    }
    for name, table in tables.items():
        if table:
            yield f"slurmctld's table {name} still has {sorted(table)}"
    for name, leaving in ctld.leftovers.items():
        if leaving:
            yield f"old runs are to leave {name}: {sorted(leaving)}"
    for name, singles in (("dependents", ctld.dependents), ("singletons", ctld.singletons)):
        left = {key: len(jobs) for key, jobs in singles.items() if jobs}
        if left and not kept:
            yield f"slurmctld's table {name} still has {left}"
    if ctld.arrays and not kept:
        yield f"slurmctld still knows the arrays {sorted(ctld.arrays)}"


def _has_not_loaded(events: list[Event]) -> bool:
    """Return whether a burst buffer plugin failed to read its state as slurmctld last started."""
    last = {
        event.plugin: event.rc
        for event in events
        if event.name == "bb_p_load_state"
        and event.phase != "enter"
        and event.args is not UNSET
        and event.args["init_config"]
    }
    return any(rc != 0 for rc in last.values())


def _held_on_to(events: list[Event]) -> set[int]:
    """Return the jobs whose end failed with one of the plugins, the last time it was told."""
    last: dict[tuple[int, object], object] = {}
    for event in events:
        if event.name in _LET_GO and event.phase != "enter" and isinstance(event.job, int):
            last[event.job, event.plugin] = event.rc
    return {job_id for (job_id, _), rc in last.items() if rc != 0}


_GOES_BACK: Final = ("NODE_FAIL", "PREEMPTED")
"""What accounting calls a run after which its job goes back into the queue, beside REQUEUED."""


@rule(
    "accounted-once",
    says="accounting has each end of a job once, as the table of jobs has it",
    exceptions="tasks of an array that were ended before they ran, which accounting need not have "
    "heard of by themselves; a job that is cancelled before its nodes have let go of a run after "
    "which it goes back into the queue, as in real Slurm; a slurmctld that has died, or whose "
    "files were damaged or could not be written, ends again what it had begun to end",
)
def accounted_once(run: AtRest) -> Iterator[str]:
    """Find jobs that accounting does not have, or has ended otherwise or more than once."""
    accounts: dict[int, list[tuple[str, int]]] = {}
    requeued = {each.job_id for each in run.world.ctld.books.jobs if each.state == "REQUEUED"}
    for account in run.world.ctld.books.jobs:
        if account.state != "REQUEUED":
            # Whatever goes back into the queue counts as submitted anew.
            accounts.setdefault(account.job_id, []).append((account.state, account.submit_us))
    for row in run.world.ctld.rows():
        found = accounts.get(row.job_id, [])
        submitted = {submit_us for _, submit_us in found}
        # What accounting has may be of a life that slurmctld has forgotten.
        unknown = not found or run.forgets
        if unknown and row.array_job_id and row.start_us in (-1, row.end_us):
            continue
        gone_back = found and found[-1][0] in _GOES_BACK
        if row.state == "CANCELLED" and (row.job_id in requeued or gone_back):
            continue
        if not found:
            yield f"accounting has no end of job {row.job_id} ({row.state})"
        elif len(found) >= len(submitted) + run.began[row.job_id] and not (
            run.forgets or "crash slurmctld" in run.deeds
        ):
            yield f"accounting has several ends of job {row.job_id}: {found}"
        elif found[-1][0] != row.state:
            yield f"job {row.job_id} is {row.state}, in accounting {found[-1][0]}"


@rule(
    "commands-end",
    says="every command that was typed has ended",
    exceptions="where a slurmctld has lost jobs, those that wait for a job it does not know",
)
def commands_end(run: AtRest) -> Iterator[str]:
    """Find commands that have not."""
    if run.lost:
        return
    for command in run.world.shell.unended():
        yield f"`{command.command}` of {command.user} ({command.label}) has not ended"
