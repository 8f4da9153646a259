"""Random clusters, jobs and commands, and a checker that looks after every message.

What nodes have given away is what jobs have; the sets of nodes and jobs are what the records say;
nobody who could start is left without a pass that will look at it; and no run stalls.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from simctl.ctld.choose import dependencies, reserved
from simctl.ctld.choose.select import demand_in
from simctl.ctld.daemon import Slurmctld
from simctl.ctld.jobs import eligible
from simctl.ctld.scheduling import backfill, schedule
from simctl.ctld.state.records import JobRecord, NodeRecord, PartRecord
from simctl.scenario.load import read_scenario
from simctl.wire.resources import tasks_in
from simctl.wire.states import JobBase, JobFlag, NodeBase, NodeFlag
from simctl.world import World
from tests.cluster import watched as run_watched

OPTIONS: dict[str, tuple[float, Callable[[random.Random], object]]] = {
    "-N": (0.6, lambda c: c.randint(1, 3)),
    "-n": (0.5, lambda c: c.randint(1, 6)),
    "-c": (0.2, lambda c: c.randint(1, 3)),
    "--exclusive": (0.15, lambda _: ""),
    "--mem=": (0.2, lambda c: c.randint(0, 500)),
    "--gres=gpu:": (0.1, lambda c: c.randint(1, 2)),
    "-w n": (0.1, lambda c: c.randint(1, 3)),
    "-x n": (0.1, lambda c: c.randint(1, 3)),
    "-t": (0.7, lambda c: c.randint(1, 8)),
    "-p ": (0.5, lambda c: c.choice(["a", "b", "a,b", "b,a"])),
    "--begin=now+": (0.1, lambda c: c.randint(1, 100)),
    "--nice=": (0.1, lambda c: c.randint(0, 500)),
    "--reservation=": (0.15, lambda _: "r1"),
    "-d ": (0.1, lambda c: f"{c.choice(['afterany', 'afterok', 'after'])}:{c.randint(1, 4)}"),
}
WORDS = ("bf_max_job_start=1", "batch_sched_delay=0", "bf_max_job_user=1", "bf_resolution=1")
COMMANDS = (
    *("scontrol hold {j}", "scontrol release {j}", "scontrol suspend {j}", "scontrol resume {j}"),
    *("scontrol requeue {j}", "scancel {j}", "scancel -s USR1 {j}_1", "scontrol hold {j}_1"),
    "scontrol update jobid={j} timelimit={k}",
    "scontrol update jobid={j} numnodes={k}",
    "scontrol update jobid={j} partition=b",
    "scontrol update jobid={j} priority={k}",
    "scontrol update jobid={j} starttime=now+{k}0",
    "scontrol update nodename=n{k} state=drain reason=x",
    "scontrol update nodename=n{k} state=down reason=x",
    "scontrol update nodename=n{k} state=resume",
    "scontrol update partitionname=b state=down",
    "scontrol update partitionname=b state=up",
    "scontrol update partitionname=a maxnodes={k}",
    "scontrol update partitionname=a maxtime={k}",
    "scontrol update partitionname=b prioritytier={k}",
    "scontrol create reservation ReservationName=r1 starttime=now+{k}0 duration=6 users=bob "
    "nodes=n{k} flags=ignore_jobs",
    "scontrol delete reservation r1",
    "scontrol reconfigure",
)


def scenario(seed: int) -> str:
    """Return a random scenario, which is put right in the end, so that it can end."""
    c = random.Random(seed)
    conf = [
        f"SchedulerType: sched/{c.choice(['builtin', 'backfill'])}",
        f"SelectType: select/{c.choice(['linear', 'cons_tres'])}",
        f"SchedulerParameters: {c.choice(WORDS)}",
        "KillWait: 5, SlurmdTimeout: 30, ReturnToService: 1",
        c.choice(["", "PreemptType: preempt/partition_prio, PreemptMode: REQUEUE"]),
    ]
    lines: list[tuple[int, str, str]] = []
    for _ in range(c.randint(5, 14)):
        words = [f"{name}{make(c)}" for name, (odds, make) in OPTIONS.items() if c.random() < odds]
        run = f"sleep {c.choice([0, 20, 100, 300])}"
        kind = c.random()
        if kind < 0.75:
            array = c.choice(["", "", "-a 0-3", "-a 0-3%1"])
            line = f'sbatch {" ".join(words)} {array} --wrap "{run}"'
        else:
            line = f"srun {' '.join(words)} {c.choice(['', '--immediate'])} {run}"
        lines.append((c.randint(0, 60), c.choice(["alice", "bob"]), line))
    for _ in range(c.randint(2, 12)):
        line = c.choice(COMMANDS).format(j=c.randint(1, 10), k=c.randint(1, 3))
        lines.append((c.randint(0, 400), "root", line))
    lines += [(3000, "root", f"scontrol update nodename=n{k} state=resume") for k in (1, 2, 3)]
    lines += [(3000, "root", "scontrol update partitionname=b state=up")]
    for job in range(1, 20):
        lines += [(3001, "root", f"scontrol {word} {job}") for word in ("release", "resume")]
    timeline = "".join(
        f"  - {{at: {at}s, as: {user}, run: {json.dumps(line)}}}\n"
        for at, user, line in sorted(lines, key=lambda each: each[0])
    )
    crash, again = c.randint(0, 200), c.choice([5, 60, 400])
    if c.random() < 0.2:
        timeline += f"  - {{at: {crash}s, fault: {{crash: n2}}}}\n"
        timeline += f"  - {{at: {crash + again}s, fault: {{start: n2}}}}\n"
    nodes = [f"cpus: {c.randint(1, 5)}, memory_mb: {c.choice([400, 800])}" for _ in range(3)]
    return (
        f"slurm_conf: {{{', '.join(filter(None, conf))}}}\nnodes:\n"
        + "".join(
            f"  - {{name: n{k}, {each}, gres: 'gpu:{k}'}}\n" for k, each in enumerate(nodes, 1)
        )
        + "partitions:\n  - {name: a, nodes: 'n[1-3]', default: true, "
        f"priority_tier: {c.randint(1, 2)}}}\n"
        f"  - {{name: b, nodes: 'n[{c.choice(['1', '2', '2-3'])}]', "
        f"priority_tier: {c.randint(1, 3)}, over_subscribe: {c.choice(['EXCLUSIVE', 'NO'])}}}\n"
        "users: {alice: 1001, bob: 1002}\ntimeline:\n" + timeline
    )


# The checker.


def usable(node: NodeRecord) -> bool:
    """Return whether a job may start on a node now."""
    return node.base in (NodeBase.IDLE, NodeBase.MIXED) and not node.flags


def fits(ctld: Slurmctld, job: JobRecord, part: PartRecord, allowed: int) -> bool:
    """Return whether a job has room, by counting what each node takes."""
    demand = demand_in(job, part)
    mask = allowed & part.mask & ~demand.excluded & reserved.open_to(ctld, job, part, ctld.now_us)
    takes = {
        node.index: tasks_in(demand, node.free)
        for node in ctld.nodes
        if mask >> node.index & 1 and usable(node) and not (demand.whole and node.jobs)
    }
    named = [takes.get(node.index, 0) for node in ctld.nodes if demand.required >> node.index & 1]
    others = sorted(
        (n for i, n in takes.items() if n and not demand.required >> i & 1), reverse=True
    )
    most = named + others[: max(0, demand.max_nodes - len(named))]
    return all(named) and len(most) >= demand.min_nodes and sum(most) >= demand.num_tasks


def in_line(ctld: Slurmctld) -> list[tuple[PartRecord, JobRecord]]:
    """Return who waits for which partition, in the order of a pass."""
    waiting = [
        (-part.tier, -job.priority, job.queue_number, part, job)
        for job in ctld.jobs.values()
        if job.queued
        for part in job.parts
        if part.state.starts_jobs
        and not (job.array is not None and 0 < job.array.limit <= job.array.running)
    ]
    return [each[3:] for each in sorted(waiting, key=lambda each: each[:3])]


def could_start(ctld: Slurmctld) -> int:
    """Return the job that a main pass would start, by its rules; 0 if there is none."""
    blocked = 0
    parts: list[str] = []
    full: list[str] = []
    for part, job in in_line(ctld):
        own = job.desc.reservation
        if own in full or (not own and part.name in parts):
            continue
        if fits(ctld, job, part, -1 if own else ~blocked):
            return job.job_id
        if own:
            full += [own] if reserved.open_to(ctld, job, part, ctld.now_us) else []
        elif not schedule._what_time_alone_brings(ctld, job, part):
            parts.append(part.name)
            blocked |= part.mask
    return 0


def could_be_backfilled(ctld: Slurmctld) -> int:
    """Return the job that a backfill pass would start; 0 if there is none."""
    plan, limits = backfill.Plan(ctld), backfill._Limits(ctld)
    for part, job in in_line(ctld):
        if not limits.go_on():
            break
        if limits.admit(job, part):
            if plan.room_now(job, part):
                return job.job_id
            if limits.may_reserve(job, part) and plan.reserve(job, part):
                limits.note_head(job, part)
    return 0


def check_nodes(ctld: Slurmctld) -> None:
    """Check that nodes have given away what jobs have, and that the sets of nodes agree."""
    for node in ctld.nodes:
        shares = [job.shares[node.index] for job in node.jobs.values()]
        assert node.free.cpus == node.cpus - sum(share.cpus for share in shares) >= 0
        taken_mb = sum(share.memory_mb for share in shares)
        assert node.free.memory_mb == node.total.memory_mb - taken_mb >= 0
        for name, count in node.total.gres.items():
            taken = sum(share.gres.get(name, 0) for share in shares)
            assert node.free.gres[name] == count - taken >= 0
        assert node.base in (NodeBase.DOWN, NodeBase.UNKNOWN, node.working_base())
        assert not (node.base is NodeBase.DOWN and node.jobs)
        leaving = sum(node.name in job.completing_nodes for job in ctld.jobs.values())
        assert node.completing == leaving + len(ctld.leftovers.get(node.name, ()))
        assert bool(node.flags & NodeFlag.COMPLETING) == (node.completing > 0)
        assert ctld.usable_nodes >> node.index & 1 == usable(node)
        idle = usable(node) and node.base is NodeBase.IDLE
        assert ctld.idle_nodes >> node.index & 1 == idle
        assert all(ctld.running.get(job_id) is job for job_id, job in node.jobs.items())
    for job in ctld.running.values():
        assert all(node.jobs.get(job.job_id) is job for node in job.nodes)


def check_jobs(ctld: Slurmctld) -> None:
    """Check that every job is where its state says, in each queue once or for a reason in none."""
    holding: Counter[int] = Counter()
    for job in ctld.jobs.values():
        base = job.state.base
        assert (job.job_id in ctld.running) == (base is JobBase.RUNNING)
        assert (job.job_id in ctld.suspended) == (base is JobBase.SUSPENDED)
        if job.queued:
            assert base is JobBase.PENDING
            assert job.priority > 0
            for part in job.parts:
                entries = part.queue + part.reserved_queue
                assert sum(schedule._is_in_place(each) and each[2] is job for each in entries) == 1
        elif base is JobBase.PENDING and not job.state.flags & ~JobFlag.SPECIAL_EXIT:
            why = eligible.obstacle(ctld, job, dependencies.verdict(ctld, job, ctld.now_us))
            assert why or job.begin_us == ctld.now_us
        runs = base in (JobBase.RUNNING, JobBase.SUSPENDED)
        if job.array is not None and job.nodes and (runs or job.state.completing):
            holding[job.array.job_id] += 1
    for array in ctld.arrays.values():
        assert array.running == holding[array.job_id]
        assert not array.limit or array.running <= array.limit
    for part in ctld.partitions.values():
        assert part.waiting == sum(job.queued and part in job.parts for job in ctld.jobs.values())


def check_wakeups(ctld: Slurmctld) -> None:
    """Check that whoever could start will be looked at; while jobs leave, that follows anyway."""
    if ctld.pass_is_due or ctld.completing or any(ctld.leftovers.values()):
        return
    assert not could_start(ctld)
    if ctld.site.conf.scheduler_type == "sched/backfill" and not ctld.backfill_is_due:
        assert not could_be_backfilled(ctld)


def watched(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler after which everything is checked."""

    async def handle(ctld: Slurmctld, envelope: Any, message: Any) -> None:
        await handler(ctld, envelope, message)
        check_nodes(ctld)
        check_jobs(ctld)
        check_wakeups(ctld)

    return handle


@pytest.mark.parametrize("block", range(4))
def test_random_runs_keep_the_scheduler_honest(block: int) -> None:
    """Whatever users, operators and crashes do."""
    for seed in range(block * 10, block * 10 + 10):
        text = scenario(seed)
        order = "random" if seed % 3 == 1 else "fifo"
        model = "modern" if seed % 2 else "guide"
        world = World(read_scenario(text, file="s.yaml"), model=model, schedule=order, seed=seed)
        handlers = world.ctld._handlers
        for kind, handler in list(handlers.items()):
            handlers[kind] = watched(handler)
        result = run_watched(world).result
        told = str(result.stalled)
        assert not result.stalled or "take no job" in told, f"seed {seed}: {told}"
