"""The lifecycle points, to be imported by tests: the functions of the guides by their names.

from simctl.testing import points

trace.assert_order(points.switch_p_job_init, points.switch_p_job_attach, step="1.0", node="n1")
"""

from simctl.kernel.pattern import near
from simctl.plugins.points import ALL, OPTIONAL
from simctl.plugins.points.declare import Point


def __getattr__(name: str) -> Point:
    """Return the point of a name; they are declared elsewhere, each once."""
    known = {**OPTIONAL, **ALL}
    if name in known:
        return known[name]
    raise AttributeError(f"no plugin function is called {name!r}{near(name, known)}")


def __dir__() -> list[str]:
    """List the names, as an interpreter completes them."""
    return sorted({**OPTIONAL, **ALL})
