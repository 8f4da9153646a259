"""What batch jobs find and leave behind: the recordings of jobs, each rebuilt as a scenario.

Their lines were typed into a shell, and show files; here the files are read from the disk.
"""

import re

import pytest
import yaml

from tests import cluster, printed

_VARIABLES = """
ENVIRONMENT HOSTNAME LOGNAME PWD SLURMD_NODENAME SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_COUNT
SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_STEP
SLURM_CLUSTER_NAME SLURM_CONF SLURM_CPUS_ON_NODE SLURM_CPUS_PER_TASK SLURM_GPUS_ON_NODE SLURM_GTIDS
SLURM_JOBID SLURM_JOB_ACCOUNT SLURM_JOB_CPUS_PER_NODE SLURM_JOB_GID SLURM_JOB_GPUS SLURM_JOB_ID
SLURM_JOB_NAME SLURM_JOB_NODELIST SLURM_JOB_NUM_NODES SLURM_JOB_PARTITION SLURM_JOB_QOS
SLURM_JOB_UID SLURM_JOB_USER SLURM_LOCALID SLURM_MEM_PER_CPU SLURM_MEM_PER_NODE SLURM_NNODES
SLURM_NODEID SLURM_NODELIST SLURM_NODE_ALIASES SLURM_NPROCS SLURM_NTASKS SLURM_PRIO_PROCESS
SLURM_PROCID SLURM_RESTART_COUNT SLURM_SUBMIT_DIR SLURM_SUBMIT_HOST SLURM_TASKS_PER_NODE
SLURM_TASK_PID SLURM_TOPOLOGY_ADDR SLURM_TOPOLOGY_ADDR_PATTERN SLURM_WORKING_CLUSTER TMPDIR
""".split()

ENV = "\n".join(
    (
        "#!/bin/sh",
        "#SBATCH -N2 -n3 -c1 --mem=200",
        *(f'echo "{name}=${{{name}-absent}}"' for name in _VARIABLES),
        "pwd",
        "echo $0 $*",
        "srun -n3 sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME $SLURM_LOCALID $SLURM_NODEID "
        "$SLURM_STEP_ID $SLURM_JOB_NODELIST $SLURM_JOB_CPUS_PER_NODE'",
        "exit 0\n",
    )
)
_BLUR = {
    r"JOBID=\d+|JOB_ID=\d+": "ID",
    r"step for job \d+": "step for job ID",
    r"TASK_PID=\d+": "PID",
    r"SUBMIT_HOST=\w+": "HOST",
    r"SLURM_CONF=\S+": "CONF",
    r"\S+/slurm_script ?": "SCRIPT ",
    r"(WORKING_CLUSTER=\w+):[\w.]+:\d+": r"\1",
    r"JOB \d+ ON": "JOB ID ON",
}
_ULIMIT = re.compile(r"(?m)^(real-time|core file|data seg).*\n")


def submit(line: str) -> cluster.Ran:
    """Run one command line at 0 s."""
    return type_all((0, line))


def type_all(*lines: tuple[int, str]) -> cluster.Ran:
    """Run command lines at their seconds."""
    entries = [{"at": f"{at}s", "as": "alice", "run": line} for at, line in lines]
    scenario = {"files": {"env.sh": ENV}, "timeline": entries}
    return cluster.run(yaml.safe_dump(scenario), cluster=printed.CLUSTER)


def file(ran: cluster.Ran, name: str) -> str:
    """Return what a file in alice's home holds, or an empty text."""
    return ran.world.site.disk.read(f"/home/alice/{name}") or ""


@pytest.mark.parametrize(
    ("name", "line", "output"),
    [
        ("batch", "sbatch -W --parsable env.sh x y", "slurm-1.out"),
        ("array", "sbatch -W --parsable -a 4-5 -n1 -N1 env.sh", "slurm-1_4.out"),
        ("gpu", "sbatch -W --parsable -n1 -N1 --gres=gpu:1 env.sh", "slurm-1.out"),
    ],
)
def test_a_batch_script_finds_what_slurms_does(name: str, line: str, output: str) -> None:
    """Every variable that was recorded, and none of the others of these names."""
    wanted = _ULIMIT.sub("", printed.read(f"jobenv/{name}").stdout)
    found = re.sub(r"(?m)^\w+=absent\n", "", file(submit(line), output))
    assert printed.blurred(found, _BLUR) == printed.blurred(wanted, _BLUR)


def test_the_fields_of_a_file_name() -> None:
    """All that sbatch knows; the node is the one that the script runs on."""
    recording = printed.read("jobenv/tmpl")
    ran = submit(recording.line.partition(";")[0])
    typed = ran.result.commands[0].stdout
    names = [name for name in ran.world.site.disk.names("", "/home/alice") if name[:2] == "o_"]
    found = "\n".join([typed.rstrip(), *names, ""])
    blur = {r"job \d+": "job ID", r"nm_\d+_\d+": "nm_ID_ID", r"_(vm|n1)_": "_NODE_",
            r"_\d{4}_": "_PAD_"}  # fmt: skip
    assert printed.blurred(found, blur) == printed.blurred(recording.stdout, blur)


def test_a_cancelled_script_is_told() -> None:
    """In the job's output, and it is ended by SIGTERM."""
    recording = printed.read("jobenv/cancelled")
    ran = type_all((0, 'sbatch --parsable --wrap "sleep 100"'), (2, "scancel 1"))
    told = recording.stdout.splitlines()[0] + "\n"
    assert printed.blurred(file(ran, "slurm-1.out"), _BLUR) == printed.blurred(told, _BLUR)
    assert ran.job(1) == ("CANCELLED", "0:15", "None")


def test_a_script_past_its_time_limit_is_told() -> None:
    """As it is by Slurm."""
    ran = submit('sbatch -W -t 0:03 -J tmo --wrap "sleep 200"')
    assert file(ran, "slurm-1.out") == (
        "slurmstepd-n1: error: *** JOB 1 ON n1 CANCELLED AT 2026-11-20T23:15:37 "
        "DUE TO TIME LIMIT ***\n"
    )
    assert ran.result.commands[0].stdout == "Submitted batch job 1\n"


@pytest.mark.parametrize("name", ["chdir_bad", "output_bad"])
def test_a_job_whose_output_cannot_be_opened_fails(name: str) -> None:
    """It is not run, the node is not drained, and --wait tells of a signal."""
    line = printed.read(f"jobenv/{name}").line
    command = re.search(r"sbatch [^;)]*", line)
    assert command is not None
    ran = submit(command[0])
    assert ran.job(1) == ("FAILED", "0:53", "JobLaunchFailure")
    assert ran.result.commands[0].exit == 1
    assert file(ran, "slurm-1.out") == ""
    assert ran.drained() == []


def test_a_signal_to_the_batch_script() -> None:
    """The script traps it, and sbatch takes over its exit status."""
    recording = printed.read("jobenv/signal_B")
    line = recording.line.partition("; echo rc")[0]
    ran = submit(line)
    typed = f"{ran.result.commands[0].stdout}rc={ran.result.commands[0].exit}\n"
    blur = {r"job \d+": "job ID"}
    assert printed.blurred(typed, blur) == printed.blurred(recording.stdout, blur)
    assert file(ran, "slurm-1.out") == "got\n"


def test_a_requeued_job_waits() -> None:
    """Its output tells why the script was ended; its next run begins the file anew."""
    ran = type_all(
        (0, 'sbatch --parsable --open-mode=append --wrap "sleep 60"'), (2, "scontrol requeue 1")
    )
    assert file(ran, "slurm-1.out") == (
        "slurmstepd-n1: error: *** JOB 1 ON n1 CANCELLED AT 2026-11-20T23:14:09 "
        "DUE TO JOB REQUEUE ***\n"
    )
    ran = type_all((0, 'sbatch --wrap "sleep 60"'), (2, "scontrol requeue 1"))
    assert file(ran, "slurm-1.out") == ""


def test_memory_is_not_enforced() -> None:
    """A program that uses more than the job asked for goes on."""
    ran = submit('sbatch -W --parsable --mem=50M --wrap "sleep 8"')
    assert ran.job(1) == ("COMPLETED", "0:0", "None")
    assert file(ran, "slurm-1.out") == ""


def test_tasks_on_each_node_are_counted_of_the_nodes_asked_for() -> None:
    """A range of nodes is left open by sbatch; salloc takes the least; what -n says stands."""
    asked = {
        "-N2 --ntasks-per-node=2": "4",
        "--ntasks-per-node=2": "2",
        "-N1-2 --ntasks-per-node=2": "",
        "-N2 -n3 --ntasks-per-node=2": "3",
        "-N2": "",
    }
    lines = [
        f"sbatch -W -o {at} {given} --wrap 'echo $SLURM_NTASKS'" for at, given in enumerate(asked)
    ]
    ran = type_all(
        *enumerate(lines), (90, "salloc -Q -N1-2 --ntasks-per-node=2 sh -c 'echo $SLURM_NTASKS'")
    )
    assert [file(ran, str(at)).strip() for at in range(len(asked))] == list(asked.values())
    assert ran.result.commands[-1].stdout == "2\n"
