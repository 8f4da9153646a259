"""Lines of shell that a script runs: what they ask, and what of them no cluster has."""

import re
from collections.abc import Iterable
from typing import Final

from simctl.commands.table import COMMANDS
from simctl.stepd.scripts.tools import is_tool
from simctl.testing.plugin_check.lua.named import SLURM_COMMANDS

_PIECES: Final = re.compile(r"\|\||&&|[;|&()`\n]|\$\(")
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"$`]*\"")
"""Texts that run nothing: separators of fields, programs of awk."""

_WORD: Final = re.compile(r"[^\s\"']+")
_BEFORE: Final = frozenset(
    "env timeout sudo command exec time nohup nice if then while do ! {".split()
)
_OF_SHELL: Final = frozenset(
    """
    . : [ [[ ]] { } break case cd continue declare do done echo elif else esac eval exec exit export
    false fi for function getopts if in kill let local mapfile printf pwd read readonly return set
    shift shopt source sleep test then time times trap true type ulimit umask unset until wait while
    sh bash hostname id whoami
    """.split()
)


def heads(line: str) -> Iterable[str]:
    """Yield the programs that a line of shell runs."""
    for piece in _PIECES.split(line):
        for word in _WORD.findall(piece):
            if "=" in word or word in _BEFORE or word[:1] in "-<>$2" or word.isdigit():
                continue
            yield word
            break


def asks_slurmctld(line: str) -> str:
    """Return the command of Slurm's that a line of shell runs; nothing if it runs none."""
    names = (word.rsplit("/", 1)[-1] for word in heads(line))
    return next((name for name in names if name in SLURM_COMMANDS), "")


def lacking(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the programs of lines that a cluster has only if a scenario describes them."""
    found: dict[str, None] = {}
    for line in lines:
        for word in heads(_QUOTED.sub("x", line)):
            folder, slash, name = word.rpartition("/")
            of_site = slash and folder not in ("/bin", "/usr/bin")
            if of_site or not (name in _OF_SHELL or name in COMMANDS or is_tool(word)):
                found[word] = None
    return tuple(found)
