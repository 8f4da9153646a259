"""Who waits for whose word: slurmd for its step daemon's, a step daemon for its srun's."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from msgspec import UNSET

from simctl.orderings.checking import declared
from simctl.orderings.observed import arg
from simctl.stepd.outcome import own_last, patience_us
from tests.cluster import Ran, run
from tests.damaged import Damage, changed, dropped, everywhere, moved, together, told, without
from tests.moments import BOTH, THREE_NODES, ran_with, timeline

MILLISECOND = 1000
PATIENCE_MS = 2300
"""How long a srun that does not answer is told something."""

SLOW_STEP_INIT = """
async def switch_p_slurmd_step_init(self):
    if process().hostname == "n2":
        await sleep(5)
"""
KILLED_MS = 1000
KILLED_SRUN = """\
files:
  killed.sh: |
    #!/bin/sh
    srun -N2 sleep 30 &
    sleep 1
    kill -9 $!
    sleep 5
"""


def ms(ran: Ran, name: str, **fields: object) -> list[int]:
    """Return when something happened, in whole milliseconds."""
    return [event.time_us // MILLISECOND for event in ran.all(name, **fields)]


def reports(ran: Ran, **fields: object) -> list[int]:
    """Return when step daemons reported the end of their step."""
    return ms(ran, "REQUEST_STEP_COMPLETE", phase="send", role="manager", **fields)


# slurmd and the step daemon.


def test_slurmd_answers_and_lets_go_of_its_copy_once_the_step_daemon_is_there() -> None:
    """The daemon has loaded its switch plugin and has read what it is to do; on each node."""
    ran = run(timeline("at: 0s, as: alice, run: srun -N2 -n4 sleep 1"), model="modern")
    for node in ("n1", "n2"):
        loaded = ran.first("init", node=node, role="manager", plugin="switch/none")
        said = ran.last("switch_p_unpack_jobinfo", node=node, role="manager")
        answered = ran.first("RESPONSE_SLURM_RC", node=node, role="slurmd", phase="send")
        freed = ran.one("switch_p_free_jobinfo", node=node, role="slurmd").seq
        assert loaded < said < answered < freed


def test_a_slow_step_daemon_keeps_srun_waiting_and_slurmd_free(tmp_path: Path) -> None:
    """It waits in a thread of the launch: others are seen to meanwhile."""
    lines = timeline(
        "at: 0s, as: alice, run: srun -N2 sleep 20",
        "at: 1s, as: alice, run: srun -w n2 -N1 sleep 1",
    )
    conf = "SelectType: select/cons_tres, SelectTypeParameters: CR_CPU"
    ran = ran_with(tmp_path, SLOW_STEP_INIT, lines, conf=conf, model="modern")
    answers = [
        event.time_us // MILLISECOND
        for event in ran.all("RESPONSE_SLURM_RC", role="slurmd", node="n2", phase="send")
        if event.args["answers"] == "REQUEST_LAUNCH_TASKS"  # type: ignore[index]
    ]
    assert answers == ms(ran, "switch_p_free_jobinfo", role="slurmd", node="n2") == [5000, 6000]
    assert ms(ran, "REQUEST_LAUNCH_TASKS", phase="receive", node="n2") == [0, 1000]


@pytest.mark.parametrize("crash", ["stepd 1.0@n2", "slurmd@n2"])
def test_a_launch_that_ends_before_the_step_daemon_is_there_has_failed(
    tmp_path: Path, crash: str
) -> None:
    """Its slurmd says so, or breaks the connection with its own end; nothing is kept."""
    lines = timeline(
        "at: 0s, as: alice, run: srun -N2 sleep 20",
        f"at: 2s, fault: {{crash: {crash}}}",
    )
    ran = ran_with(tmp_path, SLOW_STEP_INIT, lines, model="modern")
    assert "Task launch for StepId=1.0 failed on node n2" in ran.stderr()
    freed = ms(ran, "switch_p_free_jobinfo", role="slurmd", node="n2")
    assert freed == ([2000] if "stepd" in crash else [])
    assert ran.job()[0] == "FAILED"


def test_a_step_daemon_is_there_though_its_credential_cannot_be_read(tmp_path: Path) -> None:
    """What is wrong with it srun is told by the daemon itself."""
    methods = "def switch_p_unpack_jobinfo(self, switch_job, buffer):\n"
    methods += "    return SLURM_ERROR if process().role == 'manager' else SLURM_SUCCESS\n"
    ran = ran_with(
        tmp_path, methods, timeline("at: 0s, as: alice, run: srun -N1 sleep 1"), model="modern"
    )
    answer = ran.one("RESPONSE_SLURM_RC", role="slurmd", phase="send", job=1, step="1.0")
    assert answer.args["return_code"] == 0  # type: ignore[index]
    assert len(ran.all("switch_p_free_jobinfo", role="slurmd")) == 1
    assert ran.one("RESPONSE_LAUNCH_TASKS", phase="receive").args["return_code"] != 0  # type: ignore[index]


# A step daemon and its srun.


@pytest.mark.parametrize(
    ("nodes", "patience_ms"),
    [(1, 2300), (1023, 2300), (1024, 3100), (2047, 3100), (2048, 3900)],
)
def test_how_long_srun_is_looked_for(nodes: int, patience_ms: int) -> None:
    """Six tries, and one more, 0.8 s later, for each 1024 nodes."""
    assert patience_us(nodes) == patience_ms * MILLISECOND


ENDS = {
    "by themselves": (),
    "by scancel of the step": ("at: 5s, as: alice, run: scancel 1.0",),
    "by scancel": ("at: 5s, as: alice, run: scancel 1",),
    "by a crash": ("at: 5s, fault: {crash: task 1.0.1}",),
    "by requeue": ("at: 5s, run: scontrol requeue 1", "at: 9s, run: scancel 1"),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_step_is_reported_over_once_srun_has_acknowledged_all(how: str) -> None:
    """On each node, however the tasks end: that of the launch first, then that of the ends."""
    batch = "at: 0s, as: alice, run: \"sbatch -N2 --wrap 'srun -N2 -n4 sleep 10'\""
    ran = run(timeline(batch, *ENDS[how]), model="modern")
    for node in ("n1", "n2"):
        heard = [
            (event.args["answers"], event.seq)  # type: ignore[index]
            for event in ran.all("RESPONSE_SLURM_RC", phase="receive", node=node, role="manager")
            if event.peer == "srun@n1"
        ]
        names = [name for name, _ in heard]
        assert names[0] == "RESPONSE_LAUNCH_TASKS"
        assert set(names[1:]) == {"MESSAGE_TASK_EXIT"}
        sent = ran.first("REQUEST_STEP_COMPLETE", phase="send", node=node, role="manager")
        assert heard[-1][1] < sent


def test_a_dead_srun_costs_a_step_daemon_its_patience() -> None:
    """All wait at the same time; the job is COMPLETING and its nodes are busy that long."""
    ran = run(
        KILLED_SRUN + timeline("at: 0s, as: alice, run: sbatch -N2 killed.sh"),
        model="modern",
    )
    told = ms(ran, "MESSAGE_TASK_EXIT", phase="send")
    assert told == [KILLED_MS] * 2
    assert reports(ran) == [KILLED_MS + PATIENCE_MS] * 2
    assert not ran.all("MESSAGE_TASK_EXIT", phase="receive")
    over = ran.one("switch_p_job_step_complete")
    assert over.time_us // MILLISECOND == KILLED_MS + PATIENCE_MS
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize(("timeout_s", "waits_ms"), [(1, 2300), (2, 2300), (3, 3000)])
@pytest.mark.parametrize(
    "silent", ["fault: {cut: [n2, n1], for: 60s}", "run: scontrol suspend 1"], ids=["cut", "frozen"]
)
def test_an_srun_that_cannot_answer_is_waited_for_no_shorter_than_a_dead_one(
    silent: str, timeout_s: int, waits_ms: int
) -> None:
    """That is MessageTimeout, or as long as the daemon tries if MessageTimeout is shorter."""
    ran = run(
        f"slurm_conf: {{MessageTimeout: {timeout_s}}}\n"
        + timeline(
            "at: 0s, as: alice, run: \"sbatch -N2 --wrap 'srun -N2 sleep 5'\"",
            f"at: 2s, {silent}",
            "at: 5s, fault: {crash: task 1.0.1}",
            "at: 60s, run: scontrol resume 1",
        ),
        model="modern",
    )
    told = ms(ran, "MESSAGE_TASK_EXIT", phase="send", node="n2")
    assert reports(ran, node="n2")[0] == told[0] + waits_ms


def test_a_node_is_busy_while_its_step_daemon_looks_for_a_dead_srun() -> None:
    """The job that waits for it starts only then."""
    lines = timeline(
        "at: 0s, as: alice, run: sbatch -N2 killed.sh",
        "at: 1s, as: alice, run: sbatch -N2 --wrap true",
        "at: 2s, as: alice, run: scancel 1",
    )
    ran = run(KILLED_SRUN + lines, model="modern")
    assert ms(ran, "job_state", job=1, args_to="CANCELLED|COMPLETING") == [2000]
    assert ms(ran, "job_state", job=1, args_to="CANCELLED") == [KILLED_MS + PATIENCE_MS]
    assert ms(ran, "job_state", job=2, args_to="RUNNING") == [KILLED_MS + PATIENCE_MS]


def test_daemons_of_a_tree_look_for_a_dead_srun_all_at_once() -> None:
    """Whoever waits for others below has waited by then: the levels add nothing."""
    lines = timeline("at: 0s, as: alice, run: sbatch -N7 killed.sh")
    ran = run(
        "slurm_conf: {TreeWidth: 2}\n" + KILLED_SRUN.replace("-N2", "-N7") + lines,
        cluster=THREE_NODES.replace("n[1-3]", "n[1-7]"),
        model="modern",
    )
    assert reports(ran) == [KILLED_MS + PATIENCE_MS] * 7
    last = ran.all("REQUEST_STEP_COMPLETE", phase="receive", daemon="slurmctld")
    assert [(e.args["range_first"], e.args["range_last"]) for e in last] == [(0, 6)]  # type: ignore[index]


def test_a_slurmd_that_starts_again_while_srun_is_looked_for_changes_nothing() -> None:
    """The report goes up through whichever slurmd is there."""
    lines = timeline(
        "at: 0s, as: alice, run: sbatch -N2 killed.sh",
        "at: 2s, fault: {crash: slurmd@n1}",
        "at: 2500ms, fault: {start: slurmd@n1}",
    )
    ran = run(KILLED_SRUN + lines, model="modern")
    assert ms(ran, "switch_p_job_step_complete") == [KILLED_MS + PATIENCE_MS]


def test_a_batch_script_has_no_srun_to_wait_for() -> None:
    """Its end is reported at once."""
    ran = run(timeline("at: 0s, as: alice, run: sbatch --wrap 'sleep 5'"), model="modern")
    assert ms(ran, "REQUEST_COMPLETE_BATCH_SCRIPT", phase="send") == [5000]


def test_a_step_is_gone_when_the_next_command_of_its_script_looks() -> None:
    """Its srun takes a moment to close its connections, in which the tree reports the end."""
    script = "srun -N3 sleep 1; squeue -s -h; srun -N3 sleep 1"
    ran = run(
        timeline(f"at: 0s, as: alice, run: \"sbatch -N3 --wrap '{script}'\""),
        cluster=THREE_NODES,
        model="modern",
    )
    first = ran.one("switch_p_job_step_complete", step="1.0").seq
    assert first < ran.first("switch_p_build_jobinfo", step="1.1")
    last = ran.one("switch_p_job_step_complete", step="1.1").seq
    assert last < ran.first("job_state", args_to="COMPLETED|COMPLETING")
    assert "1.0" not in str(ran.world.disk.read("slurm-1.out", "/home/alice", host="n1"))


# Ranges.


@pytest.mark.parametrize(
    ("runs", "reported"),
    [
        ([(0, 0)], [(0, 0)]),
        ([(0, 3)], [(0, 3)]),
        ([(0, 0), (2, 2)], [(2, 2), (0, 0)]),
        ([(0, 1), (3, 3)], [(0, 1), (3, 3)]),
        ([(0, 0), (2, 2), (4, 5)], [(2, 2), (4, 5), (0, 0)]),
        ([(2, 2)], [(2, 2)]),
        ([], []),
    ],
)
def test_ranges_of_children_come_before_the_own_rank_alone(
    runs: list[tuple[int, int]], reported: list[tuple[int, int]]
) -> None:
    """With its first child's it is one range, and the first."""
    assert own_last(runs) == reported


@BOTH
def test_a_parent_with_a_gap_reports_its_own_rank_last(model: str) -> None:
    """Those in the middle of the tree have one; the root has heard of its first child."""
    ran = run(
        "slurm_conf: {TreeWidth: 2, SlurmdTimeout: 0}\n"
        + timeline(
            "at: 0s, as: alice, run: srun -N7 -n7 sleep 5",
            "at: 2s, fault: {crash: stepd 1.0@n3}",
            "at: 2s, fault: {crash: stepd 1.0@n6}",
            "at: 200s, as: alice, run: scancel 1",
        ),
        cluster=THREE_NODES.replace("n[1-3]", "n[1-7]"),
        model=model,
    )

    def told(node: str) -> list[tuple[int, int]]:
        sent = ran.all("REQUEST_STEP_COMPLETE", phase="send", role="manager", node=node)
        return [(e.args["range_first"], e.args["range_last"]) for e in sent]  # type: ignore[index]

    assert told("n2") == [(3, 3), (1, 1)]
    assert told("n5") == [(6, 6), (4, 4)]
    assert told("n1") == [(0, 1), (3, 4), (6, 6)]


# The rules.

_BUSY = timeline(
    "at: 0s, as: alice, run: \"sbatch -N2 --wrap 'srun -N2 -n2 sleep 2'\"",
    "at: 60s, as: alice, run: srun -N3 -n3 sleep 5",
    "at: 62s, fault: {crash: stepd 2.0@n2}",
    "at: 200s, as: alice, run: scancel 2",
    "at: 210s, as: alice, run: \"sbatch --array=0-3%1 --wrap 'sleep 9'\"",
    "at: 212s, as: alice, run: scancel 3",
)
"""A step that ends well, one with a gap in its tree, and an array that is cancelled."""

_OF_N1 = "step=1.0 node=n1"
_REPORT = "REQUEST_STEP_COMPLETE step=2.0 node=n1 role=manager"
_HELD = "the rule was kept"
_NEVER_THERE = without(
    f"init {_OF_N1} role=manager", f"switch_p_slurmd_step_init {_OF_N1} role=manager"
)
_N1_BEFORE = moved(
    "node_state args.node=n1 args.from=IDLE|COMPLETING", before="job_state job=1 args.to=COMPLETED"
)
_REST_LAST = moved(
    "job_state job=3 args.to=CANCELLED", after="job_state job=4 args.to=CANCELLED|COMPLETING"
)
_CASES: list[tuple[str, str, Damage, str]] = [
    (
        "launch-answered-once-handed-over",
        "modern",
        moved(f"switch_p_free_jobinfo {_OF_N1} role=slurmd", before=f"init {_OF_N1} role=manager"),
        "switch_p_free_jobinfo came before its init",
    ),
    (
        "launch-answered-once-handed-over",
        "modern",
        moved(
            f"RESPONSE_SLURM_RC {_OF_N1} role=slurmd phase=send",
            before=f"switch_p_slurmd_step_init {_OF_N1}",
        ),
        "RESPONSE_SLURM_RC came before its switch_p_slurmd_step_init",
    ),
    (
        "srun-heard-before-step-end",
        "modern",
        dropped(f"RESPONSE_SLURM_RC {_OF_N1} role=manager args.answers=MESSAGE_TASK_EXIT"),
        "srun had not acknowledged MESSAGE_TASK_EXIT",
    ),
    (
        "srun-heard-before-step-end",
        "modern",
        moved(
            "RESPONSE_SLURM_RC step=1.0 node=n2 role=manager args.answers=RESPONSE_LAUNCH_TASKS",
            after="REQUEST_STEP_COMPLETE step=1.0 node=n2 role=manager phase=send",
        ),
        "srun had not acknowledged RESPONSE_LAUNCH_TASKS",
    ),
    (
        "children-reported-before-own-rank",
        "guide modern",
        moved(f"{_REPORT} phase=send args.range_first=0", before=f"{_REPORT} phase=send"),
        "its own rank came before its children's",
    ),
    (
        "children-reported-before-own-rank",
        "guide modern",
        changed(f"{_REPORT} phase=receive args.range_first=2", args_range_first=1),
        "its first child had reported, and was left out",
    ),
    (
        "job-over-before-its-last-node",
        "guide modern",
        _N1_BEFORE,
        "n1 was free of it before job_state",
    ),
    (
        "job-over-before-its-last-node",
        "guide modern",
        moved(
            "node_state args.node=n3 args.from=IDLE|COMPLETING",
            before="switch_p_job_step_complete step=2.0",
        ),
        "n3 was free of it before job_state",
    ),
    (
        "array-cancelled-from-its-rest",
        "guide modern",
        _REST_LAST,
        "a task was ended before those that wait",
    ),
    (
        "launch-answered-once-handed-over",
        "modern",
        _NEVER_THERE,
        "RESPONSE_SLURM_RC came before it was there",
    ),
    (
        "launch-answered-once-handed-over",
        "modern",
        together(_NEVER_THERE, changed(f"exit {_OF_N1} role=manager", rc=9)),
        _HELD,
    ),
    (
        "job-over-before-its-last-node",
        "guide modern",
        moved(
            "switch_p_job_step_complete step=2.0",
            after="node_state args.node=n3 args.from=IDLE|COMPLETING",
        ),
        "n3 was free of it before switch_p_job_step_complete",
    ),
    *(
        (
            "job-over-before-its-last-node",
            "guide modern",
            together(_N1_BEFORE, excuse),
            _HELD,
        )
        for excuse in (
            everywhere("MESSAGE_EPILOG_COMPLETE phase=receive", name="REQUEST_PING"),
            changed("job_state job=1 args.to=COMPLETED", job=9),
            changed("node_state args.node=n1 args.from=IDLE|COMPLETING", args_from="IDLE"),
            changed("node_state args.node=n1 args.from=IDLE|COMPLETING", args_to="IDLE|COMPLETING"),
            changed("job_state job=1 args.to=COMPLETED", args_to="FAILED|COMPLETING"),
            changed("job_state job=1 args.to=COMPLETED", args_from="RUNNING"),
        )
    ),
    *(
        (
            "array-cancelled-from-its-rest",
            "guide modern",
            together(_REST_LAST, excuse),
            _HELD,
        )
        for excuse in (
            changed("REQUEST_KILL_JOB phase=receive", 1, name="REQUEST_JOB_REQUEUE"),
            changed("job_state job=4 args.to=CANCELLED|COMPLETING", args_to="FAILED|COMPLETING"),
            changed("job_state job=4 args.to=CANCELLED|COMPLETING", array_job=UNSET),
            changed("job_state job=4 args.to=CANCELLED|COMPLETING", cause=UNSET),
        )
    ),
]


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ran]:
    """Return what runs the jobs whose events are damaged."""

    @cache
    def ran(model: str) -> Ran:
        methods = "def switch_p_slurmd_step_init(self):\n    pass\n"
        folder = tmp_path_factory.mktemp(model)
        return ran_with(folder, methods, _BUSY, cluster=THREE_NODES, model=model)

    return ran


@pytest.mark.parametrize(
    ("rule", "model", "damage", "what"),
    [
        pytest.param(rule, model, damage, what, id=f"{place}-{rule}-{model}")
        for place, (rule, models, damage, what) in enumerate(_CASES)
        for model in models.split()
    ],
)
def test_a_damaged_run_breaks_its_rule(
    busy: Callable[[str], Ran], rule: str, model: str, damage: Damage, what: str
) -> None:
    """The rule is named, and says what is wrong; the run itself keeps it."""
    assert what in told(busy(model), damage).get(rule, _HELD)


def test_every_rule_about_words_that_are_waited_for_can_fail() -> None:
    """Those of the modules about handovers and ends of jobs, each by at least one damage."""
    checked = {
        rule.name
        for rule in declared()
        if rule.check is not None
        and rule.check.__module__.rpartition(".")[2] in ("handovers", "job_ends")
    }
    assert checked == {case[0] for case in _CASES}


def test_a_launch_that_comes_twice_is_refused_while_its_daemon_has_yet_to_begin() -> None:
    """What slurmd does about the second is no part of what it hands over, in some orders too."""
    text = timeline(
        "at: 8s, run: srun -n1 sleep 2",
        "at: 8s, run: srun -n1 sleep 3",
        "at: 8s, fault: {duplicate: REQUEST_LAUNCH_TASKS, for: 10s}",
    )
    early = 0
    for seed in range(6):
        ran = run(text, cluster=THREE_NODES, model="modern", schedule="random", seed=seed)
        refused = [
            each.seq
            for each in ran.all("RESPONSE_SLURM_RC", role="slurmd", phase="send")
            if arg(each, "answers") == "REQUEST_LAUNCH_TASKS" and arg(each, "return_code")
        ]
        loads = ran.all("init", role="manager")
        assert refused
        early += any(number < load.seq for number in refused for load in loads)
    assert early
