"""What becomes of a job and its buffer, whatever is done to it in each state of the buffer."""

import pytest

from tests.bb_situations import Row, outcome, rows, situation

_DEEDS = {
    "cancel": "run: scancel 2",
    "hurry": "run: scancel --hurry 2",
    "requeue": "run: scontrol requeue 2",
    "crash": "fault: {crash: n1}",
    "lost": "fault: {crash: n1}",
    "fails": "run: squeue",
    "slow": "run: squeue",
}
"""What is done; who is lost by a crash may not be requeued. A job that fails, or is so slow that
its time is up, does that by itself."""

_NODE_IS_BACK = "  - {at: 200s, fault: {start: n1}}\n"

_DATAWARP = """\
PENDING     | cancel  | both   | CANCELLED BurstBufferResources | 0 | COMPLETE
STAGING_IN  | cancel  | guide  | CANCELLED BurstBufferStageIn | 0 | TEARDOWN COMPLETE
STAGING_IN  | cancel  | modern | CANCELLED BurstBufferStageIn | 0 | TEARDOWN STAGED_IN
STAGED_IN   | cancel  | both   | CANCELLED Resources          | 0 | TEARDOWN COMPLETE
PRE_RUN     | cancel  | guide  | CANCELLED                    | 0 | TEARDOWN COMPLETE
PRE_RUN     | cancel  | modern | CANCELLED                    | 0 | TEARDOWN COMPLETE RUNNING
RUNNING     | cancel  | both   | CANCELLED                    | 0 | OUT
POST_RUN    | cancel  | both   | COMPLETED                    | 0 | STAGING_OUT TEARDOWN COMPLETE
STAGING_OUT | cancel  | both   | COMPLETED                    | 0 | TEARDOWN COMPLETE
TEARDOWN    | cancel  | both   | COMPLETED                    | 0 | COMPLETE
PENDING     | hurry   | both   | CANCELLED BurstBufferResources | 0 | COMPLETE
STAGING_IN  | hurry   | guide  | CANCELLED BurstBufferStageIn | 0 | TEARDOWN COMPLETE
STAGING_IN  | hurry   | modern | CANCELLED BurstBufferStageIn | 0 | TEARDOWN STAGED_IN
STAGED_IN   | hurry   | both   | CANCELLED Resources          | 0 | TEARDOWN COMPLETE
PRE_RUN     | hurry   | guide  | CANCELLED                    | 0 | TEARDOWN COMPLETE
PRE_RUN     | hurry   | modern | CANCELLED                    | 0 | TEARDOWN COMPLETE RUNNING
RUNNING     | hurry   | both   | CANCELLED                    | 0 | TEARDOWN COMPLETE
POST_RUN    | hurry   | both   | COMPLETED                    | 0 | TEARDOWN COMPLETE
STAGING_OUT | hurry   | both   | COMPLETED                    | 0 | TEARDOWN COMPLETE
TEARDOWN    | hurry   | both   | COMPLETED                    | 0 | COMPLETE
PENDING     | requeue | both   | COMPLETED                    | 1 | IN OUT
STAGING_IN  | requeue | both   | COMPLETED                    | 1 | STAGED_IN PRE_RUN RUNNING OUT
STAGED_IN   | requeue | both   | COMPLETED                    | 1 | PRE_RUN RUNNING OUT
PRE_RUN     | requeue | guide  | COMPLETED                    | 1 | TEARDOWN COMPLETE PENDING IN OUT
PRE_RUN     | requeue | modern | PENDING BurstBufferResources | 0 | TEARDOWN COMPLETE RUNNING
RUNNING     | requeue | both   | COMPLETED                    | 1 | OUT PENDING IN OUT
POST_RUN    | requeue | both   | COMPLETED                    | 0 | STAGING_OUT TEARDOWN COMPLETE
STAGING_OUT | requeue | both   | COMPLETED                    | 0 | TEARDOWN COMPLETE
TEARDOWN    | requeue | both   | COMPLETED                    | 0 | COMPLETE
PENDING     | crash   | both   | COMPLETED                    | 1 | IN OUT
STAGING_IN  | crash   | both   | COMPLETED | 2 | STAGED_IN PRE_RUN RUNNING OUT PENDING IN OUT
STAGED_IN   | crash   | both   | COMPLETED                    | 1 | PRE_RUN RUNNING OUT
PRE_RUN     | crash   | both   | COMPLETED                    | 2 | RUNNING OUT PENDING IN OUT
RUNNING     | crash   | both   | COMPLETED                    | 1 | OUT PENDING IN OUT
POST_RUN    | crash   | both   | COMPLETED                    | 0 | STAGING_OUT TEARDOWN COMPLETE
STAGING_OUT | crash   | both   | COMPLETED                    | 0 | TEARDOWN COMPLETE
TEARDOWN    | crash   | both   | COMPLETED                    | 0 | COMPLETE
PENDING     | lost    | both   | COMPLETED                    | 1 | IN OUT
STAGING_IN  | lost    | both   | NODE_FAIL NodeDown           | 1 | STAGED_IN PRE_RUN RUNNING OUT
STAGED_IN   | lost    | both   | COMPLETED                    | 1 | PRE_RUN RUNNING OUT
PRE_RUN     | lost    | both   | NODE_FAIL NodeDown           | 1 | RUNNING OUT
RUNNING     | lost    | both   | NODE_FAIL NodeDown           | 0 | OUT
POST_RUN    | lost    | both   | COMPLETED                    | 0 | STAGING_OUT TEARDOWN COMPLETE
STAGING_OUT | lost    | both   | COMPLETED                    | 0 | TEARDOWN COMPLETE
TEARDOWN    | lost    | both   | COMPLETED                    | 0 | COMPLETE
RUNNING     | fails   | both   | FAILED NonZeroExitCode       | 0 | OUT
RUNNING     | slow    | both   | TIMEOUT TimeLimit            | 0 | OUT
"""
"""State, deed, model, the job in the end, launches and states of the buffer from the deed on.

IN stands for the way to RUNNING, OUT for that from POST_RUN to COMPLETE. While data come in or
wait, a dead node changes nothing; in pre_run the launch finds nobody, and the job is requeued with
its buffer staged out, as one that runs. Who has run is staged out, unless somebody is in a hurry.
In model modern the thread of a cancelled job comes last, as in real Slurm, and its record is kept;
who is requeued in pre_run waits for ever.
"""

_GENERIC = """\
PENDING     | cancel  | both   | CANCELLED BurstBufferResources | 0 |
STAGING_IN  | cancel  | both   | CANCELLED BurstBufferResources | 0 | STAGED_OUT
STAGED_IN   | cancel  | both   | CANCELLED Resources          | 0 | STAGED_OUT
RUNNING     | cancel  | both   | CANCELLED                    | 0 | OUT
STAGING_OUT | cancel  | both   | COMPLETED                    | 0 | STAGED_OUT
STAGED_OUT  | cancel  | both   | COMPLETED                    | 0 |
PENDING     | hurry   | both   | CANCELLED BurstBufferResources | 0 |
STAGING_IN  | hurry   | both   | CANCELLED BurstBufferResources | 0 | STAGED_OUT
STAGED_IN   | hurry   | both   | CANCELLED Resources          | 0 | STAGED_OUT
RUNNING     | hurry   | both   | CANCELLED                    | 0 | STAGED_OUT
STAGING_OUT | hurry   | both   | COMPLETED                    | 0 | STAGED_OUT
STAGED_OUT  | hurry   | both   | COMPLETED                    | 0 |
PENDING     | requeue | both   | COMPLETED                    | 1 | IN OUT
STAGING_IN  | requeue | both   | COMPLETED                    | 1 | STAGED_IN RUNNING OUT
STAGED_IN   | requeue | both   | COMPLETED                    | 1 | RUNNING OUT
RUNNING     | requeue | both   | COMPLETED                    | 1 | OUT PENDING IN OUT
STAGING_OUT | requeue | both   | COMPLETED                    | 0 | STAGED_OUT
STAGED_OUT  | requeue | both   | COMPLETED                    | 0 |
PENDING     | crash   | both   | COMPLETED                    | 1 | IN OUT
STAGING_IN  | crash   | both   | COMPLETED                    | 1 | STAGED_IN RUNNING OUT
STAGED_IN   | crash   | both   | COMPLETED                    | 1 | RUNNING OUT
RUNNING     | crash   | both   | COMPLETED                    | 1 | OUT PENDING IN OUT
STAGING_OUT | crash   | both   | COMPLETED                    | 0 | STAGED_OUT
STAGED_OUT  | crash   | both   | COMPLETED                    | 0 |
PENDING     | lost    | both   | COMPLETED                    | 1 | IN OUT
STAGING_IN  | lost    | both   | COMPLETED                    | 1 | STAGED_IN RUNNING OUT
STAGED_IN   | lost    | both   | COMPLETED                    | 1 | RUNNING OUT
RUNNING     | lost    | both   | NODE_FAIL NodeDown           | 0 | OUT
STAGING_OUT | lost    | both   | COMPLETED                    | 0 | STAGED_OUT
STAGED_OUT  | lost    | both   | COMPLETED                    | 0 |
RUNNING     | fails   | both   | FAILED NonZeroExitCode       | 0 | OUT
RUNNING     | slow    | both   | TIMEOUT TimeLimit            | 0 | OUT
"""
"""The same; PENDING in the middle is a buffer that is forgotten, for the job is to have another."""


def _run(plugin: str, row: Row) -> None:
    asks = {"fails": "fails", "slow": "slow", "lost": "--no-requeue subject"}
    more = _NODE_IS_BACK if row.deed in ("crash", "lost") else ""
    for model in row.models:
        ran = situation(
            plugin,
            model,
            row.state,
            _DEEDS[row.deed],
            asks=asks.get(row.deed, "subject"),
            more=more,
        )
        assert outcome(ran, plugin, row.state) == row.outcome, model
        assert not ran.result.stalled
        assert not ran.result.complaints


@pytest.mark.parametrize("row", rows(_DATAWARP), ids=str)
def test_what_becomes_of_a_job_with_datawarp(row: Row) -> None:
    """Its space is back whatever happens; each row of the table says how."""
    _run("datawarp", row)


@pytest.mark.parametrize("row", rows(_GENERIC), ids=str)
def test_what_becomes_of_a_job_with_generic(row: Row) -> None:
    """Its space is back whatever happens; each row of the table says how."""
    _run("generic", row)
