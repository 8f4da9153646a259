"""scancel: signal jobs and steps."""

import re
from typing import Final

from simctl.commands.ask import ask, no_answer
from simctl.commands.options import Grammar, Option, UsageError, signal
from simctl.kernel.procs import SIGKILL
from simctl.plugins.site import CommandCall
from simctl.wire.arrays import parse_tasks
from simctl.wire.errno import (
    ESLURM_ALREADY_DONE,
    ESLURM_INVALID_JOB_ID,
    SLURM_SUCCESS,
    SlurmError,
    errno_name,
    slurm_strerror,
)
from simctl.wire.messages import Message, RequestCancelJobStep, RequestKillJob, ResponseSlurmRc

GRAMMAR: Final = Grammar(
    command="scancel",
    options=(
        Option(long="signal", short="s", read=signal),
        Option(long="batch", short="b"),
        Option(long="full", short="f"),
        Option(long="quiet", short="Q"),
        Option(long="verbose", short="v"),
    ),
    unbuilt=frozenset(
        """
        A account ctld H hurry i interactive M clusters me n name jobname p partition q
        qos R reservation sibling t state u user V version w nodelist wckey help usage h
        cron
        """.split()
    ),
    bad_status=1,
)

_TARGET: Final = re.compile(r"(\d+)(?:\.(\d+)|_(\d+|\[[\d,:-]+\]))?")
_WORST_STATUS: Final = 200


async def scancel(call: CommandCall) -> int:
    """Cancel or signal what the words name; return the exit status of the last refusal."""
    try:
        options, words = GRAMMAR.parse(call.argv[1:])
        targets = _targets(words)
    except UsageError as error:
        for line in error.lines:
            call.err(line.removeprefix("scancel: error: ") if "Unknown" in line else line)
        return error.status
    status = 0
    for job_id, step_id, tasks in targets:
        request: Message
        number = options.get("signal", SIGKILL)
        if step_id is not None:
            request = RequestCancelJobStep(job_id=job_id, step_id=step_id, signal=number)
            what = f"job step {job_id}.{step_id}"
        else:
            request = RequestKillJob(
                job_id=job_id,
                signal=number,
                batch_only="batch" in options,
                full="full" in options,
                array_tasks=tasks,
            )
            what = f"job {job_id}"
        if "verbose" in options:
            call.err(f"scancel: Terminating {what}")
        status = await _ask(call, request, what, verbose="verbose" in options) or status
    return status


def _targets(words: list[str]) -> list[tuple[int, int | None, tuple[int, ...]]]:
    """Return the jobs, steps and array tasks that are meant: ``5``, ``5.0``, ``5_[1-3]``."""
    if not words:
        raise UsageError(1, "scancel: error: No job identification provided")
    targets = []
    for word in words:
        match = _TARGET.fullmatch(word)
        if match is None:
            raise UsageError(1, f"scancel: error: Invalid job id {word}")
        tasks: tuple[int, ...] = ()
        if match[3]:
            try:
                tasks = parse_tasks(match[3])
            except ValueError:
                raise UsageError(1, f"scancel: error: Invalid job id {word}") from None
        targets.append((int(match[1]), int(match[2]) if match[2] else None, tasks))
    return targets


async def _ask(call: CommandCall, request: Message, what: str, *, verbose: bool) -> int:
    try:
        reply = await ask(call, request)
    except SlurmError as error:
        number = what.rsplit(" ", 1)[1]
        named = f"job step id {number}" if what.startswith("job step") else f"job id {number}"
        no_answer(call, error, f"scancel: error: Kill job error on {named}")
        return error.errno & 0xFF
    assert isinstance(reply, ResponseSlurmRc)
    code = reply.return_code
    if code == SLURM_SUCCESS:
        return 0
    call.errno = errno_name(code)
    # A job that is gone already is no failure: that is what was asked for.
    if code in (ESLURM_ALREADY_DONE, ESLURM_INVALID_JOB_ID) and not what.startswith("job step"):
        if verbose and code == ESLURM_INVALID_JOB_ID:
            _complain(call, what, code)
        return 0
    _complain(call, what, code)
    # The exit status is the error number's low byte, as the shell sees it.
    return code & 0xFF


def _complain(call: CommandCall, what: str, code: int) -> None:
    number = what.rsplit(" ", 1)[1]
    named = f"job step id {number}" if what.startswith("job step") else f"job id {number}"
    call.err(f"scancel: error: Kill job error on {named}: {slurm_strerror(code)}")
