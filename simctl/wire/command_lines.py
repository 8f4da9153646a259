"""Command lines of sbatch, salloc and srun: where their options end."""

import re
from collections.abc import Sequence
from typing import Final

_VALUE_LETTERS: Final = "ABCDFGJLMNPRSTUabcdegijmnopqrtwx"
"""Short options of sbatch and srun that take a value, which may be the next word."""

_FLAGS: Final = frozenset(
    {
        *(
            "bb-none",
            "bell",
            "contiguous",
            "disable-status",
            "exact",
            "exclusive",
            "get-user-env",
            "help",
        ),
        *(
            "hold",
            "ignore-pbs",
            "immediate",
            "interactive",
            "join",
            "kill-command",
            "kill-on-bad-exit",
        ),
        *("label", "multi-prog", "nice", "no-allocate", "no-bell"),
        *("no-kill", "no-requeue", "no-shell", "overcommit", "overlap", "oversubscribe"),
        *("parsable", "preserve-env", "propagate", "pty", "quiet", "quit-on-interrupt", "reboot"),
        *("requeue", "share", "slurmd-debug", "spread-job", "test-only", "unbuffered", "usage"),
        *("use-min-nodes", "verbose", "version", "wait-all-nodes", "whole"),
    }
)
"""Long options that never take the next word as their value."""


def operand(argv: Sequence[str]) -> str:
    """Return the first word of a command line that is no option and no option's value.

    It is the script of sbatch and the program of srun; empty if there is none.
    """
    return next(iter(after_options(argv)), "")


def after_options(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command line after its options and their values."""
    words = iter(argv[1:])
    for word in words:
        if word == "--":
            return tuple(words)
        if not word.startswith("-") or word == "-":
            return (word, *words)
        if _takes_next(argv[0], word):
            next(words, "")
    return ()


def _takes_next(command: str, word: str) -> bool:
    if word.startswith("--"):
        name = word[2:]
        # The same option waits for a job in sbatch and limits a wait in srun.
        is_flag = name in _FLAGS or (name == "wait" and command == "sbatch")
        return "=" not in word and not is_flag
    letter = word[1]
    return len(word) == len("-n") and (
        letter in _VALUE_LETTERS or (letter == "W" and command != "sbatch")
    )


_ASKS: Final = re.compile(r"--int|-[bfHQv]*i")
"""How scancel is told to ask, also behind letters of options that take no value."""


def reads_input(argv: Sequence[str]) -> bool:
    """Return whether a command of Slurm's reads its standard input.

    srun does, sbatch of no file, scancel that asks, and scontrol that is given no command.
    """
    name = argv[0].rsplit("/", 1)[-1]
    if name == "sbatch":
        return not operand(("sbatch", *argv[1:])) and not any("wrap" in word for word in argv)
    if name == "scancel":
        return any(_ASKS.match(word) for word in argv[1:])
    if name == "scontrol":
        return all(word.startswith("-") for word in argv[1:])
    if name != "srun":
        return False
    for index, word in enumerate(argv):
        value = word.partition("=")[2] if word.startswith("--input=") else ""
        if word in ("--input", "-i") and index + 1 < len(argv):
            value = argv[index + 1]
        if value:
            return value == "all" or value.isdigit()
    return True
