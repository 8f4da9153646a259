"""sbatch prints what Slurm's does: the recordings, each rebuilt as a scenario."""

import attrs
import pytest
import yaml

from tests import cluster, printed
from tests.printed import FOLDER

_JOB = "#!/bin/sh\n#SBATCH --job-name=myjob\n#SBATCH -n1\nhostname\nsleep 1\n"

FILES = {
    "j.sh": _JOB,
    "baddir.sh": "#!/bin/sh\n#SBATCH --bogus-option=3\nhostname\n",
    "baddir2.sh": "#!/bin/sh\n#SBATCH -t\nhostname\n",
    "baddir3.sh": "#!/bin/sh\n#SBATCH -p nope\nhostname\n",
    "empty.sh": "",
    "noshebang.sh": "hostname\n",
    "wrapdir.sh": "#!/bin/sh\n  #SBATCH -p nope\nhostname\n",
    "lateDir.sh": "#!/bin/sh\nhostname\n#SBATCH -p nope\n",
    "quoted.sh": "#!/bin/sh\n#SBATCH --job-name=a b\nhostname\n",
}
"""The scripts of the recordings, as far as they can be told from what sbatch made of them."""

_IDS = {r"\b(batch job|Job) \d+": r"\1 ID", r"(?m)^\d+(?=;|$)": "ID"}
_STDIN = {
    "ok_stdin": "j.sh",
    "err_empty_stdin": "empty.sh",
    "err_noshebang": "noshebang.sh",
    "err_noargs_stdin": "noshebang.sh",
}
_NAMES = sorted(path.stem for path in (FOLDER / "sbatch").glob("*.txt"))


@pytest.mark.parametrize("name", [name for name in _NAMES if name not in ("err_dos", *_STDIN)])
def test_prints_what_slurm_prints(name: str) -> None:
    """The same words on the same stream, and the same exit status."""
    recording = printed.read(f"sbatch/{name}")
    entry = {"at": "1s", "as": recording.user, "run": recording.line}
    ran = cluster.run(
        yaml.safe_dump({"files": FILES, "timeline": [entry]}), cluster=printed.CLUSTER
    )
    printed.assert_as_printed(f"sbatch/{name}", ran.result.commands[0], _IDS)


@pytest.mark.parametrize("name", ["err_dos", *_STDIN])
def test_prints_what_slurm_prints_in_a_script(name: str) -> None:
    """A file that no scenario may hold is made by a script, and so are redirections."""
    recording = printed.read(f"sbatch/{name}")
    line = f"sbatch < {_STDIN[name]}" if name in _STDIN else recording.line
    outer = (
        "#!/bin/sh\n"
        "printf '#!/bin/sh\\r\\nhostname\\r\\n' > dos.sh\n"
        f"{line} > out 2> err\n"
        "exit $?\n"
    )
    files = {**FILES, "outer.sh": outer}
    entry = {"at": "1s", "as": recording.user, "run": "sbatch -W outer.sh"}
    ran = cluster.run(
        yaml.safe_dump({"files": files, "timeline": [entry]}), cluster=printed.CLUSTER
    )
    typed = attrs.evolve(ran.result.commands[0], stdout=_file(ran, "out"), stderr=_file(ran, "err"))
    printed.assert_as_printed(f"sbatch/{name}", typed, _IDS)


def _file(ran: cluster.Ran, name: str) -> str:
    return ran.world.site.disk.read(f"/home/alice/{name}") or ""
