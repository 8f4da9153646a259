"""The builtins that take no time: each gets the shell's state, its arguments and its streams."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import TypeAlias

from simctl.stepd.scripts.arithmetic import whole_number
from simctl.stepd.scripts.conditions import TestMistake, holds
from simctl.stepd.scripts.host import Disposition, Redirects
from simctl.stepd.scripts.parser import parse_commands
from simctl.stepd.scripts.printing import PrintMistake, echo_text, printf_text
from simctl.stepd.scripts.rules import SET_LETTERS, SET_NAMES
from simctl.stepd.scripts.state import LoopJump, ScriptExit, ShellState
from simctl.stepd.scripts.tree import ScriptMistake
from simctl.stepd.signals import (
    EXIT_TRAP,
    SIGTERM,
    UNCATCHABLE,
    SignalError,
    signal_number,
    trap_number,
)

Builtin: TypeAlias = Callable[[ShellState, tuple[str, ...], Redirects], int]

_MISUSED = 2
_DISPOSITIONS: dict[str, Disposition] = {"-": "default", "": "ignore"}
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _colon(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Do nothing, well."""
    return 0


def _false(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Do nothing, badly."""
    return 1


def _echo(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Write the arguments."""
    state.host.write(streams.stdout, echo_text(arguments))
    return 0


def _printf(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Write the arguments as the format says."""
    arguments = arguments[1:] if arguments[:1] == ("--",) else arguments
    if not arguments:
        state.complain("printf: a format is needed", streams.stderr)
        return _MISUSED
    try:
        text, refused = printf_text(arguments[0], arguments[1:])
    except PrintMistake as mistake:
        state.complain(f"printf: {mistake}", streams.stderr)
        return 1
    for argument in refused:
        state.complain(f"printf: {argument}: invalid number", streams.stderr)
    state.host.write(streams.stdout, text)
    return 1 if refused else 0


def _test(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Judge a condition: 0 it holds, 1 it does not, 2 it is none."""
    try:
        return 0 if holds(arguments, state.host) else 1
    except TestMistake as mistake:
        state.complain(f"test: {mistake}", streams.stderr)
        return _MISUSED


def _bracket(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Judge a condition between brackets."""
    if arguments[-1:] != ("]",):
        state.complain("[: missing `]'", streams.stderr)
        return _MISUSED
    return _test(state, arguments[:-1], streams)


def _exit(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Leave the script; in a trap, without a status, with the one from before the trap."""
    if len(arguments) > 1:
        state.complain("exit: too many arguments", streams.stderr)
        raise ScriptExit(1)
    if not arguments:
        raise ScriptExit(state.trap_statuses[-1] if state.trap_statuses else state.status)
    try:
        status = whole_number(arguments[0])
    except ValueError:
        state.complain(f"exit: {arguments[0]}: numeric argument required", streams.stderr)
        status = _MISUSED
    raise ScriptExit(status)


def _jump(*, again: bool) -> Builtin:
    """Make break or, if the loop goes on *again*, continue."""
    name = "continue" if again else "break"

    def jump(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
        try:
            levels = whole_number(arguments[0]) if arguments else 1
        except ValueError:
            levels = 0
        if levels < 1:
            state.complain(f"{name}: {arguments[0]}: loop count out of range", streams.stderr)
            return 1
        if not state.loops:
            state.complain(f"{name}: only meaningful in a loop", streams.stderr)
            return 0
        raise LoopJump(min(levels, state.loops), again=again)

    return jump


def _shift(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Drop the first arguments of the script."""
    try:
        count = whole_number(arguments[0]) if arguments else 1
    except ValueError:
        count = -1
    if count < 0:
        state.complain(f"shift: {arguments[0]}: a count from 0 on was expected", streams.stderr)
        return 1
    if count > len(state.arguments):
        return 1
    state.arguments = state.arguments[count:]
    return 0


def _export(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Show variables to programs."""
    status = 0
    for argument in arguments[1:] if arguments[:1] == ("--",) else arguments:
        name, equals, value = argument.partition("=")
        if not _NAME.fullmatch(name):
            state.complain(f"export: `{argument}': not a valid identifier", streams.stderr)
            status = 1
            continue
        if equals:
            state.variables.values[name] = value
        state.variables.export(name)
    return status


def _unset(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Forget variables."""
    for name in arguments[1:] if arguments[:1] in (("--",), ("-v",)) else arguments:
        state.variables.unset(name)
    return 0


def _set(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Set options of the shell, and its arguments."""
    rest = list(arguments)
    while rest and rest[0][:1] in ("-", "+") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            state.arguments = tuple(rest)
            return 0
        letters = word[1:].removesuffix("o")
        if word.endswith("o"):
            name = rest.pop(0) if rest else ""
            letters += SET_NAMES.get(name, "?")
        if letters.strip(SET_LETTERS):
            state.complain(f"set: {word}: no option that is simulated", streams.stderr)
            return _MISUSED
        kept = tuple(letter for letter in state.options if letter not in letters)
        state.options = kept + tuple(dict.fromkeys(letters)) if word[0] == "-" else kept
    state.arguments = tuple(rest) or state.arguments
    return 0


def _cd(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Change the working directory, and with it PWD and OLDPWD."""
    values = state.variables.values
    arguments = arguments[1:] if arguments[:1] == ("--",) else arguments
    wanted = arguments[0] if arguments else values.get("HOME", "")
    target = values.get("OLDPWD", "") if wanted == "-" else wanted
    if len(arguments) > 1 or not target:
        wrong = "too many arguments" if target else "HOME or OLDPWD is not set"
        state.complain(f"cd: {wrong}", streams.stderr)
        return 1
    path = posixpath.normpath(posixpath.join(values.get("PWD", "/"), target))
    if error := state.host.chdir(path):
        state.complain(f"cd: {target}: {error}", streams.stderr)
        return 1
    values["OLDPWD"], values["PWD"] = values.get("PWD", ""), path
    if wanted == "-":
        state.host.write(streams.stdout, f"{path}\n")
    return 0


def _pwd(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Write the working directory."""
    state.host.write(streams.stdout, state.variables.values.get("PWD", "/") + "\n")
    return 0


def _trap(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Say what is done on signals, or at the end of the script."""
    arguments = arguments[1:] if arguments[:1] == ("--",) else arguments
    resets = len(arguments) == 1 or (arguments and arguments[0].isdigit())
    action, names = ("-", arguments) if resets else (arguments[:1], arguments[1:])
    action = "".join(action)
    mistakes: list[ScriptMistake] = []
    commands = parse_commands(action, mistakes, state.line) if action != "-" else ()
    if mistakes or not names:
        wrong = mistakes[0].message if mistakes else "a signal is needed"
        state.complain(f"trap: {wrong}", streams.stderr)
        return _MISUSED
    status = 0
    for name in names:
        try:
            number = trap_number(name)
        except SignalError as mistake:
            state.complain(f"trap: {mistake}", streams.stderr)
            status = 1
            continue
        if number in UNCATCHABLE:
            continue
        state.traps.pop(number, ())
        if action not in ("-", ""):
            state.traps[number] = commands
        if number != EXIT_TRAP:
            state.host.set_trap(number, _DISPOSITIONS.get(action, "trap"))
    return status


def _kill(state: ShellState, arguments: tuple[str, ...], streams: Redirects) -> int:
    """Send a signal, TERM unless another is named, to processes."""
    rest = list(arguments)
    name = ""
    if rest[:1] in (["-s"], ["-n"]):
        name, rest = "".join(rest[1:2]), rest[2:]
    elif rest and rest[0].startswith("-") and rest[0] != "--":
        name = rest.pop(0)[1:]
    rest = rest[1:] if rest[:1] == ["--"] else rest
    try:
        number = SIGTERM if not name else 0 if name == "0" else signal_number(name)
    except SignalError as mistake:
        state.complain(f"kill: {mistake}", streams.stderr)
        return 1
    if not rest:
        state.complain("kill: a pid is needed", streams.stderr)
        return _MISUSED
    return max(_send(state, text, number, streams) for text in rest)


def _send(state: ShellState, text: str, number: int, streams: Redirects) -> int:
    """Send signal *number* to the pid *text*."""
    try:
        pid = whole_number(text)
    except ValueError:
        state.complain(f"kill: {text}: a pid was expected", streams.stderr)
        return 1
    if pid < 1:
        state.complain(f"kill: {text}: process groups are not simulated", streams.stderr)
        return 1
    if state.host.kill(pid, number):
        return 0
    state.complain(f"kill: ({pid}) - No such process", streams.stderr)
    return 1


TIMELESS: dict[str, Builtin] = {
    ":": _colon,
    "true": _colon,
    "false": _false,
    "echo": _echo,
    "printf": _printf,
    "test": _test,
    "[": _bracket,
    "exit": _exit,
    "break": _jump(again=False),
    "continue": _jump(again=True),
    "shift": _shift,
    "export": _export,
    "unset": _unset,
    "set": _set,
    "cd": _cd,
    "pwd": _pwd,
    "trap": _trap,
    "kill": _kill,
}
"""All builtins but wait and exec, which the shell itself runs."""
