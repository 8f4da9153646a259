"""A job's request held against its partitions as they are now."""

from simctl.ctld.authority import asker_of
from simctl.ctld.choose.request import Request, read_request
from simctl.ctld.choose.select import keep_fitting, limit_in
from simctl.ctld.controller import Controller
from simctl.ctld.jobs import limits
from simctl.ctld.state import queue
from simctl.ctld.state.records import JobRecord
from simctl.wire.records import JobDesc
from simctl.wire.states import Reason


def ask_anew(ctld: Controller, job: JobRecord) -> None:
    """Hold a pending job's request against its partitions as they are now; it leaves its queues."""
    if job.queued:
        queue.take_from_queue(job)
    desc = job.desc
    request = read_anew(ctld, desc)
    if not request.error_code:
        job.demand = request.demand
    names = desc.partition.split(",")
    there = tuple(ctld.partitions[name] for name in names if name in ctld.partitions)
    job.parts = request.parts or there
    job.part = job.parts[0]
    job.time_limit_min = limit_in(job, job.part)
    limits.watch_deadline(ctld, job)
    job.lasting_reason = "" if request.reason == Reason.NONE else request.reason
    if not job.lasting_reason and (request.error_code or not keep_fitting(job)):
        job.lasting_reason = Reason.PARTITION_CONFIG


def read_anew(ctld: Controller, desc: JobDesc) -> Request:
    """Return what a request comes to now; who is in may stay in, whatever the partition's state."""
    asker = asker_of(ctld, desc.uid, desc)
    conf = ctld.site.conf
    return read_request(desc, asker, ctld.partitions, ctld.nodes_by_name, conf, inside=True)
