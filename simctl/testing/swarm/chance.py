"""Where everything random of a swarm comes from: a stream for each seed and purpose.

Only `random`, `choice`, `randint` and `sample` of `random.Random` are used: what they give for a
seed has been the same in every version of Python that simctl runs on, and a test holds it.
"""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance(random.Random):
    """A stream of chance."""

    @classmethod
    def of(cls, seed: int, purpose: str) -> "Chance":
        """Return the stream of a seed for one purpose: others do not change what it gives."""
        return cls(f"swarm {seed} {purpose}")

    def likely(self, odds: float) -> bool:
        """Return whether something happens that has these odds."""
        return self.random() < odds

    def some(self, items: Sequence[T], odds: float) -> list[T]:
        """Return those of the items that chance takes, each with the same odds."""
        return [item for item in items if self.random() < odds]
