"""One event of a trace: what happened, when, in which process, and because of what."""

from typing import Any, Final, Literal

import msgspec

Kind = Literal["plugin", "message", "state", "process", "script", "command", "fault", "log"]
KINDS: tuple[Kind, ...] = (
    "plugin",
    "message",
    "state",
    "process",
    "script",
    "command",
    "fault",
    "log",
)


END: Final = "end"
"""The name of the last event of a trace, of kind `log`."""


class Event(msgspec.Struct, omit_defaults=True, gc=False, kw_only=True):
    """A line of a trace; fields are written in this order and left out where not applicable.

    `msgspec.UNSET` stands for "not applicable"; `node` is `None` for the controller, which is on no
    compute node, and that `null` is written. `time_us` and `t0_us` are virtual microseconds;
    `cause` and `enter` are the `seq` of other events. `needs` are those without which this one
    would not have come under any schedule, where that is not just its `cause`.
    """

    seq: int
    time_us: int
    t0_us: int | msgspec.UnsetType = msgspec.UNSET
    kind: Kind
    name: str
    phase: str | msgspec.UnsetType = msgspec.UNSET
    daemon: str | msgspec.UnsetType = msgspec.UNSET
    node: str | None | msgspec.UnsetType = msgspec.UNSET
    role: str | msgspec.UnsetType = msgspec.UNSET
    pid: int | msgspec.UnsetType = msgspec.UNSET
    uid: int | msgspec.UnsetType = msgspec.UNSET
    euid: int | msgspec.UnsetType = msgspec.UNSET
    job: int | msgspec.UnsetType = msgspec.UNSET
    array_job: int | msgspec.UnsetType = msgspec.UNSET
    array_task: int | msgspec.UnsetType = msgspec.UNSET
    step: str | msgspec.UnsetType = msgspec.UNSET
    task: int | msgspec.UnsetType = msgspec.UNSET
    plugin: str | msgspec.UnsetType = msgspec.UNSET
    peer: str | msgspec.UnsetType = msgspec.UNSET
    args: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    rc: Any = msgspec.UNSET
    errno: str | msgspec.UnsetType = msgspec.UNSET
    enter: int | msgspec.UnsetType = msgspec.UNSET
    cause: int | msgspec.UnsetType = msgspec.UNSET
    needs: tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET
