"""The jobs that were in the queue when squeue and sinfo were recorded."""

from tests.printed import CLUSTER

_NAME = "averyveryverylongjobname"
_SUBMISSIONS = (
    ("bob", "-J bobrun -w n2 -n2 -t 20 --wrap 'sleep 600'"),
    ("alice", "-J runner -w n1 -n2 --mem 500 -t 30 --wrap 'srun -n1 sleep 600'"),
    ("alice", "-J gpujob -p long -w n4 --gres=gpu:1 -t 365-0 --wrap 'sleep 600'"),
    ("alice", f"-J {_NAME} -a 0-5%1 --wrap 'sleep 600'"),
    ("alice", "-J needres -N3 --exclusive --wrap 'sleep 600'"),
    ("alice", "-J prio -w n1 -c 4 --wrap 'sleep 600'"),
    ("alice", "-J held -H --wrap 'sleep 600'"),
    ("alice", "-J begin -b now+1hour --wrap 'sleep 600'"),
    ("alice", "-J plim -p short -t 60 --wrap 'sleep 600'"),
    ("alice", "-J drained -w n3 --wrap 'sleep 600'"),
    ("alice", "-J toobig -n 100 --wrap 'sleep 600'"),
    ("alice", "-J tootall -N 5 --wrap 'sleep 600'"),
    ("alice", "-J first -H --wrap 'sleep 600'"),
    ("alice", "-J dep -d afterok:13 --wrap 'sleep 600'"),
    ("alice", "-J depany -d afterany:13?afternotok:13 --wrap 'sleep 600'"),
    ("alice", "-J fails --wrap 'exit 3'"),
    ("alice", "-J depnever -d afterok:16 --wrap 'sleep 600'"),
)

def mix(*lines: str) -> str:
    out = [CLUSTER, "timeline:"]
    out.append('- {at: 0s, as: root, run: "scontrol update nodename=n3 state=drain reason=\'bad disk\'"}')
    for n,(who, words) in enumerate(_SUBMISSIONS):
        out.append(f'- {{at: {1 + (n>2) + (n>15)}s, as: {who}, run: "sbatch {words}"}}')
    for line in lines:
        text = line.replace('"', '\\"')
        out.append(f'- {{at: 12s, as: alice, run: "{text}"}}')
    return "\n".join(out) + "\n"
