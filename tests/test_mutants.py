"""The mutants of the lifecycle code: how they are found, what they change, and that one is caught.

`make mutants` tries all of them, which is no part of the suite. Here a few are looked at closely.
"""

import os
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from simctl.kernel.procs import RunsAs
from simctl.plugins.points import ALL
from simctl.runners.work import Where
from tests.mutants import acting
from tests.mutants.__main__ import (
    arguments,
    as_json,
    choose,
    equivalents,
    files_of_tests,
    main,
    report,
)
from tests.mutants.catalogue import Mutant, mutants, replaced
from tests.mutants.running import Crew, Outcome, Reach, attempt, probe
from tests.mutants.sites import read
from tests.mutants.trying import Hunter

ROOT = Path(__file__).resolve().parent.parent

CODE = '''\
"""A daemon."""

from simctl.plugins.points.switch import switch_p_job_fini, switch_p_job_init


class Daemon:
    """A daemon of this test."""

    async def run(self):
        """Run it."""
        who = self.process
        if self.real and failed(await self.hooks.call(switch_p_job_init, who, 5)):
            return 1
        self.tell("run")
        for each in self.steps:
            await self.hooks.call(switch_p_job_fini, who, each)
        return 0

    async def over(self):
        """Run it to its end."""
        await self.run()
        self.tell("over")
'''

INIT = ("init", 5, "manager", 10, 0, RunsAs.ROOT)
FINI = ("fini", 7, "manager", 10, 0, RunsAs.ROOT)
RUNS = (INIT, "run", FINI, "over")

FOUND = {
    "run:switch_p_job_init:dropped": ("run", FINI, "over"),
    "run:switch_p_job_init:doubled": (INIT, INIT, "run", FINI, "over"),
    "run:switch_p_job_init:ignored": RUNS,
    "run:switch_p_job_init:unguarded": RUNS,
    "run:switch_p_job_init:later": ("run", INIT, FINI, "over"),
    "run:switch_p_job_init:last": ("run", FINI, INIT, "over"),
    "run:switch_p_job_init:process": (("init", 5, "manager", 7010, 0, RunsAs.ROOT), *RUNS[1:]),
    "run:switch_p_job_init:role": (("init", 5, "session", 10, 0, RunsAs.ROOT), *RUNS[1:]),
    "run:switch_p_job_init:root": (("init", 5, "manager", 10, 1001, RunsAs.USER), *RUNS[1:]),
    "run:switch_p_job_init:user": (("init", 5, "manager", 10, 7000, RunsAs.ROOT), *RUNS[1:]),
    "run:switch_p_job_fini:dropped": (INIT, "run", "over"),
    "run:switch_p_job_fini:doubled": (INIT, "run", FINI, FINI, "over"),
    "run:switch_p_job_fini:process": (
        *(INIT, "run"),
        *(("fini", 7, "manager", 7010, 0, RunsAs.ROOT), "over"),
    ),
    "run:switch_p_job_fini:role": (
        *(INIT, "run"),
        *(("fini", 7, "session", 10, 0, RunsAs.ROOT), "over"),
    ),
    "run:switch_p_job_fini:root": (
        *(INIT, "run"),
        *(("fini", 7, "manager", 10, 1001, RunsAs.USER), "over"),
    ),
    "run:switch_p_job_fini:user": (
        *(INIT, "run"),
        *(("fini", 7, "manager", 10, 7000, RunsAs.ROOT), "over"),
    ),
    "run:switch_p_job_fini:released": (INIT, "run", FINI, "over"),
    "over:run():dropped": ("over",),
    "over:run():doubled": (INIT, "run", FINI, INIT, "run", FINI, "over"),
    "over:run():later": ("over", INIT, "run", FINI),
}
"""What each mutant of the daemon above does: of a call its place and user, and what is told."""


@attrs.define
class Who:
    """A process, as far as a mutant looks at one."""

    pid: int = 10
    role: str = "manager"
    daemon: str = "slurmstepd"
    uid: int = 0
    euid: int = 0
    owner: int = 1001
    runs_as: RunsAs = RunsAs.ROOT


class Stage:
    """The daemon's surroundings, which note what it does."""

    def __init__(self, daemon: Any, *, real: bool = True, rc: int = 0) -> None:
        self.done: list[Any] = []
        self.rc = rc
        daemon.hooks = self
        daemon.process = Who()
        daemon.real = real
        daemon.steps = [7]
        daemon.tell = self.done.append

    async def call(self, name: str, who: Who, argument: int) -> int:
        """Note a call."""
        self.done.append((name, argument, who.role, who.pid, who.uid, who.runs_as))
        return self.rc


def daemon_of(source: str) -> Any:
    """Make a daemon of mutated source."""
    code = source.replace("from simctl import _acting", "").replace("from simctl", "# ")
    module: dict[str, Any] = {
        "_acting": acting,
        "failed": lambda rc: rc < 0,
        "switch_p_job_init": "init",
        "switch_p_job_fini": "fini",
    }
    exec(code, module)
    return module["Daemon"]()


@pytest.fixture
def small(tmp_path: Path) -> dict[str, Mutant]:
    """Return the mutants of the daemon above, by what comes last in their ids."""
    (tmp_path / "stepd").mkdir()
    (tmp_path / "stepd" / "daemon.py").write_text(CODE)
    found = mutants(tmp_path, ["stepd"])
    return {mutant.id.removeprefix("stepd/daemon.py:Daemon."): mutant for mutant in found}


@pytest.fixture(scope="module")
def everything() -> list[Mutant]:
    """Return every mutant there is of the lifecycle code."""
    return mutants(ROOT)


def run(mutant: Mutant, *, real: bool = True, rc: int = 0) -> list[Any]:
    """Run a mutant of the daemon; return what it did."""
    daemon = daemon_of(replaced(CODE, {mutant.function: mutant.text}))
    stage = Stage(daemon, real=real, rc=rc)
    call: Callable[[], Awaitable[None]] = daemon.over
    trio.run(call)
    return stage.done


def test_each_operator_changes_what_its_name_says(small: dict[str, Mutant]) -> None:
    """A mutation that changed something else would say nothing about the tests that catch it."""
    assert {name: tuple(run(mutant)) for name, mutant in small.items()} == FOUND


def test_a_failure_that_is_ignored_and_a_guard_that_is_gone_show_where_they_matter(
    small: dict[str, Mutant],
) -> None:
    """Both leave a run alone in which the call goes well and is made."""
    stopped = [("init", 5, "manager", 10, 0, RunsAs.ROOT), "over"]
    assert run(small["run:switch_p_job_fini:doubled"], rc=-1) == stopped
    assert run(small["run:switch_p_job_init:ignored"], rc=-1) == list(RUNS)
    assert run(small["run:switch_p_job_fini:doubled"], real=False)[0] == "run"
    assert run(small["run:switch_p_job_init:unguarded"], real=False) == list(RUNS)


def test_every_point_that_the_daemons_call_has_mutants(everything: list[Mutant]) -> None:
    """A call that the tool overlooks would be mutated by nobody."""
    finder = read(ROOT)
    labels = [site.label for place in finder.places for site in finder.sites(place, place.node)]
    found = {label.rpartition(":")[2].partition("#")[0] for label in labels}
    # Those of which there may be several are called in a loop, by a name in a variable.
    several = ("job_submit", "cli_filter")
    others = {name for name, point in ALL.items() if point.plugin_class in several}
    assert {name for name, point in ALL.items() if not point.later} - others <= found
    assert {mutant.id.rpartition(":")[2] for mutant in everything} >= {
        *("dropped", "doubled", "ignored", "earlier", "later", "first", "last", "released"),
        *("unguarded", "process", "role", "root", "user"),
    }


def test_ids_are_the_same_each_time_and_no_two_are_alike(everything: list[Mutant]) -> None:
    """The list of equivalents and `--resume` go by them."""
    ids = [mutant.id for mutant in everything]
    assert len(set(ids)) == len(ids)
    again = [mutant.id for mutant in mutants(ROOT, ["stepd"])]
    assert again == [mutant.id for mutant in mutants(ROOT, ["stepd"])]
    assert set(again) < set(ids)
    assert set(equivalents()) <= set(ids)


def test_shards_share_the_list_out(everything: list[Mutant]) -> None:
    """What several machines try is all there is, and nothing twice."""
    parts = [choose(everything, arguments(["--shard", f"{n}/3"])) for n in (1, 2, 3)]
    assert sorted(mutant.id for part in parts for mutant in part) == sorted(
        mutant.id for mutant in everything
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [(["--shard", "4/3"], "--shard 4/3: write I/N"), (["--only", "nowhere"], "see --list")],
)
def test_says_what_is_wrong_with_its_words(
    words: list[str], problem: str, everything: list[Mutant]
) -> None:
    """A pattern that fits nothing would look like a run that missed nothing."""
    with pytest.raises(SystemExit, match=problem):
        choose(everything, arguments(words))


CAUGHT = "stepd/manager.py:StepDaemon._see_session_out:switch_p_job_fini:dropped"
MISSED = "simctl/ctld/port/burst_buffers.py:BurstBuffers.reconfig:bb_p_reconfig:dropped"
OTHERS = [CAUGHT.replace("dropped", how) for how in ("ignored", "user", "root")]
TESTS = ["tests/test_step_path.py"]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which this process and those it starts have their temporary files."""
    found = tmp_path / "tmp"
    found.mkdir()
    monkeypatch.setenv("TMPDIR", str(found))
    monkeypatch.setattr(tempfile, "tempdir", str(found))
    return found


def test_tells_a_mutant_that_tests_catch_from_one_that_they_miss_wherever_they_are_tried(
    everything: list[Mutant], capsys: pytest.CaptureFixture[str], temporary: Path
) -> None:
    """In a copy of the tree, with a few tests of steps, which know nothing of reconfiguring.

    A worker of a Dask cluster that is killed in the middle loses none and doubles none.
    """
    chosen = [each for each in everything if each.id in {MISSED, CAUGHT, *OTHERS}]
    before = (ROOT / "stepd" / "manager.py").read_bytes()
    crew, reach = Crew.of(ROOT, temporary, Where(workers=1), TESTS), Reach()
    probe(crew, ROOT, reach, lambda _: None)
    found = {each.id: each for each in attempt(crew, chosen, reach, 60)}
    assert found[CAUGHT].stage == "tests"
    assert found[CAUGHT].by.startswith("tests/test_step_path.py::")
    assert (found[MISSED].stage, found[MISSED].reached) == ("", 0)
    assert reach.failing == {}
    assert (ROOT / "stepd" / "manager.py").read_bytes() == before
    assert not (ROOT / "simctl" / "_acting.py").exists()
    report([found[CAUGHT], found[MISSED]], {CAUGHT: "wrongly"}, ["gone"], 1)
    said = capsys.readouterr().out
    assert f"{MISSED}  (0 tests reach it)" in said
    assert f"catches it: {CAUGHT}" in said
    assert "no such mutant: gone" in said
    counts = said.partition("2 mutants in 1 s\n")[2].splitlines()
    assert [int(line.split()[0]) for line in counts] == [0, 1, 0, 0, 1]
    _wait_until_empty(temporary)

    distributed: Any = pytest.importorskip("distributed", reason="no extra [dask]")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
    ) as cluster:
        where = Where(dask=cluster.scheduler_address)
        there: list[Outcome] = []
        for outcome in attempt(attrs.evolve(crew, where=where), chosen, reach, 60):
            if not there:
                os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
            there.append(outcome)
    assert len(there) == len(chosen) == 5
    told = [
        as_json(sorted(each, key=lambda outcome: outcome.id), {}, [], 1.0, where)
        for each in (there, found.values())
    ]
    assert told[0] == told[1]
    assert all("took_s" not in each for each in told[0]["mutants"])
    _wait_until_empty(temporary)


def _wait_until_empty(folder: Path) -> None:
    """Wait until no copy is left: whoever worked in one is gone then too."""
    for _ in range(600):
        if not [*folder.glob("simctl-mutants-*")]:
            return
        time.sleep(0.1)
    raise AssertionError(f"left: {list(folder.iterdir())}")


def test_a_file_that_has_no_tests_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Mutants that were shown to nothing would all seem to be missed."""
    assert files_of_tests([f"{ROOT}/tests/mutants/../test_cli.py"]) == ["tests/test_cli.py"]
    assert main(["--tests", "test_cli.py"]) == 2
    assert "--tests test_cli.py: there is no such file" in capsys.readouterr().err


def test_tests_are_cut_where_their_time_is_up() -> None:
    """As they took when nothing was mutated: so it is the same wherever mutants are tried."""
    hunter = Hunter.__new__(Hunter)
    hunter._took_s = {"a": 1.0, "b": 2.0, "c": 3.0}
    for budget_s, shown in ((0.5, "a"), (1.0, "ab"), (2.9, "ab"), (3.0, "abc"), (9.0, "abc")):
        hunter._budget_s = budget_s
        assert "".join(hunter._within_budget(list("abc"))) == shown
