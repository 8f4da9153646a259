#!/bin/bash
#SBATCH -J wrapper -o client-task-wrapper-%j.out --time=30 --signal=B:USR2@30
# What engines write around a task: stages as functions, outputs through tee, the exit code in a file.
set -eu
stage=${1:-main}
leave() {
    local last=$? code=${task_ret:-0}
    [[ $code -eq 0 && $last -ne 0 ]] && code=$last
    printf -- "$code" > .exitcode
    set +u
    [[ "$scratch" ]] && rm -rf "$scratch" || true
    echo "left with $code"
    exit $code
}
stop() { set +e; [[ "${pid:-}" ]] && kill $pid; }
unstage() { [[ ${task_ret:=0} != 0 ]] && return; cp -fRL result "$base/result.$SLURM_JOB_ID"; }
main() {
    trap leave EXIT
    trap stop TERM INT USR2
    trap '' USR1
    base=$PWD scratch=$(mktemp -d)
    cd "$scratch"
    cat > .command.sh <<'TASK'
echo "in $(basename "$0")"; echo warned >&2
"$SLURM_SUBMIT_DIR/solver" && echo done > result
TASK
    set +e
    (set -o pipefail; (bash -ue .command.sh | tee .out) 3>&1 1>&2 2>&3 | tee .err) &
    pid=$!
    wait $pid || task_ret=$?
    unstage
    echo "err: $(< .err)"
    cd "$base"
}
$stage
