#!/bin/bash
#SBATCH --job-name=client-workflow
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --no-requeue
set -e -u -o pipefail
NXF_TASK="step 1"
function on_exit { exit_status=${1:-$?}; printf '%s' $exit_status > .exitcode; exit $exit_status; }
function on_term { trap '' INT TERM; [[ "${pid:-}" ]] && kill -TERM $pid; exit 143; }
trap on_exit EXIT
trap on_term TERM INT USR2
set +e
(set -e; ./solver "$NXF_TASK" > >(tee .command.out) 2> >(tee .command.err >&2)) &
pid=$!
wait $pid || true
ret=$?
set -e
[[ -s .command.out ]] && sort .command.out | uniq -c | sed -E 's/^ +//'
exit $ret
