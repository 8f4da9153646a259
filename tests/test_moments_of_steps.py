"""What each daemon is told of a step, what it has of its own, and when the step is over."""

from pathlib import Path

import pytest

from simctl.testing.before import assert_before
from simctl.wire.errno import ESLURMD_FORK_FAILED
from tests.cluster import STEP, Ran, fault, run
from tests.moments import (
    BOTH,
    SLOW_EPILOG,
    THREE_NODES,
    ran_with,
    said,
    timeline,
    to_state,
)

# Nodes that a job leaves, and nodes that are lost.

PARTS = """
def switch_p_part_comp(self):
    return True
def switch_p_job_step_part_comp(self, switch_job, nodelist):
    log.info(nodelist)
"""


def parted(ran: Ran) -> list[str]:
    """Return what slurmctld hears of nodes that a job has left, and what it asks the switch."""
    short = {"MESSAGE_EPILOG_COMPLETE": "gone", "switch_p_part_comp": "asks"}
    return [
        short[event.name]
        for event in ran.all(daemon="slurmctld")
        if event.name in short and event.phase != "send"
    ]


def test_a_node_that_is_lost_while_its_job_ends_is_not_asked_about(tmp_path: Path) -> None:
    """Only of nodes that say that the job has left them; this one never will."""
    ran = ran_with(
        tmp_path,
        PARTS,
        SLOW_EPILOG
        + timeline(
            'at: 0s, as: alice, run: "srun -N3 sleep 1000"',
            "at: 5s, run: scancel 1",
            "at: 10s, fault: {crash: n2}",
        ),
        model="modern",
        cluster=THREE_NODES,
        conf="Epilog: /etc/epilog, SlurmdTimeout: 30",
    )
    assert parted(ran) == ["gone", "asks"] * 2
    down = next(each for each in ran.all("node_state", args_node="n2") if "DOWN" in to_state(each))
    assert down.time_us < ran.all("MESSAGE_EPILOG_COMPLETE")[0].time_us


@pytest.mark.parametrize(("age_s", "asks"), [(300, ["gone", "asks"]), (60, ["gone"])])
def test_a_job_that_leaves_a_node_long_after_its_end_is_asked_about_once(
    tmp_path: Path, age_s: int, asks: list[str]
) -> None:
    """Where nobody waits for it any more; of a job that is forgotten there is nothing to ask."""
    ran = ran_with(
        tmp_path,
        PARTS,
        SLOW_EPILOG
        + timeline(
            'at: 0s, as: alice, run: "srun -w n2 -N1 sleep 1000"',
            "at: 5s, fault: {cut: [slurmctld, n2], for: 60s}",
        ),
        model="modern",
        conf=f"Epilog: /etc/epilog, SlurmdTimeout: 30, ReturnToService: 2, MinJobAge: {age_s}",
    )
    assert parted(ran) == asks
    assert ran.job()[0] == "NODE_FAIL"


def test_a_step_whose_daemon_died_is_complete_when_its_last_node_is_left(tmp_path: Path) -> None:
    """Its switch hears of the node, then of the step, while the job is still on another node."""
    ran = ran_with(
        tmp_path,
        PARTS,
        "files:\n  two.sh: |\n    #!/bin/sh\n    srun -w n2 -N1 -n1 sleep 1000 &\n    sleep 1000\n"
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N2 two.sh"',
            "at: 5s, fault: {cut: [n1, n2]}",
            'at: 6s, fault: {crash: "stepd 1.0@n2"}',
            "at: 10s, run: scancel 1",
        ),
        model="modern",
    )
    assert not ran.all("REQUEST_STEP_COMPLETE")
    gone, last = ran.all("MESSAGE_EPILOG_COMPLETE", phase="receive")
    part, whole = (
        ran.one("switch_p_job_step_part_comp"),
        ran.one("switch_p_job_step_complete"),
    )
    assert gone.seq < part.seq < whole.seq < last.seq


def test_the_switch_hears_of_all_nodes_that_one_report_is_for(tmp_path: Path) -> None:
    """n3 is reported over by n2, above which nobody is left; n1 is so when its job leaves it."""
    ran = ran_with(
        tmp_path,
        PARTS,
        timeline(
            'at: 0s, as: alice, run: "srun -N3 -n3 sleep 20"',
            "at: 5s, fault: {crash: stepd 1.0@n1}",
            "at: 60s, run: scancel 1",
        ),
        model="modern",
        cluster=THREE_NODES,
        conf="TreeWidth: 1",
    )
    assert said(ran) == ["n[2-3]", "n1"]
    assert ran.one("switch_p_job_step_complete").time_us // 1_000_000 == 60


TWO_STEPS = """\
files:
  two.sh: |
    #!/bin/sh
    srun {0} sleep 1000 &
    srun {0} sleep 1000 &
    sleep 100
"""


def test_each_step_of_a_job_hears_of_a_node_that_the_job_has_left(tmp_path: Path) -> None:
    """Its daemons there have died unheard: the reports of the others complete each of them."""
    ran = ran_with(
        tmp_path,
        PARTS,
        TWO_STEPS.format("-N2 -n2")
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N2 two.sh"',
            "at: 5s, fault: {cut: [n1, n2]}",
            'at: 6s, fault: {crash: "stepd 1.0@n2"}',
            'at: 6s, fault: {crash: "stepd 1.1@n2"}',
            "at: 10s, run: scancel 1",
        ),
        model="modern",
    )
    parts = ran.all("switch_p_job_step_part_comp")
    assert [each.step for each in parts] == ["1.0", "1.1"]
    assert [each.step for each in ran.all("switch_p_job_step_complete")] == ["1.0", "1.1"]


@BOTH
def test_each_step_of_a_job_that_goes_on_loses_the_node(model: str) -> None:
    """Those that had no other are complete; the script goes on."""
    ran = run(
        "slurm_conf: {SlurmdTimeout: 30}\n"
        + TWO_STEPS.format("--no-kill -w n2 -N1 -n1")
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N2 --no-kill two.sh"', "at: 5s, fault: {crash: n2}"
        ),
        model=model,
    )
    over = ran.all("switch_p_job_step_complete")
    assert [(each.step, each.time_us) for each in over] == [
        ("1.0", 43_000_000),
        ("1.1", 43_000_000),
    ]
    assert ran.job()[0] == "COMPLETED"


@BOTH
def test_steps_that_are_left_of_a_job_are_deleted_in_any_order_and_before_it_is_over(
    model: str,
) -> None:
    """Neither needs the other; the end of the job needs both."""
    ran = run(
        "slurm_conf: {SlurmdTimeout: 30}\n"
        "files:\n  two.sh: |\n    #!/bin/sh\n"
        + "    srun -N2 -n2 sleep 1000 &\n" * 2
        + "    wait\n"
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N2 --no-requeue two.sh"',
            "at: 5s, fault: {crash: n2}",
        ),
        model=model,
    )
    over = "switch_p_job_step_complete step="
    for step in ("1.0", "1.1"):
        assert_before(ran.events, over + step, "job_state args.to=NODE_FAIL", proved=True)
    with pytest.raises(AssertionError, match="not proved"):
        assert_before(ran.events, f"{over}1.0", f"{over}1.1", proved=True)


@BOTH
def test_a_step_is_deleted_for_the_reports_of_all_its_nodes(model: str) -> None:
    """Whichever comes last: under no schedule the switch hears of its end before each of them."""
    ran = run(fault("switch_p_unpack_jobinfo role=slurmd node=n2"), model=model)
    reports = ran.all("REQUEST_STEP_COMPLETE", phase="receive", daemon="slurmctld")
    assert len(reports) == 2
    report = "REQUEST_STEP_COMPLETE phase=receive daemon=slurmctld"
    assert_before(ran.events, report, "switch_p_job_step_complete", proved=True)


@BOTH
def test_a_step_that_loses_the_rest_of_its_nodes_was_reported_by_the_others(model: str) -> None:
    """It is deleted as the last is taken out of its job, which must come after their report."""
    sleeps = "sh -c 'sleep $((SLURM_PROCID * 900 + 2))'"
    lines = timeline(
        f'at: 0s, as: alice, run: "salloc --no-kill -N2 srun --no-kill -N2 -n2 {sleeps}"',
        "at: 1s, fault: {cut: [n1, n2]}",
        "at: 5s, fault: {crash: n2}",
    )
    ran = run("slurm_conf: {SlurmdTimeout: 300}\n" + lines, model=model)
    report = "REQUEST_STEP_COMPLETE phase=receive daemon=slurmctld"
    assert ran.one("node_removed").time_us == ran.one("switch_p_job_step_complete").time_us
    assert_before(ran.events, report, "switch_p_job_step_complete", proved=True)


# What is whose.


@BOTH
def test_each_task_has_an_environment_of_its_own_to_attach_with(tmp_path: Path, model: str) -> None:
    """What the plugin puts there for one is not there for the next on the same node."""
    methods = """
    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        log.info(env.get("MINE", "nobody's"))
        env["MINE"] = str(rank)
    """
    ran = ran_with(tmp_path, methods, STEP, model=model)
    assert said(ran) == ["nobody's"] * 4


def test_each_process_has_the_credential_and_the_plugin_that_it_was_forked_with(
    tmp_path: Path,
) -> None:
    """What the session and a task write into either is seen by their own forks alone."""
    methods = """
    def init(self):
        self.seen = []
    def switch_p_alloc_jobinfo(self):
        return []
    def _note(self, name, switch_job):
        if process().role in ("manager", "session", "task"):
            self.seen.append(name)
            switch_job.append(name)
            log.info(f"{process().hostname} {' '.join(self.seen)} / {' '.join(switch_job)}")
    def switch_p_job_preinit(self, switch_job):
        self._note("preinit", switch_job)
    def switch_p_job_init(self, switch_job, uid):
        self._note("init", switch_job)
    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        self._note("attach", switch_job)
    def switch_p_job_fini(self, switch_job):
        self._note("fini", switch_job)
    def switch_p_job_postfini(self, switch_job, pgid, job_id, step_id):
        self._note("postfini", switch_job)
    """
    ran = ran_with(tmp_path, methods, STEP)
    seen = (
        "preinit",
        "preinit init",
        *["preinit init attach"] * 2,
        "preinit init fini",
        "preinit postfini",
    )
    for node in ("n1", "n2"):
        found = [each for each in said(ran) if each.startswith(node)]
        assert found == [f"{node} {each} / {each}" for each in seen]


@BOTH
def test_a_task_that_dies_as_it_attaches_runs_nothing(model: str) -> None:
    """It was attached all the same, and its sibling goes on."""
    ran = run(
        timeline(
            'at: 0s, as: alice, run: "srun -N1 -n2 sleep 10"',
            'when: "switch_p_job_attach task=0", fault: {crash: "task 1.0.0"}',
        ),
        model=model,
    )
    assert [each.task for each in ran.all("switch_p_job_attach")] == [0, 1]
    assert [each.task for each in ran.all("exec")] == [1]


def test_a_clean_start_ends_what_is_left_before_it_clears_the_switch() -> None:
    """The step daemons that another slurmd has started."""
    ran = run(
        timeline(
            'at: 0s, as: alice, run: "srun -N1 -n1 sleep 100"',
            'at: 5s, fault: {crash: "slurmd@n1"}',
            'at: 10s, fault: {start: "slurmd@n1", clean: true}',
        )
    )
    told = ran.all("REQUEST_SIGNAL_TASKS", phase="send", role="slurmd")[0]
    assert told.seq < ran.one("switch_p_clear_node_state").seq


def test_a_task_that_dies_as_it_is_forked_becomes_nobody() -> None:
    """Model modern forks all tasks before the first becomes its user; the others go on."""
    ran = run(
        timeline(
            'at: 0s, as: alice, run: "srun -N1 -n2 sleep 10"',
            'when: "fork role=manager args.child=7", fault: {crash: "task 1.0.0"}',
        ),
        model="modern",
    )
    forked = [each.args["child"] for each in ran.all("fork", role="manager")]  # type: ignore[index]
    became = [each.pid for each in ran.all("become_user")]
    attached = [each.pid for each in ran.all("switch_p_job_attach")]
    assert (len(forked), became, attached) == (2, forked[1:], forked[1:])


@BOTH
def test_a_credential_is_packed_anew_by_each_daemon_that_hands_it_on(
    tmp_path: Path, model: str
) -> None:
    """Slurmctld for srun, srun for each slurmd, slurmd for its step daemon."""
    methods = """
    def switch_p_alloc_jobinfo(self):
        return []
    def switch_p_pack_jobinfo(self, switch_job, buffer):
        buffer.packstr(f"{process().role} {process().hostname}")
    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        log.info(f"{process().role} {process().hostname} by {buffer.unpackstr()}")
    """
    ran = ran_with(tmp_path, methods, STEP, model=model)
    controller = ran.world.ctld.process.host.name
    assert sorted(said(ran)) == [
        *("manager n1 by slurmd n1", "manager n2 by slurmd n2"),
        *("slurmd n1 by srun login", "slurmd n2 by srun login"),
        f"srun login by slurmctld {controller}",
    ]


@BOTH
def test_a_step_daemon_tells_of_its_own_part_of_the_step(tmp_path: Path, model: str) -> None:
    """Which node it is on, how many tasks are there and in all, and whose they are."""
    methods = """
    def slurm_ckpt_stepd_prefork(self, slurmd_job):
        job = slurmd_job
        log.info(f"{job.nodeid} {job.node_tasks}/{job.ntasks} {job.uid} {job.step_id} {job.batch}")
    """
    layout = """
    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        log.info(f"{nodeid}/{nnodes} {procid} {rank}/{nprocs}")
    """
    lines = timeline(
        'at: 0s, as: bob, run: "srun -N2 -n3 sleep 10"',
        'at: 20s, as: bob, run: "sbatch -N2 --wrap true"',
    )
    ran = ran_with(tmp_path, layout, lines, checkpoint=methods, model=model)
    assert sorted(said(ran)) == [
        *("0 1/1 1002 4294967294 True", "0 2/3 1002 0 False", "0/2 0 0/3", "0/2 1 1/3"),
        *("1 1/3 1002 0 False", "1/2 0 2/3"),
    ]


@BOTH
def test_a_step_ends_as_the_worst_of_its_tasks(model: str) -> None:
    """Whoever reports it, and in which order; of tasks below in the tree as well."""
    exits = "srun -N3 -n3 sh -c 'exit $(({}))'"
    by_rank = [exits.format(each) for each in ("SLURM_PROCID", "2-SLURM_PROCID", "SLURM_PROCID%2")]
    refused = "srun -N2 -n2 sh -c 'sleep 20; exit 1'"
    ran = run(
        "files:\n  all.sh: |\n    #!/bin/sh\n"
        + "".join(f"    {each}\n" for each in (*by_rank, refused))
        + timeline(
            "at: 0s, fault: {fail: switch_p_unpack_jobinfo role=slurmd node=n2 step=1.3}",
            'at: 0s, as: alice, run: "sbatch -N3 all.sh"',
            "at: 100s, as: alice, run: 'sacct -n -P -o JobID,ExitCode'",
        ),
        cluster=THREE_NODES,
        model=model,
    )
    found = ran.result.commands[1].stdout.splitlines()[2:]
    assert found == ["1.0|2:0", "1.1|2:0", "1.2|1:0", "1.3|0:36"]


@BOTH
def test_a_report_of_a_step_is_about_all_nodes_below_in_the_tree(model: str) -> None:
    """Each daemon has one below; nobody waits for a report that has come within another."""
    ran = run(
        "slurm_conf: {TreeWidth: 1}\n"
        + timeline('at: 0s, as: alice, run: "srun -N3 -n3 sleep 10"'),
        cluster=THREE_NODES,
        model=model,
    )
    sent = ran.all("REQUEST_STEP_COMPLETE", phase="send", role="manager")
    ranges = [(each.node, each.args["range_first"], each.args["range_last"]) for each in sent]  # type: ignore[index]
    assert ranges == [("n3", 2, 2), ("n2", 1, 2), ("n1", 0, 2)]
    assert ran.one("switch_p_job_step_complete").time_us // 1_000_000 == 10


@BOTH
def test_nonsense_that_is_put_into_an_environment_as_a_task_attaches_ends_the_task(
    tmp_path: Path, model: str
) -> None:
    """The call has failed by that, and the program is not begun."""
    methods = """
    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        env["X"] = 7
    """
    ran = ran_with(tmp_path, methods, STEP, model=model)
    assert {each.rc for each in ran.all("switch_p_job_attach")} == {-1}
    assert not ran.all("exec")
    assert ran.result.commands[0].exit == 1


def test_a_record_is_copied_for_the_tasks_of_an_array_that_still_wait(tmp_path: Path) -> None:
    """The copy is theirs, under the array's id; who is split off has what was there."""
    methods = """
    def slurm_ckpt_alloc_job(self):
        return ["first"]
    def slurm_ckpt_copy_job(self, jobinfo):
        return [*jobinfo, "copied"]
    def slurm_ckpt_free_job(self, jobinfo):
        log.info(f"{len(jobinfo)} {' '.join(str(job.job_id) for job in slurmctld.jobs())}")
    """
    lines = timeline(
        "at: 0s, as: alice, run: \"sbatch -N2 -a 1-3 --wrap 'sleep 100'\"",
    )
    ran = ran_with(tmp_path, "", lines, checkpoint=methods, conf="MinJobAge: 10")
    assert [each.job for each in ran.all("slurm_ckpt_copy_job")] == [1, 1]
    assert said(ran) == ["1 1 2 3", "2 1 3", "3 1"]


@BOTH
def test_steps_that_are_left_are_deleted_before_their_job_waits_again(model: str) -> None:
    """A node is lost, and the job with it; what it had of the switch is given back."""
    ran = run(
        "slurm_conf: {SlurmdTimeout: 30}\n"
        + TWO_STEPS.format("-N2 -n2")
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N2 two.sh"',
            "at: 5s, fault: {crash: n2}",
            "at: 200s, run: scancel 1",
        ),
        model=model,
    )
    first, over = ran.all("switch_p_job_step_complete")
    assert (first.step, over.step) == ("1.0", "1.1")
    waits = next(
        each for each in ran.all("job_state") if to_state(each) == "PENDING" and each.seq > over.seq
    )
    assert over.time_us == waits.time_us < 200_000_000
    assert ran.one("slurm_ckpt_free_job", step="1.1").seq < waits.seq


@BOTH
@pytest.mark.parametrize(
    ("fault", "rc"),
    [
        ("at: 0s, fault: {duplicate: REQUEST_LAUNCH_TASKS, to: n1, by: 9s}", 4026),
        ("at: 0s, fault: {delay: REQUEST_LAUNCH_TASKS, to: n1, by: 9s}", 4008),
        (
            'when: "switch_p_pack_jobinfo role=slurmd node=n1", fault: {crash: stepd 1.0@n1}',
            ESLURMD_FORK_FAILED,
        ),
    ],
    ids=["it runs", "its job is over", "its daemon is dead"],
)
def test_a_launch_that_slurmd_refuses_leaves_it_no_credential(
    model: str, fault: str, rc: int
) -> None:
    """The answer comes first; then what was unpacked is released."""
    ran = run(
        timeline(
            fault,
            'at: 0s, as: alice, run: "srun -N2 sleep 20"',
            "at: 5s, as: alice, run: scancel 1" if rc == 4008 else "at: 5s, run: squeue",
        ),
        model=model,
    )
    refused = ran.one("RESPONSE_SLURM_RC", phase="send", node="n1", args_return_code=rc)
    (after,) = [
        each
        for each in ran.all(kind="plugin", node="n1", role="slurmd")
        if each.seq > refused.seq and each.time_us == refused.time_us
    ]
    assert after.name == "switch_p_free_jobinfo"


def test_a_slurmd_that_has_yet_to_answer_a_launch_reads_its_configuration_again(
    tmp_path: Path,
) -> None:
    """It is at the step's prolog."""
    methods = """
    def switch_p_reconfig(self):
        pass
    """
    ran = ran_with(
        tmp_path,
        methods,
        "programs: {/p: {runs: 20s}}\n"
        + timeline('at: 0s, as: alice, run: "srun -N1 true"', "at: 5s, run: scontrol reconfigure"),
        model="modern",
        conf="Prolog: /p",
    )
    read = ran.one("switch_p_reconfig", role="slurmd", node="n1")
    assert read.time_us // 1_000_000 == 5


@BOTH
def test_the_end_of_a_step_needs_each_report_of_it(model: str) -> None:
    """Of the node that has refused it, and of the other; the trace tells so."""
    ran = run(fault("switch_p_unpack_jobinfo role=slurmd node=n2"), model=model)
    reports = ran.all("REQUEST_STEP_COMPLETE", phase="receive", daemon="slurmctld")
    over = ran.one("switch_p_job_step_complete")
    assert len(reports) == 2
    assert isinstance(over.needs, tuple)
    assert {each.seq for each in reports} <= set(over.needs)
