"""Names and numbers that identify jobs, steps, users and moments."""

from typing import Final, NewType

JobId = NewType("JobId", int)
StepNumber = NewType("StepNumber", int)
Uid = NewType("Uid", int)
Micros = NewType("Micros", int)
"""Virtual time in microseconds since the start of the run, or a length of it."""

NO_VAL: Final = 0xFFFFFFFE
"""What Slurm sends for "not set"; as a step id it means all steps of the job."""

NO_VAL16: Final = 0xFFFE
INFINITE: Final = 0xFFFFFFFF

SLURM_BATCH_SCRIPT: Final = StepNumber(0xFFFFFFFE)
"""Step id of a batch script; the same number as NO_VAL up to Slurm 20.02."""

ROOT: Final = Uid(0)

SECOND: Final = 1_000_000
"""Microseconds in a second."""


def step_name(job_id: int, step: int) -> str:
    """Return ``1.0``, or ``1.batch`` for a batch step, as traces and messages print it."""
    return f"{job_id}.batch" if step == SLURM_BATCH_SCRIPT else f"{job_id}.{step}"
