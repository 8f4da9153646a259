"""Numbers of absurd length, which no command is asked to read."""

import re
from collections.abc import Iterable
from typing import Final

from simctl.limits import DIGITS

_TOO_LONG: Final = re.compile(rf"\d{{{DIGITS + 1},}}")


def absurd_number(words: Iterable[str]) -> str:
    """Say what is wrong with a number that is too long; nothing if none is."""
    found = _TOO_LONG.search("\n".join(words))
    if found is not None:
        return f"a number of {len(found[0])} digits; one has {DIGITS} at most"
    return ""
