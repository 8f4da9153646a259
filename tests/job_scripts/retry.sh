#!/bin/bash
#SBATCH --job-name=retry
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

attempt=1 max=3
until ./flaky "$attempt"; do
    rc=$?
    if [ "$attempt" -ge "$max" ]; then
        echo "gave up after $attempt, status $rc"
        break
    fi
    delay=$((2 ** attempt))
    echo "attempt $attempt failed ($rc), again in ${delay}s"
    sleep "$delay"
    let attempt+=1
done
timeout 5 ./solver --hang || echo "timeout gave $?"
