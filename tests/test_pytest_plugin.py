"""Scenarios as items of pytest: which are collected, how they are run, how they fail."""

import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from tests.projects import BROKEN, CONFIG, STEP, WRONG, project, write

pytest_plugins = ["pytester"]
__all__ = ["project"]


def ids(result: pytest.RunResult) -> list[str]:
    """Return the node ids that `--collect-only -q` has printed."""
    return [line for line in result.outlines if "::" in line]


def test_collects_by_name_and_from_folders_of_scenarios(project: pytest.Pytester) -> None:
    """Wherever a name says so; in scenarios/ what has a scenario's keys; nothing further down."""
    write(project, "a b/x y.scenario.yaml", STEP)
    write(project, "scenarios/workflow.yaml", "on: push\njobs: {}\n")
    write(project, "scenarios/wrong.yml", WRONG)
    write(project, "scenarios/mistakes/step.yaml", STEP)
    write(project, "elsewhere/step.yaml", STEP)
    assert ids(project.runpytest("--collect-only", "-q")) == [
        "a b/x y.scenario.yaml::x y",
        "scenarios/step.yaml::step",
        "scenarios/wrong.yml::wrong",
    ]


def test_a_file_that_is_named_is_a_scenario(project: pytest.Pytester) -> None:
    """Wherever it stands, and whatever is in it."""
    write(project, "elsewhere/step.yaml", STEP)
    write(project, "elsewhere/not.yaml", "on: push\n")
    result = project.runpytest("elsewhere/step.yaml", "elsewhere/not.yaml")
    result.assert_outcomes(passed=1, failed=1)


def test_other_folders_can_be_named(project: pytest.Pytester) -> None:
    """In pytest's configuration."""
    write(project, "examples/step.yaml", STEP)
    project.makeini(CONFIG + "simctl_folders = examples\n")
    assert ids(project.runpytest("--collect-only", "-q")) == ["examples/step.yaml::step"]


@pytest.mark.parametrize("words", [["--no-scenarios"], ["-m", "not simctl"]])
def test_scenarios_can_be_left_out(project: pytest.Pytester, words: list[str]) -> None:
    """By an option, or by the marker that all of them have."""
    project.makepyfile("def test_nothing(): pass")
    project.runpytest(*words).assert_outcomes(passed=1, deselected=int(words[0] == "-m"))


def test_the_failure_is_what_simctl_run_says_and_no_traceback(project: pytest.Pytester) -> None:
    """What did not hold, the lines of the trace between, and the command that repeats it."""
    write(project, "scenarios/bad one.yaml", BROKEN)
    result = project.runpytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "BROKEN order switch_p_job_attach < switch_p_job_init within step=1.0 each node",
            "*in node=n1: switch_p_job_init (seq *) began before switch_p_job_attach (seq *",
            "*>* n1 slurmstepd/session pid=* uid=0 switch_p_job_init job=1 step=1.0 rc=0",
            "to repeat: simctl run 'scenarios/bad one.yaml' --seed 0 --schedule fifo --model guide",
            "FAILED scenarios/bad one.yaml::bad one - BROKEN order *",
        ]
    )
    for word in ("Traceback", ".py:", "ScenarioFailure"):
        result.stdout.no_fnmatch_line(f"*{word}*")


def test_a_wrong_scenario_fails_with_all_of_its_mistakes(project: pytest.Pytester) -> None:
    """Each with its line and column, from where pytest was started."""
    write(project, "scenarios/wrong.yaml", WRONG)
    write(project, "scenarios/worse.yaml", "nodes: [\nusers: {\n")
    result = project.runpytest()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "scenarios/worse.yaml:3:1: not YAML: *",
            "scenarios/wrong.yaml:1:1: node: a scenario has no key `node`; did you mean nodes?",
            "scenarios/wrong.yaml:5:18: timeline?0?.as: no user 'alicia' *",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_stall_and_a_plugin_that_raises_are_told(project: pytest.Pytester) -> None:
    """Who waits for what; what the plugin raised, though that alone breaks nothing."""
    write(
        project,
        "scenarios/stuck.yaml",
        STEP.replace("sleep 10", "./ever") + "programs: {./ever: {runs: forever}}\n",
    )
    write(
        project,
        "scenarios/raises.py",
        "from simctl.plugin import SwitchPlugin\n"
        "class Raises(SwitchPlugin):\n"
        "    plugin_type = 'switch/raises'\n"
        "    plugin_name = 'raises'\n"
        "    def switch_p_job_fini(self, switch_job):\n"
        "        raise KeyError('nowhere')\n",
    )
    write(
        project,
        "scenarios/raises.yaml",
        'plugins: ["./raises.py:Raises"]\nslurm_conf: {SwitchType: switch/raises}\n'
        + STEP.replace("COMPLETED", "FAILED"),
    )
    result = project.runpytest()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["plugin switch_p_job_fini: *KeyError*nowhere*"])
    result.stdout.fnmatch_lines(["STALLED: nothing is left to happen, and these wait:"])


@pytest.mark.parametrize("where", ["options", "configuration"])
def test_seeds_and_models_make_a_run_each(project: pytest.Pytester, where: str) -> None:
    """First come, first served, and under so many random schedules, in every model named."""
    words = ["--simctl-seeds", "2", "--simctl-model", "guide,modern"]
    if where == "configuration":
        project.makeini(CONFIG + "simctl_seeds = 2\nsimctl_models = guide modern\n")
        words = []
    result = project.runpytest("-rA", *words)
    result.assert_outcomes(passed=6)
    labels = ["guide", "guide-random-0", "guide-random-1"]
    labels += [label.replace("guide", "modern") for label in labels]
    found = [line.removeprefix("PASSED ") for line in result.outlines if line[:6] == "PASSED"]
    assert found == [f"scenarios/step.yaml::step[{label}]" for label in labels]


def test_the_model_and_the_schedule_are_really_taken(project: pytest.Pytester) -> None:
    """The command that repeats a failure names them."""
    write(project, "scenarios/step.yaml", BROKEN)
    words = ("--simctl-model", "modern", "--simctl-schedule", "random", "--simctl-seeds", "1")
    result = project.runpytest(*words)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["to repeat: * --seed 0 --schedule random --model modern"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--simctl-seeds", "-1"], "*--simctl-seeds: expected a whole number from 0*"),
        (["--simctl-model", "gide"], "*model: expected guide or modern, got 'gide'"),
        (["-o", "simctl_seeds=many"], "*simctl_seeds: expected a whole number from 0*"),
        (["-o", "simctl_golden=some"], "*simctl_golden: expected existing, all, off, got 'some'"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    project: pytest.Pytester, words: list[str], told: str
) -> None:
    """Before anything runs, and once."""
    result = project.runpytest(*words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([told])


def test_a_schedule_that_there_is_not_fails_the_runs(project: pytest.Pytester) -> None:
    """With the schedules that there are."""
    result = project.runpytest("--simctl-schedule", "lifo")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["there is no schedule 'lifo'*"])


def test_selecting_and_repeating_failures_work_as_for_any_test(project: pytest.Pytester) -> None:
    """-k and node ids, and --lf with the ids that pytest remembered; JUnit reports."""
    write(project, "scenarios/bad.yaml", BROKEN)
    project.runpytest("-k", "step").assert_outcomes(passed=1, deselected=1)
    project.runpytest("scenarios/bad.yaml::bad").assert_outcomes(failed=1)
    project.runpytest().assert_outcomes(passed=1, failed=1)
    project.runpytest("--lf", "--junitxml=r.xml").assert_outcomes(failed=1)
    case = ET.parse(project.path / "r.xml").find(".//testcase")
    assert case is not None
    assert case.get("name") == "bad"
    assert "switch_p_job_init (seq" in (case.findtext("failure") or "")


@pytest.mark.parametrize("mode", ["true", "false"])
def test_pytest_trio_minds_no_scenarios_and_async_tests_may_run_some(
    project: pytest.Pytester, mode: str
) -> None:
    """A run has a loop of its own, also where a loop runs already."""
    project.makeini(CONFIG + f"trio_mode = {mode}\n")
    project.makepyfile(
        """
        import pytest

        @pytest.mark.trio
        async def test_inside(simctl_run):
            run = simctl_run("scenarios/step.yaml")
            run.assert_held()
            assert run.jobs[0]["state"] == "COMPLETED"

        def test_outside(world):
            world("scenarios/step.yaml").run().assert_held()
        """
    )
    project.runpytest().assert_outcomes(passed=3)


@pytest.mark.slow
def test_works_under_xdist(project: pytest.Pytester) -> None:
    """With what only a worker knows: which files were named, and what is to be rewritten."""
    write(project, "scenarios/bad.yaml", BROKEN)
    names = ("scenarios/step.yaml", "scenarios/bad.yaml")
    result = project.runpytest_subprocess("-n", "1", "--simctl-rewrite", *names)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["BROKEN order *"])
    assert (project.path / "scenarios" / "step.golden.jsonl").exists()


def test_two_runs_are_compared_where_that_is_asked(project: pytest.Pytester) -> None:
    """Here with a plugin that nobody can repeat."""
    write(
        project,
        "scenarios/chance.py",
        "import random\n"
        "from simctl.plugin import SwitchPlugin, log\n"
        "class Chance(SwitchPlugin):\n"
        "    plugin_type = 'switch/chance'\n"
        "    plugin_name = 'chance'\n"
        "    def switch_p_job_init(self, switch_job, uid):\n"
        "        log.info('drew', number=random.random())\n",
    )
    conf = 'plugins: ["./chance.py:Chance"]\nslurm_conf: {SwitchType: switch/chance}\n'
    write(project, "scenarios/chance.yaml", conf + STEP)
    result = project.runpytest("--simctl-check-determinism", "-k", "chance")
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(
        [
            "NOT DETERMINISTIC: two runs of one scenario, seed and schedule differ:",
            "*that event differs in args.number 0.* | 0.*",
            "to repeat: pytest scenarios/chance.yaml --simctl-check-determinism",
        ]
    )


def test_who_does_not_use_it_does_not_wait_for_it() -> None:
    """It is loaded in every repository where simctl is installed."""
    heavy = ("trio", "msgspec", "attr", "yaml", "structlog", "simctl.world", "simctl.kernel")
    code = (
        "import sys, pytest; before = set(sys.modules);"
        "import simctl.testing.pytest_plugin, simctl.testing.finding;"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name for name in eval(done.stdout) if name in heavy]
    assert loaded == []
    assert "simctl.testing.pytest_plugin" in done.stdout
