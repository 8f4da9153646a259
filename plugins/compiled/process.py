"""Hosts: the real processes that compiled plugins run in, and the messages to and from them.

A message is a length of 32 bits and that many bytes. simctl asks (fork, load, call); while a call
runs the plugin may ask back (an upcall). One of the two runs at a time: who asks waits.
"""

import os
import signal
import socket
import struct
import subprocess
import weakref
from contextlib import suppress
from typing import Final

from simctl.api.surroundings import WatchdogError
from simctl.limits import MIB
from simctl.plugins.compiled import build
from simctl.plugins.compiled.debugger import is_traced
from simctl.plugins.guard import DiedError, PluginError

U32: Final = struct.Struct("<I")
U64: Final = struct.Struct("<Q")
NO_TEXT: Final = 0xFFFFFFFF
_READ_BYTES: Final = 65_536

MEMORY_BYTES: Final = 1_024 * MIB
"""How much memory one host may map."""

TOGETHER_KB: Final = 4_096 * 1_024
"""How much memory of their own all hosts may have touched together, in units of 1024 bytes."""

HOSTS_AT_MOST: Final = 20_000
"""How many hosts there may be at a time."""

CPU_S: Final = 20.0
"""How long one call may compute, in seconds of processor time."""

STILL_S: Final = 60.0
"""How long a call may wait for what simctl knows nothing of, in seconds of real time."""


class Reader:
    """Takes values out of a message, front to back."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def u8(self) -> int:
        """Return the next byte."""
        self.at += 1
        return self.data[self.at - 1]

    def u32(self) -> int:
        """Return the next number of 32 bits."""
        self.at += 4
        return int(U32.unpack_from(self.data, self.at - 4)[0])

    def u64(self) -> int:
        """Return the next number of 64 bits."""
        self.at += 8
        return int(U64.unpack_from(self.data, self.at - 8)[0])

    def blob(self) -> bytes | None:
        """Return the next run of bytes; None is C's NULL."""
        length = self.u32()
        if length == NO_TEXT:
            return None
        self.at += length
        return self.data[self.at - length : self.at]

    def text(self) -> str | None:
        """Return the next text; bytes that are no UTF-8 become surrogates."""
        found = self.blob()
        return None if found is None else found.decode(errors="surrogateescape")


def blob(data: bytes | None) -> bytes:
    """Return a run of bytes as hosts read it: its length, itself, and a NUL."""
    return U32.pack(NO_TEXT) if data is None else U32.pack(len(data)) + data + b"\0"


def text(value: str | None) -> bytes:
    """Return a text as hosts read it."""
    return blob(None if value is None else value.encode(errors="surrogateescape"))


class Channel:
    """simctl's end of a socket to a host, or to a thread of the plugin in it."""

    __slots__ = ("_began_s", "_fd", "_rest", "real_pid", "words", "zygote")

    def __init__(self, sock: socket.socket, real_pid: int, zygote: "Zygote") -> None:
        # A descriptor alone: in a cycle that is collected a socket might go before its owner.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 1, 0))
        self._fd = sock.detach()
        self._rest = b""
        self._began_s = 0.0
        self.real_pid = real_pid
        self.zygote = zygote
        self.words: DiedError | None = None
        """What the process said of its end."""

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it; the host ends as it finds that."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def send(self, message: bytes, fd: int = -1) -> None:
        """Send a message, and a descriptor with it.

        Raises:
            DiedError: The process has ended.
        """
        whole = U32.pack(len(message)) + message
        try:
            if fd >= 0:
                with socket.socket(fileno=os.dup(self._fd)) as sock:
                    whole = whole[socket.send_fds(sock, [whole], [fd]) :]
            while whole:
                whole = whole[os.write(self._fd, whole) :]
        except OSError:
            raise self._ended() from None

    def receive(self) -> Reader:
        """Wait for the next message.

        Raises:
            DiedError: The process has ended, or was ended because it did not come back.
        """
        try:
            data = self._rest
            while len(data) < U32.size:
                data += self._part()
            (length,) = U32.unpack_from(data)
            length += U32.size
            while len(data) < length:
                data += self._part()
        except DiedError:
            raise
        except WatchdogError as error:
            self.kill()
            raise DiedError(str(error), signal.SIGKILL) from None
        except BaseException:
            # A person at the keyboard: what comes now is no answer to anything else.
            self.kill()
            raise
        self._rest = data[length:]
        reader = Reader(data)
        reader.at = U32.size
        return reader

    def _part(self) -> bytes:
        waited_s = 0
        while True:
            try:
                data = os.read(self._fd, _READ_BYTES)
            except BlockingIOError:
                if not waited_s or is_traced(self.real_pid):
                    # A person who steps through a call may take as long as it takes.
                    self._began_s = processor_time_s(self.real_pid)
                    waited_s = 0
                waited_s += 1
                self._look(waited_s)
                continue
            except OSError:
                data = b""
            if not data:
                raise self._ended()
            return data

    def _look(self, waited_s: int) -> None:
        """End a process that computes for too long, or waits for nothing that simctl knows of."""
        spent_s = processor_time_s(self.real_pid) - self._began_s
        if spent_s > CPU_S:
            self.kill()
            raise DiedError(f"still ran after {CPU_S:g} s of processor time", signal.SIGKILL)
        if waited_s - spent_s > STILL_S:
            self.kill()
            raise DiedError(
                f"waited {STILL_S:g} s of real time for something that simctl does not simulate, "
                "such as a lock that nobody releases",
                signal.SIGKILL,
            )

    def _ended(self) -> DiedError:
        return self.words or DiedError(
            "ended without a word, as by SIGKILL or by a system call of its own", signal.SIGKILL
        )

    def kill(self) -> None:
        """End the real process, if it is still one of ours."""
        with suppress(OSError):
            if self.real_pid > 0 and os.getpgid(self.real_pid) == self.zygote.group:
                os.kill(self.real_pid, signal.SIGKILL)

    def fork(self) -> "Channel":
        """Have the host fork; return the channel to its child.

        Raises:
            DiedError: There are too many hosts, or the machine refuses.
        """
        zygote = self.zygote
        if zygote.hosts >= HOSTS_AT_MOST:
            most = f"{HOSTS_AT_MOST} processes with a compiled plugin are the most"
            raise DiedError(most, signal.SIGKILL)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            self.send(b"F", theirs.fileno())
        answer = self.receive()
        answer.u8()
        real_pid = answer.u64()
        if real_pid >> 63:
            ours.close()
            raise DiedError("the machine refused to fork its process", signal.SIGKILL)
        return Channel(ours, real_pid, zygote)


def processor_time_s(pid: int) -> float:
    """Return how long a process has computed, in seconds; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - a path costs more
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Zygote:
    """The process that every host is a fork of; it has opened the library of Slurm's functions.

    It leads a session of its own. simctl holds one end of its lifeline: as simctl ends, however it
    ends, the kernel kills the whole group.
    """

    def __init__(
        self, slurm_lib: str = "", sanitizer: str = "", *, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self.hosts = 0
        self.touched_kb = 0
        _raise_limit()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        read_end, write_end = os.pipe()
        # What a sanitizer notes of memory takes more room than any plugin may: it has a bound of
        # its own.
        room = 0 if sanitizer else memory_bytes
        command = [str(build.host()), str(theirs.fileno()), str(read_end), str(room)]
        popen = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno(), read_end],
            stdin=subprocess.DEVNULL,
            stdout=2,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", **_sanitized(sanitizer)},
            cwd="/",
        )
        theirs.close()
        os.close(read_end)
        self.group = popen.pid
        self._end = weakref.finalize(self, _end, popen, write_end)
        self.channel = Channel(ours, popen.pid, self)
        try:
            self.channel.send(load_message(slurm_lib or str(build.library()), for_all=True))
            loaded(self.channel.receive())
        except (PluginError, DiedError) as error:
            self.close()
            what = f"slurm_lib {slurm_lib!r}" if slurm_lib else "the stand-in for Slurm's library"
            raise PluginError(f"{what} cannot be used: {error}") from None

    def close(self) -> None:
        """End the zygote and every host there is."""
        self.channel.close()
        self._end()


def _sanitized(library: str) -> dict[str, str]:
    """Return the environment in which a sanitizer finds mistakes and leaves the rest to hosts."""
    if not library:
        return {}
    crashes = ("segv", "sigbus", "sigfpe", "sigill", "abort")
    options = (
        *(f"handle_{each}=0" for each in crashes),
        *("use_sigaltstack=0", "abort_on_error=1", "detect_leaks=0"),
        *("allocator_may_return_null=1", f"max_allocation_size_mb={MEMORY_BYTES // MIB}"),
    )
    return {"LD_PRELOAD": library, "ASAN_OPTIONS": ":".join(options)}


def _end(popen: subprocess.Popen[bytes], lifeline: int) -> None:
    """End a zygote and its hosts: the kernel kills them as the lifeline closes."""
    os.close(lifeline)
    popen.wait()


def load_message(
    path: str, *, for_all: bool = False, surroundings: bytes = b"\0" * 16, hostname: str = ""
) -> bytes:
    """Return the request to open a library: the plugin, or one whose functions all plugins find."""
    kind = b"\1" if for_all else b"\0"
    return b"L" + surroundings + text(hostname) + kind + text(path)


def loaded(answer: Reader) -> None:
    """Read the answer to `load_message`.

    Raises:
        PluginError: The library cannot be opened; the text is the loader's.
    """
    if answer.u8() == ord("E"):
        raise PluginError(answer.text() or "it cannot be opened")


def _raise_limit() -> None:
    """Let this process have as many descriptors as it may: each host takes one."""
    import resource  # noqa: PLC0415 - Windows has none

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _READ_BYTES if hard == resource.RLIM_INFINITY else hard
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
