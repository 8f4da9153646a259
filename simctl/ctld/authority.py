"""Who may ask what of slurmctld: what only daemons may, and how a refusal is told.

The table is `simctl.wire.rights`. Requests about a job are held against its owner by their own
handlers, which have to know the job first.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from simctl.ctld.records import JobRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.credentials import JobCredential
from simctl.wire.errno import ESLURM_USER_ID_MISSING, errno_name
from simctl.wire.messages import Message, ResponseSlurmRc
from simctl.wire.rights import OF_SLURMCTLD, only_daemons

if TYPE_CHECKING:
    from simctl.ctld.daemon import Slurmctld

Handler = Callable[["Slurmctld", Envelope, Any], Awaitable[None]]


def uid_of(ctld: "Slurmctld", envelope: Envelope) -> int:
    """Return as whom something is asked; slurmctld's own notices are SlurmUser's."""
    sender = envelope.sender
    return sender.process.uid if sender is not None else ctld.process.uid


def is_daemon(ctld: "Slurmctld", envelope: Envelope) -> bool:
    """Tell whether root or SlurmUser asks."""
    return uid_of(ctld, envelope) in (0, ctld.process.uid)


def may(ctld: "Slurmctld", envelope: Envelope, owner: int) -> bool:
    """Tell whether the owner of a job asks, root or SlurmUser."""
    return uid_of(ctld, envelope) in (owner, 0, ctld.process.uid)


def guarded(handler: Handler, message: type) -> Handler:
    """Return a handler that takes a message from root and SlurmUser alone, if the table says so."""
    rpc = getattr(message, "rpc", "")
    if not only_daemons(OF_SLURMCTLD, rpc):
        return handler

    def guard(ctld: "Slurmctld", envelope: Envelope, request: Message) -> Awaitable[None]:
        sender = envelope.sender
        if sender is None or sender.process.uid in (0, ctld.process.uid):
            return handler(ctld, envelope, request)
        return _refuse(ctld, envelope, request)

    return guard


async def _refuse(ctld: "Slurmctld", envelope: Envelope, request: Message) -> None:
    if isinstance(request, ResponseSlurmRc):
        tell(ctld, envelope, ESLURM_USER_ID_MISSING)
    else:
        ctld.answer(envelope, ESLURM_USER_ID_MISSING)


def credential(
    ctld: "Slurmctld",
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


def tell(ctld: "Slurmctld", envelope: Envelope, return_code: int) -> None:
    """Say in the trace that a request is refused for who asks."""
    message, sender = envelope.message, envelope.sender
    if sender is None:
        return
    job_id = getattr(message, "job_id", 0)
    args = {"rpc": message.rpc, "who": sender.name, "by": sender.process.uid}
    ctld.process.cause = ctld.site.trace.note(
        "log",
        "refused",
        ctld.process,
        args=args,
        rc=return_code,
        errno=errno_name(return_code),
        job=job_id or UNSET,
    )
