#!/bin/bash
#SBATCH --job-name=container
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --ntasks=2

IMAGE=${IMAGE:-app_latest.sif}
BINDS=("$PWD:/data" "/tmp:/tmp")
opts=()
for b in "${BINDS[@]}"; do opts+=(--bind "$b"); done
apptainer exec "${opts[@]}" "$IMAGE" solver /data/in || exit
srun apptainer run --cleanenv "$IMAGE" &> container.log
wc -l < container.log
