"""What of the language there is and what not: builtins, and how they may be called.

Only what is written out can be judged before a script runs; what comes from a variable is judged
by the builtin itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simctl.stepd.scripts.tree import Simple, Word
from simctl.stepd.signals import SignalError, signal_number, trap_number

BUILTINS = (
    *(":", "true", "false", "echo", "printf", "test", "[", "exit", "return", "break", "continue"),
    *("shift", "set", "shopt", "cd", "pwd", "umask", "ulimit", "eval", "source", ".", "exec"),
    *("command", "builtin", "type", "hash", "alias", "unalias", "module", "ml"),
    *("export", "readonly", "declare", "typeset", "local", "unset", "let"),
    *("read", "mapfile", "readarray", "getopts"),
    *("wait", "jobs", "disown", "kill", "trap"),
)
DECLARING = ("export", "readonly", "declare", "typeset", "local")
"""The builtins whose arguments may be assignments."""

KEYWORDS = (
    *("if", "then", "elif", "else", "fi", "case", "esac", "for", "select", "while", "until", "do"),
    *("done", "in", "function", "time", "{", "}", "!", "[[", "]]", "coproc"),
)

REFUSED_COMMANDS = {
    "pushd": "use cd and a variable",
    "popd": "use cd and a variable",
    "dirs": "use PWD",
    "times": "use time, or SECONDS",
    "caller": "use FUNCNAME and LINENO",
    "fg": "use wait",
    "bg": "use kill -CONT",
    "suspend": "use kill -STOP $$",
} | dict.fromkeys(
    (*("enable", "logout", "history", "fc", "bind", "complete", "compgen", "compopt", "help"),),
    "leave it out: no shell with a person in front of it is simulated",
)

BRACKET_UNARY = (
    *("-n", "-z", "-v", "-o"),
    *(f"-{letter}" for letter in "abcdefghkprstuwxGLNORS"),
)
BRACKET_BINARY = (
    *("=", "==", "!=", "=~", "<", ">"),
    *("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"),
)
NO_TIMES = ("-nt", "-ot", "-ef", "-N", "-R")
"""Tests that need what a simulated file has not: when it was changed, or other names."""

NO_TIMES_HINT = "simulated files know no times and links"

SET_ADVICE = dict.fromkeys(("-o", "+o"), "ask for an option with `[[ -o NAME ]]`")
SET_LETTERS = "euxfhmBE"
SET_NAMES = {
    "errexit": "e",
    "nounset": "u",
    "xtrace": "x",
    "noglob": "f",
    "errtrace": "E",
    "monitor": "m",
    "pipefail": "pipefail",
    "braceexpand": "B",
    "hashall": "h",
}
SHOPT_NAMES = (
    *("nullglob", "dotglob", "failglob", "extglob", "inherit_errexit"),
    *("checkwinsize", "cmdhist", "interactive_comments", "sourcepath", "progcomp", "promptvars"),
)
TRAP_REFUSED = ("DEBUG", "RETURN")

_NO_ADVICE = ""
Complaint = tuple[Word, str, str]
"""The word at fault, what is not simulated, and what would do (or "")."""


def complaints(command: Simple) -> Iterator[Complaint]:
    """Yield what the written-out words of *command* ask for that is not simulated."""
    words = tuple(word for word in command.words if isinstance(word, Word))
    if not words or words[0] is not command.words[0]:
        return
    first = words[0]
    if first.literal in REFUSED_COMMANDS:
        yield first, f"`{first.literal}`", REFUSED_COMMANDS[first.literal]
    elif first.literal in _RULES:
        yield from _RULES[first.literal](words)


def _options(known: str, valued: str = "") -> Callable[[tuple[Word, ...]], Iterator[Complaint]]:
    """Make a rule that refuses options other than the letters *known*, and those with a value."""

    def rule(words: tuple[Word, ...]) -> Iterator[Complaint]:
        is_value = False
        for word in words[1:]:
            text = word.literal
            if is_value:
                is_value = False
                continue
            if text == "--" or text[:1] not in ("-", "+") or len(text) == 1:
                return
            letters = text[1:]
            place = next(
                (at for at, letter in enumerate(letters) if letter in valued), len(letters)
            )
            is_value = place == len(letters) - 1
            if letters[:place].strip(known):
                yield word, f"{words[0].literal} {text}", _NO_ADVICE

    return rule


def _kill(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse signals that do not exist."""
    arguments = list(words[1:])
    if arguments and arguments[0].literal in ("-l", "-L"):
        if len(arguments) == 1:
            yield arguments[0], "kill -l without a number or name", _NO_ADVICE
        return
    if arguments and arguments[0].literal.startswith("-"):
        word = arguments.pop(0)
        name = word.literal[1:]
        if name in ("s", "n") and arguments:
            word = arguments.pop(0)
            name = word.literal
        if name not in ("0", "-") and word.is_literal:
            yield from _signal(word, name, signal_number)


def _signal(word: Word, name: str, number: Callable[[str], int]) -> Iterator[Complaint]:
    """Refuse a signal that does not exist."""
    try:
        number(name)
    except SignalError as mistake:
        yield word, "", str(mistake)


def _trap(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse the conditions that are not simulated, and signals that do not exist."""
    arguments = [word for word in words[1:] if word.literal not in ("--", "-p")]
    for word in arguments[1:] or arguments:
        if word.literal.upper() in TRAP_REFUSED:
            yield word, f"trap … {word.literal}", "EXIT, ERR and signals are simulated"
        elif word.is_literal and word.literal != "-" and not word.literal.startswith("-"):
            yield from _signal(word, word.literal, trap_number)


def _set(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse options that are not simulated."""
    if len(words) == 1:
        yield words[0], "set without arguments", "use `declare -p`"
    expects_name = False
    for word in words[1:]:
        text = word.literal
        if expects_name:
            if word.is_literal and text not in SET_NAMES:
                yield word, f"set -o {text}", SET_ADVICE.get(text, _NO_ADVICE)
            expects_name = False
        elif text in ("--", "-") or text[:1] not in ("-", "+"):
            return
        else:
            expects_name = "o" in text[1:]
            lacks_name = expects_name and word is words[-1]
            if lacks_name or text[1:].replace("o", "", 1).strip(SET_LETTERS):
                yield word, f"set {text}", SET_ADVICE.get(text, _NO_ADVICE)


def _shopt(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse options that are not simulated."""
    for word in words[1:]:
        if word.is_literal and not word.literal.startswith("-") and word.literal not in SHOPT_NAMES:
            yield word, f"shopt {word.literal}", _NO_ADVICE


def _test(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse tests that are not simulated, and a ``[`` without its ``]``."""
    arguments = list(words[1:])
    if words[0].literal == "[":
        if arguments and arguments[-1].literal == "]":
            arguments.pop()
        else:
            yield words[0], "", "this [ has no ] at the end of its command"
    for index, word in enumerate(arguments):
        if word.bare in NO_TIMES and _stands_as_operator([one.bare for one in arguments], index):
            yield word, f"the test {word.bare}", NO_TIMES_HINT


def _stands_as_operator(texts: list[str], index: int) -> bool:
    """Say whether the argument at *index* of a test stands where an operator does."""
    joins = ("-a", "-o", "!", "(")
    start = index == 0 or texts[index - 1] in joins
    behind = texts[index + 1 :]
    if start and behind and behind[0] not in BRACKET_BINARY:
        return True
    before = index == 1 or (index > 1 and texts[index - 2] in joins)
    return bool(before and behind and texts[index - 1] not in joins)


def _printf(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse a ``printf`` without a format."""
    if len(words) == 1:
        yield words[0], "", "printf needs a format"


def _jobs(words: tuple[Word, ...]) -> Iterator[Complaint]:
    """Refuse the lists that tell of changes alone."""
    yield from _options("lprs")(words)


_RULES: dict[str, Callable[[tuple[Word, ...]], Iterator[Complaint]]] = {
    "cd": _options("PL"),
    "pwd": _options("PL"),
    "exec": _options("cl", "a"),
    "export": _options("npf"),
    "readonly": _options("aApf"),
    "declare": _options("aAilruxgpfF"),
    "typeset": _options("aAilruxgpfF"),
    "local": _options("aAilrux"),
    "unset": _options("vf"),
    "wait": _options("nf"),
    "jobs": _jobs,
    "read": _options("rse", "dnNupai"),
    "mapfile": _options("t", "dnOsu"),
    "readarray": _options("t", "dnOsu"),
    "umask": _options("Sp"),
    "kill": _kill,
    "trap": _trap,
    "set": _set,
    "shopt": _shopt,
    "test": _test,
    "[": _test,
    "printf": _printf,
}
