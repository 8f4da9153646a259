"""Who may do what to a served cluster, and how much of a file it reads; no cluster is served."""

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest

from simctl.serve import disk
from simctl.serve.control import Control
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
