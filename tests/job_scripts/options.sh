#!/bin/bash
#SBATCH --job-name=options
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

usage() { echo "usage: $0 [-n N] [-v] name" >&2; exit 2; }
main() {
    local n=1 verbose=false opt OPTIND=1
    while getopts ":n:vh" opt; do
        case "$opt" in
            n) n=$OPTARG ;;
            v) verbose=true ;;
            *) usage ;;
        esac
    done
    shift $((OPTIND - 1))
    [ $# -ge 1 ] || usage
    $verbose && echo "running $1 $n times"
    local i
    for ((i = 1; i <= n; i++)); do echo "$i: $1"; done
}
main -v -n 2 first
main second
