"""Task layout: counts and ranks of each node."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.wire.errno import ESLURM_BAD_DIST, ESLURM_BAD_TASK_COUNT, SlurmError
from simctl.wire.layout import Distribution, StepLayout, default_distribution, lay_out

BLOCK, CYCLIC, PLANE = Distribution.BLOCK, Distribution.CYCLIC, Distribution.PLANE


def names(count: int) -> tuple[str, ...]:
    """Return n1, n2 and so on."""
    return tuple(f"n{number}" for number in range(1, count + 1))


def deal(
    cpus: list[int],
    num_tasks: int,
    distribution: Distribution,
    *,
    pack_nodes: bool = False,
    **more: int,
) -> list[list[int]]:
    """Return the ranks of each node."""
    layout = lay_out(
        nodes=names(len(cpus)),
        cpus_per_node=cpus,
        num_tasks=num_tasks,
        distribution=distribution,
        pack_nodes=pack_nodes,
        **more,
    )
    assert layout.tasks == tuple(len(ranks) for ranks in layout.tids)
    return [list(ranks) for ranks in layout.tids]


@pytest.mark.parametrize(
    ("cpus", "num_tasks", "distribution", "ranks"),
    [
        ([1], 1, BLOCK, [[0]]),
        ([3, 1], 4, BLOCK, [[0, 1, 2], [3]]),
        ([2, 2], 4, BLOCK, [[0, 1], [2, 3]]),
        ([2, 2], 4, CYCLIC, [[0, 2], [1, 3]]),
        ([4, 2, 1, 1], 8, BLOCK, [[0, 1, 2, 3], [4, 5], [6], [7]]),
        ([4, 2, 1, 1], 8, CYCLIC, [[0, 4, 6, 7], [1, 5], [2], [3]]),
        ([2, 1, 3], 5, CYCLIC, [[0, 3], [1], [2, 4]]),
        ([2, 1, 3], 5, BLOCK, [[0, 1], [2], [3, 4]]),
        ([3, 1, 1, 1], 6, BLOCK, [[0, 1, 2], [3], [4], [5]]),
        # Every cpu taken: from then on each round gives every node one, the small ones too.
        ([2, 1, 3], 8, CYCLIC, [[0, 3, 6], [1, 7], [2, 4, 5]]),
        ([2, 1, 3], 8, BLOCK, [[0, 1, 2], [3, 4], [5, 6, 7]]),
        ([4, 2, 4, 2], 16, CYCLIC, [[0, 4, 8, 10, 12], [1, 5, 13], [2, 6, 9, 11, 14], [3, 7, 15]]),
        ([1, 1], 5, CYCLIC, [[0, 2, 4], [1, 3]]),
        ([4, 4, 4], 2, BLOCK, [[0], [1], []]),
    ],
)
def test_block_and_cyclic_go_round_by_cpus(
    cpus: list[int], num_tasks: int, distribution: Distribution, ranks: list[list[int]]
) -> None:
    """Rounds place one task a node while it has cpus; block renumbers them node by node."""
    assert deal(cpus, num_tasks, distribution) == ranks


@pytest.mark.parametrize(
    ("distribution", "plane_size", "ranks"),
    [
        (BLOCK, 0, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (CYCLIC, 0, [[0, 4], [1, 5], [2, 6], [3, 7]]),
        (PLANE, 1, [[0, 4], [1, 5], [2, 6], [3, 7]]),
        (PLANE, 2, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (PLANE, 0, [[0, 1], [2, 3], [4, 5], [6, 7]]),
    ],
)
def test_tasks_per_node_even_out_the_counts(
    distribution: Distribution, plane_size: int, ranks: list[list[int]]
) -> None:
    """With --ntasks-per-node=2 four nodes get two tasks each, however the ranks are dealt."""
    dealt = deal([4, 4, 4, 4], 8, distribution, plane_size=plane_size, ntasks_per_node=2)
    assert dealt == ranks


@pytest.mark.parametrize(
    ("cpus", "num_tasks", "size", "ranks"),
    [
        ([4, 1, 1], 6, 2, [[0, 1, 4, 5], [2], [3]]),
        ([2, 4], 8, 3, [[0, 1, 2, 6], [3, 4, 5, 7]]),
        ([4, 4], 8, 4, [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ([4, 4], 6, 4, [[0, 1, 2, 3], [4, 5]]),
        ([1, 1], 5, 2, [[0, 1, 4], [2, 3]]),
        ([4, 2, 1, 1], 8, 1, [[0, 4], [1, 5], [2, 6], [3, 7]]),
    ],
)
def test_plane_deals_several_at_a_time(
    cpus: list[int], num_tasks: int, size: int, ranks: list[list[int]]
) -> None:
    """One task a node first, then up to a plane a node while it has cpus."""
    assert deal(cpus, num_tasks, PLANE, plane_size=size) == ranks


@pytest.mark.parametrize(
    ("num_tasks", "ranks"),
    [
        (3, [[0], [1], [2]]),
        (5, [[0, 1, 2], [3], [4]]),
        (7, [[0, 1, 2, 3], [4, 5], [6]]),
        (9, [[0, 1, 2, 3, 4], [5, 6, 7], [8]]),
        (2, [[0], [1], []]),
    ],
)
def test_packing_fills_node_after_node(num_tasks: int, ranks: list[list[int]]) -> None:
    """After one task each the first node is filled first; what is left goes round."""
    assert deal([4, 2, 1], num_tasks, BLOCK, pack_nodes=True) == ranks


def test_tasks_of_several_cpus_leave_fewer_places() -> None:
    """A node has room for cpus // cpus_per_task tasks, and always for one."""
    assert deal([8, 4, 1], 5, BLOCK, cpus_per_task=2) == [[0, 1], [2, 3], [4]]
    assert deal([8, 4, 1], 5, CYCLIC, cpus_per_task=0) == [[0, 3], [1, 4], [2]]


def test_arbitrary_puts_task_i_on_host_i() -> None:
    """The list names a host for each task; the layout holds each once, in Slurm's order."""
    layout = lay_out(
        nodes=("n10", "n2", "n10", "n1"),
        cpus_per_node=(),
        num_tasks=4,
        distribution=Distribution.ARBITRARY,
    )
    assert layout.nodes == ("n1", "n2", "n10")
    assert layout.tids == ((3,), (1,), (0, 2))
    assert layout.tasks == (1, 1, 2)


def test_impossible_layouts_are_refused() -> None:
    """What cannot be laid out is a Slurm error, not a traceback."""
    for num_tasks, count in ((0, 2), (-1, 1), (3, 0)):
        with pytest.raises(SlurmError) as caught:
            deal([1] * count, num_tasks, BLOCK)
        assert caught.value.errno == ESLURM_BAD_TASK_COUNT
    for distribution in (PLANE, Distribution.ARBITRARY):
        with pytest.raises(SlurmError) as caught:
            deal([1, 1], 3, distribution)
        assert caught.value.errno == ESLURM_BAD_DIST


def test_nodes_and_cpus_must_agree() -> None:
    """A caller that gives cpus for other nodes has a bug."""
    with pytest.raises(ValueError, match="2 nodes, but cpus for 1"):
        lay_out(nodes=("a", "b"), cpus_per_node=(1,), num_tasks=1, distribution=BLOCK)


def test_what_was_not_asked_for_is_laid_out_in_blocks() -> None:
    """The controller takes an unknown distribution for block, and says so."""
    layout = lay_out(
        nodes=names(2), cpus_per_node=(2, 2), num_tasks=4, distribution=Distribution.UNKNOWN
    )
    assert layout.distribution is BLOCK
    assert not layout.cyclic
    assert layout.tids == ((0, 1), (2, 3))


@pytest.mark.parametrize(
    ("num_tasks", "num_nodes", "own", "asked"),
    [
        (1, 1, True, Distribution.UNKNOWN),
        (8, 2, True, Distribution.UNKNOWN),
        (2, 2, False, CYCLIC),
        (1, 2, False, CYCLIC),
        (3, 2, False, BLOCK),
    ],
)
def test_srun_asks_by_where_it_runs(
    num_tasks: int, num_nodes: int, own: bool, asked: Distribution
) -> None:
    """Inside an allocation srun asks for cyclic while no node needs two tasks."""
    chosen = default_distribution(num_tasks=num_tasks, num_nodes=num_nodes, own_allocation=own)
    assert chosen is asked


def test_distributions_have_their_numbers_on_the_wire() -> None:
    """The step request carries these values."""
    assert [kind.value for kind in Distribution] == [1, 2, 3, 4, 8192]


CPUS = st.lists(st.integers(1, 6), min_size=1, max_size=8)


@settings(derandomize=True, deadline=None)
@given(CPUS, st.integers(1, 60), st.sampled_from([BLOCK, CYCLIC, PLANE]), st.integers(1, 5))
def test_every_rank_is_placed_once(
    cpus: list[int], num_tasks: int, distribution: Distribution, size: int
) -> None:
    """Ranks 0 to n-1 each have one place, rising on a node; none waits while cpus are free."""
    ranks = deal(cpus, num_tasks, distribution, plane_size=size)
    assert sorted(rank for node in ranks for rank in node) == list(range(num_tasks))
    assert all(node == sorted(node) for node in ranks)
    counts = [len(node) for node in ranks]
    assert all(counts[:num_tasks])
    free = [cpu - count for cpu, count in zip(cpus, counts, strict=True)]
    if distribution is not PLANE:
        assert min(free) >= 0 or max(free) <= 0


@settings(derandomize=True, deadline=None)
@given(CPUS, st.integers(1, 60))
def test_block_and_cyclic_differ_in_numbering_only(cpus: list[int], num_tasks: int) -> None:
    """Both give a node the same number of tasks."""
    block, cyclic = deal(cpus, num_tasks, BLOCK), deal(cpus, num_tasks, CYCLIC)
    assert list(map(len, block)) == list(map(len, cyclic))


@settings(derandomize=True, deadline=None)
@given(CPUS, st.integers(1, 40))
def test_cyclic_is_the_plain_rule(cpus: list[int], num_tasks: int) -> None:
    """The rounds, written down as the rule reads, give the same ranks."""
    ranks: list[list[int]] = [[] for _ in cpus]
    rank, turn, oversubscribe = 0, 0, False
    while rank < num_tasks:
        space_remains = False
        for node, cpu in enumerate(cpus):
            if rank < num_tasks and (turn < cpu or oversubscribe):
                ranks[node].append(rank)
                rank += 1
                space_remains |= turn + 1 < cpu
        oversubscribe |= not space_remains
        turn += 1
    assert deal(cpus, num_tasks, CYCLIC) == ranks


@settings(derandomize=True, deadline=None)
@given(CPUS, st.integers(1, 40), st.integers(1, 5))
def test_plane_counts_are_the_plain_rule(cpus: list[int], num_tasks: int, size: int) -> None:
    """The rounds, one task after another as the rule reads, give the same counts."""
    counts = [int(node < num_tasks) for node in range(len(cpus))]
    first, oversubscribe = 1, False
    while sum(counts) < num_tasks:
        space_remains = False
        for node, cpu in enumerate(cpus):
            for _ in range(first, size):
                if sum(counts) < num_tasks and (counts[node] < cpu or oversubscribe):
                    counts[node] += 1
                    space_remains |= cpu > counts[node]
        oversubscribe |= not space_remains
        first = 0
    assert list(map(len, deal(cpus, num_tasks, PLANE, plane_size=size))) == counts


def test_one_task_a_node_is_the_same_for_all() -> None:
    """Ten thousand nodes with a task each: rank i on node i, whatever was asked for."""
    count = 10_000
    layouts: list[StepLayout] = [
        lay_out(
            nodes=names(count),
            cpus_per_node=[4] * count,
            num_tasks=count,
            distribution=distribution,
            plane_size=2,
        )
        for distribution in (BLOCK, CYCLIC, PLANE)
    ]
    assert {layout.tids for layout in layouts} == {tuple((rank,) for rank in range(count))}
    assert layouts[0].tasks == (1,) * count
