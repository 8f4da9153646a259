"""A job's request held against its partitions as they are now."""

from simctl.ctld.authority import asker_of
from simctl.ctld.choose.request import Request, read_request
from simctl.ctld.choose.select import fitting_parts, limit_in
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
    names = desc.partition.split(",")
    there = tuple(ctld.partitions[name] for name in names if name in ctld.partitions)
    parts = request.parts or there
    job.ask_anew(parts, None if request.error_code else request.demand, limit_in(job, parts[0]))
    limits.watch_deadline(ctld, job)
    refused = request.error_code or request.reason != Reason.NONE
    job.fits(() if refused else fitting_parts(job), request.reason)


def read_anew(ctld: Controller, desc: JobDesc) -> Request:
    """Return what a request comes to now; who is in may stay in, whatever the partition's state."""
    asker = asker_of(ctld, desc.uid, desc)
    conf = ctld.site.conf
    return read_request(desc, asker, ctld.partitions, ctld.nodes_by_name, conf, inside=True)
