"""Whether what a switch plugin hands out depends on chance: the same run, twice.

That texts hash to other numbers in each process shows in two processes alone; this module is what
they run.
"""

import inspect
import json
import os
import random  # noqa: TID251 - what a plugin may look at
import subprocess
import sys
import time  # noqa: TID251 - what a plugin may look at
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Final

from simctl.plugins.importing import find
from simctl.testing.plugin_check.bench import Bench
from simctl.testing.plugin_check.code import uses_sets
from simctl.testing.plugin_check.switch.rules import CHANCE
from simctl.testing.plugin_check.trials import Trial, scenario_text


def look_for_chance(bench: Bench, trial: Trial) -> None:
    """Run a trial twice, with another clock and other chance, and compare what is handed out."""
    module = inspect.getmodule(bench.kind)
    seen = []
    for number in range(2):
        with _other_chance(number, vars(module) if module else {}):
            given = _handed_out(bench, trial)
        if given is None:
            return
        seen.append(given)
    _compare(
        bench, seen[0], seen[1], "gives out other values in a second run of one scenario and seed"
    )


def look_for_hash_order(bench: Bench, trial: Trial) -> None:
    """Run a trial in two processes with other hashes of texts, and compare what is handed out."""
    if bench.over or not uses_sets(bench.kind):
        return
    command = [sys.executable, "-m", __name__, *_reference(bench.kind), bench.models[0]]
    running = [
        subprocess.Popen(
            command,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for seed in ("1", "2")
    ]
    try:
        printed = [each.communicate(timeout=_PATIENCE_S)[0] for each in running]
        one, other = ([(name, what) for name, what in json.loads(each)] for each in printed)
    except (subprocess.TimeoutExpired, ValueError):
        # A plugin that cannot be loaded by its file is not looked at so.
        return
    finally:
        for each in running:
            each.kill()
            each.communicate()
    what = "gives out other values in another process: it takes them in the order of a set of texts"
    _compare(bench, one, other, what)


_PATIENCE_S: Final = 30.0

_Given = list[tuple[str, str]]
"""Each call that hands something out, and what."""


def _handed_out(bench: Bench, trial: Trial) -> _Given | None:
    """Run a trial; return what the plugin gave, None where there is no sense in another run."""
    model = bench.models[0]
    text = scenario_text(trial, {bench.conf_key: bench.kind.plugin_type}, model)
    if bench.run(trial.name, text, model=model) is None:
        return None
    return [
        (call.function, _fixed(call.left if "build" in call.function else call.added))
        for call in bench.observers[model].calls
        if call.function in ("switch_p_build_jobinfo", "switch_p_job_attach") and not call.failed
    ]


def _fixed(value: Any) -> str:
    """Return a text that is the same for equal things, in whatever order sets have their parts."""
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(_fixed(each) for each in value))}}}"
    if type(value) is dict:
        return f"{{{', '.join(f'{key!r}: {_fixed(part)}' for key, part in value.items())}}}"
    if type(value) in (list, tuple):
        return f"({', '.join(_fixed(each) for each in value)})"
    return repr(value)


def _compare(bench: Bench, one: _Given, other: _Given, what: str) -> None:
    for mine, others in zip(one, other, strict=False):
        if mine != others:
            bench.blame(CHANCE, mine[0], what, model=bench.models[0])
            return


def _reference(kind: type[Any]) -> tuple[str, str]:
    """Return a folder, and what names a plugin's class from there on."""
    module = sys.modules[kind.__module__]
    file = Path(str(module.__file__))
    if module.__name__.startswith("_simctl_plugin_"):
        return str(file.parent), f"{file.name}:{kind.__name__}"
    depth = module.__name__.count(".") + (file.name == "__init__.py")
    return str(file.parents[depth]), f"{module.__name__}:{kind.__name__}"


def _main(folder: str, reference: str, model: str) -> None:
    """Print what the plugin hands out in the first trial, for the process that has asked."""
    from simctl.testing.plugin_check.switch.trials import PLAIN  # noqa: PLC0415 - in here alone

    with redirect_stdout(sys.stderr):
        (found,) = find(reference, Path(folder))
        given = _handed_out(Bench(found.kind, found.origin, models=(model,)), PLAIN[0])
    sys.stdout.write(json.dumps(given or []))


@contextmanager
def _other_chance(number: int, names: dict[str, Any]) -> Iterator[None]:
    """Let clocks and chance of the machine be others, as in another process, at another time.

    What a plugin's module, of these *names*, asks of `hash` and `id` is different then as well.
    """
    state = random.getstate()
    clocks: dict[str, Any] = {name: getattr(time, name) for name in ("time", "time_ns")}
    random.seed(1234 + number)
    own: dict[str, Any] = {name: names[name] for name in ("hash", "id") if name in names}
    if number:
        names["hash"] = lambda value: hash((value, number))
        names["id"] = lambda value: id(value) + 16
        time.time = lambda: clocks["time"]() + 100_003.25
        time.time_ns = lambda: clocks["time_ns"]() + 100_003_250_000_000
    try:
        yield
    finally:
        random.setstate(state)
        time.time, time.time_ns = clocks["time"], clocks["time_ns"]
        if number:
            for name in ("hash", "id"):
                del names[name]
            names |= own


if __name__ == "__main__":
    _main(*sys.argv[1:])
