"""Executables of the real machine, run while virtual time stands still."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import trio

from simctl.kernel.procs import SIGKILL, wait_status
from simctl.kernel.turns import Kernel

MOST_S: Final = 60.0
"""How many seconds of real time a real executable has at most."""

MOST_OUTPUT: Final = 1 << 20
"""How many bytes of each of its outputs are kept; what is more is read and dropped."""

_CHUNK: Final = 1 << 16
_PAUSE_S: Final = 0.02
_GRACE_S: Final = 0.5
"""How long its outputs are read after its end, where something it left behind holds them open."""

_NOT_EXECUTABLE: Final = 126


@attrs.frozen(kw_only=True)
class RealRun:
    """How a real executable ended."""

    status: int
    output: str = ""
    error: str = ""
    timed_out: bool = False


def is_executable(path: str) -> bool:
    """Return whether there is something on the real machine that *path* could execute."""
    return path.startswith("/") and os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113 - a text


async def run_real(
    kernel: Kernel,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    work_dir: str,
    limit_s: float = 0,
) -> RealRun:
    """Run an executable of the real machine to its end, in no virtual time.

    Whatever ends the run of the simulation meanwhile, such as Ctrl-C, kills it and all that it has
    started.

    Args:
        kernel: Holds virtual time.
        argv: Its path and its arguments.
        env: Its environment; PATH is simctl's own where it has none.
        work_dir: A real folder.
        limit_s: After how many seconds of real time it is killed; 0 stands for `MOST_S`, which is
            also the most.
    """
    running = _Running(argv, {"PATH": os.environ.get("PATH", os.defpath), **env}, work_dir)
    limit_s = min(limit_s or MOST_S, MOST_S)
    async with kernel.outside():
        try:
            return await trio.to_thread.run_sync(running.run, limit_s, abandon_on_cancel=True)
        finally:
            running.abandon()


class _Running:
    """One real process, watched from a thread."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], work_dir: str) -> None:
        self._argv = argv
        self._env = env
        self._work_dir = work_dir if os.path.isdir(work_dir) else "/"  # noqa: PTH112 - a text
        self._process: subprocess.Popen[bytes] | None = None
        self._over = False
        self._abandoned = False

    def run(self, limit_s: float) -> RealRun:
        """Run it and collect what it writes."""
        try:
            self._process = process = subprocess.Popen(
                self._argv,
                env=dict(self._env),
                cwd=self._work_dir,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._over = True
            text = f"{self._argv[0]}: {getattr(error, 'strerror', None) or error}\n"
            return RealRun(status=wait_status(_NOT_EXECUTABLE), error=text)
        with process:
            if self._abandoned:
                self._kill()
            kept = self._collect(process, time.monotonic() + limit_s)
            timed_out = process.poll() is None
            if timed_out:
                self._kill()
            code = process.wait()
            self._over = True
        return RealRun(
            status=-code if code < 0 else wait_status(code),
            output=kept[0].decode(errors="replace"),
            error=kept[1].decode(errors="replace"),
            timed_out=timed_out,
        )

    def _collect(
        self, process: "subprocess.Popen[bytes]", until_s: float
    ) -> tuple[bytearray, bytearray]:
        """Read both outputs until they end, the process has ended, or its time is up."""
        kept = (bytearray(), bytearray())
        ended = False
        with selectors.DefaultSelector() as selector:
            for pipe, store in zip((process.stdout, process.stderr), kept, strict=True):
                assert pipe is not None
                selector.register(pipe, selectors.EVENT_READ, store)
            while time.monotonic() < until_s:
                if not ended and process.poll() is not None:
                    ended = True
                    until_s = min(until_s, time.monotonic() + _GRACE_S)
                if not selector.get_map():
                    if ended:
                        break
                    time.sleep(_PAUSE_S)
                for key, _ in selector.select(_PAUSE_S) if selector.get_map() else ():
                    read = os.read(key.fd, _CHUNK)
                    if not read:
                        selector.unregister(key.fileobj)
                    key.data.extend(read[: MOST_OUTPUT - len(key.data)])
        return kept

    def abandon(self) -> None:
        """Kill it unless it has ended; for when no process waits any more."""
        self._abandoned = True
        if not self._over and self._process is not None:
            self._kill()

    def _kill(self) -> None:
        """Kill it with all that it has started and that did not leave its session."""
        assert self._process is not None
        try:
            os.killpg(self._process.pid, signal.Signals(SIGKILL))
        except (ProcessLookupError, PermissionError):
            self._process.kill()
