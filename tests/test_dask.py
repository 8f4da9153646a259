"""Work on a Dask cluster comes to the same as on this machine, whatever befalls its workers."""

import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from simctl.cli import main
from simctl.runners.bundle import Bundle, plugin_files
from simctl.runners.local import Pool
from simctl.runners.running import run
from simctl.runners.versions import about
from simctl.runners.work import (
    Chunk,
    LostError,
    Where,
    Work,
    WorkerError,
    chunks_of,
    read_where,
)
from simctl.status import InputError
from simctl.testing.explore.progress import Progress
from tests.slow_work import slow
from tests.test_sweep import LOG, SCENARIO, SLOW, content_of

distributed: Any = pytest.importorskip("distributed", reason="the extra [dask] is not installed")

FAULTY = Path(__file__).parent.parent / "scenarios" / "faulty"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start a scheduler and two workers on loopback."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as found:
        yield found


@pytest.fixture
def address(cluster: Any) -> str:
    """Return where the scheduler is."""
    found: str = cluster.scheduler_address
    return found


def work_of(folder: Path, trials: int, **more: Any) -> Work[Chunk]:
    """Return work of so many trials that leaves its traces in a folder."""
    make = functools.partial(slow, folder, **more)
    return Work(make=make, chunks=chunks_of(0, trials))


def found_by(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Return what a command prints with --json, but for what may differ."""
    main([*words, "--json", "--quiet"])
    found = json.loads(capsys.readouterr().out)
    assert found.pop("runner")
    assert found.pop("wall_s") >= 0
    return found


@pytest.fixture
def killed(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Kill a worker once ten runs have come; return the list that its pid is then in."""
    count, gone, seen = Progress.count, [], []

    def counting(progress: Progress) -> None:
        count(progress)
        seen.append(0)
        if len(seen) == _IN_THE_MIDDLE:
            gone.append(next(iter(cluster.workers.values())).pid)
            os.kill(gone[0], signal.SIGKILL)

    monkeypatch.setattr(Progress, "count", counting)
    return gone


_IN_THE_MIDDLE = 10


def test_a_search_comes_to_the_same_anywhere(
    address: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: Any,
    killed: list[int],
) -> None:
    """An author's plugin travels; the find, its schedule and all that is counted are equal."""
    monkeypatch.chdir(tmp_path)
    for name in ("window_race.yaml", "window_race.py"):
        (tmp_path / name).write_text((FAULTY / name).read_text())
    words = ("explore", "window_race.yaml", "--seeds", "40", "-o", "found.yaml", "--force")
    there = found_by(capsys, *words, "--dask", address)
    assert there["found"] is not None
    assert killed
    assert there == found_by(capsys, *words, "--workers", "1")


def test_a_swarm_comes_to_the_same_anywhere(
    address: str, capsys: pytest.CaptureFixture[str], killed: list[int]
) -> None:
    """Its sums too, and which of its runs were made twice."""
    words = ("swarm", "--runs", "18", "--seed", "4000")
    there = found_by(capsys, *words, "--dask", address)
    assert killed
    assert there == found_by(capsys, *words, "--workers", "1")


def test_a_run_that_is_over_leaves_others_alone(tmp_path: Path) -> None:
    """Its units that come late are refused, and another run of the same work begins anew."""
    from simctl.runners.dask_cluster import (  # noqa: PLC0415 - it needs the extra
        Payload,
        end_run,
        run_unit,
    )

    work = attrs.evolve(work_of(tmp_path, 2), chunks=[])
    first, second = (Payload(work, work.bundle(), name) for name in ("one", "two"))
    wanted = about(work.packages)
    assert [each.first for each in run_unit(first, [(0, 0)], wanted)[0]] == [0]
    end_run("two, and no other")
    assert [each.first for each in run_unit(first, [(1, 1)], wanted)[0]] == [1]
    end_run("one")
    with pytest.raises(WorkerError, match="the run is over"):
        run_unit(first, [(0, 0)], wanted)
    assert [each.first for each in run_unit(second, [(0, 0)], wanted)[0]] == [0]
    end_run("two")


def test_workers_that_another_thread_has_ended_are_waited_for_no_more(tmp_path: Path) -> None:
    """Neither where they are at a chunk nor where they are given one."""
    work = work_of(tmp_path, 1, seconds=30)
    with Pool(work, 1) as pool:
        threading.Timer(0.5, pool.__exit__).start()
        with pytest.raises(WorkerError, match="were ended"):
            list(pool.run([(0, 0)], lambda: None))
        with pytest.raises(WorkerError, match="were ended"):
            list(pool.run([(0, 0)], lambda: None))


SITE = """\
ClusterName=c
SlurmctldHost=controller
NodeName=n[1-4] CPUs=2
PartitionName=debug Nodes=n[1-4] Default=YES
"""


def test_a_sweep_comes_to_the_same_anywhere(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], killed: list[int]
) -> None:
    """Its table too: scenarios, what they read, logs and plugins travel."""
    text = SCENARIO.partition("partitions:")[2].partition("\n")[2]
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "base.yaml").write_text(f"slurm_conf_file: ../site.conf\n{text}")
    (tmp_path / "site.conf").write_text(SITE)
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "log.swf").write_text(LOG)
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "parameters:\n  what:\n    site: {scenario: below/base.yaml, plugins: [../slow.py]}\n"
        "    log: {swf: log.swf, nodes: 8}\nseeds: 8\njobs: true\nkeep: [{seed: 3}]\n"
    )
    there = found_by(capsys, "sweep", str(file), "-o", f"{tmp_path}/there", "--dask", address)
    assert killed
    here = found_by(capsys, "sweep", str(file), "-o", f"{tmp_path}/here", "--workers", "1")
    assert [each.pop("table") for each in (there, here)]
    assert there == here
    assert here["bad"] == 0
    assert content_of(tmp_path / "there") == content_of(tmp_path / "here")
    names = [sorted(each.name for each in (tmp_path / side / "runs").iterdir()) for side in WHERE]
    assert names[0] == names[1]
    assert len(names[0]) == 4


WHERE = ("here", "there")


def test_tests_come_to_the_same_anywhere(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    """With golden traces, and lines that name files as they lie here."""
    monkeypatch.chdir(tmp_path)
    for name in ("window_race.yaml", "window_race.py"):
        (tmp_path / name).write_text((FAULTY / name).read_text())
    wrong = SCENARIO.replace("schedulertype", "shedulertype")
    broken = f"{SCENARIO}expect: [{{job: 3, state: FAILED}}]\n"
    for name, text in (("base", SCENARIO), ("wrong", wrong), ("broken", broken)):
        (tmp_path / f"{name}.yaml").write_text(text)
    main(["test", "base.yaml", "--rewrite", "--golden", "all"])
    golden = tmp_path / "base.golden.jsonl"
    golden.write_text(golden.read_text().replace("thin.sh", "slim.sh"))
    words = ["test", "base.yaml", "wrong.yaml", "broken.yaml", "window_race.yaml"]
    told = []
    for where in (("--dask", address), ("--workers", "1")):
        capsys.readouterr()
        main([*words, *where])
        said = capsys.readouterr()
        told.append((said.out.rpartition(", in ")[0], said.err))
    assert told[0] == told[1]
    assert "NOT AS base.golden.jsonl" in told[0][0]
    assert "1 held, 2 broken, 1 wrong" in told[0][0]


@pytest.mark.parametrize("where", ["local", "dask"])
def test_without_order_what_kills_its_process_keeps_nothing_else_from_being_made(
    where: str, address: str, tmp_path: Path
) -> None:
    """It is told last; results come as they are there."""
    work = attrs.evolve(work_of(tmp_path, 40, killed_at=16, times=9, seconds=0.0), in_order=False)
    found: list[int] = []
    place = Where(workers=2) if where == "local" else Where(dask=address)
    with pytest.raises(LostError, match="trials 16 to 23"):
        found.extend(each.first for each in run(work, place, lambda: None))
    assert sorted([*found, 16]) == [first for first, _ in work.chunks]


def test_a_worker_that_is_killed_loses_no_result_and_doubles_none(
    cluster: Any, address: str, tmp_path: Path
) -> None:
    """With kill -9 in the middle; the scheduler has another make what it was at."""
    found: list[tuple[int, int]] = []
    work = work_of(tmp_path, 160)
    killed = 0
    for result in run(work, Where(dask=address), lambda: None):
        found.append((result.first, result.last))
        if not killed:
            workers = [int(each.name.removeprefix("pid-")) for each in tmp_path.glob("pid-*")]
            killed = workers[0]
            os.kill(killed, signal.SIGKILL)
    assert found == work.chunks


def test_trials_that_kill_their_process_are_made_again_once(address: str, tmp_path: Path) -> None:
    """The second time the search ends there, and says where; the worker of Dask's lives on."""
    again = work_of(tmp_path, 40, killed_at=16, times=1)
    results = run(again, Where(dask=address), lambda: None)
    assert [(each.first, each.last) for each in results] == again.chunks
    for each in tmp_path.glob("killed-*"):
        each.unlink()
    found: list[int] = []
    never = work_of(tmp_path, 40, killed_at=16, times=9)
    with pytest.raises(LostError, match="trials 16 to 23"):
        found.extend(each.first for each in run(never, Where(dask=address), lambda: None))
    assert 16 not in found


def test_nobody_at_an_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the time that a connection is waited for."""
    from simctl.runners import dask_cluster  # noqa: PLC0415 - it needs the extra

    monkeypatch.setattr(dask_cluster, "CONNECT_S", 1)
    work = work_of(Path(), 8)
    with pytest.raises(InputError, match=r"no scheduler answers there within 1 s"):
        list(run(work, Where(dask="tcp://127.0.0.1:9"), lambda: None))


def test_a_worker_with_another_version_is_refused_before_work_starts(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says which, and that results would not be the same."""
    from simctl.runners import dask_cluster  # noqa: PLC0415 - it needs the extra

    mine = {**about(), "trio": "0.1"}
    monkeypatch.setattr(dask_cluster, "about", lambda _: mine)
    monkeypatch.setattr(dask_cluster, "_about_or_why", distributed_about)
    with pytest.raises(InputError, match=r"worker tcp://.*: it has trio .* and not 0\.1"):
        list(run(work_of(Path(), 8), Where(dask=address), lambda: None))


def distributed_about(packages: tuple[str, ...]) -> dict[str, str]:
    """Return what a worker says of itself."""
    return about(packages)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("nowhere.json",), "expected tcp://HOST:PORT, local, local:N, or the file"),
        (("local:0",), "expected local:N with N from 1 to 256"),
        (("local:x",), "expected local:N"),
        (("",), "name a scheduler"),
        (("local", "--workers", "2"), "--workers goes without --dask"),
    ],
)
def test_what_no_cluster_can_be_is_told(
    words: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit status 2, and before anything is run."""
    assert main(["swarm", "--runs", "9", "--dask", *words]) == 2
    assert text in capsys.readouterr().err


def test_the_usual_place_is_every_core() -> None:
    """Without options; --workers and --dask say otherwise."""
    assert read_where(None, None).workers == len(os.sched_getaffinity(0))
    assert read_where(3, None).told == "local:3"
    assert read_where(None, "local:2").told == "dask local:2"


def test_a_bundle_is_unpacked_once_and_holds_what_lies_beside_a_plugin(tmp_path: Path) -> None:
    """Relative paths lead to it from where the scenario is."""
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "own" / "package").mkdir(parents=True)
    (tmp_path / "own" / "plugin.py").write_text("import helper\n")
    (tmp_path / "own" / "helper.py").write_text("X = 1\n")
    (tmp_path / "own" / "notes.txt").write_text("no part of it\n")
    (tmp_path / "own" / "package" / "__init__.py").write_text("Y = 2\n")
    references = ["../own/plugin.py:Mine", "../own/package:Other", "installed.module:Third"]
    bundle = plugin_files(tmp_path / "scenarios", references)
    assert sorted(bundle.files) == ["own/helper.py", "own/package/__init__.py", "own/plugin.py"]
    start = bundle.unpack()
    assert (start / "../own/plugin.py").read_text() == "import helper\n"
    assert bundle.unpack() == start
    assert plugin_files(tmp_path / "scenarios", references).digest == bundle.digest
    assert Bundle(files={**bundle.files, "own/x.py": b""}, start=bundle.start).digest != (
        bundle.digest
    )


def test_a_plugin_by_its_whole_path_cannot_travel(tmp_path: Path) -> None:
    """There is no such path on other machines; the error says what would do."""
    with pytest.raises(InputError, match=r"cannot travel .* by a path from the scenario's folder"):
        plugin_files(tmp_path, [f"{tmp_path}/plugin.py:Mine"])


def test_kill_9_of_whoever_gives_out_work_leaves_no_process(tmp_path: Path) -> None:
    """Its scheduler, its workers and their processes end."""
    words = ("-m", "simctl", "swarm", "--runs", "9999", "--dask", "local:2", "--quiet")
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(lambda: len(_with(tmp_path)) > 2)
    finally:
        process.kill()
        process.wait()
    _wait_for(lambda: not _with(tmp_path))


def _with(folder: Path) -> list[int]:
    """Return the processes that were started with a folder as TMPDIR."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdecimal() and f"TMPDIR={folder}".encode() in (
                (each / "environ").read_bytes().split(b"\0")
            ):
                found.append(int(each.name))
        except OSError:
            continue
    return found


def _wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come about within a minute")


@pytest.mark.parametrize(
    ("sizes", "travels"),
    [([4, 4, 4], True), ([1, 1, 1, 1], False), ([12], True), ([13], False), ([6, 7], False)],
)
def test_what_travels_is_neither_too_many_files_nor_too_large(
    sizes: list[int], travels: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either is told, with what would do."""
    monkeypatch.setattr("simctl.runners.bundle.FILES", 3)
    monkeypatch.setattr("simctl.runners.bundle.BYTES", 12)
    for number, size in enumerate(sizes):
        (tmp_path / f"part{number}.py").write_bytes(b"#" * size)
    if travels:
        assert len(plugin_files(tmp_path, ["./part0.py:Mine"]).files) == len(sizes)
        return
    with pytest.raises(InputError, match="give plugins a folder of their own"):
        plugin_files(tmp_path, ["./part0.py:Mine"])


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("times", [0, 1, 2])
def test_trials_are_lost_whose_worker_is_killed_twice(
    times: int, in_order: bool, tmp_path: Path
) -> None:
    """Killed once, another makes them, and nothing is missing; the others come in any case."""
    work = attrs.evolve(work_of(tmp_path, 24, killed_at=8, times=times), in_order=in_order)
    found: list[int] = []
    with Pool(work, 2) as pool:
        results = pool.run(work.chunks, lambda: None)
        if times < 2:
            found.extend(each.first for each in results)
            assert sorted(found) == [0, 8, 16]
            return
        with pytest.raises(LostError, match="trials 8 to 15"):
            found.extend(each.first for each in results)
    assert sorted(found) == ([0] if in_order else [0, 16])
