"""Names for users and jobs that are the same on both sides, whatever their numbers are."""

from collections.abc import Iterable

import attrs


@attrs.frozen
class Users:
    """Names the users of one side: root, SlurmUser, and the others by first appearance."""

    names: dict[int, str]

    @classmethod
    def of(cls, uids: Iterable[int], slurm_user: int) -> "Users":
        """Name the users of a run in the order in which they appear."""
        names = {0: "root", slurm_user: "SlurmUser"}
        for uid in uids:
            if uid not in names:
                names[uid] = f"user {len(names) - 1}"
        return cls(names)

    def text(self, uid: int, euid: int) -> str:
        """Name the user of a process, and the user it acts as if that is another."""
        real, effective = self.names.get(uid, str(uid)), self.names.get(euid, str(euid))
        return real if real == effective else f"{real}/{effective}"


def job_numbers(ours: Iterable[int], theirs: Iterable[int]) -> dict[int, int]:
    """Return what each job of a run is called in the recording.

    Where both have the same numbers they stay; else the first, by number, is the first.
    """
    mine, others = sorted(set(ours)), sorted(set(theirs))
    if set(others) <= set(mine) or set(mine) <= set(others):
        return {job: job for job in mine}
    found = dict(zip(mine, others, strict=False))
    last = others[-1]
    for extra in mine[len(others) :]:
        last += 1
        found[extra] = last
    return found
