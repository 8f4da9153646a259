"""The `simctl` command: each subcommand only calls the rooms below; they are imported late."""

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from simctl import __version__, numbers
from simctl.console import leave, no_colours_any_more, screens
from simctl.status import BROKEN, INTERRUPTED, NOT_HELD, OK, WRONG_INPUT, InputError


def make_parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = argparse.ArgumentParser(
        prog="simctl",
        description="Emulate Slurm's control plane in virtual time, and see when, in which "
        "process and as whom it calls plugins.",
        epilog="Exit status: 0 all held, 1 something expected did not hold or the run stalled, "
        "2 wrong input, 3 simctl itself broke, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"simctl {__version__}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks and debug logs")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_run(commands)
    check = commands.add_parser("check", help="validate scenarios; every mistake at once")
    check.add_argument("scenarios", nargs="+", metavar="SCENARIO")
    commands.add_parser("schema", help="print the JSON Schema of a scenario")
    _add_test(commands)
    _add_explore(commands)
    _add_swarm(commands)
    _add_sweep(commands)
    _add_trace(commands)
    why = commands.add_parser(
        "why",
        help="say of a trace's jobs that did not complete what went wrong first",
        description="Say, of each job that did not complete, what went wrong first: which plugin "
        "call, script, task, fault, limit or command, in which process, and what it returned.",
    )
    why.add_argument("file", metavar="TRACE", help="as `run --trace TRACE` writes it")
    why.add_argument("words", nargs="*", metavar="job N", help="this job alone")
    _add_view(commands)
    _add_plugins(commands)
    _add_repl(commands)
    _add_serve(commands)
    _add_import(commands)
    _add_new(commands)
    completion = commands.add_parser(
        "completion",
        help="print a script that completes simctl's command line in a shell",
        description="Print a script that completes subcommands, options and files. "
        "bash: `simctl completion bash > ~/.local/share/bash-completion/completions/simctl`; "
        "zsh: `simctl completion zsh > DIR/_simctl` with DIR in $fpath; "
        "fish: `simctl completion fish > ~/.config/fish/completions/simctl.fish`.",
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    _add_no_color(parser)
    return parser


def _add_no_color(
    parser: argparse.ArgumentParser, told: str = "print no colours, as with NO_COLOR set"
) -> None:
    """Let --no-color stand before a subcommand or after it; the help tells it once."""
    parser.add_argument("--no-color", action="store_true", help=told)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _add_no_color(below, argparse.SUPPRESS)


def _add_serve(commands: Any) -> None:
    serve = commands.add_parser(
        "serve",
        help="serve a cluster in real time to real clients",
        description="Serve a cluster in real time: Slurm's commands in DIR/bin talk to it, scripts "
        "and tasks are real processes of this machine, run as the user who submits them. "
        "`simctl serve ctl DIR WORDS` lets something go wrong in it, waits for something, or ends "
        "it.",
    )
    serve.usage = (
        "simctl serve [OPTIONS] CLUSTER\n       simctl serve ctl DIR [--timeout TIME] WORDS..."
    )
    serve.add_argument("cluster", metavar="CLUSTER", help="a scenario's YAML file")
    serve.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    serve.add_argument("--timeout", metavar="TIME", help="how long `serve ctl DIR wait` waits")
    serve.add_argument("--dir", default="", help="its folder (default: a new one below /tmp)")
    serve.add_argument(
        "--model", choices=("guide", "modern"), default="", help="instead of the file's"
    )
    serve.add_argument(
        "--record", metavar="FILE", help="write all that happens as a scenario that repeats it"
    )
    serve.add_argument(
        "--force", action="store_true", help="overwrite a file that simctl did not write"
    )
    serve.add_argument(
        "--scale",
        type=numbers.SCALE,
        default=1.0,
        metavar="N",
        help="let the daemons' clocks, and programs that are described, go N times as fast",
    )
    serve.add_argument(
        "--until-eof", action="store_true", help="end when standard input does, as with its writer"
    )
    serve.add_argument(
        "--web", action="store_true", help="show it in a browser of this machine; prints where"
    )


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="run a scenario, or replay a workload log",
        description="Run a scenario in virtual time, or replay a Standard Workload Format log.",
    )
    run.add_argument("scenario", nargs="?", metavar="SCENARIO", help="a YAML file")
    run.add_argument("--seed", type=numbers.SEED, help="seed of chance and of a random schedule")
    run.add_argument(
        "--schedule",
        default="fifo",
        metavar="fifo|random|pct|TOKEN",
        help="which of the turns due at one moment goes first: the first that came (fifo, the "
        "default), any (random, from the seed), by priorities of processes (pct, from the seed), "
        "or as a token says that `explore` printed; random,jitter=200us,calls and pct,depth=3 have "
        "messages be late and processes change at plugin calls",
    )
    run.add_argument("--model", choices=("guide", "modern"), help="instead of the scenario's")
    run.add_argument("--until", metavar="TIME", help="stop at a moment of virtual time")
    run.add_argument(
        "--max-turns",
        type=numbers.MAX_TURNS,
        metavar="N",
        help="end a run that takes more turns (default 500,000, of a log any number; 0: never)",
    )
    _add_outcome(run)
    _add_replay(run)


def _add_outcome(run: Any) -> None:
    """Declare what is written and told of a run, and what is watched in it."""
    run.add_argument("--trace", metavar="FILE", help="write the trace there; - is stdout")
    run.add_argument("--html", metavar="FILE", help="write a page there that shows the run")
    run.add_argument("--db", metavar="FILE", help="write the run there as an SQLite file")
    run.add_argument(
        "--state-dir",
        metavar="DIR",
        help="slurmctld's state files lie in this folder; what it holds is restored",
    )
    run.add_argument(
        "--force", action="store_true", help="overwrite a file that simctl did not write"
    )
    run.add_argument(
        "--values",
        action="store_true",
        help="have the trace tell what plugin calls put into environments, credentials and files, "
        "and what plugins keep",
    )
    run.add_argument(
        "--gdb",
        default="",
        metavar="FUNCTION",
        help="before a compiled plugin's function is called first, wait until a debugger is "
        "attached to its process",
    )
    run.add_argument("--trace-kinds", metavar="K,..", help="write only events of these kinds")
    run.add_argument(
        "--watchdog",
        type=numbers.WATCHDOG,
        default=10.0,
        metavar="SECONDS",
        help="stop a plugin's code that runs this long on the wall clock (default 10, 0 never)",
    )
    run.add_argument(
        "--no-orderings", action="store_true", help="do not check the built-in orderings"
    )
    run.add_argument(
        "--explain",
        action="store_const",
        const="story",
        help="tell the story: commands, messages, forks, and the plugin calls that matter",
    )
    run.add_argument(  # an option of its own, so that --explain takes no word from behind it
        "--explain=all",
        dest="explain",
        action="store_const",
        const="all",
        help="the same with every plugin call, message and process, each by itself",
    )
    run.add_argument("--json", action="store_true", help="print the result as one JSON object")
    run.add_argument("--quiet", action="store_true", help="print only what went wrong")


def _add_replay(run: Any) -> None:
    log = run.add_argument_group("replay of a workload log")
    log.add_argument("--swf", metavar="FILE", help="a Standard Workload Format log, .gz or not")
    log.add_argument("--nodes", type=numbers.NODES, help="nodes of the cluster")
    log.add_argument("--cpus-per-node", type=numbers.CPUS_PER_NODE, default=1, help="default 1")
    log.add_argument(
        "--scheduler", choices=("builtin", "backfill"), default="builtin", help="default builtin"
    )
    log.add_argument(
        "--limit", type=numbers.REPLAYED, metavar="JOBS", help="only the first jobs of the log"
    )
    log.add_argument("--skip-bad", action="store_true", help="leave malformed lines out")
    log.add_argument("--latency", default="100us", metavar="TIME", help="of links (default 100us)")
    log.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of slurm.conf; may be repeated",
    )


def _add_test(commands: Any) -> None:
    from simctl.testing.options import add_arguments

    add_arguments(commands)


def _add_explore(commands: Any) -> None:
    from simctl.testing.explore.arguments import add_arguments

    add_arguments(commands)


def _add_swarm(commands: Any) -> None:
    from simctl.testing.swarm.arguments import add_arguments

    add_arguments(commands)


def _add_sweep(commands: Any) -> None:
    from simctl.sweep.arguments import add_arguments

    add_arguments(commands)


def _add_view(commands: Any) -> None:
    from simctl.view.arguments import add_arguments, add_compare

    add_arguments(commands)
    add_compare(commands)


def _add_trace(commands: Any) -> None:
    trace = commands.add_parser("trace", help="read traces: show, diff, why, assert, conform")
    verbs = trace.add_subparsers(dest="verb", metavar="VERB", required=True)
    show = verbs.add_parser("show", help="print a trace, filtered")
    show.add_argument("file")
    show.add_argument("pattern", nargs="*", help="an event pattern: NAME key=value ...")
    show.add_argument("--kinds", metavar="K,..", help="only events of these kinds")
    show.add_argument("--json", action="store_true", help="print the lines as they are")
    diff = verbs.add_parser("diff", help="compare two traces; exit 1 if they differ")
    diff.add_argument("file")
    diff.add_argument("other")
    why = verbs.add_parser(
        "why", help="the chain of causes behind an event, or whether it must precede another"
    )
    why.add_argument("file")
    why.add_argument("event", help="its number, or a pattern in quotes that it alone matches")
    why.add_argument("later", nargs="?", default="", help="another: must the first come before it?")
    held = verbs.add_parser("assert", help="hold expectations against a trace; exit 1 if one fails")
    held.add_argument("file")
    held.add_argument("expectation", nargs="*", help="such as '{never: \"fini role=manager\"}'")
    held.add_argument(
        "--file", action="append", default=[], dest="files", metavar="EXPECT.yaml", help="a list"
    )
    _add_conform(verbs)


def _add_conform(verbs: Any) -> None:
    conform = verbs.add_parser(
        "conform",
        help="hold a run of model modern against a recording of real Slurm 18.08",
        description="Tell where a run makes other plugin calls than a recording of real Slurm: in "
        "each process and thread, with users, arguments and results, states of jobs and nodes, "
        "and what processes owe each other. Exit status: 0 they agree, 1 they differ, 2 wrong "
        "input. docs/conformance.md has what does not count.",
    )
    conform.add_argument("file", metavar="TRACE", help="a trace of a run under --model modern")
    conform.add_argument("recording", metavar="RECORDING", help="a recording, JSON or gzipped JSON")
    conform.add_argument(
        "--accept", metavar="FILE", help="accepted differences: a YAML list; each must be needed"
    )
    conform.add_argument("--json", action="store_true", help="print an object")


def _add_plugins(commands: Any) -> None:
    plugins = commands.add_parser("plugins", help="lifecycle points and plugins; check a plugin")
    verbs = plugins.add_subparsers(dest="verb", metavar="VERB", required=True)
    verbs.add_parser("list", help="list the classes, and every plugin there is")
    show = verbs.add_parser("show", help="show a class, a plugin or a function")
    show.add_argument("name", metavar="NAME", help="switch, switch/none, switch_p_job_attach, FILE")
    verbs.add_parser(
        "header",
        help="print the header for plugins in C",
        description="Print a header with the guides' types and functions, and with what plugins "
        "in C may call of libslurm: simctl plugins header > simctl_plugin.h",
    )
    check = verbs.add_parser(
        "check",
        help="drive every function of a plugin in trial clusters",
        description="Load plugins, drive each of their functions in trial clusters, and name "
        "mistakes: where, what a cluster would suffer, what to do. Exit status: 0 driven and "
        "nothing found, 1 a mistake, 2 it cannot be loaded, or nothing of it could be driven.",
    )
    check.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="./file.py, ./file.py:Class, module:Class, ./file.so, ./file.c, a type, or a site's "
        "./job_submit.lua",
    )
    check.add_argument(
        "--lua",
        action="append",
        default=[],
        choices=("5.1", "5.2", "5.3", "5.4"),
        help="try a script under this Lua (default: 5.1 and 5.4)",
    )
    check.add_argument(
        "--slurm",
        action="append",
        default=[],
        choices=("21.08", "22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05"),
        help="try a script under this Slurm (default: those that have all that it uses)",
    )
    check.add_argument(
        "--scenario",
        action="append",
        default=[],
        metavar="FILE",
        help="run this scenario of your own as well, and judge what the plugin does in it",
    )
    check.add_argument("--model", choices=("guide", "modern"), help="only this model")
    check.add_argument("--json", action="store_true", help="print a JSON array")
    check.add_argument(
        "--watchdog",
        type=numbers.WATCHDOG,
        default=2.0,
        metavar="SECONDS",
        help="stop code that runs this long on the wall clock (default 2, 0 never)",
    )


def _add_repl(commands: Any) -> None:
    repl = commands.add_parser(
        "repl",
        help="step through a cluster, stop it anywhere, go back",
        description="Hold a session in which you type Slurm's commands, let virtual time go on "
        "step by step, stop in plugin calls, and go back. `help` says what there is to type.",
    )
    repl.add_argument("scenario", nargs="?", metavar="SCENARIO", help="default: two nodes")
    repl.add_argument("--script", metavar="FILE", help="type the lines of a file")
    repl.add_argument("--check", action="store_true", help="compare with the outputs in the script")
    repl.add_argument("--seed", type=numbers.SEED, help="seed of chance and of a random schedule")
    repl.add_argument("--schedule", default="fifo", metavar="NAME|TOKEN", help="as for run")
    repl.add_argument("--model", choices=("guide", "modern"), help="instead of the scenario's")
    repl.add_argument(
        "--watchdog", type=numbers.WATCHDOG, default=10.0, metavar="SECONDS", help="as for run"
    )
    repl.set_defaults(until=None, no_orderings=True)


def _add_import(commands: Any) -> None:
    from simctl.importing.sources import add_arguments

    add_arguments(
        commands.add_parser(
            "import",
            help="make a scenario from a site's own files",
            usage="simctl import [slurm.conf|sacct] FILE [-o SCENARIO] [--force]",
            description="Make a scenario of the cluster that a slurm.conf describes, or of the "
            "jobs that `sacct -P -o JobID,Submit,...` printed.",
        )
    )


def _add_new(commands: Any) -> None:
    from simctl.starter.plugin import add_arguments

    new = commands.add_parser("new", help="make a folder with a plugin that works at once")
    verbs = new.add_subparsers(dest="verb", metavar="WHAT", required=True)
    add_arguments(
        verbs.add_parser(
            "plugin",
            help="a plugin, its scenario, tests, README, pyproject and CI",
            description="Make the folder NAME with a small plugin, a scenario, tests, a README, "
            "a pyproject.toml and a workflow for CI, all of which pass at once.",
        )
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if "--no-color" in words:
        # Whatever writes colours looks there, the parser's own help and prompt_toolkit among it.
        os.environ["NO_COLOR"] = "1"
    with screens():
        try:
            return _run_command(words)
        except KeyboardInterrupt:
            return INTERRUPTED
        except Exception as error:  # noqa: BLE001 - whatever it is, the user is told
            return _failed(error, debug="--debug" in words)


def _run_command(words: Sequence[str]) -> int:
    parser = make_parser()
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            # A name of a file may be any bytes; traces, pages and scenarios that tell it may not.
            raise InputError(f"{word}: no text in UTF-8; give what has this name another") from None
        option, _, value = word.partition("=")
        if value == "--" and option.startswith("--"):
            parser.error(f"argument {option}: expected a value, got --")  # argparse drops it
    options = parser.parse_args(words)
    if options.command is None:
        parser.print_help(sys.stderr)
        return WRONG_INPUT
    no_colours_any_more()
    status = _COMMANDS[options.command](options)
    # What cannot be written is told here, and not as the interpreter ends.
    sys.stdout.flush()
    return status


def _failed(error: Exception, *, debug: bool) -> int:
    """Say what stopped a command; return the exit status."""
    if isinstance(error, InputError):
        print(error if error.placed else f"simctl: {error}", file=sys.stderr)
        return WRONG_INPUT
    if isinstance(error, BrokenPipeError):
        # The reader of our output has gone; that is its business.
        leave(sys.stdout)
        return OK
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        print(f"simctl: cannot write what there is to tell: {error.strerror}", file=sys.stderr)
        leave(sys.stdout)
        return WRONG_INPUT
    if isinstance(error, OSError) and error.filename is not None:
        name = str(error.filename)
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
        print(f"simctl: {shown}: {error.strerror}", file=sys.stderr)
        return WRONG_INPUT
    if debug:
        raise error
    print(
        f"simctl: internal error: {type(error).__name__}: {error}\n"
        "This is a fault of simctl's; `simctl --debug ...` shows where.",
        file=sys.stderr,
    )
    return BROKEN


_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_SHOWN: Final = 80


def _run(options: argparse.Namespace) -> int:
    if bool(options.scenario) == bool(options.swf):
        raise InputError("run: name a scenario, or a log with --swf FILE --nodes N")
    if options.swf:
        if options.gdb:
            raise InputError("run: --gdb goes with a scenario; a log of jobs has no plugin")
        from simctl.replay import run_replay

        return run_replay(options)
    from simctl.running import run

    return run(options)


def _check(options: argparse.Namespace) -> int:
    from simctl.checking import check_scenarios

    return check_scenarios(options.scenarios)


def _schema(_: argparse.Namespace) -> int:
    import json

    from simctl.scenario.schema import schema

    print(json.dumps(schema(), indent=2))
    return OK


def _test(options: argparse.Namespace) -> int:
    from simctl.testing.command import run_tests

    return run_tests(options)


def _explore(options: argparse.Namespace) -> int:
    from simctl.running import find
    from simctl.testing.explore.command import explore
    from simctl.testing.explore.options import read

    path, shipped = find(options.scenario)
    return explore(read(options, path, shipped=shipped))


def _swarm(options: argparse.Namespace) -> int:
    from simctl.running import find
    from simctl.testing.swarm.command import swarm
    from simctl.testing.swarm.options import read

    path = None if options.scenario is None else find(options.scenario)[0]
    return swarm(read(options, path))


def _sweep(options: argparse.Namespace) -> int:
    from simctl.sweep.command import sweep

    return sweep(options)


def _trace(options: argparse.Namespace) -> int:
    from simctl.testing import reading

    if options.verb == "show":
        kinds = tuple(filter(None, (options.kinds or "").split(",")))
        return reading.show(
            Path(options.file), " ".join(options.pattern), kinds, as_json=options.json
        )
    if options.verb == "diff":
        return reading.diff(Path(options.file), Path(options.other))
    if options.verb == "assert":
        from simctl.testing.holding import assert_trace

        files = [Path(file) for file in options.files]
        return assert_trace(Path(options.file), options.expectation, files)
    if options.verb == "conform":
        from simctl.testing.conform.command import conform

        return conform(
            Path(options.file),
            Path(options.recording),
            accept=None if options.accept is None else Path(options.accept),
            as_json=options.json,
        )
    from simctl.testing.why import why

    return why(Path(options.file), options.event, options.later)


def _why(options: argparse.Namespace) -> int:
    from simctl.testing.why import why_failed

    return why_failed(Path(options.file), options.words)


def _view(options: argparse.Namespace) -> int:
    from simctl import running
    from simctl.view import command

    command.check_view(options)
    if options.live:
        from simctl.repl.web.command import view_live

        return view_live(options, running.load, running.make_world)
    path = options.inputs[0]
    if options.gantt:
        from simctl.view.gantt import view_gantt

        return view_gantt(options.inputs, options.output, force=options.force)
    if command.is_scenario(path):
        return running.view(options)
    return command.view_trace(options, path)


def _compare(options: argparse.Namespace) -> int:
    from simctl.sweep.table import is_sweep

    files = [options.one, *([options.other] if options.other else [])]
    if any(map(is_sweep, files)):
        from simctl.sweep.comparing import compare_sweeps

        return compare_sweeps(
            options.one,
            options.other,
            choices=(options.one_of, options.other_of),
            page=options.html,
            as_object=options.json,
            force=options.force,
        )
    if options.one_of or options.other_of:
        raise InputError("compare: --one and --other go with tables of `simctl sweep`")
    if options.other is None:
        raise InputError("compare: name a second file")
    from simctl.view.gantt import compare_files

    return compare_files(
        options.one, options.other, options.html, as_object=options.json, force=options.force
    )


def _plugins(options: argparse.Namespace) -> int:
    from simctl.reports import catalogue

    if options.verb == "list":
        return catalogue.list_plugins()
    if options.verb == "show":
        return catalogue.show(options.name)
    if options.verb == "header":
        return catalogue.print_header()
    from simctl.running import load
    from simctl.testing.plugin_check.check import MODELS, check_plugins

    return check_plugins(
        options.paths,
        models=(options.model,) if options.model else MODELS,
        watchdog_s=options.watchdog,
        as_json=options.json,
        given=[load(path) for path in options.scenario],
        luas=options.lua,
        slurms=options.slurm,
    )


def _repl(options: argparse.Namespace) -> int:
    from simctl.repl.start import run_repl
    from simctl.running import load, make_world

    return run_repl(options, load, make_world)


def _serve(options: argparse.Namespace) -> int:
    from simctl.serve.command import ask, serve

    if options.cluster == "ctl":
        return ask(options)

    def load(path: str) -> Any:
        from simctl.running import load  # the process that only watches does without

        return load(path)

    return serve(options, load, lambda error: _failed(error, debug=options.debug))


def _completion(options: argparse.Namespace) -> int:
    from simctl.completion import script

    print(script(make_parser(), options.shell))
    return OK


def _import(options: argparse.Namespace) -> int:
    from simctl.importing.sources import import_site

    return import_site(options)


def _new(options: argparse.Namespace) -> int:
    from simctl.starter.plugin import new_plugin

    return new_plugin(options.name, options.type, options.lang)


__all__ = ["BROKEN", "INTERRUPTED", "NOT_HELD", "OK", "WRONG_INPUT", "InputError", "main"]

_COMMANDS: Final = {
    "run": _run,
    "check": _check,
    "schema": _schema,
    "test": _test,
    "explore": _explore,
    "swarm": _swarm,
    "sweep": _sweep,
    "trace": _trace,
    "why": _why,
    "view": _view,
    "compare": _compare,
    "plugins": _plugins,
    "repl": _repl,
    "serve": _serve,
    "import": _import,
    "new": _new,
    "completion": _completion,
}
