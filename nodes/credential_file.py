"""The file in which slurmd keeps what it must know of jobs when it starts again: cred_state.

It lies in SlurmdSpoolDir of the node: which prologs have ended and how, what is revoked, which
epilogs were begun, which credentials were used. It is as if it were written at each change.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from simctl.kernel.disk import is_shared
from simctl.kernel.procs import Process
from simctl.site import Site
from simctl.wire.state_files import VERSION, Header, StateFile, read_file, write_file

if TYPE_CHECKING:
    from simctl.nodes.spool import Spool

NAME: Final = "cred_state"


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that is known: of a table, under a key."""

    table: str
    key: tuple[int, ...]
    value: int | None = None


_SINCE: Final = "since"
"""What is not a table: since when all is known of credentials."""

_KEYS: Final = {
    _SINCE: (0, True),
    **dict.fromkeys(("prologs", "revoked"), (2, True)),
    **dict.fromkeys(("scripts", "over", "begun"), (2, False)),
    "used": (4, True),
}
"""How many numbers a key of each table has, and whether there is a value to it."""

_DECODER: Final = msgspec.json.Decoder(_Entry)


class CredentialFile:
    """The file of one node; its slurmd has what it says in the tables of its spool."""

    def __init__(self, site: Site, slurmd: Process, spool: "Spool") -> None:
        self._site = site
        self._slurmd = slurmd
        self._spool = spool
        self._host = slurmd.host.name
        self.path = path_on(site, self._host)

    def open(self, *, follows: bool) -> None:
        """Keep the file from now on; take in what another slurmd left that this one *follows*."""
        if follows:
            self._restore()
        self._site.disk.keep(self._host, self.path, self._bytes)

    def _restore(self) -> None:
        try:
            data = self._site.disk.view(self._host, 0).read(self.path)
        except FileNotFoundError:
            self._take(())
        except OSError as error:
            self._take(())
            self._tell(f"it cannot be read: {error.strerror}")
        else:
            self._read(data)

    def close(self) -> None:
        """Leave the file as it is when slurmd ends."""
        if not self._site.disk.release(self._host, self.path):
            args = {
                "file": NAME,
                "text": f"cannot write {self.path}: the disk is full or read-only",
            }
            self._site.trace.note("log", "credentials_not_saved", self._slurmd, args=args)

    def _read(self, data: bytes) -> None:
        file = read_file(data, NAME)
        why = self._unusable(file)
        if why:
            self._take(())
            self._tell(f"{why}; what was revoked or used here is lost")
            return
        # As slurmctld does: model modern stops at what is damaged.
        payloads = (*file.records, *(file.beyond if self._site.model == "guide" else ()))
        entries = [each for each in map(_decoded, payloads) if each is not None]
        self._take(entries)
        problem = file.problem or (
            "a record makes no sense" if len(entries) < len(payloads) else ""
        )
        if problem:
            self._tell(f"{problem}; {len(entries)} records are taken, the rest is lost")

    def _unusable(self, file: StateFile) -> str:
        """Return why nothing of a file is taken, or nothing."""
        header, cluster = file.header, self._site.conf.cluster_name
        if header is None:
            return file.problem
        if header.simctl_state != VERSION:
            return f"it is of version {header.simctl_state}, and this slurmd reads {VERSION}"
        if header.cluster != cluster:
            return f"it is of cluster {header.cluster[:64]!r}, and this is {cluster!r}"
        return ""

    def _tell(self, text: str) -> None:
        """Say that the file is damaged, in the trace and at the end of the run."""
        trace = self._site.trace
        args = {"file": NAME, "text": text}
        self._spool.known_from_us = self._site.kernel.now_us
        trace.note("log", "incomplete_credentials", self._slurmd, args=args)
        trace.damages.append(f"{self.path} of {self._host}: {text}")

    # What stands in it.

    def _tables(self) -> dict[str, dict[Any, Any]]:
        spool = self._spool
        return {name: getattr(spool, name) for name in _KEYS if name != _SINCE}

    def _take(self, entries: "tuple[_Entry, ...] | list[_Entry]") -> None:
        """Let the tables hold what a file says, and no more."""
        tables = self._tables()
        for table in tables.values():
            table.clear()
        self._spool.known_from_us = 0
        for each in entries:
            if each.table == _SINCE:
                self._spool.known_from_us = each.value or 0
            else:
                tables[each.table][each.key] = each.value

    def _bytes(self) -> bytes:
        """Return what the file should hold; nothing before there is anything to tell."""
        entries = list(self._entries())
        if not entries:
            return b""
        site = self._site
        header = Header(
            simctl_state=VERSION,
            file=NAME,
            cluster=site.conf.cluster_name,
            clock_s=0,
            saved_us=0,
            zero_s=site.start_time_s,
        )
        return write_file(header, [msgspec.json.encode(each) for each in entries])

    def _entries(self) -> Iterator[_Entry]:
        if self._spool.known_from_us:
            yield _Entry(table=_SINCE, key=(), value=self._spool.known_from_us)
        for name, table in self._tables().items():
            for key, value in table.items():
                yield _Entry(table=name, key=key, value=value)


def path_on(site: Site, host: str) -> str:
    """Return where the file of a node lies; on a disk that all share it bears the node's name."""
    folder = site.conf.slurmd_spool_dir.replace("%n", host).replace("%h", host)
    return f"{folder}/{NAME}.{host}" if is_shared(folder) else f"{folder}/{NAME}"


def _decoded(payload: bytes) -> _Entry | None:
    try:
        entry = _DECODER.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    numbers, valued = _KEYS.get(entry.table, (-1, False))
    fits = len(entry.key) == numbers and (entry.value is not None) == valued
    return entry if fits else None
