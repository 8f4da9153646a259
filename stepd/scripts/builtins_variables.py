"""The builtins about variables: export, declare, local, readonly, unset, let."""

from __future__ import annotations

import re

import attrs

from simctl.stepd.scripts.arithmetic import ArithmeticMistake
from simctl.stepd.scripts.assigning import Declared, assign
from simctl.stepd.scripts.builtin import Argument, Builtin, Shell, plain
from simctl.stepd.scripts.host import Redirects
from simctl.stepd.scripts.printing import double_quoted, quoted_key
from simctl.stepd.scripts.state import BadSubscriptError, CommandError
from simctl.stepd.scripts.variables import ReadonlyError, Variable, in_order

_MISUSED = 2
_DECLARED = re.compile(r"([A-Za-z_]\w*)(?:\[([^]]*)\])?(?:(\+?)=(.*))?", re.ASCII | re.DOTALL)
_OPTION = re.compile(r"[-+][A-Za-z]+")
_KNOWN = "aAilruxgpfF"


@attrs.define(kw_only=True)
class _Wanted:
    """The options of a declaration."""

    on: str = ""
    off: str = ""


def _options(arguments: list[Argument]) -> tuple[_Wanted, list[Argument]]:
    """Take the options off the arguments."""
    wanted = _Wanted()
    rest = list(arguments)
    while rest and isinstance(rest[0], str) and _OPTION.fullmatch(rest[0]):
        word = str(rest.pop(0))
        if word[0] == "-":
            wanted.on += word[1:]
        else:
            wanted.off += word[1:]
    if rest and rest[0] == "--":
        rest.pop(0)
    return wanted, rest


def _declared(argument: Argument) -> Declared | None:
    """Return what an argument declares; None if it is no name."""
    if isinstance(argument, Declared):
        return argument
    found = _DECLARED.fullmatch(argument)
    if not found:
        return None
    return Declared(name=found[1], subscript=found[2], append=bool(found[3]), text=found[4])


async def _declare_all(
    shell: Shell,
    name: str,
    arguments: list[Argument],
    wanted: _Wanted,
    streams: Redirects,
    *,
    is_local: bool,
) -> int:
    """Declare variables, with attributes and values."""
    state = shell.state
    status = 0
    for argument in arguments:
        given = _declared(argument)
        if given is None or (given.subscript is not None and name in ("export", "readonly")):
            await state.complain(f"{name}: `{argument}': not a valid identifier", streams.stderr)
            status = 1
            continue
        try:
            make = state.variables.make_local if is_local else state.variables.make
            if not is_local and "g" in wanted.on:
                scope = state.variables.scopes[0].variables
                variable = scope.setdefault(given.name, Variable())
            else:
                variable = make(given.name)
                if is_local and given.name == "OPTIND":
                    state.option_place = 0
            _set_attributes(variable, given, wanted, is_local=is_local)
            if given.text is not None or given.elements is not None:
                await assign(given, state)
            if "r" in wanted.on:
                variable.readonly = True
        except (BadSubscriptError, ReadonlyError, CommandError) as error:
            # These are the builtin's own, all others the shell's.
            if name not in ("declare", "local") or isinstance(error, BadSubscriptError):
                await state.report(str(error), streams)
            else:
                await state.complain(f"{name}: {error}", streams.stderr)
            status = 1
    return status


def _set_attributes(
    variable: Variable, given: Declared, wanted: _Wanted, *, is_local: bool
) -> None:
    kinds = ("indexed", "associative")
    is_array = isinstance(variable.value, dict) or variable.keyed or variable.indexed
    if is_array and ("a" if variable.keyed else "A") in wanted.on:
        has, asked = kinds[variable.keyed], kinds[not variable.keyed]
        raise CommandError(f"{given.name}: cannot convert {has} to {asked} array")
    if is_array and {*"aA"} & {*wanted.off}:
        raise CommandError(f"{given.name}: cannot destroy array variables in this way")
    if "A" in wanted.on and not variable.keyed:
        variable.keyed = True
        if isinstance(variable.value, str):
            variable.value = None if is_local else {"0": variable.value}
    variable.indexed = variable.indexed or ("a" in wanted.on and not variable.keyed)
    if ("a" in wanted.on or given.elements is not None) and isinstance(variable.value, str):
        variable.value = {0: variable.value}
    variable.integer = ("i" in wanted.on) or (variable.integer and "i" not in wanted.off)
    variable.exported = ("x" in wanted.on) or (variable.exported and "x" not in wanted.off)
    if "l" in wanted.on or "u" in wanted.on:
        variable.case = "l" if "l" in wanted.on else "u"
    if wanted.off.strip("ix"):
        variable.case = ""


def _check(wanted: _Wanted, known: str) -> str:
    """Return a letter that is not known, or ""."""
    return (wanted.on + wanted.off).strip(known)[:1]


async def _export(shell: Shell, arguments: list[Argument], streams: Redirects) -> int:
    """Show variables to programs, or with -n no longer."""
    wanted, names = _options(arguments)
    if unknown := _check(wanted, "npf"):
        await shell.state.complain(f"export: -{unknown}: invalid option", streams.stderr)
        return _MISUSED
    if "f" in wanted.on:
        missing = [str(each) for each in names if str(each) not in shell.state.functions]
        for each in missing:
            await shell.state.complain(f"export: {each}: not a function", streams.stderr)
        return 1 if missing else 0
    if not names:
        return await _print(shell, shell.state.variables.names(), streams, only="x")
    wanted = _Wanted(off="x") if "n" in wanted.on else _Wanted(on="x")
    return await _declare_all(shell, "export", names, wanted, streams, is_local=False)


async def _readonly(shell: Shell, arguments: list[Argument], streams: Redirects) -> int:
    """Let variables never change again."""
    wanted, names = _options(arguments)
    if unknown := _check(wanted, "aApf"):
        await shell.state.complain(f"readonly: -{unknown}: invalid option", streams.stderr)
        return _MISUSED
    if not names:
        return await _print(shell, shell.state.variables.names(), streams, only="r")
    wanted.on += "r"
    return await _declare_all(shell, "readonly", names, wanted, streams, is_local=False)


async def _declare(shell: Shell, arguments: list[Argument], streams: Redirects) -> int:
    """Declare variables, in a function its own."""
    state = shell.state
    wanted, names = _options(arguments)
    if unknown := _check(wanted, _KNOWN):
        await state.complain(f"declare: -{unknown}: no option that is simulated", streams.stderr)
        return _MISUSED
    if "f" in wanted.on or "F" in wanted.on:
        found = [str(name) for name in names if str(name) in state.functions]
        if "F" in wanted.on and found:
            await state.host.write(streams.stdout, "".join(f"{name}\n" for name in found))
        return 0 if len(found) == len(names) else 1
    if "p" in wanted.on:
        shown = [str(name) for name in names] or state.variables.names()
        return await _print(shell, shown, streams)
    in_function = any(not each.passing for each in state.variables.scopes[1:])
    is_local = in_function and "g" not in wanted.on
    return await _declare_all(shell, "declare", names, wanted, streams, is_local=is_local)


async def _local(shell: Shell, arguments: list[Argument], streams: Redirects) -> int:
    """Declare variables of the function that is running."""
    state = shell.state
    wanted, names = _options(arguments)
    if unknown := _check(wanted, _KNOWN):
        await state.complain(f"local: -{unknown}: no option that is simulated", streams.stderr)
        return _MISUSED
    if all(each.passing for each in state.variables.scopes[1:]):
        await state.complain("local: can only be used in a function", streams.stderr)
        return 1
    return await _declare_all(shell, "local", names, wanted, streams, is_local=True)


async def _print(shell: Shell, names: list[str], streams: Redirects, only: str = "") -> int:
    """Write declarations as bash reads them again."""
    state = shell.state
    status = 0
    for name in names:
        variable = state.variables.find(name)
        if variable is None:
            await state.complain(f"declare: {name}: not found", streams.stderr)
            status = 1
            continue
        if (only == "x" and not variable.exported) or (only == "r" and not variable.readonly):
            continue
        await state.host.write(streams.stdout, _shown(name, variable) + "\n")
    return status


def _shown(name: str, variable: Variable) -> str:
    """Return one line of ``declare -p``."""
    is_array = isinstance(variable.value, dict) or variable.indexed
    letters = "A" if variable.keyed else "a" if is_array else ""
    letters += "i" * variable.integer + variable.case.replace("u", "")
    letters += "r" * variable.readonly + "u" * (variable.case == "u") + "x" * variable.exported
    head = f"declare -{letters or '-'} {name}"
    if variable.value is None:
        return head
    if isinstance(variable.value, str):
        return f"{head}={double_quoted(variable.value)}"
    values = variable.value
    keys = list(in_order(values)) if variable.keyed else sorted(values, key=int)
    inner = " ".join(f"[{quoted_key(str(key))}]={double_quoted(values[key])}" for key in keys)
    return f"{head}=({inner}{' ' * (variable.keyed and bool(keys))})"


@plain
async def _unset(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Forget variables, elements and functions."""
    state = shell.state
    kind = ""
    status = 0
    while arguments and arguments[0] in ("-v", "-f", "--"):
        kind, arguments = kind + arguments[0][1], arguments[1:]
    kind = kind.strip("-")
    if {*kind} == {*"fv"}:
        told = "unset: cannot simultaneously unset a function and a variable"
        await state.complain(told, streams.stderr)
        return 1
    for argument in arguments:
        name, bracket, rest = argument.partition("[")
        try:
            if "f" in kind or ("v" not in kind and state.variables.find(name) is None):
                state.functions.pop(argument, None)
            elif bracket and rest.removesuffix("]") not in ("@", "*"):
                state.variables.unset(name, state.key_of(name, rest.removesuffix("]")))
            else:
                state.variables.unset(name)
                if name == "OPTIND":
                    state.option_place = 0
        except (ReadonlyError, BadSubscriptError) as error:
            await state.complain(f"unset: {error}", streams.stderr)
            status = 1
    return status


@plain
async def _let(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Compute expressions: the last one's value decides, 0 being a failure."""
    state = shell.state
    value = 0
    if not arguments:
        await state.complain("let: expression expected", streams.stderr)
        return 1
    for argument in arguments:
        try:
            value = state.calculate(argument)
        except ArithmeticMistake as error:
            await state.tell(streams)
            await state.complain(str(error) and f"let: {error}", streams.stderr)
            return 1
    return 0 if value else 1


VARIABLE_BUILTINS: dict[str, Builtin] = {
    "export": _export,
    "readonly": _readonly,
    "declare": _declare,
    "typeset": _declare,
    "local": _local,
    "unset": _unset,
    "let": _let,
}
