"""Schedule tokens: short texts that repeat a schedule exactly.

A token holds how a run deviated from first come, first served with a turn for each message and
process: `t1-c17.2-c40.1-m12.150-r9c41b2-k3f2a` says that at choice point 17 the third in line went
first, at 40 the second, and that message 12 between hosts took 150 microseconds longer. `calls`
after `t1` has a choice point before every plugin call. `r` is a fingerprint of the run, `k` a check
of the token itself.
"""

import re
from typing import ClassVar, Final
from zlib import crc32

import attrs

VERSION: Final = "t1"
_LOOKS_LIKE: Final = re.compile(r"t\d+-.*")
_PART: Final = re.compile(r"([cm])([1-9]\d{0,8})\.([1-9]\d{0,11})")
_RUN: Final = re.compile(r"r([0-9a-f]{6})")
_CHECK_DIGITS: Final = 4
_LATEST_US: Final = 1_000_000 * 86_400


class TokenError(ValueError):
    """A text that is no token, or no longer one."""


def is_token(text: str) -> bool:
    """Return whether a text means to be a token, of whatever version, damaged or not."""
    return _LOOKS_LIKE.fullmatch(text) is not None


@attrs.frozen(kw_only=True)
class Token:
    """How a run deviated from first come, first served."""

    MASK: ClassVar[int] = 0xFFFFFF
    """What of a run's fingerprint a token has room for."""

    calls: bool
    choices: tuple[tuple[int, int], ...]
    """Choice points by number, and the place in line, from 0, of who went first."""
    late: tuple[tuple[int, int], ...]
    """Messages between hosts by number, and by how many microseconds each was late."""
    run: int

    @property
    def deviations(self) -> int:
        """Count what differs from first come, first served."""
        return len(self.choices) + len(self.late)

    def text(self) -> str:
        """Return the token as people pass it on."""
        parts = [
            VERSION,
            *(["calls"] if self.calls else []),
            *(f"c{point}.{place}" for point, place in self.choices),
            *(f"m{message}.{late_us}" for message, late_us in self.late),
            f"r{self.run:06x}",
        ]
        body = "-".join(parts)
        return f"{body}-k{_check(body)}"

    @classmethod
    def parse(cls, text: str) -> "Token":
        """Read a token.

        Raises:
            TokenError: It is damaged, or of another version.
        """
        version, *parts = text.split("-")
        if version != VERSION:
            raise TokenError(
                f"it is of version {version[1:]}, and this simctl reads version {VERSION[1:]}"
            )
        body, _, check = text.rpartition("-k")
        if check != _check(body):
            raise TokenError("it is damaged: its check does not fit; copy all of it once more")
        parts.pop()
        calls = parts[:1] == ["calls"]
        numbers: dict[str, dict[int, int]] = {"c": {}, "m": {}}
        run = None
        for part in parts[calls:]:
            if match := _PART.fullmatch(part):
                numbers[match[1]][int(match[2])] = int(match[3])
            elif (match := _RUN.fullmatch(part)) and run is None:
                run = int(match[1], 16)
            else:
                raise TokenError(f"it is damaged: {part!r} says nothing")
        if run is None or any(late_us > _LATEST_US for late_us in numbers["m"].values()):
            raise TokenError("it is damaged: it lacks a part, or has one out of range")
        return cls(
            calls=calls,
            choices=tuple(numbers["c"].items()),
            late=tuple(numbers["m"].items()),
            run=run,
        )


def _check(body: str) -> str:
    return f"{crc32(body.encode()) & 0xFFFF:0{_CHECK_DIGITS}x}"
