"""Whether what a switch plugin hands out depends on chance: the same run, twice."""

import inspect
import random  # noqa: TID251 - what a plugin may look at
import time  # noqa: TID251 - what a plugin may look at
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simctl.testing.plugin_check.bench import Bench
from simctl.testing.plugin_check.switch.rules import CHANCE
from simctl.testing.plugin_check.trials import Trial, scenario_text


def look_for_chance(bench: Bench, trial: Trial) -> None:
    """Run a trial twice, with another clock and other chance, and compare what is handed out."""
    model = bench.models[0]
    text = scenario_text(trial, {bench.conf_key: bench.kind.plugin_type}, model)
    module = inspect.getmodule(bench.kind)
    seen = []
    for number in range(2):
        with _other_chance(number, vars(module) if module else {}):
            if bench.run(trial.name, text, model=model) is None:
                return
        seen.append(
            [
                (call.function, repr(call.left if "build" in call.function else call.added))
                for call in bench.observers[model].calls
                if call.function in ("switch_p_build_jobinfo", "switch_p_job_attach")
                and not call.failed
            ]
        )
    for one, other in zip(*seen, strict=False):
        if one != other:
            bench.blame(
                CHANCE,
                one[0],
                "gives out other values in a second run of one scenario and seed",
                model=model,
            )
            return


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
