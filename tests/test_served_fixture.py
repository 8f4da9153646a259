"""The fixture `simctl_cluster`: how long it lasts, what it serves, what it is asked."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simctl.testing.served import CLUSTER
from tests.serving import alive, until

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="serve needs Linux")

ONE_NODE = (
    "nodes: [{name: only, cpus: 2}]\npartitions: [{name: debug, nodes: only, default: true}]\n"
)
SHARED = """\
import pytest

def test_one(simctl_cluster):
    assert simctl_cluster.run("sinfo", "-hNo", "%N").stdout == "only\\n"
    for _ in range(3):
        simctl_cluster.run("squeue", "-h")

def test_two(simctl_cluster):
    assert len(simctl_cluster.asked("squeue")) == 3
    assert simctl_cluster.asked_per_minute("squeue", "-h") == 3
    assert simctl_cluster.asked_per_minute("sacct") == 0
"""


def test_a_cluster_lasts_as_long_as_the_setting_says(pytester: pytest.Pytester) -> None:
    """Two tests of a session share one, of a file that is beside the settings."""
    pytester.makeini(
        "[pytest]\nsimctl_cluster_scope = session\nsimctl_cluster = one.yaml --scale 10\n"
    )
    (pytester.path / "one.yaml").write_text(ONE_NODE)
    pytester.makepyfile(SHARED)
    pytester.runpytest_inprocess().assert_outcomes(passed=2)


def test_what_the_page_shows_of_a_clients_retry_comes_true(pytester: pytest.Pytester) -> None:
    """The test in docs/serve.md passes."""
    page = (Path(__file__).parents[1] / "docs" / "serve.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    pytester.makepyfile(shown)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_cluster_does_not_outlive_a_test_that_is_killed() -> None:
    """Its server and its jobs end with the process that holds the fixture."""
    program = (
        "import os\nfrom simctl.testing.served import Served\n"
        "served = Served()\nprint(served.process.pid, served.path, flush=True)\n"
        "served.run('sbatch', '--wrap', 'sleep 1000')\nserved.wait_for('job 1 RUNNING')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    pid, path = done.stdout.split()
    until(lambda: not alive(int(pid)), "the server is gone")
    until(lambda: not Path(path, "socket").exists(), "no socket is left")
    shutil.rmtree(Path(path).parent)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("simctl_cluster_scope = hour", "simctl_cluster_scope: expected function, class"),
        ("simctl_cluster_scope = module", "one is served for each module (simctl_cluster_scope)"),
    ],
)
def test_a_scope_that_cannot_be_is_told(
    pytester: pytest.Pytester, settings: str, told: str
) -> None:
    """So is a marker that would name a cluster for one test of several."""
    pytester.makeini(f"[pytest]\n{settings}\n")
    pytester.makepyfile(
        "import pytest\n\n"
        f"@pytest.mark.simctl_cluster({CLUSTER!r})\n"
        "def test_one(simctl_cluster):\n    pass\n"
    )
    result = pytester.runpytest_inprocess()
    assert told in "\n".join([*result.outlines, *result.errlines])
