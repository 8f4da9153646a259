"""A served cluster: real clients, real processes, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simctl.testing.served import CLUSTER, Served
from tests.serving import LONG_S, alive, server_of, submit, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="serve needs Linux")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Return a cluster that the tests of this file share."""
    cluster = Served(CLUSTER, "--scale", "10")
    yield cluster
    cluster.close()


def output(served: Served, job: int | str) -> str:
    """Return what a job has written."""
    return (served.path.parent / f"slurm-{job}.out").read_text()


def test_a_script_of_any_interpreter_runs_with_its_variables_where_it_was_submitted(
    served: Served,
) -> None:
    """A job is a process of the machine: its output, its directory, its status are real."""
    job = submit(
        served,
        f"#!{sys.executable}\nimport os, sys\nprint(os.environ['SLURM_JOB_ID'], os.getcwd())\n"
        "print(os.environ['OWN'], file=sys.stderr)\nsys.exit(3)\n",
        env={**served.env, "OWN": "mine"},
    )
    served.wait_for(f"job {job}")
    assert output(served, job) == f"{job} {served.path.parent}\nmine\n"
    told = served.run("sacct", "-nXP", "-j", str(job), "-o", "State,ExitCode").stdout
    assert told == "FAILED|3:0\n"


def test_a_step_has_a_process_for_each_task_on_its_nodes(served: Served) -> None:
    """Nodes are told apart by SLURM_ variables: all their processes run on one machine."""
    job = submit(
        served,
        "#!/bin/bash\nsrun bash -c 'echo $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME'\n",
        *("-N2", "-n4", "--ntasks-per-node=2"),
    )
    served.wait_for(f"job {job} COMPLETED")
    assert sorted(output(served, job).splitlines()) == [
        "0 of 4 on n1",
        "1 of 4 on n1",
        "2 of 4 on n2",
        "3 of 4 on n2",
    ]


def test_what_srun_reads_and_writes_are_bytes(served: Served) -> None:
    """Standard input goes to the task as it comes, and what it writes comes back unchanged."""
    data = bytes(range(256)) * 4096
    found = served.run("srun", "cat", input=data, text=False)
    assert found.stdout == data
    assert not found.returncode


def test_every_task_of_a_step_reads_all_that_srun_does(served: Served) -> None:
    """Each at its pace: one that reads nothing or begins late holds up nobody."""
    data = bytes(range(256)) * 1000
    slow = "case $SLURM_PROCID in 0) ;; 1) sleep 0.2; wc -c;; *) wc -c;; esac"
    files = len(list(Path(f"/proc/{server_of(served)}/fd").iterdir()))
    found = served.run("srun", "-n3", "sh", "-c", slow, input=data, text=False)
    assert found.stdout == b"256000\n" * 2
    assert not found.returncode
    assert served.run("srun", "-n2", "--input=1", "cat", input="x").stdout == "x"
    assert served.run("srun", "-n2", "true", input="x" * 200_000).returncode == 0
    assert served.run("salloc", "-n2", "srun", "-Q", "cat", input="y").stdout == "yy"
    until(
        lambda: len(list(Path(f"/proc/{server_of(served)}/fd").iterdir())) <= files,
        "nothing that they had open is left so",
    )


def test_srun_hands_its_input_on_as_it_comes(served: Served) -> None:
    """A client may wait for the answer to a line before it says the next."""
    with subprocess.Popen(
        ["srun", "-Q", "cat"], env=served.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as srun:
        assert srun.stdin is not None
        assert srun.stdout is not None
        for line in (b"one\n", b"two\n"):
            srun.stdin.write(line)
            srun.stdin.flush()
            assert srun.stdout.readline() == line
        srun.stdin.close()
        assert srun.wait(LONG_S) == 0


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 7", 7), ("kill -TERM $$", 143), ("no-such-program-anywhere", 127)],
)
def test_srun_ends_as_its_task_did(served: Served, command: str, status: int) -> None:
    """The exit status of a task, or 128 and its signal."""
    assert served.run("srun", "bash", "-c", command).returncode == status


def test_a_program_that_is_not_there_is_told_as_slurm_does(served: Served) -> None:
    """The errno of execve() is the exit status."""
    found = served.run("srun", "/no/such/program")
    assert found.returncode == 2
    told = "slurmstepd-n1: error: execve(): /no/such/program: No such file or directory"
    assert told in found.stderr


def test_each_task_of_an_array_runs_by_itself(served: Served) -> None:
    """Its output bears the number of the array and its own."""
    job = submit(served, "#!/bin/sh\necho $SLURM_ARRAY_TASK_ID\n", "--array=1-3")
    for task in (1, 2, 3):
        served.wait_for(f"job {job}_{task} COMPLETED")
        assert output(served, f"{job}_{task}") == f"{task}\n"


def test_a_job_past_its_time_is_sent_sigterm_and_then_killed() -> None:
    """All that it has started dies with it, and its output says why."""
    cluster = Served(QUICK, "--scale", "100")
    try:
        job = submit(
            cluster,
            "#!/bin/bash\ntrap 'echo asked' TERM\nwhile :; do sleep 0.02; done\n",
            "--time=1",
        )
        cluster.wait_for(f"job {job} TIMEOUT")
        cluster.wait_for(f"job {job}")
        told = output(cluster, job)
        assert "DUE TO TIME LIMIT" in told
        assert told.endswith("asked\n")
    finally:
        cluster.close()


QUICK = """\
nodes: [{name: "n[1-2]", cpus: 2, memory_mb: 4000}]
partitions: [{name: debug, nodes: ALL, default: true}]
slurm_conf: {SelectType: select/cons_tres, KillWait: 100, DefMemPerCPU: 100}
"""


def test_a_job_that_is_cancelled_ends_with_what_it_started_in_other_sessions(
    served: Served, tmp_path: Path
) -> None:
    """Processes that left the job's session, and whose parents are gone, are found all the same."""
    pids = tmp_path / "pids"
    job = submit(
        served,
        f"#!/bin/bash\n(setsid bash -c 'echo $$ >> {pids}; sleep 1000' &)\n"
        f"setsid setsid bash -c '(sleep 1000 & echo $! >> {pids}) &'\n"
        f"echo $$ >> {pids}\nsleep 1000\n",
    )
    until(lambda: pids.exists() and len(pids.read_text().split()) == 3, "it has started all")
    served.run("scancel", str(job))
    served.wait_for(f"job {job} CANCELLED")
    served.wait_for(f"job {job}")
    until(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()), "all are gone")


def test_what_a_batch_script_leaves_behind_is_killed_at_its_end(
    served: Served, tmp_path: Path
) -> None:
    """A job's container is emptied when its script has ended."""
    pid = tmp_path / "pid"
    job = submit(served, f"#!/bin/sh\nsetsid sleep 1000 &\necho $! > {pid}\n")
    served.wait_for(f"job {job} COMPLETED")
    served.wait_for(f"job {job}")
    until(lambda: not alive(int(pid.read_text())), "it is gone")


def test_a_job_goes_back_into_the_queue_and_runs_anew(served: Served, tmp_path: Path) -> None:
    """The second run knows that it is one."""
    began = tmp_path / "began"
    job = submit(
        served,
        f"#!/bin/sh\necho run ${{SLURM_RESTART_COUNT:-0}}\ntouch {began}\n"
        '[ -n "$SLURM_RESTART_COUNT" ] || sleep 1000\n',
        *("--requeue", "--open-mode=append"),
    )
    until(began.exists, "it runs")
    served.run("scontrol", "requeue", str(job))
    served.run("scontrol", "update", f"job={job}", "StartTime=now")
    served.wait_for(f"job {job} COMPLETED")
    assert "run 1\n" in output(served, job)


def test_a_job_is_stopped_and_goes_on(served: Served, tmp_path: Path) -> None:
    """Suspended, none of its processes runs."""
    count = tmp_path / "count"
    job = submit(served, f"#!/bin/sh\nwhile :; do echo >> {count}; sleep 0.02; done\n")
    until(count.exists, "it runs")
    served.run("scontrol", "suspend", str(job))
    served.wait_for(f"job {job} SUSPENDED")
    until(lambda: all_stopped(str(served.path / "spool")), "it is stopped")
    size = count.stat().st_size
    time.sleep(0.1)
    assert count.stat().st_size == size
    served.run("scontrol", "resume", str(job))
    until(lambda: count.stat().st_size > size, "it goes on")
    served.run("scancel", str(job))
    served.wait_for(f"job {job}")


def all_stopped(name: str) -> bool:
    """Return whether every shell that has a word in its command line is stopped."""
    found = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True)
    states = [line.split()[0] for line in found.stdout.splitlines() if name in line]
    assert states
    return all(state.startswith("T") for state in states)


def test_a_signal_to_srun_reaches_its_tasks(served: Served, tmp_path: Path) -> None:
    """Whoever sends SIGUSR1 to srun means the tasks."""
    ready = tmp_path / "ready"
    script = f"trap 'echo got it; exit 5' USR1; touch {ready}; while :; do sleep 0.02; done"
    with subprocess.Popen(
        ["srun", "-Q", "bash", "-c", script],
        env=served.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as srun:
        until(ready.exists, "the task has set its trap")
        srun.send_signal(signal.SIGUSR1)
        out, err = srun.communicate(timeout=LONG_S)
    assert (out, srun.returncode) == ("got it\n", 5), err


def test_an_srun_that_is_killed_ends_its_step(served: Served, tmp_path: Path) -> None:
    """A client that is gone without a word is as one that was killed."""
    pid = tmp_path / "pid"
    with subprocess.Popen(
        ["srun", "-Q", "bash", "-c", f"echo $$ > {pid}; exec sleep 1000"],
        env=served.env,
        stdin=subprocess.DEVNULL,
    ) as srun:
        until(lambda: pid.exists() and bool(pid.read_text()), "the task runs")
        srun.kill()
    if served.run("squeue", "-h").stdout:
        served.run("scancel", "-u", me(served))
    until(lambda: not alive(int(pid.read_text())), "the task is gone")


def me(served: Served) -> str:
    """Return the name of the user who runs the tests."""
    return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()


def test_a_node_that_goes_down_takes_its_processes_along(tmp_path: Path) -> None:
    """NODE_FAIL is a fault that one can have on purpose."""
    cluster = Served(QUICK, "--scale", "10")
    try:
        pid = tmp_path / "pid"
        job = submit(
            cluster, f"#!/bin/sh\necho $$ > {pid}\nsleep 1000\n", "--no-requeue", "-w", "n1"
        )
        until(lambda: pid.exists() and bool(pid.read_text()), "it runs")
        assert "crash" in cluster.ctl("crash n1 noticed")
        until(lambda: not alive(int(pid.read_text())), "its process is gone")
        cluster.wait_for(f"job {job} NODE_FAIL")
        told = cluster.run("squeue", "-t", "all", "-hj", str(job), "-o", "%T").stdout
        assert told == "NODE_FAIL\n"
    finally:
        cluster.close()


def test_accounting_is_away_and_late_on_purpose(served: Served) -> None:
    """What clients have to live with: an sacct that fails, and one that does not know yet."""
    served.ctl("accounting off")
    for command in ("sacct", "sacctmgr -n show cluster", "sshare"):
        found = served.run(*command.split())
        assert found.returncode == 1
        assert "Problem talking to the database: Connection refused" in found.stderr
    served.ctl("accounting lag 1h")
    job = submit(served, "#!/bin/sh\n")
    served.wait_for(f"job {job} COMPLETED")
    ask = ("sacct", "-nXP", "-j", str(job), "-o", "State")
    assert served.run(*ask).stdout == ""
    shell = [sys.executable, "-m", "simctl", "serve", "ctl", str(served.path), "accounting", "on"]
    told = subprocess.run(shell, capture_output=True, text=True, check=True).stdout
    assert "accounting back" in told
    assert served.run(*ask).stdout == "COMPLETED\n"


def test_a_job_is_preempted_on_purpose(served: Served) -> None:
    """It ends, or goes back into the queue, as slurm.conf says."""
    job = submit(served, "#!/bin/sh\nexec sleep 1000\n")
    served.wait_for(f"job {job} RUNNING")
    served.ctl(f"preempt {job}")
    served.wait_for(f"job {job} PREEMPTED")
    served.wait_for(f"job {job}")
    assert "met_nobody" in served.ctl(f"preempt {job}")


def test_slurmctld_is_slow_on_purpose(served: Served) -> None:
    """All that it hears comes later."""
    served.ctl("slow 3s for 20s")
    assert served.run("squeue", "-h", "--name=slow").returncode == 0
    times = [
        event["time_us"]
        for event in served.trace
        if event["name"] == "squeue" and "--name=slow" in event["args"]["line"]
    ]
    assert times[1] - times[0] >= 3_000_000


def test_salloc_runs_its_command_at_the_callers_terminal(served: Served) -> None:
    """The command is the client's own child, with the job's variables."""
    found = served.run("salloc", "-n2", "sh", "-c", "echo $SLURM_JOB_ID; srun -Q hostname; exit 4")
    lines = found.stdout.splitlines()
    assert lines[0].isdigit()
    assert len(lines) == 3
    assert found.returncode == 4
    assert f"salloc: Granted job allocation {lines[0]}" in found.stderr


@contextmanager
def at_terminal(served: Served, *command: str) -> "Iterator[tuple[subprocess.Popen[bytes], int]]":
    """Start a command at a terminal of its own; return it, and the other end of that."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        command,
        env=served.env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        cwd=served.path.parent,
    ) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            process.kill()
            os.close(ours)


def test_the_first_task_of_srun_pty_is_at_the_callers_terminal(served: Served) -> None:
    """It is the client's child, with the task's variables; the others write through srun."""
    task = "test -t 0 && stty -echo && read x && echo $SLURM_PROCID got $x; exit 7"
    with at_terminal(served, "srun", "-Q", "--pty", "sh", "-c", task) as (srun, terminal):
        os.write(terminal, b"it\n")
        assert srun.wait(LONG_S) == 7
        assert b"0 got it" in os.read(terminal, 1000)


def test_what_a_task_at_a_terminal_has_started_ends_with_its_job(
    served: Served, tmp_path: Path
) -> None:
    """Nothing of it is a descendant of the server: it is found by its mark."""
    pids = tmp_path / "pids"
    task = f"(setsid sh -c 'echo $$ >> {pids}; sleep 1000' &); echo $$ >> {pids}; sleep 1000"
    with at_terminal(served, "srun", "--pty", "sh", "-c", task) as (srun, _):
        until(lambda: pids.exists() and len(pids.read_text().split()) == 2, "all has started")
        served.run("scancel", "-u", me(served))
        srun.wait(LONG_S)
        until(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()), "all is gone")


@pytest.mark.parametrize("victim", ["server", "watchdog", "slurmctld"])
def test_nothing_is_left_when_one_of_them_is_killed(victim: str, tmp_path: Path) -> None:
    """Whichever of server and watchdog dies by SIGKILL, the other one cleans up.

    After `scontrol shutdown` the cluster goes on without its daemons until it is told to end.
    """
    cluster = Served(QUICK, "--scale", "10")
    try:
        pids = tmp_path / "pids"
        submit(
            cluster,
            f"#!/bin/bash\n(env -i setsid bash -c 'echo $$ >> {pids}; sleep 1000' &)\n"
            f"echo $$ >> {pids}\nsrun bash -c 'echo $$ >> {pids}; sleep 1000'\n",
        )
        at_a_terminal = f"(setsid sleep 1000 & echo $! >> {pids}); echo $$ >> {pids}; sleep 1000"
        with at_terminal(cluster, "srun", "--pty", "bash", "-c", at_a_terminal) as (srun, _):
            until(lambda: pids.exists() and len(pids.read_text().split()) == 5, "all has started")
            watchdog, server = cluster.process.pid, server_of(cluster)
            if victim == "slurmctld":
                assert cluster.run("scontrol", "shutdown").returncode == 0
                gone = "Unable to contact slurm controller (connect failure)"
                assert gone in cluster.run("squeue").stderr
                cluster.ctl("stop")
            else:
                os.kill(server if victim == "server" else watchdog, signal.SIGKILL)
            cluster.process.wait(LONG_S)
            everybody = [server, watchdog, *map(int, pids.read_text().split())]
            until(lambda: not any(alive(pid) for pid in everybody), "no process is left")
            until(lambda: not (cluster.path / "socket").exists(), "no socket is left")
            srun.wait(LONG_S)
    finally:
        cluster.close()


def test_a_fifo_gets_all_of_a_script_s_output_once_somebody_reads_there(served: Served) -> None:
    """The script waits for its reader, as any writer does; srun's own files may be none."""
    fifo = served.path.parent / "fifo"
    os.mkfifo(fifo)
    script = "#!/bin/sh\necho one; echo two >&2; srun -n2 echo step\n"
    job = submit(served, script, "-n2", "-o", "fifo")
    served.wait_for(f"job {job} RUNNING")
    assert f" {job} " in served.run("squeue", "-h").stdout
    reader = served.run("cat", str(fifo))
    assert reader.stdout == "one\ntwo\nstep\nstep\n"
    served.wait_for(f"job {job} COMPLETED")
    never = submit(served, script, "-n2", "-o", "fifo")
    served.wait_for(f"job {never} RUNNING")
    served.run("scancel", str(never))
    served.wait_for(f"job {never} CANCELLED")
    refused = served.run("srun", "-o", "fifo", "true")
    assert refused.returncode == 1
    assert "Could not open stdout file: Operation not supported" in refused.stderr
    own = served.run("srun", "-o", "/dev/stderr", "echo", "x")
    assert (own.stdout, own.stderr) == ("", "x\n")


def test_who_waits_for_a_job_whose_node_fails_is_told() -> None:
    """With -W sbatch ends as the job does that has been put back. What salloc runs goes on.

    Of a job whose node is gone nobody tells an exit status: it has 0:0, and sbatch ends with 0.
    """
    cluster = Served(CLUSTER, "--scale", "30")
    try:
        waits = []
        for words in ("sbatch -W --no-requeue", "sbatch -W --requeue"):
            script = "[ $SLURM_RESTART_COUNT ] && exit 4; sleep 60"
            command = [*words.split(), "-Q", "-w", "n1", "--wrap", script]
            waits.append(subprocess.Popen(command, env=cluster.env, cwd=cluster.path.parent))
            cluster.wait_for(f"job {len(waits)} RUNNING")
        told = "while sleep 0.1; do squeue -hj3 | grep -q . || exit 7; done"
        command = [*"salloc -Q -w n1 sh -c".split(), told]
        waits.append(subprocess.Popen(command, env=cluster.env))
        cluster.wait_for("job 3 RUNNING")
        cluster.ctl("crash n1 noticed")
        cluster.ctl("start n1")
        cluster.run("scontrol", "update", "node=n1", "state=resume")
        assert [each.wait(LONG_S) for each in waits] == [0, 4, 7]
        told = cluster.run("sacct", "-nXP", "-o", "State,ExitCode").stdout.split()
        assert sorted(told) == ["FAILED|4:0", "NODE_FAIL|0:0", "NODE_FAIL|0:0"]
    finally:
        cluster.close()


def test_a_client_may_have_closed_what_it_reads_and_writes(served: Served) -> None:
    """As a cron job or a daemon has: its commands read nothing, and what they say is lost."""
    closed = served.run("sh", "-c", "srun sh -c 'cat; echo out; echo err >&2; exit 3' <&- >&- 2>&-")
    assert (closed.returncode, closed.stdout, closed.stderr) == (3, "", "")
    said = served.run("sh", "-c", "srun cat <&-; sbatch --parsable <&-")
    assert (said.returncode, said.stdout) == (1, "")
    assert "Batch script is empty" in said.stderr
    named = served.run("sbatch", "-W", "-Q", "/dev/stdin", "3", input="#!/bin/sh\nexit $1\n")
    assert (named.returncode, named.stderr) == (3, "")
