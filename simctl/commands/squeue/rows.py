"""The rows of squeue: which jobs and steps are shown, and as how many lines."""

from collections.abc import Collection, Iterator, Mapping

import attrs

from simctl.commands.columns.formats import Clock
from simctl.commands.columns.job_states import is_in
from simctl.commands.columns.jobs import JobRow
from simctl.commands.columns.steps import StepRow
from simctl.commands.squeue.options import JobId, Query
from simctl.site import Site
from simctl.wire.arrays import parse_array
from simctl.wire.hostlist import expand
from simctl.wire.ids import NO_VAL
from simctl.wire.info import JobInfo, StepInfo
from simctl.wire.messages import ResponseJobInfo, ResponseJobStepInfo

"""The only quality of service there is."""


def job_rows(
    answer: ResponseJobInfo, query: Query, site: Site, tiers: Mapping[str, int]
) -> list[JobRow]:
    """Return the lines about jobs, in the order of slurmctld's list."""
    return [
        row
        for info in answer.jobs
        if _is_wanted(info, query)
        for row in _lines(info, answer.now_s, query, site, tiers)
        if _is_wanted_line(row, query)
    ]


def _lines(
    info: JobInfo, now_s: int, query: Query, site: Site, tiers: Mapping[str, int]
) -> Iterator[JobRow]:
    """Yield the lines of a job: one, or one a partition, or one a task that waits."""
    row = JobRow(
        info=info,
        now_s=now_s,
        partition=info.partition,
        reason=info.reason,
        group=_group(site, info.group_id),
        cluster=site.conf.cluster_name,
        clock=Clock(query.time_style, now_s),
        convert=not query.has("noconvert"),
        bits=query.bits,
        task=info.array_task_id,
    )
    parts = info.partition.split(",") if query.has("priority") else [info.partition]
    tasks = parse_array(info.array_tasks) if info.array_tasks else ((), 0)
    for part in parts:
        tier = tiers.get(part, 0) if query.has("priority") else 0
        line = attrs.evolve(row, partition=part, tier=tier)
        if not tasks[0]:
            yield line
        elif not query.has("array"):
            yield attrs.evolve(line, tasks=tasks[0], limit=tasks[1])
        else:
            yield from (attrs.evolve(line, task=task) for task in tasks[0])


def _group(site: Site, gid: int) -> str:
    """Return the name of a group: a user's own, whose group it is alone."""
    for user in site.users.values():
        if user.gid == gid:
            return user.name
    return str(gid)


def _has(word: str, wanted: Collection[str] | None) -> bool:
    """Return whether a word is among those wanted, whatever its case."""
    return wanted is None or word.lower() in (each.lower() for each in wanted)


def _is_wanted(info: JobInfo, query: Query) -> bool:
    checks = (
        query.states is None
        or any(state is not None and is_in(info.state, state) for state in query.states),
        _has(info.account, query.accounts),
        _has(info.name, query.names),
        _has(info.qos, query.qos),
        query.licenses is None
        or any(_has(each.partition(":")[0], query.licenses) for each in info.licenses.split(",")),
        query.reservation is None or info.reservation == query.reservation,
        query.users is None or info.user_id in query.users,
        _is_on(info.node_list, query.nodes),
    )
    return all(checks)


def _is_on(node_list: str, wanted: tuple[str, ...] | None) -> bool:
    return wanted is None or not set(wanted).isdisjoint(expand(node_list) if node_list else ())


def _is_wanted_line(row: JobRow, query: Query) -> bool:
    """Return whether a line is about one of the partitions and jobs that are asked for."""
    parts = query.partitions
    if parts is not None and not any(_has(part, parts) for part in row.partition.split(",")):
        return False
    info = row.info
    tasks = row.tasks or (row.task,)
    ids = (info.job_id, info.array_job_id)
    return query.jobs is None or any(
        each.job_id in ids and _is_task(each, tasks) for each in query.jobs
    )


def _is_task(wanted: JobId, tasks: tuple[int, ...]) -> bool:
    return wanted.task == NO_VAL or wanted.task in tasks


def step_rows(answer: ResponseJobStepInfo, query: Query, site: Site) -> list[StepRow]:
    """Return the lines about steps."""
    clock = Clock(query.time_style, answer.now_s)
    return [
        StepRow(info=info, cluster=site.conf.cluster_name, clock=clock)
        for info in answer.steps
        if _is_wanted_step(info, query)
    ]


def _is_wanted_step(info: StepInfo, query: Query) -> bool:
    ids = (info.job_id, info.array_job_id)

    def named(wanted: JobId) -> bool:
        return wanted.job_id in ids and _is_task(wanted, (info.array_task_id,))

    return (
        (query.jobs is None or any(named(each) for each in query.jobs))
        and (
            query.steps is None
            or any(named(each.job) and each.step in (info.step_id, NO_VAL) for each in query.steps)
        )
        and _has(info.name, query.names)
        and _has(info.partition, query.partitions)
        and (query.users is None or info.user_id in query.users)
        and _is_on(info.node_list, query.nodes)
    )
