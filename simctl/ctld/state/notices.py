"""What slurmctld posts into its own mailbox: timers that are due, scripts that have ended."""

import attrs

from simctl.ctld.state.records import JobRecord, NodeRecord, ReservationRecord
from simctl.kernel.fabric import Mailbox
from simctl.wire.messages import Message


@attrs.frozen
class PassDue:
    """Time for a scheduler pass."""


@attrs.frozen
class BackfillDue:
    """Time for a backfill pass."""


@attrs.frozen
class ReservationDue:
    """Time for a reservation to begin or to end."""

    record: ReservationRecord


@attrs.frozen
class GraceDue:
    """Time for a preempted job to end."""

    job: JobRecord
    run: int


@attrs.frozen
class PreemptAsked:
    """Time to preempt a job: a fault asks for that."""

    job_id: int


@attrs.frozen
class NodeGivenUp:
    """A node does not answer, and slurmctld is not to wait any longer."""

    node: str


@attrs.frozen
class LimitDue:
    """Time to look at a job's time limit."""

    job: JobRecord
    run: int


@attrs.frozen
class PurgeDue:
    """Time to forget a job."""

    job: JobRecord


@attrs.frozen
class BeginDue:
    """Time for a job that waited for its begin time to join its queue."""

    job: JobRecord


@attrs.frozen
class WarningDue:
    """Time to send the warning signal of a job."""

    job: JobRecord


@attrs.frozen
class DeadlineDue:
    """Time to look at the deadline of a job."""

    job: JobRecord


@attrs.frozen
class PrologEnded:
    """Tell slurmctld that PrologSlurmctld has ended for a run of a job."""

    job: JobRecord
    run: int
    status: int
    cause: int


@attrs.frozen
class EpilogEnded:
    """Tell slurmctld that EpilogSlurmctld has ended for a job."""

    job: JobRecord
    cause: int


@attrs.frozen
class EndUnlaunched:
    """Tell slurmctld that a job without nodes is over."""

    job: JobRecord


@attrs.frozen
class PingDue:
    """Time to ping the nodes that may not answer."""


@attrs.frozen
class ConnectFailed:
    """A node could not be connected to for a message, however often that was tried."""

    node: NodeRecord
    sent_us: int


@attrs.frozen
class RegistrationsDue:
    """Time to ask the nodes what they and their switch are like."""


@attrs.frozen
class StruckPingsDue:
    """Time to ping the nodes whose answers may get lost."""


@attrs.frozen
class AgentRetry:
    """Time to send a message again; `run` is the run of its job that it was meant for."""

    to: Mailbox
    message: Message
    run: int
    tried_us: int = 0


@attrs.frozen
class ClientGone:
    """Tell the controller that no client waits any more for the allocation of a job."""

    job: JobRecord


@attrs.frozen
class NodesDue:
    """Time to ask all nodes to register, after a restart."""


@attrs.frozen
class LookDue:
    """Time to ask a node that something is missing from what runs there."""

    node: NodeRecord


@attrs.frozen
class GateDue:
    """Time to ask about jobs that wait for their post-run."""


@attrs.frozen
class KeptDue:
    """Time to ask about jobs that are old enough to be purged, and about awaited stage-outs."""


@attrs.frozen
class WaitingDue:
    """Time for a main pass because jobs wait for their burst buffers."""


@attrs.frozen
class SaveDue:
    """Time to save what has changed, or everything."""

    forced: bool = False


@attrs.frozen
class CheckpointsDue:
    """Time to make the checkpoints that are due at a moment."""

    at_us: int
