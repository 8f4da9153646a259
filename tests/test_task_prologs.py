"""TaskProlog, TaskEpilog, and srun's own prolog and epilog."""

import pytest

from simctl.scenario.load import read_scenario
from simctl.wire.ids import SECOND
from tests.cluster import TWO_NODES, Ran, run, took
from tests.entries import typed

pytestmark = pytest.mark.parametrize("model", ["guide", "modern"])

FILES = """\
files:
  p.sh: |
    #!/bin/sh
    echo export COLOUR=blue
    echo unset SHAPE
    echo print task $SLURM_PROCID of $SLURM_JOB_ID
    echo this is dropped
  second.sh: |
    #!/bin/sh
    echo export BOTH=$COLOUR-$SLURM_SCRIPT_CONTEXT
  app.sh: |
    #!/bin/sh
    echo "$COLOUR:$BOTH:$SHAPE"
programs:
  /etc/quick: {runs: 1s}
  /etc/bad: {runs: 1s, exit: 3}
  /etc/slow: {runs: 20s}
"""


def srun(ran: Ran) -> tuple[int, str, str]:
    """Return the exit status of the last command, and what it wrote."""
    last = ran.result.commands[-1]
    return last.exit, last.stdout, last.stderr


def go(model: str, command: str, conf: str = "{}", more: str = "", schedule: str = "fifo") -> Ran:
    """Run one command as alice, once the nodes have registered whatever the schedule."""
    text = (
        f"slurm_conf: {conf}\n{FILES}timeline:\n{more}  - {{at: 1s, as: alice, run: '{command}'}}\n"
    )
    return run(text, model=model, schedule=schedule)


# Task prologs.


@pytest.mark.parametrize("schedule", ["fifo", "random"])
def test_a_task_prolog_edits_the_environment_of_its_task(model: str, schedule: str) -> None:
    """slurm.conf's runs before the user's, after job_attach and before the program, as the user."""
    ran = go(
        model,
        "srun -n2 --task-prolog=second.sh ./app.sh",
        "{TaskProlog: p.sh}",
        schedule=schedule,
    )
    status, out, err = srun(ran)
    assert (status, err) == (0, "")
    assert sorted(out.splitlines()) == [
        "blue:blue-prolog_task:",
        "blue:blue-prolog_task:",
        "task 0 of 1",
        "task 1 of 1",
    ]
    for rank in (0, 1):
        scripts = ran.all("task_prolog", task=rank)
        assert [event.args["path"] for event in scripts] == ["p.sh", "second.sh"]  # type: ignore[index]
        assert {(event.uid, event.step) for event in scripts} == {(1001, "1.0")}
        attach = ran.one("switch_p_job_attach", task=rank)
        program = ran.one("exec", task=rank, role="task", args_path="./app.sh")
        assert attach.seq < scripts[0].seq < scripts[1].seq < program.seq


def test_a_task_epilog_finds_what_the_task_prolog_has_set(model: str) -> None:
    """Whether the task ran a script or a program; it knows as well which task it was."""
    files = FILES.replace(
        "programs:", "  e.sh: |\n    #!/bin/sh\n    echo $COLOUR $SLURM_PROCID >> log\nprograms:"
    )
    for command in ("sleep 1", "./app.sh"):
        ran = run(
            f"slurm_conf: {{TaskProlog: p.sh, TaskEpilog: e.sh}}\n{files}"
            f"timeline: [{{at: 0s, as: alice, run: srun -n2 {command}}}]\n",
            model=model,
        )
        assert ran.world.disk.read("/home/alice/log") == "blue 0\nblue 1\n"


def test_a_batch_script_has_a_task_prolog_too(model: str) -> None:
    """It is task 0 of step 1.batch."""
    ran = typed(
        "0s alice sbatch app.sh", head="slurm_conf: {TaskProlog: p.sh}\n" + FILES, model=model
    )
    prolog = ran.one("task_prolog")
    assert (prolog.step, prolog.task) == ("1.batch", 0)
    assert ran.world.disk.read("/home/alice/slurm-1.out") == "task 0 of 1\nblue::\n"


@pytest.mark.parametrize(
    ("option", "conf", "label"),
    [
        ("", "{TaskProlog: /etc/bad}", "TaskProlog"),
        ("--task-prolog=/etc/bad", "{}", "--task-prolog"),
    ],
)
def test_a_task_whose_prolog_fails_ends(model: str, option: str, conf: str, label: str) -> None:
    """Its program never runs; the task exits as its prolog has."""
    ran = go(model, f"srun {option} ./app.sh", conf)
    status, out, err = srun(ran)
    assert (status, out) == (3, "")
    assert err == (
        f"slurmstepd-n1: error: {label} failed status=768\n"
        "srun: error: n1: task 0: Exited with exit code 3\n"
    )
    assert ran.all("exec", role="task") == []
    assert ran.job() == ("FAILED", "3:0", "NonZeroExitCode")


def test_a_task_killed_in_its_prolog_takes_the_prolog_along(model: str) -> None:
    """Both are in the task's process group."""
    ran = go(
        model,
        "srun ./app.sh",
        "{TaskProlog: /etc/slow}",
        "  - {at: 2s, as: alice, run: scancel 1}\n",
    )
    prolog = ran.one("task_prolog")
    assert prolog.rc == 15
    assert prolog.time_us < 2_100_000
    assert ran.job()[0] == "CANCELLED"
    assert len(ran.all("switch_p_job_postfini")) == 1


# Task epilogs.


def test_task_epilogs_run_after_the_task_and_before_its_exit_is_told(model: str) -> None:
    """The user's first, then slurm.conf's, both as the user."""
    ran = go(model, "srun -N2 --task-epilog=/etc/quick sleep 1", "{TaskEpilog: /etc/bad}")
    assert srun(ran)[0] == 0
    for rank, node in ((0, "n1"), (1, "n2")):
        scripts = ran.all("task_epilog", task=rank)
        paths = [event.args["path"] for event in scripts]  # type: ignore[index]
        assert paths == ["/etc/quick", "/etc/bad"]
        assert {(event.uid, event.node) for event in scripts} == {(1001, node)}
        ended = ran.one("exit", role="task", task=rank)
        told = ran.one("MESSAGE_TASK_EXIT", phase="send", node=node)
        assert ended.seq < scripts[0].seq < scripts[1].seq < told.seq
        assert scripts[1].seq < ran.one("switch_p_job_fini", node=node).seq
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_the_users_task_epilog_has_five_seconds(model: str) -> None:
    """slurm.conf's may take as long as it likes."""
    ran = go(model, "srun --task-epilog=/etc/slow sleep 1", "{TaskEpilog: /etc/slow}")
    limited, unlimited = ran.all("task_epilog")
    assert (limited.rc, took(limited)) == (9, 5_000_000)
    assert (unlimited.rc, took(unlimited)) == (0, 20_000_000)


def test_other_tasks_are_served_while_a_task_epilog_runs(model: str) -> None:
    """A signal reaches the task that still runs at once."""
    ran = typed(
        "0s alice srun -n2 ./two.sh",
        "5s alice scancel -s KILL 1.0",
        head=(
            "slurm_conf: {TaskEpilog: /etc/slow}\n"
            "files:\n"
            "  two.sh: |\n"
            "    #!/bin/sh\n"
            '    if [ "$SLURM_PROCID" = 1 ]; then exit 0; fi\n'
            "    sleep 60\n"
            "programs: {/etc/slow: {runs: 20s}}\n"
        ),
        model=model,
    )
    killed = ran.all("exit", role="task", task=0, rc=9)
    assert {event.time_us // 100_000 for event in killed} == {50}
    assert len(ran.all("task_epilog")) == 2


# srun's own.


def test_srun_runs_its_own_scripts_around_the_step(model: str) -> None:
    """On the host where it is, as its user; `none` asks for none of slurm.conf's."""
    ran = go(model, "srun --prolog=/etc/quick sleep 1", "{SrunEpilog: /etc/bad}")
    prolog, epilog = ran.one("srun_prolog"), ran.one("srun_epilog")
    assert (prolog.uid, prolog.node, prolog.daemon, prolog.step) == (1001, "login", "srun", "1.0")
    created = ran.one("RESPONSE_JOB_STEP_CREATE", phase="receive")
    assert created.seq < prolog.seq < ran.one("REQUEST_LAUNCH_TASKS", phase="send").seq
    assert epilog.seq > ran.one("REQUEST_COMPLETE_JOB_ALLOCATION", phase="send").seq
    assert srun(ran)[0] == 0
    assert ran.job() == ("COMPLETED", "0:0", "None")
    without = go(model, "srun --epilog=none sleep 1", "{SrunEpilog: /etc/bad}")
    assert without.all("srun_epilog") == []


def test_a_step_is_not_launched_when_the_prolog_of_srun_fails(model: str) -> None:
    """Srun reports the step over, so that nothing waits for it."""
    ran = go(model, "srun -N2 --prolog=/etc/bad sleep 1")
    assert srun(ran) == (1, "", "srun: error: srun prolog failed. Aborting step.\n")
    assert ran.all("REQUEST_LAUNCH_TASKS") == []
    assert len(ran.all("switch_p_job_step_complete")) == 1
    assert ran.job() == ("FAILED", "1:0", "NonZeroExitCode")


@pytest.mark.parametrize("path", ["/etc/slow", "slow.sh"])
def test_a_script_of_srun_does_not_outlive_srun(path: str, model: str) -> None:
    """What kills srun in a batch job kills all that the script has started."""
    ran = typed(
        "0s alice sbatch --wrap 'srun true'",
        "5s root scontrol suspend 1",
        "9s alice scancel 1",
        head=f"slurm_conf: {{SrunProlog: {path}}}\n"
        + FILES.replace("files:\n", "files:\n  slow.sh: |\n    #!/bin/sh\n    sleep 60\n"),
        model=model,
    )
    prolog = ran.one("srun_prolog")
    assert (prolog.rc, prolog.time_us // SECOND) == (9, 9)
    assert all(not host.processes for host in ran.world.hosts.values())
    assert ran.job() == ("CANCELLED", "0:9", "None")


# The scenario.


def test_check_warns_of_scripts_that_nobody_described(model: str) -> None:
    """Those of slurm.conf and those of srun; a file of the scenario is one, wherever it lies."""
    scenario = read_scenario(
        TWO_NODES
        + f"model: {model}\n"
        + "slurm_conf: {Prolog: /etc/none, Epilog: /root/p.sh, TaskProlog: /etc/quick}\n"
        + FILES
        + "timeline: [{at: 0s, as: alice, run: srun --task-epilog=./other sleep 1}]\n",
        file="s.yaml",
    )
    assert [warning.message.split(":")[0] for warning in scenario.warnings] == [
        "nobody described '/etc/none'",
        "nobody described './other'",
    ]


def test_a_script_that_is_not_there_fails(model: str) -> None:
    """As one that cannot be run: 127."""
    ran = typed("0s alice srun sleep 1", head="slurm_conf: {Epilog: /etc/none}\n", model=model)
    assert ran.one("epilog").rc == 127 << 8
    assert ran.drained() == ["n1", "n1"]


def test_the_sites_task_epilog_has_no_limit(model: str) -> None:
    """Five seconds are the limit of a user's own, which srun names."""
    lines = "slurm_conf: {TaskEpilog: /etc/slow}\nprograms: {/etc/slow: {runs: 8s}}\n"
    entries = (
        "timeline:\n"
        "  - {at: 0s, as: alice, run: srun -n1 true}\n"
        "  - {at: 60s, as: alice, run: sacct -n -P -o elapsed -j 1.0}\n"
    )
    ran = run(lines + entries, cluster=TWO_NODES, model=model)
    assert ran.result.commands[1].stdout == "00:00:08\n"
