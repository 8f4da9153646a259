"""Look at each call of a burst buffer plugin: what it answers, and changes when it may not."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from simctl.kernel.procs import Process
from simctl.plugins.points.declare import Point
from simctl.testing.plugin_check.burst_buffer import rules
from simctl.testing.plugin_check.burst_buffer.keeps import kept_by
from simctl.wire.buf import Buf
from simctl.wire.burst_buffers import BurstBufferInfo
from simctl.wire.errno import SlurmError

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

    faults: dict[tuple[str, str], str] = attrs.field(factory=dict)
    """What was wrong with a call, by rule and function."""

    packed: list[BurstBufferInfo] = attrs.field(factory=list)
    sizes: set[int] = attrs.field(factory=set)
    counted: set[int] = attrs.field(factory=set)
    """What it has counted for jobs, in whatever unit."""

    def before(
        self, point: Point | None, name: str, who: Process, instance: Any, values: tuple[Any, ...]
    ) -> _Before | None:
        """Look at what a call finds."""
        if not isinstance(instance, self.kind):
            return None
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
                    rules.TEST_ONLY,
                    name,
                    "asked with test_only it changed the job or started a thread",
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
                rules.NO_MOMENT, name, f"it answered {result} where the clock shows {now_s}"
            )

    def _look_at_counts(self, name: str, counts: Mapping[Any, Any]) -> None:
        strange = [key for key in counts if key != self.conf_name]
        if strange:
            self._blame(
                rules.WRONG_TRES,
                name,
                f"it counts {strange[0]!r}, which slurmctld knows nothing of; this plugin's is "
                f"{self.conf_name}",
            )
        self.counted |= {count for count in counts.values() if type(count) is int}

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
                rules.OVER_TOTAL,
                name,
                f"it shows {info.used_space} bytes used of {info.total_space}",
            )

    def _blame(self, rule: str, name: str, what: str) -> None:
        self.faults.setdefault((rule, name), what)

    def conclude(self) -> dict[str, int | float]:
        """Return what the plugin keeps now that the run is over."""
        return self.kept or kept_by(self.instance)


def _seen_of(job: Any) -> tuple[Any, ...]:
    return (job.burst_buffer_state, job.stage_out, job.priority, dict(job.env_sup))


def _threads(who: Process) -> int:
    return sum(each.of_plugin and not each.finished for each in who.threads)


__all__ = ["Watch"]
