"""Projects of users of pytest: files that tests write into a folder."""

from pathlib import Path

import pytest

import simctl.testing.cluster
import simctl.testing.determinism
import simctl.testing.workers  # noqa: F401
from simctl.orderings.checking import declared

# What an inner run imports for the first time pytester forgets: it would be imported once more,
# rules be declared twice, and functions be others than those of their modules.
declared()

STEP = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001}
timeline:
  - {at: 0s, as: alice, run: "srun -N2 -n4 --ntasks-per-node=2 sleep 10"}
expect:
  - {job: 1, state: COMPLETED}
"""


BROKEN = STEP + (
    '  - order: [switch_p_job_attach, switch_p_job_init]\n    within: "step=1.0"\n    each: node\n'
)


WRONG = STEP.replace("nodes: [", "node: [", 1).replace("as: alice", "as: alicia")


CONFIG = "[pytest]\nfilterwarnings =\n  error\n  ignore:Module already imported\n"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with scenarios where some are looked for and where none are."""
    pytester.makeini(CONFIG)
    write(pytester, "scenarios/step.yaml", STEP)
    return pytester


def write(pytester: pytest.Pytester, name: str, text: str) -> Path:
    """Write a file below the project's folder."""
    path = pytester.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
