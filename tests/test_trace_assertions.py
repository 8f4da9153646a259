"""What can be asserted on the trace of a run, and how it fails."""

from collections.abc import Callable

import pytest

from simctl.plugins.points import ALL, OPTIONAL
from simctl.status import InputError
from simctl.testing import points, run_scenario
from simctl.testing.asserting import RunTrace
from simctl.testing.points import switch_p_job_fini
from simctl.testing.runs import Run
from tests.projects import STEP


@pytest.fixture(scope="module")
def run() -> Run:
    """A step of four tasks on two nodes."""
    return run_scenario(STEP)


@pytest.fixture(scope="module")
def trace(run: Run) -> RunTrace:
    """The trace of that."""
    return run.trace


Assertion = Callable[[RunTrace], None]


@pytest.mark.parametrize(
    "holds",
    [
        lambda t: t.assert_order(
            points.switch_p_job_preinit,
            points.switch_p_job_init,
            points.switch_p_job_attach,
            points.switch_p_job_fini,
            points.switch_p_job_postfini,
            step="1.0",
            each="node",
        ),
        lambda t: t.assert_order("switch_p_job_attach task=0", "exec task=0", node="n1"),
        lambda t: t.assert_order("switch_p_job_init", "plugin_error", optional=True),
        lambda t: t.assert_before(
            points.switch_p_job_init, points.switch_p_job_attach, proved=True, each="node"
        ),
        lambda t: t.assert_never(points.switch_p_job_fini, role="manager"),
        lambda t: t.assert_never("switch_p_job_attach", user="root", node="n*"),
        lambda t: t.assert_count(points.switch_p_job_attach, 4, job=1, user="alice"),
        lambda t: t.assert_count("switch_p_job_attach", 1, args={"rank": 3, "nnodes": 2}),
        lambda t: t.assert_count("switch_p_job_attach", least=4),
        lambda t: t.assert_count("switch_p_job_attach", most=4, kind="plugin"),
        lambda t: t.assert_count("job_state", 1, node=None, args={"to": "COMPLETED"}),
        lambda t: t.assert_process(points.switch_p_job_fini, role="session", user="alice"),
        lambda t: t.assert_process("switch_p_job_preinit", daemon="slurmstepd", uid=0, step="1.0"),
        lambda t: t.assert_process(
            points.switch_p_job_preinit, points.switch_p_job_postfini, same=True, each="node"
        ),
    ],
)
def test_holds(trace: RunTrace, holds: Assertion) -> None:
    """What is so does not fail."""
    holds(trace)


@pytest.mark.parametrize(
    ("breaks", "told"),
    [
        (
            lambda t: t.assert_order("switch_p_job_attach", "switch_p_job_init", each="node"),
            r"order switch_p_job_attach < switch_p_job_init each node\n  in node=n1: "
            r"switch_p_job_init \(seq \d+\) began before switch_p_job_attach \(seq \d+\) ended:\n"
            r"  > .* switch_p_job_init job=1 step=1.0 rc=0\n(?s:.*)become_user(?s:.*)  > .*_attach",
        ),
        (
            lambda t: t.assert_order("plugin_error", "switch_p_job_fini", node="n1"),
            r"nothing matches `plugin_error`, while these entries have matches:\n",
        ),
        (
            lambda t: t.assert_before(
                "switch_p_job_init node=n1", "switch_p_job_init node=n2", proved=True
            ),
            r"order \S+ node=n1 < \S+ node=n2 proved\n  switch_p_job_init \(seq \d+\) came before "
            r"switch_p_job_init \(seq \d+\), but nothing forces it:\n",
        ),
        (
            lambda t: t.assert_never("switch_p_job_attach", node="n2"),
            r"never switch_p_job_attach node=n2\n  the first that matches; 2 events match in all:\n"
            r" .* n2 task/task .*switch_p_job_attach",
        ),
        (
            lambda t: t.assert_count(points.switch_p_job_attach, 3),
            r"count switch_p_job_attach is 3\n  4 events match; the first and the last:\n",
        ),
        (
            lambda t: t.assert_count(points.switch_p_job_attach, least=5, most=6),
            r"count switch_p_job_attach min 5 max 6\n  4 events match",
        ),
        (
            lambda t: t.assert_process(points.switch_p_job_attach, role="session", node="n1"),
            r"process of switch_p_job_attach within node=n1: role=session\n  2 of 2 otherwise:\n",
        ),
        (
            lambda t: t.assert_process("switch_p_job_init", "plugin_error", role="session"),
            r"nothing matches: no event of the run is called plugin_error",
        ),
        (
            lambda t: t.assert_process(
                points.switch_p_job_init, points.switch_p_job_postfini, same=True, each="node"
            ),
            r": the same each node\n  in node=n1: 2 processes, pids \d+, \d+:\n",
        ),
        (
            lambda t: t.assert_process("switch_p_job_preinit", same=True),
            r"process of switch_p_job_preinit: the same\n  2 processes, pids",
        ),
    ],
)
def test_breaks(trace: RunTrace, breaks: Assertion, told: str) -> None:
    """What is not so fails, with the lines that show it."""
    with pytest.raises(AssertionError, match=told):
        breaks(trace)


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        (lambda t: t.assert_never("switch_p_job_finni"), "did you mean switch_p_job_fini"),
        (lambda t: t.assert_never("switch_p_job_fini", node="n3"), "no node 'n3'"),
        (lambda t: t.assert_never("switch_p_job_fini", nod="n1"), "no field 'nod'"),
        (lambda t: t.assert_never("switch_p_job_fini", user="bob"), "no user 'bob'"),
        (lambda t: t.assert_never("switch_p_job_fini node=n1", node="n1"), "given twice"),
        (lambda t: t.assert_never("switch_p_job_fini", name="exec"), "no field 'name'"),
        (lambda t: t.assert_order("switch_p_job_fini"), "two entries"),
        (lambda t: t.assert_order("exec", "exit", each="nod"), "each: no field 'nod'"),
        (lambda t: t.assert_count("exec"), "give a number, or least= or most="),
        (lambda t: t.assert_count("exec", 1, least=1), "give a number, or least= or most="),
        (lambda t: t.assert_process("exec"), "daemon, role, user, uid, euid or same=True"),
        (lambda t: t.assert_process(role="session"), "name an event"),
        (lambda t: t.assert_process("exec", role="task", each="node"), "goes with same=True"),
    ],
)
def test_what_could_never_fail_or_hold_is_refused(
    trace: RunTrace, asks: Assertion, told: str
) -> None:
    """A slip of the pen must not pass for a result."""
    with pytest.raises(InputError, match=told):
        asks(trace)


def test_every_function_of_the_guides_is_a_point() -> None:
    """By its name, also `from simctl.testing.points import ...`; a slip of the pen is none."""
    known = {**ALL, **OPTIONAL}
    assert dir(points) == sorted(known)
    assert all(getattr(points, name) is known[name] for name in known)
    assert switch_p_job_fini is ALL["switch_p_job_fini"]
    with pytest.raises(AttributeError, match="did you mean switch_p_job_fini"):
        _ = points.switch_p_job_finni


def test_expectations_may_name_any_node_of_the_scenario(run: Run) -> None:
    """And none other."""
    run.assert_that('{count: "switch_p_job_attach node=n2", is: 2}')
    with pytest.raises(InputError, match="no node 'n3'"):
        run.assert_that('{never: "switch_p_job_attach node=n3"}')
    with pytest.raises(InputError, match="not YAML"):
        run.assert_that("{never: ")
    with pytest.raises(AssertionError, match="count switch_p_job_attach is 5"):
        run.assert_that("{count: switch_p_job_attach, is: 5}", "{job: 1, state: COMPLETED}")
