"""Virtual time and the turn queue: the only code that decides what runs next.

The kernel is a trio clock. trio asks a clock how long it may sleep exactly when no task is
runnable, and that question is the one place where the next turn is taken from the queue, virtual
time is moved to it, and the one thing it concerns is set going. So trio never has two simulated
threads to choose between, and its random choice among runnable tasks has nothing to choose.

Each thread has a trio task of its own. A step of a thread that asks trio for nothing is taken in
the turn itself, and one turn after another, while its task sleeps; one that does is the task's.
"""

from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from heapq import heapify, heappop, heappush, nsmallest
from types import coroutine
from typing import Any, Final

import outcome
import trio
from trio.lowlevel import Abort, current_task, reschedule, wait_task_rescheduled

from simctl.kernel.line import Line
from simctl.kernel.schedules import Fifo, Schedule
from simctl.kernel.threads import Action, Body, Killed, Owner, Thread, TornDown, Turn

_NEVER: Final = float("inf")
_FOR_EVER: Final = 1 << 63


class TornDownError(RuntimeError):
    """The run's tasks were cancelled, and not by the kernel."""

    def __init__(self) -> None:
        super().__init__("the tasks of the run were cancelled from inside the simulation")


class FiniteDeadlineError(RuntimeError):
    """Something in the simulation asked trio itself for a deadline, which would be in real time."""

    def __init__(self, deadline: float) -> None:
        super().__init__(
            f"a trio deadline ({deadline}) was set inside the simulation; "
            "use Kernel.sleep_us or Mailbox.receive_until, which run in virtual time"
        )


class Timer:
    """A turn that can be called off; the queue drops it when it comes up."""

    __slots__ = ("_kernel", "live")

    def __init__(self, kernel: "Kernel") -> None:
        self._kernel = kernel
        self.live = True

    def cancel(self) -> None:
        """Call the turn off; harmless after it was taken."""
        if self.live:
            self.live = False
            self._kernel.foreground -= 1


class _Nobody:
    """Owns threads that have ended."""

    cause = 0


_NOBODY: Final = _Nobody()


async def _finished() -> None:
    """Stand in for the body of a thread that has ended, so that what it held can go."""


def _abort(_raise_cancel: Any) -> Abort:
    return Abort.SUCCEEDED


def _first_yield(awaitable: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine of trio's yields first: what trio is asked for."""
    asked = awaitable.send(None)
    awaitable.close()
    return asked


_BLOCK: Final = _first_yield(wait_task_rescheduled(_abort))  # noqa: ASYNC105 - once, by hand
"""Asks trio to run a task no more until it is rescheduled; the same object for every wait."""

_GO_ON: Final = outcome.Value(None)
"""What a task is rescheduled with whose thread has a step to take."""

_ENTER: Final = object()
"""Asks for what follows to be run by the thread's trio task."""

_TURNS_ON_END: Final = 64
"""After how many turns at most trio sees to what comes from outside, such as Ctrl-C."""


class Kernel(trio.abc.Clock):
    """Virtual time, the queue of turns, and the threads that wait in it.

    A turn is due at a moment and runs until its thread blocks; turns due at one moment are ordered
    by the schedule. Background turns recur: they keep nothing alive. `foreground` counts the turns
    that are bound to come, `lingering` those of plugins' own threads, which `on_idle` may wait for,
    `watching` those of the foreground whose commands only look on and end with the run.
    """

    def __init__(
        self,
        *,
        schedule: Schedule | None = None,
        until_us: int | None = None,
        most_turns: int = 0,
    ) -> None:
        self.schedule: Schedule = schedule or Fifo()
        self.now_us: int = 0
        self.turns: int = 0
        self.foreground: int = 0
        self.lingering: int = 0
        self.watching: int = 0
        self.current: Thread | None = None
        self.stopped_at_limit = False
        self.ran_out = False
        """It was ended because it had caused as many turns as it may, and not for being done."""
        self.on_idle: Callable[[], bool] = lambda: False
        self.at_failure: Callable[[BaseException], None] | None = None
        """Told what ends the run before anything is taken down; it need not come back."""
        self.before_turn: Callable[[], bool] | None = None
        """Asked before each turn is taken, dead or not; the run ends where it says no."""
        self._limit_us = _FOR_EVER if until_us is None else until_us
        self.most_turns = most_turns or _FOR_EVER
        self.line: Line | None = None
        """The turns due now, where the schedule chooses among them."""
        self._take: Callable[[list[Turn]], Turn] = heappop
        self._picked = 0
        self._queue: list[Turn] = []
        self._seq = 0
        self.in_tasks = False
        """Whether trio tasks take every step of their threads."""
        self._idle_tasks: list[trio.lowlevel.Task] = []
        self._carried: dict[trio.lowlevel.Task, Thread] = {}
        """Whose thread each task is, that is not idle."""
        self._task_is_due = False
        """Whether a task has a step to take before the next turn is taken."""
        self._holds = 0
        self._ended = False
        self._still = False
        self._main: trio.lowlevel.Task | None = None
        self._nursery: trio.Nursery | None = None
        if self.schedule.chooses:
            self.line = Line(self, self.schedule)
            self._take = self.line.take

    @property
    def numbered(self) -> int:
        """Return how many turns were caused so far: the number of the last one."""
        return self._seq

    # trio's side: a clock that is asked for the time, and for how long nothing will happen.

    def start_clock(self) -> None:
        """Do nothing: virtual time starts with the first turn."""

    def current_time(self) -> float:
        """Return virtual time in seconds, as trio wants it."""
        return self.now_us / 1_000_000

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Take the next turn; trio asks this when no task is runnable, and must not sleep."""
        if self._still:
            # Over, or held: then a moment of real time may pass before trio asks again.
            return 0.0 if self._ended else 0.05
        try:
            if deadline != _NEVER:
                raise FiniteDeadlineError(deadline)  # noqa: TRY301 - handed to main below
            queue = self._queue
            while (self.before_turn is None or self.before_turn()) and (
                self.foreground or self.on_idle()
            ):
                due_us, _, act, first, second = self._take(queue)
                if due_us > self._limit_us:
                    self.stopped_at_limit = True
                    self.now_us = self._limit_us
                    break
                if self._seq > self.most_turns:
                    self.ran_out = True
                    break
                self.now_us = due_us
                self.current = None
                if act(first, second):
                    self.turns += 1
                    if self._task_is_due or not self.turns % _TURNS_ON_END:
                        self._task_is_due = False
                        return 0.0
            self._end()
        except BaseException as error:  # noqa: BLE001 - nothing may raise into trio's loop
            self.fail(error)
        return 0.0

    def _end(self) -> None:
        self._ended = self._still = self._task_is_due = True
        assert self._main is not None
        reschedule(self._main)

    def stop_at(self, time_us: int) -> None:
        """End the run before the first turn that is due later."""
        self._limit_us = min(self._limit_us, time_us)

    def fail(self, error: BaseException) -> None:
        """End the run with *error*, raised out of `run`."""
        if self._ended:
            return
        if self.at_failure is not None:
            self.at_failure(error)
        self._ended = self._still = self._task_is_due = True
        assert self._main is not None
        reschedule(self._main, outcome.Error(error))

    @property
    def next_due_us(self) -> int | None:
        """Return when the next turn is due, dead or not; None where there is none."""
        if self.line is not None and self.line.due:
            return self.line.due[0][0]
        return self._queue[0][0] if self._queue else None

    def queued(self, most: int) -> list[Turn]:
        """Return the next turns, dead or not, as they would be taken first come, first served."""
        due = [] if self.line is None else self.line.due
        found = [*due, *nsmallest(most, self._queue, key=_order)]
        picked = [turn for turn in found if turn[1] == self._picked]
        return [*picked, *(turn for turn in found if turn[1] != self._picked)]

    def pick(self, number: int) -> None:
        """Have the turn of a number go first, whatever the schedule says; it has to be due next."""
        self._picked = number
        self._take = self._take_picked

    def _take_picked(self, queue: list[Turn]) -> Turn:
        line = self.line
        self._take = heappop if line is None else line.take
        number, self._picked = self._picked, 0
        if line is not None:
            return line.take_picked(queue, number)
        place = next(place for place, turn in enumerate(queue) if turn[1] == number)
        turn = queue.pop(place)
        heapify(queue)
        return turn

    # Putting turns into the queue.

    def push(self, due_us: int, act: Action, first: Any, second: Any) -> None:
        """Queue a foreground turn; its number is taken here, by its cause."""
        self._seq = seq = self._seq + 1
        self.foreground += 1
        heappush(self._queue, (due_us, seq, act, first, second))

    def _push_for(self, thread: Thread, due_us: int, act: Action, second: Any) -> None:
        """Queue a turn of a thread, which keeps the run alive unless the thread lingers."""
        self._seq = seq = self._seq + 1
        if thread.lingers:
            self.lingering += 1
        else:
            self.foreground += 1
        heappush(self._queue, (due_us, seq, act, thread, second))

    def _count(self, thread: Thread, change: int) -> None:
        if thread.lingers:
            self.lingering += change
        else:
            self.foreground += change

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Let what the current thread waits for inside keep the run alive, though it lingers.

        It has no timed wait at either end, since it runs; a turn that was to wake it and is dead by
        now knows how it was counted.
        """
        thread = self.current
        assert thread is not None
        lingers, thread.lingers = thread.lingers, False
        try:
            yield
        finally:
            thread.lingers = lingers

    def call_at(self, due_us: int, function: Callable[[Any], None], argument: Any) -> Timer:
        """Call a plain function in a turn of its own; the answer calls it off.

        What is due in the past, which a slow call may have overtaken, is due now.
        """
        timer = Timer(self)
        due_us = max(due_us, self.now_us)
        self._seq = seq = self._seq + 1
        self.foreground += 1
        entry = (self, function, timer)
        heappush(self._queue, (due_us, seq, _fire, argument, entry))
        return timer

    def call_off(self, function: Callable[[Any], None]) -> None:
        """Call off every call of a function that is due."""
        due = [] if self.line is None else self.line.due
        for _, _, act, _, second in (*due, *self._queue):
            if act is _fire and second[1] == function:
                second[2].cancel()

    def call_in_background(self, due_us: int, function: Callable[[], None]) -> None:
        """Call a plain function in a turn that keeps nothing alive."""
        self._seq = seq = self._seq + 1
        heappush(self._queue, (due_us, seq, _background, self, function))

    # Threads.

    def spawn(
        self,
        owner: Owner,
        name: str,
        body: Body,
        *,
        due_us: int = -1,
        lingers: bool = False,
    ) -> Thread:
        """Start a thread of *owner* in a turn of its own, now or at *due_us*."""
        thread = Thread(owner=owner, name=name, body=body, lingers=lingers, of_plugin=lingers)
        thread.in_task = self.in_tasks
        thread.cause = owner.cause
        self._push_for(thread, max(due_us, self.now_us), self._start, None)
        return thread

    def _start(self, thread: Thread, _: None) -> bool:
        self._count(thread, -1)
        if thread.killed:
            return False
        if thread.frozen:
            thread.missed = (None,)
            return False
        thread.owner.cause = thread.cause
        self.current = thread
        thread.steps = thread.body()
        if self._idle_tasks:
            thread.task = task = self._idle_tasks.pop()
            self._carried[task] = thread
            if thread.in_task or self._step(thread):
                self._wake_task(thread)
        else:
            assert self._nursery is not None
            self._nursery.start_soon(self._work, thread)
            self._task_is_due = True
        return True

    def _wake_task(self, thread: Thread) -> None:
        """Have a thread's trio task take the next step."""
        assert thread.task is not None
        self._task_is_due = True
        reschedule(thread.task, _GO_ON)

    def _step(self, thread: Thread) -> Any:
        """Run a thread until it waits for a turn or ends; return what else it asks for, if so."""
        value, thread.value = thread.value, None
        error, thread.error = thread.error, None
        steps = thread.steps
        assert steps is not None
        try:
            asked = steps.send(value) if error is None else steps.throw(error)
        except (StopIteration, Killed):
            self._let_go(thread)
        except Exception as fault:  # noqa: BLE001 - a bug of ours, told by run()
            self.fail(fault)
            self._let_go(thread)
        else:
            if asked is not _BLOCK:
                thread.in_task = True
                thread.asked = asked
                return asked
        finally:
            # What was raised knows this frame: let the frame not know it as well.
            error = None
        return None

    def _let_go(self, thread: Thread) -> None:
        """Let go of all that an ended thread knew, so that nothing waits for the collector."""
        thread.finished = True
        thread.generation += 1
        thread.body = _finished
        thread.steps = thread.never_ran = None
        thread.owner = _NOBODY
        task, thread.task = thread.task, None
        assert task is not None
        del self._carried[task]
        self._idle_tasks.append(task)

    async def _work(self, thread: Thread) -> None:
        """Be the task of one thread after another: one for each costs half as much again."""
        thread.task = task = current_task()
        self._carried[task] = thread
        await self._carry(task)

    @coroutine
    def _carry(self, task: trio.lowlevel.Task) -> Generator[Any, Any, None]:
        """Take the steps that need the task: trio is asked what its thread asks for."""
        woken: Any = _GO_ON
        while True:
            thread = self._carried.get(task)
            if thread is None:
                # An idle task is woken only as the run is torn down.
                try:
                    woken.unwrap()
                finally:
                    del woken
                return
            if woken is not _GO_ON:
                thread.error = woken.error
            woken = None
            asked = thread.asked or _ENTER
            while asked is not None:
                thread.asked = None
                if asked is not _ENTER:
                    thread.value = yield asked
                asked = self._step(thread)
            woken = yield _BLOCK

    @coroutine
    def enter_task(self) -> Generator[Any, Any, None]:
        """Have the current thread go on in its trio task: for code that asks trio for something."""
        if self.current is not None and not self.current.in_task:
            yield _ENTER

    @coroutine
    def park(self, waits_for: str) -> Generator[Any, Any, Any]:
        """Block the current thread until something ends its wait; return what that hands over.

        *waits_for* completes "waits for ..." where a stalled run is told.
        """
        thread = self.current
        assert thread is not None
        thread.cause = thread.owner.cause
        thread.waits_for = waits_for
        thread.parked = True
        return (yield _BLOCK)

    def resume(self, thread: Thread, value: Any = None) -> bool:
        """End a thread's wait inside the present turn; for turns and mailboxes only."""
        if not thread.parked:
            if thread.frozen and thread.missed is None:
                self._miss(thread, value)
            return False
        thread.parked = False
        thread.generation += 1
        if thread.timed:
            thread.timed = False
            if thread.lingers:
                self.lingering -= 1
            else:
                self.foreground -= 1
        thread.owner.cause = thread.cause
        self.current = thread
        # A thread whose kill is due this moment does nothing more, whatever else it waited for.
        if thread.killed:
            thread.error = Killed()
        else:
            thread.value = value
        if thread.in_task or self._step(thread):
            self._wake_task(thread)
        return True

    def _miss(self, thread: Thread, value: Any) -> None:
        """Keep what would have ended a frozen thread's wait."""
        thread.missed = (value,)
        thread.generation += 1
        if thread.timed:
            thread.timed = False
            self._count(thread, -1)

    def freeze(self, thread: Thread) -> None:
        """Let a thread that waits do nothing more until it is thawed, as SIGSTOP does.

        The first thing that would end its wait meanwhile ends it then. It must not be the current
        thread.
        """
        if thread.frozen or thread.finished or thread.killed:
            return
        if self.line is not None:
            self.touch_thread(thread)
        thread.frozen = True
        thread.parked = False

    def thaw(self, thread: Thread) -> None:
        """Let a frozen thread go on; harmless to any other."""
        if not thread.frozen:
            return
        if self.line is not None:
            self.touch_thread(thread)
        thread.frozen = False
        missed, thread.missed = thread.missed, None
        if thread.task is not None:
            thread.parked = True
            if missed is not None:
                self.wake(thread, missed[0])
        elif missed is not None:
            # Its first turn came meanwhile.
            self._push_for(thread, self.now_us, self._start, None)

    def wake(self, thread: Thread, value: Any = None) -> None:
        """End a thread's present wait in a turn of its own, due now."""
        if self.line is not None:
            self.touch_thread(thread)
        waited = (thread.generation, value, thread.lingers)
        self._push_for(thread, self.now_us, self._wake, waited)

    def _wake(self, thread: Thread, waited: tuple[int, Any, bool]) -> bool:
        generation, value, lingered = waited
        # A turn that is dead may come up while the thread counts otherwise than it did.
        if lingered:
            self.lingering -= 1
        else:
            self.foreground -= 1
        return generation == thread.generation and self.resume(thread, value)

    def arm(self, due_us: int) -> None:
        """Let the current thread's next wait end at *due_us* at the latest, with None.

        The turn is dead as soon as the wait ends otherwise, and then keeps nothing alive.
        """
        thread = self.current
        assert thread is not None
        thread.timed = True
        self._push_for(thread, max(due_us, self.now_us), self._expire, thread.generation)

    def _expire(self, thread: Thread, generation: int) -> bool:
        # What ended the wait before has taken this turn off the foreground already.
        return generation == thread.generation and self.resume(thread)

    @coroutine
    def sleep_us(self, length_us: int) -> Generator[Any, Any, None]:
        """Block the current thread for a length of virtual time, at least a turn."""
        thread = self.current
        assert thread is not None
        thread.timed = True
        # As in _push_for: what a simulation does most often is spared the call.
        self._seq = seq = self._seq + 1
        if thread.lingers:
            self.lingering += 1
        else:
            self.foreground += 1
        entry = (
            self.now_us + length_us,
            seq,
            self._expire,
            thread,
            thread.generation,
        )
        heappush(self._queue, entry)
        thread.cause = thread.owner.cause
        thread.waits_for = "time to pass"
        thread.parked = True
        yield _BLOCK

    def touch(self, what: str) -> None:
        """Note, where footprints are kept, that the turn under way changes something."""
        if self.line is not None and self.line.steps is not None:
            self.line.steps.touch(what)

    def look(self, what: str) -> None:
        """Note, where footprints are kept, that the turn under way looks at something."""
        if self.line is not None and self.line.steps is not None:
            self.line.steps.look(what)

    def look_at_number(self) -> None:
        """Note, where footprints are kept, that the number of a process is looked at."""
        if self.line is not None and self.line.steps is not None:
            self.line.steps.look_at_number()

    def touch_thread(self, thread: Thread) -> None:
        """Note that the turn under way changes whatever belongs with a thread."""
        unit = getattr(thread.owner, "unit", "")
        if unit:
            self.touch(unit)

    async def switch(self) -> None:
        """Let others go first who are due now, if the schedule says so; else go on."""
        thread, line = self.current, self.line
        if thread is None or line is None:
            return
        self.wake(thread)
        line.goes_on = self._seq
        await self.park("its next turn")

    def is_dead(self, turn: Turn) -> bool:
        """Return whether a turn that is due would do nothing: what it was for is over."""
        _, _, act, first, second = turn
        if act is _fire:
            return not second[2].live
        function = getattr(act, "__func__", act)
        if function is Kernel._expire:
            return bool(second != first.generation)
        if function is Kernel._wake:
            return bool(second[0] != first.generation)
        if function is Kernel._kill:
            return bool(first.finished)
        return function is Kernel._start and bool(first.killed)

    def kill(self, thread: Thread) -> None:
        """Raise `Killed` in a thread, in a turn of its own; one that never ran never will."""
        if thread.killed or thread.finished:
            return
        if self.line is not None:
            self.touch_thread(thread)
        thread.killed = True
        self.thaw(thread)
        if thread.task is not None:
            self.push(self.now_us, self._kill, thread, None)
        elif thread.never_ran is not None:
            thread.never_ran()

    def _kill(self, thread: Thread, _: None) -> bool:
        self.foreground -= 1
        return self.resume(thread)

    def ends(self, error: BaseException) -> bool:
        """Return whether one of `ENDED` is the kernel's own; a plugin's code may raise one, too."""
        if isinstance(error, Killed):
            return self.current is not None and self.current.killed
        return self._ended

    # The outside, and the run as a whole.

    def outside(self) -> "_Outside":
        """Hold virtual time while the body of an `async with` awaits something real."""
        return _Outside(self)

    def hold(self, change: int) -> None:
        """Count the holds on virtual time up or down."""
        self._holds += change
        self._still = self._ended or self._holds > 0

    async def run(self, begin: Callable[[], None]) -> None:
        """Run the world that *begin* sets going until nothing is left to do.

        Raises:
            BaseException: What a thread, a turn or the person at the keyboard raised.
        """
        if trio.lowlevel.current_clock() is not self:
            raise RuntimeError("run the kernel under its own clock: trio.run(..., clock=kernel)")
        self._main = current_task()
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            begin()
            try:
                await wait_task_rescheduled(_abort)
            except TornDown:
                raise TornDownError from None
            finally:
                self._ended = self._still = True
                nursery.cancel_scope.cancel()


def _order(entry: Turn) -> tuple[int, int]:
    return entry[:2]


def _fire(argument: Any, entry: tuple[Kernel, Callable[[Any], None], Timer]) -> bool:
    kernel, function, timer = entry
    if not timer.live:
        return False
    timer.live = False
    kernel.foreground -= 1
    kernel.turns += 1
    function(argument)
    return False


def _background(kernel: Kernel, function: Callable[[], None]) -> bool:
    kernel.turns += 1
    function()
    return False


class _Outside:
    """Virtual time stands still inside."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._thread: Thread | None = None

    async def __aenter__(self) -> None:
        await self._kernel.enter_task()
        self._thread = self._kernel.current
        self._kernel.hold(1)

    async def __aexit__(self, *exc: object) -> None:
        self._kernel.hold(-1)
        self._kernel.current = self._thread
