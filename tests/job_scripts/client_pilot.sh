#!/bin/bash
#SBATCH --job-name=client-pilot
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --nodes=2
#SBATCH --exclusive
export BLOCK_NAME="pilot.block-0" CORES=$SLURM_CPUS_ON_NODE NODES=$SLURM_JOB_NUM_NODES
set -e
[[ "1" == "1" ]] && echo "cores: $CORES, nodes: $NODES"
cat << PILOT_END > launch_$SLURM_JOB_NAME.sh
worker_pool --debug -a 10.0.0.1 -p 0 -c 1 --block_id=0 --logdir=$HOME/runinfo
PILOT_END
chmod a+x launch_$SLURM_JOB_NAME.sh
srun --ntasks $NODES -l bash launch_$SLURM_JOB_NAME.sh
[[ "1" == "1" ]] && echo "Done"
