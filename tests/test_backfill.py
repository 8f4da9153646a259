"""Schedules: worked out by hand, and rules that hold for any load."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.ctld.choose.select import demand_in
from simctl.ctld.daemon import Slurmctld
from simctl.ctld.scheduling import backfill, schedule
from simctl.ctld.state.records import JobRecord, PartRecord
from simctl.kernel.events import Event
from simctl.scenario.load import read_scenario
from simctl.wire.resources import tasks_in
from simctl.world import World
from tests.cluster import Ran, run
from tests.entries import args, starts

MINUTE = 60


def cluster(scheduler: str, select: str = "linear", nodes: int = 4, **words: object) -> str:
    """Return a cluster of nodes of four cpus, with a scheduler and its words."""
    parameters = ",".join(f"{name}={value}" for name, value in words.items())
    more = f", SchedulerParameters: {parameters!r}" if parameters else ""
    return (
        f"slurm_conf: {{SchedulerType: sched/{scheduler}, SelectType: select/{select}{more}}}\n"
        f'nodes: [{{name: "n[1-{nodes}]", cpus: 4}}]\n'
        f'partitions: [{{name: debug, nodes: "n[1-{nodes}]", default: true}}]\n'
        "users: {alice: 1001, bob: 1002}\n"
    )


def jobs(*wanted: str, every: int = 1) -> str:
    """Return submissions, one after another; each is options and the minutes it runs."""
    lines = []
    for number, job in enumerate(wanted):
        options, _, minutes = job.rpartition(" runs ")
        command = f"sbatch {options} --wrap 'sleep {int(float(minutes) * MINUTE)}'"
        lines.append(f"  - {{at: {number * every}s, as: alice, run: {command!r}}}\n")
    return "timeline:\n" + "".join(lines)


def nodes(ran: Ran) -> dict[int, str]:
    """Return where each job ran."""
    return {row.job_id: row.nodes for row in ran.result.rows}


# By hand. The first pass over a queue of this length is at once, the next 3 s later, and backfill
# looks at second 30, 60 and so on.

THREE = ("-N2 -t10 runs 10", "-N4 -t10 runs 10", "-N2 -t5 runs 5", "-N2 -t15 runs 15")


def test_builtin_keeps_the_order_of_submission() -> None:
    """Job 2 needs all nodes and waits for job 1; the others wait behind it."""
    ran = run(jobs(*THREE), cluster=cluster("builtin"))
    assert starts(ran) == {1: 0, 2: 600, 3: 1200, 4: 1200}


def test_backfill_starts_what_is_over_before_the_head_begins() -> None:
    """Job 3 ends at 330 s, and job 2 will begin at 600 s; job 4 would be in its way."""
    ran = run(jobs(*THREE), cluster=cluster("backfill"))
    assert starts(ran) == {1: 0, 2: 600, 3: 30, 4: 1200}


def test_backfill_starts_what_leaves_the_heads_nodes_alone() -> None:
    """The head will have n1 to n3; the long job fits on n4, the one of two nodes nowhere."""
    wanted = ("-N2 -t10 runs 10", "-N3 -t10 runs 10", "-N2 -t15 runs 1", "-N1 -t60 runs 60")
    ran = run(jobs(*wanted), cluster=cluster("backfill"))
    assert starts(ran)[4] == 30
    assert nodes(ran)[4] == "n4"
    assert starts(ran)[2] == 600
    assert starts(ran)[3] == 1200


def test_a_job_that_ends_early_lets_the_head_begin_early() -> None:
    """Time limits are only what is known ahead."""
    wanted = ("-N4 -t60 runs 5", "-N4 -t10 runs 10", "-N1 -t60 runs 60")
    ran = run(jobs(*wanted), cluster=cluster("backfill"))
    assert starts(ran) == {1: 0, 2: 300, 3: 900}


def test_the_reservation_of_the_head_is_in_the_trace() -> None:
    """When and where it will begin at the latest; told again when that has changed."""
    wanted = ("-N2 -t60 runs 5", "-N2 -t30 runs 30", "-N4 -t10 runs 10", "-N4 -t5 runs 1")
    ran = run(jobs(*wanted), cluster=cluster("backfill"))
    told = [(event.job, args(event)) for event in ran.all("backfill_reservation")]
    assert [(job, each["start_us"] // 60_000_000, each["node_list"]) for job, each in told] == [
        (3, 60, "n[1-4]"),
        (3, 30, "n[1-4]"),
        (4, 40, "n[1-4]"),
    ]


def test_cpus_are_backfilled_with_cons_tres() -> None:
    """Three of four cpus are taken and the head needs all; nine minutes fit in, ten do not."""
    wanted = ("-n3 -t10 runs 10", "-n4 -t10 runs 10", "-n1 -t10 runs 1", "-n1 -t9 runs 9")
    ran = run(jobs(*wanted), cluster=cluster("backfill", "cons_tres", nodes=1))
    assert starts(ran) == {1: 0, 2: 600, 3: 1200, 4: 30}


def test_cpus_that_the_head_leaves_over_may_be_used_for_long() -> None:
    """The head takes three of four cpus; one that runs past its start has the fourth."""
    wanted = ("-n2 -t10 runs 10", "-n3 -t10 runs 10", "-n1 -t60 runs 60", "-n1 -t60 runs 1")
    ran = run(jobs(*wanted), cluster=cluster("backfill", "cons_tres", nodes=1))
    assert starts(ran) == {1: 0, 2: 600, 3: 30, 4: 1200}


def test_jobs_share_nodes_with_cons_tres_and_do_not_with_linear() -> None:
    """Two jobs of two cpus; the node is mixed, then allocated."""
    wanted = ("-n2 runs 1", "-n2 runs 1", "-n1 runs 1")
    shared = run(jobs(*wanted), cluster=cluster("builtin", "cons_tres", nodes=1))
    assert starts(shared) == {1: 0, 2: 3, 3: 60}
    states = [args(event)["to"] for event in shared.all("node_state", node="n1") or ()]
    states = states or [args(event)["to"] for event in shared.all("node_state")]
    assert states[:3] == ["IDLE", "MIXED", "ALLOCATED"]
    alone = run(jobs(*wanted), cluster=cluster("builtin", "linear", nodes=1))
    assert starts(alone) == {1: 0, 2: 60, 3: 120}


@pytest.mark.parametrize("asks", ["--exclusive", "-n4", "-N1 -n1 -c4", "--mincpus=4"])
def test_a_job_that_wants_all_of_a_node_waits_for_it(asks: str) -> None:
    """It neither shares with the job that is there nor lets one in beside it."""
    wanted = ("-n1 runs 1", f"{asks} runs 1", "-n1 runs 1")
    ran = run(jobs(*wanted), cluster=cluster("builtin", "cons_tres", nodes=1))
    assert starts(ran) == {1: 0, 2: 60, 3: 120}


def test_memory_is_shared_out() -> None:
    """Two jobs of 60 MB do not fit into 100 MB, and one that asks for none does."""
    text = cluster("builtin", "cons_tres", nodes=1).replace("cpus: 4", "cpus: 4, memory_mb: 100")
    ran = run(jobs("--mem=60 runs 1", "--mem-per-cpu=50 runs 1", "-n1 runs 1"), cluster=text)
    assert starts(ran) == {1: 0, 2: 60, 3: 60}


def test_memory_may_be_all_or_nothing() -> None:
    """CR_CPU_Memory: who asks for none has all, unless there is a default; CR_CPU counts none."""
    text = cluster("builtin", "cons_tres", nodes=1).replace("cpus: 4", "cpus: 4, memory_mb: 100")
    for words, expected in (
        ("SelectTypeParameters: CR_CPU_Memory", {1: 0, 2: 60}),
        ("SelectTypeParameters: CR_Core_Memory, DefMemPerCPU: 50", {1: 0, 2: 3}),
        ("SelectTypeParameters: CR_CPU_Memory, DefMemPerNode: 51", {1: 0, 2: 60}),
    ):
        changed = text.replace("slurm_conf: {", f"slurm_conf: {{{words}, ")
        assert starts(run(jobs("-n1 runs 1", "-n1 runs 1"), cluster=changed)) == expected
    free = text.replace("slurm_conf: {", "slurm_conf: {SelectTypeParameters: CR_CPU, ")
    ran = run(jobs("--mem=60 runs 1", "--mem=60 runs 1"), cluster=free)
    assert starts(ran) == {1: 0, 2: 3}


def test_generic_resources_are_shared_out() -> None:
    """Two gpus: one job has both, the next waits, one without passes by with backfill."""
    text = cluster("backfill", "cons_tres", nodes=1).replace("cpus: 4", "cpus: 4, gres: 'gpu:2'")
    ran = run(
        jobs("--gres=gpu:2 -t5 runs 5", "--gres=gpu:1 -t5 runs 5", "-n1 -t60 runs 1"), cluster=text
    )
    assert starts(ran) == {1: 0, 2: 300, 3: 30}
    timeline = (
        "timeline:\n  - {at: 0s, as: alice, run: 'sbatch --gres=gpu:3 --wrap true', exit: 1}\n"
        "  - {at: 0s, as: alice, run: 'sbatch --gres=foo:1 --wrap true', exit: 1}\n"
    )
    refused = run(timeline, cluster=text)
    assert [command.stderr for command in refused.result.commands] == [
        "sbatch: error: Batch job submission failed: Requested node configuration is not "
        "available\n",
        "sbatch: error: Invalid generic resource (gres) specification\n",
    ]


def test_too_much_memory_is_refused_at_once() -> None:
    """As Slurm says it."""
    text = "timeline:\n  - {at: 0s, as: alice, run: 'sbatch --mem=100G --wrap true', exit: 1}\n"
    ran = run(text, cluster=cluster("builtin", "cons_tres"))
    assert ran.stderr() == (
        "sbatch: error: Memory specification can not be satisfied\n"
        "sbatch: error: Batch job submission failed: Requested node configuration is not "
        "available\n"
    )


def test_steps_have_the_cpus_of_their_job() -> None:
    """-N2 -n4 on nodes of four cpus is three tasks and one, with a layout of blocks."""
    text = "timeline:\n  - {at: 0s, as: alice, run: 'srun -N2 -n4 sleep 1'}\n"
    ran = run(text, cluster=cluster("builtin", "cons_tres", nodes=2))
    attached = [(event.node, event.task) for event in ran.all("switch_p_job_attach")]
    assert sorted(attached) == [("n1", 0), ("n1", 1), ("n1", 2), ("n2", 3)]


# The words of SchedulerParameters.

QUEUE = ("-N2 -t10 runs 10", "-N4 -t10 runs 1", "-N1 -t5 runs 5", "-N1 -t5 runs 5")


@pytest.mark.parametrize(
    ("words", "third", "fourth"),
    [
        ({}, 30, 30),
        ({"bf_interval": 120}, 120, 120),
        ({"bf_max_job_test": 2}, 30, 60),
        ({"bf_max_job_start": 1}, 30, 60),
        ({"bf_max_job_user": 2}, 30, 60),
        ({"bf_max_job_part": 2}, 30, 60),
    ],
)
def test_words_limit_a_pass(words: dict[str, Any], third: int, fourth: int) -> None:
    """The head counts as one that was looked at; a pass that changes something is not the last."""
    ran = run(jobs(*QUEUE), cluster=cluster("backfill", **words))
    found = starts(ran)
    assert (found[3], found[4] >= fourth) == (third, True)
    if words in ({}, {"bf_interval": 120}):
        assert found[4] == fourth


@pytest.mark.parametrize("words", [{"bf_min_prio_reserve": 4294901761}, {"bf_window": 5}])
def test_a_head_without_a_reservation_is_passed_by(words: dict[str, Any]) -> None:
    """It is not important enough, or begins beyond the window: long jobs get the nodes."""
    wanted = ("-N2 -t10 runs 10", "-N4 -t10 runs 1", "-N2 -t60 runs 60")
    ran = run(jobs(*wanted), cluster=cluster("backfill", **words))
    assert starts(ran)[3] == 30
    assert ran.all("backfill_reservation", job=2) == [] or starts(ran)[2] > 600


@pytest.mark.parametrize(("more", "passed_by"), [(-1, False), (0, False), (1, True)])
def test_bf_min_prio_reserve_is_the_least_that_is_important_enough(
    more: int, passed_by: bool
) -> None:
    """The second job of a queue has two less than what the first would have at most."""
    wanted = ("-N2 -t10 runs 10", "-N4 -t10 runs 1", "-N2 -t60 runs 60")
    words: dict[str, Any] = {"bf_min_prio_reserve": 4294901758 + more}
    ran = run(jobs(*wanted), cluster=cluster("backfill", **words))
    assert (starts(ran)[3] == 30) is passed_by


def test_defer_starts_nothing_inside_its_submission() -> None:
    """The srun waits for a pass."""
    text = "timeline:\n  - {at: 1s, as: alice, run: 'srun -N1 sleep 1'}\n"
    ran = run(text, cluster=cluster("builtin").replace("cpus: 4", "cpus: 4", 1))
    assert "queued" not in ran.stderr()
    deferred = cluster("builtin").replace(
        "SelectType:", "SchedulerParameters: defer, SelectType:", 1
    )
    assert "queued and waiting" in run(text, cluster=deferred).stderr()


# Rules for any load.


def random_load(scheduler: str, select: str, wanted: list[tuple[int, int, int, int, int]]) -> str:
    """Return a cluster of two partitions that share a node, and jobs with and without srun."""
    lines = []
    for number, (tasks, width, limit, share, part) in enumerate(wanted):
        seconds = limit * MINUTE * share // 10
        options = f"-n{max(tasks, width)} -N{width} -t{limit} -p {'ab'[part % 2]}"
        if part == 2:
            options += " --exclusive"
        command = f"sbatch {options} --wrap 'sleep {seconds}'"
        lines.append(f"  - {{at: {number * 7}s, as: alice, run: {command!r}}}\n")
    return (
        f"slurm_conf: {{SchedulerType: sched/{scheduler}, SelectType: select/{select}, "
        "MinJobAge: 0}\n"
        'nodes: [{name: "n[1-2]", cpus: 4}, {name: n3, cpus: 2}, {name: "n[4-5]", cpus: 3}]\n'
        'partitions: [{name: a, nodes: "n[1-3]", default: true, priority_tier: 2}, '
        '{name: b, nodes: "n[3-5]"}]\nusers: {alice: 1001}\ntimeline:\n' + "".join(lines)
    )


LOADS = st.lists(
    st.tuples(
        st.integers(1, 8),
        st.integers(1, 3),
        st.integers(1, 9),
        st.integers(1, 9),
        st.integers(0, 2),
    ),
    min_size=2,
    max_size=14,
)


def fits(ctld: Slurmctld, job: JobRecord, part: PartRecord, mask: int) -> bool:
    """Return whether a job has room, by counting what each node takes."""
    demand = demand_in(job, part)
    usable = [
        node
        for node in ctld.nodes
        if mask >> node.index & 1 and node.usable and not (demand.whole and node.jobs)
    ]
    each = sorted((tasks_in(demand, node.free) for node in usable), reverse=True)
    each = [count for count in each if count][: demand.max_nodes]
    return len(each) >= demand.min_nodes and sum(each) >= demand.num_tasks


def check_nothing_is_left_waiting(ctld: Slurmctld) -> None:
    """Check that after a pass whoever still waits has no room, or stands behind one who has not."""
    queued = [
        (-part.tier, -job.priority, job.queue_number, part, job)
        for job in ctld.jobs.values()
        if job.queued
        for part in job.parts
    ]
    blocked: dict[str, int] = {}
    for *_, part, job in sorted(queued, key=lambda each: each[:3]):
        if part.name in blocked:
            continue
        mask = part.mask
        for other in blocked.values():
            mask &= ~other
        assert not fits(ctld, job, part, mask), f"job {job.job_id} could run"
        blocked[part.name] = part.mask


def check_accounts(ctld: Slurmctld) -> None:
    """Check that what is free and what jobs have is what each node has."""
    for node in ctld.nodes:
        shares = [job.shares[node.index] for job in node.jobs.values()]
        assert node.free.cpus + sum(share.cpus for share in shares) == node.cpus
        assert node.free.cpus >= 0
        assert all(share.cpus > 0 for share in shares)


@pytest.mark.parametrize("select", ["linear", "cons_tres"])
@pytest.mark.parametrize("scheduler", ["builtin", "backfill"])
@settings(derandomize=True, deadline=None, max_examples=25)
@given(wanted=LOADS)
def test_rules_hold_for_any_load(
    scheduler: str, select: str, wanted: list[tuple[int, int, int, int, int]]
) -> None:
    """Nothing is oversubscribed, nobody who has room is left waiting, no head begins late."""
    world = World(read_scenario(random_load(scheduler, select, wanted), file="s.yaml"))
    planned: dict[int, int] = {}

    def watch(event: Event) -> None:
        check_accounts(world.ctld)
        if event.name == "backfill_reservation" and isinstance(event.job, int):
            planned.setdefault(event.job, args(event)["start_us"])

    original = schedule.run_pass

    async def passing(ctld: Slurmctld, *, full: bool = False) -> None:
        await original(ctld, full=full)
        check_nothing_is_left_waiting(ctld)

    world.trace.add_sink(watch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "run_pass", passing)
        result = world.run()
    assert not result.stalled
    could_run = [row for row in result.rows if row.reason == "None"]
    assert {row.state for row in could_run} <= {"COMPLETED"}
    for row in could_run:
        # A node that a job of another partition has taken by right is no fault of backfill's.
        if row.job_id in planned and row.partition == "a":
            assert row.start_us <= max(planned[row.job_id], row.submit_us) + 3_000_000


def test_a_pass_costs_what_it_starts_however_long_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 50 and with 500 jobs behind the head, as many nodes are looked for in a pass."""
    looked: list[int] = []
    original = schedule.find_nodes

    def counting(*found: Any, **more: Any) -> Any:
        looked[-1] += 1
        return original(*found, **more)

    tested: list[int] = []
    room = backfill.Plan.room_now

    def testing(self: Any, job: JobRecord, part: PartRecord) -> Any:
        tested[-1] += 1
        return room(self, job, part)

    monkeypatch.setattr(schedule, "find_nodes", counting)
    monkeypatch.setattr(backfill.Plan, "room_now", testing)
    for count in (50, 500):
        looked.append(0)
        tested.append(0)
        wanted = ["-N4 -t10 runs 10"] + ["-N4 -t10 runs 10"] * count
        text = jobs(*wanted, every=0)
        world = World(
            read_scenario(cluster("backfill", bf_max_job_test=20) + text, file="s.yaml"),
            until_us=100_000_000,
        )
        world.run()
    assert looked[0] == looked[1] <= 6
    assert tested == [20 * (tested[0] // 20)] * 2
