"""libslurm's checkpoint functions: what they return, and what they tell besides."""

from pathlib import Path

import pytest

from simctl.wire.errno import SLURM_COMMUNICATIONS_CONNECTION_ERROR
from tests.checkpointing import answers, ask, checkpointed, operations
from tests.cluster import Ran

MODELS = pytest.mark.parametrize("model", ["guide", "modern"])
JOB = "0s alice sbatch -N2 -w n[1-2] --wrap 'srun sleep 60'"
BEGUN_S = 1767225605
"""What clocks show five seconds after the start."""


def results(ran: Ran) -> list[str]:
    """Return what each function returned."""
    return [result for _, result, _ in answers(ran)]


@MODELS
def test_an_error_is_minus_one_or_its_number(tmp_path: Path, model: str) -> None:
    """The manual page has -1 and errno; real Slurm returns the number, and sets errno to it."""
    calls = ("able/9", "disable/9", "enable/9", "create/9", "vacate/9", "error/9", "restart/9")
    ran = checkpointed(
        tmp_path, JOB, f"5s alice {ask(*calls, 'requeue/9')}", model=model, young=False
    )
    guide = model == "guide"
    codes = [2017] * 6 + [2, 2017]
    shown = ["-1" if guide else str(code) for code in codes]
    shown[0], shown[5] = f"({shown[0]}, 0)", f"({shown[5]}, 0, '')"
    assert results(ran) == shown
    assert [code for _, _, code in answers(ran)] == codes


@MODELS
def test_a_report_that_is_refused_is_minus_one_in_both_models(tmp_path: Path, model: str) -> None:
    """Both set errno, and return -1 in real Slurm as well."""
    calls = ("complete/9/0/0", "task_complete/9/0/0/0", "complete/1/0/0", "task_complete/1/0/0/0")
    ran = checkpointed(tmp_path, JOB, f"5s alice {ask(*calls)}", model=model)
    assert [each[1:] for each in answers(ran)] == [("-1", 2017), ("-1", 2017), ("0", 0), ("0", 0)]


def test_able_tells_when_the_checkpoint_began_that_is_under_way(tmp_path: Path) -> None:
    """0 where there is none, and again once it is made."""
    ran = checkpointed(
        tmp_path,
        JOB,
        f"5s alice {ask('able/1/0', 'create/1/0', 'able/1/0', 'able/1')}",
        f"20s alice {ask('able/1/0')}",
    )
    assert results(ran) == ["(0, 0)", "0", f"(0, {BEGUN_S})", "(0, 0)", "(0, 0)"]


def test_one_checkpoint_at_a_time(tmp_path: Path) -> None:
    """Whoever asks for another of the same thing is told; of the script and a step each may be."""
    calls = ("create/1/0", "create/1/0", "vacate/1/0", "create/1", "requeue/1")
    ran = checkpointed(tmp_path, JOB, f"5s alice {ask(*calls)}", model="modern")
    assert results(ran) == ["0", "114", "114", "0", "114"]


@MODELS
def test_what_is_disabled_twice_has_to_be_enabled_twice(tmp_path: Path, model: str) -> None:
    """The step counts for itself, and the script for itself."""
    calls = (
        *("disable/1", "disable/1", "enable/1", "able/1", "create/1", "vacate/1", "requeue/1"),
        *("able/1/0", "enable/1", "able/1"),
    )
    ran = checkpointed(tmp_path, JOB, f"5s alice {ask(*calls)}", model=model)
    assert [code for _, _, code in answers(ran)] == [0, 0, 0, 2037, 2037, 2037, 2037, 0, 0, 0]


def test_the_highest_error_code_is_kept_until_the_next_checkpoint(tmp_path: Path) -> None:
    """Reports of lower ones change nothing; a new checkpoint begins with none."""
    ran = checkpointed(
        tmp_path,
        JOB,
        f"5s alice {ask('complete/1/0/0/3/c', 'complete/1/0/0/7/g', 'complete/1/0/0/5/e')}",
        f"8s alice {ask('error/1/0', 'create/1/0', 'error/1/0')}",
    )
    assert results(ran)[3:] == ["(0, 7, 'g')", "0", "(0, 0, '')"]


def test_max_wait_and_directory_reach_the_plugin(tmp_path: Path) -> None:
    """max_wait of what makes an image alone; of the rest the plugin is given 0 and no directory."""
    calls = ("create/1/4294967294/7/|shared|x", "error/1", "vacate/1/0/9/|shared|y")
    ran = checkpointed(tmp_path, JOB, f"5s alice {ask(*calls)}")
    assert operations(ran) == [
        (3, "1.batch", 7, "/shared/x/1"),
        (6, "1.batch", 0, "/1"),
        (4, "1.0", 9, "/shared/y/1.0"),
    ]


def test_create_returns_long_before_the_checkpoint_is_made(tmp_path: Path) -> None:
    """The plugin takes three seconds; whoever asked goes on at once."""
    ran = checkpointed(tmp_path, JOB, f"5s alice {ask('vacate/1')}")
    asked = ran.all("plugin_log", daemon="task")[0]
    signalled = ran.all("REQUEST_SIGNAL_TASKS", phase="send", daemon="slurmctld")[0]
    assert asked.time_us < 5_100_000
    assert 8_000_000 <= signalled.time_us < 8_100_000


@MODELS
def test_a_slurmctld_that_is_away_is_an_error_of_its_own(tmp_path: Path, model: str) -> None:
    """-1 in both models, with the errno of the connection."""
    ran = checkpointed(
        tmp_path,
        "0s alice salloc -N1 -w n3 sleep 60",
        "0s alice srun --jobid=1 -N1 -n1 sleep 20",
        "2s fault {restart: slurmctld, for: 20s}",
        "5s alice scontrol checkpoint able 1",
        model=model,
    )
    assert "Unable to contact slurm controller" in ran.stderr(-1)
    assert ran.result.commands[-1].exit == 1


def test_tasks_asks_the_nodes_themselves(tmp_path: Path) -> None:
    """They are asked without slurmctld; one that is down contributes why it cannot be asked."""
    ran = checkpointed(
        tmp_path,
        JOB,
        "2s fault {crash: n2}",
        f"5s alice {ask('tasks/1/0/77/|shared|x/3/n2')}",
        model="modern",
    )
    assert not ran.all("REQUEST_CHECKPOINT")
    assert answers(ran)[-1][1:] == (
        str(SLURM_COMMUNICATIONS_CONNECTION_ERROR),
        SLURM_COMMUNICATIONS_CONNECTION_ERROR,
    )


def test_a_plugin_in_slurmctld_may_ask_from_a_thread(tmp_path: Path) -> None:
    """Inside its own function it would wait for itself."""
    ran = checkpointed(tmp_path, JOB, f"5s alice {ask('able/1/0')}")
    assert not ran.result.complaints
