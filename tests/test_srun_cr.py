"""srun_cr: forwards signals, mirrors srun, has its step saved first, and runs srun again."""

import pytest

from tests.checkpoints import CLUSTER, JOB, checkpoint, checkpointed, images, output, unmet
from tests.cluster import run

MODELS = pytest.mark.parametrize("model", ["guide", "modern"])


@pytest.mark.parametrize(
    ("program", "status"), [("true", "0"), ("false", "1"), ("sh -c 'exit 7'", "7"), ("./no", "2")]
)
def test_ends_as_srun_has_ended(program: str, status: str) -> None:
    """A script cannot tell the two apart."""
    ran = checkpointed(job=JOB.replace("./app\n    echo", f"{program}\n    echo"))
    assert output(ran) == ["begun", f"left with {status}"]


def test_takes_the_options_of_srun() -> None:
    """They are handed on as they are."""
    ran = checkpointed(job=JOB.replace("srun_cr ./app", "srun_cr -N1 -n1 --label echo hello"))
    assert output(ran) == ["begun", "0: hello", "left with 0"]


def test_runs_outside_of_jobs() -> None:
    """Typed by a user it gets nodes as srun does."""
    ran = run(
        "timeline: [{at: 1s, as: alice, run: srun_cr -N2 -n2 hostname, exit: 0}]\n", cluster=CLUSTER
    )
    assert sorted(ran.result.commands[0].stdout.split()) == ["n1", "n2"]


def test_passes_signals_on() -> None:
    """A signal that the script sends it reaches srun, which ends its step."""
    script = JOB.replace(
        "    srun_cr ./app\n", "    srun_cr ./app &\n    sleep 20\n    kill -TERM $!\n    wait $!\n"
    )
    ran = checkpointed(job=script)
    assert [event.args["signal"] for event in ran.all("signal", daemon="srun")] == [15]  # type: ignore[index]
    # What kills the step is the status of srun, and so of srun_cr.
    assert output(ran) == ["begun", "left with 137"]


def test_learns_of_the_step_once_all_its_tasks_run() -> None:
    """Srun connects to the socket that its environment names."""
    ran = checkpointed()
    told = ran.one("SRUN_CR_CONNECT", phase="receive")
    assert (told.daemon, told.step) == ("srun_cr", "1.0")
    assert told.args["node_list"] == "n[1-2]"  # type: ignore[index]
    launched = ran.all("RESPONSE_LAUNCH_TASKS", phase="receive")
    assert len(launched) == 2
    assert told.seq > max(event.seq for event in launched)


def test_a_plain_srun_tells_nobody() -> None:
    """There is no socket in its environment."""
    assert not checkpointed(job=JOB.replace("srun_cr", "srun")).all("SRUN_CR_CONNECT")


def test_is_left_out_of_ld_preload_like_srun() -> None:
    """Srun is not to be saved, its tasks are."""
    job = JOB.replace("./app\n    echo", "sh -c 'echo $LD_PRELOAD'\n    echo")
    assert output(checkpointed(job=job))[1:3] == ["libcr_run.so", "libcr_run.so"]


@MODELS
def test_has_the_tasks_saved_before_the_script(model: str) -> None:
    """Beside the script's image, in a directory that has the step's name."""
    ran = checkpointed(checkpoint("2m", "create 1"), model=model)
    assert images(ran) == [
        "/shared/ckpt/1/1.0/task.0.ckpt",
        "/shared/ckpt/1/1.0/task.1.ckpt",
        "/shared/ckpt/1/script.ckpt",
    ]
    tasks = ran.all("cr_checkpoint.sh", step="1.0")
    script = ran.one("cr_checkpoint.sh", step="1.batch")
    assert script.seq > max(event.seq for event in tasks)
    asked = ran.all("REQUEST_CHECKPOINT_TASKS", phase="send", daemon="srun_cr")
    assert {(event.uid, event.step) for event in asked} == {(1001, "1.0")}


@pytest.mark.parametrize(("lasts", "saved"), [("59s", True), ("60.1s", False)])
def test_waits_a_minute_for_the_tasks_to_be_saved(lasts: str, saved: bool) -> None:
    """Then it gives up, and with it the script."""
    hang = f"{{at: 0s, fault: {{hang: slurm_ckpt_signal_tasks step=1.0, for: {lasts}}}}}"
    ran = checkpointed(hang, checkpoint("2m", "create 1"))
    assert ("/shared/ckpt/1/script.ckpt" in images(ran)) is saved
    assert output(ran)[-1] == f"left with {0 if saved else 1}"


@MODELS
def test_before_its_step_runs_it_starts_over(model: str) -> None:
    """Without a launched step there is nothing to be saved but itself."""
    busy = JOB.replace(
        "srun_cr ./app", "srun --exact -n8 sleep 240 &\n    sleep 1\n    srun_cr --exact ./app"
    )
    ran = checkpointed(
        checkpoint("1m", "vacate 1"), checkpoint("3m", "restart 1"), job=busy, model=model
    )
    assert images(ran) == ["/shared/ckpt/1/script.ckpt"]
    assert output(ran) == ["begun", "done", "done", "left with 0"]


@MODELS
def test_steps_one_after_another_are_each_saved_while_they_run(model: str) -> None:
    """What is over is not run again, what comes after the checkpoint is run once."""
    three = JOB.replace(
        "    srun_cr ./app\n",
        "    srun_cr echo first\n    srun_cr ./app\n    srun_cr echo last\n",
    )
    ran = checkpointed(
        checkpoint("5m", "vacate 1"), checkpoint("6m", "restart 1"), job=three, model=model
    )
    assert output(ran) == ["begun", *["first"] * 2, *["done"] * 2, *["last"] * 2, "left with 0"]


@MODELS
def test_two_at_a_time(model: str) -> None:
    """Each has its own step saved, and goes on from that."""
    both = JOB.replace(
        "    srun_cr ./app\n",
        "    srun_cr -N1 -n1 -r0 ./app &\n    srun_cr -N1 -n1 -r1 ./app &\n    wait\n",
    )
    ran = checkpointed(
        checkpoint("5m", "vacate 1"), checkpoint("6m", "restart 1"), job=both, model=model
    )
    assert output(ran) == ["begun", "done", "done", "left with 0"]
    assert len(images(ran)) == 3


@MODELS
def test_again_and_again(model: str) -> None:
    """A restarted job can be checkpointed and vacated like any other; only what is left is run."""
    ran = checkpointed(
        checkpoint("3m", "vacate 1"),
        checkpoint("4m", "restart 1"),
        checkpoint("7m", "vacate 1"),
        checkpoint("8m", "restart 1"),
        model=model,
    )
    assert unmet(ran) == []
    assert output(ran) == ["begun", "done", "done", "left with 0"]
    row = ran.result.rows[0]
    # 179 of 600 seconds were done in the first life, and 180 in the second.
    assert 240 <= (row.end_us - row.start_us) // 1_000_000 <= 246
