"""Situations in which recordings of scontrol were made, rebuilt as scenarios."""

from tests.cluster import Ran, run
from tests.printed import CLUSTER, read

BLUR = {
    r"Priority=\d+": "Priority=N",
    r"LastSchedEval=\S+ Scheduler=\S+": "LastSchedEval=TIME Scheduler=S",
    r"AllocNode:Sid=\S+": "AllocNode:Sid=H:N",
    r"SrunHost:Pid=\w+:\d+": "SrunHost:Pid=H:N",
    r" at \w+ is": " at H is",
    r"RunTime=00:00:1[0-4]": "RunTime=00:00:1N",
    r"PreSuspend=1[0-4]": "PreSuspend=1N",
    r"CPULoad=\S+": "CPULoad=L",
    r"NodeAddr=\S+ NodeHostName=\S+ Port=\d+": "NodeAddr=A",
    r"FreeMem=\S+": "FreeMem=M",
    r"OS=Linux .*@0 ": "OS=Linux ",
    r"(BatchHost|NodeList)=n\d( |\n)": r"\1=n\2",
}
"""What is not compared: priorities, which plugin and machine they are of; hosts and processes."""

Lines = list[tuple[str, str, str]]
"""When, who, and what they type."""

MIX: Lines = [
    ("2s", "root", "scontrol update nodename=n3 state=drain reason=bad"),
    ("9s", "alice", "sbatch -J drained --jobid=127 -w n3 --wrap 'sleep 300'"),
    ("10s", "bob", "sbatch -J bobrun -w n2 -n2 -t 20 --wrap 'srun sleep 300'"),
    ("10s", "alice", "sbatch -J runner -w n1 -n2 --mem=500 -t 30 --wrap 'srun sleep 300'"),
    ("10s", "alice", "sbatch -J gpujob -p long -w n4 --gres=gpu:1 -t 365-0 --wrap 'sleep 300'"),
    ("10s", "alice", "sbatch -J averyveryverylongjobname -a 0-5%1 --wrap 'sleep 300'"),
    ("10s", "alice", "sbatch -J needres -N 3-3 --exclusive --wrap 'sleep 300'"),
    ("10s", "alice", "sbatch -J prio -w n1 -c 4 --wrap 'sleep 300'"),
    ("10s", "alice", "sbatch -J held -H --wrap 'sleep 300'"),
    ("10s", "alice", "sbatch -J begin -b now+1hour --wrap 'sleep 300'"),
    ("10s", "alice", "sbatch -J plim -p short -t 60 --wrap 'sleep 300'"),
    ("10s", "alice", "sbatch -J toobig --jobid=128 -n 100 --wrap 'sleep 300'"),
    ("10s", "alice", "sbatch -J tootall --jobid=129 -N 5 --wrap 'sleep 300'"),
    ("10s", "alice", "sbatch -J first --jobid=130 -H --wrap true"),
    ("10s", "alice", "sbatch -J dep --jobid=131 -d afterok:130 --wrap true"),
    ("10s", "alice", "sbatch -J depany --jobid=132 -d afterany:130?afternotok:130 --wrap true"),
    ("10s", "alice", "sbatch -J failing --jobid=133 --wrap 'exit 1'"),
    ("12s", "alice", "sbatch -J depnever --jobid=135 -d afterok:133 --wrap true"),
    ("12s", "alice", "sbatch -J single1 --jobid=136 -b now+1hour --wrap 'sleep 300'"),
    ("12s", "alice", "sbatch -J single1 --jobid=137 -d singleton --wrap 'sleep 300'"),
    ("12s", "alice", "sbatch -J lic --jobid=138 -H --wrap 'sleep 300'"),
    ("12s", "root", "scontrol hold 138"),
    ("12s", "alice", "scontrol update jobid=119 comment='a comment'"),
]
"""Jobs in some twenty states."""


def recorded(section: str, names: list[str], at: str) -> Lines:
    """Return the lines of recordings, all typed at one moment."""
    found = [read(f"{section}/{name}") for name in names]
    return [(at, each.user, each.line) for each in found]


def type_in(lines: Lines, *, first_id: int = 1, more: str = "") -> Ran:
    """Run a scenario in which people type lines on the recordings' cluster."""
    entries = "".join(
        f'  - {{at: {at}, as: {user}, run: "{line}"}}\n'
        for at, user, line in ((at, user, _quoted(line)) for at, user, line in lines)
    )
    cluster = CLUSTER.replace("slurm_conf:\n", f"slurm_conf:\n  FirstJobId: {first_id}\n")
    return run(f"{more}timeline:\n{entries}", cluster=cluster, model="modern")


def _quoted(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"')
