"""Where checkpoint images are written and read: their time, their space, and who may have them.

Two helper programs do it, as they do for the real checkpoint/blcr: cr_checkpoint.sh saves a process
into a file, and cr_restart.sh becomes the process of a file. They are there under their names in
any directory, unless the scenario describes a program of that path.
"""

import posixpath
from contextlib import suppress
from typing import Any, Final

import attrs

from simctl.kernel.bandwidth import Bandwidth
from simctl.kernel.disk import Disk, DiskView, no_space
from simctl.kernel.procs import Process, wait_status
from simctl.kernel.threads import Thread
from simctl.kernel.turns import Kernel
from simctl.site import ScriptCall
from simctl.stepd.image_file import (
    Image,
    ImageError,
    ScriptState,
    State,
    decode,
    total_size,
)
from simctl.stepd.programs import CHECKPOINT_HELPER, RESTART_HELPER, script_of
from simctl.stepd.tasks import Task, nobody

_GIB: Final = 1 << 30
_SHARED: Final = "images"
_USAGE: Final = 2


@attrs.frozen(kw_only=True)
class ImagesSpec:
    """What a scenario says of checkpoint images.

    `bandwidth` is in bytes a second, shared by all images that are written or read at a time;
    `space` is how many bytes all images together may take.
    """

    bandwidth: int = _GIB
    space: int = 1024 * _GIB


class Images:
    """The checkpoint images of a run, and the tasks that can be saved into one."""

    def __init__(self, spec: ImagesSpec, *, kernel: Kernel, disk: Disk, enabled: bool) -> None:
        self.enabled = enabled
        """Whether there are checkpoints at all; without them no journals are kept."""

        self._kernel = kernel
        self._disk = disk
        self._bandwidth = Bandwidth(kernel, spec.bandwidth)
        self._space = spec.space
        self._sizes: dict[tuple[str, str], int] = {}
        self._under_way: dict[tuple[str, str], int] = {}
        """Of the images that are being written, by the place that each will have."""

        self._tasks: dict[int, Task] = {}
        self._saving: dict[int, str] = {}

    def watch(self, task: Task) -> None:
        """Add a task that has begun its program, so that it can be saved."""
        if self.enabled:
            self._tasks[task.process.pid] = task

    def forget(self, task: Task) -> None:
        """Forget a task that has ended."""
        self._tasks.pop(task.process.pid, None)

    # Saving.

    async def checkpoint(self, call: ScriptCall) -> int:
        """Be cr_checkpoint.sh PID IMAGE; return a wait status."""
        match call.argv[1:]:
            case (pid, path) if pid.isascii() and pid.isdecimal():
                problem = await self._checkpoint(call, int(pid), path)
            case _:
                call.write(2, f"usage: {CHECKPOINT_HELPER} PID IMAGE\n")
                return wait_status(_USAGE)
        if problem:
            call.write(2, f"{CHECKPOINT_HELPER}: {problem}\n")
        return wait_status(1 if problem else 0)

    async def _checkpoint(self, call: ScriptCall, pid: int, path: str) -> str:
        """Save a process; return what stood in the way, or nothing."""
        self._kernel.touch(_SHARED)
        self._kernel.look_at_number()
        if pid in self._saving:
            return f"process {pid} is being saved into {self._saving[pid]} already"
        where = Disk.resolve(path, call.work_dir)
        try:
            task = self._task(call.process, pid)
        except ImageError as error:
            return str(error)
        self._saving[pid] = where
        try:
            await self._save(call.process, task, where)
        except OSError as error:
            return f"{where}: {error.strerror or error}"
        except ImageError as error:
            return f"process {pid}: {error}"
        finally:
            self._kernel.touch(_SHARED)
            del self._saving[pid]
        return ""

    def _task(self, saver: Process, pid: int) -> Task:
        """Return the task that is the process *pid*, if *saver* may save it."""
        process = saver.host.processes.get(pid)
        if process is None:
            raise ImageError(f"process {pid}: No such process")
        task = self._tasks.get(pid)
        if task is None:
            raise ImageError(f"process {pid}: only tasks of a step can be saved")
        if saver.uid not in (0, process.uid):
            raise ImageError(f"process {pid}: Operation not permitted")
        return task

    async def _save(self, saver: Process, task: Task, where: str) -> None:
        """Stop a task, write its image, and let it go on."""
        files = self._disk.view(saver.host.name, saver.uid)
        _make_directory(files, posixpath.dirname(where))
        memories: dict[int, Any] = {}
        for command in task.commands():
            if command.before_image is not None:
                memories[command.process.pid] = await command.before_image(where)
        if task.ended:
            raise ImageError("it has ended")
        beside = f"{posixpath.dirname(where)}/.{posixpath.basename(where)}.tmp"
        files.write(beside, b"")
        task.pause()
        try:
            image = _image(task, memories)
            await self._write(saver.host.name, files, beside, where, image, task)
        except (ImageError, OSError):
            with suppress(OSError):
                files.remove(beside)
            raise
        finally:
            task.gone = nobody
            task.unpause()

    async def _write(
        self, host: str, files: DiskView, beside: str, where: str, image: Image, task: Task
    ) -> None:
        """Move the bytes of an image; it is there all at once, in the place of an older one."""
        place = self._disk.place(host, where)
        self._kernel.touch(_SHARED)
        if self._used(apart_from=place) + image.size > self._space:
            raise no_space(where)
        self._under_way[place] = image.size
        try:
            thread = self._kernel.current
            assert thread is not None
            task.gone = _Waking(self._kernel, thread)
            await self._bandwidth.move(image.size, lambda: task.ended)
            if task.ended:
                raise ImageError("it has ended")
            files.write(beside, image.encode())
            files.rename(beside, where)
        finally:
            self._kernel.touch(_SHARED)
            self._under_way.pop(place, None)
        self._sizes[place] = image.size

    def _used(self, *, apart_from: tuple[str, str]) -> int:
        """Return how many bytes the images take that are still there, or are being written.

        One that is being replaced and the one that replaces it take the space of the larger.
        """
        self._sizes = {
            place: size
            for place, size in self._sizes.items()
            if self._disk.find(*place) is not None
        }
        sizes = dict(self._sizes)
        for place, size in self._under_way.items():
            sizes[place] = max(size, sizes.get(place, 0))
        sizes.pop(apart_from, None)
        return sum(sizes.values())

    # Restarting.

    async def load(self, process: Process, where: str) -> Image:
        """Read the image that *process* is to go on from; *where* is its path from the root on.

        Raises:
            ImageError: There is none that could be restarted here; the text says why.
        """
        try:
            data = self._disk.view(process.host.name, process.uid).read(where)
            image = decode(data)
            _check_owner(process, image)
            _check_scripts(image.state)
        except OSError as error:
            raise ImageError(f"{RESTART_HELPER}: {where}: {error.strerror}") from None
        except ImageError as error:
            raise ImageError(f"{RESTART_HELPER}: {where}: {error}") from None
        await self._bandwidth.move(image.size, lambda: process.exited)
        return image


def _make_directory(files: DiskView, path: str) -> None:
    """Make the directory of a job's or a step's images; the one it is in must be there."""
    if not files.is_dir(path):
        with suppress(FileExistsError):
            files.mkdir(path)


@attrs.frozen
class _Waking:
    """Wakes the writer of the image of a task that ends."""

    kernel: Kernel
    thread: Thread

    def __call__(self) -> None:
        self.kernel.wake(self.thread)


def _image(task: Task, memories: dict[int, Any]) -> Image:
    """Return the image of a task as it is at present."""
    state = task.state(memories)
    process = task.process
    return Image(
        job=process.job if isinstance(process.job, int) else 0,
        step=process.step if isinstance(process.step, str) else "",
        task=task.rank,
        uid=process.uid,
        program=state.argv[0],
        size=total_size(state),
        state=state,
    )


def _check_scripts(state: State) -> None:
    """Refuse an image with a script that no shell could read."""
    if not isinstance(state, ScriptState):
        return
    script_of(state)
    for child in state.children:
        if child.state is not None:
            _check_scripts(child.state)


def _check_owner(process: Process, image: Image) -> None:
    """Refuse the image of another user, job or task.

    Which step it was does not matter: a step that is restarted has another number.
    """
    if image.uid != process.uid:
        raise ImageError(f"this is an image of uid {image.uid}, and the task is of {process.uid}")
    job = process.job if isinstance(process.job, int) else 0
    if image.job != job:
        raise ImageError(f"this is an image of job {image.job}, and the task is of job {job}")
    step = process.step if isinstance(process.step, str) else ""
    if image.step.endswith(".batch") != step.endswith(".batch"):
        raise ImageError(f"this is an image of step {image.step}, and the task is of step {step}")
    if image.task != process.task:
        raise ImageError(f"this is an image of task {image.task}, not of task {process.task}")
