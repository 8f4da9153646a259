"""The files, pipes and directories of a script, and what it can know of its surroundings."""

from __future__ import annotations

import posixpath
import zlib
from typing import Final, Literal

from simctl.kernel.threads import Killed
from simctl.stepd.hosts.child import command_name
from simctl.stepd.hosts.signals import Signals
from simctl.stepd.scripts.host import (
    Info,
    OpenFile,
    OpenText,
    PipeEnd,
    Stream,
)
from simctl.stepd.scripts.tree import OpenMode
from simctl.stepd.streams import BROKEN, BlockedError
from simctl.wire.ids import SECOND

_SIGPIPE: Final = 13


class Files(Signals):
    """Opens, reads and writes for a shell or a tool."""

    def absolute(self, path: str) -> str:
        """Return a path as it is called from the root on."""
        return self._site.disk.resolve(path, self._work_dir)

    def open(self, path: str, mode: OpenMode, permissions: int = 0o666) -> OpenFile | str:
        """Make or empty a file, or check that it can be read."""
        where = self.absolute(path)
        try:
            if mode == "write":
                self._files.write(where, "", permissions)
            elif mode == "append" or (mode == "both" and not self._files.exists(where)):
                self._files.append(where, "", permissions)
            elif where != "/dev/null":
                self._files.read(where)
        except OSError as error:
            return error.strerror or str(error)
        number = 0 if mode == "append" or where == "/dev/null" else self._streams.open()
        return OpenFile(path=where, mode=mode, number=number)

    def text(self, text: str) -> OpenText:
        """Return a file that holds a text."""
        return self._streams.text(text)

    def pipe(self, *, keeps: Literal["", "r", "w"] = "") -> tuple[PipeEnd, PipeEnd]:
        """Return the two ends of a new pipe."""
        source, sink = self._streams.pipe()
        if keeps:
            kept = source if keeps == "r" else sink
            self._streams.hold_end(kept)
            self._kept_ends.append(kept)
        return source, sink

    def close(self, end: PipeEnd) -> None:
        """Let go of the end of a pipe that the shell kept."""
        if end in self._kept_ends:
            self._kept_ends.remove(end)
            self._streams.release_end(end)

    async def read(self, stream: Stream, until: str = "", most: int = 0) -> str | None:
        """Read from a stream, waiting while a pipe is empty."""
        while True:
            await self._hold_still()
            try:
                found = self._streams.read(stream, until, most, self._files)
            except BlockedError:
                assert isinstance(stream, PipeEnd)
                await self._wait_at(stream, "something to read")
                continue
            if isinstance(stream, PipeEnd):
                self._streams.drain(stream, found or "")
            return found

    async def _wait_at(self, end: PipeEnd, what: str) -> None:
        """Wait until something changes at a pipe, or to the script."""
        thread = self._kernel.current
        assert thread is not None
        self._streams.wait_for(end, thread)
        self._waiter, self._interruptible = thread, False
        await self._kernel.park(what)
        self._waiter = None
        if not (self._stopped or self._paused):
            self._check_deadly()

    async def write(self, stream: Stream, text: str) -> str:
        """Write to a descriptor, a file or a pipe, and wait for room in that."""
        wrong = self.put(stream, text)
        await self.drain(stream)
        return wrong

    def put(self, stream: Stream, text: str) -> str:
        """Write without waiting; a pipe without a reader ends the process, unless it minds not."""
        wrong = self._streams.write(stream, text, self._files)
        if wrong == BROKEN:
            self._site.trace.process(self.process, "signal", _SIGPIPE)
            self.deliver(_SIGPIPE)
            if self.process.exited:
                raise Killed
            self._check_deadly()
        return wrong

    async def drain(self, stream: Stream) -> None:
        """Wait until there is room in a pipe."""
        while isinstance(stream, PipeEnd) and self._streams.is_full(stream):
            await self._wait_at(stream, "room in a pipe")

    def info(self, path: str) -> Info | None:
        """Return what is at a path."""
        try:
            found = self._files.stat(path or "/nothing")
        except OSError:
            return None
        return Info(is_dir=found.is_dir, size=found.size, mode=found.mode, uid=found.uid)

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a directory."""
        try:
            return tuple(self._files.listdir(path))
        except OSError:
            return ()

    def change(self, what: str, path: str, argument: str = "") -> str:
        """Change files; return what stood in the way."""
        files = self._files
        try:
            match what:
                case "mkdir":
                    files.mkdir(path, int(argument or "755", 8))
                case "remove":
                    files.remove(path)
                case "rename":
                    files.rename(path, argument)
                case "chmod":
                    files.chmod(path, int(argument, 8))
                case "touch":
                    files.append(path, "", int(argument or "644", 8))
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def chdir(self, path: str) -> str:
        """Change the working directory."""
        where = self._site.disk.resolve(path, self._work_dir)
        if not self._files.is_dir(where):
            return "No such file or directory"
        self._work_dir = posixpath.normpath(where)
        return ""

    def has_program(self, name: str) -> bool:
        """Return whether there is a program of this name or path."""
        known = command_name((name,)) in self._site.commands
        return known or not self._site.programs.lacks((name,), self._files)

    def facts(self) -> dict[str, str]:
        """Return what a shell knows of its surroundings."""
        process = self.process
        self._streams.seeds += 1
        where = f"{process.job}:{process.step}:{process.task}:{self._streams.seeds}"
        seed = zlib.crc32(f"{self._site.programs.seed}:{where}".encode())
        return {
            "HOSTNAME": process.host.name,
            "UID": str(process.uid),
            "USER": self._user.name,
            "PPID": str(process.ppid),
            "SEED": str(seed),
        }

    def users(self) -> list[tuple[str, int, int, str]]:
        """Return name, number, group and home of every user of the cluster."""
        return [(each.name, each.uid, each.gid, each.home) for each in self._site.users.values()]

    def count_turn(self) -> bool:
        """Count a turn of a loop or trap; return whether there may be more."""
        return self._streams.count_turn()

    def now_us(self) -> int:
        """Return the present moment, in microseconds since 1970."""
        return self._site.start_time_s * SECOND + self._kernel.now_us
