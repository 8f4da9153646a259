#!/bin/bash
#SBATCH --job-name=sweep
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

params=({1..2}_{a,b})
rm -rf sweep && mkdir -p sweep
for p in "${params[@]}"; do
    IFS=_ read -r num letter <<< "$p"
    out=sweep/$num$letter.txt
    ./solver -n "$num" -l "$letter" > "$out" || continue
    results[num]+="$letter"
done
for k in "${!results[@]}"; do echo "$k=${results[k]}"; done
ls sweep/*.txt | wc -l
shopt -s nullglob
files=(sweep/*.dat)
echo "${#files[@]} data files"
