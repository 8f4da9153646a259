"""sbatch: hand a batch script to the controller."""

from typing import Any, Final

from simctl.commands.arguments.command_line import (
    Given,
    acting_user,
    answered,
    check_cluster,
    check_identity,
    from_environment,
    tell_options,
    tell_select_plugins,
)
from simctl.commands.arguments.job_options import (
    CLUSTERS,
    EXPORT,
    INPUT,
    JOB_OPTIONS,
    OPEN_MODE,
    TEST_ONLY,
    WAIT_ALL_NODES,
    unbuilt,
)
from simctl.commands.arguments.job_values import gpus_text, moment, priority
from simctl.commands.arguments.options import (
    BAD_OPTION,
    Grammar,
    Option,
    UsageError,
    nice,
    positive,
    refuse_parts,
    text,
    with_nice,
    yes_or_no,
)
from simctl.commands.asking.ask import ask, no_answer
from simctl.commands.submission import batch_script, burst_buffer
from simctl.commands.submission.describe import describe, refuse, tell_lines, test_only
from simctl.commands.submission.filters import Filters
from simctl.commands.submission.wait_for_job import end_of_job
from simctl.site import CommandCall
from simctl.wire.errno import EAGAIN, SlurmError
from simctl.wire.ids import NO_VAL, SECOND
from simctl.wire.messages import (
    RequestSubmitBatchJob,
    ResponseSubmitBatchJob,
)
from simctl.wire.records import JobDesc
from simctl.wire.times import parse_moment

_OWN: Final = (
    "a array H hold b begin d dependency kill-on-invalid-dep nice priority export open-mode "
    "clusters M test-only ignore-pbs container i input wait-all-nodes"
)

GRAMMAR: Final = Grammar(
    command="sbatch",
    usage="[OPTIONS...] [SCRIPT [ARGUMENTS...]]",
    options=(
        *JOB_OPTIONS,
        EXPORT,
        OPEN_MODE,
        CLUSTERS,
        TEST_ONLY,
        INPUT,
        WAIT_ALL_NODES,
        Option(long="wrap", read=text),
        Option(long="wait", short="W"),
        Option(long="parsable"),
        Option(long="requeue", ousts=("no-requeue",)),
        Option(long="no-requeue", ousts=("requeue",)),
        Option(long="jobid", read=positive),
        Option(long="hold", short="H"),
        Option(long="begin", short="b", read=moment),
        Option(long="dependency", short="d", read=text),
        Option(long="kill-on-invalid-dep", read=yes_or_no),
        Option(long="nice", read=nice),
        Option(long="priority", read=priority),
        Option(long="array", short="a", read=text),
        Option(long="ignore-pbs"),
        Option(long="container", read=text),
    ),
    unbuilt=unbuilt(_OWN, "I immediate"),
)

VARIABLES: Final = {
    "SBATCH_ACCOUNT": "account",
    "SBATCH_ARRAY_INX": "array",
    "SBATCH_CHECKPOINT": "checkpoint",
    "SBATCH_CHECKPOINT_DIR": "checkpoint-dir",
    "SLURM_CLUSTERS": "clusters",
    "SBATCH_CLUSTERS": "clusters",
    "SBATCH_CONSTRAINT": "constraint",
    "SBATCH_CONTAINER": "container",
    "SBATCH_DEBUG": "verbose",
    "SBATCH_DISTRIBUTION": "distribution",
    "SBATCH_EXCLUSIVE": "exclusive",
    "SBATCH_EXPORT": "export",
    "SBATCH_GET_USER_ENV": "get-user-env",
    "SBATCH_GPUS": "gpus",
    "SBATCH_GPUS_PER_NODE": "gpus-per-node",
    "SBATCH_GPUS_PER_TASK": "gpus-per-task",
    "SBATCH_GRES": "gres",
    "SBATCH_HINT": "hint",
    "SBATCH_IGNORE_PBS": "ignore-pbs",
    "SBATCH_JOB_NAME": "job-name",
    "SBATCH_MEM_BIND": "mem-bind",
    "SBATCH_MEM_PER_CPU": "mem-per-cpu",
    "SBATCH_MEM_PER_NODE": "mem",
    "SBATCH_NO_KILL": "no-kill",
    "SBATCH_NO_REQUEUE": "no-requeue",
    "SBATCH_OPEN_MODE": "open-mode",
    "SBATCH_OVERCOMMIT": "overcommit",
    "SBATCH_PARTITION": "partition",
    "SBATCH_PRIORITY": "priority",
    "SBATCH_QOS": "qos",
    "SBATCH_REQ_SWITCH": "switches",
    "SBATCH_REQUEUE": "requeue",
    "SBATCH_RESERVATION": "reservation",
    "SBATCH_SIGNAL": "signal",
    "SBATCH_THREADS_PER_CORE": "threads-per-core",
    "SBATCH_TIMELIMIT": "time",
    "SBATCH_WAIT": "wait",
    "SBATCH_WAIT_ALL_NODES": "wait-all-nodes",
    "SBATCH_WCKEY": "wckey",
}
"""Input variables, and the options they stand for."""

UNBUILT_VARIABLES: Final = tuple(
    f"SBATCH_{name}"
    for name in """
    ACCTG_FREQ BATCH CLUSTER_CONSTRAINT CORE_SPEC CPU_FREQ_REQ CPUS_PER_GPU DELAY_BOOT EXPORT_FILE
    GPU_BIND GPU_FREQ GRES_FLAGS MEM_PER_GPU NETWORK
    NTASKS_PER_GPU POWER PROFILE SPREAD_JOB THREAD_SPEC
    USE_MIN_NODES WAIT4SWITCH
    """.split()
)
"""Input variables of options that are refused."""

_FAILED: Final = "Batch job submission failed"
_NO_ROOM: Final = "Slurm temporarily unable to accept job, sleeping and retrying."
_RETRIES: Final = 15


async def sbatch(call: CommandCall) -> int:
    """Submit a script; return the exit status."""
    filters = Filters(call, GRAMMAR)
    status = await _sbatch(call, filters)
    await filters.unload()
    return status


async def _sbatch(call: CommandCall, filters: Filters) -> int:
    try:
        await filters.load()
        first = await filters.defaults(early=True)
        given, words = GRAMMAR.split(with_nice(call.argv[1:]))
        refuse_parts("sbatch", words[:1])
        if answered(call, GRAMMAR, [*first, *given]):
            return 0
        first += await filters.defaults()
        script, given = _read(call, first, given, words)
        options = GRAMMAR.values(await filters.before(given))
        _check_foreign(script, options)
        check_identity(call, options)
        tell_options(call, options)
        tell_select_plugins(call, options)
        check_cluster(call, options)
        job = _job(call, script, options)
        return await _submit(call, job, options, filters)
    except UsageError as error:
        for line in error.lines:
            call.err(line)
        return exit_of_error(call, error.status)
    except SlurmError as error:
        no_answer(call, error, f"sbatch: error: {_FAILED}")
        return exit_of_error(call, 1)


def exit_of_error(call: CommandCall, status: int) -> int:
    """Return the exit status of an error; of most SLURM_EXIT_ERROR may say another."""
    chosen = call.env.get("SLURM_EXIT_ERROR", "")
    return int(chosen) & 0xFF if status == 1 and chosen.isdecimal() and int(chosen) else status


def _read(
    call: CommandCall, first: Given, given: Given, words: list[str]
) -> tuple[batch_script.BatchScript, Given]:
    """Return the script and all options: its own, then the environment's, then the line's.

    What filters have set comes *first*; *given* is the line.
    """
    typed = [*first, *given]
    wrap = next((value for option, value in reversed(typed) if option.long == "wrap"), None)
    where = next((value for option, value in reversed(typed) if option.long == "chdir"), "")
    script = batch_script.read(call, wrap, words, where)
    lines = [
        each
        for line in script.lines
        for each in GRAMMAR.split(with_nice(batch_script.words_of(line)))[0]
    ]
    _refuse_words(script)
    refuse_variables(call)
    return script, [*first, *lines, *from_environment(GRAMMAR, call.env, VARIABLES), *given]


def _check_foreign(script: batch_script.BatchScript, options: dict[str, Any]) -> None:
    """Refuse a script with lines for another batch system, unless it is to pass over them."""
    if script.foreign and "ignore-pbs" not in options:
        raise UsageError(
            BAD_OPTION,
            f"sbatch: error: lines of {script.foreign} are read by Slurm, which simctl does not "
            "simulate yet; --ignore-pbs passes over them",
        )


def refuse_variables(call: CommandCall) -> None:
    """Refuse input variables that stand for options that are not built."""
    for variable in UNBUILT_VARIABLES:
        if variable in call.env:
            raise UsageError(
                BAD_OPTION,
                f"sbatch: error: {variable} stands for an option of Slurm's that simctl does not "
                "simulate yet",
            )


def _refuse_words(script: batch_script.BatchScript) -> None:
    """Refuse a line of a script that holds more than options."""
    for line in script.lines:
        rest = GRAMMAR.split(with_nice(batch_script.words_of(line)))[1]
        if rest:
            raise UsageError(
                BAD_OPTION,
                f"sbatch: error: Invalid directive found in batch script: {rest[0]}",
            )


async def _submit(
    call: CommandCall, job: JobDesc, options: dict[str, Any], filters: Filters
) -> int:
    """Submit a job, tell its id, and wait for its end if that is asked for."""
    if "test-only" in options:
        return await test_only(call, job, "allocation failure", options)
    reply = await _ask(call, job, options)
    # One that is held, or lacks nodes, is told by an error number, and is in all the same.
    if reply.error_code and not reply.job_id:
        return exit_of_error(call, refuse(call, _FAILED, reply.error_code, reply.text))
    tell_lines(call, reply.text, options)
    await filters.after(reply.job_id)
    _tell_id(call, reply.job_id, options)
    return await end_of_job(call, reply.job_id) if "wait" in options else 0


async def _ask(call: CommandCall, job: JobDesc, options: dict[str, Any]) -> ResponseSubmitBatchJob:
    """Ask for a job; a controller that has no room for one is asked again, ever later."""
    tries = 0
    while True:
        reply = await ask(call, RequestSubmitBatchJob(job_desc=job))
        assert isinstance(reply, ResponseSubmitBatchJob)
        if reply.error_code != EAGAIN or reply.job_id or tries == _RETRIES:
            return reply
        if not tries and "quiet" not in options:
            call.err(f"sbatch: error: {_NO_ROOM}")
        tries += 1
        await call.site.kernel.sleep_us(tries * SECOND)


def _tell_id(call: CommandCall, job_id: int, options: dict[str, Any]) -> None:
    cluster = call.site.conf.cluster_name if "clusters" in options else ""
    if "parsable" in options:
        call.out(f"{job_id};{cluster}" if cluster else str(job_id))
    elif "quiet" not in options:
        call.out(f"Submitted batch job {job_id}" + (f" on cluster {cluster}" if cluster else ""))


def _job(call: CommandCall, script: batch_script.BatchScript, options: dict[str, Any]) -> JobDesc:
    """Return the job that the options ask for."""
    more = burst_buffer.lines_of_batch(call, options)
    body = script.text
    if more:
        body = batch_script.parsed(call, burst_buffer.inserted(body, more), script.name)
    return describe(
        call,
        options,
        name=script.name,
        script=body,
        script_name=script.path,
        argv=script.argv,
        environment=_environment(call, options),
        std_in=options.get("input", ""),
        std_out=options.get("output", ""),
        std_err=options.get("error", ""),
        appends=options.get("open-mode") == "append",
        requeue=_requeue(options),
        job_id=options.get("jobid", NO_VAL),
        priority=0 if "hold" in options else options.get("priority", NO_VAL),
        nice=options.get("nice", 0),
        begin_s=_begin(call, options.get("begin", "")),
        dependency=options.get("dependency", ""),
        kill_on_invalid_dep=options.get("kill-on-invalid-dep", NO_VAL),
        array=options.get("array", ""),
        burst_buffer=burst_buffer.of_batch(options),
    )


def _environment(call: CommandCall, options: dict[str, Any]) -> dict[str, str]:
    """Return what the job sees of sbatch's own environment."""
    env = {key: value for key, value in call.env.items() if key != "SLURM_STEP_ID"}
    if "get-user-env" in options:
        env = {**acting_user(call, options).login, **env, "SLURM_GET_USER_ENV": "1"}
    told = {variable: _text(options[long]) for long, variable in _TOLD.items() if options.get(long)}
    export = options.get("export")
    if export is None:
        return {**env, **told}
    return {**export.of(env), **told, "SLURM_EXPORT_ENV": export.text}


def _text(value: Any) -> str:
    return gpus_text(value) if isinstance(value, tuple) else str(value)


_TOLD: Final = {
    "container": "SLURM_CONTAINER",
    "dependency": "SLURM_JOB_DEPENDENCY",
    "gpus": "SLURM_GPUS",
    "gpus-per-node": "SLURM_GPUS_PER_NODE",
    "gpus-per-task": "SLURM_GPUS_PER_TASK",
    "hint": "SLURM_HINT",
    "ntasks-per-core": "SLURM_NTASKS_PER_CORE",
    "threads-per-core": "SLURM_THREADS_PER_CORE",
}
"""Options that the job's variables tell of."""


def _begin(call: CommandCall, text: str) -> int:
    """Return when the job may begin, in seconds since the epoch; 0 for at once."""
    now_s = call.site.start_time_s + call.site.kernel.now_us // SECOND
    return parse_moment(text, now_s) if text else 0


def _requeue(options: dict[str, Any]) -> int:
    if "requeue" in options:
        return 1
    return 0 if "no-requeue" in options else NO_VAL
