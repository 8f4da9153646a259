"""Drive a job_submit.lua: a zoo of jobs through trial clusters, and what it does to each."""

import json
import time  # noqa: TID251 - a check is bounded on the wall clock
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.scenario.load import read_scenario
from simctl.testing.plugin_check.lua import zoo
from simctl.testing.plugin_check.lua.given import GivenRun
from simctl.testing.plugin_check.lua.lines import lacking
from simctl.testing.plugin_check.lua.marks import reached, text_of
from simctl.testing.plugin_check.lua.named import required
from simctl.testing.plugin_check.lua.source import Source
from simctl.testing.plugin_check.lua.zoo import Job
from simctl.wire.ids import SECOND
from simctl.world import World

APART_S: Final = 1000
_FIRST_S: Final = 10
JOB_SUBMIT_SCRIPT: Final = "/etc/slurm/job_submit.lua"
MOST_JOBS: Final = 240
_HUNG: Final = "would have hung"
BUDGET_S: Final = 90.0
"""After so many seconds of work no more is tried."""

_ROUNDS: Final = 4
_ROUND: Final = 80


@attrs.frozen(kw_only=True)
class Ruling:
    """What a script did to a job."""

    job: Job
    asked: bool
    """Whether the script was asked at all: a command may refuse by itself."""

    rc: int
    exit: int
    changed: dict[str, Any]
    lines: tuple[str, ...]
    """What the command wrote to standard error."""

    logs: tuple[str, ...]
    reached: frozenset[int]
    """The blocks that were reached."""

    script: str = JOB_SUBMIT_SCRIPT

    commands: tuple[str, ...]
    """Lines of shell that ran inside slurmctld."""

    took_us: int

    hole: str = ""
    """The line of shell in which a text of the job ran as a command."""

    @property
    def hole_option(self) -> str:
        """Return the option whose text ran as a command."""
        return next((name for name, value in self.job.options if zoo.HOLE in value), "")

    @property
    def errors(self) -> tuple[str, ...]:
        """Return the Lua errors that came of it."""
        prefix = f"{self.script}: "
        return tuple(each.removeprefix(prefix) for each in self.logs if each.startswith(prefix))

    @property
    def path(self) -> tuple[Any, ...]:
        """Return the way that the job took through the script."""
        return (self.job.command, self.reached, self.rc, bool(self.errors))

    @property
    def verdict(self) -> tuple[Any, ...]:
        """Return what counts of it: the same for runs in which the job fared alike."""
        return (self.rc, json.dumps(self.changed, sort_keys=True), bool(self.errors))


@attrs.frozen(kw_only=True)
class Drive:
    """One trial cluster: what came of each job, and why the script did not load, if it did not."""

    lua: str
    slurm: str
    rulings: tuple[Ruling, ...]
    failure: str = ""
    loading: tuple[str, ...] = ()
    """Lines of shell that ran as the script was loaded."""

    loaded_blocks: frozenset[int] = frozenset()
    complaints: tuple[str, ...] = ()
    """What would have ended or stopped slurmctld."""

    @property
    def lacking(self) -> tuple[str, ...]:
        """Return the programs that the script ran and the cluster has not."""
        lines = (line for each in self.rulings for line in each.commands if zoo.HOLE not in line)
        return lacking((*self.loading, *lines))

    @property
    def endless(self) -> bool:
        """Return whether a call would never have come to an end."""
        return any(_HUNG in each for each in self.complaints)


@attrs.frozen(kw_only=True)
class Kind:
    """A kind of script that is shown one job after the other."""

    name: str
    conf: str
    """What slurm.conf says of it."""

    calls: Mapping[str, str]
    """Its functions, by the name that traces have for their calls."""

    @property
    def script(self) -> str:
        """Return where the script lies."""
        return f"/etc/slurm/{self.name}.lua"


JOB_SUBMIT: Final = Kind(
    name="job_submit",
    conf="JobSubmitPlugins: lua",
    calls={"job_submit": "slurm_job_submit", "job_modify": "slurm_job_modify"},
)
CLI_FILTER: Final = Kind(
    name="cli_filter",
    conf="CliFilterPlugins: lua",
    calls={
        "setup_defaults": "slurm_cli_setup_defaults",
        "pre_submit": "slurm_cli_pre_submit",
        "post_submit": "slurm_cli_post_submit",
    },
)


class Submissions:
    """Runs jobs under one script; functions that are *missing* get a stand-in that accepts."""

    def __init__(
        self,
        source: Source,
        missing: Sequence[str] = (),
        kind: Kind = JOB_SUBMIT,
        files: Mapping[str, str] | None = None,
    ) -> None:
        self.source = source
        self.kind = kind
        self._files = files or {}
        stubs = "".join(f"function {name}() return 0 end " for name in missing)
        self._text = source.marked(required(kind.name, ""), stubs)
        self.clusters = 0
        self._ends_s = time.process_time() + BUDGET_S

    @property
    def over(self) -> bool:
        """Return whether there is no time for more."""
        return time.process_time() > self._ends_s

    def run(
        self, jobs: Sequence[Job], *, lua: str, slurm: str, order: int = 0, held: bool = True
    ) -> Drive:
        """Run jobs, one long after the other, in a cluster of its own."""
        self.clusters += 1
        first = zoo.HELD if held else ()
        every = [*first, *jobs]
        scenario = read_scenario(self._scenario(every, lua=lua, slurm=slurm), file="trial")
        scripts = {**self.source.modules, f"{self.kind.name}.lua": self._text}
        files = {**self._files, **scenario.files}
        scenario = attrs.evolve(scenario, lua_scripts=scripts, files=files)
        events: list[Event] = []
        world = World(
            scenario,
            model="modern",
            orderings=False,
            schedule="random" if order else "fifo",
            seed=order or None,
            until_us=(_FIRST_S + APART_S * (len(every) + 1)) * SECOND,
        )
        world.trace.add_sink(events.append)
        result = world.run()
        why = f"{self.kind.name}.lua does not load: "
        failure = next(
            (
                text_of(event).removeprefix(why)
                for event in events
                if event.kind == "log" and text_of(event).startswith(why)
            ),
            "",
        )
        return Drive(
            lua=lua,
            slurm=slurm,
            rulings=_rulings(self.kind, every, events, result.commands),
            failure=failure,
            complaints=tuple(each.problem for each in result.complaints),
            loading=tuple(_shell(events, -1)),
            loaded_blocks=reached(each for each in events if _slot(each) < 0),
        )

    def _scenario(self, jobs: Sequence[Job], *, lua: str, slurm: str) -> str:
        source = self.source
        parts = zoo.partitions(source)
        node = {"name": "n[1-8]", "cpus": 64, "memory_mb": 256000, "gres": "gpu:8"}
        node["features"] = ",".join(zoo.features(source))
        lines = [
            f"slurm_conf: {{{self.kind.conf}}}",
            f'lua: {{version: "{lua}", slurm: "{slurm}"}}',
            f"nodes: [{json.dumps(node)}]",
            "partitions:",
            *(
                f"  - {{name: {json.dumps(name)}, nodes: 'n[1-8]', default: {json.dumps(not at)}"
                + (", def_mem_per_cpu: 1000}" if "DefMemPerCPU" in source.text else "}")
                for at, name in enumerate(parts)
            ),
            f"users: {json.dumps(zoo.users(source))}",
            'files: {job.sh: "#!/bin/bash\\nsleep 1\\n"}',
            f"programs: {{{zoo.HOLE}: {{runs: 0s}}}}",
            "timeline:",
            *(
                f"  - {{at: {at}s, as: {job.user}, run: {json.dumps(job.line)}}}"
                for at, job in zip(range(_FIRST_S, 1 << 40, APART_S), jobs, strict=False)
            ),
        ]
        return "\n".join(lines) + "\n"


def _slot(event: Event) -> int:
    """Return the number of the job in whose time an event falls; -1 before the first."""
    return (event.time_us // SECOND - _FIRST_S) // APART_S


def _shell(events: Sequence[Event], slot: int) -> Iterator[str]:
    yield from _lines_of_shell(each for each in events if _slot(each) == slot)


def _lines_of_shell(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        is_start = event.kind == "script" and event.name == "shell" and event.phase == "enter"
        if is_start and event.daemon == "slurmctld":
            assert isinstance(event.args, dict)
            yield str(event.args["argv"][-1])


def _rulings(
    kind: Kind, jobs: Sequence[Job], events: Sequence[Event], commands: Sequence[Any]
) -> tuple[Ruling, ...]:
    by_slot: dict[int, list[Event]] = {}
    for event in events:
        by_slot.setdefault(_slot(event), []).append(event)
    found = []
    for at, (job, command) in enumerate(zip(jobs, commands, strict=False)):
        own = by_slot.get(at, [])
        calls = [
            each
            for each in own
            if each.kind == "plugin" and each.name in kind.calls and each.phase != "enter"
        ]
        codes = [each.rc for each in calls if isinstance(each.rc, int) and each.rc]
        changed: dict[str, Any] = {}
        for call in calls:
            changed |= call.args.get("changed", {}) if isinstance(call.args, dict) else {}
        found.append(
            Ruling(
                job=job,
                asked=bool(calls),
                script=kind.script,
                rc=codes[-1] if codes else 0,
                exit=command.exit,
                changed={name: each for name, each in changed.items() if name != "filled"},
                lines=tuple(command.stderr.splitlines()),
                logs=tuple(text_of(each) for each in own if each.kind == "log" and text_of(each)),
                reached=reached(own),
                commands=tuple(_shell(own, at)),
                took_us=sum(each.time_us - each.t0_us for each in calls if each.t0_us is not UNSET),
                hole=_hole(own),
            )
        )
    return tuple(found)


def _hole(events: Sequence[Event]) -> str:
    """Return the line of shell in which slurmctld ran what a job brought; nothing if it did not."""
    for event in events:
        args = event.args if isinstance(event.args, dict) else {}
        if event.name == "exec" and event.daemon == "slurmctld" and args.get("path") == zoo.HOLE:
            return next((each for each in _lines_of_shell(events) if zoo.HOLE in each), zoo.HOLE)
    return ""


def of_given(run: GivenRun) -> Drive:
    """Return what a script did to each job of a scenario of its author's."""
    rulings: list[Ruling] = []
    own: list[Event] = []
    for event in run.events:
        own.append(event)
        is_call = event.kind == "plugin" and event.name in ("job_submit", "job_modify")
        if is_call and event.phase != "enter":
            args = event.args if isinstance(event.args, dict) else {}
            change = "update" if event.name == "job_modify" else ""
            rulings.append(
                Ruling(
                    job=Job(name=f"{run.name}, call {len(rulings) + 1}", change=change),
                    asked=True,
                    rc=event.rc if isinstance(event.rc, int) else 0,
                    exit=0,
                    changed={k: v for k, v in args.get("changed", {}).items() if k != "filled"},
                    lines=(),
                    logs=tuple(text_of(each) for each in own if text_of(each)),
                    reached=reached(own),
                    commands=tuple(_lines_of_shell(own)),
                    took_us=event.time_us - event.t0_us if event.t0_us is not UNSET else 0,
                )
            )
            own = []
    return Drive(
        lua=run.lua,
        slurm=run.slurm,
        rulings=tuple(rulings),
        complaints=tuple(each.problem for each in run.result.complaints),
        loaded_blocks=reached(run.events),
    )


def explore(submissions: Submissions, *, lua: str, slurm: str) -> tuple[Drive, tuple[Job, ...]]:
    """Run the zoo, and jobs made of what the script looks for as long as they reach new blocks.

    Returns the last drive, of all jobs that were kept, and these.
    """
    source = submissions.source
    first = submissions.run((), lua=lua, slurm=slurm)
    if first.failure or first.endless:
        return first, ()
    others = [each for each in zoo.users(source) if each not in ("alice", "bob")]
    jobs = list(zoo.ZOO)
    jobs += [attrs.evolve(jobs[0], name=f"a job of {each}", user=each) for each in others]
    jobs += zoo.shell_texts(source) if submissions.kind is JOB_SUBMIT else ()
    own = [each for each in first.rulings if each.job.user == zoo.LET_PASS.user]
    taken = any(ruling.asked and ruling.exit == 0 for ruling in own)
    if submissions.kind is JOB_SUBMIT:
        # Of all that are held one is changed: the first, or else the one that no script is shown.
        known = 0 if taken else sum(ruling.exit == 0 for ruling in first.rulings)
        jobs = [*(() if taken else (zoo.LET_PASS,)), *jobs, *zoo.changes(known + 1)]
    wished = zoo.wishes(source)
    surest = [wish for wish in wished if wish.weight == 0]
    jobs += _new(zoo.mutants((zoo.ZOO[0],), surest), jobs)[:_ROUND]
    drive = submissions.run(jobs, lua=lua, slurm=slurm)
    if drive.endless:
        return drive, tuple(jobs)
    known = len(jobs)
    seen = all_reached(drive)
    errors = {error for each in drive.rulings for error in each.errors}
    paths = {ruling.path for ruling in drive.rulings}
    tried = list(jobs)
    bases = [*_bases(drive), zoo.ZOO[1], zoo.ZOO[0], zoo.ZOO[7]]
    sets = zoo.together(source)
    for _ in range(_ROUNDS):
        new = _new(zoo.mutants(bases, wished, sets), tried)[:_ROUND]
        if submissions.over or not new or len(seen) >= len(source.blocks) or len(jobs) >= MOST_JOBS:
            break
        tried += new
        tries = submissions.run(new, lua=lua, slurm=slurm)
        for ruling in tries.rulings[len(zoo.HELD) :]:
            if ruling.path not in paths:
                paths.add(ruling.path)
                bases.append(ruling.job)
            if ruling.reached - seen or set(ruling.errors) - errors:
                seen = seen | ruling.reached
                errors |= set(ruling.errors)
                jobs.append(ruling.job)
    if len(jobs) > known and not submissions.over:
        drive = submissions.run(jobs, lua=lua, slurm=slurm)
    return drive, tuple(jobs)


def _new(jobs: Iterable[Job], known: Sequence[Job]) -> list[Job]:
    """Return the jobs that differ from all that are known, and from one another."""
    lines = {(job.user, job.line) for job in known}
    found = []
    for job in jobs:
        if (job.user, job.line) not in lines:
            lines.add((job.user, job.line))
            found.append(job)
    return found


def all_reached(drive: Drive) -> frozenset[int]:
    """Return the numbers of the blocks that some job reached."""
    return drive.loaded_blocks.union(*(ruling.reached for ruling in drive.rulings))


def _bases(drive: Drive) -> list[Job]:
    """Return a job for each way through the script."""
    found = {ruling.path: ruling.job for ruling in drive.rulings[len(zoo.HELD) :]}
    return [job for job in found.values() if not job.change and job != zoo.LET_PASS][-8:]
