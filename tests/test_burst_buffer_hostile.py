"""Burst buffers under scenarios that mean no good."""

from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.cluster import Ran
from tests.test_datawarp import SUBMIT, run, scenario


def test_a_run_ends_though_teardowns_fail_for_ever_at_different_moments() -> None:
    """A script that has failed ten times keeps no run alive, even where another always runs."""
    entries = [f"  - {{at: {at}s, as: alice, run: sbatch -n1 bb.sh}}\n" for at in range(9)]
    ran = run(
        scenario(
            "".join(entries),
            head="#DW jobdw capacity=1GiB\n",
            appliance="functions: {teardown: {runs: 4s, exit: 1}}",
        )
    )
    assert [ran.job(each)[0] for each in range(1, 10)] == ["COMPLETED"] * 9
    assert len(ran.all("dw_teardown", phase="exit", job=1)) >= 10
    assert ran.events[-1].time_us < 1000 * 1_000_000


def test_a_run_ends_though_teardowns_hang_for_ever() -> None:
    """OtherTimeout ends each, and the next one begins; a waiting timeline still has its turn."""
    ran = run(
        scenario(
            "  - {at: 1s, as: alice, run: sbatch bb.sh}\n"
            "  - {at: 2s, as: alice, run: sbatch bb.sh}\n"
            "  - {at: 300s, run: squeue}\n",
            head="#DW jobdw capacity=1GiB\n",
            appliance="functions: {teardown: {runs: forever}}",
            bb_conf="OtherTimeout: 20",
        )
    )
    assert ran.job(2)[0] == "COMPLETED"
    assert ran.events[-1].time_us < 1000 * 1_000_000


PLUGIN = """\
from simctl.plugin import BurstBufferPlugin, slurmctld, sleep, start


class Own(BurstBufferPlugin):
    plugin_type = "burst_buffer/own"
    plugin_name = "own"
    plugin_version = 100
"""

OWN = """\
plugins: ["./own.py:Own"]
slurm_conf: {BurstBufferType: burst_buffer/own, SchedulerType: sched/%s}
programs: {/for_ever: {runs: forever}}
timeline:
  - {at: 1s, as: alice, run: sbatch --wrap "sleep 5"}
  - {at: 1s, as: alice, run: sbatch -N2 --wrap "sleep 5"}
  - {at: 2s, as: alice, run: srun true}
"""


def own(folder: Path, methods: str, *, model: str = "guide", scheduler: str = "builtin") -> Ran:
    """Run two batch jobs and an srun with a burst buffer plugin that has these methods."""
    (folder / "own.py").write_text(PLUGIN + indent(dedent(methods), "    "), encoding="utf-8")
    return run(OWN % scheduler, model, folder=folder)


BOTH = pytest.mark.parametrize("model", ["guide", "modern"])


@BOTH
@pytest.mark.parametrize("scheduler", ["builtin", "backfill"])
@pytest.mark.parametrize(
    "line",
    [
        'job_ptr.state_desc = "talks"; job_ptr.state_desc = ""',
        'job_ptr.state_reason = "BurstBufferOperation"; job_ptr.state_reason = "None"',
        "job_ptr.begin_time = 0",
        "job_ptr.priority = job_ptr.priority + 1",
        "job_ptr.priority = job_ptr.priority - 1",
    ],
)
def test_a_job_starts_once_whatever_a_plugin_writes_into_its_record(
    tmp_path: Path, line: str, model: str, scheduler: str
) -> None:
    """A job on its way from the queue to its nodes gets no second place in the queue."""
    ran = own(
        tmp_path,
        f"""
        def say(self, job_ptr):
            {line}
            return 0

        def bb_p_job_validate2(self, job_ptr):
            return self.say(job_ptr)

        def bb_p_job_test_stage_in(self, job_ptr, test_only):
            return 1 + self.say(job_ptr)

        def bb_p_job_begin(self, job_ptr):
            return self.say(job_ptr)
        """,
        model=model,
        scheduler=scheduler,
    )
    assert [ran.job(each)[0] for each in (1, 2, 3)] == ["COMPLETED"] * 3
    assert len(ran.all("job_state", args_to="RUNNING", job=1)) == 1
    assert not ran.result.complaints


@BOTH
def test_a_job_that_test_stage_in_holds_does_not_start(tmp_path: Path, model: str) -> None:
    """Even if it answers that all is staged in."""
    ran = own(
        tmp_path,
        """
        def bb_p_job_test_stage_in(self, job_ptr, test_only):
            if not test_only and job_ptr.batch:
                job_ptr.priority = 0
            return 1
        """,
        model=model,
    )
    assert ran.job(1) == ("PENDING", "0:0", "JobHeldAdmin")
    assert ran.job(3)[0] == "COMPLETED"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("priority = -3", "priority of a job is a whole number from 0 to"),
        ("begin_time = 1 << 70", "begin_time of a job is a whole number from 0 to"),
        ("state_desc = 5", "state_desc of a job is a text, not int"),
    ],
)
def test_what_slurmctld_could_not_show_is_not_taken(tmp_path: Path, line: str, told: str) -> None:
    """The plugin's call fails with a text that says what would do."""
    ran = own(tmp_path, f"def bb_p_job_begin(self, job_ptr):\n    job_ptr.{line}\n")
    faults = " ".join(str(each) for each in ran.result.complaints)
    assert told in faults
    assert ran.job(1)[0] == "PENDING"


def test_a_thread_that_takes_the_lock_twice_is_told(tmp_path: Path) -> None:
    """It would wait for itself, and slurmctld with it; as it fails, slurmctld goes on."""
    ran = own(
        tmp_path,
        """
        def bb_p_load_state(self, init_config):
            if init_config:
                start(self.work, "worker")
            return 0

        async def work(self):
            async with slurmctld.locked():
                async with slurmctld.locked():
                    pass
        """,
    )
    assert "has the lock already" in str(ran.result.complaints)
    assert ran.job(2)[0] == "COMPLETED"


def test_a_thread_that_keeps_the_lock_for_ever_is_named_at_the_end(tmp_path: Path) -> None:
    """The run has stalled: slurmctld waits for it."""
    ran = own(
        tmp_path,
        """
        def bb_p_load_state(self, init_config):
            if init_config:
                start(self.work, "worker")
            return 0

        async def work(self):
            await sleep(0.5)
            async with slurmctld.locked():
                await slurmctld.run_script("/for_ever", name="for_ever")
        """,
    )
    assert any("plugin thread worker has" in line for line in ran.result.stalled)


def test_a_directive_of_a_megabyte_is_refused_in_a_message_that_can_be_read() -> None:
    """Of the line and of what is wrong with it the beginning is shown."""
    ran = run(scenario(SUBMIT, head=f"#DW jobdw capacity={'9' * 1_000_000}\n"))
    assert "line 2: #DW jobdw capacity=999" in ran.stderr()
    assert len(ran.stderr()) < 1500


def test_a_reservation_with_a_burst_buffer_is_there_after_a_restart() -> None:
    """Its TRES text is made anew."""
    ran = run(
        scenario(
            "  - {at: 1s, run: scontrol create reservation ReservationName=r starttime=now "
            "duration=60 users=alice nodes=n1 burstbuffer=datawarp:2G}\n"
            "  - {at: 5s, fault: {restart: slurmctld, for: 3s}}\n"
            "  - {at: 20s, run: scontrol show reservation}\n",
            conf=", AccountingStorageTRES: bb/datawarp",
        )
    )
    assert "bb/datawarp=2G" in ran.result.commands[-1].stdout
