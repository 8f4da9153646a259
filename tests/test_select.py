"""Which nodes jobs take, and how much of them: pure choices, worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.ctld.choose.select import choose
from simctl.wire.ids import INFINITE
from simctl.wire.resources import ALL_MEMORY, Demand, Room, Share, parse_gres, split_gres, tasks_in


def rooms(*cpus: int, memory_mb: int = 100, gres: str = "") -> list[Room]:
    """Return rooms with so many cpus."""
    return [
        Room(index=index, cpus=count, memory_mb=memory_mb, gres=parse_gres(gres))
        for index, count in enumerate(cpus)
    ]


def demand(tasks: int, nodes: int = 1, most: int = INFINITE, **more: object) -> Demand:
    """Return the demand of a job of so many tasks."""
    return Demand(num_tasks=tasks, min_nodes=nodes, max_nodes=most, **more)  # type: ignore[arg-type]


def cpus(shares: tuple[Share, ...]) -> dict[int, int]:
    """Return the cpus on each node that was chosen."""
    return {share.index: share.cpus for share in shares}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        # As recorded: one cpu on each node first, then node after node is filled.
        (demand(4, 2, 2), {0: 3, 1: 1}),
        (demand(8, 4, 4), {0: 4, 1: 2, 2: 1, 3: 1}),
        (demand(5, 3, 3), {0: 3, 1: 1, 2: 1}),
        (demand(8, 4, 4, ntasks_per_node=2), {0: 2, 1: 2, 2: 2, 3: 2}),
        # As many nodes as the tasks need, where nobody says how many.
        (demand(1), {0: 1}),
        (demand(6), {0: 4, 1: 2}),
        (demand(3, cpus_per_task=2), {0: 4, 1: 2}),
        # A task's cpus are on one node: three of 3 cpus need three nodes of 4.
        (demand(3, cpus_per_task=3), {0: 3, 1: 3, 2: 3}),
        (demand(2, whole=True), {0: 4}),
        (demand(1, cpus_per_node=3), {0: 3}),
        (demand(1, required=0b100), {2: 1}),
        (demand(6, required=0b100), {0: 4, 2: 2}),
        (demand(1, excluded=0b11), {2: 1}),
        (demand(17), {}),
        (demand(1, 5), {}),
        (demand(5, most=1), {}),
        (demand(1, cpus_per_task=5), {}),
        (demand(1, required=0b10000), {}),
    ],
)
def test_four_nodes_of_four_cpus(wanted: Demand, expected: dict[int, int]) -> None:
    """What a job takes of a cluster that is all idle."""
    assert cpus(choose(wanted, rooms(4, 4, 4, 4))) == expected


@pytest.mark.parametrize(
    ("there", "wanted", "expected"),
    [
        # In node order, a cpu here and a cpu there.
        ((1, 0, 4), demand(3), {0: 1, 2: 2}),
        # Where the first ones would be too many nodes, those that take most.
        ((1, 4, 2), demand(4, 1, 1), {1: 4}),
        ((1, 1, 4, 4), demand(6, 2, 2), {2: 4, 3: 2}),
        ((1, 2, 3), demand(6), {0: 1, 1: 2, 2: 3}),
        ((1, 2, 3), demand(7), {}),
        ((2, 2, 2), demand(6, 3, 3, required=0b100), {0: 2, 1: 2, 2: 2}),
    ],
)
def test_nodes_that_are_partly_taken(
    there: tuple[int, ...], wanted: Demand, expected: dict[int, int]
) -> None:
    """What a job takes of what is left."""
    assert cpus(choose(wanted, rooms(*there))) == expected


def test_memory_is_asked_of_each_node_or_of_each_cpu() -> None:
    """100 MB: two cpus of 40 MB each fit, and one job of 60 MB a node."""
    by_cpu = demand(3, memory_per_cpu_mb=40)
    assert [(s.cpus, s.memory_mb) for s in choose(by_cpu, rooms(4, 4))] == [(2, 80), (1, 40)]
    by_node = demand(5, memory_per_node_mb=60)
    assert [(s.cpus, s.memory_mb) for s in choose(by_node, rooms(4, 4))] == [(4, 60), (1, 60)]
    assert choose(demand(1, memory_per_node_mb=101), rooms(4)) == ()
    everything = choose(demand(1, memory_per_node_mb=ALL_MEMORY), rooms(4))
    assert [share.memory_mb for share in everything] == [100]


def test_generic_resources_are_asked_of_each_node_by_name_or_by_type() -> None:
    """`gpu:2` takes any types in their order, `gpu:b:1` that type alone."""
    left = {"gpu:a": 1, "gpu:b": 2}
    assert split_gres({"gpu": 2}, left) == {"gpu:a": 1, "gpu:b": 1}
    assert split_gres({"gpu:b": 2}, left) == {"gpu:b": 2}
    assert split_gres({"gpu:b": 1, "gpu": 2}, left) == {"gpu:b": 2, "gpu:a": 1}
    assert split_gres({"gpu:b": 2, "gpu": 1}, left) == {"gpu:b": 2, "gpu:a": 1}
    assert split_gres({"gpu:b": 2, "gpu": 2}, left) is None
    assert split_gres({"gpu": 4}, left) is None
    assert split_gres({"disk": 1}, left) is None
    wanted = demand(2, 2, gres={"gpu": 1})
    assert [share.gres for share in choose(wanted, rooms(4, 4, gres="gpu:1"))] == [
        {"gpu": 1},
        {"gpu": 1},
    ]
    assert choose(demand(1, gres={"gpu": 2}), rooms(4, gres="gpu:1")) == ()


@pytest.mark.parametrize("wrong", ["gpu:x:y:1", ":1", "1gpu", "gpu:1,gpu:2", "gpu:-1"])
def test_what_is_no_generic_resource_is_refused(wrong: str) -> None:
    """A name, a type, a count."""
    with pytest.raises(ValueError, match=r"generic resource|given twice"):
        parse_gres(wrong)


ROOMS = st.lists(
    st.builds(lambda cpus, memory: (cpus, memory), st.integers(0, 6), st.integers(0, 100)),
    min_size=1,
    max_size=6,
)
DEMANDS = st.builds(
    lambda tasks, nodes, more, cpus, memory: demand(
        max(tasks, nodes), nodes, nodes + more, cpus_per_task=cpus, memory_per_node_mb=memory
    ),
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(0, 60),
)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(ROOMS, DEMANDS)
def test_a_choice_fits_and_is_made_whenever_there_is_one(
    there: list[tuple[int, int]], wanted: Demand
) -> None:
    """Nothing is taken that is not there; who gets nothing could not have been served."""
    nodes = [
        Room(index=index, cpus=cpus, memory_mb=memory, gres={})
        for index, (cpus, memory) in enumerate(there)
    ]
    shares = choose(wanted, nodes)
    fits = sorted((tasks_in(wanted, room) for room in nodes), reverse=True)
    fits = [fit for fit in fits if fit]
    enough = sum(fits[: wanted.max_nodes]) >= wanted.num_tasks and len(fits) >= wanted.min_nodes
    assert bool(shares) == enough
    if shares:
        assert wanted.min_nodes <= len(shares) <= wanted.max_nodes
        tasks = sum(share.cpus // wanted.cpus_per_task for share in shares)
        assert tasks >= wanted.num_tasks
        assert all(0 < share.cpus <= nodes[share.index].cpus for share in shares)
        assert all(share.memory_mb <= nodes[share.index].memory_mb for share in shares)
