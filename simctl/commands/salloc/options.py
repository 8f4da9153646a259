"""What salloc understands: its options, its input variables, and what they may not ask for."""

from typing import Any, Final

from simctl.commands.arguments.command_line import (
    answered,
    check_cluster,
    check_identity,
    from_environment,
    tell_options,
)
from simctl.commands.arguments.input_variables import refuse_variables
from simctl.commands.arguments.job_options import (
    CLUSTERS,
    JOB_OPTIONS,
    OF_SBATCH,
    TEST_ONLY,
    WAIT_ALL_NODES,
    unbuilt,
)
from simctl.commands.arguments.options import (
    Grammar,
    Option,
    UsageError,
    patience,
    refuse_parts,
    signal,
    with_nice,
)
from simctl.commands.arguments.queue_options import QUEUE_NAMES, QUEUE_OPTIONS
from simctl.commands.submission.filters import Filters
from simctl.site import CommandCall

GRAMMAR: Final = Grammar(
    command="salloc",
    usage="[OPTIONS(0)...] [command(0) [args(0)...]]",
    options=(
        *(option for option in JOB_OPTIONS if option.long not in ("output", "error")),
        Option(long="immediate", short="I", read=patience, optional="1"),
        Option(long="kill-command", short="K", read=signal, optional="TERM"),
        Option(long="no-shell"),
        Option(long="bell"),
        Option(long="no-bell"),
        CLUSTERS,
        TEST_ONLY,
        WAIT_ALL_NODES,
        *QUEUE_OPTIONS,
    ),
    unbuilt=unbuilt(
        f"clusters M test-only wait-all-nodes {QUEUE_NAMES} {OF_SBATCH} export i input",
        "W wait tres-per-task",
    ),
)

VARIABLES: Final = {
    "SALLOC_ACCOUNT": "account",
    "SALLOC_BELL": "bell",
    "SALLOC_BURST_BUFFER": "bb",
    "SLURM_CLUSTERS": "clusters",
    "SALLOC_CLUSTERS": "clusters",
    "SALLOC_CONSTRAINT": "constraint",
    "SALLOC_DEBUG": "verbose",
    "SALLOC_EXCLUSIVE": "exclusive",
    "SALLOC_GPUS": "gpus",
    "SALLOC_GPUS_PER_NODE": "gpus-per-node",
    "SALLOC_GPUS_PER_TASK": "gpus-per-task",
    "SALLOC_GRES": "gres",
    "SALLOC_HINT": "hint",
    "SALLOC_IMMEDIATE": "immediate",
    "SALLOC_KILL_CMD": "kill-command",
    "SALLOC_MEM_BIND": "mem-bind",
    "SALLOC_MEM_PER_CPU": "mem-per-cpu",
    "SALLOC_MEM_PER_NODE": "mem",
    "SALLOC_NO_BELL": "no-bell",
    "SALLOC_NO_KILL": "no-kill",
    "SALLOC_OVERCOMMIT": "overcommit",
    "SALLOC_PARTITION": "partition",
    "SALLOC_QOS": "qos",
    "SALLOC_REQ_SWITCH": "switches",
    "SALLOC_RESERVATION": "reservation",
    "SALLOC_SIGNAL": "signal",
    "SALLOC_THREADS_PER_CORE": "threads-per-core",
    "SALLOC_TIMELIMIT": "time",
    "SALLOC_WAIT_ALL_NODES": "wait-all-nodes",
    "SALLOC_WCKEY": "wckey",
}
"""Input variables, and the options they stand for."""


async def read(call: CommandCall, filters: Filters) -> tuple[dict[str, Any], list[str]] | int:
    """Return the options and the command; an exit status where there is no more to do.

    Raises:
        UsageError: The command line is wrong.
    """
    given, words = GRAMMAR.split(with_nice(call.argv[1:]))
    refuse_parts("salloc", words)
    if answered(call, GRAMMAR, given):
        return 0
    refuse_variables(call)
    first = await filters.defaults()
    given = [*first, *from_environment(GRAMMAR, call.env, VARIABLES), *given]
    options = GRAMMAR.values(await filters.before(given))
    check_identity(call, options)
    check_cluster(call, options)
    tell_options(call, options)
    if "get-user-env" in options and call.user.uid:
        raise UsageError(1, "salloc: WARNING: you must be root to use --get-user-env")
    if not words and not {"no-shell", "test-only"} & set(options):
        raise UsageError(
            1,
            "salloc: error: without a command salloc starts a shell for somebody at a terminal, "
            "which simctl does not simulate; name a command, or give --no-shell",
        )
    return options, words
