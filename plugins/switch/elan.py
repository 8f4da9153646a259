"""switch/elan: Quadrics Elan3, as Slurm drove it from 2004 on.

A step gets a program number and, on all its nodes, the same run of hardware contexts: as many as
the fullest node has tasks. slurmctld keeps the books of both; slurmstepd tells each node's card.
"""

import hashlib
import struct
from typing import Any, ClassVar, Final

import attrs

from simctl.plugin import (
    Buf,
    Event,
    PluginThread,
    SlurmError,
    SwitchPlugin,
    conf,
    errno,
    hostlist,
    log,
    process,
    start,
)
from simctl.plugins.switch import qsnet, records
from simctl.plugins.switch.qsnet import Card, ElanHosts, Program
from simctl.plugins.switch.qsw_records import (
    BLOCK,
    CYCLIC,
    JOBINFO,
    LIBSTATE,
    ElanJobInfo,
    Live,
    bitmap_of,
    describe,
    read_jobinfo,
    read_state,
    write_jobinfo,
)

_FIRST_CONTEXT: Final = 0x400
_CONTEXTS: Final = 0x7FE - _FIRST_CONTEXT + 1
_TASKS_AT_MOST: Final = 512
_PROGNUM_MAX: Final = 2**31 - 1
_STATE_FILE: Final = "qsw_state"


class SwitchElan(SwitchPlugin):
    """Give each step a program and contexts of its own; wait while jobs complete."""

    plugin_type: ClassVar[str] = "switch/elan"
    plugin_name: ClassVar[str] = "Quadrics Elan3 interconnect"
    plugin_version: ClassVar[int] = 90

    def __init__(self) -> None:
        self._contexts = _CONTEXTS
        self._last_prognum = 0
        self._live: dict[int, Live] = {}
        self._keeps_books = False
        self._neterr: PluginThread | None = None

    def init(self) -> None:
        """Read how many contexts the cards have.

        Raises:
            SlurmError: SwitchParameters does not tell.
        """
        self._contexts = records.parameter(conf["SwitchParameters"], "contexts", _CONTEXTS)

    def simctl_state(self) -> dict[str, Any]:
        """Return what is kept: the last program number, and the steps that have contexts."""
        live = {number: attrs.asdict(each) for number, each in self._live.items()}
        return {"last_prognum": self._last_prognum, "live": live}

    # Global state.

    def switch_p_libstate_save(self, dir_name: str) -> None:
        """Write the last program number and the steps that have contexts into ``qsw_state``.

        Raises:
            SlurmError: ESTATE_QSW: the file cannot be written.
        """
        buffer = Buf()
        records.pack(LIBSTATE, self.plugin_version, buffer, self._write_state)
        records.save(f"{dir_name}/{_STATE_FILE}", buffer.data(), qsnet.ESTATE_QSW)

    def switch_p_libstate_restore(self, dir_name: str) -> None:
        """Read ``qsw_state``; none, or one of another version, is a clean start.

        Raises:
            SlurmError: EBADMAGIC_QSWLIBSTATE: it is damaged, or something else; ESTATE_QSW: it
                cannot be read.
        """
        self._keeps_books = True
        path = f"{dir_name}/{_STATE_FILE}"
        saved = records.load(path, qsnet.ESTATE_QSW)
        if saved is None:
            log.info("no saved state: clean start", path=path)
            return
        try:
            last, live = records.unpack(LIBSTATE, self.plugin_version, Buf(saved), read_state)
        except SlurmError as error:
            if error.errno != qsnet.EVERSION_QSW:
                raise
            log.error("saved state ignored: clean start", path=path, problem=str(error))
            return
        self._last_prognum = last
        self._live = {each.prognum: each for each in live}

    def _write_state(self, buffer: Buf) -> None:
        buffer.pack32(self._last_prognum)
        buffer.pack32(len(self._live))
        for each in self._live.values():
            for number in attrs.astuple(each):
                buffer.pack32(number)

    def switch_p_no_frag(self) -> bool:
        """Let nothing start while a job completes: its contexts come back then."""
        return True

    # Credentials.

    def switch_p_alloc_jobinfo(self) -> ElanJobInfo:
        """Return an empty credential."""
        return ElanJobInfo()

    def switch_p_build_jobinfo(
        self, switch_job: ElanJobInfo, nodelist: str, nprocs: int, cyclic_alloc: int
    ) -> None:
        """Choose a program number and contexts, and fill the capability in.

        Raises:
            SlurmError: Too many tasks, a host without Elan id, or no contexts left.
        """
        records.check(JOBINFO, switch_job)
        hosts = ElanHosts.here()
        ids = hosts.ids_of(hostlist(nodelist))
        if not 0 < nprocs <= _TASKS_AT_MOST or not ids:
            raise SlurmError(qsnet.EBADTASKCOUNT_QSW, f"{nprocs} tasks on {nodelist}")
        tasks = _tasks_per_node(nprocs, len(ids))
        contexts = max(tasks)
        low = self._free_contexts(contexts, ids[0], ids[-1])
        switch_job.prognum = self._next_prognum()
        switch_job.user_key = _user_key(switch_job.prognum)
        switch_job.layout = CYCLIC if cyclic_alloc else BLOCK
        switch_job.low_context = low
        switch_job.high_context = low + contexts - 1
        switch_job.low_node = ids[0]
        switch_job.high_node = ids[-1]
        switch_job.entries = nprocs
        switch_job.bitmap = bitmap_of(ids, tasks, cyclic=bool(cyclic_alloc))
        self._live[switch_job.prognum] = Live.of(switch_job)

    def _next_prognum(self) -> int:
        number = self._last_prognum
        while True:
            number = number % _PROGNUM_MAX + 1
            if number not in self._live:
                self._last_prognum = number
                return number

    def _free_contexts(self, count: int, low_node: int, high_node: int) -> int:
        """Return the lowest run of *count* contexts that no step has on any of the nodes."""
        taken = sorted(
            (each.low_context, each.high_context)
            for each in self._live.values()
            if each.low_node <= high_node and low_node <= each.high_node
        )
        low = _FIRST_CONTEXT
        for first, last in taken:
            if low + count <= first:
                break
            low = max(low, last + 1)
        if low + count > _FIRST_CONTEXT + self._contexts:
            raise SlurmError(qsnet.ENOCONTEXT, f"{count} in a row on nodes {low_node}-{high_node}")
        return low

    def switch_p_copy_jobinfo(self, switch_job: ElanJobInfo) -> ElanJobInfo:
        """Return a credential of the same contents."""
        records.check(JOBINFO, switch_job)
        return attrs.evolve(switch_job)

    def switch_p_free_jobinfo(self, switch_job: ElanJobInfo) -> None:
        """Spoil the magic number, so that later uses of the credential are told."""
        records.spoil(switch_job)

    def switch_p_pack_jobinfo(self, switch_job: ElanJobInfo, buffer: Buf) -> int:
        """Append magic, version, program, key and capability."""
        records.check(JOBINFO, switch_job)
        return records.pack(
            JOBINFO, self.plugin_version, buffer, lambda buf: write_jobinfo(switch_job, buf)
        )

    def switch_p_unpack_jobinfo(self, switch_job: ElanJobInfo, buffer: Buf) -> None:
        """Fill the credential in, or leave it as it was.

        Where the books are kept this is that of a step that lives on: if the saved state does not
        know it, for saving had failed, its contexts are taken again.

        Raises:
            SlurmError: What the buffer holds is no credential, of another version, or damaged.
        """
        records.check(JOBINFO, switch_job)
        found = records.unpack(JOBINFO, self.plugin_version, buffer, read_jobinfo)
        for field in attrs.fields(ElanJobInfo):
            setattr(switch_job, field.name, getattr(found, field.name))
        if self._keeps_books and found.prognum:
            self._live.setdefault(found.prognum, Live.of(found))

    def switch_p_job_step_complete(self, switch_job: ElanJobInfo, nodelist: str) -> None:
        """Give the step's contexts back; a credential that was never built has none."""
        records.check(JOBINFO, switch_job)
        self._live.pop(switch_job.prognum, None)

    def switch_p_print_jobinfo(self, fp: Any, switch_job: ElanJobInfo) -> None:
        """Write program and capability to an open file."""
        fp.write(describe(switch_job))

    def switch_p_sprint_jobinfo(self, switch_job: ElanJobInfo, size: int) -> str:
        """Return program and capability as a text."""
        return records.cut(describe(switch_job), size)

    # The node.

    def switch_p_node_init(self) -> None:
        """Start the thread that hears of errors in the network."""
        self._neterr = start(_hear_errors, "neterr")

    async def switch_p_node_fini(self) -> None:
        """Stop that thread, and wait until it is gone."""
        if self._neterr is not None:
            self._neterr.cancel()
            await self._neterr.join()

    # The step.

    def switch_p_job_init(self, switch_job: ElanJobInfo, uid: int) -> None:
        """Create the step's program in the node's card, for *uid*.

        Raises:
            SlurmError: The card refuses.
        """
        records.check(JOBINFO, switch_job)
        Card().create(
            switch_job.prognum,
            Program(
                uid=uid,
                low_context=switch_job.low_context,
                high_context=switch_job.high_context,
            ),
        )

    def switch_p_job_attach(
        self,
        switch_job: ElanJobInfo,
        env: dict[str, str],
        nodeid: int,
        procid: int,
        nnodes: int,
        nprocs: int,
        rank: int,
    ) -> None:
        """Take one of the program's contexts for this task, and tell it where it stands.

        Raises:
            SlurmError: The card refuses.
        """
        records.check(JOBINFO, switch_job)
        Card().attach(switch_job.prognum, process().euid, procid)
        env["RMS_RANK"] = env["RMS_PROCID"] = str(rank)
        env["RMS_NODEID"] = str(nodeid)
        env["RMS_NNODES"] = str(nnodes)
        env["RMS_NPROCS"] = str(nprocs)
        env["ELAN_STATKEY"] = f"{_statistics_key(switch_job.prognum):#x}"

    def switch_p_job_postfini(
        self, switch_job: ElanJobInfo, pgid: int, job_id: int, step_id: int
    ) -> None:
        """Destroy the step's program, if job_init came so far as to create it.

        Raises:
            SlurmError: The card refuses.
        """
        records.check(JOBINFO, switch_job)
        card = Card()
        if switch_job.prognum in card.programs():
            card.destroy(switch_job.prognum)

    # Errors.

    def switch_p_strerror(self, errnum: int) -> str | None:
        """Return what a number of this plugin's means."""
        return qsnet.TEXTS.get(errnum)

    def switch_p_get_jobinfo(self, switch_job: ElanJobInfo, data_type: int) -> Any:
        """Refuse: nothing can be had from an Elan credential.

        Raises:
            SlurmError: EINVAL.
        """
        raise SlurmError(errno.EINVAL, f"data type {data_type}")


async def _hear_errors() -> None:
    await Event().wait()


def _user_key(prognum: int) -> tuple[int, int, int, int]:
    """Return what protects a program from others; it need not be secret here, but its own."""
    digest = hashlib.sha256(f"{conf['ClusterName']}/{prognum}".encode()).digest()
    first, second, third, fourth = struct.unpack(">4I", digest[:16])
    return first, second, third, fourth


def _statistics_key(prognum: int) -> int:
    """Return the key of the memory segment that holds a program's statistics."""
    return ((prognum << 9) - 1) & 0xFFFFFFFF


def _tasks_per_node(nprocs: int, nnodes: int) -> list[int]:
    """Spread tasks evenly; the first nodes have one more where they do not divide."""
    each, more = divmod(nprocs, nnodes)
    return [each + (index < more) for index in range(nnodes)]
