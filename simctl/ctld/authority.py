"""Who may ask what of slurmctld, and how a refusal is told.

The table is `simctl.wire.rights`. Where it names no owner, the loop of slurmctld refuses the
request before its handler sees it. A handler of a request about a job calls `refusal` once it
knows the job.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from simctl.ctld.choose.request import Asker
from simctl.ctld.controller import Controller
from simctl.ctld.state.records import JobRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.credentials import JobCredential
from simctl.wire.errno import SLURM_SUCCESS
from simctl.wire.messages import Message, ResponseSlurmRc
from simctl.wire.records import JobDesc
from simctl.wire.rights import OF_SLURMCTLD, Right, Who

Handler = Callable[[Controller, Envelope, Any], Awaitable[None]]


def uid_of(ctld: Controller, envelope: Envelope) -> int:
    """Return as whom something is asked; slurmctld's own notices are SlurmUser's."""
    sender = envelope.sender
    return sender.process.uid if sender is not None else ctld.process.uid


def is_daemon(ctld: Controller, envelope: Envelope) -> bool:
    """Return whether root or SlurmUser asks."""
    return uid_of(ctld, envelope) in (0, ctld.process.uid)


def refusal(ctld: Controller, envelope: Envelope, owner: int | None = None) -> int:
    """Return the errno with which the table refuses a request about a job of *owner*, or 0."""
    right = OF_SLURMCTLD[envelope.message.rpc]
    uid = uid_of(ctld, envelope)
    return SLURM_SUCCESS if _allows(ctld, right, uid, owner) else right.errno


def _allows(ctld: Controller, right: Right, uid: int, owner: int | None) -> bool:
    may = right.may
    return bool(
        Who.ANYBODY in may
        or (Who.DAEMONS in may and uid in (0, ctld.process.uid))
        or (Who.ROOT in may and uid == 0)
        or (Who.OWNER in may and uid == owner)
        or (Who.OPERATOR in may and ctld.is_operator(uid))
        or (Who.ADMINISTRATOR in may and ctld.is_administrator(uid))
    )


def guarded(handler: Handler, message: type) -> Handler:
    """Return a handler that refuses a message as the table says, where no owner matters."""
    right = OF_SLURMCTLD.get(getattr(message, "rpc", ""))
    if right is None or not right.of_loop:
        return handler

    def guard(ctld: Controller, envelope: Envelope, request: Message) -> Awaitable[None]:
        if refusal(ctld, envelope):
            return _refuse(ctld, envelope, request, right.errno)
        return handler(ctld, envelope, request)

    return guard


async def _refuse(ctld: Controller, envelope: Envelope, request: Message, errno: int) -> None:
    if isinstance(request, ResponseSlurmRc):
        ctld.tell_refusal(envelope, errno)
    else:
        ctld.answer(envelope, errno)


def credential(
    ctld: Controller,
    job: JobRecord,
    step_id: int,
    *,
    node_list: str,
    nodes: tuple[str, ...],
    cores: tuple[int, ...],
) -> JobCredential:
    """Return what lets a step of a job's present run be launched on its nodes, for a while."""
    made = JobCredential(
        job_id=job.job_id,
        step_id=step_id,
        restart_cnt=job.restart_cnt,
        uid=job.desc.uid,
        node_list=node_list,
        nodes=nodes,
        cores=cores,
        made_us=ctld.now_us,
    )
    return ctld.site.keys.signer.sign(made)


def asker_of(ctld: Controller, uid: int, desc: JobDesc) -> Asker:
    """Return who asks slurmctld for a job, as partitions see it."""
    return Asker(desc.account, privileged=uid in (0, ctld.process.uid))
