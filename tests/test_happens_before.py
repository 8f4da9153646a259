"""What is forced under every schedule, and what only came so."""

from itertools import pairwise

import pytest
from msgspec import UNSET

from simctl.kernel.causes import Cause, needs_of
from simctl.kernel.events import Event
from simctl.scenario.holding.happens_before import HalfATraceError, HappensBefore
from simctl.testing import run_scenario
from simctl.testing.before import assert_before
from tests.cluster import TWO_NODES, Ran, run

JOBS = """\
timeline:
  - {at: 0s, as: alice, run: "sbatch -N2 -n4 --wrap 'srun sleep 9 && srun sleep 3'"}
  - {at: 0s, as: bob, run: "sbatch -N1 --wrap 'srun sleep 10'"}
"""


@pytest.fixture(scope="module", params=["guide", "modern"])
def ran(request: pytest.FixtureRequest) -> Ran:
    """Two jobs, the first with two steps of two tasks on each of two nodes."""
    return run(TWO_NODES + JOBS, cluster="", model=request.param)


FORCED = [
    ("switch_p_job_preinit", "switch_p_job_init", "node"),
    ("switch_p_job_init", "switch_p_job_attach", "node"),
    ("slurm_ckpt_stepd_prefork", "switch_p_job_attach", "node"),
    ("switch_p_job_attach", "switch_p_job_fini", "node"),
    ("switch_p_job_fini", "switch_p_job_postfini", "node"),
    ("switch_p_build_jobinfo", "switch_p_job_preinit", ""),
    ("switch_p_job_attach", "switch_p_job_step_complete", ""),
    ("switch_p_job_postfini", "switch_p_job_step_complete", ""),
    ("switch_p_node_init role=slurmd", "switch_p_job_preinit", "node"),
]


@pytest.mark.parametrize(("first", "second", "each"), FORCED)
@pytest.mark.parametrize("step", ["1.0", "1.1", "2.0"])
def test_orders_in_a_step_are_forced(
    ran: Ran, first: str, second: str, each: str, step: str
) -> None:
    """What the guide says of a step is so under every schedule, on each of its nodes."""
    nodes = sorted({str(event.node) for event in ran.all("switch_p_job_preinit", step=step)})
    for where in (f" node={node}" for node in nodes) if each else ("",):
        about = "" if "node_init" in first else f" step={step}"
        assert_before(
            ran.events, f"{first}{about}{where}", f"{second} step={step}{where}", proved=True
        )


def test_orders_of_a_job_are_forced(ran: Ran) -> None:
    """From its submission to the end of its completing."""
    for first, second in (
        ("job_state state=PENDING", "job_state state=RUNNING"),
        ("job_state state=RUNNING", "REQUEST_BATCH_JOB_LAUNCH phase=send"),
        ("MESSAGE_EPILOG_COMPLETE", "job_state args.to=COMPLETED"),
    ):
        assert_before(ran.events, first, second, each="job", proved=True)
    for node in ("n1", "n2"):
        assert_before(
            ran.events,
            f"switch_p_job_postfini job=1 node={node}",
            f"MESSAGE_EPILOG_COMPLETE phase=send job=1 node={node}",
            proved=True,
        )
    freed = [event for event in ran.all("slurm_ckpt_free_job", job=1) if event.step is UNSET]
    over = ran.one(
        "job_state",
        job=1,
        args={"from": "COMPLETED|COMPLETING", "to": "COMPLETED", "reason": "None"},
    )
    assert HappensBefore(ran.events).forces(over, freed[0])


def test_the_second_step_of_a_script_needs_the_end_of_the_first(ran: Ran) -> None:
    """Its tasks have ended; slurmctld may hear of the step's own end later."""
    assert_before(
        ran.events, "switch_p_job_attach step=1.0", "switch_p_build_jobinfo step=1.1", proved=True
    )
    with pytest.raises(AssertionError, match=r"reach slurmctld independently|began before"):
        assert_before(
            ran.events,
            "switch_p_job_step_complete step=1.0",
            "switch_p_build_jobinfo step=1.1",
            proved=True,
        )


FREE = [
    ("switch_p_job_attach node=n1", "switch_p_job_attach node=n2", "step=1.0", "only time"),
    ("switch_p_job_postfini node=n1", "switch_p_job_postfini node=n2", "step=1.0", "only time"),
    (
        "job_state job=1 state=PENDING",
        "job_state job=2 state=PENDING",
        "name=job_state",
        "REQUEST_SUBMIT_BATCH_JOB receive from sbatch@login",
    ),
    (
        "switch_p_job_step_complete job=1",
        "switch_p_job_preinit job=2",
        "",
        "REQUEST_SUBMIT_BATCH_JOB receive from sbatch@login",
    ),
]


@pytest.mark.parametrize(("first", "second", "within", "says"), FREE)
def test_what_only_came_so_is_free(
    ran: Ran, first: str, second: str, within: str, says: str
) -> None:
    """It holds in this run, nothing forces it, and what would reverse it is named."""
    assert_before(ran.events, first, second, within=within)
    with pytest.raises(AssertionError) as caught:
        assert_before(ran.events, first, second, within=within, proved=True)
    assert "is not proved" in str(caught.value)
    assert "nothing forces it" in str(caught.value)
    assert says in str(caught.value)


def test_an_order_that_does_not_hold_is_told_as_such() -> None:
    """Before anybody asks whether it is forced."""
    ran = run(f"{TWO_NODES}{JOBS}", cluster="")
    with pytest.raises(AssertionError, match="began before"):
        assert_before(
            ran.events, "switch_p_job_fini", "switch_p_job_attach", within="step=1.0", proved=True
        )


def test_proved_is_an_expectation_of_a_scenario() -> None:
    """One that is only so in this run does not hold, and its text says that it was to be proved."""
    ran = run(
        f"{TWO_NODES}{JOBS}"
        "expect:\n"
        '  - {order: [switch_p_job_init, switch_p_job_attach], within: "step=1.0", each: node, '
        "proved: true}\n"
        '  - {order: [switch_p_job_init node=n1, switch_p_job_init node=n2], within: "step=1.0", '
        "proved: true}\n",
        cluster="",
    )
    good, bad = ran.result.expectations
    assert good.held
    assert good.text.endswith("each node proved")
    assert not bad.held
    assert "what would reverse it" in bad.detail


def test_nothing_is_proved_from_a_part_of_a_trace(ran: Ran) -> None:
    """Where causes lack, that is said."""
    plugins = [event for event in ran.events if event.kind == "plugin"]
    with pytest.raises(HalfATraceError, match="without --trace-kinds"):
        HappensBefore(plugins)
    with pytest.raises(AssertionError, match="nothing can be proved"):
        assert_before(
            plugins,
            "switch_p_job_init node=n1",
            "switch_p_job_fini node=n1",
            within="step=1.0",
            proved=True,
        )


def test_a_cause_may_stand_for_several() -> None:
    """It is a seq like any other, and knows what it needs; those of its own causes count."""
    both = Cause.of(5, (3, 5))
    assert both == 5
    assert needs_of(both) == (3, 5)
    assert needs_of(Cause.of(7, (both, 7))) == (3, 5, 7)
    assert needs_of(4) == (4,)
    assert needs_of(0) == ()


def event(seq: int, **fields: object) -> Event:
    """Return an event of one process, unless they say otherwise."""
    return Event(seq=seq, time_us=seq, kind="log", name=f"e{seq}", **{"pid": 1, **fields})  # type: ignore[arg-type]


def test_a_join_needs_all_and_a_choice_only_what_is_named() -> None:
    """Events in `needs` come before; the cause of an event that has them need not."""
    one, two, three = event(1, pid=1), event(2, pid=2), event(3, pid=3, cause=2, needs=(1, 2))
    four = event(4, pid=4, cause=3, needs=(1,))
    relation = HappensBefore([one, two, three, four])
    assert relation.forces(one, three)
    assert relation.forces(two, three)
    assert relation.forces(one, four)
    assert not relation.forces(two, four)
    assert not relation.forces(three, four)
    assert not relation.forces(one, two)


def test_what_a_process_does_in_a_row_of_one_cause_is_in_order() -> None:
    """A message that is sent causes nothing in its process, and what follows comes after it."""
    root, sent, called = event(1), event(2, cause=1, phase="send"), event(3, cause=1)
    elsewhere = event(4, cause=1, pid=2)
    timer = event(5, cause=1, needs=(1,))
    relation = HappensBefore([root, sent, called, elsewhere, timer])
    assert relation.forces(sent, called)
    assert not relation.forces(sent, elsewhere)
    assert not relation.forces(sent, timer)
    assert not relation.forces(called, timer)


def test_a_call_is_before_another_if_it_ends_before_that_begins() -> None:
    """Of calls of two lines the first counts for what comes after, the second for what before."""
    enter = event(2, cause=1, phase="enter")
    inside = event(3, cause=1)
    leave = event(4, cause=1, needs=(1, 3), phase="exit", enter=2)
    after = event(5, cause=4)
    relation = HappensBefore([event(1), enter, inside, leave, after])
    assert relation.forces(inside, after)
    assert relation.forces(leave, after)
    assert not relation.forces(inside, leave)
    assert relation.forces(relation.by_seq[1], leave)


def test_what_a_daemon_takes_in_comes_after_its_start() -> None:
    """All it did before its first message comes before every message."""
    first, second = event(1), event(2, cause=1)
    one = event(4, cause=3, pid=1, phase="receive")
    other = event(5, cause=3, pid=1, phase="receive")
    relation = HappensBefore([first, second, event(3, pid=2, phase="send"), one, other])
    assert relation.forces(second, one)
    assert relation.forces(second, other)
    assert not relation.forces(one, other)


def test_a_job_that_waits_for_others_needs_their_ends() -> None:
    """Of all it waits for; where one of several will do it might have been the other."""
    ran = run(
        f"{TWO_NODES}timeline:\n"
        "  - {at: 0s, as: alice, run: \"sbatch --wrap 'srun -n1 sleep 10'\"}\n"
        "  - {at: 0s, as: alice, run: \"sbatch --wrap 'srun -n1 sleep 12'\"}\n"
        "  - {at: 1s, as: bob, run: \"sbatch -d afterok:1:2 --wrap 'srun sleep 10'\"}\n"
        "  - {at: 1s, as: bob, run: \"sbatch -d 'afterok:1?afterok:2' --wrap 'srun sleep 10'\"}\n",
        cluster="",
    )
    for job in (1, 2):
        attach = f"switch_p_job_attach job={job}"
        assert_before(ran.events, attach, "switch_p_job_preinit job=3", proved=True)
        assert_before(
            ran.events,
            f"MESSAGE_EPILOG_COMPLETE job={job}",
            "job_state job=3 state=RUNNING",
            proved=True,
        )
    with pytest.raises(AssertionError, match="nothing forces it"):
        assert_before(
            ran.events, "switch_p_job_attach job=1", "switch_p_job_preinit job=4", proved=True
        )


def test_the_calls_of_a_burst_buffer_are_forced() -> None:
    """From the check of the request to the stage-out, through whatever passes ask meanwhile."""
    ran = run_scenario("scenarios/burst_buffer.yaml")
    calls = (
        *("bb_p_job_validate", "bb_p_job_validate2", "bb_state state=STAGED_IN", "bb_p_job_begin"),
        *("REQUEST_BATCH_JOB_LAUNCH", "switch_p_job_attach", "bb_p_job_start_stage_out"),
    )
    for first, second in pairwise(calls):
        ran.assert_before(first, second, proved=True)
