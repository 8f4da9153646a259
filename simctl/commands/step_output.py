"""Where srun puts what the tasks of its step write."""

from collections.abc import Mapping
from typing import Any

from simctl.plugins.site import CommandCall
from simctl.wire.filenames import fill_in
from simctl.wire.messages import TaskOutput


class StepOutput:
    """The output of a step: srun's own, with --label by rank, or files.

    A file called ``all`` stands for srun's own, ``none`` for nowhere, and a number for the output
    of that rank alone.
    """

    def __init__(self, call: CommandCall, options: Mapping[str, Any], name: str) -> None:
        self._call = call
        self._options = options
        self._name = name
        self._opened: dict[str, None] = {}
        self._appends = options.get("open-mode") == "append"

    def show(self, message: TaskOutput) -> None:
        """Write what a task wrote; with --label each line bears its rank."""
        text = message.text
        if "label" in self._options:
            text = "".join(f"{message.task_id}: {line}" for line in text.splitlines(keepends=True))
        target = self._options.get("output" if message.stream == "stdout" else "error", "")
        if not target and message.stream == "stderr":
            target = self._options.get("output", "")
        if target == "none" or (target.isdecimal() and int(target) != message.task_id):
            return
        if target and target != "all" and not target.isdecimal():
            path = fill_in(
                target,
                job_id=message.job_id,
                user=self._call.user.name,
                job_name=self._name,
                node="",
                step=str(message.step_id),
                rank=message.task_id,
            )
            # A file is emptied when the step first writes to it.
            self._call.site.disk.write(
                path,
                text,
                self._call.work_dir,
                append=path in self._opened or self._appends,
                host=self._call.process.host.name,
                uid=self._call.process.uid,
            )
            self._opened[path] = None
        else:
            self._call.write(message.stream, text)
