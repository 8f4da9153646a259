"""Jobs that wait for one another: circles, long chains, namesakes; and what ends a wait."""

import pytest

from tests.cluster import run
from tests.entries import queued, reasons, states, wrong

HELD = "0s alice sbatch --hold --wrap true"


@pytest.mark.parametrize("asked", ["afterok:2", "afterok:3", "afterany:2?afterany:3"])
def test_a_job_cannot_be_made_to_wait_for_itself_by_way_of_others(asked: str) -> None:
    """Slurm looks behind every job that is named; what was refused changes nothing."""
    ran = queued(
        HELD,
        "1s alice sbatch -d afterok:1 --wrap true",
        "2s alice sbatch -d afterok:2 --wrap true",
        f"3s alice scontrol update jobid=1 dependency={asked} | "
        "exit: 1, expect: ESLURM_CIRCULAR_DEPENDENCY",
        "4s alice scontrol release 1",
    )
    assert wrong(ran) == []
    assert {state for state, _ in reasons(ran).values()} == {"COMPLETED"}


def test_a_circle_through_a_job_that_has_started_is_none() -> None:
    """Its dependency is a thing of the past."""
    ran = queued(
        "0s alice sbatch -w n1 --wrap 'sleep 20'",
        "1s alice sbatch -w n2 -d after:1 --wrap 'sleep 20'",
        "2s alice sbatch -d afterok:2 --wrap true",
        "5s alice scontrol update jobid=3 dependency=afterok:1 | exit: 0",
    )
    assert wrong(ran) == []
    assert {state for state, _ in reasons(ran).values()} == {"COMPLETED"}


def test_a_long_chain_behind_a_held_job_is_no_stall() -> None:
    """However long it is."""
    chain = [f"1s alice sbatch -d afterok:{job} --wrap true" for job in range(1, 1200)]
    ran = queued(HELD, *chain)
    assert ran.result.stalled == ()
    assert reasons(ran)[1200] == ("PENDING", "Dependency")


def test_a_singleton_behind_a_held_namesake_is_no_stall() -> None:
    """It waits for whoever holds the other."""
    ran = queued(
        "0s alice sbatch --hold -J twin --wrap true",
        "1s alice sbatch -d singleton -J twin --wrap true",
    )
    assert ran.result.stalled == ()
    assert reasons(ran)[2] == ("PENDING", "Dependency")


def test_a_requeued_job_whose_nodes_still_hold_it_can_be_cancelled() -> None:
    """It ends, and does not come back; any other signal waits, and comes too late."""
    ran = run(
        "programs: {./app: {runs: 100s, on_signal: {TERM: ignore}}}\n"
        "timeline:\n"
        "  - {at: 0s, as: alice, run: sbatch --wrap 'srun ./app'}\n"
        "  - {at: 5s, as: alice, run: scontrol requeue 1}\n"
        "  - {at: 6s, as: alice, run: scancel -s USR1 1, exit: 229}\n"
        "  - {at: 7s, as: alice, run: scancel 1, exit: 0}\n"
    )
    assert wrong(ran) == []
    (row,) = ran.result.rows
    assert (row.state, row.restarts) == ("CANCELLED", 0)
    changes = states(ran)
    assert changes[-3:] == ["PENDING|COMPLETING", "CANCELLED|COMPLETING", "CANCELLED"]


def test_salloc_in_a_script_that_was_requeued_runs_its_steps() -> None:
    """The new job is in its first run, whichever that of the job around it is."""
    ran = queued(
        "0s alice sbatch -w n1 --wrap 'sleep 10; salloc -N1 -w n2 srun sleep 1'",
        "5s alice scontrol requeue 1",
    )
    assert {state for state, _ in reasons(ran).values()} == {"COMPLETED"}
    assert len(ran.result.rows) == 2


def test_an_update_of_a_job_that_says_nothing_is_refused() -> None:
    """As scontrol does."""
    ran = queued(HELD, '1s alice scontrol update jobid=1 | exit: 1, stderr: "No changes"')
    assert wrong(ran) == []


def test_a_job_that_is_renamed_counts_under_its_new_name_alone() -> None:
    """A singleton of the old name goes on at once, one that takes the new name waits for it."""
    ran = queued(
        "0s alice sbatch -w n1 -J old --wrap 'sleep 100'",
        "1s alice sbatch -w n2 -d singleton -J old --wrap true",
        "10s alice scontrol update jobid=1 name=new",
        "20s alice sbatch --hold -d singleton -J other --wrap true",
        "21s alice scontrol update jobid=3 name=new",
        "22s alice scontrol release 3",
    )
    assert wrong(ran) == []
    assert [row.start_us // 1_000_000 for row in ran.result.rows] == [0, 10, 100]
