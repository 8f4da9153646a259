"""The fixtures and markers of the pytest plugin, as an author's tests use them."""

import pytest

from tests.projects import STEP, project, write

pytest_plugins = ["pytester"]
__all__ = ["project"]


def passes(project: pytest.Pytester, text: str, *words: str, **outcomes: int) -> pytest.RunResult:
    """Run a test file in a folder below the project's; check how its tests end."""
    write(project, "tests/test_it.py", text)
    write(project, "tests/step.yaml", STEP)
    result = project.runpytest("tests", *words)
    result.assert_outcomes(**outcomes)
    return result


def test_simctl_run_takes_a_path_from_the_tests_folder_or_a_text(
    project: pytest.Pytester,
) -> None:
    """Plugins of a text are looked for beside the test as well."""
    write(project, "tests/mine.py", MINE)
    passes(
        project,
        f"""
STEP = '''{STEP}'''

def test_path(simctl_run):
    run = simctl_run("step.yaml")
    run.assert_held()
    assert run.repeat == "simctl run tests/step.yaml --seed 0 --schedule fifo --model guide"

def test_text(simctl_run):
    conf = 'plugins: ["./mine.py:Mine"]\\nslurm_conf: {{SwitchType: switch/mine}}\\n'
    run = simctl_run(conf + STEP, model="modern", schedule="random", seed=3)
    assert (run.result.model, run.result.schedule, run.result.seed) == ("modern", "random", 3)
    assert {{call.plugin for call in run.matching("switch_p_job_init")}} == {{"switch/mine"}}
    assert run.repeat == ""
""",
        passed=2,
    )


MINE = """
from simctl.plugin import SwitchPlugin

class Mine(SwitchPlugin):
    plugin_type = "switch/mine"
    plugin_name = "mine"
"""


def test_markers_run_a_test_once_for_each_seed_and_model(project: pytest.Pytester) -> None:
    """What the fixtures make takes them; what the test says itself goes first."""
    result = passes(
        project,
        """
import pytest

seen = []

@pytest.mark.simctl_seeds(2)
@pytest.mark.simctl_models("guide", "modern")
def test_both(simctl_run):
    result = simctl_run("step.yaml").result
    seen.append((result.model, result.schedule, result.seed))

@pytest.mark.simctl_seeds(5, 7, schedule="fifo")
class TestClass:
    def test_one(self, world):
        result = world("step.yaml", model="modern").run().result
        seen.append((result.model, result.schedule, result.seed))

@pytest.mark.simctl_seeds([9])
def test_own(simctl_run):
    result = simctl_run("step.yaml", seed=4, schedule="fifo").result
    assert (result.seed, result.schedule) == (4, "fifo")

def test_seen():
    both = [(model, "random", seed) for model in ("guide", "modern") for seed in (0, 1)]
    assert sorted(seen) == sorted([*both, ("modern", "fifo", 5), ("modern", "fifo", 7)])
""",
        "-rA",
        passed=8,
    )
    result.stdout.fnmatch_lines_random(
        [
            "PASSED tests/test_it.py::test_both?guide-seed0?",
            "PASSED tests/test_it.py::test_both?modern-seed1?",
            "PASSED tests/test_it.py::TestClass::test_one?seed7?",
        ]
    )


@pytest.mark.parametrize(
    ("marker", "told"),
    [
        ("simctl_seeds()", "*simctl_seeds takes a number of seeds*"),
        ("simctl_seeds(0)", "*simctl_seeds takes a number of seeds*"),
        ("simctl_seeds('3')", "*simctl_seeds takes a number of seeds*"),
        ("simctl_seeds(3, seed=1)", "*simctl_seeds takes a number of seeds*"),
        ("simctl_models('gide')", "*simctl_models takes models*"),
    ],
)
def test_markers_that_say_nothing_are_refused(
    project: pytest.Pytester, marker: str, told: str
) -> None:
    """At collection, with what they take."""
    text = f"import pytest\n@pytest.mark.{marker}\ndef test_it(simctl_run): pass\n"
    passes(project, text, errors=1).stdout.fnmatch_lines([told])


@pytest.mark.parametrize("marker", ["simctl_seeds(3)", "simctl_ignore('pid')"])
def test_a_marker_on_a_test_without_the_fixtures_is_refused(
    project: pytest.Pytester, marker: str
) -> None:
    """It would change nothing."""
    text = f"import pytest\n@pytest.mark.{marker}\ndef test_it(): pass\n"
    result = passes(project, text, errors=1)
    result.stdout.fnmatch_lines(["*is for tests that use one of the fixtures simctl_run, world"])


def test_hypothesis_may_draw_seeds(project: pytest.Pytester) -> None:
    """The fixtures are the session's, so that no health check minds them."""
    passes(
        project,
        """
import pytest
from hypothesis import given, settings, strategies

@pytest.mark.simctl_models("guide", "modern")
@given(strategies.integers(0, 100))
@settings(max_examples=3, deadline=None, database=None)
def test_it(simctl_run, seed):
    simctl_run("step.yaml", schedule="random", seed=seed).assert_held()
""",
        passed=2,
    )


def test_a_failed_assertion_shows_the_slice_and_the_tests_own_line(
    project: pytest.Pytester,
) -> None:
    """And none of simctl's frames."""
    result = passes(
        project,
        """
from simctl.testing import points

def test_it(simctl_run):
    trace = simctl_run("step.yaml").trace
    trace.assert_order(points.switch_p_job_attach, points.switch_p_job_init, node="n1")
""",
        failed=1,
    )
    result.stdout.fnmatch_lines(
        [
            ">       trace.assert_order(points.switch_p_job_attach, points.switch_p_job_init*",
            "E       AssertionError: order switch_p_job_attach < switch_p_job_init within node=n1",
            "E         >*switch_p_job_init job=1 step=1.0 rc=0",
            "E       to repeat: simctl run tests/step.yaml *",
        ]
    )
    result.stdout.no_fnmatch_line("*asserting.py*")


def test_wrong_input_is_told_without_frames(project: pytest.Pytester) -> None:
    """A scenario that is none, or a pattern that nothing could match: the message says it all."""
    result = passes(
        project,
        """
def test_scenario(simctl_run):
    simctl_run("nowhere.yaml")

def test_pattern(simctl_run):
    simctl_run("step.yaml").trace.assert_never("switch_p_job_finni")
""",
        failed=2,
    )
    result.stdout.fnmatch_lines(
        [
            ">       simctl_run(?nowhere.yaml?)",
            "E       *InputError: tests/nowhere.yaml: cannot read the scenario: *",
            "E       *InputError: *did you mean switch_p_job_fini? *",
        ]
    )
    result.stdout.no_fnmatch_line("*simctl/testing*")
    result.stdout.no_fnmatch_line("*scenario/load.py*")


def test_a_cluster_can_be_changed_before_it_runs(project: pytest.Pytester) -> None:
    """By entries of a timeline, at a moment, on an event, and by hand."""
    passes(
        project,
        """
import pytest
from simctl.status import InputError

def test_entries(world):
    cluster = world("step.yaml")
    cluster.add("{at: 2s, as: alice, run: scancel 1}", "{at: 3s, run: sinfo}")
    cluster.add("{at: 4s, run: squeue}")
    run = cluster.run()
    run.assert_that("{job: 1, state: CANCELLED}")
    said = {each.at_us: each.command for each in run.result.commands if each.at_us}
    assert said == {2_000_000: "scancel 1", 3_000_000: "sinfo", 4_000_000: "squeue"}

def test_moments_and_events(world):
    cluster = world("step.yaml")
    seen = []
    cluster.at("2s", lambda: seen.append(cluster.world.kernel.now_us))
    cluster.on("switch_p_job_attach", seen.append)
    cluster.on("switch_p_job_fini", seen.append, each=True)
    cluster.run().assert_held()
    assert seen[1] == 2_000_000
    assert [each.name for each in (seen[0], *seen[2:])] == [
        "switch_p_job_attach", "switch_p_job_fini", "switch_p_job_fini"
    ]

def test_by_hand(world):
    cluster = world("step.yaml")
    cluster.on("switch_p_job_attach", lambda _: cluster.world.injector.crash("n2"))
    run = cluster.run()
    assert not run.held
    run.assert_that("{job: 1, state: NODE_FAIL}")

@pytest.mark.parametrize(("act", "told"), [
    (lambda c: c.add("{at: 2s, as: bob, run: sinfo}"), "no user 'bob'"),
    (lambda c: c.add("{at: ["), "not YAML"),
    (lambda c: c.at("soon", print), "at: "),
    (lambda c: c.on("x y", print), "on: "),
])
def test_mistakes(world, act, told):
    with pytest.raises(InputError, match=told):
        act(world("step.yaml"))
""",
        passed=7,
    )


def test_a_golden_trace_is_written_compared_and_ignores_what_it_is_told(
    project: pytest.Pytester,
) -> None:
    """By the configuration, a marker and the call; its file stands beside the test."""
    text = """
import pytest

@pytest.mark.simctl_ignore("time_us")
def test_it(simctl_run):
    run = simctl_run("step.yaml", seed=SEED)
    run.assert_golden("golden/step.jsonl", ignore=["t0_us"])
"""
    ini = project.makeini(
        "[pytest]\nfilterwarnings = ignore:Module already\nsimctl_ignore =\n  header.seed\n  pid\n"
    )
    first = text.replace("SEED", "0")
    missing = passes(project, first, failed=1)
    missing.stdout.fnmatch_lines(["*there is no golden trace step.jsonl yet"])
    passes(project, first, "--simctl-rewrite", passed=1)
    golden = project.path / "tests" / "golden" / "step.jsonl"
    assert '"ignore":["header.seed","pid","time_us","t0_us"]' in golden.read_text()
    assert '"pid"' not in golden.read_text().partition("\n")[2]
    # Another seed stands in the header alone, and is ignored.
    passes(project, text.replace("SEED", "1"), passed=1)
    golden.write_text(golden.read_text().replace('"uid":1001', '"uid":1002', 1))
    result = passes(project, first, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*not as golden/step.jsonl:",
            "E*that event differs in uid 1002 | 1001*",
            "E*pytest --simctl-rewrite writes the trace anew",
        ]
    )
    assert ini.exists()


def test_scenarios_have_golden_traces_that_ignore_what_is_configured(
    project: pytest.Pytester,
) -> None:
    """In pytest's configuration, or by a marker that a conftest gives some of them."""
    name = "scenarios/step.yaml"
    golden = project.path / "scenarios" / "step.golden.jsonl"
    project.runpytest("--simctl-rewrite").assert_outcomes(passed=1)
    assert not golden.exists()
    project.runpytest("--simctl-rewrite", name).assert_outcomes(passed=1)
    golden.write_text(golden.read_text().replace('"uid":1001', '"uid":1002', 1))
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "NOT AS step.golden.jsonl:",
            "*that event differs in uid 1002 | 1001*",
            "if the run is as it should be: pytest scenarios/step.yaml --simctl-rewrite",
        ]
    )
    project.runpytest("-o", "simctl_ignore=uid").assert_outcomes(passed=1)
    project.runpytest("-o", "simctl_ignore=pid").assert_outcomes(failed=1)
    project.runpytest("-o", "simctl_golden=off").assert_outcomes(passed=1)
    project.makeconftest(
        """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.simctl_ignore("uid"))
"""
    )
    project.runpytest().assert_outcomes(passed=1)
    project.runpytest("--simctl-rewrite").assert_outcomes(passed=1)
    assert '"ignore":["uid"]' in golden.read_text()
    write(project, "scenarios/other.yaml", STEP)
    result = project.runpytest("-o", "simctl_golden=all")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*there is no golden trace other.golden.jsonl yet"])
