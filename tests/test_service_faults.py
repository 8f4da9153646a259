"""Faults of what Slurm does for users: accounting, a job preempted, a node given up."""

import pytest

from simctl.scenario.load import read_scenario
from simctl.scenario.positions import ScenarioErrors
from tests.cluster import run

LINES = """\
slurm_conf: {PreemptType: preempt/partition_prio, PreemptMode: %s}
timeline:
  - {at: 1s, run: "sbatch --requeue --wrap 'sleep 100'"}
  - {at: 2s, fault: {accounting: away, for: 10s}}
  - {at: 3s, run: "sacct -nX"}
  - {at: 3s, fault: {accounting: away, for: 2s}}
  - {at: 4s, run: "sshare"}
  - {at: 6s, run: "sacct -nXPo State"}
  - {at: 13s, run: "sacct -nXPo State"}
  - {at: 20s, fault: {accounting: late, by: 5s}}
  - {at: 21s, fault: {preempt: 1}}
  - {at: 25s, run: "sacct -nXPo State"}
  - {at: 27s, run: "sacct -nXPo State"}
  - {at: 28s, fault: {preempt: 7}}
"""


@pytest.mark.parametrize(("mode", "end"), [("REQUEUE", "COMPLETED"), ("CANCEL", "PREEMPTED")])
def test_accounting_is_away_and_late_and_a_job_gives_way(mode: str, end: str) -> None:
    """Of two such faults the later one counts; what meets nobody is told."""
    ran = run(LINES % mode)
    told = [(each.exit, each.stdout + each.stderr) for each in ran.result.commands[1:]]
    assert [status for status, _ in told] == [1, 1, 0, 0, 0, 0]
    for _, output in told[:2]:
        assert "Problem talking to the database: Connection refused" in output
    assert [output for _, output in told[2:5]] == ["RUNNING\n"] * 3
    assert told[5][1] == "PREEMPTED\n"
    assert [row.state for row in ran.result.rows] == [end]
    assert ran.result.missed == ("preempt job 7: job 7 does not run",)


@pytest.mark.parametrize("for_s", [1, 3, 5, 6])
def test_accounting_is_away_until_the_later_fault_ends(for_s: int) -> None:
    """Also where an earlier one ends before, in that moment, or would have ended after it."""
    ran = run(
        "timeline:\n"
        "  - {at: 10s, fault: {accounting: away, for: 5s}}\n"
        f"  - {{at: 12s, fault: {{accounting: away, for: {for_s}s}}}}\n"
        + "".join(f'  - {{at: {at}500ms, run: "sacct -nX"}}\n' for at in range(9, 20))
    )
    away = [at for at, each in zip(range(9, 20), ran.result.commands, strict=True) if each.exit]
    assert away == list(range(10, 12 + for_s))


@pytest.mark.parametrize(
    ("at_s", "told"),
    [
        (24, ""),
        (25, "PENDING|Unknown|Unknown\n"),
        (27, "PENDING|Unknown|Unknown\n"),
        (28, "RUNNING|2026-01-01T00:00:23|Unknown\n"),
        (37, "RUNNING|2026-01-01T00:00:23|Unknown\n"),
        (38, "COMPLETED|2026-01-01T00:00:23|2026-01-01T00:00:33\n"),
    ],
)
def test_late_accounting_knows_nothing_of_what_comes_next(at_s: int, told: str) -> None:
    """It tells state, start and end as they were so much earlier."""
    ran = run(
        "timeline:\n"
        "  - {at: 1s, fault: {accounting: late, by: 5s}}\n"
        "  - {at: 20s, run: \"sbatch --begin=now+3 --wrap 'sleep 10'\"}\n"
        f'  - {{at: {at_s}500ms, run: "sacct -nXPo State,Start,End"}}\n'
    )
    assert ran.result.commands[1].stdout == told


def test_a_node_that_crashes_may_be_noticed_at_once() -> None:
    """NODE_FAIL without SlurmdTimeout's wait; as ever the job of a batch script may run again."""
    ran = run(
        "timeline:\n"
        "  - {at: 1s, run: \"sbatch -w n1 --no-requeue --wrap 'sleep 100'\"}\n"
        "  - {at: 5s, fault: {crash: n1, noticed: true}}\n"
        '  - {at: 5500ms, run: "squeue -ht all -o %T"}\n'
        '  - {at: 5500ms, run: "sinfo -hRo %E"}\n'
    )
    assert [each.stdout for each in ran.result.commands[1:]] == ["NODE_FAIL\n", "Not responding\n"]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("{accounting: late}", "say how late"),
        ("{accounting: away, by: 3s}", "only accounting that is `late`"),
        ("{accounting: gone}", "away or late"),
        ("{preempt: x}", "the id of a job"),
        ("{preempt: 0}", "the id of a job"),
        ("{crash: slurmctld, noticed: true}", "only of a node"),
    ],
)
def test_such_a_fault_is_checked(fault: str, told: str) -> None:
    """Each mistake has its place."""
    with pytest.raises(ScenarioErrors) as raised:
        read_scenario(
            "nodes: [{name: n1, cpus: 1}]\npartitions: [{name: p, nodes: n1, default: true}]\n"
            f"timeline: [{{at: 1s, fault: {fault}}}]\n",
            file="x.yaml",
        )
    assert told in "; ".join(str(mistake) for mistake in raised.value.mistakes)
