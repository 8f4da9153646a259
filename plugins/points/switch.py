"""The functions of the switch plugin guide (version 0 of its API)."""

from typing import Any, Final

from simctl.plugins.points.declare import (
    MANAGER,
    NOWHERE,
    SESSION,
    SESSION_AS_ROOT,
    SESSION_AS_USER,
    SLURMCTLD,
    SLURMD,
    SRUN,
    TASK,
    OnError,
    Returns,
    point,
)

_GLOSSARY: Final = {
    "dir_name": "in: StateSaveLocation, a directory in which SlurmUser may make files",
    "switch_node": "in: a node's record",
    "switch_job": "in: a step's credential",
    "buffer": "in/out: the bytes; packing appends to them, unpacking reads on",
    "size": "in: how many bytes the text may have at most",
    "nodelist": "in: nodes, such as n[1-4]",
    "nprocs": "in: number of tasks",
    "cyclic_alloc": "in: 1 if tasks go round the nodes, 0 if each node is filled first",
    "env": "in/out: the task's environment, to be added to",
    "nodeid": "in: place of this node in the step, from 0",
    "procid": "in: place of the task on this node, from 0",
    "nnodes": "in: number of nodes of the step",
    "rank": "in: global rank of the task, from 0",
    "pgid": "in: process group of the session, which leads it",
    "errnum": "in: an error number",
}

_TO_18: Final = "0.4 to at least 18.08; gone today"
_OF_JOBS: Final = "0.4 to today, where it is about a job, no longer about a step"
_TO_18_ARGS: Final = "0.4 to today, where it is called with other arguments"
_SAVE: Final = "0.4 to at least 18.08; today switch_p_save, which has no directory"
_RESTORE: Final = "0.4 to at least 18.08; today switch_p_restore, which has no directory"
_STEP_LOCKS: Final = "job write, node read"

EVERYWHERE: Final = {**SLURMCTLD, **SLURMD, **SRUN, **MANAGER}


@point(
    c="int switch_p_libstate_save(char *dir_name)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.INT,
    on_error=OnError.LOGGED,
    often="once a slurmctld run, at a clean end",
    failure="slurmctld logs it, and stops all the same",
    versions=_SAVE,
    glossary=_GLOSSARY,
)
def switch_p_libstate_save(dir_name: str) -> int:
    """Save global switch state, when slurmctld shuts down, before it saves jobs."""
    raise AssertionError


@point(
    c="int switch_p_libstate_restore(char *dir_name)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.INT,
    on_error=OnError.FATAL,
    often="once a slurmctld run, on a cold start too",
    failure="slurmctld stops",
    modern_arguments="`recover` besides: 1 on a cold start too",
    versions=_RESTORE,
    glossary=_GLOSSARY,
)
def switch_p_libstate_restore(dir_name: str) -> int:
    """Restore global switch state, when slurmctld starts, before it reads jobs."""
    raise AssertionError


@point(
    c="bool switch_p_no_frag(void)",
    guide=SLURMCTLD,
    modern=NOWHERE,
    returns=Returns.BOOL,
    result=(
        "true if nothing may start while a job is completing: passes start nothing then, and "
        "`srun --immediate` is refused with ESLURM_FRAGMENTATION (2035)"
    ),
    often="once a submission that could start, and once a scheduler pass",
    failure="it counts as true",
    locks="job write",
    versions="0.4 to 1.3, deleted in 2008; CompleteWait took its place in 2.0",
    glossary=_GLOSSARY,
)
def switch_p_no_frag() -> bool:
    """Say whether scheduling waits while a job is completing; asked by each pass and submission."""
    raise AssertionError


@point(
    c="int switch_p_clear_node_state(void)",
    guide=SLURMD,
    modern=SLURMD,
    returns=Returns.INT,
    on_error=OnError.FATAL,
    often="once a slurmd run that starts clean (`slurmd -c`), directly after node_init",
    failure="slurmd stops",
    versions=_TO_18,
    glossary=_GLOSSARY,
)
def switch_p_clear_node_state() -> int:
    """Establish a clean state of the switch on the node, when slurmd starts clean."""
    raise AssertionError


@point(
    c="int switch_p_alloc_node_info(switch_node_info_t *switch_node)",
    guide={**SLURMD, **SLURMCTLD},
    modern=SLURMD,
    returns=Returns.OBJECT,
    on_error=OnError.LOGGED,
    often="once a registration, in slurmd and in slurmctld",
    failure=(
        "slurmd registers without the record; slurmctld drops the registration: the node stays as "
        "it was"
    ),
    modern_failure="slurmd registers without the record",
    modern_moment="In slurmd alone: slurmctld's unpack makes its own record.",
    versions=_TO_18,
    glossary=_GLOSSARY,
    switch_node="out in C, returned in Python: the new record; nothing returned is an empty one",
)
def switch_p_alloc_node_info() -> Any:
    """Make the record of a node's switch state, to build it or before unpacking it."""
    raise AssertionError


@point(
    c="int switch_p_build_node_info(switch_node_info_t switch_node)",
    guide=SLURMD,
    modern=SLURMD,
    returns=Returns.INT,
    on_error=OnError.LOGGED,
    often="once a registration",
    failure="slurmd logs it and registers all the same",
    versions=_TO_18,
    glossary=_GLOSSARY,
    switch_node="in/out: the record to be filled in",
)
def switch_p_build_node_info(switch_node: Any) -> int:
    """Fill the record in, while slurmd builds its registration."""
    raise AssertionError


@point(
    c="int switch_p_pack_node_info(switch_node_info_t switch_node, Buf buffer)",
    guide=SLURMD,
    modern=SLURMD,
    returns=Returns.COUNT,
    often="once a registration",
    failure="nothing: the message holds what was packed",
    versions=_TO_18,
    glossary=_GLOSSARY,
)
def switch_p_pack_node_info(switch_node: Any, buffer: Any) -> int:
    """Pack the record into the registration message."""
    raise AssertionError


@point(
    c="int switch_p_unpack_node_info(switch_node_info_t switch_node, Buf buffer)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.INT,
    on_error=OnError.DROP_MESSAGE,
    often="once a registration",
    failure="slurmctld drops the registration: the node stays as it was",
    versions=_TO_18,
    glossary=_GLOSSARY,
    switch_node="in/out: a record just made, to be filled in",
)
def switch_p_unpack_node_info(switch_node: Any, buffer: Any) -> int:
    """Unpack the record from a registration message."""
    raise AssertionError


@point(
    c="void switch_p_free_node_info(switch_node_info_t switch_node)",
    guide={**SLURMD, **SLURMCTLD},
    modern={**SLURMD, **SLURMCTLD},
    returns=Returns.VOID,
    often="once for each record",
    failure="it cannot fail",
    versions=_TO_18,
    glossary=_GLOSSARY,
)
def switch_p_free_node_info(switch_node: Any) -> None:
    """Release the record, after use on either side."""
    raise AssertionError


@point(
    c="char *switch_p_sprintf_node_info(switch_node_info_t switch_node, char *buf, size_t size)",
    guide={**SLURMD, **SLURMCTLD},
    modern={**SLURMD, **SLURMCTLD},
    returns=Returns.TEXT,
    often="on demand: `scontrol show switch`; with DebugFlags=Switch, in slurmctld, each record",
    failure="nothing is printed",
    versions=_TO_18,
    glossary=_GLOSSARY,
    buf="out in C, returned in Python: the text",
)
def switch_p_sprintf_node_info(switch_node: Any, size: int) -> str:
    """Print the record into a text of at most *size* bytes."""
    raise AssertionError


@point(
    c="int switch_p_alloc_jobinfo(switch_jobinfo_t *switch_job)",
    guide=EVERYWHERE,
    modern=SLURMCTLD,
    returns=Returns.OBJECT,
    on_error=OnError.FATAL,
    often="once a step in slurmctld; in guide once a message in srun, slurmd and slurmstepd too",
    failure=(
        "slurmctld and srun stop; slurmd refuses the launch, and slurmstepd's fails, with "
        "ESLURMD_INVALID_JOB_CREDENTIAL (4004)"
    ),
    modern_arguments="the numbers of job and step besides",
    modern_failure="slurmctld stops",
    modern_often="once a step",
    modern_moment="Only to build it: every receiver's unpack makes its own.",
    locks=_STEP_LOCKS,
    versions=_TO_18,
    glossary=_GLOSSARY,
    switch_job="out in C, returned in Python: the new credential; nothing returned is an empty one",
)
def switch_p_alloc_jobinfo() -> Any:
    """Make a step's credential: to build it, and in guide by every receiver before it unpacks."""
    raise AssertionError


@point(
    c=(
        "int switch_p_build_jobinfo(switch_jobinfo_t switch_job, char *nodelist, int nprocs, "
        "int cyclic_alloc)"
    ),
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.INT,
    on_error=OnError.FAIL_STEP,
    often="once a step",
    failure=(
        "there is no step: job_step_complete and free_jobinfo are called on what there is, "
        "and srun gets ESLURM_INTERCONNECT_FAILURE (2022) and exits with 1"
    ),
    modern_arguments="the step's layout and `--network` in place of the last three",
    locks=_STEP_LOCKS,
    versions="0.4 to at least 18.08; today switch_p_build_stepinfo",
    glossary=_GLOSSARY,
    switch_job="in/out: a credential just made, to be filled in",
    nodelist="in: the step's nodes, such as n[1-4]",
)
def switch_p_build_jobinfo(switch_job: Any, nodelist: str, nprocs: int, cyclic_alloc: int) -> int:
    """Build the credential, when a step is created and its nodes are known."""
    raise AssertionError


@point(
    c="switch_jobinfo_t switch_p_copy_jobinfo(switch_jobinfo_t switch_job)",
    guide=SLURMCTLD,
    modern=NOWHERE,
    returns=Returns.OBJECT,
    on_error=OnError.EMPTY_CREDENTIAL,
    result="a copy of the credential, of the plugin's own making",
    often="once a step, for the reply to srun",
    failure="an empty credential is packed into the reply",
    locks=_STEP_LOCKS,
    versions="0.4 to at least 1.3; gone by 15.08",
    glossary=_GLOSSARY,
)
def switch_p_copy_jobinfo(switch_job: Any) -> Any:
    """Copy the credential for the reply to a step's creation."""
    raise AssertionError


@point(
    c="void switch_p_free_jobinfo(switch_jobinfo_t switch_job)",
    guide={**SLURMCTLD, **SLURMD, **SRUN},
    modern={**SLURMCTLD, **SLURMD, **SRUN},
    returns=Returns.VOID,
    often="once for each credential made, copied or unpacked, but in slurmstepd",
    failure="it cannot fail",
    versions=_OF_JOBS,
    glossary=_GLOSSARY,
)
def switch_p_free_jobinfo(switch_job: Any) -> None:
    """Release a credential; slurmstepd never does, its process ends."""
    raise AssertionError


@point(
    c="int switch_p_pack_jobinfo(switch_jobinfo_t switch_job, Buf buffer)",
    guide={**SLURMCTLD, **SLURMD, **SRUN},
    modern={**SLURMCTLD, **SLURMD, **SRUN},
    returns=Returns.COUNT,
    often="once a message that carries it, and once a step when state is saved",
    failure="nothing: the message holds what was packed",
    versions=_OF_JOBS,
    glossary=_GLOSSARY,
)
def switch_p_pack_jobinfo(switch_job: Any, buffer: Any) -> int:
    """Pack the credential into a message or a state file."""
    raise AssertionError


@point(
    c="int switch_p_unpack_jobinfo(switch_jobinfo_t switch_job, Buf buffer)",
    guide=EVERYWHERE,
    modern=EVERYWHERE,
    returns=Returns.INT,
    on_error=OnError.DROP_MESSAGE,
    often="once a message that carries it, and once a step of saved state",
    failure=(
        "srun gives the step up; slurmd refuses the launch, and slurmstepd's fails, with "
        "ESLURMD_INVALID_JOB_CREDENTIAL (4004); slurmctld drops the saved step"
    ),
    versions=_OF_JOBS,
    glossary=_GLOSSARY,
    switch_job="in/out: a credential just made, to be filled in",
)
def switch_p_unpack_jobinfo(switch_job: Any, buffer: Any) -> int:
    """Unpack the credential from a message or a state file."""
    raise AssertionError


@point(
    c="int switch_p_get_jobinfo(switch_jobinfo_t switch_job, int data_type, void *data)",
    guide=EVERYWHERE,
    modern=EVERYWHERE,
    returns=Returns.DATA,
    on_error=OnError.ANSWERED,
    often="on demand: `scontrol show switch`",
    failure="who asks is told",
    versions=_TO_18,
    glossary=_GLOSSARY,
    data_type="in: what is wanted; its meaning is the plugin's",
    data="out in C, returned in Python: the data",
)
def switch_p_get_jobinfo(switch_job: Any, data_type: int) -> Any:
    """Get data from a credential, on demand."""
    raise AssertionError


@point(
    c="int switch_p_job_step_complete(switch_jobinfo_t switch_job, char *nodelist)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.INT,
    on_error=OnError.LOGGED,
    often="exactly once a step, also one that could not be built",
    failure="slurmctld logs it, and releases the credential as ever",
    locks=_STEP_LOCKS,
    versions=_TO_18_ARGS,
    glossary=_GLOSSARY,
    nodelist="in: all nodes of the step, such as n[1-4]",
)
def switch_p_job_step_complete(switch_job: Any, nodelist: str) -> int:
    """Note that the step is over, directly before its credential is released."""
    raise AssertionError


@point(
    c="void switch_p_print_jobinfo(FILE *fp, switch_jobinfo_t switch_job)",
    guide=EVERYWHERE,
    modern=EVERYWHERE,
    returns=Returns.VOID,
    often="on demand: `scontrol show switch`",
    failure="it cannot fail",
    versions=_TO_18,
    glossary=_GLOSSARY,
    fp="in: an open text file",
)
def switch_p_print_jobinfo(fp: Any, switch_job: Any) -> None:
    """Print a credential to a file, on demand."""
    raise AssertionError


@point(
    c="char *switch_p_sprint_jobinfo(switch_jobinfo_t switch_job, char *buf, size_t size)",
    guide=EVERYWHERE,
    modern=EVERYWHERE,
    returns=Returns.TEXT,
    often="on demand: `scontrol show switch`",
    failure="nothing is printed",
    versions=_TO_18,
    glossary=_GLOSSARY,
    buf="out in C, returned in Python: the text",
)
def switch_p_sprint_jobinfo(switch_job: Any, size: int) -> str:
    """Print a credential into a text of at most *size* bytes, on demand."""
    raise AssertionError


@point(
    c="int switch_p_get_data_jobinfo(switch_jobinfo_t switch_job, int key, void *resulting_data)",
    guide=EVERYWHERE,
    modern=NOWHERE,
    returns=Returns.DATA,
    on_error=OnError.ANSWERED,
    often="on demand: `scontrol show switch`",
    failure="who asks is told",
    versions="in the guide of 2005 alone: no Slurm looks for this symbol",
    glossary=_GLOSSARY,
    key="in: what is wanted; its meaning is the plugin's",
    resulting_data="out in C, returned in Python: the data",
)
def switch_p_get_data_jobinfo(switch_job: Any, key: int) -> Any:
    """Get data from a credential, on demand."""
    raise AssertionError


@point(
    c="int switch_p_node_init(void)",
    guide=SLURMD,
    modern=SLURMD,
    returns=Returns.INT,
    on_error=OnError.FATAL,
    often="once a slurmd run",
    failure='slurmd stops, with "Unable to initialize interconnect."; the node never registers',
    versions=_TO_18,
    glossary=_GLOSSARY,
)
def switch_p_node_init() -> int:
    """Set the interconnect of the node up, once per slurmd run, before it registers."""
    raise AssertionError


@point(
    c="int switch_p_node_fini(void)",
    guide=SLURMD,
    modern=SLURMD,
    returns=Returns.INT,
    often="once a slurmd run, at a clean end",
    failure="nothing: slurmd exits",
    versions=_TO_18,
    glossary=_GLOSSARY,
)
def switch_p_node_fini() -> int:
    """Take the interconnect of the node down; slurmd waits for it before it exits."""
    raise AssertionError


@point(
    c="int switch_p_job_preinit(switch_jobinfo_t switch_job)",
    guide=MANAGER,
    modern=MANAGER,
    returns=Returns.INT,
    on_error=OnError.FAIL_LAUNCH,
    often="once a step and node; not for batch scripts",
    failure=(
        "nothing else of the step runs here, job_postfini neither; the launch fails with "
        "ESLURM_INTERCONNECT_FAILURE (2022). srun prints an error for each task and exits as if "
        "they had ended well; other nodes go on, and no node is drained"
    ),
    versions=_TO_18_ARGS,
    glossary=_GLOSSARY,
)
def switch_p_job_preinit(switch_job: Any) -> int:
    """Prepare in the job manager, before any fork; postfini will run in this same process."""
    raise AssertionError


@point(
    c="int switch_p_job_init(switch_jobinfo_t switch_job, uid_t uid)",
    guide=SESSION_AS_ROOT,
    modern=MANAGER,
    returns=Returns.INT,
    on_error=OnError.FAIL_LAUNCH,
    often="once a step and node; not for batch scripts",
    failure=(
        "the session manager exits with 1: no task runs, no job_fini, and job_postfini runs; "
        "the launch fails with ESLURM_INTERCONNECT_FAILURE (2022), as when preinit does"
    ),
    modern_failure=(
        "no task runs, no job_fini, and job_postfini runs; the launch fails with "
        "ESLURM_INTERCONNECT_FAILURE (2022), as when preinit does"
    ),
    modern_arguments="the step's record in place of both",
    versions=_TO_18_ARGS,
    glossary=_GLOSSARY,
    uid="in: the job's owner",
)
def switch_p_job_init(switch_job: Any, uid: int) -> int:
    """Set the interconnect up for the step on this node, still as root."""
    raise AssertionError


@point(
    c=(
        "int switch_p_job_attach(switch_jobinfo_t switch_job, char ***env, uint32_t nodeid, "
        "uint32_t procid, uint32_t nnodes, uint32_t nprocs, uint32_t rank)"
    ),
    guide=TASK,
    modern=TASK,
    returns=Returns.INT,
    on_error=OnError.FAIL_TASK,
    often="once a task; not for batch scripts",
    failure=(
        "the task says so on its standard error and exits with 1, without running its program; "
        "the others go on, and job_fini and job_postfini run as ever"
    ),
    versions=_TO_18_ARGS,
    glossary=_GLOSSARY,
    nprocs="in: number of tasks in the whole step",
)
def switch_p_job_attach(
    switch_job: Any,
    env: dict[str, str],
    nodeid: int,
    procid: int,
    nnodes: int,
    nprocs: int,
    rank: int,
) -> int:
    """Attach a task to the interconnect, inside the task, as the user, before it executes."""
    raise AssertionError


@point(
    c="int switch_p_job_fini(switch_jobinfo_t switch_job)",
    guide=SESSION_AS_USER,
    modern=MANAGER,
    returns=Returns.INT,
    on_error=OnError.STEP_RC,
    often="once a step and node whose tasks could all be forked; not for batch scripts",
    modern_often="once a step and node whose job_init succeeded; not for batch scripts",
    failure=(
        "the session manager exits with 1: the launch ends with ESLURM_INTERCONNECT_FAILURE "
        "(2022), after srun was told that it went well"
    ),
    modern_failure="it is logged",
    modern_on_error=OnError.LOGGED,
    versions=_TO_18,
    glossary=_GLOSSARY,
)
def switch_p_job_fini(switch_job: Any) -> int:
    """Clean up after all tasks of the node have ended, in the process that ran job_init."""
    raise AssertionError


@point(
    c=(
        "int switch_p_job_postfini(switch_jobinfo_t switch_job, uid_t pgid, uint32_t job_id, "
        "uint32_t step_id)"
    ),
    guide=MANAGER,
    modern=MANAGER,
    returns=Returns.INT,
    on_error=OnError.LOGGED,
    often="once a step and node whose preinit succeeded; not for batch scripts",
    failure="it is logged",
    modern_moment="After everything left of the step is killed; `pgid` is slurmstepd's own.",
    modern_arguments="the step's record in place of the last three",
    versions=_TO_18_ARGS,
    glossary=_GLOSSARY,
    job_id="in: the job",
    step_id="in: the step",
)
def switch_p_job_postfini(switch_job: Any, pgid: int, job_id: int, step_id: int) -> int:
    """Clean up as root, in the process that ran preinit, when the session is gone."""
    raise AssertionError


@point(
    c="int switch_p_get_errno(void)",
    guide={**EVERYWHERE, **SESSION, **TASK},
    modern={**EVERYWHERE, **TASK},
    returns=Returns.NUMBER,
    result="the number of the last failure, or SLURM_SUCCESS before any",
    often="after each call of a switch function that fails",
    failure="the failure that was asked about has no number",
    versions=_TO_18,
    glossary=_GLOSSARY,
)
def switch_p_get_errno() -> int:
    """Tell the number of the last failure; asked in the process where a function failed."""
    raise AssertionError


@point(
    c="char *switch_p_strerror(int errnum)",
    guide={**EVERYWHERE, **SESSION, **TASK},
    modern={**EVERYWHERE, **TASK},
    returns=Returns.TEXT,
    result="what the number means, or None if the plugin does not know it",
    often="whenever an error from 3000 to 3099 is printed",
    failure="Slurm's own text is used",
    versions=_TO_18,
    glossary=_GLOSSARY,
)
def switch_p_strerror(errnum: int) -> str:
    """Describe an error number from 3000 to 3099."""
    raise AssertionError
