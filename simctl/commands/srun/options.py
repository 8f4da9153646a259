"""What srun understands: its options, its input variables, and what they may not ask for."""

from collections.abc import Mapping
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
    EXPORT,
    INPUT,
    JOB_OPTIONS,
    OF_SBATCH,
    OPEN_MODE,
    TEST_ONLY,
    unbuilt,
)
from simctl.commands.arguments.job_values import hosts
from simctl.commands.arguments.options import (
    BAD_OPTION,
    Grammar,
    Option,
    UsageError,
    leading_number,
    not_negative,
    patience,
    positive,
    refuse_parts,
    text,
    with_nice,
)
from simctl.commands.arguments.queue_options import QUEUE_NAMES, QUEUE_OPTIONS
from simctl.commands.srun.step_request import fits_per_node
from simctl.commands.submission.filters import Filters
from simctl.site import CommandCall
from simctl.wire.ids import NO_VAL
from simctl.wire.layout import Distribution

GRAMMAR: Final = Grammar(
    command="srun",
    usage="[OPTIONS...] executable [args...]",
    options=(
        *JOB_OPTIONS,
        EXPORT,
        OPEN_MODE,
        CLUSTERS,
        TEST_ONLY,
        INPUT,
        *QUEUE_OPTIONS,
        Option(long="label", short="l"),
        Option(long="relative", short="r", read=not_negative),
        Option(long="jobid", read=not_negative),
        Option(long="immediate", short="I", read=patience, optional="1"),
        Option(long="kill-on-bad-exit", short="K", read=leading_number, optional="1"),
        Option(long="wait", short="W", read=not_negative),
        Option(long="overlap"),
        Option(long="exact"),
        Option(long="whole"),
        Option(long="multi-prog"),
        Option(long="unbuffered", short="u"),
        Option(long="disable-status", short="X"),
        Option(long="quit-on-interrupt"),
        Option(long="cpu-bind", read=text, also="cpu_bind"),
        Option(long="mpi", read=text),
        Option(long="pty"),
        Option(long="threads", short="T", read=positive),
        Option(long="prolog", read=text),
        Option(long="epilog", read=text),
        Option(long="task-prolog", read=text),
        Option(long="task-epilog", read=text),
        Option(long="restart-dir", read=text),
    ),
    unbuilt=unbuilt(
        f"u export open-mode clusters M test-only i input {QUEUE_NAMES} {OF_SBATCH}",
        """
        accel-bind acctg-freq bcast bcast-exclude compress debugger-test E
        het-group interactive launch-cmd launcher-opts msg-timeout no-allocate Z pack-group
        preserve-env resv-ports send-libs slurmd-debug tres-per-task
        """,
    ),
)

VARIABLES: Final = {
    "SLURM_CHECKPOINT": "checkpoint",
    "SLURM_CHECKPOINT_DIR": "checkpoint-dir",
    "SLURM_CLUSTERS": "clusters",
    "SLURM_CPU_BIND": "cpu-bind",
    "SLURM_DEBUG": "verbose",
    "SLURM_EPILOG": "epilog",
    "SLURM_EXACT": "exact",
    "SLURM_EXCLUSIVE": "exclusive",
    "SLURM_EXPORT_ENV": "export",
    "SLURM_HINT": "hint",
    "SLURM_IMMEDIATE": "immediate",
    "SLURM_LABELIO": "label",
    "SLURM_MEM_BIND": "mem-bind",
    "SLURM_MPI_TYPE": "mpi",
    "SLURM_OPEN_MODE": "open-mode",
    "SLURM_OVERCOMMIT": "overcommit",
    "SLURM_OVERLAP": "overlap",
    "SLURM_PROLOG": "prolog",
    "SLURM_REQ_SWITCH": "switches",
    "SLURM_RESTART_DIR": "restart-dir",
    "SLURM_REMOTE_CWD": "chdir",
    "SLURM_STDERRMODE": "error",
    "SLURM_STDINMODE": "input",
    "SLURM_STDOUTMODE": "output",
    "SLURM_TASK_EPILOG": "task-epilog",
    "SLURM_TASK_PROLOG": "task-prolog",
    "SLURM_THREADS": "threads",
    "SLURM_THREADS_PER_CORE": "threads-per-core",
    "SLURM_UNBUFFEREDIO": "unbuffered",
    "SLURM_WHOLE": "whole",
    "SLURM_WORKING_DIR": "chdir",
    "SRUN_EXPORT_ENV": "export",
}
"""Input variables, and the options they stand for."""

OF_ALLOCATIONS: Final = {
    "SLURM_ACCOUNT": "account",
    "SLURM_BURST_BUFFER": "bb",
    "SLURM_CONSTRAINT": "constraint",
    "SLURM_DEPENDENCY": "dependency",
    "SLURM_GPUS": "gpus",
    "SLURM_GPUS_PER_NODE": "gpus-per-node",
    "SLURM_GPUS_PER_TASK": "gpus-per-task",
    "SLURM_GRES": "gres",
    "SLURM_JOB_NAME": "job-name",
    "SLURM_MEM_PER_CPU": "mem-per-cpu",
    "SLURM_MEM_PER_NODE": "mem",
    "SLURM_PARTITION": "partition",
    "SLURM_QOS": "qos",
    "SLURM_RESERVATION": "reservation",
    "SLURM_SIGNAL": "signal",
    "SLURM_TIMELIMIT": "time",
    "SLURM_WCKEY": "wckey",
}
"""Those that count only where srun asks for a job of its own."""

_REFUSED_IN_JOBS: Final = (
    *("mem", "mem-per-cpu", "gres", "gpus", "gpus-per-node", "gpus-per-task", "mincpus"),
    *("reservation", "signal"),
    *("deadline", "constraint", "licenses", "tmp", "test-only"),
    *("bb", "bbf"),
    *("hold", "begin", "dependency", "kill-on-invalid-dep", "nice", "priority"),
)
"""Options that shape an allocation; of a step inside one they are not simulated."""


async def read(call: CommandCall, filters: Filters) -> tuple[dict[str, Any], list[str]] | int:
    """Return srun's options and the command; an exit status where that is all there is to do.

    Raises:
        UsageError: The command line is wrong.
    """
    given, words = GRAMMAR.split(with_nice(call.argv[1:]))
    refuse_parts("srun", words)
    if answered(call, GRAMMAR, given):
        return 0
    refuse_variables(call)
    inside = "SLURM_JOB_ID" in call.env or any(option.long == "jobid" for option, _ in given)
    variables = VARIABLES if inside else {**OF_ALLOCATIONS, **VARIABLES}
    first = [] if "SLURM_JOB_ID" in call.env else await filters.defaults(early=True)
    given = [*first, *from_environment(GRAMMAR, call.env, variables), *given]
    options = GRAMMAR.values(await filters.before(given))
    if options.get("distribution", (None,))[0] is Distribution.ARBITRARY:
        options.setdefault("nodelist", _hostfile(call, options.get("ntasks", NO_VAL)))
        if not options["nodelist"]:
            del options["nodelist"]
    if options.get("mpi") == "list":
        call.write("stdout", _MPI_PLUGINS)
        return 0
    _check(call, options, inside=inside)
    if not words:
        raise UsageError(1, "srun: fatal: No command given to execute.")
    if not inside and {"nodes", "ntasks", "ntasks-per-node"} <= set(options):
        # A job of srun's own asks for no more than its step.
        tasks, (least, _), per_node = (
            options[name] for name in ("ntasks", "nodes", "ntasks-per-node")
        )
        if not fits_per_node(call, tasks, min(least, tasks), per_node):
            options = {key: each for key, each in options.items() if key != "ntasks-per-node"}
    tell_options(call, options)
    call.at_terminal = "pty" in options and call.run_here is not None
    if "pty" in options and not call.at_terminal:
        call.err("srun: error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device")
        call.err("srun: error: Not using a pseudo-terminal, disregarding --pty option")
    return options, words


def _hostfile(call: CommandCall, tasks: int) -> tuple[str, ...]:
    """Return the nodes of the tasks, in order, as the file of SLURM_HOSTFILE lists them.

    Raises:
        UsageError: The file cannot be read, or lists fewer nodes than there are tasks.
    """
    path = call.env.get("SLURM_HOSTFILE", "")
    if not path:
        return ()
    text = call.files.find_text(path)
    if text is None:
        raise UsageError(1, f"srun: error: SLURM_HOSTFILE {path} cannot be read")
    names = tuple(name for line in text.splitlines() for name in hosts(line.partition("#")[0]))
    if tasks != NO_VAL and len(names) < tasks:
        what = f"SLURM_HOSTFILE {path} lists {len(names)} nodes for {tasks} tasks"
        raise UsageError(1, f"srun: error: {what}")
    return names if tasks == NO_VAL else names[:tasks]


def _check(call: CommandCall, options: Mapping[str, Any], *, inside: bool) -> None:
    """Refuse what cannot be asked for, or not here."""
    for name in _REFUSED_IN_JOBS if inside else ():
        if name in options:
            raise UsageError(
                BAD_OPTION,
                f"srun: error: --{name} of a step inside an allocation is an option of Slurm's "
                "that simctl does not simulate yet",
            )
    check_identity(call, options)
    check_cluster(call, options)
    _check_binding(call, options.get("cpu-bind", ""))
    _check_mpi(options.get("mpi", "none"))


_BINDINGS: Final = (
    *("q", "quiet", "v", "verbose", "no", "none", "rank", "rank_ldom", "one_thread"),
    *("sockets", "cores", "threads", "ldoms", "boards"),
)
_MAPS: Final = ("map_cpu:", "mask_cpu:", "map_ldom:", "mask_ldom:")


def _check_binding(call: CommandCall, wish: str) -> None:
    """Tell that no cpus are bound, as without a task plugin."""
    if not wish:
        return
    call.err("srun: cluster configuration lacks support for cpu binding")
    # Lists of cpus have commas of their own.
    words = wish.lower().split(",") if not any(each in wish for each in _MAPS) else []
    for word in words:
        if word not in _BINDINGS:
            raise UsageError(
                BAD_OPTION,
                f'srun: error: unrecognized --cpu-bind argument "{word}"',
                "srun: error: Invalid --cpu-bind specification",
            )


_MPI_PLUGINS: Final = (
    "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\n"
    "specific pmix plugin versions available: pmix_v4\n"
)


def _check_mpi(kind: str) -> None:
    """Refuse what is no kind of MPI; simulated programs use none, so that each kind is as none."""
    if kind in ("none", "pmix", "pmix_v4", "cray_shasta", "pmi2"):
        return
    raise UsageError(1, f"srun: fatal: Invalid MPI type '{kind}', --mpi=list for acceptable types")
