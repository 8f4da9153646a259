#!/bin/bash
#SBATCH --job-name=client-executor
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --get-user-env=L
cd $HOME

srun -n 1 python3 backend.py --host $(hostname) --zmqport 4711
