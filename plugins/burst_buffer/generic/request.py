"""What a job asks of burst_buffer/generic: a text with ``size=``, from --bb or ``#BB`` lines."""

import re
from typing import Final

from simctl.plugins.burst_buffer.space import Granularity, parse_size, round_up

_SIZE: Final = re.compile(r"(?<![\w-])size=([^\s,;]*)", re.IGNORECASE)
_DIRECTIVE: Final = re.compile(r"#BB\s+\S")


def comments(script: str) -> list[str]:
    """Return the lines of a script's leading comments, whole, but for the one of ``#!``."""
    found: list[str] = []
    for number, line in enumerate(script.splitlines()):
        if not line.startswith("#"):
            break
        if number or not line.startswith("#!"):
            found.append(line)
    return found


def request_text(given: str, script: str) -> str:
    """Return what --bb gave, and what the ``#BB`` lines of the script add to it."""
    lines = [line.rstrip() for line in comments(script) if _DIRECTIVE.match(line)]
    said = given.splitlines()
    fresh = [line for line in lines if line not in said]
    return "\n".join([given, *fresh] if given else fresh)


def requested(text: str, granularity: Granularity) -> int:
    """Return how many bytes a request is about, rounded up to whole granules; 0 for none.

    Of several sizes the first counts.

    Raises:
        OverflowError: The size is negative.
        ValueError: It is no size.
    """
    match = _SIZE.search(text)
    if match is None:
        return 0
    if match[1].startswith("-"):
        raise OverflowError(f'a burst buffer cannot have the size "{match[1]}"')
    return round_up(parse_size(match[1], granularity), granularity)
