"""What of slurmctld's records lies in its state files: each field is said to be kept, or how.

A field is kept as it is, kept in another form (`otherwise`), or left out because the restart
makes it anew (`rebuilt`). A field that no list below names is an error at import.
"""

from collections.abc import Mapping
from typing import Any, Final, get_type_hints

import attrs
import msgspec

from simctl.ctld.state.records import (
    JobArray,
    JobRecord,
    NodeRecord,
    PartRecord,
    ReservationRecord,
    StepRecord,
)
from simctl.wire.resources import Demand

Client = tuple[int, str]
"""A client by its process and its address; it is found again if it lives."""


class GoneJob(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A job that is purged, as far as others still ask what became of it."""

    job_id: int
    array_task: int
    state: tuple[int, int]
    start_us: int
    end_us: int
    staged_out: bool
    burst_buffer: str


JobRef = int | GoneJob


class SavedNeed(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a dependency."""

    kind: str
    job: JobRef | None = None
    array: int | None = None
    task: int = -1
    delay_us: int = 0


class SavedDependency(msgspec.Struct, frozen=True, kw_only=True):
    """A dependency."""

    text: str
    needs: tuple[SavedNeed, ...]
    any_will_do: bool


class SavedShare(msgspec.Struct, frozen=True, kw_only=True):
    """What a job has of a node, by the node's name."""

    node: str
    cpus: int
    memory_mb: int
    gres: dict[str, int]
    cores: str
    """Which cpus: a set of bits, as a hexadecimal number; empty while it has none."""

    gpus: tuple[int, ...] | None


@attrs.frozen(kw_only=True)
class Form:
    """How the records of a class are kept."""

    record: type
    as_is: frozenset[str]
    otherwise: Mapping[str, Any]
    rebuilt: frozenset[str]
    struct: type[msgspec.Struct]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


class UnsaidFieldError(TypeError):
    """A record has a field that no list says how to save, or lacks one that a list names."""


def form_of(
    record: type, tag: str, *, as_is: str, otherwise: Mapping[str, Any] | None = None, rebuilt: str
) -> Form:
    """Return how the records of a class are kept.

    Raises:
        UnsaidFieldError: A field is said twice or not at all.
    """
    kept, others, left_out = _names(as_is), dict(otherwise or {}), _names(rebuilt)
    fields = [each.name for each in attrs.fields(record)]
    said = [*kept, *others, *left_out]
    wrong = sorted({*said, *fields} - ({*said} & {*fields}))
    twice = sorted({name for name in said if said.count(name) > 1})
    if wrong or twice:
        raise UnsaidFieldError(
            f"{record.__name__}: {', '.join([*wrong, *twice])}: each field is to be kept as it is, "
            "otherwise, or rebuilt, and only fields are; see saved_records.py"
        )
    hints = get_type_hints(record)
    members = [(name, hints[name]) for name in fields if name in kept]
    struct = msgspec.defstruct(
        f"Saved{record.__name__}",
        [*members, *others.items()],
        tag=tag,
        tag_field="record",
        frozen=True,
        kw_only=True,
    )
    return Form(record=record, as_is=kept, otherwise=others, rebuilt=left_out, struct=struct)


DEMAND: Final = form_of(
    Demand,
    "demand",
    as_is="""min_nodes max_nodes num_tasks cpus_per_task ntasks_per_node cpus_per_node
        memory_per_node_mb memory_per_cpu_mb uses_memory gres whole overcommit""",
    otherwise={"required": tuple[str, ...], "excluded": tuple[str, ...]},
    rebuilt="",
)

STEP: Final = form_of(
    StepRecord,
    "step",
    as_is="""step_id name layout node_list cpus_per_task exact no_kill overcommit start_us clock_us
        time_limit_min limit_us exit_code suspended_before_us timed_out cancel_uid submit_line
        ckpt_interval_min ckpt_us ckpt_dir packed_job packed_record""",
    otherwise={"srun": Client | None, "reported": tuple[int, ...]},
    rebuilt="job about switch_job check_job reports limit_timer view",
)

_SAVED_STEP: Any = STEP.struct

JOB: Final = form_of(
    JobRecord,
    "job",
    as_is="""job_id desc submit_us batch requeue time_limit_min name priority place reason
        lasting_reason held_by_user hold_text nice eligible_us accrue_us array_task queue_number
        queued start_us end_us limit_us exit_code restart_cnt uncounted_runs
        launch_failures suspensions unanswered_launches
        epilog_running node_list planned_us planned_nodes evaluated_us scheduler batch_host
        submit_host submit_pid next_step_id preempt_us warned special_exit suspend_us suspended_us
        switched_us before_suspension_us db_index waited_for cancel_uid derived_exit_code
        batch_start_us launched_us begin_us
        burst_buffer bb_state bb_reason bb_answer state_desc system_comment
        admin_comment expected_us prolog_running staged_out stage_out_due stage_out_over
        pre_run_status hurry prolog_slurmctld_runs env_sup tres tres_req ckpt_us ckpt_requeue_dir
        ckpt_preempted restart_dir packed_record billing""",
    otherwise={
        "parts": tuple[str, ...],
        "part": str,
        "state": tuple[int, int],
        "client": Client | None,
        "demand": DEMAND.struct,
        "dependency": SavedDependency | None,
        "array": int | None,
        "prologs_out": tuple[str, ...],
        "nodes": tuple[str, ...],
        "shares": tuple[SavedShare, ...],
        "completing_nodes": tuple[str, ...],
        "nodes_lost": tuple[str, ...],
        "steps": tuple[_SAVED_STEP, ...],
        "gives_way": tuple[int, ...],
        "step_waiters": tuple[tuple[Client, int], ...],
    },
    rebuilt="""about check_job gpus cores awaited_ends left limit_timer warn_timer deadline_timer
        begin_timer view prologs_us told""",
)

ARRAY: Final = form_of(
    JobArray,
    "array",
    as_is="job_id tasks limit waiting running",
    otherwise={
        "rest": JobRef | None,
        "first": JobRef | None,
        "records": tuple[tuple[int, JobRef], ...],
    },
    rebuilt="",
)

NODE: Final = form_of(
    NodeRecord,
    "node",
    as_is="""name features reason reason_uid reason_us start_us last_busy_us invalid_registrations
        start_missed booted_us slurmd_start_us""",
    otherwise={"base": int, "flags": int},
    rebuilt="index address total free jobs completing last_response_us free_cores",
)

PART: Final = form_of(
    PartRecord,
    "part",
    as_is="""name default max_time_min default_time_min max_nodes min_nodes tier exclusive
        preempt_mode grace_time_s root_only allow_accounts deny_accounts def_mem_per_cpu_mb
        def_mem_per_node_mb""",
    otherwise={"nodes": tuple[str, ...], "state": str},
    rebuilt="uniform_cpus queue reserved_queue waiting examined_to mask widest_cpus",
)

RESV: Final = form_of(
    ReservationRecord,
    "resv",
    as_is="""name start_us end_us users accounts flags maintenance overlaps burst_buffer tres""",
    otherwise={"nodes": tuple[str, ...]},
    rebuilt="",
)


class SavedController(
    msgspec.Struct, frozen=True, kw_only=True, tag="slurmctld", tag_field="record"
):
    """What slurmctld itself goes on counting from."""

    next_job_id: int
    last_place: int
    last_priority: int
    last_queue_number: int
    last_runs: tuple[tuple[int, int], ...]
    preempted: tuple[int, ...]
    awaited: tuple[tuple[int, Client], ...]
    """Who waits for jobs to be over."""
    outlasting: tuple[tuple[int, Client], ...] = ()
    """Whose job was purged while they were still there."""


class SavedLeftovers(
    msgspec.Struct, frozen=True, kw_only=True, tag="leftovers", tag_field="record"
):
    """Runs of jobs that are over, which a node has yet to report gone."""

    node: str
    runs: tuple[tuple[int, int], ...]


class SavedReservations(
    msgspec.Struct, frozen=True, kw_only=True, tag="reservations", tag_field="record"
):
    """How many reservations have been named."""

    last_reservation: int


def kept(form: Form, record: Any, **otherwise: Any) -> Any:
    """Return what is kept of a record. Pure."""
    return form.struct(**{name: getattr(record, name) for name in form.as_is}, **otherwise)


def decoder(*kinds: Any) -> msgspec.json.Decoder[Any]:
    """Return what reads records of several kinds."""
    union: Any = kinds[0]
    for kind in kinds[1:]:
        union = union | kind
    return msgspec.json.Decoder(union)


DECODERS: Final[Mapping[str, msgspec.json.Decoder[Any]]] = {
    "job_state": decoder(SavedController, JOB.struct, ARRAY.struct),
    "node_state": decoder(NODE.struct, SavedLeftovers),
    "part_state": decoder(PART.struct),
    "resv_state": decoder(RESV.struct, SavedReservations),
}
