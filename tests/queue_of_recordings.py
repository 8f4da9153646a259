"""The queue and the nodes as they were when squeue and sinfo were recorded, as scenarios."""

import functools

from simctl.world import CommandResult
from tests.cluster import run
from tests.printed import CLUSTER, read

NUMBERED = CLUSTER.replace("slurm_conf:\n", "slurm_conf:\n  FirstJobId: 118\n")
DRAIN = "scontrol update nodename=n3 state=drain reason='bad disk'"
SUBMISSIONS = (
    ("bob", "-J bobrun -H -w n2 -n2 -t 20 --wrap 'sleep 600'"),
    ("alice", "-J runner -H -w n1 -n2 --mem 500 -t 30 --wrap 'srun -n1 sleep 600'"),
    ("alice", "-J gpujob -H -p long -w n4 --gres=gpu:1 -t 365-0 --wrap 'sleep 600'"),
    ("alice", "-J averyveryverylongjobname -H -x n[1-2] -a 0-5%1 --wrap 'sleep 600'"),
    ("alice", "-J needres -H -N3 --exclusive --wrap 'sleep 600'"),
    ("alice", "-J prio -H -w n1 -c 4 --wrap 'sleep 600'"),
    ("alice", "-J held -H --wrap 'sleep 600'"),
    ("alice", "-J begin -b now+1hour --wrap 'sleep 600'"),
    ("alice", "-J plim -p short -t 60 --wrap 'sleep 600'"),
    ("alice", "-J drained -w n3 --wrap 'sleep 600'"),
    ("alice", "-J toobig -n 100 --wrap 'sleep 600'"),
    ("alice", "-J tootall -N 5 --wrap 'sleep 600'"),
    ("alice", "-J first -H --wrap 'sleep 600'"),
    ("alice", "-J dep -d afterok:130 --wrap 'sleep 600'"),
    ("alice", "-J depany -d afterany:130?afternotok:130 --wrap 'sleep 600'"),
    ("alice", "-J fails --wrap 'exit 3'"),
)
"""Jobs 118 to 133. Some wait for a moment: the first task of the array is to be job 134."""

LATER = (
    ("root", "scontrol release 118,119,120,121"),
    ("root", "scontrol release 122,123"),
    ("alice", "sbatch -J depnever -d afterok:133 --wrap 'sleep 600'"),
    ("alice", "sbatch -J single1 -b now+1hour --wrap 'sleep 600'"),
    ("alice", "sbatch -J single1 -d singleton --wrap 'sleep 600'"),
    ("alice", "sbatch -J lic -H --wrap 'sleep 600'"),
    ("root", "scontrol hold 138"),
    *(("root", f"scontrol update jobid={job} priority=1000") for job in (118, 119, 120, 134)),
    *(("root", f"scontrol update jobid={job} priority=1000") for job in (121, *range(122, 124))),
    *(("root", f"scontrol update jobid={job} priority=1000") for job in (*range(125, 130), 131)),
    *(("root", f"scontrol update jobid={job} priority=1000") for job in (132, *range(135, 138))),
)


def _entry(at: str, who: str, line: str) -> str:
    text = line.replace("\\", "\\\\").replace('"', '\\"')
    return f'- {{at: {at}, as: {who}, run: "{text}"}}'


def _queue() -> list[tuple[str, str, str]]:
    before = [("1s", who, f"sbatch {words}") for who, words in SUBMISSIONS]
    first = [(f"{2 + place * 2}s", *each) for place, each in enumerate(LATER[:3])]
    return [("0s", "root", DRAIN), *before, *first, *(("7s", *each) for each in LATER[3:])]


@functools.cache
def typed(section: str, *names: str) -> dict[str, CommandResult]:
    """Return what the commands of recordings print: in that queue, or where there is none."""
    entries = _queue() if section.endswith("mix") else []
    for name in names:
        recorded = read(f"{section}/{name}")
        entries.append(("12s", recorded.user, recorded.line))
    text = "\n".join(["timeline:", *(_entry(*entry) for entry in entries)]) + "\n"
    commands = run(text, cluster=NUMBERED, model="modern").result.commands
    return dict(zip(names, commands[-len(names) :], strict=True))
