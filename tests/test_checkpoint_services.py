"""What slurmctld offers to a checkpoint plugin: steps, signals, programs beside srun, records."""

from pathlib import Path
from typing import Any

from tests.checkpointing import FOUR_NODES
from tests.cluster import Ran, run

_PLUGIN = """
from simctl.plugin import *
from simctl.plugin import CheckpointPlugin, log, slurmctld

class Looker(CheckpointPlugin):
    plugin_type = "checkpoint/looker"
    plugin_name = "a plugin of a test"

    async def slurm_ckpt_op(self, job_id, step_id, step_ptr, op, data, image_dir):
        job, step = slurmctld.find_job(job_id), slurmctld.find_step(job_id, step_id)
        log.info("step", same=step is step_ptr, gone=slurmctld.find_step(job_id, 77) is None)
        log.info("job", ckpt_dir=job.ckpt_dir, interval=job.ckpt_interval, restart=job.restart_dir)
        log.info("exec", rc=slurmctld.srun_exec(job_id, step_id, "program", "-x"))
        log.info("signal", rc=await slurmctld.signal_step(job_id, step_id, 10))
        log.info("nobody", rc=await slurmctld.signal_step(job_id, 77, 10))
        log.info("nothing", rc=await slurmctld.signal_step(99, 0, 10))
        if step is not None:
            log.info(str(step), nodes=step.nodes, tasks=step.num_tasks, user=step.user_id,
                name=step.name, start=step.start_time, dir=step.ckpt_dir, every=step.ckpt_interval)
            try:
                step.nodes = "n9"
            except AttributeError as error:
                log.info("refused", text2=str(error))
        else:
            job.restart_dir = "/shared/mine"
"""


def looked(folder: Path, *lines: str) -> tuple[Ran, dict[str, Any]]:
    """Run a timeline; return what the plugin logged, by its text."""
    (folder / "looker.py").write_text(_PLUGIN)
    timeline = "".join(
        f"  - {{at: {line.split(' ', 2)[0]}, as: {line.split(' ', 2)[1]}, "
        f"run: {line.split(' ', 2)[2]!r}}}\n"
        for line in lines
    )
    text = 'plugins: ["./looker.py:Looker"]\nslurm_conf: {CheckpointType: checkpoint/looker}\n'
    ran = run(f"{text}timeline:\n{timeline}", cluster=FOUR_NODES, folder=folder)
    found: list[Any] = [each.args for each in ran.all("plugin_log")]
    return ran, {each["text"]: each for each in found}


def test_a_step_is_a_live_record(tmp_path: Path) -> None:
    """The same object each time; its fields are slurmctld's, and not for plugins to set."""
    ran, told = looked(
        tmp_path,
        "7s alice srun -N2 -n3 -J app --checkpoint=9 --checkpoint-dir=/shared/x sleep 20",
        "10s alice scontrol checkpoint create 1.0",
    )
    assert (told["step"]["same"], told["step"]["gone"]) == (True, True)
    shown = told["step 1.0"]
    assert (shown["nodes"], shown["tasks"], shown["user"]) == ("n[1-2]", 3, 1001)
    assert (shown["name"], shown["dir"], shown["every"]) == ("app", "/shared/x", 9)
    assert shown["start"] == 1767225607
    assert "slurmctld's own" in told["refused"]["text2"]
    assert not ran.result.complaints


def test_a_step_is_signalled_on_all_its_nodes(tmp_path: Path) -> None:
    """And its srun runs a program; what is not there is an error's number."""
    ran, told = looked(
        tmp_path, "0s alice srun -N2 sleep 20", "10s alice scontrol checkpoint create 1.0"
    )
    sent = ran.all("REQUEST_SIGNAL_TASKS", phase="send", daemon="slurmctld")
    assert [(str(each.step), each.args["signal"]) for each in sent][:2] == [  # type: ignore[index]
        ("1.0", 10),
        ("1.0", 10),
    ]
    told_to = ran.one("SRUN_EXEC", phase="send")
    assert told_to.args["argv"] == ("program", "-x")  # type: ignore[index]
    assert [told[each]["rc"] for each in ("exec", "signal", "nobody", "nothing")] == [
        *(0, 0),
        *(2017, 2017),
    ]


def test_a_batch_script_is_signalled_with_what_it_has_started(tmp_path: Path) -> None:
    """There is no step of it, and no srun; where it goes on from may be set."""
    ran, told = looked(
        tmp_path,
        "0s alice sbatch -N1 --checkpoint=9 --checkpoint-dir=/shared/x "
        "--wrap 'trap true USR1; sleep 300; sleep 300'",
        "10s alice scontrol checkpoint create 1",
        "12s alice scontrol requeue 1",
        "200s alice scancel 1",
    )
    assert (told["job"]["ckpt_dir"], told["job"]["interval"], told["job"]["restart"]) == (
        *("/shared/x", 9),
        "",
    )
    assert (told["exec"]["rc"], told["signal"]["rc"]) == (2017, 0)
    sent = ran.all("REQUEST_SIGNAL_TASKS", phase="send", daemon="slurmctld")
    assert str(sent[0].step) == "1.batch"
    launched: list[Any] = [each.args for each in ran.all("REQUEST_BATCH_JOB_LAUNCH", phase="send")]
    assert [each.get("restart_dir") for each in launched] == [None, "/shared/mine"]


def test_tasks_are_saved_on_no_nodes_by_nobody(tmp_path: Path) -> None:
    """A call that names no nodes is told so; it does not look as if all had been saved."""
    plugin = _PLUGIN.replace("import CheckpointPlugin,", "import CheckpointPlugin, rpc,").replace(
        "        if step is not None:\n",
        "        for nodes in ('', 'n1'):\n"
        "            rc = await rpc.slurm_checkpoint_tasks(job_id, step_id, 0, '/s', 1, nodes)\n"
        "            log.info(f'on {nodes}', rc=rc, error=rpc.slurm_get_errno())\n"
        "        if step is not None:\n",
    )
    (tmp_path / "looker.py").write_text(plugin)
    lines = 'plugins: ["./looker.py:Looker"]\nslurm_conf: {CheckpointType: checkpoint/looker}\n'
    lines += "timeline:\n  - {at: 0s, as: alice, run: srun -N2 sleep 20}\n"
    lines += "  - {at: 10s, as: alice, run: scontrol checkpoint create 1.0}\n"
    ran = run(lines, cluster=FOUR_NODES, folder=tmp_path)
    told: dict[str, Any] = {each.args["text"]: each.args for each in ran.all("plugin_log")}  # type: ignore[index]
    assert (told["on "]["rc"], told["on "]["error"]) == (-1, 22)
    asked = ran.all("REQUEST_CHECKPOINT_TASKS", phase="send", daemon="slurmctld")
    assert [each.peer for each in asked] == ["slurmd@n1"]
