"""Who may do what to a served cluster, and how much of a file it reads; no cluster is served."""

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest
import trio

from simctl.scenario.model import CommandCame, FileSeen
from simctl.serve import disk
from simctl.serve.clock import PacedKernel
from simctl.serve.control import Control
from simctl.serve.recording import Recorder
from simctl.serve.standard_input import StandardInput
from simctl.status import OK, WRONG_INPUT


@attrs.define
class Asker:
    """Somebody who asks, and what came of it."""

    uid: int
    gone: bool = False
    said: str = ""
    status: int = -1

    def write(self, stream: str, text: str) -> None:
        """Hear something."""
        self.said += text

    def quit(self, status: int) -> None:
        """Hear that this was all."""
        self.status = status


def test_whoever_serves_a_cluster_and_root_may_act_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are told who may."""
    monkeypatch.setattr("os.geteuid", lambda: 1001)
    world = cast(Any, SimpleNamespace(trace=SimpleNamespace(add_sink=lambda _: None)))
    control = Control(world, finish=lambda: None, log=pytest.fail)
    askers = [Asker(uid) for uid in (0, 1001, 1002)]
    for asker in askers:
        control.do("flush", asker)
    assert [each.status for each in askers] == [OK, OK, WRONG_INPUT]
    assert "flush: Access/permission denied" in askers[-1].said


def test_a_file_that_is_too_large_is_not_read_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads it gets all of it, or an error."""
    monkeypatch.setattr(disk, "_MOST_BYTES", 8)
    path = tmp_path / "file"
    path.write_bytes(b"12345678")
    assert disk.read_file(str(path)) == b"12345678"
    path.write_bytes(b"123456789")
    with pytest.raises(OSError, match="File too large") as caught:
        disk.read_file(str(path))
    assert caught.value.errno == errno.EFBIG


@pytest.mark.parametrize(
    ("been", "wanted", "told"),
    [
        ([], "", None),
        (["PENDING", "RUNNING"], "", None),
        (["RUNNING", "COMPLETED|COMPLETING"], "", None),
        (["COMPLETED|COMPLETING", "COMPLETED"], "", True),
        (["RUNNING", "CANCELLED"], "", True),
        (["RUNNING"], "RUNNING", True),
        (["RUNNING"], "PENDING|RUNNING", True),
        (["PENDING"], "RUNNING", None),
        (["COMPLETED|COMPLETING"], "COMPLETING", True),
        (["PENDING", "RUNNING", "COMPLETED|COMPLETING"], "RUNNING", None),
        (["PENDING", "RUNNING", "COMPLETED"], "RUNNING", True),
        (["PENDING", "CANCELLED"], "RUNNING", False),
        (["RUNNING", "CANCELLED|REQUEUED"], "COMPLETED", None),
    ],
)
def test_who_waits_for_a_job_is_told_once_nothing_else_can_come(
    been: list[str], wanted: str, told: bool | None
) -> None:
    """A job that is COMPLETING is not over; one that is over and never was so will not be."""
    control = cast(Any, SimpleNamespace(_been={7: been}))
    assert Control._job_wait(control, 7, None, wanted)(None) is told
    assert Control._job_wait(control, 8, None, wanted)(None) is None


@pytest.mark.parametrize("now_us", [0, 10**15])
def test_what_comes_from_outside_has_a_moment_of_its_own(now_us: int) -> None:
    """Behind the turn that was taken last, however far ahead of the wall clock that was."""
    kernel = PacedKernel()
    kernel.now_us = now_us
    due_us = kernel.inject(lambda _: None)
    assert due_us == now_us + 1 if now_us else 0 < due_us < 60_000_000
    assert kernel.inject(lambda _: None) >= due_us


def test_a_task_that_reads_slowly_is_waited_for_only_where_much_lies_there() -> None:
    """The others of its step get more until sixteen pieces wait for it."""
    asked: list[int] = []
    source = StandardInput(lambda: asked.append(1))
    quick, slow = source.open(2), source.open(2)

    async def reads() -> int:
        for number in range(99):
            source.go_on()
            if not source.take(b"piece"):
                return number
            assert await quick.read() == b"piece"
        return -1

    assert trio.run(reads) == len(asked) == 16
    trio.run(slow.read)
    assert source.take(b"more")
    slow.close()
    trio.run(quick.read)
    assert source.take(b"")
    assert not source.take(b"none was asked for")


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"A": "1", "B": "2"}, {}),
        ({"A": "1"}, {"unset": ["B"]}),
        ({"A": "1", "B": "3"}, {"env": {"B": "3"}}),
        ({"A": "1", "C": "4"}, {"env": {"C": "4"}, "unset": ["B"]}),
    ],
)
def test_a_recorded_command_has_what_is_other_than_in_its_users_first(
    environment: dict[str, str], told: dict[str, Any]
) -> None:
    """Variables that have another value, and those that are not there."""
    recorder = cast(Any, SimpleNamespace(_bases={}))

    def came(command: int, uid: int, env: dict[str, str]) -> dict[str, Any]:
        return Recorder._came(
            recorder,
            CommandCame(
                command=command, user="u", uid=uid, gid=1, cwd="/", argv=("squeue",), env=env
            ),
        )

    first = came(1, 1001, {"A": "1", "B": "2"})
    assert (first["base"], first["env"]) == (True, {"A": "1", "B": "2"})
    assert came(2, 1002, {})["base"]
    again = came(3, 1001, environment)
    assert again["env_of"] == 1
    assert {key: again[key] for key in ("env", "unset") if key in again} == told


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ({}, {}),
        ({"text": ""}, {"text": ""}),
        ({"text": "a"}, {"text": "a"}),
        ({"is_dir": True}, {"directory": True}),
    ],
)
def test_a_file_that_is_empty_is_recorded_as_one_that_is_there(
    seen: dict[str, Any], told: dict[str, Any]
) -> None:
    """A text, a directory, or nothing."""
    found = Recorder._told(cast(Any, None), FileSeen(path="/p", **seen))
    assert found == {"path": "/p", "uid": 0, "mode": 0o644, **told}


@pytest.mark.parametrize("scale", [1.0, 100.0, 0.5])
def test_seconds_of_the_wall_clock_last_as_long_however_fast_time_goes(scale: float) -> None:
    """A client may take a tenth of a second in any case."""
    kernel = PacedKernel(scale=scale)
    before_us = kernel.elapsed_us
    kernel.call_later(10.0, lambda: None)
    assert kernel.next_due_us is not None
    assert 10 * scale <= (kernel.next_due_us - before_us) / 1_000_000 < 11 * scale + 1
