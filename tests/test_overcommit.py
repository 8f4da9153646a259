"""Jobs and steps with more tasks than cpus: what they get, what runs, what is told of it."""

import re

import pytest

from tests.scontrol_situations import Lines, type_in


def outputs(*lines: tuple[str, str]) -> list[str]:
    """Type lines of alice's, each at a moment; return what each wrote."""
    typed: Lines = [(at, "alice", line) for at, line in lines]
    return [each.stdout + each.stderr for each in type_in(typed).result.commands]


@pytest.mark.parametrize(
    ("asked", "shape", "cpus"),
    [
        ("-O -n 9", "NumNodes=1 NumCPUs=1 NumTasks=9", "1"),
        ("-O -N2 -n 20", "NumNodes=2 NumCPUs=2 NumTasks=20", "1(x2)"),
        ("-O -N2 -n 20 -c2", "NumNodes=2 NumCPUs=4 NumTasks=20", "2(x2)"),
        ("-O -N2 --ntasks-per-node=9", "NumNodes=2 NumCPUs=2 NumTasks=18", "1(x2)"),
        ("-O -N1 -n 9 --exclusive", "NumNodes=1 NumCPUs=4 NumTasks=9", "4"),
        ("-N1 -n 4", "NumNodes=1 NumCPUs=4 NumTasks=4", "4"),
    ],
)
def test_a_job_gets_the_cpus_of_one_task_on_each_node(asked: str, shape: str, cpus: str) -> None:
    """However many tasks it has, and whatever it says of the tasks on each node."""
    _, shown, told = outputs(
        ("1s", f"sbatch {asked} --wrap 'sleep 9'"),
        ("2s", "scontrol show job 1"),
        ("3s", f"salloc -Q {asked} sh -c 'echo $SLURM_JOB_CPUS_PER_NODE $SLURM_OVERCOMMIT'"),
    )
    assert shape in shown
    assert told.split() == [cpus, *(["1"] if "-O" in asked else [])]


@pytest.mark.parametrize(
    "line",
    [
        "srun -O -n 9 -l true",
        "salloc -Q -O -n 9 srun -l true",
        "salloc -Q -n 1 srun -O -n 9 -l true",
        "salloc -Q -n 1 srun -O --exact -n 9 -l true",
    ],
)
def test_a_step_has_more_tasks_than_cpus(line: str) -> None:
    """By an option, by its job's, and by an input variable."""
    line = line.replace("-l true", "sh -c 'echo $SLURM_PROCID $SLURM_NODEID $SLURM_OVERCOMMIT'")
    (told,) = outputs(("1s", line))
    assert sorted(told.splitlines()) == [f"{rank} 0 1" for rank in range(9)]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("-n 512", ""),
        ("-n 513", "Unable to create step for job 1: Task count specification invalid"),
        ("-n 513 --exact", "Unable to create step for job 1: Task count specification invalid"),
    ],
)
def test_512_tasks_run_on_a_node(asked: str, told: str) -> None:
    """And no more."""
    (said,) = outputs(("1s", f"salloc -Q -n 1 srun -O {asked} true"))
    assert told in said
    assert bool(said) is bool(told)


@pytest.mark.parametrize(("count", "refused"), [(2048, False), (2049, True), (10**9, True)])
def test_a_job_of_more_tasks_than_could_run_is_refused(count: int, refused: bool) -> None:
    """512 on each node of the partition."""
    (said,) = outputs(("1s", f"sbatch -O -n {count} --wrap true"))
    assert ("Task count specification invalid" in said) is refused


def test_overcommitted_cpus_count_once() -> None:
    """The step is told to use the cpus its job has there, and the next one waits for them."""
    lines = (
        ("1s", "salloc -Q -N2 -n2 sh -c 'srun -O -n8 --exact sleep 5 & sleep 1; "
               "srun -I -n1 --exact hostname; wait'"),
        ("2s", "squeue -s -h -j 1 -O StepID,NumTasks"),
        ("4s", "scontrol show step 1.0"),
    )  # fmt: skip
    said, _, step = outputs(*lines)
    assert re.search(r"CPUs=2 Tasks=8\b", step)
    assert "busy" in said


def test_tasks_without_leave_need_cpus() -> None:
    """As before."""
    (said,) = outputs(("1s", "salloc -Q -n 1 srun -n 9 true"))
    assert "More processors requested than permitted" in said


@pytest.mark.parametrize(("command", "variable"), [("salloc -Q", "SALLOC"), ("srun", "SLURM")])
def test_input_variables_ask_for_it(command: str, variable: str) -> None:
    """Of a job as well."""
    script = f"unset SLURM_JOB_ID; export {variable}_OVERCOMMIT=yes; {command} -n 9 sleep 5"
    _, shown = outputs(("1s", f"salloc -Q -n 1 sh -c '{script}'"), ("3s", "scontrol show job 2"))
    assert "NumNodes=1 NumCPUs=1 NumTasks=9" in shown


def test_a_variable_lets_a_step_overcommit() -> None:
    """Inside a job that does not."""
    (said,) = outputs(("1s", "salloc -Q -n 1 sh -c 'export SLURM_OVERCOMMIT=1; srun -n9 hostname'"))
    assert said == "n1\n" * 9
