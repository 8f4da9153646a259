"""What the tasks of a step find on their standard input, as srun's --input says."""

from collections.abc import Mapping
from typing import Any

from simctl.commands.srun.step_output import EACH_TASK, task_file
from simctl.site import CommandCall
from simctl.wire.messages import StepLaunch


class InputError(Exception):
    """A file cannot be read that tasks were to have as their standard input."""


def step_inputs(
    call: CommandCall, options: Mapping[str, Any], launch: StepLaunch
) -> tuple[str, ...]:
    """Return the standard input of all tasks alike, of each task by rank, or nothing.

    ``all`` stands for srun's own, ``none`` for nothing, the number of a task for srun's own in that
    task alone. All else is a file, and one of each task where its name has fields of tasks.

    Raises:
        InputError: The file cannot be read.
    """
    mode = options.get("input", "all")
    count = launch.layout.num_tasks
    if mode == "none":
        return ()
    if mode == "all":
        return (call.stdin,) if call.stdin else ()
    if mode.isdecimal() and int(mode) < count:
        return tuple(call.stdin if rank == int(mode) else "" for rank in range(count))
    ranks = range(count) if EACH_TASK.search(mode) else (0,)
    return tuple(_read(call, task_file(call, launch, mode, rank)) for rank in ranks)


def _read(call: CommandCall, path: str) -> str:
    try:
        return call.files.read(path).decode(errors="replace")
    except OSError as error:
        raise InputError(f"Could not open stdin file: {error.strerror}") from error
