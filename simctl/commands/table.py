"""The commands there are, each imported when a user first runs it."""

from collections.abc import Awaitable
from functools import cache
from importlib import import_module
from typing import Final

from simctl.commands.arguments.bounds import absurd_number
from simctl.site import CommandCall, CommandMain

_MODULES: Final = {
    "sacct": "sacct.command",
    "sacctmgr": "accounts.sacctmgr",
    "salloc": "salloc.command",
    "sbatch": "submission.sbatch",
    "scancel": "scancel.command",
    "scontrol": "scontrol.command",
    "sinfo": "sinfo.command",
    "squeue": "squeue.command",
    "srun": "srun.command",
    "srun_cr": "srun.cr",
    "sshare": "accounts.sshare",
}
"""In which module of `simctl.commands` the function of each command is."""


@cache
def main_of(name: str) -> CommandMain:
    """Return the function of a command."""
    main: CommandMain = getattr(import_module(f"simctl.commands.{_MODULES[name]}"), name)
    return main


def _bounded(name: str) -> CommandMain:
    """Return a command that refuses a number of absurd length among its words and variables."""

    def command(call: CommandCall) -> Awaitable[int]:
        problem = absurd_number(call.argv) or absurd_number(call.env.values())
        return _refuse(call, problem) if problem else main_of(name)(call)

    return command


async def _refuse(call: CommandCall, problem: str) -> int:
    call.err(f"{call.argv[0]}: error: {problem}")
    return 1


COMMANDS: Final[dict[str, CommandMain]] = {name: _bounded(name) for name in _MODULES}
