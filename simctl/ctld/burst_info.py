"""What slurmctld answers whoever asks for the state of burst buffers."""

from simctl.ctld import authority
from simctl.ctld.controller import Controller
from simctl.kernel.fabric import Envelope
from simctl.wire.messages import RequestBurstBufferInfo, ResponseBurstBufferInfo


async def burst_buffer_info(
    ctld: Controller, envelope: Envelope, _: RequestBurstBufferInfo
) -> None:
    """Answer with what each plugin packs for the user who asks."""
    uid = authority.uid_of(ctld, envelope)
    rc, packed = (0, []) if ctld.bb is None else await ctld.bb.state_pack(uid)
    answer = ResponseBurstBufferInfo(data=b"".join(packed), error_code=rc)
    ctld.send(envelope.sender, answer)
