"""Files that people ask for: nothing is written over, and none is there by halves."""

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simctl import cli
from simctl.outputs import TRACE, Output

RECORDED = Path(__file__).parent / "conformance/s03_srun_2x2"

SCENARIO = """\
nodes: [{name: n1, cpus: 2}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
timeline:
- {at: 0s, as: alice, run: sbatch --wrap "sleep 1"}
expect:
- {job: 1, state: COMPLETED}
"""
BROKEN = SCENARIO.replace("state: COMPLETED", "state: FAILED")


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Return a scenario of one job."""
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO)
    return path


def words_for(option: str, scenario: Path, target: str) -> list[str]:
    """Return a command line that writes such an output to *target*."""
    if option == "--junit":
        return ["test", str(scenario), "--golden", "off", "--junit", target]
    if option == "explore":
        return ["explore", str(scenario), "--seeds", "1", "--workers", "1", "-o", target]
    if option == "swarm":
        return ["swarm", "--runs", "1", "--workers", "1", "-o", target]
    return ["run", str(scenario), "--quiet", option, target]


@pytest.mark.parametrize("option", ["--trace", "--db", "--junit", "explore", "swarm"])
@pytest.mark.parametrize("taken", ["the scenario", "notes", "packed notes"])
def test_a_file_that_is_no_such_output_is_left_alone(
    option: str, taken: str, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The scenario itself too; the command says so before anything runs."""
    target = scenario
    if taken != "the scenario":
        target = scenario.parent / "notes.gz"
        target.write_bytes(gzip.compress(b"mine") if taken == "packed notes" else b"mine")
    before = target.read_bytes()
    assert cli.main(words_for(option, scenario, str(target))) == cli.WRONG_INPUT
    assert "it is left alone" in capsys.readouterr().err
    assert target.read_bytes() == before
    assert not list(scenario.parent.glob("*.part"))


@pytest.mark.parametrize(
    ("option", "name"),
    [("--trace", "t.jsonl"), ("--trace", "t.gz"), ("--db", "r.db"), ("--junit", "r.xml")],
)
def test_an_earlier_output_and_an_empty_file_are_replaced(
    option: str, name: str, scenario: Path
) -> None:
    """As `mktemp` makes one; through a link it is the file that the link leads to."""
    target = scenario.parent / name
    target.touch()
    target.chmod(0o640)
    for _ in range(2):
        assert cli.main(words_for(option, scenario, str(target))) == cli.OK
        assert target.stat().st_size
        assert target.stat().st_mode & 0o777 == 0o640
    link = scenario.parent / f"link-{name}"
    link.symlink_to(target)
    assert cli.main(words_for(option, scenario, str(link))) == cli.OK
    assert link.is_symlink()
    assert sorted(each.suffix for each in scenario.parent.iterdir() if each.suffix == ".part") == []


@pytest.mark.parametrize("option", ["--trace", "--db", "--junit"])
def test_force_writes_over_what_is_there(option: str, scenario: Path) -> None:
    """Who says so means it."""
    target = scenario.parent / "notes"
    target.write_text("mine")
    assert cli.main([*words_for(option, scenario, str(target)), "--force"]) == cli.OK
    assert not target.read_bytes().startswith(b"mine")


def test_a_link_that_leads_to_itself_stays(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is nobody's file, and nothing takes its place."""
    link = scenario.parent / "link"
    link.symlink_to(link)
    for option in ("--trace", "--db", "--junit"):
        assert cli.main(words_for(option, scenario, str(link))) == cli.WRONG_INPUT
        assert "symbolic links" in capsys.readouterr().err
        assert link.is_symlink()


def test_a_word_that_is_no_utf_8_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a file's name may be: traces, pages and finds that tell it are UTF-8."""
    for words in (["check", "\udcff.yaml"], ["trace", "show", "t", "\udcff"]):
        assert cli.main(words) == cli.WRONG_INPUT
        assert "\\udcff" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_one_file_is_not_trace_and_database(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The later would take the earlier one's place."""
    target = str(scenario.parent / "both")
    assert cli.main(["run", str(scenario), "--trace", target, "--db", target]) == cli.WRONG_INPUT
    assert "one file; name two" in capsys.readouterr().err


def test_a_session_is_saved_over_no_other_file(
    scenario: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The scenario that it began with is one; a session that was saved is replaced."""
    script = scenario.parent / "typed.txt"
    script.write_text(f"> save {scenario}\n> save {scenario.parent}/mine.yaml\n" * 2 + "> quit\n")
    cli.main(["repl", str(scenario), "--script", str(script)])
    out = capfd.readouterr().out
    assert out.count("it is left alone") == 2
    assert out.count("written to") == 2
    assert scenario.read_text() == SCENARIO
    script.write_text(f"> save --force {scenario}\n> quit\n")
    cli.main(["repl", str(scenario), "--script", str(script)])
    assert "A session of simctl repl, saved" in scenario.read_text()


def limited(words: list[str], kib: int) -> subprocess.CompletedProcess[str]:
    """Run simctl where no file may grow beyond *kib*, which is as a disk that becomes full."""
    command = f"trap '' XFSZ; ulimit -f {kib}; exec \"$@\""
    return subprocess.run(
        ["bash", "-c", command, "bash", sys.executable, "-m", "simctl", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("option", ["--trace", "--db", "--junit"])
@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_what_was_there(option: str, there: bool, scenario: Path) -> None:
    """The output of an earlier run, or nothing; not an empty file, nor a piece."""
    target = scenario.parent / "out"
    if there:
        assert cli.main(words_for(option, scenario, str(target))) == cli.OK
    before = target.read_bytes() if there else b""
    scenario.write_text(BROKEN)  # so that the report is not of a few bytes
    done = limited(words_for(option, scenario, str(target)), 0)
    assert done.returncode == cli.WRONG_INPUT, done.stderr
    assert f"cannot write {target}" in done.stderr
    assert (target.read_bytes() if target.exists() else b"") == before
    assert [each.name for each in scenario.parent.glob("*.part")] == []


def test_what_is_not_kept_is_taken_away(tmp_path: Path) -> None:
    """Until it is whole it lies beside, under a name that nothing else has."""
    (tmp_path / "t.part").write_text("mine")
    with Output(tmp_path / "t", TRACE) as output:
        output.stream.write(b"piece")
        assert sorted(each.name for each in tmp_path.iterdir()) == ["t.2.part", "t.part"]
    assert [each.name for each in tmp_path.iterdir()] == ["t.part"]
    assert (tmp_path / "t.part").read_text() == "mine"


# The end of a trace.


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a whole trace."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "s.yaml").write_text(SCENARIO)
    path = folder / "whole.jsonl"
    words = ["run", str(folder / "s.yaml"), "--quiet", "--model", "modern", "--trace", str(path)]
    assert cli.main(words) == cli.OK
    return path


def last_of(path: Path) -> dict[str, object]:
    """Return the last event of a trace."""
    found: dict[str, object] = json.loads(path.read_text().splitlines()[-1])
    return found


def test_the_last_event_of_a_trace_is_its_end(whole: Path) -> None:
    """It tells how many came before it; `trace show` shows it as any other."""
    end = last_of(whole)
    lines = whole.read_text().splitlines()
    assert (end["kind"], end["name"], end["seq"]) == ("log", "end", len(lines) - 1)
    assert end["args"] == {"events": len(lines) - 2, "reason": "done"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--until", "500ms"], "until"),
        (["--max-turns", "5"], "failed"),
        (["--trace-kinds", "state"], "done"),
    ],
)
def test_the_end_says_why_the_run_was_over(words: list[str], reason: str, scenario: Path) -> None:
    """Whatever kinds of events are asked for, with the number of those that were written."""
    path = scenario.parent / "t.jsonl"
    cli.main(["run", str(scenario), "--quiet", "--trace", str(path), *words])
    count = len(path.read_text().splitlines()) - 2
    assert last_of(path)["args"] == {"events": count, "reason": reason}


def cut(whole: Path, folder: Path, how: str) -> Path:
    """Return a trace that something happened to."""
    lines = whole.read_bytes().splitlines(keepends=True)
    pieces = {
        "without its last line": b"".join(lines[:-1]),
        "amid a line": b"".join(lines[:-3]) + lines[-3][:40],
        "its header alone": lines[0],
        "packed": gzip.compress(b"".join(lines))[:-30],
    }
    path = folder / "cut.jsonl"
    path.write_bytes(pieces[how])
    return path


CUTS = ("without its last line", "amid a line", "its header alone", "packed")


@pytest.mark.parametrize("how", CUTS)
def test_a_trace_that_was_cut_is_not_taken_for_whole(
    how: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `never` says of it, or `diff`, would be of a part of the run."""
    path = cut(whole, tmp_path, how)
    recording = str(next(RECORDED.glob("recording*")))
    for words in (
        ["assert", str(path), "{never: switch_p_nothing}"],
        ["diff", str(path), str(whole)],
        ["diff", str(whole), str(path)],
        ["conform", str(path), recording],
    ):
        assert cli.main(["trace", *words]) == cli.WRONG_INPUT, words
        assert "not whole" in capsys.readouterr().err


@pytest.mark.parametrize("how", CUTS)
def test_show_and_why_go_on_with_what_there_is(
    how: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They say what is missing, beside the answer."""
    path = cut(whole, tmp_path, how)
    assert cli.main(["trace", "show", str(path)]) == cli.OK
    assert "not whole" in capsys.readouterr().err
    if how != "its header alone":
        assert cli.main(["trace", "why", str(path), "3"]) == cli.OK
        assert "not whole" in capsys.readouterr().err


def test_a_trace_of_an_older_version_is_read_as_before(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has no end; that is told, and it equals the same run's trace with one."""
    header, *events, _ = whole.read_text().splitlines()
    path = tmp_path / "old.jsonl"
    path.write_text("\n".join([json.dumps(json.loads(header) | {"version": "0.1.0"}), *events, ""]))
    assert cli.main(["trace", "diff", str(path), str(whole)]) == cli.OK
    assert capsys.readouterr().err.count("did not mark the ends of traces") == 1


def test_a_trace_that_was_edited_is_compared_and_told_of(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As by an author who tries whether an expectation would notice."""
    lines = whole.read_text().splitlines(keepends=True)
    path = tmp_path / "edited.jsonl"
    path.write_text("".join(lines[:5] + lines[6:]))
    assert cli.main(["trace", "diff", str(path), str(whole)]) == cli.NOT_HELD
    assert "it was edited" in capsys.readouterr().err


def test_traces_that_end_otherwise_differ(whole: Path, tmp_path: Path) -> None:
    """As one run that was stopped where the other was over."""
    path = tmp_path / "other.jsonl"
    shutil.copy(whole, path)
    path.write_text(path.read_text().replace('"reason":"done"', '"reason":"until"'))
    assert cli.main(["trace", "diff", str(path), str(whole)]) == cli.NOT_HELD
