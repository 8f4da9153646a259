"""What `serve ctl` asks of a served cluster: faults in the REPL's words, waiting, its end."""

import os
import re
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, cast

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern
from simctl.kernel.places import Place
from simctl.repl.errors import CommandError
from simctl.status import BROKEN, NOT_HELD, OK, WRONG_INPUT
from simctl.wire.states import NodeFlag
from simctl.world import World

if TYPE_CHECKING:
    from simctl.repl.acts import Deed
    from simctl.repl.session import Session as ReplSession

VERBS: Final = (
    *("crash", "start", "stop", "restart", "cut", "slow", "accounting", "preempt"),
    *("drop", "delay", "duplicate", "reorder", "hang", "raise", "fail", "fault"),
)
"""Words of the REPL that a served cluster knows; `stop` alone ends it."""

_USAGE: Final = (
    "crash n1 [noticed], start n1, restart slurmctld for 5s, slow 2s for 30s, accounting off for "
    "30s, accounting lag 5s, preempt 1, cut n1 slurmctld for 30s, drop RPC times=1, "
    "delay RPC by=2s, hang PATTERN for 5s, fail PATTERN errno=E, fault {YAML}, "
    "wait job 1 RUNNING, wait PATTERN, flush, stop"
)
_JOB: Final = re.compile(r"job\s+(\d{1,9})(?:_(\d{1,9}))?(?:\s+([A-Z_|]+))?")
_NODE: Final = re.compile(r"node\s+(\S+)\s+([A-Z_*|]+)")
_MOST_JOBS: Final = 10_000


class Asker(Protocol):
    """Who asks: it is told what comes of that, and then an exit status.

    Attributes:
        uid: Its user.
        gone: Whether it waits no longer.
    """

    uid: int
    gone: bool

    def write(self, stream: str, text: str) -> None:
        """Hear something; *stream* is stdout or stderr."""

    def quit(self, status: int) -> None:
        """Hear that this was all."""


@attrs.define(eq=False)
class _Wait:
    """A client that waits, until `done` finds that it came (true) or cannot come any more."""

    done: Callable[[Event | None], bool | None]
    asker: Asker


class Control:
    """Does what it is asked, each in a turn of its own, and tells those who wait."""

    def __init__(
        self, world: World, *, finish: Callable[[], None], log: Callable[[str], None]
    ) -> None:
        self.world = world
        self._finish = finish
        self._log = log
        self.flush: Callable[[], None] = lambda: None
        """Lets the trace's file hold all there is."""

        self._waits: list[_Wait] = []
        self._been: dict[int, list[str]] = {}
        """The states that each job has been in."""

        self._heard: list[Event] | None = None
        self.record: Callable[[int, Deed], None] = lambda *_: None
        world.trace.add_sink(self._hear)

    # What happens.

    def _hear(self, event: Event) -> None:
        if self._heard is not None:
            self._heard.append(event)
        if event.name == "job_state" and isinstance(event.job, int) and event.args is not UNSET:
            self._been.setdefault(event.job, []).append(str(event.args.get("to", "")))
            if len(self._been) > _MOST_JOBS:
                del self._been[next(iter(self._been))]
        for wait in list(self._waits):
            self._look(wait, event)

    def _look(self, wait: _Wait, event: Event | None) -> None:
        came = wait.done(event)
        if came is not None:
            self._waits.remove(wait)
            wait.asker.quit(OK if came else NOT_HELD)

    def forget(self, asker: Asker) -> None:
        """Let go of a client that waits no longer."""
        self._waits = [wait for wait in self._waits if wait.asker is not asker]

    # What is asked.

    def do(self, line: str, asker: Asker) -> None:
        """Do what a line asks for, in the turn at hand."""
        word, _, rest = line.strip().partition(" ")
        try:
            if word == "wait":
                self._wait(rest.strip(), asker)
                return
            if asker.uid not in (0, os.geteuid()):
                raise CommandError(  # noqa: TRY301 - told below
                    f"{word}: Access/permission denied: whoever serves the cluster may, and "
                    "others may `wait`"
                )
            if word == "stop" and not rest:
                self._finish()
            elif word == "flush":
                self.flush()
            elif word in VERBS:
                self._act(line, asker)
            else:
                raise CommandError(f"expected one of: {_USAGE}")  # noqa: TRY301 - told below
        except CommandError as error:
            asker.write("stderr", f"serve ctl: {error}\n")
            asker.quit(WRONG_INPUT)
            return
        except Exception:  # noqa: BLE001 - a cluster outlives a mistake in what is asked of it
            self._log(traceback.format_exc())
            asker.write("stderr", "serve ctl: simctl itself broke; the server tells where\n")
            asker.quit(BROKEN)
            return
        asker.quit(OK)

    def _act(self, line: str, asker: Asker) -> None:
        # The REPL takes a while to import, and a cluster is to be there soon.
        from simctl.repl import commands  # noqa: F401, PLC0415 - each registers itself
        from simctl.repl.registry import find  # noqa: PLC0415

        do = find(line)
        assert do is not None
        do(cast("ReplSession", _Remote(self, asker)))

    def act(self, deed: "Deed", heard: list[Event]) -> str:
        """Let something happen to the cluster, and hear what comes of it at once."""
        from simctl.repl.acts import read_deed  # noqa: PLC0415

        world = self.world
        place = Place("event", max(1, world.trace.seq))
        entry = read_deed(world.scenario, deed, place, world.kernel.now_us, "serve ctl")
        self._heard = heard
        try:
            world.timeline.happen(entry)
        finally:
            self._heard = None
        self.record(world.kernel.now_us, deed)
        return ""

    # Waiting.

    def _wait(self, what: str, asker: Asker) -> None:
        from simctl.repl.acts import read_typed_pattern  # noqa: PLC0415

        job, node = _JOB.fullmatch(what), _NODE.fullmatch(what)
        if job is not None:
            done = self._job_wait(int(job[1]), job[2], job[3] or "")
        elif node is not None:
            done = self._node_wait(node[1], node[2].split("|"))
        else:
            done = _pattern_wait(read_typed_pattern(self.world.scenario, what))
        if asker.gone:
            return
        wait = _Wait(done, asker)
        self._waits.append(wait)
        self._look(wait, None)

    def _job_wait(
        self, number: int, task: str | None, wanted: str
    ) -> Callable[[Event | None], bool | None]:
        """Return what tells whether a job is in a state, or has been and is over.

        Without a state its end is meant.
        """

        def done(event: Event | None) -> bool | None:
            if event is not None and event.kind != "state":
                return None
            job_id = number if task is None else self._of_array(number, int(task))
            been = self._been.get(job_id, [])
            if not been:
                return None
            states = [set(each.split("|")) for each in been]
            over = bool(states[-1] & _OVER) and "COMPLETING" not in states[-1]
            if not wanted:
                return True if over else None
            among = set(wanted.split("|"))
            if states[-1] & among or (over and any(each & among for each in states)):
                return True
            return False if over and not states[-1] & {"REQUEUED"} else None

        return done

    def _of_array(self, array: int, task: int) -> int:
        arrays = self.world.trace.arrays
        return next((job for job, each in arrays.items() if each == (array, task)), -1)

    def _node_wait(self, name: str, states: list[str]) -> Callable[[Event | None], bool | None]:
        nodes = {node.name: node for node in self.world.ctld.nodes}
        if name not in nodes:
            raise CommandError(f"there is no node {name!r}")

        def done(_: Event | None) -> bool | None:
            node = next(each for each in self.world.ctld.nodes if each.name == name)
            found = {node.base.name, *(flag.name for flag in NodeFlag if flag & node.flags)}
            return True if found & set(states) else None

        return done


_OVER: Final = frozenset(
    (
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"),
    )
)


def _pattern_wait(pattern: Pattern) -> Callable[[Event | None], bool | None]:
    def done(event: Event | None) -> bool | None:
        return True if event is not None and pattern.matches(event) else None

    return done


class _Remote:
    """What the REPL's verbs need of a session, for a client far away."""

    call = None
    kind = "event"

    def __init__(self, control: Control, asker: Asker) -> None:
        self._control = control
        self._asker = asker
        self.world = self
        self.events: list[Event] = []

    def act(self, deed: "Deed") -> str:
        """Let something happen."""
        return self._control.act(deed, self.events)

    def say(self, text: str) -> None:
        """Tell the client."""
        self._asker.write("stdout", text + "\n")

    def show_event(self, event: Event) -> None:
        """Tell the client of an event."""
        from simctl.repl.showing import event_lines  # noqa: PLC0415

        for line in event_lines(event, self._control.world):
            self.say(line)
