"""Questions that slurmctld answers while a call of a plugin holds it up.

Real slurmctld has a thread for each request. During job_submit it holds read locks, and during
bb_p_get_status none: what only reads is answered, and what changes anything waits. During
job_modify and most functions of burst buffer plugins it holds write locks, and all wait.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from simctl.ctld.controller import Controller
from simctl.ctld.reporting import info
from simctl.ctld.requests import answers
from simctl.kernel.fabric import Envelope
from simctl.wire.messages import (
    RequestBuildInfo,
    RequestJobInfo,
    RequestJobStepInfo,
    RequestNodeInfo,
    RequestPartitionInfo,
    RequestReservationInfo,
)

_QUESTIONS: Final[Mapping[type, Callable[[Controller, Envelope, Any], Awaitable[None]]]] = {
    RequestJobInfo: info.job_info,
    RequestJobStepInfo: info.job_step_info,
    RequestNodeInfo: info.node_info,
    RequestPartitionInfo: info.partition_info,
    RequestReservationInfo: info.reservation_info,
    RequestBuildInfo: answers.build_info,
}


@contextmanager
def answering(ctld: Controller) -> Iterator[None]:
    """Have questions answered by threads of their own, as they arrive."""

    def take(envelope: Envelope) -> bool:
        message = envelope.message
        waits = isinstance(message, RequestJobInfo) and message.when_over
        if waits or type(message) not in _QUESTIONS:
            return False
        ctld.process.start(partial(_answer, ctld, envelope), "question")
        return True

    ctld.mailbox.meanwhile = take
    try:
        yield
    finally:
        ctld.mailbox.meanwhile = None


async def _answer(ctld: Controller, envelope: Envelope) -> None:
    ctld.mailbox.received(envelope)
    await _QUESTIONS[type(envelope.message)](ctld, envelope, envelope.message)
