"""Copies of the tree, each with a server of its own; nothing is ever changed in the tree itself."""

import contextlib
import fnmatch
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

from tests.mutants.server import HITS_FILE

_LEFT_OUT: Final = (
    *(".venv*", ".git", ".mutants", "dist", "build", "*.egg-info", "__pycache__"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache"),
)


_END_S: Final = 5.0

PACKED: Final = "tree.tar.gz"
"""The tree as it travels: with its symbolic links, once to each worker."""


def pack(root: Path) -> bytes:
    """Return a tree, packed, without what tools have left in it."""

    def wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        name = entry.name.rpartition("/")[2]
        left = any(fnmatch.fnmatchcase(name, pattern) for pattern in _LEFT_OUT)
        return None if left else entry

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:
        archive.add(root, arcname=".", filter=wanted)
    return packed.getvalue()


class Copy:
    """A copy of the tree in a temporary folder, and the process that works in it.

    Both are gone when it is closed, no more used, or when its owner has died.
    """

    def __init__(self, packed: Path, tests: Sequence[str] = ()) -> None:
        """Start its process, which unpacks the tree and collects *tests*, files of them or all."""
        folder = Path(tempfile.mkdtemp(prefix="simctl-mutants-"))
        self.tree = folder / "tree"
        temporary = folder / "tmp"
        temporary.mkdir()
        env = os.environ | {
            "PYTHONPATH": str(self.tree),
            # A mutated file must leave nothing compiled behind.
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(temporary),
            HITS_FILE: str(folder / "hits"),
        }
        request_out, self._requests = os.pipe()
        answers, answer_in = os.pipe()
        process = subprocess.Popen(
            [
                *(sys.executable, str(Path(__file__).with_name("server.py"))),
                *(str(request_out), str(answer_in), str(packed), str(folder), *tests),
            ],
            cwd=folder,
            env=env,
            pass_fds=(request_out, answer_in),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(request_out)
        os.close(answer_in)
        self._answers = os.fdopen(answers)
        self.close = weakref.finalize(self, _close, process, self._requests, self._answers, folder)

    def ask(self, request: dict[str, Any]) -> Any:
        """Send a request; return its answer."""
        left = memoryview((json.dumps(request) + "\n").encode())
        while left:
            left = left[os.write(self._requests, left) :]
        return self.answer()

    def answer(self) -> Any:
        """Read an answer; wait for it. The first is given without a request: what tests there are.

        From then on the tree is there.

        Raises:
            RuntimeError: The process has ended.
        """
        line = self._answers.readline()
        if not line:
            raise RuntimeError("the tests of the copy cannot be collected, see above")
        return json.loads(line)


def _close(process: subprocess.Popen[bytes], requests: int, answers: IO[str], folder: Path) -> None:
    # It ends the fork that is at work.
    os.close(requests)
    answers.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)
