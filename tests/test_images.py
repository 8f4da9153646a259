"""Checkpoint images: what is saved, what that costs, and what may go on from it."""

from typing import Any

import pytest

from simctl.stepd.image_file import IMAGE_VERSION, Image, ProgramState, ScriptState, decode
from tests.cluster import TWO_NODES, Ran, run

CONF = (
    'plugins: ["tests.savers:Saver"]\n'
    "slurm_conf: {CheckpointType: checkpoint/saver, JobCheckpointDir: /shared/ckpt,"
    " MinJobAge: 2}\n"
)
APP = 'programs: {./app: {runs: 600s, image: 1GiB, output: "done\\n"}}\n'


def saved(*lines: str, more: str = APP, model: str = "guide", **options: Any) -> Ran:
    """Run lines of a timeline, ``MOMENT USER COMMAND``."""
    entries = (line.split(" ", 2) for line in lines)
    text = "".join(f"  - {{at: {at}, as: {user}, run: {what!r}}}\n" for at, user, what in entries)
    return run(CONF + more + "timeline:\n" + text, cluster=TWO_NODES, model=model, **options)


def output(ran: Ran, job_id: int = 1) -> str:
    """Return what a job's script and its programs wrote."""
    text = ran.world.disk.read(f"/home/alice/slurm-{job_id}.out") or ""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("slurmstepd"))


def problems(ran: Ran) -> list[str]:
    """Return what went wrong where images were written."""
    found = (event.args for event in ran.all("plugin_log", daemon="slurmstepd"))
    return [args["text"].strip() for args in found]  # type: ignore[index]


def ends(ran: Ran) -> dict[int, float]:
    """Return when jobs ended, in seconds."""
    return {row.job_id: row.end_us / 1_000_000 for row in ran.result.rows}


def image(**fields: Any) -> str:
    """Return the file of an image with 5 seconds to go, of task 0 of step 1.0 unless it says."""
    state = ProgramState(argv=("./app",), left_us=5_000_000, output="late\n", size=1 << 20)
    whose = {"job": 1, "step": "1.0", "uid": 1001, "program": "./app", "size": 1 << 20}
    return Image(**{**whose, "state": state, **fields}).encode().decode()


# What goes on.


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_batch_job_that_was_vacated_does_what_is_left_of_its_work(model: str) -> None:
    """400 of 600 seconds are left, wherever its script stood; what it wrote stays."""
    ran = saved(
        "0s alice sbatch --open-mode=append --wrap 'echo one; ./app; echo two'",
        "200s alice scontrol checkpoint vacate 1",
        "300s alice scontrol checkpoint restart 1",
        model=model,
    )
    assert output(ran) == "one\ndone\ntwo\n"
    assert ran.job() == ("COMPLETED", "0:0", "None")
    # Two images of a second and the way of the messages, besides the 400 seconds.
    assert ends(ran)[1] == pytest.approx(300 + 400 + 1, abs=4)
    entered = [e for e in ran.events if e.name == "slurm_ckpt_restart_task"]
    assert [(e.phase, e.role, e.uid) for e in entered] == [("enter", "task", 1001)]


def test_a_step_goes_on_from_the_images_of_an_earlier_one() -> None:
    """``srun --restart-dir`` restarts each task from its own image, after its attach."""
    script = "srun -n2 -N2 ./app; srun -n2 -N2 --restart-dir=/shared/ckpt/1.0 ./app"
    ran = saved(
        f"0s alice sbatch -N2 --wrap '{script}'",
        "100s alice scontrol checkpoint create 1.0",
        "200s alice scancel 1.0",
    )
    assert output(ran).count("done\n") == 2
    assert ends(ran)[1] == pytest.approx(200 + 500 + 1, abs=5)
    for task in (0, 1):
        attached = ran.one("switch_p_job_attach", step="1.1", task=task)
        restarted = next(
            e for e in ran.events if e.name == "slurm_ckpt_restart_task" and e.task == task
        )
        assert attached.seq < restarted.seq


def test_a_task_goes_on_after_its_image_where_it_stood() -> None:
    """It stands still for a second, and ends a second later."""
    ran = saved("0s alice srun ./app", "100s alice scontrol checkpoint create 1.0")
    assert ran.one("exit", daemon="task").time_us == pytest.approx(601_000_000, abs=10_000)


def test_images_under_way_share_the_bandwidth() -> None:
    """Two nodes write at a time: each takes twice as long."""
    ran = saved(
        "0s alice srun -N2 ./app",
        "100s alice scontrol checkpoint create 1.0",
        more=APP + "checkpoint: {bandwidth: 512MiB}\n",
    )
    times = [event.time_us for event in ran.all("exit", daemon="task")]
    assert times == pytest.approx([604_000_000, 604_000_000], abs=10_000)


def test_a_stopped_program_stays_stopped() -> None:
    """Its image knows that it waits for SIGCONT, and which signals it has yet to take."""
    step = "srun --restart-dir=/shared/ckpt/1.0 ./app"
    ran = saved(
        f"0s alice sbatch --wrap 'srun ./app; {step}'",
        "10s alice scancel -s STOP 1.0",
        "20s alice scontrol checkpoint create 1.0",
        "30s alice scancel -s KILL 1.0",
        "100s alice scancel -s CONT 1.1",
    )
    assert output(ran).endswith("done\n")
    assert ends(ran)[1] == pytest.approx(100 + 590, abs=3)


def test_what_reached_a_stopped_program_acts_when_its_image_is_continued() -> None:
    """A signal that it has yet to take is part of its image."""
    step = "srun --restart-dir=/shared/ckpt/1.0 ./app"
    ran = saved(
        f"0s alice sbatch --wrap 'srun ./app; {step}'",
        "10s alice scancel -s STOP 1.0",
        "15s alice scancel -s USR1 1.0",
        "20s alice scontrol checkpoint create 1.0",
        "30s alice scancel -s KILL 1.0",
        "100s alice scancel -s CONT 1.1",
        more="programs: {./app: {runs: 600s, image: 1GiB, on_signal: {USR1: 7}}}\n",
    )
    assert ran.job() == ("FAILED", "7:0", "NonZeroExitCode")
    assert ends(ran)[1] == pytest.approx(100, abs=3)


def test_signals_reach_a_task_once_its_image_is_written() -> None:
    """It takes them when it goes on; SIGKILL ends it at once, and the image with it."""
    app = "programs: {./app: {runs: 600s, image: 10GiB, on_signal: {USR1: 7}}}\n"
    for signal, moment, there in (("USR1", 110, True), ("KILL", 105, False)):
        ran = saved(
            "0s alice srun ./app",
            "100s alice scontrol checkpoint create 1.0",
            f"105s alice scancel -s {signal} 1.0",
            more=app,
        )
        exited = ran.one("exit", daemon="task")
        assert exited.time_us == pytest.approx(moment * 1_000_000, abs=10_000)
        assert (ran.world.disk.read("/shared/ckpt/1.0/task.0.ckpt") is not None) is there


def test_an_image_that_could_not_be_finished_leaves_the_older_one() -> None:
    """An image takes its name when it is whole."""
    ran = saved(
        "0s alice sbatch --wrap 'srun ./app; srun --restart-dir=/shared/ckpt/1.0 ./app'",
        "100s alice scontrol checkpoint create 1.0",
        "200s alice scontrol checkpoint create 1.0",
        "200.5s alice scancel -s KILL 1.0",
    )
    assert problems(ran)[-1].endswith("it has ended")
    assert ends(ran)[1] == pytest.approx(200.5 + 500 + 1, abs=3)
    assert not [name for name in ran.world.disk.names("n1", "/shared/ckpt/1.0") if "tmp" in name]


# What stands in the way of an image.


def test_images_do_not_take_more_space_than_there_is() -> None:
    """The one that is replaced does not count."""
    ran = saved(
        "0s alice srun -n2 ./app",
        "100s alice scontrol checkpoint create 1.0",
        "200s alice scontrol checkpoint create 1.0",
        more=APP + "checkpoint: {space: 1536MiB}\n",
    )
    where = "/shared/ckpt/1.0/task.1.ckpt"
    assert problems(ran) == [f"cr_checkpoint.sh: {where}: No space left on device"] * 2
    assert [event.args["errno"] for event in ran.all("plugin_log", daemon="slurmctld")] == [  # type: ignore[index]
        4027,
        4027,
    ]


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("/nowhere/at/all", "No such file or directory"),
        ("/etc", "Permission denied"),
    ],
)
def test_an_image_needs_a_directory_that_its_user_may_write(where: str, what: str) -> None:
    """The helper makes the last directory of the path as the user, and no other."""
    ran = saved("0s alice srun ./app", f"9s alice scontrol checkpoint create 1.0 ImageDir={where}")
    assert len(problems(ran)) == 1
    assert problems(ran)[0].endswith(what)
    assert ran.one("exit", daemon="task").time_us == pytest.approx(600_000_000, abs=10_000)


def test_a_helper_that_the_scenario_describes_is_what_runs() -> None:
    """So it can be made to fail, or to take its time."""
    helper = '  /usr/sbin/cr_checkpoint.sh: {runs: 5s, exit: 3, output: "no"}\n'
    ran = saved(
        "0s alice srun ./app",
        "9s alice scontrol checkpoint create 1.0",
        more="programs:\n  ./app: {runs: 60s}\n" + helper,
    )
    script = ran.one("cr_checkpoint.sh", kind="script")
    assert (script.rc, script.uid, script.time_us // 1_000_000) == (3 << 8, 1001, 14)
    assert len(problems(ran)) == 1


def test_a_script_that_lies_at_the_helpers_path_is_what_runs() -> None:
    """A site may have its own; here it only tells what it is given."""
    more = APP + "files:\n  /usr/sbin/cr_checkpoint.sh: |\n    #!/bin/sh\n    echo $2 >&2; exit 4\n"
    ran = saved("0s alice srun ./app", "9s alice scontrol checkpoint create 1.0", more=more)
    assert problems(ran) == ["/shared/ckpt/1.0/task.0.ckpt"]


@pytest.mark.parametrize("schedule", ["fifo", "random"])
@pytest.mark.parametrize("fault", ["crash: n1", "restart: slurmctld"])
def test_what_happens_in_the_middle_leaves_the_older_image(fault: str, schedule: str) -> None:
    """A node that dies leaves no half of an image; a slurmctld that restarts disturbs none."""
    text = (
        "  - {at: 0s, as: alice, run: sbatch -w n1 --wrap ./app}\n"
        "  - {at: 100s, as: alice, run: scontrol checkpoint create 1}\n"
        "  - {at: 200s, as: alice, run: scontrol checkpoint create 1}\n"
        f"  - {{at: 205s, fault: {{{fault}}}}}\n"
        "  - {at: 300s, as: alice, run: scancel 1}\n"
    )
    more = APP.replace("1GiB", "10GiB") + "timeline:\n" + text
    ran = run(CONF + more, cluster=TWO_NODES, schedule=schedule)
    saved_image = decode((ran.world.disk.read("/shared/ckpt/1/script.ckpt") or "").encode())
    assert isinstance(saved_image.state, ScriptState)
    program = saved_image.state.children[0].state
    assert isinstance(program, ProgramState)
    left_s = 500 if "crash" in fault else 410
    assert program.left_us == pytest.approx(left_s * 1_000_000, abs=4_000_000)


# What stands in the way of a restart.


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "this is no checkpoint image, or not the whole of one"),
        (image()[:200], "this is no checkpoint image, or not the whole of one"),
        (image(kind="other"), "this is no checkpoint image"),
        (
            image(version=IMAGE_VERSION + 1),
            "this is an image of version 3, and only version 2 can be restarted",
        ),
        (image(job=7), "this is an image of job 7, and the task is of job 1"),
        (image(uid=1002), "this is an image of uid 1002, and the task is of 1001"),
        (image(task=1), "this is an image of task 1, not of task 0"),
        (image(step="1.batch"), "this is an image of step 1.batch, and the task is of step 1.0"),
    ],
)
def test_an_image_that_does_not_fit_is_refused(text: str, problem: str) -> None:
    """The task says why, and exits with 1."""
    ran = saved(
        "0s alice srun --restart-dir=/shared/old ./app",
        more=APP + f"files: {{/shared/old/task.0.ckpt: {text!r}}}\n".replace("'", '"')
        if not text
        else APP + "files:\n  /shared/old/task.0.ckpt: |\n" + _indented(text),
    )
    assert f"cr_restart.sh: /shared/old/task.0.ckpt: {problem}\n" in ran.stderr()
    assert ran.job() == ("FAILED", "1:0", "NonZeroExitCode")


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def test_an_image_that_lies_there_is_as_good_as_any() -> None:
    """A scenario may bring one along: it has five seconds to go."""
    ran = saved(
        "0s alice srun --restart-dir=/shared/old ./app",
        more="files:\n  /shared/old/task.0.ckpt: |\n" + _indented(image()),
    )
    assert ran.result.commands[0].stdout == "late\n"
    assert ran.one("exit", daemon="task").time_us == pytest.approx(5_000_000, abs=10_000)


def test_a_task_without_an_image_exits_with_1() -> None:
    """cr_restart.sh says that there is no such file."""
    ran = saved("0s alice srun --restart-dir=/shared/old ./app")
    said = "cr_restart.sh: /shared/old/task.0.ckpt: No such file or directory\n"
    assert said in ran.stderr()
    assert ran.job() == ("FAILED", "1:0", "NonZeroExitCode")


def test_helpers_are_for_step_daemons_alone() -> None:
    """A script that runs one is told so."""
    ran = saved("0s alice sbatch --wrap 'cr_restart.sh /shared/x'")
    said = "cr_restart.sh: simctl runs it for checkpoint plugins in slurmstepd alone\n"
    assert output(ran) == said
    assert ran.job() == ("FAILED", "1:0", "NonZeroExitCode")


@pytest.mark.parametrize("schedule", ["fifo", "random"])
def test_a_script_is_saved_with_all_it_has_started(schedule: str) -> None:
    """Children in the background, redirections and the rest of the script are all in the image."""
    files = (
        "files:\n  job.sh: |\n    #!/bin/sh\n    ./app > app.log &\n    n=0\n"
        "    while [ $n -lt 8 ]; do n=$((n + 1)); echo turn $n; sleep 100; done\n"
        "    wait $!; echo $?; cat app.log\n"
    )
    ran = saved(
        "0s alice sbatch --open-mode=append job.sh",
        "250s alice scontrol checkpoint create 1",
        "350s alice scontrol checkpoint vacate 1",
        "500s alice scontrol checkpoint restart 1",
        more=APP + files,
        schedule=schedule,
    )
    turns = "".join(f"turn {n}\n" for n in range(1, 9))
    assert output(ran) == turns + "0\ndone\n"
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ends(ran)[1] == pytest.approx(500 + 450, abs=8)
