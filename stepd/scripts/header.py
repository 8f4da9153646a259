"""The comments at a script's head: its interpreter and its ``#SBATCH`` lines."""

from __future__ import annotations

import difflib
import posixpath
import re

from simctl.stepd.scripts.rules import SET_LETTERS
from simctl.stepd.scripts.tree import ScriptMistake

SHELLS = ("sh", "bash", "dash", "ksh", "mksh", "zsh", "ash")
_DIRECTIVE = "#SBATCH"
_LIKE_A_DIRECTIVE = re.compile(r"#([A-Za-z]+)\s+-")


def has_interpreter(text: str) -> bool:
    """Say whether the script begins with ``#!``, without which sbatch refuses it."""
    return text.startswith("#!")


def sbatch_options(text: str) -> tuple[tuple[int, str], ...]:
    """Return the ``#SBATCH`` lines as (line number, what follows the word).

    As sbatch does, only those before the first line that is neither blank nor a comment count, and
    the word must begin its line. The text is as written: quotes and a comment behind the options
    are left to the reader of options.
    """
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith(_DIRECTIVE):
            found.append((number, line.removeprefix(_DIRECTIVE).strip()))
        elif line.strip() and not line.strip().startswith("#"):
            break
    return tuple((number, options) for number, options in found if options)


def passed_over(text: str) -> tuple[tuple[int, str], ...]:
    """Return the lines that look like options and are none to sbatch, each with the reason."""
    found: list[tuple[int, str]] = []
    over = False
    for number, line in enumerate(text.split("\n"), start=1):
        word = _LIKE_A_DIRECTIVE.match(line)
        if line.startswith(_DIRECTIVE):
            if over:
                found.append((number, "sbatch reads no #SBATCH line behind the first command"))
        elif word is not None and difflib.get_close_matches(word[1], ("SBATCH",), cutoff=0.8):
            found.append((number, f"#{word[1]} is a comment like others; did you mean #SBATCH?"))
        elif line.strip() and not line.strip().startswith("#"):
            over = True
    return tuple(found)


def read_interpreter(text: str) -> tuple[tuple[str, ...], tuple[ScriptMistake, ...]]:
    """Return the shell options of the ``#!`` line, and what is wrong with it.

    A script without that line is no mistake here: sbatch answers for it.
    """
    words = text.split("\n", 1)[0].strip().removeprefix("#!").split()
    if not has_interpreter(text) or not words:
        return (), ()
    program, arguments = words[0], words[1:]
    if posixpath.basename(program) == "env":
        arguments = [word for word in arguments if word != "-S"]
        program, arguments = "".join(arguments[:1]), arguments[1:]
    if posixpath.basename(program) not in SHELLS:
        message = (
            f"the interpreter {program} is not simulated: a batch script is read as sh; name the "
            "program in a script of /bin/sh, and describe what it does"
        )
        return (), (ScriptMistake(line=1, column=1, message=message),)
    letters = "".join(word for word in arguments if word.startswith("-")).replace("-", "")
    return tuple(letter for letter in SET_LETTERS if letter in letters), ()
