"""What goes wrong in a random scenario, and when: at any time, or at an event that matters."""

from collections.abc import Callable
from typing import Final

from simctl.plugins.points import ALL
from simctl.plugins.points.declare import OnError
from simctl.testing.swarm import buffers
from simctl.testing.swarm.chance import Chance
from simctl.testing.swarm.cluster import Cluster
from simctl.testing.swarm.draft import deed, fault, run
from simctl.testing.swarm.workload import SPAN_S, an_order, first_job

MOMENTS: Final = (
    *("job_state state=RUNNING", "job_state state=SUSPENDED", "job_state state=COMPLETING"),
    *("job_state state=RUNNING|CONFIGURING", "job_state state=PENDING|REQUEUE", "node_state"),
    *("prolog phase=enter", "epilog phase=enter", "prolog_slurmctld phase=enter"),
    *("REQUEST_LAUNCH_PROLOG phase=send", "REQUEST_COMPLETE_PROLOG phase=send"),
    *("REQUEST_BATCH_JOB_LAUNCH phase=receive", "REQUEST_LAUNCH_TASKS phase=send"),
    *("REQUEST_JOB_STEP_CREATE phase=receive", "RESPONSE_JOB_STEP_CREATE phase=send"),
    *("RESPONSE_RESOURCE_ALLOCATION phase=send", "REQUEST_SUSPEND_INT phase=receive"),
    *("REQUEST_TERMINATE_JOB phase=receive", "REQUEST_STEP_COMPLETE phase=send"),
    *("MESSAGE_TASK_EXIT phase=send", "MESSAGE_EPILOG_COMPLETE phase=send", "SRUN_STEP_SIGNAL"),
    *("switch_p_job_attach", "switch_p_job_fini", "switch_p_job_postfini", "fork role=manager"),
    *("REQUEST_JOB_REQUEUE phase=send", "REQUEST_COMPLETE_BATCH_SCRIPT phase=send"),
    *("slurm_ckpt_signal_tasks", "REQUEST_CHECKPOINT_TASKS phase=receive", "slurm_ckpt_op"),
    *("bb_state state=STAGING_IN", "bb_state state=RUNNING", "bb_state state=STAGING_OUT"),
    *("bb_p_job_begin", "dw_pre_run phase=enter", "dw_data_out phase=enter"),
    *("switch_p_libstate_save", "switch_p_libstate_restore", "MESSAGE_NODE_REGISTRATION_STATUS"),
)
"""Events at which a stroke of fate may matter."""

_OWN: Final = (
    *("become_user", "setsid role=session", "chdir role=session", "setrlimit role=session"),
    *("fork role=session", "fork role=manager", "create_container", "init role=manager"),
    *("prolog", "epilog", "prolog_slurmctld", "epilog_slurmctld", "task_prolog", "task_epilog"),
    *("srun_prolog", "srun_epilog", "select_g_job_begin", "switch_p_unpack_jobinfo role=slurmd"),
    *("switch_p_unpack_jobinfo role=manager", "switch_p_unpack_jobinfo role=srun"),
    *("switch_p_pack_jobinfo role=srun", "init role=srun"),
)
"""What may fail beside the functions of the guides, and some of these in one process alone."""

_SCRIPTS: Final = (
    *("prolog", "epilog", "prolog_slurmctld", "epilog_slurmctld", "task_prolog", "srun_prolog"),
)

_NAMES: Final = tuple(
    name
    for name, point in ALL.items()
    if point.on_error is not OnError.FATAL
    and not point.later
    and point.plugin_class not in ("job_submit", "cli_filter")
)
"""Functions that may fail and leave the daemon that called them alive."""

_ERRORS: Final = ("ESLURM_INTERCONNECT_FAILURE", "ENOMEM", "EIO", "ESLURM_NOT_SUPPORTED")


def draw_faults(seed: int, cluster: Cluster, last_job: int) -> list[str]:
    """Draw what goes wrong."""
    c = Chance.of(seed, "mishaps")
    makers = [make for name, make in _MAKERS.items() if cluster.has(name)]
    if "appliance" in cluster.features and not cluster.buffers:
        makers.remove(_appliance)
    entries: list[str] = []
    for _ in range(c.choice((1, 2, 4, 8, 12)) if makers else 0):
        if c.likely(0.35):
            skip = c.choice((0, 0, 0, 1, 3))
            more = f", skip: {skip}" if skip else ""
            at = f'when: "{c.choice(MOMENTS)}"{more}'
        else:
            at = f"at: {c.randint(0, SPAN_S * 10) / 10:g}s"
        entries += c.choice(makers)(c, cluster, at, last_job)
    for _ in range(c.choice((0, 0, 1, 2)) if entries else 0):
        line, user = an_order(c, cluster, last_job)
        if line:
            entries.append(run(f'when: "{c.choice(MOMENTS)}"', line, user))
    return entries


def _crash(c: Chance, cluster: Cluster, at: str, _: int) -> list[str]:
    node = c.choice(cluster.nodes)
    entries = [fault(at, f"crash: {node}")]
    if c.likely(0.7):
        clean = ", clean: true" if c.likely(0.3) else ""
        entries.append(fault(f"at: {c.randint(1, 2 * SPAN_S)}s", f"start: {node}{clean}"))
    return entries


def _controller(c: Chance, _: Cluster, at: str, __: int) -> list[str]:
    kind = c.choice(("crash", "crash", "crash", "stop"))
    saved = ", saved: true" if kind == "crash" and c.likely(0.3) else ""
    entries = [fault(at, f"{kind}: slurmctld{saved}")]
    if at.startswith("at: ") and c.likely(0.6):
        later = float(at[4:-1]) + c.choice((0.5, 3, 20, 100))
        return [*entries, fault(f"at: {later:g}s", "start: slurmctld")]
    return [*entries, fault(f"at: {c.randint(1, 2 * SPAN_S)}s", "start: slurmctld")]


def _disks(c: Chance, cluster: Cluster, at: str, _: int) -> list[str]:
    if c.likely(0.5):
        host = c.choice(("slurmctld", "slurmctld", "login", "shared", *cluster.nodes))
        how, length = c.choice(("full", "read_only")), c.choice(("10s", "100s", "300s"))
        return [fault(at, f"disk: {host}, how: {how}, for: {length}")]
    name = c.choice(("job_state", "job_state", "node_state", "part_state", "resv_state"))
    how = c.choice(("truncate", "flip"))
    return [fault(at, f"corrupt: {name}, how: {how}"), *_controller(c, cluster, at, 0)]


_OF_STEPS_HERE: Final = (
    *("exec role=task", "*", "switch_p_*", "* kind=message", "fork role=session"),
    *("switch_p_job_init", "switch_p_job_attach", "switch_p_job_fini", "MESSAGE_TASK_EXIT"),
    *("RESPONSE_LAUNCH_TASKS", "REQUEST_STEP_COMPLETE", "slurm_ckpt_*", "exit role=task"),
)
"""What a step does on a node, at which its daemon or a task of it may die."""


def _daemons(c: Chance, cluster: Cluster, at: str, last_job: int) -> list[str]:
    node, kind = c.choice(cluster.nodes), c.random()
    job = first_job(cluster) - 1 + c.randint(1, last_job)
    if kind < 0.5:
        step = c.choice(("0", "0", "1", "batch"))
        moment = c.choice(_OF_STEPS_HERE)
        skip = f", skip: {c.choice((1, 5))}" if c.likely(0.2) else ""
        here = f'when: "{moment} step={job}.{step} node={node}"{skip}'
        whom = f"task {job}.{step}.{c.choice((0, 0, 1))}"
        return [fault(here, f"crash: {whom if kind < 0.15 else f'stepd {job}.{step}@{node}'}")]
    if kind < 0.7:
        length = c.choice(("0s", "1s", "10s", "40s", "200s"))
        return [fault(at, f"restart: slurmd@{node}, for: {length}")]
    entries = [fault(at, f"{c.choice(('crash', 'crash', 'stop'))}: slurmd@{node}")]
    if c.likely(0.7):
        clean = ", clean: true" if c.likely(0.2) else ""
        later = c.randint(1, 2 * SPAN_S)
        entries.append(fault(f"at: {later}s", f"start: slurmd@{node}{clean}"))
    return entries


_RPCS: Final = (
    *("REQUEST_BATCH_JOB_LAUNCH", "REQUEST_LAUNCH_TASKS", "RESPONSE_LAUNCH_TASKS"),
    *("REQUEST_TERMINATE_JOB", "REQUEST_KILL_TIMELIMIT", "MESSAGE_EPILOG_COMPLETE"),
    *("REQUEST_STEP_COMPLETE", "REQUEST_COMPLETE_BATCH_SCRIPT", "MESSAGE_TASK_EXIT"),
    *("REQUEST_JOB_STEP_CREATE", "RESPONSE_JOB_STEP_CREATE", "RESPONSE_SLURM_RC"),
    *("RESPONSE_RESOURCE_ALLOCATION", "REQUEST_COMPLETE_JOB_ALLOCATION", "REQUEST_SUSPEND_INT"),
    *("MESSAGE_NODE_REGISTRATION_STATUS", "REQUEST_NODE_REGISTRATION_STATUS", "REQUEST_PING"),
    *("REQUEST_LAUNCH_PROLOG", "REQUEST_COMPLETE_PROLOG", "REQUEST_CHECKPOINT_TASKS"),
    *("REQUEST_SIGNAL_TASKS", "SRUN_JOB_COMPLETE", "SRUN_STEP_SIGNAL", "REQUEST_KILL_JOB"),
    *("REQUEST_SUBMIT_BATCH_JOB", "RESPONSE_SUBMIT_BATCH_JOB", "REQUEST_RESOURCE_ALLOCATION"),
    *("*", "*", "REQUEST_*", "RESPONSE_*", "MESSAGE_*", "SRUN_*"),
)
"""Messages, by name, that may go astray."""


_LAST_S: Final = 600
"""How long the next few messages may go astray: less than from one cleaning up to the next."""


def _messages(c: Chance, cluster: Cluster, at: str, _: int) -> list[str]:
    parts = [f'{c.choice(("drop", "drop", "duplicate", "delay", "reorder"))}: "{c.choice(_RPCS)}"']
    if parts[0].startswith("delay") or c.likely(0.3):
        parts += [f"by: {c.choice(('1ms', '1s', '5s', '15s', '100s'))}"]
    if parts[0].startswith("drop"):
        parts = parts[:1]
    ends = ("slurmctld", "login", *cluster.nodes)
    if c.likely(0.3):
        parts.append(f"{c.choice(('from', 'to'))}: {c.choice(ends)}")
    if c.likely(0.3):
        parts.append(f"skip: {c.choice((1, 3, 10))}")
    many = c.random()
    if many < 0.3:
        # Nor may it lie in wait for the end, and strike whatever is said there to a job.
        parts.append(f"times: {c.choice((2, 5))}, for: {_LAST_S}s")
    else:
        # A network that is bad for ever is nothing to come to rest with.
        parts.append(f"for: {c.choice(('10s', '60s', '300s'))}")
        parts += [f"chance: {c.choice((0.05, 0.2, 0.5))}"] if many < 0.8 else []
    return [fault(at, ", ".join(parts))]


def _cut(c: Chance, cluster: Cluster, at: str, _: int) -> list[str]:
    one, other = c.sample(["slurmctld", "slurmctld", "login", *cluster.nodes], 2)
    if one == other:
        other = cluster.nodes[0]
    length = c.choice(("50us", "200us", "1s", "30s", "40s", "100s", "400s"))
    return [fault(at, f"cut: [{one}, {other}], for: {length}")]


def _restart(c: Chance, _: Cluster, at: str, __: int) -> list[str]:
    return [fault(at, f"restart: slurmctld, for: {c.choice(('0s', '1s', '10s', '40s', '100s'))}")]


def _call(c: Chance, cluster: Cluster, last_job: int, others: tuple[str, ...]) -> str:
    name = c.choice((*_NAMES, *others, *others))
    if c.likely(0.3) and "job" in name and "validate" not in name:
        name += f" job={first_job(cluster) - 1 + c.randint(1, last_job)}"
    return name


def _counted(c: Chance) -> str:
    times, skip = c.choice((1, 1, 1, 2, 5)), c.choice((0, 0, 1, 3))
    return (f", times: {times}" if times > 1 else "") + (f", skip: {skip}" if skip else "")


def _fail(c: Chance, cluster: Cluster, at: str, last_job: int) -> list[str]:
    name = _call(c, cluster, last_job, _OWN)
    error = f", errno: {c.choice(_ERRORS)}" if c.likely(0.3) else ""
    return [fault(at, f'fail: "{name}"{error}{_counted(c)}')]


def _raise(c: Chance, cluster: Cluster, at: str, last_job: int) -> list[str]:
    return [fault(at, f'raise: "{_call(c, cluster, last_job, ())}"')]


def _hang(c: Chance, cluster: Cluster, at: str, last_job: int) -> list[str]:
    name = _call(c, cluster, last_job, _SCRIPTS)
    length = c.choice(("10ms", "1s", "5s", "20s", "90s", "400s"))
    return [fault(at, f'hang: "{name}", for: {length}{_counted(c)}')]


def _appliance(c: Chance, cluster: Cluster, at: str, _: int) -> list[str]:
    kind = c.random()
    if kind < 0.3:
        later = c.randint(1, 2 * SPAN_S)
        return [
            deed(at, "burst_buffer: {up: false}"),
            deed(f"at: {later}s", "burst_buffer: {up: true}"),
        ]
    if kind < 0.8:
        # What hangs for ever would have to be released in the end.
        functions = buffers.random_functions(c, cluster.buffers).replace("forever", "900s")
        return [deed(at, f"burst_buffer: {{functions: {{{functions}}}}}")]
    if kind < 0.9:
        return [deed(at, f"burst_buffer: {{bandwidth: {c.choice(('100MiB', '1GiB', '10GiB'))}}}")]
    edit = c.choice(
        ("DenyUsers: bob", "StageInTimeout: 5", "OtherTimeout: 1", "Flags: TeardownFailure")
    )
    return [
        deed(at, f"burst_buffer_conf: {{{edit}}}"),
        run(f"at: {SPAN_S}s", "scontrol reconfigure"),
    ]


_MAKERS: Final[dict[str, Callable[[Chance, Cluster, str, int], list[str]]]] = {
    "crash": _crash,
    "daemons": _daemons,
    "controller": _controller,
    "disks": _disks,
    "messages": _messages,
    "cut": _cut,
    "restart": _restart,
    "fail": _fail,
    "raise": _raise,
    "hang": _hang,
    "appliance": _appliance,
}
