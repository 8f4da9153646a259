"""What squeue and sinfo share: questions to slurmctld, clusters by name, the watch's rounds."""

from collections.abc import Mapping, Sequence
from typing import Final

from simctl.commands.arguments.options import UsageError
from simctl.commands.asking.ask import ask, no_answer
from simctl.site import CommandCall
from simctl.wire.errno import SlurmError, errno_name, slurm_strerror
from simctl.wire.ids import SECOND
from simctl.wire.messages import Message, ResponseSlurmRc

VERSION: Final = "22.05.8"
"""The Slurm whose output this is."""


class NoAnswerError(Exception):
    """A question was refused, or not answered; what there is to say has been said."""


async def answer(call: CommandCall, request: Message, what: str) -> Message:
    """Return slurmctld's answer.

    Raises:
        NoAnswerError: There is none, which was printed after *what* was being done.
    """
    try:
        found = await ask(call, request)
    except SlurmError as error:
        no_answer(call, error, what)
        raise NoAnswerError from error
    if isinstance(found, ResponseSlurmRc):
        call.errno = errno_name(found.return_code)
        call.err(f"{what}: {slurm_strerror(found.return_code)}")
        raise NoAnswerError
    return found


def check_clusters(call: CommandCall, names: Sequence[str]) -> None:
    """Check that clusters are this one.

    Raises:
        UsageError: One of them is not.
    """
    command, known = call.argv[0], call.site.conf.cluster_name
    for name in names:
        if name.lower() not in (known.lower(), "all"):
            raise UsageError(
                1,
                f"{command}: error: No cluster '{name}' known by database.",
                f"{command}: error: '{name}' can't be reached now, or it is an invalid entry for "
                "--cluster.  Use 'sacctmgr list clusters' to see available clusters.",
            )


def usual_names(argv: Sequence[str], others: Mapping[str, str]) -> list[str]:
    """Return a command line in which other long names of options are replaced by the usual ones."""

    def usual(word: str) -> str:
        name, equals, value = word[2:].partition("=")
        if not word.startswith("--") or name not in others:
            return word
        return f"--{others[name]}{equals}{value}"

    return [usual(word) for word in argv]


def interval(value: str) -> int:
    """Read after how many seconds something is shown again."""
    if not value.isdecimal() or not int(value):
        raise ValueError(f"--iterate={value}")
    return int(value)


def clock_s(call: CommandCall) -> int:
    """Return what clocks show, in seconds since the epoch."""
    return call.site.start_time_s + call.site.kernel.now_us // SECOND


async def next_round(call: CommandCall, interval_s: int) -> bool:
    """Wait until it is time to show it again; return False where nothing is left to happen.

    Slurm's commands go on until the user stops them, which would keep a run from ending.
    """
    kernel = call.site.kernel
    if kernel.foreground <= kernel.watching:
        return False
    kernel.watching += 1
    try:
        await kernel.sleep_us(interval_s * SECOND)
    finally:
        kernel.watching -= 1
    return True
