"""The one property of trio on which the kernel rests.

If this fails after an upgrade of trio, runs are no longer determined by their scenario: turns would
be taken while a task is still runnable, or not at all.
"""

from itertools import pairwise

import trio
from trio.lowlevel import Abort, current_task, reschedule, wait_task_rescheduled


class Asking(trio.abc.Clock):
    """A clock that wakes one parked task each time it is asked how long trio may sleep."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.parked: list[trio.lowlevel.Task] = []

    def start_clock(self) -> None:
        """Start nothing."""

    def current_time(self) -> float:
        """Return a time that stands still."""
        return 0.0

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Note the question, and wake the task that waited longest."""
        self.log.append("asked")
        if self.parked:
            reschedule(self.parked.pop(0))
        return 0.0


def test_the_clock_is_asked_exactly_when_nothing_is_runnable_and_its_wake_runs_next() -> None:
    """Between two steps of our tasks there is exactly one question, and none is left out."""
    clock = Asking()

    async def sleeper(name: str) -> None:
        for _ in range(5):
            clock.parked.append(current_task())
            await wait_task_rescheduled(lambda _: Abort.FAILED)
            clock.log.append(name)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(sleeper, name)

    trio.run(main, clock=clock)
    first = next(place for place, entry in enumerate(clock.log) if entry != "asked")
    steps = clock.log[first - 1 :]
    ours = [place for place, entry in enumerate(steps) if entry != "asked"]
    assert len(ours) == 15
    assert all(second - first == 2 for first, second in pairwise(ours))
    assert all(steps[place - 1] == "asked" for place in ours)
