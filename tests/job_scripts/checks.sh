#!/bin/bash
#SBATCH --job-name=checks
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

set -u
for tool in awk sed grep nosuchtool; do
    if ! hash "$tool" 2>/dev/null && ! type -P "$tool" > /dev/null; then
        missing="${missing:+$missing }$tool"
    fi
done
echo "missing: ${missing:-none}"
[[ ${SLURM_JOB_ID} =~ ^[0-9]+$ ]] && echo "a number"
[ -d "$HOME" ] && [ -w "$HOME" ] || exit 1
test "$(id -un)" = "$USER" && echo "I am $USER"
if [[ "$(uname -s)" == "Linux" && -n "${PATH-}" ]]; then echo fine; fi
umask 027; touch private; ulimit -c 0
