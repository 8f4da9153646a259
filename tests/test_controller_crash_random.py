"""slurmctld dies anywhere, again and again: jobs, nodes and credentials are accounted for."""

import random

import pytest

from simctl.ctld.saved.state_writing import records_of
from tests.cluster import Ran, run
from tests.test_switch_fuzz import check_books

CLUSTER = """\
nodes: [{name: "n[1-3]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-3]", default: true}]
users: {alice: 1001}
files: {/epilog.sh: "#!/bin/sh\\nsleep 2\\n", /prolog.sh: "#!/bin/sh\\nsleep 3\\n"}
"""
SCRIPTS = {"Prolog": "/prolog.sh", "PrologSlurmctld": "/prolog.sh", "EpilogSlurmctld": "/epilog.sh"}
LAST_S = 400
"""When everything that is held or suspended is let go."""


def _jobs(chance: random.Random) -> list[str]:
    lines = []
    for number in range(chance.randint(2, 7)):
        wide = f"-N{chance.randint(1, 2)} -n{chance.randint(2, 4)}"
        batch = ["", "", "--array=0-2%2", "--dependency=singleton -J x", "-H"]
        batch += ["--dependency=afterany:1"] if number else []
        script = f"'srun sleep {chance.randint(1, 40)}; srun -N1 sleep 3'"
        how = chance.choice(
            [
                f"srun {wide} sleep {chance.randint(1, 60)}",
                f"sbatch {chance.choice(batch)} {wide} --wrap {script}",
                f"sbatch {chance.choice(batch)} {wide} --wrap {script}",
            ]
        )
        lines.append(f'  - {{at: {chance.randint(0, 60)}s, as: alice, run: "{how}"}}\n')
    return lines


def scenario(seed: int) -> str:
    """Return a random scenario in which slurmctld dies up to three times."""
    chance = random.Random(f"crashes:{seed}")
    conf = {"SwitchType": f"switch/{chance.choice(['elan', 'federation'])}"}
    conf |= {name: path for name, path in SCRIPTS.items() if chance.random() < 0.3}
    lines = _jobs(chance)
    for word in ("requeue", "suspend", "hold"):
        if chance.random() < 0.3:
            lines.append(f'  - {{at: {chance.randint(5, 90)}s, run: "scontrol {word} 1"}}\n')
    for _ in range(chance.randint(1, 3)):
        skip = chance.randint(5, 300)
        saved = chance.choice(["", ", saved: true"])
        fault = f"fault: {{crash: slurmctld{saved}}}"
        lines.append(f'  - {{when: "* daemon=slurmctld", skip: {skip}, {fault}}}\n')
    starts = (20, 50, 90, 130, 200, 300, LAST_S + 60)
    lines += [f"  - {{at: {at}s, fault: {{start: slurmctld}}}}\n" for at in starts]
    for at in (LAST_S, LAST_S + 100):
        for job in range(1, 13):
            lines.append(f'  - {{at: {at}s, run: "scontrol release {job}"}}\n')
        lines.append(f'  - {{at: {at + 1}s, run: "scontrol resume 1"}}\n')
    settings = ", ".join(f"{key}: {value}" for key, value in conf.items())
    return f"slurm_conf: {{{settings}}}\ntimeline:\n" + "".join(lines)


def accepted(ran: Ran) -> list[int]:
    """Return the ids of jobs that somebody was told of."""
    answers = ("RESPONSE_SUBMIT_BATCH_JOB", "RESPONSE_RESOURCE_ALLOCATION")
    heard = [each for name in answers for each in ran.all(name, phase="receive")]
    return sorted({int(str(each.job)) for each in heard if isinstance(each.job, int) and each.job})


@pytest.mark.parametrize("seed", range(8))
def test_guide_keeps_every_job_and_leaves_nothing_behind(seed: int) -> None:
    """Whoever was told of a job finds it ended; no run of one is started twice; nodes are free."""
    ran = run(scenario(seed), cluster=CLUSTER, seed=seed, schedule="random" if seed % 2 else "fifo")
    assert ran.result.stalled == ()
    assert ran.result.lost_jobs == ()
    rows = {row.job_id: row.state for row in ran.result.rows}
    assert set(accepted(ran)) <= set(rows)
    assert set(rows.values()) <= {"COMPLETED", "CANCELLED", "FAILED"}
    for node in ran.world.ctld.nodes:
        assert (node.jobs, node.completing, node.free.cpus) == ({}, 0, 4)
    scripts = [
        (each.job, each.args["restart_cnt"])  # type: ignore[index]
        for each in ran.all("REQUEST_BATCH_JOB_LAUNCH", phase="receive")
    ]
    assert len(scripts) == len(set(scripts))
    ctld = ran.world.ctld
    quick = records_of(ctld, "job_state")
    ctld.encoded.clear()
    assert records_of(ctld, "job_state") == quick
    check_books(ran, ran.world.site.conf.switch_type.partition("/")[2])


@pytest.mark.parametrize("seed", range(5))
def test_modern_tells_what_it_has_lost(seed: int) -> None:
    """What is not there in the end was told as lost; no ordering breaks but where it was struck."""
    ran = run(scenario(seed), cluster=CLUSTER, model="modern", seed=seed)
    rows = {row.job_id for row in ran.result.rows}
    assert set(accepted(ran)) <= rows | set(ran.result.lost_jobs)
