"""What pytest shows of a failure: the test's own lines, and none of simctl's."""

from typing import Any

from simctl.status import InputError


def hide(excinfo: Any) -> bool:
    """Tell pytest to leave out a frame of simctl's, where its message says all there is to say.

    A module has it as `__tracebackhide__`. Of faults of simctl's own every frame is shown.
    """
    return isinstance(excinfo.value, AssertionError | InputError)
