"""A session: a run that stops, asks a person what to do, and goes on.

Everything a person is asked happens inside a callback of the kernel's, in the middle of the run:
after an event, as a plugin call begins, or between two turns. Nothing else in the simulation knows
that it is watched, so that the run depends on the scenario, the seed and what was done where.
"""

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import attrs

from simctl.kernel.due import next_turns, who_is
from simctl.kernel.events import Event
from simctl.kernel.faults import CallFault
from simctl.kernel.pattern import Pattern
from simctl.kernel.places import Place, PlaceKind
from simctl.kernel.procs import Process, StateNotCopyableError
from simctl.kernel.schedules import ScheduleError
from simctl.kernel.trace import OpenCall
from simctl.plugins.registry import PluginError
from simctl.repl.acts import Act, Deed, given_acts, read_deed, read_typed_pattern
from simctl.repl.breaks import Armed
from simctl.repl.changes import Notes, take_notes
from simctl.repl.desk import Desk, Target
from simctl.repl.errors import CommandError
from simctl.repl.fronts import Front
from simctl.repl.greeting import greeting
from simctl.repl.seen import Seen
from simctl.repl.showing import COLOURS, WIDTH, call_head, event_lines, folded
from simctl.repl.snapshots import Snapshots
from simctl.scenario.durations import format_moment
from simctl.scenario.model import AnswerEntry, Placed, RunEntry, Scenario
from simctl.scenario.placed import answer_fault, put_clock
from simctl.scenario.users import BUILT_IN
from simctl.status import OK
from simctl.world import World

_BUILT_IN: Final = tuple(user.name for user in BUILT_IN)
_PATIENCE_TURNS: Final = 100_000
"""How many turns may pass without an event where nothing keeps the run alive."""

Find = Callable[[str], "Callable[[Session], None] | None"]
"""Returns what a line says to do; None where it says nothing. CommandError: it cannot be read."""


@attrs.define(kw_only=True)
class Running:
    """A command that was typed and has not ended: what it has printed, and how much was seen."""

    command: str
    user: str
    printed: list[str] = attrs.field(factory=list)
    seen: int = 0


@attrs.define(kw_only=True)
class Goal:
    """What time goes on for: by itself, to the next stop, or until nothing is left to do.

    A goal is asked after every event and before every turn. It answers None to go on, or with what
    there is to say about the stop, which may be nothing.
    """

    shows: bool = False
    """Each event on the way is shown."""
    idles: bool = False
    """It goes on where nothing is left to do that keeps a run alive."""

    def event(self, session: "Session", event: Event) -> str | None:
        """Return whether to stop after an event."""
        return None

    def turn(self, session: "Session") -> str | None:
        """Return whether to stop between two turns."""
        return None


class Session:
    """One person's way through a cluster; the visitor of its run.

    What commands use: `world` and its parts, `desk`, `event` and `call` (what it stopped at, if
    that is an event or a plugin call that begins), `say`, `act` and `goal`.
    """

    def __init__(
        self,
        make_world: Callable[[], World],
        scenario: Scenario,
        source: str,
        front: Front,
        find: Find,
        *,
        forks: bool,
    ) -> None:
        self.scenario = scenario
        self.source = source
        """The text of the scenario's file."""
        self.front = front
        front.attend(self)
        users = [user.name for user in scenario.users if user.name not in _BUILT_IN]
        self.desk = Desk(user=users[0] if users else "root")
        self.world = make_world()
        self.over = ""
        """Why the run cannot go on; empty while it can."""
        self.kind: PlaceKind = "turn"
        self.number = 0
        self.event: Event | None = None
        self.call: OpenCall | None = None
        self.goal: Goal | None = None
        self.running: dict[str, Running] = {}
        self.interrupted = False
        self.status = OK
        self.above = 0
        """How many processes above the one at hand are looked at."""
        self.first_seq = 0
        """How many events there are before anything can be typed."""
        self._make_world = make_world
        self._find = find
        self._snapshots = Snapshots(front.flush, forks=forks)
        self._foreground = ""
        self._ahead: dict[Place, list[Act]] = {}
        self._last_turn_ahead = 0
        self._turn = 0
        self._quiet_since = 0
        self._calls: dict[int, list[OpenCall]] = {}
        self._started = False
        self._acting = False
        self._leaving = False
        self._again = False
        self._shown = 0
        self._answer: CallFault | None = None
        self._armed: list[Armed] = []
        self._seen: Seen | None = None
        self.before: Notes | None = None
        """How things were before the last line that let something happen."""

    # The session as a whole.

    def run(self) -> int:
        """Run until the person leaves; return the exit status."""
        try:
            while True:
                self._enter_world()
                try:
                    self.world.run()
                    self.over = "the run has ended"
                except (PluginError, ScheduleError) as error:
                    self.over = f"the run cannot go on: {error}"
                except BrokenPipeError:
                    raise
                except Exception as error:  # noqa: BLE001 - there is still a way back
                    self.over = f"simctl itself broke: {type(error).__name__}: {error}"
                if not self._leaving:
                    self.event = self.call = None
                    self.stop(self.over)
                if not self._again:
                    break
                self.world = self._make_world()
        except BrokenPipeError:
            # There is no reader any more.
            self._leaving = True
        self._snapshots.leave(self.status)
        return self.status

    def _fail(self, error: BaseException) -> None:
        """Stop where a run fails in a copy of the process, which nothing may take down.

        What trio gives back to the system is shared with the frozen parents.
        """
        if not self._snapshots.is_copy:
            return
        if isinstance(error, StateNotCopyableError):
            self.over = f"the run cannot go on: plugin {error}"
        else:
            self.over = f"the run cannot go on: {type(error).__name__}: {error}"
        self.event = self.call = None
        self.stop(self.over)

    def _enter_world(self) -> None:
        world = self.world
        self._started = self._leaving = self._again = self._acting = False
        self.over = ""
        self.running = {}
        self._calls = {}
        self.before = None
        self._turn = self._quiet_since = 0
        self.desk.done = 0
        world.trace.add_sink(world.events.append)
        world.visitor = self
        world.kernel.at_failure = self._fail
        world.shell.listener = self
        self._look_ahead(given_acts(self.scenario))

    def _look_ahead(self, given: list[Act]) -> None:
        """Note what is to be done at places ahead: by the scenario, and once more by the person."""
        ahead: dict[Place, list[Act]] = {}
        for act in (*given, *self.desk.acts[self.desk.done :]):
            ahead.setdefault(act.place, []).append(act)
        self._ahead = ahead
        self._last_turn_ahead = max(
            (place.number for place in ahead if place.kind == "turn"), default=0
        )
        self._arm()

    def leave(self) -> None:
        """End the session."""
        self._leaving = True

    def go_on_alone(self, front: Front, goal: Goal) -> None:
        """Let time go on in a copy of this process, for its parent: no person is asked."""
        front.attend(self)
        self.front = front
        self._snapshots.live_alone()
        self.desk.breaks = []
        self.arm()
        self.goal = goal

    def go_back(self, seq: int) -> None:
        """Go back to where event *seq* had just been recorded, before anything was typed there."""
        acts = self.desk.acts
        kept = [act for act in acts if act.before_seq < seq]
        self.desk.target = Target(seq=max(seq, self.first_seq), acts=len(kept))
        self.desk.acts = kept
        self.desk.reading = self.front.unread()
        self._begin_return()
        self._leaving = self._again = True
        self._snapshots.hand_over(self.desk)

    def _take_over(self, desk: Desk) -> None:
        """Go on with what another process of this session handed over."""
        self._begin_return()
        done = self.desk.done
        self.desk = desk
        self.desk.done = done
        self.front.resume(desk.reading)
        given = [act for acts in self._ahead.values() for act in acts if act.given]
        self._look_ahead(given)

    def _begin_return(self) -> None:
        """Forget what the way so far was for."""
        self.interrupted = False
        self.goal = None
        self._foreground = ""
        self._shown = 0
        for each in self.running.values():
            # In another world they have been seen, perhaps, but not in this one.
            each.seen = 0

    # What the kernel asks.

    def after_event(self, event: Event) -> None:
        """Look at an event: do what is due there, stop if that was asked."""
        self._quiet_since = self._turn
        if self._calls:
            self._forget_call(event)
        if self._acting or self._leaving or not self._started:
            return
        self.kind, self.number, self.event, self.call = "event", event.seq, event, None
        if self._ahead:
            self._do_ahead()
        if self.desk.target is not None:
            self._look_whether_there()
            return
        goal = self.goal
        if goal is not None and goal.shows:
            self.show_event(event)
        reason = "interrupted" if self.interrupted else None
        if reason is None and goal is not None:
            reason = goal.event(self, event)
        for armed in self._armed:
            if armed.at_event(event):
                reason = self._hit(armed)
                break
        if reason is not None:
            self.stop(reason)

    def before_call(self, call: OpenCall, number: int) -> CallFault | None:
        """Look at a plugin call that begins; return the answer for the plugin, if one is given."""
        self._calls.setdefault(call.who.pid, []).append(call)
        if self._acting or self._leaving or not self._started:
            return None
        self.kind, self.number, self.event, self.call = "call", number, None, call
        self._answer = None
        if self._ahead:
            self._do_ahead()
        if self.desk.target is not None:
            self._look_whether_there()
        elif self.interrupted:
            self.stop("interrupted")
        elif self._armed:
            prospect = self.world.trace.prospect(call)
            for armed in self._armed:
                if armed.at_call(prospect):
                    self.stop(self._hit(armed))
                    break
        return self._answer

    def before_turn(self, number: int) -> bool:
        """Look at the world between two turns; false where the session leaves it."""
        self.kind, self.number, self.event, self.call = "turn", number, None, None
        self._turn = number
        if self._leaving:
            # A copy ends here: what trio would give back is shared with the frozen parents.
            self._snapshots.leave(self.status)
            return False
        if not self._started or self._snapshots.is_due(self.world.trace.seq):
            if not self._started:
                self._started = True
                self.first_seq = self.world.trace.seq
            came = self._snapshots.take(self.world.trace.seq, self.world.watchdog)
            if isinstance(came, int):
                self.status = came
                self._leaving = True
                return False
            if came is not None:
                self._take_over(came)
        if self._ahead:
            self._do_ahead()
        if self.desk.target is not None:
            self._look_whether_there()
        while self.desk.target is None and not self._leaving:
            reason = self._reason_between_turns()
            if reason is None:
                break
            self.stop(reason)
        return not self._leaving

    def goes_on(self) -> bool:
        """Return whether turns are taken that alone would keep no run alive."""
        return self.world.kernel.next_due_us is not None and not self._leaving

    def _reason_between_turns(self) -> str | None:
        """Return why to stop between two turns; None to go on."""
        if self.interrupted:
            return "interrupted"
        if self.goal is None:
            return ""
        reason = self.goal.turn(self)
        if reason is not None or self.world.kernel.foreground:
            return reason
        if self.world.kernel.next_due_us is None:
            return self._rest("nothing is due any more")
        if self._last_turn_ahead >= self.number:
            return None
        if self.goal.idles:
            patient = self.number - self._quiet_since < _PATIENCE_TURNS
            return None if patient else "nothing has happened for long"
        return self._rest("nothing is left to do")

    def _rest(self, what: str) -> str | None:
        """Say who waits where nothing is left to do; None where a plugin's thread may help."""
        waiting = self.world.at_rest()
        if waiting is None:
            return None
        if not waiting:
            return f"{what}; type a command, or `run 30s` to let time pass"
        told = [part for line in waiting for part in folded(f"  {line}")]
        return "\n".join((f"{what}, and these wait:", *told))

    def _forget_call(self, event: Event) -> None:
        """Forget a plugin call that has ended, or those of a process that has."""
        if event.kind == "plugin" and event.phase != "enter":
            calls = self._calls.get(event.pid) if isinstance(event.pid, int) else None
            if calls:
                calls.pop()
        elif event.kind == "process" and event.name in ("exit", "exec"):
            self._calls.pop(event.pid if isinstance(event.pid, int) else 0, None)

    def present_call(self) -> OpenCall | None:
        """Return the plugin call at hand: the innermost one of the process that acts."""
        if self.call is not None:
            return self.call
        thread = self.world.kernel.current
        if self.kind == "turn" or thread is None or not isinstance(thread.owner, Process):
            return None
        calls = self._calls.get(thread.owner.pid)
        return calls[-1] if calls else None

    def call_of(self, process: Process) -> OpenCall | None:
        """Return the plugin call that a process is in."""
        calls = self._calls.get(process.pid)
        return calls[-1] if calls else None

    def open_calls(self) -> list[OpenCall]:
        """Return the plugin calls that have begun and not ended, of a process the innermost."""
        return [calls[-1] for calls in self._calls.values() if calls]

    def seen(self) -> Seen:
        """Return what has happened in its world, by job and by name."""
        if self._seen is None or self._seen.world is not self.world:
            self._seen = Seen(self.world)
        return self._seen.catch_up()

    # Acts.

    @property
    def place(self) -> Place:
        """Return where the session is."""
        return Place(self.kind, self.number)

    def act(self, deed: Deed) -> str:
        """Do something to the cluster now, and note it; return what a command is known by.

        Raises:
            CommandError: The run is over.
            DeedError: A scenario could not say this.
        """
        if self.over:
            raise CommandError(f"{self.over}; `back` leads to where it could still go on")
        desk = self.desk
        desk.acts_made += 1
        seq = self.world.trace.seq
        act = Act(
            deed=deed,
            place=self.place,
            time_us=self.world.kernel.now_us,
            number=desk.acts_made,
            before_seq=seq,
        )
        self._do(act)
        desk.acts.append(attrs.evolve(act, after_seq=self.world.trace.seq))
        desk.done = len(desk.acts)
        return act.label

    def _do(self, act: Act) -> None:
        """Have an act happen at the place at hand."""
        world = self.world
        if act.given:
            entry = self.scenario.timeline[act.number]
            moment = entry.moment
            time_us = moment.time_us if isinstance(moment, Placed) else None
        else:
            entry = read_deed(self.scenario, act.deed, act.place, act.time_us, act.label)
            time_us = act.time_us
        if time_us is not None and act.place.kind == "turn":
            put_clock(world.kernel, time_us)
        self._acting = True
        try:
            if isinstance(entry, AnswerEntry):
                self._answer = answer_fault(entry.answer)
                return
            if isinstance(entry, RunEntry):
                self.running[entry.label] = Running(command=entry.command, user=entry.user)
            world.timeline.happen(entry)
        finally:
            self._acting = False

    def _do_ahead(self) -> None:
        """Do what is due at the place at hand."""
        for act in self._ahead.pop(self.place, ()):
            self._do(act)
            if not act.given:
                self.desk.done += 1

    def _look_whether_there(self) -> None:
        """Stop where going back was to lead."""
        target = self.desk.target
        if target is None or self.desk.done < target.acts or self.world.trace.seq < target.seq:
            return
        self.desk.target = None
        self._arm()
        self.stop("")

    def put_clock(self, time_us: int) -> None:
        """Let time pass up to a moment before which nothing is due."""
        put_clock(self.world.kernel, time_us)

    # Breaks.

    def arm(self) -> None:
        """Look out for the break points as they are now."""
        self._arm()

    def _arm(self) -> None:
        self._armed = (
            []
            if self.desk.target is not None
            else [Armed(each, self.pattern(each.text)) for each in self.desk.breaks]
        )

    def pattern(self, text: str) -> Pattern:
        """Read a pattern of events as a scenario's are.

        Raises:
            CommandError: It cannot be read, or could never match.
        """
        return read_typed_pattern(self.scenario, text)

    def _hit(self, armed: Armed) -> str:
        each = armed.each
        each.times += 1
        if each.once:
            self.desk.breaks.remove(each)
            self._arm()
        return f"{'watch' if each.watched else 'break'} {each.number}: {each.told}"

    # Stops.

    def stop(self, reason: str) -> None:
        """Say why and where the run stands still, and do what is typed until it is to go on."""
        with self._held():
            self.goal, self.above = None, 0
            self._greet()
            self._tell_stop(reason)
            if self._foreground in self.running:
                self.say(f"(`{self.running[self._foreground].command}` goes on beside)")
            self._foreground = ""
            while self._waits():
                try:
                    line = self.front.read(self.prompt())
                except BrokenPipeError:
                    line = None
                if line is None:
                    self.leave()
                else:
                    notes = take_notes(self.world)
                    self.obey(line)
                    if not self._waits() or self.world.trace.seq != notes.seq:
                        self.before = notes
            # Ctrl-C is for what goes on, and not for what is typed.
            self.interrupted = False
        if self._is_over():
            self._snapshots.leave(self.status)

    def _greet(self) -> None:
        """Say, once and to a person, what cluster this is and what there is to type."""
        if self.front.greets and not self.desk.settings.get("greeted"):
            self.desk.settings["greeted"] = True
            for line in greeting(self.scenario, self.desk.user):
                self.say(line)

    def _waits(self) -> bool:
        """Return whether another line is to be read."""
        return self.goal is None and not self._leaving

    def _is_over(self) -> bool:
        """Return whether the person has left."""
        return self._leaving and not self._again

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Keep the watchdog from what happens while the person thinks."""
        watchdog = self.world.watchdog
        watchdog.pause()
        try:
            yield
        finally:
            watchdog.go_on()

    def _tell_stop(self, reason: str) -> None:
        if reason:
            self.say(reason)
        if self.event is not None:
            self.show_event(self.event)
        elif self.call is not None:
            for line in call_head(self.call, self.world):
                self.say(line)

    def obey(self, line: str) -> None:
        """Do what a line says; whatever goes wrong is told, and ends nothing."""
        try:
            do = self._find(line)
            if do is not None:
                do(self)
        except CommandError as error:
            self.say(textwrap.fill(f"error: {error}", WIDTH, break_on_hyphens=False))
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:  # noqa: BLE001 - a session outlives what is wrong with it
            self.say(f"internal error: {type(error).__name__}: {error}")

    def interrupt(self) -> None:
        """Stop at the next opportunity; for Ctrl-C while the run goes on."""
        self.interrupted = True
        self.world.watchdog.interrupt()

    # What is shown.

    def say(self, text: str, colour: str = "") -> None:
        """Print a line, or several; nothing on the way back, and nothing once the person left."""
        if self.desk.target is None and not self._leaving:
            try:
                self.front.write(text if text.endswith("\n") else text + "\n", colour)
            except BrokenPipeError:
                # There is no reader any more. What the simulation does now must not see that error.
                self._leaving = True

    def show_event(self, event: Event) -> None:
        """Print an event, once."""
        if event.seq != self._shown:
            self._shown = event.seq
            for line in event_lines(event, self.world):
                self.say(line, COLOURS.get(event.kind, ""))

    def prompt(self) -> str:
        """Return when it is, who goes on next, and who types."""
        kernel = self.world.kernel
        if self.over:
            who = "over"
        elif self.kind == "turn":
            due = next_turns(kernel)
            who = due[0].who if due else "idle"
        else:
            who = "idle" if kernel.current is None else who_is(kernel.current.owner)
        return f"{format_moment(kernel.now_us)} {who} [{self.desk.user}]> "

    def ahead(self) -> str:
        """Return what happens next, in a line."""
        if self.over:
            return self.over
        if self.call is not None:
            return f"{self.call.name} of {who_is(self.call.who)} runs next"
        due = next_turns(self.world.kernel)
        if not due:
            return "no turn is due"
        what = f"{format_moment(due[0].due_us)} {due[0].who} {due[0].what}"
        return what if self.kind == "turn" else f"the rest of this turn, then {what}"

    # Commands of Slurm's that were typed.

    def follow(self, label: str) -> None:
        """Print what a command prints as it comes, until the next stop."""
        self._foreground = label

    def wrote(self, entry: RunEntry, _: str, text: str) -> None:
        """Hear what a command printed."""
        running = self._running(entry)
        running.printed.append(text)
        if entry.label == self._foreground:
            running.seen = len(running.printed)
            self.say(text)

    def ended(self, entry: RunEntry, status: int) -> None:
        """Hear that a command has ended; one that was not waited for is told with its output."""
        running = self._running(entry)
        del self.running[entry.label]
        if entry.label == self._foreground:
            if status:
                self.say(f"(exit {status})")
            return
        self.say(f"{running.user}$ {running.command}")
        unseen = running.printed[running.seen :]
        if unseen:
            self.say("".join(unseen))
        if status:
            self.say(f"(exit {status})")

    def _running(self, entry: RunEntry) -> Running:
        return self.running.setdefault(entry.label, Running(command=entry.command, user=entry.user))
