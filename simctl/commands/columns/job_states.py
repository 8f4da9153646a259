"""Names of job states as the commands print and read them."""

from typing import Final

from simctl.wire.states import JobBase, JobFlag, JobState

_BASES: Final = {
    JobBase.PENDING: "PD",
    JobBase.RUNNING: "R",
    JobBase.SUSPENDED: "S",
    JobBase.COMPLETED: "CD",
    JobBase.CANCELLED: "CA",
    JobBase.FAILED: "F",
    JobBase.TIMEOUT: "TO",
    JobBase.NODE_FAIL: "NF",
    JobBase.PREEMPTED: "PR",
    JobBase.DEADLINE: "DL",
    JobBase.OUT_OF_MEMORY: "OOM",
}
_FLAGS: Final = {
    JobFlag.COMPLETING: ("COMPLETING", "CG"),
    JobFlag.STAGE_OUT: ("STAGE_OUT", "SO"),
    JobFlag.CONFIGURING: ("CONFIGURING", "CF"),
    JobFlag.RESIZING: ("RESIZING", "RS"),
    JobFlag.REQUEUE: ("REQUEUED", "RQ"),
    JobFlag.SPECIAL_EXIT: ("SPECIAL_EXIT", "SE"),
    JobFlag.STOPPED: ("STOPPED", "ST"),
}
"""What is shown instead of the base state, the first that applies."""

_NOT_SIMULATED: Final = {
    "BOOT_FAIL": "BF",
    "RESV_DEL_HOLD": "RD",
    "REQUEUE_FED": "RF",
    "REQUEUE_HOLD": "RH",
    "REVOKED": "RV",
    "SIGNALING": "SI",
}
"""States of Slurm's that no job of a simulation is ever in."""

VALID: Final = (
    "PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL,PREEMPTED,BOOT_FAIL,"
    "DEADLINE,OUT_OF_MEMORY,COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,REQUEUED,REQUEUE_FED,"
    "REQUEUE_HOLD,REVOKED,SIGNALING,SPECIAL_EXIT,STAGE_OUT,STOPPED"
)
"""The names that -t takes, as an error lists them."""


def state_text(state: JobState) -> str:
    """Return the state as one word, ``COMPLETING``."""
    for flag, (name, _) in _FLAGS.items():
        if state.flags & flag:
            return name
    return state.base.name


def state_letters(state: JobState) -> str:
    """Return the state in a letter or two, ``CG``."""
    for flag, (_, letters) in _FLAGS.items():
        if state.flags & flag:
            return letters
    return _BASES[state.base]


def parse_state(word: str) -> JobBase | JobFlag | None:
    """Return the base state or flag that a word names, None for one that no job here is in.

    Raises:
        ValueError: It names no state.
    """
    name = word.upper()
    for base, letters in _BASES.items():
        if name in (base.name, letters):
            return base
    for flag, names in _FLAGS.items():
        if name in names:
            return flag
    for long, letters in _NOT_SIMULATED.items():
        if name in (long, letters):
            return None
    raise ValueError(word)


def is_in(state: JobState, wanted: JobBase | JobFlag) -> bool:
    """Return whether a job is in a state: a flag it has beside others, or a base state alone."""
    if isinstance(wanted, JobFlag):
        return bool(state.flags & wanted)
    return state.base is wanted and not state.flags
