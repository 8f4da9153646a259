"""A process for shells under test: a dictionary of files, programs that are plain functions."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from simctl.stepd.scripts.host import (
    Disposition,
    Inherited,
    Interrupted,
    OpenFile,
    Redirects,
    Stream,
)
from simctl.stepd.scripts.script import parse
from simctl.stepd.scripts.shell import Shell

Program = Callable[["FakeHost", tuple[str, ...]], int]


class Killed(BaseException):
    """What a kernel raises in a process that is to end."""


@attrs.frozen(kw_only=True)
class Call:
    """Remember one program that was run."""

    argv: tuple[str, ...]
    env: dict[str, str]
    redirects: Redirects
    background: bool = False


@attrs.define
class FakeHost:
    """Run programs at once; the background ones end when they are waited for."""

    programs: dict[str, Program] = attrs.field(factory=dict)
    files: dict[str, str] = attrs.field(factory=dict)
    directories: list[str] = attrs.field(factory=lambda: ["/", "/home", "/home/alice"])
    output: str = ""
    errors: str = ""
    calls: list[Call] = attrs.field(factory=list)
    killed: list[tuple[int, int]] = attrs.field(factory=list)
    dispositions: dict[int, Disposition] = attrs.field(factory=dict)
    pending: list[int] = attrs.field(factory=list)
    children: dict[int, tuple[str, ...]] = attrs.field(factory=dict)
    cwd: str = "/home/alice"
    pid: int = 100

    def deliver(self, signal: int) -> None:
        """Let a signal arrive at the shell."""
        disposition = self.dispositions.get(signal, "default")
        if disposition == "default":
            raise Killed(signal)
        if disposition == "trap":
            self.pending.append(signal)

    async def run(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Run a program."""
        self.calls.append(Call(argv=argv, env=env, redirects=redirects))
        return self._status(argv, redirects)

    def _status(self, argv: tuple[str, ...], redirects: Redirects) -> int:
        if argv[0] == "exit":
            return int(argv[1])
        if argv[0] in ("true", "false"):
            return int(argv[0] == "false")
        if argv[0] in self.programs:
            return self.programs[argv[0]](self, argv)
        self.write(redirects.stderr, f"{argv[0]}: command not found\n")
        return 127

    def start(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Start a child; its pids count from 101."""
        self.calls.append(Call(argv=argv, env=env, redirects=redirects, background=True))
        pid = self.pid + 1 + sum(call.background for call in self.calls[:-1])
        self.children[pid] = argv
        return pid

    async def wait(self, pid: int) -> int:
        """End a child, unless a signal is there first."""
        if self.pending:
            raise Interrupted(self.pending[0])
        status = self._status(self.children[pid], Redirects())
        if self.pending:
            raise Interrupted(self.pending[0])
        del self.children[pid]
        return status

    def kill(self, pid: int, signal: int) -> bool:
        """Note the signal; one to the shell itself arrives."""
        self.killed.append((pid, signal))
        if pid == self.pid and signal:
            self.deliver(signal)
        return pid == self.pid or pid in self.children

    def path(self, path: str) -> str:
        """Make *path* absolute."""
        return path if path.startswith("/") else f"{self.cwd}/{path}"

    def absolute(self, path: str) -> str:
        """Leave a path as it is: this shell's files are known by what scripts call them."""
        return path

    def open(self, file: OpenFile) -> str:
        """Open a file."""
        path = self.path(file.path)
        if path.rsplit("/", 1)[0] not in self.directories:
            return "No such file or directory"
        if file.mode == "read" and path not in self.files:
            return "No such file or directory"
        if file.mode == "write":
            self.files[path] = ""
        self.files.setdefault(path, "")
        return ""

    def write(self, stream: Stream, text: str) -> None:
        """Write to the script's own output or to a file."""
        if isinstance(stream, OpenFile):
            self.files[self.path(stream.path)] += text
        elif stream == Inherited(descriptor=1):
            self.output += text
        else:
            self.errors += text

    def exists(self, path: str) -> bool:
        """Look for a file or directory."""
        return self.path(path) in self.files or self.is_directory(path)

    def is_directory(self, path: str) -> bool:
        """Look for a directory."""
        return self.path(path) in self.directories

    def chdir(self, path: str) -> str:
        """Change the working directory."""
        if not self.is_directory(path):
            return "No such file or directory"
        self.cwd = path
        return ""

    def set_trap(self, signal: int, disposition: Disposition) -> None:
        """Note what a signal does."""
        self.dispositions[signal] = disposition

    def take_signals(self) -> tuple[int, ...]:
        """Hand over the trapped signals."""
        taken = tuple(self.pending)
        self.pending.clear()
        return taken


@attrs.frozen(kw_only=True)
class Ran:
    """Hold what a script came to."""

    status: int
    host: FakeHost

    @property
    def output(self) -> str:
        """What it wrote to its standard output."""
        return self.host.output

    @property
    def errors(self) -> str:
        """What it wrote to its standard error."""
        return self.host.errors


def run_script(
    text: str,
    *args: str,
    host: FakeHost | None = None,
    env: dict[str, str] | None = None,
    max_turns: int = 100_000,
) -> Ran:
    """Run the commands *text* to their end; nothing in a fake host ever has to wait."""
    script, mistakes = parse(text)
    assert not mistakes, mistakes
    host = host or FakeHost()
    env = {"HOME": "/home/alice", "PWD": "/home/alice"} if env is None else env
    shell = Shell(script, host, args=("job.sh", *args), env=env, max_turns=max_turns)
    run = shell.run()
    try:
        run.send(None)
    except StopIteration as stop:
        return Ran(status=stop.value, host=host)
    raise AssertionError("a shell waits for nothing but its host")
