#!/bin/bash
#SBATCH --job-name=scratch
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --nodes=1

set -euo pipefail
SCRATCH=$(mktemp -d /tmp/"$USER".XXXXXX)
readonly SCRATCH

finish() {
    local code=$?
    echo "copying results back (status $code)"
    cp -r "$SCRATCH"/out "$SLURM_SUBMIT_DIR/results.$SLURM_JOB_ID" 2>/dev/null || true
    rm -rf "$SCRATCH"
}
trap finish EXIT
trap 'echo "time is nearly up"; exit 143' TERM USR1

echo "1 2 3" > "$SLURM_SUBMIT_DIR/data.$SLURM_JOB_ID"
cp "$SLURM_SUBMIT_DIR"/data."$SLURM_JOB_ID" "$SCRATCH"/
cd "$SCRATCH"
mkdir out
awk '{ for (i = 1; i <= NF; i++) sum += $i } END { print "sum", sum }' data.* > out/sum.txt
cat out/sum.txt
