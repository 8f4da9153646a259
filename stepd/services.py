"""What a step daemon offers to its checkpoint plugin, behind `stepd` of `simctl.plugin`."""

from collections.abc import Mapping
from typing import NoReturn

from msgspec import UNSET

from simctl.api.slurmctld import ScriptResult
from simctl.api.stepd import Executed, StepdTask
from simctl.kernel.procs import Process
from simctl.plugin import StepdJob
from simctl.site import ScriptMain, Site, User
from simctl.stepd.outcome import ProgramRun
from simctl.stepd.programs import CHECKPOINT_HELPER
from simctl.stepd.script_process import ScriptProcess
from simctl.stepd.tasks import TaskSet
from simctl.stepd.work import StepWork
from simctl.wire.errno import SlurmError


class StepServices:
    """The services of one step daemon."""

    def __init__(self, site: Site, work: StepWork, tasks: TaskSet, host: str) -> None:
        self._site = site
        self._work = work
        self._tasks = tasks
        self._files = site.disk.view(host, work.user.uid, work.work_dir)

    @property
    def job(self) -> StepdJob:
        """Return the step as checkpoint plugins are given it."""
        return self._work.job

    @property
    def nnodes(self) -> int:
        """Return how many nodes the step has."""
        return self._work.nnodes

    @property
    def tids(self) -> tuple[int, ...]:
        """Return the ranks in the step of the tasks that this node has, or is to have."""
        return self._work.tids

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of the step."""
        return self._work.env

    @property
    def uid(self) -> int:
        """Return the uid of the step's user."""
        return self._work.user.uid

    @property
    def gid(self) -> int:
        """Return the gid of the step's user."""
        return self._work.user.gid

    @property
    def cwd(self) -> str:
        """Return where the tasks start."""
        return self._work.work_dir

    def tasks(self) -> tuple[StepdTask, ...]:
        """Return the tasks of this node."""
        return tuple(
            StepdTask(
                pid=task.process.pid, gtid=task.rank, procid=task.procid, alive=not task.ended
            )
            for task in self._tasks.tasks
        )

    async def run_script(
        self,
        parent: Process,
        path: str,
        argv: tuple[str, ...],
        *,
        name: str,
        as_user: bool,
        cwd: str,
        timeout: float | None,  # noqa: ASYNC109 - virtual time
        env: Mapping[str, str] | None,
    ) -> ScriptResult:
        """Run a script as a child of *parent*, and wait for its end."""
        work = self._work
        written: dict[int, list[str]] = {1: [], 2: []}
        script = ScriptProcess(
            site=self._site,
            parent=parent,
            name=name,
            path=path,
            argv=argv,
            user=work.user if as_user else User(name="root", uid=parent.uid, gid=0),
            env=work.env if env is None else env,
            job_id=work.job.job_id,
            step=parent.step,
            task=UNSET,
            work_dir=cwd or work.work_dir,
            limit_s=timeout or 0,
            output=lambda descriptor, text: written[descriptor].append(text),
            answer=self._answer(path),
        )
        with self._site.kernel.counting():
            status = await script.run()
        return ScriptResult(
            status=status,
            output="".join(written[1]),
            error="".join(written[2]),
            timed_out=script.timed_out,
        )

    def _answer(self, path: str) -> ScriptMain | None:
        """Return what runs in place of what a path names: the helper that writes images."""
        if self._site.programs.helper(path, self._files) == CHECKPOINT_HELPER:
            main: ScriptMain = self._site.images.checkpoint
            return main
        return None

    def execute(self, argv: tuple[str, ...], env: Mapping[str, str] | None) -> NoReturn:
        """Have a task become another program."""
        run = self._site.programs.find(argv, 0, self._files)
        if isinstance(run, ProgramRun) and run.exec_errno:
            raise SlurmError(run.exec_errno)
        raise Executed(argv, None if env is None else dict(env))
