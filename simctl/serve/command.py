"""The body of `simctl serve`."""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from simctl.scenario.model import Scenario
from simctl.serve.files import clear, is_served, prepare
from simctl.serve.watchdog import guard
from simctl.status import InputError


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
    if sys.platform != "linux":
        raise InputError("serve: it finds and ends the processes of jobs as only Linux lets it")
    made = not options.dir
    folder = Path(options.dir or tempfile.mkdtemp(prefix="simctl-")).resolve()
    if is_served(folder):
        raise InputError(
            f"serve: a cluster is served from {folder} already; "
            f"`simctl serve ctl {folder} stop` ends it"
        )
    prepare(folder)

    def run() -> int:
        from simctl.serve.cluster import ServedCluster  # noqa: PLC0415 - the other need not know it

        try:
            scenario = load(options.cluster)
            for warning in scenario.warnings:
                print(f"{warning} (warning)", file=sys.stderr)
            cluster = ServedCluster(scenario, folder, model=options.model, scale=options.scale)
            return cluster.serve(lambda: print(f"export PATH={folder}/bin:$PATH", flush=True))
        except Exception as error:  # noqa: BLE001 - told as any command's failure is
            return tell_failure(error)

    return guard(run, lambda: clear(folder, whole=made))
