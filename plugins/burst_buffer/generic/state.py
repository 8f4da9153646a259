"""What GetSysState of burst_buffer/generic writes: how much space there is, and who has it."""

import re
from typing import Final

import attrs

from simctl.plugins.burst_buffer.space import (
    STATES,
    BbState,
    Granularity,
    key_of,
    parse_size,
)

_WORD: Final = re.compile(r"([A-Za-z]+)=(\S*)")


@attrs.frozen(kw_only=True)
class Listed:
    """A buffer as the store tells of it; `user` is a uid or a name."""

    user: str
    job_id: int = 0
    name: str = ""
    state: BbState = BbState.ALLOCATED
    size: int = 0

    @property
    def key(self) -> str:
        """Return what the books call it."""
        return key_of(self.job_id, self.name)


@attrs.define(kw_only=True)
class Listing:
    """An answer of GetSysState; `total` is None where it does not say."""

    total: int | None = None
    buffers: list[Listed] = attrs.field(factory=list)
    gone: list[str] = attrs.field(factory=list)
    """What the store was asked about and does not have."""
    unread: list[str] = attrs.field(factory=list)
    """Lines that mean nothing."""


def read_listing(text: str, granularity: Granularity = (1, "bytes")) -> Listing:
    """Read ``TotalSize=``, ``ENOENT=`` and the ``UserID=`` lines; other lines are kept as unread.

    Such a line is ``UserID=1001 JobID=5 State=staged-in Size=10G``, or has a Name and no JobID.
    """
    found = Listing()
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        try:
            _take(line, granularity, found)
        except (ValueError, KeyError):
            found.unread.append(line)
    return found


def _take(line: str, granularity: Granularity, found: Listing) -> None:
    words = {match[1].casefold(): match[2] for match in _WORD.finditer(line)}
    if "totalsize" in words:
        found.total = parse_size(words["totalsize"], granularity)
    elif "enoent" in words:
        found.gone.append(words["enoent"])
    else:
        number = words.get("jobid", "0")
        listed = Listed(
            user=words["userid"],
            job_id=int(number) if number.isascii() and number.isdigit() else _no_job(number),
            name=words.get("name", ""),
            state=STATES[words.get("state", "allocated").casefold().replace("_", "-")],
            size=parse_size(words.get("size", "0"), granularity),
        )
        if not listed.key:
            raise ValueError(f"neither JobID nor Name: {line}")
        found.buffers.append(listed)


def _no_job(text: str) -> int:
    raise ValueError(f"{text} is no job id")
