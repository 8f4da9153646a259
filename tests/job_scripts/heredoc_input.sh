#!/bin/bash
#SBATCH --job-name=heredoc-input
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

NAME=water
METHOD=$(echo b3lyp | tr a-z A-Z)
cat <<INPUT > $NAME.in
%mem=4GB
# $METHOD/6-31G* opt

$(basename $NAME) on \$HOSTNAME

0 1
O 0.0 0.0 0.0
INPUT
./solver < $NAME.in > $NAME.out
echo "lines: $(wc -l < $NAME.in), method: $(sed -n 's|^# \([A-Z0-9]*\)/.*|\1|p' $NAME.in)"
