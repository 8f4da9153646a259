"""A checkpoint plugin that keeps its books as blcr does, and somebody who calls libslurm."""

from pathlib import Path
from typing import Any

from tests.cluster import Ran, run

FOUR_NODES = """\
nodes: [{name: "n[1-4]", cpus: 4}]
partitions:
  - {name: debug, nodes: "n[1-4]", default: true}
  - {name: low, nodes: "n[1-4]", priority_tier: 1}
  - {name: high, nodes: "n[1-4]", priority_tier: 2}
users: {alice: 1001, bob: 1002}
"""

_PLUGIN = '''
import copy
from simctl.plugin import *
from simctl.plugin import SwitchPlugin, CheckpointPlugin
from simctl.plugin import log, now, rpc, sleep, slurmctld, start, stepd

class Record:
    """What is known of a job or step."""
    def __init__(self):
        self.disabled = 0
        self.begun = 0
        self.code = 0
        self.text = ""

class Trial(CheckpointPlugin):
    """Takes three seconds for a checkpoint, and writes no image: a script begins anew."""
    plugin_type = "checkpoint/trial"
    plugin_name = "a plugin of a test"

    def slurm_ckpt_alloc_job(self):
        return Record()

    def slurm_ckpt_copy_job(self, jobinfo):
        return copy.copy(jobinfo)

    def _record(self, job_id, step_ptr):
        return (step_ptr or slurmctld.find_job(job_id)).check_job

    def slurm_ckpt_op(self, job_id, step_id, step_ptr, op, data, image_dir):
        record = self._record(job_id, step_ptr)
        if op == CheckOp.DISABLE:
            record.disabled += 1
        elif op == CheckOp.ENABLE:
            record.disabled -= 1
        elif op == CheckOp.ERROR:
            return CheckpointStatus(error_code=record.code, error_msg=record.text)
        elif record.disabled:
            raise SlurmError(errno.ESLURM_DISABLED)
        elif op == CheckOp.ABLE:
            return CheckpointStatus(event_time=record.begun)
        elif record.begun:
            raise SlurmError(errno.EALREADY)
        else:
            record.begun, record.code, record.text = slurmctld.time(), 0, ""
            start(lambda: self._make(record, job_id, step_id, op))
        return 0

    async def _make(self, record, job_id, step_id, op):
        await sleep(3)
        async with slurmctld.locked():
            record.begun = 0
            if op == CheckOp.VACATE:
                await slurmctld.signal_step(job_id, step_id, 15)
            elif op == CheckOp.REQUEUE:
                await slurmctld.requeue(slurmctld.find_job(job_id))

    def slurm_ckpt_comp(self, step_ptr, event_time, error_code, error_msg):
        record = step_ptr.check_job
        if error_code > record.code:
            record.code, record.text = error_code, error_msg

    async def slurm_ckpt_restart_task(self, slurmd_job, image_dir, gtid):
        if not slurmd_job.batch:
            raise SlurmError(errno.ENOENT)
        await stepd.execve(f"/var/spool/slurmd/job{slurmd_job.job_id:05}/slurm_script")

    def slurm_ckpt_task_comp(self, step_ptr, task_id, event_time, error_code, error_msg):
        return 0

class Asker(SwitchPlugin):
    """Calls a function of libslurm in the task, as its user: what ASK in its environment says."""
    plugin_type = "switch/asker"
    plugin_name = "a plugin of a test"

    async def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        for text in filter(None, env.get("ASK", "").split("+")):
            name, *words = text.split("/")
            words = [int(word) if word.isdecimal() else word.replace("|", "/") for word in words]
            result = await getattr(rpc, "slurm_checkpoint_" + name)(*words)
            rc = result[0] if type(result) is tuple else result
            log.info(text, result=str(result), errno=rpc.slurm_get_errno() if rc else 0)
'''

CONF = (
    'plugins: ["./trial.py:Trial", "./trial.py:Asker"]\n'
    "slurm_conf: {CheckpointType: checkpoint/trial, SwitchType: switch/asker,"
    " JobCheckpointDir: /shared/ckpt%s}\n"
)


def ask(*calls: str) -> str:
    """Return a command line that calls functions of libslurm, such as ``create/1/0``."""
    return f"srun --export=ALL,ASK={'+'.join(calls)} true"


def checkpointed(
    folder: Path,
    *lines: str,
    model: str = "guide",
    conf: str = "",
    more: str = "",
    young: bool = True,
) -> Ran:
    """Run lines of a timeline, ``MOMENT USER COMMAND``, with both plugins; jobs die *young*."""
    (folder / "trial.py").write_text(_PLUGIN)
    entries = []
    for line in lines:
        moment, user, command = line.split(" ", 2)
        if user == "fault":
            entries.append(f"  - {{at: {moment}, fault: {command}}}\n")
        else:
            entries.append(f"  - {{at: {moment}, as: {user}, run: {command!r}}}\n")
    text = (
        CONF % ((", MinJobAge: 2" if young else "") + conf)
        + more
        + "timeline:\n"
        + "".join(entries)
    )
    return run(text, cluster=FOUR_NODES, model=model, folder=folder)


def answers(ran: Ran) -> list[tuple[str, str, int]]:
    """Return what the functions that were called returned, and the errno after each."""
    return [
        (event.args["text"], event.args["result"], event.args["errno"])  # type: ignore[index]
        for event in ran.all("plugin_log", daemon="task")
    ]


def operations(ran: Ran) -> list[tuple[int, str, int, str]]:
    """Return the operations that the plugin was asked for: op, step, data, image directory."""
    found: list[tuple[int, str, int, str]] = []
    for event in ran.all("slurm_ckpt_op"):
        given: Any = event.args
        found.append((given["op"], str(event.step), given["data"], given["image_dir"]))
    return found


def said(ran: Ran, place: int = -1) -> tuple[str, str, int]:
    """Return what a command of the timeline printed, to both streams, and its exit status."""
    command = ran.result.commands[place]
    return command.stdout, command.stderr, command.exit
