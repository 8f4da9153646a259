#!/bin/bash
#SBATCH --job-name=background-monitor
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

monitor() {
    while sleep 5; do
        echo "$(date +%T) $(squeue -h -j "$SLURM_JOB_ID" -o %T)" >> monitor.log
    done
}
monitor &
mon=$!
./solver --long
kill $mon
wait $mon 2>/dev/null
echo "monitor ended with $?"
sort -u -k2 monitor.log | awk '{ print $2 }' | uniq
