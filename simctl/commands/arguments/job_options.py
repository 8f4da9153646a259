"""The options that sbatch, salloc and srun share, and those of Slurm's that are not built."""

from typing import Final

from simctl.commands.arguments.job_values import (
    clusters,
    constraint,
    distribution,
    exclusive,
    export,
    gpus,
    gres,
    hint,
    hosts,
    interval,
    least_time,
    login,
    mail_type,
    memory,
    memory_binding,
    moment,
    node_count,
    one_thread,
    open_mode,
    rlimits,
    switches,
    time_limit,
    warning,
    zero_or_one,
)
from simctl.commands.arguments.options import Option, positive, text

STANDARD: Final = (
    Option(long="help", short="h"),
    Option(long="usage"),
    Option(long="version", short="V"),
    Option(long="verbose", short="v", counts=True),
)
"""What every command takes."""

JOB_OPTIONS: Final = (
    Option(long="nodes", short="N", read=node_count),
    Option(long="ntasks", short="n", read=positive),
    Option(long="ntasks-per-node", read=positive, also="tasks-per-node"),
    Option(long="cpus-per-task", short="c", read=positive),
    Option(long="ntasks-per-core", read=positive),
    Option(long="threads-per-core", read=one_thread),
    Option(long="hint", read=hint),
    Option(long="time", short="t", read=time_limit),
    Option(long="time-min", read=least_time),
    Option(long="partition", short="p", read=text),
    Option(long="job-name", short="J", read=text),
    Option(long="nodelist", short="w", read=hosts),
    Option(long="exclude", short="x", read=hosts),
    Option(long="distribution", short="m", read=distribution),
    Option(long="account", short="A", read=text),
    Option(long="chdir", short="D", read=text),
    Option(long="output", short="o", read=text),
    Option(long="error", short="e", read=text),
    Option(long="signal", read=warning),
    Option(long="deadline", read=moment),
    Option(long="exclusive", read=exclusive, optional="exclusive"),
    Option(long="mem", read=memory, ousts=("mem-per-cpu",)),
    Option(long="mem-per-cpu", read=memory, ousts=("mem",)),
    Option(long="mincpus", read=positive),
    Option(long="gres", read=gres),
    Option(long="gpus", short="G", read=gpus),
    Option(long="gpus-per-node", read=gpus),
    Option(long="gpus-per-task", read=gpus),
    Option(long="mem-bind", read=memory_binding, also="mem_bind"),
    Option(long="switches", read=switches),
    Option(long="propagate", read=rlimits, optional="ALL"),
    Option(long="reservation", read=text),
    Option(long="constraint", short="C", read=constraint),
    Option(long="licenses", short="L", read=text),
    Option(long="qos", short="q", read=text),
    Option(long="comment", read=text),
    Option(long="wckey", read=text),
    Option(long="get-user-env", read=login, optional="0"),
    Option(long="bb", read=text),
    Option(long="bbf", read=text),
    Option(long="mail-type", read=mail_type),
    Option(long="mail-user", read=text),
    Option(long="tmp", read=memory),
    Option(long="uid", read=text),
    Option(long="gid", read=text),
    Option(long="checkpoint", read=interval),
    Option(long="checkpoint-dir", read=text),
    Option(long="no-kill", short="k"),
    Option(long="oversubscribe", short="s"),
    Option(long="overcommit", short="O"),
    Option(long="quiet", short="Q"),
    *STANDARD,
)
"""What sbatch, salloc and srun take."""

EXPORT: Final = Option(long="export", read=export)
OPEN_MODE: Final = Option(long="open-mode", read=open_mode)
CLUSTERS: Final = Option(long="clusters", short="M", read=clusters)
TEST_ONLY: Final = Option(long="test-only")
WAIT_ALL_NODES: Final = Option(long="wait-all-nodes", read=zero_or_one)
INPUT: Final = Option(long="input", short="i", read=text)
"""Those that only some of them take."""

JOB_UNBUILT: Final = frozenset(
    """
    a acctg-freq array begin b batch
    cluster-constraint
    clusters M contiguous core-spec S cores-per-socket cpu-freq
    cpus-per-gpu d delay-boot dependency exclusive-user export export-file
    extra-node-info B F nodefile gpu-bind gpu-freq
    gpus-per-socket gres-flags H hold i ignore-pbs input
    kill-on-invalid-dep mcs-label
    mem-per-gpu network nice ntasks-per-gpu ntasks-per-socket
    share power priority profile reboot
    sockets-per-node spread-job test-only thread-spec
    use-min-nodes wait-all-nodes
    container prefer
    """.split()
)


OF_SBATCH: Final = "a array batch export-file ignore-pbs"
"""Options that Slurm has for sbatch alone, and so refuses elsewhere as unknown."""


def unbuilt(own: str, more: str = "") -> frozenset[str]:
    """Return what a command refuses by name: all that is not built, but for what it has itself."""
    return (JOB_UNBUILT | frozenset(more.split())) - frozenset(own.split())
