"""A job with a burst buffer, brought into each state of it, and what is done to it there."""

from typing import Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.wire.ids import SECOND
from tests.cluster import Ran, run

SUBJECT: Final = 2
"""The job that it is about; job 1 is in its way, or is over before."""

_CLUSTER: Final = """\
nodes: [{name: n1, cpus: 2}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
burst_buffer: {pools: {wlm_pool: {capacity: 20GiB}}}
burst_buffer_conf: {GetSysState: /bb/state, StartStageIn: /bb/in, StartStageOut: /bb/out,
  StopStageIn: /bb/stop_in, StopStageOut: /bb/stop_out}
files:
  huge: |
    #!/bin/sh
    #DW jobdw capacity=18GiB
    #BB size=18G
    sleep 50
  quick: |
    #!/bin/sh
    sleep 0
  blocks: |
    #!/bin/sh
    sleep 50
  subject: |
    #!/bin/sh
    #DW jobdw capacity=4GiB
    #DW stage_in type=file source=/lus/in destination=in
    #DW stage_out type=file source=out destination=/lus/out
    #BB size=4G
    sleep 20
  fails: |
    #!/bin/sh
    #DW jobdw capacity=4GiB
    #BB size=4G
    sleep 20
    exit 3
  slow: |
    #!/bin/sh
    #DW jobdw capacity=4GiB
    #BB size=4G
    sleep 300
"""
_LINES_OF: Final = {"datawarp": "#BB size", "generic": "#DW jobdw"}
"""Lines of the scripts that are none of a plugin's."""

AT: Final[dict[str, dict[str, float]]] = {
    "datawarp": {
        "PENDING": 20,
        "STAGING_IN": 8,
        "STAGED_IN": 20,
        "PRE_RUN": 12,
        "RUNNING": 20,
        "POST_RUN": 34,
        "STAGING_OUT": 37,
        "TEARDOWN": 39.2,
    },
    "generic": {
        "PENDING": 20,
        "STAGING_IN": 8,
        "STAGED_IN": 45,
        "RUNNING": 45,
        "STAGING_OUT": 52,
        "STAGED_OUT": 100,
    },
}
"""When the buffer is in each state, in seconds."""


@attrs.frozen
class Outcome:
    """What became of the job, its buffer and its space, from the deed on."""

    job: str
    """Its state at the end of the run, and its reason if it has one."""

    buffer: str
    """The states of its buffer from the deed on."""

    held_gib: int = 0
    """The space that it still has."""

    launches: int = 0


@attrs.frozen
class Row:
    """A row of a table: what is done in which state, in which models, and what becomes of it."""

    state: str
    deed: str
    models: tuple[str, ...]
    outcome: Outcome

    def __str__(self) -> str:
        """Return a name for the test."""
        return "-".join((self.state, self.deed, *self.models))


def rows(table: str) -> list[Row]:
    """Read a table: state, deed, model, job, launches, states of the buffer, and space if any."""
    found = []
    way_in = "STAGING_IN STAGED_IN PRE_RUN RUNNING"
    way_out = "POST_RUN STAGING_OUT TEARDOWN COMPLETE"
    if "PRE_RUN " not in table:
        way_in, way_out = "STAGING_IN STAGED_IN RUNNING", "STAGING_OUT STAGED_OUT"
    for line in table.splitlines():
        state, deed, model, job, launches, buffer, *held = (
            word.strip() for word in line.split("|")
        )
        words = [{"IN": way_in, "OUT": way_out}.get(word, word) for word in buffer.split()]
        outcome = Outcome(
            job=job,
            buffer=" ".join(words),
            held_gib=int(held[0]) if held else 0,
            launches=int(launches),
        )
        models = ("guide", "modern") if model == "both" else (model,)
        found.append(Row(state, deed, models, outcome))
    return found


def situation(
    plugin: str, model: str, state: str, deed: str, *, asks: str = "subject", more: str = ""
) -> Ran:
    """Run a job until its buffer is in a state, and do something there.

    Args:
        plugin: datawarp or generic.
        model: The model.
        state: The state of the buffer; PENDING while there is no space for it.
        deed: What follows ``when: ...,`` in the timeline.
        asks: The options of the job, and which script it runs.
        more: Further entries of the timeline.
    """
    first = {"PENDING": "huge", "STAGED_IN": "blocks"}.get(state, "quick")
    when = f"at: {AT[plugin][state]}s"
    lines = [line for line in _CLUSTER.splitlines() if _LINES_OF[plugin] not in line]
    text = (
        f"slurm_conf: {{BurstBufferType: burst_buffer/{plugin}, MinJobAge: 60, KillWait: 5, "
        "SlurmdTimeout: 30, ReturnToService: 1}\n"
        "timeline:\n"
        f"  - {{at: 0s, as: alice, run: sbatch {first}}}\n"
        f"  - {{at: 5s, as: alice, run: sbatch -t1 {asks}}}\n"
        f"  - {{{when}, {deed}}}\n{more}"
    )
    return run(text, cluster="\n".join(lines) + "\n", model=model)


def outcome(ran: Ran, plugin: str, state: str) -> Outcome:
    """Return what became of the job from the moment on at which its buffer was in a state."""
    since_us = round(AT[plugin][state] * SECOND)
    before = [event for event in ran.events if event.time_us < since_us]
    after = ran.events[len(before) :]
    assert (_states(before).split() or ["PENDING"])[-1] == state, _states(before)
    appliance = ran.world.site.appliance
    assert appliance is not None
    stores = (appliance.store, appliance.generic_store)
    held = [store.buffers[str(SUBJECT)].size for store in stores if str(SUBJECT) in store.buffers]
    state, _, reason = ran.job(SUBJECT)
    return Outcome(
        job=" ".join(word for word in (state, reason) if word not in ("", "None")),
        buffer=_states(after),
        held_gib=sum(held) >> 30,
        launches=sum(_launches(event) for event in after),
    )


def _states(events: list[Event]) -> str:
    found = (
        str(event.args["to"])
        for event in events
        if event.name == "bb_state" and event.job == SUBJECT and event.args is not UNSET
    )
    return " ".join(found)


def _launches(event: Event) -> bool:
    sent = event.name == "REQUEST_BATCH_JOB_LAUNCH" and event.phase == "send"
    return sent and event.job == SUBJECT
