"""After a start with saved state: what nodes run is held against what slurmctld knows.

Registrations list the steps of a node. What slurmctld does not know is ended there; what the node
does not have, though slurmctld thinks it runs there, is over.
"""

from typing import Any

from simctl.ctld.controller import Controller
from simctl.ctld.jobs import completion, launch, suspensions
from simctl.ctld.nodes import reachability
from simctl.ctld.recovery import loss
from simctl.ctld.state.notices import NodesDue
from simctl.ctld.state.records import JobRecord, NodeRecord, StepRecord
from simctl.ctld.steps import steps
from simctl.wire.messages import (
    MessageNodeRegistrationStatus,
    RequestNodeRegistrationStatus,
    SrunJobComplete,
)
from simctl.wire.states import NodeBase


async def nodes_due(ctld: Controller, _: object, __: NodesDue) -> None:
    """Ask every node that can be reached; the others are asked once they can be."""
    for node in ctld.nodes:
        ctld.send(ctld.address(node), RequestNodeRegistrationStatus())
    if any(not reachability.answers(ctld, node) for node in ctld.nodes):
        reachability.watch_unreachable(ctld)


async def fail_on_lost_nodes(ctld: Controller) -> None:
    """End what runs on nodes that are DOWN: slurmctld died before it was done with that."""
    for node in ctld.nodes:
        if node.base is NodeBase.DOWN:
            await loss.fail_jobs(ctld, node)


def tell_client(ctld: Controller, job: JobRecord) -> None:
    """Tell an srun or salloc of its allocation again, which it may not have heard of.

    A slurmctld that was stopped has seen its requests through, but what got lost on the way it
    would have sent again; real Slurm forgets that.
    """
    if ctld.saves.was_stopped and ctld.site.model == "modern":
        return
    if job.batch or job.state.configuring or job.next_step_id:
        return
    # One that is gone cannot be told, which ends the job.
    launch.tell(ctld, job)


def tell_clients_of_ends(ctld: Controller) -> None:
    """Tell those who still wait on a job that is over so again: they may not have heard of it."""
    over = [job for job in ctld.jobs.values() if job.state.finished]
    waiting = {box: job.job_id for job in over for box in completion.clients(job)}
    for box, job_id in (waiting | ctld.outlasting).items():
        ctld.send(box, SrunJobComplete(job_id=job_id))


async def node_registered(
    ctld: Controller, node: NodeRecord, message: MessageNodeRegistrationStatus
) -> None:
    """End what a node does not have that it should, the first time it is heard of again."""
    if node.name not in ctld.unheard:
        return
    ctld.unheard.discard(node.name)
    listed = set(message.steps)
    for job in [*node.jobs.values(), *suspensions.suspended_on(ctld, node)]:
        for step in list(job.steps.values()):
            key = (job.job_id, step.step_id, job.restart_cnt)
            if key not in listed and _nobody_runs(step):
                await _end_there(ctld, step, node)


def _nobody_runs(step: StepRecord) -> bool:
    """Return whether the srun of a step is gone: one that lives is about to launch or to end it."""
    return step.srun is None or not step.srun.open


async def _end_there(ctld: Controller, step: StepRecord, node: NodeRecord) -> None:
    names: Any = step.layout.nodes
    if node.name not in names:
        return
    if step.end_on(node.name):
        await steps.delete(ctld, step)
