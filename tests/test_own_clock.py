"""The kernel under somebody else's clock."""

import pytest

from simctl.kernel.turns import Kernel


@pytest.mark.trio
async def test_the_kernel_refuses_to_run_under_another_clock() -> None:
    """It would wait for ever: only its own clock takes turns."""
    with pytest.raises(RuntimeError, match="clock=kernel"):
        await Kernel().run(lambda: None)
