"""What srun knows of the tasks of its step, and what it says of their ends."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from simctl.kernel.procs import SIGKILL, SIGTERM, exit_code_of, signal_of
from simctl.wire.conf.slurm_conf import SlurmConf
from simctl.wire.errno import slurm_strerror
from simctl.wire.layout import StepLayout

_SIGNAL_TEXT: Final = {
    1: "Hangup",
    2: "Interrupt",
    3: "Quit",
    4: "Illegal instruction",
    6: "Aborted",
    7: "Bus error",
    8: "Floating point exception",
    9: "Killed",
    10: "User defined signal 1",
    11: "Segmentation fault",
    12: "User defined signal 2",
    13: "Broken pipe",
    14: "Alarm clock",
    15: "Terminated",
    24: "CPU time limit exceeded",
    125: "Out Of Memory",
}


@attrs.frozen(kw_only=True)
class Guard:
    """What lets srun end a step before all of its tasks have ended.

    `wait_s` is how long it goes on once a task has ended, 0 for as long as it takes.
    """

    kill_on_bad_exit: bool = False
    wait_s: int = 0

    @classmethod
    def of(cls, options: Mapping[str, Any], env: Mapping[str, str], conf: SlurmConf) -> "Guard":
        """Return what options say, or else the environment, or else slurm.conf."""
        kill = env.get("SLURM_KILL_BAD_EXIT", "")
        wait = env.get("SLURM_WAIT", "")
        return cls(
            kill_on_bad_exit=options.get(
                "kill-on-bad-exit", kill != "0" if kill else conf.kill_on_bad_exit
            ),
            wait_s=options.get("wait", int(wait) if wait.isdecimal() else conf.wait_time_s),
        )


class TaskBook:
    """The tasks of a step by rank: still out, ended with a wait status, or never started."""

    def __init__(self, layout: StepLayout) -> None:
        self.layout = layout
        self._out = layout.num_tasks
        self._ended: dict[int, int] = {}
        self._node_of: dict[int, str] = {}
        self._launch_rc = 0
        self.killed = False
        """A task was seen to die of SIGKILL or SIGTERM."""

    @property
    def complete(self) -> bool:
        """Return whether nothing more is to come."""
        return not self._out

    def _end(self, ranks: Iterable[int], status: int) -> list[int]:
        new = [rank for rank in ranks if rank not in self._ended]
        for rank in new:
            self._ended[rank] = status
        self._out -= len(new)
        return new

    def exited(self, ranks: tuple[int, ...], status: int) -> list[str]:
        """Note that tasks ended with a wait status; return what srun prints."""
        new = self._end(ranks, status)
        if not status or not new:
            return []
        self.killed = self.killed or signal_of(status) in (SIGKILL, SIGTERM)
        text = _SIGNAL_TEXT.get(signal_of(status), f"Signal {signal_of(status)}")
        if not signal_of(status):
            text = f"Exited with exit code {exit_code_of(status)}"
        return [f"srun: error: {self._place(new)}: {text}"]

    def completed(self, ranks: tuple[int, ...]) -> str:
        """Return what is told of tasks that have ended well."""
        return f"{self._place(list(ranks))}: Completed"

    def _place(self, ranks: list[int]) -> str:
        noun = "task" if len(ranks) == 1 else "tasks"
        return f"{self._node(ranks[0])}: {noun} {_ranges(ranks)}"

    def not_launched(self, ranks: tuple[int, ...], return_code: int) -> list[str]:
        """Note that a step daemon could not start its tasks; they count as done."""
        self._end(ranks, 0)
        text = slurm_strerror(return_code)
        return [f"srun: error: task {rank} launch failed: {text}" for rank in ranks]

    def launch_failed(self, nodeid: int, return_code: int) -> None:
        """Note that a node refused its tasks."""
        self._launch_rc = max(self._launch_rc, return_code)
        self._end(self.layout.tids[nodeid], 0)

    def lost(self, node: str, *, counts: bool) -> None:
        """Note that a node is gone with its tasks; unless it *counts*, that is no failure."""
        if node in self.layout.nodes:
            tids = self.layout.tids[self.layout.nodes.index(node)]
            self._end(tids, SIGKILL if counts else 0)

    def is_over_on(self, node: str) -> bool:
        """Return whether all tasks of a node have ended."""
        layout = self.layout
        return all(rank in self._ended for rank in layout.tids[layout.nodes.index(node)])

    def states(self) -> list[str]:
        """Return which tasks run still and which have ended, as srun tells it."""
        ended = self._ended
        groups = {
            "running": [rank for rank in range(self.layout.num_tasks) if rank not in ended],
            "exited": [rank for rank, status in ended.items() if not status],
            "exited abnormally": [rank for rank, status in ended.items() if status],
        }
        return [
            f"{'task' if len(ranks) == 1 else 'tasks'} {_ranges(ranks)}: {what}"
            for what, ranks in groups.items()
            if ranks
        ]

    def give_up(self) -> None:
        """Note that nothing more will be heard of the tasks that are still out."""
        self._end(range(self.layout.num_tasks), 9)

    def _node(self, rank: int) -> str:
        if not self._node_of:
            self._node_of = {
                each: node
                for node, tids in zip(self.layout.nodes, self.layout.tids, strict=True)
                for each in tids
            }
        return self._node_of[rank]

    def worst_status(self) -> int:
        """Return the wait status that the job ends with."""
        if self._launch_rc:
            return self._launch_rc
        return max(self._ended.values(), key=_severity, default=0)

    def exit_status(self) -> int:
        """Return srun's own exit status: the greatest of its tasks', 128 + N for signal N."""
        if self._launch_rc:
            return self._launch_rc & 0xFF
        return max(map(_severity, self._ended.values()), default=0)


def _severity(status: int) -> int:
    signal = signal_of(status)
    return 128 + signal if signal else exit_code_of(status)


def _ranges(ranks: list[int]) -> str:
    """Return ``0-2,5``."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and runs[-1][1] == rank - 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
