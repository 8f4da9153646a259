"""Task prologs and epilogs: as the user, before each task's program and after its end."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import attrs

from simctl.kernel.procs import Process, exit_code_of, wait_status
from simctl.site import Site
from simctl.stepd.environment import edit_environment
from simctl.stepd.script_process import ScriptProcess
from simctl.stepd.tasks import Task

if TYPE_CHECKING:
    from simctl.stepd.work import StepWork

_USER_EPILOG_LIMIT_S: Final = 5
"""How long the epilog of ``srun --task-epilog`` may take; the administrator's has no limit."""


@attrs.frozen
class PrologFailure:
    """A task prolog that failed: what is said of it, and the wait status the task ends with."""

    text: str
    status: int


class TaskScripts:
    """The prologs and epilogs of the tasks of one step daemon."""

    prologs: tuple[tuple[str, str], ...] = ()
    epilogs: tuple[tuple[str, int], ...] = ()

    def __init__(self, site: Site, work: "StepWork") -> None:
        self._site = site
        self._work = work
        conf = site.conf
        if not (conf.task_prolog or conf.task_epilog or work.task_prolog or work.task_epilog):
            return
        self.prologs = tuple(
            (label, path)
            for label, path in (
                ("TaskProlog", conf.task_prolog),
                ("--task-prolog", work.task_prolog),
            )
            if path
        )
        self.epilogs = tuple(
            (path, limit_s)
            for path, limit_s in (
                (work.task_epilog, _USER_EPILOG_LIMIT_S),
                (conf.task_epilog, 0),
            )
            if path
        )

    async def run_prologs(
        self,
        task: Task,
        shown: dict[str, str],
        env: dict[str, str],
        say: Callable[[str], None],
    ) -> PrologFailure | None:
        """Run slurm.conf's prolog and then the user's; what they export goes into *env*.

        Args:
            task: Whose process forks them.
            shown: Their own environment: the task's, and who it is.
            env: What the task's program will start with.
            say: Takes what a prolog prints for the task.

        Returns:
            Why the task may not run, or None.
        """
        for label, path in self.prologs:
            lines: list[str] = []

            def listen(descriptor: int, text: str, lines: list[str] = lines) -> None:
                if descriptor == 1:
                    lines.append(text)

            script = task.prolog = self._script("task_prolog", path, task.process, task, shown)
            script.output = listen
            status = await script.run()
            task.prolog = None
            if status:
                exits = wait_status(exit_code_of(status)) if exit_code_of(status) else status
                return PrologFailure(f"{label} failed status={status}", exits)
            for changed in (shown, env):
                edit_environment("".join(lines), changed, say if changed is env else _unsaid)
        return None

    async def run_epilogs(self, parent: Process, task: Task, env: dict[str, str]) -> None:
        """Run the user's epilog and then slurm.conf's; what they come to changes nothing."""
        for path, limit_s in self.epilogs:
            script = self._script("task_epilog", path, parent, task, env)
            script.limit_s = limit_s
            await script.run()

    def _script(
        self, name: str, path: str, parent: Process, task: Task, env: dict[str, str]
    ) -> ScriptProcess:
        work = self._work
        host = task.process.host.name
        return ScriptProcess(
            site=self._site,
            parent=parent,
            name=name,
            path=path,
            user=work.user,
            env={**env, "SLURMD_NODENAME": host},
            job_id=work.job.job_id,
            step=task.process.step,
            task=task.rank,
            work_dir=work.work_dir,
        )


def _unsaid(_text: str) -> None:
    """Drop a line that has been said already."""
