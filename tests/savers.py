"""A checkpoint plugin of the tests: every task into an image, one after another."""

from simctl.plugin import (
    CheckOp,
    CheckpointPlugin,
    SlurmError,
    StepdJob,
    StepRecord,
    errno,
    hostlist,
    log,
    process,
    rpc,
    sleep,
    slurmctld,
    start,
    stepd,
)


class Saver(CheckpointPlugin):
    """Saves tasks with cr_checkpoint.sh, and restarts them with cr_restart.sh."""

    plugin_type = "checkpoint/saver"
    plugin_name = "saves tasks for tests"

    def slurm_ckpt_op(
        self,
        job_id: int,
        step_id: int,
        step_ptr: StepRecord | None,
        op: int,
        data: int,
        image_dir: str,
    ) -> int:
        """Begin a checkpoint, after which VACATE ends the step and CREATE lets it be."""
        if op not in (CheckOp.CREATE, CheckOp.VACATE):
            raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
        job = slurmctld.find_job(job_id)
        assert job is not None
        nodes = step_ptr.nodes if step_ptr is not None else hostlist(job.nodes)[0]
        begun = slurmctld.time()

        async def save() -> None:
            rc = await rpc.slurm_checkpoint_tasks(job_id, step_id, begun, image_dir, 60, nodes)
            log.info("saved", rc=rc, errno=rpc.slurm_get_errno() if rc else 0)
            if op == CheckOp.VACATE:
                async with slurmctld.locked():
                    await slurmctld.signal_step(job_id, step_id, 9)

        start(save)
        return 0

    async def slurm_ckpt_signal_tasks(self, slurmd_job: StepdJob, image_dir: str) -> int:
        """Save every task that is alive; the first that cannot be ends it."""
        for task in stepd.tasks():
            if not task.alive:
                continue
            name = "script" if slurmd_job.batch else f"task.{task.gtid}"
            result = await stepd.run_script(
                "/usr/sbin/cr_checkpoint.sh", str(task.pid), f"{image_dir}/{name}.ckpt"
            )
            if not result.ok:
                log.error(result.error)
                raise SlurmError(errno.EIO)
        return 0

    async def slurm_ckpt_restart_task(self, slurmd_job: StepdJob, image_dir: str, gtid: int) -> int:
        """Become the task of an image."""
        name = "script" if slurmd_job.batch else f"task.{gtid}"
        await stepd.execve("/usr/sbin/cr_restart.sh", f"{image_dir}/{name}.ckpt")


class Curious(CheckpointPlugin):
    """Does in the step daemon what the environment of the step says, and logs what it finds."""

    plugin_type = "checkpoint/curious"
    plugin_name = "looks around for tests"

    def slurm_ckpt_stepd_prefork(self, slurmd_job: StepdJob) -> int:
        """Change the environment; or spoil it."""
        env = stepd.environment
        log.info("prefork", tasks=len(stepd.tasks()), uid=stepd.uid, gid=stepd.gid, cwd=stepd.cwd)
        env["LD_PRELOAD"] = "libcr_run.so"
        if env.pop("SPOIL", ""):
            env["LD_PRELOAD"] = 7  # type: ignore[assignment]
        return 0

    async def slurm_ckpt_signal_tasks(self, slurmd_job: StepdJob, image_dir: str) -> int:
        """Take as many seconds as image_dir says, or run the script that it names, or fail."""
        me = process()
        tasks = [(task.gtid, task.procid, task.alive) for task in stepd.tasks()]
        log.info("signal_tasks", role=me.role, euid=me.euid, tasks=str(tasks))
        word = image_dir.strip("/")
        if word.isdecimal():
            await sleep(int(word))
        elif word == "fail":
            raise SlurmError(errno.EIO)
        else:
            as_user = not word.startswith("root")
            ended = await stepd.run_script(
                image_dir, "a", "b", as_user=as_user, cwd="/tmp", timeout=5, env={"ONE": "1"}
            )
            log.info(
                "ran", status=ended.status, timed_out=ended.timed_out, output=ended.output.strip()
            )
        return 0

    async def slurm_ckpt_restart_task(self, slurmd_job: StepdJob, image_dir: str, gtid: int) -> int:
        """Execute what image_dir names, fail, or come back."""
        if image_dir == "/fail":
            raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
        if image_dir != "/back":
            await stepd.execve(image_dir, "x", env={"GTID": str(gtid)})
        return 0
