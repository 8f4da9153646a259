"""A step as a plugin in slurmctld sees it: slurmctld's own record, live, by the guide's names."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from simctl.ctld.controller import Controller
from simctl.ctld.state.records import StepRecord
from simctl.plugin import StepRecord as StepPtr
from simctl.wire.ids import SECOND


class LiveStep(StepPtr):
    """The record of a step, to be read; one a step."""

    __slots__ = ("_ctld", "_step")

    def __init__(self, ctld: Controller, step: StepRecord) -> None:
        self._ctld = ctld
        self._step = step


def live_step(ctld: Controller, step: StepRecord) -> LiveStep:
    """Return what plugins are handed of a step: the same object each time."""
    if step.view is None:
        step.view_as(LiveStep(ctld, step))
    view: LiveStep = step.view
    return view


def _start_time(ctld: Controller, step: StepRecord) -> int:
    return ctld.site.start_time_s + step.start_us // SECOND


_READ: Final[Mapping[str, Callable[[Controller, StepRecord], Any]]] = {
    "job_id": lambda _, step: step.job.job_id,
    "step_id": lambda _, step: step.step_id,
    "name": lambda _, step: step.name,
    "user_id": lambda _, step: step.job.desc.uid,
    "nodes": lambda _, step: step.node_list,
    "num_tasks": lambda _, step: step.layout.num_tasks,
    "start_time": _start_time,
    "ckpt_dir": lambda _, step: step.ckpt_dir,
    "ckpt_interval": lambda _, step: step.ckpt_interval_min,
    "check_job": lambda _, step: step.check_job.value,
}


def _property(name: str) -> property:
    read = _READ[name]

    def put(_: LiveStep, __: Any) -> None:
        raise AttributeError(f"{name} of a step is slurmctld's own; change what check_job holds")

    return property(lambda view: read(view._ctld, view._step), put)


for _field in attrs.fields(StepPtr):
    setattr(LiveStep, _field.name, _property(_field.name))

__all__ = ["LiveStep", "live_step"]
