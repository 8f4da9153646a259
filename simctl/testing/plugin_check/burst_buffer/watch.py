"""Look at each call of a burst buffer plugin: what it answers, and what it changes when it may not."""

import inspect
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

import attrs

from simctl.kernel.procs import Process
from simctl.plugins.points.declare import Point
from simctl.testing.plugin_check.burst_buffer.keeps import kept_by
from simctl.wire.buf import Buf
from simctl.wire.burst_buffers import BurstBufferInfo
from simctl.wire.errno import SlurmError
from simctl.wire.ids import SECOND

_MEGABYTE: Final = 1 << 20
_DAY_S: Final = 86_400
_YEARS_S: Final = 20 * 365 * _DAY_S


@attrs.frozen
class _Before:
    job: tuple[Any, ...]
    threads: int


@attrs.define
class Watch:
    """Follows the calls of one run."""

    kind: type[Any]
    conf_name: str
    instance: Any = None
    """The plugin in the slurmctld that ran last."""

    kept: dict[str, int | float] = attrs.field(factory=dict)
    """What it kept when its fini was called, or at its last call."""

    faults: dict[tuple[str, str], tuple[str, str]] = attrs.field(factory=dict)
    """What was wrong with a call: by rule and function its cost and remedy."""

    packed: list[BurstBufferInfo] = attrs.field(factory=list)
    sizes: set[int] = attrs.field(factory=set)
    called: dict[str, int] = attrs.field(factory=dict)

    def before(
        self, point: Point | None, name: str, who: Process, instance: Any, values: tuple[Any, ...]
    ) -> _Before | None:
        """Look at what a call finds."""
        if not isinstance(instance, self.kind):
            return None
        self.called[name] = self.called.get(name, 0) + 1
        self.instance = instance
        if name == "fini":
            self.kept = kept_by(instance)
        if not self._only_asks(name, values):
            return _Before((), 0)
        return _Before(_seen_of(values[0]), _threads(who))

    def after(
        self,
        before: _Before,
        point: Point | None,
        who: Process,
        instance: Any,
        values: tuple[Any, ...],
        result: Any,
        error: SlurmError | None,
        problem: str,
    ) -> None:
        """Look at what a call has left."""
        if point is None or problem:
            return
        name = point.name
        if self._only_asks(name, values):
            changed = before != _Before(_seen_of(values[0]), _threads(who))
            if changed and name == "bb_p_job_test_stage_in":
                self._blame(
                    "test_only changes nothing",
                    name,
                    "backfill asks with test_only for jobs that it only plans: space is booked, or "
                    "data is staged, for jobs that do not start, and others wait for it",
                    "return -1 where test_only is true, before anything is booked or started",
                )
        if error is not None:
            return
        if name == "bb_p_job_get_est_start":
            self._look_at_start(name, who, result)
        elif name == "bb_p_job_set_tres_cnt":
            self._look_at_counts(name, values[1])
        elif name == "bb_p_get_system_size" and type(result) is int:
            self.sizes.add(result)
        elif name == "bb_p_state_pack":
            self._look_at_packed(name, values[1])

    @staticmethod
    def _only_asks(name: str, values: tuple[Any, ...]) -> bool:
        return name == "bb_p_job_test_stage_in" and bool(values[1])

    def _look_at_start(self, name: str, who: Process, result: Any) -> None:
        if type(result) is not int or not result:
            return
        table = who.table
        now_s = table.slurmctld.time() if table.slurmctld is not None else 0
        if now_s and not now_s - _DAY_S <= result <= now_s + _YEARS_S:
            self._blame(
                "a start is a moment",
                name,
                f"it answered {result} where the clock shows {now_s}: backfill plans such a job "
                "for never, or for the past, and everybody behind it by that",
                "return seconds since the epoch: `slurmctld.time()` and what is to wait for; "
                "`now()` is the time since the run began",
            )

    def _look_at_counts(self, name: str, counts: Mapping[Any, Any]) -> None:
        strange = [key for key in counts if key != self.conf_name]
        if strange:
            self._blame(
                "a TRES has a name",
                name,
                f"it counts {strange[0]!r}, which slurmctld knows nothing of: limits and "
                "accounting see no burst buffer of this job",
                f"count MB under {self.conf_name!r}",
            )

    def _look_at_packed(self, name: str, buffer: Buf) -> None:
        try:
            copy = Buf(buffer.data())
            if not copy.remaining:
                return
            info = BurstBufferInfo.unpack(copy)
        except (SlurmError, ValueError):
            return
        self.packed.append(info)
        if info.used_space > info.total_space > 0:
            self._blame(
                "used is at most total",
                name,
                f"it shows {info.used_space} bytes used of {info.total_space}: people plan by "
                "what `scontrol show burstbuffer` says, and it cannot be so",
                "book space where it is granted and give it back where the job lets go of it, "
                "each once",
            )

    def _blame(self, rule: str, name: str, cost: str, remedy: str) -> None:
        self.faults.setdefault((rule, name), (cost, remedy))

    def conclude(self) -> dict[str, int | float]:
        """Return what the plugin keeps now that the run is over."""
        return self.kept or kept_by(self.instance)


def _seen_of(job: Any) -> tuple[Any, ...]:
    return (job.burst_buffer_state, job.stage_out, job.priority, dict(job.env_sup))


def _threads(who: Process) -> int:
    return sum(each.of_plugin and not each.finished for each in who.threads)


def place_of(kind: type[Any], name: str) -> str:
    """Return where a function of a plugin is, as file:line; of the class, if it has none."""
    method = inspect.getattr_static(kind, name, None)
    method = getattr(method, "__func__", method)
    code = getattr(method, "__code__", None)
    if code is None or getattr(method, "__module__", "").startswith("simctl.plugin."):
        return _place_of_class(kind)
    if method.__module__ == "simctl.plugin":
        return _place_of_class(kind)
    return f"{PurePath(code.co_filename).name}:{code.co_firstlineno}"


def _place_of_class(kind: type[Any]) -> str:
    try:
        file = inspect.getsourcefile(kind)
        _, line = inspect.getsourcelines(kind)
    except (OSError, TypeError):
        return kind.__name__
    return f"{PurePath(file or kind.__name__).name}:{line}"


__all__ = ["Watch", "place_of"]
