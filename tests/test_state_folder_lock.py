"""A folder of slurmctld's state belongs to one run at a time, and holds state files alone."""

import os
from pathlib import Path

import pytest

from simctl.cli import main
from simctl.state_folder import StateFolder
from simctl.status import NOT_HELD, OK, WRONG_INPUT

SCENARIO = """\
nodes: [{name: n1, cpus: 2}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
timeline: [{at: 0s, as: alice, run: "srun hostname"}]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """Write a scenario; return its path."""
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return str(path)


def test_a_folder_is_for_one_run(
    tmp_path: Path, scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second is told which process has it; one that is dead is no obstacle."""
    folder = tmp_path / "state"
    held = StateFolder(folder).lock()
    assert held is not None
    assert main(["run", "--quiet", "--state-dir", str(folder), scenario]) == WRONG_INPUT
    assert f"in use by another run, process {os.getpid()}" in capsys.readouterr().err
    held.close()
    assert main(["run", "--quiet", "--state-dir", str(folder), scenario]) == OK
    assert main(["run", "--quiet", "--state-dir", str(folder), scenario]) == OK


def test_a_folder_of_something_else_is_refused(
    tmp_path: Path, scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing in it is written over, and no run without slurmctld ends with 0."""
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "job_state").write_bytes(b"garbage\n")
    assert main(["run", "--quiet", "--state-dir", str(folder), scenario]) == WRONG_INPUT
    assert "job_state of this folder is no state file" in capsys.readouterr().err
    assert (folder / "job_state").read_bytes() == b"garbage\n"


@pytest.mark.parametrize("there", ["a link", "notes", "a pipe"])
def test_a_lock_that_is_none_of_ours_is_left_alone(
    there: str, tmp_path: Path, scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder may come from anybody: a link in it does not lead a run to another file."""
    mine = tmp_path / "mine"
    mine.write_text("mine\n")
    lock = tmp_path / "state/.lock"
    lock.parent.mkdir()
    if there == "a link":
        lock.symlink_to(mine)
    elif there == "a pipe":
        os.mkfifo(lock)
    else:
        lock.write_text("mine\n")
    assert main(["run", "--quiet", "--state-dir", str(lock.parent), scenario]) == WRONG_INPUT
    assert "state/.lock" in capsys.readouterr().err
    assert mine.read_text() == "mine\n"
    assert there != "notes" or lock.read_text() == "mine\n"


def test_no_link_leads_what_is_saved_to_another_file(tmp_path: Path, scenario: str) -> None:
    """A file is written beside, under a name that somebody may have guessed."""
    mine = tmp_path / "mine"
    mine.write_text("mine\n")
    folder = tmp_path / "state"
    folder.mkdir()
    for name in ("job_state", "node_state", "part_state", "resv_state"):
        (folder / f".{name}.tmp").symlink_to(mine)
    assert main(["run", "--quiet", "--state-dir", str(folder), scenario]) == OK
    assert mine.read_text() == "mine\n"
    assert (folder / "job_state").read_bytes()


@pytest.mark.parametrize(("folder", "said"), [("", "name a folder"), ("s.yaml", "is no folder")])
def test_a_state_folder_is_a_folder(
    folder: str,
    said: str,
    tmp_path: Path,
    scenario: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A variable that is empty in a script is no run without a folder."""
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--quiet", f"--state-dir={folder}", scenario]) == WRONG_INPUT
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("expects", "status"), [("", NOT_HELD), ("expect: [{never: bb_p_reconfig}]\n", OK)]
)
def test_a_slurmctld_that_cannot_start_has_to_be_expected(
    expects: str, status: int, tmp_path: Path
) -> None:
    """Where nothing is expected of the run, it is no success."""
    path = tmp_path / "s.yaml"
    path.write_text(
        "nodes: [{name: n1}]\npartitions: [{name: p, nodes: n1}]\n"
        f"timeline: [{{at: 0s, fault: {{fail: init role=slurmctld}}}}]\n{expects}"
    )
    assert main(["run", str(path), "--quiet"]) == status
