"""scancel: signal jobs and steps."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from simctl.commands.arguments.command_line import answered, check_cluster, tell_select_plugins
from simctl.commands.arguments.job_options import CLUSTERS, STANDARD
from simctl.commands.arguments.options import Grammar, Option, UsageError, text
from simctl.commands.asking.ask import ask, no_answer
from simctl.commands.scancel.targets import (
    FILTERS,
    Target,
    chosen,
    name_of,
    read_nodes,
    read_state,
    read_target,
    tasks_of,
)
from simctl.commands.scancel.termination import Termination
from simctl.site import CommandCall
from simctl.stepd.signals import SignalError, signal_number
from simctl.wire.errno import ESLURM_INVALID_JOB_ID, SlurmError, slurm_strerror
from simctl.wire.info import JobInfo
from simctl.wire.messages import (
    RequestCancelJobStep,
    RequestJobInfo,
    RequestKillJob,
    ResponseJobInfo,
)
from simctl.wire.states import JobBase

GRAMMAR: Final = Grammar(
    command="scancel",
    usage="[OPTIONS...] [JOB_ID[_TASK_ID][.STEP_ID]...]",
    options=(
        Option(long="account", short="A", read=text),
        Option(long="batch", short="b"),
        Option(long="ctld"),
        Option(long="full", short="f"),
        Option(long="hurry", short="H"),
        Option(long="interactive", short="i"),
        CLUSTERS,
        Option(long="me"),
        Option(long="name", short="n", read=text),
        Option(long="jobname", read=text),
        Option(long="nodelist", short="w", read=text),
        Option(long="partition", short="p", read=text),
        Option(long="qos", short="q", read=text),
        Option(long="quiet", short="Q"),
        Option(long="reservation", short="R", read=text),
        Option(long="signal", short="s", read=text),
        Option(long="state", short="t", read=text),
        Option(long="user", short="u", read=text),
        Option(long="wckey", read=text),
        *STANDARD,
    ),
    unbuilt=frozenset(("sibling", "cron")),
    bad_status=1,
    permutes=True,
)

VARIABLES: Final = {
    "SCANCEL_ACCOUNT": "account",
    "SCANCEL_BATCH": "batch",
    "SCANCEL_CTLD": "ctld",
    "SCANCEL_FULL": "full",
    "SCANCEL_HURRY": "hurry",
    "SCANCEL_INTERACTIVE": "interactive",
    "SCANCEL_NAME": "name",
    "SCANCEL_PARTITION": "partition",
    "SCANCEL_QOS": "qos",
    "SCANCEL_STATE": "state",
    "SCANCEL_USER": "user",
    "SCANCEL_VERBOSE": "verbose",
    "SCANCEL_WCKEY": "wckey",
    "SLURM_CLUSTERS": "clusters",
}
"""Input variables, and the options they stand for; those of flags say ``true`` or ``false``."""


async def scancel(call: CommandCall) -> int:
    """Cancel or signal what the words name and the filters leave; return the exit status."""
    try:
        given, words = GRAMMAR.split(call.argv[1:])
        if answered(call, GRAMMAR, given):
            return 0
        options = _read(call, {**_from_environment(call), **GRAMMAR.values(given)})
        targets = [read_target(word) for word in words]
        check_cluster(call, options)
        filters = any(key in options for key in FILTERS)
        if not targets and not filters:
            call.err("scancel: error: No job identification provided")
            return 1
        if filters or "interactive" in options or any(_is_step(each) for each in targets):
            return await _selected(call, options, targets)
        return await _named(call, options, targets)
    except UsageError as error:
        for line in error.lines:
            call.err(line)
        return error.status


def _is_step(target: Target) -> bool:
    return target.step_id is not None


def _from_environment(call: CommandCall) -> dict[str, Any]:
    """Return the options that input variables stand for."""
    found: dict[str, Any] = {}
    for variable, long in VARIABLES.items():
        option = GRAMMAR.named(long)
        value = call.env.get(variable, "")
        if not value:
            continue
        if option.read is not None:
            found[long] = option.read(value)
        elif value.lower() == "true":
            found[long] = True
        elif value.lower() != "false":
            call.err(f"scancel: error: Unrecognized {variable} value: {value}")
    return found


def _read(call: CommandCall, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with their values read.

    Raises:
        UsageError: A value means nothing.
    """
    read = dict(options)
    if "jobname" in read:
        read["name"] = read.pop("jobname")
    if "signal" in read:
        read["signal"] = _signal(read["signal"])
    if "state" in read:
        # A state of the environment counts only where the command line has none.
        of_line = call.env.get("SCANCEL_STATE") != read["state"]
        read["state"] = read_state(read["state"], from_environment=not of_line)
    if "nodelist" in read:
        read["nodelist"] = read_nodes(read["nodelist"])
    if "user" in read:
        read["user"] = _uid(call, read["user"])
    if "me" in read:
        read["user"] = call.user.uid
    return read


def _signal(word: str) -> int:
    try:
        return signal_number(word)
    except SignalError:
        raise UsageError(1, f"Unknown job signal: {word}") from None


def _uid(call: CommandCall, name: str) -> int:
    for user in call.site.users.values():
        if name in (user.name, str(user.uid)):
            return user.uid
    raise UsageError(1, f"scancel: error: Invalid user name: {name}")


async def _named(call: CommandCall, options: Mapping[str, Any], targets: list[Target]) -> int:
    """Have the controller end the jobs as they are named; return the exit status."""
    ends = Termination(call, options)
    for target in targets:
        await ends.job(
            RequestKillJob(
                job_id=target.job_id,
                signal=ends.signal,
                batch_only="batch" in options,
                full="full" in options,
                array_tasks=target.tasks,
                hurry="hurry" in options,
            ),
            target.word,
        )
    return ends.status


async def _selected(call: CommandCall, options: Mapping[str, Any], targets: list[Target]) -> int:
    """End what the filters leave of the jobs named, or of all; return the exit status."""
    tell_select_plugins(call, options)
    try:
        reply = await ask(call, RequestJobInfo())
    except SlurmError as error:
        no_answer(call, error, "scancel: error: slurm_load_jobs error")
        return 1
    assert isinstance(reply, ResponseJobInfo)
    there, missing = _there(call, options, targets, reply.jobs)
    if targets and not there:
        return missing
    ends = Termination(call, options)
    jobs = chosen(options, reply.jobs)
    waiting = [job for job in jobs if job.state.base is JobBase.PENDING]
    # Jobs that wait go first, so that none starts where another is ended.
    for job in waiting:
        await _end(ends, options, job, there if targets else [_all_of(job)])
    for job in jobs:
        if job not in waiting:
            await _end(ends, options, job, there if targets else [_all_of(job)])
        else:
            # Of a job that waits, its steps are asked for once more.
            await _end(ends, options, job, [each for each in there if _is_step(each)])
    return max(missing, ends.status)


def _all_of(job: JobInfo) -> Target:
    return Target(word=name_of(job), job_id=job.job_id)


async def _end(
    ends: Termination, options: Mapping[str, Any], job: JobInfo, targets: list[Target]
) -> None:
    """End what is meant of a job."""
    for target in targets:
        if not target.means(job):
            continue
        name = name_of(job)
        if "interactive" in options and not ends.confirmed(job, name, target.step_id):
            continue
        if target.step_id is not None:
            step = RequestCancelJobStep(
                job_id=job.job_id, step_id=target.step_id, signal=ends.signal
            )
            await ends.step(step, name)
            continue
        await ends.job(_request(ends, options, job, target), name)
        return


def _request(
    ends: Termination, options: Mapping[str, Any], job: JobInfo, target: Target
) -> RequestKillJob:
    """Return what ends one record: a job, a task, or the tasks that wait, all or those named."""
    tasks = tuple(task for task in tasks_of(job) if not target.tasks or task in target.tasks)
    return RequestKillJob(
        job_id=job.array_job_id or job.job_id,
        signal=ends.signal,
        batch_only="batch" in options,
        full="full" in options,
        array_tasks=tasks,
        waiting_only=bool(job.array_tasks) and not target.tasks,
        hurry="hurry" in options,
    )


def _there(
    call: CommandCall, options: Mapping[str, Any], targets: list[Target], jobs: Iterable[JobInfo]
) -> tuple[list[Target], int]:
    """Return the targets that there are, and 1 if some there are not, 0 if all are."""
    going = [job for job in jobs if not job.state.finished]
    found = [target for target in targets if any(target.means(job) for job in going)]
    missing = [target for target in targets if target not in found]
    for target in missing:
        if "quiet" not in options:
            what = "job step id" if _is_step(target) else "job id"
            reason = slurm_strerror(ESLURM_INVALID_JOB_ID)
            call.err(f"scancel: error: Kill job error on {what} {target.word}: {reason}")
    return found, int(bool(missing))
