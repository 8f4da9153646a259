"""Every lifecycle point: a function of the three guides, declared once.

`ALL` maps each function's name to its point. From a declaration come the type of the call, the
check of a plugin's signature, the check of the calling process and user, and the trace line.
"""

from typing import Final

from simctl.plugins.points import checkpoint, switch
from simctl.plugins.points.declare import Point

ALL: Final[dict[str, Point]] = {
    value.name: value
    for module in (switch, checkpoint)
    for value in vars(module).values()
    if isinstance(value, Point)
}

BY_CLASS: Final[dict[str, tuple[Point, ...]]] = {
    plugin_class: tuple(point for point in ALL.values() if point.plugin_class == plugin_class)
    for plugin_class in ("switch", "checkpoint")
}
