"""simctl repl on a real pseudo-terminal, as a person has it."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

import pytest

from tests.repl import repl_command

_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")
_PATIENCE_S = 30
_OWN_TERMINAL = (
    "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Makes the pseudo-terminal the one whose Ctrl-C reaches a process, and becomes that."""


class Terminal:
    """A session behind a pseudo-terminal of eighty columns."""

    def __init__(self, state: Path, *words: str) -> None:
        self.seen = b""
        self._main, other = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWN_TERMINAL, *repl_command(*words)],
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
            env={
                **os.environ,
                "XDG_STATE_HOME": str(state),
                "TERM": "xterm-256color",
                "COLUMNS": "80",
                "LINES": "24",
                "PROMPT_TOOLKIT_NO_CPR": "1",
            },
        )
        os.close(other)

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._main)

    def type(self, text: str) -> None:
        """Press keys."""
        if text:
            os.write(self._main, text.encode())

    def wait_for(self, text: str, *, pressing: str = "") -> str:
        """Read until a text is seen, and return all that was read on the way.

        What is to be pressed is pressed again each time nothing comes for a second: a key that
        reaches the terminal before the prompt has let go of it is one of the next line's.
        """
        self.type(pressing)
        waited = 0
        while text.encode() not in _ESCAPES.sub(b"", self.seen):
            if select.select([self._main], [], [], 1)[0]:
                self.seen += os.read(self._main, 65536)
                continue
            waited += 1
            assert waited < _PATIENCE_S, f"no {text!r} in {self.seen[-2000:]!r}"
            self.type(pressing)
        plain = _ESCAPES.sub(b"", self.seen).decode(errors="replace")
        before, _, after = plain.partition(text)
        self.seen = after.encode()
        return before

    def ends(self) -> int:
        """Wait until the session has ended; return its status."""
        while True:
            try:
                if not os.read(self._main, 65536):
                    break
            except OSError:
                break
        return self.process.wait(timeout=_PATIENCE_S)


def test_a_person_steps_completes_goes_back_and_leaves(tmp_path: Path) -> None:
    """Tab completes, lines that were typed ahead survive going back, and Ctrl-D leaves."""
    with Terminal(tmp_path) as terminal:
        terminal.wait_for("]>")
        terminal.type("sbat\t")
        terminal.wait_for("sbatch")
        terminal.type("hello.sh\r")
        terminal.wait_for("Submitted batch job 1")
        terminal.type("until switch_p_job_pr\t")
        terminal.wait_for("einit")
        terminal.type("job=1\r")
        terminal.wait_for("switch_p_job_preinit step 1.0 rc=0")
        # Typed all at once: what is read ahead goes with the session.
        terminal.type("back 3\rstep 2\rsqueue\r")
        terminal.wait_for("hello.sh    alice  R")
        terminal.wait_for("]>")
        terminal.type("\x04")
        assert terminal.ends() == 0
    history = (tmp_path / "simctl" / "repl_history").read_text()
    assert "+sbatch hello.sh" in history


def test_ctrl_c_gives_up_a_line_and_stops_what_goes_on(tmp_path: Path) -> None:
    """A `continue` without an end ends with Ctrl-C at a prompt, from which the run goes on."""
    path = tmp_path / "long.yaml"
    path.write_text(
        "nodes: [{name: n1}]\npartitions: [{name: debug, nodes: n1}]\nusers: {alice: 1001}\n"
        "files:\n  j.sh: |\n    #!/bin/bash\n    ./app\n    sbatch j.sh\n"
        "programs: {./app: {runs: 1s}}\n"
    )
    with Terminal(tmp_path, str(path)) as terminal:
        terminal.wait_for("]>")
        terminal.type("squeu")
        terminal.wait_for("squeu")
        terminal.type("\x03")
        terminal.wait_for("]>")
        terminal.type("sbatch j.sh\r")
        terminal.wait_for("Submitted batch job 1")
        # Before the prompt is there the terminal would echo the line, and Ctrl-C throw it away.
        terminal.wait_for("]>")
        terminal.type("continue\r")
        terminal.wait_for("continue")
        terminal.wait_for("interrupted", pressing="\x03")
        terminal.type("as root\r")
        terminal.wait_for("[root]>")
        terminal.type("quit\r")
        assert terminal.ends() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_nobody_is_left_behind(tmp_path: Path) -> None:
    """When the process that the session began in is killed, its copies end as well."""
    with Terminal(tmp_path) as terminal:
        terminal.wait_for("]>")
        children = Path(f"/proc/{terminal.process.pid}/task/{terminal.process.pid}/children")
        child = int(children.read_text().split()[0])
        watched = os.pidfd_open(child)
        terminal.process.kill()
        ended, _, _ = select.select([watched], [], [], _PATIENCE_S)
        os.close(watched)
        assert ended


def test_a_person_is_greeted_turns_pages_and_stops_in_a_plugin(tmp_path: Path) -> None:
    """Long output stops at the end of the screen; `breakpoint()` has the terminal to itself."""
    plugin = (
        "from simctl.plugin import SwitchPlugin\n\n\nclass Mine(SwitchPlugin):\n"
        '    plugin_type = "switch/mine"\n    plugin_name = "mine"\n\n'
        "    def switch_p_node_init(self):\n        breakpoint()\n"
    )
    (tmp_path / "mine.py").write_text(plugin)
    path = tmp_path / "s.yaml"
    path.write_text(
        "slurm_conf: {SwitchType: switch/mine}\nplugins: ['./mine.py:Mine']\n"
        "nodes: [{name: n1}]\npartitions: [{name: debug, nodes: n1}]\nusers: {alice: 1001}\n"
        'files: {hello.sh: "#!/bin/sh\\nsrun true\\n"}\n'
    )
    with Terminal(tmp_path, str(path)) as terminal:
        terminal.wait_for("a cluster of 1 node (n1), partition debug")
        terminal.wait_for("Files of alice: hello.sh")
        terminal.wait_for("]>")
        terminal.type("run 1s\r")
        terminal.wait_for("(Pdb)")
        terminal.type("p 6 * 7\r")
        terminal.wait_for("42")
        terminal.type("c\r")
        terminal.wait_for("]>")
        terminal.type("explain switch_p_job_attach\r")
        terminal.wait_for("-- more")
        terminal.wait_for("]>", pressing="q\r")
        terminal.type("\x04")
        assert terminal.ends() == 0


def test_a_session_that_nobody_reads_any_more_ends() -> None:
    """`simctl repl | head -3`: the pipe closes while a command of the timeline prints."""
    session = subprocess.Popen(
        [sys.executable, "-m", "simctl", "repl", "two_nodes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert session.stdin is not None
    assert session.stdout is not None
    try:
        session.stdin.write("step\nuntil switch_p_job_fini\nwhere\nrun 60s\n")
        session.stdin.close()
        assert session.stdout.readline() == "> step\n"
        session.stdout.close()
        assert session.wait(60) == 0
    finally:
        session.kill()
        session.wait()
