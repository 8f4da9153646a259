"""Builtins about what the shell and its process are set to, from options to limits and modules."""

from __future__ import annotations

import posixpath
import re

from simctl.stepd.scripts.builtin import (
    MISUSED,
    Argument,
    Builtin,
    Shell,
    plain,
    texts_of,
    write_text,
)
from simctl.stepd.scripts.host import Redirects
from simctl.stepd.scripts.rules import SET_LETTERS, SET_NAMES, SHOPT_NAMES


@plain
async def _set(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Set options of the shell, and its arguments."""
    state = shell.state
    rest = list(arguments)
    while rest and rest[0][:1] in ("-", "+") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            state.arguments, state.replaced = tuple(rest), True
            return 0
        names = [letter for letter in word[1:] if letter != "o"]
        if "o" in word[1:]:
            named = rest.pop(0) if rest else ""
            names.append(SET_NAMES.get(named, "?"))
        for name in names:
            if name not in SET_LETTERS and name not in SET_NAMES.values():
                told = f"set: {word}: no option that is simulated"
                await state.complain(told, streams.stderr)
                return MISUSED
            state.options[name] = word[0] == "-"
    if rest and rest[0] == "-":
        rest = rest[1:]
        state.options["x"] = False
    if rest:
        state.arguments, state.replaced = tuple(rest), True
    return 0


@plain
async def _shopt(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Set or ask for further options."""
    options = shell.state.options
    letters = "".join(each[1:] for each in arguments if each.startswith("-"))
    names = [each for each in arguments if not each.startswith("-")]
    status = 0
    for name in names:
        if name not in SHOPT_NAMES:
            told = f"shopt: {name}: no option that is simulated"
            await shell.state.complain(told, streams.stderr)
            status = 1
        elif "s" in letters or "u" in letters:
            options[name] = "s" in letters
        else:
            status = status or (0 if options.get(name) else 1)
            if "q" not in letters:
                shown = "on" if options.get(name) else "off"
                await write_text(shell, streams, "shopt", f"{name:<15}\t{shown}\n")
    return status


@plain
async def _cd(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Change the working directory, and with it PWD and OLDPWD."""
    state = shell.state
    while arguments and arguments[0] in ("--", "-P", "-L"):
        arguments = arguments[1:]
    wanted = arguments[0] if arguments else state.look_up("HOME") or ""
    target = (state.look_up("OLDPWD") or "") if wanted == "-" else wanted
    if len(arguments) > 1 or (not target and not arguments) or (wanted == "-" and not target):
        wrong = "too many arguments" if len(arguments) > 1 else "HOME or OLDPWD is not set"
        await state.complain(f"cd: {wrong}", streams.stderr)
        return 1
    before = state.look_up("PWD") or "/"
    path = posixpath.normpath(posixpath.join(before, target))
    path = path[1:] if path.startswith("//") else path
    if error := state.host.chdir(path):
        await state.complain(f"cd: {target}: {error}", streams.stderr)
        return 1
    state.variables.set("OLDPWD", before)
    state.variables.set("PWD", path)
    if wanted == "-":
        await write_text(shell, streams, "cd", f"{path}\n")
    return 0


@plain
async def _pwd(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Write the working directory."""
    return await write_text(shell, streams, "pwd", (shell.state.look_up("PWD") or "/") + "\n")


@plain
async def _umask(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Tell or set which rights new files lack."""
    state = shell.state
    symbolic = arguments[:1] == ["-S"]
    arguments = [each for each in arguments if each not in ("-S", "-p", "--")]
    if arguments:
        if re.fullmatch("[0-7]{1,4}", arguments[0]):
            state.umask = int(arguments[0], 8) & 0o777
        elif not arguments[0][:1].isdecimal() and _RIGHTS.fullmatch(arguments[0]):
            state.umask = _masked(state.umask, arguments[0])
        else:
            told = f"umask: {arguments[0]}: an octal number or rights such as u=rwx,g-w were needed"
            await state.complain(told, streams.stderr)
            return 1
        return 0
    shown = f"{state.umask:04o}"
    if symbolic:
        rights = [(state.umask >> shift & 7) ^ 7 for shift in (6, 3, 0)]
        letters = (
            "".join(c for c, bit in zip("rwx", (4, 2, 1), strict=True) if r & bit) for r in rights
        )
        shown = ",".join(f"{who}={what}" for who, what in zip("ugo", letters, strict=True))
    return await write_text(shell, streams, "umask", shown + "\n")


_RIGHTS = re.compile("(?!,)(?:(?:^|,)[ugoa]*[-+=][rwx]*)+")
_CLASSES = {"u": 0o700, "g": 0o070, "o": 0o007, "a": 0o777}
_BITS = {"r": 0o444, "w": 0o222, "x": 0o111}


def _masked(umask: int, changes: str) -> int:
    """Return a mask after changes of the rights that it leaves."""
    rights = ~umask & 0o777
    for who, sign, letters in re.findall("([ugoa]*)([-+=])([rwx]*)", changes):
        whose = bits = 0
        for letter in who or "a":
            whose |= _CLASSES[letter]
        for letter in letters:
            bits |= _BITS[letter] & whose
        if sign == "=":
            rights &= ~whose
        rights = rights & ~bits if sign == "-" else rights | bits
    return ~rights & 0o777


_LIMITS = {"c": "0", "n": "1024", "s": "8192", "u": "unlimited", "v": "unlimited", "l": "unlimited"}
_LIMITS |= dict.fromkeys("dfmt", "unlimited")


@plain
async def _ulimit(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Tell or set a limit, which nothing in the simulation comes near."""
    state = shell.state
    letter = "f"
    while arguments and arguments[0].startswith("-"):
        letters = arguments[0][1:].replace("S", "").replace("H", "")
        letter, arguments = letters[-1:] or letter, arguments[1:]
    if letter not in _LIMITS:
        await state.complain(f"ulimit: -{letter}: no limit that is simulated", streams.stderr)
        return MISUSED
    if not arguments:
        shown = state.limits.get(letter, _LIMITS[letter])
        return await write_text(shell, streams, "ulimit", shown + "\n")
    value = arguments[0]
    if not (value.isdecimal() or value in ("unlimited", "hard", "soft")):
        await state.complain(f"ulimit: {value}: invalid number", streams.stderr)
        return 1
    state.limits[letter] = "unlimited" if value in ("hard", "soft") else value
    return 0


async def module(shell: Shell, arguments: list[Argument], streams: Redirects) -> int:
    """Stand in for environment modules: what is loaded is remembered, and changes nothing else.

    A program of this name that the scenario describes takes its place.
    """
    texts = texts_of(arguments)
    state = shell.state
    if state.host.has_program("module"):
        argv = ("module", *texts)
        return await state.host.run(argv, state.variables.environment(), streams)
    loaded = [each for each in (state.look_up("LOADEDMODULES") or "").split(":") if each]
    words = [each for each in texts if not each.startswith("-")]
    action, names = (words[0], words[1:]) if words else ("", [])
    match action:
        case "load" | "add" | "try-load":
            loaded = [each for each in loaded if each not in names] + names
        case "unload" | "rm" | "del":
            loaded = [
                each for each in loaded if each not in names and each.split("/")[0] not in names
            ]
        case "swap" | "switch":
            old = names[0].split("/")[0] if names else ""
            loaded = [each for each in loaded if each.split("/")[0] != old] + names[-1:]
        case "purge" | "reset" | "restore":
            loaded = []
        case "use" | "unuse" | "refresh" | "save":
            pass
        case "list":
            lines = [f" {place}) {name}" for place, name in enumerate(loaded, start=1)]
            told = (
                "Currently Loaded Modulefiles:\n" + "\n".join(lines)
                if lines
                else ("No Modulefiles Currently Loaded.")
            )
            await state.host.write(streams.stderr, told + "\n")
        case _:
            await state.complain(f"module: {action or 'an action'}: not simulated", streams.stderr)
            return 1
    variable = state.variables.make("LOADEDMODULES")
    variable.exported = True
    state.variables.set("LOADEDMODULES", ":".join(loaded))
    return 0


SETTING_BUILTINS: dict[str, Builtin] = {
    "set": _set,
    "shopt": _shopt,
    "cd": _cd,
    "pwd": _pwd,
    "umask": _umask,
    "ulimit": _ulimit,
    "module": module,
    "ml": module,
}
