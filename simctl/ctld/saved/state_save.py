"""When slurmctld writes its state files, and what it takes from them when it starts.

Model modern: a save is due 5 s after the last one as soon as anything may have changed, and every
300 s in any case; what came after the last save is lost in a crash. Model guide: what has changed
is written before any message leaves slurmctld, and when a request has been seen to.
"""

from typing import Any, Final

import attrs
import msgspec

from simctl.ctld.port.port import Port
from simctl.ctld.saved.saved_records import DECODERS
from simctl.ctld.saved.state_reading import Reader
from simctl.ctld.saved.state_writing import records_of
from simctl.ctld.state.notices import SaveDue
from simctl.ctld.state.records import JobRecord, StepRecord
from simctl.plugins.hooks import About, Handle
from simctl.plugins.points.checkpoint import slurm_ckpt_pack_job
from simctl.plugins.points.switch import switch_p_pack_jobinfo
from simctl.wire.buf import Buf, Packed
from simctl.wire.ids import SECOND
from simctl.wire.state_files import FILES, VERSION, Header, StateFile, read_file, write_file

PROTOCOL_VERSION: Final = 18 << 8 | 8
SAVE_MAX_WAIT_US: Final = 5 * SECOND
"""How long after the last save the next one is made, if there is anything to save."""

PERIODIC_CHECKPOINT_US: Final = 300 * SECOND
"""How often everything is saved whether or not it has changed."""

_MODE: Final = 0o600


class StateSave:
    """The state files of one slurmctld."""

    def __init__(self, ctld: Port, *, simulated: bool) -> None:
        self._ctld = ctld
        self.simulated = simulated
        """Whether saves are simulated while it runs, and not only where it stops."""
        self.write_through = simulated and ctld.site.model == "guide"
        self.heard_of: frozenset[int] = frozenset()
        """The jobs that clients may have heard of, where state is written through."""
        self.ready = False
        """Whether all that there was has been taken up."""
        self.stopped = False
        """Whether slurmctld is about to end in good order."""
        self.was_stopped = True
        """Whether the one before it had."""
        self.encoded: dict[JobRecord, tuple[Any, bytes]] = {}
        """The records of jobs that wait or are over, with what they were made of."""
        self._written: dict[str, list[bytes]] = {}
        self._last_us = -SAVE_MAX_WAIT_US
        self._is_due = False
        self._is_asked_for = False
        self._failing = False

    # When.

    def schedule_job_save(self) -> None:
        """Let the next save in time be made, though nothing that slurmctld knows has changed.

        What a plugin has changed in its own record shows only once it is packed, for a save.
        """
        self._is_asked_for = True

    def start(self) -> None:
        """Begin to save in time, where that is simulated; before nothing may be overwritten."""
        self.ready = True
        if self.simulated and not self.write_through:
            self._plan_forced()
        if self.write_through:
            self.commit()
        elif self.simulated:
            self._plan()

    def _plan_forced(self) -> None:
        ctld = self._ctld
        due_us = (ctld.now_us // PERIODIC_CHECKPOINT_US + 1) * PERIODIC_CHECKPOINT_US

        def due() -> None:
            if ctld.mailbox.open:
                if ctld.site.kernel.foreground:
                    ctld.mailbox.post(SaveDue(forced=True))
                self._plan_forced()

        ctld.site.kernel.call_in_background(due_us, due)

    async def request_done(self) -> None:
        """Save what a request that has been seen to has changed, or plan it.

        Where it may be saved now that comes before the pass that the request has led to: a job that
        starts in it is PENDING in the files, as recorded of Slurm 18.08.
        """
        if self.write_through:
            self.commit()
        elif not self._is_due and self._ctld.now_us >= self._last_us + SAVE_MAX_WAIT_US:
            await self.save_in_time(forced=False)
        else:
            self._plan()

    def _plan(self, wait_us: int = 0) -> None:
        if self._is_due:
            return
        ctld = self._ctld
        self._is_due = True

        def due() -> None:
            self._is_due = False
            if ctld.mailbox.open and ctld.site.kernel.foreground:
                ctld.mailbox.post(SaveDue())

        due_us = max(ctld.now_us + wait_us, self._last_us + SAVE_MAX_WAIT_US)
        ctld.site.kernel.call_in_background(due_us, due)

    async def save_in_time(self, *, forced: bool) -> None:
        """Save what has changed, or everything, with what plugins pack of jobs and steps."""
        if not forced and not self._is_asked_for and not self._has_changed():
            return
        self._is_asked_for = False
        self._last_us = self._ctld.now_us
        await self.pack_all()
        self._write(forced=forced)

    def _has_changed(self) -> bool:
        return any(records_of(self._ctld, name) != self._written.get(name) for name in FILES)

    def commit(self) -> None:
        """Write what has changed, with what was packed before."""
        if not self.ready:
            return
        self.heard_of = frozenset(self._ctld.jobs)
        self._write(forced=False)

    # What plugins pack.

    async def pack_all(self) -> None:
        """Have plugins pack what they hold of every job and step."""
        for job in list(self._ctld.jobs.values()):
            await self.pack_job(job)
            for step in list(job.steps.values()):
                await self.pack_step(step)

    async def note(self, record: JobRecord | StepRecord) -> None:
        """Note that plugins have made or changed what they hold of a job or step.

        Where state is written through it is packed at once, before any client hears of it.
        """
        if not self.write_through:
            return
        # A step's credential is packed for its launch, and does not change.
        record.pack(await self._packed(record.check_job, record.about))

    async def pack_job(self, job: JobRecord) -> None:
        """Have a job's checkpoint record packed."""
        job.pack(await self._packed(job.check_job, job.about))

    async def pack_step(self, step: StepRecord) -> None:
        """Have a step's credential and its checkpoint record packed."""
        hooks, who = self._ctld.site.hooks, self._ctld.process
        buffer = Buf()
        await hooks.call(switch_p_pack_jobinfo, who, step.switch_job, buffer, about=step.about)
        step.pack_credential(hooks.packed(who, buffer))
        step.pack(await self._packed(step.check_job, step.about))

    async def _packed(self, check_job: Handle, about: About) -> Packed:
        buffer = Buf()
        await self._ctld.site.hooks.call(
            slurm_ckpt_pack_job,
            self._ctld.process,
            check_job,
            buffer,
            PROTOCOL_VERSION,
            about=about,
        )
        return Packed(buffer.data())

    # Files.

    def write_all(self) -> None:
        """Write every file, whether or not it has changed."""
        self._write(forced=True)

    def _write(self, *, forced: bool) -> None:
        for name in FILES:
            records = records_of(self._ctld, name)
            if not forced and records == self._written.get(name):
                continue
            try:
                self._replace(name, write_file(self._header(name), records))
            except OSError as error:
                self._tell_failure(name, error)
                return
            self._written[name] = records
        self._failing = False

    def _header(self, name: str) -> Header:
        site = self._ctld.site
        return Header(
            simctl_state=VERSION,
            file=name,
            cluster=site.conf.cluster_name,
            clock_s=site.start_time_s + self._ctld.now_us // SECOND,
            saved_us=self._ctld.now_us,
            zero_s=site.start_time_s,
            stopped=self.stopped,
            run=site.run_name,
        )

    def _replace(self, name: str, data: bytes) -> None:
        """Write a file beside the one there is, which is kept as the old one."""
        path = self.path(name)
        disk = self._ctld.disk
        if disk.exists(f"{path}.new"):
            disk.remove(f"{path}.new")
        disk.write(f"{path}.new", data, _MODE)
        if disk.exists(path):
            disk.rename(path, f"{path}.old")
        disk.rename(f"{path}.new", path)

    def path(self, name: str) -> str:
        """Return where a state file lies."""
        return f"{self._ctld.site.conf.state_save_location}/{name}"

    def _tell_failure(self, name: str, error: OSError) -> None:
        """Tell that a save has failed, once until one succeeds; it is tried again."""
        if not self._failing:
            self._failing = True
            ctld = self._ctld
            text = f"Can't save state, error writing file {self.path(name)}: {error.strerror}"
            args = {"level": "error", "file": name, "text": text}
            ctld.site.trace.note("log", "state_save", ctld.process, args=args)
        self._plan_again()

    def _plan_again(self) -> None:
        if self.write_through:
            ctld = self._ctld
            if self._is_due:
                return
            self._is_due = True

            def due() -> None:
                self._is_due = False
                if ctld.mailbox.open:
                    self.commit()

            ctld.site.kernel.call_in_background(ctld.now_us + SAVE_MAX_WAIT_US, due)
        elif self.simulated:
            self._plan(SAVE_MAX_WAIT_US)

    # A start.

    def restore(self) -> "Restored":
        """Read the state files into slurmctld's tables.

        Raises:
            UnusableStateError: They are of another version or cluster, or cannot be read at all.
        """
        found = {name: self._read(name) for name in FILES}
        headers = [each.header for each in found.values() if each.header is not None]
        if not headers:
            return Restored(there=any(not each.missing for each in found.values()))
        header = max(headers, key=lambda each: each.clock_s)
        ctld = self._ctld
        self.was_stopped = header.stopped
        same_run = header.run == ctld.site.run_name
        shift_us = 0
        if not same_run:
            zero_us = (ctld.site.start_time_s - header.zero_s) * SECOND
            # Time goes on from the save, or from this run's beginning where that is later.
            shift_us = max(zero_us, header.saved_us)
        reader = Reader(ctld, shift_us=shift_us, same_run=same_run)
        reader.partitions(found["part_state"].records, whole=found["part_state"].whole)
        takers = {
            "node_state": reader.nodes,
            "resv_state": reader.reservations,
            "job_state": reader.jobs,
        }
        for name, take in takers.items():
            try:
                take(found[name].records)
            except _NONSENSE as error:
                # The checksums are right: another program has written this.
                why = f"its records make no sense ({type(error).__name__}: {error})"
                raise UnusableStateError(self.path(name), why) from error
        for doubt in reader.doubts:
            self._tell("job_state", doubt)
        return Restored(there=True, same_run=same_run)

    def _read(self, name: str) -> "_Taken":
        """Read a file, and where that is damaged or gone what the model lets the old one give."""
        file = self._read_one(name)
        taken = self._decoded(name, file)
        if not taken.problem:
            return taken
        old = self._read_one(f"{name}.old", of=name)
        if file.missing:
            if old.missing:
                return taken
            taken = self._decoded(name, old)
            self._tell(
                name,
                f"there is no such file; {len(taken.records)} records are taken from {name}.old",
            )
            return taken
        if self._ctld.site.model == "modern":
            if file.header is None:
                raise UnusableStateError(self.path(name), taken.problem)
            self._tell(
                name,
                f"incomplete state: {taken.problem}; {len(taken.records)} records before it are "
                "taken, what follows is lost",
            )
            return taken
        return self._completed(name, file, taken, old)

    def _completed(self, name: str, file: StateFile, taken: "_Taken", old: StateFile) -> "_Taken":
        """Return what a damaged file gives, and of what it has lost what the old one has."""
        rest = self._decoded(name, StateFile(header=file.header, records=file.beyond))
        own = [*taken.records, *rest.records]
        before = self._decoded(name, old)
        if file.header is None and before.header is None:
            raise UnusableStateError(self.path(name), taken.problem)
        have = {_key(each) for each in own}
        from_old = [each for each in before.records if _key(each) not in have]
        self._tell(
            name,
            f"{taken.problem}; {len(own)} records are taken from it and {len(from_old)} from "
            f"{name}.old",
        )
        # Whether the old file had all that is lost cannot be told.
        return _Taken(
            header=file.header or before.header, records=(*own, *from_old), problem=taken.problem
        )

    def _read_one(self, name: str, of: str = "") -> StateFile:
        path = self.path(name)
        try:
            data = self._ctld.disk.read(path)
        except FileNotFoundError:
            return StateFile(problem="there is no such file", missing=True)
        except OSError as error:
            return StateFile(problem=f"it cannot be read: {error.strerror}")
        file = read_file(data, of or name)
        header, cluster = file.header, self._ctld.site.conf.cluster_name
        if header is not None and header.simctl_state != VERSION:
            raise UnusableStateError(
                path,
                f"it is of version {header.simctl_state}, and this slurmctld reads {VERSION}; the "
                "simctl that wrote it reads it",
            )
        if header is not None and header.cluster != cluster:
            raise UnusableStateError(
                path, f"it is of cluster {header.cluster[:64]!r}, and this is {cluster!r}"
            )
        return file

    def _decoded(self, name: str, file: StateFile) -> "_Taken":
        """Return a file's records, up to the first that is none."""
        decode = DECODERS[name].decode
        records: list[Any] = []
        problem = file.problem
        for payload in file.records:
            try:
                records.append(decode(payload))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                problem = f"record {len(records) + 1} makes no sense ({error})"
                break
        return _Taken(
            header=file.header, records=tuple(records), problem=problem, missing=file.missing
        )

    def _tell(self, name: str, text: str) -> None:
        ctld = self._ctld
        args = {"file": name, "text": text}
        ctld.site.trace.note("log", "incomplete_state", ctld.process, args=args)
        ctld.site.trace.damages.append(f"{self.path(name)}: {text}")


@attrs.frozen(kw_only=True)
class _Taken:
    """What a state file has given."""

    header: Header | None = None
    records: tuple[Any, ...] = ()
    problem: str = ""
    missing: bool = False

    @property
    def whole(self) -> bool:
        """Return whether nothing is known to lack."""
        return not self.problem


@attrs.frozen(kw_only=True)
class Restored:
    """What a start has found: whether there was any state, and whether this run has written it."""

    there: bool = False
    same_run: bool = True


_NONSENSE: Final = (ValueError, LookupError, TypeError, AttributeError, OverflowError)
"""What comes of values that no field of a record can have."""


class UnusableStateError(Exception):
    """Saved state that slurmctld must not start with."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"cannot recover {path}: {why}; started clean (fault: {{start: slurmctld, clean: "
            "true}), slurmctld goes on without it and every job is lost"
        )


def _key(saved: Any) -> tuple[str, Any]:
    """Return what tells a record of a file from the others."""
    key = getattr(saved, "job_id", None)
    return type(saved).__name__, getattr(saved, "name", "") if key is None else key


__all__ = [
    "PROTOCOL_VERSION",
    "Restored",
    "SaveDue",
    "StateSave",
    "UnusableStateError",
]
