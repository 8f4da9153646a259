"""What burst buffer plugins tell people: of their pools and buffers, and to words of their own."""

from simctl.ctld import authority
from simctl.ctld.controller import Controller
from simctl.ctld.requests.meanwhile import answering
from simctl.kernel.fabric import Envelope
from simctl.wire.messages import (
    RequestBurstBufferInfo,
    RequestBurstBufferStatus,
    ResponseBurstBufferInfo,
    ResponseBurstBufferStatus,
)


async def burst_buffer_info(
    ctld: Controller, envelope: Envelope, _: RequestBurstBufferInfo
) -> None:
    """Answer with what each plugin packs for the user who asks."""
    uid = authority.uid_of(ctld, envelope)
    rc, packed = (0, []) if ctld.bb is None else await ctld.bb.state_pack(uid)
    answer = ResponseBurstBufferInfo(data=b"".join(packed), error_code=rc)
    ctld.send(envelope.sender, answer)


async def burst_buffer_status(
    ctld: Controller, envelope: Envelope, request: RequestBurstBufferStatus
) -> None:
    """Answer with what the plugins have to say to the words of the user who asks."""
    uid = authority.uid_of(ctld, envelope)
    person = ctld.site.person(uid, "")
    gid = person[2] if person is not None else uid
    with answering(ctld):
        rc, text = (0, "") if ctld.bb is None else await ctld.bb.status(request.argv, uid, gid)
    ctld.send(envelope.sender, ResponseBurstBufferStatus(text=text, error_code=rc))
