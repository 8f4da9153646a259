"""Timelines in which slurmctld dies, and what tests ask of the jobs."""

import pytest

from tests.cluster import Ran

BOTH = pytest.mark.parametrize("model", ["guide", "modern"])


def timeline(*entries: str) -> str:
    """Return a timeline of ``MOMENT DEED`` lines; a deed is a fault or a command of alice's."""
    lines = []
    for entry in entries:
        moment, _, deed = entry.partition(" ")
        where = f"at: {moment}s" if moment.isdecimal() else f'when: "{moment.replace("+", " ")}"'
        what = f"fault: {deed}" if deed.startswith("{") else f'as: alice, run: "{deed}"'
        lines.append(f"  - {{{where}, {what}}}\n")
    return "timeline:\n" + "".join(lines)


def states(ran: Ran) -> dict[int, str]:
    """Return the state of each job at the end."""
    return {row.job_id: row.state for row in ran.result.rows}


def launches(ran: Ran, job_id: int) -> int:
    """Return how often a script of a job was really started."""
    return len(ran.all("slurm_ckpt_stepd_prefork", step=f"{job_id}.batch"))
