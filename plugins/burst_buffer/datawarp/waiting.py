"""Jobs that wait for space: whose stage-in may start, who gives way, and when it may be."""

from typing import Final

from simctl.plugin import NO_VAL, JobRecord, log, slurmctld
from simctl.plugins.burst_buffer.datawarp.stages import Stages
from simctl.plugins.burst_buffer.datawarp.tell import OPERATION
from simctl.plugins.burst_buffer.records import BbJob, BbState, Books, Fit

_HOUR: Final = 3600
_YEAR: Final = 365 * 86_400
_ARRAY_S: Final = 300


class Waiting:
    """Decides over the space that no job has yet."""

    def __init__(self, books: Books, stages: Stages) -> None:
        self._books = books
        self._stages = stages

    def measure(self, job: JobRecord, bb: BbJob) -> None:
        """Find how much a job takes, of which pool; both may change while it waits."""
        nodes = job.min_nodes if job.max_nodes == NO_VAL else job.max_nodes
        bb.pool = self._books.pool_of(bb.request.pool)
        bb.size = self._books.size_of(bb.request, nodes)

    def est_start(self, job: JobRecord, bb: BbJob) -> int:
        """Return when a job could start, as far as its buffer tells."""
        now = slurmctld.time()
        if job.array_master:
            return now + _ARRAY_S
        if not self._books.loaded:
            return now + _HOUR
        if bb.state >= BbState.STAGING_IN:
            return now + 1
        if not self._books.named_ready(bb):
            return now + _HOUR
        fit = self._books.fit(bb)
        if fit is Fit.NEVER:
            return now + _YEAR
        return now if fit is Fit.NOW else self._books.next_end(self._ends(), now)

    def _ends(self) -> list[int]:
        """Return when the jobs are to end that run with buffers."""
        found = [slurmctld.find_job(alloc.job_id) for alloc in self._books.allocs.values()]
        return [job.end_time for job in found if job is not None and job.job_state == "RUNNING"]

    def start_stage_in(self, job: JobRecord, bb: BbJob) -> Fit:
        """Start a job's stage-in if there is space for it, and tell whether there is."""
        self.measure(job, bb)
        if not self._books.named_ready(bb):
            return Fit.NEVER
        fit = self._books.fit(bb)
        if fit is Fit.LATER:
            self._make_room(job, bb)
        if fit is Fit.NOW:
            if job.state_reason == OPERATION:
                job.state_reason, job.state_desc = "None", ""
            self._stages.stage_in(bb)
        return fit

    def _make_room(self, job: JobRecord, bb: BbJob) -> None:
        """Take down buffers that are staged in for jobs that start later, if that is enough."""
        lacks = self._books.shortage(bb)
        chosen = []
        for other in self._later(job):
            alloc = self._books.allocs.get(other.token)
            if alloc is not None and lacks.get(alloc.pool, 0) > 0:
                lacks[alloc.pool] -= alloc.size
                chosen.append(other)
        if not any(lack > 0 for lack in lacks.values()):
            for other in chosen:
                log.info("a buffer gives way to a job that starts sooner", job_id=other.job_id)
                self._stages.tear_down(other, hurry=True)

    def _later(self, job: JobRecord) -> list[BbJob]:
        """Return the jobs with staged-in buffers that start after a job, the last one first."""
        found = []
        for alloc in self._books.allocs.values():
            other = self._books.jobs.get(alloc.job_id)
            record = slurmctld.find_job(alloc.job_id)
            if (
                other is not None
                and other.state is BbState.STAGED_IN
                and record is not None
                and record.job_state == "PENDING"
                and record.start_time > job.start_time > 0
            ):
                found.append((record.start_time, other.job_id, other))
        return [other for _, _, other in sorted(found, reverse=True)]
