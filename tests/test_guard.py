"""The guard between plugins' code and the emulator: whatever a plugin does, a call fails, or 2."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from simctl.cli import main
from simctl.plugins import guard
from simctl.status import OK, WRONG_INPUT

SCENARIO = """\
nodes: [{name: n1, cpus: 2}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
plugins: ["./mine.py"]
slurm_conf: {SwitchType: switch/mine}
timeline: [{at: 0s, as: alice, run: "srun -t5 hostname"}]
expect: [{job: 1, state: COMPLETED}]
"""
PLUGIN = """\
import builtins, os, signal, subprocess, sys, threading, time
import trio
from simctl.kernel.turns import Killed
from simctl.plugin import SwitchPlugin
class M(type): pass
{top}
class Mine(SwitchPlugin, metaclass=M):
    plugin_type = "switch/mine"
    plugin_name = "mine"
    def switch_p_job_postfini(self, switch_job, pgid, job_id, step_id):
        {body}
"""


def made(folder: Path, *, top: str = "", body: str = "pass") -> Path:
    """Write a plugin and its scenario; return the scenario's file."""
    code = PLUGIN.replace("{top}", textwrap.dedent(top)).replace("{body}", body)
    (folder / "mine.py").write_text(code, encoding="utf-8")
    path = folder / "s.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def told(capsys: pytest.CaptureFixture[str], path: Path, status: int) -> str:
    """Run a scenario, hold its status, and return what was said."""
    assert main(["run", "--quiet", str(path)]) == status
    return capsys.readouterr().err


CANCELLED = "trio.Cancelled._create(source='explicit', reason=None, source_task=None)"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("os.fork()", "RefusedError: os.fork is refused"),
        ("__import__('pty').fork()", "RefusedError: os.forkpty is refused"),
        (
            "threading.Thread(target=print, daemon=False).start()",
            "RefusedError: a thread that is no daemon",
        ),
        ("os._exit(0)", "RefusedError: os._exit is refused"),
        ("os.abort()", "RefusedError: os.abort is refused"),
        ("os.kill(os.getpid(), 9)", "RefusedError: os.kill is refused: it would end simctl"),
        ("os.kill(0, 9)", "RefusedError: os.kill is refused: it would end simctl"),
        ("os.kill(-1, 15)", "RefusedError: os.kill is refused: it would end simctl"),
        ("os.kill(-os.getpgrp(), 9)", "RefusedError: os.kill is refused: it would end simctl"),
        ("os.kill(os.getppid(), 15)", "RefusedError: os.kill is refused: "),
        ("os.killpg(0, 15)", "RefusedError: os.killpg is refused: it would end simctl"),
        ("os.killpg(os.getpgrp(), 15)", "RefusedError: os.killpg is refused: it would end simctl"),
        ("signal.raise_signal(11)", "RefusedError: signal.raise_signal is refused"),
        (
            "signal.pthread_kill(threading.get_ident(), 11)",
            "RefusedError: signal.pthread_kill is refused",
        ),
        ("sys.exit(0)", "SystemExit: 0"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        (f"raise {CANCELLED}", "Cancelled: cancelled"),
        ("raise Killed", "Killed"),
        ("raise MemoryError", "MemoryError"),
    ],
)
def test_a_call_that_would_end_the_emulator_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, said: str
) -> None:
    """It is named with its place; the run goes on without it."""
    path = made(tmp_path, body=body)
    assert f"plugin switch_p_job_postfini: {said}" in told(capsys, path, OK)


@pytest.mark.parametrize("kind", ["async def", "def"])
def test_a_cancelled_that_is_raised_after_a_wait_fails_the_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """An `async def` can be torn down with the run; one that raises the same is no such end."""
    path = made(tmp_path, body=f"raise {CANCELLED}")
    plugin = tmp_path / "mine.py"
    code = plugin.read_text(encoding="utf-8")
    plugin.write_text(code.replace("def switch_p", f"{kind} switch_p"), encoding="utf-8")
    assert "plugin switch_p_job_postfini: Cancelled" in told(capsys, path, OK)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("builtins.oct = None", "builtins.oct was replaced"),
        ("del builtins.hex", "builtins.hex was replaced"),
        ("time.gmtime = None", "time.gmtime was replaced"),
        ("__import__('json').dumps = None", "json.dumps was replaced"),
        ("__import__('re').compile = None", "re.compile was replaced"),
        ("del sys.modules['json']", "sys.modules.json was replaced"),
        ("vars(os).update(dict.fromkeys(list(vars(os))[20:29]))", "so were 4 more of os"),
        ("os.chdir('/')", "the working directory was changed"),
        ("d = os.path.abspath('gone'); os.mkdir(d); os.chdir(d); os.rmdir(d)", "the working dir"),
        ("os.umask(0o777)", "the umask was changed"),
        ("sys.stdout = None", "sys.stdout was replaced"),
        (
            "trio.lowlevel.current_task().parent_nursery.cancel_scope.cancel()",
            "a plugin has cancelled tasks of the run",
        ),
    ],
)
def test_a_call_that_harms_the_process_is_told_and_undone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, said: str
) -> None:
    """What the run came to is worth nothing then."""
    assert said in told(capsys, made(tmp_path, body=body), WRONG_INPUT)


@pytest.mark.parametrize(
    ("top", "said"),
    [
        ("os.fork()", "os.fork is refused"),
        (
            "threading.Thread(target=print, daemon=False).start()",
            "a thread that is no daemon is refused",
        ),
        ("os._exit(0)", "os._exit is refused"),
        ("os.abort()", "os.abort is refused"),
        ("os.kill(os.getpid(), 9)", "os.kill is refused"),
        ("sys.exit(0)", "SystemExit: 0"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        (f"raise {CANCELLED}", "Cancelled"),
        ("builtins.__import__ = None", "builtins.__import__ was replaced"),
        ("builtins.len = lambda _: 0", "builtins.len was replaced"),
        ("class M(type):\n    def __dir__(c): raise RuntimeError('dir')", "RuntimeError: dir"),
        ("class M(type):\n    def __hash__(c): raise RuntimeError('hash')", "RuntimeError: hash"),
        ("class M(type):\n    def __getattribute__(c, n): sys.exit(0)", "SystemExit: 0"),
        ("class M(type):\n    def __instancecheck__(c, o): raise ValueError", ""),
    ],
)
def test_what_a_module_does_as_it_is_loaded_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], top: str, said: str
) -> None:
    """Its import, its metaclass, its class: nothing of it ends the command by another status."""
    text = told(capsys, made(tmp_path, top=top), WRONG_INPUT if said else OK)
    assert said in text
    assert not said or "plugin './mine.py'" in text


@pytest.mark.parametrize(
    "top",
    [
        "while True: pass",
        "time.sleep(60)",
        "class M(type):\n    def __getattribute__(c, n):\n        while True: pass",
    ],
)
def test_a_module_that_takes_too_long_to_load_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop or a sleep at import would hold every command that loads it."""
    monkeypatch.setattr(guard, "LOAD_S", 0.2)
    text = told(capsys, made(tmp_path, top=top), WRONG_INPUT)
    assert "WatchdogError: still ran after 0.2 s of wall time, and was stopped" in text


ENDLESS = """\
while True:
            try: time.sleep(60)
            except BaseException: pass
"""
DEEP = """\
sys.setrecursionlimit(2 * 10**6)
        def deeper(more):
            if more: return deeper(more - 1)
            while True: pass
        deeper(10**6)
"""


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (ENDLESS, WRONG_INPUT, "loops without end and catches what would stop it; giving up"),
        # A million frames: a look at them takes longer than the time to the next one.
        (DEEP, OK, "WatchdogError: still ran after 1 s"),
        ("import atexit; atexit.register(time.sleep, 60)", OK, "WatchdogError: still ran after"),
        ("class D:\n            __del__ = lambda _: 1 / 0\n        D()", OK, "ZeroDivisionError"),
    ],
)
def test_what_a_plugin_leaves_or_catches_holds_no_command(
    tmp_path: Path, body: str, status: int, said: str
) -> None:
    """The command ends, tells it in a line, and leaves no half of an output."""
    path = made(tmp_path, body=body)
    command = ("run", "--quiet", "--watchdog", "1", "--trace", "t.jsonl", path.name)
    code = (
        "import sys, slurm_simctl, simctl.plugins.guard as guard\n"
        f"guard.LOAD_S = 3; sys.argv[1:] = {command!r}; sys.exit(slurm_simctl.main())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == status, ran.stderr
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not list(tmp_path.glob("*.part"))


def test_what_a_plugin_closes_or_eats_is_told(tmp_path: Path) -> None:
    """A process of its own: its standard output goes, and its memory."""
    closes = made(tmp_path, body="os.close(1)")
    script = (
        "import sys\n"
        "from simctl.cli import main\n"
        "from simctl.plugins import guard\n"
        "guard.PLUGIN_BYTES = 200 << 20\n"
        "sys.exit(main(['run', sys.argv[1]]))\n"
    )

    def ran(path: Path) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-c", script, str(path)]
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    over = ran(closes)
    assert (over.returncode, over.stdout) == (WRONG_INPUT, "")
    assert "file descriptor 1 was closed or replaced" in over.stderr
    if sys.platform == "linux":
        over = ran(made(tmp_path, body="bytearray(300 << 20)"))
        assert over.returncode == OK
        assert "plugin switch_p_job_postfini: MemoryError" in over.stdout


def test_a_harmless_plugin_and_daemon_threads_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs may be run, names added, and threads be daemons."""
    body = (
        "threading.Thread(target=int, daemon=True).start(); builtins.mine_only = 1; "
        "subprocess.run(['true'], check=True); os.kill(os.getpid(), 0); "
        "own = subprocess.Popen(['sleep', '60']); own.send_signal(15); assert own.wait() == -15; "
        "own = subprocess.Popen(['sleep', '60'], start_new_session=True); "
        "os.killpg(own.pid, 15); assert own.wait() == -15"
    )
    assert told(capsys, made(tmp_path, body=body), OK) == ""
