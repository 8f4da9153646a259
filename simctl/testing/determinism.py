"""Run a case once more in another process, with another hash seed, and compare the traces.

Both runs tell of values, so that a plugin which hands out others is found as well.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.recording import RecordingError, read_recording
from simctl.status import NOT_HELD
from simctl.testing.cases import Case
from simctl.testing.golden import as_written
from simctl.testing.reading import difference
from simctl.testing.runs import Run

_HASH_SEEDS: Final = ("4242", "1")


class SecondRun:
    """A run of a case in a process of its own, which goes on while the first is made here."""

    def __init__(self, case: Case) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="simctl-")
        self._trace = Path(self._folder.name) / "second.jsonl"
        how = case.variant
        words = ["--schedule", how.schedule]
        words += ["--model", how.model] if how.model else []
        words += ["--seed", str(how.seed)] if how.seed is not None else []
        other = next(seed for seed in _HASH_SEEDS if seed != os.environ.get("PYTHONHASHSEED"))
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "simctl", "run", str(case.path), "--quiet"),
                *("--values", "--trace", str(self._trace), *words),
            ],
            env=os.environ
            | {"PYTHONHASHSEED": other, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def __enter__(self) -> Self:
        """Return itself; it has started already."""
        return self

    def difference(self, run: Run) -> tuple[str, ...]:
        """Return where the two runs part, in lines; nothing if they are the same."""
        _, told = self._process.communicate()
        if self._process.returncode not in (0, NOT_HELD):
            return ("the second run, in another process, did not come to its end:", *_tail(told))
        try:
            second = read_recording(self._trace)
        except RecordingError as error:
            return (f"the second run left no trace: {error}", *_tail(told))
        lines = difference(as_written(run.events), second.happened, "the first run", "the second")
        if not lines:
            return ()
        return ("NOT DETERMINISTIC: two runs of one scenario, seed and schedule differ:", *lines)

    def __exit__(self, *exc: object) -> None:
        """End the process, should it still run, and take its files away."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        self._folder.cleanup()


def without_values(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return events as a run without values records them."""
    return tuple(
        msgspec.structs.replace(event, args=_plain(event.args))
        if event.args is not UNSET and "values" in event.args
        else event
        for event in events
    )


def _plain(args: dict[str, Any]) -> Any:
    return {key: value for key, value in args.items() if key != "values"} or UNSET


def _tail(told: str) -> tuple[str, ...]:
    return tuple(f"  {line}" for line in told.splitlines()[-5:])
