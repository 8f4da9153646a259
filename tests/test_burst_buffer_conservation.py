"""Random clusters with burst buffers: no byte is given twice, none is lost, no order is broken.

`bb_random` makes the scenarios and checks every event; run by itself it does so as often as asked.
"""

import pytest

from tests.bb_random import checked, trace_of

_BLOCK = 30


@pytest.mark.parametrize("block", range(2))
def test_whatever_happens_space_is_kept_and_comes_back(block: int) -> None:
    """Jobs of all kinds, cancels, requeues, crashes, restarts, failing and slow functions.

    What is granted of a pool never exceeds it. Nothing runs before its data are there, nothing is
    torn down before they are out, nothing is staged for who cannot run. In the end jobs are gone,
    all space is back but that of persistent buffers, and slurmctld's books say the same.
    """
    for seed in range(block * _BLOCK, (block + 1) * _BLOCK):
        problems = checked(seed)
        assert not problems, f"seed {seed}: {problems[0]} (and {len(problems) - 1} more)"


@pytest.mark.parametrize("seed", [4, 5, 6, 7, 10, 18])
def test_one_seed_is_one_trace(seed: int) -> None:
    """The same scenario, seed and schedule give the same bytes."""
    assert trace_of(seed) == trace_of(seed)
