"""The command awk: its options, its files, and BEGIN and END around them."""

from __future__ import annotations

import re

from simctl.stepd.scripts.escapes import formatted
from simctl.stepd.scripts.tools.awk.parser import Parser
from simctl.stepd.scripts.tools.awk.run import Run
from simctl.stepd.scripts.tools.awk.tree import STATUS, Jump, awk_mistake
from simctl.stepd.scripts.tools.awk.values import (
    Field,
)
from simctl.stepd.scripts.tools.tool import Options, Tool, ToolMistake, lines_of


def check(options: Options) -> None:
    """Refuse programs that are none, or ask for what is not simulated."""
    if "f" not in options:
        Parser(_program(options)).rules()


def _program(options: Options) -> str:
    if not options.operands:
        raise awk_mistake("a program is needed")
    return options.operands[0]


async def awk(tool: Tool, options: Options) -> int:
    """Run a program on the lines of files."""
    if "f" in options:
        text = "\n".join([await tool.text(path) for path in options.all("f")])
        paths = options.operands
    else:
        text, paths = _program(options), options.operands[1:]
    variables: dict[str, str] = {}
    for given in options.all("v"):
        name, equals, value = given.partition("=")
        if not equals or not name.isidentifier():
            raise awk_mistake(f"-v {given}: NAME=VALUE was expected")
        variables[name] = value
    if "F" in options:
        separator = options.get("F")
        variables["FS"] = "\t" if separator == "t" else separator
    run = Run(tool, Parser(text).rules(), variables)
    return await _over(tool, run, paths)


async def _over(tool: Tool, run: Run, paths: tuple[str, ...]) -> int:
    """Run a program on files; an exit in a rule still runs END."""
    status = 0
    try:
        run.begin()
        if any(rule.kind != "BEGIN" for rule in run.rules):
            status = await _read(tool, run, paths)
    except Jump as jump:
        status = max(jump.status, 0)
        if jump.kind != "exit":
            raise awk_mistake(f"`{jump.kind}' in the wrong place") from None
    try:
        run.end()
    except Jump as jump:
        status = jump.status if jump.status >= 0 else status
    await run.flush()
    return status & 255


async def _read(tool: Tool, run: Run, paths: tuple[str, ...]) -> int:
    """Run the rules on each line of the files."""
    status = 0
    assigned = re.compile(r"[A-Za-z_]\w*=")
    files = [path for path in paths if not assigned.match(path)]
    for path in paths if files else (*paths, "-"):
        if assigned.match(path):
            name, _, value = path.partition("=")
            run._set(name, Field(formatted(value)))
            continue
        try:
            text = await tool.text(path, status=STATUS)
        except ToolMistake as mistake:
            await tool.err(str(mistake))
            status = STATUS
            continue
        run.values["FILENAME"] = "" if path == "-" else path
        run.values["FNR"] = 0.0
        for line in lines_of(text):
            run.take_line(line)
    return status
