"""When and where a job would start that is not submitted: what --test-only asks."""

import attrs

from simctl.ctld.controller import Controller
from simctl.ctld.requests.submit import Refusal, create
from simctl.ctld.scheduling.backfill import Plan
from simctl.ctld.state.records import JobRecord, PartRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.errno import ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE
from simctl.wire.hostlist import compress
from simctl.wire.ids import SECOND
from simctl.wire.messages import RequestJobWillRun, ResponseJobWillRun
from simctl.wire.resources import Share


@attrs.frozen(kw_only=True)
class Start:
    """Where a job would start, and when."""

    part: PartRecord
    when_us: int
    shares: tuple[Share, ...]


async def job_will_run(ctld: Controller, envelope: Envelope, message: RequestJobWillRun) -> None:
    """Answer when a job would start as far as time limits tell; its id is used up all the same.

    Answers as for a submission, or ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE if it can never
    start. In Slurm: `job_start_data()` of job_mgr.c.
    """
    made = await create(ctld, envelope, message.job_desc, batch=True, kept=False)
    if isinstance(made, Refusal):
        answer = ResponseJobWillRun(error_code=made.error_code, text=made.text)
    else:
        answer = _answer(ctld, made)
    ctld.send(envelope.sender, answer)


def _answer(ctld: Controller, job: JobRecord) -> ResponseJobWillRun:
    starts = [start for part in job.parts if (start := _start(ctld, job, part)) is not None]
    if job.lasting_reason or not starts:
        return ResponseJobWillRun(
            job_id=job.job_id, error_code=ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE
        )
    start = min(starts, key=lambda each: each.when_us)
    names = tuple(ctld.nodes[share.index].name for share in start.shares)
    return ResponseJobWillRun(
        job_id=job.job_id,
        start_s=ctld.site.start_time_s + max(start.when_us, job.begin_us) // SECOND,
        num_cpus=sum(share.cpus for share in start.shares),
        node_list=compress(names),
        partition=start.part.name,
    )


def _start(ctld: Controller, job: JobRecord, part: PartRecord) -> Start | None:
    """Return when a job would start in a partition; None where that is not known."""
    plan = Plan(ctld)
    shares = plan.room_now(job, part)
    if shares:
        return Start(part=part, when_us=ctld.now_us, shares=shares)
    found = plan.first_fit(job, part)
    return Start(part=part, when_us=found[0], shares=found[1]) if found else None
