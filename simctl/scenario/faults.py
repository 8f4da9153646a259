"""What can go wrong in a scenario: a class for each kind of fault, and whom it strikes.

The text of a fault says it in a line, as the trace, the end of a run and a session show it.
"""

from typing import Any, Final, Generic, TypeVar

import attrs

from simctl.kernel.links import MessageFaultKind
from simctl.kernel.pattern import Pattern
from simctl.wire.hosts import CONTROLLER
from simctl.wire.ids import SECOND, step_name


def _seconds(word: str, span_us: int | None) -> str:
    """Return `for 5s`; nothing of a fault that lasts for ever."""
    return "" if span_us is None else f"{word} {span_us / SECOND:g}s"


def _words(*words: object) -> str:
    return " ".join(str(word) for word in words if word)


@attrs.frozen
class NodeTarget:
    """A node with all that runs there."""

    name: str

    def __str__(self) -> str:
        return self.name


@attrs.frozen
class ControllerTarget:
    """slurmctld, or the backup by its host."""

    host: str = CONTROLLER

    def __str__(self) -> str:
        return self.host


@attrs.frozen
class SlurmdTarget:
    """The slurmd of a node."""

    node: str

    def __str__(self) -> str:
        return f"slurmd@{self.node}"


@attrs.frozen
class StepdTarget:
    """The slurmstepd of a step on a node."""

    job_id: int
    step_id: int
    node: str

    def __str__(self) -> str:
        return f"stepd {step_name(self.job_id, self.step_id)}@{self.node}"


@attrs.frozen
class TaskTarget:
    """A task of a step, by its rank."""

    job_id: int
    step_id: int
    rank: int

    def __str__(self) -> str:
        return f"task {step_name(self.job_id, self.step_id)}.{self.rank}"


Target = NodeTarget | ControllerTarget | SlurmdTarget | StepdTarget | TaskTarget
Struck = TypeVar("Struck", bound=Target)


@attrs.frozen(kw_only=True)
class Crash(Generic[Struck]):
    """Let a node with all its processes, or one daemon or task, die at once.

    *saved*: slurmctld dies as if it had just saved its state. *noticed*: slurmctld gives the node
    up at once. What a slurmd has started goes on, and so do the tasks of a step daemon.
    """

    target: Struck
    saved: bool = False
    noticed: bool = False

    @property
    def text(self) -> str:
        """Describe it."""
        return _words("crash", self.target, "saved" * self.saved, "noticed" * self.noticed)


@attrs.frozen(kw_only=True)
class Start(Generic[Struck]):
    """Start a node that is down, slurmctld or a slurmd that is not there; *clean*: as with -c."""

    target: Struck
    clean: bool = False

    @property
    def text(self) -> str:
        """Describe it."""
        return _words("start", self.target, "clean" * self.clean)


@attrs.frozen(kw_only=True)
class Stop(Generic[Struck]):
    """Let slurmctld or a slurmd stop in good order, as SIGTERM has it do."""

    target: Struck

    @property
    def text(self) -> str:
        """Describe it."""
        return f"stop {self.target}"


@attrs.frozen(kw_only=True)
class Restart(Generic[Struck]):
    """Let slurmctld or a slurmd stop in good order, and start again *for_us* later."""

    target: Struck
    for_us: int

    @property
    def text(self) -> str:
        """Describe it."""
        return _words("restart", self.target, _seconds("for", self.for_us))


@attrs.frozen(kw_only=True)
class FailFault:
    """Let plugin calls fail with *rc* and *errno*, after *skip* that succeed, *times* times."""

    pattern: Pattern
    errno: str = ""
    rc: int = -1
    times: int = 1
    skip: int = 0

    @property
    def text(self) -> str:
        """Describe it."""
        return f"fail {self.pattern.text}"


@attrs.frozen(kw_only=True)
class RaiseFault:
    """Let plugin calls raise an exception, as a plugin with a bug does."""

    pattern: Pattern
    times: int = 1

    @property
    def text(self) -> str:
        """Describe it."""
        return f"raise {self.pattern.text}"


@attrs.frozen(kw_only=True)
class HangFault:
    """Let plugin calls block their caller for *for_us* before they run, or for ever."""

    pattern: Pattern
    for_us: int | None = None
    times: int = 1
    skip: int = 0

    @property
    def text(self) -> str:
        """Describe it."""
        return _words("hang", self.pattern.text, _seconds("for", self.for_us))


@attrs.frozen(kw_only=True)
class CorruptFault:
    """Damage a file of a host: a path, or a name in StateSaveLocation."""

    file: str
    how: str
    host: str

    @property
    def text(self) -> str:
        """Describe it."""
        return f"corrupt {self.file} {self.how} on {self.host}"


@attrs.frozen(kw_only=True)
class DiskFault:
    """Let a host's disk be full, or read-only, for a while or for ever."""

    host: str
    how: str
    for_us: int | None = None

    @property
    def text(self) -> str:
        """Describe it."""
        return _words("disk", self.host, self.how, _seconds("for", self.for_us))


@attrs.frozen(kw_only=True)
class CutFault:
    """Let the link between two hosts carry nothing for a while, or for ever if *for_us* is None."""

    one: str
    other: str
    for_us: int | None = None

    @property
    def text(self) -> str:
        """Describe it."""
        return _words("cut", self.one, self.other, _seconds("for", self.for_us))


@attrs.frozen(kw_only=True)
class AccountingFault:
    """Let slurmdbd be `away`, `late` by some time, or as ever (`back`).

    It is so for a while, or for ever if *for_us* is None.
    """

    how: str
    by_us: int = 0
    for_us: int | None = None

    @property
    def text(self) -> str:
        """Describe it."""
        by = _seconds("by", self.by_us) if self.how == "late" else ""
        return _words("accounting", self.how, by, _seconds("for", self.for_us))


@attrs.frozen(kw_only=True)
class PreemptFault:
    """Let a job give way that runs, as if one of a higher partition had asked for its nodes."""

    job_id: int

    @property
    def text(self) -> str:
        """Describe it."""
        return f"preempt job {self.job_id}"


@attrs.frozen(kw_only=True)
class MessageFault:
    """Let messages be lost, doubled, late, overtaken or damaged; *times* 0 means all of them.

    *by_us* is how late they, or their copies, come; *how* what is damaged in them.
    """

    kind: MessageFaultKind
    rpc: str
    sender: str = ""
    receiver: str = ""
    by_us: int = 0
    how: str = ""
    times: int = 1
    skip: int = 0
    chance: float = 1.0
    for_us: int | None = None

    @property
    def text(self) -> str:
        """Describe it."""
        return _words(
            *(self.kind, self.rpc, self.how),
            _seconds("by", self.by_us or None),
            self.sender and f"from {self.sender}",
            self.receiver and f"to {self.receiver}",
            self.skip and f"skip {self.skip}",
            self.times and f"times {self.times}",
            self.chance < 1 and f"chance {self.chance:g}",
            _seconds("for", self.for_us),
        )


Fault = (
    Crash[Any]
    | Start[Any]
    | Stop[Any]
    | Restart[Any]
    | FailFault
    | RaiseFault
    | HangFault
    | CorruptFault
    | DiskFault
    | AccountingFault
    | PreemptFault
    | CutFault
    | MessageFault
)

OF_DAEMONS: Final = (Crash, Start, Stop, Restart)
"""The kinds of faults that strike a node, a daemon or a task."""
