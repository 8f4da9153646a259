"""Look at a checkpoint plugin's calls, and at the records it keeps of jobs and steps."""

from typing import Any, Final

import attrs

from simctl.ctld.reporting.step_view import live_step
from simctl.kernel.procs import Process
from simctl.plugin import SLURM_BATCH_SCRIPT, CheckOp
from simctl.plugins.compiled.classes import Pointer
from simctl.plugins.hooks import Handle, failed
from simctl.plugins.points.checkpoint import (
    slurm_ckpt_alloc_job,
    slurm_ckpt_copy_job,
    slurm_ckpt_op,
    slurm_ckpt_pack_job,
    slurm_ckpt_unpack_job,
)
from simctl.plugins.points.declare import Point
from simctl.testing.plugin_check.burst_buffer.keeps import kept_by
from simctl.testing.plugin_check.checkpoint import rules
from simctl.wire.buf import Buf
from simctl.wire.errno import SlurmError
from simctl.wire.states import JobBase
from simctl.world import World

_DAY_S: Final = 86_400
_VERSION: Final = 18 << 8 | 8


@attrs.define
class Watch:
    """Follows the calls of one run."""

    kind: type[Any]
    faults: dict[tuple[str, str], str] = attrs.field(factory=dict)
    """What was wrong, by rule and function."""

    kept: dict[str, int | float] = attrs.field(factory=dict)
    instance: Any = None

    def before(
        self, point: Point | None, name: str, who: Process, instance: Any, values: tuple[Any, ...]
    ) -> Any:
        """Look at what a call finds."""
        if not isinstance(instance, self.kind):
            return None
        if who.role == "slurmctld":
            self.instance = instance
            if name == "fini":
                self.kept = kept_by(instance)
        return self

    def after(
        self,
        before: Any,
        point: Point | None,
        who: Process,
        instance: Any,
        values: tuple[Any, ...],
        result: Any,
        error: SlurmError | None,
        problem: str,
    ) -> None:
        """Look at what a call has answered."""
        moment = getattr(result, "event_time", 0)
        services = who.table.slurmctld
        if moment and services is not None and abs(services.time() - moment) > _DAY_S:
            self.blame(
                rules.NO_MOMENT,
                "slurm_ckpt_op",
                f"it answers event_time={moment} where the clock shows {services.time()}",
            )

    def blame(self, rule: str, function: str, what: str) -> None:
        """Note that something is wrong."""
        self.faults.setdefault((rule, function), what)

    def conclude(self) -> dict[str, int | float]:
        """Return what the plugin keeps in slurmctld now that the run is over."""
        return self.kept or kept_by(self.instance)

    # Records.

    async def look_at_records(self, world: World) -> None:
        """Copy each record there is, and pack and unpack it; hold what comes back against it."""
        with world.site.hooks.unobserved():
            held: dict[int, str] = {}
            for name, record, arguments in _records(world):
                if record.value is None or await self._is_under_way(world, arguments):
                    continue
                other = held.setdefault(_identity(record.value), name)
                if other != name and not _is_plain(record.value):
                    self.blame(
                        rules.SHARED_RECORD,
                        "slurm_ckpt_alloc_job",
                        f"{other} and {name} have one object as their records",
                    )
                await self._look_at_copy(world, name, record)
                await self._look_at_round_trip(world, name, record)

    @staticmethod
    async def _is_under_way(world: World, arguments: tuple[Any, ...]) -> bool:
        """Ask whether a checkpoint is under way: what is noted of that, no restart survives."""
        result = await world.site.hooks.call(slurm_ckpt_op, world.ctld.process, *arguments)
        return bool(getattr(result, "event_time", 0))

    async def _look_at_copy(self, world: World, name: str, record: Handle) -> None:
        ctld = world.ctld.process
        copied = await world.site.hooks.call(slurm_ckpt_copy_job, ctld, record)
        if not isinstance(copied, Handle) or copied.value is None:
            return
        function = "slurm_ckpt_copy_job"
        shared = shared_between(record.value, copied.value)
        if shared:
            self.blame(
                rules.SHARED_RECORD, function, f"the copy of {name}'s record has {shared} of it"
            )
        elif differs(record.value, copied.value):
            what = difference(record.value, copied.value)
            self.blame(rules.COPY_DIFFERS, function, f"of {name}'s record {what}")

    async def _look_at_round_trip(self, world: World, name: str, record: Handle) -> None:
        hooks, ctld = world.site.hooks, world.ctld.process
        buffer = Buf()
        packed = await hooks.call(slurm_ckpt_pack_job, ctld, record, buffer, _VERSION)
        fresh = await hooks.call(slurm_ckpt_alloc_job, ctld)
        if failed(packed) or not isinstance(fresh, Handle) or fresh.value is None:
            return
        if _identity(fresh.value) == _identity(record.value):
            self.blame(
                rules.SHARED_RECORD,
                "slurm_ckpt_alloc_job",
                f"it returned {name}'s record once more",
            )
            return
        there = Buf(buffer.data())
        rc = await hooks.call(slurm_ckpt_unpack_job, ctld, fresh, there, _VERSION)
        function = "slurm_ckpt_unpack_job"
        if failed(rc):
            self.blame(rules.RECORD_LOST, function, f"it fails on {name}'s own packed record")
        elif there.remaining:
            self.blame(
                rules.RECORD_LOST,
                function,
                f"it leaves {there.remaining} of {there.size} bytes of {name}'s record unread",
            )
        elif differs(record.value, fresh.value):
            what = difference(record.value, fresh.value)
            self.blame(
                rules.RECORD_LOST, function, f"of {name}'s record, packed and unpacked, {what}"
            )


def _records(world: World) -> list[tuple[str, Handle, tuple[Any, ...]]]:
    """Return all records, with what slurm_ckpt_op is called with to ask about each."""
    found: list[tuple[str, Handle, tuple[Any, ...]]] = []
    call: tuple[Any, ...]
    able = int(CheckOp.ABLE)
    for job in world.ctld.jobs.values():
        call = (job.job_id, SLURM_BATCH_SCRIPT, None, able, 0, f"/{job.job_id}")
        if job.batch and job.state.base is JobBase.RUNNING:
            found.append((f"job {job.job_id}", job.check_job, call))
        for step in job.steps.values():
            view = live_step(world.ctld, step)
            name = f"{job.job_id}.{step.step_id}"
            call = (job.job_id, step.step_id, view, able, 0, f"/{name}")
            found.append((f"step {name}", step.check_job, call))
    return found


def _identity(value: Any) -> int:
    """Return what tells an object from all others."""
    return value.address if isinstance(value, Pointer) else id(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, int | float | str | bytes | tuple | frozenset)


def parts_of(value: Any) -> dict[str, Any]:
    """Return what an object holds, by name; of a plain one itself."""
    if isinstance(value, Pointer):
        return parts_of(value.plain())
    if isinstance(value, dict):
        return {str(key): part for key, part in value.items()}
    if isinstance(value, list | tuple):
        return {str(place): part for place, part in enumerate(value)}
    names = dict.fromkeys(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        names |= dict.fromkeys((slots,) if isinstance(slots, str) else slots)
    found = {name: getattr(value, name) for name in names if not name.startswith("__")}
    return found if found or not _is_plain(value) else {"": value}


def shared_between(one: Any, other: Any) -> str:
    """Return what two objects share that can be changed, or nothing."""
    if _is_plain(one):
        return ""
    if _identity(one) == _identity(other):
        return "the very object"
    if isinstance(one, Pointer):
        name = one.shares(other)
        return f"the same {name.lstrip('.')}" if name else ""
    theirs = parts_of(other)
    for name, part in parts_of(one).items():
        if isinstance(part, dict | list | set | bytearray) and theirs.get(name) is part:
            return f"the same {name}"
    return ""


def differs(one: Any, other: Any) -> bool:
    """Return whether two objects hold different values, as far as that can be seen."""
    return bool(difference(one, other))


def difference(one: Any, other: Any) -> str:
    """Say which part of an object is another one in a second object."""
    mine, theirs = parts_of(one), parts_of(other)
    for name, part in mine.items():
        there = theirs.get(name)
        if _is_plain(part) and _is_plain(there):
            if part != there:
                label = name or "the value"
                return f"{label} is {part!r} and becomes {there!r}"
        elif isinstance(part, dict | list | set) and part != there and _all_plain(part):
            return f"{name} is {part!r} and becomes {there!r}"
    return ""


def _all_plain(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    return all(_is_plain(part) for part in parts)


__all__ = ["Watch", "difference", "differs", "parts_of", "shared_between"]
