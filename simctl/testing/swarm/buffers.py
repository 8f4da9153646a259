"""Burst buffers of a random scenario: what is behind the plugins, and what jobs ask of them.

Everything is drawn from a stream that the caller has, in an order that is not to change:
`tests/bb_random.py` draws from the same, and its seeds are to mean what they meant.
"""

import random
from collections.abc import Sequence
from typing import Final

NAMES: Final = ("p1", "p2", "p3")
"""Persistent buffers."""

FUNCTIONS: Final = {
    "datawarp": (
        *("setup", "data_in", "pre_run", "post_run", "data_out", "teardown", "paths"),
        *("real_size", "create_persistent", "destroy_persistent", "job_process", "pools"),
    ),
    "generic": ("get_sys", "start_stage_in", "start_stage_out", "stop_stage_in", "stop_stage_out"),
}
"""What the appliance is asked for, by plugin."""

Pools = dict[str, dict[str, str]]


def random_pools(c: random.Random) -> Pools:
    """Draw the pools of the appliance."""
    names = ["wlm_pool", "fast"][: c.choice([1, 1, 2])]
    return {
        name: {
            "capacity": f"{c.choice([10, 16, 24])}GiB",
            "granularity": c.choice(["1GiB", "1GiB", "512MiB", "3GiB"]),
        }
        for name in names
    }


def random_conf(c: random.Random) -> str:
    """Draw what burst_buffer.conf says, as the inside of a mapping."""
    keys = {
        "GetSysState": "/opt/bb/state",
        "StartStageIn": "/opt/bb/in",
        "StartStageOut": "/opt/bb/out",
        "StopStageIn": "/opt/bb/stop_in",
        "StopStageOut": "/opt/bb/stop_out",
        "Flags": "EnablePersistent",
    }
    if c.random() < 0.3:
        keys["Flags"] += ",TeardownFailure"
    for key in ("StageInTimeout", "StageOutTimeout", "OtherTimeout"):
        if c.random() < 0.4:
            keys[key] = str(c.choice([3, 20, 60]))
    return ", ".join(f'{key}: "{value}"' for key, value in keys.items())


def random_functions(c: random.Random, plugin: str) -> str:
    """Draw how a few functions of the appliance go, as the inside of a mapping."""
    found = {}
    names = FUNCTIONS.get(plugin) or (*FUNCTIONS["datawarp"], *FUNCTIONS["generic"])
    for name in c.sample(names, c.randint(1, 3)):
        calls = [_call(c) for _ in range(c.randint(1, 3))]
        found[name] = f"{name}: [{', '.join(calls)}]"
    return ", ".join(found.values())


def _call(c: random.Random) -> str:
    parts = []
    if c.random() < 0.6:
        runs = c.choice(["0s", "1s", "30s", "100s"]) if c.random() < 0.9 else "forever"
        parts.append(f"runs: {runs}")
    if c.random() < 0.5:
        parts.append(c.choice(["exit: 1, output: no such file", "signal: 9", "exit: 2"]))
    return "{" + ", ".join(parts) + "}"


def datawarp_lines(c: random.Random, size: int, pools: Sequence[str]) -> list[str]:
    """Draw the directives of a job for burst_buffer/datawarp."""
    lines = []
    pool = f" pool={c.choice(pools)}" if c.random() < 0.4 else ""
    if c.random() < 0.85:
        lines.append(f"#DW jobdw capacity={size}GiB access_mode=striped type=scratch{pool}")
    if c.random() < 0.1:
        lines.append(f"#DW swap {c.randint(1, 3)}GiB")
    if c.random() < 0.2:
        lines.append(f"#BB create_persistent name={c.choice(NAMES)} capacity={size}GiB{pool}")
    if c.random() < 0.2:
        lines.append(f"#DW persistentdw name={c.choice(NAMES)}")
    if c.random() < 0.1:
        lines.append(f"#BB destroy_persistent name={c.choice(NAMES)} {c.choice(['', 'hurry'])}")
    if c.random() < 0.6:
        path = c.choice(["/lus/in", "/lus/none", "/lus/unknown"])
        lines.append(f"#DW stage_in type=file source={path} destination=$DW_JOB_STRIPED/in")
    if c.random() < 0.6:
        lines.append("#DW stage_out type=file source=$DW_JOB_STRIPED/out destination=/lus/out")
    return lines


def generic_lines(c: random.Random, size: int, _: Sequence[str]) -> list[str]:
    """Draw the directives of a job for burst_buffer/generic."""
    lines = [f"#BB size={size}G"]
    if c.random() < 0.4:
        lines.append("#DW stage_in type=file source=/lus/in destination=x")
        lines.append("#DW stage_out type=file source=x destination=/lus/out")
    return lines


def job_lines(
    c: random.Random, plugin: str, size: int, pools: Sequence[str], *, alone: bool
) -> list[str]:
    """Draw the directives of a job for a plugin; *alone* if there is no other plugin beside it."""
    maker = datawarp_lines if plugin == "datawarp" else generic_lines
    lines = maker(c, size, pools) if c.random() < 0.85 else []
    if plugin == "generic" and not alone:
        # The other plugin would take them for its own.
        lines = [line for line in lines if not line.startswith("#DW")]
    return lines
