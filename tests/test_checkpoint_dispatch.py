"""What slurmctld refuses of checkpoint requests by itself, row by row, and what it hands on."""

from pathlib import Path
from typing import Any

import pytest

from simctl.ctld.checkpoints.checkpoints import Outcome, worst
from simctl.plugin import CheckpointStatus
from simctl.wire.errno import EALREADY, EINVAL, SLURM_ERROR
from tests.checkpointing import FOUR_NODES, answers, ask, checkpointed, operations, said
from tests.cluster import Ran
from tests.entries import typed

LINES = (
    "0s alice sbatch -N1 -w n1 --wrap 'srun sleep 400'",
    "0s alice sbatch -H -N1 --wrap 'sleep 400'",
    "0s alice sbatch -N1 -w n2 --wrap 'srun sleep 400'",
    "0s alice sbatch -N1 -w n3 --wrap 'srun true'",
    "1s alice sbatch -N1 -w n3 --wrap 'srun sleep 5'",
    "2s root scontrol suspend 3",
    "5s alice scontrol checkpoint create 5",
)
"""Jobs that run (1), wait (2), are suspended (3), are over (4), and are over with a checkpoint (5).

Each but the second has or had a step; the checkpoint of the fifth is the only operation so far.
"""

OPERATIONS = ("able", "disable", "enable", "create", "vacate", "error")
REPORTS = ("complete/{}/0/0/1/x", "task_complete/{}/0/0/0/1/x")

SITUATIONS: dict[int, tuple[int, int, int, int]] = {
    99: (2017, 2017, 2, 2017),
    2: (2024, 2024, 2088, 2024),
    3: (2077, 2037, 2088, 0),
    4: (2021, 2021, 2, 2021),
    5: (2021, 2021, 2011, 2021),
}
"""By job: what the batch script, step 0, a restart and a report are answered with."""

OTHERS = {
    "able/1": {"bob": 2002, "slurm": 0, "root": 0},
    "create/1": {"bob": 2002},
    "able/1/0": {"bob": 2002, "slurm": 2002, "root": 0},
    "restart/5": {"bob": 1, "slurm": 2011, "root": 2011},
    "complete/1/0/0/1/x": {"bob": 2002, "slurm": 2002, "root": 0},
    "task_complete/1/0/0/0/1/x": {"bob": 2002, "slurm": 2002, "root": 0},
}
"""What others than the owner are answered."""


def owner_calls() -> dict[str, int]:
    """Return what the owner asks, and the error it is answered with."""
    asked = {"able/1/77": 2017, "restart/1/0": 2036, "restart/99/0": 2036, "restart/1": 2088}
    for job, (script, step, restart, report) in SITUATIONS.items():
        asked |= {f"{op}/{job}": script for op in OPERATIONS}
        asked |= {f"{op}/{job}/0": step for op in OPERATIONS}
        asked |= {f"restart/{job}": restart}
        if job != 2:
            asked |= {each.format(job): report for each in REPORTS}
    return asked


@pytest.fixture(scope="module", params=["guide", "modern"])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Run everything that is asked, from the fourth node."""
    model: str = request.param
    lines = [*LINES, f"20s alice {ask(*owner_calls())}"]
    for at, user in enumerate(("bob", "slurm", "root")):
        calls = [call for call, codes in OTHERS.items() if user in codes]
        lines.append(f"{40 + 10 * at}s {user} {ask(*calls)}")
    lines.append("100s alice scancel 1 2 3")
    folder = tmp_path_factory.mktemp(model)
    return checkpointed(folder, *lines, model=model, young=False)


def found(ran: Ran, start: int = 0, end: int = 10**9) -> dict[str, int]:
    """Return the errno after each function that was called in a stretch of seconds."""
    return {
        event.args["text"]: event.args["errno"]  # type: ignore[index]
        for event in ran.all("plugin_log", daemon="task")
        if start <= event.time_us / 1_000_000 < end
    }


@pytest.mark.parametrize("job", sorted(SITUATIONS))
def test_the_owner_is_refused_by_what_the_job_is_like(ran: Ran, job: int) -> None:
    """Unknown, pending, suspended and over, for the script, a step, a restart and a report."""
    told = found(ran, 20, 40)
    wanted = {call: rc for call, rc in owner_calls().items() if call.split("/")[1] == str(job)}
    assert {call: told[call] for call in wanted} == wanted


def test_a_running_job_has_no_such_step_and_is_not_restarted(ran: Ran) -> None:
    """A step is refused for a restart before anything else is looked at."""
    told = found(ran, 20, 40)
    assert {call: told[call] for call in ("able/1/77", "restart/1/0", "restart/1")} == {
        "able/1/77": 2017,
        "restart/1/0": 2036,
        "restart/1": 2088,
    }


@pytest.mark.parametrize(("user", "at"), [("bob", 40), ("slurm", 50), ("root", 60)])
def test_who_does_not_own_the_job(ran: Ran, user: str, at: int) -> None:
    """Root may everything; SlurmUser what concerns a batch job, and no step."""
    wanted = {call: codes[user] for call, codes in OTHERS.items() if user in codes}
    assert found(ran, at, at + 10) == wanted


def test_what_is_refused_never_reaches_the_plugin(ran: Ran) -> None:
    """Only the checkpoint of job 5 and what root and SlurmUser may do; a report of job 3 does."""
    assert operations(ran) == [
        (3, "5.batch", 10, "/shared/ckpt/5"),
        (0, "1.batch", 0, "/1"),
        (0, "1.batch", 0, "/1"),
        (0, "1.0", 0, "/shared/ckpt/1.0"),
    ]
    assert [str(each.step) for each in ran.all("slurm_ckpt_comp")] == ["3.0", "1.0"]
    assert [str(each.step) for each in ran.all("slurm_ckpt_task_comp")] == ["3.0", "1.0"]


def test_a_purged_job_is_unknown_and_can_be_restarted(tmp_path: Path) -> None:
    """Its id is free once nobody can ask about it."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 -w n1 --wrap 'sleep 5'",
        "2s alice scontrol checkpoint create 1",
        f"30s alice {ask('able/1', 'restart/1', 'restart/1')}",
    )
    assert [code for _, _, code in answers(ran)] == [2017, 0, 2088]


ALL_STEPS = (
    "0s alice salloc -N2 -w n[1-2] sleep 60",
    "1s alice srun --jobid=1 -n1 -N1 sleep 50",
    "1s alice srun --jobid=1 -n1 -N1 --checkpoint-dir=/shared/mine sleep 50",
)


def test_of_a_job_without_script_all_steps_are_meant(tmp_path: Path) -> None:
    """One operation a step, with the step's own number and directory; none for no step."""
    ran = checkpointed(
        tmp_path,
        *ALL_STEPS,
        "5s alice scontrol checkpoint create 1 MaxWait=7",
        "15s alice scontrol checkpoint vacate 1 ImageDir=/shared/x",
        f"25s alice {ask('able/1')}",
    )
    assert operations(ran) == [
        (3, "1.0", 7, "/shared/ckpt/1.0"),
        (3, "1.1", 7, "/shared/mine/1.1"),
        (4, "1.0", 10, "/shared/x/1.0"),
        (4, "1.1", 10, "/shared/x/1.1"),
    ]
    ended = ran.all("REQUEST_SIGNAL_TASKS", phase="send", daemon="slurmctld")
    assert [str(each.step) for each in ended][:2] == ["1.0", "1.1"]
    assert answers(ran) == [("able/1", "(0, 0)", 0)]


def test_a_report_without_a_step_is_about_the_first(tmp_path: Path) -> None:
    """Real Slurm looks for a step of any number then; the batch script has no report."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 -w n1 --wrap 'srun sleep 30'",
        "1s alice sbatch -N1 -w n2 --wrap 'sleep 30'",
        f"5s alice {ask('complete/1/4294967294/0/5/bad', 'complete/2/4294967294/0/5/bad')}",
        f"7s alice {ask('error/1/0')}",
    )
    assert [code for _, _, code in answers(ran)] == [0, 2017, 0]
    assert answers(ran)[-1][1] == "(0, 5, 'bad')"
    assert str(ran.one("slurm_ckpt_comp").step) == "1.0"


def test_a_report_that_the_plugin_refuses_is_answered_with_its_errno(tmp_path: Path) -> None:
    """Of both kinds: who reported is told."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 -w n1 --wrap 'srun sleep 30'",
        "4s fault {fail: slurm_ckpt_comp, errno: 2036}",
        "4s fault {fail: slurm_ckpt_task_comp, errno: 2017}",
        f"5s alice {ask('complete/1/0/0/5/bad', 'task_complete/1/0/0/5/0/bad')}",
    )
    assert [code for _, _, code in answers(ran)] == [2036, 2017]


def test_the_plugin_sees_the_step_itself(tmp_path: Path) -> None:
    """step_ptr is the step for a step and None for a batch script."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 -w n1 --wrap 'srun sleep 30'",
        f"5s alice {ask('able/1', 'able/1/0')}",
    )
    pointers = [each.args["step_ptr"] for each in ran.all("slurm_ckpt_op")]  # type: ignore[index]
    assert pointers == [None, "step 1.0"]


def test_a_description_that_cannot_be_written_refuses_the_checkpoint(tmp_path: Path) -> None:
    """The plugin is not asked; what needs no description goes on."""
    ran = checkpointed(
        tmp_path,
        "0s alice sbatch -N1 -w n1 --wrap 'srun sleep 30'",
        f"5s alice {ask('create/1', 'able/1', 'create/1/0')}",
        more="files: {/shared/ckpt/1.ckpt/in.the.way: x}\n",
    )
    assert [code for _, _, code in answers(ran)] == [21, 0, 0]
    assert [op for op, _, _, _ in operations(ran)] == [0, 3]


def test_with_checkpoint_none_nothing_is_supported(tmp_path: Path) -> None:
    """The plugin says so; slurmctld's own checks come first, whoever asks."""
    ran = typed(
        "0s alice sbatch -N1 --wrap 'sleep 30'",
        "1s alice scontrol checkpoint able 1",
        "2s bob scontrol checkpoint able 1",
        "3s alice scontrol checkpoint able 1.0",
        "4s alice scontrol checkpoint create 1",
        cluster=FOUR_NODES,
    )
    assert [each.errno for each in ran.result.commands] == [
        "",
        "ESLURM_NOT_SUPPORTED",
        "ESLURM_ACCESS_DENIED",
        "ESLURM_INVALID_JOB_ID",
        "ESLURM_NOT_SUPPORTED",
    ]


def test_the_worst_of_several_steps_is_told() -> None:
    """The highest error number; the latest begin; the highest error code and its own text."""
    low = Outcome(0, CheckpointStatus(event_time=7, error_code=1, error_msg="low"))
    high = Outcome(0, CheckpointStatus(event_time=5, error_code=3, error_msg="high"))
    both = worst([low, high])
    assert both.rc == 0
    assert both.status == CheckpointStatus(event_time=7, error_code=3, error_msg="high")
    assert worst([Outcome(EINVAL), Outcome(EALREADY), low]).rc == EALREADY
    assert worst([Outcome(SLURM_ERROR), low]).rc == SLURM_ERROR
    assert worst([]) == Outcome(0)


def test_a_job_without_record_is_refused_and_nothing_is_released_for_it(tmp_path: Path) -> None:
    """The plugin is told to free a record that is none, as it is of every job that is dropped."""
    ran = checkpointed(
        tmp_path,
        '0s fault {fail: "slurm_ckpt_alloc_job"}',
        "1s alice sbatch -N1 --wrap 'sleep 5'",
    )
    assert said(ran)[2] == 1
    freed: Any = ran.one("slurm_ckpt_free_job", job=1).args
    assert freed["jobinfo"] is None
    assert not ran.result.rows
