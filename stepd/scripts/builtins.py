"""The builtins of the shell: each gets the shell, its arguments and its streams.

The table of all of them is at the end. Those about variables, about settings, about children and
signals, and about reading stand in modules of their own.
"""

from __future__ import annotations

import re

from simctl.limits import VALUE_CHARACTERS
from simctl.stepd.scripts.arithmetic import whole_number
from simctl.stepd.scripts.builtin import MISUSED, Builtin, Shell, is_name, plain, write_text
from simctl.stepd.scripts.builtins_jobs import JOB_BUILTINS
from simctl.stepd.scripts.builtins_read import READING_BUILTINS
from simctl.stepd.scripts.builtins_settings import SETTING_BUILTINS
from simctl.stepd.scripts.builtins_variables import VARIABLE_BUILTINS
from simctl.stepd.scripts.conditions import TestMistake, holds
from simctl.stepd.scripts.host import OpenFile, Redirects, Stream
from simctl.stepd.scripts.parser import parse_commands
from simctl.stepd.scripts.printing import PrintMistake, echo_text, printf_text, single_quoted
from simctl.stepd.scripts.rules import KEYWORDS
from simctl.stepd.scripts.state import (
    SECOND_US,
    BoundError,
    CommandError,
    ExpansionError,
    LoopJump,
    Returned,
    ScriptExit,
    SkippedLine,
)
from simctl.stepd.scripts.tree import Command, ScriptMistake
from simctl.stepd.signals import EXIT_TRAP

_DIRECTORY = "Is a directory"
_NOT_FOUND = 127
_NUMBER = re.compile(r"[-+]?\d+", re.ASCII)
_FIRST_FILES = re.compile(
    r"(/etc/(profile|bashrc|bash\.bashrc|profile\.d/.*\.sh)|.*/\.(bashrc|bash_profile|profile))"
)
"""What every machine has for shells to begin with: empty, where a scenario says nothing else."""


@plain
async def _colon(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Do nothing, well."""
    return 0


@plain
async def _false(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Do nothing, badly."""
    return 1


@plain
async def _echo(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Write the arguments."""
    return await write_text(shell, streams, "echo", echo_text(tuple(arguments)))


@plain
async def _printf(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Write the arguments as the format says, or give them to a variable."""
    state = shell.state
    target = ""
    if arguments and arguments[0].startswith("-v"):
        inline = arguments[0][2:]
        target = inline or "".join(arguments[1:2])
        arguments = arguments[1:] if inline else arguments[2:]
        if not is_name(target.partition("[")[0]):
            await state.complain(f"printf: `{target}': not a valid identifier", streams.stderr)
            return MISUSED
    if arguments[:1] == ["--"]:
        arguments = arguments[1:]
    elif arguments and re.match("-.", arguments[0]):
        await state.complain(f"printf: {arguments[0][:2]}: invalid option", streams.stderr)
        return MISUSED
    if not arguments:
        await state.complain("printf: a format is needed", streams.stderr)
        return MISUSED
    try:
        text, refused = printf_text(
            arguments[0], tuple(arguments[1:]), state.host.now_us() // SECOND_US
        )
    except PrintMistake as mistake:
        await state.complain(f"printf: {mistake}", streams.stderr)
        return 1
    for argument in refused:
        await state.complain(f"printf: {argument}: invalid number", streams.stderr)
    if target:
        base, bracket, rest = target.partition("[")
        state.assign(base, text, state.key_of(base, rest.removesuffix("]")) if bracket else None)
    elif status := await write_text(shell, streams, "printf", text):
        return status
    return 1 if refused else 0


@plain
async def _test(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Judge a condition: 0 it holds, 1 it does not, 2 it is none."""
    try:
        return 0 if holds(tuple(arguments), shell.state) else 1
    except TestMistake as mistake:
        await shell.state.complain(f"test: {mistake}", streams.stderr)
        return MISUSED


@plain
async def _bracket(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Judge a condition between brackets."""
    if arguments[-1:] != ["]"]:
        await shell.state.complain("[: missing `]'", streams.stderr)
        return MISUSED
    try:
        return 0 if holds(tuple(arguments[:-1]), shell.state) else 1
    except TestMistake as mistake:
        await shell.state.complain(f"[: {mistake}", streams.stderr)
        return MISUSED


@plain
async def _exit(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Leave the script; in a trap, without a status, with the one from before the trap."""
    state = shell.state
    if len(arguments) > 1 and _NUMBER.fullmatch(arguments[0]):
        await state.complain("exit: too many arguments", streams.stderr)
        return 1
    if not arguments:
        status = state.trap_statuses[-1] if state.trap_statuses else state.status
        raise ScriptExit(await _left(shell, status, streams))
    try:
        status = whole_number(arguments[0])
    except ValueError:
        await state.complain(f"exit: {arguments[0]}: numeric argument required", streams.stderr)
        status = MISUSED
    raise ScriptExit(await _left(shell, status, streams))


async def _left(shell: Shell, status: int, streams: Redirects) -> int:
    """Run the EXIT trap where the script is left, and return the status to leave with."""
    shell.state.streams = streams
    return await shell.leave(status & 255)


@plain
async def _return(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Leave a function or a sourced file."""
    state = shell.state
    if not state.calls:
        told = "return: can only `return' from a function or sourced script"
        await state.complain(told, streams.stderr)
        return MISUSED
    if not arguments:
        raise Returned(state.status)
    try:
        status = whole_number(arguments[0])
    except ValueError:
        await state.complain(f"return: {arguments[0]}: numeric argument required", streams.stderr)
        status = MISUSED
    raise Returned(status)


def _jump(*, again: bool) -> Builtin:
    """Make break or, if the loop goes on *again*, continue."""
    name = "continue" if again else "break"

    @plain
    async def jump(shell: Shell, arguments: list[str], streams: Redirects) -> int:
        state = shell.state
        try:
            levels = whole_number(arguments[0]) if arguments else 1
        except ValueError:
            levels = 0
        if not state.loops:
            await state.complain(f"{name}: only meaningful in a loop", streams.stderr)
            return 0
        if levels < 1:
            await state.complain(f"{name}: {arguments[0]}: loop count out of range", streams.stderr)
            raise LoopJump(state.loops, again=False)
        raise LoopJump(min(levels, state.loops), again=again)

    return jump


@plain
async def _shift(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Drop the first arguments of the script."""
    state = shell.state
    try:
        count = whole_number(arguments[0]) if arguments else 1
    except ValueError:
        count = -1
    if count < 0:
        told = f"shift: {arguments[0]}: a count from 0 on was expected"
        await state.complain(told, streams.stderr)
        return 1
    if len(arguments) > 1:
        await state.complain("shift: too many arguments", streams.stderr)
        raise SkippedLine
    if count > len(state.arguments):
        return 1
    state.arguments = state.arguments[count:]
    return 0


async def _parsed(
    shell: Shell, text: str, name: str, streams: Redirects, first_line: int
) -> tuple[Command, ...] | None:
    """Read commands while the script runs; what is wrong with them is told, and None returned."""
    mistakes: list[ScriptMistake] = []
    extended = bool(shell.state.options.get("extglob"))
    commands = parse_commands(text, mistakes, first_line, extended=extended)
    for mistake in mistakes[:_TOLD]:
        told = f"{name}: line {mistake.line}: {mistake.message}"
        await shell.state.complain(told, streams.stderr)
    return None if mistakes else commands


_TOLD = 20


@plain
async def _eval(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Read the arguments as commands, and run them."""
    text = " ".join(arguments[1:] if arguments[:1] == ["--"] else arguments)
    commands = await _parsed(shell, text, "eval", streams, shell.state.line)
    return MISUSED if commands is None else await shell.evaluate(commands, streams)


@plain
async def _source(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Run the commands of a file in this shell."""
    state = shell.state
    if not arguments:
        await state.complain("source: a file is needed", streams.stderr)
        return MISUSED
    path = arguments[0]
    pipe = next((end for number, end in state.opened if path == f"/dev/fd/{number}"), None)
    if path == "/dev/stdin":
        text = await _contents(shell, streams.stdin)
    elif pipe is not None:
        text = await _contents(shell, pipe)
    else:
        opened = state.host.open(path, "read")
        if isinstance(opened, str):
            if _FIRST_FILES.fullmatch(state.host.absolute(path)) and opened.startswith("No such"):
                return 0
            if opened == _DIRECTORY:
                await state.complain(f"{path}: {opened}", streams.stderr)
            else:
                await state.report(f"{path}: {opened}", streams)
            return 1
        text = await _contents(shell, opened)
    commands = await _parsed(shell, text, path, streams, 1)
    if commands is None:
        return MISUSED
    return await shell.source(commands, path, tuple(arguments[1:]), streams)


async def _contents(shell: Shell, stream: Stream) -> str:
    pieces: list[str] = []
    length = 0
    while chunk := await shell.host.read(stream):
        pieces.append(chunk)
        length += len(chunk)
        if length > VALUE_CHARACTERS:
            raise BoundError(f"source: a file of more than {VALUE_CHARACTERS} characters")
    return "".join(pieces)


@plain
async def _exec(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Run a program in place of the shell; without one, keep the redirections."""
    state = shell.state
    cleared = False
    while arguments and arguments[0] in ("--", "-a", "-c", "-l"):
        option, arguments = arguments[0], arguments[1:]
        cleared = cleared or option == "-c"
        arguments = arguments[1:] if option == "-a" else arguments
    if not arguments:
        state.streams = streams
        state.host.connect(streams)
        # What a process substitution has opened stays open with it.
        state.opened.clear()
        return 0
    if "/" not in arguments[0] and not state.host.has_program(arguments[0]):
        await state.complain(f"exec: {arguments[0]}: not found", streams.stderr)
        raise ScriptExit(await _left(shell, _NOT_FOUND, streams))
    for number, (text, _) in state.traps.items():
        if number >= EXIT_TRAP and text:
            state.host.set_trap(number, "default")
    state.traps.clear()
    env = {} if cleared else state.variables.environment()
    raise ScriptExit(await state.host.run(tuple(arguments), env, streams))


@plain
async def _alias(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Remember aliases, which no script expands, and tell of them."""
    aliases = shell.state.aliases
    status = 0
    for argument in [each for each in arguments if each != "-p"] or sorted(aliases):
        name, sets, value = argument.partition("=")
        if sets:
            aliases[name] = value
        elif name in aliases:
            shown = f"alias {name}={single_quoted(aliases[name])}\n"
            await write_text(shell, streams, "alias", shown)
        else:
            await shell.state.complain(f"alias: {name}: not found", streams.stderr)
            status = 1
    return status


@plain
async def _unalias(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Forget aliases."""
    aliases = shell.state.aliases
    status = 0 if arguments else MISUSED
    for name in [*aliases] if arguments[:1] == ["-a"] else arguments:
        if aliases.pop(name, None) is None:
            await shell.state.complain(f"unalias: {name}: not found", streams.stderr)
            status = 1
    return status


@plain
async def _command(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Run a builtin or a program that a function hides; with -v tell what a name is."""
    letters = ""
    while arguments and re.fullmatch("-[pvV]+", arguments[0]):
        letters += arguments[0][1:]
        arguments = arguments[1:]
    arguments = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not arguments:
        return 0
    if not letters.strip("p"):
        return await shell.perform_command(arguments, streams)
    status = 0 if len(arguments) > 1 else 1
    for name in arguments:
        told = _described(shell, name, long="V" in letters)
        if told:
            status = 0
            await write_text(shell, streams, "command", told + "\n")
        elif "V" in letters:
            await shell.state.complain(f"command: {name}: not found", streams.stderr)
    return status


def _described(shell: Shell, name: str, *, long: bool) -> str:
    """Return what a name is, as ``command -v`` or ``type`` says; "" if it is nothing."""
    kind = kind_of(shell, name)
    if kind == "file":
        path = name if "/" in name else f"/usr/bin/{name}"
        return f"{name} is {path}" if long else path
    if not kind or not long:
        return name if kind else ""
    shown = {"keyword": "a shell keyword", "builtin": "a shell builtin", "function": "a function"}
    return f"{name} is {shown[kind]}"


def kind_of(shell: Shell, name: str) -> str:
    """Return what a name is, in the word of ``type -t``; "" if it is nothing."""
    if name in KEYWORDS:
        return "keyword"
    if name in shell.state.functions:
        return "function"
    if name in BUILTIN_COMMANDS:
        return "builtin"
    return "file" if shell.host.has_program(name) else ""


@plain
async def _hash(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Look for programs; where they are need not be remembered."""
    status = 0
    for name in arguments:
        if not name.startswith("-") and not kind_of(shell, name):
            await shell.state.complain(f"hash: {name}: not found", streams.stderr)
            status = 1
    return status


@plain
async def _type(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Tell what names are."""
    letters = ""
    while arguments and re.fullmatch("-[tpPaf]+", arguments[0]):
        letters += arguments[0][1:]
        arguments = arguments[1:]
    status = 0
    for name in arguments:
        kind = kind_of(shell, name)
        if not kind:
            status = 1
            if not letters:
                await shell.state.complain(f"type: {name}: not found", streams.stderr)
        elif "t" in letters:
            await write_text(shell, streams, "type", kind + "\n")
        elif "p" not in letters.lower() or kind == "file":
            long = "p" not in letters.lower()
            await write_text(shell, streams, "type", _described(shell, name, long=long) + "\n")
    return status


@plain
async def _builtin(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Run a builtin that a function hides."""
    if not arguments:
        return 0
    if arguments[0] not in BUILTIN_COMMANDS:
        await shell.state.complain(f"builtin: {arguments[0]}: not a shell builtin", streams.stderr)
        return 1
    return await shell.perform_command(arguments, streams)


PLAIN_BUILTINS: dict[str, Builtin] = {
    ":": _colon,
    "true": _colon,
    "false": _false,
    "echo": _echo,
    "printf": _printf,
    "test": _test,
    "[": _bracket,
    "exit": _exit,
    "return": _return,
    "break": _jump(again=False),
    "continue": _jump(again=True),
    "shift": _shift,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "exec": _exec,
    "command": _command,
    "builtin": _builtin,
    "type": _type,
    "hash": _hash,
    "alias": _alias,
    "unalias": _unalias,
    **SETTING_BUILTINS,
}

BUILTIN_COMMANDS: dict[str, Builtin] = {
    **PLAIN_BUILTINS,
    **VARIABLE_BUILTINS,
    **READING_BUILTINS,
    **JOB_BUILTINS,
}
"""All that the shell runs itself."""

__all__ = ["BUILTIN_COMMANDS", "CommandError", "ExpansionError", "OpenFile"]
