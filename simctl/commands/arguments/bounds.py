"""Numbers of absurd length, which no command is asked to read."""

import re
from collections.abc import Awaitable, Iterable
from typing import Final

from simctl.limits import DIGITS
from simctl.site import CommandCall, CommandMain

_TOO_LONG: Final = re.compile(rf"\d{{{DIGITS + 1},}}")


def absurd_number(words: Iterable[str]) -> str:
    """Say what is wrong with a number that is too long; nothing if none is."""
    found = _TOO_LONG.search("\n".join(words))
    if found is not None:
        return f"a number of {len(found[0])} digits; one has {DIGITS} at most"
    return ""


def bounded(main: CommandMain) -> CommandMain:
    """Return a command that refuses such a number among its words and variables."""

    def command(call: CommandCall) -> Awaitable[int]:
        problem = absurd_number(call.argv) or absurd_number(call.env.values())
        return _refuse(call, problem) if problem else main(call)

    return command


async def _refuse(call: CommandCall, problem: str) -> int:
    call.err(f"{call.argv[0]}: error: {problem}")
    return 1
