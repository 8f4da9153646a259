"""Values of options as people write them: what counts, and what is said of what does not."""

import pytest

from simctl.world import CommandResult
from tests.scontrol_situations import Lines, type_in

FILES = 'files: {j.sh: "#!/bin/sh\\nsleep 100\\n", env.sh: "#!/bin/sh\\necho $SLURM_GPUS\\n"}\n'


def typed(*lines: str, user: str = "alice") -> list[CommandResult]:
    """Return what lines did that somebody types one second apart."""
    entries: Lines = [(f"{at}s", user, line) for at, line in enumerate(lines, start=1)]
    return type_in(entries, more=FILES).result.commands


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ("-N 2-k", 255, 'sbatch: error: "k" is not a valid node count'),
        ("-N 2-", 255, "sbatch: error: Maximum node count -1 is less than minimum node count 2"),
        ("-N -1", 0, ""),
        ("-n 1 -N 1k", 0, "sbatch: Warning: can't run 1 processes on 1024 nodes, setting nnodes"),
        ("-p short,nope,no", 1, "sbatch: error: invalid partition specified: nope\n"),
        ("-w n[1-", 1, "sbatch: error: Batch job submission failed: Invalid node name specified"),
        ("-x n[3-1]", 1, "sbatch: error: Batch job submission failed: Invalid node name specified"),
        ("-w n[1-2] -N1", 1, "Batch job submission failed: Node count specification invalid"),
        ("-m plane", 255, "sbatch: error: Invalid --distribution specification"),
        ("-m block:odd", 255, "sbatch: error: Invalid --distribution specification"),
        ("-m cyc:fcyclic:block,pack", 0, ""),
        ("--gpus=0", 0, ""),
        ("--gpus=odd", 1, "Requested node configuration is not available"),
        ("--gpus-per-node=odd:1", 1, "Requested node configuration is not available"),
        ("--gpus=1:1", 1, "sbatch: error: Invalid generic resource (gres) specification"),
    ],
)
def test_what_values_come_to(words: str, status: int, told: str) -> None:
    """As the commands of Slurm read them."""
    result = typed(f"sbatch {words} j.sh")[0]
    assert result.exit == status
    assert told in result.stderr
    assert bool(told) == bool(result.stderr)


def test_options_as_they_are_told() -> None:
    """Memory in its greatest unit, resources with their kind."""
    told = typed("sbatch -v --mem=1G --gres=gpu:1 -G 2 -N1 j.sh", "sbatch -v --mem=100 j.sh")
    assert "sbatch: mem                 : 1G\n" in told[0].stderr
    assert "sbatch: gres                : gres:gpu:1\n" in told[0].stderr
    assert "sbatch: gpus                : 2\n" in told[0].stderr
    assert "sbatch: mem                 : 100\n" in told[1].stderr


@pytest.mark.parametrize(("value", "held"), [("1", True), ("yes", True), ("0", False), ("no", False)])
def test_variables_of_flags_say_yes_or_no(value: str, held: bool) -> None:
    """A flag's variable may also say that it is not set."""
    job = f"#!/bin/sh\\nSBATCH_REQUEUE={value} sbatch --wrap true\\n"
    more = f'files: {{j.sh: "{job}"}}\nslurm_conf: {{}}\n'
    lines: Lines = [("1s", "alice", "sbatch j.sh"), ("3s", "alice", "scontrol show job 2")]
    ran = type_in(lines, more=more.replace("slurm_conf: {}\n", ""))
    assert ran.result.commands[1].exit == 0
    submitted = ran.world.ctld.jobs[2].desc.requeue
    assert (submitted == 1) is held


def test_the_list_of_generic_resources() -> None:
    """``--gres=help`` names the kinds there are, and submits nothing."""
    for line in ("sbatch --gres=help j.sh", "srun --gres=list hostname", "salloc --gres=help true"):
        result = typed(line)[0]
        assert (result.stdout, result.exit) == ("Valid gres options are:\ngpu[[:type]:count]\n", 0)
