"""Job arrays: one record for the tasks that wait, and one more for each that is split off."""

from simctl.ctld.controller import Controller
from simctl.ctld.jobs import eligible, limits
from simctl.ctld.state.records import JobArray, JobRecord
from simctl.plugins.hooks import NULL, failed
from simctl.plugins.points.checkpoint import slurm_ckpt_copy_job
from simctl.wire.arrays import parse_array
from simctl.wire.errno import ESLURM_INVALID_ARRAY, SlurmError
from simctl.wire.states import PENDING


def read_array(text: str) -> JobArray | None:
    """Read what ``--array`` asks for.

    Raises:
        SlurmError: It is no array.
    """
    if not text:
        return None
    try:
        tasks, limit = parse_array(text)
    except ValueError:
        raise SlurmError(ESLURM_INVALID_ARRAY) from None
    return JobArray(job_id=0, tasks=tasks, limit=limit, waiting=list(tasks))


def name(ctld: Controller, array: JobArray, job_id: int) -> None:
    """Give an array its id; from now on events about it say that they are."""
    array.take_id(job_id)
    ctld.site.trace.arrays[job_id] = (job_id, None)


def register(ctld: Controller, job: JobRecord) -> None:
    """Note a new array; its one record stands for all of its tasks."""
    if job.array is not None:
        ctld.arrays[job.job_id] = job.array
        job.array.begin(job)


def is_full(job: JobRecord) -> bool:
    """Return whether as many tasks of the job's array run as may."""
    array = job.array
    return array is not None and 0 < array.limit <= array.running


async def split_off(ctld: Controller, job: JobRecord, task: int) -> JobRecord:
    """Give a task that waits a record of its own, and return it.

    The task takes the checkpoint record, and those that still wait get a copy. The last task to be
    split off keeps the record, and with it the id of the array.
    """
    array = job.array
    assert array is not None
    record = await _split(ctld, job) if array.take(task) else job
    record.become_task(task, _environment(record, array, task))
    ctld.site.trace.arrays[record.job_id] = (array.job_id, task)
    if record is not job:
        ctld.jobs[record.job_id] = record
        eligible.note_name(ctld, record)
        eligible.register(ctld, record)
        ctld.site.trace.state(
            ctld.process,
            "job_state",
            before=None,
            after=str(PENDING),
            reason=record.reason,
            job=record.job_id,
            **({"burst_buffer": record.burst_buffer} if record.burst_buffer else {}),
        )
    return record


async def _split(ctld: Controller, job: JobRecord) -> JobRecord:
    """Make a record beside *job*, which keeps the tasks that wait and a copy of what is copied."""
    # A task cannot be refused any more: where all ids are taken it gets one beyond MaxJobId.
    job_id = ctld.next_id() or max(ctld.jobs) + 1
    record = job.split(job_id, ctld.next_place())
    limits.watch_deadline(ctld, record)
    if job.check_job.value is not None or ctld.site.model == "guide":
        # Slurm 18.08 does not ask for a copy of a record that is none.
        copied = await ctld.site.hooks.call(
            slurm_ckpt_copy_job, ctld.process, job.check_job, about=job.about
        )
        job.keep_record(NULL if failed(copied) else copied)
    return record


def _environment(job: JobRecord, array: JobArray, task: int) -> dict[str, str]:
    """Return what a task's environment says of its array."""
    gaps = {after - before for before, after in zip(array.tasks, array.tasks[1:], strict=False)}
    return {
        **job.desc.environment,
        "SLURM_ARRAY_JOB_ID": str(array.job_id),
        "SLURM_ARRAY_TASK_ID": str(task),
        "SLURM_ARRAY_TASK_COUNT": str(len(array.tasks)),
        "SLURM_ARRAY_TASK_MAX": str(array.tasks[-1]),
        "SLURM_ARRAY_TASK_MIN": str(array.tasks[0]),
        "SLURM_ARRAY_TASK_STEP": str(min(gaps, default=1)),
    }


def started(job: JobRecord) -> None:
    """Count a task that starts."""
    if job.array is not None:
        job.array.task_started()


def ended(ctld: Controller, job: JobRecord) -> None:
    """Count a task that has left its nodes; one more may run now."""
    array = job.array
    if array is None:
        return
    array.task_ended()
    if not array.limit:
        return
    for waiting in (array.rest, *array.records.values()):
        if waiting is not None and waiting is not job:
            eligible.settle(ctld, waiting)


def forget(ctld: Controller, job_id: int) -> None:
    """Let an id stand for a job of its own, unless there are still tasks of the array it named."""
    ctld.site.trace.arrays.pop(job_id, None)
    array = ctld.arrays.get(job_id)
    if array is None or array.waiting:
        return
    if not array.has_records(ctld.jobs):
        del ctld.arrays[job_id]


def purged(ctld: Controller, job: JobRecord) -> None:
    """Forget a task that is purged, and its array with the last of them."""
    ctld.site.trace.arrays.pop(job.job_id, None)
    array = job.array
    if array is None or array.rest is not None or ctld.arrays.get(array.job_id) is not array:
        return
    if not array.has_records(ctld.jobs):
        del ctld.arrays[array.job_id]
        ctld.dependents.pop(array.job_id, None)


def cancelled(job: JobRecord) -> None:
    """Note that the record of the tasks that wait is cancelled, and they with it."""
    if job.array is not None and job.array.rest is job:
        job.array.cancel_waiting()


def lacks(ctld: Controller, job_id: int, tasks: tuple[int, ...]) -> bool:
    """Return whether an id names a task that there is not, or not any more."""
    array = ctld.arrays.get(job_id)
    if array is None:
        return bool(tasks)
    there = {task for task, job in array.records.items() if ctld.jobs.get(job.job_id) is job}
    return bool(set(tasks) - there - set(array.waiting))


async def targets(ctld: Controller, job_id: int, tasks: tuple[int, ...]) -> list[JobRecord]:
    """Return the records that an id means: a job, all of an array, or single tasks of it.

    Of a whole array the record that bears the array's id comes first, which is the pending rest as
    long as there is one, then the others, the latest first. A task that is named is split off, and
    waits by itself; one that there is not is left out.
    """
    array = ctld.arrays.get(job_id)
    if array is None:
        job = ctld.jobs.get(job_id)
        return [job] if job is not None and not tasks else []
    if not tasks:
        found = [
            *([array.rest] if array.rest is not None else []),
            *reversed(array.records.values()),
        ]
        found.sort(key=lambda job: job.job_id != array.job_id)
        return [job for job in found if ctld.jobs.get(job.job_id) is job]
    chosen = []
    for task in tasks:
        if task in array.waiting:
            assert array.rest is not None
            record = await split_off(ctld, array.rest, task)
            eligible.settle(ctld, record)
            chosen.append(record)
        elif (
            task in array.records
            and ctld.jobs.get(array.records[task].job_id) is (array.records[task])
        ):
            chosen.append(array.records[task])
    return chosen
