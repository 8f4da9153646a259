"""Runs of a switch and a checkpoint plugin that a test writes, and what they say of themselves."""

import textwrap
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from simctl.kernel.events import Event
from tests.cluster import TWO_NODES, Ran, run

BOTH = pytest.mark.parametrize("model", ["guide", "modern"])

THREE_NODES = TWO_NODES.replace("n[1-2]", "n[1-3]")

SLOW_EPILOG = "programs:\n  /etc/epilog: {runs: 100s}\n"
"""An epilog of a hundred seconds, where slurm.conf names it."""

SEES_JOBS = """
def slurm_ckpt_alloc_job(self):
    return ["a record"]
def slurm_ckpt_free_job(self, jobinfo):
    log.info(f"{jobinfo} " + " ".join(f"{job.job_id} {job.job_state}" for job in slurmctld.jobs()))
"""
"""Functions of a checkpoint plugin that tell which jobs there are as a record is released."""


def ran_with(
    folder: Path, methods: str, text: str, *, checkpoint: str = "", conf: str = "", **more: Any
) -> Ran:
    """Run a scenario with a switch plugin that has these *methods*, and one for checkpoints."""
    (folder / "mine.py").write_text(
        "from simctl.plugin import *\n"
        "from simctl.plugin import CheckpointPlugin, log, now, process\n"
        "from simctl.plugin import sleep, slurmctld, stepd\n\n\n"
        + _class("switch", methods)
        + _class("checkpoint", checkpoint)
    )
    also = more.pop("also", "./mine.py:OfCheckpoint")
    if "CheckpointType" not in conf:
        conf += ", CheckpointType: checkpoint/mine"
    keys = (
        f'plugins: ["./mine.py:OfSwitch", "{also}"]\n'
        f"slurm_conf: {{SwitchType: switch/mine, {conf.strip(', ')}}}\n"
    )
    return run(keys + text, folder=folder, **more)


def _class(kind: str, methods: str) -> str:
    return (
        f"class Of{kind.title()}({kind.title()}Plugin):\n"
        f"    plugin_type = '{kind}/mine'\n    plugin_name = 'a plugin of a test'\n"
        + textwrap.indent(textwrap.dedent(methods), "    ")
        + "\n\n"
    )


def timeline(*entries: str) -> str:
    """Return a timeline of entries, each without its braces."""
    return "timeline:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries)


def to_state(event: Event) -> str:
    """Return the state that a job or a node has come to."""
    return str(event.args["to"]) if event.args is not UNSET else ""


def text_of(event: Event) -> str:
    """Return the text of a report."""
    return str(event.args["error_msg"]) if event.args is not UNSET else ""


def said(ran: Ran) -> list[str]:
    """Return what the plugin has logged, in order."""
    return [each.args["text"] for each in ran.all("plugin_log") if each.args is not UNSET]
