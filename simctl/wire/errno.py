"""Slurm's error numbers, what each one says, and the exception that carries one.

Slurm shares one number space with libc: numbers below 1000 are the system's, 1000 to 1999 the
protocol's, 2000 and up slurmctld's, 3000 to 3099 belong to the switch plugin, 4000 and up to
slurmd and the batch script. The numbers and names are those of Slurm 18.08.
"""

import difflib
import re
from typing import Final

SLURM_SUCCESS: Final = 0
SLURM_ERROR: Final = -1
SLURM_FAILURE: Final = SLURM_ERROR

# Linux's own numbers, written out so that a trace is the same on every machine.
EPERM: Final = 1
ENOENT: Final = 2
ESRCH: Final = 3
EINTR: Final = 4
EIO: Final = 5
ENOEXEC: Final = 8
EAGAIN: Final = 11
ENOMEM: Final = 12
EACCES: Final = 13
EBUSY: Final = 16
EEXIST: Final = 17
ENOTDIR: Final = 20
EISDIR: Final = 21
EINVAL: Final = 22
ENOSPC: Final = 28
EROFS: Final = 30
ERANGE: Final = 34
ENOSYS: Final = 38
ECONNRESET: Final = 104
ETIMEDOUT: Final = 110
ECONNREFUSED: Final = 111
EHOSTUNREACH: Final = 113
EALREADY: Final = 114

SLURM_UNEXPECTED_MSG_ERROR: Final = 1000
SLURM_COMMUNICATIONS_CONNECTION_ERROR: Final = 1001
SLURM_COMMUNICATIONS_SEND_ERROR: Final = 1002
SLURM_COMMUNICATIONS_RECEIVE_ERROR: Final = 1003
SLURM_COMMUNICATIONS_SHUTDOWN_ERROR: Final = 1004
SLURM_PROTOCOL_VERSION_ERROR: Final = 1005
SLURM_PROTOCOL_IO_STREAM_VERSION_ERROR: Final = 1006
SLURM_PROTOCOL_AUTHENTICATION_ERROR: Final = 1007
SLURM_PROTOCOL_INSANE_MSG_LENGTH: Final = 1008
SLURM_MPI_PLUGIN_NAME_INVALID: Final = 1009
SLURM_MPI_PLUGIN_PRELAUNCH_SETUP_FAILED: Final = 1010
SLURM_PLUGIN_NAME_INVALID: Final = 1011
SLURM_UNKNOWN_FORWARD_ADDR: Final = 1012

SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR: Final = 1800
SLURMCTLD_COMMUNICATIONS_SEND_ERROR: Final = 1801
SLURMCTLD_COMMUNICATIONS_RECEIVE_ERROR: Final = 1802
SLURMCTLD_COMMUNICATIONS_SHUTDOWN_ERROR: Final = 1803

SLURM_NO_CHANGE_IN_DATA: Final = 1900

ESLURM_INVALID_PARTITION_NAME: Final = 2000
ESLURM_DEFAULT_PARTITION_NOT_SET: Final = 2001
ESLURM_ACCESS_DENIED: Final = 2002
ESLURM_JOB_MISSING_REQUIRED_PARTITION_GROUP: Final = 2003
ESLURM_REQUESTED_NODES_NOT_IN_PARTITION: Final = 2004
ESLURM_TOO_MANY_REQUESTED_CPUS: Final = 2005
ESLURM_INVALID_NODE_COUNT: Final = 2006
ESLURM_TOO_MANY_REQUESTED_NODES: Final = ESLURM_INVALID_NODE_COUNT  # its name in Slurm 1.0
ESLURM_ERROR_ON_DESC_TO_RECORD_COPY: Final = 2007
ESLURM_JOB_MISSING_SIZE_SPECIFICATION: Final = 2008
ESLURM_JOB_SCRIPT_MISSING: Final = 2009
ESLURM_USER_ID_MISSING: Final = 2010
ESLURM_DUPLICATE_JOB_ID: Final = 2011
ESLURM_PATHNAME_TOO_LONG: Final = 2012
ESLURM_NOT_TOP_PRIORITY: Final = 2013
ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE: Final = 2014
ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE: Final = 2015
ESLURM_NODES_BUSY: Final = 2016
ESLURM_INVALID_JOB_ID: Final = 2017
ESLURM_INVALID_NODE_NAME: Final = 2018
ESLURM_WRITING_TO_FILE: Final = 2019
ESLURM_TRANSITION_STATE_NO_UPDATE: Final = 2020
ESLURM_ALREADY_DONE: Final = 2021
ESLURM_INTERCONNECT_FAILURE: Final = 2022
ESLURM_BAD_DIST: Final = 2023
ESLURM_JOB_PENDING: Final = 2024
ESLURM_BAD_TASK_COUNT: Final = 2025
ESLURM_INVALID_JOB_CREDENTIAL: Final = 2026
ESLURM_IN_STANDBY_MODE: Final = 2027
ESLURM_INVALID_NODE_STATE: Final = 2028
ESLURM_INVALID_FEATURE: Final = 2029
ESLURM_INVALID_AUTHTYPE_CHANGE: Final = 2030
ESLURM_INVALID_CHECKPOINT_TYPE_CHANGE: Final = 2031
ESLURM_INVALID_SCHEDTYPE_CHANGE: Final = 2032
ESLURM_INVALID_SELECTTYPE_CHANGE: Final = 2033
ESLURM_INVALID_SWITCHTYPE_CHANGE: Final = 2034
ESLURM_FRAGMENTATION: Final = 2035
ESLURM_NOT_SUPPORTED: Final = 2036
ESLURM_DISABLED: Final = 2037
ESLURM_DEPENDENCY: Final = 2038
ESLURM_BATCH_ONLY: Final = 2039
ESLURM_TASKDIST_ARBITRARY_UNSUPPORTED: Final = 2040
ESLURM_TASKDIST_REQUIRES_OVERCOMMIT: Final = 2041
ESLURM_JOB_HELD: Final = 2042
ESLURM_INVALID_CRED_TYPE_CHANGE: Final = 2043
ESLURM_INVALID_TASK_MEMORY: Final = 2044
ESLURM_INVALID_ACCOUNT: Final = 2045
ESLURM_INVALID_PARENT_ACCOUNT: Final = 2046
ESLURM_SAME_PARENT_ACCOUNT: Final = 2047
ESLURM_INVALID_LICENSES: Final = 2048
ESLURM_NEED_RESTART: Final = 2049
ESLURM_ACCOUNTING_POLICY: Final = 2050
ESLURM_INVALID_TIME_LIMIT: Final = 2051
ESLURM_RESERVATION_ACCESS: Final = 2052
ESLURM_RESERVATION_INVALID: Final = 2053
ESLURM_INVALID_TIME_VALUE: Final = 2054
ESLURM_RESERVATION_BUSY: Final = 2055
ESLURM_RESERVATION_NOT_USABLE: Final = 2056
ESLURM_INVALID_WCKEY: Final = 2057
ESLURM_RESERVATION_OVERLAP: Final = 2058
ESLURM_PORTS_BUSY: Final = 2059
ESLURM_PORTS_INVALID: Final = 2060
ESLURM_PROLOG_RUNNING: Final = 2061
ESLURM_NO_STEPS: Final = 2062
ESLURM_INVALID_BLOCK_STATE: Final = 2063
ESLURM_INVALID_BLOCK_LAYOUT: Final = 2064
ESLURM_INVALID_BLOCK_NAME: Final = 2065
ESLURM_INVALID_QOS: Final = 2066
ESLURM_QOS_PREEMPTION_LOOP: Final = 2067
ESLURM_NODE_NOT_AVAIL: Final = 2068
ESLURM_INVALID_CPU_COUNT: Final = 2069
ESLURM_PARTITION_NOT_AVAIL: Final = 2070
ESLURM_CIRCULAR_DEPENDENCY: Final = 2071
ESLURM_INVALID_GRES: Final = 2072
ESLURM_JOB_NOT_PENDING: Final = 2073
ESLURM_QOS_THRES: Final = 2074
ESLURM_PARTITION_IN_USE: Final = 2075
ESLURM_STEP_LIMIT: Final = 2076
ESLURM_JOB_SUSPENDED: Final = 2077
ESLURM_CAN_NOT_START_IMMEDIATELY: Final = 2078
ESLURM_INTERCONNECT_BUSY: Final = 2079
ESLURM_RESERVATION_EMPTY: Final = 2080
ESLURM_INVALID_ARRAY: Final = 2081
ESLURM_RESERVATION_NAME_DUP: Final = 2082
ESLURM_JOB_STARTED: Final = 2083
ESLURM_JOB_FINISHED: Final = 2084
ESLURM_JOB_NOT_RUNNING: Final = 2085
ESLURM_JOB_NOT_PENDING_NOR_RUNNING: Final = 2086
ESLURM_JOB_NOT_SUSPENDED: Final = 2087
ESLURM_JOB_NOT_FINISHED: Final = 2088
ESLURM_TRIGGER_DUP: Final = 2089
ESLURM_INTERNAL: Final = 2090
ESLURM_INVALID_BURST_BUFFER_CHANGE: Final = 2091
ESLURM_BURST_BUFFER_PERMISSION: Final = 2092
ESLURM_BURST_BUFFER_LIMIT: Final = 2093
ESLURM_INVALID_BURST_BUFFER_REQUEST: Final = 2094
ESLURM_PRIO_RESET_FAIL: Final = 2095
ESLURM_POWER_NOT_AVAIL: Final = 2096
ESLURM_POWER_RESERVED: Final = 2097
ESLURM_INVALID_POWERCAP: Final = 2098
ESLURM_INVALID_MCS_LABEL: Final = 2099
ESLURM_BURST_BUFFER_WAIT: Final = 2100
ESLURM_PARTITION_DOWN: Final = 2101
ESLURM_DUPLICATE_GRES: Final = 2102
ESLURM_JOB_SETTING_DB_INX: Final = 2103
ESLURM_RSV_ALREADY_STARTED: Final = 2104
ESLURM_SUBMISSIONS_DISABLED: Final = 2105
ESLURM_NOT_PACK_JOB: Final = 2106
ESLURM_NOT_PACK_JOB_LEADER: Final = 2107
ESLURM_NOT_PACK_WHOLE: Final = 2108
ESLURM_CORE_RESERVATION_UPDATE: Final = 2109
ESLURM_DUPLICATE_STEP_ID: Final = 2110
ESLURM_INVALID_CORE_CNT: Final = 2111
ESLURM_X11_NOT_AVAIL: Final = 2112
ESLURM_GROUP_ID_MISSING: Final = 2113
ESLURM_BATCH_CONSTRAINT: Final = 2114
ESLURM_INVALID_TRES: Final = 2115
ESLURM_INVALID_TRES_BILLING_WEIGHTS: Final = 2116
ESLURM_INVALID_JOB_DEFAULTS: Final = 2117
ESLURM_RESERVATION_MAINT: Final = 2118
ESLURM_INVALID_GRES_TYPE: Final = 2119
ESLURM_REBOOT_IN_PROGRESS: Final = 2120
ESLURM_MULTI_KNL_CONSTRAINT: Final = 2121
ESLURM_UNSUPPORTED_GRES: Final = 2122
ESLURM_INVALID_NICE: Final = 2123
ESLURM_INVALID_TIME_MIN_LIMIT: Final = 2124

ESLURM_SWITCH_MIN: Final = 3000
ESLURM_SWITCH_MAX: Final = 3099
ESLURM_JOBCOMP_MIN: Final = 3100
ESLURM_JOBCOMP_MAX: Final = 3199
ESLURM_SCHED_MIN: Final = 3200
ESLURM_SCHED_MAX: Final = 3299

ESLURMD_PIPE_ERROR_ON_TASK_SPAWN: Final = 4000
ESLURMD_KILL_TASK_FAILED: Final = 4001
ESLURMD_KILL_JOB_ALREADY_COMPLETE: Final = 4002
ESLURMD_INVALID_ACCT_FREQ: Final = 4003
ESLURMD_INVALID_JOB_CREDENTIAL: Final = 4004
ESLURMD_UID_NOT_FOUND: Final = 4005
ESLURMD_GID_NOT_FOUND: Final = 4006
ESLURMD_CREDENTIAL_EXPIRED: Final = 4007
ESLURMD_CREDENTIAL_REVOKED: Final = 4008
ESLURMD_CREDENTIAL_REPLAYED: Final = 4009
ESLURMD_CREATE_BATCH_DIR_ERROR: Final = 4010
ESLURMD_MODIFY_BATCH_DIR_ERROR: Final = 4011
ESLURMD_CREATE_BATCH_SCRIPT_ERROR: Final = 4012
ESLURMD_MODIFY_BATCH_SCRIPT_ERROR: Final = 4013
ESLURMD_SETUP_ENVIRONMENT_ERROR: Final = 4014
ESLURMD_SHARED_MEMORY_ERROR: Final = 4015
ESLURMD_SET_UID_OR_GID_ERROR: Final = 4016
ESLURMD_SET_SID_ERROR: Final = 4017
ESLURMD_CANNOT_SPAWN_IO_THREAD: Final = 4018
ESLURMD_FORK_FAILED: Final = 4019
ESLURMD_EXECVE_FAILED: Final = 4020
ESLURMD_IO_ERROR: Final = 4021
ESLURMD_PROLOG_FAILED: Final = 4022
ESLURMD_EPILOG_FAILED: Final = 4023
ESLURMD_SESSION_KILLED: Final = 4024
ESLURMD_TOOMANYSTEPS: Final = 4025
ESLURMD_STEP_EXISTS: Final = 4026
ESLURMD_JOB_NOTRUNNING: Final = 4027
ESLURMD_STEP_SUSPENDED: Final = 4028
ESLURMD_STEP_NOTSUSPENDED: Final = 4029
ESLURMD_INVALID_SOCKET_NAME_LEN: Final = 4030

ESCRIPT_CHDIR_FAILED: Final = 4100
ESCRIPT_OPEN_OUTPUT_FAILED: Final = 4101
ESCRIPT_NON_ZERO_RETURN: Final = 4102

SLURM_PROTOCOL_SOCKET_IMPL_ZERO_RECV_LENGTH: Final = 5000
SLURM_PROTOCOL_SOCKET_IMPL_NEGATIVE_RECV_LENGTH: Final = 5001
SLURM_PROTOCOL_SOCKET_IMPL_NOT_ALL_DATA_SENT: Final = 5002
ESLURM_PROTOCOL_INCOMPLETE_PACKET: Final = 5003
SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT: Final = 5004
SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT: Final = 5005

ESLURM_AUTH_CRED_INVALID: Final = 6000
ESLURM_AUTH_FOPEN_ERROR: Final = 6001
ESLURM_AUTH_NET_ERROR: Final = 6002
ESLURM_AUTH_UNABLE_TO_SIGN: Final = 6003
ESLURM_AUTH_BADARG: Final = 6004
ESLURM_AUTH_MEMORY: Final = 6005
ESLURM_AUTH_INVALID: Final = 6006
ESLURM_AUTH_UNPACK: Final = 6007

ESLURM_DB_CONNECTION: Final = 7000
ESLURM_JOBS_RUNNING_ON_ASSOC: Final = 7001
ESLURM_CLUSTER_DELETED: Final = 7002
ESLURM_ONE_CHANGE: Final = 7003
ESLURM_BAD_NAME: Final = 7004
ESLURM_OVER_ALLOCATE: Final = 7005
ESLURM_RESULT_TOO_LARGE: Final = 7006
ESLURM_DB_QUERY_TOO_WIDE: Final = 7007

_RANGE_BOUNDS: Final = frozenset(
    (
        "ESLURM_SWITCH_MIN",
        "ESLURM_SWITCH_MAX",
        "ESLURM_JOBCOMP_MIN",
        "ESLURM_JOBCOMP_MAX",
        "ESLURM_SCHED_MIN",
        "ESLURM_SCHED_MAX",
    )
)
_NUMBERS: Final[dict[str, int]] = {
    name: value
    for name, value in tuple(globals().items())
    if isinstance(value, int) and not name.startswith("_")
}
_NAMES: Final[dict[int, str]] = {
    # Reversed, so that of two names for one number the first one above wins.
    value: name
    for name, value in reversed(_NUMBERS.items())
    if name not in _RANGE_BOUNDS
}

ERRNO_NAMES: Final[tuple[str, ...]] = tuple(_NUMBERS)
"""Every name of an error that `errno_number` knows."""

_TEXTS: Final[dict[int, str]] = {
    SLURM_SUCCESS: "No error",
    SLURM_ERROR: "Unspecified error",
    EPERM: "Operation not permitted",
    ENOENT: "No such file or directory",
    ESRCH: "No such process",
    EINTR: "Interrupted system call",
    EIO: "Input/output error",
    ENOEXEC: "Exec format error",
    EAGAIN: "Resource temporarily unavailable",
    ENOMEM: "Cannot allocate memory",
    EACCES: "Permission denied",
    EBUSY: "Device or resource busy",
    EEXIST: "File exists",
    ENOTDIR: "Not a directory",
    EISDIR: "Is a directory",
    EINVAL: "Invalid argument",
    ENOSPC: "No space left on device",
    EROFS: "Read-only file system",
    ERANGE: "Numerical result out of range",
    ENOSYS: "Function not implemented",
    ECONNRESET: "Connection reset by peer",
    ETIMEDOUT: "Connection timed out",
    ECONNREFUSED: "Connection refused",
    EHOSTUNREACH: "No route to host",
    EALREADY: "Operation already in progress",
    SLURM_UNEXPECTED_MSG_ERROR: "A message of another type was expected",
    SLURM_PROTOCOL_VERSION_ERROR: "The peer speaks an incompatible protocol version",
    SLURM_PROTOCOL_INSANE_MSG_LENGTH: "Message length cannot be right",
    SLURM_PLUGIN_NAME_INVALID: "Plugin initialization failed",
    SLURM_NO_CHANGE_IN_DATA: "Nothing has changed since the last request",
    ESLURM_INVALID_PARTITION_NAME: "Invalid partition name specified",
    ESLURM_ACCESS_DENIED: "Access/permission denied",
    ESLURM_JOB_MISSING_REQUIRED_PARTITION_GROUP: "User's group not permitted to use this partition",
    ESLURM_TOO_MANY_REQUESTED_CPUS: "More processors requested than permitted",
    ESLURM_INVALID_NODE_COUNT: "Node count specification invalid",
    ESLURM_JOB_SCRIPT_MISSING: "Batch job has no script",
    SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR: (
        "Unable to contact slurm controller (connect failure)"
    ),
    SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT: "Socket timed out on send/recv operation",
    ESLURM_USER_ID_MISSING: "Invalid user id",
    ESLURM_DUPLICATE_JOB_ID: "Duplicate job id",
    ESLURM_PATHNAME_TOO_LONG: "Pathname of a file, directory or other parameter too long",
    ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE: "Requested node configuration is not available",
    ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE: "Requested partition configuration not available now",
    ESLURM_NODES_BUSY: "Requested nodes are busy",
    ESLURM_INVALID_JOB_ID: "Invalid job id specified",
    ESLURM_INVALID_NODE_NAME: "Invalid node name specified",
    ESLURM_TRANSITION_STATE_NO_UPDATE: "Job can not be altered now, try again later",
    ESLURM_ALREADY_DONE: "Job/step already completing or completed",
    ESLURM_INTERCONNECT_FAILURE: "Error configuring interconnect",
    ESLURM_BAD_DIST: "Task distribution cannot be laid out",
    ESLURM_JOB_PENDING: "Job is pending execution",
    ESLURM_BAD_TASK_COUNT: "Task count specification invalid",
    ESLURM_IN_STANDBY_MODE: "This slurmctld is a backup in standby",
    ESLURM_INVALID_NODE_STATE: "Invalid node state specified",
    ESLURM_INVALID_FEATURE: "Invalid feature specification",
    ESLURM_INVALID_AUTHTYPE_CHANGE: "A new AuthType needs a restart",
    ESLURM_INVALID_CHECKPOINT_TYPE_CHANGE: "A new CheckpointType needs a restart",
    ESLURM_INVALID_SCHEDTYPE_CHANGE: "A new SchedulerType needs a restart",
    ESLURM_INVALID_SELECTTYPE_CHANGE: "A new SelectType needs a restart",
    ESLURM_INVALID_SWITCHTYPE_CHANGE: "A new SwitchType needs a restart",
    ESLURM_FRAGMENTATION: "Not started now: completing jobs would leave nodes fragmented",
    ESLURM_NOT_SUPPORTED: "Requested operation not supported on this system",
    ESLURM_DISABLED: "Requested operation is presently disabled",
    ESLURM_DEPENDENCY: "Job dependency problem",
    ESLURM_BATCH_ONLY: "Only batch jobs are accepted here",
    ESLURM_JOB_HELD: "Job is held",
    ESLURM_INVALID_LICENSES: "Invalid license specification",
    ESLURM_ACCOUNTING_POLICY: (
        "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
    ),
    ESLURM_INVALID_TIME_LIMIT: "Requested time limit is invalid (missing or exceeds some limit)",
    ESLURM_RESERVATION_ACCESS: "Access denied to requested reservation",
    ESLURM_RESERVATION_INVALID: "Requested reservation is invalid",
    ESLURM_INVALID_TIME_VALUE: "Invalid time specified",
    ESLURM_RESERVATION_BUSY: "Requested reservation is in use",
    ESLURM_RESERVATION_NOT_USABLE: "Requested reservation not usable now",
    ESLURM_RESERVATION_OVERLAP: "Requested reservation overlaps with another reservation",
    ESLURM_PORTS_BUSY: "Required ports are in use",
    ESLURM_PROLOG_RUNNING: "SlurmctldProlog is still running",
    ESLURM_NO_STEPS: "Job allocation takes no steps",
    ESLURM_INVALID_QOS: "Invalid qos specification",
    ESLURM_NODE_NOT_AVAIL: "Required node not available (down, drained or reserved)",
    ESLURM_PARTITION_NOT_AVAIL: "Required partition not available (inactive or drain)",
    ESLURM_CIRCULAR_DEPENDENCY: "Circular job dependency",
    ESLURM_INVALID_GRES: "Invalid generic resource (gres) specification",
    ESLURM_JOB_NOT_PENDING: "Job is no longer pending execution",
    # Slurm's own grammar, as recorded.
    ESLURM_JOB_SUSPENDED: "Job is current suspended, requested operation disabled",
    ESLURM_CAN_NOT_START_IMMEDIATELY: "Job can not start immediately",
    ESLURM_INTERCONNECT_BUSY: "Switch resources currently not available",
    ESLURM_PARTITION_IN_USE: "Partition is in use",
    ESLURM_RESERVATION_EMPTY: "Reservation request lacks users or accounts",
    ESLURM_RESERVATION_NAME_DUP: "Duplicate reservation name",
    ESLURM_INVALID_ARRAY: "Invalid job array specification",
    ESLURM_JOB_STARTED: "Job has already started",
    ESLURM_JOB_FINISHED: "Job has already finished",
    ESLURM_JOB_NOT_RUNNING: "Job is not running",
    ESLURM_JOB_NOT_FINISHED: "Job is not finished",
    ESLURM_INTERNAL: "Slurm met an internal error",
    ESLURM_INVALID_BURST_BUFFER_REQUEST: "Burst Buffer request invalid",
    ESLURM_BURST_BUFFER_PERMISSION: "Burst Buffer permission denied",
    ESLURM_BURST_BUFFER_LIMIT: "Burst Buffer resource limit exceeded",
    ESLURM_BURST_BUFFER_WAIT: "Waiting for burst buffer",
    ESLURM_PARTITION_DOWN: "Partition is down",
    ESLURM_INVALID_NICE: "Invalid --nice value",
    ESLURMD_KILL_JOB_ALREADY_COMPLETE: "Job to kill has already completed",
    ESLURMD_CREDENTIAL_EXPIRED: "Job credential expired",
    ESLURMD_CREDENTIAL_REVOKED: "Job credential revoked",
    ESLURMD_CREDENTIAL_REPLAYED: "Job credential used before",
    ESLURMD_PROLOG_FAILED: "Job prolog failed",
    ESLURMD_EPILOG_FAILED: "Job epilog failed",
    ESLURMD_TOOMANYSTEPS: "Too many job steps on this node",
    ESLURMD_STEP_EXISTS: "Job step is on this node already",
    ESLURMD_JOB_NOTRUNNING: "Job step not running",
    ESLURMD_STEP_SUSPENDED: "Job step is suspended",
    ESLURMD_STEP_NOTSUSPENDED: "Job step is not suspended",
    ESCRIPT_CHDIR_FAILED: "Could not change to the work directory",
    ESCRIPT_OPEN_OUTPUT_FAILED: "Could not open the output file",
    ESCRIPT_NON_ZERO_RETURN: "Batch script ended with a non-zero status",
    ESLURM_PROTOCOL_INCOMPLETE_PACKET: "Packed data ends too early or is damaged",
}

_DECIMAL: Final = re.compile(r"-?[0-9]{1,10}")
_NAME_PREFIX: Final = re.compile(r"(E?SLURM(D|CTLD)?|ESCRIPT)_")
_INT32_MIN: Final = -(2**31)
_INT32_MAX: Final = 2**31 - 1


def errno_name(number: int) -> str:
    """Return Slurm's name of *number*, or the number itself as text when it has none."""
    return _NAMES.get(number) or str(number)


def errno_number(name_or_number: str | int) -> int:
    """Return the number behind a name such as ``ESLURM_DISABLED``.

    A number, also one written as text, is taken as it is: plugins may have numbers of their own.

    Raises:
        ValueError: The name is not known, or the number is no 32-bit one.
    """
    if isinstance(name_or_number, str):
        found = _NUMBERS.get(name_or_number.strip())
        if found is not None:
            return found
        number = _decimal(name_or_number)
    else:
        number = name_or_number
    if not _INT32_MIN <= number <= _INT32_MAX:
        msg = f"expected an error number of 32 bits, got {number}"
        raise ValueError(msg)
    return int(number)


def _decimal(text: str) -> int:
    """Return the number that *text* spells, or raise with the nearest error name."""
    stripped = text.strip()
    if _DECIMAL.fullmatch(stripped):
        return int(stripped)
    near = difflib.get_close_matches(stripped.upper(), _NUMBERS, n=1)
    hint = f"did you mean {near[0]}?" if near else "give its name or number, such as EPERM or 1"
    msg = f"{text!r} is not an error Slurm knows; {hint}"
    raise ValueError(msg)


def slurm_strerror(number: int) -> str:
    """Return what Slurm prints for *number*.

    A number that has a name but no text of its own is described by the words of its name.
    """
    text = _TEXTS.get(number)
    if text is not None:
        return text
    name = _NAMES.get(number)
    if name is None:
        return f"Unknown error {number}"
    return _NAME_PREFIX.sub("", name).replace("_", " ").capitalize()


class SlurmError(Exception):
    """A call failed in the way Slurm knows: with an error number.

    Plugins raise it to fail a call; it never means that the simulator is broken.

    Attributes:
        errno: One of this module's numbers, or one of a plugin's own.
        message: Words to add to what the number says; empty for none.
    """

    errno: int
    message: str

    def __init__(self, errno: int, message: str = "") -> None:
        """Keep the number and the words; a name in place of the number is a mistake."""
        if not isinstance(errno, int):
            msg = (
                f"SlurmError takes an error number first, such as ESLURM_DISABLED, then a message;"
                f" got {errno!r}"
            )
            raise TypeError(msg)
        super().__init__(errno, message)
        self.errno = errno
        self.message = message

    def __str__(self) -> str:
        """Return the message, or what the number says, with the number's name."""
        return f"{self.message or slurm_strerror(self.errno)} ({errno_name(self.errno)})"
