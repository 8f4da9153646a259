#!/bin/bash
#SBATCH --job-name=requeue
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --signal=B:USR1@60
#SBATCH --requeue
#SBATCH --open-mode=append

save() {
    echo "$(date +%H:%M:%S) got a signal, saving"
    kill -TERM "$pid" 2>/dev/null
    wait "$pid"
    scontrol requeue "$SLURM_JOB_ID"
    exit 0
}
trap save USR1

restart=${SLURM_RESTART_COUNT:-0}
args=()
if (( restart > 0 )) && [ -e state.dat ]; then
    args+=(--from state.dat)
fi
./solver "${args[@]}" &
pid=$!
wait $pid
echo "ended by itself with $?, restarts: $restart"
