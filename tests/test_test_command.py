"""`simctl test`: what it finds, says and returns, and its JUnit report."""

import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from simctl import cli
from simctl.status import InputError
from simctl.testing.keywords import selects
from tests.cluster import SIMCTL
from tests.projects import BROKEN, STEP, WRONG
from tests.test_orderings import wrong_rule

__all__ = ["wrong_rule"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with scenarios here and there."""
    for name, text in (
        ("scenarios/step.yaml", STEP),
        ("scenarios/other.yml", "on: push\n"),
        ("scenarios/mistakes/step.yaml", BROKEN),
        ("a b/step.scenario.yaml", STEP),
        (".hidden/step.scenario.yaml", BROKEN),
        ("old/pyvenv.cfg", ""),
        ("old/step.scenario.yaml", BROKEN),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def says(folder: Path, capsys: pytest.CaptureFixture[str]) -> "Says":
    """Run the command; see its lines."""
    return Says(capsys)


class Says:
    """`simctl test` in a folder."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *words: str, status: int = cli.OK) -> list[str]:
        """Run it, check its exit status, and return the lines of its output."""
        found = cli.main(["test", *words])
        out, self.err = self._capsys.readouterr()
        assert found == status, out + self.err
        return out.splitlines()


def without_time(line: str) -> str:
    """Return a line without how long something took."""
    return re.sub(r"\d+\.\d\d s$", "N s", line)


def test_a_line_for_each_scenario_and_a_summary(says: Says) -> None:
    """In a folder: by name wherever they stand, and those of scenarios/; nothing hidden."""
    lines = says(".")
    assert lines[:-1] == ["held    a b/step.scenario.yaml", "held    scenarios/step.yaml"]
    assert without_time(lines[-1]) == "2 runs: 2 held, in N s"


def test_a_folder_that_is_named_has_its_own_files_looked_at(says: Says) -> None:
    """Whatever it is called; and nothing is run twice."""
    lines = says("scenarios/mistakes", "scenarios/../scenarios/mistakes", status=cli.NOT_HELD)
    assert lines[0] == "BROKEN  scenarios/mistakes/step.yaml"
    assert lines[-1].startswith("1 run: 0 held, 1 broken, in ")


def test_what_did_not_hold_stands_below_its_line(says: Says, folder: Path) -> None:
    """With the trace between, and the command that repeats it, which does."""
    (folder / "a b" / "bad.scenario.yaml").write_text(BROKEN)
    lines = says(".", status=cli.NOT_HELD)
    text = "\n".join(lines)
    assert lines[0] == "BROKEN  a b/bad.scenario.yaml"
    assert lines[1].startswith("    BROKEN order switch_p_job_attach < switch_p_job_init within ")
    assert re.search(r"\n {11}>.* switch_p_job_init job=1 step=1.0 rc=0\n", text)
    assert (
        "    to repeat: simctl run 'a b/bad.scenario.yaml' --seed 0 --schedule fifo --model guide"
        in lines
    )
    assert without_time(lines[-1]) == "3 runs: 2 held, 1 broken, in N s"


def test_wrong_input_is_worse_than_what_did_not_hold(says: Says, folder: Path) -> None:
    """All mistakes, and all other scenarios are run nevertheless."""
    (folder / "scenarios" / "bad.yaml").write_text(BROKEN)
    (folder / "scenarios" / "wrong.yaml").write_text(WRONG)
    lines = says("scenarios", status=cli.WRONG_INPUT)
    place = lines.index("WRONG   scenarios/wrong.yaml")
    assert lines[place + 1 : place + 3] == [
        "    scenarios/wrong.yaml:1:1: missing key `nodes`: The compute nodes.",
        "    scenarios/wrong.yaml:1:1: node: a scenario has no key `node`; did you mean nodes?",
    ]
    assert without_time(lines[-1]) == "3 runs: 1 held, 1 broken, 1 wrong, in N s"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["old"], "simctl: test: no scenarios in old: looked for *.scenario.yaml, "),
        (["nowhere"], "simctl: test: there is no file or folder nowhere"),
        (["scenarios", "-k", "nobody"], "simctl: test: -k 'nobody' leaves none of 1 run"),
        (["scenarios", "-k", "("], "simctl: -k '(': expected a word at its end"),
        (["scenarios", "--model", "gide"], "simctl: model: expected guide or modern, got 'gide'"),
        (["scenarios", "--seeds", "-2"], "simctl: --seeds: expected a whole number from 0 to"),
        (
            ["scenarios", "--workers", "0"],
            "simctl: --workers: expected a whole number from 1 to 256",
        ),
        (["scenarios", "--junit", ""], "simctl: --junit: expected the name of a file, got ''"),
        (["scenarios", "--junit", "."], "simctl: --junit: expected the name of a file, got '.'"),
        (["scenarios", "--rewrite", "--golden", "off"], "simctl: test: --rewrite and --golden"),
    ],
)
def test_nothing_to_run_is_wrong_input(says: Says, words: list[str], told: str) -> None:
    """With what was looked for; a run of no tests must not pass for a success."""
    if words == ["old"]:
        Path("old/step.scenario.yaml").unlink()
    says(*words, status=cli.WRONG_INPUT)
    assert says.err.startswith(told)


def test_models_seeds_and_schedules_make_a_run_each(says: Says) -> None:
    """As with pytest."""
    lines = says("scenarios", "--model", "guide,modern", "--seeds", "1")
    assert lines[:-1] == [
        f"held    scenarios/step.yaml [{label}]"
        for label in ("guide", "guide-random-0", "modern", "modern-random-0")
    ]
    lines = says("scenarios", "--schedule", "random", "--seeds", "2", "-k", "not random-0")
    assert lines[:-1] == ["held    scenarios/step.yaml [random-1]"]


def test_a_schedule_that_there_is_not_is_wrong_input(says: Says) -> None:
    """With those that there are."""
    lines = says("scenarios", "--schedule", "lifo", status=cli.WRONG_INPUT)
    assert lines[1].startswith("    there is no schedule 'lifo'")


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("step", True),
        ("STEP and scenarios", True),
        ("step and nobody", False),
        ("nobody or step", True),
        ("not nobody", True),
        ("not not step", True),
        ("not step or scenarios", True),
        ("not (step or scenarios)", False),
        ("nobody and nobody or step", True),
        ("step and (nobody or scenarios)", True),
        ("step[modern]", True),
    ],
)
def test_expressions_are_pytests(expression: str, found: bool) -> None:
    """`not` binds tighter than `and`, that tighter than `or`; a word is part of the name."""
    assert selects(expression, "scenarios/step.yaml::step[modern]") is found


@pytest.mark.parametrize("expression", ["", "and", "a b", "a and", "(a", "a)", "not", "or a", "()"])
def test_expressions_that_are_none_are_refused(expression: str) -> None:
    """Whatever their words would be."""
    with pytest.raises(InputError, match="-k "):
        selects(expression, "a")


def test_golden_traces_are_made_compared_and_renewed(says: Says, folder: Path) -> None:
    """The first for a file that is named; a model that is not the scenario's has one of its own."""
    golden = folder / "scenarios" / "step.golden.jsonl"
    assert "no golden traces: name a scenario's file" in says("scenarios", "--rewrite")[-1]
    assert not golden.exists()
    path = "scenarios/step.yaml"
    assert says(path, "--rewrite")[0] == f"held    {path}  (wrote scenarios/step.golden.jsonl)"
    assert says(path, "--rewrite")[0] == f"held    {path}"
    says("scenarios", "--model", "guide")
    golden.write_text(golden.read_text().replace('"uid":1001', '"uid":1002', 1))
    lines = says("scenarios", status=cli.NOT_HELD)
    assert lines[1] == "    NOT AS step.golden.jsonl:"
    assert any("that event differs in uid 1002 | 1001" in line for line in lines)
    assert f"    if the run is as it should be: simctl test {path} --rewrite" in lines
    says("scenarios", "--ignore", "uid", "--ignore", "euid")
    says("scenarios", "--golden", "off")
    says("scenarios", "--seeds", "1", "-k", "random")
    says("scenarios", "--model", "modern", "--golden", "all", status=cli.NOT_HELD)
    says("scenarios", "--model", "modern", "--golden", "all", "--rewrite")
    says("scenarios", "--model", "modern", "--golden", "all")
    assert says("scenarios", "--rewrite")[0].endswith("(wrote scenarios/step.golden.jsonl)")
    assert sorted(each.name for each in (folder / "scenarios").glob("*.jsonl")) == [
        "step.golden.jsonl",
        "step.modern.golden.jsonl",
    ]


UNSTEADY = {
    "a set": "VALUE = list({f'name{number}' for number in range(50)})",
    "an address": "VALUE = id(object())",
}


@pytest.mark.parametrize("what", UNSTEADY)
def test_a_plugin_that_is_not_repeatable_is_found(says: Says, folder: Path, what: str) -> None:
    """By a second run in another process with another hash seed; the first difference is shown."""
    (folder / "mine.py").write_text(
        "from simctl.plugin import SwitchPlugin, log\n"
        f"{UNSTEADY[what]}\n"
        "class Mine(SwitchPlugin):\n"
        "    plugin_type = 'switch/mine'\n"
        "    plugin_name = 'mine'\n"
        "    def switch_p_job_init(self, switch_job, uid):\n"
        "        log.info('value', value=VALUE)\n"
    )
    conf = 'plugins: ["./mine.py:Mine"]\nslurm_conf: {SwitchType: switch/mine}\n'
    (folder / "mine.scenario.yaml").write_text(conf + STEP)
    says("mine.scenario.yaml")
    lines = says("mine.scenario.yaml", "--check-determinism", status=cli.NOT_HELD)
    text = "\n".join(lines)
    assert "NOT DETERMINISTIC: two runs of one scenario, seed and schedule differ:" in lines[1]
    assert re.search(r"\n    - .* plugin_log .*\n    \+ .* plugin_log ", text)
    assert "that event differs in args.value" in text
    assert "    to repeat: simctl test mine.scenario.yaml --check-determinism" in lines


def test_what_is_repeatable_is_said_to_be(says: Says) -> None:
    """Also a run that breaks is run twice, and breaks alike."""
    lines = says("scenarios/mistakes", "--check-determinism", status=cli.NOT_HELD)
    assert "NOT DETERMINISTIC" not in "\n".join(lines)
    assert ", each run twice, in " in lines[-1]


@pytest.mark.usefixtures("wrong_rule")
def test_a_broken_ordering_fails_and_may_be_left_unchecked(says: Says) -> None:
    """As with `simctl run`."""
    lines = says("scenarios", status=cli.NOT_HELD)
    assert lines[1] == "    BROKEN ordering 99 preinit-never: nobody calls preinit"
    assert lines[2] == "           in node n1 (and in 1 more group): it was called:"
    says("scenarios", "--no-orderings")


def test_no_run_meets_what_another_left_in_a_plugins_file(says: Says, folder: Path) -> None:
    """Tests have the same result alone, together, and in any order."""
    (folder / "count.py").write_text(
        "from simctl.plugin import SwitchPlugin, SlurmError\n"
        "LOADED = []\n"
        "class Count(SwitchPlugin):\n"
        "    plugin_type = 'switch/count'\n"
        "    plugin_name = 'count'\n"
        "    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):\n"
        "        LOADED.append(1)\n"
        "        if len(LOADED) > 1:\n"
        "            raise SlurmError(1)\n"
    )
    conf = 'plugins: ["./count.py:Count"]\nslurm_conf: {SwitchType: switch/count}\n'
    (folder / "count.scenario.yaml").write_text(conf + STEP)
    assert len(says("count.scenario.yaml", "--seeds", "2")) == 4


def test_a_run_that_breaks_makes_no_golden_trace(says: Says, folder: Path) -> None:
    """It is not what anybody would want the next to be."""
    says("scenarios/mistakes/step.yaml", "--rewrite", status=cli.NOT_HELD)
    assert not list((folder / "scenarios").rglob("*.jsonl"))


def test_what_a_plugin_says_cannot_command_the_terminal(says: Says, folder: Path) -> None:
    """Nor end a line, nor be what cannot be printed at all."""
    (folder / "noise.py").write_text(
        "from simctl.plugin import SwitchPlugin\n"
        "class Noise(SwitchPlugin):\n"
        "    plugin_type = 'switch/noise'\n"
        "    plugin_name = 'noise'\n"
        "    def switch_p_job_fini(self, switch_job):\n"
        "        raise ValueError('\\x1b[31m \\x00 \\udc80 \\r')\n"
    )
    conf = 'plugins: ["./noise.py:Noise"]\nslurm_conf: {SwitchType: switch/noise}\n'
    (folder / "noise.scenario.yaml").write_text(conf + STEP)
    (line, _) = says("noise.scenario.yaml", "--junit", "r.xml")
    assert line.isprintable()
    assert "ValueError: \\x1b[31m \\x00 \\udc80 \\r" in line
    (folder / "noise.scenario.yaml").write_text(conf + BROKEN)
    lines = says("noise.scenario.yaml", "--junit", "r.xml", status=cli.NOT_HELD)
    assert all(line.isprintable() for line in lines)
    ET.parse(folder / "r.xml")


def test_the_junit_report_counts_what_it_holds(says: Says, folder: Path) -> None:
    """Whatever stands in texts: characters that XML cannot hold are escaped."""
    noisy = STEP.replace("sleep 10", "./noisy").replace("state: COMPLETED", "state: FAILED")
    noisy += 'programs: {./noisy: {runs: 1s, output: "<&\\x01\\e[31m\\uffff]]>\\n"}}\n'
    (folder / "scenarios" / "noisy.yaml").write_text(noisy)
    (folder / "scenarios" / "wrong.yaml").write_text(WRONG)
    says("scenarios", "--junit", "new/report.xml", status=cli.WRONG_INPUT)
    root = ET.parse(folder / "new" / "report.xml").getroot()
    assert root.tag == "testsuites"
    (suite,) = root
    cases = {case.get("name"): case for case in suite}
    assert list(cases) == ["noisy", "step", "wrong"]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
    }
    assert [each.tag for each in cases["step"]] == ["system-out"]
    (failure, out) = cases["noisy"]
    assert (failure.tag, failure.get("message")) == ("failure", "BROKEN job 1 state=FAILED")
    assert "to repeat: simctl run scenarios/noisy.yaml" in (failure.text or "")
    assert "<&\\x01\\x1b[31m\\uffff]]>" in (out.text or "")
    (error,) = cases["wrong"]
    assert error.tag == "error"
    assert (error.text or "").count("scenarios/wrong.yaml:") == 4
    assert all(float(each.get("time") or "x") >= 0 for each in (suite, *suite))


def test_a_report_that_cannot_be_written_is_told(says: Says, folder: Path) -> None:
    """After the results, which are not lost."""
    (folder / "file").write_text("")
    lines = says("scenarios", "--junit", "file/report.xml", status=cli.WRONG_INPUT)
    assert lines[0] == "held    scenarios/step.yaml"
    assert says.err.startswith("simctl: --junit: cannot write file/report.xml: ")


SPIN = STEP.replace("sleep 10", "./spin") + (
    "plugins: ['./spin.py:Spin']\nslurm_conf: {SwitchType: switch/spin}\n"
    "programs: {./spin: {runs: 1s}}\n"
)
SPINNING = (
    "import signal, sys\nfrom simctl.plugin import SwitchPlugin\n"
    "class Spin(SwitchPlugin):\n"
    "    plugin_type = 'switch/spin'\n    plugin_name = 'spin'\n"
    "    def switch_p_job_init(self, switch_job, uid):\n"
    "        print('spinning', file=sys.stderr, flush=True)\n"
)


def test_ctrl_c_ends_with_what_was_reached(says: Says, folder: Path) -> None:
    """130; the report has the runs that came to their end."""
    (folder / "scenarios" / "zz.yaml").write_text(SPIN)
    # A plugin may send no signal; this is what Python does when one comes from outside.
    plugin = (
        "import _thread\n"
        + SPINNING
        + "        _thread.interrupt_main()\n        while True: pass\n"
    )
    (folder / "scenarios" / "spin.py").write_text(plugin)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        lines = says("scenarios", "--junit", "r.xml", status=cli.INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, before)
    assert lines[0] == "held    scenarios/step.yaml"
    assert lines[2:] == ["interrupted: 1 of 2 runs not finished"]
    assert [case.get("name") for case in ET.parse(folder / "r.xml").iter("testcase")] == ["step"]


def test_ctrl_c_ends_workers_whatever_they_are_at(folder: Path) -> None:
    """They say nothing of it themselves."""
    (folder / "scenarios" / "zz.yaml").write_text(SPIN)
    (folder / "scenarios" / "spin.py").write_text(SPINNING + "        while True: pass\n")
    process = subprocess.Popen(
        [*SIMCTL, "test", "scenarios", "--workers", "2"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "held    scenarios/step.yaml\n"
    assert process.stderr.readline() == "spinning\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == cli.INTERRUPTED, out + err
    assert err == ""
    assert out.splitlines()[-1] == "interrupted: 1 of 2 runs not finished"


def test_workers_say_the_same_in_the_same_order(says: Says, folder: Path) -> None:
    """Whichever is faster, and also where one is ended by the plugin it runs."""
    (folder / "scenarios" / "bad.yaml").write_text(BROKEN)
    alone = says("scenarios", status=cli.NOT_HELD)
    shared = says("scenarios", "--workers", "2", status=cli.NOT_HELD)
    assert alone[:-1] == shared[:-1]
    assert without_time(shared[-1]) == "2 runs: 1 held, 1 broken, in N s"
    (folder / "scenarios" / "leaves.py").write_text(
        "import ctypes\nfrom simctl.plugin import SwitchPlugin\n"
        "class Leaves(SwitchPlugin):\n"
        "    plugin_type = 'switch/leaves'\n    plugin_name = 'leaves'\n"
        "    def switch_p_job_init(self, switch_job, uid):\n        ctypes.string_at(0)\n"
    )
    conf = 'plugins: ["./leaves.py:Leaves"]\nslurm_conf: {SwitchType: switch/leaves}\n'
    (folder / "scenarios" / "bad.yaml").write_text(conf + STEP)
    says("scenarios/bad.yaml", "--workers", "2", status=cli.WRONG_INPUT)
    told = says.err.splitlines()
    assert told[0].startswith("simctl: a worker process of `test` was ended (signal 11)")
    assert told[-1] == "simctl: test: a worker process was ended by what it ran, see above"


def test_needs_no_pytest(folder: Path) -> None:
    """Nothing of it is imported, so that it need not be there."""
    code = (
        "import sys; sys.modules['pytest'] = None; from simctl import cli;"
        "sys.exit(cli.main(['test', 'scenarios', '--junit', 'r.xml', '--rewrite']))"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False)
    assert done.returncode == cli.OK, done.stderr
