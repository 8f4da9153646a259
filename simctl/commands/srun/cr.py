"""srun_cr: a srun that a batch script can be checkpointed around.

It runs srun as a child that no image holds, passes signals on to it, and ends as it has ended. srun
tells it by a socket which step it has launched. When an image of the script is about to be written
srun_cr has the tasks of that step saved first; started again from the image, it runs srun again,
whose tasks go on from theirs.
"""

import posixpath
from errno import EIO
from typing import Any, Final

import attrs

from simctl.api import checkpoint
from simctl.kernel.procs import exit_code_of, signal_of
from simctl.site import CommandCall
from simctl.stepd.hosts.child import Child, Signalled
from simctl.stepd.hosts.script_host import ScriptHost
from simctl.stepd.scripts.host import Inherited, Redirects, Stream
from simctl.wire.errno import slurm_strerror
from simctl.wire.ids import SECOND
from simctl.wire.messages import SrunCrConnect

SOCKET: Final = "SLURM_SRUN_CR_SOCKET"
"""Variable in which a srun finds the address of the srun_cr that it runs under."""

_RESTART_DIR: Final = "SLURM_RESTART_DIR"
_MAX_WAIT_S: Final = 60
"""How long the tasks of a step may take to be saved."""

_LIBCR_OMIT: Final = "libcr_omit.so"
"""What `cr_run --omit` has a program loaded with that is not to be saved."""

_FATAL: Final = 1


@attrs.frozen
class _SrunEnded:
    """Tell srun_cr that its srun has ended."""


@attrs.frozen
class _CheckpointFailed:
    """Tell srun_cr that the tasks could not be saved, so that it cannot go on."""


class SrunCr:
    """One run of srun_cr: from a srun's start, the first or one after a restart, to its end."""

    def __init__(self, call: CommandCall) -> None:
        self._call = call
        self._socket = f"/tmp/sock.srun_cr.{call.process.pid}"
        self._step: SrunCrConnect | None = None
        """The step that srun has launched."""

        self._host = ScriptHost(
            call.site,
            call.process,
            user=call.user,
            work_dir=call.work_dir,
            output=lambda descriptor, text: call.write(_STREAMS[descriptor], text),
            ended=lambda _: None,
        )

    async def run(self) -> int:
        """Return the exit status of srun; a signal that ended it counts as in a shell."""
        call = self._call
        addresses = call.site.fabric.addresses
        address = socket_address(self._socket, call.process.host.name)
        call.site.kernel.touch(f"address {address}")
        addresses[address] = call.mailbox
        call.before_image = self._before_image
        try:
            return await self._follow(self._start_srun())
        finally:
            call.before_image = None
            call.site.kernel.touch(f"address {address}")
            del addresses[address]

    def _start_srun(self) -> Child:
        """Start srun; after a restart, with the images of the tasks it had launched."""
        call = self._call
        preload = [each for each in call.env.get("LD_PRELOAD", "").split(":") if each]
        others = [each for each in preload if not each.startswith("libcr_")]
        env = {
            **call.env,
            SOCKET: self._socket,
            "LD_PRELOAD": ":".join((_LIBCR_OMIT, *others)),
        }
        if call.memory and call.memory["launched"]:
            env[_RESTART_DIR] = _images_of_step(call.image, call.memory["launched"])
        pid = self._host.start(("srun", *call.argv[1:]), env, Redirects(stdout=_OUT, stderr=_ERR))
        child = next(each for each in self._host.live_children())

        async def watch() -> None:
            await self._host.wait((pid,))
            call.mailbox.post(_SrunEnded())

        call.process.start(watch, "srun_cr's srun")
        return child

    async def _follow(self, srun: Child) -> int:
        """Pass on what comes until srun has ended."""
        call = self._call
        while True:
            message = (await call.mailbox.receive()).message
            if isinstance(message, _SrunEnded):
                # What follows, follows from srun's end.
                call.process.cause = srun.process.cause
                number = signal_of(srun.status)
                return 128 + number if number else exit_code_of(srun.status)
            if isinstance(message, _CheckpointFailed):
                return _FATAL
            if isinstance(message, SrunCrConnect):
                self._step = message
            elif isinstance(message, Signalled) and not srun.ended:
                self._host.signal_child(srun, message.signal)

    async def _before_image(self, path: str) -> Any:
        """Have the tasks saved beside the image at *path*; return what a restart needs to know.

        Raises:
            OSError: They could not be; srun_cr ends then, and what it runs goes on without it.
        """
        step = self._step
        if step is None:
            return {"launched": ""}
        name = f"{step.job_id}.{step.step_id}"
        if await self._save_tasks(step, _images_of_step(path, name)):
            text = slurm_strerror(self._call.process.errno)
            self._call.err(f"srun_cr: error: failed to checkpoint step {name}: {text}")
            self._call.mailbox.post(_CheckpointFailed())
            raise OSError(EIO, f"step {name}: {text}")
        return {"launched": name}

    async def _save_tasks(self, step: SrunCrConnect, image_dir: str) -> int:
        """Ask the nodes of the step for images of its tasks, as the user."""
        site = self._call.site
        return await checkpoint.tasks(
            self._call.process,
            step.job_id,
            step.step_id,
            site.start_time_s + site.kernel.now_us // SECOND,
            image_dir,
            _MAX_WAIT_S,
            step.node_list,
        )


def _images_of_step(image: str, step: str) -> str:
    """Return where images of a step's tasks lie whose srun_cr is in *image*."""
    return posixpath.join(posixpath.dirname(image), step)


def socket_address(path: str, host: str) -> str:
    """Return by what a socket is found, which is on its own host alone."""
    return f"{path}@{host}"


def tell_srun_cr(call: CommandCall, job_id: int, step_id: int, node_list: str) -> None:
    """Tell the srun_cr that a srun runs under, if any does, which step it has launched."""
    path = call.env.get(SOCKET)
    if path is None:
        return
    box = call.site.fabric.find(socket_address(path, call.process.host.name))
    if box is not None:
        message = SrunCrConnect(job_id=job_id, step_id=step_id, node_list=node_list)
        call.site.fabric.send(call.process, box, message, call.mailbox)


_OUT: Final[Stream] = Inherited(descriptor=1)
_ERR: Final[Stream] = Inherited(descriptor=2)
_STREAMS: Final = {1: "stdout", 2: "stderr"}


async def srun_cr(call: CommandCall) -> int:
    """Run srun so that it can be checkpointed; return its exit status."""
    return await SrunCr(call).run()


__all__ = ["SOCKET", "srun_cr", "tell_srun_cr"]
