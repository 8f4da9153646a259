"""The signals of Linux: their numbers and the names Slurm and sh know them by."""

from __future__ import annotations

import difflib

EXIT_TRAP = 0
"""What ``trap … EXIT`` names: no signal, but the end of the script."""

ERR_TRAP = -1
"""What ``trap … ERR`` names: no signal, but a command that fails."""

_NAMES = (
    *("HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2"),
    *("PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG"),
    *("XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS"),
)
_REALTIME_FIRST = 34
_REALTIME_LAST = 64
_REALTIME_HALF = 49


def _realtime_name(number: int) -> str:
    """Name a real-time signal by the nearer end of their range, as ``kill -l`` does."""
    if number <= _REALTIME_HALF:
        offset = number - _REALTIME_FIRST
        return f"RTMIN+{offset}" if offset else "RTMIN"
    offset = _REALTIME_LAST - number
    return f"RTMAX-{offset}" if offset else "RTMAX"


_NAME_OF = dict(enumerate(_NAMES, start=1)) | {
    number: _realtime_name(number) for number in range(_REALTIME_FIRST, _REALTIME_LAST + 1)
}
_NUMBER_OF = {name: number for number, name in _NAME_OF.items()} | {
    "CLD": 17,
    "IOT": 6,
    "POLL": 29,
}

SIGHUP = _NUMBER_OF["HUP"]
SIGINT = _NUMBER_OF["INT"]
SIGQUIT = _NUMBER_OF["QUIT"]
SIGKILL = _NUMBER_OF["KILL"]
SIGUSR1 = _NUMBER_OF["USR1"]
SIGSEGV = _NUMBER_OF["SEGV"]
SIGUSR2 = _NUMBER_OF["USR2"]
SIGTERM = _NUMBER_OF["TERM"]
SIGCHLD = _NUMBER_OF["CHLD"]
SIGCONT = _NUMBER_OF["CONT"]
SIGSTOP = _NUMBER_OF["STOP"]
SIGTSTP = _NUMBER_OF["TSTP"]

UNCATCHABLE = (SIGKILL, SIGSTOP)
"""The signals a process can neither trap nor ignore."""


class SignalError(ValueError):
    """Say that a word names no signal, and which one it may have meant."""


def signal_number(name: str) -> int:
    """Return the number of the signal *name*: ``TERM``, ``SIGTERM``, ``term`` or ``15``.

    Raises:
        SignalError: no signal has this name or number.
    """
    if name.isascii() and name.isdigit():
        number = int(name[:4])
        if number not in _NAME_OF:
            raise SignalError(
                f"no signal has the number {name}: they go from 1 to {_REALTIME_LAST}"
            )
        return number
    word = name.upper().removeprefix("SIG")
    if word in _NUMBER_OF:
        return _NUMBER_OF[word]
    near = difflib.get_close_matches(word, _NUMBER_OF, n=1)
    hint = f": did you mean {near[0]}?" if near else ""
    raise SignalError(f'no signal is called "{name}"{hint}')


def signal_name(number: int) -> str:
    """Return the name of signal *number* without its SIG; a trap knows EXIT and ERR besides.

    Raises:
        SignalError: no signal has this number.
    """
    if number == EXIT_TRAP:
        return "EXIT"
    if number == ERR_TRAP:
        return "ERR"
    if number not in _NAME_OF:
        raise SignalError(f"no signal has the number {number}: they go from 1 to {_REALTIME_LAST}")
    return _NAME_OF[number]


def trap_number(name: str) -> int:
    """Return what a trap's word *name* stands for: a signal's number, 0 for EXIT, -1 for ERR.

    Raises:
        SignalError: the word is none of these.
    """
    if name.upper() == "EXIT" or name == "0":
        return EXIT_TRAP
    if name.upper() == "ERR":
        return ERR_TRAP
    return signal_number(name)
