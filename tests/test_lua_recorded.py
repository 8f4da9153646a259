"""burst_buffer/lua held against recordings of a real Slurm 22.05.8: calls, arguments, states."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

pytest.importorskip("lupa")

from simctl.ctld.reporting.info import describe_job
from simctl.scenario.load import read_scenario
from simctl.world import World

FOLDER: Final = Path(__file__).parent / "lua"
RECORDED: Final[dict[str, Any]] = yaml.safe_load((FOLDER / "recorded.yaml").read_text())
_FLAGS: Final = ("CONFIGURING", "STAGE_OUT", "COMPLETING")
_WAITS: Final = ("BurstBufferStageIn", "BurstBufferResources", "None", "Resources")


def scenario(situation: dict[str, Any]) -> str:
    """Return the scenario that does what was recorded."""
    conf = {"StageInTimeout": 60, "StageOutTimeout": 60, "OtherTimeout": 60}
    options = f"{situation.get('sbatch', '')} -o /dev/null".strip()
    script = "\n".join(("#!/bin/bash", *situation["job"], situation["runs"], ""))
    submit = {"at": "1s", "as": "alice", "run": f"sbatch {options} job.sh"}
    return yaml.safe_dump(
        {
            "model": "modern",
            "options": {"batch_start": "as_real", "state_saves": "always"},
            "slurm_conf": {"BurstBufferType": "burst_buffer/lua", "SlurmUser": "root"},
            "lua": {"version": "5.1", "slurm": "22.05"},
            "burst_buffer_lua": "steered.lua",
            "burst_buffer_conf": {**conf, **situation.get("conf", {})},
            "nodes": [{"name": "n1", "cpus": 4}],
            "partitions": [{"name": "debug", "nodes": "n1", "default": True}],
            "users": {"alice": 2001},
            "files": {"job.sh": script, "/var/bb/extra": situation.get("extra", "")},
            "timeline": [submit, *situation.get("then", ())],
        }
    )


def ran(text: str) -> tuple[list[str], list[str]]:
    """Run a scenario; return the calls of the script, and the states of job 1."""
    world = World(read_scenario(text, file=str(FOLDER / "recorded.yaml")))
    states: list[str] = []

    def look(_: object) -> None:
        ctld = world.daemons.ctld
        job = ctld.jobs.get(1)
        if job is not None:
            state = _state(describe_job(ctld, job))
            if state not in states[-1:]:
                states.append(state)

    world.trace.add_sink(look)
    result = world.run()
    assert not result.complaints
    return _calls(world.disk.read("/var/bb/calls", host="slurmctld") or ""), states


def _state(info: Any) -> str:
    base, *flags = str(info.state).split("|")
    state = next(
        (each for each in ("CONFIGURING", "STAGE_OUT", "COMPLETING") if each in flags), base
    )
    reason = str(info.reason).replace(" ", "_")
    if (state == "PENDING" and reason in _WAITS) or (state == "CANCELLED" and reason in _WAITS[:2]):
        reason = "BB"
    code = f"{info.exit_code >> 8}:{info.exit_code & 127}"
    held = "-" if info.priority else "held"
    return " ".join((state, reason, info.burst_buffer_state or "-", code, held))


def _argument(text: str) -> str:
    file = re.fullmatch(r".*/job\.1/(\w+)", text)
    return file[1].upper() if file else "J1" if text == "1" else text


def _calls(text: str) -> list[str]:
    """Return the calls in the form of the recordings: one that has no end was killed."""
    found: list[list[str]] = []
    under_way: dict[str, list[str]] = {}
    for line in text.splitlines():
        word, name, *arguments = line.split()
        if word == "begin":
            if name in under_way:
                under_way[name].append("killed")
            call = [name, *map(_argument, arguments)]
            found.append(call)
            under_way[name] = call
        else:
            under_way.pop(name).append(f"-> {arguments[0]}")
    for call in under_way.values():
        call.append("killed")
    return [" ".join(each) for each in found]


@pytest.mark.parametrize("name", RECORDED)
def test_calls_and_states_are_those_recorded(name: str) -> None:
    """The script is called as in the recording, with its arguments; the job shows its states."""
    situation = RECORDED[name]
    calls, states = ran(scenario(situation))
    wanted = [call.replace("-> err", "-> -1") for call in situation["calls"]]
    assert (calls[: len(wanted)] if "ends_early" in situation else calls) == wanted
    assert not _missing(situation["states"], states)


def test_the_tasks_of_an_array_are_staged_in_together() -> None:
    """As recorded: job_process of the array's script for each task, then three setups."""
    situation = {"job": ["#BB_LUA pool=pool1 capacity=40 data_in_sleep=5"], "runs": "sleep 1"}
    world = World(
        read_scenario(scenario({**situation, "sbatch": "-a 0-2"}), file=str(FOLDER / "s.yaml"))
    )
    world.run()
    noted = world.disk.read("/var/bb/calls", host="slurmctld") or ""
    calls = [line.split() for line in noted.splitlines() if line.startswith("begin")]
    assert [(words[1], words[2][-12:]) for words in calls[:3]] == [
        ("job_process", "job.1/script")
    ] * 3
    assert [words[1:3] for words in calls[3:9]] == [
        *(["setup", number] for number in "231"),
        *(["data_in", number] for number in "231"),
    ]


def _missing(wanted: list[str], found: list[str]) -> list[str]:
    """Return what of a sequence is not to be found in another, in its order."""
    at, missing = 0, []
    for state in wanted:
        try:
            at = found.index(state, at)
        except ValueError:
            missing.append(state)
    return missing


def test_a_missing_state_is_found() -> None:
    """The comparison that the test above rests on notices what is not there, or too early."""
    assert not _missing(["a", "c"], ["a", "b", "c"])
    assert _missing(["c", "a"], ["a", "b", "c"])
    assert _missing(["d"], ["a"])
