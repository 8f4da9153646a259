"""What the switch plugin says of a step's credential, for scontrol."""

import io
from typing import Any

from simctl.api.surroundings import in_words, told
from simctl.ctld.controller import Controller
from simctl.ctld.state.records import StepRecord
from simctl.kernel.fabric import Envelope
from simctl.plugins.hooks import failed
from simctl.plugins.points.switch import (
    switch_p_get_data_jobinfo,
    switch_p_get_jobinfo,
    switch_p_print_jobinfo,
    switch_p_sprint_jobinfo,
)
from simctl.wire.errno import ESLURM_INVALID_JOB_ID, ESLURM_NOT_SUPPORTED
from simctl.wire.messages import RequestSwitchInfo, ResponseSlurmRc, ResponseSwitchInfo


async def switch_info(ctld: Controller, envelope: Envelope, message: RequestSwitchInfo) -> None:
    """Answer with the credential printed, or with one of the data in it.

    Answers ESLURM_INVALID_JOB_ID for an unknown step, or ESLURM_NOT_SUPPORTED for a key in
    model modern.
    """
    job = ctld.jobs.get(message.job_id)
    step = job.steps.get(message.step_id) if job is not None else None
    if step is None:
        ctld.answer(envelope, ESLURM_INVALID_JOB_ID)
    elif message.what == "key" and ctld.site.model != "guide":
        ctld.answer(envelope, ESLURM_NOT_SUPPORTED)
    else:
        ctld.send(envelope.sender, await _told(ctld, step, message))


async def _told(
    ctld: Controller, step: StepRecord, message: RequestSwitchInfo
) -> ResponseSwitchInfo | ResponseSlurmRc:
    hooks, who = ctld.site.hooks, ctld.process
    credential, about = step.switch_job, step.about
    found: Any
    if message.what == "size":
        found = await hooks.call(
            switch_p_sprint_jobinfo, who, credential, message.number, about=about
        )
    elif message.what == "type":
        found = await hooks.call(switch_p_get_jobinfo, who, credential, message.number, about=about)
    elif message.what == "key":
        found = await hooks.call(
            switch_p_get_data_jobinfo, who, credential, message.number, about=about
        )
    else:
        file = io.StringIO()
        await hooks.call(switch_p_print_jobinfo, who, file, credential, about=about)
        found = file.getvalue()
    if failed(found):
        text = await hooks.strerror(who, who.errno, about=about)
        return ResponseSwitchInfo(text=text, failed=True)
    return ResponseSwitchInfo(text="" if found is None else told(in_words, found))
