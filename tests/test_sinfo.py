"""sinfo, held against recordings of Slurm's: tables, formats, filters, order, errors."""

import pytest

from tests.printed import assert_as_printed, blurred, read
from tests.queue_of_recordings import typed

MIX = ("E", "N_l", "O", "R", "R_l", "default", "l", "o_C", "s", "t_alloc", "t_drain")
IDLE = (
    *("O_bad", "O_long", "R", "Rl", "badopt", "d", "default", "e", "h", "l", "n_n1"),
    *("n_nope", "noheader_states", "o_9", "o_all", "o_bad", "o_common", "o_cpus", "p_nope"),
    *("p_short", "r", "s", "sumN", "summarize_F", "t_bad", "t_idle", "toil"),
)
BLUR = {
    # Not simulated: features, the load of a node, its free memory.
    r" *(?:fast,ib|fast|\(null\)) *": " ? ",
    r"(?:\b\d{5}|\b\d\.\d\d|\bN/A) *": "LOAD ",
}
ONE_HOST = {**BLUR, r"\b(?:vm|n[1-4]|127\.0\.0\.1)\b": "HOST"}
"""Where hosts are shown: all nodes of the recordings were on one."""


@pytest.mark.parametrize("name", MIX)
def test_shows_nodes_at_work_as_slurm_does(name: str) -> None:
    """Some of the cpus are taken, and a node is drained."""
    assert_as_printed(f"sinfo_mix/{name}", typed("sinfo_mix", *MIX)[name], BLUR)


@pytest.mark.parametrize("name", IDLE)
def test_shows_idle_nodes_as_slurm_does(name: str) -> None:
    """All formats, groupings and errors, on a cluster that has nothing to do."""
    blur = ONE_HOST if name in ("O_long", "o_all", "o_cpus") else BLUR
    assert_as_printed(f"sinfo_idle/{name}", typed("sinfo_idle", *IDLE)[name], blur)


@pytest.mark.parametrize("name", ["N", "N_l"])
def test_a_node_has_a_line_for_each_of_its_partitions(name: str) -> None:
    """The order of the partitions is chance in Slurm, which asks about all of them at once."""
    recorded = read(f"sinfo_idle/{name}").stdout
    printed = typed("sinfo_idle", "N", "N_l")[name].stdout
    assert sorted(blurred(printed, BLUR).splitlines()) == sorted(
        blurred(recorded, BLUR).splitlines()
    )
