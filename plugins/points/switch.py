"""The functions of the switch plugin guide (version 0 of its API)."""

from typing import Any

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

EVERYWHERE = {**SLURMCTLD, **SLURMD, **SRUN, **MANAGER}


@point(guide=SLURMCTLD, modern=SLURMCTLD, returns=Returns.INT, on_error=OnError.LOGGED)
def switch_p_libstate_save(dir_name: str) -> int:
    """Save global switch state, when slurmctld shuts down."""
    raise AssertionError


@point(guide=SLURMCTLD, modern=SLURMCTLD, returns=Returns.INT, on_error=OnError.FATAL)
def switch_p_libstate_restore(dir_name: str) -> int:
    """Restore global switch state, when slurmctld starts, before it reads jobs."""
    raise AssertionError


@point(guide=SLURMCTLD, modern=NOWHERE, returns=Returns.BOOL)
def switch_p_no_frag() -> bool:
    """Say whether scheduling waits while a job is completing; asked by each pass and submission."""
    raise AssertionError


@point(guide=SLURMD, modern=SLURMD, returns=Returns.INT, on_error=OnError.FATAL)
def switch_p_clear_node_state() -> int:
    """Establish a clean state of the switch on the node, when slurmd starts clean."""
    raise AssertionError


@point(
    guide={**SLURMD, **SLURMCTLD}, modern=SLURMD, returns=Returns.OBJECT, on_error=OnError.LOGGED
)
def switch_p_alloc_node_info() -> Any:
    """Make the record of a node's switch state, to build it or before unpacking it."""
    raise AssertionError


@point(guide=SLURMD, modern=SLURMD, returns=Returns.INT, on_error=OnError.LOGGED)
def switch_p_build_node_info(switch_node: Any) -> int:
    """Fill the record in, while slurmd builds its registration."""
    raise AssertionError


@point(guide=SLURMD, modern=SLURMD, returns=Returns.COUNT)
def switch_p_pack_node_info(switch_node: Any, buffer: Any) -> int:
    """Pack the record into the registration message."""
    raise AssertionError


@point(guide=SLURMCTLD, modern=SLURMCTLD, returns=Returns.INT, on_error=OnError.DROP_MESSAGE)
def switch_p_unpack_node_info(switch_node: Any, buffer: Any) -> int:
    """Unpack the record from a registration message."""
    raise AssertionError


@point(guide={**SLURMD, **SLURMCTLD}, modern={**SLURMD, **SLURMCTLD}, returns=Returns.VOID)
def switch_p_free_node_info(switch_node: Any) -> None:
    """Release the record, after use on either side."""
    raise AssertionError


@point(guide={**SLURMD, **SLURMCTLD}, modern={**SLURMD, **SLURMCTLD}, returns=Returns.TEXT)
def switch_p_sprintf_node_info(switch_node: Any, size: int) -> str:
    """Print the record into a text of at most *size* bytes."""
    raise AssertionError


@point(guide=EVERYWHERE, modern=SLURMCTLD, returns=Returns.OBJECT, on_error=OnError.FATAL)
def switch_p_alloc_jobinfo() -> Any:
    """Make a step's credential: to build it, and in guide by every receiver before it unpacks."""
    raise AssertionError


@point(guide=SLURMCTLD, modern=SLURMCTLD, returns=Returns.INT, on_error=OnError.FAIL_STEP)
def switch_p_build_jobinfo(switch_job: Any, nodelist: str, nprocs: int, cyclic_alloc: int) -> int:
    """Build the credential, when a step is created and its nodes are known."""
    raise AssertionError


@point(guide=SLURMCTLD, modern=NOWHERE, returns=Returns.OBJECT, on_error=OnError.EMPTY_CREDENTIAL)
def switch_p_copy_jobinfo(switch_job: Any) -> Any:
    """Copy the credential for the reply to a step's creation."""
    raise AssertionError


@point(
    guide={**SLURMCTLD, **SLURMD, **SRUN},
    modern={**SLURMCTLD, **SLURMD, **SRUN},
    returns=Returns.VOID,
)
def switch_p_free_jobinfo(switch_job: Any) -> None:
    """Release a credential; slurmstepd never does, its process ends."""
    raise AssertionError


@point(
    guide={**SLURMCTLD, **SLURMD, **SRUN},
    modern={**SLURMCTLD, **SLURMD, **SRUN},
    returns=Returns.COUNT,
)
def switch_p_pack_jobinfo(switch_job: Any, buffer: Any) -> int:
    """Pack the credential into a message or a state file."""
    raise AssertionError


@point(guide=EVERYWHERE, modern=EVERYWHERE, returns=Returns.INT, on_error=OnError.DROP_MESSAGE)
def switch_p_unpack_jobinfo(switch_job: Any, buffer: Any) -> int:
    """Unpack the credential from a message or a state file."""
    raise AssertionError


@point(guide=EVERYWHERE, modern=EVERYWHERE, returns=Returns.DATA)
def switch_p_get_jobinfo(switch_job: Any, data_type: int) -> Any:
    """Get data from a credential, on demand."""
    raise AssertionError


@point(guide=SLURMCTLD, modern=SLURMCTLD, returns=Returns.INT, on_error=OnError.LOGGED)
def switch_p_job_step_complete(switch_job: Any, nodelist: str) -> int:
    """Note that the step is over, directly before its credential is released."""
    raise AssertionError


@point(guide=EVERYWHERE, modern=EVERYWHERE, returns=Returns.VOID)
def switch_p_print_jobinfo(fp: Any, switch_job: Any) -> None:
    """Print a credential to a file, on demand."""
    raise AssertionError


@point(guide=EVERYWHERE, modern=EVERYWHERE, returns=Returns.TEXT)
def switch_p_sprint_jobinfo(switch_job: Any, size: int) -> str:
    """Print a credential into a text of at most *size* bytes, on demand."""
    raise AssertionError


@point(guide=EVERYWHERE, modern=EVERYWHERE, returns=Returns.DATA)
def switch_p_get_data_jobinfo(switch_job: Any, key: int) -> Any:
    """Get data from a credential, on demand."""
    raise AssertionError


@point(guide=SLURMD, modern=SLURMD, returns=Returns.INT, on_error=OnError.FATAL)
def switch_p_node_init() -> int:
    """Set the interconnect of the node up, once per slurmd run, before it registers."""
    raise AssertionError


@point(guide=SLURMD, modern=SLURMD, returns=Returns.INT)
def switch_p_node_fini() -> int:
    """Take the interconnect of the node down; slurmd waits for it before it exits."""
    raise AssertionError


@point(guide=MANAGER, modern=MANAGER, returns=Returns.INT, on_error=OnError.FAIL_LAUNCH)
def switch_p_job_preinit(switch_job: Any) -> int:
    """Prepare in the job manager, before any fork; postfini will run in this same process."""
    raise AssertionError


@point(guide=SESSION_AS_ROOT, modern=MANAGER, returns=Returns.INT, on_error=OnError.FAIL_LAUNCH)
def switch_p_job_init(switch_job: Any, uid: int) -> int:
    """Set the interconnect up for the step on this node, still as root."""
    raise AssertionError


@point(guide=TASK, modern=TASK, returns=Returns.INT, on_error=OnError.FAIL_TASK)
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


@point(guide=SESSION_AS_USER, modern=MANAGER, returns=Returns.INT, on_error=OnError.STEP_RC)
def switch_p_job_fini(switch_job: Any) -> int:
    """Clean up after all tasks of the node have ended, in the process that ran job_init."""
    raise AssertionError


@point(guide=MANAGER, modern=MANAGER, returns=Returns.INT, on_error=OnError.LOGGED)
def switch_p_job_postfini(switch_job: Any, pgid: int, job_id: int, step_id: int) -> int:
    """Clean up as root, in the process that ran preinit, when the session is gone."""
    raise AssertionError


@point(
    guide={**EVERYWHERE, **SESSION, **TASK},
    modern={**EVERYWHERE, **TASK},
    returns=Returns.NUMBER,
)
def switch_p_get_errno() -> int:
    """Tell the number of the last failure; asked in the process where a function failed."""
    raise AssertionError


@point(
    guide={**EVERYWHERE, **SESSION, **TASK},
    modern={**EVERYWHERE, **TASK},
    returns=Returns.TEXT,
)
def switch_p_strerror(errnum: int) -> str:
    """Describe an error number from 3000 to 3099."""
    raise AssertionError
