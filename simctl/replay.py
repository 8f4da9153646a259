"""The replay of a workload log: each of its jobs is submitted, scheduled and run for real.

Each job is an sbatch of a script with one srun step over its nodes, so that every node of it runs
a step daemon with all its plugin calls; the step's program lasts as long as the log says.
"""

import argparse
import json
import shlex
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, overload

import attrs

from simctl.ctld.state.job_rows import JobRow
from simctl.kernel.procs import RunsAs
from simctl.reports.text import summary
from simctl.running import make_world, run_world, status_of, tell_failure
from simctl.scenario.durations import DurationError, parse_duration_us
from simctl.scenario.model import (
    At,
    NodeSpec,
    PartitionSpec,
    RunEntry,
    Scenario,
    UserSpec,
)
from simctl.scenario.replay_report import ReplayJob, ReplayMeasures, format_report, measure
from simctl.scenario.swf import SwfError, SwfJob, SwfLog, counts_of, read_swf, too_wide
from simctl.site import User
from simctl.status import InputError
from simctl.wire.conf.slurm_conf import read_conf
from simctl.wire.ids import SECOND
from simctl.world import World

_FIRST_UID: Final = 100_000
_MANY: Final = 20


def run_replay(options: argparse.Namespace) -> int:
    """Replay the log that the options name; return the exit status."""
    log, jobs, told = read_log(options)
    for line in told:
        print(f"simctl: {line}", file=sys.stderr)
    world = make_replay(log, jobs, options)
    if options.html:
        raise InputError("run --swf: --html goes with a scenario; --trace FILE, then `simctl view`")
    if options.explain:
        raise InputError("run --swf: --explain goes with a scenario; a log would fill pages")
    tally = Tally()
    if not options.json:
        world.ctld.take_row = tally.take
    result = run_world(world, options)
    for row in result.rows:
        tally.take(row)
    measures = measure(tally, options.nodes * options.cpus_per_node)
    if options.json:
        print(json.dumps(result.as_json() | {"replay": _as_json(measures)}, indent=1))
    elif not options.quiet:
        out = sys.stderr if options.trace == "-" else sys.stdout
        for line in (*format_report(measures), tally.states(), *summary(result)):
            print(line, file=out)
    tell_failure(result, options, *_repeated(options))
    return status_of(result)


def _repeated(options: argparse.Namespace) -> Iterator[str]:
    """Return the words that name a replay: the log, the cluster, and what else was asked for."""
    yield from ("--swf", options.swf, "--nodes", str(options.nodes))
    yield from ("--cpus-per-node", str(options.cpus_per_node), "--scheduler", options.scheduler)
    yield from ("--latency", options.latency)
    if options.limit is not None:
        yield from ("--limit", str(options.limit))
    if options.skip_bad:
        yield "--skip-bad"
    for pair in options.conf:
        yield from ("--conf", pair)


def make_replay(log: SwfLog, jobs: Sequence[SwfJob], options: argparse.Namespace) -> World:
    """Return a cluster to which the jobs of a log will be submitted.

    Raises:
        InputError: The options are wrong.
    """
    world = make_world(scenario(log, jobs, options), options)
    world.ctld.books.keep = False  # No job in there asks sacct.
    world.jobs_to_come = len(jobs)
    submit_all(world, jobs, options.cpus_per_node)
    return world


def read_log(
    options: argparse.Namespace,
) -> tuple[SwfLog, Sequence[SwfJob], Sequence[str]]:
    """Return a log, its jobs that are to be replayed, in order, and what is to be told of others.

    Raises:
        InputError: The log cannot be read; lines are malformed, or jobs too wide, and --skip-bad
            was not given.
    """
    if options.nodes is None:
        raise InputError("run --swf: say how many nodes the cluster has: --nodes N")
    try:
        log = read_swf(Path(options.swf))
    except SwfError as error:
        raise InputError(str(error)) from error
    wide = too_wide(log, options.nodes * options.cpus_per_node)
    bad = [f"{options.swf}:{each.line}: {each.message}" for each in log.malformed]
    bad += [
        f"{options.swf}:{job.line}: job {job.number} asks for {job.processors} processors; the "
        f"cluster has {options.nodes * options.cpus_per_node}"
        for job in wide
    ]
    if bad and not options.skip_bad:
        more = [f"... and {len(bad) - _MANY} more"] if len(bad) > _MANY else []
        raise InputError(
            "\n".join(["the log has lines that cannot be replayed:", *bad[:_MANY], *more])
            + "\n--skip-bad leaves them out"
        )
    told = [f"left out: {line}" for line in bad[:_MANY]]
    if len(bad) > _MANY:
        told.append(f"left out: {len(bad) - _MANY} more")
    if log.unknown and not log.jobs:
        raise InputError(f"{options.swf}: no job of the log can be run: {counts_of(log.unknown)}")
    if log.unknown:
        all_jobs = len(log.jobs) + len(log.unknown)
        counts = counts_of(log.unknown)
        told.append(f"{len(log.unknown):,} of {all_jobs:,} jobs cannot be run: {counts}")
    left_out = {job.line for job in wide}
    jobs = [job for job in log.replay_order() if job.line not in left_out]
    return log, jobs if options.limit is None else jobs[: options.limit], told


def scenario(log: SwfLog, jobs: Sequence[SwfJob], options: argparse.Namespace) -> Scenario:
    """Return a cluster for a log: like nodes in one partition without limits.

    Raises:
        InputError: --conf or --latency is wrong.
    """
    settings: dict[str, object] = {
        "MaxJobCount": max(10_000, len(jobs) + 1),
        "SchedulerType": f"sched/{options.scheduler}",
    }
    for pair in options.conf:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--conf {pair!r}: expected KEY=VALUE")
        settings[key] = value
    conf, mistakes = read_conf(settings)
    if mistakes:
        raise InputError("\n".join(f"--conf {each.key}: {each.message}" for each in mistakes))
    try:
        latency_us = parse_duration_us(options.latency)
    except DurationError as error:
        raise InputError(f"--latency: {error}") from error
    width = len(str(options.nodes))
    names = tuple(f"n{number:0{width}d}" for number in range(1, options.nodes + 1))
    return Scenario(
        path_name=Path(log.path).name,
        folder=".",
        description="",
        seed=0,
        model="guide",
        start_time="2026-01-01T00:00:00Z",
        start_epoch_s=1_767_225_600,
        latency_us=latency_us,
        slurm_conf=conf,
        nodes=tuple(NodeSpec(name=name, cpus=options.cpus_per_node) for name in names),
        partitions=(PartitionSpec(name="all", nodes=names, default=True),),
        users=(
            UserSpec(name="root", uid=0, gid=0),
            UserSpec(name="slurm", uid=64030, gid=64030),
        ),
        asks_nodes=False,
    )


def submit_all(world: World, jobs: Iterable[SwfJob], cpus_per_node: int) -> None:
    """Have every job submitted at its time, counted from the first one's.

    A shell on the login host sleeps from one submission to the next, so that the queue of turns
    holds one of them at a time, and the jobs may be made as they are needed.
    """
    rest = iter(jobs)
    first = next(rest, None)
    if first is None:
        return
    first_us = first.submit_us
    shell = world.procs.add(
        world.login, ppid=1, daemon="login", role="login", uid=0, runs_as=RunsAs.USER
    )
    users: Any = world.site.users

    async def body() -> None:
        kernel = world.kernel
        for job in chain((first,), rest):
            wait_us = job.submit_us - first_us - kernel.now_us
            if wait_us > 0:
                await kernel.sleep_us(wait_us)
            name = f"user{max(job.user_id, 0)}"
            if name not in users:
                uid = _FIRST_UID + max(job.user_id, 0)
                users[name] = User(name=name, uid=uid, gid=uid)
            world.shell.run(_entry(job, name, cpus_per_node))
            world.shell.results.clear()
        shell.exit(0)

    world.background.append(lambda: _start(shell, body))


def _start(shell: Any, body: Any) -> None:
    shell.start(body, "login shell")


def _entry(job: SwfJob, user: str, cpus_per_node: int) -> RunEntry:
    """Return the submission of a job: as many nodes as hold its processors, one task on each."""
    nodes = -(-job.processors // cpus_per_node)
    argv = ["sbatch", f"-N{nodes}", f"-Jswf{job.number}", "--no-requeue", "-o/dev/null"]
    if job.requested_s:
        argv.append(f"-t{max(1, -(-int(job.requested_s) // 60))}")
    argv.append(f"--wrap=srun sleep {job.run_us / SECOND:.6f}")
    return RunEntry(
        label=f"line {job.line}",
        line=job.line,
        moment=At(time_us=0),
        user=user,
        command=shlex.join(argv),
        argv=tuple(argv),
    )


class Tally(Sequence[ReplayJob]):
    """What the measures need of each job that has run, in a few bytes, and how the jobs ended."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._numbers = array("q")

    def take(self, row: JobRow) -> None:
        """Count a job that has ended, or stands as it will; one that never ran is not measured."""
        self._counts[row.state] = self._counts.get(row.state, 0) + 1
        if row.start_us >= 0 and row.end_us >= 0 and row.nodes:
            self._numbers.extend((row.submit_us, row.start_us, row.end_us, row.cpus, row.num_nodes))

    def states(self) -> str:
        """Return the line that says how many jobs ended in each state."""
        counts = self._counts
        return "jobs by state: " + ", ".join(f"{state} {counts[state]}" for state in sorted(counts))

    def __len__(self) -> int:
        return len(self._numbers) // _NUMBERS

    @overload
    def __getitem__(self, place: int) -> ReplayJob: ...

    @overload
    def __getitem__(self, place: slice) -> list[ReplayJob]: ...

    def __getitem__(self, place: int | slice) -> ReplayJob | list[ReplayJob]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        at = place % len(self) * _NUMBERS
        submit_us, start_us, end_us, cpus, nodes = self._numbers[at : at + _NUMBERS]
        return ReplayJob(
            submit_us=submit_us, start_us=start_us, end_us=end_us, cpus=cpus, nodes=nodes
        )


_NUMBERS: Final = 5


def _as_json(measures: ReplayMeasures) -> dict[str, Any]:
    return attrs.asdict(measures)
