"""What becomes of files that an older or newer simctl wrote, and of one run under two Pythons."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from packaging.version import Version

from simctl import __version__
from simctl.cli import main
from simctl.kernel.recording import FORMAT as TRACE_FORMAT
from simctl.reports.database_tables import FORMAT as DATABASE_FORMAT
from simctl.scenario.load import read_scenario
from simctl.scenario.positions import ScenarioErrors
from simctl.wire.state_files import VERSION as STATE_FORMAT
from simctl.wire.state_files import with_header
from tests.cluster import TWO_NODES

ROOT: Final = Path(__file__).parent.parent
_NOW: Final = Version(__version__)


@pytest.mark.parametrize("by", [-1, 0, 1])
def test_a_trace_is_read_in_its_own_format_alone(
    by: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of another format it is told which simctl reads it."""
    trace = tmp_path / "t.jsonl"
    assert main(["run", "two_nodes", "--quiet", "--trace", str(trace)]) == 0
    first, _, rest = trace.read_text().partition("\n")
    header = {**json.loads(first), "simctl_trace": TRACE_FORMAT + by, "version": "7.8.9"}
    trace.write_text(f"{json.dumps(header)}\n{rest}")
    capsys.readouterr()
    assert main(["trace", "show", str(trace), "switch_p_job_attach"]) == (2 if by else 0)
    told = capsys.readouterr().err
    assert ("read it with simctl 7.8.9, which wrote it" in told) is bool(by)


@pytest.mark.parametrize("by", [-1, 0, 1])
def test_a_state_file_is_read_in_its_own_format_alone(
    by: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Slurmctld is fatal on another, and the file stays as it is."""
    folder, scenario = tmp_path / "state", tmp_path / "s.yaml"
    scenario.write_text(TWO_NODES + "timeline: [{at: 0s, as: alice, run: sbatch -H --wrap true}]\n")
    words = ["run", str(scenario), "--quiet", "--state-dir", str(folder)]
    assert main(words) == 0
    for path in folder.glob("[!.]*"):
        path.write_bytes(with_header(path.read_bytes(), simctl_state=STATE_FORMAT + by))
    before = {path.name: path.read_bytes() for path in folder.glob("[!.]*")}
    main([*words, "--trace", str(tmp_path / "again.jsonl")])
    told = f"it is of version {STATE_FORMAT + by}, and this slurmctld reads {STATE_FORMAT}"
    assert (told in (tmp_path / "again.jsonl").read_text()) is bool(by)
    if by:
        assert {path.name: path.read_bytes() for path in folder.glob("[!.]*")} == before


def test_a_database_says_its_format_and_is_replaced_whichever_it_has(tmp_path: Path) -> None:
    """It is an output: nothing reads an older one."""
    path = tmp_path / "run.db"
    for found in (DATABASE_FORMAT - 1, DATABASE_FORMAT, DATABASE_FORMAT + 1):
        assert main(["run", "two_nodes", "--quiet", "--db", str(path)]) == 0
        with closing(sqlite3.connect(path)) as file:
            assert file.execute("PRAGMA user_version").fetchone() == (DATABASE_FORMAT,)
            file.execute(f"PRAGMA user_version = {found}")
            file.commit()
    assert main(["run", "two_nodes", "--quiet", "--db", str(path)]) == 0


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("0.1", True),
        (f"{_NOW.major}.{_NOW.minor}", True),
        (__version__, True),
        (f"{_NOW.major}.{_NOW.minor}.{_NOW.micro + 1}", False),
        (f"{_NOW.major}.{_NOW.minor + 1}", False),
        (f"{_NOW.major}.{_NOW.minor + 10}", False),
        (f"{_NOW.major + 1}.0", False),
    ],
)
def test_a_scenario_may_say_which_simctl_it_needs(version: str, *, fits: bool) -> None:
    """An older one refuses it and says which; 0.12 is newer than 0.2."""
    text = f"simctl_version: {version}\n{TWO_NODES}"
    if fits:
        assert read_scenario(text, file="s.yaml").nodes
        return
    with pytest.raises(ScenarioErrors, match=rf"for simctl {version} or newer.*{__version__}"):
        read_scenario(text, file="s.yaml")


@pytest.mark.parametrize("word", ["x", "1", "0.2rc1", '""', "-1.2", "1.2.3.4"])
def test_what_is_no_version_is_a_mistake(word: str) -> None:
    """It says how one looks."""
    with pytest.raises(ScenarioErrors, match=r"a version of simctl such as"):
        read_scenario(f"simctl_version: {word}\n{TWO_NODES}", file="s.yaml")


OTHERS: Final = sorted(ROOT.glob(".venv-3.*/bin/python"))
"""Environments of other Pythons, as `make test-all` makes them."""


@pytest.mark.skipif(not OTHERS, reason="there is one environment; `make test-all` makes others")
@pytest.mark.parametrize("scenario", ["two_nodes", "controller_crash", "burst_buffer_datawarp"])
def test_every_python_gives_the_same_bytes(scenario: str) -> None:
    """Two of them, where two are there."""
    words = ("-m", "simctl", "run", scenario, "--quiet", "--trace", "-", "--schedule", "random")
    traces = [
        subprocess.run(
            [python, *words], cwd=ROOT, capture_output=True, check=True, timeout=60
        ).stdout
        for python in (sys.executable, *map(str, OTHERS))
        if subprocess.run([python, "-c", "import simctl"], cwd=ROOT, check=False).returncode == 0
    ]
    assert len(traces) > 1
    assert len(set(traces)) == 1
