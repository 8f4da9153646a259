"""The commands there are."""

from typing import Final

from simctl.commands.sacct import sacct
from simctl.commands.salloc import salloc
from simctl.commands.sbatch import sbatch
from simctl.commands.scancel import scancel
from simctl.commands.scontrol import scontrol
from simctl.commands.sinfo import sinfo
from simctl.commands.squeue import squeue
from simctl.commands.srun import srun
from simctl.commands.srun_cr import srun_cr
from simctl.plugins.site import CommandMain

COMMANDS: Final[dict[str, CommandMain]] = {
    "sacct": sacct,
    "salloc": salloc,
    "sbatch": sbatch,
    "scancel": scancel,
    "scontrol": scontrol,
    "sinfo": sinfo,
    "squeue": squeue,
    "srun": srun,
    "srun_cr": srun_cr,
}
