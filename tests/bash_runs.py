"""Run scripts in the machine's bash and in ours, and hold what comes of them against each other."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs

from simctl.kernel.procs import exit_code_of, signal_of
from simctl.site import User
from simctl.stepd.shell_lines import Finished, run_line
from tests.scripts import Caller, ran_scripts

BASH = shutil.which("bash") or ""
"""The machine's bash, or nothing."""

_FOLDER = "/tmp/here"
_PLACE = re.compile(rf"{_FOLDER}(\d+)/")
_BATCH_S = 60


@attrs.frozen(kw_only=True)
class Came:
    """What came of a script: its output, its exit status, and the files it left, by path."""

    output: str
    status: int
    files: dict[str, str]
    errors: str = attrs.field(default="", eq=False)


def in_bash(texts: Sequence[str]) -> list[Came]:
    """Run scripts in the machine's bash, each in a folder of its own, with no environment."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        for number, text in enumerate(texts):
            (base / f"{number}.sh").write_text(text)
            (base / f"d{number}").mkdir()
        driver = (
            f'cd "{base}" || exit\n'
            f"for ((n = 0; n < {len(texts)}; n++)); do\n"
            f"  (cd d$n && exec env -i HOME=/home/alice PATH=/usr/bin:/bin "
            f"timeout 5 {BASH} ../$n.sh > ../$n.out 2> ../$n.err < /dev/null)\n"
            "  echo $? > $n.status\n"
            "done\n"
        )
        subprocess.run(
            [BASH, "-c", driver], check=False, timeout=_BATCH_S + len(texts), capture_output=True
        )
        return [_came(base, number) for number in range(len(texts))]


def _came(base: Path, number: int) -> Came:
    folder = base / f"d{number}"
    files = {
        str(path.relative_to(folder)): path.read_text(errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return Came(
        output=(base / f"{number}.out").read_text(errors="replace"),
        status=int((base / f"{number}.status").read_text()),
        files=files,
        errors=(base / f"{number}.err").read_text(errors="replace"),
    )


def in_ours(texts: Sequence[str], programs: str = "") -> list[Came]:
    """Run scripts in the simulated shell, each in a folder of its own."""
    runs: list[Finished] = []
    files: list[dict[str, str]] = [{} for _ in texts]

    async def body(caller: Caller) -> None:
        world = caller.world
        parent = world.ctld.process
        host = parent.host.name
        for number, text in enumerate(texts):
            folder = f"{_FOLDER}{number}"
            world.site.disk.own(folder, parent.uid, host)
            with world.kernel.counting():
                ran = await run_line(
                    world.site,
                    parent,
                    text,
                    user=User(name="alice", uid=parent.uid, gid=parent.uid),
                    env={"HOME": "/home/alice", "PATH": "/usr/bin:/bin"},
                    work_dir=folder,
                    args=(f"../{number}.sh",),
                )
            runs.append(ran)
        for path, data in world.site.disk.contents(host).items():
            if found := _PLACE.match(path):
                files[int(found[1])][path[found.end() :]] = data.decode(errors="replace")

    ran_scripts(programs, body)
    return [_ours(ran, left) for ran, left in zip(runs, files, strict=True)]


def _ours(ran: Finished, files: dict[str, str]) -> Came:
    signal = signal_of(ran.status)
    return Came(
        output=ran.stdout,
        status=128 + signal if signal else exit_code_of(ran.status),
        files=files,
        errors=ran.stderr,
    )
