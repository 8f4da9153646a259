"""The commands there are."""

from typing import Final

from simctl.commands.bounds import bounded
from simctl.commands.sacct import sacct
from simctl.commands.sacctmgr import sacctmgr
from simctl.commands.salloc import salloc
from simctl.commands.sbatch import sbatch
from simctl.commands.scancel import scancel
from simctl.commands.scontrol import scontrol
from simctl.commands.sinfo import sinfo
from simctl.commands.squeue import squeue
from simctl.commands.srun import srun
from simctl.commands.srun_cr import srun_cr
from simctl.commands.sshare import sshare
from simctl.site import CommandMain

COMMANDS: Final[dict[str, CommandMain]] = {
    "sacct": bounded(sacct),
    "sacctmgr": bounded(sacctmgr),
    "salloc": bounded(salloc),
    "sbatch": bounded(sbatch),
    "scancel": bounded(scancel),
    "scontrol": bounded(scontrol),
    "sinfo": bounded(sinfo),
    "squeue": bounded(squeue),
    "srun": bounded(srun),
    "srun_cr": bounded(srun_cr),
    "sshare": bounded(sshare),
}
