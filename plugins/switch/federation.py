"""switch/federation: IBM's pSeries High Performance Switch, with its adapters' windows.

Each task of a step gets a window on each adapter of its node. slurmctld keeps the books, from what
nodes told of themselves when they first registered; slurmstepd loads the windows and unloads them.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

import attrs

from simctl.plugin import (
    Buf,
    SlurmError,
    SwitchPlugin,
    conf,
    errno,
    hostlist,
    log,
    process,
    sleep,
)
from simctl.plugins.switch import records, sni
from simctl.plugins.switch.fed_records import (
    FREE,
    JOBINFO,
    LIBSTATE,
    NODEINFO,
    Adapter,
    Entry,
    FedJobInfo,
    FedNodeInfo,
    Table,
    Window,
    describe_job,
    describe_node,
    read_jobinfo,
    read_nodeinfo,
    read_state,
    write_jobinfo,
    write_nodeinfo,
)
from simctl.plugins.switch.sni import LOADED, UNLOADED, Driver, Settings

_WINDOWS: Final = 512
"""How many windows an adapter has, unless SwitchParameters says fewer."""
_TRIES: Final = 15
_KEYS: Final = 0xFFF0

_STATE_FILE: Final = "fed_state"
_TABLES, _TABLES_PER_TASK, _KEY, _PROTOCOL, _MODE = range(5)


class SwitchFederation(SwitchPlugin):
    """Give each task of a step a window on each adapter of its node."""

    plugin_type: ClassVar[str] = "switch/federation"
    plugin_name: ClassVar[str] = "IBM Federation interconnect"
    plugin_version: ClassVar[int] = 100

    def __init__(self) -> None:
        self._windows = _WINDOWS
        self._nodes: dict[str, FedNodeInfo] = {}
        self._key_index = 0
        self._keys: set[int] = set()
        self._keeps_books = False
        self._recalled: dict[int, FedJobInfo] = {}
        """Steps that live on after a restart, by key: nodes yet to register are told of them."""

    def init(self) -> None:
        """Read how many windows an adapter has.

        Raises:
            SlurmError: SwitchParameters does not tell.
        """
        self._windows = records.parameter(conf["SwitchParameters"], "windows", _WINDOWS)

    def simctl_state(self) -> dict[str, Any]:
        """Return what is kept: keys of live steps, and the windows that each node has loaded."""
        return {
            "keys": self._keys,
            "nodes": {
                node.name: {
                    adapter.name: {each.id: each.key for each in adapter.windows if each.key}
                    for adapter in node.adapters
                }
                for node in self._nodes.values()
            },
        }

    # Global state.

    def switch_p_libstate_save(self, dir_name: str) -> None:
        """Write the nodes' windows and the last key into ``fed_state``.

        Raises:
            SlurmError: ESTATEFILE: the file cannot be written.
        """
        buffer = Buf()
        records.pack(LIBSTATE, self.plugin_version, buffer, self._write_state)
        records.save(f"{dir_name}/{_STATE_FILE}", buffer.data(), sni.ESTATEFILE)

    def switch_p_libstate_restore(self, dir_name: str) -> None:
        """Read ``fed_state``; where there is none, this is a clean start.

        Raises:
            SlurmError: It is damaged, of another version, or something else, or cannot be read.
        """
        self._keeps_books = True
        path = f"{dir_name}/{_STATE_FILE}"
        saved = records.load(path, sni.ESTATEFILE)
        if saved is None:
            log.info("no saved state: clean start", path=path)
            return
        self._key_index, nodes = records.unpack(
            LIBSTATE, self.plugin_version, Buf(saved), read_state
        )
        self._nodes = {node.name: node for node in nodes}
        self._keys = {key for node in nodes for key in _keys_on(node)}

    def _write_state(self, buffer: Buf) -> None:
        buffer.pack32(self._key_index)
        buffer.pack32(len(self._nodes))
        for node in self._nodes.values():
            write_nodeinfo(node, buffer)

    # Node state.

    def switch_p_clear_node_state(self) -> None:
        """Unload every window on the node, whichever step left it loaded."""
        for adapter in Settings.here().adapters:
            cleaned = Driver().clean(adapter)
            if cleaned:
                log.info("windows cleaned", adapter=adapter, windows=cleaned)

    def switch_p_alloc_node_info(self) -> FedNodeInfo:
        """Return an empty record."""
        return FedNodeInfo()

    def switch_p_build_node_info(self, switch_node: FedNodeInfo) -> None:
        """Ask the node's adapters for their windows.

        Raises:
            SlurmError: EBADMAGIC_FEDNODEINFO.
        """
        records.check(NODEINFO, switch_node)
        names = Settings.here().adapters
        switch_node.name = process().hostname
        switch_node.adapters = [
            self._ask(switch_node.name, index, names) for index in range(len(names))
        ]

    def _ask(self, host: str, index: int, names: tuple[str, ...]) -> Adapter:
        """Return an adapter of this node with the states of its windows."""
        loaded = Driver().loaded(names[index])
        windows = [
            Window(id=number, status=LOADED, key=loaded[number])
            if number in loaded
            else Window(id=number)
            for number in range(self._windows)
        ]
        lid = sni.lid_of(host, index, len(names))
        return Adapter(name=names[index], lid=lid, windows=windows)

    def switch_p_pack_node_info(self, switch_node: FedNodeInfo, buffer: Buf) -> int:
        """Append magic, version, name and adapters."""
        records.check(NODEINFO, switch_node)
        return records.pack(
            NODEINFO, self.plugin_version, buffer, lambda buf: write_nodeinfo(switch_node, buf)
        )

    def switch_p_unpack_node_info(self, switch_node: FedNodeInfo, buffer: Buf) -> None:
        """Fill the record in, and take a node in that was not known: its windows count as free.

        What a known node tells of its windows changes nothing: slurmctld's books are newer.

        Raises:
            SlurmError: What the buffer holds is no such record, of another version, or damaged.
        """
        records.check(NODEINFO, switch_node)
        found = records.unpack(NODEINFO, self.plugin_version, buffer, read_nodeinfo)
        switch_node.magic = found.magic
        switch_node.name = found.name
        switch_node.adapters = found.adapters
        if found.name and found.name not in self._nodes:
            node = self._nodes[found.name] = FedNodeInfo(
                name=found.name,
                adapters=[
                    attrs.evolve(each, windows=[Window(id=one.id) for one in each.windows])
                    for each in found.adapters
                ],
            )
            for info in self._recalled.values():
                _recall(node, info)

    def switch_p_free_node_info(self, switch_node: FedNodeInfo) -> None:
        """Spoil the magic number, so that later uses of the record are told."""
        records.spoil(switch_node)

    def switch_p_sprintf_node_info(self, switch_node: FedNodeInfo, size: int) -> str:
        """Return name, adapters and loaded windows as a text."""
        return records.cut(describe_node(switch_node), size)

    # Credentials.

    def switch_p_alloc_jobinfo(self) -> FedJobInfo:
        """Return an empty credential."""
        return FedJobInfo()

    def switch_p_build_jobinfo(
        self, switch_job: FedJobInfo, nodelist: str, nprocs: int, cyclic_alloc: int
    ) -> None:
        """Choose a key, and a window for each task on each adapter of its node.

        The table follows the guide's arguments: tasks fill node after node, or go round them. A
        window once taken stays taken when this fails; job_step_complete gives it back.

        Raises:
            SlurmError: A node is not known, has no adapters, or has no windows left.
        """
        records.check(JOBINFO, switch_job)
        names = hostlist(nodelist)
        if nprocs < 1 or not names:
            raise SlurmError(sni.ENOTSUPPORTED, f"{nprocs} tasks on {nodelist}")
        nodes = [self._node(name) for name in names]
        switch_job.job_key = self._next_key()
        switch_job.job_desc = f"slurm federation driver key={switch_job.job_key}"
        switch_job.nodes = list(names)
        places = list(_placement(nprocs, len(nodes), cyclic=bool(cyclic_alloc)))
        for adapter in [each.name for each in nodes[0].adapters]:
            rows = tuple(
                _take(nodes[place], adapter, task, place, switch_job.job_key)
                for task, place in enumerate(places)
            )
            switch_job.tables.append(Table(adapter=adapter, entries=rows))

    def _node(self, name: str) -> FedNodeInfo:
        node = self._nodes.get(name)
        if node is None:
            raise SlurmError(sni.EHOSTNAME, f"node {name}")
        if not node.adapters:
            raise SlurmError(sni.ENOADAPTER, f"node {name}")
        return node

    def _next_key(self) -> int:
        """Return the next key that no window has.

        Raises:
            SlurmError: EWINDOW: steps have them all.
        """
        if len(self._keys) >= _KEYS - 1:
            raise SlurmError(sni.EWINDOW, "every key is in use")
        while True:
            key = self._key_index % _KEYS or 1
            self._key_index = (self._key_index + 1) % _KEYS
            if key not in self._keys:
                self._keys.add(key)
                return key

    def switch_p_copy_jobinfo(self, switch_job: FedJobInfo) -> FedJobInfo:
        """Return a credential of the same contents."""
        records.check(JOBINFO, switch_job)
        return attrs.evolve(
            switch_job, nodes=list(switch_job.nodes), tables=list(switch_job.tables)
        )

    def switch_p_free_jobinfo(self, switch_job: FedJobInfo) -> None:
        """Spoil the magic number, so that later uses of the credential are told."""
        records.spoil(switch_job)

    def switch_p_pack_jobinfo(self, switch_job: FedJobInfo, buffer: Buf) -> int:
        """Append magic, version, key and tables."""
        records.check(JOBINFO, switch_job)
        return records.pack(
            JOBINFO, self.plugin_version, buffer, lambda buf: write_jobinfo(switch_job, buf)
        )

    def switch_p_unpack_jobinfo(self, switch_job: FedJobInfo, buffer: Buf) -> None:
        """Fill the credential in, or leave it as it was.

        Where the books are kept this is that of a step that lives on: if the saved state does not
        know it, for saving had failed, its windows are taken again.

        Raises:
            SlurmError: What the buffer holds is no credential, of another version, or damaged.
        """
        records.check(JOBINFO, switch_job)
        found = records.unpack(JOBINFO, self.plugin_version, buffer, read_jobinfo)
        for field in attrs.fields(FedJobInfo):
            setattr(switch_job, field.name, getattr(found, field.name))
        if self._keeps_books and found.job_key:
            self._keys.add(found.job_key)
            self._recalled[found.job_key] = found
            for name in found.nodes:
                if name in self._nodes:
                    _recall(self._nodes[name], found)

    def switch_p_get_jobinfo(self, switch_job: FedJobInfo, data_type: int) -> Any:
        """Return what a key stands for: 0 the tables, 1 their number, 2 the job's key.

        Keys 3 and 4 are protocol and mode, which are those of a step without ``--network``.

        Raises:
            SlurmError: EINVAL for any other key.
        """
        records.check(JOBINFO, switch_job)
        known: dict[int, Callable[[], Any]] = {
            _TABLES: lambda: [attrs.asdict(table) for table in switch_job.tables],
            _TABLES_PER_TASK: lambda: len(switch_job.tables),
            _KEY: lambda: switch_job.job_key,
            _PROTOCOL: lambda: "mpi",
            _MODE: lambda: "user space",
        }
        if data_type not in known:
            raise SlurmError(errno.EINVAL, f"data type {data_type}")
        return known[data_type]()

    def switch_p_job_step_complete(self, switch_job: FedJobInfo, nodelist: str) -> None:
        """Give the step's windows on these nodes back; those of other keys stay."""
        records.check(JOBINFO, switch_job)
        if switch_job.job_key == FREE:
            return
        self._recalled.pop(switch_job.job_key, None)
        for name in hostlist(nodelist):
            node = self._nodes.get(name)
            for adapter in node.adapters if node is not None else ():
                for window in adapter.windows:
                    if window.key == switch_job.job_key:
                        window.status, window.key = UNLOADED, FREE
        left = [self._nodes[name] for name in switch_job.nodes if name in self._nodes]
        if not any(switch_job.job_key in _keys_on(node) for node in left):
            self._keys.discard(switch_job.job_key)

    def switch_p_print_jobinfo(self, fp: Any, switch_job: FedJobInfo) -> None:
        """Write key and tables to an open file."""
        fp.write(describe_job(switch_job))

    def switch_p_sprint_jobinfo(self, switch_job: FedJobInfo, size: int) -> str:
        """Return key and tables as a text."""
        return records.cut(describe_job(switch_job), size)

    # The node and the step.

    def switch_p_node_init(self) -> None:
        """Check the version of the adapters' driver.

        Raises:
            SlurmError: EVERSION: it is another one.
        """
        version = Settings.here().driver_version
        if version != sni.DRIVER_VERSION:
            raise SlurmError(sni.EVERSION, f"driver {version}, not {sni.DRIVER_VERSION}")

    async def switch_p_job_init(self, switch_job: FedJobInfo, uid: int) -> None:
        """Load the step's windows on this node, waiting for one that is loaded still.

        Raises:
            SlurmError: ESTATUS: it stays loaded.
        """
        records.check(JOBINFO, switch_job)
        driver = Driver()
        for adapter, window in _windows_on(switch_job, process().hostname):
            for _ in range(_TRIES):
                if window not in driver.loaded(adapter):
                    break
                await sleep(1)
            driver.load(adapter, window, switch_job.job_key)

    def switch_p_job_attach(
        self,
        switch_job: FedJobInfo,
        env: dict[str, str],
        nodeid: int,
        procid: int,
        nnodes: int,
        nprocs: int,
        rank: int,
    ) -> None:
        """Tell the task who it is, and in which windows it is reached.

        The table may place it on another node, for it was made without knowing the nodes' sizes:
        the windows there are none of its own, and it is told none.
        """
        records.check(JOBINFO, switch_job)
        env["MP_CHILD"] = str(rank)
        env["MP_PROCS"] = str(nprocs)
        env["MP_PARTITION"] = str(switch_job.job_key)
        own = [
            f"{adapter}:{entry.window_id}"
            for adapter, entry in _entries_on(switch_job, process().hostname)
            if entry.task_id == rank
        ]
        if not own:
            log.warning("no windows here: the network table has the task elsewhere", rank=rank)
        env["MP_WINDOWS"] = ",".join(own)

    def switch_p_job_postfini(
        self, switch_job: FedJobInfo, pgid: int, job_id: int, step_id: int
    ) -> None:
        """Unload the windows that the step has loaded on this node."""
        records.check(JOBINFO, switch_job)
        driver = Driver()
        for adapter, window in _windows_on(switch_job, process().hostname):
            driver.unload(adapter, window, switch_job.job_key)

    # Errors.

    def switch_p_strerror(self, errnum: int) -> str | None:
        """Return what a number of this plugin's means."""
        return sni.TEXTS.get(errnum)


def _placement(nprocs: int, nnodes: int, *, cyclic: bool) -> Iterator[int]:
    """Yield the place of each task's node among the step's."""
    if cyclic:
        yield from (task % nnodes for task in range(nprocs))
        return
    each, more = divmod(nprocs, nnodes)
    for place in range(nnodes):
        yield from itertools.repeat(place, each + (place < more))


def _keys_on(node: FedNodeInfo) -> set[int]:
    """Return the keys of the windows that are loaded on a node."""
    return {one.key for each in node.adapters for one in each.windows if one.status == LOADED}


def _take(node: FedNodeInfo, adapter: str, task: int, place: int, key: int) -> Entry:
    """Take the first free window of a node's adapter for a task."""
    found = next((each for each in node.adapters if each.name == adapter), None)
    if found is None:
        raise SlurmError(sni.EADAPTER, f"{adapter} of {node.name}")
    window = next((each for each in found.windows if each.status == UNLOADED), None)
    if window is None:
        raise SlurmError(sni.EWINDOW, f"{adapter} of {node.name}")
    window.status, window.key = LOADED, key
    return Entry(task_id=task, node=place, lid=found.lid, window_id=window.id)


def _recall(node: FedNodeInfo, info: FedJobInfo) -> None:
    """Take the windows on a node that a step has, as far as no other step has them."""
    free = {
        (adapter.name, window.id): window
        for adapter in node.adapters
        for window in adapter.windows
        if window.status == UNLOADED
    }
    for place in _windows_on(info, node.name):
        window = free.get(place)
        if window is not None:
            window.status, window.key = LOADED, info.job_key


def _windows_on(info: FedJobInfo, host: str) -> Iterator[tuple[str, int]]:
    """Yield adapter and number of each window that a step has on a node."""
    for adapter, entry in _entries_on(info, host):
        yield adapter, entry.window_id


def _entries_on(info: FedJobInfo, host: str) -> Iterator[tuple[str, Entry]]:
    """Yield each row of a step's tables that is of a node, with its adapter."""
    here = {place for place, name in enumerate(info.nodes) if name == host}
    for table in info.tables:
        for entry in table.entries:
            if entry.node in here:
                yield table.adapter, entry
