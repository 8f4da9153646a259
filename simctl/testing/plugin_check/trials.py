"""The trial clusters: what a plugin goes through in `simctl plugins check`."""

from collections.abc import Iterator
from typing import Final

import attrs


@attrs.frozen
class Trial:
    """One situation: a name for the report, and the scenario's timeline and faults."""

    name: str
    timeline: str
    head: str = ""
    """The cluster, where it is not the one that switch plugins run in."""

    conf: str = ""
    """What else slurm.conf has."""


_HEAD: Final = """\
nodes: [{name: "n[1-3]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-3]", default: true}]
users: {alice: 1001, bob: 1002}
programs:
  ./app: {runs: 5s, output: "done\\n"}
  ./fails: {runs: 2s, exit: 3, tasks: [1]}
  ./dies: {runs: 2s, signal: 9, tasks: [2]}
  ./stays: {runs: forever}
files:
  two_steps.sh: |
    #!/bin/bash
    srun -N2 -n4 --ntasks-per-node=2 ./app
    srun -N1 -n1 ./app
"""

STEPS: Final = (
    Trial(
        "two jobs and three steps",
        "  - {at: 0s, as: alice, run: sbatch -N2 -n4 --ntasks-per-node=2 two_steps.sh}\n"
        "  - {at: 1s, as: bob, run: srun -n2 ./app}\n"
        "  - {at: 2s, run: scontrol show switch 1.0}\n"
        "  - {at: 2s, run: scontrol show switch 1.0 size=80}\n"
        "  - {at: 2s, run: scontrol show switch 1.0 type=0}\n"
        "  - {at: 2s, run: scontrol show switch 1.0 key=0}\n"
        "  - {at: 2s, run: scontrol show switch n1}\n"
        "  - {at: 3s, as: alice, run: scontrol checkpoint able 1}\n"
        "  - {at: 3s, as: alice, run: scontrol checkpoint error 1.0}\n"
        "  - {at: 3s, as: alice, run: scontrol checkpoint complete 1.0}\n",
    ),
    Trial(
        "a slurmctld that restarts while a step runs, and a step from images",
        "  - {at: 0s, as: alice, run: srun -N2 -n4 --ntasks-per-node=2 ./app}\n"
        "  - {at: 2s, fault: {restart: slurmctld}}\n"
        "  - {at: 20s, as: alice, run: srun -N2 --restart-dir=/home/alice ./app}\n",
    ),
    Trial(
        "steps whose tasks fail",
        "  - {at: 0s, as: alice, run: srun -N2 -n4 --ntasks-per-node=2 ./fails}\n"
        "  - {at: 20s, as: alice, run: srun -N2 -n4 --ntasks-per-node=2 ./dies}\n",
    ),
    Trial(
        "jobs that are cancelled or run out of time",
        "  - {at: 0s, as: alice, run: srun -N2 -n4 ./stays}\n"
        "  - {at: 10s, as: alice, run: scancel 1}\n"
        "  - {at: 60s, as: bob, run: srun -t 1 -n2 ./stays}\n",
    ),
    Trial(
        "a launch that fails on one node",
        '  - {at: 0s, fault: {fail: "switch_p_job_init node=n2"}}\n'
        "  - {at: 0s, as: alice, run: srun -N2 -n4 --ntasks-per-node=2 ./app}\n"
        '  - {at: 60s, fault: {fail: "switch_p_job_attach task=1"}}\n'
        "  - {at: 60s, as: alice, run: srun -N2 -n4 --ntasks-per-node=2 ./app}\n",
    ),
    Trial(
        "a job array, and a job that is requeued",
        "  - {at: 0s, as: alice, run: sbatch -a 0-2 -n1 --wrap 'srun ./app'}\n"
        "  - {at: 30s, as: bob, run: sbatch -N2 --wrap 'srun ./stays'}\n"
        "  - {at: 40s, as: bob, run: scontrol requeue 4}\n"
        "  - {at: 400s, as: bob, run: scancel 4}\n",
    ),
    Trial(
        "a job that is suspended and resumed, and a reconfiguration",
        "  - {at: 0s, as: alice, run: srun -N2 -n4 --ntasks-per-node=2 ./app}\n"
        "  - {at: 2s, run: scontrol suspend 1}\n"
        "  - {at: 10s, run: scontrol resume 1}\n"
        "  - {at: 12s, run: scontrol reconfigure}\n",
    ),
    Trial(
        "a node that crashes and comes back",
        "  - {at: 0s, as: alice, run: sbatch --no-requeue -N2 -n4 --wrap 'srun ./stays'}\n"
        "  - {at: 10s, fault: {crash: n2}}\n"
        "  - {at: 20m, fault: {start: n2, clean: true}}\n",
    ),
)
"""Runs through the whole cluster, for plugins of every class that it calls."""

IDLE: Final = Trial("functions called directly", "  []\n")
"""A cluster without jobs, in which functions are called for their own sake."""


def scenario_text(trial: Trial, conf: dict[str, str], model: str) -> str:
    """Return the scenario of a trial, with the plugin's type in slurm.conf."""
    return "".join(_lines(trial, conf, model))


def _lines(trial: Trial, conf: dict[str, str], model: str) -> Iterator[str]:
    yield f"model: {model}\n"
    keys = ", ".join(f'{key}: "{value}"' for key, value in conf.items())
    yield f"slurm_conf: {{{', '.join(filter(None, (keys, trial.conf)))}}}\n"
    yield trial.head or _HEAD
    yield "timeline:\n"
    yield trial.timeline
