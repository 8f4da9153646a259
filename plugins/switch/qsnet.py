"""The Elan card of one node, as its driver shows it: programs, their contexts, who is attached.

A program lives in the card, not in the process that made it: what one process creates another one
destroys. The card forgets everything when its node crashes.
"""

from collections.abc import Iterable
from typing import Final

import attrs

from simctl.plugin import DiskView, SlurmError, disk, hostlist

EBADMAGIC_QSWLIBSTATE: Final = 3000
EBADMAGIC_QSWJOBINFO: Final = 3001
EINVAL_PRGCREATE: Final = 3002
EEXIST_PRGDESTROY: Final = 3004
EFAULT_PRGADDCAP: Final = 3009
EINVAL_SETCAP: Final = 3010
EFAULT_SETCAP: Final = 3011
EGETNODEID: Final = 3012
EUNPACK_QSW: Final = 3013
EVERSION_QSW: Final = 3014
EBADTASKCOUNT_QSW: Final = 3015
ENOCONTEXT: Final = 3016
ESTATE_QSW: Final = 3017
ECARD_QSW: Final = 3018

TEXTS: Final = {
    EBADMAGIC_QSWLIBSTATE: "Bad magic in QSW libstate",
    EBADMAGIC_QSWJOBINFO: "Bad magic in QSW jobinfo",
    EINVAL_PRGCREATE: "Elan program exists already, or has no number",
    EEXIST_PRGDESTROY: "No such Elan program to destroy",
    EFAULT_PRGADDCAP: "Elan capability names no contexts, or those of another program",
    EINVAL_SETCAP: "Elan program has no capability of this number, or is another user's",
    EFAULT_SETCAP: "No such Elan program to attach to",
    EGETNODEID: "Host has no Elan id of its own",
    EUNPACK_QSW: "Packed QSW record is damaged",
    EVERSION_QSW: "Packed QSW record is of another version of the plugin",
    EBADTASKCOUNT_QSW: "Number of tasks is beyond what an Elan capability holds",
    ENOCONTEXT: "No Elan hardware contexts are left on the nodes",
    ESTATE_QSW: "File of QSW libstate cannot be read or written",
    ECARD_QSW: "Elan card tells nonsense of a program",
}
"""What this plugin says of its error numbers."""

_CARD: Final = "/run/qsnet"
_HOSTS: Final = "/etc/elanhosts"


@attrs.frozen(kw_only=True)
class Program:
    """A program in the card: its owner and the hardware contexts its tasks may use."""

    uid: int
    low_context: int
    high_context: int

    def meets(self, other: "Program") -> bool:
        """Return whether another program has one of its contexts."""
        return self.low_context <= other.high_context and other.low_context <= self.high_context


class Card:
    """The card of the node that the calling process runs on, with that process's rights."""

    def __init__(self) -> None:
        self._disk: DiskView = disk()

    def find(self, prognum: int) -> Program | None:
        """Return a program, or None.

        Raises:
            SlurmError: ECARD_QSW: the card holds something else there.
        """
        try:
            uid, low, high = map(int, self._disk.read_text(_path(prognum)).split())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise SlurmError(ECARD_QSW, f"program {prognum}") from error
        return Program(uid=uid, low_context=low, high_context=high)

    def create(self, prognum: int, program: Program) -> None:
        """Make a program, with a capability for each of its contexts.

        Raises:
            SlurmError: It has no number or is there already; its contexts are none, or another
                program's; the card takes nothing.
        """
        if prognum < 1 or self.find(prognum) is not None:
            raise SlurmError(EINVAL_PRGCREATE, f"program {prognum}")
        others = [found for number in self.programs() if (found := self.find(number))]
        if program.low_context > program.high_context or any(map(program.meets, others)):
            raise SlurmError(EFAULT_PRGADDCAP, f"program {prognum}")
        text = f"{program.uid} {program.low_context} {program.high_context}\n"
        try:
            for folder in (_CARD, f"{_CARD}/prg"):
                if not self._disk.is_dir(folder):
                    self._disk.mkdir(folder)
            self._disk.write(_path(prognum), text)
        except OSError as error:
            raise SlurmError(ECARD_QSW, str(error)) from error

    def attach(self, prognum: int, uid: int, procid: int) -> int:
        """Let a process of *uid* use capability number *procid*; return its hardware context.

        Raises:
            SlurmError: There is no such program or capability, or it is another user's.
        """
        program = self.find(prognum)
        if program is None:
            raise SlurmError(EFAULT_SETCAP, f"program {prognum}")
        context = program.low_context + procid
        if program.uid != uid or context > program.high_context:
            raise SlurmError(EINVAL_SETCAP, f"program {prognum}, capability {procid}, uid {uid}")
        return context

    def destroy(self, prognum: int) -> None:
        """Take a program out of the card.

        Raises:
            SlurmError: There is none, or the card keeps it.
        """
        if prognum not in self.programs():
            raise SlurmError(EEXIST_PRGDESTROY, f"program {prognum}")
        try:
            self._disk.remove(_path(prognum))
        except OSError as error:
            raise SlurmError(ECARD_QSW, str(error)) from error

    def programs(self) -> list[int]:
        """Return the numbers of the programs in the card."""
        if not self._disk.is_dir(f"{_CARD}/prg"):
            return []
        names = self._disk.listdir(f"{_CARD}/prg")
        return sorted(int(name) for name in names if name.isdecimal())


def _path(prognum: int) -> str:
    return f"{_CARD}/prg/{prognum}"


class ElanHosts:
    """Which Elan id a host has: as /etc/elanhosts says, or the number its name ends with.

    A line of the file is ``TYPE ID HOST``, ids and hosts may be ranges: ``eip [0-3] n[1-4]``; text
    after # is a comment.
    """

    def __init__(self, lines: str | None) -> None:
        self._ids = None if lines is None else _read(lines)

    @classmethod
    def here(cls) -> "ElanHosts":
        """Read the file of the calling process's host."""
        files = disk()
        if not files.exists(_HOSTS):
            return cls(None)
        return cls(files.read(_HOSTS).decode(errors="replace"))

    def ids_of(self, hosts: Iterable[str]) -> list[int]:
        """Return the Elan ids of hosts, in order.

        Raises:
            SlurmError: A host has none, or that of another.
        """
        owners: dict[int, str] = {}
        for host in hosts:
            number = self.id_of(host)
            if number in owners:
                raise SlurmError(EGETNODEID, f"hosts {owners[number]} and {host} are both {number}")
            owners[number] = host
        return sorted(owners)

    def id_of(self, host: str) -> int:
        """Return a host's Elan id.

        Raises:
            SlurmError: It has none.
        """
        if self._ids is not None:
            found = self._ids.get(host)
        else:
            digits = host[len(host.rstrip("0123456789")) :]
            found = int(digits) if digits else None
        if found is None or found > _HIGHEST_ID:
            raise SlurmError(EGETNODEID, f"host {host}")
        return found


_HIGHEST_ID: Final = 0xFFFF


def _read(lines: str) -> dict[str, int]:
    """Return the id of each host that the file names; what cannot be understood names no host."""
    ids: dict[str, int] = {}
    for line in lines.splitlines():
        words = line.partition("#")[0].split()
        if len(words) < 3:  # noqa: PLR2004 - type, ids, hosts
            continue
        try:
            numbers = [int(number[1:]) for number in hostlist(f"x{words[1]}")]
            hosts = hostlist(words[2])
        except (SlurmError, ValueError):
            continue
        ids.update(zip(hosts, numbers, strict=False))
    return ids
