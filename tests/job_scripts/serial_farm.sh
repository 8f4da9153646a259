#!/bin/bash
#SBATCH --job-name=serial-farm
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --ntasks=4

# Keep all cores busy with serial work.
njobs=0
for seed in $(seq -w 1 6); do
    srun --exact -n1 -c1 ./solver --seed "$seed" > farm_"$seed".out &
    if [ $((++njobs % SLURM_NTASKS)) -eq 0 ]; then
        wait
    fi
done
wait
total=$(cat farm_*.out | grep -c done)
[[ $total -eq 6 ]] && echo "all $total done" || { echo "only $total"; exit 1; }
rm -f farm_??.out
