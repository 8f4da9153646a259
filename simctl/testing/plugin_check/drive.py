"""Call functions for their own sake: those that no run calls yet, or only a user's demand would.

Each is called where its point says: in a process of the declared role, as the declared user, with
arguments that a cluster would give it.
"""

import io
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from simctl.api.stepd import Executed
from simctl.kernel.procs import Host, Process, RunsAs
from simctl.plugin import CheckOp, JobRecord, StepdJob, StepRecord
from simctl.plugins.hooks import NULL, Handle, Hooks, failed
from simctl.plugins.points import ALL, OPTIONAL, OWN
from simctl.plugins.points.declare import Point
from simctl.site import User
from simctl.stepd.services import StepServices
from simctl.stepd.tasks import Task, TaskSet
from simctl.stepd.work import StepWork
from simctl.testing.plugin_check.mistakes import NO_ROUND_TRIP, NONSENSE
from simctl.testing.plugin_check.observe import Observer
from simctl.wire.buf import Buf
from simctl.wire.ids import SECOND
from simctl.wire.records import SubmittedJob
from simctl.world import World

PROTOCOL_VERSION: Final = 18 << 8 | 8
_POLLS: Final = 40
_POLL_S: Final = 30
_TEXT_SIZE: Final = 64
_ALICE: Final = 1001
_DIRECTORY: Final = "/var/spool"
_START_S: Final = 1_767_225_600

RUNS_AS: Final = {
    "slurmctld": RunsAs.SLURM_USER,
    "slurmd": RunsAs.ROOT,
    "manager": RunsAs.ROOT,
    "session": RunsAs.ROOT,
    "task": RunsAs.USER,
    "srun": RunsAs.USER,
}


class Driver:
    """Calls the functions of one plugin class in an idle cluster."""

    def __init__(self, world: World, plugin_class: str, observer: Observer) -> None:
        self._world = world
        self._class = plugin_class
        self._observer = observer
        self.hooks: Hooks = world.site.hooks
        self.state_folder = world.site.conf.state_save_location
        """Where slurmctld keeps its state."""

    def start(self, work: Callable[[], Awaitable[None]] | None = None) -> None:
        """Start the driver, in a process of its own, a second after the cluster has.

        It does *work*, or calls all functions of the plugin's class for their own sake.
        """
        host = self._world.ctld.process.host
        process = self._world.procs.add(
            host, ppid=1, daemon="simctl", role="driver", uid=0, runs_as=RunsAs.ROOT
        )

        async def body() -> None:
            self._observer.direct = True
            if work is not None:
                await work()
            else:
                await _SEQUENCES[self._class](self)
            self._observer.direct = False
            process.exit(0)

        process.start(body, "simctl plugins check", due_us=SECOND)

    # Processes.

    async def process(self, role: str, host: str = "n1") -> Process | None:
        """Return a process of a role that has loaded the plugin; None if its init failed."""
        world = self._world
        where = {
            "slurmctld": world.ctld.process.host,
            "srun": world.login,
        }.get(role, world.hosts[host])
        who = self._add(where, role)
        return who if await self.hooks.load(who, self._class) else None

    def _add(self, host: Host, role: str) -> Process:
        uid = {"slurmctld": self._world.ctld.process.uid, "srun": _ALICE}.get(role, 0)
        who = self._world.procs.add(
            host,
            ppid=1,
            daemon="slurmstepd" if role == "manager" else role,
            role=role,
            uid=uid,
            runs_as=RUNS_AS[role],
        )
        if role == "manager":
            who.job, who.step = 1, "1.0"
        return who

    def services(self, job: StepdJob, tasks: TaskSet) -> StepServices:
        """Return what a step daemon of *job* offers to its plugin."""
        work = StepWork(
            job=job,
            user=User(name="alice", uid=_ALICE, gid=_ALICE),
            argv=("./app",),
            env={"HOME": "/home/alice", "SLURM_JOB_ID": "1"},
            work_dir="/home/alice",
            tids=(0, 1),
            nnodes=2,
        )
        return StepServices(self._world.site, work, tasks, "n1")

    async def end(self, who: Process | None) -> None:
        """Unload the plugin and end the process."""
        if who is None:
            return
        if who.role in self.places(OWN[self._class, "fini"]):
            await self.hooks.unload(who, self._class)
        who.exit(0)

    async def call(self, name: str, who: Process | None, *arguments: Any) -> Any:
        """Call a function, if its process is there and model and plugin have it at all."""
        point = ALL.get(name) or OPTIONAL[name]
        if who is None or who.role not in self.places(point):
            return None
        if point.optional and not self.hooks.has(who, point):
            return None
        return await self.hooks.call(point, who, *arguments)

    def places(self, point: Point) -> Iterable[str]:
        """Return the roles that call a function in this model."""
        return point.places(self.hooks.model)

    def blame(self, rule: str, name: str, text: str) -> None:
        """Note that a function is wrong."""
        self._observer.tallies[name].blame(rule, text)

    def note(self, name: str, text: str) -> None:
        """Note what a function's author may want to know."""
        self._observer.tallies[name].note(text)

    # What classes have in common.

    async def made(self, name: str, who: Process | None, *, to_unpack_into: bool = False) -> Handle:
        """Return an object that a function makes; an empty one where it fails.

        Where a plugin's unpack makes its own, one *to_unpack_into* stands for none yet.
        """
        point = ALL[name]
        if who is None:
            return NULL
        instance = who.memory.instances.get(point.plugin_class)
        anew = to_unpack_into and hasattr(instance, "simctl_blank")
        if anew or who.role not in self.places(point):
            return await self.hooks.blank(who, point)
        result = await self.hooks.call(point, who)
        return NULL if failed(result) else result

    async def packed(self, name: str, who: Process | None, held: Handle, *more: Any) -> bytes:
        """Pack an object and return the bytes; hold the count it returns against them."""
        buffer = Buf()
        count = await self.call(name, who, held, buffer, *more)
        if type(count) is int and count > 0 and count != buffer.size:
            self.blame(NONSENSE, name, f"returned {count} and has packed {buffer.size} bytes")
        return buffer.data()

    async def round_trip(
        self,
        functions: tuple[str, str, str],
        sender: Process | None,
        receiver: Process | None,
        held: Handle,
        *more: Any,
    ) -> Handle:
        """Pack an object in one process, unpack it in another, and pack it there again."""
        alloc, pack, unpack = functions
        first = await self.packed(pack, sender, held, *more)
        there = await self.made(alloc, receiver, to_unpack_into=True)
        buffer = Buf(first)
        rc = await self.call(unpack, receiver, there, buffer, *more)
        if rc is None or failed(rc):
            return there
        if buffer.remaining:
            self.blame(
                NO_ROUND_TRIP, unpack, f"left {buffer.remaining} of {buffer.size} bytes unread"
            )
        if receiver is None or receiver.role not in self.places(ALL[pack]):
            return there
        second = await self.packed(pack, receiver, there, *more)
        if second != first:
            self.blame(
                NO_ROUND_TRIP,
                unpack,
                f"does not bring back what {pack} has packed: packed again, "
                f"{len(first)} bytes became {len(second)} other bytes",
            )
        return there


async def _switch(driver: Driver) -> None:
    ctld = await driver.process("slurmctld")
    slurmd = await driver.process("slurmd")
    manager = await driver.process("manager")
    srun = await driver.process("srun")
    await _switch_nodes(driver, ctld, slurmd)
    credential = await driver.made("switch_p_alloc_jobinfo", ctld)
    await driver.call("switch_p_build_jobinfo", ctld, credential, "n[1-2]", 4, 0)
    names = ("switch_p_alloc_jobinfo", "switch_p_pack_jobinfo", "switch_p_unpack_jobinfo")
    for receiver in (srun, slurmd, manager):
        copied = await driver.round_trip(names, ctld, receiver, credential)
        await _look_at_credential(driver, receiver, copied)
        if receiver is not manager:
            await driver.call("switch_p_free_jobinfo", receiver, copied)
    copied = await driver.call("switch_p_copy_jobinfo", ctld, credential)
    if isinstance(copied, Handle):
        await driver.call("switch_p_free_jobinfo", ctld, copied)
    await _switch_besides(driver, ctld, slurmd, credential)
    await driver.call("switch_p_job_step_complete", ctld, credential, "n[1-2]")
    await driver.call("switch_p_free_jobinfo", ctld, credential)
    await _saved_state(driver, ctld)
    for who in (srun, manager, slurmd):
        await driver.end(who)


async def _switch_nodes(driver: Driver, ctld: Process | None, slurmd: Process | None) -> None:
    await driver.call("switch_p_node_init", slurmd)
    await driver.call("switch_p_clear_node_state", slurmd)
    node = await driver.made("switch_p_alloc_node_info", slurmd)
    await driver.call("switch_p_build_node_info", slurmd, node)
    names = ("switch_p_alloc_node_info", "switch_p_pack_node_info", "switch_p_unpack_node_info")
    there = await driver.round_trip(names, slurmd, ctld, node)
    for who, held in ((slurmd, node), (ctld, there)):
        await driver.call("switch_p_sprintf_node_info", who, held, _TEXT_SIZE)
        await driver.call("switch_p_free_node_info", who, held)
    await driver.call("switch_p_node_fini", slurmd)


async def _switch_besides(
    driver: Driver, ctld: Process | None, slurmd: Process | None, credential: Handle
) -> None:
    """Call what few runs come to: nodes that are done with a step before the others."""
    await driver.call("switch_p_part_comp", ctld)
    await driver.call("switch_p_job_step_part_comp", ctld, credential, "n1")
    info = await driver.call("switch_p_job_suspend_info_get", ctld, credential, NULL)
    info = info if isinstance(info, Handle) else NULL
    buffer = Buf()
    await driver.call("switch_p_job_suspend_info_pack", ctld, info, buffer)
    there = await driver.call("switch_p_job_suspend_info_unpack", slurmd, Buf(buffer.data()))
    for who, held in ((ctld, info), (slurmd, there)):
        if isinstance(held, Handle):
            await driver.call("switch_p_job_suspend_info_free", who, held)


async def _look_at_credential(driver: Driver, who: Process | None, held: Handle) -> None:
    await driver.call("switch_p_get_jobinfo", who, held, 0)
    await driver.call("switch_p_get_data_jobinfo", who, held, 0)
    await driver.call("switch_p_sprint_jobinfo", who, held, _TEXT_SIZE)
    await driver.call("switch_p_print_jobinfo", who, io.StringIO(), held)
    number = await driver.call("switch_p_get_errno", who)
    text = await driver.call("switch_p_strerror", who, number or 3000)
    if text is not None and not isinstance(text, str):
        driver.blame(NONSENSE, "switch_p_strerror", f"returned {text!r}; expected a text or None")


async def _saved_state(driver: Driver, ctld: Process | None) -> None:
    """Save global state, let the controller end, and restore it in the next one."""
    await driver.call("switch_p_libstate_save", ctld, _DIRECTORY)
    await driver.end(ctld)
    restarted = await driver.process("slurmctld")
    await driver.call("switch_p_libstate_restore", restarted, _DIRECTORY)
    await driver.end(restarted)


async def _checkpoint(driver: Driver) -> None:
    ctld = await driver.process("slurmctld")
    record = await driver.made("slurm_ckpt_alloc_job", ctld)
    step = StepRecord(
        job_id=1,
        step_id=0,
        name="app",
        user_id=_ALICE,
        nodes="n[1-2]",
        num_tasks=4,
        start_time=_START_S,
        ckpt_dir="/home/alice",
        check_job=record.value,
    )
    for op in CheckOp:
        arguments = (1, 0, step, int(op), 10 if op in (3, 4, 7) else 0, "/home/alice/1.0")
        await driver.call("slurm_ckpt_op", ctld, *arguments)
    await driver.call("slurm_ckpt_comp", ctld, step, _START_S, 0, "")
    await driver.call("slurm_ckpt_task_comp", ctld, step, 0, _START_S, 0, "")
    restarted = await driver.process("slurmctld")
    names = ("slurm_ckpt_alloc_job", "slurm_ckpt_pack_job", "slurm_ckpt_unpack_job")
    await driver.round_trip(names, ctld, restarted, record, PROTOCOL_VERSION)
    copied = await driver.call("slurm_ckpt_copy_job", ctld, record)
    for each in (copied, record):
        if isinstance(each, Handle):
            await driver.call("slurm_ckpt_free_job", ctld, each)
    await _checkpoint_step(driver)
    await driver.end(restarted)
    await driver.end(ctld)


async def _checkpoint_step(driver: Driver) -> None:
    job = StepdJob(job_id=1, step_id=0, uid=_ALICE, nodeid=0, ntasks=4, node_tasks=2, batch=False)
    manager = await driver.process("manager")
    if manager is None:
        return
    tasks = TaskSet()
    manager.stepd = driver.services(job, tasks)
    session = manager.fork(role="session")
    who = session if driver.hooks.model == "guide" else manager
    await driver.call("slurm_ckpt_stepd_prefork", who, job)
    session.become_user(_ALICE)
    task = session.fork(daemon="task", role="task", task=0)
    tasks.add(Task(rank=0, procid=0, process=task))
    with suppress(Executed):
        await driver.call("slurm_ckpt_restart_task", task, job, "/home/alice/1.0", 0)
    await driver.call("slurm_ckpt_signal_tasks", manager, job, "/home/alice/1.0")
    task.exit(0)
    session.exit(0)
    await driver.end(manager)


async def _burst_buffer(driver: Driver) -> None:
    ctld = await driver.process("slurmctld")
    await driver.call("bb_p_load_state", ctld, True)
    await driver.call("bb_p_get_system_size", ctld, None)
    await driver.call("bb_p_xlate_bb_2_tres_str", ctld, "size=10g")
    for job_id, ends in ((1, _run_through), (2, _revoke), (3, _cancel)):
        await _one_job(driver, ctld, job_id, ends)
    buffer = Buf()
    await driver.call("bb_p_state_pack", ctld, _ALICE, buffer, PROTOCOL_VERSION)
    await driver.call("bb_p_reconfig", ctld)
    await driver.end(ctld)


_Ending = Callable[[Driver, Process | None, JobRecord], Awaitable[None]]


async def _one_job(driver: Driver, ctld: Process | None, job_id: int, ends: _Ending) -> None:
    script = "#!/bin/sh\n#BB size=10g\nsleep 5\n"
    desc = SubmittedJob(name="app", uid=_ALICE, gid=_ALICE, user="alice", script=script)
    await driver.call("bb_p_job_validate", ctld, desc, _ALICE)
    job = JobRecord(
        job_id=job_id,
        user_id=_ALICE,
        group_id=_ALICE,
        name="app",
        partition="debug",
        submit_time=_START_S,
        script=script,
        burst_buffer="size=10g",
    )
    await driver.call("bb_p_job_validate2", ctld, job)
    await driver.call("bb_p_job_set_tres_cnt", ctld, job, {}, False)
    await driver.call("bb_p_load_state", ctld, False)
    await driver.call("bb_p_job_test_stage_in", ctld, job, True)
    await driver.call("bb_p_job_get_est_start", ctld, job)
    job.start_time = _START_S + 60
    await driver.call("bb_p_job_try_stage_in", ctld)
    await _poll(driver, ctld, "bb_p_job_test_stage_in", job, False)
    await ends(driver, ctld, job)


async def _run_through(driver: Driver, ctld: Process | None, job: JobRecord) -> None:
    job.nodes = "n1"
    await driver.call("bb_p_job_begin", ctld, job)
    job.job_state = "RUNNING"
    await driver.call("bb_p_job_set_tres_cnt", ctld, job, {}, False)
    job.job_state = "COMPLETED"
    await driver.call("bb_p_job_start_stage_out", ctld, job)
    await _poll(driver, ctld, "bb_p_job_test_post_run", job)
    await _poll(driver, ctld, "bb_p_job_test_stage_out", job)


async def _revoke(driver: Driver, ctld: Process | None, job: JobRecord) -> None:
    await driver.call("bb_p_job_begin", ctld, job)
    await driver.call("bb_p_job_revoke_alloc", ctld, job)
    await driver.call("bb_p_job_cancel", ctld, job)


async def _cancel(driver: Driver, ctld: Process | None, job: JobRecord) -> None:
    job.job_state = "CANCELLED"
    await driver.call("bb_p_job_cancel", ctld, job)


async def _poll(driver: Driver, ctld: Process | None, name: str, *arguments: Any) -> None:
    """Ask as slurmctld does, every 30 s, until the answer is 1."""
    if ctld is None or ctld.role not in driver.places(ALL[name]):
        return
    for _ in range(_POLLS):
        if await driver.call(name, ctld, *arguments) == 1:
            return
        await ctld.table.kernel.sleep_us(_POLL_S * SECOND)
    driver.note(name, f"has not returned 1 in {_POLLS * _POLL_S // 60} minutes of asking")


_SEQUENCES: Final[dict[str, Callable[[Driver], Awaitable[None]]]] = {
    "switch": _switch,
    "checkpoint": _checkpoint,
    "burst_buffer": _burst_buffer,
}
