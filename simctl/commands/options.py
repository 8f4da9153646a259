"""Command lines as Slurm reads them: known options, known ones that are not built, unknown ones."""

import getopt
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import attrs

from simctl.stepd.signals import SignalError, signal_number
from simctl.wire.conf import parse_time_limit_min
from simctl.wire.hostlist import HostlistError, expand
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.layout import Distribution
from simctl.wire.resources import parse_gres
from simctl.wire.times import parse_moment

BAD_OPTION: Final = 255
"""Exit status where an option or its value does not parse."""


INVALID_GRES: Final = "Invalid generic resource (gres) specification"


class UsageError(Exception):
    """A command line is wrong; `lines` go to standard error, `status` is the exit status."""

    def __init__(self, status: int, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.status = status
        self.lines = lines


@attrs.frozen(kw_only=True)
class Option:
    """One option: its long name, its letter, and what reads its value (None for a flag).

    A value that is `optional` stands where none is attached to the option.
    """

    long: str
    short: str = ""
    read: Callable[[str], Any] | None = None
    optional: str = ""


@attrs.frozen(kw_only=True)
class Grammar:
    """What a command understands; `unbuilt` are options of Slurm's that simctl refuses by name."""

    command: str
    options: tuple[Option, ...]
    unbuilt: Collection[str]
    bad_status: int = BAD_OPTION
    permutes: bool = False
    """Options may stand behind words."""

    def parse(self, argv: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """Return the options given, by long name, and the words after them.

        Raises:
            UsageError: With what Slurm's command would print.
        """
        letters = {option.short: option for option in self.options if option.short}
        names = {option.long: option for option in self.options}
        shorts = "".join(
            letter + (":" if option.read is not None else "") for letter, option in letters.items()
        )
        longs = [name + ("=" if option.read is not None else "") for name, option in names.items()]
        self._refuse_unbuilt(argv)
        split = getopt.gnu_getopt if self.permutes else getopt.getopt
        try:
            pairs, rest = split(self._completed(argv), shorts, longs)
        except getopt.GetoptError as error:
            if error.opt in self.unbuilt:
                raise self._not_built(error.opt) from error
            raise self._usage(error) from error
        values: dict[str, Any] = {}
        for flag, text in pairs:
            option = names[flag[2:]] if flag.startswith("--") else letters[flag[1:]]
            values[option.long] = True if option.read is None else self._read(option, text)
        return values, rest

    def _not_built(self, name: str) -> UsageError:
        shown = f"--{name}" if len(name) > 1 else f"-{name}"
        return UsageError(
            self.bad_status,
            f"{self.command}: error: {shown} is an option of Slurm's that simctl does "
            "not simulate yet",
        )

    def _completed(self, argv: Sequence[str]) -> list[str]:
        """Return the words with the values that stand for optional ones left out."""
        done: list[str] = []
        words = iter(argv)
        for word in words:
            plain = word == "-" or not word.startswith("-")
            if word == "--" or (plain and not self.permutes):
                return [*done, word, *words]
            if plain:
                done.append(word)
                continue
            if word.startswith("--"):
                option = next((one for one in self.options if one.long == word[2:]), None)
            else:
                word, option = self._letter_with_value(word)  # noqa: PLW2901 - the word as completed
            if option is not None and option.optional:
                done.append(f"{word}={option.optional}" if word.startswith("--") else word)
                continue
            done.append(word)
            if option is not None and option.read is not None:
                # The next word is its value.
                done += [each for each in (next(words, None),) if each is not None]
        return done

    def _letter_with_value(self, word: str) -> tuple[str, Option | None]:
        """Return letters as they are meant, and the option among them that waits for a value."""
        for place, letter in enumerate(word[1:], start=1):
            option = next((one for one in self.options if one.short == letter), None)
            if option is None or (option.read is not None and not option.optional):
                return word, option if place == len(word) - 1 else None
            if option.optional:
                return word if word[place + 1 :] else word + option.optional, option
        return word, None

    def _refuse_unbuilt(self, argv: Sequence[str]) -> None:
        for word in argv:
            if word == "--" or not word.startswith("-"):
                return
            name = word[2:].partition("=")[0] if word.startswith("--") else word[1:2]
            if name in self.unbuilt:
                raise self._not_built(name)
            option = next((one for one in self.options if name in (one.long, one.short)), None)
            if (
                option is not None
                and option.read is not None
                and word
                in (
                    f"--{name}",
                    f"-{name}",
                )
            ):
                # The next word is this option's value: what follows is looked at by getopt alone.
                return

    def _usage(self, error: getopt.GetoptError) -> UsageError:
        name = error.opt
        dashes = "--" if len(name) > 1 else "-"
        if "requires argument" in error.msg:
            problem = (
                f"option '--{name}' requires an argument"
                if len(name) > 1
                else f"option requires an argument -- '{name}'"
            )
        elif "must not have an argument" in error.msg:
            problem = f"option '--{name}' doesn't allow an argument"
        elif "not a unique prefix" in error.msg:
            problem = f"option '--{name}' is ambiguous"
        elif dashes == "--":
            problem = f"unrecognized option '--{name}'"
        else:
            problem = f"invalid option -- '{name}'"
        return UsageError(
            self.bad_status,
            f"{self.command}: {problem}",
            f'Try "{self.command} --help" for more information',
        )

    def _read(self, option: Option, text: str) -> Any:
        assert option.read is not None
        try:
            return option.read(text)
        except NumericValueError as error:
            raise UsageError(
                1, f'{self.command}: error: Invalid numeric value "{text}" for --{option.long}.'
            ) from error
        except InvalidGresError as error:
            raise UsageError(1, f"{self.command}: error: {INVALID_GRES}") from error
        except ValueError as error:
            told = str(error) or f"Invalid --{option.long} specification"
            raise UsageError(self.bad_status, f"{self.command}: error: {told}") from error


class NumericValueError(ValueError):
    """A value should be a whole number above 0."""


def text(value: str) -> str:
    """Take a value as it is."""
    return value


def positive(value: str) -> int:
    """Read a whole number above 0."""
    if not value.isdecimal() or not int(value):
        raise NumericValueError
    return int(value)


def not_negative(value: str) -> int:
    """Read a whole number from 0 on."""
    if not value.isdecimal():
        raise NumericValueError
    return int(value)


def zero_or_one(value: str) -> bool:
    """Read 0 or 1."""
    if value not in ("0", "1"):
        raise ValueError(f'expected 0 or 1, got "{value}"')
    return value == "1"


def patience(value: str) -> int:
    """Read for how many seconds nodes may be waited for; 1, as without a number, is not at all."""
    if not value.isdecimal() or not int(value):
        raise ValueError("Invalid --immediate specification")
    return int(value)


def yes_or_no(value: str) -> int:
    """Read ``yes`` as 1, ``no`` as 0."""
    if value.lower() not in ("yes", "no"):
        raise ValueError
    return int(value.lower() == "yes")


def nice(value: str) -> int:
    """Read a nice value as Slurm does: what is no number counts as 0."""
    match = re.match(r"-?\d+", value)
    return int(match[0]) if match is not None else 0


def with_nice(argv: Sequence[str]) -> list[str]:
    """Return a command line in which a bare ``--nice`` has the value it stands for, 100."""
    return ["--nice=100" if word == "--nice" else word for word in argv]


def node_count(value: str) -> tuple[int, int]:
    """Read ``2`` or ``2-4``: the least and the greatest number of nodes."""
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", value)
    if match is None or not int(match[1]):
        raise ValueError(f'"{value}" is not a valid node count')
    least = int(match[1])
    most = int(match[2]) if match[2] else least
    if most < least:
        raise ValueError(f"Maximum node count {most} is less than minimum node count {least}")
    return least, most


def time_limit(value: str) -> int:
    """Read a time limit; 0 stands for none."""
    try:
        minutes = parse_time_limit_min(value)
    except ValueError:
        raise ValueError("Invalid --time specification") from None
    return minutes or INFINITE


def hosts(value: str) -> tuple[str, ...]:
    """Read a list of nodes."""
    try:
        return expand(value)
    except HostlistError as error:
        raise ValueError(f"Invalid node list: {error}") from None


def distribution(value: str) -> tuple[Distribution, int]:
    """Read ``block``, ``cyclic``, ``arbitrary`` or ``plane=N``; the rest concerns sockets."""
    word = value.split(":", maxsplit=1)[0].split(",", maxsplit=1)[0].lower()
    if word in ("block", "cyclic", "arbitrary"):
        return Distribution[word.upper()], 0
    match = re.fullmatch(r"plane=(\d+)", word)
    if match is not None and int(match[1]):
        return Distribution.PLANE, int(match[1])
    if word == "plane":
        raise ValueError("--distribution=plane needs a size, as in plane=4")
    raise ValueError("Invalid --distribution specification")


def signal(value: str) -> int:
    """Read a signal by name or number."""
    try:
        return signal_number(value)
    except SignalError:
        raise ValueError(f"Unknown job signal: {value}") from None


def memory(value: str) -> int:
    """Read megabytes, or a number with K, M, G or T; what is less than a megabyte counts as one."""
    match = re.fullmatch(r"(\d+)([KMGT]?)B?", value.upper())
    if match is None:
        raise ValueError
    units = {"K": 1, "": 1 << 10, "M": 1 << 10, "G": 1 << 20, "T": 1 << 30}
    return -(-int(match[1]) * units[match[2]] // 1024)


def gres(value: str) -> dict[str, int]:
    """Read generic resources, such as ``gpu:2``."""
    if value.lower() == "none":
        return {}
    try:
        return parse_gres(value)
    except ValueError:
        raise InvalidGresError from None


class InvalidGresError(ValueError):
    """A value names no generic resource."""


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
        raise ValueError from None
    return value


JOB_OPTIONS: Final = (
    Option(long="nodes", short="N", read=node_count),
    Option(long="ntasks", short="n", read=positive),
    Option(long="ntasks-per-node", read=positive),
    Option(long="cpus-per-task", short="c", read=positive),
    Option(long="time", short="t", read=time_limit),
    Option(long="partition", short="p", read=text),
    Option(long="job-name", short="J", read=text),
    Option(long="nodelist", short="w", read=hosts),
    Option(long="exclude", short="x", read=hosts),
    Option(long="distribution", short="m", read=distribution),
    Option(long="account", short="A", read=text),
    Option(long="chdir", short="D", read=text),
    Option(long="output", short="o", read=text),
    Option(long="error", short="e", read=text),
    Option(long="signal", read=warning),
    Option(long="deadline", read=moment),
    Option(long="exclusive"),
    Option(long="mem", read=memory),
    Option(long="mem-per-cpu", read=memory),
    Option(long="mincpus", read=positive),
    Option(long="gres", read=gres),
    Option(long="reservation", read=text),
    Option(long="no-kill", short="k"),
    Option(long="quiet", short="Q"),
)
"""What sbatch and srun both take."""

JOB_UNBUILT: Final = frozenset(
    """
    a array begin b batch bb bbf burst-buffer checkpoint checkpoint-dir cluster-constraint
    clusters M comment constraint C contiguous core-spec S cores-per-socket cpu-freq
    cpus-per-gpu d delay-boot dependency ex exclusive-user export export-file
    extra-node-info B F nodefile get-user-env gid G gpu-bind gpu-freq gpus gpus-per-node
    gpus-per-socket gpus-per-task gres-flags h H help hold hint i ignore-pbs input
    kill-on-invalid-dep L licenses mail-type mail-user mcs-label mem-bind
    mem-per-gpu network nice ntasks-per-core ntasks-per-gpu ntasks-per-socket O
    overcommit s oversubscribe power priority profile propagate q qos reboot
    sockets-per-node spread-job switches test-only thread-spec threads-per-core
    time-min tmp u usage uid use-min-nodes v verbose V version wait-all-nodes wckey
    container prefer
    """.split()
)


def words_of(line: str) -> list[str]:
    """Split a #SBATCH line into words, as sbatch does: quotes group, a comment ends it."""
    import shlex  # noqa: PLC0415 - only scripts with options pay for it

    return shlex.split(line, comments=True)


def variable(environment: Mapping[str, str], name: str) -> int:
    """Return a number from the environment; NO_VAL where there is none."""
    value = environment.get(name, "")
    return int(value) if value.isdecimal() else NO_VAL
