"""Every state, flag and reason that docs/jobs.md calls reachable is reached by a run."""

import json
from typing import Any

import pytest
from msgspec import UNSET

from simctl.scenario.load import read_scenario
from simctl.wire.ids import SECOND
from simctl.wire.states import JobBase, JobFlag, NodeBase, NodeFlag, Reason
from simctl.world import World

CLUSTER = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions:
  - {name: debug, nodes: "n[1-2]", default: true}
  - {name: short, nodes: n1, max_time: 10m}
  - {name: high, nodes: "n[1-2]", priority_tier: 9}
users: {alice: 1001, op: {uid: 1002, admin: operator}}
programs:
  ./hungry: {runs: 1s, oom: true}
  /prolog: {runs: 5s}
  /broken: {exit: 1}
files:
  bb.sh: |
    #!/bin/sh
    #DW jobdw type=scratch capacity=60GiB access_mode=striped
    sleep 10
burst_buffer: {pools: {wlm_pool: {capacity: 100GiB, granularity: 1GiB}}}
"""
DATAWARP = "conf BurstBufferType=burst_buffer/datawarp"
STAGES = (DATAWARP, "0s alice sbatch bb.sh")
RUNS = "0s alice sbatch --wrap 'sleep 100'"
WIDE = "0s alice sbatch -N2 --wrap 'sleep 100'"
WAITS = "1s alice sbatch -N2 --wrap true"
LOSES = "1s root scontrol update nodename=n1 state=down reason=x"
LOSES_N2 = LOSES.replace("n1", "n2")
DRAINS = "0s root scontrol update nodename=n1 state=drain reason=x"
FAILS = "0s alice sbatch --wrap 'exit 3'"
HUNGRY = "0s alice sbatch --wrap ./hungry"

NODES: dict[str, tuple[str, ...]] = {
    "UNKNOWN": (RUNS,),
    "IDLE": (RUNS,),
    "ALLOCATED": (WIDE,),
    "MIXED": ("conf SelectType=select/cons_tres", RUNS),
    "DOWN": (LOSES,),
    "DRAIN": (DRAINS,),
    "COMPLETING": (RUNS,),
    "NO_RESPOND": ("0s crash n1", RUNS),
}
STATES: dict[str, tuple[str, ...]] = {
    "PENDING": (RUNS,),
    "RUNNING": (RUNS,),
    "COMPLETED": (RUNS,),
    "COMPLETING": (RUNS,),
    "SUSPENDED": (RUNS, "1s op scontrol suspend 1"),
    "CANCELLED": (RUNS, "1s alice scancel 1"),
    "FAILED": (FAILS,),
    "TIMEOUT": ("0s alice sbatch -t1 --wrap 'sleep 1000'",),
    "NODE_FAIL": (RUNS, LOSES),
    "PREEMPTED": (
        "conf PreemptType=preempt/partition_prio PreemptMode=CANCEL",
        WIDE,
        "1s alice sbatch -p high -N2 --wrap true",
    ),
    "DEADLINE": (WIDE, "1s alice sbatch -N2 -t1 --deadline=now+80 --wrap true"),
    "OUT_OF_MEMORY": (HUNGRY,),
    "CONFIGURING": ("conf PrologSlurmctld=/prolog", RUNS),
    "REQUEUE": (RUNS, "1s alice scontrol requeue 1"),
    "SPECIAL_EXIT": (RUNS, "1s alice scontrol requeuehold state=SpecialExit 1"),
    "STOPPED": (RUNS, "1s alice scancel -s STOP 1"),
    "RESIZING": ("model modern", "0s alice sbatch -N2 --no-kill --wrap 'sleep 100'", LOSES_N2),
    "STAGE_OUT": STAGES,
}
REASONS: dict[str, tuple[str, ...]] = {
    "None": (RUNS,),
    "Resources": (WIDE, WAITS),
    "Priority": (WIDE, WAITS, "2s alice sbatch -N2 --wrap true"),
    str(Reason.NODES_NOT_AVAIL): (DRAINS, "1s alice sbatch -N2 --wrap true"),
    "ReqNodeNotAvail": (DRAINS, "1s alice sbatch -w n1 --wrap true"),
    "Reservation": (
        "0s op scontrol create reservation=r starttime=now+1hour duration=10 users=alice nodes=n1",
        "1s alice sbatch --reservation=r -t5 --wrap true",
    ),
    "ReservationDeleted": (
        "0s op scontrol create reservation=r starttime=now duration=1 users=alice nodes=n1",
        "1s alice sbatch --reservation=r -t5 --wrap true",
        "70s alice squeue -h -o %r",
    ),
    "PartitionNodeLimit": ("0s alice sbatch -p short -N2 --wrap true",),
    "PartitionTimeLimit": ("0s alice sbatch -p short -t60 --wrap true",),
    "PartitionConfig": ("0s alice sbatch -N2 -n9 --wrap true",),
    "PartitionDown": (WIDE, WAITS, "2s root scontrol update partitionname=debug state=down"),
    "PartitionInactive": (
        WIDE,
        WAITS,
        "2s root scontrol update partitionname=debug state=inactive",
    ),
    "JobHeldUser": ("0s alice sbatch --hold --wrap true",),
    "JobHeldAdmin": (WIDE, WAITS, "2s op scontrol hold 2"),
    "BeginTime": ("0s alice sbatch --begin=now+1hour --wrap true",),
    "Dependency": (WIDE, "1s alice sbatch -d afterok:1 --wrap true"),
    "DependencyNeverSatisfied": (FAILS, "1s alice sbatch -d afterok:1 --wrap true"),
    "JobArrayTaskLimit": ("0s alice sbatch --array=0-3%1 --wrap 'sleep 100'",),
    "Prolog": ("conf PrologFlags=Alloc Prolog=/prolog", RUNS),
    "JobHoldMaxRequeue": ("conf PrologSlurmctld=/broken", RUNS),
    "BadConstraints": (WIDE, "1s alice srun --immediate -N2 true"),
    "NonZeroExitCode": (FAILS,),
    "JobLaunchFailure": ("0s alice sbatch --wrap 'kill -9 $$'",),
    "TimeLimit": STATES["TIMEOUT"],
    "DeadLine": STATES["DEADLINE"],
    "NodeDown": (RUNS, LOSES),
    "OutOfMemory": (HUNGRY,),
    "job requeued in held state": (RUNS, "1s alice scontrol requeuehold 1"),
    "job requeued in special exit state": STATES["SPECIAL_EXIT"],
    "launch failed requeued held": ("conf Prolog=/broken", RUNS),
    "BurstBufferResources": (*STAGES, "1s alice sbatch bb.sh"),
    "BurstBufferStageIn": STAGES,
    "BurstBufferOperation": ("0s fault fail dw_pre_run", *STAGES),
    "Cleaning": ("model modern", "0s fault fail select_g_job_begin", *STAGES),
}


def world(entries: tuple[str, ...], until_s: int | None) -> World:
    """Make a world of entries: ``conf KEY=VALUE``, ``TIME crash NODE``, ``TIME USER COMMAND``.

    ``TIME fault KIND PATTERN`` is a fault, ``model modern`` the model.
    """
    conf: dict[str, str] = {}
    deeds: list[dict[str, Any]] = []
    for entry in entries:
        alone = entry.partition(" ")[0] in ("conf", "model")
        first, second, rest = (entry[:5].strip(), "", entry) if alone else entry.split(" ", 2)
        if first == "model":
            continue
        if second == "fault":
            kind, pattern = rest.split(" ", 1)
            deeds.append({"at": first, "fault": {kind: pattern}})
        elif first == "conf":
            conf |= dict(pair.split("=", 1) for pair in rest.split()[1:])
        elif second == "crash":
            deeds.append({"at": first, "fault": {"crash": rest}})
        else:
            deeds.append({"at": first, "as": second, "run": rest})
    keys = {"slurm_conf": conf, "timeline": deeds}
    text = CLUSTER + "".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items())
    until_us = until_s * SECOND if until_s is not None else None
    model = "modern" if "model modern" in entries else ""
    made = World(read_scenario(text, file="s.yaml"), until_us=until_us, model=model)
    made.trace.add_sink(made.events.append)
    return made


def changes(of: World, name: str) -> set[str]:
    """Return the states and flags that jobs or nodes have had, and reasons after a ``#``."""
    found: set[str] = set()
    for event in of.events:
        if event.name == name and event.args is not UNSET:
            for state in (event.args["from"], event.args["to"]):
                found |= set(state.split("|")) if state else set()
            found.add(f"#{event.args['reason']}")
    return found


@pytest.mark.parametrize("word", NODES)
def test_every_state_and_flag_of_nodes_is_reached(word: str) -> None:
    """Some change of a node's state has it."""
    ran = world(NODES[word], None)
    ran.run()
    assert word in changes(ran, "node_state")


@pytest.mark.parametrize("word", STATES)
def test_every_state_and_flag_of_jobs_is_reached(word: str) -> None:
    """Some change of a job's state has it."""
    ran = world(STATES[word], None)
    ran.run()
    assert word in changes(ran, "job_state")


@pytest.mark.parametrize("word", REASONS)
def test_every_reason_is_reached(word: str) -> None:
    """A change of state has it, or a job that still waits when the run is stopped."""
    seen = set()
    for until_s in (5, None):
        ran = world(REASONS[word], until_s)
        result = ran.run()
        seen |= {row.reason for row in result.rows}
        seen |= {row.reason.partition(",")[0] for row in result.rows}
        seen |= {line for each in result.commands for line in each.stdout.splitlines()}
        seen |= {text[1:] for text in changes(ran, "job_state") if text[0] == "#"}
    assert word in seen


def test_nothing_that_is_built_is_left_out() -> None:
    """What may be reached stands in a table above."""
    flags = [str(flag.name) for flag in JobFlag if flag]
    assert {*STATES} == {*flags, *(base.name for base in JobBase)}
    flags = [str(flag.name) for flag in NodeFlag if flag]
    assert {*NODES} == {*flags, *(base.name for base in NodeBase)}
    assert {reason.value for reason in Reason} <= {*REASONS}
