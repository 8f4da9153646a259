"""checkpoint/none: no checkpoints."""

from typing import ClassVar

from simctl.plugin import CheckpointPlugin


class CheckpointNone(CheckpointPlugin):
    """Keep no record and refuse every checkpoint operation as not supported."""

    __slots__ = ()

    plugin_type: ClassVar[str] = "checkpoint/none"
    plugin_name: ClassVar[str] = "no checkpoints"
    plugin_version: ClassVar[int] = 100
