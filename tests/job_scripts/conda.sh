#!/bin/bash
#SBATCH --job-name=conda
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

source ~/miniconda3/etc/profile.d/conda.sh
conda activate analysis
which python3
python3 - <<'PY'
import sys
print("hello from", sys.version_info[:2])
PY
conda deactivate
