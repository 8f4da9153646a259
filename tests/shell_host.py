"""A process for shells under test: a dictionary of files, programs that are plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NoReturn

import attrs

from simctl.stepd.scripts.host import (
    Body,
    Disposition,
    Info,
    Inherited,
    Interrupted,
    OpenFile,
    OpenText,
    PipeEnd,
    Redirects,
    Stream,
)
from simctl.stepd.scripts.script import parse
from simctl.stepd.scripts.shell import Shell
from simctl.stepd.scripts.tree import OpenMode

Program = Callable[["FakeHost", tuple[str, ...]], int]
NO_SUCH = "No such file or directory"


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
    """Run programs at once; the background ones end when they are waited for.

    A subshell runs to its end when it is forked, so that pipes need no waiting.
    """

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
    ended: dict[int, int] = attrs.field(factory=dict)
    texts: dict[int, str] = attrs.field(factory=dict)
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
        self.put(redirects.stderr, f"{argv[0]}: command not found\n")
        return 127

    def _new_pid(self) -> int:
        return self.pid + 1 + len(self.children) + len(self.ended)

    def start(
        self,
        argv: tuple[str, ...],
        env: dict[str, str],
        redirects: Redirects,
        *,
        background: bool = False,
    ) -> int:
        """Start a child; its pids count from 101."""
        self.calls.append(Call(argv=argv, env=env, redirects=redirects, background=True))
        pid = self._new_pid()
        self.children[pid] = argv
        return pid

    def count_turn(self) -> bool:
        """Let loops go on; the shell has a bound of its own."""
        return True

    def connect(self, redirects: Redirects) -> None:
        """Change the descriptors of the shell, which counts for nothing here."""

    def fork(self, body: Body, redirects: Redirects, *, background: bool = False) -> int:
        """Run a subshell to its end."""
        pid = self._new_pid()
        self.ended[pid] = -1
        run = body(self).__await__()
        try:
            next(run)
        except StopIteration as stop:
            self.ended[pid] = stop.value
            return pid
        raise AssertionError("a subshell waits for nothing but its host")

    async def wait(
        self, pids: tuple[int, ...], *, interruptible: bool = True, until_us: int = 0
    ) -> int:
        """End a child, unless a signal is there first."""
        if self.pending and interruptible:
            raise Interrupted(self.pending[0])
        pid = pids[0]
        if pid in self.children:
            self.ended[pid] = self._status(self.children.pop(pid), Redirects())
        if self.pending and interruptible:
            raise Interrupted(self.pending[0])
        return pid

    def status(self, pid: int) -> int:
        """Return how a child has ended."""
        return -1 if pid in self.children else self.ended.get(pid, 127)

    def kill(self, pid: int, signal: int) -> bool:
        """Note the signal; one to the shell itself arrives."""
        self.killed.append((pid, signal))
        if pid == self.pid and signal:
            self.deliver(signal)
        return pid == self.pid or pid in self.children

    def has_program(self, name: str) -> bool:
        """Look for a program."""
        return name in self.programs

    def path(self, path: str) -> str:
        """Make *path* absolute."""
        return path if path.startswith("/") else f"{self.cwd}/{path}"

    def absolute(self, path: str) -> str:
        """Leave a path as it is: this shell's files are known by what scripts call them."""
        return path

    def open(self, path: str, mode: OpenMode, permissions: int = 0o666) -> OpenFile | str:
        """Open a file."""
        where = self.path(path)
        if where.rsplit("/", 1)[0] not in self.directories:
            return NO_SUCH
        if mode == "read" and where not in self.files:
            return NO_SUCH
        if mode == "write":
            self.files[where] = ""
        self.files.setdefault(where, "")
        number = 0
        if mode == "read":
            number = self.text(self.files[where]).number
        return OpenFile(path=path, mode=mode, number=number)

    def text(self, text: str) -> OpenText:
        """Keep a text."""
        number = len(self.texts) + 1
        self.texts[number] = text
        return OpenText(number=number)

    def pipe(self, *, keeps: Literal["", "r", "w"] = "") -> tuple[PipeEnd, PipeEnd]:
        """Make a pipe, which is a text that grows."""
        number = self.text("").number
        return PipeEnd(number=number, reads=True), PipeEnd(number=number, reads=False)

    def close(self, end: PipeEnd) -> None:
        """Do nothing: all that writes has ended."""

    async def read(self, stream: Stream, until: str = "", most: int = 0) -> str | None:
        """Read what there is."""
        if not isinstance(stream, OpenFile | OpenText | PipeEnd):
            return ""
        text = self.texts.get(stream.number, "")
        end = text.find(until) + 1 if until and until in text else len(text)
        end = min(end, most) if most else end
        self.texts[stream.number] = text[end:]
        return text[:end]

    async def write(self, stream: Stream, text: str) -> str:
        """Write to the script's own output, to a file or a pipe."""
        return self.put(stream, text)

    def put(self, stream: Stream, text: str) -> str:
        """Write."""
        if isinstance(stream, OpenFile):
            self.files[self.path(stream.path)] += text
        elif isinstance(stream, PipeEnd):
            self.texts[stream.number] += text
        elif stream == Inherited(descriptor=1):
            self.output += text
        else:
            self.errors += text
        return ""

    def info(self, path: str) -> Info | None:
        """Look for a file or directory."""
        where = self.path(path)
        if where in self.directories:
            return Info(is_dir=True, size=0, mode=0o755, uid=0)
        if where in self.files:
            return Info(is_dir=False, size=len(self.files[where]), mode=0o644, uid=0)
        return None

    def names(self, path: str) -> tuple[str, ...]:
        """List the files of a directory."""
        base = self.path(path).rstrip("/") + "/"
        found = {each[len(base) :].split("/")[0] for each in self.files if each.startswith(base)}
        return tuple(sorted(found))

    def change(self, what: str, path: str, argument: str = "") -> str:
        """Change no files."""
        return NO_SUCH

    def chdir(self, path: str) -> str:
        """Change the working directory."""
        if path not in self.directories:
            return NO_SUCH
        self.cwd = path
        return ""

    def facts(self) -> dict[str, str]:
        """Tell where this is."""
        return {"HOSTNAME": "n1", "UID": "1001", "USER": "alice", "PPID": "1", "SEED": "7"}

    def users(self) -> list[tuple[str, int, int, str]]:
        """Tell who there is."""
        return [("root", 0, 0, "/root"), ("alice", 1001, 100, "/home/alice")]

    def now_us(self) -> int:
        """Tell the time, which stands still."""
        return 1_700_000_000_000_000

    def die(self, signal: int) -> NoReturn:
        """End by a signal."""
        raise Killed(signal)

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
