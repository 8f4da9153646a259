"""What a scenario says, as frozen values; durations in microseconds, limits in minutes."""

from collections.abc import Mapping

import attrs

from simctl.appliance.spec import ApplianceSpec
from simctl.kernel.pattern import Pattern
from simctl.kernel.places import Place
from simctl.scenario.faults import Fault
from simctl.scenario.kept_rules import Check, Rule
from simctl.scenario.positions import Mistake
from simctl.site import Options
from simctl.stepd.images import ImagesSpec
from simctl.stepd.outcome import DEFAULT_IMAGE
from simctl.wire.conf.slurm_conf import SlurmConf
from simctl.wire.ids import INFINITE


@attrs.frozen(kw_only=True)
class NodeSpec:
    """One compute node."""

    name: str
    cpus: int = 1
    memory_mb: int = 1
    gres: Mapping[str, int] = attrs.field(factory=dict)
    """How many of each generic resource, by `name` or `name:type`."""
    state: str = "UNKNOWN"
    """What it begins in: UNKNOWN, DOWN or DRAIN."""
    reason: str = ""

    features: tuple[str, ...] = ()
    """What --constraint may ask for."""

    plugins: "tuple[PluginSpec, ...]" = ()
    """Classes that stand for plugins of their type on this node."""


@attrs.frozen(kw_only=True)
class PartitionSpec:
    """A partition; its nodes stand in the order in which the scenario lists the nodes."""

    name: str
    nodes: tuple[str, ...]
    default: bool = False
    max_time_min: int = INFINITE
    default_time_min: int = INFINITE
    max_nodes: int = INFINITE
    min_nodes: int = 1
    state: str = "UP"
    priority_tier: int = 1
    exclusive: bool = False
    preempt_mode: str = ""
    grace_time_s: int = 0
    root_only: bool = False
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    def_mem_per_cpu_mb: int = 0
    def_mem_per_node_mb: int = 0


@attrs.frozen(kw_only=True)
class UserSpec:
    """A user the whole cluster knows; *admin* is `none`, `operator` or `administrator`."""

    name: str
    uid: int
    gid: int
    account: str = ""
    admin: str = "none"


@attrs.frozen(kw_only=True)
class PluginSpec:
    """A plugin class: ``./file.py:Class`` from the scenario's folder on, or ``module:Class``."""

    reference: str
    line: int
    column: int


@attrs.frozen(kw_only=True)
class ProgramSpec:
    """What a simulated program does in some of its tasks.

    It runs for a time between *runs_min_us* and *runs_max_us*, drawn from the seed where the two
    differ, or until a signal ends it if *forever*. Then it exits with *exit*, or dies of *signal*
    unless that is 0.
    """

    runs_min_us: int = 0
    runs_max_us: int = 0
    forever: bool = False
    exit: int = 0
    signal: int = 0
    tasks: tuple[int, ...] = ()
    """Ranks it concerns; none stands for all."""
    output: str = ""
    ignores: tuple[int, ...] = ()
    """Signals that change nothing."""
    exits_on: Mapping[int, int] = attrs.field(factory=dict)
    """Signals it catches, and the status it then exits with at once."""
    oom: bool = False
    """It is killed at its end for the memory it uses."""
    image: int = DEFAULT_IMAGE
    """Bytes of memory it has, which a checkpoint image of it takes."""


Program = tuple[ProgramSpec, ...]


def behaviour(program: Program, rank: int) -> ProgramSpec:
    """Return what *program* does in the task of *rank*: the first spec that concerns it."""
    for spec in program:
        if not spec.tasks or rank in spec.tasks:
            return spec
    return ProgramSpec()


@attrs.frozen(kw_only=True)
class At:
    """A moment of virtual time."""

    time_us: int


@attrs.frozen(kw_only=True)
class When:
    """The first event that matches after *skip* that do, or with *each* every one after those."""

    pattern: Pattern
    each: bool = False
    skip: int = 0


@attrs.frozen(kw_only=True)
class Placed:
    """An exact place of a run; at one between turns the clock is put to *time_us*, unless None."""

    place: Place
    time_us: int | None = None


Moment = At | When | Placed


@attrs.frozen(kw_only=True)
class Checks:
    """What a command is expected to do; an empty tuple or text asks nothing."""

    errno: str = ""
    exit: tuple[int, ...] = ()
    stdout: tuple[str, ...] = ()
    stderr: tuple[str, ...] = ()
    becomes: Mapping[str, str] | None = None
    """What plugins of job_submit make of it, field by field; None asks nothing."""


@attrs.frozen(kw_only=True)
class RunEntry:
    """A command line typed on the login host."""

    label: str
    line: int
    moment: Moment
    user: str
    command: str
    argv: tuple[str, ...]
    checks: Checks = Checks()


@attrs.frozen(kw_only=True)
class FaultEntry:
    """Something that goes wrong at a moment."""

    label: str
    line: int
    moment: Moment
    fault: Fault

    @property
    def text(self) -> str:
        """Return what goes wrong, in a line."""
        return self.fault.text


@attrs.frozen(kw_only=True)
class ConfEntry:
    """Keys of burst_buffer.conf written anew at a moment; *text* says so in a line.

    They are by the plugin whose file they stand in, or by nothing for every file there is; None
    takes a key out.
    """

    label: str
    line: int
    moment: Moment
    burst_buffer_conf: Mapping[str, Mapping[str, str | None]]
    text: str


@attrs.frozen(kw_only=True)
class ApplianceEntry:
    """Something about the appliance behind burst buffer plugins that changes at a moment."""

    label: str
    line: int
    moment: Moment
    change: ApplianceSpec
    text: str


@attrs.frozen(kw_only=True)
class FilesEntry:
    """Files that a user writes; a name without a folder is below the user's own."""

    label: str
    line: int
    moment: Moment
    user: str
    files: Mapping[str, str]


@attrs.frozen(kw_only=True)
class ProgramsEntry:
    """What simulated executables do from a moment on."""

    label: str
    line: int
    moment: Moment
    programs: Mapping[str, Program]


@attrs.frozen(kw_only=True)
class Answer:
    """What a plugin call returns without having run, or how long it blocks before it runs."""

    rc: int = 0
    errno: str = ""
    delay_us: int | None = None


@attrs.frozen(kw_only=True)
class AnswerEntry:
    """An answer for the plugin call of a place."""

    label: str
    line: int
    moment: Moment
    answer: Answer


@attrs.frozen(kw_only=True)
class PickEntry:
    """Which of the turns due at one moment goes first: the one of this rank, from 1."""

    label: str
    line: int
    moment: Moment
    rank: int


@attrs.frozen(kw_only=True)
class StayEntry:
    """Nothing, but that the run does not end before it has come here."""

    label: str
    line: int
    moment: Moment


@attrs.frozen(kw_only=True)
class CommandCame:
    """A client of a served cluster has run a command.

    `env` is its environment; with `env_of` what it has otherwise than the command of that number,
    whose environment is then kept (`is_base`), save the variables in `unset`. `task` is the number
    of the task that it ran in, 0 for none.
    """

    command: int
    user: str
    uid: int
    gid: int
    cwd: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = attrs.field(factory=dict)
    unset: tuple[str, ...] = ()
    env_of: int = 0
    is_base: bool = False
    stdin: str = ""
    task: int = 0


@attrs.frozen(kw_only=True)
class CommandSignalled:
    """A signal has reached a command."""

    command: int
    number: int


@attrs.frozen(kw_only=True)
class CommandLeft:
    """What a command ran in the foreground has ended, with a wait status."""

    command: int
    status: int


@attrs.frozen(kw_only=True)
class TaskWrote:
    """A task has written something to a file descriptor, 1 or 2."""

    task: int
    stream: int
    text: str


@attrs.frozen(kw_only=True)
class TaskEnded:
    """A task has ended, with a wait status."""

    task: int
    status: int


@attrs.frozen(kw_only=True)
class FileSeen:
    """What a path of the machine was found to hold: a text, a directory, or nothing."""

    path: str
    uid: int = 0
    mode: int = 0o644
    text: str | None = None
    is_dir: bool = False


@attrs.frozen(kw_only=True)
class Stopped:
    """The served cluster was ended: so does the run."""


OutsideDeed = (
    CommandCame | CommandSignalled | CommandLeft | TaskWrote | TaskEnded | FileSeen | Stopped
)
"""What comes from outside of a served cluster."""


@attrs.frozen(kw_only=True)
class OutsideEntry:
    """Something that has come from outside of a served cluster, when it was recorded."""

    label: str
    line: int
    moment: Moment
    deed: OutsideDeed


Entry = (
    RunEntry
    | FaultEntry
    | ConfEntry
    | ApplianceEntry
    | FilesEntry
    | ProgramsEntry
    | AnswerEntry
    | PickEntry
    | StayEntry
    | OutsideEntry
)


@attrs.frozen(kw_only=True)
class JobExpect:
    """The fields of a job at the end of the run, each as text."""

    text: str
    line: int
    job: str
    """A job id, or `ARRAY_TASK` for a task of a job array."""
    fields: tuple[tuple[str, str], ...]


@attrs.frozen(kw_only=True)
class OrderEntry:
    """One entry of an order."""

    pattern: Pattern
    optional: bool = False


@attrs.frozen(kw_only=True)
class OrderExpect:
    """All that matches one entry ends before anything that matches the next begins.

    *within* is a filter events must pass first (EVERYTHING where the scenario has none); *each*
    names the field that makes the groups, or is empty for one group of all. One that is *proved*
    has to follow from causes, and not just to be so in one run.
    """

    text: str
    line: int
    entries: tuple[OrderEntry, ...]
    within: Pattern
    each: str = ""
    proved: bool = False


@attrs.frozen(kw_only=True)
class NeverExpect:
    """No event matches."""

    text: str
    line: int
    pattern: Pattern


@attrs.frozen(kw_only=True)
class CountExpect:
    """Between *least* and *most* events match."""

    text: str
    line: int
    pattern: Pattern
    least: int
    most: int


@attrs.frozen(kw_only=True)
class AlwaysExpect:
    """What a plugin says it keeps is as a rule has it after each of its calls in a process."""

    text: str
    line: int
    plugin: str
    role: str
    """The part of the processes it is about; empty for all."""
    rule: Rule


@attrs.frozen(kw_only=True)
class TextWanted:
    """What a text has to hold."""

    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    equals: str | None = None


@attrs.frozen(kw_only=True)
class FileExpect:
    """A file of the simulated disk as the run leaves it."""

    text: str
    line: int
    path: str
    host: str
    owner: str
    exists: bool
    wanted: TextWanted


@attrs.frozen(kw_only=True)
class OutputExpect:
    """What a batch job has written, `stdout` or `stderr`."""

    text: str
    line: int
    job: str
    stream: str
    wanted: TextWanted


@attrs.frozen(kw_only=True)
class EnvironmentExpect:
    """The environment of one task of a step, or of all, as it executes its program."""

    text: str
    line: int
    step: str
    task: int | None
    has: tuple[tuple[str, str | None], ...]
    lacks: tuple[str, ...]


LookingExpect = AlwaysExpect | FileExpect | OutputExpect | EnvironmentExpect
"""What no event tells: it is looked at while the scenario runs, and at its end."""

Expectation = JobExpect | OrderExpect | NeverExpect | CountExpect | LookingExpect


@attrs.frozen(kw_only=True)
class LuaSpec:
    """Under which Lua and Slurm a site's scripts run, and which defects of Slurm there are."""

    version: str = "5.4"
    slurm: str = "22.05"
    defects: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Scenario:
    """A cluster, what happens to it, and what should come of it."""

    path_name: str
    """Name of the file, without its folder: what a trace says."""
    folder: str = attrs.field(eq=False, repr=False)
    """Folder of the file, against which the paths of plugins are taken."""
    description: str
    """First comment of the file."""
    seed: int
    model: str
    start_time: str
    """What clocks show at virtual time 0, as `2026-01-01T00:00:00Z`."""
    start_epoch_s: int
    latency_us: int
    slurm_conf: SlurmConf
    nodes: tuple[NodeSpec, ...]
    partitions: tuple[PartitionSpec, ...]
    users: tuple[UserSpec, ...]
    plugins: tuple[PluginSpec, ...] = ()
    slurm_lib: str = ""
    """Path of the user's own libslurmfull.so, for compiled plugins."""
    slurm_records: str = ""
    """Path of a file whose debug information describes Slurm's records, for compiled plugins."""
    files: Mapping[str, str] = attrs.field(factory=dict)
    programs: Mapping[str, Program] = attrs.field(factory=dict)
    timeline: tuple[Entry, ...] = ()
    recorded: Mapping[str, int] | None = None
    """How long jobs waited at the site that they are from, in microseconds; None of other jobs."""
    expect: tuple[Expectation, ...] = ()
    burst_buffer_conf: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    """What each burst_buffer.conf says, by its plugin, or by nothing where it is of all."""
    checkpoint: ImagesSpec = attrs.field(factory=ImagesSpec)
    """How fast checkpoint images are written, and how many there is space for."""
    burst_buffer: ApplianceSpec = attrs.field(factory=ApplianceSpec)
    """The simulated appliance behind burst buffer plugins."""
    options: Options = attrs.field(factory=Options)
    lua: LuaSpec = attrs.field(factory=LuaSpec)
    lua_scripts: Mapping[str, str] = attrs.field(factory=dict)
    """The text of each script, by the name of its file."""

    asks_nodes: bool = True
    """Whether slurmctld asks nodes to register again now and then; a replay's does not."""

    places: Mapping[str, str] = attrs.field(factory=dict, eq=False, repr=False)
    """Where slurm.conf names plugins: `FILE:LINE:COLUMN` by its key."""
    warnings: tuple[Mistake, ...] = attrs.field(default=(), eq=False)
    ignored: tuple[str, ...] = attrs.field(default=(), eq=False)
    """What Slurm knows in the site's own files and nothing here depends on."""

    @property
    def is_recorded(self) -> bool:
        """Return whether it is what a served cluster has recorded: its programs ran outside."""
        return any(isinstance(entry, OutsideEntry) for entry in self.timeline)

    @property
    def files_of_code(self) -> tuple[str, ...]:
        """Return what names Python, C or a module: plugins, and functions of expectations."""
        specs = (*self.plugins, *(each for node in self.nodes for each in node.plugins))
        checks = (
            each.rule.reference
            for each in self.expect
            if isinstance(each, AlwaysExpect) and isinstance(each.rule, Check)
        )
        return (*(each.reference for each in specs), *checks)

    def uids(self) -> dict[str, int]:
        """Return the uid behind each user's name, as the header of a trace has it."""
        return {user.name: user.uid for user in self.users}
