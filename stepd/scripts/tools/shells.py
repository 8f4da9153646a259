"""Builtins of the shell that are programs as well, and the shell that reads its input."""

from __future__ import annotations

from simctl.stepd.scripts.script import parse
from simctl.stepd.scripts.shell import Shell
from simctl.stepd.scripts.tools.tool import Tool
from simctl.stepd.scripts.tree import Script

_MISUSED = 2


async def bash(tool: Tool) -> int:
    """Run the script that is the standard input."""
    script, mistakes = parse(await tool.text())
    for mistake in mistakes:
        await tool.err(f"{tool.argv[0]}: line {mistake.line}: {mistake.message}")
    if mistakes:
        return _MISUSED
    return await Shell(
        script, tool.host, args=tool.argv, env=tool.env, streams=tool.redirects
    ).run()


async def _builtin(tool: Tool) -> int:
    """Run a builtin of the tool's name in a shell of its own."""
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in tool.argv)
    script, _ = parse(quoted)
    assert isinstance(script, Script)
    return await Shell(
        script, tool.host, args=(tool.name,), env=tool.env, streams=tool.redirects
    ).run()


bracket = printf = pwd = _builtin
