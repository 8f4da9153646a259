"""Where srun puts what the tasks of its step write."""

import posixpath
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from simctl.commands.arguments.options import variable
from simctl.kernel.disk import DiskView
from simctl.site import CommandCall
from simctl.wire.filenames import fill_in
from simctl.wire.ids import NO_VAL
from simctl.wire.messages import StepLaunch, TaskOutput


class StepOutput:
    """The output of a step: srun's own, with --label by rank, or files.

    A file called ``all`` stands for srun's own, ``none`` for nowhere, and a number for the output
    of that rank alone.
    """

    def __init__(self, call: CommandCall, options: Mapping[str, Any], launch: StepLaunch) -> None:
        self._call = call
        self._options = options
        self._launch = launch
        self._opened: dict[str, None] = {}
        self._appends = options.get("open-mode") == "append"

    def show(self, message: TaskOutput) -> None:
        """Write what a task wrote; with --label each line bears its rank."""
        text = message.text
        if "label" in self._options:
            text = "".join(f"{message.task_id}: {line}" for line in text.splitlines(keepends=True))
        target = self._target(message.stream)
        if target == "none" or (target.isdecimal() and int(target) != message.task_id):
            return
        if target in _OWN:
            self._call.write(_OWN[target], text)
        elif target and target != "all" and not target.isdecimal():
            path = task_file(self._call, self._launch, target, message.task_id)
            # A file is emptied when the step first writes to it.
            try:
                self._call.site.disk.write(
                    path,
                    text,
                    self._call.work_dir,
                    append=path in self._opened or self._appends,
                    host=self._call.process.host.name,
                    uid=self._call.process.uid,
                )
            except OSError as error:
                if path not in self._opened:
                    self._call.err(f"srun: error: Could not write to {path}: {error.strerror}")
            self._opened[path] = None
        else:
            self._call.write(message.stream, text)

    def _target(self, stream: str) -> str:
        """Return what the options say of a stream; without a word errors go where output does."""
        target: str = self._options.get("output" if stream == "stdout" else "error", "")
        return target or (self._options.get("output", "") if stream == "stderr" else "")

    def open(self) -> str:
        """Make the files of the whole step; return what is told of one that cannot be made."""
        call = self._call
        files = call.site.disk.view(call.process.host.name, call.process.uid, call.work_dir)
        for stream in ("stdout", "stderr"):
            target = self._target(stream)
            path = task_file(call, self._launch, target, 0)
            if target in ("", "all", "none", *_OWN) or target.isdecimal() or path in self._opened:
                continue
            if EACH_TASK.search(target):
                continue
            try:
                _make_directories(files, posixpath.dirname(path))
                files.append(path, "") if self._appends else files.write(path, "")
            except OSError as error:
                return f"Could not open {stream} file: {error.strerror}"
            self._opened[path] = None
        return ""


def task_file(call: CommandCall, launch: StepLaunch, pattern: str, rank: int) -> str:
    """Return the name of the file that a pattern comes to for a task."""
    layout = launch.layout
    nodeid = next((at for at, tids in enumerate(layout.tids) if rank in tids), 0)
    array, task = (variable(call.env, f"SLURM_ARRAY_{name}") for name in ("JOB_ID", "TASK_ID"))
    in_array = NO_VAL not in (array, task)
    return fill_in(
        pattern,
        job_id=launch.job_id,
        user=call.user.name,
        job_name=launch.job_name,
        node=layout.nodes[nodeid],
        nodeid=nodeid,
        step=str(launch.step_id),
        rank=rank,
        array_job_id=array if in_array else 0,
        array_task_id=task if in_array else NO_VAL,
    )


def _make_directories(files: DiskView, path: str) -> None:
    """Make a directory and those it is in; what may not be made is found missing afterwards."""
    if path and not files.exists(path):
        _make_directories(files, posixpath.dirname(path))
        with suppress(PermissionError):
            files.mkdir(path)


_OWN: Final = {"/dev/stdout": "stdout", "/dev/stderr": "stderr"}
"""Names of what is srun's own already."""

EACH_TASK: Final = re.compile(r"(?<!%)(?:%%)*%\d*[tnN]")
"""Fields for which each task has a file of its own, made where the task is."""
