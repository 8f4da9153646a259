"""Jobs of no node: all they do is done by their burst buffer."""

from collections.abc import Mapping

import pytest

from simctl.scenario.load import read_scenario
from simctl.world import RunResult, World

SCENARIO = """
model: {model}
slurm_conf: {{BurstBufferType: {plugins}, MinJobAge: 10}}
{conf}
nodes: [{{name: "n[1-2]", cpus: 4}}]
partitions: [{{name: debug, nodes: "n[1-2]", default: true}}]
users: {{alice: 1001}}
files:
  make.sh: "#!/bin/bash\\n#BB create_persistent name=data capacity=10G\\n"
  plain.sh: "#!/bin/bash\\nsrun true\\n"
timeline:
  - {{at: 0s, as: alice, run: {run}}}
"""

DATAWARP = {
    "plugins": "burst_buffer/datawarp",
    "conf": "burst_buffer_conf: {Flags: EnablePersistent}",
}


def run(values: Mapping[str, str]) -> tuple[RunResult, list[tuple[str, str]]]:
    """Run a scenario; return it with the names of its plugin calls and states of job 1."""
    world = World(read_scenario(SCENARIO.format(**values), file="s.yaml"))
    seen: list[tuple[str, str]] = []

    def sink(event: object) -> None:
        name = getattr(event, "name", "")
        args = getattr(event, "args", None)
        if getattr(event, "job", None) == 1 and name == "job_state":
            assert isinstance(args, dict)
            seen.append((name, args["to"]))
        elif getattr(event, "job", None) == 1 and getattr(event, "phase", "") != "exit":
            seen.append((name, ""))

    world.trace.add_sink(sink)
    return world.run(), seen


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_it_begins_runs_no_script_and_ends_as_one_that_never_had_nodes(model: str) -> None:
    """RUNNING, begin, COMPLETED, then cancel: there are no nodes whose data could be staged out."""
    result, seen = run({"model": model, "run": "sbatch -N0 make.sh", **DATAWARP})
    assert [row.state for row in result.rows] == ["COMPLETED"]
    names = [name for name, _ in seen]
    running = seen.index(("job_state", "RUNNING"))
    ending = seen.index(("job_state", "COMPLETED|COMPLETING"))
    assert running < names.index("bb_p_job_begin") < ending < names.index("bb_p_job_cancel")
    assert names.count("bb_p_job_begin") == names.count("bb_p_job_cancel") == 1
    assert "bb_p_job_start_stage_out" not in names
    assert "REQUEST_BATCH_JOB_LAUNCH" not in names
    assert "REQUEST_TERMINATE_JOB" not in names


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"run": "sbatch -N0 plain.sh", **DATAWARP}, "Batch job submission failed: "),
        (
            {"run": "sbatch -N0 make.sh", "plugins": "none", "conf": ""},
            "Batch job submission failed: ",
        ),
        ({"run": "srun -N0 true", **DATAWARP}, "Unable to allocate resources: "),
    ],
)
def test_without_a_burst_buffer_there_is_no_job_without_nodes(
    values: Mapping[str, str], words: str
) -> None:
    """Nothing is left of such a job that could be done."""
    result, _ = run({"model": "guide", **values})
    assert not result.rows
    command = result.commands[0]
    assert (command.exit, command.errno) == (1, "ESLURM_INVALID_NODE_COUNT")
    assert command.stderr.endswith(f"{words}Node count specification invalid\n")
