#!/bin/bash
#SBATCH --job-name=config
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00

declare -A conf=([grid]=64 [dt]=0.01)
cat > run.cfg <<'CFG'
# comment
grid = 128
dt=0.005
  name = "test case"

CFG
while IFS='=' read -r key value; do
    key=${key//[[:space:]]/}
    [[ -z $key || $key == \#* ]] && continue
    value=${value#"${value%%[![:space:]]*}"}
    value=${value%\"}; value=${value#\"}
    conf[$key]=$value
done < run.cfg
for key in grid dt name; do
    echo "$key -> ${conf[$key]:-unset}"
done
case ${conf[grid]} in
    [0-9]|[0-9][0-9]) size=small ;;
    [0-9][0-9][0-9])  size=medium ;;
    *)                size=large ;;
esac
echo "${size^^}"
