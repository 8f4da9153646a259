"""The tests on files and variables that ``[``, ``test`` and ``[[`` share."""

from __future__ import annotations

from simctl.stepd.scripts.host import CLOSED, Info
from simctl.stepd.scripts.rules import SET_NAMES
from simctl.stepd.scripts.state import BadSubscriptError, ShellState

_READ, _WRITE, _EXECUTE = 4, 2, 1
_NEVER = ("-b", "-c", "-p", "-S", "-g", "-k", "-u", "-L", "-h", "-t")
"""Kinds of files, bits and terminals that the simulation has not."""

FILE_TESTS = ("-e", "-a", "-f", "-d", "-r", "-w", "-x", "-s", "-O", "-G", *_NEVER)
UNARY_TESTS = ("-n", "-z", "-v", "-o", *FILE_TESTS)
NUMBER_TESTS = ("-eq", "-ne", "-lt", "-le", "-gt", "-ge")


def judge_unary(operator: str, operand: str, state: ShellState) -> bool:
    """Judge a test of one operand."""
    match operator:
        case "-n":
            return operand != ""
        case "-z":
            return operand == ""
        case "-v":
            return is_set(operand, state)
        case "-o":
            return bool(state.options.get(SET_NAMES.get(operand, operand)))
    return _judge_file(operator, operand, state)


def is_set(name: str, state: ShellState) -> bool:
    """Return whether a variable, or an element of an array, is set."""
    base, bracket, rest = name.partition("[")
    if not bracket:
        return state.look_up(name) is not None
    elements = state.elements(base)
    subscript = rest.removesuffix("]")
    if subscript in ("@", "*"):
        return bool(elements)
    try:
        return state.key_of(base, subscript) in (elements or {})
    except BadSubscriptError as error:
        state.untold.append(str(error))
        return False


def _judge_file(operator: str, path: str, state: ShellState) -> bool:
    if not path:
        return False
    if path.startswith("/dev/"):
        return _judge_device(operator, path, state)
    found = state.host.info(path)
    if found is None or operator in _NEVER:
        return False
    match operator:
        case "-f":
            return not found.is_dir
        case "-d":
            return found.is_dir
        case "-s":
            return found.is_dir or found.size > 0
        case "-O" | "-G":
            return str(found.uid) == state.host.facts()["UID"]
        case "-r" | "-w" | "-x":
            bit = {"-r": _READ, "-w": _WRITE, "-x": _EXECUTE}[operator]
            return may(found, bit, int(state.host.facts()["UID"]))
    return True


def _judge_device(operator: str, path: str, state: ShellState) -> bool:
    """Judge what lies in /dev: the own descriptors, and /dev/null."""
    if path == "/dev/null":
        return operator in ("-e", "-a", "-r", "-w", "-c")
    if path.startswith("/dev/fd/") and path[8:].isdecimal():
        return state.streams.get(int(path[8:])) != CLOSED and operator in ("-e", "-a", "-r")
    found = state.host.info(path)
    return found is not None and found.is_dir and operator in ("-e", "-a", "-d", "-r", "-x")


def may(found: Info, bit: int, uid: int) -> bool:
    """Return whether a user may read (4), write (2) or execute (1) what is found."""
    if uid == 0:
        return bit != _EXECUTE or found.is_dir or bool(found.mode & 0o111)
    return bool(found.mode >> (6 if found.uid == uid else 0) & bit)
