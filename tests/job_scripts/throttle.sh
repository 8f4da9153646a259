#!/bin/bash
#SBATCH -n 4 -o throttle-%j.out --time=30
# At most three at a time, by what jobs tells in a substitution; the rest is ended with the script.
trap 'echo "bye from ${#done_[@]}"; kill $(jobs -p) 2> /dev/null' EXIT
done_=()
most=0
for part in {01..07}; do
    while (( $(jobs -rp | wc -l) >= 3 )); do sleep 0.5; done
    { sleep $(( 10#$part % 3 + 1 )); echo "$part" >> parts.log; } &
    now=$(jobs -r | grep -c .)
    (( now > most )) && most=$now
done
wait
mapfile -t done_ < <(sort parts.log)
echo "at most $most, ${done_[*]}"
sleep 1000 &
jobs -l | awk '{print $1, $3, $4, $5}'
( trap 'echo "cleaned up"' EXIT; sleep 500 ) & sleep 1; kill $!; wait $! || echo "rc $?"
