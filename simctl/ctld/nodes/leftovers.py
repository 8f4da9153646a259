"""What still runs on a node of jobs that are over: found when the node registers, and ended.

A node that could not be reached goes on with what it runs. In the meantime its jobs may have ended,
or be back in the queue. Until it reports the old run gone, nothing new starts on it.
"""

from collections.abc import Iterable

from simctl.ctld.controller import Controller
from simctl.ctld.state.records import JobRecord, NodeRecord
from simctl.wire.messages import RequestAbortJob, RequestTerminateJob
from simctl.wire.states import JobBase, NodeFlag

Run = tuple[int, int]
"""A job id, and which run of the job."""


def belongs(job: JobRecord, node: NodeRecord, restart_cnt: int) -> bool:
    """Return whether a run of a job has a right to be on a node, or is ending there. Pure."""
    if job.restart_cnt != restart_cnt:
        return False
    if node.name in job.completing_nodes:
        return True
    runs = not job.state.finished and job.state.base is not JobBase.PENDING
    return runs and node in job.nodes


def end_leftovers(ctld: Controller, node: NodeRecord, runs: Iterable[Run]) -> None:
    """End what a node runs of jobs that are over, that run elsewhere or that are unknown."""
    for job_id, restart_cnt in dict.fromkeys(runs):
        job = ctld.jobs.get(job_id)
        if job is None:
            abort = RequestAbortJob(job_id=job_id, restart_cnt=restart_cnt, job_state="")
            ctld.send(ctld.address(node), abort)
        elif not belongs(job, node, restart_cnt):
            _await_end(ctld, node, (job_id, restart_cnt))
            ctld.send(
                ctld.address(node),
                RequestTerminateJob(
                    job_id=job_id,
                    restart_cnt=restart_cnt,
                    job_state="COMPLETING" if job.state.completing else str(job.state),
                ),
            )


def is_leftover(ctld: Controller, node_name: str, job_id: int, restart_cnt: int) -> bool:
    """Return whether a node has yet to report that an old run of a job is gone."""
    return (job_id, restart_cnt) in ctld.leftovers.get(node_name, ())


def forget_leftover(ctld: Controller, node: NodeRecord, run: Run) -> bool:
    """Note that an old run of a job is gone from a node; false if it was none."""
    runs = ctld.leftovers.get(node.name, {})
    if run not in runs:
        return False
    del runs[run]
    if node.is_left(ctld.now_us):
        ctld.set_node(node, node.base, node.flags & ~NodeFlag.COMPLETING)
    return True


def forget_others(ctld: Controller, node: NodeRecord, runs: Iterable[Run]) -> None:
    """Forget the old runs that a node does not have any more."""
    left = dict.fromkeys(runs)
    for run in list(ctld.leftovers.get(node.name, ())):
        if run not in left:
            forget_leftover(ctld, node, run)


def _await_end(ctld: Controller, node: NodeRecord, run: Run) -> None:
    runs = ctld.leftovers.setdefault(node.name, {})
    if run in runs:
        return
    runs[run] = None
    node.expect_end()
    ctld.set_node(node, node.base, node.flags | NodeFlag.COMPLETING)
