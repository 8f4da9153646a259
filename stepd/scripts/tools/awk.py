"""awk: stub until written."""

from __future__ import annotations

from simctl.stepd.scripts.tools.tool import Options, Tool, ToolMistake


def check(options: Options) -> None:
    raise ToolMistake("awk: not simulated", 2)


async def awk(tool: Tool, options: Options) -> int:
    raise ToolMistake("awk: not simulated", 2)
