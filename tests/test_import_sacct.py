"""`simctl import sacct`: what sacct printed of a run, imported and run again, gives the same jobs."""

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.cli import main
from simctl.scenario.load import read_scenario
from simctl.world import World

HEAD = """\
start_time: 2026-11-20T00:00:00Z
slurm_conf: {SelectType: select/cons_tres, SelectTypeParameters: CR_CPU_Memory, DefMemPerCPU: 10}
nodes: [{name: "n[1-3]", cpus: 4, memory_mb: 1000}]
partitions:
  - {name: debug, nodes: "n[1-3]", default: true}
  - {name: long, nodes: "n[2-3]"}
users:
  alice: {uid: 1001, account: proj1}
  bob: {uid: 1002, account: proj2}
"""
ASKED = (
    "jobid,submit,start,end,eligible,elapsedraw,state,exitcode,user,uid,account,partition,jobname,"
    "timelimit,alloccpus,nnodes,nodelist,reqmem"
)
COMPARED = (
    "jobid,jobname,user,account,partition,submit,alloccpus,nnodes,reqmem,elapsedraw,state,"
    "timelimit,exitcode"
)
LATE = "9000s"


def run_and_ask(text: str, *commands: str) -> list[str]:
    """Return what commands of root print long after all the rest of a timeline."""
    entries = "".join(f'  - {{at: {LATE}, as: root, run: "{command}"}}\n' for command in commands)
    scenario = read_scenario(text + entries, file="s.yaml")
    result = World(scenario, model=scenario.model).run()
    assert not result.stalled
    return [command.stdout for command in result.commands[-len(commands) :]]


def sacct(fields: str) -> str:
    """Return a command line that prints all records."""
    return f"sacct -a -D -P -S 2026-11-20 -o {fields}"


def imported(printed: str, folder: Path) -> str:
    """Return the scenario that is made of what sacct printed."""
    (folder / "in.txt").write_text(printed)
    assert main(["import", "sacct", str(folder / "in.txt"), "-o", str(folder / "out.yaml")]) == 0
    return (folder / "out.yaml").read_text()


def jobs_of(printed: str) -> list[str]:
    """Return the lines of jobs; when a run was given up, and so the next submitted, is chance."""
    lines, given_up = [], set()
    for line in printed.splitlines():
        job_id = line.partition("|")[0]
        if "." not in job_id:
            lines.append(re.sub(r"\d{4}-[^|]*", "", line) if job_id in given_up else line)
        if "|REQUEUED|" in line:
            given_up.add(job_id)
    return sorted(lines)


@st.composite
def jobs(draw: st.DrawFn) -> list[str]:
    """Return entries of a timeline: jobs that end in every way that a replay repeats."""
    entries = []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        at = draw(st.integers(0, 40))
        user = draw(st.sampled_from(["alice", "bob"]))
        nodes = draw(st.integers(1, 2))
        size = f"-N{nodes} -n{nodes * draw(st.integers(1, 3))} -t 30 --jobid={number * 100}"
        where = draw(st.sampled_from(["", " -p long", " --mem=50", " -A other"]))
        length = draw(st.integers(0, 50))
        kind = draw(st.sampled_from(["ends", "fails", "killed", "array", "own", "again"]))
        script = {
            "ends": f"srun sleep {length}",
            "fails": f"sleep {length}; exit {1 + length % 7}",
            "killed": f"srun sleep {length}; kill -9 $$",
            "array": f"srun sleep {length}",
            "own": f"sleep {length}; scancel $SLURM_JOB_ID; sleep 9",
            "again": f"sleep {length}; scontrol requeue $SLURM_JOB_ID; sleep 9",
        }[kind]
        if kind == "again":
            script = f"[ $SLURM_RESTART_COUNT ] && exit; {script}"
        more = " -a 0-2,7" if kind == "array" else ""
        entries.append(
            f"{{at: {at}s, as: {user}, run: \"sbatch {size}{where}{more} --wrap '{script}'\"}}"
        )
    return entries


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_a_run_that_is_imported_gives_the_same_jobs(entries: list[str]) -> None:
    """At the same times, of the same sizes, as long, and in the same states."""
    text = HEAD + "timeline:\n" + "".join(f"  - {entry}\n" for entry in entries)
    told, wanted = run_and_ask(text, sacct(ASKED), sacct(COMPARED))
    with tempfile.TemporaryDirectory() as folder:
        again = imported(told, Path(folder))
    assert jobs_of(run_and_ask(again, sacct(COMPARED))[0]) == jobs_of(wanted)
