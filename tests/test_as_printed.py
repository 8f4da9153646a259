"""What commands of Slurm 22.05 print and do in situations that other tests do not have."""

import re

import pytest

from simctl.scenario.load import read_scenario
from simctl.scenario.positions import ScenarioErrors
from tests.cluster import TWO_NODES, Ran, run
from tests.moments import BOTH, timeline

ACCOUNTED = TWO_NODES.replace("alice: 1001", "alice: {uid: 1001, account: proj}")


def outcome(ran: Ran, place: int = -1) -> tuple[int, str, str]:
    """Return the exit status of a command of the timeline, and what it wrote."""
    command = ran.result.commands[place]
    return command.exit, command.stdout, command.stderr


# Nodes that are silent.


@BOTH
@pytest.mark.parametrize(("launched", "silent_s", "down_s"), [(15, 50, 100), (22, 70, 120)])
def test_slurmd_timeout_counts_from_the_first_ping_in_vain(
    model: str, launched: int, silent_s: int, down_s: int
) -> None:
    """As recorded: DOWN 93 s after a death 4 s after an answer, with a SlurmdTimeout of 60 s.

    A node is not pinged that was heard of within the 20 s between two rounds. A ping is tried for
    10 s; then the node is flagged, and counts as heard of until a second before that ping.
    """
    ran = run(
        "slurm_conf: {SlurmdTimeout: 60}\n"
        + timeline(
            f"at: {launched}s, as: alice, run: \"sbatch -w n2 --wrap 'sleep 600'\"",
            f"at: {launched + 4}s, fault: {{crash: slurmd@n2}}",
            "at: 300s, as: alice, run: scancel 1",
        ),
        model=model,
    )
    (flagged,) = ran.all("node_state", args_to="ALLOCATED|NO_RESPOND")
    (down,) = ran.all("node_state", args_to="DOWN|NO_RESPOND")
    assert [event.time_us // 1_000_000 for event in (flagged, down)] == [silent_s, down_s]


@BOTH
def test_a_node_that_no_message_reaches_for_ten_seconds_is_not_responding(model: str) -> None:
    """What finds that out is a message, not the next ping; a slurmd that is back in time is not."""
    ran = run(
        timeline(
            "at: 5s, fault: {crash: slurmd@n1}",
            "at: 6s, as: alice, run: sbatch -w n1 --wrap true",
            "at: 15s, run: \"sinfo -h -N -n n1 -o '%N %t'\"",
            "at: 17s, run: \"sinfo -h -N -n n1 -o '%N %t'\"",
            "at: 18s, as: alice, run: scancel 1",
            "at: 19s, fault: {start: slurmd@n1}",
        ),
        model=model,
    )
    assert ran.result.commands[1].stdout == "n1 alloc\n"
    assert ran.result.commands[2].stdout == "n1 alloc*\n"


@BOTH
def test_a_srun_whose_nodes_are_all_dead_does_not_wait(model: str) -> None:
    """Nobody is left to end; where another node has tasks, srun waits as recorded."""
    dead = timeline("at: 5s, fault: {crash: slurmd@n2}", "at: 6s, as: alice, run: srun -w n2 true")
    status, _, stderr = outcome(run(dead, model=model))
    assert status
    assert stderr.endswith("\nsrun: Job step aborted\n")
    both = timeline(
        "at: 5s, fault: {crash: slurmd@n2}", "at: 6s, as: alice, run: srun -N2 sleep 60"
    )
    status, _, stderr = outcome(run(both, model=model))
    assert "Job step aborted: Waiting up to 32 seconds" in stderr
    assert stderr.endswith("srun: error: Timed out waiting for job step to complete\n")


@pytest.mark.parametrize(("back_s", "launched"), [(14, True), (15.9, True), (16.1, False)])
def test_srun_tries_ten_seconds_to_reach_a_slurmd_that_refuses_it(
    back_s: float, *, launched: bool
) -> None:
    """It looks each second, last ten seconds after the first try; the other node runs meanwhile."""
    there = timeline(
        "at: 5s, fault: {crash: slurmd@n2}",
        "at: 6s, as: alice, run: srun -N2 sleep 30",
        f"at: {back_s}s, fault: {{start: slurmd@n2}}",
    )
    status, _, stderr = outcome(run(there, model="modern"))
    assert (status == 0) is launched
    assert ("Task launch for StepId=1.0 failed on node n2" in stderr) is not launched


# A job that waits again.


@BOTH
def test_a_requeued_job_tells_when_it_may_begin(model: str) -> None:
    """Two minutes and a second after the requeue; nothing of its first run is shown."""
    ran = run(
        timeline(
            "at: 1s, as: alice, run: \"sbatch -w n1 --wrap 'sleep 600'\"",
            "at: 10s, run: scontrol requeue 1",
            "at: 14s, run: scontrol show job 1",
            "at: 20s, as: alice, run: scancel 1",
        ),
        model=model,
    )
    shown = ran.result.commands[2].stdout
    assert "EligibleTime=2026-01-01T00:02:11" in shown
    assert "AccrueTime=2026-01-01T00:02:11" in shown
    assert "BatchHost" not in shown


# Refused submissions.


@pytest.mark.parametrize(
    ("command", "told"),
    [("salloc -c 5 true", True), ("srun -c 5 true", False), ("sbatch -c 5 --wrap true", False)],
)
def test_a_submission_that_no_node_could_hold_uses_up_an_id(command: str, told: bool) -> None:
    """Salloc says which; one for a partition that is not there has none yet."""
    ran = run(
        timeline(
            f"at: 1s, as: alice, run: {command}",
            "at: 2s, as: alice, run: sbatch -p nope --wrap true",
            "at: 3s, as: alice, run: sbatch --wrap true",
        ),
        model="modern",
    )
    revoked = "salloc: Job allocation 1 has been revoked.\n"
    assert (revoked in ran.stderr()) is told
    assert outcome(ran)[1] == "Submitted batch job 2\n"


TIME = "Requested time limit is invalid (missing or exceeds some limit)"
NODES = "Node count specification invalid"
CPUS = "More processors requested than permitted"


@pytest.mark.parametrize(
    ("enforce", "options", "text"),
    [
        *(("NO", options, "") for options in ("-t61", "-N3", "-n9", "-p short,debug -t9")),
        *(("ALL", f"-t{minutes}", text) for minutes, text in ((59, ""), (60, ""), (61, TIME))),
        *(("ALL", f"-N{nodes}", text) for nodes, text in ((1, ""), (2, ""), (3, NODES))),
        *(("ALL", f"-n{tasks}", text) for tasks, text in ((7, ""), (8, ""), (9, CPUS))),
        ("ALL", "-p short,debug -t9", TIME),
        ("ANY", "-p short,debug -t9", ""),
        ("YES", "-p short,debug -t9", ""),
        ("ANY", "-p short,debug -t61", TIME),
        ("ANY", "-p short -N2", NODES),
    ],
)
def test_limits_of_partitions_may_be_enforced_at_submission(
    enforce: str, options: str, text: str
) -> None:
    """EnforcePartLimits: of ALL partitions that are named, or of ANY; else the job waits."""
    short = "default: true, max_time: 60m}, {name: short, nodes: n1, max_time: 5m}"
    cluster = TWO_NODES.replace("default: true}", short)
    ran = run(
        f"slurm_conf: {{EnforcePartLimits: {enforce}}}\n"
        + timeline(
            f"at: 1s, as: alice, run: 'sbatch {options} --wrap true'",
            "at: 9s, as: alice, run: scancel --me",
        ),
        cluster=cluster,
    )
    status, _, stderr = outcome(ran, 0)
    assert (status == 0) is (not text)
    assert stderr == (f"sbatch: error: Batch job submission failed: {text}\n" if text else "")


def test_an_unknown_word_for_enforcing_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(ScenarioErrors, match='expected ALL, ANY or NO, got "SOME"'):
        read_scenario(TWO_NODES + "slurm_conf: {EnforcePartLimits: SOME}\n", file="s.yaml")


# Accounting.


@BOTH
def test_sacct_answers_while_slurmctld_is_down(model: str) -> None:
    """With what slurmctld had told; not where the link to its host is cut."""
    ran = run(
        timeline(
            "at: 1s, as: alice, run: sbatch --wrap 'exit 3'",
            "at: 2s, as: alice, run: sbatch --wrap 'sleep 60'",
            "at: 5s, fault: {crash: slurmctld}",
            "at: 6s, as: alice, run: 'sacct -n -P -X -o jobid,state,exitcode'",
            "at: 6s, as: alice, run: squeue",
            "at: 30s, fault: {start: slurmctld}",
            "at: 90s, fault: {cut: [login, slurmctld], for: 30s}",
            "at: 91s, as: alice, run: sacct -n -P -X -o jobid",
        ),
        model=model,
    )
    assert outcome(ran, 2) == (0, "1|FAILED|3:0\n2|RUNNING|0:0\n", "")
    assert outcome(ran, 3)[0] == 1
    assert outcome(ran)[0] == 1


@BOTH
def test_the_script_of_a_dead_node_has_no_exit_code(model: str) -> None:
    """Nobody has told one."""
    ran = run(
        timeline(
            "at: 1s, as: alice, run: \"sbatch --no-requeue --wrap 'sleep 600'\"",
            "at: 5s, run: scontrol update nodename=n1 state=down reason=x",
            "at: 9s, as: alice, run: 'sacct -n -P -o jobid,state,exitcode'",
        ),
        model=model,
    )
    assert outcome(ran)[1] == "1|NODE_FAIL|0:0\n1.batch|CANCELLED|\n"


def test_without_accounting_sacct_is_refused_and_nobody_has_an_account_or_qos() -> None:
    """What is asked for with -A counts all the same."""
    lines = timeline(
        "at: 1s, as: alice, run: \"sbatch --wrap 'echo $SLURM_JOB_QOS,$SLURM_JOB_ACCOUNT'\"",
        "at: 2s, as: alice, run: sbatch -A other --wrap true",
        "at: 3s, as: alice, run: 'sacct -n -P -X -o jobid,account,qos'",
        "at: 4s, as: alice, run: scontrol -o show job",
        "at: 5s, as: alice, run: 'squeue -t all -h -o \"%i %a %q\"'",
    )
    kept = run(lines, cluster=ACCOUNTED)
    assert outcome(kept, 2)[1] == "1|proj|normal\n2|other|normal\n"
    assert kept.world.disk.read("slurm-1.out", "/home/alice", host="n1") == "normal,proj\n"
    none = "slurm_conf: {AccountingStorageType: accounting_storage/none}\n"
    ran = run(none + lines, cluster=ACCOUNTED)
    assert outcome(ran, 2) == (1, "", "Slurm accounting storage is disabled\n")
    accounts = re.findall(r"Account=(\S+) QOS=(\S+)", outcome(ran, 3)[1])
    assert accounts == [("(null)", "(null)"), ("other", "(null)")]
    assert outcome(ran)[1] == "1 (null) (null)\n2 other (null)\n"
    assert ran.world.disk.read("slurm-1.out", "/home/alice", host="n1") == ",\n"


@pytest.mark.parametrize(
    ("lag", "shown"),
    [
        ("0s", ["1|RUNNING|0:0", "1|FAILED|3:0", "1|FAILED|3:0", "1|FAILED|3:0"]),
        ("2s", ["", "1|RUNNING|0:0", "1|RUNNING|0:0", "1|FAILED|3:0"]),
    ],
)
def test_sacct_may_be_late(lag: str, shown: list[str]) -> None:
    """It shows each job as it stood so long ago, one that had not come then not at all."""
    ran = run(
        f"options: {{accounting_lag: {lag}}}\n"
        + timeline(
            "at: 1s, as: alice, run: \"sbatch --wrap 'sleep 4; exit 3'\"",
            *(
                f"at: {moment}, as: alice, run: 'sacct -n -P -X -o jobid,state,exitcode'"
                for moment in ("2900ms", "6s", "6900ms", "7100ms")
            ),
        )
    )
    assert [each.stdout.strip() for each in ran.result.commands[1:]] == shown


# What tells of commands.


@pytest.mark.parametrize(
    "command", ["sbatch", "salloc", "srun", "scancel", "squeue", "sinfo", "scontrol", "sacct"]
)
def test_every_command_tells_its_options_and_its_usage(command: str) -> None:
    """And ends with 0."""
    ran = run(
        timeline(
            f"at: 1s, as: alice, run: {command} --help",
            f"at: 2s, as: alice, run: {command} --usage",
        )
    )
    status, told, _ = outcome(ran, 0)
    usage = outcome(ran)[1]
    assert (status, outcome(ran)[0]) == (0, 0)
    assert usage.startswith(f"Usage: {command} [OPTIONS")
    assert usage.count("\n") == 1
    assert told.startswith(usage)
    assert "\n  -V, --version" in told


def test_the_command_of_salloc_knows_slurm_conf() -> None:
    """As scripts and tasks do."""
    ran = run(timeline("at: 1s, as: alice, run: \"salloc sh -c 'echo $SLURM_CONF'\""))
    assert outcome(ran)[1] == "/etc/slurm/slurm.conf\n"


# Found with Slurm's own tests.


@pytest.mark.parametrize(
    ("words", "limit"),
    [("timelimit 1", "00:01:00"), ("timelimit=2", "00:02:00"), ("name x timelimit 3", "00:03:00")],
)
def test_values_of_an_update_may_stand_apart(words: str, limit: str) -> None:
    """The next word is the value of a key without one."""
    ran = run(
        timeline(
            "at: 1s, as: alice, run: sbatch -H -t9 --wrap true",
            f"at: 2s, run: scontrol update jobid=1 {words}",
            "at: 3s, run: scontrol -o show job 1",
            "at: 4s, run: scontrol update jobid=1 timelimit",
            "at: 5s, as: alice, run: scancel 1",
        )
    )
    assert f" TimeLimit={limit} " in outcome(ran, 2)[1]
    assert outcome(ran, 3)[0] == 1
    assert "Invalid input: timelimit" in outcome(ran, 3)[2]


@pytest.mark.parametrize(("limit", "rc"), [(59, 0), (60, 0), (61, 1)])
def test_an_owner_may_raise_the_limit_of_a_job_that_waits(limit: int, rc: int) -> None:
    """Up to the MaxTime of its partition; that of one that runs only an operator may."""
    cluster = TWO_NODES.replace("default: true}", "default: true, max_time: 60m}")
    ran = run(
        timeline(
            "at: 1s, as: alice, run: sbatch -H -t1 --wrap true",
            f"at: 2s, as: alice, run: scontrol update jobid=1 timelimit={limit}",
            "at: 3s, as: alice, run: \"sbatch -t1 --wrap 'sleep 9'\"",
            "at: 4s, as: alice, run: scontrol update jobid=2 timelimit=2",
            "at: 20s, as: alice, run: scancel 1",
        ),
        cluster=cluster,
    )
    assert outcome(ran, 1)[0] == rc
    assert outcome(ran, 3)[0] == 1


@pytest.mark.parametrize(
    ("begin", "starts"),
    [
        ("noon-tomorrow", "2026-01-02T12:00:00"),
        ("tomorrow-noon", "2026-01-02T12:00:00"),
        ("tomorrowTmidnight", "2026-01-02T00:00:00"),
        ("'teatime tomorrow'", "2026-01-02T16:00:00"),
        ("10:30-2026-01-05", "2026-01-05T10:30:00"),
        ("12:30am-tomorrow", "2026-01-02T00:30:00"),
        ("12:30pm", "2026-01-01T12:30:00"),
        ("11:59am", "2026-01-01T11:59:00"),
        ("11:59pm", "2026-01-01T23:59:00"),
        ("1:00pm", "2026-01-01T13:00:00"),
        ("noon-noon", ""),
        ("tomorrow-tomorrow", ""),
    ],
)
def test_a_day_and_a_time_of_it_may_be_named(begin: str, starts: str) -> None:
    """In either order, apart by a blank, a hyphen or a T."""
    ran = run(
        timeline(
            f'at: 1s, as: alice, run: "sbatch --begin={begin} --wrap true"',
            "at: 2s, run: scontrol -o show job 1",
            "at: 3s, as: alice, run: scancel --me",
        )
    )
    assert (outcome(ran, 0)[0] == 0) is bool(starts)
    assert (f" StartTime={starts} " in outcome(ran, 1)[1]) is bool(starts)


def test_three_brackets_have_the_last_but_one_outermost() -> None:
    """As Slurm's prefix of a list is a list itself; two are as they stand."""
    ran = run(
        timeline(
            "at: 1s, run: 'scontrol show hostnames r[0-1]_s[2-3]_b[4-5]'",
            "at: 1s, run: 'scontrol show hostnames r[0-1]_s[2-3]'",
        )
    )
    assert outcome(ran, 0)[1].split() == [
        f"r{row}_s{rack}_b{blade}" for rack in (2, 3) for row in (0, 1) for blade in (4, 5)
    ]
    assert outcome(ran, 1)[1].split() == ["r0_s2", "r0_s3", "r1_s2", "r1_s3"]


@BOTH
def test_a_deadline_is_the_limit_of_a_job_that_has_none(model: str) -> None:
    """It is what is left when the job starts, if the partition's limit is not less."""
    ran = run(
        timeline(
            "at: 1s, as: alice, run: \"sbatch --deadline now+600 --wrap 'sleep 5'\"",
            "at: 2s, run: scontrol -o show job 1",
            "at: 3s, as: alice, run: sbatch -t1 --begin now+2hour --deadline now+1hour --wrap true",
        ),
        model=model,
    )
    assert re.search(r" TimeLimit=00:(09|10):00 ", outcome(ran, 1)[1])
    assert ran.job()[0] == "COMPLETED"
    told = "sbatch: error: Incompatible begin and deadline time specification\n"
    assert outcome(ran, 2) == (1, "", told)


@BOTH
@pytest.mark.parametrize(
    "how", ["true", "exit 3", "kill -9 $$", "sleep 100"], ids=["done", "failed", "killed", "gone"]
)
def test_a_job_that_is_over_may_run_again(model: str, how: str) -> None:
    """It waits two minutes, runs, and is purged only MinJobAge after its second end."""
    ran = run(
        "slurm_conf: {MinJobAge: 100}\n"
        + timeline(
            f"at: 1s, as: alice, run: \"sbatch --wrap '{how}'\"",
            "at: 20s, as: alice, run: scancel 1",
            "at: 90s, as: alice, run: scontrol requeue 1",
            "at: 91s, run: \"squeue -h -o '%i %t %r'\"",
            "at: 215s, as: alice, run: scancel 1",
            "at: 280s, run: scontrol -o show job 1",
        ),
        model=model,
    )
    assert outcome(ran, 2)[0] == 0
    assert outcome(ran, 3)[1] == "1 PD BeginTime\n"
    assert len(ran.all("job_state", job=1, args_to="RUNNING")) == 2
    assert " Restarts=1 " in outcome(ran, 5)[1]


def test_the_file_of_hosts_names_the_node_of_each_task() -> None:
    """For -m arbitrary; too few, or no file, are mistakes."""
    script = "#!/bin/sh\n    export SLURM_HOSTFILE={}\n    srun -n{} -m arbitrary hostname -s\n"
    ran = run(
        "files:\n"
        '  hosts: "n2\\nn1\\nn2\\n"\n'
        f"  two.sh: |\n    {script.format('hosts', 2)}"
        f"  four.sh: |\n    {script.format('hosts', 4)}"
        f"  none.sh: |\n    {script.format('nowhere', 1)}"
        + timeline(
            *(
                f"at: {at}s, as: alice, run: sbatch -N2 -n4 -o {name}.out {name}.sh"
                for at, name in ((1, "two"), (10, "four"), (20, "none"))
            )
        )
    )
    ranks = {event.task: event.node for event in ran.all("switch_p_job_attach", step="1.0")}
    assert ranks == {0: "n2", 1: "n1"}
    read = ran.world.disk.read
    assert "lists 3 nodes for 4 tasks" in str(read("four.out", "/home/alice", host="n1"))
    assert "nowhere cannot be read" in str(read("none.out", "/home/alice", host="n1"))


def test_a_file_in_somebodys_folder_may_have_its_whole_path() -> None:
    """It is that user's, and so is the folder that it lies in."""
    ran = run(
        'files: {"/home/alice/x/j.sh": "#!/bin/sh\\necho done\\n"}\n'
        + timeline("at: 1s, as: alice, run: sbatch -o /home/alice/x/o.txt /home/alice/x/j.sh")
    )
    assert ran.job()[0] == "COMPLETED"
    assert ran.world.disk.read("x/o.txt", "/home/alice", host="n1") == "done\n"
    assert not ran.world.scenario.warnings
