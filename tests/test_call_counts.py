"""What a job costs is counted in calls, which no load of the machine changes."""

from benchmarks.counting import calls_of_a_job

FIXED, NODE = 1396, 446
"""Calls of simctl's own functions, as they were when this was last lowered, under Python 3.11."""


def test_a_job_costs_no_more_calls_than_it_did() -> None:
    """Five in a hundred more are too many: whoever adds them finds others to leave out.

    Who leaves some out lowers the figures here; `make bench` prints them with those of trio and C.
    """
    calls = calls_of_a_job(own=True)
    assert FIXED * 0.5 < calls.fixed < FIXED * 1.05
    assert NODE * 0.5 < calls.node < NODE * 1.05
