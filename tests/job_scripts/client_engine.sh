#!/bin/bash
#SBATCH --job-name=client-engine
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

exec > _scheduler-stdout.txt
exec 2> _scheduler-stderr.txt

cd "$HOME"
export OMP_NUM_THREADS=1

'mpirun' '-np' '4' './solver' '-in' 'engine.in' < '/dev/null' > 'engine.out' || echo "code failed"
cat engine.out
