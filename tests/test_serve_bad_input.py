"""What clients and jobs do to a served cluster by mistake or malice: it goes on, and says so."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from simctl.cli import main
from simctl.kernel.events import Event
from simctl.scenario.load import read_scenario
from simctl.scenario.model import TaskEnded
from simctl.serve import session
from simctl.serve.frames import frame
from simctl.serve.log import TraceLog
from simctl.serve.recording import Recorder
from simctl.serve.session import Session
from simctl.status import OK, WRONG_INPUT
from simctl.testing.served import CLUSTER, Served
from simctl.world import World
from tests.serving import LONG_S, alive, server_of, submit, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="serve needs Linux")
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
STRANGER = 64123
"""A user that the machine does not know."""

MOST = 8
CONF = CLUSTER.replace("slurm_conf: {", f"slurm_conf: {{MaxJobCount: {MOST}, MinJobAge: 5, ")
GIVEN: dict[str, Any] = {"user": STRANGER, "group": STRANGER, "extra_groups": []}
OTHER: dict[str, Any] = {"user": STRANGER + 1, "group": STRANGER + 1, "extra_groups": []}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Return a cluster that the tests of this file share; in the end it has nothing to tell."""
    cluster = Served(CONF, "--scale", "40")
    cluster.path.parent.chmod(0o777)
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(served: Served) -> Iterator[Served]:
    """Return the cluster; afterwards it serves others as ever, and nothing is left to do."""
    yield served
    assert served.run("squeue", "-h").returncode == 0
    for user in sorted(set(served.run("squeue", "-ho", "%u").stdout.split())):
        served.run("scancel", "-u", user)
    until(lambda: not served.run("squeue", "-h").stdout, "nothing runs")
    assert "internal error" not in served.said
    assert "Traceback" not in served.said


WRONG = {
    "garbage": b"GET / HTTP/1.1\r\n\r\n",
    "a frame that is too long": b"R\xff\xff\xff\xff",
    "no number": frame(b"R", b"/\x00" + b"9" * 5000 + b"\0squeue"),
    "a command that is not whole": frame(b"R", b"/\x002\0squeue"),
    "no command": frame(b"S", b"9"),
    "what nobody has asked for": frame(b"R", b"/\x002\0srun\0cat") + frame(b"I", b"x") * 2,
}


@pytest.mark.parametrize("told", WRONG)
def test_what_is_no_message_of_a_client_ends_that_client_alone(cluster: Served, told: str) -> None:
    """The server says who has sent what."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(LONG_S)
        client.connect(str(cluster.path / "socket"))
        client.sendall(WRONG[told])
        while client.recv(1000):
            pass
    until(lambda: told in cluster.said, "it is told")


def test_a_signal_without_a_number_ends_that_client_alone(cluster: Served) -> None:
    """It came while a command ran."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(LONG_S)
        client.connect(str(cluster.path / "socket"))
        client.sendall(frame(b"R", b"/\x003\0srun\0sleep\x0050") + frame(b"S", b"9" * 5000))
        while client.recv(1000):
            pass


class Nobody:
    """A server that hears what its client's session says."""

    outside: Any = None
    most_script = 10

    def __init__(self) -> None:
        self.kernel: Any = self
        self.heard: list[str] = []

    def cancel_after(self, scope: trio.CancelScope, wait_s: float) -> None:
        """Cancel by the test's clock."""
        scope.deadline = trio.current_time() + wait_s

    def log(self, text: str) -> None:
        """Keep it."""
        self.heard.append(text)

    def inject(self, deed: Any) -> None:
        """Hear of nothing."""

    def begin(self, asked: Any, stdin: str, session: Session) -> None:
        """Begin nothing."""

    def do(self, line: str, session: Session) -> None:
        """Do nothing."""

    def forget(self, session: Session) -> None:
        """Forget nobody."""

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return it."""
        return dict(env)


@pytest.mark.parametrize("said", [b"", b"R\0\0\0\x09/\0"])
def test_a_client_that_says_half_a_message_or_nothing_is_let_go(said: bytes) -> None:
    """As slurmctld does after MessageTimeout, so that nobody takes another's place for ever."""

    async def talk() -> float:
        ours, theirs = trio.socket.socketpair()
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Session(server, trio.SocketStream(ours), 5).run)
            await theirs.send(said)
        theirs.close()
        ours.close()
        return trio.current_time() - began

    server = Nobody()
    took_s = trio.run(talk, clock=trio.testing.MockClock(autojump_threshold=0))
    assert took_s == pytest.approx(10)
    assert server.heard == ["a client of uid 5 has sent half a message, or none"]


def test_a_client_that_dies_amid_its_script_has_submitted_nothing(cluster: Served) -> None:
    """Half a script is none."""
    before = cluster.run("squeue", "-hA").stdout
    with subprocess.Popen(["sbatch"], env=cluster.env, stdin=subprocess.PIPE) as sbatch:
        assert sbatch.stdin is not None
        sbatch.stdin.write(b"#!/bin/sh\n")
        sbatch.stdin.flush()
        sbatch.kill()
    assert cluster.run("squeue", "-hA").stdout == before


@pytest.mark.parametrize("how", ["stdin", "file"])
def test_a_script_that_is_too_long_is_refused_as_a_whole(cluster: Served, how: str) -> None:
    """Nothing is cut off: the controller says that it is beyond max_script_size."""
    script = "#!/bin/sh\n" + "#" * (4 << 20)
    file = cluster.path.with_name("long.sh")
    file.write_text(script)
    long = (
        cluster.run("sbatch", input=script) if how == "stdin" else cluster.run("sbatch", str(file))
    )
    assert long.stderr == (
        "sbatch: error: Batch job submission failed: "
        "Pathname of a file, directory or other parameter too long\n"
    )
    assert long.returncode == 1


def test_a_job_whose_output_has_no_room_fails_as_its_commands_do(cluster: Served) -> None:
    """ENOSPC is its own affair, and the cluster's files are not touched by it."""
    job = submit(cluster, "#!/bin/sh\necho text\n", "-o", "/dev/full")
    cluster.wait_for(f"job {job} FAILED")
    assert cluster.run("srun", "-o", "/dev/full", "echo", "text").returncode == 0
    assert cluster.run("sh", "-c", "squeue > /dev/full").returncode == 0


@pytest.mark.parametrize(
    ("first_line", "why", "status"),
    [
        ("/no/such/interpreter", "bad interpreter(/no/such/interpreter): No such file", 2),
        ("/tmp", "slurm_script: Permission denied", 13),
    ],
)
def test_a_script_that_cannot_be_executed_says_why(
    cluster: Served, first_line: str, why: str, status: int
) -> None:
    """In its output; the errno of execve() is its exit status."""
    job = submit(cluster, f"#!{first_line}\n", "-o", "why.out", "--open-mode=truncate")
    cluster.wait_for(f"job {job} FAILED")
    assert why in cluster.path.with_name("why.out").read_text()
    told = cluster.run("sacct", "-nXP", "-j", str(job), "-o", "ExitCode").stdout
    assert told == f"{status}:0\n"


def test_a_client_that_does_not_read_holds_up_its_own_step_alone(cluster: Served) -> None:
    """What it does not take stays with the task, not in the server."""
    command = ["srun", "-Q", "head", "-c", "100000000", "/dev/zero"]
    with subprocess.Popen(command, env=cluster.env, stdout=subprocess.PIPE) as srun:
        assert srun.stdout is not None
        srun.stdout.read(1)
        job = submit(cluster, "#!/bin/sh\n")
        cluster.wait_for(f"job {job} COMPLETED")
        assert memory_mb(cluster) < 200
        size = 1
        while data := srun.stdout.read(1 << 20):
            size += len(data)
        assert (size, srun.wait(LONG_S)) == (100_000_000, 0)


def memory_mb(served: Served) -> int:
    """Return how much memory the server has."""
    pid = server_of(served)
    fields = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return int(fields["VmRSS"].split()[0]) >> 10


def test_a_crowd_of_submissions_is_taken_in_as_there_is_room(cluster: Served) -> None:
    """Beyond MaxJobCount sbatch tries again, as Slurm's does: none is lost, none counts twice."""
    until(lambda: not cluster.run("squeue", "-ht", "all").stdout, "all jobs are forgotten")
    held = [submit(cluster, "#!/bin/sh\n", "--hold", "-o", "/dev/null") for _ in range(MOST)]
    crowd = [
        subprocess.Popen(
            ["sbatch", "--parsable", "-o", "/dev/null", "--wrap", "exit 0"],
            env=cluster.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(MOST + 2)
    ]
    for each in crowd:
        assert each.stderr is not None
        assert each.stderr.readline() == (
            "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying.\n"
        )
    cluster.run("scancel", *map(str, held))
    told = [each.communicate(timeout=60) for each in crowd]
    assert {each.returncode for each in crowd} == {0}, told
    jobs = {int(out) for out, _ in told}
    assert len(jobs) == len(crowd)
    cluster.wait_for(f"job {max(jobs)} COMPLETED")
    accounted = cluster.run("sacct", "-nXP", "-j", ",".join(map(str, jobs)), "-o", "JobID")
    assert set(map(int, accounted.stdout.split())) == jobs


@pytest.mark.parametrize(
    ("name", "ended", "number", "status"),
    [
        ("scontrol", True, signal.SIGTERM, 5),
        ("scontrol", False, signal.SIGTERM, -signal.SIGTERM),
        ("squeue", False, signal.SIGINT, -signal.SIGINT),
        ("srun", True, signal.SIGINT, 5),
    ],
)
def test_a_command_that_has_ended_before_a_signal_came_has_ended_by_itself(
    tmp_path: Path, name: str, ended: bool, number: signal.Signals, status: int
) -> None:
    """As with `scontrol requeue` in the job itself: the answer is there, and then SIGTERM."""
    client = Path(session.__file__).with_name("client.py")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        command = [sys.executable, "-IS", str(client), str(tmp_path / "s"), name, "requeue", "1"]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            server, _ = listener.accept()
            with server:
                server.recv(1 << 20)
                process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, process.pid, os.WSTOPPED)
                process.send_signal(number)
                if ended:
                    server.sendall(frame(b"q", b"5"))
                process.send_signal(signal.SIGCONT)
                assert process.wait(LONG_S) == status
            assert process.stderr is not None
            assert process.stderr.read() == b""


@pytest.fixture
def no_room(tmp_path: Path) -> Path:
    """Return a file that lies on a full disk."""
    (tmp_path / "full").symlink_to("/dev/full")
    return tmp_path / "full"


def test_a_trace_whose_disk_is_full_ends_and_the_cluster_goes_on(no_room: Path) -> None:
    """It is told once."""
    told: list[str] = []
    world = World(
        read_scenario(f'{CLUSTER}timeline: [{{at: 1s, run: "sbatch --wrap true"}}]\n', file="x")
    )
    log = TraceLog(no_room, world, told.append)
    events: list[Event] = []
    world.trace.add_sink(events.append)
    world.trace.add_sink(lambda event: log.flush() if event.seq in (5, 9) else None)
    world.run()
    log.end()
    assert told == [f"{no_room}: No space left on device: the trace ends here"]
    assert any(event.name == "job_state" for event in events)


def test_a_recording_whose_disk_is_full_is_given_up_and_the_cluster_goes_on(no_room: Path) -> None:
    """Half a recording is none; it is told once."""
    told: list[str] = []
    file = no_room.with_name("cluster.yaml")
    file.write_text(CLUSTER)
    scenario = read_scenario(CLUSTER, file=str(file))
    recorder = Recorder(no_room, scenario, model="guide", force=False, tell=told.append)
    for _ in range(10_000):
        recorder.note(5, TaskEnded(task=1, status=0))
    recorder.end(6)
    assert told == ["--record: No space left on device: it is given up, and the cluster goes on"]


def test_a_trace_of_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    """As any output."""
    (tmp_path / "trace.jsonl").write_text("mine\n")
    with pytest.raises(OSError, match="left alone"):
        TraceLog(tmp_path / "trace.jsonl", World(read_scenario(CLUSTER, file="x")), print)
    assert (tmp_path / "trace.jsonl").read_text() == "mine\n"


@pytest.mark.parametrize("place", ["client.py", "bin/sbatch", "spool/7/script", "socket"])
def test_a_folder_in_which_another_has_such_a_file_is_left_alone(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a home with commands of its own: neither written over, nor taken away at the end."""
    folder = tmp_path / "home"
    mine = folder / place
    mine.parent.mkdir(parents=True)
    mine.write_text("mine\n")
    folder.chmod(0o700)
    (tmp_path / "c.yaml").write_text(CLUSTER)
    words = ["serve", str(tmp_path / "c.yaml"), "--dir", str(folder)]
    assert main(words) == WRONG_INPUT
    assert "it is left alone: name another --dir" in capsys.readouterr().err
    assert mine.read_text() == "mine\n"
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_server_that_is_told_to_end_as_it_starts_has_not_broken(number: int) -> None:
    """Both processes are told, as `timeout` and a closed terminal do, before one can heed it."""
    code = (
        "import os, signal, time\n"
        "from simctl.serve.watchdog import guard\n"
        # Under nohup it would be ignored.
        f"signal.signal({number:d}, signal.SIG_DFL)\n"
        "def serve():\n"
        f"    os.killpg(0, {number:d})\n"
        "    time.sleep(60)\n"
        "os._exit(guard(serve, lambda: None, b'MARK=none:'))\n"
    )
    words = [sys.executable, "-c", code]
    ran = subprocess.run(words, timeout=30, check=False, capture_output=True, process_group=0)
    assert ran.returncode == OK, ran.stderr


# As root.


@AS_ROOT
def test_a_job_runs_as_the_user_who_has_submitted_it(cluster: Served) -> None:
    """Its groups and its files are that user's, and files of others are closed to it."""
    where = cluster.path.with_name("mine")
    where.mkdir()
    os.chown(where, STRANGER, STRANGER)
    script = "#!/bin/sh\nid -u; id -G; touch made; srun -Q id -u; cat /etc/shadow\n"
    ran = cluster.run("sbatch", "-W", "-o", "out", input=script, cwd=where, **GIVEN)
    assert ran.returncode == 1, ran.stderr
    told = (where / "out").read_text().splitlines()
    assert told[:3] == [str(STRANGER)] * 3
    assert "Permission denied" in told[3]
    assert {each.stat().st_uid for each in where.iterdir()} == {STRANGER}
    secret = cluster.path.with_name("secret")
    secret.touch(mode=0o600)
    refused = cluster.run("srun", "-i", str(secret), "cat", cwd=where, **GIVEN)
    assert refused.stderr == "srun: error: Could not open stdin file: Permission denied\n"


@AS_ROOT
def test_a_user_may_do_in_a_cluster_of_roots_what_slurm_lets_users_do(cluster: Served) -> None:
    """Jobs of others, nodes and the end of the cluster are not among that."""
    job = submit(cluster, "#!/bin/sh\nsleep 100\n")
    for command, status, told in (
        (("scancel", str(job)), 210, f"Kill job error on job id {job}: Access/permission denied"),
        (("scontrol", "update", "node=n1", "state=down", "reason=x"), 1, "Invalid user id"),
        (("scontrol", "shutdown"), 1, "slurm_shutdown error: Invalid user id"),
    ):
        ran = cluster.run(*command, **GIVEN)
        assert told in ran.stderr, ran
        assert ran.returncode == status, ran
    ask = (
        "import sys, pathlib; from simctl.serve.asking import ask; "
        "print([ask(pathlib.Path(sys.argv[1]), each).status for each in sys.argv[2:]])"
    )
    done = cluster.run(
        *("setpriv", "--reuid", str(STRANGER), "--inh-caps", "+dac_read_search"),
        *("--ambient-caps", "+dac_read_search"),
        *(
            sys.executable,
            "-c",
            ask,
            str(cluster.path),
            "stop",
            "crash n1",
            "wait node n1 IDLE|MIXED",
        ),
        cwd=Path.cwd(),
    )
    assert done.stdout == "[2, 2, 0]\n", done.stderr


BOMB = "#!/bin/bash\nulimit -u 60\nulimit -v 1000000\nb() { b | b & }; b 2>/dev/null\nsleep 100\n"


@AS_ROOT
def test_a_job_that_forks_as_fast_as_it_may_is_ended_with_all_it_has_started(
    cluster: Served,
) -> None:
    """They are stopped before they are killed, so that none outruns the other."""
    ran = cluster.run("sbatch", "--parsable", "-o", "/dev/null", input=BOMB, **GIVEN)
    job = ran.stdout.strip()
    until(lambda: len(processes_of(STRANGER)) > 30, "it forks")
    cluster.run("scancel", job, **GIVEN)
    cluster.wait_for(f"job {job} CANCELLED")
    cluster.wait_for(f"job {job}")
    until(lambda: not processes_of(STRANGER), "none is left")


def processes_of(uid: int) -> list[int]:
    """Return the processes of a user that have not ended."""
    found = subprocess.run(
        ["pgrep", "-u", str(uid)], capture_output=True, text=True, check=False
    ).stdout.split()
    return [pid for pid in map(int, found) if alive(pid)]


@pytest.fixture
def open_path() -> Iterator[Path]:
    """Return a folder that is everybody's, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@AS_ROOT
def test_a_user_without_rights_serves_a_cluster_for_nobody_else(open_path: Path) -> None:
    """Jobs run as that user, whose own socket it is."""
    (open_path / "cluster.yaml").write_text(CLUSTER)
    where = open_path / "c"
    # Tests may lie where only root looks.
    become = (
        *("setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups"),
        *("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"),
    )
    serve = (sys.executable, "-m", "simctl", "serve", str(open_path / "cluster.yaml"))
    with subprocess.Popen(
        [*become, *serve, "--dir", str(where)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline()
            assert (where / "socket").stat().st_mode & 0o777 == 0o600
            told: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60}
            ran = subprocess.run([where / "bin" / "srun", "id", "-u"], check=False, **told)
            assert (ran.stdout, ran.stderr) == (f"{STRANGER}\n", "")
            denied = subprocess.run([where / "bin" / "squeue"], check=False, **told, **OTHER)
            assert denied.returncode != 0
        finally:
            server.terminate()
            server.wait(LONG_S)
    assert not where.joinpath("socket").exists()
    assert not processes_of(STRANGER)
