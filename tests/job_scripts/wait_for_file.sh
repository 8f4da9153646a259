#!/bin/bash
#SBATCH --job-name=wait-for-file
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

( sleep 45; echo 42 > answer ) &
tries=0
until [ -s answer ]; do
    if (( ++tries > 10 )); then
        echo "gave up" >&2
        exit 1
    fi
    sleep 10
done
echo "after $tries tries: $(< answer)"
