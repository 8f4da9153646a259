"""Checkpoints at the command line: scontrol's words, options, input variables, what is shown."""

from pathlib import Path
from typing import Any

import pytest

from tests.checkpointing import FOUR_NODES, checkpointed, operations, said
from tests.cluster import run

JOB = "0s alice sbatch -N2 --wrap 'srun sleep 60'"


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("able 1", ("Yes\n", "", 0)),
        ("able 1.0", ("Yes\n", "", 0)),
        ("a 1", ("Yes\n", "", 0)),
        ("ABLE 1", ("Yes\n", "", 0)),
        ("create 1", ("", "", 0)),
        ("cr 1.0 MaxWait=3 ImageDir=/shared/x", ("", "", 0)),
        ("vacate 1.0 imagedir=/shared/x", ("", "", 0)),
        ("requeue 1 maxwait=3", ("", "", 0)),
        ("error 1", ("error(0): \n", "", 0)),
        ("disable 1", ("", "", 0)),
        ("enable 1", ("", "", 0)),
        ("complete 1.0", ("", "", 0)),
        ("able 9", ("", "scontrol_checkpoint error: Invalid job id specified\n", 1)),
        ("create 1.7", ("", "scontrol_checkpoint error: Invalid job id specified\n", 1)),
        ("restart 1", ("", "scontrol_checkpoint error: Job is not finished\n", 1)),
        ("restart 9", ("", "scontrol_checkpoint error: No such file or directory\n", 1)),
        (
            "restart 1.0 StickToNodes",
            (
                "",
                "scontrol_checkpoint error: Requested operation not supported on this system\n",
                1,
            ),
        ),
        ("able one", ("", "Invalid job step name\n", 0)),
        ("able 1_2", ("", "Invalid job step name\n", 0)),
        ("able \u0661", ("", "Invalid job step name\n", 0)),
        ("sleep 1", ("", "Invalid checkpoint operation: sleep\n", 0)),
        ("able", ("", "too few arguments for keyword:checkpoint\n", 1)),
        ("create 1 a b c", ("", "too many arguments for keyword:checkpoint\n", 1)),
        (
            "create 1 StickToNodes",
            (
                "",
                "scontrol: error: Invalid input: StickToNodes\nscontrol: error: Request aborted\n",
                1,
            ),
        ),
        (
            "restart 1 MaxWait=3",
            (
                "",
                "scontrol: error: Invalid input: MaxWait=3\nscontrol: error: Request aborted\n",
                1,
            ),
        ),
    ],
)
@pytest.mark.parametrize("model", ["guide", "modern"])
def test_scontrol_prints_and_exits_as_slurms_does(
    tmp_path: Path, words: str, printed: tuple[str, str, int], model: str
) -> None:
    """The same in both models: scontrol looks at errno, not at what a function returned."""
    ran = checkpointed(tmp_path, JOB, f"5s alice scontrol checkpoint {words}", model=model)
    assert said(ran) == printed


def test_able_tells_when_it_began_and_that_it_is_disabled(tmp_path: Path) -> None:
    """No is an answer, and no error."""
    ran = checkpointed(
        tmp_path,
        JOB,
        "5s alice scontrol checkpoint create 1",
        "6s alice scontrol checkpoint able 1",
        "10s alice scontrol checkpoint disable 1",
        "11s alice scontrol checkpoint able 1",
        "12s alice scontrol checkpoint create 1",
    )
    assert said(ran, 2) == ("Began at 2026-01-01T00:00:05\n", "", 0)
    assert said(ran, 4) == ("No\n", "", 0)
    assert said(ran, 5)[1:] == (
        "scontrol_checkpoint error: Requested operation is presently disabled\n",
        1,
    )
    assert ran.result.commands[5].errno == "ESLURM_DISABLED"


def test_how_the_last_one_went_is_told(tmp_path: Path) -> None:
    """With the error's number and its text."""
    ran = checkpointed(
        tmp_path,
        JOB,
        "5s alice scontrol checkpoint complete 1.0",
        "6s alice scontrol checkpoint error 1.0",
    )
    assert said(ran) == ("error(1): test error message 1\n", "", 0)


def test_ten_seconds_are_waited_for_unless_told(tmp_path: Path) -> None:
    """MaxWait takes sixteen bits of a number, and nothing for 0."""
    ran = checkpointed(
        tmp_path,
        JOB,
        "5s alice scontrol checkpoint create 1",
        "10s alice scontrol checkpoint create 1 MaxWait=65537",
        "15s alice scontrol checkpoint create 1 MaxWait=soon",
        "20s alice scontrol checkpoint create 1 MaxWait=\u0663",
    )
    assert [data for _, _, data, _ in operations(ran)] == [10, 1, 0, 0]


def test_quiet_scontrol_says_nothing_of_a_refusal(tmp_path: Path) -> None:
    """And exits with 1 all the same."""
    ran = checkpointed(tmp_path, JOB, "5s alice scontrol -Q checkpoint able 9")
    assert said(ran) == ("", "", 1)


# Options and input variables.


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("srun -N1 ./show", "/shared/ckpt"),
        ("srun -N1 --checkpoint-dir=/shared/x ./show", "/shared/x"),
        ("srun -N1 --checkpoint-dir=sub -D /home/alice/dir ./show", "/home/alice/dir/sub"),
        ("sbatch -N1 --wrap ./show", "/shared/ckpt"),
        ("sbatch -N1 --checkpoint-dir=/shared/x --wrap ./show", "/shared/x"),
        ("sbatch -N1 by_variable.sh", "/shared/v"),
    ],
)
def test_tasks_are_told_where_images_go(tmp_path: Path, line: str, told: str) -> None:
    """The option, else the input variable, else JobCheckpointDir; a script as well as tasks."""
    more = (
        "files:\n"
        "  /home/alice/show: |\n    #!/bin/sh\n    echo dir=$SLURM_CHECKPOINT_IMAGE_DIR\n"
        "  /home/alice/dir/show: |\n    #!/bin/sh\n    echo dir=$SLURM_CHECKPOINT_IMAGE_DIR\n"
        "  /home/alice/by_variable.sh: |\n"
        "    #!/bin/sh\n    export SLURM_CHECKPOINT_DIR=/shared/v\n    srun ./show\n"
    )
    ran = checkpointed(tmp_path, f"0s alice {line}", more=more)
    text = said(ran)[0] + str(ran.world.disk.read("/home/alice/slurm-1.out"))
    assert f"dir={told}\n" in text


def test_without_a_checkpoint_plugin_tasks_are_told_nothing() -> None:
    """As in the Slurm whose environment is taken otherwise."""
    ran = run(
        "files:\n"
        "  /home/alice/show: |\n    #!/bin/sh\n    echo dir=$SLURM_CHECKPOINT_IMAGE_DIR\n"
        'timeline:\n  - {at: 0s, as: alice, run: "srun -N1 --checkpoint-dir=/x ./show"}\n',
        cluster=FOUR_NODES,
    )
    assert said(ran)[0] == "dir=\n"


def test_a_step_is_launched_from_the_images_it_is_told(tmp_path: Path) -> None:
    """`--restart-dir` as it is given, else SLURM_RESTART_DIR; each node is told."""
    more = (
        "files:\n  /home/alice/go.sh: |\n"
        "    #!/bin/sh\n"
        "    srun -N2 --restart-dir=/shared/r true\n"
        "    export SLURM_RESTART_DIR=/shared/v\n"
        "    srun -N1 true\n"
    )
    ran = checkpointed(tmp_path, "0s alice sbatch -N2 go.sh", more=more)
    sent: list[Any] = [each.args for each in ran.all("REQUEST_LAUNCH_TASKS", phase="send")]
    assert [each.get("restart_dir") for each in sent] == ["/shared/r", "/shared/r", "/shared/v"]


def test_the_interval_of_sbatch_may_stand_in_the_script_or_a_variable(tmp_path: Path) -> None:
    """#SBATCH --checkpoint, and SBATCH_CHECKPOINT_DIR from the environment."""
    more = (
        "files:\n  /home/alice/go.sh: |\n"
        "    #!/bin/sh\n    #SBATCH --checkpoint=1 --checkpoint-dir=/shared/x\n    sleep 100\n"
    )
    ran = checkpointed(tmp_path, "1s alice sbatch -N1 go.sh", more=more)
    assert operations(ran) == [(3, "1.batch", 0, "/shared/x/1")]


@pytest.mark.parametrize("command", ["sbatch --wrap true", "salloc true", "srun true"])
def test_an_interval_that_is_none_is_refused(tmp_path: Path, command: str) -> None:
    """Like any other option that does not parse."""
    name, _, rest = command.partition(" ")
    ran = checkpointed(tmp_path, f"0s alice {name} --checkpoint=often {rest}")
    assert said(ran) == ("", f"{name}: error: Invalid --checkpoint specification\n", 255)


@pytest.mark.parametrize("name", ["sbatch", "salloc"])
def test_only_srun_restarts_tasks(tmp_path: Path, name: str) -> None:
    """A batch job is restarted by scontrol."""
    ran = checkpointed(tmp_path, f"0s alice {name} --restart-dir=/shared/x true")
    assert f"{name}: unrecognized option '--restart-dir" in said(ran)[1]


# What is shown.


def test_steps_show_their_interval_and_directory(tmp_path: Path) -> None:
    """With a checkpoint plugin alone."""
    ran = checkpointed(
        tmp_path,
        "0s alice srun -N1 --checkpoint=5 --checkpoint-dir=/shared/x sleep 20",
        "5s alice scontrol show step 1.0",
    )
    assert "\n   ResvPorts=(null) Checkpoint=5 CheckpointDir=/shared/x\n" in said(ran)[0]


def test_the_configuration_shows_both_keys(tmp_path: Path) -> None:
    """Where there is a checkpoint plugin: the Slurm whose output this is has none any more."""
    ran = checkpointed(tmp_path, "1s alice scontrol show config")
    lines = [" ".join(line.split()) for line in said(ran)[0].splitlines()]
    assert "CheckpointType = checkpoint/trial" in lines
    assert "JobCheckpointDir = /shared/ckpt" in lines
    plain = run(
        "timeline:\n  - {at: 1s, as: alice, run: scontrol show config}\n", cluster=FOUR_NODES
    )
    assert "Checkpoint" not in said(plain)[0]
