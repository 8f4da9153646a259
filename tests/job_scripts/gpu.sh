#!/bin/bash
#SBATCH --job-name=gpu
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --cpus-per-task=2

echo "GPUs: ${CUDA_VISIBLE_DEVICES:-none}"
if command -v nvidia-smi > /dev/null 2>&1; then
    nvidia-smi --query-gpu=name --format=csv,noheader | head -n1
fi
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
export WORLD_SIZE=$((SLURM_NNODES * ${SLURM_NTASKS_PER_NODE:-1}))
echo "$MASTER_ADDR:$MASTER_PORT $WORLD_SIZE"
srun python3 train.py --epochs 2 --batch-size=64 2>&1 | tee train.log
acc=$(grep -oE 'acc=[0-9.]+' train.log | tail -1 | cut -d= -f2)
echo "accuracy ${acc:-unknown}"
