"""The records of switch/federation: what they hold, how they are packed, how they read."""

from typing import Any, Final

import attrs

from simctl.plugin import Buf
from simctl.plugins.switch import records, sni
from simctl.plugins.switch.sni import LOADED, UNLOADED

FREE: Final = 0
"""The key of a window that no job has; keys of jobs start at 1."""


def _form(magic: int, bad_magic: int, name: str, damaged: int = sni.EUNPACK) -> records.Form:
    return records.Form(
        magic=magic,
        bad_magic=bad_magic,
        bad_version=sni.EVERSION,
        damaged=damaged,
        name=f"federation {name}",
    )


NODEINFO: Final = _form(0xC00CC00D, sni.EBADMAGIC_FEDNODEINFO, "nodeinfo")
JOBINFO: Final = _form(0xC00CC00E, sni.EBADMAGIC_FEDJOBINFO, "jobinfo")
LIBSTATE: Final = _form(
    0xC00CC00F, sni.EBADMAGIC_FEDLIBSTATE, "libstate", sni.EBADMAGIC_FEDLIBSTATE
)


@attrs.define(kw_only=True)
class Window:
    """A window of an adapter: UNLOADED, or LOADED by the job with this key."""

    id: int
    status: int = UNLOADED
    key: int = FREE


@attrs.define(kw_only=True)
class Adapter:
    """An adapter: where it is reached, and its windows."""

    name: str
    lid: int
    windows: list[Window]


@attrs.define(kw_only=True)
class FedNodeInfo:
    """What a node tells of its adapters."""

    magic: int = NODEINFO.magic
    name: str = ""
    adapters: list[Adapter] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class Entry:
    """A row of a step's network table: the window in which a task is reached.

    `node` is the place of its node among the step's.
    """

    task_id: int
    node: int = 0
    lid: int
    window_id: int


@attrs.frozen(kw_only=True)
class Table:
    """The windows of a step's tasks on the adapters of one name."""

    adapter: str
    entries: tuple[Entry, ...]


@attrs.define(kw_only=True)
class FedJobInfo:
    """The credential of a step: its key, its nodes, and a network table for each adapter."""

    magic: int = JOBINFO.magic
    job_key: int = FREE
    job_desc: str = ""
    window_memory: int = 0
    bulk_xfer: bool = False
    nodes: list[str] = attrs.field(factory=list)
    tables: list[Table] = attrs.field(factory=list)

    def simctl_state(self) -> dict[str, Any]:
        """Return its fields, the network tables with them."""
        return attrs.asdict(self)


# Packed forms.


def write_nodeinfo(info: FedNodeInfo, buffer: Buf) -> None:
    """Append the body of a node record."""
    buffer.packstr(info.name)
    buffer.pack32(len(info.adapters))
    for adapter in info.adapters:
        buffer.packstr(adapter.name)
        buffer.pack16(adapter.lid)
        buffer.pack32(len(adapter.windows))
        for window in adapter.windows:
            buffer.pack32(window.id)
            buffer.pack32(window.status)
            buffer.pack16(window.key)


def read_nodeinfo(buffer: Buf) -> FedNodeInfo:
    """Take the body of a node record."""
    name = buffer.unpackstr() or ""
    adapters = [_read_adapter(buffer) for _ in range(buffer.unpack32())]
    return FedNodeInfo(name=name, adapters=adapters)


def _read_adapter(buffer: Buf) -> Adapter:
    name = buffer.unpackstr() or ""
    lid = buffer.unpack16()
    windows = [
        Window(id=buffer.unpack32(), status=buffer.unpack32(), key=buffer.unpack16())
        for _ in range(buffer.unpack32())
    ]
    return Adapter(name=name, lid=lid, windows=windows)


def read_state(buffer: Buf) -> tuple[int, list[FedNodeInfo]]:
    """Take the body of saved state: the last key, and the nodes."""
    return buffer.unpack32(), [read_nodeinfo(buffer) for _ in range(buffer.unpack32())]


def write_jobinfo(info: FedJobInfo, buffer: Buf) -> None:
    """Append the body of a credential."""
    buffer.pack16(info.job_key)
    buffer.packstr(info.job_desc)
    buffer.pack32(info.window_memory)
    buffer.pack8(info.bulk_xfer)
    buffer.pack32(len(info.nodes))
    for name in info.nodes:
        buffer.packstr(name)
    buffer.pack32(len(info.tables))
    for table in info.tables:
        buffer.packstr(table.adapter)
        buffer.pack32(len(table.entries))
        for entry in table.entries:
            buffer.pack32(entry.task_id)
            buffer.pack32(entry.node)
            buffer.pack16(entry.lid)
            buffer.pack32(entry.window_id)


def read_jobinfo(buffer: Buf) -> FedJobInfo:
    """Take the body of a credential."""
    return FedJobInfo(
        job_key=buffer.unpack16(),
        job_desc=buffer.unpackstr() or "",
        window_memory=buffer.unpack32(),
        bulk_xfer=bool(buffer.unpack8()),
        nodes=[buffer.unpackstr() or "" for _ in range(buffer.unpack32())],
        tables=[_read_table(buffer) for _ in range(buffer.unpack32())],
    )


def _read_table(buffer: Buf) -> Table:
    adapter = buffer.unpackstr() or ""
    entries = tuple(
        Entry(
            task_id=buffer.unpack32(),
            node=buffer.unpack32(),
            lid=buffer.unpack16(),
            window_id=buffer.unpack32(),
        )
        for _ in range(buffer.unpack32())
    )
    return Table(adapter=adapter, entries=entries)


# Texts.


def describe_node(info: FedNodeInfo) -> str:
    """Return a node record as lines of text."""
    if getattr(info, "magic", None) != NODEINFO.magic:
        return "Node: ? (no node info)\n"
    lines = [f"Node: {info.name}\n"]
    for adapter in info.adapters:
        loaded = [str(each.id) for each in adapter.windows if each.status == LOADED]
        lines.append(
            f"  Adapter: {adapter.name} lid {adapter.lid} windows {len(adapter.windows)} "
            f"loaded {','.join(loaded) or 'none'}\n"
        )
    return "".join(lines)


def describe_job(info: FedJobInfo) -> str:
    """Return a credential as lines of text."""
    if getattr(info, "magic", None) != JOBINFO.magic:
        return "Job key: ? (no credential)\n"
    lines = [f"Job key: {info.job_key} ({info.job_desc or 'not built'})\n"]
    for table in info.tables:
        rows = " ".join(f"{row.task_id}:{row.lid}/{row.window_id}" for row in table.entries)
        lines.append(f"  Adapter: {table.adapter} tasks {rows or 'none'}\n")
    return "".join(lines)
