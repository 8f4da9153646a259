"""Credentials of launches: what slurmctld signs, and every slurmd checks before it runs anything.

In Slurm munge or a key pair does this. Here both halves of a pair are made of one secret of the
cluster: the signer is slurmctld's alone, what slurmd has can only verify.
"""

import hashlib
import hmac
from typing import Final

import msgspec

LIFETIME_S: Final = 120
"""How long a credential is good, and a requeued job has to wait for those of its last run."""

_BYTES: Final = 16


class JobCredential(msgspec.Struct, frozen=True, kw_only=True):
    """Whose tasks may be launched, of which step in which run of its job, where, and since when."""

    job_id: int
    step_id: int
    restart_cnt: int
    uid: int
    node_list: str
    nodes: tuple[str, ...]
    cores: tuple[int, ...]
    """The cpus it has on each of its nodes."""

    made_us: int
    signature: bytes = b""

    def signed(self) -> bytes:
        """Return the bytes that the signature is for."""
        return repr(
            (
                *(self.job_id, self.step_id, self.restart_cnt, self.uid),
                *(self.node_list, self.cores, self.made_us),
            )
        ).encode()


def _digest(secret: bytes, credential: JobCredential) -> bytes:
    return hashlib.blake2b(credential.signed(), key=secret, digest_size=_BYTES).digest()


class Signer:
    """The half of the pair that makes credentials."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, credential: JobCredential) -> JobCredential:
        """Return a credential with its signature."""
        signature = _digest(self._secret, credential)
        return msgspec.structs.replace(credential, signature=signature)


class Verifier:
    """The half of the pair that checks credentials."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._last: JobCredential | None = None

    def verifies(self, credential: JobCredential) -> bool:
        """Return whether slurmctld has signed a credential as it stands."""
        if credential is self._last:
            # Every node of a step is shown the same.
            return True
        good = hmac.compare_digest(_digest(self._secret, credential), credential.signature)
        self._last = credential if good else None
        return good


class KeyPair:
    """The keys of a cluster."""

    def __init__(self, secret: str) -> None:
        key = hashlib.blake2b(secret.encode(), digest_size=32).digest()
        self.signer = Signer(key)
        self.verifier = Verifier(key)


NOBODY: Final = 65534


def damaged(credential: JobCredential | None, how: str, signer: Signer) -> JobCredential | None:
    """Return a credential with a wrong signature, or for another node or user and signed so."""
    if credential is None:
        return None
    if how == "signature":
        signature = bytes(byte ^ 0xFF for byte in credential.signature)
        return msgspec.structs.replace(credential, signature=signature)
    if how == "node":
        nodes = tuple(f"not-{name}" for name in credential.nodes)
        other = msgspec.structs.replace(credential, nodes=nodes, node_list=",".join(nodes))
    else:
        other = msgspec.structs.replace(credential, uid=NOBODY)
    return signer.sign(other)
