"""What a session has seen, found quickly: events by job and by name, and what processes run.

The index is made when something first asks for it and caught up with later, so that a run that
is not asked about costs nothing.
"""

from typing import TYPE_CHECKING

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern

if TYPE_CHECKING:
    from simctl.world import World


class Seen:
    """An index over the events of a world."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self._to = 0
        self._jobs: dict[int, list[Event]] = {}
        self._names: dict[str, list[Event]] = {}
        self.programs: dict[int, str] = {}
        """What a process has executed, by pid."""

    def catch_up(self) -> "Seen":
        """Note what has happened since it was asked last; return itself."""
        events = self.world.events
        jobs, names, programs = self._jobs, self._names, self.programs
        for place in range(self._to, len(events)):
            event = events[place]
            job = event.job
            if job is not UNSET:
                found = jobs.get(job)
                if found is None:
                    jobs[job] = [event]
                else:
                    found.append(event)
            found = names.get(event.name)
            if found is None:
                names[event.name] = [event]
            else:
                found.append(event)
            if event.kind == "process" and event.name == "exec" and event.pid is not UNSET:
                programs[event.pid] = _path(event)
        self._to = len(events)
        return self

    def jobs(self) -> list[int]:
        """Return the ids of all jobs that there were."""
        return list(self._jobs)

    def last(self, name: str) -> Event | None:
        """Return the last event of a name."""
        named = self._names.get(name)
        return named[-1] if named else None

    def of_job(self, job_id: int) -> list[Event]:
        """Return the events of a job."""
        return self._jobs.get(job_id, [])

    def last_call(self, function: str) -> Event | None:
        """Return the end of the last call of a plugin function."""
        named = reversed(self._names.get(function, []))
        return next((event for event in named if event.phase != "enter"), None)

    def candidates(self, pattern: Pattern) -> list[Event]:
        """Return events among which are all that match a pattern, as few as the index gives."""
        if not pattern.any_name:
            return self._names.get(pattern.name, [])
        for job in pattern.values("job"):
            if job.isdecimal():
                return self._jobs.get(int(job), [])
        return self.world.events


def _path(event: Event) -> str:
    return "" if event.args is UNSET else str(event.args.get("path", ""))
