"""Who may ask what of slurmctld and of slurmd: one line for each request.

Every user may ask for information. What is not here is no request.
"""

import enum
from typing import Final

import attrs

from simctl.wire.errno import (
    EPERM,
    ESLURM_ACCESS_DENIED,
    ESLURM_USER_ID_MISSING,
    ESLURMD_INVALID_JOB_CREDENTIAL,
)


class Who(enum.IntFlag):
    """Whose request is taken: of any of these."""

    DAEMONS = 1
    """root, as whom slurmd and slurmstepd run, and SlurmUser."""

    OPERATOR = 2
    """Users whose `admin` is operator or administrator."""

    ADMINISTRATOR = 4
    """Users whose `admin` is administrator, where operators may not."""

    OWNER = 8
    """The user of the job that it is about."""

    ROOT = 16
    """root, where SlurmUser may not."""

    ANYBODY = 32


ADMINISTRATORS: Final = Who.DAEMONS | Who.ADMINISTRATOR
MANAGERS: Final = Who.DAEMONS | Who.OPERATOR
OWNERS: Final = Who.DAEMONS | Who.OWNER
KEEPERS: Final = Who.DAEMONS | Who.OPERATOR | Who.OWNER


@attrs.frozen
class Right:
    """Who may, the errno that all others are answered with, and what more there is to say."""

    who: Who
    errno: int = 0
    besides: str = ""
    looks_first: bool = False
    """Whether slurmctld looks for what the request names before it looks at who asks."""

    may: frozenset[Who] = attrs.field(init=False)
    """Those of `who`, one by one."""

    @may.default
    def _each(self) -> frozenset[Who]:
        return frozenset(Who(int(each)) for each in self.who)

    @property
    def of_loop(self) -> bool:
        """Whether the loop of a daemon rules on it: no owner matters, nor what is named."""
        return not (self.looks_first or self.who & (Who.OWNER | Who.ANYBODY))


def _anybody(besides: str = "") -> Right:
    return Right(Who.ANYBODY, besides=besides)


_DAEMONS: Final = Right(Who.DAEMONS, ESLURM_USER_ID_MISSING)
_MANAGERS: Final = Right(MANAGERS, ESLURM_USER_ID_MISSING)
_ADMINISTRATORS: Final = Right(ADMINISTRATORS, ESLURM_USER_ID_MISSING)

OF_SLURMCTLD: Final[dict[str, Right]] = {
    "MESSAGE_NODE_REGISTRATION_STATUS": _DAEMONS,
    "MESSAGE_EPILOG_COMPLETE": _DAEMONS,
    "REQUEST_COMPLETE_PROLOG": _DAEMONS,
    "REQUEST_COMPLETE_BATCH_SCRIPT": _DAEMONS,
    "REQUEST_STEP_COMPLETE": Right(
        OWNERS, ESLURM_USER_ID_MISSING, "srun reports nodes that it could not launch on"
    ),
    "REQUEST_COMPLETE_JOB_ALLOCATION": Right(OWNERS, ESLURM_USER_ID_MISSING),
    "REQUEST_SUBMIT_BATCH_JOB": Right(
        OWNERS, ESLURM_USER_ID_MISSING, "for oneself; a nice value below 0 is for operators"
    ),
    "REQUEST_RESOURCE_ALLOCATION": Right(OWNERS, ESLURM_USER_ID_MISSING, "for oneself"),
    "REQUEST_JOB_WILL_RUN": Right(OWNERS, ESLURM_USER_ID_MISSING, "for oneself"),
    "REQUEST_JOB_PACK_ALLOC_INFO": Right(OWNERS, ESLURM_ACCESS_DENIED),
    "REQUEST_JOB_STEP_CREATE": Right(
        Who.OWNER, ESLURM_ACCESS_DENIED, "not even root: its tasks would be root's"
    ),
    "REQUEST_KILL_JOB": Right(KEEPERS, ESLURM_ACCESS_DENIED),
    "REQUEST_CANCEL_JOB_STEP": Right(OWNERS, ESLURM_USER_ID_MISSING),
    "REQUEST_UPDATE_JOB": Right(
        KEEPERS,
        ESLURM_USER_ID_MISSING,
        "a longer limit of a job that runs, a higher priority, a deadline, sharing and what an "
        "operator has held are for operators: ESLURM_ACCESS_DENIED",
    ),
    "REQUEST_UPDATE_JOB_STEP": Right(
        KEEPERS, ESLURM_ACCESS_DENIED, "a longer limit is for operators"
    ),
    "REQUEST_JOB_REQUEUE": Right(
        KEEPERS, ESLURM_ACCESS_DENIED, "that a launch has failed is slurmd's to say"
    ),
    "REQUEST_SUSPEND": Right(MANAGERS, ESLURM_ACCESS_DENIED, looks_first=True),
    "REQUEST_CHECKPOINT": Right(
        OWNERS,
        ESLURM_ACCESS_DENIED,
        "of one step its owner and root; a restart refuses others with EPERM",
    ),
    "REQUEST_CHECKPOINT_COMP": Right(Who.OWNER | Who.ROOT, ESLURM_ACCESS_DENIED),
    "REQUEST_CHECKPOINT_TASK_COMP": Right(Who.OWNER | Who.ROOT, ESLURM_ACCESS_DENIED),
    "REQUEST_BATCH_SCRIPT": Right(KEEPERS, ESLURM_USER_ID_MISSING),
    "REQUEST_JOB_NOTIFY": Right(KEEPERS, ESLURM_USER_ID_MISSING),
    "REQUEST_UPDATE_NODE": _ADMINISTRATORS,
    "REQUEST_UPDATE_PARTITION": _ADMINISTRATORS,
    "REQUEST_CREATE_PARTITION": _ADMINISTRATORS,
    "REQUEST_DELETE_PARTITION": _ADMINISTRATORS,
    "REQUEST_CREATE_RESERVATION": _MANAGERS,
    "REQUEST_UPDATE_RESERVATION": _MANAGERS,
    "REQUEST_DELETE_RESERVATION": _MANAGERS,
    "REQUEST_RECONFIGURE": _ADMINISTRATORS,
    "REQUEST_SHUTDOWN": _ADMINISTRATORS,
    "RESPONSE_SLURM_RC": Right(Who.DAEMONS, ESLURM_USER_ID_MISSING, "nobody is answered"),
    "REQUEST_PING": _anybody(),
    "REQUEST_JOB_READY": _anybody(),
    "REQUEST_JOB_INFO": _anybody(),
    "REQUEST_JOB_STEP_INFO": _anybody(),
    "REQUEST_NODE_INFO": _anybody(),
    "REQUEST_PARTITION_INFO": _anybody(),
    "REQUEST_RESERVATION_INFO": _anybody(),
    "REQUEST_BURST_BUFFER_INFO": _anybody("the plugin is told who asks"),
    "REQUEST_BURST_BUFFER_STATUS": _anybody("the plugin is told who asks"),
    "REQUEST_SWITCH_INFO": _anybody(),
    "REQUEST_BUILD_INFO": _anybody(),
    "DBD_GET_JOBS_COND": _anybody(),
}
"""What may be asked of slurmctld, by whom."""

OF_SLURMD: Final[dict[str, Right]] = {
    "REQUEST_LAUNCH_TASKS": Right(
        OWNERS,
        ESLURMD_INVALID_JOB_CREDENTIAL,
        "with a credential of slurmctld's for this user, node, step and run",
    ),
    "REQUEST_BATCH_JOB_LAUNCH": Right(
        Who.DAEMONS, ESLURM_USER_ID_MISSING, "with a credential as well"
    ),
    "REQUEST_LAUNCH_PROLOG": _DAEMONS,
    "REQUEST_TERMINATE_JOB": _DAEMONS,
    "REQUEST_KILL_TIMELIMIT": _DAEMONS,
    "REQUEST_KILL_PREEMPTED": _DAEMONS,
    "REQUEST_ABORT_JOB": _DAEMONS,
    "REQUEST_SUSPEND_INT": _DAEMONS,
    "REQUEST_SIGNAL_TASKS": Right(OWNERS, ESLURM_USER_ID_MISSING),
    "REQUEST_CHECKPOINT_TASKS": Right(OWNERS, ESLURM_USER_ID_MISSING),
    "REQUEST_JOB_NOTIFY": _DAEMONS,
    "REQUEST_STEP_COMPLETE": _DAEMONS,
    "REQUEST_PING": _DAEMONS,
    "REQUEST_NODE_REGISTRATION_STATUS": _DAEMONS,
    "REQUEST_RECONFIGURE": _DAEMONS,
    "REQUEST_SHUTDOWN": _DAEMONS,
    "RESPONSE_SLURM_RC": Right(Who.DAEMONS, ESLURM_USER_ID_MISSING, "nobody is answered"),
    "REQUEST_SWITCH_INFO": _anybody(),
}
"""What may be asked of slurmd, by whom."""

DENIALS: Final = frozenset((ESLURM_ACCESS_DENIED, ESLURM_USER_ID_MISSING, EPERM))
"""Errnos by which a request is refused for who asks."""
