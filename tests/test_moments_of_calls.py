"""At which moment the switch and the checkpoint plugin are called, and with what.

Where one thing is done just before another, a test here shows which is first, by what can be seen
inside the call, by what a failure prevents, or by what the causes of the trace prove.
"""

import textwrap
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.testing.before import assert_before
from tests.cluster import BATCH, STEP, TWO_NODES, Ran, fault, run

BOTH = pytest.mark.parametrize("model", ["guide", "modern"])

THREE_NODES = TWO_NODES.replace("n[1-2]", "n[1-3]")


def ran_with(
    folder: Path, methods: str, text: str, *, checkpoint: str = "", conf: str = "", **more: Any
) -> Ran:
    """Run a scenario with a switch plugin that has these *methods*, and one for checkpoints."""
    (folder / "mine.py").write_text(
        "from simctl.plugin import *\n"
        "from simctl.plugin import CheckpointPlugin, log, now, process\n"
        "from simctl.plugin import sleep, slurmctld, stepd\n\n\n"
        + _class("switch", methods)
        + _class("checkpoint", checkpoint)
    )
    also = more.pop("also", "./mine.py:OfCheckpoint")
    if "CheckpointType" not in conf:
        conf += ", CheckpointType: checkpoint/mine"
    keys = (
        f'plugins: ["./mine.py:OfSwitch", "{also}"]\n'
        f"slurm_conf: {{SwitchType: switch/mine, {conf.strip(', ')}}}\n"
    )
    return run(keys + text, folder=folder, **more)


def _class(kind: str, methods: str) -> str:
    return (
        f"class Of{kind.title()}({kind.title()}Plugin):\n"
        f"    plugin_type = '{kind}/mine'\n    plugin_name = 'a plugin of a test'\n"
        + textwrap.indent(textwrap.dedent(methods), "    ")
        + "\n\n"
    )


def timeline(*entries: str) -> str:
    """Return a timeline of entries, each without its braces."""
    return "timeline:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries)


def _to(event: Event) -> str:
    return str(event.args["to"]) if event.args is not UNSET else ""


def _text(event: Event) -> str:
    return str(event.args["error_msg"]) if event.args is not UNSET else ""


def said(ran: Ran) -> list[str]:
    """Return what the plugin has logged, in order."""
    return [each.args["text"] for each in ran.all("plugin_log") if each.args is not UNSET]


# Nodes that a job leaves, and nodes that are lost.

PARTS = """
def switch_p_part_comp(self):
    return True
def switch_p_job_step_part_comp(self, switch_job, nodelist):
    log.info(nodelist)
"""
SLOW_EPILOG = "programs:\n  /etc/epilog: {runs: 100s}\n  /etc/quick: {runs: 1s}\n"


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
    down = next(each for each in ran.all("node_state", args_node="n2") if "DOWN" in _to(each))
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


# What records are there.

SEES_JOBS = """
def slurm_ckpt_alloc_job(self):
    return ["a record"]
def slurm_ckpt_free_job(self, jobinfo):
    log.info(f"{jobinfo} " + " ".join(f"{job.job_id} {job.job_state}" for job in slurmctld.jobs()))
"""


@BOTH
def test_a_checkpoint_record_is_released_while_its_job_is_there(tmp_path: Path, model: str) -> None:
    """At its purge, and where a burst buffer plugin refuses it after it had its id."""
    ran = ran_with(
        tmp_path,
        "",
        timeline('at: 0s, as: alice, run: "sbatch --wrap true"'),
        checkpoint=SEES_JOBS,
        model=model,
    )
    assert said(ran) == ["['a record'] 1 COMPLETED"]
    ran = ran_with(
        tmp_path,
        "",
        timeline(
            "at: 0s, fault: {fail: bb_p_job_validate2}",
            'at: 1s, as: alice, run: "sbatch --wrap true"',
        ),
        checkpoint=SEES_JOBS,
        also='./mine.py:OfCheckpoint", "tests.staging_plugin:Staging',
        conf="BurstBufferType: burst_buffer/staging",
        model=model,
    )
    assert said(ran) == ["['a record'] 1 FAILED"]


@BOTH
def test_a_step_is_no_more_when_its_switch_hears_that_it_is_complete(
    tmp_path: Path, model: str
) -> None:
    """It is out of its job by then, and was in it when its job had already a state of its own."""
    methods = """
    def switch_p_job_step_complete(self, switch_job, nodelist):
        log.info(str(slurmctld.find_step(1, 0)))
    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        log.info(f"{slurmctld.find_job(1).job_state} {slurmctld.find_step(1, 0)}")
    """
    ran = ran_with(tmp_path, methods, STEP, model=model)
    assert said(ran) == ["RUNNING None", "None"]


# Time that passes in a call.


def test_a_call_of_no_frag_is_over_before_the_time_of_ended_jobs_is_looked_at(
    tmp_path: Path,
) -> None:
    """One that counts no more when the answer is there holds nobody."""
    methods = """
    async def switch_p_no_frag(self):
        if now() > 12:
            await sleep(40)
        return 1
    """
    ran = ran_with(
        tmp_path,
        methods,
        SLOW_EPILOG
        + timeline(
            "at: 0s, as: alice, run: \"sbatch --wrap 'sleep 10'\"",
            "at: 15s, as: alice, run: \"sbatch --wrap 'sleep 10'\"",
        ),
        conf="Epilog: /etc/epilog",
    )
    (asked,) = [each for each in ran.all("switch_p_no_frag") if 15e6 <= each.time_us < 100e6]
    started = ran.one("job_state", job=2, args_to="RUNNING")
    assert asked.time_us == started.time_us


def test_a_switch_that_minds_no_fragments_has_no_pass_made_for_them(tmp_path: Path) -> None:
    """No pass is due when the job that is ending would count no more."""
    ran = ran_with(
        tmp_path,
        "",
        SLOW_EPILOG
        + timeline(
            "at: 0s, as: alice, run: \"sbatch -N1 -w n1 --wrap 'sleep 10'\"",
            "at: 15s, as: alice, run: \"sbatch -N2 --wrap 'sleep 10'\"",
        ),
        conf="Epilog: /etc/epilog, SchedulerType: sched/builtin",
    )
    found = [each.time_us // 1_000_000 for each in ran.all("switch_p_no_frag")]
    assert found == [0, 15, 110]


def test_a_pass_that_is_held_is_over_and_another_may_be_asked_for(tmp_path: Path) -> None:
    """Who comes meanwhile has it run again; of an array nothing is split off before it goes on."""
    ran = ran_with(
        tmp_path,
        "def switch_p_no_frag(self):\n    return 1\n",
        SLOW_EPILOG
        + timeline(
            "at: 0s, as: alice, run: \"sbatch -N1 -w n1 --wrap 'sleep 10'\"",
            "at: 15s, as: alice, run: \"sbatch -N2 --wrap 'sleep 10'\"",
            "at: 25s, as: alice, run: \"sbatch -a 1-3 --bb=in=1 --wrap 'sleep 10'\"",
        ),
        conf="Epilog: /etc/epilog, BurstBufferType: burst_buffer/staging",
        also='./mine.py:OfCheckpoint", "tests.staging_plugin:Staging',
    )
    found = [each.time_us // 1_000_000 for each in ran.all("switch_p_no_frag")]
    assert found[:4] == [0, 15, 25, 42]
    assert ran.all("job_state", job=4)[0].time_us // 1_000_000 == 42


def test_a_step_ended_when_it_was_reported_however_long_its_switch_takes(tmp_path: Path) -> None:
    """Accounting has heard of it before the switch."""
    methods = """
    async def switch_p_job_step_complete(self, switch_job, nodelist):
        await sleep(7)
    """
    ran = ran_with(
        tmp_path,
        methods,
        timeline(
            "at: 0s, as: alice, run: \"sbatch --wrap 'srun sleep 10; sleep 20'\"",
            "at: 60s, as: alice, run: 'sacct -n -P -o JobID,Elapsed'",
        ),
    )
    assert "1.0|00:00:10\n" in ran.result.commands[1].stdout


def test_a_pass_for_nodes_that_are_free_early_is_called_off_by_what_is_known_after_the_next() -> (
    None
):
    """The pass that follows the last epilog has preempted another job, which is leaving nodes."""
    cluster = THREE_NODES.replace(
        "partitions:",
        'partitions:\n  - {name: low, nodes: "n[1-3]", priority_tier: 1}\n'
        '  - {name: high, nodes: "n[1-3]", priority_tier: 2}\n#',
    )
    ran = run(
        "slurm_conf: {Epilog: /etc/epilog, PreemptType: preempt/partition_prio,"
        " PreemptMode: CANCEL}\nprograms:\n  /etc/epilog: {runs: 1s}\n"
        + timeline(
            "at: 0s, as: alice, run: \"sbatch -p high -N2 -w n[1-2] --wrap 'sleep 20'\"",
            "at: 0s, as: alice, run: \"sbatch -p low -N1 --wrap 'sleep 1000'\"",
            "at: 5s, as: alice, run: \"sbatch -p high -N3 --wrap 'sleep 10'\"",
            'at: 5s, fault: {hang: "epilog node=n2", for: 3s}',
            'at: 5s, fault: {hang: "epilog node=n3", for: 100s}',
        ),
        cluster=cluster,
    )
    assert ran.job(2)[0] == "PREEMPTED"
    found = [each.time_us // 1_000_000 for each in ran.all("switch_p_no_frag")]
    assert found == [0, 5, 24, 30, 81, 90, 125]


@BOTH
def test_slurmctld_can_be_reached_until_it_has_saved_its_state(tmp_path: Path, model: str) -> None:
    """Who comes while it saves is not told that nobody is there, and waits for nothing."""
    methods = """
    async def switch_p_libstate_save(self, dir_name):
        await sleep(3)
    """
    text = timeline("at: 5s, run: scontrol shutdown", "at: 6s, as: alice, run: squeue")
    ran = ran_with(tmp_path, methods, text, model=model)
    assert "Socket timed out" in ran.stderr(1)


def test_plugins_are_loaded_and_let_go_in_the_order_of_slurm() -> None:
    """Model guide: slurmctld the checkpoint plugin first, a step daemon the switch."""
    ran = run(STEP)
    for role, node, loaded, let_go in (
        ("slurmctld", None, ["checkpoint", "switch"], ["switch", "checkpoint"]),
        ("manager", "n1", ["switch", "checkpoint"], ["checkpoint", "switch"]),
        ("manager", "n2", ["switch", "checkpoint"], ["checkpoint", "switch"]),
    ):
        for name, wanted in (("init", loaded), ("fini", let_go)):
            found = ran.all(name, kind="plugin", role=role, node=node)
            assert [str(each.plugin).partition("/")[0] for each in found] == wanted


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
    assert found == ["1.0|2:0", "1.1|2:0", "1.2|1:0", "1.3|15:36"]


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
        "files:\n  two.sh: |\n    #!/bin/sh\n    srun -N2 -n2 sleep 100\n"
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N2 two.sh"',
            "at: 5s, fault: {crash: n2}",
            "at: 200s, run: scancel 1",
        ),
        model=model,
    )
    over = ran.one("switch_p_job_step_complete")
    waits = next(
        each for each in ran.all("job_state") if _to(each) == "PENDING" and each.seq > over.seq
    )
    assert over.time_us == waits.time_us < 200_000_000
    assert ran.one("slurm_ckpt_free_job", step="1.0").seq < waits.seq


# A launch that fails.


def test_a_credential_that_no_record_is_made_for_is_not_built() -> None:
    """What has made none ends there: slurmctld."""
    ran = run(fault("switch_p_alloc_jobinfo role=slurmctld"))
    assert ran.one("switch_p_alloc_jobinfo", role="slurmctld").rc == -1
    assert not ran.all("switch_p_build_jobinfo")


def test_a_node_says_that_its_prolog_failed_before_the_credential_is_released() -> None:
    """A step that waited for the prolog: the answer, the registration, then the release."""
    ran = run(
        "slurm_conf: {Prolog: /etc/bad}\nprograms:\n  /etc/bad: {runs: 3s, exit: 1}\n"
        + timeline('at: 0s, as: alice, run: "srun -N1 sleep 10"')
    )
    released = ran.one("switch_p_free_jobinfo", role="slurmd")
    answer = ran.one(
        "RESPONSE_SLURM_RC", phase="send", role="slurmd", args_answers="REQUEST_LAUNCH_TASKS"
    )
    told = ran.all("MESSAGE_NODE_REGISTRATION_STATUS", phase="send", node="n1")[-1]
    assert answer.seq < told.seq < released.seq


@BOTH
def test_srun_releases_its_credential_before_it_gives_its_job_back(model: str) -> None:
    """And before its epilog runs."""
    ran = run(STEP.replace("sleep 10", "--epilog=/bin/true sleep 10"), model=model)
    released = ran.one("switch_p_free_jobinfo", role="srun")
    given = ran.one("REQUEST_COMPLETE_JOB_ALLOCATION", phase="send")
    assert ran.last("MESSAGE_TASK_EXIT", phase="receive") < released.seq < given.seq


def test_registrations_that_cannot_be_read_are_asked_for_three_times() -> None:
    """And it is not forgotten meanwhile that the node's slurmd has started anew."""
    lines = timeline(
        "at: 0s, as: alice, run: \"sbatch -w n2 --wrap 'sleep 1000'\"",
        "at: 10s, fault: {crash: n2}",
        "at: 15s, fault: {fail: switch_p_unpack_node_info, times: 2}",
        "at: 20s, fault: {start: n2}",
    )
    ran = run(lines)
    lost = next(each for each in ran.all("job_state") if _to(each) == "NODE_FAIL")
    assert lost.time_us // 1_000_000 == 200
    assert len(ran.all("invalid_message")) == 2
    for_ever = timeline(
        "at: 0s, as: alice, run: \"sbatch -w n1 --wrap 'sleep 3000'\"",
        "at: 10s, fault: {crash: n2}",
        "at: 15s, fault: {fail: switch_p_unpack_node_info, times: 9}",
        "at: 20s, fault: {start: n2}",
    )
    ran = run(for_ever)
    asked = ran.all("REQUEST_NODE_REGISTRATION_STATUS", phase="send", peer="slurmd@n2")
    assert [each.time_us // 1_000_000 for each in asked][:4] == [100, 200, 300, 2000]


def test_a_node_that_was_asked_to_register_does_not_try_again_by_itself() -> None:
    """Its first tries did not get through, and slurmctld was quicker than the next."""
    ran = run(
        timeline(
            "at: 0s, as: alice, run: \"sbatch -w n1 --wrap 'sleep 300'\"",
            "at: 0.1s, fault: {crash: n2}",
            "at: 0.2s, fault: {cut: [slurmctld, n2], for: 99.6s}",
            "at: 0.5s, fault: {start: n2}",
            "at: 94s, fault: {restart: slurmctld, for: 2s}",
        )
    )
    sent = ran.all("MESSAGE_NODE_REGISTRATION_STATUS", phase="send", node="n2")
    assert [each.time_us for each in sent] == [0, 500_000, 100_000_100]


@BOTH
@pytest.mark.parametrize("text", [STEP, BATCH], ids=["step", "script"])
def test_nonsense_that_is_put_into_an_environment_before_the_fork_prevents_it(
    tmp_path: Path, model: str, text: str
) -> None:
    """The environment is looked at after the call: no task begins."""
    methods = """
    def slurm_ckpt_stepd_prefork(self, slurmd_job):
        stepd.environment["X"] = 7
    """
    ran = ran_with(
        tmp_path, "", text, checkpoint=methods, model=model, conf="JobCheckpointDir: /shared/ckpt"
    )
    assert len(ran.all("plugin_error")) == len(ran.all("slurm_ckpt_stepd_prefork"))
    assert not ran.all("exec")


@BOTH
def test_an_allocation_that_is_refused_is_not_tried(model: str) -> None:
    """Its record is released, and srun says why."""
    ran = run(fault("slurm_ckpt_alloc_job"), model=model)
    assert ran.result.commands[0].exit == 1
    assert not ran.all("switch_p_alloc_jobinfo")
    answer = ran.one("RESPONSE_RESOURCE_ALLOCATION", phase="send")
    assert ran.one("slurm_ckpt_free_job").seq < answer.seq


@BOTH
def test_a_srun_that_waits_is_woken_when_a_lost_step_is_released(
    tmp_path: Path, model: str
) -> None:
    """Its switch and its checkpoint plugin are done with it by then."""
    text = (
        "files:\n  two.sh: |\n    #!/bin/sh\n"
        + "    srun -N1 -n4 --exclusive sleep 60 &\n" * 2
        + "    wait\n"
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N1 -n4 two.sh"',
            'at: 5s, fault: {fail: "switch_p_unpack_jobinfo daemon=slurmctld"}',
            "at: 10s, fault: {restart: slurmctld, for: 5s}",
        )
    )
    ran = run(text, model=model)
    freed = ran.one("slurm_ckpt_free_job", step="1.0")
    woken = ran.one("SRUN_STEP_SIGNAL", phase="send")
    assert freed.seq < woken.seq
    assert freed.time_us == woken.time_us


def test_a_script_of_roots_becomes_nobody() -> None:
    """It is root's already; and so is one that srun starts its user's."""
    ran = run(
        "slurm_conf: {Prolog: /etc/prolog}\nprograms:\n  /etc/prolog: {runs: 1s}\n"
        + timeline('at: 0s, as: alice, run: "srun -N1 --prolog=/bin/true true"')
    )
    assert len(ran.all("exec")) == 3
    assert ran.one("become_user").role == "session"


@BOTH
def test_slurmd_leaves_its_interconnect_when_what_it_had_begun_is_through(model: str) -> None:
    """It is stopped while a prolog runs: the launch that waits for it is made before node_fini."""
    ran = run(
        "slurm_conf: {Prolog: /etc/prolog}\nprograms:\n  /etc/prolog: {runs: 3s}\n"
        + timeline(
            'at: 0s, as: alice, run: "srun -N1 sleep 5"',
            'at: 1s, fault: {stop: "slurmd@n1"}',
            'at: 20s, fault: {start: "slurmd@n1"}',
        ),
        model=model,
    )
    left, answer = (
        ran.all("switch_p_node_fini", node="n1")[0],
        ran.one("RESPONSE_SLURM_RC", role="slurmd", args_answers="REQUEST_LAUNCH_TASKS"),
    )
    assert answer.seq < left.seq
    assert answer.time_us // 1_000_000 == 3


def test_whoever_asked_slurmd_for_something_hears_of_its_end_when_its_plugin_is_unloaded(
    tmp_path: Path,
) -> None:
    """A launch whose prolog does not end: slurmd waits two minutes, then runs fini, then leaves."""
    methods = """
    async def fini(self):
        if process().role == "slurmd":
            await sleep(10)
    """
    ran = ran_with(
        tmp_path,
        methods,
        "programs:\n  /etc/prolog: {runs: 1000s}\n"
        + timeline(
            'at: 0s, as: alice, run: "srun -N1 sleep 5"',
            'at: 1s, fault: {stop: "slurmd@n1"}',
            'at: 200s, fault: {start: "slurmd@n1"}',
        ),
        conf="Prolog: /etc/prolog",
        # Nobody releases the credential of a launch that is never made.
        orderings=False,
    )
    over = ran.all("REQUEST_STEP_COMPLETE", phase="send")[0]
    unloaded = ran.all("fini", daemon="slurmd", node="n1")[0]
    assert ran.all("switch_p_node_fini", node="n1")[0].time_us == 121_000_000
    assert unloaded.time_us == over.time_us == 131_000_000
    assert unloaded.seq < over.seq


# Reports of checkpoints.


@BOTH
def test_a_report_is_about_the_task_and_the_step_that_it_names(tmp_path: Path, model: str) -> None:
    """One that names no step is about the first."""
    methods = """
    async def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        from simctl.plugin import rpc
        if rank == 1:
            await rpc.slurm_checkpoint_complete(1, 1, 7, 5, "text")
            await rpc.slurm_checkpoint_complete(1, 4294967294, 7, 5, "of no step")
            await rpc.slurm_checkpoint_task_complete(1, 1, 1, 7, 6, "more")
    """
    ran = ran_with(
        tmp_path,
        methods,
        "files:\n  two.sh: |\n    #!/bin/sh\n    srun -n1 sleep 60 &\n    srun -n2 sleep 5\n"
        + timeline('at: 0s, as: alice, run: "sbatch -N1 -n4 two.sh"'),
        checkpoint="""
        def slurm_ckpt_task_comp(self, step_ptr, task_id, event_time, error_code, error_msg):
            return 0
        """,
        model=model,
    )
    step, first = ran.all("slurm_ckpt_comp")
    task = ran.one("slurm_ckpt_task_comp")
    assert step.args == {
        "step_ptr": "step 1.1",
        "event_time": 7,
        "error_code": 5,
        "error_msg": "text",
    }
    assert (first.step, _text(first)) == ("1.0", "of no step")
    assert task.args == {
        "step_ptr": "step 1.1",
        "task_id": 1,
        "event_time": 7,
        "error_code": 6,
        "error_msg": "more",
    }


# Suspended steps.

TELLS_STEPS = """
async def _told(self, what):
    log.info(what)
    await sleep(5)
async def switch_p_job_step_pre_suspend(self, slurmd_job):
    await self._told("pre suspend")
async def switch_p_job_step_post_suspend(self, slurmd_job):
    await self._told("post suspend")
async def switch_p_job_step_pre_resume(self, slurmd_job):
    await self._told("pre resume")
async def switch_p_job_step_post_resume(self, slurmd_job):
    await self._told("post resume")
"""


def suspended(folder: Path, methods: str, *more: str, pauses: str = "10 40") -> Ran:
    """Run a step of a job that is suspended at one moment and resumed at the other."""
    begin, end = pauses.split()
    return ran_with(
        folder,
        methods,
        "programs:\n  ./app: {runs: 100s, on_signal: {USR1: ignore}}\n"
        + timeline(
            'at: 0s, as: alice, run: "srun -N1 ./app"',
            f"at: {begin}s, run: scontrol suspend 1",
            f"at: {end}s, run: scontrol resume 1",
            *more,
        ),
        model="modern",
    )


def test_tasks_are_signalled_between_what_the_switch_is_told_before_and_after(
    tmp_path: Path,
) -> None:
    """SIGTSTP, two seconds, SIGSTOP; and SIGCONT."""
    ran = suspended(tmp_path, TELLS_STEPS)
    found = [
        f"{event.time_us // 1_000_000} "
        + str(event.args["text"] if event.kind == "log" else event.args["signal"])
        for event in ran.events
        if event.args is not UNSET and event.name in ("plugin_log", "signal")
    ]
    assert found == [
        *("10 pre suspend", "15 20", "17 19", "17 post suspend"),
        *("40 pre resume", "45 18", "45 post resume"),
    ]


def test_signals_are_refused_from_the_stop_until_the_tasks_go_on(tmp_path: Path) -> None:
    """Told that a step is stopped, the switch may rely on it; told that it goes on, as well."""
    for pauses, moments, delivered in (("10 40", (42, 46), [46]), ("10 11", (14, 19, 24), [14])):
        ran = suspended(
            tmp_path,
            TELLS_STEPS,
            *(f'at: {each}s, as: alice, run: "scancel -s USR1 1.0"' for each in moments),
            pauses=pauses,
        )
        found = ran.all("signal", args_signal=10)
        assert [event.time_us // 1_000_000 for event in found] == delivered


INFO_GET = """
async def switch_p_job_suspend_info_get(self, switch_job, suspend_info):
    await sleep(10)
    return 1
"""


def test_a_job_is_suspended_from_when_the_switch_has_told_what_its_nodes_are_told(
    tmp_path: Path,
) -> None:
    """Its nodes are given back before; its clock stands still from the end of the call on."""
    ran = suspended(
        tmp_path,
        INFO_GET,
        "at: 30s, run: scontrol show job 1",
        "at: 60s, run: scontrol show job 1",
    )
    stopped, resumed = (each.stdout for each in ran.result.commands[3:])
    assert "RunTime=00:00:20 " in stopped
    assert "SuspendTime=2026-01-01T00:00:20 SecsPreSuspend=20" in stopped
    assert "RunTime=00:00:30 " in resumed
    told = ran.all("switch_p_job_suspend_info_get")
    states = [
        (_to(each), told[place].enter < each.seq, told[place].seq < each.seq)  # type: ignore[operator]
        for place, at in enumerate((10, 40))
        for each in ran.events
        if each.name in ("node_state", "job_state") and at <= each.time_us / 1e6 <= at + 11
    ]
    assert states == [
        *(("IDLE", False, False), ("SUSPENDED", True, True)),
        *(("ALLOCATED", False, False), ("RUNNING", True, True)),
    ]


def test_a_job_is_suspended_only_if_each_of_its_steps_may_be(tmp_path: Path) -> None:
    """Not if the second may not: nothing is told, and whoever asked is."""
    methods = """
    def switch_p_alloc_jobinfo(self):
        return [now()]
    def switch_p_job_suspend_test(self, switch_job):
        if switch_job[0] > 1:
            raise SlurmError(22)
    """
    ran = ran_with(
        tmp_path,
        methods,
        "files:\n  two.sh: |\n    #!/bin/sh\n"
        "    srun -n1 sleep 60 &\n    sleep 3\n    srun -n1 sleep 60\n"
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N1 -n2 two.sh"',
            "at: 2s, run: scontrol suspend 1",
            "at: 2.5s, run: scontrol resume 1",
            "at: 10s, run: scontrol suspend 1",
        ),
        model="modern",
    )
    assert [each.exit for each in ran.result.commands] == [0, 0, 0, 1]
    assert len([each for each in ran.all("job_state") if _to(each) == "SUSPENDED"]) == 1


def test_a_pass_follows_the_suspension_and_not_the_request(tmp_path: Path) -> None:
    """Who came while the switch told what nodes are told is looked at in that pass."""
    step = "sbatch -N1 -w n{} --wrap 'srun sleep 100'"
    ran = ran_with(
        tmp_path,
        INFO_GET,
        timeline(
            f'at: 0s, as: alice, run: "{step.format(1)}"',
            f'at: 0s, as: alice, run: "{step.format(2)}"',
            "at: 5s, as: alice, run: \"sbatch -N2 --wrap 'sleep 100'\"",
            "at: 9s, run: scontrol suspend 1",
            "at: 12s, run: \"sbatch -N1 --priority=4294967290 --wrap 'sleep 20'\"",
            "at: 90s, run: scontrol resume 1",
        ),
        model="modern",
    )
    started = ran.one("job_state", job=4, args_to="RUNNING")
    assert started.time_us // 1_000_000 == 19


def test_the_switch_is_not_asked_about_a_job_that_cannot_go_on(tmp_path: Path) -> None:
    """Others have its nodes: whoever wants it resumed is told, and nothing else happens."""
    methods = INFO_GET.replace("await sleep(10)", "pass")
    ran = suspended(tmp_path, methods, "at: 12s, as: bob, run: 'srun -N2 sleep 60'")
    assert "nodes are busy" in ran.stderr(2)
    assert len(ran.all("switch_p_job_suspend_info_get")) == 1


# A restart.


def test_the_switch_hears_of_no_step_whose_checkpoint_record_is_lost(tmp_path: Path) -> None:
    """Both its records are read before job_step_allocated tells of it."""
    methods = """
    def switch_p_job_step_allocated(self, switch_job, nodelist):
        log.info(nodelist)
    """
    lines = [
        'at: 0s, as: alice, run: "srun -N2 sleep 60"',
        "at: 2s, fault: {restart: slurmctld, for: 1s}",
    ]
    lost = 'at: 1s, fault: {fail: "slurm_ckpt_unpack_job step=1.0"}'
    ran = ran_with(tmp_path, methods, timeline(*lines), model="modern")
    assert said(ran) == ["n[1-2]"]
    ran = ran_with(tmp_path, methods, timeline(lines[0], lost, lines[1]), model="modern")
    assert said(ran) == []
    assert ran.one("incomplete_state").step == "1.0"


def test_the_switch_hears_of_the_nodes_of_each_step_that_was_found(tmp_path: Path) -> None:
    """Not of those of its job."""
    methods = """
    def switch_p_job_step_allocated(self, switch_job, nodelist):
        log.info(nodelist)
    """
    text = (
        "files:\n  two.sh: |\n    #!/bin/sh\n    srun -N2 sleep 60 &\n    srun -N1 -w n2 sleep 60\n"
    )
    ran = ran_with(
        tmp_path,
        methods,
        text
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N2 two.sh"',
            "at: 2s, fault: {restart: slurmctld, for: 1s}",
        ),
        model="modern",
    )
    assert said(ran) == ["n[1-2]", "n2"]


@BOTH
def test_what_plugins_keep_of_jobs_and_steps_is_saved_and_restored_whole(model: str) -> None:
    """Of every step, and of a job that is over and not forgotten yet; by one version of Slurm's."""
    text = "files:\n  two.sh: |\n    #!/bin/sh\n    srun -N2 sleep 60 &\n    srun -N1 sleep 60\n"
    lines = timeline(
        "at: 0s, as: alice, run: \"sbatch --wrap 'true'\"",
        'at: 1s, as: alice, run: "sbatch -N2 two.sh"',
        "at: 9s, fault: {restart: slurmctld, for: 1s}",
    )
    ran = run(text + lines, model=model)
    for way in ("pack", "unpack"):
        records = ran.all(f"slurm_ckpt_{way}_job", args_protocol_version=18 << 8 | 8)
        about = [each.step if each.step is not UNSET else each.job for each in records]
        assert about[:4] == [1, 2, "2.0", "2.1"]
        at_9_s = ran.all(f"switch_p_{way}_jobinfo", role="slurmctld")
        assert {"2.0", "2.1"} <= {each.step for each in at_9_s if each.time_us >= 9e6}


@BOTH
def test_a_record_that_cannot_be_read_is_released_as_one_that_can(
    tmp_path: Path, model: str
) -> None:
    """The job goes on with it, empty as it is."""
    ran = ran_with(
        tmp_path,
        "",
        timeline(
            "at: 0s, as: alice, run: \"sbatch --wrap 'sleep 60'\"",
            'at: 1s, fault: {fail: "slurm_ckpt_unpack_job job=1"}',
            "at: 9s, fault: {restart: slurmctld, for: 1s}",
        ),
        checkpoint=SEES_JOBS,
        model=model,
    )
    assert ran.one("incomplete_state").job == 1
    assert said(ran) == ["['a record'] 1 COMPLETED"]


# What is answered.

TAKES_TWO = """
def switch_p_job_suspend_info_unpack(self, buffer):
    self.times = getattr(self, "times", 0) + 1
    if self.times in {}:
        raise SlurmError(22)
    return 7
"""


def answers(ran: Ran, rpc: str) -> list[int]:
    """Return the codes with which step daemons answer a request."""
    found = ran.all("RESPONSE_SLURM_RC", phase="send", role="manager", args_answers=rpc)
    return [each.args["return_code"] for each in found if each.args is not UNSET]


def test_a_step_that_is_not_suspended_says_so_when_it_is_to_go_on(tmp_path: Path) -> None:
    """The switch could not read that it was to be suspended; it can read that it is resumed."""
    text = timeline(
        'at: 0s, as: alice, run: "srun -N1 sleep 60"',
        "at: 10s, run: scontrol suspend 1",
        "at: 20s, run: scontrol resume 1",
    )
    ran = ran_with(tmp_path, TAKES_TWO.format("(1,)") + TELLS_STEPS, text, model="modern")
    assert answers(ran, "REQUEST_STEP_RESUME") == [4029]
    assert said(ran) == []


def test_a_step_that_is_suspended_says_so_when_it_is_to_be_again(tmp_path: Path) -> None:
    """The switch could not read that it was resumed in between."""
    text = timeline(
        'at: 0s, as: alice, run: "srun -N1 sleep 60"',
        "at: 10s, run: scontrol suspend 1",
        "at: 20s, run: scontrol resume 1",
        "at: 30s, run: scontrol suspend 1",
        "at: 40s, run: scontrol resume 1",
    )
    ran = ran_with(tmp_path, TAKES_TWO.format("(2,)") + TELLS_STEPS, text, model="modern")
    assert answers(ran, "REQUEST_STEP_SUSPEND") == [0, 4028]
    assert said(ran) == ["pre suspend", "post suspend", "pre resume", "post resume"]
    assert ran.job()[0] == "COMPLETED"


def test_an_errno_that_cannot_be_asked_for_is_none(tmp_path: Path) -> None:
    """get_errno fails as well: what it fails with is not what the call failed with."""
    methods = """
    def switch_p_job_suspend_test(self, switch_job):
        raise SlurmError(22)
    def switch_p_get_errno(self):
        raise SlurmError(2)
    """
    text = timeline(
        'at: 0s, as: alice, run: "srun -N1 sleep 60"', "at: 10s, run: scontrol suspend 1"
    )
    ran = ran_with(tmp_path, methods, text, model="modern")
    answer = ran.one("RESPONSE_SLURM_RC", phase="send", args_answers="REQUEST_SUSPEND")
    assert answer.args is not UNSET
    assert answer.args["return_code"] == -1


@BOTH
def test_srun_that_cannot_open_its_output_ends_with_1(model: str) -> None:
    """The step it has made is reported over, and so is its job."""
    ran = run(STEP.replace("sleep 10", "-o /nope/x sleep 10"), model=model)
    assert ran.result.commands[0].exit == 1
    assert ran.job()[:2] == ("FAILED", "1:0")


def test_a_plugin_without_a_function_is_not_called_for_it(tmp_path: Path) -> None:
    """task_comp may be missing: whoever reports that a task is saved hears that it is so."""
    (tmp_path / "without.py").write_text(
        "from simctl.plugin import *\n\n\nclass Without:\n"
        "    plugin_type = 'checkpoint/without'\n    plugin_name = 'has no task_comp'\n\n\n"
        "for name, stub in vars(CheckpointPlugin).items():\n"
        "    if name.startswith('slurm_ckpt_') and name != 'slurm_ckpt_task_comp':\n"
        "        setattr(Without, name, stub)\n"
    )
    methods = """
    async def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        from simctl.plugin import rpc
        await rpc.slurm_checkpoint_task_complete(1, 0, 0, 0, 0, "")
        log.info(str(rpc.slurm_get_errno()))
    """
    ran = ran_with(
        tmp_path,
        methods,
        timeline('at: 0s, as: alice, run: "srun -N1 true"'),
        also="./without.py:Without",
        conf="CheckpointType: checkpoint/without",
    )
    assert said(ran) == ["2036"]
    assert not ran.all("slurm_ckpt_task_comp")
