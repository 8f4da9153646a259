"""The commands there are."""

from typing import Final

from simctl.commands.accounts.sacctmgr import sacctmgr
from simctl.commands.accounts.sshare import sshare
from simctl.commands.arguments.bounds import bounded
from simctl.commands.sacct.command import sacct
from simctl.commands.salloc.command import salloc
from simctl.commands.scancel.command import scancel
from simctl.commands.scontrol.command import scontrol
from simctl.commands.sinfo.command import sinfo
from simctl.commands.squeue.command import squeue
from simctl.commands.srun.command import srun
from simctl.commands.srun.cr import srun_cr
from simctl.commands.submission.sbatch import sbatch
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
