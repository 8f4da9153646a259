"""An allocation that is told twice, late or never is used once, and is never left behind."""

import pytest

from tests.cluster import Ran, run
from tests.crashes import states, timeline

RESPONSE = "RESPONSE_RESOURCE_ALLOCATION"
WORK = (
    "0 salloc -N2 srun sleep 3",
    "1 salloc -N2 srun sleep 3",
    "1 srun -N2 sleep 3",
    "2 salloc -N1 true",
)


def clients_gone(ran: Ran) -> bool:
    """Return whether every job has ended, each by itself, and nobody waits."""
    return not ran.result.stalled and set(states(ran).values()) == {"COMPLETED"}


@pytest.mark.parametrize("by", ["100us", "2s", "7s", "70s"])
@pytest.mark.parametrize(("schedule", "seed"), [("fifo", 0), ("random", 1), ("pct", 2)])
def test_a_doubled_allocation_is_one(by: str, schedule: str, seed: int) -> None:
    """The copy comes while srun or salloc asks, runs its command, gives back, or is gone."""
    ran = run(
        timeline(f"0 {{duplicate: {RESPONSE}, by: {by}, chance: 1, for: 1h}}", *WORK),
        schedule=schedule,
        seed=seed,
    )
    assert clients_gone(ran)
    assert len(ran.all("switch_p_job_attach")) == 6
    given_back = ran.all("REQUEST_COMPLETE_JOB_ALLOCATION", phase="receive")
    assert len(given_back) == len(WORK)


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_copy_is_harmless_while_slurmctld_starts_again(model: str) -> None:
    """It tells its clients once more, with copies too; one that has gone ends its job."""
    ran = run(
        timeline(
            f"0 {{duplicate: {RESPONSE}, by: 3s, chance: 1, for: 1h}}",
            f"{RESPONSE}+phase=send {{crash: slurmctld, saved: true}}",
            "4 {start: slurmctld}",
            *WORK,
        ),
        model=model,
    )
    assert ran.result.stalled == ()
    assert list(states(ran).values()) == ["FAILED", *["COMPLETED"] * 3]


def test_an_answer_that_was_lost_before_a_restart_is_given_again_in_guide() -> None:
    """What slurmctld would have sent again it sends after the start; who has gone ends the job."""
    for gap_s in (3, 30):
        ran = run(
            timeline(
                f"0 {{drop: {RESPONSE}}}",
                "1 salloc -N2 srun sleep 3",
                f"2 {{restart: slurmctld, for: {gap_s}s}}",
            ),
        )
        assert ran.result.stalled == ()
        assert set(states(ran).values()) == ({"COMPLETED"} if gap_s == 3 else {"FAILED"})


def test_a_doubled_launch_does_not_hide_its_srun_from_a_slurmctld_that_starts() -> None:
    """The copy comes from an address of its own: srun's is found again, and is told of the end."""
    ran = run(
        timeline(
            "0 {duplicate: REQUEST_LAUNCH_TASKS, times: 2}",
            "1 srun -N2 sleep 100",
            "20 {crash: slurmctld, saved: true}",
            "25 {start: slurmctld}",
            "40 scancel 1",
        ),
    )
    told = ran.all("SRUN_JOB_COMPLETE", phase="receive", daemon="srun")
    assert [each.time_us // 1_000_000 for each in told] == [40]
    assert "srun: Force Terminated job 1" in ran.stderr()
