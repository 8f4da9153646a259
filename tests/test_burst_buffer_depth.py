"""How many jobs a pass asks burst buffers about, and for how long they are asked."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.scenario.load import read_scenario
from simctl.world import World

SCENARIO = """
slurm_conf: {BurstBufferType: burst_buffer/patient, SchedulerType: sched/builtin%s}
nodes: [{name: n1, cpus: 4}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
plugins: ["./patient.py:Patient"]
files:
  job.sh: "#!/bin/bash\\nsrun true\\n"
  many.sh: "#!/bin/bash\\nfor i in 1 2 3 4 5 6; do sbatch job.sh; done\\n"
timeline:
  - {at: 0s, as: alice, run: %s}
"""

PATIENT = '''
from simctl.plugin import BurstBufferPlugin, now


class Patient(BurstBufferPlugin):
    """Says for two hours that staging is under way; it has no thread and starts no script."""

    plugin_type = "burst_buffer/patient"
    plugin_name = "takes two hours"

    def bb_p_job_validate(self, job_desc, submit_uid):
        job_desc.burst_buffer = "patience"

    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        return 1 if now() >= 7200 else 0
'''


def events(folder: Path, command: str, words: str = "") -> tuple[World, list[Event]]:
    """Run a scenario; return its world and its events."""
    (folder / "patient.py").write_text(PATIENT)
    text = SCENARIO % (words, command)
    world = World(read_scenario(text, file=str(folder / "s.yaml")))
    seen: list[Event] = []
    world.trace.add_sink(seen.append)
    result = world.run()
    assert not result.stalled
    assert {row.state for row in result.rows} == {"COMPLETED"}
    return world, seen


def test_a_plugin_that_says_it_is_at_work_is_asked_for_hours(tmp_path: Path) -> None:
    """Nothing else goes on: no thread, no script, no job."""
    _, seen = events(tmp_path, "sbatch job.sh")
    asked = [each for each in seen if each.name == "bb_p_job_test_stage_in"]
    assert [each.rc for each in asked[-2:]] == [0, 1]
    assert all(after.time_us - before.time_us <= 60_000_000 for before, after in pairwise(asked))


@pytest.mark.parametrize(
    ("words", "most"), [("", 7), (", SchedulerParameters: default_queue_depth=2", 2)]
)
def test_a_pass_between_full_ones_asks_about_so_many_jobs(
    tmp_path: Path, words: str, most: int
) -> None:
    """A full one, sched_interval after the last, asks about all that wait."""
    six = "sbatch job.sh}\n" + "  - {at: 0s, as: alice, run: sbatch job.sh}\n" * 5
    _, seen = events(tmp_path, six + "  - {at: 30s, as: alice, run: sbatch job.sh", words)
    asked: Counter[int] = Counter()
    for each in seen:
        if each.name == "bb_p_job_test_stage_in" and each.args is not UNSET:
            asked[each.time_us // 1_000_000] += each.args["test_only"] is False
    assert [asked[second] for second in (30, 60)] == [most, 7]


def test_a_plugin_that_never_makes_up_its_mind_ends_no_job_and_no_run(tmp_path: Path) -> None:
    """Answers that change to and fro are no progress: the asking ends, and the stall is told."""
    fickle = PATIENT.replace(
        "return 1 if now() >= 7200 else 0", "return -1 if test_only or now() % 120 < 60 else 0"
    )
    (tmp_path / "patient.py").write_text(fickle)
    text = SCENARIO % ("", "sbatch job.sh")
    text = text.replace("sched/builtin", "sched/backfill")
    world = World(read_scenario(text, file=str(tmp_path / "s.yaml")))
    result = world.run()
    assert [row.state for row in result.rows] == ["PENDING"]
    assert result.end_time_us < 3100 * 60_000_000


def test_an_agent_that_asks_for_passes_for_ever_keeps_no_run_alive(tmp_path: Path) -> None:
    """It takes the lock and has the queue looked at every 30 seconds, and changes nothing."""
    agent = PATIENT.replace("return 1 if now() >= 7200 else 0", "return -1").replace(
        "BurstBufferPlugin, now", "BurstBufferPlugin, sleep, slurmctld, start"
    )
    agent += """
    def bb_p_load_state(self, init_config):
        if init_config:
            start(self.agent)

    async def agent(self):
        while True:
            await sleep(30)
            async with slurmctld.locked():
                slurmctld.schedule()
"""
    (tmp_path / "patient.py").write_text(agent)
    text = SCENARIO % ("", "sbatch job.sh")
    world = World(read_scenario(text, file=str(tmp_path / "s.yaml")))
    result = world.run()
    assert [row.state for row in result.rows] == ["PENDING"]
    assert not result.stalled
