"""Bandwidth that transfers share: the arithmetic, and what threads see of it."""

from collections.abc import Awaitable, Callable
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simctl.kernel.bandwidth import Bandwidth, Share
from tests.scripts import Caller, ran_scripts

SECOND = 1_000_000
SIZES = st.integers(min_value=1, max_value=10**12)
ARRIVALS = st.lists(st.tuples(st.integers(0, 10**8), SIZES), min_size=1, max_size=12)


def played(bandwidth: int, arrivals: list[tuple[int, int]]) -> dict[int, int]:
    """Return when each transfer ends, by its place among *arrivals* (moment, size)."""
    share = Share(bandwidth)
    waiting = sorted(range(len(arrivals)), key=lambda place: arrivals[place][0])
    ends: dict[int, int] = {}
    while waiting or len(share):
        due_us = share.due_us()
        at_us = arrivals[waiting[0]][0] if waiting else -1
        if due_us >= 0 and (at_us < 0 or due_us <= at_us):
            share.advance(due_us)
            for key in share.finished():
                share.drop(key)
                ends[key] = due_us
            continue
        share.advance(at_us)
        place = waiting.pop(0)
        share.begin(place, arrivals[place][1])
    return ends


@given(SIZES, st.integers(1, 10**11))
def test_a_single_transfer_takes_its_size_by_the_bandwidth(size: int, bandwidth: int) -> None:
    """Rounded up to the microsecond."""
    assert played(bandwidth, [(5, size)])[0] == 5 - (-size * SECOND // bandwidth)


@given(ARRIVALS, st.integers(1, 10**11))
def test_never_more_is_moved_than_the_bandwidth_allows(
    arrivals: list[tuple[int, int]], bandwidth: int
) -> None:
    """By any moment at which one ends, all that have ended moved no more than was possible."""
    ends = played(bandwidth, arrivals)
    begin_us = min(at_us for at_us, _ in arrivals)
    for end_us in ends.values():
        moved = sum(arrivals[place][1] for place, at in ends.items() if at <= end_us)
        assert Fraction(moved) <= Fraction(bandwidth * (end_us - begin_us), SECOND)


@given(ARRIVALS, st.integers(1, 10**11))
def test_the_link_is_never_idle_while_there_is_something_to_move(
    arrivals: list[tuple[int, int]], bandwidth: int
) -> None:
    """The last ends no later than if all had come last and had been moved one after another."""
    ends = played(bandwidth, arrivals)
    latest_us = max(at_us for at_us, _ in arrivals)
    total = sum(size for _, size in arrivals)
    assert max(ends.values()) <= latest_us - (-total * SECOND // bandwidth) + len(arrivals)


@given(st.lists(SIZES, min_size=1, max_size=10), st.randoms(use_true_random=False))
def test_equal_arrivals_end_alike_in_whatever_order_they_come(
    sizes: list[int], chance: Random
) -> None:
    """Nobody is served first: only the size counts."""
    shuffled = list(enumerate(sizes))
    chance.shuffle(shuffled)
    ends = played(10**9, [(0, size) for size in sizes])
    others = played(10**9, [(0, size) for _, size in shuffled])
    assert {place: others[at] for at, (place, _) in enumerate(shuffled)} == ends


@given(st.lists(SIZES, min_size=2, max_size=10))
def test_the_smaller_of_equal_arrivals_ends_first(sizes: list[int]) -> None:
    """Or at the same moment."""
    ends = played(10**9, [(0, size) for size in sizes])
    by_size = sorted(range(len(sizes)), key=lambda place: sizes[place])
    assert [ends[place] for place in by_size] == sorted(ends.values())


def transfers(*plans: tuple[float, int], bandwidth: int = 100) -> tuple[list[float], Caller]:
    """Run transfers (seconds, bytes) over a link; return when each ended."""
    ends = [0.0] * len(plans)
    links: list[Bandwidth] = []

    def mover(place: int, at_s: float, size: int) -> Callable[[Caller], Awaitable[None]]:
        async def body(caller: Caller) -> None:
            await caller.sleep(at_s)
            if not links:
                links.append(Bandwidth(caller.world.kernel, bandwidth))
            await links[0].move(size, lambda: False)
            ends[place] = caller.now_s

        return body

    bodies = [mover(place, *plan) for place, plan in enumerate(plans)]
    caller, _ = ran_scripts("", *bodies, lingers=False)
    return ends, caller


def test_two_transfers_halve_the_bandwidth_while_they_overlap() -> None:
    """The first moves alone for 5 s, then both share, then the second has all of it again."""
    ends, _ = transfers((0, 1000), (5, 1000))
    assert ends == [15.0, 20.0]


def test_a_transfer_of_nothing_takes_no_time() -> None:
    """It does not slow the others down either."""
    ends, _ = transfers((1, 0), (0, 1000))
    assert ends == [1.0, 10.0]


def test_a_killed_transfer_leaves_its_share_to_the_others() -> None:
    """And the bytes that it has moved are gone."""
    ends: list[float] = []

    async def body(caller: Caller) -> None:
        link = Bandwidth(caller.world.kernel, 100)

        async def move(size: int) -> None:
            await link.move(size, lambda: False)
            ends.append(caller.now_s)

        victim = caller.spawn(lambda: move(10_000))
        caller.spawn(lambda: move(1000))
        await caller.sleep(4)
        caller.world.kernel.kill(victim)

    ran_scripts("", body, lingers=False)
    assert ends == [12.0]


@pytest.mark.parametrize(("bandwidth", "end_s"), [(200, 7.0), (50, 16.0)])
def test_a_changed_bandwidth_counts_from_its_change_on(bandwidth: int, end_s: float) -> None:
    """What was moved before stays moved."""
    ends: list[float] = []

    async def body(caller: Caller) -> None:
        link = Bandwidth(caller.world.kernel, 100)

        async def move() -> None:
            await link.move(1000, lambda: False)
            ends.append(caller.now_s)

        caller.spawn(move)
        await caller.sleep(4)
        link.change(bandwidth)

    ran_scripts("", body, lingers=False)
    assert ends == [end_s]
