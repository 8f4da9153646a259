"""Every lifecycle point: a function of the three guides, declared once.

`ALL` maps each function's name to its point, `BY_CLASS` has them in the guides' order, `OPTIONAL`
has what real Slurm calls besides where a plugin has it, and `OWN` each class's init and fini. From
a declaration come the type of the call, the check of a plugin's signature, the check of the calling
process and user, the trace line, and the page of the docs.
"""

from typing import Final

from simctl.plugins.points import (
    burst_buffer,
    checkpoint,
    cli_filter,
    job_submit,
    switch,
    switch_besides,
)
from simctl.plugins.points.declare import Point
from simctl.plugins.points.own import OWN

__all__ = ["ALL", "BY_CLASS", "OPTIONAL", "OWN"]

_DECLARED: Final[tuple[Point, ...]] = tuple(
    value
    for module in (switch, switch_besides, checkpoint, burst_buffer, job_submit, cli_filter)
    for value in vars(module).values()
    if isinstance(value, Point)
)

ALL: Final[dict[str, Point]] = {point.name: point for point in _DECLARED if not point.optional}

OPTIONAL: Final[dict[str, Point]] = {point.name: point for point in _DECLARED if point.optional}

BY_CLASS: Final[dict[str, tuple[Point, ...]]] = {
    plugin_class: tuple(point for point in ALL.values() if point.plugin_class == plugin_class)
    for plugin_class in ("switch", "checkpoint", "burst_buffer", "job_submit", "cli_filter")
}
