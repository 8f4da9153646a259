"""Print what a turn, a job, a step daemon, a node and a start-up cost: ``make bench``.

T is the cost of a bare turn of the kernel on this machine at this time; costs are given in turns,
in T and in microseconds, so that figures of different machines can be held side by side.
"""

import argparse
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import trio
import trio.testing

from benchmarks import back
from benchmarks.counting import calls_of_a_job
from benchmarks.make_log import make_log
from benchmarks.replaying import jobs_of, options
from simctl.ctld.scheduling import backfill, schedule
from simctl.kernel.turns import Kernel
from simctl.replay import scenario, submit_all
from simctl.scenario.swf import SwfJob, SwfLog, read_swf
from simctl.testing.explore.plan import Plan
from simctl.testing.explore.trial import Terms
from simctl.testing.explore.workers import Runner
from simctl.world import RunResult, World

TURNS = 100_000
ROUNDS = 3


class _Owner:
    cause = 0


def bare_turn_us() -> float:
    """Return the cost of a turn that only wakes a thread that sleeps again."""
    kernel = Kernel()
    threads = 100

    def begin() -> None:
        for _ in range(threads):
            kernel.spawn(_Owner(), "sleeper", sleep)

    async def sleep() -> None:
        for _ in range(TURNS // threads):
            await kernel.sleep_us(10)

    started = time.perf_counter()
    trio.run(kernel.run, begin, clock=kernel)
    return (time.perf_counter() - started) / TURNS * 1e6


def mock_clock_sleep_us() -> float:
    """Return the cost of `trio.sleep` under trio's own MockClock, which jumps."""
    sleeps = TURNS // 10

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(sleeper)

    async def sleeper() -> None:
        for number in range(sleeps // 100):
            await trio.sleep(10 + number % 7)

    clock = trio.testing.MockClock(autojump_threshold=0)
    started = time.perf_counter()
    trio.run(main, clock=clock)
    return (time.perf_counter() - started) / sleeps * 1e6


def replay(
    jobs: list[SwfJob], nodes: int, *, trace: Callable[[World], None] | None = None
) -> tuple[RunResult, float]:
    """Replay jobs; return the result and the seconds it took, building included."""
    log = SwfLog(path="bench", header={}, jobs=tuple(jobs), malformed=(), partial_lines=())
    gc.collect()
    started = time.perf_counter()
    world = World(scenario(log, jobs, options(nodes)), most_turns=0)
    if trace is not None:
        trace(world)
    submit_all(world, jobs, 1)
    result = world.run()
    wall_s = time.perf_counter() - started
    assert all(row.state == "COMPLETED" for row in result.rows)
    assert len(result.rows) == len(jobs)
    return result, wall_s


def per_job(width: int, count: int, nodes: int, rounds: int = ROUNDS) -> tuple[float, float]:
    """Return turns and microseconds a job of a width costs, start-up of the cluster left out."""
    few, many = jobs_of(1, width), jobs_of(count + 1, width)
    walls, turns = [], 0.0
    for _ in range(rounds):
        short, short_s = replay(few, nodes)
        long, long_s = replay(many, nodes)
        walls.append((long_s - short_s) / count * 1e6)
        turns = (long.counts["turns"] - short.counts["turns"]) / count
    return turns, median(walls)


def read_generated(jobs: int, nodes: int) -> list[SwfJob]:
    """Return a generated log of load 0.7."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.swf")
        path.write_text("\n".join(make_log(jobs, nodes=nodes, load=0.7, seed=1)) + "\n")
        return list(read_swf(path).replay_order())


def in_memory(world: World) -> None:
    """Record the trace in memory."""
    world.trace.add_sink(world.events.append)


def streamed(world: World) -> None:
    """Write the trace to nowhere, encoded."""
    from simctl.kernel.trace import FileSink  # noqa: PLC0415 - beside its only use

    stream = Path(os.devnull).open("wb")  # noqa: SIM115 - closed with the process
    world.trace.add_sink(FileSink(stream, world.header()))


def idle_node_bytes(nodes: int) -> float:
    """Return what an idle node daemon holds, from the size of a process with many."""
    code = (
        "import resource, sys\n"
        "from benchmarks.run import options\n"
        "from simctl.replay import scenario\n"
        "from simctl.scenario.swf import SwfLog\n"
        "from simctl.world import World\n"
        "log = SwfLog(path='b', header={}, jobs=(), malformed=(), partial_lines=())\n"
        "World(scenario(log, [], options(int(sys.argv[1]))), until_us=10_000_000).run()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    sizes = [
        int(
            subprocess.run(
                [sys.executable, "-c", code, str(count)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for count in (1, nodes)
    ]
    return (sizes[1] - sizes[0]) * 1024 / nodes


def one_job_among(nodes: int) -> tuple[float, float]:
    """Return the seconds and MB that a cluster takes in which one job runs on one node."""
    code = (
        "import resource, sys\n"
        "from benchmarks.run import jobs_of, replay\n"
        "wall_s = replay(jobs_of(1, 1), int(sys.argv[1]))[1]\n"
        "print(wall_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    command = [sys.executable, "-c", code, str(nodes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    wall_s, peak_mb = map(float, done.stdout.split())
    return wall_s, peak_mb


def start_up_ms(*words: str) -> float:
    """Return how long a whole `simctl` takes, median of five."""
    walls = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "simctl", *words], check=True, stdout=subprocess.DEVNULL
        )
        walls.append(time.perf_counter() - started)
    return median(walls) * 1e3


def waiting_world(at: int, scheduler: str = "builtin") -> World:
    """Return a cluster of two nodes where *at* jobs of a node wait behind one that needs both.

    One node is taken for long, the other is idle.
    """
    blocker = jobs_of(1, 1)[0]
    fields = {name: getattr(blocker, name) for name in _FIELDS}
    first = SwfJob(**fields | {"run_s": 1e7, "requested_s": 1e7})
    jobs = [first]
    jobs.extend(
        SwfJob(
            **fields
            | {
                "number": number + 2,
                "line": number + 2,
                "submit_s": 401.0 + number * 0.001,
                "processors": 1 if number else 2,
                "requested_s": 1e7,
                "run_s": 1.0,
            }
        )
        for number in range(at)
    )
    log = SwfLog(path="bench", header={}, jobs=tuple(jobs), malformed=(), partial_lines=())
    given = options(2, scheduler=scheduler)
    world = World(scenario(log, jobs, given), until_us=(at + 100_000) * 1000)
    submit_all(world, jobs, 1)
    return world


def submit_cost_us(at: int) -> float:
    """Return what one more submission costs with *at* jobs waiting already."""
    world = waiting_world(at)
    marks: list[float] = []
    run_command = world.shell.run

    def timed(entry: object) -> None:
        marks.append(time.perf_counter())
        run_command(entry)  # type: ignore[arg-type]

    world.shell.run = timed  # type: ignore[method-assign]
    world.run()
    span = min(1000, at // 2)
    return (marks[-1] - marks[-1 - span]) / span * 1e6


def pass_cost_us(at: int) -> tuple[float, float]:
    """Return what a main pass and a backfill pass cost with *at* jobs waiting, of which none can.

    Neither is traced; the median of the last ten of each.
    """
    walls: dict[str, list[float]] = {"run_pass": [], "run_backfill": []}
    modules = {"run_pass": schedule, "run_backfill": backfill}
    originals = {name: getattr(module, name) for name, module in modules.items()}

    def timed(name: str) -> Callable[[Any], Any]:
        async def run(ctld: Any, **more: Any) -> None:
            started = time.perf_counter()
            await originals[name](ctld, **more)
            walls[name].append(time.perf_counter() - started)

        return run

    for name, module in modules.items():
        setattr(module, name, timed(name))
    try:
        waiting_world(at, "backfill").run()
    finally:
        for name, module in modules.items():
            setattr(module, name, originals[name])
    main, fill = (median(walls[name][-10:]) * 1e6 for name in modules)
    return main, fill


_FIELDS = (
    *("number", "submit_s", "run_s", "processors", "requested_s", "user_id", "group_id"),
    *("queue", "partition", "status", "line"),
)


def schedules_per_s(name: str, count: int = 150) -> float:
    """Return how many schedules of a shipped scenario one process of `explore` runs a second."""
    path = Path(__file__).parent.parent / "scenarios" / f"{name}.yaml"
    plan = Plan(
        path=str(path),
        texts=(path.read_text(),),
        first_seed=0,
        seeds=count,
        jitter_us=4_000,
        length=100,
        terms=Terms(model="guide"),
    )
    runner = Runner(plan)
    started = time.perf_counter()
    runner.run_chunk(0, count - 1, stop=False, done=lambda: None)
    return count / (time.perf_counter() - started)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--swf", help="a log to replay as well")
    parser.add_argument("--nodes", type=int, default=128)
    parser.add_argument("--quick", action="store_true", help="leave the large ones out")
    given = parser.parse_args()

    turn = median(bare_turn_us() for _ in range(ROUNDS))
    print(f"bare turn                        T = {turn:.2f} us")
    mock = median(mock_clock_sleep_us() for _ in range(ROUNDS))
    print(f"kernel sleep / MockClock sleep   {turn:.2f} / {mock:.2f} us = {turn / mock:.2f}")
    turns, micros = per_job(1, 200, 64)
    print(
        f"one-node batch job, one step     {turns:.1f} turns, {micros / turn:.0f} T, "
        f"{micros:.0f} us"
    )
    wide_turns, wide = per_job(33, 60, 64)
    turns, micros = (wide_turns - turns) / 32, (wide - micros) / 32
    print(
        f"one more step daemon             {turns:.2f} turns, {micros / turn:.1f} T, "
        f"{micros:.1f} us ({micros / turn / turns:.1f} times its bare turns)"
    )
    calls = calls_of_a_job(own=False)
    print(f"Python calls, a job / a node of a step   {calls.fixed:.0f} / {calls.node:.0f}")
    count = 2_000 if given.quick else 20_000
    print(f"idle node daemon                 {idle_node_bytes(count):.0f} bytes")
    for nodes in (256, 1_024, 10_000) if given.quick else (256, 1_024, 10_000, 100_000):
        turns, micros = per_job(8, 100, nodes, 1)
        wall_s, peak_mb = one_job_among(nodes)
        print(
            f"{nodes:7,} nodes: a job of 8         {turns:.1f} turns, {micros:.0f} us; "
            f"one job alone: {wall_s:.1f} s, {peak_mb:.0f} MB"
        )
    print(f"simctl --version                 {start_up_ms('--version'):.0f} ms")
    print(f"simctl run two_nodes             {start_up_ms('run', 'two_nodes', '--quiet'):.0f} ms")
    for name in ("two_nodes", "faulty/window_race"):
        print(f"explore {name:25s}{schedules_per_s(name):.0f} schedules/s a process")
    first = submit_cost_us(1_000)
    last = submit_cost_us(5_000 if given.quick else 100_000)
    print(f"submission, 1,000 / 100,000 waiting  {first:.0f} / {last:.0f} us = {last / first:.2f}")
    for many in (1_000, 5_000 if given.quick else 100_000):
        main_us, fill_us = pass_cost_us(many)
        print(f"pass, {many:,} waiting            {main_us:.0f} us; backfill {fill_us:.0f} us")
    size = 1_000 if given.quick else 10_000
    costs = {}
    for nodes in (256, 10_000):
        jobs = read_generated(size, nodes)
        width = sum(job.processors for job in jobs) / len(jobs)
        for name, trace in (("off", None), ("in memory", in_memory), ("streamed", streamed)):
            result, wall_s = replay(jobs, nodes, trace=trace)
            costs[nodes, name] = wall_s
            print(
                f"{size} jobs of mean width {width:.1f} on {nodes} nodes, trace {name}: "
                f"{wall_s:.1f} s, {size / wall_s:.0f} jobs/s, {result.counts['events']} events"
            )
    if given.swf:
        replay_log(Path(given.swf), given.nodes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    back.main()
    print(f"peak memory of this process      {peak:.0f} MB")


def replay_log(path: Path, nodes: int) -> None:
    """Replay a log from a file in a process of its own."""
    words = ["run", "--swf", str(path), "--nodes", str(nodes), "--skip-bad"]
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "simctl", *words], check=True)
    wall_s = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"replay of {path.name}: {wall_s:.1f} s, at most {peak:.0f} MB")


if __name__ == "__main__":
    main()
