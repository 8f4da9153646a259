"""What all recordings of real Slurm do in one order, runs of model modern do in that order, too."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from simctl.kernel.events import Event
from simctl.scenario.load import load_scenario
from simctl.testing.conform.acts import Act, Story
from simctl.testing.conform.command import compare_events
from simctl.testing.conform.orders import OFTEN, Order, from_text, groups, mined, table, violations
from simctl.testing.conform.ours import jobs_of, our_story
from simctl.testing.conform.real import read_real, real_story
from simctl.world import World
from tests import conformance_orders
from tests.conformance_runs import NAMES, held, recording_of
from tests.test_conform_damages import BATCH, STEP, before, of, saying

Events = list[Event]
SCENARIOS: Final = sorted((Path(__file__).parent.parent / "scenarios").rglob("*.yaml"))
NOT_HELD: Final = {
    "bad_credentials": "launches come again that have been served",
    "lossy_link": "messages are lost, and come late and twice",
    "no_kill": "a job that loses a node becomes RUNNING once more",
    "salloc": "it is salloc that gives the allocation back, after all the steps in it",
    "slurmctld_prolog": "a step is asked for from outside the script, before that is launched",
}
"""Scenarios in which something happens that no recording has."""
BROKEN: Final = {
    # The task on the node that is lost dies with it, before the job is RUNNING once more.
    "f04_no_kill": ["11.0 on n3: step: last job_state > RUNNING < first task ended"],
    # Its recording does the same, but does not name the batch step of a prolog.
    "f36_slow_prolog_cancel": [
        "5.batch on n1: batch: last slurmd prolog < first job_state > CANCELLED|COMPLETING",
        "5.batch on n1: batch: last slurmd prolog < first slurmctld REQUEST_TERMINATE_JOB",
        "5.batch on n1: batch: last slurmd prolog < first slurmd REQUEST_TERMINATE_JOB received",
    ],
}
"""Orders that no recording is seen to break, and that conformance runs do."""


def broken(events: Sequence[Event]) -> list[str]:
    """Return the orders of the table that a run does not keep."""
    story = our_story(events, {job: job for job in jobs_of(events)})
    return [f"{each.group.step} on {each.group.node}: {each.order}" for each in story_breaks(story)]


def story_breaks(story: Story) -> list:  # type: ignore[type-arg]
    """Return the orders of the table that are not kept."""
    return list(violations(story, table()))


# The table.


def test_the_table_is_what_the_recordings_say() -> None:
    """Renew it with `python -m tests.conformance_orders`."""
    assert conformance_orders.TABLE.read_text() == conformance_orders.text()
    assert conformance_orders.COPY.read_text() == conformance_orders.TABLE.read_text()
    assert from_text(conformance_orders.TABLE.read_text()) == table()


def test_the_table_has_what_is_known_of_slurm() -> None:
    """Some hundred orders: those of LIFECYCLE's that are between processes, and more."""
    orders = set(map(str, table()))
    assert len(orders) > 500
    for known in (
        "step: last stepd switch_p_slurmd_step_init < first slurmd switch_p_free_jobinfo",
        "step: last stepd fork < first task switch_p_job_attach",
        "step: last task ended < first stepd switch_p_job_fini",
        "step: last stepd switch_p_job_postfini < first epilog begins",
        "step: last slurmctld switch_p_build_jobinfo < first srun REQUEST_LAUNCH_TASKS",
        "step: first srun MESSAGE_TASK_EXIT received < first stepd REQUEST_STEP_COMPLETE",
    ):
        assert known in orders


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_keeps_the_orders(name: str) -> None:
    """So that what is told of a run is the run's."""
    assert story_breaks(real_story(read_real(recording_of(name)))) == []


def _act(name: str, place: int, *, strand: str, job: int) -> Act:
    return Act(
        strand=f"{strand}@n1" if strand == "slurmd" else f"{strand}[{job}.0]@n1",
        kind="process",
        name=name,
        place=place,
        job=job,
        step=f"{job}.0",
        node="n1",
    )


def _stories(count: int, *, turned: int = 0) -> list[Story]:
    return [
        Story(
            acts=(
                _act("first", 2 if job <= turned else 0, strand="stepd", job=job),
                _act("second", 1, strand="slurmd", job=job),
            )
        )
        for job in range(1, count + 1)
    ]


def test_an_order_is_seen_often_and_never_turned_round() -> None:
    """Fourteen times are no order, nor are a hundred with one the other way."""
    strongest = Order("step", "last", "stepd first", "first", "slurmd second")
    assert mined(_stories(OFTEN)) == [strongest]
    assert mined(_stories(OFTEN - 1)) == []
    assert mined(_stories(100, turned=1)) == []


# Runs.


@pytest.mark.parametrize("name", NAMES)
def test_a_conformance_run_keeps_the_orders(name: str) -> None:
    """Also where its own recording does not show them."""
    assert broken(held(name).events) == BROKEN.get(name, [])


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_shipped_scenario_keeps_the_orders(path: Path) -> None:
    """In model modern, whatever model it is written for."""
    scenario = load_scenario(path)
    world = World(scenario, model="modern")
    world.trace.add_sink(world.events.append)
    world.run()
    assert bool(broken(world.events)) == (path.stem in NOT_HELD)


# Damages.

DAMAGES: Final[dict[str, tuple[str, Callable[[Events], Events]]]] = {
    "slurmd frees its copy before the step daemon is there": (
        STEP,
        before(
            of("switch_p_free_jobinfo", role="slurmd", node="n2"),
            of("switch_p_slurmd_step_init", node="n2"),
        ),
    ),
    "a step daemon reports the step before srun has its tasks' ends": (
        STEP,
        before(
            of("REQUEST_STEP_COMPLETE", role="manager", phase="send", node="n2"),
            of("MESSAGE_TASK_EXIT", role="manager", node="n2"),
        ),
    ),
    "srun hears of the end before it hears of the launch": (
        STEP,
        before(
            of("MESSAGE_TASK_EXIT", role="manager", phase="send", node="n2"),
            of("RESPONSE_LAUNCH_TASKS", daemon="srun", args=saying(node_name="n2")),
        ),
    ),
    "a task runs before slurmd has the launch": (
        STEP,
        before(of("become_user", task=3), of("REQUEST_LAUNCH_TASKS", phase="receive", node="n2")),
    ),
    "the epilog begins before slurmctld says so": (
        BATCH,
        before(
            of("epilog", phase="enter", node="n1"),
            of("REQUEST_TERMINATE_JOB", phase="send", peer="slurmd@n1"),
        ),
    ),
    "the script runs before the prolog is over": (
        BATCH,
        before(of("exec", role="task", step="8.batch"), of("prolog", phase="exit", node="n1")),
    ),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_an_order_that_is_turned_round_is_told(what: str) -> None:
    """By the table, and by `conform` wherever the recording has both sides."""
    name, damage = DAMAGES[what]
    damaged = damage(list(held(name).events))
    assert broken(damaged)
    differences = compare_events(damaged, read_real(recording_of(name))).differences
    assert any("all recordings have" in each.text for each in differences)


def test_groups_are_of_one_run_of_a_job() -> None:
    """A job that was requeued is on a node twice, and each time in order."""
    story = our_story(held("s10_requeue").events, {8: 8})
    seen = [(each.step, each.node) for each in groups(story)]
    assert len(seen) == len(set(seen))
    of_second = next(each for each in groups(story) if each.step == "8.1" and each.node == "n2")
    first = next(each for each in groups(story) if each.step == "8.0" and each.node == "n2")
    assert of_second.acts["slurmd prolog"][0].place > first.acts["slurmd epilog"][1].place
