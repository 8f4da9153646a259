"""sbatch, srun and scancel: what they print, their exit statuses, and what they leave behind."""

import pytest

from tests.cluster import Ran, run
from tests.entries import entries, states

FOUR_NODES = """\
nodes: [{name: "n[1-4]", cpus: 4}]
partitions:
  - {name: debug, nodes: "n[1-4]", default: true}
  - {name: short, nodes: "n[1-2]", max_time: "0:30:00", max_nodes: 1}
users: {alice: 1001, bob: 1002}
files:
  j.sh: "#!/bin/sh\\nsleep 1\\n"
  empty.sh: ""
  noshebang.sh: "hostname\\n"
"""


def type_one(command: str, *, as_user: str = "alice", more: str = "") -> tuple[int, str, str]:
    """Type a command on an idle cluster; return its exit status and what it wrote."""
    line = command.replace('"', '\\"')
    text = f'{more}timeline: [{{at: 1s, as: {as_user}, run: "{line}"}}]\n'
    result = run(text, cluster=FOUR_NODES).result.commands[0]
    return result.exit, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("command", "status", "stdout", "stderr"),
    [
        ("sbatch j.sh", 0, "Submitted batch job 1\n", ""),
        ("sbatch --parsable j.sh", 0, "1\n", ""),
        ("sbatch -Q j.sh", 0, "", ""),
        ('sbatch --wrap "hostname; sleep 1"', 0, "Submitted batch job 1\n", ""),
        ("sbatch -N5 j.sh", 0, "Submitted batch job 1\n", ""),
        ("sbatch -n 100 j.sh", 0, "Submitted batch job 1\n", ""),
        ("sbatch -p short -t 60 j.sh", 0, "Submitted batch job 1\n", ""),
        (
            "sbatch -n1 -N2 j.sh",
            0,
            "Submitted batch job 1\n",
            "sbatch: Warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n",
        ),
        (
            "sbatch -c 5 j.sh",
            1,
            "",
            "sbatch: error: CPU count per node can not be satisfied\n"
            "sbatch: error: Batch job submission failed: "
            "Requested node configuration is not available\n",
        ),
        (
            "sbatch -N1 -n8 --ntasks-per-node=8 j.sh",
            1,
            "",
            "sbatch: error: CPU count per node can not be satisfied\n"
            "sbatch: error: Batch job submission failed: "
            "Requested node configuration is not available\n",
        ),
        (
            "sbatch -p nope j.sh",
            1,
            "",
            "sbatch: error: invalid partition specified: nope\n"
            "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
        ),
        ("sbatch -t foo j.sh", 255, "", "sbatch: error: Invalid --time specification\n"),
        (
            "sbatch --foo j.sh",
            255,
            "",
            "sbatch: unrecognized option '--foo'\nTry \"sbatch --help\" for more information\n",
        ),
        (
            "sbatch -n abc j.sh",
            1,
            "",
            'sbatch: error: Invalid numeric value "abc" for --ntasks.\n',
        ),
        ("sbatch -n 0 j.sh", 1, "", 'sbatch: error: Invalid numeric value "0" for --ntasks.\n'),
        ("sbatch nofile.sh", 1, "", "sbatch: error: Unable to open file nofile.sh\n"),
        ("sbatch empty.sh", 1, "", "sbatch: error: Batch script is empty!\n"),
        (
            "sbatch noshebang.sh",
            1,
            "",
            "sbatch: error: This does not look like a batch script.  The first\n"
            "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
            "sbatch: error: For instance: #!/bin/sh\n",
        ),
        (
            "sbatch -w nope j.sh",
            1,
            "",
            "sbatch: error: Batch job submission failed: Invalid node name specified\n",
        ),
        (
            "sbatch -x nope j.sh",
            1,
            "",
            "sbatch: error: Batch job submission failed: Invalid node name specified\n",
        ),
        ("sbatch -N foo j.sh", 255, "", 'sbatch: error: "foo" is not a valid node count\n'),
        (
            "sbatch -N 3-2 j.sh",
            255,
            "",
            "sbatch: error: Maximum node count 2 is less than minimum node count 3\n",
        ),
        ("sbatch -m foo j.sh", 255, "", "sbatch: error: Invalid --distribution specification\n"),
        (
            "sbatch --wrap=hostname j.sh",
            1,
            "",
            "sbatch: error: Script arguments not permitted with --wrap option\n",
        ),
        (
            "sbatch -t",
            255,
            "",
            "sbatch: option requires an argument -- 't'\n"
            'Try "sbatch --help" for more information\n',
        ),
        ("scancel", 1, "", "scancel: error: No job identification provided\n"),
        ("scancel abc", 1, "", "scancel: error: Invalid job id abc\n"),
        ("scancel 999999", 0, "", ""),
        (
            "scancel -v 999999",
            0,
            "",
            "scancel: Terminating job 999999\n"
            "scancel: error: Kill job error on job id 999999: Invalid job id specified\n",
        ),
        (
            "scancel --foo",
            1,
            "",
            "scancel: unrecognized option '--foo'\nTry \"scancel --help\" for more information\n",
        ),
        ("scancel -s FOO 1", 1, "", "Unknown job signal: FOO\n"),
        ("srun", 1, "", "srun: fatal: No command given to execute.\n"),
        (
            "srun --foo hostname",
            255,
            "",
            "srun: unrecognized option '--foo'\nTry \"srun --help\" for more information\n",
        ),
        ("srun -t foo hostname", 255, "", "srun: error: Invalid --time specification\n"),
        (
            "srun -w nope hostname",
            1,
            "",
            "srun: error: Unable to allocate resources: Invalid node name specified\n",
        ),
        (
            "srun -p nope hostname",
            1,
            "",
            "srun: error: invalid partition specified: nope\n"
            "srun: error: Unable to allocate resources: Invalid partition name specified\n",
        ),
        (
            "srun -c 5 hostname",
            1,
            "",
            "srun: error: CPU count per node can not be satisfied\n"
            "srun: error: Unable to allocate resources: "
            "Requested node configuration is not available\n",
        ),
        ("srun true", 0, "", ""),
        ('srun bash -c "exit 3"', 3, "", "srun: error: n1: task 0: Exited with exit code 3\n"),
        (
            "srun -n2 bash -c 'exit $((SLURM_PROCID+3))'",
            4,
            "",
            "srun: error: n1: task 0: Exited with exit code 3\n"
            "srun: error: n1: task 1: Exited with exit code 4\n",
        ),
        ("srun bash -c 'kill -SEGV $$'", 139, "", "srun: error: n1: task 0: Segmentation fault\n"),
        ("srun -n2 -l echo hi", 0, "0: hi\n1: hi\n", ""),
        (
            "srun -N4 -n4 sh -c 'echo $SLURM_PROCID $SLURM_NODEID $SLURM_LOCALID'",
            0,
            "0 0 0\n1 1 0\n2 2 0\n3 3 0\n",
            "",
        ),
    ],
)
def test_prints_what_slurm_prints(command: str, status: int, stdout: str, stderr: str) -> None:
    """The same words on the same stream, and the same exit status."""
    assert type_one(command) == (status, stdout, stderr)


@pytest.mark.parametrize(
    "command",
    ["sbatch --signal=R:9 j.sh", "srun -Z true", "salloc -W5 true",
     "salloc --gpu-bind=x true", "sbatch --contiguous j.sh",
     "scancel --sibling=x 1", "sbatch --spread-job j.sh"],
)  # fmt: skip
def test_options_that_are_not_built_are_refused_by_name(command: str) -> None:
    """Nothing is parsed and then ignored."""
    status, stdout, stderr = type_one(command)
    assert status in (1, 255)
    assert stdout == ""
    assert "simctl does not simulate yet" in stderr


TWO_JOBS = """\
timeline:
  - {at: 0s, as: alice, run: sbatch -N4 --wrap "srun ./long"}
  - {at: 1s, as: alice, run: sbatch -N4 --wrap "srun ./long"}
  - {at: 10s, as: %s, run: %s}
  - {at: 60s, as: root, run: scancel 1}
  - {at: 90s, as: root, run: scancel 2}
programs: {./long: {runs: forever}}
"""


def cancelled(command: str, user: str = "alice") -> Ran:
    """Run two jobs, the first running and the second waiting, and a command at 10 s."""
    return run(TWO_JOBS % (user, command), cluster=FOUR_NODES)


def test_scancel_of_a_running_job() -> None:
    """CANCELLED at once, COMPLETING until each node has reported; tasks get SIGTERM."""
    ran = cancelled("scancel 1")
    assert states(ran) == ["PENDING", "RUNNING", "CANCELLED|COMPLETING", "CANCELLED"]
    assert ran.job() == ("CANCELLED", "0:15", "None")
    cancel = next(e for e in ran.all("job_state", job=1) if e.args["to"] == "CANCELLED|COMPLETING")  # type: ignore[index]
    assert ran.first("SRUN_JOB_COMPLETE", phase="send") > cancel.seq
    terminate = ran.all("REQUEST_TERMINATE_JOB", phase="send", job=1)
    assert len(terminate) == 4
    epilogs = ran.all("MESSAGE_EPILOG_COMPLETE", phase="receive", job=1)
    last = next(e for e in ran.all("job_state", job=1) if e.args["to"] == "CANCELLED")  # type: ignore[index]
    assert epilogs[-1].seq < last.seq
    for node in ("n1", "n2", "n3", "n4"):
        assert ran.last("switch_p_job_postfini", node=node, job=1) < ran.first(
            "MESSAGE_EPILOG_COMPLETE", phase="send", node=node, job=1
        )
    assert len(ran.all("switch_p_job_step_complete", step="1.0")) == 1
    assert "RUNNING" in states(ran, 2)


def test_scancel_of_a_pending_job_keeps_its_reason() -> None:
    """No node is told; no switch or checkpoint call; the reason to wait stays."""
    ran = cancelled("scancel 2")
    assert states(ran, 2) == ["PENDING", "CANCELLED"]
    assert ran.job(2) == ("CANCELLED", "0:0", "Resources")
    assert ran.all("REQUEST_TERMINATE_JOB", job=2) == []
    assert ran.names(job=2) == ["slurm_ckpt_alloc_job", "slurm_ckpt_free_job"]


def test_scancel_of_anothers_job() -> None:
    """Refused with 210; nothing happens to the job."""
    ran = cancelled("scancel 1", user="bob")
    command = ran.result.commands[2]
    assert command.exit == 210
    assert command.errno == "ESLURM_ACCESS_DENIED"
    assert command.stderr == (
        "scancel: error: Kill job error on job id 1: Access/permission denied\n"
    )
    assert (
        ran.one("REQUEST_TERMINATE_JOB", phase="send", node=None, peer="slurmd@n1", job=1).time_us
        > 50_000_000
    )


def test_scancel_of_a_step_kills_it_at_once() -> None:
    """SIGKILL and no SIGTERM; the script goes on and ends with srun's exit status."""
    ran = cancelled("scancel 1.0")
    signals = {e.args["signal"] for e in ran.all("signal", step="1.0", daemon="task")}  # type: ignore[index]
    assert signals == {9}
    assert ran.job() == ("FAILED", "137:0", "NonZeroExitCode")


def test_another_signal_reaches_the_steps_and_not_the_script() -> None:
    """-s USR1 ends the tasks; with --batch only the script gets it."""
    ran = cancelled("scancel -s USR1 1")
    assert {e.step for e in ran.all("signal", job=1) if e.time_us < 50_000_000} == {"1.0"}
    ran = cancelled("scancel --batch -s USR1 1")
    assert {e.step for e in ran.all("signal", job=1) if e.args == {"signal": 10}} == {"1.batch"}


def test_a_program_that_minds_no_sigterm_is_killed_killwait_later() -> None:
    """KillWait counts from the request to the node."""
    text = entries(
        "0s alice srun ./wild",
        "10s alice scancel 1",
        head=(
            "slurm_conf: {KillWait: 12}\n"
            "programs: {./wild: {runs: forever, on_signal: {TERM: ignore}}}\n"
        ),
    )
    ran = run(text, cluster=FOUR_NODES)
    killed = next(e for e in ran.all("signal", daemon="task") if e.args == {"signal": 9})
    assert killed.time_us == ran.one("REQUEST_TERMINATE_JOB", phase="receive").time_us + 12_000_000
    assert ran.job()[0] == "CANCELLED"


@pytest.mark.parametrize(
    ("script", "state", "exit_code", "reason"),
    [
        ("exit 0", "COMPLETED", "0:0", "None"),
        ("exit 7", "FAILED", "7:0", "NonZeroExitCode"),
        ("kill -9 $$", "FAILED", "0:9", "JobLaunchFailure"),
        ("nosuchprogram", "FAILED", "127:0", "NonZeroExitCode"),
        ("srun false; exit 0", "COMPLETED", "0:0", "None"),
        ("srun sh -c 'exit 4'", "FAILED", "4:0", "NonZeroExitCode"),
    ],
)
def test_how_a_script_ends_is_how_its_job_ends(
    script: str, state: str, exit_code: str, reason: str
) -> None:
    """Exit codes and signals of the script, whatever its steps did."""
    text = entries(f'0s alice sbatch --wrap "{script}"')
    ran = run(text, cluster=FOUR_NODES)
    assert ran.job() == (state, exit_code, reason)


def test_limits_of_a_partition_leave_a_job_pending_and_hold_up_nobody() -> None:
    """Too many nodes, too long, too many cpus: each has its reason, and the next job runs."""
    text = entries(
        "0s alice sbatch -p short -N2 -n2 j.sh",
        "0s alice sbatch -p short -t 60 j.sh",
        "0s alice sbatch -n 100 j.sh",
        "1s alice sbatch -p short j.sh",
    )
    ran = run(text, cluster=FOUR_NODES)
    assert [ran.job(number)[2] for number in (1, 2, 3)] == [
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "PartitionConfig",
    ]
    assert ran.job(4)[0] == "COMPLETED"
    assert ran.result.stalled == ()


def test_waiting_jobs_say_resources_and_priority() -> None:
    """The head of a queue waits for resources, those behind it for the head."""
    text = entries(
        "0s alice sbatch -N4 --wrap ./long",
        "5s alice sbatch -N1 --wrap ./long",
        "6s alice sbatch -N1 --wrap ./long",
        "20s alice scancel 2",
        "20s alice scancel 3",
        head="programs: {./long: {runs: 1h}}\n",
    )
    ran = run(text, cluster=FOUR_NODES)
    assert ran.job(2)[2] == "Resources"
    assert ran.job(3)[2] == "Priority"


def test_srun_waits_in_line_and_says_so() -> None:
    """Queued, then granted; the nodes of the job before it."""
    text = entries(
        "0s alice srun -N4 sleep 30", "5s bob srun -N4 sleep 5", "6s bob srun -I -N4 sleep 5"
    )
    ran = run(text, cluster=FOUR_NODES)
    assert ran.stderr(1) == (
        "srun: job 2 queued and waiting for resources\nsrun: job 2 has been allocated resources\n"
    )
    assert ran.result.commands[2].exit == 1
    assert ran.job(3)[0] == "FAILED"
    assert [row.start_us // 1_000_000 for row in ran.result.rows[:2]] == [0, 30]


def test_batch_output_goes_to_its_file() -> None:
    """slurm-%j.out in the working directory, or where -o and -e say; steps write there as well."""
    text = entries(
        "0s alice sbatch --wrap 'echo one; srun -n2 ./hi; echo two >&2'",
        "0s alice sbatch -J name -o %x.%u.out -e %j.err --wrap 'echo one; echo two >&2'",
        head='programs: {./hi: {runs: 1s, output: "hi\\n"}}\n',
    )
    ran = run(text, cluster=FOUR_NODES)
    disk = ran.world.disk
    assert disk.read("/home/alice/slurm-1.out") == "one\nhi\nhi\ntwo\n"
    assert disk.read("/home/alice/name.alice.out") == "one\n"
    assert disk.read("/home/alice/2.err") == "two\n"


def test_output_files_are_emptied_by_the_job_or_step_that_opens_them() -> None:
    """A second job with the same file leaves nothing of the first; a step's -o alike."""
    text = entries(
        "0s alice sbatch -o out --wrap 'echo one; echo more'",
        "9s alice sbatch -o out --wrap 'echo two'",
        "20s alice srun -n2 -o steps echo one",
        "30s alice srun -n2 -o steps echo two",
    )
    ran = run(text, cluster=FOUR_NODES)
    assert ran.world.disk.read("/home/alice/out") == "two\n"
    assert ran.world.disk.read("/home/alice/steps") == "two\ntwo\n"


def test_sbatch_lines_are_options_and_the_command_line_wins() -> None:
    """#SBATCH lines before the first command count; after it they are comments."""
    text = entries(
        "0s alice sbatch opts.sh",
        "9s alice sbatch -N2 opts.sh",
        head='files: {opts.sh: "#!/bin/sh\\n#SBATCH -N3 -J script\\nsleep 1\\n#SBATCH -N1\\n"}\n',
    )
    cluster = FOUR_NODES[: FOUR_NODES.index("files:")]
    ran = run(text, cluster=cluster)
    assert [(row.name, row.num_nodes) for row in ran.result.rows] == [("script", 3), ("script", 2)]


def test_old_jobs_are_purged_on_the_scan_after_minjobage() -> None:
    """Every 60 s by default; every 10 s or MinJobAge when that is less than 60 s."""
    for age, wanted in ((300, 360), (90, 120), (20, 40), (2, 20)):
        text = entries(
            "0s alice sbatch --wrap 'sleep 15'", head=f"slurm_conf: {{MinJobAge: {age}}}\n"
        )
        ran = run(text, cluster=FOUR_NODES)
        freed = ran.one("slurm_ckpt_free_job", job=1)
        assert freed.time_us == wanted * 1_000_000, age


def test_a_node_failure_sends_a_requeueable_job_back_into_the_queue() -> None:
    """NODE_FAIL, PENDING, then again 121 s later on other nodes; step ids go on."""
    text = entries("0s alice sbatch -N2 --wrap 'srun sleep 500'", "{at: 10s, fault: {crash: n2}}")
    ran = run(text, cluster=FOUR_NODES)
    assert states(ran)[:7] == [
        *("PENDING", "RUNNING", "NODE_FAIL", "PENDING", "PENDING|COMPLETING", "PENDING"),
        "RUNNING",
    ]
    assert ran.job()[0] == "COMPLETED"
    assert ran.result.rows[0].restarts == 1
    assert {e.step for e in ran.all("switch_p_build_jobinfo")} == {"1.0", "1.1"}
    again = [e for e in ran.all("job_state", job=1) if e.args["to"] == "RUNNING"][1]  # type: ignore[index]
    back = [e for e in ran.all("job_state", job=1) if e.args["to"] == "PENDING"][2]  # type: ignore[index]
    assert again.time_us == back.time_us + 121_000_000
    assert len(ran.all("switch_p_job_step_complete", step="1.0")) == 1


def test_a_node_that_comes_back_returns_to_service_if_told_to() -> None:
    """ReturnToService 0 leaves it DOWN; 1 makes it IDLE and the waiting job starts."""
    for returns, state in ((0, "PENDING"), (1, "COMPLETED")):
        text = entries(
            "{at: 1s, fault: {crash: n4}}",
            "500s alice sbatch -N4 --wrap 'srun sleep 5'",
            "{at: 600s, fault: {start: n4}}",
            head=f"slurm_conf: {{ReturnToService: {returns}}}\n",
        )
        ran = run(text, cluster=FOUR_NODES)
        assert ran.job()[0] == state
        assert bool(ran.result.stalled) == (returns == 0)
