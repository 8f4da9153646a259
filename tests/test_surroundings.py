"""What a plugin has around it: time, threads, disks, requests, slurm.conf, a log, a watchdog."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="attr-defined"
# Functions with `self` are source: they are written into a plugin, as an author writes them.

import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import trio
from msgspec import UNSET

from simctl.api.surroundings import WatchdogError
from simctl.kernel.turns import Kernel
from simctl.plugin import Event, JobDesc, SlurmError, conf, disk, log, process, rpc, sleep, start
from simctl.plugins import watchdog
from simctl.plugins.registry import PluginError
from simctl.scenario.load import read_scenario
from simctl.world import World
from tests.cluster import SIMCTL, STEP, TWO_NODES, Ran, run, with_plugin

SECONDS = 0.0
ONE = 'timeline: [{at: 0s, as: alice, run: "srun -n1 sleep 10"}]\n'


def problems(ran: Ran) -> list[tuple[str, str]]:
    """Return what plugins did wrong, as the end of the run tells it."""
    return [(each.function, each.problem) for each in ran.result.complaints]


def logged(ran: Ran) -> list[dict[str, Any]]:
    """Return what plugins have logged."""
    return [event.args for event in ran.all("plugin_log") if event.args is not UNSET]


# Time.


def test_an_async_function_takes_time_and_blocks_its_process(tmp_path: Path) -> None:
    """The call is one line with both its moments; what follows waits for it."""

    async def switch_p_job_init(self, switch_job, uid):
        await sleep(3)

    ran = run(with_plugin(tmp_path, switch_p_job_init) + ONE, folder=tmp_path)
    call = ran.one("switch_p_job_init")
    assert call.t0_us is not UNSET
    assert call.time_us - call.t0_us == 3_000_000
    assert ran.one("switch_p_job_attach").time_us == call.time_us


@pytest.mark.parametrize("seconds", ["-1", "float('inf')", "float('nan')", "10**12"])
def test_a_sleep_that_no_clock_could_reach_is_refused(tmp_path: Path, seconds: str) -> None:
    """It fails the call, and the text says what would do."""

    async def switch_p_job_preinit(self, switch_job):
        await sleep(SECONDS)

    text = with_plugin(tmp_path, switch_p_job_preinit) + ONE
    path = tmp_path / "mine.py"
    path.write_text(path.read_text().replace("SECONDS", seconds))
    ran = run(text, folder=tmp_path)
    ((function, problem),) = problems(ran)
    assert function == "switch_p_job_preinit"
    assert "sleep: expected 0 to" in problem
    assert ran.one("switch_p_job_preinit").rc == -1


def test_a_sleep_that_is_not_awaited_is_told(tmp_path: Path) -> None:
    """The classic slip: the call returns at once, and no time has passed."""

    def switch_p_job_preinit(self, switch_job):
        sleep(5)

    ran = run(with_plugin(tmp_path, switch_p_job_preinit) + ONE, folder=tmp_path)
    assert problems(ran) == [("sleep", "sleep(5) was not awaited: no time passed")]
    assert ran.job()[0] == "COMPLETED"


def test_a_call_that_sleeps_for_ever_is_ended_and_named(tmp_path: Path) -> None:
    """A loop that waits for what never comes must not keep the run from ending."""

    async def switch_p_node_init(self):
        while True:
            await sleep(1)

    ran = run(with_plugin(tmp_path, switch_p_node_init) + ONE, folder=tmp_path)
    assert {function for function, _ in problems(ran)} == {"switch_p_node_init"}
    assert all("slept 100000 times in one call" in problem for _, problem in problems(ran))


def test_a_call_that_waits_for_nothing_stalls_the_run_and_is_named(tmp_path: Path) -> None:
    """An event that nobody sets: the run ends, exit 1, and says who waits for which function."""

    async def switch_p_job_fini(self, switch_job):
        await Event().wait()

    ran = run(with_plugin(tmp_path, switch_p_job_fini) + ONE, folder=tmp_path)
    assert not ran.result.held
    assert any("switch_p_job_fini of its plugin to return" in line for line in ran.result.stalled)


def test_a_hang_while_the_cluster_stops_is_told_as_well(tmp_path: Path) -> None:
    """Slurmd waits for node_fini; with no job left the run would look fine otherwise."""

    async def switch_p_node_fini(self):
        await Event().wait()

    ran = run(with_plugin(tmp_path, switch_p_node_fini) + ONE, folder=tmp_path)
    assert ran.job()[0] == "COMPLETED"
    assert [line for line in ran.result.stalled if "node_fini" in line]


# Threads.


def test_a_thread_runs_beside_its_process_and_ends_with_it(tmp_path: Path) -> None:
    """It acts in virtual time as its process, and what recurs keeps no run alive."""

    def switch_p_node_init(self):
        async def watch():
            while True:
                log.info("look", host=process().hostname, role=process().role)
                await sleep(100)

        start(watch)

    ran = run(with_plugin(tmp_path, switch_p_node_init) + ONE, folder=tmp_path)
    looks = ran.all("plugin_log", node="n1")
    assert len(looks) >= 3
    assert {event.daemon for event in looks} == {"slurmd"}
    assert {event.time_us % 100_000_000 for event in looks} == {0}
    last = ran.all("exit", daemon="slurmd", node="n1")[-1]
    assert looks[-1].seq < last.seq
    assert ran.result.stalled == ()
    assert ran.job()[0] == "COMPLETED"


def test_a_daemon_may_wait_for_its_plugins_thread(tmp_path: Path) -> None:
    """The run goes on as long as a thread may end somebody's wait."""

    async def switch_p_job_init(self, switch_job, uid):
        done = Event()

        async def work():
            await sleep(7)
            done.set()

        thread = start(work, "worker")
        assert not await done.wait(timeout=2)
        assert await done.wait()
        assert await thread.join()
        assert not thread.alive

    ran = run(with_plugin(tmp_path, switch_p_job_init) + ONE, folder=tmp_path)
    call = ran.one("switch_p_job_init")
    assert call.rc == 0
    assert call.t0_us is not UNSET
    assert call.time_us - call.t0_us == 7_000_000
    assert problems(ran) == []


def test_a_thread_that_raises_is_named_and_ends_alone(tmp_path: Path) -> None:
    """Its daemon goes on."""

    def switch_p_node_init(self):
        async def broken():
            await sleep(1)
            raise ValueError("no such adapter")

        start(broken)

    ran = run(with_plugin(tmp_path, switch_p_node_init) + ONE, folder=tmp_path)
    ((function, problem),) = problems(ran)
    assert function == "thread broken"
    assert problem.startswith("ValueError: no such adapter (mine.py, line ")
    assert problem.endswith(", in broken)")
    assert ran.result.complaints[0].times == 2
    assert ran.job()[0] == "COMPLETED"


def test_a_thread_can_be_cancelled(tmp_path: Path) -> None:
    """It does nothing more, and whoever joins it goes on."""

    async def switch_p_node_init(self):
        async def work():
            log.info("begun")
            await sleep(50)
            log.info("over")

        thread = start(work)
        await sleep(1)
        assert thread.alive
        thread.cancel()
        assert await thread.join()

    ran = run(with_plugin(tmp_path, switch_p_node_init) + ONE, folder=tmp_path)
    assert [each["text"] for each in logged(ran)] == ["begun", "begun"]
    assert problems(ran) == []


def test_whoever_joins_a_thread_that_never_began_goes_on(tmp_path: Path) -> None:
    """A thousand threads are too many for one process: all are ended, before their first turn."""

    async def switch_p_node_init(self):
        async def work():
            await sleep(50)

        threads = [start(work) for _ in range(1000)]
        try:
            start(work)
        except RuntimeError:
            assert all([await thread.join() for thread in threads])
            log.info("joined", alive=any(thread.alive for thread in threads))

    ran = run(with_plugin(tmp_path, switch_p_node_init) + ONE, folder=tmp_path)
    assert [(each["text"], each["alive"]) for each in logged(ran)] == [("joined", False)] * 2
    assert ran.result.stalled == ()


def test_a_fork_has_no_thread_of_its_parents_and_a_memory_of_its_own(tmp_path: Path) -> None:
    """What the thread goes on to store in P1 is not seen in P2, which was forked before."""

    def switch_p_job_preinit(self, switch_job):
        self.ticks = 0

        async def tick():
            while True:
                self.ticks += 1
                await sleep(1)

        self.thread = start(tick)

    def switch_p_job_fini(self, switch_job):
        log.info("session", ticks=self.ticks, alive=self.thread.alive)

    def switch_p_job_postfini(self, switch_job, pgid, job_id, step_id):
        log.info("manager", ticks=self.ticks, alive=self.thread.alive)

    ran = run(
        with_plugin(tmp_path, switch_p_job_preinit, switch_p_job_fini, switch_p_job_postfini) + ONE,
        folder=tmp_path,
    )
    assert problems(ran) == []
    session, manager = logged(ran)
    assert session == {"level": "info", "text": "session", "ticks": 0, "alive": False}
    assert manager["alive"] is True
    assert manager["ticks"] >= 10


def test_a_thread_that_only_ticks_does_not_hide_a_stall(tmp_path: Path) -> None:
    """After a hundred thousand turns in which nothing else happened the run has stalled."""

    def switch_p_node_init(self):
        async def tick():
            while True:
                await sleep(1)

        start(tick)

    async def switch_p_job_fini(self, switch_job):
        await Event().wait()

    ran = run(with_plugin(tmp_path, switch_p_node_init, switch_p_job_fini) + ONE, folder=tmp_path)
    assert any("switch_p_job_fini" in line for line in ran.result.stalled)


def test_threads_without_end_are_ended(tmp_path: Path) -> None:
    """A thread that starts threads reaches a thousand, and then all of them are over."""

    def switch_p_node_init(self):
        async def again():
            while True:
                start(again)
                await sleep(1)

        start(again)

    ran = run(with_plugin(tmp_path, switch_p_node_init) + ONE, folder=tmp_path)
    ((function, problem),) = problems(ran)
    assert function == "thread again"
    assert "1000 threads of the plugin's ran in this process; all were ended" in problem
    assert ran.job()[0] == "COMPLETED"


# Disks, slurm.conf, the log.


def test_files_last_from_process_to_process_on_one_host(tmp_path: Path) -> None:
    """Slurmd's file is there for the step daemon of its node, and not on another node."""

    def switch_p_node_init(self):
        if process().hostname == "n1":
            disk().write("/var/lib/fabric", b"\x01\x02")

    def switch_p_job_preinit(self, switch_job):
        log.info(process().hostname, there=disk().exists("/var/lib/fabric"))

    ran = run(
        with_plugin(tmp_path, switch_p_node_init, switch_p_job_preinit) + STEP, folder=tmp_path
    )
    found = {each["text"]: each["there"] for each in logged(ran)}
    assert found == {"n1": True, "n2": False}


def test_state_that_slurmctld_saves_is_written_as_slurm_user(tmp_path: Path) -> None:
    """libstate_save may make a file in StateSaveLocation, as SlurmUser."""

    def switch_p_libstate_save(self, dir_name):
        disk().write(f"{dir_name}/switch_state", "magic", mode=0o600)

    ran = run(with_plugin(tmp_path, switch_p_libstate_save) + ONE, folder=tmp_path)
    assert ran.one("switch_p_libstate_save").rc == 0
    assert problems(ran) == []
    stat = ran.world.disk.view("slurmctld", 0).stat("/var/spool/switch_state")
    assert (stat.uid, stat.mode, stat.size) == (64030, 0o600, 5)


def test_slurm_conf_is_read_by_slurms_own_names(tmp_path: Path) -> None:
    """Whatever the case; defaults for what is left out; an unknown key says what is near."""

    def switch_p_node_init(self):
        log.info(
            "conf",
            kill=conf["killwait"],
            state=conf["StateSaveLocation"],
            timeout=conf["MessageTimeout"],
            known="TreeWidth" in conf,
            missing=conf.get("NoSuchKey", "nothing"),
        )
        conf["KilWait"]

    ran = run(with_plugin(tmp_path, switch_p_node_init) + ONE, folder=tmp_path)
    assert logged(ran)[0] == {
        "level": "info",
        "text": "conf",
        "kill": 30,
        "state": "/var/spool",
        "timeout": 10,
        "known": True,
        "missing": "nothing",
    }
    assert "did you mean KillWait?" in problems(ran)[0][1]


def test_the_log_is_part_of_the_trace(tmp_path: Path) -> None:
    """Each line knows its process; objects lose what differs between runs."""

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        log.warning("odd", thing=object(), rank=rank)

    ran = run(with_plugin(tmp_path, switch_p_job_attach) + ONE, folder=tmp_path)
    event = ran.one("plugin_log")
    assert (event.kind, event.role, event.uid, event.task) == ("log", "task", 1001, 0)
    assert event.args == {"level": "warning", "text": "odd", "thing": "<object object>", "rank": 0}


def test_surroundings_belong_to_a_call(tmp_path: Path) -> None:
    """At import there is no process: the plugin is refused, with a text that says why."""
    text = with_plugin(tmp_path) + ONE
    path = tmp_path / "mine.py"
    path.write_text(path.read_text() + "\nprint(process().pid)\n")
    with pytest.raises(PluginError, match="belongs to a call"):
        run(text, folder=tmp_path)


def test_setting_a_variable_of_the_process_itself_is_told(tmp_path: Path) -> None:
    """No task gets it."""

    def switch_p_job_init(self, switch_job, uid):
        process().env["FABRIC"] = "1"

    ran = run(with_plugin(tmp_path, switch_p_job_init) + ONE, folder=tmp_path)
    ((function, problem),) = problems(ran)
    assert function == "process().env"
    assert "set it in the env that job_attach is given" in problem


# Requests.


def test_a_plugin_sends_requests_as_its_process(tmp_path: Path) -> None:
    """A step's root cancels the job; the trace shows the message, and the answer comes in time."""

    async def switch_p_job_fini(self, switch_job):
        await rpc.slurm_ping()
        try:
            await rpc.slurm_ping("n2")
        except SlurmError:
            log.info("refused")
        await rpc.slurm_kill_job(2)

    timeline = (
        "timeline:\n"
        '  - {at: 0s, as: alice, run: "srun -n1 sleep 10"}\n'
        '  - {at: 1s, as: alice, run: sbatch --begin=now+1hour --wrap "sleep 1"}\n'
    )
    timeline = timeline.replace(" --begin=now+1hour", "")
    ran = run(with_plugin(tmp_path, switch_p_job_fini) + timeline, folder=tmp_path)
    kill = ran.all("REQUEST_KILL_JOB", phase="send")[0]
    assert (kill.role, kill.uid, kill.args) == ("session", 1001, {"signal": 9})
    assert {event.name for event in ran.all(phase="send", role="session")} >= {"REQUEST_PING"}
    # Slurmd answers no user.
    assert ran.one("refused", daemon="slurmd").errno == "ESLURM_USER_ID_MISSING"


def test_a_refused_request_raises_slurms_error(tmp_path: Path) -> None:
    """As errno after a call of libslurm's."""

    async def switch_p_job_fini(self, switch_job):
        await rpc.slurm_kill_job(77)

    ran = run(with_plugin(tmp_path, switch_p_job_fini) + ONE, folder=tmp_path)
    assert ran.one("switch_p_job_fini").errno == "ESLURM_INVALID_JOB_ID"


def test_slurmctlds_plugin_that_asks_slurmctld_waits_for_message_timeout(tmp_path: Path) -> None:
    """It asks a daemon that waits for it; Slurm's time-out ends that after 10 s.

    Srun waits no longer than that either: it asks ten times more, and gives up.
    """

    async def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        await rpc.slurm_ping()

    ran = run(with_plugin(tmp_path, switch_p_build_jobinfo) + ONE, folder=tmp_path)
    calls = ran.all("switch_p_build_jobinfo")
    assert len(calls) == 11
    for call in calls:
        assert call.errno == "SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT"
        assert call.t0_us is not UNSET
        assert call.time_us - call.t0_us == 10_000_000
    assert ran.result.commands[0].exit == 1


def test_a_thread_may_ask_the_daemon_it_lives_in(tmp_path: Path) -> None:
    """The daemon's own handler is free then, and a job can be submitted from there."""

    def init(self):
        async def submit():
            await sleep(5)
            await rpc.slurm_ping()
            desc = JobDesc(
                name="extra",
                uid=1001,
                gid=1001,
                user="alice",
                script="#!/bin/sh\nsleep 1\n",
                work_dir="/home/alice",
            )
            log.info("submitted", job=await rpc.slurm_submit_batch_job(desc))

        if process().role == "slurmctld":
            start(submit)

    ran = run(with_plugin(tmp_path, init) + ONE, folder=tmp_path)
    assert logged(ran) == [{"level": "info", "text": "submitted", "job": 2}]
    assert ran.job(2)[0] == "COMPLETED"
    assert problems(ran) == []


def test_a_function_of_libslurm_that_is_not_there_says_which_are(tmp_path: Path) -> None:
    """A name that is not simulated is no silent success."""

    async def switch_p_job_fini(self, switch_job):
        await rpc.slurm_suspend(1)

    ran = run(with_plugin(tmp_path, switch_p_job_fini) + ONE, folder=tmp_path)
    assert "rpc.slurm_suspend is not simulated; these are:" in problems(ran)[0][1]


# The watchdog.


def hang(tmp_path: Path, body: str, *, recording: bool = True) -> Ran:
    """Run a step whose job_init consists of *body*, watched for 0.2 s."""
    (tmp_path / "mine.py").write_text(
        "import time\n"
        "from simctl.plugin import *\n"
        "class Mine(SwitchPlugin):\n"
        "    plugin_type = 'switch/mine'\n"
        "    plugin_name = 'hangs'\n" + body
    )
    text = 'plugins: ["./mine.py:Mine"]\nslurm_conf: {SwitchType: switch/mine}\n' + ONE
    scenario = read_scenario(TWO_NODES + text, file=str(tmp_path / "s.yaml"))
    world = World(scenario, watchdog_s=0.2)
    if recording:
        world.trace.add_sink(world.events.append)
    return Ran(world, world.run(), world.events)


@pytest.mark.parametrize("recording", [True, False])
@pytest.mark.parametrize(
    "body",
    [
        "    def switch_p_job_init(self, switch_job, uid):\n        while True: pass\n",
        "    def switch_p_job_init(self, switch_job, uid):\n        time.sleep(3600)\n",
        "    async def switch_p_job_init(self, switch_job, uid):\n"
        "        await sleep(1)\n        while True: pass\n",
        "    def switch_p_job_init(self, switch_job, uid):\n"
        "        while True:\n"
        "            try: time.sleep(0.01)\n"
        "            except Exception: pass\n",
        "    def switch_p_job_init(self, switch_job, uid):\n"
        "        while True: log.info('again')\n",
    ],
    ids=["loop", "sleep", "after-await", "catches", "busy"],
)
def test_code_that_does_not_come_back_is_stopped_and_named(
    tmp_path: Path, body: str, *, recording: bool
) -> None:
    """The call fails as any other, the daemon goes on, and the end of the run says so."""
    ran = hang(tmp_path, body, recording=recording)
    ((function, problem),) = problems(ran)
    assert function == "switch_p_job_init"
    assert "still ran after 0.2 s of wall time, and was stopped" in problem
    assert ran.job()[0] == "COMPLETED"
    assert ran.world.trace.seq > 0


def test_a_thread_that_does_not_come_back_is_stopped_and_named(tmp_path: Path) -> None:
    """So is a thread of the plugin's."""
    ran = hang(
        tmp_path,
        "    def switch_p_job_init(self, switch_job, uid):\n"
        "        async def spin():\n            while True: pass\n"
        "        start(spin)\n",
    )
    ((function, problem),) = problems(ran)
    assert function == "thread spin"
    assert "of wall time" in problem
    assert ran.job()[0] == "COMPLETED"


def test_ctrl_c_ends_a_plugins_loop_and_the_run(tmp_path: Path) -> None:
    """Not only once the watchdog's time is over."""
    (tmp_path / "mine.py").write_text(
        "from simctl.plugin import *\n"
        "class Mine(SwitchPlugin):\n"
        "    plugin_type = 'switch/mine'\n"
        "    plugin_name = 'hangs'\n"
        "    def switch_p_job_init(self, switch_job, uid):\n"
        "        print('looping', flush=True)\n"
        "        while True: pass\n"
    )
    (tmp_path / "s.yaml").write_text(
        TWO_NODES + 'plugins: ["./mine.py:Mine"]\nslurm_conf: {SwitchType: switch/mine}\n' + STEP
    )
    words = ["run", "s.yaml", "--watchdog", "600"]
    run = subprocess.Popen(
        [*SIMCTL, *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "looping\n"
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "WatchdogError: was interrupted" in out
    assert "interrupted: this is what was reached" in out


def test_ctrl_c_stops_no_call_that_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs at the next tick may be another call, or simctl's own part of one."""

    def a_call() -> FrameType:
        return sys._getframe()

    now_running = [a_call()]
    monkeypatch.setattr(watchdog, "entry_of", lambda _: now_running[-1])
    watch = watchdog.Watchdog(Kernel(), 600)
    watch.interrupt()
    now_running.append(a_call())
    watch._look(None)
    with pytest.raises(WatchdogError, match="was interrupted"):
        watch._look(None)


class AfterRun(trio.abc.Instrument):
    """Notes what the timer of the watchdog is set to when trio has no task left."""

    def __init__(self) -> None:
        self.timer: tuple[float, float] | None = None

    def after_run(self) -> None:
        """Look at it."""
        self.timer = signal.getitimer(signal.ITIMER_REAL)


def test_nothing_is_watched_once_trio_ends() -> None:
    """A signal that came while trio closes what wakes it would be told as an error."""
    seen, during = AfterRun(), []
    world = World(read_scenario(TWO_NODES + ONE, file="s.yaml"), watchdog_s=60)
    world.background.append(lambda: trio.lowlevel.add_instrument(seen))
    world.background.append(lambda: during.append(signal.getitimer(signal.ITIMER_REAL)[0]))
    world.run()
    assert 0 < during[0] <= 0.5
    assert seen.timer == (0.0, 0.0)


def test_a_constructor_that_does_not_come_back_is_stopped_and_named(tmp_path: Path) -> None:
    """Loading fails in that process, and is told like a failing init."""
    ran = hang(
        tmp_path,
        "    def __init__(self):\n        while process().role == 'manager': pass\n",
    )
    ((function, problem),) = problems(ran)
    assert function == "__init__"
    assert "of wall time" in problem
