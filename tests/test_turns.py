"""Virtual time and turns: what the kernel promises to everything built on it."""

import pytest
import trio
import trio.lowlevel

from simctl.kernel.schedules import Fifo, Schedule, SeededRandom
from simctl.kernel.threads import Killed, Thread
from simctl.kernel.turns import FiniteDeadlineError, Kernel


class Owner:
    """Stands for a process."""

    cause = 0


def run(kernel: Kernel, *bodies: object) -> None:
    """Run threads to the end."""

    def begin() -> None:
        for number, body in enumerate(bodies):
            kernel.spawn(Owner(), f"thread {number}", body)  # type: ignore[arg-type]

    trio.run(kernel.run, begin, clock=kernel)


def order(schedule: Schedule) -> list[int]:
    """Return the order in which ten threads due at one moment run."""
    kernel = Kernel(schedule=schedule)
    seen: list[int] = []

    def body(number: int) -> object:
        async def sleeper() -> None:
            await kernel.sleep_us(50)
            seen.append(number)

        return sleeper

    run(kernel, *(body(number) for number in range(10)))
    return seen


def test_turns_due_at_one_moment_are_first_come_first_served() -> None:
    """FIFO: in the order in which they were caused."""
    assert order(Fifo()) == list(range(10))


def test_a_seeded_schedule_repeats_and_seeds_differ() -> None:
    """The seed alone decides, and it decides something."""
    orders = [order(SeededRandom(seed)) for seed in (1, 1, 2, 3)]
    assert orders[0] == orders[1]
    assert len({tuple(each) for each in orders}) == 3
    assert all(sorted(each) == list(range(10)) for each in orders)


def test_time_moves_from_turn_to_turn_only() -> None:
    """A year passes in no time; nothing happens between two turns."""
    kernel = Kernel()
    seen: list[int] = []

    async def sleeper() -> None:
        for length in (5, 0, 31_536_000_000_000):
            await kernel.sleep_us(length)
            seen.append(kernel.now_us)

    run(kernel, sleeper)
    assert seen == [5, 5, 31_536_000_000_005]


def test_the_least_due_time_goes_first() -> None:
    """Whatever the order of arming."""
    kernel = Kernel()
    seen: list[int] = []

    def body(length: int) -> object:
        async def sleeper() -> None:
            await kernel.sleep_us(length)
            seen.append(length)

        return sleeper

    run(kernel, *(body(length) for length in (30, 10, 20)))
    assert seen == [10, 20, 30]


def test_a_wait_that_ends_early_leaves_nothing_alive() -> None:
    """Woken before its time-out, a thread's time-out is dead: it keeps no run going."""
    kernel = Kernel()
    threads: list[Thread] = []
    got: list[object] = []

    async def waiter() -> None:
        assert kernel.current is not None
        threads.append(kernel.current)
        kernel.arm(1_000_000)
        got.append(await kernel.park("the other"))

    async def waker() -> None:
        await kernel.sleep_us(10)
        kernel.wake(threads[0], "here")

    run(kernel, waiter, waker)
    assert got == ["here"]
    assert kernel.now_us == 10
    assert kernel.foreground == 0


def test_a_time_out_ends_a_wait_with_none() -> None:
    """And a wake that comes later finds another wait and is dead."""
    kernel = Kernel()
    got: list[object] = []

    async def waiter() -> None:
        kernel.arm(5)
        got.append(await kernel.park("nobody"))
        await kernel.sleep_us(100)
        got.append(kernel.now_us)

    run(kernel, waiter)
    assert got == [None, 105]


def test_a_timer_fires_once_or_not_at_all() -> None:
    """Called off it does nothing and keeps nothing alive, called off twice as well."""
    kernel = Kernel()
    seen: list[str] = []

    def begin() -> None:
        kernel.call_at(10, seen.append, "kept")
        off = kernel.call_at(5_000, seen.append, "called off")
        off.cancel()
        off.cancel()

    trio.run(kernel.run, begin, clock=kernel)
    assert seen == ["kept"]
    assert kernel.now_us == 10


def test_background_turns_keep_nothing_alive() -> None:
    """A turn that recurs runs while others are due, and no longer."""
    kernel = Kernel()
    ticks: list[int] = []

    def tick() -> None:
        ticks.append(kernel.now_us)
        kernel.call_in_background(kernel.now_us + 10, tick)

    async def sleeper() -> None:
        await kernel.sleep_us(35)

    def begin() -> None:
        kernel.call_in_background(10, tick)
        kernel.spawn(Owner(), "sleeper", sleeper)

    trio.run(kernel.run, begin, clock=kernel)
    assert ticks == [10, 20, 30]


def test_a_killed_thread_stops_where_it_waits_and_nobody_else_does() -> None:
    """`Killed` is raised once, out of the wait; the other thread goes on."""
    kernel = Kernel()
    threads: list[Thread] = []
    seen: list[str] = []

    async def victim() -> None:
        assert kernel.current is not None
        threads.append(kernel.current)
        try:
            await kernel.sleep_us(1_000)
        except Killed:
            seen.append(f"killed at {kernel.now_us}")
            raise
        seen.append("survived")

    async def killer() -> None:
        await kernel.sleep_us(10)
        kernel.kill(threads[0])
        kernel.kill(threads[0])
        await kernel.sleep_us(10)
        seen.append(f"killer at {kernel.now_us}")

    run(kernel, victim, killer)
    assert seen == ["killed at 10", "killer at 20"]
    assert kernel.now_us == 20


def test_a_thread_killed_before_its_turn_does_nothing_more() -> None:
    """Its wake was due at the same moment and before the kill: it still does nothing."""
    kernel = Kernel()
    threads: list[Thread] = []
    seen: list[str] = []

    async def killer() -> None:
        await kernel.sleep_us(10)
        kernel.kill(threads[0])

    async def victim() -> None:
        assert kernel.current is not None
        threads.append(kernel.current)
        await kernel.sleep_us(10)
        seen.append("survived")

    run(kernel, killer, victim)
    assert seen == []


def test_a_thread_killed_before_its_first_turn_never_starts() -> None:
    """It was spawned, and killed in the same turn."""
    kernel = Kernel()
    seen: list[str] = []

    async def victim() -> None:
        seen.append("started")

    async def spawner() -> None:
        kernel.kill(kernel.spawn(Owner(), "victim", victim))
        await kernel.sleep_us(1)

    run(kernel, spawner)
    assert seen == []


def frozen_and_thawed(at_us: int, again_us: int) -> list[tuple[str, int]]:
    """Freeze a thread that sleeps 100 us, and thaw it; return what happened when."""
    kernel = Kernel()
    seen: list[tuple[str, int]] = []
    threads: list[Thread] = []

    async def sleeper() -> None:
        await kernel.sleep_us(100)
        seen.append(("woke", kernel.now_us))

    async def other() -> None:
        await kernel.sleep_us(at_us)
        kernel.freeze(threads[0])
        kernel.freeze(threads[0])
        await kernel.sleep_us(again_us - at_us)
        kernel.thaw(threads[0])
        seen.append(("thawed", kernel.now_us))

    def begin() -> None:
        kernel.spawn(Owner(), "other", other)
        threads.append(kernel.spawn(Owner(), "sleeper", sleeper, due_us=10))

    trio.run(kernel.run, begin, clock=kernel)
    assert kernel.foreground == 0
    return seen


def test_a_frozen_thread_goes_on_once_it_is_thawed() -> None:
    """What would have ended its wait ends it then, or later if it was not due yet."""
    assert frozen_and_thawed(50, 300) == [("thawed", 300), ("woke", 300)]
    assert frozen_and_thawed(50, 80) == [("thawed", 80), ("woke", 110)]


def test_a_thread_that_is_frozen_before_it_starts_starts_when_it_is_thawed() -> None:
    """Its first turn is kept as well."""
    assert frozen_and_thawed(5, 300) == [("thawed", 300), ("woke", 400)]


def test_a_frozen_thread_can_be_killed() -> None:
    """It does nothing more."""
    kernel = Kernel()
    ended: list[str] = []
    threads: list[Thread] = []

    async def sleeper() -> None:
        try:
            await kernel.sleep_us(100)
        except Killed:
            ended.append("killed")
            raise
        ended.append("woke")

    async def other() -> None:
        await kernel.sleep_us(50)
        kernel.freeze(threads[0])
        await kernel.sleep_us(200)
        kernel.kill(threads[0])

    def begin() -> None:
        threads.append(kernel.spawn(Owner(), "sleeper", sleeper))
        kernel.spawn(Owner(), "other", other)

    trio.run(kernel.run, begin, clock=kernel)
    assert ended == ["killed"]
    assert kernel.foreground == 0


def test_a_finite_trio_deadline_is_refused() -> None:
    """It would be in real time: the run ends with an error that says what to use."""
    kernel = Kernel()

    async def sleeper() -> None:
        with trio.move_on_after(5):
            await kernel.sleep_us(10)

    with pytest.raises(ExceptionGroup) as caught:
        run(kernel, sleeper)
    assert caught.group_contains(FiniteDeadlineError, match="sleep_us")


@pytest.mark.parametrize("where", ["thread", "timer"])
def test_an_error_in_the_simulation_ends_the_run(where: str) -> None:
    """A bug of ours is raised out of the run, from a thread and from a timer's function alike."""
    kernel = Kernel()

    def fail(_: object) -> None:
        raise ZeroDivisionError

    async def thread() -> None:
        if where == "timer":
            kernel.call_at(5, fail, None)
        else:
            fail(None)
        await kernel.sleep_us(100)

    with pytest.raises(ExceptionGroup) as caught:
        run(kernel, thread)
    assert caught.group_contains(ZeroDivisionError)


def test_a_run_stops_at_its_limit() -> None:
    """What is due later does not happen; the clock shows the limit."""
    kernel = Kernel(until_us=25)
    seen: list[int] = []

    async def sleeper() -> None:
        while True:
            await kernel.sleep_us(10)
            seen.append(kernel.now_us)

    run(kernel, sleeper)
    assert seen == [10, 20]
    assert kernel.now_us == 25
    assert kernel.stopped_at_limit


def test_idle_work_goes_on_until_there_is_none() -> None:
    """When nothing is due the world is asked, and may cause more."""
    kernel = Kernel()
    left = [3, 2, 1]

    def on_idle() -> bool:
        if not left:
            return False
        kernel.call_at(kernel.now_us + left.pop(), lambda _: None, None)
        return True

    kernel.on_idle = on_idle
    trio.run(kernel.run, lambda: None, clock=kernel)
    assert kernel.now_us == 6


def test_waiting_for_the_outside_holds_virtual_time() -> None:
    """A real answer arrives at the moment at which it was asked for, however long it took."""
    kernel = Kernel()
    seen: list[tuple[str, int]] = []

    async def asker() -> None:
        await kernel.sleep_us(10)
        async with kernel.outside():
            await trio.to_thread.run_sync(lambda: None)
        seen.append(("answer", kernel.now_us))
        await kernel.sleep_us(5)
        seen.append(("asker", kernel.now_us))

    async def other() -> None:
        await kernel.sleep_us(11)
        seen.append(("other", kernel.now_us))

    run(kernel, asker, other)
    assert seen == [("answer", 10), ("other", 11), ("asker", 15)]


def test_trio_tasks_are_used_again_without_a_trace_of_the_last_thread() -> None:
    """A thousand threads one after another: each starts fresh, in few trio tasks."""
    kernel = Kernel()
    tasks: set[int] = set()
    owners: list[Owner] = []

    async def leaf() -> None:
        assert kernel.current is not None
        assert kernel.current.owner is owners[-1]
        assert not kernel.current.killed
        tasks.add(id(kernel.current.task))

    async def spawner() -> None:
        for _ in range(1000):
            owners.append(Owner())
            kernel.spawn(owners[-1], "leaf", leaf)
            await kernel.sleep_us(1)

    run(kernel, spawner)
    assert len(tasks) == 1


class Rounds(trio.abc.Instrument):
    """Counts the rounds of trio's loop."""

    count = 0

    def before_io_wait(self, timeout: float) -> None:
        """Count one."""
        self.count += 1


def test_turns_that_ask_trio_for_nothing_take_no_round_of_its_loop_each() -> None:
    """But one in so many does, so that Ctrl-C is heard; every one does where tasks take steps."""
    for in_tasks, least, most in ((False, 15, 40), (True, 1000, 1040)):
        kernel = Kernel()
        kernel.in_tasks = in_tasks
        rounds = Rounds()

        async def sleeper(kernel: Kernel = kernel) -> None:
            for _ in range(1000):
                await kernel.sleep_us(1)

        def begin(kernel: Kernel = kernel, sleeper: object = sleeper) -> None:
            kernel.spawn(Owner(), "sleeper", sleeper)  # type: ignore[arg-type]

        trio.run(kernel.run, begin, clock=kernel, instruments=[rounds])
        assert least <= rounds.count <= most


def test_a_thread_that_asks_trio_for_something_goes_on_in_its_task() -> None:
    """From then on, over its waits as well; another thread's turn comes when it is due."""
    kernel = Kernel()
    seen: list[tuple[str, bool]] = []

    async def asker() -> None:
        assert kernel.current is not None
        task = kernel.current.task
        await kernel.sleep_us(10)
        await kernel.enter_task()
        seen.append(("entered", trio.lowlevel.current_task() is task))
        await trio.lowlevel.checkpoint()
        await kernel.enter_task()
        seen.append(("asked", trio.lowlevel.current_task() is task))
        await kernel.sleep_us(10)
        seen.append(("woke", trio.lowlevel.current_task() is task))

    async def other() -> None:
        await kernel.sleep_us(10)
        seen.append(("other", kernel.now_us == 10))

    run(kernel, asker, other)
    assert seen == [("entered", True), ("asked", True), ("other", True), ("woke", True)]


def test_a_thread_carries_the_cause_of_its_process_over_a_wait() -> None:
    """Two threads of one process do not take each other's causes."""
    kernel = Kernel()
    owner = Owner()
    seen: list[int] = []

    def body(cause: int, length: int) -> object:
        async def thread() -> None:
            owner.cause = cause
            await kernel.sleep_us(length)
            seen.append(owner.cause)

        return thread

    def begin() -> None:
        kernel.spawn(owner, "a", body(7, 10))  # type: ignore[arg-type]
        kernel.spawn(owner, "b", body(9, 20))  # type: ignore[arg-type]

    trio.run(kernel.run, begin, clock=kernel)
    assert seen == [7, 9]


class OneAtATime(trio.abc.Instrument):
    """Counts the tasks that trio runs between two questions to the clock."""

    def __init__(self) -> None:
        self.steps = 0
        self.most = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count a step of a task that is not trio's own."""
        if "simctl" in str(task.name):
            self.steps += 1


def test_at_most_one_task_is_runnable_a_turn() -> None:
    """Trio never has two of our tasks to choose between, even when a hundred are due at once."""
    kernel = Kernel()
    watch = OneAtATime()
    ask = kernel.deadline_to_sleep_time

    def asked(deadline: float) -> float:
        if kernel.foreground:  # at the end trio lets all idle tasks go at once
            watch.most = max(watch.most, watch.steps)
        watch.steps = 0
        return ask(deadline)

    kernel.deadline_to_sleep_time = asked  # type: ignore[method-assign]

    async def sleeper() -> None:
        for _ in range(3):
            await kernel.sleep_us(10)

    def begin() -> None:
        for _ in range(100):
            kernel.spawn(Owner(), "sleeper", sleeper)

    trio.run(kernel.run, begin, clock=kernel, instruments=[watch])
    assert watch.most == 1


def test_what_was_due_in_the_past_is_due_now() -> None:
    """A moment that a slow call has overtaken never takes time back."""
    kernel = Kernel()
    seen: list[tuple[str, int]] = []

    async def late() -> None:
        await kernel.sleep_us(100)
        kernel.call_at(40, lambda name: seen.append((name, kernel.now_us)), "call")
        kernel.arm(30)
        await kernel.park("what has passed")
        seen.append(("wait", kernel.now_us))

    run(kernel, late)
    assert seen == [("call", 100), ("wait", 100)]
