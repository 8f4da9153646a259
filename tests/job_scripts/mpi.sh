#!/bin/bash
#SBATCH --job-name=mpi
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2

module purge
module load gcc/12.3 openmpi/4.1

echo "Started on $(date) in ${SLURM_SUBMIT_DIR}"
echo "Nodes: $SLURM_JOB_NODELIST, tasks: ${SLURM_NTASKS}"
cd "$SLURM_SUBMIT_DIR" || exit 1
time srun --mpi=pmix ./solver input.nml
status=$?
echo "Finished with status $status"
exit $status
