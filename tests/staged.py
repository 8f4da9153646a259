"""Runs of jobs whose data is staged, which keep all built-in orderings."""

from pathlib import Path
from typing import Any

from msgspec import UNSET

from simctl.kernel.events import Event
from tests.cluster import TWO_NODES, Ran, run

HERE = Path(__file__).parent
JOB = "in=5 pre=2 post=1 out=3"
"""How long the parts of a job's staging take, in seconds."""

MIN_JOB_AGE = 20


def staged(
    *timeline: str,
    model: str = "guide",
    job: str = JOB,
    does: str = "sleep 10",
    conf: str = "",
    keys: str = "",
    types: str = "burst_buffer/staging",
    plugins: str = "Staging",
    schedule: str = "fifo",
    cluster: str = TWO_NODES,
    folder: Path = HERE,
) -> Ran:
    """Run commands and faults in a cluster with the staging plugin.

    Args:
        timeline: Entries such as ``1: sbatch job.sh`` (as alice), ``5 root: scancel 1``, or in
            braces the rest of an entry, such as ``9 {fault: {crash: n1}}``.
        model: guide or modern.
        job: What ``job.sh`` asks of the burst buffer.
        does: What it does.
        conf: More of slurm.conf; without SchedulerType there is no backfill.
        keys: More of the scenario.
        types: BurstBufferType.
        plugins: Classes of `tests.staging_plugin`.
        schedule: Which turn goes first.
        cluster: Nodes, partitions and users.
        folder: Where the plugins' file is.
    """
    if "SchedulerType" not in conf:
        conf = f"SchedulerType: sched/builtin, {conf}"
    named = ", ".join(f'"./staging_plugin.py:{each}"' for each in plugins.split())
    text = (
        f"plugins: [{named}]\n"
        f'slurm_conf: {{BurstBufferType: "{types}", MinJobAge: {MIN_JOB_AGE}, {conf}}}\n'
        "files:\n"
        f"  job.sh: |\n    #!/bin/bash\n    #STAGE {job}\n    {does}\n"
        f"  plain.sh: |\n    #!/bin/bash\n    {does}\n"
        f"{keys}\n"
        "timeline:\n" + "".join(_entry(each) for each in timeline)
    )
    return run(text, model=model, folder=folder, schedule=schedule, cluster=cluster)


def _entry(line: str) -> str:
    """Return a timeline's entry of its short form."""
    at, _, rest = line.partition(" {")
    if rest:
        return f"  - {{at: {at}s, {rest}\n"
    when, _, command = line.partition(": ")
    at, _, user = when.partition(" ")
    return f"  - {{at: {at}s, as: {user or 'alice'}, run: {command!r}}}\n"


def calls(ran: Ran, job: int | None = None, *, after: int = 0) -> list[str]:
    """Return the calls of the plugin in order, results with those that tell something.

    ``test_stage_in?`` stands for one that only tests.
    """
    return [
        told(event)
        for event in ran.events
        if event.kind == "plugin"
        and event.name.startswith("bb_p_")
        and event.phase != "enter"
        and event.seq > after
        and (job is None or event.job == job)
    ]


def arg(event: Event, name: str) -> Any:
    """Return an argument of a call."""
    return event.args.get(name) if event.args is not UNSET else None


def told(event: Event) -> str:
    """Return a call in short: its name, and its result if that is not 0."""
    name = event.name.removeprefix("bb_p_").removeprefix("job_")
    args = event.args if event.args is not UNSET else {}
    if args.get("test_only"):
        name += "?"
    if "init_config" in args:
        name += "(true)" if args["init_config"] else ""
    three = "_test_" in event.name
    return f"{name}={event.rc}" if three or event.rc not in (0, UNSET, None) else name


def story(ran: Ran, job: int = 1, *messages: str) -> list[str]:
    """Return a job's states and calls in order, and of the messages those that slurmctld sends."""
    found = []
    for event in ran.events:
        if event.job != job or event.daemon != "slurmctld" or event.phase == "exit":
            continue
        if event.name == "job_state" and event.args is not UNSET:
            found.append(event.args["to"])
        elif event.kind == "plugin" and event.name.startswith("bb_p_"):
            found.append(event.name.removeprefix("bb_p_").removeprefix("job_"))
        elif event.name in messages and event.phase == "send":
            found.append(event.name)
    return found


__all__ = ["HERE", "JOB", "MIN_JOB_AGE", "arg", "calls", "staged", "story", "told"]
