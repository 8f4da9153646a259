"""`simctl plugins check --json`: what a plugin prints, and exit statuses."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import simctl.testing
from simctl.cli import main
from simctl.status import NOT_HELD, OK, WRONG_INPUT
from simctl.testing.plugin_check import check
from simctl.testing.plugin_check.observe import Observer

PRINTS = """
from simctl.plugin import SwitchPlugin
print("imported")
class Loud(SwitchPlugin):
    plugin_type = "switch/loud"
    plugin_name = "prints"
    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        print("built", nodelist)
        breakpoint()
"""


def test_what_a_plugin_prints_goes_to_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The object of --json is all that stands in stdout, and a check stops at no breakpoint."""
    (tmp_path / "loud.py").write_text(PRINTS)
    monkeypatch.chdir(tmp_path)
    assert main(["plugins", "check", "--json", "--model", "guide", "loud.py"]) == OK
    printed = capsys.readouterr()
    (result,) = json.loads(printed.out)
    assert result["plugin"] == "switch/loud"
    assert "imported" in printed.err
    assert "built n" in printed.err


def test_what_a_plugin_prints_in_a_run_is_not_in_its_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The summary of `run --json` can be read whatever is printed in a call."""
    (tmp_path / "loud.py").write_text(PRINTS.replace("breakpoint()", "pass"))
    (tmp_path / "one.yaml").write_text(
        "nodes: [{name: n1}]\npartitions: [{name: debug, nodes: n1, default: true}]\n"
        "users: {alice: 1001}\nslurm_conf: {SwitchType: switch/loud}\n"
        "plugins: [loud.py]\ntimeline:\n  - {at: 0s, as: alice, run: srun sleep 1}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--json", "one.yaml"]) == OK
    printed = capsys.readouterr()
    assert json.loads(printed.out)
    assert "built n" in printed.err
    assert "imported" in printed.err


PICKY = """
from simctl.plugin import SwitchPlugin, hostlist
class Picky(SwitchPlugin):
    plugin_type = "switch/picky"
    plugin_name = "knows no node called gpu"
    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        {"n": 0, "c": 1}[nodelist[0]]
"""
OWN = """\
nodes: [{{name: "{node}[1-2]", cpus: 4}}]
partitions: [{{name: debug, nodes: "{node}[1-2]", default: true}}]
users: {{alice: 1001}}
slurm_conf: {{SwitchType: switch/{switch}}}
plugins: ["./picky.py:Picky"]
timeline: [{{at: 0s, as: alice, run: "srun -N2 sleep 1"}}]
expect: [{{never: "{never}"}}]
"""


@pytest.mark.parametrize(
    ("node", "switch", "never", "status", "told"),
    [
        ("c", "picky", "switch_p_job_init node=null", 0, "switch/picky: fine"),
        (
            "c",
            "picky",
            "switch_p_job_init node=c1",
            0,
            "expectations of your own that did not hold (no mistake of the plugin by itself):",
        ),
        ("gpu", "picky", "switch_p_job_init node=null", 1, "KeyError: 'g'"),
        ("c", "none", "init node=c1", 2, "its SwitchType is switch/none, not switch/picky"),
        ("c", "picky", "switch_p_job_int", 2, "did you mean switch_p_job_init?"),
    ],
    ids=["fine", "broken", "mistake", "another", "unreadable"],
)
def test_scenarios_of_ones_own_are_run_and_told_apart(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    node: str,
    switch: str,
    never: str,
    status: int,
    told: str,
) -> None:
    """What breaks there is a mistake of the plugin's by the rules alone, whatever was expected."""
    (tmp_path / "picky.py").write_text(PICKY)
    (tmp_path / "own.yaml").write_text(OWN.format(node=node, switch=switch, never=never))
    monkeypatch.chdir(tmp_path)
    words = ["plugins", "check", "picky.py", "--model", "guide", "--scenario", "own.yaml"]
    assert main(words) == status
    printed = capsys.readouterr()
    assert told in printed.out + printed.err
    if status < 2:
        assert main([*words, "--json"]) == status
        (result,) = json.loads(capsys.readouterr().out)
        broken = [f"own.yaml (model guide): never {never}"] if "expectations" in told else []
        assert result["own_scenarios_broken"] == broken
        assert [each["rule"] for each in result["mistakes"]] == ["call-breaks"] * status
        assert set(result["mistakes"][0] if status else ()) >= (
            {"rule", "function", "where", "cost", "remedy"} if status else set()
        )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("x = 1", "there is no plugin class in it"),
        ("class P:\n  plugin_type = 'switch/x'\n  plugin_name = 'x'", "is missing; the guide"),
        ("class P:\n  plugin_type = 'gres/x'\n  plugin_name = 'x'", "gres"),
    ],
)
def test_what_cannot_be_loaded_ends_with_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    told: str,
) -> None:
    """Nothing was driven, and nothing is said of how it does."""
    (tmp_path / "bad.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["plugins", "check", "bad.py", "--json"]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert told in printed.err


def test_no_rule_is_declared_and_never_broken() -> None:
    """The check blames by each rule, and a test names it, or the constant that it is."""
    checks = Path(simctl.testing.__file__).parent
    source = "".join(path.read_text() for path in sorted(checks.rglob("*.py")))
    declared = re.findall(r'^(\w+): Final = rule\(\s*"([a-z0-9-]+)"', source, re.MULTILINE)
    assert len(declared) == source.count(": Final = rule(")
    tests = Path(__file__).parent
    planted = "".join(
        path.read_text() for path in sorted(tests.rglob("*")) if path.suffix in (".py", ".yaml")
    )
    for constant, name in declared:
        assert len(re.findall(rf"\b{constant}\b", source)) > 1, name
        assert name in planted or re.search(rf"\b{constant}\b", planted), name


@pytest.mark.parametrize(
    ("mistakes", "not_driven", "status"),
    [
        *(("", ["", ""], OK), ("", ["why", ""], WRONG_INPUT), ("", ["", "why"], WRONG_INPUT)),
        *(("slip", ["", ""], NOT_HELD), ("slip", ["why", ""], NOT_HELD)),
    ],
)
def test_one_plugin_that_was_not_driven_is_told_by_the_status(
    mistakes: str, not_driven: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless there are mistakes, of whichever."""
    results = iter(
        SimpleNamespace(mistakes=mistakes, not_driven=why, lines=lambda: ()) for why in not_driven
    )
    found = [SimpleNamespace(kind=object, origin="here")] * len(not_driven)
    monkeypatch.setattr(check, "_found", lambda *_: found)
    monkeypatch.setattr(check, "check_plugin", lambda *_, **__: next(results))
    assert main(["plugins", "check", "one", "other"]) == status


@pytest.mark.parametrize("again", [False, True])
def test_what_another_run_has_left_is_no_doing_of_a_thread(again: bool) -> None:
    """Processes of the next run may have the same numbers, and what they keep is their own."""
    observer = Observer(object, ())
    observer._last[5] = {"key": 1}
    if again:
        observer.new_run("the next")
    observer._note_threads(cast(Any, SimpleNamespace(pid=5, ppid=1, role="task")), {"key": 2})
    assert bool(observer._writes) is not again
