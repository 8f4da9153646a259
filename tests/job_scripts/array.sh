#!/bin/bash
#SBATCH --job-name=array
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --array=1-3%2

CASES=cases.txt
cat > $CASES.$SLURM_ARRAY_TASK_ID <<-LIST
	alpha 0.1 10
	beta  0.2 20
	gamma 0.3 30
LIST
line=$(sed -n "${SLURM_ARRAY_TASK_ID}p" "$CASES.$SLURM_ARRAY_TASK_ID")
read -r name rate steps <<< "$line"
if [[ -z $name ]]; then
    echo "no case for task $SLURM_ARRAY_TASK_ID" >&2
    exit 2
fi
dir=$(printf 'run_%03d_%s' "$SLURM_ARRAY_TASK_ID" "$name")
mkdir -p "$dir" && cd "$dir"
echo "rate=$rate steps=$steps" | tee params
srun -n1 ../solver "$rate" "$steps"
[ $? -eq 0 ] && touch done.flag
