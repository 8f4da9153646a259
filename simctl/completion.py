"""Scripts that complete the command line in bash, zsh and fish, made by shtab."""

import argparse
from collections.abc import Iterator
from typing import Final

import shtab

SHELLS: Final = ("bash", "zsh", "fish")
_FILES: Final = ("SCENARIO", "FILE", "TRACE", "RECORDING", "PATH", "EXPECT.yaml", "SPEC")
"""What arguments are called that are files."""

_FOLDERS: Final = ("DIR",)
_FILE_NAMES: Final = ("file", "other")
"""The names of positional arguments without another name that are files."""


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return what a shell is to read, to complete subcommands, options, their choices and files."""
    for action in _actions(parser):
        name = action.metavar if isinstance(action.metavar, str) else ""
        word = name.partition("|")[0]
        if action.choices is None and word in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.choices is None and (
            word in _FILES
            or (not name and not action.option_strings and action.dest in _FILE_NAMES)
        ):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return shtab.complete(parser, shell=shell)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
        else:
            yield action
