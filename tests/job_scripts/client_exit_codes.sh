#!/bin/bash
#SBATCH --job-name=client-exit-codes
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

export CLIENT_JOB_ID=f3a9 CLIENT_LAUNCH_LOG="$HOME/launch.log"
_dir=$(pwd)
pre_launch() { return 0; }
exit_with() { echo "$1" > "$_dir/$CLIENT_JOB_ID.ec"; exit "$1"; }
{
    echo "node: $SLURMD_NODENAME"
    pre_launch || exit_with $?
    env | grep ^CLIENT_ | sort
} > "$CLIENT_LAUNCH_LOG" 2>&1
./solver "--with=some value" 1> stdout.txt 2> stderr.txt < /dev/null
exit_with $?
