"""sbatch: hand a batch script to the controller."""

from typing import Any, Final

from simctl.commands.ask import ask, no_answer
from simctl.commands.describe import describe, refuse
from simctl.commands.options import (
    BAD_OPTION,
    JOB_OPTIONS,
    JOB_UNBUILT,
    Grammar,
    Option,
    UsageError,
    nice,
    not_negative,
    positive,
    text,
    with_nice,
    words_of,
    yes_or_no,
)
from simctl.plugins.site import CommandCall
from simctl.stepd.script import has_interpreter, parse, sbatch_options
from simctl.wire.errno import ESLURM_JOB_HELD, SLURM_SUCCESS, SlurmError
from simctl.wire.ids import NO_VAL, SECOND
from simctl.wire.messages import RequestSubmitBatchJob, ResponseSubmitBatchJob
from simctl.wire.records import JobDesc
from simctl.wire.times import parse_moment

_OWN: Final = "a array H hold b begin d dependency kill-on-invalid-dep nice priority"

GRAMMAR: Final = Grammar(
    command="sbatch",
    options=(
        *JOB_OPTIONS,
        Option(long="wrap", read=text),
        Option(long="parsable"),
        Option(long="requeue"),
        Option(long="no-requeue"),
        Option(long="jobid", read=positive),
        Option(long="hold", short="H"),
        Option(long="begin", short="b", read=text),
        Option(long="dependency", short="d", read=text),
        Option(long="kill-on-invalid-dep", read=yes_or_no),
        Option(long="nice", read=nice),
        Option(long="priority", read=not_negative),
        Option(long="array", short="a", read=text),
    ),
    unbuilt=(JOB_UNBUILT - frozenset(_OWN.split())) | {"W", "wait", "I", "immediate", "open-mode"},
)


async def sbatch(call: CommandCall) -> int:
    """Submit a script; return the exit status."""
    try:
        script, name, argv, options = _read(call)
        job = _job(call, script, name, argv, options)
    except UsageError as error:
        for line in error.lines:
            call.err(line)
        return error.status
    try:
        reply = await ask(call, RequestSubmitBatchJob(job_desc=job))
    except SlurmError as error:
        no_answer(call, error, "sbatch: error: Batch job submission failed")
        return 1
    assert isinstance(reply, ResponseSubmitBatchJob)
    # A held job is told by an error number, and is in all the same.
    if reply.error_code not in (SLURM_SUCCESS, ESLURM_JOB_HELD):
        if job.partition and reply.error_code == _INVALID_PARTITION:
            call.err(f"sbatch: error: invalid partition specified: {job.partition}")
        return refuse(call, "Batch job submission failed", reply.error_code, reply.text)
    if "parsable" in options:
        call.out(str(reply.job_id))
    elif "quiet" not in options:
        call.out(f"Submitted batch job {reply.job_id}")
    return 0


_INVALID_PARTITION = 2000


def _job(
    call: CommandCall, script: str, name: str, argv: tuple[str, ...], options: dict[str, Any]
) -> JobDesc:
    """Return the job that the options ask for."""
    return describe(
        call,
        options,
        name=name,
        script=script,
        script_name=name,
        argv=argv,
        environment={key: value for key, value in call.env.items() if key != "SLURM_STEP_ID"},
        std_out=options.get("output", ""),
        std_err=options.get("error", ""),
        requeue=_requeue(options),
        job_id=options.get("jobid", NO_VAL),
        priority=0 if "hold" in options else options.get("priority", NO_VAL),
        nice=options.get("nice", 0),
        begin_s=_begin(call, options.get("begin", "")),
        dependency=options.get("dependency", ""),
        kill_on_invalid_dep=options.get("kill-on-invalid-dep", NO_VAL),
        array=options.get("array", ""),
    )


def _begin(call: CommandCall, text: str) -> int:
    """Return when the job may begin, in seconds since the epoch; 0 for at once."""
    if not text:
        return 0
    try:
        return parse_moment(text, call.site.start_time_s + call.site.kernel.now_us // SECOND)
    except (ValueError, OverflowError):
        raise UsageError(
            BAD_OPTION,
            f"Invalid time specification (pos=0): {text}",
            "sbatch: error: Invalid --begin specification",
        ) from None


def _requeue(options: dict[str, Any]) -> int:
    if "requeue" in options:
        return 1
    return 0 if "no-requeue" in options else NO_VAL


def _read(call: CommandCall) -> tuple[str, str, tuple[str, ...], dict[str, Any]]:
    """Return the script, its name, its arguments and all options; the line's own come first."""
    given, words = GRAMMAR.parse(with_nice(call.argv[1:]))
    if "wrap" in given:
        if words:
            raise UsageError(1, "sbatch: error: Script arguments not permitted with --wrap option")
        script = f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{given['wrap']}\n"
        return _checked(script, "wrap"), "wrap", ("wrap",), given
    if not words:
        raise UsageError(
            1, "sbatch: error: a script from standard input is not simulated; name a file"
        )
    path = words[0]
    found = call.site.disk.read(path, call.work_dir, host=call.process.host.name)
    if found is None:
        raise UsageError(1, f"sbatch: error: Unable to open file {path}")
    if not found.strip():
        raise UsageError(1, "sbatch: error: Batch script is empty!")
    if not has_interpreter(found):
        raise UsageError(
            1,
            "sbatch: error: This does not look like a batch script.  The first",
            "sbatch: error: line must start with #! followed by the path to an interpreter.",
            "sbatch: error: For instance: #!/bin/sh",
        )
    return _checked(found, path), path.rsplit("/", 1)[-1], tuple(words), _in_script(found) | given


def _checked(script: str, name: str) -> str:
    _, mistakes = parse(script)
    if mistakes:
        raise UsageError(
            1,
            *(
                f"sbatch: error: {name}:{mistake.line}:{mistake.column}: {mistake.message}"
                for mistake in mistakes
            ),
        )
    return script


def _in_script(script: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for number, line in sbatch_options(script):
        try:
            words = words_of(line)
        except ValueError as error:
            raise UsageError(1, f"sbatch: error: line {number}: {error}") from error
        options |= GRAMMAR.parse(with_nice(words))[0]
    return options
