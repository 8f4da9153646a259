"""burst_buffer/generic under any mix of submissions, cancels, restarts and scripts that fail."""

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_generic import ran, small, submitted

FOLLOWS: Final = {
    None: {"STAGING_IN", "STAGED_IN"},
    "PENDING": {"STAGING_IN", "STAGED_IN"},
    "STAGING_IN": {"STAGED_IN", "PENDING", "STAGED_OUT"},
    "STAGED_IN": {"RUNNING", "STAGED_OUT", "PENDING"},
    "RUNNING": {"STAGING_OUT", "STAGED_IN", "STAGED_OUT"},
    "STAGING_OUT": {"STAGED_OUT"},
    "STAGED_OUT": {"PENDING"},
}
JOBS = st.sampled_from(
    [
        *("sbatch job.sh", "sbatch big.sh", "sbatch -N2 big.sh", "sbatch -a 0-2 job.sh"),
        *("srun --bb=size=20G sleep 5", "sbatch --wrap hostname", "sbatch --bb=size=200G job.sh"),
    ]
)
SUBMISSIONS = st.builds(submitted, st.integers(0, 200), st.sampled_from(["alice", "bob"]), JOBS)
FAILING = st.sampled_from(
    [
        *("start_stage_in", "stop_stage_in", "start_stage_out", "get_sys"),
        *("select_g_job_begin", "bb_p_job_begin", "bb_p_load_state"),
    ]
)
FAULTS = st.one_of(
    FAILING.map(lambda name: f"{{fail: {name}}}"),
    st.sampled_from(["{restart: slurmctld, for: 2s}", "{crash: n1}"]),
).map(lambda fault: f"fault: {fault}")
COMMANDS = st.builds(
    lambda command, job: f"run: scontrol {command} {job}",
    st.sampled_from(["requeue", "hold", "release", "show job"]),
    st.integers(1, 6),
) | st.integers(1, 6).map(lambda job: f"run: scancel --hurry {job}")
DEEDS = st.builds(lambda at, deed: f"at: {at}s, {deed}", st.integers(0, 400), FAULTS | COMMANDS)


@given(
    st.lists(SUBMISSIONS, min_size=1, max_size=6),
    st.lists(DEEDS, max_size=5),
    st.sampled_from([1, 5, 40, 200]),
    st.sampled_from([1, 4, 100]),
    st.sampled_from(["guide", "modern"]),
)
@settings(max_examples=30, deadline=None)
def test_every_buffer_goes_its_way_to_the_end(
    jobs: list[str], deeds: list[str], stage_in_s: int, stage_out_s: int, model: str
) -> None:
    """States follow each other as they may, nothing stays under way, no space is given twice."""
    found = ran(
        *jobs,
        *deeds,
        *(f"at: 3000s, run: scancel -u {user}" for user in ("alice", "bob")),
        more=small(
            f", functions: {{start_stage_in: {{runs: {stage_in_s}s}}, "
            f"start_stage_out: {{runs: {stage_out_s}s}}}}"
        ),
        model=model,
        StageInTimeout="90",
        StageOutTimeout="300",
    )
    assert (found.result.complaints, found.result.stalled, found.result.fatalities) == ((), (), ())
    states: dict[object, str] = {}
    for event in found.all("bb_state"):
        before, after = event.args["from"], event.args["to"]  # type: ignore[index]
        assert before == states.get(event.job)
        assert after in FOLLOWS[before], event
        states[event.job] = after
    assert set(states.values()) <= {"STAGED_OUT", "PENDING"}
    for pool in found.world.site.appliance.store.pools.values():
        assert pool.used <= pool.capacity
