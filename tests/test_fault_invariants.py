"""Random runs in which faults and commands strike at chosen events, until all is put right again.

Every job then ends, nothing of it is left on any host, and no node has lost anything of itself.
"""

import random

import pytest
from msgspec import UNSET

from tests.cluster import Ran, run
from tests.invariants import FUNCTIONS, SCRIPTS, check
from tests.test_cut_invariants import FINAL, check_runs

MORE_SCRIPTS = [
    *SCRIPTS,
    "srun -n1 --exclusive ./slow & srun -n1 --exclusive ./slow & srun -n4 --exclusive true & wait",
    "srun -K ./bad; srun -W5 ./bad",
    "srun -t1 ./slow & srun -k ./quick; wait",
    "srun ./quick & sleep 15 & srun -n1 --exclusive ./slow; exit 1",
]
MOMENTS = [
    *(
        "job_state state=RUNNING",
        "job_state state=SUSPENDED",
        "job_state state=RUNNING|CONFIGURING",
    ),
    *("prolog phase=enter", "epilog phase=enter", "prolog_slurmctld phase=enter", "node_state"),
    *("REQUEST_LAUNCH_PROLOG phase=send", "REQUEST_COMPLETE_PROLOG phase=send"),
    *("REQUEST_BATCH_JOB_LAUNCH phase=receive", "REQUEST_LAUNCH_TASKS phase=send"),
    *("REQUEST_JOB_STEP_CREATE phase=receive", "RESPONSE_JOB_STEP_CREATE phase=send"),
    *("RESPONSE_RESOURCE_ALLOCATION phase=send", "REQUEST_SUSPEND_INT phase=receive"),
    *("REQUEST_TERMINATE_JOB phase=receive", "REQUEST_STEP_COMPLETE phase=send"),
    *("MESSAGE_TASK_EXIT phase=send", "MESSAGE_EPILOG_COMPLETE phase=send", "SRUN_STEP_SIGNAL"),
    *("switch_p_job_attach", "switch_p_job_fini", "REQUEST_JOB_REQUEUE phase=send"),
]
COMMANDS = [
    *("scancel {j}", "scancel {j}.0", "scancel -s STOP {j}", "scancel -b -s USR1 {j}"),
    *(
        "scontrol suspend {j}",
        "scontrol suspend {j}",
        "scontrol resume {j}",
        "scontrol requeue {j}",
    ),
    *("scontrol requeuehold {j}", "scontrol hold {j}", "scontrol reconfigure"),
    *("scontrol update nodename={n} state=down reason=x", "scontrol update jobid={j} timelimit=1"),
    *("scontrol update nodename={n} state=drain reason=x",),
]
ENDS = (*FINAL, "DEADLINE", "PREEMPTED")


def conf(chance: random.Random) -> str:
    """Return a random slurm.conf."""
    keys = {
        "KillWait": chance.choice(["5", "30"]),
        "TreeWidth": chance.choice(["1", "2", "50"]),
        "ReturnToService": chance.choice(["1", "2"]),
        "SlurmdTimeout": chance.choice(["15", "60", "300"]),
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": chance.choice(["REQUEUE", "CANCEL"]),
    }
    if chance.random() < 0.5:
        keys |= {"SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core"}
    scripts = "Prolog Epilog PrologSlurmctld EpilogSlurmctld TaskProlog TaskEpilog SrunProlog"
    keys |= {key: "/etc/s" for key in scripts.split() if chance.random() < 0.4}
    if chance.random() < 0.3:
        keys["PrologFlags"] = "Alloc"
    return ", ".join(f"{key}: {value}" for key, value in keys.items())


def job(chance: random.Random, count: int) -> str:
    """Return a random job: a script, a srun or a salloc."""
    width = f"-N{chance.randint(1, count)}"
    shape = chance.choice(["", " -n4", " --ntasks-per-node=2"])
    more = [" -p high", " -k", " -t2", " --signal=USR1@30", " --deadline=now+3minutes -t2"]
    options = width + shape + "".join(each for each in more if chance.random() < 0.2)
    script = f'\\"{chance.choice(MORE_SCRIPTS)}\\"'
    kind = chance.random()
    if kind < 0.25:
        return f"salloc {options} bash -c {script}"
    if kind < 0.4:
        return f"srun {options} {chance.choice(['./quick', './slow', './bad'])}"
    array = chance.choice(["", "", "", " -a 0-2%1", " -a 0-1"])
    return f"sbatch {options}{array} --wrap {script}"


def scenario(seed: int) -> str:
    """Return a random scenario; in the end nodes are started, and jobs resumed and released."""
    chance = random.Random(f"faults:{seed}")
    count = chance.randint(1, 4)
    nodes = [f"n{number}" for number in range(1, count + 1)]
    grace = chance.choice([0, 15])
    part = f'nodes: "n[1-{count}]", max_time: 10m'
    lines = [
        f'nodes: [{{name: "n[1-{count}]", cpus: 4}}]',
        f"partitions: [{{name: debug, default: true, {part}, grace_time: {grace}}},"
        f" {{name: high, priority_tier: 9, {part}}}]",
        "users: {alice: 1001, bob: 1002}",
        f"slurm_conf: {{{conf(chance)}}}",
        f"latency: {chance.choice(['100us', '1ms', '400ms'])}",
        "programs:",
        "  ./quick: {runs: 2s}",
        "  ./slow: {runs: [20s, 100s]}",
        "  ./bad: {runs: 10s, exit: 2}",
        "  ./wild: {runs: forever, on_signal: {TERM: ignore}}",
        "  /etc/s: {runs: [2s, 12s]}",
        "timeline:",
    ]
    jobs = chance.randint(1, 4)

    def add(when: str, what: str) -> None:
        lines.append(f"  - {{{when}, {what}}}")

    def command(line: str, user: str = "root") -> str:
        return f'as: {user}, run: "{line}"'

    def strike() -> str:
        kind = chance.random()
        one, other = chance.sample(["slurmctld", "login", *nodes], 2)
        if kind < 0.2:
            return f"fault: {{crash: {chance.choice(nodes)}}}"
        if kind < 0.45:
            length = chance.choice(["50us", "300us", "40s", "100s", "400s"])
            return f"fault: {{cut: [{one}, {other}], for: {length}}}"
        if kind < 0.55:
            name = chance.choice([*FUNCTIONS, "prolog", "epilog", "prolog_slurmctld"])
            return f'fault: {{fail: "{name}"}}'
        line = chance.choice(COMMANDS)
        return command(line.format(j=chance.randint(1, jobs), n=chance.choice(nodes)))

    for _ in range(jobs):
        add(
            f"at: {chance.randint(0, 60)}s",
            command(job(chance, count), chance.choice(["alice", "bob"])),
        )
    for _ in range(chance.randint(1, 6)):
        add(f"at: {chance.randint(0, 200)}s", strike())
    for _ in range(chance.randint(1, 3)):
        add(f'when: "{chance.choice(MOMENTS)}"', strike())
    for at in (1500, 3000, 4500, 6000):
        for node in nodes:
            add(f"at: {at}s", f"fault: {{start: {node}}}")
            add(f"at: {at + 9}s", command(f"scontrol update nodename={node} state=resume"))
        for number in range(1, jobs + 7):
            add(f"at: {at + 10}s", command(f"scontrol resume {number}"))
            add(f"at: {at + 11}s", command(f"scancel -s CONT {number}"))
            add(f"at: {at + 12}s", command(f"scontrol release {number}"))
    return "\n".join(lines) + "\n"


def check_nothing_is_left(ran: Ran) -> None:
    """Check that all is as it was before the first job."""
    ctld = ran.world.ctld
    for node in ctld.nodes:
        assert (node.completing, node.free) == (0, node.total)
        assert not ctld.leftovers.get(node.name)
    assert (ctld.running, ctld.completing, ctld.suspended) == ({}, {}, {})
    hosts = (ran.world.login, *ran.world.hosts.values())
    assert [each.name for host in hosts for each in host.processes.values()] == []


def check_tasks(ran: Ran) -> None:
    """Check that a node reports a job gone after its last task, and that none runs as root."""
    alive: dict[tuple[object, object], object] = {}
    for event in ran.events:
        if event.name == "exec" and event.daemon == "task":
            assert event.uid != 0
            alive[event.node, event.pid] = event.job
        elif event.name == "exit":
            alive.pop((event.node, event.pid), None)
        elif event.name == "MESSAGE_EPILOG_COMPLETE" and event.phase == "send":
            left = [key for key, job_id in alive.items() if job_id == event.job]
            assert not [key for key in left if key[0] == event.node]


def check_checkpoints(ran: Ran, text: str) -> None:
    """Check that each checkpoint record is freed once; a failed build frees one that never was.

    In model modern nothing is copied where the plugin keeps no record, and NULL is freed all the
    same: there the ordering about records has to do.
    """
    if "switch_p_build_jobinfo" in text or ran.world.model == "modern":
        return
    made = [*ran.all("slurm_ckpt_alloc_job"), *ran.all("slurm_ckpt_copy_job")]
    kept = [job.check_job for job in ran.world.ctld.jobs.values()]
    assert all(event.rc is UNSET or event.rc is None for event in made)
    assert len(made) == len(ran.all("slurm_ckpt_free_job")) + len(kept)


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("block", range(6))
def test_whatever_strikes_every_job_ends_and_leaves_nothing(block: int, model: str) -> None:
    """Crashes, cuts, failures and commands, at any time and at the very moment that matters."""
    for seed in range(block * 10, block * 10 + 10):
        schedule = "random" if seed % 2 else "fifo"
        text = scenario(seed)
        ran = run(text, cluster="", model=model, schedule=schedule, seed=seed)
        assert ran.result.stalled == (), f"seed {seed}"
        check(ran)
        check_runs(ran)
        states = [row.state for row in ran.result.rows]
        assert all(state in ENDS for state in states), f"seed {seed}: {states}"
        assert all(each.exit >= 0 for each in ran.result.commands), f"seed {seed}"
        check_nothing_is_left(ran)
        check_tasks(ran)
        check_checkpoints(ran, text)
