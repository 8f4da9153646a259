"""Input variables of salloc and srun that stand for options that are not built."""

from typing import Final

from simctl.commands.arguments.options import BAD_OPTION, UsageError
from simctl.site import CommandCall

_OF_BOTH: Final = """
    ACCTG_FREQ CLUSTER_CONSTRAINT CORE_SPEC CPUS_PER_GPU DELAY_BOOT GPU_BIND GPU_FREQ
    GRES_FLAGS MEM_PER_GPU NETWORK NTASKS_PER_GPU POWER PROFILE
    SPREAD_JOB THREAD_SPEC USE_MIN_NODES WAIT4SWITCH
    """

UNBUILT_VARIABLES: Final = {
    "salloc": tuple(f"SALLOC_{name}" for name in _OF_BOTH.split()),
    "srun": (
        *(f"SLURM_{name}" for name in _OF_BOTH.split()),
        *("SLURM_BCAST", "SLURM_COMPRESS", "SLURM_CPU_FREQ_REQ"),
        *("SLURM_MULTI", "SLURM_RESV_PORTS", "SLURM_WAIT_ALL_NODES", "SRUN_CONTAINER"),
    ),
}


def refuse_variables(call: CommandCall) -> None:
    """Refuse what would be an option that is not built.

    Raises:
        UsageError: There is such a variable.
    """
    command = call.argv[0]
    for variable in UNBUILT_VARIABLES[command]:
        if variable in call.env:
            raise UsageError(
                BAD_OPTION,
                f"{command}: error: {variable} stands for an option of Slurm's that simctl does "
                "not simulate yet",
            )
