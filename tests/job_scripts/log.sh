#!/bin/bash
#SBATCH --job-name=log
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

set -e
LOG=job.$SLURM_JOB_ID.log
log()  { printf '[%s] %s\n' "$(date '+%Y-%m-%d %H:%M:%S')" "$*" | tee -a "$LOG"; }
die()  { log "ERROR: $*"; exit 1; }
run()  { log "+ $*"; "$@" || die "$1 failed with $?"; }

start=$(date +%s)
run mkdir -p out
run ./solver --quick
sleep 65
elapsed=$(( $(date +%s) - start ))
log "$(printf 'took %02d:%02d' $((elapsed / 60)) $((elapsed % 60)))"
exec 3>&1 1>>"$LOG" 2>&1
echo "only in the log"
exec 1>&3 3>&-
tail -n 2 "$LOG"
