"""The body of `simctl serve`."""

import argparse
import os
import secrets
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from simctl.scenario.model import Scenario
from simctl.serve import asking
from simctl.serve.files import MARK, clear, is_served, prepare
from simctl.serve.watchdog import guard
from simctl.status import InputError


def ask(options: argparse.Namespace) -> int:
    """Ask a served cluster for something; return the exit status.

    Raises:
        InputError: The words are wrong, or no cluster is served there.
    """
    from simctl.scenario.durations import DurationError, parse_duration_us  # noqa: PLC0415

    if len(options.words) < 2:  # noqa: PLR2004 - a folder and a word
        raise InputError("serve ctl: name the cluster's folder, and what is to happen")
    try:
        timeout_us = parse_duration_us(options.timeout) if options.timeout else None
    except DurationError as error:
        raise InputError(f"--timeout: {error}") from error
    folder, *words = options.words
    timeout_s = None if timeout_us is None else timeout_us / 1_000_000
    answer = asking.ask(Path(os.path.realpath(folder)), " ".join(words), timeout_s)
    print(answer.out, end="")
    print(answer.err, end="", file=sys.stderr)
    return answer.status


def serve(
    options: argparse.Namespace,
    load: Callable[[str], Scenario],
    tell_failure: Callable[[Exception], int],
) -> int:
    """Serve a cluster until it is told to end; return the exit status.

    Raises:
        InputError: The options are wrong, or the folder cannot be used.
        OSError: The folder cannot be written.
    """
    if options.words or options.timeout:
        raise InputError("serve: expected one CLUSTER; `serve ctl DIR ...` talks to one")
    if sys.platform != "linux":
        raise InputError("serve: it finds and ends the processes of jobs as only Linux lets it")
    made = not options.dir
    folder = Path(os.path.realpath(options.dir or tempfile.mkdtemp(prefix="simctl-")))
    if is_served(folder):
        raise InputError(
            f"serve: a cluster is served from {folder} already; "
            f"`simctl serve ctl {folder} stop` ends it"
        )
    prepare(folder)
    token = secrets.token_hex(8)

    def run() -> int:
        from simctl.serve.cluster import ServedCluster  # noqa: PLC0415 - the other need not know it

        try:
            scenario = load(options.cluster)
            for warning in scenario.warnings:
                print(f"{warning} (warning)", file=sys.stderr)
            cluster = ServedCluster(
                scenario,
                folder,
                token=token,
                model=options.model,
                scale=options.scale,
                record=options.record,
                web=options.web,
                force=options.force,
            )
            return cluster.serve(
                lambda: print(f"export PATH={folder}/bin:$PATH", flush=True),
                until_eof=options.until_eof,
            )
        except Exception as error:  # noqa: BLE001 - told as any command's failure is
            return tell_failure(error)

    return guard(run, lambda: clear(folder, whole=made), f"{MARK}={token}:".encode())
