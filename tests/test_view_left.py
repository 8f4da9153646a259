"""Pages that nobody asked for by name: of tests that fail, and of what searches find."""

import json
import shutil
from pathlib import Path

import pytest

from simctl import cli
from simctl.testing import run_scenario
from simctl.testing.pages import page_file
from simctl.view.apart import apart_of
from tests.viewed import data_of

SCENARIO = """\
nodes: [{name: n1}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
files: {a.sh: "#!/bin/sh\\nsrun true"}
timeline: [{at: 0s, as: alice, run: sbatch a.sh}]
expect: [{job: 1, state: WANTED}]
"""

pytest_plugins = ["pytester"]


def test_a_scenario_that_fails_leaves_its_page_and_one_that_holds_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is printed with what broke, and each variant has a page of its own."""
    monkeypatch.chdir(tmp_path)
    for name, wanted in (("good", "COMPLETED"), ("bad", "FAILED")):
        Path(f"{name}.scenario.yaml").write_text(SCENARIO.replace("WANTED", wanted))
    words = ["test", ".", "--html", "pages/of/runs", "--model", "guide,modern"]
    assert cli.main(words) == cli.NOT_HELD
    out = capsys.readouterr().out
    pages = sorted(str(each) for each in Path("pages").rglob("*.html"))
    assert pages == [f"pages/of/runs/bad.scenario-{model}.html" for model in ("guide", "modern")]
    assert all(f"    page: {each}" in out for each in pages)
    data = data_of(Path(pages[1]))
    assert data["page"]["header"]["model"] == "modern"
    assert [each["what"] for each in data["page"]["broken"]] == ["expectation"]
    shutil.rmtree("pages")
    assert cli.main(["test", "good.scenario.yaml", "--html", "pages"]) == cli.OK
    assert list(Path("pages").iterdir()) == []
    Path("file").write_text("x")
    assert cli.main(["test", ".", "--html", "file"]) == cli.WRONG_INPUT
    assert "--html: cannot make the folder file" in capsys.readouterr().err


def test_pytest_leaves_pages_of_scenarios_and_of_runs_in_tests_that_fail(
    pytester: pytest.Pytester,
) -> None:
    """With `--simctl-html DIR`; a test that passes leaves none."""
    bad = SCENARIO.replace("WANTED", "FAILED")
    pytester.makefile(".scenario.yaml", bad=bad)
    pytester.makepyfile(
        f"TEXT = {bad!r}\n"
        "def test_bad(simctl_run):\n    assert simctl_run(TEXT).jobs == []\n"
        "def test_good(simctl_run):\n    assert simctl_run(TEXT).jobs\n"
    )
    ran = pytester.runpytest_inprocess("--simctl-html", "pages", "-p", "no:trio", "--no-header")
    ran.assert_outcomes(failed=2, passed=1)
    found = sorted(each.name for each in Path("pages").iterdir())
    assert found == [
        "bad.scenario.html",
        "test_pytest_leaves_pages_of_scenarios_and_of_runs_in_tests_that_fail.py-test_bad.html",
    ]
    ran.stdout.fnmatch_lines(["page: pages/bad.scenario.html", "page: pages/test_*test_bad.html"])


def test_pages_of_different_runs_have_different_names() -> None:
    """Whatever stands in a name, its file lies in the folder."""
    names = ["a/s.yaml", "b/s.yaml", "a/s.yaml-modern", "../../x.yaml", "t.py::test[a/b]"]
    files = [page_file("dir", name) for name in names]
    assert len(set(files)) == len(names)
    assert all(each.parent == Path("dir") for each in files)


def test_what_explore_finds_has_a_page_with_both_orders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the run that breaks stand the same events as first come, first served has them."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["explore", "window_race", "--workers", "1", "--json"]) == cli.NOT_HELD
    found = json.loads(capsys.readouterr().out)["found"]
    assert found["page"] == "window_race.found.html"
    page = data_of(Path(found["page"]))["page"]
    assert [each["what"] for each in page["broken"]] == ["expectation"]
    apart = page["apart"]
    assert apart["sentences"] == found["sentences"]
    here = [line["text"].partition(" ")[2] for line in apart["here"]]
    there = [line["text"].partition(" ")[2] for line in apart["there"]]
    assert any(line["only"] for line in apart["here"])
    assert set(there) <= set(here)
    assert here != there


def test_two_equal_runs_do_not_differ_and_a_swap_is_told() -> None:
    """The events that moved are marked in both; nothing is told where nothing differs."""
    text = SCENARIO.replace("WANTED", "COMPLETED")
    events = list(run_scenario(text).events)
    assert apart_of(events, events, [], "other") is None
    calls = [i for i, event in enumerate(events) if event.name == "switch_p_job_attach"]
    place = calls[0]
    swapped = [*events]
    swapped.insert(place - 6, swapped.pop(place))
    told = apart_of(events, swapped, [events[place].seq], "other")
    assert told is not None
    marked = [line["text"] for line in told["here"] if line["only"]]
    assert len(marked) == 1
    assert "switch_p_job_attach" in marked[0]
    place_here = [line["text"] for line in told["here"]].index(marked[0])
    place_there = [line["text"] for line in told["there"]].index(marked[0])
    assert place_there < place_here
