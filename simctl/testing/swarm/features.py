"""What a run may have: kinds of work and kinds of faults, of which each run draws a subset.

A run that has everything a little shows less than runs that each have some of it a lot: what is
left out gives room, and hides nothing that it would prevent (swarm testing).
"""

from typing import Final

WORK: Final = (
    *("srun", "salloc", "arrays", "dependencies", "steps", "shapes", "limits", "signals"),
    *("holds", "requeues", "suspends", "cancels", "begins", "queries", "node updates"),
    *("partition updates", "job updates", "reservations", "reconfigures", "prologs", "preemption"),
    *("shared nodes", "exclusive", "two partitions", "other users", "early orders"),
)
"""Kinds of work; sbatch is always there."""

FAULTS: Final[dict[str, str]] = {
    "crash": "a node crashes and starts again",
    "daemons": "a slurmd, a step daemon or a task dies, or a slurmd stops; another slurmd starts",
    "controller": "slurmctld dies or stops, and another starts with what its files hold",
    "disks": "files that are kept are damaged; disks are full or read-only",
    "messages": "messages are lost, doubled, late or overtaken",
    "cut": "a link carries nothing for a while",
    "restart": "slurmctld stops and starts again",
    "fail": "plugin calls, and what daemons do for themselves, fail",
    "raise": "plugin calls raise an exception",
    "hang": "plugin calls hang for a while",
    "appliance": "what stands behind burst buffer plugins fails, hangs or is away",
}
"""Kinds of faults, and what each is."""
