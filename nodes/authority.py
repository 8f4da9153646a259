"""Whom slurmd listens to, and with which credential anything is launched."""

from typing import Final

import attrs
from msgspec import UNSET

from simctl.kernel.fabric import Envelope, Mailbox
from simctl.kernel.procs import Process
from simctl.nodes.spool import Spool
from simctl.site import Site
from simctl.wire.credentials import LIFETIME_S, JobCredential
from simctl.wire.errno import (
    ESLURMD_CREDENTIAL_EXPIRED,
    ESLURMD_CREDENTIAL_REPLAYED,
    ESLURMD_CREDENTIAL_REVOKED,
    ESLURMD_INVALID_JOB_CREDENTIAL,
    errno_name,
)
from simctl.wire.ids import SECOND
from simctl.wire.rights import OF_SLURMD, Who

_LIFETIME_US: Final = LIFETIME_S * SECOND


@attrs.frozen(kw_only=True)
class Launch:
    """What a launch request asks for: which step, of which run of its job, as which user."""

    job_id: int
    step_id: int
    restart_cnt: int
    uid: int
    nodeid: int
    """Which of the step's nodes this is to be."""


class Authority:
    """Whom the slurmd of a node listens to."""

    def __init__(self, site: Site, process: Process, spool: Spool) -> None:
        self._site = site
        self._process = process
        self._spool = spool
        slurm_user = site.users.get(site.conf.slurm_user)
        self._trusted = (0, slurm_user.uid if slurm_user is not None else 0)

    def trusts(self, asker: Mailbox | None) -> bool:
        """Return whether it is root or SlurmUser who asks, or slurmd itself."""
        return asker is None or asker.process.uid in self._trusted

    def is_for(self, asker: Mailbox | None, owner: int) -> bool:
        """Return whether who asks may have to do with what is a user's."""
        return self.trusts(asker) or _uid(asker) == owner

    def refusal(self, envelope: Envelope) -> int:
        """Return the errno for a request that only root and SlurmUser may make, or 0."""
        right = OF_SLURMD.get(envelope.message.rpc)
        if right is None or right.who is not Who.DAEMONS:
            return 0
        self.tell(envelope, right.errno, "only root and SlurmUser may")
        return right.errno

    def tell(self, envelope: Envelope, return_code: int, why: str) -> None:
        """Say in the trace that a request is refused."""
        message, sender = envelope.message, envelope.sender
        if sender is None:
            return
        job_id = getattr(message, "job_id", 0)
        args = {"rpc": message.rpc, "who": sender.name, "by": sender.process.uid, "why": why}
        self._process.cause = self._site.trace.note(
            "log",
            "refused",
            self._process,
            args=args,
            rc=return_code,
            errno=errno_name(return_code),
            job=job_id or UNSET,
        )

    # Credentials.

    def launch_refusal(
        self, envelope: Envelope, launch: Launch, credential: JobCredential | None
    ) -> int:
        """Return why nothing is launched with a credential, and say so; 0 if it is good."""
        rc, why = self._check(launch, credential)
        sender = envelope.sender
        if not rc and not self.is_for(sender, launch.uid):
            rc, why = ESLURMD_INVALID_JOB_CREDENTIAL, "it is for another user than who asks"
        if rc:
            self.tell(envelope, rc, why)
        return rc

    def _check(self, launch: Launch, credential: JobCredential | None) -> tuple[int, str]:
        invalid = ESLURMD_INVALID_JOB_CREDENTIAL
        if credential is None or not self._site.keys.verifier.verifies(credential):
            return invalid, "slurmctld has not signed it so"
        if self._site.kernel.now_us > credential.made_us + _LIFETIME_US:
            return ESLURMD_CREDENTIAL_EXPIRED, f"it was good for {LIFETIME_S} s"
        if credential.made_us < self._spool.known_from_us:
            # It may have been revoked or used: this slurmd has no record of that any more.
            return ESLURMD_CREDENTIAL_REVOKED, "it is older than what is known of credentials here"
        named = credential.job_id, credential.step_id, credential.restart_cnt
        if named != (launch.job_id, launch.step_id, launch.restart_cnt):
            return invalid, "it is for another step"
        if credential.uid != launch.uid:
            return invalid, f"it is for uid {credential.uid}"
        nodes = credential.nodes
        if launch.nodeid >= len(nodes) or nodes[launch.nodeid] != self._process.host.name:
            return invalid, f"it is for {credential.node_list}"
        return 0, ""

    def replay(self, envelope: Envelope, launch: Launch, made_us: int) -> int:
        """Take note that a credential is used here; return an errno if it was before.

        A batch script runs once in a run of its job, with whatever credential: *made_us* is 0.
        """
        key = launch.job_id, launch.step_id, launch.restart_cnt, made_us
        if self._spool.use(key, self._site.kernel.now_us):
            return 0
        self.tell(envelope, ESLURMD_CREDENTIAL_REPLAYED, "it was used before")
        return ESLURMD_CREDENTIAL_REPLAYED


def _uid(asker: Mailbox | None) -> int:
    return asker.process.uid if asker is not None else 0
