"""Builds a cluster and runs it: the one module that knows every daemon and command."""

import gc
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final, Protocol

import attrs
import trio
from msgspec import UNSET

from simctl import __version__
from simctl.appliance.appliance import Appliance
from simctl.commands.table import COMMANDS
from simctl.ctld.daemon import Slurmctld
from simctl.ctld.jobs.eligible import is_stuck
from simctl.ctld.jobs.staging import waits_for_stage_in
from simctl.ctld.state.job_rows import JobRow
from simctl.ctld.state.queue import reason_to_wait
from simctl.ctld.state.records import JobRecord, NodeRecord, PartRecord
from simctl.faults.daemons import Daemons
from simctl.faults.injector import FaultInjector
from simctl.kernel.disk import Disk
from simctl.kernel.due import pick_turn
from simctl.kernel.events import Event
from simctl.kernel.fabric import Fabric
from simctl.kernel.faults import CallFaults
from simctl.kernel.footprint import EVERYTHING
from simctl.kernel.places import Visitor, Walk
from simctl.kernel.procs import (
    OUT_OF_MEMORY_STATUS,
    Host,
    ProcessTable,
    RunsAs,
    StateNotCopyableError,
    wait_status,
)
from simctl.kernel.recording import FORMAT
from simctl.kernel.schedules import Schedule, make_schedule, token_of
from simctl.kernel.trace import Trace
from simctl.kernel.turns import FiniteDeadlineError, Kernel, TornDownError
from simctl.limits import OUTPUT_CHARACTERS, RUN_TURNS
from simctl.nodes.slurmd import Slurmd
from simctl.orderings.checking import Report, check_orderings, not_checked
from simctl.orderings.observed import Terms
from simctl.plugins.guard import OUT_OF_MEMORY, Standing
from simctl.plugins.hooks import Hooks
from simctl.plugins.registry import PluginError, Registry
from simctl.plugins.watchdog import Watchdog
from simctl.scenario.burst_buffer_conf import edited
from simctl.scenario.durations import format_us
from simctl.scenario.expect import Result, check
from simctl.scenario.model import (
    CONTROLLER,
    AnswerEntry,
    ApplianceEntry,
    At,
    Checks,
    ConfEntry,
    CorruptFault,
    CrashController,
    CutFault,
    DiskFault,
    Entry,
    FailFault,
    FaultEntry,
    FilesEntry,
    HangFault,
    MessageFault,
    NodeSpec,
    PickEntry,
    Placed,
    Program,
    ProgramsEntry,
    ProgramSpec,
    RaiseFault,
    RunEntry,
    Scenario,
    StayEntry,
    StopController,
    When,
    behaviour,
)
from simctl.scenario.placed import PlacedEntries
from simctl.site import CommandCall, Site, User
from simctl.state_folder import StateFolder
from simctl.stepd.images import Images
from simctl.stepd.outcome import NEVER_US, ProgramRun
from simctl.stepd.programs import Programs
from simctl.wire.burst_buffer_conf import FOLDER, file_name, write_conf
from simctl.wire.conf import can_checkpoint
from simctl.wire.credentials import KeyPair
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.resources import Room
from simctl.wire.states import NodeBase, NodeFlag, PartState

WATCHDOG_S: Final = 10.0
"""How long a plugin's code may run in one turn, in seconds of wall time."""

_PATIENCE_TURNS: Final = 100_000
"""How many turns plugins' threads may take while nothing else happens."""


_LAST_LOOKED_AT: Final = 10_000
"""Of how many events it is told what they were, where a run would not end."""


@attrs.frozen(kw_only=True)
class CommandResult:
    """How a command of the timeline ended; `exit` is -1 while it has not."""

    label: str
    line: int
    at_us: int
    user: str
    command: str
    exit: int
    errno: str
    stdout: str
    stderr: str
    checks: Checks

    def as_json(self) -> dict[str, Any]:
        """Return what `run --json` says of it; `exit` is null while it has not ended."""
        return {
            "at_us": self.at_us,
            "user": self.user,
            "command": self.command,
            "exit": self.exit if self.exit >= 0 else None,
            "errno": self.errno,
            "stdout": self.stdout,
            "stderr": self.stderr,
        }


@attrs.frozen(kw_only=True)
class Complaint:
    """Something that a plugin did wrong, in which function, and how often."""

    function: str
    problem: str
    times: int


@attrs.frozen(kw_only=True)
class RunResult:
    """What a run came to; two runs of one scenario, seed and schedule differ in `wall_s` alone."""

    scenario: str
    seed: int
    schedule: str
    model: str
    end_time_us: int
    stalled: tuple[str, ...]
    """Who waits for what, when the run stalled; else empty."""

    ran_out: tuple[str, ...]
    """Why the run was ended before it was over, when it took too many turns; else empty."""

    stopped_at_limit: bool
    rows: tuple[JobRow, ...]
    commands: tuple[CommandResult, ...]
    expectations: tuple[Result, ...]
    counts: Mapping[str, int]
    wall_s: float
    interrupted: bool = False
    schedule_note: str = ""
    """What is to be said of the schedule: the run is not the one that its token was taken from."""

    damages: tuple[str, ...] = ()
    """State files that slurmctld could not read whole, and what was made of them."""

    complaints: tuple[Complaint, ...] = ()
    """What plugins did wrong by themselves, in the order of their first time."""
    fatalities: tuple[str, ...] = ()
    """Daemons that could not go on, each with its reason."""
    lost_jobs: tuple[int, ...] = ()
    """Jobs that a slurmctld knew nothing of any more which another had known."""
    missed: tuple[str, ...] = ()
    """Faults that met nobody, each with the reason."""
    ignored: tuple[str, ...] = ()
    """What a site's own slurm.conf says that nothing here depends on."""
    orderings: Report = attrs.field(factory=lambda: not_checked("nobody asked for it"))
    """What came of checking the built-in orderings."""

    @property
    def held(self) -> bool:
        """Tell whether all that was expected came true, every ordering held, nothing stalled."""
        return (
            not self.stalled
            and not self.ran_out
            and not self.orderings.broken
            and all(result.held for result in self.expectations)
        )

    def as_json(self) -> dict[str, Any]:
        """Return the object that `run --json` prints."""
        return {
            "scenario": self.scenario,
            "seed": self.seed,
            "schedule": self.schedule,
            "model": self.model,
            "end_time_us": self.end_time_us,
            "stalled": bool(self.stalled),
            "ran_out": bool(self.ran_out),
            "jobs": [row.as_json() for row in self.rows],
            "expectations": [
                {"text": each.text, "held": each.held, "detail": each.detail}
                for each in self.expectations
            ],
            "orderings": self.orderings.as_json(),
            "plugin_errors": [attrs.asdict(each) for each in self.complaints],
            "fatal": list(self.fatalities),
            "damaged": list(self.damages),
            "faults_missed": list(self.missed),
            "lost_jobs": list(self.lost_jobs),
            "ignored": list(self.ignored),
            "commands": [each.as_json() for each in self.commands],
            "counts": dict(self.counts),
            "wall_s": round(self.wall_s, 3),
        }


class CommandListener(Protocol):
    """Somebody who hears a command as it runs."""

    def wrote(self, entry: RunEntry, stream: str, text: str) -> None:
        """Hear what the command printed."""

    def ended(self, entry: RunEntry, status: int) -> None:
        """Hear that it has ended."""


class World:
    """A cluster of a scenario, ready to run once."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        seed: int | None = None,
        schedule: str | Schedule = "fifo",
        model: str = "",
        until_us: int | None = None,
        most_turns: int = RUN_TURNS,
        watchdog_s: float = WATCHDOG_S,
        registry: Registry | None = None,
        orderings: bool = True,
        state_dir: str = "",
    ) -> None:
        self.state_dir = state_dir
        self._state_lock: IO[str] | None = None
        self.scenario = scenario
        self.orderings = orderings
        """Whether the built-in orderings are checked at the end, if all events were kept."""
        self.watchdog_s = watchdog_s
        self.seed = scenario.seed if seed is None else seed
        self.model = model or scenario.model
        if isinstance(schedule, str):
            schedule = make_schedule(schedule, self.seed)
        self.kernel = Kernel(schedule=schedule, until_us=until_us, most_turns=most_turns)
        self.trace = Trace(self.kernel)
        self.fabric = Fabric(self.kernel, self.trace, latency_us=scenario.latency_us)
        self.fabric.timeout_us = scenario.slurm_conf.message_timeout_s * SECOND
        self.procs = ProcessTable(self.kernel, self.trace)
        self.faults = CallFaults(self.trace)
        self.disk = Disk()
        registry = registry or Registry()
        self.site = self._make_site(registry)
        self.login = Host(name="login", node="login")
        self.hosts = {node.name: Host(name=node.name, node=node.name) for node in scenario.nodes}
        self.controller_host = Host(name=CONTROLLER, node=None)
        self._saves = bool(state_dir) or saves_are_simulated(scenario)
        self.results: list[CommandResult] = []
        self.events: list[Event] = []
        self.background: list[Callable[[], None]] = []
        self.jobs_to_come = 0
        """How many jobs are known to be submitted in the whole run, for whoever waits for it."""
        self.visitor: Visitor | None = None
        """Who is led through the run; without one, what the scenario has at exact places."""
        self.listener: CommandListener | None = None
        self._placed: PlacedEntries | None = None
        self._waiting_commands: dict[int, Callable[[], CommandResult]] = {}
        self._phase = "running"
        self._patience = (-1, 0)
        self.watchdog = Watchdog(self.kernel, 0)
        self._standing = Standing(bounded=registry.has_others())
        self._stalled: tuple[str, ...] = ()
        self.daemons = Daemons(
            site=self.site,
            ctld=self._make_controller(),
            hosts=self.hosts,
            slurmds={name: Slurmd(self.site, host) for name, host in self.hosts.items()},
            primary=self.controller_host,
            make_ctld=lambda before, host, clean: self._make_controller(before, host, clean=clean),
        )
        self.injector = FaultInjector(self.daemons, self.faults, seed=self.seed)
        self.kernel.on_idle = self._on_idle

    @property
    def ctld(self) -> Slurmctld:
        """The controller, as it was started last."""
        return self.daemons.ctld

    # Building.

    def _make_site(self, registry: Registry) -> Site:
        scenario = self.scenario
        known = dict.fromkeys(
            name.partition(":")[0] for node in scenario.nodes for name in node.gres
        )
        conf = scenario.slurm_conf
        conf = attrs.evolve(conf, gres_types=conf.gres_types or tuple(known))
        _load_plugins(registry, scenario, self.model)
        hooks = Hooks(
            trace=self.trace,
            registry=registry,
            model=self.model,
            types={"switch": conf.switch_type, "checkpoint": conf.checkpoint_type},
            faults=self.faults,
        )
        if self.kernel.schedule.switches_at_calls:
            hooks.switch = self.kernel.switch
        users = {
            user.name: User(
                name=user.name,
                uid=user.uid,
                gid=user.gid,
                account=user.account,
                admin=user.admin,
            )
            for user in scenario.users
        }
        for user in users.values():
            self.disk.own(user.home, user.uid)
        slurm_uid = users[conf.slurm_user].uid
        for host in (CONTROLLER, conf.backup_controller):
            self.disk.own(conf.state_save_location, slurm_uid, host or CONTROLLER)
        for host in (
            (CONTROLLER, *(node.name for node in scenario.nodes)) if can_checkpoint(conf) else ()
        ):
            self.disk.own(conf.job_checkpoint_dir, slurm_uid, host, shared=True)
        run_name = ""
        if self.state_dir:
            folder = StateFolder(Path(self.state_dir))
            self._state_lock = folder.lock()
            try:
                run_name = folder.load(self.disk, CONTROLLER, conf.state_save_location, slurm_uid)
            except BaseException:
                self._unlock()
                raise
        self._place_files(users)
        self.burst_buffers = {name: dict(keys) for name, keys in scenario.burst_buffer_conf.items()}
        """What stands in each burst_buffer.conf at present, by its plugin."""
        self._write_burst_buffer_conf()
        self.procs.fabric = self.fabric
        self.procs.disk = self.disk
        self.procs.conf = conf
        self.procs.model = self.model
        described = {name: _describe(program) for name, program in scenario.programs.items()}
        return Site(
            kernel=self.kernel,
            trace=self.trace,
            fabric=self.fabric,
            procs=self.procs,
            hooks=hooks,
            disk=self.disk,
            conf=conf,
            model=self.model,
            start_time_s=scenario.start_epoch_s,
            users=users,
            keys=KeyPair(f"{conf.cluster_name}:{self.seed}"),
            options=scenario.options,
            run_name=run_name,
            asks_nodes=scenario.asks_nodes,
            folder=str(Path(scenario.folder).resolve()),
            appliance=Appliance(
                scenario.burst_buffer,
                kernel=self.kernel,
                disk=self.disk,
                host=CONTROLLER,
                start_s=scenario.start_epoch_s,
                plugin_names=(
                    *self.burst_buffers,
                    *(each.rpartition("/")[2] for each in conf.burst_buffer_types),
                ),
            ),
            images=Images(
                scenario.checkpoint,
                kernel=self.kernel,
                disk=self.disk,
                enabled=conf.checkpoint_type != "checkpoint/none",
            ),
            commands=dict(COMMANDS),
            programs=Programs(described, random.Random(f"programs:{self.seed}")),
        )

    def _place_files(self, users: Mapping[str, User]) -> None:
        """Put files into each user's folder, and those with a whole path onto every host.

        What lies in somebody's folder by its whole path is theirs.
        """
        for name, text in self.scenario.files.items():
            owner = next((u for u in users.values() if name.startswith(f"{u.home}/")), None)
            if owner is not None:
                self.disk.write(name, text, owner.home, uid=owner.uid, by_hand=True)
                continue
            if name.startswith("/"):
                for host in self._all_hosts():
                    self.disk.write(name, text, host=host, by_hand=True)
                continue
            for user in users.values():
                self.disk.write(name, text, user.home, uid=user.uid, by_hand=True)

    def _all_hosts(self) -> tuple[str, ...]:
        backup = self.scenario.slurm_conf.backup_controller
        hosts = ("login", "slurmctld", *(node.name for node in self.scenario.nodes))
        return (*hosts, backup) if backup else hosts

    def _write_burst_buffer_conf(self) -> None:
        for name, keys in self.burst_buffers.items():
            path = f"{FOLDER}/{file_name(name)}"
            for host in (CONTROLLER, self.scenario.slurm_conf.backup_controller):
                if host:
                    self.disk.write(path, write_conf(keys), host=host, by_hand=True)

    def _make_controller(
        self, before: Slurmctld | None = None, host: Host | None = None, *, clean: bool = False
    ) -> Slurmctld:
        """Make a slurmctld with fresh tables; its state comes from its files when it starts."""
        scenario = self.scenario
        records = [
            NodeRecord(
                index=index,
                name=node.name,
                address=f"slurmd@{node.name}",
                total=Room(
                    index=index,
                    cpus=node.cpus,
                    memory_mb=node.memory_mb,
                    gres=dict(node.gres),
                ),
                **_begins(node, self.site.users[scenario.slurm_conf.slurm_user].uid),
                features=node.features,
            )
            for index, node in enumerate(scenario.nodes)
        ]
        by_name = {record.name: record for record in records}
        partitions = []
        for spec in scenario.partitions:
            members = tuple(by_name[name] for name in spec.nodes)
            cpus = {node.cpus for node in members}
            part = PartRecord(
                name=spec.name,
                nodes=members,
                default=spec.default,
                max_time_min=spec.max_time_min,
                default_time_min=spec.default_time_min
                if spec.default_time_min != INFINITE
                else spec.max_time_min,
                max_nodes=spec.max_nodes,
                min_nodes=spec.min_nodes,
                uniform_cpus=members[0].cpus if len(cpus) == 1 else 0,
                state=PartState[spec.state],
                tier=spec.priority_tier,
                exclusive=spec.exclusive,
                preempt_mode=spec.preempt_mode,
                grace_time_s=spec.grace_time_s,
                root_only=spec.root_only,
                allow_accounts=spec.allow_accounts,
                deny_accounts=spec.deny_accounts,
                def_mem_per_cpu_mb=spec.def_mem_per_cpu_mb,
                def_mem_per_node_mb=spec.def_mem_per_node_mb,
            )
            partitions.append(part)
        return Slurmctld(
            self.site,
            self.controller_host if host is None else host,
            uid=self.site.users[scenario.slurm_conf.slurm_user].uid,
            records=records,
            partitions=partitions,
            saves=self._saves,
            clean=clean,
            before=before,
        )

    # Running.

    def run(self) -> RunResult:
        """Run to the end; a run that is interrupted gives what was reached.

        Raises:
            PluginError: A plugin keeps in memory what no fork could copy, or waits in real time.
            ScheduleError: The schedule is a token of another run.
            Exception: simctl itself is at fault.
        """
        started = time.perf_counter()
        interrupted = False
        thresholds = gc.get_threshold()
        gc.set_threshold(1_000_000, 50, 100)
        try:
            with self._standing:
                trio.run(
                    self._watched,
                    clock=self.kernel,
                    restrict_keyboard_interrupt_to_checkpoints=True,
                )
        except KeyboardInterrupt:
            interrupted = True
        except BaseExceptionGroup as group:
            # trio wraps what ends the run; there is never more than one thing.
            error = _only(group)
            if isinstance(error, StateNotCopyableError):
                raise PluginError(f"plugin {error}") from None
            if isinstance(error, TornDownError):
                raise PluginError("a plugin has cancelled tasks of the run; none may") from None
            if isinstance(error, MemoryError) and self._standing.bounded:
                raise PluginError(f"the run, with plugins of your own, {OUT_OF_MEMORY}") from None
            if isinstance(error, FiniteDeadlineError):
                # No daemon does: a plugin has used trio's own sleep.
                names = dict.fromkeys(call.name for call in self.site.hooks.under_way)
                raise PluginError(
                    f"plugin function {' or '.join(names) or '(a thread)'} waits in real time; "
                    "`await sleep(seconds)` of simctl.plugin waits in virtual time"
                ) from None
            if not isinstance(error, KeyboardInterrupt):
                raise error from None
            interrupted = True
        finally:
            gc.set_threshold(*thresholds)
            self._unlock()
            if self._standing.harms:
                harms = ", ".join(self._standing.harms)
                raise PluginError(f"a plugin's code has harmed the run: {harms}")
        wall_s = time.perf_counter() - started
        return self._result(wall_s, interrupted=interrupted)

    def _unlock(self) -> None:
        """Let other runs have the folder of slurmctld's state."""
        if self._state_lock is not None:
            self._state_lock.close()

    async def _watched(self) -> None:
        # A tick that came while trio closes what signals wake it with would be told as an error.
        with Watchdog(self.kernel, self.watchdog_s, self._standing) as self.watchdog:
            await self.kernel.run(self._begin)

    def _begin(self) -> None:
        placed = [e for e in self.scenario.timeline if isinstance(e.moment, Placed)]
        if self.visitor is None and placed:
            self.visitor = self._placed = PlacedEntries(self.kernel, placed, self.happen)
        if self.visitor is not None:
            Walk(self.kernel, self.trace, self.faults, self.visitor)
        later = [entry for entry in self.scenario.timeline if not self._is_in_force_first(entry)]
        self.ctld.start()
        for slurmd in self.daemons.slurmds.values():
            slurmd.start()
        for entry in later:
            self._arrange(entry)
        for start in self.background:
            start()

    def _is_in_force_first(self, entry: Entry) -> bool:
        """Put what holds from time 0 in force before any daemon starts: rules, cuts, appliance."""
        if entry.moment != At(time_us=0):
            return False
        if isinstance(entry, ApplianceEntry):
            self.change_appliance(entry)
            return True
        if not isinstance(entry, FaultEntry):
            return False
        if not isinstance(entry.fault, _IN_FORCE_FIRST):
            return False
        self.injector.happen(entry)
        return True

    def _arrange(self, entry: Entry) -> None:
        """Have an entry happen at its moment, or on the events that match."""
        moment = entry.moment
        if isinstance(moment, At):
            self.kernel.call_at(moment.time_us, self.happen, entry)
        elif isinstance(moment, When):
            self.trace.add_sink(_Trigger(moment, lambda: self.happen(entry)))

    def happen(self, entry: Entry) -> None:
        """Have an entry of the timeline happen now."""
        if not isinstance(entry, RunEntry):
            self.kernel.touch(EVERYTHING)
        if isinstance(entry, FilesEntry):
            self.write_files(entry)
        elif isinstance(entry, ProgramsEntry):
            for name, program in entry.programs.items():
                self.site.programs.describe(name, _describe(program))
        elif isinstance(entry, PickEntry):
            pick_turn(self.kernel, entry.rank)
        elif isinstance(entry, StayEntry | AnswerEntry):
            # An answer is given by whoever is asked as the call begins.
            pass
        elif isinstance(entry, RunEntry):
            self.run_command(entry)
        elif isinstance(entry, ConfEntry):
            self.edit_burst_buffer_conf(entry)
        elif isinstance(entry, ApplianceEntry):
            self.change_appliance(entry)
        else:
            self.injector.happen(entry)

    def write_files(self, entry: FilesEntry) -> None:
        """Write a user's files, and those of root with a whole path onto every host."""
        user = self.site.users[entry.user]
        for name, text in entry.files.items():
            for host in self._all_hosts() if name.startswith("/") else ("login",):
                self.disk.write(name, text, user.home, uid=user.uid, host=host, by_hand=True)

    def edit_burst_buffer_conf(self, entry: ConfEntry) -> None:
        """Write keys of burst_buffer.conf anew; daemons find them when they read it again."""
        self.trace.note("fault", "edit_conf", args={"conf": entry.text})
        for name, keys in entry.burst_buffer_conf.items():
            for each in (name,) if name or not self.burst_buffers else tuple(self.burst_buffers):
                self.burst_buffers[each] = edited(self.burst_buffers.get(each, {}), keys)
        self._write_burst_buffer_conf()

    def change_appliance(self, entry: ApplianceEntry) -> None:
        """Change something about the appliance behind burst buffer plugins."""
        self.trace.note("fault", "appliance", args={"change": entry.text})
        self.site.appliance.change(entry.change)

    # Commands.

    def run_command(self, entry: RunEntry) -> None:
        """Run a command line on the login host, as its user."""
        listener = self.listener
        user = self.site.users[entry.user]
        argv = entry.argv
        process = self.procs.add(
            self.login,
            ppid=1,
            daemon=argv[0],
            role=argv[0],
            uid=user.uid,
            runs_as=RunsAs.USER,
            apart=True,
        )
        self.kernel.touch(process.unit)
        stdout: list[str] = []
        stderr: list[str] = []
        room = {"stdout": OUTPUT_CHARACTERS, "stderr": OUTPUT_CHARACTERS}
        where = user.home

        def write(stream: str, text: str) -> None:
            kept = stdout if stream == "stdout" else stderr
            room[stream] -= len(text)
            if room[stream] >= 0:
                kept.append(text)
            elif room[stream] + len(text) >= 0:
                kept.append(f"... {argv[0]} prints more; so much is kept\n")
                room[stream] = -1
            if listener is not None:
                listener.wrote(entry, stream, text)

        call = CommandCall(
            site=self.site,
            process=process,
            mailbox=self.fabric.mailbox(process, f"{argv[0]}@login"),
            argv=argv,
            env={
                **user.login,
                "PWD": where,
                "HOSTNAME": "login",
            },
            work_dir=where,
            user=user,
            write=write,
        )
        process.env = call.env
        at_us = self.kernel.now_us

        def result(status: int) -> CommandResult:
            return CommandResult(
                label=entry.label,
                line=entry.line,
                at_us=at_us,
                user=entry.user,
                command=entry.command,
                exit=status,
                errno=call.errno,
                stdout="".join(stdout),
                stderr="".join(stderr),
                checks=entry.checks,
            )

        async def body() -> None:
            args = {"line": entry.command}
            process.cause = self.trace.note("command", argv[0], process, phase="enter", args=args)
            status = await COMMANDS[argv[0]](call)
            self.trace.note(
                "command",
                argv[0],
                process,
                phase="exit",
                args=args,
                rc=status,
                errno=call.errno or UNSET,
            )
            call.mailbox.close(breaks=True)
            process.exit(wait_status(status))
            del self._waiting_commands[process.pid]
            self.results.append(result(status))
            if listener is not None:
                listener.ended(entry, status)

        self._waiting_commands[process.pid] = lambda: result(-1)
        process.start(body)

    # The end.

    def _on_idle(self) -> bool:
        """Decide what follows when nothing is due: a stall, the cluster's shutdown, the end."""
        if self.visitor is not None and self.visitor.goes_on():
            return True
        if self._phase != "running":
            if self._threads_may_help():
                return True
            self._stalled = self._stalled or self._calls_under_way()
            return False
        waiting = self._who_waits()
        if waiting and self._threads_may_help():
            return True
        self._phase = "over"
        self._stalled = waiting
        if self._stalled:
            return False
        self.injector.cease()
        if self.ctld.mailbox.open:
            self.ctld.shut_down()
        else:
            for slurmd in self.daemons.slurmds.values():
                slurmd.shut_down()
        return self.kernel.foreground > 0

    @property
    def running(self) -> bool:
        """Tell whether the cluster is in service: nobody has told the daemons to stop yet."""
        return self._phase == "running"

    def at_rest(self) -> tuple[str, ...] | None:
        """Return who waits for what where nothing is due that keeps a run alive.

        None if a plugin's own thread is due that may end somebody's wait.
        """
        waiting = self._who_waits()
        return None if waiting and self._threads_may_help() else waiting

    def _threads_may_help(self) -> bool:
        """Tell whether a plugin's own thread is due that may end somebody's wait.

        A thread that has gone on for long while no message was sent helps nobody.
        """
        if self.trace.messages != self._patience[0]:
            self._patience = (self.trace.messages, self.kernel.turns + _PATIENCE_TURNS)
        return self.kernel.lingering > 0 and self.kernel.turns < self._patience[1]

    def _calls_under_way(self) -> tuple[str, ...]:
        """Return which plugin calls have not come back."""
        lines = [
            f"{call.who.name} (pid {call.who.pid}) on {call.who.host.name} waits for "
            f"{call.name} of its plugin to return"
            for call in self.site.hooks.under_way
        ]
        holder = self.ctld.lock_holder
        if holder is not None:
            lines.append(f"slurmctld waits for its job write lock, which {holder.name} has")
        return tuple(lines)

    def _who_waits(self) -> tuple[str, ...]:
        """Return who waits for what in a run that can go no further; nothing if all is done."""
        ctld = self.ctld.tables
        jobs = [job for job in ctld.jobs.values() if _could_move(ctld, job)]
        lines = [_job_waits(job) for job in jobs]
        if lines and not self.ctld.mailbox.open:
            lines.append("slurmctld has ended, and nothing is due to start it again")
        held = any(not job.state.finished for job in ctld.jobs.values())
        if lines or not held:
            lines += [
                f"`{each.command}` of {each.user} ({each.label}) has not ended"
                for each in self.unended()
            ]
        lines += self._calls_under_way()
        if not lines:
            return ()
        down = [
            f"{node.name} is {node.base.name}"
            for node in self.ctld.nodes
            if node.base < NodeBase.IDLE or node.flags & NodeFlag.DRAIN
        ]
        if down:
            lines.append("nodes that take no job: " + ", ".join(down[:20]))
        if self.injector.endless:
            lines.append("messages go wrong for ever: " + "; ".join(self.injector.endless))
        hosts: Iterable[Host] = (self.login, *self.hosts.values())
        for host in hosts:
            for process in host.processes.values():
                lines += [
                    f"{thread.name} (pid {process.pid}) on {host.name} waits for {thread.waits_for}"
                    for thread in process.threads
                    if thread.parked and process.daemon != "slurmd"
                ]
        return tuple(lines)

    def _ran_out(self) -> tuple[str, ...]:
        """Return what is to be said of a run that took too many turns."""
        if not self.kernel.ran_out:
            return ()
        unfinished = sum(not job.state.finished for job in self.ctld.jobs.values())
        lines = [
            f"more than {self.kernel.most_turns} turns were caused; a run has no more by itself"
        ]
        if unfinished:
            when = format_us(self.kernel.now_us)
            lines.append(f"{unfinished} jobs are unfinished at {when} of virtual time")
        last = Counter(f"{event.kind} {event.name}" for event in self.events[-_LAST_LOOKED_AT:])
        if last:
            often = ", ".join(f"{what} ({times})" for what, times in last.most_common(4))
            lines.append(f"the last {sum(last.values())} events: {often}")
        lines.append("--until TIME ends a run at a moment; --max-turns N lets it go on, 0 for ever")
        return tuple(lines)

    def unended(self) -> list[CommandResult]:
        """Return what the commands that have not ended have done so far."""
        return [result_so_far() for result_so_far in self._waiting_commands.values()]

    def _check_orderings(self, *, interrupted: bool) -> Report:
        """Hold the run against the built-in orderings, which takes all of its events."""
        if not self.orderings:
            return not_checked("--no-orderings")
        if len(self.events) != self.trace.seq:
            return not_checked("the run's events are not kept")
        kernel = self.kernel
        finished = not (interrupted or self._stalled or kernel.stopped_at_limit or kernel.ran_out)
        return check_orderings(self.events, self.terms(finished=finished))

    def terms(self, *, finished: bool = True) -> Terms:
        """Return what the built-in orderings must know of the run beside its events."""
        return Terms(
            model=self.model,
            finished=finished,
            goes_on=bool(self.state_dir),
            conf={
                name: getattr(record, name)
                for record in (self.site.conf, self.scenario.options)
                for name in attrs.fields_dict(type(record))
            },
            users={name: user.uid for name, user in self.site.users.items()},
            operators=self._uids_of("operator", "administrator"),
            administrators=self._uids_of("administrator"),
        )

    def _uids_of(self, *admins: str) -> frozenset[int]:
        users = self.site.users.values()
        return frozenset(user.uid for user in users if user.admin in admins)

    def _result(self, wall_s: float, *, interrupted: bool) -> RunResult:
        rows = tuple(self.ctld.tables.rows())
        commands = tuple(sorted((*self.results, *self.unended()), key=_by_line))
        expectations = [each for one in commands for each in check_command(one)]
        if self._placed is not None:
            expectations += self._placed.unreached()
        if self.scenario.expect:
            expectations += check(
                self.scenario.expect, self.events, [row.as_json() for row in rows]
            )
        return RunResult(
            scenario=self.scenario.path_name,
            seed=self.seed,
            schedule=self.kernel.schedule.name,
            model=self.model,
            end_time_us=self.kernel.now_us,
            stalled=self._stalled,
            ran_out=self._ran_out(),
            stopped_at_limit=self.kernel.stopped_at_limit,
            rows=rows,
            commands=commands,
            expectations=tuple(expectations),
            counts={
                "events": self.trace.seq,
                "turns": self.kernel.turns,
                "plugin_calls": self.site.hooks.calls,
                "messages": self.trace.messages,
            },
            wall_s=wall_s,
            interrupted=interrupted,
            schedule_note="" if interrupted else self._check_schedule(),
            fatalities=tuple(self.trace.fatalities),
            damages=tuple(self.trace.damages),
            missed=tuple(self.injector.missed),
            lost_jobs=tuple(self.trace.lost_jobs),
            complaints=tuple(
                Complaint(function=function, problem=problem, times=times)
                for (function, problem), times in self.trace.complaints.items()
            ),
            ignored=self.scenario.ignored,
            orderings=self._check_orderings(interrupted=interrupted),
        )

    def _check_schedule(self) -> str:
        line = self.kernel.line
        if line is None or self.kernel.stopped_at_limit or self.kernel.ran_out:
            return ""
        return self.kernel.schedule.check(line)

    @property
    def token(self) -> str:
        """Return the token that repeats the schedule so far; `fifo` needs none."""
        line = self.kernel.line
        if line is None:
            return self.kernel.schedule.name
        return token_of(line, calls=self.kernel.schedule.switches_at_calls).text()

    def header(self) -> dict[str, Any]:
        """Return the first line of this run's trace."""
        return {
            "simctl_trace": FORMAT,
            "version": __version__,
            "scenario": self.scenario.path_name,
            "seed": self.seed,
            "schedule": self.kernel.schedule.name,
            "model": self.model,
            "start_time": self.scenario.start_time,
            "users": {name: user.uid for name, user in self.site.users.items()},
        }


def saves_are_simulated(scenario: Scenario) -> bool:
    """Tell whether slurmctld saves its state as it runs: as the scenario says, or where it shows.

    It shows if slurmctld may die, or its files or its disk may be damaged.
    """
    if scenario.options.state_saves != "auto":
        return scenario.options.state_saves == "always"
    shows = (StopController, CrashController, CorruptFault, DiskFault)
    return any(
        isinstance(entry, FaultEntry) and isinstance(entry.fault, shows)
        for entry in scenario.timeline
    )


def _begins(node: NodeSpec, uid: int) -> dict[str, Any]:
    """Return the state in which a node begins that is not as a node usually begins."""
    if node.state == "UNKNOWN":
        return {}
    down = node.state == "DOWN"
    return {
        "base": NodeBase.DOWN if down else NodeBase.UNKNOWN,
        "flags": NodeFlag.NONE if down else NodeFlag.DRAIN,
        "reason": node.reason,
        "reason_uid": uid if node.reason else NO_VAL,
        "reason_us": 0,
    }


def _load_plugins(registry: Registry, scenario: Scenario, model: str) -> None:
    """Take in the scenario's plugins, and check those that its slurm.conf names.

    Raises:
        PluginError: Everything that is wrong with them, each with its place.
    """
    mistakes: list[str] = []
    path = Path(scenario.folder) / scenario.path_name
    file = str(path) if path.is_file() else scenario.path_name
    for plugin in scenario.plugins:
        try:
            registry.add(plugin.reference, Path(scenario.folder))
        except PluginError as error:
            where = f"{file}:{plugin.line}:{plugin.column}"
            mistakes += [f"{where}: {mistake}" for mistake in error.mistakes]
    for node in scenario.nodes:
        for plugin in node.plugins:
            try:
                registry.add_on(node.name, plugin.reference, Path(scenario.folder), model)
            except PluginError as error:
                where = f"{file}:{plugin.line}:{plugin.column}"
                mistakes += [f"{where}: {mistake}" for mistake in error.mistakes]
    if not mistakes:
        conf = scenario.slurm_conf
        for key, plugin_type in (
            ("SwitchType", conf.switch_type),
            ("CheckpointType", conf.checkpoint_type),
            *(("BurstBufferType", each) for each in conf.burst_buffer_types),
        ):
            try:
                registry.require(plugin_type, key, model)
            except PluginError as error:
                mistakes += [f"{file}: {mistake}" for mistake in error.mistakes]
    if mistakes:
        raise PluginError(*mistakes)


_IN_FORCE_FIRST: Final = (FailFault, RaiseFault, HangFault, CutFault, MessageFault)
"""Faults that are in force before any daemon starts, if they are there at time 0."""


class _Trigger:
    """A sink that lets an entry happen on the first event that matches, or on each, after some."""

    def __init__(self, moment: When, happen: Callable[[], None]) -> None:
        self._moment = moment
        self._happen = happen
        self._armed = True
        self._skip = moment.skip

    def __call__(self, event: Event) -> None:
        if self._armed and self._moment.pattern.matches(event):
            if self._skip:
                self._skip -= 1
                return
            self._armed = self._moment.each
            self._happen()


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception in a group of groups."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _by_line(result: CommandResult) -> int:
    return result.line


def _could_move(ctld: Slurmctld, job: JobRecord) -> bool:
    return not (job.state.finished and not job.state.completing) and not is_stuck(ctld, job)


def _job_waits(job: JobRecord) -> str:
    if job.state.completing:
        other = "EpilogSlurmctld" if job.epilog_running else "its burst buffer's post-run"
        names = ", ".join(sorted(job.completing_nodes)) or other
        return f"job {job.job_id} is {job.state} and waits for {names} to report that it is gone"
    if job.nodes:
        return f"job {job.job_id} is {job.state} on {job.node_list} and nothing is due to end it"
    if job.queued and waits_for_stage_in(job):
        return (
            f"job {job.job_id} is {job.state} ({reason_to_wait(job)}): bb_p_job_test_stage_in "
            f"returned {job.bb_answer} when it was asked last, and nothing else is due"
        )
    return (
        f"job {job.job_id} is {job.state} ({reason_to_wait(job)}): it waits for "
        f"{job.demand.min_nodes} node(s) of partition {job.desc.partition}, "
        f"where {sum(node.usable for node in job.part.nodes)} can take a job"
    )


def check_command(result: CommandResult) -> list[Result]:
    """Hold a command against what its entry expects of it."""
    checks = result.checks
    wrong: list[str] = []
    asked: list[str] = []
    if checks.errno:
        asked.append(f"expect: {checks.errno}")
        if result.errno != checks.errno:
            wrong.append(f"the error was {result.errno or 'none'}")
    for status in checks.exit:
        asked.append(f"exit: {status}")
        if result.exit != status:
            wrong.append("it has not ended" if result.exit < 0 else f"it exited {result.exit}")
    for name, wanted, found in (
        *(("stdout", text, result.stdout) for text in checks.stdout),
        *(("stderr", text, result.stderr) for text in checks.stderr),
    ):
        asked.append(f"{name}: {wanted!r}")
        if wanted not in found:
            wrong.append(f"{name} was {found!r}")
    if not asked:
        return []
    if wrong and result.stderr and "stderr" not in "".join(wrong):
        wrong.append(f"stderr was {result.stderr!r}")
    text = f"{result.label}: `{result.command}` {', '.join(asked)}"
    return [Result(text=text, line=result.line, held=not wrong, detail="; ".join(wrong))]


def _describe(program: Program) -> Callable[[int, random.Random], ProgramRun]:
    """Return what gives the behaviour of a described program in the task of a rank."""

    def describe(rank: int, chance: random.Random) -> ProgramRun:
        spec: ProgramSpec = behaviour(program, rank)
        runs_us = spec.runs_min_us
        if spec.forever:
            runs_us = NEVER_US
        elif spec.runs_max_us > spec.runs_min_us:
            runs_us = chance.randint(spec.runs_min_us, spec.runs_max_us)
        return ProgramRun(
            runs_us=runs_us,
            status=OUT_OF_MEMORY_STATUS if spec.oom else spec.signal or wait_status(spec.exit),
            output=spec.output,
            ignores=spec.ignores,
            exits_on=spec.exits_on,
            image=spec.image,
        )

    return describe
