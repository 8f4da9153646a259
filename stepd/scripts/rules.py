"""What the subset of sh holds and leaves out: its builtins, and how they may be called.

Only what is written out can be judged before a script runs; what comes from a variable is judged
by the builtin itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simctl.stepd.scripts.tree import Simple, Word
from simctl.stepd.signals import SignalError, signal_number, trap_number

BUILTINS = (
    *(":", "true", "false", "echo", "printf", "test", "[", "exit", "break", "continue", "shift"),
    *("export", "unset", "set", "cd", "pwd", "trap", "wait", "kill", "exec"),
)
IN_BACKGROUND = (":", "true", "false", "echo", "exit")
"""The builtins that also exist as programs, and so can be put in the background."""

REFUSED_COMMANDS = {
    "eval": "write the command itself",
    "source": "write the commands of the other file here",
    ".": "write the commands of the other file here",
    "local": "functions are not simulated",
    "return": "functions are not simulated; a script ends with exit",
    "time": "write the command without it; a trace says how long it took",
    "let": "write NAME=$((…))",
    "declare": "write NAME=value",
    "typeset": "write NAME=value",
    "readonly": "write NAME=value",
    "read": "give the value in a variable or an argument",
    "mapfile": "give the values as words",
    "readarray": "give the values as words",
    "getopts": "use $1, $2 and shift",
    "command": "write the command without it",
    "builtin": "write the command without it",
    "coproc": "use &",
} | dict.fromkeys(
    (
        *("alias", "unalias", "shopt", "enable", "pushd", "popd", "dirs", "jobs", "fg", "bg"),
        *("disown", "suspend", "logout", "hash", "type", "times", "ulimit", "umask", "history"),
        *("fc", "bind", "complete", "compgen", "compopt", "caller", "help"),
    ),
    "leave it out",
)

UNARY_TESTS = ("-n", "-z", "-e", "-f", "-d")
BINARY_TESTS = ("=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge")
_OTHER_UNARY = tuple(f"-{letter}" for letter in "abcghkoprstuvwxGLNORS")
_OTHER_BINARY = ("-nt", "-ot", "-ef", "=~")

SET_LETTERS = "eux"
SET_NAMES = {"errexit": "e", "nounset": "u", "xtrace": "x", "pipefail": ""}
TRAP_REFUSED = ("ERR", "DEBUG", "RETURN")

_NO_ADVICE = ""
Complaint = tuple[Word, str, str]
"""The word at fault, what lies outside the subset, and what would do (or "")."""


def complaints(command: Simple) -> Iterator[Complaint]:
    """Yield what the written-out words of *command* ask for that is not simulated."""
    if not command.words:
        return
    first = command.words[0]
    if first.literal in REFUSED_COMMANDS:
        yield first, f"`{first.literal}`", REFUSED_COMMANDS[first.literal]
    elif first.literal in _RULES:
        yield from _RULES[first.literal](command.words)


def _options(words: tuple[Word, ...], known: str) -> Iterator[Complaint]:
    """Refuse options other than the letters *known*, up to the first argument that is none."""
    for word in words[1:]:
        text = word.literal
        if text == "--" or not text.startswith("-") or text == "-":
            return
        if text.lstrip("-").strip(known):
            yield word, f"{words[0].literal} {text}", _NO_ADVICE


def _plain(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse every option."""
    yield from _options(words, "")


def _export(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse options, and the list that export prints without arguments."""
    if len(words) == 1:
        yield words[0], "export without names", _NO_ADVICE
    yield from _options(words, "")


def _unset(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse all options but the one for variables."""
    yield from _options(words, "v")


def _jobs(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse ``%1`` and its kin, which only job control knows."""
    for word in words[1:]:
        if word.literal.startswith("%"):
            yield word, f"the job {word.literal}", "use $! and its pid"


def _wait(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse options and jobs."""
    yield from _options(words, "")
    yield from _jobs(words)


def _kill(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse jobs, lists and signals that do not exist."""
    yield from _jobs(words)
    arguments = list(words[1:])
    if arguments and arguments[0].literal.startswith("-"):
        word = arguments.pop(0)
        name = word.literal[1:]
        if name in ("s", "n") and arguments:
            word = arguments.pop(0)
            name = word.literal
        if name in ("l", "L"):
            yield word, f"kill -{name}", _NO_ADVICE
        elif name not in ("0", "-") and word.is_literal:
            yield from _signal(word, name, signal_number)
    for word in arguments:
        if word.literal == "0" or (word.literal.startswith("-") and word.literal != "--"):
            yield word, "a signal to a process group", "name each pid"


def _signal(word: Word, name: str, number: Callable[[str], int]) -> Iterator[Complaint]:
    """Refuse a signal that does not exist."""
    try:
        number(name)
    except SignalError as mistake:
        yield word, "", str(mistake)


def _trap(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse the lists of traps, bash's own conditions and signals that do not exist."""
    yield from _options(words, "")
    if len(words) == 1:
        yield words[0], "trap without arguments", _NO_ADVICE
    arguments = [word for word in words[1:] if word.literal != "--"]
    for word in arguments[1:] or arguments:
        if word.literal.upper() in TRAP_REFUSED:
            yield word, f"trap … {word.literal}", _NO_ADVICE
        elif word.is_literal and word.literal != "-" and not word.literal.startswith("-"):
            yield from _signal(word, word.literal, trap_number)


def _set(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse options other than -e, -u, -x and their names."""
    if len(words) == 1:
        yield words[0], "set without arguments", _NO_ADVICE
    expects_name = False
    for word in words[1:]:
        text = word.literal
        if expects_name:
            if word.is_literal and text not in SET_NAMES:
                yield word, f"set -o {text}", _NO_ADVICE
            expects_name = False
        elif text in ("--", "-") or text[:1] not in ("-", "+"):
            return
        else:
            expects_name = text.endswith("o")
            lacks_name = expects_name and word is words[-1]
            if lacks_name or text[1:].removesuffix("o").strip(SET_LETTERS):
                yield word, f"set {text}", _NO_ADVICE


def _test(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse operators that are not simulated, and a ``[`` without its ``]``."""
    arguments = list(words[1:])
    if words[0].literal == "[":
        if arguments and arguments[-1].literal == "]":
            arguments.pop()
        else:
            yield words[0], "", "this [ has no ] at the end of its command"
    for index, word in enumerate(arguments):
        known_place = _stands_as_operator([one.bare for one in arguments], index)
        if known_place and word.bare in (_OTHER_UNARY if known_place == "unary" else _OTHER_BINARY):
            yield word, f"the test {word.bare}", _NO_ADVICE


def _stands_as_operator(texts: list[str], index: int) -> str:
    """Say whether the argument at *index* of a test stands where an operator does."""
    joins = ("-a", "-o", "!", "(")
    start = index == 0 or texts[index - 1] in joins
    behind = texts[index + 1 :]
    if start and behind and behind[0] not in (*BINARY_TESTS, *_OTHER_BINARY):
        return "unary"
    before = index == 1 or (index > 1 and texts[index - 2] in joins)
    return "binary" if before and behind and texts[index - 1] not in joins else ""


def _printf(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse options, of which bash knows ``-v``."""
    if len(words) == 1:
        yield words[0], "", "printf needs a format"
    yield from _options(words[:2], "")


_RULES: dict[str, Callable[[tuple[Word, ...]], Iterator[Complaint]]] = {
    "cd": _plain,
    "pwd": _plain,
    "exec": _plain,
    "export": _export,
    "unset": _unset,
    "wait": _wait,
    "kill": _kill,
    "trap": _trap,
    "set": _set,
    "test": _test,
    "[": _test,
    "printf": _printf,
}
