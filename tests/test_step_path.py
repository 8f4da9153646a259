"""The life of a step and of a batch script, call by call, in both models."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tests.cluster import BATCH, STEP, Ran, pids, run, with_plugin

ALICE = 1001
SLURM = 64030
MODELS = ("guide", "modern")


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    """Return each model in turn."""
    return str(request.param)


@pytest.fixture(scope="module")
def step(model: str) -> Ran:
    """Return a run of one srun: two nodes, two tasks on each."""
    return run(STEP, model=model)


@pytest.fixture(scope="module")
def batch(model: str) -> Ran:
    """Return a run of one batch script without steps."""
    return run(BATCH, model=model)


def test_controller_starts_with_both_plugins_and_restores_the_switch(step: Ran, model: str) -> None:
    """Checkpoint before switch, then the saved state, all before any node registers."""
    assert step.names(role="slurmctld")[:3] == ["init", "init", "switch_p_libstate_restore"]
    inits = step.all("init", role="slurmctld")
    assert [event.plugin for event in inits] == ["checkpoint/none", "switch/none"]
    besides = {"recover": 1} if model == "modern" else {}
    restore = step.one("switch_p_libstate_restore")
    assert restore.args == {"dir_name": "/var/spool", **besides}
    first = step.first("MESSAGE_NODE_REGISTRATION_STATUS", phase="receive")
    assert step.first("switch_p_libstate_restore") < first


def test_controller_calls_everything_as_slurm_user(step: Ran) -> None:
    """Every call of slurmctld is made by one process, as SlurmUser."""
    calls = step.all(kind="plugin", role="slurmctld")
    assert {event.uid for event in calls} == {SLURM}
    assert {event.euid for event in calls} == {SLURM}
    assert len(pids(calls)) == 1
    assert {event.node for event in calls} == {None}


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_slurmd_sets_the_node_up_before_it_registers(step: Ran, node: str, model: str) -> None:
    """Init, node_init, the node's record for the registration; at its end node_fini and fini."""
    calls = step.all(kind="plugin", role="slurmd", node=node)
    names = [event.name for event in calls]
    record = ["switch_p_alloc_node_info", "switch_p_build_node_info", "switch_p_pack_node_info"]
    assert names[:6] == ["init", "switch_p_node_init", *record, "switch_p_free_node_info"]
    assert names[-2:] == ["switch_p_node_fini", "fini"]
    assert names.count("switch_p_node_init") == names.count("switch_p_node_fini") == 1
    assert {event.uid for event in calls} == {0}
    assert len(pids(calls)) == 1
    registered = step.one("MESSAGE_NODE_REGISTRATION_STATUS", phase="send", node=node)
    assert calls[4].seq < registered.seq


def test_controller_unpacks_each_registration(step: Ran, model: str) -> None:
    """In guide it makes the record first; in both it frees it; then the node is IDLE."""
    names = step.names(role="slurmctld")
    ours = [name for name in names if name.endswith("node_info")]
    each = ["switch_p_unpack_node_info", "switch_p_free_node_info"]
    if model == "guide":
        each = ["switch_p_alloc_node_info", *each]
    assert ours == each * 2


def test_step_creation_in_the_controller(step: Ran, model: str) -> None:
    """The credential is built, then the checkpoint record; in guide a copy goes into the reply."""
    names = step.names(role="slurmctld", step="1.0")
    made = ["switch_p_alloc_jobinfo", "switch_p_build_jobinfo", "slurm_ckpt_alloc_job"]
    if model == "guide":
        made += ["switch_p_copy_jobinfo", "switch_p_pack_jobinfo", "switch_p_free_jobinfo"]
    else:
        made += ["switch_p_pack_jobinfo"]
    ended = ["switch_p_job_step_complete", "switch_p_free_jobinfo", "slurm_ckpt_free_job"]
    assert names == made + ended
    build = step.one("switch_p_build_jobinfo").args
    layout = {"node_cnt": 2, "task_cnt": 4, "task_dist": 2, "plane": 2, "tasks": [2, 2]}
    assert build == {
        "switch_job": None,
        "nodelist": "n[1-2]",
        "nprocs": 4,
        "cyclic_alloc": 0,
        **({**layout, "tids": [[0, 1], [2, 3]]} if model == "modern" else {}),
    }
    assert step.one("switch_p_job_step_complete").args == {"switch_job": None, "nodelist": "n[1-2]"}
    received = step.one("REQUEST_JOB_STEP_CREATE", phase="receive")
    replied = step.one("RESPONSE_JOB_STEP_CREATE", phase="send")
    assert received.seq < step.first("switch_p_alloc_jobinfo", role="slurmctld")
    assert step.first("switch_p_pack_jobinfo", role="slurmctld") < replied.seq
    complete = step.one("REQUEST_STEP_COMPLETE", phase="receive", role="slurmctld")
    assert complete.seq < step.first("switch_p_job_step_complete")


def test_srun_packs_the_credential_for_each_node(step: Ran, model: str) -> None:
    """As its user: unpack once, pack a node, free at its end; in guide alloc before, fini after.

    In model modern it has every switch plugin set up.
    """
    calls = step.all(kind="plugin", role="srun")
    names = ["switch_p_unpack_jobinfo", *["switch_p_pack_jobinfo"] * 2, "switch_p_free_jobinfo"]
    if model == "guide":
        names = ["switch_p_alloc_jobinfo", *names, "fini"]
    inits = 1 if model == "guide" else 3
    assert [event.name for event in calls] == [*["init"] * inits, *names]
    assert {(event.uid, event.euid) for event in calls} == {(ALICE, ALICE)}
    packs = [event.seq for event in calls if event.name == "switch_p_pack_jobinfo"]
    sent = [event.seq for event in step.all("REQUEST_LAUNCH_TASKS", phase="send")]
    assert packs[0] < sent[0] < packs[1] < sent[1]
    assert step.last("MESSAGE_TASK_EXIT", phase="receive") < step.first(
        "switch_p_free_jobinfo", role="srun"
    )


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_slurmd_hands_the_credential_on(step: Ran, node: str, model: str) -> None:
    """It unpacks, forks the step daemon, packs for it, answers srun, and frees its own."""
    names = ["switch_p_unpack_jobinfo", "switch_p_pack_jobinfo", "switch_p_free_jobinfo"]
    if model == "guide":
        names = ["switch_p_alloc_jobinfo", *names]
    assert step.names(role="slurmd", node=node, step="1.0") == names
    fork = step.one("fork", role="slurmd", node=node)
    unpack = step.one("switch_p_unpack_jobinfo", role="slurmd", node=node)
    pack = step.one("switch_p_pack_jobinfo", role="slurmd", node=node)
    answer = step.one(
        "RESPONSE_SLURM_RC", phase="send", node=node, args_answers="REQUEST_LAUNCH_TASKS"
    )
    free = step.one("switch_p_free_jobinfo", role="slurmd", node=node)
    assert unpack.seq < fork.seq < pack.seq < answer.seq < free.seq


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_guide_has_three_processes(node: str) -> None:
    """P1 is root throughout, P2 root and then the user, each P3 the user; each makes its calls."""
    ran = run(STEP)
    manager = ran.all(kind="plugin", role="manager", node=node)
    assert [event.name for event in manager] == [
        *("init", "init", "switch_p_alloc_jobinfo", "switch_p_unpack_jobinfo"),
        *("switch_p_job_preinit", "switch_p_job_postfini", "fini", "fini"),
    ]
    assert {(event.uid, event.euid) for event in manager} == {(0, 0)}
    assert [event.plugin for event in manager if event.name in ("init", "fini")] == [
        *("switch/none", "checkpoint/none", "checkpoint/none", "switch/none"),
    ]
    session = ran.all(kind="plugin", role="session", node=node)
    assert [(event.name, event.uid, event.euid) for event in session] == [
        ("switch_p_job_init", 0, 0),
        ("slurm_ckpt_stepd_prefork", 0, 0),
        ("switch_p_job_fini", ALICE, ALICE),
    ]
    tasks = ran.all(kind="plugin", role="task", node=node)
    assert [(event.name, event.uid, event.euid) for event in tasks] == [
        ("switch_p_job_attach", ALICE, ALICE)
    ] * 2
    groups = [pids(manager), pids(session), pids(tasks)]
    assert [len(group) for group in groups] == [1, 1, 2]
    assert len(set.union(*groups)) == 4


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_guide_forks_wait_and_become_user_in_order(node: str) -> None:
    """The whole of a step daemon, line by line: who does what, after whom."""
    ran = run(STEP)
    lines = [
        (event.role, event.name)
        for event in ran.all(node=node, step="1.0")
        if event.role in ("manager", "session", "task")
        and event.kind in ("plugin", "process", "message")
        and event.name not in ("init", "fini", "RESPONSE_SLURM_RC")
        and (event.kind != "message" or event.phase == "send")
    ]
    task = [("session", "fork"), ("task", "switch_p_job_attach"), ("task", "exec")]
    assert lines[: lines.index(("manager", "REQUEST_STEP_COMPLETE")) + 1] == [
        ("manager", "switch_p_alloc_jobinfo"),
        ("manager", "switch_p_unpack_jobinfo"),
        ("manager", "switch_p_job_preinit"),
        ("manager", "fork"),
        ("session", "switch_p_job_init"),
        ("session", "slurm_ckpt_stepd_prefork"),
        ("session", "become_user"),
        *task,
        *task,
        ("manager", "RESPONSE_LAUNCH_TASKS"),
        ("task", "exit"),
        ("task", "exit"),
        # Guide: srun is told of the exits before fini and postfini.
        ("manager", "MESSAGE_TASK_EXIT"),
        ("session", "switch_p_job_fini"),
        ("session", "exit"),
        ("manager", "switch_p_job_postfini"),
        ("manager", "REQUEST_STEP_COMPLETE"),
    ]


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_modern_has_one_root_process(node: str) -> None:
    """All forks before any attach; every exit reported after postfini; no session, no fini."""
    ran = run(STEP, model="modern")
    manager = ran.all(kind="plugin", role="manager", node=node)
    assert [event.name for event in manager] == [
        *("init", "switch_p_unpack_jobinfo", "init", "switch_p_job_preinit"),
        *("switch_p_job_init", "slurm_ckpt_stepd_prefork"),
        *("switch_p_job_fini", "switch_p_job_postfini"),
    ]
    assert [event.plugin for event in manager if event.name == "init"] == [
        "switch/none",
        "checkpoint/none",
    ]
    assert {(event.uid, event.euid) for event in manager} == {(0, 0)}
    assert len(pids(manager)) == 1
    assert ran.all(role="session") == []
    tasks = ran.all("switch_p_job_attach", role="task", node=node)
    assert [(event.uid, event.euid) for event in tasks] == [(ALICE, ALICE)] * 2
    forks = ran.all("fork", role="manager", node=node)
    assert [(event.uid, event.euid) for event in forks] == [(0, ALICE)] * 2
    assert forks[-1].seq < ran.first("become_user", node=node)
    assert ran.last("become_user", node=node) < tasks[0].seq
    assert ran.last("switch_p_job_postfini", node=node) < ran.first(
        "MESSAGE_TASK_EXIT", node=node, phase="send"
    )
    assert ran.last("MESSAGE_TASK_EXIT", node=node, phase="send") < ran.first(
        "REQUEST_STEP_COMPLETE", node=node, phase="send", role="manager"
    )


def test_arguments_of_the_job_functions(step: Ran, model: str) -> None:
    """Exactly the guide's: uid, env, nodeid, procid, nnodes, nprocs, rank, pgid, job and step.

    In model modern the trace has what real Slurm 18.08 passes besides: the record of the step.
    """
    wanted = [
        ("n1", {"nodeid": 0, "procid": 0, "nnodes": 2, "nprocs": 4, "rank": 0}),
        ("n1", {"nodeid": 0, "procid": 1, "nnodes": 2, "nprocs": 4, "rank": 1}),
        ("n2", {"nodeid": 1, "procid": 0, "nnodes": 2, "nprocs": 4, "rank": 2}),
        ("n2", {"nodeid": 1, "procid": 1, "nnodes": 2, "nprocs": 4, "rank": 3}),
    ]
    found = sorted(
        step.all("switch_p_job_attach"), key=lambda event: (str(event.node), int(str(event.task)))
    )
    assert [event.task for event in found] == [0, 1, 2, 3]
    for event, (node, args) in zip(found, wanted, strict=True):
        assert (event.node, event.args) == (node, {"switch_job": None, "env": [], **args})
    records: dict[str, dict[str, Any]] = {"n1": {}, "n2": {}}
    if model == "modern":
        for place, node in enumerate(records):
            pid = step.one("switch_p_job_init", node=node).pid
            counts = {"nodeid": place, "ntasks": 4, "node_tasks": 2}
            records[node] = {**counts, "jmgr_pid": pid}
    pgid: dict[str, Any] = {"pgid": 0} if model == "modern" else {}
    for event in step.all("switch_p_job_init"):
        record = records[str(event.node)]
        assert event.args == {"switch_job": None, "uid": ALICE, **record, **pgid}
    for event in step.all("switch_p_job_preinit") + step.all("switch_p_job_fini"):
        assert event.args == {"switch_job": None}
    for node in ("n1", "n2"):
        event = step.one("switch_p_job_postfini", node=node)
        if model == "guide":
            pgid = {"pgid": step.one("switch_p_job_init", node=node).pid}
        else:
            # What real Slurm's record holds: the first task's group, and the daemon itself.
            task = min(pids(step.all("switch_p_job_attach", node=node)))
            pgid = {"uid": ALICE, "pgid": task}
        ids = {"switch_job": None, "job_id": 1, "step_id": 0}
        assert event.args == {**ids, **records[node], **pgid}
    for event in step.all("slurm_ckpt_stepd_prefork"):
        record = records[str(event.node)]
        batch = {"batch": 0} if model == "modern" else {}
        assert event.args == {"slurmd_job": "step 1.0", **record, **batch}


@pytest.mark.parametrize(
    ("how", "ranks", "cyclic"),
    [
        ("block", [(0, 0), (0, 1), (1, 0), (1, 1)], 0),
        ("cyclic", [(0, 0), (1, 0), (0, 1), (1, 1)], 1),
    ],
)
def test_layouts_reach_the_switch(
    how: str, ranks: list[tuple[int, int]], cyclic: int, model: str
) -> None:
    """Rank r sits at (nodeid, procid); only cyclic sets the flag of build."""
    ran = run(STEP.replace("srun", f"srun -m {how}"), model=model)
    places = {
        int(event.args["rank"]): (event.args["nodeid"], event.args["procid"])
        for event in ran.all("switch_p_job_attach")
        if event.args is not UNSET
    }
    assert [places[rank] for rank in range(4)] == ranks
    assert ran.one("switch_p_build_jobinfo").args["cyclic_alloc"] == cyclic  # type: ignore[index]


def test_a_step_on_part_of_the_nodes_counts_its_own(model: str) -> None:
    """A step on n2 alone of a job of two nodes: nodeid 0 of 1, and the one node in build."""
    text = "timeline: [{at: 0s, as: alice, run: sbatch -N2 --wrap 'srun -N1 -w n2 sleep 1'}]\n"
    ran = run(text, model=model)
    attach = ran.one("switch_p_job_attach")
    assert attach.node == "n2"
    assert attach.args == {
        "switch_job": None,
        "env": [],
        "nodeid": 0,
        "procid": 0,
        "nnodes": 1,
        "nprocs": 1,
        "rank": 0,
    }
    assert ran.one("switch_p_build_jobinfo").args["nodelist"] == "n2"  # type: ignore[index]


def test_batch_step_calls_prefork_and_nothing_of_the_switch(batch: Ran, model: str) -> None:
    """Loaded by its step daemon, the switch is not called; nor in the controller for the step."""
    names = batch.names(step="1.batch")
    fini = ["fini", "fini"] if model == "guide" else []
    assert names == ["init", "init", "slurm_ckpt_stepd_prefork", *fini]
    prefork = batch.one("slurm_ckpt_stepd_prefork")
    assert (prefork.uid, prefork.node) == (0, "n1")
    assert prefork.role == ("session" if model == "guide" else "manager")
    record = {"nodeid": 0, "ntasks": 1, "node_tasks": 1, "jmgr_pid": prefork.pid, "batch": 1}
    assert prefork.args == {
        "slurmd_job": "step 1.batch",
        **(record if model == "modern" else {}),
    }
    assert not [name for name in batch.names(job=1) if name.startswith("switch_p_job")]
    script = batch.one(
        "exec",
        task=0,
        step="1.batch",
        daemon="task",
        args_path="/var/spool/slurmd/job00001/slurm_script",
    )
    assert script.uid == ALICE
    assert batch.one("REQUEST_COMPLETE_BATCH_SCRIPT", phase="send").role == "manager"


def test_a_job_has_a_checkpoint_record_from_submission_to_purge(batch: Ran) -> None:
    """Made before the reply to sbatch, freed when the record is purged, MinJobAge after its end."""
    alloc = batch.one("slurm_ckpt_alloc_job", job=1)
    assert alloc.role == "slurmctld"
    assert alloc.seq < batch.one("RESPONSE_SUBMIT_BATCH_JOB", phase="send").seq
    assert batch.one("REQUEST_SUBMIT_BATCH_JOB", phase="receive").seq < alloc.seq
    free = batch.one("slurm_ckpt_free_job", job=1)
    ended = [event for event in batch.all("job_state") if event.args["to"] == "COMPLETED"]  # type: ignore[index]
    assert free.time_us >= ended[0].time_us + 300_000_000
    assert free.time_us % 60_000_000 == 0


def test_the_end_of_the_cluster_saves_the_switch_and_packs_what_is_left(model: str) -> None:
    """A job that can never start is left: its record is packed after libstate_save."""
    ran = run("timeline: [{at: 0s, as: alice, run: sbatch -N9 --wrap true}]\n", model=model)
    tail = ran.names(role="slurmctld")[-4 if model == "guide" else -2 :]
    fini = ["fini", "fini"] if model == "guide" else []
    assert tail == ["switch_p_libstate_save", "slurm_ckpt_pack_job", *fini]
    assert ran.one("slurm_ckpt_pack_job").job == 1
    if model == "guide":
        for process in pids(ran.all("init")):
            assert len(ran.all("init", pid=process)) == len(ran.all("fini", pid=process))
    else:
        assert ran.all("fini", role="slurmctld") == []
        assert len(ran.all("fini", role="slurmd")) == 2


def test_no_frag_is_asked_by_submissions_and_passes_in_guide_only(model: str) -> None:
    """Asked before each job is placed; the guide's function is gone in modern."""
    ran = run(STEP, model=model)
    assert len(ran.all("switch_p_no_frag")) == (1 if model == "guide" else 0)


def test_no_frag_holds_jobs_up_while_another_completes(tmp_path: Path) -> None:
    """A switch that minds fragmentation: nothing starts before the completing job is gone."""

    def switch_p_no_frag(self) -> bool:  # type: ignore[no-untyped-def]
        return True

    def switch_p_job_fini(self, switch_job) -> None:  # type: ignore[no-untyped-def]
        pass

    text = with_plugin(tmp_path, switch_p_no_frag, switch_p_job_fini) + (
        "programs: {./stuck: {runs: forever, on_signal: {TERM: ignore}}}\n"
        "timeline:\n"
        "  - {at: 0s, as: alice, run: sbatch -N1 --wrap 'srun ./stuck'}\n"
        "  - {at: 10s, as: alice, run: scancel 1}\n"
        "  - {at: 12s, as: bob, run: sbatch -N1 --wrap 'srun sleep 1'}\n"
        "  - {at: 80s, as: bob, run: sbatch -N1 --wrap 'srun sleep 1'}\n"
    )
    ran = run(text, folder=tmp_path)
    rows = {row.job_id: row for row in ran.result.rows}
    gone = [event for event in ran.all("job_state", job=1) if event.args["to"] == "CANCELLED"]  # type: ignore[index]
    assert rows[2].start_us >= min(gone[0].time_us, 10_000_000 + 32_000_000)
    assert rows[3].start_us < 81_000_000


def test_steps_have_their_own_daemons_and_credentials(model: str) -> None:
    """Two steps one after another: everything again, and the first completed before the second."""
    text = (
        "timeline: [{at: 0s, as: alice, "
        "run: sbatch -N2 --wrap 'srun sleep 1; sleep 1; srun sleep 1'}]\n"
    )
    ran = run(text, model=model)
    for name in ("switch_p_alloc_jobinfo", "switch_p_build_jobinfo", "switch_p_job_step_complete"):
        steps = [event.step for event in ran.all(name, role="slurmctld")]
        assert steps == ["1.0", "1.1"]
    first = ran.first("switch_p_job_step_complete", step="1.0")
    assert first < ran.first("switch_p_build_jobinfo", step="1.1")
    managers = [pids(ran.all("switch_p_job_preinit", step=step)) for step in ("1.0", "1.1")]
    assert not managers[0] & managers[1]


def test_state_is_copied_at_forks_and_lost_between_daemons(tmp_path: Path) -> None:
    """What init stores in P2 is seen by attach (a copy) and fini, not by P1's postfini."""

    def switch_p_node_init(self) -> None:  # type: ignore[no-untyped-def]
        self.calls.append("node_init")

    def switch_p_job_preinit(self, switch_job) -> int:  # type: ignore[no-untyped-def]
        self.calls.append("preinit")
        return len(self.calls)

    def switch_p_job_init(self, switch_job, uid) -> int:  # type: ignore[no-untyped-def]
        self.calls.append("init")
        return len(self.calls)

    def switch_p_job_attach(  # type: ignore[no-untyped-def]
        self, switch_job, env, nodeid, procid, nnodes, nprocs, rank
    ) -> int:
        self.calls.append("attach")
        return len(self.calls)

    def switch_p_job_fini(self, switch_job) -> int:  # type: ignore[no-untyped-def]
        return len(self.calls)

    def switch_p_job_postfini(self, switch_job, pgid, job_id, step_id) -> int:  # type: ignore[no-untyped-def]
        return len(self.calls)

    keys = with_plugin(
        tmp_path,
        *(switch_p_node_init, switch_p_job_preinit, switch_p_job_init, switch_p_job_attach),
        *(switch_p_job_fini, switch_p_job_postfini),
    )
    seen = {
        model: {
            name: {event.rc for event in ran.all(f"switch_p_job_{name}")}
            for name in ("preinit", "init", "attach", "fini", "postfini")
        }
        for model in MODELS
        for ran in [run(keys + STEP, model=model, folder=tmp_path)]
    }
    assert seen["guide"] == {
        "preinit": {1},
        "init": {2},
        "attach": {3},
        "fini": {2},
        "postfini": {1},
    }
    assert seen["modern"] == {
        "preinit": {1},
        "init": {2},
        "attach": {3},
        "fini": {2},
        "postfini": {2},
    }


def test_slow_functions_block_the_process_that_calls_them(tmp_path: Path) -> None:
    """An attach of five seconds delays its task's program, not the other task's."""

    async def switch_p_job_attach(  # type: ignore[no-untyped-def]
        self, switch_job, env, nodeid, procid, nnodes, nprocs, rank
    ) -> None:
        await sleep(5 * rank)  # type: ignore[name-defined] # noqa: F821

    keys = with_plugin(tmp_path, switch_p_job_attach)
    for schedule in ("fifo", "random"):
        ran = run(keys + STEP, folder=tmp_path, schedule=schedule)
        assert ran.job() == ("COMPLETED", "0:0", "None")
        slow = ran.all("switch_p_job_attach")[1:]
        took = sorted(event.time_us - int(str(event.t0_us)) for event in slow)
        assert took == [5_000_000, 10_000_000, 15_000_000]
        begun = {event.t0_us for event in slow}
        assert len(begun) == 1
        launched = ran.all("RESPONSE_LAUNCH_TASKS", phase="send")
        assert {event.time_us for event in launched} == begun
        assert ran.one("exit", task=3).time_us == ran.one("exit", task=0).time_us + 15_000_000


def test_exits_are_told_before_postfini_in_the_guide() -> None:
    """The job manager sends what it knows of its tasks, and cleans up after that."""
    ran = run(STEP)
    for node in ("n1", "n2"):
        told = ran.last("MESSAGE_TASK_EXIT", phase="send", node=node)
        assert told < ran.first("switch_p_job_postfini", node=node)


def test_postfini_is_given_the_step_daemons_group_in_modern(tmp_path: Path) -> None:
    """Whatever is recorded besides: pgid is the daemon's own, which alone makes that a success."""

    def switch_p_job_postfini(self, switch_job, pgid, job_id, step_id):  # type: ignore[no-untyped-def]
        return 0 if pgid == process().pid else -1  # type: ignore[name-defined]  # noqa: F821

    setup = with_plugin(tmp_path, switch_p_job_postfini)
    ran = run(setup + STEP, folder=tmp_path, model="modern")
    assert [each.rc for each in ran.all("switch_p_job_postfini")] == [0, 0]
