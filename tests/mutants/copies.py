"""Copies of the tree, each with a server of its own; nothing is ever changed in the tree itself."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.mutants.server import HITS_FILE

_LEFT_OUT: Final = (
    *(".venv", ".git", ".mutants", "dist", "build", "*.egg-info"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache"),
)


class Copy:
    """A copy of the tree in a temporary folder, and the process that works in it."""

    def __init__(self, root: Path, tests: Sequence[str] = ()) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="simctl-mutants-"))
        self.tree = self._folder / "tree"
        shutil.copytree(root, self.tree, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        shutil.copy(self.tree / "tests" / "mutants" / "acting.py", self.tree / "simctl/_acting.py")
        temporary = self._folder / "tmp"
        temporary.mkdir()
        env = os.environ | {
            "PYTHONPATH": str(self.tree),
            # A mutated file must leave nothing compiled behind.
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(temporary),
            HITS_FILE: str(self._folder / "hits"),
        }
        request_out, self._requests = os.pipe()
        self.answers, answer_in = os.pipe()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.mutants.server"),
                *(str(request_out), str(answer_in), *tests),
            ],
            cwd=self.tree,
            env=env,
            pass_fds=(request_out, answer_in),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(request_out)
        os.close(answer_in)
        self._reading = os.fdopen(self.answers)

    def ask(self, request: dict[str, Any]) -> None:
        """Send a request; its answer comes to `answers`."""
        left = memoryview((json.dumps(request) + "\n").encode())
        while left:
            left = left[os.write(self._requests, left) :]

    def answer(self) -> Any:
        """Read an answer; wait for it."""
        line = self._reading.readline()
        if not line:
            raise RuntimeError("the tests of the copy cannot be collected, see above")
        return json.loads(line)

    def close(self) -> None:
        """End the process and remove the copy."""
        os.close(self._requests)
        self._reading.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
