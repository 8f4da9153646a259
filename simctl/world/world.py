"""Builds a cluster and runs it: the one module that knows every daemon and command."""

import gc
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

import attrs
import trio

from simctl import __version__
from simctl.api.reach import Reach
from simctl.ctld.daemon import Slurmctld
from simctl.faults.daemons import Daemons
from simctl.faults.deaths import Deaths
from simctl.faults.injector import FaultInjector
from simctl.kernel.disk import Disk
from simctl.kernel.events import Event
from simctl.kernel.fabric import Fabric
from simctl.kernel.faults import CallFaults
from simctl.kernel.places import Visitor, Walk
from simctl.kernel.procs import (
    Host,
    ProcessTable,
    StateNotCopyableError,
)
from simctl.kernel.recording import FORMAT
from simctl.kernel.schedules import Schedule, make_schedule, token_of
from simctl.kernel.trace import Trace
from simctl.kernel.turns import FiniteDeadlineError, Kernel, TornDownError
from simctl.limits import RUN_TURNS
from simctl.nodes.slurmd import Slurmd
from simctl.orderings.checking import Report, check_orderings, not_checked
from simctl.orderings.observed import Terms
from simctl.plugins.breakpoints import breakpoints
from simctl.plugins.guard import OUT_OF_MEMORY, Standing
from simctl.plugins.hooks import Hooks
from simctl.plugins.registry import PluginError, Registry
from simctl.plugins.watchdog import Watchdog
from simctl.scenario.holding.expect import check, check_timeline
from simctl.scenario.model import Placed, Scenario
from simctl.scenario.pattern_words import Jobs
from simctl.scenario.placed import PlacedEntries
from simctl.site import User
from simctl.state_folder import StateFolder
from simctl.stepd.children_of_plugins import run_child, run_shell
from simctl.stepd.programs import (
    Describe,
    OutsidePrograms,
    OutsideTask,
    Programs,
    TaskHost,
)
from simctl.wire.hosts import CONTROLLER
from simctl.wire.ids import SECOND
from simctl.world.build import (
    lua_settings,
    make_hooks,
    make_records,
    make_site,
    make_users,
    saves_are_simulated,
)
from simctl.world.ending import Ending, why_ran_out
from simctl.world.evidence import gather
from simctl.world.files import Files
from simctl.world.login import LoginShell
from simctl.world.outside import Outside
from simctl.world.results import Complaint, RunResult, check_command
from simctl.world.submitted import follow
from simctl.world.timeline import Timeline

WATCHDOG_S: Final = 10.0
"""How long a plugin's code may run in one turn, in seconds of wall time."""


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Look for garbage seldom: what is made meanwhile stays, and what goes is no cycle."""
    thresholds = gc.get_threshold()
    gc.set_threshold(1_000_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


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
        kernel: Kernel | None = None,
        disk: Disk | None = None,
        outside: bool = False,
        values: bool = False,
    ) -> None:
        self.state_dir = state_dir
        self.scenario = scenario
        self.orderings = orderings
        """Whether the built-in orderings are checked at the end, if all events were kept."""
        self.watchdog_s = watchdog_s
        self.seed = scenario.seed if seed is None else seed
        self.model = model or scenario.model
        if isinstance(schedule, str):
            schedule = make_schedule(schedule, self.seed)
        self.kernel = kernel or Kernel(schedule=schedule, until_us=until_us, most_turns=most_turns)
        self.trace = Trace(self.kernel)
        self.fabric = Fabric(self.kernel, self.trace, latency_us=scenario.latency_us)
        self.fabric.timeout_us = scenario.slurm_conf.message_timeout_s * SECOND
        self.procs = ProcessTable(self.kernel, self.trace)
        self.faults = CallFaults(self.trace)
        self.disk = disk or Disk()
        registry = registry or Registry()
        hooks = make_hooks(
            scenario,
            registry,
            trace=self.trace,
            faults=self.faults,
            model=self.model,
            values=values or scenario.options.trace_values,
        )
        if schedule.switches_at_calls:
            hooks.switch = self.kernel.switch
        users = make_users(scenario)
        files = Files(scenario, self.disk, users)
        files.own_folders()
        self._state_lock: IO[str] | None = None
        run_name = self._load_state(users)
        files.place()
        self.site = make_site(
            scenario,
            kernel=self.kernel,
            trace=self.trace,
            fabric=self.fabric,
            procs=self.procs,
            hooks=hooks,
            disk=self.disk,
            users=users,
            make_programs=self._outside_programs if outside or scenario.is_recorded else Programs,
            seed=self.seed,
            run_name=run_name,
        )
        self.procs.reach = self._reach(users, hooks)
        self.login = Host(name="login", node="login")
        self.shell = LoginShell(self.site, self.login, follow(scenario, self.trace))
        self.hosts = {node.name: Host(name=node.name, node=node.name) for node in scenario.nodes}
        self.controller_host = Host(name=CONTROLLER, node=None)
        self._saves = bool(state_dir) or saves_are_simulated(scenario)
        self.events: list[Event] = []
        self.background: list[Callable[[], None]] = []
        self.jobs_to_come = 0
        """How many jobs are known to be submitted in the whole run, for a replay."""
        self.visitor: Visitor | None = None
        """Who is led through the run; without one, what the scenario has at exact places."""
        self._placed: PlacedEntries | None = None
        self.watchdog = Watchdog(self.kernel, 0)
        self._standing = Standing(bounded=registry.has_others())
        self.daemons = self._make_daemons()
        self.injector = FaultInjector(self.daemons, self.faults, seed=self.seed)
        self.outside = Outside(self.site, self.login, self.hosts)
        self.timeline = Timeline(
            self.site,
            files=files,
            shell=self.shell,
            injector=self.injector,
            outside=self.outside,
        )
        self._ending = Ending(
            self.daemons, login=self.login, shell=self.shell, injector=self.injector
        )
        self._evidence = gather(scenario, self.site, self.hosts, lambda: self.ctld)
        self.kernel.on_idle = self._on_idle

    @property
    def ctld(self) -> Slurmctld:
        """The controller, as it was started last."""
        return self.daemons.ctld

    def _reach(self, users: Mapping[str, User], hooks: Hooks) -> Reach:
        """Return what plugins can reach of the cluster beyond their arguments."""
        return Reach(
            fabric=self.fabric,
            disk=self.disk,
            conf=self.site.conf,
            model=self.model,
            start_time_us=self.site.start_time_s * SECOND,
            people=self.site.person,
            died=lambda process, status: Deaths(self.daemons, self.injector).die(process, status),
            lua=lua_settings(
                self.scenario, users, order=self.seed + 1 if self.kernel.schedule.chooses else 0
            ),
            shell=partial(run_shell, self.site),
            child=partial(run_child, self.site),
            fault=hooks.script_fault,
        )

    def _make_daemons(self) -> Daemons:
        """Make slurmctld and a slurmd for each node."""
        with _collecting_rarely():
            return Daemons(
                site=self.site,
                ctld=self._make_controller(),
                hosts=self.hosts,
                slurmds={name: Slurmd(self.site, host) for name, host in self.hosts.items()},
                primary=self.controller_host,
                make_ctld=lambda before, host, clean: self._make_controller(
                    before, host, clean=clean
                ),
            )

    def _outside_programs(
        self, described: Mapping[str, Describe], chance: random.Random
    ) -> OutsidePrograms:
        """Return programs that run outside of the simulation, save those that are described."""

        def start(task: OutsideTask) -> TaskHost:
            return self.outside.start(task)

        return OutsidePrograms(described, chance, start)

    def _load_state(self, users: Mapping[str, User]) -> str:
        """Put what is in the folder of slurmctld's state onto the disk; return whose run it is."""
        if not self.state_dir:
            return ""
        conf = self.scenario.slurm_conf
        folder = StateFolder(Path(self.state_dir))
        self._state_lock = folder.lock()
        try:
            return folder.load(
                self.disk, CONTROLLER, conf.state_save_location, users[conf.slurm_user].uid
            )
        except BaseException:
            self._unlock()
            raise

    def _make_controller(
        self, before: Slurmctld | None = None, host: Host | None = None, *, clean: bool = False
    ) -> Slurmctld:
        """Make a slurmctld with fresh tables; its state comes from its files when it starts."""
        records, partitions = make_records(self.scenario, self.site.users)
        return Slurmctld(
            self.site,
            self.controller_host if host is None else host,
            uid=self.site.users[self.site.conf.slurm_user].uid,
            records=records,
            partitions=partitions,
            saves=self._saves,
            clean=clean,
            before=before,
        )

    def run(self) -> RunResult:
        """Run to the end; a run that is interrupted gives what was reached.

        Raises:
            PluginError: A plugin keeps in memory what no fork could copy, or waits in real time.
            ScheduleError: The schedule is a token of another run.
            Exception: simctl itself is at fault.
        """
        started = time.perf_counter()
        interrupted = False
        try:
            with _collecting_rarely(), self._standing:
                run = partial(
                    trio.run,
                    self._watched,
                    clock=self.kernel,
                    restrict_keyboard_interrupt_to_checkpoints=True,
                )
                # In a context of its own: whom a plugin was called for last ends with the run.
                copy_context().run(run)
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
            self.watchdog.retire()  # where trio itself broke nothing else has stopped it
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
        watchdog = Watchdog(self.kernel, self.watchdog_s, self._standing)
        with watchdog as self.watchdog, breakpoints(watchdog):
            await self.kernel.run(self._begin)

    def _begin(self) -> None:
        # Whatever a plugin of one's own does with trio, it finds itself in a task.
        self.kernel.in_tasks = self._standing.bounded
        placed = [e for e in self.scenario.timeline if isinstance(e.moment, Placed)]
        if self.visitor is None and placed:
            happen = self.timeline.happen
            self.visitor = self._placed = PlacedEntries(self.kernel, placed, happen)
        if self.visitor is not None:
            Walk(self.kernel, self.trace, self.faults, self.visitor)
        later = self.timeline.arrange_first(self.scenario.timeline)
        self.ctld.start()
        for slurmd in self.daemons.slurmds.values():
            slurmd.start()
        for entry in later:
            self.timeline.arrange(entry)
        for start in self.background:
            start()

    def _on_idle(self) -> bool:
        """Return whether the run goes on where nothing is due."""
        if self.visitor is not None and self.visitor.goes_on():
            return True
        return self._ending.goes_on()

    @property
    def running(self) -> bool:
        """Whether the cluster is in service: the daemons have not been told to stop yet."""
        return self._ending.running

    def at_rest(self) -> tuple[str, ...] | None:
        """Return who waits for what where nothing is due that keeps a run alive.

        None if a plugin's own thread is due that may end a wait.
        """
        return self._ending.at_rest()

    def _check_orderings(self, *, interrupted: bool) -> Report:
        """Hold the run against the built-in orderings, which takes all of its events."""
        if not self.orderings:
            return not_checked("--no-orderings")
        if len(self.events) != self.trace.seq:
            return not_checked("the run's events are not kept")
        kernel = self.kernel
        finished = not (
            interrupted or self._ending.stalled or kernel.stopped_at_limit or kernel.ran_out
        )
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
        commands = tuple(
            sorted((*self.shell.results, *self.shell.unended()), key=lambda result: result.line)
        )
        expectations = [each for one in commands for each in check_command(one)]
        if self._placed is not None:
            expectations += self._placed.unreached()
        cut = interrupted or self.kernel.stopped_at_limit or bool(self.kernel.ran_out)
        if self.scenario.expect or self.scenario.timeline:
            there = None
            if not cut and len(self.events) == self.trace.seq:
                there = Jobs.of(self.events, [row.job_id for row in rows])
                expectations += check_timeline(self.scenario.timeline, there)
            expectations += check(
                self.scenario.expect,
                self.events,
                [row.as_json() for row in rows],
                there=there,
                evidence=self._evidence,
            )
        return RunResult(
            scenario=self.scenario.path_name,
            seed=self.seed,
            schedule=self.kernel.schedule.name,
            model=self.model,
            end_time_us=self.kernel.now_us,
            stalled=self._ending.stalled,
            ran_out=why_ran_out(self.daemons, self.events),
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


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception in a group of groups."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
