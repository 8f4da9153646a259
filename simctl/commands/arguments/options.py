"""Command lines as Slurm reads them: known options, known ones that are not built, unknown ones."""

import difflib
import getopt
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import attrs

from simctl.commands.arguments.bounds import absurd_number
from simctl.limits import DIGITS
from simctl.stepd.signals import SignalError, signal_number
from simctl.wire.ids import NO_VAL

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

    A value that is `optional` stands where none is attached to the option. A flag that `counts`
    comes to how often it is given; the words of an option that `gathers` add up, with commas
    between. An option `ousts` earlier ones that it contradicts.
    """

    long: str
    short: str = ""
    read: Callable[[str], Any] | None = None
    optional: str = ""
    counts: bool = False
    gathers: bool = False
    ousts: tuple[str, ...] = ()
    also: str = ""  # another long name


_ADVICE: Final = {"spread-job": "; -N with --ntasks-per-node says how many nodes"}
"""What would do in place of an option that is not built."""


@attrs.frozen(kw_only=True)
class Grammar:
    """What a command understands; `unbuilt` are options of Slurm's that simctl refuses by name."""

    command: str
    options: tuple[Option, ...]
    unbuilt: Collection[str]
    bad_status: int = BAD_OPTION
    usage: str = ""
    """What follows the command's name in its usage."""

    permutes: bool = False
    """Options may stand behind words."""

    def parse(self, argv: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """Return the options given, by long name, and the words after them.

        Raises:
            UsageError: With what Slurm's command would print.
        """
        given, rest = self.split(argv)
        return self.values(given), rest

    def split(self, argv: Sequence[str]) -> tuple[list[tuple[Option, str]], list[str]]:
        """Return the options given, with their values unread, and the words after them.

        Raises:
            UsageError: An option is unknown, or lacks its value.
        """
        flags = list(self._flags(argv))
        self._refuse_unbuilt(name for _, name in flags)
        self._refuse_ambiguous(flags)
        split = getopt.gnu_getopt if self.permutes else getopt.getopt
        words = self._completed(argv)
        letters, marked = self._for_getopt
        # getopt goes through all names that it knows for each word: let these be those there are.
        names = [word[2:].partition("=")[0] for word in words if word[:2] == "--" != word]
        known = [marked[name] for name in names if name in marked]
        if len(known) != len(names):
            known = list(marked.values())
        try:
            pairs, rest = split(words, letters, known)
        except getopt.GetoptError as error:
            if error.opt in self.unbuilt:
                raise self._not_built(error.opt) from error
            raise self._usage(error, argv) from error
        return [
            (self._names[flag[2:]] if flag.startswith("--") else self._letters[flag[1:]], text)
            for flag, text in pairs
        ], rest

    def slips(self, argv: Sequence[str]) -> list[str]:
        """Tell of each option that is none, or whose value does not parse, and what may be meant.

        Where there are none, whether one lacks its value.
        """
        found = []
        for word, name in self._flags(argv):
            try:
                self.split([word])
            except UsageError as error:
                if "requires" not in error.lines[0]:
                    told = self._told(error)
                    found.append(told + ("" if "ambiguous" in told else self._meant(name)))
        if found:
            return found
        try:
            given, _ = self.split(argv)
        except UsageError as error:
            return [self._told(error)]
        for each in given:
            try:
                self.values([each])
            except UsageError as error:
                found.append(self._told(error))
        return found

    def _told(self, error: UsageError) -> str:
        """Return the line that says what is wrong, without the command's name."""
        line = next((each for each in error.lines if each.startswith(self.command)), error.lines[0])
        return line.removeprefix(f"{self.command}: ").removeprefix("error: ")

    def _meant(self, name: str) -> str:
        close = difflib.get_close_matches(name, self._all_names, n=1) if len(name) > 1 else []
        return f"; did you mean --{close[0]}?" if close and close[0] != name else ""

    # What is made of the options once, on first use.

    @cached_property
    def _letters(self) -> dict[str, Option]:
        return {option.short: option for option in self.options if option.short}

    @cached_property
    def _names(self) -> dict[str, Option]:
        also = {option.also: option for option in self.options if option.also}
        return {option.long: option for option in self.options} | also

    @cached_property
    def _for_getopt(self) -> tuple[str, dict[str, str]]:
        """Return the letters, and each long name as it is marked where a value follows."""
        shorts = "".join(
            letter + (":" if option.read is not None else "")
            for letter, option in self._letters.items()
        )
        return shorts, {
            name: name + ("=" if option.read is not None else "")
            for name, option in self._names.items()
        }

    @cached_property
    def _all_names(self) -> list[str]:
        """Return every long name of Slurm's in order, built or not."""
        return sorted(self._known_names)

    @cached_property
    def _known_names(self) -> frozenset[str]:
        return frozenset((*self._names, *self.unbuilt))

    def values(self, given: Iterable[tuple[Option, str]]) -> dict[str, Any]:
        """Return what options say, by long name; the last word of an option counts.

        Raises:
            UsageError: A value does not parse.
        """
        values: dict[str, Any] = {}
        for option, text in given:
            for other in option.ousts:
                values.pop(other, None)
            if option.counts:
                values[option.long] = values.get(option.long, 0) + 1
            elif option.gathers and option.long in values:
                values[option.long] += f",{self.read(option, text)}"
            else:
                values[option.long] = True if option.read is None else self.read(option, text)
        return values

    def named(self, long: str) -> Option:
        """Return the option of a long name."""
        return next(option for option in self.options if option.long == long)

    def _not_built(self, name: str) -> UsageError:
        shown = f"--{name}" if len(name) > 1 else f"-{name}"
        return UsageError(
            self.bad_status,
            f"{self.command}: error: {shown} is an option of Slurm's that simctl does "
            "not simulate yet" + _ADVICE.get(name, ""),
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
                option = self._names.get(word[2:])
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
            option = self._letters.get(letter)
            if option is None or (option.read is not None and not option.optional):
                return word, option if place == len(word) - 1 else None
            if option.optional:
                return word if word[place + 1 :] else word + option.optional, option
        return word, None

    def _flags(self, argv: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Return the words that are options, each with its name; a command's words are its own."""
        words = iter(argv)
        for word in words:
            plain = word == "-" or not word.startswith("-")
            if word == "--" or (plain and not self.permutes):
                return
            if plain:
                continue
            name = word[2:].partition("=")[0] if word.startswith("--") else word[1:2]
            yield word, name
            option = self._names.get(name) or self._letters.get(name)
            if option is None and word.startswith("--"):
                option = self._only_one_begun(name)
            takes_next = option is not None and option.read is not None and not option.optional
            if takes_next and word in (f"--{name}", f"-{name}"):
                next(words, None)

    def _only_one_begun(self, name: str) -> Option | None:
        begun = [option for long, option in self._names.items() if long.startswith(name)]
        return begun[0] if len(begun) == 1 else None

    def _refuse_unbuilt(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self.unbuilt:
                raise self._not_built(name)

    def _refuse_ambiguous(self, flags: Iterable[tuple[str, str]]) -> None:
        """Refuse the beginning of a long name that may be one of several of Slurm's."""
        for word, begun in flags:
            if not word.startswith("--") or not begun or begun in self._known_names:
                continue
            found = [name for name in self._all_names if name.startswith(begun) and len(name) > 1]
            if len(found) == 1 and found[0] in self.unbuilt:
                self._refuse_unbuilt(found)
            if len(found) > 1:
                listed = " ".join(f"'--{name}'" for name in found)
                raise UsageError(
                    self.bad_status,
                    f"{self.command}: option '--{begun}' is ambiguous; possibilities: {listed}",
                    f'Try "{self.command} --help" for more information',
                )

    def _usage(self, error: getopt.GetoptError, argv: Sequence[str]) -> UsageError:
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
            # The word as it was typed, with its value.
            typed = (word[2:] for word in argv if word.startswith(f"--{name}"))
            problem = f"unrecognized option '--{next(typed, name)}'"
        else:
            problem = f"invalid option -- '{name}'"
        return UsageError(
            self.bad_status,
            f"{self.command}: {problem}",
            f'Try "{self.command} --help" for more information',
        )

    def read(self, option: Option, text: str) -> Any:
        """Return what a value says.

        Raises:
            UsageError: It says nothing, with what Slurm's command would print.
        """
        assert option.read is not None
        try:
            if len(text) > DIGITS and (problem := absurd_number((text,))):
                raise ValueError(problem)  # noqa: TRY301 - told as any other bad value
            return option.read(text)
        except NumericValueError as error:
            raise UsageError(
                1, f'{self.command}: error: Invalid numeric value "{text}" for --{option.long}.'
            ) from error
        except InvalidMomentError as error:
            raise UsageError(
                self.bad_status,
                f"Invalid time specification (pos=0): {text}",
                f"{self.command}: error: Invalid --{option.long} specification",
            ) from error
        except InvalidGresError as error:
            raise UsageError(1, f"{self.command}: error: {INVALID_GRES}") from error
        except ValueError as error:
            told = str(error) or f"Invalid --{option.long} specification"
            raise UsageError(self.bad_status, f"{self.command}: error: {told}") from error


class InvalidGresError(ValueError):
    """A value names no generic resource."""


class InvalidMomentError(ValueError):
    """A value names no moment."""


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


def leading_number(value: str) -> bool:
    """Return whether a value begins with a number other than 0, as Slurm reads some flags."""
    match = re.match(r"\s*[-+]?\d+", value)
    return match is not None and int(match[0]) != 0


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
    match = re.match(r"\s*[-+]?\d+", value)
    number = int(match[0]) if match is not None else 0
    if abs(number) > _MOST_NICE:
        raise ValueError(f"Invalid nice value, must be between -{_MOST_NICE} and {_MOST_NICE}")
    return number


_MOST_NICE: Final = 2147483645


def refuse_parts(command: str, words: Sequence[str]) -> None:
    """Refuse a heterogeneous job, whose parts have a colon between them on the command line.

    Raises:
        UsageError: There are parts.
    """
    if ":" in words:
        raise UsageError(
            BAD_OPTION,
            f"{command}: error: jobs of several parts (heterogeneous jobs, with ':' between) are "
            "known to Slurm but not simulated yet",
        )


def with_nice(argv: Sequence[str]) -> list[str]:
    """Return a command line in which a bare ``--nice`` has the value it stands for, 100."""
    return ["--nice=100" if word == "--nice" else word for word in argv]


def signal(value: str) -> int:
    """Read a signal by name or number."""
    try:
        return signal_number(value)
    except SignalError:
        raise ValueError(f"Unknown job signal: {value}") from None


def variable(environment: Mapping[str, str], name: str) -> int:
    """Return a number from the environment; NO_VAL where there is none."""
    value = environment.get(name, "")
    return int(value) if value.isdecimal() else NO_VAL
