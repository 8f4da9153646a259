"""A line of sacct: a run of a job, or one of its steps, in the units that are shown."""

from collections.abc import Mapping
from typing import Final

import attrs

from simctl.commands.columns.formats import padded_time
from simctl.kernel.procs import exit_code_of, signal_of
from simctl.wire.accounts import NOBODY, JobAccount, StepAccount, step_label
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.past_times import show_moment
from simctl.wire.states import JobBase

_UNITS: Final = "KMGTP"
_STEP_OF_UNITS: Final = 1024


@attrs.frozen(kw_only=True)
class View:
    """How lines are shown: what the clocks show, the way of times, the unit of memory."""

    epoch_s: int
    now_s: int
    cluster: str
    groups: Mapping[int, str]
    time_format: str = "standard"
    unit: str = ""
    convert: bool = True

    def clock_s(self, moment_us: int) -> int:
        """Return what clocks show at a virtual moment."""
        return self.epoch_s + moment_us // SECOND

    def moment(self, moment_s: int) -> str:
        """Return a moment as it is shown."""
        return show_moment(moment_s, self.time_format, self.now_s)

    def memory(self, size_mb: int) -> str:
        """Return megabytes as they are shown: in a greater unit if that loses nothing."""
        if self.unit:
            return _in_unit(size_mb, self.unit)
        place = _UNITS.index("M")
        while self.convert and size_mb and not size_mb % _STEP_OF_UNITS:
            size_mb //= _STEP_OF_UNITS
            place += 1
        return f"{size_mb}{_UNITS[place]}"


def _in_unit(size_mb: int, unit: str) -> str:
    power = _UNITS.index(unit) - _UNITS.index("M")
    if power < 0:
        return f"{size_mb * _STEP_OF_UNITS**-power}{unit}"
    whole, rest = divmod(size_mb, _STEP_OF_UNITS**power)
    return f"{size_mb / _STEP_OF_UNITS**power:.2f}{unit}" if rest else f"{whole}{unit}"


@attrs.frozen
class Line:
    """A run of a job as a line, or with a `step` that step of it."""

    view: View
    job: JobAccount
    step: StepAccount | None = None

    @property
    def record(self) -> JobAccount | StepAccount:
        """Return whichever of them the line is about."""
        return self.step if self.step is not None else self.job

    @property
    def job_id(self) -> str:
        """Return ``9_1.batch``."""
        job = self.job
        text = str(job.array_job_id or job.job_id)
        if job.array_task_id != NO_VAL:
            text += f"_{job.array_task_id}"
        elif job.array_tasks:
            text += f"_{job.array_tasks}"
        return text + self._point()

    @property
    def raw_id(self) -> str:
        """Return ``12.batch``."""
        return f"{self.job.job_id}{self._point()}"

    def _point(self) -> str:
        return f".{step_label(self.step.step_id)}" if self.step is not None else ""

    @property
    def state(self) -> str:
        """Return the state, and of what was cancelled by whom."""
        record = self.record
        if record.state == JobBase.CANCELLED.name and record.cancel_uid != NOBODY:
            return f"{record.state} by {record.cancel_uid}"
        return record.state

    @property
    def elapsed_s(self) -> int:
        """Return how long it has run, suspensions left out, from second to second."""
        record = self.record
        if record.start_us < 0:
            return 0
        clock_s = self.view.clock_s
        end_s = clock_s(record.end_us) if record.end_us >= 0 else self.view.now_s
        return max(0, end_s - clock_s(record.start_us) - record.suspended_us // SECOND)

    @property
    def cpus(self) -> int:
        """Return how many cpus it has, or asks for where it has none."""
        if self.step is not None:
            return self.step.num_cpus
        return self.job.alloc_cpus or self.job.req_cpus

    @property
    def reserved_s(self) -> int:
        """Return how long the job waited once it could start."""
        job, clock_s = self.job, self.view.clock_s
        if job.eligible_us < 0:
            return 0
        until_us = job.start_us if job.start_us >= 0 else job.end_us
        until_s = clock_s(until_us) if until_us >= 0 else self.view.now_s
        return max(0, until_s - clock_s(job.eligible_us))

    def start(self) -> str:
        """Return when it started: Unknown while it has not, None if it never did."""
        record = self.record
        if record.start_us < 0:
            return "Unknown" if record.end_us < 0 else "None"
        return self.view.moment(self.view.clock_s(record.start_us))

    def since(self, moment_us: int) -> str:
        """Return a moment of the job; of a step it is its start."""
        if self.step is not None:
            return self.start()
        return self.known(moment_us)

    def known(self, moment_us: int) -> str:
        """Return a moment, or Unknown."""
        if moment_us < 0:
            return "Unknown"
        return self.view.moment(self.view.clock_s(moment_us))

    def tres(self) -> str:
        """Return what it has, as ``billing=1,cpu=1,mem=204M,node=1``."""
        if self.step is not None:
            step = self.step
            return self._tres(step.num_cpus, step.memory_mb, step.num_nodes, billing=False)
        job = self.job
        if not job.alloc_nodes:
            return ""
        amount = self._tres(job.alloc_cpus, job.alloc_memory_mb, job.alloc_nodes, billing=True)
        return self._with_others(job.alloc_tres, amount)

    def asked_tres(self) -> str:
        """Return what the job asked for."""
        job = self.job
        amount = self._tres(job.req_cpus, job.req_memory_mb, job.req_nodes, billing=True)
        return self._with_others(job.req_tres, amount)

    def _with_others(self, tres: Mapping[str, int], amount: str) -> str:
        """Return a text of TRES with burst buffers in it; sorted by name they come first."""
        others = [f"{name}={self.view.memory(tres[name])}" for name in sorted(tres)]
        return ",".join([*others, amount])

    def _tres(self, cpus: int, memory_mb: int, nodes: int, *, billing: bool) -> str:
        parts = [f"billing={cpus}"] if billing else []
        parts.append(f"cpu={cpus}")
        if memory_mb:
            parts.append(f"mem={self.view.memory(memory_mb)}")
        return ",".join([*parts, f"node={nodes}"])

    def time_limit(self, *, raw: bool) -> str:
        """Return the job's time limit, as a time or in minutes."""
        limit_min = self.job.time_limit_min
        if limit_min == NO_VAL:
            return "Partition_Limit"
        if limit_min >= INFINITE:
            return "UNLIMITED"
        return str(limit_min) if raw else padded_time(limit_min * 60)


def exit_text(status: int) -> str:
    """Return a wait status as ``code:signal``; nothing where none is known."""
    if status == NO_VAL:
        return ""
    return f"{exit_code_of(status)}:{signal_of(status)}"
