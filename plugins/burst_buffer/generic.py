"""burst_buffer/generic: space that a site's own scripts fill and empty, as in Slurm 15.08."""

from typing import ClassVar

from simctl.plugin import BurstBufferPlugin


class BurstBufferGeneric(BurstBufferPlugin):
    """Give jobs space of a burst buffer that scripts manage."""

    plugin_type: ClassVar[str] = "burst_buffer/generic"
    plugin_name: ClassVar[str] = "burst buffer generic plugin"
