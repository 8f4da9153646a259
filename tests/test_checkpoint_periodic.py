"""Checkpoints every so often: when, of what, with what, and of what not."""

from pathlib import Path
from typing import Any

import pytest

from tests.checkpointing import FOUR_NODES, checkpointed
from tests.cluster import Ran, run


def made(ran: Ran) -> list[tuple[float, str]]:
    """Return the checkpoints that were made by themselves: seconds, and of which step."""
    return [(each.time_us / 1_000_000, str(each.step)) for each in ran.all("slurm_ckpt_op")]


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_batch_job_is_checkpointed_as_a_whole(tmp_path: Path, model: str) -> None:
    """CREATE without a time to wait, of the script alone: what its steps ask for does not count."""
    ran = checkpointed(
        tmp_path,
        "27s alice sbatch -N2 --checkpoint=1 --wrap 'srun --checkpoint=1 sleep 110'",
        model=model,
    )
    assert made(ran) == [(90.0, "1.batch")]
    given: Any = ran.one("slurm_ckpt_op").args
    assert (given["op"], given["data"], given["image_dir"]) == (3, 0, "/shared/ckpt/1")
    assert ran.world.disk.read("/shared/ckpt/1.ckpt") is not None


def test_each_step_of_another_job_has_its_own_interval(tmp_path: Path) -> None:
    """A batch job without an interval of its own, and a srun without a script."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 --wrap 'srun --checkpoint=2 --checkpoint-dir=/shared/a sleep 200'",
        "0s bob srun -N1 --checkpoint=1 sleep 100",
        "0s bob srun -N1 sleep 100",
    )
    assert made(ran) == [(90.0, "2.0"), (150.0, "1.0")]
    given: Any = ran.all("slurm_ckpt_op")[1].args
    assert given["image_dir"] == "/shared/a/1.0"


def test_the_next_is_an_interval_after_the_last(tmp_path: Path) -> None:
    """Counted from when it was asked for, not from when it was due."""
    ran = checkpointed(tmp_path, "31s alice sbatch -N1 --checkpoint=1 --wrap 'sleep 200'")
    assert [at for at, _ in made(ran)] == [120.0, 180.0]


def test_several_that_are_due_together_come_in_the_order_of_the_jobs(tmp_path: Path) -> None:
    """One look at all of them."""
    ran = checkpointed(
        tmp_path,
        "0s alice srun -N1 --checkpoint=1 sleep 100",
        "1s bob sbatch -N1 --checkpoint=1 --wrap 'sleep 100'",
        "2s bob srun -N1 --checkpoint=1 sleep 100",
    )
    assert made(ran) == [(90.0, "1.0"), (90.0, "2.batch"), (90.0, "3.0")]


def test_a_job_that_came_first_is_first_though_it_started_later(tmp_path: Path) -> None:
    """It was held."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -H -N1 --checkpoint=1 --wrap 'sleep 100'",
        "0s alice sbatch -N1 --checkpoint=1 --wrap 'sleep 100'",
        "5s alice scontrol release 1",
    )
    assert made(ran) == [(90.0, "1.batch"), (90.0, "2.batch")]


def test_what_is_suspended_is_checkpointed_once_it_goes_on(tmp_path: Path) -> None:
    """At the first look after that."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 --checkpoint=1 --wrap 'sleep 300'",
        "40s root scontrol suspend 1",
        "130s root scontrol resume 1",
        "200s alice scancel 1",
    )
    assert [at for at, _ in made(ran)] == [150.0]


def test_a_look_at_another_job_does_not_put_off_what_is_suspended(tmp_path: Path) -> None:
    """It is still due when it goes on, however many others were looked at meanwhile."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 --checkpoint=1 --wrap 'sleep 300'",
        "0s alice sbatch -N1 --checkpoint=1 --wrap 'sleep 300'",
        "40s root scontrol suspend 1",
        "100s root scontrol resume 1",
        "140s alice scancel 1 2",
    )
    assert made(ran) == [(90.0, "2.batch"), (120.0, "1.batch")]


def test_a_refusal_counts_as_a_checkpoint(tmp_path: Path) -> None:
    """The plugin is asked again an interval later, and nobody is told."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 --checkpoint=1 --wrap 'sleep 200'",
        "10s alice scontrol checkpoint disable 1",
        "110s alice scontrol checkpoint enable 1",
    )
    ops: list[Any] = [each.args for each in ran.all("slurm_ckpt_op")]
    assert [each["op"] for each in ops] == [1, 3, 2, 3]
    assert [each.errno for each in ran.all("slurm_ckpt_op")][1] == "ESLURM_DISABLED"
    assert ran.job()[0] == "COMPLETED"


def test_nothing_is_due_of_a_job_that_is_over(tmp_path: Path) -> None:
    """It keeps no run alive: the end is that of the purge."""
    ran = checkpointed(tmp_path, "0s alice sbatch -N1 --checkpoint=60 --wrap 'sleep 10'")
    assert made(ran) == []
    assert ran.result.end_time_us < 60_000_000


def test_with_checkpoint_none_nothing_is_made() -> None:
    """The plugin is not even asked."""
    ran = run(
        "timeline:\n"
        "  - {at: 0s, as: alice, run: \"sbatch -N1 --checkpoint=1 --wrap 'sleep 200'\"}\n",
        cluster=FOUR_NODES,
    )
    assert made(ran) == []


@pytest.mark.parametrize("word", ["1", "1:00", "00:01:00", "0-00:01"])
def test_an_interval_is_written_as_a_time_limit(tmp_path: Path, word: str) -> None:
    """Minutes, or any other way."""
    ran = checkpointed(tmp_path, f"1s alice sbatch -N1 --checkpoint={word} --wrap 'sleep 100'")
    assert [at for at, _ in made(ran)] == [90.0]


def test_an_interval_goes_on_over_a_restart_of_slurmctld(tmp_path: Path) -> None:
    """What is due while it is away is made when limits are looked at first after that."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 --checkpoint=1 --wrap 'sleep 200'",
        "80s fault {restart: slurmctld, for: 20s}",
    )
    assert made(ran) == [(120.0, "1.batch"), (180.0, "1.batch")]


def test_a_step_that_is_over_is_forgotten(tmp_path: Path) -> None:
    """Its job goes on, and nothing is looked at for the step any more."""
    ran = checkpointed(
        tmp_path, "0s alice sbatch -N1 --wrap 'srun --checkpoint=1 sleep 20; sleep 200'"
    )
    assert made(ran) == []
    assert not ran.world.ctld.periodic


def test_an_op_that_takes_time_puts_off_none_after_it(tmp_path: Path) -> None:
    """Intervals are counted from where one begins, and so does the ordering."""
    ran = checkpointed(
        tmp_path,
        "0s fault {hang: slurm_ckpt_op, for: 10ms}",
        "31s alice sbatch -N1 --checkpoint=1 --wrap 'sleep 200'",
    )
    assert [at for at, _ in made(ran)] == [120.01, 180.0]
    assert ran.result.orderings.broken == ()
