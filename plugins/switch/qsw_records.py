"""The records of switch/elan: what they hold, how they are packed, how they read."""

from typing import Any, Final

import attrs

from simctl.plugin import Buf
from simctl.plugins.switch import qsnet, records

CYCLIC: Final = 1
BLOCK: Final = 2
JOBINFO: Final = records.Form(
    magic=0xF00FF00E,
    bad_magic=qsnet.EBADMAGIC_QSWJOBINFO,
    bad_version=qsnet.EVERSION_QSW,
    damaged=qsnet.EUNPACK_QSW,
    name="QSW jobinfo",
)
LIBSTATE: Final = records.Form(
    magic=0xF00FF00F,
    bad_magic=qsnet.EBADMAGIC_QSWLIBSTATE,
    bad_version=qsnet.EVERSION_QSW,
    damaged=qsnet.EBADMAGIC_QSWLIBSTATE,
    name="QSW libstate",
)


@attrs.define(kw_only=True)
class ElanJobInfo:
    """The credential of a step: its program, and the capability that its tasks share.

    `prognum` is 0 until it is built. Contexts run from `low_context` to `high_context` on every
    node of the Elan ids from `low_node` to `high_node`; `bitmap` has a bit, lowest first, for each
    place a task may have there, and `entries` are set.
    """

    magic: int = JOBINFO.magic
    prognum: int = 0
    user_key: tuple[int, int, int, int] = (0, 0, 0, 0)
    layout: int = 0
    low_context: int = 0
    high_context: int = 0
    low_node: int = 0
    high_node: int = 0
    entries: int = 0
    rail_mask: int = 1
    bitmap: bytes = b""

    def simctl_state(self) -> dict[str, Any]:
        """Return its fields, the bitmap as hexadecimal digits."""
        return attrs.asdict(self) | {"bitmap": self.bitmap.hex()}


@attrs.frozen(kw_only=True)
class Live:
    """A step that has contexts at present, and the interval of nodes it has them on."""

    prognum: int
    low_context: int
    high_context: int
    low_node: int
    high_node: int

    @classmethod
    def of(cls, info: ElanJobInfo) -> "Live":
        """Return what a credential says of its step."""
        return cls(
            prognum=info.prognum,
            low_context=info.low_context,
            high_context=info.high_context,
            low_node=info.low_node,
            high_node=info.high_node,
        )


def bitmap_of(ids: list[int], tasks: list[int], *, cyclic: bool) -> bytes:
    """Set a bit for each task's place in the interval of nodes."""
    width = ids[-1] - ids[0] + 1
    slots = max(tasks)
    bits = bytearray((width * slots + 7) // 8)
    for node, count in zip(ids, tasks, strict=True):
        for slot in range(count):
            place = node - ids[0]
            bit = place + slot * width if cyclic else place * slots + slot
            bits[bit // 8] |= 1 << bit % 8
    return bytes(bits)


def write_jobinfo(info: ElanJobInfo, buffer: Buf) -> None:
    """Append the body of a credential."""
    buffer.pack32(info.prognum)
    for key in info.user_key:
        buffer.pack32(key)
    buffer.pack16(info.layout)
    for number in (info.low_context, info.high_context, info.low_node, info.high_node):
        buffer.pack32(number)
    buffer.pack32(info.entries)
    buffer.pack32(info.rail_mask)
    buffer.packmem(info.bitmap)


def read_jobinfo(buffer: Buf) -> ElanJobInfo:
    """Take the body of a credential."""
    return ElanJobInfo(
        prognum=buffer.unpack32(),
        user_key=(buffer.unpack32(), buffer.unpack32(), buffer.unpack32(), buffer.unpack32()),
        layout=buffer.unpack16(),
        low_context=buffer.unpack32(),
        high_context=buffer.unpack32(),
        low_node=buffer.unpack32(),
        high_node=buffer.unpack32(),
        entries=buffer.unpack32(),
        rail_mask=buffer.unpack32(),
        bitmap=buffer.unpackmem(),
    )


def read_state(buffer: Buf) -> tuple[int, list[Live]]:
    """Take the body of saved state: the last program, and the live steps."""
    last = buffer.unpack32()
    return last, [_read_live(buffer) for _ in range(buffer.unpack32())]


def _read_live(buffer: Buf) -> Live:
    return Live(
        prognum=buffer.unpack32(),
        low_context=buffer.unpack32(),
        high_context=buffer.unpack32(),
        low_node=buffer.unpack32(),
        high_node=buffer.unpack32(),
    )


def describe(info: ElanJobInfo) -> str:
    """Return a credential as a line of text."""
    if getattr(info, "magic", None) != JOBINFO.magic:
        return "prognum ? (no credential)\n"
    kind = {CYCLIC: "CYCLIC", BLOCK: "BLOCK"}.get(info.layout, "NONE")
    return (
        f"prognum {info.prognum} cap {{{kind} contexts {info.low_context:#x}-"
        f"{info.high_context:#x} nodes {info.low_node}-{info.high_node} "
        f"entries {info.entries} rails {info.rail_mask:#x}}}\n"
    )
