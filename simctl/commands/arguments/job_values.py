"""Values of the options of sbatch, salloc and srun, read from text."""

import re
from typing import Final

import attrs

from simctl.commands.arguments.options import InvalidGresError, InvalidMomentError
from simctl.stepd.signals import SignalError, signal_number
from simctl.wire.hostlist import HostlistError, expand
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.layout import Distribution
from simctl.wire.resources import parse_gres
from simctl.wire.time_limits import parse_time_limit_min
from simctl.wire.times import parse_moment


def node_count(value: str) -> tuple[int, int]:
    """Read ``2`` or ``2-4``, also ``1k``: the least and the greatest number of nodes.

    A job of 0 nodes has a burst buffer alone.
    """
    first, dash, second = value.partition("-")
    least = _nodes(first)
    # Slurm takes nothing before the dash for 1, and nothing behind it for what cannot be.
    most = _nodes(second) if dash else least
    if dash and least < 0:
        least = 1
    if least < 0 or (dash and not most):
        raise ValueError(f'"{value}" is not a valid node count')
    if most < least:
        raise ValueError(f"Maximum node count {most} is less than minimum node count {least}")
    return least, most


def _nodes(word: str) -> int:
    """Read a number of nodes; -1 where nothing is said."""
    match = re.fullmatch(r"\s*(\d+)([kKmM]?)\s*", word)
    if match is None:
        if not word.strip():
            return -1
        raise ValueError(f'"{word}" is not a valid node count')
    return int(match[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[match[2].lower()]


def time_limit(value: str) -> int:
    """Read a time limit; 0 stands for none."""
    try:
        minutes = parse_time_limit_min(value)
    except ValueError:
        raise ValueError("Invalid --time specification") from None
    return minutes or INFINITE


def least_time(value: str) -> int:
    """Read down to which time a limit may be lowered; 0 for not at all."""
    try:
        minutes = parse_time_limit_min(value)
    except ValueError:
        minutes = INFINITE
    if minutes == INFINITE:
        raise ValueError("Invalid --time-min specification")
    return minutes


def login(value: str) -> str:
    """Read how to get the environment of a login: seconds to wait, then ``S`` or ``L``."""
    if not re.fullmatch(r"\d*[sSlL]?", value):
        raise ValueError("Invalid --get-user-env specification")
    return value


def interval(value: str) -> int:
    """Read how far apart checkpoints are, in minutes; 0 stands for none."""
    try:
        minutes = parse_time_limit_min(value)
    except ValueError:
        raise ValueError from None
    if minutes == INFINITE:
        raise ValueError
    return minutes


def hosts(value: str) -> tuple[str, ...]:
    """Read a list of nodes."""
    try:
        return expand(value)
    except HostlistError:
        # As a name it is unknown to the controller, which says so.
        return (value,)


def distribution(value: str) -> tuple[Distribution, int]:
    """Read ``block``, ``cyclic``, ``arbitrary`` or ``plane=N``; the rest concerns sockets."""
    levels, _, packing = value.lower().partition(",")
    if levels in ("pack", "nopack") and not packing:
        return Distribution.UNKNOWN, 0
    word, *rest = levels.split(":")
    match = re.fullmatch(r"plane=(\d+)", word)
    if match is not None and int(match[1]):
        return Distribution.PLANE, int(match[1])
    found = next((how for name, how in _LEVELS.items() if name.startswith(word)), None)
    wrong = len(rest) > 2 or any(each not in _INNER for each in rest)  # noqa: PLR2004 - sockets, cores
    if not word or found is None or wrong or packing not in ("", "pack", "nopack"):
        raise ValueError("Invalid --distribution specification")
    return found, 0


_LEVELS: Final = {
    "cyclic": Distribution.CYCLIC,
    "block": Distribution.BLOCK,
    "*": Distribution.BLOCK,
    "arbitrary": Distribution.ARBITRARY,
    "hostfile": Distribution.ARBITRARY,
}
_INNER: Final = ("block", "cyclic", "fcyclic", "*")


def memory(value: str) -> int:
    """Read megabytes, or a number with K, M, G or T; what is less than a megabyte counts as one."""
    match = re.fullmatch(r"(\d+)([KMGT]?)B?", value.upper())
    if match is None:
        raise ValueError
    units = {"K": 1, "": 1 << 10, "M": 1 << 10, "G": 1 << 20, "T": 1 << 30}
    return -(-int(match[1]) * units[match[2]] // 1024)


class AskedGres(dict[str, int]):
    """Generic resources of an option; `text` says whether a count was given, and 0 of what."""

    text: str = ""


def gres(value: str) -> AskedGres:
    """Read generic resources, such as ``gpu:2``."""
    if value.lower() == "none":
        return AskedGres()
    try:
        found = AskedGres(parse_gres(value))
    except ValueError:
        raise InvalidGresError from None
    found.text = ",".join(each.removeprefix("gres:") for each in value.split(",") if each)
    return found


@attrs.frozen
class WarningSpec:
    """What ``--signal`` asks for: which signal, how many seconds before the limit, to whom."""

    signal: int
    time_s: int
    batch: bool


def warning(value: str) -> WarningSpec:
    """Read ``USR1``, ``USR1@120`` or ``B:USR1@120``."""
    match = re.fullmatch(r"(?:([A-Za-z]+):)?(\w+)(?:@(\d{1,5}))?", value)
    if match is None or int(match[3] or 0) > _LONGEST_WARNING_S:
        raise ValueError
    who = (match[1] or "").upper()
    if "R" in who:
        raise ValueError("--signal=R: concerns reservations, which simctl does not simulate yet")
    if who not in ("", "B"):
        raise ValueError
    try:
        number = signal_number(match[2])
    except SignalError:
        raise ValueError from None
    return WarningSpec(signal=number, time_s=int(match[3] or 60), batch=who == "B")


_LONGEST_WARNING_S: Final = 0xFFFF


def moment(value: str) -> str:
    """Take a moment as it is if there can be such a one."""
    try:
        parse_moment(value, 0)
    except (ValueError, OverflowError):
        raise InvalidMomentError from None
    return value


def constraint(value: str) -> str:
    """Take features of nodes; how many nodes of each, and nodes alike, are not simulated."""
    if any(letter in value for letter in "*[]"):
        raise ValueError(
            "--constraint with counts or brackets is an option of Slurm's that simctl does not "
            "simulate yet"
        )
    return value


def exclusive(value: str) -> str:
    """Read for whom nodes are kept: the job alone, of which the others are not simulated."""
    word = value.lower()
    if word in ("user", "mcs"):
        raise ValueError(
            f"--exclusive={word} is an option of Slurm's that simctl does not simulate yet"
        )
    if word != "exclusive":
        raise ValueError
    return word


def hint(value: str) -> str:
    """Read what a job is bound by; every node has one thread a core, so that most changes nothing.

    ``memory_bound`` would take one core a socket.
    """
    word = value.lower()
    if word == "memory_bound":
        raise ValueError(
            "--hint=memory_bound is an option of Slurm's that simctl does not simulate yet"
        )
    if word not in ("compute_bound", "multithread", "nomultithread"):
        raise ValueError("Invalid --hint specification")
    return word


def one_thread(value: str) -> str:
    """Read how many threads of a core are used, of which there is one."""
    if not value.isdecimal() or not int(value):
        raise ValueError("Invalid --threads-per-core specification")
    if int(value) > 1:
        raise ValueError(
            "--threads-per-core=2 is an option of Slurm's that simctl does not simulate yet"
        )
    return str(int(value))


def memory_binding(value: str) -> str:
    """Read how tasks are bound to memory, which binds nothing here."""
    words = re.sub("(map|mask)_mem:.*", "none", value.lower()).split(",")
    if not {*words} <= _MEMORY_BINDINGS:
        raise ValueError(
            "Invalid --mem-bind specification; known are none, rank, local, map_mem:LIST,"
            " mask_mem:LIST, and before them quiet, verbose, prefer, sort, nosort"
        )
    return value


_MEMORY_BINDINGS: Final = frozenset(
    "q quiet v verbose no none rank local prefer sort nosort".split()
)


def switches(value: str) -> str:
    """Read on how few switches the nodes are to be; there is one."""
    count, at, longest = value.partition("@")
    if not count.isdecimal():
        raise ValueError("Invalid --switches specification")
    if at:
        parse_time_limit_min(longest)
    return value


def zero_or_one(value: str) -> str:
    """Read whether all nodes are waited for, which are ready when they are given."""
    if value not in ("0", "1"):
        raise ValueError("Invalid --wait-all-nodes specification")
    return value


def priority(value: str) -> int:
    """Read a priority as Slurm does: what is no number counts as 0."""
    if value.lower() == "top":
        raise ValueError("--priority=top is an option of Slurm's that simctl does not simulate yet")
    match = re.match(r"\s*([-+]?\d+)", value)
    number = int(match[1]) if match is not None else 0
    if number < 0:
        raise ValueError("Priority must be >= 0")
    if number >= NO_VAL:
        raise ValueError(f"Priority must be < {NO_VAL}")
    return number


MAIL_TYPES: Final = (
    *("NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT"),
    *("TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS"),
)


def mail_type(value: str) -> tuple[str, ...]:
    """Read what mail would be sent for; none is sent."""
    words = tuple(word.upper() for word in value.split(","))
    if any(word not in MAIL_TYPES for word in words):
        raise ValueError
    return words


def open_mode(value: str) -> str:
    """Read whether output is added to files or replaces them: ``append``, ``truncate``."""
    word = value.lower()
    for mode in ("append", "truncate"):
        if word and mode.startswith(word):
            return mode
    raise ValueError


def gpus(value: str) -> tuple[str, int]:
    """Read how many gpus, and of which type, if any: ``2``, ``gpu-type:2``."""
    match = re.fullmatch(r"(?:([A-Za-z]\w*)(?::|$))?(\d*)", value)
    if match is None or not value:
        raise InvalidGresError
    return f"gpu:{match[1]}" if match[1] else "gpu", int(match[2] or 1)


_RLIMITS: Final = frozenset(
    "ALL NONE AS CORE CPU DATA FSIZE MEMLOCK NOFILE NPROC RSS STACK".split()
)


def rlimits(value: str) -> str:
    """Read which limits of the submitting shell a job is to have, which bound nothing here."""
    if not {each.removeprefix("RLIMIT_") for each in value.upper().split(",")} <= _RLIMITS:
        raise ValueError(f"--propagate: {value}: no names of limits")
    return value


def gpus_text(value: tuple[str, int]) -> str:
    """Return gpus as they were asked for."""
    kind, count = value
    return f"{kind.partition(':')[2]}:{count}".removeprefix(":")


def clusters(value: str) -> tuple[str, ...]:
    """Read names of clusters."""
    return tuple(filter(None, value.split(",")))


@attrs.frozen
class Export:
    """What ``--export`` lets a job see of the environment, and what it sets beside."""

    text: str
    everything: bool
    names: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()

    def of(self, env: dict[str, str]) -> dict[str, str]:
        """Return the part of an environment that is handed on; Slurm's variables always are."""
        kept = {
            name: value
            for name, value in env.items()
            if self.everything or name in self.names or name.startswith(("SLURM_", "SPANK_"))
        }
        if not self.everything and self.text != "NIL":
            # What a login shell gives to every user.
            kept |= {name: env[name] for name in _OF_A_LOGIN if name in env}
        return {**kept, **dict(self.values)}


_OF_A_LOGIN: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "USER")


def export(value: str) -> Export:
    """Read ``ALL``, ``NONE``, ``NIL`` or names and values: ``ALL,A=1``, ``HOME,B=2``."""
    words = value.split(",")
    if value.upper() in ("NONE", "NIL"):
        return Export(value.upper(), everything=False)
    return Export(
        value,
        everything="ALL" in (word.upper() for word in words),
        names=tuple(word for word in words if "=" not in word and word.upper() != "ALL"),
        values=tuple(
            (name, text) for name, sep, text in (word.partition("=") for word in words) if sep
        ),
    )
