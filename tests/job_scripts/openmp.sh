#!/bin/bash
#SBATCH --job-name=openmp
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --cpus-per-task=4

export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
export OMP_PLACES=cores OMP_PROC_BIND=close
ulimit -s unlimited

for threads in 1 2 4; do
    (( threads <= OMP_NUM_THREADS )) || continue
    printf "%-8s %3d threads on %s\n" "run" "$threads" "$(hostname -s)"
    OMP_NUM_THREADS=$threads ./solver --threads "$threads" > "scaling_${threads}.log" 2>&1
done
grep -H done scaling_*.log | sort -t_ -k2 -n | sed 's/\.log:/ /'
