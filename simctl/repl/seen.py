"""What a session has seen, found quickly: events by job and by name, and what processes run.

The index is made when something first asks for it and caught up with later, so that a run that
nobody asks about pays nothing.
"""

from typing import TYPE_CHECKING

from msgspec import UNSET

from simctl.kernel.events import Event

if TYPE_CHECKING:
    from simctl.repl.session import Session
    from simctl.world import World


class Seen:
    """An index over the events of a world."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self._to = 0
        self._jobs: dict[int, list[Event]] = {}
        self._last: dict[str, Event] = {}
        self.programs: dict[int, str] = {}
        """What a process has executed, by pid."""

    @classmethod
    def of(cls, session: "Session") -> "Seen":
        """Return the index of a session's world, with all that has happened in it."""
        seen = session.seen
        if seen is None or seen.world is not session.world:
            seen = session.seen = cls(session.world)
        seen.catch_up()
        return seen

    def catch_up(self) -> None:
        """Take in what has happened since it was asked last."""
        events = self.world.events
        jobs, last, programs = self._jobs, self._last, self.programs
        for place in range(self._to, len(events)):
            event = events[place]
            job = event.job
            if job is not UNSET:
                found = jobs.get(job)
                if found is None:
                    jobs[job] = [event]
                else:
                    found.append(event)
            if event.kind == "plugin":
                if event.phase != "enter":
                    last[event.name] = event
            elif event.kind == "process" and event.name == "exec" and event.pid is not UNSET:
                programs[event.pid] = _path(event)
        self._to = len(events)

    def of_job(self, job_id: int) -> list[Event]:
        """Return the events of a job."""
        return self._jobs.get(job_id, [])

    def last_call(self, function: str) -> Event | None:
        """Return the end of the last call of a plugin function."""
        return self._last.get(function)

    def since(self, seq: int) -> list[Event]:
        """Return the events after one; events are numbered from 1 without a gap."""
        return self.world.events[seq:]


def _path(event: Event) -> str:
    return "" if event.args is UNSET else str(event.args.get("path", ""))
