"""Executables of the real machine that stand for scripts: options: {real_scripts: true}."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simctl.kernel import outside
from simctl.kernel.outside import MOST_OUTPUT
from simctl.kernel.procs import SIGKILL, SIGTERM
from tests.scripts import Caller, ran_scripts


def script(folder: Path, text: str, name: str = "real.sh") -> str:
    """Write an executable shell script; return its path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_real_script_runs_with_its_arguments_in_no_virtual_time(tmp_path: Path) -> None:
    """Its outputs, its exit code and where it stands are real; the clocks stand still."""
    path = script(tmp_path, 'echo "$2 in $(pwd)"; echo no >&2; sleep 0.2; exit 7')

    async def body(caller: Caller) -> None:
        await caller.sleep(3)
        result = await caller.run(path, "--function", "two words", name="dw_pools")
        assert (result.exit_code, result.error) == (7, "no\n")
        assert result.output == f"two words in {tmp_path}\n"
        assert caller.now_s == 3

    caller, ran = ran_scripts("", body, real=True, folder=tmp_path, lingers=False)
    assert len(caller.results) == 1
    event = ran.one("dw_pools")
    assert (event.rc, event.time_us) == (7 << 8, 3_000_000)


def test_a_real_script_is_asked_before_what_the_scenario_describes(tmp_path: Path) -> None:
    """Without the option it does not even exist."""
    path = script(tmp_path, "echo real")
    described = f'programs: {{{path}: {{output: "described"}}}}\n'

    async def body(caller: Caller) -> None:
        await caller.run(path)

    real, _ = ran_scripts(described, body, real=True)
    simulated, _ = ran_scripts(described, body)
    assert [real.results[0].output, simulated.results[0].output] == ["real\n", "described"]


def test_a_signal_that_ends_a_real_script_is_kept(tmp_path: Path) -> None:
    """The wait status holds its number."""
    path = script(tmp_path, "kill -TERM $$")

    async def body(caller: Caller) -> None:
        assert (await caller.run(path)).signal == SIGTERM

    caller, _ = ran_scripts("", body, real=True)
    assert len(caller.results) == 1


def test_a_real_script_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    """The virtual timeout counts as real seconds."""
    note = tmp_path / "pid"
    path = script(tmp_path, f"sleep 300 & echo $! > {note}; echo begun; wait")

    async def body(caller: Caller) -> None:
        result = await caller.run(path, timeout=0.7)
        assert result.timed_out
        assert (result.signal, result.output) == (SIGKILL, "begun\n")

    started_s = time.monotonic()
    caller, _ = ran_scripts("", body, real=True)
    assert len(caller.results) == 1
    assert time.monotonic() - started_s < 20
    assert is_gone(int(note.read_text()))


def test_no_real_script_has_more_than_the_longest_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it may run in virtual time, or for ever."""
    monkeypatch.setattr(outside, "MOST_S", 0.4)
    path = script(tmp_path, "sleep 300")

    async def body(caller: Caller) -> None:
        assert (await caller.run(path, timeout=86400)).timed_out
        assert (await caller.run(path)).timed_out

    caller, _ = ran_scripts("", body, real=True)
    assert len(caller.results) == 2


def test_output_without_end_is_cut_and_read_on(tmp_path: Path) -> None:
    """A megabyte is kept; the script is not stuck in a full pipe."""
    path = script(tmp_path, "head -c 3000000 /dev/zero | tr '\\0' x; exit 2")

    async def body(caller: Caller) -> None:
        result = await caller.run(path)
        assert (len(result.output), result.exit_code) == (MOST_OUTPUT, 2)

    caller, _ = ran_scripts("", body, real=True)
    assert len(caller.results) == 1


def test_what_a_real_script_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    """A child in the background holds the outputs open, and the script is over nevertheless."""
    path = script(tmp_path, "sleep 4 & echo over")

    async def body(caller: Caller) -> None:
        result = await caller.run(path)
        assert (result.ok, result.output) == (True, "over\n")

    started_s = time.monotonic()
    caller, _ = ran_scripts("", body, real=True)
    assert len(caller.results) == 1
    assert time.monotonic() - started_s < 3


def test_a_file_that_cannot_be_executed_after_all_ends_with_126(tmp_path: Path) -> None:
    """Its interpreter is not there; the error says what the system said."""
    path = tmp_path / "odd"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)

    async def body(caller: Caller) -> None:
        result = await caller.run(str(path))
        assert result.exit_code == 126
        assert "No such file" in result.error

    caller, _ = ran_scripts("", body, real=True)
    assert len(caller.results) == 1


def test_a_started_real_script_is_run_as_well(tmp_path: Path) -> None:
    """Nobody reads its output; what it does to real files is done."""
    path = script(tmp_path, f'echo "$@" > {tmp_path}/done')

    async def body(caller: Caller) -> None:
        caller.start(path, "start_stage_in", "7", job=7)

    _, ran = ran_scripts("", body, real=True)
    assert (tmp_path / "done").read_text() == "start_stage_in 7\n"
    assert ran.one("real.sh", job=7).rc == 0


INTERRUPTED = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {root!r})
from tests.scripts import ran_scripts

async def body(caller):
    await caller.run({path!r})

_, ran = ran_scripts("", body, real=True)
sys.exit(130 if ran.result.interrupted else 1)
"""


def test_ctrl_c_during_a_real_script_ends_both(tmp_path: Path, repository_root: Path) -> None:
    """The run is told to be interrupted at once, and nothing of the script is left."""
    note = tmp_path / "pid"
    path = script(tmp_path, f"echo $$ > {note}; exec sleep 300")
    text = INTERRUPTED.format(root=str(repository_root), path=path)
    with subprocess.Popen((sys.executable, "-c", text), stderr=subprocess.PIPE) as process:
        until_s = time.monotonic() + 60
        while not (note.exists() and note.read_text()) and time.monotonic() < until_s:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (130, b"")
    assert is_gone(int(note.read_text()))


def is_gone(pid: int) -> bool:
    """Return whether a process ends within a moment; one that nobody reaps yet is gone as well."""
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.05)
    return False
