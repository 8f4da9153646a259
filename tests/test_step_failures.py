"""What follows when a call on a step's path fails: every row, in both models."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tests.cluster import BATCH, STEP, TWO_NODES, Ran, fault, pids, run, with_plugin

MODELS = ("guide", "modern")
SRUN = 'timeline: [{at: 1s, as: alice, run: "srun -N2 sleep 10"}]\n'
N2 = "node=n2"


def launch_rc(ran: Ran, node: str) -> list[int]:
    """Return the return codes of the launch responses of a node."""
    return [
        event.args["return_code"]  # type: ignore[index]
        for event in ran.all("RESPONSE_LAUNCH_TASKS", phase="send", node=node)
    ]


def job_functions(ran: Ran, node: str) -> list[str]:
    """Return the step daemon's calls on a node, without loading and credentials."""
    return [
        event.name.removeprefix("switch_p_").removeprefix("slurm_ckpt_")
        for event in ran.all(kind="plugin", node=node, step="1.0")
        if (
            event.role in ("manager", "session", "task")
            and not event.name.endswith(("jobinfo", "init", "fini", "get_errno"))
        )
        or (event.node == node and event.name.startswith("switch_p_job_"))
    ]


GOOD = ["job_preinit", "job_init", "stepd_prefork", "job_attach", "job_fini", "job_postfini"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("failing", "called", "rc", "text"),
    [
        ("switch_p_job_preinit", ["job_preinit"], 2022, "Error configuring interconnect"),
        (
            "switch_p_job_init",
            ["job_preinit", "job_init", "job_postfini"],
            2022,
            "Error configuring interconnect",
        ),
    ],
)
def test_a_launch_that_fails_on_one_node(
    model: str, failing: str, called: list[str], rc: int, text: str
) -> None:
    """Launch rc 2022; srun prints a line a task and exits 0; job COMPLETED, node not drained."""
    ran = run(fault(f"{failing} {N2}", SRUN), model=model)
    assert job_functions(ran, "n2") == called
    assert job_functions(ran, "n1") == GOOD
    assert launch_rc(ran, "n2") == [rc]
    assert launch_rc(ran, "n1") == [0]
    assert ran.stderr() == f"srun: error: task 1 launch failed: {text}\n"
    assert ran.result.commands[0].exit == 0
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.drained() == []
    assert ran.all("MESSAGE_TASK_EXIT", phase="send", node="n2") == []
    report = ran.one("REQUEST_STEP_COMPLETE", phase="send", node="n2")
    assert report.args["step_rc"] == 0  # type: ignore[index]
    assert len(ran.all("switch_p_job_step_complete")) == 1
    if failing == "switch_p_job_init":
        postfini = ran.one("switch_p_job_postfini", node="n2")
        assert postfini.seq < ran.one("RESPONSE_LAUNCH_TASKS", phase="send", node="n2").seq


@pytest.mark.parametrize("model", MODELS)
def test_failures_on_all_nodes_leave_the_job_completed(model: str) -> None:
    """Even then srun exits 0 and the job is COMPLETED 0:0."""
    ran = run(fault("switch_p_job_init", SRUN, times=2), model=model)
    assert ran.all("switch_p_job_attach") == []
    assert ran.result.commands[0].exit == 0
    assert ran.job() == ("COMPLETED", "0:0", "None")


@pytest.mark.parametrize("model", MODELS)
def test_prefork_failing_for_a_step(model: str) -> None:
    """Launch rc -1, "Unspecified error"; fini only in modern, postfini in both, no task."""
    ran = run(fault(f"slurm_ckpt_stepd_prefork step=1.0 {N2}", SRUN), model=model)
    fini = ["job_fini"] if model == "modern" else []
    assert job_functions(ran, "n2") == [
        *("job_preinit", "job_init", "stepd_prefork"),
        *fini,
        "job_postfini",
    ]
    assert launch_rc(ran, "n2") == [-1]
    assert ran.stderr() == "srun: error: task 1 launch failed: Unspecified error\n"
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.drained() == []


@pytest.mark.parametrize("model", MODELS)
def test_prefork_failing_for_a_batch_script(model: str) -> None:
    """The script never runs, the job is COMPLETED 0:0, and its node is drained."""
    ran = run(fault("slurm_ckpt_stepd_prefork", BATCH), model=model)
    assert ran.all("exec") == []
    report = ran.one("REQUEST_COMPLETE_BATCH_SCRIPT", phase="send").args
    assert report == {"job_rc": 0, "slurm_rc": -1, "node_name": "n1"}
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert set(ran.drained()) == {"n1"}
    reasons = {
        event.args["reason"]  # type: ignore[index]
        for event in ran.all("node_state")
        if "DRAIN" in event.args["to"]  # type: ignore[index]
    }
    assert reasons == {"batch job complete failure"}


@pytest.mark.parametrize("model", MODELS)
def test_attach_failing_for_one_task(model: str) -> None:
    """That task exits 1 and never executes; all others attach and run; fini and postfini follow."""
    ran = run(fault("switch_p_job_attach task=2"), model=model)
    assert len(ran.all("switch_p_job_attach")) == 4
    assert {event.task for event in ran.all("exec", role="task")} == {0, 1, 3}
    assert ran.one("exit", task=2).rc == 256
    for name in ("switch_p_job_fini", "switch_p_job_postfini"):
        assert [event.rc for event in ran.all(name)] == [0, 0]
    assert launch_rc(ran, "n2") == [0]
    assert ran.job() == ("FAILED", "1:0", "NonZeroExitCode")
    assert ran.result.commands[0].exit == 1
    assert "srun: error: n2: task 2: Exited with exit code 1" in ran.stderr()
    assert "slurmstepd-n2: error: Unable to attach to interconnect" in ran.stderr()
    assert ran.drained() == []


def test_fini_failing_in_guide_is_the_sessions_exit_1() -> None:
    """P2 exits 1, so P1 reports ESLURM_INTERCONNECT_FAILURE at its end; postfini runs."""
    ran = run(fault(f"switch_p_job_fini {N2}", SRUN))
    assert job_functions(ran, "n2") == GOOD
    assert launch_rc(ran, "n2") == [0, 2022]
    assert ran.one("exit", role="session", node="n2").rc == 256
    assert ran.one("exit", role="session", node="n1").rc == 0
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_fini_failing_in_modern_is_told_to_the_user_only() -> None:
    """Nothing but the failed call and a line of the step daemon shows."""
    ran = run(fault(f"switch_p_job_fini {N2}", SRUN), model="modern")
    assert job_functions(ran, "n2") == GOOD
    assert launch_rc(ran, "n2") == [0]
    assert ran.stderr() == "slurmstepd-n2: error: switch_g_job_fini: Unspecified error\n"
    assert ran.job() == ("COMPLETED", "0:0", "None")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "name", ["switch_p_job_postfini", "switch_p_job_step_complete", "slurm_ckpt_free_job"]
)
def test_failures_at_the_end_change_nothing(model: str, name: str) -> None:
    """Logged or ignored: the step and the job end as usual, every release is made."""
    ran = run(fault(f"{name} step=1.0", SRUN), model=model)
    assert ran.all(name, rc=-1)
    assert ran.job() == ("COMPLETED", "0:0", "None")
    tail = ["switch_p_job_step_complete", "switch_p_free_jobinfo", "slurm_ckpt_free_job"]
    assert ran.names(role="slurmctld", step="1.0")[-3 - (name == tail[0]) :][-2:] == tail[1:]
    assert ran.stderr() == ""


@pytest.mark.parametrize("model", MODELS)
def test_build_failing_refuses_the_step(model: str) -> None:
    """Complete, free, and an empty checkpoint record freed; srun exits 1, its job FAILED.

    The srun of 18.08 gives a bare 1 for the job's status, which is that of a signal.
    """
    ran = run(fault("switch_p_build_jobinfo", SRUN), model=model)
    names = [name for name in ran.names(role="slurmctld", step="1.0") if "errno" not in name]
    assert names == [
        "switch_p_alloc_jobinfo",
        "switch_p_build_jobinfo",
        "switch_p_job_step_complete",
        "switch_p_free_jobinfo",
        "slurm_ckpt_free_job",
    ]
    assert ran.all("REQUEST_LAUNCH_TASKS") == []
    assert (
        "srun: error: Unable to create step for job 1: Error configuring interconnect"
        in ran.stderr()
    )
    assert ran.result.commands[0].exit == 1
    assert ran.result.commands[0].errno == "ESLURM_INTERCONNECT_FAILURE"
    bare = ("0:1", "JobLaunchFailure")
    assert ran.job() == ("FAILED", *(bare if model == "modern" else ("1:0", "NonZeroExitCode")))


@pytest.mark.parametrize(
    ("act", "exit_code", "rc", "text"),
    [
        ("become_user", 2, 4016, None),
        ("setsid", 3, 4017, None),
        ("chdir", 4, 4100, None),
        ("setrlimit", 5, -1, "Unspecified error"),
        ("fork", 6, 4020, None),
    ],
)
def test_what_the_session_manager_cannot_do(
    act: str, exit_code: int, rc: int, text: str | None
) -> None:
    """Guide: each exit code of P2 has its launch rc; no fini, postfini once, and no task left."""
    ran = run(fault(f"{act} role=session {N2}", SRUN))
    assert ran.one("exit", role="session", node="n2").rc == exit_code << 8
    assert launch_rc(ran, "n2") == [rc]
    assert job_functions(ran, "n2") == ["job_preinit", "job_init", "stepd_prefork", "job_postfini"]
    assert job_functions(ran, "n1") == GOOD
    # It is root as long as it has not become the user, and the user from then on.
    ended_as = 0 if act == "become_user" else 1001
    assert ran.one("exit", role="session", node="n2").uid == ended_as
    assert len(ran.all("become_user", node="n2")) == (act != "become_user")
    if text:
        assert text in ran.stderr()
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_a_fork_that_fails_halfway_ends_the_tasks_there_are() -> None:
    """The second of two forks fails: the first task is killed and reaped, nothing else attaches."""
    text = 'timeline: [{at: 1s, as: alice, run: "srun -N1 -n2 sleep 10"}]\n'
    ran = run(fault("fork role=session", text, skip=1))
    assert [event.task for event in ran.all("switch_p_job_attach")] == [0]
    assert ran.one("exit", task=0).rc == 9
    assert launch_rc(ran, "n1") == [4020]
    reported = ran.one("MESSAGE_TASK_EXIT", phase="send").args
    assert reported == {"return_code": 9, "task_ids": (0,)}
    assert ran.all("switch_p_job_fini") == []
    assert len(ran.all("switch_p_job_postfini")) == 1


@pytest.mark.parametrize("act", ["fork", "become_user"])
def test_what_modern_cannot_fork_is_an_exec_failure(act: str) -> None:
    """ESLURMD_EXECVE_FAILED; fini and postfini run, for init succeeded."""
    ran = run(fault(f"{act} role=manager step=1.0 {N2}", SRUN), model="modern")
    assert launch_rc(ran, "n2") == [4020]
    called = ["job_preinit", "job_init", "stepd_prefork", "job_fini", "job_postfini"]
    assert job_functions(ran, "n2") == called


def test_modern_without_a_container_has_preinit_without_postfini() -> None:
    """The one corner where postfini does not follow preinit."""
    ran = run(fault(f"create_container step=1.0 {N2}", SRUN), model="modern")
    assert launch_rc(ran, "n2") == [4014]
    assert job_functions(ran, "n2") == ["job_preinit"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("plugin", ["switch/none", "checkpoint/none"])
def test_a_plugin_that_does_not_load_in_the_step_daemon(model: str, plugin: str) -> None:
    """Launch rc 1011, no switch job function, srun exits 0."""
    pattern = f"init role=manager args.plugin={plugin} step=1.0 {N2}"
    ran = run(fault(pattern, SRUN), model=model)
    assert launch_rc(ran, "n2") == [1011]
    assert job_functions(ran, "n2") == []
    assert ran.stderr() == "srun: error: task 1 launch failed: Plugin initialization failed\n"
    assert ran.job() == ("COMPLETED", "0:0", "None")


@pytest.mark.parametrize("model", MODELS)
def test_a_plugin_that_does_not_load_for_a_batch_script(model: str) -> None:
    """Slurm_rc 1011: the script never runs, the job is COMPLETED, the node drained."""
    ran = run(fault("init role=manager args.plugin=checkpoint/none", BATCH), model=model)
    report = ran.one("REQUEST_COMPLETE_BATCH_SCRIPT", phase="send").args
    assert report["slurm_rc"] == 1011  # type: ignore[index]
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert set(ran.drained()) == {"n1"}
    assert ran.all("slurm_ckpt_stepd_prefork") == []


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "pattern",
    [
        "init role=slurmctld args.plugin=checkpoint/none",
        "init role=slurmctld args.plugin=switch/none",
        "switch_p_libstate_restore",
    ],
)
def test_slurmctld_refuses_to_start(model: str, pattern: str) -> None:
    """Fatal: it makes no further call, and commands cannot reach it."""
    ran = run(fault(pattern, SRUN), model=model)
    assert ran.one("fatal").role == "slurmctld"
    assert ran.one("exit", role="slurmctld").rc == 256
    after = [e for e in ran.all(kind="plugin", role="slurmctld") if e.seq > ran.one("fatal").seq]
    assert after == []
    assert "Unable to contact slurm controller" in ran.stderr()
    assert ran.result.commands[0].exit == 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("pattern", ["init role=slurmd", "switch_p_node_init"])
def test_slurmd_exits_when_its_interconnect_cannot_be_set_up(model: str, pattern: str) -> None:
    """That node never registers, and takes no job; the others work."""
    text = 'timeline: [{at: 1s, as: alice, run: "srun -N1 sleep 1"}]\n'
    ran = run(fault(f"{pattern} node=n1", text), model=model)
    assert ran.one("exit", role="slurmd", node="n1").rc == 256
    assert ran.all("MESSAGE_NODE_REGISTRATION_STATUS", node="n1") == []
    assert ran.one("switch_p_job_attach").node == "n2"


def test_a_job_that_needs_a_node_which_never_came_up_stalls() -> None:
    """Nothing is left that could bring the node: the run says which node is missing."""
    ran = run(fault("switch_p_node_init node=n1", SRUN))
    assert any("job 1 is PENDING" in line for line in ran.result.stalled)
    assert any("n1 is UNKNOWN" in line for line in ran.result.stalled)


@pytest.mark.parametrize("model", MODELS)
def test_srun_gives_up_when_its_switch_plugin_does_not_load(model: str) -> None:
    """Fatal before it asks for anything."""
    ran = run(fault("init role=srun", SRUN), model=model)
    assert ran.stderr() == "srun: fatal: failed to initialize switch plugin\n"
    assert ran.all("REQUEST_RESOURCE_ALLOCATION") == []


@pytest.mark.parametrize("model", MODELS)
def test_alloc_job_failing_refuses_the_submission(model: str) -> None:
    """No job, "Unspecified error", and the record that was not made is freed."""
    ran = run(fault("slurm_ckpt_alloc_job", BATCH), model=model)
    assert ran.result.rows == ()
    assert ran.stderr() == "sbatch: error: Batch job submission failed: Unspecified error\n"
    names = [name for name in ran.names(role="slurmctld") if name.startswith("slurm_ckpt")]
    assert names == ["slurm_ckpt_alloc_job", "slurm_ckpt_free_job"]
    states: list[Any] = [event.args for event in ran.all("job_state")]
    assert [(each["from"], each["to"]) for each in states] == [
        (None, "PENDING"),
        ("PENDING", "FAILED"),
    ]
    assert ran.last("job_state") < ran.first("slurm_ckpt_free_job")


@pytest.mark.parametrize("pattern", ["switch_p_alloc_jobinfo", "slurm_ckpt_alloc_job step=1.0"])
def test_slurmctld_dies_when_a_step_cannot_be_allocated(pattern: str) -> None:
    """Fatal inside the request; srun waits for an answer that never comes, which is told."""
    ran = run(fault(f"{pattern} role=slurmctld", SRUN))
    assert ran.one("fatal").role == "slurmctld"
    assert ran.result.stalled


@pytest.mark.parametrize("model", MODELS)
def test_an_invalid_credential_is_refused_by_slurmd(model: str) -> None:
    """Unpack fails on n2: no step daemon there, srun cancels the step elsewhere and fails."""
    ran = run(fault(f"switch_p_unpack_jobinfo role=slurmd {N2}", SRUN), model=model)
    assert ran.all("fork", role="slurmd", node="n2") == []
    assert "srun: error: Task launch for StepId=1.0 failed on node n2" in ran.stderr()
    assert ran.result.commands[0].exit != 0
    assert ran.job()[0] == "FAILED"
    assert len(ran.all("switch_p_free_jobinfo", role="slurmd", node="n2")) == 1
    assert len(ran.all("switch_p_job_step_complete")) == 1


@pytest.mark.parametrize("model", MODELS)
def test_an_invalid_reply_is_refused_by_srun(model: str) -> None:
    """Unpack fails in srun: no launch, the credential is freed, the job ends."""
    ran = run(fault("switch_p_unpack_jobinfo role=srun", SRUN), model=model)
    assert ran.all("REQUEST_LAUNCH_TASKS") == []
    assert len(ran.all("switch_p_free_jobinfo", role="srun")) == 1
    assert ran.job()[0] == "FAILED"
    assert len(ran.all("switch_p_job_step_complete")) == 1


def test_a_copy_that_fails_sends_an_empty_credential() -> None:
    """Guide: the step goes on with an empty credential."""
    ran = run(fault("switch_p_copy_jobinfo", SRUN))
    assert ran.one("switch_p_copy_jobinfo").rc == -1
    assert ran.job() == ("COMPLETED", "0:0", "None")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["switch_p_unpack_node_info"])
def test_an_invalid_registration_is_dropped(model: str, name: str) -> None:
    """The node stays unknown; the message is told as invalid."""
    text = 'timeline: [{at: 1s, as: alice, run: "srun -N1 sleep 1"}]\n'
    ran = run(fault(name, text), model=model)
    assert ran.one("invalid_message").args["node"] == "n1"  # type: ignore[index]
    assert ran.one("switch_p_job_attach").node == "n2"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["switch_p_alloc_node_info", "switch_p_build_node_info"])
def test_a_node_registers_even_if_its_switch_state_cannot_be_told(model: str, name: str) -> None:
    """Logged; the message is sent all the same."""
    ran = run(fault(f"{name} role=slurmd node=n1", SRUN), model=model)
    assert len(ran.all("MESSAGE_NODE_REGISTRATION_STATUS", phase="receive")) == 2
    assert ran.job() == ("COMPLETED", "0:0", "None")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "name", ["switch_p_job_preinit", "switch_p_job_init", "switch_p_job_attach"]
)
def test_a_positive_result_is_success(model: str, name: str) -> None:
    """Callers test for less than zero."""
    ran = run(fault(name, SRUN, rc=5), model=model)
    assert ran.all(name, rc=5)
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert job_functions(ran, "n1") == GOOD


@pytest.mark.parametrize("model", MODELS)
def test_a_failed_switch_call_is_asked_for_its_errno_where_it_failed(model: str) -> None:
    """get_errno follows at once in the same process, and answers with the error's number."""
    ran = run(fault(f"switch_p_job_init {N2}", SRUN, errno="ESLURM_INTERCONNECT_BUSY"), model=model)
    failed = ran.one("switch_p_job_init", node="n2")
    asked = ran.one("switch_p_get_errno")
    assert (failed.rc, failed.errno) == (-1, "ESLURM_INTERCONNECT_BUSY")
    assert asked.seq == failed.seq + 1
    assert (asked.pid, asked.uid, asked.rc) == (failed.pid, failed.uid, 2079)


def test_strerror_describes_errors_of_the_switchs_own_range(tmp_path: Path) -> None:
    """3000 to 3099 are the plugin's: asked in the task that failed, its words reach the user."""

    def switch_p_job_attach(  # type: ignore[no-untyped-def]
        self, switch_job, env, nodeid, procid, nnodes, nprocs, rank
    ) -> None:
        raise SlurmError(3007, "no route")  # type: ignore[name-defined] # noqa: F821

    def switch_p_strerror(self, errnum) -> str:  # type: ignore[no-untyped-def]
        return f"switch error {errnum}"

    keys = with_plugin(tmp_path, switch_p_job_attach, switch_p_strerror)
    ran = run(keys + SRUN, folder=tmp_path)
    assert ran.all("switch_p_strerror", role="task", rc="switch error 3007")
    assert "Unable to attach to interconnect: switch error 3007" in ran.stderr()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "name",
    [
        "switch_p_job_preinit",
        "switch_p_job_init",
        "slurm_ckpt_stepd_prefork",
        "switch_p_job_attach",
        "switch_p_job_fini",
        "switch_p_job_postfini",
        "switch_p_build_jobinfo",
        "switch_p_job_step_complete",
    ],
)
def test_a_plugin_that_raises_is_told_and_fails_the_call(model: str, name: str) -> None:
    """As SLURM_ERROR, with what it raised in the trace; the cluster goes on and a next job runs."""
    text = SRUN.replace("[{", "[{at: 60s, as: bob, run: srun sleep 1, exit: 0}, {")
    ran = run(fault(f"{name} step=1.0", text, kind="raise"), model=model)
    assert ran.all(name, rc=-1)
    problem = ran.one("plugin_error")
    assert problem.args["function"] == name  # type: ignore[index]
    assert "InjectedError" in problem.args["problem"]  # type: ignore[index]
    assert ran.job(2) == ("COMPLETED", "0:0", "None")
    assert ran.result.held


def test_nonsense_from_a_plugin_is_an_error(tmp_path: Path) -> None:
    """A text where a number is expected fails the call, and the trace says what was returned."""

    def switch_p_job_init(self, switch_job, uid):  # type: ignore[no-untyped-def]
        return "fine"

    ran = run(with_plugin(tmp_path, switch_p_job_init) + SRUN, folder=tmp_path)
    assert launch_rc(ran, "n1") == [2022]
    problems = {event.args["problem"] for event in ran.all("plugin_error")}  # type: ignore[index]
    assert problems == {"returned 'fine'; expected SLURM_SUCCESS or SLURM_ERROR"}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(4))
def test_failures_hold_under_other_schedules(model: str, seed: int) -> None:
    """A failed attach and a failed preinit, with the turns of a moment in any order."""
    text = fault("switch_p_job_attach task=2", STEP)
    ran = run(text, model=model, schedule="random", seed=seed)
    assert ran.job() == ("FAILED", "1:0", "NonZeroExitCode")
    for node in ("n1", "n2"):
        manager = pids(ran.all("switch_p_job_preinit", node=node))
        assert pids(ran.all("switch_p_job_postfini", node=node)) == manager
        assert ran.last("switch_p_job_attach", node=node) < ran.first(
            "switch_p_job_fini", node=node
        )
    assert all(event.rc is not UNSET for event in ran.all("switch_p_job_attach"))


def test_modern_opens_a_scripts_output_as_its_user_and_is_root_again() -> None:
    """Where it cannot be opened nothing is forked: the report and the exit are root's."""
    ran = run(BATCH.replace("sbatch", "sbatch -o /no/where"), model="modern")
    assert ran.one("output_not_opened").euid == 1001
    report = ran.one("REQUEST_COMPLETE_BATCH_SCRIPT", phase="send")
    assert (report.uid, report.euid) == (0, 0)
    assert ran.one("exit", role="manager").euid == 0
    assert ran.all("exit", role="task") == []


@pytest.mark.parametrize(
    ("role", "told"),
    [
        ("slurmd", "Task launch for StepId=1.0 failed on node n2: Invalid job credential"),
        ("manager", "task 1 launch failed: Invalid job credential"),
        ("srun", "srun: fatal: switch_g_alloc_jobinfo failed"),
    ],
)
def test_a_credential_that_no_record_is_made_for_is_not_unpacked(role: str, told: str) -> None:
    """Whoever has none goes no further: a node launches nothing, srun ends."""
    where = "" if role == "srun" else N2
    ran = run(fault(f"switch_p_alloc_jobinfo role={role} {where}", SRUN))
    assert told in ran.stderr()
    failed = ran.one("switch_p_alloc_jobinfo", rc=-1)
    later = [event for event in ran.all(kind="plugin", pid=failed.pid) if event.seq > failed.seq]
    names = {event.name for event in later} - {"switch_p_node_fini", "fini"}
    assert names == {"switch_p_get_errno"}
    assert ran.all("switch_p_job_preinit", node="n2") == []
    assert len(ran.all("fork", role="slurmd", node="n2")) == (role == "manager")


def test_a_registration_that_no_record_is_made_for_is_dropped() -> None:
    """Slurmctld unpacks nothing of it, and says that the message is invalid."""
    ran = run(fault("switch_p_alloc_node_info role=slurmctld", SRUN, times=1))
    assert [event.args for event in ran.all("invalid_message")] == [
        {"rpc": "MESSAGE_NODE_REGISTRATION_STATUS", "node": "n1"}
    ]
    failed = ran.one("switch_p_alloc_node_info", rc=-1)
    calls = [
        each.name for each in ran.all(kind="plugin", role="slurmctld") if each.seq > failed.seq
    ]
    assert calls[:2] == ["switch_p_get_errno", "switch_p_alloc_node_info"]


def test_a_node_that_cannot_be_cleaned_does_not_register() -> None:
    """Its slurmd stops; the failure of a function that is called once is fatal."""
    lines = (
        "timeline:\n  - {at: 0s, fault: {fail: switch_p_clear_node_state}}\n"
        "  - {at: 5s, fault: {crash: n2}}\n  - {at: 9s, fault: {start: n2, clean: true}}\n"
        "  - {at: 9s, as: alice, run: sbatch -w n1 --wrap 'sleep 5'}\n"
    )
    ran = run(lines)
    failed = ran.one("switch_p_clear_node_state", node="n2")
    assert failed.rc == -1
    later = [event for event in ran.all(node="n2") if event.seq > failed.seq]
    assert "Unable to initialize interconnect." in str([event.args for event in later])
    assert not [event for event in later if event.name == "MESSAGE_NODE_REGISTRATION_STATUS"]


def test_a_node_that_no_record_is_made_for_registers_without_one() -> None:
    """Nothing is built, packed or released then; the node takes jobs all the same."""
    ran = run(fault(f"switch_p_alloc_node_info role=slurmd {N2}", SRUN))
    names = ran.names(role="slurmd", node="n2")
    assert "switch_p_alloc_node_info" in names
    assert not {f"switch_p_{each}_node_info" for each in ("build", "pack", "free")} & set(names)
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_the_worst_exit_code_of_a_tree_is_that_of_its_step() -> None:
    """Of the nodes that report through another, a later 0 does not take the place of a 1."""
    worst = "srun -N4 -n4 --wait=0 sh -c 'sleep $((SLURM_PROCID * 2)); [ $SLURM_PROCID != 2 ]'"
    ran = run(
        "timeline:\n"
        f'  - {{at: 1s, as: alice, run: "{worst}"}}\n'
        "  - {at: 60s, as: alice, run: sacct -n -P -j 1.0 -o exitcode}\n",
        cluster=TWO_NODES.replace("n[1-2]", "n[1-4]"),
    )
    assert ran.result.commands[1].stdout == "1:0\n"
