"""What real Slurm 18.08 calls of switch plugins beside the functions of the guide.

All of these are optional, and of model modern alone: where a plugin lacks one nothing is called and
nothing is traced.
"""

from typing import Any, Final

from simctl.plugins.points.declare import (
    MANAGER,
    NOWHERE,
    SLURMCTLD,
    SLURMD,
    OnError,
    Returns,
    point,
)

_GLOSSARY: Final = {
    "switch_job": "in: a step's credential",
    "nodelist": "in: nodes, such as n[1-4]",
    "suspend_info": "in: what there is to know of a suspension, or None",
    "buffer": "in/out: the bytes; packing appends to them, unpacking reads on",
    "max_wait": "in: how many seconds it may take, 5",
    "slurmd_job": "in: the step as slurmstepd knows it (StepdJob)",
}

_SINCE_1: Final = "1.0 to at least 18.08; not in the guide"
_SINCE_1_2: Final = "1.2 to at least 18.08; not in the guide"
_SINCE_2_3: Final = "2.3 to at least 18.08; not in the guide"
_STEP_LOCKS: Final = "job write, node read"
_ONCE_SUSPENDED: Final = "once a step daemon and suspension; not for batch scripts"
_ONCE_RESUMED: Final = "once a step daemon and resumption; not for batch scripts"


@point(
    c="int switch_p_slurmctld_init(void)",
    guide=NOWHERE,
    modern=SLURMCTLD,
    returns=Returns.INT,
    on_error=OnError.FATAL,
    often="once a slurmctld run",
    failure='slurmctld stops, with "failed to initialize switch plugin"',
    versions=_SINCE_1,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_slurmctld_init() -> int:
    """Set up in slurmctld, after init and before any state is restored."""
    raise AssertionError


@point(
    c="int switch_p_slurmd_init(void)",
    guide=NOWHERE,
    modern=SLURMD,
    returns=Returns.INT,
    often="once a slurmd run",
    failure="nothing: slurmd goes on",
    versions=_SINCE_1,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_slurmd_init() -> int:
    """Set up in slurmd, after node_init, before the node registers."""
    raise AssertionError


@point(
    c="int switch_p_slurmd_step_init(void)",
    guide=NOWHERE,
    modern=MANAGER,
    returns=Returns.INT,
    often="once a step daemon, that of a batch script included",
    failure="nothing: the step is launched",
    versions=_SINCE_1,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_slurmd_step_init() -> int:
    """Set up in slurmstepd, directly after init, before it has read what it is to run."""
    raise AssertionError


@point(
    c="int switch_p_reconfig(void)",
    guide=NOWHERE,
    modern={**SLURMCTLD, **SLURMD},
    returns=Returns.INT,
    often="once a slurmctld run, at its start; and in each daemon once a `scontrol reconfigure`",
    failure="nothing: the daemon goes on",
    versions=_SINCE_2_3,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_reconfig() -> int:
    """Read the configuration again; in slurmctld also once when it starts, after state is read."""
    raise AssertionError


@point(
    c="bool switch_p_part_comp(void)",
    guide=NOWHERE,
    modern=SLURMCTLD,
    returns=Returns.BOOL,
    result="true if job_step_part_comp is to be called for nodes that are done before the others",
    often=(
        "once a report that a step is over on some of its nodes and not yet on all, and once a "
        "report that a job is gone from a node (MESSAGE_EPILOG_COMPLETE)"
    ),
    failure="it counts as false",
    locks="job write",
    versions=_SINCE_1_2,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_part_comp() -> bool:
    """Say whether the switch wants to know of each node that is done with a step."""
    raise AssertionError


@point(
    c="int switch_p_job_step_part_comp(switch_jobinfo_t switch_job, char *nodelist)",
    guide=NOWHERE,
    modern=SLURMCTLD,
    returns=Returns.INT,
    on_error=OnError.LOGGED,
    often="once for nodes that are done with a step before the last are, if part_comp is true",
    failure="slurmctld logs it",
    locks=_STEP_LOCKS,
    versions=_SINCE_1_2,
    glossary=_GLOSSARY,
    optional=True,
    nodelist="in: the nodes that are done, such as n[1-4]",
)
def switch_p_job_step_part_comp(switch_job: Any, nodelist: str) -> int:
    """Note that a step is over on some of its nodes; job_step_complete follows with all of them."""
    raise AssertionError


@point(
    c="int switch_p_job_step_allocated(switch_jobinfo_t switch_job, char *nodelist)",
    guide=NOWHERE,
    modern=SLURMCTLD,
    returns=Returns.INT,
    on_error=OnError.LOGGED,
    often="once for each step in saved state",
    failure="slurmctld logs it, and keeps the step",
    locks=_STEP_LOCKS,
    versions=_SINCE_1,
    glossary=_GLOSSARY,
    optional=True,
    nodelist="in: all nodes of the step, such as n[1-4]",
)
def switch_p_job_step_allocated(switch_job: Any, nodelist: str) -> int:
    """Note that a restarted slurmctld has found a step in saved state that still runs."""
    raise AssertionError


# Suspending jobs.


@point(
    c="int switch_p_job_suspend_test(switch_jobinfo_t switch_job)",
    guide=NOWHERE,
    modern=SLURMCTLD,
    returns=Returns.INT,
    on_error=OnError.ANSWERED,
    often="once a step and request to suspend its job, also where the job is suspended already",
    failure="the job runs on, and the client gets the error",
    locks=_STEP_LOCKS,
    versions=_SINCE_2_3,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_job_suspend_test(switch_job: Any) -> int:
    """Say whether a step can be suspended, before its job gives its nodes back."""
    raise AssertionError


@point(
    c="void switch_p_job_suspend_info_get(switch_jobinfo_t switch_job, void **suspend_info)",
    guide=NOWHERE,
    modern=SLURMCTLD,
    returns=Returns.OBJECT,
    often="once a step of a job that is suspended or resumed",
    failure="what there was stays",
    locks=_STEP_LOCKS,
    versions=_SINCE_2_3,
    glossary=_GLOSSARY,
    optional=True,
    suspend_info=(
        "in/out: what the job's steps before have given, None for the first; C changes it, Python "
        "returns it, and nothing returned leaves it as it was"
    ),
)
def switch_p_job_suspend_info_get(switch_job: Any, suspend_info: Any) -> Any:
    """Add what slurmds have to know of a step, before the job's state changes."""
    raise AssertionError


@point(
    c="void switch_p_job_suspend_info_pack(void *suspend_info, Buf buffer)",
    guide=NOWHERE,
    modern=SLURMCTLD,
    returns=Returns.VOID,
    often="once a node of a job that is suspended or resumed, also of a job without steps",
    failure="nothing: the message holds what was packed",
    versions=_SINCE_2_3,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_job_suspend_info_pack(suspend_info: Any, buffer: Any) -> None:
    """Pack it into the message to a node (REQUEST_SUSPEND_INT)."""
    raise AssertionError


@point(
    c="int switch_p_job_suspend_info_unpack(void **suspend_info, Buf buffer)",
    guide=NOWHERE,
    modern=SLURMD,
    returns=Returns.OBJECT,
    on_error=OnError.DROP_MESSAGE,
    often="once a message",
    failure="the message is lost: nothing is suspended or resumed on this node",
    versions=_SINCE_2_3,
    glossary=_GLOSSARY,
    optional=True,
    suspend_info="out in C, returned in Python: what was packed",
)
def switch_p_job_suspend_info_unpack(buffer: Any) -> Any:
    """Unpack it from the message."""
    raise AssertionError


@point(
    c="void switch_p_job_suspend_info_free(void *suspend_info)",
    guide=NOWHERE,
    modern={**SLURMCTLD, **SLURMD},
    returns=Returns.VOID,
    often="once a suspension or resumption in slurmctld, and once a message in slurmd",
    failure="it cannot fail",
    versions=_SINCE_2_3,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_job_suspend_info_free(suspend_info: Any) -> None:
    """Release it: in slurmctld when the nodes are told, in slurmd when its steps have done it."""
    raise AssertionError


@point(
    c="int switch_p_job_suspend(void *suspend_info, int max_wait)",
    guide=NOWHERE,
    modern=SLURMD,
    returns=Returns.INT,
    on_error=OnError.LOGGED,
    often="once a suspended job and node",
    failure="slurmd logs it, and suspends the steps all the same",
    versions=_SINCE_2_3,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_job_suspend(suspend_info: Any, max_wait: int) -> int:
    """Suspend a job's use of the switch on the node, before its steps are stopped."""
    raise AssertionError


@point(
    c="int switch_p_job_resume(void *suspend_info, int max_wait)",
    guide=NOWHERE,
    modern=SLURMD,
    returns=Returns.INT,
    on_error=OnError.LOGGED,
    often="once a resumed job and node",
    failure="slurmd logs it",
    versions=_SINCE_2_3,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_job_resume(suspend_info: Any, max_wait: int) -> int:
    """Resume a job's use of the switch on the node, after its steps go on."""
    raise AssertionError


@point(
    c="int switch_p_job_step_pre_suspend(void *slurmd_job)",
    guide=NOWHERE,
    modern=MANAGER,
    returns=Returns.INT,
    on_error=OnError.LOGGED,
    often=_ONCE_SUSPENDED,
    failure="it is logged, and the tasks are stopped all the same",
    versions=_SINCE_2_3,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_job_step_pre_suspend(slurmd_job: Any) -> int:
    """Prepare a step for being stopped, before its tasks get SIGTSTP."""
    raise AssertionError


@point(
    c="int switch_p_job_step_post_suspend(void *slurmd_job)",
    guide=NOWHERE,
    modern=MANAGER,
    returns=Returns.INT,
    on_error=OnError.LOGGED,
    often=_ONCE_SUSPENDED,
    failure="it is logged",
    versions=_SINCE_2_3,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_job_step_post_suspend(slurmd_job: Any) -> int:
    """Note that a step's tasks are stopped, after SIGSTOP, two seconds later."""
    raise AssertionError


@point(
    c="int switch_p_job_step_pre_resume(void *slurmd_job)",
    guide=NOWHERE,
    modern=MANAGER,
    returns=Returns.INT,
    on_error=OnError.LOGGED,
    often=_ONCE_RESUMED,
    failure="it is logged, and the tasks go on all the same",
    versions=_SINCE_2_3,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_job_step_pre_resume(slurmd_job: Any) -> int:
    """Prepare a step for going on, before its tasks get SIGCONT."""
    raise AssertionError


@point(
    c="int switch_p_job_step_post_resume(void *slurmd_job)",
    guide=NOWHERE,
    modern=MANAGER,
    returns=Returns.INT,
    on_error=OnError.LOGGED,
    often=_ONCE_RESUMED,
    failure="it is logged",
    versions=_SINCE_2_3,
    glossary=_GLOSSARY,
    optional=True,
)
def switch_p_job_step_post_resume(slurmd_job: Any) -> int:
    """Note that a step's tasks go on, after SIGCONT."""
    raise AssertionError
