"""What slurmstepd offers to the checkpoint plugin that runs in it and in its tasks."""

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

import attrs

from simctl.api.slurmctld import ScriptResult
from simctl.api.surroundings import OutsideCallError, caller
from simctl.kernel.procs import Process


@attrs.frozen(kw_only=True)
class StepdTask:
    """A task of the step on this node: its pid, its rank in the step and on the node.

    One that is not `alive` has ended.
    """

    pid: int
    gtid: int
    procid: int
    alive: bool


class Executed(BaseException):
    """Raised through a plugin's function whose process has become another program.

    Like the end of a process it must pass through whatever code runs.
    """

    def __init__(self, argv: tuple[str, ...], env: dict[str, str] | None) -> None:
        super().__init__(argv)
        self.argv = argv
        self.env = env


class Services(Protocol):
    """What `stepd` of `simctl.plugin` stands for in a step daemon."""

    @property
    def job(self) -> Any:
        """Return the step as checkpoint plugins are given it; a `simctl.plugin.StepdJob`."""

    @property
    def nnodes(self) -> int:
        """Return how many nodes the step has."""

    @property
    def tids(self) -> tuple[int, ...]:
        """Return the ranks in the step of the tasks that this node has, or is to have."""

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of the step."""

    @property
    def uid(self) -> int:
        """Return the uid of the step's user."""

    @property
    def gid(self) -> int:
        """Return the gid of the step's user."""

    @property
    def cwd(self) -> str:
        """Return where the tasks start."""

    def tasks(self) -> tuple[StepdTask, ...]:
        """Return the tasks of this node."""

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
        """Run a script to its end."""

    def execute(self, argv: tuple[str, ...], env: Mapping[str, str] | None) -> NoReturn:
        """Have the calling task become another program."""


def _services(what: str) -> tuple[Services, Process]:
    process = caller(f"stepd.{what}")
    services: Services | None = process.stepd
    if services is None:
        raise OutsideCallError(
            f"stepd.{what} (asked for by {process.daemon}, which is no process of a slurmstepd)"
        )
    return services, process


class Stepd:
    """The step daemon as a plugin finds it that runs in it, in its session manager or its tasks."""

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment that the step's tasks get.

        What `slurm_ckpt_stepd_prefork` sets in it they have; later nothing changes any more.
        """
        return _services("environment")[0].environment

    @property
    def uid(self) -> int:
        """Return the uid of the step's user."""
        return _services("uid")[0].uid

    @property
    def gid(self) -> int:
        """Return the gid of the step's user."""
        return _services("gid")[0].gid

    @property
    def cwd(self) -> str:
        """Return the directory that the step's tasks start in."""
        return _services("cwd")[0].cwd

    def tasks(self) -> tuple[StepdTask, ...]:
        """Return the tasks of this node, by their rank on it; none before they are forked."""
        return _services("tasks()")[0].tasks()

    async def run_script(
        self,
        path: str,
        *argv: str,
        name: str = "",
        as_user: bool = True,
        cwd: str = "",
        timeout: float | None = None,  # noqa: ASYNC109 - virtual time
        env: Mapping[str, str] | None = None,
    ) -> ScriptResult:
        """Run a script in a child process of this one, and wait for its end.

        The caller is blocked; several run at a time if each is awaited in a thread of its own
        (`start`). If the thread that waits ends, the script is killed.

        Args:
            path: The executable: described under `programs:` of the scenario, or in `files:`, or
                simctl's cr_checkpoint.sh in any directory.
            argv: Its arguments.
            name: The name of the script's event in the trace; the file's name if left out.
            as_user: Whether the child becomes the step's user; else it stays what this process is.
            cwd: Where it starts; in the step's directory if left out.
            timeout: After how many seconds it is killed.
            env: Its environment; the step's if left out.
        """
        services, process = _services("run_script()")
        return await services.run_script(
            process,
            path,
            argv,
            name=name or path.rpartition("/")[2],
            as_user=as_user,
            cwd=cwd,
            timeout=timeout,
            env=env,
        )

    async def execve(self, path: str, *argv: str, env: Mapping[str, str] | None = None) -> NoReturn:
        """Have the calling task become another program, such as cr_restart.sh; never come back.

        Args:
            path: The executable, found as `run_script` finds it.
            argv: Its arguments.
            env: Its environment; the task's if left out.

        Raises:
            SlurmError: There is no such program (ENOENT), or it cannot be executed (EACCES).
            OutsideCallError: The process is no task.
        """
        services, process = _services("execve()")
        if process.role != "task":
            raise OutsideCallError(
                f"stepd.execve() (asked for by {process.role}, which is no task)"
            )
        services.execute((path, *argv), env)


__all__ = ["Executed", "Services", "Stepd", "StepdTask"]
