"""What Slurm puts into the global `slurm` of a script, by version."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from simctl.plugin import errno

SLURM_VERSIONS: Final = (
    "21.08",
    "22.05",
    "23.02",
    "23.11",
    "24.05",
    "24.11",
    "25.05",
    "25.11",
    "26.05",
)
"""The versions of Slurm that differ for scripts."""

_NUMBERS: Final[Mapping[str, float]] = {
    "SUCCESS": 0,
    "ERROR": -1,
    "FAILURE": -1,
    "ALLOC_SID_ADMIN_HOLD": 1,
    "ALLOC_SID_USER_HOLD": 2,
    "INFINITE": 0xFFFFFFFF,
    "INFINITE64": 0xFFFFFFFFFFFFFFFF,
    "NO_VAL": 0xFFFFFFFE,
    "NO_VAL8": 0xFE,
    "NO_VAL16": 0xFFFE,
    "NO_VAL64": 0xFFFFFFFFFFFFFFFE,
    "MEM_PER_CPU": 1 << 63,
    "NICE_OFFSET": 1 << 31,
    "SHARED_FORCE": 0x8000,
    "JOB_SHARED_NONE": 0,
    "JOB_SHARED_OK": 1,
    "JOB_SHARED_USER": 2,
    "JOB_SHARED_MCS": 3,
    "MAIL_JOB_BEGIN": 0x1,
    "MAIL_JOB_END": 0x2,
    "MAIL_JOB_FAIL": 0x4,
    "MAIL_JOB_REQUEUE": 0x8,
    "MAIL_JOB_TIME100": 0x10,
    # The constant for 90 % bears this name in all versions of Slurm.
    "MAIL_JOB_TIME890": 0x20,
    "MAIL_JOB_TIME80": 0x40,
    "MAIL_JOB_TIME50": 0x80,
    "MAIL_JOB_STAGE_OUT": 0x100,
    "MAIL_INVALID_DEPEND": 0x400,
    "KILL_INV_DEP": 1 << 0,
    "NO_KILL_INV_DEP": 1 << 1,
    "GRES_ENFORCE_BIND": 1 << 4,
    "SPREAD_JOB": 1 << 8,
    "USE_MIN_NODES": 1 << 9,
    "GRES_DISABLE_BIND": 1 << 19,
}

_MISNAMED: Final = "mail_time890"

_FROM_24_05: Final[Mapping[str, float]] = {
    "GRES_ONE_TASK_PER_SHARING": 1 << 38,
    "GRES_MULT_TASKS_PER_SHARING": 1 << 39,
    "GRES_ALLOW_TASK_SHARING": 1 << 40,
    "STEPMGR_ENABLED": 1 << 41,
}

_FIRST_ERRORS: Final[Mapping[str, int]] = {
    "ESLURM_ACCESS_DENIED": 2002,
    "ESLURM_ACCOUNTING_POLICY": 2050,
    "ESLURM_INVALID_ACCOUNT": 2045,
    "ESLURM_INVALID_LICENSES": 2048,
    "ESLURM_INVALID_NODE_COUNT": 2006,
    "ESLURM_INVALID_TIME_LIMIT": 2051,
    "ESLURM_JOB_MISSING_SIZE_SPECIFICATION": 2008,
    "ESLURM_MISSING_TIME_LIMIT": 8000,
}
"""The error numbers that scripts of 22.05 and before have."""


def slurm_table(
    slurm: str, cluster: str, defects: Collection[str] = (_MISNAMED,)
) -> dict[str, Any]:
    """Return the constants of the table `slurm`, as Slurm of a version gives them."""
    found: dict[str, Any] = {name: float(value) for name, value in _NUMBERS.items()}
    if _MISNAMED not in defects:
        found["MAIL_JOB_TIME90"] = found.pop("MAIL_JOB_TIME890")
    found["CLUSTER_NAME"] = cluster
    if slurm >= "24.05":
        found |= {name: float(value) for name, value in _FROM_24_05.items()}
    if slurm >= "23.02":
        names = {name: each for name, each in vars(errno).items() if name.startswith("ESLURM")}
        found |= {name: float(each) for name, each in names.items() if isinstance(each, int)}
    found |= {name: float(each) for name, each in _FIRST_ERRORS.items()}
    return found
