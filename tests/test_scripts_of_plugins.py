"""Scripts that burst buffer plugins run: processes, arguments, output, time limits, ends."""

import pytest
from msgspec import UNSET

from simctl.kernel.procs import SIGKILL
from simctl.kernel.turns import Kernel
from tests.scripts import Caller, ran_scripts

PROGRAMS = """\
programs:
  /opt/says: {runs: 2s, output: "done\\n"}
  /opt/fails: {runs: 1s, exit: 3}
  /opt/hangs: {runs: forever}
files:
  /opt/shows.sh: |
    #!/bin/sh
    echo "$0 got $# arguments, the second is $2"
    echo wrong >&2
    exit 4
"""


def test_a_script_gives_its_status_and_output_and_takes_its_time() -> None:
    """The event carries its path, its arguments and its job, and the process is SlurmUser's."""

    async def body(caller: Caller) -> None:
        result = await caller.run("/opt/says", "--job", "x", name="dw_setup", job=3)
        assert result.ok
        assert result.output == "done\n"
        assert caller.now_s == 2

    caller, ran = ran_scripts(PROGRAMS, body)
    assert len(caller.results) == 1
    event = ran.one("dw_setup")
    assert event.args == {"path": "/opt/says", "argv": ["--job", "x"]}
    assert (event.job, event.uid, event.rc) == (3, 64030, 0)
    assert event.t0_us is not UNSET


def test_a_script_in_a_file_has_its_arguments_and_both_outputs() -> None:
    """What it writes is kept apart, and its exit code comes through."""

    async def body(caller: Caller) -> None:
        result = await caller.run("/opt/shows.sh", "one", "two words")
        assert result.exit_code == 4
        assert result.output == "/opt/shows.sh got 2 arguments, the second is two words\n"
        assert result.error == "wrong\n"

    caller, _ = ran_scripts(PROGRAMS, body)
    assert len(caller.results) == 1


def test_a_script_over_its_time_is_killed() -> None:
    """Tenths of a second count too, and the result tells why it ended."""

    async def body(caller: Caller) -> None:
        result = await caller.run("/opt/hangs", timeout=2.5)
        assert result.timed_out
        assert result.signal == SIGKILL
        assert caller.now_s == 2.5

    caller, _ = ran_scripts(PROGRAMS, body)
    assert len(caller.results) == 1


def test_a_path_that_nothing_answers_ends_with_127() -> None:
    """As a shell tells it."""

    async def body(caller: Caller) -> None:
        assert (await caller.run("/opt/none")).exit_code == 127

    caller, _ = ran_scripts(PROGRAMS, body)
    assert len(caller.results) == 1


def test_a_fault_makes_the_script_of_one_job_fail() -> None:
    """It exits 1 at once, and those of other jobs run."""
    text = PROGRAMS + 'timeline: [{at: 0s, fault: {fail: "dw_data_in job=3"}}]\n'

    async def body(caller: Caller) -> None:
        assert (await caller.run("/opt/says", name="dw_data_in", job=2)).ok
        assert (await caller.run("/opt/says", name="dw_data_in", job=3)).exit_code == 1
        assert (await caller.run("/opt/says", name="dw_data_in", job=3)).ok

    caller, _ = ran_scripts(text, body)
    assert len(caller.results) == 3


@pytest.mark.parametrize(
    "path", ["/opt/says", "/opt/shows.sh", "/opt/cray/dw_wlm/default/bin/dw_wlm_cli"]
)
def test_a_script_can_be_made_to_hang_before_it_does_anything(path: str) -> None:
    """For a while, or until its caller's time limit kills it."""
    text = PROGRAMS + (
        "timeline:\n"
        '  - {at: 0s, fault: {hang: "dw_pools job=3", for: 10s}}\n'
        '  - {at: 0s, fault: {hang: "dw_pools job=4"}}\n'
    )

    async def body(caller: Caller) -> None:
        argv = ("--function", "pools")
        plain = await caller.run(path, *argv, name="dw_pools", job=2)
        took_s = caller.now_s
        late = await caller.run(path, *argv, name="dw_pools", job=3)
        assert caller.now_s == took_s + 10 + took_s
        assert late == plain
        before_s = caller.now_s
        hung = await caller.run(path, *argv, name="dw_pools", job=4, timeout=7)
        assert (hung.timed_out, hung.signal, hung.output) == (True, SIGKILL, "")
        assert caller.now_s == before_s + 7

    caller, ran = ran_scripts(text, body)
    assert len(caller.results) == 3
    assert all(
        process.daemon != "script" for process in ran.world.ctld.process.host.processes.values()
    )


def test_a_script_dies_with_the_thread_that_waits_for_it() -> None:
    """A thread that is cancelled takes its script along."""

    async def victim(caller: Caller) -> None:
        await caller.run("/opt/hangs", name="dw_data_in")

    async def killer(caller: Caller) -> None:
        thread = caller.spawn(lambda: victim(caller), lingers=True)
        await caller.sleep(1)
        caller.world.kernel.kill(thread)

    caller, ran = ran_scripts(PROGRAMS, killer, lingers=False)
    assert not caller.results
    assert (ran.one("dw_data_in").rc, ran.one("dw_data_in").time_us) == (SIGKILL, 1_000_000)


def test_a_started_script_outlives_the_thread_that_started_it() -> None:
    """Nobody waits, and it keeps the run alive by itself."""

    async def body(caller: Caller) -> None:
        caller.start("/opt/says", "start_stage_in", "7", name="start_stage_in", job=7)

    _, ran = ran_scripts(PROGRAMS, body)
    event = ran.one("start_stage_in", job=7)
    assert (event.rc, event.time_us) == (0, 2_000_000)


@pytest.mark.parametrize("schedule", ["fifo", "random"])
def test_a_plugins_thread_counts_while_it_waits_for_a_script(schedule: str) -> None:
    """It lingers before and after: the script is waited for, the sleep behind it is not."""
    seen: list[float] = []

    async def body(caller: Caller) -> None:
        await caller.run("/opt/says")
        await caller.run("/opt/says")
        seen.append(caller.now_s)
        await caller.sleep(100)
        seen.append(caller.now_s)

    _, ran = ran_scripts(PROGRAMS, body, schedule=schedule, seed=5)
    assert seen == [4.0]
    assert ran.result.end_time_us < 100_000_000
    assert (ran.world.kernel.foreground, ran.world.kernel.lingering) == (0, 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_wake_that_came_too_late_is_counted_as_it_was(seed: int) -> None:
    """A thread woken and timed out at one moment waits for a script with one dead turn due."""

    async def body(caller: Caller) -> None:
        kernel: Kernel = caller.world.kernel
        thread = kernel.current
        assert thread is not None

        async def wake() -> None:
            await caller.sleep(1)
            kernel.wake(thread)
            kernel.wake(thread)
            await caller.sleep(1)

        caller.spawn(wake)
        kernel.arm(1_000_000)
        await kernel.park("a wake")
        await caller.run("/opt/says")

    caller, ran = ran_scripts(PROGRAMS, body, schedule="random", seed=seed)
    assert len(caller.results) == 1
    assert (ran.world.kernel.foreground, ran.world.kernel.lingering) == (0, 0)
