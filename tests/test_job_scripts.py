"""Job scripts of the kinds that sites show in their user guides and that clients write.

All of them are submitted in one run. `check` finds nothing in any, and each runs to its end; what
they print is what bash prints, with the programs that the scenario describes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from simctl.scenario.load import read_scenario
from simctl.world import World

SCRIPTS = Path(__file__).parent / "job_scripts"
PRINTED = SCRIPTS / "printed.txt"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.sh"))
CLUSTER = """\
nodes: [{name: "n[1-4]", cpus: 8}]
partitions: [{name: debug, nodes: ALL, default: true}]
users: {alice: 1001}
programs:
  ./solver: {runs: 12s, output: "done\\n"}
  ../solver: {runs: 3s, output: "done\\n"}
  ./flaky: {exit: 3}
  /home/alice/solver: {runs: 2s, output: "done\\n"}
  python3: {runs: 2s, output: "acc=0.75\\n"}
  conda: {}
  mpirun: {runs: 4s, output: "engine done\\n"}
  apptainer: {runs: 1s, output: "in a container\\n"}
  worker_pool: {runs: 20s, output: "worker\\n"}
"""


def scenario(names: list[str], *, folder: str = "") -> str:
    """Return a scenario that submits scripts, one after the other."""
    files = {f"{name}.sh": (SCRIPTS / f"{name}.sh").read_text(encoding="utf-8") for name in names}
    files["miniconda3/etc/profile.d/conda.sh"] = "export CONDA_EXE=conda\n"
    lines = [CLUSTER, "files:\n"]
    for name, text in files.items():
        lines.append(f"  {name}: |\n" + "".join(f"    {line}\n" for line in text.split("\n")))
    lines.append("timeline:\n")
    for place, name in enumerate(names):
        lines.append(f"  - {{at: {place * 600}s, as: alice, run: sbatch {name}.sh}}\n")
    return "".join(lines)


@pytest.fixture(scope="module")
def world() -> World:
    """Return the cluster that has run all the scripts."""
    found = World(read_scenario(scenario(NAMES), file="s.yaml"))
    found.run()
    return found


def test_check_finds_nothing_in_them() -> None:
    """No mistake, which would raise; one program that is not there is warned of, rightly."""
    warnings = [each.message for each in read_scenario(scenario(NAMES), file="s.yaml").warnings]
    assert [each.partition(":")[0] for each in warnings] == ["nobody described 'nvidia-smi'"]


def test_each_comes_to_its_end_and_prints_what_it_should(
    world: World, request: pytest.FixtureRequest
) -> None:
    """The outputs are golden: those of bash, with programs that print and end as described here."""
    texts = world.disk.contents("")
    printed = "".join(
        f"== {path.rpartition('/')[2]}\n{data.decode()}\n"
        for path, data in sorted(texts.items())
        if path.startswith("/home/alice/") and path.endswith(".out")
    )
    if request.config.getoption("--rewrite-golden"):
        PRINTED.write_text(printed, encoding="utf-8")
    assert printed == PRINTED.read_text(encoding="utf-8")
    assert "not found" not in printed
    assert "not simulated" not in printed


def test_a_newcomers_script_runs_to_its_end() -> None:
    """With the files, programs and the TMPDIR that it leans on, its job is COMPLETED."""
    text = CLUSTER + NEWCOMER
    assert read_scenario(text, file="s.yaml").warnings == ()
    world = World(read_scenario(text, file="s.yaml"))
    (job,) = world.run().rows
    assert (job.state, job.exit_code) == ("COMPLETED", "0:0")
    printed = world.disk.read("/home/alice/relax.1.out") or ""
    assert printed.startswith("Job 1 on n1 at Thu Jan  1 00:00:00 UTC 2026\ndone\n")
    assert "one\nengine done\nbig\ndone\n\nreal\t0m12.000s\n" in printed


NEWCOMER = """\
files:
  input.dat: "1 2 3\\n"
  .bashrc: "export TMPDIR=$(mktemp -d)\\n"
  a.sh: |
    #!/bin/bash -l
    #SBATCH --job-name=relax --nodes=2 --ntasks-per-node=1 --output=%x.%j.out
    set -euo pipefail
    module purge
    module load gcc/12 openmpi
    source ~/.bashrc
    export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
    echo "Job $SLURM_JOB_ID on $(hostname) at $(date)"
    NODES=$(scontrol show hostnames $SLURM_JOB_NODELIST)
    for i in $(seq 1 3); do
      srun -n1 ./solver --iter $i
    done
    case $HOSTNAME in n1) echo one;; *) echo other;; esac
    function clean() { rm -rf $TMPDIR; }
    trap clean EXIT
    mkdir -p /scratch/$USER/$SLURM_JOB_ID
    cp input.dat /scratch/$USER/
    cat <<EOF > conf
    x=1
    EOF
    [[ -f conf ]] && mpirun -np 4 ./x | tee log
    x=${#NODES}
    if (( x > 3 )); then echo big; fi
    time srun -n1 ./solver
timeline:
  - {at: 0s, as: alice, run: sbatch a.sh}
"""
