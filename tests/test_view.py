"""`simctl view` and `run --html`: what they write, and what they refuse."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from simctl import cli
from simctl.kernel.events import Event
from simctl.view.reading import Selection
from tests.viewed import data_of

FINI = '"name":"switch_p_job_fini"'


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the trace of the first shipped scenario."""
    path = tmp_path_factory.mktemp("traces") / "two_nodes.jsonl"
    assert cli.main(["run", "two_nodes", "--quiet", "--trace", str(path)]) == cli.OK
    return path


def unpacked(packed: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a page, as its script reads them."""
    events, seq = [], 0
    for step, time_us, who, what, args, cause, *more in packed["rows"]:
        seq += step
        event = {"seq": seq, "time_us": time_us, **packed["what"][what]}
        event |= packed["who"][who] if who >= 0 else {}
        event |= {"args": packed["args"][args]} if args >= 0 else {}
        event |= {"cause": seq - cause} if cause else {}
        events.append(event | (more[0] if more else {}))
    return events


def test_a_page_holds_every_event_whole(trace: Path, tmp_path: Path) -> None:
    """Nothing is lost in packing: the events of the page are those of the trace."""
    page = tmp_path / "p.html"
    assert cli.main(["view", str(trace), "-o", str(page)]) == cli.OK
    lines = [json.loads(line) for line in trace.read_text().splitlines()[1:-1]]
    assert unpacked(data_of(page)["events"]) == lines


def test_a_page_asks_the_network_for_nothing(trace: Path, tmp_path: Path) -> None:
    """Its policy forbids it, and nothing in it names an address."""
    page = tmp_path / "p.html"
    assert cli.main(["view", str(trace), "-o", str(page)]) == cli.OK
    text = page.read_text(encoding="utf-8")
    assert "default-src &#x27;none&#x27;" in text
    assert not re.search(r"https?://(?!www\.w3\.org)|<link|<img|@import|url\((?!#)", text)


def test_equal_runs_give_equal_pages(tmp_path: Path) -> None:
    """A page tells nothing of the wall clock or the machine."""
    for name in ("a.html", "b.html"):
        assert cli.main(["run", "two_nodes", "--quiet", "--html", str(tmp_path / name)]) == cli.OK
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_view_of_a_scenario_whose_expectations_break_writes_the_page_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page has what broke, with the events that show it; the trace's end tells it as well."""
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        "nodes: [{name: n1}]\npartitions: [{name: debug, nodes: n1, default: true}]\n"
        'users: {alice: 1001}\nfiles: {a.sh: "#!/bin/sh\\nsrun true"}\n'
        "timeline: [{at: 0s, as: alice, run: sbatch a.sh}]\n"
        "expect:\n- order: [switch_p_job_fini, switch_p_job_init]\n- {never: exit}\n"
        "- {job: 1, state: FAILED}\n- {job: 1, state: COMPLETED}\n"
    )
    page, trace = tmp_path / "s.html", tmp_path / "s.jsonl"
    assert cli.main(["view", str(scenario), "-o", str(page)]) == cli.NOT_HELD
    out = capsys.readouterr()
    assert "wrote" in out.out
    assert "BROKEN order" in out.err
    data = data_of(page)
    names = {event["seq"]: event["name"] for event in unpacked(data["events"])}
    shown = [[names[seq] for seq in each["seqs"]] for each in data["page"]["broken"]]
    assert shown == [["switch_p_job_init", "switch_p_job_fini"], ["exit"], ["job_state"]]
    words = ["run", str(scenario), "--quiet", "--trace", str(trace)]
    assert cli.main(words) == cli.NOT_HELD
    assert cli.main(["view", str(trace), "-o", str(page)]) == cli.OK
    assert data_of(page)["page"]["broken"] == [
        {**each, "says": each.get("says", "")} for each in data["page"]["broken"]
    ]


def test_a_suspended_job_has_run_since_its_first_start(tmp_path: Path) -> None:
    """Its resumption is no start."""
    page, path = tmp_path / "p.html", tmp_path / "t.jsonl"
    assert cli.main(["run", "suspend_resume", "--quiet", "--trace", str(path)]) == cli.OK
    assert cli.main(["view", str(path), "-o", str(page)]) == cli.OK
    first = data_of(page)["page"]["jobs"][0]
    assert first["id"] == 1
    assert first["when"].startswith("0:00:00.")


def test_a_trace_is_held_against_the_orderings_anew(tmp_path: Path) -> None:
    """By the terms of its run: what was taken out is marked, and nothing where nothing is."""
    page, path = tmp_path / "p.html", tmp_path / "t.jsonl"
    for name in ("suspend_resume", "life_of_a_job"):
        words = ["run", name, "--quiet", "--trace", str(path)]
        assert cli.main(words) == cli.OK
        assert cli.main(["view", str(path), "-o", str(page)]) == cli.OK
        told = data_of(page)["page"]
        assert told["broken"] == []
        assert "rules held" in told["verdict"]
    lines = path.read_text().splitlines(keepends=True)
    header = json.loads(lines[0])
    assert header.pop("terms")["conf"]
    for first in (lines[0], json.dumps(header) + "\n"):
        path.write_text("".join([first, *(each for each in lines[1:] if FINI not in each)]))
        assert cli.main(["view", str(path), "-o", str(page)]) == cli.OK
        broken = data_of(page)["page"]["broken"]
        assert broken[0]["title"].startswith("8 fini-iff-session-done")
        assert ("under the defaults" in broken[0]["says"]) == (first != lines[0])
    path.write_text("".join(lines[: len(lines) // 2]))
    assert cli.main(["view", str(path), "-o", str(page)]) == cli.OK
    assert data_of(page)["page"]["broken"] == []


def test_a_part_of_a_run_has_what_led_to_it(trace: Path, tmp_path: Path) -> None:
    """`--job` and `--from` leave the rest out, but not the chain back to the command."""
    page = tmp_path / "p.html"
    words = ["view", str(trace), "-o", str(page)]
    assert cli.main([*words, "--from", "32s", "--to", "33s"]) == cli.OK
    events = {event["seq"]: event for event in unpacked(data_of(page)["events"])}
    assert len(events) < 200
    late = [event for event in events.values() if event["time_us"] >= 32_000_000]
    assert late
    assert all(event.get("cause", event["seq"]) in events for event in late)
    assert cli.main([*words, "--job", "1"]) == cli.OK
    events = {event["seq"]: event for event in unpacked(data_of(page)["events"])}
    assert any(event["name"] == "sbatch" for event in events.values())
    assert not any(event["name"] == "switch_p_node_fini" for event in events.values())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--job", "7"], "nothing of it is job 7; it goes from 0s to"),
        (["--from", "9h"], "nothing of it is from 9:00:00"),
        (["--from", "5s", "--to", "4s"], "--to 4s comes before --from 5s"),
        (["--to", "soon"], "--to: "),
        (["--job", "x"], "--job: expected a whole number"),
        (["-o", "no/such/folder/p.html"], "cannot write no/such/folder/p.html"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    words: list[str], why: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what was asked, and what there is."""
    given = ["view", str(trace), "-o", str(tmp_path / "p.html"), *words]
    assert cli.main(given) == cli.WRONG_INPUT
    assert why in capsys.readouterr().err
    assert not (tmp_path / "p.html").exists()


def test_other_files_are_not_traces_and_are_left_alone(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A foreign file is refused as a trace, and as an output."""
    foreign = tmp_path / "foreign.json"
    foreign.write_text('{"a": 1}\n')
    assert cli.main(["view", str(foreign)]) == cli.WRONG_INPUT
    assert "not a trace" in capsys.readouterr().err
    for words in (["view", str(trace), "-o"], ["run", "two_nodes", "--html"]):
        assert cli.main([*words, str(foreign)]) == cli.WRONG_INPUT
        assert "it is left alone" in capsys.readouterr().err
    assert foreign.read_text() == '{"a": 1}\n'
    assert cli.main(["view", str(trace), "-o", str(foreign), "--force"]) == cli.OK
    future = tmp_path / "future.jsonl"
    future.write_text('{"simctl_trace":99,"version":"9"}\n')
    assert cli.main(["view", str(future)]) == cli.WRONG_INPUT
    assert "a trace of format 99" in capsys.readouterr().err


def test_a_trace_that_breaks_off_is_shown_as_far_as_it_goes(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page and standard error say that it is not whole."""
    text = trace.read_bytes()
    page = tmp_path / "p.html"
    for name, data in (
        ("cut.jsonl", text[: len(text) // 2]),
        ("cut.jsonl.gz", gzip.compress(text)[:2000]),
        ("packed.jsonl.gz", gzip.compress(text)),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        assert cli.main(["view", str(path), "-o", str(page)]) == cli.OK
        whole = name.startswith("packed")
        assert (not capsys.readouterr().err) is whole
        notes = data_of(page)["page"]["notes"]
        assert any("not whole" in note for note in notes) is not whole


def test_more_events_than_a_page_holds_ask_for_a_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the bound a page is written; one more is refused, with what would do."""
    monkeypatch.setattr("simctl.view.reading.PICTURE_EVENTS", 10)
    path = tmp_path / "t.jsonl"
    for count, status in ((10, cli.OK), (11, cli.WRONG_INPUT)):
        one = {"time_us": 1, "kind": "log", "name": "x"}
        lines: list[dict[str, Any]] = [{"simctl_trace": 1, "version": "0.2.0", "users": {}}]
        lines += [{"seq": seq, "job": seq, **one} for seq in range(1, count + 1)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert cli.main(["view", str(path), "-o", str(tmp_path / "p.html")]) == status
    err = capsys.readouterr().err
    assert "11 events are more than a page holds (10)" in err
    assert "--job N (there are 1, 2, 3" in err


@pytest.mark.parametrize(
    ("selection", "wanted"),
    [
        (Selection(), [1, 2, 3, 4]),
        (Selection(job=7), [1, 2]),
        (Selection(job=8), [2]),
        (Selection(job=9), []),
        (Selection(from_us=20), [2, 3, 4]),
        (Selection(to_us=20), [1, 2]),
        (Selection(from_us=21, to_us=30), [3]),
        (Selection(job=7, from_us=11), [2]),
    ],
)
def test_events_are_chosen_by_job_and_moment(selection: Selection, wanted: list[int]) -> None:
    """Tasks of an array by its number too; of what is about no job only by when it was."""
    events = [
        Event(seq=1, time_us=10, kind="state", name="job_state", job=7),
        Event(seq=2, time_us=20, kind="state", name="job_state", job=8, array_job=7),
        Event(seq=3, time_us=30, kind="state", name="node_state"),
        Event(seq=4, time_us=40, kind="state", name="node_state"),
    ]
    assert [event.seq for event in events if selection.has(event)] == wanted
