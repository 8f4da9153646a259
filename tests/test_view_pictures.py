"""What `simctl view` writes for other tools: Perfetto, Mermaid, a still picture."""

import json
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from simctl import cli
from simctl.kernel.recording import read_recording
from simctl.view.readme import picture
from tests.formats_of_pictures import wrong_in_mermaid, wrong_in_perfetto


@pytest.fixture(scope="module", params=["two_nodes", "burst_buffer_datawarp", "lossy_link"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the trace of a shipped scenario."""
    path = tmp_path_factory.mktemp("traces") / "t.jsonl"
    assert cli.main(["run", request.param, "--quiet", "--trace", str(path)]) == cli.OK
    return path


def test_the_picture_in_readme_is_that_of_a_run(repository_root: Path) -> None:
    """`make docs` renews it; it shows the five functions of a job in their processes."""
    assert (repository_root / "docs" / "step.svg").read_bytes() == picture()
    text = picture().decode()
    for name in ("preinit", "init", "attach", "fini", "postfini", "is alice"):
        assert name in text
    assert "docs/step.svg" in (repository_root / "README.md").read_text(encoding="utf-8")


def test_perfetto_gets_every_event_once_nested_and_with_its_time(
    trace: Path, tmp_path: Path
) -> None:
    """Spans of one track lie in each other or beside each other; arrows have both ends."""
    path = tmp_path / "p.json"
    assert cli.main(["view", "--perfetto", str(path), str(trace)]) == cli.OK
    records = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    events = read_recording(trace).happened
    spans = [each for each in records if each["ph"] == "X"]
    inner = sum(1 for event in events if event.phase == "exit")
    assert len(events) - inner <= len(spans) <= len(events)
    assert {each["args"]["seq"] for each in spans} <= {event.seq for event in events}
    assert all("time_us" in each["args"] for each in spans)
    assert all(each["pid"] >= 1 and each["tid"] >= 1 for each in spans)
    tracks: dict[int, list[Any]] = defaultdict(list)
    for each in sorted(spans, key=lambda one: (one["ts"], -one["dur"])):
        stack = tracks[each["tid"]]
        while stack and stack[-1] <= each["ts"]:
            stack.pop()
        assert not stack or stack[-1] >= each["ts"] + each["dur"]
        stack.append(each["ts"] + each["dur"])
    begun = {each["id"] for each in records if each["ph"] == "s"}
    assert {each["id"] for each in records if each["ph"] == "f"} <= begun
    named = {each["args"]["name"] for each in records if each["name"] == "process_name"}
    assert {"controller", "login"} <= named


def test_perfetto_is_what_its_format_asks(trace: Path, tmp_path: Path) -> None:
    """Every key and type; each damage is noticed."""
    path = tmp_path / "p.json"
    assert cli.main(["view", "--perfetto", str(path), str(trace)]) == cli.OK
    told = json.loads(path.read_text(encoding="utf-8"))
    assert list(wrong_in_perfetto(told)) == []
    kinds = {each["ph"]: number for number, each in enumerate(told["traceEvents"])}
    assert set(kinds) == {"X", "M", "s", "f"}
    for ph, key, value in (
        *(("X", "dur", 0), ("X", "ts", "1"), ("X", "cat", None), ("M", "args", {"name": 7})),
        *(("f", "id", -1), ("f", "bp", "s"), ("s", "ts", 1), ("X", "phase", "x"), ("X", "tid", 0)),
    ):
        events = [*told["traceEvents"]]
        events[kinds[ph]] = {**events[kinds[ph]], key: value}
        assert list(wrong_in_perfetto({"traceEvents": events})), (ph, key)


def test_mermaid_has_the_messages_of_a_job_in_order(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every line is one of the language's, between participants that are declared."""
    assert cli.main(["view", "--mermaid", str(trace), "--job", "1"]) == cli.OK
    out = capsys.readouterr().out
    assert list(wrong_in_mermaid(out)) == []
    told = [line.rpartition(" ")[2] for line in out.splitlines() if "->>" in line]
    batch = told.index("REQUEST_SUBMIT_BATCH_JOB")
    assert batch < told.index("REQUEST_BATCH_JOB_LAUNCH") < len(told)
    for before, after in (("->>", "->"), ("participant p1 ", "participant p999 "), (": ", ": ;")):
        assert list(wrong_in_mermaid(out.replace(before, after, 1)))


def test_names_mean_nothing_to_other_tools(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What stands for something in a diagram or a page of another tool is text there."""
    evil = 'a;b#c\x01\nend\n%% "x" <script>alert(1)</script> participant p9 as z: \u2028 \u00e9'
    common = {
        "time_us": 0,
        "daemon": evil,
        "node": evil,
        "role": evil,
        "pid": 7,
        "uid": 5,
        "job": 1,
    }
    events: list[dict[str, Any]] = [
        {"kind": "command", "name": evil, "phase": "enter", "args": {"line": evil}},
        {"kind": "message", "name": evil, "phase": "send", "peer": evil},
        {"kind": "message", "name": evil, "phase": "receive", "peer": evil, "cause": 2, "pid": 8},
        {"kind": "plugin", "name": evil, "plugin": evil, "errno": evil, "rc": -1, "euid": 5},
        {"kind": "state", "name": "job_state", "args": {"from": None, "to": evil}},
    ]
    lines = [{"seq": number, **common, **each} for number, each in enumerate(events, start=1)]
    header = {"simctl_trace": 1, "version": "0.2.0", "model": "guide", "users": {evil: 5}}
    trace, path = tmp_path / "t.jsonl", tmp_path / "p"
    trace.write_text("".join(json.dumps(each) + "\n" for each in (header, *lines)))
    assert cli.main(["view", "--mermaid", str(trace), "--job", "1"]) == cli.OK
    out = capsys.readouterr().out
    assert list(wrong_in_mermaid(out)) == []
    assert "#59;" in out
    assert cli.main(["view", "--perfetto", str(path), str(trace)]) == cli.OK
    assert list(wrong_in_perfetto(json.loads(path.read_text()))) == []
    assert cli.main(["view", "--svg", str(tmp_path / "p.svg"), str(trace)]) == cli.OK
    assert not list(ET.parse(tmp_path / "p.svg").getroot().iter("script"))


def test_a_diagram_is_of_one_job(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without `--job` it would be of everything, which nobody can read."""
    assert cli.main(["view", "--mermaid", str(trace)]) == cli.WRONG_INPUT
    assert "--mermaid goes with --job N" in capsys.readouterr().err


def test_a_still_picture_is_well_formed_and_takes_what_a_pattern_leaves(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beyond what can be read it is refused, and what is not drawn is none."""
    path = tmp_path / "p.svg"
    words = ["view", "--svg", str(path), str(trace), "--job", "1"]
    assert cli.main([*words, "--only", "kind=plugin role=session"]) == cli.OK
    root = ET.fromstring(path.read_text(encoding="utf-8"))
    titles = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}title")][1:]
    assert titles
    assert not any("alloc" in each for each in titles)
    assert cli.main([*words, "--only", "kind=nothing"]) == cli.WRONG_INPUT
    assert "--only: kind is one of" in capsys.readouterr().err
    assert cli.main([*words, "--only", "switch_p_alloc_jobinfo"]) == cli.WRONG_INPUT
    assert "none of these events is drawn" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--svg", "a", "--perfetto", "b"], "one at a time"),
        (["--perfetto", "a", "-o", "b"], "-o is for a page"),
        (["--only", "x"], "--only goes with --svg"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    words: list[str], why: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is written."""
    assert cli.main(["view", str(trace), *words]) == cli.WRONG_INPUT
    assert why in capsys.readouterr().err
    assert not Path("a").exists()
