#!/bin/bash
#SBATCH --job-name=pipeline-tools
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

set -o pipefail
cat > table.csv <<END
id,name,score
1,ann,3.5
2,bob,2.25
3,cy,4
END
tail -n +2 table.csv | sort -t, -k3,3nr | head -2 | cut -d, -f2 | paste -s -d' '
awk -F, 'NR > 1 { s += $3; n++ } END { printf "mean %.2f of %d\n", s / n, n }' table.csv
sed -e '1d' -e 's/,/ | /g' table.csv | nl
grep -v '^id' table.csv | tr ',' '\n' | sort | uniq -c | sort -rn | wc -l
find . -maxdepth 1 -name 'table.*' -type f | xargs -n1 basename
if ! grep -q zed table.csv | cat; then echo "not there: ${PIPESTATUS[*]}"; fi
