"""Whatever slurmctld knew when it died, in a moment in which it did nothing, the next one knows."""

from collections.abc import Callable
from typing import Any

import pytest

from simctl import world  # noqa: F401 - the parts of slurmctld are imported by way of it
from simctl.ctld.checkpoints import checkpoint_times
from simctl.ctld.daemon import Slurmctld
from simctl.ctld.jobs import completion, eligible, limits
from simctl.ctld.recovery import restart
from simctl.ctld.saved.state_reading import Reader
from simctl.ctld.steps import step_limits
from tests.cluster import Ran, run
from tests.entries import entries
from tests.restored import Damage, crashed_at, differences, moments

CLUSTER = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions:
  - {name: debug, nodes: "n[1-2]", default: true}
  - {name: low, nodes: n1, preempt_mode: CANCEL, grace_time: 60s}
  - {name: other, nodes: n2}
  - {name: urgent, nodes: "n[1-2]", priority_tier: 10}
users: {alice: 1001, bob: 1002}
"""


SITUATIONS = {
    "arrays and dependencies": entries(
        "0 alice sbatch --array=0-3%1 --wrap 'sleep 5; exit $SLURM_ARRAY_TASK_ID'",
        "1 alice sbatch --dependency=afterok:1 --wrap 'sleep 3'",
        "1 alice sbatch --dependency=aftercorr:1 --array=0-3 --wrap 'sleep 3'",
        "2 alice sbatch --dependency=afterany:1?singleton -J x --wrap 'sleep 3'",
        "2 alice sbatch -J x --wrap 'sleep 30'",
        "2 alice sbatch --dependency=singleton -J x --wrap 'sleep 3'",
        "3 bob sbatch -H --nice=5 --wrap 'sleep 30'",
    ),
    "limits": entries(
        "0 alice sbatch -t3 --signal=B:USR1@60 --wrap 'srun -t1 -n1 sleep 90; sleep 300'",
        "1 bob srun -n2 -t2 sleep 400",
        "2 bob sbatch -N2 -t5 --deadline=now+8minutes --wrap 'srun sleep 10'",
        "3 bob sbatch --begin=now+60 -t1 --wrap 'sleep 10'",
        "40 root scontrol suspend 1",
        "60 root scontrol resume 1",
        "61 root scontrol update stepid=1.0 timelimit=2",
    ),
    "preemption": entries(
        "0 alice sbatch -p low --wrap 'srun ./stubborn'",
        "1 alice sbatch -p other --wrap 'srun ./stubborn'",
        "20 bob sbatch -p urgent -N2 -t2 --wrap 'srun sleep 20'",
        "21 bob sbatch -p urgent -N2 --begin=now+9 --wrap 'srun sleep 5'",
        head="slurm_conf: {PreemptType: preempt/partition_prio, PreemptMode: 'SUSPEND,GANG'}\n"
        "programs: {./stubborn: {runs: 3m, on_signal: {TERM: ignore}}}\n",
    ),
    "ends": entries(
        "0 alice sbatch -N2 --wrap 'srun sleep 60'",
        "10 root scontrol requeue 1",
        "12 alice sbatch --no-requeue --wrap 'sleep 5'",
        "14 root scontrol update nodename=n2 state=drain reason=disk",
        "90 root scontrol update nodename=n2 state=resume",
        "200 root scontrol requeuehold 1",
        "230 root scontrol release 1",
        head='files: {/e.sh: "#!/bin/sh\\nsleep 7\\n", /p.sh: "#!/bin/sh\\nsleep 3\\n"}\n'
        "slurm_conf: {Epilog: /e.sh, EpilogSlurmctld: /e.sh, PrologSlurmctld: /p.sh, "
        "PrologFlags: Alloc, Prolog: /p.sh}\n",
    ),
    "reservations": entries(
        "0 root scontrol create reservation reservationname=demo starttime=now+1minutes "
        "duration=2 users=bob nodes=n1",
        "1 alice sbatch -t5 -w n1 --wrap 'sleep 60'",
        "3 bob sbatch -t1 --reservation=demo --wrap 'sleep 30'",
        "4 bob sbatch -t100 --reservation=demo --wrap 'sleep 30'",
        "5 root scontrol update partitionname=debug maxtime=200 state=drain",
    ),
    "clients": entries(
        "0 alice salloc -N2 -t5 srun -n2 --exclusive sleep 20",
        "1 bob srun sleep 9",
        "2 alice sbatch -n2 --wrap 'srun -n2 --exclusive sleep 8 & srun -n1 --exclusive sleep 9'",
        "3 bob sbatch -W --wrap 'sleep 4'",
        head="slurm_conf: {SwitchType: switch/elan}\n",
    ),
    "checkpoints": entries(
        "0 alice sbatch -N1 --checkpoint=1 --wrap 'sleep 150'",
        "1 bob srun -N1 --checkpoint=1 sleep 130",
        "70 root scontrol suspend 1",
        "100 root scontrol resume 1",
        head="slurm_conf: {CheckpointType: checkpoint/ompi}\n",
    ),
}


def forgotten(name: str, model: str, moment_us: int, damage: Damage | None = None) -> list[str]:
    """Return what the next slurmctld has otherwise if the last one dies at a moment."""
    text = SITUATIONS[name]
    _, taken = crashed_at(text, moment_us, damage, cluster=CLUSTER, model=model)
    ((old, new),) = taken
    return [
        f"at {moment_us} {path}: {was} is {now}"
        for path, (was, now) in differences(old, new, model).items()
    ]


def ran(name: str, model: str) -> Ran:
    """Run a situation in which slurmctld lives on."""
    return run(SITUATIONS[name], cluster=CLUSTER, model=model)


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("name", SITUATIONS)
def test_a_restart_forgets_nothing(name: str, model: str) -> None:
    """Every table, field, limit and timer is as it was, at every other moment of a run.

    The models take turns: their moments are nearly the same.
    """
    wrong: list[str] = []
    for moment_us in moments(ran(name, model))[model == "modern" :: 2]:
        wrong += forgotten(name, model, moment_us)
    assert not wrong, "\n".join(wrong)


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def lacks(owner: object, function: str) -> Damage:
    """Return a damage: a function that a start calls does nothing."""
    return lambda patch: patch.setattr(owner, function, nothing)


def first_place_only(patch: pytest.MonkeyPatch) -> None:
    """Have only nodes told again that had not reported when slurmctld died."""
    place: Callable[[Slurmctld, Any], None] = getattr(restart, "_place")  # noqa: B009

    def placed(ctld: Slurmctld, job: Any) -> None:
        ctld.saves.was_stopped = True
        place(ctld, job)

    patch.setattr(restart, "_place", placed)


DAMAGES = {
    "time limits of steps": ("limits", lacks(step_limits, "resume")),
    "time limits of jobs": ("limits", lacks(Slurmctld, "watch_limit")),
    "warnings": ("limits", lacks(limits, "watch_warning")),
    "deadlines": ("limits", lacks(limits, "watch_deadline")),
    "begin times": ("limits", lacks(Slurmctld, "begin_at")),
    "purges": ("arrays and dependencies", lacks(completion, "purge_in_time")),
    "who waits for whom": ("arrays and dependencies", lacks(eligible, "register")),
    "grace times": ("preemption", lacks(Slurmctld, "grace_at")),
    "boundaries of reservations": ("reservations", lacks(Slurmctld, "reservation_at")),
    "nodes that are told again": ("ends", first_place_only),
    "checkpoints of jobs": ("checkpoints", lacks(checkpoint_times, "job_started")),
    "checkpoints of steps": ("checkpoints", lacks(checkpoint_times, "step_started")),
    "states of nodes": ("ends", lacks(restart, "_settle_node")),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_restart_that_forgets_is_noticed(what: str) -> None:
    """The rule above finds each timer and table that a start does not make again."""
    name, damage = DAMAGES[what]
    moments_us = moments(ran(name, "guide"))
    assert any(forgotten(name, "guide", moment_us, damage) for moment_us in moments_us)


def join_without_those_over(reader: Any, saved: Any) -> None:
    """Read an array without its tasks that are over."""
    _JOIN(reader, saved)
    array = reader._ctld.arrays[saved.job_id]
    array.records = {k: job for k, job in array.records.items() if not job.state.finished}


_JOIN: Any = getattr(Reader, "_join_array")  # noqa: B009


def test_tasks_that_are_read_no_more_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that are over decide for those that wait for their array."""
    monkeypatch.setattr(Reader, "_join_array", join_without_those_over)
    name = "arrays and dependencies"
    moments_us = moments(ran(name, "guide"))
    assert any(forgotten(name, "guide", moment_us) for moment_us in moments_us)


@pytest.mark.parametrize("how", ["restart: slurmctld", "crash: slurmctld, saved: true"])
@pytest.mark.parametrize("model", ["guide", "modern"])
def test_an_array_is_judged_by_all_its_tasks_once_they_are_purged(model: str, how: str) -> None:
    """A task failed that is long forgotten: afterok can never be met, before and after a start."""
    text = entries(
        "0 alice sbatch --array=0-1%1 -N1 --wrap '[ $SLURM_ARRAY_TASK_ID = 1 ]'",
        "1 alice sbatch -N1 --dependency=afterok:1 --wrap 'sleep 3'",
        "499 alice squeue --noheader --format=%A",
    )
    found = run(
        f"{text}  - {{at: 500s, fault: {{{how}}}}}\n  - {{at: 501s, fault: {{start: slurmctld}}}}\n"
        "  - {at: 520s, run: squeue --noheader --format=%A}\n",
        model=model,
    )
    assert [each.stdout.split() for each in found.result.commands[2:]] == [["3"], ["3"]]
    assert found.job(3) == ("PENDING", "0:0", "DependencyNeverSatisfied")
