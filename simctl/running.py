"""`simctl run`: from options to a run, and from a run to what is printed."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import IO, Any, Final, Self

from simctl.kernel.events import KINDS, Event
from simctl.kernel.pattern import near
from simctl.kernel.schedules import ScheduleError
from simctl.kernel.trace import FileSink
from simctl.limits import RUN_TURNS
from simctl.orderings.checking import tell as tell_breach
from simctl.orderings.told_terms import TERMS, tell_terms
from simctl.outputs import TRACE, Output
from simctl.plugins.registry import PluginError
from simctl.reports.measures import measured_json, measured_lines
from simctl.reports.progress import Progress
from simctl.reports.text import job_label, job_table, repeat_command, summary, what_broke
from simctl.reports.timeline import BufferHistory, timeline
from simctl.scenario.durations import DurationError, parse_duration_us
from simctl.scenario.load import load_scenario
from simctl.scenario.model import Scenario
from simctl.scenario.positions import ScenarioErrors
from simctl.scenario.why_failed import WhyFailed, held_up, told_failures
from simctl.state_folder import StateFolderError
from simctl.status import INTERRUPTED, NOT_HELD, OK, WRONG_INPUT, InputError
from simctl.world import RunResult, World


def find(path: str) -> tuple[Path, bool]:
    """Return the file of a scenario, and whether it is one shipped with simctl."""
    where = Path(path)
    shipped = Path(__file__).parent / "scenarios"
    if not where.exists() and not where.is_absolute():
        for folder in (shipped, *(shipped / name for name in SHIPPED_FOLDERS)):
            candidate = folder / f"{where.name.removesuffix('.yaml')}.yaml"
            inside = str(candidate.relative_to(shipped))
            if candidate.is_file() and str(where) in (
                candidate.name,
                candidate.stem,
                inside,
                f"scenarios/{inside}",
            ):
                return candidate, True
    return where, False


def meant(path: Path) -> str:
    """Say which shipped scenario may be meant by a file that is not there; else nothing."""
    if path.exists():
        return ""
    shipped = Path(__file__).parent / "scenarios"
    names = [
        each.stem
        for folder in (shipped, *(shipped / name for name in SHIPPED_FOLDERS))
        for each in sorted(folder.glob("*.yaml"))
    ]
    return near(path.name.removesuffix(".yaml"), names)


SHIPPED_FOLDERS: Final = ("mistakes", "faulty", "false_friends")
"""Folders beside the shipped scenarios whose scenarios are known by their bare names as well."""


def load(path: str) -> Scenario:
    """Return the scenario of a file, or of the one shipped with simctl under that name.

    Raises:
        InputError: With every mistake in it.
    """
    where, _ = find(path)
    try:
        return load_scenario(where)
    except ScenarioErrors as error:
        told = "\n".join(str(mistake) for mistake in error.mistakes)
        raise InputError(f"{told}{meant(where)}", placed=True) from error


def run(options: argparse.Namespace) -> int:
    """Run what the options name; return the exit status."""
    if options.nodes is not None or options.limit is not None or options.skip_bad:
        raise InputError("run: --nodes, --limit and --skip-bad go with --swf FILE")
    if options.conf:
        raise InputError("run: --conf goes with --swf FILE; a scenario has slurm_conf:")
    if options.html is not None:
        from simctl.view.page import PAGE, check_output

        check_output(options.html, PAGE, "--html", force=options.force)
    scenario = load(options.scenario)
    world = make_world(scenario, options)
    world.trace.add_sink(world.events.append)
    history = BufferHistory()
    if world.site.conf.burst_buffer_types:
        world.trace.add_sink(history)
    for warning in scenario.warnings:
        print(f"{warning} (warning)", file=sys.stderr)
    result = run_world(world, options)
    if result.schedule_note:
        print(f"simctl: {result.schedule_note}", file=sys.stderr)
    _tell_where_none_stopped(options)
    if options.html is not None:
        from simctl.view.command import write_run

        write_run(options.html, world.header(), world.events, result, "--html", force=options.force)
    if options.explain:
        explain(world, result, options)
    capacity = sum(node.cpus for node in scenario.nodes)
    if options.json:
        found = result.as_json() | _failures_json(world, result)
        if scenario.recorded is not None:
            found["replay"] = measured_json(result.rows, capacity, scenario.recorded)
        print(json.dumps(found, indent=1))
    elif scenario.recorded is not None:
        lines = measured_lines(result.rows, capacity, scenario.recorded)
        show(result, options, history, (*lines, ""))
    else:
        story = () if options.explain else _happenings(world, result)
        show(result, options, history, (*story, *told_jobs(world, result)))
    tell_failure(result, options, options.scenario)
    return status_of(result)


def _happenings(world: World, result: RunResult) -> Sequence[str]:
    """Return the commands of a run with what they printed, its faults and restarts."""
    from simctl.story.happenings import happenings

    return happenings(result, world.events)


def view(options: argparse.Namespace) -> int:
    """Run the scenario of `simctl view`, and write its page; return the exit status."""
    from simctl.view.command import view_run

    path = options.inputs[0]
    scenario = load(path)
    world = make_world(scenario, options)
    world.trace.add_sink(world.events.append)
    with Progress(world, quiet=False), redirect_stdout(sys.stderr):
        try:
            result = world.run()
        except (PluginError, ScheduleError) as error:
            raise InputError(str(error)) from error
    status = view_run(options, path, world.header(), world.events, result)
    for line in what_broke(result):
        print(line, file=sys.stderr)
    return INTERRUPTED if result.interrupted else status


def make_world(scenario: Scenario, options: argparse.Namespace) -> World:
    """Return the world of a scenario under the options of `run`.

    Raises:
        InputError: The options or the plugins are wrong.
    """
    if getattr(options, "state_dir", None) == "":
        raise InputError("--state-dir: name a folder")
    try:
        until_us = None if options.until is None else parse_duration_us(options.until)
        with redirect_stdout(sys.stderr):
            return World(
                scenario,
                seed=options.seed,
                schedule=options.schedule,
                model=options.model or "",
                until_us=until_us,
                most_turns=most_turns(options),
                watchdog_s=0 if _stops_for_gdb(options) else options.watchdog,
                orderings=not options.no_orderings,
                state_dir=getattr(options, "state_dir", None) or "",
                values=getattr(options, "values", False),
            )
    except DurationError as error:
        raise InputError(f"--until: {error}") from error
    except StateFolderError as error:
        raise InputError(f"--state-dir: {error}") from error
    except PluginError as error:
        raise InputError(str(error), placed=True) from error
    except ScheduleError as error:
        raise InputError(str(error)) from error


def _stops_for_gdb(options: argparse.Namespace) -> bool:
    """Have the run stop where `--gdb` says; return whether it says so."""
    function = getattr(options, "gdb", "")
    if function:
        from simctl.plugins.compiled.debugger import stop_before

        stop_before(function)
    return bool(function)


def _tell_where_none_stopped(options: argparse.Namespace) -> None:
    """Say that `--gdb` has stopped nowhere, where it should have."""
    if not getattr(options, "gdb", ""):
        return
    from simctl.plugins.compiled.debugger import left_over

    function = left_over()
    if function:
        print(f"simctl: --gdb {function}: no compiled plugin was called for it", file=sys.stderr)


def most_turns(options: argparse.Namespace) -> int:
    """Return how many turns a run may take, 0 if any number; a log has an end of its own."""
    given = getattr(options, "max_turns", None)
    if given is None:
        return 0 if getattr(options, "swf", None) else RUN_TURNS
    return int(given)


def run_world(world: World, options: argparse.Namespace) -> RunResult:
    """Run a world with its trace file and its live line."""
    for option, name in (("--trace", options.trace), ("--db", options.db)):
        if name == "":
            raise InputError(f"{option}: name a file")
    if options.trace and options.db and _same(options.trace, options.db):
        raise InputError(f"--trace and --db: {options.db} is one file; name two")
    with ExitStack() as stack:
        trace = None
        if options.trace:
            trace = stack.enter_context(_TraceFile(world, options))
        elif options.trace_kinds:
            raise InputError("run: --trace-kinds goes with --trace FILE")
        if options.debug:
            # structlog brings rich along: only those pay for it who read logs.
            from simctl.kernel.logs import LogSink

            world.trace.add_sink(LogSink())
        result: RunResult | None = None
        database = None
        if options.db:
            from simctl.reports.database import Database

            database = stack.enter_context(Database(Path(options.db), world, force=options.force))
        stack.enter_context(Progress(world, quiet=options.quiet or options.json))
        try:
            # What a plugin prints is neither the trace nor the summary.
            with redirect_stdout(sys.stderr):
                result = world.run()
        except (PluginError, ScheduleError) as error:
            raise InputError(str(error)) from error
        finally:
            end = world.trace.end(_why_over(result), _broken(world, result))
            if trace is not None:
                trace.finish(end)
            if database is not None:
                database.finish(result, end)
    return result


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _why_over(result: RunResult | None) -> str:
    """Return why a run is over, as the end of its trace tells it."""
    if result is None or result.ran_out:
        return "failed"
    if result.interrupted:
        return "interrupted"
    if result.stalled:
        return "stalled"
    return "until" if result.stopped_at_limit else "done"


def _broken(world: World, result: RunResult | None) -> list[dict[str, Any]]:
    """Return what the end of a trace tells of what did not hold."""
    if result is None or result.held:
        return []
    from simctl.view.findings import findings_of

    return findings_of(result, world.events)


class _TraceFile:
    """The file of a trace, or standard output."""

    def __init__(self, world: World, options: argparse.Namespace) -> None:
        """Open it, and have the world write there.

        Raises:
            InputError: It cannot be written, or is there and no trace.
        """
        kinds = _kinds(options)
        self._path = options.trace
        self._output: Output | None = None
        stream: IO[bytes] = sys.stdout.buffer
        if self._path != "-":
            try:
                self._output = Output(self._path, TRACE, force=options.force)
            except OSError as error:
                raise self._cannot(error) from error
            stream = self._output.stream
        self._stream = stream
        header = world.header() | {TERMS: tell_terms(world.terms())}
        header |= {"kinds": list(kinds)} if kinds else {}
        self._sink = FileSink(stream, header, kinds)
        world.trace.add_sink(self._sink)

    def _cannot(self, error: OSError) -> InputError:
        return InputError(f"--trace: cannot write {self._path}: {error.strerror or error}")

    def finish(self, end: Event) -> None:
        """Write the end of the trace, and keep the file.

        Raises:
            InputError: It cannot be written to its end.
        """
        try:
            self._sink.end(end)
            self._stream.flush()
            if self._output is not None:
                self._output.keep()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._cannot(error) from error

    def __enter__(self) -> Self:
        """Return itself; it is open already."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Take away what was not kept."""
        if self._output is not None:
            self._output.__exit__(None, None, None)


def _kinds(options: argparse.Namespace) -> tuple[str, ...]:
    kinds = tuple(filter(None, (options.trace_kinds or "").split(",")))
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(f"--trace-kinds: there is no kind {kind!r}; kinds: {', '.join(KINDS)}")
    return kinds


def explain(world: World, result: RunResult, options: argparse.Namespace) -> None:
    """Print the story of a run; beside what is for programs, on standard error."""
    from simctl.story.happenings import commands, mishaps
    from simctl.story.picture import picture
    from simctl.story.telling import tell

    out = sys.stderr if options.trace == "-" or options.json else sys.stdout
    users = {name: user.uid for name, user in world.site.users.items()}
    other = [*commands(result, world.events), *mishaps(world.events)]
    everything = options.explain == "all"
    story = tell(world.events, users, world.model, other=other, everything=everything)
    for line in (*story, *picture(world.events, users, world.model)):
        print(line, file=out)


def _people_and_reasons(world: World, result: RunResult) -> tuple[dict[str, int], dict[int, str]]:
    """Return the uid of each user, and the reason of each job: what the events do not tell."""
    users = {name: user.uid for name, user in world.site.users.items()}
    return users, {row.job_id: row.reason for row in result.rows}


def _failures_json(world: World, result: RunResult) -> dict[str, Any]:
    """Return what `--json` says of jobs that did not complete, and of calls that held up others."""
    failures = WhyFailed(world.events, *_people_and_reasons(world, result)).all()
    held = held_up(world.events)
    return {"failures": [each.as_json() for each in failures], "held_up": held}


def told_jobs(world: World, result: RunResult) -> list[str]:
    """Return the table of jobs, and the lines about those that did not complete."""
    failures = told_failures(world.events, *_people_and_reasons(world, result))
    return [*job_table(result.rows), "", *failures, *([""] if failures else ())]


def show(
    result: RunResult,
    options: argparse.Namespace,
    history: BufferHistory,
    story: Sequence[str],
) -> None:
    """Print what happened; beside a trace on standard output it goes to standard error."""
    out = sys.stderr if options.trace == "-" else sys.stdout
    if not options.quiet:
        labels = {row.job_id: job_label(row) for row in result.rows}
        chart = timeline(history.rows(result.end_time_us, labels))
        for line in (*story, *chart, *([""] if chart else ()), *summary(result)):
            print(line, file=out)


def tell_failure(result: RunResult, options: argparse.Namespace, *words: str) -> None:
    """Print, on standard error, what is not yet printed, and the command that repeats the run.

    Daemons that gave up and plugins with mistakes are told of a run that held, too.
    """
    if options.quiet and not options.json:
        for line in (*result.fatalities, *result.damages):
            print(f"simctl: {line}", file=sys.stderr)
    if (options.quiet and not options.json) or (options.json and not result.held):
        for each in result.expectations:
            if not each.held:
                print(f"simctl: did not hold: {each.text}\n  {each.detail}", file=sys.stderr)
        for breach in result.orderings.broken:
            print("simctl: " + "\n  ".join(tell_breach(breach)), file=sys.stderr)
        for complaint in result.complaints:
            print(f"simctl: plugin {complaint.function}: {complaint.problem}", file=sys.stderr)
        for line in result.stalled:
            print(f"simctl: stalled: {line}", file=sys.stderr)
        for line in result.ran_out:
            print(f"simctl: ended: {line}", file=sys.stderr)
    if not result.held:
        if options.until:
            words += ("--until", options.until)
        if options.max_turns is not None:
            words += ("--max-turns", str(options.max_turns))
        print(f"simctl: to repeat: {repeat_command(result, *words)}", file=sys.stderr)


def status_of(result: RunResult) -> int:
    """Return the exit status of a run; a slurmctld that could not go on has to be expected."""
    if result.interrupted:
        return INTERRUPTED
    if any(each.slip for each in result.expectations):
        return WRONG_INPUT
    gone = any(each.startswith("slurmctld") for each in result.fatalities)
    return OK if result.held and (result.expectations or not gone) else NOT_HELD
