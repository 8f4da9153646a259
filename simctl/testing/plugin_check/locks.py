"""See a plugin's thread change what is slurmctld's, or what its jobs carry, without the lock.

The plugin's lines are followed one by one while a thread of its own runs in slurmctld. What differs
from one line to the next, with no lock of the job table held for that thread, it has changed.
"""

import sys
from collections.abc import Iterator
from pathlib import PurePath
from types import FrameType
from typing import Any, Final

import attrs

from simctl.testing.plugin_check.canon import plain
from simctl.world import World

_FIELDS: Final = (
    *("burst_buffer", "bb_state", "priority", "bb_reason", "state_desc", "system_comment"),
    *("admin_comment", "begin_us", "restart_dir", "state"),
)
"""What of slurmctld's own records of jobs plugins may set."""


@attrs.frozen
class Unlocked:
    """A change without the lock."""

    thread: str
    """The function of the plugin that made it."""

    where: str
    what: str


class LockWatch:
    """Follows the lines of some files, as a context manager around a run of *world*."""

    def __init__(self, world: World, files: frozenset[str]) -> None:
        self._world = world
        self._files = files
        self._before: Any = None
        self._seen: dict[str, Any] = {}
        self._line: tuple[FrameType, int] | None = None
        self.found: list[Unlocked] = []

    def __enter__(self) -> "LockWatch":
        """Begin to follow."""
        self._before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *exc: object) -> None:
        """Leave off."""
        sys.settrace(self._before)

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in self._files:
            return None
        self._line = None
        if self._is_free():
            # A thread begins here, or goes on after it has waited.
            self._seen = dict(self._records())
            self._line = frame, frame.f_lineno
        return self._follow

    def _follow(self, frame: FrameType, event: str, _: Any) -> Any:
        if not self._is_free():
            self._line = None
            return self._follow
        now = dict(self._records())
        if self._line is not None and self._line[0] is frame:
            for what, value in now.items():
                if what in self._seen and self._seen[what] != value:
                    self._note(frame, self._line[1], what)
        self._seen = now
        # What happens while it waits is others' doing.
        self._line = (frame, frame.f_lineno) if event == "line" else None
        return self._follow

    def _is_free(self) -> bool:
        """Return whether a plugin's thread runs in slurmctld, and does not have the lock."""
        thread = self._world.kernel.current
        ctld = self._world.ctld
        return (
            thread is not None
            and thread.of_plugin
            and thread in ctld.process.threads
            and ctld.lock_holder is not thread
        )

    def _records(self) -> Iterator[tuple[str, Any]]:
        for job in self._world.ctld.jobs.values():
            values = tuple(str(getattr(job, name, None)) for name in _FIELDS)
            yield f"job {job.job_id}", (values, tuple(sorted(job.env_sup.items())))
            yield f"the record of job {job.job_id}", plain(job.check_job.value)
            for step in job.steps.values():
                name = f"the record of step {job.job_id}.{step.step_id}"
                yield name, plain(step.check_job.value)

    def _note(self, frame: FrameType, line: int, what: str) -> None:
        code = frame.f_code
        where = f"{PurePath(code.co_filename).name}:{line}"
        if all(each.where != where for each in self.found):
            self.found.append(Unlocked(code.co_name, where, what))


__all__ = ["LockWatch", "Unlocked"]
