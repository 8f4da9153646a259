"""What real Slurm does wrong around Lua scripts: each defect with and without."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
import yaml

pytest.importorskip("lupa")

from simctl.plugins.burst_buffer.lua import stages
from simctl.plugins.burst_buffer.lua.directives import read_request
from simctl.plugins.burst_buffer.records import Pool
from simctl.plugins.lua.defects import DEFECTS
from simctl.scenario.load import read_scenario
from simctl.scenario.positions import ScenarioErrors
from simctl.world import RunResult, World

FOLDER: Final = Path(__file__).parent / "lua"
MOMENT: Final = "sleep 2"
LOOK: Final = (("20s", "squeue -h -t all -o '%T %r'"),)


@attrs.frozen(kw_only=True)
class Shown:
    """A run that shows a defect: what job.sh asks for, what is typed, what is seen of it."""

    job: str = ""
    line: str = "#BB_LUA pool=pool1 capacity=10"
    then: tuple[tuple[str, Any], ...] = ()
    see: Callable[[World, RunResult], Any]
    wrong: Any
    right: Any
    slurm: str = "22.05"
    runs: str = MOMENT
    files: dict[str, str] = attrs.field(factory=dict)
    more: dict[str, Any] = attrs.field(factory=dict)


def calls(name: str) -> Callable[[World, RunResult], list[str]]:
    """Return what sees the calls of a function: the job, and the last argument."""

    def see(world: World, _: RunResult) -> list[str]:
        noted = world.disk.read("/var/bb/calls", host="slurmctld") or ""
        lines = [line.split() for line in noted.splitlines()]
        called = [words for words in lines if words[:2] == ["begin", name]]
        return [f"{words[2]} {words[-1].rpartition('/')[2]}" for words in called]

    return see


def last_command(_: World, result: RunResult) -> str:
    """Return what the last command printed."""
    return result.commands[-1].stdout + result.commands[-1].stderr


CASES: Final = {
    "timeout_success": Shown(
        job="data_in_sleep=9",
        then=LOOK,
        see=last_command,
        wrong="COMPLETED None\n",
        right="PENDING burst_buffer/lua: slurm_bb_data_in: Timeout @ 5000 msec\n",
    ),
    "two_teardowns": Shown(
        job="data_out_sleep=20",
        then=(("12s", "scancel --hurry 1"),),
        see=calls("job_teardown"),
        wrong=["1 true", "1 false"],
        right=["1 true"],
    ),
    "empty_pools": Shown(
        runs="sleep 20",
        then=(("5s", "scontrol reconfigure"), ("6s", "scontrol show burst")),
        see=lambda world, result: "FreeSpace=18446744073709551606" in last_command(world, result),
        wrong=True,
        right=False,
    ),
    "pre_run_stuck": Shown(
        job="pre_run_rc=1",
        then=(("1000s", "squeue"),),
        see=lambda world, result: len(calls("pre_run")(world, result)),
        wrong=1,
        right=4,
    ),
    "leak_race": Shown(
        job="data_in_rc=1",
        then=(("5s", "scancel 1"), ("9s", {"restart": "slurmctld"})),
        see=calls("job_teardown"),
        wrong=["1 false"],
        right=["1 true"],
    ),
    "stage_in_count": Shown(
        job="setup_sleep=5",
        then=(("3s", "scancel 1"), ("4s", "sbatch -o /dev/null job.sh"), ("60s", "squeue")),
        see=calls("setup"),
        wrong=["1 script"],
        right=["1 script", "2 script"],
    ),
    "path_file": Shown(
        see=lambda world, _: [
            world.disk.read(f"{world.site.conf.state_save_location}/hash.1/job.1/{name}", host=host)
            for name in ("script", "path")
            for host in ("slurmctld",)
        ],
        wrong=[None, "BB_PATH=/bb/1\nBB_MORE=a=b\n"],
        right=[None, None],
    ),
    "status_256": Shown(
        job="setup_rc=256",
        then=LOOK,
        see=last_command,
        wrong="COMPLETED None\n",
        right="PENDING burst_buffer/lua: slurm_bb_setup: (null)\n",
    ),
    "missing_argument": Shown(
        line="#BB_LUA pool=nowhere capacity=1",
        slurm="25.05",
        see=lambda _, result: result.commands[0].stderr.splitlines()[0],
        wrong="sbatch: error: Invalid burst buffer spec ((null))",
        right="sbatch: error: Invalid burst buffer spec (#BB_LUA pool=nowhere capacity=1)",
    ),
    "paths_lines": Shown(
        runs='echo "$BB_MORE ${LOOSE-none} ${LAST-none}"',
        files={"/var/bb/more_paths": "LOOSE\n\nLAST=1\n"},
        see=lambda world, _: world.disk.read("/tmp/out", host="n1"),
        wrong="a=b  none\n",
        right="a=b none 1\n",
    ),
    "mail_time890": Shown(
        more={"slurm_conf": {"JobSubmitPlugins": "lua"}},
        files={
            "/etc/slurm/job_submit.lua": "function slurm_job_submit() slurm.log_user('%s %s', "
            "tostring(slurm.MAIL_JOB_TIME90), tostring(slurm.MAIL_JOB_TIME890)) return 0 end "
            "function slurm_job_modify() return 0 end"
        },
        see=lambda _, result: result.commands[0].stderr,
        wrong="sbatch: nil 32.0\n",
        right="sbatch: 32.0 nil\n",
    ),
}


def run(case: Shown, lua: dict[str, Any]) -> tuple[World, RunResult]:
    """Run a case under options of Lua."""
    timeline: list[dict[str, Any]] = [
        {"at": "1s", "as": "alice", "run": "sbatch -o /tmp/out job.sh"}
    ]
    for at, what in case.then:
        who = "alice" if "sbatch" in what else "root"
        entry = {"fault": what} if isinstance(what, dict) else {"run": what, "as": who}
        timeline.append({"at": at, **entry})
    line = f"{case.line} {case.job}".rstrip()
    script = f"#!/bin/bash\n{line}\n{case.runs}\n"
    scenario: dict[str, Any] = {
        "slurm_conf": {"BurstBufferType": "burst_buffer/lua", "SlurmUser": "root"},
        "options": {"state_saves": "always"},
        "lua": {"slurm": case.slurm, **lua},
        "burst_buffer_lua": "steered.lua",
        "burst_buffer_conf": {"StageInTimeout": 5},
        "nodes": [{"name": "n1", "cpus": 4}],
        "partitions": [{"name": "debug", "nodes": "n1", "default": True}],
        "users": {"alice": 2001},
        "files": {"job.sh": script, "/var/bb/extra": "", **case.files},
        "timeline": timeline,
    }
    for key, value in case.more.items():
        scenario[key] = {**scenario.get(key, {}), **value}
    world = World(read_scenario(yaml.safe_dump(scenario), file=str(FOLDER / "s.yaml")))
    return world, world.run()


@pytest.mark.parametrize("name", DEFECTS)
def test_each_defect_can_be_had_and_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for it is there; mended, or where it is not usual, it is not."""
    monkeypatch.setattr(stages, "MOST_AT_ONCE", 1)
    case, usual = CASES[name], DEFECTS[name].usual
    assert case.see(*run(case, {} if usual else {"defects": [name]})) == case.wrong
    assert case.see(*run(case, {"mended": [name]} if usual else {})) == case.right


def test_a_defect_that_a_version_has_not_is_refused() -> None:
    """With the versions that have it; and so is one that is asked for and mended."""
    with pytest.raises(ScenarioErrors, match=r"of Slurm up to 22\.05, not of 23\.02"):
        run(CASES["path_file"], {"slurm": "23.02", "defects": ["stage_in_count"]})
    with pytest.raises(ScenarioErrors, match="among `defects` and among `mended`"):
        run(CASES["path_file"], {"defects": ["path_file"], "mended": ["path_file"]})


@pytest.mark.parametrize(("real", "counted"), [(5, 10), (25, 25)])
def test_a_buffer_counts_with_its_real_size_where_that_is_larger(real: int, counted: int) -> None:
    """What slurm_bb_real_size returns never makes less of it than was asked for."""
    case = Shown(
        files={"/var/bb/extra": f"real_size_text={real}"},
        runs="sleep 20",
        then=(("5s", "scontrol show burst"),),
        see=last_command,
        wrong=None,
        right=None,
    )
    shown = case.see(*run(case, {}))
    assert f"UsedSpace={counted}" in shown


@pytest.mark.parametrize(("first", "last"), [("pool1", "pool2"), ("pool2", "pool1")])
def test_sizes_of_all_directives_are_added_in_the_last_pool(first: str, last: str) -> None:
    """Each is rounded up in the pool of its own line."""
    pools = {
        name: Pool(name=name, total=100, granularity=granularity)
        for name, granularity in (("pool1", 5), ("pool2", 7))
    }
    asked = read_request((f"pool={first} capacity=3", f"pool={last} capacity=3"), pools)
    assert (asked.pool, asked.size) == (last, 5 + 7)


@pytest.mark.parametrize(
    ("capacity", "size"),
    [
        *(("7", 7), ("3K", 3 << 10), ("3kb", 3000), ("3KiB", 3 << 10), ("2M", 2 << 20)),
        *(("1GiB", 1 << 30), ("1GB", 10**9), ("1g", 1 << 30), ("1T", 1 << 40), ("1PB", 10**15)),
        *(("3nodes", 3), ("3N", 3), ("3x", 3), ("3ki", 3), ("-3K", 0)),
    ],
)
def test_units_of_a_capacity_count_by_1024_but_with_a_b(capacity: str, size: int) -> None:
    """However they are written; what is no unit counts as none."""
    pools = {"pool1": Pool(name="pool1", total=1 << 60, granularity=1)}
    assert read_request((f"pool=pool1 capacity={capacity}",), pools).size == size
