"""What the bundled checkpoint plugins keep of a job or step, and how it is stored.

Stored is the number of the plugin, the size of what follows, and that: a plugin that finds
another's number skips it and keeps its fresh record.
"""

from typing import Final, Self

import attrs

from simctl.plugin import Buf, SlurmError, errno

BLCR_ID: Final = 2
OMPI_ID: Final = 3

_COUNTER: Final = 0xFFFF

INTERRUPTED: Final = "slurmctld was restarted during the checkpoint"


@attrs.define(kw_only=True, eq=False)
class CheckRecord:
    """The checkpoints of a job or step.

    `disabled` counts how often they were disabled more than enabled; `time_stamp` is when an
    operation began, in seconds since the epoch; `error_code` and `error_msg` are the last one's.
    """

    disabled: int = 0
    time_stamp: int = 0
    error_code: int = 0
    error_msg: str = ""

    def disable(self) -> None:
        """Count one more that wants no checkpoints."""
        self.disabled = (self.disabled + 1) & _COUNTER

    def enable(self, *, wraps: bool) -> None:
        """Take one back; as real Slurm has it the counter *wraps* below 0, else it stays there."""
        if self.disabled or wraps:
            self.disabled = (self.disabled - 1) & _COUNTER

    def check_enabled(self) -> None:
        """Refuse while checkpoints are disabled.

        Raises:
            SlurmError: ESLURM_DISABLED.
        """
        if self.disabled:
            raise SlurmError(errno.ESLURM_DISABLED)

    def copy(self) -> Self:
        """Return a copy of it."""
        return attrs.evolve(self)

    def begin(self, now_s: int) -> None:
        """Note that an operation begins: what the last one left is forgotten."""
        self.time_stamp = now_s
        self.error_code = 0
        self.error_msg = ""

    def note(self, error_code: int, error_msg: str) -> None:
        """Keep an error if it is the highest so far."""
        if error_code > self.error_code:
            self.error_code = error_code
            self.error_msg = error_msg

    def pack(self, body: Buf) -> None:
        """Append what is stored of it."""
        body.pack16(self.disabled)
        body.packtime(self.time_stamp)
        self.pack_error(body)

    def unpack(self, body: Buf) -> None:
        """Read what is stored of it; a checkpoint that was under way has come to nothing."""
        self.disabled = body.unpack16()
        self.time_stamp = body.unpacktime()
        self.unpack_error(body)
        if self.time_stamp:
            self.interrupted()

    def interrupted(self) -> None:
        """Forget an operation that no caller waits for any more."""
        self.time_stamp = 0
        self.note(errno.EINTR, INTERRUPTED)

    def pack_error(self, body: Buf) -> None:
        """Append the last operation's error."""
        body.pack32(self.error_code)
        body.packstr(self.error_msg)

    def unpack_error(self, body: Buf) -> None:
        """Read the last operation's error."""
        self.error_code = body.unpack32()
        self.error_msg = body.unpackstr() or ""


def store(plugin_id: int, record: CheckRecord | None, buffer: Buf) -> None:
    """Append a record to *buffer*; where there is none, an empty one of no plugin."""
    if record is None:
        buffer.pack16(0)
        buffer.packmem(b"")
        return
    body = Buf()
    record.pack(body)
    buffer.pack16(plugin_id)
    buffer.packmem(body.data())


def load(plugin_id: int, record: CheckRecord, buffer: Buf) -> None:
    """Fill *record* in from *buffer*; what another plugin has stored is skipped.

    Raises:
        SlurmError: What is there is damaged.
    """
    found = buffer.unpack16()
    stored = buffer.unpackmem()
    if found == plugin_id:
        record.unpack(Buf(stored))


__all__ = ["BLCR_ID", "INTERRUPTED", "OMPI_ID", "CheckRecord", "load", "store"]
