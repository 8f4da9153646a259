"""What a job asks for of burst_buffer/lua: the directive lines of its script."""

import re
from collections.abc import Mapping
from typing import Final

import attrs

from simctl.plugins.burst_buffer.records import Pool
from simctl.plugins.burst_buffer.sizes import round_up

_MOST: Final = (1 << 64) - 1
_SIZE: Final = re.compile(r"\s*([-+]?)([0-9]*)([A-Za-z]*)", re.ASCII)
_LETTERS: Final = "kmgtp"
_NODES: Final = ("n", "node", "nodes")


class InvalidError(ValueError):
    """A directive asks for what cannot be."""


@attrs.frozen(kw_only=True)
class Request:
    """The directive lines of a job, and what they come to: bytes of one pool."""

    lines: tuple[str, ...] = ()
    pool: str = ""
    size: int = 0

    @property
    def text(self) -> str:
        """Return the lines as the job's record keeps them."""
        return "\n".join(self.lines)


def with_option(script: str, option: str) -> str:
    """Return a script with the text of ``--bb`` behind its first line, where Slurm puts it."""
    if not option:
        return script
    first, _, rest = script.partition("\n")
    return f"{first}\n{option.strip()}\n{rest}"


def lines_of(script: str, directive: str) -> tuple[str, ...]:
    """Return the directive lines: those that begin with the word, up to the first command.

    A line that ends with a backslash goes on in the next directive line.
    """
    found: list[str] = []
    goes_on = False
    for line in script.splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith(f"#{directive}"):
            continue
        text = line.rstrip()
        if goes_on:
            found[-1] += text.removeprefix(f"#{directive}")
        else:
            found.append(text)
        goes_on = text.endswith("\\")
        if goes_on:
            found[-1] = found[-1][:-1]
    return tuple(found)


def read_request(lines: tuple[str, ...], pools: Mapping[str, Pool] | None) -> Request:
    """Return what directive lines ask for: sizes are rounded up and added, the last pool counts.

    Without *pools* sizes are not rounded, and every pool is taken.

    Raises:
        InvalidError: A capacity is none, or lacks a pool that there is.
    """
    size, pool = 0, ""
    for line in lines:
        named = _word(line, "pool=")
        if named:
            if pools is not None and named not in pools:
                raise InvalidError(f"{named}: there is no such pool")
            pool = named
        asked = _word(line, "capacity=")
        if asked is None:
            continue
        if not named:
            raise InvalidError("capacity= needs a pool= on its line")
        granularity = pools[named].granularity if pools is not None else 1
        size += _rounded(asked, granularity)
    return Request(lines=lines, pool=pool, size=size & _MOST)


def _word(line: str, key: str) -> str | None:
    """Return what follows a key, up to a blank; None without the key."""
    _, found, rest = line.partition(key)
    if not found:
        return None
    return rest.split(maxsplit=1)[0] if rest and not rest[0].isspace() else ""


def _rounded(text: str, granularity: int) -> int:
    """Return a capacity as a pool gives it; one below zero becomes nothing, as Slurm's sums do."""
    match = _SIZE.match(text)
    assert match is not None
    number = int(match[2] or 0)
    if not number:
        raise InvalidError(f"capacity={text} is no size")
    if match[1] == "-":
        return 0
    unit = match[3].casefold()
    if unit in _NODES:
        return round_up(number * granularity, granularity)
    power = _LETTERS.find(unit[:1]) + 1 if unit and unit[1:] in ("", "b", "ib") else 0
    return round_up(int(number * (1000 if unit[1:] == "b" else 1024) ** power), granularity)
