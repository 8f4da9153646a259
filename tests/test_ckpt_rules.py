"""The rules of checkpoints hold in runs, and notice what breaks them."""

import copy
from collections.abc import Callable

import pytest

from simctl.kernel.events import Event
from tests.checkpoints import checkpoint, checkpointed
from tests.ckpt_rules import broken
from tests.test_ompi import SLOW, ran_with

VACATED = (checkpoint("3m", "vacate 1"), checkpoint("4m", "restart 1"))


def without(events: list[Event], name: str) -> list[Event]:
    """Leave out the first event of a name."""
    place = next(i for i, event in enumerate(events) if event.name == name)
    return events[:place] + events[place + 1 :]


def twice(events: list[Event], name: str) -> list[Event]:
    """Repeat the first event of a name."""
    place = next(i for i, event in enumerate(events) if event.name == name)
    return [*events[: place + 1], *events[place:]]


def late(events: list[Event], name: str) -> list[Event]:
    """Move the first event of a name to the end."""
    first = next(event for event in events if event.name == name)
    return [*without(events, name), first]


def as_root(events: list[Event], name: str) -> list[Event]:
    """Let all events of a name happen as root."""
    changed = []
    for event in events:
        other = copy.copy(event)
        if event.name == name:
            other.euid = 0
        changed.append(other)
    return changed


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_vacated_and_restarted_job_keeps_them(model: str) -> None:
    """All of them."""
    assert broken(checkpointed(*VACATED, model=model).events) == []


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_step_that_saves_itself_keeps_them(model: str) -> None:
    """The one of reports too."""
    ran = ran_with(checkpoint("2m", "create 1.0"), job=SLOW, model=model)
    assert ran.all("slurm_ckpt_comp")
    assert broken(ran.events) == []


@pytest.mark.parametrize(
    ("rule", "name", "spoil"),
    [
        ("callers", "slurm_ckpt_restart_task", as_root),
        ("callers", "slurm_ckpt_op", as_root),
        ("preforks", "slurm_ckpt_stepd_prefork", twice),
        ("restarts", "slurm_ckpt_restart_task", twice),
        ("signals", "slurm_ckpt_signal_tasks", twice),
        ("operations", "slurm_ckpt_op", late),
        ("answers", "slurm_ckpt_op", without),
        ("balance", "slurm_ckpt_free_job", without),
        ("balance", "slurm_ckpt_alloc_job", twice),
    ],
)
def test_what_breaks_one_is_told(
    rule: str, name: str, spoil: Callable[[list[Event], str], list[Event]]
) -> None:
    """A trace that was tampered with is not accepted."""
    spoiled = spoil(checkpointed(*VACATED).events, name)
    assert any(each.startswith(f"{rule}:") for each in broken(spoiled))


def test_a_late_report_is_told() -> None:
    """When its step is over there is nothing to report on."""
    events = ran_with(checkpoint("2m", "create 1.0"), job=SLOW).events
    assert any(each.startswith("reports:") for each in broken(late(events, "slurm_ckpt_comp")))
