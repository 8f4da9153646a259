"""What every daemon of a cluster is given: the world it runs in, and its configuration."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import attrs

from simctl.kernel.disk import Disk, DiskView
from simctl.kernel.fabric import Fabric, Mailbox
from simctl.kernel.procs import Process, ProcessTable
from simctl.kernel.trace import Trace
from simctl.kernel.turns import Kernel
from simctl.plugins.hooks import Hooks
from simctl.wire.accounts import Books
from simctl.wire.conf.slurm_conf import SlurmConf
from simctl.wire.credentials import KeyPair

CommandMain = Callable[["CommandCall"], Awaitable[int]]
"""A command of Slurm's: it returns its exit status."""

_ERROR: Final = re.compile(r"\w+: (error|fatal): ")
_SAID: Final = 200

ScriptMain = Callable[["ScriptCall"], Awaitable[int]]
"""What answers a script in place of a program or a text: it returns a wait status."""


@attrs.frozen(kw_only=True)
class User:
    """A person with an account on the cluster."""

    name: str
    uid: int
    gid: int
    account: str = ""
    admin: str = "none"

    @property
    def home(self) -> str:
        """Return the home directory, which is also where the scenario's files are."""
        return "/root" if self.name == "root" else f"/home/{self.name}"

    @property
    def login(self) -> dict[str, str]:
        """Return what a login gives to all of the user's processes."""
        return {"USER": self.name, "LOGNAME": self.name, "HOME": self.home}


@attrs.frozen(kw_only=True)
class Options:
    """Switches of the simulator itself; None where the model decides."""

    bb_post_run_gate: bool | None = None
    """Whether a job's nodes are freed only once bb_p_job_test_post_run has said so."""
    bb_load_first: bool | None = None
    """Whether a restarted slurmctld has plugins load their state before jobs begin again."""
    bb_stageout_after_epilog: bool = False
    """Whether stage-out begins once the epilogs of a job are over."""
    real_scripts: bool = False
    """Whether a script may be an executable of the real machine."""
    accounting_lag: int = 0
    """How late sacct shows what has happened, virtual microseconds."""
    step_missing: str = "abort"
    """What srun does that is told that a node lacks its step: `abort` it, or `go_on` as Slurm's."""
    batch_start: str = "at_once"
    """When a batch job may start first: `at_once`, or `as_real`, as slurmctld's loop comes by."""
    trace_values: bool = False
    """Whether traces tell what plugin calls hand out and leave behind."""
    state_saves: str = "auto"
    """Whether slurmctld saves its state while it runs: `always`, `never`, or where that shows."""


@attrs.frozen(kw_only=True)
class Site:
    """The services of a run, shared by all its daemons."""

    kernel: Kernel
    trace: Trace
    fabric: Fabric
    procs: ProcessTable
    hooks: Hooks
    disk: Disk
    conf: SlurmConf
    model: str
    start_time_s: int
    users: Mapping[str, User]
    commands: dict[str, CommandMain]
    programs: Any
    """Finds what an executable does; a `simctl.stepd.programs.Programs`."""

    run_name: str = ""
    """Tells this run from others whose state files may be found."""

    asks_nodes: bool = True
    """Whether slurmctld asks nodes to register again now and then."""

    keys: KeyPair = attrs.field(factory=lambda: KeyPair(""))
    """What signs credentials, which is slurmctld's alone, and what verifies them."""

    options: Options = Options()
    books: Books = attrs.field(factory=Books)
    """What slurmdbd has been told."""

    appliance: Any = None
    """What holds the burst buffers; a `simctl.appliance.appliance.Appliance`, None without one."""

    images: Any = None
    """The checkpoint images that are there; a `simctl.stepd.images.Images`."""

    folder: str = "/"
    """Folder of the scenario on the real machine, where real scripts start."""

    def person(self, uid: int | None, name: str) -> tuple[str, int, int, str] | None:
        """Return the name, uid, gid and home directory of who has a uid, or else a name."""
        for user in self.users.values():
            if user.uid == uid or (uid is None and user.name == name):
                return user.name, user.uid, user.gid, user.home
        return None

    def user_name(self, uid: int) -> str:
        """Return the name of a user, or the number where no user has it."""
        for user in self.users.values():
            if user.uid == uid:
                return user.name
        return str(uid)


@attrs.frozen(kw_only=True)
class Foreground:
    """A command that runs in a user's foreground, outside of the simulation."""

    signal: Callable[[int], None]


RunHere = Callable[[tuple[str, ...], Mapping[str, str], str, Callable[[int], None]], Foreground]
"""Runs words in an environment and a directory; what is called at the end gets a wait status."""


@attrs.define(kw_only=True, eq=False)
class CommandCall:
    """One run of a command: its process, where it stands, and where its output goes."""

    site: Site
    process: Process
    mailbox: Mailbox
    argv: tuple[str, ...]
    env: dict[str, str]
    work_dir: str
    user: User
    write: Callable[[str, str], None]
    """Takes a stream (``stdout``, ``stderr``) and a text."""

    stdin: str = ""
    """What the command finds on its standard input."""

    errno: str = ""
    """Name of the Slurm error that ended the command, for `expect:` beside `run:`."""

    before_image: Callable[[str], Awaitable[Any]] | None = None
    """Set by a command that can be restarted: called with the path of an image that is about to be
    written, of this command or of a script that runs it, and what it returns (anything that JSON
    can hold) is remembered there. It may take time; an OSError says why no image can be written.
    A command without it has lost its connections when it is restarted, and ends with 1."""

    memory: Any = None
    """What `before_image` returned, in a command that goes on from an image; else None."""

    image: str = ""
    """Path of the image that it goes on from."""

    run_here: "RunHere | None" = None
    """Runs a command in the foreground of the command that called this one, at its terminal."""

    at_terminal: bool = False
    """Set by srun: its first task is to run at that terminal."""

    killed: Callable[[], None] | None = None
    """Set by a command that others outlive: called when the command alone is killed."""

    @property
    def files(self) -> DiskView:
        """The files of this host, as the command's user sees them from where it stands."""
        return self.site.disk.view(self.process.host.name, self.process.uid, self.work_dir)

    def out(self, text: str) -> None:
        """Write a line to standard output."""
        self.write("stdout", text + "\n")

    def err(self, text: str) -> None:
        """Write a line to standard error; the first error is remembered for the trace."""
        if not self.process.said and _ERROR.match(text):
            self.process.said = text[:_SAID]
        self.write("stderr", text + "\n")


@attrs.define(kw_only=True, eq=False)
class ScriptCall:
    """One run of a script that the appliance or a real executable answers."""

    site: Site
    process: Process
    argv: tuple[str, ...]
    """Its path and its arguments."""

    env: Mapping[str, str]
    work_dir: str
    limit_s: float
    """After how many seconds it is killed; 0 for never."""

    write: Callable[[int, str], None]
    """Takes a file descriptor (1 or 2) and a text."""

    timed_out: bool = False
    """Set by an answer that has kept the limit itself, and was over it."""
