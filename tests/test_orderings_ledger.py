"""Each clause of the ledger's rules: runs in which slurmctld dies, whose events are edited.

What slurmctld itself does wrong is planted in test_ledger.py.
"""

from functools import cache

import pytest
from msgspec import UNSET

from simctl.orderings.checking import declared
from simctl.orderings.rules import LEDGER
from tests.cluster import Ran, run
from tests.damaged import (
    Damage,
    changed,
    copied,
    doubled,
    dropped,
    everywhere,
    moved,
    told,
    without,
)
from tests.test_ledger import CLUSTER, CRASHES

_MORE = """\
  - {at: 6s, as: alice, run: "scontrol update jobid=2 timelimit=8"}
  - {at: 7s, as: root, run: "scontrol create partitionname=new nodes=n1"}
  - {at: 8s, as: root, run: "scontrol update partitionname=new state=down"}
  - {at: 9s, as: root, run: "scontrol update nodename=n3 state=down reason=dust"}
"""
_AGAIN = "  - {when: exit role=slurmctld rc=9, each: true, fault: {start: slurmctld}}\n"
Row = tuple[tuple[Damage, ...], dict[str, str]]


@cache
def crashed(model: str) -> Ran:
    """Run four jobs and changes of the cluster; slurmctld dies and starts after each kind."""
    crashes = "".join(f"  - {{at: {at_s}s, fault: {{crash: slurmctld}}}}\n" for at_s in CRASHES)
    before, at, after = CLUSTER.partition("  - {at: 10s")
    before = before.replace("timeline:", "slurm_conf: {MinJobAge: 66}\ntimeline:")
    return run(before + _MORE + at + after + crashes + _AGAIN, cluster="", model=model)


def ledger(ran: Ran, *damages: Damage) -> dict[str, str]:
    """Return what the ledger's rules tell of an edited run."""
    ours = {each.name for each in declared() if each.number > LEDGER}
    return {rule: what for rule, what in told(ran, *damages).items() if rule in ours}


def unread(job: int, *starts: int) -> tuple[Damage, ...]:
    """Have slurmctlds not read a job as they start; the first that starts again is 0."""
    return tuple(dropped(f"restored job={job}", each) for each in sorted(starts, reverse=True))


def read(job: int, start: int, **fields: object) -> Damage:
    """Have a slurmctld read something else of a job."""
    return changed(f"restored job={job}", start, **{f"args_{k}": v for k, v in fields.items()})


def died(at_us: int, nth: int = 0) -> Damage:
    """Have a slurmctld die at another time."""
    return changed("exit role=slurmctld rc=9", nth, time_us=at_us)


CTLD_2 = "pid=31"
"""The second slurmctld: who starts at 15 s, and dies at 30 s."""

UPDATE = "REQUEST_UPDATE_JOB job=2 phase=receive"
UPDATED = "RESPONSE_SLURM_RC job=2 args.answers=REQUEST_UPDATE_JOB phase=receive"
MADE = "job_state job=2 state=PENDING"
JOB, STATE, STEP = "told-job-is-kept", "told-state-is-kept", "told-step-is-kept"
FIELD, CHANGE = "told-update-is-kept", "told-change-of-the-cluster-is-kept"
PARTITIONS = {"debug": "UP", "other": "DOWN", "new": "DOWN"}


def gone(state: str) -> dict[str, str]:
    """Return what is told of a job that is not there."""
    return {JOB: f"it was {state}, and slurmctld knows nothing of it"}


def field(name: str, asked: object, there: object) -> dict[str, str]:
    """Return what is told of a field that an update has set."""
    return {FIELD: f"{name} was to be {asked}, and is {there}"}


def over_since(at_us: int) -> tuple[Damage, ...]:
    """Have job 3, which has failed, be forgotten by the fourth start."""
    return changed("job_state job=3 args.from=RUNNING", time_us=at_us), *unread(3, 3)


def cluster(start: int, **fields: object) -> Damage:
    """Have a slurmctld read something else of the cluster."""
    read_too = {f"args_{name}": value for name, value in fields.items()}
    return changed("restored args.nodes=*", start, **read_too)


LOST_RESERVATION = copied("exit role=scontrol", 1, name="reservation_over", role="slurmctld", job=2)
"""After the second update of job 2 the reservation that it waits for is over."""

STARTED = 'fault args.fault="start slurmctld"'
INCOMPLETE = {"name": "incomplete_state", "role": "slurmctld", "args_file": "job_state"}
SAVE = INCOMPLETE | {"name": "state_save", "args_file": None}
CLEAN = changed(STARTED, 1, args_fault="start slurmctld clean")
"""The third slurmctld starts clean."""

OF_1 = copied("exit role=scontrol", 1, name="reservation_over", role="slurmctld", job=1)
EIGHT = changed(UPDATE, args_time_limit_min=8)
"""The first update sets the limit to what the second one does."""

HOLD = changed(UPDATE, 1, args_priority=0, args_time_limit_min=None)
LATER = 4_294_901_756

JOBS: dict[str, Row] = {
    "a job is not read": (unread(2, 0), gone("PENDING")),
    "a job is not read later": (unread(3, 2), gone("FAILED")),
    "one that was over for MinJobAge": (over_since(4_000_000), {}),
    "one that was over for less": (over_since(4_000_001), gone("FAILED")),
    "one that waits anew after that": (
        (*over_since(4_000_000), changed("job_state job=3 args.to=FAILED", args_to="PENDING")),
        gone("FAILED") | {STATE: "it was FAILED|COMPLETING, and is FAILED"},
    ),
    "one of which nodes and sruns alone have talked": (
        (
            without(
                "RESPONSE_SUBMIT_BATCH_JOB job=1 phase=receive",
                "REQUEST_BATCH_JOB_LAUNCH job=1 phase=receive",
                "RESPONSE_JOB_STEP_CREATE step=1.0 phase=receive",
            ),
            *unread(1, 0),
        ),
        {},
    ),
    "one of which slurmctld talks in the moment in which it starts again": (
        (
            without(
                "RESPONSE_SUBMIT_BATCH_JOB job=4 phase=receive",
                "REQUEST_BATCH_JOB_LAUNCH job=4 phase=receive",
            ),
            *unread(4, 0),
            everywhere(f"* job=4 {CTLD_2} phase=send", time_us=15_000_000),
        ),
        {},
    ),
    "one that was told of late": (
        (
            dropped(UPDATED),
            dropped(UPDATED),
            moved("RESPONSE_SUBMIT_BATCH_JOB job=2 phase=receive", after=UPDATED),
            *unread(2, 0),
        ),
        gone("PENDING"),
    ),
    "one that was read, and of which nobody has heard since": (
        (without(f"* job=4 {CTLD_2} phase=send"), *unread(4, 1)),
        gone("RUNNING"),
    ),
    "a state that is older": (
        (read(4, 1, state="RUNNING"),),
        {STATE: "it was CANCELLED|COMPLETING, and is RUNNING"},
    ),
    "a state that nobody has heard of yet": (
        (without(f"* job=4 {CTLD_2} phase=send"), read(4, 2, state="CANCELLED|COMPLETING")),
        {STATE: "it was CANCELLED, and is CANCELLED|COMPLETING"},
    ),
    "a step is not read": (
        (read(1, 0, steps=[]),),
        {STEP: "slurmctld knows nothing of it"},
    ),
    "a step that is over is read": (
        (read(1, 1, steps=["1.0", "1.1"]),),
        {STEP: "slurmctld has it again"},
    ),
    "a step of a job that is not read": (unread(1, 0), gone("RUNNING")),
    "a step that was read of a job that is over": (
        (read(1, 1, state="COMPLETED|COMPLETING"), read(1, 2, steps=[])),
        {STATE: "it was RUNNING, and is COMPLETED|COMPLETING"}
        | {STEP: "slurmctld knows nothing of it"},
    ),
    "a job that is not read after a clean start": ((CLEAN, *unread(2, 1)), {}),
    "a job that is not read after a state file was damaged": (
        (copied("exit role=scontrol", 1, **INCOMPLETE), *unread(2, 1)),
        {},
    ),
    "a job that is not read after a state file could not be written": (
        (copied("exit role=scontrol", 1, **SAVE | {"args_file": "job_state"}), *unread(2, 1)),
        {},
    ),
    "a job that is not read between two damages": (
        (
            copied("exit role=scontrol", 1, **INCOMPLETE),
            copied("exit role=scontrol", -1, **INCOMPLETE),
            *unread(2, 1),
        ),
        {},
    ),
    **{
        f"one that was {state} for MinJobAge": (
            (
                everywhere("job_state job=3 args.to=FAILED", args_to=state),
                everywhere("restored job=3", args_state=state),
                changed(
                    "job_state job=3 args.from=RUNNING",
                    time_us=4_000_000,
                    args_to=f"{state}|COMPLETING",
                ),
                *unread(3, 3),
            ),
            {},
        )
        for state in ("TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY")
    },
    "a job that is not read before a state file was damaged": (
        (copied("exit role=scontrol", -1, **INCOMPLETE), *unread(2, 1)),
        gone("PENDING"),
    ),
    "a job that is not read after a save": (
        (copied("exit role=scontrol", 1, **SAVE), *unread(2, 1)),
        gone("PENDING"),
    ),
}
"""What becomes of jobs and steps: L1 to L3."""

FIELDS: dict[str, Row] = {
    **{
        f"a {name} is not read": (
            (EIGHT, changed(UPDATE, 1, **{f"args_{name}": value, "args_time_limit_min": None})),
            field(name, value, now),
        )
        for name, value, now in (
            ("name", "y", "wrap"),
            ("partition", "y", "debug"),
            ("nice", 4, 0),
            ("comment", "y", ""),
        )
    },
    "an update of before the last death": (
        (read(2, 1, time_limit_min=90),),
        field("time_limit_min", 8, 90),
    ),
    "what was asked for before": (
        (read(2, 0, time_limit_min=7),),
        field("time_limit_min", 8, 7),
    ),
    "what was asked for before, the last is not answered": (
        (dropped(UPDATED, 1), *(read(2, each, time_limit_min=7) for each in range(4))),
        {},
    ),
    "what was asked for last, and not answered": ((dropped(UPDATED, 1),), {}),
    "what nobody asked for": (
        (dropped(UPDATED, 1), read(2, 0, time_limit_min=9)),
        field("time_limit_min", 7, 9),
    ),
    "what was refused": (
        (
            changed(UPDATED, args_return_code=2021),
            changed(UPDATED, 1, args_return_code=2021),
            *(read(2, each, time_limit_min=90) for each in range(4)),
        ),
        {},
    ),
    "a field of a job that is over": (
        (read(2, 0, state="CANCELLED", time_limit_min=90),),
        {STATE: "it was PENDING, and is CANCELLED"},
    ),
    "a field of a job that has changed since": (
        (copied(MADE), moved(MADE, nth=1, after=UPDATED, to=1), read(2, 0, time_limit_min=90)),
        {},
    ),
    "a release": ((read(2, 2, priority=0),), field("priority", 4_294_967_295, 0)),
    "a release of a job with a burst buffer": (
        (copied(MADE), changed(MADE, args_burst_buffer="b"), read(2, 2, priority=0)),
        {},
    ),
    "a limit of one": (
        (changed(MADE, args_burst_buffer="b"), read(2, 2, time_limit_min=90)),
        field("time_limit_min", 8, 90),
    ),
    "a hold": ((EIGHT, HOLD, read(2, 0, priority=LATER)), field("priority", 0, LATER)),
    "a hold of one with a burst buffer": (
        (EIGHT, changed(MADE, args_burst_buffer="b"), HOLD, read(2, 0, priority=LATER)),
        field("priority", 0, LATER),
    ),
    "a release of one with a burst buffer, and a hold that is not answered": (
        (
            changed(MADE, args_burst_buffer="b"),
            changed(UPDATE, 0, args_priority=5, args_time_limit_min=None),
            HOLD,
            dropped(UPDATED, 1),
            read(2, 0, priority=0),
        ),
        {},
    ),
    "a release before a reservation is over": (
        (
            changed(UPDATE, args_time_limit_min=8, args_priority=5),
            LOST_RESERVATION,
        ),
        {},
    ),
    "a release after that": (
        (
            EIGHT,
            changed(UPDATE, 1, args_priority=5),
            LOST_RESERVATION,
            moved("reservation_over", before=UPDATE),
        ),
        field("priority", 5, 0),
    ),
    "a release before the reservation of another job is over": (
        (changed(UPDATE, args_time_limit_min=8, args_priority=5), OF_1),
        field("priority", 5, 0),
    ),
    "a nice value before a reservation is over": (
        (EIGHT, changed(UPDATE, 1, args_nice=9, args_time_limit_min=None), LOST_RESERVATION),
        field("nice", 9, 0),
    ),
    "a hold before a reservation is over": (
        (EIGHT, HOLD, LOST_RESERVATION, read(2, 0, priority=LATER)),
        field("priority", 0, LATER),
    ),
    "an update of before a clean start": ((CLEAN, read(2, 2, time_limit_min=90)), {}),
    "an update of after it": (
        (CLEAN, read(2, 2, priority=0)),
        field("priority", 4_294_967_295, 0),
    ),
    "updates of tasks of an array": (
        (
            changed(UPDATE, args_array_tasks="1"),
            changed(UPDATE, 1, args_array_tasks="1"),
            *(read(2, each, time_limit_min=90) for each in range(4)),
        ),
        {},
    ),
    "an update of a task, and one of its array": (
        (everywhere("job_state job=2", array_job=9), changed(UPDATE, 1, job=9)),
        {},
    ),
    "an update of an array that goes by its own id": (
        (everywhere("job_state job=2", array_job=2), read(2, 0, time_limit_min=90)),
        field("time_limit_min", 8, 90),
    ),
}
"""What becomes of updates of jobs: L4."""


def until(at_s: int) -> Damage:
    """Have the reservation, which begins at 12 s, be over at a time."""
    end_s = 1_767_229_200 + at_s
    return changed("REQUEST_CREATE_RESERVATION phase=receive", args_end_s=end_s)


DOWN = "node_state args.node=n3 args.to=DOWN"
NO_N3 = cluster(0, nodes={"n2": "ALLOCATED|DRAIN"})
LOST_DOWN = {CHANGE: "it was to be DOWN, and is in service"}

CLUSTERS: dict[str, Row] = {
    "a drain": (
        (cluster(0, nodes={"n3": "DOWN"}),),
        {CHANGE: "it was to be DRAIN, and is in service"},
    ),
    "a DOWN": (
        (cluster(0, nodes={"n2": "IDLE|DRAIN", "n3": "IDLE"}),),
        {CHANGE: "it was to be DOWN, and is IDLE"},
    ),
    "a DOWN that is drained": (
        (cluster(0, nodes={"n2": "IDLE|DRAIN", "n3": "IDLE|DRAIN"}),),
        {CHANGE: "it was to be DOWN, and is IDLE|DRAIN"},
    ),
    "a resume": (
        (cluster(3, nodes={"n2": "IDLE|DRAIN", "n3": "DOWN"}),),
        {CHANGE: "it was to be RESUME, and is IDLE|DRAIN"},
    ),
    "a drain of before the last death": (
        (cluster(2, nodes={"n3": "DOWN"}),),
        {CHANGE: "it was to be DRAIN, and is in service"},
    ),
    "a partition's state": (
        (cluster(0, partitions=PARTITIONS | {"other": "UP"}),),
        {CHANGE: "it was to be DOWN, and is UP"},
    ),
    "a state of a new partition": (
        (cluster(0, partitions=PARTITIONS | {"new": "UP"}),),
        {CHANGE: "it was to be DOWN, and is UP"},
    ),
    "a new partition": (
        (cluster(0, partitions={"debug": "UP", "other": "DOWN"}),),
        {CHANGE: "it was to be DOWN, and is not there"},
    ),
    "a new partition whose state nobody has changed": (
        (
            without("REQUEST_UPDATE_PARTITION args.name=new"),
            cluster(0, partitions={"debug": "UP", "other": "DOWN"}),
        ),
        {CHANGE: "it was to be there, and is not there"},
    ),
    "a reservation": ((cluster(0, reservations=[]),), {CHANGE: "slurmctld knows nothing of it"}),
    "a reservation that was not made": (
        (
            changed("RESPONSE_CREATE_RESERVATION phase=receive", args_error_code=5),
            cluster(0, reservations=[]),
        ),
        {},
    ),
    "a deletion": ((cluster(2, reservations=["r"]),), {CHANGE: "it was deleted, and is back"}),
    "a deletion that is not answered": (
        (
            without("RESPONSE_SLURM_RC args.answers=REQUEST_DELETE_RESERVATION phase=receive"),
            cluster(2, reservations=["r"]),
        ),
        {},
    ),
    "a node that comes back by itself": (
        (copied(DOWN, args_from="DOWN", args_to="IDLE", cause=UNSET), NO_N3),
        {},
    ),
    "a node that is taken into service upon a request that is lost": (
        (copied(DOWN, args_from="DOWN", args_to="IDLE"), NO_N3),
        LOST_DOWN,
    ),
    "a node that ends a job meanwhile": (
        (copied(DOWN, args_from="DOWN", args_to="DOWN|COMPLETING", cause=UNSET), NO_N3),
        LOST_DOWN,
    ),
    "a node that came back before": (
        (
            copied("node_state args.node=n3", args_from="DOWN", args_to="IDLE", cause=UNSET),
            NO_N3,
        ),
        LOST_DOWN,
    ),
    "a node that comes back later": (
        (
            copied(DOWN, args_from="DOWN", args_to="IDLE", cause=UNSET),
            moved("node_state args.node=n3 args.to=IDLE", nth=-1, after="restored args.nodes=*"),
            NO_N3,
        ),
        LOST_DOWN,
    ),
    "a drained node that comes back by itself": (
        (
            copied(
                "node_state args.to=ALLOCATED|DRAIN",
                args_from="ALLOCATED|DRAIN",
                args_to="ALLOCATED",
                cause=UNSET,
            ),
            cluster(0, nodes={"n3": "DOWN"}),
        ),
        {},
    ),
    "a drain, and a resume that is not answered": (
        (
            dropped("RESPONSE_SLURM_RC args.answers=REQUEST_UPDATE_NODE phase=receive", -1),
            cluster(3, nodes={"n2": "IDLE|DRAIN", "n3": "DOWN"}),
        ),
        {},
    ),
    "a DOWN, and a drain that is not answered": (
        (
            changed("REQUEST_UPDATE_NODE phase=receive", 1, args_node_names="n3"),
            dropped("RESPONSE_SLURM_RC args.answers=REQUEST_UPDATE_NODE phase=receive", 1),
            cluster(0, nodes={"n3": "IDLE"}),
        ),
        {CHANGE: "it was to be DOWN, and is IDLE"},
    ),
    "a DOWN of all": (
        (changed("REQUEST_UPDATE_NODE phase=receive", args_node_names="all"),),
        {CHANGE: "it was to be DOWN, and is in service"},
    ),
    "a DOWN of nodes that nobody can read": (
        (changed("REQUEST_UPDATE_NODE phase=receive", args_node_names="n[3"), NO_N3),
        {},
    ),
    "a partition that is deleted": (
        (
            changed(
                "REQUEST_UPDATE_PARTITION args.name=new phase=receive",
                name="REQUEST_DELETE_PARTITION",
            ),
            *(cluster(each, partitions={"debug": "UP", "other": "DOWN"}) for each in range(4)),
        ),
        {},
    ),
    "a new partition, and a state that is not answered": (
        (
            dropped("RESPONSE_SLURM_RC args.answers=REQUEST_UPDATE_PARTITION phase=receive"),
            cluster(0, partitions={"debug": "UP", "other": "DOWN"}),
        ),
        {CHANGE: "it was to be there, and is not there"},
    ),
    "a reservation that was changed": (
        (changed("REQUEST_DELETE_RESERVATION phase=receive", name="REQUEST_UPDATE_RESERVATION"),),
        {},
    ),
    "a reservation that slurmctld has named": (
        (changed("REQUEST_CREATE_RESERVATION phase=receive", args_name=""),),
        {},
    ),
    "a reservation that is made anew": (
        (
            moved(
                "REQUEST_DELETE_RESERVATION phase=receive",
                before="REQUEST_CREATE_RESERVATION phase=receive",
            ),
            changed("REQUEST_DELETE_RESERVATION phase=receive", pid=1),
        ),
        {CHANGE: "slurmctld knows nothing of it"},
    ),
    "a node that comes back upon something else": (
        (
            lambda events: copied(
                DOWN,
                args_from="DOWN",
                args_to="IDLE",
                cause=next(e.seq for e in events if e.name == "REQUEST_UPDATE_JOB") + 1,
            )(events),
            NO_N3,
        ),
        {},
    ),
    "a resume of all": (
        (
            changed("REQUEST_UPDATE_NODE phase=receive", -1, args_node_names="ALL"),
            cluster(3, nodes={"n2": "IDLE|DRAIN", "n3": "IDLE"}),
        ),
        {CHANGE: "it was to be RESUME, and is IDLE|DRAIN"},
    ),
    "a drain, and an update of something else": (
        (
            changed("REQUEST_UPDATE_NODE phase=receive", -1, args_state=""),
            cluster(3, nodes={"n2": "IDLE|DRAIN", "n3": "DOWN"}),
        ),
        {},
    ),
    "a partition's state before an update of something else": (
        (
            changed(
                "REQUEST_UPDATE_PARTITION args.name=other phase=receive",
                args_name="new",
                args_state="",
            ),
            cluster(0, partitions=PARTITIONS | {"new": "UP"}),
        ),
        {CHANGE: "it was to be DOWN, and is UP"},
    ),
    "a reservation that is over": ((until(15), cluster(0, reservations=[])), {}),
    "a reservation that is not": (
        (until(16), cluster(0, reservations=[])),
        {CHANGE: "slurmctld knows nothing of it"},
    ),
}
"""What becomes of nodes, partitions and reservations: L5."""


SUBMITTED = "RESPONSE_SUBMIT_BATCH_JOB job={} phase=receive"
CREATED = "RESPONSE_JOB_STEP_CREATE step={} phase=receive"
GIVEN_2 = changed(SUBMITTED.format(5), job=2)
"""The last job of all is told the id of the second."""

TWICE = {"job-id-given-once": "another client has it too"}
STEP_TWICE = {"step-id-given-once": "another srun has it too"}
RUN_2 = (everywhere("* job=5 step=5.batch", job=2, step="2.batch"),)
"""The step daemon of job 5 runs the script of job 2, after the one of job 2."""

ENDS_AGAIN = changed("job_state job=4 args.to=CANCELLED", args_from="RUNNING")

ONCE: dict[str, Row] = {
    "a job id is given twice": ((GIVEN_2,), TWICE),
    "a client hears twice of its job": ((doubled(SUBMITTED.format(5)),), {}),
    "a step id is given twice": ((changed(CREATED.format("1.1"), step="1.0"),), STEP_TWICE),
    "a step that is not made": (
        (changed(CREATED.format("1.1"), step="1.0", args_error_code=2021),),
        {},
    ),
    "a job id after a state file was damaged": (
        (GIVEN_2, copied("exit role=scontrol", 1, **INCOMPLETE)),
        {},
    ),
    "a job id after a state file could not be written": (
        (GIVEN_2, copied("exit role=scontrol", 1, **INCOMPLETE | {"name": "state_save"})),
        {},
    ),
    "a job id after a save": (
        (
            GIVEN_2,
            copied("exit role=scontrol", 1, **SAVE),
        ),
        TWICE,
    ),
    "a job id before a state file was damaged": (
        (GIVEN_2, copied("exit role=scontrol", -1, **INCOMPLETE)),
        TWICE,
    ),
    "a job id before and after a clean start": (
        (GIVEN_2, changed(STARTED, 2, args_fault="start slurmctld clean")),
        {},
    ),
    "a job id after a clean start": (
        (
            copied(SUBMITTED.format(5), pid=99),
            changed(STARTED, 2, args_fault="start slurmctld clean"),
        ),
        TWICE,
    ),
    "a script runs twice": (RUN_2, {"run-begins-once": "its script runs twice"}),
    "a script runs again": (
        (*RUN_2, changed("REQUEST_BATCH_JOB_LAUNCH job=2 phase=receive", 1, args_restart_cnt=1)),
        {},
    ),
    "a run ends twice": ((ENDS_AGAIN,), {"run-ends-once": "it has ended before"}),
    "a run whose first end nobody was told of": (
        (ENDS_AGAIN, without(f"* job=4 {CTLD_2} phase=send")),
        {},
    ),
    "a job id is given to an allocation as well": (
        (copied(SUBMITTED.format(5), name="RESPONSE_RESOURCE_ALLOCATION", pid=99),),
        TWICE,
    ),
    "a step id is given again after a requeue": (
        (
            changed(CREATED.format("1.1"), step="1.0"),
            copied(
                "step_state step=1.0 args.to=COMPLETED",
                name="job_state",
                step=UNSET,
                args_from="RUNNING",
                args_to="PENDING",
            ),
        ),
        {STATE: "it was PENDING, and is RUNNING"},
    ),
}
"""What is there once: L6 to L9."""

FORGETS: dict[str, Row] = {
    # Job 4 was told of at 4.0001 s.
    "a job id that may be forgotten": ((died(10_000_099), changed(SUBMITTED.format(5), job=4)), {}),
    "a job id that was saved": ((died(10_000_100), changed(SUBMITTED.format(5), job=4)), TWICE),
    "a job id of one that has stopped": (
        (
            changed("exit role=slurmctld rc=9", time_us=10_000_099, rc=0),
            changed(SUBMITTED.format(5), job=4),
        ),
        TWICE,
    ),
    "a job id twice after a death": ((copied(SUBMITTED.format(5), pid=99),), TWICE),
    "a job id twice before a death": (
        (died(10_000_099), copied(SUBMITTED.format(4), pid=99)),
        TWICE,
    ),
    # Job 2 was told of at 2.0001 s, and its last update at 6.0001 s.
    "a job that may not be saved": ((died(8_000_099), *unread(2, 0)), {}),
    "a job that is saved": ((died(8_000_100), *unread(2, 0)), gone("PENDING")),
    "an update that may not be saved": ((died(12_000_099), read(2, 0, time_limit_min=7)), {}),
    "an update that is saved": (
        (died(12_000_100), read(2, 0, time_limit_min=7)),
        field("time_limit_min", 8, 7),
    ),
    "a job that was lost stays lost": ((died(8_000_099), *unread(2, 0, 1)), {}),
    "a job id, and the last slurmctld does not end": (
        (died(10_000_100), dropped("exit role=slurmctld", -1), changed(SUBMITTED.format(5), job=4)),
        TWICE,
    ),
    "a job of one that has stopped": (
        (changed("exit role=slurmctld rc=9", time_us=8_000_099, rc=0), *unread(2, 0)),
        gone("PENDING"),
    ),
    "a job of one that had just saved": (
        (died(8_000_099), copied("exit role=scontrol", 1, **SAVE), *unread(2, 0)),
        gone("PENDING"),
    ),
}
"""What model modern may forget: what was told less than 6 s before slurmctld died."""

DENIED = "RESPONSE_SLURM_RC job=2 args.answers=REQUEST_UPDATE_JOB phase=send"
NOT_THERE = {
    "restored-job-is-there": "slurmctld read it as PENDING, and says that there is no such job"
}
UNKNOWN = 2017
RAN_ON = "exit role=task step=1.2"
QUIET = without("node_state args.to=DOWN")
"""What is set DOWN excuses tasks that run on."""


def runs_on(at_us: int) -> tuple[Damage, ...]:
    """Have the last task of job 1, which is over at 51.0011 s, end at another time."""
    return QUIET, changed(RAN_ON, time_us=at_us)


def denied(job: int = 2, code: object = UNKNOWN, **fields: object) -> Damage:
    """Have the third slurmctld, which has read job 2 as PENDING, answer that it is not there."""
    return changed(DENIED, 2, job=job, args_return_code=code, **fields)


def later_denied(nth: int) -> Damage:
    """Have a job be denied with the answer to another request."""
    return copied(
        "RESPONSE_SLURM_RC args.answers=REQUEST_UPDATE_NODE phase=send",
        nth,
        job=2,
        args_return_code=UNKNOWN,
        args_answers="REQUEST_UPDATE_JOB",
    )


AFTER: dict[str, Row] = {
    "a state that does not follow": (
        (changed("job_state job=4 args.from=RUNNING", args_from="PENDING"),),
        {"restored-job-is-there": "it was RUNNING when it was read, and then PENDING"},
    ),
    "a job that is over goes on": (
        (
            everywhere("job_state job=5", job=3),
            changed("job_state job=3 state=PENDING", 1, args_from="RUNNING"),
        ),
        {"restored-job-is-there": "it was FAILED when it was read, and then RUNNING"},
    ),
    "a job that is over is made anew": ((everywhere("job_state job=5", job=3),), {}),
    "a job that runs is made anew": (
        (everywhere("job_state job=5", job=1),),
        {"restored-job-is-there": "it was RUNNING when it was read, and then None"}
        | {"run-ends-once": "it has ended before"},
    ),
    "a job is denied": ((denied(),), NOT_THERE),
    "a job is denied by name": ((denied(code="ESLURM_INVALID_JOB_ID"),), NOT_THERE),
    **{
        f"a job is denied to a {each}": ((denied(args_answers=each),), NOT_THERE)
        for each in ("REQUEST_COMPLETE_JOB_ALLOCATION", "REQUEST_JOB_STEP_CREATE")
    },
    "a job is denied to who may ask for its tasks": (
        (denied(args_answers="REQUEST_KILL_JOB"),),
        {},
    ),
    "something else is denied of a job": ((denied(code=2021),), {}),
    "a step of a job is denied": ((denied(step="2.0"),), {}),
    "a node denies a job": ((denied(role="slurmd"),), {}),
    "tasks of an array are denied": ((denied(), changed(UPDATE, 2, args_array_tasks="1")), {}),
    "a job that is over is denied": ((denied(job=3),), {}),
    "a job that is over by then is denied": (
        (
            copied("RESPONSE_SLURM_RC job=4 args.answers=REQUEST_KILL_JOB phase=send"),
            changed(
                "RESPONSE_SLURM_RC job=4 args.answers=REQUEST_KILL_JOB phase=send",
                1,
                args_return_code=UNKNOWN,
                args_answers="REQUEST_UPDATE_JOB",
            ),
        ),
        {},
    ),
    "a task ends with its job": (runs_on(51_001_100), {}),
    "a task ends after its job": (
        runs_on(51_001_101),
        {"over-runs-nowhere": "its run was over, and task 45 on n1 ran on"},
    ),
    "a task of a job does not end": (
        (QUIET, dropped(RAN_ON)),
        {"over-runs-nowhere": "its run was over, and task 45 on n1 ran on"},
    ),
    "a task ends after its job, and a node was DOWN": ((changed(RAN_ON, time_us=60_000_000),), {}),
    "a task ends after its job, and a node has crashed": (
        (*runs_on(60_000_000), changed(STARTED, args_fault="crash n1")),
        {},
    ),
    **{
        f"a task ends after its job, and there is a {each} of slurmctld": (
            (*runs_on(60_000_000), changed(STARTED, args_fault=f"{each} slurmctld")),
            {"over-runs-nowhere": "its run was over, and task 45 on n1 ran on"},
        )
        for each in ("stop", "restart")
    },
    "a job is denied upon nothing": ((denied(cause=UNSET),), {}),
    "a job is denied by the next slurmctld, once it is over": ((later_denied(-1),), {}),
    "a job is denied by the next slurmctld, before it is over": (
        (
            copied(
                "RESPONSE_SUBMIT_BATCH_JOB job=5 phase=send",
                name="RESPONSE_SLURM_RC",
                job=2,
                args_return_code=UNKNOWN,
                args_answers="REQUEST_UPDATE_JOB",
            ),
        ),
        NOT_THERE,
    ),
    "a program of the site outlives a job": (
        (QUIET, copied("exec role=task step=1.2", role="script", pid=99)),
        {},
    ),
    "a program of no step outlives a job": (
        (QUIET, copied("exec role=task step=1.2", step=UNSET, pid=99)),
        {},
    ),
}
"""What is so afterwards: L10 and L11."""

ROWS = JOBS | FIELDS | CLUSTERS | ONCE | AFTER


def test_nothing_is_found_in_the_runs_themselves() -> None:
    """Of either model."""
    assert ledger(crashed("guide")) == {}
    assert ledger(crashed("modern")) == {}


@pytest.mark.parametrize("name", ROWS)
def test_the_ledger_tells_what_is_not_kept_and_nothing_else(name: str) -> None:
    """Model guide saves before it answers."""
    damages, wanted = ROWS[name]
    assert ledger(crashed("guide"), *damages) == wanted


@pytest.mark.parametrize("name", FORGETS)
def test_model_modern_may_forget_what_it_was_told_at_last(name: str) -> None:
    """Within 6 s of its death, to the microsecond."""
    damages, wanted = FORGETS[name]
    assert ledger(crashed("modern"), *damages) == wanted
