"""A served cluster: real clients, real processes, and nothing left behind."""

import sys
import time
from collections.abc import Callable, Iterator

import pytest

from simctl.testing.served import Served

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="serve needs Linux")
LONG_S = 20.0


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Return a cluster that the tests of this file share."""
    cluster = Served()
    yield cluster
    cluster.close()


def submit(served: Served, script: str, *options: str, **more: object) -> int:
    """Submit a script that sbatch reads from its standard input; return the job's id."""
    found = served.run("sbatch", "--parsable", *options, input=script, **more)
    assert not found.returncode, found.stderr
    return int(found.stdout)


def output(served: Served, job: int | str) -> str:
    """Return what a job has written."""
    return (served.path.parent / f"slurm-{job}.out").read_text()


def until(held: Callable[[], bool], what: str) -> None:
    """Wait for something that takes a moment of real time."""
    limit = time.monotonic() + LONG_S
    while not held():
        assert time.monotonic() < limit, what
        time.sleep(0.02)


def test_a_script_of_any_interpreter_runs_with_its_variables_where_it_was_submitted(
    served: Served,
) -> None:
    """A job is a process of the machine: its output, its directory, its status are real."""
    job = submit(
        served,
        f"#!{sys.executable}\nimport os, sys\nprint(os.environ['SLURM_JOB_ID'], os.getcwd())\n"
        "print(os.environ['OWN'], file=sys.stderr)\nsys.exit(3)\n",
        env={**served.env, "OWN": "mine"},
    )
    served.wait_for(f"job {job}")
    assert output(served, job) == f"{job} {served.path.parent}\nmine\n"
    told = served.run("sacct", "-nXP", "-j", str(job), "-o", "State,ExitCode").stdout
    assert told == "FAILED|3:0\n"
