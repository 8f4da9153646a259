"""Scheduler passes over burst buffers, which run by the clock: what counts is what they led to."""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from simctl.testing.conform.acts import Act, Story

_LOAD: Final = "bb_p_load_state"
_TRY: Final = "bb_p_job_try_stage_in"
_ASK: Final = "bb_p_job_test_stage_in"
_SUBMITTED: Final = "bb_p_job_validate2"
_SETUP: Final = "dw_setup"


def passes_told(ours: Story, theirs: Story) -> tuple[Story, Story]:
    """Leave the passes out, and tell with what they led to that there had been one."""
    return ours.having(_told(ours.acts)), theirs.having(_told(theirs.acts))


def _told(acts: Sequence[Act]) -> Iterator[Act]:
    """Return whether there was a pass before a job is asked about, or its buffer is set up.

    One since its submission, and since it was asked about last.
    """
    loads = tries = 0
    asked: dict[int | None, int] = {}
    submitted: dict[int | None, int] = {}
    for act in acts:
        if act.name == _TRY:
            tries += 1
            continue
        if act.name == _LOAD and not act.args.get("init_config"):
            loads += 1
            continue
        if act.name == _SUBMITTED:
            asked[act.job], submitted[act.job] = loads, tries
        if act.name == _ASK and not act.args.get("test_only"):
            yield _with(act, "after load_state", loads > asked.get(act.job, 0))
            asked[act.job] = loads
        elif act.name == _SETUP:
            yield _with(act, "after try_stage_in", tries > submitted.get(act.job, 0))
        else:
            yield act


def _with(act: Act, name: str, value: bool) -> Act:
    return attrs.evolve(act, args={**act.args, name: True}) if value else act
