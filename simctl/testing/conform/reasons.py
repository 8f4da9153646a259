"""Reasons and exit codes in the states of a run, which recordings do not tell but decide.

A recording has the states that jobs and nodes go through, and the exit codes that slurmctld gets.
What a record may say then follows from the code of Slurm 18.08.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import attrs

from simctl.kernel.procs import exit_code_of, signal_of
from simctl.testing.conform.acts import Act, Story, starts_run
from simctl.wire.states import Reason

_ENDS: Final = {
    "COMPLETED": (Reason.NONE,),
    "RUNNING": (Reason.NONE,),
    "SUSPENDED": (Reason.NONE,),
    "TIMEOUT": (Reason.TIME_LIMIT,),
    "NODE_FAIL": (Reason.NODE_DOWN,),
    "DEADLINE": (Reason.DEADLINE,),
    "OUT_OF_MEMORY": (Reason.OUT_OF_MEMORY,),
    "PREEMPTED": (Reason.NONE,),
}
"""What a job's record says of its end; FAILED and CANCELLED say it by what came before."""

_TEXTS: Final = (
    *("launch failed requeued held", "job requeued in held state"),
    *("Burst buffer pre_run error", "burst_buffer/", "Prolog error", "job requeued due to"),
)
"""How reasons begin that are written out."""

_OF_NODES: Final = frozenset(
    {
        *("Not responding", "Prolog error", "Epilog error", "batch job complete failure"),
        *("Duplicate jobid", "Kill task failed", "Node unexpectedly rebooted"),
        *("Low RealMemory", "Low CPUs", "gres/gpu count too low", "Invalid slurmd version"),
    }
)
_UNFIT: Final = ("DOWN", "DRAIN", "FAIL", "ERROR", "FUTURE")
_CODES: Final = (
    "REQUEST_COMPLETE_BATCH_SCRIPT received",
    "REQUEST_COMPLETE_JOB_ALLOCATION received",
)


@attrs.frozen(kw_only=True)
class Nonsense:
    """What a record says and cannot."""

    act: Act
    text: str


def nonsense(ours: Story, theirs: Story) -> Iterator[Nonsense]:
    """Return the reasons and exit codes of a run that do not go with what the recording has."""
    if ours.cut:
        # A recording held against another: neither tells.
        return
    codes = _codes(theirs)
    recorded = {(act.strand, act.key) for act in theirs.acts if act.kind == "state"}
    updated = any(act.name == "REQUEST_UPDATE_NODE received" for act in theirs.acts)
    runs = Counter[int | None]()
    for act in ours.acts:
        runs[act.job] += starts_run(act)
        if act.kind != "state" or (act.strand, act.key) not in recorded:
            continue
        if act.name == "node_state":
            found = "" if updated else _of_node(act)
        else:
            found = _of_job(act, codes.get((act.job, runs[act.job]), []))
        if found:
            yield Nonsense(act=act, text=f"{act.name} {act.key}: {found}")


def _codes(story: Story) -> dict[tuple[int | None, int], list[int]]:
    """Return the wait statuses that slurmctld is told of each run of a job."""
    found: dict[tuple[int | None, int], list[int]] = {}
    runs = Counter[int | None]()
    for act in story.acts:
        runs[act.job] += starts_run(act)
        code = act.args.get("job_rc")
        if act.name in _CODES and isinstance(code, int) and code > 0:
            found.setdefault((act.job, runs[act.job]), []).append(code)
    return found


def _of_node(act: Act) -> str:
    reason, after = act.says.get("reason", Reason.NONE), act.key.split(" > ")[-1]
    unfit = any(flag in after for flag in _UNFIT)
    if reason == Reason.NONE or (unfit and reason in _OF_NODES):
        return ""
    return f"reason={reason}, {'and that is none' if unfit else 'recorded None'}"


def _of_job(act: Act, codes: Sequence[int]) -> str:
    reason, code = act.says.get("reason", Reason.NONE), act.says.get("exit_code", "0:0")
    before, _, after = act.key.partition(" > ")
    expected = _reasons(after.split("|")[0], codes)
    if expected and reason not in expected:
        return f"reason={reason}, recorded {' or '.join(expected)}"
    if not _is_known(reason):
        return f"reason={reason}, and that is none"
    if "COMPLETING" in before and "COMPLETING" not in after and not after.startswith("PENDING"):
        told = _exit_codes(after, codes)
        if code not in told:
            return f"exit_code={code}, recorded {' or '.join(sorted(told))}"
    return ""


def _reasons(base: str, codes: Sequence[int]) -> Collection[str]:
    """Return what a record may say in a state; nothing if that depends on more."""
    if base == "FAILED" and codes:
        killed = signal_of(codes[0])
        return (Reason.JOB_LAUNCH_FAILURE if killed else Reason.NON_ZERO_EXIT_CODE,)
    return _ENDS.get(base, ())


def _is_known(reason: str) -> bool:
    return reason in set(Reason) or reason.startswith(_TEXTS)


def _exit_codes(after: str, codes: Sequence[int]) -> set[str]:
    """Return the exit codes that a job may have at its end.

    The first that is not 0; nodes that fail and limits may have left one before.
    """
    told = {_text(code) for code in codes}
    if not after.startswith(("COMPLETED", "FAILED")) or not told:
        told |= {"0:0"}
    if after.startswith(("NODE_FAIL", "TIMEOUT", "CANCELLED", "DEADLINE")):
        told |= {"0:9", "0:15"}
    return told


def _text(status: int) -> str:
    number = signal_of(status)
    return f"0:{number}" if number else f"{exit_code_of(status)}:0"
