"""Values of options as people write them: what counts, and what is said of what does not."""

import pytest

from simctl.world import CommandResult
from tests.scontrol_situations import Lines, type_in

FILES = 'files: {j.sh: "#!/bin/sh\\nsleep 100\\n", env.sh: "#!/bin/sh\\necho $SLURM_GPUS\\n"}\n'


def typed(*lines: str, user: str = "alice") -> tuple[CommandResult, ...]:
    """Return what lines did that somebody types one second apart."""
    entries: Lines = [(f"{at}s", user, line) for at, line in enumerate(lines, start=1)]
    return type_in(entries, more=FILES).result.commands


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ("-N 2-k", 255, 'sbatch: error: "k" is not a valid node count'),
        ("-N 2-", 255, "sbatch: error: Maximum node count -1 is less than minimum node count 2"),
        ("-N 2-0", 255, 'sbatch: error: "2-0" is not a valid node count'),
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
        ("-N1 -n2 --gpus-per-task=1 --propagate --propagate=NONE", 0, ""),
        ("-n2 --gpus-per-task=odd:1", 1, "Requested node configuration is not available"),
        ("--gpus-per-task=1", 1, "sbatch: fatal: --gpus-per-task or --tres-per-task used without"),
        ("-N2 -n3 --gpus-per-task=1", 255, "--gpus that nodes do not share alike is an option"),
        ("--propagate=STACK,ODD", 255, "sbatch: error: --propagate: STACK,ODD: no names of limits"),
        ("--mem-bind=local,verbose --switches=1@5 --wait-all-nodes=1", 0, ""),
        ("--mem_bind=map_mem:0,1 -n4 -N2 --tasks-per-node=2", 0, ""),
        (
            "--mem-bind=odd",
            255,
            "sbatch: error: Invalid --mem-bind specification; known are none, rank, local, "
            "map_mem:LIST, mask_mem:LIST, and before them quiet, verbose, prefer, sort, nosort",
        ),
        ("--switches=one", 255, "sbatch: error: Invalid --switches specification"),
        ("--switches=1@odd", 255, "sbatch: error: "),
        ("--wait-all-nodes=2", 255, "sbatch: error: Invalid --wait-all-nodes specification"),
        ("--spread-job", 255, "not simulate yet; -N with --ntasks-per-node says how many nodes"),
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
    told = typed(
        "sbatch -v --mem=1G --gres=gpu:1 -G 2 -N1 j.sh",
        *("sbatch -v --mem=100 j.sh", "sbatch -v --mem=1025K j.sh"),
    )
    assert "sbatch: mem                 : 1G\n" in told[0].stderr
    assert "sbatch: gres                : gres:gpu:1\n" in told[0].stderr
    assert "sbatch: gpus                : 2\n" in told[0].stderr
    assert "sbatch: mem                 : 100\n" in told[1].stderr
    assert "sbatch: mem                 : 2\n" in told[2].stderr


def test_gpus_of_tasks_are_those_of_their_nodes() -> None:
    """Tasks that are not told are as many as there are gpus for them."""
    told = typed(
        "sbatch -N1 -n2 --gpus-per-task=1 j.sh",
        "scontrol show job 1",
        "sbatch -G 2 --gpus-per-task=2 j.sh",
        "scontrol show job 2",
    )
    assert "TresPerNode=gres:gpu:2" in told[1].stdout
    assert "NumTasks=2" in told[1].stdout
    assert "NumTasks=1" in told[3].stdout


@pytest.mark.parametrize(
    ("value", "requeue"), [("1", 0), ("yes", 0), ("0", 1), ("no", 1), ("odd", 1)]
)
def test_variables_of_flags_say_yes_or_no(value: str, requeue: int) -> None:
    """A flag's variable may also say that it is not set."""
    text = f"#!/bin/sh\\nSBATCH_NO_REQUEUE={value} sbatch --wrap 'sleep 50'\\n"
    lines: Lines = [("1s", "alice", "sbatch j.sh"), ("3s", "alice", "scontrol show job 2")]
    ran = type_in(lines, more=f'files: {{j.sh: "{text}"}}\n')
    assert f"   Requeue={requeue} Restarts=0" in ran.result.commands[1].stdout


def test_the_list_of_generic_resources() -> None:
    """``--gres=help`` names the kinds there are, and submits nothing."""
    for line in ("sbatch --gres=help j.sh", "srun --gres=list hostname", "salloc --gres=help true"):
        result = typed(line)[0]
        assert (result.stdout, result.exit) == ("Valid gres options are:\ngpu[[:type]:count]\n", 0)


def test_output_of_srun_that_cannot_be_opened() -> None:
    """Nothing runs; directories that may be made are made."""
    results = typed(
        "srun -o /nope/x hostname",
        "srun -e /nope/%j/x hostname",
        "srun -o new/dir/x hostname",
        "scontrol show hostlist /home/alice/new/dir/x",
    )
    for result, stream in zip(results, ("stdout", "stderr"), strict=False):
        told = f"srun: error: Could not open {stream} file: No such file or directory\n"
        assert (result.stdout, result.stderr, result.exit) == ("", told, 1)
    assert (results[2].stderr, results[2].exit) == ("", 0)
    assert results[3].stdout.startswith("n")


def test_files_of_srun_are_named_for_nodes_and_arrays() -> None:
    """Each task's node, and the array of the script around it."""
    text = "#!/bin/sh\\nsrun -n2 -o s_%A_%a_%N_%n_%t.out echo hi\\n"
    lines: Lines = [("1s", "alice", "sbatch -N2 -a 4 j.sh")]
    disk = type_in(lines, more=f'files: {{j.sh: "{text}"}}\n').world.site.disk
    assert disk.read("/home/alice/s_1_4_n1_0_0.out") == "hi\n"
    assert disk.read("/home/alice/s_1_4_n2_1_1.out") == "hi\n"


def test_salloc_lacks_its_command() -> None:
    """The allocation is given back."""
    result = typed("salloc ./odd")[0]
    assert result.exit == 1
    assert result.stderr == (
        "salloc: Granted job allocation 1\n"
        'salloc: error: _fork_command: Unable to find command "./odd"\n'
        "salloc: Relinquishing job allocation 1\n"
    )


def test_kill_on_bad_exit_takes_any_number() -> None:
    """Other than 0, which is a no."""
    results = typed("srun -K5 hostname", "srun -Kodd hostname", "srun -K0 hostname")
    assert [result.exit for result in results] == [0, 0, 0]


def test_a_directory_that_tasks_do_not_find() -> None:
    """They start in /tmp, and each node says so."""
    result = typed("srun -N2 -D /nope bash -c pwd")[0]
    assert (result.stdout, result.exit) == ("/tmp\n/tmp\n", 0)
    for node in ("n1", "n2"):
        told = f"slurmstepd-{node}: error: couldn't chdir to `/nope': No such file or directory: "
        assert result.stderr.count(f"{told}going to /tmp instead\n") == 2


@pytest.mark.parametrize("keyword", ["hold", "release", "requeue", "update"])
@pytest.mark.parametrize("tasks", ["99", "[90-92]", "[1,99]"])
def test_tasks_that_there_are_not(keyword: str, tasks: str) -> None:
    """Nobody is told that they were changed; others of the same words are."""
    words = f"update jobid=1_{tasks} comment=new" if keyword == "update" else f"{keyword} 1_{tasks}"
    array, changed, shown = typed(
        "sbatch -a 0-5%2 --wrap 'sleep 100'", f"scontrol {words}", "scontrol show job 1_1"
    )
    assert (array.exit, changed.exit, shown.exit) == (0, 1, 0)
    assert f"Invalid job id specified for job 1_{tasks}\n" in changed.stderr
    assert ("Comment=new" in shown.stdout) == (keyword == "update" and tasks == "[1,99]")
