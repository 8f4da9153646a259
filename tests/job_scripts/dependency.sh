#!/bin/bash
#SBATCH --job-name=dependency
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

# Hand in what follows this job, in a chain.
prev=$SLURM_JOB_ID
for stage in prepare solve; do
    id=$(sbatch --parsable --dependency=afterok:"$prev" --job-name="$stage" --wrap="sleep 1; echo $stage")
    echo "stage $stage is job ${id%%;*}"
    prev=${id%%;*}
done
squeue -u "$USER" -h -o "%i %j %T" | sort -n
