"""REQUEST_CHECKPOINT_TASKS in slurmd and slurmstepd, restart_task, and `stepd` for plugins."""

from typing import Any

import pytest

from simctl.api import checkpoint
from simctl.kernel.procs import RunsAs
from simctl.plugin import OutsideCallError, stepd
from simctl.scenario.load import read_scenario
from simctl.wire.errno import (
    ESLURM_ALREADY_DONE,
    ESLURM_INVALID_JOB_ID,
    ESLURM_USER_ID_MISSING,
    ESLURMD_JOB_NOTRUNNING,
    ESLURMD_STEP_SUSPENDED,
)
from simctl.wire.ids import SLURM_BATCH_SCRIPT
from simctl.world import World
from tests.cluster import TWO_NODES, Ran, watched
from tests.inside import slurmctld

CONF = (
    'plugins: ["tests.savers:Curious"]\n'
    "slurm_conf: {CheckpointType: checkpoint/curious, JobCheckpointDir: /shared/ckpt}\n"
)
MODELS = pytest.mark.parametrize("model", ["guide", "modern"])

Ask = tuple[float, int, int, int, str, str]
"""When, as which uid, for which step of job 1, with which stamp and directory, of which nodes."""


def asked(
    *asks: Ask,
    lines: tuple[str, ...] = ("0s alice srun -N2 -n3 sleep 60",),
    more: str = "",
    model: str = "guide",
    schedule: str = "fifo",
) -> tuple[list[tuple[float, int]], Ran]:
    """Run lines of a timeline, and ask slurmds; return when they answered, and the errno."""
    text = TWO_NODES + CONF + more + "timeline:\n" + "".join(map(_entry, lines))
    world = World(read_scenario(text, file="s.yaml"), model=model, schedule=schedule)
    answers: list[tuple[float, int]] = []

    def begin(ask: Ask) -> None:
        at, uid, step_id, stamp, where, nodes = ask
        asker = world.site.procs.add(
            next(iter(world.hosts.values())),
            ppid=1,
            daemon="asker",
            role="command",
            uid=uid,
            runs_as=RunsAs.USER,
        )

        async def body() -> None:
            await world.kernel.sleep_us(round(at * 1_000_000))
            rc = await checkpoint.tasks(asker, 1, step_id, stamp, where, 60, nodes)
            answers.append((world.kernel.now_us / 1_000_000, asker.errno if rc else 0))

        asker.start(body)

    for ask in asks:
        world.background.append(lambda ask=ask: begin(ask))  # type: ignore[misc]
    return answers, watched(world)


def _entry(line: str) -> str:
    """Return an entry of a timeline: ``MOMENT USER COMMAND``, or ``MOMENT fault WHAT``."""
    at, user, what = line.split(" ", 2)
    if user == "fault":
        return f"  - {{at: {at}, fault: {what}}}\n"
    return f"  - {{at: {at}, as: {user}, run: {what!r}}}\n"


def logged(ran: Ran, text: str) -> list[dict[str, Any]]:
    """Return what the plugin logged under a name."""
    found: list[dict[str, Any]] = [event.args for event in ran.all("plugin_log")]  # type: ignore[misc]
    return [args for args in found if args["text"] == text]


# Requests.


@MODELS
@pytest.mark.parametrize("schedule", ["fifo", "random"])
def test_each_node_calls_the_plugin_once_as_root_while_tasks_run_on(
    model: str, schedule: str
) -> None:
    """In a thread of the step daemon's own, of which the tasks notice nothing."""
    answers, ran = asked((45, 1001, 0, 1000, "/10", "n[1-2]"), model=model, schedule=schedule)
    assert [code for _, code in answers] == [0]
    calls = ran.all("slurm_ckpt_signal_tasks")
    assert sorted((e.node, e.role, e.uid) for e in calls) == [
        ("n1", "manager", 0),
        ("n2", "manager", 0),
    ]
    exits = [event.time_us // 1_000_000 for event in ran.all("exit", daemon="task")]
    assert exits == [60, 60, 60]
    found = sorted(args["tasks"] for args in logged(ran, "signal_tasks"))
    assert found == ["[(0, 0, True), (1, 1, True)]", "[(2, 0, True)]"]


@pytest.mark.parametrize("uid", [0, 1001, 1002])
def test_root_slurm_user_and_the_owner_may_ask_a_slurmd(uid: int) -> None:
    """Nobody else: ESLURM_USER_ID_MISSING, and the plugin is not called."""
    answers, ran = asked((5, uid, 0, 1000, "/1", "n1"))
    assert [code for _, code in answers] == [ESLURM_USER_ID_MISSING if uid == 1002 else 0]
    assert len(ran.all("slurm_ckpt_signal_tasks")) == (uid != 1002)


def test_a_step_that_is_not_there_has_no_tasks_to_save() -> None:
    """ESLURM_INVALID_JOB_ID from a slurmd that runs nothing of it."""
    answers, _ = asked(
        (5, 0, 7, 1000, "/1", "n1"),
        (5, 0, SLURM_BATCH_SCRIPT, 1000, "/1", "n1"),
        (90, 0, 0, 1000, "/1", "n1"),
    )
    assert [code for _, code in answers] == [ESLURM_INVALID_JOB_ID] * 3


def test_a_second_request_of_the_same_second_has_been_served_already() -> None:
    """Even while the first is being served; one of another second waits for its turn."""
    answers, ran = asked(
        (5, 0, 0, 1000, "/10", "n1"),
        (6, 0, 0, 1000, "/10", "n1"),
        (7, 0, 0, 1001, "/10", "n1"),
        (8, 0, 0, 0, "/1", "n1"),
        (30, 0, 0, 0, "/1", "n1"),
    )
    assert [(round(at), code) for at, code in answers] == [
        (6, ESLURM_ALREADY_DONE),
        (15, 0),
        (25, 0),
        (26, 0),
        (31, 0),
    ]
    assert len(ran.all("slurm_ckpt_signal_tasks")) == 4


@MODELS
def test_the_plugins_failure_is_a_step_that_does_not_run(model: str) -> None:
    """ESLURMD_JOB_NOTRUNNING, whatever the plugin's own error was; the tasks are unharmed."""
    answers, ran = asked((5, 0, 0, 1000, "/fail", "n[1-2]"), model=model)
    assert [code for _, code in answers] == [ESLURMD_JOB_NOTRUNNING]
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_a_suspended_step_is_not_saved() -> None:
    """ESLURMD_STEP_SUSPENDED; once resumed it is."""
    answers, ran = asked(
        (10, 0, 0, 1000, "/1", "n1"),
        (30, 0, 0, 1001, "/1", "n1"),
        lines=(
            "0s alice srun sleep 60",
            "5s root scontrol suspend 1",
            "20s root scontrol resume 1",
        ),
    )
    assert [code for _, code in answers] == [ESLURMD_STEP_SUSPENDED, 0]
    assert len(ran.all("slurm_ckpt_signal_tasks")) == 1


def test_a_step_is_not_suspended_while_it_is_saved() -> None:
    """The request to suspend waits until the plugin is back."""
    _, ran = asked(
        (5, 0, 0, 1000, "/10", "n1"),
        lines=(
            "0s alice srun sleep 60",
            "8s root scontrol suspend 1",
            "50s root scontrol resume 1",
        ),
    )
    stopped = [e.time_us // 1_000_000 for e in ran.all("signal") if e.args["signal"] == 20]  # type: ignore[index]
    assert stopped == [15]


def test_a_step_that_ends_meanwhile_is_answered_for() -> None:
    """Whoever asked learns that it does not run, and need not wait for max_wait."""
    answers, ran = asked((5, 0, 0, 1000, "/200", "n1"), lines=("0s alice srun sleep 20",))
    assert [(round(at), code) for at, code in answers] == [(20, ESLURMD_JOB_NOTRUNNING)]
    assert ran.job() == ("COMPLETED", "0:0", "None")
    # With the process its threads end, and the call in one of them.
    over = ran.one("exit", role="manager")
    assert ran.all(pid=over.pid)[-1] == over


def test_a_step_without_tasks_yet_does_not_run() -> None:
    """ESLURMD_JOB_NOTRUNNING before anything is forked."""
    answers, ran = asked(
        (5, 0, 0, 1000, "/1", "n1"),
        lines=(
            "0s fault {hang: slurm_ckpt_stepd_prefork, for: 9s}",
            "0s alice srun sleep 20",
        ),
    )
    assert [code for _, code in answers] == [ESLURMD_JOB_NOTRUNNING]
    assert ran.all("slurm_ckpt_signal_tasks") == []


# Prefork.


@MODELS
def test_what_prefork_sets_in_the_environment_tasks_have(model: str) -> None:
    """Of srun's steps and of batch scripts alike; there are no tasks yet."""
    files = "files:\n  job.sh: |\n    #!/bin/sh\n    echo $LD_PRELOAD\n    srun ./say.sh\n"
    files += "  say.sh: |\n    #!/bin/sh\n    echo $LD_PRELOAD\n"
    _, ran = asked(lines=("0s alice sbatch job.sh",), more=files, model=model)
    text = ran.world.disk.read("/home/alice/slurm-1.out")
    assert text == "libcr_run.so\nlibcr_run.so\n"
    found = logged(ran, "prefork")
    assert [(args["tasks"], args["uid"], args["cwd"]) for args in found] == [
        (0, 1001, "/home/alice")
    ] * 2


def test_an_environment_that_is_none_fails_the_launch() -> None:
    """The plugin is told; nothing is forked."""
    _, ran = asked(lines=("0s alice srun --export=ALL,SPOIL=1 sleep 1",))
    assert ran.all("fork", daemon="task") == []
    assert any("LD_PRELOAD" in each.problem for each in ran.result.complaints)


# Scripts of plugins in step daemons.


@pytest.mark.parametrize(
    ("path", "uid", "result"),
    [
        ("/opt/say.sh", 1001, (0, False, "a b 1 /tmp")),
        ("/root/say.sh", 0, (0, False, "a b 1 /tmp")),
        ("/opt/slow", 1001, (9, True, "")),
        ("/opt/none", 1001, (127 << 8, False, "")),
    ],
)
def test_a_plugin_runs_scripts_in_the_step_daemon(
    path: str, uid: int, result: tuple[int, bool, str]
) -> None:
    """As the step's user unless it asks for root, in a child, with arguments and a limit."""
    more = (
        "programs: {/opt/slow: {runs: 60s}}\nfiles:\n"
        "  /opt/say.sh: |\n    #!/bin/sh\n    cd .; echo $1 $2 $ONE $PWD\n"
        "  /root/say.sh: |\n    #!/bin/sh\n    echo $1 $2 $ONE $PWD\n"
    )
    _, ran = asked((5, 0, 0, 1000, path, "n1"), more=more)
    ended = logged(ran, "ran")[0]
    assert (ended["status"], ended["timed_out"], ended["output"]) == result
    script = ran.one(path.rpartition("/")[2], kind="script")
    assert (script.uid, script.daemon, script.step) == (uid, "slurmstepd", "1.0")


def test_stepd_is_there_in_step_daemons_alone() -> None:
    """Elsewhere a plugin is told so."""
    with slurmctld(), pytest.raises(OutsideCallError, match="no process of a slurmstepd"):
        stepd.tasks()


# restart_task.


@MODELS
def test_restart_task_takes_the_place_of_the_program(model: str) -> None:
    """After attach, in the task, as the user; it never comes back and its line is its beginning."""
    _, ran = asked(
        lines=("0s alice srun -n2 --restart-dir=/opt/again.sh sleep 60",),
        more="files:\n  /opt/again.sh: |\n    #!/bin/sh\n    echo $GTID $1 $HOME; exit 3\n",
        model=model,
    )
    assert sorted(ran.result.commands[0].stdout.splitlines()) == ["0 x", "1 x"]
    calls = [event for event in ran.events if event.name == "slurm_ckpt_restart_task"]
    assert [(e.phase, e.role, e.uid) for e in calls] == [("enter", "task", 1001)] * 2
    attached = ran.last("switch_p_job_attach", task=1)
    assert attached < calls[1].seq
    executed = [e.args["path"] for e in ran.all("exec", daemon="task")]  # type: ignore[index]
    assert executed == ["/opt/again.sh"] * 2
    assert ran.job() == ("FAILED", "3:0", "NonZeroExitCode")


@MODELS
@pytest.mark.parametrize(
    ("where", "status", "text"),
    [
        ("/fail", 2036 & 255, "Requested operation is presently disabled"),
        ("/nowhere", 2, "No such file or directory"),
        ("/back", 1, "Unspecified error"),
    ],
)
def test_a_task_that_restart_task_comes_back_to_exits_with_the_errno(
    model: str, where: str, status: int, text: str
) -> None:
    """Or with 1 if there is none; its program does not run."""
    _, ran = asked(lines=(f"0s alice srun --restart-dir={where} sleep 60",), model=model)
    assert "slurmstepd-n1: error: Restart task failed: " in ran.stderr()
    assert where == "/fail" or text in ran.stderr()
    assert ran.all("exec", daemon="task") == []
    assert ran.job() == ("FAILED", f"{status}:0", "NonZeroExitCode")


@MODELS
def test_a_task_asks_the_switch_once_what_an_error_of_its_range_means(model: str) -> None:
    """Whichever plugin failed: in the task, as its user, when it has come back."""
    lines = (
        "0s fault {fail: slurm_ckpt_restart_task, errno: 3005}",
        "0s alice srun --restart-dir=/x sleep 60",
    )
    _, ran = asked(lines=lines, model=model)
    failed, told = ran.one("slurm_ckpt_restart_task"), ran.one("switch_p_strerror")
    assert (told.role, told.pid, told.uid, told.euid) == ("task", failed.pid, 1001, 1001)
    assert failed.seq < told.seq
    assert told.args == {"errnum": 3005}
    # switch/none has no words for it; then Slurm's own are taken.
    assert "Restart task failed: Unknown error 3005\n" in ran.stderr()


def test_a_task_can_be_killed_while_it_is_restarted() -> None:
    """It has no program yet, and dies of the signal."""
    _, ran = asked(
        lines=(
            "0s fault {hang: slurm_ckpt_restart_task, for: 60s}",
            "0s alice srun --restart-dir=/opt/x sleep 60",
            "9s alice scancel 1",
        ),
    )
    assert ran.one("exit", daemon="task").time_us // 1_000_000 == 9
