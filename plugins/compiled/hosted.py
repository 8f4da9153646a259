"""A host as its simulated process uses it: calls, forks, threads, and what the plugin asks back."""

import errno
import os
import re
import signal
import struct
import weakref
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from simctl.api.reach import reach_of
from simctl.api.surroundings import PluginThread
from simctl.kernel.procs import CALLING, Process
from simctl.kernel.threads import Thread
from simctl.limits import FILES_BYTES
from simctl.plugin import SlurmError, log, rpc, sleep, slurmctld, start
from simctl.plugins.compiled import elf, records
from simctl.plugins.compiled.debugger import Stop, wait_for_debugger
from simctl.plugins.compiled.host_files import OpenFile, open_file, stat_numbers, view_of
from simctl.plugins.compiled.layouts import Image, records_of
from simctl.plugins.compiled.look import Block, Looker, layout_of
from simctl.plugins.compiled.process import (
    TOGETHER_KB,
    U32,
    U64,
    Channel,
    Reader,
    Zygote,
    blob,
    load_message,
    loaded,
    text,
)
from simctl.plugins.compiled.programs import Programs
from simctl.plugins.guard import DiedError
from simctl.wire.errno import slurm_strerror

_SURROUNDINGS: Final = struct.Struct("<QII")
_EPOCH_US: Final = 1_000_000
_FOR_EVER: Final = (1 << 64) - 1
_ADDRESS: Final = re.compile(r"\b0x[57][0-9a-f]{10,11}\b")
_LOWEST_ADDRESS: Final = 0x10000
_MASK: Final = 0xFFFFFFFF
_TRAIL: Final = 4
_LEVELS: Final = {1: log.error, 2: log.error, 3: log.info, 4: log.info}
_Result = TypeVar("_Result")


@attrs.define(eq=False)
class Waiter:
    """A thread of the plugin that waits for a lock or a condition."""

    thread: Thread
    notified: bool = False


class Host:
    """One host, the files its plugin has open, and the threads of the plugin in it."""

    def __init__(self, channel: Channel, library: Path, besides: tuple[Path, ...] = ()) -> None:
        self.channel = channel
        self.library = library
        self.besides = besides
        """Files whose debug information describes Slurm's records, beside the plugin's."""
        self.files: dict[int, OpenFile] = {}
        self.programs = Programs()
        self._threads: dict[int, PluginThread] = {}
        self._unnamed: list[PluginThread] = []
        self._waiting: dict[int, list[Waiter]] = {}
        self._locks: dict[Channel, AbstractAsyncContextManager[None]] = {}
        self._rss_kb = 0
        self._under_way = False
        """Whether the plugin waits in a call for virtual time to pass."""
        self._others: list[Channel] = []
        """Channels of threads of the host that are idle, for calls beside the one that waits."""
        channel.zygote.hosts += 1
        ALIVE.add(self)

    def __del__(self) -> None:
        self.channel.zygote.hosts -= 1
        self.channel.close()

    @classmethod
    def open(cls, zygote: Zygote, library: Path, besides: tuple[Path, ...] = ()) -> "Host":
        """Start a host for the calling process and have it open a plugin.

        Raises:
            PluginError: It cannot be opened.
            DiedError: A constructor in it has ended the process.
        """
        host = cls(zygote.channel.fork(), library, besides)
        host.load()
        return host

    def load(self) -> None:
        """Have the host open its plugin; what a constructor asks for takes no time."""
        process = CALLING.get(None)
        name = "" if process is None else process.host.name
        around = self._around(process)
        self.channel.send(load_message(str(self.library), surroundings=around, hostname=name))
        got = self._listen(self.channel)
        while not isinstance(got, Reader):
            self._reply(self.channel, b"\0" * 16)
            got = self._listen(self.channel)
        loaded(got)

    def fork(self) -> "Host":
        """Return a host for a fork of the simulated process, which is a real fork of this one."""
        child = Host(self.channel.fork(), self.library, self.besides)
        child.files = dict(self.files)
        child._rss_kb = self._rss_kb
        return child

    def twin(self) -> Channel | None:
        """Return a channel to a copy of the process, or None while a call of it is under way."""
        if self._under_way:
            return None
        try:
            return self.channel.fork()
        except DiedError:
            return None

    def become(self, channel: Channel | None) -> None:
        """Go on in a copy of the process; without one it is lost."""
        self.channel.close()
        if channel is not None:
            self.channel = channel

    # Calls.

    def call(
        self, message: bytes, finish: Callable[[Reader], _Result]
    ) -> "_Result | Awaitable[_Result]":
        """Make a call; what it returns is to be awaited only if the plugin lets time pass.

        Raises:
            DiedError: It has ended the process.
        """
        channel = self._other() if self._under_way else self.channel
        channel.send(message)
        got = self._listen(channel)
        if isinstance(got, Reader):
            self._done(channel)
            self._take_in(got)
            return finish(got)
        if channel is self.channel:
            self._under_way = True
        return self._go_on(channel, got, finish)

    async def _go_on(
        self, channel: Channel, waits: Awaitable[bytes], finish: Callable[[Reader], _Result]
    ) -> _Result:
        got: Reader | Awaitable[bytes] = waits
        while not isinstance(got, Reader):
            self._reply(channel, await got)
            got = self._listen(channel)
        if channel is self.channel:
            self._under_way = False
        self._done(channel)
        self._take_in(got)
        return finish(got)

    def _other(self) -> Channel:
        """Return a channel to a thread of the host's own, for a call while another one waits."""
        if self._others:
            return self._others.pop()
        import socket  # noqa: PLC0415 - few plugins wait in calls

        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            self.channel.send(b"H", theirs.fileno())
        return Channel(ours, self.channel.real_pid, self.channel.zygote)

    def _done(self, channel: Channel) -> None:
        if channel is not self.channel:
            self._others.append(channel)

    def head(self, name: str, *, watched: bool) -> bytes:
        """Return the beginning of a call's message: when, as whom, and what."""
        around = self._around(CALLING.get(None))
        if Stop.function == name:
            wait_for_debugger(name, self.channel.real_pid, CALLING.get(None))
        # What reads files is not watched by its accesses: the kernel could not write into pages
        # that are taken away.
        how = b"\0" if not watched else b"\1" if "libstate" in name else b"\2"
        return b"C" + around + text(name) + how

    @staticmethod
    def _around(process: Process | None) -> bytes:
        if process is None:
            return _SURROUNDINGS.pack(0, 0, 0)
        return _SURROUNDINGS.pack(_clock_us(process), process.uid, process.euid)

    def _take_in(self, answer: Reader) -> None:
        """Note what a call that has returned leaves: files it wrote, memory it took."""
        for file in self.files.values():
            file.take_in()
        if answer.data[answer.at] != ord("R"):
            return
        rss_kb = U64.unpack_from(answer.data, answer.at + 13)[0]
        if rss_kb > self._rss_kb:
            zygote = self.channel.zygote
            if self._rss_kb:
                zygote.touched_kb += rss_kb - self._rss_kb
            self._rss_kb = rss_kb
            if zygote.touched_kb > TOGETHER_KB:
                self.channel.kill()
                raise DiedError(
                    f"all processes with compiled plugins took more than {TOGETHER_KB >> 10} MiB",
                    signal.SIGKILL,
                )

    def _listen(self, channel: Channel) -> Reader | Awaitable[bytes]:
        """Answer what the plugin asks until it returns (a message) or waits (what it waits for)."""
        while True:
            message = channel.receive()
            if message.data[message.at] != ord("U"):
                return message
            message.at += 1
            what = chr(message.u8())
            reply = UPCALLS[what](self, channel, message)
            if reply is None:
                continue
            if not isinstance(reply, bytes):
                waits: Awaitable[bytes] = reply
                return waits
            self._reply(channel, reply)

    def _reply(self, channel: Channel, payload: bytes, fd: int = -1) -> None:
        process = CALLING.get(None)
        now_us = 0 if process is None else _clock_us(process)
        channel.send(b"r" + U64.pack(now_us) + payload, fd)

    # Looking, for `plugins check`.

    def variables(self) -> dict[str, Any]:
        """Return the plugin's variables as plain data, by name."""
        self.channel.send(b"D" + U64.pack(0))
        answer = self.channel.receive()
        answer.u8()
        ranges = [(answer.u64(), answer.blob() or b"") for _ in range(answer.u32())]
        return Looker(layout_of(self.library), self._block).variables(ranges)

    def object_at(self, address: int) -> Any:
        """Return what lies at an address as plain data."""
        return Looker(layout_of(self.library), self._block).object_at(address)

    def parts(self, address: int) -> dict[int, str]:
        """Return the blocks that an object refers to, by address, with the field that does."""
        looker = Looker(layout_of(self.library), self._block)
        looker.object_at(address)
        return looker.blocks

    def _block(self, address: int) -> Block:
        self.channel.send(b"D" + U64.pack(address))
        answer = self.channel.receive()
        answer.u8()
        return chr(answer.u8()), answer.blob() or b""

    # What a plugin asks. None: it does not wait for an answer.

    def _log(self, channel: Channel, message: Reader) -> None:
        level = message.u32()
        line = _ADDRESS.sub("0x...", message.text() or "").encode(errors="replace").decode()
        if CALLING.get(None) is not None:
            _LEVELS.get(level, log.debug)(line)

    def _last_words(self, channel: Channel, message: Reader) -> None:
        number = message.u32()
        told = message.text() or ""
        function = message.text() or ""
        address = message.u64()
        frames = tuple(message.u64() for _ in range(message.u32()))
        status = number if number < 1 << 31 else (-(number - (1 << 32)) & 0xFF) << 8
        if status == number:
            where = f" at address {address:#x}" if address < _LOWEST_ADDRESS else ""
            told = f"{told}{where}" if number in (signal.SIGSEGV, signal.SIGBUS) else told
        self.channel.words = channel.words = DiedError(
            f"{told}{self._trail(frames) or f' in {function}'}", status
        )

    def _trail(self, frames: tuple[int, ...]) -> str:
        """Return the functions a plugin was in, innermost first, with file and line."""
        if not frames:
            return ""
        library = elf.read(self.library)
        told: list[str] = []
        for place in frames:
            symbol = library.at(place, function=True)
            line = elf.line_of(self.library, place)
            name = symbol.name if symbol is not None else self.library.name
            each = f"{name} ({line or self.library.name})"
            if not told or told[-1] != each:
                told.append(each)
        return " in " + ", called by ".join(told[:_TRAIL])

    def _refused(self, channel: Channel, message: Reader) -> None:
        number = message.u32()
        name = message.text() or ""
        if CALLING.get(None) is None:
            return
        process = CALLING.get()
        if number == (1 << 32) - 1:
            what = f"{name}() is refused: a plugin cannot start programs on the real machine"
        else:
            what = f"system call {number} is refused: it would reach the real machine"
        process.table.trace.complain(process, name if number != (1 << 32) - 1 else "fence", what)

    def _pids(self, channel: Channel, message: Reader) -> bytes:
        process = CALLING.get(None)
        if process is None:
            return U64.pack(1) + U64.pack(0)
        process.table.kernel.look_at_number()
        return U64.pack(process.pid) + U64.pack(process.ppid)

    def _sleep(self, channel: Channel, message: Reader) -> Awaitable[bytes]:
        length_us = message.u64()
        return _slept(length_us)

    def _kill(self, channel: Channel, message: Reader) -> bytes:
        (pid,) = struct.unpack("<i", U32.pack(message.u32()))
        number = message.u32()
        process = CALLING.get(None)
        if process is None:
            return U32.pack(errno.ESRCH)
        target = process.host.processes.get(abs(pid))
        if target is None:
            return U32.pack(errno.ESRCH)
        if process.euid and process.euid != target.euid:
            return U32.pack(errno.EPERM)
        if number:
            process.table.trace.complain(
                process,
                "kill",
                f"kill({pid}, {number}): signals from compiled plugins are not simulated; "
                "nothing was sent",
            )
            return U32.pack(errno.EPERM)
        return U32.pack(0)

    def _person(self, channel: Channel, message: Reader) -> bytes:
        uid, name = message.u32(), message.text()
        process = CALLING.get(None)
        find = reach_of(process).people if process is not None else None
        found = find(None if name else uid, name or "") if find is not None else None
        if found is None:
            return b"\0"
        login, number, gid, home = found
        return b"\1" + text(login) + U32.pack(number) + U32.pack(gid) + text(home)

    def _conf(self, channel: Channel, message: Reader) -> bytes:
        message.u32()
        key = message.text() or ""
        process = CALLING.get(None)
        if process is None or key not in tuple(reach_of(process).conf.keys()):
            return text(None)
        return text(str(reach_of(process).conf.value(key)))

    def _strerror(self, channel: Channel, message: Reader) -> bytes:
        return text(slurm_strerror(message.u32()))

    # Programs: a simulated task may become another, and its srun may run one.

    def _execute(self, channel: Channel, message: Reader) -> bytes:
        what, path = message.text() or "", message.text() or ""
        argv = _texts(message)
        env = _texts(message) if message.u8() else None
        process = CALLING.get(None)
        if process is None:
            return U32.pack(errno.EPERM)
        if process.role != "task":
            told = f"{what}() is refused: {process.role} is no task that could become a program"
            process.table.trace.complain(process, what, told)
            return U32.pack(errno.EPERM)
        pairs = None if env is None else dict(each.partition("=")[::2] for each in env)
        try:
            process.stepd.execute((path, *argv[1:]), pairs)
        except SlurmError as error:
            return U32.pack(error.errno)
        raise AssertionError("a task that becomes a program does not come back")

    def _srun_exec(self, channel: Channel, message: Reader) -> bytes:
        argv = _texts(message)
        process = CALLING.get(None)
        about = None if process is None else process.about
        if process is None or process.daemon != "slurmctld" or about is None or not about.step:
            return U32.pack(errno.EINVAL)
        return U32.pack(slurmctld.srun_exec(about.job, int(about.step.rpartition(".")[2]), *argv))

    def _find_job(self, channel: Channel, message: Reader) -> bytes:
        job_id = message.u32()
        process = CALLING.get(None)
        job = None
        if process is not None and process.daemon == "slurmctld":
            job = slurmctld.find_job(job_id)
        described = records_of(self.library, *self.besides)
        kind = described.structure(*records.JOB)
        image = Image(described)
        if job is not None and kind is not None:
            image.lay_out(kind, records.of_job(job))
        return image.message()

    def _checkpoint_tasks(self, channel: Channel, message: Reader) -> Awaitable[bytes]:
        return _checkpointed(
            message.u32(),
            message.u32(),
            message.u64(),
            message.text() or "",
            message.u32(),
            message.text() or "",
        )

    def _signal_step(self, channel: Channel, message: Reader) -> Awaitable[bytes]:
        return _signalled(message.u32(), message.u32(), message.u32())

    async def _lock(self, channel: Channel, message: Reader) -> bytes:
        """Take or give back slurmctld's lock, for the thread of a channel."""
        if message.u8():
            lock = slurmctld.locked()
            await lock.__aenter__()
            self._locks[channel] = lock
        elif channel in self._locks:
            await self._locks.pop(channel).__aexit__(None, None, None)
        return b""

    def _start_program(self, channel: Channel, message: Reader) -> bytes:
        return self.programs.answer(message)

    def _wait_for_program(self, channel: Channel, message: Reader) -> bytes | Awaitable[bytes]:
        return self.programs.wait(message)

    # Files.

    def _open(self, channel: Channel, message: Reader) -> None:
        path, flags, mode = message.text() or "", message.u32(), message.u32()
        process = CALLING.get(None)
        if process is None:
            self._reply(channel, U32.pack(errno.ENOENT))
            return
        for file in self.files.values():
            file.take_in(written=True)
        if sum(file.size for file in self.files.values()) > FILES_BYTES:
            self._reply(channel, U32.pack(errno.ENOSPC))
            return
        try:
            fd, watched = open_file(process, path, flags, mode)
        except OSError as error:
            self._reply(channel, U32.pack(error.errno or errno.EIO))
            return
        try:
            self._reply(channel, U32.pack(0), fd)
        finally:
            os.close(fd)
        if watched is not None:
            self.files[watched.inode] = watched

    def _closed(self, channel: Channel, message: Reader) -> None:
        file = self.files.pop(message.u64(), None)
        if file is not None:
            file.take_in()

    def _path(self, channel: Channel, message: Reader) -> bytes:
        what, path, other = chr(message.u8()), message.text() or "", message.text() or ""
        number = message.u32()
        process = CALLING.get(None)
        if process is None:
            return U32.pack(errno.ENOENT)
        for file in self.files.values():
            file.take_in(written=True)
        try:
            return U32.pack(0) + _on_path(process, what, path, other, number)
        except OSError as error:
            return U32.pack(error.errno or errno.EIO)

    # Threads, locks, conditions.

    def _thread(self, channel: Channel, message: Reader) -> None:
        import socket  # noqa: PLC0415 - few plugins have threads

        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        own = Channel(ours, channel.real_pid, channel.zygote)
        host = weakref.ref(self)

        async def live() -> None:
            here = host()
            if here is not None:
                await here._live(own)

        with theirs:
            self._reply(channel, b"", theirs.fileno())
        self._unnamed.append(start(live, "a thread of the compiled plugin"))

    def _named(self, channel: Channel, message: Reader) -> None:
        number = message.u64()
        thread = self._unnamed.pop()
        self._threads = {key: each for key, each in self._threads.items() if each.alive}
        if number:
            self._threads[number] = thread
        else:
            thread.cancel()

    async def _live(self, own: Channel) -> None:
        """Go on with a thread of the plugin whenever what it waits for has come, to its end."""
        try:
            while True:
                got = self._listen(own)
                assert not isinstance(got, Reader)
                self._reply(own, await got)
        except DiedError as died:
            if own.words is not None:
                process = CALLING.get()
                process.table.trace.complain(process, "a thread of the plugin", str(died))
                reach_of(process).died(process, died.status)
        finally:
            for file in self.files.values():
                file.take_in()

    def _begin(self, channel: Channel, message: Reader) -> bytes:
        return b""

    def _wait(self, channel: Channel, message: Reader) -> Awaitable[bytes]:
        key, until_us = message.u64(), message.u64()
        return self._waited(key, until_us)

    async def _waited(self, key: int, until_us: int) -> bytes:
        process = CALLING.get()
        kernel = process.table.kernel
        thread = kernel.current
        assert thread is not None
        waiter = Waiter(thread)
        waiting = self._waiting.setdefault(key, [])
        waiting.append(waiter)
        if until_us != _FOR_EVER:
            kernel.arm(until_us - reach_of(process).start_time_us)
        await kernel.park("a lock or condition of the compiled plugin")
        if waiter in waiting:
            waiting.remove(waiter)
        return b"\1" if waiter.notified else b"\0"

    def _notify(self, channel: Channel, message: Reader) -> None:
        key, everybody = message.u64(), message.u8()
        waiting = self._waiting.get(key)
        if not waiting:
            return
        kernel = CALLING.get().table.kernel
        for waiter in waiting[: None if everybody else 1]:
            waiter.notified = True
            waiting.remove(waiter)
            kernel.wake(waiter.thread)

    def _join(self, channel: Channel, message: Reader) -> Awaitable[bytes] | bytes:
        thread = self._threads.get(message.u64())
        if thread is None or not thread.alive:
            return b""
        return _joined(thread)


def _texts(message: Reader) -> list[str]:
    return [message.text() or "" for _ in range(message.u32())]


async def _slept(length_us: int) -> bytes:
    await sleep(min(length_us / _EPOCH_US, 1e9))
    return b""


async def _checkpointed(*request: Any) -> bytes:
    """Have the nodes save tasks; return 0 or the error."""
    rc = await rpc.slurm_checkpoint_tasks(*request)
    return U32.pack((rpc.slurm_get_errno() if rc else 0) & _MASK)


async def _signalled(job_id: int, step_id: int, number: int) -> bytes:
    return U32.pack(await slurmctld.signal_step(job_id, step_id, number))


async def _joined(thread: PluginThread) -> bytes:
    await thread.join()
    return b""


def _clock_us(process: Process) -> int:
    """Return what the cluster's clocks show, in microseconds since the epoch."""
    return reach_of(process).start_time_us + process.table.kernel.now_us


def _on_path(process: Process, what: str, path: str, other: str, number: int) -> bytes:
    """Do what a plugin asks to be done with a path; return what belongs behind the 0.

    Raises:
        OSError: As the system call fails.
    """
    view = view_of(process)
    if what in ("u", "r"):
        if view.is_dir(path) != (what == "r") and what == "r":
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)
        view.remove(path)
    elif what == "n":
        view.rename(path, other)
    elif what == "m":
        view.mkdir(path, number & 0o7777)
    elif what == "d":
        return blob(b"".join(name.encode() + b"\0" for name in (".", "..", *view.listdir(path))))
    elif what == "l":
        raise OSError(errno.EPERM, "no links", path)
    else:
        mode, uid, size = stat_numbers(process, path)
        if what == "s":
            return U32.pack(mode) + U32.pack(uid) + U64.pack(size)
        if number & os.R_OK and not mode & 0o040000:
            view.read(path)
    return b""


ALIVE: Final["weakref.WeakSet[Host]"] = weakref.WeakSet()
"""The hosts there are, for what must be done with all of them."""

UPCALLS: Final[dict[str, Callable[[Host, Channel, Reader], Any]]] = {
    "A": Host._person,
    "B": Host._begin,
    "C": Host._conf,
    "E": Host._strerror,
    "G": Host._pids,
    "J": Host._join,
    "K": Host._kill,
    "L": Host._log,
    "N": Host._refused,
    "O": Host._open,
    "P": Host._path,
    "R": Host._srun_exec,
    "S": Host._sleep,
    "T": Host._thread,
    "V": Host._notify,
    "W": Host._wait,
    "X": Host._last_words,
    "Y": Host._start_program,
    "Z": Host._execute,
    "c": Host._closed,
    "f": Host._find_job,
    "k": Host._checkpoint_tasks,
    "l": Host._lock,
    "s": Host._signal_step,
    "t": Host._named,
    "y": Host._wait_for_program,
}


# A session goes back in time by forks of simctl itself: each has hosts of its own.

_TWINS: Final[list[tuple[Host, Channel | None]]] = []


def _before_fork() -> None:
    _TWINS[:] = [(host, host.twin()) for host in ALIVE]


def _after_in_parent() -> None:
    for _, channel in _TWINS:
        if channel is not None:
            channel.close()
    _TWINS.clear()


def _after_in_child() -> None:
    for host, channel in _TWINS:
        host.become(channel)
    _TWINS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
