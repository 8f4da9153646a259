"""Random runs with burst buffers, each watched by a checker.

``python -m tests.bb_random COUNT [FIRST]`` runs that many, from seed FIRST on.
"""

import itertools
import json
import random
import sys
from collections.abc import Callable
from typing import Final

import msgspec

from simctl.orderings.checking import tell
from simctl.scenario.load import read_scenario
from simctl.testing.swarm.buffers import (
    FUNCTIONS,
    job_lines,
    random_conf,
    random_functions,
    random_pools,
)
from simctl.world import World
from tests.bb_checker import CANCEL_S, MOST_JOBS, Checker

RIGHT_S: Final = 1500
"""When everything that was broken is put right."""

SHOW_S: Final = 5000
"""When the books are compared with what there is."""

OPTIONS: Final[dict[str, tuple[float, Callable[[random.Random], object]]]] = {
    "-N": (0.4, lambda c: c.choice([1, 2, 1, 2, 1, 2, 1, 2, 0])),
    "-t": (0.6, lambda c: c.randint(1, 4)),
    "-a 0-": (0.15, lambda c: c.randint(1, 3)),
    "--nice=": (0.3, lambda c: c.randint(0, 500)),
    "-H": (0.07, lambda _: ""),
    "--no-requeue": (0.2, lambda _: ""),
    "--begin=now+": (0.1, lambda c: c.randint(1, 100)),
    "-d ": (
        0.25,
        lambda c: (
            f"{c.choice(['afterany', 'afterok', 'after', 'afterburstbuffer'])}:{c.randint(1, 4)}"
        ),
    ),
}
COMMANDS: Final = (
    *("scancel {j}", "scancel {j}", "scancel --hurry {j}", "scancel --hurry {j}"),
    *("scontrol requeue {j}", "scontrol requeuehold {j}", "scontrol hold {j}"),
    *("scontrol release {j}", "scontrol release {j}", "scontrol suspend {j}"),
    *("scontrol resume {j}", "scontrol update jobid={j} timelimit={k}", "scontrol show burst"),
    *("scontrol update jobid={j} priority={k}", "scontrol update jobid={j} starttime=now+{k}0"),
    *("scontrol update nodename=n{k} state=down reason=x", "scontrol reconfigure"),
    "scontrol update nodename=n{k} state=drain reason=x",
    *("scontrol update nodename=n{k} state=resume", "squeue", "scontrol show bbstat"),
)
PREEMPT: Final = ("REQUEUE", "CANCEL", '"SUSPEND,GANG"')
STRUCK: Final = (
    *("select_g_job_begin", "select_g_job_begin job={j}", "bb_p_job_begin job={j}"),
    *("dw_data_in job={j}", "dw_pre_run job={j}", "dw_data_out job={j}", "dw_teardown job={j}"),
    *("start_stage_in job={j}", "start_stage_out job={j}", "get_sys", "dw_pools"),
)


HUNG: Final = (
    *("bb_p_job_test_stage_in", "bb_p_job_begin", "bb_p_job_start_stage_out", "bb_p_job_cancel"),
    *("bb_p_job_try_stage_in", "bb_p_load_state", "bb_p_job_validate2", "bb_p_job_test_stage_out"),
)
TYPES: Final = {
    "datawarp": "burst_buffer/datawarp",
    "generic": "burst_buffer/generic",
    "both": '"burst_buffer/datawarp,burst_buffer/generic"',
}


# What is run.


def scenario(seed: int, plugin: str) -> str:
    """Return a random scenario, in which in the end all is put right and cancelled."""
    c = random.Random(f"{seed} {plugin}")
    pools = random_pools(c)
    files, timeline = "", []
    for number in range(1, c.randint(3, 9)):
        at = c.choice([c.randint(0, 20), c.randint(0, 200)])
        text, line = _job(c, plugin, number, pools)
        files += text
        timeline.append(f"{{at: {at}s, as: {c.choice(['alice', 'bob'])}, run: {json.dumps(line)}}}")
    for _ in range(c.choice([0, 0, 2, 5, 10])):
        line = c.choice(COMMANDS).format(j=c.randint(1, 9), k=c.randint(1, 3))
        timeline.append(f"{{at: {_when(c)}s, run: {json.dumps(line)}}}")
    timeline += _misfortunes(c)
    appliance = [f"pools: {json.dumps(pools)}"]
    if c.random() < 0.4:
        appliance.append(f"bandwidth: {c.choice(['100MiB', '1GiB', '10GiB'])}")
    if c.random() < 0.6:
        appliance.append("data: {/lus/in: 8GiB, /lus/out: 30GiB, /lus/none: 0}")
    if c.random() < 0.5:
        appliance.append(f"functions: {{{random_functions(c, plugin)}}}")
    if c.random() < 0.05:
        appliance.append("up: false")
    return (
        f"slurm_conf: {{{_slurm_conf(c, plugin)}}}\n"
        f"options: {{{_options(c)}}}\n"
        f"burst_buffer_conf: {{{random_conf(c)}}}\n"
        f"burst_buffer: {{{', '.join(appliance)}}}\n"
        'nodes: [{name: "n[1-3]", cpus: 2}]\n'
        'partitions: [{name: a, nodes: "n[1-2]", default: true, max_time: "10:00"}, '
        '{name: b, nodes: "n[2-3]", priority_tier: 2}]\n'
        "users: {alice: 1001, bob: 1002}\n"
        f"files:\n{files}"
        "timeline:\n" + "".join(f"  - {entry}\n" for entry in [*timeline, *_last()])
    )


def _slurm_conf(c: random.Random, plugin: str) -> str:
    keys = [
        f"BurstBufferType: {TYPES[plugin]}",
        f"MinJobAge: {c.choice([5, 60])}",
        f"SchedulerType: sched/{c.choice(['builtin', 'backfill'])}",
        "KillWait: 5, SlurmdTimeout: 30, ReturnToService: 1",
    ]
    if c.random() < 0.15:
        keys.append(f"PreemptType: preempt/partition_prio, PreemptMode: {c.choice(PREEMPT)}")
    if c.random() < 0.1:
        keys.append(c.choice(["RequeueExit: 3", "RequeueExitHold: 3", "EpilogSlurmctld: /e"]))
    return ", ".join(keys)


def _options(c: random.Random) -> str:
    names = ("bb_post_run_gate", "bb_load_first", "bb_stageout_after_epilog")
    wanted = [name for name in names if c.random() < 0.1]
    return ", ".join(f"{name}: {c.choice(['true', 'false'])}" for name in wanted)


def _when(c: random.Random) -> float:
    return c.choice([c.randint(0, 60), c.randint(0, 400), c.randint(0, 600) / 10])


def _job(
    c: random.Random, plugin: str, number: int, pools: dict[str, dict[str, str]]
) -> tuple[str, str]:
    """Return the script of a job, and the command line that submits it."""
    whole = plugin != "both"
    if not whole:
        plugin = c.choice(["datawarp", "generic"])
    size = c.choice([1, 3, 4, 5, 8, 10, 12, 16, 30])
    words = [f"{name}{make(c)}" for name, (odds, make) in OPTIONS.items() if c.random() < odds]
    words += c.choice([[], [], ["-p a"], ["-p b"], ["-p b,a"]])
    work = f"sleep {c.choice([0, 1, 20, 100, 300])}"
    if c.random() < 0.2:
        asked = f"size={size}G" if plugin == "generic" else f"capacity={size}GiB"
        words = [word for word in words if not word.startswith(("-a", "-H", "--no-requeue"))]
        given = f"--bb={asked}" if c.random() < 0.8 else ""
        return "", f"srun {' '.join(words)} {given} {work}"
    lines = job_lines(c, plugin, size, list(pools), alone=whole)
    ending = c.choice(["", "", "", "exit 3", "srun -n1 sleep 2"])
    body = "".join(f"    {line}\n" for line in ["#!/bin/sh", *lines, work, ending] if line)
    return f"  j{number}.sh: |\n{body}", f"sbatch {' '.join(words)} j{number}.sh"


def _misfortunes(c: random.Random) -> list[str]:
    found = []
    if c.random() < 0.25:
        at, back, node = _when(c), c.choice([5, 60, 400]), c.choice(["n1", "n2"])
        found.append(f"{{at: {at}s, fault: {{crash: {node}}}}}")
        found.append(f"{{at: {at + back}s, fault: {{start: {node}}}}}")
    for _ in range(c.choice([0, 0, 0, 1, 1, 2])):
        away = c.choice(["0s", "1s", "30s", "100s"])
        found.append(f"{{at: {_when(c)}s, fault: {{restart: slurmctld, for: {away}}}}}")
    if c.random() < 0.15:
        at = _when(c)
        found.append(f"{{at: {at}s, burst_buffer: {{up: false}}}}")
        found.append(f"{{at: {at + c.choice([1, 30, 200])}s, burst_buffer: {{up: true}}}}")
    if c.random() < 0.15:
        found.append(f"{{at: {_when(c)}s, burst_buffer: {{bandwidth: 2GiB}}}}")
    if c.random() < 0.15:
        what = c.choice(STRUCK).format(j=c.randint(1, 5))
        times, skip = c.randint(1, 2), c.randint(0, 2)
        found.append(f'{{at: 0s, fault: {{fail: "{what}", times: {times}, skip: {skip}}}}}')
    if c.random() < 0.1:
        what, length = c.choice(HUNG), c.choice([1, 20, 90])
        hang = f"hang: {what}, for: {length}s, skip: {c.randint(0, 5)}"
        found.append(f"{{at: 0s, fault: {{{hang}}}}}")
    if c.random() < 0.1:
        edit = c.choice(["DenyUsers: bob", "StageInTimeout: 5", "OtherTimeout: 1", "Flags: "])
        found.append(f"{{at: {_when(c)}s, burst_buffer_conf: {{{edit}}}}}")
        found.append(f"{{at: {_when(c)}s, run: scontrol reconfigure}}")
    if c.random() < 0.07:
        node, length = c.choice(["n1", "n2", "login"]), c.choice([1, 20, 200])
        cut = f"cut: [slurmctld, {node}], for: {length}s"
        found.append(f"{{at: {_when(c)}s, fault: {{{cut}}}}}")
    return found


def _last() -> list[str]:
    """Return what puts everything right, ends whatever is left, and looks at what remains."""
    names = {name: None for plugin in FUNCTIONS.values() for name in plugin}
    lines = [f"{{at: {RIGHT_S}s, burst_buffer: {{up: true, functions: {json.dumps(names)}}}}}"]
    commands = [f"scontrol update nodename=n{k} state=resume" for k in (1, 2, 3)]
    jobs = range(1, MOST_JOBS + 1)
    commands += [f"scontrol {word} {job}" for job in jobs for word in ("release", "resume")]
    lines += [f"{{at: {RIGHT_S + 1}s, run: {command}}}" for command in commands]
    everybody = " ".join(map(str, jobs))
    lines += [f"{{at: {at}s, run: scancel --hurry {everybody}}}" for at in (CANCEL_S, 4400)]
    return [*lines, f"{{at: {SHOW_S}s, run: scontrol show burst}}"]


def world_of(seed: int) -> tuple[World, str]:
    """Return the cluster of a seed, and the plugin that it has."""
    plugin = "both" if seed % 10 == 9 else "generic" if seed % 2 else "datawarp"
    model = "modern" if seed // 2 % 2 else "guide"
    order = "random" if seed // 4 % 3 == 1 else "fifo"
    read = read_scenario(scenario(seed, plugin), file="s.yaml")
    return World(read, model=model, schedule=order, seed=seed), plugin


def checked(seed: int) -> list[str]:
    """Run the scenario of a seed, and return what is wrong with the run."""
    world, plugin = world_of(seed)
    checker = Checker(world, plugin)
    world.trace.add_sink(checker.see)
    result = world.run()
    checker.at_the_end(result)
    told = ["\n".join(tell(breach)) for breach in result.orderings.broken]
    return [*checker.problems, *told]


def trace_of(seed: int) -> bytes:
    """Run the scenario of a seed, and return its trace."""
    world, _ = world_of(seed)
    lines: list[bytes] = []
    world.trace.add_sink(lambda event: lines.append(msgspec.json.encode(event)))
    world.run()
    return b"\n".join(lines)


def main() -> int:
    """Run many, and print what is wrong."""
    count, first = (*map(int, sys.argv[1:]), 0)[:2]
    bad = 0
    for seed in itertools.islice(itertools.count(first), count):
        try:
            problems = checked(seed)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are run too
            problems = [f"{type(error).__name__}: {error}"[:300]]
        if problems:
            bad += 1
            sys.stdout.write("\n    ".join([f"seed {seed}:", *problems[:4]]) + "\n")
            sys.stdout.flush()
    sys.stdout.write(f"{bad} of {count} runs are wrong\n")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
